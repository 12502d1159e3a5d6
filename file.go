package parley

import (
	"log/slog"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/journal/sqlite"
)

// openTexts opens the text index that belongs to a journal: the journal's own,
// or, where there is none or search is off, one that reads every log.
func openTexts(log journal.Journal, off bool, to *slog.Logger) (journal.Texts, error) {
	indexed, ok := log.(*sqlite.Journal)
	if !ok || off {
		return memory.NewTexts(log), nil
	}
	texts, err := indexed.OpenTexts(to)
	if err != nil {
		return nil, err // not texts: a nil *sqlite.Texts would be no nil Texts
	}
	return texts, nil
}

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
