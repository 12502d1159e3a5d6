// Command seeds runs seeds of the simulation over every profile in turn, until
// one breaks an invariant or enough are clean, and says in JSON what it found.
//
// It decides which seeds count. It never decides what a failure means: that is
// for package mutants, which builds it once for each mutant.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parleyrun/parley/simulation"
)

// found is what a run of seeds came to.
type found struct {
	Seeds     int      // run, the failing one too
	Seed      uint64   // that failed
	Profile   string   // that drew it
	Invariant string   // empty: every seed was clean
	Text      string   // the first breach
	Also      []string // other invariants that the same seed breaks
	Panics    int      // seeds in which nothing but a panic was seen
	Failed    []uint64 // with -all: each seed that fails
	Took      time.Duration
}

func main() {
	from := flag.Uint64("from", 0, "the first seed")
	seeds := flag.Uint64("seeds", 1000, "how many seeds at most")
	budget := flag.Duration("budget", time.Hour, "how long at most")
	skip := flag.String("skip", "", "seeds that do not count, with commas between them")
	flag.Parse()
	skipped := map[string]bool{}
	for s := range strings.SplitSeq(*skip, ",") {
		skipped[s] = true
	}
	out := run(*from, *seeds, *budget, skipped)
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		os.Exit(1)
	}
}

func run(from, seeds uint64, budget time.Duration, skipped map[string]bool) found {
	began := time.Now()
	var out found
	for seed := from; seed < from+seeds; seed++ {
		if skipped[strconv.FormatUint(seed, 10)] {
			continue
		}
		if time.Since(began) > budget {
			break
		}
		out.Seeds++
		profile := simulation.ProfileOfSeed(seed, simulation.Profiles)
		r, err := simulation.Try(simulation.Draw(seed, profile), simulation.Options{})
		if err != nil || len(r.Failures) == 0 {
			continue
		}
		broken := r.Failures
		if broken[0].Invariant == simulation.Panicked {
			out.Panics++
			continue
		}
		out.Seed, out.Profile, out.Invariant, out.Text = seed, profile.Name, broken[0].Invariant, broken[0].Text
		out.Also = others(broken)
		break
	}
	out.Took = time.Since(began)
	return out
}

func others(broken []simulation.Failure) (names []string) {
	seen := map[string]bool{broken[0].Invariant: true}
	for _, f := range broken {
		if !seen[f.Invariant] {
			seen[f.Invariant] = true
			names = append(names, f.Invariant)
		}
	}
	return names
}
