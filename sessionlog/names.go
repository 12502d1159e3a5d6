package sessionlog

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// NoProject is the folder of sessions without a working directory (L-036).
const NoProject = "_no-cwd"

// projectMax is how long a project's name may be without its wrapping.
const projectMax = 251

// SessionSegment is the name of a session's folder (L-036): letters, digits, ".", "_" and "-" of its id stay, every
// other UTF-16 code unit becomes "~" and four hex digits, and a name that would walk the tree is escaped as a whole.
// No two ids share a name. An id may hold unpaired surrogates, as WTF-8.
func SessionSegment(id string) string {
	var b strings.Builder
	for unit := range units(id) {
		if plainUnit(unit) && id != "." && id != ".." {
			b.WriteByte(byte(unit))
		} else {
			escapeUnit(&b, unit)
		}
	}
	return b.String()
}

// ProjectSegment is the name of the folder that holds the sessions of a working directory (L-036). Names are lossy:
// two directories may share one, so a session's header says where it belongs, never its folder.
func ProjectSegment(cwd string) string {
	if cwd == "" {
		return NoProject
	}
	var b strings.Builder
	separated := false
	for unit := range units(cwd) {
		if unit == '/' || unit == '\\' || unit == ':' {
			if !separated {
				b.WriteByte('-')
			}
			separated = true
			continue
		}
		separated = false
		if plainUnit(unit) {
			b.WriteByte(byte(unit))
		} else {
			escapeUnit(&b, unit)
		}
	}
	name := strings.TrimLeft(b.String(), "-")
	if name == "" {
		name = "root"
	}
	return "--" + name[:min(len(name), projectMax)] + "--"
}

func plainUnit(u uint16) bool {
	return u >= 'a' && u <= 'z' || u >= 'A' && u <= 'Z' || u >= '0' && u <= '9' || u == '.' || u == '_' || u == '-'
}

func escapeUnit(b *strings.Builder, unit uint16) { fmt.Fprintf(b, "~%04X", unit) }

// units walks the UTF-16 code units of a text that may hold unpaired surrogates; a byte that is no character is
// U+FFFD.
func units(text string) func(yield func(uint16) bool) {
	return func(yield func(uint16) bool) {
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size <= 1 {
				if unit, n := surrogateAt([]byte(text[i:min(len(text), i+3)]), 0); n > 0 {
					r, size = rune(unit), n
				}
			}
			i += size
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				if !yield(uint16(high)) || !yield(uint16(low)) {
					return
				}
			} else if !yield(uint16(r)) {
				return
			}
		}
	}
}
