package supervisor

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// peers takes in what other nodes say: a Frame to its well-known name, and
// nothing else. What it takes in is never sent on to a third node, so that two
// nodes which disagree on a placement do not send a message round for ever.
type peers struct{ sys *System }

func (p *peers) Receive(ctx actor.Context) {
	if f, ok := ctx.Message().(*messages.Frame); ok {
		p.sys.arrived(f)
	}
}

// arrived opens a frame and hands it on within this node. A session that is not
// ours (any more) is not started for it: whoever asked is told to ask again, and
// will by then know better where.
func (sys *System) arrived(f *messages.Frame) {
	t, o, msg, err := messages.Open(f)
	if err != nil {
		if sys.complaints.pass(sys.rt.Now().Mono, sys.log) {
			sys.log.LogAttrs(background, slog.LevelWarn, "frame", slog.Any("err", err))
		}
		return
	}
	to, from := actors.Addr(t), actors.Addr(o)
	session, isSession := actors.SessionOf(to)
	if !isSession {
		if pid, _ := sys.locate(to.Key); pid != nil {
			sys.root.Send(pid, &actors.Envelope{From: from, To: to, Msg: msg})
			return
		}
		sys.dropped(to, msg)
		return
	}
	if _, command := msg.(messages.Command); !command {
		sys.dropped(to, msg) // answering it might be answered in turn
		return
	}
	in := &actors.Envelope{From: from, To: to, Msg: msg}
	if sys.placed(session) != "" {
		sys.refuse(session, in, messages.Refuse(messages.Unavailable, "the session does not run on node %q, or not any more; ask again", sys.cfg.Node))
		return
	}
	sys.router.deliver(session, in)
}

// placed names the other node that runs a session, or "" when this one does.
func (sys *System) placed(session string) string {
	if sys.cfg.Place == nil {
		return ""
	}
	if node := sys.cfg.Place(session); node != sys.cfg.Node {
		return node
	}
	return ""
}

// toPeer sends a message to another node. It may be lost there as here.
func (sys *System) toPeer(node string, to, from actors.Addr, msg messages.Message) {
	if sys.cfg.Peer != nil {
		if address, ok := sys.cfg.Peer(node); ok {
			sys.root.Send(actor.NewPID(address, peersName), messages.Wrap(messages.Party(to), messages.Party(from), msg))
			return
		}
	}
	sys.dropped(to, msg)
}

// Release unloads a session if it is in memory here: after the append in flight
// and the last words of its parts. It is for whoever decides on placement, once
// Place names another node: whoever waits here asks again, there. Left alone,
// the activation goes when the session's new node has fenced it.
func (sys *System) Release(session string) { sys.router.unload(session) }
