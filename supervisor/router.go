package supervisor

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// router turns a session id into its live actor, which it spawns on demand. All
// that is said to a session goes through it.
//
//	(nothing) ──deliver──▶ live ──departing──▶ leaving ──departed──▶ (nothing), or live again
//
// Messages queued behind a stop vanish without a trace, so a session never just
// stops: while it is leaving, nothing is delivered. What was already in its
// mailbox comes back (bounced), what arrives meanwhile is kept behind that, and
// once the actor has stopped all of it goes, in order, to a new activation. After
// a fence that may take a while: as long as two nodes both take a session for
// theirs, each would fence the other as soon as it is fenced, and neither would
// ever record anything.
type router struct {
	sys *System

	mu      sync.Mutex
	routes  map[string]*actor.PID // live and leaving
	leaving map[string]*departure
	closing bool
	empty   func() // called once, when closing and the last session has stopped
}

// departure is what to hand to the next activation.
type departure struct {
	bounced, queued []*actors.Envelope
}

// refused is an envelope the router answers itself, after its lock is released.
type refused struct {
	in  *actors.Envelope
	err *messages.Error
}

func newRouter(sys *System) *router {
	return &router{sys: sys, routes: map[string]*actor.PID{}, leaving: map[string]*departure{}}
}

// deliver hands an envelope to its session.
func (r *router) deliver(session string, in *actors.Envelope) {
	r.mu.Lock()
	err := r.deliverLocked(session, in)
	r.mu.Unlock()
	if err != nil {
		r.sys.refuse(session, in, err)
	}
}

// deliverLocked posts under the lock: the envelope is then in the mailbox ahead
// of any poison pill, or it is not posted to this activation at all.
func (r *router) deliverLocked(session string, in *actors.Envelope) *messages.Error {
	if r.closing {
		return messages.Refuse(messages.Unavailable, "the node is stopping")
	}
	if d := r.leaving[session]; d != nil {
		d.queued = append(d.queued, in)
		return nil
	}
	pid := r.routes[session]
	if pid == nil {
		var err *messages.Error
		if pid, err = r.spawn(session); err != nil {
			return err
		}
	}
	r.sys.root.Send(pid, in)
	return nil
}

func (r *router) spawn(session string) (*actor.PID, *messages.Error) {
	if err := messages.CheckID("session", session); err != nil {
		return nil, err
	}
	name := sessionName(session)
	if err := r.sys.ward.outOfService(name); err != nil {
		return nil, err
	}
	pid, err := r.sys.root.SpawnNamed(r.sys.props.session, name)
	if err != nil {
		r.sys.log.LogAttrs(background, slog.LevelError, "spawn", slog.String("session", session), slog.Any("err", err))
		return nil, messages.Refuse(messages.Unavailable, "the session could not be started")
	}
	if key := name[len(sessionPrefix):]; key == session {
		session = key // one string instead of two, where nothing had to be encoded
	}
	r.routes[session] = pid
	return pid, nil
}

// departing stops delivery to a session that is about to stop. held is what it
// had taken in and not yet looked at.
func (r *router) departing(session string, held []*actors.Envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.leaving[session]
	if d == nil {
		d = &departure{}
		r.leaving[session] = d
	}
	d.bounced = append(d.bounced, held...)
}

// bounce takes back an envelope that was in the mailbox of a leaving session.
func (r *router) bounce(session string, in *actors.Envelope) {
	r.departing(session, []*actors.Envelope{in})
}

// departed forgets a session that has stopped, and starts it again if anything
// was said to it meanwhile: here, or where it runs by now. If it was fenced, and
// is ours all the same, that has time.
func (r *router) departed(session string, fenced bool) {
	moved := r.sys.placed(session) != ""
	if fenced && !moved && r.rest(session) {
		return
	}
	r.mu.Lock()
	var left departure
	if d := r.leaving[session]; d != nil {
		left = *d
	}
	delete(r.leaving, session)
	delete(r.routes, session)
	again := append(left.bounced, left.queued...)
	var elsewhere []*actors.Envelope
	if moved && !r.closing {
		again, elsewhere = nil, again
	}
	var refusals []refused
	for _, in := range again {
		if err := r.deliverLocked(session, in); err != nil {
			refusals = append(refusals, refused{in, err})
		}
	}
	empty := r.takeEmpty()
	r.mu.Unlock()
	for _, f := range refusals {
		r.sys.refuse(session, f.in, f.err)
	}
	for _, in := range elsewhere {
		if msg, ok := in.Msg.(messages.Message); ok {
			r.sys.route(actors.SessionAddr(session), in.From, msg)
		}
	}
	if empty != nil {
		empty()
	}
}

// rested ends the pause of a session that was fenced.
type rested struct{ session string }

// rest holds back what is said to a session for a while; false: the router closes.
func (r *router) rest(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	delete(r.routes, session) // it is still among the leaving
	r.sys.rt.SendAfter(r.sys.ward.fenced(sessionName(session)), r.sys.nurse, &rested{session})
	return true
}

// unload has a session stop if it is live.
func (r *router) unload(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pid := r.routes[session]; pid != nil && r.leaving[session] == nil {
		r.sys.root.Send(pid, quit{})
	}
}

// close stops all sessions; done is called once none is left. A session that
// waits for its restart cannot hear anything, so it is stopped without a word.
func (r *router) close(done func()) {
	down := r.sys.ward.close()
	r.mu.Lock()
	r.closing, r.empty = true, done
	for _, session := range sortedKeys(r.routes) {
		r.sys.root.Send(r.routes[session], quit{})
	}
	empty := r.takeEmpty()
	r.mu.Unlock()
	for _, pid := range down {
		r.sys.root.Stop(pid)
	}
	if empty != nil {
		empty()
	}
}

func (r *router) takeEmpty() (empty func()) {
	if r.closing && len(r.routes) == 0 {
		empty, r.empty = r.empty, nil
	}
	return empty
}

// live counts the activations.
func (r *router) live() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.routes)
}

// holds says whether a session is in memory.
func (r *router) holds(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[session] != nil
}
