package mcp

import (
	"context"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// Door is the tools, as one server that every transport and every connection
// shares. It is safe for concurrent use.
type Door struct {
	port       Port
	opts       Options
	clock      clock
	definition definition
	shared     *sdk.Server
	attached   attached
	alive      alive
	wires      *transports
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
	if opts.Mode == messages.Mode_MODE_UNSPECIFIED {
		opts.Mode = messages.Mode_MODE_TIMED
	}
	def, err := readDefinition(opts.Definition)
	if err != nil {
		return nil, err
	}
	d := &Door{port: port, opts: opts, clock: wallClock{}, definition: def}
	d.shared = sdk.NewServer(&sdk.Implementation{Name: "parley", Title: "Parley", Version: opts.Version}, &sdk.ServerOptions{
		Instructions: d.instructions(),
		Logger:       slog.New(hushed{opts.Logger.Handler()}),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		// What a client sees is written for it alone.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	handlers := map[string]sdk.ToolHandler{toolAsk: d.ask, toolCollect: d.collect, toolWithdraw: d.withdraw}
	for _, tool := range d.pastTools() {
		handlers[tool.Name] = d.past
	}
	for _, tool := range d.tools(view{}) {
		d.shared.AddTool(tool, handlers[tool.Name])
	}
	d.shared.AddReceivingMiddleware(d.tailor)
	d.wires = newTransports(d.shared, opts.Logger, wallTimers{})
	return d, nil
}

// server returns the one server that every transport serves. Receiving
// middleware that is added later runs before the door's own.
func (d *Door) server() *sdk.Server { return d.shared }
