package words

import (
	"strings"
	"unicode/utf8"

	"github.com/parleyrun/parley/sessionlog"
)

// Clean replaces what a text index may not hold: NUL, two noncharacters that
// the reference marks matches with, and what is no UTF-8, an unpaired surrogate
// counting as one character (S-064). Other text comes back as it is.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.Contains(s, "\ufdd0") && !strings.Contains(s, "\ufdd1") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && surrogate(s[i:]) {
			n = 3
		}
		if r == 0 || r == 0xfdd0 || r == 0xfdd1 {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

// surrogate says whether s begins with a half of a pair, in the three bytes it
// would have as a character.
func surrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf
}

// Length is the length of a text for ranking: its code points (S-062).
func Length(s string) int { return utf8.RuneCountInString(s) }

// Collapse makes one space of every run of white space and trims (S-030, S-063).
func Collapse(s string) string {
	if collapsed(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case sessionlog.IsSpace(r):
			space = b.Len() > 0
		default:
			if space {
				b.WriteByte(' ')
				space = false
			}
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func collapsed(s string) bool {
	before := ' '
	for _, r := range s {
		if sessionlog.IsSpace(r) && (r != ' ' || before == ' ') {
			return false
		}
		before = r
	}
	return before != ' ' || s == ""
}

// Sizes of a snippet, in code points (S-063).
const (
	snippetMax    = 240
	snippetBefore = 80
	ellipsis      = "…"
)

// Snippet is what is shown of a text: all of it, collapsed, or a window around
// the first place where the phrase stands.
func Snippet(text string, p Phrase) string {
	text = Collapse(upToWindow(text, p.first(text).End))
	n := Length(text)
	if n <= snippetMax {
		return text
	}
	start := max(0, Length(text[:p.first(text).Start])-snippetBefore)
	switch room := snippetMax - 1; { // what is left beside one mark
	case start > 0 && start+room >= n:
		return ellipsis + from(text, n-room)
	case start == 0:
		return upTo(text, room) + ellipsis
	default:
		return ellipsis + upTo(from(text, start), room-1) + ellipsis
	}
}

// upToWindow cuts a text so far behind the end of the first span that a snippet
// shows the same, and its end stays out of sight: long texts are found often.
func upToWindow(text string, end int) string {
	left := 2 * snippetMax
	for i, r := range text[end:] {
		if !sessionlog.IsSpace(r) {
			left--
		}
		if left < 0 {
			return text[:end+i]
		}
	}
	return text
}

// from drops the first n code points.
func from(s string, n int) string { return s[offset(s, n):] }

// upTo keeps the first n code points.
func upTo(s string, n int) string { return s[:offset(s, n)] }

func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
