package history_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/journal/sqlite"
	"github.com/parleyrun/parley/query/history"
)

// BenchmarkTraces times the tools as a model calls them, over the corpus that
// BenchmarkTexts of journal/sqlite searches: TEXTS is how many events it has. The
// lineage of a session is also found without an index, by reading every log.
func BenchmarkTraces(b *testing.B) {
	events := 20_000
	if n, err := strconv.Atoi(os.Getenv("TEXTS")); err == nil {
		events = n
	}
	log, err := sqlite.Open(filepath.Join(b.TempDir(), "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	type place struct {
		session string
		events  int64
	}
	var places []place
	batches := journaltest.NewCorpus(1).Batches(events)
	if _, err := journaltest.Load(log, func(yield func(journal.Batch) bool) {
		for batch := range batches {
			places = append(places, place{batch.Session, batch.Seq + int64(len(batch.Events))})
			if !yield(batch) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	texts, err := log.OpenTexts(nil)
	if err != nil {
		b.Fatal(err)
	}
	mount := func(texts journal.Texts) *history.Tools {
		tools, err := history.New(history.Past{Journal: log, Texts: texts}, slog.New(slog.DiscardHandler), history.Config{})
		if err != nil {
			b.Fatal(err)
		}
		return tools
	}
	indexed, linear := mount(texts), mount(memory.NewTexts(log))
	rng := rand.New(rand.NewPCG(3, 3))
	timed := func(tools *history.Tools, tool string, n int) []time.Duration {
		var took []time.Duration
		for range n {
			at := places[rng.IntN(len(places))]
			args := json.RawMessage(fmt.Sprintf(`{"seq":%d,"after":3}`, rng.Int64N(at.events)))
			start := time.Now()
			if _, err := tools.Call(b.Context(), at.session, tool, args); err != nil {
				b.Fatal(tool, at, err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took
	}
	timed(indexed, history.TraceSession, 1) // the index has caught up
	for range b.N {
		scan := timed(linear, history.TraceSession, 3)[1]
		for _, tool := range []string{history.TraceSession, history.TraceEvent, history.ReadEvent} {
			took := timed(indexed, tool, 300)
			p50, p99 := took[len(took)/2], took[len(took)*99/100]
			b.ReportMetric(float64(p50.Microseconds()), tool+"-p50-us")
			b.ReportMetric(float64(p99.Microseconds()), tool+"-p99-us")
			if tool == history.TraceSession {
				b.ReportMetric(float64(p50)/float64(scan), tool+"-p50/linear")
			}
		}
	}
}
