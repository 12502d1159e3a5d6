package sqlite

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/sessionlog"
)

// benchBytes is what a request records: its event line, here and in the bare
// database alike.
const benchBytes = 500

// BenchmarkAppendBesideBare measures appends, each with an index change, asking
// and settling in turn, beside the least SQLite can do with the same driver: one
// committer, one INSERT of the same bytes per request, one transaction per
// group. Both run in turns, because the machine changes under a benchmark.
//
//	go test ./journal/sqlite -run - -bench Beside -benchtime 200000x
//
// bare is SQLite's default page and checkpoint size, tuned has ours; the ratios
// are our rate divided by theirs.
func BenchmarkAppendBesideBare(b *testing.B) {
	for _, c := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("c=%d", c), func(b *testing.B) {
			const rounds = 6
			ours := openBench(b)
			bare := openBare(b, 4096, 1000)
			tuned := openBare(b, pageBytes, walPagesDefault)
			var spent, used [3]time.Duration
			b.ResetTimer()
			for range rounds {
				n := max(b.N/rounds/c, 1)
				for k, run := range []func(int){
					func(int) { bare.requests(n) },
					func(i int) { ours.requests(i, n) },
					func(int) { tuned.requests(n) },
				} {
					before := processorTime()
					spent[k] += crowd(c, run)
					used[k] += processorTime() - before
				}
			}
			done := float64(rounds * c * max(b.N/rounds/c, 1))
			b.ReportMetric(done/spent[0].Seconds(), "bare/s")
			b.ReportMetric(done/spent[1].Seconds(), "append/s")
			b.ReportMetric(done/spent[2].Seconds(), "tuned/s")
			b.ReportMetric(used[0].Seconds()/done*1e6, "bare-cpu-µs")
			b.ReportMetric(used[1].Seconds()/done*1e6, "append-cpu-µs")
			b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "of-bare")
			b.ReportMetric(spent[2].Seconds()/spent[1].Seconds(), "of-tuned")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkAppend is for profiles: c=128, in sessions that are all there
// already. "spread" appends to 20,000 of them in turn, the worst case for a
// table of sessions; "hot" to 128.
func BenchmarkAppend(b *testing.B) {
	for _, spread := range []int{1, 156} {
		b.Run(fmt.Sprintf("sessions=%d", spread*128), func(b *testing.B) {
			ours := openBench(b)
			ours.spread = spread
			crowd(128, func(i int) { ours.requests(i, 2*spread) })
			b.ReportAllocs()
			b.ResetTimer()
			d := crowd(128, func(i int) { ours.requests(i, b.N/128+1) })
			b.ReportMetric(float64(b.N)/d.Seconds(), "append/s")
		})
	}
}

// BenchmarkOpen is the restart of a session of 100 batches.
func BenchmarkOpen(b *testing.B) {
	j := mustOpenB(b)
	mustB(b, journaltest.Birth("s", 1))(j)
	for seq := int64(1); seq < 100; seq++ {
		mustB(b, journaltest.Next("s", 1, seq, 1))(j)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := journaltest.Open(j, "s"); err != nil {
			b.Fatal(err)
		}
	}
}

// crowd runs one function on c goroutines and returns how long they took.
func crowd(c int, run func(i int)) time.Duration {
	var all sync.WaitGroup
	start := time.Now()
	for i := range c {
		all.Add(1)
		go func() {
			defer all.Done()
			run(i)
		}()
	}
	all.Wait()
	return time.Since(start)
}

type bench struct {
	j      *Journal
	spread int
	state  [128][]owned
	turn   [128]int
}

type owned struct{ epoch, seq int64 }

func openBench(b *testing.B) *bench { return &bench{j: mustOpenB(b), spread: 1} }

func mustOpenB(b *testing.B) *Journal {
	j, err := Open(filepath.Join(b.TempDir(), "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

func mustB(b *testing.B, batch journal.Batch) func(*Journal) {
	return func(j *Journal) {
		if _, err := journaltest.Append(j, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// requests appends n times, each time waiting for the outcome.
func (o *bench) requests(worker, n int) {
	if o.state[worker] == nil {
		o.state[worker] = make([]owned, o.spread)
	}
	done := make(chan error, 1)
	data := json.RawMessage(`{"text":"` + strings.Repeat("x", benchBytes-70) + `"}`)
	template := sessionlog.NewEvent("tool/call", data)
	for range n {
		k := o.turn[worker] % o.spread
		o.turn[worker]++
		s := &o.state[worker][k]
		session := fmt.Sprintf("session-%03d-%06d", worker, k)
		batch := journal.Batch{Session: session, Epoch: s.epoch, Seq: s.seq, Events: []sessionlog.Event{template.At(s.seq, 1_700_000_000_000)}}
		batch.Index = []sessionlog.RowChange{{Row: sessionlog.Row{CallID: "call-12345678", State: sessionlog.RowOpen, Due: 1_700_000_120_000 + s.seq, Seq: s.seq}, Remove: s.seq%2 == 1}}
		if s.seq == 0 {
			batch.Header = journaltest.Header(session)
		}
		o.j.Append(batch, func(a journal.Appended, err error) {
			s.epoch = a.Epoch
			done <- err
		})
		if err := <-done; err != nil {
			panic(err)
		}
		s.seq++
	}
}

// bare is group commit and nothing else.
type bare struct {
	c       *conn
	queue   chan chan struct{}
	ended   chan struct{}
	payload []byte
}

func openBare(b *testing.B, page, checkpoint int) *bare {
	path := filepath.Join(b.TempDir(), "bare.db")
	if err := touch(path); err != nil {
		b.Fatal(err)
	}
	c, err := dial(path, "", cacheKiB)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Exec(fmt.Sprintf(`PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = %d;
		CREATE TABLE t (id INTEGER PRIMARY KEY, session INTEGER, events BLOB)`, page, checkpoint)); err != nil {
		b.Fatal(err)
	}
	o := &bare{c: c, queue: make(chan chan struct{}, 4096), ended: make(chan struct{}), payload: []byte(strings.Repeat("x", benchBytes))}
	insert, err := c.stmt("INSERT INTO t (session, events) VALUES (?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	go o.commit(insert)
	b.Cleanup(func() {
		close(o.queue)
		<-o.ended
		c.discard()
	})
	return o
}

func (o *bare) commit(insert *sqlite3.Stmt) {
	defer close(o.ended)
	var group []chan struct{}
	for first := range o.queue {
		group = append(group[:0], first)
		for more := true; more && len(group) < groupRequestsMax; {
			select {
			case next, ok := <-o.queue:
				if more = ok; ok {
					group = append(group, next)
				}
			default:
				more = false
			}
		}
		ok(o.c.query("BEGIN IMMEDIATE", nil))
		for i := range group {
			ok(insert.BindInt64(1, int64(i)))
			ok(insert.BindBlob(2, o.payload))
			ok(insert.Exec())
		}
		ok(o.c.query("COMMIT", nil))
		for _, done := range group {
			done <- struct{}{}
		}
	}
}

func (o *bare) requests(n int) {
	done := make(chan struct{}, 1)
	for range n {
		o.queue <- done
		<-done
	}
}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}
