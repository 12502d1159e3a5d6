package main

import (
	"strconv"

	"github.com/parleyrun/parley"
)

// card is the life of one question call at this terminal: a parley.Card, driven by a clock that never steps, in
// milliseconds. What the person has chosen and written is the panel's, not its.
//
// A terminal has no button for taking time and no focus to lose: here a key is the focus, and it stays.
// An answer is acknowledged, so it is the sitting that sends it, and the card keeps its claim meanwhile.
type card struct {
	*parley.Card
	timerAt  int64 // when the tick is due; -1: none runs
	gen      uint32
	requests int // frames so far
	request  string
}

// countdownNear is how near its end a countdown is shown, in milliseconds.
const countdownNear = 60_000

func newCard(state string) *card {
	c := &card{Card: parley.NewCard(false), timerAt: -1}
	c.project(state)
	return c
}

// step gives the card one input; expire says that the wait is to be given up.
func (c *card) step(now int64, in parley.CardInput) (expire bool) {
	for _, fx := range c.Step(parley.Now{Wall: now, Mono: now}, in) {
		switch fx := fx.(type) {
		case parley.CardTimer:
			c.gen, c.timerAt = fx.Gen, -1
			if fx.After >= 0 {
				c.timerAt = now + fx.After
			}
		case parley.CardSettleRequest:
			expire = expire || fx.Outcome == parley.RequestTimedOut
		}
	}
	return expire
}

// project follows the projection: a card is open or continued, and back.
func (c *card) project(state string) {
	c.step(0, parley.CardProjected{State: parley.CardState(state)})
}

// attach is the claim's frame. A person who has touched the card has all the time there is.
func (c *card) attach(now, remainingMs int64, never bool) {
	c.requests++
	c.request = "r" + strconv.Itoa(c.requests)
	c.step(now, parley.CardRequested{ID: c.request, RemainingMS: remainingMs, Never: never})
}

// detach is the end of the request at this client. lost says that the claim went with its stream: the host's
// deadline then runs again from where it stood.
func (c *card) detach(now int64, lost bool) {
	c.step(now, parley.CardRequestEnded{ID: c.request, Lost: lost})
}

// focus is any key: the countdown stops.
func (c *card) focus(now int64) { c.step(now, parley.CardFocused{}) }

// engage is the first edit: the countdown stops for good.
func (c *card) engage(now int64) { c.step(now, parley.CardEngaged{}) }

// tick reports that the countdown of an untouched card has ended: the wait is to be expired. The card
// stays, and goes on with the late channel once the projection says so.
func (c *card) tick(now int64) (expire bool) {
	if c.timerAt < 0 || now < c.timerAt {
		return false
	}
	return c.step(now, parley.CardTicked{Gen: c.gen})
}

// open reports whether the call waits for an answer.
func (c *card) open() bool { return c.View().State == parley.CardOpen }

// attached reports whether a request is attached: the claim's frame has come.
func (c *card) attached() bool { return c.Channel() == parley.ChannelLive }

// countdown is what is left in milliseconds, and whether it runs. shown is false without a deadline. Of a claim
// that was lost it is the host's own.
func (c *card) countdown(now int64) (left int64, running, shown bool) {
	at := parley.Now{Wall: now, Mono: now}
	if c.Unheld() {
		left, known := c.HostRemainingMS(at)
		return left, known, known
	}
	v := c.View()
	return c.RemainingMS(at), v.Running, v.Counts
}

// close is final.
func (c *card) close() { c.step(0, parley.CardClosed{}) }
