package mcp

import (
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// succeed is a result: one text block, and the same JSON as structured content
// because each client shows its model only one of the two.
func succeed(text string, meta sdk.Meta) *sdk.CallToolResult {
	return &sdk.CallToolResult{Meta: meta, Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(text)}
}

// fail is a failure: text alone, with code and remedy, so that the
// model can act on it.
func fail(err error, meta sdk.Meta) *sdk.CallToolResult {
	text := err.Error()
	if coded := (*messages.Error)(nil); errors.As(err, &coded) {
		text = coded.Error()
	}
	return &sdk.CallToolResult{Meta: meta, IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "Error: " + text}}}
}

// meta names what a result is about, for programs.
func (who caller) meta(call string) sdk.Meta {
	m := sdk.Meta{}
	if who.session != "" {
		m["parley/session"] = who.session
	}
	if call != "" {
		m["parley/call"] = call
	}
	return m
}
