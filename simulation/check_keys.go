package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/disk"
)

// keyInvariants are about what a client can get wrong, or never sees: a key that
// it has used before, what it left unread, and the memory that it no longer needs.
var keyInvariants = []Invariant{
	{"one answer for an id", "a submission id that was accepted for one question is refused for any other, which goes on without that answer", []string{"P2", "Q-157"}, oneAnswerForAnID},
	{"the bell counts what is unread", "who asks what waits is told how many results had the time to arrive and were neither acknowledged nor listed", []string{"P2", "F6"}, theBellCounts},
	{"a claim is told what is left", "who holds a call is told how long it still waits, or that it waits for ever", []string{"Q-084"}, aClaimIsToldWhatIsLeft},
	{"a claim is told once", "who holds a call is told so once, however often its host opens the claim again", []string{"Q-084"}, aClaimIsToldOnce},
	{"a row shows what its call asks", "a row has the questions that its call asks, and not those of an earlier one of its id", []string{"N7", "P2"}, aRowShowsWhatIsAsked},
	{"a late claim is told of the end", "who wants to hold a call that is settled is told so, and not that nobody knows it", []string{"Q-090", "Q-071"}, aLateClaimIsTold},
	{"a pass is one's own", "who passes does not end a call that another holds", []string{"Q-047"}, aPassIsOnesOwn},
	{"unattended, unloaded", "a session that nobody speaks to, waits in or holds is unloaded, and begins anew when somebody comes", []string{"P5"}, unattendedUnloaded},
}

func oneAnswerForAnID(e *Evidence) {
	for s, no := range e.refusals {
		cmd, ok := s.Cmd.(*messages.SubmitRequest)
		if !ok || messages.Code(no.GetCode()) != messages.BadRequest {
			continue
		}
		a := e.account(cmd.GetSession())
		used := slices.ContainsFunc(a.accepted(cmd.GetSubmissionId()), func(r settledAt) bool {
			return r.CallID != cmd.GetCallId() && a.stamp(r.seq).Step < s.Answer.Sent
		})
		if !used {
			e.heard(s).fail("%s was refused with %s, and %s was accepted for no other question by then. %s", s.Party, no.GetCode(), cmd.GetSubmissionId(), a.story(cmd.GetCallId()))
		}
		for _, ev := range a.log.Events {
			if words := cmd.GetAnswers()[0].GetCustom(); words != "" && strings.Contains(string(ev.Data), words) {
				e.heard(s).fail("%s was refused with %s, and event %d (%s) has its words. %s", s.Party, no.GetCode(), ev.Seq, ev.Type, a.story(cmd.GetCallId()))
			}
		}
	}
}

// arrivesWithin is how long a result may be on its way, by its host's clock.
const arrivesWithin = 5_000

func theBellCounts(e *Evidence) {
	for t := range told[*messages.AwaitInboxRequest, *messages.AwaitInboxResponse](e) {
		if !t.cmd.GetNow() || !e.calm(0, t.by.Answer.At, anyJump) {
			continue // when a result was there is read from that clock
		}
		a, n := e.account(t.cmd.GetSession()), int(t.msg.GetUndelivered())
		right := func(seq int64) bool { return a.unheard(seq, t.by.At) <= n && n <= a.unheard(seq, t.by.Answer.At) }
		if ends := a.ends(t.by.Step, t.by.Answer.Sent); !slices.ContainsFunc(ends, right) {
			e.heard(t.by).fail("%s asked what waits in session %s at %d and was told at %d that %d results are unread; at the log's end, %d, it was %d", t.by.Party, a.name, t.by.At, t.by.Answer.At, n, ends[len(ends)-1], a.unheard(ends[len(ends)-1], t.by.Answer.At))
		}
	}
}

// unheard counts the answers that asked for a receipt and have got none when the
// log ended before seq, of those that had the time to arrive.
func (a *account) unheard(seq, now int64) (n int) {
	for _, l := range a.lives {
		if r, _ := l.result(); r.batch && a.owed(l, seq) && a.log.Events[r.seq].Time-wallStart <= now-arrivesWithin {
			n++
		}
	}
	return n
}

func aClaimIsToldWhatIsLeft(e *Evidence) {
	if !e.calm(0, e.Now, anyJump) {
		return // what is left is read from that clock
	}
	for _, h := range e.History.Holds {
		a := e.account(h.Session)
		l := a.latest[h.Call]
		if h.Framed == 0 || l == nil || l.wait < 0 || a.stamp(l.wait).At >= h.Opened {
			continue // not yet, or it may be told of an earlier one
		}
		deadline := due(l.rec) - wallStart
		right := !h.Never && h.LeftMS >= max(0, deadline-h.Framed) && h.LeftMS <= max(0, deadline-h.Opened)
		if due(l.rec) == 0 {
			right = h.Never
		}
		if !right {
			e.on(h.Line).fail("%s opened %s at %d and held it at %d: it was told that %s; its deadline is %d. %s", h.Party, h.Call, h.Opened, h.Framed, h.left(), deadline, a.story(h.Call))
		}
	}
}

// left is what a claim was told of its wait.
func (h *Hold) left() string {
	if h.Never {
		return "it waits for ever"
	}
	return fmt.Sprintf("%d ms are left", h.LeftMS)
}

func aClaimIsToldOnce(e *Evidence) {
	if e.Plan.Network.Duplicate > 0 || len(e.Plan.Network.Repeat) > 0 {
		return
	}
	for _, h := range e.History.Holds {
		if h.Frames > 1 {
			e.on(h.Line).fail("%s opened %s at %d and was told %d times that it held it. %s", h.Party, h.Call, h.Opened, h.Frames, e.account(h.Session).story(h.Call))
		}
	}
}

func aRowShowsWhatIsAsked(e *Evidence) {
	for _, t := range e.History.Tabs {
		for i := range t.Marks {
			m := &t.Marks[i]
			if m.What != markRow || len(m.IDs) == 0 {
				continue
			}
			for _, l := range e.account(t.Session).lives {
				if l.call == m.Call && l.at == m.Seq && !slices.Equal(l.ids, m.IDs) {
					e.saw(t, m, "it was shown %s; the call at event %d asks %s. %s", quote(m.IDs), m.Seq, quote(l.ids), e.account(t.Session).story(m.Call))
				}
			}
		}
	}
}

func aLateClaimIsTold(e *Evidence) {
	for _, h := range e.History.Holds {
		a := e.account(h.Session)
		l := a.latest[h.Call]
		if h.How != "unknown" || l == nil || len(l.settled) == 0 || a.stamp(l.settled[0].seq).At >= h.Opened {
			continue
		}
		if len(a.lives) > 0 && a.stamp(l.at).At < h.Opened {
			e.at(a, l.settled[0].seq).fail("%s opened %s at %d and was told that nobody knows it; it was settled at event %d. %s", h.Party, h.Call, h.Opened, l.settled[0].seq, a.story(h.Call))
		}
	}
}

func aPassIsOnesOwn(e *Evidence) {
	for a, l := range e.lives {
		for _, s := range l.settled {
			at, noted := e.spanOf(a, l, s.seq)
			if s.Outcome != "no_provider" || !noted {
				continue
			}
			passed := e.passedAt(a, l, s.By)
			for _, h := range e.History.Holds {
				if !e.heldIn(a, l, h) || h.Party == s.By && h.Tab == 0 || h.Framed < at.recorded || h.Framed >= passed {
					continue
				}
				if until := e.letGo(h); until != 0 && until <= at.committed || e.shaken(a, h, at) {
					continue
				}
				e.at(a, s.seq).fail("call %s failed because %s had passed at %d (event %d), and %s held it since %d. %s", l.call, s.By, passed, s.seq, h.Party, h.Framed, a.story(l.call))
			}
		}
	}
}

// passedAt is when somebody first handed a call on; 0: never.
func (e *Evidence) passedAt(a *account, l *life, by string) int64 {
	for s, cmd := range said[*messages.DelegateRequest](e) {
		if cmd.GetSession() == a.name && cmd.GetCallId() == l.call && cmd.GetBy() == by {
			return s.At
		}
	}
	return 0
}

// unattendedUnloaded is where nothing goes wrong but in a disk, and nothing that
// is said is lost or repeated by others than doors: a session knows who has left.
func unattendedUnloaded(e *Evidence) {
	p := e.Plan
	if p.Rules.Passivate == 0 || p.Network.Drop+p.Network.Duplicate > 0 || len(p.Network.Lose)+len(p.Network.Repeat) > 0 {
		return
	}
	rests := p.Rules.Passivate.Milliseconds() + p.Rules.Grace.Milliseconds() + 4*p.Network.DelayMax.Milliseconds() + 3*p.Disk.DelayMax.Milliseconds() + 2*earlyMax
	for _, a := range e.accounts {
		until := int64(0)
		for _, b := range e.attended(a) {
			if b.from > until+rests && e.calm(0, b.from, func(f *Fault) bool { return f.What != faultClock }) {
				e.wokenAnew(a, until, b.from)
			}
			until = max(until, b.until)
		}
	}
}

// stay is a time in which somebody needs a session.
type stay struct{ from, until int64 }

// attended are the times in which a session is needed, in order: it is spoken to,
// waited in, held, or writes.
func (e *Evidence) attended(a *account) (all []stay) {
	for _, s := range e.History.Said {
		switch {
		case s.Cmd.GetSession() != a.name:
		case s.Answer != nil && s.Tries == 1:
			all = append(all, stay{s.At, s.Answer.At})
		case s.Left && s.Tries == 1 && !e.crossed(s):
			all = append(all, stay{s.At, s.LeftAt})
		default: // an earlier try may still wait, at another door, or what its door has said again
			all = append(all, stay{s.At, e.Now})
		}
	}
	for _, h := range e.History.Holds {
		if h.Session == a.name {
			all = append(all, stay{h.Opened, cmp.Or(h.Over, e.Now) + e.leased()})
		}
	}
	for _, at := range a.stamps {
		all = append(all, stay{at.At, at.At})
	}
	slices.SortStableFunc(all, func(x, y stay) int { return cmp.Compare(x.from, y.from) })
	return all
}

// crossed: a party left when the door of its host was about to ask again, at another
// host, where the one may overtake the other.
func (e *Evidence) crossed(s *Said) bool {
	since := (s.LeftAt - s.At) % repeatMS
	return e.Plan.Hosts > 1 && (since < 2*earlyMax || since > repeatMS-2*earlyMax)
}

// leased is how long a claim may hold after its end: said again by its host, it
// may overtake its release.
func (e *Evidence) leased() int64 {
	if e.Plan.Hosts == 1 {
		return 0
	}
	return leaseMS
}

// wokenAnew holds what comes after a time in which a session was left alone.
func (e *Evidence) wokenAnew(a *account, from, to int64) {
	i := slices.IndexFunc(a.stamps, func(at Stamp) bool { return at.At > from })
	if i <= 0 || i >= len(a.log.Commits) || a.log.Commits[i].Kind == disk.KindOpen { // the first makes it
		return
	}
	e.point = a.stamps[i].Line
	e.commit(a, i).fail("nobody needed session %s from %d to %d, and it was still in memory: it wrote event %d at %d without being opened again", a.name, from, to, a.log.Commits[i].Seq, a.stamps[i].At)
}
