package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// errGone says that a session's records are not there because it was deleted
// after its head had been looked up.
var errGone = errors.New("the session was deleted meanwhile")

// goneTries bounds how often a read starts over because of that.
const goneTries = 3

// readOpened reads a session as far as it went when its epoch was taken.
func (j *Journal) readOpened(r *request) (opened journal.Opened, err error) {
	ctx := context.Background()
	err = j.pool.do(ctx, "reading session "+r.session, func(c *conn) error {
		if err := c.begin(); err != nil {
			return err
		}
		opened, err = c.session(r.session, r.head, 0, 0)
		return err
	})
	if errors.Is(err, errGone) {
		err = messages.Refuse(messages.Fenced, "session %s was deleted by a later owner than epoch %d", r.session, r.head.epoch)
	}
	return opened, err
}

// Read returns a session's header and events.
func (j *Journal) Read(ctx context.Context, session string, from int64, limit int) (opened journal.Opened, err error) {
	for range goneTries {
		err = j.pool.do(ctx, "reading session "+session, func(c *conn) error {
			// The tail first: what it knows is in every later snapshot.
			h, known := j.tail.of(session)
			if err := c.begin(); err != nil {
				return err
			}
			if !known {
				if h, err = c.head(session); err != nil {
					return err
				}
			}
			if !h.live() {
				return messages.Refuse(messages.NotFound, "there is no session %s", session)
			}
			opened, err = c.session(session, h, max(from, 0), limit)
			return err
		})
		if !errors.Is(err, errGone) {
			return opened, err
		}
	}
	return journal.Opened{}, messages.Refuse(messages.NotFound, "session %s is being deleted", session)
}

const selectRecord = "SELECT session, seq, count, prev, sum, header, delta, events FROM records WHERE pos = ?"

// session reads the events from a sequence number on: back along the chain of
// the session's records, then forward over what was found.
func (c *conn) session(session string, h head, from int64, limit int) (journal.Opened, error) {
	var found []record
	next := h.next
	for pos := h.last; pos != 0 && next > from; {
		r, err := c.record(pos, limit > 0 && next > from+int64(limit))
		switch {
		case err != nil:
			return journal.Opened{}, c.lost(session, h, pos, err)
		case r.session != h.id || r.prev >= pos || r.seq < 0 || r.seq+r.count != next:
			return journal.Opened{}, c.lost(session, h, pos, fmt.Errorf("the record before sequence number %d does not lead there", next))
		}
		if limit <= 0 || r.seq < from+int64(limit) {
			if r.events == nil && r.count > 0 { // passed over, and needed in part after all
				if r, err = c.record(pos, false); err != nil {
					return journal.Opened{}, c.lost(session, h, pos, err)
				}
			}
			if err := r.damage(); err != nil {
				return journal.Opened{}, errDamaged(c.path, session, pos, err)
			}
			found = append(found, r)
		}
		next, pos = r.seq, r.prev
		if pos == 0 && next != 0 {
			return journal.Opened{}, errDamaged(c.path, session, h.first, fmt.Errorf("the chain of its records ends at sequence number %d", next))
		}
	}
	first, err := c.record(h.first, true)
	if err != nil {
		return journal.Opened{}, c.lost(session, h, h.first, err)
	}
	slices.Reverse(found)
	return assemble(c.path, session, h, first.header, found, from, limit)
}

// record reads one record; of one that the caller only passes by, no more than
// the header.
func (c *conn) record(pos int64, passing bool) (r record, err error) {
	err = c.query(selectRecord, func(s *sqlite3.Stmt) bool {
		r = record{
			pos: pos, session: s.ColumnInt64(0), seq: s.ColumnInt64(1), count: s.ColumnInt64(2),
			prev: s.ColumnInt64(3), sum: s.ColumnInt64(4), header: s.ColumnBlob(5, nil),
		}
		if !passing {
			r.delta, r.events = s.ColumnBlob(6, nil), s.ColumnBlob(7, nil)
		}
		return false
	}, pos)
	if err == nil && r.pos == 0 {
		err = errors.New("the record is missing")
	}
	return r, err
}

// lost tells why a record could not be read: the session was deleted after its
// head was looked up, the disk failed or the read was broken off, the file is
// damaged for all, or the session is damaged.
func (c *conn) lost(session string, h head, pos int64, cause error) error {
	if code := sqlite3.ErrorCode(0); errors.As(cause, &code) {
		if code != sqlite3.CORRUPT {
			return cause
		}
		if whole, err := c.damaged(); err != nil || whole {
			return cmp.Or(err, cause)
		}
	}
	now, err := c.head(session)
	if err != nil {
		return err
	}
	if now.first != h.first {
		return errGone
	}
	return errDamaged(c.path, session, pos, cause)
}

// damaged says whether neither end of the records can be read.
func (c *conn) damaged() (bool, error) {
	for _, q := range []string{"SELECT min(pos) FROM records", "SELECT max(pos) FROM records"} {
		if _, _, err := c.number(q); err == nil || !errors.Is(err, sqlite3.CORRUPT) {
			return false, err
		}
	}
	return true, nil
}

// Sessions lists sessions by id.
func (j *Journal) Sessions(ctx context.Context, after string, limit int) (out []journal.SessionInfo, err error) {
	if limit <= 0 {
		limit = -1
	}
	err = j.pool.do(ctx, "listing sessions", func(c *conn) error {
		newer, err := j.heads(c)
		if err != nil {
			return err
		}
		return c.query(`
			SELECT s.name, s.epoch, s.next, r.header FROM sessions s LEFT JOIN records r ON r.pos = s.first
			WHERE s.name > ? AND s.first > 0 ORDER BY s.name LIMIT ?`,
			func(s *sqlite3.Stmt) bool {
				info := journal.SessionInfo{Session: s.ColumnText(0), Epoch: s.ColumnInt64(1), Events: s.ColumnInt64(2)}
				// The tail goes before the table even where it is behind: the table may show
				// an epoch whose commit is not published yet, and which Read would not show.
				if h, ok := newer[info.Session]; ok {
					info.Events, info.Epoch = h.next, h.epoch
				}
				// A damaged session is listed by its id; opening it says what is wrong.
				info.Header = sessionlog.Header{ID: info.Session}
				if h, err := sessionlog.DecodeHeader(s.ColumnBlob(3, nil)); err == nil {
					info.Header = h
				}
				out = append(out, info)
				return true
			}, after, int64(limit))
	})
	return out, err
}

// heads fixes the connection's snapshot and returns where the sessions of the
// tail stand. As in overlay, no raise comes between the two.
func (j *Journal) heads(c *conn) (map[string]head, error) {
	t := &j.tail
	t.mu.RLock()
	defer t.mu.RUnlock()
	if err := c.begin(); err != nil {
		return nil, err
	}
	out := make(map[string]head, len(t.sessions))
	for name, s := range t.sessions {
		if s.live() {
			out[name] = s.head
		}
	}
	return out, nil
}

const selectActive = "SELECT session, call, state, due, seq, at FROM active"

func scanActive(s *sqlite3.Stmt) journal.ActiveRow {
	return journal.ActiveRow{
		Session: s.ColumnText(0),
		Row: sessionlog.Row{
			CallID: s.ColumnText(1), State: sessionlog.RowState(s.ColumnText(2)),
			Due: s.ColumnInt64(3), Seq: s.ColumnInt64(4),
		},
		At: journal.Position(s.ColumnInt64(5)),
	}
}

// Active lists the index rows by session and call: those of the table, with the
// tail's in front of them.
func (j *Journal) Active(ctx context.Context, f journal.ActiveFilter) (out []journal.ActiveRow, at journal.Position, err error) {
	err = j.pool.do(ctx, "listing questions", func(c *conn) error {
		over, last, err := j.overlay(c, f.Session)
		if err != nil {
			return err
		}
		at = last
		var newer []journal.ActiveRow
		for k, r := range over {
			if !r.Remove && (k.session > f.AfterSession || k.session == f.AfterSession && k.call > f.AfterCall) {
				newer = append(newer, journal.ActiveRow{Session: k.session, Row: r.Row, At: journal.Position(r.at)})
			}
		}
		where, args := " WHERE (session, call) > (?, ?) ORDER BY session, call", []any{f.AfterSession, f.AfterCall}
		if f.Session != "" {
			where, args = " WHERE session = ? AND (session, call) > (?, ?) ORDER BY session, call", []any{f.Session, f.AfterSession, f.AfterCall}
		}
		err = c.query(selectActive+where, func(s *sqlite3.Stmt) bool {
			row := scanActive(s)
			if _, covered := over[rowKey{row.Session, row.Row.CallID}]; !covered {
				out = append(out, row)
			}
			return f.Limit <= 0 || len(out) < f.Limit
		}, args...)
		out = append(out, newer...)
		return err
	})
	slices.SortFunc(out, func(a, b journal.ActiveRow) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Row.CallID, b.Row.CallID))
	})
	return cut(out, f.Limit), at, err
}

type rowKey struct{ session, call string }

// overlay fixes the connection's snapshot and returns the tail's index rows (of
// one session, or all) that belong in front of it, and the position of both.
// Under the lock, so that no raise comes between; it does no I/O to speak of.
func (j *Journal) overlay(c *conn, session string) (map[rowKey]tailRow, journal.Position, error) {
	t := &j.tail
	t.mu.RLock()
	defer t.mu.RUnlock()
	if err := c.begin(); err != nil {
		return nil, 0, err
	}
	over := map[rowKey]tailRow{}
	add := func(name string, s *tailSession) {
		for call, r := range s.rows {
			over[rowKey{name, call}] = r
		}
	}
	if session == "" {
		for name, s := range t.sessions {
			add(name, s)
		}
	} else if s := t.sessions[session]; s != nil {
		add(session, s)
	}
	return over, t.last, nil
}

// Changes returns the index changes after a position.
func (j *Journal) Changes(ctx context.Context, after journal.Position, limit int) (out []journal.Change, next journal.Position, err error) {
	last := j.moved.Last() // before the snapshot, which then has it all
	if after > last && !j.pool.isClosed() {
		return nil, 0, journal.Ahead(after, last)
	}
	if limit <= 0 {
		limit = -1
	}
	batches := 0
	next = last
	err = j.pool.do(ctx, "reading changes", func(c *conn) error {
		var damaged error
		err := c.query(`
			SELECT r.pos, s.name, r.delta FROM records r JOIN sessions s ON s.id = r.session
			WHERE r.pos > ? AND r.pos <= ? AND r.delta IS NOT NULL ORDER BY r.pos LIMIT ?`,
			func(s *sqlite3.Stmt) bool {
				at, session := journal.Position(s.ColumnInt64(0)), s.ColumnText(1)
				changes, err := journal.DecodeChanges(s.ColumnRawBlob(2))
				if err != nil {
					damaged = errDamaged(j.path, session, int64(at), err)
					return false
				}
				for _, ch := range changes {
					out = append(out, journal.Change{At: at, Session: session, RowChange: ch})
				}
				if batches++; batches == limit {
					next = at
				}
				return true
			}, int64(after), int64(last), int64(limit))
		return errors.Join(err, damaged)
	})
	if err != nil {
		return nil, 0, err
	}
	return out, next, nil
}

// Due lists the sessions that must be awake by a time, and the next time.
func (j *Journal) Due(ctx context.Context, before int64, limit int) (sessions []string, next int64, err error) {
	type dueAt struct {
		due     int64
		session string
	}
	var found []dueAt
	err = j.pool.do(ctx, "looking up what is due", func(c *conn) error {
		over, _, err := j.overlay(c, "")
		if err != nil {
			return err
		}
		distinct := map[string]bool{}
		err = c.query("SELECT due, session, call FROM active WHERE due > 0 ORDER BY due", func(s *sqlite3.Stmt) bool {
			d := dueAt{s.ColumnInt64(0), s.ColumnText(1)}
			if d.due > before || limit > 0 && len(distinct) == limit {
				return false
			}
			if _, covered := over[rowKey{d.session, s.ColumnText(2)}]; !covered {
				distinct[d.session] = true
				found = append(found, d)
			}
			return true
		})
		if err != nil {
			return err
		}
		err = c.query("SELECT due, session, call FROM active WHERE due > ? AND due > 0 ORDER BY due", func(s *sqlite3.Stmt) bool {
			if _, covered := over[rowKey{s.ColumnText(1), s.ColumnText(2)}]; covered {
				return true
			}
			next = s.ColumnInt64(0)
			return false
		}, before)
		for k, r := range over {
			switch {
			case r.Remove || r.Row.Due == 0:
			case r.Row.Due > before:
				if next == 0 || r.Row.Due < next {
					next = r.Row.Due
				}
			default:
				found = append(found, dueAt{r.Row.Due, k.session})
			}
		}
		return err
	})
	slices.SortFunc(found, func(a, b dueAt) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.session, b.session))
	})
	seen := map[string]bool{}
	for _, d := range found {
		if !seen[d.session] {
			seen[d.session] = true
			sessions = append(sessions, d.session)
		}
	}
	return cut(sessions, limit), next, err
}

// cut shortens a list to limit; 0 leaves it whole.
func cut[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}
