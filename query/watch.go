package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

const (
	// changesPage is how many batches a watch reads at once.
	changesPage = 256
	// listRows and listBytes bound the page of the starting list that a watch
	// holds while its reader takes it.
	listRows  = 128
	listBytes = 256 << 10
)

// Watch sends question rows until the context ends, send fails or the journal
// does. From cursor 0 it starts with every active question; from a cursor with
// the first change after it. Then it follows the journal in commit order: every
// change exactly once, no gap between list and changes, a settled question with
// its outcome (faults N7, N9). A frame with live ends the start; after that no
// silence is longer than the heartbeat.
//
// A row is keyed by (session, call id), so a client that sees a question again
// after a reconnect replaces its card (fault N1). A cursor of another journal is
// messages.BadRequest.
func (v *Views) Watch(ctx context.Context, req *messages.WatchQuestionsRequest, send func(*messages.WatchQuestionsResponse) error) error {
	w := watch{views: v, session: req.GetSession(), at: journal.Position(req.GetCursor()), send: send}
	if req.GetCursor() < 0 {
		return messages.Refuse(messages.BadRequest, "cursor is %d; give 0, or a cursor that a list or a watch returned", req.GetCursor())
	}
	if req.GetCursor() == 0 {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	if err := w.catchUp(ctx, true); err != nil {
		return err
	}
	live := &messages.WatchQuestionsResponse{Cursor: int64(w.at), Live: true, HeartbeatMs: v.heartbeat.Milliseconds()}
	if err := send(live); err != nil {
		return err
	}
	return w.follow(ctx)
}

// watch is one stream: the position up to which everything has been sent.
type watch struct {
	views   *Views
	session string
	at      journal.Position
	send    func(*messages.WatchQuestionsResponse) error
	listed  []stretch // of the starting list, until the position is behind all of them
}

// stretch is a part of the starting list that was read at one position: up to
// a key, or, the last one, to the end.
type stretch struct {
	session, call string
	at            journal.Position
}

// list sends the active questions page by page, each read once the one before
// has been taken. The position is the first page's; what the later pages
// already show of the changes after it, catchUp leaves out. Frames of the start
// carry no cursor: a client that is cut off in the middle starts again.
func (w *watch) list(ctx context.Context) error {
	filter := journal.ActiveFilter{Session: w.session, Limit: listRows}
	for {
		entries, at, err := w.views.log.Active(ctx, filter)
		if err != nil {
			return fault(err)
		}
		rows, err := w.views.rows(ctx, entries, true, listBytes)
		if err != nil {
			return fault(err)
		}
		more := len(rows) < len(entries) || len(entries) == listRows
		if n := len(rows); n > 0 {
			filter.AfterSession, filter.AfterCall = entries[n-1].Session, entries[n-1].Row.CallID
		}
		if len(w.listed) == 0 {
			w.at = at
		}
		if n := len(w.listed); n > 0 && w.listed[n-1].at == at {
			n--
			w.listed = w.listed[:n]
		}
		w.listed = append(w.listed, stretch{filter.AfterSession, filter.AfterCall, at})
		for i, row := range rows {
			rows[i] = nil
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.send(&messages.WatchQuestionsResponse{Question: row}); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// start tells whether the starting list has not been caught up with.
func (w *watch) start() bool {
	n := len(w.listed)
	if n > 0 && w.at >= w.listed[n-1].at {
		w.listed = nil
	}
	return len(w.listed) > 0
}

// shown tells whether the starting list was read behind a change already.
func (w *watch) shown(c journal.Change) bool {
	n := len(w.listed)
	if n == 0 {
		return false
	}
	i, _ := slices.BinarySearchFunc(w.listed, c, func(s stretch, c journal.Change) int {
		return cmp.Or(cmp.Compare(s.session, c.Session), cmp.Compare(s.call, c.Row.CallID))
	})
	return c.At <= w.listed[min(i, n-1)].at
}

// catchUp sends every change after the position. A page that others have read
// may end before what is recorded by now; to the end means that nothing is left.
func (w *watch) catchUp(ctx context.Context, toTheEnd bool) error {
	for {
		changes, next, err := w.views.feed.after(ctx, w.at)
		if err != nil {
			return fault(err)
		}
		for i, c := range changes {
			if w.session != "" && c.Session != w.session {
				continue
			}
			shown := w.shown(c)
			// The cursor moves only behind the last change of a batch: resumed
			// in its middle, the rest of the batch would be missed.
			if i+1 == len(changes) || changes[i+1].At != c.At {
				w.at = c.At
			}
			if shown {
				continue
			}
			row, err := w.views.change(ctx, c)
			if err != nil {
				return err
			}
			frame := &messages.WatchQuestionsResponse{Question: row, Cursor: int64(w.at)}
			if w.start() {
				frame.Cursor = 0
			}
			if err := w.send(frame); err != nil {
				return err
			}
		}
		w.at = max(w.at, next)
		if len(changes) >= changesPage || toTheEnd && len(changes) > 0 { // a batch has at least one change, so with fewer the page ended here
			continue
		}
		if !w.start() {
			return nil
		}
		select { // others read this page of changes before the list was read to its end
		case <-w.views.log.Moved(w.at):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow waits for the journal to move, or for the heartbeat.
func (w *watch) follow(ctx context.Context) error {
	beat := time.NewTimer(w.views.heartbeat)
	defer beat.Stop()
	for {
		moved := w.views.log.Moved(w.at)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
			if err := w.catchUp(ctx, false); err != nil {
				return err
			}
		case <-beat.C:
			if err := w.send(&messages.WatchQuestionsResponse{Cursor: int64(w.at)}); err != nil {
				return err
			}
			beat.Reset(w.views.heartbeat)
		}
	}
}

// change makes the row of one index change.
func (v *Views) change(ctx context.Context, c journal.Change) (*messages.QuestionRow, error) {
	if !c.Remove {
		return v.active(ctx, journal.ActiveRow{Session: c.Session, Row: c.Row, At: c.At})
	}
	row := &messages.QuestionRow{Session: c.Session, CallId: CleanID(c.Row.CallID), State: stateSettled, CallSeq: c.Row.Seq}
	key := textKey{c.Session, c.Row.CallID, stateSettled, c.At}
	if t, ok := v.texts.get(key); ok {
		t.fill(row)
		return row, nil
	}
	if err := v.singles.begin(ctx); err != nil {
		return nil, err
	}
	defer v.singles.end()
	if t, ok := v.texts.get(key); ok { // read while this waited
		t.fill(row)
		return row, nil
	}
	opened, err := v.log.Read(ctx, c.Session, c.Row.Seq, 0)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case messages.CodeOf(err) == messages.NotFound: // the session was deleted
		row.Settlement = &messages.Settlement{Outcome: outcomeDisposed}
		return row, nil
	case err != nil:
		return troubled(row, err), nil
	}
	told := tell(opened, c.Row.CallID)
	if len(told) == 0 {
		row.Settlement = &messages.Settlement{Outcome: outcomeUnknown}
		return row, nil
	}
	t := told[0].text(stateSettled)
	t.fill(row)
	v.texts.put(key, t)
	return row, nil
}
