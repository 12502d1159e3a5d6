package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Verdict is what became of one vector.
type Verdict int

// The three verdicts. Improved is a declared deviation: the result differs from the vector exactly as declared.
const (
	Passed Verdict = iota
	Failed
	Improved
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"passed", "failed", "improved"}[v]
}

// Compare compares two JSON texts by meaning and returns the first difference with its path, or "" when there is none.
// Key order, white space, escapes and the spelling of numbers do not count; unpaired surrogates do.
func Compare(want, got []byte) string {
	w, err := readJSON(want)
	if err != nil {
		return fmt.Sprintf("the expectation is not JSON: %v", err)
	}
	g, err := readJSON(got)
	if err != nil {
		return fmt.Sprintf("the result is not JSON: %v", err)
	}
	return diff("$", w, g)
}

func verdictOf(difference string) (Verdict, string) {
	if difference != "" {
		return Failed, difference
	}
	return Passed, ""
}

func readJSON(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(markLoneSurrogates(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// markLoneSurrogates makes unpaired surrogate escapes survive encoding/json, which would turn all of them into U+FFFD.
func markLoneSurrogates(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u`)) {
		return text
	}
	var out []byte
	for i := 0; i < len(text); {
		if text[i] != '\\' || i+1 >= len(text) {
			out = append(out, text[i])
			i++
			continue
		}
		high, ok := escapedUnit(text[i:])
		low, paired := uint64(0), false
		if ok && high < 0xDC00 {
			if low, paired = escapedUnit(text[i+6:]); paired {
				paired = low >= 0xDC00
			}
		}
		switch {
		case paired:
			out = append(out, text[i:i+12]...)
			i += 12
		case ok:
			out = fmt.Appendf(out, "<lone surrogate %04x>", high)
			i += 6
		default:
			out = append(out, text[i:i+2]...)
			i += 2
		}
	}
	return out
}

// escapedUnit reads a surrogate escape at the start of text.
func escapedUnit(text []byte) (uint64, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil && unit >= 0xD800 && unit <= 0xDFFF
}

func diff(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		return diffMembers(path, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range min(len(w), len(g)) {
			if d := diff(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		if len(w) != len(g) {
			return fmt.Sprintf("%s: want %d elements, got %d", path, len(w), len(g))
		}
		return ""
	case json.Number:
		if g, ok := got.(json.Number); ok {
			x, errX := w.Float64()
			y, errY := g.Float64()
			if errX == nil && errY == nil && x == y {
				return ""
			}
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))
}

func diffMembers(path string, want, got map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[key]
		if !ok {
			return fmt.Sprintf("%s.%s: want %s, got nothing", path, key, show(want[key]))
		}
		if d := diff(path+"."+key, want[key], g); d != "" {
			return d
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			return fmt.Sprintf("%s.%s: want nothing, got %s", path, key, show(got[key]))
		}
	}
	return ""
}

func show(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	text := strings.TrimSpace(b.String())
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}
