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

	sub, name, arguments, err := DecodeDispatch(SubCall{SubCallID: "a:ptc:1", Arguments: json.RawMessage(`{"x":1}`)}.pendingDispatch())
	noError(t, err)
	equal(t, []string{"a:ptc:1", ToolName, `{"x":1}`}, []string{sub, name, string(arguments)})

	var corrupt *CorruptError
	_, err = DecodeCall(NewEvent(TypeToolCall, map[string]int{"callId": 1}).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
	_, err = DecodeResult(NewEvent(TypeToolResult, map[string]any{}).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
	_, _, _, err = DecodeDispatch(NewEvent(TypeToolCall, nil).At(7, 0))
	isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
}

// An assistant message is taken only when it can stand in a log, and its calls are found by their exact id.
func TestHasToolCall(t *testing.T) {
	message := json.RawMessage(`{"id":"a","role":"assistant","content":[null,{"type":"text","id":"c"},{"type":"tool-call","id":"\u0063"}]}`)
	found, err := HasToolCall(message, "c")
	isTrue(t, found && err == nil, err)
	found, err = HasToolCall(message, "C")
	isTrue(t, !found && err == nil, err)
	for _, raw := range []string{``, `[]`, `{"role":"assistant","content":[]}`, `{"id":"a","role":"user","content":[]}`, `{"id":"a","role":"assistant"}`} {
		_, err := HasToolCall(json.RawMessage(raw), "c")
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
		if _, _, _, err := DecodeDispatch(Event{Type: TypeDispatch, Data: data}); err != nil {
			fatalUnlessTyped(t, err)
		}
		if _, err := HasToolCall(data, "c"); err != nil {
			fatalUnlessTyped(t, err)
		}
	})
}
