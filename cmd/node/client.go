package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

const (
	door         = "cli"
	defaultRoot  = "cli"
	hold         = 20 * time.Second // how long one request stays open before it is repeated
	retryFirst   = 200 * time.Millisecond
	retryMax     = 3 * time.Second
	retriesMax   = 4 // of a request that is safe to repeat, when nobody waits in front of it
	pageRows     = 200
	replyTimeout = 30 * time.Second // of a request that the node answers at once
)

// client speaks to one node.
type client struct {
	messagesconnect.SessionServiceClient
	messagesconnect.QuestionServiceClient
	messagesconnect.InboxServiceClient
	messagesconnect.QueryServiceClient
	url  string
	from string // the variable or file that named it, if one did
}

func (c *cli) dial() (*client, error) {
	where := c.node
	if !strings.Contains(where, "://") {
		where = "http://" + where
	}
	u, err := url.Parse(where)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, usage("give it as http://host:port", "--node %q is no address of a node", c.node)
	}
	if strings.ContainsFunc(c.token, unicode.IsControl) {
		return nil, usage("does it end with a newline?", "--token holds a control character")
	}
	if err := c.trusted(u); err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(u.String(), "/")
	opts := []connect.ClientOption{connect.WithInterceptors(bearer(c.token))}
	return &client{
		messagesconnect.NewSessionServiceClient(http.DefaultClient, base, opts...),
		messagesconnect.NewQuestionServiceClient(http.DefaultClient, base, opts...),
		messagesconnect.NewInboxServiceClient(http.DefaultClient, base, opts...),
		messagesconnect.NewQueryServiceClient(http.DefaultClient, base, opts...),
		base, c.source("node"),
	}, nil
}

// bearer adds the token to every request, streams included.
type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		b.sign(req.Header())
		return next(ctx, req)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		b.sign(conn.RequestHeader())
		return conn
	}
}

func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (b bearer) sign(h http.Header) {
	if b != "" {
		h.Set("Authorization", "Bearer "+string(b))
	}
}

// page is where a person can answer a question with a browser.
func (c *client) page(session, call string) string {
	return c.url + "/answer/" + url.PathEscape(session) + "/" + url.PathEscape(call)
}

type unary[Q, R any] func(context.Context, *connect.Request[Q]) (*connect.Response[R], error)

// call sends one request that the node answers at once.
func call[Q, R any](ctx context.Context, c *client, rpc unary[Q, R], req *Q) (*R, error) {
	return callWithin(ctx, c, replyTimeout, rpc, req)
}

func callWithin[Q, R any](ctx context.Context, c *client, limit time.Duration, rpc unary[Q, R], req *Q) (*R, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := rpc(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, c.explain(err)
	}
	return res.Msg, nil
}

// repeat sends a request that is idempotent, and again while the node says that this may help. It gives up at once
// when no node is there: then nothing was half done.
func repeat[Q, R any](ctx context.Context, c *client, rpc unary[Q, R], req *Q) (*R, error) {
	for n := 0; ; n++ {
		res, err := call(ctx, c, rpc, req)
		if err == nil || !asTrouble(err).temporary() || errors.Is(err, errNobody) || n == retriesMax {
			return res, err
		}
		if !pause(ctx, n) {
			return nil, err
		}
	}
}

// pause waits before the n-th repetition; false when the caller gave up.
func pause(ctx context.Context, n int) bool {
	t := time.NewTimer(min(retryFirst<<min(n, 10), retryMax))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errNobody marks an error of a request that never reached a node.
var errNobody = errors.New("nobody listens")

type unreached struct{ *trouble }

func (u unreached) Unwrap() []error { return []error{u.trouble, errNobody} }

func (c *client) named() string {
	if c.from == "" {
		return ""
	}
	return ", where " + c.from + " points"
}

// explain reads the refusal that an error carries, or words what became of the connection.
func (c *client) explain(err error) error {
	var e *connect.Error
	if !errors.As(err, &e) {
		return err
	}
	for _, detail := range e.Details() {
		value, err := detail.Value()
		if refusal, ok := value.(*messages.Refusal); err == nil && ok {
			t := refuse(messages.Code(refusal.GetCode()), refusal.GetRemedy(), "%s", refusal.GetText())
			t.winner = refusal.GetWinner()
			return t
		}
	}
	switch e.Code() {
	case connect.CodeUnauthenticated:
		return refuse(messages.Unauthenticated, "set PARLEY_TOKEN, or give --token", "%s wants another token", c.url)
	case connect.CodePermissionDenied:
		return refuse(messages.ForeignOrigin, "", "%s", e.Message())
	case connect.CodeCanceled:
		return refuse(messages.Unavailable, "the same command may be given again", "stopped before the node answered")
	case connect.CodeDeadlineExceeded:
		return refuse(messages.Unavailable, "the same command may be given again", "%s does not answer in time", c.url)
	case connect.CodeUnimplemented:
		return refuse(messages.BadRequest, "compare `parley version` with the node's, and check --node", "%s does not know this request", c.url)
	case connect.CodeUnavailable:
		if strings.Contains(e.Message(), "refused") || strings.Contains(e.Message(), "no such host") {
			return unreached{refuse(messages.Unavailable, "start one with `parley serve`, or name one with --node or PARLEY_NODE",
				"no node listens at %s%s", c.url, c.named())}
		}
		return refuse(messages.Unavailable, "", "%s: %s", c.url, e.Message())
	}
	if strings.HasPrefix(e.Message(), "marshal message") { // the same one again would fail again
		return refuse(messages.BadRequest, "", "the request cannot be written: %s", e.Message())
	}
	if !connect.IsWireError(e) { // nobody said it: the connection broke in the middle of an answer
		return refuse(messages.Unavailable, "", "%s: %s", c.url, e.Message())
	}
	return &trouble{code: messages.Code(strings.ToUpper(e.Code().String())), text: e.Message(), remedy: "the node's log says more"}
}

// attach makes root the one who speaks for the session. Another root that holds it is not pushed out unasked: its open
// questions would end. An unknown session is created when create says so.
func (c *cli) attach(ctx context.Context, node *client, session, root, cwd string, create, takeOver bool) error {
	row, err := repeat(ctx, node, node.GetSession, &messages.GetSessionRequest{Session: session})
	switch {
	case err != nil && asTrouble(err).code == messages.NotFound:
		if !create {
			return err
		}
	case err != nil:
		return err
	case row.GetSession().GetRoot() != "" && row.GetSession().GetRoot() != root && !takeOver:
		return heldBy(session, row.GetSession().GetRoot(), create, true)
	}
	_, err = repeat(ctx, node, node.Attach, &messages.AttachRequest{Session: session, Root: root, Cwd: cwd})
	return err
}

// heldBy refuses to speak for a session that another root holds, and says how the verb at hand could.
func heldBy(session, root string, otherSession, takeOver bool) error {
	remedy := "speak as that root with --root " + quote(root)
	if otherSession {
		remedy = "use another --session; or " + remedy
	}
	if takeOver {
		remedy += "; or take its place with --take-over, which ends its open questions"
	}
	return refuse(messages.CallerNotLive, remedy, "the session %s is held by the root %s", session, root)
}
