package sessionlog

import "slices"

// Placement is what one event does to the surface, for a fold that keeps the surface somewhere else than in memory
// (Surface is the one that has it all).
type Placement struct {
	OnSurface  bool  // it makes a message for the model (L-020)
	Replaces   bool  // it stands in place of a range; else at the end (L-021)
	Start, End int64 // seqs of the range's first and last node
}

// Place judges what an event of generation version (V0 or V3) says of itself: its type (L-014), its surface fields and
// its citations (L-020, L-021, L-023). What it replaces is judged by CheckShadowed and CheckRewrite. The error is a
// *CorruptError or an *UnsupportedError.
func Place(version int, ev Event) (Placement, error) {
	if err := checkEvent(version, ev); err != nil {
		return Placement{}, err
	}
	return place(version, ev)
}

// place is Place for an event whose type has been judged.
func place(version int, ev Event) (Placement, error) {
	if err := checkSurfaceFields(version, ev); err != nil || !isSurface(version, ev.Type) {
		return Placement{}, err
	}
	if string(ev.SurfaceOp) == `"append"` {
		return Placement{OnSurface: true}, nil
	}
	start, end, ok := replaceRange(version, value(ev.SurfaceOp))
	if !ok {
		return Placement{}, corruptAt(ev.Seq, "surfaceOp of %q is neither \"append\" nor a replace record of format v%d", ev.Type, version)
	}
	return Placement{OnSurface: true, Replaces: true, Start: start, End: end}, nil
}

// CheckShadowed judges whether an event may replace the nodes between its start and end on the surface: there is such a
// range (L-022), every node is cited (L-023), and a tool/result replaces one node (L-025). The error is a *CorruptError.
func CheckShadowed(ev Event, shadowed []int64) error {
	if len(shadowed) == 0 {
		return corruptAt(ev.Seq, "replace: it names no range of the surface")
	}
	cited := slices.Sorted(slices.Values(ev.SourceEventSeqs))
	for _, seq := range shadowed {
		if _, found := slices.BinarySearch(cited, seq); !found {
			return corruptAt(ev.Seq, "replace: sourceEventSeqs must cite every shadowed node; %d is missing", seq)
		}
	}
	if ev.Type == TypeToolResult && len(shadowed) != 1 {
		return corruptAt(ev.Seq, "a tool/result can replace exactly one node")
	}
	return nil
}

// CheckRewrite judges whether a tool/result may stand in place of another event: of a tool/result that differs in
// nothing but the inner content (L-025). The error is a *CorruptError.
func CheckRewrite(version int, ev, old Event) error {
	if old.Type != TypeToolResult {
		return corruptAt(ev.Seq, "a tool/result can replace only a tool/result")
	}
	same := sameMembers(value(old.Data), value(ev.Data), func(key string, x, y value) bool {
		return key == "message" && x.isRecord() && y.isRecord() && sameMembers(x, y, func(key string, x, y value) bool {
			return key == "content" && (version == V3 || sameInnerBlocks(x, y))
		})
	})
	if !same {
		return corruptAt(ev.Seq, "a tool/result that replaces another may change only its content")
	}
	return nil
}
