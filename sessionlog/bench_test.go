package sessionlog

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// lifeOfAQuestion is one question from header to admission, as it stands in a v3 log.
func lifeOfAQuestion() [][]byte {
	arguments := `{"questions":[{"id":"scope","question":"Which parts of the tree may I change for this?","header":"Scope",` +
		`"options":[{"label":"Tool only (Recommended)","description":"Only the tool package."},{"label":"Everything","description":"All packages."}],` +
		`"multi_select":false},{"id":"name","question":"How shall the new command be called?"}],"timeout":120}`
	questions, _, _ := ParseArguments(arguments)
	answers := json.RawMessage(`[{"id":"scope","selected":["Tool only (Recommended)"]},{"id":"name","selected":[],"custom":"parley ask"}]`)
	reply := ReplyMessage("reply-1", "call_00_abcdef", questions, answers)
	header := json.RawMessage(`{"header":{"config":{"provider":"p","model":"m"},"tools":[` +
		`{"name":"bash","description":"Run a command.","parameters":{"type":"object","properties":{"command":{"type":"string"}}}},` +
		`{"name":"ask_user_question","description":"` + strings.Repeat("Ask brief questions. ", 20) + `","parameters":{"type":"object","properties":{"questions":{"type":"array"},"timeout":{"type":"integer"}}}}]},"reason":"initial"}`)
	call := fmt.Sprintf(`{"turn":1,"step":1,"callId":"call_00_abcdef","name":"ask_user_question","arguments":%s}`, appendString(nil, arguments))
	events := []Event{
		NewEvent(TypeTurnStart, json.RawMessage(`{"turn":1}`)),
		NewEvent(TypeStepStart, json.RawMessage(`{"turn":1,"step":1}`)),
		NewEvent(TypeRequestHeader, header),
		NewEvent(TypeToolCall, json.RawMessage(call)),
		ToolResult(1, 1, "call_00_abcdef", PendingText("call_00_abcdef"), false, "", "", 3, "m1"),
		Splice{Target: NextStep, Inserted: []Message{reply}}.Event(),
		Splice{Target: NextStep, RemovedCount: 1}.Event(),
		NewEvent(TypeUserMessage, reply.Raw).Appended(),
		NewEvent(TypeStepEnd, json.RawMessage(`{"turn":1,"step":1}`)),
	}
	var lines [][]byte
	for i, ev := range events {
		lines = append(lines, ev.At(int64(i), 1_700_000_000_000).Line())
	}
	return lines
}

func decodeLines(t testing.TB, lines [][]byte) []Event {
	t.Helper()
	var events []Event
	for _, line := range lines {
		ev, err := DecodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	return events
}

// BenchmarkFoldLife folds the nine events of one question's life into the projection.
func BenchmarkFoldLife(b *testing.B) {
	events := decodeLines(b, lifeOfAQuestion())
	b.ReportAllocs()
	for b.Loop() {
		q := NewQuestions(0)
		for _, ev := range events {
			q, _ = q.Fold(ev)
		}
		if len(q.active) != 0 || q.settled == nil {
			b.Fatal("the question did not settle")
		}
	}
}

// BenchmarkAllFoldsLife folds the same events into questions, inbox and progress.
func BenchmarkAllFoldsLife(b *testing.B) {
	events := decodeLines(b, lifeOfAQuestion())
	b.ReportAllocs()
	for b.Loop() {
		q, l, p := NewQuestions(0), Lists{}, NewProgress(V3)
		for _, ev := range events {
			q, _ = q.Fold(ev)
			l, _ = l.Fold(ev)
			p = p.Fold(ev)
		}
	}
}

// BenchmarkDecodeEvent decodes the nine records of one question's life.
func BenchmarkDecodeEvent(b *testing.B) {
	lines := lifeOfAQuestion()
	n := 0
	for _, line := range lines {
		n += len(line)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range lines {
			if _, err := DecodeEvent(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// The projection keeps the questions and nothing else of the event: a parked question costs little more than its JSON.
func TestAnOpenQuestionIsLean(t *testing.T) {
	const sessions, padding = 200, 100_000
	events := decodeLines(t, lifeOfAQuestion())
	timed, _ := NewQuestions(0).Fold(events[2])
	kept := make([]Questions, sessions)
	before := heapInUse()
	for i := range kept {
		ev := events[3]
		ev.Data = append(ev.Data[:len(ev.Data)-1:len(ev.Data)-1], fmt.Sprintf(`,"padding":"%s"}`, strings.Repeat("x", padding))...)
		kept[i], _ = timed.Fold(ev)
	}
	each := (heapInUse() - before) / sessions
	call, ok := kept[sessions-1].Call("call_00_abcdef")
	if !ok {
		t.Fatal("the call did not open")
	}
	if limit := int64(len(call.Questions)) + 300; each > limit {
		t.Errorf("an open question of %d bytes of JSON costs %d bytes, limit %d", len(call.Questions), each, limit)
	}
	runtime.KeepAlive(kept)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What an index pays for one more message of a session that has a hundred thousand, and for its share of a compaction
// of a thousand of them.
func BenchmarkSurfaceFold(b *testing.B) {
	const nodes, compacted = 100_000, 1000
	var events []Event
	for i := range nodes {
		events = append(events, userMessage("a").At(int64(i), 1))
	}
	cites := make([]int64, compacted)
	for i := range cites {
		cites[i] = nodes - compacted + int64(i)
	}
	summary := replacing(userMessage("s"), V0, cites[0], cites[compacted-1], cites...).At(nodes, 1)
	b.ReportAllocs()
	for b.Loop() {
		fold := NewSurfaceFold(V0)
		for _, ev := range append(events, summary) {
			if _, _, err := fold.Fold(ev, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(nodes+1), "ns/event")
}
