package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/sessionlog"
)

// script writes one session's log by hand, event by event, with the index rows
// a session would write beside them.
type script struct {
	t       testing.TB
	j       journal.Journal
	session string
	epoch   int64
	seq     int64
	calls   map[string]int64 // where each call's questions stand
	batch   []sessionlog.Event
	index   []sessionlog.RowChange
}

func newScript(t testing.TB, j journal.Journal, session string) *script {
	return &script{t: t, j: j, session: session, calls: map[string]int64{}}
}

func (s *script) add(typ string, data string) *script {
	ev := sessionlog.NewEvent(typ, json.RawMessage(data))
	switch typ {
	case sessionlog.TypeToolResult, sessionlog.TypeUserMessage:
		ev = ev.Appended()
	}
	if strings.HasPrefix(typ, "parley/") {
		ev = ev.Ours()
	}
	s.batch = append(s.batch, ev.At(s.seq, 1_000*(s.seq+1)))
	s.seq++
	return s
}

func (s *script) event(ev sessionlog.Event) *script {
	s.batch = append(s.batch, ev.At(s.seq, 1_000*(s.seq+1)))
	s.seq++
	return s
}

func (s *script) row(call string, state sessionlog.RowState, due int64) *script {
	s.index = append(s.index, sessionlog.RowChange{Row: sessionlog.Row{CallID: call, State: state, Due: due, Seq: s.calls[call]}})
	return s
}

func (s *script) gone(call string) *script {
	s.index = append(s.index, sessionlog.RowChange{Row: sessionlog.Row{CallID: call, Seq: s.calls[call]}, Remove: true})
	return s
}

// commit appends what was written since the last commit.
func (s *script) commit() *script {
	s.t.Helper()
	b := journal.Batch{Session: s.session, Epoch: s.epoch, Seq: s.seq - int64(len(s.batch)), Events: s.batch, Index: s.index}
	if s.epoch == 0 {
		b.Header = &sessionlog.Header{Version: sessionlog.V3, ID: s.session, CreatedAt: 1, CWD: "/tmp"}
	}
	type done struct {
		journal.Appended
		err error
	}
	got := make(chan done, 1)
	s.j.Append(b, func(a journal.Appended, err error) { got <- done{a, err} })
	d := <-got
	require.NoError(s.t, d.err)
	s.epoch, s.batch, s.index = d.Epoch, nil, nil
	return s
}

const timedTools = `[{"name":"ask_user_question","parameters":{"properties":{"timeout":{}}}}]`

func (s *script) header() *script {
	return s.add(sessionlog.TypeRequestHeader, `{"header":{"tools":`+timedTools+`},"reason":"initial"}`)
}

// arguments asks one question of that text.
func arguments(text string) string {
	b, err := json.Marshal(map[string]any{"questions": []any{map[string]any{
		"id": "q", "question": text, "options": []any{map[string]any{"label": "yes"}, map[string]any{"label": "no"}}}}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// call asks, with a wait until the deadline (0: never), and indexes the row.
func (s *script) call(call, text string, deadline int64) *script {
	s.calls[call] = s.seq
	args, _ := json.Marshal(arguments(text))
	s.add(sessionlog.TypeToolCall, fmt.Sprintf(`{"turn":1,"step":1,"callId":%q,"name":"ask_user_question","arguments":%s}`, call, args))
	w := sessionlog.WaitRecord{CallID: call, Attempt: "a"}
	if deadline != 0 {
		w.DeadlineMS = &deadline
	}
	return s.event(w.Event()).row(call, sessionlog.RowOpen, deadline)
}

func (s *script) result(call, text string) *script {
	return s.event(sessionlog.ToolResult(1, 1, call, text, false, "", "", s.calls[call], fmt.Sprint("r", s.seq)))
}

func (s *script) failed(call, code string) *script {
	return s.event(sessionlog.ToolResult(1, 1, call, "Error: no", true, "UserQuestionError", code, s.calls[call], fmt.Sprint("r", s.seq)))
}

func (s *script) settled(r sessionlog.SettledRecord) *script { return s.event(r.Event()) }

// pending ends the call's wait without an answer.
func (s *script) pending(call string) *script {
	return s.result(call, sessionlog.PendingText(call)).settled(sessionlog.SettledRecord{CallID: call, Outcome: "pending"}).row(call, sessionlog.RowContinued, 0)
}

const batchYes = `[{"id":"q","selected":["yes"]}]`

func (s *script) answered(call, by string) *script {
	return s.result(call, sessionlog.AnsweredText(json.RawMessage(batchYes))).
		settled(sessionlog.SettledRecord{CallID: call, SubmissionID: "sub", By: by, Door: "go", Outcome: "answered"}).gone(call)
}

func reply(id, call string) sessionlog.Message {
	return sessionlog.ReplyMessage(id, call, json.RawMessage(`[{"id":"q","question":"?"}]`), json.RawMessage(batchYes))
}

// queue puts a late reply into the inbox, admit takes it out into the history.
func (s *script) queue(id, call, by string) *script {
	return s.event(sessionlog.Splice{Target: sessionlog.NextStep, Inserted: []sessionlog.Message{reply(id, call)}}.Event()).
		settled(sessionlog.SettledRecord{CallID: call, SubmissionID: "sub-" + id, By: by, Outcome: "queued", MessageID: id}).
		row(call, sessionlog.RowReplied, 0)
}

func (s *script) admit(id, call string) *script {
	return s.event(sessionlog.Splice{Target: sessionlog.NextStep, RemovedCount: 1}.Event()).
		add(sessionlog.TypeUserMessage, string(reply(id, call).Raw)).gone(call)
}

func (s *script) withdraw(id, call, by string) *script {
	return s.event(sessionlog.Splice{Target: sessionlog.NextStep, RemovedCount: 1, Outcome: sessionlog.OutcomeCanceled}.Event()).
		settled(sessionlog.SettledRecord{CallID: call, By: by, Outcome: "reply_withdrawn", MessageID: id}).
		row(call, sessionlog.RowContinued, 0)
}

// damaged is a journal in which one session cannot be read.
type damaged struct {
	journal.Reader
	session string
	err     error
}

func (d damaged) Read(ctx context.Context, session string, from int64, limit int) (journal.Opened, error) {
	if session == d.session {
		return journal.Opened{}, d.err
	}
	return d.Reader.Read(ctx, session, from, limit)
}

func newJournal(t testing.TB) journal.Journal {
	j := memory.New(nil)
	t.Cleanup(func() { _ = j.Close() })
	return j
}
