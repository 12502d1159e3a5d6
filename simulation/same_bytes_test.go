package simulation_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// Same seed, same bytes: whole traces of seeds of every profile, each line of
// them, from processes that have nothing else in common. In one a run comes
// after all those before it, on one processor; in one after all those behind it,
// so that its hosts have other pasts; in one beside another, on two processors;
// in one it is the first and only. At length (`make sim`) it is 200 seeds, and
// the processes also run both raced and not.
func TestSameSeedSameBytesEverywhere(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	seeds, alone := 15, 4
	long := os.Getenv(seedsVariable) != ""
	if long {
		seeds, alone = min(seedsOf(t, 0), 200), 40
	}
	runs := seeds * len(simulation.Profiles)

	first := tracesOf(t, self, order{runs: runs, processors: 1})
	require.Len(t, first, runs)
	like := func(binary string, o order) func(t *testing.T) {
		return func(t *testing.T) { requireSameTraces(t, first[o.from:o.from+o.runs], tracesOf(t, binary, o)) }
	}
	t.Run("again", like(self, order{runs: runs, processors: 1}))
	t.Run("last first", like(self, order{runs: runs, processors: 1, backward: true}))
	t.Run("on two processors", like(self, order{runs: runs, processors: 2}))
	t.Run("alone", func(t *testing.T) {
		for i := range alone {
			like(self, order{from: (i*runs + runs - 1) / alone, runs: 1, processors: 1})(t)
		}
	})
	if !long {
		return
	}
	for _, race := range []bool{true, false} {
		if race == raced() {
			continue // that was this binary
		}
		t.Run(fmt.Sprintf("race=%v", race), func(t *testing.T) {
			other := build(t, race)
			t.Run("on one processor", like(other, order{runs: runs, processors: 1}))
			t.Run("on two processors", like(other, order{runs: runs, processors: 2}))
		})
	}
}

// order says what a process is to run: some of the runs, a seed of each profile
// in turn, and how.
type order struct {
	from, runs int
	processors int // as many runs side by side
	backward   bool
}

// tracesVariable tells a process of this test its order, and the file for the
// traces.
const tracesVariable = "PARLEY_SIM_TRACES"

const orderForm = "%d %d %d %v %s"

// endOfTrace is the last line of each.
const endOfTrace = "== end\n"

func tracesOf(t *testing.T, binary string, o order) []string {
	t.Helper()
	began := time.Now()
	file := filepath.Join(t.TempDir(), "traces")
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^TestWriteTraces$", "-test.count", "1", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", o.processors),
		tracesVariable+"="+fmt.Sprintf(orderForm, o.from, o.runs, o.processors, o.backward, file))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	traces := strings.SplitAfter(string(text), endOfTrace)
	if o.runs > 1 {
		t.Logf("%d traces, %d bytes in %v", len(traces)-1, len(text), time.Since(began).Round(time.Millisecond))
	}
	return traces[:len(traces)-1] // nothing is behind the last
}

// requireSameTraces shows the first line that differs.
func requireSameTraces(t *testing.T, want, got []string) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		a, b := strings.Split(want[i], "\n"), strings.Split(got[i], "\n")
		n := 0
		for n < len(a) && n < len(b) && a[n] == b[n] {
			n++
		}
		require.FailNow(t, "two runs of one seed differ", "%s\nbefore:\n%s\nline %d was\n%s\nand is\n%s",
			a[0], strings.Join(a[max(0, n-3):n], "\n"), n, strings.Join(a[n:min(n+1, len(a))], ""), strings.Join(b[n:min(n+1, len(b))], ""))
	}
}

// TestWriteTraces is a process of TestSameSeedSameBytesEverywhere.
func TestWriteTraces(t *testing.T) {
	text := os.Getenv(tracesVariable)
	if text == "" {
		return // nobody asked
	}
	var o order
	var file string
	_, err := fmt.Sscanf(text, orderForm, &o.from, &o.runs, &o.processors, &o.backward, &file)
	require.NoError(t, err)
	require.Equal(t, o.processors, runtime.GOMAXPROCS(0))
	traces := make([]string, o.runs)
	var wg sync.WaitGroup
	for worker := range o.processors {
		wg.Go(func() {
			for i := worker; i < o.runs; i += o.processors {
				at := i
				if o.backward {
					at = o.runs - 1 - i
				}
				traces[at] = traceOf(o.from + at)
			}
		})
	}
	wg.Wait()
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(traces, "")), 0o600))
}

// traceOf is everything that a run says.
func traceOf(run int) string {
	profile := simulation.Profiles[run%len(simulation.Profiles)]
	seed := uint64(run / len(simulation.Profiles))
	r := simulation.Run(simulation.Draw(seed, profile), simulation.Options{Keep: true})
	var lines []byte
	for _, l := range r.Lines {
		lines = l.Bytes(lines)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(lines)); !strings.HasPrefix(sum, r.Sum) || r.Sum == "" {
		panic("the sum is not that of the lines")
	}
	return fmt.Sprintf("== seed %d, %s\n%s== sum %s, %d steps, %d messages, %v, %d broken\n%s",
		seed, profile.Name, lines, r.Sum, r.Steps, r.Messages, r.Took, len(r.Failures), endOfTrace)
}

// raced tells whether this binary has the race detector.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// build builds these tests once more.
func build(t *testing.T, race bool) string {
	t.Helper()
	tool := cmp.Or(os.Getenv("GO"), "go")
	if race {
		requireCompiler(t, tool)
	}
	binary := filepath.Join(t.TempDir(), "simulation.test")
	cmd := exec.CommandContext(t.Context(), tool, "test", "-c", "-race="+strconv.FormatBool(race), "-o", binary, ".")
	if race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// requireCompiler leaves a test out where the race detector cannot be built.
func requireCompiler(t *testing.T, tool string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool, "env", "CC").Output()
	require.NoError(t, err)
	cc, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if _, err := exec.LookPath(cc); err != nil {
		t.Skipf("the race detector needs a C compiler, and %s is missing", cc)
	}
}
