package parley

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
)

// ListenDefault is where a node listens when it is not told.
const ListenDefault = "127.0.0.1:7410"

// ServeOptions are the settings of a node's port. The zero value serves this
// machine alone, at ListenDefault.
type ServeOptions struct {
	// Listen is the address to listen on, host:port. Port 0 picks a free one.
	// An address others can reach needs a token.
	Listen string
	// Listener is used instead of Listen, when it is set. Serve closes it.
	Listener net.Listener
	// Ready is called once the port is open, with its address.
	Ready func(net.Addr)
	// Token is the operator's bearer token, which may do everything: at least
	// 16 bytes. Without it and Tokens a request needs none.
	Token string
	// Tokens are those of each role, likewise. With any of them, or Token, every
	// request needs one, health checks excepted. One token may have several roles.
	Tokens map[Role][]string
	// AllowOrigins are web origins ("https://ui.example.org") whose pages may
	// call the node, beside pages of its own address.
	AllowOrigins []string
	// AllowHosts are host names a node without tokens answers to, beside
	// loopback addresses and "localhost".
	AllowHosts []string
	// MCPWaitMax caps the foreground wait of every MCP client, in place of what
	// each is known to allow. Never: no cap. An endpoint's wait_max is stronger.
	MCPWaitMax time.Duration
	// PublicURL is where people reach this node; links to questions are made of
	// it. Defaults to the address that Serve listens on.
	PublicURL string
	// Drain is how long Serve waits for requests to end when it stops.
	// Defaults to 10 s.
	Drain time.Duration
	// WriteTimeout is how long a client may take nothing of what is written to
	// it before it is cut off; its claim is then lost. Defaults to 30 s.
	WriteTimeout time.Duration
}

// Role is what the holder of a token may do, in every session alike.
type Role = gateway.Role

// The roles of tokens.
const (
	RoleViewer   = gateway.RoleViewer   // reads and watches; nobody who could answer
	RoleAnswerer = gateway.RoleAnswerer // reads, answers, and speaks to agents
	RoleAgent    = gateway.RoleAgent    // reads, asks, and takes what waits for it
	RoleOperator = gateway.RoleOperator // everything
)

// listenConfig notices a peer that is gone without a word within half a minute:
// until then its claim holds a deadline.
var listenConfig = net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
	Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}

func (n *Node) gateway(opts ServeOptions) (*gateway.Gateway, error) {
	door, err := n.mcpDoor(opts)
	if err != nil {
		return nil, err
	}
	return gateway.New(port{n}, gateway.Options{Token: opts.Token, Tokens: opts.Tokens, AllowOrigins: opts.AllowOrigins,
		AllowHosts: opts.AllowHosts, Drain: opts.Drain, WriteTimeout: opts.WriteTimeout, MCP: door, Logger: n.cfg.Logger})
}

// Serve opens the doors on one port: Connect, gRPC and gRPC-Web, with gRPC's
// reflection and health; MCP at /mcp and /mcp/<session>; the page /answer;
// /healthz and /metrics. It returns nil after ctx has ended and the requests
// under way have been answered. Close the node afterwards.
func (n *Node) Serve(ctx context.Context, opts ServeOptions) error {
	ln := opts.Listener
	if ln == nil {
		addr := opts.Listen
		if addr == "" {
			addr = ListenDefault
		}
		var err error
		if ln, err = listenConfig.Listen(ctx, "tcp", addr); err != nil {
			return cannotListen(addr, err)
		}
	}
	if opts.PublicURL == "" {
		opts.PublicURL = urlOf(ln.Addr())
	}
	g, err := n.gateway(opts)
	if err != nil {
		_ = ln.Close() // it was for Serve to close, and there is nothing to serve
		return err
	}
	if opts.Ready != nil {
		opts.Ready(ln.Addr())
	}
	if err := g.Serve(ctx, ln); err != nil {
		return fmt.Errorf("parley: %w", err)
	}
	return nil
}

// cannotListen says why there is no port, and where to find another.
func cannotListen(addr string, err error) *messages.Error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return messages.Refuse(messages.Unavailable, "something listens on %s already, a node perhaps; give another address as Listen (port 0 finds a free one)", addr)
	}
	return messages.Refuse(messages.BadRequest, "cannot listen on %s: %v", addr, err)
}

// Handler is the doors without a server, for a program that has its own.
// Listen, Listener, Ready and Drain do not matter to it. stop ends watches,
// claims and held requests, as http.Server.Shutdown alone would not: pass it
// to RegisterOnShutdown.
func (n *Node) Handler(opts ServeOptions) (handler http.Handler, stop func(), err error) {
	g, err := n.gateway(opts)
	if err != nil {
		return nil, nil, err
	}
	return g.Handler(), g.Stop, nil
}
