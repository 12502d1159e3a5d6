package sessionlog

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// anyFact draws an event that matters to some fold, over few ids, so that histories collide.
func anyFact(t *rapid.T) Event {
	id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "call")
	turn := rapid.IntRange(1, 2).Draw(t, "turn")
	text := rapid.SampledFrom([]string{oneAnswer, PendingText(id), "plain", `{"answers":[]}`}).Draw(t, "text")
	failed := rapid.Bool().Draw(t, "failed")
	questions := json.RawMessage(`[{"id":"q","question":"?"}]`)
	name, code := "", ""
	if failed {
		name, code = "E", rapid.SampledFrom([]string{CodeOutcomeUnknown, CodeNotStarted}).Draw(t, "code")
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return NewEvent(TypeRequestHeader, json.RawMessage(`{"header":{"tools":[`+timedTool+`]}}`))
	case 1:
		return turnStart(turn)
	case 2:
		return turnEnd(turn)
	case 3:
		return stepStart(turn, 1)
	case 4:
		return stepEnd(turn, 1)
	case 5:
		return calling(turn, 1, id)
	case 6:
		return NewEvent(TypeToolCall, json.RawMessage(fmt.Sprintf(`{"turn":%d,"step":1,"callId":"%s","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"q\",\"question\":\"?\"}]}"}`, turn, id)))
	case 7:
		return ToolResult(int64(turn), 1, id, text, failed, name, code, -1, "m")
	case 8:
		return NewEvent(TypeUserMessage, ReplyMessage("r", id, questions, json.RawMessage(`[]`)).Raw).Appended()
	default:
		return subStart(id+":ptc:1", `{"questions":[{"id":"q","question":"?"}]}`)
	}
}

// Q-159, L-001: whatever happened, changed is exactly whether the view differs, and a stored state goes on like the log.
func TestQ159Law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := numbered(rapid.SliceOfN(rapid.Custom(anyFact), 0, 30).Draw(t, "events")...)
		inherited := rapid.Int64Range(0, 5).Draw(t, "inherited")
		q := NewQuestions(inherited)
		for _, ev := range events {
			stored, err := DecodeState(q.State())
			if err != nil {
				t.Fatal(err)
			}
			next, changed := q.Fold(ev)
			fromStored, _ := stored.Fold(ev)
			if string(next.State()) != string(fromStored.State()) {
				t.Fatalf("from the log %s, from the stored state %s", next.State(), fromStored.State())
			}
			if changed != (view(next) != view(q)) {
				t.Fatalf("changed is %v: %s, then %s", changed, view(q), view(next))
			}
			q = next
		}
	})
}

// L-050, L-056, Q-143: a repaired log has no open turn, needs no repair, and keeps open exactly the questions whose call was recorded.
func TestL056Law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := numbered(rapid.SliceOfN(rapid.Custom(anyFact), 0, 30).Draw(t, "events")...)
		p, q := NewProgress(V3), NewQuestions(0)
		for _, ev := range events {
			p, q = p.Fold(ev), first(q.Fold(ev))
		}
		owed := p.Pending()
		n := int64(len(events))
		repaired := p.RepairWithSubCalls(CauseInterrupted, n, 5)
		if p.TurnOpen() != (len(repaired) > 0) {
			t.Fatalf("open is %v, the repair is %s", p.TurnOpen(), shape(repaired))
		}
		for i, ev := range repaired {
			if ev.Seq != n+int64(i) || ev.Time != 5 {
				t.Fatalf("stamped %d at %d", ev.Seq, ev.Time)
			}
			p, q = p.Fold(ev), first(q.Fold(ev))
		}
		if p.TurnOpen() || len(p.Pending()) > 0 || p.Repair(CauseInterrupted, 0, 0) != nil {
			t.Fatal("the repaired log is not closed")
		}
		for _, call := range owed {
			if c, found := q.Call(call.CallID); found && !c.Continued && len(repaired) > 0 {
				t.Fatalf("%s is still open after its step ended", call.CallID)
			}
		}
	})
}

// L-061 to L-065: whatever is planned fits the lists it was planned for, changes nothing until it is applied, and keeps
// every message in exactly one place.
func TestInboxLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Lists
		serial := 0
		for range rapid.IntRange(0, 30).Draw(t, "operations") {
			before := l.ids()
			target := rapid.SampledFrom([]Target{NextTurn, NextStep}).Draw(t, "target")
			all := slices.Concat(l.NextTurn, l.NextStep)
			known := "none"
			if len(all) > 0 {
				known = rapid.SampledFrom(all).Draw(t, "message").ID
			}
			serial++
			fresh := msg(string(rune('a' + serial)))
			var plan []Splice
			switch rapid.IntRange(0, 5).Draw(t, "operation") {
			case 0:
				s, err := l.Append(target, fresh)
				if err != nil {
					t.Fatal(err)
				}
				plan = []Splice{s}
			case 1:
				plan = l.Claim(target)
			case 2:
				if s, _, ok := l.Remove(known); ok {
					plan = []Splice{s}
				}
			case 3:
				if s, ok, _ := l.Replace(known, fresh); ok {
					plan = []Splice{s}
				}
			case 4:
				start, count := rapid.Float64Range(-4, 4).Draw(t, "start"), rapid.Float64Range(-1, 4).Draw(t, "count")
				if s, ok, _ := l.Splice(target, start, count, fresh); ok {
					plan = []Splice{s}
				}
			default:
				ids := rapid.Permutation(all).Draw(t, "order")
				var names []string
				for _, m := range ids[:len(ids)/2] {
					names = append(names, m.ID)
				}
				plan, _, _ = l.Take(names...)
			}
			next := l
			for _, s := range plan {
				var err error
				if next, err = next.Fold(s.Event()); err != nil {
					t.Fatal(err)
				}
			}
			if l.ids() != before {
				t.Fatalf("planning changed the lists: %v, then %v", before, l.ids())
			}
			l = next
			seen := map[string]bool{}
			for _, m := range slices.Concat(l.NextTurn, l.NextStep) {
				if seen[m.ID] {
					t.Fatalf("%s is pending twice: %v", m.ID, l.ids())
				}
				seen[m.ID] = true
			}
		}
	})
}
