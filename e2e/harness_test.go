package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// patience is how long a test waits for what must come, beyond the time that the scenario itself takes.
const patience = 30 * time.Second

// full says that the scenarios which need their real time are run too.
func full() bool { return os.Getenv("PARLEY_E2E") == "full" }

var buildDir string

func TestMain(m *testing.M) {
	flag.Parse()
	parallel := "12" // nearly all of it is waiting, which costs nothing
	if full() {
		parallel = "200"
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "parley-e2e")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	code := m.Run()
	drivers.close()
	if common.node != nil {
		common.node.stop(syscall.SIGKILL)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// binary is the built command: what PARLEY_BINARY names, or else it is built once.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("PARLEY_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(buildDir, "parley")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/node").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// binaryFolder is a new folder that is removed when all tests have ended.
func binaryFolder() (string, error) { return os.MkdirTemp(buildDir, "node") }

// node is a parley that serves on a port of its own, with its journal on disk, so that it can be stopped and come back.
type node struct {
	addr, dir string
	args      []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	said chan struct{} // closed when the process has ended
	log  tail
}

// serve starts a node, with more flags of serve if need be; it is killed when the test ends.
func serve(t testing.TB, args ...string) *node {
	t.Helper()
	n := &node{addr: quietPort(t), dir: t.TempDir(), args: args}
	require.NoError(t, n.start())
	t.Cleanup(func() {
		n.stop(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the node said last:\n%s", n.log.String())
		}
	})
	return n
}

// quietPort is a free port outside the range that a system gives clients for their own ends.
func quietPort(t testing.TB) string {
	t.Helper()
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.N(20_000))
		if l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr); err == nil { //nolint:usetesting // also at the end of a test
			_ = l.Close()
			return addr
		}
	}
}

// start serves, or serves again at the same place, and returns once it does.
func (n *node) start() error {
	path, err := binary()
	if err != nil {
		return err
	}
	cmd := exec.Command(path, append([]string{"serve", "--json", "--listen", n.addr, "--journal", filepath.Join(n.dir, "journal.db"), "--claim-grace", "0s"}, n.args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "USER=ada"}
	cmd.Stderr = &n.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended, serving := make(chan struct{}), make(chan bool, 1)
	go func() {
		in := bufio.NewScanner(out)
		serving <- in.Scan() && strings.Contains(in.Text(), "{")
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		close(ended)
	}()
	n.mu.Lock()
	n.cmd, n.said = cmd, ended
	n.mu.Unlock()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case ok := <-serving:
		if ok {
			return nil
		}
	case <-limit.C:
	}
	_ = cmd.Process.Kill()
	return fmt.Errorf("the node does not serve: %s", n.log.String())
}

// stop ends the node with a signal and returns once it has ended.
func (n *node) stop(s syscall.Signal) {
	n.mu.Lock()
	cmd, ended := n.cmd, n.said
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(s) // it may have ended already
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		fmt.Fprintf(os.Stderr, "the node does not end by %v; it said last\n%s", s, n.log.String())
		_ = cmd.Process.Kill()
		<-ended
	}
}

func (n *node) restart(t testing.TB, s syscall.Signal) {
	t.Helper()
	n.stop(s)
	require.NoError(t, n.start())
}

// tail keeps the last of what a process said.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(p []byte) (int, error) {
	const most = 16 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if len(w.text) > most {
		w.text = w.text[len(w.text)-most:]
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// person is the human side: it sees questions and answers them, through whatever network lies between.
type person struct {
	questions messagesconnect.QuestionServiceClient
	sessions  messagesconnect.SessionServiceClient
	ledger    *ledger
}

func newPerson(addr string, l *ledger) *person {
	// A connection for each request: what one of them meets is its own.
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &person{messagesconnect.NewQuestionServiceClient(c, "http://"+addr), messagesconnect.NewSessionServiceClient(c, "http://"+addr), l}
}

// retry repeats a request while the world fails it; a refusal ends it.
func retry[T any](ctx context.Context, try func(context.Context) (T, error)) (T, error) {
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		got, err := try(once)
		cancel()
		var coded *connect.Error
		if err == nil || errors.As(err, &coded) && len(coded.Details()) > 0 && isRefusal(coded.Code()) {
			return got, err // the details tell a refusal from what is left of a response that was cut
		}
		if !pause(ctx, 20*time.Millisecond) {
			return got, fmt.Errorf("%w; last: %w", ctx.Err(), err)
		}
	}
}

func isRefusal(c connect.Code) bool {
	switch c {
	case connect.CodeUnavailable, connect.CodeUnknown, connect.CodeInternal, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return false
	default:
		return true
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// find returns the row of the question with this text once it can be answered, in one of these states (none: any).
func (p *person) find(ctx context.Context, session, text string, states ...string) (*messages.QuestionRow, error) {
	for {
		list, err := retry(ctx, func(ctx context.Context) (*connect.Response[messages.ListQuestionsResponse], error) {
			return p.questions.ListQuestions(ctx, connect.NewRequest(&messages.ListQuestionsRequest{Session: session}))
		})
		if err != nil && connect.CodeOf(err) != connect.CodeNotFound { // the session comes with its first question
			return nil, fmt.Errorf("looking for %q in %s: %w", text, session, err)
		}
		if err == nil {
			for _, row := range list.Msg.GetQuestions() {
				if holds(row, text) && (len(states) == 0 || strings.Contains(strings.Join(states, " "), row.GetState())) {
					return row, nil
				}
			}
		}
		if !pause(ctx, 10*time.Millisecond) {
			return nil, fmt.Errorf("%q is not there in session %s as %v: %w", text, session, states, ctx.Err())
		}
	}
}

func holds(row *messages.QuestionRow, text string) bool {
	for _, q := range row.GetQuestions() {
		if q.GetQuestion() == text {
			return true
		}
	}
	return false
}

// answer submits until it is told what became of it, always under one id; the ledger hears of both.
func (p *person) answer(ctx context.Context, row *messages.QuestionRow) (*messages.Settlement, error) {
	id, text := p.ledger.submitting(row.GetSession(), row.GetCallId(), row.GetQuestions()[0].GetQuestion())
	req := &messages.SubmitRequest{Session: row.GetSession(), CallId: row.GetCallId(), SubmissionId: id, By: "ada"}
	for _, q := range row.GetQuestions() {
		req.Answers = append(req.Answers, &messages.Answer{Id: q.GetId(), Custom: &text})
	}
	got, err := retry(ctx, func(ctx context.Context) (*connect.Response[messages.SubmitResponse], error) {
		return p.questions.Submit(ctx, connect.NewRequest(req))
	})
	if err != nil {
		p.ledger.refused(id)
		return nil, err
	}
	p.ledger.acknowledged(id, got.Msg.GetSettlement().GetOutcome(), got.Msg.GetSettlement().GetMessageId())
	return got.Msg.GetSettlement(), nil
}

// log reads a session's whole log: the header, then one event a string.
func (p *person) log(ctx context.Context, session string) ([]string, error) {
	var all []string
	for from := int64(0); from >= 0; {
		page, err := retry(ctx, func(ctx context.Context) (*connect.Response[messages.ReadLogResponse], error) {
			return p.sessions.ReadLog(ctx, connect.NewRequest(&messages.ReadLogRequest{Session: session, FromSeq: from}))
		})
		if err != nil {
			return nil, err
		}
		all, from = append(all, page.Msg.GetEvents()...), page.Msg.GetNextSeq()
		if len(page.Msg.GetEvents()) == 0 {
			break
		}
	}
	return all, nil
}

// within is a context for what must come within a time.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
