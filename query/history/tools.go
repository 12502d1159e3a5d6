package history

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/parleyrun/parley/messages"
)

// The names of the tools (S-001).
const (
	SearchSessions = "session_search"
	SearchEvents   = "session_event_search"
	TraceSession   = "session_trace"
	TraceEvent     = "session_event_trace"
	ReadEvent      = "session_event_read"
)

// Config is what a deployment decides (S-004). Zero values are the defaults.
type Config struct {
	// MaxResults is how many hits a search returns at most. Default 100.
	MaxResults int
	// SearchTimeout is how long a search may take. Default 30 s.
	SearchTimeout time.Duration
	// WindowMax is how many events before and after its target a read may show.
	// Default 50.
	WindowMax int
	// Workspace returns all names under which the workspace of this name may
	// stand in headers, itself among them. nil: names are compared as they are (S-012).
	Workspace func(ctx context.Context, cwd string) ([]string, error)
	// Faithful searches exactly as the reference does: a run of CJK characters
	// is one word (S-061), and a session that cannot be read makes every search
	// fail (S-111). By default what stands inside such a run is found, and the
	// other sessions are searched.
	Faithful bool
}

const (
	defaultMaxResults    = 100
	defaultSearchTimeout = 30 * time.Second
	defaultWindowMax     = 50
	valuesMax            = 32_000 // of all lists of a call together (S-037)
)

// Tools are the five. They are safe for concurrent use.
type Tools struct {
	corpus Corpus
	log    *slog.Logger
	cfg    Config
}

// New checks the configuration (S-004). A bad one is messages.BadRequest.
func New(corpus Corpus, log *slog.Logger, cfg Config) (*Tools, error) {
	switch {
	case cfg.MaxResults < 0:
		return nil, messages.Refuse(messages.BadRequest, "the most results of a search must be at least 1, not %d", cfg.MaxResults)
	case cfg.SearchTimeout < 0 || cfg.SearchTimeout > 0 && cfg.SearchTimeout < time.Millisecond || cfg.SearchTimeout.Milliseconds() > 1<<31-1:
		return nil, messages.Refuse(messages.BadRequest, "a search may take from 1ms to 2147483647ms, not %v", cfg.SearchTimeout)
	case cfg.WindowMax < 0:
		return nil, messages.Refuse(messages.BadRequest, "the widest window must not be negative, and is %d", cfg.WindowMax)
	}
	cfg.MaxResults = orDefault(cfg.MaxResults, defaultMaxResults)
	cfg.SearchTimeout = orDefault(cfg.SearchTimeout, defaultSearchTimeout)
	cfg.WindowMax = orDefault(cfg.WindowMax, defaultWindowMax)
	if cfg.Workspace == nil {
		cfg.Workspace = func(_ context.Context, cwd string) ([]string, error) { return []string{cwd}, nil }
	}
	return &Tools{corpus: corpus, log: log, cfg: cfg}, nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// Tool describes one tool to whoever mounts it.
type Tool struct {
	Name, Title, Description string
	Schema                   json.RawMessage // of its arguments
	// Search tells the tools that must not run beside others of one message (S-140).
	Search bool
}

// tool is a Tool with what it does.
type tool struct {
	Tool
	params []parameter
	run    func(t *Tools, ctx context.Context, caller string, args values) (string, error)
}

// All lists the tools in the order of S-001.
func All() []Tool {
	out := make([]Tool, len(tools))
	for i := range tools {
		out[i] = tools[i].Tool
	}
	return out
}

// Call runs one tool for the agent attached to the session caller, "" if there
// is none, and returns its text. Every error is a *messages.Error that a model
// may see, or ctx's own.
func (t *Tools) Call(ctx context.Context, caller, name string, args json.RawMessage) (string, error) {
	i := slices.IndexFunc(tools, func(tool tool) bool { return tool.Name == name })
	if i < 0 {
		return "", messages.Refuse(messages.NotFound, "there is no tool %q", name)
	}
	given, err := decode(tools[i].params, args)
	if err != nil {
		return "", err
	}
	text, err := tools[i].run(t, ctx, caller, given)
	if stopped := context.Cause(ctx); stopped != nil {
		return "", stopped // in preference to any other outcome (S-130)
	}
	return text, err
}
