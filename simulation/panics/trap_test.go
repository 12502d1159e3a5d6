package panics

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/sessionlog"
)

// moment is where in its turn a machine panics.
type moment string

const (
	before moment = "before its step"
	after  moment = "after its step"
	handed moment = "after its append was handed over"
	inFold moment = "in Apply"
)

// resuming is the message name of Resume, which is no message.
const resuming = "Resume"

// trap makes a machine panic the next time it comes by. same: only when whoever
// made the trap before it spring speaks again.
type trap struct {
	kind, msg string
	at        moment
	same      bool
}

func (t trap) String() string { return fmt.Sprintf("%s/%s panics %s", t.kind, t.msg, t.at) }

// planted is what a machine panics with.
type planted struct{ trap }

// traps spring one after another; what comes by is counted all the same.
type traps struct {
	mu      sync.Mutex
	left    []trap
	speaker actors.Addr // of the last that sprang
	counts  map[trap]int
	sprung  chan struct{} // closed by the first
	once    bool
	moved   chan struct{} // replaced whenever a count changes
}

func newTraps(list []trap) *traps {
	return &traps{left: list, counts: map[trap]int{}, sprung: make(chan struct{}), moved: make(chan struct{})}
}

// pass is called by every machine at every moment.
func (ts *traps) pass(kind, msg string, at moment, from actors.Addr) {
	ts.mu.Lock()
	here := trap{kind: kind, msg: msg, at: at}
	ts.counts[here]++
	var hit *trap
	if len(ts.left) > 0 {
		next := ts.left[0]
		if same := next.same; next.kind == kind && next.msg == msg && next.at == at && (!same || ts.speaker == from) {
			hit, ts.left, ts.speaker = &next, ts.left[1:], from
			if !ts.once {
				ts.once = true
				close(ts.sprung)
			}
		}
	}
	close(ts.moved)
	ts.moved = make(chan struct{})
	ts.mu.Unlock()
	if hit != nil {
		panic(planted{*hit})
	}
}

// seen is how often a step was begun and done, and a channel closed at the next
// move of any machine.
func (ts *traps) seen(kind, msg string) (begun, done int, moved <-chan struct{}) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.counts[trap{kind: kind, msg: msg, at: before}], ts.counts[trap{kind: kind, msg: msg, at: after}], ts.moved
}

// at is how often a point was passed.
func (ts *traps) at(kind, msg string, at moment) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.counts[trap{kind: kind, msg: msg, at: at}]
}

// next reports whether the next trap is set for a message.
func (ts *traps) next(kind, msg string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.left) > 0 && ts.left[0].kind == kind && ts.left[0].msg == msg
}

func (ts *traps) notSprung() []trap {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.left
}

// mined is a machine with traps around it. It changes nothing else.
type mined struct {
	actors.Machine
	kind    string
	session string // sessions: whose
	w       *world
	watch   bool // counts and panics; false for the bystander's session
	now     turn // sessions: what is being decided
}

type turn struct {
	msg  string
	from actors.Addr
}

func (m *mined) pass(t turn, at moment) {
	if m.watch {
		m.w.traps.pass(m.kind, t.msg, at, t.from)
	}
}

func (m *mined) Step(now actors.Now, in actors.Envelope) actors.Effects {
	t := turn{nameOf(in.Msg), speaker(in)}
	m.pass(t, before)
	fx := m.Machine.Step(now, in)
	m.pass(t, after)
	m.now = t
	m.w.disk.deciding(m)
	return m.mineParts(fx)
}

func (m *mined) Resume(now actors.Now) actors.Effects {
	t := turn{msg: resuming}
	m.pass(t, before)
	fx := m.Machine.Resume(now)
	m.pass(t, after)
	m.now = t
	m.w.disk.deciding(m)
	return m.mineParts(fx)
}

func (m *mined) Apply(ev sessionlog.Event) {
	m.pass(m.now, inFold)
	m.Machine.Apply(ev)
}

func (m *mined) mineParts(fx actors.Effects) actors.Effects {
	for i, p := range fx.Parts {
		if p.Seed != nil {
			fx.Parts[i].Seed = &mined{Machine: p.Seed, kind: string(p.Part.Kind), w: m.w, watch: m.watch}
		}
	}
	return fx
}

func nameOf(msg any) string {
	typ := reflect.TypeOf(msg)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ.Name()
}

// speaker is whoever waits for what becomes of an input, as far as it shows.
func speaker(in actors.Envelope) actors.Addr {
	if v := reflect.ValueOf(in.Msg); in.From.IsZero() && v.Kind() == reflect.Struct {
		if f := v.FieldByName("From"); f.IsValid() {
			return f.Interface().(actors.Addr)
		}
	}
	return in.From
}
