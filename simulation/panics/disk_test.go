package panics

import (
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
)

// disk is a journal in memory that can be slow, that knows the moment at which
// a batch was handed over, and that writes down the epochs it gave.
type disk struct {
	*memory.Journal

	mu     sync.Mutex
	now    map[string]*mined // by session
	epochs map[string][]int64
	slow   string // appends of this session are not answered
	held   []func()
	holds  chan struct{} // closed when the first is held
}

func newDisk() *disk {
	return &disk{Journal: memory.New(nil), now: map[string]*mined{}, epochs: map[string][]int64{}}
}

// deciding is told by a session that its effects are about to be performed.
func (d *disk) deciding(m *mined) {
	if m.kind == "session" {
		d.mu.Lock()
		d.now[m.session] = m
		d.mu.Unlock()
	}
}

func (d *disk) Open(session string, done func(journal.Opened, error)) {
	d.Journal.Open(session, func(o journal.Opened, err error) {
		if err == nil && o.Header != nil {
			d.mu.Lock()
			d.epochs[session] = append(d.epochs[session], o.Epoch)
			d.mu.Unlock()
		}
		done(o, err)
	})
}

func (d *disk) Append(b journal.Batch, done func(journal.Appended, error)) {
	d.Journal.Append(b, func(a journal.Appended, err error) {
		if !d.hold(b.Session, func() { done(a, err) }) {
			done(a, err)
		}
	})
	d.mu.Lock()
	m := d.now[b.Session]
	d.mu.Unlock()
	m.pass(m.now, handed)
}

func (d *disk) hold(session string, answer func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slow != session {
		return false
	}
	d.held = append(d.held, answer)
	if len(d.held) == 1 {
		close(d.holds)
	}
	return true
}

// stall keeps the journal's answers from a session; the channel is closed when
// the first is kept.
func (d *disk) stall(session string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow, d.holds = session, make(chan struct{})
	return d.holds
}

func (d *disk) resume() {
	d.mu.Lock()
	held := d.held
	d.slow, d.held = "", nil
	d.mu.Unlock()
	for _, answer := range held {
		answer()
	}
}
