package parley

import (
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// openFile opens the SQLite journal.
func openFile(path string) (journal.Journal, error) {
	return nil, messages.Refuse(messages.JournalIO, "%s: file journals are not wired yet", path)
}
