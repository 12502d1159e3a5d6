package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// swarming is what the command line says of a swarm.
type swarming struct {
	drawing
	seeds     int
	first     uint64
	within    string
	workers   int
	keepGoing bool
}

// seedsDefault takes some seconds.
const seedsDefault = 1000

func (c *cli) simRunCommand() *cobra.Command {
	var s swarming
	cmd := &cobra.Command{
		Use:   "run [flags]",
		Short: "Run many seeds, and look for a broken promise",
		Long: `Run seeds on every processor, each a world of its own, until all are through or one
has broken a promise. That one is named with what shows it and with the command
that replays it, and the exit status is 1. Which seed is found does not depend on
how many run side by side. With --profile all, seed and profile go together: the
first seed is of one profile, the next of another.`,
		Example: `  parley sim run
  parley sim run --seeds 20000 --profile all
  parley sim run --profile hard --within 10m --keep-going
  parley sim run --seed 55 --profile single`,
		Args: args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") && !cmd.Flags().Changed("seeds") && s.within == "" {
				s.seeds = 1
			}
			if s.within != "" && !cmd.Flags().Changed("seeds") {
				s.seeds = math.MaxInt
			}
			return c.simRun(cmd.Context(), s)
		},
	}
	cmd.Flags().IntVar(&s.seeds, "seeds", seedsDefault, "`number` of seeds to run; 1 if --seed is given alone")
	cmd.Flags().Uint64Var(&s.first, "seed", 1, "the first `seed`; the others follow it")
	s.flags(cmd, true)
	cmd.Flags().StringVar(&s.within, "within", "", "begin no seed after this real `time`; without --seeds it is the only end")
	cmd.Flags().IntVar(&s.workers, "workers", 0, "`number` of worlds side by side (default one for each processor)")
	cmd.Flags().BoolVar(&s.keepGoing, "keep-going", false, "run every seed, and list all that broke a promise")
	return cmd
}

func (c *cli) simRun(ctx context.Context, s swarming) error {
	of, adjust, err := s.profiles(true)
	switch {
	case err != nil:
		return err
	case s.seeds < 1:
		return usage("give 1 or more", "--seeds %d runs nothing", s.seeds)
	case s.workers < 0:
		return usage("leave it out for one on each processor", "--workers %d is out of bounds", s.workers)
	}
	running := ctx
	if s.within != "" {
		span, err := parseSpan("--within", s.within)
		if err != nil {
			return err
		}
		if span <= 0 {
			return usage("give a time such as 10m", "--within %s runs nothing", s.within)
		}
		var cancel context.CancelFunc
		running, cancel = context.WithTimeout(ctx, span)
		defer cancel()
	}
	if s.workers == 0 {
		s.workers = runtime.GOMAXPROCS(0)
	}
	if _, set := c.env("GOGC"); !set {
		// Worlds live for milliseconds and are small: memory is cheaper than time.
		defer debug.SetGCPercent(debug.SetGCPercent(1600))
	}
	began := c.now()
	bar := c.progressBar(s.seeds)
	report := simulation.Swarm(running, simulation.SwarmOptions{First: s.first, Seeds: s.seeds, Profiles: of, Workers: s.workers,
		Adjust: adjust, KeepGoing: s.keepGoing, Progress: bar.show})
	bar.clear()
	took := c.now().Sub(began)
	if err := c.printSwarm(s, report, took, ctx.Err() != nil); err != nil {
		return err
	}
	switch {
	case len(report.Failed) > 0:
		c.exit = messages.ExitError
	case ctx.Err() != nil:
		c.exit = exitInterrupted
	}
	return nil
}

type swarmFailureJSON struct {
	Seed     uint64           `json:"seed"`
	Profile  string           `json:"profile"`
	Failures []simFailureJSON `json:"failures"`
	Replay   string           `json:"replay"`
}

func (c *cli) printSwarm(s swarming, r simulation.SwarmReport, took time.Duration, interrupted bool) error {
	replay := func(f simulation.SeedFailure, verb string, more ...string) string {
		return c.simLine(verb, append(s.spelled(f.Profile), more...), strconv.FormatUint(f.Seed, 10))
	}
	if c.json {
		doc := struct {
			Seeds              int                `json:"seeds"`
			First              uint64             `json:"first"`
			Steps              int                `json:"steps"`
			Messages           int                `json:"messages"`
			SimulatedSeconds   float64            `json:"simulatedSeconds"`
			Seconds            float64            `json:"seconds"`
			Workers            int                `json:"workers"`
			SchedulesPerSecond float64            `json:"schedulesPerSecond"`
			MessagesPerSecond  float64            `json:"messagesPerSecond"`
			SimulatedPerSecond float64            `json:"simulatedPerSecond"`
			Failed             []swarmFailureJSON `json:"failed"`
			Interrupted        bool               `json:"interrupted,omitempty"`
		}{r.Seeds, s.first, r.Steps, r.Messages, r.Simulated.Seconds(), took.Seconds(), s.workers, rate(r.Seeds, took), rate(r.Messages, took), rate(int(r.Simulated.Seconds()), took), []swarmFailureJSON{}, interrupted}
		for _, f := range r.Failed {
			doc.Failed = append(doc.Failed, swarmFailureJSON{f.Seed, f.Profile, simFailures(f.Failures), replay(f, "replay")})
		}
		return c.printJSON(doc)
	}
	for _, f := range r.Failed {
		c.printf("%s\n", c.bold(fmt.Sprintf("seed %d (%s)", f.Seed, f.Profile)))
		c.broken(f.Failures)
		c.printf("replay: %s\n", replay(f, "replay", "--trace"))
	}
	end := ""
	if interrupted {
		end = "; interrupted before it was through"
	}
	c.printf("%s, %s%s\n", counted(r.Seeds, "seed"), verdict(r), end)
	c.printf("%s\n", c.dim(fmt.Sprintf("%.0f schedules/s, %.0f messages/s, %.0f simulated seconds/s; %.1fs, %s",
		rate(r.Seeds, took), rate(r.Messages, took), rate(int(r.Simulated.Seconds()), took), took.Seconds(), counted(s.workers, "worker"))))
	return nil
}

func verdict(r simulation.SwarmReport) string {
	if len(r.Failed) == 0 {
		return "every promise was kept"
	}
	return fmt.Sprintf("%d broke a promise", len(r.Failed))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// progressBar is a line on a terminal that shows how far a swarm is. A nil one shows nothing.
type progressBar struct {
	c     *cli
	out   *os.File
	seeds int
	began time.Time
	drawn time.Time
}

// A bar is drawn again after this time, and is so wide.
const (
	barEvery = 100 * time.Millisecond
	barCells = 24
)

func (c *cli) progressBar(seeds int) *progressBar {
	out := terminalOf(c.err)
	if name, _ := c.env("TERM"); out == nil || c.json || name == "dumb" {
		return nil
	}
	return &progressBar{c: c, out: out, seeds: seeds, began: c.now()}
}

// show draws the bar, if the last one is old. One goroutine at a time calls it.
func (b *progressBar) show(r simulation.SwarmReport) {
	b.draw(func() string { return barWords(r, b.seeds, b.drawn.Sub(b.began)) })
}

func (b *progressBar) draw(words func() string) {
	if b == nil || b.c.now().Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = b.c.now()
	width, _, err := term.GetSize(int(b.out.Fd()))
	if err != nil || width < widthMin {
		width = widthDefault
	}
	_, _ = fmt.Fprint(b.out, "\r"+fitting(words(), width-1)+"\x1b[K")
}

func (b *progressBar) clear() {
	if b != nil && !b.drawn.IsZero() {
		_, _ = fmt.Fprint(b.out, "\r\x1b[K")
	}
}

// barWords says how far a swarm is, how fast, and what is left.
func barWords(r simulation.SwarmReport, seeds int, took time.Duration) string {
	words := fmt.Sprintf("%s, %.0f schedules/s", counted(r.Seeds, "seed"), rate(r.Seeds, took))
	if seeds < math.MaxInt && r.Seeds > 0 {
		full := barCells * r.Seeds / seeds
		left := time.Duration(float64(took) / float64(r.Seeds) * float64(seeds-r.Seeds))
		words = fmt.Sprintf("[%s%s] %d of %d seeds, %.0f schedules/s, %s left", strings.Repeat("#", full), strings.Repeat(".", barCells-full),
			r.Seeds, seeds, rate(r.Seeds, took), span(left.Milliseconds()))
	}
	if n := len(r.Failed); n > 0 {
		words += fmt.Sprintf(", %d failed", n)
	}
	return words
}
