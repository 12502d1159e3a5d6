package supervisor

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// counters are what the room counts as it goes.
type counters struct {
	turns, appends, refusals, restarts, quarantined, claimsOpened atomic.Int64

	parts atomic.Int64 // alive now
}

// Snapshot is the state of a node in numbers.
type Snapshot struct {
	// Since the start.
	Turns       int64 // commands that a session has answered or taken up
	Appends     int64 // batches handed to the journal, proofs included
	Refusals    int64 // answers of sessions and their parts that were a no
	Restarts    int64
	Quarantined int64
	Claimed     int64 // claims opened
	// Now.
	Sessions int64 // in memory
	Parts    int64
	Claims   int64
	Callers  int64 // waiting at the door
}

// Snapshot counts.
func (sys *System) Snapshot() Snapshot {
	c := &sys.counters
	return Snapshot{
		Turns: c.turns.Load(), Appends: c.appends.Load(), Refusals: c.refusals.Load(), Restarts: c.restarts.Load(),
		Quarantined: c.quarantined.Load(), Claimed: c.claimsOpened.Load(), Parts: c.parts.Load(),
		Sessions: int64(sys.router.live()), Claims: int64(sys.claims.count()), Callers: int64(sys.callers.count()),
	}
}

// Loaded says whether a session is in memory here.
func (sys *System) Loaded(session string) bool { return sys.router.holds(session) }

// turnLine is the one line of a command: always the same keys.
type turnLine struct {
	session string
	in      *actors.Envelope
	outcome string
	at      journal.Position
	seq     int64
	err     error
}

// write logs refusals at Info, faults and bugs at Error, success at Debug.
func (t turnLine) write(log *slog.Logger) {
	level := slog.LevelDebug
	if t.err != nil {
		level = slog.LevelError
		if code := messages.CodeOf(t.err); code == messages.Fenced || messages.Lookup(code).Kind == messages.RefusalKind {
			level = slog.LevelInfo // losing a session to its new owner is no trouble either
		}
	}
	if !log.Enabled(background, level) {
		return
	}
	command := ""
	if msg, ok := t.in.Msg.(messages.Message); ok {
		command = string(msg.ProtoReflect().Descriptor().Name())
	}
	log.LogAttrs(background, level, "turn", slog.String("session", t.session), slog.String("command", command),
		slog.String("outcome", t.outcome), slog.Int64("at", int64(t.at)), slog.Int64("seq", t.seq), slog.Any("err", t.err))
}

// logTurn counts and logs a command whose effects are about to leave.
func (s *shell) logTurn(in *actors.Envelope, fx *actors.Effects, r receipt) {
	if _, command := in.Msg.(messages.Command); !command {
		return
	}
	s.sys.counters.turns.Add(1)
	line := turnLine{session: s.session(), in: in, outcome: "waiting", at: r.at, seq: r.seq}
	for _, reply := range fx.Replies {
		if reply.To != in.From {
			continue
		}
		line.outcome = "ok"
		if no, refused := reply.Msg.(*messages.Refusal); refused {
			line.outcome, line.err = no.GetCode(), messages.FromWire(no)
		}
	}
	line.write(s.sys.log)
}

// logRefusal counts and logs a command that never reached its machine.
func (sys *System) logRefusal(session string, in *actors.Envelope, err *messages.Error) {
	if _, command := in.Msg.(messages.Command); !command {
		return
	}
	sys.counters.turns.Add(1)
	sys.counters.refusals.Add(1)
	turnLine{session: session, in: in, outcome: string(err.Code), err: err}.write(sys.log)
}

// logAppendFailed logs a turn that came to nothing, whatever began it.
func (sys *System) logAppendFailed(session string, t *turn, seq int64, err error) {
	if sys.complaints.pass(sys.rt.Now().Mono, sys.log) {
		turnLine{session: session, in: t.in, outcome: string(asRefusal(err).Code), seq: seq, err: err}.write(sys.log)
	}
}

func (sys *System) logOpenFailed(session string, err error) {
	if !sys.complaints.pass(sys.rt.Now().Mono, sys.log) {
		return
	}
	sys.log.LogAttrs(background, slog.LevelError, "open", slog.String("session", session), slog.Any("err", err))
}

// complaints bounds what a failing journal makes every session say: some lines
// a second, and then how many were held back.
type complaints struct {
	mu     sync.Mutex
	second int64
	said   int
	held   int
}

// complaintsMax is how many lines a second are let through.
const complaintsMax = 5

func (c *complaints) pass(mono int64, log *slog.Logger) bool {
	c.mu.Lock()
	held := 0
	if second := mono / 1000; second != c.second {
		held = c.held
		c.second, c.said, c.held = second, 0, 0
	}
	c.said++
	pass := c.said <= complaintsMax
	if !pass {
		c.held++
	}
	c.mu.Unlock()
	if held > 0 {
		log.LogAttrs(background, slog.LevelError, "held back", slog.Int("lines", held))
	}
	return pass
}
