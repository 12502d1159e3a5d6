package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/e2e/faultproxy"
	"github.com/parleyrun/parley/messages"
)

const (
	clientLimit = 60 * time.Second // after which the npm clients give up a call, by default
	nodeLimit   = 50 * time.Second // for which a call of an unknown client is held
)

// scenario is one story that every kind of client must live through.
type scenario struct {
	name  string
	kinds func(kind) bool          // nil: all
	needs func(kind) time.Duration // of real time; nil: less than ten seconds
	run   func(t *testing.T, k kind)
}

var scenarios = []scenario{
	{name: "answered in time", run: answeredInTime},
	{name: "pending, answered late, collected once", run: answeredLate},
	{name: "no time limit, answered in time", run: neverInTime},
	{name: "no time limit, the call returns all the same", run: neverCapped},
	{name: "cancelled, answered late", run: cancelled},
	{name: "a lost call asked again joins its question", run: askedAgain},
	{name: "eight in parallel, answered in random order", run: eightInParallel},
	{name: "the same question twice at once is two questions", run: sameTwice},
	{name: "response lost after admission", run: lostAfterAdmission},
	{name: "in-time answer lost on its way", run: lostInTime},
	{name: "late answer lost on the way to a repeat", kinds: only(goClient, ts2Auto), run: lostAgain},
	{name: "withdrawn", run: withdrawn},
	{name: "session minted", run: minted},
	{name: "owned child refused", run: ownedChild},
	{name: "legacy", run: legacy},
	{name: "progress", run: progress},
	{name: "lists the tools", run: listsTools},
	{name: "over a pipe", run: overStdio},
	{name: "over a pipe, with a node of its own", run: overStdioAlone},
	{name: "restarted between calls", run: func(t *testing.T, k kind) { restartedBetween(t, k, syscall.SIGTERM) }},
	{name: "killed between calls", run: func(t *testing.T, k kind) { restartedBetween(t, k, syscall.SIGKILL) }},
	{name: "restarted during a call", run: func(t *testing.T, k kind) { restartedDuring(t, k, syscall.SIGTERM, true) }},
	{name: "killed during a call", run: func(t *testing.T, k kind) { restartedDuring(t, k, syscall.SIGKILL, true) }},
	{name: "killed during a call that is waited out", kinds: only(ts1, ts2), needs: takes(clientLimit),
		run: func(t *testing.T, k kind) { restartedDuring(t, k, syscall.SIGKILL, false) }},
	{name: "the client gives up after 60s", needs: takes(clientLimit), run: clientGivesUp},
	{name: "the node gives up after 50s", needs: takes(nodeLimit), run: nodeGivesUp},
	{name: "held by progress beyond 60s", kinds: only(ts1, ts2, ts2Auto), needs: takes(65 * time.Second), run: heldByProgress},
	// The newest revision cannot resume, and its npm client waits for its limit.
	{name: "cut at 1s", needs: func(k kind) time.Duration {
		if k == ts2Auto {
			return clientLimit
		}
		return 0
	}, run: func(t *testing.T, k kind) { streamCut(t, k, time.Second) }},
	{name: "cut at 30s", needs: takes(clientLimit), run: func(t *testing.T, k kind) { streamCut(t, k, 30*time.Second) }},
	{name: "cut at 49s", needs: takes(clientLimit), run: func(t *testing.T, k kind) { streamCut(t, k, 49*time.Second) }},
}

func takes(d time.Duration) func(kind) time.Duration { return func(kind) time.Duration { return d } }

// Every client gets every answer, late or not: from the built binary, with the time limits that the clients come with.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		for _, k := range kinds {
			if s.kinds != nil && !s.kinds(k) {
				continue
			}
			t.Run(s.name+"/"+string(k), func(t *testing.T) {
				if needs := needed(s, k); needs > 0 && !full() {
					t.Skipf("needs %v of real time: make e2e runs it", needs)
				}
				t.Parallel()
				s.run(t, k)
			})
		}
	}
}

func needed(s scenario, k kind) time.Duration {
	if s.needs == nil {
		return 0
	}
	return s.needs(k)
}

func answeredInTime(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	done := c.asking(t.Context(), q, nil)
	c.row(q, "open")
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	c.over()
}

func answeredLate(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	id := isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	c.row(q, "continued")
	c.answer(q, "queued")
	got := c.collectedOne()
	require.Equal(t, id, got.CallID)
	require.Equal(t, "reply", got.Kind)
	require.Equal(t, 1, got.Delivery)
	c.over()
}

func neverInTime(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	done := c.asking(t.Context(), q, map[string]any{"timeout": -1})
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	c.over()
}

// The question waits for ever, the call does not.
func neverCapped(t *testing.T, k kind) {
	c := talking(t, shared(t), k, url.Values{"wait_max": {"1s"}})
	q := newQuestion()
	isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": -1}))
	c.row(q, "continued")
	c.answer(q, "queued")
	c.collectedOne()
	c.over()
}

func cancelled(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := c.asking(ctx, q, nil)
	c.row(q, "open")
	cancel()
	require.Error(t, await(t, done, patience).err)
	c.row(q, "continued") // the request has ended, the question has not
	c.answer(q, "queued")
	c.collectedOne()
	c.over()
}

// A model whose call was lost asks once more, and nobody sees the question twice.
func askedAgain(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := c.asking(ctx, q, nil)
	c.row(q, "open")
	cancel()
	require.Error(t, await(t, done, patience).err)
	c.row(q, "continued")
	done = c.asking(t.Context(), q, nil)
	c.answer(q, "queued")
	isAnswer(t, await(t, done, patience))
	c.overRepeats()
}

func eightInParallel(t *testing.T, k kind) {
	const n = 8
	c := talking(t, shared(t), k, nil)
	var texts []string
	var done []<-chan asked
	for range n {
		texts = append(texts, newQuestion())
		done = append(done, c.asking(t.Context(), texts[len(texts)-1], nil))
	}
	for _, text := range texts {
		c.row(text, "open")
	}
	for _, i := range rand.Perm(n) {
		c.answer(texts[i], "answered")
	}
	for _, d := range done {
		isAnswer(t, await(t, d, patience))
	}
	c.over()
}

// Two requests that live ask two questions, whatever they say: one answer is never given to both.
func sameTwice(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	c.ledger.repeated(q, 2)
	first := c.asking(t.Context(), q, nil)
	row := c.row(q, "open")
	second := c.asking(t.Context(), q, nil)
	var other *messages.QuestionRow
	require.Eventually(t, func() bool {
		list, err := c.person.questions.ListQuestions(t.Context(), connect.NewRequest(&messages.ListQuestionsRequest{Session: c.session}))
		for _, r := range list.Msg.GetQuestions() {
			if r.GetCallId() != row.GetCallId() {
				other = r
			}
		}
		return err == nil && other != nil
	}, patience, 10*time.Millisecond)
	for _, r := range []*messages.QuestionRow{other, row} {
		_, err := c.person.answer(within(t, patience), r)
		require.NoError(t, err)
	}
	isAnswer(t, await(t, first, patience))
	isAnswer(t, await(t, second, patience))
	c.over()
}

// The replies were taken into the history, and the response that said so was lost.
func lostAfterAdmission(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	c.answer(q, "queued")
	c.through(once("collect_replies", faultproxy.Plan{Cut: true}))
	_, err := c.collect(true)
	require.Error(t, err)
	got := c.collectedOne()
	require.True(t, got.Redelivered)
	require.Equal(t, 2, got.Delivery)
	again, err := c.collect(false) // a next call alone acknowledges nothing
	require.NoError(t, err)
	require.Len(t, again.Replies, 1)
	require.Equal(t, got.ID, again.Replies[0].ID)
	require.Equal(t, 3, again.Replies[0].Delivery)
	c.over()
}

// once makes a plan for the first call of a tool, and lets all else pass.
func once(tool string, plan faultproxy.Plan) func(faultproxy.Request) faultproxy.Plan {
	var first sync.Once
	return func(r faultproxy.Request) (p faultproxy.Plan) {
		if r.Method == http.MethodPost && strings.Contains(string(r.Body), `"tools/call"`) && strings.Contains(string(r.Body), tool) {
			first.Do(func() { p = plan })
		}
		return p
	}
}

// The person was told that the answer is the call's result, and the client never saw it. An older client comes back
// for the rest of its stream; for the newest revision collect_replies has it, and nothing else: not a repeat.
func lostInTime(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	c.through(once("ask_user_question", faultproxy.Plan{CutBefore: "answer a-"}))
	q := newQuestion()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := c.asking(ctx, q, nil)
	c.row(q, "open")
	c.answer(q, "answered")
	if k.old() {
		isAnswer(t, await(t, done, patience))
		c.over()
		return
	}
	if k == ts2Auto {
		cancel() // it would wait for its limit
	}
	require.Error(t, await(t, done, patience).err)
	require.True(t, pause(t.Context(), settling))
	for range 2 {
		isUnread(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	}
	require.Equal(t, "result", c.collectedOne().Kind)
	c.anew(q)
}

// A lost call was asked again, and the late answer that the repeat got was lost on its way.
func lostAgain(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := c.asking(ctx, q, nil)
	c.row(q, "open")
	cancel()
	require.Error(t, await(t, done, patience).err)
	c.row(q, "continued")
	c.through(once("ask_user_question", faultproxy.Plan{CutBefore: "answer a-"}))
	again, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	done = c.asking(again, q, nil)
	require.True(t, pause(t.Context(), settling)) // until it waits: it makes no other row
	c.answer(q, "queued")
	require.True(t, pause(t.Context(), settling))
	if k == ts2Auto {
		giveUp() // it would wait for its limit
	}
	require.Error(t, await(t, done, patience).err)
	isUnread(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	got := c.collectedOne()
	require.Equal(t, "reply", got.Kind)
	require.True(t, got.Redelivered)
	c.anew(q)
}

// settling is longer than a node takes to see that a connection is cut.
const settling = 300 * time.Millisecond

// anew asks a question that has been answered, and whose answer was listed: it is another one, and nobody's answer to
// the first is one to it.
func (c *talk) anew(q string) {
	c.t.Helper()
	c.ledger.repeated(q, 2)
	done := c.asking(c.t.Context(), q, nil)
	c.row(q, "open")
	c.answer(q, "answered")
	isAnswer(c.t, await(c.t, done, patience))
	c.over()
}

func withdrawn(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q := newQuestion()
	id := isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	row := c.row(q, "continued")
	r, err := c.agent.call(t.Context(), call{tool: "withdraw_question", args: map[string]any{"call_id": id, "reason": "it is shipped"}})
	require.NoError(t, err)
	require.Equal(t, true, r.structured["withdrawn"], r.text)
	sub, text := c.ledger.submitting(c.session, id, q)
	_, err = c.person.questions.Submit(t.Context(), connect.NewRequest(&messages.SubmitRequest{Session: c.session, CallId: id, SubmissionId: sub,
		Answers: []*messages.Answer{{Id: row.GetQuestions()[0].GetId(), Custom: &text}}}))
	require.ErrorContains(t, err, "SETTLED")
	c.ledger.refused(sub)
	c.over()
}

// An endpoint that names no session mints one, tells it, and takes it as an argument.
func minted(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	c.dialing.url = endpoint(c.node.addr, "", nil)
	c.agent = connected(t, c.dialing)
	q := newQuestion()
	got := c.ask(t.Context(), q, map[string]any{"timeout": 1})
	isPending(t, got)
	c.session, _ = got.meta["parley/session"].(string)
	require.NotEmpty(t, c.session)
	require.Contains(t, got.structured["message"], c.session)
	c.answer(q, "queued")
	for after, want := "", 1; want >= 0; want-- {
		args := map[string]any{"session": c.session}
		if after != "" {
			args["after"] = after
		}
		r, err := c.agent.call(t.Context(), call{tool: "collect_replies", args: args})
		require.NoError(t, err)
		list, err := readCollected(r)
		require.NoError(t, err)
		require.Len(t, list.Replies, want)
		c.ledger.collected(after, list)
		after = list.Token
	}
	c.settle()
}

func ownedChild(t *testing.T, k kind) {
	parent := talking(t, shared(t), k, nil)
	q := newQuestion()
	isPending(t, parent.ask(t.Context(), q, map[string]any{"timeout": 1}))
	child := talking(t, shared(t), k, url.Values{"owner": {parent.session}})
	got := child.ask(t.Context(), newQuestion(), nil)
	require.NoError(t, got.err)
	require.True(t, got.isError)
	require.Contains(t, got.text, "Error: DELEGATED_CALLER")
	require.Nil(t, got.structured, "clients that show the structure alone would hide the text")
	parent.answer(q, "queued")
	parent.collectedOne()
	parent.over()
}

func legacy(t *testing.T, k kind) {
	n := serve(t, "--mode", "legacy")
	c := talking(t, n, k, nil)
	q := newQuestion()
	got := c.ask(t.Context(), q, nil)
	require.NoError(t, got.err)
	require.True(t, got.isError)
	require.Contains(t, got.text, "NO_PROVIDER", "nobody is there who could answer")
	watch, err := c.person.questions.WatchQuestions(within(t, patience), connect.NewRequest(&messages.WatchQuestionsRequest{}))
	require.NoError(t, err)
	defer func() { _ = watch.Close() }()
	live := func() bool { return watch.Msg().GetLive() }
	for watch.Receive() && !live() {
		continue // until the starting list is complete
	}
	require.True(t, live(), watch.Err())
	q = newQuestion()
	done := c.asking(t.Context(), q, nil)
	c.row(q, "open")
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	c.over()
}

// The link at which a person answers is told at once, while the call waits.
func progress(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q, told, done := newQuestion(), make(chan string, 100), make(chan asked, 1)
	go func() {
		done <- c.askWith(t.Context(), q, call{args: question(q, nil), progress: func(m string) { told <- m }})
	}()
	require.Contains(t, await(t, told, patience), "http://"+c.node.addr)
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	c.over()
}

// One schema that a client does not understand can hide all tools from it.
func listsTools(t *testing.T, k kind) {
	for _, query := range []url.Values{nil, {"wait_max": {"never"}}} {
		names, err := talking(t, shared(t), k, query).agent.tools(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"ask_user_question", "collect_replies", "withdraw_question"}, names)
	}
}

func overStdio(t *testing.T, k kind) {
	path, err := binary()
	require.NoError(t, err)
	n := shared(t)
	c := talking(t, n, k, nil)
	c.dialing = dialing{kind: k, command: []string{path, "mcp", "--session", c.session},
		env: []string{"PARLEY_NODE=http://" + n.addr, "HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}}
	c.agent = connected(t, c.dialing)
	q := newQuestion()
	done := c.asking(t.Context(), q, nil)
	c.row(q, "open")
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	q = newQuestion()
	isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	c.agent.close() // the next process of the same session goes on
	c.agent = connected(t, c.dialing)
	c.answer(q, "queued")
	c.collectedOne()

	q = newQuestion()
	done = c.asking(t.Context(), q, nil)
	c.row(q, "open")
	c.agent.close() // in the middle of a call
	if got := await(t, done, patience); got.err == nil {
		isPending(t, got)
	}
	c.row(q, "continued")
	c.agent = connected(t, c.dialing)
	done = c.asking(t.Context(), q, nil)
	c.answer(q, "queued")
	isAnswer(t, await(t, done, patience))
	c.overRepeats()
}

// Where no node is, the pipe is one: people answer at its address, and what it leaves behind is there for the next.
func overStdioAlone(t *testing.T, k kind) {
	path, err := binary()
	require.NoError(t, err)
	dir, l := t.TempDir(), newLedger()
	n := &node{addr: quietPort(t), dir: dir}
	c := &talk{t: t, node: n, session: "alone", person: newPerson(n.addr, l), ledger: l}
	c.dialing = dialing{kind: k, command: []string{path, "mcp", "--embedded", "--session", c.session, "--listen", n.addr,
		"--journal", filepath.Join(dir, "journal.db"), "--claim-grace", "0s"}, env: []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}}
	c.agent = connected(t, c.dialing)
	q := newQuestion()
	done := c.asking(t.Context(), q, nil)
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	q = newQuestion()
	isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	c.agent.close()
	c.agent = connected(t, c.dialing)
	c.answer(q, "queued")
	c.collectedOne()
	c.over()
}

func restartedBetween(t *testing.T, k kind, s syscall.Signal) {
	c := talking(t, serve(t), k, nil)
	q := newQuestion()
	isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	c.node.restart(t, s)
	c.reconnect()
	c.row(q, "continued")
	c.answer(q, "queued")
	c.node.restart(t, s)
	c.reconnect()
	c.collectedOne()
	c.node.restart(t, s)
	c.reconnect()
	c.over()
}

// The call is lost with the node. Asked again, it joins the question that is still there. Older clients do not notice:
// their user gives up (impatient), or they do.
func restartedDuring(t *testing.T, k kind, s syscall.Signal, impatient bool) {
	c := talking(t, serve(t), k, nil)
	q := newQuestion()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := c.asking(ctx, q, nil)
	c.row(q, "open")
	c.node.restart(t, s)
	if impatient && k.old() {
		cancel()
	}
	got := await(t, done, clientLimit+patience)
	if s == syscall.SIGTERM && got.err == nil {
		isPending(t, got) // a node that stops politely may still say so
	}
	c.reconnect()
	done = c.asking(t.Context(), q, map[string]any{"timeout": 20})
	row := c.row(q)
	_, err := c.person.answer(within(t, patience), row)
	require.NoError(t, err)
	require.NoError(t, await(t, done, patience).err)
	c.overRepeats()
}

// The client's own limit comes first: the request is gone, the question is not.
func clientGivesUp(t *testing.T, k kind) {
	c := talking(t, shared(t), k, url.Values{"wait_max": {"never"}})
	q, from := newQuestion(), time.Now()
	with := call{args: question(q, map[string]any{"timeout": 120})}
	if !k.limited() {
		with.timeout = clientLimit
	}
	require.Error(t, c.askWith(t.Context(), q, with).err)
	require.InDelta(t, clientLimit.Seconds(), time.Since(from).Seconds(), 10)
	c.row(q, "continued")
	c.answer(q, "queued")
	c.collectedOne()
	c.over()
}

func nodeGivesUp(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	q, from := newQuestion(), time.Now()
	isPending(t, c.ask(t.Context(), q, nil))
	require.InDelta(t, nodeLimit.Seconds(), time.Since(from).Seconds(), 5)
	c.answer(q, "queued")
	c.collectedOne()
	c.over()
}

// The one client that progress keeps alive is not capped: an answer after 62 s is in time.
func heldByProgress(t *testing.T, k kind) {
	c := talking(t, shared(t), k, nil)
	c.dialing.client = "opencode"
	c.agent = connected(t, c.dialing)
	q, done, told := newQuestion(), make(chan asked, 1), make(chan string, 100)
	go func() {
		done <- c.askWith(t.Context(), q, call{args: question(q, nil), progress: func(m string) { told <- m }})
	}()
	c.row(q, "open")
	for from := time.Now(); time.Since(from) < clientLimit+2*time.Second; {
		await(t, told, 20*time.Second) // every ten seconds
	}
	c.answer(q, "answered")
	isAnswer(t, await(t, done, patience))
	c.over()
}

// The connection is cut while the call waits. An older client comes back for the rest of the stream and gets its
// answer; for the newest revision the call is over, and the question is not.
func streamCut(t *testing.T, k kind, at time.Duration) {
	c := talking(t, shared(t), k, nil)
	resumed := make(chan struct{}, 10)
	cut := once("ask_user_question", faultproxy.Plan{CutIn: at})
	c.through(func(r faultproxy.Request) faultproxy.Plan {
		if r.Header.Get("Last-Event-ID") != "" {
			select {
			case resumed <- struct{}{}:
			default:
			}
		}
		return cut(r)
	})
	q := newQuestion()
	done := c.asking(t.Context(), q, nil)
	if k.old() {
		await(t, resumed, at+patience)
	} else {
		_, err := c.person.find(within(t, at+patience), c.session, q, "continued")
		require.NoError(t, err)
	}
	got, err := c.person.answer(within(t, patience), c.row(q))
	require.NoError(t, err)
	result := await(t, done, clientLimit+patience)
	switch {
	case got.GetOutcome() == "answered":
		isAnswer(t, result)
	case k.old(): // the wait had ended by itself, and that is what the rest of the stream says
		isPending(t, result)
		c.collectedOne()
	default:
		require.Error(t, result.err)
		c.collectedOne()
	}
	if k.old() && at < nodeLimit-5*time.Second {
		require.Equal(t, "answered", got.GetOutcome(), fmt.Sprintf("%s comes back within the time of its call", k))
	}
	c.over()
}
