package supervisor

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is the production mailbox. A node holds hundreds of thousands of
// parked actors, so an idle one is a mutex, a nil pointer, the invoker and three
// bools; its queues come from a pool when the first message arrives and go back
// when it is idle again. The engine's own mailbox costs twice as much.
//
// It keeps the engine's contract: system messages first; user messages in order
// and not while suspended; a panic goes to EscalateFailure, then delivery goes on.
// It does not unpack message batches: nobody here sends any.
type mailbox struct {
	mu        sync.Mutex
	queues    *queues // nil when nothing waits and nothing runs
	invoker   actor.MessageInvoker
	started   bool
	running   bool // a loop owns the delivery
	suspended bool
}

var _ actor.Mailbox = (*mailbox)(nil)

func newMailbox() actor.Mailbox { return new(mailbox) }

// RegisterHandlers is called by the engine after the actor's name is taken: a
// message may arrive before it, so nothing runs until Start.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.mu.Lock()
	m.invoker = invoker
	m.mu.Unlock()
}

// Start begins delivery.
func (m *mailbox) Start() {
	m.mu.Lock()
	m.started = true
	m.wake()
	m.mu.Unlock()
}

// PostUserMessage queues a message and never blocks.
func (m *mailbox) PostUserMessage(msg any) {
	m.mu.Lock()
	m.ready().user.push(msg)
	m.wake()
	m.mu.Unlock()
}

// PostSystemMessage queues a message ahead of all user messages.
func (m *mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	m.ready().system.push(msg)
	m.wake()
	m.mu.Unlock()
}

// UserMessageCount is how many user messages wait.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queues == nil {
		return 0
	}
	return m.queues.user.len()
}

func (m *mailbox) ready() *queues {
	if m.queues == nil {
		m.queues = queuePool.Get().(*queues)
	}
	return m.queues
}

// wake starts a loop when there is something to deliver and none runs.
func (m *mailbox) wake() {
	if m.running || !m.started || !m.deliverable() {
		return
	}
	m.running = true
	crew.run(m)
}

func (m *mailbox) deliverable() bool {
	return m.queues != nil && (m.queues.system.len() > 0 || !m.suspended && m.queues.user.len() > 0)
}

// crew are the goroutines that deliver. One that has emptied a mailbox waits for
// the next, for a fresh goroutine has to grow its stack anew through all layers
// of the engine: measured, that was a tenth of all the time spent. A handler may
// block (it should not), so there is no upper bound, only one on those that wait.
var crew = workers{jobs: make(chan *mailbox), idleMax: int32(4 * runtime.GOMAXPROCS(0))}

type workers struct {
	jobs    chan *mailbox // unbuffered: taken only by one that waits
	idle    atomic.Int32
	idleMax int32
}

func (w *workers) run(m *mailbox) {
	select {
	case w.jobs <- m:
	default:
		go w.work(m)
	}
}

func (w *workers) work(m *mailbox) {
	for {
		m.loop()
		if w.idle.Add(1) > w.idleMax {
			w.idle.Add(-1)
			return
		}
		m = <-w.jobs
		w.idle.Add(-1)
	}
}

func (m *mailbox) loop() {
	for m.run() {
	}
}

// run delivers until nothing is left (false) or a handler panicked (true: go on).
func (m *mailbox) run() (again bool) {
	var msg any
	defer func() {
		if r := recover(); r != nil {
			m.invoker.EscalateFailure(r, msg)
			again = true
		}
	}()
	for {
		var system bool
		if msg, system = m.next(); msg == nil {
			return false
		}
		if system {
			m.invoker.InvokeSystemMessage(msg)
		} else {
			m.invoker.InvokeUserMessage(msg)
		}
	}
}

// next takes the next message to deliver. Suspending and resuming are the
// mailbox's own business and are done here, in their place in the order.
func (m *mailbox) next() (msg any, system bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.deliverable() {
		if m.queues.system.len() == 0 {
			return m.queues.user.pop(), false
		}
		switch msg := m.queues.system.pop(); msg.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			return msg, true
		}
	}
	m.running = false
	if q := m.queues; q != nil && q.user.len() == 0 {
		m.queues = nil
		q.recycle()
	}
	return nil, false
}

// queues are the two queues of a mailbox that has something to do.
type queues struct{ system, user fifo }

var queuePool = sync.Pool{New: func() any { return new(queues) }}

// queueKeptMax bounds what a pooled queue may hold on to: one burst must not
// keep its memory for ever.
const queueKeptMax = 1024

func (q *queues) recycle() {
	if cap(q.user.items) > queueKeptMax {
		q.user = fifo{}
	}
	queuePool.Put(q)
}

// fifo is a queue in a slice. The front moves; the slice is reused once empty,
// and compacted when the part already delivered is the larger one.
type fifo struct {
	items []any
	front int
}

func (f *fifo) len() int { return len(f.items) - f.front }

func (f *fifo) push(msg any) {
	if f.front > 64 && f.front > len(f.items)/2 && len(f.items) == cap(f.items) {
		n := copy(f.items, f.items[f.front:])
		clear(f.items[n:])
		f.items, f.front = f.items[:n], 0
	}
	f.items = append(f.items, msg)
}

func (f *fifo) pop() any {
	msg := f.items[f.front]
	f.items[f.front] = nil
	if f.front++; f.front == len(f.items) {
		f.items, f.front = f.items[:0], 0
	}
	return msg
}
