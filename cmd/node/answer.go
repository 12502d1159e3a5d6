package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

type answering struct {
	options, texts, sets []string
	skip                 bool
	by, submission       string
	onExpired            string
}

func (c *cli) answerCommand() *cobra.Command {
	var a answering
	cmd := &cobra.Command{
		Use:   "answer [[SESSION] CALL] [flags] [-]",
		Short: "Answer a question, in time or late",
		Long: `Answer a question. Without SESSION and CALL, the only open one. CALL alone is
enough where no other session has the same, and so are the first letters of an
id, four or more; SESSION alone names the only open question of that session.

Without an answer on the command line, and on a terminal, it opens a card: a
list to pick from when several questions are open, then the question. A
countdown near its end says when the agent would go on without you. From your
first key on, its call does not end while the card is open. Keys:

  1 … 9          pick an option; in a multiple choice turn it on or off
  Up, Down, j, k move; Space picks where you are
  i              write in your own words: in place of a single choice, beside
                 a multiple one; Esc leaves the text
  Enter          send, or go on to the next question; it chooses nothing
  Shift+Enter    a new line in a text; Alt+Enter and Ctrl+J where the
                 terminal cannot tell it from Enter
  Tab, Shift+Tab the next question, the one before
  s              skip the question: no answer and no permission
  PgUp, PgDn     read what does not fit the screen
  Esc            leave without an answer (exit status 75), and print what you
                 wrote. The deadline has not moved: if it has passed, the
                 agent's call returns at once, and the question stays open

--option takes a label as it stands, in other letters' case, or without what
follows its first colon; or the number of an option, where no label begins with
a digit. What it was taken for is printed.

An answer in time is the result of the agent's call. A late one is queued for
the agent, which takes it exactly once. If somebody else was first you are
told who.

With - the answers are read from stdin as JSON: [{"id", "selected": [label], "custom"}].`,
		Example: `  parley answer
  parley answer --option Yes
  parley answer q-7k2m --option 2
  parley answer demo q-7k2m9x4a --text "Not before Monday"
  parley answer demo q-7k2m9x4a --set region=eu --set tests=slow --set tests=flaky
  parley answer --skip`,
		Args: args(0, 3, "SESSION and CALL, CALL alone, or nothing"),
		RunE: func(cmd *cobra.Command, words []string) error { return c.runAnswer(cmd.Context(), a, words) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&a.options, "option", nil, "choose this `label`; repeat it where several may be chosen")
	f.StringArrayVar(&a.texts, "text", nil, "answer in your own `words`; ID=TEXT among several questions")
	f.StringArrayVar(&a.sets, "set", nil, "choose by question: `ID=LABEL`; repeat it")
	f.BoolVar(&a.skip, "skip", false, "skip what no other flag answers")
	f.StringVar(&a.by, "by", "", "`name` of who answers (default: your user name)")
	f.StringVar(&a.submission, "submission-id", "", "repeat an earlier submission by its `id` (default: a new one)")
	f.StringVar(&a.onExpired, "on-expired", "late", "`action` if the call has returned meanwhile: late (queue the answer) or reject (refuse it)")
	return cmd
}

func (c *cli) runAnswer(ctx context.Context, a answering, words []string) error {
	fromStdin := len(words) > 0 && words[len(words)-1] == "-"
	if fromStdin {
		words = words[:len(words)-1]
	}
	req, err := c.submission(a, words)
	if err != nil {
		return err
	}
	if fromStdin {
		if req.Answers, err = c.readAnswers(a); err != nil {
			return err
		}
	}
	node, err := c.dial()
	if err != nil {
		return err
	}
	rows, cursor, err := c.candidates(ctx, node, words)
	if err != nil {
		return err
	}
	if screen := c.console(); screen != nil && !fromStdin && a.blank() {
		return c.sit(ctx, node, screen, req, rows, cursor)
	}
	row, err := c.only(rows)
	if err != nil {
		return err
	}
	if req.Session, req.CallId = row.GetSession(), row.GetCallId(); !fromStdin {
		if req.Answers, err = a.answers(row.GetQuestions()); err != nil {
			if a.blank() && c.token == "" && answerable(row) {
				t := asTrouble(err)
				t.remedy += "; or answer at " + node.page(row.GetSession(), row.GetCallId())
			}
			return err
		}
		c.sayChosen(a, req.Answers)
	}
	res, err := repeat(ctx, node, node.Submit, req)
	if err != nil {
		if t := asTrouble(err); t.temporary() {
			t.remedy, t.line = "it counts once, however often it is sent; repeat it with", c.resubmit(a, req, fromStdin)
		}
		return err
	}
	return c.printReceipt(req, res)
}

// sayChosen prints what was chosen, where the command line has other words for it.
func (c *cli) sayChosen(a answering, items []*messages.Answer) {
	given := slices.Clone(a.options)
	for _, set := range a.sets {
		_, label, _ := strings.Cut(set, "=")
		given = append(given, label)
	}
	for _, item := range answersOf(items) {
		if slices.ContainsFunc(item.Selected, func(label string) bool { return !slices.Contains(given, label) }) {
			c.block(c.err, "chosen: ", answerWords(item, len(items) > 1))
		}
	}
}

// resubmit is the command that sends the same submission again.
func (c *cli) resubmit(a answering, req *messages.SubmitRequest, fromStdin bool) string {
	var flags []string
	for _, given := range []struct {
		name   string
		values []string
	}{{"--option", a.options}, {"--set", a.sets}, {"--text", a.texts}} {
		for _, value := range given.values {
			flags = append(flags, given.name, value)
		}
	}
	if a.skip {
		flags = append(flags, "--skip")
	}
	if a.by != "" {
		flags = append(flags, "--by", a.by)
	}
	if a.onExpired != "late" {
		flags = append(flags, "--on-expired", a.onExpired)
	}
	flags = append(flags, "--submission-id", req.SubmissionId)
	if fromStdin {
		return c.command("answer", flags, req.Session, req.CallId, "-") + " < FILE"
	}
	return c.command("answer", flags, req.Session, req.CallId)
}

// submission checks what needs no node.
func (c *cli) submission(a answering, words []string) (*messages.SubmitRequest, error) {
	names := [][]string{{}, {"CALL"}, {"SESSION", "CALL"}}
	if len(words) >= len(names) {
		return nil, usage("`parley answer SESSION CALL --option LABEL`", "a call is named by its session and its id")
	}
	for i, word := range words {
		if err := checkIDs(names[len(words)][i], word); err != nil {
			return nil, err
		}
	}
	req := &messages.SubmitRequest{SubmissionId: a.submission, By: a.by, Door: door}
	if req.SubmissionId == "" {
		req.SubmissionId = "a-" + c.newID()
	}
	if err := checkIDs("--submission-id", req.SubmissionId); err != nil {
		return nil, err
	}
	if req.By == "" {
		req.By = c.user()
	}
	if err := onLine(messages.CheckText("--by", req.By, messages.NameBytesMax)); err != nil {
		return nil, err
	}
	if err := oneOf("--on-expired", a.onExpired, "late", "reject"); err != nil {
		return nil, err
	}
	req.OnExpired = messages.OnExpired_ON_EXPIRED_LATE
	if a.onExpired == "reject" {
		req.OnExpired = messages.OnExpired_ON_EXPIRED_REJECT
	}
	return req, nil
}

func (c *cli) user() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if user, _ := c.env(name); strings.TrimSpace(user) != "" && utf8.ValidString(user) {
			return user
		}
	}
	return door
}

// blank reports whether the command line holds no answer.
func (a answering) blank() bool { return len(a.options)+len(a.texts)+len(a.sets) == 0 && !a.skip }

// readAnswers takes the answers from stdin: a list of items, or the tool's own result.
func (c *cli) readAnswers(a answering) ([]*messages.Answer, error) {
	if !a.blank() {
		return nil, usage("put all of it into the JSON", "with - the answers come from stdin")
	}
	text, err := io.ReadAll(io.LimitReader(c.in, messages.ArgumentsBytesMax+1))
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, usage("write it in UTF-8", "stdin is not UTF-8")
	}
	if err := orNil(messages.CheckText("stdin", string(text), messages.ArgumentsBytesMax)); err != nil {
		return nil, err
	}
	var doc struct {
		Answers []answerJSON `json:"answers"`
	}
	into := any(&doc)
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		into = &doc.Answers
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return nil, refuse(messages.BadAnswer, "", "stdin: %v", err)
	}
	var out []*messages.Answer
	for _, item := range doc.Answers {
		out = append(out, &messages.Answer{Id: item.ID, Selected: item.Selected, Custom: item.Custom})
	}
	return out, nil
}

// answers builds one item for every question, or says which question lacks one.
func (a answering) answers(questions []*messages.Question) ([]*messages.Answer, error) {
	if len(questions) == 0 {
		return nil, refuse(messages.NotAnswerable, "", "the call holds no question that can be read")
	}
	if a.blank() {
		return nil, usage(waysToAnswer(questions), "there is no answer on the command line")
	}
	byID := map[string]*messages.Answer{}
	for _, q := range questions {
		byID[q.GetId()] = &messages.Answer{Id: q.GetId()}
	}
	if len(a.options) > 0 && len(questions) != 1 {
		return nil, usage("choose by question: --set ID=LABEL; the ids are "+idsOf(questions), "the call has %d questions", len(questions))
	}
	for _, label := range a.options {
		if err := choose(byID[questions[0].GetId()], questions[0], label); err != nil {
			return nil, err
		}
	}
	for _, set := range a.sets {
		q, label, err := addressed("--set", set, questions)
		if err != nil {
			return nil, err
		}
		if err := choose(byID[q.GetId()], q, label); err != nil {
			return nil, err
		}
	}
	for _, text := range a.texts {
		q, words, err := addressed("--text", text, questions)
		if err != nil {
			return nil, err
		}
		if err := write(byID[q.GetId()], q, words); err != nil {
			return nil, err
		}
	}
	return a.complete(questions, byID)
}

// complete refuses a batch with holes: only --skip makes a skip.
func (a answering) complete(questions []*messages.Question, byID map[string]*messages.Answer) ([]*messages.Answer, error) {
	var out []*messages.Answer
	for _, q := range questions {
		item := byID[q.GetId()]
		if len(item.GetSelected()) == 0 && item.Custom == nil && !a.skip {
			return nil, refuse(messages.BadAnswer, fmt.Sprintf("add --set %s=LABEL or --text %s=…, or --skip for what is left", q.GetId(), q.GetId()),
				"the question %q has no answer", q.GetId())
		}
		out = append(out, item)
	}
	return out, nil
}

// addressed splits ID=VALUE. With a single question the id may be left out of a text.
func addressed(flag, value string, questions []*messages.Question) (*messages.Question, string, error) {
	id, rest, found := strings.Cut(value, "=")
	if found {
		for _, q := range questions {
			if q.GetId() == id {
				return q, rest, nil
			}
		}
	}
	if len(questions) == 1 && flag == "--text" {
		return questions[0], value, nil
	}
	return nil, "", refuse(messages.BadAnswer, "the ids are "+idsOf(questions), "%s %q does not start with a question's id and =", flag, value)
}

// choose adds a label. One that is not offered is refused: a typing error would reach the agent as an answer.
func choose(item *messages.Answer, q *messages.Question, word string) error {
	labels := labelsOf(q)
	if len(labels) == 0 {
		return refuse(messages.BadAnswer, "answer it with --text", "the question %q has no options", q.GetId())
	}
	label, found := labelOf(q, word)
	switch {
	case !found:
		return refuse(messages.BadAnswer, "the labels are "+strings.Join(labels, " | ")+"; --text takes other words",
			"%q is no option of the question %q", word, q.GetId())
	case slices.Contains(item.Selected, label):
		return refuse(messages.BadAnswer, "name it once", "the label %q is chosen twice", label)
	case !q.GetMultiSelect() && len(item.Selected) > 0:
		return refuse(messages.BadAnswer, "choose one of them", "the question %q takes a single option", q.GetId())
	}
	item.Selected = append(item.Selected, label)
	return nil
}

// labelOf is the one label that a word means: as it stands, in other letters' case, as it is shown with its description,
// or without what follows its first colon. A number means an option only where no label could be taken for one.
func labelOf(q *messages.Question, word string) (label string, found bool) {
	head := func(label string) string { before, _, _ := strings.Cut(label, ":"); return strings.TrimSpace(before) }
	for _, same := range []func(o *messages.Option) bool{
		func(o *messages.Option) bool { return o.GetLabel() == word },
		func(o *messages.Option) bool { return strings.EqualFold(o.GetLabel(), word) },
		func(o *messages.Option) bool { return strings.EqualFold(o.GetLabel()+": "+o.GetDescription(), word) },
		func(o *messages.Option) bool { return strings.EqualFold(head(o.GetLabel()), word) },
	} {
		n := 0
		for _, o := range q.GetOptions() {
			if same(o) {
				label, n = o.GetLabel(), n+1
			}
		}
		if n > 0 {
			return label, n == 1
		}
	}
	at, err := strconv.ParseUint(word, 10, 16) // which takes no sign: +1 is a word
	digits := slices.ContainsFunc(q.GetOptions(), func(o *messages.Option) bool {
		first, _ := utf8.DecodeRuneInString(o.GetLabel())
		return unicode.IsDigit(first)
	})
	if err != nil || digits || at < 1 || at > uint64(len(q.GetOptions())) {
		return "", false
	}
	return q.GetOptions()[at-1].GetLabel(), true
}

// write adds free text. Of a single choice it takes the place, so both together are a contradiction.
func write(item *messages.Answer, q *messages.Question, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return refuse(messages.BadAnswer, "write something, or --skip", "the text for the question %q is blank", q.GetId())
	case item.Custom != nil:
		return refuse(messages.BadAnswer, "put it into one --text", "the question %q has two texts", q.GetId())
	case !q.GetMultiSelect() && len(item.Selected) > 0:
		return refuse(messages.BadAnswer, "choose a label or write a text", "the question %q takes one answer", q.GetId())
	}
	item.Custom = &text
	return orNil(messages.CheckText("--text", text, messages.TextBytesMax))
}

func labelsOf(q *messages.Question) []string {
	var labels []string
	for _, o := range q.GetOptions() {
		labels = append(labels, o.GetLabel())
	}
	return labels
}

func idsOf(questions []*messages.Question) string {
	var ids []string
	for _, q := range questions {
		ids = append(ids, q.GetId())
	}
	return strings.Join(ids, ", ")
}

func waysToAnswer(questions []*messages.Question) string {
	if len(questions) > 1 {
		return "use --set ID=LABEL or --text ID=…, for each of " + idsOf(questions) + "; or --skip"
	}
	if labels := labelsOf(questions[0]); len(labels) > 0 {
		return "use --option with one of " + strings.Join(labels, " | ") + "; or --text …, or --skip"
	}
	return "use --text …, or --skip"
}

type receiptJSON struct {
	Session      string          `json:"session"`
	CallID       string          `json:"callId"`
	SubmissionID string          `json:"submissionId"`
	Settlement   *settlementJSON `json:"settlement"`
	Repeated     bool            `json:"repeated"`
}

func (c *cli) printReceipt(req *messages.SubmitRequest, res *messages.SubmitResponse) error {
	if c.json {
		return c.printJSON(receiptJSON{req.Session, req.CallId, req.SubmissionId, settlementOf(res.GetSettlement()), res.GetRepeated()})
	}
	s := res.GetSettlement()
	switch s.GetOutcome() {
	case "answered":
		c.printf("answered in time: it is the result of call %s in session %s\n", oneLine(req.CallId), oneLine(req.Session))
	case "skipped":
		c.printf("skipped in time: call %s in session %s has no answer and no permission\n", oneLine(req.CallId), oneLine(req.Session))
	case "queued":
		c.printf("queued as a late reply: the agent of session %s takes it exactly once\n  message     %s\n", oneLine(req.Session), oneLine(s.GetMessageId()))
	default:
		c.printf("%s\n", oneLine(settledWords(s)))
	}
	c.printf("  submission  %s\n", req.SubmissionId)
	if res.GetRepeated() {
		c.printf("This submission had been accepted before; it counts once.\n")
	}
	return nil
}
