package query_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/sqlite"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

// pendings fills a journal with sessions whose questions all went on without
// an answer: the wait timed out, and the call is still answerable.
func pendings(t testing.TB, j journal.Journal, sessions, calls int) {
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			s := newScript(t, j, fmt.Sprintf("s%05d", i)).header()
			for k := range calls {
				call := fmt.Sprintf("c%05d", k)
				s.call(call, "Deploy the new version to production now, or wait for Monday?", 9_000).pending(call).commit()
			}
		})
	}
	all.Wait()
}

// Two hundred sessions with 250 continued questions each: a page of 500 that
// was never read before, all pages, and the start of a watch of everything.
func BenchmarkContinued(b *testing.B) {
	j, err := sqlite.Open(filepath.Join(b.TempDir(), "parley.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	pendings(b, j, 200, 250)
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := query.New(j, query.Options{}).Questions(b.Context(), &messages.ListQuestionsRequest{Limit: 500})
			if err != nil || len(page.GetQuestions()) != 500 {
				b.Fatal(err)
			}
		}
	})
	b.Run("watch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, stop := context.WithCancel(b.Context())
			rows := 0
			_ = query.New(j, query.Options{}).Watch(ctx, &messages.WatchQuestionsRequest{}, func(r *messages.WatchQuestionsResponse) error {
				if r.GetLive() {
					stop()
				} else if r.GetQuestion() != nil {
					rows++
				}
				return nil
			})
			if stop(); rows != 200*250 {
				b.Fatal(rows)
			}
		}
	})
	b.Run("watch-again", func(b *testing.B) {
		v := query.New(j, query.Options{})
		start := func() {
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			_ = v.Watch(ctx, &messages.WatchQuestionsRequest{}, func(r *messages.WatchQuestionsResponse) error {
				if r.GetLive() {
					stop()
				}
				return nil
			})
		}
		start()
		for b.Loop() {
			start()
		}
	})
	b.Run("unread", func(b *testing.B) { // watches of everything that nobody reads
		const watches = 100
		for b.Loop() {
			var before, during, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			v := query.New(j, query.Options{})
			ctx, stop := context.WithCancel(b.Context())
			var blocked, all sync.WaitGroup
			blocked.Add(watches)
			for range watches {
				all.Go(func() {
					_ = v.Watch(ctx, &messages.WatchQuestionsRequest{}, func(*messages.WatchQuestionsResponse) error {
						blocked.Done()
						<-ctx.Done()
						return ctx.Err()
					})
				})
			}
			blocked.Wait()
			runtime.GC()
			runtime.ReadMemStats(&during)
			stop()
			all.Wait()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(during.HeapAlloc-before.HeapAlloc)/watches/1024, "KiB/watch")
			b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/1024, "KiB-left")
			runtime.KeepAlive(v)
		}
	})
}
