package journal_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

var someChanges = []sessionlog.RowChange{
	{Row: sessionlog.Row{CallID: "call-1", State: sessionlog.RowOpen, Due: 1_700_000_000_000, Seq: 12}},
	{Row: sessionlog.Row{CallID: `quoted "\` + "\n\x00", State: sessionlog.RowContinued}},
	{Row: sessionlog.Row{CallID: "日本 ☂ \u2028 <&>", State: "unknown", Due: 1}},
	{Row: sessionlog.Row{CallID: "gone"}, Remove: true},
}

// Changes are kept in the form encoding/json gives, so that any tool reads them.
func TestChangesAreKeptAsPlainJSON(t *testing.T) {
	for n := range len(someChanges) + 1 {
		want, err := json.Marshal(someChanges[:n])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			want = []byte("[]")
		}
		got := journal.AppendChanges(nil, someChanges[:n])
		if string(got) != string(want) {
			t.Errorf("encoded as\n%s\nwant\n%s", got, want)
		}
		back, err := journal.DecodeChanges(got)
		if err != nil || !slices.Equal(back, someChanges[:n]) {
			t.Errorf("decoded as %+v, %v", back, err)
		}
	}
}

func TestDamagedChangesAreRefused(t *testing.T) {
	for _, delta := range []string{"", "[", "{}", `[{"r":{"c":1}}]`, `[]x`, `[][]`, `[{"r":{"c":"a","unknown":1}}]`} {
		if got, err := journal.DecodeChanges([]byte(delta)); err == nil {
			t.Errorf("%q was read as %+v", delta, got)
		}
	}
}

func TestLinesAreReadBack(t *testing.T) {
	for n := range 4 {
		b := journaltest.Next("s", 1, 7, n)
		lines, err := b.Lines()
		if err != nil {
			t.Fatal(err)
		}
		got, err := journal.DecodeLines(nil, lines, 7, int64(n))
		if err != nil || len(got) != n {
			t.Fatalf("%d events read as %d, %v", n, len(got), err)
		}
		for _, count := range []int64{int64(n) - 1, int64(n) + 1} {
			if _, err := journal.DecodeLines(nil, lines, 7, count); err == nil && count >= 0 {
				t.Errorf("%d events were read as %d", n, count)
			}
		}
		if _, err := journal.DecodeLines(nil, lines, 8, int64(n)); err == nil && n > 0 {
			t.Error("events were read under other numbers")
		}
	}
}

// L-035: a packed row is one line for all of its events, and for no other number of them.
func TestAPackedRowIsOneLine(t *testing.T) {
	const row = `{"type":"text-chunks","seq0":5,"time0":9,"data":{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","b"]}}`
	next, err := journaltest.Next("s", 1, 7, 1).Lines()
	if err != nil {
		t.Fatal(err)
	}
	lines := row + "\n" + string(next)
	for count := range int64(6) {
		got, err := journal.DecodeLines(nil, []byte(lines), 5, count)
		if (err == nil) != (count == 3) {
			t.Fatalf("%d events are read as %d, %v", count, len(got), err)
		}
		if err != nil {
			continue
		}
		if again, err := (journal.Batch{Session: "s", Seq: 5, Events: got}).Lines(); err != nil || string(again) != lines {
			t.Errorf("they are written as %q, %v", again, err)
		}
	}
	if _, err := journal.DecodeLines(nil, []byte(lines), 4, 3); err == nil {
		t.Error("the row was read under other numbers")
	}
}

func TestAnEventThatWouldSplitItsRecordIsRefused(t *testing.T) {
	for _, n := range []int{1, 3} {
		b := journaltest.Next("s", 1, 0, n)
		b.Events[n-1].Type = "a type\nof two lines"
		if lines, err := b.Lines(); err == nil && strings.Count(string(lines), "\n") != n-1 {
			t.Errorf("%d events make the lines %q", n, lines)
		} else if err != nil && messages.CodeOf(err) != messages.Bug {
			t.Error(err)
		}
	}
}

func FuzzDecodeChanges(f *testing.F) {
	f.Add(journal.AppendChanges(nil, someChanges))
	f.Add([]byte(`[{"r":{"c":"a","s":"open","d":-1,"q":9}}]`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, delta []byte) {
		changes, err := journal.DecodeChanges(delta)
		if err != nil {
			return
		}
		again, err := journal.DecodeChanges(journal.AppendChanges(nil, changes))
		if err != nil || !slices.Equal(again, changes) {
			t.Fatalf("%q is read as %+v, and that as %+v; %v", delta, changes, again, err)
		}
	})
}

func FuzzDecodeLines(f *testing.F) {
	for n := range 3 {
		lines, _ := journaltest.Next("s", 1, 5, n).Lines()
		f.Add(lines, int64(5), int64(n))
	}
	f.Add([]byte(`{"type":"text-chunks","seq0":5,"time0":9,"data":{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","b"]}}`), int64(5), int64(2))
	f.Add([]byte("\n\n"), int64(0), int64(3))
	f.Add([]byte("{}"), int64(0), int64(1)<<62)
	f.Fuzz(func(t *testing.T, lines []byte, seq, count int64) {
		events, err := journal.DecodeLines(nil, slices.Clone(lines), seq, count)
		if err != nil {
			return
		}
		if int64(len(events)) != max(count, 0) {
			t.Fatalf("%d events, want %d", len(events), count)
		}
		back, err := journal.Batch{Session: "s", Seq: seq, Events: events}.Lines()
		if err != nil || string(back) != string(lines) {
			t.Fatalf("%q is read and written back as %q, %v", lines, back, err)
		}
	})
}
