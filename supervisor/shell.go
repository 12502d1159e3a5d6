package supervisor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// shell runs one machine: it hands inputs in, one at a time, and lets effects
// out in the declared order. There is one shell for all machines; what a session
// needs beyond it (the append before the effects) is in session.go.
//
//	session, door:  Started ─▶ (loading) ─▶ ready ─▶ leaving ─▶ stopped
//	part, claim:    Started ─▶ seed ──────▶ ready ─▶ stopped
//	any:            a panic ─▶ broken, and the strategy decides
//
// It is small because there is one per parked question.
type shell struct {
	sys     *System
	machine actors.Machine // nil until loaded or seeded
	key     string         // the address it speaks under; a part speaks as its session
	blame   *actors.Addr   // who asked for what is being done; nil in between, for it holds on to an input
	timers  *timer         // nil when none runs
	owner   *shell         // parts: the activation they belong to
	log     *ledger        // sessions only
	kind    kind
	phase   phase
	gone    bool // sessions: stopping means that something was lost
	last    bool // sessions: leave once the turn is over
}

type kind uint8

const (
	sessionKind kind = iota
	partKind
	doorKind
	claimKind
)

type phase uint8

const (
	loading phase = iota // no machine yet
	ready
	leaving // the router has been told; what still arrives goes back to it
	broken  // panicked; nothing may touch the machine any more
)

// seed is the first message of a part or a claim: its machine, and the address
// it speaks under. owner: the session of a part.
type seed struct {
	machine actors.Machine
	key     string
	owner   *shell
}

// downward is an input from a session to its part, with whoever asked for it.
type downward struct {
	from actors.Addr
	msg  actors.Local
}

// upward is an input from a part to its session, with whoever made the part
// speak: its command is the one to suspect if the session crashes over it. A
// session that restarted ignores what parts of its earlier self left behind.
type upward struct {
	owner *shell
	from  actors.Addr
	msg   actors.Local
}

// quit asks a session or the door to finish what is in flight and to stop.
type quit struct{}

// Receive is the one entry: everything that happens to an actor, in order.
func (s *shell) Receive(ctx actor.Context) {
	defer s.recovered(ctx.Message(), ctx.Self())
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.started(ctx)
	case *actor.Restarting, *actor.Stopping:
		s.ending(ctx)
	case *actor.Stopped:
		s.stopped(ctx)
	case *actor.Terminated:
		s.partEnded(ctx, m.Who)
	case *seed:
		s.machine, s.key, s.owner, s.phase = m.machine, m.key, m.owner, ready
		s.resume(ctx)
	case *actors.Envelope:
		s.input(ctx, m)
	case *downward:
		s.blame = &m.from
		s.step(ctx, &actors.Envelope{Msg: m.msg})
	case *upward:
		if m.owner == s {
			s.input(ctx, &actors.Envelope{From: m.from, Msg: m.msg})
		}
	case *timer:
		if s.expire(m) {
			s.input(ctx, &actors.Envelope{Msg: actors.Fired{Name: m.name, Gen: m.gen}})
		}
	case *opened:
		s.opened(ctx, m)
	case *appended:
		s.appended(ctx, m)
	case quit:
		s.quit(ctx)
	}
}

func (s *shell) started(ctx actor.Context) {
	switch s.kind {
	case sessionKind:
		s.load(ctx)
	case partKind:
		s.sys.counters.parts.Add(1)
	case doorKind:
		s.openDoor(ctx)
	case claimKind: // its seed is on the way
	}
}

// openDoor builds the door's machine.
func (s *shell) openDoor(ctx actor.Context) {
	s.key = s.sys.doorKey
	s.machine, s.phase = s.sys.cfg.NewDoor(actors.Addr{Key: s.key}), ready
	s.resume(ctx)
}

// resume lets the machine say what its state wants done.
func (s *shell) resume(ctx actor.Context) {
	s.perform(ctx, &actors.Envelope{}, s.machine.Resume(s.sys.rt.Now()))
}

// input takes an envelope in. Only a session may have to hold it, or no longer
// be the one to take it.
func (s *shell) input(ctx actor.Context, in *actors.Envelope) {
	switch {
	case s.phase == broken:
	case s.phase == leaving:
		s.bounce(in)
	case s.log != nil && (s.phase == loading || s.log.turn != nil || s.last):
		s.hold(in)
	default:
		s.step(ctx, in)
	}
}

// step runs the machine once.
func (s *shell) step(ctx actor.Context, in *actors.Envelope) {
	if s.phase != ready {
		return
	}
	if s.blame == nil {
		s.blame = &in.From
	}
	if s.log != nil && s.refusedGuilty(in) {
		return
	}
	s.perform(ctx, in, s.machine.Step(s.sys.rt.Now(), *in))
}

// perform makes the effects durable, if they ask for it, and then lets them out. A
// proof is not needed twice: what came before an append that was recorded is known to
// have come while the session was ours, and to be decided upon as it was then.
func (s *shell) perform(ctx actor.Context, in *actors.Envelope, fx actors.Effects) {
	records := len(fx.Append) > 0 || fx.Header != nil || len(fx.Index) > 0
	if !records && (!fx.Proof || s.log != nil && s.log.owned) {
		s.release(ctx, in, &fx, receipt{})
		return
	}
	if s.log == nil {
		panic("supervisor: only a session may append")
	}
	s.append(ctx, in, fx)
}

// release lets effects out, in the order that actors.Effects declares.
func (s *shell) release(ctx actor.Context, in *actors.Envelope, fx *actors.Effects, r receipt) {
	if s.log != nil {
		s.logTurn(in, fx, r)
	}
	for _, reply := range fx.Replies {
		s.reply(reply)
	}
	for _, msg := range fx.Up {
		s.up(ctx, msg)
	}
	for _, to := range fx.Parts {
		s.toPart(ctx, in.From, to)
	}
	for _, send := range fx.Sends {
		s.sys.route(send.To, send.From, send.Msg)
	}
	for _, t := range fx.Timers {
		s.setTimer(ctx, t)
	}
	if fx.Passivate && s.log != nil {
		s.passivate(ctx, in)
	}
}

// reply answers under the shell's own address and the correlation of the one
// who asked; a door or a claim also speaks to whoever stands outside of it.
func (s *shell) reply(r actors.Reply) {
	if _, no := r.Msg.(*messages.Refusal); no && s.kind <= partKind {
		s.sys.counters.refusals.Add(1)
	}
	if r.To.Key != actors.Out {
		s.sys.route(r.To, actors.Addr{Key: s.key, Corr: r.To.Corr}, r.Msg)
		return
	}
	switch s.kind {
	case doorKind:
		s.sys.callers.answer(r.To.Corr, r.Msg)
	case claimKind:
		s.sys.claims.get(s.key).tell(r.Msg)
	case sessionKind, partKind: // nobody stands outside of them
	}
}

func (s *shell) up(ctx actor.Context, msg actors.Local) {
	if s.kind != partKind {
		panic("supervisor: only a part may speak up")
	}
	m := &upward{owner: s.owner, msg: msg}
	if s.blame != nil {
		m.from = *s.blame
	}
	ctx.Send(ctx.Parent(), m)
}

// ending silences an actor that is about to stop or to restart.
func (s *shell) ending(ctx actor.Context) {
	defer s.stopTimers()
	if s.kind != sessionKind {
		return
	}
	for _, p := range s.log.parts {
		ctx.Stop(p.pid)
	}
	if _, stopping := ctx.Message().(*actor.Stopping); stopping && s.phase != leaving {
		// Nobody asked it to go: what it held is lost, and who waits must hear of it.
		s.gone = true
		s.sys.router.departing(s.session(), nil)
	}
	s.phase = leaving
}

func (s *shell) stopped(ctx actor.Context) {
	switch s.kind {
	case sessionKind:
		s.sys.router.departed(s.session(), s.log.fenced)
		if s.gone {
			s.sys.gone(s.session())
		}
	case partKind:
		s.sys.counters.parts.Add(-1)
	case claimKind:
		s.sys.claims.get(s.key).stopped(s.phase == broken)
	case doorKind:
		s.sys.doorClosed()
	}
}

// timer is one that runs, and at the same time the message it sends: a firing
// that is no longer in the list, because it was stopped or replaced or belongs
// to an earlier self of this actor, is not ours and is dropped.
type timer struct {
	name   string
	cancel func()
	next   *timer
	gen    uint32
}

func (s *shell) setTimer(ctx actor.Context, t actors.Timer) {
	for at := &s.timers; *at != nil; at = &(*at).next {
		if old := *at; old.name == t.Name {
			old.cancel()
			*at = old.next
			break
		}
	}
	if t.After < 0 {
		return
	}
	n := &timer{name: t.Name, gen: t.Gen, next: s.timers}
	n.cancel = s.sys.rt.SendAfter(time.Duration(t.After)*time.Millisecond, ctx.Self(), n)
	s.timers = n
}

// expire takes a timer that has fired out of the list, and reports whether it
// was still in it.
func (s *shell) expire(fired *timer) bool {
	for at := &s.timers; *at != nil; at = &(*at).next {
		if *at == fired {
			*at = fired.next
			return true
		}
	}
	return false
}

func (s *shell) stopTimers() {
	for t := s.timers; t != nil; t = t.next {
		t.cancel()
	}
	s.timers = nil
}

// refuse answers an envelope with a typed no, if anybody waits for one.
func (sys *System) refuse(session string, in *actors.Envelope, err *messages.Error) {
	sys.logRefusal(session, in, err)
	if in.From.IsZero() {
		return
	}
	sys.route(in.From, actors.Addr{Key: sessionPrefix + session, Corr: in.From.Corr}, err.Wire())
}
