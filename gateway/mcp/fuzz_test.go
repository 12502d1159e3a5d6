package mcp

import (
	"net/url"
	"testing"

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
