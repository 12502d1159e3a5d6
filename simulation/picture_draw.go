package simulation

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// pen writes a scene as SVG.
type pen struct {
	*scene
	bytes.Buffer
}

func (p *pen) f(format string, args ...any) { _, _ = fmt.Fprintf(p, format, args...) } // a buffer never fails

// text writes escaped text; what XML cannot hold becomes a replacement character.
func (p *pen) text(s string) { _ = xml.EscapeText(p, []byte(s)) } // a buffer never fails

func (p *pen) titled(s string) {
	_, _ = p.WriteString("<title>")
	p.text(s)
	_, _ = p.WriteString("</title>")
}

// px is a coordinate, as short as can be.
func px(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// data writes what a browser needs to place an element anew.
func (p *pen) data(pairs ...any) {
	if !p.live {
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		p.f(" data-%s=\"%v\"", pairs[i], pairs[i+1])
	}
}

// diagram writes all that moves with the rows.
func (p *pen) diagram() {
	p.axis()
	p.lives()
	p.f("<g>")
	for i := range p.spans {
		p.span(&p.spans[i])
	}
	for i := range p.due {
		p.deadline(&p.due[i])
	}
	p.f("</g>\n<g>\n")
	for i, l := range p.lines {
		if l.Kind == KindSend {
			p.arrows(i, l)
		}
	}
	p.f("</g>\n")
	p.notes()
	p.f("<g>\n")
	for i := range p.labels {
		p.event(&p.labels[i])
	}
	for i, l := range p.lines {
		if l.Lane == worldLane {
			p.worldMark(i, l)
		}
	}
	p.f("</g>\n")
}

func (p *pen) axis() {
	p.f("<g class=\"axis\"><line class=\"spine\" x1=\"%s\" x2=\"%[1]s\" y1=\"%s\" y2=\"%s\"/>\n", px(axisWidth-10), px(topMargin-10), px(p.height-rowPitch))
	last := int64(-1)
	for i := range p.rows {
		r := &p.rows[i]
		if r.hidden || r.at == last {
			continue
		}
		y, gap := r.y, r.at-max(last, 0)
		p.f("<g transform=\"translate(0,%s)\"><line class=\"hair\" x1=\"%s\" x2=\"%s\"/><text x=\"%s\" y=\"3.5\">%s</text>", px(y), px(axisWidth-13), px(p.width), px(axisWidth-16), axisTime(r.at))
		if gap >= 1000 {
			p.f("<text class=\"gap\" x=\"%s\" y=\"%s\">+%s</text><path class=\"gap\" d=\"M%s %sl8 -4m-8 7l8 -4\"/>", px(axisWidth-16), px(-11-pauseRoom(gap)/4), axisTime(gap), px(axisWidth-14), px(-9-pauseRoom(gap)/4))
		}
		p.f("</g>\n")
		last = r.at
	}
	p.f("</g>\n")
}

// lives draws the lanes. A lane whose process is down is dashed there.
func (p *pen) lives() {
	p.f("<g>")
	for i := range p.lanes {
		from := 0
		if p.lanes[i].kind == laneDisk {
			p.life(i, 0, len(p.rows)-1, "life disk")
			continue
		}
		for _, sp := range p.spans {
			if sp.class == spanDown && sp.lane == i {
				p.life(i, from, sp.from, "life")
				p.life(i, sp.from, sp.til, "life gone")
				from = sp.til
			}
		}
		p.life(i, from, len(p.rows)-1, "life")
	}
	p.f("</g>\n")
}

func (p *pen) life(lane, from, til int, class string) {
	if til <= from && len(p.rows) > 1 {
		return
	}
	y := p.rows[from].y
	if from == 0 {
		y = topMargin - 10
	}
	p.f("<line class=\"%s\" x1=\"%s\" x2=\"%[2]s\" y1=\"%s\" y2=\"%s\"", class, px(p.lanes[lane].x), px(y), px(p.rows[til].y))
	p.data("l", lane, "a", from, "b", til)
	p.f("/>")
}

// slotX is how far from its lane a span stands: claims and waits that overlap
// stand beside each other.
func (sp *stretch) slotX() float64 {
	switch sp.class {
	case spanWait:
		return 9 + 6*float64(sp.slot)
	case spanClaim, spanAsked:
		return -9 * float64(sp.slot)
	}
	return 0
}

// spanKind is which kind of line shows and hides a span.
var spanKind = map[string]string{spanDown: KindFault, spanPause: KindFault, spanCut: KindFault, spanAsked: KindHold, spanClaim: KindHold, spanWait: KindTold}

func (p *pen) span(sp *stretch) {
	x, y1, y2 := p.lanes[sp.lane].x+sp.slotX(), p.rows[sp.from].y, p.rows[sp.til].y
	p.f("<g class=\"s %s k-%s\"", sp.class, spanKind[sp.class])
	p.data("l", sp.lane, "a", sp.from, "b", sp.til, "dx", sp.slotX())
	switch sp.class {
	case spanCut:
		from, to := p.lanes[sp.lane].x, p.lanes[sp.to].x
		p.data("to", sp.to)
		p.f(">")
		p.titled(sp.text)
		mid := cutX(from, to)
		p.f("<rect class=\"bar\" x=\"%s\" width=\"7\" y=\"%s\" height=\"%s\"/>", px(mid-3.5), px(y1), px(max(y2-y1, 3)))
		p.f("<line class=\"from\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%[3]s\"/><line class=\"til\" x1=\"%[1]s\" x2=\"%[2]s\" y1=\"%[4]s\" y2=\"%[4]s\"/>", px(from), px(to), px(y1), px(y2))
	case spanWait:
		if sp.due > 0 {
			y2 = p.y(sp.due)
			p.data("t", sp.due)
		}
		p.f(">")
		p.titled(sp.text)
		p.f("<line x1=\"%s\" x2=\"%[1]s\" y1=\"%s\" y2=\"%s\"/>", px(x), px(y1), px(y2))
	default:
		w := map[string]float64{spanDown: 6, spanPause: 12, spanAsked: 6, spanClaim: 6}[sp.class]
		p.f(">")
		p.titled(sp.text)
		p.f("<rect x=\"%s\" width=\"%s\" y=\"%s\" height=\"%s\"/>", px(x-w/2), px(w), px(y1), px(max(y2-y1, 3)))
	}
	p.f("</g>\n")
}

// cutX is where the bar of a partition stands: between the lanes, but on none.
func cutX(from, to float64) float64 { return to - min(24, (to-from)/2) }

// deadline draws an hourglass where a call's foreground ends.
func (p *pen) deadline(d *deadline) {
	sp := &p.spans[d.span]
	p.f("<g class=\"due k-told\" transform=\"translate(%s,%s)\"", px(p.lanes[sp.lane].x+sp.slotX()), px(p.y(d.at)))
	p.data("l", sp.lane, "t", d.at, "dx", sp.slotX())
	p.f(">")
	p.titled(fmt.Sprintf("%s: the foreground of %s ends; without an answer it is pending", axisTime(d.at), d.call))
	p.f("<path d=\"M-4 -5h8l-8 10h8z\"/><text x=\"7\" y=\"3\">")
	p.text(clip(d.call, 40))
	p.f("</text></g>\n")
}

// arrows draws a message from its sending to each of its arrivals.
func (p *pen) arrows(i int, l Line) {
	from, known := p.lane[l.Lane]
	to, also := p.lane[l.To]
	if !known || !also {
		return
	}
	class := p.arrowClass(from, to)
	head := fmt.Sprintf("line %d · %s · %s → %s · #%d\n%s\n", l.N, axisTime(l.At), l.Lane, l.To, l.Ref, l.Text)
	ends := p.ends[l.Ref]
	if len(ends) == 0 {
		end, what := "flying", "never arrives"
		if p.lost[l.Ref] {
			end, what = "lost", "is lost"
		}
		p.arrow(i, -1, from, to, class+" "+end, head+what)
		return
	}
	for n, e := range ends {
		what := "arrives at " + axisTime(p.lines[e].At) + " (line " + strconv.Itoa(p.lines[e].N) + ")"
		c := class
		if n > 0 {
			c, what = c+" again", what+", a second time"
		}
		if p.gone(to, p.row[e]) {
			c, what = c+" unheard", what+", where nobody is"
		}
		p.arrow(i, e, from, to, c, head+what)
	}
}

func (p *pen) arrowClass(from, to int) string {
	switch {
	case p.lanes[from].kind != laneHost:
		return "ask"
	case p.lanes[to].kind == laneHost:
		return "peer"
	}
	return "answer"
}

// gone: the lane's process is down in a row.
func (s *scene) gone(lane, row int) bool {
	for i := range s.spans {
		if sp := &s.spans[i]; sp.class == spanDown && sp.lane == lane && sp.from <= row && row < sp.til {
			return true
		}
	}
	return false
}

// lostFall is how far down a message goes that does not arrive.
const lostFall = 12

func (p *pen) arrow(i, end, from, to int, class, title string) {
	a := p.row[i]
	x1, x2, y1 := p.lanes[from].x, p.lanes[to].x, p.rows[a].y
	y2 := y1 + lostFall
	if end >= 0 {
		y2 = p.rows[p.row[end]].y
	} else {
		x2 = (x1 + x2) / 2
	}
	p.f("<g class=\"m k-send %s\"", class)
	p.data("l", from, "to", to, "a", a, "n", p.lines[i].N)
	if end >= 0 {
		p.data("b", p.row[end])
	}
	p.f(">")
	p.titled(title)
	at := fmt.Sprintf("x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"", px(x1), px(y1), px(x2), px(y2))
	if p.live {
		p.f("<line class=\"hit\" %s/>", at)
	}
	p.f("<line class=\"w\" %s marker-end=\"url(#%s)\"/>", at, arrowEnd(class))
	p.f("</g>\n")
}

func arrowEnd(class string) string {
	for _, end := range []string{"lost", "flying", "unheard"} {
		if strings.HasSuffix(class, end) {
			return "end-" + end
		}
	}
	kind, _, _ := strings.Cut(class, " ")
	return "end-" + kind
}

// event draws a line at its lane: a shape that says its kind, and a label.
func (p *pen) event(lb *label) {
	l := p.lines[lb.line]
	lane := p.lane[l.Lane]
	p.f("<g class=\"e k-%s%s\"", kindClass(l.Kind), p.mood(l))
	p.data("l", lane, "r", p.row[lb.line], "n", l.N)
	p.f(" transform=\"translate(%s,%s)\"", px(p.lanes[lane].x), px(p.rows[p.row[lb.line]].y))
	if !p.live && p.rows[p.row[lb.line]].hidden {
		p.f(" display=\"none\"")
	}
	p.f(">")
	p.titled(fmt.Sprintf("line %d · %s · %s · %s\n%s", l.N, axisTime(l.At), l.Lane, l.Kind, l.Text))
	_, _ = p.WriteString(shapeOf(l))
	if lb.text != "" {
		side := "x=\"9\""
		if lb.left {
			side = "x=\"-9\" class=\"l\""
		}
		p.f("<text %s y=\"3.7\">", side)
		p.text(lb.text)
		p.f("</text>")
	}
	p.f("</g>\n")
}

// kindClass is a kind as a class: a report may hold any.
func kindClass(kind string) string {
	switch kind {
	case KindSend, KindDeliver, KindTimer, KindDisk, KindFault, KindDo, KindTold, KindHold, KindShow, KindMark:
		return kind
	}
	return "other"
}

func (p *pen) mood(l Line) (class string) {
	if p.broken[l.N] {
		class = " broken"
	}
	if saysNo(l) {
		class += " bad"
	}
	return class
}

// saysNo: somebody was told no.
func saysNo(l Line) bool {
	switch l.Kind {
	case KindTold:
		_, told := splitTold(l.Text)
		return strings.HasPrefix(told, "Refusal")
	case KindDisk:
		return !strings.HasSuffix(l.Text, " done")
	}
	return false
}

// Shapes of events, so that print without colours says as much.
const (
	shapeDot     = `<circle r="3.6"/>`
	shapeRing    = `<circle class="o" r="3.6"/>`
	shapeDiamond = `<path class="o" d="M0 -5L5 0L0 5L-5 0z"/>`
	shapeSmall   = `<circle r="1.6"/>`
	shapeCross   = `<path class="x" d="M-4 -4L4 4M4 -4L-4 4"/>`
	shapeHalf    = `<circle class="o" r="4"/><path d="M0 -4A4 4 0 0 1 0 4z"/>`
	shapeSquare  = `<rect class="o" x="-3.6" y="-3.6" width="7.2" height="7.2"/>`
	shapeBlock   = `<rect x="-3" y="-3" width="6" height="6"/>`
	shapeBolt    = `<path d="M2.5 -9L-6 1.6H-1L-2.8 9L6 -2.2H1z"/>`
	shapeUp      = `<path class="o" d="M0 -5L5 4H-5z"/>`
	shapeClock   = `<circle class="o" r="5.5"/><path class="x" d="M0 -3.5V0H3"/>`
	shapeBars    = `<path class="x" d="M-2 -4V4M2 -4V4"/>`
	shapeMove    = `<path class="x" d="M-5 0H5M1.5 -3.5L5 0L1.5 3.5"/>`
)

func shapeOf(l Line) string {
	switch l.Kind {
	case KindDo:
		return shapeDot
	case KindTold:
		if saysNo(l) {
			return shapeDiamond
		}
		return shapeRing
	case KindDisk:
		return diskShape(l.Text)
	case KindFault:
		return faultShape(l.Text)
	case KindHold, KindMark:
		return shapeBlock
	}
	return shapeSmall
}

func diskShape(text string) string {
	switch {
	case strings.HasSuffix(text, ", and an error told"):
		return shapeHalf
	case strings.HasSuffix(text, " done"):
		return shapeDot
	case strings.HasSuffix(text, " refused"):
		return shapeCross
	}
	return shapeSquare
}

func faultShape(text string) string {
	for _, s := range []struct{ begins, shape string }{{"crashes", shapeBolt}, {"boots", shapeUp}, {"its wall clock", shapeClock},
		{"stands still", shapeBars}, {"goes on", shapeUp}, {"hears ", shapeUp}, {"is given", shapeMove}} {
		if strings.HasPrefix(text, s.begins) {
			return s.shape
		}
	}
	return shapeCross
}

// worldMark is a line of the world's own, across all lanes.
func (p *pen) worldMark(i int, l Line) {
	p.f("<g class=\"e wide k-mark%s\" transform=\"translate(0,%s)\"", p.mood(l), px(p.rows[p.row[i]].y))
	p.data("r", p.row[i], "n", l.N)
	p.f(">")
	p.titled(fmt.Sprintf("line %d · %s · the world · %s", l.N, axisTime(l.At), l.Text))
	p.f("<line x1=\"%s\" x2=\"%s\"/><text x=\"%[1]s\" y=\"-4\">", px(axisWidth), px(p.width))
	p.text("the world " + oneLine(l.Text))
	p.f("</text></g>\n")
}

// notes says beside the picture what was broken, and points at where.
func (p *pen) notes() {
	p.f("<g class=\"notes\">")
	free := 0.0
	for _, f := range p.r.Failures {
		row := p.rowOf(f.Line)
		y, x := p.rows[row].y, p.width-6
		lane := -1
		if f.Line > 0 {
			for _, l := range p.lines {
				if at, known := p.lane[l.Lane]; known && l.N == f.Line {
					x, lane = p.lanes[at].x, at
				}
			}
		}
		names := wrap("✗ "+f.Invariant, (noteWidth-2*noteEdge)/noteNameWider, 2)
		lines := wrap(f.Text, noteWidth-2*noteEdge, noteLinesMax)
		h := 16 + 15*float64(len(names)) + 14*float64(len(lines))
		top := max(free, y-18)
		free = top + h + 10
		p.f("<g class=\"note\"")
		p.data("r", row, "l", lane, "h", px(h), "n", f.Line)
		p.f(">")
		p.titled(f.String())
		// The way there goes between two rows, over no label.
		p.f("<path class=\"lead\" d=\"M%s %sH%sL%s %s\"/>", px(x), px(y-rowPitch/2), px(p.width+6), px(p.width+noteGap), px(top+16))
		if lane >= 0 {
			p.f("<circle class=\"spot\" cx=\"%s\" cy=\"%s\" r=\"9\"/>", px(x), px(y))
		}
		p.f("<g class=\"box\" transform=\"translate(%s,%s)\"><rect width=\"%s\" height=\"%s\" rx=\"3\"/>", px(p.width+noteGap), px(top), px(noteWidth), px(h))
		for n, line := range names {
			p.noteLine("class=\"name\" ", 20+15*n, line)
		}
		for n, line := range lines {
			p.noteLine("", 21+15*len(names)+14*n, line)
		}
		p.f("</g></g>\n")
	}
	p.f("</g>\n")
	p.end = max(p.height, free)
}

func (p *pen) noteLine(class string, y int, text string) {
	p.f("<text %sx=\"%s\" y=\"%d\">", class, px(noteEdge), y)
	p.text(text)
	p.f("</text>")
}

// full is the whole width, with what is broken.
func (s *scene) full() float64 {
	if len(s.r.Failures) == 0 {
		return s.width + 10
	}
	return s.width + noteGap + noteWidth + 10
}

// names writes the lanes' names, centred over each.
func (p *pen) names(y float64, again bool) {
	p.f("<g class=\"heads\">")
	for i, l := range p.lanes {
		p.f("<g class=\"head\" transform=\"translate(%s,%s)\"", px(l.x), px(y))
		p.data("l", i)
		p.f("><text class=\"name\">")
		p.text(clip(l.name, (l.left+l.right)/headNameWider))
		p.f("</text>")
		if l.what != "" && !again {
			p.f("<text class=\"what\" y=\"13\">")
			p.text(clip(l.what, (l.left+l.right)/headWhatWider))
			p.f("</text>")
		}
		p.f("</g>")
	}
	p.f("</g>\n")
}
