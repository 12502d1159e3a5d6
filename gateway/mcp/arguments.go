package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
)

// headerMax is how many characters of a header are kept: a long one is cut, not
// refused, because it decides nothing.
const headerMax = 60

// violationsMax bounds how many violations an error lists, and quotedMax how
// many characters of a value it quotes, so that hostile arguments do not make
// an error that is many times their own size.
const (
	violationsMax = 100
	quotedMax     = 60
)

// asked is one ask_user_question call, read.
type asked struct {
	session string
	// arguments is the argument text as the tool's schema has it,
	// whatever the model wrote: equal questions have equal text.
	arguments string
	// timeoutS is nil when the call named none, or when the mode has none.
	timeoutS *float64
}

// readAsk reads the arguments of ask_user_question. It takes what models really
// send (lists as JSON text, options as strings, a single question, the names
// that other tools use), refuses what could be meant in two ways, and lists
// every violation with its path. Ranges of the timeout are the session's to
// judge.
func readAsk(raw json.RawMessage, timed bool) (asked, *messages.Error) {
	top, err := readObject(raw)
	if err != nil {
		return asked{}, err
	}
	r := &reader{}
	out := asked{session: r.session(top)}
	questions := r.questions(top, timed)
	if timed {
		out.timeoutS = r.timeout(top["timeout"])
	}
	if err := r.err(); err != nil {
		return asked{}, err
	}
	out.arguments = canonical(questions, out.timeoutS)
	if err := messages.CheckText("arguments", out.arguments, messages.ArgumentsBytesMax); err != nil {
		return asked{}, err
	}
	return out, nil
}

// readCollect reads the arguments of collect_replies. An empty `after` is none:
// an empty list has no token.
func readCollect(raw json.RawMessage) (session, after string, err *messages.Error) {
	top, err := readObject(raw)
	if err != nil {
		return "", "", err
	}
	r := &reader{}
	session, after = r.session(top), r.text(top["after"], "after")
	if after != "" {
		r.id("after", after)
	}
	return session, after, r.err()
}

// readWithdraw reads the arguments of withdraw_question. Results say callId, so
// a model may say that too.
func readWithdraw(raw json.RawMessage) (session, call, reason string, err *messages.Error) {
	top, err := readObject(raw)
	if err != nil {
		return "", "", "", err
	}
	r := &reader{}
	session = r.session(top)
	snake, camel := r.text(top["call_id"], "call_id"), r.text(top["callId"], "callId")
	switch {
	case top["call_id"] == nil && top["callId"] == nil:
		r.say("call_id: is required; ask_user_question's result has it as callId")
	case top["call_id"] != nil && top["callId"] != nil && snake != camel:
		r.say("call_id is %s and callId is %s; send one", quote(snake), quote(camel))
	case top["call_id"] != nil:
		call = snake
		r.id("call_id", call)
	default:
		call = camel
		r.id("callId", call)
	}
	reason = r.text(top["reason"], "reason")
	if n := len(reason); n > messages.NameBytesMax {
		r.say("reason: has %d bytes, the limit is %d", n, messages.NameBytesMax)
	}
	return session, call, reason, r.err()
}

// readObject reads the top of any tool's arguments. Absent ones are empty, and
// an object may come as its JSON text.
func readObject(raw json.RawMessage) (map[string]any, *messages.Error) {
	if err := messages.CheckText("arguments", string(raw), messages.ArgumentsBytesMax); err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, messages.Refuse(messages.InvalidArgs, "the arguments are not valid UTF-8")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, messages.Refuse(messages.InvalidArgs, "the arguments are not JSON: %s", cut(err.Error(), 200))
	}
	switch v := unwrap(v).(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, messages.Refuse(messages.InvalidArgs, "arguments: must be an object, not %s", found(v))
	}
}

// question and option are what a call asks.
type question struct {
	id, text, header string
	options          []option
	multi            bool
}

type option struct {
	label, description string
	// extra are the option's other members, which are passed on.
	extra map[string]any
}

// reader collects violations in schema order.
type reader struct{ bad []string }

func (r *reader) say(format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

func (r *reader) err() *messages.Error {
	switch more := len(r.bad) - violationsMax; {
	case len(r.bad) == 0:
		return nil
	case more > 0:
		return messages.Refuse(messages.InvalidArgs, "%s; and %d more", strings.Join(r.bad[:violationsMax], "; "), more)
	}
	return messages.Refuse(messages.InvalidArgs, "%s", strings.Join(r.bad, "; "))
}

func (r *reader) session(top map[string]any) string {
	if top["session"] == nil {
		return ""
	}
	session := r.text(top["session"], "session")
	if _, isText := top["session"].(string); isText {
		r.id("session", session)
	}
	return session
}

func (r *reader) id(field, id string) {
	if err := messages.CheckID(field, id); err != nil {
		r.say("%s", err.Text)
	}
}

// text reads an optional text; null is absent.
func (r *reader) text(v any, path string) string {
	s, ok := v.(string)
	if v != nil && !ok {
		r.say("%s: must be a string, not %s", path, found(v))
	}
	return s
}

func (r *reader) questions(top map[string]any, timed bool) []question {
	const path = "questions"
	list, ok := r.list(top[path], path, true)
	if !ok {
		return nil
	}
	named := slices.ContainsFunc(list, hasID)
	questions := make([]question, 0, len(list))
	first := map[string]int{}
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		q := r.question(item, at)
		switch rec, isObject := unwrap(item).(map[string]any); {
		case !isObject: // said already
		case !named:
			q.id = "q" + strconv.Itoa(i+1)
		case rec["id"] == nil:
			r.say("%s.id: is required, because other questions of the call have one", at)
		default:
			q.id = r.text(rec["id"], at+".id")
			r.questionID(rec["id"], at, q.id, first, i, timed)
		}
		questions = append(questions, q)
	}
	return questions
}

// questionID refuses an id that cannot be told from nothing or from another.
// A legacy call passes repeated ids on as they are.
func (r *reader) questionID(v any, at, id string, first map[string]int, i int, timed bool) {
	if _, isText := v.(string); !isText {
		return // said already
	}
	if strings.TrimSpace(id) == "" {
		r.say("%s.id: must not be empty", at)
		return
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		r.say("%s.id %s holds a control character", at, quote(id))
		return
	}
	if j, twice := first[id]; twice && timed {
		r.say("%s.id %s repeats questions[%d].id; ids must be distinct within a call", at, quote(id), j)
		return
	}
	first[id] = i
}

func hasID(item any) bool {
	rec, ok := unwrap(item).(map[string]any)
	return ok && rec["id"] != nil
}

func (r *reader) question(item any, at string) (q question) {
	rec, ok := unwrap(item).(map[string]any)
	if !ok {
		r.say("%s: must be an object, not %s", at, found(item))
		return q
	}
	q.text = r.filled(rec["question"], at+".question")
	q.header = cut(r.text(rec["header"], at+".header"), headerMax)
	q.options = r.options(rec["options"], at+".options")
	q.multi = r.multi(rec, at)
	return q
}

// filled reads a required text that must say something: nobody can answer an
// empty question (fault E7).
func (r *reader) filled(v any, path string) string {
	text := r.text(v, path)
	switch v.(type) {
	case nil:
		r.say("%s: is required", path)
	case string:
		if strings.TrimSpace(text) == "" {
			r.say("%s: must not be empty", path)
		}
	}
	return text
}

// options reads the choices. None means free text (fault E3).
func (r *reader) options(v any, path string) []option {
	list, ok := r.list(v, path, false)
	if !ok {
		return nil
	}
	var options []option
	first := map[string]int{}
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		o, ok := r.option(item, at)
		if !ok {
			continue
		}
		if j, twice := first[o.label]; twice {
			r.say("%s.label %s repeats options[%d].label; labels must be distinct", at, quote(o.label), j)
			continue
		}
		first[o.label] = i
		options = append(options, o)
	}
	return options
}

// option reads one choice: an object, or its label alone.
func (r *reader) option(item any, at string) (o option, ok bool) {
	var rec map[string]any
	switch v := item.(type) {
	case map[string]any:
		rec = v
	case string:
		// A text that spells an option in JSON is one; any other text is a label.
		rec, _ = unwrap(v).(map[string]any)
		if rec["label"] == nil {
			rec = map[string]any{"label": v}
		}
	default:
		r.say("%s: must be an object or a string, not %s", at, found(item))
		return o, false
	}
	o.label = r.filled(rec["label"], at+".label")
	o.description = r.text(rec["description"], at+".description")
	if n := len(o.label); n > messages.TextBytesMax {
		r.say("%s.label: has %d bytes, the limit is %d", at, n, messages.TextBytesMax)
	}
	for name, v := range rec {
		if name != "label" && name != "description" {
			if o.extra == nil {
				o.extra = map[string]any{}
			}
			o.extra[name] = v
		}
	}
	return o, strings.TrimSpace(o.label) != ""
}

// multi reads multi_select under any of the names that models know it by.
func (r *reader) multi(rec map[string]any, at string) bool {
	var said string
	var multi bool
	for _, name := range []string{"multi_select", "multiSelect", "multiple"} {
		if rec[name] == nil {
			continue
		}
		v, ok := boolean(rec[name])
		switch {
		case !ok:
			r.say("%s.%s: must be a boolean, not %s", at, name, found(rec[name]))
		case said == "":
			said, multi = name, v
		case v != multi:
			r.say("%s.%s is %t and %s.%s is %t; send one", at, said, multi, at, name, v)
		}
	}
	return multi
}

func boolean(v any) (b, ok bool) {
	switch v {
	case true, "true":
		return true, true
	case false, "false":
		return false, true
	}
	return false, false
}

// list reads a list, its JSON text, or the one item that it would have.
func (r *reader) list(v any, path string, required bool) ([]any, bool) {
	whole := unwrap(v)
	if one, isObject := whole.(map[string]any); isObject {
		whole = []any{one}
	}
	list, ok := whole.([]any)
	switch {
	case v == nil && required:
		r.say("%s: is required", path)
	case v == nil:
	case !ok:
		r.say("%s: must be a list, not %s", path, found(v))
	case len(list) > messages.AnswersMax: // as many as an answer can name
		r.say("%s: has %d items, the limit is %d", path, len(list), messages.AnswersMax)
	}
	return list, ok
}

// timeout reads a wait in seconds: a number, its text, a duration such as
// "90s", or "never".
func (r *reader) timeout(v any) *float64 {
	switch v := v.(type) {
	case nil:
		return nil
	case json.Number:
		f, err := v.Float64()
		if err != nil || f != math.Trunc(f) {
			r.say("timeout: must be an integer, not %s", cut(v.String(), 24))
			return nil
		}
		return &f
	case string:
		s, ok := seconds(strings.TrimSpace(v))
		if !ok {
			r.say("timeout %s is not a number of seconds; use a whole number such as 90, or -1 for no deadline", quote(v))
			return nil
		}
		return &s
	}
	r.say("timeout: must be an integer, not %s", found(v))
	return nil
}

func seconds(text string) (float64, bool) {
	if strings.EqualFold(text, "never") {
		return -1, true
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return float64(n), true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d%time.Second != 0 {
		return 0, false
	}
	return d.Seconds(), true
}

// canonical writes the argument text as a model that keeps to the schema would.
func canonical(questions []question, timeoutS *float64) string {
	w := &writer{}
	w.raw(`{"questions":[`)
	for i, q := range questions {
		w.comma(i)
		w.raw(`{"id":`).value(q.id).raw(`,"question":`).value(q.text)
		if q.header != "" {
			w.raw(`,"header":`).value(q.header)
		}
		if len(q.options) > 0 {
			w.raw(`,"options":[`)
			for j, o := range q.options {
				w.comma(j)
				w.option(o)
			}
			w.raw(`]`)
		}
		if q.multi {
			w.raw(`,"multi_select":true`)
		}
		w.raw(`}`)
	}
	w.raw(`]`)
	if timeoutS != nil {
		w.raw(`,"timeout":` + strconv.FormatFloat(*timeoutS, 'f', -1, 64))
	}
	return w.raw(`}`).b.String()
}

// writer writes compact JSON with members in the order of the schema.
type writer struct{ b strings.Builder }

func (w *writer) raw(s string) *writer { w.b.WriteString(s); return w }

func (w *writer) comma(i int) {
	if i > 0 {
		w.raw(",")
	}
}

func (w *writer) value(v any) *writer { return w.raw(compact(v)) }

func (w *writer) option(o option) {
	w.raw(`{"label":`).value(o.label)
	if o.description != "" {
		w.raw(`,"description":`).value(o.description)
	}
	names := make([]string, 0, len(o.extra))
	for name := range o.extra {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w.raw(`,`).value(name).raw(`:`).value(o.extra[name])
	}
	w.raw(`}`)
}

// compact encodes without HTML escapes: texts are for people and models.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("mcp: a value of ours does not encode: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// decode reads one JSON value, with numbers as they are written.
func decode(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("they are more than one JSON value")
	}
	return v, nil
}

// unwrap returns the list or object that a text spells in JSON, as some models
// send them; anything else is returned as it is.
func unwrap(v any) any {
	text, ok := v.(string)
	if !ok {
		return v
	}
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "[") && !strings.HasPrefix(trimmed, "{") {
		return v
	}
	inner, err := decode([]byte(trimmed))
	if err != nil {
		return v
	}
	return inner
}

// quote shows a value of the model's in an error.
func quote(s string) string { return compact(cut(s, quotedMax)) }

// cut keeps at most n characters.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// found names a value that is of the wrong type.
func found(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case json.Number:
		return "the number " + cut(v.String(), 24)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	}
	return "an object"
}
