package mcp

import (
	"context"
	"sync"
	"time"
)

// life is what a transport knows of one tools/call: for whom it is, and what
// became of the request that carries it. The tools see requests only as this,
// so that every transport and every revision takes one path.
type life struct {
	// session is what the endpoint names (/mcp/<session>, --session); empty:
	// the call names one, or one is minted.
	session string
	// owner is the session that owns the agent (?owner=): a child, which may not ask.
	owner string
	// workspace is the directory that the agent works in (?workspace=), recorded
	// when the session is new; empty: it has none, and sees no past work but its own.
	workspace string
	// waitMax is what the user says the client allows (?wait_max=); 0: nothing
	// was said; negative: no limit.
	waitMax time.Duration
	// minted remembers the session that was minted for this connection, where
	// connections last (stdio, and the stateful revisions). nil: they do not.
	minted *minted
	// environment is the session that the client's environment names, on stdio.
	environment string

	// gone ends when nobody can read the response any more: the request was
	// cancelled, its stream stayed closed beyond a grace, its connection was
	// deleted, or the node is stopping. Its cause says which, in words.
	gone context.Context
	// carried reports whether a client is there to read the response now. While
	// it is not, but may come back, the call can be joined as one that is lost:
	// a client that asks again has not come back. nil: it is, until gone.
	carried func() bool
	// whenWritten runs f once the response has been written in full and the
	// connection has outlived it; never, when it has not. It may be called at
	// any time before the response is returned.
	whenWritten func(f func())
}

// minted is the session that a connection got because its client named none.
type minted struct {
	mu      sync.Mutex
	session string
}

// get returns it, drawing it the first time.
func (m *minted) get(draw func() string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == "" {
		m.session = draw()
	}
	return m.session
}

type lifeKey struct{}

// withLife hands a request's life to the tools. Transports call it in a
// receiving middleware, for tools/call and for tools/list, which only looks at
// session and waitMax.
func withLife(ctx context.Context, l *life) context.Context {
	return context.WithValue(ctx, lifeKey{}, l)
}

// lifeOf returns the life of the request that ctx belongs to. A request that no
// transport has looked at lives as long as its ctx, and is never confirmed.
func lifeOf(ctx context.Context) *life {
	if l, ok := ctx.Value(lifeKey{}).(*life); ok {
		return l
	}
	return &life{gone: ctx, whenWritten: func(func()) {}}
}
