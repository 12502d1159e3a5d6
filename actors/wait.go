package actors

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// WaitSeed is what a wait is built from: the session's fold, and who has just asked.
type WaitSeed struct {
	Part PartID
	Seq  int64 // the call's place in the log
	// Deadline is the recorded wall time in milliseconds; 0: never. Invariant:
	// nothing ever changes it.
	Deadline int64
	// Timed tells askTimed from a blocking ask (Q-069 against Q-047).
	Timed  bool
	Askers []Addr
	// Asked is when the deadline of a fresh wait was set. The question was recorded
	// since then, and the wall clock may have jumped.
	Asked Now
	// Rebuilt: the wait is a successor; its clients have not had the time to
	// claim it again, so claim_grace holds a deadline that has passed.
	Rebuilt bool
}

// Wait is the foreground life of one question call.
//
//	counting ──first claim──▶ held ──last claim goes──▶ counting, same deadline
//	    │                       │
//	    └── proposal ◀──────────┘   submission, expiry, deadline, cancellation
//	           │
//	        settling ──Recorded──▶ ended      rivals are told who won
//	           └─────Refused──▶ the next rival is tried
type Wait struct {
	rules    *Rules
	part     PartID
	seq      int64
	deadline int64
	timed    bool
	rebuilt  bool
	asked    Now
	ended    bool
	settling bool
	quiet    bool // what the session was last told
	seen     uint64
	told     uint64 // of what was seen, when it was last told
	gen      uint32
	corr     uint32
	heldTo   int64 // monotonic: claim_grace holds a passed deadline until then
	claims   []hold
	left     []Addr // claims that let go; the latest
	askers   []Addr
	rivals   []proposal // [0] is the one being recorded while settling
}

// hold is one claim on a wait.
type hold struct {
	claim Addr
	until int64 // monotonic: it is lost then, unless it was heard again; 0: held until its end
}

// leaseMaxMS bounds what a claim may ask for, so that no number harms a wait.
const leaseMaxMS = 3_600_000

// leftMax bounds how many claims that let go a wait remembers.
const leftMax = 64

// proposal is one bid to settle the call, with whoever made it.
type proposal struct {
	from Addr
	msg  Local // what it came from; nil for the deadline
	out  Outcome
}

// NewWait builds a wait. The caller runs Resume before the first Step.
func NewWait(rules *Rules, seed WaitSeed) *Wait {
	return &Wait{
		rules: rules, part: seed.Part, seq: seed.Seq, deadline: seed.Deadline, timed: seed.Timed,
		rebuilt: seed.Rebuilt, asked: seed.Asked, askers: seed.Askers,
	}
}

// Apply does nothing: a wait has no durable field of its own.
func (w *Wait) Apply(sessionlog.Event) {}

// Resume starts the timer of a fresh or rebuilt wait. A fresh one runs since
// it was asked, whatever the wall clock has done while that was recorded.
func (w *Wait) Resume(now Now) Effects {
	var fx Effects
	if w.rebuilt {
		w.heldTo = now.Mono + w.rules.ClaimGraceMS
	}
	at := now
	if w.asked != (Now{}) {
		at.Wall = w.asked.Wall + now.Mono - w.asked.Mono
	}
	w.arm(at, &fx)
	w.tellQuiet(now, &fx)
	return fx
}

// Step decides one input.
func (w *Wait) Step(now Now, in Envelope) Effects {
	var fx Effects
	switch m := in.Msg.(type) {
	case AddAsker:
		w.addAsker(m)
	case DropAsker:
		w.askers = without(w.askers, m.From)
	case OpenClaim:
		w.openClaim(now, m, &fx)
	case CloseClaim:
		w.closeClaim(now, m.From, m.Lost, &fx)
	case WaitSubmit:
		w.propose(proposal{m.From, m, Outcome{Kind: OutcomeAnswered, Submit: m.Req}}, &fx)
	case WaitExpire:
		w.expire(now, m, &fx)
	case WaitDelegate:
		w.delegate(now, m, &fx)
	case WaitDismiss:
		err := messages.Refuse(messages.AskCancelled, "the user closed the question")
		w.propose(proposal{m.From, m, Outcome{Kind: OutcomeFailed, Err: err, By: m.Req.GetBy()}}, &fx)
	case WaitCancel:
		w.propose(proposal{m.From, m, Outcome{Kind: OutcomeCancelled, By: m.Req.GetBy(), Reason: m.Req.GetReason()}}, &fx)
	case WaitLeave:
		w.propose(proposal{m.From, m, Outcome{Kind: OutcomeLost, Unkeyed: m.Unkeyed, Reason: m.Reason}}, &fx)
	case Fired:
		if m.Gen == w.gen && !w.ended { // an older generation was replaced while this one lay in the mailbox
			w.fired(now, &fx)
		}
	case Recorded:
		if w.settling && m.Corr == w.corr {
			w.end(m.End, true, &fx)
		}
	case Refused:
		if w.settling && m.Corr == w.corr {
			w.refused(m.Err, &fx)
		}
	case Ended:
		w.end(m.End, false, &fx)
	default:
		return fx
	}
	if _, own := in.Msg.(Fired); !own {
		w.seen++
	}
	w.tellQuiet(now, &fx)
	return fx
}

func (w *Wait) addAsker(m AddAsker) {
	if !slices.Contains(w.askers, m.From) {
		w.askers = append(w.askers, m.From)
	}
}

// openClaim holds Q-082 … Q-085. The same claim again gets its frame again: it
// renews its lease, or was repeated because its session had been lost. One that let
// go does not hold again: it has not heard yet that it was released, or the wait
// heard its client before it.
func (w *Wait) openClaim(now Now, m OpenClaim, fx *Effects) {
	if w.ended {
		fx.Sends = append(fx.Sends, Send{To: m.From, Msg: &messages.ClaimEnd{Reason: "settled"}})
		return
	}
	if slices.Contains(w.left, m.From) {
		fx.Sends = append(fx.Sends, Send{To: m.From, Msg: &messages.ClaimEnd{Reason: "released"}})
		return
	}
	if len(w.claims) == 0 && w.overdue(now) {
		w.runOut(fx)
	}
	if w.ranOut() {
		fx.Sends = append(fx.Sends, Send{To: m.From, Msg: &messages.ClaimEnd{Reason: "expired"}})
		return
	}
	w.disarm(fx)
	w.hold(now, m)
	w.arm(now, fx)
	fx.Sends = append(fx.Sends, Send{To: m.From, Msg: &messages.ClaimFrame{
		RemainingMs: max(0, w.deadline-now.Wall), Never: w.deadline == 0, CallSeq: w.seq,
	}})
}

// hold notes a claim, or that it was heard again.
func (w *Wait) hold(now Now, m OpenClaim) {
	h := hold{claim: m.From}
	if m.LeaseMS > 0 {
		h.until = now.Mono + min(m.LeaseMS, leaseMaxMS)
	}
	if i := w.holds(m.From); i >= 0 {
		w.claims[i] = h
		return
	}
	w.claims = append(w.claims, h)
}

// holds is where a claim is in the list; -1: it has none.
func (w *Wait) holds(claim Addr) int {
	return slices.IndexFunc(w.claims, func(h hold) bool { return h.claim == claim })
}

// closeClaim holds: the last claim's end restores the original
// deadline. A claim that was lost, not released, holds a passed one a little.
func (w *Wait) closeClaim(now Now, from Addr, lost bool, fx *Effects) {
	i := w.holds(from)
	if i < 0 || w.ended {
		return
	}
	if w.earliest() != 0 {
		w.disarm(fx)
	}
	w.claims = slices.Delete(w.claims, i, i+1)
	if lost {
		w.heldTo = max(w.heldTo, now.Mono+w.rules.ClaimGraceMS)
	}
	w.arm(now, fx)
}

// earliest is when the first lease ends; 0: none does.
func (w *Wait) earliest() int64 {
	var first int64
	for _, h := range w.claims {
		if h.until != 0 && (first == 0 || h.until < first) {
			first = h.until
		}
	}
	return first
}

// fired: a lease has ended, or, with nobody holding, the deadline has passed.
// The timer of a lease is moved whenever its claim is heard, so whoever is due
// now has been silent, and is lost.
func (w *Wait) fired(now Now, fx *Effects) {
	if len(w.claims) == 0 {
		w.runOut(fx)
		return
	}
	before := len(w.claims)
	w.claims = slices.DeleteFunc(w.claims, func(h hold) bool { return h.until != 0 && h.until <= now.Mono })
	if len(w.claims) < before {
		w.heldTo = max(w.heldTo, now.Mono+w.rules.ClaimGraceMS)
	}
	w.arm(now, fx)
}

// expire: a client's countdown ended. While others hold the wait it only
// releases its own claim, unless the policy is that the first one decides. Others
// are also those whom claim_grace waits for: they have lost their claims, or have
// not had the time to open them again; when they do not, the deadline ends it.
func (w *Wait) expire(now Now, m WaitExpire, fx *Effects) {
	claim := Addr{Key: m.Req.GetClaim()}
	others := slices.ContainsFunc(w.claims, func(h hold) bool { return h.claim != claim })
	others = others || w.deadline != 0 && now.Mono < w.heldTo
	if !w.ended && others && !w.rules.FirstExpiryWins {
		w.dropClaim(now, claim, fx)
		fx.Replies = append(fx.Replies, Reply{m.From, &messages.ExpireResponse{}})
		return
	}
	err := messages.Refuse(messages.AskTimedOut, "the user did not answer in time")
	w.propose(proposal{m.From, m, Outcome{Kind: OutcomeFailed, Err: err, By: m.Req.GetBy()}}, fx)
}

// dropClaim releases a claim whose client has said that it does not hold the
// wait any more. Its stream ends here and not at the client's next word: that
// may be lost, and until then the claim would be taken for one that holds, and
// hold again when it renews its lease or its session restarts. It may also have
// been lost, or the claim not be heard of yet: so it is remembered.
func (w *Wait) dropClaim(now Now, claim Addr, fx *Effects) {
	if w.holds(claim) >= 0 {
		fx.Sends = append(fx.Sends, Send{To: claim, Msg: &messages.ClaimEnd{Reason: "released"}})
	}
	if !slices.Contains(w.left, claim) {
		if len(w.left) == leftMax {
			w.left = slices.Delete(w.left, 0, 1)
		}
		w.left = append(w.left, claim)
	}
	w.closeClaim(now, claim, false, fx)
}

// delegate releases a claim and settles nothing, except a blocking ask whose
// last answerer passed.
func (w *Wait) delegate(now Now, m WaitDelegate, fx *Effects) {
	w.dropClaim(now, Addr{Key: m.Req.GetClaim()}, fx)
	out := Outcome{Kind: OutcomePassed, By: m.Req.GetBy()}
	if res, _ := Settle(w.timed, out); res == ResultNone || len(w.claims) > 0 || m.Req.GetAnswererLeft() {
		fx.Replies = append(fx.Replies, Reply{m.From, &messages.DelegateResponse{}})
		return
	}
	w.propose(proposal{m.From, m, out}, fx)
}

// propose asks the session to record an outcome, or parks it behind the one
// that is being recorded (Q-088: the first settlement wins).
func (w *Wait) propose(p proposal, fx *Effects) {
	if w.ended {
		return // the session has stopped routing here; its repeats are answered from the fold
	}
	w.rivals = append(w.rivals, p)
	if !w.settling {
		w.tryNext(fx)
	}
}

func (w *Wait) tryNext(fx *Effects) {
	w.settling = len(w.rivals) > 0
	if w.settling {
		w.corr++
		fx.Up = append(fx.Up, Record{Part: w.part, Corr: w.corr, Outcome: w.rivals[0].out})
	}
}

// refused: the session did not record it, so the call may still be open. The
// bidder is told, and the next rival is tried; with none the wait is as it was.
// Its timer has run on, or has put the deadline among the rivals: armed anew, it
// would take a jump of the wall clock for time that has passed.
func (w *Wait) refused(err *messages.Error, fx *Effects) {
	loser := w.rivals[0]
	w.rivals = slices.Delete(w.rivals, 0, 1)
	if !loser.from.IsZero() {
		fx.Replies = append(fx.Replies, Reply{loser.from, err.Wire()})
	}
	w.tryNext(fx)
}

// end tells everybody: askers the result, the winner that it won, rivals that
// they lost and to whom, claims that it is over.
func (w *Wait) end(end End, won bool, fx *Effects) {
	if w.ended {
		return
	}
	w.ended = true
	w.disarm(fx)
	for _, a := range w.askers {
		if end.Err != nil {
			fx.Replies = append(fx.Replies, Reply{a, end.Err.Wire()})
		} else {
			fx.Replies = append(fx.Replies, Reply{a, end.Response})
		}
	}
	for i, p := range w.rivals {
		w.tell(p, end, won && i == 0, fx)
	}
	for _, c := range w.claims {
		fx.Sends = append(fx.Sends, Send{To: c.claim, Msg: &messages.ClaimEnd{Reason: "settled"}})
	}
	w.askers, w.rivals, w.claims, w.settling = nil, nil, nil, false
}

// tell answers one bidder. A submission that lost to a deadline, a client's
// expiry or a root change becomes a late reply unless it said reject.
func (w *Wait) tell(p proposal, end End, won bool, fx *Effects) {
	if p.from.IsZero() {
		return
	}
	lost := (&messages.Error{Code: messages.Settled, Text: settledText(end.Settlement), Winner: end.Settlement}).Wire()
	reply := func(m messages.Message) { fx.Replies = append(fx.Replies, Reply{p.from, m}) }
	switch m := p.msg.(type) {
	case WaitSubmit:
		switch {
		case won || m.Req.GetSubmissionId() == end.Settlement.GetSubmissionId(): // twice in flight is once accepted
			reply(&messages.SubmitResponse{Settlement: end.Settlement, Repeated: !won})
		case end.Continued && m.Req.GetOnExpired() != messages.OnExpired_ON_EXPIRED_REJECT:
			fx.Up = append(fx.Up, Reroute(m))
		default:
			reply(lost)
		}
	case WaitExpire:
		if won || end.Continued {
			reply(&messages.ExpireResponse{Settled: true})
		} else {
			reply(lost)
		}
	case WaitDelegate:
		reply(&messages.DelegateResponse{Settled: true})
	case WaitDismiss:
		if won {
			reply(&messages.DismissResponse{})
		} else {
			reply(lost)
		}
	case WaitCancel: // told what became of the call, whoever won
		reply(&messages.WithdrawQuestionResponse{Settlement: end.Settlement})
	case WaitLeave: // likewise
		reply(&messages.EndForegroundResponse{Settlement: end.Settlement})
	}
}

// arm starts the wait's one timer: for the original deadline, or,
// while claims hold it, for the end of the first lease. Its length is fixed now:
// a wall-clock jump does not re-arm it.
func (w *Wait) arm(now Now, fx *Effects) {
	switch first := w.earliest(); {
	case w.ended:
	case first != 0:
		w.setTimer("lease", max(0, first-now.Mono), fx)
	case w.deadline != 0 && len(w.claims) == 0:
		w.setTimer("deadline", max(0, w.deadline-now.Wall, w.heldTo-now.Mono), fx)
	}
}

// disarm stops whichever timer the claims of now allow. It comes before they change.
func (w *Wait) disarm(fx *Effects) {
	switch {
	case w.earliest() != 0:
		w.setTimer("lease", -1, fx)
	case w.deadline != 0:
		w.setTimer("deadline", -1, fx)
	}
}

func (w *Wait) setTimer(name string, after int64, fx *Effects) {
	w.gen++
	fx.Timers = append(fx.Timers, Timer{Name: name, After: after, Gen: w.gen})
}

// runOut bids for the deadline, once.
func (w *Wait) runOut(fx *Effects) {
	if !w.ranOut() {
		w.propose(proposal{out: Outcome{Kind: OutcomeDeadline}}, fx)
	}
}

// ranOut reports whether the deadline is being recorded, or will be when a bid
// before it is refused. No claim holds it up any more, whatever the wall clock says now.
func (w *Wait) ranOut() bool {
	return slices.ContainsFunc(w.rivals, func(p proposal) bool { return p.out.Kind == OutcomeDeadline })
}

// overdue reports whether the deadline has passed and no grace holds it.
func (w *Wait) overdue(now Now) bool {
	return w.deadline != 0 && now.Wall >= w.deadline && now.Mono >= w.heldTo
}

// tellQuiet tells the session when the wait starts or stops to matter to
// somebody: a session with only quiet waits may be passivated. A quiet one says
// so after each input, since the session takes it for busy until it does. One in
// its grace is not quiet: unloaded and woken it would have all of it again, and
// never end.
func (w *Wait) tellQuiet(now Now, fx *Effects) {
	quiet := len(w.askers) == 0 && len(w.claims) == 0 && !w.settling && !w.inGrace(now)
	if w.ended || quiet == w.quiet && (!quiet || w.seen == w.told) {
		return
	}
	w.quiet, w.told = quiet, w.seen
	fx.Up = append(fx.Up, Quiet{Part: w.part, Quiet: quiet, Seen: w.seen})
}

// inGrace reports whether claim_grace, and not the deadline, is what is waited for.
func (w *Wait) inGrace(now Now) bool {
	return w.deadline != 0 && w.heldTo-now.Mono > max(0, w.deadline-now.Wall)
}

// without takes an address out of a list, in place.
func without(list []Addr, a Addr) []Addr {
	if i := slices.Index(list, a); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func settledText(s *messages.Settlement) string {
	t := "the question was settled first: " + s.GetOutcome()
	if s.GetBy() != "" {
		t += " by " + s.GetBy()
	}
	return t
}
