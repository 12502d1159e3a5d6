package simulation_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// A silent run is the same run.
func TestSilenceChangesNothing(t *testing.T) {
	for seed := range uint64(40) {
		p := simulation.Draw(seed, simulation.ProfileOfSeed(seed, simulation.Profiles))
		loud, silent := simulation.Run(p, simulation.Options{}), simulation.Run(p, simulation.Options{Silent: true})
		require.NotEmpty(t, loud.Sum)
		loud.Sum = ""
		require.Equal(t, loud, silent, "seed %d", seed)
	}
}

// BenchmarkSchedules runs seeds of every profile in turn, as `parley sim run`
// does: checked, without a trace, and with that command's memory setting. Run it
// with -cpu 1 for the figures of one core.
func BenchmarkSchedules(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600))
	b.ReportAllocs()
	var steps, messages int
	var simulated float64
	seed := uint64(0)
	for b.Loop() {
		seed++
		p := simulation.Draw(seed, simulation.ProfileOfSeed(seed, simulation.Profiles))
		r := simulation.Run(p, simulation.Options{Silent: true})
		require.Empty(b, r.Failures)
		steps += r.Steps
		messages += r.Messages
		simulated += r.Took.Seconds()
	}
	took := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/took, "schedules/s")
	b.ReportMetric(float64(steps)/float64(b.N), "steps/schedule")
	b.ReportMetric(float64(messages)/took, "messages/s")
	b.ReportMetric(simulated/took, "simulated-s/s")
}
