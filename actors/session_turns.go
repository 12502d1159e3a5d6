package actors

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// attach makes an agent the session's root. The recorded root again changes
// nothing; another takes over, in one append with the repair of the open step.
func (s *Session) attach(now Now, from Addr, req *messages.AttachRequest) Effects {
	for field, id := range map2("session", s.id, "root", req.GetRoot()) {
		if err := messages.CheckID(field, id); err != nil {
			return s.refuse(from, err)
		}
	}
	if s.root.RootID == req.GetRoot() && s.root.Owner == req.GetOwner() {
		return s.reply(from, s.attached(s.fold, req.GetRoot(), false, false))
	}
	if s.root.RootID == req.GetRoot() && s.root.Owner == "" && req.GetOwner() != "" {
		// The same instance under an owner: a child that would take the session from its own root.
		return s.refuse(from, messages.Refuse(messages.DelegatedCaller,
			"session %q belongs to a root agent, and %q says that it is owned by %q; give a child a session of its own", s.id, req.GetRoot(), req.GetOwner()))
	}
	b := s.batch(now)
	created := s.version == -1
	took := s.root.RootID != ""
	var ended []call
	if !created {
		ended = b.f.openCalls()
		b.interrupt(max(1, s.lastTime))
		for _, c := range ended {
			b.add(sessionlog.SettledRecord{CallID: c.id, By: req.GetRoot(), Outcome: outcomeRootChanged}.Event())
		}
	}
	b.add(sessionlog.RootRecord{RootID: req.GetRoot(), Owner: req.GetOwner()}.Event())
	fx := b.effects()
	if created {
		fx.Header = &sessionlog.Header{Version: sessionlog.V3, ID: s.id, CreatedAt: now.Wall, CWD: req.GetCwd(), AgentPreset: req.GetAgentPreset()}
	}
	for _, c := range ended {
		s.endWait(c.id, Ended{End{
			Settlement: &messages.Settlement{Outcome: outcomeRootChanged, By: req.GetRoot()},
			Err:        messages.Refuse(messages.CallerNotLive, "%q took over session %q", req.GetRoot(), s.id),
			Continued:  !c.wait.legacy,
		}}, &fx)
	}
	s.tellInbox(&fx, TurnEnded{})
	fx.Replies = append(fx.Replies, Reply{from, s.attached(b.f, req.GetRoot(), created, took)})
	return fx
}

func (s *Session) attached(f fold, root string, created, took bool) *messages.AttachResponse {
	return &messages.AttachResponse{Session: s.id, Root: root, Created: created, TookOver: took,
		Turn: f.progress.Turn(), TurnOpen: f.progress.TurnOpen(), Step: f.progress.Step(), StepOpen: f.progress.StepOpen(),
		Queued: int32(min(len(f.lists.NextTurn)+len(f.lists.NextStep), 1<<30))}
}

// beginTurn opens the next turn. The number makes a repeat harmless.
func (s *Session) beginTurn(now Now, from Addr, req *messages.BeginTurnRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	p := s.fold.progress
	switch {
	case p.TurnOpen() && req.GetTurn() == p.Turn() && !s.fold.synthetic():
		return s.reply(from, &messages.BeginTurnResponse{Turn: p.Turn()})
	case p.TurnOpen():
		return s.refuse(from, messages.Refuse(messages.TurnClosed, "turn %d of session %q is open; end it first", p.Turn(), s.id))
	case req.GetTurn() != 0 && req.GetTurn() != p.Turn()+1:
		return s.refuse(from, s.turnClosed(req.GetTurn()))
	}
	b := s.batch(now)
	b.add(sessionlog.TurnStart(p.Turn() + 1))
	fx := b.effects()
	fx.Replies = []Reply{{from, &messages.BeginTurnResponse{Turn: p.Turn() + 1}}}
	return fx
}

// beginStep opens a step and admits what waits for it, in one append (L-061,
// L-069, promise 4): all of next-step and, for a turn's first step, one of next-turn.
func (s *Session) beginStep(now Now, from Addr, req *messages.BeginStepRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	p := s.fold.progress
	step := req.GetStep()
	switch {
	case !p.TurnOpen() || req.GetTurn() != 0 && req.GetTurn() != p.Turn() || s.fold.synthetic():
		return s.refuse(from, s.turnClosed(req.GetTurn()))
	case p.StepOpen() && step == p.Step():
		return s.reply(from, s.began(s.fold, s.admittedIn(p.Step())))
	case p.StepOpen() || step != 0 && step != p.Step()+1:
		return s.refuse(from, s.stepClosed(step))
	}
	due := ids(s.fold.lists.NextStep)
	if p.Step() == 0 && len(s.fold.lists.NextTurn) > 0 {
		due = append(due, s.fold.lists.NextTurn[0].ID)
	}
	b := s.batch(now)
	taken := s.take(b, due)
	b.add(sessionlog.StepStart(p.Turn(), p.Step()+1))
	for _, m := range taken {
		b.add(userMessage(m))
	}
	fx := b.effects()
	s.tellInbox(&fx, Admitted{due})
	fx.Replies = []Reply{{from, s.began(b.f, taken)}}
	return fx
}

func (s *Session) began(f fold, taken []sessionlog.Message) *messages.BeginStepResponse {
	return &messages.BeginStepResponse{Turn: f.progress.Turn(), Step: f.progress.Step(), Admitted: inboxMessages(taken, "")}
}

// admittedIn returns what the open step admitted as it began, for a repeated
// request. What was asked for since then was shown to who asked.
func (s *Session) admittedIn(step int64) []sessionlog.Message {
	var out []sessionlog.Message
	for _, a := range s.admitted {
		if a.step == step {
			out = append(out, a.msg)
		}
	}
	return out
}

func (s *Session) endStep(now Now, from Addr, req *messages.EndStepRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	p := s.fold.progress
	if !p.StepOpen() && req.GetStep() != 0 && req.GetTurn() == p.Turn() && req.GetStep() == p.Step() {
		return s.reply(from, &messages.EndStepResponse{}) // again
	}
	if err := s.checkStep(req.GetTurn(), req.GetStep()); err != nil {
		return s.refuse(from, err)
	}
	if err := s.checkNoCalls(); err != nil {
		return s.refuse(from, err)
	}
	b := s.batch(now)
	b.add(sessionlog.StepEnd(p.Turn(), p.Step()))
	fx := b.effects()
	fx.Replies = []Reply{{from, &messages.EndStepResponse{}}}
	return fx
}

// endTurn closes the turn. Aborted, it takes the open calls of the turn with
// it; the inbox is kept: replies and hand-overs survive a cancel (promise 2).
func (s *Session) endTurn(now Now, from Addr, req *messages.EndTurnRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	p := s.fold.progress
	if !p.TurnOpen() && req.GetTurn() != 0 && req.GetTurn() == p.Turn() {
		return s.reply(from, &messages.EndTurnResponse{}) // again
	}
	if !p.TurnOpen() || req.GetTurn() != 0 && req.GetTurn() != p.Turn() {
		return s.refuse(from, s.turnClosed(req.GetTurn()))
	}
	open := s.fold.openCalls()
	if !req.GetAborted() {
		if err := s.checkNoCalls(); err != nil {
			return s.refuse(from, err)
		}
	}
	b := s.batch(now)
	for _, c := range open {
		b.failure(c, errAborted().Text, string(messages.AskAborted))
		b.add(sessionlog.SettledRecord{CallID: c.id, By: req.GetRoot(), Outcome: outcomeAborted, Reason: req.GetReason()}.Event())
	}
	if p.StepOpen() {
		b.add(sessionlog.StepEnd(p.Turn(), p.Step()))
	}
	reason := sessionlog.Completed
	if req.GetAborted() {
		reason = sessionlog.Aborted
	}
	b.add(sessionlog.TurnEnd(p.Turn(), reason))
	fx := b.effects()
	for _, c := range open {
		aborted := errAborted()
		aborted.Winner = &messages.Settlement{Outcome: outcomeAborted, By: req.GetRoot(), Reason: req.GetReason()}
		s.endWait(c.id, Ended{End{Settlement: aborted.Winner, Err: aborted}}, &fx)
	}
	s.tellInbox(&fx, TurnEnded{p.Turn()})
	fx.Replies = append(fx.Replies, Reply{from, &messages.EndTurnResponse{}})
	return fx
}

func (s *Session) checkNoCalls() *messages.Error {
	if open := s.fold.openCalls(); len(open) > 0 {
		return messages.Refuse(messages.CallsOpen, "%d question calls still wait, %q first", len(open), open[0].id)
	}
	return nil
}

func (s *Session) turnClosed(turn int64) *messages.Error {
	p := s.fold.progress
	if p.TurnOpen() {
		return messages.Refuse(messages.TurnClosed, "turn %d is not open in session %q; turn %d is", turn, s.id, p.Turn())
	}
	return messages.Refuse(messages.TurnClosed, "turn %d is not open in session %q; the last one was %d", turn, s.id, p.Turn())
}

func (s *Session) stepClosed(step int64) *messages.Error {
	p := s.fold.progress
	if p.StepOpen() {
		return messages.Refuse(messages.StepClosed, "step %d is not open in turn %d; step %d is", step, p.Turn(), p.Step())
	}
	return messages.Refuse(messages.StepClosed, "no step is open in turn %d; the last one was %d", p.Turn(), p.Step())
}

// take adds the deletions that lift messages out of their lists.
func (s *Session) take(b *batch, ids []string) []sessionlog.Message {
	splices, taken, err := b.f.lists.Take(ids...)
	if err != nil {
		panic("actors: messages were checked and are gone: " + err.Error())
	}
	for _, sp := range splices {
		b.add(sp.Event())
	}
	return taken
}

func userMessage(m sessionlog.Message) sessionlog.Event {
	return sessionlog.NewEvent(sessionlog.TypeUserMessage, m.Raw).Appended()
}

func inboxMessages(list []sessionlog.Message, target sessionlog.Target) []*messages.InboxMessage {
	out := make([]*messages.InboxMessage, len(list))
	for i, m := range list {
		out[i] = &messages.InboxMessage{Id: m.ID, List: string(target), ReplyTo: m.ReplyTo, Json: string(m.Raw), Text: m.Text()}
	}
	return slices.Clip(out)
}
