package parley

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Option is one choice of a question. An answer names it by its label.
type Option struct {
	Label, Description string
}

// Question is one question of a call. Only ID and Text are needed.
type Question struct {
	ID          string
	Text        string
	Header      string
	Options     []Option
	MultiSelect bool
}

// Answer is one item of a batch. Without Selected and Custom it is a
// skip: the person has seen the question and chose not to answer it.
type Answer struct {
	ID       string
	Selected []string
	// Custom is free text; nil is none, which differs from empty.
	Custom *string
}

// Skipped reports whether the person skipped the question.
func (a Answer) Skipped() bool { return len(a.Selected) == 0 && a.Custom == nil }

// Ask is one ask_user_question call.
type Ask struct {
	// Questions are what is asked. Their ids must differ within the call.
	Questions []Question
	// Arguments is the raw argument text of the model's tool call, instead of
	// Questions. It names its own timeout.
	Arguments string
	// Timeout is the foreground wait, in whole seconds. 0 is the node's
	// default; Never waits without a deadline.
	Timeout time.Duration
	// Mode is Timed or Legacy; zero is the node's.
	Mode Mode
	// Attempt is the key under which this ask may be repeated, for example by
	// another process after a crash. Empty draws one.
	Attempt string
	// CallID is the tool call's id. Empty makes one from Attempt.
	CallID string
	// ParentCall is the tool call whose code asks, if a program does. CallID is
	// then the sub-call's: ParentCall, ":ptc:" and its number, from 1 (SubCallID).
	// Result, late answer and everything else are as of a direct call.
	ParentCall string
	// RootCall is the model's own call that ParentCall runs in; empty: ParentCall
	// without what makes it a sub-call itself.
	RootCall string
	// Turn and Step are the agent's own; 0 lets the session keep synthetic ones.
	Turn, Step int64
	// AssistantMessage is the agent's message (JSON) that holds the tool call;
	// of a sub-call, the root call.
	AssistantMessage string
	// OnWaiting is called once the question is durable and nobody has answered
	// yet; again after a restart. It must not block.
	OnWaiting func(Waiting)
}

// SubCallID names the n-th call, from 1, that the code of a tool call makes. A
// program numbers all its calls, whatever tools they are of.
func SubCallID(parentCall string, n int) string { return sessionlog.SubCallID(parentCall, n) }

// Waiting tells that a question is asked, durable, and not yet answered.
type Waiting struct {
	CallID string
	// Deadline is when the foreground wait ends, on the host's wall clock; zero:
	// never. A claim holds it (AttachWait).
	Deadline time.Time
}

// Result is what a question call returned: Answered or Pending, and nothing
// else. It is an interface so that a program has to say which it got: there is
// no way to read answers out of a Pending (promise 3).
type Result interface {
	// Call is the call's id.
	Call() string
	// ToolResult is the text for the model.
	ToolResult() string
	result()
}

// Answered: a person answered in time.
type Answered struct {
	CallID string
	// Answers are in the order received, one item per question.
	Answers []Answer
	// Text is the tool result.
	Text string
}

// Pending: nobody answered in time. It is not an answer, not a skip and not
// permission. The question stays open: the answer will be a message.
type Pending struct {
	CallID string
	// Message is the guidance for the model.
	Message string
	// Text is the tool result.
	Text string
}

// Call returns the call's id.
func (r Answered) Call() string { return r.CallID }

// ToolResult returns the text for the model.
func (r Answered) ToolResult() string { return r.Text }

// Answer returns the item of a question.
func (r Answered) Answer(question string) (Answer, bool) {
	for _, a := range r.Answers {
		if a.ID == question {
			return a, true
		}
	}
	return Answer{}, false
}

func (Answered) result() {}

// Call returns the call's id.
func (r Pending) Call() string { return r.CallID }

// ToolResult returns the text for the model.
func (r Pending) ToolResult() string { return r.Text }

func (Pending) result() {}

// request turns the ask into the command of one attempt.
func (a *Ask) request(session, root string) (*messages.AskRequest, error) {
	req := &messages.AskRequest{Session: session, Root: root, Attempt: a.Attempt, CallId: a.CallID, Turn: a.Turn, Step: a.Step,
		Arguments: a.Arguments, AssistantMessage: a.AssistantMessage, Mode: a.Mode,
		ParentCallId: a.ParentCall, RootCallId: a.RootCall}
	if req.Attempt == "" {
		req.Attempt = newID("attempt")
	}
	if a.Timeout != 0 {
		s, err := seconds(a.Timeout)
		if err != nil {
			return nil, err
		}
		req.TimeoutSeconds = &s
	}
	for _, q := range a.Questions {
		wire := &messages.Question{Id: q.ID, Question: q.Text, Header: q.Header, MultiSelect: q.MultiSelect}
		for _, o := range q.Options {
			wire.Options = append(wire.Options, &messages.Option{Label: o.Label, Description: o.Description})
		}
		req.Questions = append(req.Questions, wire)
	}
	return req, nil
}

// writeArguments turns typed questions into the argument text of a tool call,
// as a model would have written it. It is the one place that does; all
// doors pass through it.
func writeArguments(req *messages.AskRequest) error {
	if req.GetArguments() != "" || req.GetResume() {
		return nil
	}
	type option struct {
		Label       string `json:"label"`
		Description string `json:"description,omitempty"`
	}
	type question struct {
		ID          string   `json:"id"`
		Question    string   `json:"question"`
		Header      string   `json:"header,omitempty"`
		Options     []option `json:"options,omitempty"`
		MultiSelect bool     `json:"multi_select,omitempty"`
	}
	args := struct {
		Questions []question `json:"questions"`
		Timeout   *int64     `json:"timeout,omitempty"`
	}{Questions: []question{}, Timeout: req.TimeoutSeconds}
	if req.GetMode() == Legacy {
		args.Timeout = nil // its schema has none
	}
	for _, q := range req.GetQuestions() {
		out := question{ID: q.GetId(), Question: q.GetQuestion(), Header: q.GetHeader(), MultiSelect: q.GetMultiSelect()}
		for _, o := range q.GetOptions() {
			out.Options = append(out.Options, option{o.GetLabel(), o.GetDescription()})
		}
		args.Questions = append(args.Questions, out)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the text is for people and models
	if err := enc.Encode(args); err != nil {
		return messages.Refuse(messages.BadRequest, "the questions cannot be encoded: %v", err)
	}
	req.Arguments = strings.TrimSuffix(b.String(), "\n")
	req.Questions, req.TimeoutSeconds = nil, nil
	if err := messages.CheckText("questions", req.Arguments, messages.ArgumentsBytesMax); err != nil {
		return err
	}
	return nil
}

// resultOf reads a final response.
func resultOf(r *messages.AskResponse) (Result, error) {
	switch {
	case r.GetAnswered() != nil:
		return Answered{CallID: r.GetCallId(), Answers: fromWire(r.GetAnswered().GetAnswers()), Text: r.GetResult()}, nil
	case r.GetPending() != nil:
		return Pending{CallID: r.GetCallId(), Message: r.GetPending().GetMessage(), Text: r.GetResult()}, nil
	}
	return nil, messages.Refuse(messages.Bug, "call %q ended without an outcome", r.GetCallId())
}

func waitingOf(r *messages.AskResponse) Waiting {
	w := Waiting{CallID: r.GetCallId()}
	if ms := r.GetWaiting().GetDeadlineMs(); ms > 0 {
		w.Deadline = time.UnixMilli(ms)
	}
	return w
}

func fromWire(in []*messages.Answer) []Answer {
	out := make([]Answer, 0, len(in))
	for _, a := range in {
		item := Answer{ID: a.GetId(), Selected: slices.Clone(a.GetSelected())} // the message is shared between askers
		if a.Custom != nil {
			custom := a.GetCustom()
			item.Custom = &custom
		}
		out = append(out, item)
	}
	return out
}

func toWire(in []Answer) []*messages.Answer {
	out := make([]*messages.Answer, 0, len(in))
	for _, a := range in {
		out = append(out, &messages.Answer{Id: a.ID, Selected: a.Selected, Custom: a.Custom})
	}
	return out
}
