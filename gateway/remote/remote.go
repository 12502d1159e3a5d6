// Package remote is a node that runs elsewhere, seen as the port of a door in
// this process: the commands that an agent's door sends, by the Connect
// services.
//
// It decides how long one request is held open, when a request that met trouble
// is sent again, and what became of a connection. It never decides what a
// command leads to, and never makes one up: what it repeats is the same command
// under the same key.
package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/parleyrun/parley/query"
)

const (
	hold         = 20 * time.Second // how long one request stays open before it is repeated
	replyTimeout = 30 * time.Second // of a request that the node answers at once
	patience     = 20 * time.Second // for a node that is gone, where nobody waits for a person
	retryFirst   = 100 * time.Millisecond
	retryMax     = 3 * time.Second
)

// Node is a node at an address. It is safe for concurrent use.
type Node struct {
	url       string
	sessions  messagesconnect.SessionServiceClient
	questions messagesconnect.QuestionServiceClient
	inbox     messagesconnect.InboxServiceClient
	past      messagesconnect.QueryServiceClient
}

// Dial makes the port of the node at an address, http://host:port. It does not
// connect yet. token is the bearer token that the node wants; empty: none. Its
// errors are BAD_REQUEST.
func Dial(address, token string) (*Node, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, messages.Refuse(messages.BadRequest, "%.200q is no address of a node; give it as http://host:port", address)
	}
	if strings.ContainsFunc(token, unicode.IsControl) {
		return nil, messages.Refuse(messages.BadRequest, "the token holds a control character; does it end with a newline?")
	}
	base := strings.TrimSuffix(u.String(), "/")
	client := &http.Client{Transport: bearer{token, http.DefaultTransport.(*http.Transport).Clone()}} //nolint:forcetypeassert // as net/http documents it
	return &Node{base, messagesconnect.NewSessionServiceClient(client, base),
		messagesconnect.NewQuestionServiceClient(client, base), messagesconnect.NewInboxServiceClient(client, base),
		messagesconnect.NewQueryServiceClient(client, base)}, nil
}

// bearer signs requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// Do sends a command and returns its answer, a refusal as *messages.Error. An
// ask, and a wait for the inbox, is held until its result or for its hold_ms,
// whatever becomes of the node meanwhile; everything else is given up as
// UNAVAILABLE when no node answers for a while. When ctx ends first the error
// is ctx's, and what was asked goes on.
func (n *Node) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	switch m := cmd.(type) {
	case *messages.AskRequest:
		if m.GetHoldMs() == 0 {
			return n.ask(ctx, proto.CloneOf(m))
		}
		return n.repeat(ctx, cmd, span(m.GetHoldMs()), 0)
	case *messages.AwaitInboxRequest:
		if m.GetHoldMs() == 0 && !m.GetNow() {
			return n.await(ctx, proto.CloneOf(m))
		}
		return n.repeat(ctx, cmd, span(m.GetHoldMs()), patience)
	}
	return n.repeat(ctx, cmd, 0, patience)
}

func span(ms int64) time.Duration { return time.Duration(min(ms, 1<<40)) * time.Millisecond }

// ask repeats an ask until it has a result.
func (n *Node) ask(ctx context.Context, m *messages.AskRequest) (messages.Reply, error) {
	m.HoldMs = hold.Milliseconds()
	for {
		start := time.Now()
		reply, err := n.repeat(ctx, m, hold, 0)
		r, ok := reply.(*messages.AskResponse)
		if err != nil || !ok || r.GetWaiting() == nil {
			return reply, err
		}
		if time.Since(start) < retryFirst && !pause(ctx, retryFirst) { // a node that holds nothing is not hammered
			return nil, ctx.Err()
		}
	}
}

// await repeats a wait until something waits.
func (n *Node) await(ctx context.Context, m *messages.AwaitInboxRequest) (messages.Reply, error) {
	m.HoldMs = hold.Milliseconds()
	for {
		start := time.Now()
		reply, err := n.repeat(ctx, m, hold, 0)
		r, ok := reply.(*messages.AwaitInboxResponse)
		if err != nil || !ok || r.GetQueued() > 0 || r.GetUndelivered() > 0 {
			return reply, err
		}
		if time.Since(start) < retryFirst && !pause(ctx, retryFirst) {
			return nil, ctx.Err()
		}
	}
}

// repeat sends a command, and again while the node is in trouble: every command
// is idempotent under its own key. limit 0: until ctx ends.
func (n *Node) repeat(ctx context.Context, cmd messages.Command, held, limit time.Duration) (messages.Reply, error) {
	start := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		reply, err := n.once(ctx, cmd, held+replyTimeout)
		switch code := messages.CodeOf(err); {
		case err == nil:
			return reply, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case code != messages.Unavailable && code != messages.Fenced:
			return nil, err
		case limit > 0 && time.Since(start)+wait > limit:
			return nil, err
		}
		if !pause(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// pause waits; false: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once sends a command one time.
func (n *Node) once(ctx context.Context, cmd messages.Command, limit time.Duration) (messages.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch m := cmd.(type) {
	case *messages.AttachRequest:
		return unary(ctx, n, n.sessions.Attach, m)
	case *messages.AskRequest:
		return unary(ctx, n, n.questions.Ask, m)
	case *messages.EndForegroundRequest:
		return unary(ctx, n, n.questions.EndForeground, m)
	case *messages.WithdrawQuestionRequest:
		return unary(ctx, n, n.questions.WithdrawQuestion, m)
	case *messages.AwaitInboxRequest:
		return unary(ctx, n, n.inbox.AwaitInbox, m)
	case *messages.CollectRepliesRequest:
		return unary(ctx, n, n.inbox.CollectReplies, m)
	case *messages.AcknowledgeRequest:
		return unary(ctx, n, n.inbox.Acknowledge, m)
	}
	return nil, messages.Refuse(messages.Bug, "a %T is no command of an agent's door", cmd)
}

func unary[Q, R any, P interface {
	*R
	messages.Reply
}](ctx context.Context, n *Node, call func(context.Context, *connect.Request[Q]) (*connect.Response[R], error), req *Q) (messages.Reply, error) {
	res, err := call(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, n.explain(err)
	}
	return P(res.Msg), nil
}

// CallQueryTool makes one call of a session query tool. It only reads, so it is
// not repeated: whoever asked may ask again.
func (n *Node) CallQueryTool(ctx context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error) {
	res, err := n.past.CallQueryTool(ctx, connect.NewRequest(req))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, n.explain(err)
	}
	return res.Msg, nil
}

// Workspace tells the working directory of a session.
func (n *Node) Workspace(ctx context.Context, session string) (string, error) {
	res, err := n.sessions.ReadLog(ctx, connect.NewRequest(&messages.ReadLogRequest{Session: session, Limit: 1}))
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", n.explain(err)
	}
	return query.Workspace(res.Msg)
}

// explain reads the refusal that an error carries, or says what became of the
// connection.
func (n *Node) explain(err error) error {
	if refusal := gateway.RefusalOf(err); refusal != nil {
		return refusal
	}
	var e *connect.Error
	if !errors.As(err, &e) {
		return err
	}
	if strings.HasPrefix(e.Message(), "marshal message") { // the same one again would fail again
		return messages.Refuse(messages.BadRequest, "the request cannot be written: %s", e.Message())
	}
	if connect.IsWireError(e) {
		switch e.Code() {
		case connect.CodeUnauthenticated:
			return messages.Refuse(messages.Unauthenticated, "%s wants another token", n.url)
		case connect.CodeUnimplemented:
			return messages.Refuse(messages.BadRequest, "%s does not know this request; compare its version with this one's, and check the address", n.url)
		case connect.CodePermissionDenied:
			return messages.Refuse(messages.ForeignOrigin, "%s: %s", n.url, e.Message())
		case connect.CodeInternal, connect.CodeUnknown, connect.CodeInvalidArgument:
			return messages.Refuse(messages.Bug, "%s: %s", n.url, e.Message())
		}
	}
	return messages.Refuse(messages.Unavailable, "the node at %s does not answer: %s", n.url, e.Message())
}
