package history

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// safeMax is the largest whole number that every reader of JSON takes exactly.
const safeMax = 1<<53 - 1

// wrongMax is how many violations one error names: a model reads them all.
const wrongMax = 20

// kind is what a parameter's value must be.
type kind int

const (
	aString   kind = iota
	someTexts      // a list of strings
	aWhole         // a whole number
	aBoolean
)

// parameter is one argument of a tool (S-006 to S-008).
type parameter struct {
	name     string
	kind     kind
	required bool
	allowed  []string // the only values; empty: any
	says     string   // for the model
}

// values are the arguments of one call, of the right types. What was not given
// is not in them.
type values map[string]any

// decode checks types alone (S-005): every violation is named in one error.
// Arguments that are not a parameter are not looked at (S-003).
func decode(params []parameter, raw json.RawMessage) (values, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil || given == nil {
			return nil, messages.Refuse(messages.InvalidArgs, "the arguments are not a JSON object")
		}
	}
	out := values{}
	var wrong []string
	for _, p := range params {
		text, ok := given[p.name]
		if !ok {
			if p.required {
				wrong = append(wrong, p.name+" is missing")
			}
			continue
		}
		v, faults := p.read(text)
		wrong = append(wrong, faults...)
		out[p.name] = v
	}
	if more := len(wrong) - wrongMax; more > 0 {
		wrong = append(wrong[:wrongMax], strconv.Itoa(more)+" more of the kind")
	}
	if len(wrong) > 0 {
		return nil, messages.Refuse(messages.InvalidArgs, "%s", strings.Join(wrong, "; "))
	}
	return out, nil
}

func (p parameter) read(text json.RawMessage) (v any, wrong []string) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var raw any
	if err := dec.Decode(&raw); err != nil {
		return nil, []string{p.name + " is not JSON"}
	}
	switch p.kind {
	case aString:
		if s, ok := raw.(string); ok {
			return s, nil
		}
		return nil, []string{p.name + " must be a string"}
	case aBoolean:
		if b, ok := raw.(bool); ok {
			return b, nil
		}
		return nil, []string{p.name + " must be true or false"}
	case aWhole:
		if n, ok := raw.(json.Number); ok {
			if f, err := n.Float64(); err == nil && f == math.Trunc(f) {
				return f, nil
			}
		}
		return nil, []string{p.name + " must be a whole number"}
	case someTexts:
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, []string{p.name + " must be a list of strings"}
	}
	out := make([]string, 0, len(list))
	for i, item := range list {
		s, ok := item.(string)
		switch at := p.name + "[" + strconv.Itoa(i) + "]"; {
		case !ok:
			wrong = append(wrong, at+" must be a string")
		case len(p.allowed) > 0 && !slices.Contains(p.allowed, s):
			wrong = append(wrong, at+" must be one of "+strings.Join(p.allowed, ", "))
		}
		out = append(out, s)
	}
	return out, wrong
}

func (v values) text(name string) string { s, _ := v[name].(string); return s }

// target is the session a call is about: the one named, or the caller's own.
func (v values) target(caller string) string {
	if named, ok := v["session_id"].(string); ok {
		return named
	}
	return caller
}

func (v values) flag(name string) bool { b, _ := v[name].(bool); return b }

// list returns the values given, each once, in byte order; nil when the
// parameter was not given. A list without a value is refused (S-031).
func (v values) list(name string) ([]string, error) {
	list, ok := v[name].([]string)
	if !ok {
		return nil, nil
	}
	if len(list) == 0 {
		return nil, badFilter("%s needs at least one value; leave it out to allow all", name)
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list), nil
}

// whole reads a number from 0 to 2^53-1 (S-035). It returns def when the
// parameter was not given.
func (v values) whole(name string, def int64) (int64, error) {
	f, ok := v[name].(float64)
	switch {
	case !ok:
		return def, nil
	case f < 0 || f > safeMax:
		return 0, badFilter("%s must be from 0 to 9007199254740991", name)
	}
	return int64(f), nil
}

// span reads two whole numbers, both inclusive (S-035).
func (v values) span(from, to string) (lo, hi int64, err error) {
	if lo, err = v.whole(from, 0); err != nil {
		return 0, 0, err
	}
	if hi, err = v.whole(to, safeMax); err != nil {
		return 0, 0, err
	}
	if lo > hi {
		return 0, 0, badFilter("%s is above %s", from, to)
	}
	return lo, hi, nil
}

// times reads two timestamps as milliseconds, both inclusive (S-033, S-034).
func (v values) times(from, to string) (lo, hi int64, err error) {
	lo, hi = math.MinInt64, math.MaxInt64
	first, hasFirst, err := v.instant(from)
	if err != nil {
		return 0, 0, err
	}
	last, hasLast, err := v.instant(to)
	if err != nil {
		return 0, 0, err
	}
	if hasFirst && hasLast && last.before(first) {
		return 0, 0, badFilter("%s is after %s", from, to)
	}
	if hasFirst {
		lo = first.ceil()
	}
	if hasLast {
		hi = last.ms
	}
	return lo, hi, nil
}

func (v values) instant(name string) (instant, bool, error) {
	s, ok := v[name].(string)
	if !ok {
		return instant{}, false, nil
	}
	at, err := parseInstant(s, name)
	return at, true, err
}

func badFilter(format string, args ...any) error {
	return messages.Refuse(messages.QueryInvalidFilter, format, args...)
}

// among refuses a value that is not one of those allowed.
func among(name string, given, allowed []string) error {
	for _, v := range given {
		if !slices.Contains(allowed, v) {
			return badFilter("%s may be %s, not %q", name, strings.Join(allowed, ", "), v)
		}
	}
	return nil
}
