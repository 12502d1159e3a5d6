package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

func (c *cli) questionsCommand() *cobra.Command {
	var req messages.WatchQuestionsRequest
	var watch, all, full, links bool
	cmd := &cobra.Command{
		Use:   "questions [flags]",
		Short: "List the questions that can be answered",
		Long: `List the questions that can be answered, or watch them come and go.

  open       the agent's call still waits; an answer is its result
  continued  the call has returned; an answer is queued for the agent
  replied    a reply is queued; the agent has not taken it yet
  settled    over (with --all)

The open ones come first, the oldest of them on top. LEFT is the time to the
deadline of the agent's call; a call is held past it while a person has its
question open. The line that begins with @ is the page to answer on.

A text longer than 12 lines or 1,000 characters is cut here, and so is a long id
on a terminal; both are whole with --full and --json. An option's label is never
cut. "parley answer" takes the beginning of an id.`,
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
			if cmd.Flags().Changed("cursor") && !watch {
				return usage("add --watch", "--cursor says where a watch goes on")
			}
			if cmd.Flags().Changed("session") {
				if err := checkIDs("--session", req.Session); err != nil {
					return err
				}
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			if c.full, c.links = full, links; watch {
				return c.watch(cmd.Context(), node, &req)
			}
			return c.list(cmd.Context(), node, req.Session, all)
		},
	}
	cmd.Flags().StringVar(&req.Session, "session", "", "only this `session`'s questions")
	cmd.Flags().BoolVar(&all, "all", false, "settled ones too (needs --session)")
	cmd.Flags().BoolVar(&full, "full", false, "print every text and id whole, however long")
	cmd.Flags().BoolVar(&links, "links", false, "print the page to answer each of them on")
	cmd.Flags().BoolVar(&watch, "watch", false, "stay and print changes as they come")
	cmd.Flags().Int64Var(&req.Cursor, "cursor", 0, "with --watch: go on after this `cursor` of an earlier watch")
	return cmd
}

// openRows are the questions that can be answered, with the place in the journal at which that is true.
func openRows(ctx context.Context, node *client) ([]*messages.QuestionRow, int64, error) {
	rows, cursor, err := questionRows(ctx, node, "", false)
	return slices.DeleteFunc(rows, func(row *messages.QuestionRow) bool { return !answerable(row) }), cursor, err
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
			byAge(rows)
			return rows, page.GetCursor(), nil
		}
	}
}

// byAge puts first what waits most: the open before the continued, and the oldest of each on top.
func byAge(rows []*messages.QuestionRow) {
	rank := func(row *messages.QuestionRow) int {
		if at := slices.Index([]string{"open", "continued", "replied", "settled"}, row.GetState()); at >= 0 {
			return at
		}
		return 1 << 10
	}
	slices.SortStableFunc(rows, func(a, b *messages.QuestionRow) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetAskedMs(), b.GetAskedMs()))
	})
}

func (c *cli) list(ctx context.Context, node *client, session string, all bool) error {
	rows, cursor, err := questionRows(ctx, node, session, all)
	if err != nil {
		return err
	}
	if session != "" && len(rows) == 0 { // a session without questions, or none
		if _, err := repeat(ctx, node, node.GetSession, &messages.GetSessionRequest{Session: session}); err != nil {
			return err
		}
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
	// A single question is the one to answer; among several, a link each would be in the way.
	c.links = c.links || len(rows) == 1 && c.token == ""
	c.table(c.out, node, rows)
	return nil
}

// table prints a line of columns for each question and beneath it what is asked. Labels stay whole because their last
// word may decide. On a very narrow screen the columns stand under each other.
func (c *cli) table(w io.Writer, node *client, rows []*messages.QuestionRow) {
	now := c.now().UnixMilli()
	var table [][]string
	for _, row := range rows {
		table = append(table, []string{oneLine(row.GetSession()), oneLine(row.GetCallId()), oneLine(row.GetState()), age(row.GetAskedMs(), now), leftOf(row, now)})
	}
	names := []string{"SESSION", "CALL", "STATE", "AGE", "LEFT"}
	c.squeeze(names, table, 0, 1)
	head, lines, wide := c.columns(names, table)
	narrow := wide > c.width && c.tty && !c.full
	if !narrow {
		_, _ = fmt.Fprintln(w, head)
	}
	for i, row := range rows {
		if narrow {
			ids, times := table[i][:2], table[i][2:]
			lines[i] = strings.Join(append(slices.Clone(ids), strings.Join(times, " ")), "\n")
		}
		_, _ = fmt.Fprintln(w, lines[i])
		c.ask(w, row)
		c.link(w, node, row)
		if t := row.GetTrouble(); t != nil {
			c.block(w, "  ! ", t.GetText()+" ("+t.GetCode()+")")
		}
		// That a continued call ended as pending is what its state says; that a reply was withdrawn is news.
		c.outcome(w, row)
	}
}

// link names the page to answer a question on, whole: it is to be clicked.
func (c *cli) link(w io.Writer, node *client, row *messages.QuestionRow) {
	if c.links && answerable(row) {
		_, _ = fmt.Fprintf(w, "  @ %s\n", node.page(row.GetSession(), row.GetCallId()))
	}
}

// outcome prints how a question ended: who and how, and the answers.
func (c *cli) outcome(w io.Writer, row *messages.QuestionRow) {
	b := newBound(c.full)
	if s := row.GetSettlement(); s != nil && s.GetOutcome() != "pending" {
		c.bounded(w, "  * ", settledWords(s), b)
	}
	for _, a := range answersOf(row.GetAnswers()) {
		c.bounded(w, "  = ", answerWords(a, len(row.GetQuestions()) > 1), b)
	}
	c.more(w, "  … ", b, row)
}

// more says how much was cut, and how to see it.
func (c *cli) more(w io.Writer, mark string, b *bound, row *messages.QuestionRow) {
	if b == nil || b.cut == 0 {
		return
	}
	flags := []string{"--session", row.GetSession(), "--full"}
	if row.GetState() == "settled" {
		flags = append(flags, "--all")
	}
	_, _ = fmt.Fprintf(w, "%s%d more characters: %s\n", mark, b.cut, c.command("questions", flags))
}

// ask prints what is asked, with the question's id where an answer must name it.
func (c *cli) ask(w io.Writer, row *messages.QuestionRow) {
	items := itemsOf(row.GetQuestions())
	for _, item := range items {
		b := newBound(c.full)
		text := item.Question
		if len(items) > 1 {
			text = "[" + item.ID + "] " + text
		}
		c.bounded(w, "  ", text, b)
		for line := range strings.Lines(item.Detail) {
			c.bounded(w, "  | ", line, b)
		}
		c.more(w, "  … ", b, row)
		mark := "  - "
		if item.MultiSelect {
			mark = "  + "
		}
		for _, o := range item.Options {
			if o.Description == "" {
				c.block(w, mark, o.Label)
				continue
			}
			label := wrap(o.Label, max(widthMin/2, c.width-4))
			b := newBound(c.full)
			if b != nil { // the label is never cut, only what comes after it
				b.lines, b.letters = b.lines+len(label), b.letters+utf8.RuneCountInString(o.Label)
			}
			c.bounded(w, mark, o.Label+": "+o.Description, b)
			c.more(w, "    … ", b, row)
		}
	}
}

// age is for a column; an imported log may not say when something was.
func age(ms, now int64) string {
	if ms == 0 {
		return "-"
	}
	return span(now - ms)
}

const leftHeld = "held"

// leftOf is the time to a call's deadline. A node ends a call at once, so that one which stays open past it is held.
func leftOf(row *messages.QuestionRow, now int64) string {
	switch {
	case row.GetState() != "open":
		return "-"
	case row.GetDeadlineMs() == 0:
		return "no end"
	case row.GetRemainingMs() == 0 && now > row.GetDeadlineMs()+heldAfter.Milliseconds():
		return leftHeld
	}
	return span(row.GetRemainingMs())
}

// leftWords is leftOf within a sentence.
func leftWords(row *messages.QuestionRow, now int64) string {
	left := leftOf(row, now)
	if left == leftHeld {
		return "held by a person who has it open"
	}
	return left + " left"
}

func settledWords(s *messages.Settlement) string {
	words := strings.ReplaceAll(s.GetOutcome(), "_", " ")
	if s.GetOutcome() == "skipped" {
		words = "skipped (no answer and no permission)"
	}
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
		words = "(skipped: no answer and no permission)"
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

// watchOnce prints one stream to its end; seen says that the node answered at all.
func (c *cli) watchOnce(ctx context.Context, node *client, req *messages.WatchQuestionsRequest) (seen bool, err error) {
	greeted := false
	err = node.follow(ctx, req, func(msg *messages.WatchQuestionsResponse) error {
		seen = true
		if msg.GetQuestion() != nil {
			if err := c.change(msg.GetQuestion(), msg.GetCursor()); err != nil {
				return err
			}
			if !c.json {
				c.link(c.out, node, msg.GetQuestion())
			}
		}
		if msg.GetLive() && !greeted {
			greeted = true
			c.notef("%s\n", c.dim("watching; Ctrl-C ends it"))
		}
		return nil
	})
	return seen, err
}

// follow reads one stream of changes to its end and leaves in req where the next one goes on.
func (c *client) follow(ctx context.Context, req *messages.WatchQuestionsRequest, each func(*messages.WatchQuestionsResponse) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.WatchQuestions(ctx, connect.NewRequest(req))
	if err != nil {
		return c.explain(err)
	}
	defer func() { _ = stream.Close() }()
	live, silence := false, time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()
	patience := silenceMax
	for stream.Receive() {
		msg := stream.Msg()
		if ms := msg.GetHeartbeatMs(); ms > 0 {
			patience = 2 * time.Duration(ms) * time.Millisecond
		}
		silence.Reset(patience)
		if err := each(msg); err != nil {
			return err
		}
		// A cursor taken before the starting list is complete would skip the rest of it.
		if live = live || msg.GetLive(); live || req.Cursor > 0 {
			req.Cursor = max(req.Cursor, msg.GetCursor())
		}
	}
	if err := stream.Err(); err != nil {
		return c.explain(err) // a silent one was cancelled here, which is temporary too
	}
	return nil
}

// change prints one change of one question.
func (c *cli) change(row *messages.QuestionRow, cursor int64) error {
	if c.json {
		return c.printJSON(questionOf(row, cursor))
	}
	line := fmt.Sprintf("%s  %s  %s", oneLine(row.GetSession()), oneLine(row.GetCallId()), c.state(oneLine(row.GetState())))
	if row.GetState() == "open" {
		line += "  " + leftWords(row, c.now().UnixMilli())
	}
	c.printf("%s\n", line)
	if row.GetState() == "open" || row.GetState() == "continued" {
		c.ask(c.out, row)
	}
	c.outcome(c.out, row)
	return nil
}
