package actors_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func steerReq(id string, list ...string) *messages.SteerRequest {
	req := &messages.SteerRequest{Session: "s1", MessageId: id, Text: "text of " + id, By: "ada"}
	if len(list) > 0 {
		req.List = list[0]
	}
	return req
}

func idsOf(list []*messages.InboxMessage) []string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.GetId())
	}
	return ids
}

func TestSteer(t *testing.T) {
	t.Run("L-067 into the nearest step, or a turn of its own", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		r.do(steerReq("m2", "next-turn"))
		r.do(steerReq("m3", "next-step"))
		l := r.Session.Lists()
		require.Equal(t, [2]int{2, 1}, [2]int{len(l.NextStep), len(l.NextTurn)})
		require.Equal(t, "text of m2", l.NextTurn[0].Text())
		r.refused(messages.BadRequest, steerReq("m4", "later"))
		r.refused(messages.BadRequest, steerReq(""))
	})
	t.Run("a repeat is harmless: while it waits, once it was admitted, once it was withdrawn, after a restart", func(t *testing.T) {
		r := newRig(t)
		steps := []func(){
			func() {}, r.Restart,
			func() { r.turn(1) }, r.Restart,
			func() {},
		}
		r.do(steerReq("m1"))
		for _, step := range steps {
			step()
			n := len(r.Log)
			require.Equal(t, "m1", r.do(steerReq("m1")).(*messages.SteerResponse).GetMessageId())
			require.Len(t, r.Log, n)
		}
		require.Equal(t, 1, r.count(sessionlog.TypeUserMessage, `"m1"`))
		r.do(steerReq("m2"))
		r.do(&messages.WithdrawMessageRequest{Session: "s1", MessageId: "m2"})
		r.do(steerReq("m2"))
		require.Empty(t, r.Session.Lists().NextStep)
	})
	t.Run("L-063 an id that another message has", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		id := r.queue("c1", "s1")
		r.refused(messages.MessagePending, steerReq(id))
	})
	t.Run("nobody takes an id that a reply or a result could get", func(t *testing.T) {
		r := newRig(t)
		for _, id := range []string{"reply-1", "tool-result-c1-7", "assistant-c1-3"} {
			require.Contains(t, r.refused(messages.BadRequest, steerReq(id)).GetText(), "choose another")
		}
	})
	t.Run("so many messages at once", func(t *testing.T) {
		r := newRig(t, func(rules *actors.Rules) { rules.QueueMax = 2 })
		r.do(steerReq("m1"))
		r.do(steerReq("m2", "next-turn"))
		proofs := r.Proofs
		require.Contains(t, r.refused(messages.TooLarge, steerReq("m3")).GetText(), "holds 2 messages, the limit is 2")
		require.Equal(t, proofs+1, r.Proofs, "where the session went on without us they may have been taken")
		r.do(steerReq("m1")) // a repeat is not one more
	})
	t.Run("W3 what is typed after an aborted question is no answer to it", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.ask("c1")
		r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1, Aborted: true})
		for i := range 3 {
			r.do(steerReq(fmt.Sprint("m", i)))
		}
		r.turn(2)
		require.Empty(t, r.Session.Questions().Settled())
	})
}

func TestClaimMarks(t *testing.T) {
	claim := func(turn int64, first bool, ids ...string) *messages.ClaimMessagesRequest {
		return &messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: turn, FirstStep: first, MessageIds: ids}
	}
	claimed := func(r *rig, req *messages.ClaimMessagesRequest) []string {
		return idsOf(r.do(req).(*messages.ClaimMessagesResponse).GetMessages())
	}
	begun := func(t *testing.T) *rig {
		r := newRig(t)
		for _, id := range []string{"m1", "m2"} {
			r.do(steerReq(id))
		}
		for _, id := range []string{"t1", "t2"} {
			r.do(steerReq(id, "next-turn"))
		}
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 1})
		return r
	}
	t.Run("L-061 all of next-step, and one of next-turn for the first step", func(t *testing.T) {
		r := begun(t)
		n := len(r.Log)
		require.Equal(t, []string{"m1", "m2"}, claimed(r, claim(1, false)))
		require.Equal(t, []string{"t1"}, claimed(r, claim(1, true)))
		require.Equal(t, []string{"t2"}, claimed(r, claim(1, true)))
		require.Empty(t, claimed(r, claim(1, true)))
		require.Len(t, r.Log, n, "a mark is volatile")
		require.Len(t, r.Session.Lists().NextStep, 2)
	})
	t.Run("who asks again, since its answer was lost, is handed the same", func(t *testing.T) {
		r := begun(t)
		from := r.from()
		for range 2 {
			got := r.Do(from, claim(1, true))
			require.Equal(t, []string{"m1", "m2", "t1"}, idsOf(got[len(got)-1].(*messages.ClaimMessagesResponse).GetMessages()))
		}
		require.Equal(t, []string{"t2"}, claimed(r, claim(1, true)), "another one is not")
	})
	t.Run("by name, as far as they are there", func(t *testing.T) {
		r := begun(t)
		require.Equal(t, []string{"t2", "m1"}, claimed(r, claim(1, false, "t2", "m9", "m1")))
		require.Equal(t, []string{"m2"}, claimed(r, claim(1, false)))
	})
	t.Run("only in the open turn, only by the live agent", func(t *testing.T) {
		r := begun(t)
		r.refused(messages.TurnClosed, claim(2, true))
		r.refused(messages.TurnClosed, claim(0, true))
		r.do(attach("second"))
		r.refused(messages.CallerNotLive, claim(1, true))
	})
	t.Run("Q-111 a turn of ours that is over with its question keeps no mark", func(t *testing.T) {
		r := newRig(t)
		r.ask("deploy")
		r.do(steerReq("m1"))
		require.Equal(t, []string{"m1"}, claimed(r, claim(1, false)))
		r.accepted("answered", submitReq("deploy", "sub-1"))
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 2})
		require.Equal(t, []string{"m1"}, claimed(r, claim(2, true)))
	})
	t.Run("a root change removes every mark", func(t *testing.T) {
		r := begun(t)
		claimed(r, claim(1, true))
		r.do(attach("second"))
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "second", Turn: 2})
		req := claim(2, true)
		req.Root = "second"
		require.Equal(t, []string{"m1", "m2", "t1"}, claimed(r, req))
	})
}

func TestAdmit(t *testing.T) {
	admit := func(turn int64, ids ...string) *messages.AdmitMessagesRequest {
		return &messages.AdmitMessagesRequest{Session: "s1", Root: "root", Turn: turn, MessageIds: ids}
	}
	admitted := func(r *rig, req *messages.AdmitMessagesRequest) []string {
		r.t.Helper()
		m := r.do(req)
		require.IsType(r.t, &messages.AdmitMessagesResponse{}, m)
		return idsOf(m.(*messages.AdmitMessagesResponse).GetMessages())
	}
	t.Run("all or none: one is gone", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.do(steerReq("m1"))
		r.do(steerReq("m2"))
		r.do(&messages.WithdrawMessageRequest{Session: "s1", MessageId: "m2"})
		require.Contains(t, r.refused(messages.MessageGone, admit(1, "m1", "m2")).GetText(), `"m2"`)
		r.refused(messages.MessageGone, admit(1, "m1", "m1"))
		require.Equal(t, []string{"m1"}, admitted(r, admit(1, "m1")))
	})
	t.Run("the order is the caller's", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		for _, id := range []string{"m1", "m2", "m3"} {
			r.do(steerReq(id))
		}
		require.Equal(t, []string{"m3", "m1"}, admitted(r, admit(1, "m3", "m1")))
		require.Equal(t, []string{"m2"}, idsOf(r.step2()))
	})
	t.Run("only in an open step of the open turn", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		r.refused(messages.TurnClosed, admit(1, "m1"))
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 1})
		r.refused(messages.StepClosed, admit(1, "m1"))
		r.refused(messages.BadRequest, admit(1))
	})
	t.Run("a message that is marked for another turn", func(t *testing.T) {
		b := actors.NewInbox(&actors.Rules{}, actors.PartID{Kind: actors.InboxPart})
		step := func(m any) actors.Effects { return b.Step(actors.Now{}, actors.Envelope{Msg: m}) }
		step(actors.ClaimMarks{Turn: 1, NextStep: []string{"m1", "m2"}, IDs: []string{"m1"}})
		check := func(turn int64, ids ...string) *messages.Error {
			return step(actors.AdmitMarks{Req: admit(turn, ids...)}).Up[0].(actors.AdmitChecked).Err
		}
		require.Equal(t, messages.MessageGone, check(2, "m2", "m1").Code)
		require.Nil(t, check(2, "m2"))
		require.Nil(t, check(1, "m1"))
		require.Nil(t, check(0, "m1"))
	})
	t.Run("collect: all that waits, in a turn and step of its own, in one append", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		r.do(steerReq("t1", "next-turn"))
		n := len(r.Log)
		require.Equal(t, []string{"m1", "t1"}, admitted(r, admit(0)))
		require.Equal(t, []string{"turn/start", "agent/inbox/spliced", "agent/inbox/spliced", "step/start", "user/message", "user/message", "step/end", "turn/end"}, r.types(n))
		require.Empty(t, admitted(r, admit(0)), "nothing is left")
		require.Equal(t, []string{"m1", "t1"}, admitted(r, admit(0, "m1", "t1")), "by name a repeat gets them again")
		r.Restart()
		require.Equal(t, []string{"m1", "t1"}, admitted(r, admit(0, "m1", "t1")))
		require.Equal(t, 1, r.count(sessionlog.TypeUserMessage, `"m1"`))
	})
	t.Run("collect while a call is in flight uses the turn that is open", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.do(steerReq("m1"))
		n := len(r.Log)
		require.Equal(t, []string{"m1"}, admitted(r, admit(0)))
		require.Equal(t, []string{"agent/inbox/spliced", "user/message"}, r.types(n))
		r.accepted("answered", submitReq("c1", "s1"))
	})
	t.Run("a step admits all of next-step, and the first one of a turn one of next-turn (L-061)", func(t *testing.T) {
		r := newRig(t)
		for _, id := range []string{"t1", "t2"} {
			r.do(steerReq(id, "next-turn"))
		}
		r.do(steerReq("m1"))
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 1})
		require.Equal(t, []string{"m1", "t1"}, idsOf(r.step(1, 1).GetAdmitted()))
		r.do(steerReq("m2"))
		require.Equal(t, []string{"m2"}, idsOf(r.step2()))
	})
	t.Run("a step that is begun again has what it began with, and nothing that was asked for since (L-061)", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 1})
		r.step(1, 1)
		r.do(steerReq("m2"))
		require.Equal(t, []string{"m2"}, admitted(r, admit(0)))
		require.Equal(t, []string{"m1"}, idsOf(r.step(1, 1).GetAdmitted()))
		r.Restart()
		require.Equal(t, []string{"m1"}, idsOf(r.step(1, 1).GetAdmitted()))
		require.Equal(t, []string{"m2"}, admitted(r, admit(0, "m2")), "asked for again by its name")
	})
	t.Run("L5 an open question outlives the turn", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.pend("c1")
		r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
		r.Restart()
		require.Equal(t, sessionlog.RowContinued, r.Rows["c1"].State)
		r.queue("c1", "s1")
	})
}

// step2 ends the first step and opens the second; it returns what that admitted.
func (r *rig) step2() []*messages.InboxMessage {
	r.t.Helper()
	r.do(&messages.EndStepRequest{Session: "s1", Root: "root"})
	return r.step(0, 0).GetAdmitted()
}

func TestAwaitInbox(t *testing.T) {
	await := &messages.AwaitInboxRequest{Session: "s1", Root: "root"}
	claim := &messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: 1}
	t.Run("it rings at once when something waits", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		require.EqualValues(t, 1, r.do(await).(*messages.AwaitInboxResponse).GetQueued())
	})
	t.Run("or when a message or a reply comes, once", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		at := r.say(await)
		require.Empty(t, r.Replies[at])
		r.queue("c1", "s1")
		require.Len(t, r.Replies[at], 1)
		r.do(steerReq("m1"))
		require.Len(t, r.Replies[at], 1)
		require.Equal(t, 0, r.Parts(actors.InboxPart))
	})
	t.Run("a marked message does not ring, and rings when its turn ends without it", func(t *testing.T) {
		r := newRig(t)
		r.turn(1)
		r.do(steerReq("m1"))
		r.do(claim)
		at := r.say(await)
		require.Empty(t, r.Replies[at])
		r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
		require.Len(t, r.Replies[at], 1, "it is queued again (D1)")
	})
	t.Run("an agent that let go is not rung for", func(t *testing.T) {
		r := newRig(t)
		at := r.say(await)
		r.Do(at, await) // asked again: still one
		r.Do(at, &messages.AskDetachRequest{Session: "s1"})
		r.do(steerReq("m1"))
		require.Empty(t, r.Replies[at])
	})
}
