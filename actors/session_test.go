package actors_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/actors/actorstest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func TestAttach(t *testing.T) {
	t.Run("the first agent creates the session, in one append", func(t *testing.T) {
		r := unattached(t)
		res := r.do(&messages.AttachRequest{Session: "s1", Root: "root", Cwd: "/w", AgentPreset: "p"}).(*messages.AttachResponse)
		require.True(t, res.GetCreated())
		require.False(t, res.GetTookOver())
		require.Equal(t, []string{sessionlog.TypeRoot}, r.types(0))
		require.Equal(t, sessionlog.Header{Version: 3, ID: "s1", CreatedAt: startWall, CWD: "/w", AgentPreset: "p"}, *r.Header)
	})
	t.Run("before that there is no session", func(t *testing.T) {
		r := unattached(t)
		r.refused(messages.NotFound, askReq("c1"))
		require.Equal(t, 1, r.Proofs, "it may be created meanwhile, so the no is proved")
	})
	t.Run("the recorded root again changes nothing, and learns where it stands", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		n := len(r.Log)
		res := r.do(attach("root")).(*messages.AttachResponse)
		require.Equal(t, [2]bool{false, false}, [2]bool{res.GetCreated(), res.GetTookOver()})
		require.Equal(t, [2]int64{1, 1}, [2]int64{res.GetTurn(), res.GetStep()})
		require.True(t, res.GetTurnOpen() && res.GetStepOpen())
		require.Len(t, r.Log, n)
	})
	t.Run("S1 a child does not take a session from its root, nor a root's session back", func(t *testing.T) {
		r := newRig(t)
		child := &messages.AttachRequest{Session: "s1", Root: "root", Owner: "parent"}
		r.refused(messages.DelegatedCaller, child)
		r.ask("c1")
		r = unattached(t)
		r.do(child)
		r.refused(messages.DelegatedCaller, askReq("c1"))
		require.True(t, r.do(attach("root")).(*messages.AttachResponse).GetTookOver(), "its root may")
		r.ask("c1")
	})
	t.Run("E7 an empty root", func(t *testing.T) {
		newRig(t).refused(messages.BadRequest, attach(" "))
	})
	t.Run("Q-043 L-051 another root takes over, in one append with the repair of the open step", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		asker := r.ask("c1")
		r.do(&messages.SteerRequest{Session: "s1", MessageId: "m1", Text: "hi"})
		r.Advance(500)
		n := len(r.Log)
		res := r.do(attach("second")).(*messages.AttachResponse)
		require.True(t, res.GetTookOver())
		require.False(t, res.GetTurnOpen())
		require.EqualValues(t, 1, res.GetQueued())
		require.Equal(t, []string{sessionlog.TypeToolResult, sessionlog.TypeStepEnd, sessionlog.TypeTurnEnd, sessionlog.TypeSettled, sessionlog.TypeRoot}, r.types(n))
		require.Equal(t, messages.CallerNotLive, codeOf(r.last(asker)))
		require.Equal(t, "continued", r.state("c1"))
		require.Equal(t, sessionlog.Row{CallID: "c1", State: sessionlog.RowContinued, Seq: r.Rows["c1"].Seq}, r.Rows["c1"])
		require.Equal(t, 0, r.Parts(actors.WaitPart))
		t.Run("and the old one's repeats are not live", func(t *testing.T) {
			r.refused(messages.CallerNotLive, askReq("c1"))
			r.refused(messages.CallerNotLive, &messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-c1", CallId: "c1", Resume: true})
			r.refused(messages.CallerNotLive, &messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 2})
			r.refused(messages.CallerNotLive, &messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
			r.refused(messages.CallerNotLive, &messages.EndStepRequest{Session: "s1", Root: "root"})
			r.refused(messages.CallerNotLive, &messages.BeginStepRequest{Session: "s1", Root: "root"})
			r.refused(messages.CallerNotLive, &messages.AdmitMessagesRequest{Session: "s1", Root: "root"})
			r.refused(messages.CallerNotLive, &messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: 1})
			r.refused(messages.CallerNotLive, &messages.AwaitInboxRequest{Session: "s1", Root: "root"})
			r.refused(messages.CallerNotLive, &messages.WithdrawQuestionRequest{Session: "s1", Root: "root", CallId: "c1"})
		})
	})
	t.Run("a call whose open turn was lost with its host is repaired by the next root alone", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.ask("c1")
		n := len(r.Log)
		r.Restart()
		require.Len(t, r.Log, n, "activation alone repairs nothing")
		require.Equal(t, "open", r.state("c1"))
		require.False(t, r.do(attach("root")).(*messages.AttachResponse).GetTookOver())
		require.Len(t, r.Log, n)
	})
	t.Run("Q-044 an owned child may work and may not ask; resumed alone it may", func(t *testing.T) {
		r := unattached(t)
		r.do(&messages.AttachRequest{Session: "s1", Root: "root", Owner: "parent"})
		r.turn(1)
		no := r.refused(messages.DelegatedCaller, askReq("c1"))
		require.Contains(t, no.GetText(), "final result", "S1: with advice")
		require.True(t, r.do(attach("root")).(*messages.AttachResponse).GetTookOver())
		r.ask("c1")
	})
	t.Run("a log of an older generation is only read", func(t *testing.T) {
		r := unattached(t)
		r.Create(sessionlog.Header{Version: sessionlog.V0, ID: "s1"})
		r.Delivered = nil
		r.refused(messages.SessionGeneration, attach("root"))
	})
	t.Run("a damaged log is not served", func(t *testing.T) {
		h := sessionlog.Header{Version: sessionlog.V3, ID: "s1"}
		_, err := actors.NewSession(actorstest.DefaultRules(), "s1", &h, []sessionlog.Event{
			sessionlog.Splice{Target: sessionlog.NextStep, Start: 7, RemovedCount: 1}.Event().At(0, 1)})
		require.Equal(t, messages.SessionCorrupt, messages.CodeOf(err))
	})
}

// L-083: what a fork inherited is history: no inbox, no root, no wait of its own.
func TestForkInheritsHistoryOnly(t *testing.T) {
	parent := newRig(t)
	parent.pend("c1")
	parent.queue("c1", "sub")
	parent.turn(2)
	parent.ask("c2")
	parent.do(&messages.SteerRequest{Session: "s1", MessageId: "m1", Text: "hi"})
	log := parent.Log
	n := int64(len(log))
	log = append(log, sessionlog.NewEvent(sessionlog.TypeEndSeed, map[string]bool{"inherited": true}).At(n, 1))
	s, err := actors.NewSession(parent.Rules, "s2", &sessionlog.Header{Version: sessionlog.V3, ID: "s2", IsSeeded: true}, log)
	require.NoError(t, err)
	fx := s.Resume(parent.Now)
	require.True(t, fx.Empty(), "no wait is rebuilt")
	require.Empty(t, s.Rows())
	require.Empty(t, s.Lists().NextStep)
	fx = s.Step(parent.Now, actors.Envelope{From: actors.Addr{Key: "d"}, Msg: submitReq("c1", "sub")})
	require.Equal(t, messages.NotAnswerable, codeOf(fx.Replies[0].Msg), "Q-158: the parent's questions are the parent's")
	fx = s.Step(parent.Now, actors.Envelope{From: actors.Addr{Key: "d"}, Msg: &messages.BeginTurnRequest{Session: "s2", Root: "root"}})
	require.Equal(t, messages.CallerNotLive, codeOf(fx.Replies[0].Msg), "and so is its root")
	fx = s.Step(parent.Now, actors.Envelope{From: actors.Addr{Key: "d"}, Msg: &messages.AttachRequest{Session: "s2", Root: "root"}})
	require.Equal(t, sessionlog.TypeTurnEnd, fx.Append[len(fx.Append)-2].Type, "but the turn it was cut in is closed")
}

func TestTurnsAndSteps(t *testing.T) {
	begin := func(n int64) *messages.BeginTurnRequest {
		return &messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: n}
	}
	beginStep := func(turn, step int64) *messages.BeginStepRequest {
		return &messages.BeginStepRequest{Session: "s1", Root: "root", Turn: turn, Step: step}
	}
	endStep := func(turn, step int64) *messages.EndStepRequest {
		return &messages.EndStepRequest{Session: "s1", Root: "root", Turn: turn, Step: step}
	}
	endTurn := func(turn int64, aborted bool) *messages.EndTurnRequest {
		return &messages.EndTurnRequest{Session: "s1", Root: "root", Turn: turn, Aborted: aborted}
	}
	t.Run("a turn, its steps, and every request twice", func(t *testing.T) {
		r := newRig(t)
		for _, msg := range []messages.Message{begin(1), beginStep(1, 1), endStep(1, 1), beginStep(1, 2), endStep(1, 2), endTurn(1, false)} {
			n := len(r.Log)
			first := r.do(msg)
			require.Len(t, r.Log, n+1, "%T", msg)
			require.Equal(t, first, r.do(msg), "again: the same answer")
			require.Len(t, r.Log, n+1, "and nothing new, %T", msg)
		}
		require.Equal(t, []string{"turn/start", "step/start", "step/end", "step/start", "step/end", "turn/end"}, r.types(1))
	})
	t.Run("0 is the next one, or the open one", func(t *testing.T) {
		r := newRig(t)
		require.EqualValues(t, 1, r.do(begin(0)).(*messages.BeginTurnResponse).GetTurn())
		require.EqualValues(t, 1, r.do(beginStep(0, 0)).(*messages.BeginStepResponse).GetStep())
		require.IsType(t, &messages.EndStepResponse{}, r.do(endStep(0, 0)))
		require.IsType(t, &messages.EndTurnResponse{}, r.do(endTurn(0, false)))
	})
	t.Run("what is out of order is refused", func(t *testing.T) {
		r := newRig(t)
		r.refused(messages.TurnClosed, begin(2))
		r.refused(messages.TurnClosed, beginStep(1, 1))
		r.refused(messages.TurnClosed, endStep(1, 1))
		r.refused(messages.TurnClosed, endTurn(1, false))
		r.do(begin(1))
		r.refused(messages.TurnClosed, begin(2))
		r.refused(messages.StepClosed, endStep(1, 1))
		r.refused(messages.StepClosed, beginStep(1, 2))
		r.do(beginStep(1, 1))
		r.refused(messages.StepClosed, beginStep(1, 2))
		r.refused(messages.StepClosed, endStep(1, 2))
		r.do(endStep(1, 1))
		r.refused(messages.StepClosed, beginStep(1, 1))
		r.do(endTurn(1, false))
		r.refused(messages.TurnClosed, begin(1))
	})
	t.Run("a turn that ends takes its open step along", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.do(endTurn(1, false))
		require.Equal(t, []string{"step/end", "turn/end"}, r.types(3))
	})
	t.Run("a step and a turn do not end while a call waits", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.ask("c1")
		r.refused(messages.CallsOpen, endStep(1, 1))
		r.refused(messages.CallsOpen, endTurn(1, false))
		r.accepted("answered", submitReq("c1", "s"))
		r.do(endStep(1, 1))
	})
	t.Run("Q-065 an aborted turn takes its calls back and keeps the inbox", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.pend("c0")
		r.queue("c0", "s0")
		asker := r.ask("c1")
		req := endTurn(1, true)
		req.Reason = "the user pressed stop"
		r.do(req)
		require.Equal(t, messages.AskAborted, codeOf(r.last(asker)))
		text, name, code := r.resultText()
		require.Equal(t, "UserQuestionError ASK_ABORTED", name+" "+code)
		require.True(t, strings.HasPrefix(text, "Error: "))
		require.Equal(t, "", r.state("c1"), "a cancelled call takes no late answer (Q-146)")
		require.Equal(t, sessionlog.RowReplied, r.Rows["c0"].State, "promise 2")
		require.Equal(t, "aborted", r.data(sessionlog.TypeSettled)["outcome"])
		require.Equal(t, 0, r.Parts(actors.WaitPart)+r.Timers())
		no := r.refused(messages.Settled, submitReq("c1", "s1"))
		require.Equal(t, "aborted", no.GetWinner().GetOutcome())
	})
	t.Run("Q-089 a wait that ends leaves its turn alone", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.pend("c1")
		res := r.do(attach("root")).(*messages.AttachResponse)
		require.True(t, res.GetTurnOpen() && res.GetStepOpen())
		r.ask("c2")
	})
}

func TestSyntheticTurn(t *testing.T) {
	t.Run("an agent without turns of its own gets one, open while any call is in flight", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		require.Equal(t, []string{"turn/start", "step/start", "request/header", "assistant/message", "tool/call", "parley/wait"}, r.types(1), "all in one append")
		r.ask("c2")
		require.Equal(t, []string{"assistant/message", "tool/call", "parley/wait"}, r.types(7))
		n := len(r.Log)
		r.accepted("answered", submitReq("c1", "s1"))
		require.Equal(t, []string{"tool/result", "parley/settled"}, r.types(n))
		n = len(r.Log)
		r.accepted("answered", submitReq("c2", "s2"))
		require.Equal(t, []string{"tool/result", "parley/settled", "step/end", "turn/end"}, r.types(n), "and closed with the last")
		r.ask("c3")
		require.EqualValues(t, 2, r.data("turn/start")["turn"])
	})
	t.Run("it ends with every kind of end", func(t *testing.T) {
		for name, end := range map[string]func(r *rig){
			"deadline": func(r *rig) { r.Advance(120_000) },
			"withdrawn": func(r *rig) {
				r.do(&messages.WithdrawQuestionRequest{Session: "s1", Root: "root", CallId: "c1"})
			},
			"root changed": func(r *rig) { r.do(attach("second")) },
			"turn aborted": func(r *rig) { r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1, Aborted: true}) },
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				r.ask("c1")
				end(r)
				require.Equal(t, 1, r.count("turn/end", `"turn":1`))
				require.Equal(t, 1, r.count("step/end", `"turn":1`))
			})
		}
	})
	t.Run("it belongs to its calls: the agent's own turns wait for it", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.refused(messages.TurnClosed, &messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 1})
		r.refused(messages.TurnClosed, &messages.BeginStepRequest{Session: "s1", Root: "root", Turn: 1, Step: 2})
		r.refused(messages.CallsOpen, &messages.EndStepRequest{Session: "s1", Root: "root", Turn: 1, Step: 1})
		r.refused(messages.TurnClosed, askReq("c2", inStep(1, 1)))
	})
}

func TestPassivation(t *testing.T) {
	idle := func(r *actors.Rules) { r.PassivateAfterMS = 60_000 }
	t.Run("a session that nobody waits for is unloaded", func(t *testing.T) {
		r := newRig(t, idle)
		r.Advance(59_999)
		require.False(t, r.Passivated)
		r.Advance(1)
		require.True(t, r.Passivated)
	})
	t.Run("whoever speaks to it starts the time anew", func(t *testing.T) {
		r := newRig(t, idle)
		r.Advance(40_000)
		r.refused(messages.NotAnswerable, submitReq("c1", "s"))
		r.Advance(59_999)
		require.False(t, r.Passivated)
		r.Advance(1)
		require.True(t, r.Passivated)
	})
	t.Run("an asker keeps it; a queued reply and a due time do not", func(t *testing.T) {
		r := newRig(t, idle)
		asker := r.ask("c1", withTimeout(3600))
		r.Advance(600_000)
		require.False(t, r.Passivated)
		r.Do(asker, &messages.AskDetachRequest{Session: "s1", CallId: "c1"})
		r.Advance(60_000)
		require.True(t, r.Passivated)
		require.EqualValues(t, startWall+3_600_000, r.Rows["c1"].Due, "the due index wakes it")
		r.Restart()
		r.pend("c2")
		r.queue("c2", "s2")
		r.Advance(60_000)
		require.True(t, r.Passivated)
	})
	t.Run("a claim keeps it", func(t *testing.T) {
		r := newRig(t, idle)
		r.Do(r.ask("c1", withTimeout(3600)), &messages.AskDetachRequest{Session: "s1", CallId: "c1"})
		at := r.claim("c1", "claim/n/1")
		r.Advance(600_000)
		require.False(t, r.Passivated)
		r.release("c1", at, false)
		r.Advance(60_000)
		require.True(t, r.Passivated)
	})
	t.Run("an agent that waits for its inbox keeps it, and so does a mark", func(t *testing.T) {
		r := newRig(t, idle)
		at := r.say(&messages.AwaitInboxRequest{Session: "s1", Root: "root"})
		r.Advance(600_000)
		require.False(t, r.Passivated)
		r.Do(at, &messages.AskDetachRequest{Session: "s1"})
		r.Advance(60_000)
		require.True(t, r.Passivated)
	})
	t.Run("a wait whose bid was refused does not keep it", func(t *testing.T) {
		r := newRig(t, idle)
		r.ask("c1", withTimeout(3600))
		asker := r.ask("c2", withTimeout(3600))
		r.send(submitReq("c1", "s1"))
		r.send(submitReq("c2", "s1")) // one id for two calls
		r.run()
		require.Equal(t, "open", r.state("c2"))
		r.Do(asker, &messages.AskDetachRequest{Session: "s1", CallId: "c2"})
		r.Advance(60_000)
		require.True(t, r.Passivated)
	})
	t.Run("0 never unloads", func(t *testing.T) {
		r := newRig(t)
		r.Advance(1 << 40)
		require.False(t, r.Passivated)
	})
}

func TestDeathAndRestart(t *testing.T) {
	t.Run("a wait that dies is rebuilt from the fold, deadline unchanged", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(60))
		before := r.Live(actors.WaitPart)[0]
		r.Advance(10_000)
		r.Kill(actors.WaitPart)
		after := r.Live(actors.WaitPart)[0]
		require.Equal(t, before.Call, after.Call)
		require.Greater(t, after.Incarnation, before.Incarnation)
		t.Run("what its earlier self sends is ignored", func(t *testing.T) {
			n := len(r.Log)
			r.Do(actors.Addr{}, actors.Record{Part: before, Corr: 1, Outcome: actors.Outcome{Kind: actors.OutcomeDeadline}})
			r.Do(actors.Addr{}, actors.Quiet{Part: before, Quiet: true})
			r.Do(actors.Addr{}, actors.PartDied{Part: before})
			require.Len(t, r.Log, n)
			require.Equal(t, []actors.PartID{after}, r.Live(actors.WaitPart))
		})
		r.Do(asker, &messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-c1", CallId: "c1", Resume: true})
		waiting := r.last(asker).(*messages.AskResponse).GetWaiting()
		require.EqualValues(t, startWall+60_000, waiting.GetDeadlineMs())
		require.EqualValues(t, 50_000, waiting.GetRemainingMs())
		r.Advance(50_000)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("D1 after a restart the open waits are there again, and the same attempt attaches", func(t *testing.T) {
		r := newRig(t)
		one, two := r.ask("c1", withTimeout(60)), r.ask("c2", withTimeout(-1))
		r.Restart()
		require.Equal(t, 2, r.Parts(actors.WaitPart))
		r.Do(one, askReq("c1", withTimeout(60)))
		r.Do(two, askReq("c2", withTimeout(-1)))
		r.accepted("answered", submitReq("c2", "s2"))
		require.NotNil(t, r.last(two).(*messages.AskResponse).GetAnswered())
		r.Advance(60_000)
		require.NotNil(t, r.last(one).(*messages.AskResponse).GetPending())
		require.Equal(t, 1, r.count(sessionlog.TypeToolCall, `"c1"`))
	})
	t.Run("Q-008 D3 after a restart a call is open or pending, never neither, and its late answer is queued once", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.Restart()
		require.Equal(t, "continued", r.state("c1"))
		r.queue("c1", "s1")
		r.Restart()
		require.True(t, r.accepted("queued", submitReq("c1", "s1")).GetRepeated())
		require.Len(t, r.Session.Lists().NextStep, 1)
	})
	t.Run("an inbox that dies loses its marks and no message", func(t *testing.T) {
		r := newRig(t)
		r.do(&messages.SteerRequest{Session: "s1", MessageId: "m1", Text: "hi"})
		r.turn(1) // admits it
		r.do(&messages.SteerRequest{Session: "s1", MessageId: "m2", Text: "there"})
		claim := &messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: 1}
		require.Len(t, r.do(claim).(*messages.ClaimMessagesResponse).GetMessages(), 1)
		require.Empty(t, r.do(claim).(*messages.ClaimMessagesResponse).GetMessages(), "it is marked")
		r.Kill(actors.InboxPart)
		require.Equal(t, 0, r.Parts(actors.InboxPart), "one comes when there is something to hold")
		require.Len(t, r.do(claim).(*messages.ClaimMessagesResponse).GetMessages(), 1)
	})
	t.Run("an inbox that holds nothing is not there", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.queue("c1", "s1")
		require.Equal(t, 0, r.Parts(actors.InboxPart))
	})
}
