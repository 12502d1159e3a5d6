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

func root(id string) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.Root = id }
}

func assistant(text string) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.AssistantMessage = text }
}

// toolCalls is an assistant message that made these calls.
func toolCalls(calls ...string) string {
	var blocks []string
	for _, c := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool-call","id":%q,"name":"ask_user_question","arguments":"{}"}`, c))
	}
	return `{"id":"own","role":"assistant","source":{"kind":"model","provider":"p","model":"m"},"content":[` + strings.Join(blocks, ",") + `]}`
}

func TestAskRecords(t *testing.T) {
	t.Run("Q-005 the three shapes of a request", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", legacy)
		require.Equal(t, map[string]any{"callId": "c1", "attempt": "try-c1", "deadlineMs": "never", "synthetic": true, "legacy": true}, r.data(sessionlog.TypeWait))
		r.ask("c2", withTimeout(-1))
		require.Equal(t, map[string]any{"callId": "c2", "attempt": "try-c2", "deadlineMs": "never", "synthetic": true}, r.data(sessionlog.TypeWait))
		r.ask("c3", withTimeout(5))
		require.Equal(t, map[string]any{"callId": "c3", "attempt": "try-c3", "deadlineMs": float64(startWall + 5000), "synthetic": true}, r.data(sessionlog.TypeWait))
	})
	t.Run("Q-020 the configured mode and the one of the request", func(t *testing.T) {
		r := newRig(t, func(rules *actors.Rules) { rules.Mode = messages.Mode_MODE_LEGACY })
		r.ask("c1", func(req *messages.AskRequest) { req.AnswererPresent = true })
		require.Equal(t, true, r.data(sessionlog.TypeWait)["legacy"])
		r.ask("c2", func(req *messages.AskRequest) { req.Mode = messages.Mode_MODE_TIMED })
		require.Nil(t, r.data(sessionlog.TypeWait)["legacy"])
	})
	t.Run("Q-132 Q-135 the header is written once, and again when the mode changes", func(t *testing.T) {
		r := newRig(t)
		headers := func() int { return r.count(sessionlog.TypeRequestHeader, "") }
		r.ask("c1")
		r.ask("c2")
		require.Equal(t, 1, headers())
		require.Equal(t, "initial", r.data(sessionlog.TypeRequestHeader)["reason"])
		r.ask("c3", legacy)
		require.Equal(t, 2, headers())
		require.Equal(t, "change", r.data(sessionlog.TypeRequestHeader)["reason"])
		require.Equal(t, "open", r.state("c1"), "questions already tracked are not touched")
		r.Restart()
		r.ask("c4", legacy)
		require.Equal(t, 2, headers())
		r.ask("c5")
		require.Equal(t, 3, headers())
	})
	t.Run("Q-025 a call whose arguments are bad is logged, opens and is removed by its error", func(t *testing.T) {
		r := newRig(t)
		n := len(r.Log)
		no := r.do(askReq("c1", withTimeout(0)))
		require.Equal(t, messages.BadTimeout, codeOf(no))
		require.Equal(t, []string{"turn/start", "step/start", "request/header", "assistant/message", "tool/call", "parley/wait", "tool/result", "step/end", "turn/end"}, r.types(n))
		require.Equal(t, "", r.state("c1"))
		require.Empty(t, r.Rows)
	})
	t.Run("Q-024 Q-033 the error of bad arguments as the model reads it", func(t *testing.T) {
		r := newRig(t)
		no := r.do(askReq("c1", arguments(`{"questions":[{"id":1}]}`))).(*messages.Refusal)
		require.Equal(t, string(messages.InvalidArgs), no.GetCode())
		text, name, code := r.resultText()
		require.Equal(t, "Error: questions[0].id: must be a string, not the number 1; questions[0].question: is required", text)
		require.Equal(t, "ToolArgsError INVALID_ARGS", name+" "+code)
		require.Equal(t, true, r.data(sessionlog.TypeToolResult)["message"].(map[string]any)["isError"])
	})
	t.Run("Q-026 the timeout comes before the ids; both are plain in the log and coded to callers", func(t *testing.T) {
		twice := arguments(`{"questions":[{"id":"q","question":"?"},{"id":"q","question":"!"}]}`)
		r := newRig(t)
		require.Equal(t, messages.BadTimeout, codeOf(r.do(askReq("c1", twice, withTimeout(0)))))
		text, name, code := r.resultText()
		require.Contains(t, text, "timeout is 0")
		require.Equal(t, "", name+code)
		require.Equal(t, messages.InvalidArgs, codeOf(r.do(askReq("c2", twice))))
		text, name, code = r.resultText()
		require.Contains(t, text, `question id "q"`)
		require.Equal(t, "", name+code)
	})
	t.Run("Q-029 a legacy call may ask twice under one id, and names no timeout", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", legacy, arguments(`{"timeout":"soon","questions":[{"id":"q","question":"?"},{"id":"q","question":"!"},{"id":"p","question":"."}]}`))
		r.refused(messages.BadAnswer, submitReq("c1", "s", &messages.Answer{Id: "q"}, &messages.Answer{Id: "p"}))
		r.refused(messages.BadAnswer, submitReq("c1", "s", &messages.Answer{Id: "q"}, &messages.Answer{Id: "p"}, &messages.Answer{Id: "p"}))
		r.refused(messages.BadAnswer, submitReq("c1", "s", &messages.Answer{Id: "q"}, &messages.Answer{Id: "q"}, &messages.Answer{Id: "q"}))
		r.refused(messages.BadAnswer, submitReq("c1", "s", &messages.Answer{Id: "q"}, &messages.Answer{Id: "q"}, &messages.Answer{Id: "x"}))
		r.accepted("skipped", submitReq("c1", "s", &messages.Answer{Id: "q"}, &messages.Answer{Id: "p"}, &messages.Answer{Id: "q"}))
		require.Len(t, r.last(asker).(*messages.AskResponse).GetAnswered().GetAnswers(), 3)
		require.Empty(t, r.Session.Questions().Settled(), "a legacy call is not tracked (Q-136)")
	})
	t.Run("Q-004 Q-030 detail and intent do not reach the question, so an intent changes nothing", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1", arguments(`{"questions":[{"id":"q","question":"?","detail":"d","intent":{"kind":"plan-review","approve":"none"},"extra":1,"options":[{"label":"yes","extra":2}]}]}`))
		active, _ := r.Session.Questions().Call("c1")
		require.JSONEq(t, `[{"id":"q","question":"?","options":[{"label":"yes"}]}]`, string(active.Questions))
		r.queue("c1", "s1")
	})
	t.Run("Q-031 Q-032 the closed shapes of both results, one text block of compact JSON", func(t *testing.T) {
		r := newRig(t)
		custom := ""
		r.ask("c1")
		r.accepted("answered", submitReq("c1", "s1", &messages.Answer{Id: "q", Custom: &custom}))
		text, _, _ := r.resultText()
		require.Equal(t, `{"answers":[{"id":"q","selected":[],"custom":""}]}`, text)
		r.pend("c2")
		text, _, _ = r.resultText()
		require.Equal(t, sessionlog.PendingText("c2"), text)
		_, batch := sessionlog.ReadBatch(text)
		require.False(t, batch, "C3: pending never validates as an answer")
	})
}

func TestAskInAStep(t *testing.T) {
	t.Run("the agent's own turn, step and message", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		n := len(r.Log)
		r.ask("c1", inStep(1, 1), assistant(toolCalls("c1")))
		require.Equal(t, []string{"request/header", "assistant/message", "tool/call", "parley/wait"}, r.types(n))
		require.Equal(t, "own", r.data(sessionlog.TypeAssistantMessage)["message"].(map[string]any)["id"])
		require.Nil(t, r.data(sessionlog.TypeWait)["synthetic"])
		r.accepted("answered", submitReq("c1", "s1"))
		require.Zero(t, r.count("turn/end", ""), "its turn is its own to end")
	})
	t.Run("Q-034 two calls of one message share it, one asked after the other", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		own := assistant(toolCalls("c1", "c2"))
		r.ask("c1", inStep(1, 1), own)
		r.accepted("answered", submitReq("c1", "s1"))
		n := len(r.Log)
		r.ask("c2", inStep(1, 1), own)
		require.Equal(t, []string{"tool/call", "parley/wait"}, r.types(n))
	})
	t.Run("an assistant message without the call", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.refused(messages.BadRequest, askReq("c1", inStep(1, 1), assistant(toolCalls("c2"))))
		r.refused(messages.BadRequest, askReq("c1", inStep(1, 1), assistant(`{"role":"user"}`)))
		r.refused(messages.BadRequest, askReq("c1", inStep(1, 1), assistant(`no JSON`)))
	})
	t.Run("an ask in a turn or step that is not open", func(t *testing.T) {
		r := newRig(t)
		r.refused(messages.TurnClosed, askReq("c1", inStep(1, 1)))
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 1})
		r.refused(messages.StepClosed, askReq("c1", inStep(1, 1)))
		r.refused(messages.StepClosed, askReq("c1"))
		r.step(1, 1)
		r.refused(messages.StepClosed, askReq("c1", inStep(1, 2)))
		r.refused(messages.TurnClosed, askReq("c1", inStep(2, 1)))
	})
	t.Run("a stray duplicate of a closed step never reopens its call", func(t *testing.T) {
		r := newRig(t, func(rules *actors.Rules) { rules.OpenCallsMax = 4 })
		r.turn(1)
		stray := askReq("c1", inStep(1, 1))
		r.ask("c1", inStep(1, 1))
		r.accepted("answered", submitReq("c1", "s1"))
		r.do(&messages.EndStepRequest{Session: "s1", Root: "root", Turn: 1, Step: 1})
		again := r.do(stray).(*messages.AskResponse)
		require.NotNil(t, again.GetAnswered(), "it gets the result again")
		stray.Attempt = "another"
		r.refused(messages.StepClosed, stray)
	})
}

func TestAskAgain(t *testing.T) {
	t.Run("the same attempt attaches to its open wait, from wherever", func(t *testing.T) {
		r := newRig(t)
		one := r.ask("c1")
		n := len(r.Log)
		two := r.ask("c1")
		r.Do(two, askReq("c1"))
		require.Len(t, r.Log, n)
		r.accepted("answered", submitReq("c1", "s1"))
		require.NotNil(t, r.last(one).(*messages.AskResponse).GetAnswered())
		require.NotNil(t, r.last(two).(*messages.AskResponse).GetAnswered())
		require.Len(t, r.Replies[two], 3, "twice waiting, one result")
	})
	t.Run("that it still waits is proved: where it went on without us, it may have ended", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		proofs := r.Proofs
		r.ask("c1")
		require.Equal(t, proofs+1, r.Proofs)
	})
	t.Run("and to its result, also after a restart", func(t *testing.T) {
		ends := map[string]struct {
			end  func(r *rig)
			want func(t *testing.T, m messages.Message)
		}{
			"answered": {func(r *rig) { r.accepted("answered", submitReq("c1", "s1")) }, func(t *testing.T, m messages.Message) {
				require.Equal(t, "yes", m.(*messages.AskResponse).GetAnswered().GetAnswers()[0].GetSelected()[0])
			}},
			"pending": {func(r *rig) { r.Advance(120_000) }, func(t *testing.T, m messages.Message) {
				require.Equal(t, sessionlog.PendingGuidance, m.(*messages.AskResponse).GetPending().GetMessage())
			}},
			"withdrawn": {func(r *rig) {
				r.do(&messages.WithdrawQuestionRequest{Session: "s1", Root: "root", CallId: "c1"})
			}, func(t *testing.T, m messages.Message) { require.Equal(t, messages.AskAborted, codeOf(m)) }},
		}
		for name, e := range ends {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				first := r.ask("c1")
				e.end(r)
				n := len(r.Log)
				for range 2 {
					again := r.do(askReq("c1"))
					e.want(t, again)
					require.Equal(t, r.last(first), again, "the same as the first was told")
					e.want(t, r.do(&messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-c1", CallId: "c1", Resume: true}))
					require.Len(t, r.Log, n)
					r.Restart()
				}
			})
		}
	})
	t.Run("a call that failed is recorded once, whatever its attempt repeats", func(t *testing.T) {
		for name, bad := range map[string]*messages.AskRequest{
			"Q-024 bad arguments": askReq("c1", arguments(`{}`)),
			"Q-026 plain":         askReq("c1", withTimeout(0)),
			"Q-042 no questions":  askReq("c1", arguments(`{"questions":[]}`)),
			"Q-047 no provider":   askReq("c1", func(r *messages.AskRequest) { r.Mode = messages.Mode_MODE_LEGACY }),
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				first := r.do(bad)
				n := len(r.Log)
				for range 2 {
					require.Equal(t, codeOf(first), codeOf(r.do(bad)))
					require.Len(t, r.Log, n)
					r.Restart()
				}
			})
		}
	})
	t.Run("an ask that resumes what nobody knows is refused", func(t *testing.T) {
		r := newRig(t)
		r.refused(messages.NotAnswerable, &messages.AskRequest{Session: "s1", Root: "root", Attempt: "a", CallId: "c9", Resume: true})
	})
	t.Run("an ask without a call id has one made from its attempt", func(t *testing.T) {
		r := newRig(t)
		req := askReq("", attempt("a1"))
		require.Equal(t, "call-a1", r.do(req).(*messages.AskResponse).GetCallId())
		require.NotNil(t, r.do(req).(*messages.AskResponse).GetWaiting())
		require.Equal(t, 1, r.count(sessionlog.TypeToolCall, ""))
	})
	t.Run("a session keeps so many results at hand", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		for i := range 600 {
			call := fmt.Sprintf("c%d", i)
			r.ask(call)
			r.accepted("answered", submitReq(call, "s"+call))
		}
		require.Less(t, r.Session.Results(), 513)
		require.NotNil(t, r.do(askReq("c599")).(*messages.AskResponse).GetAnswered())
	})
}

func TestAskRefused(t *testing.T) {
	empty := arguments(`{"questions":[]}`)
	for _, tt := range []struct {
		name string
		have func(r *rig)
		req  *messages.AskRequest
		want messages.Code
	}{
		{"Q-063 a second wait for one call", func(r *rig) { r.ask("c1") }, askReq("c1", attempt("other")), messages.DuplicateWait},
		{"Q-060 a bad timeout comes before a dead caller", nil, askReq("c1", withTimeout(0), root("gone")), messages.BadTimeout},
		{"Q-061 and before a registered wait", func(r *rig) { r.ask("c1") }, askReq("c1", withTimeout(0), attempt("other")), messages.BadTimeout},
		{"Q-024 bad arguments come before a dead caller", nil, askReq("c1", arguments(`{}`), root("gone")), messages.InvalidArgs},
		{"Q-062 a dead caller comes before the questions of a timed ask", nil, askReq("c1", empty, root("gone")), messages.CallerNotLive},
		{"a legacy call under the id of a question that can still be answered: the projection keeps that one (Q-132)",
			func(r *rig) { r.ask("c1", withTimeout(1)); r.Advance(1000) }, askReq("c1", legacy, attempt("other")), messages.DuplicateWait},
		{"a legacy call under the id of a withdrawn question: once it is answered that one would be answerable again",
			func(r *rig) {
				r.turn(1)
				r.pend("c1")
				r.do(withdrawReq("c1"))
			}, askReq("c1", legacy, attempt("other")), messages.DuplicateWait},
		{"Q-063 a registered wait comes before the questions of a timed ask", func(r *rig) { r.ask("c1") }, askReq("c1", empty, attempt("other")), messages.DuplicateWait},
		{"Q-042 the questions of a blocking ask come before a dead caller", nil, askReq("c1", empty, withTimeout(-1), root("gone")), messages.EmptyQuestions},
		{"Q-042 and those of a legacy one", nil, askReq("c1", empty, legacy, root("gone")), messages.EmptyQuestions},
		{"Q-043 another instance", nil, askReq("c1", root("gone")), messages.CallerNotLive},
		{"Q-043 nobody named", nil, askReq("c1", root("")), messages.CallerNotLive},
		{"Q-040 a dead caller comes before a missing answerer", nil, askReq("c1", root("gone"), func(r *messages.AskRequest) { r.Mode = messages.Mode_MODE_LEGACY }), messages.CallerNotLive},
		{"E7 a blank attempt", nil, askReq("c1", attempt(" ")), messages.BadRequest},
		{"E7 a call id with NUL", nil, askReq("c\x00"), messages.BadRequest},
		{"E5 an attempt over the limit", nil, askReq("c1", attempt(strings.Repeat("a", 201))), messages.TooLarge},
		{"E5 arguments over the limit", nil, askReq("c1", arguments(strings.Repeat(" ", messages.ArgumentsBytesMax+1))), messages.TooLarge},
		{"E5 a message over the limit", nil, askReq("c1", assistant(strings.Repeat(" ", messages.MessageBytesMax+1))), messages.TooLarge},
		{"W1 REPLY_QUEUED: a new attempt while a reply would settle it", func(r *rig) { r.pend("c1"); r.queue("c1", "s1") }, askReq("c1", attempt("other")), messages.ReplyQueued},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			if tt.have != nil {
				tt.have(r)
			}
			rows := r.Session.Rows()
			r.refused(tt.want, tt.req)
			require.Equal(t, rows, r.Session.Rows())
		})
	}
	t.Run("Q-063 the first wait is not touched", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1")
		proofs := r.Proofs
		r.refused(messages.DuplicateWait, askReq("c1", attempt("other")))
		require.Equal(t, proofs+1, r.Proofs, "it could change, so it is proved")
		r.accepted("answered", submitReq("c1", "s1"))
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetAnswered())
	})
	t.Run("Q-063 Q-139 after it settled the id may be used again", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.ask("c1", attempt("other"), arguments(`{"questions":[{"id":"new","question":"!"}]}`))
		require.Equal(t, "open", r.state("c1"))
		r.refused(messages.BadAnswer, submitReq("c1", "s1"))
		r.accepted("skipped", submitReq("c1", "s1", &messages.Answer{Id: "new"}))
	})
	t.Run("Q-064 Q-071 a refused ask leaves no wait, no timer and no claim", func(t *testing.T) {
		r := newRig(t)
		require.Equal(t, messages.EmptyQuestions, codeOf(r.do(askReq("c1", empty))))
		require.Equal(t, 0, r.Parts(actors.WaitPart)+r.Timers())
		require.Empty(t, r.Rows)
		_, ends := r.frames(r.claim("c1", "claim/n/1"))
		require.Equal(t, []string{"unknown"}, ends)
	})
	t.Run("so many calls at once", func(t *testing.T) {
		r := newRig(t, func(rules *actors.Rules) { rules.OpenCallsMax = 2 })
		r.ask("c1")
		r.ask("c2")
		no := r.refused(messages.TooLarge, askReq("c3"))
		require.Contains(t, no.GetText(), "2 open question calls, the limit is 2")
		r.accepted("answered", submitReq("c1", "s1"))
		r.ask("c3")
	})
	t.Run("Q-047 C5 a legacy call that nobody could answer fails at once", func(t *testing.T) {
		r := newRig(t)
		require.Equal(t, messages.NoProvider, codeOf(r.do(askReq("c1", func(r *messages.AskRequest) { r.Mode = messages.Mode_MODE_LEGACY }))))
		_, name, code := r.resultText()
		require.Equal(t, "UserQuestionError NO_PROVIDER", name+" "+code)
	})
	t.Run("Q-069 a timed one waits", func(t *testing.T) { newRig(t).ask("c1") })
}

func TestDetach(t *testing.T) {
	r := newRig(t)
	one, two := r.ask("c1"), r.ask("c1")
	n := len(r.Log)
	r.Do(one, &messages.AskDetachRequest{Session: "s1", CallId: "c1", Attempt: "try-c1"})
	r.Do(one, &messages.AskDetachRequest{Session: "s1", CallId: "c9"})
	require.Len(t, r.Log, n, "it settles nothing")
	r.accepted("answered", submitReq("c1", "s1"))
	require.Len(t, r.Replies[one], 1)
	require.Len(t, r.Replies[two], 2)
}

// W1: parallel asks, answered in any order: each answer reaches its own call.
func TestParallelAsks(t *testing.T) {
	r := newRig(t)
	askers := map[string]actors.Addr{}
	for i := range 8 {
		call := fmt.Sprintf("c%d", i)
		askers[call] = r.ask(call)
	}
	for _, i := range []int{5, 0, 7, 2, 6, 1, 4, 3} {
		call := fmt.Sprintf("c%d", i)
		r.accepted("answered", submitReq(call, "s"+call, &messages.Answer{Id: "q", Selected: []string{call}}))
	}
	for call, at := range askers {
		require.Equal(t, []string{call}, r.last(at).(*messages.AskResponse).GetAnswered().GetAnswers()[0].GetSelected())
	}
	require.Len(t, r.Session.Questions().Settled(), 8)
}
