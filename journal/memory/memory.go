// Package memory is a journal that forgets everything when the process ends:
// for examples, tests and the simulation.
//
// It decides epochs and order exactly as the durable backends do, and passes
// the same suite. It never touches a disk, a clock or dice, and never fails
// but for fencing.
package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/internal/notify"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Journal keeps sessions in memory. Make one with New.
type Journal struct {
	run       func(func())
	callbacks notify.Callbacks
	moved     notify.Moved

	mu       sync.Mutex
	closed   bool
	last     journal.Position
	sessions map[string]*session
	changed  []changedAt // ascending by position
}

var _ journal.Journal = (*Journal)(nil)

// session is one session. A deleted one stays with its epoch and no header.
type session struct {
	epoch  int64
	header *sessionlog.Header
	events []sessionlog.Event
	rows   map[string]row
}

type row struct {
	sessionlog.Row
	at journal.Position
}

// changedAt is a batch that changed the index.
type changedAt struct {
	at      journal.Position
	session string
	changes []sessionlog.RowChange
}

// New makes an empty journal. Callbacks are handed to run, which must call
// them in order and not before it has returned; nil gives them a goroutine of
// the journal's own. The simulation hands in its scheduler.
func New(run func(callback func())) *Journal {
	j := &Journal{run: run, sessions: map[string]*session{}}
	if run == nil {
		j.run = func(callback func()) { j.callbacks.Run(callback) }
	}
	return j
}

// Open takes the session's next epoch and reads its log.
func (j *Journal) Open(id string, done func(journal.Opened, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		j.run(func() { done(journal.Opened{}, errClosed()) })
		return
	}
	var opened journal.Opened
	if s := j.live(id); s != nil {
		s.epoch++
		opened = s.read(0, 0)
	}
	j.run(func() { done(opened, nil) })
}

// Append records a batch if its epoch and sequence number are the session's.
func (j *Journal) Append(b journal.Batch, done func(journal.Appended, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	appended, err := j.append(b)
	j.run(func() { done(appended, err) })
}

func (j *Journal) append(b journal.Batch) (journal.Appended, error) {
	if j.closed {
		return journal.Appended{}, errClosed()
	}
	if err := b.Check(); err != nil {
		return journal.Appended{}, err
	}
	if _, err := b.Lines(); err != nil {
		return journal.Appended{}, err
	}
	var epoch, next int64
	if s := j.live(b.Session); s != nil {
		epoch, next = s.epoch, int64(len(s.events))
	}
	if epoch != b.Epoch || next != b.Seq {
		return journal.Appended{}, journal.Refused(b, epoch, next)
	}
	if b.Empty() {
		return journal.Appended{At: j.last, Epoch: epoch}, nil
	}
	j.last++
	s := j.record(b)
	j.moved.Advance(j.last)
	return journal.Appended{At: j.last, Epoch: s.epoch}, nil
}

// record applies a batch that has been found good.
func (j *Journal) record(b journal.Batch) *session {
	s := j.sessions[b.Session]
	if s == nil {
		s = &session{}
		j.sessions[b.Session] = s
	}
	changes := slices.Clone(b.Index)
	switch {
	case b.Delete:
		changes = j.forget(b.Session)
		*s = session{epoch: s.epoch}
	case b.Header != nil:
		header := *b.Header
		s.epoch, s.header, s.rows = s.epoch+1, &header, map[string]row{}
	}
	s.events = append(s.events, b.Events...)
	for _, c := range b.Index {
		if c.Remove {
			delete(s.rows, c.Row.CallID)
		} else {
			s.rows[c.Row.CallID] = row{c.Row, j.last}
		}
	}
	if len(changes) > 0 {
		j.changed = append(j.changed, changedAt{j.last, b.Session, changes})
	}
	return s
}

// forget drops the recorded changes of a session that is being deleted, and
// returns the removal of every row it ever had: a view may have read that a row
// was put, and not yet that it was removed.
func (j *Journal) forget(id string) []sessionlog.RowChange {
	calls := map[string]bool{}
	j.changed = slices.DeleteFunc(j.changed, func(c changedAt) bool {
		if c.session != id {
			return false
		}
		for _, ch := range c.changes {
			calls[ch.Row.CallID] = true
		}
		return true
	})
	var out []sessionlog.RowChange
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		out = append(out, sessionlog.RowChange{Row: sessionlog.Row{CallID: call}, Remove: true})
	}
	return out
}

// live returns a session that exists, or nil.
func (j *Journal) live(id string) *session {
	if s := j.sessions[id]; s != nil && s.header != nil {
		return s
	}
	return nil
}

// read shares the events with the caller: they are values, and the clipped
// slice makes the caller's own append copy.
func (s *session) read(from int64, limit int) journal.Opened {
	header := *s.header
	events := s.events[min(max(from, 0), int64(len(s.events))):]
	return journal.Opened{Epoch: s.epoch, Header: &header, Events: slices.Clip(cut(events, limit))}
}

// Read returns a session's header and events.
func (j *Journal) Read(ctx context.Context, id string, from int64, limit int) (journal.Opened, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.readable(ctx); err != nil {
		return journal.Opened{}, err
	}
	s := j.live(id)
	if s == nil {
		return journal.Opened{}, messages.Refuse(messages.NotFound, "there is no session %s", id)
	}
	return s.read(from, limit), nil
}

// Sessions lists sessions by id.
func (j *Journal) Sessions(ctx context.Context, after string, limit int) ([]journal.SessionInfo, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.readable(ctx); err != nil {
		return nil, err
	}
	var out []journal.SessionInfo
	for id, s := range j.sessions {
		if s.header != nil && id > after {
			out = append(out, journal.SessionInfo{Session: id, Header: *s.header, Events: int64(len(s.events)), Epoch: s.epoch})
		}
	}
	slices.SortFunc(out, func(a, b journal.SessionInfo) int { return cmp.Compare(a.Session, b.Session) })
	return cut(out, limit), nil
}

// Active lists the index rows by session and call.
func (j *Journal) Active(ctx context.Context, f journal.ActiveFilter) ([]journal.ActiveRow, journal.Position, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.readable(ctx); err != nil {
		return nil, 0, err
	}
	var out []journal.ActiveRow
	for id, s := range j.sessions {
		if f.Session != "" && id != f.Session || id < f.AfterSession {
			continue
		}
		for call, r := range s.rows {
			if id > f.AfterSession || call > f.AfterCall {
				out = append(out, journal.ActiveRow{Session: id, Row: r.Row, At: r.at})
			}
		}
	}
	slices.SortFunc(out, func(a, b journal.ActiveRow) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Row.CallID, b.Row.CallID))
	})
	return cut(out, f.Limit), j.last, nil
}

// Changes returns the index changes after a position.
func (j *Journal) Changes(ctx context.Context, after journal.Position, limit int) ([]journal.Change, journal.Position, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.readable(ctx); err != nil {
		return nil, 0, err
	}
	if after > j.last {
		return nil, 0, journal.Ahead(after, j.last)
	}
	first, _ := slices.BinarySearchFunc(j.changed, after+1, func(c changedAt, at journal.Position) int { return cmp.Compare(c.at, at) })
	batches := j.changed[first:]
	next := j.last
	if limit > 0 && len(batches) > limit {
		batches = batches[:limit]
		next = batches[limit-1].at
	}
	var out []journal.Change
	for _, b := range batches {
		for _, c := range b.changes {
			out = append(out, journal.Change{At: b.at, Session: b.session, RowChange: c})
		}
	}
	return out, next, nil
}

// Due lists the sessions that must be awake by a time, and the next time.
func (j *Journal) Due(ctx context.Context, before int64, limit int) ([]string, int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.readable(ctx); err != nil {
		return nil, 0, err
	}
	type dueAt struct {
		due     int64
		session string
	}
	var due []dueAt
	var next int64
	for id, s := range j.sessions {
		var first int64
		for _, r := range s.rows {
			switch {
			case r.Due == 0:
			case r.Due > before:
				next = earlier(next, r.Due)
			default:
				first = earlier(first, r.Due)
			}
		}
		if first != 0 {
			due = append(due, dueAt{first, id})
		}
	}
	slices.SortFunc(due, func(a, b dueAt) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.session, b.session))
	})
	var out []string
	for _, d := range cut(due, limit) {
		out = append(out, d.session)
	}
	return out, next, nil
}

// earlier returns the smaller of two times of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// Last returns the position of the newest batch.
func (j *Journal) Last(ctx context.Context) (journal.Position, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.readable(ctx)
}

// Moved returns a channel that is closed once there is a later position.
func (j *Journal) Moved(after journal.Position) <-chan struct{} { return j.moved.After(after) }

// Backup refuses: there is no file to copy.
func (j *Journal) Backup(context.Context, string) error {
	return messages.Refuse(messages.BadRequest, "a journal in memory keeps no file to back up: use the sqlite journal")
}

// Close refuses later calls and waits for the callbacks.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.moved.Close()
	j.callbacks.Wait()
	return nil
}

func (j *Journal) readable(ctx context.Context) error {
	if j.closed {
		return errClosed()
	}
	return ctx.Err()
}

func errClosed() error { return messages.Refuse(messages.Unavailable, "the journal is closed") }

// cut shortens a list to limit; 0 leaves it whole.
func cut[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}
