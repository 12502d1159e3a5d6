package mcp

import "time"

// clock is the time that calls wait by; tests have their own.
type clock interface {
	Now() time.Time
	// After sends once d has passed; stop lets it go.
	After(d time.Duration) (c <-chan time.Time, stop func())
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) After(d time.Duration) (c <-chan time.Time, stop func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
