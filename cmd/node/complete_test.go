package main

import (
	"strings"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/stretchr/testify/require"
)

// offered is what the Tab key offers at the end of a line.
func offered(t *testing.T, node string, words ...string) []string {
	t.Helper()
	r := runCLI(t, node, "", append([]string{"__complete"}, words...)...)
	require.Zero(t, r.exit, r.err)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.True(t, strings.HasPrefix(lines[len(lines)-1], ":"), r.out)
	return lines[:len(lines)-1]
}

func TestTabKnowsWhatTheNodeKnows(t *testing.T) {
	f := newFake(t)
	row := shipIt("open")
	row.Questions[0].Options = append(row.Questions[0].Options, &messages.Option{Label: "\x1b[2Jgone"})
	f.rows(row)
	on(f, messagesconnect.SessionServiceListSessionsProcedure, func(*messages.ListSessionsRequest) (*messages.ListSessionsResponse, error) {
		return &messages.ListSessionsResponse{Sessions: []*messages.SessionRow{{Session: "demo", Cwd: "/w"}, {Session: "de\tmo"}}}, nil
	})
	for line, want := range map[string][]string{
		"log ":                      {"demo\t/w"},
		"export ":                   {"demo\t/w"},
		"inbox ":                    {"demo\t/w"},
		"questions --session ":      {"demo\t/w"},
		"answer ":                   {"demo\tShip it?"},
		"answer demo ":              {"q-1\tShip it?"},
		"withdraw demo ":            {"q-1\tShip it?"},
		"answer demo q-1 --option ": {"Yes", "No\twait for the review"},
		"answer --option ":          {"Yes", "No\twait for the review"},
		"answer demo q-2 --option ": {},
		"answer demo --option ":     {"Yes", "No\twait for the review"},
		"log demo ":                 {},
		"sessions ":                 {},
		"hook ":                     {"claude-code", "codex", "opencode"},
		"hook codex ":               {},
		"serve --mode ":             {"timed", "legacy"},
	} {
		require.Equal(t, want, offered(t, f.url, strings.Split(line, " ")...), line)
	}
	require.Contains(t, f.requests(), "ListSessions")
	require.Contains(t, offered(t, f.url, "exp"), "export\tWrite a session's log to a file")
}

// Without a node, or with a broken file, the Tab key offers nothing and says nothing.
func TestTabIsSilentWithoutANode(t *testing.T) {
	for _, line := range []string{"log ", "answer ", "answer demo q-1 --option ", "answer --node ftp://x "} {
		r := runCLI(t, "http://127.0.0.1:1", "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.Equal(t, ":4\n", r.out, line)
		require.NotContains(t, r.err, "rror", line)
	}
	env := place(t, "no = such", "")
	require.Equal(t, ":4\n", runAt(t, env, "__complete", "log", "").out)
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := runCLI(t, "", "", "completion", shell)
		require.Zero(t, r.exit)
		require.Contains(t, r.out, "__complete", shell)
	}
	require.Contains(t, runCLI(t, "", "", "completion", "bash", "--help").out, "needs the package bash-completion")
}
