package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed rules.txt
var rulesText string

// rule is one line of rules.txt.
type rule struct {
	id, title string
	excuse    string // why no test of ours holds it; usually empty
}

// section is a heading of rules.txt and the rules under it.
type section struct {
	title string
	rules []rule
}

// must reports whether a rule without a test is an error: sections A to G.
func (s section) must() bool { return !strings.HasPrefix(s.title, "L.") }

func sections() []section {
	var out []section
	for line := range strings.Lines(rulesText) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, section{title: title})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, title, _ := strings.Cut(line, " ")
		title, excuse, _ := strings.Cut(title, " -- ")
		last := &out[len(out)-1]
		last.rules = append(last.rules, rule{id, title, excuse})
	}
	return out
}

const shown = 6 // tests named per rule; the rest is counted

func rulesPage(held map[string][]string) []byte {
	var out bytes.Buffer
	out.WriteString(`<!-- Written by internal/cmd/docs from rules.txt and the tests; run make generate. -->

# Which test holds which rule

A test counts for a rule when it names the rule in its own name (TestQ104…), in
the comment right above it, in the name of a subtest, or in another string of
its body or of what it calls in its package; or when it plays a file of vectors whose ` + "`rules`" + ` fields name it.
A range in a comment counts only when it is short.
`)
	for _, s := range sections() {
		fmt.Fprintf(&out, "\n## %s\n\n| rule | says | held by |\n|---|---|---|\n", s.title)
		for _, r := range s.rules {
			fmt.Fprintf(&out, "| %s | %s | %s |\n", r.id, cell(r.title), cell(holders(r, held[r.id])))
		}
	}
	return out.Bytes()
}

func holders(r rule, tests []string) string {
	switch {
	case len(tests) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(tests[:shown], ", "), len(tests)-shown)
	case len(tests) > 0:
		return strings.Join(tests, ", ")
	case r.excuse != "":
		return "*not ours:* " + r.excuse
	default:
		return "**no test**"
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
