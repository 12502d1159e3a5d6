package parley

import (
	"context"
	"time"

	"github.com/parleyrun/parley/messages"
)

// Reply is one thing the model is to read, as CollectReplies lists it.
type Reply struct {
	// MessageID is its id in the log. It never changes: a reply that is seen
	// twice is acted on once.
	MessageID string
	// Kind is "reply", a late answer; "result", an answer that was given in time
	// to a request that may have been lost; or "message", what somebody else said.
	Kind string
	// CallID is the call it answers; empty of a message.
	CallID string
	// Text is what the model reads: of replies and results, the questions with
	// their answers.
	Text string
	// AnsweredAt is when it was accepted, on the host's wall clock.
	AnsweredAt time.Time
	// Delivery is how often it has been listed, this time included. Redelivered:
	// the model may have seen it before.
	Delivery    int
	Redelivered bool
}

// Replies is one list of CollectReplies.
type Replies struct {
	// List has the new ones first, then those listed before and not acknowledged.
	List []Reply
	// Token acknowledges this list, when the next one is asked for with it.
	Token string
	// More counts older unacknowledged ones that had no room.
	More int
}

// CollectReplies is Collect for an agent whose process may end between the
// admission and its model: everything that was listed is listed again, under
// the same id, until a later call names the token of a list that had it. after
// is that token; empty acknowledges nothing.
func (a *Agent) CollectReplies(ctx context.Context, after string) (Replies, error) {
	r, err := do[*messages.CollectRepliesResponse](ctx, a.node, &messages.CollectRepliesRequest{
		Session: a.session, Root: a.root, After: after})
	if err != nil {
		return Replies{}, err
	}
	out := Replies{Token: r.GetToken(), More: int(r.GetMore())}
	for _, m := range r.GetReplies() {
		out.List = append(out.List, Reply{MessageID: m.GetMessageId(), Kind: m.GetKind(), CallID: m.GetCallId(), Text: m.GetText(),
			AnsweredAt: time.UnixMilli(m.GetAnsweredMs()), Delivery: int(m.GetDelivery()), Redelivered: m.GetRedelivered()})
	}
	return out, nil
}

// EndForeground ends the foreground of a call of which only the attempt is
// known: its result is recorded as pending now, and the question goes on. It
// returns how the call ended; an answer that came first has won.
func (a *Agent) EndForeground(ctx context.Context, callID, attempt, reason string) (Settlement, error) {
	r, err := do[*messages.EndForegroundResponse](ctx, a.node, &messages.EndForegroundRequest{
		Session: a.session, CallId: callID, Attempt: attempt, Reason: reason})
	return settlementOf(r.GetSettlement()), err
}
