package mcp

import (
	"context"
	"log/slog"
	"slices"
)

// clientFaults are what the SDK logs as errors and answers as such: a client
// did something out of order, and has been told. They are no trouble of ours.
var clientFaults = []string{
	"method invalid during initialization", "method removed in the new protocol",
	"duplicate initialize request", "duplicate initialized notification", "initialized before initialize",
}

// hushed is a log for the SDK, in which the faults of clients are details.
type hushed struct{ slog.Handler }

// Handle implements slog.Handler.
func (q hushed) Handle(ctx context.Context, r slog.Record) error {
	if slices.Contains(clientFaults, r.Message) {
		r.Level = slog.LevelDebug
	}
	if !q.Enabled(ctx, r.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q hushed) WithAttrs(attrs []slog.Attr) slog.Handler { return hushed{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q hushed) WithGroup(name string) slog.Handler { return hushed{q.Handler.WithGroup(name)} }
