package sessionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Target names one of the two lists of the inbox (L-060).
type Target string

// The two lists.
const (
	NextTurn Target = "next-turn" // opens a turn of its own, one per turn
	NextStep Target = "next-step" // joins the nearest step, all at once
)

// OutcomeCanceled is the only outcome a splice can have: the message was withdrawn, not claimed (L-062).
const OutcomeCanceled = "canceled"

// KindReply is the source kind of a late answer.
const KindReply = "user-question-reply"

// Message is a user-role message that waits for admission. Raw is the truth.
type Message struct {
	ID      string
	ReplyTo string          // source.callId when source.kind is user-question-reply, else empty
	Raw     json.RawMessage // compact; read-only
}

// ParseMessage reads a message record with a string id. The result shares no memory with raw. The error says what is wrong.
func ParseMessage(raw json.RawMessage) (Message, error) {
	v, ok := parse(raw)
	if !ok || !v.isRecord() {
		return Message{}, errors.New("a message must be a JSON record")
	}
	return messageOf(v)
}

func messageOf(v value) (Message, error) {
	var id, source value
	for k, val := range v.members {
		switch {
		case k.is("id"):
			id = val
		case k.is("source"):
			source = val
		}
	}
	m := Message{}
	var ok bool
	if m.ID, ok = id.str(); !ok || !v.isRecord() {
		return Message{}, errors.New("a message must be a record with a string id")
	}
	if source.get("kind").is(KindReply) {
		m.ReplyTo, _ = source.get("callId").str()
	}
	m.Raw = appendCompact(make([]byte, 0, len(v)), v)
	return m, nil
}

// Splice is one change of one list: RemovedCount messages leave at Start, Inserted take their place (L-060).
type Splice struct {
	Target              Target
	Start, RemovedCount int // clamped to the list it was made for (L-064)
	Inserted            []Message
	Outcome             string // OutcomeCanceled, or empty for a claim and a pure insertion
}

// Event returns the splice as agent/inbox/spliced, not yet stamped: removedCount only when not 0, outcome only when set (L-060).
func (s Splice) Event() Event {
	d := appendString([]byte(`{"target":`), string(s.Target))
	d = strconv.AppendInt(append(d, `,"start":`...), int64(s.Start), 10)
	if s.RemovedCount != 0 {
		d = strconv.AppendInt(append(d, `,"removedCount":`...), int64(s.RemovedCount), 10)
	}
	d = append(d, `,"inserted":[`...)
	for i, m := range s.Inserted {
		if i > 0 {
			d = append(d, ',')
		}
		d = append(d, m.Raw...)
	}
	d = append(d, ']')
	d = appendField(d, "outcome", s.Outcome)
	return Event{Type: TypeInboxSpliced, Data: append(d, '}')}
}

// ReadSplice reads the data of an agent/inbox/spliced event. The error says which field is wrong.
func ReadSplice(data json.RawMessage) (Splice, error) {
	v, ok := parse(data)
	if !ok || !v.isRecord() {
		return Splice{}, errors.New("the splice is not a JSON record")
	}
	target, _ := v.get("target").str()
	s := Splice{Target: Target(target)}
	if s.Target != NextTurn && s.Target != NextStep {
		return Splice{}, errors.New("target must be next-turn or next-step")
	}
	start, ok := v.get("start").count()
	if !ok || start > math.MaxInt32 {
		return Splice{}, errors.New("start must be a position")
	}
	var removed int64
	if count := v.get("removedCount"); count != nil {
		if removed, ok = count.count(); !ok || removed > math.MaxInt32 {
			return Splice{}, errors.New("removedCount must be a count")
		}
	}
	s.Start, s.RemovedCount = int(start), int(removed)
	inserted := v.get("inserted")
	if !inserted.isList() {
		return Splice{}, errors.New("inserted must be a list")
	}
	for el := range inserted.elements {
		m, err := messageOf(el)
		if err != nil {
			return Splice{}, err
		}
		s.Inserted = append(s.Inserted, m)
	}
	if outcome := v.get("outcome"); outcome != nil {
		if !outcome.is(OutcomeCanceled) {
			return Splice{}, errors.New("outcome can only be canceled")
		}
		s.Outcome = OutcomeCanceled
	}
	return s, nil
}

// Lists is the inbox: the messages not yet admitted. It is a value; nothing here changes the receiver or its slices,
// and the slices must not be changed by anybody else.
type Lists struct{ NextTurn, NextStep []Message }

// Fold takes one event in log order: agent/inbox/spliced is applied, everything else ignored (L-065). Inherited events
// are the caller's to skip (L-083). A splice that does not fit, or a duplicate id, is a *CorruptError.
func (l Lists) Fold(ev Event) (Lists, error) {
	if ev.Type != TypeInboxSpliced {
		return l, nil
	}
	s, err := ReadSplice(ev.Data)
	if err == nil {
		var next Lists
		if next, err = l.Apply(s); err == nil {
			return next, nil
		}
	}
	return l, corruptAt(ev.Seq, "the recorded inbox splice cannot be applied: %v", err)
}

// Apply returns the lists after the splice, which must fit exactly. A duplicate id is a *DuplicateError (L-063).
func (l Lists) Apply(s Splice) (Lists, error) {
	list := l.list(s.Target)
	if s.Start < 0 || s.RemovedCount < 0 || s.Start > len(list) || s.RemovedCount > len(list)-s.Start {
		return l, fmt.Errorf("start %d and removedCount %d do not fit the %s list of %d messages", s.Start, s.RemovedCount, s.Target, len(list))
	}
	rest := l.with(s.Target, slices.Concat(list[:s.Start], list[s.Start+s.RemovedCount:]))
	for i, m := range s.Inserted {
		if where, _, found := rest.Find(m.ID); found {
			return l, &DuplicateError{ID: m.ID, Target: where}
		}
		if slices.ContainsFunc(s.Inserted[:i], func(o Message) bool { return o.ID == m.ID }) {
			return l, &DuplicateError{ID: m.ID, Target: s.Target}
		}
	}
	return l.with(s.Target, slices.Concat(list[:s.Start], s.Inserted, list[s.Start+s.RemovedCount:])), nil
}

// Removed returns the messages that the splice takes out of these lists.
func (l Lists) Removed(s Splice) []Message {
	return slices.Clone(l.list(s.Target)[s.Start : s.Start+s.RemovedCount])
}

// Append plans an addition at the end of a list (L-067). An id that is already pending is a *DuplicateError (L-063).
func (l Lists) Append(t Target, m Message) (Splice, error) {
	return l.checked(Splice{Target: t, Start: len(l.list(t)), Inserted: []Message{m}})
}

// Prepend plans an addition at the front of a list, with the errors of Append.
func (l Lists) Prepend(t Target, m Message) (Splice, error) {
	return l.checked(Splice{Target: t, Inserted: []Message{m}})
}

// Claim plans what a step boundary takes (L-061): all of next-step and then, only for NextTurn, which is the first step
// of a turn, one message of next-turn. Pure deletions, no outcome; taking nothing plans nothing.
func (l Lists) Claim(t Target) []Splice {
	var plan []Splice
	if n := len(l.NextStep); n > 0 {
		plan = append(plan, Splice{Target: NextStep, RemovedCount: n})
	}
	if t == NextTurn && len(l.NextTurn) > 0 {
		plan = append(plan, Splice{Target: NextTurn, RemovedCount: 1})
	}
	return plan
}

// Take plans the pure deletion of exactly these messages, one splice each, whose positions are right when they are
// applied in order, and returns them in the order of ids. All or none: an id that is not pending, or named twice, is
// a *MissingError.
func (l Lists) Take(ids ...string) ([]Splice, []Message, error) {
	var plan []Splice
	var taken []Message
	for _, id := range ids {
		t, i, m, found := l.position(id)
		if !found {
			return nil, nil, &MissingError{ID: id}
		}
		plan = append(plan, Splice{Target: t, Start: i, RemovedCount: 1})
		taken = append(taken, m)
		l = l.with(t, slices.Concat(l.list(t)[:i], l.list(t)[i+1:]))
	}
	return plan, taken, nil
}

// Remove plans the withdrawal of one message (L-062); false when it is not pending.
func (l Lists) Remove(id string) (Splice, Message, bool) {
	t, i, m, found := l.position(id)
	if !found {
		return Splice{}, Message{}, false
	}
	return Splice{Target: t, Start: i, RemovedCount: 1, Outcome: OutcomeCanceled}, m, true
}

// Replace plans one splice that withdraws message id and puts m in its place (L-062); false when id is not pending.
// m may keep the id; any other pending id is a *DuplicateError (L-063).
func (l Lists) Replace(id string, m Message) (Splice, bool, error) {
	s, _, found := l.Remove(id)
	if !found {
		return Splice{}, false, nil
	}
	s.Inserted = []Message{m}
	s, err := l.checked(s)
	return s, err == nil, err
}

// Clear plans the withdrawal of everything: next-step first, then next-turn (L-062).
func (l Lists) Clear() []Splice {
	var plan []Splice
	for _, t := range []Target{NextStep, NextTurn} {
		if n := len(l.list(t)); n > 0 {
			plan = append(plan, Splice{Target: t, RemovedCount: n, Outcome: OutcomeCanceled})
		}
	}
	return plan
}

// Splice plans a general change by the usual list-splice conventions (L-064): fractions are cut, a negative start
// counts from the end, both numbers are clamped to the list. False when nothing would change. What it removes is
// withdrawn. A duplicate id is a *DuplicateError (L-063).
func (l Lists) Splice(t Target, start, deleteCount float64, inserted ...Message) (Splice, bool, error) {
	n := float64(len(l.list(t)))
	at := math.Trunc(start)
	if math.IsNaN(at) {
		at = 0
	}
	if at < 0 {
		at += n
	}
	at = min(max(at, 0), n)
	remove := math.Trunc(deleteCount)
	if math.IsNaN(remove) {
		remove = 0
	}
	remove = min(max(remove, 0), n-at)
	if remove == 0 && len(inserted) == 0 {
		return Splice{}, false, nil
	}
	s := Splice{Target: t, Start: int(at), RemovedCount: int(remove), Inserted: slices.Clone(inserted)}
	if s.RemovedCount > 0 {
		s.Outcome = OutcomeCanceled
	}
	s, err := l.checked(s)
	return s, err == nil, err
}

// Find looks a message up by id in both lists.
func (l Lists) Find(id string) (Target, Message, bool) {
	t, _, m, found := l.position(id)
	return t, m, found
}

// ReplyFor returns the queued reply of a question call, next-step first.
func (l Lists) ReplyFor(callID string) (Message, bool) {
	for _, list := range [][]Message{l.NextStep, l.NextTurn} {
		for _, m := range list {
			if m.ReplyTo == callID && callID != "" {
				return m, true
			}
		}
	}
	return Message{}, false
}

func (l Lists) checked(s Splice) (Splice, error) {
	if _, err := l.Apply(s); err != nil {
		return Splice{}, err
	}
	return s, nil
}

func (l Lists) list(t Target) []Message {
	if t == NextTurn {
		return l.NextTurn
	}
	return l.NextStep
}

func (l Lists) with(t Target, list []Message) Lists {
	if t == NextTurn {
		l.NextTurn = list
	} else {
		l.NextStep = list
	}
	return l
}

func (l Lists) position(id string) (Target, int, Message, bool) {
	for _, t := range []Target{NextStep, NextTurn} {
		for i, m := range l.list(t) {
			if m.ID == id {
				return t, i, m, true
			}
		}
	}
	return "", 0, Message{}, false
}
