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
	// ask asks the kernel about the connection.
	ask func() traffic

	mu      sync.Mutex
	closed  bool
	waiting map[*arrival]struct{}
}

// traffic is what the kernel says of a connection.
type traffic struct {
	// known is false where the system does not tell; the rest is then 0.
	known bool
	// unread are the bytes that the other machine has not taken yet.
	unread int
	// received counts the bytes that have come in over the connection's life.
	received uint64
}

// arrival is a response that was written, and may have arrived.
type arrival struct {
	*exchange
	// before is what the kernel said when the response was finished.
	before traffic
	stop   func()
}

type linkKey struct{}

// connected follows a connection from its start.
func (t *transports) connected(ctx context.Context, c net.Conn) context.Context {
	l := &link{timers: t.timers, ask: func() traffic { return t.trafficOf(c) }, waiting: map[*arrival]struct{}{}}
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
// connection has carried a next request, or has stayed open for a while and the
// other machine has taken them; that they were not read, if it closes before.
func (l *link) outlives(x *exchange) {
	before := l.ask()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		x.unread(errUnread)
		return
	}
	if !x.underway() {
		return
	}
	a := &arrival{exchange: x, before: before}
	l.waiting[a] = struct{}{}
	l.watch(a)
}

// watch looks at a response after a while. l.mu is held.
func (l *link) watch(a *arrival) {
	a.stop = l.timers.AfterFunc(outliveAfter, func() { l.outlived(a) })
}

// outlived: the connection is still open. What lies in a buffer of this machine
// has not arrived, for however long.
func (l *link) outlived(a *arrival) {
	stuck := l.ask().unread > 0
	l.mu.Lock()
	_, still := l.waiting[a]
	if still && stuck {
		l.watch(a)
		l.mu.Unlock()
		return
	}
	delete(l.waiting, a)
	l.mu.Unlock()
	if still {
		a.arrived()
	}
}

// proved: a next request came, which a client of HTTP/1.1 sends once it has
// read the response before. It is served after what this proves is on record,
// so that it does not see that response as one that was lost. Over HTTP/2
// requests do not wait for each other, and prove nothing.
func proved(r *http.Request) {
	l, ours := r.Context().Value(linkKey{}).(*link)
	if !ours || r.ProtoMajor != 1 {
		return
	}
	now := l.ask()
	for _, a := range l.take(func(a *arrival) bool { return now.follows(a.before) }) {
		a.arrived()
	}
}

// follows reports whether a request that is there now was sent after a response
// that ended then. One that had come in by then (pipelined) was not, nor was one
// whose sender has still not taken the response. Where the system does not tell,
// every request was; and one of which a part had come in by then is not told from
// one that had not.
func (now traffic) follows(then traffic) bool {
	return !now.known || !then.known || now.received > then.received && now.unread == 0
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, a := range l.take(func(*arrival) bool { return true }) {
		a.unread(errUnread)
	}
}

// take takes responses off the list of those that wait.
func (l *link) take(which func(*arrival) bool) []*arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*arrival
	for a := range l.waiting {
		if which(a) {
			a.stop()
			delete(l.waiting, a)
			all = append(all, a)
		}
	}
	return all
}

// confirm decides whether the responses that r carried have arrived. Without the
// hooks of ConnContext nothing more will be known.
func confirm(r *http.Request, x *exchange) {
	l, ours := r.Context().Value(linkKey{}).(*link)
	if !ours {
		go x.arrived()
		return
	}
	l.outlives(x)
}
