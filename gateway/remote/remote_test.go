package remote

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// fake is a node that answers asks as a test says.
type fake struct {
	messagesconnect.UnimplementedSessionServiceHandler
	messagesconnect.UnimplementedQuestionServiceHandler
	messagesconnect.UnimplementedInboxServiceHandler

	mu   sync.Mutex
	asks []*messages.AskRequest
	ask  func(n int, m *messages.AskRequest) (*messages.AskResponse, error)
}

func (f *fake) Ask(_ context.Context, r *connect.Request[messages.AskRequest]) (*connect.Response[messages.AskResponse], error) {
	f.mu.Lock()
	f.asks = append(f.asks, r.Msg)
	n := len(f.asks)
	f.mu.Unlock()
	res, err := f.ask(n, r.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

func (f *fake) Acknowledge(_ context.Context, r *connect.Request[messages.AcknowledgeRequest]) (*connect.Response[messages.AcknowledgeResponse], error) {
	return connect.NewResponse(&messages.AcknowledgeResponse{Known: r.Header().Get("Authorization") == "Bearer "+r.Msg.GetCallId()}), nil
}

func refusal(t *testing.T, e *messages.Error) error {
	t.Helper()
	out := connect.NewError(connect.CodeUnavailable, e)
	detail, err := connect.NewErrorDetail(e.Wire())
	require.NoError(t, err)
	out.AddDetail(detail)
	return out
}

func (f *fake) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(messagesconnect.NewSessionServiceHandler(f))
	mux.Handle(messagesconnect.NewQuestionServiceHandler(f))
	mux.Handle(messagesconnect.NewInboxServiceHandler(f))
	return mux
}

func (f *fake) serve(t *testing.T, token string) *Node {
	t.Helper()
	server := httptest.NewServer(f.handler())
	t.Cleanup(server.Close)
	n, err := Dial(server.URL, token)
	require.NoError(t, err)
	return n
}

// A wait goes on over requests that were held out and over trouble, under the
// same attempt, until it has a result.
func TestAskIsRepeatedUnderItsAttempt(t *testing.T) {
	f := &fake{ask: func(n int, _ *messages.AskRequest) (*messages.AskResponse, error) {
		switch n {
		case 1:
			return &messages.AskResponse{Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}}, nil
		case 2:
			return nil, refusal(t, messages.Refuse(messages.Unavailable, "restarting"))
		case 3:
			return nil, connect.NewError(connect.CodeUnavailable, nil) // whoever stands between
		}
		return &messages.AskResponse{CallId: "c", Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{}}}, nil
	}}
	asked := &messages.AskRequest{Session: "s", Attempt: "a"}
	reply, err := f.serve(t, "").Do(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, "c", reply.(*messages.AskResponse).GetCallId())
	require.Zero(t, asked.GetHoldMs(), "the caller's command is its own")
	require.Len(t, f.asks, 4)
	for _, m := range f.asks {
		require.Equal(t, "a", m.GetAttempt())
		require.Equal(t, hold.Milliseconds(), m.GetHoldMs())
	}
}

// A caller that says how long it will be held gets `waiting` back.
func TestAskIsHeldAsLongAsItSays(t *testing.T) {
	f := &fake{ask: func(_ int, m *messages.AskRequest) (*messages.AskResponse, error) {
		return &messages.AskResponse{Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{RemainingMs: m.GetHoldMs()}}}, nil
	}}
	reply, err := f.serve(t, "").Do(t.Context(), &messages.AskRequest{HoldMs: 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, reply.(*messages.AskResponse).GetWaiting().GetRemainingMs())
}

// A refusal comes back as what it was, winner and all, and is not repeated.
func TestRefusalsKeepTheirCode(t *testing.T) {
	f := &fake{ask: func(int, *messages.AskRequest) (*messages.AskResponse, error) {
		e := messages.Refuse(messages.Settled, "too late")
		e.Winner = &messages.Settlement{By: "ada"}
		return nil, refusal(t, e)
	}}
	_, err := f.serve(t, "").Do(t.Context(), &messages.AskRequest{})
	var e *messages.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, messages.Settled, e.Code)
	require.Equal(t, "ada", e.Winner.GetBy())
	require.Len(t, f.asks, 1)
}

// A node that comes back is found again; one that does not, is waited for until ctx ends.
func TestAskOutlivesItsNode(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := ln.Addr().String()
	require.NoError(t, ln.Close())
	n, err := Dial("http://"+address+"/", "")
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = n.Do(ctx, &messages.AskRequest{})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	done := make(chan error, 1)
	go func() {
		_, err := n.Do(t.Context(), &messages.AskRequest{})
		done <- err
	}()
	f := &fake{ask: func(int, *messages.AskRequest) (*messages.AskResponse, error) { return &messages.AskResponse{}, nil }}
	ln, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: f.handler(), ReadHeaderTimeout: time.Second}}
	server.Start()
	defer server.Close()
	require.NoError(t, <-done)
}

func TestTokenIsSentAndMisuseIsNamed(t *testing.T) {
	n := (&fake{}).serve(t, "secret")
	reply, err := n.Do(t.Context(), &messages.AcknowledgeRequest{CallId: "secret"})
	require.NoError(t, err)
	require.True(t, reply.(*messages.AcknowledgeResponse).GetKnown())
	_, err = n.Do(t.Context(), &messages.AttachRequest{})
	require.Equal(t, messages.BadRequest, messages.CodeOf(err), "a node that does not know the request")
	_, err = n.Do(t.Context(), &messages.SubmitRequest{})
	require.Equal(t, messages.Bug, messages.CodeOf(err))
	for _, address := range []string{"", "127.0.0.1:7410", "ftp://x", "http://"} {
		_, err := Dial(address, "")
		require.Equal(t, messages.BadRequest, messages.CodeOf(err), address)
	}
	_, err = Dial("http://x", "a\n")
	require.Equal(t, messages.BadRequest, messages.CodeOf(err))
}
