package virtual

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/supervisor"
)

// World is whoever owns the schedule: everything that could happen next is
// handed to it, and happens when it says so. All its methods are called on the
// goroutine that called into this package, often in the middle of a Deliver: it
// notes what it was given and does none of it before that call has returned.
type World interface {
	// Now is the time on that host: the wall clock and the monotonic one, in
	// milliseconds. They may part, and differ from host to host.
	Now(h *Host) actors.Now
	// After is a timer: fire, which posts a message, is to be called once d has
	// passed. A fire after cancel is allowed, as it is in production.
	After(h *Host, d time.Duration, fire func()) (cancel func())
	// Ready says that b can deliver and could not before. It is called once per
	// transition, and not for the box whose Deliver is running: whoever calls
	// Deliver looks at Deliverable afterwards.
	Ready(b *Box)
	// Work is background work of the supervisor.
	Work(h *Host, work func())
	// Send is a message from h for the host with the address to: the bytes of a
	// messages.Frame, which the world may keep. It goes to Receive of that host.
	Send(h *Host, to string, frame []byte)
	// NewID returns an id that no host was given before.
	NewID(h *Host) string
}

// Host is one process of a simulated node: an actor system under an address. A
// host lives until it crashes or is released; a restarted node is a new Host.
// It belongs to one goroutine at a time.
type Host struct {
	world   World
	address string
	system  *actor.ActorSystem
	peers   *actor.PID
	gone    bool
	dropped int
}

// peersName is the actor that frames from other hosts go to.
const peersName = "peers"

// NewHost starts a host with an actor system that nobody has used: whatever ran
// before it, it begins in the same state.
func NewHost(w World, address string) *Host {
	h := &Host{world: w, address: address, system: newSystem(address)}
	h.peers = h.system.NewLocalPID(peersName)
	wire := actor.Process(wire{h})
	h.system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return wire, true })
	return h
}

// Address is where other hosts send frames to.
func (h *Host) Address() string { return h.address }

// Runtime is what the supervisor.System of this host is to be configured with.
// One host holds one System.
func (h *Host) Runtime() supervisor.Runtime { return seam{h} }

// Receive takes in a frame that arrived from another host. It is lost if nobody
// here is named for it, or if the host has crashed. The error is of bytes that
// are no frame, and then nothing has happened.
func (h *Host) Receive(frame []byte) error {
	f := &messages.Frame{}
	if err := proto.Unmarshal(frame, f); err != nil {
		return fmt.Errorf("virtual: %d bytes for %s are no frame: %w", len(frame), h.address, err)
	}
	h.system.Root.Send(h.peers, f)
	return nil
}

// Dropped counts what was sent to another host and cannot go there: only a
// messages.Frame to its peers can.
func (h *Host) Dropped() int { return h.dropped }

// Crash ends the process: every box drops what it holds and takes nothing more,
// timers and work that come afterwards are void, and no frame goes out or in.
// In the middle of a Deliver the rest of the handler still runs, unheard; what
// it writes to a journal is that journal's to refuse.
func (h *Host) Crash() { h.gone = true }

// Release is called when nobody needs the host any more, after a Crash or once
// its System has closed. Whatever still holds on to it finds it crashed. Its
// actor system is not used again.
func (h *Host) Release() { h.gone = true }

// wire is the process behind every address of another host.
type wire struct{ h *Host }

// SendUserMessage turns a frame into bytes and drops everything else.
func (w wire) SendUserMessage(to *actor.PID, msg any) {
	if w.h.gone {
		return
	}
	frame, ok := actor.UnwrapEnvelopeMessage(msg).(*messages.Frame)
	if !ok || to.GetId() != peersName {
		w.h.dropped++
		return
	}
	bytes, err := canonical.Marshal(frame)
	if err != nil { // of a string that is not UTF-8, which no actor may say
		w.h.dropped++
		return
	}
	w.h.world.Send(w.h, to.GetAddress(), bytes)
}

// SendSystemMessage drops it: nobody stops or watches an actor of another host.
func (w wire) SendSystemMessage(*actor.PID, any) { w.h.dropped++ }

// Stop is a system message too.
func (w wire) Stop(*actor.PID) { w.h.dropped++ }

// canonical makes the same bytes of the same message, also where it holds a map.
var canonical = proto.MarshalOptions{Deterministic: true}

// seam is the supervisor.Runtime of a host.
type seam struct{ h *Host }

// Engine is the actor system of the host.
func (s seam) Engine() *actor.ActorSystem { return s.h.system }

// Props adds a box of the world.
func (s seam) Props(producer actor.Producer, opts ...actor.PropsOption) *actor.Props {
	h := s.h
	return actor.PropsFromProducer(producer, append(opts, actor.WithMailbox(func() actor.Mailbox { return &Box{host: h} }))...)
}

// Now asks the world.
func (s seam) Now() actors.Now { return s.h.world.Now(s.h) }

// SendAfter is a timer of the world.
func (s seam) SendAfter(d time.Duration, to *actor.PID, msg any) (cancel func()) {
	h := s.h
	if h.gone {
		return func() {}
	}
	return h.world.After(h, d, func() {
		if !h.gone {
			h.system.Root.Send(to, msg)
		}
	})
}

// Go hands work to the world.
func (s seam) Go(work func()) {
	h := s.h
	if h.gone {
		return
	}
	h.world.Work(h, func() {
		if !h.gone {
			work()
		}
	})
}

// NewID asks the world.
func (s seam) NewID() string { return s.h.world.NewID(s.h) }
