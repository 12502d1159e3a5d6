package e2e

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/e2e/faultproxy"
	"github.com/parleyrun/parley/messages"
)

// talk is one conversation: an agent with its client, a person, and the ledger of what passes between them.
type talk struct {
	t       testing.TB
	node    *node
	session string
	dialing dialing
	agent   agent
	person  *person
	ledger  *ledger
	after   string // the token of the list read last
}

// talking begins a conversation with a client of a kind, in a session of its own, at an endpoint with this query.
func talking(t testing.TB, n *node, k kind, query url.Values) *talk {
	t.Helper()
	session := fmt.Sprintf("s-%d", serial.Add(1))
	l := newLedger()
	c := &talk{t: t, node: n, session: session, person: newPerson(n.addr, l), ledger: l,
		dialing: dialing{kind: k, url: endpoint(n.addr, session, query)}}
	c.agent = connected(t, c.dialing)
	return c
}

func endpoint(addr, session string, query url.Values) string {
	u := url.URL{Scheme: "http", Host: addr, Path: "/mcp", RawQuery: query.Encode()}
	if session != "" {
		u.Path += "/" + session
	}
	return u.String()
}

// through puts a proxy with this plan between agent and node.
func (c *talk) through(plan func(faultproxy.Request) faultproxy.Plan) *faultproxy.Proxy {
	c.t.Helper()
	p, err := faultproxy.New(c.t.Context(), c.node.addr, plan)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = p.Close() })
	u, err := url.Parse(c.dialing.url)
	require.NoError(c.t, err)
	u.Host = p.Addr()
	c.dialing.url = u.String()
	c.agent = connected(c.t, c.dialing)
	return p
}

// reconnect is what a user does whose client has lost its server. More than once, if need be: node's fetch may try a
// connection of the server that is gone.
func (c *talk) reconnect() {
	c.t.Helper()
	if !c.dialing.kind.old() {
		return
	}
	ctx := within(c.t, patience)
	for {
		a, err := dial(ctx, c.dialing)
		if err == nil {
			c.agent = a
			c.t.Cleanup(a.close)
			return
		}
		require.True(c.t, pause(ctx, 50*time.Millisecond), err)
	}
}

// question is the argument of ask_user_question for one text; more is added at its top.
func question(text string, more map[string]any) map[string]any {
	args := map[string]any{"questions": []any{map[string]any{"id": "ship", "question": text, "header": "Ship",
		"options": []any{map[string]any{"label": "Yes"}, map[string]any{"label": "No"}}}}}
	for k, v := range more {
		args[k] = v
	}
	return args
}

// asked is how a call ended.
type asked struct {
	reply
	err error
}

// ask calls ask_user_question and gives the ledger what came of it.
func (c *talk) ask(ctx context.Context, text string, more map[string]any) asked {
	return c.askWith(ctx, text, call{args: question(text, more)})
}

func (c *talk) askWith(ctx context.Context, text string, with call) asked {
	with.tool = "ask_user_question"
	take := c.ledger.asking(text)
	r, err := c.agent.call(ctx, with)
	if err == nil {
		take(r)
	}
	return asked{r, err}
}

// asking asks in the background.
func (c *talk) asking(ctx context.Context, text string, more map[string]any) <-chan asked {
	done := make(chan asked, 1)
	go func() { done <- c.ask(ctx, text, more) }()
	return done
}

// row waits until the person sees the question in one of these states.
func (c *talk) row(text string, states ...string) *messages.QuestionRow {
	c.t.Helper()
	row, err := c.person.find(within(c.t, patience), c.session, text, states...)
	require.NoError(c.t, err)
	return row
}

// answer answers a question that the person sees, and requires what the person is told.
func (c *talk) answer(text, outcome string) {
	c.t.Helper()
	got, err := c.person.answer(within(c.t, patience), c.row(text))
	require.NoError(c.t, err)
	require.Equal(c.t, outcome, got.GetOutcome())
}

// collect calls collect_replies, acknowledging what was listed before if acknowledge is set.
func (c *talk) collect(acknowledge bool) (collected, error) {
	args, after := map[string]any{}, ""
	if acknowledge && c.after != "" {
		args["after"], after = c.after, c.after
	}
	r, err := c.agent.call(within(c.t, patience), call{tool: "collect_replies", args: args})
	if err != nil {
		return collected{}, err
	}
	got, err := readCollected(r)
	if err != nil {
		return got, err
	}
	c.ledger.collected(after, got)
	if got.Token != "" {
		c.after = got.Token
	}
	return got, nil
}

// collectedOne requires that exactly one reply is listed, and returns it.
func (c *talk) collectedOne() listed {
	c.t.Helper()
	got, err := c.collect(true)
	require.NoError(c.t, err)
	require.Len(c.t, got.Replies, 1)
	return got.Replies[0]
}

// over acknowledges what was listed last, requires that nothing else is there, and settles the ledger. Results that
// came in time may be listed once: whether they arrived is known some time after they were written.
func (c *talk) over() {
	c.t.Helper()
	got, err := c.collect(true)
	require.NoError(c.t, err)
	for _, r := range got.Replies {
		require.Equal(c.t, "result", r.Kind)
		require.True(c.t, r.Redelivered)
	}
	for range 2 { // the second time shows that the first was no accident
		got, err := c.collect(true)
		require.NoError(c.t, err)
		require.Empty(c.t, got.Replies)
	}
	c.settle()
}

// overRepeats is over for a call that was repeated: the answer that was the result of the repeat may be listed once
// more, under its one id.
func (c *talk) overRepeats() {
	c.t.Helper()
	got, err := c.collect(true)
	require.NoError(c.t, err)
	require.LessOrEqual(c.t, len(got.Replies), 1)
	c.over()
}

func (c *talk) settle() {
	c.t.Helper()
	events, err := c.person.log(within(c.t, patience), c.session)
	require.NoError(c.t, err)
	require.NotEmpty(c.t, events)
	require.Empty(c.t, c.ledger.close(events))
}

// isAnswer requires a result that carries an answer, given to this call.
func isAnswer(t testing.TB, got asked) {
	t.Helper()
	require.NoError(t, got.err)
	require.False(t, got.isError, got.text)
	require.Contains(t, got.structured, "answers", got.text)
}

// isUnread requires the refusal of a question that has been answered, by an answer that may not have been read.
func isUnread(t testing.TB, got asked) {
	t.Helper()
	require.NoError(t, got.err)
	require.True(t, got.isError, got.text)
	require.Contains(t, got.text, "Error: UNREAD_ANSWER")
	require.Contains(t, got.text, "collect_replies")
	require.Nil(t, got.structured, "clients that show the structure alone would hide the text")
}

// isPending requires a pending result, and returns the call it names.
func isPending(t testing.TB, got asked) string {
	t.Helper()
	require.NoError(t, got.err)
	require.False(t, got.isError, got.text)
	require.True(t, got.pending(), got.text)
	id, _ := got.structured["callId"].(string)
	require.NotEmpty(t, id)
	return id
}

// await returns what comes, within the time that a scenario may take.
func await[T any](t testing.TB, c <-chan T, limit time.Duration) T {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-c:
		return got
	case <-timer.C:
		require.FailNow(t, "nothing came within "+limit.String())
		panic("unreachable")
	}
}

// shared is the node of all scenarios that leave it alone.
func shared(t testing.TB) *node {
	t.Helper()
	common.once.Do(func() {
		dir, err := binaryFolder()
		if err != nil {
			common.err = err
			return
		}
		common.node = &node{addr: quietPort(t), dir: dir}
		common.err = common.node.start()
	})
	require.NoError(t, common.err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the shared node said last:\n%s", common.node.log.String())
		}
	})
	return common.node
}

var common struct {
	once sync.Once
	node *node
	err  error
}

// only keeps the kinds that a scenario is about.
func only(want ...kind) func(kind) bool { return func(k kind) bool { return slices.Contains(want, k) } }
