package actors

import "github.com/parleyrun/parley/sessionlog"

// Rows is the journal's index of the session: what an import records with a log
// that was not written here.
func (s *Session) Rows() []sessionlog.Row { return s.fold.rows() }
