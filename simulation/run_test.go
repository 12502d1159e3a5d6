package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// The same seed gives the same trace, byte for byte.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := range uint64(20) {
		p := simulation.Draw(seed, simulation.Profiles[0])
		first, second := simulation.Run(p, simulation.Options{}), simulation.Run(p, simulation.Options{})
		require.Equal(t, first.Sum, second.Sum, "seed %d", seed)
		require.Equal(t, first.Steps, second.Steps)
	}
}

// A long run takes many steps, and is not to blame for it.
func TestADayComesToItsEnd(t *testing.T) {
	for name, seed := range map[string]uint64{"calm": 1, "hard": 2, "swarm": 8} {
		profile, _ := simulation.ProfileOf(name)
		p := simulation.Draw(seed, profile)
		p.For = simulation.ForMax
		r := simulation.Run(p, simulation.Options{Silent: true})
		require.Empty(t, r.Failures, name)
		require.Greater(t, r.Took, simulation.ForMax, name)
	}
}
