package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

type collecting struct {
	session, root         string
	admit, wait, takeOver bool
}

func (c *cli) inboxCommand() *cobra.Command {
	var in collecting
	cmd := &cobra.Command{
		Use:   "inbox SESSION [flags]",
		Short: "Show what waits for the agent, or admit it",
		Long: `Show the messages that wait for a session's agent: late replies and steered
texts. Looking changes nothing.

--admit takes them into the session's history and prints them. This happens
once: what was admitted is never handed out again. When nothing waits the exit
status is 75; with --wait the command stays until something does.`,
		Example: `  parley inbox demo
  parley inbox demo --admit --wait --json`,
		Args: args(1, 1, "SESSION"),
		RunE: func(cmd *cobra.Command, words []string) error {
			in.session = words[0]
			if in.wait && !in.admit {
				return usage("add --admit", "--wait waits for something to admit")
			}
			if err := checkIDs("SESSION", in.session, "--root", in.root); err != nil {
				return err
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			if in.admit {
				return c.admit(cmd.Context(), node, in)
			}
			return c.inbox(cmd.Context(), node, in.session)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&in.admit, "admit", false, "take them into the history, once, and print them")
	f.BoolVar(&in.wait, "wait", false, "with --admit: stay until something waits")
	f.StringVar(&in.root, "root", defaultRoot, "`name` under which the agent speaks")
	f.BoolVar(&in.takeOver, "take-over", false, "speak for the session even if another root holds it")
	return cmd
}

type inboxJSON struct {
	Session  string        `json:"session"`
	Messages []messageJSON `json:"messages"`
}

func (c *cli) inbox(ctx context.Context, node *client, session string) error {
	res, err := repeat(ctx, node, node.ListInbox, &messages.ListInboxRequest{Session: session})
	if err != nil {
		return err
	}
	return c.printMessages(session, res.GetMessages())
}

func (c *cli) printMessages(session string, list []*messages.InboxMessage) error {
	doc := inboxJSON{session, []messageJSON{}}
	for _, m := range list {
		doc.Messages = append(doc.Messages, messageOf(m))
	}
	if c.json {
		return c.printJSON(doc)
	}
	if len(list) == 0 {
		c.notef("nothing waits in session %s\n", oneLine(session))
	}
	for _, m := range doc.Messages {
		c.printMessage(m)
	}
	return nil
}

// printMessage shows a late reply as question and answer, and any other message as its text.
func (c *cli) printMessage(m messageJSON) {
	where := ""
	if m.List != "" {
		where = ", waiting for the " + strings.Replace(oneLine(m.List), "next-", "next ", 1)
	}
	if m.ReplyTo == "" {
		c.printf("message %s%s\n", c.bold(oneLine(m.ID)), where)
		c.block(c.out, "  ", m.Text)
		return
	}
	c.printf("reply %s to call %s%s\n", c.bold(oneLine(m.ID)), oneLine(m.ReplyTo), where)
	if len(m.Answers) == 0 {
		c.block(c.out, "  ", m.Text)
		return
	}
	asked := map[string]string{}
	for _, q := range m.Questions {
		asked[q.ID] = q.Question
	}
	for _, a := range m.Answers {
		c.block(c.out, "  ", asked[a.ID])
		c.block(c.out, "  = ", answerWords(a, false))
	}
	if m.Skipped {
		c.block(c.out, "  * ", "every question was skipped: no answer and no permission")
	}
}

// admit takes what waits, by name: a repetition after a lost connection can then tell what it has already taken.
func (c *cli) admit(ctx context.Context, node *client, in collecting) error {
	if err := c.attach(ctx, node, in.session, in.root, "", false, in.takeOver); err != nil {
		return err
	}
	for gone := 0; ; {
		res, err := repeat(ctx, node, node.ListInbox, &messages.ListInboxRequest{Session: in.session})
		if err != nil {
			return err
		}
		if len(res.GetMessages()) > 0 {
			admitted, err := admitNamed(ctx, node, in, res.GetMessages())
			// Between looking and taking, one may have been withdrawn: look again. Not for ever: it may be marked for a turn.
			if gone++; err != nil && asTrouble(err).code == messages.MessageGone && gone < retriesMax {
				continue
			}
			if err != nil {
				return err
			}
			return c.printMessages(in.session, admitted)
		}
		if !in.wait {
			c.exit = messages.ExitPending
			return c.printMessages(in.session, nil)
		}
		if err := awaitInbox(ctx, node, in); err != nil {
			return err
		}
	}
}

// awaitInbox returns once something waits; a node that restarts is waited for.
func awaitInbox(ctx context.Context, node *client, in collecting) error {
	req := &messages.AwaitInboxRequest{Session: in.session, Root: in.root, HoldMs: hold.Milliseconds()}
	for lost := 0; ; {
		res, err := callWithin(ctx, node, hold+replyTimeout, node.AwaitInbox, req)
		switch {
		case err == nil && res.GetQueued() > 0:
			return nil
		case err == nil:
			lost = 0
		case !asTrouble(err).temporary() || !pause(ctx, lost):
			return err
		default:
			lost++
		}
	}
}

func admitNamed(ctx context.Context, node *client, in collecting, waiting []*messages.InboxMessage) ([]*messages.InboxMessage, error) {
	req := &messages.AdmitMessagesRequest{Session: in.session, Root: in.root}
	for _, m := range waiting {
		req.MessageIds = append(req.MessageIds, m.GetId())
	}
	for n := 0; ; n++ {
		res, err := call(ctx, node, node.AdmitMessages, req)
		switch {
		case err == nil:
			return res.GetMessages(), nil
		case n > 0 && asTrouble(err).code == messages.MessageGone:
			// The attempt before may have been recorded although its reply was lost: the log knows.
			if all, logErr := allAdmitted(ctx, node, in.session, waiting); logErr != nil || all {
				return waiting, logErr
			}
			return nil, err
		case !asTrouble(err).temporary() || n == retriesMax || !pause(ctx, n):
			return nil, err
		}
	}
}

// allAdmitted reports whether the log holds every one of the messages as admitted.
func allAdmitted(ctx context.Context, node *client, session string, list []*messages.InboxMessage) (bool, error) {
	missing := map[string]bool{}
	for _, m := range list {
		missing[m.GetId()] = true
	}
	_, err := readLog(ctx, node, session, 0, func(event string) error {
		var ev struct {
			Type string
			Data struct{ ID string }
		}
		if json.Unmarshal([]byte(event), &ev) == nil && ev.Type == "user/message" {
			delete(missing, ev.Data.ID)
		}
		return nil
	})
	return len(missing) == 0, err
}
