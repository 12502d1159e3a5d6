package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// client is all cards of one client, and what is around them: its store, its
// screen, its streams and what it sent.
type client struct {
	*actors.Cards
	t      require.TestingT
	config actors.CardsConfig
	now    actors.Now
	fx     []actors.CardsEffect // of the last input

	seated []string
	holds  map[string]actors.HoldWait // streams that are open, by card
	sent   []*messages.SubmitRequest
	flying map[string]string // submissions without an answer, by card
	others []messages.Command
	said   []error
	gone   map[string]bool
}

func newClient(t require.TestingT, config actors.CardsConfig) *client {
	c := &client{t: t, config: config, now: actors.Now{Wall: 1_000_000}, holds: map[string]actors.HoldWait{},
		flying: map[string]string{}, gone: map[string]bool{}}
	c.config.Drafts = slices.Clone(config.Drafts)
	c.Cards = actors.NewCards(config)
	return c
}

func (c *client) do(in actors.CardsInput) []actors.CardsEffect {
	c.fx = c.Step(c.now, in)
	for _, fx := range c.fx {
		switch fx := fx.(type) {
		case actors.SeatCard:
			require.NotContains(c.t, c.seated, fx.Key)
			c.seated = append(c.seated, fx.Key)
		case actors.UnseatCard:
			require.Contains(c.t, c.seated, fx.Key)
			c.seated = slices.DeleteFunc(c.seated, func(k string) bool { return k == fx.Key })
		case actors.HoldWait:
			require.NotContains(c.t, c.holds, fx.Key, "one claim at a time")
			c.holds[fx.Key] = fx
		case actors.LetGo:
			require.Equal(c.t, c.holds[fx.Key].Hold, fx.Hold)
			delete(c.holds, fx.Key)
		case actors.CardCommand:
			c.command(fx)
		case actors.CardSays:
			c.said = append(c.said, fx.Err)
		case actors.KeepDraft:
			c.config.Drafts = slices.DeleteFunc(c.config.Drafts, func(d actors.StoredDraft) bool { return d.Key == fx.Key })
			c.config.Drafts = append(c.config.Drafts, actors.StoredDraft(fx))
		case actors.DropDraft:
			c.config.Drafts = slices.DeleteFunc(c.config.Drafts, func(d actors.StoredDraft) bool { return d.Key == fx.Key })
		case actors.CardGone:
			c.gone[fx.Key] = true
			delete(c.flying, fx.Key)
		}
	}
	return c.fx
}

func (c *client) command(fx actors.CardCommand) {
	if req, ok := fx.Cmd.(*messages.SubmitRequest); ok {
		require.NotContains(c.t, c.flying, fx.Key, "one submission at a time")
		c.flying[fx.Key] = req.GetSubmissionId()
		c.sent = append(c.sent, req)
		return
	}
	c.others = append(c.others, fx.Cmd)
}

func rowOf(call, state string) *messages.QuestionRow {
	return &messages.QuestionRow{Session: "s", CallId: call, State: state, CallSeq: 1, Questions: []*messages.Question{choice("a", false, "x", "y")}}
}

func (c *client) see(call, state string) { c.do(actors.RowSeen{Row: rowOf(call, state)}) }

func (c *client) frame(key string, ms int64) {
	c.do(actors.ClaimFramed{Key: key, Hold: c.holds[key].Hold, Claim: "claim-" + key, RemainingMS: ms})
}

func (c *client) over(key string, lost bool) {
	h := c.holds[key]
	delete(c.holds, key)
	c.do(actors.ClaimOver{Key: key, Hold: h.Hold, Lost: lost})
}

func (c *client) reply(key string, err error) {
	id := c.flying[key]
	delete(c.flying, key)
	c.do(actors.SubmitReplied{Key: key, Submission: id, Err: err})
}

func (c *client) sight(key string) actors.CardSight {
	s, ok := c.Sight(key)
	require.True(c.t, ok, "%s is a card", key)
	return s
}

func (c *client) choose(key, label string) {
	c.do(actors.Drafted{Key: key, Draft: c.sight(key).Draft.Choose(label, false)})
}

const k1, k2 = "question:s:c1", "question:s:c2"

// one card for a call, whatever comes first; the last one shown is on top.
func TestOneCardForACall(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.see("c1", "open")
	c.see("c2", "continued")
	require.Equal(t, []string{k1, k2}, c.Keys())
	require.Equal(t, k2, c.Top())
	c.do(actors.Revealed{Key: k1})
	require.Equal(t, k1, c.Top())
	c.do(actors.OnCard{Key: k1, Do: actors.Dismissed{}})
	require.Equal(t, k2, c.Top())
	require.NoError(t, c.said[0])
	require.False(t, c.sight(k1).Seated)
	require.Contains(t, c.holds, k1, "a hidden card holds its wait (Q-187)")

	plan := rowOf("c3", "open")
	detail := "the plan"
	plan.Questions[0].Detail, plan.Questions[0].Intent = &detail, &messages.Intent{Kind: "plan-review", Approve: "x"}
	c.do(actors.RowSeen{Row: plan})
	c.do(actors.Revealed{Key: k1})
	require.Equal(t, "question:s:c3", c.Top(), "a plan is before a question")

	c.see("c4", "settled")
	c.do(actors.RowSeen{Row: &messages.QuestionRow{Session: "s", CallId: "c5", State: "open"}})
	require.Len(t, c.Keys(), 3, "what cannot be answered, or read, has no card")
}

// nothing is attached before the frame; Q-183: an untouched card gives
// up, hidden or not, and the agent goes on; Q-210: the card goes on with it.
func TestAnUntouchedCardExpires(t *testing.T) {
	c := newClient(t, actors.CardsConfig{By: "me"})
	c.see("c1", "open")
	require.Equal(t, actors.ChannelNone, c.sight(k1).View.Channel)
	c.frame(k1, 900)
	require.True(t, c.sight(k1).View.Running)
	c.do(actors.OnCard{Key: k1, Do: actors.Dismissed{}})
	c.now = actors.Now{Wall: c.now.Wall + 1000, Mono: c.now.Mono + 1000}
	c.do(actors.CardTicked{Key: k1, Gen: 1})
	require.Equal(t, []messages.Command{&messages.ExpireRequest{Session: "s", CallId: "c1", Claim: "claim-" + k1, By: "me"}}, c.others)
	c.over(k1, false)
	require.Empty(t, c.holds, "it is not claimed again by itself")
	c.see("c1", "continued")
	require.Equal(t, actors.ChannelLate, c.sight(k1).View.Channel)
}

// a live answer keeps its claim, and the card is frozen until it
// is gone; the same batch is sent under the same name.
func TestALiveAnswer(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 60_000)
	c.do(actors.Sent{Key: k1, Submission: "a"})
	require.ErrorIs(t, c.said[0], actors.ErrIncomplete)
	c.choose(k1, "x")
	require.Equal(t, actors.WaitEditing, c.sight(k1).View.Wait)
	c.do(actors.Sent{Key: k1, Submission: "b"})
	require.Len(t, c.sent, 1)
	require.Equal(t, messages.OnExpired_ON_EXPIRED_LATE, c.sent[0].GetOnExpired())
	require.EqualValues(t, 1, c.sent[0].GetCallSeq())
	require.Contains(t, c.holds, k1)
	c.do(actors.Sent{Key: k1, Submission: "c"})
	require.ErrorIs(t, c.said[1], actors.ErrSending)
	c.choose(k1, "y")
	require.Equal(t, []string{"x"}, c.sight(k1).Draft.Items[0].Selected, "it is frozen (Q-233)")

	c.reply(k1, messages.Refuse(messages.Unavailable, "no word"))
	require.ErrorIs(t, c.said[2], messages.Refuse(messages.Unavailable, ""))
	require.Equal(t, actors.ChannelLive, c.sight(k1).View.Channel, "its claim still holds")
	c.do(actors.Sent{Key: k1, Submission: "d"})
	require.Equal(t, "b", c.sent[1].GetSubmissionId(), "it counts once")
	c.reply(k1, messages.Refuse(messages.BadAnswer, "no"))
	c.choose(k1, "y")
	c.do(actors.Sent{Key: k1, Submission: "e"})
	require.Equal(t, "e", c.sent[2].GetSubmissionId(), "another batch is another answer")

	c.reply(k1, nil)
	require.NoError(t, c.said[len(c.said)-1])
	require.True(t, c.sight(k1).Frozen)
	require.NotEmpty(t, c.Keys(), "an answer alone removes no card (Q-212)")
	c.see("c1", "settled")
	require.Empty(t, c.Keys())
	require.Empty(t, c.holds)
	require.Empty(t, c.config.Drafts)
}

// a race that was lost leaves the draft, and the next answer is a late one.
func TestALostRaceKeepsTheDraft(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 60_000)
	c.choose(k1, "x")
	c.do(actors.Sent{Key: k1, Submission: "a"})
	c.see("c1", "continued")
	require.True(t, c.sight(k1).Frozen, "there is no word yet")
	c.over(k1, false)
	c.reply(k1, messages.Refuse(messages.NotAnswerable, "it has gone on"))
	require.False(t, c.sight(k1).Frozen)
	require.Equal(t, actors.ChannelLate, c.sight(k1).View.Channel)
	c.do(actors.Sent{Key: k1, Submission: "b"})
	require.Equal(t, "a", c.sent[1].GetSubmissionId())
	c.reply(k1, nil)
	require.False(t, c.sight(k1).Seated, "accepted, though not settled: out of sight (Q-235)")
	c.see("c1", "replied")
	require.Empty(t, c.Keys(), "a queued reply removes the card")
	c.see("c1", "continued")
	require.Equal(t, make([]actors.DraftItem, 1), c.sight(k1).Draft.Items, "it comes back without a draft (Q-211)")
}

// what ends while an answer is on its way waits for the word about it.
func TestACardWaitsForItsAnswer(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "continued")
	c.choose(k1, "x")
	c.do(actors.Sent{Key: k1, Submission: "a"})
	c.see("c1", "settled")
	require.Len(t, c.Keys(), 1)
	c.reply(k1, messages.Refuse(messages.Settled, "somebody was first"))
	require.Empty(t, c.Keys())
	require.ErrorIs(t, c.said[0], messages.Refuse(messages.Settled, ""))
}

// M5: a draft is of its question, and not of another one that has its id now.
func TestADraftIsOfItsCall(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "continued")
	c.choose(k1, "x")
	require.EqualValues(t, 1, c.config.Drafts[0].CallSeq)
	unknown := slices.Clone(c.config.Drafts)
	unknown[0].CallSeq = 0

	again := newClient(t, c.config)
	again.see("c1", "continued")
	require.Equal(t, []string{"x"}, again.sight(k1).Draft.Items[0].Selected)

	anew := rowOf("c1", "open")
	anew.CallSeq = 2
	again = newClient(t, c.config)
	again.do(actors.RowSeen{Row: anew})
	require.Empty(t, again.sight(k1).Draft.Items[0].Selected)
	require.Equal(t, actors.WaitCounting, again.sight(k1).View.Wait)
	require.Empty(t, again.config.Drafts, "nobody will want it")

	again = newClient(t, actors.CardsConfig{Drafts: unknown})
	again.do(actors.RowSeen{Row: anew})
	require.Equal(t, []string{"x"}, again.sight(k1).Draft.Items[0].Selected, "a store that does not say whose it is")
}

// An answer that is on its way when its call is asked again loses its card, not
// the word about it (P2). The new card is free.
func TestAnAnswerOutlivesItsCard(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "continued")
	c.choose(k1, "x")
	c.do(actors.Sent{Key: k1, Submission: "a"})
	anew := rowOf("c1", "open")
	anew.CallSeq = 2
	c.do(actors.RowSeen{Row: anew})
	require.Empty(t, c.said)
	require.False(t, c.sight(k1).Frozen)
	replied := actors.SubmitReplied{Key: k1, Submission: "a", Err: messages.Refuse(messages.NotAnswerable, "it has been asked again")}
	c.do(replied)
	require.Len(t, c.said, 1)
	require.ErrorIs(t, c.said[0], messages.Refuse(messages.NotAnswerable, ""))
	c.do(replied)
	require.Len(t, c.said, 1, "once")
}

// a draft answers the asking that it was written for, also when the next
// asking was answered by somebody else before it could be seen open.
func TestADraftIsNotCarriedOverAnAnsweredAsking(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "continued")
	c.choose(k1, "x")
	c.do(actors.Sent{Key: k1, Submission: "a"})         // it is on its way meanwhile
	for _, state := range []string{"replied", "open"} { // and the reply was taken back
		anew := rowOf("c1", state)
		anew.CallSeq = 2
		c.do(actors.RowSeen{Row: anew})
	}
	require.Empty(t, c.sight(k1).Draft.Items[0].Selected)
	require.NotEqual(t, actors.WaitEditing, c.sight(k1).View.Wait)
}

// Q-210, M5: a row of an earlier asking takes away neither the card nor its draft,
// and the draft comes back on no other question.
func TestAnEarlierAskingIsOldNews(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	anew := rowOf("c1", "continued")
	anew.CallSeq = 2
	c.do(actors.RowSeen{Row: anew})
	c.choose(k1, "x")
	c.do(actors.Sent{Key: k1, Submission: "a"})
	for _, state := range []string{"replied", "open", "continued"} {
		c.see("c1", state)
		require.Empty(t, c.fx, state)
	}
	require.EqualValues(t, 2, c.sight(k1).Row.GetCallSeq())

	again := newClient(t, c.config)
	again.do(actors.RowSeen{Row: anew})
	require.Equal(t, c.sight(k1).Draft, again.sight(k1).Draft)
	again = newClient(t, c.config)
	again.see("c1", "continued")
	require.Empty(t, again.sight(k1).Draft.Items[0].Selected)
}

// nobody waits where no frame comes, and a claim that was lost is opened again.
func TestClaimsThatEnd(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 5000)
	first := c.holds[k1].Hold
	c.over(k1, true)
	require.True(t, c.holds[k1].Again)
	require.Equal(t, actors.ChannelNone, c.sight(k1).View.Channel)
	c.do(actors.ClaimFramed{Key: k1, Hold: first, Claim: "old", RemainingMS: 1})
	require.False(t, c.sight(k1).Held, "the word of a stream that is gone")
	c.frame(k1, 4000)
	require.True(t, c.sight(k1).Held)
	c.over(k1, true)
	c.over(k1, true)
	require.True(t, c.sight(k1).View.Unheld)
	c.over(k1, false)
	require.False(t, c.sight(k1).View.Unheld, "it is over at its host too")
	c.do(actors.OnCard{Key: k1, Do: actors.Focused{}})
	require.Empty(t, c.holds)
}

// a question that was passed on is held again by whoever comes back to it.
func TestDelegationAndReturn(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 5000)
	c.do(actors.OnCard{Key: k1, Do: actors.Delegated{}})
	require.Equal(t, "claim-"+k1, c.others[0].(*messages.DelegateRequest).GetClaim())
	require.Contains(t, c.holds, k1, "until the host has ended it")
	c.over(k1, false)
	c.do(actors.OnCard{Key: k1, Do: actors.Focused{}})
	require.Contains(t, c.holds, k1)
	c.frame(k1, 3000)
	require.Equal(t, actors.WaitFocused, c.sight(k1).View.Wait)
}

// who comes back before the host has ended the claim that was passed
// on, or given up, holds again as soon as it has.
func TestReturnBeforeTheClaimIsOver(t *testing.T) {
	for name, back := range map[string]func(c *client){
		"focus": func(c *client) { c.do(actors.OnCard{Key: k1, Do: actors.Focused{}}) },
		"edit":  func(c *client) { c.choose(k1, "x") },
		"time":  func(c *client) { c.do(actors.OnCard{Key: k1, Do: actors.TimeTaken{}}) },
	} {
		c := newClient(t, actors.CardsConfig{})
		c.see("c1", "open")
		c.frame(k1, 5000)
		first := c.holds[k1].Hold
		c.do(actors.OnCard{Key: k1, Do: actors.Delegated{}})
		back(c)
		require.Equal(t, first, c.holds[k1].Hold, name)
		c.over(k1, false)
		require.Contains(t, c.holds, k1, name)
		require.False(t, c.holds[k1].Again, name)
		c.frame(k1, 4000)
		require.Equal(t, actors.ChannelLive, c.sight(k1).View.Channel, name)
		c.over(k1, false)
		require.NotContains(t, c.holds, k1, name)
	}
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 5000)
	for _, do := range []actors.CardInput{actors.Delegated{}, actors.Focused{}, actors.Delegated{}} {
		c.do(actors.OnCard{Key: k1, Do: do})
	}
	c.over(k1, false)
	require.Empty(t, c.holds, "they have left it again")
}

// an unkeyed card cancels, and goes with its request.
func TestAnUnkeyedCard(t *testing.T) {
	c := newClient(t, actors.CardsConfig{Load: "0123456789abcdef0123456789abcdef", By: "me"})
	row := rowOf("c1", "open")
	row.Unkeyed = true
	c.do(actors.RowSeen{Row: row})
	key := "question:0123456789abcdef0123456789abcdef:1"
	require.Equal(t, []string{key}, c.Keys())
	c.do(actors.OnCard{Key: key, Do: actors.Dismissed{}})
	require.ErrorIs(t, c.said[0], actors.ErrNoCancel)
	c.do(actors.ClaimFramed{Key: key, Hold: c.holds[key].Hold, Claim: "cl", Never: true})
	c.choose(key, "x")
	c.do(actors.OnCard{Key: key, Do: actors.Dismissed{}})
	require.Equal(t, []messages.Command{&messages.DismissRequest{Session: "s", CallId: "c1", By: "me"}}, c.others)
	c.over(key, false)
	require.Empty(t, c.Keys())
	require.Empty(t, c.config.Drafts)
}

// a settled call is shown as it is; a card that lives is shown instead.
func TestReviewCards(t *testing.T) {
	c := newClient(t, actors.CardsConfig{Drafts: []actors.StoredDraft{{Session: "s", Key: k1,
		Draft: []byte(`{"page":0,"drafts":[{"selected":["y"],"custom":"","skipped":false}],"wait":"waiting"}`)}}})
	settled := rowOf("c1", "settled")
	c.do(actors.Reviewed{Row: settled})
	s := c.sight(k1)
	require.True(t, s.Review)
	require.Empty(t, s.Draft.Items[0].Selected)
	require.Equal(t, actors.ChannelNone, s.View.Channel)
	c.choose(k1, "x")
	require.Empty(t, c.sight(k1).Draft.Items[0].Selected, "nothing can be changed")
	c.do(actors.Sent{Key: k1, Submission: "a"})
	require.Empty(t, c.sent)
	c.see("c1", "settled")
	require.Len(t, c.Keys(), 1, "the projection does not touch it")
	c.do(actors.OnCard{Key: k1, Do: actors.Dismissed{}})
	require.Empty(t, c.Keys())
	require.Len(t, c.config.Drafts, 1)

	c.see("c2", "continued")
	c.do(actors.OnCard{Key: k2, Do: actors.Dismissed{}})
	c.do(actors.Reviewed{Row: rowOf("c2", "settled")})
	require.False(t, c.sight(k2).Review)
	require.Equal(t, k2, c.Top())
	c.do(actors.Reviewed{Row: settled})
	c.see("c1", "open")
	require.False(t, c.sight(k1).Review, "it was asked again")
}

// A call that is asked again under its id asks something else: no draft of the first survives.
func TestACallThatIsAskedAgainStartsAfresh(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 5000)
	c.choose(k1, "x")
	again := rowOf("c1", "open")
	again.CallSeq = 9
	c.do(actors.RowSeen{Row: again})
	require.Empty(t, c.sight(k1).Draft.Items[0].Selected)
	require.Equal(t, actors.WaitCounting, c.sight(k1).View.Wait)
	require.Empty(t, c.config.Drafts)
	require.Contains(t, c.holds, k1)
}

// what was kept is restored with what it did to the countdown; Q-225:
// what belongs to no card any more is dropped.
func TestDraftsOfAnEarlierLife(t *testing.T) {
	draft := func(call, stored string) actors.StoredDraft {
		return actors.StoredDraft{Session: "s", Key: "question:s:" + call, Draft: []byte(stored)}
	}
	c := newClient(t, actors.CardsConfig{Drafts: []actors.StoredDraft{
		draft("c1", `{"page":0,"drafts":[{"selected":["y"],"custom":"","skipped":false}]}`),
		draft("c2", `{"page":0,"drafts":[{"selected":[],"custom":"","skipped":false}],"wait":"waiting"}`),
		draft("c3", `{"page":0,"drafts":[{"selected":[],"custom":"","skipped":false}]}`),
		draft("c4", `{"page":7,"drafts":[{"selected":["y"],"custom":"","skipped":false}]}`),
		draft("c9", `{"page":0,"drafts":[]}`),
		{Session: "other", Key: "question:other:c1", Draft: []byte(`{}`)},
	}})
	for call, want := range map[string]actors.CardWait{
		"c1": actors.WaitEditing, "c2": actors.WaitHeld, "c3": actors.WaitCounting, "c4": actors.WaitCounting,
	} {
		key := "question:s:" + call
		c.see(call, "open")
		c.frame(key, 5000)
		s := c.sight(key)
		require.Equal(t, want, s.View.Wait, call)
		require.Equal(t, want == actors.WaitCounting, s.View.Running, call)
	}
	require.Equal(t, []string{"y"}, c.sight(k1).Draft.Items[0].Selected)
	require.Empty(t, c.sight("question:s:c4").Draft.Items[0].Selected)
	c.do(actors.Synced{Session: "s"})
	require.Equal(t, []actors.CardsEffect{actors.DropDraft{Session: "s", Key: "question:s:c9"}}, c.fx)
}

// turning a page is no edit.
func TestPagingDoesNotStopTheCountdown(t *testing.T) {
	c := newClient(t, actors.CardsConfig{Preselect: true})
	row := rowOf("c1", "open")
	row.Questions = threeQuestions()
	c.do(actors.RowSeen{Row: row})
	c.frame(k1, 5000)
	c.do(actors.Drafted{Key: k1, Draft: c.sight(k1).Draft.Go(2)})
	require.True(t, c.sight(k1).View.Running, "nor is what was preselected (Q-222)")
	require.Equal(t, 2, c.sight(k1).Draft.Page)
	c.do(actors.Drafted{Key: k1, Draft: actors.Draft{}})
	require.Len(t, c.sight(k1).Draft.Items, 3, "a draft of another card")
}

// a client that goes passes on what it holds, hidden cards too, and keeps what was written.
func TestUnload(t *testing.T) {
	c := newClient(t, actors.CardsConfig{})
	c.see("c1", "open")
	c.frame(k1, 5000)
	c.choose(k1, "x")
	c.do(actors.OnCard{Key: k1, Do: actors.Dismissed{}})
	c.see("c2", "open")
	c.do(actors.Unloaded{})
	require.Len(t, c.others, 1)
	require.IsType(t, &messages.DelegateRequest{}, c.others[0])
	require.NotContains(t, c.holds, k2, "a claim without a frame is let go")
	require.Empty(t, c.Keys())
	require.Empty(t, c.seated)
	require.Len(t, c.config.Drafts, 1)
}

// Whatever happens to a client, in whatever order: one card for a call, one
// claim and one submission for a card, what is seated is a card, a card that
// was touched never gives up, and a client that starts again has every draft.
func TestCardsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := actors.CardsConfig{Load: "f", By: "me", Preselect: rapid.Bool().Draw(t, "preselect")}
		c := newClient(t, config)
		rows := map[string]*messages.QuestionRow{}
		for n := range rapid.IntRange(30, 90).Draw(t, "inputs") {
			call := fmt.Sprint("c", rapid.IntRange(1, 3).Draw(t, "call"))
			key := "question:s:" + call
			before, is := c.Sight(key)
			others := len(c.others)
			switch rapid.IntRange(0, 12).Draw(t, "input") {
			case 0, 1, 2:
				row := rowOf(call, rapid.SampledFrom([]string{"open", "open", "continued", "continued", "replied", "settled"}).Draw(t, "state"))
				if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
					row.CallSeq = 2
				}
				if row.CallSeq >= rows[call].GetCallSeq() { // else it is old news
					rows[call] = row
				}
				c.do(actors.RowSeen{Row: row})
			case 3, 4:
				if h, open := c.holds[key]; open {
					c.do(actors.ClaimFramed{Key: key, Hold: h.Hold, Claim: "x", RemainingMS: rapid.Int64Range(0, 3000).Draw(t, "left")})
				}
			case 5:
				if _, open := c.holds[key]; open {
					c.over(key, rapid.Bool().Draw(t, "lost"))
				}
			case 6:
				c.do(actors.OnCard{Key: key, Do: rapid.SampledFrom([]actors.CardInput{actors.Focused{}, actors.Blurred{}, actors.TimeTaken{},
					actors.Dismissed{}, actors.Delegated{}}).Draw(t, "do")})
			case 7:
				if is {
					c.choose(key, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "label"))
				}
			case 8:
				c.do(actors.Sent{Key: key, Submission: fmt.Sprint("s", n)})
			case 9:
				if _, flying := c.flying[key]; flying {
					c.reply(key, rapid.SampledFrom([]error{nil, errors.New("no")}).Draw(t, "reply"))
				}
			case 10:
				c.do(rapid.SampledFrom([]actors.CardsInput{actors.Revealed{Key: key}, actors.Reviewed{Row: rowOf(call, "settled")}}).Draw(t, "show"))
			case 11:
				for range rapid.IntRange(1, 4).Draw(t, "seconds") {
					c.now = actors.Now{Wall: c.now.Wall + 1000, Mono: c.now.Mono + 1000}
					for gen := range uint32(40) {
						c.do(actors.CardTicked{Key: key, Gen: gen})
					}
				}
			case 12:
				c = reloaded(t, c, config, rows)
			}
			for _, cmd := range c.others[min(others, len(c.others)):] {
				if _, expires := cmd.(*messages.ExpireRequest); expires && is {
					require.NotContains(t, []actors.CardWait{actors.WaitEditing, actors.WaitHeld, actors.WaitFocused}, before.View.Wait)
					require.True(t, before.View.Counts)
				}
			}
			checkClient(t, c)
		}
	})
}

// reloaded is the client after its page was loaded anew: with the store of the
// one before, and the rows as they stand.
func reloaded(t *rapid.T, old *client, config actors.CardsConfig, rows map[string]*messages.QuestionRow) *client {
	config.Drafts = old.config.Drafts
	c := newClient(t, config)
	for _, call := range []string{"c1", "c2", "c3"} {
		if rows[call] == nil {
			continue
		}
		c.do(actors.RowSeen{Row: rows[call]})
		was, before := old.Sight("question:s:" + call)
		is, after := c.Sight("question:s:" + call)
		if !before || !after || was.Review {
			continue
		}
		require.Equal(t, was.Draft, is.Draft, "a draft outlives its page")
		if was.View.Wait == actors.WaitHeld || was.View.Wait == actors.WaitEditing {
			require.Equal(t, was.View.Wait, is.View.Wait, "and so does what it did to the countdown")
		}
	}
	return c
}

func checkClient(t *rapid.T, c *client) {
	keys := c.Keys()
	for i, key := range keys {
		require.NotContains(t, keys[:i], key)
		s := c.sight(key)
		require.Equal(t, slices.Contains(c.seated, key), s.Seated)
		_, held := c.holds[key]
		require.True(t, held || !s.Held)
		require.False(t, s.View.Closed)
		if s.Review {
			require.Equal(t, actors.ChannelNone, s.View.Channel)
			require.False(t, held || s.View.Counts)
		}
		_, flying := c.flying[key]
		require.True(t, !flying || s.Frozen)
	}
	for _, key := range c.seated {
		require.Contains(t, keys, key)
	}
	for key := range c.holds {
		require.Contains(t, keys, key, "a claim without a card")
	}
	require.Equal(t, len(c.seated) == 0, c.Top() == "")
}
