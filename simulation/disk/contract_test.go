package disk_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/simulation/disk"
)

// worker is the kindest owner: a goroutine that commits everything in order.
type worker struct {
	mu     sync.Mutex
	more   sync.Cond
	ops    []*disk.Op
	ended  bool
	exited chan struct{}
}

func newWorker(t *testing.T) *worker {
	w := &worker{exited: make(chan struct{})}
	w.more.L = &w.mu
	go w.work()
	t.Cleanup(func() {
		w.mu.Lock()
		w.ended = true
		w.more.Signal()
		w.mu.Unlock()
		<-w.exited
	})
	return w
}

func (w *worker) Submit(op *disk.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops = append(w.ops, op)
	w.more.Signal()
}

func (w *worker) work() {
	defer close(w.exited)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.ops) == 0 {
			if w.ended {
				return
			}
			w.more.Wait()
		}
		op := w.ops[0]
		w.ops = w.ops[1:]
		w.mu.Unlock()
		op.Commit()
		w.mu.Lock()
	}
}

// Backups are the one thing that does not apply: there is no file. The suite
// sees to it that they are refused as the contract says.
func TestTheDiskKeepsTheContract(t *testing.T) {
	journaltest.Exercise(t, func(t *testing.T) journaltest.Harness {
		d, w := disk.New(), newWorker(t)
		h := d.Handle("first", w)
		t.Cleanup(func() { require.NoError(t, h.Close()) })
		return journaltest.Harness{Journal: h, Reopen: func(t *testing.T) journal.Journal {
			require.NoError(t, h.Close())
			h = d.Handle("next", w)
			return h
		}}
	})
}

// The suite on a disk that another world has used before.
func TestADiskThatWasResetKeepsTheContract(t *testing.T) {
	journaltest.Exercise(t, func(t *testing.T) journaltest.Harness {
		d, w := disk.New(), newWorker(t)
		for _, session := range []string{"s", "s0", "other"} {
			h := d.Handle("before", w)
			_, err := journaltest.Append(h, journaltest.Birth(session, 2, journaltest.Put("c1", 7)))
			require.NoError(t, err)
			_, err = journaltest.Open(h, session)
			require.NoError(t, err)
		}
		d.Reset()
		h := d.Handle("first", w)
		t.Cleanup(func() { require.NoError(t, h.Close()) })
		return journaltest.Harness{Journal: h, Reopen: func(t *testing.T) journal.Journal {
			require.NoError(t, h.Close())
			h = d.Handle("next", w)
			return h
		}}
	})
}
