package disk

import (
	"strconv"

	"github.com/parleyrun/parley/journal"
)

// Owner decides when and how each operation happens.
type Owner interface {
	// Submit hands an op over. It is called by Open and Append on the caller's
	// goroutine, and by the decision on the op before it; it must return before
	// the op is decided, unless another goroutine decides.
	Submit(op *Op)
}

// The kinds of an Op.
const (
	KindOpen   = "open"
	KindAppend = "append"
)

// Op is one Open or Append that waits for its fate. Exactly one of Commit,
// CommitSilently, Refuse and InDoubt is called, once; a second call panics.
//
// Operations of one session from one handle keep their order: the next is
// submitted when the one before it has been decided, and is told after it.
// Operations of other sessions and of other handles may overtake.
type Op struct {
	Host, Session, Kind string
	Batch               journal.Batch // zero for an Open

	queue    *queue
	next     *Op
	number   int64 // by which its handle counts what was handed in
	decided  bool
	taken    bool // Close has decided it
	late     bool // handed in after Close
	recorded bool
	ready    bool // may be told

	opened       journal.Opened
	appended     journal.Appended
	err          error
	doneOpened   func(journal.Opened, error)
	doneAppended func(journal.Appended, error)
}

// Commit performs the op and tells its result. Whether epoch and sequence
// number are still the session's is judged now: the result may be
// messages.Fenced, and nothing was recorded then.
func (op *Op) Commit() {
	if op.decide(true, nil) {
		op.tell()
	}
}

// CommitSilently performs the op. Its result is told when tell runs, or never,
// if the host crashes first. A second tell does nothing.
func (op *Op) CommitSilently() (tell func()) {
	if !op.decide(true, nil) {
		return func() {}
	}
	return op.tell
}

// Refuse leaves the op undone and tells err (JOURNAL_IO, JOURNAL_FULL, …).
func (op *Op) Refuse(err error) {
	if op.decide(false, err) {
		op.tell()
	}
}

// InDoubt performs the op as Commit does, and tells err all the same: the
// acknowledgement was lost.
func (op *Op) InDoubt(err error) {
	if op.decide(true, err) {
		op.tell()
	}
}

// Void reports that no decision is wanted any more: its host has crashed, or
// has closed its handle, which finished it. A decision does nothing then.
func (op *Op) Void() bool {
	d := op.queue.handle.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	return op.void()
}

// Recorded reports that the op was decided and changed the disk. One that was
// fenced, an Open of no session, and an append that only proves its epoch have
// not.
func (op *Op) Recorded() bool {
	d := op.queue.handle.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	return op.recorded
}

// Err is the error that a decided op tells, or nil.
func (op *Op) Err() error {
	d := op.queue.handle.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	return op.err
}

// String names the op in a trace: "open s1", "append s1 @3+2 epoch 4",
// "prove s1 @3 epoch 4" for an empty batch, "delete s1 @3 epoch 4".
func (op *Op) String() string {
	if op.Kind == KindOpen {
		return KindOpen + " " + op.Session
	}
	verb, b := KindAppend, &op.Batch
	switch {
	case b.Delete:
		verb = "delete"
	case b.Empty():
		verb = "prove"
	}
	out := make([]byte, 0, 64)
	out = append(append(append(append(out, verb...), ' '), op.Session...), " @"...)
	out = strconv.AppendInt(out, b.Seq, 10)
	if verb == KindAppend {
		out = strconv.AppendInt(append(out, '+'), int64(len(b.Events)), 10)
	}
	return string(strconv.AppendInt(append(out, " epoch "...), b.Epoch, 10))
}

func (op *Op) void() bool { return op.taken || op.queue.handle.crashed }

// decide gives the op its fate and submits the one that waited for it. It
// reports false for a void op.
func (op *Op) decide(perform bool, err error) bool {
	if !perform && err == nil {
		panic("disk: " + op.String() + " is refused without an error")
	}
	d := op.queue.handle.disk
	d.mu.Lock()
	if op.void() {
		d.mu.Unlock()
		return false
	}
	if op.decided {
		d.mu.Unlock()
		panic("disk: a second decision on " + op.String())
	}
	next := op.settle(perform, err)
	d.mu.Unlock()
	if next != nil {
		next.queue.handle.owner.Submit(next)
	}
	return true
}

// settle performs the op or not, and returns the one whose turn it is now.
func (op *Op) settle(perform bool, err error) *Op {
	op.decided = true
	d := op.queue.handle.disk
	switch {
	case op.late:
		err = errClosed()
	case !perform:
	case op.Kind == KindOpen:
		op.opened, op.err = d.open(op)
	default:
		op.appended, op.err = d.append(op)
	}
	if err != nil {
		op.opened, op.appended, op.err = journal.Opened{}, journal.Appended{}, err
	}
	op.queue.turn = op.next
	return op.next
}

// tell lets the result be told, once those before it have been.
func (op *Op) tell() {
	d := op.queue.handle.disk
	d.mu.Lock()
	op.ready = true
	op.queue.flush()
	d.mu.Unlock()
}

func (op *Op) run() {
	if op.Kind == KindOpen {
		op.doneOpened(op.opened, op.err)
	} else {
		op.doneAppended(op.appended, op.err)
	}
}
