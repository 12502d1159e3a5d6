package parley_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
	"github.com/parleyrun/parley/sessionlog"
)

// flaky is a journal whose next appends fail, in doubt: recorded or not.
type flaky struct {
	journal.Journal
	failures atomic.Int64
	after    bool // fail after the append was recorded
}

func (f *flaky) Append(b journal.Batch, done func(journal.Appended, error)) {
	fails := !b.Empty() && f.failures.Add(-1) >= 0
	switch {
	case fails && f.after:
		f.Journal.Append(b, func(journal.Appended, error) {
			done(journal.Appended{}, messages.Refuse(messages.JournalIO, "the disk coughed"))
		})
	case fails:
		go done(journal.Appended{}, messages.Refuse(messages.JournalIO, "the disk coughed"))
	default:
		f.Journal.Append(b, done)
	}
}

// A cough of the disk is not the program's trouble: the door asks again under
// the same key, and nothing is done twice. A disk that stays broken is told.
func TestTroubleIsRepeatedUnderTheSameKey(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("recorded=", after), func(t *testing.T) {
			t.Parallel()
			f := &flaky{Journal: memory.New(nil), after: after}
			node, err := parley.Open(parley.Config{Journal: f, Logger: quiet})
			require.NoError(t, err)
			defer func() { assert.NoError(t, node.Close(t.Context())) }()
			agent, err := node.Attach(t.Context(), "s", "agent-1", parley.AttachOptions{})
			require.NoError(t, err)
			f.failures.Store(1)
			results, waiting := make(chan outcome, 8), make(chan bool, 64)
			agent.AskAsync(parley.Ask{CallID: "c", Questions: []parley.Question{deploy},
				OnWaiting: func(parley.Waiting) { waiting <- true }}, func(r parley.Result, err error) { results <- outcome{r, err} })
			next(t, waiting)
			f.failures.Store(1)
			won, err := node.Answer(t.Context(), "s", "c", "ann", parley.Choose("env", "production"))
			require.NoError(t, err)
			assert.Equal(t, "answered", won.Outcome)
			require.IsType(t, parley.Answered{}, next(t, results).Result)
			log, err := f.Read(t.Context(), "s", 0, 0)
			require.NoError(t, err)
			counts := map[string]int{}
			for _, ev := range log.Events {
				counts[ev.Type]++
			}
			assert.Equal(t, 1, counts[sessionlog.TypeToolCall])
			assert.Equal(t, 1, counts[sessionlog.TypeToolResult])
			assert.Empty(t, results)
			if after {
				return // what was recorded is found again, however the append ended
			}
			f.failures.Store(1 << 30)
			_, err = agent.Ask(t.Context(), parley.Ask{Questions: []parley.Question{deploy}})
			assert.Equal(t, messages.JournalIO, messages.CodeOf(err))
			f.failures.Store(0)
		})
	}
}

// Two nodes on one journal cannot both write: the later one takes the session,
// the other is fenced, and its callers are repeated until they reach an owner.
func TestTwoNodesOnOneJournal(t *testing.T) {
	t.Parallel()
	j := memory.New(nil)
	var nodes [2]*parley.Node
	for i := range nodes {
		var err error
		nodes[i], err = parley.Open(parley.Config{Journal: j, NodeName: fmt.Sprint("node", i), Logger: quiet})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, nodes[i].Close(context.WithoutCancel(t.Context()))) })
	}
	for i := range 6 {
		agent, err := nodes[i%2].Attach(t.Context(), "s", "agent-1", parley.AttachOptions{})
		require.NoError(t, err)
		_, err = nodes[i%2].Steer(t.Context(), parley.Steering{Session: "s", Text: "hello", ID: fmt.Sprint("m", i)})
		require.NoError(t, err)
		if i == 5 {
			got, err := agent.Collect(t.Context())
			require.NoError(t, err)
			assert.Len(t, got, 6)
		}
	}
}

// A blocking Ask whose context ends only stops listening.
func TestAContextEndsTheListeningOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	ctx, cancel := context.WithCancel(t.Context())
	ask := parley.Ask{CallID: "c", Attempt: "a", Questions: []parley.Question{deploy}, OnWaiting: func(parley.Waiting) { cancel() }}
	_, err := agent.Ask(ctx, ask)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, "open", w.row("s", "c").GetState())
	_, err = w.Answer(t.Context(), "s", "c", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	ask.OnWaiting = nil
	r, err := agent.Ask(t.Context(), ask)
	require.NoError(t, err)
	answered := r.(parley.Answered)
	env, ok := answered.Answer("env")
	assert.True(t, ok)
	assert.False(t, env.Skipped())
	assert.Equal(t, "c", r.Call())
	_, ok = answered.Answer("other")
	assert.False(t, ok)

	_, err = agent.Ask(ctx, ask)
	require.ErrorIs(t, err, context.Canceled, "a context that has ended asks nothing")
}

// Askers are values in a map: any number that wait need no goroutine each.
func TestAskersNeedNoGoroutines(t *testing.T) {
	node, err := parley.Open(parley.Config{Memory: true, Logger: quiet, OpenCallsMax: 1000})
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close(t.Context())) }()
	const sessions, calls = 12, 50
	before := runtime.NumGoroutine()
	waiting := make(chan bool, sessions*calls)
	var ended atomic.Int64
	var cancels []func()
	for i := range sessions {
		agent, err := node.Attach(t.Context(), fmt.Sprint("s", i), "agent-1", parley.AttachOptions{})
		require.NoError(t, err)
		for k := range calls {
			cancels = append(cancels, agent.AskAsync(parley.Ask{CallID: fmt.Sprint("c", k), Questions: []parley.Question{deploy}, Timeout: parley.Never,
				OnWaiting: func(parley.Waiting) { waiting <- true }}, func(parley.Result, error) { ended.Add(1) }))
		}
	}
	for range sessions * calls {
		next(t, waiting)
	}
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() < before+50 })
	for _, cancel := range cancels {
		cancel()
		cancel()
	}
	assert.Zero(t, ended.Load(), "a cancelled ask hears nothing more")
	page, err := node.Questions(t.Context(), parley.Filter{})
	require.NoError(t, err)
	assert.Len(t, page.Questions, messages.PageMax)
	assert.NotEmpty(t, page.Next)
}

// The models see the arguments as they would have written them themselves.
func TestQuestionsBecomeTheToolsArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	ask := parley.Ask{CallID: "c", Timeout: 90 * time.Second, Questions: []parley.Question{
		{ID: "a", Text: "Is 1 < 2 & 3 > 2?", Header: "Maths", MultiSelect: true, Options: []parley.Option{{Label: "yes", Description: "it is"}, {Label: "no"}}},
		{ID: "b", Text: "Why?"}}}
	waiting := make(chan parley.Waiting, 8)
	ask.OnWaiting = func(v parley.Waiting) { waiting <- v }
	agent.AskAsync(ask, func(parley.Result, error) {})
	v := next(t, waiting)
	assert.Equal(t, "c", v.CallID)
	assert.WithinDuration(t, time.Now().Add(90*time.Second), v.Deadline, 30*time.Second)
	log, err := w.json().sessions.ReadLog(t.Context(), say(&messages.ReadLogRequest{Session: "s"}))
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(log.Msg.GetEvents()), `"arguments":"{\"questions\":[{\"id\":\"a\",\"question\":\"Is 1 < 2 & 3 > 2?\",\"header\":\"Maths\",`+
		`\"options\":[{\"label\":\"yes\",\"description\":\"it is\"},{\"label\":\"no\"}],\"multi_select\":true},{\"id\":\"b\",\"question\":\"Why?\"}],\"timeout\":90}"`)
	row := w.row("s", "c")
	assert.True(t, row.GetQuestions()[0].GetMultiSelect())
	assert.Equal(t, "it is", row.GetQuestions()[0].GetOptions()[0].GetDescription())

	_, err = agent.Ask(t.Context(), parley.Ask{Questions: []parley.Question{deploy}, Timeout: 1500 * time.Millisecond})
	assert.Equal(t, messages.BadTimeout, messages.CodeOf(err))
	_, err = agent.Ask(t.Context(), parley.Ask{})
	assert.Equal(t, messages.EmptyQuestions, messages.CodeOf(err))
	_, err = agent.Ask(t.Context(), parley.Ask{Questions: []parley.Question{deploy, deploy}})
	assert.Equal(t, messages.InvalidArgs, messages.CodeOf(err))
	_, err = agent.Ask(t.Context(), parley.Ask{Arguments: `{"questions": [{"id": 1}]}`})
	assert.Equal(t, messages.InvalidArgs, messages.CodeOf(err))
}

// A claim in Go: what is left, its end, and why.
func TestClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	results := w.asked(agent, "c", 30*time.Second)
	one, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	two, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	left, never := one.Remaining()
	assert.False(t, never)
	assert.InDelta(t, 30, left.Seconds(), 20)
	settled, err := one.Expire(t.Context(), "ann")
	require.NoError(t, err)
	assert.False(t, settled, "the other one holds (unanimous)")
	require.NoError(t, one.Wait(t.Context()))
	require.NoError(t, one.Wait(t.Context()), "asked again it says the same")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, two.Wait(ended), context.Canceled)
	_, err = w.Answer(t.Context(), "s", "c", "bob", parley.Choose("env", "production"))
	require.NoError(t, err)
	next(t, results)
	assert.Equal(t, messages.Settled, messages.CodeOf(two.Wait(t.Context())))
	two.Release()
	two.Lose()
	_, err = w.AttachWait(t.Context(), "s", "c")
	assert.Equal(t, messages.Settled, messages.CodeOf(err))
	_, err = w.AttachWait(t.Context(), "s", "unknown")
	assert.Equal(t, messages.NotAnswerable, messages.CodeOf(err))

	w.asked(agent, "never", parley.Never)
	claim, err := w.AttachWait(t.Context(), "s", "never")
	require.NoError(t, err)
	_, never = claim.Remaining()
	assert.True(t, never)
	w.stop()
	assert.Equal(t, messages.Unavailable, messages.CodeOf(claim.Wait(t.Context())), "another node may be asked")
	_, err = w.Steer(t.Context(), parley.Steering{Session: "s", Text: "hello"})
	assert.Equal(t, messages.Unavailable, messages.CodeOf(err))
	_, err = w.AttachWait(t.Context(), "s", "never")
	assert.Equal(t, messages.Unavailable, messages.CodeOf(err))
	for _, err := range w.Watch(t.Context(), parley.WatchOptions{}) {
		assert.Equal(t, messages.Unavailable, messages.CodeOf(err))
	}
	require.NoError(t, w.Close(t.Context()), "closed already")
}

// Steps and turns are checked by name.
func TestTurnsAndSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	turn, err := agent.BeginTurn(t.Context(), 0)
	require.NoError(t, err)
	_, err = agent.BeginStep(t.Context(), turn, 1)
	require.NoError(t, err)
	results := w.asked(agent, "c", 0)
	assert.Equal(t, messages.CallsOpen, messages.CodeOf(agent.EndStep(t.Context(), turn, 1)))
	ended, err := agent.Withdraw(t.Context(), "c", "changed my mind")
	require.NoError(t, err)
	assert.Equal(t, "changed my mind", ended.Reason)
	next(t, results)
	require.NoError(t, agent.EndStep(t.Context(), turn, 1))
	_, err = agent.Ask(t.Context(), parley.Ask{Turn: turn, Step: 1, Questions: []parley.Question{deploy}})
	assert.Equal(t, messages.StepClosed, messages.CodeOf(err))
	require.NoError(t, agent.EndTurn(t.Context(), turn))
	_, err = agent.ClaimMessages(t.Context(), turn, true)
	assert.Equal(t, messages.TurnClosed, messages.CodeOf(err))
	again, err := w.Attach(t.Context(), "s", "agent-1", parley.AttachOptions{})
	require.NoError(t, err)
	assert.Equal(t, parley.Attached{Turn: turn, Step: 1}, again.Attached)
	assert.Equal(t, "s", again.Session())
}

// Only a legacy question can be dismissed.
func TestDismiss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	rows, _ := w.watch(w.json(), 0)
	next(t, rows)
	timed := w.asked(agent, "timed", 0)
	require.Error(t, w.Dismiss(t.Context(), "s", "timed", "ann"))
	require.Empty(t, timed)
	waiting, results := make(chan bool, 8), make(chan outcome, 1)
	agent.AskAsync(parley.Ask{CallID: "legacy", Mode: parley.Legacy, Questions: []parley.Question{deploy}, OnWaiting: func(parley.Waiting) { waiting <- true }},
		func(r parley.Result, err error) { results <- outcome{r, err} })
	next(t, waiting)
	require.NoError(t, w.Dismiss(t.Context(), "s", "legacy", "ann"))
	assert.Equal(t, messages.AskCancelled, messages.CodeOf(next(t, results).err))
}

// A second writer on one file would lose answers, so it is refused.
func TestASecondNodeOnOneFileIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := parley.Open(parley.Config{Path: w.cfg.Path, Logger: quiet})
	assert.Equal(t, messages.JournalLocked, messages.CodeOf(err), "%v", err)
}

// A backup is a journal.
func TestABackupIsAJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asked(w.attach("s"), "c", time.Hour)
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, w.Backup(t.Context(), copied))
	node, err := parley.Open(parley.Config{Path: copied, Logger: quiet})
	require.NoError(t, err)
	defer func() { assert.NoError(t, node.Close(t.Context())) }()
	row, err := node.Question(t.Context(), "s", "c")
	require.NoError(t, err)
	assert.Equal(t, "open", row.GetState())
}

// A program that has a server of its own mounts the doors, and reads as it likes.
func TestAHandlerInAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	node, err := parley.Open(parley.Config{Memory: true, Logger: quiet})
	require.NoError(t, err)
	defer func() { assert.NoError(t, node.Close(t.Context())) }()
	_, _, err = node.Handler(parley.ServeOptions{Token: "short"})
	require.Equal(t, messages.BadRequest, messages.CodeOf(err))
	handler, stop, err := node.Handler(parley.ServeOptions{})
	require.NoError(t, err)
	srv := httptest.NewServer(handler)
	defer srv.Close()
	c := (&world{t: t, url: srv.URL}).json()
	_, err = c.sessions.Attach(t.Context(), say(&messages.AttachRequest{Session: "s", Root: "r", Cwd: "/tmp"}))
	require.NoError(t, err)
	rows, next, err := node.Sessions(t.Context(), "", 0)
	require.NoError(t, err)
	assert.Empty(t, next)
	assert.Equal(t, "/tmp", rows[0].GetCwd())
	row, err := node.Session(t.Context(), "s")
	require.NoError(t, err)
	assert.Equal(t, "r", row.GetRoot())
	header, events, more, err := node.Log(t.Context(), "s", 0, 10)
	require.NoError(t, err)
	assert.Contains(t, header, `"cwd":"/tmp"`)
	assert.Len(t, events, 1)
	assert.Equal(t, int64(-1), more)
	for _, limit := range []int{-5, 1 << 40} {
		_, _, err = node.Sessions(t.Context(), "", limit)
		assert.Error(t, err)
	}
	stop()
	_, err = c.sessions.Attach(t.Context(), say(&messages.AttachRequest{Session: "s", Root: "r"}))
	assert.Equal(t, messages.Unavailable, refusal(err).Code)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]parley.Config{
		"nothing to keep it in": {},
		"two journals":          {Memory: true, Path: "x"},
		"a slash":               {Memory: true, NodeName: "a/b"},
		"half a second":         {Memory: true, DefaultTimeout: time.Second / 2},
		"a fraction":            {Memory: true, DefaultTimeout: 1500 * time.Millisecond},
		"a month":               {Memory: true, DefaultTimeout: 720 * time.Hour},
		"a grace below zero":    {Memory: true, ClaimGrace: -2},
		"an hour of nothing":    {Memory: true, PassivateAfter: time.Microsecond},
		"a heartbeat of none":   {Memory: true, Heartbeat: -1},
		"a policy of its own":   {Memory: true, Expiry: "last"},
		"a mode of its own":     {Memory: true, Mode: 7},
		"a limit below zero":    {Memory: true, QueueMax: -1},
	} {
		_, err := parley.Open(cfg)
		assert.Equal(t, messages.BadRequest, messages.CodeOf(err), name)
	}
	_, err := parley.Open(parley.Config{Path: t.TempDir(), Logger: quiet})
	assert.NotEmpty(t, messages.CodeOf(err), "a folder is no journal: %v", err)
	node, err := parley.Open(parley.Config{Memory: true, Logger: quiet, DefaultTimeout: parley.Never, ClaimGrace: parley.Never,
		PassivateAfter: parley.Never, Expiry: parley.First, Mode: parley.Timed})
	require.NoError(t, err)
	require.NoError(t, node.Close(t.Context()))
	assert.Equal(t, 15*time.Second, query.HeartbeatDefault)
}

// Passivation loses nothing: a session that was unloaded answers as before.
func TestAPassivatedSessionAnswersAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *parley.Config) { c.PassivateAfter = 20 * time.Millisecond })
	agent := w.attach("s")
	results := w.asked(agent, "c", 0)
	claim, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	_, err = claim.Expire(t.Context(), "ann")
	require.NoError(t, err)
	next(t, results)
	eventually(t, "the session stays in memory", func() bool { return metrics(t, w)["parley_sessions"] == 0 })
	_, err = w.Answer(t.Context(), "s", "c", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	eventually(t, "the session stays in memory", func() bool { return metrics(t, w)["parley_sessions"] == 0 })
	late, err := agent.Collect(t.Context())
	require.NoError(t, err)
	assert.Len(t, late, 1)
}
