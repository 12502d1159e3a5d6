package supervisor

import (
	"log/slog"
	"testing"
)

// A full disk makes every due session fail: the log says so, and does not fill the disk itself.
func TestAFailingJournalDoesNotFloodTheLog(t *testing.T) {
	var c complaints
	logs := &logBook{}
	passed := 0
	for mono := range int64(3000) {
		if c.pass(mono, slog.New(logs)) {
			passed++
		}
	}
	equal(t, "lines let through in three seconds", passed, 3*complaintsMax)
	equal(t, "and how many were held back", len(logs.of("held back", "lines")), 2)
}
