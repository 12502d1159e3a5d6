package parley_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// patience is how long a test waits for what must come. It is no part of any
// expectation: a test that needs it has failed.
const patience = 20 * time.Second

// world is a node on a file behind a real port.
type world struct {
	*parley.Node
	t    *testing.T
	cfg  parley.Config
	url  string
	stop func() // stops the port, then the node
}

// newWorld starts a node on a file of its own.
func newWorld(t *testing.T, change ...func(*parley.Config)) *world {
	t.Helper()
	cfg := parley.Config{Path: filepath.Join(t.TempDir(), "parley.db"), Logger: testLog(t)}
	for _, c := range change {
		c(&cfg)
	}
	return start(t, cfg, parley.ServeOptions{})
}

// restart stops the world and starts another on the same file.
func (w *world) restart() *world {
	w.t.Helper()
	w.stop()
	return start(w.t, w.cfg, parley.ServeOptions{})
}

func start(t *testing.T, cfg parley.Config, opts parley.ServeOptions) *world {
	t.Helper()
	node, err := parley.Open(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	addr, served := make(chan net.Addr, 1), make(chan error, 1)
	if opts.Listener == nil && opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	opts.Ready = func(a net.Addr) { addr <- a }
	go func() { served <- node.Serve(ctx, opts) }()
	w := &world{Node: node, t: t, cfg: cfg}
	select {
	case a := <-addr:
		w.url = "http://" + a.String()
	case err := <-served:
		require.NoError(t, err)
	}
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-served)
		closing, done := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer done()
		require.NoError(t, node.Close(closing))
	}
	t.Cleanup(w.stop)
	return w
}

// testLog shows a node's log with -v only.
func testLog(t *testing.T) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	return quiet
}

// clients are the generated clients over one protocol.
type clients struct {
	questions messagesconnect.QuestionServiceClient
	sessions  messagesconnect.SessionServiceClient
	inbox     messagesconnect.InboxServiceClient
}

// json speaks Connect with JSON over HTTP/1.1.
func (w *world) json() clients { return w.clients(new(http.Transport), connect.WithProtoJSON()) }

// grpc speaks gRPC over HTTP/2 without TLS.
func (w *world) grpc() clients {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return w.clients(&http.Transport{Protocols: protocols}, connect.WithGRPC())
}

// web speaks gRPC-Web over HTTP/1.1.
func (w *world) web() clients { return w.clients(new(http.Transport), connect.WithGRPCWeb()) }

func (w *world) clients(transport *http.Transport, opts ...connect.ClientOption) clients {
	w.t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	return clients{
		messagesconnect.NewQuestionServiceClient(c, w.url, opts...),
		messagesconnect.NewSessionServiceClient(c, w.url, opts...),
		messagesconnect.NewInboxServiceClient(c, w.url, opts...),
	}
}

// say makes a Connect request of a message.
func say[T any](msg *T) *connect.Request[T] { return connect.NewRequest(msg) }

// refusal reads the typed refusal out of an error of either door.
func refusal(err error) *messages.Error {
	var own *messages.Error
	if errors.As(err, &own) {
		return own
	}
	var ce *connect.Error
	if errors.As(err, &ce) {
		for _, d := range ce.Details() {
			if msg, err := d.Value(); err == nil {
				if r, ok := msg.(*messages.Refusal); ok {
					return messages.FromWire(r)
				}
			}
		}
	}
	return &messages.Error{}
}

// attach attaches agent-1 to a session.
func (w *world) attach(session string) *parley.Agent {
	w.t.Helper()
	agent, err := w.Attach(w.t.Context(), session, "agent-1", parley.AttachOptions{})
	require.NoError(w.t, err)
	return agent
}

// asked starts an ask and waits until it is durable.
func (w *world) asked(agent *parley.Agent, call string, timeout time.Duration) <-chan outcome {
	w.t.Helper()
	results, waiting := make(chan outcome, 1), make(chan bool, 64)
	agent.AskAsync(parley.Ask{
		CallID: call, Attempt: "attempt-" + call, Questions: []parley.Question{deploy}, Timeout: timeout,
		OnWaiting: func(parley.Waiting) { waiting <- true },
	}, func(r parley.Result, err error) { results <- outcome{r, err} })
	select {
	case <-waiting:
	case o := <-results:
		require.NoError(w.t, o.err)
	case <-time.After(patience):
		require.Fail(w.t, "the question did not become durable")
	}
	return results
}

// next receives what must come.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.Fail(t, "nothing came")
		panic("unreachable")
	}
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			require.Fail(t, what)
		}
	}
}

// row reads one call.
func (w *world) row(session, call string) *parley.Row {
	w.t.Helper()
	row, err := w.Question(w.t.Context(), session, call)
	require.NoError(w.t, err)
	return row
}

// watch follows all questions through a door and hands over what comes.
func (w *world) watch(c clients, cursor int64) (rows <-chan *messages.WatchQuestionsResponse, stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := c.questions.WatchQuestions(ctx, say(&messages.WatchQuestionsRequest{Cursor: cursor}))
	require.NoError(w.t, err)
	out := make(chan *messages.WatchQuestionsResponse, 256)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for stream.Receive() {
			out <- stream.Msg()
		}
	}()
	stop = func() { cancel(); <-done; _ = stream.Close() }
	w.t.Cleanup(stop)
	return out, stop
}

// claim opens a claim through a door and waits for its frame.
func (w *world) claim(c clients, session, call string) (frame *messages.AttachWaitResponse, ended <-chan error, breakOff func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := c.questions.AttachWait(ctx, say(&messages.AttachWaitRequest{Session: session, CallId: call}))
	require.NoError(w.t, err)
	require.True(w.t, stream.Receive(), "no frame: %v", stream.Err())
	frame = stream.Msg()
	end := make(chan error, 1)
	go func() {
		for stream.Receive() {
		}
		end <- stream.Err()
		_ = stream.Close()
	}()
	w.t.Cleanup(cancel)
	return frame, end, cancel
}

func choose(label string) []*messages.Answer {
	return []*messages.Answer{{Id: "env", Selected: []string{label}}}
}
