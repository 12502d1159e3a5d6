package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
)

// countdown is a context that ends when it has been asked a number of times,
// which puts the end at every point of a read in turn.
type countdown struct {
	context.Context
	left  atomic.Int64
	cause error
	done  chan struct{}
	once  sync.Once
}

func newCountdown(ctx context.Context, n int64, cause error) *countdown {
	c := &countdown{Context: ctx, cause: cause, done: make(chan struct{})}
	c.left.Store(n)
	return c
}

func (c *countdown) Done() <-chan struct{} { return c.done }

func (c *countdown) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	c.once.Do(func() { close(c.done) })
	return c.cause
}

func (c *countdown) Deadline() (time.Time, bool) { return time.Time{}, false }

// reads are all ways to read.
func reads(j *Journal, folder string) map[string]func(context.Context) error {
	n := 0
	return map[string]func(context.Context) error{
		"Read":     func(ctx context.Context) error { _, err := j.Read(ctx, "s", 0, 0); return err },
		"ReadPart": func(ctx context.Context) error { _, err := j.Read(ctx, "s", 3, 2); return err },
		"Sessions": func(ctx context.Context) error { _, err := j.Sessions(ctx, "", 0); return err },
		"Active": func(ctx context.Context) error {
			_, _, err := j.Active(ctx, journal.ActiveFilter{})
			return err
		},
		"Changes": func(ctx context.Context) error { _, _, err := j.Changes(ctx, 0, 0); return err },
		"Due":     func(ctx context.Context) error { _, _, err := j.Due(ctx, 1000, 0); return err },
		"Last":    func(ctx context.Context) error { _, err := j.Last(ctx); return err },
		"Backup": func(ctx context.Context) error {
			n++
			return j.Backup(ctx, filepath.Join(folder, fmt.Sprint("copy", n)))
		},
	}
}

// long makes a journal with a session of many records.
func long(t *testing.T, records int64) *Journal {
	t.Helper()
	j, err := open(newPath(t), options{vfs: "quick", tailSize: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	b := journaltest.Birth("s", 1, journaltest.Put("c", 1))
	for seq := int64(0); seq < records; seq++ {
		if seq > 0 {
			b = journaltest.Next("s", 1, seq, 1, journaltest.Put(fmt.Sprint("c", seq), seq))
		}
		if _, err := journaltest.Append(j, b); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// Whatever a read was doing when its context ended, its error is the context's.
func TestAReadThatIsBrokenOffSaysSo(t *testing.T) {
	j := long(t, 60)
	for name, read := range reads(j, t.TempDir()) {
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			for n := int64(0); ; n++ {
				ctx := newCountdown(t.Context(), n, cause)
				err := read(ctx)
				if err == nil && ctx.left.Load() >= 0 {
					if n == 0 {
						t.Errorf("%s does not look at its context", name)
					}
					break // it ended before the context did
				}
				var coded *messages.Error
				if err != nil && (!errors.Is(err, cause) || errors.As(err, &coded)) {
					t.Fatalf("%s broken off at point %d: %v", name, n, err)
				}
				if n > 20_000 {
					t.Fatalf("%s goes on for ever", name)
				}
			}
		}
		if err := read(t.Context()); err != nil {
			t.Fatalf("%s afterwards: %v", name, err)
		}
	}
}

// Close during reads: each has its result, or learns that the journal is closed.
func TestAReadDuringCloseSaysSo(t *testing.T) {
	for round := range 8 / boundaryStride {
		j := long(t, 40)
		folder := t.TempDir()
		var started, ended sync.WaitGroup
		for name := range reads(j, folder) {
			read := reads(j, filepath.Join(folder))[name]
			started.Add(1)
			ended.Go(func() {
				first := true
				for {
					err := read(t.Context())
					if first {
						started.Done()
						first = false
					}
					if messages.CodeOf(err) == messages.Unavailable {
						if strings.Contains(err.Error(), "<nil>") {
							t.Errorf("%s: %v", name, err)
						}
						return
					}
					if err != nil && !strings.Contains(err.Error(), "exists") {
						t.Errorf("round %d: %s during Close: %v", round, name, err)
						return
					}
				}
			})
		}
		opened := make(chan error, 50)
		started.Wait()
		for range cap(opened) {
			j.Open("s", func(_ journal.Opened, err error) { opened <- err })
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		ended.Wait()
		for range cap(opened) {
			if err := <-opened; err != nil {
				t.Fatalf("an Open handed in before Close: %v", err)
			}
		}
	}
}

// A page is damaged under a running journal: the sessions on it are damaged, and
// the journal is only where nothing can be read any more.
func TestADamagedPageIsItsSessionsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		find  func(t *testing.T, path string, data []byte) int
		hurt  messages.Code
		other messages.Code
	}{
		"one page": {func(_ *testing.T, _ string, data []byte) int {
			return bytes.Index(data, []byte("mark-s10-")) / pageBytes
		}, messages.SessionCorrupt, ""},
		"the root": {func(t *testing.T, path string, _ []byte) (page int) {
			c, err := sqlite3.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, _, err := c.Prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'records'")
			if err != nil || !s.Step() {
				t.Fatal(err)
			}
			return s.ColumnInt(0) - 1
		}, messages.JournalCorrupt, messages.JournalCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			j, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 21 {
				session := fmt.Sprint("s", i)
				b := journaltest.Birth(session, 1)
				b.Events = journaltest.Events(0, 1, "mark-"+session+"-"+strings.Repeat("x", 3000))
				if _, err := journaltest.Append(j, b); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			page := c.find(t, path, data)
			if j, err = Open(path); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = j.Close() }()
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, 16), int64(page)*pageBytes); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Read(t.Context(), "s10", 0, 0); err == nil || messages.CodeOf(err) != c.hurt {
				t.Errorf("s10: %v", err)
			}
			if _, err := journaltest.Open(j, "s10"); err == nil || messages.CodeOf(err) != c.hurt {
				t.Errorf("s10 opened: %v", err)
			}
			if _, err := j.Read(t.Context(), "s0", 0, 0); (err != nil) != (c.other != "") || err != nil && messages.CodeOf(err) != c.other {
				t.Errorf("s0: %v", err)
			}
		})
	}
}
