package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/journal/memory"
)

func TestSQLiteKeepsTheContractOfTexts(t *testing.T) {
	journaltest.ExerciseTexts(t, func(t *testing.T) journaltest.TextHarness {
		return textHarness(t, filepath.Join(t.TempDir(), "journal ?#%20.db"))
	})
}

func textHarness(t *testing.T, path string) journaltest.TextHarness {
	t.Helper()
	j := mustOpen(t, path, options{})
	texts := mustOpenTexts(t, j)
	return journaltest.TextHarness{
		Journal: j, Texts: texts, Judge: memory.NewTexts(j),
		Reopen: func(t *testing.T) journaltest.TextHarness {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			return textHarness(t, path)
		},
	}
}

func mustOpenTexts(t *testing.T, j *Journal) *Texts {
	t.Helper()
	texts, err := j.OpenTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
