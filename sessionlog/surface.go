package sessionlog

import (
	"encoding/json"
	"slices"
)

// Class says what became of an event in the model's view (L-027).
type Class int

// The three classes of L-027.
const (
	LogOnly  Class = iota // never was on the surface
	Current               // on the surface after the whole log
	Shadowed              // was on the surface and removed by a replacement
)

// String returns the name of the class as queries show it.
func (c Class) String() string {
	return [...]string{"log-only", "current", "shadowed"}[c]
}

// Replacement is one folded replace operation (L-021).
type Replacement struct {
	Seq      int64   // the event that stands in place of the range
	Start    int64   // seq of the first node of the range
	End      int64   // seq of the last node, inclusive
	Shadowed []int64 // the nodes it removed, in surface order
}

// SurfaceView is the fold of a whole log into what the model sees (L-020 to L-028).
type SurfaceView struct {
	Nodes        []int64           // seqs in surface order, which need not be ascending (L-022)
	Replacements []Replacement     // in log order
	Messages     []json.RawMessage // the derived messages in surface order (L-026); share memory with the events
	classes      []Class
}

// Class classifies the event at seq (L-027). A seq outside the log is LogOnly.
func (v SurfaceView) Class(seq int64) Class {
	if seq < 0 || seq >= int64(len(v.classes)) {
		return LogOnly
	}
	return v.classes[seq]
}

// Surface folds the log of generation version (V0 or V3). One violation of L-011 or L-020 to L-025 makes the whole log
// unreadable (L-024); the error is a *CorruptError that names the event.
func Surface(version int, events []Event) (SurfaceView, error) {
	view := SurfaceView{classes: make([]Class, len(events))}
	fold := NewSurfaceFold(version)
	earlier := func(seq int64) (Event, error) { return events[seq], nil }
	for _, ev := range events {
		class, replaced, err := fold.Fold(ev, earlier)
		if err != nil {
			return SurfaceView{}, err
		}
		view.classes[ev.Seq] = class
		if replaced == nil {
			continue
		}
		for _, seq := range replaced.Shadowed {
			view.classes[seq] = Shadowed
		}
		view.Replacements = append(view.Replacements, *replaced)
	}
	view.Nodes = slices.AppendSeq([]int64{}, fold.Nodes)
	for _, seq := range view.Nodes {
		if msg := derivedMessage(events[seq]); msg != nil {
			view.Messages = append(view.Messages, json.RawMessage(msg))
		}
	}
	return view, nil
}

// checkSurfaceFields judges the event's own fields: who may carry them (L-020) and which citations are possible (L-023).
func checkSurfaceFields(version int, ev Event) error {
	if !isSurface(version, ev.Type) {
		if version == V3 && ev.Ignorable && !isKnown(version, ev.Type) {
			return nil // v3 ignores the surface fields of what it may ignore (L-014)
		}
		if ev.SurfaceOp != nil || ev.SourceEventSeqs != nil {
			return corruptAt(ev.Seq, "event %q makes no message and cannot carry surfaceOp or sourceEventSeqs", ev.Type)
		}
		return nil
	}
	if ev.SurfaceOp == nil {
		return corruptAt(ev.Seq, "event %q makes a message and needs a surfaceOp", ev.Type)
	}
	if ev.SourceEventSeqs == nil {
		return nil
	}
	if ev.Type == TypeAssistantMessage {
		if version == V3 {
			return corruptAt(ev.Seq, "an assistant/message of format v3 cannot carry sourceEventSeqs")
		}
	} else if len(ev.SourceEventSeqs) == 0 {
		return corruptAt(ev.Seq, "sourceEventSeqs is empty")
	}
	sorted := slices.Sorted(slices.Values(ev.SourceEventSeqs))
	for i, seq := range sorted {
		if seq < 0 || seq >= ev.Seq {
			return corruptAt(ev.Seq, "sourceEventSeqs cites %d, which is not an earlier event", seq)
		}
		if i > 0 && sorted[i-1] == seq {
			return corruptAt(ev.Seq, "sourceEventSeqs cites %d twice", seq)
		}
	}
	return nil
}

// replaceRange reads a record of exactly three keys (L-021).
func replaceRange(version int, op value) (start, end int64, ok bool) {
	startKey, endKey := "start", "end"
	if version == V3 {
		startKey, endKey = "startSeq", "endSeq"
	}
	var sawOp, sawStart, sawEnd bool
	for k, val := range op.members {
		switch {
		case k.is("op"):
			sawOp = val.is("replace")
		case k.is(startKey):
			start, sawStart = val.count()
		case k.is(endKey):
			end, sawEnd = val.count()
		default:
			return 0, 0, false
		}
	}
	return start, end, sawOp && sawStart && sawEnd
}

// sameInnerBlocks compares the content list of a v0 result, which is one tool-result block around the inner content.
func sameInnerBlocks(a, b value) bool {
	var left []value
	for el := range a.elements {
		left = append(left, el)
	}
	n := 0
	for el := range b.elements {
		if n >= len(left) || !left[n].isRecord() || !el.isRecord() {
			return false
		}
		same := sameMembers(left[n], el, func(key string, _, _ value) bool { return key == "content" })
		if !same {
			return false
		}
		n++
	}
	return n == len(left)
}

// derivedMessage returns the message that a surface event contributes, nil for none (L-026).
func derivedMessage(ev Event) value {
	data := value(ev.Data)
	switch ev.Type {
	case TypeUserMessage, typeSteeringMessage:
		return data
	case TypeToolResult:
		return data.get("message")
	}
	msg := data.get("message")
	if msg == nil && ev.Type != TypeAssistantMessage {
		msg = data // system and developer messages may be the payload itself
	}
	content := msg.get("content")
	if content.isList() && content.empty() || content.is("") {
		return nil // an assistant event without content only hosts the usage
	}
	return msg
}
