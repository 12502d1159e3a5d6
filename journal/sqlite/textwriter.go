package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// seqMax is the highest sequence number that an event's number has room for.
const seqMax = 1<<32 - 1

// eventID is the number of an event in the index.
func eventID(session, seq int64) int64 { return session<<32 | seq }

// Trouble as it is kept.
const (
	soundLog = iota
	damagedLog
	unsupportedLog
)

// textSession is the row of a session.
type textSession struct {
	id, workspace, next int64
	opened              int64 // seq of the turn/start of the open turn; -1: none is
	header              *sessionlog.Header
	name, title         string
	titled              bool
	trouble             int64
	problem             string
	secrets             map[string]bool // read when the session is first met
}

const selectTextSession = "SELECT id, name, workspace, next, opened, title, trouble, problem, header FROM sessions"

func scanTextSession(s *sqlite3.Stmt) *textSession {
	out := &textSession{
		id: s.ColumnInt64(0), name: s.ColumnText(1), workspace: s.ColumnInt64(2), next: s.ColumnInt64(3), opened: s.ColumnInt64(4),
		title: s.ColumnText(5), titled: s.ColumnType(5) != sqlite3.NULL, trouble: s.ColumnInt64(6), problem: s.ColumnText(7),
	}
	if h, err := sessionlog.DecodeHeader(s.ColumnBlob(8, nil)); err == nil {
		out.header = &h
	}
	return out
}

// sessions visits the rows that a query for selectTextSession finds. A row of
// which the header is gone, although the log is sound, is damage of the index.
func (c *conn) sessions(sql string, visit func(*textSession) bool, args ...any) error {
	torn := false
	err := c.query(sql, func(st *sqlite3.Stmt) bool {
		s := scanTextSession(st)
		torn = s.header == nil && s.trouble == soundLog
		return !torn && visit(s)
	}, args...)
	if err == nil && torn {
		err = fmt.Errorf("the row of a session cannot be read: %w", sqlite3.CORRUPT)
	}
	return err
}

// profile is what is shown of a session.
func (s *textSession) profile() journal.Profile {
	out := journal.Profile{Session: s.name, Header: sessionlog.Header{ID: s.name}, Events: s.next, Title: s.title, Titled: s.titled, Trouble: s.troubled()}
	if s.header != nil {
		out.Header = *s.header
	}
	return out
}

func (s *textSession) troubled() *journal.Trouble {
	if s.trouble == soundLog {
		return nil
	}
	return &journal.Trouble{Session: s.name, Unsupported: s.trouble == unsupportedLog, Problem: s.problem}
}

// fail records why the session cannot be searched. The first reason stays.
func (s *textSession) fail(err error) {
	if s.trouble != soundLog {
		return
	}
	s.trouble, s.problem = damagedLog, err.Error()
	if unsupported := (*sessionlog.UnsupportedError)(nil); errors.As(err, &unsupported) {
		s.trouble = unsupportedLog
	}
}

// textWriter takes records into the index, within one transaction.
type textWriter struct {
	t          *Texts
	ctx        context.Context
	c          *conn
	kinds      map[string]int64
	whole, sub []byte
	tag        string // the workspace of the session at hand, as a token
	changed    []*textSession
	erased     bool // a session was deleted
	doubtful   bool // there were records that cannot be believed
}

// session takes in the records of one session, in their order. Its error ends
// the transaction; what is wrong with the session alone is its trouble.
func (w *textWriter) session(id int64, records []textRecord) error {
	s, err := w.load(id)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.err != nil || r.name == "" || r.damage() != nil {
			// Nothing it says can be believed, not even whose it is. The session that
			// lacks it is found by what follows, or by missing.
			w.doubtful = true
			continue
		}
		if r.seq == erasedSeq || s != nil && r.header != nil { // born again: the record of its end is lost
			if err := w.erase(id); err != nil {
				return err
			}
			s = nil
		}
		if r.seq == erasedSeq {
			continue
		}
		if s == nil {
			if s, err = w.bear(r); err != nil {
				return err
			}
		}
		if err := w.take(s, r); err != nil {
			return err
		}
	}
	if s != nil {
		w.changed = append(w.changed, s)
	}
	return nil
}

// saveAll writes the rows of the sessions that have changed. They come last
// because SQLite makes a savepoint for each, and that makes FTS5 write what it
// has collected, in ever so many small pieces.
func (w *textWriter) saveAll() error {
	for _, s := range w.changed {
		if err := w.save(s); err != nil {
			return err
		}
	}
	return nil
}

func (w *textWriter) load(id int64) (s *textSession, err error) {
	if s, err = w.c.textSession(id); err != nil || s == nil {
		return nil, err
	}
	s.secrets = map[string]bool{}
	w.tag = workspaceTag(s.workspace)
	return s, w.c.query("SELECT call FROM secrets WHERE session = ?", func(st *sqlite3.Stmt) bool {
		s.secrets[st.ColumnText(0)] = true
		return true
	}, id)
}

// bear makes the row of a session of which this is the first record.
func (w *textWriter) bear(r textRecord) (*textSession, error) {
	s := &textSession{id: r.session, name: r.name, opened: -1, secrets: map[string]bool{}}
	switch h, err := sessionlog.DecodeHeader(r.header); {
	case r.header == nil:
		s.fail(fmt.Errorf("its first batch, which has its header, cannot be read"))
	case err != nil:
		s.fail(err)
	default:
		s.header = &h
		if s.workspace, err = w.number("workspaces", "cwd", h.CWD); err != nil {
			return nil, err
		}
	}
	w.tag = workspaceTag(s.workspace)
	return s, nil
}

// workspaceTag is the token of a workspace.
func workspaceTag(id int64) string { return fmt.Sprintf("w%d", id) }

// number returns the number of a name in a table of names, a new one if it is
// new.
func (w *textWriter) number(table, column, name string) (int64, error) {
	n, ok, err := w.c.number("SELECT id FROM "+table+" WHERE "+column+" = ?", name)
	if err != nil || ok {
		return n, err
	}
	err = w.c.query("INSERT INTO "+table+" ("+column+") VALUES (?)", nil, name)
	return w.c.LastInsertRowID(), err
}

func (w *textWriter) save(s *textSession) error {
	st, err := w.c.stmt("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	var h sessionlog.Header
	var line []byte
	if s.header != nil {
		h, line = *s.header, s.header.Line()
	}
	err = errors.Join(
		st.BindInt64(1, s.id), st.BindText(2, s.name), st.BindInt64(3, s.workspace), st.BindText(4, h.ParentSession), st.BindInt64(5, h.CreatedAt),
		st.BindInt64(6, s.next), st.BindInt64(7, s.opened), st.BindText(8, s.title), st.BindInt64(9, s.trouble), st.BindText(10, s.problem), st.BindBlob(11, line))
	if err == nil && !s.titled {
		err = st.BindNull(8)
	}
	if err != nil {
		return err
	}
	return st.Exec()
}

// take takes one record in.
func (w *textWriter) take(s *textSession, r textRecord) error {
	if r.seq != s.next {
		s.fail(fmt.Errorf("its batch at sequence number %d cannot be read", s.next))
	}
	s.next = r.seq + r.count
	if s.trouble != soundLog {
		return nil
	}
	events, err := journal.DecodeLines(nil, r.events, r.seq, r.count)
	if err != nil {
		s.fail(err)
		return nil
	}
	for _, ev := range sessionlog.UpgradeAll(*s.header, events) {
		if err := w.event(s, ev, r.pos); err != nil || s.trouble != soundLog {
			return err
		}
	}
	return nil
}

// event takes one event in.
func (w *textWriter) event(s *textSession, ev sessionlog.Event, record int64) error {
	if ev.Seq > seqMax {
		s.fail(fmt.Errorf("it has more than %d events", int64(seqMax)))
		return nil
	}
	p, err := sessionlog.Place(s.header.Version, ev)
	if err != nil {
		s.fail(err)
		return nil
	}
	switch ev.Type {
	case sessionlog.TypeTurnStart:
		s.opened = ev.Seq
	case sessionlog.TypeTurnEnd:
		s.opened = -1
	}
	if title, ok := sessionlog.TitleOf(ev); ok {
		s.title, s.titled = title, true
	}
	if call, ok := sessionlog.SensitiveCall(ev); ok && !s.secrets[call] {
		s.secrets[call] = true
		if err := w.c.query("INSERT INTO secrets VALUES (?, ?)", nil, s.id, call); err != nil {
			return err
		}
	}
	text := ""
	if call, ok := sessionlog.AnsweredCall(ev); !ok || !s.secrets[call] {
		text = words.Clean(sessionlog.SemanticText(ev))
	}
	if !p.OnSurface {
		if text == "" {
			return nil
		}
		return w.insert(s, ev, sessionlog.LogOnly, nil, nil, text)
	}
	place := ev.Seq
	if p.Replaces {
		if place, err = w.shadow(s, ev, p); err != nil || s.trouble != soundLog {
			return err
		}
	}
	var at *int64
	if ev.Type == sessionlog.TypeToolResult { // may be rewritten, and is compared then
		at = &record
	}
	return w.insert(s, ev, sessionlog.Current, &place, at, text)
}

// shadow takes the nodes that an event replaces off the surface, and returns the
// place that it gets.
func (w *textWriter) shadow(s *textSession, ev sessionlog.Event, p sessionlog.Placement) (place int64, err error) {
	place, from, err := w.c.number("SELECT place FROM events WHERE id = ? AND class = 1", eventID(s.id, min(p.Start, seqMax)))
	if err != nil {
		return 0, err
	}
	end, to, err := w.c.number("SELECT place FROM events WHERE id = ? AND class = 1", eventID(s.id, min(p.End, seqMax)))
	if err != nil {
		return 0, err
	}
	var shadowed []int64
	if from && to {
		err := w.c.query("SELECT id FROM events WHERE id >> 32 = ? AND class = 1 AND place BETWEEN ? AND ? ORDER BY place", func(st *sqlite3.Stmt) bool {
			shadowed = append(shadowed, st.ColumnInt64(0)&seqMax)
			return true
		}, s.id, place, end)
		if err != nil {
			return 0, err
		}
	}
	if err := sessionlog.CheckShadowed(ev, shadowed); err != nil {
		s.fail(err)
		return 0, nil
	}
	if ev.Type == sessionlog.TypeToolResult {
		old, err := w.earlier(s, shadowed[0])
		if err == nil {
			err = sessionlog.CheckRewrite(s.header.Version, ev, old)
		}
		if w.ctx.Err() != nil {
			return 0, w.ctx.Err()
		}
		if err != nil {
			s.fail(err)
			return 0, nil
		}
	}
	for _, seq := range shadowed {
		if err := w.c.query("UPDATE events SET class = 2 WHERE id = ?", nil, eventID(s.id, seq)); err != nil {
			return 0, err
		}
	}
	return place, nil
}

// earlier returns a tool/result that was taken in before, read from the journal
// again; of another event no more than its type.
func (w *textWriter) earlier(s *textSession, seq int64) (old sessionlog.Event, err error) {
	var record int64
	err = w.c.query("SELECT k.name, e.record FROM events e JOIN kinds k ON k.id = e.kind WHERE e.id = ?", func(st *sqlite3.Stmt) bool {
		old.Type, record = st.ColumnText(0), st.ColumnInt64(1)
		return false
	}, eventID(s.id, seq))
	if err != nil || record == 0 {
		return old, err
	}
	r, err := w.t.j.recordAt(w.ctx, record)
	if err != nil {
		return old, err
	}
	events, err := journal.DecodeLines(nil, r.events, r.seq, r.count)
	if err != nil || seq < r.seq || seq >= r.seq+int64(len(events)) {
		return old, errors.Join(err, fmt.Errorf("the record of event %d is another one now", seq))
	}
	return sessionlog.Upgrade(*s.header, events[seq-r.seq]), nil
}

// insert writes the rows of an event.
func (w *textWriter) insert(s *textSession, ev sessionlog.Event, class sessionlog.Class, place, record *int64, text string) error {
	kind, ok := w.kinds[ev.Type]
	if !ok {
		var err error
		if kind, err = w.number("kinds", "name", ev.Type); err != nil {
			return err
		}
		if w.kinds == nil {
			w.kinds = map[string]int64{}
		}
		w.kinds[ev.Type] = kind
	}
	id := eventID(s.id, ev.Seq)
	st, err := w.c.stmt("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	err = errors.Join(st.BindInt64(1, id), st.BindInt64(2, ev.Time), st.BindInt64(3, kind), st.BindInt64(4, int64(class)),
		st.BindInt64(5, int64(words.Length(text))), bindOptional(st, 6, place), bindOptional(st, 7, record))
	if err != nil {
		return err
	}
	if err := st.Exec(); err != nil || text == "" {
		return err
	}
	if err := w.c.query("INSERT INTO texts VALUES (?, ?)", nil, id, text); err != nil {
		return err
	}
	return w.tokens("INSERT INTO words (rowid, whole, sub, workspace) VALUES (?, ?, ?, ?)", id, text)
}

func bindOptional(st *sqlite3.Stmt, param int, n *int64) error {
	if n == nil {
		return st.BindNull(param)
	}
	return st.BindInt64(param, *n)
}

// tokens adds the tokens of a text to the index or takes them out of it: what is
// taken out must be exactly what was added.
func (w *textWriter) tokens(sql string, id int64, text string) error {
	st, err := w.c.stmt(sql)
	if err != nil {
		return err
	}
	var spaceless bool
	w.whole, spaceless = words.AppendTokens(w.whole[:0], text, words.Whole)
	w.sub = w.sub[:0]
	if spaceless {
		w.sub, _ = words.AppendTokens(w.sub, text, words.Substring)
	}
	err = errors.Join(st.BindInt64(1, id), st.BindRawText(2, w.whole), st.BindRawText(3, w.sub), st.BindText(4, w.tag))
	if err != nil {
		return err
	}
	return st.Exec()
}

// How many texts are in memory at once while they are deleted, a single long one
// excepted.
const (
	eraseTexts = 256
	eraseBytes = 4 << 20
)

// erase removes a session from the index.
func (w *textWriter) erase(id int64) error {
	w.erased = true
	lo, hi := eventID(id, 0), eventID(id, seqMax)
	for {
		type row struct {
			id   int64
			text string
		}
		var rows []row
		size := 0
		err := w.c.query("SELECT id, text FROM texts WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", func(st *sqlite3.Stmt) bool {
			r := row{st.ColumnInt64(0), st.ColumnText(1)}
			rows, size = append(rows, r), size+len(r.text)
			return size < eraseBytes
		}, lo, hi, int64(eraseTexts))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for _, r := range rows {
			if err := w.tokens("INSERT INTO words (words, rowid, whole, sub, workspace) VALUES ('delete', ?, ?, ?, ?)", r.id, r.text); err != nil {
				return err
			}
		}
		if err := w.c.query("DELETE FROM texts WHERE id BETWEEN ? AND ?", nil, lo, rows[len(rows)-1].id); err != nil {
			return err
		}
	}
	return errors.Join(
		w.c.query("DELETE FROM events WHERE id BETWEEN ? AND ?", nil, lo, hi),
		w.c.query("DELETE FROM secrets WHERE session = ?", nil, id),
		w.c.query("DELETE FROM sessions WHERE id = ?", nil, id))
}

// missing finds the sessions of which the journal had more by a position than
// has come by here, or has nothing any more: there are records that are lost, or
// are another's now.
func (w *textWriter) missing(pos int64) error {
	for after, more := int64(0), true; more; {
		var known []textRecord // one of every session, of which nothing but what it would be followed by counts
		err := w.t.j.pool.do(w.ctx, "reading it for its text index", func(c *conn) error {
			newer, err := w.t.j.heads(c)
			if err != nil {
				return err
			}
			n := 0
			err = c.query("SELECT id, name, first, next, last FROM sessions WHERE id > ? ORDER BY id LIMIT ?", func(st *sqlite3.Stmt) bool {
				name, h := st.ColumnText(1), head{id: st.ColumnInt64(0), first: st.ColumnInt64(2), next: st.ColumnInt64(3), last: st.ColumnInt64(4)}
				if now, ok := newer[name]; ok {
					h = now
				}
				switch r := (textRecord{name: name, record: record{session: h.id, seq: h.next}}); {
				case !h.live():
					r.seq = erasedSeq
					known = append(known, r)
				case h.last <= pos:
					known = append(known, r)
				}
				n, after = n+1, h.id
				return true
			}, after, int64(missingMax))
			more = n == missingMax
			return err
		})
		if messages.CodeOf(err) == messages.JournalCorrupt { // its list of sessions is: then nobody can tell
			return nil
		}
		if err != nil {
			return err
		}
		for _, r := range known {
			if err := w.compare(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// missingMax is how many sessions are compared at a time.
const missingMax = 1024

// compare compares what is known of a session with where it should be.
func (w *textWriter) compare(r textRecord) error {
	next, ok, err := w.c.number("SELECT next FROM sessions WHERE id = ?", r.session)
	if err != nil || ok && next == r.seq || !ok && r.seq == erasedSeq {
		return err
	}
	s, err := w.load(r.session)
	if err == nil && r.seq == erasedSeq {
		return w.erase(r.session)
	}
	if err == nil && s == nil {
		s, err = w.bear(r)
	}
	if err != nil {
		return err
	}
	s.fail(fmt.Errorf("its batches from sequence number %d on cannot be found", s.next))
	s.next = r.seq
	return w.save(s)
}
