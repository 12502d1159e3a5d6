package main

import (
	"strings"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var namedKeys = map[string]keyName{
	"Enter": keyEnter, "Newline": keyNewLine, "Esc": keyEscape, "Ctrl-C": keyInterrupt, "Tab": keyTab, "BackTab": keyBackTab,
	"Up": keyUp, "Down": keyDown, "Left": keyLeft, "Right": keyRight, "Home": keyHome, "End": keyEnd, "PgUp": keyPageUp, "PgDn": keyPageDown,
	"Back": keyBackspace, "Del": keyDelete, "Word": keyEraseWord, "Line": keyEraseLine,
}

// keysOf reads a script: words are letters to type, <Name> is a key, <paste:…> a paste; "_" is the space bar.
func keysOf(script string) (keys []key) {
	for word := range strings.FieldsSeq(script) {
		name := strings.Trim(word, "<>")
		switch text, paste := strings.CutPrefix(name, "paste:"); {
		case !strings.HasPrefix(word, "<"):
			for _, r := range strings.ReplaceAll(word, "_", " ") {
				keys = append(keys, key{keyRune, string(r)})
			}
		case paste:
			keys = append(keys, key{keyPaste, strings.ReplaceAll(text, "¶", "\n")})
		case namedKeys[name] == keyNone:
			panic("no such key: " + name)
		default:
			keys = append(keys, key{name: namedKeys[name]})
		}
	}
	return keys
}

// press plays keys and returns the last effect that was not staying.
func (p *panel) press(keys []key) (last effect) {
	for _, k := range keys {
		if out := p.key(k); out != stay && out != edited {
			last = out
		}
	}
	return last
}

func wordsOf(p *panel) string {
	var out []string
	for _, a := range answersOf(p.answers()) {
		out = append(out, strings.ReplaceAll(answerWords(a, len(p.items) > 1), "(skipped: no answer and no permission)", "-"))
	}
	return strings.Join(out, "; ")
}

// Keys go in; the batch and what is to be done come out.
func TestPanelKeys(t *testing.T) {
	one, many, free := batch()[:1], batch()[1:2], batch()[2:]
	for _, c := range []struct {
		name, keys string
		questions  []*messages.Question
		want       string // the batch as it would be sent
		does       effect
	}{
		{"Enter alone answers nothing", "<Enter> <Enter>", one, "-", stay},
		{"nor does Enter where one is (Q-229)", "<Down> <Enter>", one, "-", stay},
		{"a digit picks, Enter sends", "2 <Enter>", one, "us", submit},
		{"a digit alone sends nothing (M3)", "2", one, "us", stay},
		{"Space picks", "j _ <Enter>", one, "us", submit},
		{"another one takes its place", "1 2", one, "us", stay},
		{"arrows and letters move", "<Down> <Up> j k _", one, "eu", stay},
		{"there is an end to moving", "<Up> k <Up> _", one, "eu", stay},
		{"a number that is not there", "9 <Enter>", one, "-", stay},
		{"a multiple choice is toggled", "1 2 1", many, "flaky", stay},
		{"in the order of choosing (Q-227)", "2 1 <Enter>", many, "flaky, slow", submit},
		{"text adds to a multiple choice (Q-003, M1)", "1 3 e2e <Enter>", many, "slow, e2e", submit},
		{"text takes the place of a single choice (Q-003)", "1 3 neither <Enter>", one, "neither", submit},
		{"an empty text takes nothing away", "1 3 <Esc>", one, "eu", stay},
		{"nor does a blank one", "1 3 _ _ <Esc>", one, "eu", stay},
		{"a choice takes the place of the text (Q-227)", "3 text <Esc> 1", one, "eu", stay},
		{"which is there again to go on with", "3 text <Esc> 1 3 s", one, "texts", stay},
		{"typing is typing (U5)", "3 12jkqis <Enter>", one, "12jkqis", submit},
		{"a text is trimmed (Q-232)", "_ _ yes _ _ <Enter>", free, "yes", submit},
		{"a blank text is no answer", "_ _ <Enter>", free, "-", stay},
		{"a new line", "one <Newline> two <Enter>", free, "one\ntwo", submit},
		{"no options: keys are typing at once", "s1 <Enter>", free, "s1", submit},
		{"Esc leaves the text first, and the card second", "text <Esc>", free, "text", stay},
		{"twice", "text <Esc> <Esc>", free, "text", leave},
		{"and is taken back", "text <Esc> i s", free, "texts", stay},
		{"Esc leaves the card", "<Esc>", one, "-", leave},
		{"Ctrl-C leaves from anywhere", "3 text <Ctrl-C>", one, "text", interrupt},
		{"a skip is sent by Enter only", "s", one, "-", stay},
		{"a skip is explicit", "s <Enter>", one, "-", submit},
		{"and can be taken back", "s s <Enter>", one, "-", stay},
		{"a skip takes the choice away (Q-230)", "1 s", one, "-", stay},
		{"a choice takes the skip away", "s 1", one, "eu", stay},
		{"a paste is text, whatever is in it", "<paste:1¶2¶s> <Enter>", one, "1\n2\ns", submit},
		{"Backspace", "abc <Back>", free, "ab", stay},
		{"in the middle", "abc <Left> <Back> <Left> <Del> x", free, "xc", stay},
		{"a letter with its marks is one", "ae\u0301 <Back>", free, "a", stay},
		{"a word, a line", "one <Newline> two_three <Word>", free, "one\ntwo", stay},
		{"the line", "one <Newline> two_three <Line> 4", free, "one\n4", stay},
		{"up, down, Home, End", "ab <Newline> cdef <Up> x <Down> y <Home> z <End> w", free, "abx\nzcdeyfw", stay},

		{"a single choice goes on (Q-227)", "1 1", batch(), "region: eu; tests: slow; note: -", stay},
		{"a multiple one does not", "1 1 2", batch(), "region: eu; tests: slow, flaky; note: -", stay},
		{"Enter goes on, and at last to the review", "1 1 <Enter> hi <Enter>", batch(), "region: eu; tests: slow; note: hi", stay},
		{"where Enter sends", "1 1 <Enter> hi <Enter> <Enter>", batch(), "region: eu; tests: slow; note: hi", submit},
		{"an unanswered batch is not sent (Q-232)", "1 <Tab> <Tab> <Enter>", batch(), "region: eu; tests: -; note: -", stay},
		{"not by a second Enter either", "1 <Tab> <Tab> <Enter> <Enter> <Enter> <Enter>", batch(), "region: eu; tests: -; note: -", stay},
		{"unless the rest is skipped", "1 <Tab> <Tab> s <Enter>", batch(), "region: eu; tests: -; note: -", submit},
		{"Esc leaves the review for the last question", "<BackTab> <Esc> hi", batch(), "region: -; tests: -; note: hi", stay},
		{"a draft stays with its question (M5)", "<BackTab> <BackTab> n1 <BackTab> 3 t1 <Tab> n2 <BackTab> <Tab>", batch(), "region: -; tests: t1; note: n1n2", stay},
		{"a digit at the review goes to a question", "<BackTab> 1 2", batch(), "region: us; tests: -; note: -", stay},
		{"pages are looked at, not edited (Q-226)", "<Tab> <Tab> <Tab> <Tab> <Tab>", batch(), "region: -; tests: -; note: -", stay},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPanel(c.questions)
			does := p.press(keysOf(c.keys))
			require.Equal(t, c.want, wordsOf(p))
			require.Equal(t, c.does, does)
		})
	}
}

// What an edit is decides whether the countdown stops for good: paging and moving are none.
func TestPanelEdits(t *testing.T) {
	for script, want := range map[string]effect{"<Tab>": stay, "j": stay, "<Enter>": stay, "<PgDn>": stay, "1": edited, "s": edited, "<paste:x>": edited, "<Esc>": leave} {
		require.Equal(t, want, newPanel(batch()).key(keysOf(script)[0]), script)
	}
}

// While a submission is under way all inputs are frozen, but for the way out.
func TestPanelIsFrozenWhileBusy(t *testing.T) {
	p := newPanel(batch()[:1])
	p.press(keysOf("1"))
	p.busy = true
	require.Equal(t, stay, p.press(keysOf("2 s <Esc> <Enter>")))
	require.Equal(t, "eu", wordsOf(p))
	require.Equal(t, interrupt, p.press(keysOf("<Ctrl-C>")))
}

// The longest text is taken, and one letter more is refused whole.
func TestPanelTextHasALimit(t *testing.T) {
	p := newPanel(batch()[2:])
	p.key(key{keyPaste, strings.Repeat("x", messages.TextBytesMax)})
	require.Len(t, p.here().text, messages.TextBytesMax)
	require.Equal(t, stay, p.key(key{keyRune, "y"}))
	require.Len(t, p.here().text, messages.TextBytesMax)
	require.Contains(t, p.message, "65,536")
}

// Whatever is pressed: the caret is in the text, a single choice has one answer, and what is not done is not sent.
func TestPanelLaws(t *testing.T) {
	script := []string{"1", "2", "3", "s", "i", "j", "k", "_", "x", "é", "日"}
	for name := range namedKeys {
		script = append(script, "<"+name+">")
	}
	rapid.Check(t, func(t *rapid.T) {
		p := newPanel(batch()[:rapid.IntRange(1, 3).Draw(t, "questions")])
		for _, word := range rapid.SliceOf(rapid.SampledFrom(script)).Draw(t, "keys") {
			k := keysOf(word)[0]
			before := wordsOf(p)
			out := p.key(k)
			if out == stay && before != wordsOf(p) && k.name != keyRune && k.name != keyEnter {
				t.Fatalf("%s changed %q to %q and is no edit", word, before, wordsOf(p))
			}
			for _, i := range p.items {
				if i.caret < 0 || i.caret > len(i.text) {
					t.Fatalf("the caret is at %d of %d", i.caret, len(i.text))
				}
				if out == submit && !i.done() {
					t.Fatalf("%s would send %q", word, wordsOf(p))
				}
				if a := i.answer(); !i.question.GetMultiSelect() && len(a.GetSelected())+len(a.GetCustom()) > 1 && len(a.GetSelected()) > 0 && a.Custom != nil {
					t.Fatalf("a single choice has two answers: %v", a)
				}
			}
			if k.name != keyEnter && out == submit {
				t.Fatalf("%s sends", word)
			}
		}
	})
}

// A list keeps its numbers while questions come and go, and what is over cannot be opened (W5, W7).
func TestPicker(t *testing.T) {
	row := func(call, state string) *messages.QuestionRow {
		r := shipIt(state)
		r.CallId = call
		return r
	}
	p := &picker{rows: []*messages.QuestionRow{row("a", "open"), row("b", "continued")}}
	p.update(row("c", "open"))
	p.update(row("d", "settled")) // never was in the list
	p.update(row("a", "settled"))
	require.Len(t, p.rows, 3)
	for script, want := range map[string]string{"1": "", "2": "b", "3": "c", "4": "", "jj<Enter>": "c", "k<Enter>": ""} {
		p.cursor = 0
		var picked *messages.QuestionRow
		for _, k := range keysOf(strings.ReplaceAll(script, "<", " <")) {
			picked, _ = p.key(k)
		}
		require.Equal(t, want, picked.GetCallId(), script)
	}
	_, out := p.key(key{name: keyEscape})
	require.Equal(t, leave, out)
}
