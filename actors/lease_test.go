package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

const leaseMS = 10_000

func at(mono int64) actors.Now { return actors.Now{Wall: startWall + mono, Mono: mono} }

// A door that repeats: nothing on the way is reliable.
func TestDoorRepeats(t *testing.T) {
	step := func(d *actors.Door, mono int64, msg any) actors.Effects {
		return d.Step(at(mono), actors.Envelope{Msg: msg})
	}
	answer := func(d *actors.Door, mono int64, corr uint64, m messages.Message) actors.Effects {
		return d.Step(at(mono), actors.Envelope{To: actors.Addr{Key: "door/n", Corr: corr}, Msg: m})
	}
	corrs := func(fx actors.Effects) []uint64 {
		var out []uint64
		for _, s := range fx.Sends {
			out = append(out, s.From.Corr)
		}
		return out
	}
	timer := func(fx actors.Effects) actors.Timer {
		require.Len(t, fx.Timers, 1)
		require.Equal(t, "repeat", fx.Timers[0].Name)
		return fx.Timers[0]
	}
	fired := func(tm actors.Timer) actors.Fired { return actors.Fired{Name: tm.Name, Gen: tm.Gen} }
	call := func(corr uint64, cmd messages.Command) actors.DoorCall {
		return actors.DoorCall{Corr: corr, Cmd: cmd}
	}
	done := &messages.SubmitResponse{}
	t.Run("what goes unanswered, each in its time, with one timer", func(t *testing.T) {
		d := actors.NewDoor("door/n", 1000)
		first := timer(step(d, 0, call(3, submitReq("c1", "a"))))
		require.EqualValues(t, 1000, first.After)
		require.Empty(t, step(d, 100, call(1, submitReq("c1", "b"))).Timers)
		require.Empty(t, step(d, 400, call(2, submitReq("c1", "c"))).Timers)
		answer(d, 500, 1, done)
		fx := step(d, 1000, fired(first))
		require.Equal(t, []uint64{3}, corrs(fx))
		require.EqualValues(t, 400, timer(fx).After, "what was answered is passed over")
		fx = step(d, 1400, fired(timer(fx)))
		require.Equal(t, []uint64{2}, corrs(fx))
		require.EqualValues(t, 600, timer(fx).After)
		fx = step(d, 1400, fired(first))
		require.True(t, fx.Empty(), "a timer that was replaced")
	})
	t.Run("as often as it takes, and not once more", func(t *testing.T) {
		d := actors.NewDoor("door/n", 1000)
		fx := step(d, 0, call(1, submitReq("c1", "a")))
		for i := int64(1); i <= 3; i++ {
			fx = step(d, i*1000, fired(timer(fx)))
			require.Equal(t, []uint64{1}, corrs(fx))
		}
		last := timer(fx)
		answer(d, 3500, 1, done)
		fx = step(d, 4000, fired(last))
		require.True(t, fx.Empty(), "no timer runs where nobody waits")
		require.EqualValues(t, 1000, timer(step(d, 9000, call(2, submitReq("c1", "b")))).After, "until the next call")
	})
	t.Run("those of one moment in the order of their calls, once each", func(t *testing.T) {
		d := actors.NewDoor("door/n", 1000)
		first := timer(step(d, 0, call(9, submitReq("c1", "a"))))
		step(d, 0, call(4, submitReq("c1", "b")))
		step(d, 0, actors.SessionGone{Session: "s1"}) // sent again in the same moment
		require.Equal(t, []uint64{9, 4}, corrs(step(d, 1000, fired(first))))
	})
	t.Run("a repeat for another reason counts", func(t *testing.T) {
		d := actors.NewDoor("door/n", 1000)
		first := timer(step(d, 0, call(1, submitReq("c1", "a"))))
		require.Equal(t, []uint64{1}, corrs(step(d, 700, actors.SessionGone{Session: "s1"})))
		fx := step(d, 1000, fired(first))
		require.Empty(t, fx.Sends)
		require.EqualValues(t, 700, timer(fx).After)
	})
	t.Run("a waiting ask keeps its subscription alive", func(t *testing.T) {
		d := actors.NewDoor("door/n", 1000)
		fx := step(d, 0, call(7, askReq("c1")))
		answer(d, 10, 7, &messages.AskResponse{CallId: "c1", Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}})
		for i := int64(1); i <= 2; i++ {
			fx = step(d, i*1000, fired(timer(fx)))
			require.Equal(t, []actors.Send{{To: actors.SessionAddr("s1"), From: actors.Addr{Key: "door/n", Corr: 7},
				Msg: &messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-c1", CallId: "c1", Resume: true}}}, fx.Sends)
		}
		step(d, 2500, actors.DoorCancel{Corr: 7})
		fx = step(d, 3000, fired(timer(fx)))
		require.True(t, fx.Empty(), "a caller that left")
	})
	t.Run("0: never", func(t *testing.T) {
		d := actors.NewDoor("door/n", 0)
		require.Empty(t, step(d, 0, call(1, submitReq("c1", "a"))).Timers)
		fx := step(d, 0, actors.Fired{Name: "repeat"})
		require.True(t, fx.Empty())
	})
}

func TestClaimRenews(t *testing.T) {
	open := []actors.Send{{To: actors.SessionAddr("s1"), From: claimAddr, Msg: &messages.ClaimOpen{Session: "s1", CallId: "c1", LeaseMs: leaseMS}}}
	frame, out := &messages.ClaimFrame{RemainingMs: 5}, actors.Addr{Key: actors.Out}
	unavailable := []actors.Reply{{To: out, Msg: &messages.ClaimEnd{Reason: "unavailable", Retryable: true}}}
	var c *actors.Claim
	var tm actors.Timer
	// take steps the claim, and keeps the timer that runs.
	take := func(mono int64, msg any) actors.Effects {
		fx := c.Step(at(mono), actors.Envelope{Msg: msg})
		for _, next := range fx.Timers {
			tm = next
		}
		return fx
	}
	fire := func(mono int64) actors.Effects { return take(mono, actors.Fired{Name: tm.Name, Gen: tm.Gen}) }
	start := func(t *testing.T, mono int64) {
		t.Helper()
		c = actors.NewClaim(claimAddr, "s1", "c1", leaseMS)
		fx := c.Resume(at(mono))
		require.Equal(t, open, fx.Sends)
		tm = fx.Timers[0]
		require.EqualValues(t, 3000, tm.After)
	}
	t.Run("every three tenths of its lease, and its client sees one frame", func(t *testing.T) {
		start(t, 0)
		fx := take(5, frame)
		require.Equal(t, []actors.Reply{{To: out, Msg: frame}}, fx.Replies)
		require.Empty(t, fx.Timers, "the timer runs on")
		for now := int64(3000); now <= 60_000; now += 3000 {
			fx = fire(now)
			require.Equal(t, open, fx.Sends)
			require.Empty(t, fx.Replies)
			require.EqualValues(t, 3000, tm.After)
			require.Empty(t, take(now+5, frame).Replies)
		}
	})
	t.Run("it ends when it has heard nothing for the length of its lease", func(t *testing.T) {
		start(t, 500)
		take(1000, frame)
		var asked []int64
		for now := int64(500) + tm.After; ; now += tm.After {
			fx := fire(now)
			if fx.Replies != nil {
				require.EqualValues(t, 11_000, now)
				require.Equal(t, unavailable, fx.Replies)
				require.Equal(t, releases(true), fx.Sends)
				break
			}
			asked = append(asked, now)
		}
		require.Equal(t, []int64{3500, 6500, 9500}, asked)
	})
	t.Run("also when it never heard anything", func(t *testing.T) {
		start(t, 0)
		for _, now := range []int64{3000, 6000, 9000} {
			require.Equal(t, open, fire(now).Sends)
		}
		require.EqualValues(t, 1000, tm.After)
		require.Equal(t, unavailable, fire(10_000).Replies)
	})
	t.Run("while its session moves it goes on trying", func(t *testing.T) {
		no := messages.Refuse(messages.Unavailable, "elsewhere").Wire()
		start(t, 0)
		take(5, frame)
		fx := take(3005, no)
		require.True(t, fx.Empty())
		take(6005, frame)
		fx = take(9005, messages.Refuse(messages.Quarantined, "out").Wire())
		require.Equal(t, unavailable, fx.Replies, "anything else is an answer")
		start(t, 0)
		require.Equal(t, unavailable, take(5, no).Replies, "one that is not held yet is worth another try at once")
	})
	t.Run("a session that was lost is asked at once", func(t *testing.T) {
		start(t, 0)
		take(5, frame)
		require.Equal(t, open, take(2000, actors.SessionGone{Session: "s1"}).Sends)
		require.EqualValues(t, 3000, tm.After)
	})
	t.Run("after its end it is silent", func(t *testing.T) {
		for _, end := range []any{&messages.ClaimEnd{Reason: "settled"}, actors.StreamClosed{}} {
			start(t, 0)
			running := tm
			take(5, end)
			require.EqualValues(t, -1, tm.After)
			fx := take(3000, actors.Fired{Name: running.Name, Gen: running.Gen})
			require.True(t, fx.Empty())
		}
	})
	t.Run("a lease of no length is no loop", func(t *testing.T) {
		c = actors.NewClaim(claimAddr, "s1", "c1", 1)
		require.EqualValues(t, 1, c.Resume(at(0)).Timers[0].After)
	})
}

// lease opens or renews a claim, and lets everything come to rest.
func (r *rig) lease(call, name string, ms int64) actors.Addr {
	from := actors.Addr{Key: name}
	r.Do(from, &messages.ClaimOpen{Session: "s1", CallId: call, LeaseMs: ms})
	return from
}

func TestWaitLeases(t *testing.T) {
	pending := func(t *testing.T, r *rig, asker actors.Addr) {
		t.Helper()
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
		require.Zero(t, r.Timers())
	}
	open := func(t *testing.T, r *rig, asker actors.Addr, why string) {
		t.Helper()
		require.Equal(t, "open", r.state("c1"), why)
		require.Len(t, r.Replies[asker], 1, why)
	}
	t.Run("Q-087 a claim that is not heard is lost, and the original deadline is back", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(30))
		at := r.lease("c1", "claim/m/1", leaseMS)
		require.Equal(t, 1, r.Timers(), "of the lease")
		r.Advance(9999)
		require.Equal(t, 1, r.Timers())
		r.Advance(20_000)
		open(t, r, asker, "the deadline is not moved")
		r.Advance(1)
		pending(t, r, asker)
		frames, ends := r.frames(at)
		require.Equal(t, []int64{30_000}, frames)
		require.Empty(t, ends, "it finds out by itself")
	})
	t.Run("Q-085 while it is heard the deadline does not fire, and each time it gets what remains", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		var at actors.Addr
		for range 40 {
			at = r.lease("c1", "claim/m/1", leaseMS)
			r.Advance(9999)
			open(t, r, asker, "it was heard")
		}
		frames, _ := r.frames(at)
		require.Equal(t, []int64{5000, 0, 0}, frames[:3])
		r.release("c1", at, false)
		require.Equal(t, 1, r.Timers(), "of the deadline alone")
		r.Advance(0)
		pending(t, r, asker)
	})
	t.Run("claim_grace holds a deadline that passed under a claim that was lost", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(5))
		r.lease("c1", "claim/m/1", leaseMS)
		r.Advance(leaseMS + r.Rules.ClaimGraceMS - 1)
		open(t, r, asker, "grace")
		r.lease("c1", "claim/m/1", leaseMS) // it was only slow
		r.Advance(leaseMS - 1)
		open(t, r, asker, "it came back")
		r.Advance(1 + r.Rules.ClaimGraceMS)
		pending(t, r, asker)
	})
	t.Run("one timer, for the first of several; those without a lease stay", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(1))
		r.lease("c1", "claim/m/1", 4000)
		r.lease("c1", "claim/m/2", 2000)
		plain := r.claim("c1", "claim/n/3")
		require.Equal(t, 1, r.Timers())
		r.Advance(2000) // 2 is lost
		require.Equal(t, 1, r.Timers())
		r.lease("c1", "claim/m/1", 4000) // until 6000
		r.Advance(3999)
		require.Equal(t, 1, r.Timers())
		r.Advance(1)
		require.Zero(t, r.Timers(), "1 is lost")
		r.Advance(1 << 40)
		open(t, r, asker, "the third has no lease")
		r.release("c1", plain, false)
		r.Advance(0)
		pending(t, r, asker)
	})
	t.Run("a claim that drops its lease, and one that takes one", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(1))
		r.lease("c1", "claim/m/1", 2000)
		r.claim("c1", "claim/m/1")
		require.Zero(t, r.Timers())
		r.Advance(100_000)
		open(t, r, asker, "no lease")
		r.lease("c1", "claim/m/1", 2000)
		r.Advance(2000)
		pending(t, r, asker)
	})
	t.Run("without a deadline a lost claim is only forgotten", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(-1))
		r.lease("c1", "claim/m/1", 2000)
		r.Advance(2000)
		require.Zero(t, r.Timers())
		open(t, r, asker, "Never")
		require.IsType(t, &messages.ExpireResponse{}, r.do(expireReq("c1", "claim/m/2")), "nobody else holds it")
		require.NotEqual(t, "open", r.state("c1"))
	})
	t.Run("no number harms a wait", func(t *testing.T) {
		for _, ms := range []int64{1 << 62, 1<<63 - 1, -1, -1 << 63} {
			r := newRig(t)
			asker := r.ask("c1", withTimeout(1))
			at := r.lease("c1", "claim/m/1", ms)
			r.Advance(3_599_999)
			open(t, r, asker, "held")
			r.release("c1", at, false)
			r.Advance(0)
			pending(t, r, asker)
		}
	})
	t.Run("Q-071 the end of the wait stops the timer of a lease", func(t *testing.T) {
		r := newRig(t)
		r.ask("c1", withTimeout(60))
		at := r.lease("c1", "claim/m/1", leaseMS)
		r.accepted("answered", submitReq("c1", "s"))
		require.Zero(t, r.Timers())
		_, ends := r.frames(at)
		require.Equal(t, []string{"settled"}, ends)
	})
}

func TestLeaseRaces(t *testing.T) {
	renew := &messages.ClaimOpen{Session: "s1", CallId: "c1", LeaseMs: leaseMS}
	t.Run("renewal behind release: held no longer than the lease", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(5))
		at := r.lease("c1", "claim/m/1", leaseMS)
		r.Advance(3000)
		r.release("c1", at, false)
		r.Do(at, renew) // the network turned them round
		r.Advance(leaseMS - 1)
		require.Equal(t, "open", r.state("c1"))
		r.Advance(1)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
	t.Run("renewal vs the end of the lease, in one instant: held, or the deadline is back", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.ask("c1", withTimeout(5))
			at := r.lease("c1", "claim/m/1", leaseMS)
			r.Tick(leaseMS)
			r.Send(at, renew)
			r.Choose = func(n int) int { r.Tick(0); return choose(n) }
			return r
		}, func(r *rig) string { return r.state("c1") })
		require.Equal(t, []string{"continued", "open"}, keys(seen))
	})
	t.Run("two hosts: the one that is cut off loses its claim, the other's holds", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(5))
		cut := r.lease("c1", "claim/a/1", leaseMS)
		heard := r.lease("c1", "claim/b/1", leaseMS)
		for range 4 {
			r.Advance(3000)
			r.Do(heard, renew)
		}
		r.release("c1", heard, false)
		r.Advance(7999) // the first was lost at 10 s, and its grace ends at 20 s
		require.Equal(t, "open", r.state("c1"))
		r.Advance(1)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
		r.Do(cut, renew) // the network is back
		_, ends := r.frames(cut)
		require.Equal(t, []string{"settled"}, ends)
	})
	t.Run("two hosts: both cut off, one comes back before the deadline's timer is served", func(t *testing.T) {
		seen := everyOrder(t, func(choose func(int) int) *rig {
			r := quickRig(t)
			r.ask("c1", withTimeout(5))
			a := r.lease("c1", "claim/a/1", leaseMS)
			r.Tick(1)
			b := r.lease("c1", "claim/b/1", leaseMS)
			r.Tick(leaseMS - 1)
			r.Send(b, &messages.ClaimRelease{Session: "s1", CallId: "c1"})
			r.Send(a, renew)
			r.Choose = func(n int) int { r.Tick(0); return choose(n) }
			return r
		}, func(r *rig) string { return r.state("c1") })
		require.Equal(t, []string{"continued", "open"}, keys(seen))
	})
	t.Run("restart of the session: the claim comes back by renewing, within the grace", func(t *testing.T) {
		r := newRig(t, grace)
		asker := r.ask("c1", withTimeout(5))
		r.Advance(4000)
		at := r.lease("c1", "claim/m/1", leaseMS)
		r.Advance(2900) // the deadline has passed
		r.Restart()
		require.Equal(t, 1, r.Timers())
		r.Advance(r.Rules.ClaimGraceMS - 1)
		r.Do(at, renew)
		r.Advance(leaseMS - 1)
		require.Equal(t, "open", r.state("c1"))
		r.Do(actors.Addr{Key: asker.Key, Corr: asker.Corr}, askReq("c1", withTimeout(5))) // its door asks again
		r.release("c1", at, false)
		r.Advance(0)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending())
	})
}
