package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// freePort is an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// mcpLine runs the verb in this process and speaks to it.
func mcpLine(t *testing.T, env map[string]string, args ...string) (session *mcp.ClientSession, stderr *strings.Builder, exit <-chan int) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	errs := &strings.Builder{} // read once the verb has ended
	c := &cli{in: in, out: out, err: errs, self: "parley", width: widthDefault, now: time.Now, newID: newID,
		env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	done := make(chan int, 1)
	go func() {
		done <- run(context.WithoutCancel(t.Context()), append([]string{"mcp"}, args...), c)
		_ = out.Close()
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session, errs, done
}

// askLine asks over MCP and returns the text of the result.
func askLine(t *testing.T, session *mcp.ClientSession, question string) <-chan *mcp.CallToolResult {
	t.Helper()
	args, err := json.Marshal(map[string]any{"questions": []any{map[string]any{"id": "q", "question": question}}})
	require.NoError(t, err)
	out := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "ask_user_question", Arguments: json.RawMessage(args)})
		if err == nil {
			out <- res
		}
		close(out)
	}()
	return out
}

// onlyOne waits until a node lists a question, and returns its session and call.
func onlyOne(t *testing.T, url string) (session, call string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r := runCLI(t, url, "", "questions", "--json")
		var list struct {
			Questions []struct{ Session, CallID string }
		}
		if r.exit != 0 || json.Unmarshal([]byte(r.out), &list) != nil || len(list.Questions) != 1 {
			return false
		}
		session, call = list.Questions[0].Session, list.Questions[0].CallID
		return true
	}, 10*time.Second, 5*time.Millisecond)
	return session, call
}

// An agent, a node of its own, and a person who answers it by the command line.
func TestMCPVerbIsANodeOfItsOwn(t *testing.T) {
	address := freePort(t)
	session, errs, exit := mcpLine(t, map[string]string{"CLAUDE_CODE_SESSION_ID": "7f3a"}, "--embedded", "--listen", address, "--journal", "memory")
	result := askLine(t, session, "Ship it?")
	name, call := onlyOne(t, "http://"+address)
	require.Equal(t, "claude-7f3a", name, "the conversation in which the client started it")
	require.Zero(t, runCLI(t, "http://"+address, "", "answer", name, call, "--text", "yes").exit)
	res := <-result
	require.NotNil(t, res)
	require.Contains(t, res.Content[0].(*mcp.TextContent).Text, "yes")
	require.NoError(t, session.Close())
	require.Zero(t, <-exit)
	require.Contains(t, errs.String(), "a node of its own at http://"+address)
	_, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.Error(t, err, "it ended with its client")
}

// With a node that runs, it is only that node's door.
func TestMCPVerbUsesTheNode(t *testing.T) {
	address := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan int, 1)
	node := &cli{in: strings.NewReader(""), out: io.Discard, err: io.Discard, self: "parley", width: widthDefault, now: time.Now, newID: newID,
		env: func(string) (string, bool) { return "", false }}
	go func() { served <- run(ctx, []string{"serve", "--listen", address, "--journal", "memory"}, node) }()
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	}, 10*time.Second, 5*time.Millisecond)
	session, errs, exit := mcpLine(t, map[string]string{"PARLEY_NODE": "http://" + address, "PARLEY_SESSION": "review"}, "--mcp-wait-max", "1s")
	res := <-askLine(t, session, "Ship it?")
	require.NotNil(t, res)
	require.Contains(t, res.Content[0].(*mcp.TextContent).Text, `"pending":true`)
	name, _ := onlyOne(t, "http://"+address)
	require.Equal(t, "review", name)
	require.NoError(t, session.Close())
	require.Zero(t, <-exit)
	require.Equal(t, "parley mcp: the questions go to http://"+address+"\n", errs.String())
	cancel()
	require.Zero(t, <-served)
}

// A workspace is compared as a text: what is typed is resolved where it is typed,
// so that "." is not every project's (S-012).
func TestMCPVerbResolvesItsWorkspace(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for given, want := range map[string]string{
		"": here, ".": here, "./": here, "..": filepath.Dir(here), "shop": filepath.Join(here, "shop"), "/srv/shop": "/srv/shop", "/srv//shop/": "/srv/shop",
	} {
		opts, err := (&cli{env: func(string) (string, bool) { return "", false }}).pipeOptions(pipe{workspace: given})
		require.NoError(t, err)
		require.Equal(t, want, opts.Workspace, given)
	}
}

func TestMCPVerbRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"mcp", "--wait-max", "90"}, {"mcp", "--wait-max", "10ms"}, {"mcp", "--session", "a\x00"}, {"mcp", "--owner", ""},
		{"mcp", "--embedded"}, // the fake environment names a node
		{"mcp", "--node", "nowhere://x"}, {"mcp", "extra"},
		{"serve", "--mcp-wait-max", "5"}, {"serve", "--public-url", "example.org"},
	} {
		r := runCLI(t, "http://127.0.0.1:1", "", args...)
		require.Equal(t, messages.ExitUsage, r.exit, "%q: %s", args, r.err)
		require.Empty(t, r.out)
	}
}

// The built program, as a client starts it: stdout carries the protocol alone.
func TestMCPVerbAsAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	program := filepath.Join(t.TempDir(), "parley")
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(text))
	command := exec.CommandContext(t.Context(), program, "mcp", "--embedded", "--journal", "memory", "--listen", "127.0.0.1:0")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	require.NoError(t, err)
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 3)
	require.NoError(t, session.Close())
}

// What a program says before it closes its end is answered: all of it, an ask too.
func TestMCPVerbAnswersWhatItWasSent(t *testing.T) {
	var out, errs strings.Builder
	address := freePort(t)
	c := &cli{in: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
not JSON
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask_user_question","arguments":{"questions":[{"id":"q","question":"Ship it?"}]}}}`),
		out: &out, err: &errs, self: "parley", width: widthDefault, now: time.Now, newID: newID, env: func(string) (string, bool) { return "", false }}
	require.Zero(t, run(t.Context(), []string{"mcp", "--embedded", "--listen", address, "--journal", "memory"}, c), errs.String())
	var all []string
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)), line)
		all = append(all, line)
	}
	require.Len(t, all, 4)
	require.Contains(t, out.String(), "collect_replies", "the tools")
	require.Contains(t, out.String(), `"code":-32700`)
	require.Contains(t, out.String(), `\"pending\":true`, "the ask")
	require.NotContains(t, out.String(), "as a later message", "nothing arrives by itself")
	require.NotContains(t, errs.String(), "ERROR")
}
