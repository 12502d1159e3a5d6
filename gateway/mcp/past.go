package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query/history"
)

// pastTools are the session query tools, if they are mounted (S-001).
func (d *Door) pastTools() []history.Tool {
	if !d.opts.QueryTools {
		return nil
	}
	return history.Definitions(d.opts.SpilledResults)
}

func (d *Door) instructions() string {
	if !d.opts.QueryTools {
		return instructions
	}
	return instructions + "\n\n" + history.Prompt
}

func (v view) pastTool(tool history.Tool) *sdk.Tool {
	no := false
	schema := object{}
	if err := json.Unmarshal(tool.Schema, &schema); err != nil {
		panic(err) // it is written by package history
	}
	return &sdk.Tool{
		Name: tool.Name, Title: tool.Title, Description: tool.Description, InputSchema: v.input(schema),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no},
	}
}

// past is every session query tool. The result is text alone: it is the
// contract, and structure would be a second one.
func (d *Door) past(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var named struct{ Session string }
	if err := json.Unmarshal(req.Params.Arguments, &named); err != nil && len(req.Params.Arguments) > 0 {
		return fail(messages.Refuse(messages.InvalidArgs, "the arguments must be an object, and its session a text"), nil), nil
	}
	who, bad := d.callerOf(ctx, req, named.Session, false)
	if bad != nil {
		return fail(bad, nil), nil
	}
	if err := d.attach(ctx, who); err != nil {
		return fail(err, who.meta("")), nil
	}
	if err := d.ofWorkspace(ctx, who); err != nil {
		return fail(err, who.meta("")), nil
	}
	res, err := d.port.CallQueryTool(ctx, &messages.CallQueryToolRequest{
		Session: who.session, Root: Root, Tool: req.Params.Name, Arguments: string(req.Params.Arguments)})
	if err != nil {
		return fail(err, who.meta("")), nil
	}
	return &sdk.CallToolResult{Meta: who.meta(""), Content: []sdk.Content{&sdk.TextContent{Text: res.GetText()}}}, nil
}

// ofWorkspace refuses a session that the model named and that is not of the
// endpoint's workspace: every session of this door speaks as one root, and a
// name is no right to see what another agent may (S-010). One that does not exist
// is refused alike (S-013).
func (d *Door) ofWorkspace(ctx context.Context, who caller) error {
	if who.ours {
		return nil
	}
	workspace, err := d.port.Workspace(ctx, who.session)
	if code := messages.CodeOf(err); err != nil && code != messages.NotFound {
		return err
	}
	if err != nil || workspace != who.life.workspace {
		return messages.Refuse(messages.QueryUnauthorized, "session %s is not of the workspace that this endpoint works in", quote(who.session))
	}
	return nil
}
