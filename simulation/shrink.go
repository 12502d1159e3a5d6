package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// ShrinkOptions say what a plan is cut down to, and how long that may take.
type ShrinkOptions struct {
	// Invariant is the one that must stay broken. Empty: the first that is.
	Invariant string
	// Steps bounds the work, in steps of worlds, so that the result is the
	// same on every machine. 0: some tens of seconds.
	Steps int
	// Run is what every run is given: a check. What a program remembers outside
	// of itself would be there in the next run, so that one with programs needs
	// Fresh.
	Run Options
	// Fresh, in place of Run, makes what the next run is given: programs that
	// remember nothing of the run before, and the check that looks at them.
	Fresh func() Options
	// Progress is told of every smaller plan. May be nil.
	Progress func(ShrinkReport)
}

// ShrinkReport is how far a plan has been cut down.
type ShrinkReport struct {
	// Plan is the smallest so far.
	Plan *Plan
	// Failure is the broken promise as the plan shows it.
	Failure Failure
	// Runs and Steps are what it took.
	Runs, Steps int
	// Through: nothing more can be left out. Else the work was bounded.
	Through bool
}

// ShrinkSteps is how much work a shrink does that is given no bound.
const ShrinkSteps = 8_000_000

// A plan with less in it is tried with more seeds too, since what was left out
// has moved every draw after it: with many when a party or a session has gone,
// with a few else.
const (
	someSeeds = 4
	manySeeds = 16
)

// Shrink leaves out of a plan what it does not need to break a promise: parties,
// faults, sessions, hosts, acts, rates, odd times, and in the end every choice
// of the schedule that could as well have been for the longest waiting. It
// returns nil when the plan breaks no promise, or not this one; its error is of a
// plan or of options that cannot be run.
func Shrink(ctx context.Context, p *Plan, o ShrinkOptions) (*ShrinkReport, error) {
	s := &shrinking{ctx: ctx, o: o, left: o.Steps}
	if s.left <= 0 {
		s.left = ShrinkSteps
	}
	if o.Fresh == nil && len(o.Run.Programs) > 0 {
		return nil, errors.New("simulation: Run has programs, which would remember earlier runs: give Fresh, which makes new ones for each")
	}
	if err := s.given().validate(p); err != nil {
		return nil, err
	}
	if !s.breaks(p.clone()) {
		return nil, nil
	}
	for before := ""; before != s.best().String() && s.more(); {
		before = s.best().String()
		s.leaveOut()
		s.simplify()
	}
	s.freeze()
	for before := ""; before != s.best().String() && s.more(); {
		before = s.best().String()
		s.choices()
		s.named()
		s.leaveOut()
		s.simplify()
	}
	s.report.Through = s.more()
	return &s.report, nil
}

type shrinking struct {
	ctx    context.Context
	o      ShrinkOptions
	left   int
	report ShrinkReport
}

func (s *shrinking) best() *Plan { return s.report.Plan }
func (s *shrinking) more() bool  { return s.left > 0 && s.ctx.Err() == nil }

// breaks runs a plan, and keeps it when it still breaks the promise.
func (s *shrinking) breaks(p *Plan) bool {
	if !s.more() {
		return false
	}
	r, err := Try(p, s.options(p))
	if err != nil {
		return false // less than a plan needs
	}
	s.report.Runs++
	s.report.Steps += r.Steps
	s.left -= r.Steps + 1
	at := slices.IndexFunc(r.Failures, func(f Failure) bool { return s.o.Invariant == "" || f.Invariant == s.o.Invariant })
	if at < 0 {
		return false
	}
	s.o.Invariant = r.Failures[at].Invariant
	s.report.Plan, s.report.Failure = p, r.Failures[at]
	if s.o.Progress != nil {
		s.o.Progress(s.report)
	}
	return true
}

// options are those of the next run. A party that was left out leaves its
// program behind.
func (s *shrinking) options(p *Plan) Options {
	o := s.given()
	o.Keep = false
	programs := map[string]Program{}
	for _, party := range p.Parties {
		if run := o.Programs[party.Name]; run != nil {
			programs[party.Name] = run
		}
	}
	o.Programs = programs
	return o
}

func (s *shrinking) given() Options {
	if s.o.Fresh != nil {
		return s.o.Fresh()
	}
	return s.o.Run
}

// less tries the plan with a change, and with other seeds while a seed decides
// the order. A change returns false when it has nothing to change.
func (s *shrinking) less(change func(p *Plan) bool) bool { return s.lessWith(someSeeds, change) }

func (s *shrinking) lessWith(seeds uint64, change func(p *Plan) bool) bool {
	p := s.best().clone()
	if !change(p) {
		return false
	}
	if s.breaks(p) {
		return true
	}
	if !p.drawsAnything() {
		return false
	}
	for i := range seeds {
		p = p.clone()
		p.Seed = i
		if s.breaks(p) {
			return true
		}
	}
	return false
}

// drawsAnything: another seed would run otherwise.
func (p *Plan) drawsAnything() bool {
	n, d := p.Network, p.Disk
	return p.Schedule.Random > 0 || p.Schedule.Early > 0 || n.Drop > 0 || n.Duplicate > 0 || n.DelayMax > n.DelayMin ||
		d.DelayMax > 0 || d.Refuse > 0 || d.InDoubt > 0
}

// ranges leaves out runs of n things, long runs first. without tries to leave
// out those from lo to hi; what it leaves out is gone from the plan.
func ranges(n int, without func(lo, hi int) bool) {
	for size := n; size >= 1; size /= 2 {
		for lo := 0; lo < n; {
			hi := min(lo+size, n)
			if without(lo, hi) {
				n -= hi - lo
			} else {
				lo = hi
			}
		}
	}
}

// leaveOut leaves out who and what is not needed.
func (s *shrinking) leaveOut() {
	ranges(len(s.best().Parties), func(lo, hi int) bool {
		return s.lessWith(manySeeds, func(p *Plan) bool { return p.dropParties(func(i int, _ PartyPlan) bool { return i >= lo && i < hi }) })
	})
	ranges(len(s.best().Faults), func(lo, hi int) bool {
		return s.less(func(p *Plan) bool { p.Faults = slices.Delete(p.Faults, lo, hi); return true })
	})
	for i := len(s.best().Sessions) - 1; i >= 0; i-- {
		s.lessWith(manySeeds, func(p *Plan) bool { return p.dropSession(i) })
	}
	for hosts := 1; hosts < s.best().Hosts; hosts++ {
		if s.lessWith(manySeeds, func(p *Plan) bool { p.fewerHosts(hosts); return true }) {
			break
		}
	}
	for i := range s.best().Parties {
		ranges(len(s.best().Parties[i].Acts), func(lo, hi int) bool {
			return s.less(func(p *Plan) bool { p.Parties[i].Acts = slices.Delete(p.Parties[i].Acts, lo, hi); return true })
		})
	}
}

func (p *Plan) dropParties(gone func(int, PartyPlan) bool) bool {
	var kept []PartyPlan
	names := map[string]bool{}
	for i, party := range p.Parties {
		if !gone(i, party) {
			kept = append(kept, party)
			names[party.Name] = true
		}
	}
	changed := len(kept) < len(p.Parties)
	p.Parties = kept
	p.Faults = slices.DeleteFunc(p.Faults, func(f FaultPlan) bool { return f.What == faultKill && !names[f.Party] })
	return changed
}

// dropSession leaves a session out with all that has to do with it. One stays.
func (p *Plan) dropSession(i int) bool {
	if len(p.Sessions) == 1 {
		return false
	}
	name := p.Sessions[i].Name
	p.Sessions = slices.Delete(p.Sessions, i, i+1)
	p.dropParties(func(_ int, party PartyPlan) bool { return party.Session == name })
	p.Faults = slices.DeleteFunc(p.Faults, func(f FaultPlan) bool { return f.What == faultMove && f.Session == name })
	return true
}

// fewerHosts lets those that stay do the work of the others.
func (p *Plan) fewerHosts(n int) {
	p.Hosts = n
	for i := range p.Sessions {
		p.Sessions[i].Host %= n
	}
	for i := range p.Parties {
		p.Parties[i].Host %= n
	}
	for i := range p.Faults {
		p.Faults[i].Host %= n
		p.Faults[i].To %= n
	}
	p.Faults = slices.DeleteFunc(p.Faults, func(f FaultPlan) bool { return f.What == faultPartition && f.Host == f.To })
}

// simplify sets what is not needed to what a script need not say, and times to
// round ones.
func (s *shrinking) simplify() {
	for _, n := range []func(*Plan) *int{
		func(p *Plan) *int { return &p.Network.Drop }, func(p *Plan) *int { return &p.Network.Duplicate },
		func(p *Plan) *int { return &p.Disk.Refuse }, func(p *Plan) *int { return &p.Disk.InDoubt },
		func(p *Plan) *int { return &p.Schedule.Early }, func(p *Plan) *int { return &p.Schedule.Random },
	} {
		set(s, n, 0)
	}
	for i := range s.best().Sessions {
		set(s, func(p *Plan) *int { return &p.Sessions[i].Host }, 0)
	}
	for i := range s.best().Parties {
		set(s, func(p *Plan) *int { return &p.Parties[i].Host }, 0)
		set(s, func(p *Plan) *string { return &p.Parties[i].Owner }, "")
		set(s, func(p *Plan) *bool { return &p.Parties[i].Patient }, false)
		for j := range s.best().Parties[i].Acts {
			set(s, func(p *Plan) *string { return &p.Parties[i].Acts[j].With }, "")
			set(s, func(p *Plan) *string { return &p.Parties[i].Acts[j].In }, "")
		}
	}
	set(s, func(p *Plan) *bool { return &p.Rules.First }, false)
	set(s, func(p *Plan) *time.Duration { return &p.Rules.Timeout }, defaultTimeout)
	s.times()
}

// set tries a value at a place.
func set[T comparable](s *shrinking, at func(*Plan) *T, value T) bool {
	return s.less(func(p *Plan) bool {
		if *at(p) == value {
			return false
		}
		*at(p) = value
		return true
	})
}

// times tries shorter spellings of every time: 0s, then whole seconds, tenths.
func (s *shrinking) times() {
	s.round(func(p *Plan) *time.Duration { return &p.Network.DelayMin }, 0)
	s.round(func(p *Plan) *time.Duration { return &p.Network.DelayMax }, 0)
	s.round(func(p *Plan) *time.Duration { return &p.Disk.DelayMax }, 0)
	s.round(func(p *Plan) *time.Duration { return &p.Rules.Grace }, 0)
	s.round(func(p *Plan) *time.Duration { return &p.Rules.Passivate }, 0)
	s.round(func(p *Plan) *time.Duration { return &p.For }, time.Second)
	for i := range s.best().Faults {
		s.round(func(p *Plan) *time.Duration { return &p.Faults[i].At }, 0)
		if f := s.best().Faults[i]; f.What != faultClock && f.What != faultMove {
			s.round(func(p *Plan) *time.Duration { return &p.Faults[i].For }, 0)
		}
	}
	for i, party := range s.best().Parties {
		for j, act := range party.Acts {
			if v := verbOf(party.Kind, act.Verb); v.span != "" && !v.ever {
				s.round(func(p *Plan) *time.Duration { return &p.Parties[i].Acts[j].For }, 0)
			}
		}
	}
}

// round tries the least time, and then ever less round ones, as long as they
// are shorter to write.
func (s *shrinking) round(at func(*Plan) *time.Duration, least time.Duration) {
	now := *at(s.best())
	if now == least || now < 0 {
		return
	}
	if set(s, at, least) {
		return
	}
	for _, unit := range []time.Duration{10 * time.Second, time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
		for _, d := range []time.Duration{now.Truncate(unit), now.Truncate(unit) + unit} {
			if d > least && len(timeText(d)) < len(timeText(now)) && set(s, at, d) {
				return
			}
		}
	}
}

// undrawn is a copy of the plan without the dice that can be replaced by what
// they decide.
func (p *Plan) undrawn() *Plan {
	c := p.clone()
	c.Schedule.Random = 0
	if c.Schedule.Choose == nil {
		c.Schedule.Choose = map[int]int{}
	}
	for _, f := range namedFates {
		*f.rate(c) = 0
	}
	return c
}

// freeze replaces dice by what they decided.
func (s *shrinking) freeze() {
	if !s.more() {
		return
	}
	o := s.options(s.best())
	o.Fix = true
	r, err := Try(s.best(), o)
	if err == nil && r.Fixed != nil {
		s.breaks(r.Fixed)
	}
}

// named leaves out messages and operations that were named for a fate.
func (s *shrinking) named() {
	for _, f := range namedFates {
		ranges(len(*f.of(s.best())), func(lo, hi int) bool {
			return s.less(func(p *Plan) bool { *f.of(p) = slices.Delete(*f.of(p), lo, hi); return true })
		})
	}
}

// choices leaves out choices of the schedule, and makes those that stay small.
func (s *shrinking) choices() {
	numbers := slices.Sorted(maps.Keys(s.best().Schedule.Choose))
	ranges(len(numbers), func(lo, hi int) bool {
		gone := numbers[lo:hi]
		ok := s.less(func(p *Plan) bool {
			for _, n := range gone {
				delete(p.Schedule.Choose, n)
			}
			if len(p.Schedule.Choose) == 0 {
				p.Schedule.Choose = nil
			}
			return true
		})
		if ok {
			numbers = slices.Delete(numbers, lo, hi)
		}
		return ok
	})
	for _, n := range numbers {
		if s.best().Schedule.Choose[n] > 1 {
			s.less(func(p *Plan) bool { p.Schedule.Choose[n] = 1; return true })
		}
	}
}

// clone copies a plan, so that a change of it changes nothing else.
func (p *Plan) clone() *Plan {
	c := *p
	c.Schedule.Choose = maps.Clone(p.Schedule.Choose)
	for _, f := range namedFates {
		*f.of(&c) = slices.Clone(*f.of(p))
	}
	c.Sessions = slices.Clone(p.Sessions)
	c.Faults = slices.Clone(p.Faults)
	c.Parties = slices.Clone(p.Parties)
	for i := range c.Parties {
		c.Parties[i].Acts = slices.Clone(p.Parties[i].Acts)
	}
	return &c
}
