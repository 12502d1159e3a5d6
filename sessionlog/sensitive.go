package sessionlog

import "bytes"

// SensitiveCall returns the id of the question call that an event makes, if its answer is sensitive: the call, or one
// of its questions, says `sensitive: true` in its arguments. The text of such an answer belongs to the message that
// the model reads and to nothing else (promise 8).
func SensitiveCall(ev Event) (callID string, ok bool) {
	data := value(ev.Data)
	if !data.get("name").is(ToolName) {
		return "", false
	}
	var arguments value
	switch ev.Type {
	case TypeToolCall:
		text, _ := data.get("arguments").text()
		arguments, _ = parseText(text)
		callID, ok = data.get("callId").str()
	case TypeDispatchStart, TypeDispatch:
		arguments = data.get("arguments")
		callID, ok = data.get("subCallId").str()
	}
	return callID, ok && asksSensitive(arguments)
}

func asksSensitive(arguments value) bool {
	for key, val := range arguments.members {
		if saysSensitive(key, val) {
			return true
		}
		if !key.is("questions") {
			continue
		}
		for question := range val.elements {
			for key, val := range question.members {
				if saysSensitive(key, val) {
					return true
				}
			}
		}
	}
	return false
}

// saysSensitive looks at every member, and not at the last of that name alone: which of two somebody meant is unknown,
// and one of them says so.
func saysSensitive(key, val value) bool { return key.is("sensitive") && val.isTrue() }

// AnsweredCall returns the call whose answer an event carries to the model: the one of a tool/result, or the one that a
// late reply names.
func AnsweredCall(ev Event) (callID string, ok bool) {
	data := value(ev.Data)
	switch ev.Type {
	case TypeToolResult:
		message := data.get("message")
		if callID, ok = message.get("toolCallId").str(); !ok { // v0
			callID, ok = message.get("source").get("callId").str()
		}
	case TypeUserMessage:
		if source := data.get("source"); source.get("kind").is(KindReply) {
			callID, ok = source.get("callId").str()
		}
	}
	return callID, ok
}

// Concealed returns the seqs of the events that hold, or may hold, the text of a sensitive answer: all that name such a
// call after it was asked, but what asks and what only waits. It is for views of whole events (promise 8); nil when the
// log has no sensitive call.
func Concealed(events []Event) map[int64]bool {
	var calls []namedCall
	var out map[int64]bool
	for _, ev := range events {
		if id, ok := SensitiveCall(ev); ok {
			calls = append(calls, namedCall{id, appendString(nil, id)})
		}
		switch ev.Type {
		case TypeAssistantMessage, TypeToolCall, TypeDispatchStart, TypeWait:
			continue
		}
		for _, call := range calls {
			if call.in(value(ev.Data)) {
				if out == nil {
					out = map[int64]bool{}
				}
				out[ev.Seq] = true
			}
		}
	}
	return out
}

// namedCall is a call whose name is looked for.
type namedCall struct {
	id    string
	usual []byte // the id as a string token in its usual spelling
}

// in says whether a string of the data is the call's id, however it is spelled: an imported log may write any
// character as an escape.
func (c namedCall) in(data value) bool {
	if bytes.IndexByte(data, '\\') < 0 {
		return bytes.Contains(data, c.usual)
	}
	for token := range data.strings {
		if token.is(c.id) {
			return true
		}
	}
	return false
}
