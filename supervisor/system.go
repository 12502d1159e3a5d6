package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// background is the context of log lines: none of them belongs to a request.
var background = context.Background()

// System is the tree of one node.
//
//	root ─┬─ s/<session> ─┬─ wait/<call>~1     every session with its parts, spawned on demand
//	      │               └─ inbox~1
//	      ├─ door                              the callers that wait, "door/<node>/<life>"
//	      ├─ claim/<node>/<id>                 one per client's hold on a wait
//	      ├─ sweeper                           wakes sessions that are due
//	      ├─ peers                             takes in what other nodes say
//	      └─ nurse                             restarts what crashed, after its pause
type System struct {
	cfg        Config
	rt         Runtime
	engine     *actor.ActorSystem
	root       *actor.RootContext
	journal    journal.Journal
	log        *slog.Logger
	counters   counters
	complaints complaints
	props      struct{ session, part, claim *actor.Props } // one of each, shared

	ward    *ward
	router  *router
	callers *callers
	claims  *claims

	door, nurse, sweeper, peers *actor.PID

	// doorKey is the door's address. It names this life of the node too: callers
	// are counted anew in each, and an answer to a caller of an earlier one must
	// not reach whoever has the same number in this one: an agent would be told
	// the answer to another's question.
	doorKey string

	stopping atomic.Bool
	stopped  chan struct{}
}

// Start builds the tree of a node and wakes what is due.
func Start(cfg Config) (*System, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	cfg = cfg.withDefaults()
	sys := &System{
		cfg: cfg, rt: cfg.Runtime, engine: cfg.Runtime.Engine(), journal: cfg.Journal, log: cfg.Logger,
		ward:    newWard(&cfg),
		callers: &callers{log: cfg.Logger, waiting: map[uint64]func(messages.Message){}},
		claims:  &claims{byKey: map[string]*Claim{}, bySession: map[string][]*Claim{}},
		stopped: make(chan struct{}),
	}
	sys.doorKey = doorPrefix + cfg.Node + "/" + sys.rt.NewID()
	sys.root, sys.router = sys.engine.Root, newRouter(sys)
	guardian := actor.WithGuardian(&rootStrategy{sys})
	sys.props.session = sys.rt.Props(func() actor.Actor {
		return &shell{sys: sys, kind: sessionKind, log: &ledger{}}
	}, guardian)
	sys.props.part = sys.rt.Props(func() actor.Actor { return &shell{sys: sys, kind: partKind} })
	sys.props.claim = sys.rt.Props(func() actor.Actor { return &shell{sys: sys, kind: claimKind} }, guardian)
	if err := sys.plant(guardian); err != nil {
		return nil, err
	}
	return sys, nil
}

// plant spawns the actors that every node has. The nurse is first: the others
// may crash, and its name tells whether the actor system has a node already.
func (sys *System) plant(guardian actor.PropsOption) (err error) {
	spawn := func(name string, producer actor.Producer) *actor.PID {
		if err != nil {
			return nil
		}
		var pid *actor.PID
		if pid, err = sys.root.SpawnNamed(sys.rt.Props(producer, guardian), name); err != nil {
			err = fmt.Errorf("supervisor: %s: %w; one actor system holds one node", name, err)
		}
		return pid
	}
	sys.nurse = spawn(nurseName, func() actor.Actor { return &nurse{sys} })
	sys.door = spawn(doorName, func() actor.Actor { return &shell{sys: sys, kind: doorKind} })
	sys.peers = spawn(peersName, func() actor.Actor { return &peers{sys} })
	if sys.cfg.SweepEvery > 0 {
		sys.sweeper = spawn(sweeperName, func() actor.Actor { return newSweeper(sys) })
	}
	return err
}

// route sends a message to an address, wherever that is. It is fire and forget.
func (sys *System) route(to, from actors.Addr, msg messages.Message) {
	if session, ok := actors.SessionOf(to); ok {
		if node := sys.placed(session); node != "" {
			sys.toPeer(node, to, from, msg)
			return
		}
		sys.router.deliver(session, &actors.Envelope{From: from, To: to, Msg: msg})
		return
	}
	switch pid, node := sys.locate(to.Key); {
	case pid != nil:
		sys.root.Send(pid, &actors.Envelope{From: from, To: to, Msg: msg})
	case node != "":
		sys.toPeer(node, to, from, msg)
	default:
		sys.dropped(to, msg)
	}
}

// dropped says that a message reaches nobody.
func (sys *System) dropped(to actors.Addr, msg messages.Message) {
	sys.log.LogAttrs(background, slog.LevelDebug, "dropped", slog.String("to", to.String()),
		slog.String("message", string(msg.ProtoReflect().Descriptor().Name())))
}

// locate finds a door or a claim, or the other node whose address it is.
func (sys *System) locate(key string) (pid *actor.PID, node string) {
	if rest, ok := strings.CutPrefix(key, doorPrefix); ok {
		switch node, _, _ := strings.Cut(rest, "/"); {
		case node != sys.cfg.Node:
			return nil, node
		case key == sys.doorKey:
			return sys.door, ""
		}
		return nil, "" // of an earlier life: its callers are gone
	}
	if rest, ok := strings.CutPrefix(key, claimPrefix); ok {
		if node, _, _ := strings.Cut(rest, "/"); node != sys.cfg.Node {
			return nil, node
		}
		if c := sys.claims.get(key); c != nil {
			return c.pid, ""
		}
	}
	return nil, ""
}

// gone tells the door and the claims that have business with a session that it
// has lost what it held in memory. Whoever waits asks again.
func (sys *System) gone(session string) {
	if sys.stopping.Load() {
		return
	}
	in := &actors.Envelope{Msg: actors.SessionGone{Session: session}}
	sys.root.Send(sys.door, in)
	for _, c := range sys.claims.of(session) {
		sys.root.Send(c.pid, in)
	}
}

// Close stops the node: shutdown is not disposal. Sessions finish the append in
// flight and tell its outcome; then whoever still waits is answered UNAVAILABLE
// and claims end as retryable. Nothing is recorded: the questions stay open in
// the log. The caller then closes the journal. Close may be called again; when
// ctx ends first, waiting callers are answered nevertheless and its error is
// returned.
func (sys *System) Close(ctx context.Context) error {
	select {
	case <-sys.Stop():
		return nil
	case <-ctx.Done():
		sys.claims.close()
		sys.callers.close()
		return fmt.Errorf("supervisor: closed before every session had stopped: %w", ctx.Err())
	}
}

// Stop begins what Close waits for. The channel is closed when it is done.
func (sys *System) Stop() <-chan struct{} {
	if sys.stopping.CompareAndSwap(false, true) {
		if sys.sweeper != nil {
			sys.root.Stop(sys.sweeper)
		}
		sys.router.close(func() {
			sys.claims.close()
			sys.root.Send(sys.door, quit{}) // behind the last replies of the sessions
		})
	}
	return sys.stopped
}

// doorClosed is the end of a shutdown.
func (sys *System) doorClosed() {
	sys.callers.close()
	sys.root.Stop(sys.peers)
	sys.root.Stop(sys.nurse)
	close(sys.stopped)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
