package actors

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Session is the only writer of one session's log. It holds the fold, checks
// every precondition again before it records, and routes to a part only what
// the fold leaves open.
//
//	command ──▶ fold settles it? ──▶ reply
//	               │ no
//	               ├── the session decides: append, then reply
//	               └── a part decides: wait or inbox ──Record──▶ check again,
//	                   append ──Recorded──▶ the part tells everybody
type Session struct {
	rules *Rules
	id    string

	// Folded. Only Apply changes these.
	fold       fold
	version    int // of the log's generation; -1: the session does not exist yet
	lastTime   int64
	root       sessionlog.RootRecord
	past       *past
	admitted   []admission // by the latest turn
	begins     bool        // the last event began a step, or was admitted with it
	deliveries *deliveries

	// Volatile.
	ahead       *ahead
	parts       []waitPart
	inbox       *inboxPart
	incarnation uint32
	idleGen     uint32
	idling      bool
	activeAt    int64
}

// admission is a message that was taken into the history, kept for the turn so
// that a repeated request gets it again.
type admission struct {
	step int64 // that took it as it began; 0: it was asked for later
	msg  sessionlog.Message
	owed receipt // of the call it answers
}

type waitPart struct {
	id    PartID
	sent  uint64
	quiet bool // it said so, and has been told nothing since
}

type inboxPart struct {
	id   PartID
	sent uint64
}

// NewSession folds a session from its log. header is nil for one that does not
// exist yet. Its error is SESSION_CORRUPT, with the record that does not fit.
func NewSession(rules *Rules, id string, header *sessionlog.Header, events []sessionlog.Event) (*Session, error) {
	s := &Session{rules: rules, id: id, version: -1, fold: newFold(sessionlog.V3, 0)}
	if header != nil {
		s.version = header.Version
		s.fold = newFold(header.Version, sessionlog.Inherited(*header, events))
	}
	for _, ev := range events {
		s.Apply(ev)
	}
	if s.fold.err != nil {
		return nil, messages.Refuse(messages.SessionCorrupt, "session %q: %v", id, s.fold.err)
	}
	return s, nil
}

// Next is the sequence number the next event will have.
func (s *Session) Next() int64 { return s.fold.next }

// Questions is the projection as the session sees it.
func (s *Session) Questions() sessionlog.Questions { return s.fold.questions }

// Lists are the messages not yet admitted.
func (s *Session) Lists() sessionlog.Lists { return s.fold.lists }

// Apply folds one durable event.
func (s *Session) Apply(ev sessionlog.Event) {
	before, foreseen := s.fold, false
	if s.fold, foreseen = s.takeAhead(ev); !foreseen {
		s.fold = before.with(ev)
	}
	s.lastTime = ev.Time
	if ev.Seq < s.fold.inherited {
		return
	}
	s.begins = ev.Type == sessionlog.TypeStepStart || s.begins && ev.Type == sessionlog.TypeUserMessage
	switch ev.Type {
	case sessionlog.TypeRoot:
		r, err := sessionlog.DecodeRoot(ev)
		s.fold.note(err)
		s.root = r
		if s.version == -1 {
			s.version = sessionlog.V3
		}
	case sessionlog.TypeWait:
		if r, err := sessionlog.DecodeWait(ev); err == nil {
			s.deliveries.settle(r.CallID) // what it asked before is no question any more
		}
	case sessionlog.TypeSettled:
		if r, err := sessionlog.DecodeSettled(ev); err == nil {
			s.remember().settle(r, ev.Time)
			s.deliveries.over(r)
		}
	case sessionlog.TypeToolResult, sessionlog.TypeDispatch:
		s.applyResult(before, ev)
	case sessionlog.TypeDelivered:
		s.applyDelivered(ev)
	case sessionlog.TypeTurnStart:
		s.admitted = nil
	case sessionlog.TypeUserMessage:
		if m, err := sessionlog.ParseMessage(ev.Data); err == nil {
			step := int64(0)
			if s.begins {
				step = s.fold.progress.Step()
			}
			s.admitted = append(s.admitted, admission{step, m, s.deliveries.owed(m.ReplyTo)})
			s.deliveries.settle(m.ReplyTo)
		}
	}
}

// remember returns the session's past, to add to it.
func (s *Session) remember() *past {
	if s.past == nil {
		s.past = &past{}
	}
	return s.past
}

func (s *Session) applyResult(before fold, ev sessionlog.Event) {
	decode, nested := sessionlog.DecodeResult, ev.Type == sessionlog.TypeDispatch
	if nested {
		decode = sessionlog.DecodeDispatch
	}
	r, err := decode(ev)
	if err != nil {
		return // of an older generation, which has no waits
	}
	if c, open := before.openWaitOf(r.CallID); open && c.nested == nested {
		s.remember().keep(attemptKey{c.wait.attempt, r.CallID}, result{c.asks, r})
		if c.wait.receipt != nil {
			s.oweResult(before, c, r, ev)
		}
	}
}

// Resume rebuilds the waits that the log says are open. Activation alone never
// repairs a call that has its wait recorded.
func (s *Session) Resume(now Now) Effects {
	var fx Effects
	for _, c := range s.fold.openCalls() {
		s.seedWait(c, WaitSeed{Rebuilt: true}, &fx)
	}
	s.activeAt = now.Mono
	s.watchIdle(now, &fx)
	return fx
}

// Step decides one input.
func (s *Session) Step(now Now, in Envelope) Effects {
	fx := s.decide(now, in)
	if _, isTimer := in.Msg.(Fired); !isTimer {
		s.activeAt = now.Mono
	}
	s.watchIdle(now, &fx)
	return fx
}

func (s *Session) decide(now Now, in Envelope) Effects {
	if cmd, ok := in.Msg.(messages.Command); ok {
		if err := s.serves(cmd); err != nil {
			return s.refuse(in.From, err)
		}
	}
	switch m := in.Msg.(type) {
	case *messages.AttachRequest:
		return s.attach(now, in.From, m)
	case *messages.BeginTurnRequest:
		return s.beginTurn(now, in.From, m)
	case *messages.BeginStepRequest:
		return s.beginStep(now, in.From, m)
	case *messages.EndStepRequest:
		return s.endStep(now, in.From, m)
	case *messages.EndTurnRequest:
		return s.endTurn(now, in.From, m)
	case *messages.AskRequest:
		return s.ask(now, in.From, m)
	case *messages.EndForegroundRequest:
		return s.endForeground(in.From, m)
	case *messages.AskDetachRequest:
		return s.detach(in.From, m)
	case *messages.SubmitRequest:
		return s.submit(in.From, m, m.GetCallSeq())
	case *messages.ExpireRequest:
		return s.toWait(in.From, m.GetCallId(), WaitExpire{in.From, m})
	case *messages.DelegateRequest:
		return s.toWait(in.From, m.GetCallId(), WaitDelegate{in.From, m})
	case *messages.DismissRequest:
		return s.dismiss(in.From, m)
	case *messages.WithdrawQuestionRequest:
		return s.withdrawQuestion(now, in.From, m)
	case *messages.SteerRequest:
		return s.steer(now, in.From, m)
	case *messages.ClaimMessagesRequest:
		return s.claimMessages(in.From, m)
	case *messages.AdmitMessagesRequest:
		return s.admitMessages(now, in.From, m)
	case *messages.WithdrawMessageRequest:
		return s.withdrawMessage(now, in.From, m)
	case *messages.AwaitInboxRequest:
		return s.awaitInbox(now, in.From, m)
	case *messages.CollectRepliesRequest:
		return s.collect(now, in.From, m)
	case *messages.AcknowledgeRequest:
		return s.acknowledge(now, in.From, m)
	case *messages.ClaimOpen:
		return s.openClaim(in.From, m)
	case *messages.ClaimRelease:
		return s.closeClaim(in.From, m)
	}
	return s.decideLocal(now, in)
}

// decideLocal takes what comes from parts and from the shell.
func (s *Session) decideLocal(now Now, in Envelope) Effects {
	switch m := in.Msg.(type) {
	case Record:
		if m.Outcome.Kind == OutcomeReply {
			return s.recordReply(now, m)
		}
		return s.recordOutcome(now, m)
	case Reroute:
		return s.submit(m.From, m.Req, m.Seq)
	case Quiet:
		if i := s.partIndex(m.Part.Call); i >= 0 && s.parts[i].id == m.Part {
			s.parts[i].quiet = m.Quiet && m.Seen == s.parts[i].sent
		}
	case Marked:
		return s.marked(m)
	case AdmitChecked:
		if m.Err != nil {
			return s.refuse(m.From, m.Err)
		}
		return s.admit(now, m.From, m.Req)
	case PartIdle:
		return s.partIdle(m)
	case PartDied:
		return s.partDied(m)
	case Fired:
		return s.fired(now, m)
	}
	return Effects{} // Wake, and whatever a newer version says
}

// serves refuses what a session cannot take at all: a log that does not exist,
// unless somebody attaches, and one of a generation that is only read.
func (s *Session) serves(cmd messages.Command) *messages.Error {
	_, attaching := cmd.(*messages.AttachRequest)
	switch {
	case s.version == -1 && !attaching:
		return messages.Refuse(messages.NotFound, "there is no session %q", s.id)
	case s.version != -1 && s.version != sessionlog.V3:
		return messages.Refuse(messages.SessionGeneration, "session %q is of log generation v%d", s.id, s.version)
	}
	return nil
}

// refuse answers with a no. It leaves only after an empty append has proved that
// this activation still owns the session: where that went on without us, the answer
// may be yes, and nothing else that is written here would show it. What is decided
// on the request alone, or on what never changes, needs no proof.
func (s *Session) refuse(to Addr, err *messages.Error) Effects {
	fx := Effects{Proof: true, Replies: []Reply{{to, err.Wire()}}}
	switch err.Code {
	case messages.BadRequest, messages.InvalidArgs, messages.EmptyQuestions, messages.BadTimeout, messages.BadIntent, messages.SessionGeneration:
		fx.Proof = false
	default:
	}
	return fx
}

// reply answers from the fold, after a proof that the fold is still the truth.
func (s *Session) reply(to Addr, m messages.Message) Effects {
	return Effects{Proof: true, Replies: []Reply{{to, m}}}
}

// caller is who speaks, as the rules see it.
func (s *Session) caller(root string) Caller {
	switch {
	case s.root.RootID == "" || root == "":
		return CallerUnknown
	case s.root.RootID != root:
		return CallerStale
	case s.root.Owner != "":
		return CallerChild
	}
	return CallerRoot
}

// checkRoot refuses all but the live agent of the session. An owned child may
// work in its session; it only may not ask.
func (s *Session) checkRoot(root string) *messages.Error {
	if c := s.caller(root); c != CallerRoot && c != CallerChild {
		return s.notLive(root)
	}
	return nil
}

func (s *Session) notLive(root string) *messages.Error {
	if s.root.RootID == "" {
		return messages.Refuse(messages.CallerNotLive, "no agent is attached to session %q", s.id)
	}
	return messages.Refuse(messages.CallerNotLive, "%q is not the live agent of session %q; %q is", root, s.id, s.root.RootID)
}

// Parts.

func (s *Session) partIndex(call string) int {
	return slices.IndexFunc(s.parts, func(p waitPart) bool { return p.id.Call == call })
}

// seedWait spawns the wait of an open call, in its next incarnation.
func (s *Session) seedWait(c call, seed WaitSeed, fx *Effects) {
	s.incarnation++
	id := PartID{Kind: WaitPart, Call: c.id, Incarnation: s.incarnation}
	seed.Part, seed.Seq, seed.Deadline, seed.Timed = id, c.seq, c.wait.deadline, c.wait.deadline != 0
	fx.Parts = append(fx.Parts, ToPart{Part: id, Seed: NewWait(s.rules, seed)})
	if i := s.partIndex(c.id); i >= 0 {
		s.parts[i] = waitPart{id: id}
		return
	}
	s.parts = append(s.parts, waitPart{id: id})
}

// endWait gives a wait its last message and stops it.
func (s *Session) endWait(call string, last Local, fx *Effects) {
	if i := s.partIndex(call); i >= 0 {
		id := s.parts[i].id
		fx.Parts = append(fx.Parts, ToPart{Part: id, Msg: last}, ToPart{Part: id, Stop: true})
		s.parts = slices.Delete(s.parts, i, i+1)
	}
}

// toWait routes to the open wait of a call; without one the fold has the answer.
func (s *Session) toWait(from Addr, call string, m Local) Effects {
	if i := s.partIndex(call); i >= 0 {
		return Effects{Parts: []ToPart{s.tellWait(i, m)}}
	}
	return s.refuse(from, s.over(call))
}

// tellWait speaks to a wait, which from now on is not quiet until it says so.
func (s *Session) tellWait(i int, m Local) ToPart {
	p := &s.parts[i]
	p.sent++
	p.quiet = false
	return ToPart{Part: p.id, Msg: m}
}

// over is the refusal for a call that is not open: who won, or that nobody knows it.
func (s *Session) over(call string) *messages.Error {
	if r, ok := s.past.winner(call); ok {
		w := settlement(r)
		if w.Outcome == outcomeQueued { // and admitted since, or the call would still be there
			w.Outcome = outcomeAnswered
		}
		return &messages.Error{Code: messages.Settled, Text: settledText(w), Winner: w}
	}
	if _, ok := s.fold.questions.Call(call); ok {
		return messages.Refuse(messages.NotAnswerable, "call %q is not waiting in the foreground", call)
	}
	return messages.Refuse(messages.NotAnswerable, "session %q has no question call %q that can be answered", s.id, call)
}

// toInbox routes to the inbox part, which exists only while it holds something.
func (s *Session) toInbox(fx *Effects, m Local) {
	if s.inbox == nil {
		s.incarnation++
		s.inbox = &inboxPart{id: PartID{Kind: InboxPart, Incarnation: s.incarnation}}
		fx.Parts = append(fx.Parts, ToPart{Part: s.inbox.id, Seed: NewInbox(s.rules, s.inbox.id)})
	}
	s.inbox.sent++
	fx.Parts = append(fx.Parts, ToPart{Part: s.inbox.id, Msg: m})
}

// tellInbox tells the inbox part what happened, if there is one to care.
func (s *Session) tellInbox(fx *Effects, m Local) {
	if s.inbox != nil {
		s.toInbox(fx, m)
	}
}

func (s *Session) partIdle(m PartIdle) Effects {
	if s.inbox == nil || s.inbox.id != m.Part || s.inbox.sent != m.Seen {
		return Effects{} // something is on its way to it
	}
	fx := Effects{Parts: []ToPart{{Part: m.Part, Stop: true}}}
	s.inbox = nil
	return fx
}

// partDied replaces a part that crashed, from the fold. Its clients hear from
// the shell that the session lost something, and ask again.
func (s *Session) partDied(m PartDied) Effects {
	var fx Effects
	if m.Part.Kind == InboxPart {
		if s.inbox != nil && s.inbox.id == m.Part {
			s.inbox = nil
		}
		return fx
	}
	i := s.partIndex(m.Part.Call)
	if i < 0 || s.parts[i].id != m.Part {
		return fx // a successor is there, or the call is over
	}
	if c, open := s.fold.openWaitOf(m.Part.Call); open {
		s.seedWait(c, WaitSeed{Rebuilt: true}, &fx)
	} else {
		s.parts = slices.Delete(s.parts, i, i+1)
	}
	return fx
}

// Passivation.

// idle: nobody waits for this session, and nothing is being decided.
func (s *Session) idle() bool {
	return s.inbox == nil && !slices.ContainsFunc(s.parts, func(p waitPart) bool { return !p.quiet })
}

func (s *Session) watchIdle(now Now, fx *Effects) {
	if s.rules.PassivateAfterMS <= 0 || s.idle() == s.idling {
		return
	}
	s.idling = !s.idling
	s.idleGen++
	after := int64(-1)
	if s.idling {
		after = s.rules.PassivateAfterMS
	}
	fx.Timers = append(fx.Timers, Timer{Name: "idle", After: after, Gen: s.idleGen})
}

func (s *Session) fired(now Now, m Fired) Effects {
	if m.Gen != s.idleGen || !s.idling {
		return Effects{}
	}
	if left := s.activeAt + s.rules.PassivateAfterMS - now.Mono; left > 0 {
		s.idleGen++
		return Effects{Timers: []Timer{{Name: "idle", After: left, Gen: s.idleGen}}}
	}
	return Effects{Passivate: true}
}

// Claims.

// openClaim opens a claim, or renews its lease. Each time it is proved that the
// wait is still ours to be held, or over: a claim on what has ended elsewhere would
// hold for nobody, and one that is told of no wait leaves an open one unheld.
func (s *Session) openClaim(from Addr, m *messages.ClaimOpen) Effects {
	c, open := s.fold.openWaitOf(m.GetCallId())
	another := open && m.GetCallSeq() != 0 && m.GetCallSeq() != c.seq // what it holds has ended, and its id was asked again
	if i := s.partIndex(m.GetCallId()); i >= 0 && !another {
		return Effects{Proof: true, Parts: []ToPart{s.tellWait(i, OpenClaim{from, m.GetLeaseMs()})}}
	}
	reason := "unknown" // an unknown or finished wait gives an empty stream, not an error
	if _, ok := s.past.winner(m.GetCallId()); ok || another {
		reason = "settled"
	}
	return Effects{Proof: true, Sends: []Send{{To: from, Msg: &messages.ClaimEnd{Reason: reason}}}}
}

func (s *Session) closeClaim(from Addr, m *messages.ClaimRelease) Effects {
	if i := s.partIndex(m.GetCallId()); i >= 0 {
		return Effects{Parts: []ToPart{s.tellWait(i, CloseClaim{From: from, Lost: m.GetLost()})}}
	}
	return Effects{}
}
