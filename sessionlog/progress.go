package sessionlog

import (
	"encoding/json"
	"slices"
)

// PendingCall is a tool call of the open step that has no result yet (L-052).
type PendingCall struct {
	CallID  string
	Name    string // the tool
	Turn    int64  // turn and step of the assistant message that made the call
	Step    int64
	CallSeq int64 // seq of its tool/call; -1 when none was recorded
}

// Progress is where a session stands: its open turn and step, and what they still owe (L-050 to L-055).
// It is a value; Fold never changes the receiver.
//
//	turn/start ──▶ step/start ──▶ assistant/message: calls pending
//	                   ▲              │ tool/call, tool/result
//	                   └── step/end ◀─┘            step/end or a turn boundary forgets what is pending
type Progress struct {
	version            int
	turn, step         int64
	turnOpen, stepOpen bool
	pending            []PendingCall
	subCalls           []SubCall
}

// NewProgress starts at an empty log of generation version (V0 or V3), which decides what clears a call (L-055).
func NewProgress(version int) Progress { return Progress{version: version} }

// Turn returns the number of the last turn that ever started, 0 for none.
func (p Progress) Turn() int64 { return p.turn }

// TurnOpen says whether that turn has not ended (L-050).
func (p Progress) TurnOpen() bool { return p.turnOpen }

// Step returns the number of the last step that started in the last turn, 0 for none.
func (p Progress) Step() int64 { return p.step }

// StepOpen says whether that step has not ended.
func (p Progress) StepOpen() bool { return p.stepOpen }

// Pending returns the calls of the open step without a result, in block order (L-052). The slice is the caller's.
func (p Progress) Pending() []PendingCall { return slices.Clone(p.pending) }

// SubCalls returns the nested questions of the open step that were started and not recorded. The slice is the caller's.
func (p Progress) SubCalls() []SubCall { return slices.Clone(p.subCalls) }

// SubCall returns the one of them with this id.
func (p Progress) SubCall(id string) (SubCall, bool) {
	i := slices.IndexFunc(p.subCalls, func(s SubCall) bool { return s.SubCallID == id })
	if i < 0 {
		return SubCall{}, false
	}
	return p.subCalls[i], true
}

// Fold takes one event in log order. Types that do not matter, and odd payloads, change nothing.
func (p Progress) Fold(ev Event) Progress {
	if !p.turnOpen && ev.Type != TypeTurnStart {
		return p // outside a turn nothing is owed (L-050)
	}
	data := value(ev.Data)
	switch ev.Type {
	case TypeTurnStart:
		p.turn, _ = data.get("turn").whole()
		p.turnOpen, p.step = true, 0
		return p.leaveStep()
	case TypeTurnEnd:
		p.turnOpen = false
		return p.leaveStep()
	case TypeStepStart:
		p.step, _ = data.get("step").whole() // forgets nothing: only ends do (L-054)
		p.stepOpen = true
		return p
	case TypeStepEnd:
		return p.leaveStep()
	case TypeAssistantMessage:
		return p.foldAssistant(data)
	case TypeToolCall:
		return p.foldCall(ev.Seq, data)
	case TypeToolResult:
		return p.foldResult(ev, data)
	case TypeDispatchStart, typeCodeDispatchStart:
		return p.foldDispatchStart(data)
	case TypeDispatch, typeCodeDispatch:
		return p.foldDispatch(data)
	}
	return p
}

// leaveStep forgets what the step still owed: a step that closed without results is not repaired (L-054).
func (p Progress) leaveStep() Progress {
	p.stepOpen, p.pending, p.subCalls = false, nil, nil
	return p
}

func (p Progress) foldAssistant(data value) Progress {
	turn, _ := data.get("turn").whole()
	step, _ := data.get("step").whole()
	added := slices.Clone(p.pending)
	for block := range data.get("message").get("content").elements {
		if !block.get("type").is("tool-call") {
			continue
		}
		id, ok := block.get("id").str()
		if !ok || slices.ContainsFunc(added, func(c PendingCall) bool { return c.CallID == id }) {
			continue // an id asked twice counts once, at its first place
		}
		name, _ := block.get("name").str()
		added = append(added, PendingCall{CallID: id, Name: name, Turn: turn, Step: step, CallSeq: -1})
	}
	p.pending = added
	return p
}

func (p Progress) foldCall(seq int64, data value) Progress {
	if i := p.pendingIndex(data.get("callId")); i >= 0 {
		p.pending = slices.Clone(p.pending)
		p.pending[i].CallSeq = seq
	}
	return p
}

func (p Progress) foldResult(ev Event, data value) Progress {
	if len(p.pending) == 0 {
		return p
	}
	i := p.pendingIndex(data.get("message").get("source").get("callId"))
	if i < 0 {
		return p
	}
	if p.version == V3 { // v0 takes any result with the id (L-055)
		turn, _ := data.get("turn").whole()
		step, _ := data.get("step").whole()
		if string(ev.SurfaceOp) != `"append"` || turn != p.pending[i].Turn || step != p.pending[i].Step {
			return p
		}
	}
	p.pending = slices.Delete(slices.Clone(p.pending), i, i+1)
	return p
}

func (p Progress) pendingIndex(callID value) int {
	return slices.IndexFunc(p.pending, func(c PendingCall) bool { return callID.is(c.CallID) })
}

func (p Progress) foldDispatchStart(data value) Progress {
	sub, ok := data.get("subCallId").str()
	if !ok || !data.get("name").is(ToolName) {
		return p
	}
	root, _ := data.get("rootCallId").str()
	parent, _ := data.get("parentCallId").str()
	p = p.withoutSubCall(data)
	p.subCalls = append(p.subCalls, SubCall{RootCallID: root, ParentCallID: parent, SubCallID: sub,
		Arguments: slices.Clone(json.RawMessage(data.get("arguments")))})
	return p
}

func (p Progress) foldDispatch(data value) Progress {
	if len(p.subCalls) == 0 {
		return p
	}
	return p.withoutSubCall(data)
}

// withoutSubCall returns p with a private copy of the list.
func (p Progress) withoutSubCall(data value) Progress {
	id := data.get("subCallId")
	p.subCalls = slices.DeleteFunc(slices.Clone(p.subCalls), func(s SubCall) bool { return id.is(s.SubCallID) })
	return p
}
