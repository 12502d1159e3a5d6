package sessionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func userMessage(id string) Event {
	return NewEvent(TypeUserMessage, json.RawMessage(`{"id":"`+id+`","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"hi"}]}`)).Appended()
}

func replacing(ev Event, version int, start, end int64, cites ...int64) Event {
	form := `{"op":"replace","start":%d,"end":%d}`
	if version == V3 {
		form = `{"op":"replace","startSeq":%d,"endSeq":%d}`
	}
	ev = ev.Citing(cites...)
	ev.SurfaceOp = json.RawMessage(fmt.Sprintf(form, start, end))
	return ev
}

func withOp(ev Event, op string) Event {
	ev.SurfaceOp = json.RawMessage(op)
	return ev
}

func resultText(text string) Event { return ToolResult(1, 1, "k", text, false, "", "", -1, "m") }

func resultTextV0(text, messageID string) Event {
	return NewEvent(TypeToolResult, json.RawMessage(`{"turn":1,"step":1,"message":{"id":"`+messageID+`","role":"user","source":{"kind":"tool","callId":"k"},`+
		`"content":[{"type":"tool-result","toolCallId":"k","content":[{"type":"text","text":"`+text+`"}],"isError":false}]}}`)).Appended()
}

// L-020, L-021, L-022, L-027: appends and replacements in both forms, and what becomes of every event.
func TestL021Surface(t *testing.T) {
	for _, version := range []int{V0, V3} {
		view, err := Surface(version, numbered(
			NewEvent(TypeTurnStart, map[string]int{"turn": 1}),
			userMessage("a"), userMessage("b"), userMessage("c"),
			replacing(userMessage("ab"), version, 1, 2, 2, 1, 0), // cites more than it must
			replacing(userMessage("x"), version, 4, 4, 4),        // replaces the replacement
		))
		noError(t, err, version)
		equal(t, []int64{5, 3}, view.Nodes)
		equal(t, []Replacement{{Seq: 4, Start: 1, End: 2, Shadowed: []int64{1, 2}}, {Seq: 5, Start: 4, End: 4, Shadowed: []int64{4}}}, view.Replacements)
		for seq, want := range []string{"log-only", "shadowed", "shadowed", "current", "shadowed", "current", "log-only"} {
			equal(t, want, view.Class(int64(seq)).String(), "L-027 seq ", seq)
		}
		equal(t, 2, len(view.Messages))
	}
	t.Run("L-022 the start may be the larger number", func(t *testing.T) {
		view, err := Surface(V3, numbered(userMessage("a"), userMessage("b"), replacing(userMessage("A"), V3, 0, 0, 0), replacing(userMessage("all"), V3, 2, 1, 2, 1)))
		noError(t, err)
		equal(t, []int64{3}, view.Nodes)
	})
	t.Run("L-028 append-origin events stay readable, shadowed or not", func(t *testing.T) {
		events := numbered(userMessage("a"), replacing(userMessage("A"), V3, 0, 0, 0))
		view, err := Surface(V3, events)
		noError(t, err)
		equal(t, Shadowed, view.Class(0))
		equal(t, `"append"`, string(events[0].SurfaceOp))
	})
}

// L-024: every violation makes the whole log unreadable.
func TestL024SurfaceViolations(t *testing.T) {
	a, b := userMessage("a"), userMessage("b")
	plain := NewEvent(TypeTurnStart, map[string]int{"turn": 1})
	assistant := NewEvent(TypeAssistantMessage, json.RawMessage(`{"turn":1,"step":1,"message":{"content":[]}}`)).Appended()
	emptyCitation := func(ev Event) Event { ev.SourceEventSeqs = []int64{}; return ev }
	for _, c := range []struct {
		name    string
		version int
		events  []Event
	}{
		{"L-020 a message without its marker", V3, []Event{withOp(a, "")}},
		{"L-020 a marker on a log-only event", V3, []Event{plain.Appended()}},
		{"L-020 a citation on a log-only event", V3, []Event{a, plain.Citing(0)}},
		{"L-020 a v3 system message in a v0 log", V0, []Event{NewEvent(TypeSystemMessage, nil).Appended()}},
		{"L-021 an unknown marker", V3, []Event{withOp(a, `"prepend"`)}},
		{"L-021 a null marker", V3, []Event{withOp(a, `null`)}},
		{"L-021 a fourth key", V3, []Event{a, withOp(b.Citing(0), `{"op":"replace","startSeq":0,"endSeq":0,"why":1}`)}},
		{"L-021 the v0 form in v3", V3, []Event{a, replacing(b, V0, 0, 0, 0)}},
		{"L-021 the v3 form in v0", V0, []Event{a, replacing(b, V3, 0, 0, 0)}},
		{"L-021 a missing end", V3, []Event{a, withOp(b.Citing(0), `{"op":"replace","startSeq":0}`)}},
		{"L-022 a start that is not on the surface", V3, []Event{plain, a, replacing(b, V3, 0, 1, 1)}},
		{"L-022 an end that was shadowed", V3, []Event{a, b, replacing(a, V3, 1, 1, 1), replacing(b, V3, 0, 1, 0, 1)}},
		{"L-022 a range that runs backwards", V3, []Event{a, b, replacing(a, V3, 1, 0, 0, 1)}},
		{"L-023 a citation of itself", V3, []Event{a, b.Citing(1)}},
		{"L-023 a repeated citation", V3, []Event{a, b.Citing(0, 0)}},
		{"L-023 an empty citation", V3, []Event{emptyCitation(a)}},
		{"L-023 a v3 assistant message cites nothing, not even an empty list", V3, []Event{emptyCitation(assistant)}},
		{"L-023 a missing citation of a shadowed node", V3, []Event{a, b, replacing(a, V3, 0, 1, 0)}},
		{"L-025 a result over a user message", V3, []Event{a, replacing(resultText("x"), V3, 0, 0, 0)}},
		{"L-025 a result over two nodes", V3, []Event{resultText("x"), resultText("y"), replacing(resultText("z"), V3, 0, 1, 0, 1)}},
		{"L-025 a result with another message id", V3, []Event{resultText("x"), replacing(ToolResult(1, 1, "k", "x", false, "", "", -1, "m2"), V3, 0, 0, 0)}},
		{"L-025 a result with another step", V3, []Event{resultText("x"), replacing(ToolResult(1, 2, "k", "x", false, "", "", -1, "m"), V3, 0, 0, 0)}},
		{"L-025 a result with another error flag", V3, []Event{resultText("x"), replacing(ToolResult(1, 1, "k", "x", true, "", "", -1, "m"), V3, 0, 0, 0)}},
		{"L-025 a result with a new error", V3, []Event{ToolResult(1, 1, "k", "x", true, "", "", -1, "m"), replacing(ToolResult(1, 1, "k", "x", true, "N", "C", -1, "m"), V3, 0, 0, 0)}},
		{"L-025 a v0 result with another message id", V0, []Event{resultTextV0("x", "m"), replacing(resultTextV0("y", "m2"), V0, 0, 0, 0)}},
		{"L-011 a gap", V3, []Event{a, b.At(5, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := make([]Event, len(c.events))
			for i, ev := range c.events {
				if ev.SurfaceOp != nil && len(ev.SurfaceOp) == 0 {
					ev.SurfaceOp = nil
				}
				if ev.Seq == 0 {
					ev = ev.At(int64(i), 0)
				}
				events[i] = ev
			}
			_, err := Surface(c.version, events)
			var corrupt *CorruptError
			isTrue(t, errors.As(err, &corrupt), err)
			equal(t, events[len(events)-1].Seq, corrupt.Seq, "the last event is the culprit: ", err)
			isTrue(t, ValidateEvents(c.version, events) != nil)
		})
	}
}

// L-023: what may be cited freely.
func TestL023Citations(t *testing.T) {
	plain := NewEvent(TypeTurnStart, map[string]int{"turn": 1})
	assistant := NewEvent(TypeAssistantMessage, json.RawMessage(`{"turn":1,"step":1,"message":{"content":[]}}`)).Appended()
	assistant.SourceEventSeqs = []int64{}
	noError(t, ValidateEvents(V0, numbered(assistant)), "L-023 a known empty stream in v0")
	noError(t, ValidateEvents(V3, numbered(plain, plain, userMessage("a").Citing(1, 0))), "any type, in any order")
}

// L-025: a result may be rewritten when only its content changes, whatever the order of its keys.
func TestL025RewritingAResult(t *testing.T) {
	reordered := NewEvent(TypeToolResult, json.RawMessage(`{"step":1.0,"message":{"content":[],"source":{"callId":"k","kind":"tool"},"isError":false,"toolCallId":"\u006b","role":"tool","id":"m"},"turn":1}`))
	view, err := Surface(V3, numbered(resultText("x"), replacing(resultText("y"), V3, 0, 0, 0), replacing(reordered, V3, 1, 1, 1)))
	noError(t, err)
	equal(t, []int64{2}, view.Nodes)
	_, err = Surface(V0, numbered(resultTextV0("x", "m"), replacing(resultTextV0("y", "m"), V0, 0, 0, 0)))
	noError(t, err)
	_, err = Surface(V3, numbered(resultText("x"), replacing(userMessage("u"), V3, 0, 0, 0)))
	noError(t, err, "L-025 a user message may replace anything")
}

// L-026: the message each event derives; empty ones derive none.
func TestL026DerivedMessages(t *testing.T) {
	message := func(typ, data string) Event { return NewEvent(typ, json.RawMessage(data)).Appended() }
	events := numbered(
		userMessage("u"),
		message(TypeAssistantMessage, `{"message":{"id":"a","content":[{"type":"text","text":"x"}]}}`),
		message(TypeAssistantMessage, `{"message":{"id":"only usage","content":[ ]},"usage":{}}`),
		message(TypeToolResult, `{"message":{"id":"r","content":[]}}`),
		message(TypeSystemMessage, `{"message":{"id":"s","content":[{"type":"text","text":"x"}]}}`),
		message(TypeDeveloperMessage, `{"message":{"id":"empty","content":[]}}`),
	)
	view, err := Surface(V3, events)
	noError(t, err)
	var ids []string
	for _, raw := range view.Messages {
		id, _ := value(raw).get("id").str()
		ids = append(ids, id)
	}
	equal(t, []string{"u", "a", "r", "s"}, ids)
	equal(t, 6, len(view.Nodes))
}

// Section K: v3 wants isError beside an error, v0 allows it with any flag.
func TestAnErrorNeedsItsFlag(t *testing.T) {
	odd := ToolResult(1, 1, "k", "x", false, "N", "C", -1, "m").At(0, 0)
	isTrue(t, ValidateEvents(V3, []Event{odd}) != nil)
	noError(t, ValidateEvents(V0, []Event{odd}))
}
