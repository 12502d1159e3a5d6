package supervisor

import (
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/supervisor/mailboxtest"
)

func TestMailboxKeepsTheContract(t *testing.T) {
	mailboxtest.Run(t, func(t *testing.T) mailboxtest.Rig {
		return mailboxtest.Rig{
			Engine: newEngine(), New: newMailbox,
			Until: func(t testing.TB, done func() bool) { require.Eventually(t, done, 20*time.Second, time.Millisecond) },
		}
	})
}

// collector is an invoker that keeps what it was given and panics when told to.
type collector struct {
	mu        sync.Mutex
	box       *mailbox
	got       []int
	failures  int
	done      chan struct{}
	want      int
	busy      bool
	entangled bool
}

func (c *collector) InvokeSystemMessage(msg any) { c.take(msg) }
func (c *collector) InvokeUserMessage(msg any)   { c.take(msg) }

func (c *collector) take(msg any) {
	c.mu.Lock()
	c.entangled = c.entangled || c.busy
	c.busy = true
	n := msg.(int)
	c.got = append(c.got, n)
	c.busy = false
	full := len(c.got) == c.want
	c.mu.Unlock()
	if full {
		close(c.done)
	}
	if n%1000 == 999 {
		panic("now and then")
	}
}

// EscalateFailure does what the engine does: it suspends, and somebody else
// resumes later.
func (c *collector) EscalateFailure(any, any) {
	c.failures++
	c.box.PostSystemMessage(&actor.SuspendMailbox{})
	go c.box.PostSystemMessage(&actor.ResumeMailbox{})
}

func TestMailboxUnderLoadLosesNothingAndKeepsOrder(t *testing.T) {
	const senders, each = 8, 20_000
	box := newMailbox().(*mailbox)
	c := &collector{box: box, done: make(chan struct{}), want: senders * each}
	box.RegisterHandlers(c, nil)
	box.Start()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				box.PostUserMessage(s*each + i)
			}
		})
	}
	wg.Wait()
	<-c.done
	last := make([]int, senders)
	for _, n := range c.got {
		s := n / each
		if n%each < last[s] {
			t.Fatalf("sender %d: %d came after %d", s, n%each, last[s])
		}
		last[s] = n % each
	}
	if c.entangled {
		t.Fatal("two deliveries at once")
	}
	equal(t, "messages", len(c.got), senders*each)
}

func TestMailboxGivesSystemMessagesFirstAndNothingWhileSuspended(t *testing.T) {
	box := newMailbox().(*mailbox)
	c := &collector{box: box, done: make(chan struct{}), want: 4}
	box.PostUserMessage(2) // before Start, as a stale sender may
	box.PostUserMessage(3)
	box.PostSystemMessage(0)
	box.PostSystemMessage(&actor.SuspendMailbox{})
	box.PostSystemMessage(1)
	equal(t, "waiting", box.UserMessageCount(), 2)
	box.RegisterHandlers(c, nil)
	box.Start()
	for { // the loop has come to rest once it no longer runs
		box.mu.Lock()
		running, waiting := box.running, box.queues.user.len()
		box.mu.Unlock()
		if !running {
			equal(t, "held back", waiting, 2)
			equal(t, "delivered", len(c.got), 2)
			break
		}
	}
	box.PostSystemMessage(&actor.ResumeMailbox{})
	<-c.done
	for i, n := range c.got {
		equal(t, "order", n, i)
	}
}

func TestMailboxHoldsNothingWhenIdle(t *testing.T) {
	box := newMailbox().(*mailbox)
	c := &collector{box: box, done: make(chan struct{}), want: 3}
	box.RegisterHandlers(c, nil)
	box.Start()
	for i := range 3 {
		box.PostUserMessage(i)
	}
	<-c.done
	for {
		box.mu.Lock()
		running, queues := box.running, box.queues
		box.mu.Unlock()
		if !running {
			equal(t, "queues", queues, nil)
			return
		}
	}
}

func TestFifoKeepsOrderAndGivesMemoryBack(t *testing.T) {
	var f fifo
	next, want := 0, 0
	for round := range 2000 {
		for range 3 + round%5 {
			f.push(next)
			next++
		}
		for range 3 + (round+2)%5 {
			if f.len() == 0 {
				break
			}
			equal(t, "order", f.pop().(int), want)
			want++
		}
	}
	for range 200 { // more than half of what it holds is behind it when it is full
		f.push(next)
		next++
	}
	for range 150 {
		equal(t, "order", f.pop().(int), want)
		want++
	}
	for range 1000 {
		f.push(next)
		next++
	}
	for f.len() > 0 {
		equal(t, "order", f.pop().(int), want)
		want++
	}
	equal(t, "all", want, next)
	if cap(f.items) > 4096 {
		t.Fatalf("the queue grew to %d slots", cap(f.items))
	}
}
