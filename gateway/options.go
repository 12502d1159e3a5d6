package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"
)

// Limits of a connection. A request's own texts have theirs in package messages.
const (
	bodyBytesMax      = 4 << 20
	compressBytesMin  = 4 << 10 // below it, compressing costs more than it saves
	headerBytesMax    = 64 << 10
	headerTimeout     = 10 * time.Second
	bodyTimeout       = 30 * time.Second
	drainBody         = time.Second // for the rest of a body that nobody reads
	idleTimeout       = 2 * time.Minute
	pingAfter         = 5 * time.Second // an HTTP/2 peer that is silent for so long is asked whether it lives
	pingTimeout       = 5 * time.Second // then for so long: a claim is not held ten seconds for nobody
	writeTimeout      = 30 * time.Second
	writeBytes        = 64 << 10 // of them, a client must take so many in that time
	drainDefault      = 10 * time.Second
	tokenBytesMin     = 16
	streamsMaxPerConn = 1000
)

// Options of the doors. The zero value serves this machine alone.
type Options struct {
	// Token is the operator's bearer token: it may do everything. At least 16
	// bytes. Without it and Tokens a request needs none, and only a loopback
	// address may be listened on.
	Token string
	// Tokens are those of each role, likewise. With any, every request needs
	// one, health checks excepted. One token may be given several roles.
	Tokens map[Role][]string
	// AllowOrigins are web origins ("https://ui.example.org") whose pages may
	// call the node, beside pages of the node's own address.
	AllowOrigins []string
	// AllowHosts are host names the node answers to without a token, beside
	// loopback addresses and "localhost". With a token every name is served: a
	// page that rebinds its name does not know the token.
	AllowHosts []string
	// Drain is how long Serve waits for requests to end after it was told to
	// stop. Defaults to 10 s.
	Drain time.Duration
	// BodyTimeout is how long a request's body may take to arrive. Defaults to 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take nothing of what is written to
	// it, before it is cut off. An idle stream is not written to. Defaults to 30 s.
	WriteTimeout time.Duration
	// MCP is the door for agents, at /mcp and below. nil: it is not served.
	MCP MCP
	// Logger gets one line per request. Defaults to slog.Default().
	Logger *slog.Logger
}

// Validate reports every mistake at once.
func (o *Options) Validate() error {
	errs := validateTokens(o)
	for _, origin := range o.AllowOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			errs = append(errs, fmt.Errorf("origin %q is not of the form https://host:port", origin))
		}
	}
	for _, host := range o.AllowHosts {
		if host == "" || strings.ContainsAny(host, "/* ") {
			errs = append(errs, fmt.Errorf("host %q is not a host name", host))
		}
	}
	if o.Drain < 0 {
		errs = append(errs, fmt.Errorf("the drain time is %v; it may not be negative", o.Drain))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = bodyTimeout
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = writeTimeout
	}
	if o.Drain == 0 {
		o.Drain = drainDefault
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// loopback reports whether nobody else can reach the address.
func loopback(addr net.Addr) bool {
	if addr.Network() == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(addr.String())
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
