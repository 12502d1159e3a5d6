package sessionlog

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// The exact rules that the log is judged by, where the usual reader bends them (L-013, Q-137).
func TestRawReader(t *testing.T) {
	get := func(text, key string) string {
		v, ok := parse([]byte(text))
		isTrue(t, ok, text)
		return string(v.get(key))
	}
	equal(t, `2`, get(`{"a":1,"a":2}`, "a"), "the last key wins")
	equal(t, ``, get(`{"A":1}`, "a"), "keys match exactly")
	equal(t, `1`, get(`{"\u0061":1}`, "a"), "an escaped key is the same key")
	equal(t, `null`, get(`{"a":null}`, "a"), "null is not absent")
	equal(t, ``, get(`[1]`, "a"), "a list has no members")
	equal(t, `{"b" : [1, "]}"]}`, get(` { "x":0 , "a" : {"b" : [1, "]}"]} }`, "a"))
	equal(t, `"\\"`, get(`{"x":"\"","a":"\\"}`, "a"))

	for text, want := range map[string]int64{"0": 0, "-0": 0, "1.0": 1, "1e0": 1, "10e-1": 1, "9007199254740991": 1<<53 - 1, "-7": -7, "0.0": 0} {
		n, ok := value(text).whole()
		isTrue(t, ok, text)
		equal(t, want, n, text)
	}
	for _, text := range []string{"0.5", "1e400", "9007199254740992", "-9007199254740992", `"1"`, "true", "null", "[]", ""} {
		_, ok := value(text).whole()
		isTrue(t, !ok, text)
	}
	for _, text := range []string{"", " ", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,]`, `01`, `1.`, `.5`, `+1`, `1e`, `-`, `nul`, `truee`, `"`, `"\x"`, `"\u12"`,
		`"\u12g4"`, "\"\t\"", "\"\n\"", "'a'", `{a:1}`, "\v1", "\u00a01", "1 2", `{"a":1}}`, "\"\xc3\"", "\"\xed\xa0\x80\""} {
		_, ok := parse([]byte(text))
		isTrue(t, !ok, text)
		equal(t, json.Valid([]byte(text)), ok || text == "\"\xc3\"" || text == "\"\xed\xa0\x80\"", text)
	}
}

// strings are code units; unpaired surrogates keep their identity, pairs are one character however they are spelled.
func TestQ138CodeUnits(t *testing.T) {
	for token, want := range map[string][]uint16{
		`""`:                         {},
		`"a\u0000\n\"\\\/\b\f\r\t"`:  {'a', 0, '\n', '"', '\\', '/', '\b', '\f', '\r', '\t'},
		`"\ud800"`:                   {0xD800},
		`"\udfffx\ud800"`:            {0xDFFF, 'x', 0xD800},
		`"\ud83d\ude00"`:             {0xD83D, 0xDE00},
		`"😀"`:                        {0xD83D, 0xDE00},
		`"\ude00\ud83d"`:             {0xDE00, 0xD83D},
		`"\ud83d\ud83d\ude00\ude00"`: {0xD83D, 0xD83D, 0xDE00, 0xDE00},
		`"\uFFFD\uE000\ud7ff"`:       {0xFFFD, 0xE000, 0xD7FF},
	} {
		v, ok := parse([]byte(token))
		isTrue(t, ok, token)
		s, ok := v.str()
		isTrue(t, ok && validWTF8([]byte(s)), token)
		equal(t, want, unitsOf(s), token)
		again := appendString(nil, s)
		isTrue(t, utf8.Valid(again), token)
		back, _ := value(again).str()
		equal(t, s, back, token)
		isTrue(t, sameJSON(v, again), token)
	}
	equal(t, "\"\uFFFD\"", string(appendString(nil, "\xff")), "bytes that are no text are shown as such")
	isTrue(t, !validWTF8([]byte("\xed\xa0\xbd\xed\xb8\x80")), "a pair has one spelling")
}

// unitsOf is a dumb twin of the decoder: WTF-8 to UTF-16, character by character.
func unitsOf(s string) []uint16 {
	units := []uint16{}
	for i := 0; i < len(s); {
		if unit, n := surrogateAt([]byte(s), i); n > 0 {
			units = append(units, unit)
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		units = utf16.AppendRune(units, r)
		i += n
	}
	return units
}

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true,null]}`, `{ "b":[ true , null ], "\u0061":1.0 }`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,2]`, false},
		{`"a"`, `"\u0061"`, true},
		{`"1"`, `1`, false},
		{`null`, `false`, false},
		{`1e2`, `100`, true},
		{`{}`, `[]`, false},
	} {
		equal(t, c.want, sameJSON(value(c.a), value(c.b)), c.a, " ", c.b)
		equal(t, c.want, sameJSON(value(c.b), value(c.a)), c.b, " ", c.a)
	}
}

// The reader agrees with the standard one on what is JSON and what it says, wherever the standard one is exact.
func FuzzRawReader(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,{"b":"\ud800\u0041"}],"a":null}`, `"\\\""`, ` [ ] `, `-0.0e+1`, `{"":{"":[]}}`, "\"\u2028\"", `[[[[`, `"\"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, ok := parse(text)
		if want := json.Valid(text) && utf8.Valid(text); ok != want {
			t.Fatalf("parse says %v, the standard reader %v: %q", ok, want, text)
		}
		_, _ = parseText(text)
		if !ok {
			walkValue(value(text)) // bounds-safe on any bytes
			return
		}
		compact := appendCompact(nil, v)
		var std bytes.Buffer
		if err := json.Compact(&std, v); err != nil || std.String() != string(compact) {
			t.Fatalf("compact %q, the standard one %q, %v", compact, std.Bytes(), err)
		}
		usual := appendUsual(nil, v)
		if !sameJSON(v, usual) || !sameJSON(v, compact) {
			t.Fatalf("%q is not the same as %q", usual, v)
		}
		walkValue(v)
		if s, isString := v.str(); isString {
			var std string
			if err := json.Unmarshal(v, &std); err != nil {
				t.Fatal(err)
			}
			if utf8.ValidString(s) && s != std {
				t.Fatalf("read %q, the standard reader %q", s, std)
			}
		}
		if v.isRecord() {
			var std map[string]json.RawMessage
			if err := json.Unmarshal(v, &std); err != nil {
				t.Fatal(err)
			}
			for key, want := range std {
				// The standard reader turns every unpaired surrogate into U+FFFD, so such keys may be merged there.
				if got := v.get(key); !bytes.ContainsRune([]byte(key), utf8.RuneError) && string(got) != string(want) {
					t.Fatalf("member %q is %q, the standard reader has %q", key, got, want)
				}
			}
		}
	})
}

// walkValue reads everything there is to read.
func walkValue(v value) {
	_, _ = v.whole()
	_, _ = v.str()
	_ = v.is("x")
	_ = v.empty()
	for k, val := range v.members {
		_, _ = k.str()
		walkValue(val)
	}
	for val := range v.elements {
		walkValue(val)
	}
}
