package simulation

import (
	"slices"

	"github.com/parleyrun/parley/messages"
)

func aClosedPagePassesOn(e *Evidence) {
	for _, t := range e.History.Tabs {
		shows := map[string]*Shown{}
		for i := range t.Marks {
			m := &t.Marks[i]
			if m.What != doClose {
				shows[m.Call] = m.Shows
				continue
			}
			for call, s := range shows {
				if s != nil && s.Channel == "waterfall" && !m.passesOn(call) {
					e.saw(t, m, "it holds %s, which it does not pass on: %v", call, s)
				}
			}
		}
	}
}

func (m *Mark) passesOn(call string) bool {
	return slices.ContainsFunc(m.Sent, func(s *Said) bool {
		cmd, ok := s.Cmd.(*messages.DelegateRequest)
		return ok && cmd.GetCallId() == call
	})
}

// heldWithin is how soon a claim is opened again that was lost, at a client that
// is slow.
const heldWithin = tryAgain + 3*earlyMax

func whoIsAtACardHolds(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		s := m.Shows
		if s == nil || s.Review || s.State != string(open) || c.told != string(open) || c.passed || !m.wantsHold(c) {
			return
		}
		if !e.holdsSoon(t, m) && !t.wantsNoMore(m) {
			e.saw(t, m, "nothing holds its wait: %v", s)
		}
	})
}

// comesBack: the person is at the card now, or has written on it.
func (m *Mark) comesBack(before *Shown) bool {
	switch m.What {
	case doFocus, doTime:
		return before != nil
	case doEdit:
		return before != nil && !sameWords(before.Draft, m.Shows.Draft)
	}
	return false
}

// wantsHold: after this mark the card is to have a claim.
func (m *Mark) wantsHold(c *cardStory) bool {
	if m.What == markEnd {
		return m.Lost || c.back
	}
	return m.comesBack(c.shows)
}

// holdsSoon: the tab has a claim on the call of a mark, beside one that ends there,
// or opens one soon.
func (e *Evidence) holdsSoon(t *Tab, m *Mark) bool {
	return slices.ContainsFunc(e.History.Holds, func(h *Hold) bool {
		return h.Party == t.Party && h.Tab == t.N && h.Session == t.Session && h.Call == m.Call &&
			h.Opened <= m.At+heldWithin && (h.Over == 0 || h.Over > m.At || h.Opened >= m.At || h.Over == max(1, m.At) && m.What != markEnd)
	})
}

// wantsNoMore: soon after a mark its page is gone, or its card is one that waits
// for nobody.
func (t *Tab) wantsNoMore(m *Mark) bool {
	return t.How != "" && t.Until <= m.At+heldWithin || slices.ContainsFunc(t.Marks, func(o Mark) bool {
		return o.Call == m.Call && o.At >= m.At && o.At <= m.At+heldWithin && (o.Shows == nil || o.Shows.State != string(open))
	})
}
