package simulation

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/messages"
)

// watch is a tab's view of the questions of its session: a stream of rows from a
// host, which resumes where it was cut off.
type watch struct {
	tab    *tab
	host   *host
	line   *line
	served bool                    // its host has taken it up
	cursor int64                   // at the host: what has been sent
	caught bool                    // at the host: every row there was has been sent
	live   bool                    // at the tab: it has seen them
	start  []*messages.QuestionRow // at the tab: a starting list that is not whole
	over   bool
}

// follow opens a watch.
func (t *tab) follow() {
	p, h := t.party, t.server()
	s := &watch{tab: t, host: h, cursor: t.cursor}
	s.line = p.line(h, s.broken)
	t.watch = s
	if !p.w.travel(p.name, h.name, "watch "+p.session, p.isOff, s.open) {
		s.line.tear()
	}
}

// open takes it up at its host.
func (s *watch) open() {
	switch {
	case s.served || s.over:
	case !s.host.up():
		s.line.tear()
	default:
		s.served = true
		s.host.watches = append(s.host.watches, s)
		s.host.show()
	}
}

// broken: the stream ended without a word. The tab opens another one.
func (s *watch) broken() {
	if s.over {
		return
	}
	s.over, s.line.torn = true, true
	t := s.tab
	t.losses++
	t.after(tryAgain, t.follow)
}

// show lets every watch of a host see what is new, once for whatever is written
// until then.
func (h *host) show() {
	if h.showing || !h.up() || len(h.watches) == 0 {
		return
	}
	h.showing = true
	process := h.booted
	h.w.soon(func() {
		if h.booted != process || !h.up() {
			return
		}
		h.showing = false
		if h.paused {
			return // it goes on when its host does
		}
		h.watches = slices.DeleteFunc(h.watches, func(s *watch) bool { return s.over || s.line.torn })
		for _, s := range h.watches {
			s.show()
		}
	})
}

// errShown ends a look at the journal: there is nothing more yet.
var errShown = errors.New("everything has been shown")

// show sends what the journal has behind the cursor, by the code of a real watch.
func (s *watch) show() {
	req := &messages.WatchQuestionsRequest{Session: s.tab.party.session, Client: s.tab.party.name, Cursor: s.cursor}
	err := s.host.views.Watch(context.Background(), req, func(m *messages.WatchQuestionsResponse) error {
		if m.GetCursor() > 0 {
			s.cursor = m.GetCursor()
		}
		if !m.GetLive() {
			m = proto.Clone(m).(*messages.WatchQuestionsResponse)
			s.line.say("row "+m.GetQuestion().GetCallId()+" "+m.GetQuestion().GetState(), func() { s.tab.sees(s, m) })
			return nil
		}
		if !s.caught {
			s.caught = true
			s.line.say("live", func() { s.tab.sees(s, m) })
		}
		return errShown
	})
	if !errors.Is(err, errShown) {
		panic("simulation: a watch fails: " + err.Error())
	}
}

// sees is what the tab hears. A starting list that was cut off is thrown away, as
// by a real client: it may show what has ended since.
func (t *tab) sees(s *watch, m *messages.WatchQuestionsResponse) {
	if s.over || t.over {
		return
	}
	if !s.live && !m.GetLive() && m.GetCursor() == 0 {
		s.start = append(s.start, m.GetQuestion())
		return
	}
	for _, row := range s.start {
		t.sawRow(row)
	}
	if s.start = nil; m.GetCursor() > 0 {
		t.cursor = m.GetCursor()
	}
	if m.GetLive() {
		s.live = true
		t.synced()
		return
	}
	t.sawRow(m.GetQuestion())
}
