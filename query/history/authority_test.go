package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query/history"
	"github.com/parleyrun/parley/sessionlog"
)

// corpus is a journal of random sessions in a few workspaces. Everything that a
// session says, is called or is titled is made of words that no other session
// has, beside the few that all of them share.
type corpus struct {
	*rand.Rand
	log      *memory.Journal
	sessions []sessionlog.Header
	words    map[string]string // a word of its own, and the workspace it belongs to
}

func (c *corpus) own(cwd string) string {
	w := fmt.Sprintf("w%dx", 1_000_000+c.IntN(9_000_000))
	if _, taken := c.words[w]; taken {
		return c.own(cwd)
	}
	c.words[w] = cwd
	return w
}

func (c *corpus) pick(from ...string) string { return from[c.IntN(len(from))] }

var shared = []string{"needle", "haystack", "the", "部署", "error"}

func newCorpus(t *testing.T, seed uint64) *corpus {
	c := &corpus{Rand: rand.New(rand.NewPCG(seed, 5)), log: memory.New(nil), words: map[string]string{}}
	for range 2 + c.IntN(7) {
		cwd := c.pick("/a", "/a/", "/b", "/b/c", "")
		h := sessionlog.Header{Version: sessionlog.V3, ID: "s-" + c.own(cwd), CreatedAt: int64(1000 + c.IntN(5)), CWD: cwd}
		switch n := len(c.sessions); {
		case n > 0 && c.IntN(2) == 0:
			h.ParentSession = c.sessions[c.IntN(n)].ID
		case c.IntN(5) == 0:
			h.ParentSession = "s-" + c.own("nobody's")
		}
		c.sessions = append(c.sessions, h)
		c.write(t, h)
	}
	return c
}

// write records a session: messages, some replaced by others, titles, calls.
func (c *corpus) write(t *testing.T, h sessionlog.Header) {
	say := func() string {
		return c.own(h.CWD) + " " + c.pick(shared...) + " " + c.pick(shared...) + " " + c.own(h.CWD)
	}
	message := func() sessionlog.Event {
		return sessionlog.NewEvent("user/message", map[string]any{"id": "m-" + c.own(h.CWD), "role": "user", "source": map[string]any{"kind": "user"},
			"content": []map[string]any{{"type": "text", "text": say()}}})
	}
	var events []sessionlog.Event
	add := func(ev sessionlog.Event) {
		events = append(events, ev.At(int64(len(events)), int64(2000+c.IntN(9))))
	}
	for range c.IntN(5) {
		switch c.IntN(7) {
		case 0:
			add(sessionlog.NewEvent("session/title", map[string]any{"title": say(), "messageSeqs": []int{}, "source": map[string]any{"kind": "user"}}))
		case 1:
			add(sessionlog.NewEvent("turn/start", map[string]any{"turn": len(events) + 1}))
			add(sessionlog.NewEvent("step/start", map[string]any{"turn": len(events), "step": 1}))
		case 2:
			if c.IntN(4) == 0 { // damage: a message without its place on the surface
				add(message())
				break
			}
			fallthrough
		default:
			add(message().Appended())
		}
	}
	done := make(chan error, 1)
	c.log.Append(journal.Batch{Session: h.ID, Header: &h, Events: events}, func(_ journal.Appended, err error) { done <- err })
	require.NoError(t, <-done)
}

// arguments are random, of things that exist here and elsewhere.
func (c *corpus) arguments() json.RawMessage {
	session := func() string { return c.sessions[c.IntN(len(c.sessions))].ID }
	some := func(one func() string) (out []string) {
		for range 1 + c.IntN(3) {
			out = append(out, one())
		}
		return out
	}
	args := map[string]any{"query": c.pick(shared...)}
	if c.IntN(4) == 0 {
		words := slices.Sorted(func(yield func(string) bool) {
			for w := range c.words {
				if !yield(w) {
					return
				}
			}
		})
		args["query"] = words[c.IntN(len(words))]
	}
	maybe := func(name string, value func() any) {
		if c.IntN(3) == 0 {
			args[name] = value()
		}
	}
	maybe("session_id", func() any { return session() })
	maybe("session_ids", func() any { return some(session) })
	maybe("parent_session_ids", func() any { return some(session) })
	maybe("include_root_sessions", func() any { return c.IntN(2) == 0 })
	maybe("event_surfaces", func() any { return []string{c.pick("current", "shadowed", "log-only")} })
	maybe("before", func() any { return c.IntN(5) })
	maybe("after", func() any { return c.IntN(5) })
	args["seq"] = c.IntN(5)
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return raw
}

var ownWord = regexp.MustCompile(`w\d{7}x`)

// No output of any tool, of whatever kind, holds a word that only exists in a
// workspace of others (S-016, S-018). PARLEY_CORPORA is how many corpora are tried.
func TestNothingOfAForeignWorkspaceIsSeen(t *testing.T) {
	t.Parallel()
	n := 1000
	if text := os.Getenv("PARLEY_CORPORA"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	seen, refused, hidden := 0, 0, 0
	for seed := range uint64(n) {
		c := newCorpus(t, seed)
		texts := memory.NewTexts(c.log)
		tools, err := history.New(history.Past{Journal: c.log, Texts: texts, Live: func(id string) bool { return len(id)%2 == 0 }},
			slog.New(slog.DiscardHandler), history.Config{MaxResults: 1 + c.IntN(4), Faithful: c.IntN(4) == 0})
		require.NoError(t, err)
		for range 12 {
			caller := c.sessions[c.IntN(len(c.sessions))]
			tool := history.All()[c.IntN(5)].Name
			args := c.arguments()
			text, err := tools.Call(t.Context(), caller.ID, tool, args)
			if err != nil {
				refused++
				text = err.Error()
				if code := messages.CodeOf(err); code == "" || code == messages.QueryFailed || code == messages.Bug {
					t.Fatalf("seed %d: %s %s of %s: %v", seed, tool, args, caller.ID, err)
				}
			}
			for _, w := range ownWord.FindAllString(text, -1) {
				at, ok := c.words[w]
				if own := strings.Contains(caller.ID, w) || caller.CWD != "" && at == caller.CWD; !ok || !own && !c.said(caller, w) {
					t.Fatalf("seed %d: %s %s of %s in %q shows %s of %q:\n%s", seed, tool, args, caller.ID, caller.CWD, w, at, text)
				}
				seen++
			}
			if strings.Contains(text, "outside workspace") {
				hidden++
			}
		}
		require.NoError(t, c.log.Close())
	}
	t.Logf("%d corpora: %d words of the caller's workspace shown, %d refusals, %d outputs that hide something", n, seen, refused, hidden)
	require.Positive(t, seen*refused*hidden, "a test that saw nothing shows nothing")
}

// said reports whether the caller itself, which may have no workspace, says a word.
func (c *corpus) said(caller sessionlog.Header, word string) bool {
	opened, err := c.log.Read(context.Background(), caller.ID, 0, 0)
	if err != nil {
		return false
	}
	for _, ev := range opened.Events {
		if strings.Contains(string(ev.Line()), word) {
			return true
		}
	}
	return false
}
