package messages

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on what may be said. Every one has its own clear error, TOO_LARGE or
// BAD_REQUEST, that names the field, the limit and the value found.
const (
	IDBytesMax        = 200       // session, root, call, attempt, message and submission ids
	NameBytesMax      = 200       // `by`, `reason`, `door`
	QueryBytesMax     = 2 << 20   // the arguments of a query tool, which may name many sessions
	TextBytesMax      = 64 << 10  // a steered text, one custom answer
	ArgumentsBytesMax = 256 << 10 // the tool call's argument text
	MessageBytesMax   = 1 << 20   // an assistant message
	AnswersMax        = 256       // items of one batch
	SelectedMax       = 256       // labels of one item
	PageMax           = 500       // rows of one page
)

// CheckID refuses an id that is empty, blank, over its limit, or holds control
// characters: an empty id that is once stored comes back for ever (fault E7).
func CheckID(field, id string) *Error {
	switch {
	case strings.TrimSpace(id) == "":
		return Refuse(BadRequest, "%s is empty; give it an id of 1 to %d bytes", field, IDBytesMax)
	case len(id) > IDBytesMax:
		return Refuse(TooLarge, "%s has %d bytes, the limit is %d", field, len(id), IDBytesMax)
	case !utf8.ValidString(id):
		return Refuse(BadRequest, "%s is not valid UTF-8", field)
	}
	for _, r := range id {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) { // they would show one id as another
			return Refuse(BadRequest, "%s %q holds a control character", field, id)
		}
	}
	return nil
}

// CheckText refuses a text over its limit.
func CheckText(field, text string, limit int) *Error {
	if len(text) > limit {
		return Refuse(TooLarge, "%s has %d bytes, the limit is %d", field, len(text), limit)
	}
	return nil
}

// CheckDir refuses a working directory that is not absolute, on any system: it
// is compared as a text, and "." is every project's. Empty is none.
func CheckDir(field, dir string) *Error {
	if dir != "" && !absolute(dir) {
		return Refuse(BadRequest, "%s is %.200q; give the absolute path of the directory, or leave it out for none", field, dir)
	}
	return CheckText(field, dir, TextBytesMax)
}

// absolute knows the paths of other systems, too: an agent's node may be elsewhere.
func absolute(dir string) bool {
	drive := len(dir) > 2 && unicode.IsLetter(rune(dir[0])) && dir[0] < utf8.RuneSelf && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/')
	return drive || strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, `\\`)
}
