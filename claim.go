package parley

import (
	"context"
	"sync"
	"time"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/supervisor"
)

// hold is one claim of a client of this node, whichever door it came through.
type hold struct {
	node          *Node
	session, call string
	claim         *supervisor.Claim
	events        chan messages.Message // a frame, and one end

	mu    sync.Mutex
	leave func() // gives its seat among the answerers back
	ended bool
}

// holds finds claims by name.
type holds struct {
	mu     sync.Mutex
	byName map[string]*hold
}

func (h *holds) put(name string, o *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = map[string]*hold{}
	}
	h.byName[name] = o
}

func (h *holds) drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byName, name)
}

func (h *holds) get(name string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byName[name]
}

// openHold opens a claim. Its end may come before this function returns: then
// it never was anybody who could answer.
func (n *Node) openHold(session, call, client string) *hold {
	h := &hold{node: n, session: session, call: call, events: make(chan messages.Message, 2)}
	claim := n.sys.OpenClaim(session, call, sink{h})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claim = claim
	if !h.ended {
		h.leave = n.presence.take(seat{session: session, client: client, claim: claim.ID()})
		n.holds.put(claim.ID(), h)
	}
	return h
}

// releaseClaim lets a claim go on purpose. Its stream ends.
func (n *Node) releaseClaim(session, callID, name string) {
	if h := n.holds.get(name); h != nil && h.session == session && h.call == callID {
		h.end(&messages.ClaimEnd{Reason: "released"}, func() { h.claim.Release(false) })
	}
}

// sink hears what the claim's machine says.
type sink struct{ *hold }

// Frame passes the host's remainder on.
func (s sink) Frame(remainingMs int64, never bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.events <- &messages.ClaimFrame{RemainingMs: remainingMs, Never: never} // there is room: a claim has one frame
	}
}

// End passes the end on.
func (s sink) End(reason string, retryable bool) {
	s.end(&messages.ClaimEnd{Reason: reason, Retryable: retryable}, nil)
}

// end closes the hold once, for whichever reason comes first.
func (h *hold) end(end *messages.ClaimEnd, then func()) {
	h.mu.Lock()
	was, leave := h.ended, h.leave
	h.ended = true
	h.mu.Unlock()
	if was {
		return
	}
	if leave != nil {
		leave()
		h.node.holds.drop(h.Name())
	}
	h.events <- end // there is room: a frame and this
	if then != nil {
		then()
	}
}

// Name is what ExpireRequest and DelegateRequest call the claim.
func (h *hold) Name() string { return h.claim.ID() }

// Events has at most one frame and then one end.
func (h *hold) Events() <-chan messages.Message { return h.events }

// Release ends the claim from the client's side.
func (h *hold) Release(lost bool) {
	h.end(&messages.ClaimEnd{Reason: "released"}, func() { h.claim.Release(lost) })
}

// Claim holds a wait: while any claim is held, the host's deadline does not
// run. Whoever shows a question to a person claims its wait, and lets go when
// the person turns away.
type Claim struct {
	hold  *hold
	until time.Time // carries the monotonic clock; zero: no deadline
	done  chan struct{}
	err   error // set before done is closed
	once  sync.Once
}

// AttachWait claims the wait of an open call. SETTLED, NOT_ANSWERABLE and
// ASK_TIMED_OUT say that there is no wait any more; a question that is
// continued can still be answered. ctx bounds the opening, not the claim:
// Release it.
func (n *Node) AttachWait(ctx context.Context, session, callID string) (*Claim, error) {
	if err := gateway.Check(&messages.AttachWaitRequest{Session: session, CallId: callID}); err != nil {
		return nil, err
	}
	h := n.openHold(session, callID, "")
	select {
	case <-ctx.Done():
		h.Release(false)
		return nil, ctx.Err()
	case ev := <-h.events:
		frame, ok := ev.(*messages.ClaimFrame)
		if !ok {
			return nil, n.endError(ev, session, callID)
		}
		c := &Claim{hold: h, done: make(chan struct{})}
		if !frame.GetNever() {
			c.until = time.Now().Add(time.Duration(frame.GetRemainingMs()) * time.Millisecond)
		}
		return c, nil
	}
}

func (n *Node) endError(ev messages.Message, session, callID string) error {
	end, _ := ev.(*messages.ClaimEnd)
	switch end.GetReason() {
	case "released":
		return nil
	case "settled":
		return messages.Refuse(messages.Settled, "the question %q of session %q is settled or no longer waits in the foreground", callID, session)
	case "expired":
		return messages.Refuse(messages.AskTimedOut, "the foreground wait of %q in session %q is over", callID, session)
	case "unknown":
		return messages.Refuse(messages.NotAnswerable, "session %q has no foreground wait for call %q", session, callID)
	}
	return messages.Refuse(messages.Unavailable, "the claim on %q in session %q was cut off (%s); open it again", callID, session, end.GetReason())
}

// Remaining is what was left of the foreground wait, counted down since on a
// monotonic clock: the client's own countdown. never: the call has no deadline.
func (c *Claim) Remaining() (left time.Duration, never bool) {
	if c.until.IsZero() {
		return 0, true
	}
	return max(0, time.Until(c.until)), false
}

// Wait returns when the claim has ended: nil after Release, Delegate and
// Expire, SETTLED when the question was settled, UNAVAILABLE when the claim
// should be opened again, or the error of ctx.
func (c *Claim) Wait(ctx context.Context) error {
	select {
	case ev := <-c.hold.events:
		c.once.Do(func() {
			c.err = c.hold.node.endError(ev, c.hold.session, c.hold.call)
			close(c.done)
		})
		return c.err
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release lets go: the deadline runs again. A second call does nothing.
func (c *Claim) Release() { c.hold.Release(false) }

// Lose ends the claim as if its client had vanished: a deadline that has
// passed is held a little (Config.ClaimGrace) for the client to come back.
func (c *Claim) Lose() { c.hold.Release(true) }

// Expire says that the client's own countdown ended. settled: the call returned
// pending; otherwise others hold the wait and only this claim was released.
func (c *Claim) Expire(ctx context.Context, by string) (settled bool, err error) {
	r, err := do[*messages.ExpireResponse](ctx, c.hold.node, &messages.ExpireRequest{
		Session: c.hold.session, CallId: c.hold.call, Claim: c.hold.Name(), By: by})
	return r.GetSettled(), err
}

// Delegate passes the question on and releases the claim. It settles nothing,
// except a blocking question whose last answerer has now passed.
func (c *Claim) Delegate(ctx context.Context, by string) (settled bool, err error) {
	r, err := do[*messages.DelegateResponse](ctx, c.hold.node, &messages.DelegateRequest{
		Session: c.hold.session, CallId: c.hold.call, Claim: c.hold.Name(), By: by})
	return r.GetSettled(), err
}
