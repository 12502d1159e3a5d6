package sessionlog

import (
	"encoding/json"
	"maps"
	"strconv"
)

// SurfaceFold is the surface of a log while it grows: what an index keeps to classify events one by one (L-020 to
// L-027). An append and a removal take constant time, however long the log is. To allow that it is changed in place,
// unlike the other folds, which are values; Clone makes a copy that goes its own way.
type SurfaceFold struct {
	version     int
	next        int64          // seq of the next event
	nodes       map[int64]node // of the surface, by seq
	first, last int64          // noNode when the surface is empty
}

// node is one event on the surface, with its neighbours in surface order.
type node struct{ before, after int64 }

const noNode = -1

// NewSurfaceFold starts at an empty log of generation version (V0 or V3).
func NewSurfaceFold(version int) *SurfaceFold {
	return &SurfaceFold{version: version, nodes: map[int64]node{}, first: noNode, last: noNode}
}

// Clone returns a copy: what is folded into one does not show in the other.
func (f *SurfaceFold) Clone() *SurfaceFold {
	c := *f
	c.nodes = maps.Clone(f.nodes)
	return &c
}

// Next returns the seq of the event that must be folded next.
func (f *SurfaceFold) Next() int64 { return f.next }

// Nodes walks the seqs on the surface in surface order, which need not be ascending (L-022).
func (f *SurfaceFold) Nodes(yield func(seq int64) bool) {
	for seq := f.first; seq != noNode; seq = f.nodes[seq].after {
		if !yield(seq) {
			return
		}
	}
}

// Fold takes one event in log order and returns its class, which is Current or LogOnly, and the replacement that it
// made, nil for none: the events of its list Shadowed are Shadowed from here on (L-027). earlier gives an event that was folded
// before, in the same shape; it is asked only for a result that another result replaces (L-025). The error is a
// *CorruptError, which makes the whole log unreadable (L-024), or earlier's; the fold has not changed then.
func (f *SurfaceFold) Fold(ev Event, earlier func(seq int64) (Event, error)) (Class, *Replacement, error) {
	if ev.Seq != f.next {
		return LogOnly, nil, gap(ev.Seq, f.next)
	}
	p, err := place(f.version, ev)
	switch {
	case err != nil:
		return LogOnly, nil, err
	case !p.OnSurface:
		f.next++
		return LogOnly, nil, nil
	case !p.Replaces:
		f.next++
		f.link(f.last, ev.Seq, noNode)
		return Current, nil, nil
	}
	r, err := f.replacement(ev, p)
	if err != nil {
		return LogOnly, nil, err
	}
	if ev.Type == TypeToolResult {
		old, err := earlier(r.Shadowed[0])
		if err == nil {
			err = CheckRewrite(f.version, ev, old)
		}
		if err != nil {
			return LogOnly, nil, err
		}
	}
	f.next++
	before, after := f.nodes[r.Start].before, f.nodes[r.End].after
	for _, seq := range r.Shadowed {
		delete(f.nodes, seq)
	}
	f.link(before, ev.Seq, after)
	return Current, &r, nil
}

// link puts a node between two neighbours, or at an end.
func (f *SurfaceFold) link(before, seq, after int64) {
	f.nodes[seq] = node{before, after}
	if before == noNode {
		f.first = seq
	} else {
		n := f.nodes[before]
		n.after = seq
		f.nodes[before] = n
	}
	if after == noNode {
		f.last = seq
	} else {
		n := f.nodes[after]
		n.before = seq
		f.nodes[after] = n
	}
}

// replacement finds what one replace operation removes: positions on the current surface decide, not seqs (L-022).
func (f *SurfaceFold) replacement(ev Event, p Placement) (Replacement, error) {
	none, start, end := Replacement{}, p.Start, p.End
	if _, on := f.nodes[start]; !on {
		return none, corruptAt(ev.Seq, "replace: start seq %d is not on the surface", start)
	}
	if _, on := f.nodes[end]; !on {
		return none, corruptAt(ev.Seq, "replace: end seq %d is not on the surface", end)
	}
	var shadowed []int64
	for seq := start; ; seq = f.nodes[seq].after {
		if seq == noNode {
			return none, corruptAt(ev.Seq, "replace: start seq %d stands behind end seq %d on the surface", start, end)
		}
		shadowed = append(shadowed, seq)
		if seq == end {
			break
		}
	}
	if err := CheckShadowed(ev, shadowed); err != nil {
		return none, err
	}
	return Replacement{Seq: ev.Seq, Start: start, End: end, Shadowed: shadowed}, nil
}

// State writes the fold as compact JSON, for DecodeSurface.
func (f *SurfaceFold) State() json.RawMessage {
	d := strconv.AppendInt([]byte(`{"version":`), int64(f.version), 10)
	d = strconv.AppendInt(append(d, `,"next":`...), f.next, 10)
	d = append(d, `,"nodes":[`...)
	for seq := range f.Nodes {
		if seq != f.first {
			d = append(d, ',')
		}
		d = strconv.AppendInt(d, seq, 10)
	}
	return append(d, "]}"...)
}

// DecodeSurface reads what State wrote. The error is a *CorruptError.
func DecodeSurface(state json.RawMessage) (*SurfaceFold, error) {
	bad := func() (*SurfaceFold, error) {
		return nil, &CorruptError{Seq: -1, Problem: "the state of a surface cannot be read", Remedy: "fold the log again"}
	}
	rec, ok := parse(state)
	if !ok {
		return bad()
	}
	fields, exact := exactly(rec, "version", "next", "nodes")
	if !exact || !fields[2].isList() {
		return bad()
	}
	version, ok := fields[0].whole()
	if !ok || version != V0 && version != V3 {
		return bad()
	}
	f := NewSurfaceFold(int(version))
	if f.next, ok = fields[1].count(); !ok {
		return bad()
	}
	for el := range fields[2].elements {
		seq, ok := el.count()
		if _, twice := f.nodes[seq]; !ok || twice || seq >= f.next {
			return bad()
		}
		f.link(f.last, seq, noNode)
	}
	return f, nil
}
