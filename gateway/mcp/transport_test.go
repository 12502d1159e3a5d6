package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must come; quiet for what must not.
const (
	patience = 10 * time.Second
	quiet    = 30 * time.Millisecond
)

// fakeTimers fire when a test says that time has passed.
type fakeTimers struct {
	mu    sync.Mutex
	now   time.Duration
	armed map[*fakeTimer]struct{}
}

type fakeTimer struct {
	at time.Duration
	f  func()
}

func newFakeTimers() *fakeTimers { return &fakeTimers{armed: map[*fakeTimer]struct{}{}} }

func (c *fakeTimers) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &fakeTimer{c.now + d, f}
	c.armed[timer] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.armed, timer)
	}
}

func (c *fakeTimers) pass(d time.Duration) {
	c.mu.Lock()
	c.now += d
	var due []func()
	for timer := range c.armed {
		if timer.at <= c.now {
			due = append(due, timer.f)
			delete(c.armed, timer)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// armedFor counts the timers that run for so long.
func (c *fakeTimers) armedFor(d time.Duration) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for timer := range c.armed {
		if timer.at == c.now+d {
			n++
		}
	}
	return n
}

// rig is transports with one tool, whose calls a test holds.
type rig struct {
	*transports
	t      *testing.T
	timers *fakeTimers
	calls  chan *held
	url    string
	server *httptest.Server
}

// held is one call of the tool.
type held struct {
	life    *life
	arrived chan struct{}
	answer  chan string
}

// newRig makes one whose kernel says what is given, or nothing: the time of the
// tests is their own, and that of the kernel is not.
func newRig(t *testing.T, says ...func(net.Conn) traffic) *rig {
	t.Helper()
	r := &rig{t: t, timers: newFakeTimers(), calls: make(chan *held, 16)}
	server := sdk.NewServer(&sdk.Implementation{Name: "rig"}, nil)
	server.AddTool(&sdk.Tool{Name: "hold", InputSchema: json.RawMessage(`{"type":"object"}`)}, r.hold)
	server.AddTool(&sdk.Tool{Name: "panic", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { panic("secret") })
	r.transports = newTransports(server, slog.New(slog.DiscardHandler), r.timers)
	r.trafficOf = append(says, func(net.Conn) traffic { return traffic{} })[0]
	r.server = httptest.NewUnstartedServer(r.transports)
	r.server.Config.ConnContext, r.server.Config.ConnState = r.connected, r.changed
	r.server.Start()
	r.url = r.server.URL + Path
	t.Cleanup(func() { r.stop(errStopping); r.server.CloseClientConnections(); r.server.Close() })
	return r
}

// hold is the tool: it returns what the test says, or why its request is gone.
func (r *rig) hold(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	h := &held{life: lifeOf(ctx), arrived: make(chan struct{}), answer: make(chan string, 1)}
	h.life.whenWritten(func() { close(h.arrived) })
	r.calls <- h
	text := ""
	select {
	case text = <-h.answer:
	case <-h.life.gone.Done():
		text = "gone: " + context.Cause(h.life.gone).Error()
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

// next is the next call that has begun.
func (r *rig) next() *held {
	r.t.Helper()
	select {
	case h := <-r.calls:
		return h
	case <-time.After(patience):
		require.Fail(r.t, "no call came")
		return nil
	}
}

// goneBy waits until the request is gone, and returns why.
func (h *held) goneBy(t *testing.T) error {
	t.Helper()
	select {
	case <-h.life.gone.Done():
		return context.Cause(h.life.gone)
	case <-time.After(patience):
		require.Fail(t, "the request still lives")
		return nil
	}
}

func (h *held) lives(t *testing.T) {
	t.Helper()
	select {
	case <-h.life.gone.Done():
		require.Fail(t, "the request is gone", "%v", context.Cause(h.life.gone))
	case <-time.After(quiet):
	}
}

func (h *held) hasArrived(t *testing.T) {
	t.Helper()
	select {
	case <-h.arrived:
	case <-time.After(patience):
		require.Fail(t, "the response does not count as arrived")
	}
}

func (h *held) hasNotArrived(t *testing.T) {
	t.Helper()
	select {
	case <-h.arrived:
		require.Fail(t, "the response counts as arrived")
	case <-time.After(quiet):
	}
}

const (
	oldRevision = "2025-11-25"
	callHold    = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hold","arguments":{}%s}}`
	newMeta     = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
)

// request makes a request of a revision.
func (r *rig) request(ctx context.Context, method, url, session, revision, body string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set(sessionHeader, session)
	}
	if revision != "" {
		req.Header.Set(versionHeader, revision)
	}
	if revision >= newRevision {
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", "hold")
	}
	return req
}

// connect opens a connection of an older revision and returns its session.
func (r *rig) connect() string { return r.connectAs("t") }

func (r *rig) connectAs(client string) string {
	r.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + oldRevision + `","capabilities":{},"clientInfo":{"name":"` + client + `","version":"1"}}}`
	res, err := http.DefaultClient.Do(r.request(r.t.Context(), http.MethodPost, r.url, "", "", body))
	require.NoError(r.t, err)
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	session := res.Header.Get(sessionHeader)
	require.NotEmpty(r.t, session)
	r.notify(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return session
}

func (r *rig) notify(session, body string) {
	r.t.Helper()
	res, err := http.DefaultClient.Do(r.request(r.t.Context(), http.MethodPost, r.url, session, oldRevision, body))
	require.NoError(r.t, err)
	defer res.Body.Close()
	require.Equal(r.t, http.StatusAccepted, res.StatusCode)
}

// stream is a response that is read while it comes.
type stream struct {
	lines *bufio.Reader
	res   *http.Response
	close func()
}

// do sends a request on a connection of its own.
func (r *rig) do(method, url, session, revision, body string, header ...string) *stream {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	req := r.request(ctx, method, url, session, revision, body)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	out := &stream{close: func() { cancel(); transport.CloseIdleConnections() }}
	pipe, w := io.Pipe()
	out.lines = bufio.NewReader(pipe)
	go func() {
		res, err := transport.RoundTrip(req)
		if err == nil {
			out.res = res
			_, err = io.Copy(w, res.Body)
			_ = res.Body.Close()
		}
		_ = w.CloseWithError(err)
	}()
	return out
}

// until returns the first line with a prefix and more, without it; "" at the end.
func (s *stream) until(prefix string) string {
	for {
		line, err := s.lines.ReadString('\n')
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), prefix); ok && rest != "" {
			return rest
		}
		if err != nil {
			return ""
		}
	}
}

// result is the text of the call's result.
func (s *stream) result(t *testing.T) string {
	t.Helper()
	for {
		data := s.until("data: ")
		require.NotEmpty(t, data, "the stream ended without a result")
		var m struct {
			ID     any
			Result struct{ Content []struct{ Text string } }
		}
		if json.Unmarshal([]byte(data), &m) == nil && m.ID != nil {
			require.Len(t, m.Result.Content, 1, data)
			return m.Result.Content[0].Text
		}
	}
}

func old() string { return strings.Replace(callHold, "%s", "", 1) }
func neu() string { return strings.Replace(callHold, "%s", newMeta, 1) }

// Both eras take one path, and a connection that goes on has carried a response.
func TestBothErasAreServedAndConfirmed(t *testing.T) {
	r := newRig(t)
	for _, era := range []string{"old", "new"} {
		session, revision, body := "", newRevision, neu()
		if era == "old" {
			session, revision, body = r.connect(), oldRevision, old()
		}
		s := r.do(http.MethodPost, r.url+"/demo?owner=boss&wait_max=90s", session, revision, body)
		h := r.next()
		require.Equal(t, "demo", h.life.session, era)
		require.Equal(t, "boss", h.life.owner)
		require.Equal(t, 90*time.Second, h.life.waitMax)
		require.Equal(t, era == "old", h.life.minted != nil, "only the older revisions have connections that last")
		h.answer <- "yes"
		require.Equal(t, "yes", s.result(t))
		h.hasNotArrived(t)
		require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
		h.lives(t)
		r.timers.pass(outliveAfter)
		h.hasArrived(t)
		require.Error(t, h.goneBy(t), "it lives no longer than that")
	}
	r.holdsNothing()
}

// A client that gives up a call throws away a response that crossed its word; a
// next request on the connection proves nothing then. One client gives up every
// call once it has read the result.
func TestAResponseThatIsThrownAwayHasNotArrived(t *testing.T) {
	for client, thrown := range map[string]bool{"t": true, "opencode": false} {
		r := newRig(t)
		session := r.connectAs(client)
		s := r.do(http.MethodPost, r.url, session, oldRevision, old())
		h := r.next()
		h.answer <- "yes"
		require.Equal(t, "yes", s.result(t))
		require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
		r.notify(session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		r.notify(r.connectAs(client), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		h.lives(t) // neither another call nor another's call
		r.notify(session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		if thrown {
			require.ErrorIs(t, h.goneBy(t), errThrown)
		}
		r.timers.pass(outliveAfter)
		if thrown {
			h.hasNotArrived(t)
		} else {
			h.hasArrived(t)
		}
		r.holdsNothing()
	}
}

// A response whose connection closed before it could prove anything has not arrived.
func TestAClosedConnectionConfirmsNothing(t *testing.T) {
	r := newRig(t)
	s := r.do(http.MethodPost, r.url, "", newRevision, neu())
	h := r.next()
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
	s.close()
	require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 0 }, patience, time.Millisecond)
	r.timers.pass(outliveAfter)
	h.hasNotArrived(t)
	require.ErrorIs(t, h.goneBy(t), errUnread, "a question whose answer may be lost can be joined")
}

// A next request on the same connection proves that the response was read.
func TestANextRequestConfirms(t *testing.T) {
	r := newRig(t)
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	answered := make(chan error, 1)
	go func() {
		res, err := transport.RoundTrip(r.request(t.Context(), http.MethodPost, r.url, "", newRevision, neu()))
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		answered <- err
	}()
	h := r.next()
	h.answer <- "yes"
	require.NoError(t, <-answered)
	h.hasNotArrived(t)
	res, err := transport.RoundTrip(r.request(t.Context(), http.MethodGet, r.url, "", newRevision, ""))
	require.NoError(t, err)
	_ = res.Body.Close()
	h.hasArrived(t)
}

// Without hooks into the server, a client that was there at the end will do.
func TestAnotherServersConnectionIsNotWatched(t *testing.T) {
	r := newRig(t)
	server := httptest.NewServer(r.transports)
	defer server.Close()
	s := r.do(http.MethodPost, server.URL+Path, "", newRevision, neu())
	h := r.next()
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	h.hasArrived(t)
	s.close()
}

// Many calls share a connection of HTTP/2, so that a next request proves nothing
// of the response before; that the connection lives on does.
func TestHTTP2ConfirmsByItsConnection(t *testing.T) {
	r := newRig(t)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(r.transports)
	server.Config.ConnContext, server.Config.ConnState, server.Config.Protocols = r.connected, r.changed, protocols
	server.Start()
	defer server.Close()
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	ask := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			res, err := transport.RoundTrip(r.request(ctx, http.MethodPost, server.URL+Path, "", newRevision, neu()))
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			done <- err
		}()
		return done
	}
	done := ask(t.Context())
	h := r.next()
	h.answer <- "yes"
	require.NoError(t, <-done)
	written := func() {
		t.Helper()
		require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
	}
	written()
	done = ask(t.Context())
	second := r.next()
	h.hasNotArrived(t)
	r.timers.pass(outliveAfter)
	h.hasArrived(t)

	second.answer <- "yes"
	require.NoError(t, <-done)
	written()
	transport.CloseIdleConnections()
	require.ErrorIs(t, second.goneBy(t), errUnread)
	second.hasNotArrived(t)

	ctx, cancel := context.WithCancel(t.Context())
	done = ask(ctx)
	h = r.next()
	cancel()
	require.Error(t, <-done)
	require.Error(t, h.goneBy(t))
	h.hasNotArrived(t)
}

// The newest revision has no way back: a closed request is gone at once.
func TestAClosedRequestOfTheNewestRevisionIsGone(t *testing.T) {
	r := newRig(t)
	s := r.do(http.MethodPost, r.url, "", newRevision, neu())
	h := r.next()
	h.lives(t)
	s.close()
	require.Error(t, h.goneBy(t))
	h.hasNotArrived(t)
	r.holdsNothing()
}

// A client of an older revision may come back within the grace, gets the
// result, and it counts as arrived.
func TestACutStreamIsResumed(t *testing.T) {
	r := newRig(t)
	session := r.connect()
	s := r.do(http.MethodPost, r.url, session, oldRevision, old())
	h := r.next()
	last := s.until("id: ")
	require.NotEmpty(t, last)
	s.close()
	require.Eventually(t, func() bool { return r.timers.armedFor(resumeGrace) == 1 }, patience, time.Millisecond)
	r.timers.pass(resumeGrace / 2)
	h.lives(t)
	require.False(t, h.life.carried())
	s = r.do(http.MethodGet, r.url, session, oldRevision, "", resumeHeader, last)
	require.Eventually(t, func() bool { return graceless(r) }, patience, time.Millisecond)
	require.True(t, h.life.carried())
	r.timers.pass(10 * resumeGrace)
	h.lives(t)
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
	r.timers.pass(outliveAfter)
	h.hasArrived(t)
}

// holdsNothing: what has ended is forgotten.
func (r *rig) holdsNothing() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.exchanges) == 0
	}, patience, time.Millisecond)
}

// graceless reports whether no call waits for its client to come back.
func graceless(r *rig) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.exchanges {
		x.mu.Lock()
		waits := x.carriers == 0
		x.mu.Unlock()
		if waits {
			return false
		}
	}
	return true
}

// Answered while the stream was cut: the client that comes back gets it.
func TestAnAnswerInTheGraceIsNotLost(t *testing.T) {
	r := newRig(t)
	session := r.connect()
	s := r.do(http.MethodPost, r.url, session, oldRevision, old())
	h := r.next()
	last := s.until("id: ")
	s.close()
	require.Eventually(t, func() bool { return r.timers.armedFor(resumeGrace) == 1 }, patience, time.Millisecond)
	h.answer <- "yes"
	s = r.do(http.MethodGet, r.url, session, oldRevision, "", resumeHeader, last)
	require.Equal(t, "yes", s.result(t))
	require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
	r.timers.pass(outliveAfter)
	h.hasArrived(t)
}

// Who does not come back is gone after the grace.
func TestACutStreamIsGoneAfterTheGrace(t *testing.T) {
	r := newRig(t)
	session := r.connect()
	s := r.do(http.MethodPost, r.url, session, oldRevision, old())
	h := r.next()
	s.close()
	require.Eventually(t, func() bool { return r.timers.armedFor(resumeGrace) == 1 }, patience, time.Millisecond)
	h.lives(t)
	r.timers.pass(resumeGrace)
	require.ErrorIs(t, h.goneBy(t), errClosed)
	r.holdsNothing()
}

func TestACancelledCallIsGone(t *testing.T) {
	r := newRig(t)
	session := r.connect()
	s := r.do(http.MethodPost, r.url, session, oldRevision, old())
	h := r.next()
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	r.notify(session, cancel)
	require.ErrorIs(t, h.goneBy(t), errCancelled)
	s.until("data: ")
	r.notify(session, cancel) // of a call that has ended; some clients do so after every success
}

// The SDK's DELETE waits for the calls under way; ours ends them first.
func TestDeleteEndsTheCallsOfItsConnection(t *testing.T) {
	r := newRig(t)
	mine, other := r.connect(), r.connect()
	r.do(http.MethodPost, r.url, mine, oldRevision, old())
	h := r.next()
	r.do(http.MethodPost, r.url, other, oldRevision, old())
	stranger := r.next()
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodDelete, r.url, mine, oldRevision, ""))
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusNoContent, res.StatusCode)
	require.ErrorIs(t, h.goneBy(t), errDeleted)
	stranger.lives(t)
}

// A DELETE ends what it names, if the SDK accepts it: nothing else, and above all
// not the calls that have no connection.
func TestADeleteThatIsRefusedEndsNothing(t *testing.T) {
	r := newRig(t)
	session := r.connect()
	var calls []*held
	r.do(http.MethodPost, r.url, "", newRevision, neu())
	calls = append(calls, r.next())
	r.do(http.MethodPost, r.url, session, newRevision, neu())
	calls = append(calls, r.next())
	r.do(http.MethodPost, r.url, session, oldRevision, old())
	calls = append(calls, r.next())
	for _, c := range []struct{ session, revision string }{
		{"", ""}, {"", oldRevision}, {"", newRevision}, {"nobody", oldRevision}, {session, newRevision}, {session, "2020-01-01"},
	} {
		res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodDelete, r.url, c.session, c.revision, ""))
		require.NoError(t, err)
		_ = res.Body.Close()
		require.GreaterOrEqual(t, res.StatusCode, 400, "%+v", c)
	}
	for _, h := range calls {
		h.lives(t)
	}
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodDelete, r.url, session, "", ""))
	require.NoError(t, err)
	_ = res.Body.Close()
	require.ErrorIs(t, calls[2].goneBy(t), errDeleted)
	calls[0].lives(t)
	calls[1].lives(t)
}

// Nor does a cancellation reach a call that stands alone, whatever header it carries.
func TestACancellationReachesItsConnectionOnly(t *testing.T) {
	r := newRig(t)
	session := r.connect()
	s := r.do(http.MethodPost, r.url, session, newRevision, neu())
	h := r.next()
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	r.notify(session, cancel)
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, session, newRevision, cancel))
	require.NoError(t, err)
	_ = res.Body.Close()
	r.timers.pass(outliveAfter)
	h.hasArrived(t)
}

func TestStoppingEndsAllCalls(t *testing.T) {
	r := newRig(t)
	listening := r.do(http.MethodGet, r.url, r.connect(), oldRevision, "")
	require.Equal(t, "ok", listening.until(": "))
	s := r.do(http.MethodPost, r.url, "", newRevision, neu())
	h := r.next()
	r.stop(errStopping)
	require.ErrorIs(t, h.goneBy(t), errStopping)
	require.Equal(t, "gone: the node is stopping", s.result(t), "the response still leaves")
	require.Empty(t, listening.until("data: "), "a stream that is owed nothing ends")
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, "", newRevision, neu()))
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
}

func TestQuietStreamsAreKeptOpen(t *testing.T) {
	r := newRig(t)
	s := r.do(http.MethodPost, r.url, "", newRevision, neu())
	h := r.next()
	for _, silence := range []time.Duration{commentFirst, commentEvery, commentEvery} {
		require.Eventually(t, func() bool { return r.timers.armedFor(silence) == 1 }, patience, time.Millisecond)
		r.timers.pass(silence)
		require.Equal(t, "waiting", s.until(": "))
	}
	require.Equal(t, "text/event-stream", s.res.Header.Get("Content-Type"))
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	require.Eventually(t, func() bool { return r.timers.armedFor(commentEvery) == 0 }, patience, time.Millisecond)
}

func TestAPanicFailsOneCallOnly(t *testing.T) {
	r := newRig(t)
	req := r.request(t.Context(), http.MethodPost, r.url, "", newRevision, strings.Replace(neu(), `"hold"`, `"panic"`, 1))
	req.Header.Set("Mcp-Name", "panic")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `"isError":true`)
	require.Contains(t, string(text), "a fault of Parley's own")
	require.NotContains(t, string(text), "secret")
}

func TestBadEndpointsAreRefused(t *testing.T) {
	r := newRig(t)
	for target, says := range map[string]string{
		"/a/b":                         "%2F",
		"//":                           "%2F",
		"/.":                           "clients take for a folder",
		"/%2e%2E":                      "clients take for a folder",
		"/%20":                         "the session in the path is empty",
		"/" + strings.Repeat("x", 201): "the limit is 200",
		"?wait_max=90":                 "no unit",
		"?wait_max=soon":               "give a time",
		"?wait_max=0s":                 "give a time",
		"?wait_max=-5s":                "give a time",
		"?wait_max=5s&wait_max=6s":     "2 times",
		"?owner=":                      "owner is empty",
		"?workspace=.":                 "give the absolute path",
		"?workspace=shop":              "give the absolute path",
		"?owner=a%00b":                 "control character",
		"?a=%zz":                       "cannot be read",
	} {
		res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url+target, "", newRevision, neu()))
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		_ = res.Body.Close()
		require.GreaterOrEqual(t, res.StatusCode, 400, target)
		require.Less(t, res.StatusCode, 500, target)
		require.Contains(t, string(text), says, target)
	}
	require.Empty(t, r.calls)
	at, bad := addressOf(r.request(t.Context(), http.MethodPost, r.url+"/a%2Fb?wait_max=never", "", "", "").URL)
	require.Nil(t, bad)
	require.Equal(t, address{session: "a/b", waitMax: -1}, at)
}

// An unknown transport session is the client's sign to begin a new one.
func TestAnUnknownConnectionIsNotFound(t *testing.T) {
	r := newRig(t)
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, "nobody", oldRevision, old()))
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	r.holdsNothing()
}

func TestLimitsAreRefusedInWords(t *testing.T) {
	r := newRig(t)
	r.heldMax = 2
	for range r.heldMax {
		require.NotNil(t, r.open(r.stopping, address{}, nil))
	}
	refused := func(session, body string, status int, says string) {
		t.Helper()
		res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, session, newRevision, body))
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		require.Contains(t, string(text), says)
		require.Contains(t, string(text), `"id":7`, "clients show the error of their call")
	}
	refused("", neu(), http.StatusTooManyRequests, "2 calls are held, the limit is 2")
	big := strings.Repeat("x", bodyBytesMax+1)
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, "", newRevision, big))
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
}

func TestConnectionsAreLimited(t *testing.T) {
	r := newRig(t)
	r.sessionsMax = 2
	asking, listening := r.connect(), r.connect()
	r.do(http.MethodPost, r.url, asking, oldRevision, old())
	h := r.next()
	open := r.do(http.MethodGet, r.url, listening, oldRevision, "")
	require.Equal(t, "ok", open.until(": "))
	body := `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`
	res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, "", "", body))
	require.NoError(t, err)
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Contains(t, string(text), "2 MCP connections are open and in use, the limit is 2")
	h.lives(t)
	gone, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodDelete, r.url, asking, oldRevision, ""))
	require.NoError(t, err)
	_ = gone.Body.Close()
	r.connect()
}

// Idle connections lock nobody out: the one that was idle longest ends.
func TestAnIdleConnectionMakesRoom(t *testing.T) {
	r := newRig(t)
	r.sessionsMax = 3
	first, second := r.connect(), r.connect()
	r.notify(first, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s := r.do(http.MethodPost, r.url, r.connect(), oldRevision, old())
	h := r.next()
	r.connect()
	status := func(session string) int {
		t.Helper()
		res, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, r.url, session, oldRevision, `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res.StatusCode
	}
	require.Equal(t, http.StatusNotFound, status(second), "its client begins a new one")
	require.Equal(t, http.StatusOK, status(first))
	for range 5 {
		r.connect()
	}
	require.Equal(t, http.StatusNotFound, status(first))
	h.lives(t)
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	r.mu.Lock()
	defer r.mu.Unlock()
	require.LessOrEqual(t, len(r.uses), r.sessionsMax+2, "what has ended is forgotten")
}

// A pipe: answered, confirmed, cancelled, and ended by either side.
func TestPipe(t *testing.T) {
	r := newRig(t)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- r.serveStdio(t.Context(), in, out, StdioOptions{Session: "demo", Owner: "boss", WaitMax: time.Minute, Environment: "env"})
		_ = out.Close()
	}()
	replies := bufio.NewScanner(fromServer)
	say := func(text string) {
		t.Helper()
		_, err := io.WriteString(toServer, text+"\n")
		require.NoError(t, err)
	}
	hear := func() string {
		t.Helper()
		require.True(t, replies.Scan())
		require.True(t, json.Valid(replies.Bytes()), "nothing but protocol: %s", replies.Text())
		return replies.Text()
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	hear()
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(old())
	h := r.next()
	require.Equal(t, "demo", h.life.session)
	require.Equal(t, "boss", h.life.owner)
	require.Equal(t, "env", h.life.environment)
	require.Equal(t, time.Minute, h.life.waitMax)
	require.Equal(t, "s", h.life.minted.get(func() string { return "s" }))
	h.hasNotArrived(t)
	h.answer <- "yes"
	require.Contains(t, hear(), `"text":"yes"`)
	h.hasNotArrived(t)
	require.Eventually(t, func() bool { return r.timers.armedFor(outliveAfter) == 1 }, patience, time.Millisecond)
	r.timers.pass(outliveAfter)
	h.hasArrived(t)

	say(old())
	h = r.next()
	h.answer <- "thrown away"
	hear()
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	require.ErrorIs(t, h.goneBy(t), errThrown)
	r.timers.pass(outliveAfter)
	h.hasNotArrived(t)

	say(strings.Replace(old(), `"id":7`, `"id":"x\u0041"`, 1))
	h = r.next()
	require.Equal(t, "s", h.life.minted.get(func() string { return "other" }), "one pipe, one minted session")
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"xA"}}`)
	require.ErrorIs(t, h.goneBy(t), errCancelled)
	hear()

	say(old())
	h = r.next()
	go func() { _, _ = io.Copy(io.Discard, fromServer) }()
	require.NoError(t, toServer.Close())
	require.ErrorIs(t, h.goneBy(t), errEOF)
	require.NoError(t, <-done)
	r.holdsNothing()
}

// What serves a pipe can end it; the calls are over before it returns.
func TestPipeEndsWithItsContext(t *testing.T) {
	r := newRig(t)
	in, toServer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var out safeBuffer
	go func() { done <- r.serveStdio(ctx, in, &out, StdioOptions{}) }()
	_, err := io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+old()+"\n")
	require.NoError(t, err)
	h := r.next()
	cancel()
	require.ErrorIs(t, h.goneBy(t), errPipe)
	require.NoError(t, <-done)
	require.Contains(t, out.String(), "gone: "+errPipe.Error(), "its response was written first")
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}
func (b *safeBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.buf.String() }

// The SDK's own client, newest revision and default options.
func TestTheGoClientIsServed(t *testing.T) {
	r := newRig(t)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: r.url + "/demo"}, nil)
	require.NoError(t, err)
	defer func() { _ = session.Close() }()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "hold"})
			if err != nil || res.Content[0].(*sdk.TextContent).Text != "yes" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	for range 8 {
		h := r.next()
		require.Equal(t, "demo", h.life.session)
		h.answer <- "yes"
	}
	wg.Wait()
}
