package query

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// HeartbeatDefault is the longest silence of a watch.
const HeartbeatDefault = 15 * time.Second

// Options of a Views. The zero value is what a node uses.
type Options struct {
	// Heartbeat is the longest silence of a watch; 0: HeartbeatDefault.
	Heartbeat time.Duration
	// Now is the wall clock that remaining times are counted from; nil: time.Now.
	Now func() time.Time
}

// Views reads a journal for people and programs. It is safe for concurrent use
// and holds no state but small caches of what can never change.
type Views struct {
	log       journal.Reader
	heartbeat time.Duration
	now       func() time.Time
	texts     texts
	feed      feed
	pages     loads
	singles   loads
}

// New makes the views of a journal.
func New(log journal.Reader, opts Options) *Views {
	v := &Views{log: log, heartbeat: opts.Heartbeat, now: opts.Now, feed: feed{log: log},
		pages: make(loads, loadsMax), singles: make(loads, loadsMax)}
	if v.heartbeat <= 0 {
		v.heartbeat = HeartbeatDefault
	}
	if v.now == nil {
		v.now = time.Now
	}
	return v
}

// Ready reports whether the journal answers.
func (v *Views) Ready(ctx context.Context) error {
	_, err := v.log.Last(ctx)
	return err
}

// Questions lists question calls: the active ones of one session or of all, by
// session and call; with Settled, which needs a session, every call that
// session ever asked, in the order they were asked. The cursor is the journal
// position of the list: a watch from there misses and repeats nothing.
func (v *Views) Questions(ctx context.Context, req *messages.ListQuestionsRequest) (*messages.ListQuestionsResponse, error) {
	limit, err := pageLimit(req.GetLimit())
	if err != nil {
		return nil, err
	}
	if req.GetSettled() {
		return v.allOf(ctx, req, limit)
	}
	filter := journal.ActiveFilter{Session: req.GetSession(), Limit: limit + 1}
	if req.GetAfter() != "" {
		if filter.AfterSession, filter.AfterCall, err = decodeAfter(req.GetAfter()); err != nil {
			return nil, err
		}
	}
	rows, at, err := v.log.Active(ctx, filter)
	if err != nil {
		return nil, fault(err)
	}
	page := &messages.ListQuestionsResponse{Cursor: int64(at)}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = encodeAfter(rows[limit-1].Session, rows[limit-1].Row.CallID)
	}
	if page.Questions, err = v.rows(ctx, rows, true, 0); err != nil {
		return nil, fault(err)
	}
	return page, nil
}

// allOf lists every call of one session, the settled ones too.
func (v *Views) allOf(ctx context.Context, req *messages.ListQuestionsRequest, limit int) (*messages.ListQuestionsResponse, error) {
	if err := messages.CheckID("session", req.GetSession()); err != nil {
		return nil, messages.Refuse(messages.BadRequest, "settled questions are listed session by session; name the session: %s", err.Text)
	}
	var after string
	if req.GetAfter() != "" {
		var err error
		if _, after, err = decodeAfter(req.GetAfter()); err != nil {
			return nil, err
		}
	}
	// The position comes first: a watch from it may repeat a row, never miss one.
	at, err := v.log.Last(ctx)
	if err != nil {
		return nil, fault(err)
	}
	opened, err := v.log.Read(ctx, req.GetSession(), 0, 0)
	if err != nil {
		return nil, fault(err)
	}
	stories := tell(opened, "")
	if after != "" {
		i := stories.index(after)
		if i < 0 {
			return nil, messages.Refuse(messages.BadRequest, "after: the page's last question is gone; start again without it")
		}
		stories = stories[i+1:]
	}
	page := &messages.ListQuestionsResponse{Cursor: int64(at)}
	if len(stories) > limit {
		stories = stories[:limit]
		page.Next = encodeAfter(req.GetSession(), stories[limit-1].callID)
	}
	for _, s := range stories {
		page.Questions = append(page.Questions, s.row(req.GetSession(), v.now()))
	}
	return page, nil
}

// Question returns one call, active or settled, with how it ended. An unknown
// session or call is messages.NotFound. A settled one takes a reading of the
// session's whole log, an active one only what follows its call.
func (v *Views) Question(ctx context.Context, session, callID string) (*messages.QuestionRow, error) {
	rows, _, err := v.log.Active(ctx, journal.ActiveFilter{Session: session})
	if err != nil {
		return nil, fault(err)
	}
	for _, row := range rows {
		if row.Row.CallID == callID {
			return v.active(ctx, row)
		}
	}
	opened, err := v.log.Read(ctx, session, 0, 0)
	if err != nil {
		return nil, fault(err)
	}
	stories := tell(opened, "")
	i := stories.index(callID)
	if i < 0 {
		return nil, messages.Refuse(messages.NotFound, "session %q has no question call %q", session, callID)
	}
	return stories[i].row(session, v.now()), nil
}

// active makes the row of one index entry: its text comes from the log event
// the entry names, how a queued reply got there from what follows it.
func (v *Views) active(ctx context.Context, in journal.ActiveRow) (*messages.QuestionRow, error) {
	rows, err := v.rows(ctx, []journal.ActiveRow{in}, false, 0)
	if err != nil {
		return nil, fault(err)
	}
	return rows[0], nil
}

// indexRow is what the index alone knows of a call.
func indexRow(session string, in sessionlog.Row, now time.Time) *messages.QuestionRow {
	row := &messages.QuestionRow{Session: session, CallId: CleanID(in.CallID), State: string(in.State), CallSeq: in.Seq}
	if in.State == sessionlog.RowOpen {
		row.Blocking = in.Due == 0
		setDeadline(row, in.Due, now)
	}
	return row
}

func setDeadline(row *messages.QuestionRow, deadlineMS int64, now time.Time) {
	if deadlineMS > 0 {
		row.DeadlineMs = deadlineMS
		row.RemainingMs = max(0, deadlineMS-now.UnixMilli())
	}
}

// troubled marks a row whose text cannot be shown.
func troubled(row *messages.QuestionRow, err error) *messages.QuestionRow {
	row.Trouble = asError(err).Wire()
	return row
}

// pageLimit checks a page size: 0 asks for the largest.
func pageLimit(limit int32) (int, error) {
	switch {
	case limit < 0:
		return 0, messages.Refuse(messages.BadRequest, "limit is %d; give 1 to %d, or 0 for %d", limit, messages.PageMax, messages.PageMax)
	case limit > messages.PageMax:
		return 0, messages.Refuse(messages.TooLarge, "limit is %d, the limit of a page is %d rows", limit, messages.PageMax)
	case limit == 0:
		return messages.PageMax, nil
	}
	return int(limit), nil
}

// encodeAfter makes the opaque place a next page starts at.
func encodeAfter(session, call string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(session + "\x00" + call))
}

func decodeAfter(after string) (session, call string, err error) {
	raw, decodeErr := base64.RawURLEncoding.DecodeString(after)
	session, call, ok := strings.Cut(string(raw), "\x00")
	if decodeErr != nil || !ok {
		return "", "", messages.Refuse(messages.BadRequest, "after is not a place that a list returned; pass `next` of the page before")
	}
	return session, call, nil
}

// fault gives every error a code. A context's end passes as it is.
func fault(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return asError(err)
}

func asError(err error) *messages.Error {
	var coded *messages.Error
	var corrupt *sessionlog.CorruptError
	var newer *sessionlog.UnsupportedError
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &corrupt):
		return messages.Refuse(messages.SessionCorrupt, "%v", err)
	case errors.As(err, &newer):
		return messages.Refuse(messages.SessionGeneration, "%v", err)
	}
	return messages.Refuse(messages.JournalIO, "%v", err)
}
