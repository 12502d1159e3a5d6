package history

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// stub is a corpus by hand, which counts what it is asked.
type stub struct {
	all   []Session
	logs  map[string]Log
	step  int64
	pages map[string]Page // by the token they follow
	asked []string
	saw   *Search // the last search
	trip  func(asked string) error
	wait  func(context.Context)
}

func (s *stub) ask(what string) error {
	s.asked = append(s.asked, what)
	if s.trip != nil {
		return s.trip(what)
	}
	return nil
}

func (s *stub) Sessions(_ context.Context, ids []string) (out []Session, err error) {
	err = s.ask("sessions")
	for _, one := range s.all {
		if slices.Contains(ids, one.ID) {
			out = append(out, one)
		}
	}
	return out, err
}

func (s *stub) Children(_ context.Context, parents []string) (out []Session, err error) {
	err = s.ask("children")
	for _, one := range s.all {
		if one.Parent != "" && slices.Contains(parents, one.Parent) {
			out = append(out, one)
		}
	}
	return out, err
}

func (s *stub) Search(ctx context.Context, q *Search) (Page, error) {
	if s.wait != nil {
		s.wait(ctx)
	}
	err := s.ask("search")
	copied := *q
	s.saw = &copied
	return s.pages[q.After], err
}

func (s *stub) Log(_ context.Context, id string) (Log, error) {
	if err := s.ask("log"); err != nil {
		return Log{}, err
	}
	log, ok := s.logs[id]
	if !ok {
		return Log{}, messages.Refuse(messages.NotFound, "no session %q", id)
	}
	return log, nil
}

func (s *stub) LastStep(context.Context, string) (int64, error) { return s.step, s.ask("step") }

// small is a caller with one neighbour, and a session of somebody else's.
func small() *stub {
	return &stub{
		step: 7,
		all: []Session{
			{ID: "me", CWD: "/srv/work", Created: 1, Live: true, Persisted: true},
			{ID: "near", CWD: "/srv/work", Created: 2, Title: "Near", Persisted: true},
			{ID: "far", CWD: "/else", Created: 3, Title: "Secret", Persisted: true},
			{ID: "bare", Created: 4, Persisted: true},
		},
		pages: map[string]Page{},
		logs: map[string]Log{"near": {Header: sessionlog.Header{ID: "near", CWD: "/srv/work"}, Events: []sessionlog.Event{
			sessionlog.NewEvent("turn/start", map[string]int{"turn": 1}).At(0, 0)}}},
	}
}

func mounted(t *testing.T, c Corpus, cfg Config) *Tools {
	t.Helper()
	tools, err := New(c, slog.New(slog.DiscardHandler), cfg)
	require.NoError(t, err)
	return tools
}

func run(t *testing.T, c Corpus, caller, tool, args string) (string, error) {
	t.Helper()
	return mounted(t, c, Config{}).Call(t.Context(), caller, tool, json.RawMessage(args))
}

func code(err error) string {
	return strings.TrimPrefix(string(messages.CodeOf(err)), "SESSION_QUERY_")
}
