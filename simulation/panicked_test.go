package simulation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

var noted map[string]bool // which nobody makes

func notes(call string) {
	noted[call] = true
}

// A program that panics is named, with the time and the lines that led there, and
// always in the same words.
func TestAPanicSaysWhoseItIs(t *testing.T) {
	try := func(program simulation.Program) simulation.Failure {
		r, err := simulation.Try(small(), simulation.Options{Programs: map[string]simulation.Program{"bot": program}})
		require.NoError(t, err)
		require.Len(t, r.Failures, 1)
		require.Equal(t, simulation.Panicked, r.Failures[0].Invariant)
		return r.Failures[0]
	}
	program := func(l *simulation.Loop) { l.Sleep(700 * time.Millisecond); notes("q1") }
	one := try(program)
	require.Regexp(t, `^bot, at 700 ms: assignment to entry in nil map; in simulation_test\.notes \(panicked_test\.go:16\), `+
		`called by simulation_test\.TestAPanicSaysWhoseItIs\.func2 \(panicked_test\.go:29\)$`, one.Text)
	require.Equal(t, one, try(program))

	require.Contains(t, try(func(*simulation.Loop) { panic("no more") }).Text, "bot, at 0 ms: no more; in simulation_test.")
	require.Contains(t, try(func(l *simulation.Loop) { panic([]*simulation.Loop{l}) }).Text, "bot, at 0 ms: [0x…]; in simulation_test.")
	require.Contains(t, try(func(*simulation.Loop) {
		var l *simulation.Loop
		l.Sleep(time.Second)
	}).Text, "nil pointer dereference; in simulation.")
}

// Who runs without Try finds the error that was panicked with.
func TestAPanicOfRunKeepsItsError(t *testing.T) {
	mine := errors.New("mine")
	defer func() {
		err, ok := recover().(error)
		require.True(t, ok)
		require.ErrorIs(t, err, mine)
	}()
	simulation.Run(small(), simulation.Options{Programs: map[string]simulation.Program{"bot": func(*simulation.Loop) { panic(mine) }}})
}

// A world that panics leaves no program behind, however many are tried.
func TestAPanicEndsTheOtherPrograms(t *testing.T) {
	p := small()
	p.Parties = append(p.Parties, simulation.PartyPlan{Kind: simulation.PersonParty, Name: "ann", Session: "s1"})
	ended := 0
	for range 3 {
		_, err := simulation.Try(p, simulation.Options{Programs: map[string]simulation.Program{
			"ann": func(l *simulation.Loop) { defer func() { ended++ }(); l.Sleep(time.Minute) },
			"bot": func(l *simulation.Loop) { l.Sleep(time.Second); notes("q1") }}})
		require.NoError(t, err)
	}
	require.Equal(t, 3, ended)
}

// A check that panics says where.
func TestAPanicOfACheckSaysWhere(t *testing.T) {
	r, err := simulation.Try(small(), simulation.Options{Check: func(*simulation.History) []simulation.Failure { notes("q1"); return nil }})
	require.NoError(t, err)
	require.Contains(t, r.Failures[0].Text, "assignment to entry in nil map; in simulation_test.notes (panicked_test.go:16), called by ")
}
