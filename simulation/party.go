package simulation

import (
	"iter"
	"runtime"
	"time"

	"github.com/parleyrun/parley/messages"
)

// party is an agent or a person: a program that runs as a coroutine of the
// world, and blocks by giving control back.
type party struct {
	w       *World
	plan    *PartyPlan
	name    string
	session string
	root    string
	owner   string
	host    int
	lives   int // programs so far: a crash ends one
	resume  func() (struct{}, bool)
	stop    func()
	waiting bool // the program has given control back
	woken   bool
	done    bool
	rpcs    []*rpc
	holds   map[string]*hold
	crashed bool
	off     bool     // nothing reaches it, and nothing that it says reaches anybody
	browser *browser // of a client

	// What survives a crash of an agent's process, as its own notes would: the
	// attempts of its calls, its turn.
	attempts map[string]string
	at       int // the act to go on with
	turn     int64
	step     int64
	token    string
	marked   []string          // for its turn, and not admitted yet
	subs     map[string]string // a person's submission ids, by call
}

func (w *World) newParty(plan *PartyPlan) *party {
	return &party{w: w, plan: plan, name: plan.Name, session: plan.Session, root: plan.Root, owner: plan.Owner, host: plan.Host,
		holds: map[string]*hold{}, attempts: map[string]string{}, subs: map[string]string{}}
}

func (p *party) isOff() bool { return p.off }

// rests: nothing more comes of it by itself.
func (p *party) rests() bool { return p.done && (p.browser == nil || p.browser.rests()) }

// begin starts the party's program, or a next one after a crash.
func (p *party) begin(program func(*Loop)) {
	p.lives++
	life := p.lives
	seq := func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil {
				panic(p.panicked(r))
			}
		}()
		program(&Loop{p: p, life: life, yield: yield})
	}
	resume, stop := iter.Pull(iter.Seq[struct{}](seq))
	p.resume, p.stop = resume, func() { unwinds(stop) }
	p.waiting, p.crashed = false, false
	p.w.soon(func() { p.run(life) })
}

// unwinds ends a program that waits. It ends by runtime.Goexit, which no recover
// of its own can stop, and with it ends the goroutine that has stopped it: one
// that is there for nothing else.
func unwinds(stop func()) {
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		stop()
	}()
	if panicked := <-ended; panicked != nil {
		panic(panicked)
	}
}

// run lets the program go on until it blocks again.
func (p *party) run(life int) {
	if life != p.lives || p.crashed {
		return
	}
	p.woken, p.waiting = false, false
	if _, more := p.resume(); !more {
		p.done = true
		return
	}
	p.waiting = true
}

// wake lets a program that waits look again.
func (p *party) wake() {
	if !p.waiting || p.woken || p.crashed || p.done {
		return
	}
	p.woken = true
	life := p.lives
	p.w.soon(func() { p.run(life) })
}

// crash ends the program: what it waited for is forgotten, its streams break.
func (p *party) crash() {
	if p.crashed || p.done {
		return
	}
	p.w.say(p.name, KindFault, "crashes")
	p.crashed = true
	stop := p.stop
	for _, r := range p.rpcs {
		r.said.Left = r.said.Left || !r.final
		r.leave()
	}
	p.rpcs = nil
	if p.browser != nil {
		p.browser.crash()
	}
	for _, c := range p.openHolds() {
		c.release(true)
	}
	p.holds = map[string]*hold{}
	stop()
}

// crashFor crashes, and lets the next program begin after a while.
func (p *party) crashFor(d time.Duration) {
	p.crash()
	p.w.after(d.Milliseconds(), func() {
		if p.crashed {
			p.begin(p.program)
		}
	})
}

func (p *party) openHolds() []*hold {
	var all []*hold
	for _, c := range p.holds {
		if !c.over {
			all = append(all, c)
		}
	}
	set := map[*hold]bool{}
	for _, c := range all {
		set[c] = true
	}
	return sortedHolds(set)
}

// start sends a command and returns at once.
func (p *party) start(cmd messages.Command) *rpc {
	p.w.refs++
	r := &rpc{party: p, id: p.w.refs, cmd: cmd, said: &Said{Party: p.name, Cmd: cmd, At: p.w.now, Step: p.w.steps}, onAnswer: p.wake}
	p.w.History.Said = append(p.w.History.Said, r.said)
	p.rpcs = append(p.rpcs, r)
	p.w.say(p.name, KindDo, p.w.brief(cmd))
	r.said.Line = p.w.trace.n
	r.send()
	return r
}

// Loop is what a program does, and waits for. Its methods block the program and
// nothing else.
type Loop struct {
	p     *party
	life  int
	yield func(struct{}) bool
	gone  bool // its process: it has crashed, or the world has ended
}

// lives ends the program if its process is gone: what it has deferred, or does
// after it has recovered from all it could, does not come into the world.
func (l *Loop) lives() {
	if l.gone {
		runtime.Goexit()
	}
}

// start sends a command of a program that lives.
func (l *Loop) start(cmd messages.Command) *rpc {
	l.lives()
	return l.p.start(cmd)
}

// block gives control back until the party is woken.
func (l *Loop) block() {
	l.lives()
	l.gone = !l.yield(struct{}{}) || l.life != l.p.lives
	l.lives()
}

// until blocks until a condition holds, or a time has passed; false: it passed.
func (l *Loop) until(holds func() bool, ms int64) bool {
	over := false
	if ms >= 0 {
		defer l.p.w.after(ms, func() { over = true; l.p.wake() }).cancel()
	}
	for !holds() {
		if over {
			return false
		}
		l.block()
	}
	return true
}

// sleep waits.
func (l *Loop) sleep(ms int64) { l.until(func() bool { return false }, ms) }

// do sends a command and waits for its answer; nil: none came in time.
func (l *Loop) do(cmd messages.Command) messages.Message {
	r := l.start(cmd)
	if !l.until(func() bool { return r.final }, 60_000) {
		r.said.Left = true
		r.leave()
		return nil
	}
	return r.answer
}
