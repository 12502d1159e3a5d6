package simulation

import "strings"

// stretch is something that lasts, along a lane or between two.
type stretch struct {
	class     string
	lane, to  int   // to: of a partition; else -1
	from, til int   // rows
	due       int64 // of a call that waits: its deadline, when it came to that
	slot      int   // side by side with others of its lane
	text      string
}

// deadline is when a call that waits becomes pending.
type deadline struct {
	span int // index of the span that leads to it
	at   int64
	call string
}

// spanFinder reads what lasts out of the lines.
type spanFinder struct {
	s     *scene
	open  map[string]int // spans that have not ended, by what they are
	using map[int]map[int]bool
}

func (s *scene) findSpans() {
	f := &spanFinder{s, map[string]int{}, map[int]map[int]bool{}}
	waits := s.waits()
	for i, l := range s.lines {
		lane, known := s.lane[l.Lane]
		switch {
		case l.Kind == KindMark && l.Lane == worldLane && l.Text == "heals":
			for key := range f.open { // in any order: each ends in this row
				if strings.HasPrefix(key, "cut ") {
					f.end(key, i)
				}
			}
		case !known:
		case l.Kind == KindFault:
			f.fault(i, lane, l)
		case l.Kind == KindHold:
			f.hold(i, lane, l)
		case l.Kind == KindDo:
			f.end("down "+l.Lane, i)
		case l.Kind == KindArrive && waits[l.Ref].ms > 0:
			f.wait(i, lane, l, waits[l.Ref])
		case l.Kind == KindTold:
			if asked, _ := splitTold(l.Text); strings.HasPrefix(asked, "Ask ") {
				_, all := briefFields(asked)
				f.end("wait "+l.Lane+" "+callOf(all), i)
			}
		}
	}
	for i := range s.spans {
		if s.spans[i].til < 0 {
			s.spans[i].til = len(s.rows) - 1
		}
	}
	s.dropLate()
}

func (f *spanFinder) begin(key, class string, i, lane int, text string) {
	f.end(key, i)
	slot := 0
	if class != spanDown && class != spanPause && class != spanCut {
		for f.using[lane][slot] {
			slot++
		}
		if f.using[lane] == nil {
			f.using[lane] = map[int]bool{}
		}
		f.using[lane][slot] = true
	}
	f.open[key] = len(f.s.spans)
	f.s.spans = append(f.s.spans, stretch{class: class, lane: lane, to: -1, from: f.s.row[i], til: -1, slot: slot, text: text})
}

func (f *spanFinder) end(key string, i int) {
	at, open := f.open[key]
	if !open {
		return
	}
	delete(f.open, key)
	sp := &f.s.spans[at]
	sp.til = f.s.row[i]
	if sp.class != spanDown && sp.class != spanPause && sp.class != spanCut {
		delete(f.using[sp.lane], sp.slot)
	}
}

// Classes of spans.
const (
	spanDown  = "down"
	spanPause = "pause"
	spanCut   = "cut"
	spanAsked = "asked" // a claim that is not known to hold yet
	spanClaim = "claim"
	spanWait  = "wait" // a call, until its foreground's deadline
)

func (f *spanFinder) fault(i, lane int, l Line) {
	name, up := l.Lane, strings.HasPrefix(l.Text, "boots")
	switch {
	case l.Text == "crashes":
		f.end("pause "+name, i)
		f.begin("down "+name, spanDown, i, lane, name+" is down")
	case up:
		f.end("down "+name, i)
	case l.Text == "stands still":
		f.begin("pause "+name, spanPause, i, lane, name+" stands still")
	case l.Text == "goes on":
		f.end("pause "+name, i)
	}
	if other, is := strings.CutPrefix(l.Text, "is cut off from "); is {
		if to, known := f.s.lane[other]; known {
			key := cutKey(name, other)
			f.begin(key, spanCut, i, min(lane, to), name+" and "+other+" do not hear each other")
			f.s.spans[f.open[key]].to = max(lane, to)
		}
	}
	if other, is := strings.CutPrefix(l.Text, "hears "); is {
		f.end(cutKey(name, strings.TrimSuffix(other, " again")), i)
	}
}

func cutKey(a, b string) string { return "cut " + min(a, b) + " " + max(a, b) }

func (f *spanFinder) hold(i, lane int, l Line) {
	verb, call, _ := strings.Cut(l.Text, " ")
	key := func(call string) string { return "claim " + l.Lane + " " + call }
	switch verb {
	case "opens":
		f.begin(key(call), spanAsked, i, lane, l.Lane+" has asked to hold "+call)
	case "holds":
		f.begin(key(call), spanClaim, i, lane, l.Lane+" holds "+call)
	case "lets":
		call, _, _ = strings.Cut(strings.TrimPrefix(call, "go "), ": ")
		f.end(key(call), i)
	}
}

// waitOf is what a host says of a call that is durable.
type waitOf struct {
	call string
	ms   int64 // from sending
	sent int64
}

// waits are the messages that say that a call waits, by Ref.
func (s *scene) waits() map[int]waitOf {
	all := map[int]waitOf{}
	for _, l := range s.lines {
		if l.Kind != KindSend || !strings.HasPrefix(l.Text, "AskResponse ") {
			continue
		}
		_, said := briefFields(l.Text)
		for _, f := range said {
			if f[0] == "waiting" {
				all[l.Ref] = waitOf{callOf(said), millisOf(innerField(f[1], "remaining_ms")), l.At}
			}
		}
	}
	return all
}

func (f *spanFinder) wait(i, lane int, l Line, w waitOf) {
	key := "wait " + l.Lane + " " + w.call
	if _, open := f.open[key]; open {
		return // it is told the same again
	}
	f.begin(key, spanWait, i, lane, strings.TrimSpace(w.call)+" waits in the foreground")
	f.s.due = append(f.s.due, deadline{f.open[key], w.sent + w.ms, strings.TrimSpace(w.call)})
}

// dropLate keeps the deadlines that came before their call's result.
func (s *scene) dropLate() {
	kept := s.due[:0]
	for _, d := range s.due {
		sp := &s.spans[d.span]
		if s.rows[sp.til].at < d.at {
			continue
		}
		kept = append(kept, d)
		sp.due = d.at
	}
	s.due = kept
}
