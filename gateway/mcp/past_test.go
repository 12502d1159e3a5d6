package mcp

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		{"the endpoint's own", "/elsewhere", "of-work", `{"session":"of-work","query":"x"}`, true},
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
