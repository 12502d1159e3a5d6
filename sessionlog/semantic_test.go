package sessionlog

import (
	"encoding/json"
	"strings"
	"testing"
)

// S-070: what an event says, type by type and block by block.
func TestS070SemanticText(t *testing.T) {
	content := `[{"type":"text","text":" a\n"},{"type":"text","text":"  "},{"type":"reasoning","text":"no"},{"type":"image","text":"no"},
		{"type":"tool-call","id":"no","name":"bash","arguments":" {} "},{"type":"tool-result","content":[{"type":"text","text":"in"},{"type":"tool-result","content":[{"type":"text","text":"deep"}]}]}]`
	for _, c := range []struct{ typ, data, want string }{
		{TypeUserMessage, `{"id":"no","content":` + content + `}`, "a\nbash\n{}\nin\ndeep"},
		{TypeUserMessage, `{"content":" as one text "}`, "as one text"},
		{TypeAssistantMessage, `{"message":{"content":` + content + `}}`, "a\nbash\n{}\nin\ndeep"},
		{TypeToolCall, `{"callId":"no","name":"read","arguments":"{\"path\": \"x\"}"}`, "read\n{\"path\": \"x\"}"},
		{TypeToolResult, `{"message":{"content":[{"type":"text","text":"v3"}]},"error":{"name":"N","code":"C","message":"no"}}`, "v3\nN\nC"},
		{TypeToolResult, `{"message":{"content":[{"type":"tool-result","content":[{"type":"text","text":"v0"}]}]}}`, "v0"},
		{TypeTodo, `{"todos":[{"content":"wash","status":"pending"},{"content":"","status":"completed"}]}`, "pending\nwash\ncompleted"},
		{TypeTurnEnd, `{"reason":{"kind":"error","error":{"message":"full","code":"no"}}}`, "error\nfull"},
		{TypeTurnEnd, `{"reason":{"kind":"aborted","reason":{"kind":"user"}}}`, "aborted"},
		{TypeTurnEnd, `{"reason":{"kind":"max-tokens"}}`, "max-tokens"},
		{TypeTurnEnd, `{"reason":{"kind":"interrupted"}}`, "interrupted"},
		{TypeTurnEnd, `{"reason":{"kind":"completed"}}`, ""},
		{TypeTurnEnd, `{"reason":{"kind":"blocked"}}`, ""},
		{TypeTitle, `{"title":"no"}`, ""},
		{typeChunk, `{"chunk":{"text":"no"}}`, ""},
		{TypeSettled, `{"text":"no","content":[{"type":"text","text":"no"}]}`, ""},
		{TypeUserMessage, `5`, ""},
		{TypeUserMessage, `{"content":[{"type":"text","text":5},7]}`, ""},
		{TypeUserMessage, `{"content":[{"type":"text","text":"\ufeff\u00a0x\u0085\u2028"}]}`, "x\u0085"},
		{TypeUserMessage, `{"content":[{"type":"text","text":"\ud800\udc00 \ud800\ud800"}]}`, "\U00010000 \uFFFD\uFFFD"},
	} {
		equal(t, c.want, SemanticText(Event{Type: c.typ, Data: json.RawMessage(c.data)}), c.typ, c.data)
	}
}

// S-110, L-070: a title is read as it is stored.
// Results in results are read as deep as a real one could ever be, and no deeper.
func TestS070ResultsInResultsEnd(t *testing.T) {
	nested := func(depth int) string {
		data := `{"content":[` + strings.Repeat(`{"type":"tool-result","content":[`, depth) + `{"type":"text","text":"here"}` + strings.Repeat(`]}`, depth) + `]}`
		return SemanticText(Event{Type: TypeUserMessage, Data: json.RawMessage(data)})
	}
	equal(t, "here", nested(3))
	equal(t, "", nested(blocksDepthMax+1))
}

func TestS110TitleOf(t *testing.T) {
	title, ok := TitleOf(Event{Type: TypeTitle, Data: json.RawMessage(`{"title":" a\u001b[1m ","messageSeqs":[],"source":{"kind":"user"}}`)})
	isTrue(t, ok)
	equal(t, " a\x1b[1m ", title)
	for _, ev := range []Event{{Type: TypeTitle, Data: json.RawMessage(`{"title":5}`)}, {Type: TypeTodo, Data: json.RawMessage(`{"title":"x"}`)}} {
		_, ok := TitleOf(ev)
		isTrue(t, !ok, ev.Type)
	}
}
