package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// program runs a party's acts from where it stands.
func (p *party) program(l *Loop) {
	if run := p.w.programs[p.name]; run != nil {
		run(l)
		return
	}
	switch p.plan.Kind {
	case AgentParty:
		p.agent(l)
	case PersonParty:
		p.person(l)
	case ClientParty:
		p.client(l)
	}
}

// agent is a scripted agent. A process that comes back attaches as the same
// root and repeats the calls that it made: it has kept their attempts.
func (p *party) agent(l *Loop) {
	if _, attached := p.attach(l).(*messages.AttachResponse); !attached {
		return
	}
	started := map[string]*rpc{}
	for p.at < len(p.plan.Acts) {
		act := p.plan.Acts[p.at]
		p.at++
		p.agentDoes(l, act, started)
	}
	l.until(func() bool { return allFinal(started) }, 120_000)
}

// listensMax is how long an agent waits for a result.
const listensMax = 5 * time.Minute

func (p *party) attach(l *Loop) messages.Message {
	told := l.do(&messages.AttachRequest{Session: p.session, Root: p.root, Owner: p.owner})
	if r, ok := told.(*messages.AttachResponse); ok {
		p.turn, p.step = r.GetTurn(), r.GetStep()
		if !r.GetTurnOpen() {
			p.step = 0
		}
	}
	return told
}

func allFinal(started map[string]*rpc) bool {
	for _, r := range started {
		if !r.final && !r.left {
			return false
		}
	}
	return true
}

// Verbs of agents.
const (
	doWait     = "wait"     // for=
	doUntil    = "until"    // for=: since the start
	doTurn     = "turn"     // begins a turn and its first step, or the turn alone
	doEnd      = "end"      // ends the step and the turn
	doAbort    = "abort"    // ends the turn, and what is open in it
	doAsk      = "ask"      // asks and waits for the result
	doStart    = "start"    // asks, and goes on
	doAwait    = "await"    // waits for the result of what was started
	doAgain    = "again"    // asks the same under a new attempt, as a client that lost its response
	doLeave    = "leave"    // stops listening
	doUnhear   = "unhear"   // its request ends before its result
	doFinish   = "finish"   // a program ends, and what it asked is heard no more
	doWithdraw = "withdraw" // takes a question back
	doTake     = "take"     // admits what waits, in a turn of its own
	doStep     = "step"     // admits with the next step
	doMark     = "mark"     // marks for the turn, and does not admit
	doAdmit    = "admit"    // admits what it has marked
	doClaim    = "claim"    // marks and admits
	doCollect  = "collect"  // lists with a receipt
	doForget   = "forget"   // lists, and loses the list
	doReceive  = "receive"  // says that a call's result has arrived
	doListen   = "listen"   // for=: until a message waits
	doCrash    = "crash"    // for=: comes back after it
	doAttach   = "attach"   // again
)

func (p *party) agentDoes(l *Loop, act Act, started map[string]*rpc) {
	s, root := p.session, p.root
	switch act.Verb {
	case doWait:
		l.sleep(act.For.Milliseconds())
	case doUntil:
		l.sleep(max(0, act.For.Milliseconds()-p.w.now))
	case doTurn:
		if r, ok := l.do(&messages.BeginTurnRequest{Session: s, Root: root, Turn: p.turn + 1}).(*messages.BeginTurnResponse); ok {
			p.turn, p.step = r.GetTurn(), 0
			if act.With != "alone" {
				p.nextStep(l)
			}
		}
	case doStep:
		if p.step == 0 {
			p.nextStep(l)
			return
		}
		l.do(&messages.EndStepRequest{Session: s, Root: root, Turn: p.turn, Step: p.step})
		p.nextStep(l)
	case doEnd, doAbort:
		if act.Verb == doEnd && p.step > 0 {
			l.do(&messages.EndStepRequest{Session: s, Root: root, Turn: p.turn, Step: p.step})
		}
		l.do(&messages.EndTurnRequest{Session: s, Root: root, Turn: p.turn, Aborted: act.Verb == doAbort})
		p.step = 0
	case doAsk, doStart, doAgain:
		r := l.start(p.asking(act))
		started[act.Call] = r
		if act.Verb != doStart {
			l.until(func() bool { return r.final || r.left }, listensMax.Milliseconds())
		}
	case doAwait:
		if r := started[act.Call]; r != nil {
			l.until(func() bool { return r.final || r.left }, listensMax.Milliseconds())
		}
	case doLeave:
		if r := started[act.Call]; r != nil {
			r.said.Left = !r.final
			r.leave()
		}
	case doUnhear:
		l.do(&messages.EndForegroundRequest{Session: s, CallId: act.Call, Attempt: p.attempts[act.Call], Reason: "its request ended"})
	case doFinish:
		for _, call := range slices.Sorted(maps.Keys(p.attempts)) {
			if parent, ok := sessionlog.ParentOf(call); ok && parent == act.Call {
				l.do(&messages.EndForegroundRequest{Session: s, CallId: call, Attempt: p.attempts[call], Reason: "its program ended"})
			}
		}
	case doWithdraw:
		l.do(&messages.WithdrawQuestionRequest{Session: s, Root: root, CallId: act.Call, By: root, Reason: "no longer needed"})
	case doTake:
		p.take(l)
	case doMark:
		for _, id := range p.mark(l) { // a session that began anew hands it out again
			if !slices.Contains(p.marked, id) {
				p.marked = append(p.marked, id)
			}
		}
	case doAdmit:
		p.admit(l, p.marked)
		p.marked = nil
	case doClaim:
		p.admit(l, p.mark(l))
	case doCollect, doForget:
		p.collect(l, act)
	case doReceive:
		l.do(&messages.AcknowledgeRequest{Session: s, CallId: act.Call})
	case doListen:
		p.listen(l, act.For)
	case doAttach:
		p.attach(l)
	case doCrash:
		p.w.soon(func() { p.crashFor(act.For) })
		l.sleep(-1)
	default:
		panic("simulation: an agent cannot " + act.Verb)
	}
}

func (p *party) nextStep(l *Loop) {
	if r, ok := l.do(&messages.BeginStepRequest{Session: p.session, Root: p.root, Turn: p.turn, Step: p.step + 1}).(*messages.BeginStepResponse); ok {
		p.step = r.GetStep()
	}
}

// asking is the command of an ask. What a call asks is in its name.
func (p *party) asking(act Act) *messages.AskRequest {
	id := act.Call // the tool call's; asked again it is another call
	switch {
	case act.Verb == doAgain && act.In != "":
		id = sessionlog.SubCallID(act.In, 100+len(p.attempts))
	case act.Verb == doAgain:
		id += "'" + fmt.Sprint(len(p.attempts))
	}
	attempt := p.attempts[id]
	if attempt == "" {
		attempt = fmt.Sprintf("%s/%s/%d", p.root, act.Call, len(p.attempts))
		p.attempts[id] = attempt
	}
	if strings.Contains(act.With, "anew") {
		attempt = p.root + "/" + act.Call + "/" + p.w.newID("anew")
		p.attempts[act.Call] = attempt
	}
	timeout := int64(-1)
	if act.For >= 0 {
		timeout = int64(act.For.Seconds())
	}
	call := act.Call
	ask := &messages.AskRequest{Session: p.session, Root: p.root, Attempt: attempt, CallId: id, AnswererPresent: true}
	ask.Arguments = fmt.Sprintf(`{"questions":[{"id":"q","question":"May I do %s?","options":[{"label":"Yes"},{"label":"No"}]}],"timeout":%d}`, call, timeout)
	if strings.Contains(act.With, "two") {
		ask.Arguments = fmt.Sprintf(`{"questions":[{"id":"q","question":"May I do %s?"},{"id":"r","question":"When?"}],"timeout":%d}`, call, timeout)
	}
	if act.In != "" {
		ask.ParentCallId, ask.AssistantMessage = act.In, runsCode(sessionlog.RootOf(act.In))
	}
	if strings.Contains(act.With, "legacy") {
		ask.Mode = messages.Mode_MODE_LEGACY
	}
	if strings.Contains(act.With, "watched") || act.Verb == doAgain {
		ask.Receipt, ask.Join = true, true
	}
	if strings.Contains(act.With, "live") {
		ask.Live = p.alive()
	}
	if strings.Contains(act.With, "absent") && ask.GetMode() != messages.Mode_MODE_LEGACY {
		ask.AnswererPresent = false
	}
	if strings.Contains(act.With, "hurried") {
		ask.WaitMaxMs = hurriedMS
	}
	if p.step > 0 {
		ask.Turn, ask.Step = p.turn, p.step
	}
	return ask
}

// hurriedMS is how long a client lets a call run that is in a hurry.
const hurriedMS = 900

// alive are the attempts of the requests that this party still waits for.
func (p *party) alive() (attempts []string) {
	for _, r := range p.rpcs {
		if ask, ok := r.cmd.(*messages.AskRequest); ok && !r.final && !r.left {
			attempts = append(attempts, ask.GetAttempt())
		}
	}
	return attempts
}

// listen waits until a message waits, but no longer than this.
func (p *party) listen(l *Loop, d time.Duration) {
	r := l.start(&messages.AwaitInboxRequest{Session: p.session, Root: p.root})
	if !l.until(func() bool { return r.final }, d.Milliseconds()) {
		r.said.Left = true
		r.leave()
	}
}

// runsCode is a model's message that makes a call to run code in.
func runsCode(call string) string {
	return fmt.Sprintf(`{"id":"said-%s","role":"assistant","content":[{"type":"tool-call","id":%q,"name":"run_code","arguments":"{}"}]}`, call, call)
}

// take admits what waits by name, so that a repeat is harmless.
func (p *party) take(l *Loop) {
	r, ok := l.do(&messages.AwaitInboxRequest{Session: p.session, Root: p.root, Now: true}).(*messages.AwaitInboxResponse)
	if !ok || len(r.GetMessageIds()) == 0 {
		return
	}
	l.do(&messages.AdmitMessagesRequest{Session: p.session, Root: p.root, MessageIds: r.GetMessageIds()})
}

// mark marks what waits for the turn, and returns what it was handed.
func (p *party) mark(l *Loop) (ids []string) {
	cmd := &messages.ClaimMessagesRequest{Session: p.session, Root: p.root, Turn: p.turn, FirstStep: p.step == 0}
	if r, ok := l.do(cmd).(*messages.ClaimMessagesResponse); ok {
		for _, m := range r.GetMessages() {
			ids = append(ids, m.GetId())
		}
	}
	return ids
}

// admit admits what was marked for the turn.
func (p *party) admit(l *Loop, ids []string) {
	if len(ids) > 0 {
		l.do(&messages.AdmitMessagesRequest{Session: p.session, Root: p.root, Turn: p.turn, MessageIds: ids})
	}
}

func (p *party) collect(l *Loop, act Act) {
	after := p.token
	if act.With == "foreign" {
		after = p.w.tokenBeside(p.session)
	}
	r, ok := l.do(&messages.CollectRepliesRequest{Session: p.session, Root: p.root, After: after}).(*messages.CollectRepliesResponse)
	if ok && act.Verb != doForget {
		p.token = r.GetToken()
	}
}

// tokenBeside is the first token that was told of a list of another session; empty:
// there is none.
func (w *World) tokenBeside(session string) string {
	for _, s := range w.History.Said {
		if s.Cmd.GetSession() == session || s.Answer == nil {
			continue
		}
		if r, ok := s.Answer.Msg.(*messages.CollectRepliesResponse); ok && r.GetToken() != "" {
			return r.GetToken()
		}
	}
	return ""
}

// Verbs of people.
const (
	doFind     = "find"     // waits until a call can be answered, for= at most
	doOpen     = "open"     // opens a claim
	doRelease  = "release"  // lets it go
	doCut      = "cut"      // its stream breaks
	doSubmit   = "submit"   // answers
	doExpire   = "expire"   // its countdown ended
	doPass     = "pass"     // hands over
	doDismiss  = "dismiss"  // closes a blocking question
	doTakeBack = "takeback" // takes the queued reply back
	doSteer    = "steer"    // says something
	doMove     = "move"     // goes to the next host
)

// person is a scripted person at a client.
func (p *party) person(l *Loop) {
	for p.at < len(p.plan.Acts) {
		act := p.plan.Acts[p.at]
		p.at++
		p.personDoes(l, act)
	}
	for _, c := range p.openHolds() {
		c.release(false)
	}
}

func (p *party) personDoes(l *Loop, act Act) {
	switch act.Verb {
	case doWait:
		l.sleep(act.For.Milliseconds())
	case doUntil:
		l.sleep(max(0, act.For.Milliseconds()-p.w.now))
	case doFind:
		p.find(l, act)
	case doOpen:
		if c := p.holds[act.Call]; c == nil || c.over {
			c = p.open(act.Call)
			p.holds[act.Call] = c
			l.until(func() bool { return c.over || c.seen.Framed > 0 }, 5_000)
		}
	case doRelease, doCut:
		if c := p.holds[act.Call]; c != nil {
			c.release(act.Verb == doCut)
		}
	case doSubmit:
		p.submit(l, act)
	case doExpire:
		l.do(&messages.ExpireRequest{Session: p.session, CallId: act.Call, Claim: p.claimOf(act.Call), By: p.name})
	case doPass:
		l.do(&messages.DelegateRequest{Session: p.session, CallId: act.Call, Claim: p.claimOf(act.Call), By: p.name})
	case doDismiss:
		l.do(&messages.DismissRequest{Session: p.session, CallId: act.Call, By: p.name})
	case doTakeBack:
		p.takeBack(l, act)
	case doSteer:
		p.steer(l, act)
	case doMove:
		p.host = (p.host + 1) % len(p.w.hosts)
	case doCrash:
		p.w.soon(func() { p.crashFor(act.For) })
		l.sleep(-1)
	default:
		panic("simulation: a person cannot " + act.Verb)
	}
}

// longWords are so many that a list of replies has room for four who speak at length.
const longWords = 4_600

// steer says something, for the next step or for the next turn.
func (p *party) steer(l *Loop, act Act) {
	cmd := &messages.SteerRequest{Session: p.session, MessageId: p.w.newID("said-"), Text: "a word of " + p.name, By: p.name}
	if strings.Contains(act.With, "long") {
		cmd.Text += strings.Repeat(", and another", longWords)
	}
	if strings.Contains(act.With, "later") {
		cmd.List = string(sessionlog.NextTurn)
	}
	l.do(cmd)
}

func (p *party) claimOf(call string) string {
	if c := p.holds[call]; c != nil && c.name != "" {
		return c.name
	}
	return "claim/none"
}

// find looks until a call can be answered.
func (p *party) find(l *Loop, act Act) {
	deadline := p.w.now + act.For.Milliseconds()
	for p.w.now < deadline {
		if row := p.w.row(p.session, act.Call); row != "" {
			return
		}
		l.sleep(50)
	}
}

// sharedID is the submission id of clients that have but one.
const sharedID = "sub-shared"

// submit answers, under one id for a call until it is refused: a repeat is the
// same answer.
func (p *party) submit(l *Loop, act Act) {
	id := p.subs[act.Call]
	if id == "" || strings.Contains(act.With, "new") {
		id = p.w.newID("sub-")
		p.subs[act.Call] = id
	}
	text := "answer <" + id + ">"
	if strings.Contains(act.With, "shared") {
		id = sharedID
		text = "answer of " + p.name + " to <" + act.Call + ">"
	}
	req := &messages.SubmitRequest{Session: p.session, CallId: act.Call, SubmissionId: id, By: p.name, Door: "simulation",
		Answers: []*messages.Answer{{Id: "q", Custom: &text}}}
	if strings.Contains(act.With, "two") {
		req.Answers = append(req.Answers, &messages.Answer{Id: "r", Selected: []string{"now"}})
	}
	if strings.Contains(act.With, "reject") {
		req.OnExpired = messages.OnExpired_ON_EXPIRED_REJECT
	}
	l.do(req)
}

// takeBack withdraws the reply that this person's answer became.
func (p *party) takeBack(l *Loop, act Act) {
	for _, s := range p.w.History.Said {
		sub, ok := s.Cmd.(*messages.SubmitRequest)
		if !ok || s.Party != p.name || sub.GetCallId() != act.Call || s.Answer == nil {
			continue
		}
		if r, ok := s.Answer.Msg.(*messages.SubmitResponse); ok && r.GetSettlement().GetMessageId() != "" {
			l.do(&messages.WithdrawMessageRequest{Session: p.session, MessageId: r.GetSettlement().GetMessageId(), By: p.name})
			return
		}
	}
}
