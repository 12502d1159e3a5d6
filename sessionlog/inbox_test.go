package sessionlog

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
)

func msg(id string) Message {
	m, err := ParseMessage(json.RawMessage(`{"id":"` + id + `","role":"user"}`))
	if err != nil {
		panic(err)
	}
	return m
}

func listsOf(nextTurn, nextStep string) Lists {
	var l Lists
	for _, id := range nextTurn {
		l.NextTurn = append(l.NextTurn, msg(string(id)))
	}
	for _, id := range nextStep {
		l.NextStep = append(l.NextStep, msg(string(id)))
	}
	return l
}

func (l Lists) ids() [2]string {
	var out [2]string
	for _, m := range l.NextTurn {
		out[0] += m.ID
	}
	for _, m := range l.NextStep {
		out[1] += m.ID
	}
	return out
}

// applied plays splices through their events, as the log does.
func applied(t testing.TB, l Lists, plan ...Splice) Lists {
	t.Helper()
	for i, s := range plan {
		ev := decoded(t, string(s.Event().At(int64(i), 0).Line()))
		var err error
		l, err = l.Fold(ev)
		noError(t, err)
	}
	return l
}

// L-060: the data of a splice, with its optional fields only when they say something.
func TestL060SpliceEvent(t *testing.T) {
	equal(t, `{"target":"next-turn","start":0,"inserted":[{"id":"a","role":"user"}]}`, string(Splice{Target: NextTurn, Inserted: []Message{msg("a")}}.Event().Data))
	equal(t, `{"target":"next-step","start":1,"removedCount":2,"inserted":[],"outcome":"canceled"}`,
		string(Splice{Target: NextStep, Start: 1, RemovedCount: 2, Outcome: OutcomeCanceled}.Event().Data))
}

// L-061: a first step takes all of next-step and then one of next-turn; another step only the former. Nothing logs nothing.
func TestL061Claim(t *testing.T) {
	l := listsOf("ab", "cd")
	plan := l.Claim(NextTurn)
	equal(t, []Splice{{Target: NextStep, RemovedCount: 2}, {Target: NextTurn, RemovedCount: 1}}, plan)
	equal(t, [2]string{"b", ""}, applied(t, l, plan...).ids())
	equal(t, [2]string{"ab", ""}, applied(t, l, l.Claim(NextStep)...).ids())
	equal(t, 0, len(Lists{}.Claim(NextTurn)))
	equal(t, [2]string{"ab", "cd"}, l.ids(), "L-066 planning changes nothing")
}

// L-062: every other removal is a cancellation; replace is one splice; clear takes next-step first.
func TestL062Cancel(t *testing.T) {
	l := listsOf("ab", "c")
	s, m, ok := l.Remove("b")
	isTrue(t, ok)
	equal(t, "b", m.ID)
	equal(t, Splice{Target: NextTurn, Start: 1, RemovedCount: 1, Outcome: OutcomeCanceled}, s)
	_, _, ok = l.Remove("x")
	isTrue(t, !ok)

	s, ok, err := l.Replace("a", msg("z"))
	noError(t, err)
	isTrue(t, ok && s.Outcome == OutcomeCanceled)
	equal(t, [2]string{"zb", "c"}, applied(t, l, s).ids())
	_, ok, err = l.Replace("x", msg("z"))
	isTrue(t, !ok && err == nil)

	plan := l.Clear()
	equal(t, []Target{NextStep, NextTurn}, []Target{plan[0].Target, plan[1].Target})
	equal(t, [2]string{"", ""}, applied(t, l, plan...).ids())
	equal(t, 0, len(Lists{}.Clear()))
}

// L-063: an id is pending once across both lists; replacing a message by one with its own id is allowed.
func TestL063UniqueIDs(t *testing.T) {
	l := listsOf("a", "b")
	var duplicate *DuplicateError
	_, err := l.Append(NextStep, msg("a"))
	isTrue(t, errors.As(err, &duplicate) && duplicate.ID == "a" && duplicate.Target == NextTurn, err)
	_, err = l.Prepend(NextStep, msg("b"))
	isTrue(t, errors.As(err, &duplicate), err)
	_, ok, err := l.Replace("a", msg("b"))
	isTrue(t, !ok && errors.As(err, &duplicate), err)
	_, ok, err = l.Replace("a", msg("a"))
	isTrue(t, ok && err == nil, err)
	_, ok, err = l.Splice(NextTurn, 0, 1, msg("x"), msg("x"))
	isTrue(t, !ok && errors.As(err, &duplicate), err)
	_, ok, err = l.Splice(NextTurn, 0, 1, msg("a"))
	isTrue(t, ok && err == nil, err)
}

// L-064: the usual list-splice conventions; the clamped numbers are logged.
func TestL064SplicePositions(t *testing.T) {
	l := listsOf("", "abc")
	for _, c := range []struct {
		start, count  float64
		insert        string
		wantAt, wantN int
		wantChange    bool
	}{
		{-1, 99, "x", 2, 1, true}, {99, 1, "x", 3, 0, true}, {-99, 1.9, "", 0, 1, true}, {1.9, 1, "", 1, 1, true}, {-0.5, 1, "", 0, 1, true},
		{0, -3, "", 0, 0, false}, {math.NaN(), math.NaN(), "x", 0, 0, true}, {math.Inf(-1), math.Inf(1), "", 0, 3, true}, {math.Inf(1), 1, "", 0, 0, false},
	} {
		var inserted []Message
		if c.insert != "" {
			inserted = append(inserted, msg(c.insert))
		}
		s, changed, err := l.Splice(NextStep, c.start, c.count, inserted...)
		noError(t, err)
		equal(t, []any{c.wantAt, c.wantN, c.wantChange}, []any{s.Start, s.RemovedCount, changed}, c)
		equal(t, s.RemovedCount > 0, s.Outcome == OutcomeCanceled)
	}
}

// L-065: a splice that does not fit, or a duplicate, makes the restore fail; other events are ignored.
func TestL065Restore(t *testing.T) {
	fold := func(data string) (Lists, error) {
		return listsOf("a", "b").Fold(NewEvent(TypeInboxSpliced, json.RawMessage(data)).At(7, 0))
	}
	l, err := fold(`{"inserted":[{"id":"c"}],"start":1.0,"target":"next-turn"}`)
	noError(t, err)
	equal(t, [2]string{"ac", "b"}, l.ids())
	for name, data := range map[string]string{
		"start behind the end":   `{"target":"next-turn","start":2,"inserted":[]}`,
		"more than there is":     `{"target":"next-turn","start":0,"removedCount":2,"inserted":[]}`,
		"negative start":         `{"target":"next-turn","start":-1,"inserted":[]}`,
		"a huge start":           `{"target":"next-turn","start":9007199254740991,"removedCount":9007199254740991,"inserted":[]}`,
		"a fraction":             `{"target":"next-turn","start":0.5,"inserted":[]}`,
		"removedCount null":      `{"target":"next-turn","start":0,"removedCount":null,"inserted":[]}`,
		"an unknown list":        `{"target":"later","start":0,"inserted":[]}`,
		"no inserted":            `{"target":"next-turn","start":0}`,
		"a message without id":   `{"target":"next-turn","start":0,"inserted":[{"role":"user"}]}`,
		"another outcome":        `{"target":"next-turn","start":0,"inserted":[],"outcome":"claimed"}`,
		"an id of the same list": `{"target":"next-turn","start":0,"inserted":[{"id":"a"}]}`,
		"an id of the other":     `{"target":"next-turn","start":0,"inserted":[{"id":"b"}]}`,
		"an id twice":            `{"target":"next-turn","start":0,"inserted":[{"id":"x"},{"id":"x"}]}`,
		"no record":              `[]`,
	} {
		t.Run("L-065 "+name, func(t *testing.T) {
			l, err := fold(data)
			var corrupt *CorruptError
			isTrue(t, errors.As(err, &corrupt) && corrupt.Seq == 7, err)
			equal(t, [2]string{"a", "b"}, l.ids(), "the lists are as they were")
		})
	}
	l, err = listsOf("a", "").Fold(userMessage("a"))
	isTrue(t, err == nil && l.ids() == [2]string{"a", ""})
}

// Take deletes exactly these, all or none, with positions that are right one after the other.
func TestTake(t *testing.T) {
	l := listsOf("abc", "de")
	plan, taken, err := l.Take("c", "a", "d")
	noError(t, err)
	equal(t, []string{"c", "a", "d"}, []string{taken[0].ID, taken[1].ID, taken[2].ID})
	equal(t, [2]string{"b", "e"}, applied(t, l, plan...).ids())
	for _, s := range plan {
		equal(t, "", s.Outcome, "a claim is not a cancellation")
	}
	var missing *MissingError
	_, _, err = l.Take("a", "x")
	isTrue(t, errors.As(err, &missing) && missing.ID == "x", err)
	_, _, err = l.Take("a", "a")
	isTrue(t, errors.As(err, &missing), err)
	plan, taken, err = l.Take()
	isTrue(t, plan == nil && taken == nil && err == nil)
}

// a queued reply is found by the call it answers, in either list.
func TestQ102ReplyFor(t *testing.T) {
	reply := ReplyMessage("r", "c1", json.RawMessage(`[]`), json.RawMessage(`[]`))
	l := listsOf("a", "b")
	_, found := l.ReplyFor("c1")
	isTrue(t, !found)
	for _, target := range []Target{NextTurn, NextStep} {
		s, err := l.Append(target, reply)
		noError(t, err)
		m, found := applied(t, l, s).ReplyFor("c1")
		isTrue(t, found && m.ID == "r")
		where, _, found := applied(t, l, s).Find("r")
		isTrue(t, found && where == target)
	}
	_, found = l.ReplyFor("")
	isTrue(t, !found, "an ordinary message is nobody's reply")
}

// only the source kind makes a reply.
func TestQ006ReplySource(t *testing.T) {
	for raw, want := range map[string]string{
		`{"id":"m","source":{"kind":"user-question-reply","callId":"c","outcome":"answered"}}`: "c",
		`{"id":"m","source":{"kind":"user","callId":"c"}}`:                                     "",
		`{"id":"m","source":{"kind":"user-question-reply","callId":7}}`:                        "",
		`{"id":"m","source":"user-question-reply"}`:                                            "",
		`{"id":"m"}`: "",
	} {
		m, err := ParseMessage(json.RawMessage(raw))
		noError(t, err)
		equal(t, want, m.ReplyTo, raw)
	}
	for _, raw := range []string{``, `[]`, `{}`, `{"id":7}`, `{"id":"m"`} {
		_, err := ParseMessage(json.RawMessage(raw))
		isTrue(t, err != nil, raw)
	}
	raw := json.RawMessage(`{ "id" : "m" }`)
	m, err := ParseMessage(raw)
	noError(t, err)
	raw[4] = 'X'
	equal(t, `{"id":"m"}`, string(m.Raw), "a message shares no memory with what it was read from")
}
