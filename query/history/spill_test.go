package history

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/parleyrun/parley/messages"
)

func TestS150AnOversizedResultIsKeptWhole(t *testing.T) {
	ctx := t.Context()
	text := strings.Repeat("a line of the result, with some ÄÖÜ and 漢字\n", 400)
	s := Spill{Inline: 2000, Store: &Kept{Bytes: 1 << 20}}
	got := s.Bound(ctx, "me", text)
	require.LessOrEqual(t, len(got), 2000)
	require.True(t, utf8.ValidString(got))
	body, note, found := strings.Cut(got, "\n\n[This result")
	require.True(t, found)
	assert.True(t, strings.HasPrefix(text, body[:1000]))
	assert.True(t, strings.HasSuffix(text, body[len(body)-100:]))

	var args struct {
		Locator string
		Offset  int
	}
	require.NoError(t, json.Unmarshal([]byte(regexp.MustCompile(`\{.*\}`).FindString(note)), &args))
	whole := text[:args.Offset]
	for at := args.Offset; at >= 0; {
		part, next, err := s.ReadOn(ctx, "me", args.Locator, at, 777)
		require.NoError(t, err)
		require.LessOrEqual(t, len(part), 777)
		whole, at = whole+part, next
	}
	assert.Equal(t, text, whole)

	_, _, err := s.ReadOn(ctx, "you", args.Locator, 0, 0)
	stranger := err.Error()
	_, _, err = s.ReadOn(ctx, "you", "result-NOTTHERE", 0, 0)
	assert.Equal(t, stranger, err.Error(), "another's result and none look the same")
	_, _, err = s.ReadOn(ctx, "me", args.Locator, len(text)+1, 0)
	assert.Equal(t, messages.BadRequest, messages.CodeOf(err))
}

func TestS150BetterLongThanLost(t *testing.T) {
	ctx := t.Context()
	text := strings.Repeat("x", 5000)
	for name, s := range map[string]Spill{
		"no limit": {Store: &Kept{Bytes: 1 << 20}}, "no store": {Inline: 2000}, "no room": {Inline: 2000, Store: &Kept{Bytes: 100}},
		"the note does not fit": {Inline: 10, Store: &Kept{Bytes: 1 << 20}}, "short enough": {Inline: 5000, Store: &Kept{Bytes: 1 << 20}},
	} {
		assert.Equal(t, text, s.Bound(ctx, "me", text), name)
	}
}

func TestKeptTextsMakeRoomForNewOnes(t *testing.T) {
	ctx := t.Context()
	k := &Kept{Bytes: 30}
	first, err := k.Save(ctx, "me", "0123456789")
	require.NoError(t, err)
	second, err := k.Save(ctx, "me", "0123456789")
	require.NoError(t, err)
	_, err = k.Load(ctx, "me", first) // now the second is the one read longest ago
	require.NoError(t, err)
	_, err = k.Save(ctx, "me", "01234567890123456789")
	require.NoError(t, err)
	_, err = k.Load(ctx, "me", second)
	assert.Equal(t, messages.NotFound, messages.CodeOf(err))
	_, err = k.Load(ctx, "me", first)
	assert.NoError(t, err)
}

func TestAPreviewIsNeverLongerThanItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 2000, -1).Draw(t, "text")
		s := Spill{Inline: rapid.IntRange(1, 3000).Draw(t, "inline"), Store: &Kept{Bytes: 1 << 20}}
		got := s.Bound(t.Context(), "me", text)
		if got != text && (len(got) > s.Inline || !utf8.ValidString(got)) {
			t.Errorf("%d bytes of %d allowed", len(got), s.Inline)
		}
	})
}
