package mcp

import (
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

func listed(t *testing.T, r *stage, client string) map[string]*sdk.Tool {
	t.Helper()
	res, err := r.client(client).ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "private", res.CacheScope, "what one client is told is not for another")
	require.Len(t, res.Tools, 3)
	tools := map[string]*sdk.Tool{}
	for _, tool := range res.Tools {
		tools[tool.Name] = tool
	}
	return tools
}

func TestToolsAreListed(t *testing.T) {
	r := newStage(t)
	tools := listed(t, r, "any")
	for _, name := range []string{toolAsk, toolCollect, toolWithdraw} {
		tool := tools[name]
		require.NotNil(t, tool, name)
		require.Equal(t, true, tool.Meta["anthropic/alwaysLoad"], name)
		require.NotNil(t, tool.Annotations.DestructiveHint, name)
		require.False(t, *tool.Annotations.OpenWorldHint, name)
		require.Equal(t, name != toolWithdraw, tool.Annotations.ReadOnlyHint, name)
		in := tool.InputSchema.(map[string]any)
		require.Equal(t, "object", in["type"], name)
		require.Equal(t, true, in["additionalProperties"], name)
		require.Contains(t, in["properties"], "session", name)
		out := tool.OutputSchema.(map[string]any)
		require.Equal(t, "object", out["type"], name)
		checkSchema(t, name, out)
	}
	require.NotContains(t, r.door.definition.Parameters["properties"], "session", "the node's definition stays its own")
	require.Contains(t, tools[toolCollect].Description, "by the reply_id")
}

// checkSchema holds what clients choke on: a schema that is `true`, and an
// object that is not closed.
func checkSchema(t *testing.T, path string, schema map[string]any) {
	t.Helper()
	if variants, ok := schema["oneOf"].([]any); ok {
		for _, v := range variants {
			checkSchema(t, path+"|", v.(map[string]any))
		}
		return
	}
	require.IsType(t, "", schema["type"], path)
	if items, ok := schema["items"].(map[string]any); ok {
		checkSchema(t, path+"[]", items)
	}
	props, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}
	require.Equal(t, false, schema["additionalProperties"], path)
	for name, p := range props {
		require.IsType(t, map[string]any{}, p, path+"."+name)
		checkSchema(t, path+"."+name, p.(map[string]any))
	}
}

func TestToolsTellTheWaitInForce(t *testing.T) {
	for _, tt := range []struct {
		client, want string
		life         func(*life)
	}{
		{"claude-code", "In this client a call waits at most 110 seconds", nil},
		{"codex-mcp-client", "In this client a call waits at most 280 seconds", nil},
		{"any", "In this client a call waits at most 50 seconds", nil},
		{"opencode", "In this client a call waits as long as its timeout says.", nil},
		{"any", "In this client a call waits at most 1 second,", func(l *life) { l.waitMax = time.Second }},
		{"any", "In this client a call waits at most 1.5s,", func(l *life) { l.waitMax = 1500 * time.Millisecond }},
		{"any", "In this client a call waits as long as its timeout says.", func(l *life) { l.waitMax = -1 }},
	} {
		r := newStage(t)
		r.lives(tt.life)
		desc := listed(t, r, tt.client)[toolAsk].Description
		require.Contains(t, desc, tt.want)
		require.Contains(t, desc, "Ask the user. ")
		require.Contains(t, desc, "handed out by collect_replies")
	}
	require.Contains(t, newStage(t).door.askDescription(view{}), "a pending result says how long it was")
}

func TestAnEndpointThatFixesTheSessionHasNoArgumentForIt(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	for name, tool := range listed(t, r, "any") {
		require.NotContains(t, tool.InputSchema.(map[string]any)["properties"], "session", name)
	}
}

func TestLegacyToolsPromiseNothingLate(t *testing.T) {
	r := newStage(t, func(o *Options) { o.Mode = messages.Mode_MODE_LEGACY })
	ask := listed(t, r, "any")[toolAsk]
	require.Equal(t, "Ask the user.", ask.Description)
	require.NotContains(t, ask.OutputSchema, "oneOf")
	require.Contains(t, ask.OutputSchema.(map[string]any)["properties"], "answers")
}

func TestInstructionsFit(t *testing.T) {
	r := newStage(t)
	require.Equal(t, instructions, r.client("any").InitializeResult().Instructions)
	require.Less(t, len(instructions), 2<<10)
	for _, word := range []string{"pending", "collect_replies", "`after`", "Hooks", "no permission", "reply_id"} {
		require.Contains(t, instructions, word)
	}
}

func TestNewRefusesOptionsThatAreNotWhole(t *testing.T) {
	id := func(string) string { return "x" }
	for _, opts := range []Options{
		{Definition: json.RawMessage(toolText)},
		{NewID: id},
		{NewID: id, Definition: json.RawMessage(`{"name":"other","parameters":{"type":"object"}}`)},
		{NewID: id, Definition: json.RawMessage(`{"name":"ask_user_question","parameters":{"type":"list"}}`)},
	} {
		_, err := New(&standIn{}, opts)
		require.Equal(t, messages.BadRequest, messages.CodeOf(err))
	}
	d, err := New(&standIn{}, Options{NewID: id, Definition: json.RawMessage(toolText)})
	require.NoError(t, err)
	require.True(t, d.timed(), "Q-020: timed is Parley's default")
	require.IsType(t, wallClock{}, d.clock)
}

func TestTheWallClock(t *testing.T) {
	over, stop := wallClock{}.After(time.Nanosecond)
	defer stop()
	<-over
	require.WithinDuration(t, time.Now(), wallClock{}.Now(), time.Minute)
}
