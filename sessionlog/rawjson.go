package sessionlog

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// The log is judged by exact JSON rules: key names match byte for byte, the last of two equal keys wins, an
// explicit null is not an absent field, strings are UTF-16 code units that may be unpaired. encoding/json bends
// each of these, so this file is the one reader of raw JSON in the package.
//
// Strings with unpaired surrogates are held as WTF-8: UTF-8 in which an unpaired surrogate is its three-byte form.
// A pair is always joined, so equal code units are equal Go strings.

// depthMax bounds nesting, so that a hostile line cannot exhaust the stack.
const depthMax = 10_000

// value is the exact span of one JSON value, without white space around it. Nil means absent.
//
// Invariant: a value came out of parse or parseText, or is Data that an Event was built with. The accessors are
// bounds-safe on any bytes, but only mean something on a valid value.
type value []byte

// parse reads a whole JSON text as it stands in a file: strict grammar, JSON white space only, valid UTF-8.
func parse(text []byte) (value, bool) {
	if !utf8.Valid(text) {
		return nil, false
	}
	return parseValid(text)
}

// parseText reads JSON that was itself the content of a JSON string, where a string may hold unpaired surrogates.
func parseText(text []byte) (value, bool) {
	if !validWTF8(text) {
		return nil, false
	}
	return parseValid(text)
}

func parseValid(text []byte) (value, bool) {
	start := skipSpace(text, 0)
	end := checkValue(text, start, 0)
	if end < 0 || skipSpace(text, end) != len(text) {
		return nil, false
	}
	return value(text[start:end]), true
}

// checkValue returns the end of the valid value at i, or -1.
func checkValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > depthMax {
		return -1
	}
	switch b[i] {
	case '{':
		return checkMembers(b, i, depth)
	case '[':
		return checkElements(b, i, depth)
	case '"':
		return checkString(b, i)
	case 't':
		return checkWord(b, i, "true")
	case 'f':
		return checkWord(b, i, "false")
	case 'n':
		return checkWord(b, i, "null")
	default:
		return checkNumber(b, i)
	}
}

func checkMembers(b []byte, i, depth int) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		if i = checkString(b, i); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return -1
		}
		if i = checkValue(b, skipSpace(b, i+1), depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		if b[i] == '}' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func checkElements(b []byte, i, depth int) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = checkValue(b, i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func checkString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		case c == '\\':
			if i++; i >= len(b) {
				return -1
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hexUnit(b, i+1); !ok {
					return -1
				}
				i += 4
			default:
				return -1
			}
		}
	}
	return -1
}

func checkWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func checkNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && b[i] >= '1' && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return -1
	}
	if i < len(b) && b[i] == '.' {
		j := skipDigits(b, i+1)
		if j == i+1 {
			return -1
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := skipDigits(b, i)
		if j == i {
			return -1
		}
		i = j
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the end of the string at i without checking it: the fold reads what was checked before. It leaps
// from quote to quote; one behind an odd number of backslashes is part of the string.
func skipString(b []byte, i int) int {
	for at := i + 1; at < len(b); {
		k := bytes.IndexByte(b[at:], '"')
		if k < 0 {
			break
		}
		end := at + k
		slash := end
		for slash > at && b[slash-1] == '\\' {
			slash--
		}
		if (end-slash)%2 == 0 {
			return end + 1
		}
		at = end + 1
	}
	return len(b)
}

// skipValue returns the end of the value at i without checking it.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

func (v value) isRecord() bool { return len(v) > 0 && v[0] == '{' }
func (v value) isList() bool   { return len(v) > 0 && v[0] == '[' }
func (v value) isString() bool { return len(v) > 1 && v[0] == '"' }
func (v value) isNumber() bool { return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') }
func (v value) isTrue() bool   { return string(v) == "true" }
func (v value) isFalse() bool  { return string(v) == "false" }

// members walks the members of a record in the order they are written, repeated keys included.
func (v value) members(yield func(key, val value) bool) {
	if !v.isRecord() {
		return
	}
	for i := skipSpace(v, 1); i < len(v) && v[i] == '"'; {
		keyEnd := skipString(v, i)
		start := skipSpace(v, keyEnd)
		if start >= len(v) || v[start] != ':' {
			return
		}
		start = skipSpace(v, start+1)
		end := skipValue(v, start)
		if end <= start || !yield(v[i:keyEnd], v[start:end]) {
			return
		}
		if i = skipSpace(v, end); i >= len(v) || v[i] != ',' {
			return
		}
		i = skipSpace(v, i+1)
	}
}

// elements walks the elements of a list in order.
func (v value) elements(yield func(val value) bool) {
	if !v.isList() {
		return
	}
	for i := skipSpace(v, 1); i < len(v) && v[i] != ']'; {
		end := skipValue(v, i)
		if end <= i || !yield(v[i:end]) {
			return
		}
		if i = skipSpace(v, end); i >= len(v) || v[i] != ',' {
			return
		}
		i = skipSpace(v, i+1)
	}
}

// strings walks the string tokens at any depth, keys among them, in the order they are written.
func (v value) strings(yield func(token value) bool) {
	for i := 0; ; {
		at := bytes.IndexByte(v[i:], '"')
		if at < 0 {
			return
		}
		end := skipString(v, i+at)
		if !yield(v[i+at : end]) {
			return
		}
		i = end
	}
}

// get returns the member of a record with this key, the last one when the key is repeated, nil when there is none
// or v is no record.
func (v value) get(key string) value {
	var found value
	for k, val := range v.members {
		if k.is(key) {
			found = val
		}
	}
	return found
}

// empty says whether a list has no element, or a record no member.
func (v value) empty() bool {
	i := skipSpace(v, 1)
	return i >= len(v) || v[i] == ']' || v[i] == '}'
}

// escapedMax is how many bytes can stand for one: \uXXXX.
const escapedMax = 6

// is says whether v is a string with exactly these code units.
func (v value) is(s string) bool {
	if !v.isString() {
		return false
	}
	body := v[1 : len(v)-1]
	if len(body) <= len(s) { // an escape is longer than what it stands for
		return string(body) == s && bytes.IndexByte(body, '\\') < 0
	}
	return len(body) <= escapedMax*len(s) && bytes.IndexByte(body, '\\') >= 0 && string(v.appendDecoded(nil)) == s
}

// str returns the content of a string as WTF-8.
func (v value) str() (string, bool) {
	text, ok := v.text()
	return string(text), ok
}

// text is str without the copy when nothing is escaped: the result may share memory with v.
func (v value) text() ([]byte, bool) {
	if !v.isString() {
		return nil, false
	}
	body := v[1 : len(v)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return body, true
	}
	return v.appendDecoded(make([]byte, 0, len(body))), true
}

// appendDecoded appends the content of a string token as WTF-8.
func (v value) appendDecoded(dst []byte) []byte {
	body := v[1 : len(v)-1]
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			end := bytes.IndexByte(body[i:], '\\')
			if end < 0 {
				end = len(body) - i
			}
			dst = append(dst, body[i:i+end]...)
			i += end
			continue
		}
		if i+1 >= len(body) {
			return dst
		}
		switch c := body[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			unit, ok := hexUnit(body, i+2)
			if !ok {
				return dst
			}
			dst = appendUnit(dst, unit)
			i += 4
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}

// safeMax is the largest whole number that a double holds exactly together with all below it.
const safeMax = 1<<53 - 1

// whole returns v when it is a number with a whole value that a double holds exactly, however it is spelled
// (1, 1.0 and 1e0 are one number).
func (v value) whole() (int64, bool) {
	if !v.isNumber() {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, n >= -safeMax && n <= safeMax
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > safeMax {
		return 0, false
	}
	return int64(f), true
}

// count returns a whole number that is not negative.
func (v value) count() (int64, bool) {
	n, ok := v.whole()
	return n, ok && n >= 0
}

func hexUnit(b []byte, i int) (uint16, bool) {
	if len(b)-i < 4 {
		return 0, false
	}
	var unit uint16
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}

// appendUnit appends one code unit, joining a low surrogate with the high one before it.
func appendUnit(dst []byte, unit uint16) []byte {
	if unit < 0xD800 || unit > 0xDFFF {
		return utf8.AppendRune(dst, rune(unit))
	}
	if unit >= 0xDC00 {
		if high, size := surrogateAt(dst, len(dst)-3); size > 0 && high < 0xDC00 {
			pair := (rune(high)-0xD800)<<10 + (rune(unit) - 0xDC00) + 0x10000
			return utf8.AppendRune(dst[:len(dst)-3], pair)
		}
	}
	return append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
}

// surrogateAt reads the three-byte form of a surrogate at i; size is 0 when there is none.
func surrogateAt(b []byte, i int) (unit uint16, size int) {
	if i < 0 || len(b)-i < 3 || b[i] != 0xED || b[i+1] < 0xA0 || b[i+1] > 0xBF || b[i+2] < 0x80 || b[i+2] > 0xBF {
		return 0, 0
	}
	return 0xD000 | uint16(b[i+1]&0x3F)<<6 | uint16(b[i+2]&0x3F), 3
}

// validWTF8 accepts UTF-8 and unpaired surrogates in three-byte form. A pair in that form is refused: joined is its
// only spelling, otherwise one string would have two.
func validWTF8(b []byte) bool {
	if utf8.Valid(b) {
		return true
	}
	high := false
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		wasHigh := high
		high = false
		if r == utf8.RuneError && size <= 1 {
			unit, n := surrogateAt(b, i)
			if n == 0 || wasHigh && unit >= 0xDC00 {
				return false
			}
			high, size = unit < 0xDC00, n
		}
		i += size
	}
	return true
}

// appendString appends s as a JSON string: the shortest usual spelling, nothing escaped that need not be, unpaired
// surrogates as \uXXXX so that the text stays valid UTF-8. Bytes that are neither become U+FFFD.
func appendString[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		var esc []byte
		var buf [6]byte
		switch {
		case c == '"' || c == '\\':
			esc = append(buf[:0], '\\', c)
		case c == '\n':
			esc = append(buf[:0], `\n`...)
		case c == '\r':
			esc = append(buf[:0], `\r`...)
		case c == '\t':
			esc = append(buf[:0], `\t`...)
		case c == '\b':
			esc = append(buf[:0], `\b`...)
		case c == '\f':
			esc = append(buf[:0], `\f`...)
		case c < 0x20:
			esc = append(buf[:0], '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			window := []byte(s[i:min(len(s), i+utf8.UTFMax)])
			var r rune
			if r, size = utf8.DecodeRune(window); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			if unit, n := surrogateAt(window, 0); n > 0 {
				esc = append(buf[:0], '\\', 'u', hex[unit>>12], hex[unit>>8&0xF], hex[unit>>4&0xF], hex[unit&0xF])
				size = n
			} else {
				esc = append(buf[:0], "\uFFFD"...)
				size = 1
			}
		}
		dst = append(dst, s[plain:i]...)
		dst = append(dst, esc...)
		i += size
		plain = i
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

// appendToken appends a string token in its usual spelling, code unit for code unit.
func appendToken(dst []byte, token value) []byte {
	if bytes.IndexByte(token, '\\') < 0 && bytes.IndexByte(token, 0xED) < 0 {
		return append(dst, token...)
	}
	text, _ := token.text()
	return appendString(dst, text)
}

// appendCompact appends a valid value without the white space between its tokens; the tokens stay as they are.
func appendCompact(dst []byte, v value) []byte {
	plain := 0
	for i := 0; i < len(v); {
		switch v[i] {
		case '"':
			i = skipString(v, i)
			continue
		case ' ', '\n', '\t', '\r':
			dst = append(dst, v[plain:i]...)
			plain = i + 1
		}
		i++
	}
	return append(dst, v[plain:]...)
}

// appendUsual is appendCompact with every string in its usual spelling, the way the text was first written by the
// side that stringifies JSON. Needed where JSON becomes the text of a message.
func appendUsual(dst []byte, v value) []byte {
	for i := 0; i < len(v); {
		switch v[i] {
		case '"':
			end := skipString(v, i)
			dst = appendToken(dst, v[i:end])
			i = end
			continue
		case ' ', '\n', '\t', '\r':
		default:
			dst = append(dst, v[i])
		}
		i++
	}
	return dst
}

// sameJSON compares two valid values by meaning: key order, white space, escapes and the spelling of numbers do not
// count, the last of repeated keys does.
func sameJSON(a, b value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	switch {
	case a.isRecord() && b.isRecord():
		return sameMembers(a, b, nil)
	case a.isList() && b.isList():
		return sameElements(a, b)
	case a.isString() && b.isString():
		s, _ := a.str()
		return b.is(s)
	}
	x, errA := strconv.ParseFloat(string(a), 64)
	y, errB := strconv.ParseFloat(string(b), 64)
	return errA == nil && errB == nil && x == y
}

func sameElements(a, b value) bool {
	var left []value
	for el := range a.elements {
		left = append(left, el)
	}
	n := 0
	for el := range b.elements {
		if n >= len(left) || !sameJSON(left[n], el) {
			return false
		}
		n++
	}
	return n == len(left)
}

// sameMembers compares two records; a member for which override returns true counts as equal.
func sameMembers(a, b value, override func(key string, x, y value) bool) bool {
	left, right := a.lastMembers(), b.lastMembers()
	if len(left) != len(right) {
		return false
	}
	for k := range a.members {
		key, _ := k.str()
		x, y := left[key], right[key]
		if y == nil {
			return false
		}
		if override != nil && override(key, x, y) {
			continue
		}
		if !sameJSON(x, y) {
			return false
		}
	}
	return true
}

// lastMembers indexes a record by key; of a repeated key the last value counts.
func (v value) lastMembers() map[string]value {
	found := map[string]value{}
	for k, val := range v.members {
		key, _ := k.str()
		found[key] = val
	}
	return found
}
