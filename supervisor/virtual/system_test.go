package virtual

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/supervisor"
)

// machine is a host with a node of Parley on it, over a journal that outlives it.
type machine struct {
	*supervisor.System
	t    testing.TB
	w    *world
	host *Host
	said []string // what callers were told
}

// boot starts a node on a new host.
func boot(t testing.TB, w *world, j journal.Journal) *machine {
	h := w.host("h1")
	ids := map[string]int{}
	rules := &actors.Rules{
		Mode: messages.Mode_MODE_TIMED, DefaultTimeoutS: 120, FirstExpiryWins: true, PassivateAfterMS: 60_000,
		OpenCallsMax: actors.OpenCallsMaxDefault, QueueMax: actors.QueueMaxDefault,
		NewID: func(kind string) string { ids[kind]++; return fmt.Sprintf("%s-%d", kind, ids[kind]) },
	}
	sys, err := supervisor.Start(supervisor.Config{
		Node: "h1", Runtime: h.Runtime(), Journal: j, Logger: slog.New(slog.DiscardHandler),
		NewSession: func(id string, o journal.Opened) (actors.Machine, error) {
			return actors.NewSession(rules, id, o.Header, o.Events)
		},
		NewDoor: func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 0) },
		NewClaim: func(self actors.Addr, session, call string) actors.Machine {
			return actors.NewClaim(self, session, call, 0)
		},
	})
	require.NoError(t, err)
	return &machine{System: sys, t: t, w: w, host: h}
}

// say sends a command and notes its answers under a name.
func (m *machine) say(name string, cmd messages.Command) {
	m.Call(cmd, func(msg messages.Message) {
		line := name + ": " + answer(msg)
		m.said = append(m.said, line)
		m.w.say("%d %s", m.w.now, line)
	})
}

func answer(msg messages.Message) string {
	switch m := msg.(type) {
	case *messages.Refusal:
		return m.GetCode()
	case *messages.AskResponse:
		switch {
		case m.GetWaiting() != nil:
			return "waiting"
		case m.GetPending() != nil:
			return "pending"
		default:
			return "answered"
		}
	case *messages.SubmitResponse:
		return m.GetSettlement().GetOutcome()
	default:
		return string(msg.ProtoReflect().Descriptor().Name())
	}
}

// told returns what callers were told since the last call.
func (m *machine) told() string {
	out := strings.Join(m.said, ", ")
	m.said = nil
	return out
}

// crash ends the process.
func (m *machine) crash() {
	m.host.Crash()
	m.host.Release()
}

// sink writes down what a client of a claim is told.
type sink struct{ m *machine }

func (s sink) Frame(ms int64, never bool) {
	s.m.said = append(s.m.said, fmt.Sprintf("frame %d %v", ms, never))
}
func (s sink) End(reason string, retryable bool) {
	s.m.said = append(s.m.said, fmt.Sprintf("end %s %v", reason, retryable))
}

func ask(call string, timeout int) *messages.AskRequest {
	return &messages.AskRequest{
		Session: "s1", Root: "root", Attempt: "try-" + call, CallId: call,
		Arguments: fmt.Sprintf(`{"questions":[{"id":"q","question":"?"}],"timeout":%d}`, timeout),
	}
}

func submit(call, id string) *messages.SubmitRequest {
	return &messages.SubmitRequest{
		Session: "s1", CallId: call, SubmissionId: id, By: "ada", Door: "test",
		Answers: []*messages.Answer{{Id: "q", Selected: []string{"yes"}}},
	}
}

// newDisk is a journal whose answers are steps of the world, in their order.
func newDisk(w *world) *memory.Journal {
	return memory.New(func(callback func()) { w.answers = append(w.answers, callback) })
}

// story is a node's life with an answer, a deadline, a crash and a restart from
// the log. It returns everything that happened.
func story(t testing.TB, seed uint64) string {
	w := newWorld(seed)
	j := newDisk(w)
	m := boot(t, w, j)
	m.say("attach", &messages.AttachRequest{Session: "s1", Root: "root"})
	w.settle()
	require.Equal(t, "attach: AttachResponse", m.told())

	m.say("c1", ask("c1", 60))
	w.settle()
	require.Equal(t, "c1: waiting", m.told())
	m.say("submit", submit("c1", "one"))
	w.settle()
	require.ElementsMatch(t, []string{"submit: answered", "c1: answered"}, m.said)
	m.told()

	m.say("c2", ask("c2", 5))
	w.advance(4999 * time.Millisecond)
	require.Equal(t, "c2: waiting", m.told())
	claim := m.OpenClaim("s1", "c2", sink{m})
	w.advance(time.Second)
	require.Equal(t, "frame 1 false", m.told(), "the claim holds the deadline")
	claim.Release(false)
	w.advance(0)
	require.Equal(t, "c2: pending", m.told())

	m.say("c3", ask("c3", 100))
	w.settle()
	require.Equal(t, "c3: waiting", m.told())
	m.say("late", submit("c2", "two"))
	for range 3 {
		w.step() // somewhere on its way
	}
	m.crash()
	w.advance(10 * time.Second)
	require.Empty(t, m.told(), "the dead say nothing")

	m = boot(t, w, j)
	w.settle()
	m.say("again", submit("c2", "two"))
	m.say("c3", ask("c3", 100))
	w.settle()
	require.ElementsMatch(t, []string{"again: queued", "c3: waiting"}, m.said)
	m.told()
	w.advance(90 * time.Second)
	require.Equal(t, "c3: pending", m.told(), "at the deadline that the log has")

	m.say("c4", ask("c4", 100))
	w.settle()
	require.Equal(t, "c4: waiting", m.told())
	stopped := m.Stop()
	w.settle()
	require.Equal(t, "c4: UNAVAILABLE", m.told())
	select {
	case <-stopped:
	default:
		require.Fail(t, "the node has not stopped")
	}
	m.host.Release()
	return w.trace.String()
}

func TestANodeLivesInTheWorld(t *testing.T) {
	for seed := range uint64(50) {
		story(t, seed)
	}
}

// The trace is the same whatever the process did before: the systems of a
// thousand other hosts have come and gone, some crashed in the middle of things,
// and what was left of them still speaks.
func TestAHostKnowsNothingOfThoseBeforeIt(t *testing.T) {
	before := story(t, 7)
	require.Greater(t, strings.Count(before, "\n"), 100)
	ghosts := make([]*machine, 0, 100)
	for i := range 2500 { // more than twice the stock
		if i%25 != 0 {
			NewHost(newWorld(0), "h1").Release()
			continue
		}
		w := newWorld(uint64(i))
		m := boot(t, w, newDisk(w))
		m.say("attach", &messages.AttachRequest{Session: "s1", Root: "root"})
		m.say("ask", ask("c1", 60))
		for range 5 + i%20 {
			w.step()
		}
		m.crash()
		ghosts = append(ghosts, m)
	}
	for _, m := range ghosts {
		m.w.settle() // what is left of it is void
		m.say("ghost", ask("c9", 60))
		m.host.system.Root.Send(m.host.system.NewLocalPID("door"), &actors.Envelope{})
		require.False(t, m.w.step(), "a ghost lives")
		require.NotContains(t, m.told(), "ghost")
	}
	require.Equal(t, before, story(t, 7))
}

func TestTheSameSeedIsTheSameTrace(t *testing.T) {
	first := story(t, 3)
	require.NotEqual(t, first, story(t, 4), "the seed decides something")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i := range 50 {
		runtime.GOMAXPROCS(1 + i%2)
		require.Equal(t, first, story(t, 3))
	}
}

// Worlds do not meet: each may have a goroutine of its own.
func TestWorldsRunSideBySide(t *testing.T) {
	want := story(t, 5)
	for range 4 {
		t.Run("world", func(t *testing.T) {
			t.Parallel()
			for range 10 {
				require.Equal(t, want, story(t, 5))
			}
		})
	}
}

// In another process, with one processor and with two. The other process is
// this test, which then prints its traces.
func TestTheSameSeedIsTheSameTraceInAnotherProcess(t *testing.T) {
	const variable = "PARLEY_VIRTUAL_TRACE"
	if os.Getenv(variable) != "" {
		_, err := io.WriteString(os.Stdout, "<<"+story(t, 11)+">>")
		require.NoError(t, err)
		return
	}
	story(t, 12) // another history than the other process has
	want := story(t, 11)
	for _, procs := range []string{"1", "2"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"=1", "GOMAXPROCS="+procs)
		out, err := cmd.Output()
		require.NoError(t, err, string(out))
		_, got, _ := strings.Cut(string(out), "<<")
		got, _, _ = strings.Cut(got, ">>")
		require.Equal(t, want, got)
	}
}
