package mcp

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// link is one connection of our own server: whether a response has arrived can
// only be told from what becomes of the connection that carried it.
type link struct {
	timers timers

	mu      sync.Mutex
	closed  bool
	waiting map[*arrival]struct{}
}

// arrival is a response that was written, and may have arrived.
type arrival struct {
	*exchange
	stop func()
}

type linkKey struct{}

// connected follows a connection from its start.
func (t *transports) connected(ctx context.Context, c net.Conn) context.Context {
	l := &link{timers: t.timers, waiting: map[*arrival]struct{}{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links[c] = l
	return context.WithValue(ctx, linkKey{}, l)
}

// changed notes what becomes of a connection.
func (t *transports) changed(c net.Conn, state http.ConnState) {
	t.mu.Lock()
	l := t.links[c]
	if state == http.StateClosed || state == http.StateHijacked {
		delete(t.links, c)
	}
	t.mu.Unlock()
	if l == nil {
		return
	}
	if state == http.StateClosed || state == http.StateHijacked {
		l.close()
	}
}

// outlives says that the responses of an exchange have arrived once the
// connection has carried a next request or has stayed open for a while; that
// they were not read, if it closes before.
func (l *link) outlives(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		x.unread(errUnread)
		return
	}
	if !x.underway() {
		return
	}
	a := &arrival{exchange: x}
	l.waiting[a] = struct{}{}
	a.stop = l.timers.AfterFunc(outliveAfter, func() { l.outlived(a) })
}

func (l *link) outlived(a *arrival) {
	l.mu.Lock()
	_, still := l.waiting[a]
	delete(l.waiting, a)
	l.mu.Unlock()
	if still {
		a.arrived()
	}
}

// proved: a next request came, which a client sends once it has read the
// response before. It is served after what this proves is on record, so that it
// does not see that response as one that was lost.
func proved(r *http.Request) {
	l, ours := r.Context().Value(linkKey{}).(*link)
	if !ours {
		return
	}
	for _, a := range l.take() {
		a.arrived()
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, a := range l.take() {
		a.unread(errUnread)
	}
}

func (l *link) take() []*arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*arrival
	for a := range l.waiting {
		a.stop()
		all = append(all, a)
	}
	clear(l.waiting)
	return all
}

// confirm decides whether the responses that r carried have arrived.
func confirm(r *http.Request, x *exchange) {
	l, ours := r.Context().Value(linkKey{}).(*link)
	if !ours || r.ProtoMajor != 1 { // a stream of HTTP/2 ends by itself: its context would have told
		go x.arrived()
		return
	}
	l.outlives(x)
}
