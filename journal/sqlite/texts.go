package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// Texts is the text index of a journal, in a file of its own beside it, named
// like it with -texts. The file can be removed at any time, and is then made anew.
// Make one with Journal.OpenTexts.
//
// One goroutine follows the records of the journal by position (textindex.go).
// It comes to them a moment after they were appended, or at once when a search
// waits for it, and never holds up an append: it only reads the journal.
type Texts struct {
	j    *Journal
	log  *slog.Logger
	path string
	pool *pool

	// Held by the follower alone.
	c   *conn // nil: to be opened
	pos int64 // up to where the records have been taken in
	// compared says that no session of the journal lacks records in the index.
	compared bool

	stop  context.CancelFunc
	ended chan struct{}
	kick  chan struct{} // a search waits

	mu     sync.Mutex
	at     journal.Position // the index is true up to here
	rounds int              // how often the follower has tried
	err    error            // what came of the last round
	round  chan struct{}    // closed when the round under way is over
	closed bool
	rotten bool // the file is damaged, and to be made anew
	// using is held for reading by a search, for writing while the file is made
	// anew.
	using sync.RWMutex
}

var _ journal.Texts = (*Texts)(nil)

// settleTime is how long after an append the follower waits for more, if nobody
// searches: so that a busy journal is indexed in large pieces.
const settleTime = 500 * time.Millisecond

// OpenTexts opens the journal's text index, and makes one where there is none, an
// older one or a damaged one; the log, which may be nil, tells why. A journal has
// one open at a time: messages.JournalLocked. An SQLite file of another program
// under its name is messages.JournalCorrupt, and stays as it is; a file that can
// be read by nobody is kept aside; an index of a newer Parley is
// messages.JournalNewer. Closing the journal closes it.
func (j *Journal) OpenTexts(log *slog.Logger) (*Texts, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &Texts{j: j, log: log, path: j.path + textsSuffix, stop: stop, ended: make(chan struct{}), kick: make(chan struct{}, 1), round: make(chan struct{})}
	if !j.texts.CompareAndSwap(nil, t) {
		stop()
		return nil, messages.Refuse(messages.JournalLocked, "the text index %s is open already", t.path)
	}
	if err := t.open(ctx); err != nil {
		stop()
		j.texts.Store(nil)
		return nil, err
	}
	t.pool = newPool(t.path, textsReadersMax, t.dialReader)
	go t.follow(ctx)
	return t, nil
}

// Close ends the index. Searches under way come to their end first.
func (t *Texts) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		<-t.ended
		return nil
	}
	t.closed = true
	t.mu.Unlock()
	t.stop()
	<-t.ended
	t.using.Lock()
	defer t.using.Unlock()
	t.pool.close()
	var err error
	if t.c != nil {
		err = fault(t.path, "closing it", t.c.close())
	}
	t.j.texts.Store(nil)
	return err
}

// follow brings the index up whenever the journal has moved, until it is closed.
func (t *Texts) follow(ctx context.Context) {
	defer close(t.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		err := t.catchUp(ctx)
		if ctx.Err() != nil || messages.CodeOf(err) == messages.Unavailable {
			t.over(messages.Refuse(messages.Unavailable, "the text index %s is closed", t.path))
			return
		}
		t.over(err)
		moved := t.j.Moved(t.reached())
		if err != nil {
			moved = nil // what has failed is tried again when somebody asks
		}
		select {
		case <-moved:
			timer.Reset(settleTime)
			select {
			case <-timer.C:
			case <-t.kick:
			case <-ctx.Done():
			}
		case <-t.kick:
		case <-ctx.Done():
		}
	}
}

// over tells those who wait how a round ended.
func (t *Texts) over(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rounds++
	t.err = err
	close(t.round)
	t.round = make(chan struct{})
}

// reach makes it known up to where the index is true. One that is doubted is
// true of nothing until it has been made anew.
func (t *Texts) reach(at journal.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.rotten {
		t.at = at
	}
	close(t.round)
	t.round = make(chan struct{})
}

func (t *Texts) reached() journal.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at
}

// wait returns once everything is indexed that had been appended when it was
// called. An error is that of a round which ended after that.
func (t *Texts) wait(ctx context.Context) error {
	target := t.j.moved.Last()
	before := -1 // rounds that were over when this began
	for {
		t.mu.Lock()
		if before < 0 {
			before = t.rounds
		}
		at, rounds, err, round, closed := t.at, t.rounds, t.err, t.round, t.closed
		t.mu.Unlock()
		switch {
		case closed:
			return errClosed(t.path)
		case at >= target:
			return nil
		case rounds > before && err != nil:
			return err
		}
		select {
		case t.kick <- struct{}{}:
		default: // it is asked already
		}
		select {
		case <-round:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// search runs a read of the index that has all there is, once more if the file
// was found to be damaged and has been made anew. One that was removed is made
// anew before.
func (t *Texts) search(ctx context.Context, doing string, read func(*conn) error) error {
	for again := true; ; again = false {
		if _, err := os.Lstat(t.path); errors.Is(err, fs.ErrNotExist) && again {
			t.doubt(errRemoved)
		}
		err := t.wait(ctx)
		if messages.CodeOf(err) == messages.JournalCorrupt && again { // and is to be made anew by now
			continue
		}
		if err != nil {
			return err
		}
		err = t.read(ctx, doing, read)
		if messages.CodeOf(err) != messages.JournalCorrupt || !again {
			return err
		}
		t.doubt(err)
	}
}

// read runs a read of the index as it is.
func (t *Texts) read(ctx context.Context, doing string, read func(*conn) error) error {
	t.using.RLock()
	defer t.using.RUnlock() // after a panic, too, or the index could not be closed
	return t.pool.do(ctx, doing, func(c *conn) error {
		if err := c.query("BEGIN", nil); err != nil {
			return err
		}
		if err := c.checksummed(); err != nil {
			return err
		}
		return read(c)
	})
}
