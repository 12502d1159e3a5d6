package simulation

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/messages"
)

// carry takes a frame from one host to another.
func (w *World) carry(from, to *host, frame []byte) {
	text := ""
	if f := (&messages.Frame{}); !w.trace.silent && proto.Unmarshal(frame, f) == nil {
		text = f.GetToKey()
	}
	w.travel(from.name, to.name, text, func() bool { return w.cut[pair(from.index, to.index)] }, func() {
		if to.up() {
			_ = to.virtual.Receive(frame) // a frame that cannot be read is dropped, as in production
		}
	})
}

func pair(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// travel takes something from one lane to another: late, twice, or not at all.
// false: it is lost.
func (w *World) travel(from, to, text string, cut func() bool, arrive func()) bool {
	w.refs++
	ref := w.refs
	w.trace.add(Line{At: w.now, Lane: from, Kind: KindSend, To: to, Ref: ref, Text: text})
	n := w.plan.Network
	if !w.healed && (cut() || w.befalls(ref, n.Lose, w.fates.drop, n.Drop, (*Plan).lost)) {
		w.trace.add(Line{At: w.now, Lane: from, Kind: KindDrop, To: to, Ref: ref})
		return false
	}
	copies := 1
	if !w.healed && w.befalls(ref, n.Repeat, w.fates.repeat, n.Duplicate, (*Plan).repeated) {
		copies = 2
	}
	for range copies {
		w.after(w.between(n.DelayMin, n.DelayMax), func() {
			w.soon(func() {
				w.trace.add(Line{At: w.now, Lane: to, Kind: KindArrive, To: from, Ref: ref})
				arrive()
			})
		})
	}
	return true
}

func (p *Plan) lost() *[]int     { return &p.Network.Lose }
func (p *Plan) repeated() *[]int { return &p.Network.Repeat }

// rpc is one command of a party, sent again under its own key until it is
// answered: to the same host while that lives, else to the next. One of a patient
// party is sent again only when its connection has broken, as an MCP client's.
type rpc struct {
	party    *party
	id       int
	cmd      messages.Command
	said     *Said
	tries    int
	asks     []int // when each was sent, in steps of the world
	host     *host
	waiting  bool // of an ask: it is durable
	final    bool
	left     bool // the party does not wait for it any more
	answer   messages.Message
	cancel   func() // at the host
	giveUp   *event // the timer of this try
	onAnswer func()
}

// How long a party waits for anything to come back, and pauses between tries.
const (
	answerWithin = 3000
	aliveWithin  = 12_000 // of an ask that is durable, and of who listens
	tryAgain     = 200
)

// send starts a try.
func (r *rpc) send() {
	if r.final || r.left {
		return
	}
	p, w := r.party, r.party.w
	r.tries++
	r.said.Tries = r.tries
	r.asks = append(r.asks, w.steps)
	try := r.tries
	h := w.hosts[(p.host+r.tries/2)%len(w.hosts)]
	if !p.plan.Patient {
		r.watch(r.within())
	}
	carried := w.travel(p.name, h.name, w.brief(r.cmd), p.isOff, func() {
		if !h.up() {
			r.lost(try)
			return
		}
		h.serve(r, try)
	})
	if !carried {
		r.torn(try)
	}
}

// torn: something of a try was lost on its way, which a connection does not
// outlive. A patient party finds that in time; another sends again in any case.
func (r *rpc) torn(try int) {
	if r.party.plan.Patient && try == r.tries && !r.final && !r.left {
		r.watch(answerWithin)
	}
}

// within is how long a try may go without a word.
func (r *rpc) within() int64 {
	if listens(r.cmd) {
		return aliveWithin
	}
	return answerWithin
}

// listens: it is answered once a message waits, whenever that is.
func listens(cmd messages.Command) bool {
	await, ok := cmd.(*messages.AwaitInboxRequest)
	return ok && !await.GetNow()
}

// watch sends again when nothing comes back.
func (r *rpc) watch(within int64) {
	r.unwatch()
	r.giveUp = r.party.w.after(within, func() { r.party.w.soon(r.send) })
}

// unwatch goes on without an end.
func (r *rpc) unwatch() {
	if r.giveUp != nil {
		r.giveUp.cancel()
	}
}

// lost: the connection broke, and the party sees it.
func (r *rpc) lost(try int) {
	if try == r.tries && !r.final {
		r.watch(tryAgain)
	}
}

// serve takes a try up at its host.
func (h *host) serve(r *rpc, try int) {
	if r.final || r.left || try != r.tries {
		return // of a connection that is gone
	}
	if h.served == nil {
		h.served = map[*rpc]bool{}
	}
	h.served[r] = true
	r.host = h
	process := h.booted
	r.cancel = h.sys.Call(proto.Clone(r.cmd).(messages.Command), func(m messages.Message) {
		if h.booted != process {
			return
		}
		sent := h.w.steps
		h.afterwards(r.cmd, m)
		if !h.w.travel(h.name, r.party.name, h.w.brief(m), r.party.isOff, func() { r.take(try, sent, m) }) {
			r.torn(try)
		}
	})
}

// afterwards ends the stream of a claim of this host whose client has passed or
// given up, as a node does.
func (h *host) afterwards(cmd messages.Command, answer messages.Message) {
	if _, refused := answer.(*messages.Refusal); refused || !lettingGo(cmd) {
		return
	}
	name := cmd.(interface{ GetClaim() string }).GetClaim()
	for _, c := range sortedHolds(h.holds) {
		if c.name == name {
			delete(h.holds, c)
			c.claim.Release(false)
			c.hear("end "+c.call+" released", func() { c.end("released", false) })
		}
	}
}

// lettingGo are the commands by which a client gives its claim up.
func lettingGo(cmd messages.Command) bool {
	switch cmd.(type) {
	case *messages.ExpireRequest, *messages.DelegateRequest:
		return true
	}
	return false
}

// broken: the host that served it is gone. Often the party sees that at once.
func (r *rpc) broken() {
	r.cancel, r.host = nil, nil
	if r.party.plan.Patient || r.party.w.happens(800) {
		try := r.tries
		r.party.w.after(1, func() { r.lost(try) })
	}
}

// take hears an answer.
func (r *rpc) take(try, sent int, m messages.Message) {
	if r.final || r.left {
		return
	}
	if no, ok := m.(*messages.Refusal); ok {
		switch messages.Code(no.GetCode()) {
		case messages.Unavailable, messages.Fenced, messages.JournalIO, messages.JournalFull:
			r.lost(try)
			return
		default:
		}
	}
	if a, ok := m.(*messages.AskResponse); ok && a.GetWaiting() != nil {
		r.said.Waiting = append(r.said.Waiting, r.party.w.hears(r.asks[try-1], sent, m))
		r.waiting = true
		if !r.party.plan.Patient {
			r.watch(aliveWithin)
		}
		return
	}
	r.settle(try, sent, m)
}

func (r *rpc) settle(try, sent int, m messages.Message) {
	r.final, r.answer = true, m
	r.unwatch()
	if r.host != nil {
		delete(r.host.served, r)
	}
	r.party.w.say(r.party.name, KindTold, r.party.w.brief(r.cmd)+": "+r.party.w.brief(m))
	r.said.Answer = new(r.party.w.hears(r.asks[try-1], sent, m))
	if r.onAnswer != nil {
		r.onAnswer()
	}
}

// leave stops waiting, and settles nothing.
func (r *rpc) leave() {
	if r.final || r.left {
		return
	}
	r.left, r.said.LeftAt = true, r.party.w.now
	r.unwatch()
	if h := r.host; h != nil && h.up() && r.cancel != nil {
		cancel := r.cancel
		process := h.booted
		r.party.w.travel(r.party.name, h.name, "leaves "+r.party.w.brief(r.cmd), r.party.isOff, func() {
			if h.booted == process && h.up() {
				delete(h.served, r)
				cancel()
			}
		})
	}
}

func sortedRPCs(m map[*rpc]bool) []*rpc {
	all := make([]*rpc, 0, len(m))
	for r := range m {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *rpc) int { return cmp.Compare(a.id, b.id) })
	return all
}
