package virtual

import "github.com/asynkron/protoactor-go/actor"

// Box is one actor's mailbox. It keeps the contract of the production mailbox,
// one message at a time: system messages first; user messages in order and not
// while suspended; a panic goes to EscalateFailure.
type Box struct {
	host         *Host
	name         string
	invoker      actor.MessageInvoker
	system, user queue
	started      bool
	suspended    bool
	announced    bool // the world knows that it can deliver
}

var _ actor.Mailbox = (*Box)(nil)

// Host is where the actor runs.
func (b *Box) Host() *Host { return b.host }

// Name is the actor's name, such as "s/demo/wait/c1~1.1".
func (b *Box) Name() string { return b.name }

// Deliverable tells whether Deliver would deliver anything: never again once the
// host has crashed. What waits behind the end of an actor is delivered to nobody.
func (b *Box) Deliverable() bool {
	return b.started && !b.host.gone && (b.system.len() > 0 || !b.suspended && b.user.len() > 0)
}

// Next is what Deliver would deliver, without the engine's envelope; nil if
// nothing.
func (b *Box) Next() any {
	switch {
	case !b.Deliverable():
		return nil
	case b.system.len() > 0:
		return b.system.first()
	default:
		return actor.UnwrapEnvelopeMessage(b.user.first())
	}
}

// Deliver delivers exactly one message, or none if nothing is deliverable. When
// the handler panics, what the actor's strategy does about it is part of the step.
func (b *Box) Deliver() {
	if !b.Deliverable() {
		return
	}
	var msg any
	defer func() {
		if reason := recover(); reason != nil && !b.host.gone {
			b.invoker.EscalateFailure(reason, msg)
		}
		b.announced = b.Deliverable()
	}()
	if b.system.len() > 0 {
		msg = b.system.pop()
		b.switches()
		b.invoker.InvokeSystemMessage(msg)
		return
	}
	msg = b.user.pop()
	b.invoker.InvokeUserMessage(msg)
}

// RegisterHandlers is called by the engine once the actor's name is taken.
func (b *Box) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	b.invoker = invoker
	if ctx, ok := invoker.(interface{ Self() *actor.PID }); ok {
		b.name = ctx.Self().GetId()
	}
}

// Start begins delivery.
func (b *Box) Start() {
	b.started = true
	b.wake()
}

// PostUserMessage queues a message.
func (b *Box) PostUserMessage(msg any) {
	if b.host.gone {
		return
	}
	b.user.push(msg)
	b.wake()
}

// PostSystemMessage queues a message ahead of all user messages.
func (b *Box) PostSystemMessage(msg any) {
	if b.host.gone {
		return
	}
	b.system.push(msg)
	b.switches()
	b.wake()
}

// UserMessageCount is how many user messages wait.
func (b *Box) UserMessageCount() int {
	if b.host.gone {
		return 0
	}
	return b.user.len()
}

// switches obeys the suspensions and resumptions that are first in line: they
// are the mailbox's own business and no step of the world.
func (b *Box) switches() {
	for b.system.len() > 0 {
		switch b.system.first().(type) {
		case *actor.SuspendMailbox:
			b.suspended = true
		case *actor.ResumeMailbox:
			b.suspended = false
		default:
			return
		}
		b.system.pop()
	}
}

// wake tells the world when there is something to deliver and it does not know.
func (b *Box) wake() {
	if b.announced || !b.Deliverable() {
		return
	}
	b.announced = true
	b.host.world.Ready(b)
}

// queue is a queue in a slice, which is used again once it is empty.
type queue struct {
	items []any
	front int
}

func (q *queue) len() int   { return len(q.items) - q.front }
func (q *queue) first() any { return q.items[q.front] }

func (q *queue) push(msg any) {
	if q.front > 64 && q.front > len(q.items)/2 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.front:])
		clear(q.items[n:])
		q.items, q.front = q.items[:n], 0
	}
	q.items = append(q.items, msg)
}

func (q *queue) pop() any {
	msg := q.items[q.front]
	q.items[q.front] = nil
	if q.front++; q.front == len(q.items) {
		q.items, q.front = q.items[:0], 0
	}
	return msg
}
