package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

func (c *cli) questionsCommand() *cobra.Command {
	var req messages.WatchQuestionsRequest
	var watch, all bool
	cmd := &cobra.Command{
		Use:   "questions [flags]",
		Short: "List the questions that can be answered",
		Long: `List the questions that can be answered, or watch them come and go.

  open       the agent's call still waits; an answer is its result
  continued  the call has returned; an answer is queued for the agent
  replied    a reply is queued; the agent has not taken it yet
  settled    over (with --all)`,
		Example: `  parley questions
  parley questions --watch --json
  parley questions --session demo --all`,
		Args: args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && req.Session == "" {
				return usage("name one with --session", "--all needs a session")
			}
			if all && watch {
				return usage("leave one of them out", "--all and --watch do not go together")
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			if watch {
				return c.watch(cmd.Context(), node, &req)
			}
			return c.list(cmd.Context(), node, req.Session, all)
		},
	}
	cmd.Flags().StringVar(&req.Session, "session", "", "only this `session`'s questions")
	cmd.Flags().BoolVar(&all, "all", false, "settled ones too (needs --session)")
	cmd.Flags().BoolVar(&watch, "watch", false, "stay and print changes as they come")
	cmd.Flags().Int64Var(&req.Cursor, "cursor", 0, "with --watch: go on after this `cursor` of an earlier watch")
	return cmd
}

// questionRows reads the whole list, page by page.
func questionRows(ctx context.Context, node *client, session string, settled bool) ([]*messages.QuestionRow, int64, error) {
	var rows []*messages.QuestionRow
	req := &messages.ListQuestionsRequest{Session: session, Settled: settled, Limit: pageRows}
	for {
		page, err := repeat(ctx, node, node.ListQuestions, req)
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, page.GetQuestions()...)
		if req.After = page.GetNext(); req.After == "" {
			return rows, page.GetCursor(), nil
		}
	}
}

func (c *cli) list(ctx context.Context, node *client, session string, all bool) error {
	rows, cursor, err := questionRows(ctx, node, session, all)
	if err != nil {
		return err
	}
	if c.json {
		doc := struct {
			Questions []questionJSON `json:"questions"`
			Cursor    int64          `json:"cursor"`
		}{[]questionJSON{}, cursor}
		for _, row := range rows {
			doc.Questions = append(doc.Questions, questionOf(row, 0))
		}
		return c.printJSON(doc)
	}
	if len(rows) == 0 {
		c.notef("no questions\n")
		return nil
	}
	c.table(c.out, rows)
	return nil
}

// table prints a line of columns for each question and beneath it, uncut, what is asked. Ids stay whole so that they
// can be copied; options stay whole because their last word may decide.
func (c *cli) table(w io.Writer, rows []*messages.QuestionRow) {
	now := c.now().UnixMilli()
	var cells [][]string
	for _, row := range rows {
		cells = append(cells, []string{oneLine(row.GetSession()), oneLine(row.GetCallId()), oneLine(row.GetState()), ageOf(row, now), leftOf(row)})
	}
	head, lines := c.columns([]string{"SESSION", "CALL", "STATE", "AGE", "LEFT"}, cells)
	_, _ = fmt.Fprintln(w, head)
	for i, row := range rows {
		_, _ = fmt.Fprintln(w, lines[i])
		c.ask(w, itemsOf(row.GetQuestions()))
		if t := row.GetTrouble(); t != nil {
			c.block(w, "  ! ", t.GetText()+" ("+t.GetCode()+")")
		}
		// That a continued call ended as pending is what its state says; that a reply was withdrawn is news.
		if s := row.GetSettlement(); s != nil && s.GetOutcome() != "pending" {
			c.block(w, "  = ", settledWords(s))
		}
		for _, a := range row.GetAnswers() {
			c.block(w, "  = ", answerWords(answersOf([]*messages.Answer{a})[0], len(row.GetQuestions()) > 1))
		}
	}
}

// ask prints what is asked, with the question's id where an answer must name it.
func (c *cli) ask(w io.Writer, items []itemJSON) {
	for _, item := range items {
		text := item.Question
		if len(items) > 1 {
			text = "[" + item.ID + "] " + text
		}
		c.block(w, "  ", text)
		for line := range strings.Lines(item.Detail) {
			c.block(w, "  | ", line)
		}
		mark := "  - "
		if item.MultiSelect {
			mark = "  + "
		}
		for _, o := range item.Options {
			label := o.Label
			if o.Description != "" {
				label += ": " + o.Description
			}
			c.block(w, mark, label)
		}
	}
}

func ageOf(row *messages.QuestionRow, now int64) string {
	if row.GetAskedMs() == 0 {
		return "-"
	}
	return span(now - row.GetAskedMs())
}

func leftOf(row *messages.QuestionRow) string {
	switch {
	case row.GetState() != "open":
		return "-"
	case row.GetDeadlineMs() == 0:
		return "no end"
	}
	return span(row.GetRemainingMs())
}

func settledWords(s *messages.Settlement) string {
	words := strings.ReplaceAll(s.GetOutcome(), "_", " ")
	if s.GetBy() != "" {
		words += " by " + s.GetBy()
	}
	if s.GetMessageId() != "" {
		words += ", message " + s.GetMessageId()
	}
	if s.GetReason() != "" {
		words += ": " + s.GetReason()
	}
	return words
}

// answerWords words one answer item. A skip says so: it is no consent.
func answerWords(a answerJSON, named bool) string {
	values := slices.Clone(a.Selected)
	if a.Custom != nil && *a.Custom != "" {
		values = append(values, *a.Custom)
	}
	words := strings.Join(values, ", ")
	if len(values) == 0 {
		words = "(skipped)"
	}
	if named {
		words = a.ID + ": " + words
	}
	return words
}

// watch prints the starting list and then every change, and picks up a lost stream where it was.
func (c *cli) watch(ctx context.Context, node *client, req *messages.WatchQuestionsRequest) error {
	reached, tries := false, 0
	for {
		seen, err := c.watchOnce(ctx, node, req)
		if ctx.Err() != nil {
			return nil // ended by its reader: that is how a watch ends
		}
		if reached = reached || seen; seen {
			tries = 0
		}
		if !reached || (err != nil && !asTrouble(err).temporary()) {
			return err
		}
		if tries == 0 {
			c.notef("%s\n", c.dim("the stream was lost; going on from cursor "+fmt.Sprint(req.Cursor)))
		}
		if tries++; !pause(ctx, tries) {
			return nil
		}
	}
}

// silenceMax is how long a stream may say nothing before the node has told its heartbeat.
const silenceMax = time.Minute

// watchOnce reads one stream to its end; seen says that the node answered at all.
func (c *cli) watchOnce(ctx context.Context, node *client, req *messages.WatchQuestionsRequest) (seen bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := node.WatchQuestions(ctx, connect.NewRequest(req))
	if err != nil {
		return false, node.explain(err)
	}
	defer func() { _ = stream.Close() }()
	live, silence := false, time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()
	patience := silenceMax
	for stream.Receive() {
		seen = true
		msg := stream.Msg()
		if ms := msg.GetHeartbeatMs(); ms > 0 {
			patience = 2 * time.Duration(ms) * time.Millisecond
		}
		silence.Reset(patience)
		if msg.GetQuestion() != nil {
			if err := c.change(msg.GetQuestion(), msg.GetCursor()); err != nil {
				return seen, err
			}
		}
		if msg.GetLive() && !live {
			live = true
			c.notef("%s\n", c.dim("watching; Ctrl-C ends it"))
		}
		// A cursor taken before the starting list is complete would skip the rest of it.
		if live || req.Cursor > 0 {
			req.Cursor = max(req.Cursor, msg.GetCursor())
		}
	}
	if err := stream.Err(); err != nil {
		return seen, node.explain(err) // a silent one was cancelled here, which is temporary too
	}
	return seen, nil
}

// change prints one change of one question.
func (c *cli) change(row *messages.QuestionRow, cursor int64) error {
	if c.json {
		return c.printJSON(questionOf(row, cursor))
	}
	line := fmt.Sprintf("%s  %s  %s", oneLine(row.GetSession()), oneLine(row.GetCallId()), c.state(oneLine(row.GetState())))
	if row.GetState() == "open" {
		line += "  " + leftOf(row) + " left"
	}
	c.printf("%s\n", line)
	if row.GetState() == "open" || row.GetState() == "continued" {
		c.ask(c.out, itemsOf(row.GetQuestions()))
	}
	if s := row.GetSettlement(); s != nil && s.GetOutcome() != "pending" {
		c.block(c.out, "  = ", settledWords(s))
	}
	return nil
}
