package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

var errDisk = messages.Refuse(messages.JournalIO, "the disk failed")

// Report is how a run came out.
type Report struct {
	Plan  *Plan
	Steps int
	// Messages is how many messages actors have taken.
	Messages int
	// Fixed is the plan with what its dice decided of order, messages and the
	// disk in their place, when that was kept: it runs the same.
	Fixed *Plan
	// Lines is the trace, when it was kept; Sum is the hash of it, always.
	Lines []Line
	Sum   string
	// Took is how much time passed in the world.
	Took time.Duration
	// Stopped says by which bound the world was stopped before it came to rest,
	// and what to change if that is all that is wrong. Empty: it came to rest.
	Stopped string
	// Failures are the promises that were broken, each with what shows it.
	Failures []Failure
}

// Failure is one broken promise.
type Failure struct {
	Invariant string
	Text      string
	Line      int // of the trace; 0: the end
}

func (f Failure) String() string { return f.Invariant + ": " + f.Text }

// Options of a run.
type Options struct {
	// Keep keeps the trace's lines, for pictures and for reading.
	Keep bool
	// Silent writes no trace at all, for many runs of which only the failures are
	// looked at: Report.Sum is empty. It changes nothing of the run.
	Silent bool
	// Fix keeps what the dice decide, for Report.Fixed.
	Fix bool
	// Programs run in place of the scripts of the parties they are named for.
	Programs map[string]Program
	// Rest is how long programs may take once the world has healed. 0: what the
	// plan's own acts need, and a quarter of an hour.
	Rest time.Duration
	// Check judges a run by what a program has done, beside the invariants.
	Check func(*History) []Failure
}

// Run runs a plan to its end. It panics with what Try returns as an error.
func Run(p *Plan, opts Options) *Report {
	if err := opts.validate(p); err != nil {
		panic(err)
	}
	return run(p, opts)
}

func run(p *Plan, opts Options) *Report {
	w := newWorld(p, opts)
	if opts.Fix {
		w.fixed = p.undrawn()
	}
	defer w.unwind()
	w.start()
	for !w.spent() && w.now < p.For.Milliseconds() && w.Step() {
		continue
	}
	w.heal()
	for !w.spent() && !w.atRest() && w.Step() {
		continue
	}
	stopped := w.stopped()
	failures := w.check()
	if opts.Check != nil {
		failures = append(failures, opts.Check(w.History)...)
	}
	w.close()
	return &Report{Plan: p, Steps: w.steps, Messages: w.delivered, Fixed: w.fixed, Lines: w.trace.all, Sum: w.trace.Sum(),
		Took: time.Duration(w.now) * time.Millisecond, Stopped: stopped, Failures: failures}
}

func (w *World) start() {
	p := w.plan
	w.placement = map[string]int{}
	for _, s := range p.Sessions {
		w.placement[s.Name] = s.Host
	}
	for i := range p.Hosts {
		w.hosts = append(w.hosts, &host{w: w, index: i, name: fmt.Sprintf("h%d", i+1)})
	}
	for _, h := range w.hosts {
		h.boot()
	}
	for i := range p.Parties {
		party := w.newParty(&p.Parties[i])
		w.parties = append(w.parties, party)
		party.begin(party.program)
	}
	for _, f := range p.Faults {
		w.after(f.At.Milliseconds(), func() {
			if !w.healed {
				w.fault(f)
			}
		})
	}
}

// Faults.
const (
	faultCrash     = "crash"     // a host; it comes back after for=
	faultPartition = "partition" // two hosts do not hear each other
	faultPause     = "pause"     // a host stands still
	faultClock     = "clock"     // a host's wall clock jumps by for=
	faultMove      = "move"      // a session is given to another host; others learn late
	faultKill      = "kill"      // a party's process; it begins again after for=
	faultOffline   = "offline"   // a client is cut off; it is its own act, and in no plan
)

func (w *World) fault(f FaultPlan) {
	h := w.hosts[f.Host%len(w.hosts)]
	switch f.What {
	case faultCrash:
		h.crash()
		w.after(f.For.Milliseconds(), h.boot)
	case faultPartition:
		to := w.hosts[f.To%len(w.hosts)]
		if to == h {
			return
		}
		w.sayf(h.name, KindFault, "is cut off from %s", to.name)
		w.cut[pair(h.index, to.index)] = true
		w.began(&Fault{What: faultPartition, Host: h.index, To: to.index})
		w.after(f.For.Milliseconds(), func() {
			w.sayf(h.name, KindFault, "hears %s again", to.name)
			delete(w.cut, pair(h.index, to.index))
			w.ended(faultPartition, h.index, to.index)
		})
	case faultPause:
		if h.up() {
			h.pause()
			w.after(f.For.Milliseconds(), h.resume)
		}
	case faultClock:
		h.skew += f.For.Milliseconds()
		w.began(&Fault{What: faultClock, Host: h.index, By: f.For.Milliseconds()})
		w.sayf(h.name, KindFault, "its wall clock jumps by %v", f.For)
	case faultMove:
		w.sayf(h.name, KindFault, "is given session %s", f.Session)
		w.placement[f.Session] = h.index
		w.began(&Fault{What: faultMove, Host: h.index, Session: f.Session, Until: w.now + f.For.Milliseconds()})
		for _, other := range w.hosts {
			w.after(w.learns(f, other), func() { other.learn(f.Session) })
		}
	case faultKill:
		for _, p := range w.parties {
			if p.name == f.Party {
				p.crashFor(f.For)
			}
		}
	default:
		panic("simulation: no fault is called " + f.What)
	}
}

// learns is when a host learns of a move. If others may take their time, whoever
// is given the session knows at once: for so long two hosts run it.
func (w *World) learns(f FaultPlan, h *host) int64 {
	switch {
	case f.For == 0:
		return w.between(0, learnedWithin*time.Millisecond)
	case h.index == f.Host%len(w.hosts):
		return 0
	}
	return w.between(0, f.For)
}

// learn tells a host who runs a session now. The one that ran it unloads it.
func (h *host) learn(session string) {
	if !h.up() {
		return
	}
	h.placed[session] = h.w.placement[session]
	if h.placed[session] != h.index {
		h.sys.Release(session)
	}
}

// heal ends every fault. Clocks stay as they are.
func (w *World) heal() {
	w.healed = true
	w.say("world", KindMark, "heals")
	w.cut = map[[2]int]bool{}
	w.History.Healed = w.now
	for _, f := range w.History.Faults {
		f.Until = min(f.Until, w.now)
	}
	for _, h := range w.hosts {
		h.resume()
		h.boot()
		for _, s := range w.plan.Sessions {
			h.learn(s.Name)
		}
	}
	for _, p := range w.parties {
		if p.off {
			p.online()
		}
		if p.crashed {
			p.begin(p.program)
		}
	}
	w.after(operatorAfter, func() {
		op := w.newParty(&PartyPlan{Kind: PersonParty, Name: "operator"})
		w.parties = append(w.parties, op)
		op.begin(w.operate)
	})
}

// operatorAfter is when an operator comes into a healed world, and tidies up:
// questions that nobody answers are taken back, so that whoever waits for one
// without a deadline hears of it.
const operatorAfter = 30_000

// operatorTakes is what it leaves itself to take what nobody has taken, if the
// others do not come to rest.
const operatorTakes = 5 * 60_000

func (w *World) operate(l *Loop) {
	for w.now < w.restBy()-operatorTakes {
		open := false
		for _, row := range w.rows("") {
			if row.Row.State == sessionlog.RowReplied {
				continue // its agent takes it
			}
			open = true
			l.p.session = row.Session
			l.do(&messages.WithdrawQuestionRequest{Session: row.Session, CallId: row.Row.CallID, By: l.p.name, Reason: "tidying up"})
		}
		if !open && w.othersRest(l.p) {
			break
		}
		l.sleep(5_000)
	}
	for _, s := range w.plan.Sessions { // what nobody has taken yet
		root := "operator-" + s.Name
		if _, ok := l.do(&messages.AttachRequest{Session: s.Name, Root: root}).(*messages.AttachResponse); !ok {
			continue
		}
		l.p.session, l.p.root = s.Name, root
		l.p.take(l)
	}
}

func (w *World) othersRest(p *party) bool {
	for _, other := range w.parties {
		if other != p && !other.rests() {
			return false
		}
	}
	return true
}

// atRest: every program has ended, the operator's too.
func (w *World) atRest() bool {
	if len(w.parties) == len(w.plan.Parties) {
		return false
	}
	for _, p := range w.parties {
		if !p.rests() {
			return false
		}
	}
	return true
}

// unwind ends the programs of a world that has panicked; of one that was closed
// none is left.
func (w *World) unwind() {
	for _, p := range w.parties {
		if !p.done && !p.crashed {
			p.stop()
		}
	}
}

func (w *World) close() {
	for _, p := range w.parties {
		if !p.done && !p.crashed {
			p.crash()
		}
	}
	for _, h := range w.hosts {
		h.crash()
	}
}

// row is the state of a call in the journal's index; empty: it cannot be answered.
func (w *World) row(session, call string) string {
	for _, r := range w.rows(session) {
		if r.Row.CallID == call {
			return string(r.Row.State)
		}
	}
	return ""
}

// rows is the journal's index, as any host that is up would list it, of one
// session or of all.
func (w *World) rows(session string) []journal.ActiveRow {
	for _, h := range w.hosts {
		if h.up() {
			rows, _, _ := h.disk.Active(context.Background(), journal.ActiveFilter{Session: session}) // this disk reads without fault
			return rows
		}
	}
	return nil
}
