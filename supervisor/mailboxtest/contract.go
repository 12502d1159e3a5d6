// Package mailboxtest is the contract of an actor's mailbox as one suite. The
// production mailbox and the simulation's pass the same one, so that what is
// found in a simulation holds in production.
//
// It decides which order of delivery an actor may count on. It never says when
// anything is delivered: that is each mailbox's own.
package mailboxtest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// Rig is what a mailbox needs to be tested.
type Rig struct {
	Engine *actor.ActorSystem
	New    actor.MailboxProducer
	// Until lets messages be delivered until done says true, and fails the test
	// if it never does.
	Until func(t testing.TB, done func() bool)
}

// Run runs the suite; each test gets a rig of its own.
func Run(t *testing.T, rig func(t *testing.T) Rig) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, r Rig)
	}{
		{"nothing before the start", beforeStart},
		{"system messages first", systemFirst},
		{"user messages in order", inOrder},
		{"no user messages while suspended", suspended},
		{"a suspension has its place in the order", suspensionInOrder},
		{"a panic goes to the strategy", panics},
		{"a restart keeps what waits", restarts},
		{"a poison pill waits its turn", poison},
		{"a stop overtakes", stop},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, rig(t)) })
	}
}

// record is what was delivered, in order.
type record struct {
	mu   sync.Mutex
	seen []string
}

func (r *record) add(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, what)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.seen, " ")
}

// has is true once so many things were delivered.
func (r *record) has(n int) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.seen) >= n
	}
}

// invoker stands for an actor. on is called with what it is given.
type invoker struct {
	record
	box actor.Mailbox
	on  func(msg string)
}

func bare(r Rig) (*invoker, actor.Mailbox) {
	i := &invoker{box: r.New(), on: func(string) {}}
	return i, i.box
}

func (i *invoker) start() {
	i.box.RegisterHandlers(i, nil)
	i.box.Start()
}

func (i *invoker) InvokeSystemMessage(msg any) { i.take(msg) }
func (i *invoker) InvokeUserMessage(msg any)   { i.take(msg) }

func (i *invoker) take(msg any) {
	i.add(msg.(string))
	i.on(msg.(string))
}

// EscalateFailure does what the engine does: it suspends.
func (i *invoker) EscalateFailure(reason, msg any) {
	i.box.PostSystemMessage(&actor.SuspendMailbox{})
	i.add(fmt.Sprintf("%v(%v)", reason, msg))
}

func beforeStart(t *testing.T, r Rig) {
	i, box := bare(r)
	box.PostUserMessage("u1")
	box.RegisterHandlers(i, nil)
	box.PostSystemMessage("s1")
	require.Equal(t, 1, box.UserMessageCount())
	require.Empty(t, i.String())
	box.Start()
	r.Until(t, i.has(2))
	require.Equal(t, "s1 u1", i.String())
}

func systemFirst(t *testing.T, r Rig) {
	i, box := bare(r)
	i.on = func(msg string) {
		if msg == "u1" {
			box.PostUserMessage("u3")
			box.PostSystemMessage("s2")
			box.PostSystemMessage("s3")
		}
	}
	box.PostUserMessage("u1")
	box.PostUserMessage("u2")
	box.PostSystemMessage("s1")
	i.start()
	r.Until(t, i.has(6))
	require.Equal(t, "s1 u1 s2 s3 u2 u3", i.String())
}

func inOrder(t *testing.T, r Rig) {
	const n = 1000
	i, box := bare(r)
	posted := 0
	post := func() {
		for k := 0; k < 3 && posted < n; k++ {
			box.PostUserMessage(fmt.Sprint(posted))
			posted++
		}
	}
	i.on = func(string) { post() }
	post()
	i.start()
	r.Until(t, i.has(n))
	for k, got := range i.seen {
		require.Equal(t, fmt.Sprint(k), got)
	}
	require.Zero(t, box.UserMessageCount())
}

func suspended(t *testing.T, r Rig) {
	i, box := bare(r)
	i.start()
	box.PostSystemMessage(&actor.SuspendMailbox{})
	box.PostUserMessage("u1")
	box.PostUserMessage("u2")
	box.PostSystemMessage("s1")
	r.Until(t, i.has(1))
	box.PostSystemMessage("s2")
	r.Until(t, i.has(2))
	require.Equal(t, "s1 s2", i.String())
	require.Equal(t, 2, box.UserMessageCount())
	box.PostSystemMessage(&actor.ResumeMailbox{})
	r.Until(t, i.has(4))
	require.Equal(t, "s1 s2 u1 u2", i.String())
}

func suspensionInOrder(t *testing.T, r Rig) {
	i, box := bare(r)
	box.PostUserMessage("u1")
	box.PostSystemMessage("s1")
	box.PostSystemMessage(&actor.SuspendMailbox{})
	box.PostSystemMessage(&actor.ResumeMailbox{})
	box.PostSystemMessage("s2")
	box.PostSystemMessage(&actor.SuspendMailbox{})
	box.PostSystemMessage("s3")
	i.start()
	r.Until(t, i.has(3))
	require.Equal(t, "s1 s2 s3", i.String())
	require.Equal(t, 1, box.UserMessageCount())
	box.PostSystemMessage(&actor.ResumeMailbox{})
	r.Until(t, i.has(4))
	require.Equal(t, "s1 s2 s3 u1", i.String())
}

func panics(t *testing.T, r Rig) {
	i, box := bare(r)
	i.on = func(msg string) {
		if msg == "u1" || msg == "s2" {
			panic("no")
		}
	}
	box.PostUserMessage("u1")
	box.PostUserMessage("u2")
	box.PostSystemMessage("s1")
	i.start()
	r.Until(t, i.has(3))
	box.PostSystemMessage("s2") // a system message may fail as well, and the next is still heard
	box.PostSystemMessage("s3")
	r.Until(t, i.has(6))
	require.Equal(t, "s1 u1 no(u1) s2 no(s2) s3", i.String())
	box.PostSystemMessage(&actor.ResumeMailbox{})
	r.Until(t, i.has(7))
	require.Equal(t, "s1 u1 no(u1) s2 no(s2) s3 u2", i.String())
}

// strategy restarts what failed once it is told to.
type strategy struct {
	seen *record
	sup  actor.Supervisor
	who  *actor.PID
}

func (s *strategy) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, reason, msg any) {
	s.sup, s.who = sup, who
	s.seen.add(fmt.Sprintf("%v(%v)", reason, msg))
}

// spawn starts an actor that notes what it receives and panics over "boom".
func spawn(t *testing.T, r Rig, seen *record, more ...actor.PropsOption) *actor.PID {
	lives := 0
	props := actor.PropsFromProducer(func() actor.Actor {
		lives++
		life := lives
		return actor.ReceiveFunc(func(ctx actor.Context) {
			msg, text := ctx.Message().(string)
			if !text {
				msg = strings.TrimPrefix(fmt.Sprintf("%T", ctx.Message()), "*actor.")
			}
			if msg == "boom" {
				panic("no")
			}
			seen.add(fmt.Sprintf("%d:%s", life, msg))
		})
	}, append(more, actor.WithMailbox(r.New))...)
	pid, err := r.Engine.Root.SpawnNamed(props, "subject")
	require.NoError(t, err)
	return pid
}

func restarts(t *testing.T, r Rig) {
	var seen record
	s := &strategy{seen: &seen}
	pid := spawn(t, r, &seen, actor.WithGuardian(s))
	for _, msg := range []string{"a", "boom", "b", "c"} {
		r.Engine.Root.Send(pid, msg)
	}
	r.Until(t, seen.has(3))
	require.Equal(t, "1:Started 1:a no(boom)", seen.String())
	s.sup.RestartChildren(s.who)
	r.Until(t, seen.has(7))
	require.Equal(t, "1:Started 1:a no(boom) 1:Restarting 2:Started 2:b 2:c", seen.String())
}

func poison(t *testing.T, r Rig) {
	var seen record
	pid := spawn(t, r, &seen)
	r.Engine.Root.Send(pid, "a")
	r.Engine.Root.Poison(pid)
	r.Engine.Root.Send(pid, "b")
	r.Until(t, seen.has(4))
	require.Equal(t, "1:Started 1:a 1:Stopping 1:Stopped", seen.String())
	_, there := r.Engine.ProcessRegistry.GetLocal(pid.Id)
	require.False(t, there)
}

// A suspended actor does not hear what waits, but it can be stopped.
func stop(t *testing.T, r Rig) {
	var seen record
	pid := spawn(t, r, &seen, actor.WithGuardian(&strategy{seen: &seen}))
	r.Engine.Root.Send(pid, "boom")
	r.Engine.Root.Send(pid, "a")
	r.Until(t, seen.has(2))
	r.Engine.Root.Stop(pid)
	r.Until(t, seen.has(4))
	require.Equal(t, "1:Started no(boom) 1:Stopping 1:Stopped", seen.String())
}
