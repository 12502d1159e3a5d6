package main

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// keyName names what a person pressed, whatever a terminal calls it.
type keyName int

const (
	keyNone      keyName = iota
	keyRune              // a letter; text has it
	keyPaste             // text from the clipboard, never a command
	keyPainted           // no key: the terminal's word that it has shown what was sent to it
	keyEnter             // submits or goes on
	keyNewLine           // Shift+Enter, Alt+Enter or Ctrl+J
	keyEscape            //
	keyInterrupt         // Ctrl+C
	keyTab
	keyBackTab
	keyUp
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyPageUp
	keyPageDown
	keyBackspace
	keyDelete
	keyEraseWord // Ctrl+W, Alt+Backspace
	keyEraseLine // Ctrl+U
)

type key struct {
	name keyName
	text string
}

func (k key) is(letter rune) bool { return k.name == keyRune && k.text == string(letter) }

// What a terminal is told when a card opens and closes. Where it does not know one it ignores it.
const (
	terminalOpen  = "\x1b[?1049h\x1b[?2004h\x1b[>1u\x1b[>4;1m\x1b[?7l\x1b[?25l\x1b[2J" // another screen, pastes in brackets, Shift+Enter told apart
	terminalClose = "\x1b[?7h\x1b[>4;0m\x1b[<u\x1b[?2004l\x1b[?25h\x1b[?1049l"
	askPainted    = "\x1b[5n" // status report: the answer comes behind every key that was typed before it
)

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	escapeMax  = 64 // bytes of one sequence; a longer one is none
)

var controls = map[byte]keyName{
	'\r': keyEnter, '\n': keyNewLine, '\t': keyTab, 0x03: keyInterrupt, 0x7f: keyBackspace, 0x08: keyBackspace,
	0x17: keyEraseWord, 0x15: keyEraseLine, 0x01: keyHome, 0x05: keyEnd, 0x10: keyUp, 0x0e: keyDown, 0x04: keyDelete,
}

var finals = map[byte]keyName{'A': keyUp, 'B': keyDown, 'C': keyRight, 'D': keyLeft, 'H': keyHome, 'F': keyEnd, 'Z': keyBackTab}

var tildes = map[int]keyName{1: keyHome, 7: keyHome, 4: keyEnd, 8: keyEnd, 3: keyDelete, 5: keyPageUp, 6: keyPageDown}

// readKeys decodes what a terminal sends. What may be the beginning of more stays in rest, unless no more will come.
func readKeys(in []byte, last bool) (keys []key, rest []byte) {
	for len(in) > 0 {
		k, n := readKey(in, last)
		if n == 0 {
			return keys, in
		}
		if k.name != keyNone {
			keys = append(keys, k)
		}
		in = in[n:]
	}
	return keys, nil
}

// readKey decodes one key; n is 0 when more bytes must come first.
func readKey(in []byte, last bool) (k key, n int) {
	switch b := in[0]; {
	case b == 0x1b:
		return readEscape(in, last)
	case b < 0x20 || b == 0x7f:
		return key{name: controls[b]}, 1
	case b < utf8.RuneSelf:
		return key{keyRune, string(rune(b))}, 1
	case !utf8.FullRune(in) && !last:
		return key{}, 0
	}
	r, n := utf8.DecodeRune(in)
	if r == utf8.RuneError {
		return key{}, n
	}
	return key{keyRune, string(in[:n])}, n
}

func readEscape(in []byte, last bool) (key, int) {
	switch {
	case bytes.HasPrefix(in, []byte(pasteBegin)):
		return readPaste(in, last)
	case len(in) == 1 && last:
		return key{name: keyEscape}, 1
	case len(in) == 1:
		return key{}, 0
	case in[1] == '[':
		return readSequence(in, last)
	case in[1] == 'O' && len(in) > 2:
		return key{name: finals[in[2]]}, 3
	case in[1] == 'O' && !last:
		return key{}, 0
	case in[1] == '\r' || in[1] == '\n':
		return key{name: keyNewLine}, 2 // Alt+Enter
	case in[1] == 0x7f || in[1] == 0x08:
		return key{name: keyEraseWord}, 2
	case in[1] == 0x1b:
		return key{name: keyEscape}, 1
	}
	return key{}, 2 // Alt and a letter means nothing here
}

func readPaste(in []byte, last bool) (key, int) {
	end := bytes.Index(in, []byte(pasteEnd))
	switch {
	case end >= 0:
		return key{keyPaste, strings.ToValidUTF8(string(in[len(pasteBegin):end]), "")}, end + len(pasteEnd)
	case last && len(in) == len(pasteBegin):
		return key{}, len(in)
	}
	return key{}, 0
}

// readSequence decodes ESC [ parameters final.
func readSequence(in []byte, last bool) (key, int) {
	for n := 2; n < len(in) && n < escapeMax; n++ {
		if b := in[n]; b >= 0x40 && b <= 0x7e {
			return sequence(string(in[2:n]), b), n + 1
		} else if b < 0x20 {
			return key{}, n
		}
	}
	if last || len(in) >= escapeMax {
		return key{}, min(len(in), escapeMax)
	}
	return key{}, 0
}

func sequence(params string, final byte) key {
	var numbers []int
	for part := range strings.SplitSeq(params, ";") {
		number, _, _ := strings.Cut(part, ":")
		n, _ := strconv.Atoi(number)
		numbers = append(numbers, n)
	}
	numbers = append(numbers, 0, 0, 0)
	switch {
	case final == 'n' && params == "0":
		return key{name: keyPainted}
	case final == 'u':
		return modified(numbers[0], numbers[1])
	case final == '~' && numbers[0] == 27: // xterm's way to say the same
		return modified(numbers[2], numbers[1])
	case final == '~':
		return key{name: tildes[numbers[0]]}
	}
	return key{name: finals[final]}
}

// modified is a key that a terminal sends by its code point, with what was held down.
func modified(code, mods int) key {
	mods = max(mods-1, 0)
	shift, alt, ctrl := mods&1 != 0, mods&2 != 0, mods&4 != 0
	switch {
	case code == '\r' && mods&7 != 0:
		return key{name: keyNewLine}
	case code == '\t' && shift:
		return key{name: keyBackTab}
	case code == 0x7f && (alt || ctrl):
		return key{name: keyEraseWord}
	case code == 0x1b:
		return key{name: keyEscape}
	case ctrl && code >= 'a' && code <= 'z':
		return key{name: controls[byte(code-'a'+1)]}
	case alt || ctrl:
		return key{}
	case code < 0x20 || code == 0x7f:
		return key{name: controls[byte(max(code, 0))]}
	case code > utf8.MaxRune:
		return key{}
	}
	return key{keyRune, string(rune(code))}
}
