package actors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// TimeoutMaxS is the longest foreground wait, in seconds.
const TimeoutMaxS = 2147483

// Args are the arguments of one tool call, as far as they reach the question.
type Args struct {
	Questions []*messages.Question
	// TimeoutS is nil when the call named none.
	TimeoutS *float64
}

// ParseArguments checks raw argument text against the tool's schema (Q-022,
// Q-024) and reads it. Its error lists every violation in schema order.
func ParseArguments(raw string, timed bool) (Args, *messages.Error) {
	if !utf8.ValidString(raw) {
		return Args{}, messages.Refuse(messages.InvalidArgs, "the arguments are not valid UTF-8")
	}
	var root any
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		return Args{}, messages.Refuse(messages.InvalidArgs, "the arguments are not JSON: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Args{}, messages.Refuse(messages.InvalidArgs, "the arguments are more than one JSON value")
	}
	c := &checker{}
	args := c.arguments(root, timed)
	if strings.Contains(raw, `\u`) {
		c.unanswerable(raw)
	}
	if len(c.bad) > 0 {
		return Args{}, messages.Refuse(messages.InvalidArgs, "%s", c.text())
	}
	return args, nil
}

// violationsMax bounds how many violations an error lists, so that hostile
// arguments do not make one that is many times their own size.
const violationsMax = 100

// checker walks the arguments in schema order and collects violations.
type checker struct{ bad []string }

func (c *checker) text() string {
	if more := len(c.bad) - violationsMax; more > 0 {
		return strings.Join(c.bad[:violationsMax], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(c.bad, "; ")
}

func (c *checker) say(format string, args ...any) {
	c.bad = append(c.bad, fmt.Sprintf(format, args...))
}

func (c *checker) arguments(root any, timed bool) (args Args) {
	top, ok := root.(map[string]any)
	if !ok {
		c.say("arguments: must be an object, not %s", found(root))
		return args
	}
	if list, ok := property[[]any](c, top, "", "questions", true, "a list"); ok {
		c.atMost("questions", "items", len(list), messages.AnswersMax)
		for i, item := range list {
			args.Questions = append(args.Questions, c.question(item, fmt.Sprintf("questions[%d]", i)))
		}
	}
	if !timed {
		return args // its schema has no timeout
	}
	if n, ok := property[json.Number](c, top, "", "timeout", false, "an integer"); ok {
		f, err := n.Float64()
		if err != nil || f != math.Trunc(f) {
			c.say("timeout: must be an integer, not %s", brief(n.String()))
		} else {
			args.TimeoutS = &f
		}
	}
	return args
}

func (c *checker) question(item any, path string) *messages.Question {
	q := &messages.Question{}
	rec, ok := item.(map[string]any)
	if !ok {
		c.say("%s: must be an object, not %s", path, found(item))
		return q
	}
	q.Id = c.filled(rec, path, "id")
	q.Question = c.filled(rec, path, "question")
	q.Header, _ = property[string](c, rec, path, "header", false, "a string")
	if list, ok := property[[]any](c, rec, path, "options", false, "a list"); ok {
		c.atMost(path+".options", "items", len(list), messages.SelectedMax)
		for i, o := range list {
			q.Options = append(q.Options, c.option(o, fmt.Sprintf("%s.options[%d]", path, i)))
		}
	}
	q.MultiSelect, _ = property[bool](c, rec, path, "multi_select", false, "a boolean")
	return q
}

// filled reads a required text that must say something: an empty id comes back
// for ever (fault E7), and nobody can answer an empty question.
func (c *checker) filled(rec map[string]any, path, name string) string {
	text, ok := property[string](c, rec, path, name, true, "a string")
	if ok && strings.TrimSpace(text) == "" {
		c.say("%s.%s: must not be empty", path, name)
	}
	return text
}

func (c *checker) option(item any, path string) *messages.Option {
	o := &messages.Option{}
	rec, ok := item.(map[string]any)
	if !ok {
		c.say("%s: must be an object, not %s", path, found(item))
		return o
	}
	o.Label, _ = property[string](c, rec, path, "label", true, "a string")
	c.atMost(path+".label", "bytes", len(o.Label), messages.TextBytesMax)
	o.Description, _ = property[string](c, rec, path, "description", false, "a string")
	return o
}

// atMost holds the limits of an answer against what it would have to name: a
// question that nobody can answer is not asked.
func (c *checker) atMost(path, of string, n, limit int) {
	if n > limit {
		c.say("%s: has %d %s, the limit is %d", path, n, of, limit)
	}
}

// unanswerable finds ids that no answer can name: they are not Unicode text.
func (c *checker) unanswerable(raw string) {
	_, ids, _ := sessionlog.ParseArguments(raw)
	for i, id := range ids {
		if !utf8.ValidString(id) {
			c.say("questions[%d].id: holds an unpaired surrogate, so no answer could name it", i)
		}
	}
}

func property[T any](c *checker, rec map[string]any, path, name string, required bool, want string) (T, bool) {
	if path != "" {
		path += "."
	}
	v, present := rec[name]
	t, ok := v.(T)
	switch {
	case !present && required:
		c.say("%s%s: is required", path, name)
	case present && !ok:
		c.say("%s%s: must be %s, not %s", path, name, want, found(v))
	}
	return t, ok
}

// brief cuts a number that nobody would want to read in full.
func brief(n string) string {
	if len(n) > 24 {
		return n[:24] + "…"
	}
	return n
}

// found names a value that is of the wrong type.
func found(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case json.Number:
		return "the number " + brief(v.String())
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	}
	return "an object"
}

// Timeout is the effective wait of a timed call: never means −1. The
// error is plain in the log and BAD_TIMEOUT to callers.
func (a Args) Timeout(defaultS int64) (ms int64, never bool, err *messages.Error) {
	s := float64(defaultS)
	if a.TimeoutS != nil {
		s = *a.TimeoutS
	}
	if s == -1 {
		return 0, true, nil
	}
	if s < 1 || s > TimeoutMaxS || s != float64(int64(s)) {
		return 0, false, messages.Refuse(messages.BadTimeout,
			"timeout is %s; it must be -1 or a whole number of 1 to %d seconds", strconv.FormatFloat(s, 'f', -1, 64), TimeoutMaxS)
	}
	return int64(s) * 1000, false, nil
}

// CheckDefaultTimeout holds Q-021: it is checked when the node starts, not at a call.
func CheckDefaultTimeout(s int64) error {
	if s != -1 && (s < 1 || s > TimeoutMaxS) {
		return messages.Refuse(messages.BadTimeout, "the default timeout is %d s; it must be -1 or 1 to %d", s, TimeoutMaxS)
	}
	return nil
}

// UniqueIDs holds the second check of Q-026: the error names the id as a JSON string.
func UniqueIDs(questions []*messages.Question) *messages.Error {
	seen := make(map[string]bool, len(questions))
	for _, q := range questions {
		if seen[q.GetId()] {
			return messages.Refuse(messages.InvalidArgs, "question id %s is used twice; ids must be distinct within a call", jsonText(q.GetId()))
		}
		seen[q.GetId()] = true
	}
	return nil
}

// ToolDefinition is the tool as a request header records it (Q-020 … Q-023).
// The presence of `timeout` is what marks its calls as timed.
func ToolDefinition(timed bool, defaultS int64) json.RawMessage {
	if !timed {
		return json.RawMessage(legacyTool)
	}
	standard := "no limit"
	if defaultS != -1 {
		standard = strconv.FormatInt(defaultS, 10) + " seconds"
	}
	return json.RawMessage(timedTool[0] + standard + timedTool[1])
}

// The definitions, written once: every session has one in its header, and only
// the standard timeout differs, for which the timed one has a place.
var (
	legacyTool = toolDefinition(false, "")
	timedTool  = strings.Split(toolDefinition(true, "<standard>"), "<standard>")
)

func toolDefinition(timed bool, standard string) string {
	type object = map[string]any
	str := func(d string) object { return object{"type": "string", "description": d} }
	option := object{"type": "object", "properties": object{
		"label":       str("Short text of the choice; the answer quotes it. Put a recommended choice first and end its label with \"(Recommended)\"."),
		"description": str("What choosing it means."),
	}, "required": []string{"label"}, "additionalProperties": true}
	question := object{"type": "object", "properties": object{
		"id":           str("A stable id, distinct within the call."),
		"question":     str("The question, in the user's own terms."),
		"header":       str("A very short title."),
		"options":      object{"type": "array", "items": option, "description": "Choices, if there are any. The user can always write something else."},
		"multi_select": object{"type": "boolean", "description": "Whether several choices may be taken together."},
	}, "required": []string{"id", "question"}, "additionalProperties": true}
	props := object{"questions": object{"type": "array", "items": question}}
	desc := "Ask the user brief, self-contained questions in the user's terms, each with a distinct stable id. " +
		"A question the user skips comes back as an answer with an empty selection and no custom text."
	if timed {
		desc += " If no answers come in time the result is pending: the user can still answer, and the answer will reach you as a later message. Pending is neither a skip nor permission."
		props["timeout"] = object{"type": "integer", "description": "Seconds to wait before the result is pending; " +
			standard + " when left out. Use -1 only for answers you cannot go on without."}
	}
	return jsonText(object{"name": sessionlog.ToolName, "description": desc,
		"parameters": object{"type": "object", "properties": props, "required": []string{"questions"}}})
}

// AnswersJSON is the batch as given: order, texts and duplicates untouched.
func AnswersJSON(answers []*messages.Answer) json.RawMessage {
	items := make([]sessionlog.AnswerItem, len(answers))
	for i, a := range answers {
		items[i] = sessionlog.AnswerItem{ID: a.GetId(), Selected: a.GetSelected(), Custom: a.Custom}
	}
	return sessionlog.AnswersJSON(items)
}

// jsonText encodes without HTML escapes: texts are for people and models.
func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("actors: a value of ours does not encode: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
