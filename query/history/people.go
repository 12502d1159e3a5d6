package history

import (
	"cmp"
	"context"
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

// This is the door for people and programs that may read every log: the same
// searches over every workspace, with a continuation, and the same texts. What
// they show has been cleaned for a terminal or a page.

const (
	pageDefault = 20 // S-164
	pageMax     = 100
)

// everybody is who asks here.
var everybody = caller{reads: true}

// Search finds a page of hits. The order is S-062's, and the continuation is
// bound to the request.
func (t *Tools) Search(ctx context.Context, req *messages.SearchRequest) (*messages.SearchResponse, error) {
	s, err := t.wanted(req)
	if err != nil {
		return nil, err
	}
	if s.Session != "" {
		if _, err := t.known(ctx, s.Session); err != nil {
			return nil, err
		}
	}
	page, err := call(ctx, t, func() (Page, error) { return t.corpus.Search(ctx, s) })
	if err != nil {
		return nil, err
	}
	if s.Session != "" && len(page.Troubled) > 0 { // nothing found would be no answer
		return nil, unread(page.Troubled[0])
	}
	out := &messages.SearchResponse{Next: page.Next}
	for _, h := range page.Hits {
		out.Hits = append(out.Hits, &messages.SearchHit{
			Session: query.CleanID(h.Session.ID), Title: query.Clean(h.Session.title()), Workspace: query.Clean(h.Session.CWD), Parent: query.CleanID(h.Session.Parent),
			CreatedMs: h.Session.Created, Live: h.Session.Live, Persisted: h.Session.Persisted,
			Seq: h.Seq, Type: query.Clean(h.Type), Surface: h.Surface.String(), TimeMs: h.Time, Snippet: query.Clean(h.Snippet),
		})
	}
	for _, s := range page.Troubled {
		out.Troubled = append(out.Troubled, &messages.SearchTrouble{Session: query.CleanID(s.ID), Why: unread(s).Wire()})
	}
	return out, nil
}

// unread says why a session was not searched.
func unread(s Session) *messages.Error {
	return messages.Refuse(s.Damage, "session %s cannot be read: %s", query.CleanID(s.ID), query.Clean(cmp.Or(s.Problem, fixed[s.Damage])))
}

// wanted checks a request, under its own names for the values.
func (t *Tools) wanted(req *messages.SearchRequest) (*Search, error) {
	given := values{"query": req.GetQuery()}
	for name, list := range map[string][]string{"sessions": req.GetSessions(), "parents": req.GetParents(),
		"availability": req.GetAvailability(), "types": req.GetTypes(), "surfaces": req.GetSurfaces()} {
		if len(list) > 0 {
			given[name] = list
		}
	}
	for name, text := range map[string]string{"created_from": req.GetCreatedFrom(), "created_to": req.GetCreatedTo(),
		"time_from": req.GetTimeFrom(), "time_to": req.GetTimeTo()} {
		if text != "" {
			given[name] = text
		}
	}
	if req.SeqFrom != nil {
		given["seq_from"] = float64(req.GetSeqFrom())
	}
	if req.SeqTo != nil {
		given["seq_to"] = float64(req.GetSeqTo())
	}
	s := &Search{Session: req.GetSession(), CWDs: req.GetWorkspaces(), Everywhere: len(req.GetWorkspaces()) == 0, Roots: req.GetRoots(),
		Limit: int(req.GetLimit()), After: req.GetAfter(), Faithful: t.cfg.Faithful}
	if s.Limit == 0 {
		s.Limit = pageDefault
	}
	if s.Limit < 1 || s.Limit > pageMax {
		return nil, messages.Refuse(messages.QueryInvalidLimit, "limit is %d; it may be 1 to %d", req.GetLimit(), pageMax)
	}
	for name, allowed := range map[string][]string{"availability": availabilities, "surfaces": surfaceNames} {
		list, _ := given[name].([]string)
		if err := among(name, list, allowed); err != nil {
			return nil, err
		}
	}
	if slices.Contains(s.CWDs, "") {
		return nil, badFilter("workspaces holds an empty one; leave the list out to search everywhere")
	}
	var err error
	if s.Query, err = queryOf(given); err != nil {
		return nil, err
	}
	if s.CreatedFrom, s.CreatedTo, err = given.times("created_from", "created_to"); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name string
		into *[]string
	}{{"sessions", &s.Sessions}, {"parents", &s.Parents}, {"availability", &s.Availability}} {
		if *list.into, err = given.list(list.name); err != nil {
			return nil, err
		}
	}
	if err := s.events(given, "seq_from", "seq_to", "time_from", "time_to", "types", "surfaces"); err != nil {
		return nil, err
	}
	if len(s.Sessions)+len(s.Parents)+len(s.Types)+len(s.CWDs) > valuesMax {
		return nil, t.tooMany()
	}
	return s, nil
}

// Trace shows a session's lineage, or with seq one event's relations.
func (t *Tools) Trace(ctx context.Context, req *messages.TraceRequest) (*messages.TraceResponse, error) {
	target, err := t.known(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	var text string
	switch {
	case req.Seq == nil:
		text, err = t.lineage(ctx, everybody, target)
	case req.GetSeq() < 0:
		err = badFilter("seq is %d; events are numbered from 0", req.GetSeq())
	default:
		text, err = t.relations(ctx, everybody, target, req.GetSeq())
	}
	if err != nil {
		return nil, err
	}
	return &messages.TraceResponse{Text: query.Clean(text)}, nil
}

// Read shows one event whole, and the text of its neighbours.
func (t *Tools) Read(ctx context.Context, req *messages.ReadRequest) (*messages.ReadResponse, error) {
	if req.GetSeq() < 0 || req.GetBefore() < 0 || req.GetAfter() < 0 {
		return nil, badFilter("seq, before and after must not be negative")
	}
	target, err := t.known(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	text, err := t.window(ctx, everybody, target, req.GetSeq(), int64(req.GetBefore()), int64(req.GetAfter()))
	if err != nil {
		return nil, err
	}
	return &messages.ReadResponse{Text: query.Clean(text)}, nil
}

// known finds a session for somebody who may be told that there is none.
func (t *Tools) known(ctx context.Context, id string) (Session, error) {
	found, err := t.sessions(ctx, []string{id})
	if err != nil {
		return Session{}, err
	}
	s, ok := found[id]
	if !ok {
		return Session{}, messages.Refuse(messages.QuerySessionNotFound, "there is no session %q", id)
	}
	return s, nil
}
