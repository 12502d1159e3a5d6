package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/e2e/faultproxy"
	"github.com/parleyrun/parley/messages"
)

const (
	faultRuns    = 40 // without PARLEY_FAULTS_N
	faultWorkers = 8
	responseMax  = 1600 // bytes of a response with its headers, so that cuts fall into all of it
	faultLongest = 300 * time.Millisecond
	faultLimit   = 3 * time.Second // of a client's call, instead of its minute
	runLimit     = 60 * time.Second
	failuresMax  = 5 // after which there is enough to look at
)

// A conversation with faults: every seed is another one. Client and person reach the node through a proxy that spoils
// what passes, the node is killed now and then, and the ledger is right in the end.
func TestFaults(t *testing.T) {
	n := numberFrom(t, "PARLEY_FAULTS_N", faultRuns)
	first := numberFrom(t, "PARLEY_FAULTS_SEED", rand.IntN(1_000_000_000))
	needNode(t)
	t.Parallel()
	seeds := make(chan uint64)
	var working sync.WaitGroup
	var sum tally
	var failed atomic.Int32
	for range min(faultWorkers, n) {
		working.Go(func() {
			node := serve(t)
			for seed := range seeds {
				if err := faulty(t.Context(), node, seed, &sum); err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\nrepeat it: make faults N=1 SEED=%d", seed, err, seed)
				}
			}
		})
	}
	for i := range n {
		if failed.Load() >= failuresMax {
			break
		}
		seeds <- uint64(first + i)
	}
	close(seeds)
	working.Wait()
	require.True(t, t.Failed() || n < faultRuns || sum.tests(), "too little happened: %s", &sum)
	t.Logf("%d conversations from seed %d on: %s", n, first, &sum)
}

func numberFrom(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	require.Positive(t, n, name)
	return n
}

// tally counts what happened over all conversations, so that a suite that tests nothing is seen.
type tally struct {
	requests, faults, kills, lost, results, replies, again, unread atomic.Int64
}

// tests reports whether everything happened that the suite is there for.
func (s *tally) tests() bool {
	for _, n := range []*atomic.Int64{&s.faults, &s.kills, &s.lost, &s.results, &s.replies, &s.again} {
		if n.Load() == 0 {
			return false
		}
	}
	return true
}

func (s *tally) String() string {
	return fmt.Sprintf("%d requests, %d of them spoiled; %d kills; %d calls lost; %d answers as results, %d as replies; %d of these listed again; %d repeats refused",
		s.requests.Load(), s.faults.Load(), s.kills.Load(), s.lost.Load(), s.results.Load(), s.replies.Load(), s.again.Load(), s.unread.Load())
}

// faultRun is one conversation. What it does comes from its seed alone.
type faultRun struct {
	seed   uint64
	dice   *rand.Rand
	sum    *tally
	node   *node
	kind   kind
	ledger *ledger
	person *person
	dial   dialing

	session string
	slow    sync.Map // questions with a call that the network keeps for a while
	healed  atomic.Bool
	started time.Time
	story   tail

	mu    sync.Mutex
	agent agent
	after string
}

func faulty(ctx context.Context, n *node, seed uint64, sum *tally) (err error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	dice := rand.New(rand.NewPCG(seed, 0))
	r := &faultRun{seed: seed, dice: dice, sum: sum, node: n, kind: kinds[dice.IntN(len(kinds))], ledger: newLedger(), started: time.Now(),
		session: fmt.Sprintf("f-%d-%d", seed, serial.Add(1))}
	proxy, err := faultproxy.New(ctx, n.addr, r.plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	r.person = newPerson(proxy.Addr(), r.ledger)
	r.dial = dialing{kind: r.kind, url: endpoint(proxy.Addr(), r.session, url.Values{"wait_max": {"2s"}}), timeout: faultLimit, hurry: true}
	defer r.leave()
	played := r.play(ctx)
	r.healed.Store(true)
	events, err := r.person.log(context.WithoutCancel(ctx), r.session)
	if wrong := r.ledger.close(events); played != nil || err != nil || len(wrong) > 0 {
		return fmt.Errorf("%s in %s: %w\n  %s\nwhat happened:\n%s\nthe log:\n%s", r.kind, r.session, errors.Join(played, err),
			strings.Join(wrong, "\n  "), r.story.String(), strings.Join(events, "\n"))
	}
	r.ledger.count(sum)
	return nil
}

// tell notes what happened, for the case that it comes out wrong.
func (r *faultRun) tell(format string, args ...any) {
	_, _ = fmt.Fprintf(&r.story, "%5d ms  %s\n", time.Since(r.started).Milliseconds(), fmt.Sprintf(format, args...)) // it keeps what it can
}

// plan spoils every third request, and the first call of a tool always.
func (r *faultRun) plan(req faultproxy.Request) faultproxy.Plan {
	r.sum.requests.Add(1)
	dice := rand.New(rand.NewPCG(r.seed, uint64(req.N)+1))
	if r.healed.Load() || dice.IntN(3) > 0 && req.N != 2 {
		return faultproxy.Plan{}
	}
	r.sum.faults.Add(1)
	p := faultproxy.Draw(dice, responseMax, faultLongest)
	r.tell("request %d, %s %s %.400q: %s", req.N, req.Method, req.Path, req.Body, p)
	if q := questionText.FindString(string(req.Body)); q != "" && strings.Contains(string(req.Body), "ask_user_question") {
		if p.Duplicate {
			r.ledger.repeated(q, 2)
		}
		if p.Delay+p.Hold > 0 {
			r.slow.Store(q, true)
		}
	}
	return p
}

// play asks a few questions, answers them, kills the node or not, and collects until nothing is left.
func (r *faultRun) play(ctx context.Context) error {
	count, atOnce := 1+r.dice.IntN(3), r.dice.IntN(2) == 0
	var killing sync.WaitGroup
	if r.dice.IntN(4) == 0 {
		when, how := time.Duration(r.dice.Int64N(int64(time.Second))), []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[r.dice.IntN(2)]
		killing.Go(func() {
			if pause(ctx, when) {
				r.sum.kills.Add(1)
				r.tell("%v", how)
				r.node.stop(how)
				for r.node.start() != nil && pause(ctx, 50*time.Millisecond) {
				}
			}
		})
	}
	errs := make(chan error, 2*count)
	var talking sync.WaitGroup
	for range count {
		q := r.inquiry(ctx)
		talking.Go(func() { errs <- r.answer(ctx, q) })
		talk := func() { errs <- r.ask(ctx, q) }
		if atOnce {
			talking.Go(talk)
		} else {
			talk()
		}
		if !atOnce && r.dice.IntN(2) == 0 {
			_, _ = r.collect(ctx) // lost or not: what it listed is listed again
		}
	}
	talking.Wait()
	killing.Wait()
	for range 2 * count {
		if err := <-errs; err != nil {
			return err
		}
	}
	return r.drain(ctx)
}

// inquiry is one question, and what agent and person will do about it.
type inquiry struct {
	text     string
	timeout  int           // as the agent asks for it
	latency  time.Duration // for which the person thinks
	patience time.Duration // after which the agent's user interrupts its first call; 0: never
	regrets  bool          // the agent withdraws it once it is pending

	withdrawn context.Context // ends with the withdrawal
	withdraw  context.CancelFunc
}

func (r *faultRun) inquiry(ctx context.Context) *inquiry {
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.dice.Int64N(int64(d))) }
	q := &inquiry{text: newQuestion(), timeout: []int{1, 2, -1}[r.dice.IntN(3)], regrets: r.dice.IntN(6) == 0}
	// The person is mostly in time, sometimes not.
	q.latency = upTo([]time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 2500 * time.Millisecond}[r.dice.IntN(3)])
	if r.dice.IntN(6) == 0 {
		q.patience = time.Millisecond + upTo(200*time.Millisecond)
	}
	q.withdrawn, q.withdraw = context.WithCancel(ctx)
	return q
}

// answer is the person: answers the question, unless it was withdrawn before.
func (r *faultRun) answer(ctx context.Context, q *inquiry) error {
	row, err := r.person.find(q.withdrawn, r.session, q.text, "open", "continued")
	if err == nil {
		pause(ctx, q.latency)
		var said *messages.Settlement
		said, err = r.person.answer(ctx, row)
		r.tell("%q answered at %s: %v, %v", q.text, row.GetCallId(), said.GetOutcome(), err)
	}
	if err != nil && !q.regrets && strings.Contains(err.Error(), "withdrawn by") {
		return r.answer(ctx, q) // it was asked twice, and one was taken back: the other is there
	}
	if err != nil && q.regrets && connect.CodeOf(err) == connect.CodeFailedPrecondition { // the withdrawal was first
		<-q.withdrawn.Done()
	}
	if q.withdrawn.Err() == nil || ctx.Err() != nil {
		return err
	}
	if err == nil && r.ledger.may(q.text) == 1 { // the agent was told that nobody answered first
		return fmt.Errorf("%q was answered, and withdrawn", q.text)
	}
	return nil
}

// ask is the agent's loop: a lost call is made again, until the model knows how it stands.
func (r *faultRun) ask(ctx context.Context, q *inquiry) error {
	for {
		take := r.ledger.asking(q.text)
		got, err := r.call(ctx, q)
		switch {
		case err != nil:
			if _, slow := r.slow.LoadAndDelete(questionText.FindString(q.text)); slow { // it may come after its own repeat
				r.ledger.repeated(q.text, 2)
			}
		case strings.Contains(got.text, string(messages.UnreadAnswer)): // it is answered, and will be listed
			r.sum.unread.Add(1)
			return nil
		case !got.isError:
			take(got)
			if q.regrets && got.pending() {
				return r.regret(ctx, q, compact(got.structured["callId"]))
			}
			return nil
		case !passing(got.text):
			return fmt.Errorf("asking %q: %s", q.text, got.text)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("asking %q: %w", q.text, errors.Join(ctx.Err(), err))
		}
	}
}

// call calls ask_user_question once.
func (r *faultRun) call(ctx context.Context, q *inquiry) (reply, error) {
	a, err := r.connected(ctx)
	if err != nil {
		return reply{}, err
	}
	mine := ctx
	if q.patience > 0 {
		var cancel context.CancelFunc
		mine, cancel = context.WithTimeout(ctx, q.patience)
		defer cancel()
	}
	interrupted := q.patience > 0
	q.patience = 0
	got, err := a.call(mine, call{tool: "ask_user_question", args: question(q.text, map[string]any{"timeout": q.timeout}), timeout: faultLimit})
	r.tell("%q asked: %s, %v", q.text, got.text, err)
	switch {
	case err == nil:
	case !interrupted || mine.Err() == nil:
		r.lost(a)
	case r.kind.old(): // until the node hears of it, by another request, an answer is in time: it is written, and not read
		r.ledger.interrupted(q.text)
	}
	return got, err
}

// regret withdraws a question, however often that takes. An answer that was first stands.
func (r *faultRun) regret(ctx context.Context, q *inquiry, id string) error {
	for {
		a, err := r.connected(ctx)
		if err != nil {
			return err
		}
		got, err := a.call(ctx, call{tool: "withdraw_question", args: map[string]any{"call_id": strings.Trim(id, `"`)}, timeout: faultLimit})
		r.tell("%q withdrawn: %s, %v", q.text, got.text, err)
		switch {
		case err != nil:
			r.lost(a)
		case got.structured["withdrawn"] == true:
			q.withdraw()
			return nil
		case !got.isError:
			return nil
		case !passing(got.text):
			return fmt.Errorf("withdrawing %q: %s", q.text, got.text)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("withdrawing %q: %w", q.text, errors.Join(ctx.Err(), err))
		}
	}
}

// passing reports whether an error says that a call may be made again.
func passing(text string) bool { return strings.Contains(text, string(messages.Unavailable)) }

// connected returns the agent, connected anew if the connection was lost.
func (r *faultRun) connected(ctx context.Context) (agent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.agent == nil {
		a, err := dial(ctx, r.dial)
		if err == nil {
			r.agent = a
			break
		}
		if !pause(ctx, 20*time.Millisecond) {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
	return r.agent, nil
}

// lost gives up a connection, as users do with a client that fails them.
func (r *faultRun) lost(a agent) {
	r.sum.lost.Add(1)
	r.mu.Lock()
	mine := r.agent == a
	if mine {
		r.agent = nil
	}
	r.mu.Unlock()
	if mine {
		go a.close() // it may wait for its node
	}
}

func (r *faultRun) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agent != nil {
		go r.agent.close()
	}
}

func (r *faultRun) collect(ctx context.Context) (n int, err error) {
	a, err := r.connected(ctx)
	if err != nil {
		return 0, err
	}
	args, after := map[string]any{}, r.after
	if r.dice.IntN(3) == 0 {
		after = "" // a model that forgets to say what it has
	}
	if after != "" {
		args["after"] = after
	}
	got, err := a.call(ctx, call{tool: "collect_replies", args: args, timeout: faultLimit})
	r.tell("collected after %q: %s, %v", after, got.text, err)
	if err != nil {
		r.lost(a)
		return 0, err
	}
	list, err := readCollected(got)
	if err != nil {
		if !passing(got.text) {
			r.ledger.mu.Lock()
			r.ledger.blame("%v", err)
			r.ledger.mu.Unlock()
		}
		return 0, err
	}
	r.ledger.collected(after, list)
	if list.Token != "" {
		r.after = list.Token
	}
	return len(list.Replies) + list.More, nil
}

// drain heals the network and collects until nothing is left, twice over.
func (r *faultRun) drain(ctx context.Context) error {
	spoiled := r.dice.IntN(4) // lists that may still be lost
	for empty := 0; empty < 2; {
		if spoiled--; spoiled < 0 {
			r.healed.Store(true)
		}
		n, err := r.collect(ctx)
		switch {
		case err == nil && n == 0:
			empty++
		case err == nil:
			empty = 0
		case !pause(ctx, 20*time.Millisecond):
			return fmt.Errorf("collecting: %w", errors.Join(ctx.Err(), err))
		}
	}
	return r.nothingIsOpen(ctx)
}

// nothingIsOpen: no question of the session is still to be answered, but for those that the network made twice.
func (r *faultRun) nothingIsOpen(ctx context.Context) error {
	list, err := retry(ctx, func(ctx context.Context) (*connect.Response[messages.ListQuestionsResponse], error) {
		return r.person.questions.ListQuestions(ctx, connect.NewRequest(&messages.ListQuestionsRequest{Session: r.session}))
	})
	if err != nil {
		return err
	}
	for _, row := range list.Msg.GetQuestions() {
		if q := row.GetQuestions()[0].GetQuestion(); r.ledger.may(q) == 1 {
			return fmt.Errorf("%q is still %s", q, row.GetState())
		}
	}
	return nil
}

// The response of collect_replies is cut at each of its bytes, and of the newest client's in-time answer too: nothing
// is lost, nothing doubled, and what was seen before says so.
func TestFaultsAtEveryByte(t *testing.T) {
	t.Parallel()
	step := 1
	if numberFrom(t, "PARLEY_FAULTS_N", faultRuns) < 1000 {
		step = 83
	}
	c := talking(t, serve(t), goClient, nil)
	q := newQuestion()
	isPending(t, c.ask(t.Context(), q, map[string]any{"timeout": 1}))
	c.answer(q, "queued")
	var at atomic.Int64
	c.through(func(r faultproxy.Request) faultproxy.Plan {
		spoil := at.Load() >= 0 && (strings.Contains(string(r.Body), "collect_replies") || strings.Contains(string(r.Body), "ask_user_question"))
		return faultproxy.Plan{Cut: spoil, CutAfter: int(at.Load())}
	})
	cuts := 0
	for whole := false; !whole; at.Add(int64(step)) {
		_, err := c.collect(false)
		whole = err == nil
		cuts++
	}
	require.Greater(t, cuts, 2)
	at.Store(-1)
	got, err := c.collect(false)
	require.NoError(t, err)
	require.Len(t, got.Replies, 1)
	require.Equal(t, cuts+1, got.Replies[0].Delivery)
	c.over()
	t.Logf("a list cut %d times", cuts-1)

	cuts = 0
	for k, whole := 0, false; !whole; k += step {
		at.Store(int64(k))
		q := newQuestion()
		done := c.asking(t.Context(), q, nil)
		c.answer(q, "answered")
		got := await(t, done, patience)
		at.Store(-1)
		if whole = got.err == nil; whole {
			isAnswer(t, got)
			break
		}
		cuts++
		require.Eventually(t, func() bool {
			list, err := c.collect(true)
			return err == nil && len(list.Replies) == 1 && list.Replies[0].Kind == "result"
		}, patience, 5*time.Millisecond, "cut at byte %d", k)
	}
	c.over()
	t.Logf("a result cut %d times", cuts)
}
