package journaltest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// manySessionsAtOnce lets owners write, rivals fence them, and readers read,
// all at once, and then holds the journal to what it acknowledged.
func manySessionsAtOnce(t *testing.T, h Harness) {
	const sessions, rounds = 24, 30
	j := h.Journal
	var acknowledged [sessions]int64
	stop := make(chan struct{})
	var owners, readers sync.WaitGroup
	for i := range sessions {
		owners.Add(1)
		go func() {
			defer owners.Done()
			acknowledged[i] = ownSession(t, j, fmt.Sprintf("s%02d", i), rounds, i%4 == 0)
		}()
	}
	for range 3 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for !isClosed(stop) {
				readEverything(t, j)
			}
		}()
	}
	readers.Add(1)
	view := map[[2]string]sessionlog.Row{}
	go func() {
		defer readers.Done()
		followChanges(t, j, view, stop)
	}()
	owners.Wait()
	close(stop)
	readers.Wait()
	for i, n := range acknowledged {
		if o := mustRead(t, j, fmt.Sprintf("s%02d", i)); int64(len(o.Events)) != n {
			t.Errorf("session %d has %d events, acknowledged were %d", i, len(o.Events), n)
		}
	}
	wantView(t, j, view)
}

// ownSession appends to a session round by round, asking and settling, and
// returns how many events were acknowledged. A rival takes the epoch in some
// rounds; the fenced owner takes it back.
func ownSession(t *testing.T, j journal.Journal, session string, rounds int, rival bool) int64 {
	a, err := Append(j, Birth(session, 1))
	if err != nil {
		t.Errorf("birth of %s: %v", session, err)
		return 0
	}
	epoch, seq := a.Epoch, int64(1)
	for round := range rounds {
		if rival && round%8 == 3 {
			if _, err := Open(j, session); err != nil {
				t.Errorf("rival of %s: %v", session, err)
			}
		}
		b := Next(session, epoch, seq, 1+round%3, Put(fmt.Sprint("c", round%5), int64(1+round)))
		if round%2 == 1 {
			b.Index = []sessionlog.RowChange{Remove(fmt.Sprint("c", (round-1)%5))}
		}
		switch _, err := Append(j, b); {
		case err == nil:
			seq += int64(len(b.Events))
		case messages.CodeOf(err) == messages.Fenced && rival:
			o, err := Open(j, session)
			if err != nil || int64(len(o.Events)) != seq || o.Epoch <= epoch {
				t.Errorf("%s was opened again with epoch %d and %d events after %d and %d: %v", session, o.Epoch, len(o.Events), epoch, seq, err)
			}
			epoch = o.Epoch
		default:
			t.Errorf("append to %s: %v", session, err)
			return seq
		}
	}
	return seq
}

// readEverything looks at each view once and checks what must hold at any time.
func readEverything(t *testing.T, j journal.Journal) {
	ctx := t.Context()
	list, err := j.Sessions(ctx, "", 0)
	if err != nil {
		t.Errorf("sessions: %v", err)
	}
	for _, s := range list {
		o, err := j.Read(ctx, s.Session, 0, 0)
		if err != nil || o.Epoch < s.Epoch {
			t.Errorf("read %s: epoch %d after %d, %v", s.Session, o.Epoch, s.Epoch, err)
		}
		for i, ev := range o.Events {
			if ev.Seq != int64(i) {
				t.Errorf("event %d of %s has number %d", i, s.Session, ev.Seq)
			}
		}
	}
	last, _ := j.Last(ctx)
	rows, at, err := j.Active(ctx, journal.ActiveFilter{})
	if err != nil || at < last {
		t.Errorf("active at %d after %d: %v", at, last, err)
	}
	for _, r := range rows {
		if r.At > at {
			t.Errorf("a row of position %d in a list of position %d", r.At, at)
		}
	}
	if _, _, err := j.Due(ctx, 20, 5); err != nil {
		t.Errorf("due: %v", err)
	}
}

// followChanges keeps a view as package query does: from a list on, by changes.
func followChanges(t *testing.T, j journal.Journal, view map[[2]string]sessionlog.Row, stop <-chan struct{}) {
	rows, after, err := j.Active(t.Context(), journal.ActiveFilter{})
	if err != nil {
		t.Errorf("active: %v", err)
		return
	}
	for _, r := range rows {
		view[[2]string{r.Session, r.Row.CallID}] = r.Row
	}
	for {
		ended := isClosed(stop) // before the last look, so that it sees everything
		for {
			changes, next, err := j.Changes(t.Context(), after, 3)
			if err != nil {
				t.Errorf("changes after %d: %v", after, err)
				return
			}
			for _, c := range changes {
				if c.At <= after || c.At > next {
					t.Errorf("a change at %d between %d and %d", c.At, after, next)
				}
			}
			Fold(view, changes)
			if next == after {
				break
			}
			after = next
		}
		if ended {
			return
		}
		select {
		case <-j.Moved(after):
		case <-stop:
		}
	}
}

// wantView checks that folded changes are the listed rows.
func wantView(t *testing.T, j journal.Reader, view map[[2]string]sessionlog.Row) {
	t.Helper()
	rows, _, err := j.Active(t.Context(), journal.ActiveFilter{})
	if err != nil || len(rows) != len(view) {
		t.Fatalf("%d rows, and %d by folding the changes; %v", len(rows), len(view), err)
	}
	for _, r := range rows {
		if got, ok := view[[2]string{r.Session, r.Row.CallID}]; !ok || got != r.Row {
			t.Fatalf("row %+v, by folding the changes %+v", r, got)
		}
	}
}

// dice are seeded numbers, so that a failure can be had again.
type dice uint64

func (d *dice) n(n int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

// plain is the model: what a journal must remember, without any cleverness.
type plain struct {
	epoch  int64
	born   bool
	events []sessionlog.Event
	rows   map[string]sessionlog.Row
}

// randomHistories plays seeded commands against the journal and the model.
func randomHistories(t *testing.T, h Harness) {
	d := dice(4711)
	j, model := h.Journal, map[string]*plain{}
	changed := map[[2]string]sessionlog.Row{}
	var after journal.Position
	for step := range 400 {
		session := fmt.Sprint("s", d.n(7))
		m := model[session]
		if m == nil {
			m = &plain{}
			model[session] = m
		}
		switch d.n(12) {
		case 0, 1:
			randomOpen(t, j, session, m)
		case 2:
			if h.Reopen != nil && d.n(4) == 0 {
				j = h.Reopen(t)
			}
		case 3:
			if m.born && d.n(3) == 0 {
				mustAppend(t, j, journal.Batch{Session: session, Epoch: m.epoch, Seq: int64(len(m.events)), Delete: true})
				*m = plain{epoch: m.epoch}
			}
		case 4:
			stale := Next(session, m.epoch+1, int64(len(m.events)), 1, Put("stale", 1))
			_, err := Append(j, stale)
			wantCode(t, err, messages.Fenced)
		default:
			randomAppend(t, j, &d, session, m)
		}
		if step%25 == 0 {
			checkModel(t, j, model, &d)
			changes, next, err := AllChanges(t.Context(), j, after, 1+d.n(5))
			if err != nil {
				t.Fatal(err)
			}
			Fold(changed, changes)
			after = next
			wantView(t, j, changed)
		}
	}
}

func randomOpen(t *testing.T, j journal.Journal, session string, m *plain) {
	o := mustOpen(t, j, session)
	if !m.born {
		if o.Epoch != 0 || o.Header != nil {
			t.Fatalf("%s does not exist and was opened as %+v", session, o)
		}
		return
	}
	if m.epoch++; o.Epoch != m.epoch {
		t.Fatalf("%s was opened with epoch %d, want %d", session, o.Epoch, m.epoch)
	}
	wantEvents(t, o.Events, m.events)
}

func randomAppend(t *testing.T, j journal.Journal, d *dice, session string, m *plain) {
	b := Next(session, m.epoch, int64(len(m.events)), d.n(4))
	if !m.born {
		b = Birth(session, d.n(4))
	}
	for range d.n(4) {
		call := fmt.Sprint("c", d.n(4))
		if d.n(2) == 0 {
			b.Index = append(b.Index, Remove(call))
		} else {
			b.Index = append(b.Index, Put(call, int64(d.n(50))))
		}
	}
	a := mustAppend(t, j, b)
	if !m.born {
		m.born, m.epoch, m.rows = true, m.epoch+1, map[string]sessionlog.Row{}
	}
	if a.Epoch != m.epoch {
		t.Fatalf("%s is at epoch %d, want %d", session, a.Epoch, m.epoch)
	}
	m.events = append(m.events, b.Events...)
	for _, c := range b.Index {
		if c.Remove {
			delete(m.rows, c.Row.CallID)
		} else {
			m.rows[c.Row.CallID] = c.Row
		}
	}
}

func checkModel(t *testing.T, j journal.Journal, model map[string]*plain, d *dice) {
	t.Helper()
	ctx := t.Context()
	before, limit := int64(d.n(50)), d.n(4)
	first, next := map[string]int64{}, int64(0)
	for session, m := range model {
		o, err := j.Read(ctx, session, 0, 0)
		if !m.born {
			wantCode(t, err, messages.NotFound)
			continue
		}
		if err != nil || o.Epoch != m.epoch {
			t.Fatalf("%s is read with epoch %d, want %d; %v", session, o.Epoch, m.epoch, err)
		}
		wantEvents(t, o.Events, m.events)
		rows, _, err := j.Active(ctx, journal.ActiveFilter{Session: session})
		if err != nil || len(rows) != len(m.rows) {
			t.Fatalf("%s has rows %+v, want %+v; %v", session, rows, m.rows, err)
		}
		for _, r := range m.rows {
			switch {
			case r.Due == 0:
			case r.Due > before && (next == 0 || r.Due < next):
				next = r.Due
			case r.Due <= before && (first[session] == 0 || r.Due < first[session]):
				first[session] = r.Due
			}
		}
	}
	due := slices.SortedFunc(maps.Keys(first), func(a, b string) int {
		return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a, b))
	})
	if limit > 0 && len(due) > limit {
		due = due[:limit]
	}
	got, then, err := j.Due(ctx, before, limit)
	if err != nil || !slices.Equal(got, due) || then != next {
		t.Fatalf("due before %d, at most %d: %q, then %d (%v); want %q, then %d", before, limit, got, then, err, due, next)
	}
}

// backupIsConsistent copies a journal while it is written to: the copy is the
// journal of one moment, with everything acknowledged before it was asked for.
func backupIsConsistent(t *testing.T, h Harness) {
	if h.Restore == nil {
		t.Skip("there are no backups")
	}
	const sessions, rounds = 8, 60
	var owners sync.WaitGroup
	var acknowledged [sessions]atomic.Int64
	for i := range sessions {
		owners.Add(1)
		go func() {
			defer owners.Done()
			session := fmt.Sprint("s", i)
			for seq := range int64(rounds) {
				b := Next(session, 1, seq, 1, Put("c", seq+1))
				if seq == 0 {
					b = Birth(session, 1, Put("c", 1))
				}
				if _, err := Append(h.Journal, b); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				acknowledged[i].Store(seq + 1)
			}
		}()
	}
	for n := range 3 {
		var before [sessions]int64
		for i := range before {
			before[i] = acknowledged[i].Load()
		}
		path := filepath.Join(t.TempDir(), fmt.Sprint("copy", n))
		if err := h.Journal.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		copied := h.Restore(t, path)
		view := map[[2]string]sessionlog.Row{}
		changes, _, err := AllChanges(t.Context(), copied, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		Fold(view, changes)
		wantView(t, copied, view)
		for i, least := range before {
			if least == 0 {
				continue
			}
			o := mustRead(t, copied, fmt.Sprint("s", i))
			if got := int64(len(o.Events)); got < least || view[[2]string{fmt.Sprint("s", i), "c"}].Due != got {
				t.Fatalf("the copy has %d events of session %d, acknowledged were %d, and the row %+v", got, i, least, view)
			}
		}
	}
	owners.Wait()
}
