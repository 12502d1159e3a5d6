package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

const (
	crashWorkers = 4
	crashRounds  = 3 // kills without PARLEY_CRASH_N
)

// crashes is a node that is killed again and again under work, and what it promised meanwhile.
type crashes struct {
	t    *testing.T
	node *realNode
	addr string
	over atomic.Bool
	done chan struct{} // one token per thing that was acknowledged

	mu       sync.Mutex
	receipts map[string]receipt // by call
	results  map[string]string  // what an ask returned, by call: a label, or "" for pending
	admitted map[string]int     // by message
	deadline map[string]int64   // as the node showed it, by call
}

type receipt struct{ session, submission, label, outcome, message string }

// A node is killed while people ask, answer and admit through it. Whatever it had acknowledged is in its log, once;
// a repeated submission always gets the first outcome, and no deadline moves (promises 1 to 7). Kill and polite
// stop take turns.
func TestCrash(t *testing.T) {
	t.Parallel()
	rounds := crashRounds
	if text := os.Getenv("PARLEY_CRASH_N"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("PARLEY_CRASH_N=%q is no number of kills", text)
		}
		rounds = n
	}
	node := serveNode(t)
	c := &crashes{t: t, node: node, addr: node.addr, done: make(chan struct{}, 10_000),
		receipts: map[string]receipt{}, results: map[string]string{}, admitted: map[string]int{}, deadline: map[string]int64{}}
	var working sync.WaitGroup
	for i := range crashWorkers {
		working.Go(func() { c.work(t.Context(), fmt.Sprintf("s%d", i)) })
	}
	for round := range rounds {
		for range 1 + rand.N(12) { // killed after some work, wherever the rest of it is
			c.awaitWork()
		}
		c.look()
		c.node.stop([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[round%2])
		c.node.serve(t)
		c.look()
	}
	c.over.Store(true) // everybody finishes what they are at, so that nothing is left open below
	working.Wait()
	late := 0
	for i := range crashWorkers {
		late += c.audit(fmt.Sprintf("s%d", i))
	}
	t.Logf("%d kills; %d submissions acknowledged, %d of them late; %d messages handed out; %d deadlines seen",
		rounds, len(c.receipts), late, len(c.admitted), len(c.deadline))
}

// look notes the deadlines that the node shows, each the same as ever.
func (c *crashes) look() {
	list, err := messagesconnect.NewQuestionServiceClient(http.DefaultClient, "http://"+c.addr).ListQuestions(c.t.Context(),
		connect.NewRequest(&messages.ListQuestionsRequest{}))
	if err != nil {
		c.t.Errorf("listing: %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range list.Msg.GetQuestions() {
		if row.GetState() != "open" {
			continue
		}
		if before, seen := c.deadline[row.GetCallId()]; seen && before != row.GetDeadlineMs() {
			c.t.Errorf("%s: the deadline moved from %d to %d", row.GetCallId(), before, row.GetDeadlineMs())
		}
		c.deadline[row.GetCallId()] = row.GetDeadlineMs()
	}
}

func (c *crashes) awaitWork() {
	limit := time.NewTimer(patienceMax)
	defer limit.Stop()
	select {
	case <-c.done:
	case <-limit.C:
		c.t.Fatal("the work has come to a halt")
	}
}

// verb runs a verb in this process, again and again while no node answers.
func (c *crashes) verb(ctx context.Context, told *teller, args ...string) ran {
	for n := 0; ; n++ {
		var out, errs bytes.Buffer
		cmd := &cli{in: strings.NewReader(""), out: &out, err: &errs, self: "parley", width: widthDefault, now: time.Now, newID: newID,
			env: func(name string) (string, bool) {
				value := map[string]string{"PARLEY_NODE": c.addr, "USER": "ada"}[name]
				return value, value != ""
			}}
		if told != nil {
			cmd.err = told
		}
		exit := run(ctx, args, cmd)
		if exit != 69 || !pause(ctx, n) {
			return ran{exit, out.String(), errs.String()}
		}
	}
}

// teller tells when an ask has become durable.
type teller struct {
	bytes.Buffer
	once  sync.Once
	asked chan struct{}
}

func (w *teller) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "asked in") || strings.HasPrefix(string(p), "the node is back") {
		w.once.Do(func() { close(w.asked) })
	}
	return w.Buffer.Write(p)
}

// work asks, answers in time or late, and admits what came late, until it is over.
func (c *crashes) work(ctx context.Context, session string) {
	for n := 0; !c.over.Load(); n++ {
		call, label, late := fmt.Sprintf("%s-q%d", session, n), []string{"Yes", "No"}[rand.N(2)], rand.N(3) == 0
		told, asked := &teller{asked: make(chan struct{})}, make(chan ran, 1)
		go func() {
			timeout := "60s"
			if late {
				timeout = "1s"
			}
			asked <- c.verb(ctx, told, "ask", "Ship it?", "--option", "Yes", "--option", "No", "--session", session, "--attempt", call, "--timeout", timeout)
		}()
		var result *ran
		if late {
			r := <-asked
			result = &r
		} else {
			select {
			case <-told.asked:
			case r := <-asked:
				result = &r
			}
		}
		c.answer(ctx, session, call, label)
		if result == nil {
			r := <-asked
			result = &r
		}
		c.returned(call, told, *result)
		c.admit(ctx, session)
	}
}

// answer submits once, under one id, however often that takes. Nobody else answers, so it can only be accepted.
func (c *crashes) answer(ctx context.Context, session, call, label string) {
	submission := "a-" + call
	r := c.verb(ctx, nil, "answer", session, call, "--option", label, "--submission-id", submission, "--json")
	var said receiptJSON
	if err := json.Unmarshal([]byte(r.out), &said); r.exit != 0 || err != nil {
		c.t.Errorf("answering %s: %+v", call, r)
		return
	}
	c.mu.Lock()
	c.receipts[call] = receipt{session, submission, label, said.Settlement.Outcome, said.Settlement.MessageID}
	c.mu.Unlock()
	c.done <- struct{}{}
}

func (c *crashes) returned(call string, told *teller, r ran) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.exit {
	case 0:
		c.results[call] = strings.TrimSpace(r.out)
	case 75:
		c.results[call] = ""
	default:
		c.t.Errorf("asking %s: %+v\n%s", call, r, told.String())
	}
}

func (c *crashes) admit(ctx context.Context, session string) {
	r := c.verb(ctx, nil, "inbox", session, "--admit", "--json")
	var said inboxJSON
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || (r.exit != 0 && r.exit != 75) {
		c.t.Errorf("admitting: %+v", r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range said.Messages {
		c.admitted[m.ID]++
	}
}

// audit compares a session's log with all that was acknowledged, and returns how many answers were late.
func (c *crashes) audit(session string) (late int) {
	records := strings.Split(strings.TrimSpace(c.verb(c.t.Context(), nil, "log", session).out), "\n")
	count := func(parts ...string) (n int) {
		for _, record := range records {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(record, part)
			}
			if found {
				n++
			}
		}
		return n
	}
	for seq, record := range records[1:] {
		if !strings.Contains(record, fmt.Sprintf(`"seq":%d,`, seq)) {
			c.t.Fatalf("%s: record %d is %s", session, seq, record)
		}
	}
	for call, r := range c.receipts {
		if r.session != session {
			continue
		}
		if n := count(`"parley/wait"`, fmt.Sprintf(`"callId":%q`, call)); n != 1 {
			c.t.Errorf("%s has %d waits", call, n)
		}
		if shown, seen := c.deadline[call]; seen && count(`"parley/wait"`, fmt.Sprintf(`"callId":%q`, call), fmt.Sprintf(`"deadlineMs":%d`, shown)) != 1 {
			c.t.Errorf("%s was shown with the deadline %d, and its log has another", call, shown)
		}
		if n := count(`"parley/settled"`, fmt.Sprintf(`"submissionId":%q`, r.submission)); n != 1 {
			c.t.Errorf("%s: submission %s is recorded %d times", call, r.submission, n)
		}
		if n := count(`"type":"tool/result"`, fmt.Sprintf(`"toolCallId":%q`, call)); n != 1 {
			c.t.Errorf("%s has %d results", call, n)
		}
		result := c.results[call]
		switch r.outcome {
		case "answered":
			if count(`"type":"tool/result"`, fmt.Sprintf(`"toolCallId":%q`, call), `\"selected\":[\"`+r.label+`\"]`) != 1 || result != r.label {
				c.t.Errorf("%s was answered with %s in time, and the ask returned %q", call, r.label, result)
			}
		case "queued":
			late++
			if result != "" {
				c.t.Errorf("%s was answered late, and the ask returned %q", call, result)
			}
			queued, admitted := count(`"agent/inbox/spliced"`, fmt.Sprintf(`"inserted":[{"id":%q`, r.message)), count(`"type":"user/message"`, fmt.Sprintf(`"id":%q`, r.message))
			if queued != 1 || admitted != 1 || c.admitted[r.message] != 1 {
				c.t.Errorf("%s: message %s was queued %d times, admitted %d times, handed out %d times", call, r.message, queued, admitted, c.admitted[r.message])
			}
		default:
			c.t.Errorf("%s: acknowledged as %q", call, r.outcome)
		}
	}
	return late
}
