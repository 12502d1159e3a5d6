package journaltest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/sessionlog"
)

// randomCorpora writes random histories of few words, sessions and workspaces,
// so that keys are equal as often as can be, and asks random queries.
func randomCorpora(t *testing.T, h TextHarness) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 62))
		m := &crowd{t: t, h: h, r: r, prefix: fmt.Sprintf("%d-", seed), alive: map[int]*writer{}}
		for range 60 {
			for range r.IntN(12) {
				m.step()
			}
			m.ask()
		}
		if h.Reopen != nil { // and once more from what was kept
			h = h.Reopen(t)
			m.h = h
			m.ask()
		}
	}
}

// crowd is the sessions of one random history.
type crowd struct {
	t      *testing.T
	h      TextHarness
	r      *rand.Rand
	prefix string
	alive  map[int]*writer
}

func (m *crowd) pick(list ...string) string { return list[m.r.IntN(len(list))] }

func (m *crowd) text() string {
	var b strings.Builder
	for range m.r.IntN(9) {
		b.WriteString(m.pick("ab", "AB", "cd", "中文", "中", "文", "ab中", "ア", "é", "e", " ", "  ", "\n", "-", "_", "한국", "interrupted"))
		b.WriteString(m.pick("", " ", " "))
	}
	return b.String()
}

func (m *crowd) event(w *writer) sessionlog.Event {
	call := m.pick("c1", "c2")
	switch m.r.IntN(14) {
	case 0, 1, 2:
		return User(m.text())
	case 3, 4:
		return Assistant(m.text())
	case 5:
		return Called(call, m.pick("bash", "ab"), m.text())
	case 6:
		return Result(call, m.text())
	case 7:
		return ask(call, m.r.IntN(3) == 0)
	case 8:
		return reply(call, m.text())
	case 9:
		return Titled(m.text())
	case 10:
		return sessionlog.TurnStart(1)
	case 11:
		return sessionlog.TurnEnd(1, m.pick(sessionlog.Completed, sessionlog.Aborted))
	}
	// A replacement, mostly of one node, and not always a valid one.
	if w.next == 0 {
		return User("ab")
	}
	start := m.r.Int64N(w.next)
	end := start
	if m.r.IntN(3) == 0 {
		end = m.r.Int64N(w.next)
	}
	var cited []int64
	for seq := min(start, end); seq <= max(start, end); seq++ {
		cited = append(cited, seq)
	}
	if m.r.IntN(4) == 0 {
		return Replacing(Result(call, m.text()), start, end, cited...)
	}
	return Replacing(User(m.text()), start, end, cited...)
}

func (m *crowd) step() {
	n := m.r.IntN(8)
	w := m.alive[n]
	if w == nil {
		header := PastHeader(fmt.Sprintf("%s%d", m.prefix, n), m.pick("/a", "/b", ""), m.pick("", m.prefix+"0", m.prefix+"1", "nobody"), int64(m.r.IntN(5)))
		m.alive[n] = birth(m.t, m.h.Journal, header)
		return
	}
	if m.r.IntN(40) == 0 {
		w.delete()
		delete(m.alive, n)
		return
	}
	var events []sessionlog.Event
	for range 1 + m.r.IntN(4) {
		ev := m.event(w)
		if ev.SourceEventSeqs == nil || len(events) == 0 { // a replacement is drawn for the number it gets
			events = append(events, ev)
		}
	}
	stamped := make([]sessionlog.Event, len(events))
	for i, ev := range events {
		stamped[i] = ev.At(w.next+int64(i), int64(m.r.IntN(3)))
	}
	a := mustAppend(m.t, m.h.Journal, journal.Batch{Session: w.session, Epoch: w.epoch, Seq: w.next, Events: stamped})
	w.epoch, w.next = a.Epoch, w.next+int64(len(events))
}

func (m *crowd) ask() {
	m.t.Helper()
	bounds := func(most int64) (b journal.Bounds) {
		if m.r.IntN(4) == 0 {
			from := m.r.Int64N(most)
			b.From = &from
		}
		if m.r.IntN(4) == 0 {
			to := m.r.Int64N(most)
			b.To = &to
		}
		return b
	}
	q := journal.TextQuery{Phrase: words.NewPhrase(m.text(), words.Cut(m.r.IntN(2))), Limit: 1 + m.r.IntN(6)}
	if m.r.IntN(2) == 0 {
		q.Phrase = words.NewPhrase(m.pick("ab", "中", "中文", "e", "ab ab", "interrupted", "中文中"), words.Cut(m.r.IntN(2)))
	}
	switch m.r.IntN(5) {
	case 0:
		q.Sessions.Everywhere = true
	case 1:
		q.Sessions.CWDs = []string{"/b", m.pick("/a", "/c"), "/b"}
	default:
		q.Sessions.CWDs = []string{m.pick("/a", "/b", "/c")}
	}
	if m.r.IntN(3) == 0 {
		q.In = fmt.Sprintf("%s%d", m.prefix, m.r.IntN(9))
	}
	if m.r.IntN(3) == 0 {
		live := m.r.IntN(256)
		q.Live = func(s string) bool {
			var n int
			_, err := fmt.Sscanf(s, m.prefix+"%d", &n)
			return err == nil && live>>n&1 == 1
		}
		q.Sessions.LiveOnly = m.r.IntN(2) == 0
	}
	if m.r.IntN(4) == 0 {
		q.Sessions.Parents = []string{m.prefix + "0", "nobody"}
		q.Sessions.Roots = m.r.IntN(2) == 0
	}
	if m.r.IntN(5) == 0 {
		q.Sessions.IDs = []string{m.prefix + "0", m.prefix + "1", m.prefix + "2", m.prefix + "2"}
	}
	if m.r.IntN(5) == 0 {
		q.Sessions.Except = m.prefix + "3"
	}
	q.Sessions.Created, q.Events.Seq, q.Events.Time = bounds(5), bounds(12), bounds(3)
	if m.r.IntN(4) == 0 {
		q.Events.Types = []string{m.pick(sessionlog.TypeUserMessage, sessionlog.TypeToolCall, sessionlog.TypeTurnEnd), sessionlog.TypeToolResult}
	}
	if m.r.IntN(4) == 0 {
		q.Events.Surfaces = []sessionlog.Class{sessionlog.Class(m.r.IntN(3)), sessionlog.Current}
	}
	for range 3 {
		page := m.h.search(m.t, q)
		if q.After = page.Next; page.Next == nil {
			break
		}
	}
}
