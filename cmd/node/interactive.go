package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
)

const (
	beat         = 250 * time.Millisecond // how often the window and the countdown are looked at
	escapeWait   = 60 * time.Millisecond  // how long the rest of a key may take
	paintedWait  = time.Second            // how long a terminal may take to say that it has painted
	farewellWait = 3 * time.Second        // for the node to hear that a claim is let go
)

// What the goroutines around a sitting report. Only the sitting's own loop touches its state.
type (
	typed     struct{ bytes []byte }
	seen      struct{ row *messages.QuestionRow }
	watching  struct{ err error } // the watch is live, or lost
	claimed   struct{ frame *messages.AttachWaitResponse }
	unclaimed struct{ lost, had bool }
	sent      struct {
		res *messages.SubmitResponse
		err error
	}
)

// sitting is one person at one terminal who answers one question: the picker, then the card, and what they need of the
// node. Everything is done in the order in which it arrives, by one loop.
type sitting struct {
	c      *cli
	node   *client
	screen *console
	req    *messages.SubmitRequest
	name   string // of this client among the answerers
	events chan any
	start  time.Time

	painted bool // the terminal has shown what keys are meant for
	fenced  int64
	bytes   []byte
	picker  *picker
	row     *messages.QuestionRow
	card    *card
	panel   *panel
	page    int
	holding bool   // a claim is held, or being opened
	claim   string // its name while it is held
	tried   string // what was sent under the submission's id
	end     func(context.Context) error
	drop    context.CancelFunc // of the claim's stream
}

// sit lets a person answer at the terminal. Without a call the only answerable question is taken, or one is picked.
// What happens after cursor is followed; 0: the rows are no list, and what has become of the question is asked.
func (c *cli) sit(ctx context.Context, node *client, screen *console, req *messages.SubmitRequest, rows []*messages.QuestionRow, cursor int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sitting{
		c: c, node: node, screen: screen, req: req, name: door + "-" + c.newID(), events: make(chan any, 64),
		start: c.now(), picker: &picker{rows: rows},
	}
	if len(rows) == 1 {
		if err := firstError(ended(rows[0]), readable(rows[0])); err != nil {
			return err
		}
	}
	if err := screen.open(); err != nil {
		return err
	}
	closed := false
	restore := func() {
		if !closed {
			closed = true
			screen.close()
		}
	}
	defer restore() // a panic must not leave a terminal that shows nothing of it
	go s.readKeys(ctx)
	session := ""
	if len(rows) == 1 {
		session = rows[0].GetSession()
		s.show(ctx, rows[0])
	} else {
		s.fence()
	}
	go s.watch(ctx, session, cursor)
	s.loop(ctx)
	restore() // before the node is spoken to, which may take its time
	s.letGo()
	if s.end == nil {
		return s.interrupted(ctx)
	}
	return s.end(ctx)
}

// readable refuses a call whose questions cannot be shown.
func readable(row *messages.QuestionRow) error {
	if len(row.GetQuestions()) == 0 {
		return refuse(messages.NotAnswerable, "", "the call holds no question that can be read")
	}
	return nil
}

// now is the clock of the card, which never steps.
func (s *sitting) now() int64 { return s.c.now().Sub(s.start).Milliseconds() }

// fence drops every key that was typed before the terminal has shown what it was just sent: the answer to a status
// report comes behind them (fault W5).
func (s *sitting) fence() {
	s.painted, s.fenced, s.bytes = false, s.now(), nil
	s.paint()
	s.screen.write(askPainted)
}

func (s *sitting) loop(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	escape := time.NewTimer(0)
	defer escape.Stop()
	for s.end == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.tick(ctx)
		case <-escape.C:
			s.decode(ctx, true)
		case ev := <-s.events:
			if _, ok := ev.(typed); ok {
				escape.Reset(escapeWait)
			}
			s.handle(ctx, ev)
		}
		s.paint()
	}
}

func (s *sitting) handle(ctx context.Context, ev any) {
	switch ev := ev.(type) {
	case typed:
		s.bytes = append(s.bytes, ev.bytes...)
		s.decode(ctx, false)
	case seen:
		s.change(ev.row)
	case watching:
		if ev.err == nil && s.row != nil { // whatever happened while nobody looked
			s.refresh(ctx)
		} else if ev.err != nil && !asTrouble(ev.err).temporary() {
			s.finish(ev.err)
		}
	case claimed:
		s.claim = ev.frame.GetClaim()
		s.card.attach(s.now(), ev.frame.GetRemainingMs(), ev.frame.GetNever())
	case unclaimed:
		s.claim = ""
		if s.card.detach(s.now(), ev.lost); !ev.lost {
			s.holding = !ev.had // what could not be claimed is not tried again
			s.refresh(ctx)
		}
	case sent:
		s.sent(ctx, ev)
	}
}

// decode turns what was typed into keys. Before the terminal has painted they are dropped, but for Ctrl-C.
func (s *sitting) decode(ctx context.Context, last bool) {
	var keys []key
	keys, s.bytes = readKeys(s.bytes, last)
	for n, k := range keys {
		switch {
		case s.end != nil:
			return
		case k.name == keyPainted:
			s.painted = true
		case k.name == keyInterrupt:
			s.left(exitInterrupted)
		case s.painted:
			s.press(ctx, k)
			if !s.painted { // another card: the rest was meant for what was there before
				keys = slices.DeleteFunc(keys[n+1:], func(k key) bool { return k.name != keyInterrupt })
				if len(keys) > 0 {
					s.left(exitInterrupted)
				}
				return
			}
		}
	}
}

func (s *sitting) press(ctx context.Context, k key) {
	if s.row == nil {
		picked, out := s.picker.key(k)
		switch {
		case picked != nil && readable(picked) != nil:
			s.picker.message = "This one cannot be read here."
		case picked != nil:
			s.show(ctx, picked)
		case out == leave:
			s.left(messages.ExitPending)
		}
		return
	}
	s.card.focus(s.now()) // any key stops the countdown
	s.claimIt(ctx)
	switch s.panel.key(k) {
	case edited:
		s.card.engage(s.now())
	case submit:
		s.submit(ctx)
	case leave:
		s.left(messages.ExitPending)
	case interrupt:
		s.left(exitInterrupted)
	case stay:
	}
}

// show opens the card of a question.
func (s *sitting) show(ctx context.Context, row *messages.QuestionRow) {
	s.row, s.card, s.panel = row, newCard(row.GetState()), newPanel(row.GetQuestions())
	s.req.Session, s.req.CallId, s.req.CallSeq = row.GetSession(), row.GetCallId(), row.GetCallSeq()
	s.screen.top = 0
	s.claimIt(ctx)
	s.fence()
	s.refresh(ctx) // the row may be an old one
}

// claimIt opens a claim, unless one is held or the call has returned.
func (s *sitting) claimIt(ctx context.Context) {
	if s.holding || !s.card.open() {
		return
	}
	s.holding = true
	ctx, s.drop = context.WithCancel(ctx)
	go s.hold(ctx, s.row)
}

// change takes a change of a question, from the watch or from a look at it. A row of an earlier asking is old news.
func (s *sitting) change(row *messages.QuestionRow) {
	if s.row == nil {
		s.picker.update(row)
		return
	}
	if sameCall(s.row, row) && row.GetCallSeq() >= s.row.GetCallSeq() && !s.over(row) {
		s.card.project(row.GetState())
	}
}

// over closes the card when somebody else has ended the question, or when another one is asked under its id; what was
// written is not lost, and answers no other question.
func (s *sitting) over(row *messages.QuestionRow) bool {
	anew := row.GetCallSeq() > s.row.GetCallSeq()
	if s.panel.busy { // its own answer tells more
		return anew
	}
	if answerable(row) && !anew {
		return false
	}
	s.card.close()
	if anew {
		s.finish(refuse(messages.NotAnswerable, "", "call %s of session %s was asked anew", row.GetCallId(), row.GetSession()))
		return true
	}
	if by := row.GetSettlement(); by.GetSubmissionId() == s.req.GetSubmissionId() && s.tried != "" { // its receipt was lost
		s.accepted(&messages.SubmitResponse{Settlement: by, Repeated: true})
		return true
	}
	s.finish(ended(row))
	return true
}

// ended says that a question takes no answer any more, and who was first; nil while it does.
func ended(row *messages.QuestionRow) error {
	if answerable(row) {
		return nil
	}
	code := messages.Settled
	if row.GetState() == "replied" {
		code = messages.ReplyQueued
	}
	t := refuse(code, "", "call %s of session %s is over", row.GetCallId(), row.GetSession())
	t.winner = row.GetSettlement()
	return t
}

// refresh reads the question again.
func (s *sitting) refresh(ctx context.Context) {
	row := s.row
	go func() {
		res, err := repeat(ctx, s.node, s.node.GetQuestion, &messages.GetQuestionRequest{Session: row.GetSession(), CallId: row.GetCallId()})
		switch {
		case err == nil:
			s.tell(ctx, seen{res.GetQuestion()})
		case asTrouble(err).code == messages.NotFound:
			s.tell(ctx, watching{err})
		}
	}()
}

func (s *sitting) tick(ctx context.Context) {
	if !s.painted && s.now() >= s.fenced+paintedWait.Milliseconds() {
		s.painted = true // a terminal that does not say so
	}
	if s.card == nil || !s.card.tick(s.now()) {
		return
	}
	// The person has not touched it in time: the call returns, the question stays.
	req := &messages.ExpireRequest{Session: s.row.GetSession(), CallId: s.row.GetCallId(), Claim: s.claim, By: s.req.GetBy()}
	go func() {
		_, err := repeat(ctx, s.node, s.node.Expire, req)
		if err != nil && asTrouble(err).temporary() {
			s.tell(ctx, watching{nil})
		}
	}()
}

// submit sends the batch. The same batch keeps its id, so that it counts once however often it is sent; another one is
// another submission.
func (s *sitting) submit(ctx context.Context) {
	s.req.Answers = s.panel.answers()
	if words := fmt.Sprint(s.req.GetAnswers()); s.tried != "" && s.tried != words {
		s.req.SubmissionId, s.tried = "a-"+s.c.newID(), words
	} else {
		s.tried = words
	}
	s.panel.busy, s.panel.message = true, ""
	go func() {
		res, err := repeat(ctx, s.node, s.node.Submit, s.req)
		s.tell(ctx, sent{res, err})
	}()
}

func (s *sitting) sent(ctx context.Context, ev sent) {
	s.panel.busy = false
	if ev.err == nil {
		s.accepted(ev.res)
		return
	}
	t := asTrouble(ev.err)
	switch {
	case t.temporary():
		s.panel.message = "The node does not answer. Enter sends it again; it counts once."
		s.refresh(ctx)
	case t.code == messages.BadAnswer || t.code == messages.TooLarge:
		s.tried, s.panel.message = "", oneLine(t.text)
	default:
		s.finish(ev.err)
	}
}

// accepted closes the card once the answer is recorded.
func (s *sitting) accepted(res *messages.SubmitResponse) {
	s.claim = "" // the node has closed it
	s.end = func(context.Context) error {
		s.recap("")
		return s.c.printReceipt(s.req, res)
	}
}

// finish closes the card with trouble, and prints what would be lost with it.
func (s *sitting) finish(err error) {
	what := "not sent"
	if s.tried != "" {
		what = "not accepted"
	}
	s.end = func(context.Context) error {
		s.recap(what)
		return err
	}
}

// left closes the card without an answer.
func (s *sitting) left(exit int) {
	if s.tried != "" {
		s.end = func(context.Context) error {
			s.recap("perhaps sent")
			return s.unknown()
		}
		return
	}
	s.end = func(context.Context) error {
		s.recap("not sent")
		s.c.notef("not answered; the question stays open\n")
		s.c.exit = exit
		return nil
	}
}

// unknown is the end of a card whose answer was sent and whose receipt has not come.
func (s *sitting) unknown() error {
	t := refuse(messages.Unavailable, "see what became of it with", "left before the node said whether it has the answer %s", s.req.GetSubmissionId())
	t.line = s.c.command("questions", []string{"--all", "--session", s.req.GetSession()})
	return t
}

// interrupted is the end by a signal.
func (s *sitting) interrupted(ctx context.Context) error {
	if s.tried != "" {
		s.recap("perhaps sent")
		return s.unknown()
	}
	s.recap("not sent")
	if ctx.Err() == nil {
		return errors.New("the card closed by itself")
	}
	return refuse(codeInterrupted, "the same command may be given again", "not answered; the question stays open")
}

// recap prints the answers, so that they outlive the card.
func (s *sitting) recap(what string) {
	if s.panel == nil || what != "" && !s.panel.started() {
		return
	}
	if what != "" {
		s.c.notef("%s:\n", what)
	}
	for _, i := range s.panel.items {
		a := answersOf([]*messages.Answer{i.answer()})[0]
		if what != "" && a.skipped() && strings.TrimSpace(i.shelved) == "" {
			continue
		}
		if a.skipped() && i.shelved != "" {
			a.Custom = &i.shelved
		}
		s.c.block(s.c.err, "  = ", answerWords(a, len(s.panel.items) > 1))
	}
}

// letGo releases the claim on purpose: a deadline that has passed meanwhile ends the call at once.
func (s *sitting) letGo() {
	if s.claim != "" {
		ctx, cancel := context.WithTimeout(context.Background(), farewellWait)
		defer cancel()
		_, _ = call(ctx, s.node, s.node.ReleaseWait, &messages.ReleaseWaitRequest{Session: s.row.GetSession(), CallId: s.row.GetCallId(), Claim: s.claim})
	}
	if s.drop != nil {
		s.drop()
	}
}

func (s *sitting) paint() {
	width, height := s.screen.size()
	v := s.c.view(width)
	if s.row == nil {
		s.screen.paint(v.picker(s.picker, s.c.now().UnixMilli()), width, height, 0, s.picker.follow, s.c.dim)
		return
	}
	if s.page != s.panel.page {
		s.page, s.screen.top = s.panel.page, 0
	}
	f := v.card(s.row, s.card, s.panel, s.now())
	s.screen.paint(f, width, height, s.panel.scroll, s.panel.follow, s.c.dim)
	s.panel.scroll = 0
}

// ---- what runs beside the loop ----

// tell reports to the loop, unless it has ended.
func (s *sitting) tell(ctx context.Context, ev any) {
	select {
	case s.events <- ev:
	case <-ctx.Done():
	}
}

func (s *sitting) readKeys(ctx context.Context) {
	for {
		buf := make([]byte, 4096)
		n, err := s.screen.in.Read(buf)
		if n > 0 {
			s.tell(ctx, typed{buf[:n]})
		}
		if err != nil {
			if errors.Is(err, io.EOF) { // the terminal is gone
				s.tell(ctx, typed{[]byte{0x03}})
			}
			return
		}
	}
}

// watch follows the questions for as long as the sitting lasts.
func (s *sitting) watch(ctx context.Context, session string, cursor int64) {
	req := &messages.WatchQuestionsRequest{Session: session, Client: s.name, Cursor: cursor}
	for lost := 0; ; lost++ {
		err := s.node.follow(ctx, req, func(msg *messages.WatchQuestionsResponse) error {
			if msg.GetQuestion() != nil {
				s.tell(ctx, seen{msg.GetQuestion()})
			} else if msg.GetHeartbeatMs() > 0 {
				lost = 0
				s.tell(ctx, watching{nil})
			}
			return nil
		})
		if err != nil {
			if asTrouble(err).code == messages.BadRequest && req.Cursor > 0 { // the journal is another one
				req.Cursor = 0
			} else {
				s.tell(ctx, watching{err})
			}
		}
		if !pause(ctx, lost) {
			return
		}
	}
}

// hold keeps a claim on the wait, so that its deadline does not end it while the card is open. After a restart of
// the node it is opened again. A stream that ends without a word is a wait that is over.
func (s *sitting) hold(ctx context.Context, row *messages.QuestionRow) {
	req := &messages.AttachWaitRequest{Session: row.GetSession(), CallId: row.GetCallId(), Client: s.name}
	for n := 0; ; n++ {
		framed, err := s.holdOnce(ctx, req)
		if ctx.Err() != nil {
			return
		}
		if framed {
			n = 0
		}
		lost := err != nil && asTrouble(err).temporary()
		if s.tell(ctx, unclaimed{lost, framed}); !lost || !pause(ctx, n) {
			return
		}
	}
}

func (s *sitting) holdOnce(ctx context.Context, req *messages.AttachWaitRequest) (framed bool, err error) {
	stream, err := s.node.AttachWait(ctx, connect.NewRequest(req))
	if err != nil {
		return false, s.node.explain(err)
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
		framed = true
		s.tell(ctx, claimed{stream.Msg()})
	}
	if err := stream.Err(); err != nil {
		return framed, s.node.explain(err)
	}
	return framed, nil
}
