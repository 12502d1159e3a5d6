package simulation

import (
	"math"
	"slices"

	"github.com/parleyrun/parley/messages"
)

// patienceInvariants are about those who wait: what a repeat hides from everybody
// else.
var patienceInvariants = []Invariant{
	{"the patient are told", "whoever sends a command once is told of it, however often its session begins anew or moves", []string{"P1", "P2", "P7"}, thePatientAreTold},
	{"a claim comes back", "a claim that is held while its session begins anew holds again, and no deadline ends its call", []string{"Q-082", "Q-086"}, aClaimComesBack},
	{"shown what waits", "who asks what waits is told what waited at one time between asking and hearing", []string{"P2", "P6", "Q-104"}, shownWhatWaits},
	{"what waits still waits", "who asks again is told that its call waits only if it waited at one time between asking and hearing", []string{"P1", "P6", "Q-157"}, whatWaitsStillWaits},
}

// sessionOpens is how long a session may take to be unloaded and opened again.
const sessionOpens = 3_000

func whatWaitsStillWaits(e *Evidence) {
	for s, cmd := range said[*messages.AskRequest](e) {
		a := e.account(cmd.GetSession())
		for _, w := range s.Waiting {
			l := e.attached(cmd, &w)
			if l != nil && !slices.ContainsFunc(a.ends(w.Asks, w.Sent), func(seq int64) bool { return l.stateBefore(seq) == open }) {
				e.on(w.Line).fail("%s asked %s at step %d and was told at step %d that it waits. %s", s.Party, cmd.GetAttempt(), w.Asks, w.Sent, a.story(l.call))
			}
		}
	}
}

func thePatientAreTold(e *Evidence) {
	for _, s := range e.History.Said {
		told := e.Now
		switch {
		case s.Answer != nil:
			told = s.Answer.At
		case s.Left:
			told = s.LeftAt
		}
		from := e.answerable(s)
		if !e.Plan.patient(s.Party) || told <= from {
			continue
		}
		limit := from + e.slack(e.account(s.Cmd.GetSession()), from, told) + 2*e.Plan.Network.DelayMax.Milliseconds() + 3*e.lag()
		if !e.unhindered(s.At, told) {
			limit = max(limit, e.History.Healed+e.slack(e.account(s.Cmd.GetSession()), e.History.Healed, told)+repeatMS+sessionOpens)
		}
		// A session that began anew has forgotten who speaks to it from another host:
		// until the door there asks again.
		if began := e.account(s.Cmd.GetSession()).lastOpen(s.At, told); began > 0 && e.Plan.Hosts > 1 {
			limit = max(limit, max(from, began)+e.slack(e.account(s.Cmd.GetSession()), from, told)+repeatMS+sessionOpens)
		}
		if told > limit {
			e.heard(s).fail("%s said %s at %d and waited until %d; it could have been told at %d, by %d at the latest", s.Party, brief(s.Cmd), s.At, told, from, limit)
		}
	}
}

func (p *Plan) patient(party string) bool {
	return slices.ContainsFunc(p.Parties, func(is PartyPlan) bool { return is.Name == party && is.Patient })
}

// answerable is from when on a command has an answer: at once, but for an ask
// that waits for its result, and for who listens.
func (e *Evidence) answerable(s *Said) int64 {
	switch cmd := s.Cmd.(type) {
	case *messages.AwaitInboxRequest:
		if !cmd.GetNow() {
			return e.rings(s)
		}
	case *messages.AskRequest:
		return e.resultOf(s, cmd)
	}
	return s.At
}

// rings is from when on a message waited for one who listened, unmarked, and
// waited as long as that.
func (e *Evidence) rings(s *Said) int64 {
	first := int64(math.MaxInt64)
	until := s.LeftAt
	if s.Answer != nil {
		until = s.Answer.At
	}
	a := e.account(s.Cmd.GetSession())
	for _, m := range a.messages {
		if len(m.in) == 1 && (len(m.out) == 0 || a.stamp(m.out[0]).At > until) {
			first = min(first, max(s.At, a.stamp(m.in[0]).At, e.markedUntil(a, m, until)))
		}
	}
	return first
}

// resultOf is when the result of an ask was there: of its own question, or of the
// one that it joined.
func (e *Evidence) resultOf(s *Said, cmd *messages.AskRequest) int64 {
	a := e.account(cmd.GetSession())
	at := s.At
	for _, l := range a.lives {
		joined := slices.ContainsFunc(s.Waiting, func(h Heard) bool { return e.attached(cmd, &h) == l })
		if !joined && (l.attempt != cmd.GetAttempt() || l.call != cmd.GetCallId()) {
			continue
		}
		r, has := l.result()
		if !has {
			return math.MaxInt64
		}
		at = max(at, a.stamp(r.seq).At)
	}
	return at
}

// aClaimComesBack is where nothing but its session has ended, and nothing that is
// said of that can be lost.
func aClaimComesBack(e *Evidence) {
	if e.Plan.Hosts > 1 || e.frameLost() {
		return
	}
	for a, l := range e.lives {
		end, ran := a.ranOut(l)
		s, noted := e.spanOf(a, l, end.seq)
		if !ran || !noted {
			continue
		}
		for _, h := range e.History.Holds {
			if !e.heldIn(a, l, h) || h.Framed < s.recorded || h.Framed >= s.ended {
				continue
			}
			began := a.lastOpen(h.Opened, s.committed)
			back := began + earlyMax + 3*e.Plan.Disk.DelayMax.Milliseconds()
			holds := h.Over == 0 || h.Over > s.committed+e.Plan.Network.DelayMax.Milliseconds()
			if began != 0 && back < s.ended && holds && e.passed(h) == 0 && e.calm(h.Opened, s.committed, anyFault) {
				e.at(a, end.seq).fail("call %s ran out at %d (event %d); its session began anew at %d, and %s has held it since %d. %s", l.call, s.ended, end.seq, began, h.Party, h.Framed, a.story(l.call))
			}
		}
	}
}

func shownWhatWaits(e *Evidence) {
	for t := range told[*messages.AwaitInboxRequest, *messages.AwaitInboxResponse](e) {
		a := e.account(t.cmd.GetSession())
		if !t.cmd.GetNow() {
			e.rung(a, t)
			continue
		}
		shown := sorted(t.msg.GetMessageIds())
		right := func(seq int64) bool { return slices.Equal(sorted(a.waiting(seq)), shown) }
		if ends := a.ends(t.by.Step, t.by.Answer.Sent); !slices.ContainsFunc(ends, right) {
			e.heard(t.by).fail("%s asked what waits in session %s at %d and was told %s at %d; at the log's ends between, %v, other messages waited: %s", t.by.Party, a.name, t.by.At, quote(shown), t.by.Answer.At, ends, quote(a.waiting(ends[len(ends)-1])))
		}
	}
}

// rung: a bell rings for messages that no open turn has marked, and for no more
// than there were.
func (e *Evidence) rung(a *account, t telling[*messages.AwaitInboxRequest, *messages.AwaitInboxResponse]) {
	n := int(t.msg.GetQueued())
	ends := a.ends(t.by.Step, t.by.Answer.Sent)
	unmarked := func(seq int64) int {
		return len(slices.DeleteFunc(a.waiting(seq), func(id string) bool { return e.markedAll(a, id, t.by) }))
	}
	if n == 0 || !slices.ContainsFunc(ends, func(seq int64) bool { return unmarked(seq) >= n }) {
		e.heard(t.by).fail("%s listened to session %s from %d on and was told at %d that %d messages wait; at the log's ends between, %v, there were never so many that no turn had marked", t.by.Party, a.name, t.by.At, t.by.Answer.At, n, ends)
	}
}

func sorted(ids []string) []string { return sortedIDs(ids, func(id string) string { return id }) }

// unhindered: nothing went wrong with anything from a time to another, and no
// message or operation of the disk fails by the way.
func (e *Evidence) unhindered(from, to int64) bool {
	n, d := e.Plan.Network, e.Plan.Disk
	return e.calm(from, to, anyFault) && n.Drop == 0 && len(n.Lose) == 0 && d.Refuse+d.InDoubt == 0 && len(d.RefuseOps)+len(d.DoubtOps) == 0
}
