package mcp

import (
	"bytes"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// Whatever an endpoint's address says, what is taken from it could have been
// given in a request, and everything else is refused.
func FuzzAddress(f *testing.F) {
	f.Add("/mcp/demo", "owner=a&wait_max=90s")
	f.Add("/mcp/a%2Fb", "wait_max=never")
	f.Add("/mcp//", "wait_max=9223372036854775807h")
	f.Fuzz(func(t *testing.T, path, query string) {
		u, err := url.ParseRequestURI("http://host" + path)
		if err != nil {
			return
		}
		u.RawQuery = query
		at, bad := addressOf(u)
		if bad != nil {
			return
		}
		for _, id := range []string{at.session, at.owner} {
			if id != "" && messages.CheckID("id", id) != nil {
				t.Errorf("%q was taken", id)
			}
		}
		if at.waitMax < -1 {
			t.Errorf("a wait of %v was taken", at.waitMax)
		}
	})
}

// What passes is looked at, never trusted: nothing of it ends the process.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"id":null}]`))
	f.Add([]byte("event: message\nid: a_1\ndata: {\"id\":1,\"result\":{}}\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		calls, _ := readCalls(text)
		answers := readResponses(text)
		readEvent(text)
		for _, key := range append(calls, answers...) {
			if (envelope{ID: []byte(key)}).key() != key {
				t.Errorf("the key %s is not one spelling", key)
			}
		}
	})
}

// Whatever a client writes, the pipe goes on: the next call is answered.
func FuzzLines(f *testing.F) {
	for _, line := range []string{`{`, `[]`, `[{"jsonrpc":"2.0","id":5,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `[[]]`, `[null]`,
		`{"jsonrpc":"2.0","result":{},"id":1}`, `{"jsonrpc":"2.0","ID":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}`,
		"\ufeff{}", "{}\x00", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`, `{"jsonrpc":"2.0","id":"end","method":"ping"}`} {
		f.Add([]byte(line))
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "rig"}, nil)
	t := newTransports(server, slog.New(slog.DiscardHandler), wallTimers{})
	f.Fuzz(func(tt *testing.T, line []byte) {
		var out safeBuffer
		in := io.MultiReader(strings.NewReader(hello), bytes.NewReader(line), strings.NewReader("\n"+`{"jsonrpc":"2.0","id":"the end","method":"ping"}`))
		require.NoError(tt, t.serveStdio(tt.Context(), in, &out, StdioOptions{}))
		require.Contains(tt, out.String(), `"id":"the end"`)
	})
}
