package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./cmd/node -rewrite accepts it); got\n%s", path, got)
	}
}

// The help of every verb, and the two pages: read the difference before it is accepted.
func TestHelp(t *testing.T) {
	var all strings.Builder
	pages := []string{"--help", "help exit-codes", "help environment"}
	for _, cmd := range (&cli{}).root().Commands() {
		if cmd.Name() != "conformance" && cmd.Name() != "help" && cmd.Runnable() { // its list of kinds grows with what is built
			pages = append(pages, cmd.Name()+" --help")
		}
		for _, verb := range cmd.Commands() {
			if cmd.Name() == "sim" {
				pages = append(pages, "sim "+verb.Name()+" --help")
			}
		}
	}
	for _, page := range pages {
		r := runCLI(t, "", "", strings.Fields(page)...)
		if r.exit != 0 || r.err != "" {
			t.Errorf("%s: exit %d, %s", page, r.exit, r.err)
		}
		for line := range strings.SplitSeq(r.out, "\n") {
			if cells(line) > 92 && page != "help environment" && page != "help exit-codes" {
				t.Errorf("%s: a line of %d cells: %s", page, cells(line), line)
			}
		}
		fmt.Fprintf(&all, "$ parley %s\n%s\n", page, r.out)
	}
	golden(t, "help.txt", all.String())
}

// Bad input is refused here, before any request, with the field, the limit and the value found (faults E5, E7).
func TestBadInputIsNamed(t *testing.T) {
	f := newFake(t)
	long := strings.Repeat("x", messages.IDBytesMax+1)
	var all strings.Builder
	for _, c := range []struct {
		stdin string
		args  []string
	}{
		{"", []string{"ask"}},
		{"", []string{"ask", ""}},
		{"", []string{"ask", "a", "b"}},
		{"", []string{"ask", "Q", "--question", "R"}},
		{"", []string{"ask", "--option", "A", "--question", "R"}},
		{"", []string{"ask", "Q", "--option", ": x"}},
		{"", []string{"ask", "Q", "--option", "A", "--option", "A: again"}},
		{"", []string{"ask", "--question", "Q", "--id", "x", "--question", "R", "--id", "x"}},
		{"", []string{"ask", "Q", "--id", " "}},
		{"", []string{"ask", "Q", "--timeout", "90"}},
		{"", []string{"ask", "Q", "--timeout", "0s"}},
		{"", []string{"ask", "Q", "--session", " "}},
		{"", []string{"ask", "Q", "--session", "a\x00b"}},
		{"", []string{"ask", "Q", "--session", "a\x1b[2Jb"}},
		{"", []string{"ask", "Q", "--session", long}},
		{"", []string{"ask", "Q", "--root", ""}},
		{"", []string{"ask", "Q", "--session", ""}},
		{"", []string{"ask", "Q", "--attempt", ""}},
		{"", []string{"ask", "Q", "--call="}},
		{"", []string{"ask", "Q", "--node", ""}},
		{"", []string{"ask", "Q", "--timeout", ""}},
		{"", []string{"ask", "Q", "--token", ""}},
		{"", []string{"answer", "demo", "q", "--skip", "--submission-id", ""}},
		{"", []string{"answer", "demo", "q", "--skip", "--by", " "}},
		{"", []string{"withdraw", "demo", "q", "--by", ""}},
		{"", []string{"withdraw", "demo", "--message", ""}},
		{"", []string{"questions", "--session", ""}},
		{"", []string{"ask", "a\xff"}},
		{"", []string{"ask", "--multi", "a\xff"}},
		{"", []string{"ask", "Q", "--option", "a\xff"}},
		{"", []string{"ask", "Q", "--option=a\xff"}},
		{"", []string{"ask", "--question", "a\xff"}},
		{"", []string{"ask", "Q", "--session", "a\xff"}},
		{"", []string{"answer", "--text", "a\xff"}},
		{"", []string{"answer", "demo", "q\xff", "--skip"}},
		{"", []string{"answer", "demo", "q", "--skip", "--by", "\xff"}},
		{"", []string{"withdraw", "demo", "q", "--reason", "\xff"}},
		{"", []string{"inbox", "\xff"}},
		{"", []string{"log", "\xff"}},
		{"", []string{"questions", "--session", "\xff"}},
		{`{"questions": [{"id": "a", "question": "` + "\xff" + `"}]}`, []string{"ask", "-"}},
		{`[{"id": "q1", "custom": "` + "\xff" + `"}]`, []string{"answer", "demo", "q", "-"}},
		{"", []string{"ask", "Q", "--token", "a token of some length\n"}},
		{"", []string{"ask", "Q", "--attempt", "\t"}},
		{"", []string{"ask", "Q", "--call", long}},
		{"not json", []string{"ask", "-"}},
		{strings.Repeat(" ", messages.ArgumentsBytesMax+1), []string{"ask", "-"}},
		{"{}", []string{"ask", "-", "--timeout", "9s"}},
		{`{"questions": [{"id": "a"}, {"id": ""}]}`, []string{"ask", "-"}},
		{`{"questions": [{"id": "a\u0000"}]}`, []string{"ask", "-"}},
		{"", []string{"answer", "demo", "q", "r", "--skip"}},
		{"", []string{"answer", "q\x00", "--skip"}},
		{"", []string{"answer", "demo", "", "--skip"}},
		{"", []string{"answer", "demo", "q\x00", "--skip"}},
		{"", []string{"answer", "demo", "q", "--skip", "--submission-id", " "}},
		{"", []string{"answer", "demo", "q", "--skip", "--by", long}},
		{"", []string{"answer", "demo", "q", "--skip", "--on-expired", "maybe"}},
		{`[{"id": "q1", "chosen": ["A"]}]`, []string{"answer", "demo", "q", "-"}},
		{"[]", []string{"answer", "demo", "q", "-", "--skip"}},
		{"", []string{"inbox", ""}},
		{"", []string{"inbox", "demo", "--wait"}},
		{"", []string{"inbox"}},
		{"", []string{"withdraw", "demo"}},
		{"", []string{"withdraw", "demo", "q", "--message", "m"}},
		{"", []string{"withdraw", "demo", "q", "--reason", long}},
		{"", []string{"withdraw", "demo", "--message", "\x00"}},
		{"", []string{"log", " "}},
		{"", []string{"log", "demo", "--from", "-1"}},
		{"", []string{"questions", "--all"}},
		{"", []string{"questions", "--cursor", "soon"}},
		{"", []string{"questions", "--cursor", "7"}},
		{"", []string{"questions", "--nod", "x"}},
		{"", []string{"serve", "--mode", "fast"}},
		{"", []string{"serve", "--default-timeout", "120"}},
		{"", []string{"serve", "--claim-grace", "-1s"}},
		{"", []string{"serve", "--listen", "7410"}},
		{"", []string{"serve", "--listen", "0.0.0.0:7410"}},
		{"", []string{"serve", "--claim-grace", "10"}},
		{"", []string{"serve", "--listen", "127.0.0.1:0", "--allow-origin", ""}},
		{"", []string{"serve", "--listen", "127.0.0.1:0", "--allow-origin", "example.org"}},
		{"", []string{"serve", "--listen", "127.0.0.1:0", "--allow-origin", "https://example.org/page"}},
		{"", []string{"serve", "--listen", ""}},
		{"", []string{"serve", "--journal", ""}},
		{"", []string{"anwser"}},
		{"", []string{"help", "nosuch"}},
		{"", []string{"help", "ask", "nosuch"}},
	} {
		r := runCLI(t, f.url, c.stdin, c.args...)
		if r.exit == 0 || r.out != "" {
			t.Errorf("%q: exit %d, stdout %s", c.args, r.exit, r.out)
		}
		line := fmt.Sprintf("%q", c.args)
		fmt.Fprintf(&all, "parley %s\nexit %d\n%s\n", strings.ReplaceAll(line, long, "x…"), r.exit, strings.ReplaceAll(strings.ReplaceAll(r.err, long, "x…"), f.url, "http://node"))
	}
	golden(t, "errors.txt", all.String())
	if got := f.requests(); got != "" {
		t.Errorf("requests were sent: %s", got)
	}
}

// Every registered code keeps its exit status on its way through a node, and its next step.
func TestExitCodes(t *testing.T) {
	for _, e := range messages.Registry {
		if e.Kind == messages.FaultKind && e.Exit == 69 {
			continue // repeated, which takes its time: TestAskRepeatsTheSameAttempt
		}
		f := newFake(t)
		on(f, messagesconnect.SessionServiceListSessionsProcedure, func(*messages.ListSessionsRequest) (*messages.ListSessionsResponse, error) {
			return nil, messages.Refuse(e.Code, "this happened")
		})
		runCLI(t, f.url, "", "sessions").want(t, e.Exit, "", fmt.Sprintf("error: this happened (%s)\nnext:  %s\n", e.Code, (&cli{self: "parley", node: f.url}).local(remedyHere(e.Code))))
	}
}

func TestQuestionsAreReadable(t *testing.T) {
	f := newFake(t)
	long := shipIt("continued")
	long.CallId, long.DeadlineMs = "q-2", 0
	long.Questions = []*messages.Question{
		{Id: "plan", Question: "The migration rewrites every row of the table and cannot be undone. Shall it run tonight, while the other team still writes to it?", Detail: new("1. stop the writers\n2. rewrite"),
			Options: []*messages.Option{{Label: "Wait until the other team has finished their part of the work, on Thursday (Recommended)"}, {Label: "今夜実行する", Description: "他のチームに先に知らせてから、夜の十時に始めて、朝までに終わらせる。失敗したら元に戻す"}}},
		{Id: "who", Question: "Who watches it?", MultiSelect: true, Options: []*messages.Option{{Label: "me"}, {Label: "the pager"}}},
	}
	f.rows(shipIt("open"), long)
	r := runCLI(t, f.url, "", "questions")
	golden(t, "questions.txt", r.out)
	for line := range strings.SplitSeq(r.out, "\n") {
		if cells(line) > 80 {
			t.Errorf("%d cells: %s", cells(line), line)
		}
	}
	r = runCLI(t, f.url, "", "questions", "--json")
	if doc := r.document(t, r.out); len(doc["questions"].([]any)) != 2 || doc["cursor"] != 7.0 {
		t.Errorf("%v", doc)
	}
	f = newFake(t)
	f.rows()
	runCLI(t, f.url, "", "questions").want(t, 0, "", "no questions\n")
	runCLI(t, f.url, "", "questions", "--json").want(t, 0, "{\"questions\":[],\"cursor\":7}\n", "")
}

// A lost stream is taken up at the cursor of the last change, not at the beginning, and not in the starting list.
func TestWatchGoesOn(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	var cursors []int64
	frames := [][]*messages.WatchQuestionsResponse{
		{{Question: shipIt("open"), Cursor: 5}},
		{{Question: shipIt("open"), Cursor: 5}, {Live: true, Cursor: 5}, {Question: shipIt("settled"), Live: true, Cursor: 6}},
		{{Question: shipIt("open"), Live: true, Cursor: 9}},
	}
	var streams atomic.Int32
	procedure := messagesconnect.QuestionServiceWatchQuestionsProcedure
	f.mux.Handle(procedure, connect.NewServerStreamHandler(procedure,
		func(_ context.Context, req *connect.Request[messages.WatchQuestionsRequest], stream *connect.ServerStream[messages.WatchQuestionsResponse]) error {
			n := int(streams.Add(1)) - 1
			if n == len(frames) {
				cancel()
				<-ctx.Done()
				return nil
			}
			cursors = append(cursors, req.Msg.GetCursor())
			for _, frame := range frames[n] {
				if err := stream.Send(frame); err != nil {
					return err
				}
			}
			return wireError(messages.Refuse(messages.Unavailable, "stopping"))
		}))
	var out, errs bytes.Buffer
	c := &cli{out: &out, err: &errs, node: f.url, json: true, width: 80}
	node, err := c.dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.watch(ctx, node, &messages.WatchQuestionsRequest{}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(cursors) != "[0 0 6]" {
		t.Errorf("streams began at %v", cursors)
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

const lateReply = `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"q-1","questions":[{"id":"q1","question":"Ship it?"}],"answers":[{"id":"q1","selected":["Yes"]}]}`

// A reply whose admission was recorded, while its answer was lost, is still handed out, and once.
func TestAdmitSurvivesALostReply(t *testing.T) {
	f := newFake(t)
	f.held("cli")
	message := &messages.InboxMessage{Id: "reply-1", ReplyTo: "q-1", Text: lateReply, Json: `{"id":"reply-1"}`}
	var admissions atomic.Int32
	on(f, messagesconnect.InboxServiceListInboxProcedure, func(*messages.ListInboxRequest) (*messages.ListInboxResponse, error) {
		if admissions.Load() > 0 {
			return &messages.ListInboxResponse{}, nil
		}
		return &messages.ListInboxResponse{Messages: []*messages.InboxMessage{message}}, nil
	})
	on(f, messagesconnect.InboxServiceAdmitMessagesProcedure, func(q *messages.AdmitMessagesRequest) (*messages.AdmitMessagesResponse, error) {
		if len(q.GetMessageIds()) != 1 || q.GetMessageIds()[0] != "reply-1" {
			t.Errorf("%v", q)
		}
		if admissions.Add(1) == 1 {
			return nil, messages.Refuse(messages.Unavailable, "recorded, but the connection was lost")
		}
		return nil, messages.Refuse(messages.MessageGone, "reply-1 is gone")
	})
	on(f, messagesconnect.SessionServiceReadLogProcedure, func(*messages.ReadLogRequest) (*messages.ReadLogResponse, error) {
		return &messages.ReadLogResponse{Header: "{}", Events: []string{`{"type":"user/message","data":{"id":"reply-1"}}`}, NextSeq: -1}, nil
	})
	runCLI(t, f.url, "", "inbox", "demo", "--admit").want(t, 0, "reply reply-1 to call q-1\n  Ship it?\n  = Yes\n", "")
	runCLI(t, f.url, "", "inbox", "demo", "--admit").want(t, 75, "", "nothing waits in session demo\n")
	runCLI(t, f.url, "", "inbox", "demo", "--admit", "--json").want(t, 75, "{\"session\":\"demo\",\"messages\":[]}\n", "")
	admissions.Store(0)
	r := runCLI(t, f.url, "", "inbox", "demo", "--json")
	list := r.document(t, r.out)["messages"].([]any)
	if first := list[0].(map[string]any); first["replyTo"] != "q-1" || first["answers"] == nil || first["message"] == nil {
		t.Errorf("%v", first)
	}
}

// The log is printed page by page and byte for byte, header first.
func TestLogIsPrintedAsStored(t *testing.T) {
	f := newFake(t)
	events := []string{`{"b": 1,  "a":"<&>"}`, `{"x":1.0}`, `{"y":"é"}`}
	on(f, messagesconnect.SessionServiceReadLogProcedure, func(q *messages.ReadLogRequest) (*messages.ReadLogResponse, error) {
		res := &messages.ReadLogResponse{Header: `{"type":"session"}`, NextSeq: -1}
		if n := q.GetFromSeq(); n < int64(len(events)) {
			res.Events, res.NextSeq = events[n:n+1], n+1
		}
		return res, nil
	})
	runCLI(t, f.url, "", "log", "demo").want(t, 0, "{\"type\":\"session\"}\n"+strings.Join(events, "\n")+"\n", "")
	runCLI(t, f.url, "", "log", "demo", "--from", "2").want(t, 0, "{\"type\":\"session\"}\n"+events[2]+"\n", "")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// What could not be written was not a success.
func TestOutputThatIsLostIsAnError(t *testing.T) {
	f := newFake(t)
	f.rows(shipIt("open"))
	var errs bytes.Buffer
	c := &cli{out: full{}, err: &errs, self: "parley", now: time.Now, newID: newID, width: 80,
		env: func(name string) (string, bool) { return f.url, name == "PARLEY_NODE" }}
	exit := run(t.Context(), []string{"questions"}, c)
	if exit != 1 || !strings.HasPrefix(errs.String(), "error: cannot write the output: no space left\nnext:  ") {
		t.Errorf("exit %d, %s", exit, errs.String())
	}
}

func TestWithdraw(t *testing.T) {
	f := newFake(t)
	on(f, messagesconnect.QuestionServiceWithdrawQuestionProcedure, func(q *messages.WithdrawQuestionRequest) (*messages.WithdrawQuestionResponse, error) {
		return &messages.WithdrawQuestionResponse{Settlement: &messages.Settlement{Outcome: "withdrawn", By: q.GetBy(), Reason: q.GetReason()}}, nil
	})
	on(f, messagesconnect.InboxServiceWithdrawMessageProcedure, func(*messages.WithdrawMessageRequest) (*messages.WithdrawMessageResponse, error) {
		return &messages.WithdrawMessageResponse{ReopenedCallId: "q-1"}, nil
	})
	runCLI(t, f.url, "", "withdraw", "demo", "q-1").want(t, 0, "withdrawn: call q-1 of session demo can no longer be answered\n", "")
	runCLI(t, f.url, "", "withdraw", "demo", "--message", "reply-1").want(t, 0, "withdrawn: message reply-1 of session demo\nThe question is open again: call q-1\n", "")
	runCLI(t, f.url, "", "withdraw", "demo", "q-1", "--json", "--reason", "moot").want(t, 0,
		"{\"session\":\"demo\",\"callId\":\"q-1\",\"settlement\":{\"outcome\":\"withdrawn\",\"by\":\"ada\",\"reason\":\"moot\"}}\n", "")
}

// A question of a session that another agent speaks for is not taken back, and the next step is one of this command.
func TestWithdrawAsAnother(t *testing.T) {
	root := "mcp"
	f := newFake(t)
	on(f, messagesconnect.SessionServiceGetSessionProcedure, func(q *messages.GetSessionRequest) (*messages.GetSessionResponse, error) {
		return &messages.GetSessionResponse{Session: &messages.SessionRow{Session: q.GetSession(), Root: root}}, nil
	})
	on(f, messagesconnect.SessionServiceAttachProcedure, func(q *messages.AttachRequest) (*messages.AttachResponse, error) {
		root = q.GetRoot()
		return &messages.AttachResponse{Session: q.GetSession(), Root: root}, nil
	})
	on(f, messagesconnect.QuestionServiceWithdrawQuestionProcedure, func(q *messages.WithdrawQuestionRequest) (*messages.WithdrawQuestionResponse, error) {
		if q.GetRoot() != root {
			return nil, messages.Refuse(messages.CallerNotLive, "%q is not the live agent of session %q; %q is", q.GetRoot(), q.GetSession(), root)
		}
		return &messages.WithdrawQuestionResponse{Settlement: &messages.Settlement{Outcome: "withdrawn", By: q.GetBy()}}, nil
	})
	runCLI(t, f.url, "", "withdraw", "demo", "q-1").want(t, 10, "", "error: the session demo is held by the root mcp (CALLER_NOT_LIVE)\nnext:  speak as that root with --root mcp\n")
	runCLI(t, f.url, "", "inbox", "demo", "--admit").want(t, 10, "", "error: the session demo is held by the root mcp (CALLER_NOT_LIVE)\n"+
		"next:  speak as that root with --root mcp; or take its place with --take-over, which ends its open questions\n")
	const done = "withdrawn: call q-1 of session demo can no longer be answered\n"
	runCLI(t, f.url, "", "withdraw", "demo", "q-1", "--root", "mcp").want(t, 0, done, "")
	root = "" // an imported session
	runCLI(t, f.url, "", "withdraw", "demo", "q-1").want(t, 0, done, "")
}

func TestConformanceVerb(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.jsonl")
	text := `{"name":"empty","events":[],"expect":{"active":[],"settled":[]}}` + "\n" + `{"name":"wrong","events":[],"expect":{"active":[1],"settled":[]}}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	runCLI(t, "", "", "conformance", file).want(t, 1, "FAIL "+file+":2 projection \"wrong\": $.active: want 1 elements, got 0\n1 passed, 1 failed\n", "")
	runCLI(t, "", text[:strings.Index(text, "\n")], "conformance", "-").want(t, 0, "1 passed, 0 failed\n", "")
	if r := runCLI(t, "", `{"kind":"of-tomorrow","name":"p"}`, "conformance", "-"); r.exit != 1 || !strings.Contains(r.err, `-:1: there is no kind "of-tomorrow" here`) {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	if r := runCLI(t, "", "", "conformance", "no-such-file"); r.exit != 1 || !strings.Contains(r.err, "no-such-file") {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	r := runCLI(t, "", text, "conformance", "-", "--json")
	if doc := r.document(t, r.out); r.exit != 1 || doc["passed"] != 1.0 || doc["failed"] != 1.0 {
		t.Errorf("exit %d, %v", r.exit, doc)
	}
}
