package simulation

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The script that docs/simulation.md shows is one, and its trace has the lines that
// the page has of it.
func TestPageShowsAScript(t *testing.T) {
	text, err := os.ReadFile("../docs/simulation.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```\n# ")
	require.True(t, found)
	script, _, _ := strings.Cut(rest, "```")
	p, err := ParseScript("# " + script)
	require.NoError(t, err)
	require.Len(t, p.Parties, 2)
	r := Run(p, Options{Keep: true})
	require.Empty(t, r.Failures)

	_, rest, _ = strings.Cut(string(text), "Of the script below:\n\n```\n")
	lines, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	for line := range strings.Lines(lines) {
		begins, _, _ := strings.Cut(strings.TrimSpace(line), "…")
		require.True(t, slices.ContainsFunc(r.Lines, func(l Line) bool { return strings.HasPrefix(l.String(), begins) }), line)
	}
}

// Whatever docs/simulation.md names by its path is there, so that its commands
// can be followed.
func TestPageNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../docs/simulation.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`simulation/[a-z0-9/._-]+\.(patch|script|go|txt)`).FindAllString(string(text), -1)
	require.Contains(t, named, "simulation/example_test.go")
	for _, name := range named {
		require.FileExists(t, "../"+name)
	}
}

// docs/simulation.md has every profile, verb and invariant.
func TestPage(t *testing.T) {
	const name = "../docs/simulation.md"
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	page := string(text)
	for _, part := range []struct{ name, text string }{
		{"profiles", profileTable()}, {"verbs", verbTable()}, {"invariants", invariantTable()},
	} {
		begin, end := "<!-- "+part.name+": written by go test ./simulation -run TestPage -update -->\n", "<!-- end of "+part.name+" -->"
		head, rest, found := strings.Cut(page, begin)
		require.True(t, found, begin)
		_, tail, found := strings.Cut(rest, end)
		require.True(t, found, end)
		page = head + begin + "\n" + part.text + "\n" + end + tail
	}
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(name, []byte(page), 0o600))
		return
	}
	require.True(t, page == string(text), "it is old: go test ./simulation -run TestPage -update writes it again")
}

func profileTable() string {
	var b strings.Builder
	b.WriteString("| profile | |\n|---|---|\n")
	for _, p := range Profiles {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.Name, p.Says)
	}
	return b.String()
}

func verbTable() string {
	var b strings.Builder
	for i, kind := range []PartyKind{AgentParty, PersonParty, ClientParty} {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "| %s | what it does |\n|---|---|\n", map[PartyKind]string{AgentParty: "an agent", PersonParty: "a person", ClientParty: "a client"}[kind])
		for _, v := range verbs {
			if v.kind == kind {
				fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(v.form(), "|", `\|`), v.says)
			}
		}
	}
	return b.String()
}

func invariantTable() string {
	var b strings.Builder
	b.WriteString("| invariant | what it says | guards |\n|---|---|---|\n")
	for _, i := range Invariants {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", i.Name, i.Says, strings.Join(i.Guards, ", "))
	}
	return b.String()
}
