// Package sqlite is the journal in one SQLite file: the default, and the only
// durable one that needs nothing beside it.
//
// It decides which appends share a commit, and when the tables beside the log
// are brought up to it. It never reports a batch that is not on the disk
// (synchronous=FULL, one sync for all sessions that wait), never lets two
// processes write to one file, and never lets one damaged session hurt another.
package sqlite

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/internal/notify"
	"github.com/parleyrun/parley/messages"
)

// Journal is an open journal file. Make one with Open.
type Journal struct {
	path      string
	options   options
	queue     queue
	tail      tail
	moved     notify.Moved
	callbacks notify.Callbacks
	openers   openers
	pool      *pool
	committer *committer
	committed chan struct{} // closed when the committer has ended
	lock      lock
	guard     *guard
	texts     atomic.Pointer[Texts] // the open text index
	closing   sync.Once
}

var _ journal.Journal = (*Journal)(nil)

// options are what tests turn. Their zero values are what everybody runs.
type options struct {
	vfs      string // a file layer registered with SQLite
	tailSize int    // batches and index changes above the floor that make the tables be brought up
	walPages int    // pages of the WAL that make it be moved into the file
	maxPages int    // pages the file may have; 0: as many as SQLite allows
}

const (
	// Some thousand records are read again in a few milliseconds when a file is
	// opened, and are enough to bring the tables up at a small cost for each.
	tailSizeDefault = 8192
	// 16 MiB: rare enough to cost little, small enough to take milliseconds.
	walPagesDefault = 2048
	readersMax      = 4 // connections for reading
	openersMax      = 2 // of them, how many may be reading for Open
)

// Open opens a journal, and makes one, with its folder, where there is none.
// One process may have a journal open, once and whatever names its file has:
// messages.JournalLocked, also for a file with hard links. The other
// errors that a file can cause: messages.JournalNewer, JournalCorrupt,
// JournalReadOnly, JournalFull, JournalIO. None of them changes the file.
//
// Beside the file there are three more while it is open, of the same name with
// -wal, -shm and -lock. The first is a part of the journal: a copy of the file
// without it lacks the newest appends. Use Backup.
func Open(path string) (*Journal, error) { return open(path, options{}) }

func open(path string, o options) (*Journal, error) {
	if o.tailSize == 0 {
		o.tailSize = tailSizeDefault
	}
	if o.walPages == 0 {
		o.walPages = walPagesDefault
	}
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	held, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, options: o, lock: held, committed: make(chan struct{})}
	j.queue.filled.L = &j.queue.mu
	j.openers.j, j.openers.idle.L = j, &j.openers.mu
	j.tail.sessions = map[string]*tailSession{}
	j.committer = &committer{j: j, staged: map[string]head{}, resting: map[string]head{}}
	if err := j.start(); err != nil {
		_ = held.release()
		return nil, err
	}
	j.pool = newPool(path, readersMax, j.dialReader)
	go func() {
		defer close(j.committed)
		j.committer.run()
	}()
	return j, nil
}

// start takes hold of the file and makes the committer's connection.
func (j *Journal) start() (err error) {
	if j.guard, err = seize(j.path); err != nil {
		return err
	}
	forgetFailure(j.path)
	err = touchBeside(j.path)
	if err == nil && j.guard.info.Size() == 0 {
		err = syncNames(j.path)
	}
	if err == nil {
		err = fault(j.path, "opening it", j.committer.revive())
	}
	if err != nil {
		_ = j.guard.release()
	}
	return err
}

// Open takes the session's next epoch and then reads its log.
func (j *Journal) Open(session string, done func(journal.Opened, error)) {
	if !j.queue.put(&request{session: session, opened: done}) {
		j.callbacks.Run(func() { done(journal.Opened{}, errClosed(j.path)) })
	}
}

// Append records a batch if its epoch and sequence number are the session's.
func (j *Journal) Append(b journal.Batch, done func(journal.Appended, error)) {
	r, err := encode(b, done)
	if err != nil {
		j.callbacks.Run(func() { done(journal.Appended{}, err) })
		return
	}
	if !j.queue.put(r) {
		j.callbacks.Run(func() { done(journal.Appended{}, errClosed(j.path)) })
	}
}

func encode(b journal.Batch, done func(journal.Appended, error)) (*request, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	lines, err := b.Lines()
	if err != nil {
		return nil, err
	}
	r := &request{
		session: b.Session, epoch: b.Epoch, seq: b.Seq, count: int64(len(b.Events)), events: lines,
		index: b.Index, erase: b.Delete, empty: b.Empty(), appended: done,
	}
	if b.Header != nil {
		r.header = b.Header.Line()
	}
	if len(b.Index) > 0 {
		r.delta = journal.AppendChanges(make([]byte, 0, 96*len(b.Index)), b.Index)
	}
	if n := r.bytes(); n > batchBytesMax {
		return nil, messages.Refuse(messages.TooLarge, "an append to session %s has %d bytes, over the limit of %d: append it in parts", b.Session, n, batchBytesMax)
	}
	return r, nil
}

// Last returns the position of the newest batch.
func (j *Journal) Last(ctx context.Context) (journal.Position, error) {
	if j.pool.isClosed() {
		return 0, errClosed(j.path)
	}
	return j.moved.Last(), ctx.Err()
}

// Moved returns a channel that is closed once there is a later position.
func (j *Journal) Moved(after journal.Position) <-chan struct{} { return j.moved.After(after) }

// Close commits what was handed in, lets every callback run, and closes the
// file, which then needs none of the files beside it.
func (j *Journal) Close() (err error) {
	j.closing.Do(func() {
		if t := j.texts.Load(); t != nil {
			_ = t.Close() // what it could not write it can make again
		}
		j.queue.close()
		<-j.committed
		j.openers.wait()
		j.callbacks.Wait()
		j.moved.Close()
		j.pool.close()
		if c := j.committer.c; c != nil { // the last connection: SQLite moves the WAL into the file
			err = fault(j.path, "closing it", c.close())
		}
		if e := j.guard.release(); err == nil {
			err = fault(j.path, "letting go of it", e)
		}
		if e := j.lock.release(); err == nil {
			err = fault(j.path, "letting go of it", e)
		}
	})
	return err
}
