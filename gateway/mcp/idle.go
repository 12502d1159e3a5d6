package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// use is what is known of one connection of the stateful revisions.
type use struct {
	open int    // requests that it carries now
	last uint64 // when it began or ended one, in the order of all
}

// using says that a connection carries a request, until done.
func (t *transports) using(id string) (done func()) {
	if id == "" {
		return func() {}
	}
	note := func(by int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		u := t.uses[id]
		if u == nil {
			u = &use{}
			t.uses[id] = u
		}
		t.turns++
		u.open, u.last = u.open+by, t.turns
	}
	note(1)
	return func() { note(-1) }
}

// makeRoom reports whether one more connection may be opened. When all are
// taken, the one that has been idle longest is closed; its client is told that
// it is unknown when it comes back, and begins a new one.
func (t *transports) makeRoom() bool {
	open := map[string]*sdk.ServerSession{}
	for s := range t.server.Sessions() {
		if s.ID() != "" {
			open[s.ID()] = s
		}
	}
	idlest := t.idlest(open)
	if len(open) < t.sessionsMax {
		return true
	}
	if idlest == nil {
		return false
	}
	_ = idlest.Close() // it waits for nothing
	return true
}

// idlest is the connection that has carried no request for longest; nil: all
// carry one, or have only begun. It forgets those that are closed.
func (t *transports) idlest(open map[string]*sdk.ServerSession) *sdk.ServerSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := map[string]bool{} // a client may come back for these
	for _, x := range t.exchanges {
		held[x.transport] = true
	}
	var found *sdk.ServerSession
	var last uint64
	for id, u := range t.uses {
		switch {
		case open[id] == nil && u.open == 0:
			delete(t.uses, id)
		case open[id] != nil && u.open == 0 && !held[id] && (found == nil || u.last < last):
			found, last = open[id], u.last
		}
	}
	return found
}
