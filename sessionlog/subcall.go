package sessionlog

import (
	"encoding/json"
	"strconv"
	"strings"
)

// SubCall is a call that a program makes: code that runs inside of another tool call, its parent. The root is the
// model's own call, which the outermost program runs in. There are two records of one, and neither is on the surface:
// tool/ptc-dispatch-start when it begins, and tool/ptc-dispatch with its result (section I of the log's rules).
type SubCall struct {
	RootCallID, ParentCallID, SubCallID string
	Arguments                           json.RawMessage // a JSON value, not text; read-only
}

const subCallMark = ":ptc:"

// SubCallID names the n-th call, from 1, that the program of a call makes.
func SubCallID(parent string, n int) string { return parent + subCallMark + strconv.Itoa(n) }

// ParentOf returns the call whose sub-call has this id: ids are `<parent>:ptc:<n>`, n from 1. ok is false for an id
// that no sub-call can have.
func ParentOf(subCallID string) (parent string, ok bool) {
	i := strings.LastIndex(subCallID, subCallMark)
	if i < 1 {
		return "", false
	}
	number := subCallID[i+len(subCallMark):]
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != number {
		return "", false
	}
	return subCallID[:i], true
}

// RootOf returns the outermost of the calls that an id descends from; of an id that is no sub-call's, itself.
func RootOf(callID string) string {
	for {
		parent, ok := ParentOf(callID)
		if !ok {
			return callID
		}
		callID = parent
	}
}

// ArgumentsValue is argument text as the records of a sub-call hold it: compact JSON. Text that is no JSON is kept as a
// string, which asks nothing.
func ArgumentsValue(text string) json.RawMessage {
	if v, ok := parse([]byte(text)); ok {
		return appendCompact(nil, v)
	}
	return appendString(nil, text)
}

// Start returns the record that the sub-call of the tool begins, not yet stamped.
func (s SubCall) Start() Event {
	return Event{Type: TypeDispatchStart, Data: append(s.record(), '}')}
}

// Result returns the record of what the sub-call came to, not yet stamped: one text block. errName and errCode go into
// `error` unless both are empty.
func (s SubCall) Result(text string, isError bool, errName, errCode string) Event {
	d := strconv.AppendBool(append(s.record(), `,"isError":`...), isError)
	d = appendString(append(d, `,"content":[{"type":"text","text":`...), text)
	d = append(d, `}]`...)
	return Event{Type: TypeDispatch, Data: append(appendError(d, errName, errCode), '}')}
}

// Unknown is the result of a sub-call that was cut short and has no late path.
func (s SubCall) Unknown() Event {
	return s.Result(outcomeUnknownText(CauseInterrupted), true, nameOutcomeUnknown, CodeOutcomeUnknown)
}

func (s SubCall) record() []byte {
	d := append(make([]byte, 0, len(s.Arguments)+256), `{"rootCallId":`...)
	d = appendString(d, s.RootCallID)
	d = appendString(append(d, `,"parentCallId":`...), s.ParentCallID)
	d = appendString(append(d, `,"subCallId":`...), s.SubCallID)
	d = appendString(append(d, `,"name":`...), ToolName)
	return append(append(d, `,"arguments":`...), s.Arguments...)
}

// DecodeSubCall reads the call and the tool's name of a tool/ptc-dispatch-start or a tool/ptc-dispatch. The error is a
// *CorruptError.
func DecodeSubCall(ev Event) (call SubCall, name string, err error) {
	typ := TypeDispatch
	if ev.Type == TypeDispatchStart {
		typ = TypeDispatchStart
	}
	f := fieldsOf(ev, typ)
	call = SubCall{RootCallID: f.text("rootCallId"), ParentCallID: f.text("parentCallId"), SubCallID: f.required("subCallId"),
		Arguments: json.RawMessage(f.get("arguments"))}
	return call, f.text("name"), f.err
}

// DecodeDispatch reads what the sub-call of a tool/ptc-dispatch came to. The error is a *CorruptError.
func DecodeDispatch(ev Event) (Result, error) {
	f := fieldsOf(ev, TypeDispatch)
	r := Result{CallID: f.required("subCallId"), Text: blockText(f.get("content")), IsError: f.get("isError").isTrue()}
	r.Code, _ = f.get("error").get("code").str()
	return r, f.err
}
