package actors_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// chaos is a session with two doors and a few claims around it, all of them
// the real machines, and a world that reorders, kills, restarts and turns its
// clock back. In half of the runs the doors and claims are on other nodes: what
// they say is lost at times, and so is what is said to them, claims have leases
// and doors repeat.
type chaos struct {
	*rig
	rt    *rapid.T
	doors [2]*actors.Door
	again [2]held // the doors' timers
	lease int64   // ms; 0: one node
	lossy bool
	corr  uint64
	calls map[actors.Addr]messages.Command // by the door's address and correlation
	told  map[actors.Addr][]messages.Message
	left  map[actors.Addr]bool // the caller went away
	// repeated: the door asked again, while the first may still be on its way.
	repeated map[actors.Addr]bool
	claims   map[string]*held
	root     string
	dying    bool // after the next append
}

// held is a claim, and when it gives up on its session.
type held struct {
	m     *actors.Claim
	timer actors.Timer
	at    int64 // monotonic; 0: no timer
	ended bool  // its client was told so
}

func newChaos(t *rapid.T) *chaos {
	w := &chaos{rt: t, calls: map[actors.Addr]messages.Command{}, told: map[actors.Addr][]messages.Message{},
		left: map[actors.Addr]bool{}, repeated: map[actors.Addr]bool{}, claims: map[string]*held{}, root: "root"}
	w.rig = unattached(t, func(r *actors.Rules) {
		r.FirstExpiryWins = rapid.Bool().Draw(t, "first expiry wins")
		r.ClaimGraceMS = rapid.SampledFrom([]int64{0, 700}).Draw(t, "grace")
		r.PassivateAfterMS = rapid.SampledFrom([]int64{0, 900}).Draw(t, "passivate")
		r.OpenCallsMax, r.QueueMax = 3, 4
	})
	w.lease = rapid.SampledFrom([]int64{0, 1000}).Draw(t, "lease")
	for i := range w.doors {
		w.doors[i] = actors.NewDoor(fmt.Sprintf("door/%d", i), 2*w.lease)
	}
	w.Delivered, w.Lost, w.Answered, w.Told = nil, w.lost, w.answered, w.tell
	w.Dies = func() bool { d := w.dying; w.dying = false; return d }
	w.Choose = func(n int) int {
		if n == 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, "mailbox")
	}
	w.command(attach("root"))
	w.settle()
	w.lossy = w.lease > 0
	return w
}

// loses decides whether the network loses a message.
func (w *chaos) loses() bool { return w.lossy && rapid.IntRange(0, 9).Draw(w.rt, "lost") == 0 }

// post hands what a door or a claim says to the session, if it arrives.
func (w *chaos) post(s actors.Send) {
	if !w.loses() {
		w.Send(s.From, s.Msg)
	}
}

// command hands a command to a door.
func (w *chaos) command(cmd messages.Command) actors.Addr {
	w.corr++
	i := int(w.corr) % len(w.doors)
	at := actors.Addr{Key: fmt.Sprintf("door/%d", i), Corr: w.corr}
	w.calls[at], w.said[at] = cmd, cmd
	w.door(i, actors.Envelope{Msg: actors.DoorCall{Corr: w.corr, Cmd: cmd}})
	return at
}

func (w *chaos) door(i int, in actors.Envelope) {
	fx := w.doors[i].Step(w.Now, in)
	for _, s := range fx.Sends {
		_, timer := in.Msg.(actors.Fired)
		w.repeated[s.From] = w.repeated[s.From] || timer
		w.post(s)
	}
	w.again[i].set(w.Now, fx.Timers)
	for _, r := range fx.Replies {
		at := actors.Addr{Key: fmt.Sprintf("door/%d", i), Corr: r.To.Corr}
		w.told[at] = append(w.told[at], r.Msg)
	}
}

func (w *chaos) answered(r actors.Reply) {
	for i := range w.doors {
		if r.To.Key == fmt.Sprintf("door/%d", i) && !w.loses() {
			w.door(i, actors.Envelope{To: r.To, Msg: r.Msg})
		}
	}
}

func (w *chaos) tell(s actors.Send) {
	if !w.loses() {
		w.claim(s.To.Key, s.Msg)
	}
}

// claim lets a claim take an input, and its client hear what comes of it.
func (w *chaos) claim(name string, msg any) {
	c, ok := w.claims[name]
	if !ok {
		return
	}
	w.claimed(c, c.m.Step(w.Now, actors.Envelope{Msg: msg}))
}

func (w *chaos) claimed(c *held, fx actors.Effects) {
	for _, s := range fx.Sends {
		w.post(s)
	}
	for _, r := range fx.Replies {
		_, end := r.Msg.(*messages.ClaimEnd)
		require.False(w.t, c.ended, "a claim spoke after its end")
		c.ended = c.ended || end
	}
	c.set(w.Now, fx.Timers)
}

func (c *held) set(now actors.Now, timers []actors.Timer) {
	for _, tm := range timers {
		if c.timer, c.at = tm, 0; tm.After >= 0 {
			c.at = now.Mono + tm.After
		}
	}
}

// fires reports whether the timer has come due; it then runs no more.
func (c *held) fires(now actors.Now) bool {
	due := c.at != 0 && c.at <= now.Mono
	if due {
		c.at = 0
	}
	return due
}

// lost tells everybody that the session lost something.
func (w *chaos) lost() {
	for at := range w.calls {
		w.repeated[at] = w.repeated[at] || len(w.told[at]) == 0
	}
	for i := range w.doors {
		w.door(i, actors.Envelope{Msg: actors.SessionGone{Session: "s1"}})
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		w.claim(name, actors.SessionGone{Session: "s1"})
	}
}

// pass lets time pass, for the session, for the doors and for the claims.
func (w *chaos) pass(ms int64) {
	w.Tick(ms)
	for i := range w.doors {
		if c := &w.again[i]; c.fires(w.Now) {
			w.door(i, actors.Envelope{Msg: actors.Fired{Name: c.timer.Name, Gen: c.timer.Gen}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if c := w.claims[name]; c.fires(w.Now) {
			w.claim(name, actors.Fired{Name: c.timer.Name, Gen: c.timer.Gen})
		}
	}
}

// settle delivers everything, and restarts a session that asked to be unloaded.
func (w *chaos) settle() {
	for w.Deliver() {
	}
	if w.Passivated {
		w.refold()
	}
}

// refold restarts, and holds that the fold of the log is the state.
func (w *chaos) refold() {
	before := snapshot(w.Session)
	w.Restart()
	require.Equal(w.t, before, snapshot(w.Session))
}

var chaosArguments = []string{
	`{"questions":[{"id":"q","question":"?"}],"timeout":1}`,
	`{"questions":[{"id":"q","question":"!"}],"timeout":2}`,
	`{"questions":[{"id":"q","question":"?"}],"timeout":-1}`,
	`{"questions":[{"id":"p","question":"?"},{"id":"q","question":"?"}],"timeout":1}`,
	`{"questions":[{"id":"q","question":"?"}],"timeout":0}`,
}

// act does one thing.
func (w *chaos) act() {
	t := w.rt
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	call := func() string { return pick("call", "c1", "c2", sub1) }
	agent := func() string {
		if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
			return "stranger"
		}
		return w.root
	}
	switch rapid.IntRange(0, 27).Draw(t, "act") {
	case 0, 1, 2:
		c, n := call(), rapid.IntRange(0, 6).Draw(t, "attempt")
		req := &messages.AskRequest{Session: "s1", Root: agent(), Attempt: fmt.Sprint(c, "/", n), CallId: c,
			Arguments: chaosArguments[n%len(chaosArguments)], AnswererPresent: true}
		if n == 6 {
			req.Mode = messages.Mode_MODE_LEGACY
		}
		if c == sub1 && rapid.IntRange(0, 9).Draw(t, "direct") > 0 {
			req.ParentCallId = "run"
		}
		if rapid.Bool().Draw(t, "watched") {
			req.Receipt, req.Correlation = true, "tool "+req.GetAttempt()
			req.Join = rapid.Bool().Draw(t, "join")
			req.WaitMaxMs = rapid.SampledFrom([]int64{0, 500}).Draw(t, "wait max")
			if rapid.Bool().Draw(t, "another lives") {
				req.Live = []string{fmt.Sprint(call(), "/", rapid.IntRange(0, 6).Draw(t, "live"))}
			}
		}
		w.command(req)
	case 3, 4, 5, 6:
		req := submitReq(call(), pick("submission", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"))
		if rapid.Bool().Draw(t, "both") {
			req.Answers = append(req.Answers, &messages.Answer{Id: "p"})
		}
		req.OnExpired = messages.OnExpired(rapid.IntRange(0, 2).Draw(t, "on expired"))
		w.command(req)
	case 7:
		w.command(expireReq(call(), pick("claim", "k1", "k2", "k3")))
	case 8:
		w.command(delegateReq(call(), pick("claim", "k1", "k2", "k3")))
	case 9:
		req := withdrawReq(call())
		req.Root = pick("by", "", w.root)
		w.command(req)
	case 10:
		w.command(&messages.DismissRequest{Session: "s1", CallId: call()})
	case 11, 12:
		w.openClaim(pick("claim", "k1", "k2", "k3"), call())
	case 13:
		if name := pick("claim", "k1", "k2", "k3"); w.claims[name] != nil {
			w.claim(name, actors.StreamClosed{Lost: rapid.Bool().Draw(t, "lost")})
		}
	case 14:
		w.command(steerReq(pick("message", "m1", "m2", "m3", "m4"), pick("list", "next-step", "next-turn")))
	case 15, 16:
		w.turns(agent())
	case 17, 18:
		w.messages(agent())
	case 19:
		if rapid.IntRange(0, 4).Draw(t, "take over") == 0 {
			w.root = fmt.Sprint("root", rapid.IntRange(0, 3).Draw(t, "root"))
			w.command(attach(w.root))
		}
	case 20:
		w.pass(rapid.SampledFrom([]int64{0, 1, 300, 400, 1000, 2500, 11_000}).Draw(t, "ms"))
	case 21:
		w.Jump(rapid.SampledFrom([]int64{-5000, -900, 900, 5000}).Draw(t, "jump"))
	case 22:
		kind := rapid.SampledFrom([]actors.PartKind{actors.WaitPart, actors.InboxPart}).Draw(t, "kind")
		if live := w.Live(kind); len(live) > 0 {
			w.Crash(live[rapid.IntRange(0, len(live)-1).Draw(t, "part")])
		}
	case 23:
		c := call()
		w.command(endForeground(c, fmt.Sprint(c, "/", rapid.IntRange(0, 6).Draw(t, "attempt"))))
	case 24, 25:
		req := collectReq(pick("token", append(w.tokens(), "")...))
		req.Root, req.Correlation = agent(), pick("correlation", "", "tool 1", "tool 2")
		if rapid.IntRange(0, 3).Draw(t, "one") == 0 {
			req.CallId = call()
		}
		w.command(req)
	case 26:
		req := &messages.AcknowledgeRequest{Session: "s1", CallId: call()}
		if rapid.Bool().Draw(t, "by correlation") {
			req.CallId, req.Correlation = "", pick("correlation", "tool 1", "tool 2", "tool c1/0", "tool c2/2")
		}
		w.command(req)
	case 27:
		switch pick("end", "restart", "die", "leave") {
		case "restart":
			w.refold()
		case "die":
			w.dying = true
		case "leave":
			if w.corr > 0 {
				w.leave(rapid.Uint64Range(1, w.corr).Draw(t, "caller"))
			}
		}
	}
}

// tokens are those of the lists that were handed out, in order.
func (w *chaos) tokens() []string {
	var out []string
	for corr := range w.corr {
		at := actors.Addr{Key: fmt.Sprintf("door/%d", int(corr+1)%len(w.doors)), Corr: corr + 1}
		for _, m := range w.told[at] {
			if res, ok := m.(*messages.CollectRepliesResponse); ok && res.GetToken() != "" {
				out = append(out, res.GetToken())
			}
		}
	}
	return out
}

func (w *chaos) openClaim(name, call string) {
	if w.claims[name] != nil {
		w.claim(name, actors.StreamClosed{})
	}
	c := &held{m: actors.NewClaim(actors.Addr{Key: name}, "s1", call, w.lease)}
	w.claims[name] = c
	w.claimed(c, c.m.Resume(w.Now))
}

func (w *chaos) leave(corr uint64) {
	i := int(corr) % len(w.doors)
	w.left[actors.Addr{Key: fmt.Sprintf("door/%d", i), Corr: corr}] = true
	w.door(i, actors.Envelope{Msg: actors.DoorCancel{Corr: corr}})
}

// turns lets the agent's loop go on, or out of order.
func (w *chaos) turns(root string) {
	t := w.rt
	n := int64(rapid.IntRange(0, 6).Draw(t, "turn"))
	switch rapid.IntRange(0, 4).Draw(t, "loop") {
	case 0:
		w.command(&messages.BeginTurnRequest{Session: "s1", Root: root, Turn: n})
	case 1:
		w.command(&messages.BeginStepRequest{Session: "s1", Root: root, Turn: 0, Step: n})
	case 2:
		w.command(&messages.EndStepRequest{Session: "s1", Root: root})
	default:
		w.command(&messages.EndTurnRequest{Session: "s1", Root: root, Turn: 0, Aborted: rapid.Bool().Draw(t, "aborted")})
	}
}

// messages lets the agent or a person handle what is queued.
func (w *chaos) messages(root string) {
	t := w.rt
	all := slices.Concat(w.Session.Lists().NextStep, w.Session.Lists().NextTurn)
	var some []string
	for _, m := range all {
		if rapid.Bool().Draw(t, "this one") {
			some = append(some, m.ID)
		}
	}
	turn := int64(rapid.IntRange(0, 6).Draw(t, "turn"))
	switch rapid.IntRange(0, 4).Draw(t, "inbox") {
	case 0:
		w.command(&messages.ClaimMessagesRequest{Session: "s1", Root: root, Turn: turn, MessageIds: some, FirstStep: true})
	case 1:
		w.command(&messages.AdmitMessagesRequest{Session: "s1", Root: root, Turn: turn, MessageIds: some})
	case 2:
		w.command(&messages.AdmitMessagesRequest{Session: "s1", Root: root})
	case 3:
		w.command(&messages.AwaitInboxRequest{Session: "s1", Root: root})
	default:
		if len(some) > 0 {
			w.command(&messages.WithdrawMessageRequest{Session: "s1", MessageId: some[0], By: "bob"})
		}
	}
}

// heal ends every fault and lets everything come to rest: claims go, clocks
// run, and what has no deadline is withdrawn.
func (w *chaos) heal() {
	w.dying, w.lossy = false, false
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		w.claim(name, actors.StreamClosed{})
	}
	w.settle()
	for range 3 {
		w.pass(20_000)
		w.settle()
	}
	for _, c := range []string{"c1", "c2", sub1} {
		req := withdrawReq(c)
		req.Root = ""
		w.command(req)
		w.settle()
	}
	w.Delivered = nil
	w.check()
	w.allDelivered()
}

// allDelivered: what the log says was handed out, or given in time to a request
// that may have been lost, and was never acknowledged, is in the next list; and
// nothing else but what waits.
func (w *chaos) allDelivered() {
	w.command(attach(w.root)) // another may have been the last to attach
	w.settle()
	if p := progress(w.Log); p.TurnOpen() && !p.StepOpen() {
		w.command(&messages.EndTurnRequest{Session: "s1", Root: w.root})
		w.settle()
	}
	var waiting []string
	for _, m := range slices.Concat(w.Session.Lists().NextStep, w.Session.Lists().NextTurn) {
		waiting = append(waiting, m.ID)
	}
	owed := w.owed()
	req := collectReq("")
	req.Root = w.root
	at := w.command(req)
	w.settle()
	res, ok := w.told[at][0].(*messages.CollectRepliesResponse)
	require.True(w.t, ok, "%v", w.told[at][0])
	var got []string
	for _, m := range res.GetReplies() {
		got = append(got, m.GetMessageId())
	}
	require.Zero(w.t, res.GetMore())
	require.ElementsMatch(w.t, append(waiting, owed...), got)
}

func progress(log []sessionlog.Event) sessionlog.Progress {
	p := sessionlog.NewProgress(sessionlog.V3)
	for _, ev := range log {
		p = p.Fold(ev)
	}
	return p
}

// owed is what an outsider finds unacknowledged in the log.
func (w *chaos) owed() []string {
	lists := map[int64][]string{}
	owed, watched := map[string]bool{}, map[string]bool{}
	byCall := map[string]string{} // results, by call
	for _, ev := range w.Log {
		switch ev.Type {
		case sessionlog.TypeWait:
			r, err := sessionlog.DecodeWait(ev)
			require.NoError(w.t, err)
			watched[r.CallID] = r.Receipt
		case sessionlog.TypeToolResult, sessionlog.TypeDispatch:
			decode := sessionlog.DecodeResult
			if ev.Type == sessionlog.TypeDispatch {
				decode = sessionlog.DecodeDispatch
			}
			r, err := decode(ev)
			require.NoError(w.t, err)
			if _, batch := sessionlog.ReadBatch(r.Text); batch && !r.IsError && watched[r.CallID] {
				id := fmt.Sprint("tool-result-", r.CallID, "-", ev.Seq)
				owed[id], byCall[id] = true, r.CallID
			}
		case sessionlog.TypeDelivered:
			r, err := sessionlog.DecodeDelivered(ev)
			require.NoError(w.t, err)
			for _, id := range r.Shown {
				require.True(w.t, owed[id] || byCall[id] == "", "the acknowledged result %s is shown again", id)
				owed[id] = true
			}
			if r.List != 0 {
				lists[r.List] = r.Shown
			}
			for _, id := range lists[r.Acknowledged] {
				delete(owed, id)
			}
			maps.DeleteFunc(owed, func(id string, _ bool) bool { return r.CallID != "" && byCall[id] == r.CallID })
		}
	}
	return slices.Collect(maps.Keys(owed))
}

// after holds what must be true once everything is settled.
func (w *chaos) after() {
	a := w.account()
	w.auditLog(a)
	w.auditReplies(a, w.told, w.repeated)
	for at, cmd := range w.calls {
		if _, waits := cmd.(*messages.AwaitInboxRequest); waits || w.left[at] {
			continue
		}
		got := w.told[at]
		require.NotEmpty(w.t, got, "%T %v was never answered", cmd, cmd)
		if res, ok := got[len(got)-1].(*messages.AskResponse); ok {
			require.Nil(w.t, res.GetWaiting(), "an ask never ended: %v", cmd)
		}
	}
	require.Zero(w.t, w.Parts(actors.WaitPart)+w.Timers(), "R11: nothing is left of what was settled")
	for _, row := range w.Rows {
		require.NotEqual(w.t, sessionlog.RowOpen, row.State)
	}
	// Once no turn is open there is nothing to repair.
	if p := progress(w.Log); !p.TurnOpen() {
		require.Empty(w.t, p.Repair(sessionlog.CauseInterrupted, w.Session.Next(), 1))
	} else {
		require.Empty(w.t, p.Pending(), "every call of the open turn has its result")
		require.Empty(w.t, p.SubCalls(), "and every sub-call")
	}
}

// TestLawsOfASession: whatever happens to a session, in whatever order, its
// promises hold. What an outsider counts in the log and what callers were told
// is compared, never one fold with another alone.
func TestLawsOfASession(t *testing.T) {
	t.Parallel()
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			w := newChaos(t)
			for range rapid.IntRange(1, 40).Draw(t, "acts") {
				w.act()
				for range rapid.IntRange(0, 4).Draw(t, "deliveries") {
					w.Deliver()
				}
				if rapid.IntRange(0, 7).Draw(t, "look") == 0 {
					w.check()
				}
			}
			w.heal()
			w.refold()
			w.settle()
			w.after()
		})
	}
}

// clockwork is what a wait's deadline must do, said without a machine: it is
// one instant of the wall, a running timer is a duration, and nothing that
// happens to claims moves the instant.
type clockwork struct {
	deadline int64 // wall
	grace    int64
	claims   map[string]int64 // until when their leases run (mono); 0: no lease
	left     map[string]bool  // let go, and do not hold again
	held     int64            // mono: a grace runs until then
	fires    int64            // mono; -1: no timer runs
	over     bool
}

func (c *clockwork) arm(now actors.Now) {
	c.fires = now.Mono + max(0, c.deadline-now.Wall, c.held-now.Mono)
}

func (c *clockwork) open(now actors.Now, name string, lease int64) {
	if c.left[name] {
		return
	}
	if len(c.claims) == 0 && now.Wall >= c.deadline && now.Mono >= c.held {
		c.over = true
		return
	}
	c.claims[name], c.fires = 0, -1
	if lease > 0 {
		c.claims[name] = now.Mono + lease
	}
}

// first is when the first lease ends; 0: none does.
func (c *clockwork) first() int64 {
	var first int64
	for _, until := range c.claims {
		if until != 0 && (first == 0 || until < first) {
			first = until
		}
	}
	return first
}

// lapse lets leases end, until an instant.
func (c *clockwork) lapse(now actors.Now, end int64) {
	for first := c.first(); first != 0 && first <= end; first = c.first() {
		at := actors.Now{Wall: now.Wall + first - now.Mono, Mono: first}
		for name, until := range c.claims {
			if until == first {
				c.close(at, name, true)
			}
		}
	}
}

func (c *clockwork) close(now actors.Now, name string, lost bool) {
	if !c.holds(name) {
		return
	}
	delete(c.claims, name)
	if lost {
		c.held = max(c.held, now.Mono+c.grace)
	}
	if len(c.claims) == 0 {
		c.arm(now)
	}
}

func (c *clockwork) holds(name string) bool {
	_, ok := c.claims[name]
	return ok
}

// TestLawsOfADeadline: the host's deadline never fires under a claim, and after
// the last release it fires at the original instant, or at once.
func TestLawsOfADeadline(t *testing.T) {
	t.Parallel()
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			r := unattached(t, func(rules *actors.Rules) {
				rules.ClaimGraceMS = rapid.SampledFrom([]int64{0, 700}).Draw(t, "grace")
				rules.FirstExpiryWins = false
			})
			r.Delivered = nil
			r.do(attach("root"))
			r.ask("c1", withTimeout(3))
			c := &clockwork{deadline: r.Now.Wall + 3000, grace: r.Rules.ClaimGraceMS, claims: map[string]int64{}, left: map[string]bool{}}
			c.arm(r.Now)
			for range rapid.IntRange(1, 25).Draw(t, "acts") {
				name := rapid.SampledFrom([]string{"k1", "k2", "k3"}).Draw(t, "claim")
				switch rapid.IntRange(0, 6).Draw(t, "act") {
				case 0, 1:
					lease := rapid.SampledFrom([]int64{0, 0, 500, 2000}).Draw(t, "lease")
					c.open(r.Now, name, lease)
					r.lease("c1", name, lease)
				case 2:
					lost := rapid.Bool().Draw(t, "lost")
					c.close(r.Now, name, lost)
					r.release("c1", actors.Addr{Key: name}, lost)
				case 3:
					c.left[name] = true
					if len(c.claims) > 1 || len(c.claims) == 1 && !c.holds(name) { // others hold: only its own claim goes
						c.close(r.Now, name, false)
						r.do(expireReq("c1", name))
					} else {
						c.close(r.Now, name, false)
						r.do(delegateReq("c1", name))
					}
				case 4:
					r.Jump(rapid.SampledFrom([]int64{-2000, -1, 1, 2000}).Draw(t, "jump"))
				case 5:
					c.claims, c.left, c.held = map[string]int64{}, map[string]bool{}, r.Now.Mono+c.grace
					c.arm(r.Now)
					r.Kill(actors.WaitPart)
				case 6:
					ms := rapid.SampledFrom([]int64{0, 1, 699, 1000, 3000}).Draw(t, "ms")
					end := r.Now.Mono + ms
					c.lapse(r.Now, end)
					c.over = c.fires >= 0 && c.fires <= end
					at := r.Now.Wall + c.fires - r.Now.Mono
					r.Advance(ms)
					if c.over {
						require.Equal(t, at, r.Log[len(r.Log)-1].Time, "it fired at another time")
					}
				}
				if c.over {
					require.Equal(t, "continued", r.state("c1"))
					break
				}
				require.Equal(t, "open", r.state("c1"))
				require.Equal(t, c.fires >= 0 || c.first() != 0, r.Timers() == 1)
				require.Equal(t, c.deadline, r.Rows["c1"].Due, "the recorded deadline never changes")
			}
			r.check()
			r.audit()
		})
	}
}
