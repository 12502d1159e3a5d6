package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// cli is one run of the command: its streams and surroundings, and the flags that every verb has.
type cli struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	self     string // how this program is called, for commands to copy
	now      func() time.Time
	newID    func() string
	width    int
	tty      bool // out is a terminal
	colour   bool

	node  string
	token string
	json  bool
	full  bool // texts and ids are printed whole, however long
	links bool // lists name the page to answer each question on

	config  string            // the configuration file that was named
	files   []string          // those that were read
	origins map[string]origin // where flags that the command line left alone got their values

	exit int // what a run that ended well exits with; pending is not zero
}

func init() { cobra.EnableCommandSorting = false } // the order of the verbs tells the story

func newCLI() *cli {
	c := &cli{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		env:   os.LookupEnv,
		self:  selfName(os.Args[0]),
		now:   time.Now,
		newID: newID,
		tty:   isTerminal(os.Stdout),
	}
	c.width = terminalWidth(c.env)
	noColour, _ := c.env("NO_COLOR")
	term, _ := c.env("TERM")
	c.colour = c.tty && noColour == "" && term != "dumb"
	return c
}

// selfName is how commands to copy call this program: as it was started, or by its name alone where the shell finds the
// same program by that. `go run` builds into a folder that is gone afterwards.
func selfName(arg0 string) string {
	name := filepath.Base(arg0)
	switch found, err := exec.LookPath(name); {
	case strings.Contains(filepath.ToSlash(arg0), "/go-build"):
		return "go run ./cmd/node"
	case name == arg0, err == nil && found == arg0:
		return quote(name)
	}
	return quote(arg0)
}

// newID makes an id that can be read aloud and typed: twelve letters and digits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:12]
}

// run parses the arguments, runs the verb and returns the exit status.
func run(ctx context.Context, args []string, c *cli) int {
	out := &sticky{Writer: c.out}
	c.out = out
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetErr(c.err)
	cmd, err := root, checkEncoding(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if out.err != nil && (err == nil || errors.Is(err, out.err)) { // a script must not take what was lost on a full disk for a success
		return c.report(ctx, &trouble{code: "ERROR", text: "cannot write the output: " + out.err.Error(), remedy: outputAgain(cmd)})
	}
	if err != nil {
		// A line that could not be parsed has set no flag yet.
		c.json = c.json || slices.Contains(args, "--json")
		return c.report(ctx, err)
	}
	return c.exit
}

// outputAgain is how an output that was lost is had after all.
func outputAgain(cmd *cobra.Command) string {
	if isOf(cmd, "sim") {
		return "the same command prints the same again: give it room to write"
	}
	return "what was done is recorded: `parley log SESSION` shows it"
}

// isOf: a command is one of these, or a verb of one.
func isOf(cmd *cobra.Command, names ...string) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if slices.Contains(names, cmd.Name()) {
			return true
		}
	}
	return false
}

// sticky remembers the first error of a writer.
type sticky struct {
	io.Writer
	err error
}

func (s *sticky) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

func (c *cli) root() *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:   "parley",
		Short: "Durable human questions for agents",
		Long: `Parley carries a question from an agent to a person, and the answer back.
The question outlives the call that asked it: an answer that comes too late for
the call is queued, and the agent takes it exactly once.

Without a verb, parley serves a node.`,
		Args:                       noVerb,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return c.prepare(cmd) },
		RunE:                       func(cmd *cobra.Command, _ []string) error { return c.runServe(cmd, s) },
	}
	root.Version = thisVersion().Version
	root.SetVersionTemplate("parley {{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", "Flags.FlagUsagesWrapped 80"))
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&c.node, "node", defaultNode, "`url` of the node to speak to")
	flags.StringVar(&c.token, "token", "", "`token` to send to the node; for serve: the operator's, who may do everything")
	markSecret(flags, "token")
	flags.StringVar(&c.config, "config", "", "read this configuration `file` in place of ./parley.toml and your own")
	flags.BoolVar(&c.json, "json", false, "print JSON: one document, or one per line for streams")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("`"+cmd.CommandPath()+" --help` shows the flags", "%s", plainly(err))
	})
	serveFlags(root.Flags(), &s)
	root.AddGroup(
		&cobra.Group{ID: "people", Title: "Questions and answers:"},
		&cobra.Group{ID: "agent", Title: "The agent's side:"},
		&cobra.Group{ID: "node", Title: "The node:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			cmd.Flags().SortFlags = false
			cmd.DisableFlagsInUseLine = true
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID("node")
	root.SetCompletionCommandGroupID("node")
	add("people", c.questionsCommand(), c.answerCommand())
	add("agent", c.askCommand(), c.inboxCommand(), c.withdrawCommand(), c.mcpCommand(), c.hookCommand())
	add("node", c.serveCommand(), c.sessionsCommand(), c.logCommand(), c.searchCommand(), c.traceCommand(), c.readCommand(), c.exportCommand(), c.importCommand(), c.conformanceCommand(), c.simCommand(), c.versionCommand())
	root.AddCommand(exitCodesTopic(), environmentTopic(), configTopic())
	c.completions(root)
	root.InitDefaultHelpCmd()
	root.SetOut(c.out) // where the scripts go
	root.InitDefaultCompletionCmd()
	explainBash(root)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = knownTopic
		}
	}
	return root
}

// prepare settles the flags of a verb: what the command line left alone comes from the environment, else from a file.
func (c *cli) prepare(cmd *cobra.Command) error {
	if err := firstError(checkEmpty(cmd.Flags()), c.fromEnvironment(cmd.Flags())); err != nil || !takesFiles(cmd) {
		return err
	}
	return c.fromFiles(cmd)
}

// takesFiles: a broken file must not keep anybody from the help, nor a shell from starting.
func takesFiles(cmd *cobra.Command) bool {
	return !isOf(cmd, "help", "version", "completion", "conformance", "sim", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd)
}

// noVerb refuses a word that is no verb; cobra would hand it to serve.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	remedy := "`parley --help` shows the verbs"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		remedy = "did you mean `parley " + strings.Join(near, "` or `parley ") + "`?"
	}
	return usage(remedy, "there is no verb %q", args[0])
}

// knownTopic refuses help on what is not there; cobra would show the help of parley and call it well.
func knownTopic(cmd *cobra.Command, words []string) error {
	if _, rest, err := cmd.Root().Find(words); err != nil || len(rest) > 0 {
		return usage("`parley --help` shows the verbs and topics", "there is no help on %q", strings.Join(words, " "))
	}
	return nil
}

// args checks how many arguments a verb got.
func args(low, high int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		if len(got) < low || len(got) > high {
			return usage("`"+cmd.CommandPath()+" --help` shows examples", "%s takes %s, got %d arguments", cmd.Name(), names, len(got))
		}
		return nil
	}
}
