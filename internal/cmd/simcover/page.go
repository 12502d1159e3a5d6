package main

import (
	"fmt"
	"os"
	"strings"
)

// The section stands between these lines of the page.
const (
	from  = "<!-- unreached: written by make simcover -->\n"
	until = "<!-- end of unreached -->\n"
)

// count is a number of statements.
type count struct{ reached, all int }

func (c count) String() string {
	return fmt.Sprintf("%d of %d (%.1f %%)", c.reached, c.all, 100*float64(c.reached)/float64(max(c.all, 1)))
}

func page(blocks []*block, reasons []*reason, seeds int) string {
	var whole count
	rooms := map[string]*count{}
	why := map[*reason]int{}
	for _, b := range blocks {
		room, _, _ := strings.Cut(b.file, "/")
		if rooms[room] == nil {
			rooms[room] = &count{}
		}
		for _, c := range []*count{&whole, rooms[room]} {
			c.all += b.statements
			if b.simulated {
				c.reached += b.statements
			}
		}
		if b.reason != nil {
			why[b.reason] += b.statements
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%d seeds and the scripts reach %s statements of the rooms that run as in\nproduction.\n\n| room | statements reached |\n|---|---:|\n", seeds, whole)
	for _, room := range machines {
		if c := rooms[room]; c != nil {
			fmt.Fprintf(&s, "| `%s` | %s |\n", room, *c)
		}
	}
	s.WriteString("\nThe others: *tested* is held against what the other tests reach, *missing* is a\ndraw that should be there, and only a mistake, a read that fails or a caller that\ngoes away leads to *never*.\n\n| why | statements |\n|---|---:|\n")
	for _, r := range reasons {
		title := strings.ReplaceAll(r.title, "|", "\\|")
		fmt.Fprintf(&s, "| *%s:* %s | %d |\n", r.kind, title, why[r])
	}
	return s.String()
}

// writePage puts the section between its lines, and leaves the rest as it is.
func writePage(path, section string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, begins := strings.Cut(string(old), from)
	_, tail, ends := strings.Cut(rest, until)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q for the section to stand between", path, strings.TrimSpace(from), strings.TrimSpace(until))
	}
	return os.WriteFile(path, []byte(head+from+section+until+tail), 0o644)
}
