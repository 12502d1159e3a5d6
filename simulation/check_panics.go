package simulation

import (
	"context"
	"log/slog"
)

// panicInvariants are about the machines' own mistakes, which their supervisor
// hides as well as it can.
var panicInvariants = []Invariant{
	{"no actor panics", "whatever is said to an actor and goes wrong around it, it does not panic; what a disk fails ends a session without one", []string{"P1", "P7"}, noActorPanics},
}

func noActorPanics(e *Evidence) {
	for _, p := range e.History.Panics {
		e.on(p.Line).fail("%s of %s panicked at %d over %s: %s", p.Actor, p.Host, p.At, p.Over, whatAndWhere(p.What, p.Stack))
	}
}

// Panic is one of an actor, or of whoever it called back.
type Panic struct {
	Host, Actor string
	Over        string   // the type of the message that it took
	What        string   // it panicked with
	Stack       []string // where, as in ProgramPanic
	Stamp
}

// complaints is a host's log, which is read for panics: a supervisor logs each
// once, where its stack is still to be seen.
type complaints struct{ h *host }

func (c complaints) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}
func (c complaints) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c complaints) WithGroup(string) slog.Handler      { return c }

func (c complaints) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "panic" {
		return nil
	}
	w := c.h.w
	p := &Panic{Host: c.h.name, Stack: stackTop()}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "actor":
			p.Actor = a.Value.String()
		case "message":
			p.Over = a.Value.String()
		case "reason":
			p.What = a.Value.String()
		}
		return true
	})
	w.sayf(p.Host, KindFault, "%s panics over %s", p.Actor, p.Over)
	p.Stamp = Stamp{w.now, w.steps, w.trace.n}
	w.History.Panics = append(w.History.Panics, p)
	return nil
}
