package sessionlog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func turnStart(turn int) Event {
	return NewEvent(TypeTurnStart, json.RawMessage(fmt.Sprintf(`{"turn":%d}`, turn)))
}
func turnEnd(turn int) Event {
	return NewEvent(TypeTurnEnd, json.RawMessage(fmt.Sprintf(`{"turn":%d,"reason":{"kind":"completed"}}`, turn)))
}
func stepStart(turn, step int) Event {
	return NewEvent(TypeStepStart, json.RawMessage(fmt.Sprintf(`{"turn":%d,"step":%d}`, turn, step)))
}
func stepEnd(turn, step int) Event {
	return NewEvent(TypeStepEnd, json.RawMessage(fmt.Sprintf(`{"turn":%d,"step":%d}`, turn, step)))
}
func calling(turn, step int, ids ...string) Event {
	var blocks []string
	for _, id := range ids {
		blocks = append(blocks, `{"type":"tool-call","id":"`+id+`","name":"bash","arguments":"{}"}`)
	}
	return NewEvent(TypeAssistantMessage, json.RawMessage(fmt.Sprintf(`{"turn":%d,"step":%d,"message":{"id":"a","role":"assistant","content":[{"type":"text","text":"ok"},%s]}}`,
		turn, step, strings.Join(blocks, ",")))).Appended()
}
func called(turn, step int, id string) Event {
	return NewEvent(TypeToolCall, json.RawMessage(fmt.Sprintf(`{"turn":%d,"step":%d,"callId":"%s","name":"bash","arguments":"{}"}`, turn, step, id)))
}
func answered(turn, step int64, id string) Event {
	return ToolResult(turn, step, id, "out", false, "", "", -1, "m")
}
func subStart(id, arguments string) Event {
	return NewEvent(TypeDispatchStart, json.RawMessage(`{"rootCallId":"a","parentCallId":"a","subCallId":"`+id+`","name":"ask_user_question","arguments":`+arguments+`}`))
}

func progressOf(version int, events ...Event) Progress {
	p := NewProgress(version)
	for _, ev := range numbered(events...) {
		p = p.Fold(ev)
	}
	return p
}

// shape writes repaired events in short: "tool/result b TOOL_NOT_STARTED cites [], …".
func shape(events []Event) string {
	var out []string
	for _, ev := range events {
		data := value(ev.Data)
		id, _ := data.get("message").get("source").get("callId").str()
		code, _ := data.get("error").get("code").str()
		kind, _ := data.get("reason").get("kind").str()
		text := strings.Join(strings.Fields(ev.Type+" "+id+" "+code+" "+kind), " ")
		if ev.SourceEventSeqs != nil {
			text += fmt.Sprint(" cites ", ev.SourceEventSeqs)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestRepairRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		version int
		events  []Event
		want    string
	}{
		{"L-050 an empty log needs nothing", V3, nil, ""},
		{"L-050 a closed turn needs nothing, whatever follows it", V3, []Event{turnStart(1), turnEnd(1), NewEvent("session/title", nil)}, ""},
		{"L-051 an open turn is ended", V3, []Event{turnStart(1)}, "turn/end interrupted"},
		{"L-051 an open step is ended first", V3, []Event{turnStart(1), stepStart(1, 1)}, "step/end, turn/end interrupted"},
		{"L-052 every unanswered call in block order, one id once", V3, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "c", "b", "c", "a"), answered(1, 1, "b")},
			"tool/result c TOOL_NOT_STARTED, tool/result a TOOL_NOT_STARTED, step/end, turn/end interrupted"},
		{"L-052 a tool/call alone creates nothing", V3, []Event{turnStart(1), stepStart(1, 1), called(1, 1, "x")}, "step/end, turn/end interrupted"},
		{"L-053 a recorded call has an unknown outcome and is cited", V3, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "a", "b"), called(1, 1, "a")},
			"tool/result a TOOL_OUTCOME_UNKNOWN cites [3], tool/result b TOOL_NOT_STARTED, step/end, turn/end interrupted"},
		{"L-054 calls of a closed step are forgotten", V3, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "a"), stepEnd(1, 1)}, "turn/end interrupted"},
		{"L-054 and at a turn boundary", V3, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "a"), turnStart(2)}, "turn/end interrupted"},
		{"L-055 v0 clears on any result with the id", V0, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "a"), replacing(answered(9, 9, "a"), V0, 0, 0)}, "step/end, turn/end interrupted"},
		{"L-055 v3 clears only on an appended result", V3, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "a"), replacing(answered(1, 1, "a"), V3, 0, 0)},
			"tool/result a TOOL_NOT_STARTED, step/end, turn/end interrupted"},
		{"L-055 v3 clears only on a result of the same step", V3, []Event{turnStart(1), stepStart(1, 1), calling(1, 1, "a"), answered(1, 2, "a")},
			"tool/result a TOOL_NOT_STARTED, step/end, turn/end interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, c.want, shape(progressOf(c.version, c.events...).Repair(CauseInterrupted, int64(len(c.events)), 7)))
		})
	}
}

// L-053, section K: the shapes of a repaired result in both generations and for both causes.
func TestL053RepairedResult(t *testing.T) {
	events := []Event{turnStart(2), stepStart(2, 3), calling(2, 3, "a"), called(2, 3, "a")}
	v3 := progressOf(V3, events...).Repair(CauseForked, 4, 9)[0]
	equal(t, `{"turn":2,"step":3,"message":{"id":"forked-tool-result-a-4","role":"tool","toolCallId":"a","isError":true,"source":{"kind":"tool","callId":"a"},"content":[{"type":"text","text":"TEXT"}]},`+
		`"error":{"name":"ToolOutcomeUnknownError","code":"TOOL_OUTCOME_UNKNOWN"}}`, withoutText(t, v3))
	v0 := progressOf(V0, events...).Repair(CauseInterrupted, 4, 9)[0]
	equal(t, `{"turn":2,"step":3,"message":{"id":"interrupted-tool-result-a-4","role":"user","source":{"kind":"tool","callId":"a"},"content":[{"type":"tool-result","toolCallId":"a","isError":true,"content":[{"type":"text","text":"TEXT"}]}]},`+
		`"error":{"name":"ToolOutcomeUnknownError","code":"TOOL_OUTCOME_UNKNOWN"}}`, withoutText(t, v0))
	equal(t, `"append"`, string(v0.SurfaceOp))
}

func withoutText(t *testing.T, ev Event) string {
	t.Helper()
	data := string(ev.Data)
	start := strings.Index(data, `"text":"`) + len(`"text":"`)
	end := start + strings.IndexByte(data[start:], '"')
	isTrue(t, end-start > 20, "the text says something")
	return data[:start] + "TEXT" + data[end:]
}

// L-056, L-001: repair is deterministic, goes on from the last seq, takes the last time, and what it adds is sound.
func TestL056RepairTwice(t *testing.T) {
	events := numbered(turnStart(1), stepStart(1, 1), calling(1, 1, "a", "b"), called(1, 1, "b"))
	p := progressOf(V3, events...)
	first, second := p.Repair(CauseInterrupted, 4, 1003), p.Repair(CauseInterrupted, 4, 1003)
	for i, ev := range first {
		equal(t, string(ev.Line()), string(second[i].Line()))
		equal(t, []int64{int64(4 + i), 1003}, []int64{ev.Seq, ev.Time})
	}
	whole := append(events, first...)
	noError(t, ValidateEvents(V3, whole))
	for _, ev := range first {
		p = p.Fold(ev)
	}
	equal(t, 0, len(p.Repair(CauseInterrupted, 8, 1003)), "a repaired log needs no repair")
}

// The turn and step that are open, and the last numbers ever.
func TestWhereASessionStands(t *testing.T) {
	p := NewProgress(V3)
	equal(t, []any{int64(0), false, int64(0), false}, []any{p.Turn(), p.TurnOpen(), p.Step(), p.StepOpen()})
	p = progressOf(V3, turnStart(1), stepStart(1, 1), stepEnd(1, 1), stepStart(1, 2), calling(1, 2, "a", "b"), called(1, 2, "b"))
	equal(t, []any{int64(1), true, int64(2), true}, []any{p.Turn(), p.TurnOpen(), p.Step(), p.StepOpen()})
	equal(t, []PendingCall{{CallID: "a", Name: "bash", Turn: 1, Step: 2, CallSeq: -1}, {CallID: "b", Name: "bash", Turn: 1, Step: 2, CallSeq: 5}}, p.Pending())
	before := p
	p = p.Fold(answered(1, 2, "a")).Fold(turnEnd(1))
	equal(t, []any{int64(1), false, int64(2), false, 0}, []any{p.Turn(), p.TurnOpen(), p.Step(), p.StepOpen(), len(p.Pending())})
	equal(t, 2, len(before.Pending()), "the earlier value still stands")
	equal(t, int64(0), p.Fold(turnStart(2)).Step())
}

// Deviation on PTC (architecture, section 4): an interrupted nested question stays answerable. Q-149 makes it continued.
func TestRepairWithSubCalls(t *testing.T) {
	readable := `{"questions":[{"id":"q","question":"?"}]}`
	events := numbered(turnStart(1), stepStart(1, 1), calling(1, 1, "a"), called(1, 1, "a"),
		subStart("a:ptc:1", readable), subStart("a:ptc:2", `"unreadable"`), subStart("a:ptc:3", readable),
		NewEvent(TypeDispatch, json.RawMessage(`{"subCallId":"a:ptc:3","name":"ask_user_question","isError":true,"content":[]}`)))
	p := progressOf(V3, events...)
	equal(t, 2, len(p.SubCalls()))
	isTrue(t, !strings.Contains(shape(p.Repair(CauseInterrupted, 8, 9)), TypeDispatch), "the plain repair is faithful")

	repaired := p.RepairWithSubCalls(CauseInterrupted, 8, 9)
	equal(t, "tool/ptc-dispatch, tool/result a TOOL_OUTCOME_UNKNOWN cites [3], step/end, turn/end interrupted", shape(repaired))
	noError(t, ValidateEvents(V3, append(events, repaired...)))
	id, _ := value(repaired[1].Data).get("message").get("id").str()
	equal(t, "interrupted-tool-result-a-9", id)
	q := NewQuestions(0)
	for _, ev := range append(events, repaired...) {
		q, _ = q.Fold(ev)
	}
	equal(t, "a:ptc:1 continued |", view(q))

	equal(t, 0, len(progressOf(V3, append(events, stepEnd(1, 1))...).SubCalls()), "L-054 a closed step owes nothing")
	equal(t, 0, len(progressOf(V3).RepairWithSubCalls(CauseInterrupted, 0, 0)))
	isTrue(t, !strings.Contains(shape(progressOf(V0, events...).RepairWithSubCalls(CauseInterrupted, 8, 9)), "dispatch"))
}
