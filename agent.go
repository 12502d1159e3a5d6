package parley

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// AttachOptions are what a session is told of its agent.
type AttachOptions struct {
	// Owner is the session that owns this agent. Such a child may work, but not
	// ask (DELEGATED_CALLER): its root can.
	Owner string
	// Dir is the absolute working directory, recorded when the session is new.
	Dir string
	// Preset is the agent's preset, recorded when the session is new.
	Preset string
}

// Agent is one agent instance, as its session knows it. It is a name, holds
// nothing, and may be used from many goroutines and made again at any time.
type Agent struct {
	node    *Node
	session string
	root    string

	// Attached is what the session said when the agent attached.
	Attached Attached
}

// Attached is where a session stood when its agent attached.
type Attached struct {
	// Created: the session is new. TookOver: another agent spoke for it until
	// now; its open turn was closed, its open waits ended.
	Created, TookOver bool
	// Turn and Step are the last ones that ever began; 0 is none.
	Turn, Step         int64
	TurnOpen, StepOpen bool
	// Queued counts the messages that wait for the agent.
	Queued int
}

// Attach makes root the one agent instance that may speak for the session,
// which is created when it does not exist. The recorded root again is a no-op;
// another one takes over, and the old one's requests are refused from then on
// with CALLER_NOT_LIVE.
func (n *Node) Attach(ctx context.Context, session, root string, opts AttachOptions) (*Agent, error) {
	r, err := do[*messages.AttachResponse](ctx, n, &messages.AttachRequest{
		Session: session, Root: root, Owner: opts.Owner, Cwd: opts.Dir, AgentPreset: opts.Preset})
	if err != nil {
		return nil, err
	}
	return &Agent{node: n, session: session, root: root, Attached: Attached{
		Created: r.GetCreated(), TookOver: r.GetTookOver(), Turn: r.GetTurn(), Step: r.GetStep(),
		TurnOpen: r.GetTurnOpen(), StepOpen: r.GetStepOpen(), Queued: int(r.GetQueued()),
	}}, nil
}

// Session returns the session's id.
func (a *Agent) Session() string { return a.session }

// BeginTurn opens a turn and returns its number. turn must be the next one; 0
// means whichever is next, and then a repeat after a crash may be refused with
// TURN_CLOSED.
func (a *Agent) BeginTurn(ctx context.Context, turn int64) (int64, error) {
	r, err := do[*messages.BeginTurnResponse](ctx, a.node, &messages.BeginTurnRequest{Session: a.session, Root: a.root, Turn: turn})
	return r.GetTurn(), err
}

// BeginStep opens a step and admits, in the same append, the messages that
// wait for it: all of next-step and, in the first step of a turn, one of
// next-turn. Show them to the model only after it has returned.
func (a *Agent) BeginStep(ctx context.Context, turn, step int64) ([]Message, error) {
	r, err := do[*messages.BeginStepResponse](ctx, a.node, &messages.BeginStepRequest{Session: a.session, Root: a.root, Turn: turn, Step: step})
	return messagesOf(r.GetAdmitted()), err
}

// EndStep closes a step. CALLS_OPEN: a question of the step still waits.
func (a *Agent) EndStep(ctx context.Context, turn, step int64) error {
	_, err := do[*messages.EndStepResponse](ctx, a.node, &messages.EndStepRequest{Session: a.session, Root: a.root, Turn: turn, Step: step})
	return err
}

// EndTurn closes a turn. Messages that were claimed for it and not admitted
// are queued again.
func (a *Agent) EndTurn(ctx context.Context, turn int64) error {
	_, err := do[*messages.EndTurnResponse](ctx, a.node, &messages.EndTurnRequest{Session: a.session, Root: a.root, Turn: turn})
	return err
}

// AbortTurn closes a turn that was cancelled: its open questions end with
// ASK_ABORTED. Replies that wait in the inbox are kept.
func (a *Agent) AbortTurn(ctx context.Context, turn int64, reason string) error {
	_, err := do[*messages.EndTurnResponse](ctx, a.node, &messages.EndTurnRequest{
		Session: a.session, Root: a.root, Turn: turn, Aborted: true, Reason: reason})
	return err
}

// Ask asks and waits for the result: Answered, or Pending once the foreground
// wait is over. It repeats itself, under the same attempt, while the node is in
// trouble. When ctx ends it only stops listening: the question stays open, and
// the same Attempt listens again.
//
// Refusals are *messages.Error: ASK_ABORTED when the question was taken back,
// INVALID_ARGS, DUPLICATE_WAIT, NO_PROVIDER of a legacy ask, and so on.
func (a *Agent) Ask(ctx context.Context, ask Ask) (Result, error) {
	type outcome struct {
		result Result
		err    error
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done := make(chan outcome, 1)
	cancel := a.AskAsync(ask, func(r Result, err error) { done <- outcome{r, err} })
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
}

// AskAsync is Ask without a goroutine: done is called once, when there is a
// result. It must not block, and may run before AskAsync has returned. cancel
// stops listening and settles nothing; a result that is being handed over as it
// is called may still come.
func (a *Agent) AskAsync(ask Ask, done func(Result, error)) (cancel func()) {
	req, err := ask.request(a.session, a.root)
	if err == nil {
		err = gateway.Check(req)
	}
	if err == nil {
		err = writeArguments(req)
	}
	if err != nil {
		done(nil, err)
		return func() {}
	}
	l := &listener{agent: a, req: req, onWaiting: ask.OnWaiting, done: done, pause: retryFirst}
	l.send()
	return l.cancel
}

// listener is one ask that waits for its result: a value in a map of the door,
// no goroutine. Once the question is durable its text is let go: a hundred
// thousand may wait, and the attempt is enough to listen again.
type listener struct {
	agent     *Agent
	req       *messages.AskRequest // nil once durable
	attempt   string
	callID    string
	onWaiting func(Waiting)
	done      func(Result, error)

	mu    sync.Mutex
	over  bool
	tries uint64 // tells the try that counts from those before it
	stop  func() // ends the current try
	pause time.Duration
}

// send asks, or asks again.
func (l *listener) send() {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.tries++
	try := l.tries
	req := l.req
	if req != nil {
		req = proto.Clone(req).(*messages.AskRequest) // an earlier try may still lie in a mailbox
	} else {
		req = &messages.AskRequest{Session: l.agent.session, Root: l.agent.root, Attempt: l.attempt, CallId: l.callID, Resume: true}
	}
	req.AnswererPresent = l.agent.node.presence.anybody(l.agent.session)
	l.mu.Unlock()
	stop := l.agent.node.call(req, func(reply messages.Reply, err error) { l.take(try, reply, err) })
	l.mu.Lock()
	over := l.over
	if try == l.tries && !over {
		l.stop = stop
	}
	l.mu.Unlock()
	if over { // cancelled meanwhile; after a result there is nothing to stop
		stop()
	}
}

// take hears one answer to a try.
func (l *listener) take(try uint64, reply messages.Reply, err error) {
	r, _ := reply.(*messages.AskResponse)
	l.mu.Lock()
	if l.over || try != l.tries {
		l.mu.Unlock()
		return
	}
	if err == nil && r.GetWaiting() != nil {
		l.pause = retryFirst
		if l.req != nil {
			l.attempt, l.callID, l.req = l.req.GetAttempt(), r.GetCallId(), nil
		}
		l.mu.Unlock()
		if l.onWaiting != nil {
			l.onWaiting(waitingOf(r))
		}
		return
	}
	if err != nil && l.agent.node.again(err) {
		pause := l.pause
		l.pause = min(2*pause, retryMax)
		t := time.AfterFunc(pause, l.send)
		l.tries++ // what is still under way of this try is stale
		l.stop = func() { t.Stop() }
		l.mu.Unlock()
		return
	}
	l.over = true
	l.mu.Unlock()
	if err != nil {
		l.done(nil, err)
		return
	}
	l.done(resultOf(r))
}

func (l *listener) cancel() {
	l.mu.Lock()
	over, stop := l.over, l.stop
	l.over = true
	l.mu.Unlock()
	if !over && stop != nil {
		stop()
	}
}

// Withdraw takes a question back, open or continued. It returns how the call
// ended: an answer that was accepted first has won.
func (a *Agent) Withdraw(ctx context.Context, callID, reason string) (Settlement, error) {
	r, err := do[*messages.WithdrawQuestionResponse](ctx, a.node, &messages.WithdrawQuestionRequest{
		Session: a.session, Root: a.root, CallId: callID, By: a.root, Reason: reason})
	return settlementOf(r.GetSettlement()), err
}

// Message is one message of the inbox: a late reply, or what somebody said.
type Message struct {
	ID string
	// List is next-step or next-turn; empty once admitted.
	List string
	// ReplyTo is the call that a late reply answers; empty for other messages.
	ReplyTo string
	// Text is the first text block; what the model is to read is all of JSON.
	Text string
	// JSON is the whole message, byte for byte as the log has it.
	JSON string
}

// Answers are the answers of a late reply.
func (m Message) Answers() ([]Answer, bool) {
	if m.ReplyTo == "" {
		return nil, false
	}
	raw, ok := sessionlog.ReadBatch(m.Text)
	if !ok {
		return nil, false
	}
	var list []struct {
		ID       string
		Selected []string
		Custom   *string
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	out := make([]Answer, 0, len(list))
	for _, a := range list {
		out = append(out, Answer{ID: a.ID, Selected: a.Selected, Custom: a.Custom})
	}
	return out, true
}

func messagesOf(in []*messages.InboxMessage) []Message {
	out := make([]Message, 0, len(in))
	for _, m := range in {
		out = append(out, Message{ID: m.GetId(), List: m.GetList(), ReplyTo: m.GetReplyTo(), Text: m.GetText(), JSON: m.GetJson()})
	}
	return out
}

// AwaitMessages returns once a message waits that nobody has claimed, with how
// many there are.
func (a *Agent) AwaitMessages(ctx context.Context) (int, error) {
	r, err := do[*messages.AwaitInboxResponse](ctx, a.node, &messages.AwaitInboxRequest{Session: a.session, Root: a.root})
	return int(r.GetQueued()), err
}

// ClaimMessages marks messages for a turn: those named or, without ids, every
// free one of next-step and, in a turn's first step, one of next-turn. They stay in
// their lists until they are admitted; the end of the turn frees them.
func (a *Agent) ClaimMessages(ctx context.Context, turn int64, firstStep bool, ids ...string) ([]Message, error) {
	r, err := do[*messages.ClaimMessagesResponse](ctx, a.node, &messages.ClaimMessagesRequest{
		Session: a.session, Root: a.root, Turn: turn, FirstStep: firstStep, MessageIds: ids})
	return messagesOf(r.GetMessages()), err
}

// Admit takes messages out of the inbox and into the history, all or none:
// with MESSAGE_GONE none was taken, and the model must see none of them. Show
// them only after Admit has returned.
func (a *Agent) Admit(ctx context.Context, turn int64, ids ...string) ([]Message, error) {
	r, err := do[*messages.AdmitMessagesResponse](ctx, a.node, &messages.AdmitMessagesRequest{
		Session: a.session, Root: a.root, Turn: turn, MessageIds: ids})
	return messagesOf(r.GetMessages()), err
}

// Collect admits everything that waits, for an agent without turns of its own:
// in a turn and step that open and close with it.
func (a *Agent) Collect(ctx context.Context) ([]Message, error) { return a.Admit(ctx, 0) }
