package main

import (
	"fmt"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// frame is what one moment of a card looks like: lines that fit the width, all of them clean. The body scrolls; its
// lines from..to are where the person is. The caret is in the body, -1 when nothing is written.
type frame struct {
	head, body, foot []string
	from, to         int
	caretRow, caret  int
}

// view draws cards. It knows the width and nothing of a terminal.
type view struct {
	c       *cli // for its colours
	width   int
	frame   frame
	warning string
}

const (
	optionIndent = 8 // "› 1 ( ) "
	bodyIndent   = 2
)

func (c *cli) view(width int) *view {
	return &view{c: c, width: max(width, widthMin), frame: frame{caretRow: -1}}
}

func (v *view) line(text string) { v.frame.body = append(v.frame.body, text) }

// text adds wrapped text behind a mark, painted with a style.
func (v *view) text(mark, text, style string) {
	for i, line := range wrap(strings.Trim(text, "\n"), max(1, v.width-cells(mark))) {
		if i > 0 {
			mark = strings.Repeat(" ", cells(mark))
		}
		v.line(mark + v.paint(style, line))
	}
}

func (v *view) paint(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return v.c.paint(style, text)
}

const (
	bold   = "1"
	dim    = "2"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// card draws the panel of one question call and the state of its wait.
func (v *view) card(row *messages.QuestionRow, c *card, p *panel, now int64) frame {
	v.title(row)
	if len(p.items) > 1 {
		v.frame.head = append(v.frame.head, v.tabs(p)...)
	}
	v.line("")
	if v.warning = p.message; p.review() {
		v.review(p)
	} else {
		v.question(p)
	}
	v.foot(c, p, now)
	return v.frame
}

func (v *view) title(row *messages.QuestionRow) {
	for _, line := range wrap(row.GetSession()+" · "+row.GetCallId(), v.width-bodyIndent) {
		v.frame.head = append(v.frame.head, "  "+v.paint(dim, line))
	}
}

// tabs has one mark for each question: answered, skipped or open.
func (v *view) tabs(p *panel) []string {
	var words []string
	for at, i := range p.items {
		words = append(words, tab(fmt.Sprintf("%d %s", at+1, markOf(i)), at == p.page))
	}
	words = append(words, tab("review", p.review()))
	var lines []string
	for _, line := range pack(words, " ", v.width-bodyIndent) {
		lines = append(lines, "  "+v.paint(cyan, strings.TrimRight(line, " ")))
	}
	return lines
}

func tab(text string, current bool) string {
	if current {
		return "[" + text + "]"
	}
	return " " + text + " "
}

func markOf(i *item) string {
	switch {
	case i.skipped:
		return "–"
	case i.answered():
		return "●"
	}
	return "○"
}

func (v *view) question(p *panel) {
	i := p.here()
	if header := i.question.GetHeader(); strings.TrimSpace(header) != "" {
		v.text("  ", oneLine(header), cyan)
	}
	v.text("  ", i.question.GetQuestion(), bold)
	if detail := i.question.GetDetail(); strings.TrimSpace(detail) != "" {
		v.line("")
		for line := range strings.SplitSeq(strings.Trim(clean(detail), "\n"), "\n") {
			v.text("  │ ", line, dim)
		}
	}
	v.line("")
	for at := range i.question.GetOptions() {
		v.option(p, i, at)
	}
	v.free(p, i)
	if i.skipped {
		v.line("")
		v.text("  ", "Skipped: no answer and no permission. s takes it back.", yellow)
	}
}

// lead is the mark in front of a row: where the person is, its number, and whether it is chosen.
func (v *view) lead(p *panel, i *item, at int, chosen bool) string {
	pointer, number, box := " ", " ", "( )"
	if at == i.cursor {
		pointer = "›"
	}
	if at < 9 {
		number = fmt.Sprint(at + 1)
	}
	switch multi := i.question.GetMultiSelect(); {
	case multi && chosen:
		box = "[x]"
	case multi:
		box = "[ ]"
	case chosen:
		box = "(•)"
	}
	return pointer + " " + number + " " + box + " "
}

func (v *view) option(p *panel, i *item, at int) {
	o, chosen, style := i.question.GetOptions()[at], false, ""
	for _, had := range i.chosen {
		chosen = chosen || had == at
	}
	if chosen {
		style = green
	} else if at == i.cursor {
		style = bold
	}
	begin := len(v.frame.body)
	v.text(v.lead(p, i, at, chosen), o.GetLabel(), style)
	if o.GetDescription() != "" {
		v.text(strings.Repeat(" ", optionIndent), o.GetDescription(), dim)
	}
	v.here(at == i.cursor && !p.writing, begin)
}

// here marks the lines added since begin as those where the person is.
func (v *view) here(is bool, begin int) {
	if is {
		v.frame.from, v.frame.to = begin, len(v.frame.body)
	}
}

// free draws the row for words of the person's own.
func (v *view) free(p *panel, i *item) {
	begin, mark, style := len(v.frame.body), "  ", ""
	if i.options() > 0 {
		mark = v.lead(p, i, i.options(), i.written())
	} else if p.writing {
		mark = "› "
	}
	if i.text == "" && !p.writing {
		hint := "something else, in your own words"
		switch {
		case i.options() == 0:
			hint = "Space writes an answer"
		case i.question.GetMultiSelect():
			hint = "add words of your own"
		}
		v.text(mark, hint, dim)
		v.here(i.atText(), begin)
		return
	}
	if i.written() {
		style = green
	}
	lines, row, col := layout(i.text, max(1, v.width-cells(mark)-1), i.caret)
	for n, line := range lines {
		if n > 0 {
			mark = strings.Repeat(" ", cells(mark))
		}
		v.line(mark + v.paint(style, line))
	}
	if p.writing {
		v.frame.caretRow, v.frame.caret = begin+row, cells(mark)+col
		v.frame.from, v.frame.to = begin+row, begin+row+1
		return
	}
	v.here(i.atText(), begin)
}

// layout breaks what is being written into lines, keeps every blank of it, and finds the caret.
func layout(text string, width, caret int) (lines []string, row, col int) {
	line, used := "", 0
	for at, r := range text {
		if at == caret {
			row, col = len(lines), used
		}
		if r == '\n' {
			lines, line, used = append(lines, line), "", 0
			continue
		}
		shown := clean(string(r))
		for line != "" && used+cells(shown) > width {
			cut := len(line)
			if space := strings.LastIndexByte(line, ' '); space >= 0 {
				cut = space + 1
			}
			head := cells(line[:cut])
			if at >= caret && row == len(lines) && col >= head {
				row, col = row+1, col-head
			}
			lines, line, used = append(lines, line[:cut]), line[cut:], used-head
		}
		line, used = line+shown, used+cells(shown)
	}
	if caret >= len(text) {
		row, col = len(lines), used
	}
	return append(lines, line), row, col
}

// review shows the whole batch before it is sent.
func (v *view) review(p *panel) {
	missing := 0
	for at, i := range p.items {
		if at > 0 {
			v.line("")
		}
		v.text(fmt.Sprintf("  %d ", at+1), i.question.GetQuestion(), bold)
		if !i.done() {
			missing++
			v.text("    ! ", "no answer yet", yellow)
			continue
		}
		a := answersOf([]*messages.Answer{i.answer()})[0]
		for _, label := range a.Selected {
			v.text("    = ", label, green)
		}
		if a.Custom != nil {
			v.text("    = ", *a.Custom, green)
		}
		if a.skipped() {
			v.text("    – ", "skipped: no answer and no permission", yellow)
		}
	}
	if missing > 0 {
		v.warning = questionsHave(missing) + " no answer. Enter goes there, s skips what is left."
	}
}

func questionsHave(n int) string {
	if n == 1 {
		return "One question has"
	}
	return fmt.Sprintf("%d questions have", n)
}

func (v *view) foot(c *card, p *panel, now int64) {
	add := func(style, text string) {
		if text == "" {
			return
		}
		for _, line := range wrap(text, v.width-bodyIndent) {
			v.frame.foot = append(v.frame.foot, "  "+v.paint(style, line))
		}
	}
	add(yellow, v.warning)
	words, alarm := statusWords(c, p, now)
	if alarm {
		add(yellow, words)
	} else {
		add("", words)
	}
	v.hints(keyWords(p))
}

// pack sets words in rows, each of them whole if it fits.
func pack(words []string, gap string, width int) (lines []string) {
	line := ""
	for _, word := range words {
		if cells(word) > width {
			word = strings.Join(wrap(word, width), "\n")
		}
		if line != "" && cells(line)+cells(gap)+cells(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += gap
		}
		line += word
	}
	return strings.Split(strings.Join(append(lines, line), "\n"), "\n")
}

func (v *view) hints(words []string) {
	for _, line := range pack(words, " · ", v.width-bodyIndent) {
		v.frame.foot = append(v.frame.foot, "  "+v.paint(dim, line))
	}
}

// statusWords is the status line: what the agent does meanwhile.
func statusWords(c *card, p *panel, now int64) (words string, alarm bool) {
	left, running, shown := c.countdown(now)
	seconds := span((left + 999) / 1000 * 1000) // rounded up
	switch {
	case p.busy:
		return "sending …", false
	case c.Unheld() && running && left > 0:
		return "The node is away. The agent's call may end in " + seconds + "; what you wrote stays here.", true
	case c.Unheld():
		return "The node is away; trying again. What you wrote stays here.", true
	case !c.open():
		return "The call has returned: your answer reaches the agent as a late reply.", false
	case running && left <= countdownNear:
		return "The agent stops waiting in " + seconds + "; any key stops that.", true
	case shown && !running:
		return "The agent waits for you: its call will not end while you have this open.", false
	case c.attached():
		return "The agent waits for you.", false
	}
	return "", false
}

func keyWords(p *panel) []string {
	several := p.pages() > 1
	goes := "Enter sends"
	if several && !p.review() {
		goes = "Enter goes on"
	}
	var words []string
	switch {
	case p.review():
		return []string{"Enter sends all", "Tab changes question", "Esc back"}
	case p.writing:
		words = []string{goes, "Shift+Enter new line", "Esc leaves the text"}
	default:
		i := p.here()
		verb := "picks"
		if i.question.GetMultiSelect() {
			verb = "toggles"
		}
		if i.options() > 0 {
			words = append(words, "digit or Space "+verb, "↑↓ move")
		}
		words = append(words, goes, "s skips", "Esc leaves")
	}
	if several {
		words = append(words, "Tab next question")
	}
	return words
}
