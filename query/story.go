package query

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// askEvents is how many events from the call on tell all about a question
// nobody answered: the call and the wait recorded with it.
const askEvents = 2

// The states of a row (QuestionRow.state).
const (
	stateOpen      = string(sessionlog.RowOpen)
	stateContinued = string(sessionlog.RowContinued)
	stateReplied   = string(sessionlog.RowReplied)
	stateSettled   = "settled"
)

// Outcomes of parley/settled that a view reads a meaning into. The others are
// shown as they are.
const (
	outcomeAnswered  = "answered"
	outcomeQueued    = "queued"
	outcomeWithdrawn = "withdrawn"
	outcomeUnknown   = "unknown"  // ours: the log does not say
	outcomeDisposed  = "disposed" // ours: the session was deleted with it
)

// story is one question call from its asking on, as the log tells it.
//
//	open ──▶ continued ◀──▶ replied ──▶ settled
//	  └─────────────────────────────────▲
type story struct {
	callID     string
	seq        int64
	askedMS    int64
	deadlineMS int64
	legacy     bool
	tracked    bool // the durable projection follows it; not so a legacy call, and a nested one while it is open
	state      string
	nested     bool            // a program asks it
	asked      json.RawMessage // what it asks, likewise
	questions  []*messages.Question
	answers    []*messages.Answer
	settlement *messages.Settlement
}

type stories []*story

// index finds the latest story of a call.
func (s stories) index(callID string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].callID == callID {
			return i
		}
	}
	return -1
}

func (s stories) latest(callID string) *story {
	if i := s.index(callID); i >= 0 {
		return s[i]
	}
	return nil
}

// timedHeader lets a fold that starts in the middle of a log track the call it
// starts at: the index lists only calls that their own header made durable.
var timedHeader = sessionlog.NewEvent(sessionlog.TypeRequestHeader, json.RawMessage(
	`{"header":{"tools":[{"name":"`+sessionlog.ToolName+`","parameters":{"properties":{"timeout":{}}}}]}}`))

// teller folds a log into stories. What settles a call is never decided here:
// the projection of the log's own room does (Q-130 … Q-161).
type teller struct {
	only  string // the one call wanted, when reading from its event on
	over  bool
	fold  sessionlog.Questions
	lists sessionlog.Lists
	told  stories
	// nested is the sub-call that began last: it is a question of ours once it
	// has its parley/wait.
	nested sessionlog.Event
}

// newTeller tells one call, from its event on.
func newTeller(only string) *teller {
	t := &teller{only: only, fold: sessionlog.NewQuestions(0)}
	t.fold, _ = t.fold.Fold(timedHeader)
	return t
}

// tell folds what was read. With only, the events start at that call and the
// story ends where the same call is asked again or is settled.
func tell(opened journal.Opened, only string) stories {
	t, inherited := newTeller(only), int64(0)
	if only == "" {
		if opened.Header != nil {
			inherited = sessionlog.Inherited(*opened.Header, opened.Events)
		}
		t.fold = sessionlog.NewQuestions(inherited)
	}
	for _, ev := range opened.Events {
		if ev.Seq < inherited || only != "" && asksOther(ev, only) {
			continue
		}
		if t.take(ev); t.over {
			break
		}
	}
	if only == "" {
		t.markReplied()
	}
	return t.told
}

// asksOther tells an event that asks another question: folded in, it would only
// be carried along.
func asksOther(ev sessionlog.Event, only string) bool {
	call, asks := named(ev)
	return asks && call != only
}

// take folds one event.
func (t *teller) take(ev sessionlog.Event) {
	next, changed := t.fold.Fold(ev)
	t.fold = next
	switch ev.Type {
	case sessionlog.TypeToolCall:
		t.call(ev)
	case sessionlog.TypeDispatchStart:
		t.nested = ev
	case sessionlog.TypeDispatch:
		t.dispatch(ev, changed)
	case sessionlog.TypeWait:
		t.wait(ev)
	case sessionlog.TypeSettled:
		t.settled(ev)
	case sessionlog.TypeToolResult:
		t.result(ev)
	case sessionlog.TypeInboxSpliced:
		if t.only == "" {
			if lists, err := t.lists.Fold(ev); err == nil {
				t.lists = lists
			}
		}
	}
	if changed {
		t.follow()
	}
}

// call starts a story. One whose arguments cannot be read asks nothing.
func (t *teller) call(ev sessionlog.Event) {
	var data struct{ CallID, Name, Arguments string }
	if json.Unmarshal(ev.Data, &data) != nil || data.Name != sessionlog.ToolName {
		return
	}
	if questions, _, ok := sessionlog.ParseArguments(data.Arguments); ok {
		t.start(data.CallID, questions, ev)
	}
}

// dispatch ends the foreground of a nested call; one that the projection takes
// as continued begins its story here, unless it has one.
func (t *teller) dispatch(ev sessionlog.Event, entered bool) {
	res, err := sessionlog.DecodeDispatch(ev)
	if err != nil {
		return
	}
	s := t.told.latest(res.CallID)
	if s != nil && (s.tracked || s.state == stateSettled || !s.nested) {
		s = nil
	}
	switch call, _ := t.fold.Call(res.CallID); {
	case !entered && s != nil:
		s.end(res)
	case entered && s != nil && bytes.Equal(s.asked, call.Questions):
		s.tracked = true
	case entered:
		t.start(res.CallID, call.Questions, ev)
	}
}

// begin starts the story of a nested call that waits in the foreground.
func (t *teller) begin(callID string) {
	sub, name, err := sessionlog.DecodeSubCall(t.nested)
	if err != nil || name != sessionlog.ToolName || sub.SubCallID != callID {
		return
	}
	ev := t.nested
	t.nested = sessionlog.Event{}
	if questions, _, ok := sessionlog.ParseQuestions(sub.Arguments); ok {
		t.start(callID, questions, ev)
		if s := t.told.latest(callID); s != nil && s.seq == ev.Seq {
			s.nested, s.asked = true, questions
		}
	}
}

func (t *teller) start(callID string, questions json.RawMessage, ev sessionlog.Event) {
	if t.only != "" {
		if callID != t.only {
			return
		}
		if len(t.told) > 0 {
			t.over = true
			return
		}
	}
	// Asked again before it was settled: the new questions take its place.
	if i := t.told.index(callID); i >= 0 && t.told[i].state != stateSettled {
		t.told = slices.Delete(t.told, i, i+1)
	}
	_, tracked := t.fold.Call(callID)
	t.told = append(t.told, &story{callID: callID, seq: ev.Seq, askedMS: ev.Time, state: stateOpen,
		tracked: tracked, legacy: !tracked, questions: readQuestions(questions)})
}

func (t *teller) wait(ev sessionlog.Event) {
	rec, err := sessionlog.DecodeWait(ev)
	if err == nil {
		t.begin(rec.CallID)
	}
	if s := t.told.latest(rec.CallID); err == nil && s != nil {
		s.legacy = rec.Legacy
		if rec.DeadlineMS != nil {
			s.deadlineMS = *rec.DeadlineMS
		}
	}
}

// settled keeps the latest word on how the call, or a reply to it, ended.
func (t *teller) settled(ev sessionlog.Event) {
	rec, err := sessionlog.DecodeSettled(ev)
	if s := t.told.latest(rec.CallID); err == nil && s != nil {
		s.settlement = &messages.Settlement{Outcome: Clean(rec.Outcome), By: Clean(rec.By), Door: Clean(rec.Door),
			SubmissionId: CleanID(rec.SubmissionID), MessageId: CleanID(rec.MessageID), Reason: Clean(rec.Reason)}
		if rec.Outcome == outcomeWithdrawn { // the projection of the format knows no such end
			s.state = stateSettled
		}
	}
}

// result ends a call that no projection follows: a legacy one.
func (t *teller) result(ev sessionlog.Event) {
	var data struct {
		Message struct {
			ToolCallID string
			IsError    bool
			Content    []struct{ Type, Text string }
		}
		Error *json.RawMessage
	}
	if json.Unmarshal(ev.Data, &data) != nil {
		return
	}
	s := t.told.latest(data.Message.ToolCallID)
	if s == nil || s.tracked || s.nested || s.state == stateSettled {
		return
	}
	res := sessionlog.Result{IsError: data.Error != nil || data.Message.IsError}
	for _, block := range data.Message.Content {
		if block.Type == "text" {
			res.Text = block.Text
			break
		}
	}
	s.end(res)
}

// end settles a story that no projection follows.
func (s *story) end(res sessionlog.Result) {
	s.state = stateSettled
	if res.IsError {
		return
	}
	if answers, ok := sessionlog.ReadBatch(res.Text); ok {
		s.answers = readAnswers(answers)
	}
}

// follow takes over what the projection says of every call it tracks.
func (t *teller) follow() {
	for _, s := range t.told {
		if !s.tracked || s.state == stateSettled {
			continue
		}
		call, active := t.fold.Call(s.callID)
		switch {
		case active && call.Continued:
			s.state = stateContinued
		case active:
			s.state = stateOpen
		default:
			s.state = stateSettled
			if done, ok := t.fold.LastSettled(s.callID); ok && t.answeredNow(s) {
				s.answers = readAnswers(done.Answers)
			}
		}
	}
}

// answeredNow tells a call that was just settled with answers from one that
// was dropped: the projection remembers an earlier settlement of the same id.
func (t *teller) answeredNow(s *story) bool {
	n := 0
	for _, done := range t.fold.Settled() {
		if done.CallID == s.callID {
			n++
		}
	}
	for _, other := range t.told {
		if other != s && other.callID == s.callID && other.tracked && other.answers != nil {
			n--
		}
	}
	return n > 0
}

// markReplied finds the calls whose reply waits in the inbox.
func (t *teller) markReplied() {
	for _, s := range t.told {
		if s.state != stateContinued {
			continue
		}
		if m, ok := t.lists.ReplyFor(s.callID); ok {
			s.state = stateReplied
			if s.settlement == nil {
				s.settlement = &messages.Settlement{Outcome: outcomeQueued}
			}
			s.settlement.MessageId = CleanID(m.ID)
		}
	}
}

// row is the story as people see it.
func (s *story) row(session string, now time.Time) *messages.QuestionRow {
	row := &messages.QuestionRow{Session: session, CallId: CleanID(s.callID), State: s.state, Questions: s.questions,
		AskedMs: s.askedMS, Unkeyed: s.legacy, Answers: s.answers, Settlement: s.outcome(s.state), CallSeq: s.seq}
	if s.state == stateOpen {
		row.Blocking = s.deadlineMS == 0
		setDeadline(row, s.deadlineMS, now)
	}
	return row
}

// outcome is how the call stands, as far as the log tells. An admitted reply
// has answered its question, so what was recorded as queued reads as answered.
func (s *story) outcome(state string) *messages.Settlement {
	switch {
	case state == stateOpen:
		return nil // what is recorded then is about an earlier wait
	case state == stateSettled && s.settlement == nil && s.answers != nil:
		return &messages.Settlement{Outcome: outcomeAnswered}
	case state == stateSettled && s.settlement == nil:
		return &messages.Settlement{Outcome: outcomeUnknown}
	case state == stateSettled && s.settlement.Outcome == outcomeQueued:
		return &messages.Settlement{Outcome: outcomeAnswered, By: s.settlement.By, Door: s.settlement.Door,
			SubmissionId: s.settlement.SubmissionId, MessageId: s.settlement.MessageId, Reason: s.settlement.Reason}
	}
	return s.settlement
}

// text is what the index does not know of the call while it is in a state.
func (s *story) text(state string) *text {
	t := &text{questions: s.questions, askedMS: s.askedMS, unkeyed: s.legacy, settlement: s.outcome(state), size: 512}
	if state == stateSettled {
		t.answers = s.answers
	}
	if o := t.settlement; o != nil {
		t.size += 192 + len(o.GetBy()) + len(o.GetDoor()) + len(o.GetSubmissionId()) + len(o.GetMessageId()) + len(o.GetReason())
	}
	for _, a := range t.answers {
		t.size += 96 + len(a.GetId()) + len(a.GetCustom())
		for _, label := range a.GetSelected() {
			t.size += 16 + len(label)
		}
	}
	for _, q := range s.questions {
		t.size += 128 + len(q.GetId()) + len(q.GetQuestion()) + len(q.GetHeader())
		for _, o := range q.GetOptions() {
			t.size += 96 + len(o.GetLabel()) + len(o.GetDescription())
		}
	}
	return t
}

// readQuestions reads the projection's list.
func readQuestions(raw json.RawMessage) []*messages.Question {
	var list []struct {
		ID, Question, Header string
		Options              []struct{ Label, Description string }
		MultiSelect          bool
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	out := make([]*messages.Question, 0, len(list))
	for _, in := range list {
		q := &messages.Question{Id: asUTF8(in.ID), Question: Clean(in.Question), Header: Clean(in.Header), MultiSelect: in.MultiSelect}
		for _, o := range in.Options {
			q.Options = append(q.Options, &messages.Option{Label: Clean(o.Label), Description: Clean(o.Description)})
		}
		out = append(out, q)
	}
	return out
}

// readAnswers reads a batch of the closed shape. An empty batch is not
// nil: it settled the question all the same.
func readAnswers(raw json.RawMessage) []*messages.Answer {
	var list []struct {
		ID       string
		Selected []string
		Custom   *string
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	out := make([]*messages.Answer, 0, len(list))
	for _, in := range list {
		a := &messages.Answer{Id: asUTF8(in.ID)}
		for _, label := range in.Selected {
			a.Selected = append(a.Selected, Clean(label))
		}
		if in.Custom != nil {
			custom := Clean(*in.Custom)
			a.Custom = &custom
		}
		out = append(out, a)
	}
	return out
}
