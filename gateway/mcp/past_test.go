package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// S-010: a model that names a session is not the agent of that session. Where
// the endpoint names none, it may name those of its own workspace.
func TestANamedSessionGivesNoOtherWorkspace(t *testing.T) {
	for _, tt := range []struct {
		name, workspace, session, arguments string
		allowed                             bool
	}{
		{"of the workspace", "/srv/work", "", `{"session":"of-work","query":"x"}`, true},
		{"of another workspace", "/elsewhere", "", `{"session":"of-work","query":"x"}`, false},
		{"of a workspace, where the endpoint has none", "", "", `{"session":"of-work","query":"x"}`, false},
		{"one that does not exist", "/srv/work", "", `{"session":"guessed","query":"x"}`, false},
		{"one that does not exist, where the endpoint has none", "", "", `{"session":"guessed","query":"x"}`, false},
		{"one without, where the endpoint has none", "", "", `{"session":"of-nothing","query":"x"}`, false},
		{"the endpoint's own", "/elsewhere", "of-work", `{"session":"of-work","query":"x"}`, true},
		{"its own, without a workspace", "", "of-nothing", `{"session":"of-nothing","query":"x"}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newStage(t, func(o *Options) { o.QueryTools = true })
			r.lives(func(l *life) { l.session, l.workspace = tt.session, tt.workspace })
			res := r.run(r.client("any"), "session_search", tt.arguments)
			text := textOf(t, res)
			require.Equal(t, !tt.allowed, res.IsError, text)
			if !tt.allowed {
				require.Contains(t, text, "SESSION_QUERY_TOOL_UNAUTHORIZED")
			}
		})
	}
}

// S-013: whatever keeps a model from a session that it names, it is told the
// same, after the same look. Not whether the session exists, nor whose it is.
func TestASessionThatMayNotBeNamedLooksLikeNone(t *testing.T) {
	for _, workspace := range []string{"/srv/work", "/elsewhere", ""} {
		told := map[string]bool{}
		for _, name := range []string{"guessed", "of-nothing", "damaged", "of-another-root"} {
			r := newStage(t, func(o *Options) { o.QueryTools = true })
			r.lives(func(l *life) { l.workspace = workspace })
			text := failureOf(t, r.run(r.client("any"), "session_search", `{"session":"`+name+`","query":"x"}`))
			told[fmt.Sprint(strings.ReplaceAll(text, name, "X"), r.node.looked)] = true
		}
		require.Len(t, told, 1, "%q: %v", workspace, told)
	}
}

// The session that a connection got because it named none is its own, also
// where the model names it as a result did.
func TestAModelMayNameTheSessionThatItIs(t *testing.T) {
	r := newStage(t, func(o *Options) { o.QueryTools = true })
	r.lives(func(l *life) { l.minted = &minted{session: "of-nothing"} })
	res := r.run(r.client("any"), "session_search", `{"session":"of-nothing","query":"x"}`)
	require.False(t, res.IsError, textOf(t, res))
}

// S-120: what fails in the node is told without its paths, also before a tool runs.
func TestTheQueryToolsNameNoPathOfTheNode(t *testing.T) {
	r := newStage(t, func(o *Options) { o.QueryTools = true })
	r.lives(func(l *life) { l.session = "mine" })
	says(r.node, func(*messages.AttachRequest) (messages.Reply, error) {
		return nil, messages.Refuse(messages.SessionCorrupt, "session mine in /var/j.db, record 221: damaged")
	})
	const want = "Error: SESSION_QUERY_PERSISTENCE_FAILED: past sessions cannot be read now"
	text := failureOf(t, r.run(r.client("any"), "session_trace", `{}`))
	require.True(t, strings.HasPrefix(text, want), text)
	require.NotContains(t, text, "/var")

	r.lives(func(l *life) { l.workspace = "/srv/work" })
	text = failureOf(t, r.run(r.client("any"), "session_trace", `{"session":"unread"}`))
	require.True(t, strings.HasPrefix(text, want), text)
	require.NotContains(t, text, "/var")
}
