package actors

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/parleyrun/parley/messages"
)

// Cards are all the cards of one client: one
// for each call that it may answer, with its draft and its claim. Cards decide
// when a card is made, shown, claimed for and taken away, and which command an
// answer is. They never wait: what the streams say and the person does comes
// in, what is to be sent, kept and drawn goes out.
//
// A row that is open is the request, as it was forwarded to a client of the
// reference. A submission is acknowledged here, so its card is frozen until the
// word about it has come, and gets its channel back when it was refused.
type Cards struct {
	config CardsConfig
	cards  []*heldCard // in the order they were made
	seats  []string    // the keys of those in sight, the last published one last
	fresh  int         // unkeyed cards so far
	frames int         // requests so far
	holds  int         // claims so far
	parted []string    // submissions under way whose cards are gone
}

// CardsConfig is what a client is.
type CardsConfig struct {
	// Load is drawn anew each time the client starts, 32 hex digits: no draft of
	// an earlier life matches an unkeyed card.
	Load string
	// By is who answers, in words for people and logs.
	By string
	// Preselect chooses a recommended first option.
	Preselect bool
	// Drafts are what was kept of an earlier life.
	Drafts []StoredDraft
}

// StoredDraft is a draft in the store of a session, under the key of its card.
type StoredDraft struct {
	Session, Key string
	Draft        json.RawMessage
	// CallSeq is the call's place in the log: one that is asked again under its
	// id is another one. 0: a store that does not know it.
	CallSeq int64
}

// heldCard is one card, and what the client holds for it.
type heldCard struct {
	key       string
	row       *messages.QuestionRow // as it was last seen
	card      *Card
	draft     Draft
	untouched Draft
	review    bool // read-only: the call is settled

	opened  bool   // a claim is held, or being opened
	hold    int    // which one
	claim   string // its name; empty until its frame has come
	request string // the card's request for it
	lost    string // the request of the claim that was lost before
	passed  bool   // no frame came: nobody waits there
	back    bool   // the person came back before the claim that was passed on, or given up, was over

	sending  string // the submission under way
	late     bool   // it went over the late channel
	left     int64  // what was left of the countdown when it was sent
	never    bool   // there was none
	accepted bool   // what is left is to see it happen
	triedID  string // the last submission, and what was in it
	tried    []*messages.Answer
}

// NewCards is a client without cards yet.
func NewCards(config CardsConfig) *Cards {
	config.Drafts = slices.Clone(config.Drafts)
	return &Cards{config: config}
}

// CardsInput is one thing that happens to a client.
type CardsInput interface{ cardsInput() }

type (
	// RowSeen: the watch shows a call so.
	RowSeen struct{ Row *messages.QuestionRow }
	// Synced: every row of a session has been seen. Drafts of cards that are no
	// more are dropped.
	Synced struct{ Session string }
	// ClaimFramed: the first word of a claim's stream.
	ClaimFramed struct {
		Key         string
		Hold        int
		Claim       string
		RemainingMS int64
		Never       bool
	}
	// ClaimOver: the claim's stream ended. Lost: without a word.
	ClaimOver struct {
		Key  string
		Hold int
		Lost bool
	}
	// SubmitReplied: what became of a submission; nil: it was accepted.
	SubmitReplied struct {
		Key, Submission string
		Err             error
	}
	// CardTicked: the timer of a card fired.
	CardTicked struct {
		Key string
		Gen uint32
	}
	// OnCard: the person does this to a card: Focused, Blurred, TimeTaken,
	// Dismissed or Delegated.
	OnCard struct {
		Key string
		Do  CardInput
	}
	// Drafted: the person's draft is this now. Turning a page is no edit.
	Drafted struct {
		Key   string
		Draft Draft
	}
	// Sent: the person submits the draft. The same batch keeps the name under
	// which it was sent first, so that it counts once.
	Sent struct{ Key, Submission string }
	// Revealed: the person wants to see a card.
	Revealed struct{ Key string }
	// Reviewed: the person wants to see a settled call.
	Reviewed struct{ Row *messages.QuestionRow }
	// Unloaded: the client goes. Drafts are kept.
	Unloaded struct{}
)

func (RowSeen) cardsInput()       {}
func (Synced) cardsInput()        {}
func (ClaimFramed) cardsInput()   {}
func (ClaimOver) cardsInput()     {}
func (SubmitReplied) cardsInput() {}
func (CardTicked) cardsInput()    {}
func (OnCard) cardsInput()        {}
func (Drafted) cardsInput()       {}
func (Sent) cardsInput()          {}
func (Revealed) cardsInput()      {}
func (Reviewed) cardsInput()      {}
func (Unloaded) cardsInput()      {}

// CardsEffect is one thing that the cards ask of the client around them.
type CardsEffect interface{ cardsEffect() }

type (
	// HoldWait opens a claim's stream; what it says comes with its Hold. Again:
	// one was lost, so not at once.
	HoldWait struct {
		Key           string
		Hold          int
		Session, Call string
		Again         bool
	}
	// LetGo ends the claim's stream, whose name is empty before its frame. What it
	// still says means nothing.
	LetGo struct {
		Key                  string
		Hold                 int
		Session, Call, Claim string
	}
	// CardCommand is to be sent, and repeated until it is answered. A
	// SubmitRequest is answered by SubmitReplied; what the others are answered
	// means nothing here.
	CardCommand struct {
		Key string
		Cmd messages.Command
	}
	// CardSays answers the person's last submission or dismissal. The card may be
	// gone, or be that of another question under the same id.
	CardSays struct {
		Key string
		Err error
	}
	// TimeCard starts or stops the timer of a card; CardTicked answers it.
	TimeCard struct {
		Key string
		Timer
	}
	// SeatCard shows a card; of several the one with the highest precedence, and
	// of those the last one seated.
	SeatCard struct {
		Key        string
		Precedence int
	}
	// UnseatCard takes a card out of sight.
	UnseatCard struct{ Key string }
	// DrawCard: a card in sight may look otherwise now.
	DrawCard struct{ Key string }
	// KeepDraft puts a draft into the store, in place of the one before.
	KeepDraft StoredDraft
	// DropDraft takes it out.
	DropDraft struct{ Session, Key string }
	// CardGone: there is no such card any more.
	CardGone struct{ Key string }
)

func (HoldWait) cardsEffect()    {}
func (LetGo) cardsEffect()       {}
func (CardCommand) cardsEffect() {}
func (CardSays) cardsEffect()    {}
func (TimeCard) cardsEffect()    {}
func (SeatCard) cardsEffect()    {}
func (UnseatCard) cardsEffect()  {}
func (DrawCard) cardsEffect()    {}
func (KeepDraft) cardsEffect()   {}
func (DropDraft) cardsEffect()   {}
func (CardGone) cardsEffect()    {}

// The precedences of cards in sight.
const (
	SeatQuestion = 1
	SeatPlan     = 2
)

// CardKey is the key of the one card of a keyed call.
func CardKey(session, call string) string { return "question:" + session + ":" + call }

// cardsStep is one step of all cards, and what it asks for so far.
type cardsStep struct {
	*Cards
	now Now
	fx  []CardsEffect
}

// Step decides one input. An input for a card that is no more does nothing.
func (c *Cards) Step(now Now, in CardsInput) []CardsEffect {
	s := &cardsStep{Cards: c, now: now}
	switch in := in.(type) {
	case RowSeen:
		s.see(in.Row)
	case Synced:
		s.prune(in.Session)
	case Reviewed:
		s.reviewed(in.Row)
	case Unloaded:
		s.unload()
	case ClaimFramed:
		s.with(in.Key, func(e *heldCard) { s.framed(e, in) })
	case ClaimOver:
		s.with(in.Key, func(e *heldCard) { s.claimOver(e, in) })
	case SubmitReplied:
		if at := slices.Index(s.parted, in.Submission); at >= 0 {
			s.parted = slices.Delete(s.parted, at, at+1)
			s.add(CardSays{in.Key, in.Err})
			break
		}
		s.with(in.Key, func(e *heldCard) { s.replied(e, in) })
	case CardTicked:
		s.with(in.Key, func(e *heldCard) { s.step(e, Ticked{in.Gen}) })
	case OnCard:
		s.with(in.Key, func(e *heldCard) { s.person(e, in.Do) })
	case Drafted:
		s.with(in.Key, func(e *heldCard) { s.drafted(e, in.Draft) })
	case Sent:
		s.with(in.Key, func(e *heldCard) { s.send(e, in.Submission) })
	case Revealed:
		s.with(in.Key, s.seat)
	}
	return s.fx
}

func (s *cardsStep) add(fx CardsEffect) { s.fx = append(s.fx, fx) }

func (s *cardsStep) with(key string, do func(*heldCard)) {
	if e := s.find(key); e != nil {
		do(e)
	}
}

func (c *Cards) find(key string) *heldCard {
	for _, e := range c.cards {
		if e.key == key {
			return e
		}
	}
	return nil
}

func (c *Cards) of(row *messages.QuestionRow) *heldCard {
	for _, e := range c.cards {
		if e.row.GetSession() == row.GetSession() && e.row.GetCallId() == row.GetCallId() {
			return e
		}
	}
	return nil
}

// answerable reports whether a row is a request, or waits for a late answer.
func answerable(row *messages.QuestionRow) bool {
	return row.GetState() == string(CardOpen) || row.GetState() == string(CardContinued)
}

// see follows the projection. A row of an asking before the card's
// is old news.
func (s *cardsStep) see(row *messages.QuestionRow) {
	e := s.of(row)
	if e != nil && row.GetCallSeq() < e.row.GetCallSeq() {
		return // Invariant: a card, its draft and its row are of one asking
	}
	again := e != nil && row.GetCallSeq() > e.row.GetCallSeq()
	if again && !e.review || e != nil && e.review && answerable(row) {
		s.remove(e) // it was asked again, and perhaps answered: what was drafted answers another question
		e = nil
	}
	switch {
	case e == nil && answerable(row) && len(row.GetQuestions()) > 0:
		e = s.create(row, false)
		defer s.holdWait(e, false)
	case e == nil || e.review:
		return
	}
	turned := e.row.GetState() != row.GetState()
	e.row = row
	if !answerable(row) {
		if e.opened && e.sending == "" { // the host has its outcome
			s.letGo(e)
		}
		s.sweep(e)
		return
	}
	state := CardState(row.GetState())
	s.step(e, Projected{state})
	if state == CardContinued {
		e.accepted = false // whatever was sent, it is to be answered now
		s.step(e, LateChannel{Open: true})
		return
	}
	if turned {
		e.passed = false
		s.holdWait(e, false)
	}
}

// create makes the card of a call, with the draft that was kept for it.
func (s *cardsStep) create(row *messages.QuestionRow, review bool) *heldCard {
	e := &heldCard{key: CardKey(row.GetSession(), row.GetCallId()), row: row, card: NewCard(row.GetUnkeyed()), review: review}
	if row.GetUnkeyed() && !review {
		s.fresh++
		e.key = "question:" + s.config.Load + ":" + strconv.Itoa(s.fresh)
	}
	e.untouched = NewDraft(row.GetQuestions(), s.config.Preselect && !review)
	e.draft = e.untouched
	s.cards = append(s.cards, e)
	s.seat(e)
	kept := s.stored(e.key)
	if kept.CallSeq != 0 && kept.CallSeq != row.GetCallSeq() { // it answers another question
		s.drop(e.key)
		return e
	}
	stored, ok := ReadDraft(kept.Draft, len(row.GetQuestions()))
	switch {
	case ok && review:
		e.draft.Page = stored.Page // and nothing else of it
	case ok:
		e.draft = stored
		if touch, touched := stored.restored(e.untouched); touched {
			s.step(e, touch)
		}
	}
	return e
}

func (c *Cards) stored(key string) StoredDraft {
	for _, d := range c.config.Drafts {
		if d.Key == key {
			return d
		}
	}
	return StoredDraft{}
}

// seat shows a card, as the last one.
func (s *cardsStep) seat(e *heldCard) {
	s.unseat(e)
	s.seats = append(s.seats, e.key)
	s.add(SeatCard{e.key, e.precedence()})
}

func (s *cardsStep) unseat(e *heldCard) {
	if at := slices.Index(s.seats, e.key); at >= 0 {
		s.seats = slices.Delete(s.seats, at, at+1)
		s.add(UnseatCard{e.key})
	}
}

func (e *heldCard) precedence() int {
	if _, plan := PlanOf(ShownOf(e.row.GetQuestions())); plan {
		return SeatPlan
	}
	return SeatQuestion
}

// holdWait opens a claim, unless there is one or nobody waits.
func (s *cardsStep) holdWait(e *heldCard, again bool) {
	if e.opened || e.passed || e.review || e.row.GetState() != string(CardOpen) {
		return
	}
	s.holds++
	e.opened, e.hold = true, s.holds
	s.add(HoldWait{e.key, e.hold, e.row.GetSession(), e.row.GetCallId(), again})
}

// comeBack holds the wait of a card that the person is at: now, or when the claim
// that was passed on, or given up, is over.
func (s *cardsStep) comeBack(e *heldCard) {
	e.back = e.request != "" && e.sending == "" && e.card.Channel() != ChannelLive && !e.card.Unkeyed()
	s.holdWait(e, false)
}

func (s *cardsStep) letGo(e *heldCard) {
	s.add(LetGo{e.key, e.hold, e.row.GetSession(), e.row.GetCallId(), e.claim})
	s.unclaim(e, false)
}

// unclaim forgets the claim, and ends the card's request for it.
func (s *cardsStep) unclaim(e *heldCard, lost bool) {
	request := e.request
	if request == "" && !lost {
		request = e.lost
	}
	e.opened, e.claim, e.request, e.back = false, "", "", false
	switch {
	case !lost:
		e.lost = ""
	case request != "":
		e.lost = request
	}
	if request != "" {
		s.step(e, RequestEnded{ID: request, Lost: lost})
	}
}

// framed attaches the request, now that the host has said how long it waits.
func (s *cardsStep) framed(e *heldCard, in ClaimFramed) {
	if !e.opened || e.hold != in.Hold || e.request != "" {
		return
	}
	e.claim = in.Claim
	s.attach(e, in.RemainingMS, in.Never)
}

func (s *cardsStep) attach(e *heldCard, remainingMS int64, never bool) {
	s.frames++
	e.request = "r" + strconv.Itoa(s.frames)
	s.step(e, Requested{ID: e.request, RemainingMS: remainingMS, Never: never})
}

// claimOver is the end of a claim's stream: of one without a frame nobody waits
// there, and one that was lost is opened again, as is one to whose card the
// person has come back.
func (s *cardsStep) claimOver(e *heldCard, in ClaimOver) {
	if !e.opened || e.hold != in.Hold {
		return
	}
	e.passed = !in.Lost && e.request == ""
	again := in.Lost || e.back
	s.unclaim(e, in.Lost)
	if again {
		s.holdWait(e, in.Lost)
	}
	s.sweep(e)
}

// sweep removes a card whose call takes no answer any more, or whose unkeyed
// request is over. It stays while a claim is open or an answer is on its way
//
func (s *cardsStep) sweep(e *heldCard) {
	over := !answerable(e.row) || e.card.Unkeyed() && !e.opened
	if over && !e.review && !e.opened && e.sending == "" {
		s.remove(e)
	}
}

// remove closes a card for good. The word about an answer that is on its
// way is passed on when it comes.
func (s *cardsStep) remove(e *heldCard) {
	if e.sending != "" {
		s.parted = append(s.parted, e.sending)
	}
	s.cards = slices.DeleteFunc(s.cards, func(other *heldCard) bool { return other == e })
	s.step(e, CardClosed{})
	if e.opened {
		s.letGo(e)
	}
	s.unseat(e)
	if !e.review {
		s.drop(e.key)
	}
	s.add(CardGone{e.key})
}

func (s *cardsStep) drop(key string) {
	at := slices.IndexFunc(s.config.Drafts, func(d StoredDraft) bool { return d.Key == key })
	if at >= 0 {
		s.add(DropDraft{s.config.Drafts[at].Session, key})
		s.config.Drafts = slices.Delete(s.config.Drafts, at, at+1)
	}
}

func (s *cardsStep) keep(e *heldCard) {
	d := StoredDraft{e.row.GetSession(), e.key, e.draft.Store(), e.row.GetCallSeq()}
	at := slices.IndexFunc(s.config.Drafts, func(d StoredDraft) bool { return d.Key == e.key })
	if at < 0 {
		s.config.Drafts = append(s.config.Drafts, d)
	} else {
		s.config.Drafts[at] = d
	}
	s.add(KeepDraft(d))
}

// prune drops the drafts of a session's cards that are no more.
func (s *cardsStep) prune(session string) {
	for _, d := range slices.Clone(s.config.Drafts) {
		if d.Session == session && s.find(d.Key) == nil {
			s.drop(d.Key)
		}
	}
}

// person does to a card what the person does.
func (s *cardsStep) person(e *heldCard, do CardInput) {
	switch do.(type) {
	case Dismissed:
		if e.review {
			s.remove(e)
			return
		}
		s.step(e, do)
	case Focused, TimeTaken:
		if e.review {
			return
		}
		s.step(e, do)
		if _, taken := do.(TimeTaken); taken && e.draft.Wait != DraftHeld {
			e.draft.Wait = DraftHeld
			s.keep(e)
		}
		s.comeBack(e)
	case Delegated:
		e.back = false
		s.step(e, do)
	case Blurred:
		s.step(e, do)
	}
}

// frozen reports whether nothing may be changed.
func (e *heldCard) frozen() bool { return e.sending != "" || e.accepted }

func (s *cardsStep) drafted(e *heldCard, d Draft) {
	switch {
	case len(d.Items) != len(e.untouched.Items):
		return
	case e.review:
		e.draft.Page = d.Page
		return
	case e.frozen():
		return
	}
	edited := !d.Same(e.draft)
	d.Wait = e.draft.Wait
	if edited && d.Wait == DraftUntouched {
		d.Wait = DraftEditing
	}
	e.draft = d
	s.keep(e)
	if edited {
		s.step(e, Engaged{})
		s.comeBack(e)
	}
	s.add(DrawCard{e.key})
}

// send submits the draft by the channel of this instant.
func (s *cardsStep) send(e *heldCard, submission string) {
	if e.review || e.frozen() {
		s.add(CardSays{e.key, ErrSending})
		return
	}
	batch, at, err := e.draft.Batch(e.row.GetQuestions())
	if err != nil {
		e.draft = at
		s.add(CardSays{e.key, err})
		return
	}
	if e.triedID == "" || !sameBatch(e.tried, batch) {
		e.triedID, e.tried = submission, batch
	}
	view := e.card.View()
	e.left, e.never = view.RemainingMS, !view.Counts
	s.step(e, Answered{Submission: e.triedID, Answers: batch})
}

func sameBatch(a, b []*messages.Answer) bool {
	return slices.EqualFunc(a, b, func(x, y *messages.Answer) bool {
		return x.GetId() == y.GetId() && slices.Equal(x.GetSelected(), y.GetSelected()) && x.GetCustom() == y.GetCustom() && (x.Custom == nil) == (y.Custom == nil)
	})
}

// replied is the word about a submission. An accepted late one is out of sight,
// though not settled; a refused live one gets its channel back, if its
// claim still holds.
func (s *cardsStep) replied(e *heldCard, in SubmitReplied) {
	if e.sending == "" || e.sending != in.Submission {
		return
	}
	e.sending, e.accepted = "", in.Err == nil
	if e.late {
		s.step(e, LateReplied{Submission: in.Submission, Err: in.Err})
		if in.Err == nil {
			s.unseat(e)
		}
	} else {
		if in.Err != nil && e.request != "" && e.row.GetState() == string(CardOpen) {
			s.attach(e, e.left, e.never)
		}
		s.add(CardSays{e.key, in.Err})
		s.add(DrawCard{e.key})
	}
	if !answerable(e.row) && e.opened {
		s.letGo(e)
	}
	s.sweep(e)
}

// reviewed shows a settled call, or the card that it still has.
func (s *cardsStep) reviewed(row *messages.QuestionRow) {
	if e := s.of(row); e != nil {
		s.seat(e)
		return
	}
	s.create(row, true)
}

// unload passes every live request on, of hidden cards too.
func (s *cardsStep) unload() {
	for _, e := range slices.Clone(s.cards) {
		s.step(e, Delegated{})
		s.step(e, CardClosed{})
		if e.opened && e.request == "" {
			s.letGo(e)
		}
		s.unseat(e)
		s.add(CardGone{e.key})
	}
	s.cards = nil
}

// step gives one input to a card and does what it asks.
func (s *cardsStep) step(e *heldCard, in CardInput) {
	for _, fx := range e.card.Step(s.now, in) {
		switch fx := fx.(type) {
		case SettleRequest:
			s.settled(e, fx)
		case SubmitLate:
			e.late = true
			s.submit(e, fx.Submission, fx.Answers)
		case CardTold:
			if _, answer := in.(Answered); !answer || fx.Err != nil { // of a live one more is known later
				s.add(CardSays{e.key, fx.Err})
			}
		case CardTimer:
			s.add(TimeCard{e.key, fx.Timer})
		case HideCard:
			s.unseat(e)
		case CardChanged:
			s.add(DrawCard{e.key})
		}
	}
}

// settled sends what the end of a request is at the host. A request that ended
// from its own side is none of ours.
func (s *cardsStep) settled(e *heldCard, fx SettleRequest) {
	session, call := e.row.GetSession(), e.row.GetCallId()
	switch fx.Outcome {
	case RequestAnswered: // the claim stays until the host has taken it
		e.late = false
		s.submit(e, fx.Submission, fx.Answers)
	case RequestTimedOut:
		s.add(CardCommand{e.key, &messages.ExpireRequest{Session: session, CallId: call, Claim: e.claim, By: s.config.By}})
	case RequestDelegated:
		s.add(CardCommand{e.key, &messages.DelegateRequest{Session: session, CallId: call, Claim: e.claim, By: s.config.By}})
	case RequestCancelled:
		s.add(CardCommand{e.key, &messages.DismissRequest{Session: session, CallId: call, By: s.config.By}})
	case RequestAborted:
	}
}

func (s *cardsStep) submit(e *heldCard, submission string, answers []*messages.Answer) {
	e.sending = submission
	s.add(CardCommand{e.key, &messages.SubmitRequest{Session: e.row.GetSession(), CallId: e.row.GetCallId(), SubmissionId: submission,
		Answers: answers, OnExpired: messages.OnExpired_ON_EXPIRED_LATE, By: s.config.By, CallSeq: e.row.GetCallSeq()}})
}

// CardSight is one card of a client, as a panel needs it.
type CardSight struct {
	Key    string
	Row    *messages.QuestionRow
	View   CardView
	Draft  Draft
	Review bool
	Seated bool
	// Frozen: an answer was sent, nothing may be changed.
	Frozen bool
	// Held: a claim holds the wait.
	Held bool
}

// Sight is one card; false: there is no such card.
func (c *Cards) Sight(key string) (CardSight, bool) {
	e := c.find(key)
	if e == nil {
		return CardSight{}, false
	}
	return CardSight{Key: e.key, Row: e.row, View: e.card.View(), Draft: e.draft, Review: e.review,
		Seated: slices.Contains(c.seats, key), Frozen: e.frozen(), Held: e.request != ""}, true
}

// Keys are the keys of all cards, in the order they were made.
func (c *Cards) Keys() []string {
	var keys []string
	for _, e := range c.cards {
		keys = append(keys, e.key)
	}
	return keys
}

// Top is the card that is shown; empty: none.
func (c *Cards) Top() string {
	top, precedence := "", 0
	for _, key := range c.seats {
		if p := c.find(key).precedence(); p >= precedence {
			top, precedence = key, p
		}
	}
	return top
}

// ShownOf is how questions of a row are shown.
func ShownOf(questions []*messages.Question) []ShownQuestion {
	var out []ShownQuestion
	for _, q := range questions {
		shown := ShownQuestion{ID: q.GetId(), Question: q.GetQuestion(), Detail: q.Detail}
		if header := q.GetHeader(); header != "" {
			shown.Header = &header
		}
		if multi := q.GetMultiSelect(); multi {
			shown.MultiSelect = &multi
		}
		for _, o := range q.GetOptions() {
			option := ShownOption{Label: o.GetLabel()}
			if words := o.GetDescription(); words != "" {
				option.Description = &words
			}
			shown.Options = append(shown.Options, option)
		}
		if in := q.GetIntent(); in != nil {
			shown.Intent = &ShownIntent{Kind: in.GetKind(), Approve: in.GetApprove()}
		}
		out = append(out, shown)
	}
	return out
}
