package simulation

import (
	"math"
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// markInvariants are about messages between their queueing and their admission:
// which turn has marked them, who hears of them, which step takes them. A mark is
// in no log: what is known of it is what was asked for and handed out.
var markInvariants = []Invariant{
	{"handed what waits", "who marks what waits for a turn is handed all that waits for the next step, but for what this turn has marked before", []string{"L-061", "Q-108", "Q-111", "P4"}, handedWhatWaits},
	{"handed once", "what is marked for a turn is not handed out again while that turn is open", []string{"Q-108", "P4"}, handedOnce},
	{"a step takes what waits", "a step begins with all that waits for the next step and, if it is the first of its turn, with the first that waits for the next turn", []string{"L-061", "L-069", "P4"}, aStepTakesWhatWaits},
}

// mark is what one request has marked, or may have.
type mark struct {
	s    *Said
	cmd  *messages.ClaimMessagesRequest
	ids  []string // handed out
	sure bool     // nothing else was marked: it was taken once, and answered
}

// marks are what was marked in a session, in order of asking.
func (e *Evidence) marks(session string) (all []mark) {
	for s, cmd := range said[*messages.ClaimMessagesRequest](e) {
		if cmd.GetSession() != session {
			continue
		}
		m := mark{s: s, cmd: cmd, sure: s.Answer != nil && !e.twice(s)}
		if s.Answer != nil {
			if r, ok := s.Answer.Msg.(*messages.ClaimMessagesResponse); ok {
				for _, handed := range r.GetMessages() {
					m.ids = append(m.ids, handed.GetId())
				}
			}
		}
		all = append(all, m)
	}
	return all
}

// may: it may have marked a message.
func (m *mark) may(id string) bool { return !m.sure || slices.Contains(m.ids, id) }

// answered are the marks of which it is known what they are.
func (m *mark) answered() bool {
	_, ok := answerOf(m.s).(*messages.ClaimMessagesResponse)
	return ok
}

func answerOf(s *Said) messages.Message {
	if s.Answer == nil {
		return nil
	}
	return s.Answer.Msg
}

func handedWhatWaits(e *Evidence) {
	for _, a := range e.accounts {
		all := e.marks(a.name)
		for i := range all {
			if m := &all[i]; m.answered() && m.sure {
				e.handedAll(a, m, all)
			}
		}
	}
}

func (e *Evidence) handedAll(a *account, m *mark, all []mark) {
	ends := a.ends(m.s.Step, m.s.Answer.Sent)
	for _, q := range a.messages {
		waits := func(seq int64) bool { return q.target == sessionlog.NextStep && q.waitsAt(seq) }
		if slices.Contains(m.ids, q.ID) || slices.ContainsFunc(ends, func(seq int64) bool { return !waits(seq) }) {
			continue
		}
		marked := slices.ContainsFunc(all, func(o mark) bool {
			return o.s != m.s && o.cmd.GetTurn() == m.cmd.GetTurn() && o.s.Step < m.s.Answer.Sent && o.may(q.ID)
		})
		if !marked {
			e.heard(m.s).fail("%s marked what waits for turn %d of session %s and was handed %s; %s waited too, since event %d, and nobody has marked it for that turn",
				m.s.Party, m.cmd.GetTurn(), a.name, quote(m.ids), q.ID, q.in[0])
		}
	}
}

func handedOnce(e *Evidence) {
	for _, a := range e.accounts {
		all := e.marks(a.name)
		for i := range all {
			for j := range i {
				first, m := &all[j], &all[i]
				if first.cmd.GetTurn() != m.cmd.GetTurn() || !first.answered() || !m.answered() || a.openedBetween(first.s.At, max(first.s.Answer.At, m.s.Answer.At)) > 0 || e.movedBefore(a, m.s.Answer.At) {
					continue // a session that began anew has forgotten its marks
				}
				for _, id := range m.ids {
					if slices.Contains(first.ids, id) {
						e.heard(m.s).fail("%s was handed %s for turn %d of session %s at %d, and %s had been at %d", m.s.Party, id, m.cmd.GetTurn(), a.name, m.s.Answer.At, first.s.Party, first.s.Answer.At)
					}
				}
			}
		}
	}
}

// markedUntil is until when a message may be marked for a turn, of those who
// asked before a time; 0: nobody has marked it.
func (e *Evidence) markedUntil(a *account, q *queued, before int64) (until int64) {
	for _, m := range e.marks(a.name) {
		if m.s.At > before || !m.may(q.ID) {
			continue
		}
		t := a.turnOf(m.cmd.GetTurn())
		if t == nil || t.end < 0 {
			return math.MaxInt64
		}
		until = max(until, a.stamp(t.end).At)
	}
	return until
}

// markedAll: a message was marked before somebody began to listen, and until
// that one was answered.
func (e *Evidence) markedAll(a *account, id string, s *Said) bool {
	return slices.ContainsFunc(e.marks(a.name), func(m mark) bool {
		t := a.turnOf(m.cmd.GetTurn())
		return slices.Contains(m.ids, id) && m.s.Answer.Sent <= s.Step && t != nil && (t.end < 0 || a.stamp(t.end).Step > s.Answer.Sent) &&
			a.openedBetween(m.s.At, s.Answer.At) == 0 && !e.movedBefore(a, s.Answer.At)
	})
}

func aStepTakesWhatWaits(e *Evidence) {
	for _, a := range e.accounts {
		for i, ev := range a.log.Events {
			step, ok := wholeNumber(string(ev.Data), "step")
			if ev.Type != sessionlog.TypeStepStart || !ok || a.turnBeginsWith(ev.Seq) {
				continue // those that Parley begins itself take what they are begun for
			}
			from := a.by(int64(i)).Seq
			due, taken := sorted(a.dueAt(from, step)), sorted(a.takenBy(ev.Seq))
			if !slices.Equal(due, taken) {
				e.at(a, ev.Seq).fail("step %d of session %s begins at event %d with %s; %s waited for it", step, a.name, ev.Seq, quote(taken), quote(due))
			}
		}
	}
}

// turnBeginsWith: a turn begins in the commit of an event.
func (a *account) turnBeginsWith(seq int64) bool {
	return slices.ContainsFunc(a.lengths, func(t turnAt) bool { return a.commit[t.start] == a.commit[seq] })
}

// dueAt is what a step has to take when the log ended before seq.
func (a *account) dueAt(seq, step int64) (ids []string) {
	first := step == 1
	for _, q := range a.messages {
		switch {
		case !q.waitsAt(seq):
		case q.target == sessionlog.NextStep:
			ids = append(ids, q.ID)
		case first: // in the order in which they were queued
			ids, first = append(ids, q.ID), false
		}
	}
	return ids
}

// takenBy is what left its list in the commit of an event, and was not taken back.
func (a *account) takenBy(seq int64) (ids []string) {
	for _, q := range a.messages {
		if q.left >= 0 && a.commit[q.left] == a.commit[seq] && len(q.withdrawn) == 0 {
			ids = append(ids, q.ID)
		}
	}
	return ids
}
