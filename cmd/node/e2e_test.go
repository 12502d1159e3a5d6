package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patienceMax is how long a test waits for a line before it gives up.
const patienceMax = 30 * time.Second

// binaryDir is where the built command is; it is removed when the tests end.
var binaryDir string

// binary builds parley once, for all tests that run it as a process.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaryDir, "parley")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "parley")
	if err != nil {
		panic(err)
	}
	binaryDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is a running parley whose lines a test can wait for.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err chan string
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startWith(t, env, nil, args...)
}

func startWith(t *testing.T, env []string, stdin io.Reader, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=ada"}, env...)
	cmd.Stdin = stdin
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{t, cmd, lines(out), lines(errs)}
}

func lines(r io.Reader) chan string {
	c := make(chan string, 10_000)
	go func() {
		defer close(c)
		for in := bufio.NewScanner(r); in.Scan(); {
			c <- in.Text()
		}
	}()
	return c
}

// await returns the first line that holds the text.
func (p *process) await(from chan string, text string) string {
	p.t.Helper()
	limit := time.NewTimer(patienceMax)
	defer limit.Stop()
	var seen []string
	for {
		select {
		case line, open := <-from:
			if !open {
				p.t.Fatalf("%q ended without saying %q; it said\n%s", p.cmd.Args[1:], text, strings.Join(seen, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
			seen = append(seen, line)
		case <-limit.C:
			p.t.Fatalf("%q does not say %q; it said\n%s", p.cmd.Args[1:], text, strings.Join(seen, "\n"))
		}
	}
}

// end waits for the process and returns what it said since.
func (p *process) end() ran {
	p.t.Helper()
	var r ran
	for line := range p.out {
		r.out += line + "\n"
	}
	for line := range p.err {
		r.err += line + "\n"
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	r.exit = p.cmd.ProcessState.ExitCode()
	return r
}

// realNode is a served node with its journal in a folder of the test.
type realNode struct {
	*process
	addr, journal string
	env           []string
}

func serveNode(t *testing.T, args ...string) *realNode {
	t.Helper()
	n := &realNode{journal: filepath.Join(t.TempDir(), "data", "journal.db"), addr: quietPort(t)}
	n.serve(t, args...)
	return n
}

// quietPort is a free port that no client of a parallel test is given for its own end, so that a node can come back to it.
func quietPort(t *testing.T) string {
	t.Helper()
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.N(20_000))
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
}

// serve starts the node, or starts it again at the same place.
func (n *realNode) serve(t *testing.T, args ...string) {
	t.Helper()
	n.process = start(t, n.env, append([]string{"serve", "--json", "--listen", n.addr, "--journal", n.journal, "--claim-grace", "0s"}, args...)...)
	var said servingJSON
	if err := json.Unmarshal([]byte(n.await(n.out, "{")), &said); err != nil {
		t.Fatal(err)
	}
	n.addr = strings.TrimPrefix(said.Address, "http://")
	n.env = []string{"PARLEY_NODE=" + said.Address}
}

func (n *realNode) stop(s syscall.Signal) ran {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
	return n.end()
}

// run runs a client verb to its end.
func (n *realNode) run(t *testing.T, args ...string) ran {
	t.Helper()
	return start(t, n.env, args...).end()
}

// ask starts an ask and returns once it is durable.
func (n *realNode) ask(t *testing.T, args ...string) *process {
	t.Helper()
	p := start(t, n.env, append([]string{"ask", "Ship it?", "--option", "Yes", "--option", "No", "--session", "demo", "--attempt", "q-1"}, args...)...)
	p.await(p.err, "/answer/demo/q-1")
	return p
}

func TestAnswerInTime(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "60s")
	if r := n.run(t, "questions"); !strings.Contains(r.out, "demo     q-1   open") || !strings.Contains(r.out, "  Ship it?\n  - Yes\n  - No\n") {
		t.Errorf("%+v", r)
	}
	n.run(t, "answer", "--option", "Yes", "--submission-id", "a-1").want(t, 0, "answered in time: it is the result of call q-1 in session demo\n  submission  a-1\n", "")
	ask.end().want(t, 0, "Yes\n", "")
	// A repeat of the submission gets the first outcome again; another one is told who won (R1).
	if r := n.run(t, "answer", "demo", "q-1", "--option", "Yes", "--submission-id", "a-1"); r.exit != 0 || !strings.Contains(r.out, "it counts once") {
		t.Errorf("%+v", r)
	}
	if r := n.run(t, "answer", "demo", "q-1", "--option", "No"); r.exit != 23 || !strings.Contains(r.err, "ada answered first") {
		t.Errorf("%+v", r)
	}
	if err := n.cmd.Process.Signal(os.Interrupt); err != nil { // twice, as wrappers do
		t.Fatal(err)
	}
	n.stop(syscall.SIGTERM).want(t, 0, "", "")
}

// The late answer is queued, outlives the node, and is admitted once; every document parses.
func TestPendingThenLateThenAdmittedOnce(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "1s").end()
	if ask.exit != 75 || ask.out != "" || !strings.Contains(ask.err, "pending: nobody answered in time") {
		t.Fatalf("%+v", ask)
	}
	doc := func(args ...string) map[string]any {
		r := n.run(t, append(args, "--json")...)
		return r.document(t, r.out)
	}
	receipt := doc("answer", "demo", "q-1", "--text", "on Monday")
	if s := receipt["settlement"].(map[string]any); s["outcome"] != "queued" || s["messageId"] == "" {
		t.Errorf("%v", receipt)
	}
	if r := n.run(t, "answer", "demo", "q-1", "--option", "No"); r.exit != 20 {
		t.Errorf("a second late answer: %+v", r)
	}
	n.stop(syscall.SIGKILL)
	n.serve(t)
	for _, args := range [][]string{{"questions"}, {"questions", "--session", "demo", "--all"}, {"sessions"}, {"version"}, {"inbox", "demo"}} {
		doc(args...)
	}
	first := doc("inbox", "demo", "--admit", "--wait")["messages"].([]any)
	if len(first) != 1 || first[0].(map[string]any)["replyTo"] != "q-1" || first[0].(map[string]any)["answers"].([]any)[0].(map[string]any)["custom"] != "on Monday" {
		t.Errorf("%v", first)
	}
	n.run(t, "inbox", "demo", "--admit").want(t, 75, "", "nothing waits in session demo\n")
	log := n.run(t, "log", "demo")
	for i, line := range strings.Split(strings.TrimSpace(log.out), "\n") {
		var record struct{ Type string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || (i == 0) != (record.Type == "session") {
			t.Errorf("line %d of the log: %v: %s", i, err, line)
		}
	}
	if n := strings.Count(log.out, `"type":"user/message"`); n != 1 {
		t.Errorf("admitted %d times", n)
	}
}

// The node is killed while somebody asks, and started again: the ask goes on and is answered.
func TestAskOutlivesTheNode(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "never")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		n.stop(signal)
		ask.await(ask.err, "the node does not answer")
		n.serve(t)
		ask.await(ask.err, "the node is back")
	}
	watch := start(t, n.env, "questions", "--watch", "--json")
	watch.await(watch.out, `"callId":"q-1","state":"open"`)
	n.run(t, "answer", "--option", "No")
	watch.await(watch.out, `"callId":"q-1","state":"settled"`)
	if r := ask.end(); r.exit != 0 || r.out != "No\n" {
		t.Errorf("%+v", r)
	}
}

// Two people answer at once: one wins, the other is told who (fault R1).
func TestTwoAnswerAtOnce(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "60s")
	rivals := []*process{
		start(t, n.env, "answer", "demo", "q-1", "--option", "Yes", "--by", "ann", "--json"),
		start(t, n.env, "answer", "demo", "q-1", "--option", "No", "--by", "bob", "--json"),
	}
	won, winner := "", ""
	for i, p := range rivals {
		switch r := p.end(); r.exit {
		case 0:
			won, winner = won+[]string{"Yes\n", "No\n"}[i], winner+[]string{"ann", "bob"}[i]
		case 23:
			lost := r.document(t, r.err)
			if w, _ := lost["winner"].(map[string]any); w["by"] != []string{"bob", "ann"}[i] {
				t.Errorf("the loser was told %v", lost)
			}
		default:
			t.Errorf("%+v", r)
		}
	}
	if r := ask.end(); r.exit != 0 || r.out != won {
		t.Errorf("%s won with %q, and the agent got %+v", winner, won, r)
	}
}

// What the node refuses arrives with its code's exit status and both lines.
func TestRefusalsOfTheNode(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "never")
	for line, exit := range map[string]int{
		"answer demo q-2 --skip":            25,
		"answer demo q-1 --option Maybe":    21,
		"inbox nobody --admit":              25,
		"withdraw demo q-1 --root other":    10,
		"withdraw demo --message m":         25,
		"ask Q --session demo --root other": 10,
		"log nobody":                        25,
		"questions --watch --cursor 99999":  26,
	} {
		if r := n.run(t, strings.Fields(line)...); r.exit != exit || strings.Count(r.err, "\n") != 2 {
			t.Errorf("%s: %+v, want exit %d", line, r, exit)
		}
	}
	for arguments, exit := range map[string]int{
		`{}`:                22,
		`{"questions": []}`: 18,
		`{"questions": [{"id": 1, "question": "Q"}]}`:                 22,
		`{"questions": [{"id": " ", "question": "Q"}]}`:               26,
		`{"questions": [{"id": "a", "question": "Q"}], "timeout": 0}`: 17,
	} {
		if r := startWith(t, n.env, strings.NewReader(arguments), "ask", "-").end(); r.exit != exit || strings.Count(r.err, "\n") != 2 {
			t.Errorf("%s: %+v, want exit %d", arguments, r, exit)
		}
	}
	n.run(t, "withdraw", "demo", "q-1", "--reason", "moot").want(t, 0, "withdrawn: call q-1 of session demo can no longer be answered\n", "")
}

// A node that cannot start says why and what to do, with the registry's status.
func TestStartupFailures(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	if err := os.WriteFile(damaged, []byte(strings.Repeat("this is no journal ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		listen, journal string
		exit            int
		text            string
	}{
		{n.addr, filepath.Join(dir, "free.db"), 69, n.addr + " is in use by another program (UNAVAILABLE)\nnext:  if that is a node, use it:"},
		{"127.0.0.1:0", n.journal, 73, "(JOURNAL_LOCKED)\nnext:  Stop the other process"},
		{"127.0.0.1:0", damaged, 73, "(JOURNAL_CORRUPT)\nnext:  Keep a copy"},
		{"127.0.0.1:0", filepath.Join(damaged, "sub", "journal.db"), 73, "(JOURNAL_IO)\nnext:  choose another file"},
	} {
		r := start(t, nil, "serve", "--listen", c.listen, "--journal", c.journal).end()
		if r.exit != c.exit || r.out != "" || !strings.Contains(r.err, c.text) || strings.Count(r.err, "\n") != 2 {
			t.Errorf("%+v\nwant exit %d and %s", r, c.exit, c.text)
		}
	}
}

// A token is wanted by the node and sent by the verbs.
func TestToken(t *testing.T) {
	t.Parallel()
	n := serveNode(t, "--token", "a token of some length")
	if r := n.run(t, "sessions"); r.exit != 77 {
		t.Errorf("%+v", r)
	}
	n.env = append(n.env, "PARLEY_TOKEN=a token of some length")
	n.run(t, "sessions").want(t, 0, "", "no sessions\n")
	watch := start(t, n.env, "questions", "--watch")
	watch.await(watch.err, "watching")
}

// Ctrl-C ends the wait, not the question.
func TestInterruptedAskStaysOpen(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "never")
	if err := ask.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := ask.end(); r.exit != exitInterrupted || !strings.Contains(r.err, "; the question stays open (INTERRUPTED)\n") ||
		!strings.Contains(r.err, `parley ask "Ship it?" --option Yes --option No --session demo --attempt q-1 --timeout never --node `) {
		t.Errorf("%+v", r)
	}
	again := n.ask(t, "--timeout", "never")
	n.run(t, "answer", "--option", "Yes")
	if r := again.end(); r.exit != 0 || r.out != "Yes\n" {
		t.Errorf("%+v", r)
	}
}
