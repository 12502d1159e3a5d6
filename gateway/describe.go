package gateway

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/parleyrun/parley/messages"
	mc "github.com/parleyrun/parley/messages/messagesconnect"
)

// services are those that reflection lists and health tells about.
var services = []string{mc.SessionServiceName, mc.QuestionServiceName, mc.InboxServiceName, mc.QueryServiceName}

const healthPrefix = "/" + grpchealth.HealthV1ServiceName + "/"

// describe mounts what clients learn about the node from itself: the schemas
// (gRPC reflection, both versions) and its health (gRPC's own service).
func (g *Gateway) describe(mux *http.ServeMux) {
	reflector := grpcreflect.NewStaticReflector(append([]string{grpchealth.HealthV1ServiceName}, services...)...)
	opts := connect.WithHandlerOptions(connect.WithReadMaxBytes(bodyBytesMax), connect.WithRecover(g.panicked))
	mux.Handle(grpcreflect.NewHandlerV1(reflector, opts))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, opts))
	path, handler := grpchealth.NewHandler(health{g}, opts)
	mux.Handle(path, ending(handler))
}

// isHealth tells whether a request asks for the health of a node: it is
// answered while the node stops, too.
func isHealth(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, healthPrefix) }

// health is what gRPC's health service tells: SERVING while the node serves and
// its journal answers, NOT_SERVING from the moment that it was told to stop.
type health struct{ *Gateway }

// Check tells the health of the node, or of one of its services: they are one.
func (h health) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if err := known(req); err != nil {
		return nil, err
	}
	if h.stopping.Err() != nil {
		end(ctx)
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	if h.port.Views().Ready(ctx) != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

// Watch tells of the stop; a journal that fails is seen by Check.
func (h health) Watch(_ context.Context, req *grpchealth.CheckRequest, onChange func()) (stop func(), err error) {
	if err := known(req); err != nil {
		return nil, err
	}
	undo := context.AfterFunc(h.stopping, onChange)
	return func() { undo() }, nil
}

func known(req *grpchealth.CheckRequest) error {
	if req.Service == "" || req.Service == grpchealth.HealthV1ServiceName {
		return nil
	}
	for _, name := range services {
		if req.Service == name {
			return nil
		}
	}
	return sayRefusal(messages.Refuse(messages.NotFound, "this node has no service %.200q", req.Service))
}

type endKey struct{}

// ending lets Check end the stream that it is asked for: the frame that says
// NOT_SERVING is a watch's last, and nobody waits for the watcher to leave.
func ending(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, endKey{}, cancel)))
	})
}

func end(ctx context.Context) {
	if cancel, ok := ctx.Value(endKey{}).(context.CancelFunc); ok {
		cancel()
	}
}
