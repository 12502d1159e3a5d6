package actors

import "fmt"

// Results counts the results kept for repeats.
func (s *Session) Results() int {
	if s.past == nil {
		return 0
	}
	return len(s.past.results)
}

// Deliveries is all that is unacknowledged.
func (s *Session) Deliveries() string {
	d := s.deliveries
	if d == nil {
		d = &deliveries{}
	}
	return fmt.Sprintf("%d %v %v %v", d.last, d.items, d.lists, d.pending)
}
