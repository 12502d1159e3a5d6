package simulation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation"
)

// nothingIsLate is a promise that Parley does not make: an answer always comes
// before its call gives up.
func nothingIsLate(h *simulation.History) (out []simulation.Failure) {
	for _, s := range h.Said {
		if s.Answer == nil {
			continue
		}
		if r, ok := s.Answer.Msg.(*messages.SubmitResponse); ok && r.GetSettlement().GetMessageId() != "" {
			out = append(out, simulation.Failure{Invariant: "nothing is late", Text: s.Party + " was late"})
		}
	}
	return out
}

// What is left of a plan is short, still breaks the promise, and is always the
// same.
func TestShrinkLeavesWhatIsNeeded(t *testing.T) {
	shrunk := 0
	for seed := uint64(1); shrunk < 4 && seed < 200; seed++ {
		o := simulation.ShrinkOptions{Invariant: "nothing is late", Steps: 1_000_000, Run: simulation.Options{Check: nothingIsLate}}
		plan := simulation.Draw(seed, simulation.Profiles[0])
		before := plan.String()
		r, err := simulation.Shrink(t.Context(), plan, o)
		require.NoError(t, err)
		require.Equal(t, before, plan.String(), "the plan is left as it was")
		if r == nil {
			continue
		}
		shrunk++
		t.Logf("seed %d, %d runs, %d steps, %v:\n%s", seed, r.Runs, r.Steps, r.Through, r.Plan)
		require.True(t, r.Through)
		require.Less(t, len(r.Plan.String()), 260, "one asks, another answers, nothing fails")
		require.Empty(t, r.Plan.Faults)

		read, err := simulation.ParseScript(r.Plan.String())
		require.NoError(t, err)
		require.NotEmpty(t, nothingIsLateIn(read))
		again, err := simulation.Shrink(t.Context(), plan, o)
		require.NoError(t, err)
		require.Equal(t, r.Plan.String(), again.Plan.String())
	}
	require.Equal(t, 4, shrunk)
}

func nothingIsLateIn(p *simulation.Plan) []simulation.Failure {
	return simulation.Run(p, simulation.Options{Check: nothingIsLate}).Failures
}

// What the dice decided, in place of the dice, is the same run.
func TestWhatTheDiceDecidedStandsForThem(t *testing.T) {
	for seed := range uint64(20) {
		p := simulation.Draw(seed, simulation.Profiles[2])
		one := simulation.Run(p, simulation.Options{Fix: true})
		require.Zero(t, one.Fixed.Network.Drop)
		require.Zero(t, one.Fixed.Schedule.Random)
		require.Equal(t, one.Sum, simulation.Run(one.Fixed, simulation.Options{}).Sum, "seed %d", seed)
	}
}

// What no promise is broken by is not cut down.
func TestShrinkNeedsAFailure(t *testing.T) {
	r, err := simulation.Shrink(t.Context(), simulation.Draw(1, simulation.Profiles[0]), simulation.ShrinkOptions{Invariant: "nobody promised this"})
	require.NoError(t, err)
	require.Nil(t, r)
}

// What programs remember in one run is not there in the next: else every plan
// would seem to break what one run has broken.
func TestShrinkBeginsEveryRunAnew(t *testing.T) {
	made := 0
	fresh := func() simulation.Options {
		made++
		lives := 0
		return simulation.Options{
			Programs: map[string]simulation.Program{"bot": func(l *simulation.Loop) { lives++; l.Sleep(5 * time.Second) },
				"ann": func(*simulation.Loop) {}},
			Check: func(*simulation.History) []simulation.Failure {
				if lives < 2 {
					return nil
				}
				return []simulation.Failure{{Invariant: "lives once", Text: fmt.Sprint(lives)}}
			},
		}
	}
	plan := &simulation.Plan{Hosts: 1, For: 20 * time.Second, Sessions: []simulation.SessionPlan{{Name: "s1"}},
		Rules: simulation.RulesPlan{Timeout: 3 * time.Second},
		Parties: []simulation.PartyPlan{{Kind: simulation.AgentParty, Name: "bot", Session: "s1", Root: "r1"},
			{Kind: simulation.PersonParty, Name: "ann", Session: "s1"}},
		Faults: []simulation.FaultPlan{{At: 2 * time.Second, What: "kill", Party: "bot", For: time.Second}, {At: 9 * time.Second, What: "crash", For: time.Second}}}
	r, err := simulation.Shrink(t.Context(), plan, simulation.ShrinkOptions{Fresh: fresh})
	require.NoError(t, err)
	require.Equal(t, "lives once: 2", r.Failure.String())
	require.Equal(t, r.Runs, made-2, "one more is looked at, one replaces the dice")
	require.Len(t, r.Plan.Parties, 1)
	require.Len(t, r.Plan.Faults, 1)
	require.Equal(t, "kill", r.Plan.Faults[0].What)

	_, err = simulation.Shrink(t.Context(), plan, simulation.ShrinkOptions{Run: fresh()})
	require.ErrorContains(t, err, "give Fresh")
}
