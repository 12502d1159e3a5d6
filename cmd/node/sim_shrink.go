package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/parleyrun/parley/simulation"
	"github.com/spf13/cobra"
)

type shrinkOptions struct {
	drawing
	output
	invariant string
	steps     int
}

func (c *cli) simShrinkCommand() *cobra.Command {
	var s shrinkOptions
	cmd := &cobra.Command{
		Use:   "shrink SEED|FILE [flags]",
		Short: "Cut a failing seed down to a short script",
		Long: `Leave out of a seed's plan, or of a script, what it does not need to break a promise:
parties, what they do, faults, hosts, sessions, rates, odd times, and in the end every
choice of the schedule that does not matter. Prints the script that is left, which
breaks the same promise. The result is the same on every machine. The seed is one
that run has named: what breaks nothing is refused.`,
		Example: `  parley sim shrink 55 --profile single -o race.script
  parley sim replay race.script --trace
  parley sim show race.script -o race.html`,
		Args: args(1, 1, "SEED or FILE"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if s.steps < 1 {
				return usage("leave it out for some tens of seconds", "--steps %d does nothing", s.steps)
			}
			p, err := c.plan(cmd, words[0], s.drawing)
			if err != nil {
				return err
			}
			return c.simShrink(cmd.Context(), p, s)
		},
	}
	cmd.Flags().StringVarP(&s.file, "output", "o", "-", "`file` to write the script to; - is stdout")
	cmd.Flags().BoolVar(&s.force, "force", false, "replace a file that exists")
	cmd.Flags().StringVar(&s.invariant, "invariant", "", "`name` of the promise that must stay broken (default the first that is)")
	cmd.Flags().IntVar(&s.steps, "steps", simulation.ShrinkSteps, "bound of the work, as a `number` of steps of worlds")
	s.drawing.flags(cmd, false)
	return cmd
}

func (c *cli) simShrink(ctx context.Context, p planned, s shrinkOptions) error {
	bar := c.progressBar(0)
	r, err := simulation.Shrink(ctx, p.Plan, simulation.ShrinkOptions{Invariant: s.invariant, Steps: s.steps, Progress: func(r simulation.ShrinkReport) {
		bar.draw(func() string {
			return fmt.Sprintf("%s, %d%% of the work: %s", counted(r.Runs, "run"), 100*r.Steps/s.steps, counted(planLines(r.Plan), "line"))
		})
	}})
	bar.clear()
	if err != nil {
		return unplanned(p, err)
	}
	if r == nil {
		what := "no promise"
		if s.invariant != "" {
			what = fmt.Sprintf("no promise called %q", s.invariant)
		}
		return &trouble{code: "ERROR", text: fmt.Sprintf("%s breaks %s", p.name, what), remedy: "this says how it comes out", line: c.simLine("replay", p.flags, p.name)}
	}
	comment := "Breaks " + r.Failure.String()
	if p.seed {
		comment += "\nFrom: " + c.simLine("shrink", p.flags, p.name)
	}
	if err := c.writeScript(s.output, comment, r.Plan); err != nil {
		return err
	}
	end := "nothing more can be left out"
	if !r.Through {
		end = "stopped early; more --steps may leave out more"
	}
	c.notef("%s to %s in %s; %s\n", counted(planLines(p.Plan), "line"), counted(planLines(r.Plan), "line"), counted(r.Runs, "run"), end)
	if s.file != "-" {
		c.notef("replay: %s\n", c.simLine("replay", []string{"--trace"}, s.file))
	}
	if ctx.Err() != nil {
		c.exit = exitInterrupted
	}
	return nil
}

func planLines(p *simulation.Plan) int { return strings.Count(p.String(), "\n") }
