package actors

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Door keeps the calls of one node that wait for an answer, and asks again
// what went unanswered: when a session of this node is lost, and, where a
// session may be on another node, when nothing came for a while. Every command
// is idempotent under its own key, so a repeat is always safe.
type Door struct {
	self    string
	calls   map[uint64]doorCall
	repeats *repeats // nil: a network never loses anything, since there is none
}

// doorCall is one caller that waits. Once its ask is durable the text is let
// go: what is kept is enough to attach to the wait again.
type doorCall struct {
	cmd messages.Command // nil once the ask is durable
	ask *askRef
}

type askRef struct{ session, root, attempt, call string }

// NewDoor builds a node's door; self is its address key. A call without its
// final answer is sent again repeatMS after it was last sent; 0: never. A
// durable ask is repeated as its resumption, which attaches it again wherever
// its session has moved to.
func NewDoor(self string, repeatMS int64) *Door {
	d := &Door{self: self, calls: map[uint64]doorCall{}}
	if repeatMS > 0 {
		d.repeats = &repeats{every: repeatMS, sent: map[uint64]int64{}}
	}
	return d
}

// Apply does nothing: a door is volatile.
func (d *Door) Apply(sessionlog.Event) {}

// Resume has nothing to do: callers do not survive their process.
func (d *Door) Resume(Now) Effects { return Effects{} }

// Step decides one input.
func (d *Door) Step(now Now, in Envelope) Effects {
	var fx Effects
	switch m := in.Msg.(type) {
	case DoorCall:
		if m.Cmd != nil {
			d.calls[m.Corr] = doorCall{cmd: m.Cmd}
			d.ask(now, m.Corr, m.Cmd, &fx)
		}
	case DoorCancel:
		d.cancel(m.Corr, &fx)
	case SessionGone:
		for corr, c := range sorted(d.calls) {
			if c.session() == m.Session {
				d.ask(now, corr, c.command(), &fx)
			}
		}
	case Fired:
		d.repeat(now, m, &fx)
	case messages.Reply:
		d.answered(in.To.Corr, m, &fx)
	}
	return fx
}

// ask sends what an answer is waited for.
func (d *Door) ask(now Now, corr uint64, cmd messages.Command, fx *Effects) {
	d.send(corr, cmd, fx)
	d.repeats.note(now, corr, fx)
}

// repeat asks again what has gone unanswered for long enough.
func (d *Door) repeat(now Now, m Fired, fx *Effects) {
	if d.repeats == nil || m.Gen != d.repeats.gen {
		return
	}
	for _, corr := range d.repeats.due(now) {
		d.ask(now, corr, d.calls[corr].command(), fx)
	}
	d.repeats.arm(now, fx)
}

func (d *Door) send(corr uint64, cmd messages.Command, fx *Effects) {
	fx.Sends = append(fx.Sends, Send{To: SessionAddr(cmd.GetSession()), From: Addr{d.self, corr}, Msg: cmd})
}

// answered passes an answer on, once: a duplicate finds nobody waiting. A
// Waiting is not the answer yet; it says that the question is durable.
func (d *Door) answered(corr uint64, m messages.Reply, fx *Effects) {
	c, waits := d.calls[corr]
	r, ok := m.(*messages.AskResponse)
	durable := ok && r.GetWaiting() != nil
	if !waits {
		if durable { // it left before it knew which call it waits for, or the ask is a stray copy
			d.send(corr, &messages.AskDetachRequest{Session: r.GetSession(), CallId: r.GetCallId()}, fx)
		}
		return
	}
	if durable {
		if ask, ok := c.cmd.(*messages.AskRequest); ok {
			d.calls[corr] = doorCall{ask: &askRef{ask.GetSession(), ask.GetRoot(), cmp.Or(r.GetJoined(), ask.GetAttempt()), r.GetCallId()}}
		}
	} else {
		d.forget(corr)
	}
	fx.Replies = append(fx.Replies, Reply{Addr{Key: Out, Corr: corr}, m})
}

// cancel forgets a caller. An ask's subscription is ended; the question stays.
func (d *Door) cancel(corr uint64, fx *Effects) {
	c, waits := d.calls[corr]
	if !waits {
		return
	}
	d.forget(corr)
	switch cmd := c.command().(type) {
	case *messages.AskRequest:
		d.send(corr, &messages.AskDetachRequest{Session: cmd.GetSession(), CallId: CallID(cmd), Attempt: cmd.GetAttempt()}, fx)
	case *messages.AwaitInboxRequest:
		d.send(corr, &messages.AskDetachRequest{Session: cmd.GetSession()}, fx)
	}
}

func (d *Door) forget(corr uint64) {
	delete(d.calls, corr)
	if d.repeats != nil {
		delete(d.repeats.sent, corr)
	}
}

// repeats knows when each call was last sent. All of them wait equally long, so
// they come due in the order in which they were sent; one timer runs for the
// first. What was answered is struck off when its turn comes.
type repeats struct {
	every int64
	sent  map[uint64]int64 // monotonic
	queue []sending
	gen   uint32
	armed bool
}

type sending struct {
	corr uint64
	at   int64
}

func (r *repeats) note(now Now, corr uint64, fx *Effects) {
	if r == nil {
		return
	}
	r.sent[corr] = now.Mono
	r.queue = append(r.queue, sending{corr, now.Mono})
	if !r.armed {
		r.arm(now, fx)
	}
}

// due takes off the calls whose time has come. The timer is not armed then.
func (r *repeats) due(now Now) []uint64 {
	var out []uint64
	for r.strike(); len(r.queue) > 0 && r.queue[0].at+r.every <= now.Mono; r.strike() {
		corr := r.queue[0].corr
		out = append(out, corr)
		delete(r.sent, corr) // a second entry of the same moment is struck off
	}
	r.armed = true // until arm: what is sent meanwhile needs no timer of its own
	return out
}

// strike drops from the front what was answered, or sent again since.
func (r *repeats) strike() {
	for len(r.queue) > 0 {
		if at, waits := r.sent[r.queue[0].corr]; waits && at == r.queue[0].at {
			return
		}
		r.queue = r.queue[1:]
	}
	r.queue = nil
}

// arm starts the timer for the first call; with none left it stays off.
func (r *repeats) arm(now Now, fx *Effects) {
	r.strike()
	if r.armed = len(r.queue) > 0; r.armed {
		r.gen++
		fx.Timers = append(fx.Timers, Timer{Name: "repeat", After: max(0, r.queue[0].at+r.every-now.Mono), Gen: r.gen})
	}
}

func (c doorCall) session() string {
	if c.cmd != nil {
		return c.cmd.GetSession()
	}
	return c.ask.session
}

// command is what to send again.
func (c doorCall) command() messages.Command {
	if c.cmd != nil {
		return c.cmd
	}
	return &messages.AskRequest{Session: c.ask.session, Root: c.ask.root, Attempt: c.ask.attempt, CallId: c.ask.call, Resume: true}
}

// CallID is the call id of an ask: its own, or one made from the attempt, so
// that a repeat names the same call.
func CallID(ask *messages.AskRequest) string {
	if ask.GetCallId() != "" {
		return ask.GetCallId()
	}
	return "call-" + ask.GetAttempt()
}

// sorted walks a map in key order: a machine's effects must not depend on the
// order in which Go happens to walk it.
func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
