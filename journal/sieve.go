package journal

import (
	"github.com/parleyrun/parley/sessionlog"
)

// Sieve is what a query lets through. Make one with NewSieve; it must not be
// used by two goroutines.
type Sieve struct {
	q                         TextQuery
	cwds, ids, parents, types map[string]bool
	surfaces                  [3]bool
}

// NewSieve prepares the filters of a query.
func NewSieve(q TextQuery) *Sieve {
	s := &Sieve{q: q, cwds: set(q.Sessions.CWDs), ids: set(q.Sessions.IDs), parents: set(q.Sessions.Parents), types: set(q.Events.Types)}
	for _, c := range q.Events.Surfaces {
		s.surfaces[c] = true
	}
	return s
}

func set(list []string) map[string]bool {
	if list == nil {
		return nil
	}
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}

// Live reports whether a session is live to the query.
func (s *Sieve) Live(session string) bool { return s.q.Live != nil && s.q.Live(session) }

// Session reports whether a session is searched.
func (s *Sieve) Session(h sessionlog.Header) bool {
	f := s.q.Sessions
	switch {
	case s.cwds != nil && !s.cwds[h.CWD], !f.Created.Hold(h.CreatedAt), !s.name(h.ID):
		return false
	case s.parents == nil && !f.Roots:
		return true
	case h.ParentSession == "":
		return f.Roots
	}
	return s.parents[h.ParentSession]
}

// name judges a session by its id alone.
func (s *Sieve) name(id string) bool {
	f := s.q.Sessions
	return (s.q.In == "" || id == s.q.In) && (s.ids == nil || s.ids[id]) && (f.Except == "" || id != f.Except) && (!f.LiveOnly || s.Live(id))
}

// Unknown reports whether a session whose header cannot be read would be
// searched. What cannot be compared does not hold.
func (s *Sieve) Unknown(id string) bool {
	f := s.q.Sessions
	return s.cwds == nil && f.Created == Bounds{} && s.parents == nil && !f.Roots && s.name(id)
}

// Event reports whether an event of a session that is searched may be a hit.
func (s *Sieve) Event(typ string, seq, time int64, surface sessionlog.Class) bool {
	f := s.q.Events
	return f.Seq.Hold(seq) && f.Time.Hold(time) && (s.types == nil || s.types[typ]) && (f.Surfaces == nil || s.surfaces[surface])
}
