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
}

// open opens a claim at the party's host.
func (p *party) open(call string) *hold {
	w := p.w
	w.refs++
	c := &hold{party: p, id: w.refs, call: call, host: w.hosts[p.host], seen: &Hold{Party: p.name, Session: p.session, Call: call, Host: p.host, Opened: w.now}}
	w.History.Holds = append(w.History.Holds, c.seen)
	w.say(p.name, KindHold, "opens "+call)
	h := c.host
	w.travel(p.name, h.name, "hold "+call, never, func() {
		if c.claim != nil {
			return // one stream is opened once, however often its opening arrives
		}
		if !h.up() || c.over {
			c.end("refused")
			return
		}
		if h.holds == nil {
			h.holds = map[*hold]bool{}
		}
		h.holds[c] = true
		c.claim = h.sys.OpenClaim(p.session, call, sink{c, h.booted})
		c.name = c.claim.ID()
	})
	return c
}

// streamDeadMS is when a host finds that a stream's client is gone, should it not
// have heard of its end.
const streamDeadMS = 10_000

func never() bool { return false }

// sink is the server's end of the stream.
type sink struct {
	c       *hold
	process int
}

// Frame tells the client that it holds.
func (s sink) Frame(int64, bool) {
	c := s.c
	c.party.w.travel(c.host.name, c.party.name, "frame "+c.call, never, func() {
		if !c.over && c.seen.Framed == 0 {
			c.seen.Framed = c.party.w.now
			c.party.w.say(c.party.name, KindHold, "holds "+c.call)
			c.party.wake()
		}
	})
}

// End tells the client that it is over.
func (s sink) End(reason string, _ bool) {
	c := s.c
	delete(c.host.holds, c)
	c.party.w.travel(c.host.name, c.party.name, "end "+c.call+" "+reason, never, func() { c.end(reason) })
}

// end is what the client sees.
func (c *hold) end(how string) {
	if c.over {
		return
	}
	c.over = true
	c.seen.Over, c.seen.How = c.party.w.now, how
	c.party.w.say(c.party.name, KindHold, "lets go "+c.call+": "+how)
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
	c.end(how)
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
	c.party.w.travel(c.party.name, h.name, how+" "+c.call, never, func() { letGo(lost) })
	c.party.w.after(streamDeadMS, func() { c.party.w.soon(func() { letGo(true) }) })
}

// broken: its host is gone. The client sees that soon.
func (c *hold) broken() {
	c.party.w.after(c.party.w.between(0, c.party.w.plan.Network.DelayMax), func() { c.end("host gone") })
}

func sortedHolds(m map[*hold]bool) []*hold {
	all := make([]*hold, 0, len(m))
	for c := range m {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.id, b.id) })
	return all
}
