package mcp

import (
	"fmt"
	"time"
)

// noCap: the client lets a call run as long as it likes.
const noCap time.Duration = -1

// known is what is known of one client, by the name it gives in clientInfo.
// The limits are measured with each client's defaults, less ten seconds and
// more for the way back: a progress token does not extend most of them.
type known struct {
	name string
	// with and without are the longest foreground wait of a call that carries a
	// progress token, and of one that does not.
	with, without time.Duration
	// session names the member of _meta that names the conversation, and prefix
	// what its session is called here; call names the client's own id of the call.
	session, prefix, call string
	// cancelsAll: it cancels every call, those that have succeeded too.
	cancelsAll bool
}

// clients is the table. Its first row is for every other client.
var clients = []known{
	{name: "", with: 50 * time.Second, without: 50 * time.Second, call: "claudecode/toolUseId"},
	{name: "claude-code", with: 110 * time.Second, without: 110 * time.Second, call: "claudecode/toolUseId"},
	{name: "codex-mcp-client", with: 280 * time.Second, without: 280 * time.Second, session: "threadId", prefix: "codex-", call: "callId"},
	{name: "opencode", with: noCap, without: 50 * time.Second, cancelsAll: true},
}

// clientOf returns the row of a client.
func clientOf(name string) known {
	for _, row := range clients[1:] {
		if row.name == name {
			return row
		}
	}
	return clients[0]
}

// capOf is the longest foreground wait of a call: what its endpoint says, else
// what the node's options say, else the table.
func (d *Door) capOf(l *life, name string, token bool) time.Duration {
	row := clientOf(name)
	longest := row.without
	if token {
		longest = row.with
	}
	if d.opts.WaitMax != 0 {
		longest = d.opts.WaitMax
	}
	if l.waitMax != 0 {
		longest = l.waitMax
	}
	if longest < 0 {
		return noCap
	}
	return longest
}

// shorter returns the earlier end of two waits.
func shorter(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// inSeconds says a wait as `_meta` has it; -1: no limit.
func inSeconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64(d / time.Second)
}

// spell says a wait to a model.
func spell(d time.Duration) string {
	if d%time.Second != 0 {
		return d.String()
	}
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
