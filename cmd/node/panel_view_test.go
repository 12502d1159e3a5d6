package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/stretchr/testify/require"
)

var escapes = regexp.MustCompile(`\x1b\[[0-9;?<>=]*[a-zA-Z~]`)

func (f frame) text() string {
	return strings.Join(append(append(append([]string{}, f.head...), f.body...), f.foot...), "\n")
}

// fits checks that no line is wider than the screen, and that nothing acts on the terminal.
func (f frame) fits(t *testing.T, width int) {
	t.Helper()
	for line := range strings.SplitSeq(escapes.ReplaceAllString(f.text(), ""), "\n") {
		if cells(line) > width {
			t.Errorf("%d cells on a screen of %d: %q", cells(line), width, line)
		}
		harmless(t, "the card", line)
	}
}

// review80 is a batch whose texts need more than a line.
func review80() []*messages.Question {
	return []*messages.Question{
		{
			Id: "region", Header: "Region", Question: "Which region should the first production node go to? Latency for the pilot customers matters more than the price.",
			Detail: new("Measured last week:\n\n- eu-west: 18 ms\n- us-east: 96 ms"),
			Options: []*messages.Option{
				{Label: "eu-west-1, with a standby in eu-north-1 that takes over by itself (Recommended)", Description: "Low latency for all three pilot customers."},
				{Label: "us-east-1"},
			},
		},
		{Id: "tests", Question: "Which suites may be skipped?", MultiSelect: true, Options: []*messages.Option{{Label: "slow"}, {Label: "flaky", Description: "They fail one time in nine."}}},
		{Id: "note", Question: "Anything else?"},
	}
}

// The screens of a card, wide and narrow: read the difference before it is accepted (faults U3, C3).
func TestCardScreens(t *testing.T) {
	row := &messages.QuestionRow{Session: "deploy", CallId: "q-7k2m9x4a", State: "open"}
	var all strings.Builder
	for _, width := range []int{80, 40} {
		for _, scene := range []struct {
			name, keys string
			wait       func(*card)
		}{
			{"just opened, its end near", "", func(c *card) { c.attach(0, 42_000, false) }},
			{"a choice, then a multiple choice with words of one's own", "1 1 3 and_the_browser_tests", func(c *card) { c.attach(0, 42_000, false); c.engage(0) }},
			{"free text", "<Tab> <Tab> first <Newline> second", func(c *card) { c.project("continued") }},
			{"the review, with one missing", "1 s <Tab>", func(c *card) { c.attach(0, 0, true) }},
			{"the node is away", "<Enter>", func(c *card) { c.attach(0, 42_000, false); c.detach(0, true) }},
		} {
			c, p := newCard("open"), newPanel(review80())
			scene.wait(c)
			p.press(keysOf(scene.keys))
			f := (&cli{}).view(width).card(row, c, p, 0)
			f.fits(t, width)
			all.WriteString("==== " + scene.name + "\n" + strings.Join(f.head, "\n") + "\n" + rule(width, false, "") + "\n" +
				strings.Join(f.body, "\n") + "\n" + rule(width, true, "↓ more: PgDn") + "\n" + strings.Join(f.foot, "\n") + "\n\n")
		}
	}
	golden(t, "card.txt", all.String())
}

// Nothing that is asked is cut away, least of all the end of a label (U3), and nothing of it acts on the terminal.
func TestCardShowsEverything(t *testing.T) {
	q := &messages.Question{
		Id: "q", Question: strings.Repeat("long text ", 200) + evil, Header: "head" + evil, Detail: new(strings.Repeat("more\n", 50) + evil),
		Options: []*messages.Option{{Label: strings.Repeat("label", 40) + evil + " (Recommended)", Description: evil + strings.Repeat("why ", 90) + "END"}},
	}
	row := &messages.QuestionRow{Session: "s" + evil, CallId: strings.Repeat("c", 100) + evil, State: "open"}
	for _, width := range []int{20, 40, 80, 200} {
		c := &cli{colour: true}
		p := newPanel([]*messages.Question{q, q})
		p.press(keysOf("2 my_own_words"))
		p.here().text += evil
		for _, page := range []int{0, 1, 2} {
			p.open(page)
			f := c.view(width).card(row, newCard("open"), p, 0)
			f.fits(t, width)
			letters := strings.Join(strings.Fields(escapes.ReplaceAllString(strings.Join(f.body, " "), "")), "")
			require.Contains(t, letters, strings.Repeat("longtext", 200), "width %d", width)
			if page < 2 {
				require.Contains(t, letters, "(Recommended)")
				require.Contains(t, letters, strings.Repeat("why", 90)+"END")
			}
		}
		list := &picker{rows: []*messages.QuestionRow{{Session: "s" + evil, CallId: evil, State: evil, Questions: []*messages.Question{q}, Settlement: &messages.Settlement{By: evil}}}}
		f := c.view(width).picker(list, 0)
		f.fits(t, width)
	}
}

func TestStatusWords(t *testing.T) {
	for name, live := range map[string]func(*card){
		"":                         func(*card) {},
		"The agent waits for you.": func(c *card) { c.attach(0, countdownNear+1, false) },
		"The agent stops waiting in 1m00s; any key stops that.":                        func(c *card) { c.attach(0, countdownNear, false) },
		"The agent waits for you: its call will not end while you have this open.":     func(c *card) { c.attach(0, 5, false); c.focus(0) },
		"The call has returned: your answer reaches the agent as a late reply.":        func(c *card) { c.project("continued") },
		"The node is away; trying again. What you wrote stays here.":                   func(c *card) { c.attach(0, 0, true); c.detach(0, true) },
		"The node is away. The agent's call may end in 3s; what you wrote stays here.": func(c *card) { c.attach(0, 2001, false); c.detach(0, true) },
	} {
		c := newCard("open")
		live(c)
		words, _ := statusWords(c, &panel{}, 0)
		require.Equal(t, name, words)
	}
}

// What is being written keeps every blank, fits, and the caret is where the next letter goes.
func FuzzLayout(f *testing.F) {
	f.Add("one two\nthree  four", 5, 8)
	f.Add(strings.Repeat("日本", 20)+"\u202e\x00", 3, 7)
	f.Add("a \u202e\x00", 2, 10) // what is left behind a blank may be too wide still
	f.Fuzz(func(t *testing.T, text string, caret, width int) {
		text = strings.ToValidUTF8(text, "")
		width = min(max(width, 6), 100) // an escape is six wide
		caret = min(max(caret, 0), len(text))
		for caret < len(text) && text[caret]&0xc0 == 0x80 {
			caret++
		}
		lines, row, col := layout(text, width, caret)
		shown := ""
		for _, line := range lines {
			if cells(line) > width {
				t.Errorf("%q is %d wide", line, cells(line))
			}
			shown += line
		}
		var want, before strings.Builder
		for at, r := range text {
			if r == '\n' {
				continue
			}
			if at < caret {
				before.WriteString(clean(string(r)))
			}
			want.WriteString(clean(string(r)))
		}
		require.Equal(t, want.String(), shown)
		head := strings.Join(lines[:row], "")
		require.Equal(t, cells(before.String())-cells(head), col, "caret %d in %q: row %d of %q", caret, text, row, lines)
	})
}

// Nothing is erased behind a full line, where the cursor still stands on its last letter: an id keeps its end.
func TestAFullLineKeepsItsEnd(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	const width = 30
	full := strings.Repeat("x", width)
	(&console{out: out}).paint(frame{head: []string{full}, body: []string{full, "y"}, foot: []string{full, full}, caretRow: -1}, width, 9, 0, false, (&cli{}).dim)
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(text), full))
	require.NotRegexp(t, `[^\r\n\x1b]\x1b\[[0-2]?[JK]`, strings.TrimPrefix(string(text), "\x1b[?2026h\x1b[?25l\x1b[H\x1b[K"))
	require.Contains(t, string(text), "\r\n\x1b[J"+full, "what was below is gone")
}

// The list to pick from shows every id whole.
func TestPickerKeepsIDsWhole(t *testing.T) {
	row := shipIt("open")
	row.Session, row.CallId = "claude-1b9f7f0e-94a3-4c1f-8b59-0d9f1f6a3d11", "q-7k2m9x4a5b6c"
	for width := 52; width <= 90; width++ {
		f := (&cli{}).view(width).picker(&picker{rows: []*messages.QuestionRow{row}}, at.UnixMilli())
		f.fits(t, width)
		require.Contains(t, f.text(), row.GetSession())
		require.Contains(t, f.text(), row.GetCallId())
	}
}
