package words

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold makes one character of all that differ in case alone, or, for Latin
// letters, in diacritics. It stays one character: ß is not ss.
func fold(r rune) rune {
	if int(r) < len(folds) {
		return folds[r]
	}
	if kindOf(r) == spaceless {
		return r
	}
	return foldSlow(r)
}

func foldSlow(r rune) rune {
	r = foldCase(r)
	if !unicode.Is(unicode.Latin, r) {
		return r
	}
	parts := []rune(norm.NFD.String(string(r)))
	if len(parts) < 2 || !unicode.Is(unicode.Latin, parts[0]) {
		return r
	}
	return foldCase(parts[0])
}

// foldCase takes a detour over the upper case, on which all forms of a letter
// agree: both sigmas, the long s.
func foldCase(r rune) rune {
	if r == 'ı' { // without a dot: its upper case is that of another letter
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// compose joins two characters that are one written in parts, or returns the
// first.
func compose(r, next rune) rune {
	switch {
	case kindOf(next) == mark && !unicode.Is(unicode.Latin, r): // of Latin letters marks are taken off anyway
		var parts [2 * utf8.UTFMax]byte
		both := norm.NFC.Bytes(utf8.AppendRune(utf8.AppendRune(parts[:0], r), next))
		if one, n := utf8.DecodeRune(both); n == len(both) {
			return one
		}
	case r >= 0x1100 && r <= 0x1112 && next >= 0x1161 && next <= 0x1175: // Hangul, by arithmetic
		return 0xac00 + ((r-0x1100)*21+(next-0x1161))*28
	case r >= 0xac00 && r <= 0xd7a3 && (r-0xac00)%28 == 0 && next >= 0x11a8 && next <= 0x11c2:
		return r + next - 0x11a7
	}
	return r
}
