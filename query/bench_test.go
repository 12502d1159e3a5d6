package query_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/sqlite"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

// filled is a file with n open questions, ten to a session.
func filled(b *testing.B, n int) (journal.Journal, *script) {
	j, err := sqlite.Open(filepath.Join(b.TempDir(), "parley.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	var s *script
	for i := range n {
		if i%10 == 0 {
			s = newScript(b, j, fmt.Sprintf("s%05d", i/10)).header()
		}
		s.call(fmt.Sprint("c", i%10), "Deploy the new version to production now, or wait for Monday?", 0).commit()
	}
	return j, s
}

// A page of 500 questions, whose texts were never read before, and again.
func BenchmarkList(b *testing.B) {
	for _, cold := range []bool{true, false} {
		b.Run(map[bool]string{true: "cold", false: "warm"}[cold], func(b *testing.B) {
			j, _ := filled(b, 500)
			v := query.New(j, query.Options{})
			for b.Loop() {
				if cold {
					v = query.New(j, query.Options{})
				}
				page, err := v.Questions(b.Context(), &messages.ListQuestionsRequest{})
				if err != nil || len(page.GetQuestions()) != 500 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/row")
		})
	}
}

// One change, from its commit to the last of the watches that show it.
func BenchmarkWatch(b *testing.B) {
	for _, watches := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(watches), func(b *testing.B) {
			j, s := filled(b, 10)
			v := query.New(j, query.Options{})
			ctx, stop := context.WithCancel(b.Context())
			got := make(chan struct{}, watches)
			for range watches {
				live := make(chan struct{})
				go func() {
					_ = v.Watch(ctx, &messages.WatchQuestionsRequest{}, func(r *messages.WatchQuestionsResponse) error {
						if r.GetLive() {
							close(live)
						} else if r.GetCursor() > 0 {
							got <- struct{}{}
						}
						return nil
					})
				}()
				<-live
			}
			for i := 0; b.Loop(); i++ {
				s.call(fmt.Sprint("n", i), "Go?", 0).commit()
				for range watches {
					<-got
				}
			}
			stop()
		})
	}
}
