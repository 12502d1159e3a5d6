package mcp

import "time"

// timers is what transports do later; tests have their own.
type timers interface {
	// AfterFunc runs f on a goroutine of its own once d has passed; stop
	// prevents it, unless it has begun.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type wallTimers struct{}

func (wallTimers) AfterFunc(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
