package sessionlog

import (
	"fmt"
	"strconv"
)

// Types of our own events (architecture, "What is kept"). Each is ignorable, explains a fact that the format has no
// place for, and is written in the same append as that fact. The folds of the format skip them.
const (
	TypeRoot      = "parley/root"
	TypeWait      = "parley/wait"
	TypeSettled   = "parley/settled"
	TypeDelivered = "parley/delivered"
	TypeEffect    = "parley/effect"
	TypeCard      = "parley/card"
)

// RootRecord names the one agent instance that may speak for the session.
type RootRecord struct {
	RootID string `json:"rootId"`
	Owner  string `json:"owner,omitempty"` // the session that owns this agent; empty for a root
}

// Event returns the record as parley/root, not yet stamped.
func (r RootRecord) Event() Event {
	d := appendString([]byte(`{"rootId":`), r.RootID)
	return Event{Type: TypeRoot, Data: append(appendField(d, "owner", r.Owner), '}')}.Ours()
}

// DecodeRoot reads parley/root. The error is a *CorruptError.
func DecodeRoot(ev Event) (RootRecord, error) {
	f := fieldsOf(ev, TypeRoot)
	r := RootRecord{RootID: f.required("rootId"), Owner: f.text("owner")}
	return r, f.err
}

// WaitRecord says that a foreground wait was opened for a question call.
type WaitRecord struct {
	CallID     string `json:"callId"`
	Attempt    string `json:"attempt"`             // the asker's id of this attempt; a repeat names the same
	DeadlineMS *int64 `json:"deadlineMs"`          // wall clock, epoch milliseconds; nil is written as "never"
	Synthetic  bool   `json:"synthetic,omitempty"` // the turn and step around the call are ours, not the agent's
	Legacy     bool   `json:"legacy,omitempty"`    // a blocking ask, which has no late path

	// Of a call whose request may be lost on its way (architecture, "Doors").
	Receipt     bool   `json:"receipt,omitempty"`     // its result is undelivered until parley/delivered says otherwise
	WaitMaxMS   int64  `json:"waitMaxMs,omitempty"`   // how long its client lets a call run; 0: no limit
	Client      string `json:"client,omitempty"`      // the client's name
	Correlation string `json:"correlation,omitempty"` // the client's own id of the call
}

const never = `"never"`

// Event returns the record as parley/wait, not yet stamped.
func (r WaitRecord) Event() Event {
	d := appendString([]byte(`{"callId":`), r.CallID)
	d = appendString(append(d, `,"attempt":`...), r.Attempt)
	d = append(d, `,"deadlineMs":`...)
	if r.DeadlineMS == nil {
		d = append(d, never...)
	} else {
		d = strconv.AppendInt(d, *r.DeadlineMS, 10)
	}
	if r.Synthetic {
		d = append(d, `,"synthetic":true`...)
	}
	if r.Legacy {
		d = append(d, `,"legacy":true`...)
	}
	if r.Receipt {
		d = append(d, `,"receipt":true`...)
	}
	d = appendCount(d, "waitMaxMs", r.WaitMaxMS)
	d = appendField(d, "client", r.Client)
	d = appendField(d, "correlation", r.Correlation)
	return Event{Type: TypeWait, Data: append(d, '}')}.Ours()
}

// MarshalJSON writes the record as it stands in the log, so that there is one spelling of "never".
func (r WaitRecord) MarshalJSON() ([]byte, error) { return r.Event().Data, nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *WaitRecord) UnmarshalJSON(data []byte) (err error) {
	*r, err = DecodeWait(Event{Type: TypeWait, Seq: -1, Data: data})
	return err
}

// DecodeWait reads parley/wait. The error is a *CorruptError.
func DecodeWait(ev Event) (WaitRecord, error) {
	f := fieldsOf(ev, TypeWait)
	r := WaitRecord{
		CallID: f.required("callId"), Attempt: f.required("attempt"), Synthetic: f.flag("synthetic"), Legacy: f.flag("legacy"),
		Receipt: f.flag("receipt"), WaitMaxMS: f.count("waitMaxMs"), Client: f.text("client"), Correlation: f.text("correlation"),
	}
	if deadline := f.get("deadlineMs"); !deadline.is("never") {
		ms, ok := deadline.whole()
		if !ok {
			f.fail("deadlineMs must be whole epoch milliseconds or \"never\"")
		}
		r.DeadlineMS = &ms
	}
	return r, f.err
}

// SettledRecord says who settled a question call, and how.
type SettledRecord struct {
	CallID       string `json:"callId"`
	SubmissionID string `json:"submissionId,omitempty"` // the submission that won; a repeat of it gets the same outcome
	By           string `json:"by,omitempty"`           // the person or agent that acted
	Door         string `json:"door,omitempty"`         // the way in
	Outcome      string `json:"outcome"`                // what became of the call
	MessageID    string `json:"messageId,omitempty"`    // the tool result or the queued reply that carries the answer
	Reason       string `json:"reason,omitempty"`       // in words, for people
}

// Event returns the record as parley/settled, not yet stamped.
func (r SettledRecord) Event() Event {
	d := appendString([]byte(`{"callId":`), r.CallID)
	d = appendField(d, "submissionId", r.SubmissionID)
	d = appendField(d, "by", r.By)
	d = appendField(d, "door", r.Door)
	d = appendString(append(d, `,"outcome":`...), r.Outcome)
	d = appendField(d, "messageId", r.MessageID)
	d = appendField(d, "reason", r.Reason)
	return Event{Type: TypeSettled, Data: append(d, '}')}.Ours()
}

// DecodeSettled reads parley/settled. The error is a *CorruptError.
func DecodeSettled(ev Event) (SettledRecord, error) {
	f := fieldsOf(ev, TypeSettled)
	r := SettledRecord{
		CallID: f.required("callId"), SubmissionID: f.text("submissionId"), By: f.text("by"), Door: f.text("door"),
		Outcome: f.required("outcome"), MessageID: f.text("messageId"), Reason: f.text("reason"),
	}
	return r, f.err
}

// DeliveredRecord says what the agent's side was handed, or that it has arrived. What was handed out in a list is
// unacknowledged until its list, or its call, is.
type DeliveredRecord struct {
	List         int64    `json:"list,omitempty"`         // the number of a list that was handed out, from 1
	Shown        []string `json:"shown,omitempty"`        // the ids of the messages in that list
	Correlation  string   `json:"correlation,omitempty"`  // the client's own id of the call that got the list
	Acknowledged int64    `json:"acknowledged,omitempty"` // the number of a list that has arrived
	CallID       string   `json:"callId,omitempty"`       // a question call whose own result has arrived
	RepeatOf     string   `json:"repeatOf,omitempty"`     // the question call that this list is the result of a repeat of
}

// Event returns the record as parley/delivered, not yet stamped.
func (r DeliveredRecord) Event() Event {
	var d []byte
	d = appendCount(d, "list", r.List)
	if len(r.Shown) > 0 {
		d = append(d, `,"shown":[`...)
		for i, id := range r.Shown {
			if i > 0 {
				d = append(d, ',')
			}
			d = appendString(d, id)
		}
		d = append(d, ']')
	}
	d = appendField(d, "correlation", r.Correlation)
	d = appendCount(d, "acknowledged", r.Acknowledged)
	d = appendField(d, "callId", r.CallID)
	d = appendField(d, "repeatOf", r.RepeatOf)
	if len(d) > 0 {
		d[0] = '{' // instead of the first member's comma
	} else {
		d = append(d, '{')
	}
	return Event{Type: TypeDelivered, Data: append(d, '}')}.Ours()
}

// DecodeDelivered reads parley/delivered. The error is a *CorruptError.
func DecodeDelivered(ev Event) (DeliveredRecord, error) {
	f := fieldsOf(ev, TypeDelivered)
	r := DeliveredRecord{List: f.count("list"), Correlation: f.text("correlation"), Acknowledged: f.count("acknowledged"), CallID: f.text("callId"), RepeatOf: f.text("repeatOf")}
	shown := f.get("shown")
	if shown != nil && !shown.isList() {
		f.fail("shown must be a list")
		return r, f.err
	}
	for v := range shown.elements {
		id, ok := v.str()
		if !ok {
			f.fail("shown must hold strings")
		}
		r.Shown = append(r.Shown, id)
	}
	return r, f.err
}

// appendCount appends a further number, unless it is 0.
func appendCount(dst []byte, key string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(append(append(dst, `,"`...), key...), `":`...), n, 10)
}

// fields reads the data of one of our own events and keeps the first problem. Unknown fields are let through: a
// newer build may have added them.
type fields struct {
	data  value
	ev    Event
	err   error
	first [12]member
	n     int // members; what does not fit into first is only counted
}

type member struct{ key, val value }

func fieldsOf(ev Event, typ string) fields {
	f := fields{data: value(ev.Data), ev: ev}
	if ev.Type != typ {
		f.fail("it is not a " + typ + " event")
	} else if v, ok := parse(ev.Data); !ok || !v.isRecord() {
		f.fail("data must be a record")
	}
	for key, val := range f.data.members {
		if f.n < len(f.first) {
			f.first[f.n] = member{key, val}
		}
		f.n++
	}
	return f
}

// get is data.get in one walk over the record for all fields of it, as long as
// it has no more than ours have.
func (f *fields) get(key string) value {
	if f.n > len(f.first) {
		return f.data.get(key)
	}
	for i := f.n - 1; i >= 0; i-- {
		if f.first[i].key.is(key) {
			return f.first[i].val
		}
	}
	return nil
}

func (f *fields) fail(problem string) {
	if f.err == nil {
		f.err = corruptAt(f.ev.Seq, "%s: %s", f.ev.Type, problem)
	}
}

func (f *fields) required(key string) string {
	if f.get(key) == nil {
		f.fail(fmt.Sprintf("%s is missing", key))
	}
	return f.text(key)
}

func (f *fields) text(key string) string {
	v := f.get(key)
	s, ok := v.str()
	if v != nil && !ok {
		f.fail(fmt.Sprintf("%s must be a string", key))
	}
	return s
}

// count reads a whole number that is not negative; absent is 0.
func (f *fields) count(key string) int64 {
	v := f.get(key)
	if v == nil {
		return 0
	}
	n, ok := v.whole()
	if !ok || n < 0 {
		f.fail(fmt.Sprintf("%s must be a whole number", key))
		return 0
	}
	return n
}

func (f *fields) flag(key string) bool {
	v := f.get(key)
	if v != nil && !v.isTrue() && !v.isFalse() {
		f.fail(fmt.Sprintf("%s must be true or false", key))
	}
	return v.isTrue()
}
