package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/sessionlog"
)

// BenchmarkTexts indexes a corpus and searches it, beside plain SQLite FTS5
// (unicode61, its own copy of the texts, bm25) on the same rows in transactions
// of the same size, and beside reading every log. One operation is all of that.
//
//	TEXTS=1000000 go test ./journal/sqlite -run - -bench Texts -benchtime 1x -timeout 60m
//
// TEXTS is the number of events, 20,000 without it. "sessions" is a search of a
// workspace for its best sessions, "events" one of a session for its best
// events; the phrases are one to three words that stand in the corpus, as often
// as they stand in it. Plain FTS5 finds no words inside of Chinese, which makes
// it look quick. What the linear scan is asked is few, because it is slow.
func BenchmarkTexts(b *testing.B) {
	events := 20_000
	if n, err := strconv.Atoi(os.Getenv("TEXTS")); err == nil {
		events = n
	}
	for range b.N {
		benchTexts(b, events)
	}
}

// asked is a search that somebody who knows a text might make.
type asked struct{ phrase, workspace, session string }

func benchTexts(b *testing.B, events int) {
	dir := b.TempDir()
	j, err := Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	queries, rng := []asked{}, rand.New(rand.NewPCG(7, 7))
	batches := observe(journaltest.NewCorpus(1).Batches(events), func(cwd string, batch journal.Batch) {
		for _, ev := range batch.Events {
			text := sessionlog.SemanticText(ev)
			if text == "" || rng.IntN(events) >= 1000 {
				continue
			}
			tokens := words.Tokens(text, words.Substring)
			if len(tokens) > 0 {
				at := rng.IntN(len(tokens))
				queries = append(queries, asked{strings.Join(tokens[at:min(at+1+rng.IntN(3), len(tokens))], " "), cwd, batch.Session})
			}
		}
	})
	start := time.Now()
	made, err := journaltest.Load(j, batches)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("appended %d events, %.0f/s; %d queries", made, float64(made)/time.Since(start).Seconds(), len(queries))

	// Indexing, ours and theirs.
	peak := watchHeap()
	start = time.Now()
	used := processorTime()
	texts, err := j.OpenTexts(nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := texts.Profiles(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	ours, oursUsed := time.Since(start), processorTime()-used
	if err := texts.Close(); err != nil { // moves the WAL into the file
		b.Fatal(err)
	}
	if texts, err = j.OpenTexts(nil); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(peak())/1e6, "index-peak-MB")
	used = processorTime()
	theirs, plain, err := plainTexts(j, filepath.Join(dir, "plain.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer plain.discard()
	theirsUsed := processorTime() - used
	b.ReportMetric(float64(made)/ours.Seconds(), "index/s")
	b.ReportMetric(float64(made)/oursUsed.Seconds(), "index/cpu-s")
	b.ReportMetric(theirsUsed.Seconds()/oursUsed.Seconds(), "index-of-plain-cpu")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "index-of-plain")
	ourBytes, theirBytes := sizeOf(b, j.path+textsSuffix), sizeOf(b, filepath.Join(dir, "plain.db"))
	b.ReportMetric(float64(ourBytes)/float64(made), "index-B/event")
	b.ReportMetric(float64(sizeOf(b, j.path))/float64(made), "journal-B/event")
	b.ReportMetric(float64(ourBytes)/float64(theirBytes), "bytes-of-plain")

	// Searching, in turns.
	rng.Shuffle(len(queries), func(i, k int) { queries[i], queries[k] = queries[k], queries[i] })
	queries = queries[:min(len(queries), 400)]
	linear := memory.NewTexts(j)
	for _, in := range []bool{false, true} {
		name := "sessions"
		if in {
			name = "events"
		}
		var our, whole, their, scans []time.Duration
		for i, q := range queries {
			our = append(our, timed(b, func() error { return searchOne(b.Context(), texts, q, in, words.Substring) }))
			whole = append(whole, timed(b, func() error { return searchOne(b.Context(), texts, q, in, words.Whole) }))
			their = append(their, timed(b, func() error { return plainSearch(plain, q, in) }))
			if i < 3 {
				scans = append(scans, timed(b, func() error { return searchOne(b.Context(), linear, q, in, words.Substring) }))
			}
		}
		for _, p := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			o, t := quantile(our, p.at), quantile(their, p.at)
			b.ReportMetric(o.Seconds()*1e3, name+"-"+p.name+"-ms")
			b.ReportMetric(quantile(whole, p.at).Seconds()*1e3, name+"-"+p.name+"-whole-ms")
			b.ReportMetric(t.Seconds()*1e3, name+"-"+p.name+"-plain-ms")
			b.ReportMetric(o.Seconds()/t.Seconds(), name+"-"+p.name+"-of-plain")
			b.ReportMetric(o.Seconds()/quantile(scans, 0.5).Seconds(), name+"-"+p.name+"-of-linear")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// observe shows batches on their way, with the workspace of their session.
func observe(batches iter.Seq[journal.Batch], see func(cwd string, b journal.Batch)) iter.Seq[journal.Batch] {
	return func(yield func(journal.Batch) bool) {
		cwd := ""
		for b := range batches {
			if b.Header != nil {
				cwd = b.Header.CWD
			}
			see(cwd, b)
			if !yield(b) {
				return
			}
		}
	}
}

func timed(b *testing.B, run func() error) time.Duration {
	start := time.Now()
	if err := run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func quantile(of []time.Duration, at float64) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[int(at*float64(len(sorted)-1))]
}

func sizeOf(b *testing.B, path string) (n int64) {
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(path + end); err == nil {
			n += info.Size()
		}
	}
	return n
}

// watchHeap returns what stops watching and says how large the heap was at most.
func watchHeap() (peak func() uint64) {
	runtime.GC()
	var most atomic.Uint64
	stop, ended := make(chan struct{}), make(chan struct{})
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most.Store(max(most.Load(), m.HeapInuse))
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			look()
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-ended
		look()
		return most.Load()
	}
}

func searchOne(ctx context.Context, texts journal.Texts, q asked, in bool, cut words.Cut) error {
	query := journal.TextQuery{Phrase: words.NewPhrase(q.phrase, cut), Limit: 100, Sessions: journal.SessionFilter{CWDs: []string{q.workspace}}}
	if in {
		query.In = q.session
	}
	page, err := texts.Search(ctx, query)
	if err == nil && cut == words.Substring && len(page.Hits) == 0 {
		err = fmt.Errorf("nothing is found of %+v", q)
	}
	return err
}

// plainTexts is what one makes in an afternoon: the rows in a table of FTS5.
func plainTexts(j *Journal, path string) (time.Duration, *conn, error) {
	if err := touch(path); err != nil {
		return 0, nil, err
	}
	c, err := dial(path, "", textsCacheKiB)
	if err != nil {
		return 0, nil, err
	}
	if err := fts5.Register(c.Conn); err != nil {
		return 0, nil, err
	}
	start := time.Now()
	err = c.Exec(fmt.Sprintf(`PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 2048;
		CREATE VIRTUAL TABLE plain USING fts5(text, session UNINDEXED, seq UNINDEXED, type UNINDEXED, time UNINDEXED, cwd UNINDEXED, tokenize='unicode61')`, pageBytes))
	if err != nil {
		return 0, nil, err
	}
	cwds, last := map[string]string{}, int64(j.moved.Last())
	for after := int64(0); after < last; {
		chunk, err := j.textChunk(context.Background(), after, last)
		if err != nil {
			return 0, nil, err
		}
		after = chunk.end
		if err := c.query("BEGIN IMMEDIATE", nil); err != nil {
			return 0, nil, err
		}
		for _, r := range chunk.records {
			if r.header != nil {
				h, err := sessionlog.DecodeHeader(r.header)
				if err != nil {
					return 0, nil, err
				}
				cwds[r.name] = h.CWD
			}
			events, err := journal.DecodeLines(nil, r.events, r.seq, r.count)
			if err != nil {
				return 0, nil, err
			}
			for _, ev := range events {
				if text := sessionlog.SemanticText(ev); text != "" {
					if err := c.query("INSERT INTO plain VALUES (?, ?, ?, ?, ?, ?)", nil, text, r.name, ev.Seq, ev.Type, ev.Time, cwds[r.name]); err != nil {
						return 0, nil, err
					}
				}
			}
		}
		if err := c.query("COMMIT", nil); err != nil {
			return 0, nil, err
		}
	}
	_, _, err = c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	return time.Since(start), c, errors.Join(err)
}

func plainSearch(c *conn, q asked, in bool) error {
	sql, key := `WITH found AS MATERIALIZED (SELECT session, seq, type, time, rank AS r FROM plain WHERE plain MATCH ? AND cwd = ?)
		SELECT session, seq, type, time, min(r) FROM found GROUP BY session ORDER BY 5 LIMIT 100`, q.workspace
	if in {
		sql, key = `SELECT session, seq, type, time, snippet(plain, 0, '', '', '…', 30) FROM plain
			WHERE plain MATCH ? AND session = ? ORDER BY rank LIMIT 100`, q.session
	}
	return c.query(sql, nil, `"`+q.phrase+`"`, key)
}
