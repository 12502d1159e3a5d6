package actors

import (
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Machine is one actor's rules. It is deterministic: the same state, time and
// input give the same effects. It never blocks, and an input it does not know
// has no effects.
type Machine interface {
	// Step decides. It may change volatile fields; never what Apply folds.
	Step(now Now, in Envelope) Effects
	// Apply folds one durable event, after its append. Only a session has any.
	Apply(ev sessionlog.Event)
	// Resume is called once, after loading: what the state says must be done.
	Resume(now Now) Effects
}

// Now is the time of a step, in milliseconds: the host's wall clock, for what
// is recorded, and a monotonic one, for what is measured.
type Now struct{ Wall, Mono int64 }

// Addr is where an answer goes: a value that travels, never a process. Key is
// "s/<session>", "door/<node>/<life>" or "claim/<node>/<id>"; Corr tells one question
// of that address from another.
type Addr struct {
	Key  string
	Corr uint64
}

// IsZero reports whether nobody waits there.
func (a Addr) IsZero() bool { return a.Key == "" }

// String is the address as logs show it.
func (a Addr) String() string {
	if a.Corr == 0 {
		return a.Key
	}
	return a.Key + "#" + strconv.FormatUint(a.Corr, 10)
}

// SessionAddr is the address of a session, wherever it runs.
func SessionAddr(session string) Addr { return Addr{Key: "s/" + session} }

// SessionOf returns the session an address names.
func SessionOf(a Addr) (string, bool) { return strings.CutPrefix(a.Key, "s/") }

// Envelope is one input: what was said and who waits for the answer. Msg is a
// messages.Message, or one of the Local values of this package.
//
// To is the address it was sent to, with the correlation of the question it
// answers: an answer to "door/n#7" arrives with To.Corr 7. It is zero for
// Local messages.
type Envelope struct {
	From Addr
	To   Addr
	Msg  any
}

// Effects is all that a step asks of the world. The shell must honour the order.
type Effects struct {
	// 1. One batch to append, all or none. Session only.
	Append []sessionlog.Event
	// Header creates the session with this batch. Session only.
	Header *sessionlog.Header
	// Index is what the batch changes in the journal's index. Session only.
	Index []sessionlog.RowChange
	// Proof asks for an empty append when Append is empty: nothing below may
	// leave before the epoch has been proved to be still ours.
	Proof bool
	// 2. Only after 1.
	Replies []Reply
	// Up goes from a part to its session.
	Up []Local
	// Parts go from a session to its parts, in order.
	Parts []ToPart
	// Sends are fire and forget; whoever needs them repeats them.
	Sends []Send
	// Timers are started or stopped.
	Timers []Timer
	// Passivate asks the shell to unload this session; it is respawned on demand.
	Passivate bool
}

// Empty reports whether the step asked for nothing.
func (fx *Effects) Empty() bool {
	return len(fx.Append) == 0 && !fx.Proof && len(fx.Replies) == 0 && len(fx.Up) == 0 &&
		len(fx.Parts) == 0 && len(fx.Sends) == 0 && len(fx.Timers) == 0 && !fx.Passivate
}

// Reply answers an envelope.
type Reply struct {
	To  Addr
	Msg messages.Message
}

// Send speaks to another address.
type Send struct {
	To   Addr
	From Addr
	Msg  messages.Message
}

// PartKind is the kind of a part under a session.
type PartKind string

// The kinds of parts.
const (
	WaitPart  PartKind = "wait"
	InboxPart PartKind = "inbox"
)

// PartID names a part of a session. Incarnation tells a successor from the
// part it replaces; timers and messages carry it.
type PartID struct {
	Kind        PartKind
	Call        string // the call of a wait; empty for the inbox
	Incarnation uint32
}

// Name is the part's name under its session.
func (p PartID) Name() string {
	n := string(p.Kind)
	if p.Call != "" {
		n += "/" + p.Call
	}
	return n + "~" + strconv.FormatUint(uint64(p.Incarnation), 10)
}

// ToPart is one message to a part. A Seed spawns it; Stop ends it after the
// messages before it; anything else is an input.
type ToPart struct {
	Part PartID
	// Seed is the new part's machine; the shell spawns it and calls Resume.
	Seed Machine
	Msg  Local
	Stop bool
}

// Timer asks for a Fired input after a duration. After < 0 stops the timer of
// that name. Starting a timer replaces the one of the same name.
type Timer struct {
	Name  string
	After int64 // milliseconds
	Gen   uint32
}

// Local is a message that never leaves its session: between it and its parts,
// or from the shell.
type Local interface{ local() }

// Fired is a timer's end. A machine ignores a generation it has since replaced.
type Fired struct {
	Name string
	Gen  uint32
}

// PartDied tells a session that one of its parts crashed.
type PartDied struct{ Part PartID }

func (Fired) local()    {}
func (PartDied) local() {}
