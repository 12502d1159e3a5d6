package parley_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// tornJournal counts its reads, and has one session whose log is damaged.
type tornJournal struct {
	journal.Journal
	reads atomic.Int64
}

func tornLog() *messages.Error {
	return messages.Refuse(messages.SessionCorrupt, "session torn in /var/lib/parley.db, record 221: it is damaged")
}

func (j *tornJournal) Open(session string, done func(journal.Opened, error)) {
	j.reads.Add(1)
	if session == "torn" {
		go done(journal.Opened{}, tornLog())
		return
	}
	j.Journal.Open(session, done)
}

func (j *tornJournal) Read(ctx context.Context, session string, from int64, limit int) (journal.Opened, error) {
	j.reads.Add(1)
	if session == "torn" {
		return journal.Opened{}, tornLog()
	}
	return j.Journal.Read(ctx, session, from, limit)
}

func tornNode(t *testing.T) (*parley.Node, *tornJournal) {
	t.Helper()
	j := &tornJournal{Journal: memory.New(nil)}
	node, _ := pastNode(t, func(cfg *parley.Config) { cfg.Path, cfg.Journal = "", j })
	return node, j
}

// S-013: a session that a model may not name looks like one that does not exist:
// the same text, after as many reads, in this process and over the wire.
func TestASessionThatMayNotBeNamedIsNone(t *testing.T) {
	t.Parallel()
	node, j := tornNode(t)
	imported(t, node, "nowhere", "", "", "a needle of no workspace")
	handler, stop, err := node.Handler(parley.ServeOptions{})
	require.NoError(t, err)
	defer stop()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	for name, serve := range map[string]func(t *testing.T, opts parley.MCPOptions) *sdk.ClientSession{
		"in this process": func(t *testing.T, opts parley.MCPOptions) *sdk.ClientSession { return piped(t, node, opts) },
		"over the wire": func(t *testing.T, opts parley.MCPOptions) *sdk.ClientSession {
			return pipedRemote(t, parley.Remote{URL: srv.URL, QueryTools: true, Logger: quiet}, opts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, workspace := range []string{"", "/srv/work"} {
				client := serve(t, parley.MCPOptions{Workspace: workspace})
				ask := func(session string) (string, int64) {
					before := j.reads.Load()
					res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "session_event_read", Arguments: map[string]any{"session": session, "seq": 0}})
					require.NoError(t, err)
					assert.True(t, res.IsError, session)
					return strings.ReplaceAll(res.Content[0].(*sdk.TextContent).Text, session, "X"), j.reads.Load() - before
				}
				none, reads := ask("guessed")
				require.Contains(t, none, string(messages.QueryUnauthorized))
				for _, session := range []string{"nowhere", "foreign", "torn"} {
					text, n := ask(session)
					assert.Equal(t, none, text, session)
					assert.Equal(t, reads, n, session)
				}
				text, _ := ask("me") // of the workspace, and another root's
				assert.Equal(t, none, text)
			}
			own := serve(t, parley.MCPOptions{Session: "own-" + strings.Fields(name)[0]})
			res, err := own.CallTool(t.Context(), &sdk.CallToolParams{Name: "session_event_read", Arguments: map[string]any{"seq": 0}})
			require.NoError(t, err)
			assert.False(t, res.IsError, "without a workspace it sees itself: %v", res.Content)
		})
	}
}

// S-120: where the caller's own log is damaged, the tools say that past work
// cannot be read, and not in which file of the node.
func TestADamagedLogOfTheCallersOwnNamesNoPath(t *testing.T) {
	t.Parallel()
	node, _ := tornNode(t)
	handler, stop, err := node.Handler(parley.ServeOptions{})
	require.NoError(t, err)
	defer stop()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	past := messagesconnect.NewQueryServiceClient(srv.Client(), srv.URL)
	client := piped(t, node, parley.MCPOptions{Session: "torn", Workspace: "/srv/work"})
	for tool, args := range map[string]map[string]any{
		"session_search": {"query": "x"}, "session_event_search": {"query": "x"}, "session_trace": {},
		"session_event_trace": {"seq": 0}, "session_event_read": {"seq": 0},
	} {
		res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		require.NoError(t, err)
		require.True(t, res.IsError)
		raw, err := json.Marshal(args)
		require.NoError(t, err)
		_, refused := past.CallQueryTool(t.Context(), connect.NewRequest(&messages.CallQueryToolRequest{Session: "torn", Root: "r", Tool: tool, Arguments: string(raw)}))
		for _, text := range []string{res.Content[0].(*sdk.TextContent).Text, refused.Error()} {
			assert.Contains(t, text, string(messages.QueryPersistence), tool)
			assert.NotContains(t, text, "/var", tool)
		}
	}
}
