package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const top = "../../.."

// Every mistake still fits the code, says what it stands for, and stays within
// the rooms that hold the protocol.
func TestEveryMutantApplies(t *testing.T) {
	all, err := list(top)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 40)
	named := regexp.MustCompile(`^([0-9]{2,3})-[a-z0-9-]+$`)
	room := regexp.MustCompile(`^(actors|query|sessionlog|supervisor|simulation/disk)/[a-z_]+\.go$`)
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

// Of mutants that were not asked again the page keeps what it has.
func TestRowsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "simulation.md")
	a := mutant{name: "01-a", fault: "stands for a|b"}
	b, c := mutant{name: "02-b", fault: "stands for b"}, mutant{name: "03-c", fault: "stands for c"}
	asked := func(m mutant, units string, f found) *mutant { m.units, m.found = units, f; return &m }
	first := []*mutant{asked(a, "actors: TestA", found{Seeds: 3, Invariant: "one fate"}), asked(b, "", found{Seeds: 9}), asked(c, "", found{Seeds: 9})}
	o := &options{seeds: 9, units: true}
	require.NoError(t, writePage(path, page(first, o, 90*time.Second)))

	again := []*mutant{&a, asked(b, "", found{Seeds: 12, Invariant: "one result"}), &c}
	o.seeds = 8
	_, err := recall(path, again, again[1:2], o)
	require.ErrorContains(t, err, "these were given 8")
	o.seeds = 20
	took, err := recall(path, again, again[1:2], o)
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, took)
	require.Equal(t, []*mutant{first[0], again[1], first[2]}, again)

	_, err = recall(path, []*mutant{{name: "04-d"}}, nil, o)
	require.ErrorContains(t, err, "no row of 04-d")
	_, err = recall(filepath.Join(t.TempDir(), "none"), again, nil, o)
	require.ErrorContains(t, err, "no such file")
}

func TestAMutantIsCaughtByAnInvariantOnly(t *testing.T) {
	require.False(t, (&mutant{found: found{Seeds: 9, Panics: 9}}).caught())
	require.True(t, (&mutant{found: found{Seeds: 9, Invariant: "one fate"}}).caught())
	all := []*mutant{
		{name: "01-a", fault: "stands for a|b", found: found{Seeds: 3, Invariant: "one fate"}, units: "actors: TestA"},
		{name: "02-b", fault: "stands for b", found: found{Seeds: 9}},
		{name: "03-c", fault: "stands for c", found: found{Seeds: 4, Invariant: "one result"}},
	}
	o := &options{seeds: 9, units: true, rooms: []room{{dir: "actors"}, {dir: "supervisor"}}}
	table := page(all, o, 0)
	require.Contains(t, table, "2 of 3 mistakes")
	require.Contains(t, table, "1 of those survive the unit tests")
	require.Contains(t, table, "of actors, supervisor")
	require.Contains(t, table, "| 01-a | stands for a\\|b | 3 | one fate | actors: TestA |\n")
	require.Contains(t, table, "| 02-b | stands for b | 9 | **survives** | none |\n")
	require.Equal(t, "2 of 3 survive the unit tests\n", unitLine(all, o))
	o.units = false
	require.Contains(t, page(all, o, 0), "| 03-c | stands for c | 4 | one result | not asked |\n")
	require.Empty(t, unitLine(all, o))
}

// Tests that run worlds or whole nodes from outside are no unit tests; a room's
// own come first, and those that cannot see a mistake are not asked.
func TestUnitTestsAreThoseThatCanSeeTheMistake(t *testing.T) {
	o := &options{root: top}
	rooms, err := o.unitRooms()
	require.NoError(t, err)
	dirs := func(rooms []room) (out []string) {
		for _, r := range rooms {
			out = append(out, r.dir)
		}
		return out
	}
	require.Subset(t, dirs(rooms), []string{".", "actors", "journal/sqlite", "sessionlog", "simulation/disk", "supervisor"})
	for _, dir := range dirs(rooms) {
		require.NotRegexp(t, `^(cmd|e2e|simulation$|simulation/(conformance|panics))`, dir)
	}

	asked := dirs((&mutant{files: []string{"supervisor/router.go"}}).rooms(rooms))
	require.Equal(t, "supervisor", asked[0])
	require.Contains(t, asked, ".")
	require.NotContains(t, asked, "actors")
	require.Equal(t, []string{"simulation/disk"}, dirs((&mutant{files: []string{"simulation/disk/disk.go"}}).rooms(rooms)))
}

// Only a test that fails says something of a mistake.
func TestAVerdictIsATestThatFails(t *testing.T) {
	const runs = `{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"run","Test":"TestB/one"}
`
	for _, c := range []struct{ events, test, err string }{
		{events: runs + `{"Action":"fail","Test":"TestB/one"}` + "\n" + `{"Action":"fail","Test":"TestB"}` + "\n" + `{"Action":"fail"}`, test: "TestB"},
		{events: runs + `{"Action":"output","Output":"panic: nil map\n"}` + "\n" + `{"Action":"fail"}`, test: "TestB"},
		{events: runs + `{"Action":"output","Test":"TestB","Output":"panic: test timed out after 10m0s\n"}` + "\n" + `{"Action":"fail","Test":"TestB"}`, err: "do not end"},
		{events: `{"Action":"build-output","Output":"undefined: x\n"}` + "\n" + `{"Action":"build-fail"}` + "\n" + `{"Action":"fail","FailedBuild":"x"}`, err: "undefined: x"},
		{events: "go: no such tool\n", err: "no such tool"},
		{events: runs + `{"Action":"pass","Test":"TestB"}` + "\n" + `{"Action":"fail"}`, err: "no test fails"},
	} {
		test, err := verdict([]byte(c.events))
		require.Equal(t, c.test, test, c.events)
		if c.err == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.err)
	}
}

// A room as the go tool sees it: what fails is named, what hangs or does not
// build is an error, and what fails by chance is no catch.
func TestUnitTestsOfARoom(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module example.org/m\n\ngo 1.24\n")
	write("a/a.go", "package a\n\nfunc One() int { return 1 }\n")
	write("a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(One())\n\t}\n}\n")
	write("b/b.go", "package b\n\nimport \"example.org/m/a\"\n\nfunc Two() int { return a.One() + 1 }\n")
	write("b/b_test.go", "package b\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) { go Two() }\n")
	o := &options{root: root, units: true}
	var err error
	o.rooms, err = o.unitRooms()
	require.NoError(t, err)
	require.Len(t, o.rooms, 2)

	try := func(body string) (string, error) {
		write("wrong.patch", "# Stands for it.\ndiff --git a/a/a.go b/a/a.go\n--- a/a/a.go\n+++ b/a/a.go\n@@ -1,3 +1,3 @@\n package a\n \n-func One() int { return 1 }\n+func One() int { "+body+" }\n")
		m, err := read(filepath.Join(root, "wrong.patch"))
		require.NoError(t, err)
		overlay, err := m.apply(root, t.TempDir())
		require.NoError(t, err)
		return o.seenBy(m, overlay)
	}
	seen, err := try("return 2")
	require.NoError(t, err)
	require.Equal(t, "a: TestOne", seen)
	seen, err = try("return 1 + 0")
	require.NoError(t, err)
	require.Empty(t, seen)
	_, err = try("return nothing")
	require.ErrorContains(t, err, "do not build")
	write("a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) { select {} }\n")
	_, err = o.unitTests("", "a", "-test.timeout=10ms")
	require.ErrorContains(t, err, "do not end")

	write("a/a_test.go", "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestOne(t *testing.T) {\n\tif _, err := os.Stat(\"again\"); err != nil {\n\t\t_ = os.WriteFile(\"again\", nil, 0o644)\n\t\tt.Fatal()\n\t}\n}\n")
	seen, err = try("return 2")
	require.NoError(t, err)
	require.Empty(t, seen)

	write("a/a_test.go", "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestOne(t *testing.T) {\n\tif os.Remove(\"turn\") != nil {\n\t\t_ = os.WriteFile(\"turn\", nil, 0o644)\n\t\tt.Fatal()\n\t}\n}\n")
	seen, err = try("return 2")
	require.NoError(t, err)
	require.Equal(t, "a: TestOne (now and then)", seen)
}
