package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// What terminals send for the keys of a card.
func TestReadKeys(t *testing.T) {
	letter := func(s string) key { return key{keyRune, s} }
	for in, want := range map[string][]key{
		"a日é":                              {letter("a"), letter("日"), letter("é")},
		"\r":                               {{name: keyEnter}},
		"\n":                               {{name: keyNewLine}}, // Ctrl+J
		"\x1b\r":                           {{name: keyNewLine}}, // Alt+Enter
		"\x1b[13;2u":                       {{name: keyNewLine}}, // Shift+Enter
		"\x1b[27;2;13~":                    {{name: keyNewLine}}, // xterm's
		"\x1b[13;129u":                     {{name: keyEnter}},   // with num lock
		"\x1b[13u":                         {{name: keyEnter}},
		"\x1b[27u":                         {{name: keyEscape}},
		"\x1b[106;5u":                      {{name: keyNewLine}},
		"\x1b[99;5u":                       {{name: keyInterrupt}},
		"\x1b[99;5:1u":                     {{name: keyInterrupt}},
		"\x03":                             {{name: keyInterrupt}},
		"\t\x1b[Z\x1b[9;2u":                {{name: keyTab}, {name: keyBackTab}, {name: keyBackTab}},
		"\x1b[A\x1bOB":                     {{name: keyUp}, {name: keyDown}},
		"\x1b[1;5C\x1b[D":                  {{name: keyRight}, {name: keyLeft}},
		"\x1b[H\x1b[4~":                    {{name: keyHome}, {name: keyEnd}},
		"\x1b[5~\x1b[6~":                   {{name: keyPageUp}, {name: keyPageDown}},
		"\x7f\x1b[3~\x17":                  {{name: keyBackspace}, {name: keyDelete}, {name: keyEraseWord}},
		"\x1b[0n":                          {{name: keyPainted}},
		"1\x1b[0n2":                        {letter("1"), {name: keyPainted}, letter("2")},
		"\x1b[?1;2c\x1b[24~":               nil, // what nobody asked for means nothing
		"\x1b[200~a\r\x03\x1b[A\x1b[201~b": {{keyPaste, "a\r\x03\x1b[A"}, letter("b")},
		"\xff\x00\x1bx":                    nil,
		"\x1b\x1b":                         {{name: keyEscape}, {name: keyEscape}},
	} {
		keys, rest := readKeys([]byte(in), true)
		require.Equal(t, want, keys, "%q", in)
		require.Empty(t, rest, "%q", in)
	}
}

// A key that comes in pieces is one key; an Esc alone waits for what may follow.
func TestReadKeysInPieces(t *testing.T) {
	for _, in := range []string{"\x1b", "\x1b[", "\x1b[13;2", "\x1bO", "\xe6\x97", "\x1b[200~abc", "\x1b[200~abc\x1b[201"} {
		keys, rest := readKeys([]byte(in), false)
		require.Empty(t, keys, "%q", in)
		require.Equal(t, in, string(rest))
	}
	keys, _ := readKeys([]byte("\x1b"), true)
	require.Equal(t, []key{{name: keyEscape}}, keys)
}

func FuzzReadKeys(f *testing.F) {
	for _, seed := range []string{"a日", "\x1b[13;2u", "\x1b[200~x\x1b[201~", "\x1b[27;2;13~", "\xff\x1b", "\x1b[99999999999999999999;3u"} {
		f.Add([]byte(seed), 1)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole, rest := readKeys(in, false)
		if len(rest) > 0 && !bytes.HasSuffix(in, rest) {
			t.Errorf("the rest %q is no end of %q", rest, in)
		}
		cut = min(max(cut, 0), len(in))
		head, left := readKeys(in[:cut], false)
		tail, _ := readKeys(append(bytes.Clone(left), in[cut:]...), false)
		require.Equal(t, whole, append(head, tail...), "cut at %d", cut)
		readKeys(in, true)
	})
}
