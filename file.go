package parley

import (
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/journal/sqlite"
)

// openJournal opens what the configuration names.
func openJournal(cfg Config) (journal.Journal, error) {
	switch {
	case cfg.Journal != nil:
		return cfg.Journal, nil
	case cfg.Memory:
		return memory.New(nil), nil
	}
	j, err := sqlite.Open(cfg.Path)
	if err != nil {
		return nil, err // not j: a nil *sqlite.Journal would be no nil Journal
	}
	return j, nil
}
