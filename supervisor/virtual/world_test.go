package virtual

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// world is a World that draws what happens next from a seed and writes down
// every step.
type world struct {
	rng     *rand.Rand
	now     int64
	ids     int
	ready   []*Box
	jobs    []func()
	frames  []flight
	answers []func() // of the journal: in this order
	alarms  []*alarm // by time, and at the same time in the order of their setting
	hosts   map[string]*Host
	trace   strings.Builder
}

type flight struct {
	from, to string
	bytes    []byte
}

type alarm struct {
	at   int64
	fire func()
	off  bool
}

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 0)), now: 1_000_000, hosts: map[string]*Host{}}
}

func (w *world) Now(*Host) actors.Now      { return actors.Now{Wall: w.now, Mono: w.now - 1_000_000} }
func (w *world) Ready(b *Box)              { w.ready = append(w.ready, b) }
func (w *world) Work(_ *Host, work func()) { w.jobs = append(w.jobs, work) }
func (w *world) NewID(*Host) string        { w.ids++; return fmt.Sprint("id", w.ids) }
func (w *world) say(f string, args ...any) { fmt.Fprintf(&w.trace, f+"\n", args...) }
func (w *world) Send(h *Host, to string, frame []byte) {
	w.frames = append(w.frames, flight{h.Address(), to, frame})
}

func (w *world) After(_ *Host, d time.Duration, fire func()) func() {
	a := &alarm{at: w.now + d.Milliseconds(), fire: fire}
	i, _ := slices.BinarySearchFunc(w.alarms, a.at, func(b *alarm, at int64) int {
		if b.at <= at {
			return -1
		}
		return 1
	})
	w.alarms = slices.Insert(w.alarms, i, a)
	return func() { a.off = true }
}

// host starts a process under an address; frames for the address go to it.
func (w *world) host(address string) *Host {
	h := NewHost(w, address)
	w.hosts[address] = h
	return h
}

// step does one of the things that can happen now, and reports whether there was
// one.
func (w *world) step() bool {
	w.ready = slices.DeleteFunc(w.ready, func(b *Box) bool { return !b.Deliverable() })
	n := len(w.ready) + len(w.jobs) + len(w.frames) + min(len(w.answers), 1)
	if n == 0 {
		return false
	}
	i := w.rng.IntN(n)
	switch {
	case i < len(w.ready):
		b := w.ready[i]
		w.say("%d %s %s: %s", w.now, b.Host().Address(), b.Name(), told(b.Next()))
		b.Deliver()
		if !b.Deliverable() {
			w.ready = slices.Delete(w.ready, i, i+1)
		}
	case i < len(w.ready)+len(w.jobs):
		i -= len(w.ready)
		job := w.jobs[i]
		w.jobs = slices.Delete(w.jobs, i, i+1)
		w.say("%d work", w.now)
		job()
	case i == len(w.ready)+len(w.jobs)+len(w.frames):
		w.say("%d the journal answers", w.now)
		answer := w.answers[0]
		w.answers = w.answers[1:]
		answer()
	default:
		i -= len(w.ready) + len(w.jobs)
		f := w.frames[i]
		w.frames = slices.Delete(w.frames, i, i+1)
		w.say("%d %s -> %s: %x", w.now, f.from, f.to, f.bytes)
		if err := w.hosts[f.to].Receive(f.bytes); err != nil {
			panic(err)
		}
	}
	return true
}

// settle lets everything happen that can. Time stands still.
func (w *world) settle() {
	for w.step() {
	}
}

// advance lets time pass, timer by timer.
func (w *world) advance(d time.Duration) {
	end := w.now + d.Milliseconds()
	for w.settle(); len(w.alarms) > 0 && w.alarms[0].at <= end; w.settle() {
		a := w.alarms[0]
		w.alarms = w.alarms[1:]
		if !a.off {
			w.now = a.at
			w.say("%d timer", w.now)
			a.fire()
		}
	}
	w.now = end
}

// told is a message as the trace shows it.
func told(msg any) string {
	switch m := msg.(type) {
	case *actors.Envelope:
		return fmt.Sprintf("%s to %s: %s", m.From, m.To, told(m.Msg))
	case actors.Local:
		return fmt.Sprintf("%T", m)
	case messages.Message:
		bytes, err := canonical.Marshal(proto.Message(m))
		return fmt.Sprintf("%T %x %v", m, bytes, err)
	default:
		return fmt.Sprintf("%T", m)
	}
}
