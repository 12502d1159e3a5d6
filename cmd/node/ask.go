package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

// unreachableMax is how long past its deadline a call is still asked for at a node that does not answer.
const unreachableMax = 30 * time.Second

type asking struct {
	session, root, attempt, callID string
	timeout                        string
	takeOver, quiet                bool
	draft                          draft
}

func (c *cli) askCommand() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "ask [QUESTION | -] [flags]",
		Short: "Ask a question and wait for its answer",
		Long: `Ask a question and wait in the foreground for its answer.

The answer is printed, one value per line; nothing else goes to stdout. Further
lines of a value are indented, so that no text can look like another answer;
scripts use --json. When every question was skipped the exit status is 76: no
answer and no permission.

When nobody answers in time the call is pending (exit status 75): it is no answer
and no permission, and the question stays open. A later answer waits in the
session's inbox.

On a terminal stderr counts down to the deadline. It never moves, but a call
does not end while a person has its question open: past its deadline it is said
to be held. --quiet leaves that out.

A node that restarts does not end the wait: the same attempt is sent again.
An interrupted ask (exit status 130) prints the command that listens again.

--option, --multi and --id belong to the --question before them. With - the
tool's own arguments are read from stdin as JSON:
{"questions": [{"id", "question", "options": [{"label", "description"}]}], "timeout": 90}

In an option the description begins after the first ": "; a backslash before
it keeps it in the label: 'Plan B\: wait'.`,
		Example: `  parley ask "Ship it?" --option Yes --option "No: wait for the review"
  parley ask --timeout 90s --question "Which region?" --option eu --option us \
      --question "Which tests may be skipped?" --multi --option slow --option flaky
  parley ask --json - < arguments.json`,
		Args: args(0, 1, "one question, or --question, or -"),
		RunE: func(cmd *cobra.Command, words []string) error { return c.runAsk(cmd.Context(), a, words) },
	}
	f := cmd.Flags()
	f.StringVar(&a.session, "session", "", "`session` that asks (default: a new one)")
	f.StringVar(&a.timeout, "timeout", "", "how long to wait: a `duration` such as 90s or 5m, or never (default: the node's)")
	f.Var(draftFlag{"text", a.draft.question}, "question", "a question; repeat it for more")
	f.Var(draftFlag{"label", a.draft.option}, "option", "a choice: \"Label\" or \"Label: description\"; repeat it")
	f.Var(draftFlag{"bool", a.draft.multi}, "multi", "several options may be chosen")
	f.Lookup("multi").NoOptDefVal = "true"
	f.Var(draftFlag{"id", a.draft.id}, "id", "the question's id in the answer (default q1, q2, …)")
	f.StringVar(&a.root, "root", defaultRoot, "`name` under which the agent speaks")
	f.BoolVar(&a.takeOver, "take-over", false, "speak for the session even if another root holds it")
	f.BoolVar(&a.quiet, "quiet", false, "no countdown on a terminal")
	f.StringVar(&a.attempt, "attempt", "", "repeat an earlier ask with its attempt `id`")
	f.StringVar(&a.callID, "call", "", "the call's `id` (default: the attempt)")
	return cmd
}

// draft collects questions from flags; an option belongs to the question before it.
type draft struct {
	questions []*messages.Question
	loose     *messages.Question // what stood before any --question: it belongs to the question given as a word
}

// draftFlag is a flag whose meaning depends on the flags before it.
type draftFlag struct {
	kind string
	set  func(string) error
}

func (f draftFlag) String() string         { return "" }
func (f draftFlag) Type() string           { return f.kind }
func (f draftFlag) Set(value string) error { return f.set(value) }

func (d *draft) last() *messages.Question {
	if n := len(d.questions); n > 0 {
		return d.questions[n-1]
	}
	if d.loose == nil {
		d.loose = &messages.Question{}
	}
	return d.loose
}

func (d *draft) question(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("a question needs a text")
	}
	d.questions = append(d.questions, &messages.Question{Question: text})
	return nil
}

func (d *draft) option(text string) error {
	label, description := splitOption(text)
	label = strings.TrimSpace(label)
	if label == "" {
		return errors.New("an option needs a label" + colonHint(text))
	}
	q := d.last()
	for _, o := range q.GetOptions() {
		if o.GetLabel() == label {
			return fmt.Errorf("the label %q is there twice%s", label, colonHint(text))
		}
	}
	q.Options = append(q.Options, &messages.Option{Label: label, Description: strings.TrimSpace(description)})
	return nil
}

// colonHint tells of the escape where a colon may have been meant as a part of the label.
func colonHint(text string) string {
	if strings.Contains(text, ": ") {
		return `; the description begins after ": ", write \: for a colon in the label`
	}
	return ""
}

func (d *draft) multi(text string) error {
	d.last().MultiSelect = text == "true"
	return nil
}

func (d *draft) id(text string) error {
	if e := messages.CheckID("the id", text); e != nil {
		return errors.New(e.Text)
	}
	d.last().Id = text
	return nil
}

// finish joins the question given as a word with its loose flags, and names questions without an id.
func (d *draft) finish(words []string) ([]*messages.Question, error) {
	switch {
	case len(words) == 1 && len(d.questions) > 0:
		return nil, usage("give all of them as --question", "a question stands both alone and as --question")
	case len(words) == 1:
		loose := d.last()
		if d.questions = []*messages.Question{loose}; strings.TrimSpace(words[0]) == "" {
			return nil, usage("write what you want to know", "the question is empty")
		}
		loose.Question = words[0]
	case len(d.questions) == 0:
		return nil, usage("`parley ask \"Ship it?\" --option Yes --option No`", "there is nothing to ask")
	case d.loose != nil:
		return nil, usage("move it behind its --question", "--option, --multi or --id stands before any --question")
	}
	seen := map[string]bool{}
	for i, q := range d.questions {
		if q.Id == "" {
			q.Id = fmt.Sprintf("q%d", i+1)
		}
		if seen[q.Id] {
			return nil, usage("give each question its own --id", "the id %q is there twice", q.Id)
		}
		seen[q.Id] = true
	}
	return d.questions, nil
}

// request turns the command line into the call, and checks all that can be checked before a session is touched.
func (c *cli) request(a asking, words []string) (*messages.AskRequest, error) {
	req := &messages.AskRequest{Session: a.session, Root: a.root, Attempt: a.attempt, CallId: a.callID}
	if req.Session == "" {
		req.Session = "s-" + c.newID()
	}
	if req.Attempt == "" {
		req.Attempt = "q-" + c.newID()
	}
	if req.CallId == "" {
		req.CallId = req.Attempt
	}
	if err := checkIDs("--session", req.Session, "--root", req.Root, "--attempt", req.Attempt, "--call", req.CallId); err != nil {
		return nil, err
	}
	if len(words) == 1 && words[0] == "-" {
		return req, c.readArguments(a, req)
	}
	var err error
	if req.Questions, err = a.draft.finish(words); err != nil {
		return nil, err
	}
	if a.timeout != "" {
		seconds, err := parseTimeout("--timeout", a.timeout)
		if err != nil {
			return nil, err
		}
		req.TimeoutSeconds = &seconds
	}
	return req, nil
}

// readArguments takes the tool's own arguments from stdin, untouched: the node checks them as it checks a model's. Only
// blank ids are looked for here, since one that is stored comes back for ever (fault E7).
func (c *cli) readArguments(a asking, req *messages.AskRequest) error {
	if a.timeout != "" || len(a.draft.questions) > 0 || a.draft.loose != nil {
		return usage("put all of it into the JSON", "with - the questions and the timeout come from stdin")
	}
	text, err := io.ReadAll(io.LimitReader(c.in, messages.ArgumentsBytesMax+1))
	if err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return usage("write it in UTF-8", "stdin is not UTF-8")
	}
	if err := orNil(messages.CheckText("stdin", string(text), messages.ArgumentsBytesMax)); err != nil {
		return err
	}
	if !json.Valid(text) {
		return refuse(messages.InvalidArgs, `send {"questions": [{"id": "q1", "question": "Ship it?"}]}`, "stdin is not JSON")
	}
	var asked struct{ Questions []struct{ ID any } }
	_ = json.Unmarshal(text, &asked) // whatever else is wrong with it is for the node to say
	for i, q := range asked.Questions {
		id, ok := q.ID.(string)
		if !ok {
			continue
		}
		if err := orNil(messages.CheckID(fmt.Sprintf("questions[%d].id", i), id)); err != nil {
			return err
		}
	}
	req.Arguments = string(text)
	return nil
}

func (c *cli) runAsk(ctx context.Context, a asking, words []string) error {
	req, err := c.request(a, words)
	if err != nil {
		return err
	}
	node, err := c.dial()
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	cwd = strings.ToValidUTF8(cwd, "\uFFFD")
	if err != nil {
		return err
	}
	if err := c.attach(ctx, node, req.Session, req.Root, cwd, true, a.takeOver); err != nil {
		return err
	}
	again := c.again(req, a.timeout)
	line := c.statusLine(a.quiet)
	res, asked, err := c.await(ctx, node, req, again, line)
	line.stop()
	switch {
	case err != nil && ctx.Err() != nil:
		what := "interrupted while call %s of session %s waited; the question stays open"
		if !asked {
			what = "interrupted before call %s of session %s was known to be asked"
		}
		t := refuse(codeInterrupted, "an answer in time reaches only who listens; listen again with", what, req.CallId, req.Session)
		t.line = again
		return t
	case err != nil:
		if t := asTrouble(err); t.temporary() {
			t.remedy, t.line = "once the node is back, listen again with", again
		}
		return err
	case res.GetPending() != nil:
		c.exit = messages.ExitPending
		return c.printPending(req, res)
	}
	return c.printAnswer(req, res)
}

// await repeats the call, always with the same attempt, until it returns. A node that is gone for a while is waited
// for: the question is in its journal and its deadline does not move.
func (c *cli) await(ctx context.Context, node *client, req *messages.AskRequest, again string, line *statusLine) (res *messages.AskResponse, asked bool, err error) {
	req.HoldMs = 1 // the first time only until it is durable, so that the person can be told
	lost := 0
	var deadline time.Time // on our own clock; zero: none known
	for {
		started := c.now()
		res, err := callWithin(ctx, node, hold+replyTimeout, node.Ask, req)
		if err != nil {
			late := !deadline.IsZero() && c.now().After(deadline.Add(unreachableMax))
			if !asTrouble(err).temporary() || ctx.Err() != nil || late {
				return nil, asked, err
			}
			if lost == 0 {
				c.notef("the node does not answer; trying again with the same attempt. Should this end, listen again with\n  %s\n", again)
			}
			req.HoldMs = 1
			line.away()
			if lost++; !pause(ctx, lost) {
				return nil, asked, err
			}
			continue
		}
		w := res.GetWaiting()
		if w == nil {
			return res, true, nil
		}
		if w.GetDeadlineMs() != 0 {
			deadline = c.now().Add(time.Duration(w.GetRemainingMs()) * time.Millisecond)
		}
		switch {
		case lost > 0:
			c.notef("the node is back; the question is still open\n")
		case !asked:
			c.notef("asked in session %s, call %s; waiting %s\n", req.Session, req.CallId, patience(w))
			if c.token == "" { // a node that took it without one asks nobody for a password
				c.notef("answer at  %s\n", node.page(req.Session, req.CallId))
			}
			line.note("answer it in another terminal with\n  %s\n", c.command("answer", nil, req.Session, req.CallId))
		case c.now().Sub(started) < retryFirst && !pause(ctx, 0): // a node that holds nothing out is not hammered
			return nil, true, ctx.Err()
		}
		line.waits(deadline)
		asked, lost, req.HoldMs = true, 0, hold.Milliseconds()
	}
}

func patience(w *messages.Waiting) string {
	if w.GetDeadlineMs() == 0 {
		return "without end"
	}
	return span(w.GetRemainingMs())
}

type askJSON struct {
	Outcome string       `json:"outcome"` // answered, skipped (every question was) or pending
	Session string       `json:"session"`
	CallID  string       `json:"callId"`
	Attempt string       `json:"attempt"`
	Answers []answerJSON `json:"answers,omitempty"`
	Message string       `json:"message,omitempty"`
	Collect string       `json:"collect,omitempty"`
	Result  string       `json:"result,omitempty"` // the text a tool would return
}

func (c *cli) printPending(req *messages.AskRequest, res *messages.AskResponse) error {
	if c.json {
		return c.printJSON(askJSON{Outcome: "pending", Session: req.Session, CallID: req.CallId, Attempt: req.Attempt,
			Message: res.GetPending().GetMessage(), Collect: c.collect(req.Session, req.Root), Result: res.GetResult()})
	}
	// On stderr: a script that looks only at stdout must not find something there that could be taken for an answer.
	c.notef("pending: nobody answered in time; this is not an answer and not permission\n")
	c.notef("  session  %s\n  call     %s\n", req.Session, req.CallId)
	c.notef("The question stays open. A late answer is queued for this session; collect it with\n")
	c.notef("  %s\n", c.collect(req.Session, req.Root))
	return nil
}

func (c *cli) printAnswer(req *messages.AskRequest, res *messages.AskResponse) error {
	answers := answersOf(res.GetAnswered().GetAnswers())
	outcome := "answered"
	if allSkipped(answers) {
		outcome, c.exit = "skipped", messages.ExitSkipped
	}
	if c.json {
		return c.printJSON(askJSON{Outcome: outcome, Session: req.Session, CallID: req.CallId, Attempt: req.Attempt,
			Answers: answers, Result: res.GetResult()})
	}
	if outcome == "skipped" {
		c.notef("every question was skipped: no answer and no permission\n")
		return nil
	}
	for _, a := range answers {
		c.printValues(a, len(answers) > 1)
	}
	return nil
}

// printValues prints one value per line, for people. The further lines of a value are indented, so that none of them
// looks like another answer; a script reads --json. A skip prints no value, and says on stderr that it is none.
func (c *cli) printValues(a answerJSON, named bool) {
	lead := ""
	if named {
		lead = oneLine(a.ID) + ": "
	}
	for _, label := range a.Selected {
		c.printf("%s%s\n", lead, oneLine(label))
	}
	if a.Custom != nil && *a.Custom != "" {
		c.printf("%s%s\n", lead, indented(*a.Custom))
	} else if len(a.Selected) == 0 {
		c.notef("%sskipped: no answer and no permission\n", lead)
	}
}
