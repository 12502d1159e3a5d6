package parley_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/conformance"
)

// beside finds a folder that lies beside the module.
func beside(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "shared", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no folder %s beside the module: its files are not part of it", name)
	}
	return dir
}

// memoryNode is a node that forgets, with its journal.
func memoryNode(t *testing.T) (*parley.Node, *memory.Journal) {
	t.Helper()
	j := memory.New(nil)
	node, err := parley.Open(parley.Config{Journal: j, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, node.Close(context.WithoutCancel(t.Context())))
		assert.NoError(t, j.Close())
	})
	return node, j
}

func export(t *testing.T, n *parley.Node, session string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, n.Export(t.Context(), session, &out))
	return out.String()
}

// nothing asserts that a refused import has left no trace.
func nothing(t *testing.T, j journal.Journal) {
	t.Helper()
	sessions, err := j.Sessions(t.Context(), "", 0)
	require.NoError(t, err)
	require.Empty(t, sessions)
	last, err := j.Last(t.Context())
	require.NoError(t, err)
	require.Zero(t, last)
}

// L-030, L-035, section K: every real log is kept as it is, older shapes and
// packed rows and all, and given back byte for byte, from memory and from a
// file. The one that was edited by hand is refused with its place, and leaves no
// trace.
func TestRealLogsAreImportedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(beside(t, "logs"), "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	w := newWorld(t)
	kept, packed, refused := 0, 0, []string{}
	for i, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name := fmt.Sprintf("log-%d", i)
		filled, err := conformance.FillIn(text, filepath.Base(path), "/workspace")
		require.NoError(t, err, path)
		log := string(filled)
		row, err := w.Import(t.Context(), name, strings.NewReader(log))
		if err != nil {
			require.Equal(t, messages.BadLog, messages.CodeOf(err), "%s: %v", path, err)
			_, missing := w.Session(t.Context(), name)
			require.Equal(t, messages.NotFound, messages.CodeOf(missing), path)
			refused = append(refused, filepath.Base(path)+": "+err.Error())
			continue
		}
		scanned, err := sessionlog.Scan(filled)
		require.NoError(t, err)
		require.Equal(t, int64(len(scanned.Events)), row.GetEvents())
		require.Nil(t, row.GetTrouble(), path)
		_, records, _ := strings.Cut(export(t, w.Node, name), "\n")
		_, want, _ := strings.Cut(log, "\n")
		require.Equal(t, want, records, path)
		node, j := memoryNode(t)
		row, err = node.Import(t.Context(), "", strings.NewReader(log)) // under its own id
		require.NoError(t, err)
		require.Equal(t, log, export(t, node, row.GetSession()), path)
		opened, err := j.Read(t.Context(), row.GetSession(), 0, 0)
		require.NoError(t, err)
		require.Equal(t, scanned.Header.Version, opened.Header.Version)
		for k, ev := range opened.Events {
			require.Equal(t, string(scanned.Events[k].Line()), string(ev.Line()), path)
		}
		if strings.Contains(log, "-chunks\"") {
			packed++
		}
		kept++
	}
	t.Logf("%d logs: %d kept, %d of them packed; refused: %s", len(files), kept, packed, strings.Join(refused, "; "))
	require.NotZero(t, packed)
	require.Equal(t, len(files)-1, kept)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "cordis-tool-round")
	require.Contains(t, refused[0], "seq 11: sourceEventSeqs cites 11, which is not an earlier event")
}

// packedLog is a v0 log whose one packed row stands for more events than are
// read at once.
func packedLog(events int) string {
	row := strings.Repeat(`,"<'\u0041 é>"`, events-1)
	return `{"type":"session","version":0,"id":"packed","createdAt":1,"delegationDepth":0,"other":[1, 2]}` + "\n" +
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"trigger":{}}}` + "\n" +
		`{"type":"text-chunks","seq0":1,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[-1` + strings.Repeat(",1", events-2) + `],"texts":[""` + row + `]}}` + "\n" +
		fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":1,"data":{"turn":1,"reason":{"kind":"disposed"}}}`, events+1) + "\n"
}

// L-035, L-040: a packed row is the very row again, though it is read in pages
// that begin and end inside of it, and its events are there one by one.
func TestAPackedRowIsReadInPages(t *testing.T) {
	t.Parallel()
	for _, events := range []int{2, messages.PageMax - 1, messages.PageMax, messages.PageMax + 1, 3*messages.PageMax + 7} {
		log := packedLog(events)
		memory, _ := memoryNode(t)
		for _, node := range []*parley.Node{memory, newWorld(t).Node} {
			row, err := node.Import(t.Context(), "", strings.NewReader(log))
			require.NoError(t, err)
			require.Equal(t, int64(events+2), row.GetEvents())
			require.Equal(t, log, export(t, node, "packed"))
			_, one, _, err := node.Log(t.Context(), "packed", 2, 1)
			require.NoError(t, err)
			require.Equal(t, []string{`{"type":"assistant/chunk","seq":2,"time":0,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"<'\u0041 é>"}}}`}, one)
		}
	}
}

// A log that is short and stands for much is too large, not bad.
func TestWhatPackedRowsStandForIsBounded(t *testing.T) {
	t.Parallel()
	node, j := memoryNode(t)
	row := `{"type":"text-chunks","seq0":0,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[0` + strings.Repeat(",0", sessionlog.PackedEventsMax-1) +
		`],"texts":[""` + strings.Repeat(`,""`, sessionlog.PackedEventsMax) + `]}}`
	header, _, _ := strings.Cut(packedLog(2), "\n")
	_, err := node.Import(t.Context(), "", strings.NewReader(header+"\n"+row+"\n"))
	require.Equal(t, messages.TooLarge, messages.CodeOf(err), err)
	require.ErrorContains(t, err, "line 2: packed rows stand for more events than may be read; the limit PackedEventsMax is 524288")
	nothing(t, j)
}

// compressed is the log of a session as its writer leaves it: a frame for the
// header, and one for each write.
func compressed(t testing.TB, log string) (out []byte) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	defer func() { _ = encoder.Close() }()
	for line := range strings.Lines(log) {
		out = encoder.EncodeAll([]byte(line), out)
	}
	return out
}

// L-039: a compressed log is taken for what it holds, whole or not at all, and
// given back plain.
func TestACompressedLogIsImported(t *testing.T) {
	t.Parallel()
	log := packedLog(5)
	packed := compressed(t, log)
	node, j := memoryNode(t)
	_, err := node.Import(t.Context(), "", bytes.NewReader(packed[:len(packed)-1]))
	require.Equal(t, messages.BadLog, messages.CodeOf(err), err)
	require.ErrorContains(t, err, "frame 4 is not whole; cut the file to its first")
	_, err = node.Import(t.Context(), "", bytes.NewReader(compressed(t, log[:len(log)-1])))
	require.Equal(t, messages.BadLog, messages.CodeOf(err), err)
	_, err = node.Import(t.Context(), "", bytes.NewReader(compressed(t, "\n"+strings.Repeat("x", parley.ImportBytesMax)+"\n")))
	require.Equal(t, messages.TooLarge, messages.CodeOf(err), err)
	nothing(t, j)
	row, err := node.Import(t.Context(), "", bytes.NewReader(packed))
	require.NoError(t, err)
	require.Equal(t, int64(7), row.GetEvents())
	require.Equal(t, log, export(t, node, "packed"))
	_, err = node.Import(t.Context(), "", bytes.NewReader(packed))
	require.Equal(t, messages.SessionExists, messages.CodeOf(err))
}

// L-030 to L-035: the reference's vectors of whole files, through the import.
func TestVectorsAreImportedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(beside(t, "vectors"), "session-log.jsonl"))
	require.NoError(t, err)
	kept, refused := 0, 0
	for line := range bytes.Lines(text) {
		var v struct {
			Kind, Name string
			Input      struct{ Text *string }
			Expect     struct {
				Error  string
				Torn   bool
				Header struct{ ID string }
			}
		}
		if err := json.Unmarshal(line, &v); err != nil || v.Kind != "scan" || v.Input.Text == nil {
			continue
		}
		node, j := memoryNode(t)
		row, err := node.Import(t.Context(), "", strings.NewReader(*v.Input.Text))
		if v.Expect.Error != "" || v.Expect.Torn {
			require.Error(t, err, v.Name)
		}
		if err != nil {
			require.Contains(t, []messages.Code{messages.BadLog, messages.BadRequest}, messages.CodeOf(err), "%s: %v", v.Name, err)
			nothing(t, j)
			refused++
			continue
		}
		require.Equal(t, v.Expect.Header.ID, row.GetSession(), v.Name)
		require.Equal(t, *v.Input.Text, export(t, node, row.GetSession()), v.Name)
		kept++
	}
	t.Logf("%d kept, %d refused", kept, refused)
	require.NotZero(t, kept)
	require.NotZero(t, refused)
}

// aLog is a session with a call that waits in the foreground, one that goes on,
// one with a reply in the inbox, and one that is settled.
func aLog(t *testing.T) string {
	t.Helper()
	w := newWorld(t)
	agent := w.attach("s")
	for _, call := range []string{"continued", "replied", "settled"} {
		result := w.asked(agent, call, time.Minute)
		if call == "settled" {
			_, err := w.Answer(t.Context(), "s", call, "ann", parley.Choose("env", "staging"))
			require.NoError(t, err)
		} else {
			claim, err := w.AttachWait(t.Context(), "s", call)
			require.NoError(t, err)
			_, err = claim.Expire(t.Context(), "ann")
			require.NoError(t, err)
		}
		require.NoError(t, next(t, result).err)
	}
	s, err := w.Answer(t.Context(), "s", "replied", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	require.Equal(t, "queued", s.Outcome)
	w.asked(agent, "open", parley.Never)
	return export(t, w.Node, "s")
}

// Questions that wait in an imported log wait here: their rows are those of the
// log's own node, and each takes its answer.
func TestAnImportedSessionGoesOn(t *testing.T) {
	t.Parallel()
	log := aLog(t)
	w := newWorld(t)
	row, err := w.Import(t.Context(), "", strings.NewReader(log))
	require.NoError(t, err)
	require.Equal(t, "s", row.GetSession())
	require.Equal(t, "agent-1", row.GetRoot())
	require.Equal(t, int32(2), row.GetAnswerable())
	require.Equal(t, log, export(t, w.Node, "s"))

	page, err := w.Questions(t.Context(), parley.Filter{Session: "s"})
	require.NoError(t, err)
	states := map[string]string{}
	for _, q := range page.Questions {
		states[q.GetCallId()] = q.GetState()
	}
	require.Equal(t, map[string]string{"open": "open", "continued": "continued", "replied": "replied"}, states)

	agent := w.attach("s") // its recorded root, so it takes nothing over
	result := w.asked(agent, "open", parley.Never)
	s, err := w.Answer(t.Context(), "s", "open", "bob", parley.Choose("env", "staging"))
	require.NoError(t, err)
	require.Equal(t, "answered", s.Outcome)
	answered, ok := next(t, result).Result.(parley.Answered)
	require.True(t, ok)
	require.Equal(t, []string{"staging"}, answered.Answers[0].Selected)
	s, err = w.Answer(t.Context(), "s", "continued", "bob", parley.Choose("env", "production"))
	require.NoError(t, err)
	require.Equal(t, "queued", s.Outcome)
	got, err := agent.Collect(t.Context())
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.True(t, strings.HasPrefix(export(t, w.Node, "s"), log), "the log only grew")
}

// A deadline of an imported wait passes like any other, without anybody who
// speaks to the session: its index row wakes it.
func TestAnImportedDeadlinePasses(t *testing.T) {
	t.Parallel()
	from := newWorld(t)
	from.asked(from.attach("s"), "c", time.Second)
	log := export(t, from.Node, "s")
	w := newWorld(t, func(c *parley.Config) { c.ClaimGrace = parley.Never })
	_, err := w.Import(t.Context(), "", strings.NewReader(log))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.row("s", "c").GetState() == "continued" }, patience, 5*time.Millisecond)
}

func TestImportUnderAnotherName(t *testing.T) {
	t.Parallel()
	log := aLog(t)
	node, _ := memoryNode(t)
	for _, name := range []string{"", "b", "ö \"quoted\""} {
		_, err := node.Import(t.Context(), name, strings.NewReader(log))
		require.NoError(t, err)
	}
	for _, name := range []string{"b", "ö \"quoted\""} {
		id, err := json.Marshal(name)
		require.NoError(t, err)
		require.Equal(t, strings.Replace(log, `"id":"s"`, `"id":`+string(id), 1), export(t, node, name))
	}
}

// The journal has one session of a name: an import adds to none and replaces none.
func TestImportRefusesASessionThatExists(t *testing.T) {
	t.Parallel()
	log := aLog(t)
	w := newWorld(t)
	w.attach("s")
	before := export(t, w.Node, "s")
	_, err := w.Import(t.Context(), "", strings.NewReader(log))
	require.Equal(t, messages.SessionExists, messages.CodeOf(err))
	require.Equal(t, before, export(t, w.Node, "s"))
	header, _, _ := strings.Cut(log, "\n")
	_, err = w.Import(t.Context(), "", io.MultiReader(strings.NewReader(header+"\n"), iotest.ErrReader(errors.New("it was read on"))))
	require.Equal(t, messages.SessionExists, messages.CodeOf(err), "found out before the bulk of it is read")
}

// A log that does not fit is refused with its place, and leaves no trace.
func TestBadLogsAreRefused(t *testing.T) {
	t.Parallel()
	const header = `{"type":"session","version":3,"id":"s","createdAt":1,"isSeeded":false,"delegationDepth":0}` + "\n"
	event := func(seq int, typ, data string) string {
		return fmt.Sprintf(`{"type":%q,"seq":%d,"time":1,"data":%s,"ignorable":true}`+"\n", typ, seq, data)
	}
	timed := `{"header":{"tools":[{"name":"ask_user_question","parameters":{"properties":{"timeout":{}}}}]}}`
	askAs := func(id string) string {
		return event(0, "request/header", timed) +
			event(1, "tool/call", `{"turn":1,"step":1,"callId":`+id+`,"name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"a\",\"question\":\"Q\"}]}"}`) +
			event(2, "parley/wait", `{"callId":`+id+`,"attempt":"a","deadlineMs":"never"}`)
	}
	for name, c := range map[string]struct {
		log  string
		code messages.Code
		text string
	}{
		"nothing":          {"", messages.BadLog, "line 1"},
		"no log":           {"hello\n", messages.BadLog, "not valid JSON"},
		"another version":  {strings.Replace(header, `"version":3`, `"version":4`, 1), messages.BadLog, "v4, newer than"},
		"a gap":            {header + event(1, "turn/start", `{"turn":1}`), messages.BadLog, "line 2: seq gap: expected 0"},
		"a torn tail":      {header + event(0, "turn/start", `{"turn":1}`) + `{"type":`, messages.BadLog, "line 3: the last line has no line feed; cut the file before that line if the 8 bytes"},
		"an unknown key":   {header + `{"type":"turn/start","seq":0,"time":1,"data":{},"x":1}` + "\n", messages.BadLog, "line 2, seq 0"},
		"an unknown type":  {header + `{"type":"future/thing","seq":0,"time":1,"data":{}}` + "\n", messages.BadLog, "future/thing"},
		"a damaged record": {header + event(0, "parley/root", `{"owner":1}`), messages.BadLog, "rootId is missing"},
		"a damaged wait":   {header + event(0, "parley/wait", `{"callId":"c"}`), messages.BadLog, "seq 0"},
		"an empty id":      {strings.Replace(header, `"id":"s"`, `"id":" "`, 1), messages.BadRequest, "session is empty"},
		"an odd call id":   {header + askAs(`"a\u0000b"`), messages.BadLog, "the question of event 1 waits, and nobody could answer it"},
		"an empty call id": {header + askAs(`""`), messages.BadLog, "its call id is empty"},
	} {
		node, j := memoryNode(t)
		_, err := node.Import(t.Context(), "", strings.NewReader(c.log))
		require.Equal(t, c.code, messages.CodeOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.text, name)
		nothing(t, j)
	}
}

func TestImportKeepsItsLimits(t *testing.T) {
	t.Parallel()
	const header = `{"type":"session","version":3,"id":"s","createdAt":1,"isSeeded":false,"delegationDepth":0}` + "\n"
	sized := func(seq, bytes int) string {
		line := fmt.Sprintf(`{"type":"x","seq":%d,"time":1,"data":"","ignorable":true}`+"\n", seq)
		return strings.Replace(line, `"data":""`, `"data":"`+strings.Repeat("x", bytes-len(line))+`"`, 1)
	}
	full := header
	for i := range 3 {
		full += sized(i, parley.ImportLineBytesMax)
	}
	full += sized(3, parley.ImportBytesMax-len(full))
	node, j := memoryNode(t)
	var waits strings.Builder
	waits.WriteString(header + `{"type":"request/header","seq":0,"time":1,"data":{"header":{"tools":[{"name":"ask_user_question","parameters":{"properties":{"timeout":{}}}}]}}}` + "\n")
	for i := range parley.ImportWaitingMax + 1 {
		fmt.Fprintf(&waits, `{"type":"tool/call","seq":%d,"time":1,"data":{"callId":"c%d","name":"ask_user_question","arguments":"{\"questions\":[{\"id\":\"a\",\"question\":\"Q\"}]}"}}`+"\n", 2*i+1, i)
		fmt.Fprintf(&waits, `{"type":"parley/wait","seq":%d,"time":1,"data":{"callId":"c%d","attempt":"a","deadlineMs":"never"},"ignorable":true}`+"\n", 2*i+2, i)
	}
	var asks strings.Builder
	asks.WriteString(header)
	for i := range parley.ImportAsksMax + 1 {
		fmt.Fprintf(&asks, `{"type":"tool/call","seq":%d,"time":1,"data":{"callId":"c","name":"ask_user_question","arguments":""}}`+"\n", i)
	}
	for text, log := range map[string]string{
		"2049 questions of the log wait for an answer":              waits.String(),
		"the log holds 10001 question calls":                        asks.String(),
		"the log has more than 32505856 bytes":                      full + "x",
		"line 2 of the log has 8388609 bytes, the limit is 8388608": header + sized(0, parley.ImportLineBytesMax+1),
		"more than 32505856 bytes, which":                           header + strings.Repeat("\n", parley.ImportBytesMax),
	} {
		_, err := node.Import(t.Context(), "", strings.NewReader(log))
		require.Equal(t, messages.TooLarge, messages.CodeOf(err), err)
		require.ErrorContains(t, err, text)
		nothing(t, j)
	}
	w := newWorld(t) // SQLite takes what the limit allows
	_, err := w.Import(t.Context(), "", strings.NewReader(full))
	require.NoError(t, err)
	require.True(t, full == export(t, w.Node, "s"))
}

// A reader that fails is no end: not even behind a whole line.
func TestAnImportThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	log := aLog(t)
	node, j := memoryNode(t)
	broken := errors.New("the line went dead")
	for at := 0; at <= len(log); at += 1 + len(log)/200 {
		_, err := node.Import(t.Context(), "", io.MultiReader(strings.NewReader(log[:at]), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := node.Import(left, "", strings.NewReader(log))
	require.ErrorIs(t, err, context.Canceled)
	nothing(t, j)
	_, err = node.Import(t.Context(), "", strings.NewReader(log))
	require.NoError(t, err)
}

// A log of the older generation is read and never written.
func TestAnOlderGenerationIsOnlyRead(t *testing.T) {
	t.Parallel()
	const log = `{"type":"session","version":0,"id":"old","createdAt":1,"delegationDepth":0,"anything":[1]}` + "\n" +
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` + "\n" +
		`{"type":"parley/root","seq":1,"time":1,"data":{"rootId":"agent-1"},"ignorable":true}` + "\n"
	w := newWorld(t)
	_, err := w.Import(t.Context(), "", strings.NewReader(log))
	require.NoError(t, err)
	for range 2 {
		_, err = w.Attach(t.Context(), "old", "agent-1", parley.AttachOptions{})
		require.Equal(t, messages.SessionGeneration, messages.CodeOf(err))
		require.Equal(t, log, export(t, w.Node, "old"))
		w = w.restart()
	}
}

// Promise 6: whoever activates a session while it is imported, and however
// many import it, one of them makes it and nothing is mixed.
func TestImportAndActivationCannotMix(t *testing.T) {
	t.Parallel()
	log := aLog(t)
	w := newWorld(t)
	imported, made := 0, 0
	for round := range 25 {
		name := fmt.Sprintf("s-%d", round)
		var all sync.WaitGroup
		errs, start := make([]error, 4), make(chan struct{})
		for i := range errs {
			all.Go(func() {
				<-start
				if i%2 == 0 {
					_, errs[i] = w.Import(t.Context(), name, strings.NewReader(log))
					return
				}
				_, errs[i] = w.Attach(t.Context(), name, "agent-1", parley.AttachOptions{})
			})
		}
		close(start)
		all.Wait()
		won := 0
		for i, err := range errs {
			switch {
			case i%2 == 1:
				require.NoError(t, err)
			case err == nil:
				won++
			default:
				require.Equal(t, messages.SessionExists, messages.CodeOf(err), err)
			}
		}
		require.LessOrEqual(t, won, 1)
		want := strings.Replace(log, `"id":"s"`, `"id":"`+name+`"`, 1)
		if got := export(t, w.Node, name); won == 1 {
			require.Equal(t, want, got, "the recorded root attaches and changes nothing")
			imported++
		} else {
			require.Equal(t, 2, strings.Count(got, "\n"), got)
			made++
		}
		// Whoever won, the session serves from here on.
		s, err := w.Attach(t.Context(), name, "agent-1", parley.AttachOptions{})
		require.NoError(t, err)
		w.asked(s, "after", parley.Never)
	}
	t.Logf("%d imported, %d made by an agent", imported, made)
}

func TestExportOfNothing(t *testing.T) {
	t.Parallel()
	node, _ := memoryNode(t)
	require.Equal(t, messages.NotFound, messages.CodeOf(node.Export(t.Context(), "nobody", io.Discard)))
	require.Equal(t, messages.BadRequest, messages.CodeOf(node.Export(t.Context(), " ", io.Discard)))
	agent, err := node.Attach(t.Context(), "s", "agent-1", parley.AttachOptions{})
	require.NoError(t, err)
	require.NotNil(t, agent)
	require.ErrorContains(t, node.Export(t.Context(), "s", failing{}), "export session s")
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }
