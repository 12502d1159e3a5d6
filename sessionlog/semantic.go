package sessionlog

import (
	"strings"
	"unicode/utf8"
)

// The types that are read for their words and by no fold.
const (
	TypeTitle = "session/title"
	TypeTodo  = "todo/write"
)

// SemanticText is what an event says, in words (S-070): its parts trimmed, empty ones dropped, joined by line feeds.
// Empty for an event that says nothing, which cannot be searched. The event must be in the shape that Upgrade gives.
// The text is valid UTF-8: an unpaired surrogate is U+FFFD.
func SemanticText(ev Event) string {
	data := value(ev.Data)
	var t parts
	switch ev.Type {
	case TypeUserMessage:
		t.blocks(data.get("content"), 0)
	case TypeAssistantMessage:
		t.blocks(data.get("message").get("content"), 0)
	case TypeToolCall:
		t.add(data.get("name"))
		t.add(data.get("arguments"))
	case TypeToolResult:
		t.blocks(data.get("message").get("content"), 0)
		t.add(data.get("error").get("name"))
		t.add(data.get("error").get("code"))
	case TypeTodo:
		for item := range data.get("todos").elements {
			t.add(item.get("status"))
			t.add(item.get("content"))
		}
	case TypeTurnEnd:
		t.end(data.get("reason"))
	}
	return t.String()
}

// TitleOf reads the title that a session/title gives its session; the latest one counts, as it is stored (L-070,
// S-110). False for any other event.
func TitleOf(ev Event) (title string, ok bool) {
	if ev.Type != TypeTitle {
		return "", false
	}
	title, ok = value(ev.Data).get("title").str()
	return wellFormed(title), ok
}

// parts collects the parts of a text.
type parts struct{ strings.Builder }

func (t *parts) add(v value) {
	if text, ok := v.str(); ok {
		t.addText(wellFormed(text))
	}
}

func (t *parts) addText(text string) {
	if text = strings.TrimFunc(text, IsSpace); text == "" {
		return
	}
	if t.Len() > 0 {
		t.WriteByte('\n')
	}
	t.WriteString(text)
}

// blocksDepthMax is how deep results may stand in results. Each level is read again by the one above it, so a hostile
// event would cost far more than its bytes; a real one has a single level.
const blocksDepthMax = 32

// blocks adds the texts of a content list. Reasoning, pictures and what nobody knows say nothing.
func (t *parts) blocks(content value, depth int) {
	if depth > blocksDepthMax {
		return
	}
	t.add(content) // the older form of one text
	for block := range content.elements {
		switch typ := block.get("type"); {
		case typ.is("text"):
			t.add(block.get("text"))
		case typ.is("tool-call"):
			t.add(block.get("name"))
			t.add(block.get("arguments"))
		case typ.is("tool-result"):
			t.blocks(block.get("content"), depth+1)
		}
	}
}

// end adds why a turn ended, if that is worth finding.
func (t *parts) end(reason value) {
	switch kind := reason.get("kind"); {
	case kind.is("error"):
		t.addText("error")
		t.add(reason.get("error").get("message"))
	case kind.is("aborted"), kind.is("max-tokens"), kind.is("interrupted"):
		t.add(kind)
	}
}

// IsSpace says whether a character is white space as the format's texts are trimmed and split (S-030): that of
// ECMAScript, which has the byte-order mark and does not have U+0085.
func IsSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == 0xA0, r == 0x1680, r >= 0x2000 && r <= 0x200A,
		r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F, r == 0x3000, r == 0xFEFF:
		return true
	}
	return false
}

// wellFormed replaces every unpaired surrogate of a text, and every byte that is no character, by U+FFFD.
func wellFormed(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size <= 1 {
			if _, n := surrogateAt([]byte(text[i:min(len(text), i+3)]), 0); n > 0 {
				size = n
			}
		}
		b.WriteRune(r)
		i += size
	}
	return b.String()
}
