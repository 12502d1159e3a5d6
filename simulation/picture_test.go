package simulation_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// sketch is a report by hand, with one of everything that a picture can show.
func sketch() *simulation.Report {
	r := &simulation.Report{Plan: &simulation.Plan{Seed: 4711, Hosts: 2, Sessions: []simulation.SessionPlan{{Name: "s1"}},
		Parties: []simulation.PartyPlan{{Kind: simulation.AgentParty, Name: "bot", Session: "s1", Root: "r1"}, {Kind: simulation.PersonParty, Name: "ann", Session: "s1"}}},
		Took: 9 * time.Second, Sum: "00c0ffee"}
	say := func(at int64, lane, kind, to string, ref int, text string) {
		r.Lines = append(r.Lines, simulation.Line{N: len(r.Lines) + 1, At: at, Lane: lane, Kind: kind, To: to, Ref: ref, Text: text})
	}
	const ask = "Ask session=s1 root=r1 call_id=q1"
	say(0, "h1", simulation.KindFault, "", 0, "boots, process 1")
	say(0, "h2", simulation.KindFault, "", 0, "boots, process 1")
	say(3, "bot", simulation.KindDo, "", 0, ask)
	say(3, "bot", simulation.KindSend, "h1", 1, ask)
	say(9, "h1", simulation.KindArrive, "bot", 1, "")
	say(9, "h1", simulation.KindDeliver, "", 0, "s/s1 door/h1/i1#1 "+ask)
	say(12, "disk", simulation.KindDisk, "", 0, "append s1 @0+6 epoch 1 done")
	say(12, "h1", simulation.KindSend, "bot", 2, "AskResponse session=s1 call_id=q1 waiting={deadline_ms=1700000003012 remaining_ms=3000}")
	say(20, "bot", simulation.KindArrive, "h1", 2, "")
	say(150, "ann", simulation.KindHold, "", 0, "opens q1")
	say(150, "ann", simulation.KindSend, "h2", 3, "hold q1")
	say(160, "h2", simulation.KindArrive, "ann", 3, "")
	say(160, "h2", simulation.KindSend, "h1", 4, "s/s1")
	say(160, "h2", simulation.KindDrop, "h1", 4, "")
	say(170, "h2", simulation.KindSend, "h1", 5, "s/s1")
	say(175, "h1", simulation.KindArrive, "h2", 5, "")
	say(190, "h1", simulation.KindArrive, "h2", 5, "")
	say(200, "h2", simulation.KindSend, "ann", 6, "frame q1")
	say(210, "ann", simulation.KindArrive, "h2", 6, "")
	say(210, "ann", simulation.KindHold, "", 0, "holds q1")
	say(300, "h1", simulation.KindFault, "", 0, "is cut off from h2")
	say(320, "h1", simulation.KindFault, "", 0, "its wall clock jumps by 1m0s")
	say(400, "h2", simulation.KindFault, "", 0, "stands still")
	say(900, "h2", simulation.KindFault, "", 0, "goes on")
	say(950, "disk", simulation.KindDisk, "", 0, "append s1 @6+1 epoch 1 refused")
	say(960, "disk", simulation.KindDisk, "", 0, "append s1 @6+1 epoch 1 done, and an error told")
	say(970, "disk", simulation.KindDisk, "", 0, "append s1 @6+1 epoch 1 FENCED")
	say(1000, "h1", simulation.KindFault, "", 0, "hears h2 again")
	say(1200, "h2", simulation.KindFault, "", 0, "is given session s1")
	say(1300, "h1", simulation.KindFault, "", 0, "crashes")
	say(1400, "bot", simulation.KindSend, "h1", 7, ask)
	say(1410, "h1", simulation.KindArrive, "bot", 7, "")
	say(5000, "h1", simulation.KindFault, "", 0, "boots, process 2")
	say(5100, "ann", simulation.KindDo, "", 0, "Submit session=s1 call_id=q1 submission_id=x")
	say(5100, "ann", simulation.KindSend, "h2", 8, "Submit session=s1 call_id=q1 submission_id=x")
	say(5110, "h2", simulation.KindArrive, "ann", 8, "")
	say(5120, "h2", simulation.KindSend, "ann", 9, "Refusal code=SETTLED text=the call \"q1\" has its result")
	say(5130, "ann", simulation.KindArrive, "h2", 9, "")
	say(5130, "ann", simulation.KindTold, "", 0, "Submit session=s1 call_id=q1 submission_id=x: Refusal code=SETTLED text=the call \"q1\" has its result")
	say(5140, "ann", simulation.KindHold, "", 0, "lets go q1: settled")
	say(6000, "world", simulation.KindMark, "", 0, "heals")
	say(6010, "h2", simulation.KindSend, "bot", 10, "AskResponse session=s1 call_id=q1 pending={}")
	say(6020, "bot", simulation.KindArrive, "h2", 10, "")
	say(6020, "bot", simulation.KindTold, "", 0, ask+": AskResponse session=s1 call_id=q1 pending={}")
	say(6030, "bot", simulation.KindMark, "", 0, "goes on alone")
	say(9000, "bot", simulation.KindSend, "h2", 11, "leaves "+ask)
	r.Failures = []simulation.Failure{{Invariant: "OneOutcome", Text: "call q1 was refused as settled, and pending afterwards", Line: 39},
		{Invariant: "EverythingEnds", Text: "a message is still under way"}}
	return r
}

func draw(t *testing.T, r *simulation.Report, o simulation.PictureOptions) string {
	t.Helper()
	b, err := simulation.Picture(r, o)
	require.NoError(t, err)
	return string(b)
}

var formats = []simulation.PictureFormat{simulation.PictureHTML, simulation.PictureSVG}

func TestPicturesAreGolden(t *testing.T) {
	for _, f := range formats {
		name := filepath.Join("testdata", "pictures", "sketch."+string(f))
		got := draw(t, sketch(), simulation.PictureOptions{Format: f, Title: "A sketch"})
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(got), 0o600))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		require.True(t, string(want) == got, "%s differs; if it should, write it with: go test ./simulation -run Pictures -update", name)
	}
}

// Each thing of the sketch is drawn in the way that is its own.
func TestPictureShowsEverythingThatHappened(t *testing.T) {
	svg := draw(t, sketch(), simulation.PictureOptions{Format: simulation.PictureSVG})
	for what, part := range map[string]string{
		"a lost message":            `class="m k-send peer lost"`,
		"its second arrival":        `class="m k-send peer again"`,
		"an arrival at nobody":      `class="m k-send ask unheard"`,
		"one that never arrives":    `class="m k-send ask flying"`,
		"a host that is down":       `class="life gone"`,
		"one that stands still":     `class="s pause k-fault"`,
		"a partition":               `class="s cut k-fault"`,
		"a claim that is asked for": `class="s asked k-hold"`,
		"a claim":                   `class="s claim k-hold"`,
		"a call that waits":         `class="s wait k-told"`,
		"its deadline":              `3.012 s: the foreground of q1 ends`,
		"a refusal":                 `class="e k-told broken bad"`,
		"the healing":               `the world heals`,
		"an idle stretch":           `>+3.590 s<`,
		"where it broke":            `class="spot"`,
		"what broke at the end":     `✗ EverythingEnds`,
		"a clock jump":              `clock jumps 1m0s`,
		"an own word":               `goes on alone`,
	} {
		require.True(t, strings.Contains(svg, part), what)
	}
	require.Equal(t, 3, strings.Count(svg, `class="e k-disk bad" transform`), "fates of the disk that are not plain")
	require.False(t, strings.Contains(svg, `class="e k-deliver`))
	require.True(t, strings.Contains(draw(t, sketch(), simulation.PictureOptions{Format: simulation.PictureSVG, Actors: true}), `class="e k-deliver`))
}

// The same report gives the same bytes, and they are well-formed.
func TestPicturesOfSeeds(t *testing.T) {
	for _, profile := range simulation.Profiles {
		for seed := range uint64(8) {
			r := simulation.Run(simulation.Draw(seed, profile), simulation.Options{Keep: true})
			for _, f := range formats {
				o := simulation.PictureOptions{Format: f}
				first := draw(t, r, o)
				require.True(t, first == draw(t, r, o), "%s %d", profile.Name, seed)
				if f == simulation.PictureSVG {
					wellFormed(t, first)
					labelsStandApart(t, first)
				}
			}
		}
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

var labelled = regexp.MustCompile(`<g class="e k-[^"]*" transform="translate\(([\d.]+),([\d.]+)\)"><title>[^<]*</title>(?:<(?:circle|path|rect)[^>]*/>)+<text x="(-?9)"( class="l")? y="3.7">([^<]*)</text>`)

// labelsStandApart: no two labels share a place, by letters of a usual width.
func labelsStandApart(t *testing.T, svg string) {
	t.Helper()
	type box struct{ left, right, y float64 }
	var boxes []box
	for _, m := range labelled.FindAllStringSubmatch(svg, -1) {
		x, _ := strconv.ParseFloat(m[1], 64) // as the pattern has it
		y, _ := strconv.ParseFloat(m[2], 64)
		w := 6 * float64(len([]rune(m[5])))
		b := box{x + 9, x + 9 + w, y}
		if m[4] != "" {
			b = box{x - 9 - w, x - 9, y}
		}
		for _, other := range boxes {
			require.False(t, b.left < other.right && other.left < b.right && b.y-other.y < 12 && other.y-b.y < 12, "%q stands over another", m[5])
		}
		boxes = append(boxes, b)
	}
	require.NotEmpty(t, boxes)
}

// Whatever a run says, it stays text: nothing of it becomes markup, a script, or
// a place of the template.
func TestPicturesEscapeWhatARunSays(t *testing.T) {
	const evil = `</title></script><script>alert(1)</script><img src=x onerror=alert(2)> {{script}} "'&` + "\x00\x1b[31m\xff\n]]>"
	r := sketch()
	for i := range r.Lines {
		l := &r.Lines[i]
		l.Text += " x=" + evil
		if l.Lane == "ann" {
			l.Lane = evil
		}
		if l.To == "ann" {
			l.To = evil
		}
	}
	r.Lines = append(r.Lines, simulation.Line{N: len(r.Lines) + 1, At: 9000, Lane: "h1", Kind: evil, To: evil, Text: evil})
	r.Plan.Parties[0].Root = evil
	r.Failures[0].Invariant, r.Failures[0].Text, r.Sum = evil, strings.Repeat(evil, 20)+strings.Repeat("w", 500), evil
	for _, f := range formats {
		got := draw(t, r, simulation.PictureOptions{Format: f, Title: evil, Actors: true})
		require.Equal(t, map[simulation.PictureFormat]int{simulation.PictureHTML: 1}[f], strings.Count(got, "<script"))
		require.False(t, strings.Contains(got, "<img"))
		require.False(t, strings.Contains(got, "\x00"))
		require.False(t, strings.Contains(got, "\x1b"))
		require.True(t, bytes.Equal([]byte(got), bytes.ToValidUTF8([]byte(got), nil)))
		if f == simulation.PictureSVG {
			wellFormed(t, got)
		}
	}
}

// A page takes nothing from anywhere, and runs its own script alone.
func TestPicturesAskForNothing(t *testing.T) {
	page := draw(t, sketch(), simulation.PictureOptions{})
	for _, with := range []string{" src=", "url(http", "@import", "fetch(", "<link", "onclick"} {
		require.False(t, strings.Contains(page, with), with)
	}
	for _, part := range []string{"script", "style"} {
		_, rest, _ := strings.Cut(page, "<"+part+">")
		source, _, found := strings.Cut(rest, "</"+part+">")
		require.True(t, found)
		sum := sha256.Sum256([]byte(source))
		require.True(t, strings.Contains(page, fmt.Sprintf("%s-src 'sha256-%s'", part, base64.StdEncoding.EncodeToString(sum[:]))), part)
	}
	addresses := regexp.MustCompile(`https?://[^"'\s]*`).FindAllString(page, -1)
	require.Equal(t, []string{"http://www.w3.org/2000/svg"}, addresses, "but the name of SVG")
	require.Empty(t, regexp.MustCompile(`\{\{\w+\}\}`).FindAllString(page, -1))
}

// What has nothing to draw, or no such format, says so.
func TestPictureErrors(t *testing.T) {
	_, err := simulation.Picture(&simulation.Report{}, simulation.PictureOptions{})
	require.EqualError(t, err, "picture: the report has no lines: run its plan with Options.Keep")
	_, err = simulation.Picture(sketch(), simulation.PictureOptions{Format: "png"})
	require.EqualError(t, err, `picture: there is no format "png"; there are html and svg`)
}

// A report without a plan, of one line, or with a line that is not there.
func TestPicturesOfLittle(t *testing.T) {
	for _, f := range formats {
		draw(t, &simulation.Report{Lines: []simulation.Line{{N: 1, Lane: "h1", Kind: simulation.KindFault, Text: "crashes"}},
			Failures: []simulation.Failure{{Invariant: "A", Text: "b", Line: 77}}}, simulation.PictureOptions{Format: f})
		draw(t, &simulation.Report{Lines: []simulation.Line{{N: 1, Lane: "world", Kind: simulation.KindMark}}}, simulation.PictureOptions{Format: f})
		draw(t, &simulation.Report{Lines: []simulation.Line{{N: 1, Lane: "h1", Kind: simulation.KindDeliver}}}, simulation.PictureOptions{Format: f, Actors: f == simulation.PictureSVG})
	}
}

// long is a report of about so many lines.
func long(lines int) *simulation.Report {
	r, one := sketch(), sketch().Lines
	r.Lines = nil
	for n := 0; len(r.Lines) < lines; n++ {
		for _, l := range one {
			l.N, l.At = len(r.Lines)+1, l.At+int64(n)*10_000
			if l.Ref > 0 {
				l.Ref += n * 100
			}
			r.Lines = append(r.Lines, l)
		}
	}
	return r
}

func BenchmarkPicture(b *testing.B) {
	r := long(5000)
	for _, f := range formats {
		b.Run(string(f), func(b *testing.B) {
			for b.Loop() {
				if _, err := simulation.Picture(r, simulation.PictureOptions{Format: f}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What was broken fits into its box: no line of a note is wider than the box in
// the widest font, and none is below its end.
func TestNotesFitTheirBoxes(t *testing.T) {
	r := sketch()
	for _, text := range []string{
		strings.Repeat("WMQ@% ", 60), strings.Repeat("0123456789", 30), strings.Repeat("SETTLED NOT_ANSWERABLE ", 20), strings.Repeat("{a=b} <#> ", 40), "short",
	} {
		r.Failures = append(r.Failures, simulation.Failure{Invariant: "a long name of an invariant that is broken, and longer", Text: text, Line: 3})
	}
	svg := draw(t, r, simulation.PictureOptions{Format: simulation.PictureSVG})
	boxes := regexp.MustCompile(`<g class="box"[^>]*><rect width="(\d+)" height="(\d+)" rx="3"/>(.*?)</g>`).FindAllStringSubmatch(svg, -1)
	require.Len(t, boxes, len(r.Failures))
	for _, box := range boxes {
		width, height := number(t, box[1]), number(t, box[2])
		for _, line := range regexp.MustCompile(`<text (class="name" )?x="(\d+)" y="(\d+)">(.*?)</text>`).FindAllStringSubmatch(box[3], -1) {
			wide := dejaVuWidth(line[4], 11)
			if line[1] != "" {
				wide = dejaVuWidth(line[4], 12) * 1.12 // bold
			}
			require.LessOrEqual(t, number(t, line[2])+wide, width-4, line[4])
			require.LessOrEqual(t, number(t, line[3])+4, height, line[4])
		}
	}
}

func number(t *testing.T, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

// dejaVuWidth is how wide text is in DejaVu Sans, by the font's own advances of
// the letters that are used here; of others it is that of an n.
func dejaVuWidth(text string, size float64) (w float64) {
	advances := map[rune]float64{'W': 2025, 'M': 1767, 'Q': 1612, '@': 2048, '%': 1946, 'S': 1300, 'E': 1294, 'T': 1251, 'L': 1141, 'D': 1577,
		'N': 1532, 'O': 1612, '_': 1024, 'A': 1401, 'R': 1423, 'B': 1405, '{': 1303, '}': 1303, '=': 1716, '<': 1716, '>': 1716, '#': 1716, ' ': 651,
		'…': 2048, '✗': 1717, 'i': 569, 'l': 569, 'm': 1995, 't': 803, 'r': 842, ',': 651}
	for _, r := range html.UnescapeString(text) {
		if a := advances[r]; a > 0 {
			w += a * size / 2048
		} else {
			w += 1303 * size / 2048
		}
	}
	return w
}
