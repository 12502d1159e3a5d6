package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// StdioOptions say for whom a pipe speaks.
type StdioOptions struct {
	// Session is the session of its calls. Empty: a call names one, or one is
	// minted for the pipe.
	Session string
	// Owner is the session that owns the agent: a child, which may not ask.
	Owner string
	// Workspace is the directory that the agent works in, recorded when its
	// session is new; empty: none.
	Workspace string
	// WaitMax is how long the client lets a call run; 0: nothing is known;
	// negative: no limit.
	WaitMax time.Duration
	// Environment is the session that the client's environment names; it is
	// used when neither Session nor the call names one.
	Environment string
}

// pipe is one client at the other end of two streams.
type pipe struct {
	address
	door   *transports
	in     io.Reader
	out    io.Writer
	minted *minted

	// gone ends the calls of this pipe alone, by end.
	gone context.Context
	end  context.CancelCauseFunc
	// lines is what the SDK reads of what came in, and broken is closed once
	// nothing can be written any more.
	lines  *io.PipeReader
	feeder *io.PipeWriter
	broken chan struct{}

	writing sync.Mutex // a line at a time

	mu    sync.Mutex
	calls map[string]*calling // by their ids as JSON
	quiet chan struct{}       // closed with the last of them; nil: nobody waits for that
}

// calling is one call that was read and not answered yet.
type calling struct {
	exchange *exchange // nil: of no tool, or not entered yet
	lasting  bool      // it is answered when the pipe ends, and not before
}

// serveStdio serves a client until it closes its end, ctx ends, or the node
// stops. The foregrounds of open calls are then over; what they result in is
// written, and their ends are recorded, before it returns.
func (t *transports) serveStdio(ctx context.Context, in io.Reader, out io.Writer, opts StdioOptions) error {
	p := &pipe{door: t, in: in, out: out, minted: new(minted), calls: map[string]*calling{}, broken: make(chan struct{}),
		address: address{session: opts.Session, owner: opts.Owner, workspace: opts.Workspace, waitMax: opts.WaitMax, environment: opts.Environment}}
	p.gone, p.end = context.WithCancelCause(t.stopping)
	defer p.end(errEOF)
	p.lines, p.feeder = io.Pipe()
	go p.feed()
	// What ends ctx must not end the calls: they have something to record first.
	session, err := t.server.Connect(context.WithoutCancel(ctx), stdioTransport{p}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }() // once the last call has ended, too
	select {
	case err = <-ended:
	case <-ctx.Done():
		p.end(errPipe)
		p.drain(session)
	case <-t.stopping.Done():
		p.drain(session)
	}
	p.forget()
	if errors.Is(err, io.EOF) || closedByClient(err) {
		return nil
	}
	return err
}

// closedByClient reports whether a write failed because nobody reads any more.
func closedByClient(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, fs.ErrClosed)
}

// drain closes a session once its calls have said their last, or after a while.
func (p *pipe) drain(session *sdk.ServerSession) {
	if p.settle() {
		_ = session.Close() // there is nobody left to say it to
	} // else the SDK would wait for the calls for ever
}

// settle waits until every call is answered; false: that took too long.
func (p *pipe) settle() bool {
	late := make(chan struct{})
	defer p.door.timers.AfterFunc(pipeDrain, func() { close(late) })()
	select {
	case <-p.settled():
		return true
	case <-p.broken:
		return true
	case <-late:
		return false
	}
}

// settled is closed once no call is to be answered.
func (p *pipe) settled() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet == nil {
		p.quiet = make(chan struct{})
	}
	quiet := p.quiet
	p.hush()
	return quiet
}

// hush tells who waits, when no call is to be answered. p.mu is held.
func (p *pipe) hush() {
	for _, c := range p.calls {
		if !c.lasting {
			return
		}
	}
	if p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// enter gives a call its exchange.
func (p *pipe) enter(req *jsonrpc.Request) {
	if !strings.HasPrefix(req.Method, "tools/") {
		return
	}
	key, name := keyOf(req), "none"
	if x := p.door.open(p.gone, p.address, []string{key}); x != nil {
		x.minted, x.pipe, name = p.minted, p, x.id
		p.mu.Lock()
		p.calls[key] = &calling{exchange: x}
		p.mu.Unlock()
	}
	req.Extra = &sdk.RequestExtra{Header: http.Header{exchangeHeader: {name}}}
}

func (p *pipe) take(key string) *exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[key]
	delete(p.calls, key)
	p.hush()
	if c == nil {
		return nil
	}
	return c.exchange
}

// forget drops what was never answered, and what was perhaps never read.
func (p *pipe) forget() {
	defer p.door.lose(errEOF, func(x *exchange) bool { return x.pipe == p })
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, c := range p.calls {
		if c.exchange != nil {
			c.exchange.drop(errEOF)
		}
		delete(p.calls, key)
	}
}

// write writes a line. Once one could not be written, the pipe has ended.
func (p *pipe) write(line []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	n, err := p.out.Write(line)
	if err != nil {
		select {
		case <-p.broken:
		default:
			close(p.broken)
			p.end(errUnread)
			_ = p.feeder.Close() // always nil
		}
	}
	return n, err
}

// stdioTransport is the SDK's transport of lines, with a look at what passes.
type stdioTransport struct{ *pipe }

// Connect implements sdk.Transport.
func (s stdioTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	lines := &sdk.IOTransport{Reader: s.lines, Writer: outgoing{s.pipe}, MaxLineLength: -1} // feed has its limit
	conn, err := lines.Connect(ctx)
	return incoming{conn, s.pipe}, err
}

// incoming looks at what is read.
type incoming struct {
	sdk.Connection
	pipe *pipe
}

// Read enters every call of a tool, as the POST does for HTTP. The end is told
// once all that was read before it is answered: the SDK writes nothing after.
func (c incoming) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case err != nil:
		c.pipe.end(errEOF)
		c.pipe.settle()
	case !ok:
	case req.IsCall():
		c.pipe.proved()
		c.pipe.enter(req)
	case req.Method == "notifications/cancelled":
		c.pipe.cancelled(req.Params)
	}
	return msg, err
}

// proved: a client that makes its next call has the responses before it, or has
// given them up by now. As with a connection, that is on record first.
func (p *pipe) proved() {
	for _, x := range p.door.underWay(func(x *exchange) bool { return x.pipe == p }) {
		x.arrived()
	}
}

// cancelled: the client gave up a call. One whose response is in the pipe will
// not be read.
func (p *pipe) cancelled(params json.RawMessage) {
	for _, id := range readCancelled([]byte(`{"method":"notifications/cancelled","params":` + string(params) + `}`)) {
		p.door.threwAway(id, func(x *exchange) bool { return x.pipe == p })
	}
}

// outgoing looks at what is written: the SDK writes each line whole.
type outgoing struct{ pipe *pipe }

// Write writes a line. A response that is in the pipe has arrived, as far as can
// be told, unless the client gives up its call before it can have read it.
func (o outgoing) Write(line []byte) (int, error) {
	var answered []*exchange
	for _, key := range readResponses(line) {
		if x := o.pipe.take(key); x != nil {
			x.underway()
			answered = append(answered, x)
		}
	}
	n, err := o.pipe.write(line)
	for _, x := range answered {
		x.forget()
		if err != nil {
			x.unread(errUnread)
			continue
		}
		context.AfterFunc(x.gone, o.pipe.door.timers.AfterFunc(outliveAfter, x.arrived))
	}
	return n, err
}

// Close leaves the stream to whoever opened it.
func (outgoing) Close() error { return nil }
