package main

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
)

// effect is what a key asks of the world around the panel.
type effect int

const (
	stay      effect = iota
	edited           // something was chosen, written or skipped: Q-180
	submit           // send the batch
	leave            // close the card and leave the question as it is
	interrupt        // likewise, by Ctrl-C
)

// item is one question with its draft. A draft sits with its question, so none can show up in another (fault M5).
type item struct {
	question *messages.Question
	chosen   []int  // options, in the order they were chosen
	text     string // free text
	shelved  string // the text that a choice took the place of: it comes back when the person writes again
	skipped  bool

	cursor int // the row the person is at: an option, or the one for free text below them
	caret  int // in text, in bytes
}

// panel is what the person has chosen and written so far, and where in it they are: a machine without I/O,
// keys in, effects out. Nothing is preselected, and no key but Enter sends anything (fault M3).
type panel struct {
	items   []*item
	page    int  // a question; or, one beyond the last of several, the review
	writing bool // keys are typing (fault U5)
	busy    bool // a submission is under way: all inputs are frozen
	message string
	scroll  int // lines the person moved away from where the cursor is; the view bounds it
	follow  bool
}

func newPanel(questions []*messages.Question) *panel {
	p := &panel{}
	for _, q := range questions {
		p.items = append(p.items, &item{question: q})
	}
	p.open(0)
	return p
}

// review reports whether the person is at the review step: there is one for several questions, and none for one.
func (p *panel) review() bool { return p.page == len(p.items) }

func (p *panel) pages() int {
	if len(p.items) > 1 {
		return len(p.items) + 1
	}
	return 1
}

func (p *panel) here() *item { return p.items[p.page] }

// open goes to a page, within bounds. It is no edit and clears the message. A question without options is
// answered by writing, so keys are typing there.
func (p *panel) open(page int) {
	p.page, p.message, p.scroll, p.follow = min(max(page, 0), p.pages()-1), "", 0, false
	p.writing = !p.review() && len(p.here().question.GetOptions()) == 0
	if p.writing {
		p.here().caret = len(p.here().text)
	}
}

func (i *item) options() int { return len(i.question.GetOptions()) }

func (i *item) atText() bool { return i.cursor == i.options() }

func (i *item) written() bool { return strings.TrimSpace(i.text) != "" }

func (i *item) answered() bool { return len(i.chosen) > 0 || i.written() }

func (i *item) done() bool { return i.skipped || i.answered() }

// answer is the item as it is sent.
func (i *item) answer() *messages.Answer {
	a := &messages.Answer{Id: i.question.GetId()}
	if i.skipped {
		return a
	}
	text := strings.TrimSpace(i.text)
	if text == "" || i.question.GetMultiSelect() {
		for _, at := range i.chosen {
			a.Selected = append(a.Selected, i.question.GetOptions()[at].GetLabel())
		}
	}
	if text != "" {
		a.Custom = &text
	}
	return a
}

func (p *panel) answers() []*messages.Answer {
	var out []*messages.Answer
	for _, i := range p.items {
		out = append(out, i.answer())
	}
	return out
}

// started reports whether there is anything that could be lost.
func (p *panel) started() bool {
	return slices.ContainsFunc(p.items, func(i *item) bool { return i.answered() || strings.TrimSpace(i.shelved) != "" })
}

// first is the first question of a kind, -1 when there is none.
func (p *panel) first(kind func(*item) bool) int { return slices.IndexFunc(p.items, kind) }

// key is one key of the person.
func (p *panel) key(k key) effect {
	switch {
	case k.name == keyInterrupt:
		return interrupt
	case p.busy:
		return stay
	case p.writing:
		return p.write(k)
	case p.review():
		return p.reviewKey(k)
	}
	return p.choose(k)
}

// choose is a key on a question's options.
func (p *panel) choose(k key) effect {
	i := p.here()
	switch {
	case k.name == keyEscape:
		return leave
	case k.name == keyEnter:
		return p.enter()
	case p.moved(k):
		return stay
	case k.name == keyPaste:
		p.startWriting()
		return p.write(k)
	case k.name == keyUp || k.is('k'):
		p.move(-1)
	case k.name == keyDown || k.is('j'):
		p.move(1)
	case k.is(' ') && i.atText(), k.is('i'), k.is('o'):
		p.startWriting()
	case k.is(' '):
		return p.pick(i.cursor)
	case k.is('s'):
		return p.skip()
	case k.name == keyRune && k.text >= "1" && k.text <= "9":
		return p.digit(int(k.text[0] - '1'))
	}
	return stay
}

// moved takes the keys that only look elsewhere, on every page.
func (p *panel) moved(k key) bool {
	switch {
	case k.name == keyTab || k.name == keyRight && !p.writing:
		p.turn(1)
	case k.name == keyBackTab || k.name == keyLeft && !p.writing:
		p.turn(-1)
	case k.name == keyPageUp:
		p.scroll, p.follow = p.scroll-1, false
	case k.name == keyPageDown:
		p.scroll, p.follow = p.scroll+1, false
	default:
		return false
	}
	return true
}

// turn changes the question, around the end too.
func (p *panel) turn(by int) {
	if n := p.pages(); n > 1 {
		p.open((p.page + by + n) % n)
	} else if p.writing && p.here().options() > 0 {
		p.writing = false
	}
}

func (p *panel) move(by int) {
	i := p.here()
	i.cursor = min(max(i.cursor+by, 0), i.options())
	p.message, p.follow = "", true
}

func (p *panel) startWriting() {
	i := p.here()
	if i.text == "" {
		i.text, i.shelved = i.shelved, ""
		p.onlyText(i)
	}
	i.cursor, i.caret = i.options(), len(i.text)
	p.writing, p.message, p.follow = true, "", true
}

// digit picks the option of that number; the number behind the last one is the free text.
func (p *panel) digit(at int) effect {
	i := p.here()
	switch {
	case at > i.options():
		p.message = "There is no such number here."
		return stay
	case at == i.options():
		p.startWriting()
		return stay
	}
	i.cursor, p.follow = at, true
	return p.pick(at)
}

// pick chooses an option. In a single choice it takes the place of another one and of the text, and goes on to
// the next question unless it is the last; in a multiple choice it is turned on or off.
func (p *panel) pick(at int) effect {
	i := p.here()
	i.skipped, p.message = false, ""
	if i.question.GetMultiSelect() {
		if had := slices.Index(i.chosen, at); had >= 0 {
			i.chosen = slices.Delete(i.chosen, had, had+1)
		} else {
			i.chosen = append(i.chosen, at)
		}
		return edited
	}
	i.chosen = []int{at}
	if i.written() {
		i.shelved = i.text
	}
	i.text, i.caret = "", 0
	if p.page < len(p.items)-1 {
		p.open(p.page + 1)
	}
	return edited
}

// skip marks a question as skipped, or takes that back. The person sends it by Enter, as everything else.
func (p *panel) skip() effect {
	i := p.here()
	if i.skipped = !i.skipped; !i.skipped {
		return edited
	}
	if i.written() {
		i.shelved = i.text
	}
	i.chosen, i.text, i.caret, p.message = nil, "", 0, ""
	if p.page < len(p.items)-1 {
		p.open(p.page + 1)
	}
	return edited
}

// enter goes on, or sends. It never chooses, so that alone it answers nothing.
func (p *panel) enter() effect {
	i := p.here()
	if !i.done() {
		switch {
		case p.writing:
			p.message = "Write an answer first; Esc leaves the text."
		case i.atText():
			p.startWriting()
		default:
			p.message = "Nothing is chosen yet: a digit or Space chooses, s skips."
		}
		return stay
	}
	if p.pages() == 1 {
		return submit
	}
	p.open(p.page + 1)
	return stay
}

// reviewKey is a key at the review step: what is missing is said before anything is sent.
func (p *panel) reviewKey(k key) effect {
	missing := p.first(func(i *item) bool { return !i.done() })
	switch {
	case k.name == keyEscape:
		p.open(len(p.items) - 1)
	case p.moved(k):
	case k.name == keyUp || k.is('k'):
		p.scroll, p.follow = p.scroll-1, false
	case k.name == keyDown || k.is('j'):
		p.scroll, p.follow = p.scroll+1, false
	case k.name == keyRune && k.text >= "1" && k.text <= "9" && int(k.text[0]-'1') < len(p.items):
		p.open(int(k.text[0] - '1'))
	case k.is('s') && missing >= 0:
		for _, i := range p.items {
			i.skipped = i.skipped || !i.done()
		}
		return edited
	case k.name == keyEnter && missing >= 0:
		p.open(missing)
		p.message = "This question has no answer yet."
	case k.name == keyEnter:
		return submit
	}
	return stay
}

// write is a key in the free text: typing is typing (fault U5).
func (p *panel) write(k key) effect {
	i := p.here()
	p.follow, p.message = k.name != keyPageUp && k.name != keyPageDown, ""
	switch k.name {
	case keyEscape:
		p.writing = false
		return stay
	case keyEnter:
		return p.enter()
	case keyTab, keyBackTab, keyPageUp, keyPageDown:
		p.moved(k)
		return stay
	case keyNewLine:
		return p.insert("\n")
	case keyRune, keyPaste:
		return p.insert(k.text)
	case keyBackspace:
		return p.erase(i.caret-before(i.text, i.caret), i.caret)
	case keyDelete:
		return p.erase(i.caret, i.caret+after(i.text, i.caret))
	case keyEraseWord:
		return p.erase(wordStart(i.text, i.caret), i.caret)
	case keyEraseLine:
		return p.erase(lineStart(i.text, i.caret), i.caret)
	case keyLeft:
		i.caret -= before(i.text, i.caret)
	case keyRight:
		i.caret += after(i.text, i.caret)
	case keyHome:
		i.caret = lineStart(i.text, i.caret)
	case keyEnd:
		i.caret = lineEnd(i.text, i.caret)
	case keyUp:
		i.caret = vertical(i.text, i.caret, -1)
	case keyDown:
		i.caret = vertical(i.text, i.caret, 1)
	default: // Ctrl-C was taken before
	}
	return stay
}

// insert writes at the caret. Text that does not fit is refused whole: half a paste is another text.
func (p *panel) insert(text string) effect {
	i := p.here()
	text = strings.Map(printable, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	if len(i.text)+len(text) > messages.TextBytesMax {
		p.message = "That is too long: an answer holds 65,536 bytes."
		return stay
	}
	i.text = i.text[:i.caret] + text + i.text[i.caret:]
	i.caret += len(text)
	i.skipped = false
	p.onlyText(i)
	return edited
}

// printable drops what a keyboard does not type.
func printable(r rune) rune {
	if r != '\n' && r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError) {
		return -1
	}
	return r
}

// onlyText lets a text take the place of a single choice.
func (p *panel) onlyText(i *item) {
	if i.written() && !i.question.GetMultiSelect() {
		i.chosen = nil
	}
}

func (p *panel) erase(from, to int) effect {
	i := p.here()
	if from >= to {
		return stay
	}
	i.text, i.caret = i.text[:from]+i.text[to:], from
	return edited
}

// ---- the caret ----

// before is how many bytes the letter before the caret has, with the marks on it.
func before(text string, at int) int {
	n := 0
	for n < at {
		r, size := utf8.DecodeLastRuneInString(text[:at-n])
		n += size
		if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			break
		}
	}
	return n
}

// after is how many bytes the letter behind the caret has, with the marks on it.
func after(text string, at int) int {
	_, n := utf8.DecodeRuneInString(text[at:])
	for at+n < len(text) {
		r, size := utf8.DecodeRuneInString(text[at+n:])
		if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			break
		}
		n += size
	}
	return n
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

func wordStart(text string, at int) int {
	head := strings.TrimRightFunc(text[:at], unicode.IsSpace)
	return strings.LastIndexFunc(head, unicode.IsSpace) + 1
}

// vertical is the place one line of the text above or below, as many letters from its start.
func vertical(text string, at, by int) int {
	start := lineStart(text, at)
	letters := utf8.RuneCountInString(text[start:at])
	switch {
	case by < 0 && start == 0:
		return 0
	case by < 0:
		start = lineStart(text, start-1)
	case lineEnd(text, at) == len(text):
		return len(text)
	default:
		start = lineEnd(text, at) + 1
	}
	end := lineEnd(text, start)
	for ; letters > 0 && start < end; letters-- {
		_, n := utf8.DecodeRuneInString(text[start:])
		start += n
	}
	return start
}
