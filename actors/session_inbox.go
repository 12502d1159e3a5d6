package actors

import (
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

func (s *Session) queued() int { return len(s.fold.lists.NextTurn) + len(s.fold.lists.NextStep) }

// steer queues what a person or a program says (L-067). The message id makes a
// repeat harmless, also after the message was admitted.
func (s *Session) steer(now Now, from Addr, req *messages.SteerRequest) Effects {
	if err := messages.CheckID("message_id", req.GetMessageId()); err != nil {
		return s.refuse(from, err)
	}
	if r, known := s.past.submission(req.GetMessageId()); known {
		if r.MessageID == req.GetMessageId() {
			return s.reply(from, &messages.SteerResponse{MessageId: req.GetMessageId()})
		}
		return s.refuse(from, messages.Refuse(messages.BadRequest, "message_id %q was used as a submission id", req.GetMessageId()))
	}
	target := sessionlog.NextStep
	switch req.GetList() {
	case "", string(sessionlog.NextStep):
	case string(sessionlog.NextTurn):
		target = sessionlog.NextTurn
	default:
		return s.refuse(from, messages.Refuse(messages.BadRequest, "list is %q; it must be next-step or next-turn", req.GetList()))
	}
	if s.queued() >= s.rules.QueueMax {
		return s.refuse(from, messages.Refuse(messages.TooLarge, "the inbox holds %d messages, the limit is %d", s.queued(), s.rules.QueueMax))
	}
	splice, err := s.fold.lists.Append(target, sessionlog.UserMessage(req.GetMessageId(), req.GetText(), req.GetBy()))
	if err != nil { // L-063
		return s.refuse(from, messages.Refuse(messages.MessagePending, "message %q is already pending", req.GetMessageId()))
	}
	if reservedID(req.GetMessageId()) { // an agent drops what comes under an id that it has seen
		return s.refuse(from, messages.Refuse(messages.BadRequest,
			"message_id %q begins like the ids that Parley gives to replies and results; choose another", req.GetMessageId()))
	}
	b := s.batch(now)
	b.add(splice.Event(), sessionlog.SettledRecord{SubmissionID: req.GetMessageId(), By: req.GetBy(),
		Outcome: outcomeSteered, MessageID: req.GetMessageId()}.Event())
	fx := b.effects()
	s.tellInbox(&fx, Inserted{[]string{req.GetMessageId()}})
	fx.Replies = []Reply{{from, &messages.SteerResponse{MessageId: req.GetMessageId()}}}
	return fx
}

// claimMessages asks the inbox part to mark messages for the open turn. They
// stay in their lists: a claim is volatile (promise 4).
func (s *Session) claimMessages(from Addr, req *messages.ClaimMessagesRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	if p := s.fold.progress; !p.TurnOpen() || req.GetTurn() != p.Turn() {
		return s.refuse(from, s.turnClosed(req.GetTurn()))
	}
	var fx Effects
	s.toInbox(&fx, ClaimMarks{From: from, Turn: req.GetTurn(), NextStep: ids(s.fold.lists.NextStep),
		NextTurn: ids(s.fold.lists.NextTurn), IDs: req.GetMessageIds(), FirstStep: req.GetFirstStep()})
	return fx
}

// marked hands out what the inbox part marked, as far as it is still there.
func (s *Session) marked(m Marked) Effects {
	out := &messages.ClaimMessagesResponse{}
	for _, id := range m.IDs {
		if target, msg, ok := s.fold.lists.Find(id); ok {
			out.Messages = append(out.Messages, inboxMessages([]sessionlog.Message{msg}, target)...)
		}
	}
	return s.reply(m.From, out)
}

// admitMessages lets the inbox part compare marks first, if there are any.
func (s *Session) admitMessages(now Now, from Addr, req *messages.AdmitMessagesRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	if s.inbox != nil {
		var fx Effects
		s.toInbox(&fx, AdmitMarks{from, req})
		return fx
	}
	return s.admit(now, from, req)
}

// admit moves messages out of their lists and into the history, in one append,
// all or none. A repeat within the turn gets the same messages again.
func (s *Session) admit(now Now, from Addr, req *messages.AdmitMessagesRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	want := req.GetMessageIds()
	if len(want) == 0 {
		if req.GetTurn() != 0 {
			return s.refuse(from, messages.Refuse(messages.BadRequest, "message_ids is empty; name what was claimed for turn %d", req.GetTurn()))
		}
		want = append(ids(s.fold.lists.NextStep), ids(s.fold.lists.NextTurn)...)
		if len(want) == 0 {
			return s.reply(from, &messages.AdmitMessagesResponse{})
		}
	}
	if again := s.admittedAgain(want); again != nil {
		return s.reply(from, &messages.AdmitMessagesResponse{Messages: inboxMessages(again, "")})
	}
	for i, id := range want {
		if _, _, ok := s.fold.lists.Find(id); !ok || slices.Contains(want[:i], id) {
			return s.refuse(from, messages.Refuse(messages.MessageGone, "message %q is not in the inbox of session %q", id, s.id))
		}
	}
	own := req.GetTurn() == 0 && !s.fold.progress.TurnOpen()
	if !own {
		if err := s.checkStep(req.GetTurn(), 0); err != nil {
			return s.refuse(from, err)
		}
	}
	b := s.batch(now)
	taken := s.addAdmission(b, want, own)
	fx := b.effects()
	s.tellInbox(&fx, Admitted{want})
	fx.Replies = append(fx.Replies, Reply{from, &messages.AdmitMessagesResponse{Messages: inboxMessages(taken, "")}})
	return fx
}

// admittedAgain returns the messages of a repeated request: all of them were
// admitted in the latest turn.
func (s *Session) admittedAgain(want []string) []sessionlog.Message {
	var out []sessionlog.Message
	for _, id := range want {
		i := slices.IndexFunc(s.admitted, func(a admission) bool { return a.msg.ID == id })
		if i < 0 {
			return nil
		}
		out = append(out, s.admitted[i].msg)
	}
	return out
}

// withdrawMessage discards a queued message, by name and on record. A reply
// that is taken back reopens its question (Q-109, promise 2).
func (s *Session) withdrawMessage(now Now, from Addr, req *messages.WithdrawMessageRequest) Effects {
	splice, msg, ok := s.fold.lists.Remove(req.GetMessageId())
	if !ok {
		for _, r := range s.past.of(req.GetMessageId()) {
			if r.Outcome == OutcomeReplyWithdrawn {
				return s.reply(from, &messages.WithdrawMessageResponse{ReopenedCallId: r.CallID})
			}
		}
		return s.refuse(from, messages.Refuse(messages.NotFound,
			"no message %q waits in the inbox of session %q; it was never there, or the agent has admitted it", req.GetMessageId(), s.id))
	}
	rec := sessionlog.SettledRecord{CallID: msg.ReplyTo, By: req.GetBy(), Outcome: OutcomeReplyWithdrawn,
		MessageID: msg.ID, Reason: req.GetReason()}
	for _, r := range s.past.of(msg.ID) { // its author is told when the submission is repeated
		if r.SubmissionID != "" {
			rec.SubmissionID = r.SubmissionID
		}
	}
	b := s.batch(now)
	b.add(splice.Event(), rec.Event())
	fx := b.effects()
	s.tellInbox(&fx, Admitted{[]string{msg.ID}})
	fx.Replies = append(fx.Replies, Reply{from, &messages.WithdrawMessageResponse{ReopenedCallId: msg.ReplyTo}})
	return fx
}

// awaitInbox rings once an unmarked message waits.
func (s *Session) awaitInbox(now Now, from Addr, req *messages.AwaitInboxRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	waiting := append(ids(s.fold.lists.NextStep), ids(s.fold.lists.NextTurn)...)
	if req.GetNow() {
		return s.reply(from, &messages.AwaitInboxResponse{Queued: int32(min(len(waiting), 1<<30)), MessageIds: waiting,
			Undelivered: int32(min(s.deliveries.undelivered(now), 1<<30))})
	}
	var fx Effects
	s.toInbox(&fx, Await{From: from, IDs: waiting})
	return fx
}

// reservedID reports whether an id could be one of ours.
func reservedID(id string) bool {
	return slices.ContainsFunc([]string{"reply-", "tool-result-", "assistant-"}, func(p string) bool { return strings.HasPrefix(id, p) })
}

func ids(list []sessionlog.Message) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = m.ID
	}
	return out
}
