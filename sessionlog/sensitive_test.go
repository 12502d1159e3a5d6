package sessionlog

import (
	"fmt"
	"testing"
)

// Promise 8: which calls have sensitive answers.
func TestSensitiveCalls(t *testing.T) {
	nested := func(typ, arguments string) Event {
		return Event{Type: typ, Data: fmt.Appendf(nil, `{"subCallId":"c","name":%q,"arguments":%s}`, ToolName, arguments)}
	}
	one := func(mark string) string {
		return `{"questions":[{"id":"a","question":"?"},{"id":"b","question":"?"` + mark + `}]}`
	}
	for name, c := range map[string]struct {
		ev   Event
		want bool
	}{
		"a question":            {ToolCall(1, 1, "c", ToolName, one(`,"sensitive":true`)), true},
		"the call":              {ToolCall(1, 1, "c", ToolName, `{"sensitive":true,"questions":[]}`), true},
		"nested":                {nested(TypeDispatch, one(`,"sensitive":true`)), true},
		"nested, as it starts":  {nested(TypeDispatchStart, one(`,"sensitive":true`)), true},
		"none":                  {ToolCall(1, 1, "c", ToolName, one("")), false},
		"a word is not a mark":  {ToolCall(1, 1, "c", ToolName, one(`,"sensitive":"true"`)), false},
		"another tool":          {ToolCall(1, 1, "c", "bash", one(`,"sensitive":true`)), false},
		"said and unsaid":       {ToolCall(1, 1, "c", ToolName, `{"sensitive":true,"sensitive":false}`), true},
		"a question of both":    {ToolCall(1, 1, "c", ToolName, one(`,"sensitive":true,"sensitive":false`)), true},
		"two lists of them":     {ToolCall(1, 1, "c", ToolName, `{"questions":[{"sensitive":true}],"questions":[]}`), true},
		"arguments of no kind":  {ToolCall(1, 1, "c", ToolName, "{"), false},
		"nested, without":       {nested(TypeDispatch, "[]"), false},
		"a result of that name": {Event{Type: TypeToolResult, Data: []byte(`{"name":"ask_user_question"}`)}, false},
	} {
		if call, ok := SensitiveCall(c.ev); ok != c.want || ok && call != "c" {
			t.Errorf("%s: %q, %v", name, call, ok)
		}
	}
}

// Promise 8: which events carry an answer, in either generation.
func TestAnsweredCalls(t *testing.T) {
	reply := ReplyMessage("m", "c", []byte("[]"), []byte("[]"))
	for name, c := range map[string]struct {
		ev   Event
		want string
	}{
		"a result":       {ToolResult(1, 1, "c", "x", false, "", "", -1, "m"), "c"},
		"a result of v0": {resultTextV0("x", "m"), "k"},
		"a late reply":   {NewEvent(TypeUserMessage, reply.Raw), "c"},
		"a message":      {NewEvent(TypeUserMessage, UserMessage("m", "x", "").Raw), ""},
		"a call":         {ToolCall(1, 1, "c", ToolName, "{}"), ""},
	} {
		if call, ok := AnsweredCall(c.ev); call != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v", name, call, ok)
		}
	}
}

// Promise 8: what names a sensitive call is hidden, however a log spells the name.
func TestConcealedHoweverTheNameIsSpelled(t *testing.T) {
	for _, c := range []struct{ id, spelled string }{
		{"c1", `c1`},
		{"c1", `\u00631`},
		{"c1", `\u0063\u0031`},
		{"a&b", `a\u0026b`},
		{"a/b", `a\/b`},
		{`a"b`, `a\u0022b`},
		{`a\b`, `a\u005Cb`},
		{"a\tb", `a\u0009b`},
		{"\U0001F511", `\uD83D\udd11`},
		{"é", `\u00e9`},
	} {
		call := ToolCall(1, 1, c.id, ToolName, `{"questions":[{"id":"a","question":"?","sensitive":true}]}`).At(0, 0)
		reply := Event{Type: TypeUserMessage, Seq: 1, Data: []byte(`{"content":[{"type":"text","text":"line\none"}],"source":{"kind":"reply","callId":"` + c.spelled + `"}}`)}
		short := Event{Type: "plugin/note", Seq: 2, Data: []byte(`{"of":{"` + c.spelled + `":1}}`)}
		other := Event{Type: TypeUserMessage, Seq: 3, Data: []byte(`{"text":"of x` + c.spelled + `, a\nline, and \"` + c.spelled + `\""}`)}
		got := Concealed([]Event{call, reply, short, other})
		if !got[1] || !got[2] || got[3] || len(got) != 2 {
			t.Errorf("%q spelled %s: %v", c.id, c.spelled, got)
		}
		if got := Concealed([]Event{call, other}); got != nil {
			t.Errorf("%q is not named, and %v is hidden", c.id, got)
		}
	}
}
