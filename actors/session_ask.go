package actors

import (
	"encoding/json"
	"strconv"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// asking is one fresh ask on its way through the checks.
type asking struct {
	req       *messages.AskRequest
	from      Addr
	callID    string
	timed     bool
	timeoutMS int64 // 0: never
	// failure is an error of the call's own: it is recorded as the call's
	// result, since the model made the call.
	failure *messages.Error
	// plain: recorded without a code.
	plain bool
}

// nested: a program asks.
func (a *asking) nested() bool { return a.req.GetParentCallId() != "" }

// failsFirst: the call's own failure is found before anybody looks at the
// caller: what the tool checks, and the empty list of a
// blocking ask, which a timed one only sees afterwards.
func (a *asking) failsFirst() bool {
	switch {
	case a.failure == nil, a.failure.Code == messages.NoProvider:
		return false
	case a.failure.Code == messages.EmptyQuestions:
		return a.timeoutMS == 0
	}
	return true
}

// foregroundMS is how long the call waits: as long as it asked for, and no
// longer than its client lets it run. 0: for ever. A legacy call has no late
// path, so its door ends it, and no deadline does.
func (a *asking) foregroundMS() int64 {
	limit := a.req.GetWaitMaxMs()
	if limit == 0 || !a.timed || a.timeoutMS != 0 && a.timeoutMS < limit {
		return a.timeoutMS
	}
	return limit
}

// ask attaches a repeated attempt to what became of it, or opens a new wait.
func (s *Session) ask(now Now, from Addr, req *messages.AskRequest) Effects {
	for field, id := range map2("attempt", req.GetAttempt(), "call_id", CallID(req)) {
		if err := messages.CheckID(field, id); err != nil {
			return s.refuse(from, err)
		}
	}
	if err := messages.CheckText("arguments", req.GetArguments(), messages.ArgumentsBytesMax); err != nil {
		return s.refuse(from, err)
	}
	if err := messages.CheckText("assistant_message", req.GetAssistantMessage(), messages.MessageBytesMax); err != nil {
		return s.refuse(from, err)
	}
	if ms := req.GetWaitMaxMs(); ms < 0 || ms > TimeoutMaxS*1000 {
		return s.refuse(from, messages.Refuse(messages.BadRequest, "wait_max_ms is %d; it must be 0 to %d", ms, TimeoutMaxS*1000))
	}
	if err := checkSubCall(req); err != nil {
		return s.refuse(from, err)
	}
	if fx, known := s.askAgain(now, from, req); known {
		return fx
	}
	if req.GetResume() {
		return s.refuse(from, s.over(CallID(req)))
	}
	a := s.checkArguments(from, req)
	if req.GetJoin() && a.failure == nil && s.caller(req.GetRoot()) == CallerRoot {
		if fx, joined := s.join(now, a); joined {
			return fx
		}
	}
	if err := s.checkMayAsk(a); err != nil {
		if a.failsFirst() {
			err = a.failure
		}
		return s.refuse(from, err)
	}
	return s.openCall(now, a)
}

// askAgain answers a repeated attempt from its open wait or its result. That it
// still waits is proved too: where the session went on without us, the call may
// have ended, and whoever asks would be told that it waits for as long as nothing
// else is written here.
func (s *Session) askAgain(now Now, from Addr, req *messages.AskRequest) (Effects, bool) {
	id := CallID(req)
	if c, open := s.fold.openWaitOf(id); open && c.wait.attempt == req.GetAttempt() {
		if err := s.checkAgain(req, c.asks); err != nil {
			return s.refuse(from, err), true
		}
		fx := s.toWait(from, id, AddAsker{from})
		fx.Replies = append(fx.Replies, Reply{from, s.waiting(now, c)})
		fx.Proof = true
		return fx, true
	}
	r, known := s.past.result(req.GetAttempt(), id)
	if !known {
		return Effects{}, false
	}
	if err := s.checkAgain(req, r.asks); err != nil {
		return s.refuse(from, err), true
	}
	if r.res.IsError && r.res.Code == "" { // plain in the log, coded to callers
		if a := s.checkArguments(from, req); a.plain {
			return s.refuse(from, a.failure), true
		}
	}
	return s.reply(from, s.resultMessage(r.res)), true
}

// checkAgain refuses a repeat by another agent, and one that asks something
// else: the answer it would get is to another question.
func (s *Session) checkAgain(req *messages.AskRequest, asks uint64) *messages.Error {
	if err := s.checkRoot(req.GetRoot()); err != nil || req.GetResume() {
		return err
	}
	if asksOf(req) != asks {
		return messages.Refuse(messages.BadRequest,
			"attempt %q of call %q asked other questions; give a new question a new attempt", req.GetAttempt(), CallID(req))
	}
	return nil
}

// checkArguments holds for the mode in force.
func (s *Session) checkArguments(from Addr, req *messages.AskRequest) asking {
	a := asking{req: req, from: from, callID: CallID(req)}
	mode := req.GetMode()
	if mode == messages.Mode_MODE_UNSPECIFIED {
		mode = s.rules.Mode
	}
	a.timed = mode != messages.Mode_MODE_LEGACY
	args, err := ParseArguments(req.GetArguments(), a.timed)
	if err != nil {
		a.failure = err
		return a
	}
	if a.timed {
		var never bool
		if a.timeoutMS, never, a.failure = args.Timeout(s.rules.DefaultTimeoutS); a.failure == nil {
			a.failure = UniqueIDs(args.Questions)
		}
		a.plain = a.failure != nil
		if a.failure != nil || never {
			a.timeoutMS = 0
		}
	}
	if a.failure == nil {
		a.failure = CheckAsk(false, args.Questions, CallerRoot) // the caller is checked before anything is recorded
	}
	if a.failure == nil && !a.timed && !req.GetAnswererPresent() {
		a.failure = messages.Refuse(messages.NoProvider, "no user interface is connected that could answer")
	}
	return a
}

// checkMayAsk holds what is refused without a trace: a record of these would
// change a call that is not the caller's to change.
func (s *Session) checkMayAsk(a asking) *messages.Error {
	caller := s.caller(a.req.GetRoot())
	if err := CheckLiveRoot(caller); err != nil {
		if err.Code == messages.CallerNotLive {
			return s.notLive(a.req.GetRoot())
		}
		return err
	}
	if _, open := s.fold.openWaitOf(a.callID); open {
		return messages.Refuse(messages.DuplicateWait, "the question call %q already has a foreground wait", a.callID)
	}
	if _, queued := s.fold.lists.ReplyFor(a.callID); queued { // it would settle the new question (fault W1)
		return messages.Refuse(messages.ReplyQueued, "a reply is already queued for question call %q", a.callID)
	}
	if _, kept := s.fold.questions.Call(a.callID); kept && (!a.timed || a.nested()) { // withdrawn too: the projection keeps the earlier one, and an answer would be to its words
		return messages.Refuse(messages.DuplicateWait, "the question call %q was asked before and was not answered; give a legacy call or a sub-call an id of its own", a.callID)
	}
	if n := len(s.fold.openCalls()); n >= s.rules.OpenCallsMax {
		return messages.Refuse(messages.TooLarge, "session %q has %d open question calls, the limit is %d", s.id, n, s.rules.OpenCallsMax)
	}
	switch p := s.fold.progress; {
	case a.req.GetTurn() != 0 && s.fold.synthetic(): // it ends with the calls it was opened for
		return messages.Refuse(messages.TurnClosed, "turn %d of session %q belongs to calls that name no turn; wait for them, or end it", p.Turn(), s.id)
	case a.req.GetTurn() != 0 || p.TurnOpen() && !s.fold.synthetic():
		return s.checkStep(a.req.GetTurn(), a.req.GetStep())
	}
	return nil
}

// checkStep refuses a turn or step other than the open one, so that a stray
// duplicate never reopens a call. 0 means whichever is open.
func (s *Session) checkStep(turn, step int64) *messages.Error {
	p := s.fold.progress
	if !p.TurnOpen() || turn != 0 && turn != p.Turn() {
		return s.turnClosed(turn)
	}
	if !p.StepOpen() || step != 0 && step != p.Step() {
		return s.stepClosed(step)
	}
	return nil
}

// openCall records everything that fold and repair need, in one append: what
// is missing of turn, step and header, the assistant message, the call, the wait.
func (s *Session) openCall(now Now, a asking) Effects {
	b := s.batch(now)
	synthetic := a.req.GetTurn() == 0 && (!b.f.progress.TurnOpen() || b.f.synthetic())
	if !b.f.progress.TurnOpen() {
		b.add(sessionlog.TurnStart(b.f.progress.Turn()+1), sessionlog.StepStart(b.f.progress.Turn()+1, 1))
	}
	if err := s.addCall(b, a); err != nil {
		return s.refuse(a.from, err)
	}
	rec := sessionlog.WaitRecord{CallID: a.callID, Attempt: a.req.GetAttempt(), Synthetic: synthetic, Legacy: !a.timed,
		Receipt: a.req.GetReceipt(), WaitMaxMS: a.req.GetWaitMaxMs(), Client: a.req.GetClient(), Correlation: a.req.GetCorrelation()}
	if a.failure != nil { // the wait is made and discarded, so that a repeated attempt finds its result
		code := string(a.failure.Code)
		if a.plain {
			code = ""
		}
		b.add(rec.Event())
		c, _ := b.f.openWaitOf(a.callID)
		b.failure(c, a.failure.Text, code)
		s.closeSynthetic(b, synthetic)
		fx := b.effects()
		fx.Replies = []Reply{{a.from, a.failure.Wire()}}
		return fx
	}
	if wait := a.foregroundMS(); wait != 0 {
		deadline := now.Wall + wait
		rec.DeadlineMS = &deadline
	}
	b.add(rec.Event())
	fx := b.effects()
	c, _ := b.f.openWaitOf(a.callID)
	s.seedWait(c, WaitSeed{Askers: []Addr{a.from}, Asked: now}, &fx)
	fx.Replies = append(fx.Replies, Reply{a.from, s.waiting(now, c)})
	return fx
}

// addCall records the call, with the model's message that made it. The header
// of a session whose programs ask lists the program's tool, and is not ours.
func (s *Session) addCall(b *batch, a asking) *messages.Error {
	if a.nested() {
		if err := s.addProgram(b, a); err != nil {
			return err
		}
		b.add(subCall(a.req).Start())
		return nil
	}
	s.addHeader(b, a.timed)
	if err := s.addAssistantMessage(b, a); err != nil {
		return err
	}
	b.add(sessionlog.ToolCall(b.f.progress.Turn(), b.f.progress.Step(), a.callID, sessionlog.ToolName, a.req.GetArguments()))
	return nil
}

// addHeader records the tool's schema when the one in force is another.
func (s *Session) addHeader(b *batch, timed bool) {
	if b.f.header && b.f.questions.Timed() == timed {
		return
	}
	reason := "initial"
	if b.f.header {
		reason = "change"
	}
	b.add(sessionlog.NewEvent(sessionlog.TypeRequestHeader, json.RawMessage(
		`{"header":{"config":{"provider":"parley","model":"agent"},"tools":[`+
			string(ToolDefinition(timed, s.rules.DefaultTimeoutS))+`]},"reason":"`+reason+`"}`)))
}

// addAssistantMessage records the message that made the call, unless the open
// step has it already: calls of one message share it.
func (s *Session) addAssistantMessage(b *batch, a asking) *messages.Error {
	if _, has := pendingCall(b, a.callID); has {
		return nil
	}
	message := json.RawMessage(a.req.GetAssistantMessage())
	if len(message) == 0 {
		id := "assistant-" + a.callID + "-" + strconv.FormatInt(b.f.next, 10)
		message = sessionlog.CallMessage(id, a.callID, sessionlog.ToolName, a.req.GetArguments())
	} else if _, has, err := sessionlog.ToolCallIn(message, a.callID); err != nil || !has {
		return noToolCall(a.callID, err)
	}
	b.add(sessionlog.AssistantMessage(b.f.progress.Turn(), b.f.progress.Step(), message))
	return nil
}

// addProgram records the call that a sub-call comes from, and that it was
// started, as far as the agent says so: that one is the agent's to run and to end.
func (s *Session) addProgram(b *batch, a asking) *messages.Error {
	root, message := subCall(a.req).RootCallID, json.RawMessage(a.req.GetAssistantMessage())
	pending, has := pendingCall(b, root)
	if len(message) == 0 || has && pending.CallSeq >= 0 {
		return nil
	}
	program, found, err := sessionlog.ToolCallIn(message, root)
	if err != nil || !found {
		return noToolCall(root, err)
	}
	turn, step := b.f.progress.Turn(), b.f.progress.Step()
	if !has {
		b.add(sessionlog.AssistantMessage(turn, step, message))
	}
	b.add(sessionlog.ToolCall(turn, step, root, program.Name, program.Arguments))
	return nil
}

// pendingCall is a call that the open step still owes a result.
func pendingCall(b *batch, id string) (sessionlog.PendingCall, bool) {
	for _, p := range b.f.progress.Pending() {
		if p.CallID == id {
			return p, true
		}
	}
	return sessionlog.PendingCall{}, false
}

func noToolCall(id string, err error) *messages.Error {
	return messages.Refuse(messages.BadRequest, "assistant_message has no tool-call block %q: %s", id, errText(err))
}

// detach ends a subscription and settles nothing. It has no answer.
func (s *Session) detach(from Addr, m *messages.AskDetachRequest) Effects {
	var fx Effects
	if m.GetCallId() == "" {
		s.tellInbox(&fx, DropAsker{from})
	} else if i := s.partIndex(m.GetCallId()); i >= 0 {
		fx.Parts = append(fx.Parts, s.tellWait(i, DropAsker{from}))
	}
	return fx
}

// waiting tells an asker that its question is durable.
func (s *Session) waiting(now Now, c call) *messages.AskResponse {
	w := &messages.Waiting{DeadlineMs: c.wait.deadline}
	if c.wait.deadline != 0 {
		w.RemainingMs = max(0, c.wait.deadline-now.Wall)
	}
	return &messages.AskResponse{Session: s.id, CallId: c.id, Outcome: &messages.AskResponse_Waiting{Waiting: w}}
}

// resultMessage reads a recorded result back into what the asker is told.
func (s *Session) resultMessage(r sessionlog.Result) messages.Message {
	if answers, ok := sessionlog.ReadBatch(r.Text); ok && !r.IsError {
		return s.answered(r.CallID, r.Text, readAnswers(answers))
	}
	if sessionlog.IsPending(r.Text) {
		return s.pending(r.CallID, r.Text)
	}
	code := messages.Code(r.Code)
	if code == "" || code == sessionlog.CodeOutcomeUnknown {
		code = messages.AskAborted
	}
	err := messages.Refuse(code, "%s", trimError(r.Text))
	if w, ok := s.past.winner(r.CallID); ok {
		err.Winner = settlement(w)
	}
	return err.Wire()
}

func (s *Session) answered(call, result string, answers []*messages.Answer) *messages.AskResponse {
	return &messages.AskResponse{Session: s.id, CallId: call, Result: result,
		Outcome: &messages.AskResponse_Answered{Answered: &messages.Answered{Answers: answers}}}
}

func (s *Session) pending(call, result string) *messages.AskResponse {
	return &messages.AskResponse{Session: s.id, CallId: call, Result: result,
		Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{Message: sessionlog.PendingGuidance}}}
}
