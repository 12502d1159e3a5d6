package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const code = `package actors

type T struct{}

func (t *T) ask(n int) int {
	if n < 0 {
		return 0
	}
	return n
}

func (t *T) never() int {
	return 1
}

func (g G[K]) Empty() {}
`

// rig is a repository of one file, of which a run reached some.
func rig(t *testing.T, simulated, tested string) []*block {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "actors"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "actors", "t.go"), []byte(code), 0o600))
	profile := func(name, text string) string {
		path := filepath.Join(root, name)
		require.NoError(t, os.WriteFile(path, []byte("mode: set\n"+text), 0o600))
		return path
	}
	blocks, err := read(root, profile("a", simulated), profile("b", tested))
	require.NoError(t, err)
	return blocks
}

// profileOf has a block for the head, the refusal and the end of ask, and for
// never; the counts say which of them were reached.
func profileOf(counts string) string {
	var out strings.Builder
	for i, at := range []string{"5.28,6.11 1", "6.11,8.3 1", "9.2,9.10 1", "12.26,14.2 1", "16.23,16.24 0"} {
		count := "0"
		if i < len(counts) {
			count = counts[i : i+1]
		}
		out.WriteString("github.com/parleyrun/parley/actors/t.go:" + at + " " + count + "\n")
	}
	return out.String() + "github.com/parleyrun/parley/actors/t.pb.go:1.1,2.2 1 0\n"
}

func faultsOf(t *testing.T, simulated, tested, reasons string) []string {
	t.Helper()
	parsed, err := parse(reasons)
	require.NoError(t, err)
	return join(rig(t, profileOf(simulated), profileOf(tested)), parsed)
}

func TestBlocksKnowTheirFunction(t *testing.T) {
	// The same block is in a profile once for each package that was tested.
	blocks := rig(t, profileOf("100")+profileOf("001"), profileOf(""))
	require.Len(t, blocks, 4, "neither what is generated nor what has no statements")
	require.Equal(t, "(*T).ask", blocks[1].function)
	require.Equal(t, "if n < 0 { return 0 }", blocks[1].text)
	require.Equal(t, "(*T).never", blocks[3].function)
	require.Equal(t, []bool{true, false, true, false}, []bool{blocks[0].simulated, blocks[1].simulated, blocks[2].simulated, blocks[3].simulated})
}

func TestEveryUnreachedStatementHasOneReason(t *testing.T) {
	const refusal, whole = "actors/t.go (*T).ask: n < 0\n", "actors/t.go (*T).never\n"
	for _, c := range []struct{ name, simulated, tested, reasons, fault string }{
		{"all is said", "1010", "", "== never: it\n# a remark\n" + refusal + whole, ""},
		{"nothing is unreached", "1111", "", "", ""},
		{"a statement without a reason", "1010", "", "== never: it\n" + whole, "no reason: actors/t.go (*T).ask: if n < 0 { return 0 }"},
		{"and it is tested", "1010", "0100", "== never: it\n" + whole, "no reason: actors/t.go (*T).ask: if n < 0 { return 0 } # tested"},
		{"a line about nothing", "1110", "", "== never: it\n" + refusal + whole, "simulation/unreached.txt:2: is about nothing"},
		{"a line that says what another has said", "1010", "", "== never: it\n" + refusal + whole + whole, "simulation/unreached.txt:4: is about nothing"},
		{"a function of which some is reached", "1011", "", "== never: it\nactors/t.go (*T).ask\n", "simulation/unreached.txt:2: says that none of it is reached"},
		{"whatever of it is not", "1011", "", "== never: it\nactors/t.go (*T).ask: *\n", ""},
		{"a file of which some is reached", "1010", "", "== never: it\nactors/t.go\n", "simulation/unreached.txt:2: says that none of it is reached"},
		{"a file of which nothing is", "", "", "== never: it\nactors/t.go\n", ""},
		{"whatever of the file is not", "1010", "", "== missing: it\nactors/t.go *\n", ""},
		{"tested, and it is", "1010", "0101", "== tested: it\nactors/t.go *\n", ""},
		{"tested, and it is not", "1010", "0100", "== tested: it\nactors/t.go *\n", "simulation/unreached.txt:2: is tested nowhere: actors/t.go (*T).never"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := faultsOf(t, c.simulated, c.tested, c.reasons)
			if c.fault == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Contains(t, faults[0], c.fault)
		})
	}
}

func TestReasonsAreWellFormed(t *testing.T) {
	_, err := parse("actors/t.go *\n")
	require.ErrorContains(t, err, "unreached.txt:1: a line before the first reason")
	_, err = parse("== perhaps: it\n")
	require.ErrorContains(t, err, "tested, missing or never")

	// Those of the repository are, and name files that there are.
	text, err := os.ReadFile("../../../simulation/unreached.txt")
	require.NoError(t, err)
	reasons, err := parse(string(text))
	require.NoError(t, err)
	require.NotEmpty(t, reasons)
	for _, r := range reasons {
		require.NotEmpty(t, r.claims, r.title)
		for _, c := range r.claims {
			require.FileExists(t, filepath.Join("../../..", c.file))
		}
	}
}

func TestTheSectionStandsBetweenItsLines(t *testing.T) {
	reasons, err := parse("== never: a | b\nactors/t.go *\n")
	require.NoError(t, err)
	blocks := rig(t, profileOf("1010"), profileOf(""))
	require.Empty(t, join(blocks, reasons))
	section := page(blocks, reasons, 7)
	require.Contains(t, section, "7 seeds and the scripts reach 2 of 4 (50.0 %)")
	require.Contains(t, section, "| *never:* a \\| b | 2 |")

	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+from+"old\n"+until+"after\n"), 0o600))
	require.NoError(t, writePage(path, section))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "before\n"+from+section+until+"after\n", string(text))
	require.NoError(t, os.WriteFile(path, []byte("no such lines\n"), 0o600))
	require.ErrorContains(t, writePage(path, section), "has no lines")
}
