package conformance

import (
	"encoding/json"
	"slices"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// waitBench drives one wait machine with a session of no latency: whatever the
// wait asks to record is durable at once.
type waitBench struct {
	wait    *actors.Wait
	now     actors.Now
	timerAt int64 // monotonic; -1: none
	timer   actors.Fired
	held    []string
	frames  []frame
	ends    []end
	// onOutcome is told what the wait settled on, before it is recorded.
	onOutcome func(actors.Outcome)
	// rerouted are submissions that lost to the deadline.
	rerouted int
}

type frame struct {
	ID          string `json:"id"`
	At          int64  `json:"at"`
	RemainingMS int64  `json:"remainingMs"`
}

type end struct {
	ID string `json:"id"`
	At int64  `json:"at"`
}

const wallStart = 1_000_000

func newWaitBench(timeoutMS int64, timed bool, start actors.Now, onOutcome func(actors.Outcome)) *waitBench {
	b := &waitBench{now: start, timerAt: -1, onOutcome: onOutcome, frames: []frame{}, ends: []end{}}
	seed := actors.WaitSeed{Part: actors.PartID{Kind: actors.WaitPart, Call: "c1", Incarnation: 1}, Timed: timed, Asked: start}
	if timed {
		seed.Deadline = start.Wall + timeoutMS
	}
	b.wait = actors.NewWait(&actors.Rules{FirstExpiryWins: true}, seed)
	return b
}

func (b *waitBench) resume() { b.take(b.wait.Resume(b.now)) }

func (b *waitBench) send(m actors.Local) { b.take(b.wait.Step(b.now, actors.Envelope{Msg: m})) }

func (b *waitBench) take(fx actors.Effects) {
	for _, s := range fx.Sends {
		switch m := s.Msg.(type) {
		case *messages.ClaimFrame:
			b.frames = append(b.frames, frame{s.To.Key, b.now.Mono, m.GetRemainingMs()})
			b.held = append(b.held, s.To.Key)
		case *messages.ClaimEnd:
			b.endStream(s.To.Key)
		}
	}
	for _, t := range fx.Timers {
		b.timerAt, b.timer = -1, actors.Fired{Name: t.Name, Gen: t.Gen}
		if t.After >= 0 {
			b.timerAt = b.now.Mono + t.After
		}
	}
	for _, up := range fx.Up {
		switch m := up.(type) {
		case actors.Record:
			b.onOutcome(m.Outcome)
			b.send(actors.Recorded{Corr: m.Corr, End: actors.End{
				Settlement: &messages.Settlement{}, Response: &messages.AskResponse{}, Continued: true}})
		case actors.Reroute:
			b.rerouted++
		}
	}
}

func (b *waitBench) endStream(id string) {
	b.ends = append(b.ends, end{id, b.now.Mono})
	b.held = slices.DeleteFunc(b.held, func(h string) bool { return h == id })
}

// advance moves both clocks and fires the timer on the way.
func (b *waitBench) advance(ms int64) {
	stop := b.now.Mono + ms
	for b.timerAt >= 0 && b.timerAt <= stop {
		b.move(max(0, b.timerAt-b.now.Mono))
		b.timerAt = -1
		b.send(b.timer)
	}
	b.move(stop - b.now.Mono)
}

func (b *waitBench) move(ms int64) {
	b.now.Mono += ms
	b.now.Wall += ms
}

func (b *waitBench) release(id string) {
	if slices.Contains(b.held, id) {
		b.endStream(id)
		b.send(actors.CloseClaim{From: actors.Addr{Key: id}})
	}
}

type waitOp struct {
	Op, ID, Reason string
	MS             int64
	Aborted        bool
}

// RunTimedWait drives the wait machine with one vector of timed-wait.jsonl
//
func RunTimedWait(v []byte) (Verdict, string) {
	var vec struct {
		TimeoutMS int64 `json:"timeoutMs"`
		Parent    string
		Ops       []waitOp
		Expect    json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	outcome := map[string]any{"kind": "waiting"}
	var settledAt any
	var b *waitBench
	settle := func(kind, reason string) {
		if settledAt != nil {
			return
		}
		outcome, settledAt = map[string]any{"kind": kind}, b.now.Mono
		if reason != "" {
			outcome["reason"] = reason
		}
	}
	b = newWaitBench(vec.TimeoutMS, true, actors.Now{Wall: wallStart}, func(o actors.Outcome) {
		if o.Kind == actors.OutcomeDeadline {
			settle("timeout", "")
		} else {
			settle("parent", o.Reason)
		}
	})
	if vec.Parent == "aborted" { // it settles at once and no timer is made
		b.send(cancelled("before"))
	} else {
		b.resume()
	}
	for _, op := range vec.Ops {
		b.apply(op, settle)
		if op.Op != "jump" {
			b.advance(0)
		}
	}
	timers := 0
	if b.timerAt >= 0 {
		timers = 1
	}
	held := slices.Sorted(slices.Values(b.held))
	if held == nil {
		held = []string{}
	}
	return verdictOf(Compare(normalise(vec.Expect), mustJSON(map[string]any{
		"frames": b.frames, "ends": sortEnds(b.ends), "outcome": outcome, "settledAt": settledAt,
		"heldBy": held, "timers": timers,
	})))
}

func (b *waitBench) apply(op waitOp, settle func(kind, reason string)) {
	switch op.Op {
	case "advance":
		b.advance(op.MS)
	case "jump":
		b.now.Wall += op.MS
	case "attach":
		if op.Aborted { // its stream is over before it reaches the wait
			b.endStream(op.ID)
			return
		}
		b.send(actors.OpenClaim{From: actors.Addr{Key: op.ID}})
	case "release":
		b.release(op.ID)
	case "abortParent":
		b.send(cancelled(op.Reason))
	case "close":
		settle("closed", op.Reason)
		b.send(actors.Ended{End: actors.End{Settlement: &messages.Settlement{}, Response: &messages.AskResponse{}}})
	}
}

func cancelled(reason string) actors.WaitCancel {
	return actors.WaitCancel{Req: &messages.WithdrawQuestionRequest{Reason: reason}}
}

func sortEnds(ends []end) []end {
	slices.SortFunc(ends, func(a, b end) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return ends
}

// normalise sorts what a vector leaves unordered: ends at one instant, claims held.
func normalise(expect json.RawMessage) []byte {
	var m map[string]any
	if err := json.Unmarshal(expect, &m); err != nil {
		return expect
	}
	if raw, ok := m["ends"]; ok {
		var ends []end
		if json.Unmarshal(mustJSON(raw), &ends) == nil {
			if ends == nil {
				ends = []end{}
			}
			m["ends"] = sortEnds(ends)
		}
	}
	if held, ok := m["heldBy"].([]any); ok {
		slices.SortFunc(held, func(a, b any) int {
			if a.(string) < b.(string) {
				return -1
			}
			return 1
		})
	}
	return mustJSON(m)
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
