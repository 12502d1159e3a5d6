package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A seed replayed is the same run each time, as a script too.
func TestSimReplay(t *testing.T) {
	one := runCLI(t, "", "", "sim", "replay", "7", "--trace")
	require.Contains(t, one.out, " world mark heals\n")
	require.Equal(t, one.out, runCLI(t, "", "", "sim", "replay", "7", "--trace").out)

	file := filepath.Join(t.TempDir(), "seven.script")
	written := runCLI(t, "", "", "sim", "script", "7", "-o", file)
	require.Equal(t, 0, written.exit, written.err)
	require.Equal(t, one.out, runCLI(t, "", "", "sim", "replay", file, "--trace").out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), runCLI(t, "", string(text), "sim", "script", "-").out)
	require.Contains(t, runCLI(t, "", "", "sim", "script", "7", "-o", file).err, "is there already")
	require.Equal(t, 0, runCLI(t, "", "", "sim", "script", "8", "-o", file, "--force").exit)
}

func TestSimShow(t *testing.T) {
	svg := runCLI(t, "", "", "sim", "show", "7", "--format", "svg")
	require.Equal(t, 0, svg.exit, svg.err)
	require.Contains(t, svg.out, "<svg")
	file := filepath.Join(t.TempDir(), "seven.html")
	require.Equal(t, 0, runCLI(t, "", "", "sim", "show", "7", "-o", file).exit)
	html, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(html), "</html>")
}

// What is wrong is named, with what is allowed.
func TestSimRefusesWhatItCannotRun(t *testing.T) {
	for _, c := range []struct {
		stdin, args, text string
	}{
		{"", "sim replay", "replay takes SEED or FILE, got 0 arguments"},
		{"", "sim rerun", `sim has no verb "rerun"`},
		{"", "sim replay no-such-file", `"no-such-file" is no seed and no file`},
		{"", "sim replay 1 --profile wild", `there is no profile "wild"`},
		{"", "sim replay 1 --profile all", `there is no profile "all"`},
		{"", "sim run --hosts 99", "--hosts 99 is out of bounds"},
		{"", "sim run --for 10", "--for 10 has no unit"},
		{"", "sim show 1", "stdout says no format of a picture"},
		{"", "sim show 1 -o picture.png", "picture.png says no format of a picture"},
		{"", "sim shrink 1 --invariant no-such-one", `1 breaks no promise called "no-such-one"`},
		{"", "sim run --seeds 0", "--seeds 0 runs nothing"},
		{"session s1", "sim replay - --profile hard", "--profile is for seeds"},
		{"session s1\nsing", "sim replay -", `line 2: "sing" begins no line`},
	} {
		r := runCLI(t, "", c.stdin, strings.Fields(c.args)...)
		require.NotEqual(t, 0, r.exit, c.args)
		require.Contains(t, r.err, c.text, c.args)
		require.Contains(t, r.err, "next:", c.args)
		require.Empty(t, r.out, c.args)
	}
}

// Whether a seed breaks a promise is for the tests of simulation; here, that it is said.
func TestSimRun(t *testing.T) {
	r := runCLI(t, "", "", "sim", "run", "--seeds", "8", "--profile", "all", "--workers", "2", "--keep-going")
	require.Contains(t, r.out, "8 seeds, ")
	require.Contains(t, r.out, " schedules/s, ")
	require.Equal(t, r.exit == 0, strings.Contains(r.out, "8 seeds, every promise was kept\n"), r.out)
	require.Equal(t, r.exit == 1, strings.Contains(r.out, "\nreplay: parley sim replay "), r.out)
	r = runCLI(t, "", "", "sim", "run", "--seed", "7", "--hosts", "1", "--for", "3s", "--json")
	require.Contains(t, r.out, `{"seeds":1,"first":7,`)
	require.NotContains(t, r.out, "interrupted")
	require.Empty(t, r.err)
}

// Who reads only what a run has printed must not take its beginning for all of it.
func TestSimRunSaysThatItWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for args, says := range map[string]string{
		"sim run":        ", every promise was kept; interrupted before it was through\n",
		"sim run --json": `"interrupted":true}`,
	} {
		var out bytes.Buffer
		c := &cli{out: &out, err: io.Discard, self: "parley", now: time.Now, newID: newID, width: widthDefault,
			env: func(string) (string, bool) { return "", false }}
		require.Equal(t, exitInterrupted, run(ctx, strings.Fields(args), c), args)
		require.Contains(t, out.String(), says, args)
	}
}

// Where the output could not be written nothing is lost, and no node is asked.
func TestSimSaysThatItsOutputWasLost(t *testing.T) {
	for _, args := range []string{"sim run --seeds 2", "sim run --seeds 2 --json", "sim replay 7", "sim replay 7 --trace", "sim replay 7 --json",
		"sim script 7", "sim script 7 --json", "sim show 7 --format svg"} {
		var errs bytes.Buffer
		c := &cli{out: full{}, err: &errs, self: "parley", now: time.Now, newID: newID, width: widthDefault,
			env: func(string) (string, bool) { return "", false }}
		require.Equal(t, 1, run(t.Context(), strings.Fields(args), c), args)
		require.Contains(t, errs.String(), "cannot write the output: no space left", args)
		require.Contains(t, errs.String(), "the same command prints the same again: give it room to write", args)
	}
}

// The help of sim names no flag that does nothing there, and no seed as one that
// breaks something.
func TestSimHelp(t *testing.T) {
	for _, verb := range []string{"", "run", "replay", "script", "shrink", "show"} {
		help := runCLI(t, "", "", append(strings.Fields("sim "+verb), "--help")...)
		require.Equal(t, 0, help.exit)
		require.Contains(t, help.out, "--json", verb)
		for _, no := range []string{"--node", "--token", "--config", "4711"} {
			require.NotContains(t, help.out, no, verb)
		}
		require.Equal(t, help.out, runCLI(t, "", "", strings.Fields("help sim "+verb)...).out)
	}
	require.Contains(t, runCLI(t, "", "", "questions", "--help").out, "--node")
}

// The examples of the help can be followed, in their order.
func TestSimHelpExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, verb := range []string{"", "replay", "script", "show"} {
		_, rest, _ := strings.Cut(runCLI(t, "", "", append(strings.Fields("sim "+verb), "--help")...).out, "Examples:\n")
		examples, _, _ := strings.Cut(rest, "\n\n")
		for line := range strings.Lines(examples) {
			line, _, _ = strings.Cut(line, "|")
			args := strings.Fields(strings.Replace(line, "--seeds 10000", "--seeds 10", 1))[1:]
			if i := slices.Index(args, "-o"); i > 0 {
				args = append(args, "--force")
			}
			r := runCLI(t, "", "", args...)
			require.Equal(t, 0, r.exit, "%s: %s", line, r.err)
		}
	}
}
