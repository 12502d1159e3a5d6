package actors

import (
	"errors"
	"slices"

	"github.com/parleyrun/parley/messages"
)

// Card is one question call at a client, from the first word of it until it is
// closed. It decides how long an untouched question may hold
// the agent, which way an answer goes, and what the person is told. What was
// chosen and written is the Draft's, which cards there are is Cards'.
//
//	         untouched          a key, a click          the first edit
//	(frame)──▶ counting ◀──Blur── focused ──Engage──▶ editing
//	              │  └──────────Focus──▶ ┘               │
//	              │ the tick past the deadline           │ TakeTime, from anywhere
//	              ▼                                      ▼
//	        the request is settled: ASK_TIMED_OUT     waiting
//
// Only counting runs a deadline. Whatever the word is, the call may be
// continued at any time, and then that is what is shown.
//
// The deadline is an instant of Now.Wall, as in the reference, so a step of
// that clock moves it. A client whose countdown must not step passes
// its monotonic clock as both.
type Card struct {
	unkeyed   bool
	state     CardState
	attached  string   // the request that an answer goes to; empty: none
	requests  []string // every request that is not settled; attached is one of them
	late      bool     // a late channel is attached
	timedWait bool     // the attached request had a deadline
	deadline  instant
	remaining instant // the frozen remainder, a duration
	unheld    string  // the request whose claim was lost; empty: none
	host      instant // when its wait ends at the host, if ever
	focused   bool
	engaged   bool
	held      bool
	closed    bool
	sending   string // a late submission that is under way; empty: none

	shownAt int64 // the wall time that the countdown is shown as of
	ticks   uint32
	ticking bool
	nextAt  int64 // monotonic: when the next tick is due
}

// instant is a number that may be absent.
type instant struct {
	ms  int64
	set bool
}

// cardTickMS is how often a running countdown is looked at.
const cardTickMS = 1000

// CardTick is the name of a card's only timer.
const CardTick = "tick"

// CardState mirrors the projection: the call is open, or it has been continued.
type CardState string

// The states of a card's call.
const (
	CardOpen      CardState = "open"
	CardContinued CardState = "continued"
)

// CardWait is what a card does with the agent's time.
type CardWait string

// The words for it, the strongest first.
const (
	WaitContinued CardWait = "continued" // the agent went on
	WaitHeld      CardWait = "waiting"   // the person took time
	WaitEditing   CardWait = "editing"   // something was chosen or written
	WaitFocused   CardWait = "focused"   // the person is at it
	WaitCounting  CardWait = "counting"  // nobody has touched it
)

// CardChannel is the way that an answer would go.
type CardChannel string

// The channels. The live one wins over the late one.
const (
	ChannelLive CardChannel = "waterfall"
	ChannelLate CardChannel = "rpc"
	ChannelNone CardChannel = "none"
)

// What a card answers to an input that it cannot follow.
var (
	ErrNoChannel     = errors.New("no channel accepts an answer yet")
	ErrNoCancel      = errors.New("no channel accepts a cancellation yet")
	ErrNotAnswerable = errors.New("this question is no longer answerable")
	ErrSending       = errors.New("an answer is on its way")
)

// CardView is what a card shows.
type CardView struct {
	State   CardState
	Wait    CardWait
	Channel CardChannel
	// Counts says that there is a countdown: the attached request has a deadline.
	Counts bool
	// RemainingMS is as of the last change or tick; frozen unless Running.
	RemainingMS int64
	Running     bool
	Closed      bool
	// Sending says that a late answer is on its way.
	Sending bool
	// Unheld says that the claim was lost, so that nothing here holds the wait.
	Unheld bool
}

// CardInput is one thing that happens to a card: what the person does, or what
// the stream says. A card ignores what does not apply.
type CardInput interface{ cardInput() }

// What the host and its streams say.
type (
	// Requested: a request for this call was forwarded, and the frame of its
	// claim has come. Cancelled means that it ended in between.
	Requested struct {
		ID          string
		RemainingMS int64
		Never       bool // no deadline
		Cancelled   bool
	}
	// RequestEnded: a request was cancelled by its own side. Lost means
	// that the claim went with its stream: the wait goes on at its host, whose
	// deadline runs again.
	RequestEnded struct {
		ID   string
		Lost bool
	}
	// Projected: the projection shows the call in this state.
	Projected struct{ State CardState }
	// LateChannel: late answers are taken, or no more.
	LateChannel struct{ Open bool }
	// LateReplied: what became of the late answer under way. Err is nil when it
	// was accepted, ErrNotAnswerable when it was refused, else what went wrong.
	LateReplied struct {
		Submission string
		Err        error
	}
	// Ticked: the timer fired. A generation that was replaced means nothing.
	Ticked struct{ Gen uint32 }
)

// What the person does.
type (
	// Focused: they came to the answer area.
	Focused struct{}
	// Blurred: they left it.
	Blurred struct{}
	// Engaged: their first edit.
	Engaged struct{}
	// TimeTaken: they asked for as long as they like.
	TimeTaken struct{}
	// Answered: they sent a batch.
	Answered struct {
		Submission string
		Answers    []*messages.Answer
	}
	// Dismissed: they closed the card.
	Dismissed struct{}
	// Delegated: the question is passed to the next answerer.
	Delegated struct{}
	// CardClosed: the card is taken away. It is final.
	CardClosed struct{}
)

func (Requested) cardInput()    {}
func (RequestEnded) cardInput() {}
func (Projected) cardInput()    {}
func (LateChannel) cardInput()  {}
func (LateReplied) cardInput()  {}
func (Ticked) cardInput()       {}
func (Focused) cardInput()      {}
func (Blurred) cardInput()      {}
func (Engaged) cardInput()      {}
func (TimeTaken) cardInput()    {}
func (Answered) cardInput()     {}
func (Dismissed) cardInput()    {}
func (Delegated) cardInput()    {}
func (CardClosed) cardInput()   {}

// CardEffect is one thing that a card asks of the client around it.
type CardEffect interface{ cardEffect() }

// RequestOutcome is how a request ended at this client.
type RequestOutcome string

// The outcomes. Delegated is no error of the question.
const (
	RequestAnswered  RequestOutcome = "answered"
	RequestDelegated RequestOutcome = "delegated"
	RequestTimedOut                 = RequestOutcome(messages.AskTimedOut)
	RequestAborted                  = RequestOutcome(messages.AskAborted)
	RequestCancelled                = RequestOutcome(messages.AskCancelled)
)

// The effects, in the order in which they are to be done.
type (
	// SettleRequest ends a request, once. The claim beside it stays open until
	// the host has taken an answer.
	SettleRequest struct {
		ID         string
		Outcome    RequestOutcome
		Submission string             // of an answer
		Answers    []*messages.Answer // of an answer
	}
	// SubmitLate sends an answer over the late channel; LateReplied answers it.
	SubmitLate struct {
		Submission string
		Answers    []*messages.Answer
	}
	// CardTold answers a submission or a dismissal: nil, or why it was not
	// followed. A late submission is answered when LateReplied has come.
	CardTold struct{ Err error }
	// CardTimer starts the tick, or stops it with After < 0.
	CardTimer struct{ Timer }
	// HideCard takes the card out of sight; it lives on.
	HideCard struct{}
	// CardChanged says that View is another one.
	CardChanged struct{}
)

func (SettleRequest) cardEffect() {}
func (SubmitLate) cardEffect()    {}
func (CardTold) cardEffect()      {}
func (CardTimer) cardEffect()     {}
func (HideCard) cardEffect()      {}
func (CardChanged) cardEffect()   {}

// NewCard is the card of a keyed call, or of a request without a call id.
func NewCard(unkeyed bool) *Card { return &Card{unkeyed: unkeyed, state: CardOpen} }

// Step decides one input.
func (c *Card) Step(now Now, in CardInput) []CardEffect {
	before, knew := c.facts(), c.shownAt
	fx := c.decide(now, in)
	tick, ticked := in.(Ticked)
	ticked = ticked && tick.Gen == c.ticks && c.ticking
	if ticked || before != c.facts() {
		c.shownAt = now.Wall
	}
	fx = c.timer(now, ticked, fx)
	if before != c.facts() || knew != c.shownAt {
		fx = append(fx, CardChanged{})
	}
	return fx
}

// cardFacts is all that View is made of, but for the time.
type cardFacts struct {
	state                  CardState
	attached               string
	late, timedWait        bool
	deadline, remaining    instant
	focused, engaged, held bool
	closed, lateSending    bool
	unheld                 string
}

func (c *Card) facts() cardFacts {
	return cardFacts{
		c.state, c.attached, c.late, c.timedWait, c.deadline, c.remaining,
		c.focused, c.engaged, c.held, c.closed, c.sending != "", c.unheld,
	}
}

func (c *Card) decide(now Now, in CardInput) []CardEffect {
	switch in := in.(type) {
	case Requested:
		return c.request(now, in)
	case RequestEnded:
		return c.requestEnded(now, in)
	case Projected:
		c.state = in.State
	case LateChannel:
		c.late = in.Open
	case LateReplied:
		return c.lateReplied(in)
	case Ticked:
		if in.Gen == c.ticks && c.ticking && c.deadline.set && now.Wall >= c.deadline.ms {
			return c.timeOut()
		}
	case Focused:
		c.focus(now)
	case Blurred:
		c.blur(now)
	case Engaged:
		c.engage(now)
	case TimeTaken:
		if !c.held {
			c.held, c.focused, c.remaining, c.deadline = true, false, instant{}, instant{}
		}
	case Answered:
		return c.submit(in)
	case Dismissed:
		return c.dismiss()
	case Delegated:
		if c.attached != "" {
			return c.settle(c.attached, SettleRequest{Outcome: RequestDelegated})
		}
	case CardClosed:
		c.closed = true
	}
	return nil
}

// untouched says that nothing has been chosen, written, or asked for.
func (c *Card) untouched() bool { return !c.held && !c.engaged }

// request attaches a request in place of the one before. A person who
// has touched the card has all the time there is.
func (c *Card) request(now Now, in Requested) []CardEffect {
	if in.ID == "" || slices.Contains(c.requests, in.ID) {
		return nil
	}
	if in.Cancelled { // it never reaches the card
		return []CardEffect{SettleRequest{ID: in.ID, Outcome: RequestAborted}}
	}
	c.requests = append(c.requests, in.ID)
	c.attached, c.timedWait, c.unheld = in.ID, !in.Never, ""
	c.host = instant{now.Wall + in.RemainingMS, !in.Never} // it never moves, whatever this client does
	if !c.untouched() {
		return nil
	}
	c.deadline = instant{now.Wall + in.RemainingMS, !in.Never}
	if c.focused {
		c.freeze(now)
	}
	return nil
}

// requestEnded is the end of a request from its own side. One that is not the
// attached one detaches nothing. One whose claim was lost before is then over
// at its host too.
func (c *Card) requestEnded(now Now, in RequestEnded) []CardEffect {
	if in.ID != "" && in.ID == c.unheld && !in.Lost {
		c.unheld = ""
	}
	if !slices.Contains(c.requests, in.ID) {
		return nil
	}
	if in.Lost && in.ID == c.attached {
		c.unheld = in.ID
	}
	return c.settle(in.ID, SettleRequest{Outcome: RequestAborted})
}

// settle ends one request, once. Detaching keeps the frozen remainder
// and the flags.
func (c *Card) settle(id string, how SettleRequest) []CardEffect {
	c.requests = slices.DeleteFunc(c.requests, func(r string) bool { return r == id })
	if id == c.attached {
		c.attached, c.timedWait, c.deadline = "", false, instant{}
	}
	how.ID = id
	return []CardEffect{how}
}

// freeze turns a running deadline into a remainder that waits.
func (c *Card) freeze(now Now) {
	if c.deadline.set {
		c.remaining, c.deadline = instant{max(0, c.deadline.ms-now.Wall), true}, instant{}
	}
}

func (c *Card) focus(now Now) {
	if c.untouched() && !c.focused {
		c.freeze(now)
		c.focused = true
	}
}

// blur lets the countdown go on from where it stood.
func (c *Card) blur(now Now) {
	if !c.focused {
		return
	}
	c.focused = false
	if c.timedWait && c.remaining.set {
		c.deadline = instant{now.Wall + c.remaining.ms, true}
	}
	c.remaining = instant{}
}

// engage stops the countdown for good.
func (c *Card) engage(now Now) {
	if !c.untouched() {
		return
	}
	if !c.remaining.set {
		c.freeze(now)
	}
	c.engaged, c.focused, c.deadline = true, false, instant{}
}

// timeOut gives the request up. The card stays, and goes on with the
// late channel once the projection says so.
func (c *Card) timeOut() []CardEffect {
	if !c.untouched() || c.focused || c.attached == "" {
		return nil
	}
	return c.settle(c.attached, SettleRequest{Outcome: RequestTimedOut})
}

// submit sends a batch by the channel of this instant.
func (c *Card) submit(in Answered) []CardEffect {
	switch c.Channel() {
	case ChannelLive: // that it was sent is all that is known
		sent := c.settle(c.attached, SettleRequest{Outcome: RequestAnswered, Submission: in.Submission, Answers: in.Answers})
		return append(sent, CardTold{})
	case ChannelLate:
		if c.sending != "" {
			return []CardEffect{CardTold{ErrSending}}
		}
		c.sending = in.Submission
		return []CardEffect{SubmitLate(in)}
	case ChannelNone:
	}
	return []CardEffect{CardTold{ErrNoChannel}}
}

func (c *Card) lateReplied(in LateReplied) []CardEffect {
	if c.sending == "" || in.Submission != c.sending {
		return nil
	}
	c.sending = ""
	return []CardEffect{CardTold{in.Err}}
}

// dismiss hides a keyed card, whose wait goes on, and cancels an unkeyed
// request.
func (c *Card) dismiss() []CardEffect {
	switch {
	case !c.unkeyed:
		return []CardEffect{HideCard{}, CardTold{}}
	case c.attached == "":
		return []CardEffect{CardTold{ErrNoCancel}}
	}
	return append(c.settle(c.attached, SettleRequest{Outcome: RequestCancelled}), CardTold{})
}

// timer keeps one timer running for as long as a deadline runs. A tick
// that came late moves none of those after it.
func (c *Card) timer(now Now, ticked bool, fx []CardEffect) []CardEffect {
	running := c.deadline.set && !c.closed
	switch {
	case !running && c.ticking:
		c.ticking = false
		return append(fx, CardTimer{Timer{Name: CardTick, After: -1, Gen: c.ticks}})
	case running && !c.ticking:
		c.nextAt = now.Mono + cardTickMS
	case running && ticked:
		c.nextAt += cardTickMS * (1 + max(0, now.Mono-c.nextAt)/cardTickMS)
	default:
		return fx
	}
	c.ticking = true
	c.ticks++
	return append(fx, CardTimer{Timer{Name: CardTick, After: c.nextAt - now.Mono, Gen: c.ticks}})
}

// Channel is the way that an answer would go now.
func (c *Card) Channel() CardChannel {
	switch {
	case c.attached != "":
		return ChannelLive
	case c.late && c.state == CardContinued:
		return ChannelLate
	}
	return ChannelNone
}

// Wait is the word for what the card does with the agent's time.
func (c *Card) Wait() CardWait {
	switch {
	case c.state == CardContinued:
		return WaitContinued
	case c.held:
		return WaitHeld
	case c.engaged:
		return WaitEditing
	case c.focused:
		return WaitFocused
	}
	return WaitCounting
}

// View is what the card shows, its countdown as of the last change or tick.
func (c *Card) View() CardView {
	return CardView{State: c.state, Wait: c.Wait(), Channel: c.Channel(), Counts: c.timedWait, Running: c.deadline.set,
		RemainingMS: c.RemainingMS(Now{Wall: c.shownAt}), Closed: c.closed, Sending: c.sending != "", Unheld: c.Unheld()}
}

// RemainingMS is what is left of the countdown at this instant, for a client
// that draws when it likes; View has it as of the last tick.
func (c *Card) RemainingMS(now Now) int64 {
	switch {
	case !c.timedWait:
		return 0
	case c.deadline.set:
		return max(0, c.deadline.ms-now.Wall)
	}
	return c.remaining.ms
}

// Unheld reports that the claim was lost with its stream, so that nothing this
// client does holds the wait.
func (c *Card) Unheld() bool { return c.unheld != "" }

// HostRemainingMS is what is left at the host of a wait that is not held. False:
// it is held, or has no end.
func (c *Card) HostRemainingMS(now Now) (int64, bool) {
	return max(0, c.host.ms-now.Wall), c.unheld != "" && c.host.set
}

// Ticking reports whether the timer runs.
func (c *Card) Ticking() bool { return c.ticking }

// Unkeyed reports whether the call has no id, so that closing the card cancels it.
func (c *Card) Unkeyed() bool { return c.unkeyed }
