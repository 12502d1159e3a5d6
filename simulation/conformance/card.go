package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// cardBench drives one card machine, with a late channel that answers at once.
type cardBench struct {
	card    *actors.Card
	now     actors.Now
	timerAt int64 // monotonic; -1: none
	timer   actors.Timer
	late    error
	told    any // what the last submission or dismissal heard
	settled []map[string]any
	hides   int
}

var errLateFailed = errors.New("rpc failed")

type cardOp struct {
	Op, ID      string
	RemainingMS *int64 `json:"remainingMs"`
	MS          int64
	Aborted     bool
	Reply       string
	State       actors.CardState
}

// RunCard drives the card machine with one vector of card.jsonl.
func RunCard(v []byte) (Verdict, string) {
	var vec struct {
		Card   string
		Ops    []cardOp
		Expect json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	b := &cardBench{card: actors.NewCard(vec.Card == "unkeyed"), now: actors.Now{Wall: wallStart}, timerAt: -1, settled: []map[string]any{}}
	dismissal := "hide"
	if b.card.Unkeyed() {
		dismissal = "cancel"
	}
	initial, steps := b.view(), []any{}
	for _, op := range vec.Ops {
		b.told = nil
		if err := b.apply(op); err != nil {
			return Failed, err.Error()
		}
		step := b.view()
		if b.told != nil {
			step["result"] = b.told
		}
		steps = append(steps, step)
	}
	return verdictOf(Compare(settledInOrder(vec.Expect), settledInOrder(mustJSON(map[string]any{
		"dismissal": dismissal, "initial": initial, "steps": steps, "settled": b.settled, "hides": b.hides,
	}))))
}

// settledInOrder sorts the settlements of one instant, whose order means nothing.
func settledInOrder(expect []byte) []byte {
	var m map[string]any
	if json.Unmarshal(expect, &m) != nil {
		return expect
	}
	settled, _ := m["settled"].([]any)
	slices.SortStableFunc(settled, func(x, y any) int {
		a, _ := x.(map[string]any)
		b, _ := y.(map[string]any)
		atA, _ := a["at"].(float64)
		atB, _ := b["at"].(float64)
		return cmp.Or(cmp.Compare(atA, atB), cmp.Compare(fmt.Sprint(a["id"]), fmt.Sprint(b["id"])))
	})
	return mustJSON(m)
}

func (b *cardBench) apply(op cardOp) error {
	switch op.Op {
	case "request":
		in := actors.Requested{ID: op.ID, Never: op.RemainingMS == nil, Cancelled: op.Aborted}
		if op.RemainingMS != nil {
			in.RemainingMS = *op.RemainingMS
		}
		b.send(in)
	case "abort":
		b.send(actors.RequestEnded{ID: op.ID})
	case "rpc":
		b.late = map[string]error{"refuse": actors.ErrNotAnswerable, "error": errLateFailed}[op.Reply]
		b.send(actors.LateChannel{Open: true})
	case "state":
		b.send(actors.Projected{State: op.State})
	case "takeTime":
		b.send(actors.TimeTaken{})
	case "focus":
		b.send(actors.Focused{})
	case "blur":
		b.send(actors.Blurred{})
	case "engage":
		b.send(actors.Engaged{})
	case "answer":
		b.send(actors.Answered{Submission: "s", Answers: []*messages.Answer{{Id: "q", Selected: []string{"A"}}}})
	case "dismiss":
		b.send(actors.Dismissed{})
	case "delegate":
		b.send(actors.Delegated{})
	case "close":
		b.send(actors.CardClosed{})
	case "advance":
		b.advance(op.MS)
	case "jump":
		b.now.Wall += op.MS
	default:
		return fmt.Errorf("there is no operation %q", op.Op)
	}
	return nil
}

func (b *cardBench) send(in actors.CardInput) {
	for _, fx := range b.card.Step(b.now, in) {
		switch fx := fx.(type) {
		case actors.SettleRequest:
			b.settle(fx)
		case actors.SubmitLate:
			b.send(actors.LateReplied{Submission: fx.Submission, Err: b.late})
		case actors.CardTold:
			b.told = "ok"
			if fx.Err != nil {
				b.told = fx.Err.Error()
			}
		case actors.CardTimer:
			b.timerAt, b.timer = -1, fx.Timer
			if fx.After >= 0 {
				b.timerAt = b.now.Mono + fx.After
			}
		case actors.HideCard:
			b.hides++
		}
	}
}

func (b *cardBench) settle(fx actors.SettleRequest) {
	entry := map[string]any{"id": fx.ID, "at": b.now.Mono, "outcome": fx.Outcome}
	if fx.Outcome == actors.RequestAnswered {
		items := []any{}
		for _, a := range fx.Answers {
			items = append(items, map[string]any{"id": a.GetId(), "selected": a.GetSelected()})
		}
		entry["answer"] = map[string]any{"answers": items}
	}
	b.settled = append(b.settled, entry)
}

// advance moves both clocks and fires the timer on the way.
func (b *cardBench) advance(ms int64) {
	stop := b.now.Mono + ms
	for b.timerAt >= 0 && b.timerAt <= stop {
		b.move(b.timerAt - b.now.Mono)
		b.timerAt = -1
		b.send(actors.Ticked{Gen: b.timer.Gen})
	}
	b.move(stop - b.now.Mono)
}

func (b *cardBench) move(ms int64) {
	b.now.Mono += ms
	b.now.Wall += ms
}

func (b *cardBench) view() map[string]any {
	v := b.card.View()
	view := map[string]any{"state": v.State, "waitState": v.Wait, "channel": v.Channel, "closed": v.Closed,
		"ticking": b.timerAt >= 0, "countdown": nil}
	if v.Counts {
		view["countdown"] = map[string]any{"remainingMs": v.RemainingMS, "running": v.Running}
	}
	return view
}
