package supervisor

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// crash is what every panic of this room is turned into on its way to the
// strategy: who asked for what was being done, and whether the world is to
// blame (fault) or we are.
type crash struct {
	from   actors.Addr
	fault  *messages.Error
	reason any
}

func (c *crash) Error() string {
	if c.fault != nil {
		return c.fault.Error()
	}
	return fmt.Sprint(c.reason)
}

// asCrash also takes what was thrown by the engine, outside of our handlers.
func asCrash(reason any) *crash {
	if c, ok := reason.(*crash); ok {
		return c
	}
	return &crash{reason: reason}
}

// recovered is deferred around every handler. Lifecycle handlers swallow their
// panics: one in Stopping would bring a stopped actor back to life, one in
// Stopped would leave its parent waiting for ever. All others go on to the
// strategy, logged once, here, where the stack is still to be seen.
func (s *shell) recovered(msg any, self *actor.PID) {
	r, blame := recover(), s.blame
	s.blame = nil
	if r == nil {
		return
	}
	c, known := r.(*crash)
	if !known {
		c = &crash{reason: r}
		s.sys.log.LogAttrs(background, slog.LevelError, "panic", slog.String("actor", self.GetId()),
			slog.String("message", fmt.Sprintf("%T", msg)), slog.String("reason", fmt.Sprint(r)),
			slog.String("stack", string(debug.Stack())))
	}
	switch msg.(type) {
	case *actor.Stopping, *actor.Stopped, *actor.Restarting:
		return
	}
	if blame != nil {
		c.from = *blame
	}
	s.phase = broken
	panic(c)
}

// rootStrategy is the guardian of everything spawned at the root: sessions, the
// door, claims, the sweeper. It runs on the failing actor's goroutine. It never
// escalates: above it is only the process.
type rootStrategy struct{ sys *System }

func (st *rootStrategy) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	c := asCrash(reason)
	if isClaim(who.Id) {
		// Its client opens another; nothing of it is worth restarting.
		sup.StopChildren(who)
		return
	}
	if who.Id == doorName {
		st.sys.doorCrashed(c)
	}
	session, isSession := sessionOf(who.Id)
	if isSession && st.sys.placed(session) != "" {
		sup.StopChildren(who) // a restart would fence its owner
		return
	}
	v := st.sys.ward.crashed(who, c)
	if !v.restart {
		if v.quarantine {
			st.sys.quarantined(who.Id, c)
		}
		sup.StopChildren(who) // a session tells that it is gone once it has stopped
		return
	}
	st.sys.counters.restarts.Add(1)
	st.sys.rt.SendAfter(v.after, st.sys.nurse, &restart{sup, who})
	if isSession {
		st.sys.gone(session) // what is repeated now waits in its mailbox for the restart
	}
}

// HandleFailure stops a part that crashed: its session spawns a successor. The
// crash counts as one of its session, so that a command which kills the same
// part again and again ends like one that kills the session. The engine calls
// it on the session's goroutine.
func (s *shell) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	session := s.sys.engine.NewLocalPID(sessionOfPart(who.Id))
	v := s.sys.ward.crashed(session, asCrash(reason))
	if v.restart {
		s.sys.ward.restarted(session.Id) // the session itself goes on
		s.partCrashed(who)
		sup.StopChildren(who)
		return
	}
	if v.quarantine {
		s.sys.quarantined(session.Id, asCrash(reason))
	}
	s.sys.root.Stop(session) // and its parts with it
}

// doorCrashed answers all who wait: a new door does not know them. Whoever broke
// it learns that; the others may simply send the same again. An input of the
// door names its caller as From (a call) or To (an answer).
func (sys *System) doorCrashed(c *crash) {
	sys.callers.answer(c.from.Corr, messages.Refuse(messages.Bug, "this request crashed the door of its node").Wire())
	sys.callers.answerAll(messages.Refuse(messages.Unavailable, "the door of this node is starting again").Wire())
}

// quarantined tells the operator; the router does the rest.
func (sys *System) quarantined(name string, c *crash) {
	sys.counters.quarantined.Add(1)
	session, _ := sessionOf(name)
	sys.log.LogAttrs(background, slog.LevelError, "quarantined", slog.String("session", session),
		slog.Duration("for", sys.cfg.QuarantineFor), slog.String("err", c.Error()))
}

// nurse restarts what crashed, once its pause is over, and lets what was fenced be
// started again. It exists because a guardian cannot receive a timer and the
// crashed actor's mailbox is suspended.
type nurse struct{ sys *System }

// restart asks the nurse to have an actor restarted by its supervisor.
type restart struct {
	by  actor.Supervisor
	who *actor.PID
}

func (n *nurse) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *restart:
		n.sys.ward.restarted(m.who.Id)
		m.by.RestartChildren(m.who)
	case *rested:
		n.sys.router.departed(m.session, false)
	}
}
