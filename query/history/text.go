package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// The texts of results. They are the contract, character by character.
const (
	noSessions   = "No prior session matches found."
	noEvents     = "No prior event matches found."
	capped       = "\n\nResult cap reached. Narrow the query or add filters to find additional matches."
	outsideOne   = "[outside workspace]"
	outsideAbove = "- [outside workspace boundary]"
	outsideBelow = "- [outside workspace subtree]"
	untitled     = "untitled"
)

// title is S-110's; what keeps a log from being read shows by its code alone (S-111).
func (s Session) title() string {
	switch {
	case s.Damage != "":
		code := s.Damage
		if known, ok := translated[code]; ok {
			code = known
		}
		if _, ok := fixed[code]; !ok {
			code = messages.QueryFailed
		}
		return untitled + " (title unavailable: " + string(code) + ")"
	case s.Title == "":
		return untitled
	}
	return s.Title
}

func (s Session) heading() string { return "Session " + s.ID + " — " + s.title() }

func (s Session) availability() string {
	switch {
	case s.Live && s.Persisted:
		return "live, persisted"
	case s.Live:
		return "live"
	}
	return "persisted"
}

// sessionsText is S-020.
func sessionsText(hits []Hit, visible []string, more bool) string {
	if len(hits) == 0 {
		return noSessions
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Session search results (%d):", len(hits))
	for i, h := range hits {
		parent := h.Session.Parent
		if parent == "" {
			parent = "root"
		} else if !slices.Contains(visible, parent) {
			parent = outsideOne
		}
		fmt.Fprintf(&b, "\n\n%d. %s\n   Created: %s\n   Parent: %s\n   Availability: %s\n   Best match: %s\n   Snippet: %s",
			i+1, h.Session.heading(), iso(h.Session.Created), parent, h.Session.availability(), h.place(), h.Snippet)
	}
	if more {
		b.WriteString(capped)
	}
	return b.String()
}

func (h Hit) place() string { return place(h.Seq, h.Type, h.Surface, h.Time) }

func place(seq int64, typ string, class sessionlog.Class, ms int64) string {
	return fmt.Sprintf("seq %d | %s | %s | %s", seq, typ, class, iso(ms))
}

// eventsText is S-052.
func eventsText(s Session, hits []Hit, more bool) string {
	if len(hits) == 0 {
		return s.heading() + "\n\n" + noEvents
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nEvent search results (%d):", s.heading(), len(hits))
	for i, h := range hits {
		fmt.Fprintf(&b, "\n%d. %s\n   Snippet: %s", i+1, h.place(), h.Snippet)
	}
	if more {
		b.WriteString(capped)
	}
	return b.String()
}

// lineageText is S-100.
func lineageText(s Session, up []Session, hidden bool, down []*node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nCreated: %s\nAvailability: %s\n\nAncestors (nearest first):", s.heading(), iso(s.Created), s.availability())
	for _, a := range up {
		b.WriteString("\n- " + a.line())
	}
	switch {
	case hidden:
		b.WriteString("\n" + outsideAbove)
	case len(up) == 0:
		b.WriteString("\n- none (target is a root session)")
	}
	b.WriteString("\n\nDescendants:")
	if len(down) == 0 {
		b.WriteString("\n- none")
	}
	writeTree(&b, down, "\n")
	return b.String()
}

func writeTree(b *strings.Builder, level []*node, indent string) {
	for _, n := range level {
		if n.hidden {
			b.WriteString(indent + outsideBelow)
			continue
		}
		b.WriteString(indent + "- " + n.line())
		writeTree(b, n.children, indent+"  ")
	}
}

func (s Session) line() string {
	return s.ID + " — " + s.title() + " | " + iso(s.Created) + " | " + s.availability()
}

// relationsText is S-081.
func relationsText(s Session, log Log, seq int64, r relations) string {
	ev := log.Events[seq]
	by := "none"
	if r.replacedBy >= 0 {
		by = strconv.FormatInt(r.replacedBy, 10)
	}
	return fmt.Sprintf("%s\nTarget: %s\nReplaced by: %s\nReplacement chain: %s\nEvents replaced by target: %s\nEvents cited directly as sources: %s\nDirect derived events: %s",
		s.heading(), place(seq, ev.Type, log.Surface.Class(seq), ev.Time), by, numbers(r.chain), numbers(r.replaced), numbers(r.cited), numbers(r.derived))
}

func numbers(seqs []int64) string {
	if len(seqs) == 0 {
		return "none"
	}
	var b []byte
	for i, n := range seqs {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}

// readText is S-090.
func readText(s Session, log Log, seq int64, before, after []sessionlog.Event) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nTarget event seq %d:\n```json\n", s.heading(), seq)
	if line := wholeLine(log, log.Events[seq]); json.Indent(&b, line, "", "  ") != nil {
		b.Write(line)
	}
	b.WriteString("\n```")
	neighbours(&b, log, "\n\nBefore:", before)
	neighbours(&b, log, "\n\nAfter:", after)
	return b.String()
}

func neighbours(b *bytes.Buffer, log Log, title string, events []sessionlog.Event) {
	if len(events) == 0 {
		return
	}
	b.WriteString(title)
	for _, ev := range events {
		fmt.Fprintf(b, "\n- seq %d | %s | %s", ev.Seq, ev.Type, iso(ev.Time))
		if log.Concealed[ev.Seq] {
			b.WriteString(" | (hidden: a sensitive answer)")
			continue
		}
		text := sessionlog.SemanticText(ev)
		if text == "" {
			b.WriteString(" | (no semantic text)")
			continue
		}
		b.WriteString("\n  " + strings.ReplaceAll(text, "\n", "\n  "))
	}
}
