package simulation

import (
	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
	"github.com/parleyrun/parley/simulation/disk"
	"github.com/parleyrun/parley/supervisor"
	"github.com/parleyrun/parley/supervisor/virtual"
	"log/slog"
	"time"
)

// host is one machine: a process that comes and goes, a clock of its own, and a
// view of who runs which session, which may be old.
type host struct {
	w       *World
	index   int
	name    string
	booted  int // processes so far
	virtual *virtual.Host
	sys     *supervisor.System
	disk    *disk.Handle
	views   *query.Views
	skew    int64 // of the wall clock
	placed  map[string]int
	served  map[*rpc]bool
	holds   map[*hold]bool
	watches []*watch
	showing bool // a look at the journal for them is due
	paused  bool // alive, and nothing of it moves
	parked  []*virtual.Box
}

// wallStart is the wall clock of a world's start.
const wallStart = 1_700_000_000_000

func (h *host) clock() actors.Now {
	return actors.Now{Wall: wallStart + h.w.now + h.skew, Mono: 1 + h.w.now}
}

func (h *host) up() bool { return h.sys != nil }

// lease is how long a wait hears nothing of a claim on another host before it
// drops it, and how often a door asks again.
const (
	leaseMS  = 10_000
	repeatMS = 10_000
)

// boot starts the host's process.
func (h *host) boot() {
	if h.up() {
		return
	}
	h.booted++
	h.w.ended(faultCrash, h.index, 0)
	h.w.sayf(h.name, KindFault, "boots, process %d", h.booted)
	h.virtual = virtual.NewHost(h.w, h.name)
	h.disk = h.w.disk.Handle(h.name, h)
	h.views = query.New(h.disk, query.Options{Now: func() time.Time { return time.UnixMilli(h.clock().Wall) }})
	h.placed = map[string]int{}
	for _, s := range h.w.plan.Sessions {
		h.placed[s.Name] = h.w.placement[s.Name]
	}
	r := h.w.plan.Rules
	rules := &actors.Rules{Mode: 1, DefaultTimeoutS: int64(r.Timeout.Seconds()), ClaimGraceMS: r.Grace.Milliseconds(), FirstExpiryWins: r.First,
		PassivateAfterMS: r.Passivate.Milliseconds(), OpenCallsMax: actors.OpenCallsMaxDefault, QueueMax: actors.QueueMaxDefault, NewID: h.w.newID}
	lease, repeat := int64(leaseMS), int64(repeatMS)
	if len(h.w.hosts) == 1 {
		lease, repeat = 0, 0
	}
	sys, err := supervisor.Start(supervisor.Config{
		Node: h.name, Runtime: h.virtual.Runtime(), Journal: h.disk, Logger: slog.New(complaints{h}),
		Place: func(session string) string { return h.w.hosts[h.placed[session]].name },
		Peer:  func(node string) (string, bool) { return node, true },
		NewSession: func(session string, opened journal.Opened) (actors.Machine, error) {
			return actors.NewSession(rules, session, opened.Header, opened.Events)
		},
		NewDoor: func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, repeat) },
		NewClaim: func(self actors.Addr, session, call string) actors.Machine {
			return actors.NewClaim(self, session, call, lease)
		},
	})
	if err != nil {
		panic("simulation: a host does not start: " + err.Error())
	}
	h.sys = sys
}

// crash ends the host's process: all that it held in memory is gone, and what
// it had asked of the disk is done or not.
func (h *host) crash() {
	if !h.up() {
		return
	}
	h.w.say(h.name, KindFault, "crashes")
	h.w.began(&Fault{What: faultCrash, Host: h.index})
	h.sys, h.paused, h.parked = nil, false, nil
	h.virtual.Crash()
	h.virtual.Release()
	h.disk.Crash()
	for _, r := range sortedRPCs(h.served) {
		r.broken()
	}
	for _, c := range sortedHolds(h.holds) {
		c.broken()
	}
	for _, s := range h.watches {
		s.line.tear()
	}
	h.served, h.holds, h.watches, h.showing = nil, nil, nil, false
}

// Submit takes an operation of the disk (disk.Owner): its fate is drawn when its
// time has come.
func (h *host) Submit(op *disk.Op) {
	d := h.w.plan.Disk
	process := h.booted
	decide := func() {
		if h.booted != process || !h.up() {
			return
		}
		h.decide(op)
	}
	if delay := h.w.between(0, d.DelayMax); delay > 0 && !h.w.healed {
		h.w.after(delay, func() { h.w.soon(decide) })
		return
	}
	h.w.soon(decide)
}

func (h *host) decide(op *disk.Op) {
	d := h.w.plan.Disk
	h.w.ops++
	switch n := h.w.ops; {
	case h.w.healed:
		op.Commit()
	case h.w.befalls(n, d.RefuseOps, h.w.fates.refuse, d.Refuse, (*Plan).refused):
		h.w.tellDisk(op, "refused")
		op.Refuse(errDisk)
		return
	case h.w.befalls(n, d.DoubtOps, h.w.fates.doubt, d.InDoubt, (*Plan).doubted):
		h.w.tellDisk(op, "done, and an error told")
		line := h.w.trace.n
		op.InDoubt(errDisk)
		h.w.observe(op, line)
		return
	default:
		op.Commit()
	}
	h.w.observe(op, h.w.trace.n+1)
	h.w.tellDisk(op, fate(op))
}

func (w *World) tellDisk(op *disk.Op, fate string) {
	text := ""
	if !w.trace.silent {
		text = op.String() + " " + fate
	}
	w.say("disk", KindDisk, text)
}

func (p *Plan) refused() *[]int { return &p.Disk.RefuseOps }
func (p *Plan) doubted() *[]int { return &p.Disk.DoubtOps }

// fate says what became of an operation that nothing was done to.
func fate(op *disk.Op) string {
	if err := op.Err(); err != nil {
		return string(messages.CodeOf(err))
	}
	return "done"
}

// pause stops everything of the host but its clock, as a machine stops that is
// suspended or starved; others take it for dead.
func (h *host) pause() {
	h.w.say(h.name, KindFault, "stands still")
	h.paused = true
	h.w.began(&Fault{What: faultPause, Host: h.index})
}

// resume goes on where it stood: it does not know that time has passed.
func (h *host) resume() {
	if !h.paused {
		return
	}
	h.w.say(h.name, KindFault, "goes on")
	h.paused = false
	h.w.ended(faultPause, h.index, 0)
	for _, b := range h.parked {
		h.w.Ready(b)
	}
	h.parked = nil
	h.show()
}
