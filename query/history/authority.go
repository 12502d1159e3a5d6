package history

import (
	"context"
	"slices"

	"github.com/parleyrun/parley/messages"
)

// caller is who asks, and what it may see.
type caller struct {
	id    string
	cwds  []string // its workspace under all its names; nil: it has none
	reads bool     // a person who may read every log
}

// may says whether a session is the caller's to see (S-012, S-014).
func (c caller) may(s Session) bool {
	return c.reads || s.ID == c.id || s.CWD != "" && slices.Contains(c.cwds, s.CWD)
}

func outside() error {
	return messages.Refuse(messages.QueryUnauthorized, "that session is not of the caller's workspace")
}

func missingAgent() error {
	return messages.Refuse(messages.QueryMissingAgent, "past work can be read by an attached agent only")
}

// identify reads the caller and, in the same read, the session it wants to see.
// A foreign session, one without a workspace and one
// that does not exist take the same reads and give the same error (S-013).
func (t *Tools) identify(ctx context.Context, id, target string) (caller, Session, error) {
	if id == "" {
		return caller{}, Session{}, missingAgent()
	}
	found, err := t.sessions(ctx, []string{id, target})
	if err != nil {
		return caller{}, Session{}, err
	}
	self, ok := found[id]
	if !ok {
		return caller{}, Session{}, missingAgent() // it was attached and is gone
	}
	who := caller{id: id}
	if self.CWD != "" {
		if who.cwds, err = call(ctx, t, func() ([]string, error) { return t.cfg.Workspace(ctx, self.CWD) }); err != nil {
			return caller{}, Session{}, err
		}
	}
	seen, ok := found[target]
	if !ok || !who.may(seen) {
		return caller{}, Session{}, outside()
	}
	return who, seen, nil
}

// sessions reads sessions by id, each once.
func (t *Tools) sessions(ctx context.Context, ids []string) (map[string]Session, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	found, err := call(ctx, t, func() ([]Session, error) { return t.corpus.Sessions(ctx, ids) })
	out := make(map[string]Session, len(found))
	for _, s := range found {
		out[s.ID] = s
	}
	return out, err
}
