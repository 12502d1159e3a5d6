package simulation_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation"
)

// asked is what a program was told that asks, after it has attached or not.
func asked(t *testing.T, attached bool, timeout time.Duration, person simulation.Program) (answer string, pending bool, err error) {
	t.Helper()
	p := small()
	p.Parties = append(p.Parties, simulation.PartyPlan{Kind: simulation.PersonParty, Name: "ann", Session: "s1"})
	told := false
	r, failed := simulation.Try(p, simulation.Options{Programs: map[string]simulation.Program{"ann": person, "bot": func(l *simulation.Loop) {
		if attached && l.Attach() != nil {
			return
		}
		answer, pending, err = l.Ask("q1", "May I?", timeout, "Yes", "No")
		told = true
	}}})
	require.NoError(t, failed)
	require.Empty(t, r.Failures)
	require.True(t, told)
	return answer, pending, err
}

// A refusal is neither an answer nor a pending result.
func TestAskTellsItsOutcomesApart(t *testing.T) {
	yes := func(l *simulation.Loop) { require.NoError(t, l.Answer("q1", "Yes")) }
	nobody := func(*simulation.Loop) {}

	answer, pending, err := asked(t, true, 2*time.Second, yes)
	require.NoError(t, err)
	require.False(t, pending)
	require.Equal(t, "Yes", answer)

	answer, pending, err = asked(t, true, -1, yes)
	require.NoError(t, err)
	require.False(t, pending)
	require.Equal(t, "Yes", answer)

	answer, pending, err = asked(t, true, 2*time.Second, nobody)
	require.NoError(t, err)
	require.True(t, pending)
	require.Empty(t, answer)

	_, pending, err = asked(t, false, 2*time.Second, nobody)
	require.Equal(t, messages.NotFound, messages.CodeOf(err), "nobody has attached to it yet")
	require.False(t, pending)
}

// A timeout is not cut to whole seconds: it is refused, as a node refuses it.
func TestAskRefusesPartsOfASecond(t *testing.T) {
	for _, d := range []time.Duration{1500 * time.Millisecond, 0, -2 * time.Second, time.Millisecond} {
		_, pending, err := asked(t, true, d, func(*simulation.Loop) {})
		require.Equal(t, messages.BadTimeout, messages.CodeOf(err), d)
		require.False(t, pending)
	}
}

// tried runs a plan with these programs; each has to come to its end, and no
// promise is broken.
func tried(t *testing.T, p *simulation.Plan, programs map[string]simulation.Program) *simulation.Report {
	t.Helper()
	r, err := simulation.Try(p, simulation.Options{Programs: programs, Keep: true})
	require.NoError(t, err)
	require.Empty(t, r.Failures)
	return r
}

// withPeople adds persons to whom programs can be given.
func withPeople(p *simulation.Plan, names ...string) *simulation.Plan {
	for _, name := range names {
		p.Parties = append(p.Parties, simulation.PartyPlan{Kind: simulation.PersonParty, Name: name, Session: "s1"})
	}
	return p
}

// Whoever is refused hears why: an answer to what somebody else has answered, a
// list for an agent that another has taken the session from.
func TestALoopHearsItsRefusals(t *testing.T) {
	p := withPeople(small(), "ann", "ben")
	p.Parties = append(p.Parties, simulation.PartyPlan{Kind: simulation.AgentParty, Name: "next", Session: "s1", Root: "r2"})
	var lost, replaced, again error
	tried(t, p, map[string]simulation.Program{
		"bot": func(l *simulation.Loop) {
			require.NoError(t, l.Attach())
			_, _, err := l.Ask("q1", "May I?", 60*time.Second, "Yes", "No")
			require.NoError(t, err)
			l.Sleep(10 * time.Second)
			_, token, err := l.Collect("")
			require.Empty(t, token)
			replaced = err
		},
		"ann": func(l *simulation.Loop) { require.NoError(t, l.Answer("q1", "Yes")) },
		"ben": func(l *simulation.Loop) { l.Sleep(5 * time.Second); lost = l.Answer("q1", "No") },
		"next": func(l *simulation.Loop) {
			l.Sleep(6 * time.Second)
			again = l.Attach()
		},
	})
	require.NoError(t, again)
	require.Equal(t, messages.CallerNotLive, messages.CodeOf(replaced))
	var refused *messages.Error
	require.ErrorAs(t, lost, &refused)
	require.Equal(t, messages.Settled, refused.Code)
	require.Equal(t, "ann", refused.Winner.GetBy())
}

// Nobody is there to answer: that is no refusal, and no token is lost.
func TestALoopHearsThatNobodyAnswers(t *testing.T) {
	p := small()
	p.For = 5 * time.Minute
	p.Faults = []simulation.FaultPlan{{At: time.Second, What: "crash", For: 4 * time.Minute}}
	var errs []error
	tried(t, p, map[string]simulation.Program{"bot": func(l *simulation.Loop) {
		l.Sleep(2 * time.Second)
		_, token, err := l.Collect("t1")
		require.Equal(t, "t1", token)
		errs = append(errs, l.Attach(), err)
	}})
	for _, err := range errs {
		require.ErrorIs(t, err, simulation.ErrNotTold)
	}
	require.Len(t, errs, 2)
}

// stubborn does its work whatever becomes of it, as many agents' loops do.
func stubborn(work func(), recovered *int) {
	for done := false; !done; {
		func() {
			defer func() {
				if what := recover(); what != nil {
					*recovered++
				}
			}()
			work()
			done = true
		}()
	}
}

// A loop that recovers from all that it can ends with its process all the same,
// and what it has deferred says nothing any more.
func TestALoopThatRecoversDiesWithItsProcess(t *testing.T) {
	p := small()
	p.Faults = []simulation.FaultPlan{{At: 500 * time.Millisecond, What: "kill", Party: "bot", For: 200 * time.Millisecond}}
	lives, deferred, recovered := 0, 0, 0
	r := tried(t, p, map[string]simulation.Program{"bot": func(l *simulation.Loop) {
		lives++
		stubborn(func() {
			defer func() { deferred++; l.Log(fmt.Sprintf("life %d ends", lives)) }()
			l.Sleep(time.Second)
		}, &recovered)
	}})
	require.Equal(t, 2, lives)
	require.Equal(t, 2, deferred)
	require.Zero(t, recovered)
	said := ""
	for _, line := range r.Lines {
		if line.Lane == "bot" && line.Kind == simulation.KindMark {
			said += line.Text + "\n"
		}
	}
	require.Equal(t, "life 2 ends\n", said)
}

// One that never ends is told of, by its name, and stopped.
func TestALoopThatNeverEndsIsNamed(t *testing.T) {
	recovered := 0
	r, err := simulation.Try(small(), simulation.Options{Programs: map[string]simulation.Program{"bot": func(l *simulation.Loop) {
		for {
			stubborn(func() { l.Sleep(time.Minute) }, &recovered)
		}
	}}})
	require.NoError(t, err)
	require.NotEmpty(t, r.Failures)
	require.Equal(t, "everything ends: bot has not ended", r.Failures[1].String())
}

// What a program panics with as it is unwound is not lost.
func TestAPanicOfADyingLoopIsTold(t *testing.T) {
	p := small()
	p.Faults = []simulation.FaultPlan{{At: 500 * time.Millisecond, What: "kill", Party: "bot", For: 200 * time.Millisecond}}
	r, err := simulation.Try(p, simulation.Options{Programs: map[string]simulation.Program{"bot": func(l *simulation.Loop) {
		defer func() { panic(errors.New("not now")) }()
		l.Sleep(time.Second)
	}}})
	require.NoError(t, err)
	require.Contains(t, r.Failures[0].Text, "bot, at 500 ms: not now; in simulation_test.")
}
