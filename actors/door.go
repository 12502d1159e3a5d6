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
// what went unanswered when a session is lost. Every command is idempotent
// under its own key, so a repeat is always safe.
type Door struct {
	self  string
	calls map[uint64]doorCall
}

// doorCall is one caller that waits. Once its ask is durable the text is let
// go: what is kept is enough to attach to the wait again.
type doorCall struct {
	cmd messages.Command // nil once the ask is durable
	ask *askRef
}

type askRef struct{ session, root, attempt, call string }

// NewDoor builds a node's door; self is its address key.
func NewDoor(self string) *Door {
	return &Door{self: self, calls: map[uint64]doorCall{}}
}

// Apply does nothing: a door is volatile.
func (d *Door) Apply(sessionlog.Event) {}

// Resume has nothing to do: callers do not survive their process.
func (d *Door) Resume(Now) Effects { return Effects{} }

// Step decides one input.
func (d *Door) Step(_ Now, in Envelope) Effects {
	var fx Effects
	switch m := in.Msg.(type) {
	case DoorCall:
		if m.Cmd != nil {
			d.calls[m.Corr] = doorCall{cmd: m.Cmd}
			d.send(m.Corr, m.Cmd, &fx)
		}
	case DoorCancel:
		d.cancel(m.Corr, &fx)
	case SessionGone:
		for corr, c := range sorted(d.calls) {
			if cmd := c.command(); cmd.GetSession() == m.Session {
				d.send(corr, cmd, &fx)
			}
		}
	case messages.Reply:
		d.answered(in.To.Corr, m, &fx)
	}
	return fx
}

func (d *Door) send(corr uint64, cmd messages.Command, fx *Effects) {
	fx.Sends = append(fx.Sends, Send{To: SessionAddr(cmd.GetSession()), From: Addr{d.self, corr}, Msg: cmd})
}

// answered passes an answer on, once: a duplicate finds nobody waiting. A
// Waiting is not the answer yet; it says that the question is durable.
func (d *Door) answered(corr uint64, m messages.Reply, fx *Effects) {
	c, waits := d.calls[corr]
	if !waits {
		return
	}
	if r, ok := m.(*messages.AskResponse); ok && r.GetWaiting() != nil {
		if ask, ok := c.cmd.(*messages.AskRequest); ok {
			d.calls[corr] = doorCall{ask: &askRef{ask.GetSession(), ask.GetRoot(), cmp.Or(r.GetJoined(), ask.GetAttempt()), r.GetCallId()}}
		}
	} else {
		delete(d.calls, corr)
	}
	fx.Replies = append(fx.Replies, Reply{Addr{Key: Out, Corr: corr}, m})
}

// cancel forgets a caller. An ask's subscription is ended; the question stays.
func (d *Door) cancel(corr uint64, fx *Effects) {
	c, waits := d.calls[corr]
	if !waits {
		return
	}
	delete(d.calls, corr)
	switch cmd := c.command().(type) {
	case *messages.AskRequest:
		d.send(corr, &messages.AskDetachRequest{Session: cmd.GetSession(), CallId: CallID(cmd), Attempt: cmd.GetAttempt()}, fx)
	case *messages.AwaitInboxRequest:
		d.send(corr, &messages.AskDetachRequest{Session: cmd.GetSession()}, fx)
	}
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
