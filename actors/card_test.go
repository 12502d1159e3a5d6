package actors_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// cardRig is a card, its clock and its timer. Late answers wait until they are let go.
type cardRig struct {
	*actors.Card
	now     actors.Now
	timerAt int64 // -1: none
	gen     uint32
	fx      []actors.CardEffect // of the last input
	told    []error
}

func newCardRig(unkeyed bool) *cardRig {
	return &cardRig{Card: actors.NewCard(unkeyed), now: actors.Now{Wall: 1_000_000}, timerAt: -1}
}

func (r *cardRig) send(in actors.CardInput) []actors.CardEffect {
	r.fx = r.Step(r.now, in)
	for _, fx := range r.fx {
		switch fx := fx.(type) {
		case actors.CardTimer:
			r.gen, r.timerAt = fx.Gen, -1
			if fx.After >= 0 {
				r.timerAt = r.now.Mono + fx.After
			}
		case actors.CardTold:
			r.told = append(r.told, fx.Err)
		}
	}
	return r.fx
}

func (r *cardRig) advance(ms int64) {
	for stop := r.now.Mono + ms; ; {
		to := stop
		if fires := r.timerAt >= 0 && r.timerAt <= stop; fires {
			to = r.timerAt
		}
		r.now.Wall, r.now.Mono = r.now.Wall+to-r.now.Mono, to
		if r.timerAt != to || r.timerAt < 0 {
			return
		}
		r.timerAt = -1
		r.send(actors.Ticked{Gen: r.gen})
	}
}

func (r *cardRig) lastTold() error { return r.told[len(r.told)-1] }

func batch(label string) []*messages.Answer {
	return []*messages.Answer{{Id: "q", Selected: []string{label}}}
}

// while a late answer is on its way no second one leaves; a stranger's
// word about another submission ends nothing.
func TestACardSendsOneLateAnswerAtATime(t *testing.T) {
	r := newCardRig(false)
	r.send(actors.Projected{State: actors.CardContinued})
	r.send(actors.LateChannel{Open: true})
	require.Contains(t, r.send(actors.Answered{Submission: "a", Answers: batch("A")}), actors.CardEffect(actors.SubmitLate{Submission: "a", Answers: batch("A")}))
	require.Empty(t, r.told, "it is not known yet what becomes of it")
	require.Equal(t, []actors.CardEffect{actors.CardTold{Err: actors.ErrSending}}, r.send(actors.Answered{Submission: "b", Answers: batch("B")}))
	require.Empty(t, r.send(actors.LateReplied{Submission: "b"}))
	require.True(t, r.View().Sending)

	r.send(actors.LateReplied{Submission: "a", Err: actors.ErrNotAnswerable})
	require.ErrorIs(t, r.lastTold(), actors.ErrNotAnswerable)
	require.False(t, r.View().Sending)
	require.Empty(t, r.send(actors.LateReplied{Submission: "a"}), "it is told once")
	r.send(actors.Answered{Submission: "c", Answers: batch("C")})
	r.send(actors.LateReplied{Submission: "c"})
	require.NoError(t, r.lastTold())
}

// a late channel that closes again is none.
func TestACardWithoutALateChannelTakesNoLateAnswer(t *testing.T) {
	r := newCardRig(false)
	r.send(actors.Projected{State: actors.CardContinued})
	r.send(actors.LateChannel{Open: true})
	r.send(actors.LateChannel{})
	require.Equal(t, actors.ChannelNone, r.Channel())
	r.send(actors.Answered{Submission: "a"})
	require.ErrorIs(t, r.lastTold(), actors.ErrNoChannel)
}

// a tick that comes late moves none of those after it, and a tick of a
// timer that was replaced means nothing.
func TestATickThatIsLateDoesNotDrift(t *testing.T) {
	r := newCardRig(false)
	r.send(actors.Requested{ID: "r", RemainingMS: 60_000})
	first := r.gen
	r.now = actors.Now{Wall: r.now.Wall + 1300, Mono: r.now.Mono + 1300} // the timer was served late
	r.send(actors.Ticked{Gen: first})
	require.EqualValues(t, 2000, r.timerAt)
	require.EqualValues(t, 58_700, r.View().RemainingMS)
	require.Empty(t, r.send(actors.Ticked{Gen: first}), "it has been replaced")

	r.now = actors.Now{Wall: r.now.Wall + 4000, Mono: r.now.Mono + 4000} // 5300: several are missed
	r.send(actors.Ticked{Gen: r.gen})
	require.EqualValues(t, 6000, r.timerAt)
}

// what replaces a running deadline leaves the tick where it is.
func TestAnotherDeadlineKeepsTheTick(t *testing.T) {
	r := newCardRig(false)
	r.send(actors.Requested{ID: "r1", RemainingMS: 5000})
	r.advance(400)
	r.send(actors.Requested{ID: "r2", RemainingMS: 900})
	require.EqualValues(t, 1000, r.timerAt)
	r.advance(600) // 900 were left at 400, so 300 are now
	require.EqualValues(t, 300, r.View().RemainingMS)
	r.advance(1000)
	require.Contains(t, r.fx, actors.CardEffect(actors.SettleRequest{ID: "r2", Outcome: actors.RequestTimedOut}))
	require.Equal(t, actors.ChannelNone, r.Channel())
}

// a claim that was lost leaves the host's own clock running, which the
// card can only show; a next request takes its place.
func TestALostClaimShowsTheHostsClock(t *testing.T) {
	for name, touch := range map[string]actors.CardInput{"running": nil, "frozen": actors.Engaged{}} {
		t.Run(name, func(t *testing.T) {
			r := newCardRig(false)
			r.send(actors.Requested{ID: "r", RemainingMS: 1000})
			r.advance(100)
			if touch != nil {
				r.send(touch)
			}
			r.send(actors.RequestEnded{ID: "r", Lost: true})
			require.False(t, r.View().Counts)
			r.advance(400)
			require.True(t, r.Unheld())
			left, known := r.HostRemainingMS(r.now)
			require.True(t, known)
			require.EqualValues(t, 500, left)
			r.advance(9000)
			left, _ = r.HostRemainingMS(r.now)
			require.Zero(t, left)
			r.send(actors.Requested{ID: "r2", RemainingMS: 0})
			_, known = r.HostRemainingMS(r.now)
			require.False(t, known || r.Unheld())
		})
	}
	r := newCardRig(false)
	r.send(actors.Requested{ID: "r", Never: true})
	r.send(actors.RequestEnded{ID: "r", Lost: true})
	_, known := r.HostRemainingMS(r.now)
	require.True(t, r.Unheld())
	require.False(t, known, "a wait without end has no clock")
	require.Len(t, r.send(actors.RequestEnded{ID: "r"}), 1)
	require.False(t, r.Unheld(), "it is over at its host too")
}

// a request is one thing, however often it is forwarded or ends.
func TestARequestIsTakenOnce(t *testing.T) {
	r := newCardRig(false)
	r.send(actors.Requested{ID: "r", RemainingMS: 1000})
	require.Empty(t, r.send(actors.Requested{ID: "r", RemainingMS: 9000}))
	require.Len(t, r.send(actors.RequestEnded{ID: "r"}), 3) // settled, the tick stops, another view
	require.Empty(t, r.send(actors.RequestEnded{ID: "r"}))
}

// a client whose clock must not step gives the monotonic one as both.
func TestACountdownCanBeMonotonic(t *testing.T) {
	c := actors.NewCard(false)
	c.Step(actors.Now{}, actors.Requested{ID: "r", RemainingMS: 1000})
	fx := c.Step(actors.Now{Wall: 1000, Mono: 1000}, actors.Ticked{Gen: 1})
	require.Contains(t, fx, actors.CardEffect(actors.SettleRequest{ID: "r", Outcome: actors.RequestTimedOut}))
}

// drawCardInput is anything that can happen to a card.
func drawCardInput(t *rapid.T, n int) actors.CardInput {
	id := rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "id")
	switch rapid.IntRange(0, 15).Draw(t, "input") {
	case 0, 1:
		return actors.Requested{ID: fmt.Sprint("r", rapid.IntRange(1, 4).Draw(t, "request")),
			RemainingMS: rapid.Int64Range(0, 5000).Draw(t, "remaining"), Never: rapid.IntRange(0, 4).Draw(t, "never") == 0,
			Cancelled: rapid.IntRange(0, 9).Draw(t, "cancelled") == 0}
	case 2:
		return actors.RequestEnded{ID: id, Lost: rapid.Bool().Draw(t, "lost")}
	case 3:
		return actors.Projected{State: rapid.SampledFrom([]actors.CardState{actors.CardOpen, actors.CardContinued}).Draw(t, "state")}
	case 4:
		return actors.LateChannel{Open: rapid.IntRange(0, 3).Draw(t, "open") > 0}
	case 5:
		return actors.LateReplied{Submission: fmt.Sprint("s", rapid.IntRange(max(0, n-6), n).Draw(t, "submission")),
			Err: rapid.SampledFrom([]error{nil, actors.ErrNotAnswerable, errors.New("failed")}).Draw(t, "reply")}
	case 6:
		return actors.Ticked{Gen: uint32(rapid.IntRange(0, 5).Draw(t, "generation"))}
	case 7:
		return actors.Focused{}
	case 8, 9:
		return actors.Blurred{}
	case 10:
		return actors.Engaged{}
	case 11:
		return actors.TimeTaken{}
	case 12:
		return actors.Dismissed{}
	case 13:
		return actors.Delegated{}
	case 14:
		if rapid.IntRange(0, 9).Draw(t, "close") == 0 {
			return actors.CardClosed{}
		}
	}
	return actors.Answered{Submission: fmt.Sprint("s", n), Answers: batch("A")}
}

// Whatever happens to a card, in whatever order: a request settles once, one
// late answer is under way at a time, a card that a person has touched never
// gives up, a closed one stays closed, and what is shown is what is so.
func TestCardInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, twin := newCardRig(rapid.Bool().Draw(t, "unkeyed")), actors.NewCard(false)
		if r.Unkeyed() {
			twin = actors.NewCard(true)
		}
		timed := map[string]bool{} // requests that came, and whether they had a deadline
		settled := map[string]bool{}
		under := "" // the late answer under way
		closed := false
		check := func(in actors.CardInput, before actors.CardView, at actors.Now) {
			require.Equal(t, r.fx, twin.Step(at, in), "the same inputs, the same effects")
			after, changed := r.View(), false
			for _, fx := range r.fx {
				switch fx := fx.(type) {
				case actors.SettleRequest:
					_, known := timed[fx.ID]
					require.True(t, known && !settled[fx.ID], "%s is settled once", fx.ID)
					settled[fx.ID] = true
					if fx.Outcome == actors.RequestTimedOut {
						require.IsType(t, actors.Ticked{}, in)
						require.True(t, before.Running && !before.Closed && timed[fx.ID], "only a running countdown ends")
						require.NotContains(t, []actors.CardWait{actors.WaitHeld, actors.WaitEditing, actors.WaitFocused}, before.Wait)
					}
				case actors.SubmitLate:
					require.Empty(t, under, "two late answers at once")
					under = fx.Submission
					require.Equal(t, actors.ChannelLate, before.Channel)
				case actors.HideCard:
					require.False(t, r.Unkeyed())
				case actors.CardTimer:
					require.False(t, closed && fx.After >= 0, "a closed card ticks no more")
				case actors.CardChanged:
					changed = true
				}
			}
			require.True(t, changed || before == after, "every change is told")
			require.True(t, !closed || after.Closed, "closing is final")
			require.Equal(t, r.timerAt >= 0, after.Running && !after.Closed, "the tick runs with the countdown (Q-182)")
			require.Equal(t, r.Ticking(), r.timerAt >= 0)
			require.Equal(t, under != "", after.Sending)
			require.GreaterOrEqual(t, after.RemainingMS, int64(0))
			if !after.Counts {
				require.Zero(t, after.RemainingMS, "no countdown without a deadline (Q-176)")
			}
			if after.Running {
				require.True(t, after.Counts)
				require.Contains(t, []actors.CardWait{actors.WaitCounting, actors.WaitContinued}, after.Wait, "a touched card does not count (Q-178 to Q-181)")
			}
			if after.Counts {
				require.Equal(t, actors.ChannelLive, after.Channel, "a countdown is the attached request's")
			}
			if after.Channel == actors.ChannelLate {
				require.Equal(t, actors.CardContinued, after.State)
			}
		}
		send := func(in actors.CardInput) {
			if req, ok := in.(actors.Requested); ok {
				if settled[req.ID] { // ids are not used again
					return
				}
				if _, known := timed[req.ID]; !known {
					timed[req.ID] = !req.Never
				}
			}
			if reply, ok := in.(actors.LateReplied); ok && reply.Submission == under {
				under = ""
			}
			before, at := r.View(), r.now
			r.send(in)
			_, closing := in.(actors.CardClosed)
			closed = closed || closing
			check(in, before, at)
		}
		for n := range rapid.IntRange(20, 60).Draw(t, "inputs") {
			for stop := r.now.Mono + rapid.Int64Range(0, 2500).Draw(t, "passes"); r.now.Mono < stop; {
				to := stop
				if r.timerAt >= 0 {
					to = min(stop, r.timerAt)
				}
				r.now.Wall, r.now.Mono = r.now.Wall+to-r.now.Mono, to
				if r.timerAt == to {
					r.timerAt = -1
					send(actors.Ticked{Gen: r.gen})
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "jumps") == 0 {
				r.now.Wall += rapid.Int64Range(-5000, 5000).Draw(t, "jump")
			}
			in := drawCardInput(t, n)
			if tick, ok := in.(actors.Ticked); ok && tick.Gen == r.gen {
				continue // the timer fires by itself
			}
			send(in)
		}
	})
}
