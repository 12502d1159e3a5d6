package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
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
		{26, "--limit is 101", []string{"search", "x", "--limit", "101"}},
		{2, "--limit 0 is out of range", []string{"search", "x", "--limit", "0"}},
		{2, "events are numbered from 0", []string{"search", "x", "--seq-from", "-3"}},
		{2, "events are numbered from 0", []string{"search", "x", "--seq-to", "-1"}},
		{26, "--seq-from is above --seq-to", []string{"search", "x", "--seq-from", "3", "--seq-to", "2"}},
		{2, "--session is one session", []string{"search", "x", "--session", "first", "--workspace", "/shop"}},
		{26, "--from must be a time like", []string{"search", "x", "--from", "yesterday"}},
		{26, "--since is after --to", []string{"search", "x", "--since", "1h", "--to", "2026-07-24T00:00:00Z"}},
		{2, `--since "yesterday" is no duration`, []string{"search", "x", "--since", "yesterday"}},
		{2, "--since and --from both", []string{"search", "x", "--since", "1h", "--from", "2026-07-24T00:00:00Z"}},
		{26, "--surface may be", []string{"search", "x", "--surface", "hidden"}},
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

// A search says which sessions it could not read, and of one alone that nothing can be said.
func TestSearchNamesWhatItCouldNotRead(t *testing.T) {
	f := newFake(t)
	why := messages.Refuse(messages.QueryCorruptSession, "session torn cannot be read: event 7 is missing")
	on(f, messagesconnect.QueryServiceSearchProcedure, func(req *messages.SearchRequest) (*messages.SearchResponse, error) {
		if req.GetSession() != "" {
			return nil, why
		}
		return &messages.SearchResponse{Troubled: []*messages.SearchTrouble{{Session: "torn", Why: why.Wire()}}}, nil
	})
	runCLI(t, f.url, "", "search", "x").want(t, 0, "", "! session torn cannot be read: event 7 is missing\n    (SESSION_QUERY_CORRUPT_SESSION)\nnothing found in the sessions that can be read\n")
	r := runCLI(t, f.url, "", "search", "x", "--session", "torn")
	require.Equal(t, 70, r.exit)
	require.Contains(t, r.err, "error: session torn cannot be read: event 7 is missing (SESSION_QUERY_CORRUPT_SESSION)\n")
	require.NotContains(t, r.err, "nothing found")
}

func TestWhenSomethingWasSaid(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"":                time.UnixMilli(0),
		"3m05s ago, ":     now.Add(-185 * time.Second),
		"364d00h ago, ":   now.AddDate(0, 0, -364),
		"on 2024-02-29, ": time.Date(2024, 2, 29, 23, 0, 0, 0, time.UTC),
		"on 2026-12-01, ": now.AddDate(0, 0, 1), // by another machine's clock
	} {
		require.Equal(t, want, whenSaid(at.UnixMilli(), now.UnixMilli()))
	}
}
