package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/sessionlog"
)

// manyWords writes about n bytes of words of which many are new.
func manyWords(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "w%d ", r.IntN(1+r.IntN(1<<20)))
	}
	return b.String()
}

// longBytes is how long a log is: PARLEY_TEXTS_MB megabytes, 24 without it. What
// is allowed does not depend on it.
func longBytes(t *testing.T) int {
	if boundaryStride > 1 || testing.Short() {
		t.Skip("it takes minutes with the race detector, whose own memory would count")
	}
	if mb, err := strconv.Atoi(os.Getenv("PARLEY_TEXTS_MB")); err == nil {
		return mb << 20
	}
	return 24 << 20
}

// A log of 100 MB is indexed in the memory of a few chunks.
func TestALongLogIsIndexedInLittleMemory(t *testing.T) {
	const most = 96 << 20
	bytes := longBytes(t)
	path := newPath(t)
	j := mustOpen(t, path, options{})
	r := rand.New(rand.NewPCG(1, 1))
	var epoch, seq int64
	for size := 0; size < bytes; {
		b := journal.Batch{Session: "long", Epoch: epoch, Seq: seq}
		if seq == 0 {
			b.Header = journaltest.PastHeader("long", journaltest.Past, "", 1)
		}
		for range 500 {
			text := manyWords(r, r.IntN(4000))
			size += len(text)
			b.Events = append(b.Events, journaltest.User(text).At(seq, seq))
			seq++
		}
		a, err := journaltest.Append(j, b)
		if err != nil {
			t.Fatal(err)
		}
		epoch = a.Epoch
	}
	needle := journal.Batch{Session: "long", Epoch: epoch, Seq: seq, Events: []sessionlog.Event{journaltest.User("needle").At(seq, 1)}}
	if _, err := journaltest.Append(j, needle); err != nil {
		t.Fatal(err)
	}
	peak := watchHeap()
	wantFound(t, mustOpenTexts(t, j), "needle", "long")
	if got := peak(); got > most {
		t.Errorf("indexing took %d MB, over %d", got>>20, most>>20)
	} else {
		t.Logf("indexing took %d MB", got>>20)
	}
}

// One event may be as long as an append: its words are found all the same, and
// it holds up nobody else's.
func TestAnEventOfAWholeAppend(t *testing.T) {
	bytes := min(longBytes(t)/8, 30<<20)
	j := mustOpen(t, newPath(t), options{})
	texts := mustOpenTexts(t, j)
	r := rand.New(rand.NewPCG(1, 1))
	say(t, j, "a", "needle")
	epoch, next := say(t, j, "huge", "first", "needle "+manyWords(r, bytes)+" lastword")
	say(t, j, "b", "needle")
	wantFound(t, texts, "needle", "a b huge")
	wantFound(t, texts, "lastword", "huge")
	if _, err := journaltest.Append(j, journal.Batch{Session: "huge", Epoch: epoch, Seq: next, Delete: true}); err != nil {
		t.Fatal(err)
	}
	wantFound(t, texts, "needle", "a b")
}
