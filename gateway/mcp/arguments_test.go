package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

func TestReadAskTakesWhatModelsSend(t *testing.T) {
	const plain = `{"questions":[{"id":"q1","question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}`
	for _, tt := range []struct{ name, raw, want string }{
		{"Q-022 as the schema has it", shipIt, shipIt},
		{"Q-030 what a question has besides is dropped, what an option has is passed on",
			`{"x":1,"questions":[{"id":"a","question":"?","detail":"d","intent":{"kind":"k"},"options":[{"z":[1.50],"label":"A","preview":"<p>","description":"d"}]}]}`,
			`{"questions":[{"id":"a","question":"?","options":[{"label":"A","description":"d","preview":"<p>","z":[1.50]}]}]}`},
		{"options as strings", `{"questions":[{"question":"Which?","options":["A","B"]}]}`, plain},
		{"options as JSON text", `{"questions":[{"question":"Which?","options":"[\"A\", {\"label\":\"B\"}]"}]}`, plain},
		{"an option as JSON text", `{"questions":[{"question":"Which?","options":["{\"label\":\"A\"}","B"]}]}`, plain},
		{"a label that looks like JSON and is none", `{"questions":[{"id":"q1","question":"?","options":["{x}","[1]"]}]}`,
			`{"questions":[{"id":"q1","question":"?","options":[{"label":"{x}"},{"label":"[1]"}]}]}`},
		{"questions as JSON text", `{"questions":"[{\"question\":\"Which?\",\"options\":[\"A\",\"B\"]}]"}`, plain},
		{"a question as JSON text", `{"questions":["{\"question\":\"Which?\",\"options\":[\"A\",\"B\"]}"]}`, plain},
		{"one question for a list", `{"questions":{"question":"Which?","options":["A","B"]}}`, plain},
		{"one question as JSON text for a list", `{"questions":"{\"question\":\"Which?\",\"options\":[\"A\",\"B\"]}"}`, plain},
		{"all of it as JSON text", `"{\"questions\":[{\"question\":\"Which?\",\"options\":[\"A\",\"B\"]}]}"`, plain},
		{"null is absent", `{"timeout":null,"session":null,"questions":[{"id":null,"question":"Which?","header":null,"multi_select":null,"options":["A",{"label":"B","description":null}]}]}`, plain},
		{"no ids: they get their places", `{"questions":[{"question":"a"},{"question":"b"}]}`,
			`{"questions":[{"id":"q1","question":"a"},{"id":"q2","question":"b"}]}`},
		{"E3 no options mean free text", `{"questions":[{"id":"a","question":"?","options":[]}]}`, `{"questions":[{"id":"a","question":"?"}]}`},
		{"multiSelect", `{"questions":[{"id":"a","question":"?","multiSelect":true}]}`, `{"questions":[{"id":"a","question":"?","multi_select":true}]}`},
		{"multiple", `{"questions":[{"id":"a","question":"?","multiple":"true"}]}`, `{"questions":[{"id":"a","question":"?","multi_select":true}]}`},
		{"two names that agree", `{"questions":[{"id":"a","question":"?","multiSelect":true,"multi_select":true}]}`, `{"questions":[{"id":"a","question":"?","multi_select":true}]}`},
		{"E5 a long header is cut between characters", `{"questions":[{"id":"a","question":"?","header":"` + strings.Repeat("é", 61) + `"}]}`,
			`{"questions":[{"id":"a","question":"?","header":"` + strings.Repeat("é", 60) + `"}]}`},
		{"a timeout", `{"questions":[],"timeout":90}`, `{"questions":[],"timeout":90}`},
		{"a timeout with a fraction of nothing", `{"questions":[],"timeout":9.0e1}`, `{"questions":[],"timeout":90}`},
		{"a timeout as text", `{"questions":[],"timeout":" 90 "}`, `{"questions":[],"timeout":90}`},
		{"a timeout as a duration", `{"questions":[],"timeout":"1m30s"}`, `{"questions":[],"timeout":90}`},
		{"never", `{"questions":[],"timeout":"never"}`, `{"questions":[],"timeout":-1}`},
		{"Q-028 -1 as text", `{"questions":[],"timeout":"-1"}`, `{"questions":[],"timeout":-1}`},
		{"Q-026 what is out of range is the session's to refuse", `{"questions":[],"timeout":0}`, `{"questions":[],"timeout":0}`},
		{"Q-042 no questions are the session's to refuse", `{"questions":[]}`, `{"questions":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAsk(json.RawMessage(tt.raw), true)
			require.Nil(t, err)
			require.Equal(t, tt.want, got.arguments)
			again, err := readAsk(json.RawMessage(got.arguments), true)
			require.Nil(t, err)
			require.Equal(t, tt.want, again.arguments)
		})
	}
	t.Run("the session is the door's own", func(t *testing.T) {
		got, err := readAsk(json.RawMessage(`{"session":"demo","questions":[]}`), true)
		require.Nil(t, err)
		require.Equal(t, "demo", got.session)
		require.Equal(t, `{"questions":[]}`, got.arguments)
	})
	t.Run("Q-022 Q-029 a legacy call has no timeout, and passes repeated ids on", func(t *testing.T) {
		got, err := readAsk(json.RawMessage(`{"timeout":"soon","questions":[{"id":"a","question":"x"},{"id":"a","question":"y"}]}`), false)
		require.Nil(t, err)
		require.Nil(t, got.timeoutS)
		require.Equal(t, `{"questions":[{"id":"a","question":"x"},{"id":"a","question":"y"}]}`, got.arguments)
	})
}

func TestReadAskRefusesWhatIsAmbiguous(t *testing.T) {
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for _, tt := range []struct{ name, raw, want string }{
		{"labels", `{"questions":[{"question":"a"},{"question":"b","options":["Yes","No",{"label":"Yes"}]}]}`,
			`questions[1].options[2].label "Yes" repeats options[0].label; labels must be distinct`},
		{"ids", `{"questions":[{"id":"a","question":"x"},{"id":"b","question":"y"},{"id":"a","question":"z"}]}`,
			`questions[2].id "a" repeats questions[0].id; ids must be distinct within a call`},
		{"some ids", `{"questions":[{"id":"a","question":"x"},{"question":"y"}]}`,
			`questions[1].id: is required, because other questions of the call have one`},
		{"two names that differ", `{"questions":[{"id":"a","question":"x","multi_select":false,"multiSelect":true}]}`,
			`questions[0].multi_select is false and questions[0].multiSelect is true; send one`},
		{"E7 nothing to answer", `{"questions":[{"id":" ","question":" "}]}`,
			`questions[0].question: must not be empty; questions[0].id: must not be empty`},
		{"E7 an id that cannot be seen", `{"questions":[{"id":"a\u0000","question":"x"}]}`, `questions[0].id "a\u0000" holds a control character`},
		{"E7 an empty label", `{"questions":[{"id":"a","question":"x","options":[""]}]}`, `questions[0].options[0].label: must not be empty`},
		{"Q-024 nothing", ``, `questions: is required`},
		{"Q-024 null", `null`, `questions: is required`},
		{"Q-024 an empty object", `{}`, `questions: is required`},
		{"Q-024 not an object", `[1]`, `arguments: must be an object, not a list`},
		{"Q-024 no JSON", `{"questions":`, `the arguments are not JSON: unexpected EOF`},
		{"Q-024 two values", `{} {}`, `the arguments are not JSON: they are more than one JSON value`},
		{"Q-024 not UTF-8", "{\"questions\":\"\xff\"}", `the arguments are not valid UTF-8`},
		{"Q-024 a text that is no list", `{"questions":"Ship it?"}`, `questions: must be a list, not a string`},
		{"Q-024 an id that is a number", `{"questions":[{"id":1,"question":"x"}]}`, `questions[0].id: must be a string, not the number 1`},
		{"Q-024 every violation", `{"session":7,"timeout":1.5,"questions":[1,{"id":"a","header":{},"options":[2,{"description":true}],"multi_select":"maybe"}]}`,
			`session: must be a string, not the number 7; questions[0]: must be an object, not the number 1; ` +
				`questions[1].question: is required; questions[1].header: must be a string, not an object; ` +
				`questions[1].options[0]: must be an object or a string, not the number 2; questions[1].options[1].label: is required; ` +
				`questions[1].options[1].description: must be a string, not true; questions[1].multi_select: must be a boolean, not a string; ` +
				`timeout: must be an integer, not 1.5`},
		{"Q-024 a word for a timeout", `{"questions":[],"timeout":"soon"}`,
			`timeout "soon" is not a number of seconds; use a whole number such as 90, or -1 for no deadline`},
		{"a timeout of less than a second", `{"questions":[],"timeout":"500ms"}`,
			`timeout "500ms" is not a number of seconds; use a whole number such as 90, or -1 for no deadline`},
		{"a timeout of no type", `{"questions":[],"timeout":true}`, `timeout: must be an integer, not true`},
		{"E5 too many options", `{"questions":[{"id":"a","question":"?","options":[` + strings.TrimSuffix(distinct(257), ",") + `]}]}`,
			`questions[0].options: has 257 items, the limit is 256`},
		{"E5 a label that no answer can carry", `{"questions":[{"id":"a","question":"?","options":["` + strings.Repeat("x", 65537) + `"]}]}`,
			`questions[0].options[0].label: has 65537 bytes, the limit is 65536`},
		{"E7 an empty session", `{"session":"","questions":[]}`, `session is empty; give it an id of 1 to 200 bytes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readAsk(json.RawMessage(tt.raw), true)
			require.NotNil(t, err)
			require.Equal(t, messages.InvalidArgs, err.Code)
			require.Equal(t, tt.want, err.Text)
		})
	}
	t.Run("hostile arguments do not make an error many times their size", func(t *testing.T) {
		_, err := readAsk(json.RawMessage(`{"questions":[`+many(300, `0`)+`]}`), true)
		require.True(t, strings.HasPrefix(err.Text, "questions: has 300 items, the limit is 256; questions[0]: must be an object"))
		require.True(t, strings.HasSuffix(err.Text, "; and 201 more"), err.Text)
		_, err = readAsk(json.RawMessage(`{"questions":[{"question":"?","options":["`+strings.Repeat("é", 9999)+`","`+strings.Repeat("é", 9999)+`"]}]}`), true)
		require.Less(t, len(err.Text), 300)
	})
	t.Run("E5 arguments over their limit", func(t *testing.T) {
		_, err := readAsk(json.RawMessage(`{"questions":[],"x":"`+strings.Repeat("x", messages.ArgumentsBytesMax)+`"}`), true)
		require.Equal(t, messages.TooLarge, err.Code)
		require.Contains(t, err.Text, "the limit is 262144")
	})
}

func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"` + strings.Repeat("x", i+1) + `",`)
	}
	return b.String()
}

func TestReadOtherTools(t *testing.T) {
	session, after, err := readCollect(json.RawMessage(`{"after":"t","session":"s","x":1}`))
	require.Nil(t, err)
	require.Equal(t, "s t", session+" "+after)
	_, after, err = readCollect(json.RawMessage(`{"after":""}`))
	require.Nil(t, err)
	require.Empty(t, after, "an empty list has no token")
	_, _, err = readCollect(json.RawMessage(`{"after":5}`))
	require.Equal(t, "after: must be a string, not the number 5", err.Text)
	_, call, reason, err := readWithdraw(json.RawMessage(`{"callId":"c","reason":"r"}`))
	require.Nil(t, err)
	require.Equal(t, "c r", call+" "+reason)
	_, _, _, err = readWithdraw(json.RawMessage(`{"callId":"c","call_id":"d"}`))
	require.Equal(t, `call_id is "d" and callId is "c"; send one`, err.Text)
	_, _, _, err = readWithdraw(nil)
	require.Contains(t, err.Text, "call_id: is required")
	_, _, _, err = readWithdraw(json.RawMessage(`{"call_id":"","reason":"` + strings.Repeat("x", 201) + `"}`))
	require.Equal(t, "call_id is empty; give it an id of 1 to 200 bytes; reason: has 201 bytes, the limit is 200", err.Text)
}

// FuzzReadAsk: whatever is read has one canonical text, which reads as itself
// and asks what can be answered by name; whatever is refused says why.
func FuzzReadAsk(f *testing.F) {
	for _, raw := range []string{shipIt, `{}`, ``, `"{\"questions\":\"{\\\"question\\\":\\\"?\\\"}\"}"`, `{"questions":[{"question":"?","options":["a",{"label":"b","x":1e999}]}],"timeout":"90s"}`,
		`{"questions":[{"id":"\ud800","question":"?","multiple":true}],"timeout":-0}`, `{"questions":[],"timeout":1e300,"session":"s"}`, `{"questions":["{\"id\":\"a\",\"question\":\"x\"}",{"id":"a","question":"y"}]}`} {
		f.Add([]byte(raw), true)
		f.Add([]byte(raw), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, timed bool) {
		got, err := readAsk(raw, timed)
		if err != nil {
			if err.Text == "" || len(err.Text) > 100_000 || !utf8.ValidString(err.Text) {
				t.Fatalf("%q is refused with %q", raw, err.Text)
			}
			return
		}
		var shape struct {
			Questions []struct {
				ID, Question string
				Options      []struct{ Label string }
			}
		}
		if e := json.Unmarshal([]byte(got.arguments), &shape); e != nil {
			t.Fatalf("%q is read as %q: %v", raw, got.arguments, e)
		}
		again, err := readAsk(json.RawMessage(got.arguments), timed)
		if err != nil || again.arguments != got.arguments {
			t.Fatalf("%q is read as %q, and that as %q, %v", raw, got.arguments, again.arguments, err)
		}
		ids := map[string]bool{}
		for _, q := range shape.Questions {
			if strings.TrimSpace(q.ID) == "" || strings.TrimSpace(q.Question) == "" || timed && ids[q.ID] {
				t.Fatalf("%q asks %+v", raw, shape)
			}
			ids[q.ID] = true
			labels := map[string]bool{}
			for _, o := range q.Options {
				if strings.TrimSpace(o.Label) == "" || labels[o.Label] {
					t.Fatalf("%q offers %+v", raw, q.Options)
				}
				labels[o.Label] = true
			}
		}
	})
}
