package actors

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// submit routes an answer: to the wait of an open call, to the inbox of a
// continued one. A submission that was accepted before gets its outcome again.
// It answers the call at callSeq; 0: the one that there is now.
func (s *Session) submit(from Addr, req *messages.SubmitRequest, callSeq int64) Effects {
	if err := checkSubmit(req); err != nil {
		return s.refuse(from, err)
	}
	if fx, known := s.submitAgain(from, req); known {
		return fx
	}
	if err := s.asksStill(req.GetCallId(), callSeq); err != nil {
		return s.refuse(from, err)
	}
	if c, open := s.fold.openWaitOf(req.GetCallId()); open {
		if err := s.checkBatch(c, req.GetAnswers()); err != nil {
			return s.refuse(from, err)
		}
		return s.toWait(from, c.id, WaitSubmit{from, req, c.seq})
	}
	active, err := s.answerable(req.GetCallId()) // Q-101, then Q-102, then Q-105
	if err == nil {
		err = CheckComplete(active.IDs, req.GetAnswers())
	}
	if err == nil && req.GetOnExpired() == messages.OnExpired_ON_EXPIRED_REJECT {
		err = s.expired(req.GetCallId())
	}
	if err != nil {
		return s.refuse(from, err)
	}
	var fx Effects
	s.toInbox(&fx, LateSubmit{from, req, s.fold.seqOf(req.GetCallId())})
	return fx
}

// answerable holds: continued, and no reply in either list.
func (s *Session) answerable(call string) (sessionlog.ActiveCall, *messages.Error) {
	active, ok := s.fold.continued(call)
	if !ok {
		return active, s.over(call)
	}
	if reply, queued := s.fold.lists.ReplyFor(call); queued {
		err := messages.Refuse(messages.ReplyQueued, "a reply is already queued for this question")
		if r, ok := s.past.winner(call); ok && r.MessageID == reply.ID {
			err.Winner = settlement(r)
		}
		return active, err
	}
	return active, nil
}

// asksStill refuses an answer to what a call asked before it was asked again
// (fault W1).
func (s *Session) asksStill(call string, callSeq int64) *messages.Error {
	if now := s.fold.seqOf(call); callSeq == 0 || now == 0 || now == callSeq {
		return nil
	}
	return messages.Refuse(messages.NotAnswerable, "call %q has been asked again; look at what it asks now first", call)
}

// expired is the refusal of an answer that did not want to be a late one: it
// lost to what made the call pending, as if it had been parked behind that.
func (s *Session) expired(call string) *messages.Error {
	w := &messages.Settlement{Outcome: outcomePending}
	if r, ok := s.past.winner(call); ok && r.Outcome == outcomeRootChanged {
		w = settlement(r)
	}
	return &messages.Error{Code: messages.Settled, Text: settledText(w), Winner: w}
}

// submitAgain answers a repeated submission from what is recorded of it, after a
// proof: its reply may have been taken back where the session went on without us.
func (s *Session) submitAgain(from Addr, req *messages.SubmitRequest) (Effects, bool) {
	r, known := s.past.submission(req.GetSubmissionId())
	if !known {
		return Effects{}, false
	}
	if err := s.usedElsewhere(req); err != nil {
		return s.refuse(from, err), true
	}
	return s.reply(from, &messages.SubmitResponse{Settlement: settlement(r), Repeated: true}), true
}

// usedElsewhere refuses a submission id that was accepted for another call.
func (s *Session) usedElsewhere(req *messages.SubmitRequest) *messages.Error {
	if r, known := s.past.submission(req.GetSubmissionId()); known && r.CallID != req.GetCallId() {
		return messages.Refuse(messages.BadRequest, "submission_id %q was used for call %q", req.GetSubmissionId(), r.CallID)
	}
	return nil
}

// checkSubmit holds the closed shape of a batch and its limits.
func checkSubmit(req *messages.SubmitRequest) *messages.Error {
	for field, id := range map2("call_id", req.GetCallId(), "submission_id", req.GetSubmissionId()) {
		if err := messages.CheckID(field, id); err != nil {
			return err
		}
	}
	if n := len(req.GetAnswers()); n > messages.AnswersMax {
		return messages.Refuse(messages.TooLarge, "answers has %d items, the limit is %d", n, messages.AnswersMax)
	}
	for i, a := range req.GetAnswers() {
		if n := len(a.GetSelected()); n > messages.SelectedMax {
			return messages.Refuse(messages.TooLarge, "answers[%d].selected has %d labels, the limit is %d", i, n, messages.SelectedMax)
		}
		if err := messages.CheckText(fmt.Sprintf("answers[%d].custom", i), a.GetCustom(), messages.TextBytesMax); err != nil {
			return err
		}
		for _, l := range a.GetSelected() {
			if err := messages.CheckText(fmt.Sprintf("answers[%d].selected", i), l, messages.TextBytesMax); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBatch holds Q-105 for an open call: in time as late, a batch names each
// question exactly once. A legacy call may repeat an id, which its
// batch then repeats as often.
func (s *Session) checkBatch(c call, answers []*messages.Answer) *messages.Error {
	if c.nested && !c.wait.legacy {
		return CheckComplete(c.wait.ids, answers)
	}
	if !c.wait.legacy {
		active, _ := s.fold.questions.Call(c.id)
		return CheckComplete(active.IDs, answers)
	}
	got := make([]string, len(answers))
	for i, a := range answers {
		got[i] = a.GetId()
	}
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(c.wait.ids))) {
		return badBatch(c.wait.ids, answers)
	}
	return nil
}

// CheckComplete holds Q-105: ids pairwise distinct, as many as the call has
// questions, covering each. Nothing else is checked.
func CheckComplete(questions []string, answers []*messages.Answer) *messages.Error {
	seen := map[string]bool{}
	for _, a := range answers {
		seen[a.GetId()] = true
	}
	complete := len(seen) == len(answers) && len(answers) == len(questions)
	for _, id := range questions {
		complete = complete && seen[id]
	}
	if complete {
		return nil
	}
	return badBatch(questions, answers)
}

func badBatch(questions []string, answers []*messages.Answer) *messages.Error {
	got := make([]string, len(answers))
	for i, a := range answers {
		got[i] = a.GetId()
	}
	return messages.Refuse(messages.BadAnswer, "the batch answers %s; the call asks %s, each exactly once",
		jsonText(got), jsonText(questions))
}

// recordOutcome makes a wait's decision durable, if the call is still open and
// the wait is still its wait (promise 1).
func (s *Session) recordOutcome(now Now, m Record) Effects {
	i := s.partIndex(m.Part.Call)
	c, open := s.fold.openWaitOf(m.Part.Call)
	if i < 0 || s.parts[i].id != m.Part || !open {
		return Effects{} // that wait has been ended; it has told its rivals so
	}
	if err := s.usedElsewhere(m.Outcome.Submit); err != nil { // meanwhile, and not when it was routed
		return Effects{Parts: []ToPart{s.tellWait(i, Refused{m.Corr, err})}}
	}
	kind, failure := Settle(c.wait.deadline != 0, m.Outcome)
	rec := sessionlog.SettledRecord{CallID: c.id, Outcome: outcomeName(kind, m.Outcome), By: m.Outcome.By, Reason: m.Outcome.Reason}
	end := End{Continued: kind == ResultPending && !c.wait.legacy}
	b := s.batch(now)
	switch kind {
	case ResultAnswers:
		sub := m.Outcome.Submit
		rec.SubmissionID, rec.By, rec.Door = sub.GetSubmissionId(), sub.GetBy(), sub.GetDoor()
		end.Response = s.answered(c.id, sessionlog.AnsweredText(AnswersJSON(sub.GetAnswers())), sub.GetAnswers())
		b.result(c, end.Response.GetResult())
	case ResultPending:
		end.Response = s.pending(c.id, sessionlog.PendingText(c.id))
		b.result(c, end.Response.GetResult())
	default:
		end.Err = &messages.Error{Code: failure.Code, Text: failure.Text, Winner: settlement(rec)}
		b.failure(c, failure.Text, string(failure.Code))
	}
	b.add(rec.Event())
	s.closeSynthetic(b, c.wait.synthetic)
	end.Settlement = settlement(rec)
	fx := b.effects()
	s.endWait(c.id, Recorded{Corr: m.Corr, End: end}, &fx)
	if p := s.fold.progress; p.TurnOpen() && !b.f.progress.TurnOpen() { // ours, and over with its last call
		s.tellInbox(&fx, TurnEnded{p.Turn()})
	}
	return fx
}

func outcomeName(kind ResultKind, out Outcome) string {
	switch {
	case kind == ResultAnswers && skipped(out.Submit.GetAnswers()):
		return outcomeSkipped
	case kind == ResultAnswers:
		return outcomeAnswered
	case kind == ResultPending:
		return outcomePending
	case out.Kind == OutcomePassed:
		return outcomeNoProvider
	case out.Kind == OutcomeCancelled:
		return OutcomeWithdrawn
	case out.Kind == OutcomeLost:
		return outcomeAborted
	case out.Kind == OutcomeFailed && out.Err.Code == messages.AskCancelled:
		return outcomeCancelled
	}
	return outcomeFailed
}

// skipped reports whether a batch holds nothing but skips: the person has seen
// the questions and decided none of them (promise 3).
func skipped(answers []*messages.Answer) bool {
	return !slices.ContainsFunc(answers, func(a *messages.Answer) bool { return len(a.GetSelected()) > 0 || a.Custom != nil })
}

// closeSynthetic ends our own step and turn with the last call in them.
func (s *Session) closeSynthetic(b *batch, synthetic bool) {
	if p := b.f.progress; synthetic && p.StepOpen() && !b.f.synthetic() {
		b.add(sessionlog.StepEnd(p.Turn(), p.Step()), sessionlog.TurnEnd(p.Turn(), sessionlog.Completed))
	}
}

// recordReply makes a late reply durable, if the question still takes one: the
// fold says continued, and there is no reply in either list.
func (s *Session) recordReply(now Now, m Record) Effects {
	req := m.Outcome.Submit
	if s.inbox == nil || s.inbox.id != m.Part {
		return Effects{}
	}
	var fx Effects
	if r, known := s.past.submission(req.GetSubmissionId()); known && r.CallID == req.GetCallId() {
		fx.Proof = true // twice in flight: as of one that was recorded when it came
		s.toInbox(&fx, Recorded{Corr: m.Corr, End: End{Settlement: settlement(r)}, Again: true})
		return fx
	}
	err := s.usedElsewhere(req)
	if err == nil {
		err = s.asksStill(req.GetCallId(), m.Outcome.Seq) // it may have been asked anew
	}
	var active sessionlog.ActiveCall
	if err == nil {
		active, err = s.answerable(req.GetCallId())
	}
	if err == nil {
		err = CheckComplete(active.IDs, req.GetAnswers())
	}
	if err != nil {
		fx.Proof = true
		s.toInbox(&fx, Refused{m.Corr, err})
		return fx
	}
	msg := sessionlog.ReplyMessage(s.rules.NewID("reply"), req.GetCallId(), active.Questions, AnswersJSON(req.GetAnswers()))
	splice, dup := s.fold.lists.Append(sessionlog.NextStep, msg)
	if dup != nil {
		panic("actors: a fresh message id is already pending: " + dup.Error())
	}
	rec := sessionlog.SettledRecord{CallID: req.GetCallId(), SubmissionID: req.GetSubmissionId(), By: req.GetBy(),
		Door: req.GetDoor(), Outcome: outcomeQueued, MessageID: msg.ID}
	b := s.batch(now)
	b.add(splice.Event(), rec.Event())
	fx = b.effects()
	s.toInbox(&fx, Recorded{Corr: m.Corr, End: End{Settlement: settlement(rec)}})
	s.tellInbox(&fx, Inserted{[]string{msg.ID}})
	return fx
}

// withdrawQuestion takes a question back: an open one through its wait, where
// an answer may still win; a continued one at once.
func (s *Session) withdrawQuestion(now Now, from Addr, req *messages.WithdrawQuestionRequest) Effects {
	if req.GetRoot() != "" { // no root: a person or an operator withdraws, by name
		if err := s.checkRoot(req.GetRoot()); err != nil {
			return s.refuse(from, err)
		}
	}
	if _, open := s.fold.openWaitOf(req.GetCallId()); open {
		return s.toWait(from, req.GetCallId(), WaitCancel{from, req})
	}
	if r, ok := s.past.winner(req.GetCallId()); ok && r.Outcome == OutcomeWithdrawn {
		return s.reply(from, &messages.WithdrawQuestionResponse{Settlement: settlement(r)})
	}
	if _, err := s.answerable(req.GetCallId()); err != nil {
		return s.refuse(from, err)
	}
	rec := sessionlog.SettledRecord{CallID: req.GetCallId(), By: req.GetBy(), Outcome: OutcomeWithdrawn, Reason: req.GetReason()}
	b := s.batch(now)
	b.add(rec.Event())
	fx := b.effects()
	fx.Replies = []Reply{{from, &messages.WithdrawQuestionResponse{Settlement: settlement(rec)}}}
	return fx
}

// dismiss closes an unkeyed question only: a keyed one is hidden by its client
// and stays answerable.
func (s *Session) dismiss(from Addr, req *messages.DismissRequest) Effects {
	if c, open := s.fold.openWaitOf(req.GetCallId()); open && !c.wait.legacy {
		fx := s.refuse(from, messages.Refuse(messages.BadRequest,
			"call %q is keyed: hide it in the client; closing it would not be an answer", req.GetCallId()))
		fx.Proof = true // it may not be open any more
		return fx
	}
	return s.toWait(from, req.GetCallId(), WaitDismiss{from, req})
}

// resultID names a result after its call and a position, so that it is unique
// in its session without any dice.
func resultID(call string, seq int64) string {
	return "tool-result-" + call + "-" + strconv.FormatInt(seq, 10)
}

// readAnswers turns a recorded batch into its wire form.
func readAnswers(raw json.RawMessage) []*messages.Answer {
	items := sessionlog.AnswerItems(raw)
	out := make([]*messages.Answer, len(items))
	for i, a := range items {
		out[i] = &messages.Answer{Id: a.ID, Selected: a.Selected, Custom: a.Custom}
	}
	return out
}

func trimError(text string) string { return strings.TrimPrefix(text, "Error: ") }

func errText(err error) string {
	if err == nil {
		return "the ids in it are others"
	}
	return err.Error()
}

// map2 walks two named values in order.
func map2(k1, v1, k2, v2 string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		_ = yield(k1, v1) && yield(k2, v2)
	}
}
