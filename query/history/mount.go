package history

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parleyrun/parley/messages"
)

// Mounted are the tools as a node offers them to agents: with their time limit,
// and with a place for results that are too long.
type Mounted struct {
	*Tools
	Spill Spill
}

// List describes what is mounted: the five, and with a Spill the one that reads
// on in what it kept.
func (m Mounted) List() *messages.ListQueryToolsResponse {
	out := &messages.ListQueryToolsResponse{Prompt: Prompt}
	for _, tool := range Definitions(m.Spill.Inline > 0) {
		described := &messages.QueryTool{Name: tool.Name, Title: tool.Title, Description: tool.Description, Schema: string(tool.Schema), Exclusive: tool.Search}
		if tool.Search {
			described.TimeoutMs = m.cfg.SearchTimeout.Milliseconds()
		}
		out.Tools = append(out.Tools, described)
	}
	return out
}

// Definitions lists the tools in the order of S-001, with the one that reads on
// if results are spilled.
func Definitions(spilled bool) []Tool {
	out := All()
	if spilled {
		out = append(out, readOn.Tool)
	}
	return out
}

// Call runs one tool for the agent attached to the session caller. A search
// that takes too long is messages.ToolTimeout (S-131).
func (m Mounted) Call(ctx context.Context, caller, name string, args json.RawMessage) (string, error) {
	if name == ReadResult && m.Spill.Inline > 0 {
		return m.readOn(ctx, caller, args)
	}
	if name == SearchSessions || name == SearchEvents {
		limit := m.cfg.SearchTimeout
		late := messages.Refuse(messages.ToolTimeout, "%s took longer than %v", name, limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, late)
		defer cancel()
	}
	text, err := m.Tools.Call(ctx, caller, name, args)
	if err != nil {
		return "", err
	}
	return m.Spill.Bound(ctx, caller, text), nil
}

// readOn is session_result_read. Its results fit by themselves.
func (m Mounted) readOn(ctx context.Context, caller string, args json.RawMessage) (string, error) {
	given, err := decode(readOn.params, args)
	if err != nil {
		return "", err
	}
	if caller == "" {
		return "", missingAgent()
	}
	offset, err := given.whole("offset", 0)
	if err != nil {
		return "", err
	}
	const note = 100 // what is said below the part
	part, next, err := m.Spill.ReadOn(ctx, caller, given.text("locator"), int(offset), max(1, m.Spill.Inline-note))
	if err != nil || next < 0 {
		return part, err
	}
	return part + fmt.Sprintf("\n\n[More follows from offset %d.]", next), nil
}

var readOn = describe([]tool{{
	Tool: Tool{Name: ReadResult, Title: "Read on in a result",
		Description: "Read on in a result that was too long to show whole. The note at its end names the locator and the offset."},
	params: []parameter{
		{name: "locator", required: true, says: "As the note names it."},
		{name: "offset", kind: aWhole, says: "The byte to read on from. Default 0."},
	},
}})[0]
