package simulation

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the style, the script and the page are files of their own
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// The parts of a page. The style of the diagram serves both formats.
var (
	//go:embed picture/diagram.css
	diagramCSS string
	//go:embed picture/page.css
	pageCSS string
	//go:embed picture/page.js
	pageJS string
	//go:embed picture/page.html
	pageHTML string
)

// paperColours are the colours of the style's variables where there are none.
var paperColours = strings.NewReplacer("var(--ground)", "#ffffff", "var(--ink)", "#1d1c1a", "var(--soft)", "#66625a", "var(--line)", "#e6e2d9",
	"var(--lane)", "#8d887e", "var(--ask)", "#1f5f4f", "var(--answer)", "#3b5b92", "var(--peer)", "#7a4a86", "var(--bad)", "#a3261b",
	"var(--claim)", "#c9a227", "var(--note)", "#fdf3f1")

const pictureDefs = `<defs>
<marker id="end-ask" class="end ask" viewBox="0 0 10 8" refX="9.5" refY="4" markerWidth="10" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .5L10 4L0 7.5z"/></marker>
<marker id="end-answer" class="end answer" viewBox="0 0 10 8" refX="9.5" refY="4" markerWidth="10" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="x" d="M1 .5L9.5 4L1 7.5"/></marker>
<marker id="end-peer" class="end peer" viewBox="0 0 10 8" refX="9.5" refY="4" markerWidth="10" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .5L10 4L0 7.5L3 4z"/></marker>
<marker id="end-lost" class="end lost" viewBox="-6 -6 12 12" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse"><path class="x" d="M-4 -4L4 4M4 -4L-4 4"/></marker>
<marker id="end-unheard" class="end lost" viewBox="-6 -6 12 12" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse"><path class="x" d="M-4 -4L4 4M4 -4L-4 4"/></marker>
<marker id="end-flying" class="end flying" viewBox="-5 -5 10 10" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse"><circle class="o" r="3"/></marker>
<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="ground" width="5" height="5"/><line class="hatch" x1="0" x2="0" y1="0" y2="5"/></pattern>
</defs>
`

// pictureKey is what the shapes mean.
var pictureKey = []struct{ drawing, text string }{
	{`<g class="e k-do">` + shapeDot + `</g>`, "does"},
	{`<g class="e k-told">` + shapeRing + `</g>`, "is told"},
	{`<g class="e k-told bad">` + shapeDiamond + `</g>`, "is refused"},
	{`<g class="m ask"><line class="w" x1="-12" x2="12" marker-end="url(#end-ask)"/></g>`, "to a host"},
	{`<g class="m answer"><line class="w" x1="-12" x2="12" marker-end="url(#end-answer)"/></g>`, "from a host"},
	{`<g class="m peer"><line class="w" x1="-12" x2="12" marker-end="url(#end-peer)"/></g>`, "host to host"},
	{`<g class="m ask again"><line class="w" x1="-12" x2="12" marker-end="url(#end-ask)"/></g>`, "arrives twice"},
	{`<g class="m ask lost"><line class="w" x1="-12" x2="6" marker-end="url(#end-lost)"/></g>`, "lost, or nobody there"},
	{`<g class="s claim"><rect x="-3" y="-7" width="6" height="14"/></g>`, "holds a claim"},
	{`<g class="s asked"><rect x="-3" y="-7" width="6" height="14"/></g>`, "has asked for it"},
	{`<g class="s wait"><line y1="-7" y2="7"/></g>`, "a call waits"},
	{`<g class="due"><path d="M-4 -5h8l-8 10h8z"/></g>`, "until its deadline"},
	{`<g class="e k-disk">` + shapeDot + `</g>`, "done on disk"},
	{`<g class="e k-disk bad">` + shapeHalf + `</g>`, "done, error told"},
	{`<g class="e k-disk bad">` + shapeCross + `</g>`, "failed"},
	{`<g class="e k-disk bad">` + shapeSquare + `</g>`, "not accepted"},
	{`<g class="e k-fault">` + shapeBolt + `</g>`, "crash"},
	{`<line class="life gone" y1="-8" y2="8"/>`, "down"},
	{`<g class="e k-fault">` + shapeUp + `</g>`, "back again"},
	{`<g class="s pause"><rect x="-6" y="-7" width="12" height="14"/></g>`, "stands still"},
	{`<g class="s cut"><rect class="bar" x="-3.5" y="-7" width="7" height="14"/></g>`, "partition"},
	{`<g class="e k-fault">` + shapeClock + `</g>`, "clock jump"},
}

// legend writes what the shapes mean in rows of a width, and how high they are.
func (p *pen) legend(width float64) (height float64) {
	x, y := 12.0, 12.0
	p.f("<g class=\"legend\">")
	for _, item := range pictureKey {
		w := 30 + textWidth(item.text) + 14
		if x+w > width && x > 12 {
			x, y = 12, y+22
		}
		p.f("<g transform=\"translate(%s,%s)\">%s<text x=\"18\" y=\"4\">%s</text></g>", px(x+10), px(y), item.drawing, item.text)
		x += w
	}
	p.f("</g>\n")
	return y + 12
}

// facts are what a reader asks first.
func (s *scene) facts() string {
	facts := []string{count(len(s.r.Lines), "line"), axisTime(s.r.Took.Milliseconds()) + " of the world's time"}
	if p := s.r.Plan; p != nil {
		facts = append(facts, count(p.Hosts, "host"), count(len(p.Sessions), "session"))
	}
	if s.r.Sum != "" {
		facts = append(facts, "trace "+s.r.Sum)
	}
	return strings.Join(facts, " · ")
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return strconv.Itoa(n) + " " + of + "s"
}

func (s *scene) svg() []byte {
	p := &pen{scene: s}
	p.diagram()
	for _, y := range p.heads {
		p.names(y+12, true)
	}
	body := p.Bytes()
	width := max(p.full(), 640)
	q := &pen{scene: s}
	q.f("<g transform=\"translate(0,62)\">")
	top := 62 + q.legend(width-10) + 30
	q.f("</g>\n<g transform=\"translate(0,%s)\">", px(top))
	q.names(0, false)
	q.f("</g>\n<g transform=\"translate(0,%s)\">\n", px(top+22))
	_, _ = q.Write(body) // a buffer never fails
	q.f("</g>\n</svg>\n")
	height := top + 22 + p.end + 16
	out := &pen{scene: s}
	out.f("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %[1]s %[2]s\" role=\"img\">\n", px(width), px(height))
	out.titled(oneLine(s.title) + ": " + s.verdict())
	out.f("<style>%s</style>\n%s<rect class=\"ground\" width=\"%s\" height=\"%s\"/>\n<text class=\"title\" x=\"12\" y=\"26\">", paperColours.Replace(diagramCSS), pictureDefs, px(width), px(height))
	out.text(clip(s.title+" — "+s.verdict(), (width-24)/titleWider))
	out.f("</text>\n<text class=\"facts\" x=\"12\" y=\"45\">")
	out.text(clip(s.facts(), width-24))
	out.f("</text>\n")
	_, _ = out.Write(q.Bytes())
	return out.Bytes()
}

// html fills the page in one pass, so that nothing of a run is taken for a place
// to fill.
func (s *scene) html() []byte {
	p := &pen{scene: s}
	p.diagram()
	head := &pen{scene: s}
	head.names(15, false)
	key := &pen{scene: s}
	keyHeight := key.legend(1200)
	style := "\n" + pageCSS + diagramCSS
	return []byte(strings.NewReplacer(
		"{{style}}", style, "{{styleHash}}", sourceHash(style), "{{script}}", "\n"+pageJS, "{{scriptHash}}", sourceHash("\n"+pageJS),
		"{{title}}", escapedXML(oneLine(s.title)), "{{verdict}}", escapedXML(s.verdict()), "{{mood}}", map[bool]string{true: "good", false: "bad"}[len(s.r.Failures) == 0],
		"{{facts}}", escapedXML(s.facts()), "{{defs}}", pictureDefs, "{{legend}}", key.String(), "{{legendHeight}}", px(keyHeight),
		"{{heads}}", head.String(), "{{diagram}}", p.String(), "{{width}}", px(p.full()), "{{height}}", px(p.end+24),
		"{{data}}", s.browserData(), "{{hide}}", map[bool]string{true: "", false: " no-deliver"}[s.actors],
		"{{actors}}", map[bool]string{true: " checked", false: ""}[s.actors], "{{lanes}}", s.laneBoxes(),
	).Replace(pageHTML))
}

// browserData is what the script lays the picture out with again: the time of
// each row, and each lane's room.
func (s *scene) browserData() string {
	var at, room []string
	for _, r := range s.rows {
		at = append(at, strconv.FormatInt(r.at, 10))
	}
	for _, l := range s.lanes {
		room = append(room, px(l.left)+","+px(l.right))
	}
	return fmt.Sprintf(`data-at="%s" data-room="%s" data-note="%s"`, strings.Join(at, " "), strings.Join(room, " "), px(s.full()-s.width))
}

func (s *scene) laneBoxes() string {
	var b strings.Builder
	for i, l := range s.lanes {
		fmt.Fprintf(&b, "<label><input type=\"checkbox\" data-lane=\"%d\" checked>%s</label>\n", i, escapedXML(oneLine(l.name)))
	}
	return b.String()
}

func escapedXML(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer never fails
	return b.String()
}

// sourceHash names a style or script in a page's policy: no other runs in it.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
