package actors

import "github.com/parleyrun/parley/sessionlog"

// past is what a session remembers of what is over, so that a repeat gets the
// outcome of the first and a loser learns who won. It is folded; nil is empty,
// for most parked sessions have none.
type past struct {
	settled  []sessionlog.SettledRecord
	at       []int64        // when each was settled; wall milliseconds
	accepted map[string]int // submission id → its latest record
	winners  map[string]int // call id → its latest settlement
	results  map[attemptKey]result
	order    []attemptKey // of results, oldest first
}

// attemptKey is one attempt of a call.
type attemptKey struct{ attempt, call string }

// result is a foreground result, kept so that a repeated ask gets it again.
type result struct {
	asks uint64
	res  sessionlog.Result
}

// resultsMax bounds how many results a session keeps at hand for repeats.
const resultsMax = 512

func (p *past) settle(r sessionlog.SettledRecord, at int64) {
	i := len(p.settled)
	p.settled, p.at = append(p.settled, r), append(p.at, at)
	if p.accepted == nil {
		p.accepted, p.winners = map[string]int{}, map[string]int{}
	}
	if r.SubmissionID != "" {
		p.accepted[r.SubmissionID] = i
	}
	if r.CallID != "" {
		p.winners[r.CallID] = i
	}
}

func (p *past) keep(key attemptKey, r result) {
	if p.results == nil {
		p.results = map[attemptKey]result{}
	}
	if _, again := p.results[key]; !again {
		p.order = append(p.order, key)
	}
	p.results[key] = r
	if len(p.order) > resultsMax {
		for _, old := range p.order[:resultsMax/2] {
			delete(p.results, old)
		}
		p.order = append([]attemptKey(nil), p.order[resultsMax/2:]...)
	}
}

// winner is the latest settlement of a call.
func (p *past) winner(call string) (sessionlog.SettledRecord, bool) {
	if p == nil {
		return sessionlog.SettledRecord{}, false
	}
	i, ok := p.winners[call]
	if !ok {
		return sessionlog.SettledRecord{}, false
	}
	return p.settled[i], true
}

// submission is the latest record of an accepted submission.
func (p *past) submission(id string) (sessionlog.SettledRecord, bool) {
	if p == nil {
		return sessionlog.SettledRecord{}, false
	}
	i, ok := p.accepted[id]
	if !ok {
		return sessionlog.SettledRecord{}, false
	}
	return p.settled[i], true
}

// saidAt is when a queued message was accepted; 0: unknown.
func (p *past) saidAt(message string) int64 {
	if p == nil {
		return 0
	}
	for i := len(p.settled) - 1; i >= 0; i-- { // what waits is young
		if p.settled[i].MessageID == message {
			return p.at[i]
		}
	}
	return 0
}

// of returns the records about a queued message, oldest first.
func (p *past) of(message string) []sessionlog.SettledRecord {
	var out []sessionlog.SettledRecord
	if p != nil {
		for _, r := range p.settled {
			if r.MessageID == message {
				out = append(out, r)
			}
		}
	}
	return out
}

func (p *past) result(attempt, call string) (result, bool) {
	if p == nil {
		return result{}, false
	}
	r, ok := p.results[attemptKey{attempt, call}]
	return r, ok
}
