package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// Gateway is the doors of one node. Make it with New; serve it with Serve, or
// mount Handler in a server of your own and call Stop before that one shuts down.
type Gateway struct {
	port    Port
	opts    Options
	tokens  tokens
	log     *slog.Logger
	errors  *connect.ErrorWriter
	handler http.Handler

	stopping context.Context
	stop     context.CancelFunc

	held, watches, claims atomic.Int64
	requests              requestCounts
}

// New makes the doors of a node.
func New(port Port, opts Options) (*Gateway, error) {
	if err := opts.Validate(); err != nil {
		return nil, messages.Refuse(messages.BadRequest, "%v", err)
	}
	g := &Gateway{port: port, opts: opts.withDefaults(), errors: connect.NewErrorWriter()}
	g.log, g.tokens = g.opts.Logger, g.opts.tokens()
	g.stopping, g.stop = context.WithCancel(context.Background())
	g.handler = g.observe(g.guard(g.routes()))
	return g, nil
}

// routes are what can be reached.
func (g *Gateway) routes() http.Handler {
	opts := []connect.HandlerOption{connect.WithReadMaxBytes(bodyBytesMax), connect.WithRecover(g.panicked),
		connect.WithCompressMinBytes(compressBytesMin)}
	mux := http.NewServeMux()
	sessions, handler := messagesconnect.NewSessionServiceHandler(sessionService{g}, opts...)
	mux.Handle(sessions, handler)
	mux.Handle(messagesconnect.SessionServiceImportSessionProcedure, g.paced(handler))
	mux.Handle(messagesconnect.NewQuestionServiceHandler(questionService{g}, opts...))
	mux.Handle(messagesconnect.NewInboxServiceHandler(inboxService{g}, opts...))
	mux.Handle(messagesconnect.NewQueryServiceHandler(queryService{g}, opts...))
	g.describe(mux)
	if g.opts.MCP != nil {
		mux.Handle("/mcp", g.opts.MCP.Handler())
	}
	mux.HandleFunc("GET /{$}", g.rootPage)
	mux.HandleFunc("GET "+ListPath, g.listPage)
	mux.HandleFunc("GET "+ListPath+"/{$}", g.listPage)
	mux.HandleFunc("GET "+ListPath+"/{session}", g.listPage)
	mux.HandleFunc("GET /answer/{session}/{call}", g.answerPage)
	mux.HandleFunc("POST /answer/{session}/{call}", g.answerPage)
	mux.HandleFunc("GET /healthz", g.healthz)
	mux.HandleFunc("GET /metrics", g.metrics)
	mux.HandleFunc("/", g.nothingHere)
	return g.unrouted(mux)
}

// unrouted sends what is below /mcp to its door past the router, which would
// answer a session named "." or ".." with a redirect to another path.
func (g *Gateway) unrouted(next http.Handler) http.Handler {
	if g.opts.MCP == nil {
		return next
	}
	door := g.opts.MCP.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/mcp/") {
			door.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Handler is every door behind its guards.
func (g *Gateway) Handler() http.Handler { return g.handler }

// panicked turns a panic into a clear error. The client learns that it is our
// fault, never what is on the stack.
func (g *Gateway) panicked(ctx context.Context, spec connect.Spec, _ http.Header, reason any) error {
	g.log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("procedure", spec.Procedure),
		slog.String("reason", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
	return g.say(ctx, messages.Refuse(messages.Bug, "serving %s failed", spec.Procedure))
}

// Serve serves a listener until ctx ends, then stops: no new connections,
// watches, claims and held requests end as UNAVAILABLE, and it returns once
// all have been answered or the drain time is over. It closes the listener.
//
// A listener that others can reach needs a token.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	if len(g.tokens) == 0 && !loopback(ln.Addr()) {
		_ = ln.Close()
		return messages.Refuse(messages.Unauthenticated,
			"listening on %s lets the network in and needs a token: set one (--token, PARLEY_TOKEN), or listen on 127.0.0.1", ln.Addr())
	}
	srv := g.server()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		g.Stop()
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	g.Stop()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.opts.Drain)
	defer cancel()
	if err := srv.Shutdown(drain); err != nil {
		_ = srv.Close()
		g.log.LogAttrs(ctx, slog.LevelWarn, "requests cut off", slog.Duration("after", g.opts.Drain))
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// server has HTTP/1.1 and HTTP/2 on one port, the latter without TLS too, as
// gRPC clients inside a machine speak it.
func (g *Gateway) server() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler:           g.handler,
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streamsMaxPerConn, SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
			WriteByteTimeout: g.opts.WriteTimeout},
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug), // clients that break off; not our trouble
	}
	if g.opts.MCP != nil {
		srv.ConnContext, srv.ConnState = g.opts.MCP.ConnContext, g.opts.MCP.ConnState
	}
	return srv
}

// Stop ends watches, claims and held requests as UNAVAILABLE and refuses new
// ones. It returns at once.
func (g *Gateway) Stop() {
	g.stop()
	if g.opts.MCP != nil {
		g.opts.MCP.Stop()
	}
}
