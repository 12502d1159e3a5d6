package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
)

// guard lets a request in or refuses it: host and origin, token and role, size,
// in this order, before anything of it is parsed.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.stopping.Err() != nil && !isHealth(r) {
			g.turnAway(w, r, errStopping)
			return
		}
		if err := g.checkSource(r); err != nil {
			g.turnAway(w, r, err)
			return
		}
		if g.preflight(w, r) {
			return
		}
		to := ruleFor(r.URL)
		r, err := g.admit(r, to)
		if err != nil {
			if err.Code == messages.Unauthenticated {
				w.Header().Set("WWW-Authenticate", challenge(r))
			}
			g.turnAway(w, r, err)
			return
		}
		if to.flows {
			body, end := g.flow(w, r)
			defer end()
			r.Body = body
		} else if err := takeBody(w, r, g.opts.BodyTimeout); err != nil {
			g.writeRefusal(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// turnAway refuses a request whose body nobody reads. The server drains it
// before it replies, for no longer than this: a stranger could hold it for ever.
func (g *Gateway) turnAway(w http.ResponseWriter, r *http.Request, err *messages.Error) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainBody)) // a test's recorder has none
	}
	g.writeRefusal(w, r, err)
}

// checkSource refuses pages of other sites. Without a token the Host must be
// ours too: a page whose name was rebound to this machine has its own name in
// both headers, and would pass a comparison of the two.
func (g *Gateway) checkSource(r *http.Request) *messages.Error {
	if len(g.tokens) == 0 && !g.ownHost(r.Host) {
		return messages.Refuse(messages.ForeignOrigin, "this node does not answer to the host name %.200q", r.Host)
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(g.opts.AllowOrigins, origin) {
		return nil
	}
	if u, err := url.Parse(origin); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return nil
	}
	return messages.Refuse(messages.ForeignOrigin, "pages of %.200q may not call this node", origin)
}

func (g *Gateway) ownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || slices.ContainsFunc(g.opts.AllowHosts, func(own string) bool { return strings.EqualFold(own, host) }) {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// preflight answers a browser's question whether an allowed page may call. It
// carries no token, by the browser's own rules, and does nothing.
func (g *Gateway) preflight(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(g.opts.AllowOrigins, origin) {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Mcp-Session-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, Grpc-Timeout, X-Grpc-Web, X-User-Agent, "+
		"Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// takeBody reads the whole request first, within a limit and a time: nearly
// every request of ours is one message. A body that has been read to its end is also
// what lets the HTTP/1 server notice that a client has gone, which claims and
// held asks depend on.
func takeBody(w http.ResponseWriter, r *http.Request, limit time.Duration) *messages.Error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > bodyBytesMax {
		return messages.Refuse(messages.TooLarge, "the request has %d bytes, the limit is %d", r.ContentLength, bodyBytesMax)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(limit)) // a test's recorder has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err == nil {
		// Only then: the server drains what a handler left of a body before it
		// replies, and without the deadline a client that stopped sending would
		// hold it for ever.
		_ = control.SetReadDeadline(time.Time{})
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return messages.Refuse(messages.TooLarge, "the request is larger than %d bytes", bodyBytesMax)
	case err != nil:
		return messages.Refuse(messages.BadRequest, "the request's body could not be read: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
