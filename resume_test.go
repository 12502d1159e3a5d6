package parley_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// cutter forwards connections to a node and cuts each one after so many bytes
// of the node's answer.
func cutter(t *testing.T, node string, bytes func() int64) (url string) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var open sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); open.Wait() })
	open.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", strings.TrimPrefix(node, "http://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			limit := bytes()
			end := sync.OnceFunc(func() { _ = near.Close(); _ = far.Close() })
			open.Go(func() { defer end(); _, _ = io.Copy(far, near) })
			open.Go(func() { defer end(); _, _ = io.CopyN(near, far, limit) })
		}
	})
	return "http://" + ln.Addr().String()
}

// step is what a watch told: one change.
type step struct {
	session, call, state, outcome string
	cursor                        int64
}

// follow watches from a cursor until the stream ends or a change is the last
// one, and returns the changes and the cursor to go on from.
func follow(ctx context.Context, c messagesconnect.QuestionServiceClient, cursor int64, last func(step) bool) (steps []step, next int64, done bool) {
	stream, err := c.WatchQuestions(ctx, say(&messages.WatchQuestionsRequest{Cursor: cursor}))
	if err != nil {
		return nil, cursor, false
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
		r := stream.Msg()
		cursor = max(cursor, r.GetCursor())
		if q := r.GetQuestion(); q != nil {
			s := step{q.GetSession(), q.GetCallId(), q.GetState(), q.GetSettlement().GetOutcome(), r.GetCursor()}
			steps = append(steps, s)
			if last(s) {
				return steps, cursor, true
			}
		}
	}
	return steps, cursor, false
}

// A watch goes on from its cursor without a gap and without a repeat: cut at
// any byte, over every protocol, while others write, a client is told exactly
// what one that was never cut is told.
func TestAWatchResumesWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attach("first")
	list, err := w.json().questions.ListQuestions(t.Context(), say(&messages.ListQuestionsRequest{}))
	require.NoError(t, err)
	start := list.Msg.GetCursor()
	require.Positive(t, start)
	last := func(s step) bool { return s.session == "last" && s.state == "settled" }

	dice, mu := rand.New(rand.NewPCG(1, 2)), sync.Mutex{}
	proxied := cutter(t, w.url, func() int64 {
		mu.Lock()
		defer mu.Unlock()
		return 200 + dice.Int64N(6000)
	})
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	var watchers sync.WaitGroup
	told, cuts := sync.Map{}, sync.Map{}
	watch := func(name, url string, transport *http.Transport, opts ...connect.ClientOption) {
		transport.DisableKeepAlives = name != "grpc"
		c := messagesconnect.NewQuestionServiceClient(&http.Client{Transport: transport}, url, opts...)
		watchers.Go(func() {
			defer transport.CloseIdleConnections()
			var all []step
			cursor, reconnects := start, 0
			for done := false; !done && t.Context().Err() == nil; reconnects++ {
				var some []step
				some, cursor, done = follow(t.Context(), c, cursor, last)
				all = append(all, some...)
			}
			told.Store(name, all)
			cuts.Store(name, reconnects-1)
		})
	}
	watch("whole", w.url, new(http.Transport))
	watch("json", proxied, new(http.Transport), connect.WithProtoJSON())
	watch("proto", proxied, new(http.Transport))
	watch("web", proxied, new(http.Transport), connect.WithGRPCWeb())
	watch("grpc", proxied, &http.Transport{Protocols: h2}, connect.WithGRPC())

	const writers, calls = 4, 12
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			session := fmt.Sprintf("s%d", i)
			agent := w.attach(session)
			for j := range calls {
				call := fmt.Sprintf("c%d", j)
				results := w.asked(agent, call, parley.Never)
				_, err := w.Answer(t.Context(), session, call, "ann", parley.Choose("env", "production"))
				assert.NoError(t, err)
				next(t, results)
			}
		})
	}
	writing.Wait()
	results := w.asked(w.attach("last"), "c", parley.Never)
	_, err = w.Answer(t.Context(), "last", "c", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	next(t, results)
	watchers.Wait()

	whole, _ := told.Load("whole")
	require.GreaterOrEqual(t, len(whole.([]step)), 2*(writers*calls+1))
	for _, name := range []string{"json", "proto", "web", "grpc"} {
		got, _ := told.Load(name)
		assert.Equal(t, whole, got, name)
		n, _ := cuts.Load(name)
		assert.Positive(t, n, "%s was never cut", name)
	}
}

// Faults N1 and N7: settled in the gap between two streams, a question comes
// back with its outcome, over every protocol, and what is shown goes.
func TestSettledInTheGapIsToldByTheNextStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	for name, c := range map[string]clients{"json": w.json(), "grpc": w.grpc(), "web": w.web()} {
		results := w.asked(agent, name, parley.Never)
		shown, cursor := cards{}, int64(0)
		rows, stop := w.watch(c, 0)
		for live := false; !live; {
			r := next(t, rows)
			shown.take(r)
			cursor, live = max(cursor, r.GetCursor()), r.GetLive()
		}
		stop()
		require.Equal(t, cards{"s/" + name: "open"}, shown)
		_, err := w.Answer(t.Context(), "s", name, "ann", parley.Choose("env", "staging"))
		require.NoError(t, err)
		next(t, results)
		rows, stop = w.watch(c, cursor)
		r := next(t, rows)
		shown.take(r)
		assert.Empty(t, shown, name)
		assert.Equal(t, "answered", r.GetQuestion().GetSettlement().GetOutcome(), name)
		assert.Equal(t, "ann", r.GetQuestion().GetSettlement().GetBy(), name)
		_, err = c.questions.Submit(t.Context(), say(&messages.SubmitRequest{Session: "s", CallId: name, SubmissionId: "late-" + name, Answers: choose("staging")}))
		assert.Equal(t, messages.Settled, refusal(err).Code, "no ghost can be answered")
		assert.True(t, next(t, rows).GetLive(), "and nothing is told twice")
		stop()
	}
}

// A viewer's watch is nobody who could answer: a legacy question fails at once
// beside it, and waits beside an answerer's.
func TestAViewerIsNoAnswerer(t *testing.T) {
	t.Parallel()
	const viewer, answerer = "the-token-of-a-viewer", "the-token-of-an-answerer"
	w := start(t, parley.Config{Memory: true, Logger: quiet}, parley.ServeOptions{Tokens: map[parley.Role][]string{
		parley.RoleViewer: {viewer}, parley.RoleAnswerer: {answerer}}})
	agent := w.attach("s")
	watch := func(token string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req := say(&messages.WatchQuestionsRequest{})
		req.Header().Set("Authorization", "Bearer "+token)
		stream, err := w.json().questions.WatchQuestions(ctx, req)
		require.NoError(t, err)
		require.True(t, stream.Receive(), "%v", stream.Err()) // live: a watch counts from here on
		return func() { cancel(); _ = stream.Close() }
	}
	defer watch(viewer)()
	legacy := parley.Ask{CallID: "none", Questions: []parley.Question{deploy}, Mode: parley.Legacy}
	_, err := agent.Ask(t.Context(), legacy)
	require.Equal(t, messages.NoProvider, messages.CodeOf(err))
	defer watch(answerer)()
	asked := make(chan bool, 8)
	legacy.CallID, legacy.OnWaiting = "some", func(parley.Waiting) { asked <- true }
	results := make(chan outcome, 1)
	agent.AskAsync(legacy, func(r parley.Result, err error) { results <- outcome{r, err} })
	select {
	case <-asked:
	case o := <-results:
		require.NoError(t, o.err)
	case <-time.After(patience):
		require.Fail(t, "the question was not asked")
	}
}
