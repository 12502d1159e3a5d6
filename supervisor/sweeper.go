package supervisor

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// sweeper wakes sessions whose time has come while nobody held them in memory:
// it looks into the journal's due index, says Wake to every session in it, and
// looks again at the next due time. It decides nothing about a session; being
// woken for nothing is harmless.
type sweeper struct {
	sys    *System
	ctx    context.Context // ends with the actor, and with it a look in flight
	cancel context.CancelFunc
	limit  int
}

// tick asks for a look; swept is what it found. owner: of which life.
type tick struct{ owner *sweeper }

type swept struct {
	owner *sweeper
	due   []string
	next  int64
	err   error
}

func newSweeper(sys *System) *sweeper {
	s := &sweeper{sys: sys, limit: sweepLimitMin}
	s.ctx, s.cancel = context.WithCancel(background)
	return s
}

func (s *sweeper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.look(ctx.Self())
	case *actor.Stopping, *actor.Restarting:
		s.cancel()
	case *tick:
		if m.owner == s {
			s.look(ctx.Self())
		}
	case *swept:
		if m.owner == s {
			s.found(ctx.Self(), m)
		}
	}
}

// look reads the index off the actor, since reading blocks.
func (s *sweeper) look(self *actor.PID) {
	now, limit := s.sys.rt.Now().Wall, s.limit
	s.sys.rt.Go(func() {
		due, next, err := s.sys.journal.Due(s.ctx, now, limit)
		s.sys.root.Send(self, &swept{s, due, next, err})
	})
}

func (s *sweeper) found(self *actor.PID, m *swept) {
	if m.err != nil {
		s.sys.log.LogAttrs(background, slog.LevelError, "sweep", slog.Any("err", m.err))
	}
	for _, session := range m.due {
		if s.sys.placed(session) == "" { // the others are woken where they run
			s.sys.router.deliver(session, &actors.Envelope{Msg: &messages.Wake{}})
		}
	}
	var wait time.Duration
	wait, s.limit = sweepAgain(s.sys.rt.Now().Wall, m, s.limit, s.sys.cfg.SweepEvery)
	s.sys.rt.SendAfter(wait, self, &tick{s})
}

const (
	// sweepLimitMin bounds how many sessions are woken at once after a long stop.
	sweepLimitMin = 256
	sweepLimitMax = 1 << 20
	// sweepPause keeps a due time that never goes away from being a busy loop.
	sweepPause = 10 * time.Millisecond
)

// sweepAgain decides when to look again, and how far. Normally at the next due
// time, but within `every`, for a row may have been added meanwhile. A full page
// may have left others behind it: look again soon, and further, because the same
// sessions may still be first in the index.
func sweepAgain(now int64, m *swept, limit int, every time.Duration) (time.Duration, int) {
	switch {
	case m.err != nil:
		return every, limit
	case len(m.due) >= limit:
		return sweepPause, min(2*limit, sweepLimitMax)
	case m.next > 0:
		until := min(max(0, m.next-now), every.Milliseconds())
		return max(time.Duration(until)*time.Millisecond, sweepPause), sweepLimitMin
	}
	return every, sweepLimitMin
}
