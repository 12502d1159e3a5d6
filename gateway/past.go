package gateway

import (
	"context"

	"connectrpc.com/connect"

	"github.com/parleyrun/parley/messages"
)

// Past is what a node offers of past work.
type Past interface {
	ListQueryTools(ctx context.Context, req *messages.ListQueryToolsRequest) (*messages.ListQueryToolsResponse, error)
	CallQueryTool(ctx context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error)
	Search(ctx context.Context, req *messages.SearchRequest) (*messages.SearchResponse, error)
	Trace(ctx context.Context, req *messages.TraceRequest) (*messages.TraceResponse, error)
	Read(ctx context.Context, req *messages.ReadRequest) (*messages.ReadResponse, error)
}

type queryService struct{ *Gateway }

func (s queryService) ListQueryTools(ctx context.Context, r *connect.Request[messages.ListQueryToolsRequest]) (*connect.Response[messages.ListQueryToolsResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Past().ListQueryTools)
}

func (s queryService) CallQueryTool(ctx context.Context, r *connect.Request[messages.CallQueryToolRequest]) (*connect.Response[messages.CallQueryToolResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Past().CallQueryTool)
}

func (s queryService) Search(ctx context.Context, r *connect.Request[messages.SearchRequest]) (*connect.Response[messages.SearchResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Past().Search)
}

func (s queryService) Trace(ctx context.Context, r *connect.Request[messages.TraceRequest]) (*connect.Response[messages.TraceResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Past().Trace)
}

func (s queryService) Read(ctx context.Context, r *connect.Request[messages.ReadRequest]) (*connect.Response[messages.ReadResponse], error) {
	return read(ctx, s.Gateway, r, s.port.Past().Read)
}
