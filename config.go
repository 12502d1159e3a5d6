package parley

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

// Never turns a time limit off.
const Never time.Duration = -1

// Defaults of Config.
const (
	DefaultTimeout   = 120 * time.Second
	DefaultGrace     = 10 * time.Second
	DefaultPassivate = time.Minute
)

// Mode is the tool definition questions are asked under.
type Mode = messages.Mode

// The modes. The zero Mode is Timed.
const (
	// Timed: a foreground wait with a deadline, then a durable late answer.
	Timed = messages.Mode_MODE_TIMED
	// Legacy: blocking, unkeyed, without a late path.
	Legacy = messages.Mode_MODE_LEGACY
)

// Expiry says what the end of one client's own countdown does.
type Expiry string

// The policies. The zero Expiry is Unanimous.
const (
	// Unanimous: it only releases that client's claim while others hold.
	Unanimous Expiry = "unanimous"
	// First: it ends the wait for everybody, as the source does.
	First Expiry = "first"
)

// Config is what a node is made of. One of Path, Memory and Journal is needed;
// every other zero value is a sensible default.
type Config struct {
	// Path is the SQLite file that holds everything. It is created, with its
	// folder, when it does not exist. One node at a time has it open.
	Path string
	// Memory keeps everything in memory, for tests and trials: nothing
	// outlives the node.
	Memory bool
	// Journal is an already open journal. The node does not close it.
	Journal journal.Journal

	// NodeName tells nodes apart in addresses. Defaults to "local". No slash.
	NodeName string

	// Mode is the tool definition of asks that name none. Defaults to Timed.
	Mode Mode
	// DefaultTimeout is the foreground wait of an ask that names none, in whole
	// seconds. Defaults to 120 s; Never waits without a deadline.
	DefaultTimeout time.Duration
	// ClaimGrace holds a deadline that has passed after a claim was lost or the
	// node restarted, so that clients can come back. Defaults to 10 s; Never
	// gives none.
	ClaimGrace time.Duration
	// Expiry is the policy for a client's own countdown. Defaults to Unanimous.
	Expiry Expiry
	// PassivateAfter unloads a session that nobody waits for. Defaults to one
	// minute; Never keeps every session in memory.
	PassivateAfter time.Duration
	// Heartbeat is the longest silence of a watch. Defaults to 15 s.
	Heartbeat time.Duration
	// OpenCallsMax is how many foreground calls one session may have at once.
	// Defaults to 256.
	OpenCallsMax int
	// QueueMax is how many messages may wait in one session's inbox. Defaults
	// to 1024.
	QueueMax int

	// QueryTools mounts the session query tools for agents: five read-only tools
	// with which an agent finds earlier work of its own workspace. Off by default.
	QueryTools bool
	// SearchOff switches search off, and with it the text index. What needs no
	// search can be read all the same.
	SearchOff bool
	// SearchResultsMax is how many hits a tool's search returns. Defaults to 100.
	SearchResultsMax int
	// SearchTimeout is how long a tool's search may take. Defaults to 30 s.
	SearchTimeout time.Duration
	// ResultBytesMax is how long a query tool's result may be, in bytes. A longer
	// one is kept for a while, and shown as a preview that says how to read on.
	// 0: as long as it is.
	ResultBytesMax int
	// WorkspaceRoot is a folder in which links are followed to tell whether two
	// workspaces are one. Empty: workspaces are compared by name. Who can place
	// links there decides what agents may read.
	WorkspaceRoot string

	// Logger gets one line per command and per request. Defaults to slog.Default().
	Logger *slog.Logger
}

// Validate reports every mistake at once, as BAD_REQUEST.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	given := 0
	for _, set := range []bool{c.Path != "", c.Memory, c.Journal != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		bad("give exactly one of Path, Memory and Journal; %d are set", given)
	}
	if strings.ContainsAny(c.NodeName, "/\x00") {
		bad("NodeName %q holds a slash or a NUL", c.NodeName)
	}
	if c.Mode < 0 || c.Mode > Legacy {
		bad("Mode is %d; use Timed or Legacy", c.Mode)
	}
	if c.DefaultTimeout != 0 {
		if _, err := seconds(c.DefaultTimeout); err != nil {
			bad("DefaultTimeout: %s", err.Text)
		}
	}
	for name, d := range map[string]time.Duration{"ClaimGrace": c.ClaimGrace, "PassivateAfter": c.PassivateAfter} {
		if d < 0 && d != Never || d > 0 && d < time.Millisecond {
			bad("%s is %v; give at least 1ms, or Never", name, d)
		}
	}
	if c.Heartbeat < 0 || c.Heartbeat > 0 && c.Heartbeat < time.Millisecond {
		bad("Heartbeat is %v; give at least 1ms", c.Heartbeat)
	}
	if c.Expiry != "" && c.Expiry != Unanimous && c.Expiry != First {
		bad("Expiry is %q; use %q or %q", c.Expiry, Unanimous, First)
	}
	if c.OpenCallsMax < 0 || c.QueueMax < 0 {
		bad("OpenCallsMax is %d and QueueMax %d; they may not be negative", c.OpenCallsMax, c.QueueMax)
	}
	if c.ResultBytesMax < 0 {
		bad("ResultBytesMax is %d; it may not be negative", c.ResultBytesMax)
	}
	if len(errs) > 0 {
		return messages.Refuse(messages.BadRequest, "the configuration is not valid: %v", errors.Join(errs...))
	}
	return nil
}

// withDefaults fills the zero values in.
func (c Config) withDefaults() Config {
	setDefault(&c.NodeName, "local")
	setDefault(&c.Mode, Timed)
	setDefault(&c.DefaultTimeout, DefaultTimeout)
	setDefault(&c.ClaimGrace, DefaultGrace)
	setDefault(&c.Expiry, Unanimous)
	setDefault(&c.PassivateAfter, DefaultPassivate)
	setDefault(&c.Heartbeat, query.HeartbeatDefault)
	setDefault(&c.OpenCallsMax, actors.OpenCallsMaxDefault)
	setDefault(&c.QueueMax, actors.QueueMaxDefault)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// rules are the settings the machines share.
func (c *Config) rules(newID func(kind string) string) *actors.Rules {
	timeoutS, _ := seconds(c.DefaultTimeout)
	return &actors.Rules{
		Mode: c.Mode, DefaultTimeoutS: timeoutS, ClaimGraceMS: max(0, c.ClaimGrace.Milliseconds()),
		FirstExpiryWins: c.Expiry == First, PassivateAfterMS: max(0, c.PassivateAfter.Milliseconds()),
		OpenCallsMax: c.OpenCallsMax, QueueMax: c.QueueMax, NewID: newID,
	}
}

// seconds reads a foreground wait: whole seconds, or -1 for Never.
func seconds(d time.Duration) (int64, *messages.Error) {
	switch {
	case d == Never:
		return -1, nil
	case d < time.Second || d%time.Second != 0 || d/time.Second > actors.TimeoutMaxS:
		return 0, messages.Refuse(messages.BadTimeout, "a timeout of %v is not 1 to %d whole seconds, or Never", d, actors.TimeoutMaxS)
	}
	return int64(d / time.Second), nil
}
