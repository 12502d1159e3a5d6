package journaltest_test

import (
	"testing"

	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/sessionlog"
)

// A corpus is the same for the same seed, and every session of it can be read.
func TestACorpusIsSoundAndTheSameAgain(t *testing.T) {
	logs, headers := map[string][]sessionlog.Event{}, map[string]*sessionlog.Header{}
	lines := ""
	for b := range journaltest.NewCorpus(1).Batches(3000) {
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		if b.Header != nil {
			headers[b.Session] = b.Header
		}
		logs[b.Session] = append(logs[b.Session], b.Events...)
		some, err := b.Lines()
		if err != nil {
			t.Fatal(err)
		}
		lines += string(some)
	}
	again, children, replaced, size := "", 0, 0, 0
	for b := range journaltest.NewCorpus(1).Batches(3000) {
		some, _ := b.Lines()
		again += string(some)
	}
	if again != lines {
		t.Fatal("the same seed made another corpus")
	}
	for id, events := range logs {
		if headers[id].ParentSession != "" {
			children++
		}
		if err := sessionlog.ValidateEvents(sessionlog.V3, events); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		view, err := sessionlog.Surface(sessionlog.V3, events)
		if err != nil {
			t.Fatal(err)
		}
		replaced += len(view.Replacements)
		for _, ev := range events {
			size += len(sessionlog.SemanticText(ev))
		}
	}
	if len(logs) < 10 || children == 0 || replaced == 0 || size < 300_000 {
		t.Fatalf("%d sessions, %d children, %d replacements, %d bytes of text", len(logs), children, replaced, size)
	}
}
