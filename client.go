package parley

import (
	"context"
	"errors"
	"iter"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
)

// doorGo is what a submission through this package says it came through.
const doorGo = "go"

// Row is one question call as people see it.
type Row = messages.QuestionRow

// Settlement tells how a question call, or one submission to it, ended.
type Settlement struct {
	// Outcome is answered, queued, pending, withdrawn, reply_withdrawn,
	// aborted, cancelled, no_provider, failed, root_changed or disposed.
	Outcome string
	// By and Door are who acted, and the way in.
	By, Door string
	// SubmissionID is the submission that won.
	SubmissionID string
	// MessageID is the queued reply.
	MessageID string
	Reason    string
}

func settlementOf(s *messages.Settlement) Settlement {
	return Settlement{Outcome: s.GetOutcome(), By: s.GetBy(), Door: s.GetDoor(), SubmissionID: s.GetSubmissionId(),
		MessageID: s.GetMessageId(), Reason: s.GetReason()}
}

// WinnerOf returns who won, when an error says that a question was settled first.
func WinnerOf(err error) (Settlement, bool) {
	var e *messages.Error
	if !errors.As(err, &e) || e.Winner == nil {
		return Settlement{}, false
	}
	return settlementOf(e.Winner), true
}

// Filter narrows a list of questions.
type Filter struct {
	// Session: only its questions. Empty: everybody's.
	Session string
	// Settled ones too; needs Session.
	Settled bool
	// Limit is the page's size; 0 is the largest.
	Limit int
	// After is the Next of the page before.
	After string
}

// Page is one page of questions.
type Page struct {
	Questions []*Row
	// Cursor is where a watch goes on without gap or repeat.
	Cursor int64
	// Next is empty on the last page.
	Next string
}

// Questions lists question calls.
func (n *Node) Questions(ctx context.Context, f Filter) (Page, error) {
	req := &messages.ListQuestionsRequest{Session: f.Session, Settled: f.Settled, Limit: pageSize(f.Limit), After: f.After}
	if err := gateway.Check(req); err != nil {
		return Page{}, err
	}
	r, err := n.views.Questions(ctx, req)
	return Page{r.GetQuestions(), r.GetCursor(), r.GetNext()}, err
}

// Question returns one call, active or settled. NOT_FOUND: nobody asked it.
func (n *Node) Question(ctx context.Context, session, callID string) (*Row, error) {
	if err := gateway.Check(&messages.GetQuestionRequest{Session: session, CallId: callID}); err != nil {
		return nil, err
	}
	return n.views.Question(ctx, session, callID)
}

// Session tells of one session, its agent included. NOT_FOUND: there is none.
func (n *Node) Session(ctx context.Context, session string) (*messages.SessionRow, error) {
	if err := gateway.Check(&messages.GetSessionRequest{Session: session}); err != nil {
		return nil, err
	}
	return n.views.Session(ctx, session)
}

// Sessions lists sessions by id, after the given one. limit 0 is the largest
// page; next is empty on the last one.
func (n *Node) Sessions(ctx context.Context, after string, limit int) (rows []*messages.SessionRow, next string, err error) {
	req := &messages.ListSessionsRequest{After: after, Limit: pageSize(limit)}
	if err := gateway.Check(req); err != nil {
		return nil, "", err
	}
	r, err := n.views.Sessions(ctx, req)
	return r.GetSessions(), r.GetNext(), err
}

// Log returns records of a session's log as they stand there, one JSON text
// each, from a sequence number on. next is -1 when there are no more now.
func (n *Node) Log(ctx context.Context, session string, from int64, limit int) (header string, events []string, next int64, err error) {
	req := &messages.ReadLogRequest{Session: session, FromSeq: from, Limit: pageSize(limit)}
	if err := gateway.Check(req); err != nil {
		return "", nil, 0, err
	}
	r, err := n.views.Log(ctx, req)
	return r.GetHeader(), r.GetEvents(), r.GetNextSeq(), err
}

// pageSize keeps what is out of range out of range.
func pageSize(limit int) int32 { return int32(min(max(limit, -1), messages.PageMax+1)) }

// Change is one frame of a watch.
type Change struct {
	// Question is the call that changed; nil on the frame that ends the start.
	Question *Row
	// Cursor is where to resume; 0 within the starting list.
	Cursor int64
	// Live: the starting list is complete.
	Live bool
}

// WatchOptions say what to watch.
type WatchOptions struct {
	// Session: only its questions. Empty: everybody's.
	Session string
	// Cursor is where to resume; 0 starts with every active question.
	Cursor int64
	// Client is a name that a client gives to all it holds, so that passing a
	// question on counts the others only.
	Client string
}

// Watch yields the active questions and then every change, in the order in
// which they were recorded, until ctx ends, the node closes, or the loop is
// left. Its last element is the error that ended it. Whoever watches counts as
// somebody who can answer.
func (n *Node) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		req := &messages.WatchQuestionsRequest{Session: opts.Session, Cursor: opts.Cursor, Client: opts.Client}
		if err := gateway.Check(req); err != nil {
			yield(Change{}, err)
			return
		}
		err := n.watch(ctx, req, true, func(r *messages.WatchQuestionsResponse) error {
			if r.GetQuestion() == nil && !r.GetLive() {
				return nil // a heartbeat; calls in a program do not break
			}
			if !yield(Change{r.GetQuestion(), r.GetCursor(), r.GetLive()}, nil) {
				return errLeft
			}
			return nil
		})
		if !errors.Is(err, errLeft) {
			yield(Change{}, err)
		}
	}
}

var errLeft = errors.New("the loop was left")

// watch follows the views; one who may answer counts as an answerer meanwhile.
func (n *Node) watch(ctx context.Context, req *messages.WatchQuestionsRequest, mayAnswer bool, send func(*messages.WatchQuestionsResponse) error) error {
	if mayAnswer {
		defer n.presence.take(seat{session: req.GetSession(), client: req.GetClient()})()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.closed, cancel)()
	err := n.views.Watch(ctx, req, send)
	if n.closing.Load() && err != nil {
		return messages.Refuse(messages.Unavailable, "the node is stopping")
	}
	return err
}

// Submission is one answer to a call.
type Submission struct {
	Session, CallID string
	Answers         []Answer
	// ID is the key under which it may be repeated: a repeat of an accepted one
	// gets the first outcome again, also after a restart. Empty draws one.
	ID string
	// By is who answers, in words for people.
	By string
	// CallSeq is the row's CallSeq that was answered: should the same call have been
	// asked again, the answer is refused with NOT_ANSWERABLE. 0 answers whatever the call asks now.
	CallSeq int64
	// RejectLate refuses an answer that loses to the deadline, with SETTLED.
	// Otherwise it becomes a late reply.
	RejectLate bool
}

// Submit answers a call, in time or late. It returns once the answer is
// recorded: with Outcome "answered" it is the tool result, with "queued" a
// reply in the agent's inbox. The loser of a race gets SETTLED or REPLY_QUEUED
// and can learn from WinnerOf who won.
func (n *Node) Submit(ctx context.Context, s Submission) (Settlement, error) {
	req := &messages.SubmitRequest{Session: s.Session, CallId: s.CallID, SubmissionId: s.ID, Answers: toWire(s.Answers),
		By: s.By, Door: doorGo, CallSeq: s.CallSeq, OnExpired: messages.OnExpired_ON_EXPIRED_LATE}
	if req.SubmissionId == "" {
		req.SubmissionId = newID("submission")
	}
	if s.RejectLate {
		req.OnExpired = messages.OnExpired_ON_EXPIRED_REJECT
	}
	r, err := do[*messages.SubmitResponse](ctx, n, req)
	return settlementOf(r.GetSettlement()), err
}

// Answer is Submit for a call of one question: it chooses labels.
func (n *Node) Answer(ctx context.Context, session, callID, by string, answers ...Answer) (Settlement, error) {
	return n.Submit(ctx, Submission{Session: session, CallID: callID, By: by, Answers: answers})
}

// Choose makes an answer of option labels.
func Choose(question string, labels ...string) Answer { return Answer{ID: question, Selected: labels} }

// Say makes an answer of free text.
func Say(question, text string) Answer { return Answer{ID: question, Custom: &text} }

// Skip makes the answer of a person who does not want to answer.
func Skip(question string) Answer { return Answer{ID: question} }

// Dismiss closes a legacy question with ASK_CANCELLED. A timed one is
// only hidden by its client and never dismissed here.
func (n *Node) Dismiss(ctx context.Context, session, callID, by string) error {
	_, err := do[*messages.DismissResponse](ctx, n, &messages.DismissRequest{Session: session, CallId: callID, By: by})
	return err
}

// Steering is what somebody says to an agent.
type Steering struct {
	Session, Text, By string
	// ID is the key under which it may be repeated. Empty draws one.
	ID string
	// NextTurn opens a turn of its own; otherwise it joins the nearest step.
	NextTurn bool
}

// Steer queues a message for an agent and returns its id.
func (n *Node) Steer(ctx context.Context, s Steering) (string, error) {
	req := &messages.SteerRequest{Session: s.Session, MessageId: s.ID, Text: s.Text, By: s.By, List: "next-step"}
	if req.MessageId == "" {
		req.MessageId = newID("message")
	}
	if s.NextTurn {
		req.List = "next-turn"
	}
	r, err := do[*messages.SteerResponse](ctx, n, req)
	return r.GetMessageId(), err
}

// Inbox lists the messages that a session's agent has not admitted.
func (n *Node) Inbox(ctx context.Context, session string) ([]Message, error) {
	if err := gateway.Check(&messages.ListInboxRequest{Session: session}); err != nil {
		return nil, err
	}
	r, err := n.views.Inbox(ctx, session)
	return messagesOf(r.GetMessages()), err
}

// WithdrawMessage discards a queued message, by name and on record. A late
// reply that is taken back reopens its question, whose call it returns.
func (n *Node) WithdrawMessage(ctx context.Context, session, messageID, by, reason string) (reopened string, err error) {
	r, err := do[*messages.WithdrawMessageResponse](ctx, n, &messages.WithdrawMessageRequest{
		Session: session, MessageId: messageID, By: by, Reason: reason})
	return r.GetReopenedCallId(), err
}
