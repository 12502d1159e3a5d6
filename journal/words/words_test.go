package words_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parleyrun/parley/journal/words"
)

// S-061: what a token is.
func TestTokens(t *testing.T) {
	for _, c := range []struct{ text, whole, substring string }{
		{"Alpha beta, GAMMA!", "alpha beta gamma", ""},
		{"foo_bar fooBar foo.bar", "foo bar foobar foo bar", ""},
		{`"quoted" AND NEAR(x) * col:val`, "quoted and near x col val", ""},
		{"x1 2y 3.14 v2.0", "x1 2y 3 14 v2 0", ""},
		{"emoji 😀 smile", "emoji smile", ""},
		{"Crème Brûlée naïve Ạ̈ ộ", "creme brulee naive a o", ""},
		{"e\u0301 cafe\u0301s", "e cafes", ""},
		{"Straße STRAẞE", "straße straße", ""},
		{"ΟΔΟΣ οδος ά", "οδοσ οδοσ ά", ""},
		{"Йод и\u0306од", "йод йод", ""}, // composed: Cyrillic letters keep their marks
		{"\ue000x\uf8ff", "\ue000x\uf8ff", ""},
		{"中文搜索 测试", "中文搜索 测试", "中 文 搜 索 测 试"},
		{"用Go语言写v2", "用go语言写v2", "用 go 语 言 写 v2"},
		{"カタカナー々", "カタカナー々", "カ タ カ ナ ー 々"},
		{"か\u3099", "が", "が"},
		{"한국어 \u1112\u1161\u11ab글", "한국어 한글", "한 국 어 한 글"},
		{"สวัสดี", "สว สด", "ส ว ส ด"}, // vowel signs separate, as in the reference
		{"a\x00b\xffc\ufffdd", "a b c d", ""},
		{"!!! — \u0301 _", "", ""},
		{"", "", ""},
	} {
		if c.substring == "" {
			c.substring = c.whole
		}
		for cut, want := range map[words.Cut]string{words.Whole: c.whole, words.Substring: c.substring} {
			if got := strings.Join(words.Tokens(c.text, cut), " "); got != want {
				t.Errorf("%q is cut %s into %q, want %q", c.text, cut, got, want)
			}
		}
	}
}

// S-060, S-061 and fault Q3: phrases that are in a text, and ones that are not.
func TestPhrases(t *testing.T) {
	for _, c := range []struct {
		text, query      string
		whole, substring int
	}{
		{"alpha-beta, GAMMA! alpha beta", "alpha  BETA", 2, 2},
		{"beta alpha", "alpha beta", 0, 0},
		{"alphabet", "alpha", 0, 0},
		{"user AND OR NOT", "OR NOT", 1, 1},
		{"anything", "*", 0, 0},
		{"anything", "", 0, 0},
		{"我们在中文搜索里找词", "中文", 0, 1},
		{"我们在中文搜索里找词", "搜索里", 0, 1},
		{"我们在中文搜索里找词", "中文搜索", 0, 1},
		{"我们在中文搜索里找词", "我们在中文搜索里找词", 1, 1},
		{"我们在中文搜索里找词", "文中", 0, 0},
		{"日本語のテストです", "テスト", 0, 1},
		{"학교에서 배웠다", "학교", 0, 1},
		{"使用SQLite数据库", "sqlite", 0, 1},
		{"使用SQLite数据库", "SQLite数据", 0, 1},
		{"a a a", "a a", 1, 1},
		{"a a b a a", "a a", 2, 2},
		{"a a a a", "a", 4, 4},
		{"a b a b a c a b a", "a b a", 2, 2},
		{"哈哈哈哈", "哈哈", 0, 1},
	} {
		for cut, want := range map[words.Cut]int{words.Whole: c.whole, words.Substring: c.substring} {
			if got := words.NewPhrase(c.query, cut).Count(c.text); got != want {
				t.Errorf("%q has %q %d times, cut %s; want %d", c.text, c.query, got, cut, want)
			}
		}
	}
}

// S-062: a span covers what the phrase covers, to the byte.
func TestSpansAreHighlighted(t *testing.T) {
	got := highlight("né NÉE née, né! 中né", words.NewPhrase("ne", words.Substring))
	if want := "[né] NÉE née, [né]! 中[né]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = highlight("a a b a, a a", words.NewPhrase("a a", words.Whole))
	if want := "[a a] b [a, a a]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func highlight(text string, p words.Phrase) string {
	out, at := "", 0
	p.Spans(text, func(s words.Span) bool {
		out += text[at:s.Start] + "[" + text[s.Start:s.End] + "]"
		at = s.End
		return true
	})
	return out + text[at:]
}

// someText draws texts that are made of what matters.
func someText(t *rapid.T) string {
	parts := []string{"a", "B", "ab", "é", "e\u0301", " ", "  ", "\n", "-", "_", "中", "文", "ア", "ー", "한", "\u1112", "\u1161", "\u11ab", "ß", "Σ", "ς", "ก", "\u0e31", "\u3099", "か", "😀", "1", "\x00", "\xff", "\ufdd0", "\u00a0"}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 14).Draw(t, "text"), "")
}

// S-062 against the plainest reading of the rule.
func TestSpansAgreeWithComparingEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, query := someText(t), someText(t)
		for _, cut := range []words.Cut{words.Whole, words.Substring} {
			p := words.NewPhrase(query, cut)
			if got, want := p.Count(text), slowCount(words.Tokens(text, cut), words.Tokens(words.Clean(query), cut)); got != want {
				t.Fatalf("%q has %q %d times, cut %s; want %d", text, query, got, cut, want)
			}
		}
	})
}

func slowCount(text, phrase []string) (n int) {
	end := 0
	for i := range text {
		if len(phrase) > 0 && i+len(phrase) <= len(text) && slices.Equal(text[i:i+len(phrase)], phrase) {
			if i >= end {
				n++
			}
			end = i + len(phrase)
		}
	}
	return n
}

// The invariant of Substring, on which backends build.
func TestSubstringOnlyCutsFurther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, query := someText(t), someText(t)
		whole, sub := words.Tokens(text, words.Whole), words.Tokens(text, words.Substring)
		if strings.Join(whole, "") != strings.Join(sub, "") {
			t.Fatalf("%q is cut into %q and %q", text, whole, sub)
		}
		if words.NewPhrase(query, words.Whole).Count(text) > 0 && words.NewPhrase(query, words.Substring).Count(text) == 0 {
			t.Fatalf("%q is found whole in %q, and not as a substring", query, text)
		}
		var again []string
		for _, w := range whole {
			again = append(again, words.Tokens(w, words.Substring)...)
		}
		if !slices.Equal(again, sub) {
			t.Fatalf("%q is cut into %q, its tokens into %q", text, sub, again)
		}
		tokens, spaceless := words.AppendTokens(nil, text, words.Whole)
		if !spaceless && !slices.Equal(whole, sub) {
			t.Fatalf("%q is said to have no script without spaces", text)
		}
		if string(tokens) != strings.Join(append(whole, ""), " ") {
			t.Fatalf("%q has the tokens %q", text, tokens)
		}
	})
}

// S-061: a token is found as it was made, whatever its case.
func TestFoldingIsFinal(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		for _, token := range words.Tokens(string(r), words.Whole) {
			if again := words.Tokens(token, words.Whole); len(again) != 1 || again[0] != token {
				t.Fatalf("%U is folded to %q, and that to %q", r, token, again)
			}
			if strings.ContainsFunc(token, func(r rune) bool { return r < 0x80 && (r < '0' || r > '9' && r < 'a' || r > 'z') }) {
				t.Fatalf("%U is folded to %q", r, token)
			}
		}
	}
}
