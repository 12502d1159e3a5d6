package conformance

import (
	"path/filepath"
	"testing"

	"github.com/parleyrun/parley/journal/sqlite"
)

func TestQueryToolVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "session-query-tools.jsonl") {
		_, name := vectorNames(t, v)
		if verdict, why := RunQueryTools(v); verdict != Passed {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// The same through the index that a node has.
func TestQueryToolVectorsOnSQLite(t *testing.T) {
	t.Parallel()
	for i, v := range vectors(t, "session-query-tools.jsonl") {
		if testing.Short() && i%4 != 0 {
			continue
		}
		_, name := vectorNames(t, v)
		log, err := sqlite.Open(filepath.Join(t.TempDir(), "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		texts, err := log.OpenTexts(nil)
		if err != nil {
			t.Fatal(err)
		}
		if verdict, why := QueryTools(v, log, texts); verdict != Passed {
			t.Errorf("%s: %s", name, why)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}
