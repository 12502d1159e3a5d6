package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
)

func TestNothingSaidToALeavingSessionIsLost(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.took()
	// All of these are in the mailbox, or at the router, when "bye" is stepped.
	var all []*answers
	for _, text := range []string{"bye", "b", "log c", "bye", "d", "e"} {
		all = append(all, n.say("s", text))
	}
	n.w.settle()
	equal(t, "answers", fmt.Sprint(all), "[bye b c=2 bye d e]")
	equal(t, "order", n.took(), "bye open:s@2/1 b log c bye open:s@3/2 d e")
}

func TestWhatArrivesWhileASessionLeavesComesAfterWhatWasInItsMailbox(t *testing.T) {
	n := newNode(t)
	n.say("s", "echo")
	n.w.settle()
	n.took()
	deliver := func(text string) {
		n.route(actors.SessionAddr("s"), actors.Addr{}, steer("s", text))
	}
	deliver("bye")
	deliver("1")
	deliver("2")
	// One message at a time: after "bye" the router holds 3 and 4, then gets 1 and 2 back.
	box := n.w.run[0]
	n.w.run = n.w.run[1:]
	box.queued = false
	box.deliver()
	deliver("3")
	deliver("4")
	box.wake()
	n.w.settle()
	equal(t, "order", n.took(), "bye open:s@0/0 1 2 3 4")
}

func TestHeldInputsSurviveAPassivation(t *testing.T) {
	n := newNode(t)
	n.main = func(m *testSession, in actors.Envelope) (actors.Effects, bool) {
		cmd, ok := in.Msg.(*messages.SteerRequest)
		if !ok || cmd.GetText() != "prove and go" {
			return actors.Effects{}, false
		}
		return actors.Effects{Proof: true, Passivate: true, Replies: []actors.Reply{replyTo(in.From, "gone")}}, true
	}
	a, b, c := n.say("s", "prove and go"), n.say("s", "b"), n.say("s", "c")
	n.w.settle()
	equal(t, "answers", a.String()+" "+b.String()+" "+c.String(), "gone b c")
}

func TestClaimHoldsEndsAndIsOpenedAgain(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	open, unknown := &sink{}, &sink{}
	c := n.OpenClaim("s", "open", open)
	n.OpenClaim("s", "nothing", unknown)
	n.w.settle()
	equal(t, "told", open.String()+"; "+unknown.String(), "frame 7 false; end unknown false")
	equal(t, "one is left", n.Snapshot().Claims, 1)
	n.took()
	n.say("s", "boom")
	n.w.advance(time.Second)
	equal(t, "opened again after the crashes", strings.Count(n.took(), "claim:open"), 1)
	c.Release(true)
	c.Release(false)
	n.w.settle()
	equal(t, "released once", n.took(), "release:open/true")
	equal(t, "told no more", open.String(), "frame 7 false")
	equal(t, "none is left", n.Snapshot().Claims, 0)
}

func TestClaimThatCrashesIsLostForBothSides(t *testing.T) {
	n := newNode(t, func(c *Config, n *node) {
		c.NewClaim = func(self actors.Addr, session, call string) actors.Machine {
			return &brittleClaim{actors.NewClaim(self, session, call, 0)}
		}
	})
	n.say("s", "log a")
	s := &sink{}
	n.OpenClaim("s", "open", s)
	n.w.settle()
	equal(t, "told", s.String(), "end unavailable true")
	if seen := n.took(); !strings.HasSuffix(seen, "release:open/true") {
		t.Fatalf("the session was not told: %s", seen)
	}
	equal(t, "none is left", n.Snapshot().Claims, 0)
}

type brittleClaim struct{ *actors.Claim }

func (c *brittleClaim) Step(now actors.Now, in actors.Envelope) actors.Effects {
	if _, frame := in.Msg.(*messages.ClaimFrame); frame {
		panic("the claim")
	}
	return c.Claim.Step(now, in)
}

// sink keeps what a claim's client was told.
type sink struct {
	mu   sync.Mutex
	told []string
}

func (s *sink) Frame(ms int64, never bool) { s.tell("frame %d %v", ms, never) }
func (s *sink) End(why string, again bool) { s.tell("end %s %v", why, again) }
func (s *sink) tell(f string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf(f, a...))
}
func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, " ")
}

func TestCancelledCallerIsNotAnswered(t *testing.T) {
	n := newNode(t)
	n.disk.paused = true
	a := n.say("s", "echo")
	n.w.settle()
	a.cancel()
	a.cancel()
	n.disk.resume()
	n.w.settle()
	equal(t, "answers", a.String(), "")
	equal(t, "callers", n.Snapshot().Callers, 0)
}

func TestWaitingIsNotTheLastWord(t *testing.T) {
	n := newNode(t)
	n.main = func(_ *testSession, in actors.Envelope) (actors.Effects, bool) {
		if _, ask := in.Msg.(*messages.AskRequest); !ask {
			return actors.Effects{}, false
		}
		return actors.Effects{Replies: []actors.Reply{
			{To: in.From, Msg: &messages.AskResponse{Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}}},
			{To: in.From, Msg: &messages.AskResponse{Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{}}}},
			{To: in.From, Msg: &messages.AskResponse{}},
		}}, true
	}
	a := &answers{}
	n.Call(&messages.AskRequest{Session: "s"}, func(m messages.Message) { a.got = append(a.got, m) })
	n.w.settle()
	equal(t, "answers", len(a.got), 2)
	equal(t, "callers", n.Snapshot().Callers, 0)
}

func TestStopFinishesTheAppendInFlightAndAnswersTheRest(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	waits := n.say("t", "seed")
	s := &sink{}
	n.OpenClaim("s", "open", s)
	n.w.settle()
	n.disk.paused = true
	flying, held := n.say("s", "log b"), n.say("s", "log c")
	loading := n.say("u", "log d")
	n.w.settle()

	done := n.Stop()
	late := n.say("s", "late")
	n.w.settle()
	equal(t, "not before the append", closed(done), false)
	n.disk.resume()
	n.w.settle()
	equal(t, "then", closed(done), true)
	equal(t, "the append in flight is told", flying.String(), "b=2")
	equal(t, "the rest is sent away", fmt.Sprint(held, loading, late, waits), "UNAVAILABLE UNAVAILABLE UNAVAILABLE UNAVAILABLE")
	equal(t, "the claim may come again", s.String(), "frame 7 false end unavailable true")
	equal(t, "nothing was recorded by it", len(n.disk.batches), 2)
	equal(t, "nothing is left", n.Snapshot().Sessions+n.Snapshot().Parts+n.Snapshot().Claims+n.Snapshot().Callers, 0)

	after := n.say("s", "echo")
	other := &sink{}
	n.OpenClaim("s", "open", other)
	equal(t, "closed", after.String()+" "+other.String(), "UNAVAILABLE end unavailable true")
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestStopWaitsForNobodyWhoWaitsForHisRestart(t *testing.T) {
	n := newNode(t)
	boom := n.say("s", "boom")
	n.w.settle()
	done := n.Stop()
	n.w.settle() // no time passes
	equal(t, "done", closed(done), true)
	equal(t, "told", boom.String(), "UNAVAILABLE")
}

func TestCloseIsBoundedByItsContext(t *testing.T) {
	n := newNode(t)
	n.disk.paused = true // for ever
	a := n.say("s", "echo")
	n.w.settle()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.disk.held = nil
	n.say("t", "log x")
	n.disk.paused = false
	n.w.settle()
	n.disk.paused = true
	n.say("t", "log y")
	n.w.settle()
	if err := n.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	equal(t, "told nevertheless", a.String(), "UNAVAILABLE")
}

func TestSweeperWakesWhatIsDue(t *testing.T) {
	var looks []int64
	n := newNode(t, func(c *Config, n *node) {
		c.SweepEvery = 0
		n.disk.due = func(before int64, _ int) ([]string, int64, error) {
			looks = append(looks, before-1_000_000)
			switch len(looks) {
			case 1:
				return []string{"a", "b"}, 1_000_700, nil
			case 2:
				return nil, 0, errDisk
			}
			return nil, 0, nil
		}
	})
	equal(t, "woken", n.took(), "open:a@0/0 wake:a open:b@0/0 wake:b")
	n.w.advance(11 * time.Second)
	equal(t, "looks", fmt.Sprint(looks), "[0 700 5700 10700]")
	equal(t, "the fault is logged", len(n.logs.of("sweep")), 1)
	n.Stop()
	n.w.advance(time.Minute)
	equal(t, "it stops with the node", len(looks), 4)
}

func TestSweepAgain(t *testing.T) {
	const every = 5 * time.Second
	page := make([]string, 256)
	for _, c := range []struct {
		name  string
		found swept
		limit int
		wait  time.Duration
		next  int
	}{
		{"nothing due", swept{}, 256, every, 256},
		{"the next is near", swept{next: 1_300}, 256, 300 * time.Millisecond, 256},
		{"the next is far", swept{next: 900_000}, 256, every, 256},
		{"the next has passed", swept{next: 900}, 256, sweepPause, 256},
		{"a full page may hide others", swept{due: page}, 256, sweepPause, 512},
		{"a wider look that was enough", swept{due: page}, 512, every, 256},
		{"a fault", swept{err: errDisk, next: 1_001}, 512, every, 512},
		{"no overflow", swept{next: 1<<63 - 1}, 256, every, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			wait, next := sweepAgain(1_000, &c.found, c.limit, every)
			equal(t, "wait", wait, c.wait)
			equal(t, "limit", next, c.next)
		})
	}
}

func TestConfigSaysEveryMistake(t *testing.T) {
	err := (&Config{Node: "a/b", Backoff: -1, HeldMax: -2}).Validate()
	for _, want := range []string{"Node", "Journal", "NewSession", "Backoff", "HeldMax"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if _, err := Start(Config{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
	n := newNode(t)
	if _, err := Start(n.cfg); err == nil {
		t.Error("one actor system took two nodes")
	}
}

// realNode runs on the production runtime.
func realNode(t testing.TB, session func(string, journal.Opened) (actors.Machine, error)) *System {
	log := slog.New(slog.DiscardHandler)
	j := memory.New(nil)
	sys, err := Start(Config{
		Journal: j, Logger: log, Runtime: NewRealRuntime(log), NewSession: session, SweepEvery: -1,
		NewDoor: func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 0) },
		NewClaim: func(self actors.Addr, session, call string) actors.Machine {
			return actors.NewClaim(self, session, call, 0)
		},
		QuarantineAfter: -1, BackoffMax: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(sys.Close(context.WithoutCancel(t.Context())), j.Close()); err != nil {
			t.Error(err)
		}
	})
	return sys
}

// TestPassivationUnderLoadLosesNothing has sessions leave all the time, while
// many callers speak to few of them. Nothing in this room repeats a command as
// long as its session does not crash, so one lost message would hang a caller.
func TestPassivationUnderLoadLosesNothing(t *testing.T) {
	var opens atomic.Int64
	sys := realNode(t, func(id string, o journal.Opened) (actors.Machine, error) {
		opens.Add(1)
		m := newTestSession(func(string, ...any) {}, nil, id, o)
		return &restless{testSession: m}, nil
	})
	const callers, each, sessions = 16, 500, 5
	var wg sync.WaitGroup
	var answered, refused atomic.Int64
	for i := range callers {
		wg.Go(func() {
			for k := range each {
				got := make(chan messages.Message, 1)
				text := []string{"log x", "echo", "proof"}[(i+k)%3]
				sys.Call(steer(fmt.Sprint("s", (i*k)%sessions), text), func(m messages.Message) { got <- m })
				m := <-got
				answered.Add(1)
				if _, no := m.(*messages.Refusal); no {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	equal(t, "answered", answered.Load(), callers*each)
	equal(t, "refused", refused.Load(), 0)
	if opens.Load() < 200 {
		t.Fatalf("only %d activations: the test does not test", opens.Load())
	}
	t.Logf("%d commands, %d activations", answered.Load(), opens.Load())
}

// restless leaves after every third input.
type restless struct {
	*testSession
	inputs int
}

func (m *restless) Step(now actors.Now, in actors.Envelope) actors.Effects {
	fx := m.testSession.Step(now, in)
	m.inputs++
	fx.Passivate = m.inputs%3 == 0
	return fx
}

// TestCrashesUnderLoadAnswerEverybody mixes crashes, passivation and appends.
func TestCrashesUnderLoadAnswerEverybody(t *testing.T) {
	var inputs atomic.Int64
	sys := realNode(t, func(id string, o journal.Opened) (actors.Machine, error) {
		m := newTestSession(func(string, ...any) {}, nil, id, o)
		return &moody{restless{testSession: m}, &inputs}, nil
	})
	const callers, each = 8, 100
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for k := range each {
				got := make(chan messages.Message, 1)
				sys.Call(steer(fmt.Sprint("s", (i+k)%3), []string{"log x", "echo"}[k%2]), func(m messages.Message) { got <- m })
				<-got
			}
		})
	}
	wg.Wait()
	if sys.Snapshot().Restarts == 0 {
		t.Fatal("nothing crashed: the test does not test")
	}
	equal(t, "callers", sys.Snapshot().Callers, 0)
}

// BenchmarkCall is one command after the other, and many at once, from a caller
// to a session and back: a step without an append, and one with.
func BenchmarkCall(b *testing.B) {
	for _, text := range []string{"echo", "proof"} {
		b.Run(text, func(b *testing.B) {
			sys := realNode(b, func(id string, o journal.Opened) (actors.Machine, error) {
				return newTestSession(func(string, ...any) {}, nil, id, o), nil
			})
			got := make(chan messages.Message, 1)
			for b.Loop() {
				sys.Call(steer("s", text), func(m messages.Message) { got <- m })
				<-got
			}
		})
		b.Run(text+"/parallel", func(b *testing.B) {
			sys := realNode(b, func(id string, o journal.Opened) (actors.Machine, error) {
				return newTestSession(func(string, ...any) {}, nil, id, o), nil
			})
			var caller atomic.Int64
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				got, session := make(chan messages.Message, 1), fmt.Sprint("s", caller.Add(1))
				for pb.Next() {
					sys.Call(steer(session, text), func(m messages.Message) { got <- m })
					<-got
				}
			})
		})
	}
}

// moody panics now and then.
type moody struct {
	restless
	all *atomic.Int64
}

func (m *moody) Step(now actors.Now, in actors.Envelope) actors.Effects {
	if m.all.Add(1)%37 == 0 {
		panic("moody")
	}
	return m.restless.Step(now, in)
}

// A part that is spawned by a session that has stopped would never be told to stop.
func TestAppendThatLandsWhileStoppingStartsNothing(t *testing.T) {
	n := newNode(t)
	n.main = func(m *testSession, in actors.Envelope) (actors.Effects, bool) {
		cmd, ok := in.Msg.(*messages.SteerRequest)
		if !ok || cmd.GetText() != "prove and seed" {
			return actors.Effects{}, false
		}
		m.parts++
		return actors.Effects{Proof: true, Parts: []actors.ToPart{{Part: m.part(), Seed: &testPart{note: m.note, id: m.part()}}}}, true
	}
	n.say("s", "seed")
	n.w.settle()
	n.disk.paused = true
	n.say("s", "prove and seed").cancel()
	n.w.settle()
	answer := n.disk.held[0]
	n.disk.held = nil
	session := n.engine.NewLocalPID(sessionName("s"))
	n.engine.Root.Stop(session)
	box := n.w.run[0] // the session: stopped, with a part that has yet to stop
	n.w.run, box.queued = n.w.run[1:], false
	box.deliver()
	answer()
	n.disk.resume()
	n.w.settle()
	equal(t, "parts of the old life", strings.Count(n.took(), "wait/c/1~2"), 0)
	echo := n.say("s", "echo")
	n.w.settle()
	equal(t, "served by a new life", echo.String(), "echo")
}
