package sessionlog

import (
	"encoding/json"
)

// Call is a tool/call event as far as a runtime needs it.
type Call struct {
	CallID, Name string
	Turn, Step   int64
	Arguments    string // the raw argument text
}

// DecodeCall reads a tool/call. The error is a *CorruptError.
func DecodeCall(ev Event) (Call, error) {
	f := fieldsOf(ev, TypeToolCall)
	c := Call{CallID: f.required("callId"), Name: f.text("name"), Arguments: f.text("arguments")}
	c.Turn, _ = f.get("turn").whole()
	c.Step, _ = f.get("step").whole()
	return c, f.err
}

// Result is a tool/result event of generation V3 as far as a runtime needs it.
type Result struct {
	CallID  string
	Text    string // the first text block
	IsError bool
	Code    string // error.code; empty for none
}

// DecodeResult reads a V3 tool/result. The error is a *CorruptError.
func DecodeResult(ev Event) (Result, error) {
	f := fieldsOf(ev, TypeToolResult)
	m := f.get("message")
	r := Result{Text: blockText(m.get("content")), IsError: m.get("isError").isTrue()}
	var ok bool
	if r.CallID, ok = m.get("toolCallId").str(); !ok {
		f.fail("message.toolCallId must be a string")
	}
	r.Code, _ = f.get("error").get("code").str()
	return r, f.err
}

// ToolCallIn finds the tool-call block with this id in an assistant message
// record; its error says what is wrong with the message.
func ToolCallIn(message json.RawMessage, callID string) (call Call, found bool, err error) {
	v, ok := parse(message)
	if !ok || !v.isRecord() || !v.get("role").is("assistant") || !v.get("id").isString() || !v.get("content").isList() {
		return Call{}, false, &CorruptError{Seq: -1, Problem: "an assistant message needs an id, the role assistant and a content list",
			Remedy: "pass the message as the model's client gave it, with an id"}
	}
	for block := range v.get("content").elements {
		if block.get("type").is("tool-call") && block.get("id").is(callID) {
			call.CallID = callID
			call.Name, _ = block.get("name").str()
			call.Arguments, _ = block.get("arguments").str()
			return call, true, nil
		}
	}
	return Call{}, false, nil
}

// Text is the first text block of a message, for people; empty when it has none.
func (m Message) Text() string { return blockText(value(m.Raw).get("content")) }

// UserMessage builds a message that a person or a program typed.
func UserMessage(id, text, by string) Message {
	d := appendString([]byte(`{"id":`), id)
	d = append(d, `,"role":"user","source":{"kind":"user"`...)
	d = appendField(d, "by", by)
	d = appendString(append(d, `},"content":[{"type":"text","text":`...), text)
	return Message{ID: id, Raw: append(d, `}]}`...)}
}

func blockText(content value) string {
	for block := range content.elements {
		if block.get("type").is("text") {
			s, _ := block.get("text").str()
			return s
		}
	}
	return ""
}
