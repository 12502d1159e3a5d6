package query

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Sessions lists sessions by id. Who speaks for a session is not in the list:
// that takes its whole log, and Session tells it.
func (v *Views) Sessions(ctx context.Context, req *messages.ListSessionsRequest) (*messages.ListSessionsResponse, error) {
	limit, err := pageLimit(req.GetLimit())
	if err != nil {
		return nil, err
	}
	infos, err := v.log.Sessions(ctx, req.GetAfter(), limit+1)
	if err != nil {
		return nil, fault(err)
	}
	page := &messages.ListSessionsResponse{}
	if len(infos) > limit {
		infos = infos[:limit]
		page.Next = infos[limit-1].Session
	}
	for _, info := range infos {
		row, err := v.sessionRow(ctx, info)
		if err != nil {
			return nil, err
		}
		page.Sessions = append(page.Sessions, row)
	}
	return page, nil
}

func (v *Views) sessionRow(ctx context.Context, info journal.SessionInfo) (*messages.SessionRow, error) {
	row := &messages.SessionRow{Session: CleanID(info.Session), CreatedMs: info.Header.CreatedAt,
		Cwd: Clean(info.Header.CWD), Events: info.Events}
	active, _, err := v.log.Active(ctx, journal.ActiveFilter{Session: info.Session})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		row.Trouble = asError(err).Wire()
		return row, nil
	}
	for _, r := range active {
		if r.Row.State == sessionlog.RowReplied {
			row.Queued++
		} else {
			row.Answerable++
		}
	}
	return row, nil
}

// Session returns one session with its root. An unknown one is
// messages.NotFound; a damaged one is shown with its trouble.
func (v *Views) Session(ctx context.Context, session string) (*messages.SessionRow, error) {
	opened, err := v.log.Read(ctx, session, 0, 0)
	if err == nil {
		err = ctx.Err()
	}
	switch {
	case messages.CodeOf(err) == messages.NotFound || ctx.Err() != nil:
		return nil, fault(err)
	case err != nil:
		return &messages.SessionRow{Session: CleanID(session), Trouble: asError(err).Wire()}, nil
	}
	row, err := v.sessionRow(ctx, journal.SessionInfo{Session: session, Header: *opened.Header, Events: int64(len(opened.Events))})
	if err != nil {
		return nil, err
	}
	for i := len(opened.Events) - 1; i >= 0; i-- {
		if opened.Events[i].Type == sessionlog.TypeRoot {
			if rec, err := sessionlog.DecodeRoot(opened.Events[i]); err == nil {
				row.Root = CleanID(rec.RootID)
			}
			break
		}
	}
	lists, err := foldLists(opened)
	if err != nil {
		row.Trouble = asError(err).Wire()
		return row, nil
	}
	row.Queued = int32(min(len(lists.NextStep)+len(lists.NextTurn), 1<<30))
	return row, nil
}

// Log returns a page of a session's records as they stand in its log. They are
// for programs: nothing in them has been cleaned. A packed row is one record,
// and a page that would end inside of it goes on to its end.
func (v *Views) Log(ctx context.Context, req *messages.ReadLogRequest) (*messages.ReadLogResponse, error) {
	limit, err := pageLimit(req.GetLimit())
	if err != nil {
		return nil, err
	}
	from := req.GetFromSeq()
	if from < 0 {
		return nil, messages.Refuse(messages.BadRequest, "from_seq is %d; it counts from 0", from)
	}
	opened, err := v.log.Read(ctx, req.GetSession(), from, limit+1)
	if err != nil {
		return nil, fault(err)
	}
	if len(opened.Events) > limit {
		if first, next := opened.Events[limit-1].RecordSpan(); first >= from && next > from+int64(limit) {
			limit = int(next - from)
			if opened, err = v.log.Read(ctx, req.GetSession(), from, limit+1); err != nil {
				return nil, fault(err)
			}
		}
	}
	page := &messages.ReadLogResponse{Header: string(opened.Header.Line()), NextSeq: -1}
	if len(opened.Events) > limit {
		opened.Events = opened.Events[:limit]
		page.NextSeq = opened.Events[limit-1].Seq + 1
	}
	for record := range sessionlog.Records(slices.Values(opened.Events)) {
		page.Events = append(page.Events, string(record))
	}
	return page, nil
}

// Workspace tells the working directory of the session that a page of Log is of,
// as it stands in the header; empty: it has none.
func Workspace(page *messages.ReadLogResponse) (string, error) {
	header, err := sessionlog.DecodeHeader([]byte(page.GetHeader()))
	if err != nil {
		return "", messages.Refuse(messages.SessionCorrupt, "the session's header cannot be read: %v", err)
	}
	return header.CWD, nil
}

// Inbox lists the messages of a session that its agent has not admitted:
// next-step first, each list in its order. Which of them are marked for a turn
// is not durable and not shown.
func (v *Views) Inbox(ctx context.Context, session string) (*messages.ListInboxResponse, error) {
	opened, err := v.log.Read(ctx, session, 0, 0)
	if err != nil {
		return nil, fault(err)
	}
	lists, err := foldLists(opened)
	if err != nil {
		return nil, fault(err)
	}
	out := &messages.ListInboxResponse{}
	for _, m := range lists.NextStep {
		out.Messages = append(out.Messages, inboxMessage(sessionlog.NextStep, m))
	}
	for _, m := range lists.NextTurn {
		out.Messages = append(out.Messages, inboxMessage(sessionlog.NextTurn, m))
	}
	return out, nil
}

func foldLists(opened journal.Opened) (lists sessionlog.Lists, err error) {
	inherited := sessionlog.Inherited(*opened.Header, opened.Events)
	for _, ev := range opened.Events {
		if ev.Seq < inherited {
			continue
		}
		if lists, err = lists.Fold(ev); err != nil {
			return lists, err
		}
	}
	return lists, nil
}

func inboxMessage(list sessionlog.Target, m sessionlog.Message) *messages.InboxMessage {
	out := &messages.InboxMessage{Id: CleanID(m.ID), List: string(list), ReplyTo: CleanID(m.ReplyTo), Json: string(m.Raw)}
	var data struct {
		Content []struct{ Type, Text string }
	}
	if json.Unmarshal(m.Raw, &data) == nil {
		for _, block := range data.Content {
			if block.Type == "text" {
				out.Text = Clean(block.Text)
				break
			}
		}
	}
	return out
}
