package sessionlog

import (
	"encoding/json"
	"testing"
)

// Section K of the log's rules: every older shape of v0, and that nothing else is touched.
func TestUpgrade(t *testing.T) {
	h, err := DecodeHeader([]byte(v0Header))
	noError(t, err)
	for _, c := range []struct{ name, typ, data, wantType, want string }{
		{"a result", TypeToolResult, `{"turn":1,"step":2,"callId":"k","content":[{"type":"text","text":"x"}],"isError":true,"error":{"code":"C"},"meta":{}}`, TypeToolResult,
			`{"turn":1,"step":2,"message":{"source":{"kind":"tool","callId":"k"},"content":[{"type":"tool-result","toolCallId":"k","content":[{"type":"text","text":"x"}],"isError":true}],"role":"user","id":"legacy-message:s1:7"},"error":{"code":"C"},"meta":{}}`},
		{"a bare result", TypeToolResult, `{"isError":false,"callId":"k"}`, TypeToolResult,
			`{"message":{"source":{"kind":"tool","callId":"k"},"content":[{"type":"tool-result","toolCallId":"k","content":[],"isError":false}],"role":"user","id":"legacy-message:s1:7"}}`},
		{"a result without an id", TypeToolResult, `{"turn":1,"message":{"role":"user","content":[]}}`, TypeToolResult,
			`{"turn":1,"message":{"role":"user","content":[],"id":"legacy-message:s1:7"}}`},
		{"a model's message", TypeAssistantMessage, `{"turn":1,"step":2,"content":[],"provenance":{"provider":"p","model":"m","kind":"x"},"usage":{"n":1}}`, TypeAssistantMessage,
			`{"turn":1,"step":2,"message":{"role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"},"id":"legacy-message:s1:7"},"usage":{"n":1}}`},
		{"a model's message without an id", TypeAssistantMessage, `{"message":{"content":[]},"turn":1}`, TypeAssistantMessage,
			`{"message":{"content":[],"role":"assistant","id":"legacy-message:s1:7"},"turn":1}`},
		{"a user's message", TypeUserMessage, `{"content":[],"source":{"kind":"user"}}`, TypeUserMessage,
			`{"content":[],"source":{"kind":"user"},"role":"user","id":"legacy-message:s1:7"}`},
		{"a user's message without a role", TypeUserMessage, `{"id":"a","content":[]}`, TypeUserMessage, `{"id":"a","content":[],"role":"user"}`},
		{"what was steered in", typeSteeringMessage, `{"turn":1,"step":2,"content":[],"source":{"kind":"user"}}`, TypeUserMessage,
			`{"content":[],"source":{"kind":"user"},"role":"user","id":"legacy-message:s1:7"}`},
		{"a message that was steered in", typeSteeringMessage, `{"turn":1,"message":{"id":"a","role":"user","content":[]}}`, TypeUserMessage, `{"id":"a","role":"user","content":[]}`},
		{"a trigger", TypeTurnStart, `{"turn":1,"trigger":{"kind":"message"}}`, TypeTurnStart, `{"turn":1}`},
		{"a disposal", TypeTurnEnd, `{"turn":1,"reason":{"kind":"disposed"}}`, TypeTurnEnd, `{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"disposed"}}}`},
		{"an abort by nobody", TypeTurnEnd, `{"turn":1,"reason":{"kind":"aborted"}}`, TypeTurnEnd, `{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"legacy"}}}`},
		{"an error", TypeTurnEnd, `{"turn":1,"reason":{"kind":"error","message":"m","code":"C"},"x":1}`, TypeTurnEnd, `{"turn":1,"reason":{"kind":"error","error":{"message":"m","code":"C"}},"x":1}`},
		{"a repeated key", TypeTurnStart, `{"turn":1,"trigger":1,"turn":2}`, TypeTurnStart, `{"turn":2}`},

		{"a result that is one", TypeToolResult, `{"message":{"id":"a"}}`, TypeToolResult, ""},
		{"a user's message that is one", TypeUserMessage, `{"id":"a","role":"user"}`, TypeUserMessage, ""},
		{"an ordinary end", TypeTurnEnd, `{"turn":1,"reason":{"kind":"completed"}}`, TypeTurnEnd, ""},
		{"an abort by somebody", TypeTurnEnd, `{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"user"}}}`, TypeTurnEnd, ""},
		{"data of no shape", TypeUserMessage, `5`, TypeUserMessage, ""},
		{"a result of nothing", TypeToolResult, `{"callId":5}`, TypeToolResult, ""},
		{"another type", TypeTodo, `{"trigger":1}`, TypeTodo, ""},
		{"steering of no shape", typeSteeringMessage, `[]`, typeSteeringMessage, ""},
	} {
		ev, err := DecodeEvent(Event{Type: c.typ, Seq: 7, Time: 9, Data: json.RawMessage(c.data)}.Appended().Line())
		noError(t, err, c.name)
		got, want := Upgrade(h, ev), c.want
		if want == "" {
			want = c.data
			equal(t, string(ev.Line()), string(got.Line()), c.name)
		}
		equal(t, want, string(got.Data), c.name)
		equal(t, c.wantType, got.Type, c.name)
		isTrue(t, got.Seq == 7 && got.Time == 9 && string(got.SurfaceOp) == `"append"`, c.name)
		read, err := DecodeEvent(got.Line())
		noError(t, err, c.name)
		equal(t, want, string(read.Data), c.name)
		equal(t, c.data, string(ev.Data), "the stored event changed: "+c.name)
		if again := Upgrade(h, got); string(again.Data) != want {
			t.Fatalf("%s: upgraded twice it is %s", c.name, again.Data)
		}
		v3, err := DecodeHeader([]byte(v3Header))
		noError(t, err)
		equal(t, c.data, string(Upgrade(v3, ev).Data), "another generation has no older shapes: "+c.name)
	}
}

func TestUpgradeAll(t *testing.T) {
	h, err := DecodeHeader([]byte(v0Header))
	noError(t, err)
	sound := numbered(NewEvent(TypeTurnStart, json.RawMessage(`{"turn":1}`)), chunk("a"))
	isTrue(t, &sound[0] == &UpgradeAll(h, sound)[0], "nothing to do, and it was copied")
	old := numbered(NewEvent(TypeTurnStart, json.RawMessage(`{"turn":1,"trigger":1}`)), chunk("a"))
	got := UpgradeAll(h, old)
	equal(t, `{"turn":1}`, string(got[0].Data))
	equal(t, `{"turn":1,"trigger":1}`, string(old[0].Data))
	equal(t, string(old[1].Data), string(got[1].Data))
}

// Whatever a v0 event says: its upgrade is an event that can be written, needs no other, and has a text.
func FuzzUpgrade(f *testing.F) {
	f.Add(TypeToolResult, `{"turn":1,"callId":"k","content":[{"type":"text","text":"\ud800"}]}`)
	f.Add(TypeAssistantMessage, `{"content":[{"type":"tool-result","content":[]}],"provenance":{"a":1}}`)
	f.Add(TypeUserMessage, `{"content":"x"}`)
	f.Add(TypeTurnEnd, `{"reason":{"kind":"error","kind":"error","message":"m"}}`)
	f.Add(TypeTitle, `{"title":"\udc00"}`)
	f.Fuzz(func(t *testing.T, typ, data string) {
		v, ok := parse([]byte(data))
		if !ok {
			return
		}
		h, err := DecodeHeader([]byte(v0Header))
		noError(t, err)
		ev := Event{Type: typ, Seq: 1, Data: json.RawMessage(v)}
		up := Upgrade(h, ev)
		read, err := DecodeEvent(up.Line())
		noError(t, err)
		isTrue(t, sameJSON(value(up.Data), value(read.Data)))
		_, twice := upgrade(h, read)
		isTrue(t, !twice, "upgraded twice")
		text := SemanticText(up)
		title, _ := TitleOf(up)
		for _, s := range []string{text, title} {
			equal(t, s, wellFormed(s))
		}
		equal(t, text, SemanticText(read))
	})
}
