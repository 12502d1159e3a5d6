package panics

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/supervisor"
)

// timeline is a runtime whose time stands still until it is told to pass.
type timeline interface {
	supervisor.Runtime
	Advance(time.Duration)
	// Armed has a value when a timer of a machine was set since the last look,
	// Swept when the sweeper is about to rest.
	Armed() <-chan struct{}
	Swept() <-chan struct{}
}

// clock is the production runtime but for its clocks and timers. P is the
// engine's name of an actor, which only the supervisor may import.
type clock[P any] struct {
	*supervisor.RealRuntime
	send       func(P, any)
	set, sweep chan struct{}

	mu     sync.Mutex
	now    int64
	ids    int
	alarms []*alarm[P]
}

type alarm[P any] struct {
	at  int64
	to  P
	msg any
}

const epoch = 1_700_000_000_000 // when the clock starts, wall time

func newClock[P any](rt *supervisor.RealRuntime, send func(P, any)) *clock[P] {
	return &clock[P]{RealRuntime: rt, send: send, set: make(chan struct{}, 1), sweep: make(chan struct{}, 1), now: 1000}
}

func (c *clock[P]) Now() actors.Now {
	c.mu.Lock()
	defer c.mu.Unlock()
	return actors.Now{Wall: epoch + c.now, Mono: c.now}
}

func (c *clock[P]) NewID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	return fmt.Sprint("id", c.ids)
}

// SendAfter keeps a timer until its time. A restart does not wait: how long a
// crashed actor rests is none of the table's business.
func (c *clock[P]) SendAfter(d time.Duration, to P, msg any) func() {
	what, set := fmt.Sprintf("%T", msg), c.set
	if d <= 0 || what == "*supervisor.restart" {
		c.send(to, msg)
		return func() {}
	}
	if what == "*supervisor.tick" {
		set = c.sweep
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm[P]{c.now + d.Milliseconds(), to, msg}
	c.alarms = append(c.alarms, a)
	select {
	case set <- struct{}{}:
	default:
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.alarms = slices.DeleteFunc(c.alarms, func(o *alarm[P]) bool { return o == a })
	}
}

func (c *clock[P]) Armed() <-chan struct{} { return c.set }
func (c *clock[P]) Swept() <-chan struct{} { return c.sweep }

// Advance lets time pass and fires what is due, in order. A timer that is set
// afterwards sees the new time.
func (c *clock[P]) Advance(d time.Duration) {
	c.mu.Lock()
	c.now += d.Milliseconds()
	var due []*alarm[P]
	c.alarms = slices.DeleteFunc(c.alarms, func(a *alarm[P]) bool {
		if a.at > c.now {
			return false
		}
		due = append(due, a)
		return true
	})
	slices.SortStableFunc(due, func(a, b *alarm[P]) int { return int(a.at - b.at) })
	c.mu.Unlock()
	for _, a := range due {
		c.send(a.to, a.msg)
	}
}
