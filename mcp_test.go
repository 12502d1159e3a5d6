package parley_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
)

// mcpClient is one connection of the SDK's own client.
type mcpClient struct {
	*mcp.ClientSession
	t *testing.T
}

// mcp connects a client to an endpoint, in the newest revision.
func (w *world) mcp(endpoint string) *mcpClient {
	w.t.Helper()
	return w.mcpOver(endpoint, &http.Client{Transport: new(http.Transport)})
}

func (w *world) mcpOver(endpoint string, client *http.Client) *mcpClient {
	w.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.WithoutCancel(w.t.Context()),
		&mcp.StreamableClientTransport{Endpoint: w.url + "/mcp" + endpoint, HTTPClient: client}, nil)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = session.Close(); client.CloseIdleConnections() })
	return &mcpClient{session, w.t}
}

// toolResult is what a model reads of a result, whichever half its client shows.
type toolResult struct {
	Pending bool
	CallID  string `json:"callId"`
	Message string
	Answers []parley.Answer
	Replies []struct {
		ReplyID     string `json:"reply_id"`
		CallID      string `json:"callId"`
		Kind        string
		Answers     []parley.Answer
		Redelivered bool
	}
	Token string

	failure string
	err     error
}

// call calls a tool; its result comes on the channel.
func (c *mcpClient) call(ctx context.Context, tool, args string) <-chan toolResult {
	out := make(chan toolResult, 1)
	go func() {
		var r toolResult
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
		switch {
		case err != nil:
			r.err = err
		case res.IsError:
			r.failure = res.Content[0].(*mcp.TextContent).Text
		default:
			text := res.Content[0].(*mcp.TextContent).Text
			structured, err := json.Marshal(res.StructuredContent)
			assert.NoError(c.t, err)
			assert.JSONEq(c.t, text, string(structured), "each client shows only one of the two (Q-032)")
			assert.NoError(c.t, json.Unmarshal([]byte(text), &r))
		}
		out <- r
	}()
	return out
}

func (c *mcpClient) ask(ctx context.Context, question string) <-chan toolResult {
	args, err := json.Marshal(map[string]any{"questions": []any{map[string]any{"id": "q", "question": question}}})
	require.NoError(c.t, err)
	return c.call(ctx, "ask_user_question", string(args))
}

func (c *mcpClient) collect(after string) toolResult {
	c.t.Helper()
	args := `{}`
	if after != "" {
		args = `{"after":"` + after + `"}`
	}
	r := next(c.t, c.call(c.t.Context(), "collect_replies", args))
	require.NoError(c.t, r.err)
	require.Empty(c.t, r.failure)
	return r
}

// waiting waits until a session has so many questions in a state, and returns them.
func (w *world) waiting(session, state string, n int) []*parley.Row {
	w.t.Helper()
	var found []*parley.Row
	eventually(w.t, "questions of "+session+" to be "+state, func() bool {
		page, err := w.Questions(w.t.Context(), parley.Filter{Session: session})
		require.NoError(w.t, err)
		found = nil
		for _, row := range page.Questions {
			if row.GetState() == state {
				found = append(found, row)
			}
		}
		return len(found) == n
	})
	return found
}

func (w *world) say(session, call, text string) {
	w.t.Helper()
	_, err := w.Answer(w.t.Context(), session, call, "ann", parley.Say("q", text))
	require.NoError(w.t, err)
}

func said(t *testing.T, answers []parley.Answer) string {
	t.Helper()
	require.Len(t, answers, 1)
	require.NotNil(t, answers[0].Custom)
	return *answers[0].Custom
}

// collected takes one late answer, sees it again until it is acknowledged, and no more then.
func (c *mcpClient) collectsOnce(kind, text string) {
	c.t.Helper()
	first := c.collect("")
	require.Len(c.t, first.Replies, 1)
	require.Equal(c.t, kind, first.Replies[0].Kind)
	require.Equal(c.t, text, said(c.t, first.Replies[0].Answers))
	again := c.collect("")
	require.Len(c.t, again.Replies, 1, "its response may have been lost")
	require.True(c.t, again.Replies[0].Redelivered)
	require.Equal(c.t, first.Replies[0].ReplyID, again.Replies[0].ReplyID)
	require.Empty(c.t, c.collect(again.Token).Replies)
}

func TestMCPAnsweredInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("/demo")
	tools, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 3)
	result := c.ask(t.Context(), "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	w.say("demo", row.GetCallId(), "yes")
	r := next(t, result)
	require.NoError(t, r.err)
	require.Equal(t, "yes", said(t, r.Answers))
	eventually(t, "a result whose connection lived on to count as arrived", func() bool { return len(c.collect("").Replies) == 0 })
}

// Pending when the client's patience ends, answered late, collected, acknowledged.
func TestMCPAnsweredLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("/demo?wait_max=1s")
	r := next(t, c.ask(t.Context(), "Ship it?"))
	require.True(t, r.Pending)
	require.NotEmpty(t, r.CallID)
	require.Contains(t, r.Message, "1 second", "the wait in force is named")
	w.say("demo", r.CallID, "later")
	c.collectsOnce("reply", "later")
}

// −1 keeps the question open, not the call.
func TestMCPWithoutALimitIsStillCapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("/demo?wait_max=1s")
	r := next(t, c.call(t.Context(), "ask_user_question", `{"questions":[{"id":"q","question":"Which?"}],"timeout":-1}`))
	require.True(t, r.Pending, "%+v", r)
	w.waiting("demo", "continued", 1)
}

// A request that is cancelled ends the foreground; the question goes on, and
// its answer is collected.
func TestMCPCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("/demo")
	ctx, cancel := context.WithCancel(t.Context())
	result := c.ask(ctx, "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	cancel()
	require.Error(t, next(t, result).err)
	w.waiting("demo", "continued", 1)
	w.say("demo", row.GetCallId(), "after all")
	c.collectsOnce("reply", "after all")
}

// dying is a network whose connections a test cuts.
type dying struct {
	mu    sync.Mutex
	conns []net.Conn
	deaf  atomic.Bool // what comes in is lost
}

// deafConn loses what comes in, as long as its network says so.
type deafConn struct {
	net.Conn
	network *dying
}

func (c deafConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.network.deaf.Load() {
			return n, err
		}
	}
}

func (d *dying) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.conns = append(d.conns, conn)
		return deafConn{conn, d}, err
	}}}
}

func (d *dying) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// A client that dies leaves a question behind, not a call; asked again by the
// next one it is joined, never posted twice.
func TestMCPClientKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var network dying
	result := w.mcpOver("/demo", network.client()).ask(t.Context(), "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	network.cut()
	require.Error(t, next(t, result).err)
	w.waiting("demo", "continued", 1)
	result = w.mcp("/demo").ask(t.Context(), "Ship it?")
	w.say("demo", row.GetCallId(), "yes")
	require.Equal(t, "yes", said(t, next(t, result).Answers))
	page, err := w.Questions(t.Context(), parley.Filter{Session: "demo", Settled: true})
	require.NoError(t, err)
	require.Len(t, page.Questions, 1, "never a twin")
}

// An answer in time whose response was lost on its way was written to a
// connection that then broke: it is on record as the result, and is handed out
// until it is acknowledged.
func TestMCPResponseLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var network dying
	result := w.mcpOver("/demo", network.client()).ask(t.Context(), "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	network.deaf.Store(true)
	w.say("demo", row.GetCallId(), "yes")
	require.Equal(t, "answered", w.row("demo", row.GetCallId()).GetSettlement().GetOutcome())
	network.cut()
	require.Error(t, next(t, result).err)
	w.mcp("/demo").collectsOnce("result", "yes")
}

// oldMCP speaks an older revision by hand: it can cut a stream and come back.
type oldMCP struct {
	w       *world
	session string
}

const oldRevision = "2025-11-25"

func (w *world) oldMCP() *oldMCP {
	w.t.Helper()
	o := &oldMCP{w: w}
	_, head, body := o.send(w.t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+oldRevision+`","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	_, _ = io.Copy(io.Discard, body)
	o.session = head.Get("Mcp-Session-Id")
	require.NotEmpty(w.t, o.session)
	o.send(w.t.Context(), http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return o
}

// send sends a request; its body is closed with the test.
func (o *oldMCP) send(ctx context.Context, method, body string, header ...string) (status int, head http.Header, reply io.Reader) {
	o.w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, o.w.url+"/mcp/demo", strings.NewReader(body))
	require.NoError(o.w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if o.session != "" {
		req.Header.Set("Mcp-Session-Id", o.session)
		req.Header.Set("Mcp-Protocol-Version", oldRevision)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(o.w.t, err)
	o.w.t.Cleanup(func() { _ = res.Body.Close() })
	return res.StatusCode, res.Header, res.Body
}

const oldAsk = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_user_question","arguments":{"questions":[{"id":"q","question":"Ship it?"}]}}}`

// line returns what follows a prefix, in the first line that has more than it.
func line(t *testing.T, from *bufio.Reader, prefix string) string {
	t.Helper()
	for {
		text, err := from.ReadString('\n')
		require.NoError(t, err)
		if rest, ok := strings.CutPrefix(strings.TrimSpace(text), prefix); ok && rest != "" {
			return rest
		}
	}
}

// A stream of an older revision that was cut is taken up where it broke off,
// and the answer is in time.
func TestMCPCutAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.oldMCP()
	ctx, cut := context.WithCancel(t.Context())
	_, _, body := o.send(ctx, http.MethodPost, oldAsk)
	last := line(t, bufio.NewReader(body), "id: ")
	row := w.waiting("demo", "open", 1)[0]
	cut()
	var rest io.Reader
	eventually(t, "the server to notice the cut", func() bool {
		status, _, body := o.send(t.Context(), http.MethodGet, "", "Last-Event-Id", last)
		rest = body
		return status == http.StatusOK
	})
	w.say("demo", row.GetCallId(), "in time")
	require.Contains(t, line(t, bufio.NewReader(rest), "data: "), `\"custom\":\"in time\"`)
	settled, err := w.Question(t.Context(), "demo", row.GetCallId())
	require.NoError(t, err)
	require.Equal(t, "answered", settled.GetSettlement().GetOutcome())
}

// The end of a connection ends its calls, and their questions go on.
func TestMCPDeletedInACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.oldMCP()
	o.send(t.Context(), http.MethodPost, oldAsk)
	w.waiting("demo", "open", 1)
	status, _, _ := o.send(t.Context(), http.MethodDelete, "")
	require.Equal(t, http.StatusNoContent, status)
	w.waiting("demo", "continued", 1)
}

// A node that stops ends the call as pending; the question is there after it.
func TestMCPStoppedInACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := w.mcp("/demo").ask(t.Context(), "Ship it?")
	w.waiting("demo", "open", 1)
	w.stop()
	r := next(t, result)
	require.NoError(t, r.err)
	require.True(t, r.Pending)
	w = w.restart()
	w.waiting("demo", "continued", 1)
	w.say("demo", r.CallID, "late")
	w.mcp("/demo").collectsOnce("reply", "late")
}

// In the newest revision nobody notices a restart between two calls.
func TestMCPRestartedBetweenCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.stop()
	w = start(t, w.cfg, parley.ServeOptions{Listener: ln})
	c := w.mcp("/demo?wait_max=1s")
	r := next(t, c.ask(t.Context(), "Ship it?"))
	require.True(t, r.Pending)
	w.stop()
	ln, err = new(net.ListenConfig).Listen(t.Context(), "tcp", ln.Addr().String())
	require.NoError(t, err)
	w = start(t, w.cfg, parley.ServeOptions{Listener: ln})
	w.say("demo", r.CallID, "late")
	c.collectsOnce("reply", "late")
}

// A legacy node has the blocking tool: no timeout, no pending, no late path.
func TestMCPLegacy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *parley.Config) { c.Mode = parley.Legacy })
	rows, _ := w.watch(w.json(), 0) // somebody who could answer
	next(t, rows)
	c := w.mcp("/demo")
	tools, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		if tool.Name == "ask_user_question" {
			schema, err := json.Marshal(tool.InputSchema)
			require.NoError(t, err)
			require.NotContains(t, string(schema), `"timeout"`)
		}
	}
	result := c.ask(t.Context(), "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	require.True(t, row.GetUnkeyed())
	w.say("demo", row.GetCallId(), "yes")
	require.Equal(t, "yes", said(t, next(t, result).Answers))
}

// An owned child may not ask, and is told what to do instead.
func TestMCPOwnedChild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := next(t, w.mcp("/child?owner=demo").ask(t.Context(), "May I?"))
	require.Contains(t, r.failure, "DELEGATED_CALLER")
	require.Contains(t, r.failure, "final result")
}

// Eight questions at once, answered in any order: each result is its own.
func TestMCPEightAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("/demo")
	results := map[string]<-chan toolResult{}
	for _, name := range strings.Fields("a b c d e f g h") {
		results["Ship "+name+"?"] = c.ask(t.Context(), "Ship "+name+"?")
	}
	rows := w.waiting("demo", "open", 8)
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for _, row := range rows {
		w.say("demo", row.GetCallId(), "yes to "+row.GetQuestions()[0].GetQuestion())
	}
	for question, result := range results {
		require.Equal(t, "yes to "+question, said(t, next(t, result).Answers))
	}
}

// A minted session is named, and is good for later calls.
func TestMCPMintedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("?wait_max=1s")
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_user_question", Arguments: json.RawMessage(`{"questions":[{"id":"q","question":"Ship it?"}]}`)})
	require.NoError(t, err)
	session, _ := res.Meta["parley/session"].(string)
	require.NotEmpty(t, session)
	require.Contains(t, res.Content[0].(*mcp.TextContent).Text, session)
	row := w.waiting(session, "continued", 1)[0]
	w.say(session, row.GetCallId(), "yes")
	r := next(t, c.call(t.Context(), "collect_replies", `{"session":"`+session+`"}`))
	require.Len(t, r.Replies, 1, "%+v", r)
}

// The progress of a waiting call shows the person where to answer.
func TestMCPProgressHasTheLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	notes := make(chan string, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) { notes <- n.Params.Message }})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.url + "/mcp/my%20demo"}, nil)
	require.NoError(t, err)
	defer func() { _ = session.Close() }()
	params := &mcp.CallToolParams{Name: "ask_user_question", Arguments: json.RawMessage(`{"questions":[{"id":"q","question":"Ship it?"}]}`)}
	params.SetProgressToken("p")
	done := make(chan error, 1)
	go func() { _, err := session.CallTool(t.Context(), params); done <- err }()
	row := w.waiting("my demo", "open", 1)[0]
	require.Equal(t, "Waiting for an answer · "+w.url+"/answer/my%20demo/"+row.GetCallId(), next(t, notes))
	w.say("my demo", row.GetCallId(), "yes")
	require.NoError(t, next(t, done))
}

// pipeTo connects the SDK's client over a pipe.
func pipeTo(t *testing.T, serve func(in io.Reader, out io.Writer) error) (c *mcpClient, hangUp func(), served <-chan error) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(in, out); _ = out.Close() }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return &mcpClient{session, t}, func() { _ = toServer.Close() }, done
}

// Over a pipe, with the node in the same program and with one that runs elsewhere.
func TestMCPOverAPipe(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(w *world) func(in io.Reader, out io.Writer) error{
		"embedded": func(w *world) func(in io.Reader, out io.Writer) error {
			return func(in io.Reader, out io.Writer) error {
				return w.ServeMCP(w.t.Context(), in, out, parley.MCPOptions{Session: "demo"})
			}
		},
		"remote": func(w *world) func(in io.Reader, out io.Writer) error {
			return func(in io.Reader, out io.Writer) error {
				return parley.ServeMCPRemote(w.t.Context(), parley.Remote{URL: w.url, Logger: testLog(w.t)}, in, out, parley.MCPOptions{Session: "demo"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c, hangUp, served := pipeTo(t, serve(w))
			result := c.ask(t.Context(), "Ship it?")
			row := w.waiting("demo", "open", 1)[0]
			w.say("demo", row.GetCallId(), "yes")
			require.Equal(t, "yes", said(t, next(t, result).Answers))
			eventually(t, "the written result to be acknowledged", func() bool { return len(c.collect("").Replies) == 0 })

			result = c.ask(t.Context(), "And this?")
			w.waiting("demo", "open", 1)
			hangUp()
			next(t, result)
			require.NoError(t, next(t, served))
			w.waiting("demo", "continued", 1)
		})
	}
}

// A call over a pipe waits through a restart of its node.
func TestMCPRemoteOutlivesItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.stop()
	w = start(t, w.cfg, parley.ServeOptions{Listener: ln})
	c, _, _ := pipeTo(t, func(in io.Reader, out io.Writer) error {
		return parley.ServeMCPRemote(t.Context(), parley.Remote{URL: w.url, Logger: testLog(t)}, in, out, parley.MCPOptions{Session: "demo"})
	})
	result := c.ask(t.Context(), "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	w.stop()
	ln, err = new(net.ListenConfig).Listen(t.Context(), "tcp", ln.Addr().String())
	require.NoError(t, err)
	w = start(t, w.cfg, parley.ServeOptions{Listener: ln})
	w.say("demo", row.GetCallId(), "yes")
	require.Equal(t, "yes", said(t, next(t, result).Answers))
}

// Bad settings are refused before anything listens for long.
func TestMCPOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, opts := range []parley.ServeOptions{{PublicURL: "example.org"}, {PublicURL: "http://x?y"}, {MCPWaitMax: 1}, {MCPWaitMax: -7}} {
		opts.Listen = "127.0.0.1:0"
		require.ErrorContains(t, w.Serve(t.Context(), opts), "BAD_REQUEST")
	}
	for _, opts := range []parley.MCPOptions{{Session: " "}, {Owner: "a\x00"}, {WaitMax: 1}, {PublicURL: "x"}} {
		require.ErrorContains(t, w.ServeMCP(t.Context(), strings.NewReader(""), io.Discard, opts), "BAD_REQUEST")
	}
	require.ErrorContains(t, parley.ServeMCPRemote(t.Context(), parley.Remote{URL: "nowhere"}, strings.NewReader(""), io.Discard, parley.MCPOptions{}), "BAD_REQUEST")
}

// A session of a name that paths give a meaning to is refused in words, and not
// sent elsewhere: a client that follows loses its call.
func TestMCPNamesThatArePaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/.", "/..", "/%2e%2e", "//", "//demo", "/demo/", "/../answer", "/a/b"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/mcp"+path, strings.NewReader(oldAsk))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := client.Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		_ = res.Body.Close()
		require.Equal(t, http.StatusBadRequest, res.StatusCode, "%s: %s", path, text)
		require.Contains(t, string(text), "BAD_REQUEST", path)
	}
}

// A request to end a connection ends that one: none is no name for all calls
// that have none.
func TestMCPDeleteWithoutAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcp("/demo")
	result := c.ask(t.Context(), "Ship it?")
	row := w.waiting("demo", "open", 1)[0]
	for _, revision := range []string{"", oldRevision, "2026-07-28"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.url+"/mcp", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Mcp-Protocol-Version", revision)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = res.Body.Close()
		require.GreaterOrEqual(t, res.StatusCode, http.StatusBadRequest)
	}
	w.say("demo", row.GetCallId(), "yes")
	r := next(t, result)
	require.NoError(t, r.err)
	require.Equal(t, "yes", said(t, r.Answers))
}
