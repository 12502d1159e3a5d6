package virtual

import (
	"runtime"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/supervisor/mailboxtest"
)

func TestBoxKeepsTheContract(t *testing.T) {
	mailboxtest.Run(t, func(t *testing.T) mailboxtest.Rig {
		w := newWorld(1)
		h := w.host("h1")
		t.Cleanup(h.Release)
		return mailboxtest.Rig{
			Engine: h.Runtime().Engine(),
			New:    func() actor.Mailbox { return &Box{host: h} },
			Until: func(t testing.TB, done func() bool) {
				w.settle()
				require.True(t, done())
			},
		}
	})
}

// notes is an actor that keeps what it was told; on runs inside of it.
type notes struct {
	seen []any
	on   func(ctx actor.Context)
}

func (n *notes) Receive(ctx actor.Context) {
	n.seen = append(n.seen, ctx.Message())
	if n.on != nil {
		n.on(ctx)
	}
}

func (n *notes) spawn(t *testing.T, h *Host, name string, opts ...actor.PropsOption) *actor.PID {
	pid, err := h.Runtime().Engine().Root.SpawnNamed(h.Runtime().Props(func() actor.Actor { return n }, opts...), name)
	require.NoError(t, err)
	return pid
}

// judge is a strategy that counts and does nothing.
type judge struct{ cases int }

func (j *judge) HandleFailure(*actor.ActorSystem, actor.Supervisor, *actor.PID, *actor.RestartStatistics, any, any) {
	j.cases++
}

func TestABoxIsNotReadyBeforeItsStart(t *testing.T) {
	w := newWorld(1)
	b := &Box{host: w.host("h1")}
	b.PostUserMessage("early")
	require.Empty(t, w.ready)
	require.False(t, b.Deliverable())
	b.Start()
	require.Equal(t, []*Box{b}, w.ready)
}

func TestDeliverIsOneMessageAndReadyIsSaidOnce(t *testing.T) {
	w := newWorld(1)
	h := w.host("h1")
	n := &notes{}
	pid := n.spawn(t, h, "a/b")
	require.Len(t, w.ready, 1)
	b := w.ready[0]
	require.Equal(t, "a/b", b.Name())
	require.Same(t, h, b.Host())
	require.IsType(t, &actor.Started{}, b.Next())

	root := h.Runtime().Engine().Root
	root.Send(pid, "one")
	root.RequestWithCustomSender(pid, "two", pid)
	require.Len(t, w.ready, 1, "it is ready already")
	b.Deliver()
	require.Equal(t, "one", b.Next())
	b.Deliver()
	require.Equal(t, "two", b.Next(), "without its envelope")
	n.on = func(ctx actor.Context) { ctx.Send(ctx.Self(), "three"); n.on = nil }
	b.Deliver()
	require.Len(t, w.ready, 1, "what it told itself is seen after the step")
	require.True(t, b.Deliverable())
	b.Deliver()
	require.False(t, b.Deliverable())
	require.Nil(t, b.Next())
	b.Deliver() // nothing
	require.Len(t, n.seen, 4)

	root.Send(pid, "four")
	require.Equal(t, []*Box{b, b}, w.ready, "ready again")
	root.Send(pid, "five")
	require.Len(t, w.ready, 2)
}

func TestAfterACrashNothingOfTheHostHappens(t *testing.T) {
	w := newWorld(1)
	h := w.host("h1")
	rt := h.Runtime()
	n := &notes{}
	pid := n.spawn(t, h, "a")
	w.settle()
	worked := false
	rt.Go(func() { worked = true })
	rt.SendAfter(0, pid, "timer")
	root := rt.Engine().Root
	root.Send(pid, "held")
	b := w.ready[0]
	h.Crash()
	require.False(t, b.Deliverable())
	require.Nil(t, b.Next())
	require.Zero(t, b.UserMessageCount())
	b.Deliver()
	root.Send(pid, "late")
	root.Stop(pid)
	require.Equal(t, 1, b.user.len(), "it takes nothing more")
	root.Send(actor.NewPID("h2", "peers"), frame("out"))
	require.NoError(t, h.Receive(bytesOf(t, frame("in"))))
	rt.Go(func() { worked = true })
	rt.SendAfter(0, pid, "timer")()
	require.Len(t, w.alarms, 1, "the one from before")
	(&notes{}).spawn(t, h, "b")
	w.advance(0)
	require.False(t, worked)
	require.Len(t, n.seen, 1, "it has started, and that was all")
	require.Empty(t, w.frames)
	require.Empty(t, w.ready)
	require.Empty(t, w.alarms)
}

// A crash in the middle of a step: the rest of the handler is not heard, not
// even its panic.
func TestACrashInTheMiddleOfAStep(t *testing.T) {
	w := newWorld(1)
	h := w.host("h1")
	other := &notes{}
	otherPID := other.spawn(t, h, "other")
	n, strategy := &notes{}, &judge{}
	pid := n.spawn(t, h, "a", actor.WithGuardian(strategy))
	w.settle()
	n.on = func(ctx actor.Context) {
		h.Crash()
		ctx.Send(otherPID, "too late")
		ctx.Send(actor.NewPID("h2", "peers"), frame("too late"))
		panic("unheard")
	}
	h.Runtime().Engine().Root.Send(pid, "go")
	w.settle()
	require.Len(t, other.seen, 1)
	require.Empty(t, w.frames)
	require.Zero(t, strategy.cases)
}

// Dead letters are answered, and start nothing: the engine would count them in
// the background.
func TestWhoAsksTheDeadIsTold(t *testing.T) {
	running := runtime.NumGoroutine()
	w := newWorld(1)
	h := w.host("h1")
	n := &notes{}
	pid := n.spawn(t, h, "a")
	root := h.Runtime().Engine().Root
	nobody := h.Runtime().Engine().NewLocalPID("nobody")
	root.RequestWithCustomSender(nobody, "anybody?", pid)
	root.Send(nobody, "hello?")
	n.on = func(ctx actor.Context) {
		if _, started := ctx.Message().(*actor.Started); started {
			ctx.Watch(nobody)
		}
	}
	w.settle()
	require.Len(t, n.seen, 3)
	require.IsType(t, &actor.Terminated{}, n.seen[1])
	require.IsType(t, &actor.DeadLetterResponse{}, n.seen[2])
	require.LessOrEqual(t, runtime.NumGoroutine(), running)
}

func TestTheRuntimeIsTheWorlds(t *testing.T) {
	w := newWorld(1)
	rt := w.host("h1").Runtime()
	require.Equal(t, actors.Now{Wall: 1_000_000, Mono: 0}, rt.Now())
	require.Equal(t, "id1", rt.NewID())
	require.Equal(t, "h1", rt.Engine().Address())
	require.Equal(t, "h1", rt.Engine().ID, "otherwise random")
}
