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
	if own, bad := d.callerOf(ctx, req, "", false); bad == nil && own.session == who.session {
		who = own // the model named what it is
	}
	text, err := d.askPast(ctx, who, req.Params)
	if err != nil {
		return fail(err, who.meta("")), nil
	}
	return &sdk.CallToolResult{Meta: who.meta(""), Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

func (d *Door) askPast(ctx context.Context, who caller, call *sdk.CallToolParamsRaw) (string, error) {
	if err := d.attach(ctx, who); err != nil {
		return "", history.Outward(ctx, d.opts.Logger, err)
	}
	if !who.ours {
		if err := d.ofWorkspace(ctx, who); err != nil {
			return "", err
		}
	}
	res, err := d.port.CallQueryTool(ctx, &messages.CallQueryToolRequest{
		Session: who.session, Root: Root, Tool: call.Name, Arguments: string(call.Arguments)})
	if !who.ours && messages.CodeOf(err) == messages.CallerNotLive {
		err = notOfWorkspace(who) // whose it is, is not the model's to know
	}
	return res.GetText(), err
}

// ofWorkspace refuses a session that the model named and that is not of the
// endpoint's workspace: every session of this door speaks as one root, and a
// name is no right to see what another agent may (S-010). One that has no
// workspace, one that cannot be read and one that does not exist are refused
// alike, after the same read (S-013).
func (d *Door) ofWorkspace(ctx context.Context, who caller) error {
	if who.life.workspace == "" {
		return notOfWorkspace(who) // it has none to share
	}
	switch workspace, err := d.port.Workspace(ctx, who.session); messages.CodeOf(err) {
	case messages.NotFound, messages.SessionCorrupt:
		return notOfWorkspace(who)
	default:
		if err == nil && workspace != who.life.workspace {
			err = notOfWorkspace(who)
		}
		return history.Outward(ctx, d.opts.Logger, err)
	}
}

func notOfWorkspace(who caller) error {
	return messages.Refuse(messages.QueryUnauthorized, "session %s is none of the workspace that this endpoint works in, or not its own", quote(who.session))
}
