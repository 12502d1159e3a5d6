package disk

import (
	"cmp"
	"slices"

	"github.com/parleyrun/parley/journal"
)

// Handle is one host's connection to the disk, and the journal of that host.
//
// Callbacks run on the goroutine that decides or tells. Reads are answered at
// once, and see what is committed, told or not.
type Handle struct {
	disk    *Disk
	host    string
	owner   Owner
	queues  map[string]*queue // by session
	order   []*queue          // in the order they came to be
	handed  int64             // how many ops were handed in
	pending int               // how many of them were handed in before Close and not told
	waiting []waiter
	closed  bool
	crashed bool
}

var _ journal.Journal = (*Handle)(nil)

// queue is what one handle wants of one session, in order: first what was
// decided and not told, then the op whose turn it is, then what waits for it.
type queue struct {
	handle           *Handle
	head, turn, tail *Op
	telling          bool
}

// waiter is a channel of Moved.
type waiter struct {
	after journal.Position
	moved chan struct{}
}

// Handle connects a host. A host that starts again after a crash takes a new one.
func (d *Disk) Handle(host string, owner Owner) *Handle {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &Handle{disk: d, host: host, owner: owner, queues: map[string]*queue{}}
	d.handles = append(d.handles, h)
	return h
}

// Crash is the end of the host: ops that were not decided are void, callbacks
// never run, and calls of whatever still runs on it do nothing. What was
// committed stays.
func (h *Handle) Crash() {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.crash()
	h.disk.handles = slices.DeleteFunc(h.disk.handles, func(o *Handle) bool { return o == h })
}

func (h *Handle) crash() {
	if h.crashed {
		return
	}
	h.crashed = true
	for _, q := range h.order {
		q.head, q.turn, q.tail = nil, nil, nil // what is in no queue is never told
	}
	h.pending = 0
	h.disk.told.Broadcast()
	h.wakeAll()
}

// Open submits the taking of the session's next epoch to the owner.
func (h *Handle) Open(session string, done func(journal.Opened, error)) {
	h.hand(session, KindOpen, journal.Batch{}, done, nil)
}

// Append submits a batch to the owner.
func (h *Handle) Append(b journal.Batch, done func(journal.Appended, error)) {
	h.hand(b.Session, KindAppend, b, nil, done)
}

func (h *Handle) hand(session, kind string, b journal.Batch, opened func(journal.Opened, error), appended func(journal.Appended, error)) {
	d := h.disk
	d.mu.Lock()
	if h.crashed {
		d.mu.Unlock()
		return
	}
	h.handed++
	if !h.closed {
		h.pending++
	}
	op := d.newOp()
	*op = Op{
		Host: h.host, Session: session, Kind: kind, Batch: b,
		queue: h.queue(session), number: h.handed, late: h.closed, doneOpened: opened, doneAppended: appended,
	}
	first := op.queue.add(op)
	d.mu.Unlock()
	if first {
		h.owner.Submit(op)
	}
}

// newOp takes room for one op. It is never used again: an owner may keep its
// ops as long as it likes.
func (d *Disk) newOp() *Op {
	if len(d.spare) == 0 {
		d.spare = make([]Op, 32)
	}
	op := &d.spare[0]
	d.spare = d.spare[1:]
	return op
}

func (h *Handle) queue(session string) *queue {
	q := h.queues[session]
	if q == nil {
		q = &queue{handle: h}
		h.queues[session] = q
		h.order = append(h.order, q)
	}
	return q
}

// add puts an op at the end and reports whether it is its turn.
func (q *queue) add(op *Op) bool {
	if q.tail != nil {
		q.tail.next = op
	} else {
		q.head = op
	}
	q.tail = op
	if q.turn != nil {
		return false
	}
	q.turn = op
	return true
}

// flush tells what may be told, in order. It is called under the lock, which
// it gives away while a callback runs.
func (q *queue) flush() {
	if q.telling { // by a callback, or on another goroutine, which goes on with it
		return
	}
	q.telling = true
	h := q.handle
	for op := q.head; op != nil && op.ready; op = q.head {
		if q.head = op.next; q.head == nil {
			q.tail = nil
		}
		op.next = nil // or an op that is kept would keep all after it
		h.disk.mu.Unlock()
		op.run()
		h.disk.mu.Lock()
		if !op.late && !h.crashed {
			h.pending--
			h.disk.told.Broadcast()
		}
	}
	q.telling = false
}

// Close commits what was handed in and not decided, in the order it came, and
// tells what was not told. Later calls are submitted too, and told
// messages.Unavailable whatever their fate.
func (h *Handle) Close() error {
	d := h.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if !h.closed && !h.crashed {
		h.closed = true
		for _, op := range h.unfinished() {
			if !op.decided {
				op.taken = true
				op.settle(true, nil)
			}
			op.ready = true
			op.queue.flush()
		}
		h.wakeAll()
	}
	for h.pending > 0 { // callbacks that run on other goroutines
		d.told.Wait()
	}
	return nil
}

// unfinished lists what was not decided or not told, in the order it came.
func (h *Handle) unfinished() []*Op {
	var out []*Op
	for _, q := range h.order {
		for op := q.head; op != nil; op = op.next {
			out = append(out, op)
		}
	}
	slices.SortFunc(out, func(a, b *Op) int { return cmp.Compare(a.number, b.number) })
	return out
}
