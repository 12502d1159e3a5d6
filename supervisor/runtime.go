package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
)

// Runtime is the seam between this room and the world. Production has one
// implementation, the simulation another; everything else in the room is the
// same code in both. Whatever comes back from a Runtime comes as a message.
type Runtime interface {
	// Engine is the actor system everything is spawned in.
	Engine() *actor.ActorSystem
	// Props makes props that use the runtime's mailbox.
	Props(producer actor.Producer, opts ...actor.PropsOption) *actor.Props
	// Now is the time that machines are given.
	Now() actors.Now
	// SendAfter sends msg to an actor once d has passed. A cancelled message may
	// already be in the mailbox: the receiver must know a stale one when it sees it.
	SendAfter(d time.Duration, to *actor.PID, msg any) (cancel func())
	// Go runs work that may block, off the actor that asks for it. Its result is
	// to be sent as a message.
	Go(work func())
	// NewID returns an id nobody has used before.
	NewID() string
}

// RealRuntime is the Runtime of production: wall clock, timers of the Go
// runtime, ids from the system's randomness, one lean mailbox per actor.
type RealRuntime struct {
	engine *actor.ActorSystem
	start  time.Time // carries the monotonic clock
}

// NewRealRuntime makes a runtime with an actor system of its own. What the
// engine itself logs is dropped below Error: it logs every restart and every
// dead letter with the message in it, and a message may hold a secret.
func NewRealRuntime(log *slog.Logger) *RealRuntime {
	engineLog := slog.New(errorsOnly{log.Handler()})
	return &RealRuntime{
		engine: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return engineLog })),
		start:  time.Now(),
	}
}

// Engine returns the actor system of this runtime.
func (r *RealRuntime) Engine() *actor.ActorSystem { return r.engine }

// Props adds the production mailbox.
func (r *RealRuntime) Props(producer actor.Producer, opts ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(producer, append(opts, actor.WithMailbox(newMailbox))...)
}

// Now reads both clocks.
func (r *RealRuntime) Now() actors.Now {
	now := time.Now()
	return actors.Now{Wall: now.UnixMilli(), Mono: now.Sub(r.start).Milliseconds()}
}

// SendAfter uses one timer of the Go runtime: measured, it costs less than a
// wheel of our own would, up to a million of them.
func (r *RealRuntime) SendAfter(d time.Duration, to *actor.PID, msg any) func() {
	t := time.AfterFunc(d, func() { r.engine.Root.Send(to, msg) })
	return func() { t.Stop() }
}

// Go starts a goroutine.
func (r *RealRuntime) Go(work func()) { go work() }

// NewID draws 128 bits.
func (r *RealRuntime) NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it crashes the program instead
	return hex.EncodeToString(b[:])
}

// errorsOnly is a handler that drops what is less than an error.
type errorsOnly struct{ slog.Handler }

func (h errorsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}

func (h errorsOnly) WithAttrs(as []slog.Attr) slog.Handler {
	return errorsOnly{h.Handler.WithAttrs(as)}
}

func (h errorsOnly) WithGroup(name string) slog.Handler { return errorsOnly{h.Handler.WithGroup(name)} }
