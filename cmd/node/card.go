package main

// card is the life of one question call at a client, in the words of Q-175. It is a machine without I/O: the time is
// an argument, in milliseconds of a clock that never steps, and what must be done is a result. What the person has
// chosen and written is the panel's, not its.
//
// A terminal has no button for taking time and no focus to lose: here a key is the focus, and it stays.
type card struct {
	state     string // open or continued; mirrors the projection
	timedWait bool   // a request is attached and it had a deadline
	attached  bool   // a request is attached: the claim's frame has come
	deadline  int64  // when an untouched card lets the agent go; 0: never
	remaining int64  // what was left when the countdown was stopped
	focused   bool   // a key was pressed
	engaged   bool   // something was chosen or written
	closed    bool

	unheld bool  // the claim was lost: nothing keeps the host's own deadline from ending the call
	host   int64 // when that is; it never moves. 0: unknown or none
}

// countdownNear is how near its end a countdown is shown, in milliseconds.
const countdownNear = 60_000

// project follows the projection: a card is open or continued, and back.
func (c *card) project(state string) { c.state = state }

// attach is the claim's frame. A person who has touched the card has all the time there is.
func (c *card) attach(now, remainingMs int64, never bool) {
	if c.closed {
		return
	}
	c.attached, c.unheld, c.host, c.timedWait = true, false, now+remainingMs, !never
	if never {
		c.host = 0
	}
	switch {
	case c.engaged:
	case never:
		c.deadline, c.remaining = 0, 0
	case c.focused:
		c.deadline, c.remaining = 0, remainingMs
	default:
		c.deadline = now + remainingMs
	}
}

// detach is the end of the request at this client. lost says that the claim went with its stream: the host's
// deadline, which has been the same all the time, then ends the call.
func (c *card) detach(lost bool) {
	c.unheld = lost && (c.attached || c.unheld)
	c.attached, c.timedWait, c.deadline = false, false, 0
}

// focus is any key: the countdown stops.
func (c *card) focus(now int64) {
	if c.focused || c.engaged {
		return
	}
	c.freeze(now)
	c.focused = true
}

// engage is the first edit: the countdown stops for good.
func (c *card) engage(now int64) {
	if c.engaged {
		return
	}
	c.freeze(now)
	c.engaged, c.focused = true, false
}

func (c *card) freeze(now int64) {
	if c.deadline != 0 {
		c.remaining, c.deadline = max(0, c.deadline-now), 0
	}
}

// tick reports that the countdown of an untouched card has ended: the wait is to be expired. The card
// stays, and goes on with the late channel once the projection says so.
func (c *card) tick(now int64) (expire bool) {
	if c.closed || c.deadline == 0 || now < c.deadline || !c.attached || c.focused || c.engaged {
		return false
	}
	c.detach(false)
	return true
}

// waitState is the word for what the card does with the agent's time.
func (c *card) waitState() string {
	switch {
	case c.state == "continued":
		return "continued"
	case c.engaged:
		return "editing"
	case c.focused:
		return "focused"
	}
	return "counting"
}

// countdown is what is left in milliseconds, and whether it runs. shown is false without a deadline.
func (c *card) countdown(now int64) (left int64, running, shown bool) {
	switch {
	case c.unheld:
		return max(0, c.host-now), c.host != 0, c.host != 0
	case !c.timedWait:
		return 0, false, false
	case c.deadline != 0:
		return max(0, c.deadline-now), true, true
	}
	return c.remaining, false, true
}

// close is final.
func (c *card) close() { c.closed = true }
