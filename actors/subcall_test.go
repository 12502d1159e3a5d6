package actors_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// program makes the call one of code that runs in another call.
func program(parent string) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.ParentCallId = parent }
}

// dispatched is the latest record of a sub-call's result: its text and error.
func (r *rig) dispatched() (text, code string, isError bool) {
	r.t.Helper()
	d := r.data(sessionlog.TypeDispatch)
	if e, ok := d["error"].(map[string]any); ok {
		code, _ = e["code"].(string)
	}
	return d["content"].([]any)[0].(map[string]any)["text"].(string), code, d["isError"].(bool)
}

const sub1, sub2 = "run:ptc:1", "run:ptc:2"

// A sub-call is a question like any other; only its records differ.
func TestSubCalls(t *testing.T) {
	const runCode = `{"id":"own","role":"assistant","content":[{"type":"tool-call","id":"run","name":"run_code","arguments":"{\"code\":\"ask()\"}"}]}`
	t.Run("a sub-call is recorded with the program that makes it, in one append", func(t *testing.T) {
		r := newRig(t)
		n := len(r.Log)
		r.ask(sub1, program("run"), assistant(runCode), withTimeout(5))
		require.Equal(t, []string{"turn/start", "step/start", "assistant/message", "tool/call", "tool/ptc-dispatch-start", "parley/wait"}, r.types(n))
		require.Equal(t, `{"code":"ask()"}`, r.data(sessionlog.TypeToolCall)["arguments"])
		require.Equal(t, map[string]any{"rootCallId": "run", "parentCallId": "run", "subCallId": sub1, "name": "ask_user_question",
			"arguments": map[string]any{"questions": []any{map[string]any{"id": "q", "question": "?"}}, "timeout": 5.0}}, r.data(sessionlog.TypeDispatchStart))
		n = len(r.Log)
		r.ask(sub2, program("run"), assistant(runCode))
		require.Equal(t, []string{"tool/ptc-dispatch-start", "parley/wait"}, r.types(n), "the program is recorded once")
		require.Equal(t, "", r.state(sub1), "the projection takes no note of it yet (Q-149)")
		require.Equal(t, sessionlog.RowOpen, r.Rows[sub1].State)
		require.Equal(t, int64(startWall+5000), r.Rows[sub1].Due)
	})
	t.Run("a program that is known from a message is started by its first sub-call", func(t *testing.T) {
		r := newRig(t)
		both := `{"id":"own","role":"assistant","content":[{"type":"tool-call","id":"c1","name":"ask_user_question","arguments":"{}"},{"type":"tool-call","id":"run","name":"run_code","arguments":"{}"}]}`
		r.ask("c1", assistant(both))
		n := len(r.Log)
		r.ask(sub1, program("run"), assistant(both))
		require.Equal(t, []string{"tool/call", "tool/ptc-dispatch-start", "parley/wait"}, r.types(n))
		r.do(attach("second"))
		require.Equal(t, 0, r.count(sessionlog.TypeToolResult, sessionlog.CodeNotStarted), "what has asked a person was started")
	})
	t.Run("an agent that does not say what its program is asks all the same", func(t *testing.T) {
		r := newRig(t)
		n := len(r.Log)
		asker := r.ask(sub1, program("run"))
		require.Equal(t, []string{"turn/start", "step/start", "tool/ptc-dispatch-start", "parley/wait"}, r.types(n))
		n = len(r.Log)
		r.accepted("answered", submitReq(sub1, "s1"))
		require.Equal(t, []string{"tool/ptc-dispatch", "parley/settled", "step/end", "turn/end"}, r.types(n))
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetAnswered())
		text, code, isError := r.dispatched()
		require.Equal(t, `{"answers":`+yes+`}`, text)
		require.False(t, isError)
		require.Empty(t, code)
		require.Empty(t, r.Rows)
	})
	t.Run("ids that do not fit are refused", func(t *testing.T) {
		r := newRig(t)
		for call, parent := range map[string]string{
			"c1": "run", "run": "run", "run:ptc:0": "run", "run:ptc:01": "run", "run:ptc:x": "run", "run:ptc:-1": "run", "run:ptc:1:ptc:1": "run", "ran:ptc:1": "run",
			"run:code:1": "run", "run:ptc:1 ": "run",
		} {
			r.refused(messages.BadRequest, askReq(call, program(parent)))
		}
		rooted := func(root string) func(*messages.AskRequest) {
			return func(r *messages.AskRequest) { r.RootCallId = root }
		}
		r.refused(messages.BadRequest, askReq(sub1, rooted("run")))
		r.refused(messages.BadRequest, askReq(sub1, program("run"), rooted("other")))
		r.refused(messages.BadRequest, askReq("a:ptc:1:ptc:1", program("a:ptc:1"), rooted("a:ptc:2")))
		r.refused(messages.BadRequest, askReq("", program("run"), attempt("a")))
		r.refused(messages.BadRequest, askReq(sub1, program("run"), assistant(toolCalls("c1"))))
		r.ask("a:ptc:1:ptc:1", program("a:ptc:1"))
		require.Equal(t, "a", r.data(sessionlog.TypeDispatchStart)["rootCallId"])
		r.ask("b:ptc:1:ptc:1", program("b:ptc:1"), rooted("b:ptc:1"))
		require.Equal(t, "b:ptc:1", r.data(sessionlog.TypeDispatchStart)["rootCallId"], "an agent knows its own root")
	})
	t.Run("arguments that cannot be read are the sub-call's own error, and a repeat gets it again", func(t *testing.T) {
		for _, text := range []string{`{"questions":`, ` { "questions" : [ {"id":1} ] } `, `{"questions":[]}`} {
			r := newRig(t)
			ask := askReq(sub1, program("run"), arguments(text))
			no := r.do(ask).(*messages.Refusal)
			_, code, isError := r.dispatched()
			require.True(t, isError)
			require.Equal(t, no.GetCode(), code)
			n := len(r.Log)
			require.Equal(t, no.GetCode(), r.do(ask).(*messages.Refusal).GetCode())
			require.Len(t, r.Log, n)
			require.Empty(t, r.Rows)
			require.Empty(t, progress(r.Log).SubCalls())
		}
	})
	t.Run("a repeat is joined to its wait, and to its result after a restart", func(t *testing.T) {
		r := newRig(t)
		r.ask(sub1, program("run"))
		n := len(r.Log)
		r.ask(sub1, program("run"))
		require.Len(t, r.Log, n)
		r.refused(messages.BadRequest, askReq(sub1, program("run"), arguments(`{"questions":[{"id":"x","question":"?"}]}`)))
		r.refused(messages.DuplicateWait, askReq(sub1, program("run"), attempt("other")))
		r.refused(messages.DuplicateWait, askReq(sub1, attempt("other")))
		r.Restart()
		again := r.ask(sub1, program("run"))
		r.accepted("answered", submitReq(sub1, "s1"))
		require.NotNil(t, r.last(again).(*messages.AskResponse).GetAnswered())
		r.Restart()
		require.NotNil(t, r.do(askReq(sub1, program("run"))).(*messages.AskResponse).GetAnswered())
	})
	t.Run("Q-105 a batch names each question of an open sub-call once", func(t *testing.T) {
		r := newRig(t)
		r.ask(sub1, program("run"))
		r.Restart()
		r.refused(messages.BadAnswer, submitReq(sub1, "s", &messages.Answer{Id: "x"}))
		r.refused(messages.BadAnswer, submitReq(sub1, "s", &messages.Answer{Id: "q"}, &messages.Answer{Id: "q"}))
		r.accepted("skipped", submitReq(sub1, "s", &messages.Answer{Id: "q"}))
	})
	t.Run("Q-149 a sub-call that nobody answers in time is continued, under the place where it began", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		at := int64(len(r.Log))
		r.pend(sub1, program("run"))
		require.Equal(t, "continued", r.state(sub1))
		require.Equal(t, sessionlog.Row{CallID: sub1, State: sessionlog.RowContinued, Seq: at}, r.Rows[sub1])
		r.refused(messages.DuplicateWait, askReq(sub1, program("run"), attempt("other")))
		late := submitReq(sub1, "s1")
		late.CallSeq = at // it was looked at while it was open
		r.accepted("queued", late)
		r.refused(messages.ReplyQueued, askReq(sub1, program("run"), attempt("other")))
		r.step2()
		require.Equal(t, yes, r.settled(sub1))
		require.Empty(t, r.Rows)
	})
	t.Run("a program's end is the end of its requests: they are pending at once", func(t *testing.T) {
		r := newRig(t)
		a, b := r.ask(sub1, program("run")), r.ask(sub2, program("run"), legacy)
		for _, id := range []string{sub1, sub2} {
			r.do(&messages.EndForegroundRequest{Session: "s1", CallId: id, Attempt: "try-" + id})
		}
		require.NotNil(t, r.last(a).(*messages.AskResponse).GetPending())
		require.Equal(t, messages.AskAborted, codeOf(r.last(b)), "a legacy one has no late path")
		require.Equal(t, "continued", r.state(sub1))
		require.Equal(t, "", r.state(sub2))
	})
	t.Run("an aborted turn takes its sub-calls with it", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		asker := r.ask(sub1, program("run"))
		r.refused(messages.CallsOpen, &messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
		r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1, Aborted: true})
		_, code, isError := r.dispatched()
		require.True(t, isError)
		require.Equal(t, string(messages.AskAborted), code)
		require.Equal(t, messages.AskAborted, codeOf(r.last(asker)))
		require.Empty(t, r.Rows)
		require.Equal(t, messages.AskAborted, codeOf(r.do(askReq(sub1, program("run")))), "and so is its repeat told")
	})
	t.Run("a withdrawn sub-call is over, open or continued", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.ask(sub1, program("run"))
		r.do(withdrawReq(sub1))
		require.Equal(t, "", r.state(sub1))
		r.pend(sub2, program("run"))
		r.do(withdrawReq(sub2))
		require.Empty(t, r.Rows)
		r.refused(messages.Settled, submitReq(sub2, "s1"))
		r.refused(messages.DuplicateWait, askReq(sub2, program("run"), attempt("other")))
	})
	t.Run("Q-149 what a root change interrupts is continued, but not a legacy one", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.ask(sub1, program("run"), assistant(runCode))
		r.ask(sub2, program("run"), legacy)
		r.Restart()
		require.Equal(t, 2, r.Parts(actors.WaitPart), "both wait again")
		n := len(r.Log)
		r.do(attach("second"))
		require.Equal(t, []string{"tool/ptc-dispatch", "tool/ptc-dispatch", "tool/result", "step/end", "turn/end", "parley/settled", "parley/settled", "parley/root"}, r.types(n))
		require.Equal(t, 1, r.count(sessionlog.TypeToolResult, sessionlog.CodeOutcomeUnknown))
		require.Equal(t, "continued", r.state(sub1))
		require.Equal(t, "", r.state(sub2))
		require.Len(t, r.Rows, 1)
		r.queue(sub1, "s1")
	})
	t.Run("a sub-call that wants a receipt is listed until it is acknowledged, and its equal joins it", func(t *testing.T) {
		r := newRig(t)
		r.ask(sub1, program("run"), watched)
		joined := r.last(r.say(askReq("run2:ptc:1", program("run2"), watched))).(*messages.AskResponse)
		require.Equal(t, "try-"+sub1, joined.GetJoined())
		r.accepted("answered", submitReq(sub1, "s1"))
		listed := r.do(collectReq("")).(*messages.CollectRepliesResponse).GetReplies()
		require.Len(t, listed, 1)
		require.Contains(t, listed[0].GetText(), `"?"`)
		require.Equal(t, sub1, listed[0].GetCallId())
	})
	t.Run("the id of a sub-call that is over can be a direct call's", func(t *testing.T) {
		r := newRig(t)
		r.pend(sub1, program("run"))
		r.ask(sub1, attempt("direct"))
		require.Equal(t, "open", r.state(sub1), "asked directly it takes the place of the earlier one (Q-139)")
		r.accepted("answered", submitReq(sub1, "s1"))
		require.Equal(t, yes, r.settled(sub1))
		r.ask(sub1, program("run"), attempt("nested"))
		r.accepted("answered", submitReq(sub1, "s2"))
		require.Empty(t, r.Rows)
	})
}

// Records of sub-calls that we did not write change nothing of ours.
func TestForeignSubCalls(t *testing.T) {
	start := func(id, args string) sessionlog.Event {
		return sessionlog.SubCall{RootCallID: "run", ParentCallID: "run", SubCallID: id, Arguments: json.RawMessage(args)}.Start()
	}
	end := func(id, args, text string) sessionlog.Event {
		return sessionlog.SubCall{RootCallID: "run", ParentCallID: "run", SubCallID: id, Arguments: json.RawMessage(args)}.Result(text, false, "", "")
	}
	const pending, other = `{"pending":true}`, `{"questions":[{"id":"o","question":"Other?"}]}`
	add := func(r *rig, events ...sessionlog.Event) {
		for _, ev := range events {
			r.Append(ev.At(r.Session.Next(), 1))
		}
	}
	t.Run("one that was started and not recorded is no question", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		r.turn(1)
		add(r, start("run:ptc:1", oneQuestion))
		require.Empty(t, r.Session.Rows())
	})
	t.Run("one that was recorded with other words is asked by these", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		r.turn(1)
		add(r, start("run:ptc:1", oneQuestion), end("run:ptc:1", other, pending))
		at := r.Session.Next() - 1
		require.Equal(t, []sessionlog.Row{{CallID: "run:ptc:1", State: sessionlog.RowContinued, Seq: at}}, r.Session.Rows())
	})
	t.Run("one that begins under the id of a question takes nothing of it", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		asker := r.ask("c1")
		rows := r.Session.Rows()
		add(r, start("c1", other))
		require.Equal(t, rows, r.Session.Rows())
		add(r, end("c1", other, `{"answers":[]}`))
		require.Equal(t, rows, r.Session.Rows(), "Q-150 it settles nothing")
		r.accepted("answered", submitReq("c1", "s1"))
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetAnswered())
	})
}
