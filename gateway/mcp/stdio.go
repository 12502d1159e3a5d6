package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	gone   context.Context // ends the calls of this pipe alone

	mu      sync.Mutex
	waiting map[string]*exchange // by the ids of their calls as JSON
	idle    chan struct{}        // told when the last one was answered
}

// serveStdio serves a client until it closes its end, ctx ends, or the node
// stops. The foregrounds of open calls are then over: their ends are recorded
// before it returns.
func (t *transports) serveStdio(ctx context.Context, in io.Reader, out io.Writer, opts StdioOptions) error {
	gone, end := context.WithCancelCause(t.stopping)
	defer end(errEOF)
	p := &pipe{door: t, in: in, out: out, minted: new(minted), gone: gone, waiting: map[string]*exchange{}, idle: make(chan struct{}, 1),
		address: address{session: opts.Session, owner: opts.Owner, waitMax: opts.WaitMax, environment: opts.Environment}}
	// What ends ctx must not end the calls: they have something to record first.
	session, err := t.server.Connect(context.WithoutCancel(ctx), stdioTransport{p}, nil)
	if err != nil {
		return fmt.Errorf("serve a pipe: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }() // once the last call has ended, too
	select {
	case err = <-ended:
	case <-ctx.Done():
		end(errPipe)
		p.drain(session)
	case <-t.stopping.Done():
		p.drain(session)
	}
	p.forget()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// drain closes a session once its calls have said their last, or after a while.
func (p *pipe) drain(session *sdk.ServerSession) {
	late := make(chan struct{})
	defer p.door.timers.AfterFunc(pipeDrain, func() { close(late) })()
	for p.busy() {
		select {
		case <-p.idle:
		case <-late:
			return // the SDK would wait for the calls for ever
		}
	}
	_ = session.Close() // there is nobody left to say it to
}

func (p *pipe) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

// enter gives a call its exchange.
func (p *pipe) enter(req *jsonrpc.Request) {
	id, err := json.Marshal(req.ID.Raw())
	if err != nil || !strings.HasPrefix(req.Method, "tools/") {
		return
	}
	key := envelope{ID: id}.key()
	name := "none"
	if x := p.door.open(p.gone, p.address, []string{key}); x != nil {
		x.minted, x.pipe, name = p.minted, p, x.id
		p.mu.Lock()
		p.waiting[key] = x
		p.mu.Unlock()
	}
	req.Extra = &sdk.RequestExtra{Header: http.Header{exchangeHeader: {name}}}
}

func (p *pipe) take(key string) *exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.waiting[key]
	delete(p.waiting, key)
	if len(p.waiting) == 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
	return x
}

// forget drops what was never answered, and what was perhaps never read.
func (p *pipe) forget() {
	defer p.door.lose(errEOF, func(x *exchange) bool { return x.pipe == p })
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.waiting {
		x.drop(errEOF)
		delete(p.waiting, key)
	}
}

// stdioTransport is the SDK's transport of lines, with a look at what passes.
type stdioTransport struct{ *pipe }

// Connect implements sdk.Transport.
func (s stdioTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	lines := &sdk.IOTransport{Reader: io.NopCloser(s.in), Writer: outgoing{s.pipe}, MaxLineLength: bodyBytesMax}
	conn, err := lines.Connect(ctx)
	return incoming{conn, s.pipe}, err
}

// incoming looks at what is read.
type incoming struct {
	sdk.Connection
	pipe *pipe
}

// Read enters every call of a tool, as the POST does for HTTP.
func (c incoming) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok || err != nil:
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
	n, err := o.pipe.out.Write(line)
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
