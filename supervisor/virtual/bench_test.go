package virtual

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// One delivery of two actors that throw one message at each other.
func BenchmarkDeliver(b *testing.B) {
	w := newWorld(1)
	h := NewHost(w, "h1")
	defer h.Release()
	rt := h.Runtime()
	var one, two *actor.PID
	ball := &struct{}{}
	player := func(other **actor.PID) *actor.Props {
		return rt.Props(func() actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if ctx.Message() == any(ball) {
					ctx.Send(*other, ball)
				}
			})
		})
	}
	one, two = rt.Engine().Root.Spawn(player(&two)), rt.Engine().Root.Spawn(player(&one))
	w.settle()
	rt.Engine().Root.Send(one, ball)
	b.ReportAllocs()
	for b.Loop() {
		box := w.ready[0]
		w.ready = w.ready[:0]
		box.Deliver()
	}
}

func BenchmarkHost(b *testing.B) {
	w := newWorld(1)
	NewHost(w, "h0").Release() // the first one makes the stock
	b.ReportAllocs()
	for b.Loop() {
		NewHost(w, "h1").Release()
	}
}
