package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// TestPowerLossAtEveryBoundary runs a history over a file layer that writes
// down every write and sync, and then loses power after each of them: what was
// synced is there; of what was not, nothing, everything, or any part of it in
// pieces of a sector. The real journal opens each of these, and must find every
// acknowledged append, no part of a batch, no epoch that went back, and an
// index that is the fold of its changes.
func TestPowerLossAtEveryBoundary(t *testing.T) {
	h := newHistory(t)
	h.play()
	ops := h.disk.ops
	if len(ops) < 200 {
		t.Fatalf("only %d writes and syncs: the history is too short to mean anything", len(ops))
	}
	// Two lose power at a time, each in the images of its own half.
	const workers = 2
	var all sync.WaitGroup
	var opened [workers]int
	for w := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			opened[w] = h.losePower(ops, w, workers)
		}()
	}
	all.Wait()
	t.Logf("%d writes and syncs, %d images opened", len(ops), opened[0]+opened[1])
}

// history is a run of the journal, with what every session looked like after
// each request, and when each request was acknowledged.
type history struct {
	t      *testing.T
	disk   *disk
	j      *Journal
	mu     sync.Mutex
	states map[string][]state
	acks   map[string][]int // by request: operations done when it was acknowledged
}

// state is what a reader sees of a session.
type state struct {
	epoch  int64
	events []string // nil epoch 0: it does not exist
}

func newHistory(t *testing.T) *history {
	h := &history{t: t, disk: newDisk(t), states: map[string][]state{}, acks: map[string][]int{}}
	// Tables are brought up and the WAL starts over several times in the run.
	h.j = mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), options{vfs: h.disk.name, tailSize: 12, walPages: 20})
	return h
}

// play hands in a seeded history, a few requests at a time, so that groups of
// one and of several are committed.
func (h *history) play() {
	var flying sync.WaitGroup
	for round := range 45 {
		for k := range 1 + round%4 {
			session := fmt.Sprint("s", (round*3+k*5)%6)
			h.request(session, round*7+k*3, &flying)
		}
		flying.Wait()
	}
}

// request hands one request in and notes what the session must look like.
func (h *history) request(session string, dice int, flying *sync.WaitGroup) {
	now, life := state{}, int64(0) // life: the epoch that a birth takes next
	if all := h.states[session]; len(all) > 0 {
		now = all[len(all)-1]
	}
	for _, s := range h.states[session] {
		life = max(life, s.epoch)
	}
	next := state{epoch: now.epoch, events: slices.Clone(now.events)}
	flying.Add(1)
	acknowledge := func(err error) {
		defer flying.Done()
		if err != nil {
			h.t.Errorf("a request to %s failed: %v", session, err)
		}
		h.mu.Lock()
		h.acks[session] = append(h.acks[session], h.disk.length())
		h.mu.Unlock()
	}
	appended := func(_ journal.Appended, err error) { acknowledge(err) }
	seq := int64(len(now.events))
	switch {
	case now.epoch == 0:
		next.epoch = life + 1
		b := journaltest.Birth(session, 1+dice%2, journaltest.Put("c0", int64(10+dice)))
		next.events = lines(b.Events)
		h.j.Append(b, appended)
	case dice%11 == 3:
		next.epoch++
		h.j.Open(session, func(_ journal.Opened, err error) { acknowledge(err) })
	case dice%17 == 4:
		next = state{}
		h.j.Append(journal.Batch{Session: session, Epoch: now.epoch, Seq: seq, Delete: true}, appended)
	default:
		b := journaltest.Next(session, now.epoch, seq, 1+dice%3, journaltest.Put(fmt.Sprint("c", dice%3), int64(10+dice)), journaltest.Remove(fmt.Sprint("c", (dice+1)%3)))
		if dice%13 == 5 {
			b.Events = journaltest.Events(seq, 2, strings.Repeat("long", 8000)) // several pages
		}
		next.events = append(next.events, lines(b.Events)...)
		h.j.Append(b, appended)
	}
	h.states[session] = append(h.states[session], next)
}

func lines(events []sessionlog.Event) (out []string) {
	for _, ev := range events {
		out = append(out, string(ev.Line()))
	}
	return out
}

// losePower walks over the operations, and opens the images of every
// workers-th of them.
func (h *history) losePower(ops []op, worker, workers int) (opened int) {
	durable, pending := image{"": nil, "-wal": nil}, map[string][]op{}
	seed := uint64(worker) + 99
	dice := func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	}
	for i, o := range ops {
		if o.kind == 's' {
			for _, p := range pending[o.file] {
				durable.apply(p, len(p.data))
			}
			pending[o.file] = nil
		} else {
			pending[o.file] = append(pending[o.file], o)
		}
		if i%(workers*boundaryStride) != worker*boundaryStride {
			continue
		}
		if o.kind == 's' {
			h.open(durable, i+1, "what was synced")
			opened++
		}
		all, some := durable.clone(), durable.clone()
		for _, file := range []string{"", "-wal"} {
			for _, p := range pending[file] {
				all.apply(p, len(p.data))
				switch dice(4) {
				case 0: // lost
				case 1: // some of its sectors, in no order
					for at := 0; at < len(p.data); at += 512 {
						if dice(2) == 0 {
							piece := p.data[at:min(at+512, len(p.data))]
							some.apply(op{'w', p.file, p.off + int64(at), piece}, len(piece))
						}
					}
				default:
					some.apply(p, len(p.data))
				}
			}
		}
		h.open(some, i+1, "a part of what was not synced")
		opened++
		if dice(5) == 0 {
			h.open(all, i+1, "everything written")
			opened++
		}
	}
	return opened
}

// open opens an image and compares it with the history.
func (h *history) open(m image, done int, what string) {
	t := h.t
	folder, err := os.MkdirTemp(t.TempDir(), "image")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	where := fmt.Sprintf("power lost after operation %d with %s", done, what)
	j, err := open(m.write(t, folder), options{vfs: "quick", tailSize: 12, walPages: 20})
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	defer j.Close()
	ctx := context.Background()
	for session, states := range h.states {
		least := 0
		for _, at := range h.acks[session] {
			if at <= done {
				least++
			}
		}
		found, err := lookAt(ctx, j, session)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		match := least == 0 && found.epoch == 0
		for _, s := range states[max(least-1, 0):] {
			match = match || s.epoch == found.epoch && slices.Equal(s.events, found.events)
		}
		if !match {
			t.Errorf("%s: session %s has epoch %d and %d events, which is none of its states from request %d on", where, session, found.epoch, len(found.events), least)
		}
	}
	changes, _, err := journaltest.AllChanges(ctx, j, 0, 7)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	folded := map[[2]string]sessionlog.Row{}
	journaltest.Fold(folded, changes)
	rows, _, err := j.Active(ctx, journal.ActiveFilter{})
	if err != nil || len(rows) != len(folded) {
		t.Errorf("%s: %d index rows, %d by folding the changes; %v", where, len(rows), len(folded), err)
	}
	for _, r := range rows {
		if folded[[2]string{r.Session, r.Row.CallID}] != r.Row {
			t.Errorf("%s: index row %+v is not the fold of its changes", where, r)
		}
	}
	if _, err := journaltest.Append(j, journaltest.Birth("after", 1)); err != nil {
		t.Errorf("%s: it cannot go on: %v", where, err)
	}
}

func lookAt(ctx context.Context, j journal.Reader, session string) (state, error) {
	o, err := j.Read(ctx, session, 0, 0)
	if messages.CodeOf(err) == messages.NotFound {
		return state{}, nil
	}
	return state{o.Epoch, lines(o.Events)}, err
}
