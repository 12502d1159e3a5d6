package actors_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func keys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }

func rejecting(req *messages.SubmitRequest) *messages.SubmitRequest {
	req.OnExpired = messages.OnExpired_ON_EXPIRED_REJECT
	return req
}

func withdrawReq(call string) *messages.WithdrawQuestionRequest {
	return &messages.WithdrawQuestionRequest{Session: "s1", Root: "root", CallId: call, By: "root"}
}

// The races of the design, a subtest each. Whatever travels at the same time
// is delivered in every order, and each order is audited.
func TestRaces(t *testing.T) {
	t.Parallel()
	t.Run("submit vs deadline (L1)", func(t *testing.T) {
		race := func(sub *messages.SubmitRequest) map[string]int {
			return everyOrder(t, func(choose func(int) int) *rig {
				r := quickRig(t)
				asker := r.ask("c1", withTimeout(1))
				require.Equal(t, "door/2", asker.Key)
				r.Tick(1000)
				r.send(sub)
				r.Choose = choose
				return r
			}, func(r *rig) string {
				return "asker " + r.outcome(actors.Addr{Key: "door/2", Corr: 2}) + ", submission " + r.outcome(actors.Addr{Key: "door/3", Corr: 3})
			})
		}
		require.Equal(t, []string{"asker answered, submission answered", "asker pending, submission queued"}, keys(race(submitReq("c1", "s1"))))
		require.Equal(t, []string{"asker answered, submission answered", "asker pending, submission SETTLED pending"}, keys(race(rejecting(submitReq("c1", "s1")))))
	})

	t.Run("submit vs claim loss: the grace lets a sent answer win over a passed deadline", func(t *testing.T) {
		race := func(edit ...func(*actors.Rules)) map[string]int {
			return everyOrder(t, func(choose func(int) int) *rig {
				r := quickRig(t, edit...)
				r.ask("c1", withTimeout(1))
				at := r.claim("c1", "claim/n/1")
				r.Advance(5000)
				r.Send(at, &messages.ClaimRelease{Session: "s1", CallId: "c1", Lost: true})
				r.send(submitReq("c1", "s1"))
				r.Choose = func(n int) int { r.Tick(0); return choose(n) }
				return r
			}, func(r *rig) string { return r.outcome(actors.Addr{Key: "door/3", Corr: 3}) })
		}
		require.Equal(t, []string{"answered"}, keys(race(grace)))
		require.Equal(t, []string{"answered", "queued"}, keys(race()), "without it, late at the worst")
	})

	t.Run("submit vs parent cancel: a cancel behind an accepted answer is told so", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.ask("c1")
			r.send(submitReq("c1", "s1"))
			r.send(withdrawReq("c1"))
			r.Choose = choose
			return r
		}, func(r *rig) string {
			return r.outcome(actors.Addr{Key: "door/2", Corr: 2}) + ": " + r.outcome(actors.Addr{Key: "door/3", Corr: 3}) + ", " + r.outcome(actors.Addr{Key: "door/4", Corr: 4})
		})
		require.Len(t, seen, 3)
		require.Contains(t, seen, "answered: answered, told answered", "parked behind it")
		require.Contains(t, seen, "answered: answered, SETTLED answered", "or too late")
		require.Contains(t, seen, "ASK_ABORTED withdrawn: SETTLED withdrawn, told withdrawn")
		turn := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.turn(1)
			r.ask("c1")
			r.send(submitReq("c1", "s1"))
			r.send(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1, Aborted: true})
			r.Choose = choose
			return r
		}, func(r *rig) string { return r.outcome(actors.Addr{Key: "door/5", Corr: 5}) })
		require.Equal(t, []string{"SETTLED aborted", "answered"}, keys(turn))
	})

	t.Run("submit vs delegate: a submission from a released claim still counts (R11)", func(t *testing.T) {
		race := func(edit func(*messages.AskRequest)) map[string]int {
			return everyOrder(t, func(choose func(int) int) *rig {
				r := quickRig(t)
				r.ask("c1", edit)
				at := r.claim("c1", "claim/n/1")
				r.send(submitReq("c1", "s1"))
				r.send(delegateReq("c1", at.Key))
				r.Choose = choose
				return r
			}, func(r *rig) string {
				require.Zero(r.t, r.Timers()+r.Parts(actors.WaitPart))
				return r.outcome(actors.Addr{Key: "door/3", Corr: 3})
			})
		}
		require.Equal(t, []string{"answered"}, keys(race(withTimeout(60))))
		require.Equal(t, []string{"SETTLED no_provider", "answered"}, keys(race(legacy)), "a blocking ask that everybody passed may be over first")
	})

	t.Run("claim on another node: it speaks to its session, and to whichever wait there is", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.ask("c1", withTimeout(1))
			at := r.claim("c1", "claim/n/1")
			r.Crash(r.Live(actors.WaitPart)[0])
			r.Send(at, &messages.ClaimOpen{Session: "s1", CallId: "c1"}) // it heard that something was lost
			r.send(&messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-c1", CallId: "c1", Resume: true})
			r.Choose = choose
			return r
		}, func(r *rig) string {
			r.run()
			held := len(r.Sends[actors.Addr{Key: "claim/n/1"}]) == 2
			r.Advance(100_000)
			asker := r.outcome(actors.Addr{Key: "door/3", Corr: 3})
			if !held {
				return "its message was lost with the wait: " + asker
			}
			r.release("c1", actors.Addr{Key: "claim/n/1"}, false)
			r.Advance(0)
			return asker + ", then " + r.outcome(actors.Addr{Key: "door/3", Corr: 3})
		})
		require.Contains(t, seen, "waiting, then pending")
		for out := range seen {
			require.NotContains(t, out, "answered")
		}
	})

	t.Run("Ask repeated while the first settles: both get the one result", func(t *testing.T) {
		race := func(settle func(r *rig)) map[string]int {
			return everyOrder(t, func(choose func(int) int) *rig {
				r := quickRig(t)
				r.ask("c1", withTimeout(1))
				settle(r)
				r.send(askReq("c1", withTimeout(1)))
				r.Choose = choose
				return r
			}, func(r *rig) string {
				require.Equal(r.t, 1, r.count(sessionlog.TypeToolCall, ""))
				return r.outcome(actors.Addr{Key: "door/2", Corr: 2}) + " " + r.outcome(actors.Addr{Key: fmt.Sprint("door/", r.corr), Corr: r.corr})
			})
		}
		require.Equal(t, []string{"pending pending"}, keys(race(func(r *rig) { r.Tick(1000) })))
		require.Equal(t, []string{"answered answered"}, keys(race(func(r *rig) { r.send(submitReq("c1", "s1")) })))
		require.Equal(t, []string{"ASK_ABORTED withdrawn ASK_ABORTED withdrawn"}, keys(race(func(r *rig) { r.send(withdrawReq("c1")) })))
	})

	t.Run("Ask, same call id, new attempt: no reply to the old question settles the new one (W1)", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.pend("c1")
			r.send(submitReq("c1", "s1"))
			r.send(askReq("c1", attempt("other"), arguments(`{"questions":[{"id":"new","question":"!"}]}`)))
			r.Choose = choose
			return r
		}, func(r *rig) string {
			require.Empty(r.t, r.Session.Questions().Settled())
			return r.outcome(actors.Addr{Key: "door/3", Corr: 3}) + " " + r.outcome(actors.Addr{Key: "door/4", Corr: 4})
		})
		require.Equal(t, []string{"BAD_ANSWER waiting", "NOT_ANSWERABLE waiting", "queued REPLY_QUEUED"}, keys(seen))
	})

	t.Run("submission landed, ack lost, restart (R9)", func(t *testing.T) {
		for name, late := range map[string]bool{"in time": false, "late": true} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				want := "answered"
				if r.ask("c1", withTimeout(1)); late {
					r.Advance(1000)
					want = "queued"
				}
				r.Dies = func() bool { r.Dies = nil; return true }
				from := r.say(submitReq("c1", "s1"))
				require.Empty(t, r.Replies[from])
				n := len(r.Log)
				require.True(t, r.accepted(want, submitReq("c1", "s1")).GetRepeated())
				require.Len(t, r.Log, n)
				r.audit()
			})
		}
	})

	t.Run("on_expired late: a bad batch is refused before it is routed, on both paths", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.ask("c1", withTimeout(1))
			r.Tick(1000)
			r.send(submitReq("c1", "s1", &messages.Answer{Id: "x"}))
			r.Choose = choose
			return r
		}, func(r *rig) string { return r.outcome(actors.Addr{Key: "door/3", Corr: 3}) })
		require.Equal(t, []string{"BAD_ANSWER"}, keys(seen))
	})

	t.Run("late answer vs admission, discard and turn end", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.turn(1)
			r.pend("c1")
			id := r.queue("c1", "s1")
			r.do(&messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: 1})
			r.send(&messages.AdmitMessagesRequest{Session: "s1", Root: "root", Turn: 1, MessageIds: []string{id}})
			r.send(&messages.WithdrawMessageRequest{Session: "s1", MessageId: id, By: "bob"})
			r.send(submitReq("c1", "s2"))
			r.Choose = choose
			return r
		}, func(r *rig) string {
			withdrawn := strings.Replace(r.outcome(actors.Addr{Key: "door/8", Corr: 8}), "NOT_FOUND", "MESSAGE_GONE", 1)
			return r.outcome(actors.Addr{Key: "door/7", Corr: 7}) + ", " + withdrawn + ", " + r.outcome(actors.Addr{Key: "door/9", Corr: 9})
		})
		for out := range seen {
			require.Contains(t, []string{
				"AdmitMessagesResponse, MESSAGE_GONE, SETTLED answered", "AdmitMessagesResponse, MESSAGE_GONE, REPLY_QUEUED queued",
				"MESSAGE_GONE, WithdrawMessageResponse, queued", "MESSAGE_GONE, WithdrawMessageResponse, REPLY_QUEUED queued",
			}, out)
		}
		require.Len(t, seen, 4)
		ends := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.turn(1)
			r.pend("c1")
			id := r.queue("c1", "s1")
			r.send(&messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: 1})
			r.send(&messages.AdmitMessagesRequest{Session: "s1", Root: "root", Turn: 1, MessageIds: []string{id}})
			r.send(&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 1})
			r.Choose = choose
			return r
		}, func(r *rig) string { return r.outcome(actors.Addr{Key: "door/7", Corr: 7}) })
		require.Equal(t, []string{"AdmitMessagesResponse", "TURN_CLOSED"}, keys(ends))
	})

	t.Run("two replies through the inbox (R1, R3)", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.pend("c1")
			r.send(submitReq("c1", "s1"))
			r.send(submitReq("c1", "s2"))
			r.Choose = choose
			return r
		}, func(r *rig) string {
			return r.outcome(actors.Addr{Key: "door/3", Corr: 3}) + " " + r.outcome(actors.Addr{Key: "door/4", Corr: 4})
		})
		require.Equal(t, []string{"REPLY_QUEUED queued queued", "queued REPLY_QUEUED queued"}, keys(seen))
	})

	t.Run("64 answers at once: one winner, 63 who learn who won (R1)", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		froms := make([]actors.Addr, 64)
		for i := range froms {
			froms[i] = r.send(submitReq("c1", fmt.Sprint("s", i)))
		}
		i := 0
		r.Choose = func(n int) int { i += 7; return i % n }
		r.run()
		won := map[string]int{}
		for _, f := range froms {
			won[r.outcome(f)]++
		}
		require.Equal(t, map[string]int{"answered": 1, "SETTLED answered": 63}, won)
		r.audit()
	})

	t.Run("root change with open waits: submissions become late, the old root's repeats are not live", func(t *testing.T) {
		race := func(rival messages.Message) map[string]int {
			return everyOrder(t, func(choose func(int) int) *rig {
				r := quickRig(t)
				r.ask("c1")
				r.send(attach("second"))
				r.send(rival)
				r.Choose = choose
				return r
			}, func(r *rig) string {
				return "asker " + r.outcome(actors.Addr{Key: "door/2", Corr: 2}) + ", rival " + r.outcome(actors.Addr{Key: "door/4", Corr: 4})
			})
		}
		require.Equal(t, []string{"asker CALLER_NOT_LIVE, rival queued", "asker answered, rival answered"}, keys(race(submitReq("c1", "s1"))))
		require.Equal(t, []string{"asker CALLER_NOT_LIVE, rival SETTLED root_changed", "asker answered, rival answered"}, keys(race(rejecting(submitReq("c1", "s1")))))
		require.Equal(t, []string{"asker CALLER_NOT_LIVE, rival CALLER_NOT_LIVE"}, keys(race(askReq("c1"))))
	})

	t.Run("passivation: what comes before the timer's end keeps it loaded", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t, func(rules *actors.Rules) { rules.PassivateAfterMS = 1000 })
			r.Tick(1000)
			r.send(askReq("c1"))
			r.Choose = choose
			return r
		}, func(r *rig) string {
			if r.Passivated {
				return "unloaded first: the router starts it again for the ask"
			}
			return "stays"
		})
		require.Len(t, seen, 2)
	})

	t.Run("epoch change mid-append: nothing is folded or told before the append is durable", func(t *testing.T) {
		for name, msg := range map[string]any{
			"ask": askReq("c9"), "steer": steerReq("m1"), "attach": attach("second"), "withdraw": withdrawReq("c2"),
			"collect": &messages.AdmitMessagesRequest{Session: "s1", Root: "root"}, "begin turn": &messages.BeginTurnRequest{Session: "s1", Root: "root"},
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				r.pend("c1")
				r.queue("c1", "s1")
				r.pend("c2")
				before := snapshot(r.Session)
				fx := r.Session.Step(r.Now, actors.Envelope{From: actors.Addr{Key: "d"}, Msg: msg})
				require.NotEmpty(t, fx.Append)
				require.Equal(t, before, snapshot(r.Session))
			})
		}
	})

	t.Run("refusal by a zombie: a no that can change is proved, validation is not", func(t *testing.T) {
		r := newRig(t)
		r.pend("c1")
		r.queue("c1", "s1")
		r.ask("c2")
		r.ask("c3")
		r.accepted("answered", submitReq("c3", "s3"))
		proved := func(code messages.Code, msg any) bool {
			n := r.Proofs
			r.refused(code, msg)
			return r.Proofs > n
		}
		require.True(t, proved(messages.ReplyQueued, submitReq("c1", "s2")))
		require.True(t, proved(messages.NotAnswerable, submitReq("c9", "s2")))
		require.True(t, proved(messages.DuplicateWait, askReq("c2", attempt("x"))))
		require.True(t, proved(messages.CallerNotLive, askReq("c4", root("x"))))
		require.True(t, proved(messages.TurnClosed, &messages.ClaimMessagesRequest{Session: "s1", Root: "root", Turn: 9}))
		require.True(t, proved(messages.CallsOpen, &messages.EndTurnRequest{Session: "s1", Root: "root"}))
		require.True(t, proved(messages.TurnClosed, &messages.BeginStepRequest{Session: "s1", Root: "root"}))
		require.True(t, proved(messages.Settled, submitReq("c3", "s4")), "its id may have been asked anew")
		require.True(t, proved(messages.BadAnswer, submitReq("c2", "s2", &messages.Answer{Id: "x"})), "it may ask something else by now")
		require.True(t, proved(messages.BadRequest, &messages.DismissRequest{Session: "s1", CallId: "c2"}), "it may not be open any more")
		require.False(t, proved(messages.BadRequest, submitReq("c2", "")))
		require.True(t, proved(messages.BadRequest, &messages.CollectRepliesRequest{Session: "s1", Root: "root", After: "r9-x"}), "it may have been handed out elsewhere")
		n := r.Proofs
		r.accepted("queued", submitReq("c1", "s1"))
		require.Equal(t, n+1, r.Proofs, "its reply may have been taken back")
		n = r.Proofs
		r.claim("c2", "claim")
		require.Equal(t, n+1, r.Proofs, "a wait that is held may be over")
		r.claim("c9", "another")
		require.Equal(t, n+2, r.Proofs, "and one that is unknown may wait elsewhere")
		n = r.Proofs
		r.do(askReq("c3"))
		require.Equal(t, n+1, r.Proofs, "an answer from the fold is proved to be the truth")
	})

	t.Run("append in doubt: whatever was recorded and not told is found by the repeat", func(t *testing.T) {
		story := []any{
			askReq("c1", withTimeout(60)), submitReq("c1", "s1"), askReq("c2", withTimeout(0)),
			askReq("c3", withTimeout(60)), withdrawReq("c3"), steerReq("m1"),
			&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: 4}, &messages.BeginStepRequest{Session: "s1", Root: "root", Turn: 4, Step: 1},
			askReq("c4", inStep(4, 1)), submitReq("c4", "s4"), &messages.EndStepRequest{Session: "s1", Root: "root", Turn: 4, Step: 1},
			&messages.EndTurnRequest{Session: "s1", Root: "root", Turn: 4}, steerReq("m2"), &messages.WithdrawMessageRequest{Session: "s1", MessageId: "m2"},
			steerReq("m3"), &messages.AdmitMessagesRequest{Session: "s1", Root: "root", MessageIds: []string{"m3"}}, attach("second"),
		}
		tell := func(r *rig, msg any) {
			for range 2 {
				if from := r.say(msg); len(r.Replies[from]) > 0 {
					return
				}
			}
			t.Fatalf("%T was never answered", msg)
		}
		calm := newRig(t)
		for _, msg := range story {
			tell(calm, msg)
		}
		for die := 1; ; die++ {
			r := newRig(t)
			appends := 0
			r.Dies = func() bool { appends++; return appends == die }
			for _, msg := range story {
				tell(r, msg)
			}
			require.Equal(t, calm.types(0), r.types(0), "dying after append %d", die)
			r.audit()
			if appends < die {
				require.Greater(t, die, len(story))
				return
			}
		}
	})

	t.Run("collect crashed: by name a repeat gets the same messages, once in the log", func(t *testing.T) {
		r := newRig(t)
		r.do(steerReq("m1"))
		collect := &messages.AdmitMessagesRequest{Session: "s1", Root: "root", MessageIds: []string{"m1"}}
		r.Dies = func() bool { r.Dies = nil; return true }
		require.Empty(t, r.Replies[r.say(collect)])
		require.Equal(t, []string{"m1"}, idsOf(r.do(collect).(*messages.AdmitMessagesResponse).GetMessages()))
		r.audit()
	})
}

// picture is all of a session that its log decides.
type picture struct {
	next   int64
	state  string
	lists  sessionlog.Lists
	rows   []sessionlog.Row
	result int
	owed   string
}

func snapshot(s *actors.Session) picture {
	return picture{s.Next(), string(s.Questions().State()), s.Lists(), s.Rows(), s.Results(), s.Deliveries()}
}
