package sessionlog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func decoded(t testing.TB, line string) Event {
	t.Helper()
	ev, err := DecodeEvent([]byte(line))
	noError(t, err, line)
	return ev
}

// L-010: the envelope is strict; nothing but the known keys, each of its type.
func TestL010Envelope(t *testing.T) {
	for name, line := range map[string]string{
		"minimal":                        `{"type":"a","seq":0,"time":0,"data":null}`,
		"every key, any order":           `{"sourceEventSeqs":[2,0],"surfaceOp":"append","ignorable":true,"data":{},"time":-5,"seq":3,"type":"a"}`,
		"white space and carriage":       " {\t\"type\" : \"a\", \"seq\":1.0,\"time\":1e3,\"data\":{} }\r",
		"an escaped key is the same key": `{"\u0074ype":"a","seq":0,"time":0,"data":1}`,
		"the last duplicate key wins":    `{"type":7,"type":"a","seq":0,"time":0,"data":1}`,
		"an empty citation list":         `{"type":"a","seq":0,"time":0,"data":1,"sourceEventSeqs":[]}`,
	} {
		t.Run("L-010 accepted and re-encoded to the very bytes: "+name, func(t *testing.T) {
			ev := decoded(t, line)
			equal(t, "a", ev.Type)
			equal(t, line, string(ev.Line()))
		})
	}
	for name, line := range map[string]string{
		"unknown key":             `{"type":"a","seq":0,"time":0,"data":1,"x":1}`,
		"case of a key":           `{"Type":"a","seq":0,"time":0,"data":1}`,
		"no type":                 `{"seq":0,"time":0,"data":1}`,
		"no data":                 `{"type":"a","seq":0,"time":0}`,
		"seq as text":             `{"type":"a","seq":"0","time":0,"data":1}`,
		"negative seq":            `{"type":"a","seq":-1,"time":0,"data":1}`,
		"fraction as seq":         `{"type":"a","seq":0.5,"time":0,"data":1}`,
		"seq beyond a double":     `{"type":"a","seq":9007199254740993,"time":0,"data":1}`,
		"no time":                 `{"type":"a","seq":0,"data":1}`,
		"ignorable false":         `{"type":"a","seq":0,"time":0,"data":1,"ignorable":false}`,
		"citations null":          `{"type":"a","seq":0,"time":0,"data":1,"sourceEventSeqs":null}`,
		"citation of a fraction":  `{"type":"a","seq":1,"time":0,"data":1,"sourceEventSeqs":[0.5]}`,
		"citation of a negative":  `{"type":"a","seq":1,"time":0,"data":1,"sourceEventSeqs":[-1]}`,
		"a list":                  `[]`,
		"empty":                   ``,
		"invalid UTF-8":           "{\"type\":\"a\xff\",\"seq\":0,\"time\":0,\"data\":1}",
		"a raw surrogate":         "{\"type\":\"\xed\xa0\x80\",\"seq\":0,\"time\":0,\"data\":1}",
		"byte-order mark":         "\uFEFF{\"type\":\"a\",\"seq\":0,\"time\":0,\"data\":1}",
		"two lines":               "{\"type\":\"a\",\n\"seq\":0,\"time\":0,\"data\":1}",
		"trailing text":           `{"type":"a","seq":0,"time":0,"data":1}x`,
		"too deep for any reader": `{"type":"a","seq":0,"time":0,"data":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	} {
		t.Run("L-010 refused: "+name, func(t *testing.T) {
			_, err := DecodeEvent([]byte(line))
			var corrupt *CorruptError
			isTrue(t, errors.As(err, &corrupt), err)
			isTrue(t, corrupt.Problem != "" && corrupt.Remedy != "", err)
		})
	}
}

// L-001, L-010: a built event encodes its keys in one order, and the copies leave the original alone.
func TestBuildingAnEvent(t *testing.T) {
	plain := NewEvent("a/b", map[string]any{"x": "<&>"}).At(7, 9)
	equal(t, `{"type":"a/b","seq":7,"time":9,"data":{"x":"<&>"}}`, string(plain.Line()))
	full := plain.Ours().Appended().Citing(3, 1)
	equal(t, `{"type":"a/b","seq":7,"time":9,"data":{"x":"<&>"},"ignorable":true,"surfaceOp":"append","sourceEventSeqs":[3,1]}`, string(full.Line()))
	equal(t, `{"type":"a/b","seq":7,"time":9,"data":{"x":"<&>"}}`, string(plain.Line()))
	equal(t, `{"type":"a/b","seq":8,"time":9,"data":{"x":"<&>"}}`, string(decoded(t, string(plain.Line())).At(8, 9).Line()))
	equal(t, `{"type":"a/b","seq":0,"time":0,"data":null}`, string(Event{Type: "a/b"}.Line()))
	isTrue(t, full.Citing().SourceEventSeqs == nil)
}

// L-012: time is taken as it is; it may go back, and only seq orders events.
func TestL012TimeIsNotMonotonic(t *testing.T) {
	events := []Event{NewEvent(TypeTurnStart, nil).At(0, 1000), NewEvent("session/title", nil).At(1, 500), NewEvent("session/title", nil).At(2, -1)}
	noError(t, ValidateEvents(V3, events))
	log, err := Scan(file(t, v3Header, events...))
	noError(t, err)
	equal(t, int64(-1), log.Events[2].Time)
}

// L-013: what goes in comes out; numbers and key order are not touched, and the caller's object is copied.
func TestL013LosslessData(t *testing.T) {
	raw := json.RawMessage(`{ "b" : 1.0, "a": 1e400, "10": -0, "z": 12345678901234567890 }`)
	ev := NewEvent("a", raw)
	equal(t, `{"b":1.0,"a":1e400,"10":-0,"z":12345678901234567890}`, string(ev.Data))
	raw[4] = 'X'
	equal(t, `{"b":1.0,"a":1e400,"10":-0,"z":12345678901234567890}`, string(ev.Data))
	object := map[string]any{"k": []int{1}}
	ev = NewEvent("a", object)
	object["k"].([]int)[0] = 2
	equal(t, `{"k":[1]}`, string(ev.Data))
}

// Fault G3, L-030: one record is one line, whatever its values hold.
func TestOneRecordIsOneLine(t *testing.T) {
	value := "LF\n CR\r U+2028\u2028 NUL\x00 tab\t quote\" slash\\ \u0085"
	encoded, err := json.Marshal(value)
	noError(t, err)
	for name, ev := range map[string]Event{
		"any":     NewEvent("a", map[string]string{"x": value}),
		"raw":     NewEvent("a", json.RawMessage(`{"x":`+string(encoded)+`}`)),
		"builder": NewEvent("a", json.RawMessage(`{"x":`+string(appendString(nil, value))+`}`)),
		"spread":  NewEvent("a", json.RawMessage("{\n\t\"x\":\r\n"+string(encoded)+"\n}\n")),
		"literal": {Type: "a", Data: json.RawMessage("{\n\"x\":" + string(encoded) + "\n}")},
	} {
		t.Run("L-030 "+name, func(t *testing.T) {
			line := string(ev.Line())
			isTrue(t, !strings.ContainsAny(line, "\n\r\x00"), line)
			var back struct{ X string }
			noError(t, json.Unmarshal(decoded(t, line).Data, &back))
			equal(t, value, back.X)
			log, err := Scan([]byte(v3Header + "\n" + line + "\n"))
			noError(t, err)
			equal(t, 1, len(log.Events))
		})
	}
	// U+2028 in a raw message stays as it is: plain JSON allows it.
	isTrue(t, strings.Contains(string(NewEvent("a", json.RawMessage("\"\u2028\"")).Line()), "\u2028"))
}

// A bug of the caller is a panic, not a record that no reader accepts.
func TestABrokenInvariantPanics(t *testing.T) {
	for name, broken := range map[string]func(){
		"data that cannot be encoded": func() { NewEvent("a", func() {}) },
		"raw data that is not JSON":   func() { NewEvent("a", json.RawMessage("{")) },
		"a raw line feed in a string": func() { Event{Type: "a", Data: json.RawMessage("\"x\ny\"")}.Line() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { isTrue(t, recover() != nil, "no panic") }()
			broken()
		})
	}
}

// L-014: what is not known may be skipped only if it says so; otherwise the session is unsupported, not corrupt.
func TestL014UnknownTypes(t *testing.T) {
	unknown := NewEvent("future/fact", map[string]any{"x": 1})
	noError(t, ValidateEvents(V3, []Event{unknown.Ours().At(0, 0)}))
	err := ValidateEvents(V3, []Event{unknown.At(0, 0)})
	var unsupported *UnsupportedError
	isTrue(t, errors.As(err, &unsupported), err)
	equal(t, int64(0), unsupported.Seq)
	isTrue(t, strings.Contains(err.Error(), `"future/fact"`) && strings.Contains(err.Error(), "upgrade"), err)

	t.Run("L-014 a type of the other generation is unknown", func(t *testing.T) {
		isTrue(t, ValidateEvents(V3, []Event{NewEvent("assistant/chunk", nil).At(0, 0)}) != nil)
		noError(t, ValidateEvents(V0, []Event{NewEvent("assistant/chunk", nil).At(0, 0)}))
		isTrue(t, ValidateEvents(V0, []Event{NewEvent(TypeDispatch, nil).At(0, 0)}) != nil)
	})
	t.Run("L-014 v3 ignores surface fields of an ignorable unknown event, v0 does not", func(t *testing.T) {
		noError(t, ValidateEvents(V3, []Event{unknown.Ours().Appended().Citing(5).At(0, 0)}))
		isTrue(t, ValidateEvents(V0, []Event{unknown.Ours().Appended().At(0, 0)}) != nil)
	})
	t.Run("L-014 our own events pass", func(t *testing.T) {
		noError(t, ValidateEvents(V3, []Event{RootRecord{RootID: "r"}.Event().At(0, 0)}))
	})
	t.Run("another generation is unsupported", func(t *testing.T) {
		isTrue(t, errors.As(ValidateEvents(2, nil), &unsupported))
	})
}

// L-011: seq is the position; gaps and repeats are errors.
func TestL011Positions(t *testing.T) {
	for _, seqs := range [][]int64{{1}, {0, 2}, {0, 0}} {
		var events []Event
		for _, seq := range seqs {
			events = append(events, NewEvent(TypeTurnStart, map[string]int{"turn": 1}).At(seq, 0))
		}
		var corrupt *CorruptError
		isTrue(t, errors.As(ValidateEvents(V3, events), &corrupt), seqs)
		equal(t, seqs[len(seqs)-1], corrupt.Seq)
	}
}
