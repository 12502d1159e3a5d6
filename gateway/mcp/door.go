package mcp

import (
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// Door is the tools, as one server that every transport and every connection
// shares. It is safe for concurrent use.
type Door struct {
	port   Port
	opts   Options
	clock  clock
	shared *sdk.Server
}

// New makes the door of a node. Its errors are BAD_REQUEST, for options that
// are not whole.
func New(port Port, opts Options) (*Door, error) {
	if opts.NewID == nil {
		return nil, messages.Refuse(messages.BadRequest, "the MCP door needs NewID, to draw its own ids")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Door{port: port, opts: opts, clock: wallClock{}}
	d.shared = sdk.NewServer(&sdk.Implementation{Name: "parley", Title: "Parley", Version: opts.Version}, &sdk.ServerOptions{Logger: opts.Logger})
	return d, nil
}

// server returns the one server that every transport serves.
func (d *Door) server() *sdk.Server { return d.shared }
