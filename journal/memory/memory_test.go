package memory_test

import (
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/journal/memory"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	journaltest.Exercise(t, func(t *testing.T) journaltest.Harness {
		j := memory.New(nil)
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		return journaltest.Harness{Journal: j}
	})
}

// The simulation owns every goroutine: with a scheduler of its own, nothing
// runs before it says so, and then in order.
func TestCallbacksAreHandedToTheScheduler(t *testing.T) {
	var handed []func()
	j := memory.New(func(callback func()) { handed = append(handed, callback) })
	var got []int
	j.Append(journaltest.Birth("s", 1), func(journal.Appended, error) { got = append(got, 1) })
	j.Open("s", func(journal.Opened, error) { got = append(got, 2) })
	if len(got) != 0 || len(handed) != 2 {
		t.Fatalf("ran %v of %d handed over", got, len(handed))
	}
	for _, callback := range handed {
		callback()
	}
	if len(got) != 2 || got[0] != 1 {
		t.Fatalf("ran in the order %v", got)
	}
}

func TestMemoryKeepsTheContractOfTexts(t *testing.T) {
	journaltest.ExerciseTexts(t, func(t *testing.T) journaltest.TextHarness {
		j := memory.New(nil)
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		return journaltest.TextHarness{Journal: j, Texts: memory.NewTexts(j), Judge: memory.NewTexts(j)}
	})
}
