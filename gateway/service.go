package gateway

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/messages"
)

// doorName is what a submission through here says it came through.
const doorName = "connect"

// The three services share the gateway; each method is one line, so that this
// file reads as the list of what may be said.
type (
	sessionService  struct{ *Gateway }
	questionService struct{ *Gateway }
	inboxService    struct{ *Gateway }
)

// command checks a request, sends it and types its answer.
func command[Req any, Res any, PReq interface {
	*Req
	messages.Command
}, PRes interface {
	*Res
	messages.Reply
}](ctx context.Context, g *Gateway, req *connect.Request[Req]) (*connect.Response[Res], error) {
	cmd := PReq(req.Msg)
	if err := g.check(ctx, cmd); err != nil {
		return nil, err
	}
	ctx, release := g.bound(ctx)
	defer release()
	reply, err := g.port.Do(ctx, cmd)
	if err != nil {
		return nil, g.say(ctx, err)
	}
	res, ok := reply.(PRes)
	if !ok {
		return nil, g.say(ctx, messages.Refuse(messages.Bug, "a %T was answered with a %T", cmd, reply))
	}
	return connect.NewResponse((*Res)(res)), nil
}

// read checks a request that only looks, and types what it found.
func read[Req any, Res any, PReq interface {
	*Req
	proto.Message
}](ctx context.Context, g *Gateway, req *connect.Request[Req], look func(context.Context, *Req) (*Res, error)) (*connect.Response[Res], error) {
	if err := g.check(ctx, PReq(req.Msg)); err != nil {
		return nil, err
	}
	ctx, release := g.bound(ctx)
	defer release()
	res, err := look(ctx, req.Msg)
	if err != nil {
		return nil, g.say(ctx, err)
	}
	return connect.NewResponse(res), nil
}

// check notes what the request is about, for the log, and checks it.
func (g *Gateway) check(ctx context.Context, req proto.Message) error {
	if m, ok := req.(interface{ GetSession() string }); ok {
		noteSession(ctx, m.GetSession())
	}
	if err := Check(req); err != nil {
		return g.say(ctx, err)
	}
	return nil
}

// say notes an error for the log and says it in Connect's words.
func (g *Gateway) say(ctx context.Context, err error) error {
	if stopped := context.Cause(ctx); stopped != nil && errors.Is(err, ctx.Err()) {
		err = stopped
	}
	note(ctx, err)
	return toConnect(err)
}

func (s sessionService) Attach(ctx context.Context, r *connect.Request[messages.AttachRequest]) (*connect.Response[messages.AttachResponse], error) {
	return command[messages.AttachRequest, messages.AttachResponse](ctx, s.Gateway, r)
}

func (s sessionService) BeginTurn(ctx context.Context, r *connect.Request[messages.BeginTurnRequest]) (*connect.Response[messages.BeginTurnResponse], error) {
	return command[messages.BeginTurnRequest, messages.BeginTurnResponse](ctx, s.Gateway, r)
}

func (s sessionService) BeginStep(ctx context.Context, r *connect.Request[messages.BeginStepRequest]) (*connect.Response[messages.BeginStepResponse], error) {
	return command[messages.BeginStepRequest, messages.BeginStepResponse](ctx, s.Gateway, r)
}

func (s sessionService) EndStep(ctx context.Context, r *connect.Request[messages.EndStepRequest]) (*connect.Response[messages.EndStepResponse], error) {
	return command[messages.EndStepRequest, messages.EndStepResponse](ctx, s.Gateway, r)
}

func (s sessionService) EndTurn(ctx context.Context, r *connect.Request[messages.EndTurnRequest]) (*connect.Response[messages.EndTurnResponse], error) {
	return command[messages.EndTurnRequest, messages.EndTurnResponse](ctx, s.Gateway, r)
}

func (s sessionService) GetSession(ctx context.Context, r *connect.Request[messages.GetSessionRequest]) (*connect.Response[messages.GetSessionResponse], error) {
	return read(ctx, s.Gateway, r, func(ctx context.Context, req *messages.GetSessionRequest) (*messages.GetSessionResponse, error) {
		row, err := s.port.Views().Session(ctx, req.GetSession())
		return &messages.GetSessionResponse{Session: row}, err
	})
}

func (s sessionService) ListSessions(ctx context.Context, r *connect.Request[messages.ListSessionsRequest]) (*connect.Response[messages.ListSessionsResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Views().Sessions)
}

func (s sessionService) ReadLog(ctx context.Context, r *connect.Request[messages.ReadLogRequest]) (*connect.Response[messages.ReadLogResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Views().Log)
}

func (s questionService) Ask(ctx context.Context, r *connect.Request[messages.AskRequest]) (*connect.Response[messages.AskResponse], error) {
	s.held.Add(1)
	defer s.held.Add(-1)
	return command[messages.AskRequest, messages.AskResponse](ctx, s.Gateway, r)
}

func (s questionService) EndForeground(ctx context.Context, r *connect.Request[messages.EndForegroundRequest]) (*connect.Response[messages.EndForegroundResponse], error) {
	return command[messages.EndForegroundRequest, messages.EndForegroundResponse](ctx, s.Gateway, r)
}

func (s questionService) ListQuestions(ctx context.Context, r *connect.Request[messages.ListQuestionsRequest]) (*connect.Response[messages.ListQuestionsResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Views().Questions)
}

func (s questionService) GetQuestion(ctx context.Context, r *connect.Request[messages.GetQuestionRequest]) (*connect.Response[messages.GetQuestionResponse], error) {
	return read(ctx, s.Gateway, r, func(ctx context.Context, req *messages.GetQuestionRequest) (*messages.GetQuestionResponse, error) {
		row, err := s.port.Views().Question(ctx, req.GetSession(), req.GetCallId())
		return &messages.GetQuestionResponse{Question: row}, err
	})
}

func (s questionService) Submit(ctx context.Context, r *connect.Request[messages.SubmitRequest]) (*connect.Response[messages.SubmitResponse], error) {
	r.Msg.Door = doorName
	return command[messages.SubmitRequest, messages.SubmitResponse](ctx, s.Gateway, r)
}

func (s questionService) Expire(ctx context.Context, r *connect.Request[messages.ExpireRequest]) (*connect.Response[messages.ExpireResponse], error) {
	return command[messages.ExpireRequest, messages.ExpireResponse](ctx, s.Gateway, r)
}

func (s questionService) Delegate(ctx context.Context, r *connect.Request[messages.DelegateRequest]) (*connect.Response[messages.DelegateResponse], error) {
	return command[messages.DelegateRequest, messages.DelegateResponse](ctx, s.Gateway, r)
}

func (s questionService) Dismiss(ctx context.Context, r *connect.Request[messages.DismissRequest]) (*connect.Response[messages.DismissResponse], error) {
	return command[messages.DismissRequest, messages.DismissResponse](ctx, s.Gateway, r)
}

func (s questionService) WithdrawQuestion(ctx context.Context, r *connect.Request[messages.WithdrawQuestionRequest]) (*connect.Response[messages.WithdrawQuestionResponse], error) {
	return command[messages.WithdrawQuestionRequest, messages.WithdrawQuestionResponse](ctx, s.Gateway, r)
}

func (s questionService) ReleaseWait(ctx context.Context, r *connect.Request[messages.ReleaseWaitRequest]) (*connect.Response[messages.ReleaseWaitResponse], error) {
	return read(ctx, s.Gateway, r, func(_ context.Context, req *messages.ReleaseWaitRequest) (*messages.ReleaseWaitResponse, error) {
		s.port.ReleaseClaim(req.GetSession(), req.GetCallId(), req.GetClaim())
		return &messages.ReleaseWaitResponse{}, nil
	})
}

func (s inboxService) Steer(ctx context.Context, r *connect.Request[messages.SteerRequest]) (*connect.Response[messages.SteerResponse], error) {
	return command[messages.SteerRequest, messages.SteerResponse](ctx, s.Gateway, r)
}

func (s inboxService) ListInbox(ctx context.Context, r *connect.Request[messages.ListInboxRequest]) (*connect.Response[messages.ListInboxResponse], error) {
	return read(ctx, s.Gateway, r, func(ctx context.Context, req *messages.ListInboxRequest) (*messages.ListInboxResponse, error) {
		return s.port.Views().Inbox(ctx, req.GetSession())
	})
}

func (s inboxService) AwaitInbox(ctx context.Context, r *connect.Request[messages.AwaitInboxRequest]) (*connect.Response[messages.AwaitInboxResponse], error) {
	s.held.Add(1)
	defer s.held.Add(-1)
	return command[messages.AwaitInboxRequest, messages.AwaitInboxResponse](ctx, s.Gateway, r)
}

func (s inboxService) CollectReplies(ctx context.Context, r *connect.Request[messages.CollectRepliesRequest]) (*connect.Response[messages.CollectRepliesResponse], error) {
	return command[messages.CollectRepliesRequest, messages.CollectRepliesResponse](ctx, s.Gateway, r)
}

func (s inboxService) Acknowledge(ctx context.Context, r *connect.Request[messages.AcknowledgeRequest]) (*connect.Response[messages.AcknowledgeResponse], error) {
	return command[messages.AcknowledgeRequest, messages.AcknowledgeResponse](ctx, s.Gateway, r)
}

func (s inboxService) ClaimMessages(ctx context.Context, r *connect.Request[messages.ClaimMessagesRequest]) (*connect.Response[messages.ClaimMessagesResponse], error) {
	return command[messages.ClaimMessagesRequest, messages.ClaimMessagesResponse](ctx, s.Gateway, r)
}

func (s inboxService) AdmitMessages(ctx context.Context, r *connect.Request[messages.AdmitMessagesRequest]) (*connect.Response[messages.AdmitMessagesResponse], error) {
	return command[messages.AdmitMessagesRequest, messages.AdmitMessagesResponse](ctx, s.Gateway, r)
}

func (s inboxService) WithdrawMessage(ctx context.Context, r *connect.Request[messages.WithdrawMessageRequest]) (*connect.Response[messages.WithdrawMessageResponse], error) {
	return command[messages.WithdrawMessageRequest, messages.WithdrawMessageResponse](ctx, s.Gateway, r)
}
