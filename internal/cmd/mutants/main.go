// Command mutants applies each mistake of simulation/mutants to the tree, one at
// a time, and lets the simulation run against it until an invariant breaks. It
// writes what became of each into docs/simulation.md.
//
// It decides what counts as caught: an invariant that breaks in a seed in which
// the tree as it is breaks none. A panic alone does not count, and a trace that
// differs is not looked at. It never changes a source file: the compiler is
// given the changed ones in place of those of the tree.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// options of a run.
type options struct {
	root    string
	seeds   int           // for each mutant, at most
	budget  time.Duration // likewise
	workers int
	only    string
	units   bool
	skip    string // seeds in which the tree itself breaks an invariant
}

func main() {
	var o options
	flag.StringVar(&o.root, "C", ".", "the top of the repository")
	flag.IntVar(&o.seeds, "seeds", 5000, "how many seeds a mutant may survive")
	flag.DurationVar(&o.budget, "budget", time.Minute, "how long the seeds of a mutant may take")
	flag.IntVar(&o.workers, "workers", max(1, min(2, runtime.NumCPU())), "how many mutants at a time")
	flag.StringVar(&o.only, "only", "", "only mutants with this in their name; the page is not written")
	flag.BoolVar(&o.units, "units", true, "also run the unit tests of the rooms that mutants change")
	flag.Parse()
	survivors, err := run(&o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if survivors > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d survived: each is a missing invariant, fault or plan\n", survivors)
		os.Exit(1)
	}
}

func run(o *options) (survivors int, err error) {
	began := time.Now()
	all, err := list(o.root)
	if err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := o.baseline(tmp); err != nil {
		return 0, err
	}
	var chosen []*mutant
	for _, m := range all {
		if strings.Contains(m.name, o.only) {
			chosen = append(chosen, m)
		}
	}
	o.each(chosen, tmp)
	for _, m := range chosen {
		if m.err != nil && err == nil {
			err = fmt.Errorf("%s: %w", m.name, m.err)
		}
		if !m.caught() {
			survivors++
		}
	}
	fmt.Printf("%d mutants, %d survivors, %v\n", len(chosen), survivors, time.Since(began).Round(time.Second))
	if err != nil || o.only != "" {
		return survivors, err
	}
	return survivors, writePage(filepath.Join(o.root, "docs", "simulation.md"), page(chosen, o, time.Since(began)))
}

// baseline finds the seeds that cannot tell anything, since they fail anyway.
func (o *options) baseline(tmp string) error {
	runner := filepath.Join(tmp, "seeds")
	if out, err := o.goTool("build", "-o", runner, seedsPackage); err != nil {
		return fmt.Errorf("the tree does not build: %w\n%s", err, out)
	}
	f, err := runSeeds(runner, "-all", fmt.Sprintf("-seeds=%d", o.seeds), "-budget="+(3*o.budget).String())
	if err != nil {
		return err
	}
	if len(f.Failed) > 0 {
		fmt.Printf("%d of %d seeds fail without any mutant and do not count: %v; the first: %s: %s\n", len(f.Failed), f.Seeds, f.Failed, f.Invariant, f.Text)
	}
	o.skip = joined(f.Failed)
	return nil
}

// each tries the mutants, some at a time.
func (o *options) each(all []*mutant, tmp string) {
	work := make(chan *mutant)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range o.workers {
		wg.Go(func() {
			for m := range work {
				m.try(o, filepath.Join(tmp, m.name))
				mu.Lock()
				fmt.Println(m.line())
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		work <- m
	}
	close(work)
	wg.Wait()
}
