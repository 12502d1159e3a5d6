package history

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func TestS131ASearchHasATimeLimit(t *testing.T) {
	corpus := small()
	m := Mounted{Tools: mounted(t, corpus, Config{SearchTimeout: time.Millisecond})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	corpus.wait = func(ctx context.Context) { <-ctx.Done() }
	for _, tool := range []string{SearchSessions, SearchEvents} {
		_, err := m.Call(ctx, "me", tool, json.RawMessage(`{"query":"x"}`))
		assert.Equal(t, messages.ToolTimeout, messages.CodeOf(err), tool)
	}
	for _, tool := range m.List().GetTools() {
		assert.Equal(t, strings.Contains(tool.GetName(), "search"), tool.GetTimeoutMs() == 1 && tool.GetExclusive(), tool.GetName())
	}
}

// A model that follows the notes reads the whole result.
func TestS150ReadOn(t *testing.T) {
	ctx := t.Context()
	corpus := small()
	near := corpus.logs["near"]
	near.Events = []sessionlog.Event{sessionlog.NewEvent("todo/write", map[string]string{"text": strings.Repeat("漢字 and words, ", 1000)}).At(0, 0)}
	corpus.logs["near"] = near
	m := Mounted{Tools: mounted(t, corpus, Config{}), Spill: Spill{Inline: 2000, Store: &Kept{Bytes: 1 << 20}}}
	whole, err := m.Tools.Call(ctx, "me", ReadEvent, json.RawMessage(`{"session_id":"near","seq":0}`))
	require.NoError(t, err)
	text, err := m.Call(ctx, "me", ReadEvent, json.RawMessage(`{"session_id":"near","seq":0}`))
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), 2000)

	args := regexp.MustCompile(`session_result_read (\{.*\})`).FindStringSubmatch(text)[1]
	head := regexp.MustCompile(`"offset": (\d+)`).FindStringSubmatch(args)[1]
	var at int
	require.NoError(t, json.Unmarshal([]byte(head), &at))
	got := whole[:at]
	locator := regexp.MustCompile(`"locator": "(.*?)"`).FindStringSubmatch(args)[1]
	for next := args; ; {
		part, err := m.Call(ctx, "me", ReadResult, json.RawMessage(next))
		require.NoError(t, err)
		require.LessOrEqual(t, len(part), 2000)
		body, note, more := strings.Cut(part, "\n\n[More follows from offset ")
		got += body
		if !more {
			break
		}
		next = `{"locator":"` + locator + `","offset":` + strings.TrimSuffix(note, ".]") + `}`
	}
	assert.Equal(t, whole, got)
	assert.Len(t, m.List().GetTools(), 6)

	_, err = m.Call(ctx, "", ReadResult, json.RawMessage(args))
	assert.Equal(t, messages.QueryMissingAgent, messages.CodeOf(err))
	m.Spill = Spill{}
	_, err = m.Call(ctx, "me", ReadResult, json.RawMessage(args))
	assert.Equal(t, messages.NotFound, messages.CodeOf(err))
	assert.Len(t, m.List().GetTools(), 5)
}
