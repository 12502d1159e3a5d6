package gateway

import (
	"context"
	"io"
	"net"
	"net/http"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

// Port is all that the doors ask of a node. The root package satisfies it.
type Port interface {
	// Do sends a command that Check has passed and returns its answer, a
	// refusal as *messages.Error. An AskRequest is held until its result, or
	// for hold_ms, when it returns `waiting`; an AwaitInboxRequest likewise.
	// When ctx ends first, the caller is detached and the error is ctx's: what
	// was asked goes on. Do fills in what doors owe: the arguments of typed
	// questions, and whether anybody is there to answer.
	Do(ctx context.Context, cmd messages.Command) (messages.Reply, error)

	// OpenClaim holds a wait for a client. It never fails: what becomes of it
	// is told on the claim's channel.
	OpenClaim(session, callID, client string) Claim

	// ReleaseClaim lets a claim go on purpose. One that is not held here, or
	// any more, is not an error.
	ReleaseClaim(session, callID, name string)

	// Watch sends question rows until ctx ends or send fails. A caller that may
	// answer counts as an answerer meanwhile.
	Watch(ctx context.Context, req *messages.WatchQuestionsRequest, mayAnswer bool, send func(*messages.WatchQuestionsResponse) error) error

	// Import keeps a log that it reads to its end as the session of that name,
	// or of the header's own when it is empty: whole, or not at all. An error of
	// the reader comes back as it is.
	Import(ctx context.Context, session string, log io.Reader) (*messages.SessionRow, error)

	// Views is what can be read.
	Views() *query.Views

	// Past is what can be searched and read of past work.
	Past() Past

	// Counters are the node's own numbers, for /metrics.
	Counters() []Counter
}

// Claim is one client's hold on a wait.
type Claim interface {
	// Name is what ExpireRequest and DelegateRequest call it.
	Name() string
	// Events has at most one *messages.ClaimFrame and then one
	// *messages.ClaimEnd. It is never closed.
	Events() <-chan messages.Message
	// Release ends the claim; lost, when its stream broke and nobody said
	// goodbye. After the end it does nothing.
	Release(lost bool)
}

// MCP is a door of its own on the gateway's port, behind its guards.
type MCP interface {
	Handler() http.Handler
	// ConnContext and ConnState are told what becomes of connections, as
	// http.Server tells it.
	ConnContext(ctx context.Context, c net.Conn) context.Context
	ConnState(c net.Conn, state http.ConnState)
	// Stop ends what is held, and returns at once.
	Stop()
}

// Counter is one number of /metrics. Name is without the prefix "parley_".
type Counter struct {
	Name, Help string
	// Gauge tells a level from a count that only rises.
	Gauge bool
	Value int64
}
