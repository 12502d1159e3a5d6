package parley_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/parleyrun/parley"
)

// One question from asked to answered, on a file: two appends, each synced.
func BenchmarkAskAndAnswer(b *testing.B) {
	for _, file := range []bool{false, true} {
		b.Run(map[bool]string{false: "memory", true: "file"}[file], func(b *testing.B) {
			cfg := parley.Config{Memory: !file, Logger: quiet}
			if file {
				cfg.Path = filepath.Join(b.TempDir(), "parley.db")
			}
			node, err := parley.Open(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer node.Close(b.Context())
			var sessions atomic.Int64
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				session := fmt.Sprint("s", sessions.Add(1))
				agent, err := node.Attach(b.Context(), session, "agent", parley.AttachOptions{})
				if err != nil {
					b.Error(err)
					return
				}
				for i := 0; pb.Next(); i++ {
					call := fmt.Sprint("c", i)
					waiting, done := make(chan bool, 8), make(chan error, 1)
					agent.AskAsync(parley.Ask{CallID: call, Questions: []parley.Question{deploy}, OnWaiting: func(parley.Waiting) { waiting <- true }},
						func(_ parley.Result, err error) { done <- err })
					<-waiting
					if _, err := node.Answer(b.Context(), session, call, "ann", parley.Choose("env", "production")); err != nil {
						b.Error(err)
						return
					}
					<-done
				}
			})
		})
	}
}
