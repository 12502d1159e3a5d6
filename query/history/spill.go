package history

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
)

// Spill keeps results that are too long for a model and gives a preview in
// their place (S-150). The tools know nothing of it.
type Spill struct {
	// Inline is how many bytes of UTF-8 a result may have. 0: any number.
	Inline int
	Store  Store
}

// Store keeps texts under opaque locators.
type Store interface {
	// Save keeps a text for its owner alone.
	Save(ctx context.Context, owner, text string) (locator string, err error)
	// Load returns a text to its owner. To anybody else, and when it is no
	// longer there, messages.NotFound.
	Load(ctx context.Context, owner, locator string) (string, error)
}

// Bound returns the text itself, or a preview of it that is not longer than
// Inline: its head and its end, an empty line, and a note that says where the
// whole is kept and how to read on. If the note alone would be too long, or the
// text cannot be kept, the text comes back as it is: better long than lost.
func (s Spill) Bound(ctx context.Context, owner, text string) string {
	if s.Inline <= 0 || len(text) <= s.Inline || s.Store == nil {
		return text
	}
	const gap = "\n[…]\n"
	// The note is measured with the longest numbers it can have, before
	// anything is kept for nothing.
	room := s.Inline - len(spillNote(len(text), len(text), len(text), locatorForm)) - len(gap)
	if room < 0 {
		return text
	}
	locator, err := s.Store.Save(ctx, owner, text)
	if err != nil || len(locator) > len(locatorForm) {
		return text
	}
	head := wholeRunes(text, room*3/4)
	tail := text[len(text)-room/4:]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return text[:head] + gap + tail + spillNote(len(text), head, len(tail), locator)
}

// locatorForm has the length of every locator of Kept.
const locatorForm = "result-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func spillNote(whole, head, tail int, locator string) string {
	return fmt.Sprintf("\n\n[This result has %d bytes; its first %d and last %d are shown. The whole is kept as %s for a while: read on with %s {\"locator\": %q, \"offset\": %d}.]",
		whole, head, tail, locator, ReadResult, locator, head)
}

// wholeRunes is the largest length up to n at which no character is cut.
func wholeRunes(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// Kept is a Store in memory. What is read last goes last; a result that is gone
// can be had again by calling its tool again. The zero value keeps nothing.
type Kept struct {
	Bytes int // of all texts together, at most

	mu    sync.Mutex
	texts map[string]*kept
	used  int
	clock uint64
}

type kept struct {
	owner, text string
	read        uint64
}

// Save implements Store. A text that is longer than all the room there is is
// messages.TooLarge.
func (k *Kept) Save(_ context.Context, owner, text string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(text) > k.Bytes {
		return "", messages.Refuse(messages.TooLarge, "a result of %d bytes; at most %d are kept", len(text), k.Bytes)
	}
	for k.used+len(text) > k.Bytes {
		oldest := ""
		for locator, t := range k.texts {
			if oldest == "" || t.read < k.texts[oldest].read {
				oldest = locator
			}
		}
		k.used -= len(k.texts[oldest].text)
		delete(k.texts, oldest)
	}
	if k.texts == nil {
		k.texts = map[string]*kept{}
	}
	locator := "result-" + rand.Text()
	k.clock++
	k.texts[locator] = &kept{owner: owner, text: text, read: k.clock}
	k.used += len(text)
	return locator, nil
}

// Load implements Store.
func (k *Kept) Load(_ context.Context, owner, locator string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.texts[locator]
	if !ok || t.owner != owner {
		return "", messages.Refuse(messages.NotFound, "no result is kept under this locator; call its tool again")
	}
	k.clock++
	t.read = k.clock
	return t.text, nil
}

// ReadResult is the tool that reads on in what was spilled. It is mounted with
// a Spill only, and its own results are never spilled.
const ReadResult = "session_result_read"

// ReadOn returns the part of a kept text from a byte offset on, at most limit
// bytes, never cutting a character, and the offset behind it, -1 at the end.
func (s Spill) ReadOn(ctx context.Context, owner, locator string, offset, limit int) (part string, next int, err error) {
	if s.Store == nil {
		return "", 0, messages.Refuse(messages.NotFound, "this node keeps no results")
	}
	text, err := s.Store.Load(ctx, owner, locator)
	if err != nil {
		return "", 0, err
	}
	if offset < 0 || offset > len(text) {
		return "", 0, messages.Refuse(messages.BadRequest, "offset %d: the result has %d bytes", offset, len(text))
	}
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	text = text[offset:]
	if limit <= 0 || limit >= len(text) {
		return text, -1, nil
	}
	n := wholeRunes(text, limit)
	if n == 0 {
		_, n = utf8.DecodeRuneInString(text)
	}
	if n == len(text) {
		return text, -1, nil
	}
	return text[:n], offset + n, nil
}
