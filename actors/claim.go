package actors

import (
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// claimReplyMS is how long a claim waits for its session's word before it ends
// its stream as retryable.
const claimReplyMS = 10_000

// Claim is one client's hold on a wait. It lives beside the client's stream
// and speaks to the session's address, never to a part of it.
//
//	opening ──ClaimFrame──▶ held ──ClaimEnd──▶ over
//	   │                     │
//	   └──── StreamClosed ◀──┘   tells the session: released, or lost
type Claim struct {
	self    Addr
	session string
	call    string
	gen     uint32
	framed  bool
	over    bool
}

// NewClaim builds the claim of one stream.
func NewClaim(self Addr, session, call string) *Claim {
	return &Claim{self: self, session: session, call: call}
}

// Apply does nothing: a claim is volatile.
func (c *Claim) Apply(sessionlog.Event) {}

// Resume opens the claim.
func (c *Claim) Resume(Now) Effects {
	var fx Effects
	c.open(&fx)
	return fx
}

// Step decides one input.
func (c *Claim) Step(_ Now, in Envelope) Effects {
	var fx Effects
	if c.over {
		return fx
	}
	switch m := in.Msg.(type) {
	case *messages.ClaimFrame:
		c.gen++
		fx.Timers = append(fx.Timers, Timer{Name: "reply", After: -1, Gen: c.gen})
		if !c.framed { // exactly one frame; a re-opened claim has had it
			c.framed = true
			fx.Replies = append(fx.Replies, Reply{Addr{Key: Out}, m})
		}
	case *messages.ClaimEnd:
		c.finish(m, &fx)
	case StreamClosed:
		c.over = true
		c.release(m.Lost, &fx)
		c.gen++
		fx.Timers = append(fx.Timers, Timer{Name: "reply", After: -1, Gen: c.gen})
	case SessionGone:
		if m.Session == c.session {
			c.open(&fx)
		}
	case *messages.Refusal: // no frame will come: there is no such session, or it is not served now
		if messages.Lookup(messages.Code(m.GetCode())).Kind == messages.RefusalKind {
			c.finish(&messages.ClaimEnd{Reason: "unknown"}, &fx) // an empty stream, not an error
		} else {
			c.giveUp(&fx)
		}
	case Fired:
		if m.Gen == c.gen {
			c.giveUp(&fx)
		}
	}
	return fx
}

func (c *Claim) open(fx *Effects) {
	c.gen++
	fx.Sends = append(fx.Sends, Send{To: SessionAddr(c.session), From: c.self,
		Msg: &messages.ClaimOpen{Session: c.session, CallId: c.call}})
	fx.Timers = append(fx.Timers, Timer{Name: "reply", After: claimReplyMS, Gen: c.gen})
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

func (c *Claim) finish(end *messages.ClaimEnd, fx *Effects) {
	c.over = true
	c.gen++
	fx.Timers = append(fx.Timers, Timer{Name: "reply", After: -1, Gen: c.gen})
	fx.Replies = append(fx.Replies, Reply{Addr{Key: Out}, end})
}
