package actors

import "github.com/parleyrun/parley/sessionlog"

// Rows is the session's index as its fold gives it.
func (s *Session) Rows() []sessionlog.Row { return s.fold.rows() }

// Results counts the results kept for repeats.
func (s *Session) Results() int {
	if s.past == nil {
		return 0
	}
	return len(s.past.results)
}
