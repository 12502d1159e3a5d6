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
