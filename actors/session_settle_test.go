package actors_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func TestSubmitInTime(t *testing.T) {
	t.Run("Q-066 Q-070 the answer is the tool result, and says by whom and through which door", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1")
		res := r.accepted("answered", submitReq("c1", "s1"))
		require.False(t, res.GetRepeated())
		require.Equal(t, "ada", res.GetSettlement().GetBy())
		require.Equal(t, map[string]any{"callId": "c1", "submissionId": "s1", "by": "ada", "door": "test", "outcome": "answered"}, r.data(sessionlog.TypeSettled))
		require.Equal(t, yes, r.settled("c1"))
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetAnswered())
		require.Empty(t, r.Rows)
	})
	t.Run("Q-008 after an answer the request takes no other", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.accepted("answered", submitReq("c1", "s1"))
		no := r.refused(messages.Settled, submitReq("c1", "s2"))
		require.Equal(t, "s1", no.GetWinner().GetSubmissionId(), "the loser learns the winner")
		require.Contains(t, no.GetText(), "answered by ada")
	})
	t.Run("Q-106 nothing but the ids is checked", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", arguments(`{"questions":[{"id":"q","question":"?","options":[{"label":"a"}]}]}`))
		text := ""
		r.accepted("answered", submitReq("c1", "s1", &messages.Answer{Id: "q", Selected: []string{"b", "b"}, Custom: &text}))
		require.Equal(t, `{"answers":[{"id":"q","selected":["b","b"],"custom":""}]}`, r.last(asker).(*messages.AskResponse).GetResult())
	})
	t.Run("M1 Q-002 labels and text of a multi-select both arrive, and a skip is an answer", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", arguments(`{"questions":[{"id":"q","question":"?","multi_select":true,"options":[{"label":"a"},{"label":"b"}]},{"id":"p","question":"?"}]}`))
		text := "and this"
		r.accepted("answered", submitReq("c1", "s1", &messages.Answer{Id: "p"}, &messages.Answer{Id: "q", Selected: []string{"a", "b"}, Custom: &text}))
		require.Equal(t, `{"answers":[{"id":"p","selected":[]},{"id":"q","selected":["a","b"],"custom":"and this"}]}`, r.last(asker).(*messages.AskResponse).GetResult())
	})
}

func TestSubmissionIDs(t *testing.T) {
	t.Run("a repeat of an accepted id gets the first outcome again, also after a restart", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		first := r.accepted("answered", submitReq("c1", "s1"))
		for range 2 {
			n := len(r.Log)
			again := r.accepted("answered", submitReq("c1", "s1", &messages.Answer{Id: "other"}))
			require.True(t, again.GetRepeated())
			require.Equal(t, first.GetSettlement(), again.GetSettlement())
			require.Len(t, r.Log, n)
			r.Restart()
		}
	})
	t.Run("a repeat of a queued one too, also once it was admitted", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		id := r.queue("c1", "s1")
		r.turn(2)
		require.Equal(t, 1, r.count(sessionlog.TypeUserMessage, id))
		again := r.accepted("queued", submitReq("c1", "s1"))
		require.Equal(t, id, again.GetSettlement().GetMessageId())
		require.True(t, again.GetRepeated())
		no := r.refused(messages.Settled, submitReq("c1", "s2"))
		require.Equal(t, "answered", no.GetWinner().GetOutcome())
	})
	t.Run("a refused one is judged afresh", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.refused(messages.BadAnswer, submitReq("c1", "s1", &messages.Answer{Id: "x"}))
		r.accepted("answered", submitReq("c1", "s1"))
	})
	t.Run("one id for two calls", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.ask("c2")
		r.accepted("answered", submitReq("c1", "s1"))
		no := r.refused(messages.BadRequest, submitReq("c2", "s1"))
		require.Contains(t, no.GetText(), `"c1"`)
		require.Equal(t, "open", r.state("c2"))
	})
	t.Run("one id in flight for two calls: accepted for one, in time and late", func(t *testing.T) {
		for name, late := range map[string]bool{"in time": false, "late": true} {
			t.Run(name, func(t *testing.T) {
				r := quickRig(t)
				for _, call := range []string{"c1", "c2"} {
					if late {
						r.pend(call)
					} else {
						r.ask(call)
					}
				}
				one, two := r.send(submitReq("c1", "s1")), r.send(submitReq("c2", "s1"))
				r.run()
				require.Empty(t, codeOf(r.last(one)))
				require.Equal(t, messages.BadRequest, codeOf(r.last(two)))
				r.audit()
				r.do(submitReq("c2", "s2"))
				require.Equal(t, 1, r.count(sessionlog.TypeSettled, `"s2"`), "the other call is still to be answered")
			})
		}
	})
	t.Run("a late reply is compared with the questions again when it is recorded", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.say(&messages.AwaitInboxRequest{Session: "s1", Root: "root"}) // the inbox stays
		n := len(r.Log)
		r.Do(actors.Addr{}, actors.Record{Part: r.Live(actors.InboxPart)[0],
			Outcome: actors.Outcome{Kind: actors.OutcomeReply, Submit: submitReq("c1", "s1", &messages.Answer{Id: "of another time"})}})
		require.Len(t, r.Log, n)
	})
	t.Run("an answer on its way when its call is asked again is none to the new question (W1), in time and late", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		heard := r.Rows["c1"].Seq
		r.say(&messages.AwaitInboxRequest{Session: "s1", Root: "root"}) // the inbox stays
		asker := r.ask("c1", attempt("other"))
		n := len(r.Log)
		in, late := r.from(), submitReq("c1", "s1")
		r.Do(actors.Addr{}, actors.Reroute{From: in, Req: submitReq("c1", "s2"), Seq: heard})
		require.Equal(t, messages.NotAnswerable, codeOf(r.last(in)))
		r.Do(actors.Addr{}, actors.Record{Part: r.Live(actors.InboxPart)[0], Outcome: actors.Outcome{Kind: actors.OutcomeReply, Submit: late, Seq: heard}})
		require.Len(t, r.Log, n)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetWaiting())
		r.accepted("answered", late) // judged afresh
	})
	t.Run("a message id is no submission id", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.do(&messages.SteerRequest{Session: "s1", MessageId: "m1"})
		r.refused(messages.BadRequest, submitReq("c1", "m1"))
		r.accepted("answered", submitReq("c1", "s1"))
		r.refused(messages.BadRequest, &messages.SteerRequest{Session: "s1", MessageId: "s1"})
	})
	t.Run("the same id twice in flight, in time and late", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		one, two := r.from(), r.from()
		r.Send(one, submitReq("c1", "s1"))
		r.Do(two, submitReq("c1", "s1"))
		require.False(t, r.last(one).(*messages.SubmitResponse).GetRepeated())
		require.True(t, r.last(two).(*messages.SubmitResponse).GetRepeated())
		r.pend("c2")
		one, two = r.from(), r.from()
		r.Send(one, submitReq("c2", "s2"))
		r.Do(two, submitReq("c2", "s2"))
		require.False(t, r.last(one).(*messages.SubmitResponse).GetRepeated())
		require.True(t, r.last(two).(*messages.SubmitResponse).GetRepeated())
		require.Len(t, r.Session.Lists().NextStep, 1)
	})
}

func TestBatchChecks(t *testing.T) {
	two := arguments(`{"questions":[{"id":"a","question":"?"},{"id":"b","question":"?"}]}`)
	a, b := &messages.Answer{Id: "a"}, &messages.Answer{Id: "b"}
	bad := map[string][]*messages.Answer{
		"Q-105 empty": {}, "Q-105 one is missing": {a}, "Q-105 one twice": {a, a}, "Q-105 one too many": {a, b, a}, "Q-105 a stranger": {a, {Id: "c"}},
	}
	for name, answers := range bad {
		t.Run(name+", in time and late", func(t *testing.T) {
			r := newRig(t)
			r.ask("c1", two)
			no := r.refused(messages.BadAnswer, submitReq("c1", "s1", answers...))
			require.Contains(t, no.GetText(), `the call asks ["a","b"], each exactly once`)
			r.pend("c2", two)
			r.refused(messages.BadAnswer, submitReq("c2", "s2", answers...))
		})
	}
	t.Run("Q-105 the order is free, in time and late", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", two)
		r.accepted("skipped", submitReq("c1", "s1", b, a))
		r.pend("c2", two)
		r.accepted("queued", submitReq("c2", "s2", b, a))
	})
	t.Run("Q-105 a call recorded with a repeated id can never be answered", func(t *testing.T) {
		require.NotNil(t, actors.CheckComplete([]string{"a", "a"}, []*messages.Answer{a, a}))
		require.NotNil(t, actors.CheckComplete([]string{"a", "a"}, []*messages.Answer{a}))
	})
	long := strings.Repeat("x", messages.TextBytesMax+1)
	for name, tt := range map[string]struct {
		req  *messages.SubmitRequest
		code messages.Code
		text string
	}{
		"E7 no submission id":       {submitReq("c1", ""), messages.BadRequest, "submission_id is empty"},
		"E7 a blank call id":        {submitReq(" ", "s"), messages.BadRequest, "call_id is empty"},
		"E5 a custom text too long": {submitReq("c1", "s", &messages.Answer{Id: "q", Custom: &long}), messages.TooLarge, "answers[0].custom has 65537 bytes, the limit is 65536"},
		"E5 a label too long":       {submitReq("c1", "s", &messages.Answer{Id: "q", Selected: []string{long}}), messages.TooLarge, "answers[0].selected has 65537 bytes, the limit is 65536"},
		"E5 too many labels":        {submitReq("c1", "s", &messages.Answer{Id: "q", Selected: make([]string, 257)}), messages.TooLarge, "answers[0].selected has 257 labels, the limit is 256"},
		"E5 too many items":         {submitReq("c1", "s", make([]*messages.Answer, 257)...), messages.TooLarge, "answers has 257 items, the limit is 256"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.ask("c1")
			require.Contains(t, r.refused(tt.code, tt.req).GetText(), tt.text)
		})
	}
}

func TestLateAnswers(t *testing.T) {
	t.Run("Q-104 Q-006 the reply is one message of fixed form, steered to the nearest step", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1", arguments(`{"questions":[{"id":"q","question":"Which?","multi_select":true}]}`))
		n := len(r.Log)
		text := "as <given>"
		id := r.accepted("queued", submitReq("c1", "s1", &messages.Answer{Id: "q", Selected: []string{"b", "b"}, Custom: &text})).GetSettlement().GetMessageId()
		require.Equal(t, []string{sessionlog.TypeInboxSpliced, sessionlog.TypeSettled}, r.types(n), "in one append")
		list := r.Session.Lists().NextStep
		require.Len(t, list, 1)
		require.Equal(t, id, list[0].ID)
		var msg struct {
			ID, Role string
			Source   map[string]string
			Content  []struct{ Type, Text string }
		}
		require.NoError(t, json.Unmarshal(list[0].Raw, &msg))
		require.Equal(t, "user", msg.Role)
		require.Equal(t, map[string]string{"kind": "user-question-reply", "callId": "c1", "outcome": "answered"}, msg.Source)
		require.Equal(t, `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"c1",`+
			`"questions":[{"id":"q","question":"Which?","multiSelect":true}],"answers":[{"id":"q","selected":["b","b"],"custom":"as <given>"}]}`, msg.Content[0].Text)
		require.Equal(t, "continued", r.state("c1"), "Q-156: queueing settles nothing")
		require.Equal(t, sessionlog.RowReplied, r.Rows["c1"].State)
	})
	t.Run("Q-101 what is not continued is not answerable, and nothing is written", func(t *testing.T) {
		r := newRig(t)
		r.refused(messages.NotAnswerable, submitReq("c9", "s"))
		r.do(askReq("c1", withTimeout(0)))
		r.refused(messages.NotAnswerable, submitReq("c1", "s"))
	})
	t.Run("Q-102 a queued reply refuses another", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.queue("c1", "s1")
		proofs := r.Proofs
		r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
		require.Equal(t, proofs+1, r.Proofs, "a no that can change is proved")
		t.Run("Q-112 also after a restart", func(t *testing.T) {
			r.Restart()
			r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
		})
	})
	t.Run("Q-102 Q-113 a reply of another door in either list counts", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		r.pend("c1")
		splice, err := r.Session.Lists().Append(sessionlog.NextTurn, sessionlog.ReplyMessage("m1", "c1", json.RawMessage(`[]`), json.RawMessage(`[]`)))
		require.NoError(t, err)
		r.Append(splice.Event().At(r.Session.Next(), 1))
		r.refused(messages.ReplyQueued, submitReq("c1", "s1"))
	})
	t.Run("Q-103 settled before queued before a bad batch", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.queue("c1", "s1")
		r.refused(messages.ReplyQueued, submitReq("c1", "s2", &messages.Answer{Id: "x"}))
		r.turn(2)
		r.refused(messages.Settled, submitReq("c1", "s2", &messages.Answer{Id: "x"}))
	})
	t.Run("Q-107 a reply that could not be recorded reserves nothing", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.RefuseRecord = func(actors.Record) *messages.Error { return messages.Refuse(messages.Unavailable, "no") }
		r.refused(messages.Unavailable, submitReq("c1", "s1"))
		r.RefuseRecord = nil
		r.queue("c1", "s1")
	})
	t.Run("a full inbox refuses messages, never a person's answer", func(t *testing.T) {
		r := newRig(t, func(rules *actors.Rules) { rules.QueueMax = 1 })
		r.pend("c1")
		r.do(&messages.SteerRequest{Session: "s1", MessageId: "m1"})
		require.Contains(t, r.refused(messages.TooLarge, &messages.SteerRequest{Session: "s1", MessageId: "m2"}).GetText(), "holds 1 messages, the limit is 1")
		r.queue("c1", "s1")
	})
	t.Run("Q-139 an answer to what was asked before the call was asked again is refused", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		old := r.Rows["c1"].Seq
		r.pend("c1", func(a *messages.AskRequest) { a.Attempt, a.Arguments = "another", otherQuestion })
		require.NotEqual(t, old, r.Rows["c1"].Seq)
		late := submitReq("c1", "s1")
		late.CallSeq = old
		r.refused(messages.NotAnswerable, late)
		late.CallSeq = r.Rows["c1"].Seq
		r.accepted("queued", late)
	})
	t.Run("Q-113 replies are per call, and per session", func(t *testing.T) {
		r, other := newRig(t), newRig(t)
		r.pend("c1")
		r.pend("c2")
		other.pend("c1")
		r.queue("c1", "s1")
		r.queue("c2", "s2")
		other.queue("c1", "s1")
		r.refused(messages.ReplyQueued, submitReq("c1", "s3"))
	})
	t.Run("Q-100 an answer names its session, which is loaded for it, and needs no live agent to be queued", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.Restart()
		r.queue("c1", "s1")
		r.do(attach("second"))
		require.Len(t, r.Session.Lists().NextStep, 1, "it waits for whichever agent comes")
	})
	t.Run("Q-143 what a root change left behind is answered late", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.do(attach("second"))
		r.queue("c1", "s1")
	})
	t.Run("Q-149 a nested question too", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		r.turn(1)
		r.Append(sessionlog.NewEvent(sessionlog.TypeDispatch, json.RawMessage(fmt.Sprintf(
			`{"rootCallId":"p","parentCallId":"p","subCallId":"p:1","name":"ask_user_question","arguments":%s,"isError":false,"content":[{"type":"text","text":"{\"pending\":true}"}]}`,
			oneQuestion))).At(r.Session.Next(), 1))
		require.Equal(t, sessionlog.RowContinued, r.Session.Rows()[0].State)
		r.queue("p:1", "s1")
		require.Len(t, r.step2(), 1)
		require.Equal(t, yes, r.settled("p:1"))
	})
}

// The way of a reply, end to end: only admission closes the question.
func TestReplyLifecycle(t *testing.T) {
	claim := func(turn int64, ids ...string) *messages.ClaimMessagesRequest {
		return &messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: turn, MessageIds: ids, FirstStep: true}
	}
	admit := func(turn int64, ids ...string) *messages.AdmitMessagesRequest {
		return &messages.AdmitMessagesRequest{Session: "s1", Root: "root", Turn: turn, MessageIds: ids}
	}
	start := func(t *testing.T) (*rig, string) {
		r := newRig(t)
		r.turn(1)
		r.pend("c1")
		return r, r.queue("c1", "s1")
	}
	t.Run("Q-114 Q-110 queued, claimed, admitted: settled, and gone from the list in one append", func(t *testing.T) {
		r, id := start(t)
		require.Equal(t, id, r.do(claim(1)).(*messages.ClaimMessagesResponse).GetMessages()[0].GetId())
		require.Len(t, r.Session.Lists().NextStep, 1, "promise 4: a claimed message stays in its list")
		n := len(r.Log)
		msgs := r.do(admit(1, id)).(*messages.AdmitMessagesResponse).GetMessages()
		require.Equal(t, []string{sessionlog.TypeInboxSpliced, sessionlog.TypeUserMessage}, r.types(n))
		require.Equal(t, "c1", msgs[0].GetReplyTo())
		require.Empty(t, r.state("c1"))
		require.Equal(t, yes, r.settled("c1"))
		require.Empty(t, r.Rows)
		require.Zero(t, r.Parts(actors.InboxPart), "its mark is gone with it")
		r.refused(messages.Settled, submitReq("c1", "s2"))
		t.Run("and a repeat within the turn gets it again", func(t *testing.T) {
			n := len(r.Log)
			require.Equal(t, msgs, r.do(admit(1, id)).(*messages.AdmitMessagesResponse).GetMessages())
			r.Restart()
			require.Equal(t, msgs, r.do(admit(1, id)).(*messages.AdmitMessagesResponse).GetMessages())
			require.Len(t, r.Log, n)
			r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
			r.turn(2)
			r.refused(messages.MessageGone, admit(2, id))
		})
	})
	t.Run("Q-108 a claim marks the reply with its turn: nobody else is handed it", func(t *testing.T) {
		r, id := start(t)
		r.do(claim(1))
		require.Empty(t, r.do(claim(1)).(*messages.ClaimMessagesResponse).GetMessages())
		require.Len(t, r.do(claim(1, id)).(*messages.ClaimMessagesResponse).GetMessages(), 1, "named, it is handed out again")
		r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
	})
	t.Run("Q-111 Q-115 the turn ends without it, or its step was rejected: it is queued again and still reserves its question", func(t *testing.T) {
		for name, aborted := range map[string]bool{"ended": false, "aborted": true} {
			t.Run(name, func(t *testing.T) {
				r, id := start(t)
				r.do(claim(1))
				r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1, Aborted: aborted})
				r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
				r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 2})
				require.Equal(t, id, r.do(claim(2)).(*messages.ClaimMessagesResponse).GetMessages()[0].GetId())
			})
		}
	})
	t.Run("Q-111 a reply never claimed survives any number of turns", func(t *testing.T) {
		r, _ := start(t)
		r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
		for turn := int64(2); turn < 5; turn++ {
			r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: turn})
			r.do(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: turn})
		}
		r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
	})
	t.Run("Q-112 a crash removes the mark and nothing else", func(t *testing.T) {
		r, id := start(t)
		r.do(claim(1))
		r.Restart()
		r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
		require.Equal(t, id, r.do(claim(1)).(*messages.ClaimMessagesResponse).GetMessages()[0].GetId())
	})
	t.Run("Q-109 a reply that is withdrawn reopens its question, on record, and its author is told", func(t *testing.T) {
		r, id := start(t)
		r.do(claim(1))
		withdraw := &messages.WithdrawMessageRequest{Session: "s1", MessageId: id, By: "bob", Reason: "not meant"}
		require.Equal(t, "c1", r.do(withdraw).(*messages.WithdrawMessageResponse).GetReopenedCallId())
		require.Equal(t, "canceled", r.data(sessionlog.TypeInboxSpliced)["outcome"])
		require.Equal(t, sessionlog.RowContinued, r.Rows["c1"].State)
		r.refused(messages.MessageGone, admit(1, id))
		told := r.accepted(actors.OutcomeReplyWithdrawn, submitReq("c1", "s1")).GetSettlement()
		require.Equal(t, "bob not meant", told.GetBy()+" "+told.GetReason())
		r.queue("c1", "s2")
		t.Run("the same withdrawal again changes nothing", func(t *testing.T) {
			n := len(r.Log)
			require.Equal(t, "c1", r.do(withdraw).(*messages.WithdrawMessageResponse).GetReopenedCallId())
			r.Restart()
			require.Equal(t, "c1", r.do(withdraw).(*messages.WithdrawMessageResponse).GetReopenedCallId())
			require.Len(t, r.Log, n)
		})
	})
	t.Run("Q-109 another message's withdrawal changes nothing for it", func(t *testing.T) {
		r, _ := start(t)
		r.do(&messages.SteerRequest{Session: "s1", MessageId: "m1"})
		require.Empty(t, r.do(&messages.WithdrawMessageRequest{Session: "s1", MessageId: "m1"}).(*messages.WithdrawMessageResponse).GetReopenedCallId())
		r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
		r.gone(&messages.WithdrawMessageRequest{Session: "s1", MessageId: "m9"})
	})
	t.Run("Q-110 the next step admits it by itself", func(t *testing.T) {
		r, id := start(t)
		r.do(&messages.EndStepRequest{Session: "s1", Root: "root", Turn: 1, Step: 1})
		n := len(r.Log)
		res := r.step(1, 2)
		require.Equal(t, []string{sessionlog.TypeInboxSpliced, sessionlog.TypeStepStart, sessionlog.TypeUserMessage}, r.types(n))
		require.Equal(t, id, res.GetAdmitted()[0].GetId())
		require.Equal(t, res, r.step(1, 2), "again: the same")
		r.Restart()
		require.Equal(t, res, r.step(1, 2), "also after a restart")
		require.Len(t, r.Log, n+3)
	})
	t.Run("Q-152 Q-110 another reply's admission settles the question too", func(t *testing.T) {
		r, _ := start(t)
		r.Delivered = nil
		r.Append(sessionlog.NewEvent(sessionlog.TypeUserMessage, sessionlog.ReplyMessage("m9", "c1", json.RawMessage(`[]`), json.RawMessage(yes)).Raw).Appended().At(r.Session.Next(), 1))
		r.refused(messages.Settled, submitReq("c1", "s2"))
		r.step(1, 1)
	})
}

func TestWithdrawQuestion(t *testing.T) {
	withdraw := func(call string) *messages.WithdrawQuestionRequest {
		return &messages.WithdrawQuestionRequest{Session: "s1", Root: "root", CallId: call, By: "root", Reason: "no longer matters"}
	}
	t.Run("Q-049 Q-065 an open one: its call ends aborted and takes no answer", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1")
		res := r.do(withdraw("c1")).(*messages.WithdrawQuestionResponse)
		require.Equal(t, "withdrawn root no longer matters", res.GetSettlement().GetOutcome()+" "+res.GetSettlement().GetBy()+" "+res.GetSettlement().GetReason())
		require.Equal(t, messages.AskAborted, codeOf(r.last(asker)))
		require.Equal(t, "withdrawn", r.refused(messages.Settled, submitReq("c1", "s1")).GetWinner().GetOutcome())
		n := len(r.Log)
		require.Equal(t, res, r.do(withdraw("c1")), "again: the same")
		r.Restart()
		require.Equal(t, res, r.do(withdraw("c1")), "also after a restart")
		require.Len(t, r.Log, n)
	})
	t.Run("a continued one: later answers lose to it, and it leaves the index", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		res := r.do(withdraw("c1"))
		require.Empty(t, r.Rows)
		require.Equal(t, "withdrawn", r.refused(messages.Settled, submitReq("c1", "s1")).GetWinner().GetOutcome())
		r.Restart()
		r.refused(messages.Settled, submitReq("c1", "s1"))
		require.Equal(t, res, r.do(withdraw("c1")))
		t.Run("asked again it is a new question", func(t *testing.T) {
			r.ask("c1", attempt("other"))
			r.accepted("answered", submitReq("c1", "s2"))
		})
	})
	t.Run("one with a queued reply: the answer was first", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.queue("c1", "s1")
		r.refused(messages.ReplyQueued, withdraw("c1"))
	})
	t.Run("a settled one and an unknown one", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.accepted("answered", submitReq("c1", "s1"))
		require.Equal(t, "answered", r.refused(messages.Settled, withdraw("c1")).GetWinner().GetOutcome())
		r.refused(messages.NotAnswerable, withdraw("c9"))
	})
	t.Run("a person withdraws by name, another agent may not", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		req := withdraw("c1")
		req.Root = "stranger"
		r.refused(messages.CallerNotLive, req)
		req.Root = ""
		require.IsType(t, &messages.WithdrawQuestionResponse{}, r.do(req))
	})
}
