package main

import (
	"fmt"
	"strings"
)

// reason is why some statements need not be reached by the simulation, or that
// they should be.
type reason struct {
	title  string
	kind   string // see the constants
	claims []*claim
}

// Kinds of reasons: their first word, with a colon.
const (
	tested  = "tested"  // tests elsewhere reach it, and no order of events changes it
	missing = "missing" // no seed draws it yet, and one should
	never   = "never"   // only a mistake, a read that fails or a caller that goes away leads there
)

// claim is one line below a reason: the statements that it is about.
type claim struct {
	line           int
	file, function string // no function: all of the file
	text           string // a part of the block's text; none: all of the function
	some           bool   // with * for the text or the function: whatever of it is unreached
	blocks         []*block
}

// parse reads the file of reasons:
//
//	== tested: why these need not be in the simulation
//	actors/tool.go (*checker).text
//	sessionlog/codec.go *
//	== never: why these cannot be reached
//	actors/fold.go (*batch).add: panic(
//
// A line without a text is about a function that is never called, one without a
// function about a file of which nothing is reached; with * for the text or the
// function, about whatever of the function or the file is not.
func parse(text string) ([]*reason, error) {
	var out []*reason
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if title, ok := strings.CutPrefix(line, "== "); ok {
			kind, words, _ := strings.Cut(title, ": ")
			if kind != tested && kind != missing && kind != never {
				return nil, fmt.Errorf("simulation/unreached.txt:%d: a reason is tested, missing or never: %q", n, title)
			}
			out = append(out, &reason{title: words, kind: kind})
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("simulation/unreached.txt:%d: a line before the first reason", n)
		}
		c := &claim{line: n}
		var rest string
		c.file, rest, _ = strings.Cut(line, " ")
		c.function, c.text, _ = strings.Cut(rest, ": ")
		switch {
		case c.function == "*":
			c.function, c.some = "", true
		case c.text == "*":
			c.text, c.some = "", true
		}
		last := out[len(out)-1]
		last.claims = append(last.claims, c)
	}
	return out, nil
}

// covers tells whether the claim is about a block.
func (c *claim) covers(b *block) bool {
	return c.file == b.file && (c.function == "" || c.function == b.function) && strings.Contains(b.text, c.text)
}

// join gives each block that the simulation does not reach its reason, the first
// that is about it, and returns what is wrong.
func join(blocks []*block, reasons []*reason) (faults []string) {
	for _, b := range blocks {
		if b.simulated {
			continue
		}
		if r, c := reasonOf(b, reasons); c != nil {
			b.reason, c.blocks = r, append(c.blocks, b)
			if r.kind == tested && !b.tested {
				faults = append(faults, fmt.Sprintf("simulation/unreached.txt:%d: is tested nowhere: %s", c.line, b))
			}
			continue
		}
		by := ""
		if b.tested {
			by = " # tested"
		}
		faults = append(faults, "no reason: "+b.String()+by)
	}
	for _, r := range reasons {
		for _, c := range r.claims {
			if len(c.blocks) == 0 {
				faults = append(faults, fmt.Sprintf("simulation/unreached.txt:%d: is about nothing that is unreached and has no reason: %s %s %s", c.line, c.file, c.function, c.text))
			} else if b := c.tooMuch(blocks); b != nil {
				faults = append(faults, fmt.Sprintf("simulation/unreached.txt:%d: says that none of it is reached, but this is: %s", c.line, b))
			}
		}
	}
	return faults
}

func reasonOf(b *block, reasons []*reason) (*reason, *claim) {
	for _, r := range reasons {
		for _, c := range r.claims {
			if c.covers(b) {
				return r, c
			}
		}
	}
	return nil, nil
}

// tooMuch is a block that is reached, of a function or file that is said not to
// be.
func (c *claim) tooMuch(blocks []*block) *block {
	if c.text != "" || c.some {
		return nil
	}
	for _, b := range blocks {
		if b.simulated && c.covers(b) {
			return b
		}
	}
	return nil
}

// String is the line that would be about the block.
func (b *block) String() string {
	const most = 110
	text := b.text
	if len(text) > most {
		text = text[:most]
	}
	return b.file + " " + b.function + ": " + text
}
