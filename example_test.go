package parley_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
)

// quiet keeps the log lines out of the examples.
var quiet = slog.New(slog.DiscardHandler)

// open starts a node that forgets everything; real ones have a Path.
func open() *parley.Node {
	node, err := parley.Open(parley.Config{Memory: true, Logger: quiet})
	if err != nil {
		panic(err)
	}
	return node
}

var deploy = parley.Question{ID: "env", Text: "Deploy where?", Options: []parley.Option{
	{Label: "staging (Recommended)"}, {Label: "production"}}}

// outcome is what an ask came to.
type outcome struct {
	parley.Result
	err error
}

// ask starts an ask and returns, once it is durable, where its result will be.
func ask(agent *parley.Agent, call string, timeout time.Duration) <-chan outcome {
	results, asked := make(chan outcome, 1), make(chan bool, 8)
	agent.AskAsync(parley.Ask{
		Attempt: "attempt-" + call, CallID: call, Questions: []parley.Question{deploy}, Timeout: timeout,
		OnWaiting: func(parley.Waiting) { asked <- true },
	}, func(r parley.Result, err error) { results <- outcome{r, err} })
	<-asked
	return results
}

// show prints a result the way a program has to read it: by its type.
func show(o outcome) {
	switch r := o.Result.(type) {
	case parley.Answered:
		fmt.Println("answered:", r.Answers[0].Selected)
	case parley.Pending:
		fmt.Println("pending:", r.CallID)
	default:
		fmt.Println("failed:", messages.CodeOf(o.err))
	}
}

// An agent asks, a person answers in time, and the answer is the tool result.
func Example() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})

	results, asked := make(chan parley.Result, 1), make(chan parley.Waiting, 1)
	agent.AskAsync(parley.Ask{
		CallID: "call-1", Questions: []parley.Question{deploy},
		OnWaiting: func(w parley.Waiting) { asked <- w },
	}, func(r parley.Result, err error) { results <- r })
	<-asked // from here on the question survives whatever happens to us

	list, _ := node.Questions(ctx, parley.Filter{})
	for _, q := range list.Questions {
		fmt.Println(q.GetState(), q.GetCallId(), q.GetQuestions()[0].GetQuestion())
	}
	won, _ := node.Answer(ctx, "session-1", "call-1", "ann", parley.Choose("env", "production"))
	fmt.Println(won.Outcome, "by", won.By)
	fmt.Println((<-results).ToolResult())
	// Output:
	// open call-1 Deploy where?
	// answered by ann
	// {"answers":[{"id":"env","selected":["production"]}]}
}

// Nobody answers in time: the call returns pending, which is not an answer. The
// question stays open, the late answer is queued, and the agent gets it once.
func Example_late() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	results := ask(agent, "call-1", 0)

	claim, _ := node.AttachWait(ctx, "session-1", "call-1") // a person looks at it …
	_, _ = claim.Expire(ctx, "ann")                         // … until their own countdown ends
	show(<-results)

	won, _ := node.Answer(ctx, "session-1", "call-1", "ann", parley.Choose("env", "production"))
	fmt.Println(won.Outcome)
	row, _ := node.Question(ctx, "session-1", "call-1")
	fmt.Println(row.GetState())

	_, _ = agent.AwaitMessages(ctx)
	for range 2 {
		late, _ := agent.Collect(ctx)
		fmt.Println(len(late), "messages")
		for _, m := range late {
			answers, _ := m.Answers()
			fmt.Println("reply to", m.ReplyTo, answers[0].Selected)
		}
	}
	row, _ = node.Question(ctx, "session-1", "call-1")
	fmt.Println(row.GetState(), row.GetSettlement().GetOutcome(), "by", row.GetSettlement().GetBy())
	// Output:
	// pending: call-1
	// queued
	// replied
	// 1 messages
	// reply to call-1 [production]
	// 0 messages
	// settled answered by ann
}

// While somebody holds a question, its deadline does not run. Call 1 is asked
// first and has the earlier deadline, yet call 2 is pending before it.
func Example_claim() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	first := ask(agent, "call-1", time.Second)
	claim, _ := node.AttachWait(ctx, "session-1", "call-1")
	second := ask(agent, "call-2", 2*time.Second)

	show(<-second)
	row, _ := node.Question(ctx, "session-1", "call-1")
	left, _ := claim.Remaining()
	fmt.Println("call-1 is", row.GetState(), "with", left, "left")

	claim.Release() // the deadline is the original one, and has passed
	show(<-first)
	// Output:
	// pending: call-2
	// call-1 is open with 0s left
	// pending: call-1
}

// An agent takes its question back. An answer then comes to a settled question,
// and whoever sent it learns why it was not used.
func Example_withdraw() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	results := ask(agent, "call-1", 0)

	ended, _ := agent.Withdraw(ctx, "call-1", "found it in the docs")
	fmt.Println(ended.Outcome)
	show(<-results)

	_, err := node.Answer(ctx, "session-1", "call-1", "ann", parley.Choose("env", "production"))
	winner, _ := parley.WinnerOf(err)
	fmt.Println(messages.CodeOf(err), winner.Outcome, "by", winner.By+":", winner.Reason)
	// Output:
	// withdrawn
	// failed: ASK_ABORTED
	// SETTLED withdrawn by agent-1: found it in the docs
}

// An agent that dies between taking a reply and showing it to its model gets
// the reply again, under the same id, until it says that the model has it.
func Example_receipts() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	ask(agent, "call-1", 0)
	_, _ = agent.EndForeground(ctx, "call-1", "attempt-call-1", "the agent has other work")
	_, _ = node.Answer(ctx, "session-1", "call-1", "ann", parley.Choose("env", "staging"))

	first, _ := agent.CollectReplies(ctx, "") // and here the agent dies
	again, _ := agent.CollectReplies(ctx, "")
	fmt.Println(len(again.List), again.List[0].Redelivered, again.List[0].MessageID == first.List[0].MessageID)
	after, _ := agent.CollectReplies(ctx, again.Token)
	fmt.Println(len(after.List))
	// Output:
	// 1 true true
	// 0
}

// Two people answer at once. One wins; the other learns who did, and that
// their own answer was not used.
func Example_race() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	results := ask(agent, "call-1", 0)

	errs := make(chan error, 2)
	for _, who := range []string{"ann", "bob"} {
		go func() {
			_, err := node.Answer(ctx, "session-1", "call-1", who, parley.Choose("env", "for "+who))
			errs <- err
		}()
	}
	one, other := <-errs, <-errs
	if one != nil {
		one, other = other, one
	}
	winner, _ := parley.WinnerOf(other)
	answered := (<-results).Result.(parley.Answered)
	fmt.Println(one, messages.CodeOf(other))
	fmt.Println("the loser was told who won:", answered.Answers[0].Selected[0] == "for "+winner.By)
	// Output:
	// <nil> SETTLED
	// the loser was told who won: true
}

// A client follows all questions from one cursor: first what is there, then
// every change, each once.
func Example_watch() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	ask(agent, "call-1", 0)

	var cursor int64
	for change, err := range node.Watch(ctx, parley.WatchOptions{}) {
		if err != nil {
			panic(err)
		}
		if change.Live { // the start is complete; what follows is new
			cursor = change.Cursor
			break
		}
		fmt.Println(change.Question.GetCallId(), change.Question.GetState())
	}
	_, _ = node.Answer(ctx, "session-1", "call-1", "ann", parley.Skip("env")) // while we were away
	for change := range node.Watch(ctx, parley.WatchOptions{Cursor: cursor}) {
		fmt.Println(change.Question.GetCallId(), change.Question.GetState(), "by", change.Question.GetSettlement().GetBy())
		break
	}
	// Output:
	// call-1 open
	// call-1 settled by ann
}

// An agent with a loop of its own names its turns and steps. What it claims
// for a turn stays queued until it is admitted; what it has admitted is history.
func Example_turns() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	_, _ = node.Steer(ctx, parley.Steering{Session: "session-1", Text: "Please deploy.", By: "ann", NextTurn: true})

	turn, _ := agent.BeginTurn(ctx, 0)
	admitted, _ := agent.BeginStep(ctx, turn, 1) // takes what waits for this step
	fmt.Println("step 1 reads:", admitted[0].Text)

	_, _ = node.Steer(ctx, parley.Steering{Session: "session-1", Text: "And be quick.", By: "ann"})
	claimed, _ := agent.ClaimMessages(ctx, turn, false)
	_, err := agent.Admit(ctx, turn, claimed[0].ID)
	fmt.Println("step 1 also reads:", claimed[0].Text, err)

	_ = agent.EndStep(ctx, turn, 1)
	_ = agent.EndTurn(ctx, turn)
	left, _ := node.Inbox(ctx, "session-1")
	fmt.Println(len(left), "left")
	// Output:
	// step 1 reads: Please deploy.
	// step 1 also reads: And be quick. <nil>
	// 0 left
}

// A program that a model wrote asks: code that runs inside of a tool call. What
// it asks is a question like any other, under an id below the call's own. When
// the program ends without its answers they come late, like any other.
func Example_program() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	results := make(chan outcome, 1)
	asked := make(chan bool, 8)
	agent.AskAsync(parley.Ask{
		ParentCall: "run-1", CallID: parley.SubCallID("run-1", 1), Attempt: "attempt-1", Questions: []parley.Question{deploy},
		OnWaiting: func(parley.Waiting) { asked <- true },
	}, func(r parley.Result, err error) { results <- outcome{r, err} })
	<-asked

	_, _ = agent.EndForeground(ctx, "run-1:ptc:1", "attempt-1", "the program has ended")
	show(<-results)
	won, _ := node.Answer(ctx, "session-1", "run-1:ptc:1", "ann", parley.Choose("env", "production"))
	late, _ := agent.Collect(ctx)
	fmt.Println(won.Outcome, late[0].ReplyTo)
	// Output:
	// pending: run-1:ptc:1
	// queued run-1:ptc:1
}

// A second agent takes the session over. The first one's open question is not
// lost: it can still be answered, and the second agent gets the reply.
func Example_takeover() {
	ctx, node := context.Background(), open()
	defer node.Close(ctx)
	old, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	results := ask(old, "call-1", 0)

	agent, _ := node.Attach(ctx, "session-1", "agent-2", parley.AttachOptions{})
	show(<-results)
	won, _ := node.Answer(ctx, "session-1", "call-1", "ann", parley.Choose("env", "production"))
	late, _ := agent.Collect(ctx)
	fmt.Println(agent.Attached.TookOver, won.Outcome, len(late))
	_, err := old.Collect(ctx)
	fmt.Println(messages.CodeOf(err))
	// Output:
	// failed: CALLER_NOT_LIVE
	// true queued 1
	// CALLER_NOT_LIVE
}

// Everything is in one file. A node that stops settles nothing: the next one
// finds the question open, and the same attempt listens to it again.
func Example_restart() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(dir)
	file := parley.Config{Path: filepath.Join(dir, "parley.db"), Logger: quiet}
	question := parley.Ask{Attempt: "attempt-1", CallID: "call-1", Questions: []parley.Question{deploy}}

	node, err := parley.Open(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	asked, ended := make(chan bool, 8), make(chan error, 1)
	question.OnWaiting = func(parley.Waiting) { asked <- true }
	agent.AskAsync(question, func(_ parley.Result, err error) { ended <- err })
	<-asked
	fmt.Println("closed:", node.Close(ctx))
	fmt.Println("the caller:", messages.CodeOf(<-ended))

	node, _ = parley.Open(file)
	defer node.Close(ctx)
	agent, _ = node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	results := make(chan outcome, 1)
	agent.AskAsync(question, func(r parley.Result, err error) { results <- outcome{r, err} })
	<-asked
	_, _ = node.Answer(ctx, "session-1", "call-1", "ann", parley.Choose("env", "staging (Recommended)"))
	show(<-results)
	// Output:
	// closed: <nil>
	// the caller: UNAVAILABLE
	// answered: [staging (Recommended)]
}

// The doors on one port. Every service speaks plain JSON over HTTP.
func ExampleNode_Serve() {
	ctx, stop := context.WithCancel(context.Background())
	node := open()
	defer node.Close(context.Background())
	agent, _ := node.Attach(ctx, "session-1", "agent-1", parley.AttachOptions{})
	ask(agent, "call-1", 0)

	addr, served := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		served <- node.Serve(ctx, parley.ServeOptions{Listen: "127.0.0.1:0", Ready: func(a net.Addr) { addr <- a }})
	}()
	url := "http://" + (<-addr).String() + "/parley.v1.QuestionService/Dismiss"
	res, err := http.Post(url, "application/json", strings.NewReader(`{"session": "session-1", "callId": "   "}`))
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	stop()
	fmt.Println(<-served)
	// Output:
	// 400 Bad Request
	// <nil>
}

// A configuration tells all its mistakes at once.
func ExampleConfig_Validate() {
	_, err := parley.Open(parley.Config{NodeName: "a/b", Expiry: "never"})
	fmt.Println(err)
	// Output:
	// BAD_REQUEST: the configuration is not valid: give exactly one of Path, Memory and Journal; 0 are set
	// NodeName "a/b" holds a slash or a NUL
	// Expiry is "never"; use "unanimous" or "first" (Correct the named field.)
}
