package main

import (
	"encoding/json"
	"slices"

	"github.com/parleyrun/parley/messages"
)

// The documents that --json prints. Their names are stable; fields are only ever added.

type optionJSON struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

type itemJSON struct {
	ID          string       `json:"id"`
	Question    string       `json:"question"`
	Header      string       `json:"header,omitempty"`
	Detail      string       `json:"detail,omitempty"`
	Options     []optionJSON `json:"options,omitempty"`
	MultiSelect bool         `json:"multiSelect,omitempty"`
}

type answerJSON struct {
	ID       string   `json:"id"`
	Selected []string `json:"selected"`
	Custom   *string  `json:"custom,omitempty"`
}

type settlementJSON struct {
	Outcome      string `json:"outcome"`
	By           string `json:"by,omitempty"`
	Door         string `json:"door,omitempty"`
	SubmissionID string `json:"submissionId,omitempty"`
	MessageID    string `json:"messageId,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

type questionJSON struct {
	Session     string          `json:"session"`
	CallID      string          `json:"callId"`
	State       string          `json:"state"`
	Questions   []itemJSON      `json:"questions"`
	AskedMs     int64           `json:"askedMs"`
	DeadlineMs  int64           `json:"deadlineMs"`
	RemainingMs int64           `json:"remainingMs"`
	Blocking    bool            `json:"blocking"`
	Answers     []answerJSON    `json:"answers,omitempty"`
	Settlement  *settlementJSON `json:"settlement,omitempty"`
	Cursor      int64           `json:"cursor,omitempty"`
	Trouble     *troubleJSON    `json:"trouble,omitempty"` // the session's log cannot be read here
}

type sessionJSON struct {
	Session    string `json:"session"`
	CreatedMs  int64  `json:"createdMs"`
	Cwd        string `json:"cwd"`
	Events     int64  `json:"events"`
	Answerable int32  `json:"answerable"`
	Queued     int32  `json:"queued"`

	Trouble *troubleJSON `json:"trouble,omitempty"` // the session's log cannot be used
}

type messageJSON struct {
	ID      string          `json:"id"`
	List    string          `json:"list,omitempty"`
	ReplyTo string          `json:"replyTo,omitempty"`
	Text    string          `json:"text"`
	Message json.RawMessage `json:"message,omitempty"`
	// Of a late reply.
	Questions []itemJSON   `json:"questions,omitempty"`
	Answers   []answerJSON `json:"answers,omitempty"`
	Skipped   bool         `json:"skipped,omitempty"` // every question was: no answer and no permission
}

func itemsOf(questions []*messages.Question) []itemJSON {
	out := []itemJSON{}
	for _, q := range questions {
		item := itemJSON{ID: q.GetId(), Question: q.GetQuestion(), Header: q.GetHeader(), Detail: q.GetDetail(), MultiSelect: q.GetMultiSelect()}
		for _, o := range q.GetOptions() {
			item.Options = append(item.Options, optionJSON{o.GetLabel(), o.GetDescription()})
		}
		out = append(out, item)
	}
	return out
}

func answersOf(answers []*messages.Answer) []answerJSON {
	out := []answerJSON{}
	for _, a := range answers {
		out = append(out, answerJSON{a.GetId(), append([]string{}, a.GetSelected()...), a.Custom})
	}
	return out
}

// skipped says that the person gave no answer to the question.
func (a answerJSON) skipped() bool {
	return len(a.Selected) == 0 && (a.Custom == nil || *a.Custom == "")
}

func allSkipped(answers []answerJSON) bool {
	return len(answers) > 0 && !slices.ContainsFunc(answers, func(a answerJSON) bool { return !a.skipped() })
}

func settlementOf(s *messages.Settlement) *settlementJSON {
	if s == nil {
		return nil
	}
	return &settlementJSON{s.GetOutcome(), s.GetBy(), s.GetDoor(), s.GetSubmissionId(), s.GetMessageId(), s.GetReason()}
}

func troubleOf(r *messages.Refusal) *troubleJSON {
	if r == nil {
		return nil
	}
	return &troubleJSON{messages.Code(r.GetCode()), r.GetText(), r.GetRemedy(), settlementOf(r.GetWinner())}
}

func questionOf(row *messages.QuestionRow, cursor int64) questionJSON {
	q := questionJSON{
		Session: row.GetSession(), CallID: row.GetCallId(), State: row.GetState(), Questions: itemsOf(row.GetQuestions()),
		AskedMs: row.GetAskedMs(), DeadlineMs: row.GetDeadlineMs(), RemainingMs: row.GetRemainingMs(), Blocking: row.GetBlocking(),
		Settlement: settlementOf(row.GetSettlement()), Cursor: cursor, Trouble: troubleOf(row.GetTrouble()),
	}
	if len(row.GetAnswers()) > 0 {
		q.Answers = answersOf(row.GetAnswers())
	}
	return q
}

func sessionOf(row *messages.SessionRow) sessionJSON {
	return sessionJSON{row.GetSession(), row.GetCreatedMs(), row.GetCwd(), row.GetEvents(), row.GetAnswerable(), row.GetQueued(), troubleOf(row.GetTrouble())}
}

// messageOf reads a message, and in a late reply what was asked and answered.
func messageOf(m *messages.InboxMessage) messageJSON {
	out := messageJSON{ID: m.GetId(), List: m.GetList(), ReplyTo: m.GetReplyTo(), Text: m.GetText()}
	if json.Valid([]byte(m.GetJson())) {
		out.Message = json.RawMessage(m.GetJson())
	}
	var reply struct {
		Kind      string
		Questions []itemJSON
		Answers   []answerJSON
	}
	if m.GetReplyTo() != "" && json.Unmarshal([]byte(m.GetText()), &reply) == nil && reply.Kind == "answer_to_pending_question" {
		out.Questions, out.Answers, out.Skipped = reply.Questions, reply.Answers, allSkipped(reply.Answers)
	}
	return out
}
