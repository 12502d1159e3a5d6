package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said is a session in which one thing was said.
func said(id, cwd, parent, text string) string {
	if parent != "" {
		parent = `,"parentSession":"` + parent + `"`
	}
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"createdAt":1784851200000,"cwd":%q%s,"isSeeded":false,"delegationDepth":0}
{"type":"user/message","seq":0,"time":1784851201000,"data":{"id":"m-%s","role":"user","content":[{"type":"text","text":%s}],"source":{"kind":"user"}},"surfaceOp":"append"}
`, id, cwd, parent, id, quoted)
}

func TestPastWorkIsFoundAndRead(t *testing.T) {
	t.Parallel()
	node := serveNode(t)
	for _, log := range []string{
		said("first", "/shop", "", "we chose the needle"), said("second", "/shop", "first", "another needle, and a longer text"),
		said("third", "/garden", "", "服务器部署在上海"), said("sly", "/garden", "", "needle \x1b[31mred\u202e"),
	} {
		r := startWith(t, node.env, strings.NewReader(log), "import", "-").end()
		require.Zero(t, r.exit, r.err)
	}

	r := node.run(t, "search", "the", "needle")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^first — untitled\n  0  user/message, .* ago, current\n     we chose the needle\n$`, r.out)

	r = node.run(t, "search", "needle", "--limit", "1", "--json")
	doc := r.document(t, r.out)
	require.Len(t, doc["hits"], 1)
	next := doc["next"].(string)
	r = node.run(t, "search", "needle", "--limit", "1", "--after", next)
	require.Contains(t, r.out, "first — untitled")
	require.Contains(t, r.err, "there is more: add --after")
	r = node.run(t, "search", "needle", "--limit", "1", "--all", "--json")
	require.Len(t, r.document(t, r.out)["hits"], 3)
	require.Equal(t, 26, node.run(t, "search", "other", "--after", next).exit, "it belongs to another search")

	require.Contains(t, node.run(t, "search", "上海").out, "third")
	r = node.run(t, "search", "needle", "--workspace", "/shop", "--workspace", "/nowhere")
	require.NotContains(t, r.out, "sly")
	r = node.run(t, "search", "red")
	require.NotContains(t, r.out, "\x1b")
	require.NotContains(t, r.out, "\u202e")
	r = node.run(t, "search", "nothing like it")
	require.Zero(t, r.exit)
	require.Equal(t, "nothing found\n", r.err)
	require.Equal(t, "nothing found\n", node.run(t, "search", "needle", "--since", "1h").err)

	r = node.run(t, "trace", "first")
	require.Contains(t, r.out, "Descendants:\n- second — untitled | 2026-07-24T00:00:00.000Z | persisted\n")
	require.Contains(t, node.run(t, "trace", "first", "0").out, "Replaced by: none\n")
	require.Contains(t, node.run(t, "read", "first", "0", "-A", "2").out, `"text": "we chose the needle"`)

	for _, c := range []struct {
		exit int
		says string
		args []string
	}{
		{2, "search takes a PHRASE", []string{"search"}},
		{26, "the query is empty", []string{"search", "  "}},
		{26, "limit is 101", []string{"search", "x", "--limit", "101"}},
		{26, "time_from must be a time like", []string{"search", "x", "--from", "yesterday"}},
		{2, `--since "yesterday" is no duration`, []string{"search", "x", "--since", "yesterday"}},
		{2, "--since and --from both", []string{"search", "x", "--since", "1h", "--from", "2026-07-24T00:00:00Z"}},
		{26, "surfaces may be", []string{"search", "x", "--surface", "hidden"}},
		{25, `there is no session "nobody"`, []string{"search", "x", "--session", "nobody"}},
		{25, `there is no session "nobody"`, []string{"trace", "nobody"}},
		{25, "no such event", []string{"read", "first", "7"}},
		{2, `"x" is no number of an event`, []string{"trace", "first", "x"}},
		{26, "50 at most", []string{"read", "first", "0", "-B", "51"}},
	} {
		r := node.run(t, c.args...)
		require.Equal(t, c.exit, r.exit, "%v: %s", c.args, r.err)
		require.Contains(t, r.err, c.says, "%v", c.args)
	}
}
