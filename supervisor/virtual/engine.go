package virtual

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/extensions"
)

// newSystem makes an actor system that nobody has used, in microseconds. The
// engine's own constructor takes six milliseconds and three megabytes, nearly
// all of it for the 1024 tables of its registry. One table is enough for a host,
// so one registry stocks a thousand systems, and no system is ever used again:
// there is no state of an earlier one that a reset could forget.
func newSystem(address string) *actor.ActorSystem {
	system := stock.shell()
	system.ID = address // otherwise random
	system.ProcessRegistry = &actor.ProcessRegistryValue{
		ActorSystem: system, Address: address, LocalPIDs: stock.tables(),
	}
	system.Root = actor.NewRootContext(system, nil)
	system.Guardians = actor.NewGuardians(system)
	system.Extensions = extensions.NewExtensions()
	system.EventStream = eventstream.NewEventStream()
	system.DeadLetter = actor.NewDeadLetter(system)
	// What listens to dead letters now would start a goroutine with a ticker.
	system.EventStream = eventstream.NewEventStream()
	system.EventStream.Subscribe(func(event any) { deadLetter(system, event) })
	system.ProcessRegistry.Add(actor.NewEventStreamProcess(system), "eventstream")
	return system
}

// deadLetter does what the engine does when a message finds nobody, but for the
// log: whoever asked hears of it, and whoever watches the dead is told.
func deadLetter(system *actor.ActorSystem, event any) {
	letter, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	if letter.Sender != nil {
		system.Root.Send(letter.Sender, &actor.DeadLetterResponse{})
	}
	if watch, ok := letter.Message.(*actor.Watch); ok {
		watcher, _ := system.ProcessRegistry.Get(watch.Watcher)
		watcher.SendSystemMessage(watch.Watcher, &actor.Terminated{Who: letter.PID, Why: actor.TerminatedReason_NotFound})
	}
}

// stock is what new systems are made of. Its lock is taken once per host.
var stock supply

type supply struct {
	mu    sync.Mutex
	model *actor.ActorSystem // never used, only copied
	left  actor.SliceMap     // tables that nobody has used
}

// shell is a system of which only the configuration is set.
func (s *supply) shell() *actor.ActorSystem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		silent := slog.New(slog.DiscardHandler)
		s.model = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return silent }))
	}
	system := *s.model
	return &system
}

// tables takes one out of the stock.
func (s *supply) tables() *actor.SliceMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left.LocalPIDs) == 0 {
		s.left = *actor.NewProcessRegistry(s.model).LocalPIDs
	}
	last := len(s.left.LocalPIDs) - 1
	own := append(s.left.LocalPIDs[:0:0], s.left.LocalPIDs[last]) // in a slice of its own: it holds no other
	s.left.LocalPIDs[last] = nil
	s.left.LocalPIDs = s.left.LocalPIDs[:last]
	return &actor.SliceMap{LocalPIDs: own}
}
