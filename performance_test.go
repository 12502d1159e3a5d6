package parley_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/journal/sqlite/sqlitetest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// The benchmarks of docs/performance.md. Each measures Parley and, in the same
// run and in turn with it, the physical floor: a bare SQLite group commit of
// two rows per round trip through the same driver. Only the ratio is a claim.

// question is about 300 bytes of arguments, as the comparison of peers uses.
var question = parley.Question{
	ID: "deploy", Header: "Deploy",
	Text: "The migration is ready and the tests are green. Shall I deploy build 4711 to production now, or wait for tonight's window?",
	Options: []parley.Option{
		{Label: "Deploy now (Recommended)", Description: "Users may see a minute of slow pages."},
		{Label: "Wait", Description: "The window opens at 22:00."},
	},
}

func openBench(b *testing.B) *parley.Node {
	b.Helper()
	node, err := parley.Open(parley.Config{Path: filepath.Join(b.TempDir(), "parley.db"), PassivateAfter: -1})
	require.NoError(b, err)
	b.Cleanup(func() { _ = node.Close(context.WithoutCancel(b.Context())) })
	return node
}

// rounds makes n round trips with c workers, each with a session of its own.
func rounds(b *testing.B, n, c int, trip func(worker, i int)) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for w := range c {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				trip(w, int(i))
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// against measures trip and the bare floor in turn, in slices, so that both see
// the same machine. It reports both rates and the ratio.
func against(b *testing.B, c int, trip func(worker, i int)) {
	b.Helper()
	bare, err := sqlitetest.Open(filepath.Join(b.TempDir(), "bare.db"))
	require.NoError(b, err)
	defer func() { _ = bare.Close() }()
	row := []byte(strings.Repeat("x", 500))
	floor := func(int, int) {
		for range 2 {
			if err := bare.Commit(row); err != nil {
				b.Error(err)
			}
		}
	}
	const slices = 4
	rounds(b, c*4, c, trip) // warm
	rounds(b, c*4, c, floor)
	var ours, theirs time.Duration
	per := max(b.N/slices, c)
	b.ResetTimer()
	for s := range slices {
		ours += rounds(b, per, c, func(w, i int) { trip(w, s*per+i) })
		theirs += rounds(b, per, c, floor)
	}
	b.StopTimer()
	rate := func(d time.Duration) float64 { return float64(slices*per) / d.Seconds() }
	b.ReportMetric(rate(ours), "roundtrips/s")
	b.ReportMetric(rate(theirs), "bare/s")
	b.ReportMetric(rate(ours)/rate(theirs), "of-bare")
	b.ReportMetric(0, "ns/op")
}

func attachAll(b *testing.B, node *parley.Node, c int) []*parley.Agent {
	b.Helper()
	agents := make([]*parley.Agent, c)
	for i := range agents {
		var err error
		agents[i], err = node.Attach(b.Context(), "bench-"+strconv.Itoa(i), "root", parley.AttachOptions{})
		require.NoError(b, err)
	}
	return agents
}

// BenchmarkRoundTrip: ask, answer in time, resume.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("go/c=%d", c), func(b *testing.B) {
			node := openBench(b)
			agents := attachAll(b, node, c)
			against(b, c, func(w, _ int) { roundTrip(b, node, agents[w]) })
		})
	}
	for _, c := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("connect/c=%d", c), func(b *testing.B) {
			node := openBench(b)
			agents := attachAll(b, node, c)
			client := benchClient(b, node)
			against(b, c, func(w, _ int) { roundTripConnect(b, client, agents[w].Session()) })
		})
	}
}

type asked struct {
	result parley.Result
	err    error
}

// askDurable asks and returns once the question is durable; its result follows.
func askDurable(b *testing.B, agent *parley.Agent) (call string, done chan asked) {
	b.Helper()
	durable := make(chan string, 1)
	done = make(chan asked, 1)
	agent.AskAsync(parley.Ask{
		Questions: []parley.Question{question},
		OnWaiting: func(w parley.Waiting) { durable <- w.CallID },
	}, func(r parley.Result, err error) { done <- asked{r, err} })
	select {
	case call = <-durable:
	case a := <-done:
		b.Errorf("the ask ended before its answer: %v %v", a.result, a.err)
		done <- a
	}
	return call, done
}

func roundTrip(b *testing.B, node *parley.Node, agent *parley.Agent) {
	call, done := askDurable(b, agent)
	if _, err := node.Answer(b.Context(), agent.Session(), call, "bench", parley.Choose("deploy", "Wait")); err != nil {
		b.Error(err)
	}
	if a := <-done; a.err != nil {
		b.Error(a.err)
	}
}

func benchClient(b *testing.B, node *parley.Node) messagesconnect.QuestionServiceClient {
	b.Helper()
	handler, stop, err := node.Handler(parley.ServeOptions{})
	require.NoError(b, err)
	server := httptest.NewServer(handler)
	b.Cleanup(func() { stop(); server.Close() })
	// The default keeps two idle connections a host; the rest would be dialled anew.
	transport, ok := server.Client().Transport.(*http.Transport)
	require.True(b, ok)
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = 1024, 1024
	return messagesconnect.NewQuestionServiceClient(server.Client(), server.URL)
}

var attempts atomic.Int64

func roundTripConnect(b *testing.B, client messagesconnect.QuestionServiceClient, session string) {
	id := "t" + strconv.FormatInt(attempts.Add(1), 10)
	ask := &messages.AskRequest{Session: session, Root: "root", Attempt: id, CallId: id, HoldMs: 1,
		Questions: []*messages.Question{{Id: "deploy", Question: question.Text}}}
	if _, err := client.Ask(b.Context(), connect.NewRequest(ask)); err != nil { // durable, still waiting
		b.Error(err)
		return
	}
	done := make(chan error, 1)
	go func() {
		again := &messages.AskRequest{Session: session, Root: "root", Attempt: id, CallId: id, Resume: true}
		res, err := client.Ask(b.Context(), connect.NewRequest(again))
		if err == nil && res.Msg.GetAnswered() == nil {
			err = fmt.Errorf("not answered: %v", res.Msg)
		}
		done <- err
	}()
	submit := &messages.SubmitRequest{Session: session, CallId: id, SubmissionId: id,
		Answers: []*messages.Answer{{Id: "deploy", Selected: []string{"Wait"}}}}
	if _, err := client.Submit(b.Context(), connect.NewRequest(submit)); err != nil {
		b.Error(err)
	}
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// BenchmarkLate: a continued question is answered late and the reply admitted.
// Making it continued (ask, claim, the client's countdown ends) is in the trip.
func BenchmarkLate(b *testing.B) {
	for _, c := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("go/c=%d", c), func(b *testing.B) {
			node := openBench(b)
			agents := attachAll(b, node, c)
			against(b, c, func(w, _ int) { lateTrip(b, node, agents[w]) })
		})
	}
}

func lateTrip(b *testing.B, node *parley.Node, agent *parley.Agent) {
	call, done := askDurable(b, agent)
	claim, err := node.AttachWait(b.Context(), agent.Session(), call)
	if err != nil {
		b.Error(err)
		return
	}
	if _, err := claim.Expire(b.Context(), "bench"); err != nil {
		b.Error(err)
	}
	if a := <-done; a.err != nil {
		b.Error(a.err)
	}
	if _, err := node.Answer(b.Context(), agent.Session(), call, "bench", parley.Choose("deploy", "Wait")); err != nil {
		b.Error(err)
	}
	if got, err := agent.Collect(b.Context()); err != nil || len(got) != 1 {
		b.Errorf("collected %d: %v", len(got), err)
	}
}

// BenchmarkParked: open waits, one per session, callback askers, no claim; then
// the same with nobody asking any more, passivated. Bytes of resident memory each.
func BenchmarkParked(b *testing.B) {
	n := 100_000
	if s := os.Getenv("PARKED"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	node, err := parley.Open(parley.Config{Path: filepath.Join(b.TempDir(), "parley.db"), PassivateAfter: time.Second})
	require.NoError(b, err)
	defer func() { _ = node.Close(context.WithoutCancel(b.Context())) }()
	before := resident(b)
	cancels := make([]func(), n)
	var waiting sync.WaitGroup
	park := func(i int) {
		agent, err := node.Attach(b.Context(), "parked-"+strconv.Itoa(i), "root", parley.AttachOptions{})
		if err != nil {
			b.Error(err)
			return
		}
		cancels[i] = agent.AskAsync(parley.Ask{Questions: []parley.Question{question}, Timeout: 24 * time.Hour,
			OnWaiting: func(parley.Waiting) { waiting.Done() }}, func(parley.Result, error) {})
	}
	const batch = 5000 // as they come over time: what one leaves as garbage is collected before the next
	for from := 0; from < n; from += batch {
		size := min(batch, n-from)
		waiting.Add(size)
		rounds(b, size, 256, func(_, i int) { park(from + i - 1) })
		waiting.Wait()
		runtime.GC()
	}
	b.ReportMetric(float64(resident(b)-before)/float64(n), "B/parked")
	for _, cancel := range cancels {
		cancel()
	}
	for node.LiveSessions() > 0 {
		runtime.Gosched()
	}
	clear(cancels)
	b.ReportMetric(float64(resident(b)-before)/float64(n), "B/passivated")
	b.ReportMetric(0, "ns/op")
}

// resident is the process's resident memory after a garbage collection, in bytes.
func resident(b *testing.B) int64 {
	b.Helper()
	for range 3 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	require.NoError(b, err)
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	require.NoError(b, err)
	return pages * int64(os.Getpagesize())
}
