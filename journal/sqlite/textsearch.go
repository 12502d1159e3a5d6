package sqlite

import (
	"container/heap"
	"context"
	"encoding/json"
	"slices"
	"strings"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Search finds the events that have the phrase by their tokens, in the order of
// their numbers, and keeps the best. Nothing is sorted that is not shown.
func (t *Texts) Search(ctx context.Context, q journal.TextQuery) (page journal.TextPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	err = t.search(ctx, "searching it", func(c *conn) error {
		s := textSearch{t: t, ctx: ctx, c: c, q: q, sieve: journal.NewSieve(q), sessions: map[int64]*textSession{}}
		page, err = s.run()
		return err
	})
	if err != nil {
		return journal.TextPage{}, err
	}
	return page, nil
}

// textSearch is one search, in one transaction.
type textSearch struct {
	t     *Texts
	ctx   context.Context
	c     *conn
	q     journal.TextQuery
	sieve *journal.Sieve

	sessions map[int64]*textSession // those that were looked up beforehand
	found    []found                // a heap of at most Limit+1, the worst on top
	closers  map[int64][]found      // hits among the events that would close a session's turn
	after    bool                   // the hit to go on from is still there
}

// found is a hit without its text.
type found struct {
	journal.TextKey
	session     *textSession
	kind, class int64
	closer      *sessionlog.Event // it is not in the log
}

func (s *textSearch) run() (page journal.TextPage, err error) {
	at, _, err := s.c.number("SELECT pos FROM state") // fixes what is seen
	page.At = journal.Position(at)
	if err != nil {
		return page, err
	}
	if page.Troubled, err = s.troubled(); err != nil {
		return page, err
	}
	if !s.q.Phrase.Empty() {
		if err := s.close(); err != nil {
			return page, err
		}
		if err := s.match(); err != nil {
			return page, err
		}
	}
	if s.q.After != nil && !s.after {
		return page, journal.ErrStale(*s.q.After)
	}
	slices.SortFunc(s.found, func(a, b found) int { return a.Compare(b.TextKey) })
	hits := cut(s.found, s.q.Limit)
	if len(s.found) > s.q.Limit {
		next := hits[len(hits)-1].TextKey
		page.Next = &next
	}
	for _, f := range hits {
		hit, err := s.show(f)
		if err != nil {
			return page, err
		}
		page.Hits = append(page.Hits, hit)
	}
	return page, nil
}

// troubled lists the sessions that would be searched.
func (s *textSearch) troubled() (out []journal.Trouble, err error) {
	err = s.c.sessions(selectTextSession+" INDEXED BY sessions_trouble WHERE trouble > 0 ORDER BY name", func(one *textSession) bool {
		if one.header != nil && s.sieve.Session(*one.header) || one.header == nil && s.sieve.Unknown(one.name) {
			out = append(out, *one.troubled())
		}
		return true
	})
	return out, err
}

// session returns a session that is searched, or nil. Each is asked for once:
// its events come together.
func (s *textSearch) session(id int64) (*textSession, error) {
	if one, ok := s.sessions[id]; ok {
		return one, nil
	}
	one, err := s.c.textSession(id)
	if one != nil && (one.trouble != soundLog || !s.sieve.Session(*one.header)) {
		one = nil
	}
	return one, err
}

func (c *conn) textSession(id int64) (out *textSession, err error) {
	err = c.sessions(selectTextSession+" WHERE id = ?", func(one *textSession) bool {
		out = one
		return false
	}, id)
	return out, err
}

// phraseMax is how many tokens of a phrase FTS5 is asked for. What it finds by
// those is then counted in the text.
const phraseMax = 64

// tokenMax is above what FTS5 keeps of a token whole.
const tokenMax = 16384

const selectMatches = `
	SELECT w.rowid, spans(words), e.time, e.length, e.kind, e.class FROM words w CROSS JOIN events e ON e.id = w.rowid
	WHERE words MATCH ?1 AND w.rowid BETWEEN ?2 AND ?3
	AND w.rowid & 4294967295 BETWEEN ?4 AND ?5 AND e.time BETWEEN ?6 AND ?7
	AND (?8 >> e.class) & 1 AND (?9 = '' OR e.kind IN (SELECT value FROM json_each(?9)))
	AND (?10 = '' OR w.rowid >> 32 IN (SELECT value FROM json_each(?10)))
	ORDER BY w.rowid`

// match collects the hits of the index.
func (s *textSearch) match() error {
	m, ok, err := s.matching()
	if err != nil || !ok {
		return err
	}
	st, err := s.c.stmt(selectMatches)
	if err != nil {
		return err
	}
	defer func() { _ = st.Reset() }() // repeats the error
	if err := m.bind(st); err != nil {
		return err
	}
	var (
		session *textSession
		current = int64(-1)
		best    *found
	)
	for st.Step() {
		id := st.ColumnInt64(0)
		if no := id >> 32; no != current {
			if current = no; best != nil {
				s.offer(*best)
				best = nil
			}
			if session, err = s.session(no); err != nil {
				return err
			}
			if session != nil && s.q.In == "" {
				for _, f := range s.closers[no] {
					best = better(best, f)
				}
				delete(s.closers, no)
			}
		}
		if session == nil {
			continue
		}
		f := found{session: session, kind: st.ColumnInt64(4), class: st.ColumnInt64(5), TextKey: journal.TextKey{
			Spans: st.ColumnInt(1), Length: st.ColumnInt(3), Time: st.ColumnInt64(2), Session: session.name, Seq: id & seqMax,
		}}
		if m.count {
			text, err := s.text(id)
			if err != nil {
				return err
			}
			if f.Spans = s.q.Phrase.Count(text); f.Spans == 0 {
				continue
			}
		}
		if s.q.In != "" {
			s.offer(f)
		} else {
			best = better(best, f)
		}
	}
	if err := st.Err(); err != nil {
		return err
	}
	if best != nil {
		s.offer(*best)
	}
	// Sessions in which nothing but a closer was found.
	for _, closers := range s.closers {
		best = nil
		for _, f := range closers {
			if s.q.In != "" {
				s.offer(f)
			} else {
				best = better(best, f)
			}
		}
		if best != nil {
			s.offer(*best)
		}
	}
	return nil
}

func better(best *found, f found) *found {
	if best == nil || f.Compare(best.TextKey) < 0 {
		return &f
	}
	return best
}

// offer takes a hit among those to show, if it is good enough.
func (s *textSearch) offer(f found) {
	if after := s.q.After; after != nil {
		order := f.Compare(*after)
		s.after = s.after || order == 0
		if order <= 0 {
			return
		}
	}
	if len(s.found) <= s.q.Limit {
		heap.Push((*worst)(&s.found), f)
	} else if f.Compare(s.found[0].TextKey) < 0 {
		s.found[0] = f
		heap.Fix((*worst)(&s.found), 0)
	}
}

// worst is a heap with the worst hit on top.
type worst []found

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return w[i].Compare(w[j].TextKey) > 0 }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worst) Push(x any)        { *w = append(*w, x.(found)) }
func (w *worst) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// matching is a search as SQLite is asked for it.
type matching struct {
	match           string
	low, high       int64
	seq, time       journal.Bounds
	classes         int64
	kinds, sessions string // JSON lists of numbers; empty: any
	count           bool   // what is found is counted in its text
}

func (m matching) bind(st *sqlite3.Stmt) error {
	between := func(at int, b journal.Bounds, least, most int64) error {
		if b.From != nil {
			least = *b.From
		}
		if b.To != nil {
			most = *b.To
		}
		if err := st.BindInt64(at, least); err != nil {
			return err
		}
		return st.BindInt64(at+1, most)
	}
	for _, err := range []error{
		st.BindText(1, m.match), st.BindInt64(2, m.low), st.BindInt64(3, m.high),
		between(4, m.seq, 0, seqMax), between(6, m.time, -1<<63, 1<<63-1),
		st.BindInt64(8, m.classes), st.BindText(9, m.kinds), st.BindText(10, m.sessions),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// matching translates the query; ok is false if nothing can match.
func (s *textSearch) matching() (m matching, ok bool, err error) {
	f := s.q.Sessions
	m = matching{low: 0, high: 1<<63 - 1, seq: s.q.Events.Seq, time: s.q.Events.Time, classes: 7}
	m.match, m.count = s.expression()
	if s.q.In != "" {
		id, ok, err := s.c.number("SELECT id FROM sessions WHERE name = ?", s.q.In)
		if err != nil || !ok {
			return m, false, err
		}
		m.low, m.high = eventID(id, 0), eventID(id, seqMax)
		if b := s.q.Events.Seq; b.From != nil {
			m.low = eventID(id, min(max(*b.From, 0), seqMax))
		}
		if b := s.q.Events.Seq; b.To != nil {
			m.high = eventID(id, min(max(*b.To, 0), seqMax))
		}
	} else if f.CWDs != nil {
		var tags []string
		for _, cwd := range f.CWDs {
			id, ok, err := s.c.number("SELECT id FROM workspaces WHERE cwd = ?", cwd)
			if err != nil {
				return m, false, err
			}
			if ok {
				tags = append(tags, "workspace : "+workspaceTag(id))
			}
		}
		if len(tags) == 0 {
			return m, false, nil
		}
		m.match = "(" + strings.Join(tags, " OR ") + ") AND (" + m.match + ")"
	}
	if types := s.q.Events.Types; types != nil {
		var kinds []int64
		for _, name := range types {
			kind, ok, err := s.c.number("SELECT id FROM kinds WHERE name = ?", name)
			if err != nil {
				return m, false, err
			}
			if ok {
				kinds = append(kinds, kind)
			}
		}
		m.kinds = list(kinds)
	}
	if s.q.Events.Surfaces != nil {
		m.classes = 0
		for _, c := range s.q.Events.Surfaces {
			m.classes |= 1 << c
		}
	}
	if s.q.In == "" && (f.IDs != nil || f.Parents != nil || f.Roots || f.LiveOnly || f.Created != journal.Bounds{}) {
		ids, err := s.admitted()
		if err != nil || len(ids) == 0 {
			return m, false, err
		}
		m.sessions = list(ids)
	}
	return m, true, nil
}

func list(numbers []int64) string {
	if numbers == nil {
		return "[]"
	}
	text, err := json.Marshal(numbers)
	if err != nil {
		panic("sqlite: numbers cannot be encoded: " + err.Error())
	}
	return string(text)
}

// expression is the phrase for FTS5. Its tokens have no character that means
// anything there. What matches whole matches cut further as well (words.Substring),
// and only texts for which that makes a difference have the second column.
func (s *textSearch) expression() (match string, count bool) {
	quote := func(tokens []string) string {
		if len(tokens) > phraseMax {
			tokens, count = tokens[:phraseMax], true
		}
		for _, t := range tokens {
			count = count || len(t) > tokenMax
		}
		return `"` + strings.Join(tokens, " ") + `"`
	}
	whole := quote(s.q.Phrase.In(words.Whole).Tokens())
	if s.q.Phrase.Cut() == words.Whole {
		return "whole : " + whole, count
	}
	sub := quote(s.q.Phrase.Tokens())
	return "whole : " + whole + " OR sub : " + sub, count
}

// admitted lists the sessions that pass filters which the index of tokens does
// not know.
func (s *textSearch) admitted() (out []int64, err error) {
	f := s.q.Sessions
	visit := func(one *textSession) bool {
		if one.trouble == soundLog && s.sieve.Session(*one.header) {
			out = append(out, one.id)
			s.sessions[one.id] = one
		}
		return true
	}
	switch {
	case f.IDs != nil:
		for _, id := range f.IDs {
			if err := s.c.sessions(selectTextSession+" WHERE name = ?", visit, id); err != nil {
				return nil, err
			}
		}
	case f.Parents != nil && !f.Roots:
		for _, parent := range f.Parents {
			if err := s.c.sessions(selectTextSession+" WHERE parent = ? AND parent <> ''", visit, parent); err != nil {
				return nil, err
			}
		}
	case f.CWDs != nil:
		for _, cwd := range f.CWDs {
			if err := s.c.sessions(selectTextSession+" WHERE workspace = (SELECT id FROM workspaces WHERE cwd = ?)", visit, cwd); err != nil {
				return nil, err
			}
		}
	default:
		err = s.c.sessions(selectTextSession, visit)
	}
	return out, err
}

// text reads the text of an event.
func (s *textSearch) text(id int64) (text string, err error) {
	err = s.c.query("SELECT text FROM texts WHERE id = ?", func(st *sqlite3.Stmt) bool {
		text = st.ColumnText(0)
		return false
	}, id)
	return text, err
}

// show makes a hit of what was found.
func (s *textSearch) show(f found) (hit journal.TextHit, err error) {
	hit = journal.TextHit{TextKey: f.TextKey, Surface: sessionlog.Class(f.class), Profile: f.session.profile()}
	if f.closer != nil {
		hit.Type, hit.Synthetic = f.closer.Type, true
		hit.Snippet = words.Snippet(words.Clean(sessionlog.SemanticText(*f.closer)), s.q.Phrase)
		return hit, nil
	}
	text, err := s.text(eventID(f.session.id, f.Seq))
	if err != nil {
		return hit, err
	}
	hit.Snippet = words.Snippet(text, s.q.Phrase)
	err = s.c.query("SELECT name FROM kinds WHERE id = ?", func(st *sqlite3.Stmt) bool {
		hit.Type = st.ColumnText(0)
		return false
	}, f.kind)
	return hit, err
}

// close looks for hits among the events that would close open turns (S-112).
// They are not in the index, because the next append may make others of them,
// and say no more than a few sentences, of which most phrases are not a part.
func (s *textSearch) close() error {
	if !slices.ContainsFunc(closerTexts, func(text string) bool { return s.q.Phrase.Count(text) > 0 }) {
		return nil
	}
	var open []*textSession
	err := s.c.sessions(selectTextSession+" INDEXED BY sessions_opened WHERE opened >= 0", func(one *textSession) bool {
		if one.trouble == soundLog && s.sieve.Session(*one.header) && !s.sieve.Live(one.name) {
			open = append(open, one)
		}
		return true
	})
	s.closers = map[int64][]found{}
	for _, one := range open {
		if err == nil {
			err = s.closeOne(one)
		}
	}
	return err
}

func (s *textSearch) closeOne(one *textSession) error {
	opened, err := s.t.j.Read(s.ctx, one.name, one.opened, int(one.next-one.opened))
	if code := messages.CodeOf(err); code == messages.NotFound || code == messages.SessionCorrupt {
		return nil // deleted since, or damaged since: then its next record will tell
	}
	if err != nil {
		return err
	}
	for _, ev := range journal.Closers(*one.header, opened.Events) {
		class := sessionlog.LogOnly
		if ev.SurfaceOp != nil {
			class = sessionlog.Current
		}
		if !s.sieve.Event(ev.Type, ev.Seq, ev.Time, class) {
			continue
		}
		text := words.Clean(sessionlog.SemanticText(ev))
		if spans := s.q.Phrase.Count(text); spans > 0 {
			s.closers[one.id] = append(s.closers[one.id], found{session: one, class: int64(class), closer: &ev, TextKey: journal.TextKey{
				Spans: spans, Length: words.Length(text), Time: ev.Time, Session: one.name, Seq: ev.Seq,
			}})
		}
	}
	return nil
}

// closerTexts is all that closing events say: made from a turn that has one of
// each.
var closerTexts = func() (out []string) {
	for _, version := range []int{sessionlog.V0, sessionlog.V3} {
		message := json.RawMessage(`{"id":"m","role":"assistant","content":[{"type":"tool-call","id":"a","name":"t","arguments":""},{"type":"tool-call","id":"b","name":"t","arguments":""}]}`)
		events := []sessionlog.Event{
			sessionlog.TurnStart(1), sessionlog.StepStart(1, 1), sessionlog.AssistantMessage(1, 1, message), sessionlog.ToolCall(1, 1, "a", "t", ""),
		}
		for i, ev := range events {
			events[i] = ev.At(int64(i), 0)
		}
		for _, ev := range journal.Closers(sessionlog.Header{Version: version}, events) {
			if text := words.Clean(sessionlog.SemanticText(ev)); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}()

// Profiles describes the sessions of these ids.
func (t *Texts) Profiles(ctx context.Context, sessions []string) ([]journal.Profile, error) {
	return t.profiles(ctx, sessions, selectTextSession+" WHERE name = ?")
}

// Children describes the sessions whose parent is one of these.
func (t *Texts) Children(ctx context.Context, parents []string) ([]journal.Profile, error) {
	return t.profiles(ctx, parents, selectTextSession+" WHERE parent = ? AND parent <> '' ORDER BY created, name")
}

// Workspaces lists the working directories of the sessions.
func (t *Texts) Workspaces(ctx context.Context) (out []string, err error) {
	err = t.search(ctx, "listing workspaces", func(c *conn) error {
		out = nil
		return c.query("SELECT cwd FROM workspaces w WHERE cwd <> '' AND EXISTS (SELECT 1 FROM sessions WHERE workspace = w.id) ORDER BY cwd", func(st *sqlite3.Stmt) bool {
			out = append(out, st.ColumnText(0))
			return true
		})
	})
	return out, err
}

func (t *Texts) profiles(ctx context.Context, keys []string, sql string) (out []journal.Profile, err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	err = t.search(ctx, "describing sessions", func(c *conn) error {
		out = nil
		for _, key := range keys {
			err := c.sessions(sql, func(one *textSession) bool {
				out = append(out, one.profile())
				return true
			}, key)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}
