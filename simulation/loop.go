package simulation

import (
	"encoding/json"
	"errors"
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
// When its process crashes it ends where it waits, whatever it recovers from, and
// begins again from the top: what it has deferred runs, and is not heard in the
// world. What it must remember lives outside of it, as its own disk would.
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
func (l *Loop) Log(text string) {
	l.lives()
	l.p.w.say(l.p.name, KindMark, text)
}

// Do sends a command, and again under its own key until it is answered. It
// returns the reply, or a *messages.Refusal; nil when none came within a minute.
func (l *Loop) Do(cmd messages.Command) messages.Message { return l.do(cmd) }

// ErrNotTold is the error of a program that was told nothing: no host has
// answered it within a minute. What it said may be known all the same.
var ErrNotTold = errors.New("simulation: nothing was told within a minute")

// Attach makes the program its session's root. The error is the refusal, a
// *messages.Error, or ErrNotTold.
func (l *Loop) Attach() error {
	_, err := toldAs[*messages.AttachResponse](l.p.attach(l))
	return err
}

// toldAs is a reply of the type that was wanted, and else the error that it is.
func toldAs[M messages.Message](told messages.Message) (reply M, err error) {
	switch m := told.(type) {
	case M:
		return m, nil
	case *messages.Refusal:
		return reply, messages.FromWire(m)
	case nil:
		return reply, ErrNotTold
	}
	return reply, fmt.Errorf("simulation: told %s, which is no %T", brief(told), reply)
}

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
	r := l.start(&messages.AskRequest{Session: l.p.session, Root: l.p.root, Attempt: attempt, CallId: attempt,
		Arguments: string(text), AnswererPresent: true})
	l.until(func() bool { return r.final }, -1)
	a, err := toldAs[*messages.AskResponse](r.answer)
	switch {
	case err != nil:
		return "", false, err
	case a.GetAnswered() == nil && a.GetPending() == nil:
		return "", false, fmt.Errorf("simulation: %s was told %s, which is no result", attempt, brief(a))
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
// The error is the refusal, a *messages.Error, or ErrNotTold; the token is then
// the one that it has.
func (l *Loop) Collect(after string) (replies []Reply, token string, err error) {
	r, err := toldAs[*messages.CollectRepliesResponse](l.do(&messages.CollectRepliesRequest{Session: l.p.session, Root: l.p.root, After: after}))
	if err != nil {
		return nil, after, err
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
	return replies, r.GetToken(), nil
}

// Answer answers a call as a person does, by its one option or in own words, and
// waits for the call to be asked. No error: the answer was taken, in time or as a
// late one. Else it is the refusal, a *messages.Error, such as SETTLED with its
// winner, or ErrNotTold.
func (l *Loop) Answer(call, text string) error {
	id := l.p.w.newID("sub-")
	for {
		_, err := toldAs[*messages.SubmitResponse](l.do(&messages.SubmitRequest{Session: l.p.session, CallId: call, SubmissionId: id, By: l.p.name, Door: "simulation",
			Answers: []*messages.Answer{{Id: "q", Selected: []string{text}}}}))
		if code := messages.CodeOf(err); code != messages.NotAnswerable && code != messages.NotFound {
			return err
		}
		l.sleep(200) // not asked yet
	}
}
