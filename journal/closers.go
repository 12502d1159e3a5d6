package journal

import (
	"github.com/parleyrun/parley/sessionlog"
)

// Closers returns the events that would close the open turn of a session that
// was cut off (S-112), stamped behind its last event; nil when none is open.
// Events before the turn's own turn/start may be left out.
func Closers(h sessionlog.Header, events []sessionlog.Event) []sessionlog.Event {
	if len(events) == 0 {
		return nil
	}
	progress := sessionlog.NewProgress(h.Version)
	for _, ev := range sessionlog.UpgradeAll(h, events) {
		progress = progress.Fold(ev)
	}
	last := events[len(events)-1]
	return progress.RepairWithSubCalls(sessionlog.CauseInterrupted, last.Seq+1, last.Time)
}
