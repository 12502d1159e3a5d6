package main

import (
	"context"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

// completeTimeout is how long the Tab key may wait for a node.
const completeTimeout = 700 * time.Millisecond

// completions makes the Tab key know what the node knows. Without a node it knows nothing and says nothing.
func (c *cli) completions(root *cobra.Command) {
	sessions := c.suggest(func(ctx context.Context, node *client, words []string) []cobra.Completion {
		if len(words) > 0 {
			return nil
		}
		return sessionNames(ctx, node)
	})
	calls := func(states ...string) cobra.CompletionFunc {
		return c.suggest(func(ctx context.Context, node *client, words []string) []cobra.Completion {
			switch len(words) {
			case 0:
				return sessionsAsking(ctx, node, states)
			case 1:
				return callsOf(ctx, node, words[0], states)
			}
			return nil
		})
	}
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "inbox", "log", "export", "trace", "read":
			cmd.ValidArgsFunction = sessions
		case "answer":
			cmd.ValidArgsFunction = calls("open", "continued")
			c.completeFlag(cmd, "option", c.suggest(labels))
		case "withdraw":
			cmd.ValidArgsFunction = calls("open", "continued")
		case "import", "conformance":
			// files, which is what a shell completes by itself
		default:
			if cmd.ValidArgsFunction == nil {
				cmd.ValidArgsFunction = cobra.NoFileCompletions
			}
		}
		c.completeFlag(cmd, "session", c.suggest(func(ctx context.Context, node *client, _ []string) []cobra.Completion {
			return sessionNames(ctx, node)
		}))
		completeWords(cmd)
	}
	completeWords(root)
}

// explainBash says in time what bash says too late, at the first Tab.
func explainBash(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion", "bash"})
	if err != nil {
		panic(err) // it was added a line before
	}
	cmd.Long = `Print the script that makes the Tab key of bash know verbs, flags, sessions, calls
and options.

It needs the package bash-completion (version 2, with bash 4.1 or later), which
has to be loaded before it; without it the Tab key says
"_get_comp_words_by_ref: command not found". Then, in this shell:

  source /usr/share/bash-completion/bash_completion
  source <(parley completion bash)

or in every new one:

  parley completion bash > ~/.local/share/bash-completion/completions/parley

bash completes a program by the name it is called with: ./parley too.`
}

// completeWords completes the flags that take one word of a few.
func completeWords(cmd *cobra.Command) {
	for flag, words := range map[string][]string{
		"mode": {"timed", "legacy"}, "expiry": {"unanimous", "first"}, "log-format": {"text", "json"},
		"log-level": {"debug", "info", "warn", "error"}, "on-expired": {"late", "reject"},
	} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it is there
		}
	}
}

func (c *cli) completeFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if cmd.Flags().Lookup(flag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag, f) // it is there, and has none yet
	}
}

// suggest asks the node that the line, the environment or a file names.
func (c *cli) suggest(ask func(ctx context.Context, node *client, words []string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp
		c.json = true // no notes: they would be written into the line
		if c.fromEnvironment(cmd.Flags()) != nil || c.fromFiles(cmd) != nil {
			return nil, directive
		}
		node, err := c.dial()
		if err != nil {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		return ask(ctx, node, words), directive
	}
}

// offer is a word for the shell, with what it means; nothing that could break a line, or act on a terminal, is offered.
func offer(out []cobra.Completion, word, meaning string) []cobra.Completion {
	if word == "" || strings.ContainsFunc(word, hostile) {
		return out
	}
	return append(out, cobra.CompletionWithDesc(word, oneLine(meaning)))
}

func sessionNames(ctx context.Context, node *client) (out []cobra.Completion) {
	page, err := call(ctx, node, node.ListSessions, &messages.ListSessionsRequest{Limit: pageRows})
	if err != nil {
		return nil
	}
	for _, row := range page.GetSessions() {
		out = offer(out, row.GetSession(), row.GetCwd())
	}
	return out
}

// asked lists the questions in one of these states, of one session or of all.
func asked(ctx context.Context, node *client, session string, states []string) (out []*messages.QuestionRow) {
	page, err := call(ctx, node, node.ListQuestions, &messages.ListQuestionsRequest{Session: session, Limit: pageRows})
	if err != nil {
		return nil
	}
	for _, row := range page.GetQuestions() {
		if oneOf("", row.GetState(), states...) == nil {
			out = append(out, row)
		}
	}
	return out
}

func sessionsAsking(ctx context.Context, node *client, states []string) (out []cobra.Completion) {
	last := ""
	for _, row := range asked(ctx, node, "", states) { // by session
		if row.GetSession() != last {
			last = row.GetSession()
			out = offer(out, last, firstQuestion(row))
		}
	}
	return out
}

func callsOf(ctx context.Context, node *client, session string, states []string) (out []cobra.Completion) {
	for _, row := range asked(ctx, node, session, states) {
		out = offer(out, row.GetCallId(), firstQuestion(row))
	}
	return out
}

func firstQuestion(row *messages.QuestionRow) string {
	if len(row.GetQuestions()) == 0 {
		return ""
	}
	return row.GetQuestions()[0].GetQuestion()
}

// labels are the options of the question that is meant: the one named, or the only one.
func labels(ctx context.Context, node *client, words []string) (out []cobra.Completion) {
	session := ""
	if len(words) > 1 {
		session = words[0]
	}
	rows := meant(asked(ctx, node, session, []string{"open", "continued"}), words)
	if len(rows) != 1 {
		return nil
	}
	for _, q := range rows[0].GetQuestions() {
		for _, o := range q.GetOptions() {
			out = offer(out, o.GetLabel(), o.GetDescription())
		}
	}
	return out
}
