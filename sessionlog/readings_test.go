package sessionlog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// The typed readings of what a runtime needs; odd payloads are a *CorruptError that names the event.
func TestTypedReadings(t *testing.T) {
	call, err := DecodeCall(decoded(t, `{"type":"tool/call","seq":3,"time":0,"data":{"turn":1.0,"step":2,"callId":"c","name":"bash","arguments":"{\"a\":1}"}}`))
	noError(t, err)
	equal(t, Call{CallID: "c", Name: "bash", Turn: 1, Step: 2, Arguments: `{"a":1}`}, call)

	result, err := DecodeResult(ToolResult(1, 2, "c", "text", true, "N", CodeOutcomeUnknown, -1, "m"))
	noError(t, err)
	equal(t, Result{CallID: "c", Text: "text", IsError: true, Code: CodeOutcomeUnknown}, result)

	made := SubCall{RootCallID: "a", ParentCallID: "a:ptc:2", SubCallID: "a:ptc:2:ptc:1", Arguments: json.RawMessage(`{"x":1}`)}
	ended := made.Result("text", true, "N", "C")
	for _, ev := range []Event{made.Start(), ended} {
		sub, name, err := DecodeSubCall(ev)
		noError(t, err)
		equal(t, ToolName, name)
		equal(t, made, sub)
	}
	result, err = DecodeDispatch(ended)
	noError(t, err)
	equal(t, Result{CallID: made.SubCallID, Text: "text", IsError: true, Code: "C"}, result)

	var corrupt *CorruptError
	_, err = DecodeCall(NewEvent(TypeToolCall, map[string]int{"callId": 1}).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
	_, err = DecodeResult(NewEvent(TypeToolResult, map[string]any{}).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
	_, err = DecodeDispatch(NewEvent(TypeToolCall, nil).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
	_, _, err = DecodeSubCall(NewEvent(TypeToolCall, nil).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
}

// An assistant message is taken only when it can stand in a log, and its calls are found by their exact id.
func TestToolCallIn(t *testing.T) {
	message := json.RawMessage(`{"id":"a","role":"assistant","content":[null,{"type":"text","id":"c"},{"type":"tool-call","id":"\u0063","name":"run_code","arguments":"{}"}]}`)
	call, found, err := ToolCallIn(message, "c")
	isTrue(t, found && err == nil, err)
	equal(t, Call{CallID: "c", Name: "run_code", Arguments: "{}"}, call)
	_, found, err = ToolCallIn(message, "C")
	isTrue(t, !found && err == nil, err)
	for _, raw := range []string{``, `[]`, `{"role":"assistant","content":[]}`, `{"id":"a","role":"user","content":[]}`, `{"id":"a","role":"assistant"}`} {
		_, _, err := ToolCallIn(json.RawMessage(raw), "c")
		isTrue(t, err != nil && !strings.Contains(err.Error(), "seq"), raw, err)
	}
}

// A typed message is an ordinary one: nobody's reply, whatever its text says.
func TestUserMessage(t *testing.T) {
	m := UserMessage("m", "{\"kind\":\"answer_to_pending_question\"}\n", "ann")
	parsed, err := ParseMessage(m.Raw)
	noError(t, err)
	equal(t, m, parsed)
	equal(t, "", parsed.ReplyTo)
	equal(t, "{\"kind\":\"answer_to_pending_question\"}\n", parsed.Text())
	equal(t, "", msg("m").Text())
}

// No payload breaks a typed reading; an error always names its place and remedy.
func FuzzDecodeReadings(f *testing.F) {
	f.Add([]byte(`{"turn":1,"step":1,"callId":"c","name":"n","arguments":"{}","subCallId":"s","message":{"toolCallId":"c","content":[{"type":"text","text":"x"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := DecodeCall(Event{Type: TypeToolCall, Data: data}); err != nil {
			fatalUnlessTyped(t, err)
		}
		if _, err := DecodeResult(Event{Type: TypeToolResult, Data: data}); err != nil {
			fatalUnlessTyped(t, err)
		}
		if _, err := DecodeDispatch(Event{Type: TypeDispatch, Data: data}); err != nil {
			fatalUnlessTyped(t, err)
		}
		if _, _, err := DecodeSubCall(Event{Type: TypeDispatchStart, Data: data}); err != nil {
			fatalUnlessTyped(t, err)
		}
		if _, _, err := ToolCallIn(data, "c"); err != nil {
			fatalUnlessTyped(t, err)
		}
	})
}

// Ids of sub-calls are `<parent>:ptc:<n>`, n from 1 (section I of the log's rules).
func TestSubCallIDs(t *testing.T) {
	for id, want := range map[string]string{
		"a:ptc:1": "a", "a:ptc:12": "a", "a:ptc:1:ptc:2": "a:ptc:1", ":ptc::ptc:1": ":ptc:",
		"a": "", "": "", ":ptc:1": "", "a:ptc:": "", "a:ptc:0": "", "a:ptc:01": "", "a:ptc:+1": "", "a:ptc:-1": "", "a:ptc:x": "",
		"a:ptc:1x": "", "a:ptc:99999999999999999999": "", "a:code:1": "",
	} {
		parent, ok := ParentOf(id)
		equal(t, want, parent, id)
		equal(t, want != "", ok, id)
	}
	equal(t, []string{"a", "a", "a", "", "a:ptc:0"}, []string{RootOf("a"), RootOf("a:ptc:3"), RootOf("a:ptc:1:ptc:2"), RootOf(""), RootOf("a:ptc:0")})
}

// Arguments are recorded as a value; what is no JSON is kept as text, which nobody could answer.
func TestArgumentsValue(t *testing.T) {
	for text, want := range map[string]string{
		" {\"b\" : 1.50,\n\"a\":[ ]} ": `{"b":1.50,"a":[]}`, `{`: `"{"`, ``: `""`, `"x"`: `"x"`, `1 2`: `"1 2"`,
	} {
		equal(t, want, string(ArgumentsValue(text)), text)
	}
}
