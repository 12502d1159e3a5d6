package notify

import (
	"sync"
	"testing"
)

func TestCallbacksRunInOrderAndBeforeWaitReturns(t *testing.T) {
	var c Callbacks
	var got []int
	for i := range 1000 {
		c.Run(func() { got = append(got, i) }) // one goroutine at a time, or -race says so
		if i == 500 {
			c.Wait()
		}
	}
	c.Wait()
	for i, n := range got {
		if i != n {
			t.Fatalf("callback %d ran in place %d", n, i)
		}
	}
	if len(got) != 1000 {
		t.Fatalf("%d ran", len(got))
	}
}

func TestACallbackMayHandOverAnother(t *testing.T) {
	var c Callbacks
	done := make(chan struct{})
	c.Run(func() { c.Run(func() { close(done) }) })
	<-done
	c.Wait()
	c.Run()
	c.Wait()
}

// Whoever waits below the position is woken, however the two come together.
func TestMovedWakesEveryWaiter(t *testing.T) {
	var m Moved
	var all sync.WaitGroup
	for i := range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			<-m.After(m.Last())
			if i%2 == 0 {
				m.Advance(m.Last() + 1)
			}
			<-m.After(10)
		}()
	}
	for at := range 20 {
		m.Advance(m.Last() + 1)
		_ = at
	}
	m.Advance(1000)
	m.Advance(999) // never back
	if m.Last() < 1000 {
		t.Fatalf("moved back to %d", m.Last())
	}
	m.Close()
	all.Wait()
	if len(m.waiting) != 0 {
		t.Fatalf("%d waiters were forgotten", len(m.waiting))
	}
}
