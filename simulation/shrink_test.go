package simulation_test

import (
	"testing"

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
		r := simulation.Shrink(t.Context(), plan, o)
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
		require.Equal(t, r.Plan.String(), simulation.Shrink(t.Context(), plan, o).Plan.String())
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
	require.Nil(t, simulation.Shrink(t.Context(), simulation.Draw(1, simulation.Profiles[0]), simulation.ShrinkOptions{Invariant: "nobody promised this"}))
}
