package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	return "; unit test " + m.units
}

// unitLine says how many only the simulation sees; empty: nobody has asked.
func unitLine(all []*mutant, o *options) string {
	if !o.units {
		return ""
	}
	blind, asked := 0, 0
	for _, m := range all {
		if m.err == nil {
			asked++
		}
		if m.err == nil && m.units == "" {
			blind++
		}
	}
	return fmt.Sprintf("%d of %d survive the unit tests\n", blind, asked)
}

// page is the table.
func page(all []*mutant, o *options, took time.Duration) string {
	var b strings.Builder
	caught, blind := 0, 0
	for _, m := range all {
		if m.caught() {
			caught++
			if m.units == "" {
				blind++
			}
		}
	}
	fmt.Fprintf(&b, "%d of %d mistakes were caught by an invariant within %d seeds each, over all profiles in turn, in %v.\n",
		caught, len(all), o.seeds, took.Round(time.Second))
	if o.units {
		var rooms []string
		for _, r := range o.rooms {
			rooms = append(rooms, r.dir)
		}
		fmt.Fprintf(&b, "%d of those survive the unit tests, which are those of every package that can see the mistake: of %s (`.` is a whole node).\n",
			blind, strings.Join(rooms, ", "))
	}
	b.WriteString("\n| mistake | stands for | seeds | caught by | unit test that fails |\n|---|---|---:|---|---|\n")
	for _, m := range all {
		b.WriteString(m.row(o))
	}
	return b.String()
}

func (m *mutant) row(o *options) string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", m.name, cell(m.fault), m.seedsCell(), m.byCell(), m.unitCell(o))
}

// cell is a text that is no end of a column.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func (m *mutant) seedsCell() string { return fmt.Sprint(m.found.Seeds) }

func (m *mutant) byCell() string {
	if !m.caught() {
		return "**survives**"
	}
	return m.found.Invariant
}

func (m *mutant) unitCell(o *options) string {
	switch {
	case !o.units:
		return "not asked"
	case m.units == "":
		return "none"
	}
	return m.units
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

// The two sentences above the table, and a row of it.
var (
	blindLine = regexp.MustCompile(`(?m)^\d+ of those survive the unit tests`)
	sumLine   = regexp.MustCompile(`(?m)^\d+ of (\d+) mistakes were caught by an invariant within (\d+) seeds each`)
	rowLine   = regexp.MustCompile(`(?m)^\| (\d+-[^ ]+) \|.*\|\n`)
)

// rewriteRows puts the rows of some mutants in the place of those that they had.
// What was caught within fewer seeds was caught within more.
func rewriteRows(path string, chosen []*mutant, o *options) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, _ := strings.Cut(string(text), from)
	table, _, _ := strings.Cut(rest, until)
	sum := sumLine.FindStringSubmatch(table)
	if sum == nil {
		return fmt.Errorf("%s: it has no table to change rows of; make mutants writes it", path)
	}
	within, err := strconv.Atoi(sum[2])
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if o.seeds < within {
		return fmt.Errorf("%s: its table is about %d seeds each, and these were given %d; use -seeds", path, within, o.seeds)
	}
	for _, m := range chosen {
		row, found := m.row(o), false
		table = rowLine.ReplaceAllStringFunc(table, func(old string) string {
			if rowLine.FindStringSubmatch(old)[1] != m.name {
				return old
			}
			found = true
			return row
		})
		if !found {
			return fmt.Errorf("%s: it has no row of %s; make mutants writes all", path, m.name)
		}
	}
	rows := rowLine.FindAllString(table, -1)
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(row string) bool { return strings.Contains(row, "| **survives** |") })
	caught := len(rows)
	blind := len(slices.DeleteFunc(rows, func(row string) bool { return !strings.HasSuffix(row, "| none |\n") }))
	table = sumLine.ReplaceAllString(table, fmt.Sprintf("%d of %d mistakes were caught by an invariant within %d seeds each", caught, all, o.seeds))
	table = blindLine.ReplaceAllString(table, fmt.Sprintf("%d of those survive the unit tests", blind))
	return os.WriteFile(path, []byte(head+from+table+until+strings.SplitN(rest, until, 2)[1]), 0o644)
}

func between(text, table string) (string, error) {
	head, rest, begins := strings.Cut(text, from)
	_, tail, ends := strings.Cut(rest, until)
	if !begins || !ends {
		return "", fmt.Errorf("it has no lines %q and %q for the table to stand between", strings.TrimSpace(from), strings.TrimSpace(until))
	}
	return head + from + table + until + tail, nil
}
