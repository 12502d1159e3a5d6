package gateway

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/messages"
)

// Check refuses a request whose ids are empty, blank or odd (fault E7), or
// whose texts and lists are over their limits. Every door checks first; what
// the session decides is not looked at here.
func Check(req proto.Message) error {
	c := &checker{}
	switch m := req.(type) {
	case *messages.AttachRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).optional("owner", m.GetOwner())
		c.note(messages.CheckDir("cwd", m.GetCwd())).text("agent_preset", m.GetAgentPreset(), messages.NameBytesMax)
	case *messages.BeginTurnRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("turn", m.GetTurn())
	case *messages.BeginStepRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("turn", m.GetTurn()).count("step", m.GetStep())
	case *messages.EndStepRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("turn", m.GetTurn()).count("step", m.GetStep())
	case *messages.EndTurnRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("turn", m.GetTurn()).name("reason", m.GetReason())
	case *messages.AskRequest:
		c.ask(m)
	case *messages.EndForegroundRequest:
		c.call(m).id("attempt", m.GetAttempt()).name("reason", m.GetReason())
	case *messages.CollectRepliesRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).optional("call_id", m.GetCallId())
		c.optional("after", m.GetAfter()).name("correlation", m.GetCorrelation())
	case *messages.AcknowledgeRequest:
		c.id("session", m.GetSession()).optional("call_id", m.GetCallId()).name("correlation", m.GetCorrelation())
	case *messages.SubmitRequest:
		c.call(m).id("submission_id", m.GetSubmissionId()).name("by", m.GetBy()).name("door", m.GetDoor())
		c.answers(m.GetAnswers())
	case *messages.ExpireRequest:
		c.call(m).optional("claim", m.GetClaim()).name("by", m.GetBy())
	case *messages.DelegateRequest:
		c.call(m).id("claim", m.GetClaim()).name("by", m.GetBy())
	case *messages.DismissRequest:
		c.call(m).name("by", m.GetBy())
	case *messages.WithdrawQuestionRequest:
		c.call(m).optional("root", m.GetRoot()).name("by", m.GetBy()).name("reason", m.GetReason())
	case *messages.SteerRequest:
		c.id("session", m.GetSession()).id("message_id", m.GetMessageId()).name("by", m.GetBy())
		c.text("text", m.GetText(), messages.TextBytesMax).list(m.GetList())
	case *messages.ClaimMessagesRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("turn", m.GetTurn()).ids("message_ids", m.GetMessageIds())
	case *messages.AdmitMessagesRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("turn", m.GetTurn()).ids("message_ids", m.GetMessageIds())
	case *messages.WithdrawMessageRequest:
		c.id("session", m.GetSession()).id("message_id", m.GetMessageId()).name("by", m.GetBy()).name("reason", m.GetReason())
	case *messages.AwaitInboxRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).count("hold_ms", m.GetHoldMs())
	default:
		c.read(req)
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

// read checks the requests that only look.
func (c *checker) read(req proto.Message) {
	switch m := req.(type) {
	case *messages.GetSessionRequest:
		c.id("session", m.GetSession())
	case *messages.ListSessionsRequest:
		c.optional("after", m.GetAfter())
	case *messages.ReadLogRequest:
		c.id("session", m.GetSession())
	case *messages.ImportSessionRequest:
		c.optional("session", m.GetSession())
	case *messages.ListQuestionsRequest:
		c.optional("session", m.GetSession()).text("after", m.GetAfter(), 4*messages.IDBytesMax)
	case *messages.GetQuestionRequest:
		c.call(m)
	case *messages.WatchQuestionsRequest:
		c.optional("session", m.GetSession()).optional("client", m.GetClient())
	case *messages.AttachWaitRequest:
		c.call(m).optional("client", m.GetClient())
	case *messages.ReleaseWaitRequest:
		c.call(m).id("claim", m.GetClaim())
	case *messages.ListInboxRequest:
		c.id("session", m.GetSession())
	default:
		c.past(req)
	}
}

// past checks the requests about past work. What they mean is checked where
// they are answered, for every door.
func (c *checker) past(req proto.Message) {
	switch m := req.(type) {
	case *messages.CallQueryToolRequest:
		c.id("session", m.GetSession()).id("root", m.GetRoot()).name("tool", m.GetTool()).text("arguments", m.GetArguments(), messages.QueryBytesMax)
	case *messages.SearchRequest:
		c.optional("session", m.GetSession()).text("query", m.GetQuery(), messages.TextBytesMax).text("after", m.GetAfter(), messages.TextBytesMax)
	case *messages.TraceRequest:
		c.id("session", m.GetSession())
	case *messages.ReadRequest:
		c.id("session", m.GetSession())
	}
}

// checker keeps the first mistake.
type checker struct{ err *messages.Error }

func (c *checker) note(err *messages.Error) *checker {
	if c.err == nil {
		c.err = err
	}
	return c
}

func (c *checker) id(field, id string) *checker { return c.note(messages.CheckID(field, id)) }

func (c *checker) optional(field, id string) *checker {
	if id == "" {
		return c
	}
	return c.id(field, id)
}

func (c *checker) call(m interface {
	GetSession() string
	GetCallId() string
}) *checker {
	return c.id("session", m.GetSession()).id("call_id", m.GetCallId())
}

func (c *checker) text(field, text string, limit int) *checker {
	return c.note(messages.CheckText(field, text, limit))
}

func (c *checker) name(field, name string) *checker {
	return c.text(field, name, messages.NameBytesMax)
}

func (c *checker) count(field string, n int64) *checker {
	if n < 0 {
		return c.note(messages.Refuse(messages.BadRequest, "%s is %d; it may not be negative", field, n))
	}
	return c
}

func (c *checker) ids(field string, ids []string) *checker {
	if len(ids) > messages.PageMax {
		return c.note(messages.Refuse(messages.TooLarge, "%s has %d ids, the limit is %d", field, len(ids), messages.PageMax))
	}
	for i, id := range ids {
		c.id(fmt.Sprintf("%s[%d]", field, i), id)
	}
	return c
}

func (c *checker) list(name string) *checker {
	if name != "" && name != "next-step" && name != "next-turn" {
		return c.note(messages.Refuse(messages.BadRequest, "list is %q; use next-step or next-turn", name))
	}
	return c
}

func (c *checker) ask(m *messages.AskRequest) {
	c.id("session", m.GetSession()).id("root", m.GetRoot()).id("attempt", m.GetAttempt()).optional("call_id", m.GetCallId())
	c.optional("parent_call_id", m.GetParentCallId()).optional("root_call_id", m.GetRootCallId())
	c.count("turn", m.GetTurn()).count("step", m.GetStep()).count("hold_ms", m.GetHoldMs()).count("wait_max_ms", m.GetWaitMaxMs())
	c.name("correlation", m.GetCorrelation()).name("client", m.GetClient()).ids("live", m.GetLive())
	if m.GetJoin() && !m.GetReceipt() {
		c.note(messages.Refuse(messages.BadRequest, "join is set without receipt: only a question whose delivery is watched can have been lost"))
	}
	if _, known := messages.Mode_name[int32(m.GetMode())]; !known {
		c.note(messages.Refuse(messages.BadRequest, "mode is %d; use MODE_TIMED or MODE_LEGACY", m.GetMode()))
	}
	if m.GetStep() != 0 && m.GetTurn() == 0 {
		c.note(messages.Refuse(messages.BadRequest, "step is %d without a turn; name both, or neither", m.GetStep()))
	}
	c.text("arguments", m.GetArguments(), messages.ArgumentsBytesMax)
	c.text("assistant_message", m.GetAssistantMessage(), messages.MessageBytesMax)
	if m.GetArguments() != "" && (len(m.GetQuestions()) > 0 || m.TimeoutSeconds != nil) {
		c.note(messages.Refuse(messages.BadRequest, "arguments carry their own questions and timeout; send them, or questions and timeout_seconds"))
	}
	for i, q := range m.GetQuestions() { // never forwarded by the tool; dropping them silently would mislead
		if q.Detail != nil || q.GetIntent() != nil {
			c.note(messages.Refuse(messages.BadRequest, "questions[%d] has a detail or an intent, which ask_user_question does not carry", i))
		}
	}
}

func (c *checker) answers(answers []*messages.Answer) {
	if len(answers) > messages.AnswersMax {
		c.note(messages.Refuse(messages.TooLarge, "answers has %d items, the limit is %d", len(answers), messages.AnswersMax))
		return
	}
	for i, a := range answers {
		if n := len(a.GetSelected()); n > messages.SelectedMax {
			c.note(messages.Refuse(messages.TooLarge, "answers[%d].selected has %d labels, the limit is %d", i, n, messages.SelectedMax))
		}
		for j, label := range a.GetSelected() {
			c.text(fmt.Sprintf("answers[%d].selected[%d]", i, j), label, messages.TextBytesMax)
		}
		c.text(fmt.Sprintf("answers[%d].id", i), a.GetId(), messages.TextBytesMax)
		c.text(fmt.Sprintf("answers[%d].custom", i), a.GetCustom(), messages.TextBytesMax)
	}
}
