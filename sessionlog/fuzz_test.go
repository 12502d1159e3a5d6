package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

// fatalUnlessTyped accepts only the typed errors, with all their words.
func fatalUnlessTyped(t *testing.T, err error) {
	t.Helper()
	var corrupt *CorruptError
	var unsupported *UnsupportedError
	if errors.As(err, &corrupt) && corrupt.Problem != "" && corrupt.Remedy != "" {
		return
	}
	if errors.As(err, &unsupported) && unsupported.Problem != "" && unsupported.Remedy != "" {
		return
	}
	var limit *LimitError
	if errors.As(err, &limit) && limit.Problem != "" && limit.Limit != "" && limit.Most > 0 {
		return
	}
	t.Fatalf("an error without a type or without words: %v", err)
}

// Whatever the bytes: every byte is accounted for, what was accepted exports to the very bytes it was read from, and
// scanning the accepted part again gives the same log, not torn.
func FuzzScan(f *testing.F) {
	f.Add([]byte(v0Header + "\n"))
	f.Add(append(file(f, v3Header, twoTurns()...), "{\"torn"...))
	f.Add([]byte(v3Header + "\n{broken\n{\"type\":\"turn/end\",\"seq\":0,\"time\":1,\"data\":{}}\n"))
	f.Add([]byte(v0Header + "\r\n" + `{"type":"text-chunks","seq0":0}` + "\n\x00\x00"))
	f.Add([]byte(v0Header + "\n" + textRow(0, "a", "b", "c") + "\n" + textRow(3, "d") + "\n"))
	for _, line := range lifeOfAQuestion() {
		f.Add([]byte(v3Header + "\n" + string(line) + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := Scan(data)
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		if log.CommittedBytes+log.TornBytes != int64(len(data)) || log.Torn != (log.TornBytes > 0) || log.Torn != (log.TornProblem != "") {
			t.Fatalf("bytes are unaccounted for: %+v of %d", log, len(data))
		}
		var out bytes.Buffer
		noError(t, Export(&out, log.Header, log.Events))
		if !bytes.Equal(out.Bytes(), data[:log.CommittedBytes]) {
			t.Fatalf("exported %q, read %q", out.Bytes(), data[:log.CommittedBytes])
		}
		again, err := Scan(out.Bytes())
		noError(t, err)
		if again.Torn || len(again.Events) != len(log.Events) {
			t.Fatalf("the accepted part is not sound: %+v", again)
		}
		if err := ValidateEvents(log.Header.Version, log.Events); err != nil {
			fatalUnlessTyped(t, err)
		}
		foldEverything(t, log.Header.Version, log.Events)
	})
}

// foldEverything folds events of any content into every fold: none may panic, and no earlier value may change.
func foldEverything(t *testing.T, version int, events []Event) {
	t.Helper()
	q, l, p := NewQuestions(0), Lists{}, NewProgress(version)
	for _, ev := range events {
		before := string(q.State())
		next, changed := q.Fold(ev)
		if string(q.State()) != before {
			t.Fatal("folding changed the receiver")
		}
		if changed == (view(next) == view(q) && slices.EqualFunc(next.active, q.active, func(a, b activeCall) bool { return bytes.Equal(a.questions, b.questions) })) {
			t.Fatalf("changed is %v: %s, %s", changed, view(q), view(next))
		}
		q, p = next, p.Fold(ev)
		l, _ = l.Fold(ev)
	}
	if _, ok := parse(q.State()); !ok {
		t.Fatalf("the stored state is not JSON: %q", q.State())
	}
	for _, ev := range p.RepairWithSubCalls(CauseInterrupted, int64(len(events)), 0) {
		if _, err := DecodeEvent(ev.Line()); err != nil {
			t.Fatal(err)
		}
	}
}

// A decoded event re-encodes to its bytes, and to an equal event when it is encoded anew.
func FuzzDecodeEvent(f *testing.F) {
	for _, line := range lifeOfAQuestion() {
		f.Add(line)
	}
	f.Add([]byte(`{"type":"\ud800","seq":1e0,"time":-1,"data":{"a":[1.50]},"ignorable":true,"surfaceOp":{"op":"replace"},"sourceEventSeqs":[]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		ev, err := DecodeEvent(line)
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		if !bytes.Equal(ev.Line(), line) {
			t.Fatalf("re-encoded %q as %q", line, ev.Line())
		}
		fresh := ev.At(ev.Seq, ev.Time)
		again, err := DecodeEvent(fresh.Line())
		noError(t, err)
		if again.Type != ev.Type || again.Seq != ev.Seq || again.Time != ev.Time || again.Ignorable != ev.Ignorable ||
			!slices.Equal(again.SourceEventSeqs, ev.SourceEventSeqs) || (again.SourceEventSeqs == nil) != (ev.SourceEventSeqs == nil) ||
			!sameJSON(value(again.Data), value(ev.Data)) || (ev.SurfaceOp == nil) != (again.SurfaceOp == nil) {
			t.Fatalf("%q is not %q", fresh.Line(), line)
		}
		foldEverything(t, V3, []Event{ev})
	})
}

// A decoded header re-encodes to its bytes, and to equal fields when it is encoded anew.
func FuzzDecodeHeader(f *testing.F) {
	f.Add([]byte(v0Header))
	f.Add([]byte(v3Header))
	f.Add([]byte(`{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"seedLength":3,"x":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := DecodeHeader(line)
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		equal(t, string(line), string(h.Line()))
		h.line = nil
		again, err := DecodeHeader(h.Line())
		noError(t, err)
		again.line = nil
		equal(t, h, again)
	})
}

// What is read from arguments is a sound list of as many items as ids, and reads back to itself.
func FuzzParseArguments(f *testing.F) {
	f.Add(`{"questions":[{"id":"a","question":"\ud800","header":"h","options":[{"label":"l","description":"d"}],"multi_select":true}]}`)
	f.Add("{\"questions\":[{\"id\":\"\xed\xa0\x80\",\"question\":\"\\udc00\"}]}")
	f.Fuzz(func(t *testing.T, raw string) {
		questions, ids, ok := ParseArguments(raw)
		checkQuestions(t, questions, ids, ok)
	})
}

func checkQuestions(t *testing.T, questions json.RawMessage, ids []string, ok bool) {
	t.Helper()
	if !ok {
		equal(t, true, questions == nil && ids == nil)
		return
	}
	v, valid := parse(questions)
	isTrue(t, valid && v.isList() && len(ids) > 0, string(questions))
	equal(t, ids, questionIDs(questions))
	stored, ok := checkStored(v)
	isTrue(t, ok, string(questions))
	equal(t, string(questions), string(stored))
}

// As FuzzParseArguments, for a JSON value.
func FuzzParseQuestions(f *testing.F) {
	f.Add([]byte(`{"questions":[{"id":"a","question":"q"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		questions, ids, ok := ParseQuestions(raw)
		checkQuestions(t, questions, ids, ok)
		fromText, _, textOK := ParseArguments(string(raw))
		if ok && (!textOK || string(fromText) != string(questions)) {
			t.Fatalf("as a value %q, as a text %q", questions, fromText)
		}
	})
}

// What is read as answers reads back to itself, through a result and through a reply.
func FuzzParseAnswers(f *testing.F) {
	f.Add([]byte(`[{"id":"a","selected":["x","\ud800"],"custom":""}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		answers, ids, ok := ParseAnswers(raw)
		if !ok {
			return
		}
		again, idsAgain, ok := ParseAnswers(answers)
		isTrue(t, ok)
		equal(t, string(answers), string(again))
		equal(t, ids, idsAgain)
		isTrue(t, sameJSON(value(answers), mustParse(t, raw)), string(answers))
		read, ok := ReadBatch(AnsweredText(answers))
		isTrue(t, ok && string(read) == string(answers))
		m := ReplyMessage("m", "c", json.RawMessage(`[]`), raw)
		read, ok = mapAnswers(firstText(value(m.Raw).get("content")).get("answers"))
		isTrue(t, ok && string(read) == string(answers), string(m.Raw))
	})
}

func mustParse(t *testing.T, raw []byte) value {
	t.Helper()
	v, ok := parse(raw)
	isTrue(t, ok)
	return v
}

// A batch is a sound list; a text is never both a batch for the caller and unreadable as JSON.
func FuzzReadBatch(f *testing.F) {
	f.Add(`{"answers":[{"id":"a","selected":["x"]}],"pending":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		answers, ok := ReadBatch(text)
		if ok {
			_, _, again := ParseAnswers(answers)
			isTrue(t, again, string(answers))
		}
		if IsPending(text) {
			_, isJSON := parseText([]byte(text))
			isTrue(t, isJSON)
		}
	})
}

// A message keeps its record; reading it again changes nothing, and it survives the journey through a splice.
func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{ "id":"m","source":{"kind":"user-question-reply","callId":"c"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseMessage(raw)
		if err != nil {
			return
		}
		again, err := ParseMessage(m.Raw)
		noError(t, err)
		equal(t, m, again)
		s, err := Lists{}.Append(NextTurn, m)
		noError(t, err)
		l, err := Lists{}.Fold(s.Event())
		noError(t, err)
		equal(t, m, l.NextTurn[0])
	})
}

// A splice that is read is written back to the same meaning.
func FuzzReadSplice(f *testing.F) {
	f.Add([]byte(`{"target":"next-step","start":0,"removedCount":0,"inserted":[{"id":"m"}],"outcome":"canceled"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadSplice(data)
		if err != nil {
			return
		}
		again, err := ReadSplice(s.Event().Data)
		noError(t, err)
		equal(t, s, again)
	})
}

// A stored state that is accepted stores to itself.
func FuzzDecodeState(f *testing.F) {
	f.Add([]byte(`{"version":2,"inheritedEventCount":0,"timed":true,"active":[{"callId":"c","questions":[{"id":"q","question":"?","multiSelect":true}],"state":"open"}],"settled":[{"callId":"c","answers":[]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		q, err := DecodeState(raw)
		if err != nil {
			return
		}
		again, err := DecodeState(q.State())
		noError(t, err)
		equal(t, string(q.State()), string(again.State()))
	})
}

// Our own records read back to themselves.
func FuzzDecodeWait(f *testing.F) {
	f.Add([]byte(`{"callId":"c","attempt":"a","deadlineMs":"never","legacy":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeWait(Event{Type: TypeWait, Data: data})
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		again, err := DecodeWait(r.Event())
		noError(t, err)
		equal(t, r, again)
	})
}

// As FuzzDecodeWait.
func FuzzDecodeRoot(f *testing.F) {
	f.Add([]byte(`{"rootId":"r","owner":"o"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRoot(Event{Type: TypeRoot, Data: data})
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		again, err := DecodeRoot(r.Event())
		noError(t, err)
		equal(t, r, again)
	})
}

// As FuzzDecodeWait.
func FuzzDecodeSettled(f *testing.F) {
	f.Add([]byte(`{"callId":"c","outcome":"answered","by":"x","messageId":"m"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeSettled(Event{Type: TypeSettled, Data: data})
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		again, err := DecodeSettled(r.Event())
		noError(t, err)
		equal(t, r, again)
	})
}

// As FuzzDecodeWait.
func FuzzDecodeDelivered(f *testing.F) {
	f.Add([]byte(`{"list":2,"shown":["reply-a"],"correlation":"x","acknowledged":1,"callId":"c"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeDelivered(Event{Type: TypeDelivered, Data: data})
		if err != nil {
			fatalUnlessTyped(t, err)
			return
		}
		again, err := DecodeDelivered(r.Event())
		noError(t, err)
		if len(r.Shown) == 0 {
			r.Shown, again.Shown = nil, nil
		}
		equal(t, r, again)
	})
}

// Data that never was JSON must not break a fold: it says nothing.
func FuzzFoldAnyBytes(f *testing.F) {
	f.Add(TypeToolResult, []byte(`{"message":{"toolCallId":"c","content":[{"type":"text","text":"{`))
	f.Add(TypeToolCall, []byte(`{"name":"ask_user_question","callId":"c","arguments":"{\"questions\":[`))
	f.Fuzz(func(t *testing.T, typ string, data []byte) {
		events := decodeLines(t, lifeOfAQuestion())
		q, p := NewQuestions(0), NewProgress(V3)
		for _, ev := range events[:5] {
			q, p = first(q.Fold(ev)), p.Fold(ev)
		}
		odd := Event{Type: typ, Data: data, SurfaceOp: surfaceAppend}
		_, _ = q.Fold(odd)
		_ = p.Fold(odd)
		_, _ = Lists{}.Fold(odd)
		_, _ = Surface(V3, []Event{odd})
	})
}

func first(q Questions, _ bool) Questions { return q }
