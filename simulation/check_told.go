package simulation

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// toldInvariants compare what parties said and were told with the journal.
var toldInvariants = []Invariant{
	{"told as recorded", "whoever asks is told what the log has for its attempt: its deadline, and its one result", []string{"P1", "P7", "Q-071"}, toldAsRecorded},
	{"told the same", "who asks again, or hears of it from elsewhere, is told the same", []string{"P1", "P2", "Q-157"}, toldTheSame},
	{"accepted is kept", "an acknowledged answer is in the log once, for the call and with the words it was given with", []string{"P2", "Q-104", "Q-105"}, acceptedIsKept},
	{"refused leaves no trace", "a refused answer or question is nowhere in the log", []string{"P2"}, refusedLeavesNoTrace},
	{"answers are somebody's", "what the log accepted was said by the party that it names", []string{"P2", "P3"}, answersAreSomebodys},
	{"refusals are right", "a refusal was right at some time between saying and hearing", []string{"Q-043", "Q-044", "Q-063", "Q-101", "Q-102", "Q-103", "Q-105"}, refusalsAreRight},
	{"losers are told who won", "SETTLED names a winner, and the log has it", []string{"P1", "Q-071", "Q-088"}, losersAreTold},
	{"durable before told", "nothing is told before it is in the journal, and nothing else is told", []string{"P1", "P2", "P4"}, durableBeforeTold},
	{"seen once", "an agent is shown a message as new once, whole, and after it was admitted", []string{"P2", "P4", "W2"}, seenOnce},
	{"no twin", "an equal question asked again after its request was lost makes no second one, and meets no unread answer", []string{"P5", "P2"}, noTwin},
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// attached is the life that an answer to an ask is about: the ask's own, or the
// one that it joined. Its own may be younger than the answer: an attempt that
// joined another leaves nothing behind, and may ask for itself later.
func (e *Evidence) attached(cmd *messages.AskRequest, h *Heard) *life {
	a, m := e.account(cmd.GetSession()), h.Msg.(*messages.AskResponse)
	attempt := cmp.Or(m.GetJoined(), cmd.GetAttempt())
	own := a.lifeOf(attempt, m.GetCallId())
	if !cmd.GetJoin() || own != nil && a.stamp(own.wait).Step < h.Sent {
		return own
	}
	questions, _, _ := sessionlog.ParseArguments(cmd.GetArguments())
	for _, l := range a.lives { // it joined, maybe one of its own call id; a door that repeats it, or its result, does not say so again
		r, ended := l.result()
		if l.call != m.GetCallId() || l.asks != string(questions) || !l.rec.Receipt {
			continue
		}
		if w := m.GetWaiting(); w != nil && w.GetDeadlineMs() == due(l.rec) || w == nil && ended && r.Text == m.GetResult() {
			return l
		}
	}
	return own
}

// asked are the lives that an ask can have been attached to: its own, and those
// that it joined, or may have joined without hearing of it.
func (e *Evidence) asked(s *Said, cmd *messages.AskRequest) []*life {
	var out []*life
	if questions, _, ok := sessionlog.ParseArguments(cmd.GetArguments()); ok && cmd.GetJoin() {
		for _, l := range e.account(cmd.GetSession()).lives {
			if l.asks == string(questions) && l.rec.Receipt {
				out = append(out, l)
			}
		}
	}
	if l := e.account(cmd.GetSession()).lifeOf(cmd.GetAttempt(), cmd.GetCallId()); l != nil {
		out = append(out, l)
	}
	for _, h := range s.Waiting {
		if l := e.attached(cmd, &h); l != nil && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

func toldAsRecorded(e *Evidence) {
	for s, cmd := range said[*messages.AskRequest](e) {
		for _, w := range s.Waiting {
			got := w.Msg.(*messages.AskResponse)
			switch l := e.attached(cmd, &w); {
			case l == nil:
				e.heard(s).fail("%s was told that %s waits, the log has no such attempt. %s", s.Party, cmd.GetAttempt(), e.account(cmd.GetSession()).story(cmd.GetCallId()))
			case due(l.rec) != got.GetWaiting().GetDeadlineMs():
				e.heard(s).fail("%s was told that %s waits until %d, the log says %d", s.Party, l.attempt, got.GetWaiting().GetDeadlineMs(), due(l.rec))
			}
		}
		if s.Answer != nil {
			e.answered(s, cmd)
		}
	}
}

func due(r sessionlog.WaitRecord) int64 {
	if r.DeadlineMS == nil {
		return 0
	}
	return *r.DeadlineMS
}

// answered judges what an ask was told at last.
func (e *Evidence) answered(s *Said, cmd *messages.AskRequest) {
	a := e.account(cmd.GetSession())
	switch m := s.Answer.Msg.(type) {
	case *messages.AskResponse:
		var r resultAt
		l, has := e.attached(cmd, s.Answer), false
		if l != nil {
			r, has = l.result()
		}
		_, batch := sessionlog.ReadBatch(m.GetResult())
		switch {
		case m.GetContinued() != nil:
			if !has || !r.pending && r.Code != sessionlog.CodeOutcomeUnknown {
				e.heard(s).fail("%s was told that its question goes on as %s. %s", s.Party, m.GetJoined(), a.story(m.GetCallId()))
			}
		case !has || r.IsError || r.Text != m.GetResult():
			e.heard(s).fail("%s asked %s and was told %s, which is not the result in the log. %s", s.Party, cmd.GetAttempt(), brief(m), a.story(m.GetCallId()))
		case (m.GetPending() != nil) != r.pending || (m.GetAnswered() != nil) != batch:
			e.heard(s).fail("%s asked %s and was told %s of the result %.100q", s.Party, cmd.GetAttempt(), brief(m), r.Text)
		}
	case *messages.Refusal:
		switch code := messages.Code(m.GetCode()); code {
		case messages.AskAborted, messages.AskCancelled, messages.AskTimedOut, messages.NoProvider:
			if !slices.ContainsFunc(e.asked(s, cmd), func(l *life) bool {
				r, has := l.result()
				return has && (r.Code == string(code) || code == messages.AskAborted && r.Code == sessionlog.CodeOutcomeUnknown)
			}) {
				e.heard(s).fail("%s asked %s and was told %s. %s", s.Party, cmd.GetAttempt(), code, a.story(cmd.GetCallId()))
			}
		default:
		}
	default:
		e.heard(s).fail("%s asked %s and was told %s", s.Party, cmd.GetAttempt(), brief(m))
	}
}

func toldTheSame(e *Evidence) {
	results := map[string]string{}
	for t := range told[*messages.AskRequest, *messages.AskResponse](e) {
		s, cmd, m := t.by, t.cmd, t.msg
		if m.GetContinued() != nil {
			continue
		}
		l := e.attached(cmd, s.Answer)
		if l == nil {
			continue
		}
		key := cmd.GetSession() + " " + l.attempt + " " + l.call
		if before, again := results[key]; again && before != m.GetResult() {
			e.heard(s).fail("%s was told %.100q of attempt %s, somebody had been told %.100q", s.Party, m.GetResult(), l.attempt, before)
		}
		results[key] = m.GetResult()
	}
	outcomes := map[string]string{}
	for t := range told[*messages.SubmitRequest, *messages.SubmitResponse](e) {
		s, cmd, m := t.by, t.cmd, t.msg
		key := cmd.GetSession() + " " + cmd.GetSubmissionId()
		is := m.GetSettlement().GetOutcome()
		if is == "reply_withdrawn" {
			is = "queued"
		}
		is += " " + m.GetSettlement().GetMessageId()
		if before, again := outcomes[key]; again && before != is {
			e.heard(s).fail("%s was told %q of %s, before it was %q", s.Party, is, cmd.GetSubmissionId(), before)
		}
		outcomes[key] = is
	}
}

func acceptedIsKept(e *Evidence) {
	for t := range told[*messages.SubmitRequest, *messages.SubmitResponse](e) {
		s, cmd, m := t.by, t.cmd, t.msg
		e.kept(s, cmd, m.GetSettlement())
	}
}

func (e *Evidence) kept(s *Said, cmd *messages.SubmitRequest, got *messages.Settlement) {
	a := e.account(cmd.GetSession())
	id := cmd.GetSubmissionId()
	records := a.accepted(id)
	if len(records) != 1 {
		e.heard(s).fail("%s was told that %s is %s, the log has accepted it %d times. %s", s.Party, id, got.GetOutcome(), len(records), a.story(cmd.GetCallId()))
		return
	}
	rec := records[0]
	if rec.CallID != cmd.GetCallId() || got.GetMessageId() != rec.MessageID || got.GetOutcome() != rec.Outcome && got.GetOutcome() != "reply_withdrawn" {
		e.heard(s).fail("%s was told %s of %s for call %s, the log has %s %s for call %s", s.Party, winner(got), id, cmd.GetCallId(), rec.Outcome, rec.MessageID, rec.CallID)
		return
	}
	l, _ := a.at(rec.CallID, rec.seq)
	if l == nil {
		e.heard(s).fail("%s was accepted for call %s, which was not asked", id, rec.CallID)
		return
	}
	if seq := cmd.GetCallSeq(); seq != 0 && seq != l.at {
		e.heard(s).fail("%s answers what call %s asked at event %d, and was accepted for what it asked at event %d. %s", id, rec.CallID, seq, l.at, a.story(rec.CallID))
		return
	}
	if rec.Outcome == "queued" {
		q := a.byID[rec.MessageID]
		switch {
		case q == nil || len(q.in) == 0 || q.ReplyTo != rec.CallID:
			e.heard(s).fail("%s became reply %s to %s, and no such reply was queued. %s", id, rec.MessageID, rec.CallID, a.story(rec.CallID))
		case got.GetOutcome() == "reply_withdrawn" && len(q.withdrawn) == 0:
			e.heard(s).fail("%s was told that its reply %s was taken back, and it was not. %s", s.Party, q.ID, a.story(rec.CallID))
		case !e.words(q.Text(), cmd) || !sameQuestions(q.Text(), l):
			e.heard(s).fail("reply %s has not the words of %s, or not to the questions of %s: %.200q", q.ID, id, l.attempt, q.Text())
		}
		return
	}
	if r, ok := l.result(); !ok || r.IsError || a.commit[r.seq] != a.commit[rec.seq] || !e.words(r.Text, cmd) {
		e.heard(s).fail("%s was accepted as the result of %s, and its words are not there. %s", id, l.attempt, a.story(rec.CallID))
	}
}

// words reports whether a text holds the answers of a submission, as it was said
// at one time: a repeat under the same id is the first one, whatever it says.
func (e *Evidence) words(text string, cmd *messages.SubmitRequest) bool {
	for _, said := range said[*messages.SubmitRequest](e) {
		if said.GetSession() == cmd.GetSession() && said.GetCallId() == cmd.GetCallId() && said.GetSubmissionId() == cmd.GetSubmissionId() && sameBatch(text, said) {
			return true
		}
	}
	return false
}

// sameBatch: a text holds the very answers of a submission.
func sameBatch(text string, cmd *messages.SubmitRequest) bool {
	batch, ok := sessionlog.ReadBatch(text)
	if !ok {
		return false
	}
	items := sessionlog.AnswerItems(batch)
	return len(items) == len(cmd.GetAnswers()) && !slices.ContainsFunc(cmd.GetAnswers(), func(want *messages.Answer) bool {
		return !slices.ContainsFunc(items, func(got sessionlog.AnswerItem) bool {
			return got.ID == want.GetId() && slices.Equal(got.Selected, want.GetSelected()) &&
				(got.Custom == nil) == (want.Custom == nil) && (got.Custom == nil || *got.Custom == want.GetCustom())
		})
	})
}

// sameQuestions: a reply repeats the questions that its call asked.
func sameQuestions(text string, l *life) bool {
	return string(sessionlog.Member(text, "questions")) == l.asks
}

func refusedLeavesNoTrace(e *Evidence) {
	for s, no := range e.refusals {
		switch cmd := s.Cmd.(type) {
		case *messages.SubmitRequest:
			e.noTrace(s, no, cmd)
		case *messages.AskRequest:
			if l := e.account(cmd.GetSession()).lifeOf(cmd.GetAttempt(), cmd.GetCallId()); l != nil && neverRecorded(messages.Code(no.GetCode())) && !e.saidElse(s, cmd.GetAttempt()) {
				e.heard(s).fail("%s asked %s and was refused with %s, and event %d records it", s.Party, cmd.GetAttempt(), no.GetCode(), l.at)
			}
		}
	}
}

// neverRecorded are the refusals of an ask that leave nothing behind.
func neverRecorded(code messages.Code) bool {
	switch code {
	case messages.DuplicateWait, messages.ReplyQueued, messages.TurnClosed, messages.StepClosed, messages.DelegatedCaller, messages.UnreadAnswer, messages.NotFound:
		return true
	default:
		return false
	}
}

// keyOf is the key under which a command is idempotent.
func keyOf(cmd messages.Command) string {
	switch c := cmd.(type) {
	case *messages.SubmitRequest:
		return c.GetSubmissionId()
	case *messages.AskRequest:
		return c.GetAttempt()
	case *messages.AcknowledgeRequest:
		return c.GetCallId()
	}
	return ""
}

// saidElse: what was refused may all the same have been taken, since it was
// said another time, or the world or a door has repeated it: each is judged
// afresh (promise 2).
func (e *Evidence) saidElse(s *Said, key string) bool {
	if e.twice(s) {
		return true
	}
	return slices.ContainsFunc(e.History.Said, func(o *Said) bool {
		return o != s && o.Cmd.GetSession() == s.Cmd.GetSession() && keyOf(o.Cmd) == key
	})
}

// twice: a command may have been taken more than once. A door asks again when its
// session begins anew, and what it had asked may still lie there.
func (e *Evidence) twice(s *Said) bool {
	told := e.Now
	if s.Answer != nil {
		told = s.Answer.At
	}
	return s.Tries > 1 || e.repeats() != "" || e.account(s.Cmd.GetSession()).openedBetween(s.At, told) > 0
}

// repeats says why a command that was sent once may arrive twice.
func (e *Evidence) repeats() string {
	switch {
	case e.Plan.Network.Duplicate > 0 || len(e.Plan.Network.Repeat) > 0:
		return "the network repeats"
	case e.Plan.Disk.InDoubt > 0 || len(e.Plan.Disk.DoubtOps) > 0:
		return "a door asks again when its session was lost"
	case e.Plan.Hosts < 2:
		return ""
	case e.Plan.Network.Drop > 0 || len(e.Plan.Network.Lose) > 0 || e.Plan.Network.DelayMax > repeatMS/2 || len(e.History.Faults) > 0:
		return "a door asks again"
	}
	return ""
}

func (e *Evidence) noTrace(s *Said, no *messages.Refusal, cmd *messages.SubmitRequest) {
	a := e.account(cmd.GetSession())
	id := cmd.GetSubmissionId()
	if e.saidElse(s, id) {
		return
	}
	if n := len(a.accepted(id)); n > 0 {
		e.heard(s).fail("%s of %s was refused with %s, and the log has accepted it. %s", id, s.Party, no.GetCode(), a.story(cmd.GetCallId()))
	}
	for _, ev := range a.log.Events {
		if bytes.Contains(ev.Data, []byte("<"+id+">")) {
			e.heard(s).fail("%s of %s was refused with %s, and event %d (%s) has its words", id, s.Party, no.GetCode(), ev.Seq, ev.Type)
		}
	}
}

func answersAreSomebodys(e *Evidence) {
	by := map[string][]string{}
	for _, s := range e.History.Said {
		switch cmd := s.Cmd.(type) {
		case *messages.SubmitRequest:
			key := cmd.GetSession() + " " + cmd.GetSubmissionId()
			by[key] = append(by[key], cmd.GetBy()+" "+cmd.GetCallId())
		case *messages.SteerRequest:
			by[cmd.GetSession()+" "+cmd.GetMessageId()] = []string{cmd.GetBy() + " "}
		}
	}
	for _, a := range e.accounts {
		for _, r := range a.settled {
			if r.SubmissionID == "" || r.Outcome == "reply_withdrawn" {
				continue
			}
			if !slices.Contains(by[a.name+" "+r.SubmissionID], r.By+" "+r.CallID) {
				e.at(a, r.seq).fail("event %d of session %s has %s by %s to call %q; said was %q", r.seq, a.name, r.SubmissionID, r.By, r.CallID, by[a.name+" "+r.SubmissionID])
			}
			if n := len(a.accepted(r.SubmissionID)); n > 1 {
				e.at(a, r.seq).fail("session %s accepted %s %d times", a.name, r.SubmissionID, n)
			}
		}
	}
}

// Refusals.

// stands are the states of a call, and who spoke for its session, at any time
// between the saying of a command and its host's answer.
type stands struct {
	states  []state
	lives   []*life
	roots   []rootAt
	existed bool // at every time
	is      bool // at some time
}

func (e *Evidence) between(s *Said, call string) stands {
	a := e.account(s.Cmd.GetSession())
	st := stands{existed: true}
	for _, seq := range a.ends(s.Step, s.Answer.Sent) {
		l, is := a.at(call, seq)
		st.states = append(st.states, is)
		if l != nil {
			st.lives = append(st.lives, l)
		}
		st.roots = append(st.roots, a.rootBefore(seq))
		st.existed, st.is = st.existed && seq > 0, st.is || seq > 0
	}
	return st
}

func (st stands) any(want ...state) bool {
	return slices.ContainsFunc(st.states, func(is state) bool { return slices.Contains(want, is) })
}

func (st stands) root(holds func(rootAt) bool) bool { return slices.ContainsFunc(st.roots, holds) }

// askedAnew: the call became another one, which an answer that is on its way
// must not answer (W1).
func (st stands) askedAnew() bool {
	return st.life(func(l *life) bool { return l != st.lives[0] })
}

// isAnother: the call is another one than the one that an answer names.
func (st stands) isAnother(cmd messages.Command) bool {
	seq := cmd.(*messages.SubmitRequest).GetCallSeq()
	return seq != 0 && st.life(func(l *life) bool { return l.at != seq })
}

func (st stands) life(holds func(*life) bool) bool { return slices.ContainsFunc(st.lives, holds) }

func refusalsAreRight(e *Evidence) {
	for s, no := range e.refusals {
		call := ""
		if c, ok := s.Cmd.(interface{ GetCallId() string }); ok {
			call = c.GetCallId()
		}
		st := e.between(s, call)
		if right, known := e.right(s, messages.Code(no.GetCode()), st); known && !right {
			e.heard(s).fail("%s said %s at %d and was refused with %s; between steps %d and %d call %q was %v, and %v spoke for the session. %s",
				s.Party, brief(s.Cmd), s.At, no.GetCode(), s.Step, s.Answer.Sent, call, st.states, st.roots, e.account(s.Cmd.GetSession()).story(call))
		}
	}
}

// right judges one refusal; known is false for a code that says nothing of the
// state that is looked at here.
func (e *Evidence) right(s *Said, code messages.Code, st stands) (right, known bool) {
	switch code {
	case messages.NotFound:
		if cmd, ok := s.Cmd.(*messages.WithdrawMessageRequest); ok {
			return !st.existed || e.nobodyTook(s, cmd), true
		}
		return !st.existed, true
	case messages.TurnClosed, messages.StepClosed:
		return e.closed(s), true
	case messages.MessageGone:
		cmd, ok := s.Cmd.(*messages.AdmitMessagesRequest)
		return ok && e.gone(s, cmd), ok
	case messages.CallerNotLive:
		r, ok := s.Cmd.(interface{ GetRoot() string })
		return ok && st.root(func(at rootAt) bool { return at.root != r.GetRoot() }), true
	case messages.DelegatedCaller:
		_, attach := s.Cmd.(*messages.AttachRequest)
		return attach || st.root(func(at rootAt) bool { return at.owner != "" }), true
	case messages.ReplyQueued:
		return st.any(replied), true
	case messages.UnreadAnswer:
		return e.unread(s, s.Cmd.(*messages.AskRequest)), true
	case messages.DuplicateWait:
		ask := s.Cmd.(*messages.AskRequest)
		kept := (ask.GetMode() == messages.Mode_MODE_LEGACY || ask.GetParentCallId() != "") && (st.any(continued) || st.life((*life).withdrawnLate))
		return kept || st.any(open) && st.life(func(l *life) bool { return l.attempt != ask.GetAttempt() }), true
	case messages.BadAnswer:
		sub := s.Cmd.(*messages.SubmitRequest)
		return st.any(open, continued, replied) && st.life(func(l *life) bool { return !covers(l.ids, sub.GetAnswers()) }), true
	case messages.NotAnswerable:
		left, ok := s.Cmd.(*messages.EndForegroundRequest)
		other := ok && st.life(func(l *life) bool { return l.attempt != left.GetAttempt() })
		return other || st.any(unasked, over) || notOpen(s.Cmd) && st.any(continued, replied) || submits(s.Cmd) && (st.askedAnew() || st.isAnother(s.Cmd)), true
	case messages.Settled:
		return st.any(over) || (notOpen(s.Cmd) || rejects(s.Cmd)) && st.any(continued, replied), true
	case messages.BadRequest:
		if ask, ok := s.Cmd.(*messages.AskRequest); ok && ask.GetParentCallId() != "" && !fits(ask) {
			return true, true
		}
		_, dismiss := s.Cmd.(*messages.DismissRequest)
		return st.any(open) && st.life(func(l *life) bool { return !l.rec.Legacy }), dismiss
	default:
		return false, false
	}
}

// notOpen are the commands that only an open call takes.
func notOpen(cmd messages.Command) bool {
	switch cmd.(type) {
	case *messages.ExpireRequest, *messages.DelegateRequest, *messages.DismissRequest, *messages.EndForegroundRequest:
		return true
	}
	return false
}

func submits(cmd messages.Command) bool {
	_, ok := cmd.(*messages.SubmitRequest)
	return ok
}

// rejects: an answer that does not want to be a late one.
func rejects(cmd messages.Command) bool {
	sub, ok := cmd.(*messages.SubmitRequest)
	return ok && sub.GetOnExpired() == messages.OnExpired_ON_EXPIRED_REJECT
}

func covers(ids []string, answers []*messages.Answer) bool {
	got := sortedIDs(answers, (*messages.Answer).GetId)
	return slices.Equal(got, slices.Sorted(slices.Values(ids)))
}

func losersAreTold(e *Evidence) {
	for s, no := range e.refusals {
		w := no.GetWinner()
		settled := messages.Code(no.GetCode()) == messages.Settled
		c, ok := s.Cmd.(interface{ GetCallId() string })
		if !ok || w == nil && !settled {
			continue
		}
		a := e.account(s.Cmd.GetSession())
		call := c.GetCallId()
		calls := []string{call}
		if ask, ok := s.Cmd.(*messages.AskRequest); ok {
			for _, l := range e.asked(s, ask) { // it may have joined another
				calls = append(calls, l.call)
			}
		}
		switch {
		case w.GetOutcome() == "":
			e.heard(s).fail("%s said %s, was refused with %s, and not told who won. %s", s.Party, brief(s.Cmd), no.GetCode(), a.story(call))
		case !slices.ContainsFunc(calls, func(call string) bool { return a.won(s, call, w) }):
			e.heard(s).fail("%s said %s and was told that %s has won, which the log does not say. %s", s.Party, brief(s.Cmd), winner(w), a.story(call))
		}
	}
}

// won: the log has a settlement, from before a party was told of it.
func (a *account) won(s *Said, call string, w *messages.Settlement) bool {
	if rejects(s.Cmd) && w.GetOutcome() == "pending" && w.GetBy() == "" { // lost to whatever made it pending, unless that was a take-over
		return slices.ContainsFunc(a.ends(s.Step, s.Answer.Sent), func(seq int64) bool { return a.latestOutcome(call, seq) != "root_changed" })
	}
	return slices.ContainsFunc(a.settled, func(r settledAt) bool {
		outcome := r.Outcome
		if outcome == "queued" && w.GetOutcome() == "answered" {
			outcome = "answered" // and admitted since
		}
		return r.CallID == call && outcome == w.GetOutcome() && r.By == w.GetBy() && r.SubmissionID == w.GetSubmissionId() &&
			a.stamp(r.seq).Step <= s.Answer.Sent
	})
}

// latestOutcome is what the log says last of a call before seq.
func (a *account) latestOutcome(call string, seq int64) (outcome string) {
	for _, r := range a.settled {
		if r.CallID == call && r.seq < seq {
			outcome = r.Outcome
		}
	}
	return outcome
}

// Durable before told.

func durableBeforeTold(e *Evidence) {
	for _, s := range e.History.Said {
		a := e.account(s.Cmd.GetSession())
		for _, w := range s.Waiting {
			if cmd, ok := s.Cmd.(*messages.AskRequest); ok {
				if l := e.attached(cmd, &w); l != nil {
					e.durable(s, &w, a, l.wait, true)
				}
			}
		}
		if s.Answer != nil {
			for _, f := range e.facts(s, a) {
				e.durable(s, s.Answer, a, f.seq, f.must)
			}
		}
	}
}

// fact is an event that an answer tells of; -1: there is none. Where another
// check looks for it, it need not be there.
type fact struct {
	seq  int64
	must bool
}

func (e *Evidence) durable(s *Said, h *Heard, a *account, seq int64, must bool) {
	if seq < 0 {
		if must {
			e.heard(s).fail("%s said %s and was told %s, of which the log of %s has nothing", s.Party, brief(s.Cmd), brief(h.Msg), a.name)
		}
		return
	}
	if at := a.stamp(seq); at.Step >= h.Sent && h.Sent > 0 {
		e.heard(s).fail("%s said %s and was told %s at step %d; event %d was written at step %d (time %d)", s.Party, brief(s.Cmd), brief(h.Msg), h.Sent, seq, at.Step, at.At)
	}
}

// facts are what an answer tells of.
func (e *Evidence) facts(s *Said, a *account) []fact {
	switch m := s.Answer.Msg.(type) {
	case *messages.AskResponse:
		if l := e.attached(s.Cmd.(*messages.AskRequest), s.Answer); l != nil {
			if r, ok := l.result(); ok {
				return []fact{{r.seq, false}}
			}
		}
	case *messages.SubmitResponse:
		for _, r := range a.settled {
			if r.SubmissionID == m.GetSettlement().GetSubmissionId() && r.Outcome == m.GetSettlement().GetOutcome() {
				return []fact{{r.seq, false}}
			}
		}
	case *messages.SteerResponse:
		return a.settledFact(func(r settledAt) bool { return r.SubmissionID == m.GetMessageId() && r.Outcome == "steered" })
	case *messages.WithdrawMessageResponse:
		id := s.Cmd.(*messages.WithdrawMessageRequest).GetMessageId()
		return a.settledFact(func(r settledAt) bool { return r.MessageID == id && r.Outcome == "reply_withdrawn" })
	case *messages.WithdrawQuestionResponse:
		return a.endFact(s, m.GetSettlement())
	case *messages.EndForegroundResponse:
		return a.endFact(s, m.GetSettlement())
	case *messages.DismissResponse:
		return a.endFact(s, &messages.Settlement{Outcome: "cancelled"})
	case *messages.ExpireResponse:
		if m.GetSettled() {
			return a.endFact(s, nil)
		}
	case *messages.DelegateResponse:
		if m.GetSettled() {
			return a.endFact(s, nil)
		}
	case *messages.AttachResponse:
		i := slices.IndexFunc(a.roots, func(r rootAt) bool { return r.root == m.GetRoot() })
		if i < 0 {
			return []fact{{-1, true}}
		}
		return []fact{{a.roots[i].seq, true}}
	case *messages.BeginTurnResponse:
		return a.turnFact(m.GetTurn(), false)
	case *messages.EndTurnResponse:
		return a.turnFact(s.Cmd.(*messages.EndTurnRequest).GetTurn(), true)
	case *messages.BeginStepResponse:
		return append(a.turnFact(m.GetTurn(), false), a.admissions(m.GetAdmitted())...)
	case *messages.AdmitMessagesResponse:
		return a.admissions(m.GetMessages())
	case *messages.AcknowledgeResponse:
		call := s.Cmd.(*messages.AcknowledgeRequest).GetCallId()
		if m.GetKnown() {
			i := slices.IndexFunc(a.handed, func(h handedAt) bool { return h.CallID == call })
			if i < 0 {
				return []fact{{-1, true}}
			}
			return []fact{{a.handed[i].seq, true}}
		}
	case *messages.CollectRepliesResponse:
		if n := listNumber(m.GetToken()); n > 0 {
			for _, h := range a.handed {
				if h.List == n {
					return []fact{{h.seq, true}}
				}
			}
			return []fact{{-1, true}}
		}
	}
	return nil
}

func (a *account) settledFact(holds func(settledAt) bool) []fact {
	if i := slices.IndexFunc(a.settled, holds); i >= 0 {
		return []fact{{a.settled[i].seq, true}}
	}
	return []fact{{-1, true}}
}

// endFact is a settlement of the call that a command names; nil: any.
func (a *account) endFact(s *Said, w *messages.Settlement) []fact {
	call := s.Cmd.(interface{ GetCallId() string }).GetCallId()
	return a.settledFact(func(r settledAt) bool {
		return r.CallID == call && (w == nil || r.Outcome == w.GetOutcome() && (w.GetBy() == "" || r.By == w.GetBy()))
	})
}

func (a *account) turnFact(turn int64, end bool) []fact {
	t := a.turnOf(turn)
	switch {
	case t == nil || turn == 0:
		return []fact{{-1, turn != 0}}
	case end:
		return []fact{{t.end, true}}
	}
	return []fact{{t.start, true}}
}

func (a *account) admissions(list []*messages.InboxMessage) []fact {
	var out []fact
	for _, m := range list {
		if q := a.byID[m.GetId()]; q != nil && len(q.admitted) > 0 {
			out = append(out, fact{q.admitted[0], true})
		} else {
			out = append(out, fact{-1, true})
		}
	}
	return out
}

// listNumber reads a token: "r7-…".
func listNumber(token string) int64 {
	number, _, _ := strings.Cut(strings.TrimPrefix(token, "r"), "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Seen once.

// showing is where a message was shown as newly admitted.
type showing struct {
	s  *Said
	by string // the root that it was shown to
}

func seenOnce(e *Evidence) {
	shown := map[string][]showing{}
	for _, s := range e.History.Said {
		if s.Answer == nil {
			continue
		}
		a := e.account(s.Cmd.GetSession())
		var list []*messages.InboxMessage
		root := ""
		switch m := s.Answer.Msg.(type) {
		case *messages.BeginStepResponse:
			list, root = m.GetAdmitted(), s.Cmd.(*messages.BeginStepRequest).GetRoot()
		case *messages.AdmitMessagesResponse:
			list, root = m.GetMessages(), s.Cmd.(*messages.AdmitMessagesRequest).GetRoot()
		case *messages.CollectRepliesResponse:
			e.listed(s, a, m)
			continue
		}
		for _, m := range list {
			if q := a.byID[m.GetId()]; q != nil && string(q.Raw) != m.GetJson() {
				e.heard(s).fail("%s was shown %s as %.200q, the log has %.200q", s.Party, q.ID, m.GetJson(), q.Raw)
			}
			key := a.name + " " + m.GetId()
			for _, before := range shown[key] {
				atOnce := s.Step < before.s.Answer.Step // and taken in either order
				if before.by == root && !sameRequest(before.s, s) && (!atOnce || !sameRequest(s, before.s)) && !e.askedBoth(root, before.s, s) {
					e.heard(s).fail("%s was shown message %s by %s, and had been by %s", s.Party, m.GetId(), brief(s.Cmd), brief(before.s.Cmd))
				}
			}
			shown[key] = append(shown[key], showing{s, root})
		}
	}
}

// askedBoth: both ask for what one said before them, in the same name, whether or not
// that one heard of it.
func (e *Evidence) askedBoth(root string, a, b *Said) bool {
	return slices.ContainsFunc(e.History.Said, func(first *Said) bool {
		r, ok := first.Cmd.(interface{ GetRoot() string })
		return ok && r.GetRoot() == root && first != a && first != b && first.Step < b.Step &&
			first.Cmd.GetSession() == b.Cmd.GetSession() && sameRequest(first, a) && sameRequest(first, b)
	})
}

// sameRequest: the second asks for what the first got, by its name.
func sameRequest(a, b *Said) bool {
	switch x := a.Cmd.(type) {
	case *messages.BeginStepRequest:
		y, ok := b.Cmd.(*messages.BeginStepRequest)
		if !ok { // admitted by the step, and asked for by name after that
			_, ok = b.Cmd.(*messages.AdmitMessagesRequest)
			return ok
		}
		return (x.GetTurn() == y.GetTurn() || x.GetTurn() == 0 || y.GetTurn() == 0) && x.GetStep() == y.GetStep()
	case *messages.AdmitMessagesRequest:
		y, ok := b.Cmd.(*messages.AdmitMessagesRequest)
		return ok && len(y.GetMessageIds()) > 0
	}
	return false
}

func (e *Evidence) listed(s *Said, a *account, m *messages.CollectRepliesResponse) {
	cmd := s.Cmd.(*messages.CollectRepliesRequest)
	n := listNumber(m.GetToken())
	var rec handedAt
	counts := map[string]int32{}
	arrived := map[string]bool{}
	for _, h := range a.handed {
		if h.List != 0 && h.List == listNumber(cmd.GetAfter()) {
			for _, id := range h.Shown {
				arrived[id] = true
			}
		}
		if h.List == 0 || h.List > n {
			continue
		}
		for _, id := range h.Shown {
			counts[id]++
		}
		if h.List == n {
			rec = h
		}
	}
	var ids []string
	for _, r := range m.GetReplies() {
		id := r.GetMessageId()
		ids = append(ids, id)
		if r.GetDelivery() != counts[id] || r.GetRedelivered() != (counts[id] > 1 || r.GetKind() == "result") {
			e.heard(s).fail("%s was listed %s as delivery %d, redelivered %v, by list %d; the log has listed it %d times", s.Party, id, r.GetDelivery(), r.GetRedelivered(), n, counts[id])
		}
		if arrived[id] {
			e.heard(s).fail("%s was listed %s again after it had said %s", s.Party, id, cmd.GetAfter())
		}
		if q := a.byID[id]; q != nil && q.Text() != r.GetText() {
			e.heard(s).fail("%s was listed %s as %.200q, the log has %.200q", s.Party, id, r.GetText(), q.Text())
		}
	}
	if !slices.Equal(ids, rec.Shown) {
		e.heard(s).fail("%s was given list %d with %s, the log has %s in it", s.Party, n, quote(ids), quote(rec.Shown))
	}
}

// noTwin.

func noTwin(e *Evidence) {
	asks := e.asks()
	for a, l := range e.lives {
		var cmd *messages.AskRequest
		for _, said := range asks[a.name+" "+l.attempt+" "+l.call] {
			cmd = said
			if !said.GetJoin() {
				cmd = nil // it was asked as a question of its own, too
				break
			}
		}
		if cmd == nil || !l.rec.Receipt {
			continue
		}
		for _, first := range a.lives {
			if first.at >= l.at || first.asks != l.asks || !first.rec.Receipt || slices.Contains(cmd.GetLive(), first.attempt) {
				continue
			}
			if why := a.stillLost(first, l.at, l.rec.Legacy); why != "" {
				e.at(a, l.at).fail("attempt %s asks at event %d what %s asked, %s. %s", l.attempt, l.at, first.attempt, why, a.story(first.call))
			}
		}
	}
}

// stillLost says why an equal question could not be asked when the log ended
// before seq; empty: it could.
func (a *account) stillLost(l *life, seq int64, legacy bool) string {
	r, ended := l.result()
	ended = ended && r.seq < seq
	switch is := l.stateBefore(seq); {
	case is == open && l.rec.Legacy == legacy:
		return "which still waits"
	case (is == continued || is == replied) && !legacy && ended && r.pending && !a.arrived(l, seq):
		return "whose pending result may have been lost"
	case ended && r.batch && !a.arrived(l, seq):
		return "whose answer may not have been read"
	}
	return ""
}

// arrived: a call's own result was acknowledged, or an answer listed, before seq.
func (a *account) arrived(l *life, seq int64) bool {
	r, _ := l.result()
	return slices.ContainsFunc(a.handed, func(h handedAt) bool {
		return h.seq < seq && h.seq > r.seq && (h.CallID == l.call || slices.Contains(h.Shown, resultName(l, r)))
	})
}

// winner says a settlement in few words.
func winner(w *messages.Settlement) string {
	return strings.TrimSpace(w.GetOutcome() + " " + w.GetSubmissionId() + " " + w.GetBy() + " " + w.GetMessageId())
}
