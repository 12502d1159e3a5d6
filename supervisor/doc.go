// Package supervisor is who runs it: the one shell that runs every machine, the
// tree they live in and its strategy, placement, clock, timers and passivation.
//
// It decides when a machine steps, when its effects may leave, and what follows
// a crash. It never decides what a command means and never makes a fact of its
// own; time, ids, timers and goroutines come through the Runtime, nowhere else.
// It is the only room that knows the actor engine.
package supervisor
