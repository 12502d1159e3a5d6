package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/parleyrun/parley/messages"
)

// Root is the agent instance that MCP clients speak as. It is one for all:
// a client cannot be told from its own next process, and what is whose is told
// by the session.
const Root = "mcp"

// Port is all that the door asks of its node, in this process or over the
// wire. Refusals are *messages.Error. It holds an AskRequest until its result,
// an AwaitInboxRequest until something waits, or as hold_ms says; when ctx ends
// first the caller is detached and what it asked goes on.
type Port interface {
	Do(ctx context.Context, cmd messages.Command) (messages.Reply, error)

	// CallQueryTool makes one call of a session query tool. It is asked only
	// where Options.QueryTools mounts them.
	CallQueryTool(ctx context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error)

	// Workspace tells the working directory of a session, in one read of its
	// header; empty: it has none. messages.NotFound: there is no such session.
	Workspace(ctx context.Context, session string) (string, error)
}

// Options of the door.
type Options struct {
	// Definition is the tool as the agent's request header records it: a JSON
	// object with name, description and parameters (Q-020 … Q-023). Needed.
	Definition json.RawMessage
	// Mode is the definition under which ask_user_question is registered: timed
	// or legacy.
	Mode messages.Mode
	// DefaultTimeoutS is the wait of a call that names none, in seconds; -1: no
	// limit. The tool's description states it.
	DefaultTimeoutS int64
	// WaitMax caps the foreground wait of every client, in place of the table of
	// what each is known to allow. 0: the table; negative: no cap.
	WaitMax time.Duration
	// QueryTools mounts the session query tools; SpilledResults says that the
	// node keeps long results of theirs, and that there is a tool to read on.
	QueryTools, SpilledResults bool
	// Link is the address at which a person answers a call; empty: none is told.
	Link func(session, call string) string
	// NewID draws an id; kind is its readable prefix.
	NewID func(kind string) string
	// Version is told to clients.
	Version string
	Logger  *slog.Logger
}
