package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// toolText stands for the node's definition of the tool.
const toolText = `{"name":"ask_user_question","description":"Ask the user.","parameters":{"type":"object","required":["questions"],` +
	`"properties":{"questions":{"type":"array","items":{"type":"object"}},"timeout":{"type":"integer"}}}}`

// shipIt is a call that asks one question, as the schema has it.
const shipIt = `{"questions":[{"id":"ship","question":"Ship it?","options":[{"label":"Yes"},{"label":"No"}]}]}`

// stage is a door on a stand-in node, with a clock of its own, and one client.
type stage struct {
	*testing.T
	node  *standIn
	clock *hand
	door  *Door

	mu sync.Mutex
	// life makes the life of the next calls.
	life func(*life)
	// end ends the request that came last; written says that its response was.
	end     context.CancelCauseFunc
	written []func()
	notices chan *sdk.ProgressNotificationParams
}

func newStage(t *testing.T, set ...func(*Options)) *stage {
	t.Helper()
	r := &stage{T: t, node: &standIn{calls: map[string]*kept{}}, clock: &hand{now: time.Unix(1_000_000, 0)},
		notices: make(chan *sdk.ProgressNotificationParams, 64)}
	ids := 0
	var mu sync.Mutex
	opts := Options{Definition: json.RawMessage(toolText), Mode: messages.Mode_MODE_TIMED, DefaultTimeoutS: 120, Version: "test",
		Link: func(session, call string) string { return "http://node/" + session + "/" + call },
		NewID: func(kind string) string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("%s-%d", kind, ids)
		}}
	for _, f := range set {
		f(&opts)
	}
	door, err := New(r.node, opts)
	require.NoError(t, err)
	door.clock = r.clock
	r.door = door
	door.server().AddReceivingMiddleware(r.lend)
	return r
}

// lend gives every request a life, as a transport does.
func (r *stage) lend(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method != "tools/call" && method != "tools/list" {
			return next(ctx, method, req)
		}
		gone, end := context.WithCancelCause(context.WithoutCancel(ctx))
		l := &life{gone: gone, whenWritten: func(f func()) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.written = append(r.written, f)
		}}
		r.mu.Lock()
		if r.life != nil {
			r.life(l)
		}
		r.end = end
		r.mu.Unlock()
		return next(withLife(ctx, l), method, req)
	}
}

// lives says what the transport knows of the calls from now on.
func (r *stage) lives(set func(*life)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life = set
}

// lastEnd is what ends the request that came last.
func (r *stage) lastEnd() context.CancelCauseFunc {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// hangUp ends the request that came last.
func (r *stage) hangUp(why string) {
	r.lastEnd()(errors.New(why))
}

// write says that every response so far was written in full.
func (r *stage) write() int {
	r.mu.Lock()
	written := r.written
	r.written = nil
	r.mu.Unlock()
	for _, f := range written {
		f()
	}
	return len(written)
}

// client connects one.
func (r *stage) client(name string) *sdk.ClientSession {
	r.Helper()
	near, far := sdk.NewInMemoryTransports()
	_, err := r.door.server().Connect(r.Context(), near, nil)
	require.NoError(r, err)
	client := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) { r.notices <- req.Params },
	})
	session, err := client.Connect(r.Context(), far, nil)
	require.NoError(r, err)
	r.Cleanup(func() { _ = session.Close() })
	return session
}

// returned is one call's result, once it is there.
type returned struct {
	*sdk.CallToolResult
	err error
}

// call calls a tool, and returns at once.
func (r *stage) call(client *sdk.ClientSession, tool, arguments string, meta ...any) <-chan returned {
	out := make(chan returned, 1)
	params := &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), Meta: sdk.Meta{}}
	for i := 0; i < len(meta); i += 2 {
		params.Meta[meta[i].(string)] = meta[i+1]
	}
	go func() {
		res, err := client.CallTool(r.Context(), params)
		out <- returned{res, err}
	}()
	return out
}

// result waits for the result of a call.
func (r *stage) result(c <-chan returned) *sdk.CallToolResult {
	r.Helper()
	select {
	case got := <-c:
		require.NoError(r, got.err)
		return got.CallToolResult
	case <-time.After(patience):
		require.Fail(r, "the call has not returned", "%s", r.node.spell())
		return nil
	}
}

// run calls a tool and waits for its result.
func (r *stage) run(client *sdk.ClientSession, tool, arguments string, meta ...any) *sdk.CallToolResult {
	r.Helper()
	return r.result(r.call(client, tool, arguments, meta...))
}

func textOf(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	require.Len(t, res.Content, 1, "Q-032: exactly one text block")
	block, ok := res.Content[0].(*sdk.TextContent)
	require.True(t, ok)
	return block.Text
}

// said is the value of a result, which is the same in both halves.
func said(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	text := textOf(t, res)
	require.False(t, res.IsError, text)
	structured, err := json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	require.JSONEq(t, text, string(structured))
	return text
}

// failureOf is the text of a failure, which has no other half.
func failureOf(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	require.True(t, res.IsError)
	require.Nil(t, res.StructuredContent)
	text := textOf(t, res)
	require.True(t, strings.HasPrefix(text, "Error: "), "Q-033: %s", text)
	return text
}

// pendingOf reads a pending result strictly.
func pendingOf(t *testing.T, res *sdk.CallToolResult) (call, message string) {
	t.Helper()
	var p struct {
		Pending bool   `json:"pending"`
		CallID  string `json:"callId"`
		Message string `json:"message"`
	}
	dec := json.NewDecoder(strings.NewReader(said(t, res)))
	dec.DisallowUnknownFields() // a closed shape
	require.NoError(t, dec.Decode(&p))
	require.True(t, p.Pending)
	return p.CallID, p.Message
}

// hand is a clock that moves when it is told to.
type hand struct {
	mu     sync.Mutex
	now    time.Time
	timers []*alarm
}

type alarm struct {
	at time.Time
	c  chan time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) After(d time.Duration) (<-chan time.Time, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &alarm{at: h.now.Add(d), c: make(chan time.Time, 1)}
	if d <= 0 {
		a.c <- h.now
		return a.c, func() {}
	}
	h.timers = append(h.timers, a)
	return a.c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timers = slices.DeleteFunc(h.timers, func(b *alarm) bool { return a == b })
	}
}

// forward moves it to the timer that is d away, which must come to be set.
func (h *hand) forward(t *testing.T, d time.Duration) {
	t.Helper()
	at := h.Now().Add(d)
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.ContainsFunc(h.timers, func(a *alarm) bool { return a.at.Equal(at) })
	}, patience, time.Millisecond, "no timer of %s is set", d)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = at
	h.timers = slices.DeleteFunc(h.timers, func(a *alarm) bool {
		if a.at.After(at) {
			return false
		}
		a.c <- at
		return true
	})
}

// pass lets time pass in which no timer ends.
func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// running counts the timers that are set.
func (h *hand) running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.timers)
}

// standIn is a node that remembers what it was told, holds calls until a test
// settles them, and answers as `on` says where that has something to say.
type standIn struct {
	mu   sync.Mutex
	on   func(messages.Command) (messages.Reply, error)
	told []messages.Command
	// looked counts the workspaces that were asked for.
	looked int
	calls  map[string]*kept
}

type kept struct {
	session, attempt, call, arguments string
	end                               chan verdict
}

type verdict struct {
	response *messages.AskResponse
	err      error
}

func (n *standIn) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.told = append(n.told, cmd)
	on := n.on
	n.mu.Unlock()
	if on != nil {
		if reply, err := on(cmd); reply != nil || err != nil {
			return reply, err
		}
	}
	switch m := cmd.(type) {
	case *messages.AttachRequest:
		return &messages.AttachResponse{Session: m.GetSession(), Root: m.GetRoot()}, nil
	case *messages.AskRequest:
		return n.ask(ctx, m)
	case *messages.EndForegroundRequest:
		n.expire(m.GetCallId())
		return &messages.EndForegroundResponse{}, nil
	case *messages.AcknowledgeRequest:
		return &messages.AcknowledgeResponse{Known: true}, nil
	case *messages.AwaitInboxRequest:
		if m.GetNow() {
			return &messages.AwaitInboxResponse{}, nil
		}
		<-ctx.Done() // a test that looks for more says so
		return nil, ctx.Err()
	case *messages.CollectRepliesRequest:
		return &messages.CollectRepliesResponse{}, nil
	}
	return nil, messages.Refuse(messages.Bug, "the stand-in knows no %T", cmd)
}

func (n *standIn) ask(ctx context.Context, m *messages.AskRequest) (messages.Reply, error) {
	n.mu.Lock()
	if !m.GetResume() {
		h := &kept{session: m.GetSession(), attempt: m.GetAttempt(), call: "q-" + m.GetAttempt(), arguments: m.GetArguments(), end: make(chan verdict, 1)}
		n.calls[h.call] = h
		n.mu.Unlock()
		return waitingOf(h), nil
	}
	h := n.calls[m.GetCallId()]
	n.mu.Unlock()
	if h == nil || h.attempt != m.GetAttempt() {
		return nil, messages.Refuse(messages.NotFound, "no call %q of attempt %q", m.GetCallId(), m.GetAttempt())
	}
	select {
	case v := <-h.end:
		if v.err != nil {
			return nil, v.err
		}
		return v.response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func waitingOf(h *kept) *messages.AskResponse {
	return &messages.AskResponse{Session: h.session, CallId: h.call, Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}}
}

// hold makes a call that an earlier request left behind.
func (n *standIn) hold(session, attempt string) *kept {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &kept{session: session, attempt: attempt, call: "q-" + attempt, end: make(chan verdict, 1)}
	n.calls[h.call] = h
	return h
}

func (n *standIn) settle(call string, v verdict) {
	n.mu.Lock()
	h := n.calls[call]
	n.mu.Unlock()
	select {
	case h.end <- v:
	default: // settled already
	}
}

func (n *standIn) answer(call, result string) {
	n.settle(call, verdict{response: &messages.AskResponse{CallId: call, Result: result,
		Outcome: &messages.AskResponse_Answered{Answered: &messages.Answered{}}}})
}

func (n *standIn) expire(call string) {
	n.settle(call, verdict{response: &messages.AskResponse{CallId: call, Result: `{"pending":true}`,
		Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{Message: "Nobody answered."}}}})
}

// open waits until count calls are held open, and lists them in the order asked.
func (n *standIn) open(t *testing.T, count int) []*kept {
	t.Helper()
	var list []*kept
	require.Eventually(t, func() bool {
		list = nil
		for _, m := range told[*messages.AskRequest](n) {
			if m.GetResume() {
				n.mu.Lock()
				list = append(list, n.calls[m.GetCallId()])
				n.mu.Unlock()
			}
		}
		return len(list) >= count
	}, patience, time.Millisecond, "%d calls are not open:\n%s", count, n.spell())
	return list
}

// says sets what the node answers to one kind of command.
func says[C messages.Command](n *standIn, f func(C) (messages.Reply, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.on
	n.on = func(cmd messages.Command) (messages.Reply, error) {
		if c, ok := cmd.(C); ok {
			return f(c)
		}
		if before != nil {
			return before(cmd)
		}
		return nil, nil
	}
}

// told lists the commands of one kind.
func told[C messages.Command](n *standIn) []C {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []C
	for _, cmd := range n.told {
		if c, ok := cmd.(C); ok {
			list = append(list, c)
		}
	}
	return list
}

// hears waits until it was told count commands of one kind.
func hears[C messages.Command](t *testing.T, n *standIn, count int) []C {
	t.Helper()
	require.Eventually(t, func() bool { return len(told[C](n)) >= count }, patience, time.Millisecond, "%s", n.spell())
	return told[C](n)
}

func (n *standIn) spell() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for _, cmd := range n.told {
		fmt.Fprintf(&b, "%T %v\n", cmd, cmd)
	}
	return b.String()
}

// CallQueryTool says what it was asked.
func (n *standIn) CallQueryTool(_ context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error) {
	switch {
	case req.GetSession() == "of-another-root":
		return nil, messages.Refuse(messages.CallerNotLive, `"mcp" is not the live agent of session %q; "r" is`, req.GetSession())
	case req.GetTool() == "session_trace":
		return nil, messages.Refuse(messages.QueryUnauthorized, "no")
	}
	return &messages.CallQueryToolResponse{Text: req.GetSession() + " " + req.GetRoot() + " " + req.GetTool() + " " + req.GetArguments()}, nil
}

// Workspace knows sessions of a workspace, one without and one that is damaged,
// and says of every other that there is none.
func (n *standIn) Workspace(_ context.Context, session string) (string, error) {
	n.mu.Lock()
	n.looked++
	n.mu.Unlock()
	switch session {
	case "of-work", "of-another-root":
		return "/srv/work", nil
	case "of-nothing":
		return "", nil
	case "damaged":
		return "", messages.Refuse(messages.SessionCorrupt, "session damaged in /var/j.db, record 1")
	case "unread":
		return "", messages.Refuse(messages.JournalIO, "/var/j.db: the disk failed")
	}
	return "", messages.Refuse(messages.NotFound, "no")
}
