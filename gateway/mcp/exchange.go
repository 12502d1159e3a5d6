package mcp

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Why nobody can read a response any more, in words for the log.
var (
	errCancelled = errors.New("the client cancelled the request")
	errClosed    = errors.New("the client closed the request")
	errDeleted   = errors.New("the client ended its connection")
	errEOF       = errors.New("the client closed its end")
	errStopping  = errors.New("the node is stopping")
	errAbandoned = errors.New("the request had ended before its call began")
	errUnread    = errors.New("the connection closed before the response was known to be read")
	errThrown    = errors.New("the client gave up the call while its response was on the way")
	errPipe      = errors.New("the program that served the pipe is stopping")
)

// address is for whom an endpoint speaks, and what it says of its client.
type address struct {
	session, owner string
	workspace      string
	waitMax        time.Duration
	environment    string
}

// exchange is one message of a client with calls of tools in it, and what
// becomes of the responses. In the stateful revisions it outlives its POST: the
// client may come back for the rest of the stream.
type exchange struct {
	address
	id        string
	door      *transports
	stateful  bool
	transport string  // the transport's session id; empty: it has none
	pipe      *pipe   // nil: it came by HTTP
	minted    *minted // nil: nothing outlives the request

	gone context.Context
	end  context.CancelCauseFunc
	ids  []string // of its calls, as JSON

	mu       sync.Mutex
	stream   string              // the SDK's name of the response stream, once a byte of it was seen
	missing  map[string]struct{} // the calls whose responses were not written yet, by their ids as JSON
	carriers int                 // requests that carry the stream now
	grace    func()              // stops the timer that runs while there are none
	written  []func()
	thrown   bool // its client gave it up
}

// open enters an exchange that ends with its parent, or refuses: nil when too
// many calls are held.
func (t *transports) open(parent context.Context, at address, ids []string) *exchange {
	x := &exchange{address: at, door: t, ids: ids, missing: map[string]struct{}{}}
	for _, id := range ids {
		x.missing[id] = struct{}{}
	}
	x.gone, x.end = context.WithCancelCause(parent)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.exchanges) >= t.heldMax {
		x.end(nil)
		return nil
	}
	t.drawn++
	x.id = strconv.FormatUint(t.drawn, 36)
	t.exchanges[x.id] = x
	return x
}

// drop forgets an exchange whose responses nobody will read.
func (x *exchange) drop(why error) {
	x.end(why)
	x.forget()
}

func (x *exchange) forget() {
	x.door.mu.Lock()
	defer x.door.mu.Unlock()
	delete(x.door.exchanges, x.id)
}

// underway: its responses are written, and may still be lost or thrown away;
// false: they have been.
func (x *exchange) underway() bool {
	x.door.mu.Lock()
	x.door.unproved[x] = struct{}{}
	x.door.mu.Unlock()
	x.mu.Lock()
	thrown := x.thrown
	x.mu.Unlock()
	if thrown {
		x.unread(errThrown)
	}
	return !thrown
}

func (x *exchange) proved() {
	x.door.mu.Lock()
	defer x.door.mu.Unlock()
	delete(x.door.unproved, x)
}

// join: a request carries the stream.
func (x *exchange) join() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.carriers++
	if x.grace != nil {
		x.grace()
		x.grace = nil
	}
}

// leave: it does so no more. With the last one the stream is closed; in the
// stateful revisions the client has a while to come back.
func (x *exchange) leave() {
	if !x.last() {
		return
	}
	if !x.stateful {
		x.drop(errClosed)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.carriers == 0 {
		x.grace = x.door.timers.AfterFunc(resumeGrace, x.expire)
	}
}

func (x *exchange) last() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.carriers--
	return x.carriers == 0
}

// carried: a request carries the stream.
func (x *exchange) carried() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.carriers > 0
}

// expire: nobody came back in time.
func (x *exchange) expire() {
	if !x.carried() {
		x.drop(errClosed)
	}
}

// saw notes what was written to the client: the stream's name and responses.
func (x *exchange) saw(event []byte) {
	stream, ids := readEvent(event)
	x.mu.Lock()
	defer x.mu.Unlock()
	if stream != "" {
		x.stream = stream
	}
	for _, id := range ids {
		delete(x.missing, id)
	}
}

// complete: every response has been written.
func (x *exchange) complete() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.missing) == 0
}

func (x *exchange) whenWritten(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.written = append(x.written, f)
}

// arrived runs what waited for the responses to arrive. The exchange lives
// until then: before, its questions can still be lost.
func (x *exchange) arrived() {
	x.proved()
	x.mu.Lock()
	todo := x.written
	x.written = nil
	x.mu.Unlock()
	for _, f := range todo {
		f()
	}
	x.end(nil)
}

// unread: the responses were lost on the way, or thrown away.
func (x *exchange) unread(why error) {
	x.proved()
	x.mu.Lock()
	x.written = nil
	x.mu.Unlock()
	x.end(why)
}

// threwAway: a client gave up a call, perhaps one whose response has been written
// already. It drops what it has not read, and nothing else tells of that.
func (t *transports) threwAway(id string, by func(*exchange) bool) {
	t.mu.Lock()
	for _, x := range t.exchanges {
		if slices.Contains(x.ids, id) && by(x) {
			x.throw()
		}
	}
	t.mu.Unlock()
	t.lose(errThrown, func(x *exchange) bool { return slices.Contains(x.ids, id) && by(x) })
}

func (x *exchange) throw() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.thrown = true
}

// lose gives up responses that are written and not known to have arrived.
func (t *transports) lose(why error, which func(*exchange) bool) {
	for _, x := range t.underWay(which) {
		x.unread(why)
	}
}

func (t *transports) underWay(which func(*exchange) bool) (found []*exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := range t.unproved {
		if which(x) {
			found = append(found, x)
		}
	}
	return found
}

// life is what a tool learns of its request. While the call runs it also ends
// with the SDK's own context; done says that the call has returned.
func (x *exchange) life(call context.Context) (l *life, done func()) {
	gone, end := context.WithCancelCause(x.gone)
	undo := context.AfterFunc(call, func() { end(why(call)) })
	name := x.minted
	if name == nil { // where the SDK keeps a connection, it keeps its first context's values
		name, _ = call.Value(mintedKey{}).(*minted)
	}
	return &life{
		session: x.session, owner: x.owner, workspace: x.workspace, waitMax: x.waitMax, environment: x.environment, minted: name,
		gone: gone, carried: x.carried, whenWritten: x.whenWritten,
	}, func() { undo() }
}

// why a call of the SDK ended, in words.
func why(call context.Context) error {
	if errors.Is(context.Cause(call), io.EOF) {
		return errEOF
	}
	return errCancelled
}

// resumed finds the exchange whose stream a client comes back for.
func (t *transports) resumed(transport, stream string) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.exchanges {
		if x.transport == transport && x.named(stream) {
			return x
		}
	}
	return nil
}

func (x *exchange) named(stream string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stream != "" && x.stream == stream
}

// endAll ends the exchanges of one transport session.
func (t *transports) endAll(transport string, why error) {
	t.mu.Lock()
	var ended []*exchange
	for _, x := range t.exchanges {
		if x.transport == transport {
			ended = append(ended, x)
		}
	}
	t.mu.Unlock()
	for _, x := range ended {
		x.end(why)
	}
}
