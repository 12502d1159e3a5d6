package gateway

import (
	"context"

	"connectrpc.com/connect"

	"github.com/parleyrun/parley/messages"
)

// WatchQuestions streams question rows from a cursor. Its rate is the
// client's: the next row is read from the journal once the one before has been
// taken, so a slow client costs nobody anything. Headers leave at once, so
// that a client knows that it is connected before anything happens.
func (s questionService) WatchQuestions(ctx context.Context, r *connect.Request[messages.WatchQuestionsRequest], stream *connect.ServerStream[messages.WatchQuestionsResponse]) error {
	if err := s.check(ctx, r.Msg); err != nil {
		return err
	}
	s.watches.Add(1)
	defer s.watches.Add(-1)
	ctx, release := s.bound(ctx)
	defer release()
	if err := stream.Send(nil); err != nil {
		return err
	}
	return s.say(ctx, s.port.Watch(ctx, r.Msg, mayAnswer(ctx), stream.Send))
}

// AttachWait holds a wait for as long as the stream lives. An
// unknown or finished wait gives an empty stream, not an error.
//
// How its end is read: the server cannot tell a client that closed the stream
// from one whose process or network died, since both look like a reset, and a
// proxy makes the one into the other. So an end of the stream is a lost claim
// (claim_grace applies). A client that lets go says so with ReleaseWait,
// Expire, Delegate or Submit.
func (s questionService) AttachWait(ctx context.Context, r *connect.Request[messages.AttachWaitRequest], stream *connect.ServerStream[messages.AttachWaitResponse]) error {
	if err := s.check(ctx, r.Msg); err != nil {
		return err
	}
	s.claims.Add(1)
	defer s.claims.Add(-1)
	ctx, release := s.bound(ctx)
	defer release()
	if err := stream.Send(nil); err != nil {
		return err
	}
	claim := s.port.OpenClaim(r.Msg.GetSession(), r.Msg.GetCallId(), r.Msg.GetClient())
	defer claim.Release(true)
	for {
		select {
		case <-ctx.Done():
			return s.say(ctx, ctx.Err())
		case ev := <-claim.Events():
			switch m := ev.(type) {
			case *messages.ClaimFrame:
				frame := &messages.AttachWaitResponse{Claim: claim.Name(), RemainingMs: m.GetRemainingMs(), Never: m.GetNever()}
				if err := stream.Send(frame); err != nil {
					return err
				}
			case *messages.ClaimEnd:
				if m.GetRetryable() {
					return s.say(ctx, messages.Refuse(messages.Unavailable, "the claim was cut off (%s); open it again", m.GetReason()))
				}
				return nil
			}
		}
	}
}

// bound ends a request's context when the gateway stops, with UNAVAILABLE as
// the cause: the same request may be sent to whoever serves next.
func (g *Gateway) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	undo := context.AfterFunc(g.stopping, func() { cancel(errStopping) })
	return ctx, func() { undo(); cancel(nil) }
}

var errStopping = messages.Refuse(messages.Unavailable, "the node is stopping")
