package supervisor

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// Call sends a command to its session and returns at once. The door repeats it
// as long as the session does not answer. done gets the answer, a Reply, once:
// on a goroutine of this room, where it must not block, or before Call returns.
// An ask may hear that it is Waiting before that: durable, and not yet answered.
// cancel ends the wait; an answer that is being handed over as it is called may
// still come.
func (sys *System) Call(cmd messages.Command, done func(messages.Message)) (cancel func()) {
	corr := sys.callers.add(done)
	if corr == 0 {
		done(messages.Refuse(messages.Unavailable, "the node is stopping").Wire())
		return func() {}
	}
	sys.root.Send(sys.door, &actors.Envelope{From: outside(corr), Msg: actors.DoorCall{Corr: corr, Cmd: cmd}})
	return func() {
		if sys.callers.drop(corr) {
			sys.root.Send(sys.door, &actors.Envelope{From: outside(corr), Msg: actors.DoorCancel{Corr: corr}})
		}
	}
}

// outside is the address of whoever stands outside of a door.
func outside(corr uint64) actors.Addr { return actors.Addr{Key: actors.Out, Corr: corr} }

// callers are those who wait at the door: a map entry and a func each, so that
// a hundred thousand agents may wait for their humans.
type callers struct {
	log *slog.Logger

	mu      sync.Mutex
	last    uint64
	closed  bool
	waiting map[uint64]func(messages.Message)
}

// add returns the new caller's correlation, or 0 when the door is closed.
func (c *callers) add(done func(messages.Message)) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	c.last++
	c.waiting[c.last] = done
	return c.last
}

func (c *callers) drop(corr uint64) (waited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waited = c.waiting[corr]
	delete(c.waiting, corr)
	return waited
}

// answer gives a caller its answer. Further ones find nobody; only a Waiting is
// not the last word.
func (c *callers) answer(corr uint64, msg messages.Message) {
	ask, isAsk := msg.(*messages.AskResponse)
	c.mu.Lock()
	done, ok := c.waiting[corr]
	if !isAsk || ask.GetWaiting() == nil {
		delete(c.waiting, corr)
	}
	c.mu.Unlock()
	if ok {
		guarded(c.log, "callback", func() { done(msg) })
	}
}

// answerAll gives everybody who waits the same answer, in the order in which
// they came.
func (c *callers) answerAll(msg messages.Message) {
	c.mu.Lock()
	waiting := sortedKeys(c.waiting)
	c.mu.Unlock()
	for _, corr := range waiting {
		c.answer(corr, msg)
	}
}

func (c *callers) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// close answers everybody who still waits, and lets nobody in any more.
func (c *callers) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.answerAll(messages.Refuse(messages.Unavailable, "the node is stopping").Wire())
}

// ClaimSink is the client's side of a claim. Its methods are called in order,
// on a goroutine of this room, and must not block. Nothing follows End.
type ClaimSink interface {
	// Frame is the host's remainder; never means that there is no deadline.
	Frame(remainingMs int64, never bool)
	// End closes the stream: settled, released, unknown, expired or
	// unavailable. When retryable the client should open the claim again.
	End(reason string, retryable bool)
}

// Claim is one client's hold on a wait.
type Claim struct {
	sys           *System
	key           string // the address, and the actor's name
	session, call string
	sink          ClaimSink
	pid           *actor.PID
	ended         bool // sink.End was called, or the client let go; guarded by sys.claims.mu
}

// OpenClaim holds a wait for a client. It returns at once; what becomes of the
// claim is told to the sink.
func (sys *System) OpenClaim(session, call string, sink ClaimSink) *Claim {
	c := &Claim{sys: sys, session: session, call: call, sink: sink, key: claimPrefix + sys.cfg.Node + "/" + sys.rt.NewID()}
	pid, err := sys.root.SpawnNamed(sys.props.claim, c.key)
	if err != nil || !sys.claims.add(c, pid) {
		if err == nil {
			sys.root.Stop(pid)
		}
		c.end("unavailable", true)
		return c
	}
	sys.counters.claimsOpened.Add(1)
	sys.root.Send(pid, &seed{sys.cfg.NewClaim(c.Addr(), session, call), c.key, nil})
	return c
}

// ID is the claim's id, as ExpireRequest and DelegateRequest name it.
func (c *Claim) ID() string { return c.key }

// Addr is where its session answers it.
func (c *Claim) Addr() actors.Addr { return actors.Addr{Key: c.key} }

// Release ends the claim from the client's side: lost, when its stream broke
// and nobody said goodbye. The sink is not called any more. A second call, or
// one after End, does nothing.
func (c *Claim) Release(lost bool) {
	if !c.sys.claims.letGo(c) {
		return
	}
	c.sys.root.Send(c.pid, &actors.Envelope{Msg: actors.StreamClosed{Lost: lost}})
	c.sys.root.Poison(c.pid)
}

// tell hands what the claim's machine says to the client.
func (c *Claim) tell(msg messages.Message) {
	if c == nil {
		return // it has stopped meanwhile
	}
	switch m := msg.(type) {
	case *messages.ClaimFrame:
		if c.sys.claims.open(c) {
			guarded(c.sys.log, "claim frame", func() { c.sink.Frame(m.GetRemainingMs(), m.GetNever()) })
		}
	case *messages.ClaimEnd:
		c.end(m.GetReason(), m.GetRetryable())
	}
}

// end closes the stream and the actor behind it.
func (c *Claim) end(reason string, retryable bool) {
	if !c.sys.claims.letGo(c) {
		return
	}
	guarded(c.sys.log, "claim end", func() { c.sink.End(reason, retryable) })
	if c.pid != nil {
		c.sys.root.Poison(c.pid)
	}
}

// stopped is called when the actor has stopped. If nobody meant it to, client
// and session both learn that the claim is lost. One that crashed over its own
// end has not told its session, which would let it hold the wait for ever.
func (c *Claim) stopped(crashed bool) {
	if c == nil {
		return // it was never opened
	}
	c.sys.claims.remove(c)
	letGo := c.sys.claims.letGo(c)
	if letGo {
		guarded(c.sys.log, "claim end", func() { c.sink.End("unavailable", true) })
	}
	if !letGo && !crashed {
		return
	}
	c.sys.route(actors.SessionAddr(c.session), c.Addr(),
		&messages.ClaimRelease{Session: c.session, CallId: c.call, Lost: true})
}

// claims are the open claims of this node, by address and by session.
type claims struct {
	mu        sync.Mutex
	closed    bool
	byKey     map[string]*Claim
	bySession map[string][]*Claim // in the order in which they were opened
}

func (cs *claims) add(c *Claim, pid *actor.PID) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return false
	}
	c.pid = pid
	cs.byKey[c.key] = c
	cs.bySession[c.session] = append(cs.bySession[c.session], c)
	return true
}

func (cs *claims) remove(c *Claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byKey[c.key] != c {
		return
	}
	delete(cs.byKey, c.key)
	list := slices.DeleteFunc(cs.bySession[c.session], func(o *Claim) bool { return o == c })
	if cs.bySession[c.session] = list; len(list) == 0 {
		delete(cs.bySession, c.session)
	}
}

// letGo reports whether this is the moment at which the claim ends.
func (cs *claims) letGo(c *Claim) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	was := !c.ended
	c.ended = true
	return was
}

func (cs *claims) open(c *Claim) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return !c.ended
}

// get returns the claim of an address, or nil.
func (cs *claims) get(key string) *Claim {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byKey[key]
}

func (cs *claims) of(session string) []*Claim {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.bySession[session])
}

func (cs *claims) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.byKey)
}

// close ends every claim as retryable, and lets none be opened any more.
func (cs *claims) close() {
	cs.mu.Lock()
	cs.closed = true
	keys := sortedKeys(cs.byKey)
	all := make([]*Claim, len(keys))
	for i, key := range keys {
		all[i] = cs.byKey[key]
	}
	cs.mu.Unlock()
	for _, c := range all {
		c.end("unavailable", true)
	}
}

// guarded calls somebody else's code: its panic is logged, and is not ours.
func guarded(log *slog.Logger, what string, call func()) {
	defer func() {
		if r := recover(); r != nil {
			log.LogAttrs(background, slog.LevelError, "panic", slog.String("actor", what),
				slog.String("reason", fmt.Sprint(r)), slog.String("stack", string(debug.Stack())))
		}
	}()
	call()
}
