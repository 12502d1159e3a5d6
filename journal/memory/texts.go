package memory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Texts is the text index without an index: every search reads every log, so
// nothing can lag or be stale. It works on any journal, and is what the others
// are compared with. Make one with NewTexts.
type Texts struct {
	log    journal.Reader
	closed atomic.Bool
}

var _ journal.Texts = (*Texts)(nil)

// NewTexts searches a journal.
func NewTexts(log journal.Reader) *Texts { return &Texts{log: log} }

// Search reads every session that the query admits, one after another.
func (t *Texts) Search(ctx context.Context, q journal.TextQuery) (page journal.TextPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	var hits []journal.TextHit
	sieve := journal.NewSieve(q)
	page.At, err = t.each(ctx, sieve.Session, sieve.Unknown, func(r reading) {
		if r.profile.Trouble != nil {
			page.Troubled = append(page.Troubled, *r.profile.Trouble)
			return
		}
		found := r.search(q, sieve)
		if q.In == "" && len(found) > 1 {
			found = found[:1]
		}
		hits = append(hits, found...)
	})
	if err != nil {
		return journal.TextPage{}, err
	}
	slices.SortFunc(hits, func(a, b journal.TextHit) int { return a.Compare(b.TextKey) })
	if q.After != nil {
		at, there := slices.BinarySearchFunc(hits, *q.After, func(h journal.TextHit, k journal.TextKey) int { return h.Compare(k) })
		if !there {
			return journal.TextPage{}, journal.ErrStale(*q.After)
		}
		hits = hits[at+1:]
	}
	page.Hits = cut(hits, q.Limit)
	if len(hits) > q.Limit {
		next := page.Hits[q.Limit-1].TextKey
		page.Next = &next
	}
	return page, nil
}

// Profiles describes the sessions of these ids.
func (t *Texts) Profiles(ctx context.Context, sessions []string) ([]journal.Profile, error) {
	wanted := func(id string) bool { return slices.Contains(sessions, id) }
	return t.profiles(ctx, func(h sessionlog.Header) bool { return wanted(h.ID) }, wanted)
}

// Children describes the sessions whose parent is one of these.
func (t *Texts) Children(ctx context.Context, parents []string) ([]journal.Profile, error) {
	out, err := t.profiles(ctx,
		func(h sessionlog.Header) bool {
			return h.ParentSession != "" && slices.Contains(parents, h.ParentSession)
		},
		func(string) bool { return false })
	slices.SortFunc(out, func(a, b journal.Profile) int {
		return cmp.Or(cmp.Compare(a.Header.ParentSession, b.Header.ParentSession), cmp.Compare(a.Header.CreatedAt, b.Header.CreatedAt), cmp.Compare(a.Session, b.Session))
	})
	return out, err
}

func (t *Texts) profiles(ctx context.Context, wanted func(sessionlog.Header) bool, unknown func(string) bool) (out []journal.Profile, err error) {
	_, err = t.each(ctx, wanted, unknown, func(r reading) { out = append(out, r.profile) })
	return out, err
}

// Workspaces lists the working directories of the sessions.
func (t *Texts) Workspaces(ctx context.Context) ([]string, error) {
	if t.closed.Load() {
		return nil, errTextsClosed()
	}
	list, err := t.log.Sessions(ctx, "", 0)
	var out []string
	for _, info := range list {
		if info.Header.CWD != "" {
			out = append(out, info.Header.CWD)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// Close refuses later calls. The journal stays open.
func (t *Texts) Close() error {
	t.closed.Store(true)
	return nil
}

// each reads the sessions that are wanted, by id. A session whose header cannot
// be read is asked about by its id.
func (t *Texts) each(ctx context.Context, wanted func(sessionlog.Header) bool, unknown func(string) bool, visit func(reading)) (journal.Position, error) {
	if t.closed.Load() {
		return 0, errTextsClosed()
	}
	at, err := t.log.Last(ctx)
	if err != nil {
		return 0, err
	}
	list, err := t.log.Sessions(ctx, "", 0)
	if err != nil {
		return 0, err
	}
	for _, info := range list {
		if !wanted(info.Header) && !unknown(info.Session) {
			continue
		}
		opened, err := t.log.Read(ctx, info.Session, 0, 0)
		switch {
		case messages.CodeOf(err) == messages.NotFound: // deleted meanwhile
		case messages.CodeOf(err) == messages.SessionCorrupt:
			visit(damaged(info, err))
		case err != nil:
			return 0, err
		case wanted(*opened.Header):
			visit(read(*opened.Header, opened.Events))
		}
	}
	return at, nil
}

// reading is one session as a whole.
type reading struct {
	profile journal.Profile
	events  []sessionlog.Event
	view    sessionlog.SurfaceView
}

func damaged(info journal.SessionInfo, err error) reading {
	return reading{profile: journal.Profile{
		Session: info.Session, Header: info.Header, Events: info.Events,
		Trouble: &journal.Trouble{Session: info.Session, Problem: err.Error()},
	}}
}

func read(h sessionlog.Header, events []sessionlog.Event) reading {
	events = sessionlog.UpgradeAll(h, events)
	r := reading{profile: journal.Profile{Session: h.ID, Header: h, Events: int64(len(events))}, events: events}
	for _, ev := range events {
		if title, ok := sessionlog.TitleOf(ev); ok {
			r.profile.Title, r.profile.Titled = title, true
		}
	}
	err := sessionlog.ValidateEvents(h.Version, events)
	if err == nil {
		r.view, err = sessionlog.Surface(h.Version, events)
	}
	if err != nil {
		var unsupported *sessionlog.UnsupportedError
		r.profile.Trouble = &journal.Trouble{Session: h.ID, Unsupported: errors.As(err, &unsupported), Problem: err.Error()}
	}
	return r
}

// search returns every hit of the session, the best first.
func (r reading) search(q journal.TextQuery, sieve *journal.Sieve) (out []journal.TextHit) {
	secret := map[string]bool{} // calls whose answers are sensitive
	try := func(ev sessionlog.Event, class sessionlog.Class, synthetic bool) {
		if call, ok := sessionlog.SensitiveCall(ev); ok {
			secret[call] = true
		}
		if call, ok := sessionlog.AnsweredCall(ev); ok && secret[call] {
			return
		}
		if !sieve.Event(ev.Type, ev.Seq, ev.Time, class) {
			return
		}
		text := words.Clean(sessionlog.SemanticText(ev))
		if spans := q.Phrase.Count(text); spans > 0 {
			out = append(out, journal.TextHit{
				TextKey: journal.TextKey{Spans: spans, Length: words.Length(text), Time: ev.Time, Session: r.profile.Session, Seq: ev.Seq},
				Type:    ev.Type, Surface: class, Synthetic: synthetic, Snippet: words.Snippet(text, q.Phrase), Profile: r.profile,
			})
		}
	}
	for _, ev := range r.events {
		try(ev, r.view.Class(ev.Seq), false)
	}
	if !sieve.Live(r.profile.Session) {
		for _, ev := range journal.Closers(r.profile.Header, r.events) {
			class := sessionlog.LogOnly
			if ev.SurfaceOp != nil {
				class = sessionlog.Current
			}
			try(ev, class, true)
		}
	}
	slices.SortFunc(out, func(a, b journal.TextHit) int { return a.Compare(b.TextKey) })
	return out
}

func errTextsClosed() error {
	return messages.Refuse(messages.Unavailable, "the text index is closed")
}
