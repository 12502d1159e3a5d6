package sessionlog

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// L-020 to L-025: a fold that keeps places and nothing else, an event's own seq or that of the first it replaces, puts
// every event where the fold of the whole log has it, and refuses what that refuses.
func TestL022PlacesAreInSurfaceOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom([]int{V0, V3}).Draw(rt, "version")
		var events []Event
		places := map[int64]int64{} // by seq, of what is on the surface
		nodes := func() []int64 {
			var out []int64
			for seq := range events {
				if _, on := places[int64(seq)]; on {
					out = append(out, int64(seq))
				}
			}
			slices.SortFunc(out, func(a, b int64) int { return int(places[a] - places[b]) })
			return out
		}
		for range rapid.IntRange(0, 30).Draw(rt, "events") {
			ev := drawSurfaceEvent(rt, version, nodes()).At(int64(len(events)), 1)
			_, whole := Surface(version, append(slices.Clone(events), ev))
			p, err := Place(version, ev)
			place := ev.Seq
			var shadowed []int64
			if err == nil && p.Replaces {
				from, started := places[p.Start]
				to, ended := places[p.End]
				for _, seq := range nodes() {
					if started && ended && places[seq] >= from && places[seq] <= to {
						shadowed = append(shadowed, seq)
					}
				}
				place, err = from, CheckShadowed(ev, shadowed)
				if err == nil && ev.Type == TypeToolResult {
					err = CheckRewrite(version, ev, events[shadowed[0]])
				}
			}
			if (err == nil) != (whole == nil) {
				rt.Fatalf("%s: by its place %v, as a whole %v", ev.Line(), err, whole)
			}
			if err != nil {
				continue
			}
			events = append(events, ev)
			for _, seq := range shadowed {
				delete(places, seq)
			}
			if p.OnSurface {
				places[ev.Seq] = place
			}
		}
		view, err := Surface(version, events)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(view.Nodes, slices.AppendSeq([]int64{}, slices.Values(nodes()))) {
			rt.Fatalf("by places %v, as a whole %v", nodes(), view.Nodes)
		}
	})
}

// L-014: an event is judged by itself before it is placed.
func TestL014PlaceRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := Place(V3, Event{Type: "future/required"}); err == nil {
		t.Error("an unknown event was placed")
	}
	if p, err := Place(V3, Event{Type: "future/optional"}.Ours()); err != nil || p != (Placement{}) {
		t.Errorf("an ignorable event was placed as %+v, %v", p, err)
	}
	if p, err := Place(V3, TurnStart(1)); err != nil || p.OnSurface {
		t.Errorf("a boundary was placed as %+v, %v", p, err)
	}
}
