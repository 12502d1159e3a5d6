package actors

import (
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// claimReplyMS is how long a claim without a lease waits for its session's word
// before it ends its stream as retryable.
const claimReplyMS = 10_000

// Claim is one client's hold on a wait. It lives beside the client's stream
// and speaks to the session's address, never to a part of it.
//
//	opening ──ClaimFrame──▶ held ──ClaimEnd──▶ over
//	   │                     │
//	   └──── StreamClosed ◀──┘   tells the session: released, or lost
//
// With a lease it opens itself again all the time, so that its wait knows that
// it is there, and it that its wait is: whoever hears nothing for the length of
// the lease lets go. So a claim comes back by itself to a session that restarted
// or moved.
type Claim struct {
	self    Addr
	session string
	call    string
	seq     int64 // which of those under this id; 0: not known yet
	lease   int64 // ms; 0: none
	heard   int64 // monotonic: the latest frame, or the start
	gen     uint32
	framed  bool
	again   bool // opened more than once
	over    bool
}

// NewClaim builds the claim of one stream. leaseMS is for a session that may be
// on another node; 0: a claim's end is a message that is not lost.
func NewClaim(self Addr, session, call string, leaseMS int64) *Claim {
	return &Claim{self: self, session: session, call: call, lease: max(0, leaseMS)}
}

// Apply does nothing: a claim is volatile.
func (c *Claim) Apply(sessionlog.Event) {}

// Resume opens the claim.
func (c *Claim) Resume(now Now) Effects {
	var fx Effects
	c.heard = now.Mono
	c.open(now, &fx)
	return fx
}

// Step decides one input.
func (c *Claim) Step(now Now, in Envelope) Effects {
	var fx Effects
	if c.over {
		return fx
	}
	switch m := in.Msg.(type) {
	case *messages.ClaimFrame:
		if c.heard = now.Mono; c.lease == 0 {
			c.stopTimer(&fx)
		}
		c.seq = m.GetCallSeq()
		if !c.framed { // exactly one frame; a re-opened claim has had it
			c.framed = true
			fx.Replies = append(fx.Replies, Reply{Addr{Key: Out}, m})
		}
	case *messages.ClaimEnd:
		c.ended(m, &fx)
	case StreamClosed:
		c.over = true
		c.release(m.Lost, &fx)
		c.stopTimer(&fx)
	case SessionGone:
		if m.Session == c.session {
			c.open(now, &fx)
		}
	case *messages.Refusal: // no frame will come: there is no such session, or it is not served now
		if c.framed && c.lease > 0 && m.GetCode() == string(messages.Unavailable) {
			break // it is on its way to another node, or about to start: the lease says how long to try
		}
		if messages.Lookup(messages.Code(m.GetCode())).Kind == messages.RefusalKind {
			c.ended(&messages.ClaimEnd{Reason: "unknown"}, &fx) // an empty stream, not an error
		} else {
			c.giveUp(&fx)
		}
	case Fired:
		switch {
		case m.Gen != c.gen:
		case now.Mono-c.heard < c.lease:
			c.open(now, &fx)
		default:
			c.giveUp(&fx)
		}
	}
	return fx
}

// open claims the wait, for the first time or again, and starts the timer: for
// the next time, or for the end of its patience.
func (c *Claim) open(now Now, fx *Effects) {
	c.again = c.gen > 0
	c.gen++
	fx.Sends = append(fx.Sends, Send{To: SessionAddr(c.session), From: c.self,
		Msg: &messages.ClaimOpen{Session: c.session, CallId: c.call, LeaseMs: c.lease, CallSeq: c.seq}})
	after := int64(claimReplyMS)
	if c.lease > 0 {
		after = max(0, min(max(1, c.lease*3/10), c.heard+c.lease-now.Mono))
	}
	fx.Timers = append(fx.Timers, Timer{Name: "reply", After: after, Gen: c.gen})
}

func (c *Claim) stopTimer(fx *Effects) {
	c.gen++
	fx.Timers = append(fx.Timers, Timer{Name: "reply", After: -1, Gen: c.gen})
}

// giveUp ends the stream as retryable. The session may only be slow, and still
// take up the claim, so it is told to let go of it.
func (c *Claim) giveUp(fx *Effects) {
	c.release(true, fx)
	c.finish(&messages.ClaimEnd{Reason: "unavailable", Retryable: true}, fx)
}

func (c *Claim) release(lost bool, fx *Effects) {
	fx.Sends = append(fx.Sends, Send{To: SessionAddr(c.session), From: c.self,
		Msg: &messages.ClaimRelease{Session: c.session, CallId: c.call, Lost: lost}})
}

// ended: the session says that there is no wait to hold. An opening that is
// still on its way may meet another, of a call that was asked meanwhile, and
// would hold it for nobody: what was opened again is let go as well.
func (c *Claim) ended(end *messages.ClaimEnd, fx *Effects) {
	if c.again {
		c.release(false, fx)
	}
	c.finish(end, fx)
}

func (c *Claim) finish(end *messages.ClaimEnd, fx *Effects) {
	c.over = true
	c.stopTimer(fx)
	fx.Replies = append(fx.Replies, Reply{Addr{Key: Out}, end})
}
