// Package virtual runs supervisor trees in a world that somebody else owns: a
// supervisor.Runtime for one goroutine, in which every delivery, every timer,
// every piece of background work and every message to another host is handed to
// a World and happens when that World says so.
//
// It decides what one step is: one message to one actor, system messages first
// and user messages not while the actor is suspended, a panic going to the
// actor's strategy, exactly as in production. It decides how a host begins (with
// an actor system that nobody has used) and what a crash of it means (nothing of
// it happens any more).
//
// It never chooses what happens next, never reads a clock, never draws a number,
// never starts a goroutine and never lets a pointer cross from one host to
// another: what crosses is bytes.
package virtual
