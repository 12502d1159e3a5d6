package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// ledger is what the shell of a session has beyond every other: its place in
// the journal, the turn that waits for an append, and its parts.
//
//	Started ─▶ Open ─▶ NewSession ─▶ Resume ─▶ { Step ─▶ Append ─▶ Apply ─▶ release } …
//
// Invariant: nothing is told to anybody before it is durable. Invariant: held is
// empty whenever the session is ready, no turn is open, and it is not about to stop.
type ledger struct {
	epoch  int64
	seq    int64 // of the next event
	turn   *turn // waits for its append; nil when none does
	held   []*actors.Envelope
	proved int  // of held: those that had come when the last append began
	owned  bool // the input that is being decided was one of them
	parts  []part
	guilty map[actors.Addr]*messages.Error // not to be tried again; almost always nil
	again  *actors.Envelope                // to be put to the machine once no part is stopping
	fenced bool                            // another activation owns the session
}

// turn is a step that waits for the journal.
type turn struct {
	in     *actors.Envelope
	fx     actors.Effects
	events []sessionlog.Event // fx.Append, stamped
	proof  bool               // the batch is empty and records nothing
	held   int                // when it began
}

// part is a child of the session. stopping: it was told to, so its end is none
// of the machine's business. crashed: what it was told last it has told nobody.
type part struct {
	id                actors.PartID
	pid               *actor.PID
	stopping, crashed bool
}

// opened and appended are the journal's answers. owner tells an answer to this
// activation from one to its earlier self.
type opened struct {
	owner *shell
	found journal.Opened
	err   error
}

type appended struct {
	owner  *shell
	result journal.Appended
	err    error
}

// receipt is where a turn was recorded; zero if it recorded nothing.
type receipt struct {
	at  journal.Position
	seq int64
}

// session is the id of this shell's session.
func (s *shell) session() string { return s.key[len(sessionPrefix):] }

// load takes the session's next epoch and then reads its log: on first start
// and on every restart, and nowhere else.
func (s *shell) load(ctx actor.Context) {
	self := ctx.Self()
	session, ok := sessionOf(self.Id)
	if !ok {
		panic("supervisor: a session under the name " + self.Id)
	}
	if s.key = sessionPrefix + session; s.key == self.Id {
		s.key = self.Id // one string instead of two
	}
	s.log.guilty = s.sys.ward.guilty(self.Id)
	s.sys.journal.Open(session, func(found journal.Opened, err error) {
		s.sys.root.Send(self, &opened{s, found, err})
	})
}

func (s *shell) opened(ctx actor.Context, m *opened) {
	if m.owner != s || s.phase != loading {
		return
	}
	err := m.err
	if err == nil {
		s.machine, err = s.sys.cfg.NewSession(s.session(), m.found)
	}
	if err != nil {
		s.unloadable(ctx, err)
		return
	}
	s.log.epoch = m.found.Epoch
	if n := len(m.found.Events); n > 0 {
		s.log.seq = m.found.Events[n-1].Seq + 1
	}
	s.phase = ready
	s.resume(ctx)
	s.drain(ctx)
}

// unloadable answers what waits for a session that cannot be opened, and unloads
// it. The world failed, not the session: it is no crash, and the next command
// tries again.
func (s *shell) unloadable(ctx actor.Context, err error) {
	refusal := asRefusal(err)
	s.sys.logOpenFailed(s.session(), err)
	held := s.log.held
	s.log.held = nil
	for _, in := range held {
		s.sys.refuse(s.session(), in, refusalFor(in.Msg, refusal))
	}
	s.leave(ctx)
}

// refusalFor: whoever waits for a question that is durable waits until the log can
// be read again, and does not take the trouble of a disk for the end of its wait.
func refusalFor(msg any, err *messages.Error) *messages.Error {
	ask, ok := msg.(*messages.AskRequest)
	trouble := err.Code == messages.JournalIO || err.Code == messages.JournalFull
	if ok && ask.GetResume() && trouble {
		return messages.Refuse(messages.Unavailable, "%s", err.Text)
	}
	return err
}

// asRefusal keeps a coded error and hides the text of any other from clients.
func asRefusal(err error) *messages.Error {
	var coded *messages.Error
	if errors.As(err, &coded) {
		return coded
	}
	return messages.Refuse(messages.Unavailable, "the session's log could not be read or written; the node's log says why")
}

// hold keeps an input until the journal has answered.
func (s *shell) hold(in *actors.Envelope) {
	if limit := s.sys.cfg.HeldMax; limit > 0 && len(s.log.held) >= limit && !in.From.IsZero() {
		if isTold(in.Msg) {
			s.sys.refuse(s.session(), in, messages.Refuse(messages.Unavailable,
				"%d requests wait for this session, the limit is %d", len(s.log.held), limit))
			return
		}
	}
	s.log.held = append(s.log.held, in)
}

// isTold reports whether whoever sent a message is told what becomes of it. Who lets
// go, or leaves, is not there to hear that it has to try again.
func isTold(msg any) bool {
	switch msg.(type) {
	case *messages.ClaimRelease, *messages.AskDetachRequest:
		return false
	}
	_, command := msg.(messages.Command)
	return command
}

// bounce gives the router back what it had delivered. The rest was meant for
// this activation alone and goes with it.
func (s *shell) bounce(in *actors.Envelope) {
	if _, local := in.Msg.(actors.Local); !local {
		s.sys.router.bounce(s.session(), in)
	}
}

// drain works off what was held, until a step waits for the journal again.
func (s *shell) drain(ctx actor.Context) {
	for s.phase == ready && s.log.turn == nil && len(s.log.held) > 0 {
		in := s.log.held[0]
		s.log.held[0] = nil
		if s.log.held = s.log.held[1:]; len(s.log.held) == 0 {
			s.log.held = nil
		}
		s.blame = nil
		if s.log.owned = s.log.proved > 0; s.log.owned {
			s.log.proved--
		}
		s.step(ctx, in)
		s.log.owned = false
	}
}

// refusedGuilty answers a command that has crashed this session twice, or whose
// append has failed twice, instead of trying it again.
func (s *shell) refusedGuilty(in *actors.Envelope) bool {
	if _, local := in.Msg.(actors.Local); local || s.log.guilty == nil {
		return false
	}
	err := s.log.guilty[in.From]
	if err != nil {
		s.sys.refuse(s.session(), in, err)
	}
	return err != nil
}

// append hands a batch to the journal, or an empty one that proves that the
// epoch is still ours. Inputs are held until the result is back.
func (s *shell) append(ctx actor.Context, in *actors.Envelope, fx actors.Effects) {
	self, wall := ctx.Self(), s.sys.rt.Now().Wall
	t := &turn{in: in, fx: fx, events: fx.Append, held: len(s.log.held)}
	for i, ev := range t.events {
		if ev.Time == 0 {
			t.events[i] = ev.At(s.log.seq+int64(i), wall)
		} else if ev.Seq != s.log.seq+int64(i) {
			panic(fmt.Sprintf("supervisor: the event %s is stamped %d, the log is at %d", ev.Type, ev.Seq, s.log.seq+int64(i)))
		}
	}
	s.log.turn = t
	batch := journal.Batch{
		Session: s.session(), Epoch: s.log.epoch, Seq: s.log.seq,
		Header: fx.Header, Events: t.events, Index: fx.Index,
	}
	t.proof = batch.Empty()
	s.sys.counters.appends.Add(1)
	s.sys.journal.Append(batch, func(result journal.Appended, err error) {
		s.sys.root.Send(self, &appended{s, result, err})
	})
}

// appended ends a turn. Recorded: fold, tell, go on. Fenced: somebody else owns
// the session, leave quietly. Anything else may have left the batch in doubt:
// restart, and learn from the log what was recorded. Nobody has been told.
func (s *shell) appended(ctx actor.Context, m *appended) {
	if m.owner != s || s.phase != ready || s.log.turn == nil {
		return // of an earlier life, or this one is over; the log has it
	}
	t := s.log.turn
	s.blame = &t.in.From
	if m.err != nil {
		s.sys.logAppendFailed(s.session(), t, s.log.seq, m.err)
		if messages.CodeOf(m.err) != messages.Fenced {
			panic(&crash{fault: asRefusal(m.err)})
		}
		s.gone, s.log.fenced, s.log.turn = true, true, nil
		s.leave(ctx)
		return
	}
	r := receipt{seq: s.log.seq}
	if !t.proof {
		r.at = m.result.At
		s.log.seq += int64(len(t.events))
	}
	if m.result.Epoch > 0 {
		s.log.epoch = m.result.Epoch // the append that created it gave it one
	}
	for _, ev := range t.events {
		s.machine.Apply(ev)
	}
	s.log.turn, s.log.proved = nil, t.held
	s.release(ctx, t.in, &t.fx, r)
	if s.last && s.phase == ready {
		s.quit(ctx)
		return
	}
	s.drain(ctx)
}

// passivate unloads the session, but not over parts that still have a last word
// to say: a stop would overtake it, and whoever waits for it would wait for ever.
// Then the input that led here is put to the machine again, behind what they say.
func (s *shell) passivate(ctx actor.Context, in *actors.Envelope) {
	if s.anyStopping() {
		s.log.again = in
		return
	}
	s.leave(ctx)
}

func (s *shell) anyStopping() bool {
	return slices.ContainsFunc(s.log.parts, func(p part) bool { return p.stopping })
}

// leave unloads the session. The router holds back what is said to it from now
// on, gets back what was said and not yet heard, and starts it again if there
// is any.
func (s *shell) leave(ctx actor.Context) {
	if s.phase == leaving {
		return
	}
	s.phase = leaving
	s.stopTimers()
	var held []*actors.Envelope
	for _, in := range s.log.held {
		if _, local := in.Msg.(actors.Local); !local {
			held = append(held, in)
		}
	}
	s.log.held = nil
	s.sys.router.departing(s.session(), held)
	ctx.Poison(ctx.Self())
}

// quit stops a session with its node: after the append in flight, if there is
// one, and after the last words of its parts. It records nothing.
func (s *shell) quit(ctx actor.Context) {
	switch {
	case s.kind == doorKind:
		s.sys.callers.close()
		ctx.Poison(ctx.Self())
	case s.log.turn != nil || s.anyStopping():
		s.last = true
	default:
		s.gone = true // whoever waits in it asks again, unless the node stops
		s.leave(ctx)
	}
}

// toPart speaks to a part: spawns it from its seed, tells it something, or has
// it stop once it has heard what was said before.
func (s *shell) toPart(ctx actor.Context, from actors.Addr, to actors.ToPart) {
	if to.Seed != nil {
		pid, err := s.spawnPart(ctx, to.Part)
		if err != nil {
			panic(fmt.Sprintf("supervisor: part %s: %v", to.Part.Name(), err))
		}
		s.log.parts = append(s.log.parts, part{id: to.Part, pid: pid})
		ctx.Send(pid, &seed{to.Seed, s.key, s})
	}
	p := s.part(to.Part)
	if p == nil {
		return // it has died meanwhile, and the machine is about to hear of it
	}
	if to.Msg != nil {
		ctx.Send(p.pid, &downward{from, to.Msg})
	}
	if to.Stop && !p.stopping {
		p.stopping = true
		ctx.Poison(p.pid)
	}
}

// spawnPart makes a part a child of the session: its failures come here, and so
// does its end. Only the engine's own set of children is left out, since it
// costs a parked session 600 bytes for one entry and ours has the parts anyway.
// So the session stops its parts itself (ending), and does not wait for them:
// the epoch in the name keeps a successor's parts apart from those that still stop.
func (s *shell) spawnPart(ctx actor.Context, id actors.PartID) (*actor.PID, error) {
	name := ctx.Self().Id + "/" + id.Name() + "." + strconv.FormatInt(s.log.epoch, 36)
	return actor.DefaultSpawner(s.sys.engine, name, s.sys.props.part, ctx)
}

func (s *shell) part(id actors.PartID) *part {
	for i := range s.log.parts {
		if s.log.parts[i].id == id {
			return &s.log.parts[i]
		}
	}
	return nil
}

// partCrashed notes that a part will end by a crash.
func (s *shell) partCrashed(who *actor.PID) {
	if s.log == nil {
		return
	}
	for i := range s.log.parts {
		if s.log.parts[i].pid.Id == who.Id {
			s.log.parts[i].crashed = true
		}
	}
}

// partEnded forgets a part that has stopped. If it was not told to, the machine
// hears of it once. If it crashed, even over its last word, whoever was waiting
// inside it must ask again.
func (s *shell) partEnded(ctx actor.Context, who *actor.PID) {
	if s.log == nil {
		return
	}
	for i, p := range s.log.parts {
		if p.pid.Id != who.Id {
			continue
		}
		last := len(s.log.parts) - 1
		s.log.parts[i], s.log.parts[last] = s.log.parts[last], part{}
		s.log.parts = s.log.parts[:last]
		s.partsQuiet(ctx)
		if s.phase != ready || p.stopping && !p.crashed {
			return
		}
		s.log.guilty = s.sys.ward.guilty(ctx.Self().Id)
		if !p.stopping {
			s.input(ctx, &actors.Envelope{Msg: actors.PartDied{Part: p.id}})
		}
		s.sys.gone(s.session())
		return
	}
}

// partsQuiet goes on with what waited for parts to have their last word.
func (s *shell) partsQuiet(ctx actor.Context) {
	switch {
	case s.phase != ready || s.anyStopping():
	case s.last:
		s.quit(ctx)
	case s.log.again != nil:
		ctx.Send(ctx.Self(), s.log.again)
		s.log.again = nil
	}
}
