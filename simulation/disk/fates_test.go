package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

var errFull = messages.Refuse(messages.JournalFull, "the simulated disk is full")

var fateSessions = []string{"a", "b", "c"}

// world drives a disk with several hosts by dice, on one goroutine. Two judges
// watch it: a journal in memory, which is given each operation as it is
// performed, and a ledger of what hosts were told, which knows no journal.
type world struct {
	t       *rapid.T
	disk    *disk.Disk
	model   *memory.Journal
	run     []func() // callbacks of the model
	hosts   []*host
	deletes bool // the ledger cannot follow deletions
	texts   int

	told, never []text
}

// text is what one event of a session says, once in all the world.
type text struct{ session, text string }

// host is one connection, and its owner.
type host struct {
	*disk.Handle
	world *world
	ready []*disk.Op
	tells []func()
	next  map[string]journal.Batch // the epoch and number it would name next
	want  map[string][]outcome     // what it will be told, in order
}

type outcome struct {
	opened   journal.Opened
	appended journal.Appended
	err      error
}

func (h *host) Submit(op *disk.Op) { h.ready = append(h.ready, op) }

func newWorld(t *rapid.T, d *disk.Disk) *world {
	w := &world{t: t, disk: d, deletes: rapid.Bool().Draw(t, "deletes")}
	w.model = memory.New(func(callback func()) { w.run = append(w.run, callback) })
	for i := range 3 {
		w.hosts = append(w.hosts, w.host(i))
	}
	return w
}

func (w *world) host(i int) *host {
	h := &host{world: w, next: map[string]journal.Batch{}, want: map[string][]outcome{}}
	h.Handle = w.disk.Handle(fmt.Sprint("h", i), h)
	return h
}

func (w *world) draw(n int, label string) int { return rapid.IntRange(0, n-1).Draw(w.t, label) }

func (w *world) step() {
	i := w.draw(len(w.hosts), "host")
	h := w.hosts[i]
	session := rapid.SampledFrom(fateSessions).Draw(w.t, "session")
	switch n := w.draw(20, "step"); {
	case n < 6:
		h.append(session)
	case n < 8:
		h.open(session)
	case n == 8 && len(h.tells) > 0:
		k := w.draw(len(h.tells), "tell")
		h.tells[k]()
		h.tells = slices.Delete(h.tells, k, k+1)
	case n == 9 && w.draw(3, "crash") == 0:
		h.crash()
		w.hosts[i] = w.host(i)
	case len(h.ready) > 0:
		k := w.draw(len(h.ready), "op")
		op := h.ready[k]
		h.ready = slices.Delete(h.ready, k, k+1)
		h.decide(op)
	}
}

// append hands in what the host believes to be next, mostly.
func (h *host) append(session string) {
	b, texts := h.batch(session)
	h.next[session] = journal.Batch{Epoch: max(b.Epoch, 1), Seq: b.Seq + int64(len(b.Events))} // more may follow at once
	h.Append(b, func(a journal.Appended, err error) {
		w, want := h.world, h.expected(session)
		require.Equal(w.t, want.err, err)
		require.Equal(w.t, want.appended, a)
		switch messages.CodeOf(err) {
		case "":
			w.told = append(w.told, texts...)
		case messages.Fenced, messages.Bug, messages.JournalFull:
			w.never = append(w.never, texts...)
		default: // in doubt
		}
		if err != nil || b.Delete {
			delete(h.next, session)
		}
	})
}

func (h *host) batch(session string) (journal.Batch, []text) {
	w := h.world
	b := h.next[session]
	b.Session = session
	switch {
	case w.draw(8, "stray") == 0:
		b.Seq += int64(1 - w.draw(2, "behind")*2)
	case w.deletes && b.Epoch > 0 && w.draw(6, "delete") == 0:
		b.Delete = true
		return b, nil
	}
	var texts []text
	for i := range w.draw(3, "events") {
		w.texts++
		tx := text{session, fmt.Sprintf("text %d.", w.texts)}
		texts = append(texts, tx)
		b.Events = append(b.Events, journaltest.Events(b.Seq+int64(i), 1, tx.text)...)
	}
	for range w.draw(3, "rows") {
		call := fmt.Sprint("c", w.draw(3, "call"))
		if w.draw(2, "remove") == 0 {
			b.Index = append(b.Index, journaltest.Remove(call))
		} else {
			b.Index = append(b.Index, journaltest.Put(call, int64(w.draw(20, "due"))))
		}
	}
	if b.Epoch == 0 && !b.Empty() || w.draw(15, "header") == 0 {
		b.Header = journaltest.Header(session)
	}
	return b, texts
}

func (h *host) open(session string) {
	h.Open(session, func(o journal.Opened, err error) {
		w, want := h.world, h.expected(session)
		require.Equal(w.t, want.err, err)
		require.Equal(w.t, want.opened.Epoch, o.Epoch)
		require.Equal(w.t, want.opened.Header == nil, o.Header == nil)
		require.Equal(w.t, lines(want.opened.Events), lines(o.Events))
		h.next[session] = journal.Batch{Epoch: o.Epoch, Seq: int64(len(o.Events))}
	})
}

// expected takes the next outcome that the host has to be told of a session:
// one that is told too early, twice or in another order finds none, or another.
func (h *host) expected(session string) outcome {
	require.NotEmpty(h.world.t, h.want[session], "told before it was decided")
	want := h.want[session][0]
	h.want[session] = h.want[session][1:]
	return want
}

func (h *host) decide(op *disk.Op) {
	w := h.world
	var want outcome
	fate := w.draw(8, "fate")
	if fate > 0 {
		want = w.perform(op)
	}
	recorded := fate > 0 && want.err == nil && (want.opened.Epoch > 0 || op.Kind == disk.KindAppend && !op.Batch.Empty())
	switch fate {
	case 0:
		want = outcome{err: errFull}
	case 1:
		want = outcome{err: errIO}
	}
	h.want[op.Session] = append(h.want[op.Session], want)
	switch fate {
	case 0:
		op.Refuse(errFull)
	case 1:
		op.InDoubt(errIO)
	case 2, 3:
		h.tells = append(h.tells, op.CommitSilently())
	default:
		op.Commit()
	}
	require.Equal(w.t, want.err, op.Err())
	require.Equal(w.t, recorded, op.Recorded())
}

// perform gives the operation to the model.
func (w *world) perform(op *disk.Op) (out outcome) {
	if op.Kind == disk.KindOpen {
		w.model.Open(op.Session, func(o journal.Opened, err error) { out.opened, out.err = o, err })
	} else {
		w.model.Append(op.Batch, func(a journal.Appended, err error) { out.appended, out.err = a, err })
	}
	for _, callback := range w.run {
		callback()
	}
	w.run = w.run[:0]
	return out
}

// crash ends the host; whatever is still done to its ops does nothing.
func (h *host) crash() {
	w := h.world
	h.Crash()
	clear(h.want) // a callback that ran would find nothing
	for _, op := range h.ready {
		require.True(w.t, op.Void())
		op.Commit()
		for _, ev := range op.Batch.Events {
			w.never = append(w.never, text{op.Session, string(ev.Line())})
		}
	}
	for _, tell := range h.tells {
		tell()
	}
}

// check holds the disk to its two judges.
func (w *world) check() {
	t, ctx, got := w.t, w.t.Context(), w.hosts[0]
	at, _ := w.model.Last(ctx)
	last, err := got.Last(ctx)
	require.NoError(t, err)
	require.Equal(t, at, last)
	limit, before, after := w.draw(4, "limit"), int64(w.draw(20, "before")), journal.Position(w.draw(int(at)+2, "after"))
	filter := journal.ActiveFilter{Limit: limit, AfterSession: "a", AfterCall: "c1"}
	for _, read := range []func(j journal.Reader) []any{
		func(j journal.Reader) []any { list, err := j.Sessions(ctx, "a", limit); return []any{list, err} },
		func(j journal.Reader) []any { list, err := j.Sessions(ctx, "", 0); return []any{list, err} },
		func(j journal.Reader) []any { rows, at, err := j.Active(ctx, filter); return []any{rows, at, err} },
		func(j journal.Reader) []any {
			changes, next, err := j.Changes(ctx, after, limit)
			return []any{len(changes), fmt.Sprint(changes), next, err}
		},
		func(j journal.Reader) []any {
			due, next, err := j.Due(ctx, before, limit)
			return []any{due, next, err}
		},
	} {
		require.Equal(t, read(w.model), read(got))
	}
	for _, session := range fateSessions {
		for _, from := range []int64{0, int64(limit)} {
			want, wantErr := w.model.Read(ctx, session, from, limit)
			o, err := got.Read(ctx, session, from, limit)
			require.Equal(t, wantErr, err)
			require.Equal(t, want.Epoch, o.Epoch)
			require.Equal(t, lines(want.Events), lines(o.Events))
		}
		checkCommits(t, w.disk.Log(session))
	}
	if !w.deletes {
		w.checkLedger()
	}
}

// checkLedger: what was told is there once, what was refused, fenced or void is
// not, and what is in doubt is at most once.
func (w *world) checkLedger() {
	logs := map[string]string{}
	for _, log := range w.disk.All() {
		logs[log.Session] = strings.Join(lines(log.Events), "\n")
	}
	for _, told := range w.told {
		require.Equal(w.t, 1, strings.Count(logs[told.session], told.text), "told %v", told)
	}
	for _, never := range w.never {
		require.NotContains(w.t, logs[never.session], never.text)
	}
	for n := range w.texts {
		for _, log := range logs {
			require.LessOrEqual(w.t, strings.Count(log, fmt.Sprintf("text %d.", n+1)), 1)
		}
	}
}

// checkCommits: positions and epochs rise, batches follow each other, and they
// add up to the session.
func checkCommits(t require.TestingT, log disk.Log) {
	var at journal.Position
	var epoch, next int64
	alive := false
	for _, c := range log.Commits {
		require.Equal(t, next, c.Seq)
		require.GreaterOrEqual(t, c.At, at)
		require.True(t, alive || c.Kind == disk.KindAppend)
		if c.Kind == disk.KindOpen || !alive { // taken, or given to a new life
			epoch++
		}
		require.True(t, c.Kind == disk.KindOpen || c.At > at)
		require.Equal(t, epoch, c.Epoch)
		if next += c.Count; c.Delete {
			next = 0
		}
		at, alive = c.At, !c.Delete
	}
	require.Equal(t, log.Epoch, epoch)
	require.Equal(t, log.Header != nil, alive)
	require.Len(t, log.Events, int(next))
}

func lines(events []sessionlog.Event) []string {
	out := make([]string, len(events))
	for i, ev := range events {
		out[i] = string(ev.Line())
	}
	return out
}

// Whatever fates are drawn, the disk is what a journal in memory would be that
// was given the performed operations only, and hosts were told the truth.
func TestRandomFatesAgreeWithTheMemoryJournal(t *testing.T) {
	used := disk.New()
	rapid.Check(t, func(t *rapid.T) {
		used.Reset()
		w := newWorld(t, used)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			w.step()
			if w.draw(8, "check") == 0 {
				w.check()
			}
		}
		for _, h := range w.hosts { // and every op that is left gets its fate
			for len(h.ready) > 0 {
				op := h.ready[0]
				h.ready = h.ready[1:]
				h.decide(op)
			}
			for _, tell := range h.tells {
				tell()
			}
			for session, want := range h.want {
				require.Empty(t, want, "%s was not told everything of %s", h.name(), session)
			}
		}
		w.check()
	})
}

func (h *host) name() string { return fmt.Sprint("h", slices.Index(h.world.hosts, h)) }
