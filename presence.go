package parley

import "sync"

// presence counts who could answer: live watches and claims at the doors of
// this node. A legacy question fails without any (NO_PROVIDER, Q-047).
type presence struct {
	mu    sync.Mutex
	last  uint64
	seats map[uint64]seat
}

// seat is one watch, or one claim.
type seat struct {
	session string // empty: watches every session
	client  string // a name shared by what one client holds; empty: unnamed
	claim   string // empty for a watch
}

// take gives a seat; leave gives it back.
func (p *presence) take(s seat) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seats == nil {
		p.seats = map[uint64]seat{}
	}
	p.last++
	id := p.last
	p.seats[id] = s
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.seats, id)
	}
}

// anybody reports whether a session has an answerer.
func (p *presence) anybody(session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seats {
		if s.session == "" || s.session == session {
			return true
		}
	}
	return false
}

// others reports whether a session has an answerer beside the one that holds a
// claim. A client that gave no name is taken to have one unnamed watch beside
// its claim, as clients do: the question was found somewhere.
func (p *presence) others(session, claim string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	client, ownWatch := "", true
	for _, s := range p.seats {
		if s.claim == claim {
			client = s.client
		}
	}
	for _, s := range p.seats {
		switch {
		case s.session != "" && s.session != session, s.claim == claim && claim != "":
		case client != "" && s.client == client:
		case client == "" && s.client == "" && s.claim == "" && ownWatch:
			ownWatch = false
		default:
			return true
		}
	}
	return false
}
