package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// A script may wait for as long as it says, and be as large as a script can be.
func TestBoundsFollowFromThePlan(t *testing.T) {
	for name, script := range map[string]string{
		"long waits":   "for 5s\nsession s1\nagent a as r in s1\nwait 40m\nask q1 for 1h\nwait 20m\ntake\nperson p in s1\nfind q1 within 1h\nsubmit q1",
		"many waits":   "for 5s\nsession s1\nperson p in s1\n" + strings.Repeat("wait 1m\nsteer\n", 40),
		"until late":   "for 5s\nsession s1\nagent a as r in s1\nuntil 3h\nask q1 for 2s",
		"many acts":    "for 5s\nnetwork delay=0s..1s\nsession s1\nperson p in s1\n" + strings.Repeat("steer\n", 1500),
		"many to look": "for 5s\nsession s1\n" + many(100, func(i int) string { return fmt.Sprintf("client c%d in s1\nfind q within 2h", i) }) + "agent a as r in s1\nuntil 90m\nask q for 2s",
		"many sessions": "for 5s\nnetwork delay=100ms\n" + many(600, func(i int) string { return fmt.Sprintf("session s%d", i) }) +
			many(600, func(i int) string { return fmt.Sprintf("agent a%d as r in s%d\nask q for 2s", i, i) }),
	} {
		p, err := simulation.ParseScript(script)
		require.NoError(t, err, name)
		r, err := simulation.Try(p, simulation.Options{Silent: true})
		require.NoError(t, err, name)
		require.Empty(t, r.Failures, name)
		require.Empty(t, r.Stopped, name)
	}
}

func many(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

// A world that is stopped says by what, who has not ended, and what to change.
func TestAStoppedWorldSaysWhy(t *testing.T) {
	run := func(rest time.Duration, program simulation.Program) *simulation.Report {
		r, err := simulation.Try(small(), simulation.Options{Rest: rest, Programs: map[string]simulation.Program{"bot": program}})
		require.NoError(t, err)
		return r
	}
	slow := func(l *simulation.Loop) { l.Sleep(time.Hour) }
	r := run(0, slow)
	require.Regexp(t, `^stopped at 9\d+ ms by its bound of 15m\d+s after it healed, more than all that its plan waits for: somebody waits without an end; if a program only takes longer, say how long in Options.Rest$`, r.Stopped)
	require.Equal(t, simulation.Failure{Invariant: "everything ends", Text: "the world was " + r.Stopped}, r.Failures[0])
	require.Equal(t, "everything ends: bot has not ended", r.Failures[1].String())
	require.Empty(t, run(2*time.Hour, slow).Failures)

	r = run(0, func(l *simulation.Loop) {
		for {
			l.Sleep(0)
		}
	})
	require.Regexp(t, `^stopped at 0 ms by its bound of 2\d+ steps: something goes on without an end, or the plan is too large`, r.Stopped)
	require.Equal(t, "the world was "+r.Stopped, r.Failures[0].Text)
}
