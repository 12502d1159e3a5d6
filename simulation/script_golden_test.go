package simulation_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

var update = flag.Bool("update", false, "write the sums of the scripts again")

// Each script shows what its first line says: a promise that was once broken,
// or nearly. Its Sees lines are in the trace, in this order, no promise is
// broken, and the sum is the one beside it: the same run, byte for byte, on
// every machine.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/scripts/*.script")
	require.NoError(t, err)
	require.Greater(t, len(scripts), 5)
	for _, name := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".script"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(text), "# "), "a script says what it shows")
			plan, err := simulation.ParseScript(string(text))
			require.NoError(t, err)
			r := simulation.Run(plan, simulation.Options{Keep: true})
			require.Empty(t, r.Failures)
			requireSeen(t, r, string(text))

			sums := strings.TrimSuffix(name, ".script") + ".sum"
			if *update {
				require.NoError(t, os.WriteFile(sums, []byte(r.Sum+"\n"), 0o600))
			}
			want, err := os.ReadFile(sums)
			require.NoError(t, err, "go test ./simulation -run TestScripts -update writes it")
			require.Equal(t, string(want), r.Sum+"\n", "another run than recorded; if that is wanted: go test ./simulation -run TestScripts -update")
		})
	}
}

// requireSeen finds the texts of the Sees lines in the trace, each after the one
// before.
func requireSeen(t *testing.T, r *simulation.Report, script string) {
	t.Helper()
	at := 0
	for line := range strings.Lines(script) {
		want, sees := strings.CutPrefix(strings.TrimSpace(line), "# Sees: ")
		if !sees {
			continue
		}
		for at < len(r.Lines) && !strings.Contains(r.Lines[at].String(), want) {
			at++
		}
		require.Less(t, at, len(r.Lines), "the trace has no %q after what it has before", want)
	}
}

// seedsVariable is how many seeds the long form runs.
const seedsVariable = "PARLEY_SIM_SEEDS"

// seedsOf is a number of seeds: a few, or what `make sim` says.
func seedsOf(t *testing.T, few int) int {
	text := os.Getenv(seedsVariable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, seedsVariable)
	return n
}
