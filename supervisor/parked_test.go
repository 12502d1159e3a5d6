package supervisor

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// BenchmarkParked parks sessions, each with one question of 300 bytes that
// waits in a part with a timer for an asker at the door, and weighs them. The
// machines hold next to nothing, so that what is weighed is this room and the
// engine; ids are as long as real ones (36 and 28 bytes), which is 120 bytes of it.
//
//	go test ./supervisor -run ^$ -bench Parked -benchtime 1x
func BenchmarkParked(b *testing.B) {
	const sessions, limit = 100_000, 2_700
	for b.Loop() {
		heap, rss := weigh()
		sys := park(b, sessions)
		heapAfter, rssAfter := weigh()
		perHeap, perRSS := float64(heapAfter-heap)/sessions, float64(rssAfter-rss)/sessions
		b.ReportMetric(perHeap, "heap-B/session")
		b.ReportMetric(perRSS, "rss-B/session")
		s := sys.Snapshot()
		if s.Sessions != sessions || s.Parts != sessions || s.Callers != sessions {
			b.Fatalf("not parked: %+v", s)
		}
		if perHeap > limit {
			b.Fatalf("a parked session takes %.0f bytes, the limit is %d", perHeap, limit)
		}
		if err := sys.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func park(b *testing.B, sessions int) *System {
	log := slog.New(slog.DiscardHandler)
	sys, err := Start(Config{
		Journal: nullJournal{}, Logger: log, Runtime: NewRealRuntime(log), SweepEvery: -1,
		NewSession: func(string, journal.Opened) (actors.Machine, error) { return &parkedSession{}, nil },
		NewDoor:    func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 0) },
		NewClaim:   func(actors.Addr, string, string) actors.Machine { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	question := string(bytes.Repeat([]byte("?"), 300))
	var asked sync.WaitGroup
	for i := range sessions {
		if i%5000 == 0 {
			asked.Wait()
			runtime.GC() // what is weighed is parking, not the holes that spawning leaves
		}
		asked.Add(1)
		ask := &messages.AskRequest{
			Session: fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i), Root: "root-1", Attempt: fmt.Sprintf("attempt-%08d", i),
			CallId: "toolu_01AbCdEfGhIjKlMnOpQrStUv", Arguments: string([]byte(question)),
		}
		sys.Call(ask, func(m messages.Message) {
			if r, ok := m.(*messages.AskResponse); ok && r.GetWaiting() != nil {
				asked.Done()
			}
		})
	}
	asked.Wait()
	return sys
}

// weigh returns the live heap and what the process holds of the machine.
func weigh() (heap, rss int64) {
	debug.FreeOSMemory()
	debug.FreeOSMemory() // the second empties what pools kept over the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var total, resident int64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(text), &total, &resident)
	}
	return int64(m.HeapAlloc), resident * int64(os.Getpagesize())
}

// parkedSession holds the question; its part holds the asker and the timer.
type parkedSession struct{ question string }

func (*parkedSession) Apply(sessionlog.Event)           {}
func (*parkedSession) Resume(actors.Now) actors.Effects { return actors.Effects{} }

func (m *parkedSession) Step(_ actors.Now, in actors.Envelope) actors.Effects {
	ask, isAsk := in.Msg.(*messages.AskRequest)
	if !isAsk {
		return actors.Effects{}
	}
	m.question = ask.GetArguments()
	id := actors.PartID{Kind: actors.WaitPart, Call: ask.GetCallId(), Incarnation: 1}
	return actors.Effects{
		Append: []sessionlog.Event{sessionlog.NewEvent("parley/test", 1).Ours()},
		Parts:  []actors.ToPart{{Part: id, Seed: &parkedWait{}}, {Part: id, Msg: actors.AddAsker{From: in.From}}},
	}
}

type parkedWait struct{ askers []actors.Addr }

func (*parkedWait) Apply(sessionlog.Event) {}

func (*parkedWait) Resume(actors.Now) actors.Effects {
	return actors.Effects{Timers: []actors.Timer{{Name: "deadline", After: 3_600_000, Gen: 1}}}
}

func (w *parkedWait) Step(_ actors.Now, in actors.Envelope) actors.Effects {
	m, ok := in.Msg.(actors.AddAsker)
	if !ok {
		return actors.Effects{}
	}
	w.askers = append(w.askers, m.From)
	return actors.Effects{Replies: []actors.Reply{{To: m.From, Msg: &messages.AskResponse{
		CallId: "toolu_01AbCdEfGhIjKlMnOpQrStUv", Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}}}}}
}

// nullJournal records nothing, so that nothing of it is weighed.
type nullJournal struct{ journal.Journal }

func (nullJournal) Open(_ string, done func(journal.Opened, error)) {
	go done(journal.Opened{Epoch: 1}, nil)
}

func (nullJournal) Append(_ journal.Batch, done func(journal.Appended, error)) {
	go done(journal.Appended{At: 1, Epoch: 1}, nil)
}
