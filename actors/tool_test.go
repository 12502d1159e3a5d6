package actors_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// The golden errors of Q-024, and fault E5: each names the field, what it must
// be, and what was found; and what it asks for validates.
func TestQ024GoldenErrors(t *testing.T) {
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for _, tt := range []struct{ name, raw, want, corrected string }{
		{"Q-024 nothing", `{}`, `questions: is required`, oneQuestion},
		{"Q-024 no object", `[]`, `arguments: must be an object, not a list`, oneQuestion},
		{"Q-024 null", `null`, `arguments: must be an object, not null`, oneQuestion},
		{"Q-024 no JSON", `{"questions":`, `the arguments are not JSON: unexpected EOF`, oneQuestion},
		{"Q-024 empty", ``, `the arguments are not JSON: EOF`, oneQuestion},
		{"Q-024 two values", `{} {}`, `the arguments are more than one JSON value`, oneQuestion},
		{"Q-024 a tail", `{}]`, `the arguments are more than one JSON value`, oneQuestion},
		{"Q-024 broken text", "{\"questions\":[{\"id\":\"q\xff\",\"question\":\"?\"}]}", `the arguments are not valid UTF-8`, oneQuestion},
		{"Q-024 questions are no list", `{"questions":"ask"}`, `questions: must be a list, not a string`, oneQuestion},
		{"Q-024 a question is no object", `{"questions":["?"]}`, `questions[0]: must be an object, not a string`, oneQuestion},
		{"Q-024 an id is a number", `{"questions":[{"id":1}]}`,
			`questions[0].id: must be a string, not the number 1; questions[0].question: is required`, oneQuestion},
		{"Q-024 a bad timeout", `{"questions":[],"timeout":"soon"}`, `timeout: must be an integer, not a string`, `{"questions":[],"timeout":5}`},
		{"Q-024 a timeout with a fraction", `{"questions":[],"timeout":1.5}`, `timeout: must be an integer, not 1.5`, `{"questions":[],"timeout":2}`},
		{"Q-024 a timeout out of every range", `{"questions":[],"timeout":1e999}`, `timeout: must be an integer, not 1e999`, `{"questions":[]}`},
		{"Q-024 a very long number is cut", `{"questions":[],"timeout":1.` + strings.Repeat("5", 99) + `}`,
			`timeout: must be an integer, not 1.5555555555555555555555…`, `{"questions":[]}`},
		{"Q-024 null is not absent", `{"questions":[{"id":"q","question":"?","header":null,"multi_select":null}]}`,
			`questions[0].header: must be a string, not null; questions[0].multi_select: must be a boolean, not null`, oneQuestion},
		{"Q-024 an option", `{"questions":[{"id":"q","question":"?","options":[{"description":true},"b"]}]}`,
			`questions[0].options[0].label: is required; questions[0].options[0].description: must be a string, not true; questions[0].options[1]: must be an object, not a string`,
			`{"questions":[{"id":"q","question":"?","options":[{"label":"a","description":""}]}]}`},
		{"Q-024 everything wrong, in schema order", `{"timeout":[],"questions":[{"multi_select":"yes","options":{},"header":{},"question":0,"id":false}]}`,
			`questions[0].id: must be a string, not false; questions[0].question: must be a string, not the number 0; questions[0].header: must be a string, not an object; ` +
				`questions[0].options: must be a list, not an object; questions[0].multi_select: must be a boolean, not a string; timeout: must be an integer, not a list`, oneQuestion},
		{"E5 more questions than a batch can answer", `{"questions":[` + many(257, `{"id":"q","question":"?"}`) + `]}`,
			`questions: has 257 items, the limit is 256`, `{"questions":[` + many(256, `{"id":"q","question":"?"}`) + `]}`},
		{"E5 more options than an answer can name", `{"questions":[{"id":"q","question":"?","options":[` + many(257, `{"label":"a"}`) + `]}]}`,
			`questions[0].options: has 257 items, the limit is 256`, `{"questions":[{"id":"q","question":"?","options":[` + many(256, `{"label":"a"}`) + `]}]}`},
		{"E5 a label that no answer can carry", `{"questions":[{"id":"q","question":"?","options":[{"label":"` + strings.Repeat("x", 65537) + `"}]}]}`,
			`questions[0].options[0].label: has 65537 bytes, the limit is 65536`, `{"questions":[{"id":"q","question":"?","options":[{"label":"` + strings.Repeat("x", 65536) + `"}]}]}`},
		{"E7 blank ids and questions", `{"questions":[{"id":" ","question":""}]}`,
			`questions[0].id: must not be empty; questions[0].question: must not be empty`, oneQuestion},
		{"E7 an id that no answer can name", `{"questions":[{"id":"\ud800","question":"?"}]}`,
			`questions[0].id: holds an unpaired surrogate, so no answer could name it`, `{"questions":[{"id":"\ud83d\ude00","question":"?"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := actors.ParseArguments(tt.raw, true)
			require.NotNil(t, err)
			require.Equal(t, messages.InvalidArgs, err.Code)
			require.Equal(t, tt.want, err.Text)
			_, err = actors.ParseArguments(tt.corrected, true)
			require.Nil(t, err)
		})
	}
	t.Run("Q-024 hostile arguments do not make an error many times their size", func(t *testing.T) {
		_, err := actors.ParseArguments(`{"questions":[`+many(300, `0`)+`]}`, true)
		require.True(t, strings.HasPrefix(err.Text, "questions: has 300 items, the limit is 256; questions[0]: must be an object, not the number 0; "))
		require.True(t, strings.HasSuffix(err.Text, "; and 201 more"), err.Text)
	})
}

func TestQ022Parameters(t *testing.T) {
	t.Run("Q-022 Q-030 what of a question is read; extras are let through and dropped", func(t *testing.T) {
		args, err := actors.ParseArguments(`{"extra":1,"timeout":30,"questions":[{"id":"q","question":"?","header":"H","multi_select":true,`+
			`"multiSelect":7,"detail":"d","intent":{"approve":"none"},"options":[{"label":"a","description":"d","extra":[]}]}]}`, true)
		require.Nil(t, err)
		require.Equal(t, 30.0, *args.TimeoutS)
		require.Len(t, args.Questions, 1)
		q := args.Questions[0]
		require.Equal(t, "q ? H true", fmt.Sprint(q.GetId(), " ", q.GetQuestion(), " ", q.GetHeader(), " ", q.GetMultiSelect()))
		require.Nil(t, q.Detail)
		require.Nil(t, q.Intent)
		require.Equal(t, "a", q.GetOptions()[0].GetLabel())
		require.Nil(t, actors.CheckAsk(false, args.Questions, actors.CallerRoot))
	})
	t.Run("Q-001 only id and question are required", func(t *testing.T) {
		args, err := actors.ParseArguments(oneQuestion, true)
		require.Nil(t, err)
		require.Nil(t, args.TimeoutS)
		require.Empty(t, args.Questions[0].GetOptions())
	})
	t.Run("Q-022 the legacy schema has no timeout, so that anything may stand there", func(t *testing.T) {
		args, err := actors.ParseArguments(`{"questions":[],"timeout":"soon"}`, false)
		require.Nil(t, err)
		require.Nil(t, args.TimeoutS)
	})
}

func TestQ026Timeouts(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		standard  int64
		ms        int64
		never     bool
		text      string
	}{
		{"Q-026 the argument", `{"questions":[],"timeout":30}`, 120, 30_000, false, ""},
		{"Q-026 the configured default", `{"questions":[]}`, 120, 120_000, false, ""},
		{"Q-026 a default of never", `{"questions":[]}`, -1, 0, true, ""},
		{"Q-026 the argument wins over a default of never", `{"questions":[],"timeout":1}`, -1, 1000, false, ""},
		{"Q-028 never", `{"questions":[],"timeout":-1}`, 120, 0, true, ""},
		{"Q-026 the longest", `{"questions":[],"timeout":2147483}`, 120, 2_147_483_000, false, ""},
		{"Q-026 an integer may be written with a fraction of nothing", `{"questions":[],"timeout":2.0e1}`, 120, 20_000, false, ""},
		{"Q-026 zero", `{"questions":[],"timeout":0}`, 120, 0, false, "timeout is 0; it must be -1 or a whole number of 1 to 2147483 seconds"},
		{"Q-026 below never", `{"questions":[],"timeout":-2}`, 120, 0, false, "timeout is -2; it must be -1 or a whole number of 1 to 2147483 seconds"},
		{"E5 a second too long", `{"questions":[],"timeout":2147484}`, 120, 0, false, "timeout is 2147484; it must be -1 or a whole number of 1 to 2147483 seconds"},
		{"E5 far too long", `{"questions":[],"timeout":9223372036854775808}`, 120, 0, false, "timeout is 9223372036854776000; it must be -1 or a whole number of 1 to 2147483 seconds"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args, err := actors.ParseArguments(tt.raw, true)
			require.Nil(t, err)
			ms, never, err := args.Timeout(tt.standard)
			require.Equal(t, tt.ms, ms)
			require.Equal(t, tt.never, never)
			if tt.text == "" {
				require.Nil(t, err)
				return
			}
			require.Equal(t, messages.BadTimeout, err.Code)
			require.Equal(t, tt.text, err.Text)
		})
	}
	t.Run("Q-026 an id used twice is named as a JSON string", func(t *testing.T) {
		require.Nil(t, actors.UniqueIDs([]*messages.Question{{Id: "a"}, {Id: "b"}}))
		require.Contains(t, actors.UniqueIDs([]*messages.Question{{Id: "a"}, {Id: "b\"<"}, {Id: "b\"<"}}).Text, `"b\"<"`)
	})
}

func TestQ021DefaultTimeout(t *testing.T) {
	for _, ok := range []int64{-1, 1, 120, 2147483} {
		require.NoError(t, actors.CheckDefaultTimeout(ok))
	}
	for _, bad := range []int64{0, -2, 2147484} {
		require.Equal(t, messages.BadTimeout, messages.CodeOf(actors.CheckDefaultTimeout(bad)), bad)
	}
}

// toolText is the definition read back.
type toolText struct {
	Name, Description string
	Parameters        struct {
		Required   []string
		Properties map[string]struct {
			Type, Description string
			Items             struct {
				Required             []string
				AdditionalProperties bool
				Properties           map[string]struct {
					Type  string
					Items struct {
						Required             []string
						AdditionalProperties bool
						Properties           map[string]struct{ Type string }
					}
				}
			}
		}
	}
}

func definition(t *testing.T, timed bool, standard int64) (d toolText) {
	t.Helper()
	require.NoError(t, json.Unmarshal(actors.ToolDefinition(timed, standard), &d))
	return d
}

func TestToolDefinition(t *testing.T) {
	timed, blocking := definition(t, true, 120), definition(t, false, 120)
	t.Run("Q-020 the name", func(t *testing.T) {
		require.Equal(t, "ask_user_question", timed.Name)
		require.Equal(t, "ask_user_question", blocking.Name)
	})
	t.Run("Q-022 the parameters", func(t *testing.T) {
		for _, d := range []toolText{timed, blocking} {
			require.Equal(t, []string{"questions"}, d.Parameters.Required)
			item := d.Parameters.Properties["questions"].Items
			require.Equal(t, []string{"id", "question"}, item.Required)
			require.True(t, item.AdditionalProperties)
			types := map[string]string{}
			for name, p := range item.Properties {
				types[name] = p.Type
			}
			require.Equal(t, map[string]string{"id": "string", "question": "string", "header": "string", "options": "array", "multi_select": "boolean"}, types)
			option := item.Properties["options"].Items
			require.Equal(t, []string{"label"}, option.Required)
			require.True(t, option.AdditionalProperties)
			require.Len(t, option.Properties, 2)
		}
	})
	t.Run("Q-022 Q-134 only the timed schema has a timeout", func(t *testing.T) {
		require.Contains(t, timed.Parameters.Properties, "timeout")
		require.NotContains(t, blocking.Parameters.Properties, "timeout")
	})
	t.Run("Q-023 what the description tells the model", func(t *testing.T) {
		for _, word := range []string{"brief", "self-contained", "user's terms", "distinct stable id", "empty selection and no custom text", "pending", "can still answer", "nor permission"} {
			require.Contains(t, timed.Description, word)
		}
		require.NotContains(t, blocking.Description, "pending")
		require.Contains(t, string(actors.ToolDefinition(true, 120)), "(Recommended)")
		require.Contains(t, timed.Parameters.Properties["timeout"].Description, "120 seconds")
		require.Contains(t, timed.Parameters.Properties["timeout"].Description, "-1")
		require.Contains(t, definition(t, true, -1).Parameters.Properties["timeout"].Description, "no limit")
	})
}

func TestQ002AnswersJSON(t *testing.T) {
	empty, text := "", "<b> \u2028"
	got := actors.AnswersJSON([]*messages.Answer{{Id: "skip"}, {Id: "e", Custom: &empty}, {Id: "q", Selected: []string{"b", "a", "b"}, Custom: &text}})
	require.Equal(t, `[{"id":"skip","selected":[]},{"id":"e","selected":[],"custom":""},{"id":"q","selected":["b","a","b"],"custom":"<b> `+"\u2028"+`"}]`, string(got))
	_, ids, ok := sessionlog.ParseAnswers(got)
	require.True(t, ok, "Q-031: a closed shape")
	require.Equal(t, []string{"skip", "e", "q"}, ids)
}

// FuzzParseArguments: whatever is accepted can be asked, is read by the
// projection as the same questions, and can be answered by name.
func FuzzParseArguments(f *testing.F) {
	for _, raw := range []string{oneQuestion, `{}`, `{"questions":[],"timeout":1e3}`, benchArguments, `{"questions":[{"id":"\ud800","question":"?"}]}`,
		`{"questions":[{"\u0069d":"a","id":"b","question":"?","options":[{"label":"x"}]}],"questions":[{"id":"a","question":""}]}`,
		"\ufeff{}", `{"questions":[{"id":"q","question":"?"}]} `, `{"timeout":-0,"questions":[{"id":"q","question":"?","header":null}]}`} {
		f.Add(raw, true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw string, timed bool) {
		args, err := actors.ParseArguments(raw, timed)
		if err != nil {
			if err.Code != messages.InvalidArgs || err.Text == "" {
				t.Fatalf("%q is refused with %v", raw, err)
			}
			return
		}
		if _, _, err := args.Timeout(120); err != nil && err.Code != messages.BadTimeout {
			t.Fatalf("%q has the timeout error %v", raw, err)
		}
		_, ids, ok := sessionlog.ParseArguments(raw)
		if ok != (len(args.Questions) > 0) {
			t.Fatalf("%q is accepted with %d questions, and the projection reads it: %v", raw, len(args.Questions), ok)
		}
		var answers []*messages.Answer
		for i, q := range args.Questions {
			if ids[i] != q.GetId() || !utf8.ValidString(q.GetId()) {
				t.Fatalf("%q asks %q, and the projection reads %q", raw, q.GetId(), ids[i])
			}
			answers = append(answers, &messages.Answer{Id: q.GetId()})
		}
		if actors.UniqueIDs(args.Questions) == nil && ok {
			if err := actors.CheckComplete(ids, answers); err != nil {
				t.Fatalf("%q can be asked and not answered: %v", raw, err)
			}
		}
	})
}
