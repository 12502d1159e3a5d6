package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
)

// Config is what a System is made of. The four fields without a default are
// Journal, NewSession, NewDoor and NewClaim.
type Config struct {
	// Node is this node's name in addresses ("door/<node>/<life>"). It may not hold a
	// slash. Defaults to "local".
	Node string
	// Runtime is the world. Defaults to a RealRuntime with its own actor system.
	Runtime Runtime
	// Journal is where sessions are kept. The caller closes it, after Close.
	Journal journal.Journal

	// NewSession builds the machine of a session and folds its events into it.
	// An error (SESSION_CORRUPT, SESSION_GENERATION, …) refuses whatever asked
	// for the session and unloads it; it is not a crash.
	NewSession func(session string, opened journal.Opened) (actors.Machine, error)
	// NewDoor builds the door's machine, which sends and answers under self.
	NewDoor func(self actors.Addr) actors.Machine
	// NewClaim builds the machine of one claim.
	NewClaim func(self actors.Addr, session, call string) actors.Machine

	// Place names the node that runs a session; "" is this one. It is asked for
	// every message, from any goroutine, and may answer otherwise each time: a
	// session that runs in two places is fenced by the journal. It must not
	// block. Nil: every session runs here.
	Place func(session string) (node string)
	// Peer is the address of another node's actor system, as the engine's
	// network or address resolver knows it. What is for a node without one is
	// dropped, and whoever needs it repeats it. Nil: there are no other nodes.
	Peer func(node string) (address string, ok bool)

	// Backoff is the pause before the first restart after a crash, and before a
	// session that was fenced and that Place says is ours is opened again; it
	// doubles with every further one within a minute. Defaults to 10 ms.
	Backoff time.Duration
	// BackoffMax is the longest pause. Defaults to 1 s.
	BackoffMax time.Duration
	// QuarantineAfter takes a session out of service when it has crashed that
	// often within QuarantineFor. Defaults to 5; -1 never does.
	QuarantineAfter int
	// QuarantineFor is how long it stays out. Defaults to one minute.
	QuarantineFor time.Duration
	// SweepEvery is the longest pause between two looks at the due index.
	// Defaults to 5 s; -1 turns the sweeper off.
	SweepEvery time.Duration
	// HeldMax is how many requests may wait for one session's load or append;
	// further ones are answered UNAVAILABLE. Defaults to 10,000; -1: no limit.
	HeldMax int
	// Logger gets one line per command and one per crash. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

// Validate reports every mistake at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if strings.Contains(c.Node, "/") {
		bad("Node %q holds a slash", c.Node)
	}
	if c.Journal == nil {
		bad("Journal is missing")
	}
	if c.NewSession == nil || c.NewDoor == nil || c.NewClaim == nil {
		bad("NewSession, NewDoor and NewClaim are all needed")
	}
	if c.Backoff < 0 || c.BackoffMax < 0 || c.QuarantineFor < 0 {
		bad("Backoff, BackoffMax and QuarantineFor may not be negative")
	}
	if c.BackoffMax > 0 && c.Backoff > c.BackoffMax {
		bad("Backoff %v is longer than BackoffMax %v", c.Backoff, c.BackoffMax)
	}
	if c.QuarantineAfter < -1 || c.HeldMax < -1 || c.SweepEvery < -1 {
		bad("QuarantineAfter, HeldMax and SweepEvery have -1 for never; nothing lower has a meaning")
	}
	return errors.Join(errs...)
}

// withDefaults fills the zero values in.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Runtime == nil {
		c.Runtime = NewRealRuntime(c.Logger)
	}
	setDefault(&c.Node, "local")
	setDefault(&c.Backoff, 10*time.Millisecond)
	setDefault(&c.BackoffMax, max(time.Second, c.Backoff))
	setDefault(&c.QuarantineAfter, 5)
	setDefault(&c.QuarantineFor, time.Minute)
	setDefault(&c.SweepEvery, 5*time.Second)
	setDefault(&c.HeldMax, 10_000)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
