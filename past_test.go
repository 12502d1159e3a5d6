package parley_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// pastNode is a node on a file that has mounted the query tools, with one
// agent at work and sessions beside it.
func pastNode(t *testing.T, set func(*parley.Config)) (*parley.Node, *parley.Agent) {
	t.Helper()
	cfg := parley.Config{Path: filepath.Join(t.TempDir(), "journal.db"), QueryTools: true, Logger: quiet}
	if set != nil {
		set(&cfg)
	}
	node, err := parley.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, node.Close(context.WithoutCancel(t.Context()))) })
	for _, s := range []struct{ id, cwd, parent, text string }{
		{"earlier", "/srv/work", "", "we chose the postgres needle for deployment"},
		{"kid", "/srv/work", "earlier", "部署在上海的服务器"},
		{"foreign", "/elsewhere", "", "a needle of somebody else"},
	} {
		imported(t, node, s.id, s.cwd, s.parent, s.text)
	}
	agent, err := node.Attach(t.Context(), "me", "root-1", parley.AttachOptions{Dir: "/srv/work"})
	require.NoError(t, err)
	_, err = agent.BeginTurn(t.Context(), 0)
	require.NoError(t, err)
	_, err = agent.BeginStep(t.Context(), 1, 1)
	require.NoError(t, err)
	return node, agent
}

func imported(t *testing.T, node *parley.Node, id, cwd, parent, text string) {
	t.Helper()
	header := map[string]any{"type": "session", "version": 3, "id": id, "createdAt": 1784851200000, "cwd": cwd, "isSeeded": false, "delegationDepth": 0}
	if parent != "" {
		header["parentSession"] = parent
	}
	said, err := json.Marshal(text)
	require.NoError(t, err)
	head, err := json.Marshal(header)
	require.NoError(t, err)
	log := string(head) + "\n" + fmt.Sprintf(`{"type":"user/message","seq":0,"time":1784851201000,"data":{"id":"%s-m","role":"user","content":[{"type":"text","text":%s}],"source":{"kind":"user"}},"surfaceOp":"append"}`, id, said) + "\n"
	_, err = node.Import(t.Context(), "", strings.NewReader(log))
	require.NoError(t, err)
}

func TestAnAgentFindsPastWorkOfItsWorkspace(t *testing.T) {
	t.Parallel()
	_, agent := pastNode(t, nil)
	call := func(tool, args string) (string, error) {
		return agent.CallQueryTool(t.Context(), tool, json.RawMessage(args))
	}
	text, err := call("session_search", `{"query":"needle"}`)
	require.NoError(t, err)
	assert.Equal(t, strings.Join([]string{
		"Session search results (1):", "", "1. Session earlier — untitled", "   Created: 2026-07-24T00:00:00.000Z", "   Parent: root", "   Availability: persisted",
		"   Best match: seq 0 | user/message | current | 2026-07-24T00:00:01.000Z", "   Snippet: we chose the postgres needle for deployment",
	}, "\n"), text)
	for _, inside := range []string{"上海", "部署在", "上海的服"} { // fault Q3
		text, err = call("session_search", `{"query":"`+inside+`"}`)
		require.NoError(t, err)
		assert.Contains(t, text, "Session kid", inside)
	}
	text, err = call("session_trace", `{"session_id":"kid"}`)
	require.NoError(t, err)
	assert.Contains(t, text, "- earlier — untitled")
	text, err = call("session_event_read", `{"session_id":"earlier","seq":0}`)
	require.NoError(t, err)
	assert.Contains(t, text, `"text": "we chose the postgres needle for deployment"`)
	_, err = call("session_event_read", `{"session_id":"foreign","seq":0}`)
	assert.Equal(t, messages.QueryUnauthorized, messages.CodeOf(err))
	text, err = call("session_event_search", `{"query":"needle"}`)
	require.NoError(t, err)
	assert.Equal(t, "Session me — untitled\n\nNo prior event matches found.", text)
}

// Reading changes nothing (S-002): no log, not the list of what is loaded, and
// not a session that was cut off, which is read with the ends that it lacks.
func TestS002ReadingWritesNothing(t *testing.T) {
	t.Parallel()
	node, agent := pastNode(t, nil)
	_, err := node.Import(t.Context(), "", strings.NewReader(`{"type":"session","version":3,"id":"cut","createdAt":1,"cwd":"/srv/work","isSeeded":false,"delegationDepth":0}
{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}
`))
	require.NoError(t, err)
	logs := func() (all string) {
		for _, id := range []string{"cut", "earlier", "kid", "me", "foreign"} {
			all += export(t, node, id)
		}
		return all
	}
	before := logs()
	for _, c := range [][2]string{
		{"session_search", `{"query":"interrupted"}`}, {"session_event_search", `{"query":"interrupted","session_id":"cut"}`}, {"session_trace", `{"session_id":"cut"}`},
		{"session_event_trace", `{"session_id":"cut","seq":3}`}, {"session_event_read", `{"session_id":"cut","seq":2,"after":9}`},
	} {
		text, err := agent.CallQueryTool(t.Context(), c[0], json.RawMessage(c[1]))
		require.NoError(t, err, c[0])
		assert.Contains(t, text, "cut")
		assert.NotContains(t, text, "cut — untitled\nAvailability: live")
	}
	assert.Equal(t, before, logs())
	text, err := agent.CallQueryTool(t.Context(), "session_trace", json.RawMessage(`{"session_id":"cut"}`))
	require.NoError(t, err)
	assert.Contains(t, text, "Availability: persisted\n", "it was not made live")
}

// What has been acknowledged is found, at once and every time.
func TestASearchSeesWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	node, _ := pastNode(t, nil)
	for i := range 50 {
		word := fmt.Sprintf("fresh%dword", i)
		_, err := node.Steer(t.Context(), parley.Steering{Session: "me", Text: word, By: "ann"})
		require.NoError(t, err)
		agent, err := node.Attach(t.Context(), "me", "root-1", parley.AttachOptions{})
		require.NoError(t, err)
		_, err = agent.Collect(t.Context())
		require.NoError(t, err)
		found, err := node.Search(t.Context(), &messages.SearchRequest{Query: word})
		require.NoError(t, err)
		require.Len(t, found.GetHits(), 1, word)
	}
}

func TestOnlyTheAttachedRootMayAsk(t *testing.T) {
	t.Parallel()
	node, agent := pastNode(t, nil)
	_, err := node.Attach(t.Context(), "me", "root-2", parley.AttachOptions{})
	require.NoError(t, err)
	_, err = agent.CallQueryTool(t.Context(), "session_trace", nil)
	assert.Equal(t, messages.CallerNotLive, messages.CodeOf(err))
}

// No tool is there unless somebody mounts it (S-001).
func TestQueryToolsAreMountedExplicitly(t *testing.T) {
	t.Parallel()
	node, agent := pastNode(t, func(cfg *parley.Config) { cfg.QueryTools = false })
	_, err := agent.CallQueryTool(t.Context(), "session_trace", nil)
	assert.Equal(t, messages.NotFound, messages.CodeOf(err))
	_, err = node.QueryTools(t.Context())
	assert.Equal(t, messages.NotFound, messages.CodeOf(err))
	tools, err := piped(t, node, parley.MCPOptions{Session: "pipe"}).ListTools(t.Context(), nil)
	require.NoError(t, err)
	assert.Len(t, tools.Tools, 3) // S-001
}

// A text index that cannot be opened stops nothing but search.
func TestANodeServesWithoutItsTextIndex(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	require.NoError(t, os.MkdirAll(path+"-texts/somebody's", 0o755)) // it is a folder
	node, agent := pastNode(t, func(cfg *parley.Config) { cfg.Path = path })
	_, err := node.Search(t.Context(), &messages.SearchRequest{Query: "needle"})
	assert.Equal(t, messages.QueryIndexFailed, messages.CodeOf(err), "nobody switched search off")
	text, err := agent.CallQueryTool(t.Context(), "session_event_read", json.RawMessage(`{"session_id":"earlier","seq":0}`))
	require.NoError(t, err)
	assert.Contains(t, text, "needle")
	require.DirExists(t, path+"-texts/somebody's")
}

// Over the wire: pages that fit together (S-164), one hit a session (S-022), the tools, and refusals with their codes.
func TestPastWorkThroughConnect(t *testing.T) {
	t.Parallel()
	node, _ := pastNode(t, nil)
	for i := range 7 {
		imported(t, node, fmt.Sprintf("more%d", i), "/elsewhere", "", "needle "+strings.Repeat("and more ", i))
	}
	handler, stop, err := node.Handler(parley.ServeOptions{})
	require.NoError(t, err)
	defer stop()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	past := messagesconnect.NewQueryServiceClient(srv.Client(), srv.URL)

	var seen []string
	req := &messages.SearchRequest{Query: "needle", Limit: 2}
	for {
		page, err := past.Search(t.Context(), connect.NewRequest(req))
		require.NoError(t, err)
		for _, h := range page.Msg.GetHits() {
			seen = append(seen, h.GetSession())
		}
		if req.After = page.Msg.GetNext(); req.After == "" {
			break
		}
	}
	assert.Equal(t, []string{"more0", "more1", "more2", "foreign", "more3", "more4", "earlier", "more5", "more6"}, seen)

	first, err := past.Search(t.Context(), connect.NewRequest(&messages.SearchRequest{Query: "needle", Limit: 2}))
	require.NoError(t, err)
	_, err = past.Search(t.Context(), connect.NewRequest(&messages.SearchRequest{Query: "other", Limit: 2, After: first.Msg.GetNext()}))
	assert.ErrorContains(t, err, string(messages.QueryInvalidCursor))

	_, err = past.Search(t.Context(), connect.NewRequest(&messages.SearchRequest{Query: "needle", Workspaces: []string{""}}))
	require.ErrorContains(t, err, "SESSION_QUERY_INVALID_FILTER")
	list, err := past.ListQueryTools(t.Context(), connect.NewRequest(&messages.ListQueryToolsRequest{}))
	require.NoError(t, err)
	assert.Len(t, list.Msg.GetTools(), 5)
	res, err := past.CallQueryTool(t.Context(), connect.NewRequest(&messages.CallQueryToolRequest{Session: "me", Root: "root-1", Tool: "session_search", Arguments: `{"query":"needle"}`}))
	require.NoError(t, err)
	assert.NotContains(t, res.Msg.GetText(), "foreign")
	_, err = past.CallQueryTool(t.Context(), connect.NewRequest(&messages.CallQueryToolRequest{Session: "me", Root: "somebody", Tool: "session_search", Arguments: `{"query":"needle"}`}))
	assert.ErrorContains(t, err, string(messages.CallerNotLive))
	text, err := past.Read(t.Context(), connect.NewRequest(&messages.ReadRequest{Session: "foreign", Seq: 0}))
	require.NoError(t, err)
	assert.Contains(t, text.Msg.GetText(), "a needle of somebody else")
	_, err = past.Trace(t.Context(), connect.NewRequest(&messages.TraceRequest{Session: "nobody"}))
	assert.ErrorContains(t, err, string(messages.QuerySessionNotFound))
}

// S-012: a workspace is compared as a text, so one that is not absolute would be
// everybody's. It is refused at every door, and what to do is said.
func TestAWorkspaceIsAbsolute(t *testing.T) {
	t.Parallel()
	node, _ := pastNode(t, nil)
	_, err := node.Attach(t.Context(), "here", "r", parley.AttachOptions{Dir: "."})
	assert.Equal(t, messages.BadRequest, messages.CodeOf(err))
	assert.ErrorContains(t, err, `cwd is "."; give the absolute path`)
	err = node.ServeMCP(t.Context(), strings.NewReader(""), io.Discard, parley.MCPOptions{Workspace: "shop"})
	assert.ErrorContains(t, err, `Workspace is "shop"; give the absolute path`)
	imported(t, node, "taken as it is", ".", "", "needle")
}

// A model that speaks MCP searches, traces and reads.
func TestPastWorkThroughMCP(t *testing.T) {
	t.Parallel()
	node, _ := pastNode(t, func(cfg *parley.Config) { cfg.ResultBytesMax = 2000 })
	imported(t, node, "long", "/srv/work", "", "needle "+strings.Repeat("on and on ", 1000))
	client := piped(t, node, parley.MCPOptions{Session: "pipe", Workspace: "/srv/work"})
	call := func(tool string, args map[string]any) (string, bool) {
		res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		require.NoError(t, err)
		return res.Content[0].(*sdk.TextContent).Text, res.IsError
	}
	text, failed := call("session_search", map[string]any{"query": "needle"})
	require.False(t, failed, text)
	assert.Contains(t, text, "Session search results (2):")
	assert.NotContains(t, text, "foreign")
	text, failed = call("session_event_read", map[string]any{"session_id": "long", "seq": 0})
	require.False(t, failed, text)
	assert.LessOrEqual(t, len(text), 2000)
	assert.Contains(t, text, "session_result_read")
	text, failed = call("session_trace", map[string]any{"session_id": "foreign"})
	assert.True(t, failed)
	assert.Contains(t, text, string(messages.QueryUnauthorized))
	text, failed = call("session_search", map[string]any{"query": 7})
	assert.True(t, failed)
	assert.Contains(t, text, "INVALID_ARGS")
}

// piped is an MCP client at the other end of two pipes.
func piped(t *testing.T, node *parley.Node, opts parley.MCPOptions) *sdk.ClientSession {
	t.Helper()
	return pipe(t, func(ctx context.Context, in io.Reader, out io.Writer) error { return node.ServeMCP(ctx, in, out, opts) })
}

// pipedRemote is one whose node is reached over the wire.
func pipedRemote(t *testing.T, node parley.Remote, opts parley.MCPOptions) *sdk.ClientSession {
	t.Helper()
	return pipe(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return parley.ServeMCPRemote(ctx, node, in, out, opts)
	})
}

func pipe(t *testing.T, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *sdk.ClientSession {
	t.Helper()
	fromClient, toNode := io.Pipe()
	fromNode, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(context.WithoutCancel(t.Context()), fromClient, toClient) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(context.WithoutCancel(t.Context()), &sdk.IOTransport{Reader: fromNode, Writer: toNode}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = toNode.Close()
		assert.NoError(t, <-served)
	})
	return client
}

// Whatever tool is asked, and whoever asks: the text of a sensitive answer is
// for the model that asked, and for nobody else (promise 8).
func TestASensitiveAnswerIsInNoView(t *testing.T) {
	t.Parallel()
	node, agent := pastNode(t, nil)
	const secret = "hunter2"
	log := `{"type":"session","version":3,"id":"vault","createdAt":1,"cwd":"/srv/work","isSeeded":false,"delegationDepth":0}
{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}
{"type":"assistant/message","seq":2,"time":1,"data":{"turn":1,"step":1,"message":{"id":"a","role":"assistant","source":{"kind":"model","provider":"p","model":"m"},"content":[{"type":"tool-call","id":"q","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"w\",\"question\":\"Password?\",\"sensitive\":true}]}"}]}},"surfaceOp":"append"}
{"type":"tool/call","seq":3,"time":1,"data":{"turn":1,"step":1,"callId":"q","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"w\",\"question\":\"Password?\",\"sensitive\":true}]}"}}
{"type":"tool/result","seq":4,"time":1,"data":{"turn":1,"step":1,"message":{"id":"r","role":"tool","toolCallId":"q","isError":false,"source":{"kind":"tool","callId":"q"},"content":[{"type":"text","text":"{\"answers\":[{\"id\":\"w\",\"selected\":[],\"custom\":\"hunter2\"}]}"}]}},"surfaceOp":"append","sourceEventSeqs":[3]}
{"type":"step/end","seq":5,"time":1,"data":{"turn":1,"step":1}}
{"type":"turn/end","seq":6,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}
`
	_, err := node.Import(t.Context(), "", strings.NewReader(log))
	require.NoError(t, err)
	for _, c := range [][2]string{
		{"session_search", `{"query":"hunter2"}`}, {"session_event_search", `{"session_id":"vault","query":"hunter2"}`},
		{"session_event_read", `{"session_id":"vault","seq":4}`}, {"session_event_read", `{"session_id":"vault","seq":3,"before":3,"after":3}`},
		{"session_event_trace", `{"session_id":"vault","seq":4}`},
	} {
		text, err := agent.CallQueryTool(t.Context(), c[0], json.RawMessage(c[1]))
		require.NoError(t, err, c[0])
		assert.NotContains(t, text, secret, c[0])
	}
	spelled := strings.NewReplacer(`"id":"vault"`, `"id":"spelled"`, `"toolCallId":"q"`, `"toolCallId":"\u0071"`, `"kind":"tool","callId":"q"`, `"kind":"tool","callId":"\u0071"`).Replace(log)
	_, err = node.Import(t.Context(), "", strings.NewReader(spelled))
	require.NoError(t, err)
	text, err := node.Read(t.Context(), &messages.ReadRequest{Session: "spelled", Seq: 4})
	require.NoError(t, err)
	assert.NotContains(t, text, secret, "the id is spelled with an escape")
	text, err = node.Read(t.Context(), &messages.ReadRequest{Session: "vault", Seq: 4})
	require.NoError(t, err)
	assert.Contains(t, text, `"hidden": true`)
	assert.NotContains(t, text, secret)
	text, err = node.Read(t.Context(), &messages.ReadRequest{Session: "vault", Seq: 2, After: 2})
	require.NoError(t, err)
	assert.Contains(t, text, "Password?")
	assert.Contains(t, text, "seq 4 | tool/result | 1970-01-01T00:00:00.001Z | (hidden: a sensitive answer)")
}
