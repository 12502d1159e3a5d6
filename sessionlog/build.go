package sessionlog

import (
	"encoding/json"
	"strconv"
)

// The events a runtime writes for itself, not yet stamped. They are written out
// by hand, for they are on the path of every question.

// TurnStart opens a turn.
func TurnStart(turn int64) Event {
	return Event{Type: TypeTurnStart, Data: append(strconv.AppendInt([]byte(`{"turn":`), turn, 10), '}')}
}

// Completed and Aborted are the reasons of a turn's end that are not a repair's.
const (
	Completed = `{"kind":"completed"}`
	Aborted   = `{"kind":"aborted","reason":{"kind":"user"}}`
)

// TurnEnd closes a turn; reason is Completed or Aborted.
func TurnEnd(turn int64, reason string) Event {
	d := strconv.AppendInt([]byte(`{"turn":`), turn, 10)
	d = append(append(d, `,"reason":`...), reason...)
	return Event{Type: TypeTurnEnd, Data: append(d, '}')}
}

// StepStart opens a step of a turn.
func StepStart(turn, step int64) Event {
	return Event{Type: TypeStepStart, Data: append(appendTurnStep(nil, turn, step), '}')}
}

// StepEnd closes a step of a turn.
func StepEnd(turn, step int64) Event {
	return Event{Type: TypeStepEnd, Data: append(appendTurnStep(nil, turn, step), '}')}
}

// AssistantMessage is a model's message in its step; message is its JSON record.
func AssistantMessage(turn, step int64, message json.RawMessage) Event {
	d := appendTurnStep(make([]byte, 0, len(message)+64), turn, step)
	d = appendCompact(append(d, `,"message":`...), value(message))
	return Event{Type: TypeAssistantMessage, Data: append(d, `,"stream":[]}`...)}.Appended()
}

// CallMessage is the assistant message that holds one tool call and nothing
// else, for agents that do not pass their own.
func CallMessage(id, callID, tool, arguments string) json.RawMessage {
	d := appendString(append(make([]byte, 0, 2*len(arguments)+256), `{"id":`...), id)
	d = append(d, `,"role":"assistant","source":{"kind":"model","provider":"parley","model":"agent"},"content":[{"type":"tool-call","id":`...)
	d = appendString(append(appendString(d, callID), `,"name":`...), tool)
	d = appendString(append(d, `,"arguments":`...), arguments)
	return append(d, `}]}`...)
}

// ToolCall records that a call was started, with its raw argument text.
func ToolCall(turn, step int64, callID, tool, arguments string) Event {
	d := appendTurnStep(make([]byte, 0, 2*len(arguments)+128), turn, step)
	d = appendString(append(d, `,"callId":`...), callID)
	d = appendString(append(d, `,"name":`...), tool)
	d = appendString(append(d, `,"arguments":`...), arguments)
	return Event{Type: TypeToolCall, Data: append(d, '}')}
}

// AnswerItem is one item of a batch.
type AnswerItem struct {
	ID       string
	Selected []string
	Custom   *string
}

// AnswersJSON writes a batch as given: order, texts and duplicates untouched.
func AnswersJSON(items []AnswerItem) json.RawMessage {
	d := []byte{'['}
	for i, a := range items {
		if i > 0 {
			d = append(d, ',')
		}
		d = append(appendString(append(d, `{"id":`...), a.ID), `,"selected":[`...)
		for j, label := range a.Selected {
			if j > 0 {
				d = append(d, ',')
			}
			d = appendString(d, label)
		}
		d = append(d, ']')
		if a.Custom != nil {
			d = appendString(append(d, `,"custom":`...), *a.Custom)
		}
		d = append(d, '}')
	}
	return append(d, ']')
}

// AnswerItems reads a batch that ParseAnswers or AnswersJSON wrote.
func AnswerItems(batch json.RawMessage) []AnswerItem {
	var out []AnswerItem
	for item := range value(batch).elements {
		var a AnswerItem
		a.ID, _ = item.get("id").str()
		for label := range item.get("selected").elements {
			s, _ := label.str()
			a.Selected = append(a.Selected, s)
		}
		if c := item.get("custom"); c != nil {
			s, _ := c.str()
			a.Custom = &s
		}
		out = append(out, a)
	}
	return out
}

// Member returns the raw value of a key of a JSON record, the last one of a
// repeated key; nil when text is not a record or has no such key.
func Member(text, key string) json.RawMessage {
	v, ok := parseText([]byte(text))
	if !ok || !v.isRecord() {
		return nil
	}
	return json.RawMessage(v.get(key))
}
