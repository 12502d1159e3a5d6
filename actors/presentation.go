package actors

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// What a client shows of questions and answers, read from the texts as they
// stand in the log. None of it
// decides anything about a call.

// ShownOption is an option of a question that is shown. An absent field is nil.
type ShownOption struct {
	Label       string  `json:"label"`
	Description *string `json:"description,omitempty"`
}

// ShownQuestion is a question that is shown. An absent field is nil: an empty
// header is another thing than none.
type ShownQuestion struct {
	ID          string        `json:"id"`
	Question    string        `json:"question"`
	Detail      *string       `json:"detail,omitempty"`
	Header      *string       `json:"header,omitempty"`
	Options     []ShownOption `json:"options,omitzero"`
	MultiSelect *bool         `json:"multiSelect,omitempty"`
	Intent      *ShownIntent  `json:"intent,omitempty"`
}

// ShownIntent is a hint at how to show a question.
type ShownIntent struct {
	Kind    string  `json:"kind"`
	Approve string  `json:"approve"`
	CallID  *string `json:"callId,omitempty"`
}

// ShownAnswer is one recorded answer.
type ShownAnswer struct {
	ID       string   `json:"id"`
	Selected []string `json:"selected"`
	Custom   *string  `json:"custom,omitempty"`
}

// ---- labels and plans ----

// recommendations are the words of a recommended label, each in one kind of brackets.
var recommendations = []string{"(recommended)", "(推荐)", "（recommended）", "（推荐）"}

// SplitLabel is an option's label as it is shown, and whether it is marked as
// recommended. The answer carries the label as it was.
func SplitLabel(label string) (shown string, recommended bool) {
	bare := trimRight(label)
	for _, mark := range recommendations {
		at := len(bare) - len(mark)
		if at >= 0 && strings.EqualFold(bare[at:], mark) {
			return trimRight(bare[:at]), true
		}
	}
	return label, false
}

// PlanView is a question that is shown as a plan to approve.
type PlanView struct {
	ID       string       `json:"id"`
	Question string       `json:"question"`
	Plan     string       `json:"plan"`
	CallID   *string      `json:"callId,omitempty"`
	Approve  ShownOption  `json:"approve"`
	Decline  *ShownOption `json:"decline,omitempty"`
}

// PlanOf narrows the questions of a call to a plan review; false means that
// they are shown as ordinary questions.
func PlanOf(questions []ShownQuestion) (PlanView, bool) {
	if len(questions) != 1 {
		return PlanView{}, false
	}
	q := questions[0]
	if q.Intent == nil || q.Intent.Kind != planReview || q.Detail == nil || q.MultiSelect != nil && *q.MultiSelect || len(q.Options) > 2 {
		return PlanView{}, false
	}
	approves := func(o ShownOption) bool { return o.Label == q.Intent.Approve }
	yes := slices.IndexFunc(q.Options, approves)
	if yes < 0 {
		return PlanView{}, false
	}
	view := PlanView{ID: q.ID, Question: q.Question, Plan: *q.Detail, CallID: q.Intent.CallID, Approve: q.Options[yes]}
	if no := slices.IndexFunc(q.Options, func(o ShownOption) bool { return !approves(o) }); no >= 0 {
		view.Decline = &q.Options[no]
	}
	return view, true
}

const planReview = "plan-review"

// ---- late replies ----

// ReplySource says which call the data of a user/message replies to.
// Unlike the fold, it takes no other outcome than answered.
func ReplySource(data json.RawMessage) (callID string, ok bool) {
	source := record(record(readShown(string(data)))["source"])
	callID, named := source["callId"].(string)
	return callID, named && source["kind"] == sessionlog.KindReply && source["outcome"] == "answered"
}

// ReplyWords are the words around a reply, in the reader's language.
type ReplyWords struct{ Skipped, Answer string }

// ReplyView is a late reply as the conversation shows it.
type ReplyView struct {
	Questions []ShownQuestion `json:"questions"`
	Answers   []ShownAnswer   `json:"answers"`
	// Values are what was answered to each question; empty: skipped.
	Values [][]string `json:"values"`
	// Summary is all there is on a closed bubble.
	Summary   string `json:"summary"`
	Clipboard string `json:"clipboard"`
}

// ReplyOf reads the text of a late reply as well as it can be read. One
// without questions is shown as the text it is.
func ReplyOf(text string, words ReplyWords) ReplyView {
	v := ReplyView{Questions: []ShownQuestion{}, Answers: []ShownAnswer{}, Values: [][]string{}, Summary: words.Skipped, Clipboard: text}
	payload := record(readShown(text))
	list, ok := payload["questions"].([]any)
	if !ok {
		return v
	}
	for _, item := range list {
		if q, ok := shownQuestion(item, "multiSelect", true); ok {
			v.Questions = append(v.Questions, q)
		}
	}
	answers, _ := payload["answers"].([]any)
	for _, item := range answers {
		if a, ok := tolerantAnswer(item); ok {
			v.Answers = append(v.Answers, a)
		}
	}
	var all, blocks []string
	for _, q := range v.Questions {
		values := valuesOf(v.Answers, q.ID)
		v.Values, all = append(v.Values, values), append(all, values...)
		said := words.Skipped
		if len(values) > 0 {
			said = words.Answer + strings.Join(values, ", ")
		}
		blocks = append(blocks, q.title()+"\n"+said)
	}
	if len(all) > 0 {
		v.Summary = strings.Join(all, ", ")
	}
	if len(blocks) > 0 {
		v.Clipboard = strings.Join(blocks, "\n\n")
	}
	return v
}

// title is the question with its header, unless that says the same.
func (q ShownQuestion) title() string {
	if q.Header == nil || *q.Header == "" || *q.Header == q.Question {
		return q.Question
	}
	return *q.Header + " — " + q.Question
}

// valuesOf is what the first answer with this id says.
func valuesOf(answers []ShownAnswer, id string) []string {
	values := []string{}
	at := slices.IndexFunc(answers, func(a ShownAnswer) bool { return a.ID == id })
	if at < 0 {
		return values
	}
	values = append(values, answers[at].Selected...)
	if custom := answers[at].Custom; custom != nil && trim(*custom) != "" {
		values = append(values, trim(*custom))
	}
	return values
}

// ---- the row of a call in the transcript ----

// RowState is how a tool row looks.
type RowState string

// The states of a row.
const (
	RowRunning RowState = "running"
	RowOK      RowState = "ok"
	RowError   RowState = "error"
	RowStopped RowState = "stopped"
)

// RowInput is all that the row of a question call is made of (section K).
type RowInput struct {
	CallID    string
	Arguments string   // the raw arguments
	State     RowState // of an ordinary row
	Code      string   // of the result's error; empty: none
	Text      *string  // of the result, when it is exactly one text
	Active    bool     // the call is among those that can be answered
	// Settled are the recorded answers; nil when the call is not settled.
	Settled []ShownAnswer
	// Reply is the queued reply message for the call; nil: none.
	Reply json.RawMessage
}

// RowSummary is the row's word; RowAnswered has two numbers with it.
type RowSummary string

// The words. RowGeneric is the ordinary row of any tool.
const (
	RowGeneric     RowSummary = "generic"
	RowCancelled   RowSummary = "cancelled"
	RowInterrupted RowSummary = "interrupted"
	RowWaiting     RowSummary = "waiting"
	RowPending     RowSummary = "pending"
	RowClosed      RowSummary = "closed"
	RowAnswered    RowSummary = "answered"
)

// RowAction is what the row offers.
type RowAction string

// The actions.
const (
	RowNoAction RowAction = ""
	RowReopen   RowAction = "reopen" // show the card
	RowReview   RowAction = "review" // show what was answered
	RowExpand   RowAction = "expand" // only unfold the row
)

// RowView is the row as it is shown.
type RowView struct {
	Summary RowSummary
	State   RowState
	// Answered of Items, with RowAnswered.
	Answered, Items int
	// Transcript is what unfolds; nil: nothing of our own.
	Transcript *RowTranscript
	Action     RowAction
}

// RowTranscript lists the questions: with their answers, or why there are none.
type RowTranscript struct {
	// Verdict is the summary of questions without answers; empty: answered.
	Verdict   RowSummary
	Questions []ShownQuestion
	// Answers are what was answered to each question, when answered.
	Answers [][]string
}

// RowOf decides the row of a question call, in the order of Q-262.
func RowOf(in RowInput) RowView {
	v := rowBase(in)
	if v.Action == RowReopen {
		if answers, ok := queuedAnswers(in); ok {
			if said := paired(in, answers); said != nil {
				return RowView{Summary: RowAnswered, State: v.State, Answered: answered(answers), Items: len(answers), Transcript: said, Action: RowExpand}
			}
		}
	}
	return v
}

func rowBase(in RowInput) RowView {
	switch {
	case in.Code == string(messages.AskCancelled):
		return unanswered(in, RowCancelled, RowOK, RowNoAction)
	case in.Code == string(messages.AskAborted):
		return unanswered(in, RowInterrupted, RowStopped, RowNoAction)
	case in.State == RowRunning:
		return RowView{Summary: RowWaiting, State: in.State, Action: reopens(in)}
	case in.Code == sessionlog.CodeOutcomeUnknown && (in.Active || in.Settled != nil):
		return unreturned(in)
	case in.State != RowOK:
		return RowView{Summary: RowGeneric, State: in.State}
	case isPendingRow(in.Text):
		return unreturned(in)
	case in.Settled != nil:
		return settledRow(in)
	}
	return returned(in)
}

func reopens(in RowInput) RowAction {
	if in.Active {
		return RowReopen
	}
	return RowNoAction
}

// unreturned is a call whose result holds no answer.
func unreturned(in RowInput) RowView {
	switch {
	case in.Active:
		return unanswered(in, RowPending, RowOK, RowReopen)
	case len(in.Settled) == 0:
		return unanswered(in, RowClosed, RowOK, RowNoAction)
	}
	return settledRow(in)
}

// settledRow shows the recorded answers. They can be reviewed, if it is clear
// which is to which question.
func settledRow(in RowInput) RowView {
	v := RowView{Summary: RowAnswered, State: RowOK, Answered: answered(in.Settled), Items: len(in.Settled), Transcript: paired(in, in.Settled)}
	if v.Transcript != nil {
		v.Action = RowReview
	}
	return v
}

// returned shows the answers of the result's text, or counts what looks like some.
func returned(in RowInput) RowView {
	generic := RowView{Summary: RowGeneric, State: in.State}
	if in.Text == nil {
		return generic
	}
	list, ok := record(readShown(*in.Text))["answers"].([]any)
	if !ok {
		return generic
	}
	if answers, ok := strictAnswers(list); ok {
		return RowView{Summary: RowAnswered, State: in.State, Answered: answered(answers), Items: len(answers), Transcript: paired(in, answers)}
	}
	n := 0
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return generic
		}
		selected, _ := fields["selected"].([]any)
		if custom, _ := fields["custom"].(string); len(selected) > 0 || custom != "" {
			n++
		}
	}
	return RowView{Summary: RowAnswered, State: in.State, Answered: n, Items: len(list)}
}

func unanswered(in RowInput, word RowSummary, state RowState, action RowAction) RowView {
	v := RowView{Summary: word, State: state, Action: action}
	if questions, ok := strictQuestions(in.Arguments); ok {
		v.Transcript = &RowTranscript{Verdict: word, Questions: questions}
	}
	return v
}

// paired is the transcript of answers, when each belongs to one question and
// each question has one.
func paired(in RowInput, answers []ShownAnswer) *RowTranscript {
	questions, ok := strictQuestions(in.Arguments)
	if !ok || len(questions) != len(answers) {
		return nil
	}
	said := &RowTranscript{Questions: questions}
	for _, q := range questions { // ids are unique and as many as answers: each found once is a pairing
		if !slices.ContainsFunc(answers, func(a ShownAnswer) bool { return a.ID == q.ID }) {
			return nil
		}
		said.Answers = append(said.Answers, valuesOf(answers, q.ID))
	}
	return said
}

// answered counts the items that say something.
func answered(answers []ShownAnswer) int {
	n := 0
	for _, a := range answers {
		if len(a.Selected) > 0 || a.Custom != nil && *a.Custom != "" {
			n++
		}
	}
	return n
}

// isPendingRow is the row's own test, stricter than the fold's.
func isPendingRow(text *string) bool {
	if text == nil {
		return false
	}
	payload := record(readShown(*text))
	_, named := payload["callId"].(string)
	return named && payload["pending"] == true
}

// queuedAnswers reads the answers of the queued reply.
func queuedAnswers(in RowInput) ([]ShownAnswer, bool) {
	if in.Reply == nil {
		return nil, false
	}
	content, _ := record(readShown(string(in.Reply)))["content"].([]any)
	if len(content) == 0 {
		return nil, false
	}
	block := record(content[0])
	text, ok := block["text"].(string)
	if !ok || block["type"] != "text" {
		return nil, false
	}
	payload := record(readShown(text))
	if payload["kind"] != "answer_to_pending_question" || payload["callId"] != in.CallID {
		return nil, false
	}
	list, ok := payload["answers"].([]any)
	if !ok {
		return nil, false
	}
	return strictAnswers(list)
}

// ---- reading ----

// readShown reads a JSON text; nil when it is none. Of repeated keys the last counts.
func readShown(text string) any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil
	}
	return v
}

// record is v's fields; none when it is no record.
func record(v any) map[string]any {
	fields, _ := v.(map[string]any)
	return fields
}

// strictQuestions reads the questions of a call for pairing: unique
// ids, and only what is optional may be malformed.
func strictQuestions(arguments string) ([]ShownQuestion, bool) {
	list, ok := record(readShown(arguments))["questions"].([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	var out []ShownQuestion
	for _, item := range list {
		q, ok := shownQuestion(item, "multi_select", false)
		if !ok || slices.ContainsFunc(out, func(other ShownQuestion) bool { return other.ID == q.ID }) {
			return nil, false
		}
		out = append(out, q)
	}
	return out, true
}

// shownQuestion reads one question. A bad option is left out, or else spoils
// the list of options.
func shownQuestion(item any, multi string, eachOption bool) (ShownQuestion, bool) {
	fields := record(item)
	id, named := fields["id"].(string)
	question, asked := fields["question"].(string)
	q := ShownQuestion{ID: id, Question: question, Detail: optional[string](fields, "detail"),
		Header: optional[string](fields, "header"), MultiSelect: optional[bool](fields, multi)}
	list, ok := fields["options"].([]any)
	if !ok {
		return q, named && asked
	}
	q.Options = []ShownOption{}
	for _, item := range list {
		label, ok := record(item)["label"].(string)
		switch {
		case ok:
			q.Options = append(q.Options, ShownOption{label, optional[string](record(item), "description")})
		case !eachOption:
			q.Options = nil
			return q, named && asked
		}
	}
	return q, named && asked
}

// optional is a field of the right type, nil when it is absent or of another.
func optional[T any](fields map[string]any, name string) *T {
	if v, ok := fields[name].(T); ok {
		return &v
	}
	return nil
}

// strictAnswers reads a list of answers; one bad item spoils it.
func strictAnswers(list []any) ([]ShownAnswer, bool) {
	answers := []ShownAnswer{}
	for _, item := range list {
		fields := record(item)
		a, ok := tolerantAnswer(item)
		selected, _ := fields["selected"].([]any)
		custom, has := fields["custom"]
		if _, text := custom.(string); !ok || len(a.Selected) != len(selected) || has && !text {
			return nil, false
		}
		answers = append(answers, a)
	}
	return answers, true
}

// tolerantAnswer reads one answer; what is no string in it is left out.
func tolerantAnswer(item any) (ShownAnswer, bool) {
	fields := record(item)
	id, named := fields["id"].(string)
	list, ok := fields["selected"].([]any)
	a := ShownAnswer{ID: id, Selected: []string{}, Custom: optional[string](fields, "custom")}
	for _, label := range list {
		if label, ok := label.(string); ok {
			a.Selected = append(a.Selected, label)
		}
	}
	return a, named && ok
}

// space is what the clients of the web take for white space.
func space(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}

func trim(s string) string      { return strings.TrimFunc(s, space) }
func trimRight(s string) string { return strings.TrimRightFunc(s, space) }
