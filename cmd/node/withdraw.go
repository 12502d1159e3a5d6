package main

import (
	"context"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

func (c *cli) withdrawCommand() *cobra.Command {
	var message, root, by, reason string
	cmd := &cobra.Command{
		Use:   "withdraw SESSION (CALL | --message ID) [flags]",
		Short: "Take back a question, or a queued message",
		Long: `Take back a question, so that nobody answers it any more; or take back a queued
message before the agent has it, which opens its question again.`,
		Example: `  parley withdraw demo q-7k2m9x4a --reason "found it in the docs"
  parley withdraw demo --message reply-1`,
		Args: args(1, 2, "SESSION and CALL, or SESSION and --message ID"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if (len(words) == 2) == (message != "") {
				return usage("name a CALL, or a message with --message ID", "withdraw needs exactly one thing to take back")
			}
			if by == "" {
				by = c.user()
			}
			if err := firstError(onLine(messages.CheckText("--by", by, messages.NameBytesMax)),
				onLine(messages.CheckText("--reason", reason, messages.NameBytesMax)),
				checkIDs("SESSION", words[0], "--root", root)); err != nil {
				return err
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			if message != "" {
				return c.withdrawMessage(cmd.Context(), node, &messages.WithdrawMessageRequest{Session: words[0], MessageId: message, By: by, Reason: reason})
			}
			return c.withdrawQuestion(cmd.Context(), node, &messages.WithdrawQuestionRequest{Session: words[0], Root: root, CallId: words[1], By: by, Reason: reason})
		},
	}
	f := cmd.Flags()
	f.StringVar(&message, "message", "", "`id` of the queued message to take back")
	f.StringVar(&reason, "reason", "", "`text` that tells people why")
	f.StringVar(&by, "by", "", "`name` of who takes it back (default: your user name)")
	f.StringVar(&root, "root", defaultRoot, "`name` under which the agent speaks")
	return cmd
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type withdrawnJSON struct {
	Session        string          `json:"session"`
	CallID         string          `json:"callId,omitempty"`
	MessageID      string          `json:"messageId,omitempty"`
	Settlement     *settlementJSON `json:"settlement,omitempty"`
	ReopenedCallID string          `json:"reopenedCallId,omitempty"`
}

func (c *cli) withdrawQuestion(ctx context.Context, node *client, req *messages.WithdrawQuestionRequest) error {
	if err := checkIDs("CALL", req.CallId); err != nil {
		return err
	}
	res, err := repeat(ctx, node, node.WithdrawQuestion, req)
	if err != nil && asTrouble(err).code == messages.CallerNotLive {
		res, err = c.withdrawAttached(ctx, node, req, err)
	}
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(withdrawnJSON{Session: req.Session, CallID: req.CallId, Settlement: settlementOf(res.GetSettlement())})
	}
	c.printf("withdrawn: call %s of session %s can no longer be answered\n", req.CallId, req.Session)
	return nil
}

// withdrawAttached tries again as the root of a session that nobody speaks for, such as an imported one. Of a session
// that another root holds it says so.
func (c *cli) withdrawAttached(ctx context.Context, node *client, req *messages.WithdrawQuestionRequest, refused error) (*messages.WithdrawQuestionResponse, error) {
	row, err := repeat(ctx, node, node.GetSession, &messages.GetSessionRequest{Session: req.GetSession()})
	switch root := row.GetSession().GetRoot(); {
	case err != nil || root == req.GetRoot():
		return nil, refused
	case root != "":
		return nil, heldBy(req.GetSession(), root, false, false)
	}
	if err := c.attach(ctx, node, req.GetSession(), req.GetRoot(), "", false, false); err != nil {
		return nil, err
	}
	return repeat(ctx, node, node.WithdrawQuestion, req)
}

func (c *cli) withdrawMessage(ctx context.Context, node *client, req *messages.WithdrawMessageRequest) error {
	if err := checkIDs("--message", req.MessageId); err != nil {
		return err
	}
	res, err := repeat(ctx, node, node.WithdrawMessage, req)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(withdrawnJSON{Session: req.Session, MessageID: req.MessageId, ReopenedCallID: res.GetReopenedCallId()})
	}
	c.printf("withdrawn: message %s of session %s\n", req.MessageId, req.Session)
	if call := res.GetReopenedCallId(); call != "" {
		c.printf("The question is open again: call %s\n", oneLine(call))
	}
	return nil
}
