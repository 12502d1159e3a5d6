package simulation

import (
	"maps"
	"slices"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// tab is one page of a client: the production card machine, and what a browser
// has around it. What its streams say and its person does goes in; what it asks
// for becomes commands, claims and timers of the world.
type tab struct {
	party  *party
	seen   *Tab
	cards  *actors.Cards
	rows   map[string]*messages.QuestionRow // as each call was last seen
	watch  *watch
	cursor int64
	claims map[int]*hold // by the number that the cards gave them; nil: not opened yet
	timers map[string]*event
	rpcs   []*rpc
	losses int  // streams that broke
	over   bool // the page is gone
	closed bool // it said goodbye, and what it said then is still under way
}

// load starts a page.
func (b *browser) load(n int) *tab {
	p := b.party
	w := p.w
	t := &tab{party: p, rows: map[string]*messages.QuestionRow{}, claims: map[int]*hold{}, timers: map[string]*event{},
		seen: &Tab{Party: p.name, Session: p.session, N: n, From: w.now, Kept: map[string]string{}, KeptOf: maps.Clone(b.of)}}
	for _, d := range b.store {
		t.seen.Kept[d.Key] = string(d.Draft)
	}
	t.cards = actors.NewCards(actors.CardsConfig{Load: w.newID("load"), By: p.name, Drafts: b.store})
	w.History.Tabs = append(w.History.Tabs, t.seen)
	w.sayf(p.name, KindMark, "loads tab %d with %d drafts", n, len(b.store))
	t.follow()
	return t
}

// end is the end of the page, without a word to anybody.
func (t *tab) end(how string) {
	if !t.over {
		t.leave(how)
	}
	for _, n := range sortedKeys(t.claims) {
		t.release(n, true)
	}
	for _, r := range t.rpcs {
		r.said.Left = r.said.Left || !r.final
		r.leave()
	}
	t.rpcs, t.closed = nil, false
}

// unload is its end with a goodbye: the questions that it holds are passed
// on, and their claims let go when the host has taken that.
func (t *tab) unload() {
	passing := map[int]bool{}
	t.stepAnd(doClose, "", actors.Unloaded{}, func(fx actors.CardsEffect) {
		if c, ok := fx.(actors.CardCommand); ok {
			passing[t.claimOf(c.Cmd)] = true
		}
	})
	t.leave("closed")
	t.closed = true
	for _, n := range sortedKeys(t.claims) {
		if !passing[n] {
			t.release(n, false)
		}
	}
}

func (t *tab) leave(how string) {
	t.over = true
	t.watch.over = true
	t.seen.Until, t.seen.How = max(1, t.party.w.now), how // 0 is never
	for _, timer := range t.timers {
		timer.cancel()
	}
	t.party.w.sayf(t.party.name, KindMark, "tab %d is gone: %s", t.seen.N, how)
}

// rests: everything has been heard, and nothing waits for an answer.
func (t *tab) rests() bool {
	waits := slices.ContainsFunc(t.rpcs, func(r *rpc) bool { return !r.final && !r.left })
	if t.over {
		return !waits
	}
	return !waits && len(t.claims) == 0 && t.watch.live && t.watch.line.quiet() && !t.watch.host.showing
}

// now is the client's clock.
func (t *tab) now() actors.Now {
	return actors.Now{Wall: wallStart + t.party.w.now + t.party.browser.skew, Mono: 1 + t.party.w.now}
}

// server is the host that it speaks to: another one when streams keep breaking.
func (t *tab) server() *host {
	hosts := t.party.w.hosts
	return hosts[(t.party.host+t.losses/2)%len(hosts)]
}

// after lets something happen later in this page.
func (t *tab) after(ms int64, do func()) *event {
	w := t.party.w
	return w.after(ms, func() {
		w.soon(func() {
			if !t.over {
				do()
			}
		})
	})
}

// What it hears.

func (t *tab) sawRow(row *messages.QuestionRow) {
	t.rows[row.GetCallId()] = row
	m := t.step(markRow, row.GetCallId(), actors.RowSeen{Row: row})
	m.State, m.Seq = row.GetState(), row.GetCallSeq()
	for _, q := range row.GetQuestions() {
		m.IDs = append(m.IDs, q.GetId())
	}
}

func (t *tab) synced() { t.step(markSynced, "", actors.Synced{Session: t.party.session}) }

// step gives the cards one input and does what they ask for. It returns the mark
// of it, to be completed.
func (t *tab) step(what, call string, in actors.CardsInput) *Mark {
	return t.stepAnd(what, call, in, func(actors.CardsEffect) {})
}

func (t *tab) stepAnd(what, call string, in actors.CardsInput, also func(actors.CardsEffect)) *Mark {
	w := t.party.w
	before := t.shown(call)
	m := Mark{At: w.now, Step: w.steps, Line: w.trace.n, What: what, Call: call}
	for _, fx := range t.cards.Step(t.now(), in) {
		t.does(fx, &m)
		also(fx)
	}
	m.Shows = t.shown(call)
	if before.String() != m.Shows.String() {
		w.sayf(t.party.name, KindShow, "%s in tab %d: %v", call, t.seen.N, m.Shows)
	}
	m.Line = min(m.Line+1, w.trace.n)
	t.seen.Marks = append(t.seen.Marks, m)
	t.party.wake()
	return &t.seen.Marks[len(t.seen.Marks)-1]
}

// does is what the cards ask for.
func (t *tab) does(fx actors.CardsEffect, m *Mark) {
	switch fx := fx.(type) {
	case actors.HoldWait:
		t.hold(fx)
	case actors.LetGo:
		if c := t.claims[fx.Hold]; c != nil {
			m.LetGo = append(m.LetGo, c.seen)
		}
		t.release(fx.Hold, false)
	case actors.CardCommand:
		m.Sent = append(m.Sent, t.send(fx))
	case actors.CardSays:
		m.Told = append(m.Told, fx.Err)
	case actors.TimeCard:
		t.time(fx)
	case actors.KeepDraft:
		card, _ := t.cards.Sight(fx.Key)
		t.party.browser.keep(actors.StoredDraft(fx), card.Row.GetCallSeq())
	case actors.DropDraft:
		t.party.browser.drop(fx.Key)
	case actors.SeatCard, actors.UnseatCard, actors.DrawCard, actors.CardGone: // see shown
	}
}

// hold opens a claim, after a pause when one was lost.
func (t *tab) hold(fx actors.HoldWait) {
	t.claims[fx.Hold] = nil
	if fx.Again {
		t.losses++
		t.after(tryAgain, func() { t.open(fx) })
		return
	}
	t.open(fx)
}

func (t *tab) open(fx actors.HoldWait) {
	if c, wanted := t.claims[fx.Hold]; !wanted || c != nil {
		return
	}
	c := t.party.newHold(fx.Call, t.server())
	c.seen.Tab = t.seen.N
	c.line = t.party.line(c.host, func() { c.release(true) })
	c.frame = func(remainingMS int64, never bool) {
		m := t.step(markFrame, fx.Call, actors.ClaimFramed{Key: fx.Key, Hold: fx.Hold, Claim: c.name, RemainingMS: remainingMS, Never: never})
		m.LeftMS, m.Never = remainingMS, never
	}
	c.ended = func(lost bool) {
		delete(t.claims, fx.Hold)
		if !t.over {
			t.step(markEnd, fx.Call, actors.ClaimOver{Key: fx.Key, Hold: fx.Hold, Lost: lost}).Lost = lost
		}
	}
	t.claims[fx.Hold] = c
	c.open()
}

// release ends a claim of which the cards want to hear nothing more.
func (t *tab) release(n int, lost bool) {
	c := t.claims[n]
	delete(t.claims, n)
	if c != nil {
		c.ended = nil
		c.release(lost)
	}
}

// claimOf is the number of the claim that a command names.
func (t *tab) claimOf(cmd messages.Command) int {
	of, ok := cmd.(interface{ GetClaim() string })
	for n, c := range t.claims {
		if ok && c != nil && of.GetClaim() == c.name {
			return n
		}
	}
	return 0
}

// send sends a command. Its answer is heard while the page is there.
func (t *tab) send(fx actors.CardCommand) *Said {
	r := t.party.start(fx.Cmd)
	r.said.Tab = t.seen.N
	claim := t.claims[t.claimOf(fx.Cmd)]
	r.onAnswer = func() {
		t.answered(fx, claim, r)
		t.party.wake()
	}
	t.rpcs = append(slices.DeleteFunc(t.rpcs, func(r *rpc) bool { return r.final || r.left }), r)
	return r.said
}

func (t *tab) answered(fx actors.CardCommand, claim *hold, r *rpc) {
	no, refused := r.answer.(*messages.Refusal)
	switch cmd := fx.Cmd.(type) {
	case *messages.SubmitRequest:
		if t.over {
			return
		}
		in := actors.SubmitReplied{Key: fx.Key, Submission: cmd.GetSubmissionId()}
		if refused {
			in.Err = messages.FromWire(no)
		}
		t.step(markReplied, cmd.GetCallId(), in).Said = r.said
	case *messages.ExpireRequest, *messages.DelegateRequest:
		if claim != nil && t.closed { // nobody is there any more to hear that its node ends the stream
			claim.release(false)
		}
	}
}

func (t *tab) time(fx actors.TimeCard) {
	if timer := t.timers[fx.Key]; timer != nil {
		timer.cancel()
	}
	delete(t.timers, fx.Key)
	if fx.After < 0 {
		return
	}
	card, _ := t.cards.Sight(fx.Key)
	call := card.Row.GetCallId()
	t.timers[fx.Key] = t.after(fx.After, func() { t.step(markTick, call, actors.CardTicked{Key: fx.Key, Gen: fx.Gen}) })
}

// card is the card of a call.
func (t *tab) card(call string) (actors.CardSight, bool) {
	for _, key := range t.cards.Keys() {
		if c, ok := t.cards.Sight(key); ok && c.Row.GetCallId() == call {
			return c, true
		}
	}
	return actors.CardSight{}, false
}

func (t *tab) shown(call string) *Shown {
	c, there := t.card(call)
	if !there {
		return nil
	}
	v := c.View
	return &Shown{Call: call, State: string(v.State), Wait: string(v.Wait), Channel: string(v.Channel), Seq: c.Row.GetCallSeq(), Key: c.Key,
		Draft: string(c.Draft.Store()), LeftMS: v.RemainingMS, Counts: v.Counts, Running: v.Running, Held: c.Held, Unheld: v.Unheld,
		Frozen: c.Frozen, Seated: c.Seated, Review: c.Review}
}
