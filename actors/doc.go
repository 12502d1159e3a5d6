// Package actors is what is decided: the session, its inbox and waits, the
// client's claim, the door and the sweeper, each a deterministic machine, and
// the pure rules of a question call that the session embeds.
//
// Machines decide who wins, what is recorded and who is told. They never do
// I/O, read a clock, draw ids or dice, start a goroutine or know the engine
// that runs them: time, ids and answers come in as inputs, everything else
// goes out as effects. The purity test holds this.
package actors
