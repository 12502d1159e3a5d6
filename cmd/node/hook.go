package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

const (
	mcpRoot   = "mcp"           // the root as which the MCP door speaks, for every client
	hookLimit = 2 * time.Second // for all of a hook: reading the event, the receipt, and the look at the inbox
	hookGrace = 5 * time.Second // after which the agent itself should end a hook; written into its settings
)

// The agents that hook knows.
const (
	claudeCode = "claude-code"
	codexAgent = "codex"
	openCode   = "opencode"
)

type hooking struct {
	agent, session string
	settings       bool
	server, thread string // opencode's, and its session there
	watch          bool
}

func (c *cli) hookCommand() *cobra.Command {
	var in hooking
	cmd := &cobra.Command{
		Use:   "hook AGENT [flags]",
		Short: "Tell a coding agent that replies wait, between its turns",
		Long: `Tell a coding agent that replies wait, in the form that it shows to its model:
"2 replies wait: call collect_replies." The answer itself never comes this way.

  claude-code  a command hook: reads the event on stdin, prints JSON
  codex        the same
  opencode     has no such hook: posts a message to its server instead

A hook never breaks its agent: without a node, or with an event that cannot be
read, it prints {} and exits with 0, and stderr says why. The session is
--session, else PARLEY_SESSION, else the conversation that the event names
(claude-ID, codex-ID). A PostToolUse event of our own tools is the receipt for
what that call handed out; at PreToolUse of Claude Code they are given the
session, unless it is named.`,
		Example: `  parley hook claude-code --print-settings
  parley hook codex --print-settings >> ~/.codex/config.toml   # once
  parley hook opencode --session demo --opencode-session SESSION_ID --watch`,
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(words) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{claudeCode, codexAgent, openCode}, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(cmd *cobra.Command, words []string) error {
			return softly(c, firstError(args(1, 1, "AGENT")(cmd, words), func() error {
				if len(words) != 1 {
					return nil
				}
				return oneOf("AGENT", words[0], claudeCode, codexAgent, openCode)
			}()))
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return softly(c, c.prepare(cmd))
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			in.agent = words[0]
			if err := in.complete(c, cmd); err != nil && in.agent == openCode {
				return err
			} else if err != nil {
				return softly(c, err)
			}
			switch {
			case in.settings:
				return c.hookSettings(in)
			case in.agent == openCode:
				return c.hookOpenCode(cmd.Context(), in)
			}
			c.hook(cmd.Context(), in)
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return softly(c, cmd.Root().FlagErrorFunc()(cmd, err)) })
	f := cmd.Flags()
	f.StringVar(&in.session, "session", "", "the `session` whose replies are meant (or PARLEY_SESSION)")
	f.BoolVar(&in.settings, "print-settings", false, "print what to paste into the agent's settings")
	f.StringVar(&in.server, "server", "http://127.0.0.1:4096", "opencode: `url` of its server")
	f.StringVar(&in.thread, "opencode-session", "", "opencode: the `id` of its session")
	f.BoolVar(&in.watch, "watch", false, "opencode: stay, and tell of each new reply")
	return cmd
}

// softly reports a wrong command line of a hook with status 1. Status 2, which it has elsewhere, blocks the agent's
// prompt and its tools; of 1 an agent only tells its user.
func softly(c *cli, err error) error {
	if err == nil {
		return nil
	}
	c.printf("{}\n")
	t := *asTrouble(err)
	t.code = "ERROR"
	return &t
}

// complete fills in what the environment says, and refuses flags that mean nothing for the agent.
func (in *hooking) complete(c *cli, cmd *cobra.Command) error {
	for _, name := range []string{"server", "opencode-session", "watch"} {
		if in.agent != openCode && cmd.Flags().Changed(name) {
			return usage("leave it out", "--%s is for opencode only", name)
		}
	}
	if value, set := c.env("PARLEY_SESSION"); in.session == "" && set {
		in.session = value
	}
	switch {
	case in.session != "":
		return checkIDs("--session", in.session)
	case in.agent == openCode:
		return usage("name the one in the url of its MCP server: /mcp/SESSION", "opencode says nothing of its session: --session is missing")
	}
	return nil
}

// hook answers one event on stdin. Whatever happens, the agent gets JSON that it understands.
func (c *cli) hook(ctx context.Context, in hooking) {
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	answer, err := c.bell(ctx, in)
	if err != nil {
		_, _ = fmt.Fprintf(c.err, "parley hook: %s\n", oneLine(asTrouble(err).text))
	}
	c.printf("%s\n", jsonLine(answer))
}

// bell reads the event, passes on the receipt that it is, and says what waits.
func (c *cli) bell(ctx context.Context, in hooking) (hookAnswer, error) {
	text, err := readWithin(ctx, c.in, eventBytesMax)
	if err != nil {
		return hookAnswer{}, err
	}
	event, err := readEvent(text)
	if err != nil {
		return hookAnswer{}, err
	}
	own := in.session == ""
	if own {
		in.session, err = event.parleySession(in.agent)
		if err != nil {
			return hookAnswer{}, err
		}
	}
	if input, ok := event.named(in.session); ok && own && in.agent == claudeCode {
		return c.name(ctx, in.session, input)
	}
	receipt := event.receipt()
	if receipt == "" && !event.audible(in.agent) {
		return hookAnswer{}, nil
	}
	node, err := c.dial()
	if err != nil {
		return hookAnswer{}, err
	}
	// What cannot be acknowledged is handed out again: the bell rings all the same.
	lost := acknowledge(ctx, node, in.session, receipt)
	if !event.audible(in.agent) {
		return hookAnswer{}, lost
	}
	waiting, err := lookInto(ctx, node, in.session)
	if err != nil {
		return hookAnswer{}, err
	}
	return event.ring(in.agent, waiting.count()), lost
}

// name gives a call of ours the conversation's session, which is attached first. Claude Code itself tells a server only
// the conversation that it was started in, which is another one after /clear and with --continue, or none.
func (c *cli) name(ctx context.Context, session string, input json.RawMessage) (hookAnswer, error) {
	node, err := c.dial()
	if err != nil {
		return hookAnswer{}, err
	}
	if _, err := callWithin(ctx, node, hookLimit, node.Attach, &messages.AttachRequest{Session: session, Root: mcpRoot}); err != nil {
		return hookAnswer{}, err
	}
	return hookAnswer{Specific: &hookSpecific{Event: "PreToolUse", Input: input}}, nil
}

// acknowledge tells the node that the client has the response of the call it names so.
func acknowledge(ctx context.Context, node *client, session, correlation string) error {
	if correlation == "" {
		return nil
	}
	_, err := callWithin(ctx, node, hookLimit, node.Acknowledge, &messages.AcknowledgeRequest{Session: session, Correlation: correlation})
	return unlessUnknown(err)
}

// waiting is what a session holds for its agent.
type waiting struct {
	ids                 []string
	queued, undelivered int
}

func (w waiting) count() int { return w.queued + w.undelivered }

// lookInto looks into a session's inbox. A session that nobody has spoken for yet holds nothing.
func lookInto(ctx context.Context, node *client, session string) (waiting, error) {
	res, err := callWithin(ctx, node, hookLimit, node.AwaitInbox, &messages.AwaitInboxRequest{Session: session, Root: mcpRoot, Now: true})
	if err != nil {
		return waiting{}, unlessUnknown(err)
	}
	return waiting{res.GetMessageIds(), int(res.GetQueued()), int(res.GetUndelivered())}, nil
}

func unlessUnknown(err error) error {
	if err != nil && asTrouble(err).code == messages.NotFound {
		return nil
	}
	return err
}

// bellText says that something waits, and where. It never carries an answer: some agents frame what a hook says as not
// being their user's word.
func bellText(n int) string {
	if n == 1 {
		return "1 reply waits: call collect_replies."
	}
	return fmt.Sprintf("%d replies wait: call collect_replies.", n)
}
