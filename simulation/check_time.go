package simulation

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/disk"
)

// timeInvariants are about deadlines and claims. What a host does when the
// world troubles it is looser: each says under which circumstances it holds.
var timeInvariants = []Invariant{
	{"no deadline under a claim", "the host's deadline does not end a call while a client knows that it holds it", []string{"Q-082", "Q-085", "Q-086"}, noDeadlineUnderAClaim},
	{"not before its time", "the host's deadline does not end a call before the recorded time, and a jump of the wall clock does not shorten a wait", []string{"Q-081", "Q-087", "Q-091"}, notBeforeItsTime},
	{"not after its time", "with no claim left, a call ends at its original deadline, or at once if that has passed", []string{"Q-087", "P7"}, notAfterItsTime},
	{"grace after a loss", "a deadline does not end a call until claim_grace after a claim on it was lost, or after its wait was built anew", []string{"Q-086", "P7"}, graceAfterALoss},
	{"a deadline is fixed", "a call's deadline is the time it was asked at and as long as it asked for", []string{"Q-081", "P7"}, deadlineIsFixed},
}

// ranOut is the record that the host's own deadline ended a call: an end by
// nobody, for no reason.
func (a *account) ranOut(l *life) (settledAt, bool) {
	for _, s := range l.settled {
		if s.Outcome == "pending" && s.By == "" && s.Reason == "" {
			return s, true
		}
	}
	return settledAt{}, false
}

// span is a stretch of true time in the life of a call.
type span struct {
	host       int
	asked      int64 // decided, at the earliest
	recorded   int64 // the same, durable
	ended      int64 // decided, at the earliest
	committed  int64 // durable
	askedBy    int
	wall       int64 // the host's clock when it ended
	askedWall  int64
	endedByOwn bool // the host that asked has ended it, without a new epoch
}

// spanOf is the life of a call to one of its events; false if nobody noted when.
func (e *Evidence) spanOf(a *account, l *life, end int64) (span, bool) {
	if l.wait < 0 || len(a.stamps) == 0 {
		return span{}, false
	}
	s := span{recorded: a.stamp(l.wait).At, committed: a.stamp(end).At, host: hostIndex(a.by(end).Host), askedBy: hostIndex(a.by(l.wait).Host)}
	s.askedWall, s.wall = a.log.Events[l.wait].Time, a.log.Events[end].Time
	s.asked, s.ended = e.truly(s.askedBy, s.askedWall, s.recorded), e.truly(s.host, s.wall, s.committed)
	s.endedByOwn = s.host == s.askedBy && a.by(end).Epoch == a.by(l.wait).Epoch
	return s, true
}

func noDeadlineUnderAClaim(e *Evidence) {
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
			if until := e.letGo(h); until != 0 && until <= s.committed || e.shaken(a, h, s) {
				continue
			}
			e.at(a, end.seq).fail("call %s ran out at %d (event %d) while %s had held it since %d. %s", l.call, s.ended, end.seq, h.Party, h.Framed, a.story(l.call))
		}
	}
}

// heldIn: a claim was on a call as it was asked this time, and its client knew.
// One that was opened before the call was asked anew is left out: its client may
// believe that it holds what the call was before, of whose end it has not heard.
func (e *Evidence) heldIn(a *account, l *life, h *Hold) bool {
	if h.Session != a.name || h.Call != l.call || h.Framed == 0 {
		return false
	}
	before, _ := a.at(l.call, l.at)
	return before == nil || h.Opened > a.stamp(l.wait).At
}

// letGo is when a client let a claim go or learned that it was over, by saying
// that its countdown ended or that it passes too; 0: it did not.
func (e *Evidence) letGo(h *Hold) int64 {
	if at := e.passed(h); at != 0 {
		return at
	}
	return h.Over
}

// passed is when a client said, under a claim or as it ended, that its countdown
// ended or that it passes; 0: it did not.
func (e *Evidence) passed(h *Hold) int64 {
	for _, s := range e.History.Said {
		if s.Party != h.Party || s.Tab != h.Tab || s.At < h.Opened || s.Cmd.GetSession() != h.Session || h.Over != 0 && s.At > h.Over {
			continue
		}
		switch cmd := s.Cmd.(type) {
		case *messages.ExpireRequest, *messages.DelegateRequest:
			if cmd.(interface{ GetCallId() string }).GetCallId() == h.Call {
				return s.At
			}
		}
	}
	return 0
}

// shaken: something has happened that a claim need not survive: its session
// began anew, its host or the session's had trouble, they could not hear each
// other, or the clock of the session's host was set back.
func (e *Evidence) shaken(a *account, h *Hold, s span) bool {
	if a.openedBetween(h.Opened, s.committed) > 0 {
		return true
	}
	remote := h.Host != s.host
	if remote && e.Plan.Network.Drop > 0 {
		return true // renewals may be lost until the lease is
	}
	return !e.calm(h.Opened, s.committed, func(f *Fault) bool {
		switch f.What {
		case faultMove:
			return f.Session == a.name
		case faultClock:
			return f.Host == s.host && f.By < 0
		}
		return f.Host == h.Host || f.Host == s.host || f.What == faultPartition && (f.To == h.Host || f.To == s.host)
	}) || e.movedBefore(a, s.committed)
}

// movedBefore: more than one host may believe that it runs the session.
func (e *Evidence) movedBefore(a *account, at int64) bool {
	return !e.calm(0, at, func(f *Fault) bool { return f.What == faultMove && f.Session == a.name })
}

func notBeforeItsTime(e *Evidence) {
	for a, l := range e.lives {
		end, ran := a.ranOut(l)
		s, noted := e.spanOf(a, l, end.seq)
		if !ran || !noted {
			continue
		}
		deadline := due(l.rec)
		if deadline == 0 {
			e.at(a, end.seq).fail("call %s has no deadline, and ran out at event %d. %s", l.call, end.seq, a.story(l.call))
			continue
		}
		jumped := func(f *Fault) bool { return f.What == faultClock && f.Host == s.host }
		if s.wall < deadline && e.calm(s.asked, s.committed, jumped) {
			e.at(a, end.seq).fail("call %s ran out when its host's clock showed %d (event %d), %d ms before its deadline. %s", l.call, s.wall, end.seq, deadline-s.wall, a.story(l.call))
		}
		// A timer that ran from the asking on, undisturbed by claims, is as long as
		// the call asked for, whatever a clock shows meanwhile.
		whole := deadline - s.askedWall
		built := s.recorded + e.builtWithin()
		stood := func(f *Fault) bool { return f.What == faultPause && f.Host == s.host }
		if s.endedByOwn && e.calm(s.asked, built, stood) && !e.claimed(a, l, s) && s.committed-s.asked < whole {
			e.at(a, end.seq).fail("call %s waited from %d to %d, %d ms, and had asked for %d. %s", l.call, s.asked, s.committed, s.committed-s.asked, whole, a.story(l.call))
		}
	}
}

func (e *Evidence) claimed(a *account, l *life, s span) bool {
	return slices.ContainsFunc(e.History.Holds, func(h *Hold) bool {
		return h.Session == a.name && h.Call == l.call && h.Opened <= s.committed
	})
}

// How long things may take that nothing hinders.
const (
	deadlineSlack = 1_500
	sweepMS       = 5_000
	learnedWithin = 2_000 // by hosts: who runs a session
)

// builtWithin is how long it takes until the timer of a wait that was recorded
// runs: its session hears of that, and then the wait of its seed.
func (e *Evidence) builtWithin() int64 { return 100 + 3*e.lag() }

// lag is how late anything may happen that could.
func (e *Evidence) lag() int64 {
	if e.Plan.Schedule.Early > 0 {
		return earlyMax
	}
	return 0
}

// notAfterItsTime holds for calls that nothing troubled, and for all once the
// world has healed.
func notAfterItsTime(e *Evidence) {
	for a, l := range e.lives {
		deadline := due(l.rec)
		if deadline == 0 || l.wait < 0 || len(a.stamps) == 0 {
			continue
		}
		end, committed := int64(-1), e.Now
		if len(l.states) > 1 {
			end = l.states[1].seq
			committed = a.stamp(end).At
		}
		from := a.stamp(l.wait).At
		asked := e.truly(hostIndex(a.by(l.wait).Host), a.log.Events[l.wait].Time, from)
		if !e.calm(asked, committed, anyJump) {
			continue // whose clock it is, and when its timer was set, decides
		}
		// The clock that counts is the one of whoever ran the session then.
		at := int64(0)
		for host := range e.Plan.Hosts {
			_, skew := e.skews(host)
			at = max(at, deadline-wallStart-skewAt(e, host, from, skew))
		}
		grace := e.Plan.Rules.Grace.Milliseconds()
		free := e.lastHold(a, l, committed)
		if e.lossOf(a, l, committed) {
			free += grace
			if e.endLost() || e.Plan.Hosts > 1 { // a claim's end may be lost, or overtaken by the claim's last renewal
				free += leaseMS
			}
		}
		at = max(at, from, free)
		limit := at + e.slack(a, at, committed)
		woken := at + sweepMS + e.slack(a, at, committed) // at the latest, if it was unloaded
		switch calm, began := e.calm(from, committed, anyFault), a.lastOpen(from, min(committed, woken)); {
		case e.Plan.Disk.Refuse+e.Plan.Disk.InDoubt > 0 && (!calm || began > 0):
			limit = max(limit, e.History.Healed+e.slack(a, at, committed)+grace) + grace + sweepMS + leaseMS + repeatMS
		case !calm:
			limit = max(limit, max(began, e.lastFault(committed))+e.slack(a, at, committed)+grace) + grace + sweepMS + leaseMS + repeatMS
		case began > 0: // it was unloaded, and woken when it was due
			limit = max(limit, began+e.slack(a, at, committed)+grace)
		}
		if committed > limit {
			e.at(a, max(end, l.wait)).fail("call %s was to run out at %d (true time; its last claim ended at %d), and is %s at %d; the limit was %d. %s", l.call, at, e.lastHold(a, l, committed), l.state(), committed, limit, a.story(l.call))
		}
	}
}

func skewAt(e *Evidence, host int, at int64, skew []int64) int64 {
	from, _ := e.skews(host)
	is := int64(0)
	for i := range from {
		if from[i] <= at {
			is = skew[i]
		}
	}
	return is
}

// lastHold is when the last claim on a call ended, as its client saw it.
func (e *Evidence) lastHold(a *account, l *life, before int64) int64 {
	last := int64(0)
	for _, h := range e.History.Holds {
		if h.Session == a.name && h.Call == l.call && h.Opened <= before {
			if h.Over == 0 {
				return before
			}
			last = max(last, h.Over)
		}
	}
	return last
}

// slack is how long it may take until an end is heard of, decided and written.
func (e *Evidence) slack(a *account, from, to int64) int64 {
	n := e.Plan.Network
	writes := int64(2)
	for i := range a.log.Commits {
		if i < len(a.stamps) && a.stamps[i].At >= from && a.stamps[i].At <= to {
			writes++
		}
	}
	return deadlineSlack + 3*n.DelayMax.Milliseconds() + writes*e.Plan.Disk.DelayMax.Milliseconds()
}

// lossOf: a claim on a call may have been lost rather than released.
func (e *Evidence) lossOf(a *account, l *life, before int64) bool {
	return slices.ContainsFunc(e.History.Holds, func(h *Hold) bool {
		return h.Session == a.name && h.Call == l.call && h.Opened <= before && (h.How != "released" || e.endLost() || e.Plan.Hosts > 1)
	})
}

// lastOpen is when the session last began anew in a time; 0: it did not.
func (a *account) lastOpen(from, to int64) int64 {
	at := int64(0)
	for i, c := range a.log.Commits {
		if c.Kind == disk.KindOpen && i < len(a.stamps) && a.stamps[i].At > from && a.stamps[i].At <= to {
			at = a.stamps[i].At
		}
	}
	return at
}

// rebuilt is when the session last began anew between two of its events; 0: it
// did not. Commits are in order, where times may be equal.
func (a *account) rebuilt(from, to int64) int64 {
	at := int64(0)
	for i := a.commit[from]; i < min(a.commit[to], len(a.stamps)); i++ {
		if a.log.Commits[i].Kind == disk.KindOpen {
			at = a.stamps[i].At
		}
	}
	return at
}

// lastFault is when the last fault before a time was over.
func (e *Evidence) lastFault(before int64) int64 {
	at := int64(0)
	for _, f := range e.History.Faults {
		if f.From <= before {
			at = max(at, min(e.until(f), before)+learnedWithin)
		}
	}
	return at
}

func graceAfterALoss(e *Evidence) {
	grace := e.Plan.Rules.Grace.Milliseconds()
	for a, l := range e.lives {
		end, ran := a.ranOut(l)
		s, noted := e.spanOf(a, l, end.seq)
		if !ran || !noted || grace == 0 {
			continue
		}
		if began := a.rebuilt(l.wait, end.seq); began > 0 && s.committed < began+grace {
			e.at(a, end.seq).fail("call %s ran out at %d, its wait was built anew after %d, and claim_grace is %d. %s", l.call, s.committed, began, grace, a.story(l.call))
		}
		for _, h := range e.History.Holds {
			if e.heldIn(a, l, h) && h.How == "lost" && h.Framed > s.recorded && e.passed(h) == 0 &&
				h.Over < s.ended && s.committed < h.Over+grace && !e.shaken(a, h, s) {
				e.at(a, end.seq).fail("call %s ran out at %d, %s had lost its claim at %d, and claim_grace is %d. %s", l.call, s.committed, h.Party, h.Over, grace, a.story(l.call))
			}
		}
	}
}

func deadlineIsFixed(e *Evidence) {
	asks := e.asks()
	for a, l := range e.lives {
		if l.wait < 0 {
			continue
		}
		deadline := due(l.rec)
		from := a.log.Events[l.wait].Time
		said := asks[a.name+" "+l.attempt+" "+l.call]
		refused := len(l.results) > 0 && a.commit[l.results[0].seq] == a.commit[l.wait]
		if !refused && !slices.ContainsFunc(said, func(cmd *messages.AskRequest) bool {
			wait := e.waitOf(cmd)
			return wait == 0 && deadline == 0 || wait > 0 && deadline == from+wait
		}) {
			e.at(a, l.wait).fail("attempt %s was recorded at %d with the deadline %d, which nobody asked for. %s", l.attempt, from, deadline, a.story(l.call))
		}
		for _, c := range e.Changes {
			if c.Session == a.name && c.Row.Seq == l.at && c.Row.State == "open" && !c.Remove && c.Row.Due != deadline {
				e.at(a, l.wait).fail("attempt %s has the deadline %d, the index had %d at position %d", l.attempt, deadline, c.Row.Due, c.At)
			}
		}
	}
}

// asks are the asks that were said, by session, attempt and call.
func (e *Evidence) asks() map[string][]*messages.AskRequest {
	asks := map[string][]*messages.AskRequest{}
	for _, cmd := range said[*messages.AskRequest](e) {
		key := cmd.GetSession() + " " + cmd.GetAttempt() + " " + cmd.GetCallId()
		asks[key] = append(asks[key], cmd)
	}
	return asks
}

// waitOf is how long a call asks to wait, in milliseconds; 0: for ever.
func (e *Evidence) waitOf(cmd *messages.AskRequest) int64 {
	if cmd.GetMode() == messages.Mode_MODE_LEGACY {
		return 0
	}
	ms := e.Plan.Rules.Timeout.Milliseconds()
	if n, ok := wholeNumber(cmd.GetArguments(), "timeout"); ok {
		ms = max(n*1000, 0)
	}
	if limit := cmd.GetWaitMaxMs(); limit > 0 && (ms == 0 || limit < ms) {
		ms = limit
	}
	return ms
}
