package words_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parleyrun/parley/journal/words"
)

// S-064.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ☂":              "plain ☂",
		"a\x00b\ufdd0c\ufdd1d": "a\ufffdb\ufffdc\ufffdd",
		"\ufdcf\ufdd2":         "\ufdcf\ufdd2",
		"a\xed\xa0\xbdb":       "a\ufffdb", // an unpaired surrogate is one character
		"a\xed\xa0":            "a\ufffd\ufffd",
		"\xff\xfe":             "\ufffd\ufffd",
	} {
		if got := words.Clean(in); got != want {
			t.Errorf("%q is cleaned to %q, want %q", in, got, want)
		}
	}
}

// S-030, S-063: white space.
func TestCollapse(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		" \t\r\n ":                        "",
		"as it is":                        "as it is",
		"  spaced\n\n\tout   needle end ": "spaced out needle end",
		"a\u00a0\ufeff\u2028b\u3000c\u180ed\u0085e": "a b c\u180ed\u0085e",
		"a\v\fb": "a b",
		"tail ":  "tail",
	} {
		if got := words.Collapse(in); got != want {
			t.Errorf("%q is collapsed to %q, want %q", in, got, want)
		}
	}
}

// S-063.
func TestSnippet(t *testing.T) {
	needle := words.NewPhrase("needle", words.Whole)
	x := func(n int) string { return strings.Repeat("😀", n) }
	for _, c := range []struct{ name, text, want string }{
		{"short", " needle \n 1 ", "needle 1"},
		{"240 whole", "needle " + x(233), "needle " + x(233)},
		{"at the start", "needle " + x(234), "needle " + x(232) + "…"},
		{"80 before", x(79) + " needle " + x(300), x(79) + " needle " + x(152) + "…"},
		{"81 before", x(80) + " needle " + x(300), "…" + x(79) + " needle " + x(151) + "…"},
		{"the end just out of sight", x(200) + " needle " + x(153), "…" + x(79) + " needle " + x(151) + "…"},
		{"the end just in sight", x(200) + " needle " + x(152), "…" + x(79) + " needle " + x(152)},
		{"moved left to be full", x(200) + " needle " + x(151), "…" + x(80) + " needle " + x(151)},
		{"at the end", x(300) + " needle", "…" + x(232) + " needle"},
	} {
		got := words.Snippet(c.text, needle)
		if got != c.want {
			t.Errorf("%s: got %d characters\n%s\nwant %d\n%s", c.name, utf8.RuneCountInString(got), got, utf8.RuneCountInString(c.want), c.want)
		}
	}
}

// S-063: a phrase that is longer than what is shown of it.
func TestSnippetOfALongPhrase(t *testing.T) {
	query := strings.Repeat("needle ", 200)
	got := words.Snippet(strings.Repeat("x ", 100)+query+"end", words.NewPhrase(query, words.Whole))
	if want := "…" + strings.Repeat("x ", 40) + strings.Repeat("needle ", 22) + "need…"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// S-063 against its own sentences, on runes.
func TestSnippetsKeepTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"x ", "中", "😀", " \n", "é"})
		text := strings.Join(rapid.SliceOfN(unit, 0, 300).Draw(t, "before"), "") + " needle " + strings.Join(rapid.SliceOfN(unit, 0, 300).Draw(t, "after"), "")
		got := []rune(words.Snippet(text, words.NewPhrase("needle", words.Substring)))
		all := []rune(words.Collapse(text))
		if len(all) <= 240 {
			if string(got) != string(all) {
				t.Fatalf("%q of %q", string(got), string(all))
			}
			return
		}
		if len(got) != 240 {
			t.Fatalf("%d characters", len(got))
		}
		m := len([]rune(string(all)[:strings.Index(string(all), "needle")]))
		start, inner := max(0, m-80), got
		if start > 0 {
			if inner[0] != '…' {
				t.Fatalf("no mark before %q", string(inner))
			}
			inner = inner[1:]
		}
		if start+len(inner) >= len(all) { // near the end: full, and no mark behind
			start = len(all) - len(inner)
		} else if inner = inner[:len(inner)-1]; got[239] != '…' {
			t.Fatalf("no mark behind %q", string(got))
		}
		if string(inner) != string(all[start:start+len(inner)]) {
			t.Fatalf("%q of %q", string(got), string(all))
		}
	})
}
