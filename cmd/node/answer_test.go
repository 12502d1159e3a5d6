package main

import (
	"strings"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

func batch() []*messages.Question {
	return []*messages.Question{
		{Id: "region", Question: "Which?", Options: []*messages.Option{{Label: "eu"}, {Label: "us"}}},
		{Id: "tests", Question: "Skip?", MultiSelect: true, Options: []*messages.Option{{Label: "slow"}, {Label: "flaky"}}},
		{Id: "note", Question: "Anything else?"},
	}
}

func TestAnswersFromFlags(t *testing.T) {
	words := func(items []*messages.Answer) string {
		var out []string
		for _, item := range answersOf(items) {
			out = append(out, answerWords(item, true))
		}
		return strings.Join(out, "; ")
	}
	for _, c := range []struct {
		name      string
		a         answering
		questions []*messages.Question
		want      string // the items, or the error
	}{
		{"one option", answering{options: []string{"us"}}, batch()[:1], "region: us"},
		{"several options", answering{options: []string{"slow", "flaky"}}, batch()[1:2], "tests: slow, flaky"},
		{"labels and text", answering{options: []string{"slow"}, texts: []string{"and e2e"}}, batch()[1:2], "tests: slow, and e2e"},
		{"a text with an equals sign", answering{texts: []string{"a=b"}}, batch()[2:], "note: a=b"},
		{"a text by id", answering{texts: []string{"note=a=b"}}, batch()[2:], "note: a=b"},
		{"a batch", answering{sets: []string{"tests=slow", "region=eu"}, texts: []string{"note=no"}}, batch(), "region: eu; tests: slow; note: no"},
		{"skip the rest", answering{sets: []string{"region=eu"}, skip: true}, batch(), "region: eu; tests: (skipped: no answer and no permission); note: (skipped: no answer and no permission)"},
		{"nothing", answering{}, batch(), "USAGE: there is no answer on the command line"},
		{"a hole is no skip", answering{sets: []string{"region=eu"}}, batch(), `BAD_ANSWER: the question "tests" has no answer`},
		{"a typing error", answering{options: []string{"eux"}}, batch()[:1], `BAD_ANSWER: "eux" is no option of the question "region"`},
		{"two of one", answering{options: []string{"eu", "us"}}, batch()[:1], `BAD_ANSWER: the question "region" takes a single option`},
		{"twice", answering{options: []string{"slow", "slow"}}, batch()[1:2], `BAD_ANSWER: the label "slow" is chosen twice`},
		{"option and text of one", answering{options: []string{"eu"}, texts: []string{"x"}}, batch()[:1], `BAD_ANSWER: the question "region" takes one answer`},
		{"option without id", answering{options: []string{"eu"}}, batch(), "USAGE: the call has 3 questions"},
		{"an unknown id", answering{sets: []string{"zone=eu"}}, batch(), `BAD_ANSWER: --set "zone=eu" does not start with a question's id and =`},
		{"text without id", answering{texts: []string{"hello"}}, batch(), `BAD_ANSWER: --text "hello" does not start with a question's id and =`},
		{"a blank text", answering{texts: []string{"  "}}, batch()[2:], `BAD_ANSWER: the text for the question "note" is blank`},
		{"no options", answering{options: []string{"x"}}, batch()[2:], `BAD_ANSWER: the question "note" has no options`},
		{"a long text", answering{texts: []string{strings.Repeat("x", messages.TextBytesMax+1)}}, batch()[2:], "TOO_LARGE: --text has 65537 bytes, the limit is 65536"},
	} {
		items, err := c.a.answers(c.questions)
		got := words(items)
		if err != nil {
			got = asTrouble(err).Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The only open question needs no name; the receipt says in time or late.
func TestAnswerTheOnlyQuestion(t *testing.T) {
	var got *messages.SubmitRequest
	outcome := &messages.Settlement{Outcome: "answered"}
	f := newFake(t)
	settled := shipIt("settled")
	settled.CallId = "q-0"
	f.rows(settled, shipIt("open"))
	on(f, messagesconnect.QuestionServiceSubmitProcedure, func(q *messages.SubmitRequest) (*messages.SubmitResponse, error) {
		got = q
		return &messages.SubmitResponse{Settlement: outcome, Repeated: q.GetSubmissionId() == "again"}, nil
	})
	runCLI(t, f.url, "", "answer", "--option", "Yes").want(t, 0,
		"answered in time: it is the result of call q-1 in session demo\n  submission  a-7k2m9x4a\n", "")
	if got.GetBy() != "ada" || got.GetOnExpired() != messages.OnExpired_ON_EXPIRED_LATE || got.GetAnswers()[0].GetSelected()[0] != "Yes" {
		t.Errorf("%v", got)
	}
	outcome = &messages.Settlement{Outcome: "queued", MessageId: "reply-1"}
	runCLI(t, f.url, "", "answer", "demo", "q-1", "--text", "not yet", "--submission-id", "again", "--on-expired", "reject").want(t, 0,
		"queued as a late reply: the agent of session demo takes it exactly once\n  message     reply-1\n  submission  again\n"+
			"This submission had been accepted before; it counts once.\n", "")
	if got.GetOnExpired() != messages.OnExpired_ON_EXPIRED_REJECT || got.GetAnswers()[0].GetCustom() != "not yet" {
		t.Errorf("%v", got)
	}
	r := runCLI(t, f.url, `[{"id": "q1", "selected": ["No"], "custom": ""}]`, "answer", "-", "--json")
	if doc := r.document(t, r.out); doc["submissionId"] != "a-7k2m9x4a" || got.GetAnswers()[0].GetSelected()[0] != "No" || got.GetAnswers()[0].Custom == nil {
		t.Errorf("%v, %v", doc, got)
	}
}

// Several open questions: shown, and none is guessed.
func TestAnswerGuessesNothing(t *testing.T) {
	f := newFake(t)
	other := shipIt("continued")
	other.CallId = "q-2"
	f.rows(shipIt("open"), other)
	r := runCLI(t, f.url, "", "answer", "--option", "Yes")
	if r.exit != 2 || !strings.Contains(r.err, "q-2") || !strings.Contains(r.err, "2 questions are open; say which one") {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	f = newFake(t)
	f.rows()
	runCLI(t, f.url, "", "answer", "--option", "Yes").want(t, 25, "",
		"error: no question is open (NOT_FOUND)\nnext:  `parley questions --watch --node "+f.url+"` shows the next one\n")
}

// A loser is told who won, and gets the code's exit status (fault R1).
func TestAnswerTellsTheLoser(t *testing.T) {
	f := newFake(t)
	f.rows(shipIt("open"))
	on(f, messagesconnect.QuestionServiceSubmitProcedure, func(*messages.SubmitRequest) (*messages.SubmitResponse, error) {
		e := messages.Refuse(messages.Settled, "call q-1 is settled")
		e.Winner = &messages.Settlement{Outcome: "answered", By: "bob", Door: "web", SubmissionId: "w-1"}
		return nil, e
	})
	runCLI(t, f.url, "", "answer", "--option", "No").want(t, 23, "",
		"error: call q-1 is settled; bob answered first, through web (SETTLED)\nnext:  Nothing to do; your draft was not used.\n")
	r := runCLI(t, f.url, "", "answer", "--option", "No", "--json")
	doc := r.document(t, r.err)
	winner, _ := doc["winner"].(map[string]any)
	if r.exit != 23 || r.out != "" || doc["code"] != "SETTLED" || doc["remedy"] == "" || winner["by"] != "bob" || winner["submissionId"] != "w-1" {
		t.Errorf("exit %d, %v", r.exit, doc)
	}
}
