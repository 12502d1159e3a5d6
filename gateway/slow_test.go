package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// A client that stops sending its body is refused and cut off, not held.
func TestASlowBodyIsCutOff(t *testing.T) {
	base, stop := serve(t, &fake{}, gateway.Options{BodyTimeout: 50 * time.Millisecond})
	defer func() { require.NoError(t, stop()) }()
	u, err := url.Parse(base)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /parley.v1.QuestionService/ListQuestions HTTP/1.1\r\nHost: "+u.Host+
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.GreaterOrEqual(t, res.StatusCode, 400)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
}

// A stranger whose body does not come is told so all the same, and soon.
func TestARefusalWaitsForNoBody(t *testing.T) {
	t.Parallel()
	base, _ := serve(t, newFake(t), gateway.Options{Tokens: roleTokens})
	u, err := url.Parse(base)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /parley.v1.QuestionService/Submit HTTP/1.1\r\nHost: "+u.Host+
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
}

// pipes is a network without buffers: what is written waits until it is read.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial connects; stall makes the client's end stop reading.
func (p pipes) dial(stall <-chan bool) net.Conn {
	near, far := net.Pipe()
	p <- far
	return &stalling{Conn: near, stall: stall, closed: make(chan bool)}
}

type stalling struct {
	net.Conn
	stall  <-chan bool
	closed chan bool
	once   sync.Once
}

func (s *stalling) Read(b []byte) (int, error) {
	select {
	case <-s.stall:
		<-s.closed // alive, and deaf
		return 0, net.ErrClosed
	default:
		return s.Conn.Read(b)
	}
}

func (s *stalling) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// stalled serves a gateway over pipes, with a client whose connections stop
// reading when stall is closed.
func stalled(t *testing.T, f *fake, http2 bool) (c messagesconnect.QuestionServiceClient, stall chan bool, log *syncBuffer) {
	log = new(syncBuffer)
	g, err := gateway.New(f, gateway.Options{WriteTimeout: 300 * time.Millisecond, Logger: log.logger()})
	require.NoError(t, err)
	ln := make(pipes)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, ln) }()
	stall = make(chan bool)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return ln.dial(stall), nil
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		close(ln)
		<-served
	})
	opts := []connect.ClientOption{connect.WithProtoJSON()}
	if http2 {
		opts = []connect.ClientOption{connect.WithGRPC()}
	}
	return messagesconnect.NewQuestionServiceClient(&http.Client{Transport: transport}, "http://localhost", opts...), stall, log
}

// A client that stops reading is cut off, and what it held is lost, not let go.
func TestAClientThatStopsReadingLosesItsClaim(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			c, stall, _ := stalled(t, f, http2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := c.AttachWait(ctx, connect.NewRequest(&messages.AttachWaitRequest{Session: "s", CallId: "c"}))
			require.NoError(t, err)
			close(stall)
			go func() { // more than whatever lies between the two
				for range 2 {
					f.claim.events <- &messages.ClaimFrame{RemainingMs: 1}
				}
			}()
			assert.True(t, <-f.claim.released)
			cancel()
			_ = stream.Close()
		})
	}
}

// A watch that is not read ends; the node does not wait for it.
func TestAWatchThatIsNotReadIsCut(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ended := newFake(t), make(chan error, 1)
			f.watch = func(ctx context.Context, send func(*messages.WatchQuestionsResponse) error) (err error) {
				defer func() { ended <- err }()
				for cursor := int64(1); err == nil && ctx.Err() == nil; cursor++ {
					err = send(&messages.WatchQuestionsResponse{Cursor: cursor})
				}
				return err
			}
			c, stall, log := stalled(t, f, http2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := c.WatchQuestions(ctx, connect.NewRequest(&messages.WatchQuestionsRequest{}))
			require.NoError(t, err)
			require.True(t, stream.Receive())
			close(stall)
			<-ended
			if !http2 { // there the connection goes, and takes the request with it
				require.Eventually(t, func() bool { return strings.Contains(log.String(), "outcome=slow") }, time.Minute, time.Millisecond)
			}
			cancel()
			_ = stream.Close()
		})
	}
}

// On one HTTP/2 connection, only the stream that is not taken is cut.
func TestOnlyTheStreamThatIsNotTakenIsCut(t *testing.T) {
	t.Parallel()
	f, ended := newFake(t), make(chan bool, 1)
	frame := &messages.WatchQuestionsResponse{Question: &messages.QuestionRow{Session: strings.Repeat("s", 1<<20)}}
	f.watch = func(ctx context.Context, send func(*messages.WatchQuestionsResponse) error) (err error) {
		defer func() { ended <- true }()
		for err == nil && ctx.Err() == nil {
			err = send(frame)
		}
		return err
	}
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return &messages.SubmitResponse{}, nil
	}
	log := new(syncBuffer)
	url, _ := serve(t, f, gateway.Options{WriteTimeout: 50 * time.Millisecond, Logger: log.logger()})
	var dials atomic.Int32
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c := messagesconnect.NewQuestionServiceClient(&http.Client{Transport: transport}, url, connect.WithGRPC(),
		connect.WithAcceptCompression("gzip", nil, nil)) // so that much is sent
	claim, err := c.AttachWait(t.Context(), connect.NewRequest(&messages.AttachWaitRequest{Session: "s", CallId: "c"}))
	require.NoError(t, err)
	watch, err := c.WatchQuestions(t.Context(), connect.NewRequest(&messages.WatchQuestionsRequest{}))
	require.NoError(t, err)
	<-ended // nobody receives
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "outcome=slow") }, time.Minute, time.Millisecond)
	_, err = c.Submit(t.Context(), submit())
	require.NoError(t, err)
	f.claim.events <- &messages.ClaimFrame{RemainingMs: 7}
	require.True(t, claim.Receive(), "%v", claim.Err())
	assert.Equal(t, int32(1), dials.Load(), "all of it went over one connection")
	f.claim.events <- &messages.ClaimEnd{Reason: "settled"}
	assert.False(t, claim.Receive())
	_ = claim.Close()
	_ = watch.Close()
}

// A stream on which nothing happens is not slow: it may be idle for ever.
func TestAnIdleStreamIsNotCut(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Millisecond
	f := newFake(t)
	f.watch = func(ctx context.Context, send func(*messages.WatchQuestionsResponse) error) error {
		for cursor := range int64(3) {
			if err := send(&messages.WatchQuestionsResponse{Cursor: cursor + 1}); err != nil {
				return err
			}
			select { // silence is what is tested
			case <-time.After(5 * limit):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	url, _ := serve(t, f, gateway.Options{WriteTimeout: limit})
	for name, c := range questions(t, url) {
		stream, err := c.WatchQuestions(t.Context(), connect.NewRequest(&messages.WatchQuestionsRequest{}))
		require.NoError(t, err, name)
		for cursor := range int64(3) {
			require.True(t, stream.Receive(), "%s: %v", name, stream.Err())
			assert.Equal(t, cursor+1, stream.Msg().GetCursor(), name)
		}
		assert.False(t, stream.Receive())
		require.NoError(t, stream.Err(), name)
		require.NoError(t, stream.Close())
	}
}

// The same connection serves the next request, whatever time has passed.
func TestADeadlineDoesNotOutliveItsRequest(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Millisecond
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return &messages.SubmitResponse{}, nil
	}
	url, _ := serve(t, f, gateway.Options{WriteTimeout: limit})
	for name, c := range questions(t, url) {
		for range 3 {
			_, err := c.Submit(t.Context(), submit())
			require.NoError(t, err, name)
			<-time.After(2 * limit) // the deadline of the request before is over
		}
	}
}
