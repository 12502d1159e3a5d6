package sqlite

import (
	"context"
	"sync"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// pool holds the connections that read. In WAL mode they see the file as of
// their transaction's start and wait for nobody.
type pool struct {
	path  string
	dial  func() (*conn, error)
	slots chan *conn    // nil: not dialled yet
	stop  chan struct{} // closed by close
}

// newPool makes a pool of n connections to the file at path; dial makes one.
func newPool(path string, n int, dial func() (*conn, error)) *pool {
	p := &pool{path: path, dial: dial, slots: make(chan *conn, n), stop: make(chan struct{})}
	for range n {
		p.slots <- nil
	}
	return p
}

// dialReader makes a connection to the journal for its pool.
func (j *Journal) dialReader() (*conn, error) {
	if err := j.guard.check(); err != nil {
		return nil, err // it would make an empty WAL, and take the journal for damaged
	}
	return dial(j.path, j.options.vfs, readerCacheKiB)
}

func (p *pool) isClosed() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// do runs read with a connection that is interrupted when ctx is done.
func (p *pool) do(ctx context.Context, doing string, read func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.isClosed() {
		return errClosed(p.path)
	}
	var c *conn
	select {
	case c = <-p.slots:
	case <-p.stop:
		return errClosed(p.path)
	case <-ctx.Done():
		return ctx.Err()
	}
	over := false
	defer func() {
		if c != nil && !over { // a panic: nobody knows what it is in the middle of
			c.discard()
			c = nil
		}
		p.slots <- c
	}()
	if c == nil {
		var err error
		if c, err = p.dial(); err != nil {
			return err
		}
		// Moving the WAL into the file, even at the end, is the committer's.
		_, err = c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
		if err == nil {
			err = c.Exec("PRAGMA query_only = ON")
		}
		if err != nil {
			c.discard()
			c = nil
			return fault(p.path, doing, err)
		}
	}
	c.SetInterrupt(ctx)
	err := read(c)
	over = true
	c.SetInterrupt(context.Background())
	if !c.GetAutocommit() {
		if e := c.query("ROLLBACK", nil); e != nil {
			c.discard()
			c = nil // a connection that cannot even end its transaction is not used again
		}
	}
	return interrupted(ctx, p.path, doing, err)
}

// begin fixes what the connection sees until do returns.
func (c *conn) begin() error {
	if err := c.query("BEGIN", nil); err != nil {
		return err
	}
	_, _, err := c.number("SELECT pos FROM floor") // BEGIN alone fixes nothing
	return err
}

// forget closes the connections, of which none is in use, and dials new ones
// when they are needed.
func (p *pool) forget() {
	for range cap(p.slots) {
		if c := <-p.slots; c != nil {
			c.discard()
		}
		p.slots <- nil
	}
}

// close waits for the reads under way and closes every connection.
func (p *pool) close() {
	close(p.stop)
	for range cap(p.slots) {
		if c := <-p.slots; c != nil {
			c.discard()
		}
	}
}

// openers read the logs of sessions whose epoch has been taken. Few read at a
// time, however many sessions a restart opens at once.
type openers struct {
	j       *Journal
	mu      sync.Mutex
	idle    sync.Cond
	waiting []*request
	running int
}

func (o *openers) run(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, r)
	if o.running < openersMax {
		o.running++
		go o.work()
	}
}

func (o *openers) work() {
	for {
		o.mu.Lock()
		if len(o.waiting) == 0 {
			o.running--
			o.idle.Broadcast()
			o.mu.Unlock()
			return
		}
		r := o.waiting[0]
		o.waiting[0] = nil
		o.waiting = o.waiting[1:]
		o.mu.Unlock()
		opened, err := o.j.readOpened(r)
		o.j.callbacks.Run(func() { r.opened(opened, err) })
	}
}

func (o *openers) wait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.running > 0 {
		o.idle.Wait()
	}
}
