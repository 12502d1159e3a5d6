package sessionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// L-014: our own facts are ignorable events; they encode as their JSON tags say and read back.
func TestOurRecords(t *testing.T) {
	deadline := int64(1_700_000_000_000)
	roots := map[string]RootRecord{
		`{"rootId":"r1"}`:               {RootID: "r1"},
		`{"rootId":"r\n2","owner":"s"}`: {RootID: "r\n2", Owner: "s"},
	}
	for want, r := range roots {
		ev := r.Event()
		isTrue(t, ev.Ignorable && ev.Type == TypeRoot)
		equal(t, want, string(ev.Data))
		back, err := DecodeRoot(decoded(t, string(ev.Line())))
		noError(t, err)
		equal(t, r, back)
	}
	waits := map[string]WaitRecord{
		`{"callId":"c","attempt":"a","deadlineMs":"never"}`:                                      {CallID: "c", Attempt: "a"},
		`{"callId":"c","attempt":"a","deadlineMs":1700000000000,"synthetic":true,"legacy":true}`: {CallID: "c", Attempt: "a", DeadlineMS: &deadline, Synthetic: true, Legacy: true},
		`{"callId":"\ud800","attempt":"","deadlineMs":"never","legacy":true}`:                    {CallID: "\xed\xa0\x80", Legacy: true},
		`{"callId":"c","attempt":"a","deadlineMs":"never","receipt":true,"waitMaxMs":50000,"client":"claude-code","correlation":"toolu_1"}`: {
			CallID: "c", Attempt: "a", Receipt: true, WaitMaxMS: 50_000, Client: "claude-code", Correlation: "toolu_1"},
	}
	for want, r := range waits {
		ev := r.Event()
		isTrue(t, ev.Ignorable && ev.Type == TypeWait)
		equal(t, want, string(ev.Data))
		back, err := DecodeWait(decoded(t, string(ev.Line())))
		noError(t, err)
		equal(t, r, back)
		tagged, err := json.Marshal(r)
		noError(t, err)
		equal(t, want, string(tagged))
		var plain WaitRecord
		noError(t, json.Unmarshal(tagged, &plain))
		equal(t, r, plain)
	}
	delivered := map[string]DeliveredRecord{
		`{"list":3,"shown":["reply-a","b\"c"],"correlation":"toolu_2"}`: {List: 3, Shown: []string{"reply-a", `b"c`}, Correlation: "toolu_2"},
		`{"acknowledged":3}`:          {Acknowledged: 3},
		`{"callId":"q-1"}`:            {CallID: "q-1"},
		`{"list":4,"repeatOf":"q-1"}`: {List: 4, RepeatOf: "q-1"},
		`{}`:                          {},
	}
	for want, r := range delivered {
		ev := r.Event()
		isTrue(t, ev.Ignorable && ev.Type == TypeDelivered)
		equal(t, want, string(ev.Data))
		tagged, err := json.Marshal(r)
		noError(t, err)
		equal(t, want, string(tagged), "the tags say the same")
		back, err := DecodeDelivered(decoded(t, string(ev.Line())))
		noError(t, err)
		equal(t, r, back)
	}
	settled := map[string]SettledRecord{
		`{"callId":"c","outcome":"answered"}`: {CallID: "c", Outcome: "answered"},
		`{"callId":"c","submissionId":"s","by":"ann","door":"web","outcome":"answered","messageId":"m","reason":"r"}`: {
			CallID: "c", SubmissionID: "s", By: "ann", Door: "web", Outcome: "answered", MessageID: "m", Reason: "r"},
	}
	for want, r := range settled {
		ev := r.Event()
		isTrue(t, ev.Ignorable && ev.Type == TypeSettled)
		equal(t, want, string(ev.Data))
		tagged, err := json.Marshal(r)
		noError(t, err)
		equal(t, want, string(tagged), "the tags say the same")
		back, err := DecodeSettled(decoded(t, string(ev.Line())))
		noError(t, err)
		equal(t, r, back)
	}
}

// What cannot be read says which event and which field; what a newer build added is let through.
func TestBrokenRecords(t *testing.T) {
	for _, data := range []string{`null`, `{}`, `{"callId":"c","attempt":"a"}`, `{"callId":7,"attempt":"a","deadlineMs":"never"}`,
		`{"callId":"c","attempt":"a","deadlineMs":"soon"}`, `{"callId":"c","attempt":"a","deadlineMs":1.5}`, `{"callId":"c","attempt":"a","deadlineMs":"never","legacy":1}`} {
		_, err := DecodeWait(NewEvent(TypeWait, json.RawMessage(data)).At(5, 0))
		var corrupt *CorruptError
		isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 5, data)
	}
	_, err := DecodeWait(NewEvent(TypeWait, json.RawMessage(`{"callId":"c","attempt":"a","deadlineMs":"never","new":1}`)))
	noError(t, err)
	_, err = DecodeRoot(NewEvent(TypeWait, json.RawMessage(`{"rootId":"r"}`)))
	isTrue(t, err != nil, "another type")
	_, err = DecodeRoot(Event{Type: TypeRoot, Data: json.RawMessage(`{`)})
	isTrue(t, err != nil)
	for _, data := range []string{`null`, `{"list":-1}`, `{"list":"1"}`, `{"shown":{}}`, `{"shown":[1]}`, `{"acknowledged":1.5}`, `{"callId":1}`} {
		_, err = DecodeDelivered(NewEvent(TypeDelivered, json.RawMessage(data)))
		isTrue(t, err != nil, data)
	}
	_, err = DecodeSettled(NewEvent(TypeSettled, json.RawMessage(`{"callId":"c"}`)))
	isTrue(t, err != nil, "no outcome")
}

// A record of a newer build may have any number of fields: the known ones are
// read, wherever they stand, and of a repeated one the last counts.
func TestARecordMayHaveMoreFieldsThanOurs(t *testing.T) {
	for more := range 20 {
		data := []byte(`{"callId":"old","outcome":"answered"`)
		for i := range more {
			data = fmt.Appendf(data, `,"new%d":[%d,"callId"]`, i, i)
		}
		data = append(data, `,"by":"ada","callId":"c1"}`...)
		r, err := DecodeSettled(Event{Type: TypeSettled, Data: data})
		noError(t, err)
		equal(t, SettledRecord{CallID: "c1", Outcome: "answered", By: "ada"}, r, more)
	}
}

// Where a string ends is decided by the backslashes in front of its quotes.
func TestSkipStringEndsAtItsOwnQuote(t *testing.T) {
	for text, want := range map[string]int{
		`""`: 2, `"a" `: 3, `"\""`: 4, `"\\"`: 4, `"\\\""x`: 6, `"\\\\"`: 6, `"{\"a\":\"\\\"\"}",`: 18,
		`"`: 1, `"\"`: 3, `"\\\"`: 5, `"a\`: 3,
	} {
		equal(t, want, skipString([]byte(text), 0), text)
	}
}
