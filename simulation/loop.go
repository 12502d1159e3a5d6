package simulation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Program is an agent's loop, written as it would be: top to bottom, waiting
// where it waits. It runs as a coroutine of the world, so that nothing of it
// happens at the same time as anything else, and a seed decides what happens
// between any two of its calls. It must not start goroutines or look at a clock.
//
// When its process crashes it is unwound and begins again from the top. What it
// must remember lives outside of it, as its own disk would.
type Program func(l *Loop)

// Party is the name under which the plan has this program.
func (l *Loop) Party() string { return l.p.name }

// Session is the session that it speaks for.
func (l *Loop) Session() string { return l.p.session }

// Root is the agent instance that it speaks as.
func (l *Loop) Root() string { return l.p.root }

// Now is how much time has passed in the world.
func (l *Loop) Now() time.Duration { return time.Duration(l.p.w.now) * time.Millisecond }

// Sleep waits.
func (l *Loop) Sleep(d time.Duration) { l.sleep(d.Milliseconds()) }

// Log writes a line into the trace.
func (l *Loop) Log(text string) { l.p.w.say(l.p.name, KindMark, text) }

// Do sends a command, and again under its own key until it is answered. It
// returns the reply, or a *messages.Refusal; nil when none came within a minute.
func (l *Loop) Do(cmd messages.Command) messages.Message { return l.do(cmd) }

// Attach makes the program its session's root.
func (l *Loop) Attach() bool { return l.p.attach(l) }

// Ask asks one question and waits for the result: the answer's text, or that it
// is pending. attempt is the key under which a program that crashed may ask
// again without asking twice. timeout is in whole seconds, as everywhere; -1:
// never. The error is the refusal, a *messages.Error, and no answer.
func (l *Loop) Ask(attempt, question string, timeout time.Duration, options ...string) (answer string, pending bool, err error) {
	seconds, err := timeoutSeconds(timeout)
	if err != nil {
		return "", false, err
	}
	type option struct {
		Label string `json:"label"`
	}
	var labels []option
	for _, o := range options {
		labels = append(labels, option{o})
	}
	text, _ := json.Marshal(map[string]any{"timeout": seconds,
		"questions": []any{map[string]any{"id": "q", "question": question, "options": labels}}}) // strings and numbers always encode
	r := l.p.start(&messages.AskRequest{Session: l.p.session, Root: l.p.root, Attempt: attempt, CallId: attempt,
		Arguments: string(text), AnswererPresent: true})
	l.until(func() bool { return r.final }, -1)
	if no, refused := r.answer.(*messages.Refusal); refused {
		return "", false, messages.FromWire(no)
	}
	a, ok := r.answer.(*messages.AskResponse)
	if !ok || a.GetAnswered() == nil && a.GetPending() == nil {
		return "", false, fmt.Errorf("simulation: %s was told %s, which is no result", attempt, brief(r.answer))
	}
	for _, item := range a.GetAnswered().GetAnswers() {
		if item.Custom != nil {
			return item.GetCustom(), false, nil
		}
		if len(item.GetSelected()) > 0 {
			return item.GetSelected()[0], false, nil
		}
	}
	return "", a.GetPending() != nil, nil
}

// timeoutSeconds is how a question says its timeout. What else is wrong with it
// its host says.
func timeoutSeconds(d time.Duration) (int64, error) {
	switch {
	case d == -1:
		return -1, nil
	case d%time.Second != 0:
		return 0, messages.Refuse(messages.BadTimeout, "the timeout is %v; it must be whole seconds, or -1 for none", d)
	}
	return int64(d / time.Second), nil
}

// Reply is a late answer.
type Reply struct {
	ID, Call, Answer string
	Redelivered      bool
}

// Collect lists the late answers, with those of earlier lists that no token has
// acknowledged. after is the token of the list that the program has dealt with.
func (l *Loop) Collect(after string) (replies []Reply, token string) {
	r, ok := l.do(&messages.CollectRepliesRequest{Session: l.p.session, Root: l.p.root, After: after}).(*messages.CollectRepliesResponse)
	if !ok {
		return nil, after
	}
	for _, m := range r.GetReplies() {
		out := Reply{ID: m.GetMessageId(), Call: m.GetCallId(), Redelivered: m.GetRedelivered()}
		if batch, ok := sessionlog.ReadBatch(m.GetText()); ok {
			for _, item := range sessionlog.AnswerItems(batch) {
				if item.Custom != nil {
					out.Answer = *item.Custom
				} else if len(item.Selected) > 0 {
					out.Answer = item.Selected[0]
				}
			}
		}
		replies = append(replies, out)
	}
	return replies, r.GetToken()
}

// Answer answers a call as a person does, by its one option or in own words,
// and reports whether it was taken.
func (l *Loop) Answer(call, text string) bool {
	id := l.p.w.newID("sub-")
	for {
		m := l.do(&messages.SubmitRequest{Session: l.p.session, CallId: call, SubmissionId: id, By: l.p.name, Door: "simulation",
			Answers: []*messages.Answer{{Id: "q", Selected: []string{text}}}})
		no, refused := m.(*messages.Refusal)
		if !refused {
			return m != nil
		}
		if no.GetCode() != string(messages.NotAnswerable) && no.GetCode() != string(messages.NotFound) {
			return false
		}
		l.sleep(200) // not asked yet
	}
}
