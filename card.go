package parley

import (
	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// Now is the time that a card is given, in milliseconds of a wall clock and of
// one that never steps. A card's countdown follows the first; pass the second
// as both if it must not step.
type Now = actors.Now

// Card is one question call at a client that shows it to a person: when it
// counts down, when it gives the wait up, and which way an answer goes. It is a
// machine without I/O; what happens goes into Step, what is to be done comes
// out of it.
//
// A client that shows several questions and keeps drafts wants Cards.
type (
	Card = actors.Card
	// CardView is what a card shows.
	CardView = actors.CardView
	// CardState mirrors the projection.
	CardState = actors.CardState
	// CardWait is what a card does with the agent's time.
	CardWait = actors.CardWait
	// CardChannel is the way that an answer would go.
	CardChannel = actors.CardChannel

	// CardInput is one thing that happens to a card: one of those below.
	CardInput = actors.CardInput
	// CardRequested attaches a request, once its claim's frame has come.
	CardRequested = actors.Requested
	// CardRequestEnded is a request that ended from its own side.
	CardRequestEnded = actors.RequestEnded
	// CardProjected follows the projection.
	CardProjected = actors.Projected
	// CardLateChannel says whether late answers are taken.
	CardLateChannel = actors.LateChannel
	// CardLateReplied is what became of a late answer.
	CardLateReplied = actors.LateReplied
	// CardTicked is the card's timer.
	CardTicked = actors.Ticked
	// CardFocused: the person came to the answer area.
	CardFocused = actors.Focused
	// CardBlurred: they left it.
	CardBlurred = actors.Blurred
	// CardEngaged: their first edit.
	CardEngaged = actors.Engaged
	// CardTimeTaken: they asked for as long as they like.
	CardTimeTaken = actors.TimeTaken
	// CardAnswered: they sent a batch.
	CardAnswered = actors.Answered
	// CardDismissed: they closed the card.
	CardDismissed = actors.Dismissed
	// CardDelegated: the question is passed on.
	CardDelegated = actors.Delegated
	// CardClosed takes the card away.
	CardClosed = actors.CardClosed

	// CardEffect is one thing that a card asks for: one of those below.
	CardEffect = actors.CardEffect
	// CardSettleRequest ends a request at this client.
	CardSettleRequest = actors.SettleRequest
	// CardRequestOutcome is how a request ended.
	CardRequestOutcome = actors.RequestOutcome
	// CardSubmitLate sends an answer over the late channel.
	CardSubmitLate = actors.SubmitLate
	// CardTold answers a submission or a dismissal.
	CardTold = actors.CardTold
	// CardTimer starts or stops the tick.
	CardTimer = actors.CardTimer
	// CardHide takes the card out of sight.
	CardHide = actors.HideCard
	// CardChanged says that the view is another one.
	CardChanged = actors.CardChanged
)

// What a card knows and says.
const (
	CardOpen      = actors.CardOpen
	CardContinued = actors.CardContinued

	WaitContinued = actors.WaitContinued
	WaitHeld      = actors.WaitHeld
	WaitEditing   = actors.WaitEditing
	WaitFocused   = actors.WaitFocused
	WaitCounting  = actors.WaitCounting

	ChannelLive = actors.ChannelLive
	ChannelLate = actors.ChannelLate
	ChannelNone = actors.ChannelNone

	RequestAnswered  = actors.RequestAnswered
	RequestDelegated = actors.RequestDelegated
	RequestTimedOut  = actors.RequestTimedOut
	RequestAborted   = actors.RequestAborted
	RequestCancelled = actors.RequestCancelled
)

// What a card, or a draft, answers when it cannot follow.
var (
	ErrNoChannel     = actors.ErrNoChannel
	ErrNoCancel      = actors.ErrNoCancel
	ErrNotAnswerable = actors.ErrNotAnswerable
	ErrSending       = actors.ErrSending
	ErrUnanswered    = actors.ErrUnanswered
	ErrIncomplete    = actors.ErrIncomplete
)

// Cards are all the cards of one client, with their claims and drafts: what the
// watch and the claims' streams say and what the person does goes into Step,
// and what is to be sent, kept and drawn comes out of it.
type (
	Cards = actors.Cards
	// CardsConfig is what a client is.
	CardsConfig = actors.CardsConfig
	// CardSight is one card of a client, as a panel needs it.
	CardSight = actors.CardSight
	// Draft is what a person has chosen and written on one card.
	Draft = actors.Draft
	// DraftItem is the draft of one question.
	DraftItem = actors.DraftItem
	// StoredDraft is a draft in the store.
	StoredDraft = actors.StoredDraft

	// CardsInput is one thing that happens to a client: one of those below.
	CardsInput = actors.CardsInput
	// CardsRowSeen: the watch shows a call so.
	CardsRowSeen = actors.RowSeen
	// CardsSynced: every row of a session has been seen.
	CardsSynced = actors.Synced
	// CardsClaimFramed is the first word of a claim's stream.
	CardsClaimFramed = actors.ClaimFramed
	// CardsClaimOver is its end.
	CardsClaimOver = actors.ClaimOver
	// CardsSubmitReplied is what became of a submission.
	CardsSubmitReplied = actors.SubmitReplied
	// CardsTicked is the timer of a card.
	CardsTicked = actors.CardTicked
	// CardsOn is what the person does to a card.
	CardsOn = actors.OnCard
	// CardsDrafted is their draft now.
	CardsDrafted = actors.Drafted
	// CardsSent: they submit it.
	CardsSent = actors.Sent
	// CardsRevealed: they want to see a card.
	CardsRevealed = actors.Revealed
	// CardsReviewed: they want to see a settled call.
	CardsReviewed = actors.Reviewed
	// CardsUnloaded: the client goes.
	CardsUnloaded = actors.Unloaded

	// CardsEffect is one thing that a client is asked for: one of those below.
	CardsEffect = actors.CardsEffect
	// CardsHoldWait opens a claim's stream.
	CardsHoldWait = actors.HoldWait
	// CardsLetGo ends it.
	CardsLetGo = actors.LetGo
	// CardsCommand is to be sent.
	CardsCommand = actors.CardCommand
	// CardsSays answers the person.
	CardsSays = actors.CardSays
	// CardsTimer starts or stops the timer of a card.
	CardsTimer = actors.TimeCard
	// CardsSeat shows a card.
	CardsSeat = actors.SeatCard
	// CardsUnseat takes it out of sight.
	CardsUnseat = actors.UnseatCard
	// CardsDraw: it may look otherwise now.
	CardsDraw = actors.DrawCard
	// CardsKeepDraft puts a draft into the store.
	CardsKeepDraft = actors.KeepDraft
	// CardsDropDraft takes it out.
	CardsDropDraft = actors.DropDraft
	// CardsGone: there is no such card any more.
	CardsGone = actors.CardGone
)

// NewCards is a client without cards yet.
func NewCards(config CardsConfig) *Cards { return actors.NewCards(config) }

// NewDraft is the draft of an untouched card; with preselect a recommended
// first option is chosen, which is no edit.
func NewDraft(questions []*messages.Question, preselect bool) Draft {
	return actors.NewDraft(questions, preselect)
}

// NewCard is the card of a keyed call, or of one without a call id.
func NewCard(unkeyed bool) *Card { return actors.NewCard(unkeyed) }
