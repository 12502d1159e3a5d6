package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// picker is a list of questions to choose one from: a machine without I/O. A row keeps its number for as long as the
// list is shown, so that no key meets another question than the person saw (fault W5).
type picker struct {
	rows    []*messages.QuestionRow
	cursor  int
	message string
	follow  bool
}

func answerable(row *messages.QuestionRow) bool {
	return row.GetState() == "open" || row.GetState() == "continued"
}

func sameCall(a, b *messages.QuestionRow) bool {
	return a.GetSession() == b.GetSession() && a.GetCallId() == b.GetCallId()
}

// update takes a change of a question: new ones come last, and what is over stays in its place.
func (p *picker) update(row *messages.QuestionRow) {
	at := slices.IndexFunc(p.rows, func(had *messages.QuestionRow) bool { return sameCall(had, row) })
	switch {
	case at >= 0:
		p.rows[at] = row
	case answerable(row):
		p.rows = append(p.rows, row)
	}
}

// key returns the question that was picked, and whether the list was left.
func (p *picker) key(k key) (picked *messages.QuestionRow, out effect) {
	p.follow = true
	switch {
	case k.name == keyInterrupt:
		return nil, interrupt
	case k.name == keyEscape, k.is('q'):
		return nil, leave
	case k.name == keyUp || k.is('k') || k.name == keyBackTab:
		p.cursor = max(p.cursor-1, 0)
	case k.name == keyDown || k.is('j') || k.name == keyTab:
		p.cursor = min(p.cursor+1, len(p.rows)-1)
	case k.name == keyEnter || k.is(' '):
		return p.take(p.cursor), stay
	case k.name == keyRune && k.text >= "1" && k.text <= "9" && int(k.text[0]-'1') < len(p.rows):
		p.cursor = int(k.text[0] - '1')
		return p.take(p.cursor), stay
	default:
		return nil, stay
	}
	p.message = ""
	return nil, stay
}

func (p *picker) take(at int) *messages.QuestionRow {
	row := p.rows[at]
	if !answerable(row) {
		p.message = "This one is over."
		return nil
	}
	return row
}

// textLines is how much of a question's text a list to pick from shows; the card shows all of it.
const textLines = 3

// picker draws the list.
func (v *view) picker(p *picker, now int64) frame {
	v.frame.head = []string{"  " + v.paint(bold, fitting("Which question do you answer?", v.width-bodyIndent))}
	for at, row := range p.rows {
		begin := len(v.frame.body)
		if at > 0 {
			v.line("")
		}
		v.row(at, row, at == p.cursor, now)
		v.here(at == p.cursor, begin)
	}
	if p.message != "" {
		v.frame.foot = append(v.frame.foot, "  "+v.paint(yellow, p.message))
	}
	v.hints([]string{"digit or Enter opens", "↑↓ move", "Esc leaves"})
	return v.frame
}

func (v *view) row(at int, row *messages.QuestionRow, here bool, now int64) {
	pointer, number, style := " ", " ", ""
	if here {
		pointer, style = "›", bold
	}
	if at < 9 {
		number = fmt.Sprint(at + 1)
	}
	mark := pointer + " " + number + "  "
	items := row.GetQuestions()
	text := "(its text cannot be read here)"
	if len(items) > 0 {
		text = oneLine(items[0].GetQuestion())
	}
	if len(items) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(items)-1)
	}
	lines := wrap(text, max(1, v.width-cells(mark)-1))
	for n, line := range lines[:min(len(lines), textLines)] {
		if n == textLines-1 && len(lines) > textLines {
			line += "…"
		}
		v.line(mark + v.paint(style, line))
		mark = strings.Repeat(" ", cells(mark))
	}
	state := oneLine(row.GetState())
	if answerable(row) {
		state += ", asked " + age(row.GetAskedMs(), now) + " ago"
	} else if s := row.GetSettlement(); s != nil {
		state = settledWords(s)
	}
	if row.GetState() == "open" && row.GetDeadlineMs() != 0 {
		state += ", " + leftWords(row, now)
	}
	v.text(mark, row.GetSession()+" · "+row.GetCallId()+" · "+state, dim)
}
