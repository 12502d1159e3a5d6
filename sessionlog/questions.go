package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
)

// Questions is the durable projection of a session's timed questions: which are open or continued, and which are
// settled with what. It is a value: Fold never changes what the receiver shows, so a value can be
// kept, compared and read from anywhere. Only its JSON is kept of a question, none of the event's bytes.
//
//	          readable tool/call under a timed header
//	                        │
//	                        ▼     pending result, outcome unknown
//	nested pending ──▶    open ─────────────────────────────────▶ continued
//	dispatch enters         │                                        │
//	as continued            ├── batch in an ordinary result ──▶ settled ◀── reply admitted
//	                        └── any other result ──▶ gone            (also to an open one)
type Questions struct {
	inherited int64 // events below this seq belong to the parent
	timed     bool  // the schema in force
	active    []activeCall
	settled   *settledCall
}

// activeCall keeps id and questions only; ids of the questions are read out of the JSON when they are asked for.
type activeCall struct {
	callID    string
	questions []byte
	continued bool
}

// settledCall is a list from the newest back, so that folds share what is older without copying it.
type settledCall struct {
	SettledCall
	before *settledCall
	count  int
}

// ActiveCall is one question call that can still be answered.
type ActiveCall struct {
	CallID    string          // WTF-8 if it holds an unpaired surrogate
	Questions json.RawMessage // compact JSON list by Q-138; read-only
	IDs       []string        // the question ids in order, repeated ones included
	Continued bool            // the tool call has returned pending; false while it is open
}

// SettledCall is one settlement.
type SettledCall struct {
	CallID  string
	Answers json.RawMessage // compact JSON list by Q-145, `[]` when the reply had no usable batch; read-only
}

// NewQuestions starts empty. Events with a seq below inherited are the parent's and are not folded.
func NewQuestions(inherited int64) Questions { return Questions{inherited: inherited} }

// Timed says whether the latest header carries the timed schema, so that calls are tracked.
func (q Questions) Timed() bool { return q.timed }

// Active returns the calls that can still be answered, in order. The slice is the caller's.
func (q Questions) Active() []ActiveCall {
	calls := make([]ActiveCall, len(q.active))
	for i, c := range q.active {
		calls[i] = c.view()
	}
	return calls
}

// Call returns the active call with this id.
func (q Questions) Call(callID string) (ActiveCall, bool) {
	for _, c := range q.active {
		if c.callID == callID {
			return c.view(), true
		}
	}
	return ActiveCall{}, false
}

func (c activeCall) view() ActiveCall {
	return ActiveCall{CallID: c.callID, Questions: c.questions, IDs: questionIDs(c.questions), Continued: c.continued}
}

// Settled returns the settlements in their order; a call id may occur twice. The slice is the caller's.
func (q Questions) Settled() []SettledCall {
	if q.settled == nil {
		return nil
	}
	calls := make([]SettledCall, q.settled.count)
	for s := q.settled; s != nil; s = s.before {
		calls[s.count-1] = s.SettledCall
	}
	return calls
}

// LastSettled returns the latest settlement of a call.
func (q Questions) LastSettled(callID string) (SettledCall, bool) {
	for s := q.settled; s != nil; s = s.before {
		if s.CallID == callID {
			return s.SettledCall, true
		}
	}
	return SettledCall{}, false
}

// Fold takes one event in log order. changed says whether the published view (Active and Settled) differs
// take next in any case, because the schema in force is not part of the view.
func (q Questions) Fold(ev Event) (next Questions, changed bool) {
	if ev.Seq < q.inherited {
		return q, false
	}
	data := value(ev.Data)
	switch ev.Type {
	case TypeRequestHeader:
		q.timed = hasTimedTool(data.get("header").get("tools"))
		return q, false
	case TypeToolCall:
		return q.foldCall(data)
	case TypeToolResult:
		return q.foldResult(data)
	case TypeDispatch:
		return q.foldDispatch(data)
	case TypeUserMessage:
		return q.foldReply(data)
	}
	return q, false
}

// hasTimedTool looks for one entry of the tool whose schema has a timeout property, whatever its value.
func hasTimedTool(tools value) bool {
	for tool := range tools.elements {
		if !tool.get("name").is(ToolName) {
			continue
		}
		for key := range tool.get("parameters").get("properties").members {
			if key.is("timeout") {
				return true
			}
		}
	}
	return false
}

// foldCall opens a readable call; an unreadable one changes nothing.
func (q Questions) foldCall(data value) (Questions, bool) {
	if !q.timed {
		return q, false
	}
	var name, callID, arguments value
	for k, v := range data.members {
		switch {
		case k.is("name"):
			name = v
		case k.is("callId"):
			callID = v
		case k.is("arguments"):
			arguments = v
		}
	}
	if !name.is(ToolName) || !callID.isString() {
		return q, false
	}
	text, ok := arguments.text()
	if !ok {
		return q, false
	}
	questions, ok := readArguments(text)
	if !ok {
		return q, false
	}
	return q.enter(callID, questions, false)
}

// foldDispatch lets a nested call enter as continued, under any header.
func (q Questions) foldDispatch(data value) (Questions, bool) {
	callID := data.get("subCallId")
	if !data.get("name").is(ToolName) || data.get("isError").isTrue() || !callID.isString() ||
		!firstText(data.get("content")).get("pending").isTrue() {
		return q, false
	}
	questions, ok := mapQuestions(data.get("arguments"))
	if !ok {
		return q, false
	}
	return q.enter(callID, questions, true)
}

// enter puts a call at the end, in place of an earlier one with its id.
func (q Questions) enter(id value, questions []byte, continued bool) (Questions, bool) {
	callID, _ := id.str()
	last := len(q.active) - 1
	i := q.index(callID)
	if i >= 0 && i == last && q.active[i].continued == continued && bytes.Equal(q.active[i].questions, questions) {
		return q, false
	}
	next := make([]activeCall, 0, len(q.active)+1)
	for j, c := range q.active {
		if j != i {
			next = append(next, c)
		}
	}
	q.active = append(next, activeCall{callID: callID, questions: bytes.Clone(questions), continued: continued})
	return q, true
}

// foldResult decides what a result means for its call, in the order of. A result that replaces an
// earlier one on the surface is folded like any other.
func (q Questions) foldResult(data value) (Questions, bool) {
	if len(q.active) == 0 {
		return q, false
	}
	var message, failure value
	for k, v := range data.members {
		switch {
		case k.is("message"):
			message = v
		case k.is("error"):
			failure = v
		}
	}
	var toolCallID, isError, content value
	for k, v := range message.members {
		switch {
		case k.is("toolCallId"):
			toolCallID = v
		case k.is("isError"):
			isError = v
		case k.is("content"):
			content = v
		}
	}
	i := slices.IndexFunc(q.active, func(c activeCall) bool { return toolCallID.is(c.callID) })
	if i < 0 {
		return q, false
	}
	payload := firstText(content)
	if payload.get("pending").isTrue() || failure.get("code").is(CodeOutcomeUnknown) {
		return q.resume(i)
	}
	if failure == nil && !isError.isTrue() {
		if answers, ok := mapAnswers(payload.get("answers")); ok {
			return q.settle(i, answers)
		}
	}
	return q.drop(i), true
}

// resume makes a call continued in its place; one that is stays as it is.
func (q Questions) resume(i int) (Questions, bool) {
	if q.active[i].continued {
		return q, false
	}
	q.active = slices.Clone(q.active)
	q.active[i].continued = true
	return q, true
}

// foldReply settles the call that the source names, open or continued; the text is never used to find it.
func (q Questions) foldReply(data value) (Questions, bool) {
	if len(q.active) == 0 {
		return q, false
	}
	var source, content value
	for k, v := range data.members {
		switch {
		case k.is("source"):
			source = v
		case k.is("content"):
			content = v
		}
	}
	if !source.get("kind").is(KindReply) {
		return q, false
	}
	callID := source.get("callId")
	i := slices.IndexFunc(q.active, func(c activeCall) bool { return callID.is(c.callID) })
	if i < 0 {
		return q, false
	}
	answers, ok := mapAnswers(firstText(content).get("answers"))
	if !ok {
		answers = []byte("[]")
	}
	return q.settle(i, answers)
}

func (q Questions) settle(i int, answers []byte) (Questions, bool) {
	call := SettledCall{CallID: q.active[i].callID, Answers: bytes.Clone(answers)}
	return q.drop(i).withSettled(call), true
}

func (q Questions) withSettled(call SettledCall) Questions {
	count := 1
	if q.settled != nil {
		count += q.settled.count
	}
	q.settled = &settledCall{SettledCall: call, before: q.settled, count: count}
	return q
}

func (q Questions) drop(i int) Questions {
	if len(q.active) == 1 {
		q.active = nil
		return q
	}
	q.active = slices.Concat(q.active[:i], q.active[i+1:])
	return q
}

func (q Questions) index(callID string) int {
	return slices.IndexFunc(q.active, func(c activeCall) bool { return c.callID == callID })
}

// firstText returns the JSON in the first block of type text, nil when there is none or it is not JSON. Later text
// blocks are never read.
func firstText(content value) value {
	for block := range content.elements {
		var typ, content value
		for k, v := range block.members {
			switch {
			case k.is("type"):
				typ = v
			case k.is("text"):
				content = v
			}
		}
		if !typ.is("text") {
			continue
		}
		text, ok := content.text()
		if !ok {
			return nil
		}
		payload, _ := parseText(text)
		return payload
	}
	return nil
}

// stateVersion is the version of the stored projection.
const stateVersion = 2

// State encodes the projection for a snapshot.
func (q Questions) State() json.RawMessage {
	d := strconv.AppendInt([]byte(`{"version":`), stateVersion, 10)
	d = strconv.AppendInt(append(d, `,"inheritedEventCount":`...), q.inherited, 10)
	d = strconv.AppendBool(append(d, `,"timed":`...), q.timed)
	d = append(d, `,"active":[`...)
	for i, c := range q.active {
		if i > 0 {
			d = append(d, ',')
		}
		d = appendString(append(d, `{"callId":`...), c.callID)
		d = append(append(d, `,"questions":`...), c.questions...)
		state := `,"state":"open"}`
		if c.continued {
			state = `,"state":"continued"}`
		}
		d = append(d, state...)
	}
	d = append(d, `],"settled":[`...)
	for i, s := range q.Settled() {
		if i > 0 {
			d = append(d, ',')
		}
		d = appendString(append(d, `{"callId":`...), s.CallID)
		d = append(append(append(d, `,"answers":`...), s.Answers...), '}')
	}
	return append(d, `]}`...)
}

var errState = errors.New("the stored question state cannot be used: rebuild it from the log")

// DecodeState reads a stored projection strictly: version 2, no unknown field, call ids that are not empty and
// unique among the active ones, at least one question each. On error rebuild the projection from the log.
func DecodeState(raw json.RawMessage) (Questions, error) {
	v, ok := parse(raw)
	if !ok || !v.hasExactly("version", "inheritedEventCount", "timed", "active", "settled") {
		return Questions{}, errState
	}
	version, _ := v.get("version").whole()
	inherited, ok := v.get("inheritedEventCount").count()
	timed := v.get("timed")
	active, settled := v.get("active"), v.get("settled")
	if version != stateVersion || !ok || !timed.isTrue() && !timed.isFalse() || !active.isList() || !settled.isList() {
		return Questions{}, errState
	}
	q := Questions{inherited: inherited, timed: timed.isTrue()}
	for el := range active.elements {
		c, ok := decodeActive(el)
		if !ok || q.index(c.callID) >= 0 {
			return Questions{}, errState
		}
		q.active = append(q.active, c)
	}
	for el := range settled.elements {
		callID, _ := el.get("callId").str()
		answers, ok := mapAnswers(el.get("answers"))
		if !ok || callID == "" || !el.hasExactly("callId", "answers") {
			return Questions{}, errState
		}
		q = q.withSettled(SettledCall{CallID: callID, Answers: bytes.Clone(answers)})
	}
	return q, nil
}

func decodeActive(el value) (activeCall, bool) {
	callID, _ := el.get("callId").str()
	state := el.get("state")
	questions, ok := checkStored(el.get("questions"))
	c := activeCall{callID: callID, questions: questions, continued: state.is("continued")}
	return c, ok && callID != "" && (c.continued || state.is("open")) && el.hasExactly("callId", "questions", "state")
}

// checkStored reads a stored question list: the shape of Q-138, with multiSelect in place of multi_select.
func checkStored(list value) ([]byte, bool) {
	if !list.isList() || list.empty() {
		return nil, false
	}
	renamed := []byte(`{"questions":[`)
	n := 0
	for item := range list.elements {
		if n++; n > 1 {
			renamed = append(renamed, ',')
		}
		renamed = append(renamed, '{')
		m := 0
		for k, v := range item.members {
			if m++; m > 1 {
				renamed = append(renamed, ',')
			}
			switch key, _ := k.str(); key {
			case "multiSelect":
				k = value(`"multi_select"`)
			case "id", "question", "header", "options":
			default:
				return nil, false
			}
			renamed = append(append(append(renamed, k...), ':'), v...)
		}
		renamed = append(renamed, '}')
	}
	questions, ok := mapQuestions(value(append(renamed, `]}`...)))
	return bytes.Clone(questions), ok
}

// hasExactly says whether a record has these keys and no other.
func (v value) hasExactly(keys ...string) bool {
	for k := range v.members {
		if !slices.ContainsFunc(keys, k.is) {
			return false
		}
	}
	for _, key := range keys {
		if v.get(key) == nil {
			return false
		}
	}
	return v.isRecord()
}
