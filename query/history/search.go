package history

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
)

// searchSessions is session_search; the order of its checks is S-019's.
func (t *Tools) searchSessions(ctx context.Context, id string, args values) (string, error) {
	who, self, err := t.identify(ctx, id, id)
	if err != nil {
		return "", err
	}
	if self.CWD == "" {
		return "", messages.Refuse(messages.QueryUnauthorized, "the caller's session has no workspace, so it has no other sessions to search")
	}
	s := &Search{CWDs: who.cwds, Not: who.id, Faithful: t.cfg.Faithful}
	if s.Query, err = queryOf(args); err != nil {
		return "", err
	}
	if s.Sessions, err = args.list("session_ids"); err != nil {
		return "", err
	}
	if s.CreatedFrom, s.CreatedTo, err = args.times("created_at_from", "created_at_to"); err != nil {
		return "", err
	}
	if s.Availability, err = args.list("availability"); err != nil {
		return "", err
	}
	if err := s.events(args, "event_seq_from", "event_seq_to", "event_time_from", "event_time_to", "event_types", "event_surfaces"); err != nil {
		return "", err
	}
	if s.Parents, err = args.list("parent_session_ids"); err != nil {
		return "", err
	}
	s.Roots = args.flag("include_root_sessions")
	if len(s.Sessions)+len(s.Types)+len(s.Parents) > valuesMax {
		return "", t.tooMany()
	}
	if s.Parents != nil {
		if s.Parents, err = t.visible(ctx, who, s.Parents); err != nil {
			return "", err
		}
		if len(s.Parents) == 0 && !s.Roots {
			return noSessions, nil // without a search (S-017)
		}
	}
	hits, more, err := t.collect(ctx, s, func(h Hit) bool { return h.Session.ID != who.id && who.may(h.Session) })
	if err != nil {
		return "", err
	}
	var parents []string
	for _, h := range hits {
		if h.Session.Parent != "" {
			parents = append(parents, h.Session.Parent)
		}
	}
	seen, err := t.visible(ctx, who, parents)
	if err != nil {
		return "", err
	}
	return sessionsText(hits, seen, more), nil
}

// searchEvents is session_event_search.
func (t *Tools) searchEvents(ctx context.Context, id string, args values) (string, error) {
	who, target, err := t.identify(ctx, id, args.target(id))
	if err != nil {
		return "", err
	}
	s := &Search{Session: target.ID, CWDs: who.cwds, Faithful: t.cfg.Faithful}
	if s.Query, err = queryOf(args); err != nil {
		return "", err
	}
	if s.SeqFrom, s.SeqTo, err = args.span("seq_from", "seq_to"); err != nil {
		return "", err
	}
	limit := int64(math.MaxInt64)
	if target.ID == who.id {
		if limit, err = t.beforeThisStep(ctx, who.id); err != nil {
			return "", err
		}
	}
	if s.SeqFrom > min(s.SeqTo, limit) {
		return eventsText(target, nil, false), nil
	}
	if err := s.events(args, "seq_from", "seq_to", "time_from", "time_to", "event_types", "surfaces"); err != nil {
		return "", err
	}
	s.SeqTo = min(s.SeqTo, limit)
	if len(s.Types) > valuesMax {
		return "", t.tooMany()
	}
	hits, more, err := t.collect(ctx, s, func(h Hit) bool { return h.Session.ID == target.ID && who.may(h.Session) })
	if err != nil {
		return "", err
	}
	return eventsText(target, hits, more), nil
}

// beforeThisStep is the last seq that the caller may find in its own session:
// what it is doing now is not past work (S-050). Where the step is the very
// first event that is -1, and nothing is found; the reference fails there.
func (t *Tools) beforeThisStep(ctx context.Context, id string) (int64, error) {
	step, err := call(ctx, t, func() (int64, error) { return t.corpus.LastStep(ctx, id) })
	if err == nil && step < 0 {
		err = messages.Refuse(messages.QueryNoCurrentStep, "the caller's session has begun no step, so what came before it is not known")
	}
	return step - 1, err
}

// events reads the filters of events under a tool's names for them.
func (s *Search) events(args values, seqFrom, seqTo, timeFrom, timeTo, types, surfaces string) (err error) {
	if s.SeqFrom, s.SeqTo, err = args.span(seqFrom, seqTo); err != nil {
		return err
	}
	if s.TimeFrom, s.TimeTo, err = args.times(timeFrom, timeTo); err != nil {
		return err
	}
	if s.Types, err = args.list(types); err != nil {
		return err
	}
	s.Surfaces, err = args.list(surfaces)
	return err
}

func (t *Tools) tooMany() error {
	return messages.Refuse(messages.QueryInvalidFilter, "%s", fixed[messages.QueryInvalidFilter])
}

// visible reduces session ids to those that the caller may see.
func (t *Tools) visible(ctx context.Context, who caller, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return []string{}, nil
	}
	found, err := t.sessions(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if s, ok := found[id]; ok && who.may(s) {
			out = append(out, id)
		}
	}
	return out, nil
}

// collect follows the pages to the end, or to the cap; more says that one more
// hit is there (S-040). Hits that are not accepted do not count.
func (t *Tools) collect(ctx context.Context, s *Search, accept func(Hit) bool) (hits []Hit, more bool, err error) {
	s.Limit = min(t.cfg.MaxResults+2, journal.TextHitsMax) // in one page where it can be: pages need one corpus (S-041)
	seen := map[string]bool{}
	for {
		got, err := call(ctx, t, func() (Page, error) { return t.corpus.Search(ctx, s) })
		if err != nil {
			return nil, false, err
		}
		if s.Session != "" && len(got.Troubled) > 0 { // S-111; a search of many goes on without it
			return nil, false, t.sanitise(ctx, messages.Refuse(messages.QueryPersistence, "%v", unread(got.Troubled[0])))
		}
		for _, h := range got.Hits {
			if !accept(h) {
				continue
			}
			if len(hits) == t.cfg.MaxResults {
				return hits, true, nil
			}
			hits = append(hits, h)
		}
		if got.Next == "" {
			return hits, false, nil
		}
		if seen[got.Next] {
			return nil, false, t.sanitise(ctx, messages.Refuse(messages.QueryInvalidCursor, "the continuation %q came twice", got.Next))
		}
		seen[got.Next] = true
		s.After = got.Next
	}
}

// queryOf reads the query: one line, trimmed, not empty, without a NUL (S-030).
func queryOf(args values) (string, error) {
	q := args.text("query")
	if strings.ContainsRune(q, 0) {
		return "", messages.Refuse(messages.QueryInvalidQuery, "the query holds a NUL character")
	}
	q = words.Collapse(words.Clean(q))
	if q == "" {
		return "", messages.Refuse(messages.QueryInvalidQuery, "the query is empty")
	}
	return q, nil
}
