package simulation

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// receiptInvariants are about results that may have been lost on their way: who
// says that one has arrived, and who asks the same again.
var receiptInvariants = []Invariant{
	{"read by somebody", "a result is taken for read only if somebody has acknowledged its call", []string{"P2", "F6"}, readBySomebody},
	{"a receipt is taken", "who acknowledges a call whose result is owed is told that it was", []string{"P2", "F6"}, aReceiptIsTaken},
	{"the living are not joined", "who asks what a living request has asked gets a question of its own", []string{"P5"}, theLivingAreNotJoined},
}

func readBySomebody(e *Evidence) {
	from := map[string]int{} // the step at which a call was first acknowledged
	for s, cmd := range said[*messages.AcknowledgeRequest](e) {
		if key := cmd.GetSession() + " " + cmd.GetCallId(); from[key] == 0 {
			from[key] = s.Step
		}
	}
	for _, a := range e.accounts {
		for _, h := range a.handed {
			if at, stamp := from[a.name+" "+h.CallID], a.stamp(h.seq); h.CallID != "" && (at == 0 || stamp.Step > 0 && stamp.Step < at) {
				e.at(a, h.seq).fail("session %s takes the result of %s for read at event %d, and nobody has said so by then", a.name, h.CallID, h.seq)
			}
		}
	}
}

// owed: the result of a call was there when the log ended before seq, and neither
// acknowledged nor listed.
func (a *account) owed(l *life, seq int64) bool {
	r, has := l.result()
	return has && r.seq < seq && l.rec.Receipt && !r.IsError && !a.arrived(l, seq) &&
		(r.batch || r.pending && l.stateBefore(seq) == continued)
}

func aReceiptIsTaken(e *Evidence) {
	for t := range told[*messages.AcknowledgeRequest, *messages.AcknowledgeResponse](e) {
		call := t.cmd.GetCallId()
		if t.msg.GetKnown() || e.saidElse(t.by, call) {
			continue // or an earlier one of the same was taken
		}
		a := e.account(t.cmd.GetSession())
		ends := a.ends(t.by.Step, t.by.Answer.Sent)
		// What the log says of it was said by this one, which is judged by what was before.
		if i := slices.IndexFunc(a.handed, func(h handedAt) bool { return h.CallID == call }); i >= 0 {
			ends = slices.DeleteFunc(ends, func(seq int64) bool { return seq > a.handed[i].seq })
		}
		owed := func(seq int64) bool {
			l, _ := a.at(call, seq)
			return l != nil && a.owed(l, seq)
		}
		if len(ends) > 0 && !slices.ContainsFunc(ends, func(seq int64) bool { return !owed(seq) }) {
			e.heard(t.by).fail("%s acknowledged %s at %d and was told that nothing of it was owed; at the log's ends between, %v, its result was. %s", t.by.Party, call, t.by.At, ends, a.story(call))
		}
	}
}

// unread: at some time between saying and hearing, the answer to an equal
// question was owed, and not to a living request.
func (e *Evidence) unread(s *Said, cmd *messages.AskRequest) bool {
	a := e.account(cmd.GetSession())
	questions, _, _ := sessionlog.ParseArguments(cmd.GetArguments())
	for _, seq := range a.ends(s.Step, s.Answer.Sent) {
		for _, l := range a.lives {
			r, _ := l.result()
			if l.asks == string(questions) && r.batch && !slices.Contains(cmd.GetLive(), l.attempt) && a.owed(l, seq) {
				return true
			}
		}
	}
	return false
}

func theLivingAreNotJoined(e *Evidence) {
	for s, cmd := range said[*messages.AskRequest](e) {
		heard := s.Waiting
		if s.Answer != nil {
			heard = append(slices.Clip(heard), *s.Answer)
		}
		for _, h := range heard {
			if m, ok := h.Msg.(*messages.AskResponse); ok && slices.Contains(cmd.GetLive(), m.GetJoined()) {
				e.heard(s).fail("%s asked %s, said that %v were alive, and was joined to %s. %s", s.Party, cmd.GetAttempt(), cmd.GetLive(), m.GetJoined(), e.account(cmd.GetSession()).story(m.GetCallId()))
			}
		}
	}
}
