package sessionlog

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// L-036: folders of sessions and projects; the vectors have more.
func TestL036Segments(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "...": "...", ".": "~002E", "a\x00b": "a~0000b", "\xed\xa0\x80": "~D800", "\xff": "~FFFD", "😀~": "~D83D~DE00~007E",
	} {
		equal(t, want, SessionSegment(id), id)
	}
	for cwd, want := range map[string]string{
		"": "_no-cwd", "/": "--root--", "///": "--root--", "/a/": "--a---", "-/-a": "--a--", `C:\x`: "--C-x--", "/.": "--.--",
	} {
		equal(t, want, ProjectSegment(cwd), cwd)
	}
	equal(t, "--"+strings.Repeat("k", 251)+"--", ProjectSegment("/"+strings.Repeat("k", 300)))
}

// A segment is one harmless file name, and of a session it is its own.
func FuzzSegments(f *testing.F) {
	f.Add("../x", "..")
	f.Add("\xed\xa0\x80", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, id := range []string{a, b} {
			if s := SessionSegment(id); s == "." || s == ".." || strings.ContainsAny(s, "/\\:\x00 ") || !ascii(s) {
				t.Fatalf("%q is named %q", id, s)
			}
			if p := ProjectSegment(id); len(p) > 255 || strings.ContainsAny(p, "/\\:\x00 ") || !ascii(p) || p == "" {
				t.Fatalf("%q is named %q", id, p)
			}
		}
		if validWTF8([]byte(a)) && validWTF8([]byte(b)) && a != b && SessionSegment(a) == SessionSegment(b) {
			t.Fatalf("%q and %q share the name %q", a, b, SessionSegment(a))
		}
	})
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r >= utf8.RuneSelf }) < 0
}
