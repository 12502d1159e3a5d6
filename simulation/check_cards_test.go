package simulation

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// seated is a world of a person at two tabs, in which cards are left, reloaded,
// hidden, passed and given up, and somebody else is first now and then. Of two that
// answer at one moment the seed makes the other the first, and tells it so first.
const seated = `
seed 12
for 60s
rules timeout=3s grace=0s
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  ask k1 for 20s
  ask k2 for 2s
  start k3 for 1s
  wait 7s
  collect
  collect
  start k4 for 20s
  wait 3s
client p in s1 on h1
  find k1 within 9s
  edit k1
  reload
  find k1 within 9s
  hide k1
  reopen k1
  wait 100ms
  submit k1
  find k2 within 9s
  focus k2
  wait 500ms
  blur k2
  clock +400ms
  wait 4s
  tab
  find k3 within 9s
  edit k3
  until 21004ms
  submit k3
  find k4 within 20s
  wait 1s
  edit k4
  next
  pass k4
  next
  submit k4
person o in s1 on h1
  find k3 within 20s
  until 21s
  submit k3
`

var cardLies = liesOf{seated, []lie{
	{"a row shows what its call asks", `was shown ["other"]`, func(d doctor) {
		for i := range d.History.Tabs[0].Marks {
			if m := &d.History.Tabs[0].Marks[i]; m.What == markRow && len(m.IDs) > 0 {
				m.IDs = []string{"other"}
				return
			}
		}
	}, ""},
	{"a touched card does not give up", "it gave up; it showed: open counting", func(d doctor) {
		d.mark(1, doBlur, "k2").What = doTime
	}, "a countdown is as long as it says"},
	{"a countdown is as long as it says", "it gave up after 2400 ms, its claim said 9000", func(d doctor) {
		d.mark(1, markFrame, "k2").LeftMS = 9_000
	}, ""},
	{"an ended question takes no answer", "and was told that the question is settled", func(d doctor) {
		m := d.mark(2, markRow, "k3")
		d.tab(2).Marks = append(d.tab(2).Marks, Mark{At: m.At, Line: m.Line, What: markTick, Call: "k3", Shows: m.Shows})
	}, "shown is what is recorded"},
	{"a live card holds its wait", "and no claim holds that", func(d doctor) { d.holdOf(2, "k4").Framed = 0 }, ""},
	{"an answer keeps its claim", "has no answer", func(d doctor) {
		m := d.mark(2, doSubmit, "k4")
		m.LetGo = append(m.LetGo, d.holdOf(2, "k4"))
	}, ""},
	{"sent once, as written", "and showed open editing by waterfall", func(d doctor) {
		other := "something else"
		d.mark(2, doSubmit, "k4").submission().Cmd.(*messages.SubmitRequest).Answers[0].Custom = &other
	}, "accepted is kept, one register"},
	{"accepted is kept", "answers what call k4 asked at event", func(d doctor) {
		d.mark(2, doSubmit, "k4").submission().Cmd.(*messages.SubmitRequest).CallSeq--
	}, "sent once, as written"},
	{"the person is told", "and the person was told [<nil>]", func(d doctor) {
		d.mark(2, markReplied, "k3").Told[0] = nil
	}, ""},
	{"a refused answer is still there", "was refused; it was made of", func(d doctor) {
		m := d.mark(2, markReplied, "k3")
		shows := *m.Shows
		shows.Frozen, m.Shows = true, &shows
	}, ""},
	{"drafts outlive their page", "and the next page found", func(d doctor) {
		d.page(1, 1).Kept["question:s1:k1"] = `{"page":0,"drafts":[]}`
	}, ""},
	{"a card is what its tab was told", "its card is gone, and it was told that the question is open", func(d doctor) {
		d.mark(2, doEdit, "k4").Shows = nil
	}, "sent once, as written"},
	{"a hidden card goes on", "it sent 1 commands", func(d doctor) {
		m := d.page(1, 1).find(doHide, "k1")
		m.Sent = append(m.Sent, d.saying("p", "Delegate"))
	}, ""},
	{"a closed page passes on", "it holds k4, which it does not pass on", func(d doctor) {
		t, m := d.tab(2), d.mark(2, markFrame, "k4")
		at := slices.IndexFunc(t.Marks, func(o Mark) bool { return o.What == markFrame && o.Call == "k4" })
		t.Marks = slices.Insert(t.Marks, at+1, Mark{At: m.At, Step: m.Step, Line: m.Line, What: doClose})
	}, ""},
	{"who is at a card holds", "nothing holds its wait: open focused", func(d doctor) {
		d.holdOf(1, "k2").Tab = 3
	}, "nobody decides for others, a live card holds its wait"},
	{"rows are told in order", "does not follow what it was told before", func(d doctor) {
		d.mark(2, markRow, "k4").Seq++
	}, ""},
	{"shown is what is recorded", "the log says that the question is over", func(d doctor) {
		t, after := d.tab(2), d.mark(2, markReplied, "k3").At
		t.Marks = slices.DeleteFunc(slices.Clone(t.Marks), func(m Mark) bool { return m.Call == "k3" && m.At > after })
	}, ""},
}}

// page is the n-th page of the tab of p, from 0.
func (d doctor) page(tab, n int) *Tab {
	for _, t := range d.History.Tabs {
		if t.N != tab {
			continue
		}
		if n == 0 {
			return t
		}
		n--
	}
	d.Fatalf("tab %d has fewer pages", tab)
	return nil
}

// tab is its last page.
func (d doctor) tab(tab int) *Tab {
	all := slices.Clone(d.History.Tabs)
	slices.Reverse(all)
	return all[slices.IndexFunc(all, func(t *Tab) bool { return t.N == tab })]
}

// find is the first thing of a kind that happened to a card.
func (t *Tab) find(what, call string) *Mark {
	i := slices.IndexFunc(t.Marks, func(m Mark) bool { return m.What == what && m.Call == call })
	if i < 0 {
		return nil
	}
	return &t.Marks[i]
}

// mark is the same on the last page of a tab.
func (d doctor) mark(tab int, what, call string) *Mark {
	m := d.tab(tab).find(what, call)
	require.NotNil(d, m, "%s of %s in tab %d", what, call, tab)
	return m
}

func (d doctor) holdOf(tab int, call string) *Hold {
	i := slices.IndexFunc(d.History.Holds, func(h *Hold) bool { return h.Tab == tab && h.Call == call })
	require.NotEqual(d, -1, i)
	return d.History.Holds[i]
}
