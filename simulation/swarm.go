package simulation

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// SwarmOptions say which seeds a swarm runs, and how.
type SwarmOptions struct {
	// First is the first seed, Seeds how many there are. None: until the
	// context ends.
	First uint64
	Seeds int
	// Profiles draw the plans: seed s is drawn by the s-th of them, in turn.
	// None: the first of Profiles.
	Profiles []Profile
	// Workers run side by side, each its own worlds. 0: one for each processor.
	Workers int
	// Adjust changes each plan that was drawn, before it runs. May be nil.
	Adjust func(*Plan)
	// KeepGoing runs every seed. Else none begins after one has failed.
	KeepGoing bool
	// Progress is told after each run what has been done so far, by one
	// goroutine at a time. May be nil.
	Progress func(SwarmReport)
}

// SwarmReport is how the seeds of a swarm came out.
type SwarmReport struct {
	// Seeds is how many have run, each one schedule of one plan.
	Seeds int
	// Steps, Messages and Simulated add up what happened in their worlds:
	// things, messages taken by actors, and time.
	Steps, Messages int
	Simulated       time.Duration
	// Failed are the seeds that broke a promise, by number. Without KeepGoing
	// it is the least one, whatever the number of workers.
	Failed []SeedFailure
}

// SeedFailure is one seed that broke a promise.
type SeedFailure struct {
	Seed     uint64
	Profile  string
	Failures []Failure
}

// ProfileOfSeed is the profile of those in turn that draws a seed.
func ProfileOfSeed(seed uint64, profiles []Profile) Profile {
	if len(profiles) == 0 {
		return Profiles[0]
	}
	return profiles[seed%uint64(len(profiles))]
}

// Swarm runs seeds on every processor until they are through, one has failed,
// or the context has ended. What it reports of given seeds depends on them
// alone.
func Swarm(ctx context.Context, o SwarmOptions) SwarmReport {
	s := &swarm{o: o, next: o.First}
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				seed, more := s.take()
				if !more {
					return
				}
				s.done(seed, s.run(seed))
			}
		})
	}
	wg.Wait()
	s.sort()
	return s.report
}

type swarm struct {
	o      SwarmOptions
	mu     sync.Mutex
	next   uint64
	report SwarmReport
}

// take hands the seeds out in order, so that when one has failed every lesser
// one has run or runs.
func (s *swarm) take() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Seeds > 0 && s.next-s.o.First >= uint64(s.o.Seeds) || len(s.report.Failed) > 0 && !s.o.KeepGoing {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

func (s *swarm) run(seed uint64) *Report {
	p := Draw(seed, ProfileOfSeed(seed, s.o.Profiles))
	if s.o.Adjust != nil {
		s.o.Adjust(p)
	}
	r, err := Try(p, Options{Silent: true})
	if err != nil {
		return &Report{Plan: p, Failures: []Failure{{Invariant: Unplanned, Text: err.Error()}}}
	}
	return r
}

func (s *swarm) done(seed uint64, r *Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Seeds++
	s.report.Steps += r.Steps
	s.report.Messages += r.Messages
	s.report.Simulated += r.Took
	if len(r.Failures) > 0 {
		s.report.Failed = append(s.report.Failed, SeedFailure{seed, ProfileOfSeed(seed, s.o.Profiles).Name, r.Failures})
	}
	if s.o.Progress != nil {
		s.o.Progress(s.report)
	}
}

func (s *swarm) sort() {
	f := s.report.Failed
	slices.SortFunc(f, func(a, b SeedFailure) int { return int(int64(a.Seed - b.Seed)) })
	if !s.o.KeepGoing && len(f) > 1 {
		s.report.Failed = f[:1]
	}
}

// Panicked is what a run that panicked has broken: no program, whoever wrote
// it, may take a world down.
const Panicked = "nothing panics"

// Unplanned is what a seed of a swarm has broken when its plan was changed to one
// that cannot be run.
const Unplanned = "a plan can be run"

// Try runs a plan as Run does, and reports a panic as a failure. Its error is a
// *PlanError, of a plan that cannot be run: nothing has run then.
func Try(p *Plan, opts Options) (r *Report, err error) {
	if err := opts.validate(p); err != nil {
		return nil, err
	}
	defer func() {
		if what := recover(); what != nil {
			r = &Report{Plan: p, Failures: []Failure{{Invariant: Panicked, Text: panicText(what)}}}
		}
	}()
	return run(p, opts), nil
}
