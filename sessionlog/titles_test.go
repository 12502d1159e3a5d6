package sessionlog

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// L-071: what a title must not hold; the vectors have more.
func TestL071Titles(t *testing.T) {
	for raw, want := range map[string]string{
		"":                            "",
		" \t\n ":                      "",
		"a\u00a0\u3000b":              "a b",
		"a\ufeffb\u00adc\u061cd":      "abcd",
		"a\u0085b":                    "ab",
		"\x1b[38;5;1mred\x1b[0m":      "red",
		"\u009b1mred":                 "red",
		"a\x1b[12":                    "a",
		"a\x1b":                       "a",
		"a\x1b(Bb":                    "ab",
		"a\x1b]0;t\x1b\\b":            "ab",
		"a\x1b]0;t\u009cb":            "ab",
		"a\x1b]0;never ends":          "a",
		"a\x1bPx\x1b[1mb":             "ab",
		"a\u009dx\ab":                 "ab",
		"\xff \xed\xa0\x80":           "\uFFFD \uFFFD",
		"a \u202e\u2066 b":            "a b",
		"\x1b[31m \x1b[0m":            "",
		"line\r\nline\u2028line\vend": "line line line end",
	} {
		equal(t, want, NormalizeTitle(raw, 100), raw)
	}
	equal(t, "", NormalizeTitle("é", 1))
	equal(t, "", NormalizeTitle("a", -1))
	equal(t, "a", NormalizeTitle("a b", 2))
	equal(t, "", FallbackTitle("a b", 0, 10))
	equal(t, "", FallbackTitle("a b", -1, 10))
	equal(t, "a b", FallbackTitle("\x1b[1ma\u00a0\n b", 9, 10))
}

// Whatever comes in: the title fits, is clean, and normalising it again changes nothing.
func FuzzNormalizeTitle(f *testing.F) {
	f.Add("a\x1b]0;t\ab \u202e", 5)
	f.Add("\x1b\x1b[\x1b", 3)
	f.Fuzz(func(t *testing.T, raw string, maxBytes int) {
		title := NormalizeTitle(raw, maxBytes)
		if len(title) > max(maxBytes, 0) || !utf8.ValidString(title) || title != strings.TrimFunc(title, IsSpace) {
			t.Fatalf("%q is %q", raw, title)
		}
		if strings.Contains(title, "  ") || strings.IndexFunc(title, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) || r != ' ' && IsSpace(r) }) >= 0 {
			t.Fatalf("%q is %q", raw, title)
		}
		equal(t, title, NormalizeTitle(title, maxBytes))
		if first := FallbackTitle(raw, 1, maxBytes); strings.Contains(first, " ") || !strings.HasPrefix(title, first) {
			t.Fatalf("%q begins with %q and is %q", raw, first, title)
		}
	})
}
