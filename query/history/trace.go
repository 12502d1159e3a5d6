package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// traceSession is session_trace: where a session comes from, and what came of it.
func (t *Tools) traceSession(ctx context.Context, id string, args values) (string, error) {
	who, target, err := t.identify(ctx, id, args.target(id))
	if err != nil {
		return "", err
	}
	return t.lineage(ctx, who, target)
}

func (t *Tools) lineage(ctx context.Context, who caller, target Session) (string, error) {
	up, hidden, err := t.ancestors(ctx, who, target)
	if err != nil {
		return "", err
	}
	down, err := t.descendants(ctx, who, target, up)
	if err != nil {
		return "", err
	}
	return lineageText(target, up, hidden, down), nil
}

// ancestors walks up to the first session that the caller may not see, hidden
// or not there (S-018, S-102).
func (t *Tools) ancestors(ctx context.Context, who caller, target Session) (up []Session, hidden bool, err error) {
	seen := map[string]bool{target.ID: true}
	for at := target; at.Parent != ""; {
		found, err := t.sessions(ctx, []string{at.Parent})
		if err != nil {
			return nil, false, err
		}
		parent, ok := found[at.Parent]
		if !ok || !who.may(parent) {
			return up, true, nil
		}
		if seen[parent.ID] {
			return nil, false, messages.Refuse(messages.QueryInvalidLineage, "%s", fixed[messages.QueryInvalidLineage])
		}
		seen[parent.ID] = true
		up, at = append(up, parent), parent
	}
	return up, false, nil
}

// node is a session in the tree of descendants.
type node struct {
	Session
	hidden   bool // the caller may not see it, nor anything below it
	children []*node
}

// descendants reads the tree below a session, a level at a time. A session that
// stands higher up already is not entered again: headers can form a ring.
func (t *Tools) descendants(ctx context.Context, who caller, target Session, up []Session) ([]*node, error) {
	root := &node{Session: target}
	seen := map[string]bool{target.ID: true}
	for _, s := range up {
		seen[s.ID] = true
	}
	for level := map[string]*node{target.ID: root}; len(level) > 0; {
		var parents []string
		for id := range level {
			parents = append(parents, id)
		}
		slices.Sort(parents)
		found, err := call(ctx, t, func() ([]Session, error) { return t.corpus.Children(ctx, parents) })
		if err != nil {
			return nil, err
		}
		slices.SortFunc(found, func(a, b Session) int { // S-101
			return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
		})
		next := map[string]*node{}
		for _, s := range found {
			above, ok := level[s.Parent]
			if !ok || seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			n := &node{Session: s, hidden: !who.may(s)}
			above.children = append(above.children, n)
			if !n.hidden {
				next[s.ID] = n
			}
		}
		level = next
	}
	return root.children, nil
}

// relations are what an event has to do with others (S-081).
type relations struct {
	replacedBy int64 // -1: none
	chain      []int64
	replaced   []int64
	cited      []int64
	derived    []int64
}

// traceEvent is session_event_trace.
func (t *Tools) traceEvent(ctx context.Context, id string, args values) (string, error) {
	seq, err := args.whole("seq", 0)
	if err != nil {
		return "", err
	}
	who, target, err := t.identify(ctx, id, args.target(id))
	if err != nil {
		return "", err
	}
	return t.relations(ctx, who, target, seq)
}

func (t *Tools) relations(ctx context.Context, who caller, target Session, seq int64) (string, error) {
	log, err := t.readLog(ctx, who, target)
	if err != nil {
		return "", err
	}
	if seq >= int64(len(log.Events)) {
		return "", noEvent()
	}
	return relationsText(target, log, seq, relate(log, seq)), nil
}

// relate finds the direct relations of one event.
func relate(log Log, seq int64) relations {
	by := map[int64]int64{} // who shadowed whom
	r := relations{replacedBy: -1, cited: log.Events[seq].SourceEventSeqs}
	for _, change := range log.Surface.Replacements {
		for _, old := range change.Shadowed {
			by[old] = change.Seq
		}
		if change.Seq == seq {
			r.replaced = change.Shadowed
		}
	}
	for at, ok := by[seq]; ok; at, ok = by[at] {
		r.chain = append(r.chain, at) // a replacement is later than what it replaces: this ends
	}
	if len(r.chain) > 0 {
		r.replacedBy = r.chain[0]
	}
	for _, ev := range log.Events[seq+1:] {
		if slices.Contains(ev.SourceEventSeqs, seq) {
			r.derived = append(r.derived, ev.Seq)
		}
	}
	return r
}

func noEvent() error {
	return messages.Refuse(messages.QueryEventNotFound, "%s", fixed[messages.QueryEventNotFound])
}

// readLog reads a session's log and looks once more whether it is the session
// that was authorised (S-015).
func (t *Tools) readLog(ctx context.Context, who caller, target Session) (Log, error) {
	log, err := call(ctx, t, func() (Log, error) { return t.corpus.Log(ctx, target.ID) })
	if err != nil {
		return Log{}, err
	}
	if log.Header.ID != target.ID || !who.may(Session{ID: log.Header.ID, CWD: log.Header.CWD}) || log.Header.CWD != target.CWD {
		return Log{}, outside()
	}
	return log, nil
}

// readEvent is session_event_read.
func (t *Tools) readEvent(ctx context.Context, id string, args values) (string, error) {
	var seq, before, after int64
	for _, p := range []struct {
		name string
		into *int64
	}{{"seq", &seq}, {"before", &before}, {"after", &after}} {
		var err error
		if *p.into, err = args.whole(p.name, 0); err != nil {
			return "", err
		}
	}
	who, target, err := t.identify(ctx, id, args.target(id))
	if err != nil {
		return "", err
	}
	return t.window(ctx, who, target, seq, before, after)
}

func (t *Tools) window(ctx context.Context, who caller, target Session, seq, before, after int64) (string, error) {
	if most := int64(t.cfg.WindowMax); before > most || after > most {
		return "", messages.Refuse(messages.QueryInvalidWindow, "before and after may be %d at most", most)
	}
	log, err := t.readLog(ctx, who, target)
	if err != nil {
		return "", err
	}
	if seq >= int64(len(log.Events)) {
		return "", noEvent()
	}
	from, to := max(0, seq-before), min(int64(len(log.Events)), seq+1+after)
	return readText(target, log, seq, log.Events[from:seq], log.Events[seq+1:to]), nil
}

// wholeLine is an event as one JSON object, keys in stored order. A live
// session's events have the order in which they are made (S-090).
func wholeLine(log Log, ev sessionlog.Event) []byte {
	if log.Concealed[ev.Seq] {
		ev = sessionlog.NewEvent(ev.Type, map[string]bool{"hidden": true}).At(ev.Seq, ev.Time)
	}
	if !log.Live || ev.SurfaceOp == nil || ev.SourceEventSeqs == nil {
		return ev.Line()
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Type            string          `json:"type"`
		Seq             int64           `json:"seq"`
		Time            int64           `json:"time"`
		Data            json.RawMessage `json:"data"`
		Ignorable       bool            `json:"ignorable,omitempty"`
		SourceEventSeqs []int64         `json:"sourceEventSeqs"`
		SurfaceOp       json.RawMessage `json:"surfaceOp"`
	}{ev.Type, ev.Seq, ev.Time, ev.Data, ev.Ignorable, ev.SourceEventSeqs, ev.SurfaceOp})
	if err != nil {
		return ev.Line()
	}
	return bytes.TrimSpace(line.Bytes())
}
