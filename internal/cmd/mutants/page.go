package main

import (
	"errors"
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

// What a row says of a mutant that no invariant catches, and that no unit test does.
const (
	survives = "**survives**"
	noUnit   = "none"
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
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.name, cell(m.fault), m.seedsCell(), m.byCell(), m.unitCell(o))
	}
	return b.String()
}

// cell is a text that is no end of a column.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func (m *mutant) seedsCell() string { return fmt.Sprint(m.found.Seeds) }

func (m *mutant) byCell() string {
	if !m.caught() {
		return survives
	}
	return m.found.Invariant
}

func (m *mutant) unitCell(o *options) string {
	switch {
	case !o.units:
		return "not asked"
	case m.units == "":
		return noUnit
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

// recall fills in, from the page's table, what the mutants came to that were not
// asked this time, and returns how long it took. What was caught within fewer seeds
// is caught within more.
func recall(path string, all, asked []*mutant, o *options) (took time.Duration, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, table, _ := strings.Cut(string(text), from)
	sum := sumLine.FindStringSubmatch(table)
	if sum == nil {
		return 0, fmt.Errorf("%s: it has no table to keep rows of; make mutants writes it", path)
	}
	if within, err := strconv.Atoi(sum[1]); err != nil || o.seeds < within {
		return 0, errors.Join(err, fmt.Errorf("%s: its table is about %s seeds each, and these were given %d; use -seeds", path, sum[1], o.seeds))
	}
	for _, m := range all {
		if slices.Contains(asked, m) {
			continue
		}
		_, row, has := strings.Cut(table, "\n| "+m.name+" | "+cell(m.fault)+" | ")
		row, _, _ = strings.Cut(row, " |\n")
		cells := strings.Split(row, " | ")
		if !has || len(cells) != 3 {
			return 0, fmt.Errorf("%s: it has no row of %s, as that is now; make mutants writes all", path, m.name)
		}
		if m.found.Seeds, err = strconv.Atoi(cells[0]); err != nil {
			return 0, fmt.Errorf("%s: %s: %w", path, m.name, err)
		}
		if cells[1] != survives {
			m.found.Invariant = cells[1]
		}
		if cells[2] != noUnit {
			m.units = cells[2]
		}
	}
	return time.ParseDuration(sum[2])
}

// sumLine is what a table begins with: within how many seeds, and how long it took.
var sumLine = regexp.MustCompile(`^\d+ of \d+ mistakes were caught by an invariant within (\d+) seeds each, .* in (\S+)\.\n`)

func between(text, table string) (string, error) {
	head, rest, begins := strings.Cut(text, from)
	_, tail, ends := strings.Cut(rest, until)
	if !begins || !ends {
		return "", fmt.Errorf("it has no lines %q and %q for the table to stand between", strings.TrimSpace(from), strings.TrimSpace(until))
	}
	return head + from + table + until + tail, nil
}
