package disk

import (
	"cmp"
	"context"
	"slices"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// Read returns a session's header and events.
func (h *Handle) Read(ctx context.Context, id string, from int64, limit int) (journal.Opened, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.readable(ctx); err != nil {
		return journal.Opened{}, err
	}
	s := h.disk.live(id)
	if s == nil {
		return journal.Opened{}, messages.Refuse(messages.NotFound, "there is no session %s", id)
	}
	return s.read(from, limit)
}

// Sessions lists sessions by id.
func (h *Handle) Sessions(ctx context.Context, after string, limit int) ([]journal.SessionInfo, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.readable(ctx); err != nil {
		return nil, err
	}
	var out []journal.SessionInfo
	for _, s := range h.disk.from(after) {
		if s.header == nil || s.id == after {
			continue
		}
		if out = append(out, journal.SessionInfo{Session: s.id, Header: *s.header, Events: s.next, Epoch: s.epoch}); len(out) == limit {
			break
		}
	}
	return out, nil
}

// Active lists the index rows by session and call.
func (h *Handle) Active(ctx context.Context, f journal.ActiveFilter) ([]journal.ActiveRow, journal.Position, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.readable(ctx); err != nil {
		return nil, 0, err
	}
	var out []journal.ActiveRow
	for _, s := range h.disk.from(f.AfterSession) {
		if f.Session != "" && s.id != f.Session {
			continue
		}
		for _, r := range s.rows {
			if s.id > f.AfterSession || r.CallID > f.AfterCall {
				out = append(out, journal.ActiveRow{Session: s.id, Row: r.Row, At: r.at})
			}
		}
		if f.Limit > 0 && len(out) >= f.Limit {
			break
		}
	}
	return cut(out, f.Limit), h.disk.last, nil
}

// from returns the sessions from an id on.
func (d *Disk) from(id string) []*session {
	at, _ := slices.BinarySearchFunc(d.ordered, id, func(s *session, id string) int { return cmp.Compare(s.id, id) })
	return d.ordered[at:]
}

// Changes returns the index changes after a position.
func (h *Handle) Changes(ctx context.Context, after journal.Position, limit int) ([]journal.Change, journal.Position, error) {
	d := h.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := h.readable(ctx); err != nil {
		return nil, 0, err
	}
	if after > d.last {
		return nil, 0, journal.Ahead(after, d.last)
	}
	first, _ := slices.BinarySearchFunc(d.changes, after+1, func(c journal.Change, at journal.Position) int { return cmp.Compare(c.At, at) })
	changes := d.changes[first:]
	batches := 0
	for i, c := range changes {
		if i > 0 && c.At == changes[i-1].At {
			continue
		}
		if batches++; limit > 0 && batches > limit {
			return slices.Clone(changes[:i]), changes[i-1].At, nil
		}
	}
	return slices.Clone(changes), d.last, nil
}

// Due lists the sessions that must be awake by a time, and the next time.
func (h *Handle) Due(ctx context.Context, before int64, limit int) ([]string, int64, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.readable(ctx); err != nil {
		return nil, 0, err
	}
	type dueAt struct {
		due     int64
		session string
	}
	var due []dueAt
	var next int64
	for _, s := range h.disk.ordered {
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
			due = append(due, dueAt{first, s.id})
		}
	}
	slices.SortStableFunc(due, func(a, b dueAt) int { return cmp.Compare(a.due, b.due) }) // by session already
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
func (h *Handle) Last(ctx context.Context) (journal.Position, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.disk.last, h.readable(ctx)
}

// Moved returns a channel that is closed once there is a later position. The
// operation that brings it closes the channel; no goroutine waits for it.
func (h *Handle) Moved(after journal.Position) <-chan struct{} {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.closed || h.crashed || h.disk.last > after {
		return closedChannel
	}
	for _, w := range h.waiting {
		if w.after == after {
			return w.moved
		}
	}
	w := waiter{after, make(chan struct{})}
	h.waiting = append(h.waiting, w)
	return w.moved
}

// wake closes the channels of those who wait for a position before last.
func (h *Handle) wake(last journal.Position) {
	if len(h.waiting) == 0 {
		return
	}
	h.waiting = slices.DeleteFunc(h.waiting, func(w waiter) bool {
		if w.after >= last {
			return false
		}
		close(w.moved)
		return true
	})
}

// wakeAll closes every channel: there will be no later position.
func (h *Handle) wakeAll() {
	for _, w := range h.waiting {
		close(w.moved)
	}
	h.waiting = nil
}

// closedChannel is what a waiter gets who need not wait.
var closedChannel = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// Backup refuses: there is no file to copy.
func (h *Handle) Backup(context.Context, string) error {
	return messages.Refuse(messages.BadRequest, "a simulated disk keeps no file to back up: use the sqlite journal")
}

func (h *Handle) readable(ctx context.Context) error {
	switch {
	case h.crashed:
		return messages.Refuse(messages.Unavailable, "host %s has crashed", h.host)
	case h.closed:
		return errClosed()
	}
	return ctx.Err()
}

func errClosed() error { return messages.Refuse(messages.Unavailable, "the journal is closed") }
