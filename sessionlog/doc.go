// Package sessionlog is the room "what is written": the record of a session and everything it says.
// It decides how an event is read and encoded, which logs are sound, what a log means (its model surface,
// its inbox, its open turn, its questions), and what repair adds to a log that was cut short.
// Every fold is a value: folding returns a new value and never changes the old one. The one exception is SurfaceFold,
// whose state grows with the log.
// It never does I/O beyond the reader and writer it is handed, and knows no clock, no dice and no goroutine.
package sessionlog
