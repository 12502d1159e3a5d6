package sessionlog

import (
	"fmt"
)

// Upgrade returns an event of a v0 log in the shape that v0 came to have, in which every rule of this package reads
// it: results, assistant and user messages that were no messages yet, turns with a trigger, ends with their facts
// beside the kind, and steering messages (section K of the log's rules). A message without an id gets one that is the
// same on every load. An event of no older shape, or of another generation, is returned as it is; so is one that fits
// no shape at all, for the surface to judge. The stored event stays the truth: an upgraded one is never written.
func Upgrade(h Header, ev Event) Event {
	ev, _ = upgrade(h, ev)
	return ev
}

// UpgradeAll is Upgrade for a whole log. The slice is the one it was given when nothing in it is of an older shape.
func UpgradeAll(h Header, events []Event) []Event {
	out, copied := events, false
	for i, ev := range events {
		upgraded, changed := upgrade(h, ev)
		if !changed {
			continue
		}
		if !copied {
			out, copied = append([]Event(nil), events...), true
		}
		out[i] = upgraded
	}
	return out
}

func upgrade(h Header, ev Event) (_ Event, changed bool) {
	if h.Version != V0 {
		return ev, false
	}
	data, typ := value(ev.Data), ev.Type
	var upgraded []byte
	id := func() string { return fmt.Sprintf("legacy-message:%s:%d", h.ID, ev.Seq) }
	switch typ {
	case TypeUserMessage:
		upgraded = upgradeUser(data, id)
	case typeSteeringMessage:
		typ, upgraded = TypeUserMessage, upgradeSteering(data, id)
	case TypeAssistantMessage:
		upgraded = upgradeAssistant(data, id)
	case TypeToolResult:
		upgraded = upgradeResult(data, id)
	case TypeTurnStart:
		upgraded = without(data, "trigger")
	case TypeTurnEnd:
		upgraded = upgradeEnd(data)
	}
	if upgraded == nil {
		return ev, false
	}
	ev.Type, ev.Data, ev.line, ev.row = typ, upgraded, nil, nil
	return ev, true
}

// upgradeUser gives a user message its role and id.
func upgradeUser(data value, id func() string) []byte {
	if !data.isRecord() || data.get("id") != nil && data.get("role") != nil {
		return nil
	}
	return completed(data, "user", id)
}

// upgradeSteering makes a user message of what was steered into a step.
func upgradeSteering(data value, id func() string) []byte {
	message := data.get("message")
	if !message.isRecord() {
		message = data
		for _, key := range []string{"turn", "step"} {
			if rest := without(message, key); rest != nil {
				message = rest
			}
		}
	}
	if !message.isRecord() {
		return nil
	}
	return completed(message, "user", id)
}

// completed copies a message and adds role and id, where they are missing.
func completed(message value, role string, id func() string) []byte {
	d := copyMembers(make([]byte, 0, len(message)+96), message, nil)
	if message.get("role") == nil {
		d = appendKey(d, "role")
		d = appendString(d, role)
	}
	if message.get("id") == nil {
		d = appendKey(d, "id")
		d = appendString(d, id())
	}
	return append(d, '}')
}

// upgradeAssistant makes a message of the content that stood in the data, and its source of the provenance.
func upgradeAssistant(data value, id func() string) []byte {
	if message := data.get("message"); message != nil || data.get("content") == nil {
		return upgradeInner(data, message, "assistant", id)
	}
	source := appendString([]byte(`{"kind":`), "model")
	for k, v := range data.get("provenance").members {
		if !k.is("kind") {
			source = append(append(append(append(source, ','), k...), ':'), v...)
		}
	}
	return copyMembers(nil, data, func(d []byte, key string, v value) ([]byte, bool) {
		switch key {
		case "content":
			d = append(append(appendKey(d, "message"), `{"role":"assistant","content":`...), v...)
			d = append(append(append(d, `,"source":`...), source...), `},"id":`...)
			return append(appendString(d, id()), '}'), true
		case "provenance":
			return d, true
		}
		return d, false
	}, '}')
}

// upgradeResult makes a message of one tool-result block of the facts that stood in the data.
func upgradeResult(data value, id func() string) []byte {
	message, callID := data.get("message"), data.get("callId")
	if message != nil || !callID.isString() {
		return upgradeInner(data, message, "user", id)
	}
	content, isError := data.get("content"), data.get("isError")
	if content == nil {
		content = value("[]")
	}
	if isError == nil {
		isError = value("false")
	}
	return copyMembers(nil, data, func(d []byte, key string, _ value) ([]byte, bool) {
		switch key {
		case "callId":
			d = append(append(appendKey(d, "message"), `{"source":{"kind":"tool","callId":`...), callID...)
			d = append(append(d, `},"content":[{"type":"tool-result","toolCallId":`...), callID...)
			d = append(append(d, `,"content":`...), content...)
			d = append(append(d, `,"isError":`...), isError...)
			d = appendString(append(d, `}],"role":"user","id":`...), id())
			return append(d, '}'), true
		case "content", "isError":
			return d, true
		}
		return d, false
	}, '}')
}

// upgradeInner gives an id to a message that has none.
func upgradeInner(data, message value, role string, id func() string) []byte {
	if !message.isRecord() || message.get("id") != nil {
		return nil
	}
	return copyMembers(nil, data, func(d []byte, key string, _ value) ([]byte, bool) {
		if key != "message" {
			return d, false
		}
		return append(appendKey(d, "message"), completed(message, role, id)...), true
	}, '}')
}

// upgradeEnd reads why a turn ended: a disposal was a kind of its own, an abort did not say who had caused it, and the
// facts of an error stood beside its kind.
func upgradeEnd(data value) []byte {
	reason := data.get("reason")
	var upgraded []byte
	switch {
	case reason.get("kind").is("disposed"):
		upgraded = []byte(`{"kind":"aborted","reason":{"kind":"disposed"}}`)
	case reason.get("kind").is("aborted") && !reason.get("reason").isRecord():
		upgraded = []byte(`{"kind":"aborted","reason":{"kind":"legacy"}}`)
	case reason.get("kind").is("error") && !reason.get("error").isRecord():
		facts := without(reason, "kind")
		upgraded = append(append([]byte(`{"kind":"error","error":`), facts...), '}')
	default:
		return nil
	}
	return copyMembers(nil, data, func(d []byte, key string, _ value) ([]byte, bool) {
		if key != "reason" {
			return d, false
		}
		return append(appendKey(d, "reason"), upgraded...), true
	}, '}')
}

// without returns a record without a key, nil if it has none.
func without(rec value, key string) value {
	if rec.get(key) == nil {
		return nil
	}
	return copyMembers(nil, rec, func(d []byte, k string, _ value) ([]byte, bool) { return d, k == key }, '}')
}

// copyMembers writes a record's members in their order, except those that replace has written in its own way or left
// out; end closes the record, unless more is to follow. Of a repeated key the last value counts, at its first place.
func copyMembers(d []byte, rec value, replace func(d []byte, key string, v value) ([]byte, bool), end ...byte) []byte {
	d = append(d, '{')
	last := rec.lastMembers()
	for k := range rec.members {
		key, _ := k.str()
		v, fresh := last[key]
		if !fresh {
			continue
		}
		delete(last, key)
		if replace != nil {
			var done bool
			if d, done = replace(d, key, v); done {
				continue
			}
		}
		d = append(appendKey(d, key), v...)
	}
	return append(d, end...)
}

// appendKey appends the key of the next member to a record that is being written.
func appendKey(d []byte, key string) []byte {
	if d[len(d)-1] != '{' {
		d = append(d, ',')
	}
	return append(appendString(d, key), ':')
}
