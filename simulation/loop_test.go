package simulation_test

import (
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
		if attached {
			l.Attach()
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
	yes := func(l *simulation.Loop) { l.Answer("q1", "Yes") }
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
