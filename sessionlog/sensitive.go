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
	if arguments.get("sensitive").isTrue() {
		return true
	}
	for question := range arguments.get("questions").elements {
		if question.get("sensitive").isTrue() {
			return true
		}
	}
	return false
}

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
	var names [][]byte
	var out map[int64]bool
	for _, ev := range events {
		if call, ok := SensitiveCall(ev); ok {
			names = append(names, appendString(nil, call))
		}
		switch ev.Type {
		case TypeAssistantMessage, TypeToolCall, TypeDispatchStart, TypeWait:
			continue
		}
		for _, name := range names {
			if bytes.Contains(ev.Data, name) {
				if out == nil {
					out = map[int64]bool{}
				}
				out[ev.Seq] = true
			}
		}
	}
	return out
}
