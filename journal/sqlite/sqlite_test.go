package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
)

func TestSQLiteKeepsTheContract(t *testing.T) {
	for name, o := range map[string]options{
		"as shipped": {},
		// The tables are brought up and the WAL is moved all the time.
		"with a short tail and a short log": {tailSize: 3, walPages: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Exercise(t, func(t *testing.T) journaltest.Harness { return harness(t, o) })
		})
	}
}

func harness(t *testing.T, o options) journaltest.Harness {
	path := filepath.Join(t.TempDir(), "journal ?#%20.db") // characters that mean something in a URI
	j := mustOpen(t, path, o)
	return journaltest.Harness{
		Journal: j,
		Reopen: func(t *testing.T) journal.Journal {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = mustOpen(t, path, o)
			return j
		},
		Restore: func(t *testing.T, path string) journal.Journal { return mustOpen(t, path, o) },
	}
}

// mustOpen opens a journal that is closed when the test ends.
func mustOpen(t *testing.T, path string, o options) *Journal {
	t.Helper()
	j, err := open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}
