package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
	"github.com/parleyrun/parley/sessionlog"
)

// at is a wall clock that stands still.
func at(ms int64) query.Options {
	return query.Options{Now: func() time.Time { return time.UnixMilli(ms) }}
}

// Each log on the left reads, for its one call, as the state and the outcome
// on the right, whether the row is found through the index or by the whole log.
func TestAStoryHasOneReading(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, state, outcome, by string
		answered                 bool
		write                    func(*script)
	}{
		{"asked", "open", "", "", false, func(s *script) { s.call("c", "Go?", 9_000) }},
		{"asked without a deadline", "open", "", "", false, func(s *script) { s.call("c", "Go?", 0) }},
		{"timed out", "continued", "pending", "", false, func(s *script) { s.call("c", "Go?", 9_000).pending("c") }},
		{"outcome unknown after a crash", "continued", "", "", false, func(s *script) {
			s.call("c", "Go?", 9_000).failed("c", sessionlog.CodeOutcomeUnknown).row("c", sessionlog.RowContinued, 0)
		}},
		{"answered in time", "settled", "answered", "ann", true, func(s *script) { s.call("c", "Go?", 9_000).answered("c", "ann") }},
		{"taken back", "settled", "withdrawn", "agent", false, func(s *script) {
			s.call("c", "Go?", 9_000).failed("c", "ASK_ABORTED").settled(sessionlog.SettledRecord{CallID: "c", By: "agent", Outcome: "withdrawn"}).gone("c")
		}},
		{"failed, by another program's log", "settled", "unknown", "", false, func(s *script) { s.call("c", "Go?", 9_000).failed("c", "ASK_CANCELLED").gone("c") }},
		{"answered late, not yet admitted", "replied", "queued", "bob", false, func(s *script) { s.call("c", "Go?", 9_000).pending("c").queue("m", "c", "bob") }},
		{"answered late and admitted", "settled", "answered", "bob", true, func(s *script) {
			s.call("c", "Go?", 9_000).pending("c").queue("m", "c", "bob").admit("m", "c")
		}},
		{"taken back after pending", "settled", "withdrawn", "agent", false, func(s *script) {
			s.call("c", "Go?", 9_000).pending("c").settled(sessionlog.SettledRecord{CallID: "c", By: "agent", Outcome: "withdrawn"}).gone("c")
		}},
		{"reply taken back", "continued", "reply_withdrawn", "ann", false, func(s *script) {
			s.call("c", "Go?", 9_000).pending("c").queue("m", "c", "bob").withdraw("m", "c", "ann")
		}},
		{"reply taken back, another came", "replied", "queued", "eve", false, func(s *script) {
			s.call("c", "Go?", 9_000).pending("c").queue("m", "c", "bob").withdraw("m", "c", "ann").queue("m2", "c", "eve")
		}},
		{"asked again after it was settled", "open", "", "", false, func(s *script) {
			s.call("c", "Old?", 9_000).answered("c", "ann").call("c", "Go?", 9_000)
		}},
		{"answered, asked again, taken back", "settled", "withdrawn", "agent", false, func(s *script) {
			s.call("c", "Old?", 9_000).answered("c", "ann").call("c", "Go?", 9_000).failed("c", "ASK_ABORTED").
				settled(sessionlog.SettledRecord{CallID: "c", By: "agent", Outcome: "withdrawn"}).gone("c")
		}},
		{"asked again while it was open", "open", "", "", false, func(s *script) { s.call("c", "Old?", 9_000).call("c", "Go?", 9_000) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := newJournal(t)
			s := newScript(t, j, "s").header()
			c.write(s)
			s.commit()
			v := query.New(j, at(5_000))
			all, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{Session: "s", Settled: true})
			require.NoError(t, err)
			row := all.GetQuestions()[len(all.GetQuestions())-1] // by the whole log
			one, err := v.Question(t.Context(), "s", "c")
			require.NoError(t, err)
			assert.True(t, proto.Equal(row, one), "of all %v\nalone  %v", row, one)
			assert.Equal(t, c.state, row.GetState())
			assert.Equal(t, c.outcome, row.GetSettlement().GetOutcome())
			assert.Equal(t, c.by, row.GetSettlement().GetBy())
			assert.Equal(t, c.answered, len(row.GetAnswers()) == 1)
			assert.Equal(t, "Go?", row.GetQuestions()[0].GetQuestion())
			list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{})
			require.NoError(t, err)
			if c.state == "settled" {
				assert.Empty(t, list.GetQuestions())
				return
			}
			require.Len(t, list.GetQuestions(), 1)
			assert.True(t, proto.Equal(row, list.GetQuestions()[0]), "by the log  %v\nby the index %v", row, list.GetQuestions()[0])
			again, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{}) // from the cache
			require.NoError(t, err)
			assert.True(t, proto.Equal(list, again))
		})
	}
}

// Clients count durations; the deadline is the host's.
func TestAnOpenRowTellsWhatRemains(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "s").header().call("timed", "Go?", 9_000).call("never", "Go?", 0).commit()
	for now, remaining := range map[int64]int64{5_000: 4_000, 9_000: 0, 12_000: 0} {
		list, err := query.New(j, at(now)).Questions(t.Context(), &messages.ListQuestionsRequest{Session: "s"})
		require.NoError(t, err)
		never, timed := list.GetQuestions()[0], list.GetQuestions()[1]
		assert.Equal(t, remaining, timed.GetRemainingMs())
		assert.Equal(t, int64(9_000), timed.GetDeadlineMs())
		assert.Equal(t, int64(2_000), timed.GetAskedMs())
		assert.False(t, timed.GetBlocking())
		assert.True(t, never.GetBlocking())
		assert.Zero(t, never.GetDeadlineMs())
	}
}

// A legacy call is not in the projection: its wait and its result tell all.
func TestALegacyCallIsReadFromItsRecords(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	s := newScript(t, j, "s")
	s.calls["c"] = s.seq
	s.add(sessionlog.TypeToolCall, `{"turn":1,"step":1,"callId":"c","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"q\",\"question\":\"Go?\"}]}"}`).
		event(sessionlog.WaitRecord{CallID: "c", Attempt: "a", Legacy: true}.Event()).row("c", sessionlog.RowOpen, 0).commit()
	v := query.New(j, at(0))
	row, err := v.Question(t.Context(), "s", "c")
	require.NoError(t, err)
	assert.True(t, row.GetUnkeyed())
	assert.Equal(t, "open", row.GetState())
	list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{})
	require.NoError(t, err)
	assert.True(t, list.GetQuestions()[0].GetUnkeyed())
	s.result("c", `{"answers":`+batchYes+`}`).gone("c").commit()
	row, err = v.Question(t.Context(), "s", "c")
	require.NoError(t, err)
	assert.Equal(t, "settled", row.GetState())
	assert.Len(t, row.GetAnswers(), 1)
}

// Fault D7: one nested question is listed once, under its own id.
func TestANestedQuestionIsOneRow(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	s := newScript(t, j, "s").header()
	s.add(sessionlog.TypeToolCall, `{"turn":1,"step":1,"callId":"outer","name":"run_program","arguments":"{}"}`)
	s.add(sessionlog.TypeDispatchStart, `{"rootCallId":"outer","parentCallId":"outer","subCallId":"inner","name":"ask_user_question","arguments":`+arguments("Nested?")+`}`)
	s.calls["inner"] = s.seq
	s.add(sessionlog.TypeDispatch, `{"rootCallId":"outer","parentCallId":"outer","subCallId":"inner","name":"ask_user_question","isError":false,"arguments":`+
		arguments("Nested?")+`,"content":[{"type":"text","text":"{\"pending\":true}"}]}`).row("inner", sessionlog.RowContinued, 0).commit()
	v := query.New(j, at(0))
	for _, settled := range []bool{false, true} {
		list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{Session: "s", Settled: settled})
		require.NoError(t, err)
		require.Len(t, list.GetQuestions(), 1)
		assert.Equal(t, "inner", list.GetQuestions()[0].GetCallId())
		assert.Equal(t, "continued", list.GetQuestions()[0].GetState())
		assert.Equal(t, "Nested?", list.GetQuestions()[0].GetQuestions()[0].GetQuestion())
	}
}

// A nested question of ours waits in the foreground before it is continued: its
// row tells it from its beginning on, whatever the projection knows.
func TestAnOpenNestedQuestionIsARow(t *testing.T) {
	t.Parallel()
	for name, legacy := range map[string]bool{"timed": false, "legacy": true} {
		for end, want := range map[string]string{
			"":                             "open",
			`{"pending":true}`:             "continued",
			`{"answers":` + batchYes + `}`: "settled",
			"Error: it was aborted":        "settled",
		} {
			if legacy && want == "continued" {
				continue
			}
			t.Run(name+" "+want, func(t *testing.T) {
				t.Parallel()
				j := newJournal(t)
				s := newScript(t, j, "s")
				sub := sessionlog.SubCall{RootCallID: "p", ParentCallID: "p", SubCallID: "p:ptc:1", Arguments: json.RawMessage(arguments("Nested?"))}
				s.calls[sub.SubCallID] = s.seq
				deadline := int64(9_000)
				s.event(sub.Start()).event(sessionlog.WaitRecord{CallID: sub.SubCallID, Attempt: "a", Legacy: legacy, DeadlineMS: &deadline}.Event()).
					row(sub.SubCallID, sessionlog.RowOpen, deadline)
				if end != "" {
					s.event(sub.Result(end, strings.HasPrefix(end, "Error"), "", ""))
				}
				switch want {
				case "continued":
					s.row(sub.SubCallID, sessionlog.RowContinued, 0)
				case "settled":
					s.gone(sub.SubCallID)
				}
				s.commit()
				v := query.New(j, at(5_000))
				row, err := v.Question(t.Context(), "s", sub.SubCallID)
				require.NoError(t, err)
				rows := []*messages.QuestionRow{row}
				for _, settled := range []bool{false, true} {
					list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{Session: "s", Settled: settled})
					require.NoError(t, err)
					if !settled && want == "settled" {
						require.Empty(t, list.GetQuestions())
						continue
					}
					require.Len(t, list.GetQuestions(), 1)
					rows = append(rows, list.GetQuestions()[0])
				}
				for _, row := range rows {
					assert.Equal(t, want, row.GetState())
					assert.Equal(t, legacy, row.GetUnkeyed())
					assert.Equal(t, int64(0), row.GetCallSeq())
					assert.Equal(t, "Nested?", row.GetQuestions()[0].GetQuestion())
					assert.Equal(t, strings.Contains(end, "answers"), len(row.GetAnswers()) == 1)
					assert.Equal(t, want == "open", row.GetDeadlineMs() == deadline)
				}
			})
		}
	}
}

// Pages give every row once, in order, and the first page's place is the end
// of what it has seen.
func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	var want []string
	for i := range 4 {
		s := newScript(t, j, fmt.Sprint("s", i)).header()
		for k := range 3 {
			s.call(fmt.Sprint("c", k), "Go?", 0)
			want = append(want, fmt.Sprintf("s%d/c%d", i, k))
		}
		s.commit()
	}
	v := query.New(j, at(0))
	var got []string
	for after := ""; ; {
		page, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{Limit: 5, After: after})
		require.NoError(t, err)
		for _, q := range page.GetQuestions() {
			got = append(got, q.GetSession()+"/"+q.GetCallId())
		}
		if after = page.GetNext(); after == "" {
			break
		}
	}
	assert.Equal(t, want, got)

	got = nil
	for after := ""; ; {
		page, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{Session: "s2", Settled: true, Limit: 2, After: after})
		require.NoError(t, err)
		for _, q := range page.GetQuestions() {
			got = append(got, q.GetSession()+"/"+q.GetCallId())
		}
		if after = page.GetNext(); after == "" {
			break
		}
	}
	assert.Equal(t, []string{"s2/c0", "s2/c1", "s2/c2"}, got)

	for name, req := range map[string]*messages.ListQuestionsRequest{
		"a place of our own making": {After: "nonsense!"}, "a negative page": {Limit: -1}, "a huge page": {Limit: messages.PageMax + 1},
		"settled ones of everybody": {Settled: true},
	} {
		_, err := v.Questions(t.Context(), req)
		assert.Contains(t, []messages.Code{messages.BadRequest, messages.TooLarge}, messages.CodeOf(err), name)
	}
}

// One damaged session shows as a row with a code and spoils nobody's list.
func TestADamagedSessionSpoilsNoList(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "bad").header().call("c", "Go?", 0).commit()
	newScript(t, j, "good").header().call("c", "Go?", 0).commit()
	for name, cause := range map[string]error{
		"of the journal": messages.Refuse(messages.SessionCorrupt, "record 3 is damaged"),
		"of the log":     &sessionlog.CorruptError{Seq: 3, Problem: "it is damaged"},
	} {
		v := query.New(damaged{j, "bad", cause}, at(0))
		list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{})
		require.NoError(t, err, name)
		require.Len(t, list.GetQuestions(), 2)
		bad, good := list.GetQuestions()[0], list.GetQuestions()[1]
		assert.Equal(t, string(messages.SessionCorrupt), bad.GetTrouble().GetCode(), name)
		assert.Equal(t, "open", bad.GetState())
		assert.NotEmpty(t, bad.GetTrouble().GetRemedy())
		assert.Nil(t, good.GetTrouble())
		assert.NotEmpty(t, good.GetQuestions())

		row, err := v.Question(t.Context(), "bad", "c")
		require.NoError(t, err)
		assert.Equal(t, string(messages.SessionCorrupt), row.GetTrouble().GetCode())
		session, err := v.Session(t.Context(), "bad")
		require.NoError(t, err)
		assert.Equal(t, string(messages.SessionCorrupt), session.GetTrouble().GetCode())
		_, err = v.Inbox(t.Context(), "bad")
		assert.Equal(t, messages.SessionCorrupt, messages.CodeOf(err))
	}
}

// An index that points at something else is trouble of that row, too.
func TestAnIndexThatPointsElsewhereIsTrouble(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "s").header().row("c", sessionlog.RowOpen, 0).commit() // row.Seq 0 is the header
	list, err := query.New(j, at(0)).Questions(t.Context(), &messages.ListQuestionsRequest{})
	require.NoError(t, err)
	assert.Equal(t, string(messages.SessionCorrupt), list.GetQuestions()[0].GetTrouble().GetCode())
}

// What could act on a terminal or turn a line around never reaches a view.
func TestStoredTextIsNotTrusted(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "s").header().call("c", "red \x1b[31malert\u202e\u009b2J\r\nline\ttab", 0).
		settled(sessionlog.SettledRecord{CallID: "x", Outcome: "y"}).commit()
	v := query.New(j, at(0))
	row, err := v.Question(t.Context(), "s", "c")
	require.NoError(t, err)
	assert.Equal(t, "red \ufffd[31malert\ufffd\ufffd2J\nline\ttab", row.GetQuestions()[0].GetQuestion())
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "plain": "plain", "中文 é 🙂": "中文 é 🙂", "a\nb\tc": "a\nb\tc", "a\x00b": "a\ufffdb", "a\xffb": "a\ufffdb",
		"a\r\nb": "a\nb", "a\rb": "a\ufffdb", "x\u2028y": "x\ufffdy", "\u2066z": "\ufffdz", "\x7f": "\ufffd",
	} {
		assert.Equal(t, want, query.Clean(in), "%q", in)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := query.Clean(s)
		if query.Clean(out) != out {
			t.Fatalf("%q is not clean the second time", out)
		}
		if strings.ContainsAny(out, "\x00\x1b\r\x7f\u202e\u2028") {
			t.Fatalf("%q is not clean", out)
		}
		if _, err := proto.Marshal(&messages.Question{Question: out}); err != nil {
			t.Fatal(err)
		}
	})
}

// Sessions, logs and inboxes.
func TestSessionsLogsAndInboxes(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "a").header().commit()
	newScript(t, j, "b").header().event(sessionlog.RootRecord{RootID: "agent"}.Event()).
		call("c", "Go?", 0).pending("c").queue("m", "c", "bob").call("d", "Go?", 0).commit()
	v := query.New(j, at(0))

	page, err := v.Sessions(t.Context(), &messages.ListSessionsRequest{Limit: 1})
	require.NoError(t, err)
	assert.Equal(t, "a", page.GetNext())
	page, err = v.Sessions(t.Context(), &messages.ListSessionsRequest{After: page.GetNext()})
	require.NoError(t, err)
	require.Len(t, page.GetSessions(), 1)
	assert.Empty(t, page.GetNext())
	row, err := v.Session(t.Context(), "b")
	require.NoError(t, err)
	assert.Equal(t, "agent", row.GetRoot())
	assert.Equal(t, int32(1), row.GetAnswerable())
	assert.Equal(t, int32(1), row.GetQueued())
	assert.Equal(t, "/tmp", row.GetCwd())
	_, err = v.Session(t.Context(), "nowhere")
	assert.Equal(t, messages.NotFound, messages.CodeOf(err))

	inbox, err := v.Inbox(t.Context(), "b")
	require.NoError(t, err)
	require.Len(t, inbox.GetMessages(), 1)
	assert.Equal(t, "c", inbox.GetMessages()[0].GetReplyTo())
	assert.Equal(t, "next-step", inbox.GetMessages()[0].GetList())
	assert.Contains(t, inbox.GetMessages()[0].GetText(), "answer_to_pending_question")

	var lines []string
	for next := int64(0); next >= 0; {
		log, err := v.Log(t.Context(), &messages.ReadLogRequest{Session: "b", FromSeq: next, Limit: 3})
		require.NoError(t, err)
		assert.Contains(t, log.GetHeader(), `"id":"b"`)
		lines, next = append(lines, log.GetEvents()...), log.GetNextSeq()
	}
	assert.Len(t, lines, int(row.GetEvents()))
	_, err = v.Log(t.Context(), &messages.ReadLogRequest{Session: "b", FromSeq: -1})
	assert.Equal(t, messages.BadRequest, messages.CodeOf(err))
}

// A journal without a word of its own is still told by a code.
func TestErrorsHaveCodes(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "s").header().commit()
	v := query.New(damaged{j, "s", errors.New("the disk is on fire")}, at(0))
	_, err := v.Log(t.Context(), &messages.ReadLogRequest{Session: "s"})
	assert.Equal(t, messages.JournalIO, messages.CodeOf(err))
	require.NoError(t, v.Ready(t.Context()))
	require.NoError(t, j.Close())
	assert.Error(t, v.Ready(t.Context()))
}

// A read whose caller leaves just then is the caller's end, and no fault of the journal.
func TestALeavingCallerIsNoFault(t *testing.T) {
	j := memory.New(nil)
	newScript(t, j, "s").header().call("c", "Go?", 9_000).commit()
	ctx, leave := context.WithCancel(t.Context())
	views := query.New(leaving{j, leave}, query.Options{})
	_, err := views.Session(ctx, "s")
	require.ErrorIs(t, err, context.Canceled)
}

// leaving is a journal whose caller leaves while it reads.
type leaving struct {
	journal.Reader
	leave func()
}

func (l leaving) Read(ctx context.Context, session string, from int64, limit int) (journal.Opened, error) {
	defer l.leave()
	return l.Reader.Read(ctx, session, from, limit)
}

// A packed row is one record: a page that would end inside of it goes on to its end.
func TestAPageOfALogCutsNoPackedRow(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	row := `{"type":"text-chunks","seq0":0,"time0":9,"data":{"turn":1,"step":1,"index":0,"dt":[1,1,1,1],"texts":["a","b","c","d","e"]}}`
	events, err := sessionlog.DecodeRecord(nil, []byte(row), 10)
	require.NoError(t, err)
	require.Len(t, events, 5)
	events = append(events, sessionlog.NewEvent(sessionlog.TypeTitle, json.RawMessage(`{"title":"letters"}`)).At(5, 20))
	appended := make(chan error, 1)
	j.Append(journal.Batch{Session: "old", Header: &sessionlog.Header{Version: sessionlog.V0, ID: "old", CreatedAt: 1}, Events: events},
		func(_ journal.Appended, err error) { appended <- err })
	require.NoError(t, <-appended)
	page, err := query.New(j, at(0)).Log(t.Context(), &messages.ReadLogRequest{Session: "old", Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []string{row}, page.GetEvents())
	require.Equal(t, int64(5), page.GetNextSeq())
}
