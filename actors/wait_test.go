package actors_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func TestWaitTimer(t *testing.T) {
	t.Run("Q-081 Q-067 the deadline passes unattended: pending, once", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		require.Equal(t, 1, r.Timers())
		r.Advance(4999)
		require.Len(t, r.Replies[asker], 1)
		r.Advance(1)
		res := r.last(asker).(*messages.AskResponse)
		require.Equal(t, sessionlog.PendingText("c1"), res.GetResult())
		require.Equal(t, 0, r.Timers())
		r.Advance(100_000)
		require.Len(t, r.Replies[asker], 2)
		require.Equal(t, 1, r.count(sessionlog.TypeToolResult, "pending"))
	})
	t.Run("Q-080 the deadline is measured once, and is in the log", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(5))
		require.EqualValues(t, startWall+5000, r.data(sessionlog.TypeWait)["deadlineMs"])
		require.EqualValues(t, startWall+5000, r.Rows["c1"].Due)
	})
	t.Run("Q-028 a call without a limit has no timer and is tracked", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(-1))
		require.Equal(t, 0, r.Timers())
		r.Advance(1 << 40)
		require.Equal(t, "open", r.state("c1"))
		r.accepted("answered", submitReq("c1", "s"))
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetAnswered())
		require.Equal(t, yes, r.settled("c1"))
	})
	t.Run("T3 every one of 500 questions goes pending at its own deadline", func(t *testing.T) {
		r := newRig(t)
		r.Delivered = nil
		for round := range 10 {
			askers := make([]actors.Addr, 50)
			for i := range askers {
				askers[i] = r.ask(fmt.Sprintf("c%d/%d", round, i), withTimeout(10+i))
			}
			r.Advance(9999)
			for i, at := range askers {
				require.Len(t, r.Replies[at], 1)
				r.Advance(1)
				require.Len(t, r.Replies[at], 2, "question %d of round %d", i, round)
				r.Advance(999)
			}
			require.Equal(t, 0, r.Timers())
		}
	})
}

func TestWaitClaims(t *testing.T) {
	t.Run("Q-084 a claim stops the timer and gets one frame with what remains", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		r.Advance(2000)
		at := r.claim("c1", "claim/n/1")
		frames, ends := r.frames(at)
		require.Equal(t, []int64{3000}, frames)
		require.Empty(t, ends)
		require.Equal(t, 0, r.Timers())
		r.Advance(1_000_000)
		require.Len(t, r.Replies[asker], 1, "T1: a held wait does not end")
	})
	t.Run("Q-087 the last release restores the original deadline", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.Advance(4000)
		r.release("c1", at, false)
		r.Advance(999)
		require.Len(t, r.Replies[asker], 1)
		r.Advance(1)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("Q-087 a deadline that passed under the claim expires at once", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.Advance(60_000)
		r.release("c1", at, false)
		require.Len(t, r.Replies[asker], 1)
		r.Advance(0)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("Q-085 several claims: only the last one's end counts, a late one gets 0", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		one := r.claim("c1", "claim/n/1")
		r.Advance(7000)
		two := r.claim("c1", "claim/n/2")
		frames, _ := r.frames(two)
		require.Equal(t, []int64{0}, frames)
		r.release("c1", one, false)
		r.Advance(10_000)
		require.Len(t, r.Replies[asker], 1)
		r.release("c1", two, false)
		r.Advance(0)
		require.Len(t, r.Replies[asker], 2)
	})
	t.Run("Q-086 a release is idempotent, and a stranger's changes nothing", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		one, two := r.claim("c1", "claim/n/1"), r.claim("c1", "claim/n/2")
		r.release("c1", one, false)
		r.release("c1", one, false)
		r.release("c1", actors.Addr{Key: "claim/n/3"}, true)
		r.Advance(10_000)
		require.Len(t, r.Replies[asker], 1, "the second claim still holds")
		r.release("c1", two, false)
		r.Advance(0)
		require.Len(t, r.Replies[asker], 2)
		r.release("c1", two, true)
		require.Empty(t, r.Rows["c1"].Due)
	})
	t.Run("Q-082 a first claim after the deadline settles the wait instead, and gets no frame", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		r.Jump(5000) // the timer has not been served
		at := r.claim("c1", "claim/n/1")
		frames, ends := r.frames(at)
		require.Empty(t, frames)
		require.Equal(t, []string{"expired"}, ends)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
		require.Equal(t, 0, r.Timers())
	})
	t.Run("Q-083 Q-090 an unknown or finished wait is an empty stream, not an error", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.accepted("answered", submitReq("c1", "s"))
		n := len(r.Log)
		_, ends := r.frames(r.claim("c1", "claim/n/1"))
		require.Equal(t, []string{"settled"}, ends)
		_, ends = r.frames(r.claim("c9", "claim/n/2"))
		require.Equal(t, []string{"unknown"}, ends)
		require.Len(t, r.Log, n)
	})
	t.Run("Q-084 a claim without a deadline is told so", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(-1))
		at := r.claim("c1", "claim/n/1")
		frame := r.Sends[at][0].(*messages.ClaimFrame)
		require.True(t, frame.GetNever())
		require.Zero(t, frame.GetRemainingMs())
		r.release("c1", at, true)
		require.Equal(t, 0, r.Timers())
	})
	t.Run("Q-084 a claim that is repeated gets its frame again and is one claim", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.Advance(1000)
		r.claim("c1", "claim/n/1")
		frames, _ := r.frames(at)
		require.Equal(t, []int64{5000, 4000}, frames)
		r.release("c1", at, false)
		r.Advance(4000)
		require.Len(t, r.Replies[asker], 2)
	})
	t.Run("Q-066 Q-092 an answer ends every claim and leaves no timer", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1")
		one, two := r.claim("c1", "claim/n/1"), r.claim("c1", "claim/n/2")
		r.accepted("answered", submitReq("c1", "s"))
		for _, at := range []actors.Addr{one, two} {
			_, ends := r.frames(at)
			require.Equal(t, []string{"settled"}, ends)
		}
		require.Equal(t, 0, r.Timers()+r.Parts(actors.WaitPart))
		require.Equal(t, `{"answers":`+yes+`}`, r.last(asker).(*messages.AskResponse).GetResult())
	})
}

func TestWaitClocks(t *testing.T) {
	t.Run("Q-091 a running timer is a duration: a jump of the wall does not re-arm it", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		r.Jump(-3_600_000)
		r.Advance(5000)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("Q-091 but it changes the frame of the next claim, and what is armed after it", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		r.Jump(-1000)
		at := r.claim("c1", "claim/n/1")
		frames, _ := r.frames(at)
		require.Equal(t, []int64{6000}, frames)
		r.release("c1", at, false)
		r.Advance(5999)
		require.Len(t, r.Replies[asker], 1)
		r.Advance(1)
		require.Len(t, r.Replies[asker], 2)
	})
	t.Run("Q-091 nor one while the question is recorded", func(t *testing.T) {
		for _, jump := range []int64{-10_000, 10_000} {
			w := actors.NewWait(&actors.Rules{}, actors.WaitSeed{Deadline: 7000, Timed: true, Asked: actors.Now{Wall: 2000, Mono: 100}})
			fx := w.Resume(actors.Now{Wall: 3000 + jump, Mono: 1100})
			require.EqualValues(t, 4000, fx.Timers[0].After, "it runs since it was asked")
		}
	})
	t.Run("Q-091 nor does an answer that is refused after a jump", func(t *testing.T) {
		for _, jump := range []int64{-3_600_000, 4000} {
			r := newRig(t)
			asker := r.ask("c1", withTimeout(5))
			r.ask("c2", withTimeout(60))
			r.Jump(jump)
			r.send(submitReq("c2", "s")) // one id for two calls: both have been routed when the first is recorded
			refused := r.send(submitReq("c1", "s"))
			r.run()
			require.Equal(t, messages.BadRequest, codeOf(r.last(refused)))
			r.Advance(4999)
			require.Len(t, r.Replies[asker], 1, "the jump is %d", jump)
			r.Advance(1)
			require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending(), "the jump is %d", jump)
		}
	})
	t.Run("Q-081 a timer that was replaced while its end lay in the mailbox is ignored", func(t *testing.T) {
		rules := actors.Rules{}
		w := actors.NewWait(&rules, actors.WaitSeed{Deadline: 5000, Timed: true})
		first := w.Resume(actors.Now{}).Timers[0]
		w.Step(actors.Now{}, actors.Envelope{Msg: actors.OpenClaim{From: actors.Addr{Key: "c"}}})
		fx := w.Step(actors.Now{}, actors.Envelope{Msg: actors.Fired{Name: first.Name, Gen: first.Gen}})
		require.True(t, fx.Empty())
	})
	t.Run("Q-083 nobody holds a wait whose deadline is being recorded, whatever the wall clock says by then", func(t *testing.T) {
		rules := actors.Rules{}
		w := actors.NewWait(&rules, actors.WaitSeed{Deadline: 5000, Timed: true})
		timer := w.Resume(actors.Now{}).Timers[0]
		fx := w.Step(actors.Now{Wall: 5000, Mono: 5000}, actors.Envelope{Msg: actors.Fired{Name: timer.Name, Gen: timer.Gen}})
		require.IsType(t, actors.Record{}, fx.Up[0])
		for _, wall := range []int64{5001, -5000} {
			fx = w.Step(actors.Now{Wall: wall, Mono: 5001}, actors.Envelope{Msg: actors.OpenClaim{From: actors.Addr{Key: "c"}}})
			require.Empty(t, fx.Up, "it is being recorded already")
			require.Empty(t, fx.Timers)
			require.Equal(t, "expired", fx.Sends[0].Msg.(*messages.ClaimEnd).GetReason())
		}
	})
	t.Run("T9 after a jump the grace holds a deadline while clients come back", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.release("c1", at, true) // the machine slept; its stream was cut
		r.Jump(3_600_000)
		r.claim("c1", "claim/n/2")
		frames, ends := r.frames(actors.Addr{Key: "claim/n/2"})
		require.Equal(t, []int64{0}, frames)
		require.Empty(t, ends)
		r.Advance(60_000)
		require.Len(t, r.Replies[asker], 1)
	})
}

func grace(r *actors.Rules) { r.ClaimGraceMS = 10_000 }

func TestWaitGrace(t *testing.T) {
	t.Run("a lost claim holds a deadline that has passed; the recorded one never changes", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.Advance(60_000)
		r.release("c1", at, true)
		r.Advance(9999)
		require.Len(t, r.Replies[asker], 1)
		require.EqualValues(t, startWall+5000, r.Rows["c1"].Due)
		r.Advance(1)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("a lost claim does not shorten what is left", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(60))
		r.release("c1", r.claim("c1", "claim/n/1"), true)
		r.Advance(59_999)
		require.Len(t, r.Replies[asker], 1)
		r.Advance(1)
		require.Len(t, r.Replies[asker], 2)
	})
	t.Run("a claim that was released has no grace", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.Advance(60_000)
		r.release("c1", at, false)
		r.Advance(0)
		require.Len(t, r.Replies[asker], 2)
	})
	t.Run("a wait that was rebuilt holds a passed deadline until its clients are back", func(t *testing.T) {
		r := newRig(t, grace)
		r.ask("c1", withTimeout(5))
		r.Jump(60_000)
		r.Restart()
		r.Advance(9999)
		require.Equal(t, "open", r.state("c1"))
		at := r.claim("c1", "claim/n/1")
		frames, _ := r.frames(at)
		require.Equal(t, []int64{0}, frames)
		r.release("c1", at, false)
		r.Advance(1)
		require.Equal(t, "continued", r.state("c1"))
	})
	t.Run("faithful without grace: a rebuilt wait whose deadline passed ends at once", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(5))
		r.Jump(60_000)
		r.Restart()
		r.Advance(0)
		require.Equal(t, "continued", r.state("c1"))
	})
}

func expireReq(call, claim string) *messages.ExpireRequest {
	return &messages.ExpireRequest{Session: "s1", CallId: call, Claim: claim, By: "ada"}
}

func unanimous(r *actors.Rules) { r.FirstExpiryWins = false }

func TestExpire(t *testing.T) {
	t.Run("first: a client's expiry ends it for all (Q-067)", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1")
		r.claim("c1", "claim/n/1")
		r.claim("c1", "claim/n/2")
		require.True(t, r.do(expireReq("c1", "claim/n/1")).(*messages.ExpireResponse).GetSettled())
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
		require.Equal(t, "continued", r.state("c1"))
		require.Equal(t, "ada", r.data(sessionlog.TypeSettled)["by"])
	})
	t.Run("unanimous: it only lets go of its own claim while others hold", func(t *testing.T) {
		r := newRig(t, unanimous)
		asker := r.ask("c1", withTimeout(5))
		one, two := r.claim("c1", "claim/n/1"), r.claim("c1", "claim/n/2")
		require.False(t, r.do(expireReq("c1", one.Key)).(*messages.ExpireResponse).GetSettled())
		require.False(t, r.do(expireReq("c1", one.Key)).(*messages.ExpireResponse).GetSettled(), "again")
		_, ends := r.frames(one)
		require.Equal(t, []string{"released"}, ends, "its stream ends with it (Q-086)")
		r.Advance(60_000)
		require.Len(t, r.Replies[asker], 1, "the other holds")
		r.release("c1", two, false)
		r.Advance(0)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending(), "and the last one's end restores the deadline (Q-087)")
	})
	t.Run("unanimous: of three the first two only let go, the last one ends it", func(t *testing.T) {
		r := newRig(t, unanimous)
		asker := r.ask("c1")
		for _, c := range []string{"claim/n/1", "claim/n/2", "claim/n/3"} {
			r.claim("c1", c)
		}
		require.False(t, r.do(expireReq("c1", "claim/n/2")).(*messages.ExpireResponse).GetSettled())
		require.False(t, r.do(expireReq("c1", "claim/n/1")).(*messages.ExpireResponse).GetSettled())
		require.Len(t, r.Replies[asker], 1)
		require.True(t, r.do(expireReq("c1", "claim/n/3")).(*messages.ExpireResponse).GetSettled())
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("unanimous: those whom claim_grace waits for are others", func(t *testing.T) {
		for name, gone := range map[string]func(r *rig, bob actors.Addr){
			"a stream that broke":      func(r *rig, bob actors.Addr) { r.release("c1", bob, true) },
			"a wait that was rebuilt":  func(r *rig, _ actors.Addr) { r.Kill(actors.WaitPart) },
			"a session that restarted": func(r *rig, _ actors.Addr) { r.Restart() },
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, unanimous, grace)
				r.ask("c1", withTimeout(15))
				ann, bob := r.claim("c1", "claim/n/1"), r.claim("c1", "claim/n/2")
				r.Advance(5000)
				gone(r, bob)
				require.False(t, r.do(expireReq("c1", ann.Key)).(*messages.ExpireResponse).GetSettled())
				require.Equal(t, "open", r.state("c1"))
				r.claim("c1", "claim/n/3") // bob is back
				r.Advance(60_000)
				require.Equal(t, "open", r.state("c1"), "and holds")
				r.release("c1", actors.Addr{Key: "claim/n/3"}, false)
				r.Advance(0)
				require.Equal(t, "continued", r.state("c1"))
			})
		}
	})
	t.Run("unanimous: nobody came back, and the deadline ends it", func(t *testing.T) {
		r := newRig(t, unanimous, grace)
		r.ask("c1", withTimeout(5))
		ann := r.claim("c1", "claim/n/1")
		r.Kill(actors.WaitPart)
		r.Advance(6000)
		require.False(t, r.do(expireReq("c1", ann.Key)).(*messages.ExpireResponse).GetSettled())
		r.Advance(3999)
		require.Equal(t, "open", r.state("c1"))
		r.Advance(1)
		require.Equal(t, "continued", r.state("c1"))
	})
	t.Run("unanimous: without any claim it decides", func(t *testing.T) {
		r := newRig(t, unanimous)
		r.ask("c1")
		require.True(t, r.do(expireReq("c1", "claim/n/1")).(*messages.ExpireResponse).GetSettled())
		require.Equal(t, "continued", r.state("c1"))
	})
	t.Run("Q-048 the expiry of a call without a limit is its error", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(-1))
		r.do(expireReq("c1", ""))
		require.Equal(t, messages.AskTimedOut, codeOf(r.last(asker)))
		require.Equal(t, "", r.state("c1"))
	})
	t.Run("an expiry that comes too late learns who was first", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.accepted("answered", submitReq("c1", "s"))
		no := r.refused(messages.Settled, expireReq("c1", ""))
		require.Equal(t, "answered", no.GetWinner().GetOutcome())
		require.Equal(t, "ada", no.GetWinner().GetBy())
	})
}

func delegateReq(call, claim string) *messages.DelegateRequest {
	return &messages.DelegateRequest{Session: "s1", CallId: call, Claim: claim, By: "ada"}
}

func TestDelegate(t *testing.T) {
	t.Run("Q-069 Q-027 a timed wait goes on when the last answerer passed", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		r.Advance(2000)
		require.False(t, r.do(delegateReq("c1", at.Key)).(*messages.DelegateResponse).GetSettled())
		require.Len(t, r.Replies[asker], 1)
		require.Equal(t, 1, r.Timers(), "its claim is released: Q-087")
		_, ends := r.frames(at)
		require.Equal(t, []string{"released"}, ends, "and knows it: it would hold the wait again when it is next renewed (Q-086)")
		r.Advance(3000)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("Q-069 a claim that comes after it still holds the deadline", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		r.do(delegateReq("c1", r.claim("c1", "claim/n/1").Key))
		r.claim("c1", "claim/n/2")
		r.Advance(60_000)
		require.Len(t, r.Replies[asker], 1)
	})
	t.Run("Q-047 a blocking ask whose last answerer passed has no provider", func(t *testing.T) {
		for name, edit := range map[string]func(*messages.AskRequest){"legacy": legacy, "keyed without a limit": withTimeout(-1)} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				asker := r.ask("c1", edit)
				at := r.claim("c1", "claim/n/1")
				require.True(t, r.do(delegateReq("c1", at.Key)).(*messages.DelegateResponse).GetSettled())
				require.Equal(t, messages.NoProvider, codeOf(r.last(asker)))
				_, name, code := r.resultText()
				require.Equal(t, "UserQuestionError NO_PROVIDER", name+" "+code)
				require.Empty(t, r.Rows)
				_, ends := r.frames(at)
				require.Equal(t, []string{"released"}, ends, "one end, and no other (Q-092)")
			})
		}
	})
	t.Run("Q-086 a claim that its wait heard of only afterwards does not hold it", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		r.do(delegateReq("c1", "claim/n/1")) // its session restarted, and it has not opened itself again yet
		frames, ends := r.frames(r.claim("c1", "claim/n/1"))
		require.Empty(t, frames)
		require.Equal(t, []string{"released"}, ends)
		r.Advance(5000)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("Q-086 one whose end was lost hears it again", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(5))
		r.do(delegateReq("c1", r.claim("c1", "claim/n/1").Key))
		for range 1000 { // what one client repeats pushes nobody out
			r.do(delegateReq("c1", "claim/n/2"))
		}
		_, ends := r.frames(r.claim("c1", "claim/n/1"))
		require.Equal(t, []string{"released", "released"}, ends)
	})
	t.Run("of those that let go a wait remembers the latest", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(5))
		for i := range 65 {
			r.do(delegateReq("c1", fmt.Sprintf("claim/n/%d", i)))
		}
		_, ends := r.frames(r.claim("c1", "claim/n/1"))
		require.Equal(t, []string{"released"}, ends)
		frames, _ := r.frames(r.claim("c1", "claim/n/0"))
		require.Len(t, frames, 1, "the first of 65 is forgotten")
	})
	t.Run("a claim does not hold what is asked under its call's id after its end", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(5))
		at := r.claim("c1", "claim/n/1")
		seq := r.Sends[at][0].(*messages.ClaimFrame).GetCallSeq()
		require.Positive(t, seq)
		renew := func() []string {
			r.Do(at, &messages.ClaimOpen{Session: "s1", CallId: "c1", CallSeq: seq})
			_, ends := r.frames(at)
			return ends
		}
		require.Empty(t, renew())
		r.accepted("answered", submitReq("c1", "s"))
		r.Sends[at] = nil // its end is lost
		asker := r.ask("c1", withTimeout(5), attempt("anew"))
		require.Equal(t, []string{"settled"}, renew())
		r.Advance(5000)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("Q-086 whoever passes ends no claim but one of this wait", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(5))
		r.ask("c2", withTimeout(5))
		at := r.claim("c2", "claim/n/2")
		r.do(delegateReq("c1", at.Key))
		_, ends := r.frames(at)
		require.Empty(t, ends)
	})
	t.Run("Q-046 the first passes on, the second answers", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", legacy)
		one, _ := r.claim("c1", "claim/n/1"), r.claim("c1", "claim/n/2")
		require.False(t, r.do(delegateReq("c1", one.Key)).(*messages.DelegateResponse).GetSettled())
		text := "my own words"
		r.accepted("answered", submitReq("c1", "s", &messages.Answer{Id: "q", Selected: []string{"no such label"}, Custom: &text}))
		require.Equal(t, `{"answers":[{"id":"q","selected":["no such label"],"custom":"my own words"}]}`, r.last(asker).(*messages.AskResponse).GetResult())
	})
	t.Run("Q-046 one without a claim watches: the door says that an answerer is left", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", legacy)
		req := delegateReq("c1", r.claim("c1", "claim/n/1").Key)
		req.AnswererLeft = true
		require.False(t, r.do(req).(*messages.DelegateResponse).GetSettled())
		require.Len(t, r.Replies[asker], 1)
	})
	t.Run("a submission from a claim that passed still counts", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1")
		r.do(delegateReq("c1", r.claim("c1", "claim/n/1").Key))
		r.accepted("answered", submitReq("c1", "s"))
	})
}

func TestDismiss(t *testing.T) {
	dismiss := &messages.DismissRequest{Session: "s1", CallId: "c1", By: "ada"}
	t.Run("Q-048 Q-188 a person closes an unkeyed question", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", legacy)
		require.IsType(t, &messages.DismissResponse{}, r.do(dismiss))
		require.Equal(t, messages.AskCancelled, codeOf(r.last(asker)))
		require.Equal(t, "cancelled", r.data(sessionlog.TypeSettled)["outcome"])
		require.Equal(t, messages.Settled, messages.Code(r.refused(messages.Settled, dismiss).GetCode()), "N3: again is told the outcome")
	})
	t.Run("Q-187 a keyed one is only hidden", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1")
		r.refused(messages.BadRequest, dismiss)
		require.Len(t, r.Replies[asker], 1)
		require.Equal(t, "open", r.state("c1"))
	})
	t.Run("an unknown call", func(t *testing.T) { newRig(t).refused(messages.NotAnswerable, dismiss) })
}

// Two bids for one wait: the second is parked until the first is durable.
func TestRivals(t *testing.T) {
	session := func(t *testing.T) (*actors.Wait, actors.Addr) {
		w := actors.NewWait(&actors.Rules{FirstExpiryWins: true}, actors.WaitSeed{Deadline: 5000, Timed: true, Askers: []actors.Addr{{Key: "asker"}}})
		w.Resume(actors.Now{})
		fx := w.Step(actors.Now{}, actors.Envelope{Msg: actors.WaitSubmit{From: actors.Addr{Key: "one"}, Req: submitReq("c1", "s1")}})
		require.Len(t, fx.Up, 1)
		require.Empty(t, fx.Replies, "nobody is told before it is durable")
		return w, actors.Addr{Key: "one"}
	}
	step := func(w *actors.Wait, m any) actors.Effects { return w.Step(actors.Now{}, actors.Envelope{Msg: m}) }
	answered := actors.End{Settlement: &messages.Settlement{Outcome: "answered", SubmissionId: "s1"}, Response: &messages.AskResponse{}}
	t.Run("Q-088 rivals are told who won, in the order they came", func(t *testing.T) {
		w, one := session(t)
		two, three, four := actors.Addr{Key: "two"}, actors.Addr{Key: "three"}, actors.Addr{Key: "four"}
		require.True(t, func() bool {
			fx := step(w, actors.WaitSubmit{From: two, Req: submitReq("c1", "s2")})
			return fx.Empty()
		}())
		step(w, actors.WaitExpire{From: three, Req: expireReq("c1", "")})
		step(w, actors.WaitCancel{From: four, Req: &messages.WithdrawQuestionRequest{}})
		fx := step(w, actors.Recorded{Corr: 1, End: answered})
		require.Len(t, fx.Replies, 5)
		require.Equal(t, []string{"asker", "one", "two", "three", "four"}, func() (to []string) {
			for _, r := range fx.Replies {
				to = append(to, r.To.Key)
			}
			return to
		}())
		require.False(t, fx.Replies[1].Msg.(*messages.SubmitResponse).GetRepeated())
		require.Equal(t, one, fx.Replies[1].To)
		require.Equal(t, messages.Settled, codeOf(fx.Replies[2].Msg))
		require.Equal(t, messages.Settled, codeOf(fx.Replies[3].Msg))
		require.Equal(t, "answered", fx.Replies[4].Msg.(*messages.WithdrawQuestionResponse).GetSettlement().GetOutcome(), "a cancel behind an answer is told so")
	})
	t.Run("Q-091 a refused bid makes room for the next, and leaves the timer alone", func(t *testing.T) {
		w, one := session(t)
		two := actors.Addr{Key: "two"}
		step(w, actors.WaitSubmit{From: two, Req: submitReq("c1", "s2")})
		fx := step(w, actors.Refused{Corr: 1, Err: messages.Refuse(messages.Unavailable, "disk")})
		require.Equal(t, []actors.Reply{{To: one, Msg: messages.Refuse(messages.Unavailable, "disk").Wire()}}, fx.Replies)
		require.Equal(t, "s2", fx.Up[0].(actors.Record).Outcome.Submit.GetSubmissionId())
		fx = step(w, actors.Refused{Corr: 2, Err: messages.Refuse(messages.Unavailable, "disk")})
		require.Empty(t, fx.Timers, "it has run on all the time")
	})
	t.Run("Q-091 a deadline that passed behind a refused bid is next", func(t *testing.T) {
		w := actors.NewWait(&actors.Rules{}, actors.WaitSeed{Deadline: 5000, Timed: true})
		timer := w.Resume(actors.Now{}).Timers[0]
		step(w, actors.WaitSubmit{From: actors.Addr{Key: "one"}, Req: submitReq("c1", "s1")})
		step(w, actors.Fired{Name: timer.Name, Gen: timer.Gen})
		fx := step(w, actors.Refused{Corr: 1, Err: messages.Refuse(messages.BadRequest, "used for another call")})
		require.Equal(t, actors.OutcomeDeadline, fx.Up[0].(actors.Record).Outcome.Kind)
		require.Empty(t, fx.Timers)
	})
	t.Run("the same submission twice in flight is accepted once and told twice", func(t *testing.T) {
		w, _ := session(t)
		step(w, actors.WaitSubmit{From: actors.Addr{Key: "two"}, Req: submitReq("c1", "s1")})
		fx := step(w, actors.Recorded{Corr: 1, End: answered})
		require.True(t, fx.Replies[2].Msg.(*messages.SubmitResponse).GetRepeated())
	})
	t.Run("an answer of the journal to another bid is ignored", func(t *testing.T) {
		w, _ := session(t)
		fx := step(w, actors.Recorded{Corr: 7, End: answered})
		require.True(t, fx.Empty())
		fx = step(w, actors.Refused{Corr: 7})
		require.True(t, fx.Empty())
	})
	t.Run("a submission that loses to expiry becomes late, or says reject", func(t *testing.T) {
		w := actors.NewWait(&actors.Rules{}, actors.WaitSeed{Deadline: 5000, Timed: true})
		timer := w.Resume(actors.Now{}).Timers[0]
		step(w, actors.Fired{Name: timer.Name, Gen: timer.Gen})
		late, reject := submitReq("c1", "s1"), submitReq("c1", "s2")
		reject.OnExpired = messages.OnExpired_ON_EXPIRED_REJECT
		step(w, actors.WaitSubmit{From: actors.Addr{Key: "one"}, Req: late, Seq: 7})
		step(w, actors.WaitSubmit{From: actors.Addr{Key: "two"}, Req: reject})
		fx := step(w, actors.Recorded{Corr: 1, End: actors.End{Settlement: &messages.Settlement{Outcome: "pending"}, Continued: true}})
		require.Equal(t, []actors.Local{actors.Reroute{From: actors.Addr{Key: "one"}, Req: late, Seq: 7}}, fx.Up)
		require.Len(t, fx.Replies, 1)
		require.Equal(t, messages.Settled, codeOf(fx.Replies[0].Msg))
	})
}

// A wait in its grace keeps its session loaded: unloaded and woken again it would
// have all of the grace again, and never end.
func TestGraceOutlastsPassivation(t *testing.T) {
	r := newRig(t, func(rules *actors.Rules) { rules.ClaimGraceMS, rules.PassivateAfterMS = 10_000, 900 })
	r.ask("c1", withTimeout(2))
	r.Kill(actors.WaitPart) // rebuilt without its asker, and with a grace
	r.Advance(9_900)
	require.False(t, r.Passivated)
	require.Equal(t, "open", r.state("c1"))
	r.Advance(100)
	require.Equal(t, "continued", r.state("c1"))
	r.Advance(900)
	require.True(t, r.Passivated)
}
