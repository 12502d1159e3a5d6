package sessionlog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// NormalizeTitle is a title as it is accepted (L-071): without terminal escape sequences, control characters and
// characters that are invisible or turn the direction of text, its white space collapsed, cut to maxBytes of UTF-8 at
// a code point. Empty when nothing is left of it, which is to be refused.
func NormalizeTitle(raw string, maxBytes int) string {
	return cutTitle(cleanTitle(raw), maxBytes)
}

// FallbackTitle is the title that the first words of a human's message make, at most maxWords words and maxBytes bytes
// (L-071).
func FallbackTitle(message string, maxWords, maxBytes int) string {
	words := strings.Fields(cleanTitle(message)) // only plain spaces are left in it
	return cutTitle(strings.Join(words[:min(len(words), max(maxWords, 0))], " "), maxBytes)
}

// cleanTitle removes what a title must not hold. White space is one space, and never at an end.
func cleanTitle(raw string) string {
	var b strings.Builder
	space := false
	for _, r := range withoutEscapes(wellFormed(raw)) {
		switch {
		case r != 0xFEFF && IsSpace(r): // the byte-order mark is white space that nobody sees: no words end there
			space = b.Len() > 0
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r):
		default:
			if space {
				b.WriteByte(' ')
				space = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

func cutTitle(title string, maxBytes int) string {
	if len(title) <= maxBytes {
		return title
	}
	end := max(maxBytes, 0)
	for end > 0 && !utf8.RuneStart(title[end]) {
		end--
	}
	return strings.TrimRight(title[:end], " ")
}

// withoutEscapes removes terminal escape sequences (ECMA-48), in their seven-bit and their eight-bit form, those that
// never end included.
func withoutEscapes(text string) string {
	if !strings.ContainsAny(text, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		return text
	}
	var b strings.Builder
	runes := []rune(text)
	for i := 0; i < len(runes); {
		if n := escapeLength(runes[i:]); n > 0 {
			i += n
			continue
		}
		b.WriteRune(runes[i])
		i++
	}
	return b.String()
}

// escapeLength is the length of the sequence that text starts with, 0 for none.
func escapeLength(text []rune) int {
	switch text[0] {
	case 0x9B:
		return controlSequence(text, 1)
	case 0x90, 0x98, 0x9D, 0x9E, 0x9F:
		return controlString(text, 1)
	case 0x1B:
	default:
		return 0
	}
	if len(text) == 1 {
		return 1
	}
	switch text[1] {
	case '[':
		return controlSequence(text, 2)
	case 'P', 'X', ']', '^', '_':
		return controlString(text, 2)
	}
	i := 1
	for i < len(text) && text[i] >= 0x20 && text[i] <= 0x2F {
		i++
	}
	if i < len(text) && text[i] >= 0x30 && text[i] <= 0x7E {
		i++
	}
	return i
}

// controlSequence skips parameters, intermediates and the final byte of a CSI sequence from i on.
func controlSequence(text []rune, i int) int {
	for i < len(text) && text[i] >= 0x20 && text[i] <= 0x3F {
		i++
	}
	if i < len(text) && text[i] >= 0x40 && text[i] <= 0x7E {
		i++
	}
	return i
}

// controlString skips a string up to its terminator, or up to another sequence that breaks it off, or to the end.
func controlString(text []rune, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case 0x07, 0x9C:
			return i + 1
		case 0x1B:
			if i+1 < len(text) && text[i+1] == '\\' {
				return i + 2
			}
			return i
		}
	}
	return i
}
