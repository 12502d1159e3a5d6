package simulation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// A plan that is written and read is the same plan, and runs the same.
func TestScriptsSayAllOfAPlan(t *testing.T) {
	for _, profile := range simulation.Profiles {
		for seed := range uint64(1250) {
			p := simulation.Draw(seed, profile)
			read, err := simulation.ParseScript(p.String())
			require.NoError(t, err, "seed %d", seed)
			if len(p.Faults) == 0 {
				p.Faults = nil // none is none
			}
			require.Equal(t, p, read, "seed %d\n%s", seed, p)
			require.Equal(t, p.String(), read.String())
			if seed < 5 {
				require.Equal(t, simulation.Run(p, simulation.Options{}).Sum, simulation.Run(read, simulation.Options{}).Sum)
			}
		}
	}
}

// An error says where it is, and what may stand there.
func TestScriptErrorsSayWhatIsAllowed(t *testing.T) {
	const head = "session s1\nagent a as r in s1\n"
	for _, c := range []struct{ script, text string }{
		{"", "script: it has no session; one is `session s1 on h1`"},
		{"seed", "line 1: the line ends where a number is wanted: seed 4711"},
		{"seed 1 2", `line 1: "2" is too much: nothing may follow here`},
		{"hosts 0", `line 1: "0" stands where a number of hosts is wanted: hosts 3; 1 to 9`},
		{"# nothing\n\nnoise", `line 3: "noise" begins no line; a line is one of seed, for, rules, network, disk, schedule, choose, lose, repeat, refuse, doubt, hosts, session, unasked, agent, person, client, at, or a verb of the agent, person or client above`},
		{"for ever", `line 1: "ever" stands where a time is wanted: for 1.5s, or with ms, m, h`},
		{"for 48h", "line 1: for 48h is too long or too short: 0s to 24h"},
		{"rules speed=3", `line 1: "speed=3" is no setting of these: timeout=3s, grace=700ms, expiry=first or expiry=unanimous, passivate=1m`},
		{"rules expiry=never", `line 1: "expiry=never" is no setting of these: timeout=3s, grace=700ms, expiry=first or expiry=unanimous, passivate=1m`},
		{"rules timeout=1.5s", "line 1: timeout 1.5s: a question's timeout is in whole seconds"},
		{"network drop=2000", "line 1: drop=2000: a rate is 0 to 1000, in thousandths"},
		{"network delay=3s..1s", "line 1: delay 3s..1s: the longest is shorter than the shortest"},
		{"choose 0=1", `line 1: "0=1" is no choice: choose N=K lets the N-th choice (from 1) be for the K-th that could happen (from 0)`},
		{"choose 1=1 1=2", "line 1: choice 1 is made twice"},
		{"lose 3 x", `line 1: "x" stands where a number from 1 is wanted: lose 12 17`},
		{"doubt", "line 1: a number is missing: doubt 12 17"},
		{"session s1\nsession s1", "line 2: there are two sessions s1"},
		{"session a/b", `line 1: "a/b" stands where the name of a session is wanted: 1 to 40 of a-z A-Z 0-9 . _ - '`},
		{"session s1 on h2", "line 1: there is no host h2: hosts says 1"},
		{"session s1 at h1", `line 1: "at" stands where "on" is wanted: session NAME on HOST`},
		{"session s1\nagent a in s1", `line 2: "in" stands where "as" is wanted: agent NAME as ROOT in SESSION owner SESSION on HOST patient`},
		{"session s1\nperson p in s2", "line 2: there is no session s2"},
		{"session s1\nperson disk in s1", "line 2: the name disk is taken"},
		{head + "dance", "line 3: the agent a cannot dance; it can wait, until, turn, step, end, abort, ask, start, again, await, leave, unhear, finish, withdraw, take, mark, admit, claim, collect, forget, receive, listen, attach, crash"},
		{head + "ask q1", `line 3: the line ends where "for" is wanted: ask CALL for SECONDS|ever [in CALL] [with legacy+watched+two+absent+anew+live+hurried]`},
		{head + "ask q1 for 5s in", "line 3: the line ends where the name of a call is wanted: 1 to 40 of a-z A-Z 0-9 . _ - '"},
		{head + "ask :: for 5s", `line 3: "::" stands where the name of a call is wanted: 1 to 40 of a-z A-Z 0-9 . _ - '`},
		{head + "withdraw q1 in run", `line 3: "in run" is too much: withdraw CALL`},
		{head + "ask q1 for 1500ms", "line 3: for 1500ms: a question's timeout is in whole seconds"},
		{head + "ask q1 for 5s with care", `line 3: ask q1 with "care"; it may be with legacy, watched, two, absent, anew, live, hurried, joined by +`},
		{head + "step q1", `line 3: "q1" is too much: step`},
		{head + "at 1s burn h1", `line 3: "burn" stands where a fault is wanted: at TIME crash HOST for TIME, partition HOST HOST for TIME, pause HOST for TIME, clock HOST +TIME or -TIME, move SESSION to HOST, kill PARTY for TIME`},
		{head + "at 1s clock h1 10s", `line 3: "10s" stands where a jump is wanted: clock h1 +10s, or -10s`},
		{"session s1\nclient c in s1\nclock 10s", `line 3: "10s" stands where a jump is wanted: clock +10s, or -10s`},
		{head + "at 1s partition h1 h1 for 1s", "line 3: a host always hears itself: name two"},
		{head + "at 1s kill b for 1s", "line 3: there is no agent, person or client b"},
		{"session " + strings.Repeat("a", 100_000), `line 1: "aaaaaaaaaaaaaaaaaaaa" begins a word of 100000 bytes, and one may have 200`},
		{head + "at 1s move s9 to h1", "line 3: there is no session s9"},
		{"for 1s\n\nfor 2s", "line 3: for is said a second time, after line 1: one line has all of it"},
		{"seed 1\nseed 1", "line 2: seed is said a second time, after line 1: one line has all of it"},
		{"hosts 1\nhosts 2", "line 2: hosts is said a second time, after line 1: one line has all of it"},
		{"network drop=1\nnetwork duplicate=1", "line 2: network is said a second time, after line 1: one line has all of it"},
		{"network drop=1 drop=2", "line 1: drop is said twice in this line"},
		{"lose 3 4\nlose 4", "line 2: lose 4 is said twice"},
		{head + "ask q1 for 5s with two+two", "line 3: ask q1 with two+two: two is said twice"},
		{"session s1\nclient c in s1\nreload with lost+lost", "line 3: reload with lost+lost: lost is said twice"},
		{head + "withdraw q1", "line 3: withdraw q1: no agent of session s1 asks q1. If it is meant, say so in a line: unasked q1"},
		{head + "ask deploy for 2s\nawait depoly", "line 4: await depoly: no agent of session s1 asks depoly; there is deploy. If it is meant, say so in a line: unasked depoly"},
		{head + "start q2 for 2s\nask q1 for 2s\nask q2 for 2s\nclient c in s1\nhide q3", "line 7: hide q3: no agent of session s1 asks q3; there is q1, q2. If it is meant, say so in a line: unasked q3"},
		{"session s2\nperson p in s2\nsubmit q1\n" + head + "ask q1 for 2s", "line 3: submit q1: no agent of session s2 asks q1. If it is meant, say so in a line: unasked q1"},
		{head + "ask run:ptc:1 for 2s in run\nfinish urn", "line 4: finish urn: no agent of session s1 asks in urn; there is run. If it is meant, say so in a line: unasked urn"},
		{head + "ask q1 for 2s\nagain q2 for 2s", "line 4: again q2: no agent of session s1 asks q2; there is q1. If it is meant, say so in a line: unasked q2"},
		{head + asks(14) + "await q0", "line 17: await q0: no agent of session s1 asks q0; there is q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, 4 more. If it is meant, say so in a line: unasked q0"},
		{"unasked", "line 1: the line ends where the name of a call is wanted: 1 to 40 of a-z A-Z 0-9 . _ - '"},
	} {
		_, err := simulation.ParseScript(c.script)
		require.EqualError(t, err, c.text, "%q", c.script)
	}
}

// asks is a script of an agent that asks n times.
func asks(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("ask q%d for 2s\n", 11+i)
	}
	return text
}

// A script may name what nobody asks, if it says so, and what is made of a name
// that somebody asks.
func TestScriptsSayThatANameIsMeant(t *testing.T) {
	for _, script := range []string{
		"unasked q1 q2\nsession s1\nperson p in s1\nsubmit q1\nfind q2 within 1s",
		"session s1\nagent a as r in s1\nask q1 for 2s\nagain q1 for 2s\nawait q1\nperson p in s1\nsubmit q1'1",
		"session s1\nagent a as r in s1\nask run:ptc:1 for 2s in run\nagain run:ptc:1 for 2s in run\nfinish run\nperson p in s1\nsubmit run:ptc:101",
	} {
		p, err := simulation.ParseScript(script)
		require.NoError(t, err)
		again, err := simulation.ParseScript(p.String())
		require.NoError(t, err, "%s", p)
		require.Equal(t, p, again)
	}
}

func FuzzParseScript(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(simulation.Draw(seed, simulation.Profiles[0]).String())
	}
	scripts, _ := filepath.Glob("testdata/scripts/*.script") // a fixed pattern
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := simulation.ParseScript(text)
		if err != nil {
			return
		}
		again, err := simulation.ParseScript(p.String())
		require.NoError(t, err, "%s", p)
		require.Equal(t, p, again)
	})
}
