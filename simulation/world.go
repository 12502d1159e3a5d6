package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/disk"
	"github.com/parleyrun/parley/supervisor/virtual"
)

// World is one run: hosts, a network, a disk and parties, on one goroutine.
//
//	what can happen now:   a mailbox delivers, an operation of the disk meets its
//	                       fate, a party goes on
//	what happens later:    timers, messages under way, faults
//
// It takes one thing at a time. While something can happen now, time mostly
// stands still; when nothing can, the clock goes to the next thing that waits.
type World struct {
	plan      *Plan
	dice      *rand.Rand // how long things take
	fates     fates      // what else is drawn
	now       int64      // true time, milliseconds since the start; hosts have clocks of their own
	steps     int
	chosen    int
	ops       int   // operations of the disk that met a fate
	fixed     *Plan // keeps what the dice decide, when that is wanted
	delivered int   // messages that actors have taken
	ready     []task
	queued    map[*virtual.Box]bool
	later     later
	spare     []event // made in advance, for w.later
	events    int
	hosts     []*host
	disk      *disk.Disk
	parties   []*party
	refs      int
	programs  map[string]Program
	bounds    bounds
	ids       int
	placement map[string]int // who runs a session, in truth
	healed    bool
	cut       map[[2]int]bool // hosts that cannot hear each other
	trace     *trace
	History   *History
}

// task is one thing that can happen now.
type task struct {
	box   *virtual.Box
	run   func()
	since int64 // it could
}

func newWorld(p *Plan, opts Options) *World {
	w := &World{plan: p, dice: rand.New(rand.NewPCG(p.Seed, 0x9e3779b97f4a7c15)), fates: newFates(p.Seed), queued: map[*virtual.Box]bool{}, cut: map[[2]int]bool{}, disk: disk.New(), trace: newTrace(opts), History: &History{},
		programs: opts.Programs, bounds: p.bounds(opts.Rest)}
	return w
}

// say adds a line to the trace.
func (w *World) say(lane, kind, text string) {
	w.trace.add(Line{At: w.now, Lane: lane, Kind: kind, Text: text})
}

// brief says a message for the trace.
func (w *World) brief(m messages.Message) string {
	if w.trace.silent {
		return ""
	}
	return brief(m)
}

func (w *World) sayf(lane, kind, format string, args ...any) {
	if w.trace.silent {
		w.say(lane, kind, "")
		return
	}
	w.say(lane, kind, fmt.Sprintf(format, args...))
}

// Choices.

// fates are the dice that can be replaced by what they decided: each kind has
// its own, so that nothing else changes with it.
type fates struct {
	order, early, drop, repeat, refuse, doubt *rand.Rand
}

func newFates(seed uint64) fates {
	dice := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9+n)) }
	return fates{order: dice(1), early: dice(2), drop: dice(3), repeat: dice(4), refuse: dice(5), doubt: dice(6)}
}

// befalls decides whether the n-th of a kind meets a fate: it was named for it,
// or the dice say so. What they say is kept, if that is wanted.
func (w *World) befalls(n int, named []int, dice *rand.Rand, rate int, kept func(*Plan) *[]int) bool {
	if slices.Contains(named, n) {
		return true
	}
	yes := drawn(dice, rate)
	if yes && w.fixed != nil {
		all := kept(w.fixed)
		*all = append(*all, n)
	}
	return yes
}

// happens draws a rate in thousandths.
func (w *World) happens(rate int) bool { return drawn(w.dice, rate) }

func drawn(dice *rand.Rand, rate int) bool { return rate > 0 && dice.IntN(1000) < rate }

// between draws a time.
func (w *World) between(lo, hi time.Duration) int64 {
	a, b := lo.Milliseconds(), hi.Milliseconds()
	if b <= a {
		return a
	}
	return a + w.dice.Int64N(b-a+1)
}

// choose picks which of n things happens next: the one that has waited longest,
// or any.
func (w *World) choose(n int) int {
	w.chosen++
	c := w.chooses(n)
	if w.fixed != nil && c > 0 {
		w.fixed.Schedule.Choose[w.chosen] = c
	}
	return c
}

func (w *World) chooses(n int) int {
	if c, fixed := w.plan.Schedule.Choose[w.chosen]; fixed {
		return min(c, n-1)
	}
	if n == 1 || !drawn(w.fates.order, w.plan.Schedule.Random) {
		return 0
	}
	return w.fates.order.IntN(n)
}

// What happens now.

// soon lets something happen as soon as the schedule says so.
func (w *World) soon(run func()) { w.ready = append(w.ready, task{run: run, since: w.now}) }

// Ready is told by a mailbox that it can deliver (virtual.World).
func (w *World) Ready(b *virtual.Box) {
	if !w.queued[b] {
		w.queued[b] = true
		w.ready = append(w.ready, task{box: b, since: w.now})
	}
}

func (w *World) take(i int) {
	t := w.ready[i]
	w.ready = append(w.ready[:i], w.ready[i+1:]...)
	if t.box == nil {
		t.run()
		return
	}
	delete(w.queued, t.box)
	if !t.box.Deliverable() {
		return
	}
	if h := w.hostOf(t.box.Host()); h == nil || h.paused {
		if h != nil {
			h.parked = append(h.parked, t.box)
		}
		return
	}
	w.delivering(t.box)
	w.delivered++
	t.box.Deliver()
	if t.box.Deliverable() {
		w.Ready(t.box)
	}
}

// delivering notes what an actor is about to take.
func (w *World) delivering(b *virtual.Box) {
	text := ""
	if !w.trace.silent {
		text = b.Name() + " " + describe(b.Next())
	}
	w.say(b.Host().Address(), KindDeliver, text)
}

// What happens later.

type event struct {
	at    int64
	order int
	run   func()
	void  bool
}

type later []*event

func (l later) Len() int { return len(l) }
func (l later) Less(i, j int) bool {
	return l[i].at < l[j].at || l[i].at == l[j].at && l[i].order < l[j].order
}
func (l later) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *later) Push(x any)   { *l = append(*l, x.(*event)) }
func (l *later) Pop() any {
	old := *l
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return e
}

// after lets something happen when a time has passed.
func (w *World) after(ms int64, run func()) *event {
	w.events++
	if len(w.spare) == 0 {
		w.spare = make([]event, 64)
	}
	e := &w.spare[0]
	w.spare = w.spare[1:]
	*e = event{at: w.now + max(ms, 0), order: w.events, run: run}
	heap.Push(&w.later, e)
	return e
}

// cancel keeps it from happening.
func (e *event) cancel() { e.void, e.run = true, nil }

// pass lets the next thing that waits for its time happen; false: there is none.
func (w *World) pass() bool {
	for len(w.later) > 0 {
		e := heap.Pop(&w.later).(*event)
		if e.void {
			continue
		}
		w.now = max(w.now, e.at)
		e.run()
		return true
	}
	return false
}

// Step lets one thing happen; false: nothing will any more.
func (w *World) Step() bool {
	w.steps++
	if len(w.ready) == 0 || drawn(w.fates.early, w.plan.Schedule.Early) && w.soonest() < w.ready[0].since+earlyMax {
		return w.pass() || len(w.ready) > 0
	}
	w.take(w.choose(len(w.ready)))
	return true
}

// earlyMax is how far time may run ahead of anything that could have happened, of
// which the first has waited longest: a host is slow, but not stopped.
const earlyMax = 500

func (w *World) soonest() int64 {
	for len(w.later) > 0 && w.later[0].void {
		heap.Pop(&w.later)
	}
	if len(w.later) == 0 {
		return 1 << 62
	}
	return w.later[0].at
}

// virtual.World.

// Now is a host's own time.
func (w *World) Now(h *virtual.Host) actors.Now {
	if host := w.hostOf(h); host != nil {
		return host.clock()
	}
	return actors.Now{Wall: wallStart + w.now, Mono: 1 + w.now}
}

// After starts a timer of a host.
func (w *World) After(h *virtual.Host, d time.Duration, fire func()) func() {
	return w.after(d.Milliseconds(), fire).cancel
}

// Work is background work of a host.
func (w *World) Work(_ *virtual.Host, work func()) { w.soon(work) }

// Send carries a frame to another host.
func (w *World) Send(h *virtual.Host, to string, frame []byte) {
	from := w.hostOf(h)
	if from == nil {
		return
	}
	for _, dest := range w.hosts {
		if dest.name == to {
			w.carry(from, dest, frame)
			return
		}
	}
}

// NewID draws an id that nobody has used.
func (w *World) NewID(*virtual.Host) string { return w.newID("i") }

func (w *World) newID(kind string) string {
	w.ids++
	return fmt.Sprintf("%s%d", kind, w.ids)
}

func (w *World) hostOf(v *virtual.Host) *host {
	for _, h := range w.hosts {
		if h.virtual == v {
			return h
		}
	}
	return nil // its process is gone
}
