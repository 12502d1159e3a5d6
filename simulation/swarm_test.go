package simulation_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// No seed breaks a promise. `make sim` runs many more.
func TestSwarmIsClean(t *testing.T) {
	r := simulation.Swarm(t.Context(), simulation.SwarmOptions{First: 1, Seeds: seedsOf(t, 200), Profiles: simulation.Profiles, KeepGoing: true})
	require.Empty(t, r.Failed)
	require.Positive(t, r.Messages)
}

// Of given seeds the same is reported, whatever runs side by side; without
// KeepGoing it is the least that failed.
func TestSwarmReportsTheSameForEveryNumberOfWorkers(t *testing.T) {
	count := func(workers int) simulation.SwarmReport {
		return simulation.Swarm(t.Context(), simulation.SwarmOptions{First: 40, Seeds: 30, Workers: workers, KeepGoing: true})
	}
	require.Equal(t, count(1), count(3))

	broken := func(workers int) simulation.SwarmReport {
		return simulation.Swarm(t.Context(), simulation.SwarmOptions{First: 5, Seeds: 30, Workers: workers, Adjust: func(p *simulation.Plan) {
			if p.Seed > 9 {
				p.Faults = append(p.Faults, simulation.FaultPlan{What: "a word that no fault has"})
			}
		}})
	}
	for _, workers := range []int{1, 4} {
		r := broken(workers)
		require.Len(t, r.Failed, 1)
		require.Equal(t, uint64(10), r.Failed[0].Seed)
		require.Equal(t, simulation.Unplanned, r.Failed[0].Failures[0].Invariant)
	}
}

func TestSwarmEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	r := simulation.Swarm(ctx, simulation.SwarmOptions{Workers: 2, Progress: func(simulation.SwarmReport) { once.Do(cancel) }})
	require.Positive(t, r.Seeds)
	require.Less(t, r.Seeds, 10)
}
