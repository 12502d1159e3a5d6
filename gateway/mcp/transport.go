package mcp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of the transports. A call that waits holds about as much as its
// question is long.
const (
	transportSessionsMax = 1000 // of the stateful revisions, at once
	heldCallsMax         = 2000 // requests with calls of tools in them, at once
	bodyBytesMax         = 4 << 20
)

// Times of the transports.
const (
	sessionTimeout = time.Hour        // a stateful session without requests ends
	resumeGrace    = 5 * time.Second  // in which a client whose stream was cut may come back
	outliveAfter   = 2 * time.Second  // a connection that lives so long after a response has carried it
	commentFirst   = time.Second      // a client waits for the head of a response that has nothing to say yet
	commentEvery   = 15 * time.Second // some clients give up on a stream that is silent for minutes
	pipeDrain      = 7 * time.Second  // for calls under way when a pipe ends; more than endWithin
)

// newRevision is the first revision whose requests stand alone. Date order is
// text order.
const newRevision = "2026-07-28"

// exchangeHeader tells the tools which request carries their call. It is set
// here on every request, over whatever a client may have sent.
const exchangeHeader = "Parley-Exchange"

// transports is what carries the tools: two HTTP handlers of the SDK behind one
// path, and pipes. It decides when a call's request is gone, and when its
// response has arrived.
type transports struct {
	server *sdk.Server
	log    *slog.Logger
	timers timers
	// trafficOf asks the kernel; tests have another.
	trafficOf func(net.Conn) traffic

	sessionsMax, heldMax int

	older, newer http.Handler

	stopping context.Context
	stop     context.CancelCauseFunc

	mu        sync.Mutex
	exchanges map[string]*exchange
	unproved  map[*exchange]struct{} // written, and not known to have arrived
	drawn     uint64
	links     map[net.Conn]*link
	uses      map[string]*use // of the stateful revisions' sessions, by their ids
	turns     uint64          // counts uses, so that they have an order
}

// newTransports carries a server. It adds a receiving middleware to it.
func newTransports(server *sdk.Server, log *slog.Logger, timers timers) *transports {
	t := &transports{server: server, log: log, timers: timers, trafficOf: trafficOf, sessionsMax: transportSessionsMax, heldMax: heldCallsMax,
		exchanges: map[string]*exchange{}, unproved: map[*exchange]struct{}{}, links: map[net.Conn]*link{}, uses: map[string]*use{}}
	t.stopping, t.stop = context.WithCancelCause(context.Background())
	same := func(*http.Request) *sdk.Server { return server }
	// Hosts and origins are the gateway's to check; the SDK would refuse the
	// names that the gateway was told to allow.
	t.older = sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil),
		SessionTimeout: sessionTimeout, Logger: log, DisableLocalhostProtection: true})
	t.newer = sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{Stateless: true,
		PropagateRequestCancellation: true, Logger: log, DisableLocalhostProtection: true})
	server.AddReceivingMiddleware(t.receive)
	return t
}

// receive gives every request to the tools its life, and is the net under a
// panic: one call fails, and the process goes on.
func (t *transports) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if reason := recover(); reason != nil {
				t.log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("method", method),
					slog.String("reason", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
				res, err = failed(method, errPanic)
			}
		}()
		if !strings.HasPrefix(method, "tools/") {
			return next(ctx, method, req)
		}
		x, known := t.exchangeOf(req.GetExtra())
		if !known { // a program that serves the server by itself
			return next(ctx, method, req)
		}
		if x == nil {
			return failed(method, "the request has ended, or too many calls are held; nothing was done")
		}
		l, done := x.life(ctx)
		defer done()
		return next(withLife(ctx, l), method, req)
	}
}

// errPanic is what a client learns of a panic: that it is our fault, never what
// is on the stack.
const errPanic = "serving it failed, by a fault of Parley's own; nothing is known of an answer; report it with the node's log"

// failed is a call that came to nothing.
func failed(method, text string) (sdk.Result, error) {
	if method != "tools/call" {
		return nil, fmt.Errorf("%s: %s", method, text)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "This call was not served: " + text}}}, nil
}

// exchangeOf finds the exchange of a request; nil, when it is over already.
func (t *transports) exchangeOf(extra *sdk.RequestExtra) (x *exchange, known bool) {
	if extra == nil || extra.Header.Get(exchangeHeader) == "" {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exchanges[extra.Header.Get(exchangeHeader)], true
}

// Handler serves Path and what lies under it. It checks neither hosts nor
// origins nor tokens.
func (d *Door) Handler() http.Handler { return d.wires }

// ConnContext belongs into http.Server.ConnContext, and ConnState into its
// ConnState: they tell the door what becomes of connections. Without them a
// response counts as arrived once it was written to a client that was there.
func (d *Door) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return d.wires.connected(ctx, c)
}

// ConnState: see ConnContext.
func (d *Door) ConnState(c net.Conn, state http.ConnState) { d.wires.changed(c, state) }

// Stop ends the foregrounds of all calls and refuses new ones. It returns at
// once; what has been asked goes on.
func (d *Door) Stop() { d.wires.stop(errStopping) }

// ServeStdio serves one client over a pipe until the client closes its end, ctx
// ends, or the door is stopped. The foregrounds of open calls are then over,
// and their questions go on. Nothing but the protocol is written to out.
func (d *Door) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, opts StdioOptions) error {
	return d.wires.serveStdio(ctx, in, out, opts)
}
