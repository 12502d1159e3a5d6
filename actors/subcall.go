package actors

import (
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// A sub-call is a question that a program asks: code that runs inside of a tool
// call of its agent. To people and to its wait it is a question like any other.
// Only its records differ: tool/ptc-dispatch-start stands where a tool/call
// does, tool/ptc-dispatch where its result does, and the projection knows of it
// from its pending result on, so what it asks is kept here until then.

// checkSubCall holds the ids of a sub-call against each other. The program that
// makes it is its agent's: whether that still runs is not the session's to know.
func checkSubCall(req *messages.AskRequest) *messages.Error {
	parent, root := req.GetParentCallId(), req.GetRootCallId()
	switch {
	case parent == "" && root == "":
		return nil
	case parent == "":
		return messages.Refuse(messages.BadRequest, "root_call_id is %q without a parent_call_id; name the call whose code asks", root)
	}
	for field, id := range map2("parent_call_id", parent, "root_call_id", subCall(req).RootCallID) {
		if err := messages.CheckID(field, id); err != nil {
			return err
		}
	}
	if of, ok := sessionlog.ParentOf(CallID(req)); !ok || of != parent {
		return messages.Refuse(messages.BadRequest, "call_id is %q; a sub-call of %q is called %q with its number, from 1, for n", CallID(req), parent, parent+":ptc:n")
	}
	for at := parent; root != "" && at != root; {
		of, ok := sessionlog.ParentOf(at)
		if !ok {
			return messages.Refuse(messages.BadRequest, "call %q does not descend from root_call_id %q", parent, root)
		}
		at = of
	}
	return nil
}

// subCall is the call that a request makes from a program.
func subCall(req *messages.AskRequest) sessionlog.SubCall {
	root := req.GetRootCallId()
	if root == "" {
		root = sessionlog.RootOf(req.GetParentCallId())
	}
	return sessionlog.SubCall{RootCallID: root, ParentCallID: req.GetParentCallId(), SubCallID: CallID(req),
		Arguments: sessionlog.ArgumentsValue(req.GetArguments())}
}

// startSubCall folds that a sub-call begins. Until it has its parley/wait it is
// no call of ours, and takes no other's place.
func (f *fold) startSubCall(ev sessionlog.Event) {
	sub, name, err := sessionlog.DecodeSubCall(ev)
	if err != nil || name != sessionlog.ToolName {
		return
	}
	if i := f.index(sub.SubCallID); i >= 0 && (f.calls[i].active || f.calls[i].wait.recorded()) {
		return
	}
	asks, questions, ids := fingerprint(string(sub.Arguments))
	f.put(call{id: sub.SubCallID, seq: ev.Seq, nested: true, asks: asks, wait: &wait{ids: ids, questions: questions, deadline: -1}})
}

// endSubCall folds what a sub-call came to. entered: it can be answered late
// from now on, under the place where it began, so that an answer to its row
// while it was open is still one to it.
func (f *fold) endSubCall(ev sessionlog.Event, entered bool) {
	sub, name, err := sessionlog.DecodeSubCall(ev)
	if err != nil || name != sessionlog.ToolName {
		return
	}
	i := f.index(sub.SubCallID)
	open := i >= 0 && f.calls[i].nested && f.calls[i].wait != nil
	switch {
	case entered:
		asks, _, _ := fingerprint(string(sub.Arguments))
		c := call{id: sub.SubCallID, seq: ev.Seq, nested: true, asks: asks}
		if open && f.calls[i].asks == asks {
			c.seq = f.calls[i].seq
		}
		f.put(c)
		f.look(c.id)
	case open:
		f.change(sub.SubCallID, func(c *call) { c.wait = nil })
	}
}

// asksOf is the fingerprint that the call of a request gets.
func asksOf(req *messages.AskRequest) uint64 {
	text := req.GetArguments()
	if req.GetParentCallId() != "" {
		text = string(subCall(req).Arguments)
	}
	asks, _, _ := fingerprint(text)
	return asks
}

// result adds what a call came to, as its log has it.
func (b *batch) result(c call, text string) {
	if c.nested {
		b.add(b.subCall(c).Result(text, false, "", ""))
		return
	}
	b.add(sessionlog.ToolResult(c.wait.turn, c.wait.step, c.id, text, false, "", "", c.seq, resultID(c.id, b.f.next)))
}

// failure adds a failure as the model reads it. An empty code is a plain error.
func (b *batch) failure(c call, text, code string) {
	name := ""
	switch messages.Code(code) {
	case "":
	case messages.InvalidArgs:
		name = "ToolArgsError"
	default:
		name = "UserQuestionError"
	}
	text = "Error: " + text
	if c.nested {
		b.add(b.subCall(c).Result(text, true, name, code))
		return
	}
	b.add(sessionlog.ToolResult(c.wait.turn, c.wait.step, c.id, text, true, name, code, c.seq, resultID(c.id, c.seq)))
}

// interrupt adds the repair of the open turn. A sub-call is pending then, as
// far as it can be answered late.
func (b *batch) interrupt(lastTime int64) {
	for _, c := range b.f.openCalls() {
		if c.nested && c.wait.legacy {
			b.add(b.subCall(c).Unknown().At(b.f.next, lastTime))
		}
	}
	b.add(b.f.progress.RepairWithSubCalls(sessionlog.CauseInterrupted, b.f.next, lastTime)...)
}

// subCall is the record of an open sub-call.
func (b *batch) subCall(c call) sessionlog.SubCall {
	sub, ok := b.f.progress.SubCall(c.id)
	if !ok {
		panic("actors: the open sub-call " + c.id + " has not begun")
	}
	return sub
}
