package panics

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/supervisor"
)

const (
	mainSession = "s"
	calmSession = "calm" // nothing panics here: it must not notice
)

// repeatMS is when the door asks again. It has to come by like everything else: a
// slow session is slower than that, and nothing in the day waits longer than one.
const repeatMS = 10_000

// patience bounds every wait in real time: what takes longer waits for ever.
const patience = 20 * time.Second

// world is one node with traps, and the client that talks to it.
type world struct {
	t     *testing.T
	ctx   context.Context
	sys   *supervisor.System
	time  timeline
	disk  *disk
	traps *traps

	mu      sync.Mutex
	told    []told // the ledger
	claimed []*held
	closing bool
	ids     int
}

// told is one line of the ledger: what a caller was told, and for what.
type told struct {
	cmd messages.Command
	msg messages.Message
}

func newWorld(t *testing.T, passivateAfter time.Duration, list []trap) *world {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	rt := supervisor.NewRealRuntime(quiet)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, time: newClock(rt, rt.Engine().Root.Send), disk: newDisk(), traps: newTraps(list)}
	rules := &actors.Rules{
		Mode: messages.Mode_MODE_TIMED, DefaultTimeoutS: 120, ClaimGraceMS: 1000, PassivateAfterMS: passivateAfter.Milliseconds(),
		OpenCallsMax: actors.OpenCallsMaxDefault, QueueMax: actors.QueueMaxDefault, NewID: w.newID,
	}
	mine := func(kind string, m actors.Machine) *mined { return &mined{Machine: m, kind: kind, w: w, watch: true} }
	sys, err := supervisor.Start(supervisor.Config{
		Node: "n", Runtime: w.time, Journal: w.disk, Logger: quiet,
		NewSession: func(session string, o journal.Opened) (actors.Machine, error) {
			s, err := actors.NewSession(rules, session, o.Header, o.Events)
			m := mine("session", s)
			m.session, m.watch = session, session == mainSession
			return m, err
		},
		NewDoor: func(self actors.Addr) actors.Machine { return mine("door", actors.NewDoor(self.Key, repeatMS)) },
		NewClaim: func(self actors.Addr, session, call string) actors.Machine {
			return mine("claim", actors.NewClaim(self, session, call, 0))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.sys = sys
	return w
}

func (w *world) newID(kind string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprint(kind, "-", w.ids)
}

func (w *world) note(cmd messages.Command, msg messages.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, told{cmd, msg})
}

func (w *world) isClosing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing
}

// close stops the node; whoever still waits must be told.
func (w *world) close() {
	w.t.Helper()
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	if err := w.sys.Close(w.ctx); err != nil {
		w.t.Error(err)
	}
	if s := w.sys.Snapshot(); s.Sessions+s.Callers != 0 {
		w.t.Errorf("after Close there are left: %+v", s)
	}
	// Parts and claims have been told to stop, and do so on their own.
	w.until(func() bool { s := w.sys.Snapshot(); return s.Parts+s.Claims == 0 })
}

// triesMax bounds how often a client sends one command.
const triesMax = 12

// call is one command on its way, sent again under the same ids when the node
// says that it may be, and by a stubborn client even after BUG.
type call struct {
	w       *world
	cmd     messages.Command
	waiting chan *messages.Waiting
	final   chan messages.Message

	mu        sync.Mutex
	tries     int
	cancelled bool
	stop      func()
}

func (w *world) start(cmd messages.Command) *call {
	c := &call{w: w, cmd: cmd, waiting: make(chan *messages.Waiting, 1), final: make(chan messages.Message, 1)}
	c.send()
	return c
}

func (c *call) send() {
	stop := c.w.sys.Call(c.cmd, c.heard)
	c.mu.Lock()
	c.stop = stop
	cancelled := c.cancelled
	c.mu.Unlock()
	if cancelled {
		stop()
	}
}

func (c *call) heard(msg messages.Message) {
	c.w.note(c.cmd, msg)
	if ask, ok := msg.(*messages.AskResponse); ok && ask.GetWaiting() != nil {
		select {
		case c.waiting <- ask.GetWaiting():
		default:
		}
		return
	}
	c.mu.Lock()
	c.tries++
	again := worthAnother(msg) && c.tries < triesMax && !c.w.isClosing()
	c.mu.Unlock()
	if again {
		c.send()
		return
	}
	c.final <- msg
}

func worthAnother(msg messages.Message) bool {
	code := codeOf(msg)
	return code == messages.Unavailable || code == messages.Fenced || code == messages.Bug
}

func codeOf(msg messages.Message) messages.Code {
	if no, ok := msg.(*messages.Refusal); ok {
		return messages.Code(no.GetCode())
	}
	return ""
}

// cancel: the caller goes away. What it asked stays asked.
func (c *call) cancel() {
	c.mu.Lock()
	c.cancelled = true
	stop := c.stop
	c.mu.Unlock()
	stop()
}

// open waits until the question is durable, or over.
func (c *call) open() {
	c.w.t.Helper()
	select {
	case <-c.waiting:
	case msg := <-c.final:
		c.final <- msg
	case <-c.w.ctx.Done():
		c.w.t.Fatalf("nobody said that the question is durable: %v", c.cmd)
	}
}

// answer waits for the last word. No time passes meanwhile.
func (c *call) answer() messages.Message {
	c.w.t.Helper()
	select {
	case msg := <-c.final:
		return msg
	case <-c.w.ctx.Done():
		c.w.t.Fatalf("a caller waits for ever: %T %v", c.cmd, c.cmd)
	}
	return nil
}

// result waits for the last word and lets time pass.
func (c *call) result() messages.Message {
	c.w.t.Helper()
	for {
		c.w.time.Advance(step)
		select {
		case msg := <-c.final:
			return msg
		case <-c.w.time.Armed():
		case <-c.w.ctx.Done():
			c.w.t.Fatalf("a caller waits for ever: %T %v", c.cmd, c.cmd)
		}
	}
}

// step is how much time passes at once: more than a question waits here, less
// than a claim waits for its session.
const step = 8 * time.Second

func (w *world) call(cmd messages.Command) messages.Message {
	w.t.Helper()
	return w.start(cmd).answer()
}

// held is a client's hold on a wait: opened again when it was lost.
type held struct {
	w               *world
	session, callID string
	frame           chan struct{}
	over            chan string // why it ended for good

	mu       sync.Mutex
	claim    *supervisor.Claim
	tries    int
	released bool
}

func (w *world) claim(session, callID string) *held {
	h := &held{w: w, session: session, callID: callID, frame: make(chan struct{}, 1), over: make(chan string, 1)}
	w.mu.Lock()
	w.claimed = append(w.claimed, h)
	w.mu.Unlock()
	h.open()
	return h
}

func (h *held) open() {
	claim := h.w.sys.OpenClaim(h.session, h.callID, h)
	h.mu.Lock()
	h.claim = claim
	released := h.released
	h.mu.Unlock()
	if released {
		claim.Release(false)
	}
}

func (h *held) Frame(int64, bool) {
	select {
	case h.frame <- struct{}{}:
	default:
	}
}

func (h *held) End(reason string, retryable bool) {
	h.mu.Lock()
	h.tries++
	again := retryable && !h.released && h.tries < triesMax && !h.w.isClosing()
	h.mu.Unlock()
	if again {
		h.open()
		return
	}
	h.over <- reason
}

// held waits until the claim has its frame, or is over.
func (h *held) held() {
	h.w.t.Helper()
	select {
	case <-h.frame:
	case why := <-h.over:
		h.over <- why
	case <-h.w.ctx.Done():
		h.w.t.Fatalf("a claim on %s waits for ever", h.callID)
	}
}

// ended waits until the claim is over, and lets time pass.
func (h *held) ended() {
	h.w.t.Helper()
	for {
		select {
		case why := <-h.over:
			h.over <- why
			return
		case <-h.w.time.Armed():
			h.w.time.Advance(step)
		case <-h.w.ctx.Done():
			h.w.t.Fatalf("the claim on %s never ends", h.callID)
		}
	}
}

func (h *held) release(lost bool) {
	h.mu.Lock()
	h.released = true
	claim := h.claim
	h.mu.Unlock()
	claim.Release(lost)
}

func (h *held) id() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claim.ID()
}

// broken reports whether a trap has sprung.
func (w *world) broken() bool {
	select {
	case <-w.traps.sprung:
		return true
	default:
		return false
	}
}

// hope waits until a machine has taken a message once more than `already`. Once
// a trap has sprung the order of things is open, and it waits only for what the
// next trap waits for. On every sign so much time passes.
func (w *world) hope(kind, msg string, already int, sign <-chan struct{}, pass time.Duration) {
	w.t.Helper()
	for {
		begun, done, moved := w.traps.seen(kind, msg)
		if w.broken() && !w.traps.next(kind, msg) || begun > already && (done == begun || w.broken()) {
			return
		}
		select {
		case <-moved:
		case <-sign:
			w.time.Advance(pass)
		case <-w.ctx.Done():
			w.t.Fatalf("%s never took a %s", kind, msg)
		}
	}
}

// unloaded lets time pass until no session is in memory. Once a trap has sprung
// somebody may be left who keeps one there, and it waits only for a trap.
func (w *world) unloaded() {
	w.t.Helper()
	w.until(func() bool {
		select {
		case <-w.time.Armed():
			w.time.Advance(passivateLate)
		default:
		}
		return w.sys.Snapshot().Sessions == 0 || w.broken() && !w.traps.next("session", "Fired") && !w.traps.next("session", "Wake")
	})
}

// until looks again and again at what gives no sign when it happens.
func (w *world) until(done func() bool) {
	w.t.Helper()
	for tick := time.NewTicker(time.Millisecond); !done(); {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("it never came to rest: %+v", w.sys.Snapshot())
		}
	}
}

func (w *world) count(kind, msg string) int {
	begun, _, _ := w.traps.seen(kind, msg)
	return begun
}
