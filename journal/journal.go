// Package journal is what is remembered: the contract every backend keeps,
// and, in its folders, the backends and the one conformance suite they pass.
//
// It decides which of two writers owns a session (epochs), and that a batch is
// kept whole or not at all. It never decides what an event means: it keeps
// lines, and index rows handed to it, and gives them back.
package journal

import (
	"context"

	"github.com/parleyrun/parley/sessionlog"
)

// Position is a place in the journal: appends of all sessions in commit order.
// It rises with every append that recorded something, and is never used again.
type Position int64

// Journal is the only durable truth. All methods are safe for concurrent use.
//
// Writing is asynchronous: Open, Append and their callbacks never block the
// caller. A callback is called exactly once, on a goroutine of the journal's,
// and should not block: it holds up other callbacks, though never a commit.
// Callbacks come in commit order. After Close has returned none is pending.
type Journal interface {
	// Open takes the session's next epoch, and only then reads its log
	// (promise 6). For a session that does not exist nothing is recorded:
	// Opened has Epoch 0 and no header, and the first Append creates it.
	// A damaged log is messages.SessionCorrupt; the epoch is taken all the same.
	Open(session string, done func(Opened, error))

	// Append records a batch, all or none, if the session's epoch and next
	// sequence number are still the ones named; else messages.Fenced. Each
	// append of a committed group succeeds or fails alone.
	//
	// An empty batch records nothing and proves that the epoch is still owned.
	//
	// An error that is a refusal of this batch alone is messages.Fenced, or
	// messages.Bug for a batch that Check refuses; every other error
	// (JOURNAL_FULL, JOURNAL_IO, …) may have left the batch in doubt: the
	// caller must Open again to learn what was recorded.
	Append(batch Batch, done func(Appended, error))

	Reader

	// Backup writes a consistent copy to path while the journal is in use.
	// The path must not exist: messages.BadRequest. A journal that keeps
	// nothing on disk refuses with messages.BadRequest.
	Backup(ctx context.Context, path string) error

	// Close finishes what was handed in, syncs, and closes. Later calls fail
	// with messages.Unavailable, and every channel of Moved is closed. It waits
	// for the callbacks, so a callback must not call it. A second Close is nil.
	Close() error
}

// Opened is a session as its new owner finds it.
type Opened struct {
	Epoch  int64
	Header *sessionlog.Header // nil: the session does not exist
	Events []sessionlog.Event
}

// Batch is one append. Its events, header and index must not change until the
// callback has run.
type Batch struct {
	Session string
	// Epoch is the one Open returned. 0: the session must not exist yet.
	Epoch int64
	// Seq is the sequence number of the first event, the session's next.
	Seq int64
	// Header is set on the append that creates the session, and on no other.
	Header *sessionlog.Header
	Events []sessionlog.Event
	// Index changes, recorded in the same transaction, in this order.
	Index []sessionlog.RowChange
	// Delete erases the session: header, events and index rows, whose removal
	// shows in Changes. It carries nothing else. Its epoch is remembered, so
	// that no owner of the erased session can write to a later one of its name.
	Delete bool
}

// Appended is what a recorded batch became.
type Appended struct {
	// At is the position of the batch; for an empty batch, the last position.
	At Position
	// Epoch is the session's epoch now: 1 after the append that created it, or
	// the next one when a session of that name was deleted before.
	Epoch int64
}

// Reader is the read side. Reads never take an epoch, never fence an owner, and
// see every append whose callback has been called. A limit of 0 means no limit.
type Reader interface {
	// Read returns a session's header and events from sequence number `from`,
	// at most limit (0: all). A session that does not exist: messages.NotFound.
	Read(ctx context.Context, session string, from int64, limit int) (Opened, error)

	// Sessions lists sessions by id, in byte order, after the given one.
	Sessions(ctx context.Context, after string, limit int) ([]SessionInfo, error)

	// Active lists the index rows, by session and call in byte order, after the
	// given key, and the position at which the list is true.
	Active(ctx context.Context, filter ActiveFilter) ([]ActiveRow, Position, error)

	// Changes returns the index changes recorded after a position, in commit
	// order, those of at most limit batches, and the position to go on from.
	// The changes of a deleted session are the removals of every row it had,
	// all at the position of its deletion. A position the
	// journal has not reached is messages.BadRequest: the view was built from
	// another journal and must be built anew.
	Changes(ctx context.Context, after Position, limit int) ([]Change, Position, error)

	// Due lists sessions that have a row due at or before the given wall time
	// in milliseconds, the longest due first, each once, and the earliest due
	// time of any row after it (0: none).
	Due(ctx context.Context, before int64, limit int) (sessions []string, next int64, err error)

	// Last returns the position of the newest batch.
	Last(ctx context.Context) (Position, error)

	// Moved returns a channel that is closed once a position above `after` has
	// been recorded (at once if it has been), or the journal was closed.
	Moved(after Position) <-chan struct{}
}

// SessionInfo is a row of the session list.
type SessionInfo struct {
	Session string
	Header  sessionlog.Header
	Events  int64
	Epoch   int64
}

// ActiveFilter narrows a list of index rows.
type ActiveFilter struct {
	Session      string // empty: all
	AfterSession string
	AfterCall    string
	Limit        int // 0: all
}

// ActiveRow is an index row with its session.
type ActiveRow struct {
	Session string
	Row     sessionlog.Row
	At      Position // the batch that last changed it
}

// Change is one index change with the batch that made it.
type Change struct {
	At      Position
	Session string
	sessionlog.RowChange
}
