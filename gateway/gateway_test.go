package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/parleyrun/parley/query"
)

// fake is a node that does as a test says.
type fake struct {
	do       func(context.Context, messages.Command) (messages.Reply, error)
	watch    func(context.Context, func(*messages.WatchQuestionsResponse) error) error
	claim    *fakeClaim
	let      chan string
	watching func(mayAnswer bool)
	imported func(io.Reader) (*messages.SessionRow, error)
	views    *query.Views
	journal  *memory.Journal
}

func newFake(t *testing.T) *fake {
	j := memory.New(nil)
	t.Cleanup(func() { _ = j.Close() })
	return &fake{views: query.New(j, query.Options{}), journal: j, let: make(chan string, 1),
		claim: &fakeClaim{events: make(chan messages.Message, 2), released: make(chan bool, 2)}}
}

// noPast has no past work.
type noPast struct{}

func (noPast) ListQueryTools(context.Context, *messages.ListQueryToolsRequest) (*messages.ListQueryToolsResponse, error) {
	return &messages.ListQueryToolsResponse{}, nil
}

func (noPast) CallQueryTool(_ context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error) {
	return &messages.CallQueryToolResponse{Text: req.GetTool()}, nil
}

func (noPast) Search(context.Context, *messages.SearchRequest) (*messages.SearchResponse, error) {
	return &messages.SearchResponse{}, nil
}

func (noPast) Trace(context.Context, *messages.TraceRequest) (*messages.TraceResponse, error) {
	return &messages.TraceResponse{}, nil
}

func (noPast) Read(context.Context, *messages.ReadRequest) (*messages.ReadResponse, error) {
	return &messages.ReadResponse{}, nil
}

func (f *fake) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	return f.do(ctx, cmd)
}
func (f *fake) OpenClaim(string, string, string) gateway.Claim { return f.claim }
func (f *fake) ReleaseClaim(_, _, name string)                 { f.let <- name }
func (f *fake) Watch(ctx context.Context, _ *messages.WatchQuestionsRequest, mayAnswer bool, send func(*messages.WatchQuestionsResponse) error) error {
	if f.watching != nil {
		f.watching(mayAnswer)
	}
	return f.watch(ctx, send)
}
func (f *fake) Import(_ context.Context, _ string, log io.Reader) (*messages.SessionRow, error) {
	if f.imported != nil {
		return f.imported(log)
	}
	_, err := io.Copy(io.Discard, log)
	return &messages.SessionRow{}, err
}

func (f *fake) Views() *query.Views { return f.views }
func (f *fake) Past() gateway.Past  { return noPast{} }
func (f *fake) Counters() []gateway.Counter {
	return []gateway.Counter{{Name: "sessions", Help: "Sessions.", Gauge: true, Value: 7}}
}

type fakeClaim struct {
	events   chan messages.Message
	released chan bool
}

func (c *fakeClaim) Name() string                    { return "claim/x/1" }
func (c *fakeClaim) Events() <-chan messages.Message { return c.events }
func (c *fakeClaim) Release(lost bool)               { c.released <- lost }

// syncBuffer is a log that a test reads while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *syncBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// serve puts a gateway on a port of this machine.
func serve(t *testing.T, f *fake, opts gateway.Options) (url string, stop func() error) {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := gateway.New(f, opts)
	require.NoError(t, err)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, ln) }()
	stop = sync.OnceValue(func() error { cancel(); return <-served })
	t.Cleanup(func() { _ = stop() })
	return "http://" + ln.Addr().String(), stop
}

// mounted puts a gateway into a server of somebody else.
func mounted(t *testing.T, g *gateway.Gateway) (url string) {
	srv := httptest.NewServer(g.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

func grpcClient(t *testing.T) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func questions(t *testing.T, url string) map[string]messagesconnect.QuestionServiceClient {
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	plain := &http.Client{Transport: transport}
	return map[string]messagesconnect.QuestionServiceClient{
		"json":  messagesconnect.NewQuestionServiceClient(plain, url, connect.WithProtoJSON()),
		"proto": messagesconnect.NewQuestionServiceClient(plain, url),
		"grpc":  messagesconnect.NewQuestionServiceClient(grpcClient(t), url, connect.WithGRPC()),
		"web":   messagesconnect.NewQuestionServiceClient(plain, url, connect.WithGRPCWeb()),
	}
}

func submit() *connect.Request[messages.SubmitRequest] {
	return connect.NewRequest(&messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: "x", Door: "forged"})
}

// The registry is the one table: each code is, at every door, what its row says.
func TestEveryCodeIsSaidAsItsRowSays(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var code messages.Code
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return nil, &messages.Error{Code: code, Text: "because", Winner: &messages.Settlement{Outcome: "answered", By: "ann"}}
	}
	url, _ := serve(t, f, gateway.Options{})
	clients := questions(t, url)
	require.NotEmpty(t, messages.Registry)
	for _, row := range messages.Registry {
		code = row.Code
		for name, c := range clients {
			_, err := c.Submit(t.Context(), submit())
			assert.Equal(t, row.Connect, connect.CodeOf(err).String(), "%s at %s", code, name)
			r := gateway.RefusalOf(err)
			require.NotNil(t, r, "%s at %s: %v", code, name, err)
			assert.Equal(t, code, r.Code)
			assert.Equal(t, "because", r.Text)
			assert.Equal(t, "ann", r.Winner.GetBy())
			var ce *connect.Error
			require.ErrorAs(t, err, &ce)
			detail, err := ce.Details()[0].Value()
			require.NoError(t, err)
			assert.Equal(t, row.Remedy, detail.(*messages.Refusal).GetRemedy())
		}
	}
	code = "A_CODE_OF_TOMORROW"
	_, err := clients["json"].Submit(t.Context(), submit())
	assert.Equal(t, connect.CodeUnknown, connect.CodeOf(err))
	assert.Equal(t, code, gateway.RefusalOf(err).Code)
	assert.Nil(t, gateway.RefusalOf(errors.New("of somebody else")))
}

// The door is named by the door, not by the client.
func TestTheDoorNamesItself(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var got string
	f.do = func(_ context.Context, cmd messages.Command) (messages.Reply, error) {
		got = cmd.(*messages.SubmitRequest).GetDoor()
		return &messages.SubmitResponse{}, nil
	}
	url, _ := serve(t, f, gateway.Options{})
	_, err := questions(t, url)["json"].Submit(t.Context(), submit())
	require.NoError(t, err)
	assert.Equal(t, "connect", got)
}

// A panic is ours: the client learns that, and nothing of the stack; others go on.
func TestAPanicIsABugAndNothingMore(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) { panic("the secret of the stack") }
	url, stop := serve(t, f, gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for name, c := range questions(t, url) {
		_, err := c.Submit(t.Context(), submit())
		require.Equal(t, messages.Bug, gateway.RefusalOf(err).Code, name)
		assert.NotContains(t, err.Error(), "secret", name)
	}
	f.views = nil // /healthz will panic, outside of any service
	res, err := http.Get(url + "/healthz")
	require.NoError(t, err)
	body, _ := io.ReadAll(res.Body)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, 500, res.StatusCode)
	assert.Contains(t, string(body), "BUG")
	require.NoError(t, stop())
	assert.Contains(t, log.String(), "secret of the stack")
}

// An answer of the wrong kind is a bug, not a crash.
func TestAnAnswerOfTheWrongKindIsABug(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) { return &messages.SteerResponse{}, nil }
	url, _ := serve(t, f, gateway.Options{})
	_, err := questions(t, url)["json"].Submit(t.Context(), submit())
	assert.Equal(t, messages.Bug, gateway.RefusalOf(err).Code)
}

// Headers leave at once: a client knows that it is connected before anything happens.
func TestAQuietWatchIsConnectedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.watch = func(ctx context.Context, _ func(*messages.WatchQuestionsResponse) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	url, stop := serve(t, f, gateway.Options{})
	for name, body := range map[string]string{"application/connect+json": "{}", "application/grpc-web+json": "{}"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+messagesconnect.QuestionServiceWatchQuestionsProcedure,
			strings.NewReader("\x00\x00\x00\x00"+string(rune(len(body)))+body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", name)
		res, err := http.DefaultClient.Do(req) // returns with the headers
		require.NoError(t, err, name)
		assert.Equal(t, 200, res.StatusCode, name)
		t.Cleanup(func() { _ = res.Body.Close() })
	}
	require.NoError(t, stop())
}

// A claim's stream: one frame; a clean end is an empty rest, a cut is worth
// another try, and a client that is gone has lost it.
func TestAClaimLivesAsLongAsItsStream(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"json", "proto", "grpc", "web"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			url, _ := serve(t, f, gateway.Options{})
			c := questions(t, url)[door]
			open := func(ctx context.Context) *connect.ServerStreamForClient[messages.AttachWaitResponse] {
				stream, err := c.AttachWait(ctx, connect.NewRequest(&messages.AttachWaitRequest{Session: "s", CallId: "c"}))
				require.NoError(t, err)
				return stream
			}
			stream := open(t.Context())
			f.claim.events <- &messages.ClaimFrame{RemainingMs: 42}
			require.True(t, stream.Receive(), "%v", stream.Err())
			assert.Equal(t, int64(42), stream.Msg().GetRemainingMs())
			assert.Equal(t, "claim/x/1", stream.Msg().GetClaim())
			f.claim.events <- &messages.ClaimEnd{Reason: "settled"}
			assert.False(t, stream.Receive())
			assert.NoError(t, stream.Err())
			<-f.claim.released // after the end it does nothing
			require.NoError(t, stream.Close())

			stream = open(t.Context())
			f.claim.events <- &messages.ClaimEnd{Reason: "unavailable", Retryable: true}
			assert.False(t, stream.Receive())
			assert.Equal(t, messages.Unavailable, gateway.RefusalOf(stream.Err()).Code)
			<-f.claim.released
			require.NoError(t, stream.Close())

			ctx, hangUp := context.WithCancel(t.Context())
			stream = open(ctx)
			f.claim.events <- &messages.ClaimFrame{RemainingMs: 1}
			require.True(t, stream.Receive())
			hangUp()
			assert.True(t, <-f.claim.released, "when in doubt it is lost")
			_ = stream.Close()

			_, err := c.ReleaseWait(t.Context(), connect.NewRequest(&messages.ReleaseWaitRequest{Session: "s", CallId: "c", Claim: "claim/x/1"}))
			require.NoError(t, err)
			assert.Equal(t, "claim/x/1", <-f.let)
		})
	}
}

// A handler that does not let go is cut off when the drain time is over.
func TestTheDrainHasAnEnd(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	entered, never := make(chan bool), make(chan bool)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		entered <- true
		<-never
		return &messages.SubmitResponse{}, nil
	}
	url, stop := serve(t, f, gateway.Options{Drain: 20 * time.Millisecond})
	cut := make(chan error, 1)
	go func() { _, err := questions(t, url)["json"].Submit(t.Context(), submit()); cut <- err }()
	<-entered
	require.NoError(t, stop())
	assert.Error(t, <-cut)
	close(never)
}

// A stopped gateway that is still mounted somewhere refuses, so that the
// client goes elsewhere.
func TestAStoppedGatewayRefuses(t *testing.T) {
	t.Parallel()
	g, err := gateway.New(newFake(t), gateway.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	srv := httptest.NewServer(g.Handler())
	defer srv.Close()
	g.Stop()
	_, err = questions(t, srv.URL)["json"].Submit(t.Context(), submit())
	assert.Equal(t, messages.Unavailable, gateway.RefusalOf(err).Code)
	res, err := http.Get(srv.URL + "/healthz")
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, 503, res.StatusCode)
}

// Browsers of an allowed origin may call, and are told so without a token.
func TestPreflight(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, newFake(t), gateway.Options{Token: "a-token-of-some-length", AllowOrigins: []string{"https://ui.example.org"}})
	ask := func(origin string) (status int, header http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, url+messagesconnect.QuestionServiceSubmitProcedure, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Origin", origin)
		req.Header.Set("Access-Control-Request-Method", "POST")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode, res.Header
	}
	status, header := ask("https://ui.example.org")
	assert.Equal(t, 204, status)
	assert.Equal(t, "https://ui.example.org", header.Get("Access-Control-Allow-Origin"))
	assert.Contains(t, header.Get("Access-Control-Allow-Headers"), "Authorization")
	status, header = ask("https://evil.example")
	assert.Equal(t, 403, status)
	assert.Empty(t, header.Get("Access-Control-Allow-Origin"))
}

// Too large is said by its own code, whether or not the client tells the size first.
func TestALargeBodyIsToldBeforeItIsRead(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, newFake(t), gateway.Options{})
	for name, body := range map[string]io.Reader{
		"with a length":    bytes.NewReader(make([]byte, 5<<20)),
		"without a length": io.MultiReader(bytes.NewReader(make([]byte, 5<<20))),
	} {
		res, err := http.Post(url+messagesconnect.QuestionServiceSubmitProcedure, "application/json", body)
		require.NoError(t, err, name)
		var said struct {
			Code    string
			Message string
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&said), name)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, "resource_exhausted", said.Code, name)
		assert.Contains(t, said.Message, "TOO_LARGE", name)
	}
}

// One line per request, always with the same keys; never with what was said.
func TestOneLinePerRequest(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return nil, messages.Refuse(messages.Settled, "too late")
	}
	url, stop := serve(t, f, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	req := submit()
	req.Msg.Answers = []*messages.Answer{{Id: "q", Selected: []string{"the canary"}}}
	_, err := questions(t, url)["json"].Submit(t.Context(), req)
	require.Error(t, err)
	res, err := http.Get(url + "/metrics")
	require.NoError(t, err)
	text, _ := io.ReadAll(res.Body)
	require.NoError(t, res.Body.Close())
	require.NoError(t, stop())
	var lines []map[string]any
	for line := range strings.Lines(log.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if m["msg"] == "request" {
			lines = append(lines, m)
		}
	}
	require.Len(t, lines, 2)
	assert.Equal(t, "s", lines[0]["session"])
	assert.Equal(t, "SETTLED", lines[0]["outcome"])
	assert.Equal(t, "INFO", lines[0]["level"])
	assert.Equal(t, messagesconnect.QuestionServiceSubmitProcedure, lines[0]["path"])
	assert.Equal(t, "DEBUG", lines[1]["level"])
	assert.NotContains(t, log.String(), "canary")
	assert.Contains(t, string(text), "parley_sessions 7\n")
	assert.Contains(t, string(text), "# TYPE parley_sessions gauge\n")
	assert.Contains(t, string(text), `parley_requests_total{outcome="SETTLED"} 1`)
}

// Every limit names the field, what it allows and what it found.
func TestCheckNamesTheField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<20)
	seconds := int64(3)
	detail := "d"
	ids := make([]string, messages.PageMax+1)
	for field, req := range map[string]proto.Message{
		"session":                &messages.AttachRequest{Root: "r"},
		"root":                   &messages.BeginStepRequest{Session: "s"},
		"owner":                  &messages.AttachRequest{Session: "s", Root: "r", Owner: " "},
		"cwd":                    &messages.AttachRequest{Session: "s", Root: "r", Cwd: "/" + long},
		"turn":                   &messages.BeginTurnRequest{Session: "s", Root: "r", Turn: -1},
		"step":                   &messages.EndStepRequest{Session: "s", Root: "r", Step: -1},
		"reason":                 &messages.EndTurnRequest{Session: "s", Root: "r", Reason: long},
		"attempt":                &messages.AskRequest{Session: "s", Root: "r"},
		"call_id":                &messages.AskRequest{Session: "s", Root: "r", Attempt: "a", CallId: "a\x00"},
		"arguments":              &messages.AskRequest{Session: "s", Root: "r", Attempt: "a", Arguments: long},
		"timeout_seconds":        &messages.AskRequest{Session: "s", Root: "r", Attempt: "a", Arguments: "{}", TimeoutSeconds: &seconds},
		"assistant_message":      &messages.AskRequest{Session: "s", Root: "r", Attempt: "a", AssistantMessage: long},
		"hold_ms":                &messages.AskRequest{Session: "s", Root: "r", Attempt: "a", HoldMs: -1},
		"questions[0]":           &messages.AskRequest{Session: "s", Root: "r", Attempt: "a", Questions: []*messages.Question{{Id: "q", Detail: &detail}}},
		"submission_id":          &messages.SubmitRequest{Session: "s", CallId: "c"},
		`cwd is "."`:             &messages.AttachRequest{Session: "s", Root: "r", Cwd: "."},
		"by":                     &messages.DismissRequest{Session: "s", CallId: "c", By: long},
		"answers":                &messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: "x", Answers: make([]*messages.Answer, messages.AnswersMax+1)},
		"answers[0].selected":    &messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: "x", Answers: []*messages.Answer{{Id: "q", Selected: make([]string, messages.SelectedMax+1)}}},
		"answers[0].custom":      &messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: "x", Answers: []*messages.Answer{{Id: "q", Custom: &long}}},
		"answers[0].selected[0]": &messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: "x", Answers: []*messages.Answer{{Id: "q", Selected: []string{long}}}},
		"claim":                  &messages.DelegateRequest{Session: "s", CallId: "c"},
		"message_id":             &messages.SteerRequest{Session: "s"},
		"list":                   &messages.SteerRequest{Session: "s", MessageId: "m", List: "later"},
		"text":                   &messages.SteerRequest{Session: "s", MessageId: "m", Text: long},
		"message_ids":            &messages.AdmitMessagesRequest{Session: "s", Root: "r", MessageIds: ids},
		"message_ids[0]":         &messages.ClaimMessagesRequest{Session: "s", Root: "r", MessageIds: []string{""}},
		"client":                 &messages.WatchQuestionsRequest{Client: " "},
		"after":                  &messages.ListSessionsRequest{After: "\x01"},
		"tool":                   &messages.CallQueryToolRequest{Session: "s", Root: "r", Tool: long},
		"query":                  &messages.SearchRequest{Query: long},
	} {
		err := gateway.Check(req)
		require.Error(t, err, field)
		assert.Contains(t, []messages.Code{messages.BadRequest, messages.TooLarge}, messages.CodeOf(err), field)
		assert.Contains(t, err.Error(), field)
	}
	for _, req := range []proto.Message{
		&messages.AskRequest{Session: "s", Root: "r", Attempt: "a"},
		&messages.AttachRequest{Session: "s", Root: "r"}, &messages.AttachRequest{Session: "s", Root: "r", Cwd: "/srv"},
		&messages.WithdrawQuestionRequest{Session: "s", CallId: "c"}, // a person may, without a root
		&messages.ListQuestionsRequest{}, &messages.ListSessionsRequest{},
	} {
		assert.NoError(t, gateway.Check(req), "%T", req)
	}
}

func TestOptionsTellEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := gateway.New(newFake(t), gateway.Options{Token: " short", AllowOrigins: []string{"ui.example.org", "https://x/path"}, AllowHosts: []string{"*"}, Drain: -1})
	require.Equal(t, messages.BadRequest, messages.CodeOf(err))
	for _, part := range []string{"at least 16", "white space", "ui.example.org", "https://x/path", `"*"`, "-1ns"} {
		assert.Contains(t, err.Error(), part)
	}
}
