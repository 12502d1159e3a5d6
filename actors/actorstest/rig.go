// Package actorstest runs one session's machines by hand: a synchronous shell
// with a log in memory, no latency and a clock that moves when told.
//
// It decides nothing a machine decides; it honours the order of effects as the
// production shell does, and never appends, replies or fires out of that order.
// Vectors and the machines' own tests stand on it.
package actorstest

import (
	"fmt"
	"slices"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Rig is one session with its parts.
type Rig struct {
	Rules   *actors.Rules
	ID      string
	Now     actors.Now
	Session *actors.Session
	// Log is what was appended, Header its first line; Rows the journal's index.
	Header *sessionlog.Header
	Log    []sessionlog.Event
	Rows   map[string]sessionlog.Row
	// Replies and Sends are kept by whom they were addressed to.
	Replies map[actors.Addr][]messages.Message
	Sends   map[actors.Addr][]messages.Message
	// Proofs counts the empty appends.
	Proofs int
	// RefuseRecord, when set, may refuse what a part asks the session to record.
	RefuseRecord func(actors.Record) *messages.Error
	// Passivated is set once the session asked to be unloaded.
	Passivated bool

	parts  map[actors.PartID]actors.Machine
	timers []timer
	queue  []input
}

type timer struct {
	part  actors.PartID // zero: the session
	fired actors.Fired
	at    int64
}

type input struct {
	part actors.PartID // zero: the session
	env  actors.Envelope
}

// DefaultRules are faithful to the source: no grace, the first expiry decides.
// Ids count per kind.
func DefaultRules() *actors.Rules {
	n := map[string]int{}
	return &actors.Rules{
		Mode: messages.Mode_MODE_TIMED, DefaultTimeoutS: 120, FirstExpiryWins: true,
		OpenCallsMax: actors.OpenCallsMaxDefault, QueueMax: actors.QueueMaxDefault,
		NewID: func(kind string) string { n[kind]++; return fmt.Sprintf("%s-%d", kind, n[kind]) },
	}
}

// New makes a rig of a session that does not exist yet.
func New(rules *actors.Rules) *Rig {
	r := &Rig{Rules: rules, ID: "s1", Now: actors.Now{Wall: 1_000_000},
		Replies: map[actors.Addr][]messages.Message{}, Sends: map[actors.Addr][]messages.Message{},
		Rows: map[string]sessionlog.Row{}}
	r.Restart()
	return r
}

// Restart throws away everything volatile and folds the log again.
func (r *Rig) Restart() {
	s, err := actors.NewSession(r.Rules, r.ID, r.Header, r.Log)
	if err != nil {
		panic(err)
	}
	r.Session, r.parts, r.timers, r.queue = s, map[actors.PartID]actors.Machine{}, nil, nil
	r.Passivated = false
	r.run(actors.PartID{}, s.Resume(r.Now))
	r.drain()
}

// Create makes the session exist without anybody attached.
func (r *Rig) Create(h sessionlog.Header) { r.Header = &h; r.Restart() }

// Append puts an event into the log unchecked, as a store of old would hold it.
func (r *Rig) Append(ev sessionlog.Event) {
	r.Log = append(r.Log, ev)
	r.Session.Apply(ev)
}

// Do sends a message and returns what came back to its sender.
func (r *Rig) Do(from actors.Addr, msg any) []messages.Message {
	seen := len(r.Replies[from])
	r.queue = append(r.queue, input{env: actors.Envelope{From: from, Msg: msg}})
	r.drain()
	return r.Replies[from][seen:]
}

// ToParts hands a message to every part of a kind.
func (r *Rig) ToParts(kind actors.PartKind, msg actors.Local) {
	for id := range r.parts {
		if id.Kind == kind {
			r.queue = append(r.queue, input{id, actors.Envelope{Msg: msg}})
		}
	}
	r.drain()
}

// Kill crashes the parts of a kind; the session hears of it as from the shell.
func (r *Rig) Kill(kind actors.PartKind) {
	for id := range r.parts {
		if id.Kind == kind {
			delete(r.parts, id)
			r.timers = slices.DeleteFunc(r.timers, func(t timer) bool { return t.part == id })
			r.queue = append(r.queue, input{env: actors.Envelope{Msg: actors.PartDied{Part: id}}})
		}
	}
	r.drain()
}

// Parts counts the live parts of a kind.
func (r *Rig) Parts(kind actors.PartKind) int {
	n := 0
	for id := range r.parts {
		if id.Kind == kind {
			n++
		}
	}
	return n
}

// Timers counts the running timers of parts.
func (r *Rig) Timers() int {
	n := 0
	for _, t := range r.timers {
		if t.part != (actors.PartID{}) {
			n++
		}
	}
	return n
}

// Advance moves both clocks, firing what falls due on the way.
func (r *Rig) Advance(ms int64) {
	end := r.Now.Mono + ms
	for {
		i := r.nextTimer(end)
		if i < 0 {
			break
		}
		t := r.timers[i]
		r.timers = slices.Delete(r.timers, i, i+1)
		if step := t.at - r.Now.Mono; step > 0 {
			r.Now.Mono += step
			r.Now.Wall += step
		}
		r.queue = append(r.queue, input{t.part, actors.Envelope{Msg: t.fired}})
		r.drain()
	}
	r.Now.Wall += end - r.Now.Mono
	r.Now.Mono = end
}

// Jump moves the wall clock only.
func (r *Rig) Jump(ms int64) { r.Now.Wall += ms }

func (r *Rig) nextTimer(end int64) int {
	best := -1
	for i, t := range r.timers {
		if t.at <= end && (best < 0 || t.at < r.timers[best].at) {
			best = i
		}
	}
	return best
}

func (r *Rig) drain() {
	for len(r.queue) > 0 {
		in := r.queue[0]
		r.queue = r.queue[1:]
		if in.part == (actors.PartID{}) {
			r.toSession(in.env)
			continue
		}
		m, live := r.parts[in.part]
		if _, stops := in.env.Msg.(stop); stops {
			delete(r.parts, in.part)
			r.timers = slices.DeleteFunc(r.timers, func(t timer) bool { return t.part == in.part })
		} else if live {
			r.run(in.part, m.Step(r.Now, in.env))
		}
	}
}

func (r *Rig) toSession(env actors.Envelope) {
	if rec, ok := env.Msg.(actors.Record); ok && r.RefuseRecord != nil {
		if err := r.RefuseRecord(rec); err != nil {
			r.queue = append(r.queue, input{rec.Part, actors.Envelope{Msg: actors.Refused{Corr: rec.Corr, Err: err}}})
			return
		}
	}
	fx := r.Session.Step(r.Now, env)
	if len(fx.Append) > 0 {
		if fx.Header != nil {
			r.Header = fx.Header
		}
		for _, ev := range fx.Append {
			r.Append(ev)
		}
		for _, c := range fx.Index {
			if c.Remove {
				delete(r.Rows, c.Row.CallID)
			} else {
				r.Rows[c.Row.CallID] = c.Row
			}
		}
	} else if fx.Proof {
		r.Proofs++
	}
	r.run(actors.PartID{}, fx)
}

// run releases effects in their order.
func (r *Rig) run(self actors.PartID, fx actors.Effects) {
	for _, rep := range fx.Replies {
		r.Replies[rep.To] = append(r.Replies[rep.To], rep.Msg)
	}
	for _, up := range fx.Up {
		r.queue = append(r.queue, input{env: actors.Envelope{Msg: up}})
	}
	for _, p := range fx.Parts {
		switch {
		case p.Seed != nil:
			r.parts[p.Part] = p.Seed
			r.run(p.Part, p.Seed.Resume(r.Now))
		case p.Stop:
			r.queue = append(r.queue, input{p.Part, actors.Envelope{Msg: stop{}}})
		default:
			r.queue = append(r.queue, input{p.Part, actors.Envelope{Msg: p.Msg}})
		}
	}
	for _, s := range fx.Sends {
		r.Sends[s.To] = append(r.Sends[s.To], s.Msg)
	}
	for _, t := range fx.Timers {
		r.timers = slices.DeleteFunc(r.timers, func(o timer) bool { return o.part == self && o.fired.Name == t.Name })
		if t.After >= 0 {
			r.timers = append(r.timers, timer{self, actors.Fired{Name: t.Name, Gen: t.Gen}, r.Now.Mono + t.After})
		}
	}
	if fx.Passivate {
		r.Passivated = true
	}
}

// stop ends a part after the messages before it.
type stop struct{}
