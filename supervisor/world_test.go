package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// world is a Runtime on one goroutine with a virtual clock: nothing happens
// unless the test says settle or advance.
type world struct {
	engine *actor.ActorSystem
	now    int64
	ids    int
	run    []*worldBox
	jobs   []func()
	alarms []*alarm
}

type alarm struct {
	at  int64
	to  *actor.PID
	msg any
	off bool
}

// newEngine makes actor systems that log nothing. One takes milliseconds to make.
func newEngine() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

func newWorld() *world { return &world{engine: newEngine(), now: 1_000_000} }

func (w *world) Engine() *actor.ActorSystem { return w.engine }
func (w *world) Now() actors.Now            { return actors.Now{Wall: w.now, Mono: w.now} }
func (w *world) Go(work func())             { w.jobs = append(w.jobs, work) }
func (w *world) NewID() string              { w.ids++; return fmt.Sprint("id", w.ids) }

func (w *world) Props(p actor.Producer, opts ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(p, append(opts, actor.WithMailbox(func() actor.Mailbox { return &worldBox{w: w} }))...)
}

func (w *world) SendAfter(d time.Duration, to *actor.PID, msg any) func() {
	a := &alarm{at: w.now + d.Milliseconds(), to: to, msg: msg}
	w.alarms = append(w.alarms, a)
	return func() { a.off = true }
}

// settle delivers until nobody has anything to do. Time stands still.
func (w *world) settle() {
	for len(w.run) > 0 || len(w.jobs) > 0 {
		if len(w.run) > 0 {
			box := w.run[0]
			w.run = w.run[1:]
			box.queued = false
			box.deliver()
			box.wake()
			continue
		}
		job := w.jobs[0]
		w.jobs = w.jobs[1:]
		job()
	}
}

// advance lets time pass, timer by timer.
func (w *world) advance(d time.Duration) {
	w.settle()
	end := w.now + d.Milliseconds()
	for {
		w.alarms = slices.DeleteFunc(w.alarms, func(a *alarm) bool { return a.off })
		slices.SortStableFunc(w.alarms, func(a, b *alarm) int { return int(a.at - b.at) })
		if len(w.alarms) == 0 || w.alarms[0].at > end {
			break
		}
		a := w.alarms[0]
		w.alarms = w.alarms[1:]
		w.now = max(w.now, a.at)
		w.engine.Root.Send(a.to, a.msg)
		w.settle()
	}
	w.now = end
}

// worldBox is a mailbox that delivers one message when the world says so.
type worldBox struct {
	w                 *world
	system, user      []any
	invoker           actor.MessageInvoker
	queued, suspended bool
}

func (b *worldBox) PostUserMessage(m any)   { b.user = append(b.user, m); b.wake() }
func (b *worldBox) PostSystemMessage(m any) { b.system = append(b.system, m); b.wake() }
func (b *worldBox) Start()                  {}
func (b *worldBox) UserMessageCount() int   { return len(b.user) }
func (b *worldBox) RegisterHandlers(i actor.MessageInvoker, _ actor.Dispatcher) {
	b.invoker = i
}

func (b *worldBox) wake() {
	if !b.queued && (len(b.system) > 0 || !b.suspended && len(b.user) > 0) {
		b.queued = true
		b.w.run = append(b.w.run, b)
	}
}

func (b *worldBox) deliver() {
	var msg any
	defer func() {
		if r := recover(); r != nil {
			b.invoker.EscalateFailure(r, msg)
		}
	}()
	if len(b.system) > 0 {
		msg, b.system = b.system[0], b.system[1:]
		switch msg.(type) {
		case *actor.SuspendMailbox:
			b.suspended = true
		case *actor.ResumeMailbox:
			b.suspended = false
		default:
			b.invoker.InvokeSystemMessage(msg)
		}
		return
	}
	msg, b.user = b.user[0], b.user[1:]
	b.invoker.InvokeUserMessage(msg)
}

// disk is a memory journal whose calls can fail and whose answers can be held.
type disk struct {
	*memory.Journal
	failOpen   func(session string) error
	failAppend func(b journal.Batch) error // fails before the commit
	lose       func(b journal.Batch) error // fails after it
	due        func(before int64, limit int) ([]string, int64, error)
	opens      []string
	batches    []journal.Batch
	paused     bool
	held       []func()
	later      func(func())
}

func newDisk(w *world) *disk {
	d := &disk{later: w.Go}
	d.Journal = memory.New(d.hold)
	return d
}

func (d *disk) hold(callback func()) {
	if d.paused {
		d.held = append(d.held, callback)
		return
	}
	d.later(callback)
}

// release lets the answers go that were held, and holds what comes after them.
func (d *disk) release() {
	d.resume()
	d.paused = true
}

// resume lets the answers go that were held.
func (d *disk) resume() {
	d.paused = false
	for _, callback := range d.held {
		d.later(callback)
	}
	d.held = nil
}

func (d *disk) Open(session string, done func(journal.Opened, error)) {
	d.opens = append(d.opens, session)
	if d.failOpen != nil {
		if err := d.failOpen(session); err != nil {
			d.hold(func() { done(journal.Opened{}, err) })
			return
		}
	}
	d.Journal.Open(session, done)
}

func (d *disk) Append(b journal.Batch, done func(journal.Appended, error)) {
	d.batches = append(d.batches, b)
	if d.failAppend != nil {
		if err := d.failAppend(b); err != nil {
			d.hold(func() { done(journal.Appended{}, err) })
			return
		}
	}
	if d.lose != nil {
		if err := d.lose(b); err != nil {
			d.Journal.Append(b, func(journal.Appended, error) { done(journal.Appended{}, err) })
			return
		}
	}
	d.Journal.Append(b, done)
}

func (d *disk) Due(ctx context.Context, before int64, limit int) ([]string, int64, error) {
	if d.due != nil {
		return d.due(before, limit)
	}
	return d.Journal.Due(ctx, before, limit)
}

// once makes a failure that happens a number of times.
func once[T any](times int, err error) func(T) error {
	return func(T) error {
		if times--; times >= 0 {
			return err
		}
		return nil
	}
}

var errDisk = errors.New("the disk is on fire")

// node is a System in a world, with what its machines did.
type node struct {
	*System
	t    *testing.T
	w    *world
	disk *disk
	logs *logBook
	seen []string // what the machines saw and said, in order
	main func(m *testSession, in actors.Envelope) (actors.Effects, bool)
}

// newNode starts one; change may adjust its configuration.
func newNode(t *testing.T, change ...func(*Config, *node)) *node {
	t.Helper()
	w := newWorld()
	n := &node{t: t, w: w, disk: newDisk(w), logs: &logBook{}}
	cfg := Config{
		Node: "n", Runtime: w, Journal: n.disk, SweepEvery: -1, Logger: slog.New(n.logs),
		NewSession: func(id string, o journal.Opened) (actors.Machine, error) {
			return newTestSession(n.note, n, id, o), nil
		},
		NewDoor: func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 0) },
		NewClaim: func(self actors.Addr, session, call string) actors.Machine {
			return actors.NewClaim(self, session, call, 0)
		},
	}
	for _, c := range change {
		c(&cfg, n)
	}
	sys, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.System = sys
	w.settle()
	return n
}

func (n *node) note(format string, args ...any) {
	n.seen = append(n.seen, fmt.Sprintf(format, args...))
}

// took returns what was seen since the last call.
func (n *node) took() string {
	out := strings.Join(n.seen, " ")
	n.seen = nil
	return out
}

// say sends a command and returns where its answers arrive.
func (n *node) say(session, text string) *answers {
	a := &answers{}
	a.cancel = n.Call(steer(session, text), func(m messages.Message) { a.got = append(a.got, m) })
	return a
}

func steer(session, text string) *messages.SteerRequest {
	return &messages.SteerRequest{Session: session, Text: text}
}

type answers struct {
	got    []messages.Message
	cancel func()
}

// String is the answers as codes, or as what the test session replied.
func (a *answers) String() string {
	var out []string
	for _, m := range a.got {
		out = append(out, answerText(m))
	}
	return strings.Join(out, " ")
}

func answerText(m messages.Message) string {
	switch m := m.(type) {
	case *messages.Refusal:
		return m.GetCode()
	case *messages.SteerResponse:
		return m.GetMessageId()
	}
	return fmt.Sprintf("%T", m)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// testSession is a small session machine. A steered text is its program: words
// in order, each with its effect.
//
//	log x   append x, reply how many there are     proof   reply after an empty append
//	no      refuse, after a proof                  boom    panic
//	bye     reply and passivate                    seed    spawn a part and attach the asker
//	part x  tell the part x                        stop    stop the part, reply
//	tick    start a timer of 100 ms                tock    stop it
type testSession struct {
	note   func(string, ...any)
	node   *node
	id     string
	exists bool
	log    []string
	parts  uint32
	gen    uint32
}

func newTestSession(note func(string, ...any), n *node, id string, o journal.Opened) *testSession {
	m := &testSession{note: note, node: n, id: id, exists: o.Header != nil}
	for _, ev := range o.Events {
		m.Apply(ev)
	}
	note("open:%s@%d/%d", id, o.Epoch, len(m.log))
	return m
}

func (m *testSession) Apply(ev sessionlog.Event) {
	m.exists = true
	m.log = append(m.log, strings.Trim(string(ev.Data), `"`))
}

func (m *testSession) Resume(actors.Now) actors.Effects { return actors.Effects{} }

func (m *testSession) part() actors.PartID {
	return actors.PartID{Kind: actors.WaitPart, Call: "c/1", Incarnation: m.parts}
}

func (m *testSession) Step(_ actors.Now, in actors.Envelope) actors.Effects {
	if m.node != nil && m.node.main != nil {
		if fx, done := m.node.main(m, in); done {
			return fx
		}
	}
	switch msg := in.Msg.(type) {
	case *messages.SteerRequest:
		m.note("%s", msg.GetText())
		return m.program(in.From, msg)
	case actors.PartDied:
		m.note("died:%s", msg.Part.Name())
	case actors.Fired:
		m.note("fired:%s/%d", msg.Name, msg.Gen)
	case actors.Quiet:
		m.note("quiet:%s", msg.Part.Name())
	case *messages.Wake:
		m.note("wake:%s", m.id)
	case *messages.ClaimOpen:
		m.note("claim:%s", msg.GetCallId())
		if msg.GetCallId() == "open" {
			return actors.Effects{Replies: []actors.Reply{{To: in.From, Msg: &messages.ClaimFrame{RemainingMs: 7}}}}
		}
		return actors.Effects{Replies: []actors.Reply{{To: in.From, Msg: &messages.ClaimEnd{Reason: "unknown"}}}}
	case *messages.ClaimRelease:
		m.note("release:%s/%v", msg.GetCallId(), msg.GetLost())
	}
	return actors.Effects{}
}

func (m *testSession) program(from actors.Addr, req *messages.SteerRequest) actors.Effects {
	var fx actors.Effects
	reply := func(text string) {
		fx.Replies = append(fx.Replies, actors.Reply{To: from, Msg: &messages.SteerResponse{MessageId: text}})
	}
	word, arg, _ := strings.Cut(req.GetText(), " ")
	switch word {
	case "log":
		if !m.exists {
			fx.Header = &sessionlog.Header{Version: sessionlog.V3, ID: m.id}
		}
		fx.Append = []sessionlog.Event{sessionlog.NewEvent("parley/test", arg).Ours()}
		reply(fmt.Sprintf("%s=%d", arg, len(m.log)+1))
	case "proof":
		fx.Proof = true
		reply("proved")
	case "no":
		fx.Proof = true
		fx.Replies = []actors.Reply{{To: from, Msg: messages.Refuse(messages.NotAnswerable, "no").Wire()}}
	case "boom":
		panic("boom in " + m.id)
	case "bye":
		reply("bye")
		fx.Passivate = true
	case "seed":
		m.parts++
		fx.Parts = []actors.ToPart{
			{Part: m.part(), Seed: &testPart{note: m.note, id: m.part()}},
			{Part: m.part(), Msg: actors.AddAsker{From: from}},
		}
	case "part":
		fx.Parts = []actors.ToPart{{Part: m.part(), Msg: actors.WaitDismiss{From: from, Req: &messages.DismissRequest{By: arg}}}}
	case "stop":
		fx.Parts = []actors.ToPart{{Part: m.part(), Stop: true}}
		reply("stopped")
	case "tick":
		m.gen++
		fx.Timers = []actors.Timer{{Name: "t", After: 100, Gen: m.gen}}
		reply(fmt.Sprint("tick", m.gen))
	case "tock":
		fx.Timers = []actors.Timer{{Name: "t", After: -1}}
		reply("tock")
	default:
		reply(word)
	}
	return fx
}

// testPart is a small part: AddAsker waits, WaitDismiss says what to do.
type testPart struct {
	note   func(string, ...any)
	id     actors.PartID
	asker  actors.Addr
	resume actors.Effects
}

func (p *testPart) Apply(sessionlog.Event) { panic("a part has no log") }

func (p *testPart) Resume(actors.Now) actors.Effects {
	p.note("resume:%s", p.id.Name())
	return p.resume
}

func (p *testPart) Step(_ actors.Now, in actors.Envelope) actors.Effects {
	switch m := in.Msg.(type) {
	case actors.AddAsker:
		p.asker = m.From
	case actors.Fired:
		p.note("part-fired:%s", m.Name)
		return actors.Effects{Up: []actors.Local{actors.Quiet{Part: p.id}}}
	case actors.WaitDismiss:
		p.note("part:%s", m.Req.GetBy())
		switch m.Req.GetBy() {
		case "boom":
			panic("boom in a part")
		case "up":
			return actors.Effects{Up: []actors.Local{actors.Quiet{Part: p.id}}, Replies: []actors.Reply{replyTo(m.From, "up")}}
		case "answer":
			return actors.Effects{Replies: []actors.Reply{replyTo(p.asker, "answered"), replyTo(m.From, "told")}}
		case "append":
			return actors.Effects{Proof: true}
		}
		return actors.Effects{Replies: []actors.Reply{replyTo(m.From, m.Req.GetBy())}}
	}
	return actors.Effects{}
}

func replyTo(to actors.Addr, text string) actors.Reply {
	return actors.Reply{To: to, Msg: &messages.SteerResponse{MessageId: text}}
}

// logBook is a handler that keeps its records.
type logBook struct {
	mu    sync.Mutex
	lines []slog.Record
}

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logBook) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *logBook) WithGroup(string) slog.Handler            { return b }
func (b *logBook) Handle(_ context.Context, r slog.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, r.Clone())
	return nil
}

// of returns the lines with this message, each as "LEVEL key=value …" of the
// keys asked for.
func (b *logBook) of(msg string, keys ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, r := range b.lines {
		if r.Message != msg {
			continue
		}
		line := r.Level.String()
		r.Attrs(func(a slog.Attr) bool {
			if slices.Contains(keys, a.Key) {
				line += " " + a.Key + "=" + a.Value.String()
			}
			return true
		})
		out = append(out, line)
	}
	return out
}

// arrive lets a message come in from another node.
func (n *node) arrive(to, from actors.Addr, msg messages.Message) {
	n.engine.Root.Send(n.peers, messages.Wrap(messages.Party(to), messages.Party(from), msg))
}
