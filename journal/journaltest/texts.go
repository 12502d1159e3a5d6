package journaltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// TextHarness is one text index under test, with the journal it belongs to.
type TextHarness struct {
	Journal journal.Journal
	Texts   journal.Texts
	// Judge searches the same journal in the plainest way.
	Judge journal.Texts
	// Reopen closes both and opens what they kept. nil: they keep nothing.
	Reopen func(t *testing.T) TextHarness
}

// ExerciseTexts runs the suite of journal.Texts. open makes an empty journal with
// its index; whoever makes them closes them when the test ends, after the test
// may have done so.
func ExerciseTexts(t *testing.T, open func(t *testing.T) TextHarness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h TextHarness)
	}{
		{"a search sees what was appended before it", aSearchSeesWhatWasAppended},
		{"a query is data: every mark and operator (S-060, S-061, fault Q1)", aQueryIsData},
		{"parts of sentences without spaces are found, cut as a substring (fault Q3)", partsOfSentencesAreFound},
		{"events are ordered by spans, length, time and number (S-062)", eventsAreOrdered},
		{"a session is shown by its best event that passes the filters (S-022, S-036)", aSessionIsShownByItsBest},
		{"filters on sessions (S-012, S-032, S-035)", filtersOnSessions},
		{"filters on events (S-032, S-034, S-035)", filtersOnEvents},
		{"surfaces follow replacements (S-080, L-027)", surfacesFollowReplacements},
		{"a rewritten result must be the same result (L-025)", aRewrittenResult},
		{"one damaged session spoils nobody's search (S-111 by our deviation)", oneDamagedSession},
		{"a sensitive answer is not in the index (promise 8)", aSensitiveAnswer},
		{"a session that was cut off is searched with its missing end (S-112)", aSessionThatWasCutOff},
		{"a deleted session is gone, and its name can live again", aDeletedSessionIsGone},
		{"pages follow each other without gap or repeat", pagesFollowEachOther},
		{"a page behind something that is gone is refused (fault Q5)", aStalePage},
		{"profiles, titles and children (S-101, S-110)", profilesAndChildren},
		{"texts are cleaned, and long ones shown in part (S-063, S-064)", textsAreCleaned},
		{"a query without meaning is refused", aQueryWithoutMeaning},
		{"a done context ends a search", aDoneContextEndsASearch},
		{"a closed index is unavailable", aClosedIndexIsUnavailable},
		{"searching while sessions are written", searchingWhileWriting},
		{"random corpora agree with reading every log", randomCorpora},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// Past is a workspace for texts that need one.
const Past = "/srv/past"

// PastHeader returns the header of a session in a workspace.
func PastHeader(session, cwd, parent string, created int64) *sessionlog.Header {
	return &sessionlog.Header{Version: sessionlog.V3, ID: session, CreatedAt: created, CWD: cwd, ParentSession: parent}
}

// The events that texts are about. None is stamped.

// User is a message that a person typed.
func User(text string) sessionlog.Event {
	return sessionlog.NewEvent(sessionlog.TypeUserMessage, sessionlog.UserMessage("m", text, "").Raw).Appended()
}

// Assistant is a model's message.
func Assistant(text string) sessionlog.Event {
	return sessionlog.AssistantMessage(1, 1, object(map[string]any{
		"id": "m", "role": "assistant", "source": map[string]any{"kind": "model"}, "content": []any{map[string]any{"type": "text", "text": text}},
	}))
}

// Called is the record that a tool was called.
func Called(call, tool, arguments string) sessionlog.Event {
	return sessionlog.ToolCall(1, 1, call, tool, arguments)
}

// Result is what a tool returned.
func Result(call, text string) sessionlog.Event {
	return sessionlog.ToolResult(1, 1, call, text, false, "", "", -1, "r")
}

// Titled gives a session a title.
func Titled(title string) sessionlog.Event {
	return sessionlog.NewEvent("session/title", map[string]any{"title": title, "messageSeqs": []int{}, "source": map[string]any{"kind": "user"}})
}

// Replacing puts an event in place of others, from one to another in surface
// order, citing all of these.
func Replacing(ev sessionlog.Event, start, end int64, cited ...int64) sessionlog.Event {
	ev = ev.Citing(cited...)
	ev.SurfaceOp = object(map[string]any{"op": "replace", "startSeq": start, "endSeq": end})
	return ev
}

func object(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// textTime is the time of the event with sequence number 0.
const textTime = 1_700_000_000_000

// writer appends to one session.
type writer struct {
	t       *testing.T
	j       journal.Journal
	session string
	epoch   int64
	next    int64
}

// birth creates a session with events, one second apart.
func birth(t *testing.T, j journal.Journal, h *sessionlog.Header, events ...sessionlog.Event) *writer {
	t.Helper()
	w := &writer{t: t, j: j, session: h.ID}
	w.append(h, 0, events)
	return w
}

func (w *writer) add(events ...sessionlog.Event) *writer {
	w.t.Helper()
	w.append(nil, w.next*1000, events)
	return w
}

func (w *writer) append(h *sessionlog.Header, time int64, events []sessionlog.Event) {
	w.t.Helper()
	stamped := slices.Clone(events)
	for i, ev := range stamped {
		stamped[i] = ev.At(w.next+int64(i), textTime+time+int64(i)*1000)
	}
	a := mustAppend(w.t, w.j, journal.Batch{Session: w.session, Epoch: w.epoch, Seq: w.next, Header: h, Events: stamped})
	w.epoch, w.next = a.Epoch, w.next+int64(len(events))
}

func (w *writer) delete() {
	w.t.Helper()
	mustAppend(w.t, w.j, journal.Batch{Session: w.session, Epoch: w.epoch, Seq: w.next, Delete: true})
}

func query(phrase string) journal.TextQuery {
	return journal.TextQuery{
		Phrase: words.NewPhrase(phrase, words.Whole), Limit: journal.TextHitsMax, Sessions: journal.SessionFilter{Everywhere: true},
	}
}

func queryIn(session, phrase string) journal.TextQuery {
	q := query(phrase)
	q.In = session
	return q
}

// search searches with the index and with the judge, which must agree.
func (h TextHarness) search(t *testing.T, q journal.TextQuery) journal.TextPage {
	t.Helper()
	got, err := h.Texts.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("search: %v", err)
	}
	want, err := h.Judge.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("judge: %v", err)
	}
	if g, w := showPage(got), showPage(want); g != w {
		t.Fatalf("%s:\n%s\nby reading every log:\n%s", showQuery(q), g, w)
	}
	return got
}

// showQuery writes a query for whoever has to find out why it failed.
func showQuery(q journal.TextQuery) string {
	return fmt.Sprintf("%q cut %s in %q of %s %s after %s", q.Phrase.Tokens(), q.Phrase.Cut(), q.In, object(q.Sessions), object(q.Events), object(q.After))
}

// showPage writes a page in a form that two backends share.
func showPage(p journal.TextPage) string {
	var b strings.Builder
	for _, h := range p.Hits {
		fmt.Fprintf(&b, "%+v %s %s synthetic=%v %q %s\n", h.TextKey, h.Type, h.Surface, h.Synthetic, h.Snippet, showProfile(h.Profile))
	}
	if p.Next != nil {
		fmt.Fprintf(&b, "next %+v\n", *p.Next)
	}
	for _, t := range p.Troubled {
		fmt.Fprintf(&b, "troubled %s unsupported=%v\n", t.Session, t.Unsupported)
	}
	return b.String()
}

func showProfile(p journal.Profile) string {
	trouble := ""
	if p.Trouble != nil {
		trouble = fmt.Sprintf(" trouble unsupported=%v", p.Trouble.Unsupported)
	}
	return fmt.Sprintf("{%s %s events=%d title=%q,%v%s}", p.Session, p.Header.Line(), p.Events, p.Title, p.Titled, trouble)
}

// where lists hits as session:seq.
func where(p journal.TextPage) string {
	var out []string
	for _, h := range p.Hits {
		out = append(out, fmt.Sprintf("%s:%d", h.Session, h.Seq))
	}
	return strings.Join(out, " ")
}

func (h TextHarness) want(t *testing.T, q journal.TextQuery, want string) journal.TextPage {
	t.Helper()
	page := h.search(t, q)
	if got := where(page); got != want {
		t.Fatalf("%q found %q, want %q", q.Phrase.Tokens(), got, want)
	}
	return page
}

func aSearchSeesWhatWasAppended(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1))
	for i := range 20 {
		w.add(User(fmt.Sprintf("needle number%d", i)))
		h.want(t, queryIn("s", fmt.Sprintf("number%d", i)), fmt.Sprintf("s:%d", i))
	}
	page := h.search(t, query("needle"))
	last, err := h.Journal.Last(t.Context())
	if err != nil || page.At != last {
		t.Fatalf("the search saw the journal up to %d; it is at %d, %v", page.At, last, err)
	}
}

func aQueryIsData(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("s", Past, "", 1),
		User("Alpha beta gamma"), User("beta alpha"), User("alpha-beta, GAMMA!"), User("Crème Brûlée naïve"),
		User("foo_bar fooBar foo.bar"), User(`user "quoted" AND OR NOT NEAR(x) * col:val`), User("e\u0301 decomposed café"),
		User("x1 2y 3.14 v2.0"), User("emoji 😀 smile"), User("workspace w1 whole sub"))
	for q, want := range map[string]string{
		"alpha beta": "s:0 s:2", "alpha  BETA": "s:0 s:2", "alpha-beta": "s:0 s:2", "creme brulee": "s:3", "CRÈME": "s:3",
		"foo": "s:4", "foo_bar": "s:4", "foobar": "s:4", `"quoted"`: "s:5", "AND": "s:5", "OR NOT": "s:5", "near(x)": "s:5", "*": "",
		"col:val": "s:5", "cafe": "s:6", "é": "s:6", "3.14": "s:7", "14": "s:7", "v2": "s:7", "😀": "", "emoji smile": "s:8",
		"!!!": "", "alph": "", "alpha*": "s:1 s:0 s:2", "": "", "w1": "s:9", "workspace : w1": "s:9", "whole : alpha": "", `" OR "`: "s:5", "NEAR": "s:5",
		"alpha NOT beta": "", "^alpha": "s:1 s:0 s:2", "{whole} : alpha": "", "alpha + beta": "s:0 s:2", "-- '; DROP TABLE words": "",
	} {
		page := h.search(t, queryIn("s", q))
		got := strings.Fields(where(page))
		slices.Sort(got)
		expect := strings.Fields(want)
		slices.Sort(expect)
		if !slices.Equal(got, expect) {
			t.Errorf("%q found %q, want %q", q, got, expect)
		}
	}
	for mark := rune(1); mark < 0x80; mark++ { // every mark of ASCII, beside, around and inside of words
		if mark >= '0' && mark <= '9' || mark >= 'a' && mark <= 'z' || mark >= 'A' && mark <= 'Z' {
			continue
		}
		for _, q := range []string{"decomposed%cCAFE", "%cdecomposed%c", "decomposed%c%ccafe%c"} {
			h.want(t, queryIn("s", strings.ReplaceAll(q, "%c", string(mark))), "s:6")
		}
	}
}

func partsOfSentencesAreFound(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("s", Past, "", 1),
		User("我们需要在数据库里实现全文搜索功能"), User("この関数はファイルを読み込みます"), User("데이터베이스에서 검색했습니다"),
		User("使用SQLite数据库v2版"), User("plain text, no such thing"), User("哈哈哈哈"))
	for q, want := range map[string]string{
		"数据": "s:0 s:3", "全文": "s:0", "数据库": "s:3 s:0", "全文搜索": "s:0", "搜索功能": "s:0", "文全": "",
		"関数": "s:1", "ファイル": "s:1", "読み込み": "s:1", "검색": "s:2", "데이터": "s:2", "베이스에": "s:2",
		"sqlite": "s:3", "SQLite数据": "s:3", "v2": "s:3", "plain": "s:4", "哈哈": "s:5", "哈": "s:5",
	} {
		q := queryIn("s", q)
		q.Phrase = q.Phrase.In(words.Substring)
		page := h.search(t, q)
		got, expect := strings.Fields(where(page)), strings.Fields(want)
		slices.Sort(got)
		slices.Sort(expect)
		if !slices.Equal(got, expect) {
			t.Errorf("%q found %q, want %q", q.Phrase.Tokens(), got, expect)
		}
	}
	h.want(t, queryIn("s", "数据库"), "") // whole runs only, as in the reference (S-061)
	h.want(t, queryIn("s", "我们需要在数据库里实现全文搜索功能"), "s:0")
}

func eventsAreOrdered(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1))
	for seq, at := range []int64{0, 5, 5, 0, 0, 5, 0, 0, 9} {
		text := []string{"needle", "needle", "needle", "needle needle", "needle and a longer tail", "needle and a longer tail", "needle 😀😀", "needle abc", "a a a a needle"}[seq]
		mustAppend(t, h.Journal, journal.Batch{Session: "s", Epoch: w.epoch, Seq: int64(seq), Events: []sessionlog.Event{User(text).At(int64(seq), textTime+at)}})
	}
	h.want(t, queryIn("s", "needle"), "s:3 s:2 s:1 s:0 s:6 s:7 s:8 s:5 s:4")
	// Sessions by the keys of their best, then by id.
	birth(t, h.Journal, PastHeader("b", Past, "", 1), User("needle needle"))
	birth(t, h.Journal, PastHeader("a", Past, "", 1), User("needle needle"))
	birth(t, h.Journal, PastHeader("Z", Past, "", 1), User("x"), User("needle needle"))
	h.want(t, query("needle"), "Z:1 a:0 b:0 s:3")
	h.want(t, query("a a"), "s:8") // overlapping: one span
}

func aSessionIsShownByItsBest(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("a", Past, "", 1), User("needle needle needle"), Assistant("needle"), User("needle needle"))
	birth(t, h.Journal, PastHeader("b", Past, "", 1), User("one needle"), Called("c", "needle", "{}"))
	h.want(t, query("needle"), "a:0 b:1")
	q := query("needle")
	q.Events.Types = []string{sessionlog.TypeAssistantMessage}
	h.want(t, q, "a:1")
	q.Events.Types = append(q.Events.Types, sessionlog.TypeToolCall, "unheard/of")
	h.want(t, q, "a:1 b:1")
	q.Events.Types = []string{"unheard/of"}
	h.want(t, q, "")
}

func filtersOnSessions(t *testing.T, h TextHarness) {
	for i, s := range []struct{ id, cwd, parent string }{
		{"root", Past, ""}, {"child", Past, "root"}, {"orphan", Past, "nobody"}, {"slash", Past + "/", "root"}, {"nowhere", "", ""}, {"other", "/srv", ""},
	} {
		birth(t, h.Journal, PastHeader(s.id, s.cwd, s.parent, int64(100+i)), User("needle"))
	}
	at := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name string
		f    journal.SessionFilter
		want string
	}{
		{"everywhere", journal.SessionFilter{Everywhere: true}, "child nowhere orphan other root slash"},
		{"one workspace, as a string", journal.SessionFilter{CWDs: []string{Past}}, "child orphan root"},
		{"one workspace by two names", journal.SessionFilter{CWDs: []string{Past, Past + "/", "/unheard"}}, "child orphan root slash"},
		{"a workspace nobody has", journal.SessionFilter{CWDs: []string{Past + "//"}}, ""},
		{"ids", journal.SessionFilter{CWDs: []string{Past}, IDs: []string{"root", "other", "root", "unheard"}}, "root"},
		{"no ids", journal.SessionFilter{CWDs: []string{Past}, IDs: []string{}}, ""},
		{"except", journal.SessionFilter{CWDs: []string{Past}, Except: "root"}, "child orphan"},
		{"parents", journal.SessionFilter{CWDs: []string{Past}, Parents: []string{"root"}}, "child"},
		{"roots", journal.SessionFilter{CWDs: []string{Past}, Roots: true}, "root"},
		{"roots or parents", journal.SessionFilter{CWDs: []string{Past}, Roots: true, Parents: []string{"nobody"}}, "orphan root"},
		{"no parents", journal.SessionFilter{CWDs: []string{Past}, Parents: []string{}}, ""},
		{"no parents, or roots", journal.SessionFilter{Everywhere: true, Roots: true, Parents: []string{}}, "nowhere other root"},
		{"created from", journal.SessionFilter{CWDs: []string{Past}, Created: journal.Bounds{From: at(101)}}, "child orphan"},
		{"created to", journal.SessionFilter{CWDs: []string{Past}, Created: journal.Bounds{To: at(101)}}, "child root"},
		{"created in between", journal.SessionFilter{Everywhere: true, Created: journal.Bounds{From: at(103), To: at(104)}}, "nowhere slash"},
		{"live", journal.SessionFilter{CWDs: []string{Past}, LiveOnly: true}, "child"},
		{"live, of some", journal.SessionFilter{CWDs: []string{Past}, LiveOnly: true, IDs: []string{"root"}}, ""},
	} {
		q := query("needle")
		q.Sessions, q.Live = c.f, func(s string) bool { return s == "child" || s == "slash" }
		var got []string
		for _, hit := range h.search(t, q).Hits {
			got = append(got, hit.Session)
		}
		if slices.Sort(got); strings.Join(got, " ") != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	for _, texts := range []journal.Texts{h.Texts, h.Judge} {
		if got, err := texts.Workspaces(t.Context()); err != nil || strings.Join(got, " ") != "/srv "+Past+" "+Past+"/" {
			t.Errorf("workspaces %q, %v", got, err)
		}
	}
	q := queryIn("child", "needle")
	q.Sessions = journal.SessionFilter{CWDs: []string{"/srv"}}
	h.want(t, q, "") // in one session, the other filters hold as well
	h.want(t, queryIn("unheard", "needle"), "")
}

func filtersOnEvents(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1), User("needle"), Assistant("needle 1"), Called("c", "needle", "12"), Result("c", "needle 123"), User("needle 1234"))
	w.add(Replacing(User("needle summary"), 0, 1, 0, 1))
	at := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name string
		f    journal.EventFilter
		want string
	}{
		{"all", journal.EventFilter{}, "s:0 s:1 s:2 s:3 s:4 s:5"},
		{"from", journal.EventFilter{Seq: journal.Bounds{From: at(3)}}, "s:3 s:4 s:5"},
		{"to", journal.EventFilter{Seq: journal.Bounds{To: at(1)}}, "s:0 s:1"},
		{"from above to", journal.EventFilter{Seq: journal.Bounds{From: at(3), To: at(2)}}, ""},
		{"to before the first", journal.EventFilter{Seq: journal.Bounds{To: at(-1)}}, ""},
		{"numbers beyond any", journal.EventFilter{Seq: journal.Bounds{From: at(1 << 52), To: at(1<<53 - 1)}}, ""},
		{"to beyond any", journal.EventFilter{Seq: journal.Bounds{From: at(5), To: at(1<<53 - 1)}}, "s:5"},
		{"time from", journal.EventFilter{Time: journal.Bounds{From: at(textTime + 4000)}}, "s:4 s:5"},
		{"time to", journal.EventFilter{Time: journal.Bounds{To: at(textTime + 999)}}, "s:0"},
		{"current", journal.EventFilter{Surfaces: []sessionlog.Class{sessionlog.Current}}, "s:3 s:4 s:5"},
		{"shadowed or log-only", journal.EventFilter{Surfaces: []sessionlog.Class{sessionlog.Shadowed, sessionlog.LogOnly}}, "s:0 s:1 s:2"},
		{"no surface", journal.EventFilter{Surfaces: []sessionlog.Class{}}, ""},
		{"types", journal.EventFilter{Types: []string{sessionlog.TypeUserMessage}}, "s:0 s:4 s:5"},
		{"no type", journal.EventFilter{Types: []string{}}, ""},
		{"both", journal.EventFilter{Types: []string{sessionlog.TypeUserMessage}, Surfaces: []sessionlog.Class{sessionlog.Current}, Seq: journal.Bounds{To: at(4)}}, "s:4"},
	} {
		q := queryIn("s", "needle")
		q.Events = c.f
		got := strings.Fields(where(h.search(t, q)))
		if slices.Sort(got); strings.Join(got, " ") != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
		q.In = "" // and when the best of a session is chosen
		if hits := h.search(t, q).Hits; (len(hits) > 0) != (c.want != "") {
			t.Errorf("%s: %d sessions", c.name, len(hits))
		}
	}
}

func surfacesFollowReplacements(t *testing.T, h TextHarness) {
	surfaces := func() string {
		var out []string
		hits := h.search(t, queryIn("s", "needle")).Hits
		slices.SortFunc(hits, func(a, b journal.TextHit) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, hit := range hits {
			out = append(out, hit.Surface.String()[:1])
		}
		return strings.Join(out, "")
	}
	want := func(want string) {
		t.Helper()
		if got := surfaces(); got != want {
			t.Fatalf("surfaces %s, want %s", got, want)
		}
	}
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1), User("needle 0"), Assistant("needle 1"), User("needle 2"), Assistant(""), User("needle 4"))
	want("cccc")
	w.add(Replacing(User("needle 5"), 1, 2, 1, 2)) // surface 0 5 3 4
	want("csscc")
	w.add(Called("c", "needle", "6")).add(Replacing(User("needle 7"), 5, 3, 5, 3, 0)) // in surface order; citing more is fine: 0 7 4
	want("cssc" + "slc")
	w.add(User("needle 8"), Replacing(User("needle 9"), 0, 7, 0, 7)) // in the same batch: 9 4 8
	want("ssscsl" + "scc")
	w.add(Replacing(User("needle 10"), 9, 8, 4, 8, 9))
	want("sssssl" + "sssc")
}

func aRewrittenResult(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1), Called("c", "t", "{}"), Result("c", "needle, and much more"), Result("d", "needle two"))
	w.add(Replacing(Result("c", "needle cut"), 1, 1, 1))
	h.want(t, queryIn("s", "needle"), "s:3 s:2 s:1")
	for name, bad := range map[string]sessionlog.Event{
		"another call":   Replacing(Result("e", "needle"), 1, 1, 1),
		"two nodes":      Replacing(Result("d", "needle"), 1, 2, 1, 2),
		"not a result":   Replacing(Result("c", "needle"), 0, 0, 0),
		"of no result":   Replacing(User("needle"), 7, 8, 7, 8),
		"already gone":   Replacing(Result("c", "needle"), 9, 9),
		"behind itself":  Replacing(User("needle"), 2, 1, 1, 2),
		"cites too few":  Replacing(User("needle"), 1, 2, 1),
		"cites the same": Replacing(User("needle"), 1, 2, 1, 1, 2),
	} {
		id := "bad " + name
		birth(t, h.Journal, PastHeader(id, Past, "", 1), User("needle"), Result("c", "needle"), Result("d", "needle"), bad)
		if page := h.search(t, queryIn(id, "needle")); len(page.Hits) != 0 || len(page.Troubled) != 1 {
			t.Errorf("%s: %d hits, troubled %v", name, len(page.Hits), page.Troubled)
		}
	}
}

func oneDamagedSession(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("good", Past, "", 1), User("needle"))
	w := birth(t, h.Journal, PastHeader("bad", Past, "", 1), Titled("kept"), User("needle needle"))
	h.want(t, query("needle"), "bad:1 good:0")
	birth(t, h.Journal, PastHeader("foreign", "/srv", "", 1), sessionlog.NewEvent(sessionlog.TypeUserMessage, map[string]any{}))
	birth(t, h.Journal, PastHeader("future", Past, "", 1), User("needle"), sessionlog.NewEvent("future/required", map[string]any{}))
	birth(t, h.Journal, PastHeader("optional", Past, "", 1), User("needle"), sessionlog.NewEvent("future/optional", map[string]any{}).Ours())
	unsurfaced := User("needle")
	unsurfaced.SurfaceOp = nil
	w.add(unsurfaced).add(User("needle needle needle"))
	q := query("needle")
	q.Sessions = journal.SessionFilter{CWDs: []string{Past}}
	page := h.want(t, q, "good:0 optional:0")
	if len(page.Troubled) != 2 || page.Troubled[0].Session != "bad" || page.Troubled[0].Unsupported || page.Troubled[0].Problem == "" ||
		page.Troubled[1].Session != "future" || !page.Troubled[1].Unsupported {
		t.Fatalf("troubled: %+v", page.Troubled)
	}
	profiles, err := h.Texts.Profiles(t.Context(), []string{"bad", "good"})
	if err != nil || len(profiles) != 2 || profiles[0].Trouble == nil || profiles[0].Title != "kept" || profiles[1].Trouble != nil {
		t.Fatalf("profiles: %+v, %v", profiles, err)
	}
	w.delete()
	if page := h.want(t, q, "good:0 optional:0"); len(page.Troubled) != 1 {
		t.Fatalf("troubled: %+v", page.Troubled)
	}
}

// Ask is a question call; sensitive marks its answer.
func ask(call string, sensitive bool) sessionlog.Event {
	return Called(call, sessionlog.ToolName, fmt.Sprintf(`{"questions":[{"id":"q","question":"needle?","sensitive":%v}]}`, sensitive))
}

func reply(call, text string) sessionlog.Event {
	return sessionlog.NewEvent(sessionlog.TypeUserMessage, map[string]any{
		"id": "m", "role": "user", "source": map[string]any{"kind": sessionlog.KindReply, "callId": call, "outcome": "answered"},
		"content": []any{map[string]any{"type": "text", "text": text}},
	}).Appended()
}

func aSensitiveAnswer(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1),
		ask("secret", true), Result("secret", "canary in time"), ask("plain", false), Result("plain", "canary plain"),
		ask("late", true), Result("late", "pending"))
	w.add(reply("late", "canary late"), reply("plain", "canary plain again"))
	w.add(Replacing(Result("secret", "canary rewritten"), 1, 1, 1))
	h.want(t, queryIn("s", "canary"), "s:3 s:7")
	h.want(t, queryIn("s", "needle"), "s:4 s:0 s:2") // the question is no secret
	for _, q := range []string{"in time", "late", "rewritten", "pending"} {
		h.want(t, query(q), "")
	}
}

func aSessionThatWasCutOff(t *testing.T, h TextHarness) {
	message := object(map[string]any{"id": "m", "role": "assistant", "content": []any{
		map[string]any{"type": "tool-call", "id": "k1", "name": "bash", "arguments": "{}"},
		map[string]any{"type": "tool-call", "id": "k2", "name": "bash", "arguments": "{}"},
	}})
	w := birth(t, h.Journal, PastHeader("cut", Past, "", 1), User("before"), sessionlog.TurnStart(1), sessionlog.StepStart(1, 1),
		User("needle"), sessionlog.AssistantMessage(1, 1, message), Called("k1", "bash", "{}"))
	birth(t, h.Journal, PastHeader("whole", Past, "", 1), sessionlog.TurnStart(1), sessionlog.TurnEnd(1, `{"kind":"interrupted"}`))
	page := h.want(t, queryIn("cut", "interrupted"), "cut:9 cut:7 cut:6")
	for i, hit := range page.Hits {
		if !hit.Synthetic || hit.Surface != []sessionlog.Class{sessionlog.LogOnly, sessionlog.Current, sessionlog.Current}[i] {
			t.Fatalf("hit %+v", hit)
		}
	}
	// The one that was cut off is the later one.
	if page := h.want(t, query("interrupted"), "cut:9 whole:1"); page.Hits[1].Synthetic {
		t.Fatalf("hit %+v", page.Hits[1])
	}
	h.want(t, query("TOOL_NOT_STARTED"), "cut:7")
	q := query("interrupted")
	q.Events.Types = []string{sessionlog.TypeToolResult}
	h.want(t, q, "cut:7")
	q.Live = func(s string) bool { return s == "cut" } // shows its turn as it is (L-057)
	h.want(t, q, "")
	q = query("interrupted")
	q.Sessions = journal.SessionFilter{CWDs: []string{"/elsewhere"}}
	h.want(t, q, "")
	w.add(Result("k1", "done"), User("more"))
	h.want(t, query("TOOL_OUTCOME_UNKNOWN"), "")
	h.want(t, queryIn("cut", "interrupted"), "cut:10 cut:8")
	w.add(sessionlog.StepEnd(1, 1), sessionlog.TurnEnd(1, sessionlog.Completed))
	h.want(t, query("interrupted"), "whole:1")
	w.add(sessionlog.TurnStart(2))
	h.want(t, query("interrupted"), "cut:11 whole:1")
}

func aDeletedSessionIsGone(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("s", Past, "", 1), Titled("old"), User("needle in 中文 old"), ask("c", true))
	birth(t, h.Journal, PastHeader("t", Past, "s", 1), User("needle"))
	h.want(t, query("needle"), "t:0 s:1")
	w.delete()
	h.want(t, query("needle"), "t:0")
	h.want(t, queryIn("s", "old"), "")
	if p, err := h.Texts.Profiles(t.Context(), []string{"s"}); err != nil || len(p) != 0 {
		t.Fatalf("profiles %+v, %v", p, err)
	}
	w = birth(t, h.Journal, PastHeader("s", "/other", "", 2), Result("c", "needle again")) // no secret in this life
	h.want(t, query("needle"), "t:0 s:0")
	h.want(t, query("old"), "")
	q := query("needle")
	q.Sessions = journal.SessionFilter{CWDs: []string{Past}}
	h.want(t, q, "t:0")
	w.delete()
	birth(t, h.Journal, PastHeader("s", Past, "", 3), User("third")).delete() // between two searches
	birth(t, h.Journal, PastHeader("s", Past, "", 4), User("needle"))
	h.want(t, q, "s:0 t:0")
}

func pagesFollowEachOther(t *testing.T, h TextHarness) {
	for i := range 23 {
		birth(t, h.Journal, PastHeader(fmt.Sprintf("s%02d", i*7%23), Past, "", 1), User("x"), User(strings.Repeat("needle ", 1+i%3)), User("needle"))
	}
	w := birth(t, h.Journal, PastHeader("long", "/long", "", 1))
	for i := range 40 {
		w.add(User(strings.Repeat("needle ", 1+i%4) + strings.Repeat("x", i%5)))
	}
	for _, q := range []journal.TextQuery{query("needle"), queryIn("long", "needle")} {
		all := where(h.search(t, q))
		for _, limit := range []int{1, 2, 7, 24} {
			q := q
			q.Limit = limit
			var got []string
			for range 100 {
				page := h.search(t, q)
				if len(page.Hits) > limit {
					t.Fatalf("%d hits, over %d", len(page.Hits), limit)
				}
				got = append(got, where(page))
				if q.After = page.Next; page.Next == nil {
					break
				}
			}
			if got := strings.Join(got, " "); got != all {
				t.Fatalf("pages of %d:\n%s\nwant\n%s", limit, got, all)
			}
		}
	}
}

func aStalePage(t *testing.T, h TextHarness) {
	a := birth(t, h.Journal, PastHeader("a", Past, "", 1), User("needle needle"))
	b := birth(t, h.Journal, PastHeader("b", Past, "", 1), User("needle"))
	birth(t, h.Journal, PastHeader("c", Past, "", 1), User("needle more"))
	q := query("needle")
	q.Limit = 1
	q.After = h.search(t, q).Next
	h.want(t, q, "b:0") // a stands
	stale := func() {
		t.Helper()
		for _, texts := range []journal.Texts{h.Texts, h.Judge} {
			_, err := texts.Search(t.Context(), q)
			wantCode(t, err, messages.StaleCursor)
		}
	}
	a.delete()
	stale()
	q.After = nil
	q.After = h.search(t, q).Next
	h.want(t, q, "c:0")
	b.add(User("needle needle")) // b moves up
	stale()
	q.In, q.After = "b", nil
	q.After = h.search(t, q).Next
	h.want(t, q, "b:0")
	q.Events.Surfaces = []sessionlog.Class{sessionlog.Current}
	b.add(Replacing(User("other"), 1, 1, 1))
	stale()
	q.Events.Surfaces = nil
	h.want(t, q, "b:0")
	q.After = &journal.TextKey{Spans: 1, Session: "b", Seq: 77}
	stale()
	q.Phrase = words.NewPhrase("", words.Whole)
	stale()
}

func profilesAndChildren(t *testing.T, h TextHarness) {
	w := birth(t, h.Journal, PastHeader("root", Past, "", 5), Titled("first"), User("x"))
	birth(t, h.Journal, PastHeader("late", Past, "root", 9))
	birth(t, h.Journal, PastHeader("b", "/other", "root", 7), Titled(""))
	birth(t, h.Journal, PastHeader("a", Past, "root", 7))
	birth(t, h.Journal, PastHeader("orphan", Past, "nobody", 1))
	w.add(Titled("second \u202e raw")) // as it is stored (L-071)
	for _, c := range []struct {
		name string
		ask  func(journal.Texts) ([]journal.Profile, error)
		want string
	}{
		{"profiles", func(x journal.Texts) ([]journal.Profile, error) {
			return x.Profiles(t.Context(), []string{"root", "b", "unheard", "root", ""})
		}, "b root"},
		{"no profiles", func(x journal.Texts) ([]journal.Profile, error) { return x.Profiles(t.Context(), nil) }, ""},
		{"children", func(x journal.Texts) ([]journal.Profile, error) {
			return x.Children(t.Context(), []string{"root", "nobody", "root", ""})
		}, "orphan a b late"},
		{"no children", func(x journal.Texts) ([]journal.Profile, error) { return x.Children(t.Context(), []string{"a", ""}) }, ""},
	} {
		got, err := c.ask(h.Texts)
		if err != nil {
			t.Fatal(err)
		}
		judged, err := c.ask(h.Judge)
		if err != nil {
			t.Fatal(err)
		}
		var ids, shown, wanted []string
		for _, p := range got {
			ids, shown = append(ids, p.Session), append(shown, showProfile(p))
		}
		for _, p := range judged {
			wanted = append(wanted, showProfile(p))
		}
		if strings.Join(ids, " ") != c.want || !slices.Equal(shown, wanted) {
			t.Errorf("%s:\n%q\nwant %q\nby reading\n%q", c.name, shown, c.want, wanted)
		}
	}
	if p, _ := h.Texts.Profiles(t.Context(), []string{"root"}); p[0].Title != "second \u202e raw" || p[0].Events != 3 {
		t.Errorf("profile %+v", p[0])
	}
}

func textsAreCleaned(t *testing.T, h TextHarness) {
	long := strings.Repeat("wörter 中文字 ", 60_000) // longer than a page, and than a token may be
	birth(t, h.Journal, PastHeader("s", Past, "", 1),
		User("a\u0000needle\ufdd0b"), User(long+"needle "+long), User(strings.Repeat("x", 70_000)+" needle"), User("  needle \n\n in\tspace "),
		sessionlog.NewEvent(sessionlog.TypeUserMessage, json.RawMessage(`{"content":[{"type":"text","text":"\ud800needle"}]}`)).Appended())
	page := h.want(t, queryIn("s", "needle"), "s:4 s:0 s:3 s:2 s:1")
	for i, want := range []string{"\ufffdneedle", "a\ufffdneedle\ufffdb", "needle in space"} {
		if page.Hits[i].Snippet != want {
			t.Errorf("snippet %q, want %q", page.Hits[i].Snippet, want)
		}
	}
	h.want(t, queryIn("s", strings.Repeat("x", 70_000)), "s:2")
	h.want(t, queryIn("s", strings.Repeat("x", 69_999)), "")
	h.want(t, queryIn("s", strings.Repeat("wörter 中文字 ", 500)+"needle"), "s:1")
	h.want(t, queryIn("s", strings.Repeat("wörter 中文字 ", 500)+"nadel"), "")
	q := queryIn("s", strings.Repeat("字 wörter 中文", 500)+"字")
	q.Phrase = q.Phrase.In(words.Substring)
	h.want(t, q, "s:1")
}

func aQueryWithoutMeaning(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("s", Past, "", 1), User("needle"))
	for name, change := range map[string]func(*journal.TextQuery){
		"no limit":                  func(q *journal.TextQuery) { q.Limit = 0 },
		"a limit above the most":    func(q *journal.TextQuery) { q.Limit = journal.TextHitsMax + 1 },
		"no workspace":              func(q *journal.TextQuery) { q.Sessions.Everywhere = false },
		"a workspace without name":  func(q *journal.TextQuery) { q.Sessions.CWDs = []string{""} },
		"a surface nobody has":      func(q *journal.TextQuery) { q.Events.Surfaces = []sessionlog.Class{3} },
		"live ones of nobody knows": func(q *journal.TextQuery) { q.Sessions.LiveOnly = true },
	} {
		q := query("needle")
		change(&q)
		_, err := h.Texts.Search(t.Context(), q)
		if messages.CodeOf(err) != messages.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func aDoneContextEndsASearch(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("s", Past, "", 1), User("needle"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Texts.Search(ctx, query("needle")); !errors.Is(err, context.Canceled) {
		t.Fatalf("a search whose context is done: %v", err)
	}
	if _, err := h.Texts.Profiles(ctx, []string{"s"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("profiles whose context is done: %v", err)
	}
	h.want(t, query("needle"), "s:0")
}

func aClosedIndexIsUnavailable(t *testing.T, h TextHarness) {
	birth(t, h.Journal, PastHeader("s", Past, "", 1), User("needle"))
	for range 2 {
		if err := h.Texts.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.Texts.Search(t.Context(), query("needle"))
	wantCode(t, err, messages.Unavailable)
	_, err = h.Texts.Children(t.Context(), []string{"s"})
	wantCode(t, err, messages.Unavailable)
	mustAppend(t, h.Journal, Next("other", 0, 0, 0)) // an empty append: the journal goes on
}

func searchingWhileWriting(t *testing.T, h TextHarness) {
	const writers, each = 4, 40
	done := make(chan error, writers)
	for i := range writers {
		go func() {
			done <- func() error {
				id := fmt.Sprintf("s%d", i)
				epoch := int64(0)
				for n := range each {
					b := journal.Batch{Session: id, Epoch: epoch, Seq: int64(n), Events: []sessionlog.Event{User(fmt.Sprintf("needle n%dof%d", n, i)).At(int64(n), textTime)}}
					if n == 0 {
						b.Header = PastHeader(id, Past, "", 1)
					}
					a, err := Append(h.Journal, b)
					if err != nil {
						return err
					}
					epoch = a.Epoch
					page, err := h.Texts.Search(t.Context(), queryIn(id, fmt.Sprintf("n%dof%d", n, i)))
					if err != nil {
						return err
					}
					if len(page.Hits) != 1 || page.Hits[0].Seq != int64(n) {
						return fmt.Errorf("%s: its own event %d is not found: %v", id, n, page.Hits)
					}
				}
				return nil
			}()
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		return
	}
	h.search(t, query("needle"))
}
