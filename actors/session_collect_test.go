package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// watched is a call whose request may be lost, and which joins one that was.
func watched(r *messages.AskRequest) { r.Receipt, r.Join = true, true }

func waitMax(ms int64) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.WaitMaxMs = ms }
}

func endForeground(call, attempt string) *messages.EndForegroundRequest {
	return &messages.EndForegroundRequest{Session: "s1", CallId: call, Attempt: attempt, Reason: "the client is gone"}
}

func collectReq(after string) *messages.CollectRepliesRequest {
	return &messages.CollectRepliesRequest{Session: "s1", Root: "root", After: after}
}

// collect lists what waits.
func (r *rig) collect(after string) *messages.CollectRepliesResponse {
	r.t.Helper()
	m := r.do(collectReq(after))
	res, ok := m.(*messages.CollectRepliesResponse)
	require.True(r.t, ok, "%v", m)
	return res
}

// listed says of each item which it is, and how often it was listed.
func listed(res *messages.CollectRepliesResponse) string {
	var out []string
	for _, m := range res.GetReplies() {
		again := ""
		if m.GetRedelivered() {
			again = " again"
		}
		out = append(out, fmt.Sprintf("%s %s %d%s", m.GetKind(), m.GetCallId(), m.GetDelivery(), again))
	}
	return strings.Join(out, ", ")
}

func (r *rig) acknowledge(req *messages.AcknowledgeRequest) bool {
	r.t.Helper()
	req.Session = "s1"
	return r.do(req).(*messages.AcknowledgeResponse).GetKnown()
}

// each runs a test with a session that lives on, and with one that is loaded
// from its log between any two steps: the fold of the log is the state (promise 5).
func each(t *testing.T, test func(t *testing.T, r *rig, between func())) {
	t.Helper()
	t.Run("alive", func(t *testing.T) { test(t, newRig(t), func() {}) })
	t.Run("restarted", func(t *testing.T) {
		r := newRig(t)
		test(t, r, r.Restart)
	})
}

// The request is not the question (architecture, "Doors").
func TestEndForeground(t *testing.T) {
	t.Run("the call is pending at once, and the question goes on", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(60))
		res := r.do(endForeground("c1", "try-c1")).(*messages.EndForegroundResponse)
		require.Equal(t, "pending", res.GetSettlement().GetOutcome())
		require.Equal(t, "the client is gone", res.GetSettlement().GetReason())
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending(), "a request that comes back gets the result")
		require.Equal(t, "continued", r.state("c1"))
		require.Zero(t, r.Timers(), "no deadline runs any more")
		r.queue("c1", "sub-1")
	})
	t.Run("Q-028 also of a call without a deadline", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(-1))
		r.do(endForeground("c1", "try-c1"))
		require.Equal(t, "continued", r.state("c1"))
	})
	t.Run("a legacy call has no late path: it is aborted", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", legacy)
		require.Equal(t, "aborted", r.do(endForeground("c1", "try-c1")).(*messages.EndForegroundResponse).GetSettlement().GetOutcome())
		require.Equal(t, messages.AskAborted, codeOf(r.last(asker)))
		r.refused(messages.Settled, submitReq("c1", "sub-1"))
	})
	t.Run("a claim does not hold it: the person still answers, late", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(60))
		at := r.claim("c1", "claim/n/1")
		r.do(endForeground("c1", "try-c1"))
		_, ends := r.frames(at)
		require.Equal(t, []string{"settled"}, ends)
		r.queue("c1", "sub-1")
	})
	t.Run("whoever came first has won, and a repeat hears it", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(60))
		r.accepted("answered", submitReq("c1", "sub-1"))
		for range 2 {
			res := r.do(endForeground("c1", "try-c1")).(*messages.EndForegroundResponse)
			require.Equal(t, "sub-1", res.GetSettlement().GetSubmissionId())
			r.Restart()
		}
	})
	t.Run("another attempt's request ends nothing", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(60))
		r.refused(messages.NotAnswerable, endForeground("c1", "another"))
		r.refused(messages.NotAnswerable, endForeground("c2", "try-c2"))
		require.Equal(t, "open", r.state("c1"))
	})
	t.Run("an answer behind it in the mailbox becomes a late reply", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(60))
		r.send(endForeground("c1", "try-c1"))
		late := r.send(submitReq("c1", "sub-1"))
		r.run()
		require.Equal(t, "queued", r.last(late).(*messages.SubmitResponse).GetSettlement().GetOutcome())
	})
}

// A client's own limit ends the wait: the question waits for ever, the call does not.
func TestWaitMax(t *testing.T) {
	tests := []struct {
		name     string
		timeout  int
		max      int64
		deadline int64 // 0: never
	}{
		{"the earlier of the two: the client's", 120, 50_000, 50_000},
		{"the earlier of the two: the call's", 20, 50_000, 20_000},
		{"Q-028 a call without a deadline gets one", -1, 50_000, 50_000},
		{"no limit", 120, 0, 120_000},
		{"neither", -1, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			from := r.say(askReq("c1", withTimeout(tt.timeout), waitMax(tt.max)))
			want := int64(0)
			if tt.deadline != 0 {
				want = r.Now.Wall + tt.deadline
			}
			require.Equal(t, want, r.last(from).(*messages.AskResponse).GetWaiting().GetDeadlineMs())
		})
	}
	t.Run("the log names it, and who waited", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", watched, waitMax(50_000), func(a *messages.AskRequest) { a.Client, a.Correlation = "claude-code", "toolu_1" })
		require.Subset(t, r.data(sessionlog.TypeWait), map[string]any{
			"receipt": true, "waitMaxMs": 50_000.0, "client": "claude-code", "correlation": "toolu_1"})
	})
	t.Run("Q-069 with a limit a passed call waits on, as a timed one does", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(-1), waitMax(50_000))
		r.claim("c1", "claim/n/1")
		res := r.do(&messages.DelegateRequest{Session: "s1", CallId: "c1", Claim: "claim/n/1"}).(*messages.DelegateResponse)
		require.False(t, res.GetSettled())
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetWaiting())
	})
	t.Run("no number of it harms the session", func(t *testing.T) {
		r := newRig(t)
		for _, ms := range []int64{-1, 2_147_483_001, 1 << 53, 1<<63 - 1} {
			r.refused(messages.BadRequest, askReq("c1", watched, waitMax(ms)))
		}
		r.ask("c1", watched, waitMax(2_147_483_000))
	})
	t.Run("a legacy call is its door's to end", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", legacy, waitMax(50_000))
		require.Zero(t, r.Timers())
	})
}

// A call that repeats a question whose earlier request was lost joins that one.
func TestJoin(t *testing.T) {
	t.Run("one that was continued: its reply is the answer", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			r.do(endForeground("c1", "try-c1"))
			between()
			n := len(r.Log)
			res := r.do(askReq("c2", watched)).(*messages.AskResponse)
			require.NotNil(t, res.GetContinued())
			require.Equal(t, [2]string{"c1", "try-c1"}, [2]string{res.GetCallId(), res.GetJoined()})
			require.Len(t, r.Log, n, "no twin was asked")
			between()
			r.queue("c1", "sub-1")
			require.NotNil(t, r.do(askReq("c3", watched)).(*messages.AskResponse).GetContinued(), "also once a reply waits")
			req := collectReq("")
			req.CallId = "c1"
			got := r.do(req).(*messages.CollectRepliesResponse)
			require.Equal(t, "reply c1 1", listed(got))
			require.Equal(t, "settled", got.GetState())
		})
	})
	t.Run("one that is open, after a proof that it is: where the session went on without us, it may have ended", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", watched)
		proofs := r.Proofs
		res := r.do(askReq("c2", watched)).(*messages.AskResponse)
		require.NotNil(t, res.GetWaiting())
		require.Equal(t, "try-c1", res.GetJoined())
		require.Equal(t, proofs+1, r.Proofs)
	})
	t.Run("one whose reply was the result of a repeat, which was lost too", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			r.do(endForeground("c1", "try-c1"))
			r.queue("c1", "sub-1")
			res := r.do(askReq("c2", watched)).(*messages.AskResponse)
			require.NotNil(t, res.GetContinued())
			require.Equal(t, [2]string{"c1", "try-c1"}, [2]string{res.GetCallId(), res.GetJoined()})
			req := collectReq("")
			req.CallId = "c1"
			require.Equal(t, "reply c1 1", listed(r.do(req).(*messages.CollectRepliesResponse)))
			between()
			r.refused(messages.UnreadAnswer, askReq("c2", watched))
			r.ask("c3", watched, func(a *messages.AskRequest) { a.Live = []string{"try-c1"} }) // its repeat is under way
			require.Equal(t, "reply c1 2 again", listed(r.collect("")))
			between()
			again := r.do(askReq("c4", watched)).(*messages.AskResponse)
			require.Equal(t, "c3", again.GetCallId(), "what was listed is no answer to the next question")
		})
	})
	t.Run("one that ran out, while its result may have been lost", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.pend("c1", watched)
			between()
			require.NotNil(t, r.do(askReq("c2", watched)).(*messages.AskResponse).GetContinued())
			require.True(t, r.acknowledge(&messages.AcknowledgeRequest{CallId: "c1"}))
			between()
			r.ask("c3", watched) // its model has read "pending" and asks anew, on purpose
			require.False(t, r.acknowledge(&messages.AcknowledgeRequest{CallId: "c1"}), "once")
		})
	})
	t.Run("one that is still open, because nobody noticed", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			between()
			from := r.say(askReq("c2", watched))
			res := r.last(from).(*messages.AskResponse)
			require.NotNil(t, res.GetWaiting())
			require.Equal(t, [2]string{"c1", "try-c1"}, [2]string{res.GetCallId(), res.GetJoined()})
			r.accepted("answered", submitReq("c1", "sub-1"))
			require.NotNil(t, r.last(from).(*messages.AskResponse).GetAnswered())
		})
	})
	t.Run("not one that was answered: an answer is no permission for the next time", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			r.accepted("answered", submitReq("c1", "sub-1"))
			between()
			for range 2 {
				no := r.refused(messages.UnreadAnswer, askReq("c2", watched))
				require.Contains(t, no.GetText(), `"c1"`)
				require.Contains(t, no.GetRemedy(), "collect_replies")
			}
			require.Equal(t, "result c1 1 again", listed(r.collect("")))
			between()
			r.ask("c3", watched) // the agent has been listed it, and asks anew
		})
	})
	t.Run("and not one whose answer was acknowledged", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			r.accepted("answered", submitReq("c1", "sub-1"))
			r.acknowledge(&messages.AcknowledgeRequest{CallId: "c1"})
			between()
			r.ask("c2", watched)
		})
	})
	t.Run("P5: a live request's question has equals", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", watched)
		r.ask("c2", watched, func(a *messages.AskRequest) { a.Live = []string{"try-c1"} })
		require.Equal(t, [2]string{"open", "open"}, [2]string{r.state("c1"), r.state("c2")})
	})
	t.Run("P5: also while its pending result is on its way", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.pend("c1", watched)
			between()
			r.ask("c2", watched, func(a *messages.AskRequest) { a.Live = []string{"try-c1"} })
			require.Equal(t, [2]string{"continued", "open"}, [2]string{r.state("c1"), r.state("c2")})
		})
	})
	t.Run("what is not joined", func(t *testing.T) {
		tests := map[string]func(r *rig){
			"a question that nobody watched": func(r *rig) { r.pend("c1") },
			"one that was asked again, by a call of that id that asked something else": func(r *rig) {
				r.pend("c1", watched, arguments(`{"questions":[{"id":"q","question":"??"}]}`))
				r.pend("c1", attempt("again"))
			},
			"one that was taken back": func(r *rig) {
				r.pend("c1", watched)
				r.do(&messages.WithdrawQuestionRequest{Session: "s1", Root: "root", CallId: "c1"})
			},
			"one that was answered and admitted": func(r *rig) {
				r.pend("c1", watched)
				r.queue("c1", "sub-1")
				r.collect("")
			},
			"another question": func(r *rig) { r.pend("c1", watched, arguments(`{"questions":[{"id":"q","question":"??"}]}`)) },
			"a failed call":    func(r *rig) { r.do(askReq("c1", watched, arguments(`{"questions":[]}`))) },
		}
		for name, before := range tests {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				before(r)
				res := r.do(askReq("c2", watched)).(*messages.AskResponse)
				require.Equal(t, "c2", res.GetCallId())
				require.Empty(t, res.GetJoined())
				require.NotNil(t, res.GetWaiting())
			})
		}
	})
	t.Run("Q-043 only its own agent joins", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1", watched)
		req := askReq("c2", watched)
		req.Root = "stranger"
		r.refused(messages.CallerNotLive, req)
	})
}

func TestCollect(t *testing.T) {
	t.Run("admitted and listed in one append, and listed until it is acknowledged", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.pend("c1")
			reply := r.queue("c1", "sub-1")
			r.do(steerReq("m1"))
			between()
			n := len(r.Log)
			first := r.collect("")
			require.Equal(t, "reply c1 1, message  1", listed(first))
			require.Equal(t, []string{sessionlog.TypeTurnStart, sessionlog.TypeInboxSpliced, sessionlog.TypeInboxSpliced, sessionlog.TypeStepStart, sessionlog.TypeUserMessage,
				sessionlog.TypeUserMessage, sessionlog.TypeStepEnd, sessionlog.TypeTurnEnd, sessionlog.TypeDelivered}, r.types(n))
			require.Equal(t, reply, first.GetReplies()[0].GetMessageId())
			require.JSONEq(t, `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"c1",
				"questions":[{"id":"q","question":"?"}],"answers":[{"id":"q","selected":["yes"]}]}`, first.GetReplies()[0].GetText())
			require.Equal(t, r.Now.Wall, first.GetReplies()[0].GetAnsweredMs())
			between()
			again := r.collect("")
			require.Equal(t, "reply c1 2 again, message  2 again", listed(again))
			require.Equal(t, reply, again.GetReplies()[0].GetMessageId(), "under one id")
			require.Equal(t, 1, r.count(sessionlog.TypeUserMessage, reply), "admitted once")
			between()
			n = len(r.Log)
			require.Empty(t, r.collect(again.GetToken()).GetReplies())
			require.Equal(t, []string{sessionlog.TypeDelivered}, r.types(n))
			between()
			for _, token := range []string{"", first.GetToken(), again.GetToken()} {
				require.Empty(t, r.collect(token).GetReplies())
				require.Len(t, r.Log, n+1, "nothing is news any more")
			}
		})
	})
	t.Run("a token acknowledges what its list held, and nothing else", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.do(steerReq("m1"))
			first := r.collect("")
			r.do(steerReq("m2"))
			between()
			second := r.collect(first.GetToken())
			require.Equal(t, "message  1", listed(second))
			require.Equal(t, "m2", second.GetReplies()[0].GetMessageId())
			r.do(steerReq("m3"))
			require.Equal(t, "message  1, message  2 again", listed(r.collect(first.GetToken())), "what waits comes first")
		})
	})
	t.Run("Q-031 an answer given in time is listed while its response may have been lost", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			r.accepted("answered", submitReq("c1", "sub-1"))
			between()
			bell := func() int32 {
				return r.do(&messages.AwaitInboxRequest{Session: "s1", Root: "root", Now: true}).(*messages.AwaitInboxResponse).GetUndelivered()
			}
			require.Zero(t, bell(), "it is on its way")
			r.Advance(5000)
			require.Equal(t, int32(1), bell())
			got := r.collect("")
			require.Equal(t, "result c1 1 again", listed(got), "its request may have got it")
			require.Contains(t, got.GetReplies()[0].GetText(), `"answers":[{"id":"q","selected":["yes"]}]`)
			require.Equal(t, 1, r.count(sessionlog.TypeToolResult, got.GetReplies()[0].GetMessageId()))
			between()
			require.Empty(t, r.collect(got.GetToken()).GetReplies())
		})
	})
	t.Run("and not once it was written", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched)
			r.accepted("answered", submitReq("c1", "sub-1"))
			between()
			require.True(t, r.acknowledge(&messages.AcknowledgeRequest{CallId: "c1"}))
			between()
			require.Empty(t, r.collect("").GetReplies())
		})
	})
	t.Run("the client's own id of a call acknowledges its list, or its result", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", watched, func(a *messages.AskRequest) { a.Correlation = "toolu_1" })
			r.accepted("answered", submitReq("c1", "sub-1"))
			r.do(steerReq("m1"))
			require.True(t, r.acknowledge(&messages.AcknowledgeRequest{Correlation: "toolu_1"}))
			between()
			req := collectReq("")
			req.Correlation = "toolu_2"
			require.Equal(t, "message  1", listed(r.do(req).(*messages.CollectRepliesResponse)))
			between()
			require.False(t, r.acknowledge(&messages.AcknowledgeRequest{Correlation: "toolu_3"}))
			require.True(t, r.acknowledge(&messages.AcknowledgeRequest{Correlation: "toolu_2"}))
			require.Empty(t, r.collect("").GetReplies())
		})
	})
	t.Run("what does not fit waits, and the rest of it is counted", func(t *testing.T) {
		r := newRig(t)
		for i := range 130 {
			r.do(steerReq(fmt.Sprint("m", i)))
		}
		first := r.collect("")
		require.Equal(t, [2]int{100, 30}, [2]int{len(first.GetReplies()), int(first.GetMore())})
		require.Len(t, r.Session.Lists().NextStep, 30, "and is admitted with the list that has it")
		second := r.collect("")
		require.Equal(t, "m100", second.GetReplies()[0].GetMessageId(), "an agent that never acknowledges hears of the new")
		require.Equal(t, [2]int{100, 30}, [2]int{len(second.GetReplies()), int(second.GetMore())})
		third := r.collect(first.GetToken())
		require.Equal(t, [2]int{30, 0}, [2]int{len(third.GetReplies()), int(third.GetMore())})
	})
	t.Run("a result says what was asked, of a legacy call too", func(t *testing.T) {
		each(t, func(t *testing.T, r *rig, between func()) {
			r.ask("c1", legacy, watched)
			between()
			r.accepted("answered", submitReq("c1", "sub-1"))
			between()
			got := r.collect("")
			require.Equal(t, "result c1 1 again", listed(got))
			require.Contains(t, got.GetReplies()[0].GetText(), `"questions":[{"id":`)
		})
	})
	t.Run("while other calls are open it goes into their step", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.queue("c1", "sub-1")
		r.ask("c2", watched)
		require.Equal(t, "reply c1 1", listed(r.collect("")))
		r.accepted("answered", submitReq("c2", "sub-2"))
	})
	t.Run("refusals", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		token := r.collect("").GetToken()
		for _, bad := range []string{"r2" + strings.TrimPrefix(token, "r1"), "r1-other", "r0" + token[2:], "r-1" + token[2:], "1", "r", "nonsense"} {
			require.Contains(t, r.refused(messages.BadRequest, collectReq(bad)).GetText(), "token", bad)
		}
		stranger := collectReq("")
		stranger.Root = "stranger"
		r.refused(messages.CallerNotLive, stranger)
		r.refused(messages.BadRequest, &messages.AcknowledgeRequest{Session: "s1"})
		r.turn(2)
		r.do(&messages.EndStepRequest{Session: "s1", Root: "root", Turn: 2, Step: 1})
		r.do(steerReq("m2"))
		r.refused(messages.StepClosed, collectReq(""))
	})
	t.Run("where a call stands", func(t *testing.T) {
		r := newRig(t)
		state := func(call string) string {
			req := collectReq("")
			req.CallId = call
			return r.do(req).(*messages.CollectRepliesResponse).GetState()
		}
		r.ask("c1")
		require.Equal(t, [2]string{"open", "unknown"}, [2]string{state("c1"), state("c9")})
		r.do(endForeground("c1", "try-c1"))
		require.Equal(t, "continued", state("c1"))
		r.queue("c1", "sub-1")
		require.Equal(t, "settled", state("c1"), "collecting it is admitting it")
		require.Equal(t, "reply c1 2 again", listed(r.collect("")))
	})
}

// Deadlines of joined and capped calls survive a restart like any other.
func TestWaitMaxSurvivesARestart(t *testing.T) {
	r := newRig(t, func(rules *actors.Rules) { rules.ClaimGraceMS = 0 })
	r.ask("c1", withTimeout(-1), waitMax(2000), watched)
	r.Restart()
	r.Advance(2000)
	require.Equal(t, "continued", r.state("c1"))
	require.NotNil(t, r.do(askReq("c2", watched)).(*messages.AskResponse).GetContinued())
}
