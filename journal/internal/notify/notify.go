// Package notify is how a backend tells others that it has recorded something:
// the queue of callbacks, and the channels of Reader.Moved.
//
// It decides the order in which callbacks run (the order they came) and when a
// channel is closed. It never decides what was recorded, never blocks the
// goroutine that commits, and never drops a callback.
package notify

import (
	"sync"

	"github.com/parleyrun/parley/journal"
)

// Callbacks runs functions one after another, in the order they came, on a
// goroutine of its own that lives only while there is something to run. The
// queue has no bound: it holds at most one function per call in flight. The
// zero value is ready.
type Callbacks struct {
	mu      sync.Mutex
	idle    sync.Cond // signalled when the queue has run dry
	queue   []func()
	running bool
}

// Run hands functions over and returns at once.
func (c *Callbacks) Run(fns ...func()) {
	if len(fns) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, fns...)
	if !c.running {
		c.running = true
		go c.drain()
	}
}

// Wait returns once everything handed over so far has run. It must not be
// called from one of the functions.
func (c *Callbacks) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.L = &c.mu
	for c.running {
		c.idle.Wait()
	}
}

func (c *Callbacks) drain() {
	var batch []func()
	for {
		clear(batch) // or finished callbacks would be kept alive
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.running = false
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		batch, c.queue = c.queue, batch[:0]
		c.mu.Unlock()
		for _, fn := range batch {
			fn()
		}
	}
}

// Moved keeps the last position and closes the channels of those who wait for
// a later one. The zero value stands at position 0.
type Moved struct {
	mu      sync.Mutex
	last    journal.Position
	closed  bool
	waiting map[journal.Position]chan struct{}
}

// closedChannel is what a waiter gets who need not wait.
var closedChannel = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// Last returns the position of the last Advance.
func (m *Moved) Last() journal.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// After returns a channel that is closed once the position is above `after`.
// Those who wait at one position share one channel, so a waiter that gives up
// leaves nothing behind but an entry that the next append removes.
func (m *Moved) After(after journal.Position) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.last > after {
		return closedChannel
	}
	ch, ok := m.waiting[after]
	if !ok {
		if m.waiting == nil {
			m.waiting = map[journal.Position]chan struct{}{}
		}
		ch = make(chan struct{})
		m.waiting[after] = ch
	}
	return ch
}

// Advance records that everything up to last is durable. A position that was
// passed already changes nothing.
func (m *Moved) Advance(last journal.Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last <= m.last {
		return
	}
	m.last = last
	for after, ch := range m.waiting {
		if after < last {
			close(ch)
			delete(m.waiting, after)
		}
	}
}

// Close wakes everybody who waits: there will be no later position.
func (m *Moved) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for after, ch := range m.waiting {
		close(ch)
		delete(m.waiting, after)
	}
}
