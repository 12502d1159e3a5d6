// Package words is what search means by a word: the tokens of a text, the
// phrase a query is, and what is shown of a text that has it.
//
// It decides where a phrase stands in a text and how often. Every backend of
// the text index asks it, so that they cannot differ. It never decides which
// texts are searched, or in what order they are shown beyond that count.
package words

import (
	"unicode"
	"unicode/utf8"
)

// Cut is how a text is cut into tokens. Both cuts take a run of letters and
// digits of any script, private use included, and let everything else separate
// (S-061); they fold case by character and take the diacritics off Latin
// letters.
type Cut int

const (
	// Whole takes every run as one token, as the reference does: a word inside
	// a run of Chinese is not found.
	Whole Cut = iota
	// Substring takes each character of a script that writes no spaces between
	// words as a token of its own, so that any part of a sentence is a phrase,
	// and what is glued to it, a Latin name say, can be found by itself.
	//
	// Invariant: it only cuts the tokens of Whole further, each the same way
	// wherever it stands. So what matches whole also matches here.
	Substring
)

// String returns the name of the cut.
func (c Cut) String() string { return [...]string{"whole", "substring"}[c] }

// scanner walks the tokens of a text. Make one with scan.
type scanner struct {
	text string
	cut  Cut
	at   int    // where it goes on
	buf  []byte // the token, if it is not the text's own bytes
	cjk  bool   // it has met a script without spaces
}

// scan returns a scanner at the start of text. Bytes that are not UTF-8
// separate.
func scan(text string, cut Cut) scanner { return scanner{text: text, cut: cut} }

// next returns the next token, folded, which is good until the call after, and
// the bytes of the text it was made of; nil at the end.
func (s *scanner) next() (token []byte, start, end int) {
	i := s.skip(s.at)
	start, s.buf = i, s.buf[:0]
	for i < len(s.text) {
		if c := s.text[i]; c < utf8.RuneSelf {
			f := asciiFold[c]
			if f == 0 {
				break
			}
			s.buf = append(s.buf, f)
			i++
			continue
		}
		r, n := s.unit(i)
		kind := kindOf(r)
		if kind == mark { // on a Latin letter, or one that it does not combine with
			i += n
			continue
		}
		if kind == separator {
			break
		}
		if kind == spaceless {
			s.cjk = true
			if s.cut == Substring {
				if len(s.buf) == 0 {
					s.buf = utf8.AppendRune(s.buf, fold(r))
					i = s.marks(i + n)
				}
				break
			}
		}
		s.buf = utf8.AppendRune(s.buf, fold(r))
		i += n
	}
	s.at = i
	if len(s.buf) == 0 {
		return nil, i, i
	}
	return s.buf, start, i
}

// skip returns where the next token starts. A mark by itself is none.
func (s *scanner) skip(i int) int {
	for i < len(s.text) {
		if c := s.text[i]; c < utf8.RuneSelf {
			if asciiFold[c] != 0 {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if k := kindOf(r); k != separator && k != mark {
			return i
		}
		i += n
	}
	return i
}

// marks returns where marks that follow end.
func (s *scanner) marks(i int) int {
	for i < len(s.text) && s.text[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if kindOf(r) != mark {
			break
		}
		i += n
	}
	return i
}

// unit reads the character at i, composed with what follows if that is how the
// text was written: some systems keep names decomposed, and nobody types them so.
func (s *scanner) unit(i int) (rune, int) {
	r, n := utf8.DecodeRuneInString(s.text[i:])
	if i+n >= len(s.text) || s.text[i+n] < utf8.RuneSelf || kindOf(r) == separator {
		return r, n
	}
	next, m := utf8.DecodeRuneInString(s.text[i+n:])
	if c := compose(r, next); c != r {
		if last, k := utf8.DecodeRuneInString(s.text[i+n+m:]); c != compose(c, last) { // a third part
			return compose(c, last), n + m + k
		}
		return c, n + m
	}
	return r, n
}

// AppendTokens appends the tokens of a text with a space after each, and
// reports whether the text has a script that writes no spaces: without one,
// both cuts are the same.
func AppendTokens(dst []byte, text string, cut Cut) (_ []byte, spaceless bool) {
	s := scan(text, cut)
	for {
		token, _, _ := s.next()
		if token == nil {
			return dst, s.cjk
		}
		dst = append(append(dst, token...), ' ')
	}
}

// Tokens returns the tokens of a text.
func Tokens(text string, cut Cut) []string {
	var out []string
	s := scan(text, cut)
	for {
		token, _, _ := s.next()
		if token == nil {
			return out
		}
		out = append(out, string(token))
	}
}

// kind is what a character does to a token.
type kind uint8

const (
	separator kind = iota
	letter
	spaceless // a letter of a script that writes no spaces between words
	mark      // belongs to the letter before it
)

// kinds of the characters below its length; kindOf knows the others. folds
// likewise.
var (
	asciiFold [utf8.RuneSelf]byte // 0 for a separator
	kinds     [0x3100]kind
	folds     [0x2000]rune
)

func init() {
	for r := range rune(utf8.RuneSelf) {
		if classify(r) == letter {
			asciiFold[r] = byte(unicode.ToLower(r))
		}
	}
	for r := range rune(len(kinds)) {
		kinds[r] = classify(r)
	}
	for r := range rune(len(folds)) {
		folds[r] = foldSlow(r)
	}
}

func kindOf(r rune) kind {
	switch {
	case int(r) < len(kinds):
		return kinds[r]
	case r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3: // nearly all of what gets here
		return spaceless
	}
	return classify(r)
}

func classify(r rune) kind {
	switch {
	case r >= 0x300 && r <= 0x36f, r == 0x3099, r == 0x309a:
		return mark
	case !unicode.In(r, unicode.L, unicode.N, unicode.Co):
		return separator
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar),
		r == 0x30fc, r == 0xff70, r == 0xff9e, r == 0xff9f: // lengthening and voicing of kana, of no script
		return spaceless
	}
	return letter
}
