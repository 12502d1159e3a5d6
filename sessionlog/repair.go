package sessionlog

import (
	"fmt"
	"strconv"
)

// Causes of a repair: a log that was cut short, or a fork cut inside an open turn (L-051, L-081).
const (
	CauseInterrupted = "interrupted"
	CauseForked      = "forked"
)

// Error names and codes of the results that repair writes (L-053). Only the first keeps a question answerable.
const (
	nameOutcomeUnknown = "ToolOutcomeUnknownError"
	CodeOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"
	nameNotStarted     = "ToolNotStartedError"
	CodeNotStarted     = "TOOL_NOT_STARTED"
)

// Repair returns the events that close an open turn, stamped from nextSeq on and all with lastTime, the time of the
// last event, so that two repairs of one log are equal (L-050, L-051, L-056): a result for every unanswered call, then
// step/end, then turn/end with the cause (CauseInterrupted or CauseForked) as its reason. Nil when no turn is open.
func (p Progress) Repair(cause string, nextSeq, lastTime int64) []Event {
	return p.repair(nil, cause, nextSeq, lastTime)
}

// RepairWithSubCalls is Repair that also ends the nested questions of the open step: each started ask_user_question
// without its record gets a tool/ptc-dispatch with the pending result, which the projection makes continued, so
// that it stays answerable. It goes beyond the reference, whose nested calls are lost. A nested call whose
// questions cannot be read gets none: nobody could answer it. v3 only; v0 has no such projection.
func (p Progress) RepairWithSubCalls(cause string, nextSeq, lastTime int64) []Event {
	var first []Event
	if p.turnOpen && p.version == V3 {
		for _, sub := range p.subCalls {
			if _, _, ok := ParseQuestions(sub.Arguments); ok {
				first = append(first, sub.Result(PendingText(sub.SubCallID), false, "", ""))
			}
		}
	}
	return p.repair(first, cause, nextSeq, lastTime)
}

func (p Progress) repair(events []Event, cause string, nextSeq, lastTime int64) []Event {
	if !p.turnOpen {
		return nil
	}
	for _, call := range p.pending {
		events = append(events, p.repairedResult(call, cause, nextSeq+int64(len(events))))
	}
	if p.stepOpen {
		events = append(events, rawEvent(TypeStepEnd, fmt.Sprintf(`{"turn":%d,"step":%d}`, p.turn, p.step)))
	}
	reason := appendString(nil, cause)
	events = append(events, rawEvent(TypeTurnEnd, fmt.Sprintf(`{"turn":%d,"reason":{"kind":%s}}`, p.turn, reason)))
	for i, ev := range events {
		events[i] = ev.At(nextSeq+int64(i), lastTime)
	}
	return events
}

func (p Progress) repairedResult(call PendingCall, cause string, seq int64) Event {
	name, code := nameOutcomeUnknown, CodeOutcomeUnknown
	text := outcomeUnknownText(cause)
	if call.CallSeq < 0 {
		name, code = nameNotStarted, CodeNotStarted
		text = cutShort(cause) + " before this call was started. It can simply be repeated."
	}
	id := fmt.Sprintf("%s-tool-result-%s-%d", cause, call.CallID, seq)
	if p.version == V0 {
		return toolResultV0(call, text, name, code, id)
	}
	return ToolResult(call.Turn, call.Step, call.CallID, text, true, name, code, call.CallSeq, id)
}

func cutShort(cause string) string {
	if cause == CauseForked {
		return "The session was forked"
	}
	return "The session was interrupted"
}

func outcomeUnknownText(cause string) string {
	return cutShort(cause) + " after this call was started and before its result was recorded: the outcome is unknown. Check what it did before you repeat it."
}

// ToolResult makes the v3 result of a tool call: one text block, appended to the surface, citing its tool/call unless
// callSeq is negative (section K). errName and errCode go into `error` unless both are empty; v3 wants isError then.
func ToolResult(turn, step int64, callID, text string, isError bool, errName, errCode string, callSeq int64, messageID string) Event {
	d := appendTurnStep(nil, turn, step)
	d = appendString(append(d, `,"message":{"id":`...), messageID)
	d = appendString(append(d, `,"role":"tool","toolCallId":`...), callID)
	d = strconv.AppendBool(append(d, `,"isError":`...), isError)
	d = appendString(append(d, `,"source":{"kind":"tool","callId":`...), callID)
	d = appendString(append(d, `},"content":[{"type":"text","text":`...), text)
	d = append(d, `}]}`...)
	return finishResult(d, errName, errCode, callSeq)
}

// toolResultV0 is the v0 shape: a user message around one tool-result block.
func toolResultV0(call PendingCall, text, errName, errCode, messageID string) Event {
	d := appendTurnStep(nil, call.Turn, call.Step)
	d = appendString(append(d, `,"message":{"id":`...), messageID)
	d = appendString(append(d, `,"role":"user","source":{"kind":"tool","callId":`...), call.CallID)
	d = appendString(append(d, `},"content":[{"type":"tool-result","toolCallId":`...), call.CallID)
	d = appendString(append(d, `,"isError":true,"content":[{"type":"text","text":`...), text)
	d = append(d, `}]}]}`...)
	return finishResult(d, errName, errCode, call.CallSeq)
}

func appendTurnStep(d []byte, turn, step int64) []byte {
	d = strconv.AppendInt(append(d, `{"turn":`...), turn, 10)
	return strconv.AppendInt(append(d, `,"step":`...), step, 10)
}

func finishResult(d []byte, errName, errCode string, callSeq int64) Event {
	ev := Event{Type: TypeToolResult, Data: append(appendError(d, errName, errCode), '}')}.Appended()
	if callSeq >= 0 {
		ev = ev.Citing(callSeq)
	}
	return ev
}

// appendError adds the `error` of a result, unless it has none.
func appendError(d []byte, name, code string) []byte {
	if name == "" && code == "" {
		return d
	}
	d = appendString(append(d, `,"error":{"name":`...), name)
	return append(appendString(append(d, `,"code":`...), code), '}')
}

// rawEvent makes an event from data that this package wrote itself, compact and valid.
func rawEvent(typ, data string) Event { return Event{Type: typ, Data: []byte(data)} }
