// Command mutants applies each mistake of simulation/mutants to the tree, one at
// a time, and lets the simulation run against it until an invariant breaks. It
// writes what became of each into docs/simulation.md.
//
// It decides what counts as caught: an invariant that breaks in a seed in which
// the tree as it is breaks none. A panic alone does not count, and a trace that
// differs is not looked at. It also asks the unit tests, which count for nothing:
// they show what only the simulation sees. It never changes a source file: the
// compiler is given the changed ones in place of those of the tree.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	tree    string // command seeds of the tree as it is
	rooms   []room // whose unit tests are asked; none without units
}

func main() {
	var o options
	flag.StringVar(&o.root, "C", ".", "the top of the repository")
	flag.IntVar(&o.seeds, "seeds", 10000, "how many seeds a mutant may survive")
	flag.DurationVar(&o.budget, "budget", time.Minute, "how long the seeds of a mutant may take")
	flag.IntVar(&o.workers, "workers", max(1, min(2, runtime.NumCPU())), "how many mutants at a time")
	flag.StringVar(&o.only, "only", "", "only mutants with this in their name; the page keeps the rows of the others")
	flag.BoolVar(&o.units, "units", true, "also run the unit tests of every room that can see a mutant")
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
	var chosen []*mutant
	for _, m := range all {
		if strings.Contains(m.name, o.only) {
			chosen = append(chosen, m)
		}
	}
	if err := o.asItIs(tmp, chosen); err != nil {
		return 0, err
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
	fmt.Printf("%d mutants, %d survivors, %v\n%s", len(chosen), survivors, time.Since(began).Round(time.Second), unitLine(chosen, o))
	if err != nil || o.only != "" && !o.units {
		return survivors, err
	}
	path, took := filepath.Join(o.root, "docs", "simulation.md"), time.Since(began)
	if o.only != "" {
		if took, err = recall(path, all, chosen, o); err != nil {
			return survivors, err
		}
	}
	return survivors, writePage(path, page(all, o, took))
}

// asItIs builds what the mutants are held against: the tree without any, whose
// unit tests pass.
func (o *options) asItIs(tmp string, chosen []*mutant) (err error) {
	o.tree = filepath.Join(tmp, "seeds")
	if out, err := o.goTool("build", "-o", o.tree, seedsPackage); err != nil {
		return fmt.Errorf("the tree does not build: %w\n%s", err, out)
	}
	if !o.units {
		return nil
	}
	if o.rooms, err = o.unitRooms(); err != nil {
		return err
	}
	for _, r := range o.rooms {
		asked := func(m *mutant) bool {
			return slices.ContainsFunc(m.rooms(o.rooms), func(its room) bool { return its.dir == r.dir })
		}
		if !slices.ContainsFunc(chosen, asked) {
			continue
		}
		if test, err := o.unitTests("", r.dir); err != nil || test != "" {
			return errors.Join(fmt.Errorf("the unit tests of %s fail without any mutant: %s", r.dir, test), err)
		}
	}
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
