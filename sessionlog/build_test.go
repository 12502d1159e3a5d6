package sessionlog

import (
	"encoding/json"
	"testing"
)

// L-010, section I: what is written out by hand is what the encoder would write, and folds.
func TestEventsARuntimeWrites(t *testing.T) {
	const args = "{\"questions\":[{\"id\":\"x\",\"question\":\"a \\\"b\\\"\\n\"}]}"
	call := CallMessage("m1", "c\"1", ToolName, args)
	for name, tc := range map[string]struct {
		ev   Event
		want string
	}{
		"turn start": {TurnStart(3), `{"turn":3}`},
		"turn end":   {TurnEnd(3, Aborted), `{"turn":3,"reason":{"kind":"aborted","reason":{"kind":"user"}}}`},
		"step start": {StepStart(3, 2), `{"turn":3,"step":2}`},
		"step end":   {StepEnd(3, 2), `{"turn":3,"step":2}`},
		"call":       {ToolCall(1, 2, "c\"1", ToolName, args), `{"turn":1,"step":2,"callId":"c\"1","name":"ask_user_question","arguments":` + quoted(args) + `}`},
		"message": {AssistantMessage(1, 2, call), `{"turn":1,"step":2,"message":{"id":"m1","role":"assistant","source":{"kind":"model","provider":"parley","model":"agent"},` +
			`"content":[{"type":"tool-call","id":"c\"1","name":"ask_user_question","arguments":` + quoted(args) + `}]},"stream":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tc.ev.Data); got != tc.want {
				t.Fatalf("got  %s\nwant %s", got, tc.want)
			}
			if _, err := DecodeEvent(tc.ev.At(0, 1).Line()); err != nil {
				t.Fatal(err)
			}
		})
	}
	if made, has, err := ToolCallIn(call, "c\"1"); err != nil || !has || made.Name == "" || made.Arguments == "" {
		t.Fatal(made, has, err)
	}
}

func quoted(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// a batch survives its text.
func TestAnswerItemsRoundTrip(t *testing.T) {
	custom := "no\u2028pe \U0001F600"
	in := []AnswerItem{{ID: "a", Selected: []string{"x", "y\""}}, {ID: "b", Custom: &custom}, {ID: "c"}}
	raw := AnswersJSON(in)
	if _, ids, ok := ParseAnswers(raw); !ok || len(ids) != 3 {
		t.Fatal(string(raw))
	}
	out := AnswerItems(raw)
	if len(out) != 3 || out[0].Selected[1] != "y\"" || *out[1].Custom != custom || out[2].Custom != nil || len(out[2].Selected) != 0 {
		t.Fatalf("%+v", out)
	}
}

// the last of a repeated key counts.
func TestMember(t *testing.T) {
	for _, tc := range [][3]string{
		{`{"timeout":1,"timeout": 2 }`, "timeout", "2"},
		{`{"a":{"timeout":1}}`, "timeout", ""},
		{`[1]`, "timeout", ""},
		{`{"timeout":null}`, "timeout", "null"},
		{`nope`, "timeout", ""},
	} {
		if got := string(Member(tc[0], tc[1])); got != tc[2] {
			t.Errorf("%s: got %q, want %q", tc[0], got, tc[2])
		}
	}
}
