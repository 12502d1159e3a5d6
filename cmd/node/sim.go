package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation"
	"github.com/spf13/cobra"
)

// allProfiles is the word for every profile in turn.
const allProfiles = "all"

func (c *cli) simCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Try the protocol in a simulated world",
		Long: `Run the machines of this build in a simulated world: hosts that crash, networks
that lose and repeat, disks that fail, clocks that jump, agents and people. A seed
decides everything, so the same seed shows the same run, byte for byte, anywhere.
After each run every promise of Parley is held against what was said and stored.

Profiles, each of which says what a seed may draw:

` + profileLines() + `
A run can be written as a script, changed, cut down to what breaks a promise, and
kept as a test: docs/simulation.md has the language. It also plants a mistake, which
these verbs then find: in a build without one, no seed should break anything.`,
		Example: `  parley sim run --seeds 10000 --profile all
  parley sim replay 55 --profile single --trace
  parley sim script 55 --profile single -o mine.script
  parley sim show mine.script -o mine.html`,
		Args: func(cmd *cobra.Command, words []string) error {
			if len(words) == 0 {
				return nil
			}
			return usage("`parley sim --help` shows the verbs", "sim has no verb %q", words[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{c.simRunCommand(), c.simReplayCommand(), c.simShrinkCommand(), c.simShowCommand(), c.simScriptCommand()} {
		verb.Flags().SortFlags = false
		verb.DisableFlagsInUseLine = true
		cmd.AddCommand(verb)
	}
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, words []string) {
		for _, name := range []string{"node", "token", "config"} { // no node takes part in it
			cmd.Root().PersistentFlags().Lookup(name).Hidden = true
		}
		help(cmd, words)
	})
	return cmd
}

func profileLines() string {
	var b strings.Builder
	for _, p := range simulation.Profiles {
		fmt.Fprintf(&b, "  %-7s %s\n", p.Name, p.Says)
	}
	return b.String()
}

// drawing is what the command line says of plans that a seed draws.
type drawing struct {
	profile string
	hosts   int
	span    string
}

func (d *drawing) flags(cmd *cobra.Command, all bool) {
	names := profileNames()
	usual := simulation.Profiles[0].Name
	more := ""
	if all {
		more = ", or " + allProfiles + " in turn"
	}
	cmd.Flags().StringVar(&d.profile, "profile", usual, "`name` of what seeds may draw: "+strings.Join(names, ", ")+more)
	cmd.Flags().IntVar(&d.hosts, "hosts", 0, "at most this `number` of hosts (default the profile's)")
	cmd.Flags().StringVar(&d.span, "for", "", "`time` in the world in which things may fail (default the seed's)")
	if all {
		names = append(names, allProfiles)
	}
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // it is there
}

func profileNames() (names []string) {
	for _, p := range simulation.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// profiles are those that the flags mean, and what they change in each plan.
func (d *drawing) profiles(all bool) (of []simulation.Profile, adjust func(*simulation.Plan), err error) {
	p, known := simulation.ProfileOf(d.profile)
	switch {
	case known:
		of = []simulation.Profile{p}
	case all && d.profile == allProfiles:
		of = append(of, simulation.Profiles...)
	default:
		names := profileNames()
		if all {
			names = append(names, allProfiles)
		}
		return nil, nil, usage("profiles are "+strings.Join(names, ", "), "there is no profile %q", d.profile)
	}
	if d.hosts < 0 || d.hosts > simulation.HostsMax {
		return nil, nil, usage("a world has 1 to "+strconv.Itoa(simulation.HostsMax)+" hosts", "--hosts %d is out of bounds", d.hosts)
	}
	for i := range of {
		if d.hosts > 0 {
			of[i].Hosts = d.hosts
		}
	}
	if d.span == "" {
		return of, nil, nil
	}
	span, err := parseSpan("--for", d.span)
	if err != nil {
		return nil, nil, err
	}
	if span <= 0 || span > simulation.ForMax {
		return nil, nil, usage(fmt.Sprintf("a world fails for up to %v", simulation.ForMax), "--for %s is out of bounds", d.span)
	}
	return of, func(p *simulation.Plan) { p.For = span }, nil
}

// spelled are the flags that draw the same plans again, from one profile.
func (d *drawing) spelled(profile string) (flags []string) {
	if profile != simulation.Profiles[0].Name {
		flags = append(flags, "--profile", profile)
	}
	if d.hosts > 0 {
		flags = append(flags, "--hosts", strconv.Itoa(d.hosts))
	}
	if d.span != "" {
		flags = append(flags, "--for", d.span)
	}
	return flags
}

// simLine is a line to copy; no node takes part in it.
func (c *cli) simLine(verb string, flags []string, words ...string) string {
	alone := *c
	alone.node = ""
	return alone.command("sim", flags, append([]string{verb}, words...)...)
}

// planned is a plan that the command line named, and how.
type planned struct {
	*simulation.Plan
	name  string
	flags []string
	seed  bool // it was drawn
}

// plan draws a seed's plan, or reads a script.
func (c *cli) plan(cmd *cobra.Command, word string, d drawing) (planned, error) {
	if seed, err := strconv.ParseUint(word, 10, 64); err == nil {
		of, adjust, err := d.profiles(false)
		if err != nil {
			return planned{}, err
		}
		p := simulation.Draw(seed, of[0])
		if adjust != nil {
			adjust(p)
		}
		return planned{p, word, d.spelled(d.profile), true}, nil
	}
	for _, flag := range []string{"profile", "hosts", "for"} {
		if cmd.Flags().Changed(flag) {
			return planned{}, usage("leave it out, or name a seed in place of the file", "--%s is for seeds; a script says it itself", flag)
		}
	}
	text, err := c.readScript(word)
	if err != nil {
		return planned{}, err
	}
	p, err := simulation.ParseScript(text)
	if err != nil {
		return planned{}, unplanned(planned{name: word}, err)
	}
	return planned{p, word, nil, false}, nil
}

// unplanned says that a plan cannot be run.
func unplanned(p planned, err error) error {
	return &trouble{code: "ERROR", text: p.name + ": " + err.Error(), remedy: "docs/simulation.md has the language; `parley sim script 1` shows an example"}
}

// scriptBytesMax is how long a script may be.
const scriptBytesMax = 1 << 20

func (c *cli) readScript(name string) (string, error) {
	from := c.in
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			return "", usage("a seed is a number from 0; a script is a file", "%q is no seed and no file", name)
		}
		if err != nil {
			return "", &trouble{code: "ERROR", text: err.Error(), remedy: "name a script that can be read"}
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, scriptBytesMax+1))
	if err != nil {
		return "", &trouble{code: "ERROR", text: name + ": " + err.Error(), remedy: "name a script that can be read"}
	}
	if len(text) > scriptBytesMax {
		return "", &trouble{code: "ERROR", text: fmt.Sprintf("%s is longer than the %d bytes of a script", name, scriptBytesMax), remedy: "name a script"}
	}
	return string(text), nil
}

// Replaying.

func (c *cli) simReplayCommand() *cobra.Command {
	var d drawing
	var trace bool
	cmd := &cobra.Command{
		Use:   "replay SEED|FILE [flags]",
		Short: "Run one seed or script again",
		Long: `Run one seed, or the script in a file (- is stdin), and say how it came out: how much
happened, the sum of its trace, and the promises that it broke. The trace, and with
it the sum, is the same byte for byte on every machine. Exits with 1 when a promise
was broken. A world that does not come to rest is stopped in the end: then that is
said, and by what.

A line of the trace is: milliseconds, who, what, and of a message to whom and its
number, the same at both ends.`,
		Example: `  parley sim replay 55 --profile single
  parley sim replay 55 --profile single --trace | grep -e fault -e told
  parley sim replay mine.script --json`,
		Args: args(1, 1, "SEED or FILE"),
		RunE: func(cmd *cobra.Command, words []string) error {
			p, err := c.plan(cmd, words[0], d)
			if err != nil {
				return err
			}
			return c.simReplay(p, trace)
		},
	}
	d.flags(cmd, false)
	cmd.Flags().BoolVar(&trace, "trace", false, "print every line of the trace first")
	return cmd
}

type simFailureJSON struct {
	Invariant string `json:"invariant"`
	Text      string `json:"text"`
	Line      int    `json:"line,omitempty"`
}

func simFailures(fs []simulation.Failure) []simFailureJSON {
	out := []simFailureJSON{}
	for _, f := range fs {
		out = append(out, simFailureJSON(f))
	}
	return out
}

func (c *cli) simReplay(p planned, trace bool) error {
	r, err := simulation.Try(p.Plan, simulation.Options{Keep: trace})
	if err != nil {
		return unplanned(p, err)
	}
	if len(r.Failures) > 0 {
		c.exit = messages.ExitError
	}
	if c.json {
		doc := struct {
			Plan             string           `json:"plan"`
			Seed             uint64           `json:"seed"`
			Steps            int              `json:"steps"`
			Messages         int              `json:"messages"`
			SimulatedSeconds float64          `json:"simulatedSeconds"`
			Sum              string           `json:"sum"`
			Stopped          string           `json:"stopped,omitempty"`
			Failures         []simFailureJSON `json:"failures"`
			Trace            []string         `json:"trace,omitempty"`
		}{p.name, p.Seed, r.Steps, r.Messages, r.Took.Seconds(), r.Sum, r.Stopped, simFailures(r.Failures), nil}
		for _, line := range r.Lines {
			doc.Trace = append(doc.Trace, line.String())
		}
		return c.printJSON(doc)
	}
	out := bufio.NewWriter(c.out)
	for _, line := range r.Lines {
		text := line.String()
		if c.tty {
			text = clean(text)
		}
		_, _ = fmt.Fprintln(out, text) // Flush tells
	}
	if err := out.Flush(); err != nil {
		return err
	}
	c.printf("%d steps, %d messages, %v in the world\nsum %s\n", r.Steps, r.Messages, r.Took, r.Sum)
	c.broken(r.Failures)
	if len(r.Failures) == 0 {
		c.printf("every promise was kept\n")
	}
	return nil
}

// broken prints the promises that were broken, a line each.
func (c *cli) broken(fs []simulation.Failure) {
	for _, f := range fs {
		c.printf("%s %s: %s\n", c.paint("31", "broken"), c.bold(f.Invariant), clean(f.Text))
	}
}

// The script of a seed.

func (c *cli) simScriptCommand() *cobra.Command {
	var d drawing
	var o output
	cmd := &cobra.Command{
		Use:   "script SEED|FILE [flags]",
		Short: "Print a seed's plan as a script",
		Long: `Print the plan of a seed, or of a script (- is stdin), in the language of scripts: who
is there, what they do, what fails and when. It runs as the seed does, and can be
changed: docs/simulation.md says what each line means.`,
		Example: `  parley sim script 55 --profile single
  parley sim script 55 --profile single -o mine.script`,
		Args: args(1, 1, "SEED or FILE"),
		RunE: func(cmd *cobra.Command, words []string) error {
			p, err := c.plan(cmd, words[0], d)
			if err != nil {
				return err
			}
			return c.writeScript(o, "", p.Plan)
		},
	}
	d.flags(cmd, false)
	o.flags(cmd, "the script")
	return cmd
}

// output is where a verb writes.
type output struct {
	file  string
	force bool
}

func (o *output) flags(cmd *cobra.Command, what string) {
	cmd.Flags().StringVarP(&o.file, "output", "o", "-", "`file` to write "+what+" to; - is stdout")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace a file that exists")
}

// writeScript writes a plan, below a comment.
func (c *cli) writeScript(o output, comment string, p *simulation.Plan) error {
	text := p.String()
	if comment != "" {
		text = "# " + strings.ReplaceAll(strings.TrimSpace(clean(comment)), "\n", "\n# ") + "\n" + text
	}
	if c.json && o.file == "-" {
		return c.printJSON(struct {
			Script string `json:"script"`
		}{text})
	}
	return c.writeOut(o, text)
}

// writeOut writes a text where the flags say.
func (c *cli) writeOut(o output, text string) error {
	if o.file == "-" {
		_, err := io.WriteString(c.out, text)
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if o.force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(o.file, how, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usage("name another, or replace it with --force", "%s is there already", o.file)
	}
	if err != nil {
		return &trouble{code: "ERROR", text: err.Error(), remedy: "name a file that can be written with -o"}
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return &trouble{code: "ERROR", text: err.Error(), remedy: "name a file that can be written with -o"}
	}
	c.notef("wrote %s\n", o.file)
	return nil
}

// rate is how often something happened in a second.
func rate(n int, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}
