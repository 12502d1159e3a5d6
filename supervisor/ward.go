package supervisor

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// ward remembers who has crashed lately. It decides how long to wait before a
// restart, when a session is taken out of service, and which command is not to
// be tried again. An actor that never crashes has no entry.
type ward struct {
	rt              Runtime
	backoff, max    time.Duration
	quarantineAfter int
	window          int64 // ms

	mu      sync.Mutex
	closing bool
	cases   map[string]*incident // by the actor's name
}

// incident is one actor's recent crashes.
type incident struct {
	failures []failure // within the window, oldest first
	out      int64     // out of service until then (monotonic); 0: in service
	suspects map[actors.Addr]*suspect
	down     *actor.PID // crashed and not yet restarted
}

// failure is one crash. A fault of the journal is one too, since it restarts
// the session, and so is a fence; but the session is not to blame for either: they
// do not lead to quarantine.
type failure struct {
	at    int64
	fault bool
}

// suspect is a command that was being served when its session crashed.
type suspect struct {
	times int
	err   *messages.Error // what to answer once it is found guilty
}

// verdict says what to do about a crash.
type verdict struct {
	restart    bool
	after      time.Duration
	quarantine bool // this very crash took the actor out of service
}

// The bounds of the ward's own memory.
const (
	suspectsMax     = 1024 // per actor; beyond it they are forgotten together
	incidentWindows = 10   // an incident is forgotten after that many quiet windows
)

func newWard(cfg *Config) *ward {
	return &ward{
		rt: cfg.Runtime, backoff: cfg.Backoff, max: cfg.BackoffMax, quarantineAfter: cfg.QuarantineAfter,
		window: cfg.QuarantineFor.Milliseconds(), cases: map[string]*incident{},
	}
}

// crashed records a crash of an actor and decides what follows. Only sessions
// are ever quarantined: a node without its door serves nobody.
func (w *ward) crashed(who *actor.PID, c *crash) verdict {
	now := w.rt.Now().Mono
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.failed(who.Id, failure{at: now, fault: c.fault != nil})
	in.suspect(c)
	if w.closing && isSession(who.Id) {
		return verdict{} // the door and the nurse see the shutdown through
	}
	crashes := 0
	for _, f := range in.failures {
		if !f.fault {
			crashes++
		}
	}
	if w.quarantineAfter > 0 && crashes >= w.quarantineAfter && isSession(who.Id) {
		first := in.out <= now
		in.out, in.down = now+w.window, nil
		return verdict{quarantine: first}
	}
	in.down = who
	return verdict{restart: true, after: w.pause(len(in.failures))}
}

// fenced records that a session which is ours was taken by another activation,
// and is how long to wait before it is taken back. It is nobody's fault.
func (w *ward) fenced(name string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pause(len(w.failed(name, failure{at: w.rt.Now().Mono, fault: true}).failures))
}

// failed adds to the recent failures of an actor.
func (w *ward) failed(name string, f failure) *incident {
	w.forget(f.at)
	in := w.incident(name)
	in.failures = append(slices.DeleteFunc(in.failures, func(old failure) bool { return f.at-old.at >= w.window }), f)
	return in
}

// pause doubles with every recent failure.
func (w *ward) pause(failures int) time.Duration {
	return min(w.backoff<<min(failures-1, 20), w.max)
}

func (w *ward) incident(name string) *incident {
	in := w.cases[name]
	if in == nil {
		in = &incident{}
		w.cases[name] = in
	}
	return in
}

func (in *incident) suspect(c *crash) {
	if c.from.IsZero() {
		return
	}
	if in.suspects == nil || len(in.suspects) >= suspectsMax {
		in.suspects = map[actors.Addr]*suspect{}
	}
	s := in.suspects[c.from]
	if s == nil {
		s = &suspect{}
		in.suspects[c.from] = s
	}
	s.times++
	if s.err = c.fault; s.err == nil {
		s.err = messages.Refuse(messages.Bug, "this request crashed its session %d times and is not tried again", s.times)
	}
}

// forget drops the incidents nobody has added to for long. It runs at a crash,
// which is when the ward grows.
func (w *ward) forget(now int64) {
	for name, in := range w.cases {
		if last := in.failures[len(in.failures)-1].at; in.down == nil && now-last > incidentWindows*w.window {
			delete(w.cases, name)
		}
	}
}

// guilty returns the commands of a session that are not to be tried again, and
// what to answer them: two crashes are enough. Nil for almost every session.
func (w *ward) guilty(name string) map[actors.Addr]*messages.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.cases[name]
	if in == nil {
		return nil
	}
	var out map[actors.Addr]*messages.Error
	for from, s := range in.suspects {
		if s.times < 2 {
			continue
		}
		if out == nil {
			out = map[actors.Addr]*messages.Error{}
		}
		out[from] = s.err
	}
	return out
}

// outOfService returns the refusal of a quarantined session, or nil. Once the
// time is up the session starts with a clean count.
func (w *ward) outOfService(name string) *messages.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.cases[name]
	if in == nil || in.out == 0 {
		return nil
	}
	left := in.out - w.rt.Now().Mono
	if left > 0 {
		return messages.Refuse(messages.Quarantined,
			"the session crashed %d times within %v and is tried again in %v", w.quarantineAfter,
			time.Duration(w.window)*time.Millisecond, time.Duration(left)*time.Millisecond)
	}
	in.out = 0
	for i := range in.failures {
		in.failures[i].fault = true // they keep the backoff long and count no more
	}
	return nil
}

// restarted notes that an actor is on its feet again.
func (w *ward) restarted(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if in := w.cases[name]; in != nil {
		in.down = nil
	}
}

// close lets nobody restart from now on and returns the sessions that would
// have, by name.
func (w *ward) close() []*actor.PID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
	var down []*actor.PID
	for name, in := range w.cases {
		if in.down != nil && isSession(name) {
			down = append(down, in.down)
		}
	}
	slices.SortFunc(down, func(a, b *actor.PID) int { return strings.Compare(a.Id, b.Id) })
	return down
}
