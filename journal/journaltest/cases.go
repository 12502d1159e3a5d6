package journaltest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func anAppendIsReadBack(t *testing.T, h Harness) {
	a := mustAppend(t, h.Journal, Birth("s", 3, Put("c1", 50)))
	b := mustAppend(t, h.Journal, Next("s", a.Epoch, 3, 2))
	if b.At <= a.At || b.Epoch != a.Epoch {
		t.Fatalf("appended %+v after %+v", b, a)
	}
	o := mustRead(t, h.Journal, "s")
	if o.Epoch != 1 || o.Header == nil || string(o.Header.Line()) != string(Header("s").Line()) {
		t.Fatalf("read epoch %d and header %v", o.Epoch, o.Header)
	}
	wantEvents(t, o.Events, append(Events(0, 3, "s"), Events(3, 2, "s")...))
}

// A log of the older generation packs events into rows (L-040): they are events
// to whoever reads a part of it, and the very rows to whoever reads it whole.
func aPackedRowIsOneRecord(t *testing.T, h Harness) {
	const row = `{"type":"text-chunks","seq0":1,"time0":9,"data":{"turn":1,"step":1,"index":0,"dt":[ 1,-2],"texts":["a","\u0062","c"]}}`
	events := Events(0, 1, "s")
	events, err := sessionlog.DecodeRecord(events, []byte(row), 3)
	if err != nil {
		t.Fatal(err)
	}
	events = append(events, Events(4, 1, "s")...)
	header := sessionlog.Header{Version: sessionlog.V0, ID: "s", CreatedAt: 1}
	mustAppend(t, h.Journal, journal.Batch{Session: "s", Header: &header, Events: events})
	read := mustRead(t, h.Journal, "s").Events
	wantEvents(t, read, events)
	var records []string
	for record := range sessionlog.Records(slices.Values(read)) {
		records = append(records, string(record))
	}
	if len(records) != 3 || records[1] != row {
		t.Fatalf("the row is read as %q", records)
	}
	for from := range int64(len(events)) {
		part, err := h.Journal.Read(t.Context(), "s", from, 2)
		if err != nil {
			t.Fatal(err)
		}
		wantEvents(t, part.Events, events[from:min(from+2, int64(len(events)))])
	}
}

func anUnbornSessionTakesNoEpoch(t *testing.T, h Harness) {
	for range 3 {
		if o := mustOpen(t, h.Journal, "s"); o.Epoch != 0 || o.Header != nil || o.Events != nil {
			t.Fatalf("an unborn session was opened as %+v", o)
		}
	}
	if last, err := h.Journal.Last(t.Context()); last != 0 || err != nil {
		t.Fatalf("opening moved the journal to %d, %v", last, err)
	}
	if a := mustAppend(t, h.Journal, Birth("s", 1)); a.Epoch != 1 {
		t.Fatalf("born with epoch %d", a.Epoch)
	}
}

func theFirstAppendCreates(t *testing.T, h Harness) {
	a := mustAppend(t, h.Journal, journal.Batch{Session: "s", Header: Header("s")})
	if a.Epoch != 1 || a.At == 0 {
		t.Fatalf("a header alone was appended as %+v", a)
	}
	o := mustOpen(t, h.Journal, "s")
	if o.Epoch != 2 || o.Header == nil || len(o.Events) != 0 {
		t.Fatalf("opened as %+v", o)
	}
	mustAppend(t, h.Journal, Next("s", 2, 0, 1))
	mustAppend(t, h.Journal, journal.Batch{Session: "s", Epoch: 2, Seq: 1, Index: []sessionlog.RowChange{Put("c", 0)}})
	wantEvents(t, mustRead(t, h.Journal, "s").Events, Events(0, 1, "s"))
}

func twoWritersOneWins(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1))
	first := Appending(h.Journal, Next("s", 1, 1, 1))
	second := Appending(h.Journal, Next("s", 1, 1, 2))
	a, b := <-first, <-second
	if a.Err != nil {
		t.Fatalf("the first append failed: %v", a.Err)
	}
	wantCode(t, b.Err, messages.Fenced)
	if n := len(mustRead(t, h.Journal, "s").Events); n != 2 {
		t.Fatalf("%d events after one of two writers won", n)
	}
}

func twoOwnersGiveBirth(t *testing.T, h Harness) {
	mustOpen(t, h.Journal, "s")
	mustOpen(t, h.Journal, "s")
	first, second := Appending(h.Journal, Birth("s", 1)), Appending(h.Journal, Birth("s", 2))
	if a := <-first; a.Err != nil || a.Value.Epoch != 1 {
		t.Fatalf("the first birth: %+v", a)
	}
	wantCode(t, (<-second).Err, messages.Fenced)
	wantEvents(t, mustRead(t, h.Journal, "s").Events, Events(0, 1, "s"))
}

func openingFences(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1))
	if o := mustOpen(t, h.Journal, "s"); o.Epoch != 2 || len(o.Events) != 1 {
		t.Fatalf("opened as epoch %d with %d events", o.Epoch, len(o.Events))
	}
	_, err := Append(h.Journal, Next("s", 1, 1, 1))
	wantCode(t, err, messages.Fenced)
	_, err = Append(h.Journal, journal.Batch{Session: "s", Epoch: 1, Seq: 1}) // nor can it prove what it does not have
	wantCode(t, err, messages.Fenced)
	mustAppend(t, h.Journal, Next("s", 2, 1, 1))
	if o := mustOpen(t, h.Journal, "s"); o.Epoch != 3 || len(o.Events) != 2 {
		t.Fatalf("opened as epoch %d with %d events", o.Epoch, len(o.Events))
	}
}

func wrongSequenceIsFenced(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 2))
	for _, seq := range []int64{0, 1, 3, 100} {
		_, err := Append(h.Journal, Next("s", 1, seq, 1))
		wantCode(t, err, messages.Fenced)
	}
	_, err := Append(h.Journal, Next("s", 2, 2, 1)) // an epoch nobody has taken
	wantCode(t, err, messages.Fenced)
	_, err = Append(h.Journal, Next("unborn", 1, 0, 1))
	wantCode(t, err, messages.Fenced)
	_, err = Append(h.Journal, Birth("s", 1))
	wantCode(t, err, messages.Fenced)
	mustAppend(t, h.Journal, Next("s", 1, 2, 1))
}

func anEmptyAppendProvesOwnership(t *testing.T, h Harness) {
	a := mustAppend(t, h.Journal, Birth("s", 2))
	mustAppend(t, h.Journal, Birth("other", 1))
	last, _ := h.Journal.Last(t.Context())
	proof := mustAppend(t, h.Journal, journal.Batch{Session: "s", Epoch: a.Epoch, Seq: 2})
	if proof.At != last || proof.Epoch != a.Epoch {
		t.Fatalf("an empty append returned %+v at position %d", proof, last)
	}
	if now, _ := h.Journal.Last(t.Context()); now != last {
		t.Fatalf("an empty append moved the journal from %d to %d", last, now)
	}
	if proof := mustAppend(t, h.Journal, journal.Batch{Session: "unborn"}); proof.Epoch != 0 || proof.At != last {
		t.Fatalf("an unborn session was proved to be %+v", proof)
	}
	_, err := Append(h.Journal, journal.Batch{Session: "s", Epoch: a.Epoch, Seq: 1})
	wantCode(t, err, messages.Fenced)
	_, err = Append(h.Journal, journal.Batch{Session: "s"})
	wantCode(t, err, messages.Fenced)
}

func aReadNeverFences(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1, Put("c", 9)))
	for seq := int64(1); seq < 200; seq++ { // the tables of a backend may be brought up in between
		if o := mustRead(t, h.Journal, "s"); o.Epoch != 1 {
			t.Fatalf("a read took epoch %d", o.Epoch)
		}
		list, err := h.Journal.Sessions(t.Context(), "", 0)
		if err != nil || len(list) != 1 || list[0].Epoch != 1 || list[0].Events != seq {
			t.Fatalf("sessions %+v, %v", list, err)
		}
		mustAppend(t, h.Journal, Next("s", 1, seq, 1))
	}
}

func eachAppendFailsAlone(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("fenced", 1))
	mustOpen(t, h.Journal, "fenced")
	var good, bad []<-chan Outcome[journal.Appended]
	for i := range 200 {
		good = append(good, Appending(h.Journal, Birth(fmt.Sprintf("s%03d", i), 1, Put("c", int64(i+1)))))
		bad = append(bad, Appending(h.Journal, Next("fenced", 1, 1, 1, Put("never", 1))))
	}
	var last journal.Position
	for i := range good {
		a := <-good[i]
		if a.Err != nil || a.Value.At <= last {
			t.Fatalf("append %d: %+v, after position %d", i, a, last)
		}
		last = a.Value.At
		wantCode(t, (<-bad[i]).Err, messages.Fenced)
	}
	rows, at, err := h.Journal.Active(t.Context(), journal.ActiveFilter{})
	if err != nil || len(rows) != 200 || at != last {
		t.Fatalf("%d rows at %d, %v", len(rows), at, err)
	}
}

func appendsFollowEachOther(t *testing.T, h Harness) {
	waits := []<-chan Outcome[journal.Appended]{Appending(h.Journal, Birth("s", 1))}
	for seq := int64(1); seq < 100; seq++ {
		waits = append(waits, Appending(h.Journal, Next("s", 1, seq, 1)))
	}
	for i, w := range waits {
		if a := <-w; a.Err != nil {
			t.Fatalf("append %d: %v", i, a.Err)
		}
	}
	wantEvents(t, mustRead(t, h.Journal, "s").Events, func() (all []sessionlog.Event) {
		for seq := range int64(100) {
			all = append(all, Events(seq, 1, "s")...)
		}
		return all
	}())
}

func aBrokenBatchLeavesNothing(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1))
	for name, b := range map[string]journal.Batch{
		"no session":         {Epoch: 1, Seq: 1, Events: Events(1, 1, "s")},
		"no header":          {Session: "new", Events: Events(0, 1, "s")},
		"foreign header":     {Session: "new", Header: Header("old"), Events: Events(0, 1, "s")},
		"late header":        {Session: "s", Epoch: 1, Seq: 1, Header: Header("s"), Events: Events(1, 1, "s")},
		"wrong numbers":      {Session: "s", Epoch: 1, Seq: 1, Events: Events(2, 1, "s")},
		"a row of no call":   {Session: "s", Epoch: 1, Seq: 1, Index: []sessionlog.RowChange{Put("", 1)}},
		"a row due too soon": {Session: "s", Epoch: 1, Seq: 1, Index: []sessionlog.RowChange{Put("c", -1)}},
		"delete and add":     {Session: "s", Epoch: 1, Seq: 1, Events: Events(1, 1, "s"), Delete: true},
		"a negative epoch":   {Session: "s", Epoch: -1, Seq: 1, Events: Events(1, 1, "s")},
	} {
		if _, err := Append(h.Journal, b); messages.CodeOf(err) != messages.Bug {
			t.Errorf("%s: %v", name, err)
		}
	}
	if last, _ := h.Journal.Last(t.Context()); last != 1 {
		t.Fatalf("broken batches moved the journal to %d", last)
	}
	mustAppend(t, h.Journal, Next("s", 1, 1, 1))
}

func readingFromAndLimit(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 3))
	mustAppend(t, h.Journal, Birth("between", 1))
	all := Events(0, 3, "s")
	for _, n := range []int{1, 4, 2, 5} {
		all = append(all, Events(int64(len(all)), n, "s")...)
		mustAppend(t, h.Journal, journal.Batch{Session: "s", Epoch: 1, Seq: int64(len(all) - n), Events: all[len(all)-n:]})
	}
	for from := range len(all) + 3 {
		for limit := range len(all) + 3 {
			o, err := h.Journal.Read(t.Context(), "s", int64(from), limit)
			if err != nil || o.Header == nil {
				t.Fatalf("read from %d: %v, header %v", from, err, o.Header)
			}
			want := all[min(from, len(all)):]
			if limit > 0 && limit < len(want) {
				want = want[:limit]
			}
			wantEvents(t, o.Events, want)
		}
	}
}

func anUnknownSessionIsNotFound(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1))
	_, err := h.Journal.Read(t.Context(), "unknown", 0, 0)
	wantCode(t, err, messages.NotFound)
	if rows, _, err := h.Journal.Active(t.Context(), journal.ActiveFilter{Session: "unknown"}); len(rows) != 0 || err != nil {
		t.Fatalf("rows %v, %v", rows, err)
	}
}

func sessionsAreListed(t *testing.T, h Harness) {
	ids := []string{"b", "a", "ab", "Z", "é", "a b", "x/y?z#%", "日本"}
	for i, id := range ids {
		mustAppend(t, h.Journal, Birth(id, i+1))
	}
	mustOpen(t, h.Journal, "ab")
	slices.Sort(ids)
	for limit := range len(ids) + 2 {
		var got []string
		for after := ""; ; {
			page, err := h.Journal.Sessions(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if limit > 0 && len(page) > limit {
				t.Fatalf("a page of %d, limit %d", len(page), limit)
			}
			for _, s := range page {
				got, after = append(got, s.Session), s.Session
				if s.Header.ID != s.Session || s.Events == 0 || s.Epoch != 1 && s.Session != "ab" || s.Session == "ab" && (s.Epoch != 2 || s.Events != 3) {
					t.Fatalf("listed %+v", s)
				}
			}
			if len(page) == 0 || limit == 0 {
				break
			}
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("limit %d listed %q, want %q", limit, got, ids)
		}
	}
}

func activeRows(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1, Put("c1", 10), Put("c2", 20)))
	replaced := sessionlog.RowChange{Row: sessionlog.Row{CallID: "c1", State: sessionlog.RowReplied, Seq: 7}}
	a := mustAppend(t, h.Journal, Next("s", 1, 1, 1, replaced))
	mustAppend(t, h.Journal, Next("s", 1, 2, 1, Remove("c2"), Remove("unknown"), Put("c3", 1), Remove("c3"), Remove("c4"), Put("c4", 4)))
	rows, at, err := h.Journal.Active(t.Context(), journal.ActiveFilter{})
	if err != nil || at != 3 || len(rows) != 2 {
		t.Fatalf("rows %+v at %d, %v", rows, at, err)
	}
	if rows[0] != (journal.ActiveRow{Session: "s", Row: replaced.Row, At: a.At}) || rows[1].Row != Put("c4", 4).Row || rows[1].At != at {
		t.Fatalf("rows %+v", rows)
	}
}

func activePages(t *testing.T, h Harness) {
	var want []string
	for _, s := range []string{"b", "a", "c"} {
		mustAppend(t, h.Journal, Birth(s, 1, Put("z", 0), Put("y", 5), Put("x", 9)))
	}
	for _, s := range []string{"a", "b", "c"} {
		want = append(want, s+"x", s+"y", s+"z")
	}
	for _, only := range []string{"", "b"} {
		for limit := 1; limit < 11; limit++ {
			var got []string
			f := journal.ActiveFilter{Session: only, Limit: limit}
			for {
				page, _, err := h.Journal.Active(t.Context(), f)
				if err != nil || len(page) > limit {
					t.Fatalf("a page of %d: %v", len(page), err)
				}
				for _, r := range page {
					got = append(got, r.Session+r.Row.CallID)
					f.AfterSession, f.AfterCall = r.Session, r.Row.CallID
				}
				if len(page) == 0 {
					break
				}
			}
			mine := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return !strings.HasPrefix(s, only) })
			if !slices.Equal(got, mine) {
				t.Fatalf("limit %d of %q gave %q", limit, only, got)
			}
		}
	}
}

func changesHaveNoGap(t *testing.T, h Harness) {
	var want []journal.Change
	epoch := int64(0)
	for i := range 40 {
		b := Next("s", epoch, int64(i), 1)
		if i == 0 {
			b = Birth("s", 1)
		}
		if i%3 != 0 { // some batches change nothing
			b.Index = []sessionlog.RowChange{Put(fmt.Sprint("c", i), int64(i)), Remove(fmt.Sprint("c", i-1))}
		}
		a := mustAppend(t, h.Journal, b)
		epoch = a.Epoch
		for _, c := range b.Index {
			want = append(want, journal.Change{At: a.At, Session: "s", RowChange: c})
		}
	}
	last, _ := h.Journal.Last(t.Context())
	for after := journal.Position(0); after <= last; after++ {
		rest := slices.DeleteFunc(slices.Clone(want), func(c journal.Change) bool { return c.At <= after })
		for _, limit := range []int{0, 1, 2, 7, 1000} {
			got, next, err := AllChanges(t.Context(), h.Journal, after, limit)
			if err != nil || next != last || !slices.Equal(got, rest) {
				t.Fatalf("after %d by %d: %d changes to %d, want %d to %d; %v", after, limit, len(got), next, len(rest), last, err)
			}
		}
	}
}

func aheadIsRefused(t *testing.T, h Harness) {
	a := mustAppend(t, h.Journal, Birth("s", 1))
	_, _, err := h.Journal.Changes(t.Context(), a.At+1, 0)
	wantCode(t, err, messages.BadRequest)
}

func dueLists(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("b", 1, Put("c1", 30), Put("c2", 10), Put("never", 0)))
	mustAppend(t, h.Journal, Birth("a", 1, Put("c1", 20), Put("c2", 40)))
	mustAppend(t, h.Journal, Birth("c", 1, Put("c1", 20)))
	mustAppend(t, h.Journal, Birth("d", 1, Put("c1", 5)))
	mustAppend(t, h.Journal, Next("d", 1, 1, 1, Remove("c1")))
	for _, c := range []struct {
		before int64
		limit  int
		want   string
		next   int64
	}{
		{0, 0, "", 10}, {9, 0, "", 10}, {10, 0, "b", 20}, {20, 0, "b a c", 30}, {20, 2, "b a", 30},
		{35, 0, "b a c", 40}, {35, 1, "b", 40}, {40, 0, "b a c", 0}, {1 << 60, 0, "b a c", 0},
	} {
		got, next, err := h.Journal.Due(t.Context(), c.before, c.limit)
		if err != nil || strings.Join(got, " ") != c.want || next != c.next {
			t.Errorf("due before %d, at most %d: %q and then %d (%v), want %q and %d", c.before, c.limit, got, next, err, c.want, c.next)
		}
	}
}

func movedTells(t *testing.T, h Harness) {
	first := h.Journal.Moved(0)
	if isClosed(first) {
		t.Fatal("an empty journal has moved")
	}
	a := mustAppend(t, h.Journal, Birth("s", 1))
	<-first
	later, much := h.Journal.Moved(a.At), h.Journal.Moved(a.At+1)
	mustOpen(t, h.Journal, "s")
	mustAppend(t, h.Journal, journal.Batch{Session: "s", Epoch: 2, Seq: 1})
	if isClosed(later) || !isClosed(h.Journal.Moved(0)) {
		t.Fatal("moved by what recorded nothing, or not by what did")
	}
	mustAppend(t, h.Journal, Next("s", 2, 1, 1))
	<-later
	if isClosed(much) {
		t.Fatal("moved two positions by one append")
	}
	mustAppend(t, h.Journal, Next("s", 2, 2, 1))
	<-much
	wait := h.Journal.Moved(1 << 40)
	if err := h.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	<-wait
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func deleteErases(t *testing.T, h Harness) {
	j := h.Journal
	mustAppend(t, j, Birth("s", 2, Put("c1", 10)))
	kept := mustAppend(t, j, Birth("other", 1, Put("c1", 10)))
	mustAppend(t, j, Next("s", 1, 2, 1, Put("c2", 20), Put("c3", 30), Remove("c3")))
	if o := mustOpen(t, j, "s"); o.Epoch != 2 {
		t.Fatalf("epoch %d", o.Epoch)
	}
	gone := mustAppend(t, j, journal.Batch{Session: "s", Epoch: 2, Seq: 3, Delete: true})
	checkErased(t, j, kept, gone)
	if h.Reopen != nil {
		j = h.Reopen(t)
		checkErased(t, j, kept, gone)
	}
	if o := mustOpen(t, j, "s"); o.Epoch != 0 || o.Header != nil {
		t.Fatalf("a deleted session was opened as %+v", o)
	}
	_, err := Append(j, Next("s", 2, 3, 1)) // the owner of the first life
	wantCode(t, err, messages.Fenced)
	if a := mustAppend(t, j, Birth("s", 1, Put("c9", 90))); a.Epoch != 3 {
		t.Fatalf("the second life has epoch %d, want the next one", a.Epoch)
	}
	_, err = Append(j, Next("s", 2, 1, 1))
	wantCode(t, err, messages.Fenced)
	wantEvents(t, mustRead(t, j, "s").Events, Events(0, 1, "s"))
	mustAppend(t, j, journal.Batch{Session: "s", Epoch: 3, Seq: 1, Delete: true})
	if _, err = j.Read(t.Context(), "s", 0, 0); messages.CodeOf(err) != messages.NotFound {
		t.Fatal(err)
	}
}

func checkErased(t *testing.T, j journal.Journal, kept, gone journal.Appended) {
	t.Helper()
	_, err := j.Read(t.Context(), "s", 0, 0)
	wantCode(t, err, messages.NotFound)
	list, err := j.Sessions(t.Context(), "", 0)
	if err != nil || len(list) != 1 || list[0].Session != "other" {
		t.Fatalf("sessions %+v, %v", list, err)
	}
	rows, at, err := j.Active(t.Context(), journal.ActiveFilter{})
	if err != nil || at != gone.At || len(rows) != 1 || rows[0].Session != "other" {
		t.Fatalf("rows %+v at %d, %v", rows, at, err)
	}
	if due, next, err := j.Due(t.Context(), 100, 0); err != nil || !slices.Equal(due, []string{"other"}) || next != 0 {
		t.Fatalf("due %q, then %d, %v", due, next, err)
	}
	changes, _, err := j.Changes(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprint(c.At, c.Session, c.Row.CallID, c.Remove))
	}
	want := []string{fmt.Sprint(kept.At, "other", "c1", false), fmt.Sprint(gone.At, "s", "c1", true), fmt.Sprint(gone.At, "s", "c2", true), fmt.Sprint(gone.At, "s", "c3", true)}
	if !slices.Equal(got, want) {
		t.Fatalf("changes %q, want %q", got, want)
	}
}

func deletingNeedsTheEpoch(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1, Put("c", 1)))
	mustOpen(t, h.Journal, "s")
	_, err := Append(h.Journal, journal.Batch{Session: "s", Epoch: 1, Seq: 1, Delete: true})
	wantCode(t, err, messages.Fenced)
	wantEvents(t, mustRead(t, h.Journal, "s").Events, Events(0, 1, "s"))
	// In one group with its neighbours: what comes after it meets no session.
	before := Appending(h.Journal, Next("s", 2, 1, 1, Put("c2", 2)))
	gone := Appending(h.Journal, journal.Batch{Session: "s", Epoch: 2, Seq: 2, Delete: true})
	after := Appending(h.Journal, Next("s", 2, 2, 1))
	again := Appending(h.Journal, Birth("s", 1))
	for _, w := range []<-chan Outcome[journal.Appended]{before, gone, again} {
		if a := <-w; a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	wantCode(t, (<-after).Err, messages.Fenced)
	if rows, _, err := h.Journal.Active(t.Context(), journal.ActiveFilter{}); len(rows) != 0 || err != nil {
		t.Fatalf("rows %+v, %v", rows, err)
	}
}

func closeFinishes(t *testing.T, h Harness) {
	var waits []<-chan Outcome[journal.Appended]
	for i := range 300 {
		waits = append(waits, Appending(h.Journal, Birth(fmt.Sprint("s", i), 2, Put("c", 1))))
	}
	opened := make(chan error, 2)
	h.Journal.Open("s0", func(_ journal.Opened, err error) { opened <- err })
	if err := h.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	for i, w := range waits {
		select {
		case a := <-w:
			if a.Err != nil {
				t.Fatalf("append %d: %v", i, a.Err)
			}
		default:
			t.Fatalf("append %d has no outcome after Close", i)
		}
	}
	select {
	case err := <-opened:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatal("an open has no outcome after Close")
	}
	if h.Reopen != nil {
		if list, err := h.Reopen(t).Sessions(t.Context(), "", 0); err != nil || len(list) != 300 {
			t.Fatalf("%d sessions after Close, %v", len(list), err)
		}
	}
}

func aClosedJournalIsUnavailable(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1))
	for range 2 {
		if err := h.Journal.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	_, err := Append(h.Journal, Next("s", 1, 1, 1))
	wantCode(t, err, messages.Unavailable)
	_, err = Open(h.Journal, "s")
	wantCode(t, err, messages.Unavailable)
	_, err = h.Journal.Read(ctx, "s", 0, 0)
	wantCode(t, err, messages.Unavailable)
	_, err = h.Journal.Sessions(ctx, "", 0)
	wantCode(t, err, messages.Unavailable)
	_, _, err = h.Journal.Active(ctx, journal.ActiveFilter{})
	wantCode(t, err, messages.Unavailable)
	_, _, err = h.Journal.Changes(ctx, 0, 0)
	wantCode(t, err, messages.Unavailable)
	_, _, err = h.Journal.Due(ctx, 0, 0)
	wantCode(t, err, messages.Unavailable)
	_, err = h.Journal.Last(ctx)
	wantCode(t, err, messages.Unavailable)
	if !isClosed(h.Journal.Moved(1 << 40)) {
		t.Fatal("somebody would wait for a closed journal")
	}
}

func everythingIsThereAfterReopening(t *testing.T, h Harness) {
	if h.Reopen == nil {
		t.Skip("it keeps nothing")
	}
	mustAppend(t, h.Journal, Birth("s", 3, Put("c1", 10), Put("c2", 20)))
	mustAppend(t, h.Journal, Birth("t", 1))
	last := mustAppend(t, h.Journal, Next("s", 1, 3, 2, Remove("c1")))
	before, _, _ := h.Journal.Changes(t.Context(), 0, 0)
	j := h.Reopen(t)
	if at, err := j.Last(t.Context()); at != last.At || err != nil {
		t.Fatalf("position %d after reopening, want %d; %v", at, last.At, err)
	}
	o := mustRead(t, j, "s")
	wantEvents(t, o.Events, append(Events(0, 3, "s"), Events(3, 2, "s")...))
	rows, _, err := j.Active(t.Context(), journal.ActiveFilter{})
	if err != nil || len(rows) != 1 || rows[0].Row.CallID != "c2" {
		t.Fatalf("rows %+v, %v", rows, err)
	}
	if after, _, err := j.Changes(t.Context(), 0, 0); err != nil || !slices.Equal(after, before) {
		t.Fatalf("changes %+v, want %+v; %v", after, before, err)
	}
	if next := mustAppend(t, j, Next("s", 1, 5, 1)); next.At <= last.At {
		t.Fatalf("position %d was given again", next.At)
	}
}

func epochsSurviveReopening(t *testing.T, h Harness) {
	if h.Reopen == nil {
		t.Skip("it keeps nothing")
	}
	j := h.Journal
	mustAppend(t, j, Birth("s", 1))
	for want := int64(2); want < 6; want++ {
		if o := mustOpen(t, j, "s"); o.Epoch != want {
			t.Fatalf("epoch %d, want %d", o.Epoch, want)
		}
		if want%2 == 0 {
			j = h.Reopen(t)
		}
	}
}

func backupReplacesNothing(t *testing.T, h Harness) {
	if h.Restore == nil {
		err := h.Journal.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"))
		wantCode(t, err, messages.BadRequest)
		return
	}
	path := filepath.Join(t.TempDir(), "copy")
	for i := range 2 {
		err := h.Journal.Backup(t.Context(), path)
		if i == 0 && err != nil {
			t.Fatal(err)
		} else if i == 1 {
			wantCode(t, err, messages.BadRequest)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := filepath.Join(t.TempDir(), "broken")
	for range 2 { // twice: what a broken backup leaves must not stand in the way of the next
		if err := h.Journal.Backup(ctx, broken); !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled backup: %v", err)
		}
	}
	if err := h.Journal.Backup(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
}

func aDoneContextEndsARead(t *testing.T, h Harness) {
	mustAppend(t, h.Journal, Birth("s", 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Journal.Read(ctx, "s", 0, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("read: %v", err)
	}
	if _, _, err := h.Journal.Due(ctx, 0, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("due: %v", err)
	}
	mustRead(t, h.Journal, "s")
}
