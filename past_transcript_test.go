package parley_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/simulation/conformance"
)

var update = flag.Bool("update", false, "write the transcript of docs/past-work-transcript.md again")

const shop = "/srv/shop"

// The calls of the transcript, as a model would make them one after another.
var transcript = []struct{ why, tool, args string }{
	{"What did we say about event sourcing?", "session_search", `{"query":"event sourcing"}`},
	{"The answer to that whole, and what was said before it.", "session_event_read", `{"session_id":"live-interactions","seq":89,"before":1}`},
	{"A word inside a sentence that is written without spaces.", "session_search", `{"query":"文件结构"}`},
	{"Which commands were tried in that session?", "session_event_search", `{"session_id":"goal-multi-turn-actions","query":"ls -la","event_types":["tool/call"]}`},
	{"Which sessions did this one begin?", "session_trace", `{"session_id":"advanced-toolchain"}`},
	{"What became of a message, after the context was compacted?", "session_event_trace", `{"session_id":"compaction-recovery","seq":4}`},
	{"Somebody else's session, by a name that was guessed.", "session_event_read", `{"session_id":"elsewhere","seq":0}`},
}

// A real MCP client searches, traces and reads real logs; docs/past-work-transcript.md
// is what it saw.
func TestTranscriptOfPastWork(t *testing.T) {
	dir := beside(t, "logs")
	node, err := parley.Open(parley.Config{Path: filepath.Join(t.TempDir(), "journal.db"), QueryTools: true, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, node.Close(context.WithoutCancel(t.Context()))) })
	importLogs(t, node, dir)
	imported(t, node, "elsewhere", "/srv/garden", "", "event sourcing of tulips")

	client := piped(t, node, parley.MCPOptions{Session: "today", Workspace: shop})
	var page bytes.Buffer
	page.WriteString(transcriptHead)
	for _, c := range transcript {
		args := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(c.args), &args))
		res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: args})
		require.NoError(t, err)
		text := res.Content[0].(*sdk.TextContent).Text
		page.WriteString("\n## " + c.why + "\n\n`" + c.tool + "` with `" + c.args + "`\n\n~~~~\n" + text + "\n~~~~\n")
	}
	const file = "docs/past-work-transcript.md"
	if *update {
		require.NoError(t, os.WriteFile(file, page.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), page.String(), "go test . -run Transcript -update writes it")
}

const transcriptHead = `# Past work, as a model sees it

The official MCP client of the Go SDK, at a node into which 144 session logs of
another agent were imported. They were taken as they are, but for what their
publisher had taken out: ids, working directories and times. A test makes these
calls again and compares.
`

// importLogs imports every log of the folder but the one that is refused, each
// under the name of its scene; a scene's further sessions are its children.
func importLogs(t *testing.T, node *parley.Node, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	name := regexp.MustCompile(`__([^_]+)__(session|seed)([0-9.]*)`)
	parent := regexp.MustCompile(`"parentSession":"[^"]*"`)
	taken := map[string]int{}
	for _, file := range files {
		m := name.FindStringSubmatch(filepath.Base(file))
		require.NotNil(t, m, file)
		id := m[1]
		if child := strings.Trim(m[3], "."); child != "" {
			id += "." + child
		}
		if taken[id]++; taken[id] > 1 {
			id += strings.Repeat("'", taken[id]-1)
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		log, err := conformance.FillIn(parent.ReplaceAll(text, []byte(`"parentSession":"`+m[1]+`"`)), id, shop)
		require.NoError(t, err)
		_, err = node.Import(t.Context(), "", bytes.NewReader(log))
		if strings.Contains(file, "cordis-tool-round") {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, file)
	}
}
