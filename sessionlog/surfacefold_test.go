package sessionlog

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// L-020 to L-027: fed one by one, restored from its state in between, the fold says what the fold of the whole log
// says, and an event that it refuses leaves it as it was.
func TestL027SurfaceFoldIsThatOfTheWholeLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom([]int{V0, V3}).Draw(rt, "version")
		fold := NewSurfaceFold(version)
		var events []Event
		classes := map[int64]Class{}
		earlier := func(seq int64) (Event, error) { return events[seq], nil }
		for range rapid.IntRange(0, 30).Draw(rt, "events") {
			seq := int64(len(events))
			ev := drawSurfaceEvent(rt, version, slices.Collect(fold.Nodes)).At(seq, 1)
			before := string(fold.State())
			clone := fold.Clone()
			class, replaced, err := fold.Fold(ev, earlier)
			if string(clone.State()) != before {
				rt.Fatal("folding changed the clone")
			}
			_, whole := Surface(version, append(slices.Clone(events), ev))
			if (err == nil) != (whole == nil) || err != nil && err.Error() != whole.Error() {
				rt.Fatalf("%s: one by one %v, as a whole %v", ev.Line(), err, whole)
			}
			if err != nil {
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) || string(fold.State()) != before {
					rt.Fatalf("after %v the state is %s, was %s", err, fold.State(), before)
				}
				continue
			}
			events = append(events, ev)
			classes[seq] = class
			if replaced != nil {
				for _, seq := range replaced.Shadowed {
					classes[seq] = Shadowed
				}
			}
			if rapid.Bool().Draw(rt, "restored") {
				again, err := DecodeSurface(fold.State())
				if err != nil || string(again.State()) != string(fold.State()) {
					rt.Fatalf("%s is restored as %s, %v", fold.State(), again.State(), err)
				}
				fold = again
			}
		}
		view, err := Surface(version, events)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(view.Nodes, slices.AppendSeq([]int64{}, fold.Nodes)) || fold.Next() != int64(len(events)) {
			rt.Fatalf("one by one %s, as a whole %v", fold.State(), view.Nodes)
		}
		for seq, class := range classes {
			if view.Class(seq) != class {
				rt.Fatalf("event %d is %v, as a whole %v", seq, class, view.Class(seq))
			}
		}
	})
}

// drawSurfaceEvent draws an event that mostly fits, with replacements of any two nodes.
func drawSurfaceEvent(rt *rapid.T, version int, nodes []int64) Event {
	message := rapid.SampledFrom([]Event{userMessage("a"), resultText("r"), resultTextV0("r", "m"), NewEvent(TypeTurnStart, map[string]int{"turn": 1})}).Draw(rt, "event")
	if len(nodes) == 0 || message.Type == TypeTurnStart || rapid.IntRange(0, 2).Draw(rt, "replaces") > 0 {
		return message
	}
	from, to := rapid.IntRange(0, len(nodes)-1).Draw(rt, "from"), rapid.IntRange(0, len(nodes)-1).Draw(rt, "to")
	cited := slices.Clone(nodes[min(from, to) : max(from, to)+1])
	if rapid.IntRange(0, 5).Draw(rt, "forgets") == 0 {
		cited = cited[1:]
	}
	return replacing(message, version, nodes[from], nodes[to], cited...)
}

// L-025: only a result that replaces another makes the fold ask for what it has seen; what it is told comes back.
func TestL025SurfaceFoldAsksOnlyForResults(t *testing.T) {
	gone := errors.New("it is not there")
	fold := NewSurfaceFold(V3)
	ask := func(int64) (Event, error) { return Event{}, gone }
	for _, ev := range numbered(resultText("a"), userMessage("b"), replacing(userMessage("c"), V3, 1, 1, 1)) {
		_, _, err := fold.Fold(ev, ask)
		noError(t, err)
	}
	_, _, err := fold.Fold(replacing(resultText("d"), V3, 0, 0, 0).At(3, 1), ask)
	equal(t, gone, err)
	equal(t, int64(3), fold.Next())
}

func TestSurfaceStatesThatCannotBeRead(t *testing.T) {
	for _, state := range []string{
		``, `[]`, `{}`, `{"version":3,"next":5}`, `{"version":3,"next":5,"nodes":{}}`, `{"version":3,"next":5,"nodes":[],"more":1}`,
		`{"version":2,"next":5,"nodes":[]}`, `{"version":"3","next":5,"nodes":[]}`, `{"version":3,"next":-1,"nodes":[]}`,
		`{"version":3,"next":5,"nodes":[1,1]}`, `{"version":3,"next":5,"nodes":[5]}`, `{"version":3,"next":5,"nodes":["1"]}`,
	} {
		_, err := DecodeSurface([]byte(state))
		isTrue(t, err != nil, state)
		fatalUnlessTyped(t, err)
	}
}

func FuzzDecodeSurface(f *testing.F) {
	f.Add([]byte(`{"version":3,"next":5,"nodes":[4,1]}`))
	f.Add([]byte(`{"version":0,"next":0,"nodes":[]}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		fold, err := DecodeSurface(state)
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		again, err := DecodeSurface(fold.State())
		noError(t, err)
		equal(t, fold, again)
		class, _, err := fold.Fold(userMessage("a").At(fold.Next(), 1), nil)
		noError(t, err)
		equal(t, Current, class)
	})
}
