package panics

import (
	"fmt"
	"slices"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// script is one client's day, told once or twice on the same session. It never
// asks a machine how it is: what it does next follows from what it was told.
type script struct {
	*world
	day  int
	turn int64
	root string
}

// play runs the scenario, on a second day too while traps are left, and stops
// the node with a question still open.
func play(w *world, days int) {
	w.t.Helper()
	s := &script{world: w}
	w.call(&messages.AttachRequest{Session: calmSession, Root: "root-calm"})
	for s.day = 1; s.day <= days || s.day == 2 && len(w.traps.notSprung()) > 0; s.day++ {
		s.attach("a")
		s.collect()
		s.beginTurn()
		s.answeredInTime()
		s.heldPastItsDeadline()
		s.lateReplies()
		s.endTurn(false)
		s.beginTurn()
		s.legacy()
		s.expired()
		s.takenBack()
		s.cancelledTurn()
		s.bell()
		s.refused()
		s.takeover()
		s.slowSession()
		s.asleep()
		s.handedOut()
	}
	s.admitAll()
	last := w.start(s.asking("last", forever))
	last.open()
	bell := w.start(&messages.AwaitInboxRequest{Session: mainSession, Root: s.root})
	hold := w.claim(mainSession, "c-last"+s.suffix())
	hold.held()
	w.close()
	for _, c := range []*call{last, bell} {
		if code := codeOf(c.answer()); code != messages.Unavailable {
			w.t.Errorf("the node closed and told %T %q", c.cmd, code)
		}
	}
	hold.ended()
}

func (s *script) suffix() string            { return fmt.Sprint("-", s.day) }
func (s *script) callID(name string) string { return "c-" + name + s.suffix() }

const forever = -1

// asking is a question without a turn of the agent's own; in names the open one.
func (s *script) asking(name string, timeout int) *messages.AskRequest {
	return &messages.AskRequest{Session: mainSession, Root: s.root, Attempt: "a-" + name + s.suffix(), CallId: s.callID(name),
		Arguments: fmt.Sprintf(`{"questions":[{"id":"q","question":"Deploy %s?"}],"timeout":%d}`, name, timeout)}
}

func (s *script) in(ask *messages.AskRequest) *messages.AskRequest {
	ask.Turn, ask.Step = s.turn, 1
	return ask
}

func legacy(ask *messages.AskRequest) *messages.AskRequest {
	ask.Mode, ask.AnswererPresent = messages.Mode_MODE_LEGACY, true
	return ask
}

// watched is a question whose request may be lost.
func watched(ask *messages.AskRequest) *messages.AskRequest {
	ask.Receipt, ask.Join, ask.Client, ask.Correlation = true, true, "client", "tool-"+ask.GetAttempt()
	return ask
}

// submission is an answer with a text that no other message has.
func (s *script) submission(id, name string) *messages.SubmitRequest {
	text := secret(id + s.suffix())
	return &messages.SubmitRequest{Session: mainSession, CallId: s.callID(name), SubmissionId: id + s.suffix(), By: "ann", Door: "test",
		Answers: []*messages.Answer{{Id: "q", Custom: &text}}}
}

func (s *script) steering(id string) *messages.SteerRequest {
	return &messages.SteerRequest{Session: mainSession, MessageId: id + s.suffix(), Text: secret(id + s.suffix()), By: "ann"}
}

// secret is the text that goes with an id, to be found in the log or not.
func secret(id string) string { return "text of <" + id + ">" }

// together sends commands that the session takes up one right after another:
// it is kept busy until all of them have arrived.
func (s *script) together(name string, cmds ...messages.Command) []messages.Message {
	s.t.Helper()
	holds := s.disk.stall(mainSession)
	busy := s.start(s.steering("busy-" + name))
	select {
	case <-holds:
	case <-s.ctx.Done():
		s.t.Fatal("the session never wrote")
	}
	calls := make([]*call, len(cmds))
	for i, cmd := range cmds {
		calls[i] = s.start(cmd)
	}
	s.passDoor()
	s.disk.resume()
	busy.answer()
	out := make([]messages.Message, len(calls))
	for i, c := range calls {
		out[i] = c.answer()
	}
	return out
}

// passDoor returns once the door has let out whatever was said to it before.
func (s *script) passDoor() {
	s.t.Helper()
	s.call(&messages.AttachRequest{Session: calmSession, Root: "root-calm"})
}

// attach speaks for the session from now on.
func (s *script) attach(who string) {
	s.t.Helper()
	s.root = "root-" + who + s.suffix()
	msg := s.call(&messages.AttachRequest{Session: mainSession, Root: s.root, Cwd: "/tmp"})
	if a, ok := msg.(*messages.AttachResponse); ok {
		s.turn = a.GetTurn()
		return
	}
	s.t.Fatalf("cannot attach: %v", msg)
}

func (s *script) beginTurn() {
	s.t.Helper()
	s.turn++
	s.call(&messages.BeginTurnRequest{Session: mainSession, Root: s.root, Turn: s.turn})
	s.call(&messages.BeginStepRequest{Session: mainSession, Root: s.root, Turn: s.turn, Step: 1})
}

func (s *script) endTurn(aborted bool) {
	s.t.Helper()
	if !aborted {
		s.call(&messages.EndStepRequest{Session: mainSession, Root: s.root, Turn: s.turn, Step: 1})
	}
	s.call(&messages.EndTurnRequest{Session: mainSession, Root: s.root, Turn: s.turn, Aborted: aborted})
}

// collect takes messages in by name, in a turn of its own.
func (s *script) collect() {
	s.t.Helper()
	for _, id := range []string{"early", "soon"} {
		s.call(s.steering(id))
		s.admitAll()
	}
}

// admitAll names what waits, as every door does: a request for "all" that is
// repeated after a crash finds the lists empty, and cannot tell what it took.
func (s *script) admitAll() {
	s.t.Helper()
	found, err := s.disk.Read(s.ctx, mainSession, 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	var lists sessionlog.Lists
	for _, ev := range found.Events {
		if lists, err = lists.Fold(ev); err != nil {
			s.t.Fatal(err)
		}
	}
	req := &messages.AdmitMessagesRequest{Session: mainSession, Root: s.root}
	for _, m := range slices.Concat(lists.NextStep, lists.NextTurn) {
		req.MessageIds = append(req.MessageIds, m.ID)
	}
	if len(req.GetMessageIds()) > 0 {
		s.call(req)
		s.turn++
	}
}

// answeredInTime: two subscribers and a third who leaves, a claim, and two
// people who answer at once.
func (s *script) answeredInTime() {
	s.t.Helper()
	ask := s.in(s.asking("time", 5))
	first := s.start(ask)
	first.open()
	again := s.start(ask)
	again.open()
	leaves := s.start(ask)
	leaves.open()
	hold := s.claim(mainSession, ask.GetCallId())
	hold.held()
	dropped := s.count("wait", "DropAsker")
	leaves.cancel()
	s.hope("wait", "DropAsker", dropped, nil, 0)
	s.together("time", s.submission("in-1", "time"), s.submission("in-2", "time"))
	first.result()
	again.answer()
	hold.ended()
}

// heldPastItsDeadline: the clock runs out once nobody holds the question.
func (s *script) heldPastItsDeadline() {
	s.t.Helper()
	for _, lost := range []bool{false, true} {
		name := fmt.Sprint("held-", lost)
		ask := s.start(s.in(s.asking(name, 5)))
		ask.open()
		hold := s.claim(mainSession, s.callID(name))
		hold.held()
		hold.release(lost)
		ask.result()
	}
}

// lateReplies: two people answer late at once, and the agent takes one in.
func (s *script) lateReplies() {
	s.t.Helper()
	s.together("late", s.submission("late-1", "held-false"), s.submission("late-2", "held-false"))
	s.call(s.submission("late-3", "held-true"))
	for range 2 {
		var replies []string
		msg := s.call(&messages.ClaimMessagesRequest{Session: mainSession, Root: s.root, Turn: s.turn})
		claimed, _ := msg.(*messages.ClaimMessagesResponse)
		for _, m := range claimed.GetMessages() {
			if m.GetReplyTo() != "" {
				replies = append(replies, m.GetId())
			}
		}
		if len(replies) > 0 {
			s.call(&messages.AdmitMessagesRequest{Session: mainSession, Root: s.root, Turn: s.turn, MessageIds: replies[:1]})
			s.call(&messages.AdmitMessagesRequest{Session: mainSession, Root: s.root, Turn: s.turn, MessageIds: replies[1:]})
		}
		// What was marked and not taken in is marked again.
		s.call(&messages.ClaimMessagesRequest{Session: mainSession, Root: s.root, Turn: s.turn, MessageIds: []string{"busy-late" + s.suffix()}})
	}
}

// legacy: blocking questions are closed, or passed on by the last who could answer.
func (s *script) legacy() {
	s.t.Helper()
	closed := s.start(legacy(s.in(s.asking("closed", forever))))
	closed.open()
	s.call(&messages.DismissRequest{Session: mainSession, CallId: s.callID("closed"), By: "ann"})
	closed.answer()
	passed := s.start(legacy(s.in(s.asking("passed", forever))))
	passed.open()
	hold := s.claim(mainSession, s.callID("passed"))
	hold.held()
	s.call(&messages.DelegateRequest{Session: mainSession, CallId: s.callID("passed"), Claim: hold.id(), By: "ann"})
	passed.answer()
	hold.release(false)
}

// expired: an answer that comes behind the client's own countdown is a late
// reply; taken back, its question is open again, until the agent takes it back.
func (s *script) expired() {
	s.t.Helper()
	ask := s.start(s.in(s.asking("expired", 60)))
	ask.open()
	late := s.submission("behind", "expired")
	got := s.together("expired", &messages.ExpireRequest{Session: mainSession, CallId: s.callID("expired"), By: "ann"}, late)
	ask.answer()
	if r, ok := got[1].(*messages.SubmitResponse); ok && r.GetSettlement().GetMessageId() != "" {
		take := &messages.WithdrawMessageRequest{Session: mainSession, MessageId: r.GetSettlement().GetMessageId(), By: "ann"}
		s.call(take)
		s.call(take)
	}
	s.call(late)
	s.call(&messages.WithdrawMessageRequest{Session: mainSession, MessageId: "busy-expired" + s.suffix(), By: "ann"})
	withdraw := &messages.WithdrawQuestionRequest{Session: mainSession, Root: s.root, CallId: s.callID("expired"), By: s.root}
	s.call(withdraw)
	s.call(withdraw)
	s.call(s.submission("too-late", "expired"))
}

// takenBack: the agent takes an open question back while a client holds it.
func (s *script) takenBack() {
	s.t.Helper()
	ask := s.start(s.in(s.asking("back", forever)))
	ask.open()
	hold := s.claim(mainSession, s.callID("back"))
	hold.held()
	s.call(&messages.WithdrawQuestionRequest{Session: mainSession, Root: s.root, CallId: s.callID("back"), By: s.root, Reason: "moot"})
	ask.answer()
	hold.ended()
}

// cancelledTurn: the end of a turn takes its open questions with it.
func (s *script) cancelledTurn() {
	s.t.Helper()
	ask := s.start(s.in(s.asking("cancelled", 60)))
	ask.open()
	s.call(s.steering("kept"))
	s.call(&messages.ClaimMessagesRequest{Session: mainSession, Root: s.root, Turn: s.turn})
	s.endTurn(true)
	ask.answer()
	s.beginTurn()
	s.endTurn(false)
}

// bell: one agent waits for a message, another stops waiting.
func (s *script) bell() {
	s.t.Helper()
	waits := &messages.AwaitInboxRequest{Session: mainSession, Root: s.root}
	await := s.count("inbox", "Await")
	stays := s.start(waits)
	s.hope("inbox", "Await", await, nil, 0)
	goes := s.start(waits)
	s.hope("inbox", "Await", await+1, nil, 0)
	dropped := s.count("inbox", "DropAsker")
	goes.cancel()
	s.hope("inbox", "DropAsker", dropped, nil, 0)
	s.call(s.steering("ring"))
	stays.answer()
}

// refused: what has no object is refused, and leaves no trace.
func (s *script) refused() {
	s.t.Helper()
	for range 2 {
		s.call(s.submission("nowhere", "nowhere"))
		s.call(&messages.ExpireRequest{Session: mainSession, CallId: s.callID("nowhere"), By: "ann"})
		s.call(&messages.DelegateRequest{Session: mainSession, CallId: s.callID("nowhere"), By: "ann"})
		s.call(&messages.DismissRequest{Session: mainSession, CallId: s.callID("nowhere"), By: "ann"})
		s.call(&messages.ClaimMessagesRequest{Session: mainSession, Root: s.root, Turn: s.turn + 10})
		s.call(&messages.AwaitInboxRequest{Session: mainSession, Root: "nobody"})
		s.claim(mainSession, s.callID("nowhere")).ended()
		s.claim("no-such-session", s.callID("nowhere")).ended()
	}
}

// takeover: another root ends what the first one asked, while a person answers.
func (s *script) takeover() {
	s.t.Helper()
	old := s.root
	ask := s.start(s.asking("taken", forever))
	ask.open()
	hold := s.claim(mainSession, s.callID("taken"))
	hold.held()
	s.attach("b")
	ask.answer()
	hold.ended()
	s.call(&messages.BeginTurnRequest{Session: mainSession, Root: old, Turn: s.turn + 1})
	s.call(s.submission("after", "taken"))
	s.beginTurn()
	s.endTurn(false)
}

// slowSession: a claim hears nothing from its session for too long, lets its
// client go, and is opened again.
func (s *script) slowSession() {
	s.t.Helper()
	ask := s.start(s.asking("slow", forever))
	ask.open()
	holds := s.disk.stall(mainSession)
	busy := s.start(s.steering("busy-slow"))
	select {
	case <-holds:
	case <-s.ctx.Done():
		s.t.Fatal("the session never wrote")
	}
	fired := s.count("claim", "Fired")
	hold := s.claim(mainSession, s.callID("slow"))
	s.hope("claim", "Fired", fired, s.time.Armed(), 11*time.Second)
	s.disk.resume()
	busy.answer()
	hold.held()
	s.call(&messages.WithdrawQuestionRequest{Session: mainSession, Root: s.root, CallId: s.callID("slow"), By: s.root})
	ask.answer()
	hold.ended()
}

// asleep: nobody waits, so the session is unloaded; when the question is due it
// is woken, and the agent that comes back is told.
func (s *script) asleep() {
	s.t.Helper()
	ask := s.asking("asleep", 3600)
	gone := s.start(ask)
	gone.open()
	woken := s.count("session", "Wake")
	gone.cancel()
	// Through the session and through its wait: then the session is about to hear
	// that nobody waits.
	s.call(&messages.AttachRequest{Session: mainSession, Root: s.root})
	s.call(&messages.DelegateRequest{Session: mainSession, CallId: ask.GetCallId(), By: "ann"})
	s.unloaded()
	s.time.Advance(3600 * time.Second)
	s.hope("session", "Wake", woken, s.time.Swept(), step)
	s.start(ask).result()
}

// handedOut: the requests of three questions are lost. One is asked again and
// joins the first, one is answered late and collected, one was answered in
// time; what was handed out is acknowledged in each way that there is.
func (s *script) handedOut() {
	s.t.Helper()
	end := func(name string) {
		s.call(&messages.EndForegroundRequest{Session: mainSession, CallId: s.callID(name), Attempt: "a-" + name + s.suffix(), Reason: "gone"})
	}
	lost := s.start(watched(s.asking("lost", 60)))
	lost.open()
	end("lost")
	lost.answer()
	again := watched(s.asking("lost", 60))
	again.Attempt, again.CallId = "b-lost"+s.suffix(), "c-again"+s.suffix()
	s.call(again)
	inTime := s.start(watched(s.asking("prompt", 60)))
	inTime.open()
	s.call(s.submission("prompt", "prompt"))
	inTime.answer()
	s.call(s.submission("belated", "lost"))
	end("lost")
	s.call(&messages.CollectRepliesRequest{Session: mainSession, Root: s.root, CallId: s.callID("lost")})
	first := s.call(&messages.CollectRepliesRequest{Session: mainSession, Root: s.root, Correlation: "tool-collect"})
	token := ""
	if r, ok := first.(*messages.CollectRepliesResponse); ok {
		token = r.GetToken()
	}
	s.call(&messages.AcknowledgeRequest{Session: mainSession, CallId: s.callID("prompt")})
	s.call(&messages.AcknowledgeRequest{Session: mainSession, Correlation: "tool-collect"})
	for range 2 {
		s.call(&messages.CollectRepliesRequest{Session: mainSession, Root: s.root, After: token})
	}
}
