package gateway_test

import (
	"context"
	"net/http"
	"regexp"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// A client that knows nothing learns every service and its schema from the
// node, over a stream that it keeps open.
func TestReflectionTellsTheSchemas(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, newFake(t), gateway.Options{Tokens: roleTokens})
	c := grpcreflect.NewClient(grpcClient(t), url, connect.WithGRPC())
	viewer := http.Header{"Authorization": {"Bearer " + roleTokens[gateway.RoleViewer][0]}}
	stream := c.NewStream(t.Context(), grpcreflect.WithRequestHeaders(viewer))
	names, err := stream.ListServices()
	require.NoError(t, err)
	services := messages.File_service_proto.Services()
	for i := range services.Len() {
		assert.Contains(t, names, services.Get(i).FullName())
	}
	assert.Contains(t, names, protoreflect.FullName(grpchealth.HealthV1ServiceName))
	for _, name := range names {
		files, err := stream.FileContainingSymbol(name)
		require.NoError(t, err, name)
		assert.NotEmpty(t, files, name)
	}
	files, err := stream.FileContainingSymbol("parley.v1.QuestionService")
	require.NoError(t, err)
	want := protodesc.ToFileDescriptorProto(messages.File_service_proto)
	found := false
	for _, f := range files {
		found = found || proto.Equal(f, want)
	}
	assert.True(t, found, "the schema is the one that is served")
	_, err = stream.Close()
	require.NoError(t, err)

	_, err = c.NewStream(t.Context()).ListServices()
	assert.Equal(t, messages.Unauthenticated, gateway.RefusalOf(err).Code)
}

// Reads are marked as such, and those alone: only they may be sent by GET.
func TestReadsAreMarked(t *testing.T) {
	t.Parallel()
	services := messages.File_service_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			opts, _ := m.Options().(*descriptorpb.MethodOptions)
			marked := opts.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
			name := string(m.Name())
			reads := regexp.MustCompile("^(Get|List|Read|Search|Trace|CallQueryTool)").MatchString(name)
			assert.Equal(t, reads, marked, m.FullName())
		}
	}
}

// A read works by GET, and nothing else does.
func TestReadsWorkByGET(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, newFake(t), gateway.Options{})
	for procedure, want := range map[string]int{
		messagesconnect.SessionServiceListSessionsProcedure:   http.StatusOK,
		messagesconnect.QuestionServiceListQuestionsProcedure: http.StatusOK,
		messagesconnect.QuestionServiceDismissProcedure:       http.StatusMethodNotAllowed,
		messagesconnect.SessionServiceAttachProcedure:         http.StatusMethodNotAllowed,
	} {
		res, err := http.Get(url + procedure + "?encoding=json&message=%7B%7D")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode, procedure)
	}
}

// Health needs no token, knows the services, and turns when the node stops: to
// a check, and to whoever watches, whose stream then ends.
func TestHealthTurnsWhenTheNodeStops(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	hold, entered := make(chan bool), make(chan bool)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		entered <- true
		<-hold
		return &messages.SubmitResponse{}, nil
	}
	url, stop := serve(t, f, gateway.Options{Tokens: roleTokens})
	plain := new(http.Transport)
	t.Cleanup(plain.CloseIdleConnections)
	clients := map[string]*grpchealth.Client{
		"grpc": grpchealth.NewClient(grpcClient(t), url, connect.WithGRPC()),
		"web":  grpchealth.NewClient(&http.Client{Transport: plain}, url, connect.WithGRPCWeb()),
		"json": grpchealth.NewClient(&http.Client{Transport: plain}, url, connect.WithProtoJSON()),
	}
	type watched struct {
		door     string
		statuses []grpchealth.Status
		err      error
	}
	ends := make(chan watched, len(clients))
	seen := make(chan bool, len(clients))
	for name, c := range clients {
		for _, service := range []string{"", messagesconnect.QuestionServiceName} {
			res, err := c.Check(t.Context(), &grpchealth.CheckRequest{Service: service})
			require.NoError(t, err, name)
			assert.Equal(t, grpchealth.StatusServing, res.Status, name)
		}
		_, err := c.Check(t.Context(), &grpchealth.CheckRequest{Service: "parley.v1.Nothing"})
		assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err), name)
		go func() {
			w := watched{door: name}
			for event := range c.Watch(t.Context(), &grpchealth.CheckRequest{}) {
				if w.err = event.Err; w.err != nil {
					break
				}
				if w.statuses = append(w.statuses, event.Response.Status); len(w.statuses) == 1 {
					seen <- true
				}
			}
			ends <- w
		}()
	}
	for range clients {
		<-seen
	}
	go func() {
		req := submit()
		req.Header().Set("Authorization", "Bearer "+roleTokens[gateway.RoleAnswerer][0])
		_, _ = questions(t, url)["grpc"].Submit(t.Context(), req)
	}()
	plain.CloseIdleConnections() // a connection that was never used would be waited for, for 5 s
	<-entered                    // a request under way keeps the connections open
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for range clients {
		w := <-ends
		require.NoError(t, w.err, w.door)
		assert.Equal(t, []grpchealth.Status{grpchealth.StatusServing, grpchealth.StatusNotServing}, w.statuses, w.door)
	}
	close(hold)
	require.NoError(t, <-stopped)
}

// A stopped gateway that is still mounted says so to whoever asks for its health.
func TestAStoppedGatewayIsNotServing(t *testing.T) {
	t.Parallel()
	g, err := gateway.New(newFake(t), gateway.Options{Logger: new(syncBuffer).logger()})
	require.NoError(t, err)
	srv := mounted(t, g)
	g.Stop()
	res, err := grpchealth.NewClient(http.DefaultClient, srv, connect.WithProtoJSON()).Check(t.Context(), &grpchealth.CheckRequest{})
	require.NoError(t, err)
	assert.Equal(t, grpchealth.StatusNotServing, res.Status)
}

// A client that keeps its reflection stream open does not hold up the end.
func TestStoppingEndsReflection(t *testing.T) {
	t.Parallel()
	log := new(syncBuffer)
	url, stop := serve(t, newFake(t), gateway.Options{Logger: log.logger()})
	stream := grpcreflect.NewClient(grpcClient(t), url, connect.WithGRPC()).NewStream(t.Context())
	_, err := stream.ListServices()
	require.NoError(t, err)
	require.NoError(t, stop())
	assert.NotContains(t, log.String(), "requests cut off", "the drain time was not needed")
	_, err = stream.ListServices()
	require.Error(t, err)
}
