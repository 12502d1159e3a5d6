package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/disk"
)

// Invariant is a promise that holds whatever goes wrong.
type Invariant struct {
	Name string
	// Says is the promise, in a sentence.
	Says string
	// Guards are the rules and promises it stands for: ids of the
	// specification, of the design's promises (P1 … P8), of known faults.
	Guards []string
	// Check reports each breach to the evidence.
	Check func(e *Evidence)
}

// Invariants are all of them. They look at evidence only: what parties said and
// were told, and the journal. None knows a machine from inside.
var Invariants = slices.Concat(logInvariants, toldInvariants, timeInvariants, subCallInvariants, restInvariants, policyInvariants, patienceInvariants,
	receiptInvariants, markInvariants, cardInvariants, keyInvariants, stepInvariants, panicInvariants)

// Evidence is what a run leaves behind for whoever judges it.
type Evidence struct {
	Plan    *Plan
	History *History
	Logs    []disk.Log
	Rows    []journal.ActiveRow // the journal's index at the end
	Changes []journal.Change    // and how it came about
	Shown   []*messages.QuestionRow
	Now     int64
	// Stopped says by what the world was stopped before it came to rest; empty: it
	// came to rest.
	Stopped string
	// Busy are the programs that have not ended, each with what it waits for.
	Busy []string

	accounts []*account
	byName   map[string]*account
	failures []Failure
	checking string
	point    int // of the trace: what the next failure is about
}

// Judge holds every invariant against the evidence.
func Judge(e *Evidence) []Failure {
	e.prepare()
	for _, inv := range Invariants {
		e.checking = inv.Name
		inv.Check(e)
	}
	return e.failures
}

func (e *Evidence) prepare() {
	e.accounts, e.failures = nil, nil
	e.byName = map[string]*account{}
	for _, log := range e.Logs {
		a := newAccount(log, e.History.Written[log.Session])
		e.accounts = append(e.accounts, a)
		e.byName[log.Session] = a
	}
}

// fail reports a breach, at the point of the trace that was named last.
func (e *Evidence) fail(format string, args ...any) {
	f := Failure{Invariant: e.checking, Line: e.point}
	f.Text, e.point = fmt.Sprintf(format, args...), 0
	e.failures = append(e.failures, f)
}

// on points at a line of the trace.
func (e *Evidence) on(line int) *Evidence {
	e.point = line
	return e
}

// at points at the line of the trace where an event was written.
func (e *Evidence) at(a *account, seq int64) *Evidence {
	return e.on(a.stamp(seq).Line)
}

// commit points at the line where a commit of a session was made.
func (e *Evidence) commit(a *account, i int) *Evidence {
	if i >= len(a.stamps) {
		return e
	}
	return e.on(a.stamps[i].Line)
}

// heard points at the line where somebody heard something, or said what nothing
// was heard of.
func (e *Evidence) heard(s *Said) *Evidence {
	if s.Answer != nil {
		return e.on(s.Answer.Line)
	}
	return e.on(s.Line)
}

// lastOf points at the line where somebody heard of a call for the last time.
func (e *Evidence) lastOf(session, call string) *Evidence {
	for _, s := range e.History.Said {
		c, of := s.Cmd.(interface{ GetCallId() string })
		if of && s.Answer != nil && s.Cmd.GetSession() == session && c.GetCallId() == call {
			e.point = max(e.point, s.Answer.Line)
		}
	}
	return e
}

// account is a session's; an empty one if it was never written.
func (e *Evidence) account(session string) *account {
	a := e.byName[session]
	if a == nil {
		a = newAccount(disk.Log{Session: session}, nil)
		e.byName[session] = a
	}
	return a
}

// check judges the run.
func (w *World) check() []Failure { return Judge(w.evidence()) }

func (w *World) evidence() *Evidence {
	e := &Evidence{Plan: w.plan, History: w.History, Logs: w.disk.All(), Rows: w.rows(""), Now: w.now, Stopped: w.stopped()}
	for _, h := range w.hosts {
		if h.up() {
			e.Changes, _, _ = h.disk.Changes(context.Background(), 0, 0) // this disk reads without fault
			for _, log := range e.Logs {
				list, err := h.views.Questions(context.Background(), &messages.ListQuestionsRequest{Session: log.Session, Settled: true})
				if err == nil {
					e.Shown = append(e.Shown, list.GetQuestions()...)
				}
			}
			break
		}
	}
	for _, p := range w.parties {
		if !p.rests() {
			e.Busy = append(e.Busy, p.waitsFor())
		}
	}
	return e
}

// waitsFor says what a program that has not ended is doing.
func (p *party) waitsFor() string {
	if p.crashed {
		return p.name + " has crashed and not come back"
	}
	text := p.name + " has not ended"
	if p.at > 0 && p.at <= len(p.plan.Acts) {
		text += fmt.Sprintf(": it is at act %d of %d (%s)", p.at, len(p.plan.Acts), p.plan.Acts[p.at-1].Verb)
	}
	for _, r := range p.rpcs {
		if !r.final && !r.left {
			text += ", waits for " + brief(r.cmd) + " after " + strconv.Itoa(r.tries) + " tries"
		}
	}
	return text
}

// said walks the commands of one type.
func said[C messages.Command](e *Evidence) func(func(*Said, C) bool) {
	return func(yield func(*Said, C) bool) {
		for _, s := range e.History.Said {
			if cmd, ok := s.Cmd.(C); ok && !yield(s, cmd) {
				return
			}
		}
	}
}

// telling is a command with what came of it.
type telling[C messages.Command, M messages.Message] struct {
	by  *Said
	cmd C
	msg M
}

// told walks the commands of one type that were answered by a message of one.
func told[C messages.Command, M messages.Message](e *Evidence) func(func(telling[C, M]) bool) {
	return func(yield func(telling[C, M]) bool) {
		for s, c := range said[C](e) {
			if s.Answer == nil {
				continue
			}
			if m, ok := s.Answer.Msg.(M); ok && !yield(telling[C, M]{s, c, m}) {
				return
			}
		}
	}
}

// refusals walks every refusal.
func (e *Evidence) refusals(yield func(*Said, *messages.Refusal) bool) {
	for _, s := range e.History.Said {
		if s.Answer == nil {
			continue
		}
		if no, ok := s.Answer.Msg.(*messages.Refusal); ok && !yield(s, no) {
			return
		}
	}
}

// The hosts' clocks.

// skews are the pieces of true time in which a host's wall clock did not jump.
func (e *Evidence) skews(host int) (from, skew []int64) {
	from, skew = []int64{0}, []int64{0}
	for _, f := range e.History.Faults {
		if f.What == faultClock && f.Host == host {
			from, skew = append(from, f.From), append(skew, skew[len(skew)-1]+f.By)
		}
	}
	return from, skew
}

// truly is when, in true time, a host's wall clock showed a time, and did so
// before something else. If it showed it twice, it is the earlier one.
func (e *Evidence) truly(host int, wall, before int64) int64 {
	from, skew := e.skews(host)
	for i := range from {
		t := wall - wallStart - skew[i]
		until := before
		if i+1 < len(from) {
			until = min(until, from[i+1])
		}
		if t >= from[i] && t <= until {
			return t
		}
	}
	return before
}

// hostIndex reads a host's name.
func hostIndex(name string) int {
	n, err := strconv.Atoi(name[min(1, len(name)):])
	if err != nil {
		return -1
	}
	return n - 1
}

// until is when a fault ended; healing ends all.
func (e *Evidence) until(f *Fault) int64 {
	switch {
	case f.Until >= 0:
		return f.Until
	case e.History.Healed > 0:
		return max(f.From, e.History.Healed)
	}
	return e.Now
}

// calm reports whether nothing went wrong with anything from a time to another,
// as far as `touches` is concerned.
func (e *Evidence) calm(from, to int64, touches func(*Fault) bool) bool {
	return !slices.ContainsFunc(e.History.Faults, func(f *Fault) bool {
		return f.From <= to && e.until(f) >= from && touches(f)
	})
}

func anyFault(*Fault) bool { return true }

// anyJump is a fault after which a host's clock says nothing of true time.
func anyJump(f *Fault) bool { return f.What == faultClock }

// openedBetween counts the epochs that were taken in a time.
func (a *account) openedBetween(from, to int64) int {
	n := 0
	for i, c := range a.log.Commits {
		if i < len(a.stamps) && c.Kind == disk.KindOpen && a.stamps[i].At >= from && a.stamps[i].At <= to {
			n++
		}
	}
	return n
}

func quote(ids []string) string { return fmt.Sprintf("%q", ids) }

func sortedIDs[T any](list []T, id func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = id(x)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
