package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	v0Header = `{"type":"session","version":0,"id":"s1","createdAt":1000,"cwd":"/w","delegationDepth":0}`
	v3Header = `{"type":"session","version":3,"id":"s1","createdAt":1000,"isSeeded":false,"delegationDepth":0}`
)

func file(t testing.TB, header string, events ...Event) []byte {
	t.Helper()
	h, err := DecodeHeader([]byte(header))
	noError(t, err)
	var out bytes.Buffer
	noError(t, Export(&out, h, events))
	return out.Bytes()
}

func numbered(events ...Event) []Event {
	for i := range events {
		events[i] = events[i].At(int64(i), int64(1000+i))
	}
	return events
}

// Two turns, so that there is an end both before and behind most lines.
func twoTurns() []Event {
	start := func(n int) Event { return NewEvent(TypeTurnStart, map[string]int{"turn": n}) }
	end := func(n int) Event {
		return NewEvent(TypeTurnEnd, json.RawMessage(fmt.Sprintf(`{"turn":%d,"reason":{"kind":"completed"}}`, n)))
	}
	return numbered(start(1), NewEvent("session/title", map[string]string{"title": "t"}), end(1), start(2), NewEvent("todo/write", map[string]any{"todos": []int{}}), end(2))
}

// L-002, L-031: each field of the header wrong in turn is refused.
func TestL031Header(t *testing.T) {
	h, err := DecodeHeader([]byte(`{"type":"session","version":0,"id":"s","createdAt":1.0,"cwd":"/w","parentSession":"p","seedLength":3,"origin":"subagent","delegationDepth":1,"agentPreset":"x","new":1}`))
	noError(t, err)
	equal(t, int64(3), *h.SeedLength)
	equal(t, []any{0, "s", int64(1), "/w", "p", "subagent", int64(1), "x"}, []any{h.Version, h.ID, h.CreatedAt, h.CWD, h.ParentSession, h.Origin, h.DelegationDepth, h.AgentPreset})

	for name, line := range map[string]string{
		"not JSON":                       `{nope`,
		"a scalar":                       `5`,
		"byte-order mark":                "\uFEFF" + v0Header,
		"an event":                       `{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}`,
		"no tag":                         strings.Replace(v0Header, `"type":"session",`, ``, 1),
		"version as text":                strings.Replace(v0Header, `"version":0`, `"version":"0"`, 1),
		"no version":                     strings.Replace(v0Header, `"version":0,`, ``, 1),
		"no id":                          strings.Replace(v0Header, `"id":"s1",`, ``, 1),
		"id as number":                   strings.Replace(v0Header, `"s1"`, `7`, 1),
		"negative createdAt":             strings.Replace(v0Header, `1000`, `-1`, 1),
		"fraction in createdAt":          strings.Replace(v0Header, `1000`, `1.5`, 1),
		"no delegationDepth":             strings.Replace(v0Header, `,"delegationDepth":0`, ``, 1),
		"negative delegationDepth":       strings.Replace(v0Header, `"delegationDepth":0`, `"delegationDepth":-1`, 1),
		"unknown origin":                 strings.Replace(v0Header, `}`, `,"origin":"team"}`, 1),
		"agentPreset as number":          strings.Replace(v0Header, `}`, `,"agentPreset":1}`, 1),
		"retired sandboxMode":            strings.Replace(v0Header, `}`, `,"sandboxMode":"x"}`, 1),
		"retired approvalPolicy":         strings.Replace(v0Header, `}`, `,"approvalPolicy":"x"}`, 1),
		"v3 without isSeeded":            strings.Replace(v3Header, `"isSeeded":false,`, ``, 1),
		"v3 with isSeeded as text":       strings.Replace(v3Header, `"isSeeded":false`, `"isSeeded":"no"`, 1),
		"v3 with an unknown field":       strings.Replace(v3Header, `}`, `,"x":1}`, 1),
		"v3 with the seedLength of v0":   strings.Replace(v3Header, `}`, `,"seedLength":1}`, 1),
		"negative seedLength":            strings.Replace(v0Header, `}`, `,"seedLength":-1}`, 1),
		"two lines in one":               strings.Replace(v0Header, `,`, ",\n", 1),
		"unpaired surrogate as raw byte": strings.Replace(v0Header, `s1`, "\xed\xa0\x80", 1),
	} {
		t.Run("L-031 corrupt: "+name, func(t *testing.T) {
			_, err := DecodeHeader([]byte(line))
			var corrupt *CorruptError
			isTrue(t, errors.As(err, &corrupt), err)
			equal(t, 1, corrupt.Line)
		})
	}
}

// L-002: a header encodes its fields, absent ones stay absent; one that was read keeps its bytes.
func TestL002HeaderLine(t *testing.T) {
	three := int64(3)
	equal(t, v0Header, string(Header{Version: V0, ID: "s1", CreatedAt: 1000, CWD: "/w"}.Line()))
	equal(t, v3Header, string(Header{Version: V3, ID: "s1", CreatedAt: 1000}.Line()))
	for _, h := range []Header{
		{Version: V0, ID: "a\n\"b", CreatedAt: 1, ParentSession: "p", SeedLength: &three, Origin: "subagent", DelegationDepth: 2, AgentPreset: "x"},
		{Version: V3, ID: "s", IsSeeded: true, ParentSession: "p", CWD: "/ü"},
	} {
		back, err := DecodeHeader(h.Line())
		noError(t, err)
		equal(t, string(h.Line()), string(back.Line()))
		back.line = nil
		equal(t, h, back)
	}
	odd := ` {"version":0, "type":"session","id":"\u0073","createdAt":1e3,"delegationDepth":0,"kept":"out"}`
	h, err := DecodeHeader([]byte(odd))
	noError(t, err)
	equal(t, odd, string(h.Line()))
}

// L-032: another version is unsupported, judged before everything else, and the text says in which direction.
func TestL032VersionFirst(t *testing.T) {
	for line, word := range map[string]string{
		`{"type":"session","version":9,"id":"s"}`:        "newer",
		`{"version":4,"id":7,"weird":true}`:              "newer",
		`{"type":"session","version":-1,"id":"s"}`:       "older",
		`{"type":"session","version":2,"id":"s"}`:        "between",
		`{"type":"session","version":0.5,"id":"s"}`:      "none of",
		`{"type":"session","version":1e99,"id":"s"}`:     "none of",
		`{"type":"session","version":2,"sandboxMode":1}`: "between",
	} {
		_, err := Scan([]byte(line + "\ngarbage\n"))
		var unsupported *UnsupportedError
		isTrue(t, errors.As(err, &unsupported), line)
		isTrue(t, strings.Contains(err.Error(), word), err)
	}
}

// L-003, L-030, L-033: the header is no event; lines end with a line feed; what follows the last one is never read.
func TestL033TornTail(t *testing.T) {
	good := file(t, v3Header, twoTurns()[:2]...)
	for name, c := range map[string]struct {
		tail string
		torn bool
	}{
		"nothing":                        {"", false},
		"half a record":                  {`{"type":"turn/e`, true},
		"complete JSON without its feed": {`{"type":"turn/end","seq":2,"time":6,"data":{}}`, true},
		"half a character":               {"{\"t\":\"\xc3", true},
		"NUL bytes":                      {strings.Repeat("\x00", 4096), true},
		"spaces":                         {"   ", true},
		// Fault G9: the tail means the last line that is not empty.
		"G9 torn and a line feed":   {"{\"type\":\"tu\n", true},
		"G9 torn and an empty line": {"{\"type\":\"tu\n\n", true},
		"G9 torn and spaces":        {"{\"type\":\"tu\n  \n", true},
		"G9 an empty line":          {"\n", true},
		"G9 NUL bytes and a feed":   {"\x00\x00\n", true},
	} {
		t.Run("L-033 "+name, func(t *testing.T) {
			log, err := Scan([]byte(string(good) + c.tail))
			noError(t, err)
			equal(t, 2, len(log.Events))
			equal(t, int64(len(good)), log.CommittedBytes)
			equal(t, c.torn, log.Torn)
			equal(t, int64(len(c.tail)), log.TornBytes)
			equal(t, c.torn, log.TornProblem != "")
			if c.torn {
				equal(t, 4, log.TornLine)
			}
		})
	}
	t.Run("L-030 a carriage return belongs to its line", func(t *testing.T) {
		text := strings.ReplaceAll(string(good), "\n", "\r\n")
		log, err := Scan([]byte(text))
		noError(t, err)
		equal(t, 2, len(log.Events))
		var out bytes.Buffer
		noError(t, Export(&out, log.Header, log.Events))
		equal(t, text, out.String())
	})
	t.Run("L-031 no complete first line is corrupt", func(t *testing.T) {
		for _, text := range []string{"", v3Header, "\n", "\n" + string(good)} {
			_, err := Scan([]byte(text))
			var corrupt *CorruptError
			isTrue(t, errors.As(err, &corrupt), text)
		}
	})
}

// L-034: damage behind which no turn ended is a torn tail; a later turn end makes it corrupt.
func TestL034DamageInside(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(string(file(t, v3Header, twoTurns()...)), "\n"), "\n")
	join := func(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	t.Run("L-034 damage before a turn end is corrupt, the first problem is named", func(t *testing.T) {
		_, err := Scan(join(lines[0], lines[1], "{a", "{b", lines[3]))
		var corrupt *CorruptError
		isTrue(t, errors.As(err, &corrupt), err)
		equal(t, 3, corrupt.Line)
	})
	t.Run("L-034 a gap at the turn end itself is corrupt", func(t *testing.T) {
		_, err := Scan(join(lines[0], lines[1], lines[3]))
		var corrupt *CorruptError
		isTrue(t, errors.As(err, &corrupt), err)
		equal(t, int64(2), corrupt.Seq)
	})
	t.Run("L-034 a gap without a turn end is a torn tail", func(t *testing.T) {
		log, err := Scan(join(lines[0], lines[1], lines[4], lines[5]))
		noError(t, err)
		equal(t, []any{1, true, 3}, []any{len(log.Events), log.Torn, log.TornLine})
	})
	t.Run("L-034 an empty line is damage", func(t *testing.T) {
		_, err := Scan(join(lines[0], lines[1], "", lines[2], lines[3]))
		isTrue(t, err != nil)
	})
	t.Run("L-010 a whole record in its place with a wrong envelope fails at once", func(t *testing.T) {
		_, err := Scan(join(lines[0], `{"type":"turn/start","seq":0,"time":5,"data":{},"extra":1}`))
		var corrupt *CorruptError
		isTrue(t, errors.As(err, &corrupt), err)
		equal(t, 2, corrupt.Line)
	})
	t.Run("L-034 a record without seq is damage", func(t *testing.T) {
		log, err := Scan(join(lines[0], lines[1], `{"type":"x","time":5,"data":{}}`))
		noError(t, err)
		isTrue(t, log.Torn)
	})
}

// Fault G1: break each line in turn; either the scan fails, or it says how much it left behind.
func TestBreakEachLineInTurn(t *testing.T) {
	good := file(t, v3Header, twoTurns()...)
	lines := bytes.SplitAfter(bytes.TrimSuffix(good, []byte("\n")), []byte("\n"))
	for i := range lines {
		for name, damage := range map[string]func([]byte) []byte{
			"cut":     func(b []byte) []byte { return b[:len(b)/2] },
			"flipped": func(b []byte) []byte { b = bytes.Clone(b); b[1] ^= 0x40; return b },
			"emptied": func([]byte) []byte { return nil },
			"NUL":     func(b []byte) []byte { return bytes.Repeat([]byte{0}, len(b)) },
			"twice":   func(b []byte) []byte { return bytes.Join([][]byte{b, b}, []byte("\n")) },
		} {
			t.Run(fmt.Sprintf("L-034 line %d %s", i+1, name), func(t *testing.T) {
				var broken []byte
				for j, line := range lines {
					line = bytes.TrimSuffix(line, []byte("\n"))
					if j == i {
						line = damage(line)
					}
					broken = append(append(broken, line...), '\n')
				}
				log, err := Scan(broken)
				if err != nil {
					return // loud
				}
				isTrue(t, log.Torn, "an accepted file lost a line in silence")
				equal(t, int64(len(broken))-log.CommittedBytes, log.TornBytes)
				equal(t, i-1, len(log.Events))
			})
		}
	}
}

// Every prefix of a sound log scans to a prefix of its events, and accounts for every byte.
func TestEveryPrefixIsSafe(t *testing.T) {
	good := file(t, v3Header, twoTurns()...)
	whole, err := Scan(good)
	noError(t, err)
	for n := bytes.IndexByte(good, '\n') + 1; n <= len(good); n++ {
		log, err := Scan(good[:n])
		noError(t, err, n)
		equal(t, bytes.Count(good[:n], []byte("\n"))-1, len(log.Events))
		equal(t, int64(n), log.CommittedBytes+log.TornBytes)
		for i, ev := range log.Events {
			equal(t, string(whole.Events[i].Line()), string(ev.Line()))
		}
	}
}

// L-030, L-011: an export reads back; one with a gap is refused before anything is written.
func TestExport(t *testing.T) {
	events := twoTurns()
	log, err := Scan(file(t, v3Header, events...))
	noError(t, err)
	equal(t, len(events), len(log.Events))
	var out bytes.Buffer
	isTrue(t, Export(&out, log.Header, events[1:]) != nil)
	equal(t, 0, out.Len())
	isTrue(t, errors.Is(Export(failing{}, log.Header, events), errDisk))
}

var errDisk = errors.New("disk full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errDisk }

// L-080: how many events were inherited.
func TestL080Inherited(t *testing.T) {
	n := int64(4)
	equal(t, int64(4), Inherited(Header{Version: V0, SeedLength: &n}, nil))
	equal(t, int64(0), Inherited(Header{Version: V0}, nil))
	events := numbered(NewEvent(TypeTurnStart, nil), NewEvent(TypeEndSeed, json.RawMessage(`{"inherited":true}`)), NewEvent(TypeTurnStart, nil),
		NewEvent(TypeEndSeed, json.RawMessage(`{"inherited":true}`)), NewEvent(TypeEndSeed, json.RawMessage(`{}`)))
	equal(t, int64(3), Inherited(Header{Version: V3, IsSeeded: true}, events))
	equal(t, int64(0), Inherited(Header{Version: V3}, events))
}
