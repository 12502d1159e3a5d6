package query

import (
	"context"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// changesPage is how many batches a watch reads at once.
const changesPage = 256

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
	if err := w.catchUp(ctx); err != nil {
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
}

// list sends the active questions, read at one position. Frames of the start
// carry no cursor: a client that is cut off in the middle starts again.
func (w *watch) list(ctx context.Context) error {
	rows, at, err := w.views.log.Active(ctx, journal.ActiveFilter{Session: w.session})
	if err != nil {
		return fault(err)
	}
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.send(&messages.WatchQuestionsResponse{Question: w.views.active(ctx, row)}); err != nil {
			return err
		}
	}
	w.at = at
	return nil
}

// catchUp sends every change after the position.
func (w *watch) catchUp(ctx context.Context) error {
	for {
		changes, next, err := w.views.feed.after(ctx, w.at)
		if err != nil {
			return fault(err)
		}
		for i, c := range changes {
			if w.session != "" && c.Session != w.session {
				continue
			}
			// The cursor moves only behind the last change of a batch: resumed
			// in its middle, the rest of the batch would be missed.
			if i+1 == len(changes) || changes[i+1].At != c.At {
				w.at = c.At
			}
			if err := w.send(&messages.WatchQuestionsResponse{Question: w.views.change(ctx, c), Cursor: int64(w.at)}); err != nil {
				return err
			}
		}
		w.at = max(w.at, next)
		if len(changes) < changesPage { // a batch has at least one change, so this was all
			return nil
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
			if err := w.catchUp(ctx); err != nil {
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
func (v *Views) change(ctx context.Context, c journal.Change) *messages.QuestionRow {
	if !c.Remove {
		return v.active(ctx, journal.ActiveRow{Session: c.Session, Row: c.Row, At: c.At})
	}
	row := &messages.QuestionRow{Session: c.Session, CallId: cleanID(c.Row.CallID), State: stateSettled}
	key := textKey{c.Session, c.Row.CallID, stateSettled, c.At}
	if t, ok := v.texts.get(key); ok {
		t.fill(row)
		return row
	}
	opened, err := v.log.Read(ctx, c.Session, c.Row.Seq, 0)
	switch {
	case messages.CodeOf(err) == messages.NotFound: // the session was deleted
		row.Settlement = &messages.Settlement{Outcome: outcomeDisposed}
		return row
	case err != nil:
		return troubled(row, err)
	}
	told := tell(opened, c.Row.CallID)
	if len(told) == 0 {
		row.Settlement = &messages.Settlement{Outcome: outcomeUnknown}
		return row
	}
	t := told[0].text(stateSettled)
	t.fill(row)
	v.texts.put(key, t)
	return row
}
