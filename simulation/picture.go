package simulation

import (
	"fmt"
	"strings"
)

// PictureFormat is how a picture is written.
type PictureFormat string

// The formats of pictures.
const (
	// PictureHTML is one file for a browser. It asks for nothing from anywhere.
	PictureHTML PictureFormat = "html"
	// PictureSVG is for paper: it is light, and says nothing by colour alone.
	PictureSVG PictureFormat = "svg"
)

// PictureOptions say how a picture is drawn.
type PictureOptions struct {
	// Format is PictureHTML or PictureSVG. Empty: PictureHTML.
	Format PictureFormat
	// Title stands above the picture. Empty: the seed.
	Title string
	// Actors draws what each actor takes and each timer, too. HTML has them
	// always, and shows them when it is asked to.
	Actors bool
}

// Picture draws the space-time diagram of a run whose trace was kept: a lane for
// each agent, host and person and for the disk, time going down, messages as
// arrows. Rows have one distance whatever time lies between them, so that a
// burst can be read and an idle minute is short; times stand at the left. The
// same report gives the same bytes. It fails for a format that does not exist,
// and for a report that has no lines.
func Picture(r *Report, o PictureOptions) ([]byte, error) {
	if len(r.Lines) == 0 {
		return nil, fmt.Errorf("picture: the report has no lines: run its plan with Options.Keep")
	}
	switch o.Format {
	case PictureHTML, "":
		return newScene(r, o, true).html(), nil
	case PictureSVG:
		return newScene(r, o, false).svg(), nil
	default:
		return nil, fmt.Errorf("picture: there is no format %q; there are html and svg", o.Format)
	}
}

// scene is a picture before it is written: what stands where.
type scene struct {
	r      *Report
	title  string
	live   bool   // for a browser, which hides and shows
	actors bool   // actors show from the beginning
	lines  []Line // those that are drawn
	row    []int  // of each line
	rows   []sceneRow
	lanes  []lane
	lane   map[string]int
	broken map[int]bool  // lines that a failure points at, by number
	ends   map[int][]int // where a message arrives: indexes of lines, by Ref
	lost   map[int]bool
	labels []label
	spans  []stretch
	due    []deadline
	heads  []float64 // where the lanes' names stand again, on paper
	height float64
	width  float64
	end    float64 // of what was broken, where that is longer
}

// sceneRow is one moment of the picture: lines that belong together.
type sceneRow struct {
	at     int64
	y      float64
	hidden bool
}

// Kinds of lanes, from left to right.
const (
	laneAgent = iota
	laneHost
	lanePerson
	laneDisk
)

// lane is one column: a line with room for labels at its sides.
type lane struct {
	name        string
	kind        int
	what        string // under its name
	left, right float64
	x           float64
}

// label is what stands beside a lane in a row.
type label struct {
	line int // index
	text string
	left bool
}

func newScene(r *Report, o PictureOptions, live bool) *scene {
	s := &scene{r: r, title: o.Title, live: live, actors: o.Actors, broken: map[int]bool{}, ends: map[int][]int{}, lost: map[int]bool{}}
	if s.title == "" {
		s.title = "A simulated run"
		if r.Plan != nil {
			s.title = fmt.Sprintf("Seed %d", r.Plan.Seed)
		}
	}
	for _, f := range r.Failures {
		s.broken[f.Line] = f.Line > 0
	}
	for _, l := range r.Lines {
		if live || o.Actors || !ofActors(l.Kind) || s.broken[l.N] {
			s.lines = append(s.lines, l)
		}
	}
	s.findLanes()
	s.findRows()
	s.findEnds()
	s.findLabels()
	s.findSpans()
	s.layout()
	return s
}

func ofActors(kind string) bool { return kind == KindDeliver || kind == KindTimer }

// findLanes orders the lanes so that most arrows are short.
func (s *scene) findLanes() {
	byKind := [4][]lane{}
	seen := map[string]bool{"": true, worldLane: true}
	add := func(name string, kind int, what string) {
		if !seen[name] {
			seen[name] = true
			byKind[kind] = append(byKind[kind], lane{name: name, kind: kind, what: what})
		}
	}
	if p := s.r.Plan; p != nil {
		for i := range p.Hosts {
			add(hostName(i), laneHost, "host")
		}
		for _, party := range p.Parties {
			if party.Kind == AgentParty {
				add(party.Name, laneAgent, "agent "+party.Root+" in "+party.Session)
			} else {
				add(party.Name, lanePerson, string(party.Kind)+" in "+party.Session)
			}
		}
	}
	for _, l := range s.lines {
		for _, name := range []string{l.Lane, l.To} {
			if name == diskLane {
				add(name, laneDisk, "shared journal")
			} else {
				add(name, lanePerson, "")
			}
		}
	}
	s.lane = map[string]int{}
	for _, lanes := range byKind {
		for _, l := range lanes {
			s.lane[l.name] = len(s.lanes)
			s.lanes = append(s.lanes, l)
		}
	}
}

// Lanes that are nobody's.
const (
	worldLane = "world"
	diskLane  = "disk"
)

// findRows gives each line its row. What a party does and the message that it
// sends for it are one moment, and so are an arrival and what it tells.
func (s *scene) findRows() {
	s.row = make([]int, len(s.lines))
	for i, l := range s.lines {
		if i == 0 || !sameMoment(s.lines[i-1], l) {
			s.rows = append(s.rows, sceneRow{at: l.At, hidden: true})
		}
		s.row[i] = len(s.rows) - 1
		if s.shows(l) {
			s.rows[len(s.rows)-1].hidden = false
		}
	}
}

func (s *scene) shows(l Line) bool { return s.actors || !ofActors(l.Kind) || s.broken[l.N] }

func sameMoment(a, b Line) bool {
	if a.At != b.At || a.Lane != b.Lane || b.N != a.N+1 {
		return false
	}
	switch b.Kind {
	case KindSend:
		return a.Kind == KindDo || a.Kind == KindHold
	case KindTold, KindHold:
		return a.Kind == KindArrive
	case KindDrop:
		return a.Kind == KindSend && a.Ref == b.Ref
	}
	return false
}

func (s *scene) findEnds() {
	for i, l := range s.lines {
		switch l.Kind {
		case KindArrive:
			s.ends[l.Ref] = append(s.ends[l.Ref], i)
		case KindDrop:
			s.lost[l.Ref] = true
		}
	}
}

// findLabels says what stands at each line. A label stands on the side that the
// line's own arrow does not go to.
func (s *scene) findLabels() {
	for i, l := range s.lines {
		at, known := s.lane[l.Lane]
		if !known || l.Kind == KindArrive || l.Kind == KindDrop {
			continue
		}
		if l.Kind == KindSend && i > 0 && s.row[i-1] == s.row[i] {
			continue // what its party does says it
		}
		left := s.lanes[at].kind == laneAgent
		if s.lanes[at].kind == laneHost && l.Kind == KindSend {
			to, known := s.lane[l.To]
			left = known && to > at
		}
		text := labelText(l)
		if l.Kind == KindSend && s.lanes[at].kind != laneHost && text != "" && text[0] >= 'A' && text[0] <= 'Z' {
			text += " again" // nothing came back
		}
		text = clip(text, labelMax[s.lanes[at].kind])
		s.labels = append(s.labels, label{i, text, left})
		if !s.shows(l) {
			continue
		}
		room := textWidth(text) + 16
		if l.Kind == KindFault {
			room *= faultTextWider
		}
		if left {
			s.lanes[at].left = max(s.lanes[at].left, room)
		} else {
			s.lanes[at].right = max(s.lanes[at].right, room)
		}
	}
}

// labelMax is how wide a label may be, by the kind of its lane.
var labelMax = [4]float64{190, 165, 190, 240}

// Distances, in pixels.
const (
	rowPitch  = 17.0
	axisWidth = 78.0
	topMargin = 18.0
	laneEdge  = 34.0
	headEvery = 60 // rows
	headRoom  = 34.0
	noteGap   = 30.0
	noteWidth = 300.0
	noteEdge  = 13.0 // of the box, to its text
)

// noteLinesMax is how much of what shows a breach its note has; what is pointed at
// says all of it.
const noteLinesMax = 14

// pauseRoom is the room that an idle stretch takes before a row.
func pauseRoom(ms int64) float64 {
	switch {
	case ms >= 5000:
		return 22
	case ms >= 1000:
		return 14
	case ms >= 100:
		return 5
	}
	return 0
}

func (s *scene) layout() {
	x := axisWidth
	for i := range s.lanes {
		l := &s.lanes[i]
		edge := max(laneEdge, textWidth(l.name)*headNameWider/2+4, textWidth(l.what)*headWhatWider/2+4)
		l.left, l.right = max(l.left, edge), max(l.right, edge)
		l.x = x + l.left
		x = l.x + l.right
	}
	s.width = x
	y, last, shown := topMargin, int64(0), 0
	for i := range s.rows {
		r := &s.rows[i]
		if r.hidden {
			r.y = y // where the next one that shows will be, nearly
			continue
		}
		if shown++; !s.live && shown%headEvery == 0 {
			s.heads = append(s.heads, y+8)
			y += headRoom
		}
		y += pauseRoom(r.at - last)
		r.y, last = y, r.at
		y += rowPitch
	}
	s.height = y + rowPitch
}

// y is where a time is: at the last row that it does not come before, or on the
// way to the next. A time after the end is at the end.
func (s *scene) y(at int64) float64 {
	var before *sceneRow
	for i := range s.rows {
		r := &s.rows[i]
		if r.hidden {
			continue
		}
		if r.at > at {
			if before == nil {
				return r.y
			}
			return before.y + (r.y-before.y)*float64(at-before.at)/float64(r.at-before.at)
		}
		before = r
	}
	return s.height - rowPitch
}

// rowOf is the row of a line by its number; 0, or one that is not there: the last.
func (s *scene) rowOf(n int) int {
	for i, l := range s.lines {
		if n > 0 && l.N >= n {
			return s.row[i]
		}
	}
	return len(s.rows) - 1
}

// verdict says how the run came out.
func (s *scene) verdict() string {
	if len(s.r.Failures) == 0 {
		return "every promise was kept"
	}
	var names []string
	seen := map[string]bool{}
	for _, f := range s.r.Failures {
		if !seen[f.Invariant] {
			seen[f.Invariant] = true
			names = append(names, f.Invariant)
		}
	}
	return "broken: " + strings.Join(names, ", ")
}
