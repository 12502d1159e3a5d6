package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	line := func(exit int, meaning string) { fmt.Fprintf(&b, "  %3d  %s\n", exit, meaning) }
	b.WriteString("Exit statuses of parley. Scripts may rely on them.\n\n")
	line(messages.ExitOK, "done; for ask: answered")
	line(messages.ExitError, "an error without a code; conformance: a vector failed; sim: a promise was broken")
	line(messages.ExitUsage, "the command line is wrong; nothing was done")
	line(messages.ExitPending, "ask: pending, nobody answered in time; answer: left without one; inbox --admit: nothing waits")
	line(messages.ExitSkipped, "ask: every question was skipped; no answer and no permission")
	line(exitInterrupted, "interrupted by Ctrl-C or SIGTERM while waiting; the question stays open")
	b.WriteString("\nRefusals and faults, by code:\n\n")
	byExit := slices.SortedStableFunc(slices.Values(messages.Registry), func(a, b messages.Entry) int { return a.Exit - b.Exit })
	for _, e := range byExit {
		fmt.Fprintf(&b, "  %3d  %-18s  %s\n", e.Exit, e.Code, e.Meaning)
	}
	b.WriteString("\nWith --json an error is one object on stderr: {code, text, remedy, winner}.\n`go run` reports every failure as 1: build the binary to see these.")
	return &cobra.Command{Use: "exit-codes", Short: "what an exit status means", Long: b.String()}
}

func environmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Environment of parley. A flag on the command line wins over its variable, and that\nover a file (see `parley help config`).\n\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "  %-22s  --%-15s  %s\n", v.name, v.flag, v.meaning)
	}
	b.WriteString(`
  PARLEY_SESSION  the session of hook and mcp, unless --session says so
  XDG_DATA_HOME   where the journal is by default: $XDG_DATA_HOME/parley,
                  else ~/.local/share/parley
  XDG_CONFIG_HOME where your configuration is: $XDG_CONFIG_HOME/parley/config.toml,
                  else ~/.config/parley/config.toml
  NO_COLOR        set to anything: no colour (there is none without a terminal)
  COLUMNS         width of the output, 20 or more (default: the terminal's, else 80)
  USER            who answers, unless --by says so`)
	return &cobra.Command{Use: "environment", Short: "the variables that stand for flags", Long: b.String()}
}

func configTopic() *cobra.Command {
	return &cobra.Command{Use: "config", Short: "the files that stand for flags", Long: `Configuration of parley. A value is taken from the first of these that has it:

  1. the flag on the command line
  2. its variable in the environment
  3. ./parley.toml, in the folder where parley runs
  4. $XDG_CONFIG_HOME/parley/config.toml, else ~/.config/parley/config.toml
  5. the default

--config FILE (or PARLEY_CONFIG) names one file in place of 3 and 4. The format is
TOML without tables. The keys are the names of the flags of serve, of --node,
--token and --root; an underscore may stand for a hyphen. Times have a unit.
Paths are relative to where parley runs.

  listen = "127.0.0.1:7410"
  journal = "/var/lib/parley/journal.db"
  allow-origin = ["https://ui.example.org"]
  default-timeout = "5m"    # or "never"
  claim-grace = "20s"

Where a file has listen and no node, the verbs that speak to a node find it there,
so that one file moves both; a port 0 is left out, since nobody knows it before.

A key that is not known is an error, and so is a number where a time is wanted. A
file with a token should be yours alone (chmod 600). A token from elsewhere is not
sent to a node that only ./parley.toml names, unless it is on this machine.

` + "`parley serve --print-config`" + ` prints every setting of the node with where it comes
from, secrets left out, and serves nothing.`}
}
