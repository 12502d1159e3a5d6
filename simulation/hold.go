package simulation

import (
	"cmp"
	"slices"

	"github.com/parleyrun/parley/supervisor"
)

// hold is a person's claim, from the client's end: a stream from a host.
type hold struct {
	party *party
	id    int
	call  string
	host  *host
	claim *supervisor.Claim
	seen  *Hold
	over  bool
	name  string // the claim's, once it is known

	// Of a card's claim: its stream keeps its order, and the card hears of it.
	line  *line
	frame func(remainingMS int64, never bool)
	ended func(lost bool)
}

// open opens a claim at the party's host.
func (p *party) open(call string) *hold {
	c := p.newHold(call, p.w.hosts[p.host])
	c.open()
	return c
}

func (p *party) newHold(call string, h *host) *hold {
	w := p.w
	w.refs++
	c := &hold{party: p, id: w.refs, call: call, host: h, seen: &Hold{Party: p.name, Session: p.session, Call: call, Host: h.index, Opened: w.now}}
	w.History.Holds = append(w.History.Holds, c.seen)
	return c
}

func (c *hold) open() {
	p, h := c.party, c.host
	p.w.say(p.name, KindHold, "opens "+c.call)
	carried := p.w.travel(p.name, h.name, "hold "+c.call, p.isOff, func() {
		if c.claim != nil {
			return // one stream is opened once, however often its opening arrives
		}
		if !h.up() || c.over {
			c.end("refused", true)
			return
		}
		if h.holds == nil {
			h.holds = map[*hold]bool{}
		}
		h.holds[c] = true
		c.claim = h.sys.OpenClaim(p.session, c.call, sink{c, h.booted})
		c.name = c.claim.ID()
		c.seen.Name = c.name
	})
	if !carried && c.line != nil {
		c.line.tear()
	}
}

// streamDeadMS is when a host finds that a stream's client is gone, should it not
// have heard of its end.
const streamDeadMS = 10_000

// sink is the server's end of the stream.
type sink struct {
	c       *hold
	process int
}

// Frame tells the client that it holds.
func (s sink) Frame(remainingMS int64, never bool) {
	s.c.hear("frame "+s.c.call, func() { s.c.framed(remainingMS, never) })
}

// End tells the client that it is over.
func (s sink) End(reason string, again bool) {
	delete(s.c.host.holds, s.c)
	s.c.hear("end "+s.c.call+" "+reason, func() { s.c.end(reason, again) })
}

// hear lets the client hear what its host says over the stream.
func (c *hold) hear(text string, arrive func()) {
	if c.line != nil {
		c.line.say(text, arrive)
		return
	}
	c.party.w.travel(c.host.name, c.party.name, text, c.party.isOff, arrive)
}

// framed is when the client knows that it holds.
func (c *hold) framed(remainingMS int64, never bool) {
	if c.over {
		return
	}
	if c.seen.Frames++; c.seen.Framed != 0 {
		return
	}
	c.seen.Framed = max(1, c.party.w.now) // 0 is never
	c.seen.LeftMS, c.seen.Never = remainingMS, never
	c.party.w.say(c.party.name, KindHold, "holds "+c.call)
	c.seen.Line = c.party.w.trace.n
	if c.frame != nil {
		c.frame(remainingMS, never)
	}
	c.party.wake()
}

// end is what the client sees. lost: the wait may go on without it.
func (c *hold) end(how string, lost bool) {
	if c.over {
		return
	}
	c.over = true
	c.seen.Over, c.seen.How = max(1, c.party.w.now), how // 0 is never
	c.party.w.say(c.party.name, KindHold, "lets go "+c.call+": "+how)
	if c.ended != nil {
		c.ended(lost)
	}
	c.party.wake()
}

// release lets go on purpose, or loses the stream.
func (c *hold) release(lost bool) {
	if c.over {
		return
	}
	how := "released"
	if lost {
		how = "lost"
	}
	c.end(how, lost)
	h, claim := c.host, c.claim
	if claim == nil {
		return
	}
	process := h.booted
	letGo := func(lost bool) {
		if h.up() && h.booted == process && h.holds[c] {
			delete(h.holds, c)
			claim.Release(lost)
		}
	}
	c.party.w.travel(c.party.name, h.name, how+" "+c.call, c.party.isOff, func() { letGo(lost) })
	c.party.w.after(streamDeadMS, func() { c.party.w.soon(func() { letGo(true) }) })
}

// broken: its host is gone. The client sees that soon.
func (c *hold) broken() {
	c.party.w.after(c.party.w.between(0, c.party.w.plan.Network.DelayMax), func() { c.end("host gone", true) })
}

func sortedHolds(m map[*hold]bool) []*hold {
	all := make([]*hold, 0, len(m))
	for c := range m {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.id, b.id) })
	return all
}
