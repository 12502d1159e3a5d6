// Package faultproxy stands between a client and a node and spoils what passes,
// one HTTP request at a time: it delays, holds back, repeats, stalls and resets.
//
// It decides nothing by itself: the plan of each request comes from its caller,
// who may draw it from a seed. It works on the bytes of the connection and
// never changes, adds or reorders a byte of a request or a response.
package faultproxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Plan is what happens to one request and its response. The zero value passes
// both as they come. Parts may be combined; each is seen from the proxy.
type Plan struct {
	// Delay is how long the request waits before it goes on.
	Delay time.Duration
	// Hold keeps the request back until the node has begun to answer another one,
	// on any connection, but no longer than this.
	Hold time.Duration
	// Duplicate sends the same bytes once more, on a connection of its own; the
	// second response is read and thrown away.
	Duplicate bool
	// Cut resets both connections when CutAfter bytes of the response have passed
	// and one more has come: at 0, when the node has answered and the client has
	// seen nothing.
	Cut      bool
	CutAfter int
	// CutBefore resets both connections in place of the first piece of the
	// response that holds this text; empty: never.
	CutBefore string
	// CutIn resets both connections this long after the request went on; 0: never.
	CutIn time.Duration
	// Stall passes no byte of the response after the first StallAfter for this
	// long. Nothing is lost.
	Stall      time.Duration
	StallAfter int
}

// String says what is spoiled.
func (p Plan) String() string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Delay > 0, "delayed %v", p.Delay)
	add(p.Hold > 0, "held back at most %v", p.Hold)
	add(p.Duplicate, "duplicated")
	add(p.Cut, "cut after %d bytes", p.CutAfter)
	add(p.CutBefore != "", "cut before %q", p.CutBefore)
	add(p.CutIn > 0, "cut in %v", p.CutIn)
	add(p.Stall > 0, "stalled for %v after %d bytes", p.Stall, p.StallAfter)
	return strings.Join(parts, ", ")
}

// Request is what the proxy knows when it asks for a plan.
type Request struct {
	// N counts the requests of a proxy, from 0, in order of arrival.
	N            int
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Proxy listens on an address of its own and passes to its target.
type Proxy struct {
	target string
	plan   func(Request) Plan
	listen net.Listener
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	n      int
	passed chan struct{} // closed, and made anew, whenever the node begins to answer
	open   map[*link]struct{}
}

// New starts a proxy on a free port of this machine. plan is called once for
// each request, by several goroutines.
func New(ctx context.Context, target string, plan func(Request) Plan) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, plan: plan, listen: l, passed: make(chan struct{}), open: map[*link]struct{}{}}
	p.ctx, p.stop = context.WithCancel(ctx)
	p.work.Go(p.accept)
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listen.Addr().String() }

// CutAll resets every connection there is now.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		l.reset()
	}
}

// Close resets every connection and returns when nothing is left of them.
func (p *Proxy) Close() error {
	err := p.listen.Close()
	p.stop()
	p.CutAll()
	p.work.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(conn) })
	}
}

// link is a client's connection and the node's beside it.
type link struct {
	client, node net.Conn
	mu           sync.Mutex
	plan         Plan // of the request whose response is passing
	seen         int  // bytes of that response that have passed
}

// reset ends both connections at once, so that neither side sees a clean end.
func (l *link) reset() {
	for _, c := range []net.Conn{l.client, l.node} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // an error means that it is closed already
		}
		_ = c.Close()
	}
}

// serve passes the requests of one client until either side ends.
func (p *Proxy) serve(client net.Conn) {
	node, err := p.dial()
	if err != nil {
		(&link{client: client, node: client}).reset()
		return
	}
	l := &link{client: client, node: node}
	p.mu.Lock()
	p.open[l] = struct{}{}
	p.mu.Unlock()
	if p.ctx.Err() != nil { // opened while the proxy was closing
		l.reset()
	}
	gone := make(chan struct{}) // the client's side has ended
	p.work.Go(func() {
		defer l.reset()
		defer close(gone)
		p.requests(l)
	})
	p.responses(l, gone)
	p.mu.Lock()
	delete(p.open, l)
	p.mu.Unlock()
}

func (p *Proxy) dial() (net.Conn, error) {
	return new(net.Dialer).DialContext(p.ctx, "tcp", p.target)
}

// requests reads one request after the other and passes its bytes by its plan.
func (p *Proxy) requests(l *link) {
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(l.client, &raw))
	var cut *time.Timer
	for {
		got, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(got.Body)
		if err != nil {
			return
		}
		whole := bytes.Clone(raw.Next(raw.Len() - in.Buffered()))
		plan := p.plan(Request{N: p.count(), Method: got.Method, Path: got.URL.RequestURI(), Header: got.Header, Body: body})
		if cut != nil {
			cut.Stop() // it was meant for the response before
		}
		if !p.wait(plan) {
			return
		}
		l.mu.Lock()
		l.plan, l.seen = plan, 0
		l.mu.Unlock()
		if plan.CutIn > 0 {
			cut = time.AfterFunc(plan.CutIn, l.reset)
		}
		if plan.Duplicate {
			p.work.Go(func() { p.repeat(whole) })
		}
		if _, err := l.node.Write(whole); err != nil {
			return
		}
	}
}

// wait lets the time of a plan pass; false when the proxy closes before.
func (p *Proxy) wait(plan Plan) bool {
	if plan.Delay > 0 && !p.pause(plan.Delay, nil) {
		return false
	}
	if plan.Hold <= 0 {
		return true
	}
	p.mu.Lock()
	passed := p.passed
	p.mu.Unlock()
	return p.pause(plan.Hold, passed)
}

// pause waits for a while, or for something; false when the proxy closes before.
func (p *Proxy) pause(d time.Duration, or <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-or:
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *Proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	return p.n - 1
}

// answered tells those that are held back that another request has arrived.
func (p *Proxy) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.passed)
	p.passed = make(chan struct{})
}

// repeat sends a request's bytes a second time. Its connection lasts until the
// node ends it, or says nothing for a while after having answered.
func (p *Proxy) repeat(whole []byte) {
	node, err := p.dial()
	if err != nil {
		return
	}
	stop := context.AfterFunc(p.ctx, func() { _ = node.Close() })
	defer stop()
	defer func() { _ = node.Close() }()
	if _, err := node.Write(whole); err != nil {
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(node), nil)
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body) // whatever it is, nobody is told
}

// responses passes what the node says by the plan of the request it answers.
func (p *Proxy) responses(l *link, gone <-chan struct{}) {
	defer l.reset()
	piece := make([]byte, 32<<10)
	for {
		n, err := l.node.Read(piece)
		if n > 0 && !p.pass(l, piece[:n], gone) {
			return
		}
		if errors.Is(err, io.EOF) {
			l.finish()
			return
		}
		if err != nil {
			return
		}
	}
}

// pass writes one piece to the client, as far as the plan allows; false when it
// went no further than that.
func (p *Proxy) pass(l *link, piece []byte, gone <-chan struct{}) bool {
	l.mu.Lock()
	plan, seen := l.plan, l.seen
	l.mu.Unlock()
	if seen == 0 {
		p.answered()
	}
	if plan.CutBefore != "" && bytes.Contains(piece, []byte(plan.CutBefore)) {
		return false
	}
	if plan.Cut && seen+len(piece) > plan.CutAfter {
		_ = l.write(piece[:max(0, plan.CutAfter-seen)]) // the reset follows anyway
		return false
	}
	if plan.Stall > 0 && seen+len(piece) > plan.StallAfter {
		before := piece[:max(0, plan.StallAfter-seen)]
		if l.write(before) != nil || !p.pause(plan.Stall, gone) {
			return false
		}
		l.mu.Lock()
		l.plan.Stall = 0 // once
		l.mu.Unlock()
		piece = piece[len(before):]
	}
	return l.write(piece) == nil
}

func (l *link) write(piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	n, err := l.client.Write(piece)
	l.mu.Lock()
	l.seen += n
	l.mu.Unlock()
	return err
}

// finish passes on that the node ended its side cleanly.
func (l *link) finish() {
	_ = l.client.Close() // cleanly: reset finds it closed
}
