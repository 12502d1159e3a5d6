package sqlite

import (
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/sessionlog"
)

// A group is what one transaction commits: everything that was handed in while
// the one before it was being committed, within these limits.
const (
	groupRequestsMax = 4096
	groupBytesMax    = 48 << 20
	batchBytesMax    = 32 << 20
)

// request is one Open or Append on its way through the committer. What it
// records is encoded before it is queued, on the caller's goroutine, because
// the committer is the one thing all sessions wait for.
type request struct {
	session string
	epoch   int64
	seq     int64
	count   int64
	header  []byte
	delta   []byte
	events  []byte
	index   []sessionlog.RowChange
	erase   bool // delete the session
	empty   bool

	opened   func(journal.Opened, error) // set for an Open
	appended func(journal.Appended, error)

	// What became of it.
	err  error
	at   int64 // position recorded at; for an empty batch the last one
	head head  // where the session stands after it
}

func (r *request) bytes() int { return len(r.header) + len(r.delta) + len(r.events) }

// queue holds requests until the committer takes them. It has no bound of its
// own: it never holds more than one request per caller that waits.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	items  []*request
	closed bool
}

// put hands a request over; false says that the queue is closed.
func (q *queue) put(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.items = append(q.items, r)
	if len(q.items) == 1 {
		q.filled.Signal()
	}
	return true
}

// take waits for requests and returns a group of them, in their order; none
// says that the queue is closed and empty.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.filled.Wait()
	}
	n, size := 0, 0
	for n < len(q.items) && n < groupRequestsMax && size < groupBytesMax {
		size += q.items[n].bytes()
		n++
	}
	group := q.items[:n:n]
	if n == len(q.items) {
		q.items = make([]*request, 0, min(2*n, groupRequestsMax)) // the group keeps the array
	} else {
		q.items = q.items[n:]
	}
	return group
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}
