package sqlite

import (
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/sessionlog"
)

// head is where a session stands.
type head struct {
	id     int64 // its row in sessions; 0: it never existed
	epoch  int64
	first  int64 // position of its first batch, which has the header; 0: it does not exist (any more)
	next   int64 // the sequence number of its next event
	last   int64 // position of its newest batch
	active int64 // its rows in the table of index rows, as of the floor
}

func (h head) live() bool { return h.first != 0 }

// tail is what the records above the floor say, session by session: sessions
// and index rows that the tables do not show yet. It is a copy of what a scan
// of those records gives, which is how it is built when a file is opened.
//
// Invariant: a session that is not in the tail stands in the tables as it is.
type tail struct {
	mu       sync.RWMutex
	last     journal.Position // the newest published position
	sessions map[string]*tailSession
	size     int // batches and index changes above the floor
}

// tailSession is one session's part of the tail.
type tailSession struct {
	head
	rows map[string]tailRow // nil for a session without index changes
}

// tailRow is an index row as its last change left it.
type tailRow struct {
	sessionlog.RowChange
	at int64
}

// record brings a session up to a committed batch. The caller holds mu.
func (t *tail) record(session string, h head, at int64, changes []sessionlog.RowChange) {
	s := t.sessions[session]
	if s == nil {
		s = &tailSession{}
		t.sessions[session] = s
	}
	s.head = h
	t.size += 1 + len(changes)
	if len(changes) > 0 && s.rows == nil {
		s.rows = make(map[string]tailRow, len(changes))
	}
	for _, c := range changes {
		s.rows[c.Row.CallID] = tailRow{c, at}
	}
}

// of returns where a session stands, if the tail knows it.
func (t *tail) of(session string) (head, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if s := t.sessions[session]; s != nil {
		return s.head, true
	}
	return head{}, false
}
