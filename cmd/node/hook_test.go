package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/stretchr/testify/require"
)

// inbox is what a fake node holds for a session, and what it was told has arrived.
type inbox struct {
	mu       sync.Mutex
	holds    waiting
	session  string
	attached string
	receipts []string
}

func (b *inbox) set(w waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.queued = len(w.ids)
	b.holds = w
}

// of makes a fake node that holds this for whatever session is asked for.
func of(t *testing.T, holds waiting) (*fakeNode, *inbox) {
	f, b := newFake(t), &inbox{}
	b.set(holds)
	on(f, messagesconnect.InboxServiceAwaitInboxProcedure, func(q *messages.AwaitInboxRequest) (*messages.AwaitInboxResponse, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.session = q.GetSession(); q.GetRoot() != mcpRoot {
			return nil, messages.Refuse(messages.CallerNotLive, "root %q", q.GetRoot())
		}
		return &messages.AwaitInboxResponse{Queued: int32(b.holds.queued), MessageIds: b.holds.ids, Undelivered: int32(b.holds.undelivered)}, nil
	})
	on(f, messagesconnect.InboxServiceAcknowledgeProcedure, func(q *messages.AcknowledgeRequest) (*messages.AcknowledgeResponse, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.receipts = append(b.receipts, q.GetSession()+" "+q.GetCorrelation())
		if q.GetCorrelation() == "toolu_1" {
			b.holds.undelivered = 0
		}
		return &messages.AcknowledgeResponse{Known: true}, nil
	})
	on(f, messagesconnect.SessionServiceAttachProcedure, func(q *messages.AttachRequest) (*messages.AttachResponse, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.attached = q.GetSession() + " to " + q.GetRoot()
		return &messages.AttachResponse{Session: q.GetSession(), Root: q.GetRoot()}, nil
	})
	return f, b
}

const collected = `{"session_id":"5f0c","hook_event_name":"PostToolUse","tool_name":"mcp__parley__collect_replies","tool_use_id":"toolu_1","tool_response":`

// hookEventsSeen are events as the agents write them, and others that must be as harmless.
var hookEventsSeen = []struct{ name, event string }{
	{"SessionStart", `{"session_id":"5f0c","transcript_path":"/t","cwd":"/w","hook_event_name":"SessionStart","source":"startup"}`},
	{"UserPromptSubmit", `{"session_id":"5f0c","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt":"go on"}`},
	{"PostToolUse, another's tool", `{"session_id":"5f0c","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"toolu_1","tool_response":{"stdout":""}}`},
	{"PostToolUse, a receipt as Claude Code 2.1.332 writes it", collected + `"{\"replies\":[]}"}`},
	{"PostToolUse, a receipt as Codex 0.171.0 writes it", collected + `{"content":[{"type":"text","text":"{}"}],"structuredContent":{"replies":[]}}}`},
	{"PostToolUse, a receipt without structure", collected + `{"content":[{"type":"text","text":"{}"}]}}`},
	{"PostToolUse, moved to the background by Claude Code 2.1.332", collected + `[{"type":"text","text":"MCP tool \"parley/ask_user_question\" is still running after 120s. It was moved to the background as task k0 and keeps running"}]}`},
	{"PostToolUse, no response", collected + `null}`},
	{"PostToolUse, a response that is no result", collected + `"no such tool"}`},
	{"PostToolUse, an error", collected + `{"isError":true,"content":[{"type":"text","text":"{}"}],"structuredContent":{}}}`},
	{"PostToolUse, a result of another type", collected + `{"content":{"text":7}}}`},
	{"PostToolUse, no id of the call", strings.Replace(collected, "toolu_1", "", 1) + `"{}"}`},
	{"PostToolUse, a subagent's receipt", strings.Replace(collected, "{", `{"agent_id":"a1",`, 1) + `"{}"}`},
	{"PostToolUseFailure", `{"session_id":"5f0c","hook_event_name":"PostToolUseFailure","tool_name":"mcp__parley__ask_user_question","tool_use_id":"toolu_1","error":"timed out"}`},
	{"PreToolUse", `{"session_id":"5f0c","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"toolu_1"}`},
	{"PreToolUse of ours", `{"session_id":"5f0c","hook_event_name":"PreToolUse","tool_name":"mcp__parley__collect_replies","tool_input":{"after":"r1-\u003c"},"tool_use_id":"toolu_1"}`},
	{"PreToolUse of ours, which names a session", `{"session_id":"5f0c","hook_event_name":"PreToolUse","tool_name":"mcp__parley__collect_replies","tool_input":{"session":null}}`},
	{"PreToolUse of ours, without an object", `{"session_id":"5f0c","hook_event_name":"PreToolUse","tool_name":"mcp__parley__collect_replies","tool_input":null}`},
	{"PreToolUse of another's tool of that name", `{"session_id":"5f0c","hook_event_name":"PreToolUse","tool_name":"mcp__other__ask_user_question","tool_input":{}}`},
	{"Stop", `{"session_id":"5f0c","hook_event_name":"Stop","stop_hook_active":false}`},
	{"Stop, again", `{"session_id":"5f0c","hook_event_name":"Stop","stop_hook_active":true}`},
	{"SubagentStop", `{"session_id":"5f0c","hook_event_name":"SubagentStop","stop_hook_active":false}`},
	{"an event of tomorrow", `{"session_id":"5f0c","hook_event_name":"MoonRise"}`},
	{"a field of another type", `{"session_id":"5f0c","hook_event_name":"UserPromptSubmit","agent_id":7,"tool_name":{},"stop_hook_active":"no"}`},
	{"no session", `{"hook_event_name":"UserPromptSubmit","session_id":null}`},
}

// Each agent's events, with one reply and one lost result waiting: what is acknowledged, and what the agent reads.
func TestHookByEvent(t *testing.T) {
	var all strings.Builder
	for _, agent := range []string{claudeCode, codexAgent} {
		for _, seen := range hookEventsSeen {
			f, b := of(t, waiting{ids: []string{"reply-1"}, undelivered: 1})
			r := runCLI(t, f.url, seen.event, "hook", agent)
			require.Zero(t, r.exit)
			require.True(t, json.Valid([]byte(r.out)), r.out)
			fmt.Fprintf(&all, "%s: %s\n", agent, seen.name)
			if b.attached != "" {
				fmt.Fprintf(&all, "  attached: %s\n", b.attached)
			}
			for _, receipt := range b.receipts {
				fmt.Fprintf(&all, "  arrived: %s\n", receipt)
			}
			all.WriteString("  " + r.out)
			if r.err != "" {
				all.WriteString("  stderr: " + r.err)
			}
		}
	}
	golden(t, "hook.txt", all.String())
}

// Silence is {}: nothing waits, and no hook speaks again in a turn that a hook has continued.
func TestHookIsSilent(t *testing.T) {
	f, _ := of(t, waiting{})
	for _, agent := range []string{claudeCode, codexAgent} {
		for _, seen := range hookEventsSeen {
			r := runCLI(t, f.url, seen.event, "hook", agent)
			require.Zero(t, r.exit)
			require.True(t, r.out == "{}\n" || agent == claudeCode && seen.name == "PreToolUse of ours", "%s: %s", seen.name, r.out)
		}
	}
}

// A call of ours is given the conversation's session only where the hook finds it itself: a session that was named
// to the hook is named to the server, too. A call without it is better than none.
func TestHookNamesNoSessionTwice(t *testing.T) {
	event := `{"session_id":"5f0c","hook_event_name":"PreToolUse","tool_name":"mcp__parley__collect_replies","tool_input":{}}`
	f, b := of(t, waiting{})
	runCLI(t, f.url, event, "hook", claudeCode, "--session", "mine").want(t, 0, "{}\n", "")
	require.Empty(t, b.attached)
	r := runCLI(t, "http://127.0.0.1:1", event, "hook", claudeCode)
	require.Equal(t, "{}\n", r.out)
	require.Contains(t, r.err, "no node listens")
}

func TestHookNamesTheSession(t *testing.T) {
	event := `{"session_id":"5f0c","hook_event_name":"Stop"}`
	for want, args := range map[string][]string{
		"claude-5f0c": {"hook", claudeCode},
		"codex-5f0c":  {"hook", codexAgent},
		"mine":        {"hook", codexAgent, "--session", "mine"},
	} {
		f, b := of(t, waiting{})
		runCLI(t, f.url, event, args...).want(t, 0, "{}\n", "")
		require.Equal(t, want, b.session)
	}
	f, b := of(t, waiting{})
	var out bytes.Buffer
	c := &cli{in: strings.NewReader(event), out: &out, err: io.Discard, env: func(name string) (string, bool) {
		value := map[string]string{"PARLEY_NODE": f.url, "PARLEY_SESSION": "ours"}[name]
		return value, value != ""
	}}
	require.Zero(t, run(t.Context(), []string{"hook", claudeCode}, c))
	require.Equal(t, "ours", b.session)
}

// endless never ends, as the stdin of an agent that has forgotten to close it.
type endless struct{ done <-chan struct{} }

func (e endless) Read([]byte) (int, error) { <-e.done; return 0, io.EOF }

// Whatever stands on stdin, and whatever became of the node, the agent gets JSON and goes on (fault E7 for the ids).
func TestHookNeverBreaksItsAgent(t *testing.T) {
	f, b := of(t, waiting{ids: []string{"reply-1"}})
	deep := strings.Repeat(`{"a":`, 200_000) + "1" + strings.Repeat("}", 200_000)
	for name, event := range map[string]string{
		"empty": "", "blank": " \n", "a NUL": "\x00", "a text": `"Stop"`, "a list": `[{"hook_event_name":"Stop"}]`, "a number": "7", "null": "null",
		"half": `{"hook_event_name":"Stop"`, "two": `{}{}`, "not UTF-8": "{\"session_id\":\"\xff\",\"hook_event_name\":\"Stop\x00\"}",
		"deep":             deep,
		"huge":             `{"session_id":"a","hook_event_name":"Stop","x":"` + strings.Repeat("x", eventBytesMax) + `"}`,
		"a NUL in an id":   `{"session_id":"a\u0000b","hook_event_name":"Stop"}`,
		"an empty id":      `{"session_id":"","hook_event_name":"Stop"}`,
		"an endless id":    `{"session_id":"` + strings.Repeat("x", 1<<20) + `","hook_event_name":"Stop"}`,
		"an escape in it":  `{"session_id":"\u001b[2J","hook_event_name":"Stop"}`,
		"an id of a list":  `{"session_id":["a"],"hook_event_name":"Stop"}`,
		"an order in it":   `{"session_id":"a\u202eb","hook_event_name":"Stop"}`,
		"a lower-case key": `{"SESSION_ID":"a","hook_event_name":"Stop"}`,
	} {
		for _, agent := range []string{claudeCode, codexAgent} {
			r := runCLI(t, f.url, event, "hook", agent)
			require.Zero(t, r.exit, name)
			require.Equal(t, "{}\n", r.out, name)
			require.True(t, strings.HasPrefix(r.err, "parley hook: ") && strings.Count(r.err, "\n") == 1, "%s: %q", name, r.err)
			harmless(t, name, r.err)
		}
	}
	require.Empty(t, b.session, "the node was asked")

	event := `{"session_id":"a","hook_event_name":"Stop"}`
	for name, node := range map[string]string{"nobody listens": "http://127.0.0.1:1", "no address": "ftp://x", "another server": newFake(t).url} {
		r := runCLI(t, node, event, "hook", claudeCode)
		require.Zero(t, r.exit, name)
		require.Equal(t, "{}\n", r.out, name)
		require.NotEmpty(t, r.err, name)
	}
}

// A node that does not answer, and an agent that does not close its pipe, hold nobody for longer than the limit.
func TestHookIsQuick(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select { // the body is left unread, so the server cannot see the client go
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
	defer stuck.Close()
	defer cancel()
	for name, in := range map[string]io.Reader{
		"the node": strings.NewReader(`{"session_id":"a","hook_event_name":"Stop"}`), "the pipe": endless{ctx.Done()},
	} {
		var out, errs bytes.Buffer
		c := &cli{in: in, out: &out, err: &errs}
		c.env = func(name string) (string, bool) { return stuck.URL, name == "PARLEY_NODE" }
		began := time.Now()
		require.Zero(t, run(t.Context(), []string{"hook", claudeCode}, c))
		require.Less(t, time.Since(began), hookLimit+3*time.Second, name)
		require.Equal(t, "{}\n", out.String(), name)
		require.NotEmpty(t, errs.String(), name)
	}
}

// Status 2 of a hook blocks the prompt: a mistake in the settings must not.
func TestHookCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{"hook"}, {"hook", "emacs"}, {"hook", claudeCode, "more"}, {"hook", claudeCode, "--sesion", "x"}, {"hook", claudeCode, "--session", ""},
		{"hook", claudeCode, "--session", "a\x01"}, {"hook", codexAgent, "--watch"}, {"hook", claudeCode, "--server", "http://x"}, {"hook", openCode, "--print-settings", "--session", "x"},
	} {
		r := runCLI(t, "", "", args...)
		require.Equal(t, 1, r.exit, args)
		require.Equal(t, "{}\n", r.out, args)
		require.True(t, strings.HasPrefix(r.err, "error: "), r.err)
	}
	for _, args := range [][]string{
		{"hook", openCode, "--opencode-session", "ses_1"}, {"hook", openCode, "--session", "x"},
		{"hook", openCode, "--session", "x", "--opencode-session", "../../x"}, {"hook", openCode, "--session", "x", "--opencode-session", ".."},
		{"hook", openCode, "--session", "x", "--opencode-session", "ses_1", "--server", "x"},
	} {
		r := runCLI(t, "", "", args...)
		require.Equal(t, 2, r.exit, args)
		require.Empty(t, r.out, args)
	}
}

// What is printed to be pasted: the whole of it, with this program's own path, and quoted for the shell that runs it.
func TestHookSettings(t *testing.T) {
	in := hooking{agent: claudeCode, session: "my session"}
	line := hookLine("/opt/my tools/parley", in, "http://127.0.0.1:9")
	require.Equal(t, `"/opt/my tools/parley" hook claude-code --session "my session" --node http://127.0.0.1:9`, line)
	in = hooking{agent: codexAgent}
	golden(t, "hook_settings.txt", string(claudeHooks(line, false))+"\n\n"+codexHooks(hookLine("/usr/local/bin/parley", in, defaultNode)))

	var settings struct{ Hooks map[string][]hookGroup }
	r := runCLI(t, "", "", "hook", claudeCode, "--print-settings", "--token", "a token of some length")
	require.NoError(t, json.Unmarshal([]byte(r.out), &settings))
	require.Len(t, settings.Hooks, len(hookEvents)+1)
	require.True(t, strings.HasPrefix(settings.Hooks["Stop"][0].Hooks[0].Command, "/"), r.out)
	require.NotContains(t, r.out, "a token")
}

// openCodeServer is opencode's server as far as the bell needs it.
type openCodeServer struct {
	url  string
	said chan string
}

func newOpenCode(t *testing.T, status int) *openCodeServer {
	o := &openCodeServer{said: make(chan string, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session/{id}/prompt_async", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		o.said <- r.PathValue("id") + " " + r.Header.Get("Content-Type") + " " + string(body)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *openCodeServer) hears(t *testing.T) string {
	t.Helper()
	select {
	case text := <-o.said:
		return text
	case <-time.After(patienceMax):
		t.Fatal("opencode was told nothing")
		return ""
	}
}

const twoWait = `ses_1 application/json {"parts":[{"text":"2 replies wait: call collect_replies.","type":"text"}]}`

func TestHookOpenCode(t *testing.T) {
	o := newOpenCode(t, http.StatusNoContent)
	args := []string{"hook", openCode, "--session", "demo", "--opencode-session", "ses_1", "--server", o.url}
	f, _ := of(t, waiting{ids: []string{"reply-1", "reply-2"}})
	runCLI(t, f.url, "", args...).want(t, 0, "", "told opencode: 2 replies wait: call collect_replies.\n")
	require.Equal(t, twoWait, o.hears(t))

	f, _ = of(t, waiting{})
	runCLI(t, f.url, "", args...).want(t, 0, "", "nothing waits in session demo\n")
	require.Empty(t, o.said)

	f, _ = of(t, waiting{undelivered: 1})
	refusing := newOpenCode(t, http.StatusNotFound)
	r := runCLI(t, f.url, "", "hook", openCode, "--session", "demo", "--opencode-session", "ses_1", "--server", refusing.url)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "opencode refuses the message: 404 Not Found")
	require.Contains(t, r.err, "check --server and --opencode-session")
	r = runCLI(t, f.url, "", "hook", openCode, "--session", "demo", "--opencode-session", "ses_1", "--server", "http://127.0.0.1:1")
	require.Equal(t, messages.Lookup(messages.Unavailable).Exit, r.exit)
}

// A watch tells of each reply once, and of one that comes while another still waits.
func TestHookOpenCodeWatch(t *testing.T) {
	t.Parallel()
	o := newOpenCode(t, http.StatusNoContent)
	f, b := of(t, waiting{ids: []string{"reply-1"}})
	w := start(t, []string{"PARLEY_NODE=" + f.url}, "hook", openCode, "--session", "demo", "--opencode-session", "ses_1", "--server", o.url, "--watch")
	require.Contains(t, o.hears(t), "1 reply waits")
	b.set(waiting{ids: []string{"reply-1", "reply-2"}})
	require.Equal(t, twoWait, o.hears(t))
	b.set(waiting{})
	w.awaitLooks(f, 3)
	b.set(waiting{undelivered: 1})
	require.Contains(t, o.hears(t), "1 reply waits")
	require.Empty(t, o.said)
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitInterrupted, w.end().exit)
}

// awaitLooks waits until the node was asked so many times more.
func (p *process) awaitLooks(f *fakeNode, more int) {
	want := strings.Count(f.requests(), "AwaitInbox") + more
	require.Eventually(p.t, func() bool { return strings.Count(f.requests(), "AwaitInbox") >= want }, patienceMax, 10*time.Millisecond)
}

// The real binary with a real node: a question of the MCP door's root, answered late, rings and is silent once taken.
func TestHookWithNode(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	hook := func(event string) string {
		t.Helper()
		r := startWith(t, n.env, strings.NewReader(event), "hook", claudeCode).end()
		require.Zero(t, r.exit)
		require.Empty(t, r.err)
		return r.out
	}
	prompt := `{"session_id":"5f0c","hook_event_name":"UserPromptSubmit","prompt":"go on"}`
	require.Equal(t, "{}\n", hook(prompt), "nobody knows the session yet")
	require.Equal(t, messages.ExitPending, n.run(t, "ask", "Ship it?", "--session", "claude-5f0c", "--root", mcpRoot, "--timeout", "1s").exit)
	require.Equal(t, "{}\n", hook(prompt))
	require.Zero(t, n.run(t, "answer", "--text", "the secret word").exit)

	bell := `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"1 reply waits: call collect_replies."}}` + "\n"
	require.Equal(t, bell, hook(prompt))
	require.Equal(t, bell, hook(prompt), "it rings until the reply is taken")
	require.Contains(t, n.run(t, "inbox", "claude-5f0c", "--admit", "--root", mcpRoot).out, "the secret word")
	require.Equal(t, "{}\n", hook(prompt))
	n.stop(syscall.SIGKILL)
	r := startWith(t, n.env, strings.NewReader(prompt), "hook", claudeCode).end()
	require.Equal(t, "{}\n", r.out)
	require.Contains(t, r.err, "no node listens")
}

// What any event does: one line of JSON, and no text but the bell's.
func FuzzHookEvent(f *testing.F) {
	for _, seen := range hookEventsSeen {
		f.Add([]byte(seen.event), true)
	}
	f.Add([]byte("\x00"), false)
	f.Fuzz(func(t *testing.T, text []byte, claude bool) {
		agent := codexAgent
		if claude {
			agent = claudeCode
		}
		e, err := readEvent(text)
		if err != nil {
			require.Equal(t, hookEvent{}, e)
			return
		}
		if session, err := e.parleySession(agent); err == nil {
			require.Nil(t, messages.CheckID("session", session))
		}
		if input, ok := e.named("s"); ok {
			var named struct{ Session string }
			require.NoError(t, json.Unmarshal(input, &named))
		}
		if receipt := e.receipt(); receipt != "" {
			require.Nil(t, messages.CheckID("receipt", receipt))
		}
		if !e.audible(agent) {
			return
		}
		line := jsonLine(e.ring(agent, 2))
		require.True(t, json.Valid(line))
		require.Equal(t, 1, bytes.Count(line, []byte(bellText(2))))
		require.Less(t, len(line), 200)
	})
}
