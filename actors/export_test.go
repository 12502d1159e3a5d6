package actors

// Results counts the results kept for repeats.
func (s *Session) Results() int {
	if s.past == nil {
		return 0
	}
	return len(s.past.results)
}
