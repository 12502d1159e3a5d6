package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// The table stands between these lines of the page.
const (
	from  = "<!-- mutants: written by make mutants -->\n"
	until = "<!-- end of mutants -->\n"
)

// line is what the terminal shows of a mutant.
func (m *mutant) line() string {
	switch {
	case m.err != nil:
		return fmt.Sprintf("FAILED    %s: %v", m.name, m.err)
	case !m.caught():
		return fmt.Sprintf("SURVIVED  %s: %d seeds, %d with a panic, %v%s", m.name, m.found.Seeds, m.found.Panics, m.found.Took.Round(time.Millisecond), m.unitWords())
	}
	return fmt.Sprintf("caught    %s: %d seeds (%s, seed %d): %s %q%s", m.name, m.found.Seeds, m.found.Profile, m.found.Seed, m.found.Invariant, m.found.Also, m.unitWords())
}

func (m *mutant) unitWords() string {
	if m.units == "" {
		return ""
	}
	return "; unit tests of " + m.units
}

// page is the table.
func page(all []*mutant, o *options, took time.Duration) string {
	var b strings.Builder
	blind, caught := 0, 0
	for _, m := range all {
		if o.units && m.caught() && m.units == "" {
			blind++
		}
		if m.caught() {
			caught++
		}
	}
	fmt.Fprintf(&b, "%d of %d mistakes were caught by an invariant within %d seeds each, over all profiles in turn, in %v.\n",
		caught, len(all), o.seeds, took.Round(time.Second))
	if o.units {
		fmt.Fprintf(&b, "%d of those are seen by no unit test of actors, sessionlog and supervisor.\n", blind)
	}
	b.WriteString("\n| mistake | stands for | seeds | caught by | unit tests |\n|---|---|---:|---|---|\n")
	for _, m := range all {
		by, seeds, units := m.found.Invariant, fmt.Sprint(m.found.Seeds), "—"
		if !m.caught() {
			by = "**survives**"
		}
		if m.units != "" {
			units = m.units
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.name, strings.ReplaceAll(m.fault, "|", "\\|"), seeds, by, units)
	}
	return b.String()
}

// writePage puts the table between its lines, and leaves the rest as it is.
func writePage(path, table string) error {
	old, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		old, err = []byte("# The simulation\n\n## Mutants\n\n"+from+until), nil
	}
	if err != nil {
		return err
	}
	text, err := between(string(old), table)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func between(text, table string) (string, error) {
	head, rest, begins := strings.Cut(text, from)
	_, tail, ends := strings.Cut(rest, until)
	if !begins || !ends {
		return "", fmt.Errorf("it has no lines %q and %q for the table to stand between", strings.TrimSpace(from), strings.TrimSpace(until))
	}
	return head + from + table + until + tail, nil
}
