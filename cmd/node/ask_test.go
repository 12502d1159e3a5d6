package main

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

func answered(items ...*messages.Answer) *messages.AskResponse {
	return &messages.AskResponse{Outcome: &messages.AskResponse_Answered{Answered: &messages.Answered{Answers: items}}, Result: "{}"}
}

// The flags make the questions; an option belongs to the question before it.
func TestAskFlagsMakeQuestions(t *testing.T) {
	var got *messages.AskRequest
	f := newFake(t)
	f.held("")
	on(f, messagesconnect.QuestionServiceAskProcedure, func(q *messages.AskRequest) (*messages.AskResponse, error) {
		got = q
		return answered(&messages.Answer{Id: "q1", Selected: []string{"eu"}}, &messages.Answer{Id: "tests", Selected: []string{"slow", "flaky"}, Custom: new("and e2e")}), nil
	})
	runCLI(t, f.url, "", "ask", "--timeout", "90s", "--question", "Which region?", "--option", "eu: Europe: west", "--option=us",
		"--question", "Skip which?", "--multi", "--id", "tests", "--option", "slow", "--option", "http://x").
		want(t, 0, "q1: eu\ntests: slow\ntests: flaky\ntests: and e2e\n", "")
	if got.GetTimeoutSeconds() != 90 || got.GetAttempt() != "q-7k2m9x4a" || got.GetCallId() != got.GetAttempt() || got.GetSession() != "s-7k2m9x4a" || got.GetRoot() != "cli" {
		t.Errorf("%v", got)
	}
	q := got.GetQuestions()
	if len(q) != 2 || q[0].GetId() != "q1" || q[0].GetMultiSelect() || q[0].GetOptions()[0].GetDescription() != "Europe: west" ||
		q[1].GetId() != "tests" || !q[1].GetMultiSelect() || q[1].GetOptions()[1].GetLabel() != "http://x" {
		t.Errorf("%v", q)
	}
}

// stdin is the tool's own arguments, sent as they stand.
func TestAskFromStdin(t *testing.T) {
	var got *messages.AskRequest
	f := newFake(t)
	f.held("")
	on(f, messagesconnect.QuestionServiceAskProcedure, func(q *messages.AskRequest) (*messages.AskResponse, error) {
		got = q
		return answered(&messages.Answer{Id: "q1"}), nil
	})
	text := `{"timeout": 9, "questions": [{"id": "q1", "question": "Ship it?"}]}`
	runCLI(t, f.url, text, "ask", "-").want(t, 76, "", "every question was skipped: no answer and no permission\n")
	if got.GetArguments() != text || len(got.GetQuestions()) != 0 || got.TimeoutSeconds != nil {
		t.Errorf("%v", got)
	}
}

// A node that restarts does not end the wait: the same attempt is sent again, and a pending call is no answer.
func TestAskRepeatsTheSameAttempt(t *testing.T) {
	var calls atomic.Int32
	attempts := map[string]bool{}
	f := newFake(t)
	f.held("cli")
	on(f, messagesconnect.QuestionServiceAskProcedure, func(q *messages.AskRequest) (*messages.AskResponse, error) {
		attempts[q.GetAttempt()+q.GetCallId()+q.GetQuestions()[0].GetQuestion()] = true
		switch calls.Add(1) {
		case 1:
			return &messages.AskResponse{Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{DeadlineMs: 1, RemainingMs: 60_000}}}, nil
		case 2, 3:
			return nil, messages.Refuse(messages.Unavailable, "stopping")
		}
		return &messages.AskResponse{Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{Message: "still open"}}, Result: `{"pending":true}`}, nil
	})
	r := runCLI(t, f.url, "", "ask", "Ship it?", "--session", "demo")
	r.err = strings.ReplaceAll(r.err, f.url, "NODE")
	r.want(t, 75, "", `asked in session demo, call q-7k2m9x4a; waiting 1m00s
answer at  NODE/answer/demo/q-7k2m9x4a
the node does not answer; trying again with the same attempt. Should this end, listen again with
  parley ask "Ship it?" --session demo --attempt q-7k2m9x4a --node NODE
pending: nobody answered in time; this is not an answer and not permission
  session  demo
  call     q-7k2m9x4a
The question stays open. A late answer is queued for this session; collect it with
  parley inbox demo --admit --wait --node NODE
`)
	if calls.Load() != 4 || len(attempts) != 1 {
		t.Errorf("%d calls, attempts %v", calls.Load(), attempts)
	}
	calls.Store(3)
	r = runCLI(t, f.url, "", "ask", "Ship it?", "--session", "demo", "--json")
	doc := r.document(t, r.out)
	if r.exit != 75 || doc["outcome"] != "pending" || doc["callId"] != "q-7k2m9x4a" || doc["collect"] == "" || doc["answers"] != nil {
		t.Errorf("exit %d, %v", r.exit, doc)
	}
}

// A session that another root holds is not taken from it unasked.
func TestAskLeavesOtherRootsAlone(t *testing.T) {
	f := newFake(t)
	f.held("agent-7")
	on(f, messagesconnect.QuestionServiceAskProcedure, func(*messages.AskRequest) (*messages.AskResponse, error) {
		return answered(&messages.Answer{Id: "q1", Custom: new("fine")}), nil
	})
	runCLI(t, f.url, "", "ask", "Ship it?", "--session", "demo").want(t, 10, "",
		"error: the session demo is held by the root agent-7 (CALLER_NOT_LIVE)\n"+
			"next:  use another --session; or speak as that root with --root agent-7; or take its place with --take-over, which ends its open questions\n")
	if got := f.requests(); got != "GetSession" {
		t.Errorf("requests: %s", got)
	}
	runCLI(t, f.url, "", "ask", "Ship it?", "--session", "demo", "--take-over").want(t, 0, "fine\n", "")
	runCLI(t, f.url, "", "ask", "Ship it?", "--session", "demo", "--root", "agent-7").want(t, 0, "fine\n", "")
}

// Nobody there: said at once, with the status of a node that cannot serve.
func TestNoNode(t *testing.T) {
	for _, line := range []string{"ask x", "questions", "questions --watch", "answer --skip", "inbox s", "inbox s --admit --wait", "sessions", "log s", "log s --follow", "withdraw s c"} {
		runCLI(t, "http://127.0.0.1:1", "", strings.Fields(line)...).want(t, 69, "",
			"error: no node listens at http://127.0.0.1:1, where PARLEY_NODE points (UNAVAILABLE)\nnext:  start one with `parley serve`, or name one with --node or PARLEY_NODE\n")
	}
}
