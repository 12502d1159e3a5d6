// Package actorstest runs one session's machines by hand: a synchronous shell
// with a log in memory, no latency and a clock that moves when told.
//
// It decides nothing a machine decides; it honours the order of effects as the
// production shell does, and never appends, replies or fires out of that order.
// Vectors and the machines' own tests stand on it. Do runs everything to its
// end in the order of sending; Send and Deliver let a test choose the order of
// what travels at the same time.
package actorstest

import (
	"fmt"
	"slices"
	"strings"

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
	// Choose, when set, picks the mailbox to be served next, of n that hold
	// something. What one sender says to one receiver stays in order.
	Choose func(n int) int
	// Dies, when set, is asked after each append; true ends the process there,
	// with the batch recorded and nobody told.
	Dies func() bool
	// Delivered, when set, is called after each input.
	Delivered func()
	// Lost, when set, is called once the session knows of a part's death, and
	// after each restart: whoever waits must ask again.
	Lost func()
	// Answered and Told, when set, are called with each reply and each send.
	Answered func(actors.Reply)
	Told     func(actors.Send)

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
	lane string        // sender and receiver
	part actors.PartID // zero: the session
	env  actors.Envelope
}

func down(part actors.PartID, msg actors.Local) input {
	return input{"down " + part.Name(), part, actors.Envelope{Msg: msg}}
}

func up(part actors.PartID, msg actors.Local) input {
	return input{lane: "up " + part.Name(), env: actors.Envelope{Msg: msg}}
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
	if r.Lost != nil {
		r.Lost()
	}
	if r.Choose == nil {
		r.drain()
	}
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
	r.Send(from, msg)
	r.drain()
	return r.Replies[from][seen:]
}

// Send puts a message into the session's mailbox.
func (r *Rig) Send(from actors.Addr, msg any) {
	r.queue = append(r.queue, input{lane: "from " + from.Key, env: actors.Envelope{From: from, Msg: msg}})
}

// ToParts hands a message to every part of a kind.
func (r *Rig) ToParts(kind actors.PartKind, msg actors.Local) {
	for _, id := range r.Live(kind) {
		r.queue = append(r.queue, down(id, msg))
	}
	r.drain()
}

// Kill crashes the parts of a kind; the session hears of it as from the shell.
func (r *Rig) Kill(kind actors.PartKind) {
	for _, id := range r.Live(kind) {
		r.Crash(id)
	}
	r.drain()
}

// Crash ends one part and what was on its way to it. The word of its death is
// on its way to the session, and may overtake what the part said before.
func (r *Rig) Crash(id actors.PartID) {
	if _, live := r.parts[id]; live {
		r.drop(id)
		r.queue = append(r.queue, input{lane: "death of " + id.Name(), env: actors.Envelope{Msg: actors.PartDied{Part: id}}})
	}
}

func (r *Rig) drop(id actors.PartID) {
	delete(r.parts, id)
	r.timers = slices.DeleteFunc(r.timers, func(t timer) bool { return t.part == id })
	r.queue = slices.DeleteFunc(r.queue, func(in input) bool { return in.part == id })
}

// Live returns the parts of a kind that are alive, by name.
func (r *Rig) Live(kind actors.PartKind) []actors.PartID {
	var ids []actors.PartID
	for id := range r.parts {
		if id.Kind == kind {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b actors.PartID) int { return strings.Compare(a.Name(), b.Name()) })
	return ids
}

// Parts counts the live parts of a kind.
func (r *Rig) Parts(kind actors.PartKind) int { return len(r.Live(kind)) }

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
		r.fire(t)
		r.drain()
	}
	r.Now.Wall += end - r.Now.Mono
	r.Now.Mono = end
}

// Tick moves both clocks and puts what falls due into the mailboxes.
func (r *Rig) Tick(ms int64) {
	r.Now.Wall, r.Now.Mono = r.Now.Wall+ms, r.Now.Mono+ms
	for i := r.nextTimer(r.Now.Mono); i >= 0; i = r.nextTimer(r.Now.Mono) {
		t := r.timers[i]
		r.timers = slices.Delete(r.timers, i, i+1)
		r.fire(t)
	}
}

func (r *Rig) fire(t timer) {
	in := down(t.part, t.fired)
	in.lane = "timer of " + t.part.Name()
	r.queue = append(r.queue, in)
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
	for r.Deliver() {
	}
}

// Waiting counts what is in the mailboxes.
func (r *Rig) Waiting() int { return len(r.queue) }

// Deliver serves one mailbox; false when all are empty.
func (r *Rig) Deliver() bool {
	if len(r.queue) == 0 {
		return false
	}
	i := r.pick()
	in := r.queue[i]
	r.queue = slices.Delete(r.queue, i, i+1)
	m, live := r.parts[in.part]
	switch _, stops := in.env.Msg.(stop); {
	case in.part == actors.PartID{}:
		r.toSession(in.env)
		if _, death := in.env.Msg.(actors.PartDied); death && r.Lost != nil {
			r.Lost()
		}
	case stops:
		r.drop(in.part)
	case live:
		r.run(in.part, m.Step(r.Now, in.env))
	}
	if r.Delivered != nil {
		r.Delivered()
	}
	return true
}

// pick returns the index of an input that is the first of its lane.
func (r *Rig) pick() int {
	if r.Choose == nil {
		return 0
	}
	var heads []int
	seen := map[string]bool{}
	for i, in := range r.queue {
		if !seen[in.lane] {
			seen[in.lane] = true
			heads = append(heads, i)
		}
	}
	return heads[r.Choose(len(heads))]
}

func (r *Rig) toSession(env actors.Envelope) {
	if rec, ok := env.Msg.(actors.Record); ok && r.RefuseRecord != nil {
		if err := r.RefuseRecord(rec); err != nil {
			r.queue = append(r.queue, down(rec.Part, actors.Refused{Corr: rec.Corr, Err: err}))
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
		if r.Dies != nil && r.Dies() {
			r.Restart()
			return
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
		if r.Answered != nil {
			r.Answered(rep)
		}
	}
	for _, msg := range fx.Up {
		r.queue = append(r.queue, up(self, msg))
	}
	for _, p := range fx.Parts {
		switch {
		case p.Seed != nil:
			r.parts[p.Part] = p.Seed
			r.run(p.Part, p.Seed.Resume(r.Now))
		case p.Stop:
			r.queue = append(r.queue, input{"down " + p.Part.Name(), p.Part, actors.Envelope{Msg: stop{}}})
		default:
			r.queue = append(r.queue, down(p.Part, p.Msg))
		}
	}
	for _, s := range fx.Sends {
		r.Sends[s.To] = append(r.Sends[s.To], s.Msg)
		if r.Told != nil {
			r.Told(s)
		}
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
