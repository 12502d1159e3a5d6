package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const top = "../../.."

// Every mistake still fits the code, says what it stands for, and stays within
// the rooms that hold the protocol.
func TestEveryMutantApplies(t *testing.T) {
	all, err := list(top)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 40)
	named := regexp.MustCompile(`^([0-9]{2})-[a-z0-9-]+$`)
	room := regexp.MustCompile(`^(actors|sessionlog|supervisor|simulation/disk)/[a-z_]+\.go$`)
	seen := map[string]string{}
	for _, m := range all {
		number := named.FindStringSubmatch(m.name)
		require.NotNil(t, number, "%s: a name is 01-what-is-wrong.patch", m.name)
		require.Empty(t, seen[number[1]], "%s has the number of another", m.name)
		seen[number[1]] = m.name
		require.NotEmpty(t, m.fault, "%s: its first lines say what it stands for", m.name)
		require.NotEmpty(t, m.files, m.name)
		for _, file := range m.files {
			require.Regexp(t, room, file, m.name)
		}
		_, err := m.apply(top, filepath.Join(t.TempDir(), m.name))
		require.NoError(t, err, "%s: change the patch with the code it changes", m.name)
	}
}

func TestTheTableStandsBetweenItsLines(t *testing.T) {
	page := filepath.Join(t.TempDir(), "simulation.md")
	require.NoError(t, writePage(page, "one\n")) // no page yet
	require.NoError(t, writePage(page, "two\n"))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "# The simulation\n\n## Mutants\n\n"+from+"two\n"+until, string(text))

	_, err = between("a page without them", "two\n")
	require.ErrorContains(t, err, "has no lines")
}

func TestAMutantIsCaughtByAnInvariantOnly(t *testing.T) {
	require.False(t, (&mutant{found: found{Seeds: 9, Panics: 9}}).caught())
	require.True(t, (&mutant{found: found{Seeds: 9, Invariant: "one fate"}}).caught())
	table := page([]*mutant{
		{name: "01-a", fault: "stands for a", found: found{Seeds: 3, Invariant: "one fate"}, units: "actors"},
		{name: "02-b", fault: "stands for b", found: found{Seeds: 9}},
	}, &options{seeds: 9, units: true}, 0)
	require.Contains(t, table, "1 of 2 mistakes")
	require.Contains(t, table, "| 01-a | stands for a | 3 | one fate | actors |\n")
	require.Contains(t, table, "| 02-b | stands for b | 9 | **survives** | — |\n")
}
