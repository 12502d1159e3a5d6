package words_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parleyrun/parley/journal/words"
)

// Whatever bytes a log or a query has: nothing panics, what is shown is UTF-8,
// and counts agree with comparing everywhere.
func FuzzPhrase(f *testing.F) {
	for _, q := range []string{"", "a", "a a", "中文", `AND OR NOT NEAR( * " :`, "e\u0301", "\x00\xff\ufdd0", "\u1112\u1161\u11ab", "ß İ ı ſ"} {
		f.Add(q, "some "+q+q+" text "+strings.Repeat(q+" ", 200))
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		text = words.Clean(text)
		if !utf8.ValidString(text) || words.Clean(text) != text || strings.ContainsAny(text, "\x00\ufdd0\ufdd1") {
			t.Fatalf("%q is not clean", text)
		}
		once := words.Collapse(text)
		if words.Collapse(once) != once || !slices.Equal(words.Tokens(once, words.Whole), words.Tokens(text, words.Whole)) {
			t.Fatalf("%q is collapsed to %q", text, once)
		}
		for _, cut := range []words.Cut{words.Whole, words.Substring} {
			p := words.NewPhrase(query, cut)
			if got, want := p.Count(text), slowCount(words.Tokens(text, cut), p.Tokens()); got != want {
				t.Fatalf("%q has %q %d times, cut %s; want %d", text, query, got, cut, want)
			}
			snippet := words.Snippet(text, p)
			if !utf8.ValidString(snippet) || utf8.RuneCountInString(snippet) > 240 {
				t.Fatalf("%q is shown as %q", text, snippet)
			}
			end := 0
			p.Spans(text, func(s words.Span) bool {
				if s.Start < end || s.End <= s.Start || s.End > len(text) {
					t.Fatalf("%q has a span %v after %d", text, s, end)
				}
				end = s.End
				return true
			})
		}
	})
}
