package query

import (
	"strings"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
)

// Clean makes stored text safe to show: control characters other than line
// feed and tab, and the characters that turn the direction of writing, become
// U+FFFD, as do bytes that are not UTF-8. A carriage return before a line feed
// is dropped. Text without any comes back as it is, without a copy.
func Clean(s string) string {
	clean := utf8.ValidString(s)
	for i := 0; clean && i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		clean = !hostile(r)
		i += n
	}
	if clean {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s { // bytes that are not UTF-8 arrive as U+FFFD
		if hostile(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// CleanID is Clean for ids. An id that doors accept comes back as it is, since
// it is for speaking to, not for reading.
func CleanID(id string) string {
	if messages.CheckID("id", id) == nil {
		return id
	}
	return Clean(id)
}

// hostile are the characters that could make a terminal or a page show
// something else than what was stored.
func hostile(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069: // direction overrides and isolates
		return true
	case r == 0x2028 || r == 0x2029: // line breaks that editors and browsers disagree about
		return true
	}
	return false
}

// asUTF8 is for the ids of questions: an answer must give them back as the
// agent wrote them, whatever they hold, or it answers nothing.
func asUTF8(id string) string { return strings.ToValidUTF8(id, "\ufffd") }
