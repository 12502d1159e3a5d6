package parley_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Fault T1: the dialog is taken away while the person fills it in. The call that
// is held was asked first, and is still open when the one nobody holds is not.
func TestAHeldQuestionOutlivesItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	held := w.asked(agent, "held", time.Second)
	frame, ended, _ := w.claim(c, "s", "held")
	assert.InDelta(t, 1000, frame.GetRemainingMs(), 900)
	free := w.asked(agent, "free", time.Second)

	require.IsType(t, parley.Pending{}, next(t, free).Result)
	assert.Equal(t, "open", w.row("s", "held").GetState())
	assert.Zero(t, w.row("s", "held").GetRemainingMs())
	require.Empty(t, held, "nothing partial may be submitted")

	res, err := c.questions.Submit(t.Context(), say(&messages.SubmitRequest{
		Session: "s", CallId: "held", SubmissionId: "one", Answers: choose("production"), By: "ann"}))
	require.NoError(t, err)
	assert.Equal(t, "answered", res.Msg.GetSettlement().GetOutcome())
	assert.Equal(t, "connect", res.Msg.GetSettlement().GetDoor())
	answered := next(t, held).Result.(parley.Answered)
	assert.Equal(t, []parley.Answer{{ID: "env", Selected: []string{"production"}}}, answered.Answers)
	require.NoError(t, next(t, ended), "a settled claim ends without an error")
}

// A claim that is let go on purpose gives the original deadline back at once;
// one that is lost gives its client the time to come back (faults T9, N5).
func TestTheEndOfAClaimSaysWhetherItWasMeant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	let, lost := w.asked(agent, "let", time.Second), w.asked(agent, "lost", time.Second)
	frame, ended, _ := w.claim(c, "s", "let")
	_, _, breakOff := w.claim(c, "s", "lost")
	mark := w.asked(agent, "mark", time.Second)
	next(t, mark) // both deadlines have passed

	breakOff()
	_, err := c.questions.ReleaseWait(t.Context(), say(&messages.ReleaseWaitRequest{Session: "s", CallId: "let", Claim: frame.GetClaim()}))
	require.NoError(t, err)
	require.NoError(t, next(t, ended))
	require.IsType(t, parley.Pending{}, next(t, let).Result)

	again, _, _ := w.claim(c, "s", "lost")
	assert.Zero(t, again.GetRemainingMs(), "the recorded deadline never changes")
	require.Empty(t, lost)
	_, err = w.Answer(t.Context(), "s", "lost", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	require.IsType(t, parley.Answered{}, next(t, lost).Result)
}

// Fault L1: an answer lands exactly at the deadline. Whoever is told "accepted"
// is delivered, exactly once, and nothing else is.
func TestAnAcknowledgedAnswerAtTheDeadlineIsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			session := fmt.Sprint("s", i)
			agent := w.attach(session)
			deadline, results := make(chan time.Time, 8), make(chan outcome, 1)
			agent.AskAsync(parley.Ask{CallID: "c", Questions: []parley.Question{deploy}, Timeout: time.Second,
				OnWaiting: func(v parley.Waiting) { deadline <- v.Deadline },
			}, func(r parley.Result, err error) { results <- outcome{r, err} })
			<-time.After(time.Until(next(t, deadline)) + time.Duration(i-24)*200*time.Microsecond)
			ack, err := w.Submit(t.Context(), parley.Submission{Session: session, CallID: "c", By: "ann",
				Answers: []parley.Answer{parley.Choose("env", "production")}, RejectLate: i%3 == 0})
			result := next(t, results).Result
			late, lateErr := agent.Collect(t.Context())
			assert.NoError(t, lateErr)
			switch {
			case err != nil:
				assert.IsType(t, parley.Pending{}, result)
				assert.Empty(t, late)
				assert.Equal(t, messages.Settled, messages.CodeOf(err))
			case ack.Outcome == "answered":
				assert.IsType(t, parley.Answered{}, result)
				assert.Empty(t, late)
			default:
				assert.Equal(t, "queued", ack.Outcome)
				assert.IsType(t, parley.Pending{}, result)
				assert.Len(t, late, 1)
			}
		})
	}
	all.Wait()
}

// Faults L3 and C3: after the deadline an answer is delivered or refused, and
// pending is never read as an answer.
func TestAnAnswerAfterTheEndIsDeliveredOrRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.grpc()
	results := w.asked(agent, "c", 0)
	frame, _, _ := w.claim(c, "s", "c")
	exp, err := c.questions.Expire(t.Context(), say(&messages.ExpireRequest{Session: "s", CallId: "c", Claim: frame.GetClaim(), By: "ann"}))
	require.NoError(t, err)
	assert.True(t, exp.Msg.GetSettled())
	pending := next(t, results).Result
	require.IsType(t, parley.Pending{}, pending)
	_, isAnswer := sessionlog.ReadBatch(pending.ToolResult())
	assert.False(t, isAnswer, "pending must not validate as an answer: %s", pending.ToolResult())

	submit := func(id string) (*connect.Response[messages.SubmitResponse], error) {
		return c.questions.Submit(t.Context(), say(&messages.SubmitRequest{
			Session: "s", CallId: "c", SubmissionId: id, Answers: choose("production"), By: id}))
	}
	res, err := submit("first")
	require.NoError(t, err)
	assert.Equal(t, "queued", res.Msg.GetSettlement().GetOutcome())
	res, err = submit("first")
	require.NoError(t, err)
	assert.True(t, res.Msg.GetRepeated())
	_, err = submit("second")
	assert.Equal(t, messages.ReplyQueued, refusal(err).Code)
	_, err = agent.Collect(t.Context())
	require.NoError(t, err)
	_, err = submit("third")
	assert.Equal(t, messages.Settled, refusal(err).Code)
	assert.NotNil(t, refusal(err).Winner)
}

// Fault R1: two decisions at once are both accepted. Here it is 64, through
// both protocols.
func TestSixtyFourAnswersHaveOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	doors := []clients{w.json(), w.grpc(), w.web()}
	resumes := make(chan outcome, 64)
	waiting := make(chan bool, 64)
	agent.AskAsync(parley.Ask{CallID: "c", Questions: []parley.Question{deploy},
		OnWaiting: func(parley.Waiting) { waiting <- true }},
		func(r parley.Result, err error) { resumes <- outcome{r, err} })
	next(t, waiting)

	var all sync.WaitGroup
	errs, won := make([]error, 64), make([]*messages.Settlement, 64)
	for i := range 64 {
		all.Go(func() {
			res, err := doors[i%3].questions.Submit(t.Context(), say(&messages.SubmitRequest{
				Session: "s", CallId: "c", SubmissionId: fmt.Sprint("sub-", i), Answers: choose(fmt.Sprint(i)), By: fmt.Sprint("person-", i)}))
			if errs[i] = err; err == nil {
				won[i] = res.Msg.GetSettlement()
			}
		})
	}
	all.Wait()
	answered := next(t, resumes).Result.(parley.Answered)
	winners := 0
	for i := range 64 {
		if errs[i] == nil {
			winners++
			assert.Equal(t, []string{fmt.Sprint(i)}, answered.Answers[0].Selected)
			assert.Equal(t, fmt.Sprint("person-", i), won[i].GetBy())
		}
	}
	require.Equal(t, 1, winners)
	for i, err := range errs {
		if err != nil {
			r := refusal(err)
			require.Equal(t, messages.Settled, r.Code, "loser %d: %v", i, err)
			assert.Equal(t, "person-"+answered.Answers[0].Selected[0], r.Winner.GetBy(), "the loser learns who won")
		}
	}
	assert.Empty(t, resumes, "one resume")
}

// Fault R11: the loser of a race keeps something alive. After the end no claim
// and no caller is left.
func TestTheEndLeavesNoClaimAndNoCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	results := w.asked(agent, "c", 0)
	one, oneEnd, _ := w.claim(c, "s", "c")
	_, otherEnd, _ := w.claim(c, "s", "c")
	var both sync.WaitGroup
	both.Go(func() {
		_, err := c.questions.Delegate(t.Context(), say(&messages.DelegateRequest{Session: "s", CallId: "c", Claim: one.GetClaim(), By: "ann"}))
		if err != nil {
			assert.Equal(t, messages.Settled, refusal(err).Code)
		}
	})
	both.Go(func() {
		_, err := w.Answer(t.Context(), "s", "c", "bob", parley.Choose("env", "production"))
		assert.NoError(t, err)
	})
	both.Wait()
	require.IsType(t, parley.Answered{}, next(t, results).Result)
	require.NoError(t, next(t, oneEnd))
	require.NoError(t, next(t, otherEnd))
	eventually(t, "a claim or a caller is left", func() bool {
		m := metrics(t, w)
		return m["parley_claims"] == 0 && m["parley_callers"] == 0 && m["parley_claim_streams"] == 0
	})
}

// Fault W1: parallel asks share an id, so answers go to the wrong call.
func TestParallelAsksGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	results := map[string]<-chan outcome{}
	for i := range 8 {
		call := fmt.Sprint("call-", i)
		results[call] = w.asked(agent, call, 0)
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(8) {
		_, err := c.questions.Submit(t.Context(), say(&messages.SubmitRequest{Session: "s", CallId: fmt.Sprint("call-", i),
			SubmissionId: fmt.Sprint("sub-", i), Answers: choose(fmt.Sprint("for-", i))}))
		require.NoError(t, err)
	}
	for call, from := range results {
		answered := next(t, from).Result.(parley.Answered)
		assert.Equal(t, call, answered.CallID)
		assert.Equal(t, "for-"+strings.TrimPrefix(call, "call-"), answered.Answers[0].Selected[0])
	}
}

// Fault C1: typing something else makes the tool report a choice. No person, no
// answer: what a cancelled question returns holds none of its labels.
func TestASupersededQuestionReportsNoChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	turn, err := agent.BeginTurn(t.Context(), 0)
	require.NoError(t, err)
	_, err = agent.BeginStep(t.Context(), turn, 1)
	require.NoError(t, err)
	results := w.asked(agent, "c", 0)
	_, err = w.Steer(t.Context(), parley.Steering{Session: "s", Text: "Forget it, do something else.", By: "ann"})
	require.NoError(t, err)
	require.NoError(t, agent.AbortTurn(t.Context(), turn, "superseded"))
	o := next(t, results)
	assert.Nil(t, o.Result)
	assert.Equal(t, messages.AskAborted, messages.CodeOf(o.err))
	assert.NotContains(t, o.err.Error(), "production")
	row := w.row("s", "c")
	assert.Equal(t, "settled", row.GetState())
	assert.Empty(t, row.GetAnswers())
	left, err := w.Inbox(t.Context(), "s")
	require.NoError(t, err)
	assert.Len(t, left, 1, "the turn's end clears no message")
}

// Fault C3, over the wire: nothing in a pending response can be read as answers.
func TestPendingOverTheWireHasNoAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attach("s")
	var all sync.WaitGroup
	for name, c := range map[string]clients{"json": w.json(), "grpc": w.grpc(), "web": w.web()} {
		all.Go(func() {
			seconds := int64(1)
			res, err := c.questions.Ask(t.Context(), say(&messages.AskRequest{Session: "s", Root: "agent-1", Attempt: name,
				Questions: []*messages.Question{{Id: "env", Question: "Deploy where?"}}, TimeoutSeconds: &seconds}))
			if !assert.NoError(t, err, name) {
				return
			}
			assert.NotNil(t, res.Msg.GetPending(), name)
			assert.Nil(t, res.Msg.GetAnswered())
			_, isAnswer := sessionlog.ReadBatch(res.Msg.GetResult())
			assert.False(t, isAnswer)
			assert.True(t, sessionlog.IsPending(res.Msg.GetResult()))
		})
	}
	all.Wait()
}

// Fault S1: a child asks and waits without end. It is refused, with advice.
func TestAChildIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	child, err := w.Attach(t.Context(), "child", "agent-2", parley.AttachOptions{Owner: "parent"})
	require.NoError(t, err)
	_, err = child.Ask(t.Context(), parley.Ask{Questions: []parley.Question{deploy}, Timeout: parley.Never})
	assert.Equal(t, messages.DelegatedCaller, messages.CodeOf(err))
	assert.Contains(t, err.Error(), "final result")
}

// A legacy question without anybody to answer fails at once; a watch is
// somebody; and when the last one passes, it fails too.
func TestALegacyQuestionNeedsAnAnswerer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	legacy := parley.Ask{CallID: "none", Questions: []parley.Question{deploy}, Mode: parley.Legacy}
	_, err := agent.Ask(t.Context(), legacy)
	require.Equal(t, messages.NoProvider, messages.CodeOf(err))

	rows, _ := w.watch(c, 0)
	next(t, rows) // live: the watch counts from here on
	results := make(chan outcome, 1)
	legacy.CallID = "some"
	agent.AskAsync(legacy, func(r parley.Result, err error) { results <- outcome{r, err} })
	frame := next(t, rows)
	for frame.GetQuestion().GetCallId() != "some" {
		frame = next(t, rows)
	}
	assert.Equal(t, "open", frame.GetQuestion().GetState())
	assert.True(t, frame.GetQuestion().GetUnkeyed())
	claim, err := w.AttachWait(t.Context(), "s", "some")
	require.NoError(t, err)
	settled, err := claim.Delegate(t.Context(), "ann")
	require.NoError(t, err)
	assert.True(t, settled, "its own watch is not another answerer")
	assert.Equal(t, messages.NoProvider, messages.CodeOf(next(t, results).err))
	require.NoError(t, claim.Wait(t.Context()))
}

// Ask over HTTP: a client that goes away only stops listening, and the same
// attempt listens again; hold_ms returns `waiting` instead.
func TestAnAskThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"json", "grpc"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.attach("s")
			c := map[string]func() clients{"json": w.json, "grpc": w.grpc}[door]()
			ask := &messages.AskRequest{Session: "s", Root: "agent-1", Attempt: "one",
				Questions: []*messages.Question{{Id: "env", Question: "Deploy where?"}}, HoldMs: 1}
			res, err := c.questions.Ask(t.Context(), say(ask))
			require.NoError(t, err)
			require.NotNil(t, res.Msg.GetWaiting(), "the hold is over, the question is not")
			assert.Equal(t, "call-one", res.Msg.GetCallId())
			assert.InDelta(t, 120_000, res.Msg.GetWaiting().GetRemainingMs(), 30_000)

			ask.HoldMs = 0
			ctx, hangUp := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() { _, err := c.questions.Ask(ctx, say(ask)); gone <- err }()
			eventually(t, "the ask is not held", func() bool { return metrics(t, w)["parley_held_requests"] == 1 })
			hangUp()
			require.Error(t, next(t, gone))
			eventually(t, "the ask is still held", func() bool { return metrics(t, w)["parley_held_requests"] == 0 })
			assert.Equal(t, "open", w.row("s", "call-one").GetState())

			_, err = w.Answer(t.Context(), "s", "call-one", "ann", parley.Choose("env", "production"))
			require.NoError(t, err)
			res, err = c.questions.Ask(t.Context(), say(ask))
			require.NoError(t, err)
			assert.Equal(t, []string{"production"}, res.Msg.GetAnswered().GetAnswers()[0].GetSelected())
		})
	}
}

// Faults D1 and D7 and promise 7: a new node on the same journal finds the open
// question with its text, the continued one and the queued reply, each once.
func TestARestartFindsEveryQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	open := w.asked(agent, "open", time.Hour)
	for _, call := range []string{"continued", "replied"} {
		results := w.asked(agent, call, 0)
		claim, err := w.AttachWait(t.Context(), "s", call)
		require.NoError(t, err)
		_, err = claim.Expire(t.Context(), "ann")
		require.NoError(t, err)
		next(t, results)
	}
	_, err := w.Answer(t.Context(), "s", "replied", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	before := w.row("s", "open")

	w = w.restart()
	assert.Equal(t, messages.Unavailable, messages.CodeOf(next(t, open).err), "shutdown is not disposal")
	list, err := w.json().questions.ListQuestions(t.Context(), say(&messages.ListQuestionsRequest{}))
	require.NoError(t, err)
	states := map[string]string{}
	for _, row := range list.Msg.GetQuestions() {
		states[row.GetCallId()] = row.GetState()
		assert.Equal(t, "Deploy where?", row.GetQuestions()[0].GetQuestion())
		assert.Equal(t, "production", row.GetQuestions()[0].GetOptions()[1].GetLabel())
	}
	assert.Equal(t, map[string]string{"open": "open", "continued": "continued", "replied": "replied"}, states)
	assert.Equal(t, before.GetDeadlineMs(), w.row("s", "open").GetDeadlineMs(), "the deadline does not move")
	assert.Equal(t, "ann", w.row("s", "replied").GetSettlement().GetBy())

	agent = w.attach("s")
	results := w.asked(agent, "open", time.Hour)
	for _, call := range []string{"open", "continued"} {
		_, err := w.Answer(t.Context(), "s", call, "bob", parley.Choose("env", "staging"))
		require.NoError(t, err, call)
	}
	require.IsType(t, parley.Answered{}, next(t, results).Result)
	late, err := agent.Collect(t.Context())
	require.NoError(t, err)
	require.Len(t, late, 2)
	assert.Equal(t, []string{"replied", "continued"}, []string{late[0].ReplyTo, late[1].ReplyTo})
}

// A withdrawn reply reopens its question, on record, and its author is told.
func TestAWithdrawnReplyReopensItsQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	results := w.asked(agent, "c", 0)
	claim, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	_, err = claim.Expire(t.Context(), "ann")
	require.NoError(t, err)
	next(t, results)
	s := parley.Submission{ID: "sub", Session: "s", CallID: "c", By: "ann", Answers: []parley.Answer{parley.Choose("env", "production")}}
	won, err := w.Submit(t.Context(), s)
	require.NoError(t, err)
	res, err := c.inbox.WithdrawMessage(t.Context(), say(&messages.WithdrawMessageRequest{Session: "s", MessageId: won.MessageID, By: "bob", Reason: "wrong"}))
	require.NoError(t, err)
	assert.Equal(t, "c", res.Msg.GetReopenedCallId())
	assert.Equal(t, "continued", w.row("s", "c").GetState())
	again, err := w.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "bob", again.By)
	_, err = agent.Admit(t.Context(), 0, won.MessageID)
	assert.Equal(t, messages.MessageGone, messages.CodeOf(err))
}

// Unanimous expiry: the first client to count down lets go of its own claim,
// the last one's end gives the original deadline back.
func TestTheLastClientToGoGivesTheDeadlineBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := w.asked(w.attach("s"), "c", time.Second)
	one, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	two, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	settled, err := one.Expire(t.Context(), "ann")
	require.NoError(t, err)
	assert.False(t, settled)
	require.Empty(t, results)
	two.Release()
	require.IsType(t, parley.Pending{}, next(t, results).Result)
}

// With the policy `first` one client's countdown ends the wait for everybody.
func TestTheFirstExpiryMayEndItForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *parley.Config) { c.Expiry = parley.First })
	results := w.asked(w.attach("s"), "c", time.Hour)
	one, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	two, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	settled, err := one.Expire(t.Context(), "ann")
	require.NoError(t, err)
	assert.True(t, settled)
	require.IsType(t, parley.Pending{}, next(t, results).Result)
	assert.Equal(t, messages.Settled, messages.CodeOf(two.Wait(t.Context())))
}

// Promise 5: a deadline that passes while no node runs is served by the next
// one, without anybody asking. With a grace its clients have time to come back.
func TestADeadlineThatPassedMeanwhileIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *parley.Config) { c.ClaimGrace = parley.Never })
	agent, deadline := w.attach("s"), make(chan time.Time, 8)
	agent.AskAsync(parley.Ask{CallID: "c", Questions: []parley.Question{deploy}, Timeout: time.Second,
		OnWaiting: func(v parley.Waiting) { deadline <- v.Deadline }}, func(parley.Result, error) {})
	until := next(t, deadline)
	w.stop()
	<-time.After(time.Until(until) + time.Millisecond)
	w = w.restart()
	for change, err := range w.Watch(t.Context(), parley.WatchOptions{}) {
		require.NoError(t, err)
		if change.Question.GetState() == "continued" {
			break
		}
	}
	r, err := w.attach("s").Ask(t.Context(), parley.Ask{CallID: "c", Attempt: "unknown", Questions: []parley.Question{deploy}, Timeout: time.Second})
	require.NoError(t, err)
	assert.IsType(t, parley.Pending{}, r, "a new attempt asks anew")
}

// Fault C3, for whatever a call may be named: the text of a pending result never
// validates as answers.
func FuzzPendingIsNoAnswer(f *testing.F) {
	f.Add("call-1")
	f.Add(`","answers":[{"id":"q","selected":["yes"]}],"x":"`)
	f.Fuzz(func(t *testing.T, call string) {
		text := sessionlog.PendingText(call)
		if answers, ok := sessionlog.ReadBatch(text); ok {
			t.Fatalf("pending reads as answers: %s", answers)
		}
		if !sessionlog.IsPending(text) {
			t.Fatalf("pending does not read as pending: %s", text)
		}
	})
}

// An answer reaches the question it was given to, or none: a call that was asked
// again under its id takes no answer to what it asked before.
func TestAnAnswerNamesWhatItAnswers(t *testing.T) {
	node, err := parley.Open(parley.Config{Memory: true, Logger: quiet})
	require.NoError(t, err)
	defer func() { _ = node.Close(context.WithoutCancel(t.Context())) }()
	agent, err := node.Attach(t.Context(), "s", "agent", parley.AttachOptions{})
	require.NoError(t, err)
	ask := func(attempt, text string) *parley.Row {
		durable := make(chan struct{}, 1)
		done := make(chan struct{})
		agent.AskAsync(parley.Ask{CallID: "x", Attempt: attempt, Questions: []parley.Question{{ID: "q", Text: text}},
			OnWaiting: func(parley.Waiting) { durable <- struct{}{} }}, func(parley.Result, error) { close(done) })
		<-durable
		claim, err := node.AttachWait(t.Context(), "s", "x")
		require.NoError(t, err)
		_, err = claim.Expire(t.Context(), "test")
		require.NoError(t, err)
		<-done
		row, err := node.Question(t.Context(), "s", "x")
		require.NoError(t, err)
		return row
	}
	first := ask("1", "Restart the staging server?")
	second := ask("2", "Delete production?")
	answer := parley.Submission{Session: "s", CallID: "x", Answers: []parley.Answer{parley.Say("q", "yes")}, CallSeq: first.GetCallSeq()}
	_, err = node.Submit(t.Context(), answer)
	require.Equal(t, messages.NotAnswerable, messages.CodeOf(err))
	answer.CallSeq = second.GetCallSeq()
	took, err := node.Submit(t.Context(), answer)
	require.NoError(t, err)
	require.Equal(t, "queued", took.Outcome)
}
