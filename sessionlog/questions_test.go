package sessionlog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// story builds a v3 log line by line and folds it.
type story struct {
	t      *testing.T
	events []Event
}

func (s *story) add(typ, data string) *story {
	s.t.Helper()
	s.events = append(s.events, NewEvent(typ, json.RawMessage(data)).At(int64(len(s.events)), 1000))
	return s
}

const timedTool = `{"name":"ask_user_question","parameters":{"type":"object","properties":{"questions":{},"timeout":{"type":"integer"}}}}`

func newStory(t *testing.T) *story { return &story{t: t} }

func (s *story) header(tools string) *story {
	s.t.Helper()
	return s.add(TypeRequestHeader, `{"header":{"config":{},"tools":`+tools+`},"reason":"initial"}`)
}

func (s *story) timed() *story { s.t.Helper(); return s.header(`[` + timedTool + `]`) }

func (s *story) callNamed(name, callID, arguments string) *story {
	s.t.Helper()
	return s.add(TypeToolCall, fmt.Sprintf(`{"turn":1,"step":1,"callId":%s,"name":%s,"arguments":%s}`,
		appendString(nil, callID), appendString(nil, name), appendString(nil, arguments)))
}

func (s *story) call(callID, arguments string) *story {
	s.t.Helper()
	return s.callNamed(ToolName, callID, arguments)
}

// ask is a readable call with one question whose id is q.
func (s *story) ask(callID string) *story {
	s.t.Helper()
	return s.call(callID, `{"questions":[{"id":"q","question":"Which?"}]}`)
}

// result takes the raw members behind the call id: `"isError":…` of the message and the rest of data.
func (s *story) result(callID, text, isError, more string) *story {
	s.t.Helper()
	return s.add(TypeToolResult, fmt.Sprintf(
		`{"turn":1,"step":1,"message":{"id":"m","role":"tool","toolCallId":%s,"isError":%s,"content":[{"type":"text","text":%s}]}%s}`,
		appendString(nil, callID), isError, appendString(nil, text), more))
}

func (s *story) pending(callID string) *story {
	s.t.Helper()
	return s.result(callID, PendingText(callID), "false", "")
}

func (s *story) reply(callID, text string) *story {
	s.t.Helper()
	return s.add(TypeUserMessage, fmt.Sprintf(
		`{"id":"r","role":"user","source":{"kind":"user-question-reply","callId":%s,"outcome":"answered"},"content":[{"type":"text","text":%s}]}`,
		appendString(nil, callID), appendString(nil, text)))
}

func (s *story) dispatch(subCallID, arguments, isError, text string) *story {
	s.t.Helper()
	return s.add(TypeDispatch, fmt.Sprintf(
		`{"rootCallId":"r","parentCallId":"p","subCallId":%s,"name":"ask_user_question"%s,"isError":%s,"content":[{"type":"text","text":%s}]}`,
		appendString(nil, subCallID), arguments, isError, appendString(nil, text)))
}

func (s *story) fold() Questions { return s.foldFrom(0) }

func (s *story) foldFrom(inherited int64) Questions {
	q := NewQuestions(inherited)
	for _, ev := range s.events {
		q, _ = q.Fold(ev)
	}
	return q
}

// view writes the projection in short: "c1 open, c2 continued | c3 [...]".
func view(q Questions) string {
	var active, settled []string
	for _, c := range q.Active() {
		state := "open"
		if c.Continued {
			state = "continued"
		}
		active = append(active, c.CallID+" "+state)
	}
	for _, c := range q.Settled() {
		settled = append(settled, c.CallID+" "+string(c.Answers))
	}
	return strings.TrimSpace(strings.Join(active, ", ") + " | " + strings.Join(settled, ", "))
}

const (
	oneAnswer  = `{"answers":[{"id":"q","selected":["A"]}]}`
	oneSettled = `[{"id":"q","selected":["A"]}]`
)

// projectionCases are the rules of the projection, one story each; the story is told by the name of its rule.
var projectionCases = []struct {
	name  string
	story func(s *story) *story
	want  string
}{
	{"Q-025 a call is tracked from its record on; being rejected removes it again", func(s *story) *story {
		return s.timed().call("c", `{"questions":[{"id":"q","question":"?"}],"timeout":0}`).ask("d").
			result("c", "Error: timeout must be -1 or 1 to 2147483", "true", `,"error":{"name":"ToolArgsError","code":"INVALID_ARGS"}`)
	}, "d open |"},
	{"Q-028 a call that waits for ever is tracked too, and answerable after a crash", func(s *story) *story {
		return s.timed().call("c", `{"questions":[{"id":"q","question":"?"}],"timeout":-1}`).call("d", `{"questions":[{"id":"q","question":"?"}],"timeout":-1}`).
			result("c", oneAnswer, "false", "").result("d", "unknown", "true", `,"error":{"name":"ToolOutcomeUnknownError","code":"TOOL_OUTCOME_UNKNOWN"}`)
	}, "d continued | c " + oneSettled},
	{"Q-130 starts not timed and empty", func(s *story) *story { return s }, "|"},
	{"Q-131 types not named change nothing, whatever their payload", func(s *story) *story {
		return s.timed().ask("c").add("tool/result2", `{"message":{"toolCallId":"c"}}`).add("x/y", `[null]`).add(TypeToolResult, `null`).add(TypeUserMessage, `7`)
	}, "c open |"},
	{"Q-132 a header with the timed schema starts tracking", func(s *story) *story { return s.timed().ask("c") }, "c open |"},
	{"Q-133 tools absent, a text or null is not timed", func(s *story) *story {
		return s.timed().add(TypeRequestHeader, `{"header":{"config":{}}}`).ask("a").header(`"{{tools}}"`).ask("b").header(`null`).ask("c")
	}, "|"},
	{"Q-134 a timeout property of any value in any one entry is enough", func(s *story) *story {
		return s.header(`[null,7,{"name":"ask_user_question"},{"name":"ask_user_question","parameters":{"properties":{"timeout":null}}}]`).ask("c")
	}, "c open |"},
	{"Q-134 properties as a list, another name, or timeout only in required is not", func(s *story) *story {
		return s.header(`[{"name":"ask_user_question","parameters":{"properties":["timeout"],"required":["timeout"]}},` +
			`{"name":"Ask_user_question","parameters":{"properties":{"timeout":1}}}]`).ask("c")
	}, "|"},
	{"Q-135 the latest header governs later calls and leaves tracked ones alone", func(s *story) *story {
		return s.timed().ask("c").header(`[]`).ask("d").pending("c")
	}, "c continued |"},
	{"Q-136 only the exact tool name under a timed header", func(s *story) *story {
		return s.timed().callNamed("ask_user_question2", "c", `{"questions":[{"id":"q","question":"?"}]}`).
			ask("d").callNamed("bash", "d", `{}`)
	}, "d open |"},
	{"Q-139 a repeat moves to the end and is open again", func(s *story) *story {
		return s.timed().ask("c").ask("d").pending("c").ask("c")
	}, "d open, c open |"},
	{"Q-140 an unreadable repeat changes nothing", func(s *story) *story {
		return s.timed().ask("c").pending("c").ask("d").call("c", `{"questions":[]}`)
	}, "c continued, d open |"},
	{"Q-141 a result for an unknown call is ignored and not remembered", func(s *story) *story {
		return s.timed().pending("c").ask("c")
	}, "c open |"},
	{"Q-143 pending continues in place, before everything else", func(s *story) *story {
		return s.timed().ask("c").ask("d").result("c", `{"pending":true,"answers":[]}`, "true", `,"error":{"code":"X"}`)
	}, "c continued, d open |"},
	{"Q-143 an unknown outcome continues even with a good batch", func(s *story) *story {
		return s.timed().ask("c").result("c", oneAnswer, "false", `,"error":{"code":"TOOL_OUTCOME_UNKNOWN"}`)
	}, "c continued |"},
	{"Q-144 an in-time answer settles", func(s *story) *story { return s.timed().ask("c").result("c", oneAnswer, "false", "") }, "| c " + oneSettled},
	{"Q-144 an explicit null error is not absent", func(s *story) *story {
		return s.timed().ask("c").result("c", oneAnswer, "false", `,"error":null`)
	}, "|"},
	{"Q-144 isError drops the batch", func(s *story) *story { return s.timed().ask("c").result("c", oneAnswer, "true", "") }, "|"},
	{"Q-146 any other result drops the call", func(s *story) *story {
		return s.timed().ask("c").result("c", "Error: cancelled", "true", `,"error":{"name":"UserQuestionError","code":"ASK_CANCELLED"}`)
	}, "|"},
	{"Q-147 a second result follows the same rules", func(s *story) *story {
		return s.timed().ask("c").ask("d").ask("e").pending("c").pending("c").pending("d").result("d", oneAnswer, "false", "").pending("e").result("e", "gone", "false", "")
	}, "c continued | d " + oneSettled},
	{"Q-148 a replacing result is folded like any result", func(s *story) *story {
		s.timed().ask("c").pending("c").result("c", "[pruned]", "false", "")
		s.events[3].SurfaceOp = json.RawMessage(`{"op":"replace","startSeq":2,"endSeq":2}`)
		return s
	}, "|"},
	{"Q-149 a pending nested dispatch enters as continued, once and at the end", func(s *story) *story {
		nested := `,"arguments":{"questions":[{"id":"q","question":"?"}]}`
		return s.dispatch("p:ptc:1", nested, "false", `{"pending":true}`).dispatch("p:ptc:2", nested, "false", `{"pending":true}`).
			dispatch("p:ptc:1", nested, "false", `{"pending":true}`).add(TypeDispatchStart, `{"subCallId":"p:ptc:3","name":"ask_user_question"`+nested+`}`)
	}, "p:ptc:2 continued, p:ptc:1 continued |"},
	{"Q-150 any other nested dispatch changes nothing", func(s *story) *story {
		nested := `,"arguments":{"questions":[{"id":"q","question":"?"}]}`
		return s.dispatch("c", nested, "false", `{"pending":true}`).dispatch("c", nested, "false", oneAnswer).dispatch("d", nested, "true", `{"pending":true}`).
			dispatch("e", ``, "false", `{"pending":true}`).dispatch("f", `,"arguments":"{\"questions\":[{\"id\":\"q\",\"question\":\"?\"}]}"`, "false", `{"pending":true}`)
	}, "c continued |"},
	{"Q-151 nested entry does not depend on timed", func(s *story) *story {
		return s.header(`[]`).dispatch("c", `,"arguments":{"questions":[{"id":"q","question":"?"}]}`, "false", `{"pending":true}`)
	}, "c continued |"},
	{"Q-152 a reply settles an open call too, whose result is then ignored", func(s *story) *story {
		return s.timed().ask("c").reply("c", oneAnswer).result("c", "late", "false", "")
	}, "| c " + oneSettled},
	{"Q-153 a reply without a usable batch settles with nothing", func(s *story) *story {
		return s.timed().ask("c").reply("c", "yes please")
	}, "| c []"},
	{"Q-154 a second reply is ignored", func(s *story) *story {
		return s.timed().ask("c").reply("c", oneAnswer).reply("c", "again")
	}, "| c " + oneSettled},
	{"Q-155 the source decides, never the text", func(s *story) *story {
		return s.timed().ask("c").ask("d").
			add(TypeUserMessage, `{"id":"u","source":{"kind":"user"},"content":[{"type":"text","text":"{\"kind\":\"answer_to_pending_question\",\"callId\":\"c\",\"answers\":[]}"}]}`).
			reply("d", `{"callId":"c","answers":[]}`)
	}, "c open | d []"},
	{"Q-156 inbox splices have no effect", func(s *story) *story {
		m := ReplyMessage("r", "c", json.RawMessage(`[]`), json.RawMessage(`[]`))
		s.timed().ask("c")
		s.events = append(s.events, Splice{Target: NextStep, Inserted: []Message{m}}.Event().At(2, 0))
		s.events = append(s.events, Splice{Target: NextStep, RemovedCount: 1, Outcome: OutcomeCanceled}.Event().At(3, 0))
		return s
	}, "c open |"},
	{"Q-157 settlement order, a call id twice", func(s *story) *story {
		return s.timed().ask("c").ask("d").reply("d", "").reply("c", "").ask("d").reply("d", oneAnswer)
	}, "| d [], c [], d " + oneSettled},
	{"Q-161 questions, ids and labels are never compared", func(s *story) *story {
		return s.timed().call("c", `{"questions":[{"id":"x","question":"?","options":[{"label":"L"}]},{"id":"x","question":"?"}]}`).
			result("c", `{"answers":[{"id":"other","selected":["M"]}]}`, "false", "")
	}, `| c [{"id":"other","selected":["M"]}]`},
}

// each in its own subtest.
func TestProjectionRules(t *testing.T) {
	for _, c := range projectionCases {
		t.Run(c.name, func(t *testing.T) {
			equal(t, c.want, view(c.story(newStory(t)).fold()))
		})
	}
}

// the arguments are read strictly; one bad item makes the whole call unreadable.
func TestQ137ReadingArguments(t *testing.T) {
	good := `{"id":"a","question":"?"}`
	for name, raw := range map[string]string{
		"minimal":                        `{"questions":[` + good + `]}`,
		"JSON white space around":        " \n\t\r{\"questions\":[" + good + "]} \n",
		"last duplicate key wins":        `{"questions":7,"questions":[{"id":1,"id":"a","question":"?"}]}`,
		"escaped key names":              `{"quest\u0069ons":[{"\u0069d":"a","question":"?"}]}`,
		"timeout is not looked at":       `{"questions":[` + good + `],"timeout":"soon"}`,
		"empty strings and empty option": `{"questions":[{"id":"","question":"","header":"","options":[]}]}`,
	} {
		t.Run("Q-137 readable: "+name, func(t *testing.T) {
			_, _, ok := ParseArguments(raw)
			isTrue(t, ok, raw)
		})
	}
	for name, raw := range map[string]string{
		"empty text":                ``,
		"byte-order mark":           "\uFEFF{\"questions\":[" + good + "]}",
		"non-breaking space":        "\u00A0{\"questions\":[" + good + "]}",
		"trailing text":             `{"questions":[` + good + `]}x`,
		"a list":                    `[` + good + `]`,
		"null":                      `null`,
		"no questions":              `{}`,
		"questions not a list":      `{"questions":` + good + `}`,
		"no question in the list":   `{"questions":[ ]}`,
		"case of a key":             `{"Questions":[` + good + `]}`,
		"one bad item":              `{"questions":[` + good + `,{"id":"b"}]}`,
		"number as id":              `{"questions":[{"id":1,"question":"?"}]}`,
		"null header":               `{"questions":[{"id":"a","question":"?","header":null}]}`,
		"null options":              `{"questions":[{"id":"a","question":"?","options":null}]}`,
		"option without label":      `{"questions":[{"id":"a","question":"?","options":[{"description":"d"}]}]}`,
		"null description":          `{"questions":[{"id":"a","question":"?","options":[{"label":"l","description":null}]}]}`,
		"text as multi_select":      `{"questions":[{"id":"a","question":"?","multi_select":"true"}]}`,
		"null multi_select":         `{"questions":[{"id":"a","question":"?","multi_select":null}]}`,
		"a raw control character":   "{\"questions\":[{\"id\":\"a\",\"question\":\"a\nb\"}]}",
		"a number as the last key":  `{"questions":[` + good + `],"questions":1}`,
		"bytes that are not UTF-16": "{\"questions\":[{\"id\":\"a\",\"question\":\"\xff\"}]}",
	} {
		t.Run("Q-137 unreadable: "+name, func(t *testing.T) {
			_, _, ok := ParseArguments(raw)
			isTrue(t, !ok, raw)
		})
	}
}

// only the fields a client shows are stored, code unit for code unit.
func TestQ138Mapping(t *testing.T) {
	questions, ids, ok := ParseArguments(`{"questions":[{"multi_select":true,"extra":1,"detail":"d","intent":{},"multiSelect":false,` +
		`"options":[{"label":"L","x":1,"description":""},{"label":""}],"header":"H","question":"<a>&\u2028","id":"\ud800"}, {"id":"b","question":"\ud83d\ude00"}]}`)
	isTrue(t, ok)
	equal(t, `[{"id":"\ud800","question":"<a>&`+"\u2028"+`","header":"H","options":[{"label":"L","description":""},{"label":""}],"multiSelect":true},`+
		`{"id":"b","question":"😀"}]`, string(questions))
	equal(t, []string{"\xed\xa0\x80", "b"}, ids)

	t.Run("Q-138 an unpaired surrogate written as itself inside the text survives", func(t *testing.T) {
		// The outer escape puts the unit into the argument text; the inner text then holds it unescaped.
		s := newStory(t).timed().add(TypeToolCall, `{"callId":"c","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"x\",\"question\":\"a\udfffb\"}]}"}`)
		call, ok := s.fold().Call("c")
		isTrue(t, ok)
		equal(t, `[{"id":"x","question":"a\udfffb"}]`, string(call.Questions))
	})
	t.Run("Q-138 halves from two levels of escaping join", func(t *testing.T) {
		s := newStory(t).timed().add(TypeToolCall, `{"callId":"c","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"x\",\"question\":\"\ud83d\\ude00\"}]}"}`)
		call, ok := s.fold().Call("c")
		isTrue(t, ok)
		equal(t, `[{"id":"x","question":"😀"}]`, string(call.Questions))
	})
}

// the first text block decides, `pending` must be exactly true, the call id inside is not compared.
func TestQ142PendingDetection(t *testing.T) {
	for text, want := range map[string]bool{
		`{"pending":true}`:                  true,
		` {"callId":"x","pending":true} `:   true,
		`{"pending":false,"pending":true}`:  true,
		`{"pending":true,"pending":false}`:  false,
		`{"pending":"true"}`:                false,
		`{"pending":1}`:                     false,
		`{"Pending":true}`:                  false,
		`[{"pending":true}]`:                false,
		`{"pending":true`:                   false,
		"":                                  false,
		"\uFEFF{\"pending\":true}":          false,
		PendingText("c"):                    true,
		AnsweredText(json.RawMessage(`[]`)): false,
	} {
		equal(t, want, IsPending(text), text)
	}
	t.Run("Q-142 later blocks are not read, odd blocks are skipped", func(t *testing.T) {
		s := newStory(t).timed().ask("c").add(TypeToolResult,
			`{"message":{"toolCallId":"c","content":[null,{"type":"image"},{"type":"text","text":"{\"pending\":true}"},{"type":"text","text":"no"}]}}`)
		equal(t, "c continued |", view(s.fold()))
		s = newStory(t).timed().ask("c").add(TypeToolResult,
			`{"message":{"toolCallId":"c","content":[{"type":"text","text":"no"},{"type":"text","text":"{\"pending\":true}"}]}}`)
		equal(t, "|", view(s.fold()))
	})
}

// items are closed, the envelope is open.
func TestQ145ReadingABatch(t *testing.T) {
	for text, want := range map[string]string{
		`{"answers":[]}`: `[]`,
		`{"answers":[{"custom":"c","selected":["A","B"],"id":"q"}],"x":1}`: `[{"id":"q","selected":["A","B"],"custom":"c"}]`,
		`{"answers":[{"id":"q","selected":[],"custom":""}]}`:               `[{"id":"q","selected":[],"custom":""}]`,
		`{"answers":[{"id":"q","selected":[],"custom":null}]}`:             "",
		`{"answers":[{"id":"q","selected":[],"note":""}]}`:                 "",
		`{"answers":[{"id":"q"}]}`:                                         "",
		`{"answers":[{"selected":[]}]}`:                                    "",
		`{"answers":[{"id":"q","selected":[1]}]}`:                          "",
		`{"answers":[{"id":"q","selected":"A"}]}`:                          "",
		`{"answers":[7]}`:  "",
		`{"answers":null}`: "",
		`[]`:               "",
		`plain`:            "",
	} {
		got, ok := ReadBatch(text)
		equal(t, want, string(got), text)
		equal(t, want != "", ok, text)
	}
}

// what the parent did is not folded; a fork starts blocking until its own header.
func TestQ158ForksInheritNothing(t *testing.T) {
	s := newStory(t).timed().ask("c").ask("d").timed().ask("e")
	equal(t, "c open, d open, e open |", view(s.foldFrom(0)))
	equal(t, "|", view(s.foldFrom(5)))
	equal(t, "e open |", view(s.foldFrom(2)))
}

// an event that changes nothing leaves the view identical and says so.
func TestQ159NothingChanged(t *testing.T) {
	s := newStory(t).timed().ask("c").pending("c")
	q := s.fold()
	for _, ev := range newStory(t).timed().pending("c").pending("other").reply("other", "").callNamed("bash", "c", "{}").
		call("c", "bad").add("session/title", `{}`).events {
		next, changed := q.Fold(ev)
		isTrue(t, !changed, ev.Type)
		equal(t, q, next, ev.Type)
	}
	again := newStory(t).ask("d").events[0]
	q, changed := q.Fold(again)
	isTrue(t, changed)
	_, changed = q.Fold(again)
	isTrue(t, !changed, "the same question asked again at the same place")
}

// the stored state is versioned and read back strictly.
func TestQ160StoredState(t *testing.T) {
	q := newStory(t).timed().call("c", `{"questions":[{"id":"q","question":"?","header":"h","options":[{"label":"l"}],"multi_select":true}]}`).
		ask("d").ask("e").pending("d").reply("e", oneAnswer).foldFrom(0)
	back, err := DecodeState(q.State())
	noError(t, err)
	equal(t, string(q.State()), string(back.State()))
	isTrue(t, back.Timed())

	state := `{"version":2,"inheritedEventCount":0,"timed":true,"active":[{"callId":"c","questions":[{"id":"q","question":"?"}],"state":"open"}],"settled":[{"callId":"c","answers":[]}]}`
	_, err = DecodeState(json.RawMessage(state))
	noError(t, err)
	for _, change := range [][2]string{
		{`"version":2`, `"version":1`}, {`"inheritedEventCount":0`, `"inheritedEventCount":-1`}, {`"inheritedEventCount":0`, `"inheritedEventCount":0.5`},
		{`"inheritedEventCount":0`, `"inheritedEventCount":9007199254740992`}, {`"timed":true`, `"timed":1`}, {`"timed":true`, `"timed":true,"x":1`},
		{`"active":[{"callId":"c"`, `"active":[{"callId":""`}, {`[{"id":"q","question":"?"}]`, `[]`}, {`"state":"open"`, `"state":"done"`},
		{`"state":"open"`, `"state":"open","x":1`}, {`"settled":[{"callId":"c"`, `"settled":[{"callId":""`}, {`"answers":[]`, `"answers":[],"x":1`},
		{`"question":"?"`, `"question":"?","multi_select":true`},
		{`"active":[`, `"active":[{"callId":"c","questions":[{"id":"q","question":"?"}],"state":"open"},`},
	} {
		broken := strings.Replace(state, change[0], change[1], 1)
		isTrue(t, state != broken, change)
		_, err = DecodeState(json.RawMessage(broken))
		isTrue(t, err != nil, broken)
	}
}

// the late answer, byte for byte.
func TestQ104ReplyMessage(t *testing.T) {
	questions, _, _ := ParseArguments(`{"questions":[{"id":"x","question":"x?"},{"id":"y","question":"\ud800<&>"}]}`)
	m := ReplyMessage("reply-1", "c1", questions, json.RawMessage(`[ {"id":"y","selected":[]}, {"id":"x","selected":["\u0041","B"],"custom":"more"} ]`))
	equal(t, `{"id":"reply-1","role":"user","source":{"kind":"user-question-reply","callId":"c1","outcome":"answered"},"content":[{"type":"text","text":`+
		`"{\"kind\":\"answer_to_pending_question\",\"tool\":\"ask_user_question\",\"callId\":\"c1\",\"questions\":[{\"id\":\"x\",\"question\":\"x?\"},{\"id\":\"y\",\"question\":\"\\ud800<&>\"}],`+
		`\"answers\":[{\"id\":\"y\",\"selected\":[]},{\"id\":\"x\",\"selected\":[\"A\",\"B\"],\"custom\":\"more\"}]}"}]}`, string(m.Raw))
	parsed, err := ParseMessage(m.Raw)
	noError(t, err)
	equal(t, m, parsed)
	equal(t, "c1", parsed.ReplyTo)
}

// the two results are closed shapes in one compact text.
func TestQ031ResultTexts(t *testing.T) {
	var pending map[string]any
	noError(t, json.Unmarshal([]byte(PendingText(`c"1`)), &pending))
	equal(t, 3, len(pending))
	equal(t, any(`c"1`), pending["callId"])
	isTrue(t, strings.Contains(pending["message"].(string), "answer_to_pending_question"))
	answers, ids, ok := ParseAnswers(json.RawMessage(`[{"id":"q","selected":["A"]}]`))
	isTrue(t, ok)
	equal(t, []string{"q"}, ids)
	back, ok := ReadBatch(AnsweredText(answers))
	isTrue(t, ok)
	equal(t, string(answers), string(back))
}

// L-083, Q-158: the fold is a value, so a kept one never changes under its keeper.
func TestFoldingLeavesEarlierValuesAlone(t *testing.T) {
	s := newStory(t).timed().ask("a").ask("b").ask("c").pending("b").reply("a", oneAnswer).ask("b").result("c", "x", "true", "").reply("b", "").ask("a")
	var kept []Questions
	var seen []string
	q := NewQuestions(0)
	for _, ev := range s.events {
		kept, seen = append(kept, q), append(seen, view(q))
		q, _ = q.Fold(ev)
		for _, other := range s.events { // folding anything else into it must not matter either
			_, _ = q.Fold(other)
		}
	}
	for i := range kept {
		equal(t, seen[i], view(kept[i]))
	}
	last, ok := q.LastSettled("b")
	isTrue(t, ok)
	equal(t, "[]", string(last.Answers))
}
