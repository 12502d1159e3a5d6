package simulation

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// A question is a register: it is asked, takes an answer or none, and gives its
// result. This file says so without a log: with what parties said and were told
// alone, in intervals of steps. What nobody can see from outside (the deadline,
// a take-over, a command of which nothing was heard) may happen at any time
// after it was said, or never.

// register is the state of a question.
type register struct {
	is     state
	result string // of the foreground call, as its asker is told it
	last   string // the latest settlement's outcome
	queued int8   // the submission whose reply waits, from 1
	fates  [submissionsMax]fateOf
}

// fateOf is what became of a submission.
type fateOf uint8

const (
	untaken fateOf = iota
	inTime
	late
	takenBack
)

const (
	submissionsMax = 8
	operationsMax  = 16 // of one question; one with more is not judged here
)

// did is one operation on a question: what it does to the register if it is
// legal there. Its output, if any, is in it.
type did struct {
	what  string // for people
	apply func(register) (register, bool)
}

// oneRegister finds an order for each question that was asked once.
func oneRegister(e *Evidence) {
	for _, q := range e.questions() {
		ops := e.operations(q)
		if len(ops) == 0 || len(ops) > operationsMax {
			continue
		}
		if porcupine.CheckOperations(registerModel, ops) {
			continue
		}
		var b strings.Builder
		for _, op := range ops {
			until := "never"
			if op.Return != math.MaxInt64 {
				until = itoa(op.Return)
			}
			fmt.Fprintf(&b, "; %d-%s %s", op.Call, until, op.Input.(*did).what)
		}
		e.lastOf(q.session, q.call).fail("nothing that is in order explains what was told of %s in %s (steps%s). %s", q.call, q.session, b.String(), e.account(q.session).story(q.call))
	}
}

var registerModel = porcupine.Model{
	Init: func() any { return register{is: unasked} },
	Step: func(s, in, _ any) (bool, any) {
		next, ok := in.(*did).apply(s.(register))
		return ok, next
	},
}

// question is a call with the one ask that made it.
type question struct {
	session, call string
	ask           *messages.AskRequest
	by            *Said
	timed         bool
	ids           []string
	subs          []string // submission ids, as numbered in the register
	ops           []porcupine.Operation
}

// questions are the calls that were asked under one attempt only.
func (e *Evidence) questions() []*question {
	var out []*question
	at := map[string]*question{}
	for s, cmd := range said[*messages.AskRequest](e) {
		key := cmd.GetSession() + " " + cmd.GetCallId()
		q, again := at[key]
		if !again {
			_, ids, _ := sessionlog.ParseArguments(cmd.GetArguments())
			q = &question{session: cmd.GetSession(), call: cmd.GetCallId(), ask: cmd, by: s, ids: ids, timed: cmd.GetMode() != messages.Mode_MODE_LEGACY}
			at[key] = q
			out = append(out, q)
			continue
		}
		q.ask = nil // twice: a life is not a register
	}
	return slices.DeleteFunc(out, func(q *question) bool { return q.ask == nil })
}

// add puts an operation into the history; a nil answer: of open end.
func (q *question) add(what string, from int, to *Heard, apply func(register) (register, bool)) {
	until := int64(math.MaxInt64)
	if to != nil {
		until = int64(to.Step)
	}
	q.ops = append(q.ops, porcupine.Operation{Input: &did{what, apply}, Call: int64(from), Return: until})
}

// maybe is what may happen once, at any time from a step on.
func (q *question) maybe(what string, from int, apply func(register) register) {
	q.add("perhaps "+what, from, nil, func(r register) (register, bool) { return apply(r), true })
}

func (e *Evidence) operations(q *question) []porcupine.Operation {
	e.asking(q)
	for _, s := range e.History.Said {
		if s.Cmd.GetSession() != q.session {
			continue
		}
		switch cmd := s.Cmd.(type) {
		case *messages.AskRequest:
			e.reading(q, s, cmd)
		case *messages.AttachRequest:
			if cmd.GetRoot() != q.ask.GetRoot() {
				q.maybe("taken over by "+cmd.GetRoot(), s.Step, q.takenOver)
			}
		case *messages.EndTurnRequest:
			if cmd.GetAborted() {
				q.maybe("aborted", s.Step, func(r register) register { return r.failed(open, messages.AskAborted, "aborted") })
			}
		case *messages.BeginStepRequest, *messages.AdmitMessagesRequest, *messages.CollectRepliesRequest:
			e.admitting(q, s)
		case *messages.WithdrawMessageRequest:
			e.takingBack(q, s, cmd)
		case interface{ GetCallId() string }:
			if cmd.GetCallId() == q.call {
				e.command(q, s)
			}
		}
		if len(q.ops) > operationsMax {
			return q.ops
		}
	}
	return q.ops
}

// failed ends a call with an error, if it is in a state.
func (r register) failed(from state, code messages.Code, outcome string) register {
	if r.is == from {
		r.is, r.result, r.last = over, "error "+string(code), outcome
	}
	return r
}

// pending ends the foreground: what is left is continued.
func (r register) pending() register {
	if r.is == open {
		r.is, r.result, r.last = continued, "pending", "pending"
	}
	return r
}

func (q *question) takenOver(r register) register {
	switch {
	case r.is != open:
	case q.timed && q.ask.GetParentCallId() != "": // repair has no other result for a sub-call that can be answered late
		r.is, r.result, r.last = continued, "pending", "root_changed"
	case q.timed:
		r.is, r.result, r.last = continued, "error "+string(messages.AskAborted), "root_changed"
	default:
		r = r.failed(open, messages.AskAborted, "root_changed")
	}
	return r
}

// asking is the ask itself, and the deadline that it sets going.
func (e *Evidence) asking(q *question) {
	s := q.by
	heard := s.Answer
	if len(s.Waiting) > 0 {
		heard = &s.Waiting[0]
	}
	opens := func(r register) register {
		if r.is == unasked {
			r.is = open
		}
		return r
	}
	joined := false
	for _, w := range s.Waiting {
		joined = joined || w.Msg.(*messages.AskResponse).GetCallId() != q.call
	}
	own := false
	if heard != nil {
		a, ok := heard.Msg.(*messages.AskResponse)
		own = ok && a.GetCallId() == q.call && !joined && a.GetContinued() == nil
	}
	if own {
		q.add("asked", s.Step, heard, func(r register) (register, bool) { return opens(r), r.is == unasked || s.Tries > 1 })
	} else {
		q.maybe("asked", s.Step, opens)
	}
	if q.timed && e.waitOf(q.ask) > 0 {
		q.maybe("run out", s.Step, register.pending)
	}
}

// reading is what an ask was told at last, be it the question's own or one that
// joined it.
func (e *Evidence) reading(q *question, s *Said, cmd *messages.AskRequest) {
	if s.Answer == nil {
		return
	}
	want := ""
	switch m := s.Answer.Msg.(type) {
	case *messages.AskResponse:
		switch {
		case m.GetCallId() != q.call || m.GetContinued() != nil:
			return
		case m.GetPending() != nil:
			want = "pending"
		default:
			want = answersOf(m.GetAnswered().GetAnswers())
		}
	case *messages.Refusal:
		switch code := messages.Code(m.GetCode()); code {
		case messages.AskAborted, messages.AskCancelled, messages.AskTimedOut, messages.NoProvider:
			if cmd.GetCallId() != q.call || cmd.GetJoin() {
				return
			}
			want = "error " + string(code)
		default:
			return
		}
	}
	q.add("told its asker "+want, s.Step, s.Answer, func(r register) (register, bool) { return r, r.result == want })
}

func answersOf(answers []*messages.Answer) string { return string(actors.AnswersJSON(answers)) }

// number is the place of a submission in the register, or -1.
func (q *question) number(id string) int {
	i := slices.Index(q.subs, id)
	if i < 0 {
		i = len(q.subs)
		q.subs = append(q.subs, id)
	}
	if i >= submissionsMax {
		return -1
	}
	return i
}

// command is one that names the call.
func (e *Evidence) command(q *question, s *Said) {
	switch cmd := s.Cmd.(type) {
	case *messages.SubmitRequest:
		e.submitting(q, s, cmd)
	case *messages.WithdrawQuestionRequest:
		e.ending(q, s, "withdrawn", func(r register) register {
			if r.is == continued {
				r.is, r.last = over, "withdrawn"
			}
			return r.failed(open, messages.AskAborted, "withdrawn")
		})
	case *messages.DismissRequest:
		e.ending(q, s, "dismissed", func(r register) register {
			if q.timed {
				return r
			}
			return r.failed(open, messages.AskCancelled, "cancelled")
		})
	case *messages.ExpireRequest:
		e.ending(q, s, "expired", func(r register) register {
			if q.timed && e.waitOf(q.ask) > 0 { // Q-067, against Q-048
				return r.pending()
			}
			return r.failed(open, messages.AskTimedOut, "failed")
		})
	case *messages.DelegateRequest:
		e.ending(q, s, "passed on", func(r register) register {
			if q.timed && e.waitOf(q.ask) > 0 {
				return r
			}
			return r.failed(open, messages.NoProvider, "no_provider")
		})
	case *messages.EndForegroundRequest:
		e.ending(q, s, "left", func(r register) register {
			switch {
			case cmd.GetAttempt() != q.ask.GetAttempt():
				return r
			case q.timed:
				return r.pending()
			}
			return r.failed(open, messages.AskAborted, "aborted")
		})
	}
}

// ending is a command that may end a question or its foreground.
func (e *Evidence) ending(q *question, s *Said, what string, apply func(register) register) {
	if s.Answer == nil || e.twice(s) {
		q.maybe(what, s.Step, apply)
	}
	if s.Answer == nil {
		return
	}
	told := brief(s.Answer.Msg)
	q.add(what+": "+told, s.Step, s.Answer, func(r register) (register, bool) {
		next := apply(r)
		switch m := s.Answer.Msg.(type) {
		case *messages.WithdrawQuestionResponse:
			if m.GetSettlement().GetOutcome() != "withdrawn" { // another end was first, and nothing was taken back
				return r, r.is != open && r.last == m.GetSettlement().GetOutcome()
			}
			return next, next.last == m.GetSettlement().GetOutcome()
		case *messages.EndForegroundResponse:
			return next, next.last == m.GetSettlement().GetOutcome()
		case *messages.DismissResponse:
			return next, next.result == "error "+string(messages.AskCancelled)
		case *messages.ExpireResponse:
			if m.GetSettled() {
				return next, next.is != open && next.is != unasked
			}
		case *messages.DelegateResponse:
			if m.GetSettled() {
				return next, next.is != open && next.is != unasked
			}
		case *messages.Refusal:
			switch messages.Code(m.GetCode()) {
			case messages.Settled:
				return r, r.is != open && r.is != unasked
			case messages.ReplyQueued:
				return r, r.is == replied
			default:
			}
		}
		return r, true // it says nothing of the question
	})
}

func (e *Evidence) submitting(q *question, s *Said, cmd *messages.SubmitRequest) {
	i := q.number(cmd.GetSubmissionId())
	if i < 0 {
		return
	}
	complete := covers(q.ids, cmd.GetAnswers())
	words := answersOf(cmd.GetAnswers())
	outcome := "answered"
	if !slices.ContainsFunc(cmd.GetAnswers(), func(a *messages.Answer) bool { return len(a.GetSelected()) > 0 || a.Custom != nil }) {
		outcome = "skipped"
	}
	apply := func(r register) (register, string) {
		switch {
		case r.fates[i] == inTime:
			return r, "in time"
		case r.fates[i] == late:
			return r, "queued"
		case r.fates[i] == takenBack:
			return r, "reply_withdrawn"
		case r.is == unasked:
			return r, string(messages.NotAnswerable)
		case r.is == over:
			return r, string(messages.Settled)
		case r.is == replied:
			return r, string(messages.ReplyQueued)
		case !complete:
			return r, string(messages.BadAnswer)
		case r.is == open:
			r.is, r.result, r.last, r.fates[i] = over, words, outcome, inTime
			return r, "in time"
		case rejects(cmd):
			return r, string(messages.Settled)
		}
		r.is, r.last, r.queued, r.fates[i] = replied, "queued", int8(i+1), late
		return r, "queued"
	}
	if s.Answer == nil || e.twice(s) {
		q.maybe("answered with "+cmd.GetSubmissionId(), s.Step, func(r register) register { next, _ := apply(r); return next })
	}
	if s.Answer == nil {
		return
	}
	want := ""
	switch m := s.Answer.Msg.(type) {
	case *messages.SubmitResponse:
		if want = m.GetSettlement().GetOutcome(); want == "answered" || want == "skipped" {
			want = "in time"
		}
	case *messages.Refusal:
		if want = m.GetCode(); want == string(messages.BadRequest) {
			return // it was said of another question
		}
	}
	q.add(fmt.Sprintf("answered with %s: %s", cmd.GetSubmissionId(), want), s.Step, s.Answer, func(r register) (register, bool) {
		next, got := apply(r)
		gone := got == string(messages.Settled) || got == string(messages.NotAnswerable)
		return next, got == want || gone && (want == string(messages.NotAnswerable) || want == string(messages.NotFound) || want == string(messages.Settled))
	})
}

func (r register) admitted() register {
	if r.is == replied {
		r.is, r.queued = over, 0
	}
	return r
}

// admitting takes a reply into the history.
func (e *Evidence) admitting(q *question, s *Said) {
	if s.Answer == nil {
		q.maybe("admitted", s.Step, register.admitted)
		return
	}
	has := false
	switch m := s.Answer.Msg.(type) {
	case *messages.BeginStepResponse:
		has = q.answeredBy(m.GetAdmitted())
	case *messages.AdmitMessagesResponse:
		has = q.answeredBy(m.GetMessages())
	case *messages.CollectRepliesResponse:
		has = slices.ContainsFunc(m.GetReplies(), func(r *messages.CollectedReply) bool { return r.GetKind() == "reply" && r.GetCallId() == q.call })
	}
	switch {
	case has:
		q.add("admitted", s.Step, s.Answer, func(r register) (register, bool) { return r.admitted(), r.is == replied || r.is == over })
	case e.twice(s): // a try of which nothing was heard
		q.maybe("admitted", s.Step, register.admitted)
	}
}

func (q *question) answeredBy(list []*messages.InboxMessage) bool {
	return slices.ContainsFunc(list, func(m *messages.InboxMessage) bool { return m.GetReplyTo() == q.call })
}

// takingBack withdraws a queued reply, should it be to this question: the one that
// it names, so that a repeat takes back no other.
func (e *Evidence) takingBack(q *question, s *Said, cmd *messages.WithdrawMessageRequest) {
	i := e.becameReply(q, cmd.GetMessageId())
	if i < 0 {
		return
	}
	apply := func(r register) register {
		if r.is == replied && int(r.queued) == i+1 {
			r.is, r.last, r.fates[r.queued-1], r.queued = continued, "reply_withdrawn", takenBack, 0
		}
		return r
	}
	if s.Answer == nil {
		q.maybe("reply taken back", s.Step, apply)
		return
	}
	if m, ok := s.Answer.Msg.(*messages.WithdrawMessageResponse); ok && m.GetReopenedCallId() == q.call {
		q.add("reply taken back", s.Step, s.Answer, func(r register) (register, bool) {
			return apply(r), r.fates[i] == late || r.fates[i] == takenBack
		})
	}
}

// becameReply is the place of the submission that became a reply, as its sender was
// told; -1: it is none to this question.
func (e *Evidence) becameReply(q *question, message string) int {
	for t := range told[*messages.SubmitRequest, *messages.SubmitResponse](e) {
		if t.cmd.GetSession() == q.session && t.cmd.GetCallId() == q.call && t.msg.GetSettlement().GetMessageId() == message {
			return q.number(t.cmd.GetSubmissionId())
		}
	}
	return -1
}
