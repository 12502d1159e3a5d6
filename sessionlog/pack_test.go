package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func textRow(seq int, texts ...string) string {
	list, err := json.Marshal(texts)
	if err != nil {
		panic(err)
	}
	gaps := strings.Repeat(",1", max(len(texts)-1, 0))
	return fmt.Sprintf(`{"type":"text-chunks","seq0":%d,"time0":9,"data":{"turn":1,"step":1,"index":0,"dt":[%s],"texts":%s}}`, seq, strings.TrimPrefix(gaps, ","), list)
}

func chunk(text string) Event {
	return NewEvent(typeChunk, json.RawMessage(`{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"`+text+`"}}`))
}

func recordsOf(events []Event) (lines []string) {
	for line := range Records(slices.Values(events)) {
		lines = append(lines, string(line))
	}
	return lines
}

// L-035, L-041: a row counts as its events, and is the very row again when it is written.
func TestL035PackedRows(t *testing.T) {
	row := `{"type":"tool-call-chunks", "seq0":1,"time0":9,"data":{"turn":1,"step":2,"index":3,"dt":[-4,6],"id":"k","name":"b\"","args":["{","\u0041","}"]}}`
	text := v0Header + "\n" + `{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}` + "\n" + row + "\n" + textRow(4, "x") + "\n" +
		`{"type":"turn/end","seq":5,"time":9,"data":{"turn":1}}` + "\n"
	log, err := Scan([]byte(text))
	noError(t, err)
	isTrue(t, !log.Torn)
	equal(t, 6, len(log.Events))
	want := `{"type":"assistant/chunk","seq":2,"time":5,"data":{"turn":1,"step":2,"chunk":{"type":"tool-call-delta","index":3,"id":"k","name":"b\"","argumentsDelta":"\u0041"}}}`
	equal(t, want, string(log.Events[2].Line()))
	equal(t, int64(11), log.Events[3].Time)
	var out bytes.Buffer
	noError(t, Export(&out, log.Header, log.Events))
	equal(t, text, out.String())

	t.Run("a row is good or bad as a whole", func(t *testing.T) {
		for _, bad := range []string{textRow(2, "a", "b"), strings.Replace(textRow(1, "a", "b"), `"dt":[1]`, `"dt":[]`, 1)} {
			cut, err := Scan([]byte(v0Header + "\n" + `{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}` + "\n" + bad + "\n"))
			noError(t, err)
			equal(t, 1, len(cut.Events))
			equal(t, 3, cut.TornLine)
		}
	})
	t.Run("the line of what is torn is that of the file", func(t *testing.T) {
		cut, err := Scan([]byte(text + "x"))
		noError(t, err)
		equal(t, 6, cut.TornLine)
	})
	t.Run("an event of that type is a row that is bad", func(t *testing.T) {
		event := `{"type":"text-chunks","seq":0,"time":1,"data":{},"ignorable":true}`
		cut, err := Scan([]byte(v0Header + "\n" + event + "\n"))
		noError(t, err)
		isTrue(t, cut.Torn && len(cut.Events) == 0)
		_, err = DecodeRow([]byte(event))
		isTrue(t, err != nil)
		cut, err = Scan([]byte(v3Header + "\n" + event + "\n")) // to v3 it is a type like any other
		noError(t, err)
		equal(t, 1, len(cut.Events))
		equal(t, []string{event}, recordsOf(cut.Events))
	})
	t.Run("v3 has no rows", func(t *testing.T) {
		cut, err := Scan([]byte(v3Header + "\n" + textRow(0, "a") + "\n"))
		noError(t, err)
		isTrue(t, cut.Torn)
	})
}

// L-041: exact keys, and whole numbers throughout.
func TestL041MalformedRows(t *testing.T) {
	good := textRow(3, "a", "b")
	for name, bad := range map[string]string{
		"a further key":          strings.Replace(good, `"seq0":3`, `"seq0":3,"seq":3`, 1),
		"no time0":               strings.Replace(good, `"time0":9,`, "", 1),
		"a further field":        strings.Replace(good, `"turn":1`, `"turn":1,"x":1`, 1),
		"no index":               strings.Replace(good, `"index":0,`, "", 1),
		"a turn that is no":      strings.Replace(good, `"turn":1`, `"turn":"1"`, 1),
		"a step in parts":        strings.Replace(good, `"step":1`, `"step":1.5`, 1),
		"a negative seq0":        strings.Replace(good, `"seq0":3`, `"seq0":-3`, 1),
		"a seq0 too far":         strings.Replace(good, `"seq0":3`, `"seq0":9007199254740990`, 1),
		"a time out of bounds":   strings.Replace(good, `"dt":[1]`, `"dt":[9007199254740991]`, 1),
		"more gaps":              strings.Replace(good, `"dt":[1]`, `"dt":[1,1]`, 1),
		"a gap that is no":       strings.Replace(good, `"dt":[1]`, `"dt":[null]`, 1),
		"gaps that are no list":  strings.Replace(good, `"dt":[1]`, `"dt":1`, 1),
		"texts that are no list": strings.Replace(good, `["a","b"]`, `"ab"`, 1),
		"no text":                strings.Replace(strings.Replace(good, `["a","b"]`, `[]`, 1), `[1]`, `[]`, 1),
		"a name":                 strings.Replace(good, `"turn":1`, `"turn":1,"name":"n"`, 1),
		"a tool without an id":   strings.Replace(strings.Replace(good, "text-chunks", "tool-call-chunks", 1), "texts", "args", 1),
		"a tool named by number": `{"type":"tool-call-chunks","seq0":0,"time0":0,"data":{"turn":1,"step":1,"index":2,"id":"k","name":1,"dt":[],"args":[""]}}`,
		"a time0 in parts":       strings.Replace(good, `"time0":9`, `"time0":9.5`, 1),
		"data that is no record": `{"type":"text-chunks","seq0":3,"time0":9,"data":[]}`,
		"an id that is a number": `{"type":"tool-call-chunks","seq0":0,"time0":0,"data":{"turn":1,"step":1,"index":2,"id":1,"name":"n","dt":[],"args":[""]}}`,
		"two lines":              strings.Replace(good, `"turn":1`, "\"turn\":\n1", 1),
	} {
		isTrue(t, bad != good, name)
		got, err := DecodeRecord(nil, []byte(bad), 10)
		var corrupt *CorruptError
		isTrue(t, errors.As(err, &corrupt) && got == nil, name, err)
	}
}

// A row is short where its events are long: what it may stand for is bounded before anything is made of it.
func TestPackedRowsAreBounded(t *testing.T) {
	_, err := DecodeRecord(nil, []byte(textRow(0, "a", "b", "c")), 2)
	var limit *LimitError
	isTrue(t, errors.As(err, &limit), err)

	many := `{"type":"text-chunks","seq0":%d,"time0":0,"data":{"turn":1,"step":1,"index":0,"dt":[0` + strings.Repeat(",0", PackedEventsMax/2-1) + `],"texts":[""` +
		strings.Repeat(`,""`, PackedEventsMax/2) + `]}}`
	_, err = Scan([]byte(v0Header + "\n" + fmt.Sprintf(many, 0) + "\n" + fmt.Sprintf(many, PackedEventsMax/2+1) + "\n"))
	isTrue(t, errors.As(err, &limit) && limit.Limit == "PackedEventsMax" && limit.Line == 3, err)

	long := `{"type":"tool-call-chunks","seq0":0,"time0":0,"data":{"turn":1,"step":1,"index":0,"id":"` + strings.Repeat("x", 1<<20) + `","dt":[0` +
		strings.Repeat(",0", 198) + `],"args":[""` + strings.Repeat(`,""`, 199) + `]}}`
	_, err = Scan([]byte(v0Header + "\n" + long + "\n"))
	isTrue(t, errors.As(err, &limit) && limit.Limit == "PackedBytesMax" && limit.Line == 2, err)
	isTrue(t, strings.Contains(err.Error(), "line 2") && strings.Contains(err.Error(), "134217728"), err)
}

// L-040: an event of a row that is not there whole, or was changed, is a line of its own.
func TestRecordsOfPartsOfRows(t *testing.T) {
	read := func() []Event {
		events, err := DecodeRecord(nil, []byte(textRow(0, "a", "b", "c")), 3)
		noError(t, err)
		return events
	}
	events := read()
	row, own := textRow(0, "a", "b", "c"), []string{string(events[0].Line()), string(events[1].Line()), string(events[2].Line())}
	equal(t, []string{row}, recordsOf(events))
	equal(t, own[:2], recordsOf(events[:2]))
	equal(t, own[1:], recordsOf(events[1:]))
	equal(t, []string{own[0], row}, recordsOf(append(events[:1:1], events...)))
	equal(t, []string{own[1], own[0], own[2]}, recordsOf([]Event{events[1], events[0], events[2]}))
	changed := slices.Clone(events)
	changed[1] = changed[1].Ours()
	equal(t, []string{own[0], string(changed[1].Line()), own[2]}, recordsOf(changed))
	equal(t, []string{row}, recordsOf(append(read()[:1:1], read()[1:]...)), "read in two pages")
	for stop := range 3 { // a consumer that stops is not asked again
		n := 0
		for range Records(slices.Values(events[:2])) {
			if n++; n > stop {
				break
			}
		}
	}
}

// L-040: what is packed, and what is not.
func TestL040Pack(t *testing.T) {
	delta := func(data string) Event { return NewEvent(typeChunk, json.RawMessage(data)) }
	tool := func(id, name string) Event {
		return delta(`{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"` + id + `"` + name + `,"argumentsDelta":"x"}}`)
	}
	const named = `,"name":"n"`
	for _, c := range []struct {
		name   string
		events []Event
		want   int // records
	}{
		{"two stay", []Event{chunk("a"), chunk("b")}, 2},
		{"three are packed", []Event{chunk("a"), chunk("b"), chunk("c")}, 1},
		{"another event ends a run", []Event{chunk("a"), chunk("b"), chunk("c"), NewEvent(TypeTurnStart, json.RawMessage(`{"turn":1}`)), chunk("d"), chunk("e")}, 4},
		{"another kind ends a run", []Event{chunk("a"), chunk("b"), chunk("c"), tool("k", ""), tool("k", ""), tool("k", "")}, 2},
		{"another id ends a run", []Event{tool("k", ""), tool("k", ""), tool("j", ""), tool("j", ""), tool("j", "")}, 3},
		{"a name appears", []Event{tool("k", ""), tool("k", named), tool("k", named), tool("k", named)}, 2},
		{"a mark stays", []Event{chunk("a"), chunk("b").Ours(), chunk("c")}, 3},
		{"another field stays", []Event{chunk("a"), delta(`{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"b"},"x":1}`), chunk("c")}, 3},
		{"a text that is none stays", []Event{chunk("a"), delta(`{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":5}}`), chunk("c")}, 3},
		{"a step in parts stays", []Event{chunk("a"), delta(`{"turn":1,"step":1.5,"chunk":{"type":"text-delta","index":0,"text":"b"}}`), chunk("c")}, 3},
	} {
		events := numbered(c.events...)
		before := recordsOf(events)
		packed := Pack(events)
		equal(t, c.want, len(recordsOf(packed)), c.name)
		equal(t, before, recordsOf(events), "packing changed what it was given")
		var again []Event
		for _, line := range recordsOf(packed) {
			var err error
			again, err = DecodeRecord(again, []byte(line), 10)
			noError(t, err, c.name)
		}
		for i, ev := range again {
			equal(t, events[i].Seq, ev.Seq, c.name)
			equal(t, events[i].Time, ev.Time, c.name)
			isTrue(t, sameJSON(value(ev.Data), value(events[i].Data)), c.name)
		}
	}
	t.Run("what does not follow is not packed", func(t *testing.T) {
		gapped := []Event{chunk("a").At(0, 1), chunk("b").At(1, 1), chunk("c").At(3, 1)}
		equal(t, 3, len(recordsOf(Pack(gapped))))
		far := []Event{chunk("a").At(0, -safeMax), chunk("b").At(1, safeMax), chunk("c").At(2, safeMax)}
		equal(t, 3, len(recordsOf(Pack(far))))
	})
}

// Any record: one event or several in order, which make the same record again; and packing anew says the same.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(textRow(3, "a", "", "\u2028\"")))
	f.Add([]byte(`{"type":"tool-call-chunks","seq0":0,"time0":-5,"data":{"turn":1e0,"step":1.0,"index":2,"id":"\ud800","name":"n","dt":[-7],"args":["{","}"]}}`))
	f.Add([]byte(`{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		events, err := DecodeRecord(nil, record, 100)
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		if row, err := DecodeRow(record); (err == nil) != (events[0].row != nil) || err == nil && len(row) != len(events) {
			t.Fatalf("%q is a row of %d events, %v", record, len(row), err)
		}
		if len(events) == 0 || len(events) > 100 || len(events) > 1 && !IsPackedRow(record) {
			t.Fatalf("%q is %d events", record, len(events))
		}
		equal(t, []string{string(record)}, recordsOf(events))
		var loose []Event
		for i, ev := range events {
			equal(t, events[0].Seq+int64(i), ev.Seq)
			again, err := DecodeEvent(ev.Line())
			noError(t, err)
			isTrue(t, sameJSON(value(again.Data), value(ev.Data)))
			loose = append(loose, again)
		}
		packed := recordsOf(Pack(loose))
		if len(events) >= packMin {
			equal(t, 1, len(packed))
		}
		var again []Event
		for _, line := range packed {
			again, err = DecodeRecord(again, []byte(line), 100)
			noError(t, err)
		}
		equal(t, len(events), len(again))
		for i, ev := range again {
			isTrue(t, ev.Time == events[i].Time && sameJSON(value(ev.Data), value(events[i].Data)), packed)
		}
	})
}
