package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

func TestS004Configuration(t *testing.T) {
	for _, bad := range []Config{{MaxResults: -1}, {SearchTimeout: -1}, {SearchTimeout: time.Microsecond}, {SearchTimeout: (1 << 31) * time.Millisecond}, {WindowMax: -1}} {
		_, err := New(small(), nil, bad)
		assert.Equal(t, messages.BadRequest, messages.CodeOf(err), "%+v", bad)
	}
	tools := mounted(t, small(), Config{})
	assert.Equal(t, 100, tools.cfg.MaxResults)
	assert.Equal(t, 30*time.Second, tools.cfg.SearchTimeout)
}

func TestS005EveryWrongTypeIsNamedAtOnce(t *testing.T) {
	_, err := run(t, small(), "me", SearchSessions, `{"session_ids":"a","availability":["gone","live"],"event_seq_from":1.5,"include_root_sessions":1}`)
	require.Equal(t, "INVALID_ARGS", code(err))
	for _, name := range []string{"query is missing", "session_ids must be", "availability[0] must be one of", "event_seq_from must be", "include_root_sessions must be"} {
		assert.ErrorContains(t, err, name)
	}
	for _, args := range []string{`[]`, `null`, `7`, `{`, `{"query":null}`, `{"query":"a","event_seq_to":1e400}`} {
		_, err := run(t, small(), "me", SearchSessions, args)
		assert.Equal(t, "INVALID_ARGS", code(err), args)
	}
}

// An error is for reading: of very many violations it names some.
func TestS005AnErrorHasAnEnd(t *testing.T) {
	bad := make([]string, 40_000)
	args, err := json.Marshal(map[string]any{"query": "x", "event_surfaces": bad})
	require.NoError(t, err)
	_, err = run(t, small(), "me", SearchSessions, string(args))
	require.Equal(t, "INVALID_ARGS", code(err))
	assert.ErrorContains(t, err, "39980 more of the kind")
	assert.Less(t, len(err.Error()), 3000)
}

// Of two faults of one call, the earlier check of S-019 speaks, in its own words
// (S-121).
func TestS019OrderOfChecks(t *testing.T) {
	for _, c := range []struct{ caller, tool, args, want string }{
		{"", SearchSessions, `{"query":""}`, "TOOL_MISSING_AGENT"},
		{"bare", SearchSessions, `{"query":""}`, "TOOL_UNAUTHORIZED"},
		{"me", SearchSessions, `{"query":"","session_ids":[]}`, "INVALID_QUERY"},
		{"me", SearchSessions, `{"query":"x","session_ids":[],"created_at_from":"x"}`, "INVALID_FILTER: session_ids"},
		{"me", SearchSessions, `{"query":"x","created_at_from":"x","availability":[]}`, "INVALID_FILTER: created_at_from"},
		{"me", SearchSessions, `{"query":"x","availability":[],"event_seq_from":-1}`, "INVALID_FILTER: availability"},
		{"me", SearchSessions, `{"query":"x","event_seq_from":-1,"event_time_from":"x"}`, "INVALID_FILTER: event_seq_from"},
		{"me", SearchSessions, `{"query":"x","event_time_to":"x","event_types":[]}`, "INVALID_FILTER: event_time_to"},
		{"me", SearchSessions, `{"query":"x","event_types":[],"event_surfaces":[]}`, "INVALID_FILTER: event_types"},
		{"me", SearchSessions, `{"query":"x","event_surfaces":[],"parent_session_ids":[]}`, "INVALID_FILTER: event_surfaces"},
		{"me", SearchSessions, `{"query":"x","parent_session_ids":[]}`, "INVALID_FILTER: parent_session_ids"},
		{"me", SearchEvents, `{"query":"","session_id":"far"}`, "TOOL_UNAUTHORIZED"},
		{"me", SearchEvents, `{"query":"","session_id":"near","seq_from":-1}`, "INVALID_QUERY"},
		{"me", SearchEvents, `{"query":"x","session_id":"near","seq_from":2,"seq_to":1,"surfaces":[]}`, "INVALID_FILTER: seq_from"},
		{"", TraceEvent, `{"seq":-1}`, "INVALID_FILTER: seq"},
		{"", TraceEvent, `{"seq":1}`, "TOOL_MISSING_AGENT"},
		{"me", TraceEvent, `{"seq":99,"session_id":"far"}`, "TOOL_UNAUTHORIZED"},
		{"", ReadEvent, `{"seq":1,"before":-1}`, "INVALID_FILTER: before"},
		{"me", ReadEvent, `{"seq":1,"before":51,"session_id":"far"}`, "TOOL_UNAUTHORIZED"},
		{"me", ReadEvent, `{"seq":9,"before":51,"session_id":"near"}`, "INVALID_WINDOW"},
		{"me", ReadEvent, `{"seq":9,"session_id":"near"}`, "EVENT_NOT_FOUND"},
	} {
		_, err := run(t, small(), c.caller, c.tool, c.args)
		require.Error(t, err, c.args)
		want, starts, _ := strings.Cut(c.want, ": ")
		assert.Equal(t, want, code(err), c.args)
		var coded *messages.Error
		require.ErrorAs(t, err, &coded)
		assert.True(t, strings.HasPrefix(coded.Text, starts), "%s: %s", c.args, coded.Text)
	}
}

// A missing session and a foreign one: same error, same reads (S-013).
func TestS013MissingAndForeignLookTheSame(t *testing.T) {
	for _, c := range []struct{ tool, args string }{
		{SearchEvents, `{"query":"x","session_id":%q}`}, {TraceSession, `{"session_id":%q}`},
		{TraceEvent, `{"seq":0,"session_id":%q}`}, {ReadEvent, `{"seq":0,"session_id":%q}`},
	} {
		var seen []string
		for _, id := range []string{"far", "bare", "nowhere"} {
			corpus := small()
			_, err := run(t, corpus, "me", c.tool, fmt.Sprintf(c.args, id))
			require.Equal(t, "TOOL_UNAUTHORIZED", code(err))
			seen = append(seen, err.Error()+strings.Join(corpus.asked, " "))
		}
		assert.Equal(t, seen[0], seen[1], c.tool)
		assert.Equal(t, seen[0], seen[2], c.tool)
	}
}

// A session that is another's when its log is read shows nothing (S-015).
func TestS015AuthorityIsCheckedAgainAtUse(t *testing.T) {
	corpus := small()
	near := corpus.logs["near"]
	near.Header.CWD = "/else"
	corpus.logs["near"] = near
	for _, tool := range []string{TraceEvent, ReadEvent} {
		_, err := run(t, corpus, "me", tool, `{"seq":0,"session_id":"near"}`)
		assert.Equal(t, "TOOL_UNAUTHORIZED", code(err))
	}
	corpus.pages[""] = Page{Hits: []Hit{{Session: Session{ID: "near", CWD: "/else"}}, {Session: corpus.all[0]}}}
	text, err := run(t, corpus, "me", SearchSessions, `{"query":"x"}`)
	require.NoError(t, err)
	assert.Equal(t, noSessions, text)
}

func TestS017ParentsAreReducedBeforeTheSearch(t *testing.T) {
	corpus := small()
	text, err := run(t, corpus, "me", SearchSessions, `{"query":"x","parent_session_ids":["far","nowhere","far"]}`)
	require.NoError(t, err)
	assert.Equal(t, noSessions, text)
	assert.NotContains(t, corpus.asked, "search")
	_, err = run(t, corpus, "me", SearchSessions, `{"query":"x","parent_session_ids":["far","near"],"include_root_sessions":true}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"near"}, corpus.saw.Parents)
	assert.True(t, corpus.saw.Roots)
}

func TestS034DigitsBelowAMillisecond(t *testing.T) {
	at := func(s string) instant {
		got, err := parseInstant(s, "x")
		require.NoError(t, err, s)
		return got
	}
	half := at("2026-07-24T00:00:00.0005Z")
	whole := at("2026-07-24T00:00:00Z").ms
	assert.Equal(t, whole, half.ms)
	assert.Equal(t, whole+1, half.ceil())
	assert.True(t, at("2026-07-24T00:00:00.12300001Z").before(at("2026-07-24T00:00:00.12300002Z")))
	assert.False(t, at("2026-07-24T00:00:00.1230000100Z").before(at("2026-07-24T00:00:00.12300001Z")))
	assert.Equal(t, at("2026-07-24T08:30:00+08:30"), at("2026-07-24T00:00Z"))
	for _, bad := range []string{"2026-07-24", "2026-07-24T10:00:00", "2026-02-30T10:00:00Z", "2100-02-29T10:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
		"2026-01-01T00:00:60Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0000", "2026-01-01t00:00:00z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", ""} {
		_, err := parseInstant(bad, "x")
		assert.Equal(t, messages.QueryInvalidFilter, messages.CodeOf(err), bad)
	}
}

func TestS037TooManyValues(t *testing.T) {
	ids := make([]string, 40_000)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	args, err := json.Marshal(map[string]any{"query": "x", "session_ids": ids})
	require.NoError(t, err)
	_, err = run(t, small(), "me", SearchSessions, string(args))
	assert.Equal(t, "INVALID_FILTER", code(err))
}

// Pages are followed to the cap; what is not accepted does not count (S-040).
func TestS040TheCap(t *testing.T) {
	hit := func(id string) Hit { return Hit{Session: Session{ID: id, CWD: "/srv/work"}} }
	for _, c := range []struct {
		third string
		more  bool
	}{{"c", true}, {"me", false}} {
		corpus := small()
		corpus.pages = map[string]Page{"": {Hits: []Hit{hit("a"), hit("me")}, Next: "1"}, "1": {Hits: []Hit{hit("b"), hit(c.third)}}}
		text, err := mounted(t, corpus, Config{MaxResults: 2}).Call(t.Context(), "me", SearchSessions, json.RawMessage(`{"query":"x"}`))
		require.NoError(t, err)
		assert.Contains(t, text, "Session search results (2):")
		assert.Equal(t, c.more, strings.HasSuffix(text, capped))
	}
	corpus := small()
	corpus.pages = map[string]Page{"": {Next: "1"}, "1": {Next: "1"}}
	_, err := run(t, corpus, "me", SearchSessions, `{"query":"x"}`)
	assert.Equal(t, "INVALID_CURSOR", code(err))
}

func TestS050TheRunningStepIsLeftOut(t *testing.T) {
	corpus := small()
	_, err := run(t, corpus, "me", SearchEvents, `{"query":"x","seq_to":100}`)
	require.NoError(t, err)
	assert.EqualValues(t, 6, corpus.saw.SeqTo)
	_, err = run(t, corpus, "me", SearchEvents, `{"query":"x","session_id":"near","seq_to":100}`)
	require.NoError(t, err)
	assert.EqualValues(t, 100, corpus.saw.SeqTo)
	corpus.step = 0
	corpus.asked = nil
	text, err := run(t, corpus, "me", SearchEvents, `{"query":"x"}`)
	require.NoError(t, err)
	assert.Equal(t, "Session me — untitled\n\n"+noEvents, text)
	assert.NotContains(t, corpus.asked, "search")
	corpus.step = -1
	_, err = run(t, corpus, "me", SearchEvents, `{"query":"x"}`)
	assert.Equal(t, "TOOL_NO_CURRENT_STEP", code(err))
}

// unprintable is an error that cannot even be looked at.
type unprintable struct{}

func (unprintable) Error() string { panic("no") }

func TestS120WhatIsBelowIsNotShown(t *testing.T) {
	for _, c := range []struct {
		err  error
		want messages.Code
	}{
		{errors.New("open /secret/path: denied"), messages.QueryFailed},
		{unprintable{}, messages.QueryFailed},
		{messages.Refuse(messages.BadRequest, "/secret/path"), messages.QueryFailed},
		{messages.Refuse(messages.JournalIO, "/secret/path"), messages.QueryPersistence},
		{messages.Refuse(messages.SessionCorrupt, "/secret/path"), messages.QueryCorruptSession},
		{messages.Refuse(messages.QueryStaleCursor, "/secret/path"), messages.QueryStaleCursor},
	} {
		corpus := small()
		corpus.trip = func(string) error { return c.err }
		for _, tool := range All() {
			_, err := run(t, corpus, "me", tool.Name, `{"query":"x","seq":0,"session_id":"near"}`)
			assert.Equal(t, c.want, messages.CodeOf(err), tool.Name)
			assert.NotContains(t, err.Error(), "secret")
		}
	}
	corpus := small()
	corpus.trip = func(string) error { panic("/secret/path") }
	_, err := run(t, corpus, "me", TraceSession, `{}`)
	assert.Equal(t, messages.QueryFailed, messages.CodeOf(err))
}

func TestS130TheCallersOwnReasonComesBack(t *testing.T) {
	reason := errors.New("the person pressed stop")
	for _, tool := range All() {
		for _, at := range []string{"sessions", "search", "log", "children", "step"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			corpus := small()
			tripped := false
			corpus.trip = func(asked string) error {
				if asked == at {
					tripped = true
					cancel(reason)
					return errors.New("something else")
				}
				if tripped {
					t.Errorf("%s: asked for %s after it was cancelled", tool.Name, asked)
				}
				return nil
			}
			_, err := mounted(t, corpus, Config{}).Call(ctx, "me", tool.Name, json.RawMessage(`{"query":"x","seq":0}`))
			if tripped {
				assert.Same(t, reason, err, "%s at %s", tool.Name, at)
			}
			cancel(nil)
		}
	}
}

func TestS102ARingOfAncestors(t *testing.T) {
	corpus := small()
	corpus.all = append(corpus.all, Session{ID: "x", CWD: "/srv/work", Parent: "y"}, Session{ID: "y", CWD: "/srv/work", Parent: "x"})
	_, err := run(t, corpus, "me", TraceSession, `{"session_id":"x"}`)
	assert.Equal(t, "INVALID_LINEAGE", code(err))
}

func TestS018WhatIsHiddenIsCutOff(t *testing.T) {
	corpus := small()
	corpus.all = append(corpus.all,
		Session{ID: "hidden", CWD: "/else", Parent: "near", Created: 5}, Session{ID: "below", CWD: "/srv/work", Parent: "hidden", Created: 6},
		Session{ID: "kid", CWD: "/srv/work", Parent: "near", Created: 7, Persisted: true, Title: "Kid"}, Session{ID: "grandkid", CWD: "/srv/work", Parent: "kid", Created: 8, Live: true})
	text, err := run(t, corpus, "me", TraceSession, `{"session_id":"near"}`)
	require.NoError(t, err)
	assert.Equal(t, strings.Join([]string{
		"Session near — Near", "Created: 1970-01-01T00:00:00.002Z", "Availability: persisted", "",
		"Ancestors (nearest first):", "- none (target is a root session)", "", "Descendants:", "- [outside workspace subtree]",
		"- kid — Kid | 1970-01-01T00:00:00.007Z | persisted", "  - grandkid — untitled | 1970-01-01T00:00:00.008Z | live",
	}, "\n"), text)
	text, err = run(t, corpus, "me", TraceSession, `{"session_id":"below"}`)
	require.NoError(t, err)
	assert.Contains(t, text, "Ancestors (nearest first):\n- [outside workspace boundary]\n")
}

func TestSchemasNameWhatIsChecked(t *testing.T) {
	for _, tool := range All() {
		var schema struct {
			Properties map[string]struct{ Description string }
		}
		require.NoError(t, json.Unmarshal(tool.Schema, &schema))
		for name, p := range schema.Properties {
			assert.NotEmpty(t, p.Description, "%s.%s", tool.Name, name)
		}
		assert.NotContains(t, schema.Properties, "limit") // S-003
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"query":"x","seq":1,"session_ids":["near"],"created_at_from":"2026-07-24T00:00:00.0005Z"}`)
	f.Add(`{"query":"\u0000","seq_from":-0.0,"seq":9007199254740993}`)
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range All() {
			_, err := run(t, small(), "me", tool.Name, args)
			if err != nil && messages.Lookup(messages.CodeOf(err)).Kind != messages.RefusalKind {
				t.Errorf("%s: %v", tool.Name, err)
			}
		}
	})
}

func FuzzInstant(f *testing.F) {
	f.Add("2026-07-24T08:00:00.001+08:00")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseInstant(s, "x")
		if err != nil {
			return
		}
		again, err := parseInstant(iso(at.ms), "x")
		if year := time.UnixMilli(at.ms).UTC().Year(); year >= 0 && year <= 9999 && (err != nil || again.ms != at.ms) {
			t.Errorf("%q is %d, which reads as %v, %v", s, at.ms, again, err)
		}
	})
}

// The parameters are S-006's, S-007's and S-008's, and no others (S-003).
func TestTheParameters(t *testing.T) {
	for tool, want := range map[string]string{
		SearchSessions: "availability created_at_from created_at_to event_seq_from event_seq_to event_surfaces event_time_from event_time_to event_types include_root_sessions parent_session_ids query* session_ids",
		SearchEvents:   "event_types query* seq_from seq_to session_id surfaces time_from time_to",
		TraceSession:   "session_id",
		TraceEvent:     "seq* session_id",
		ReadEvent:      "after before seq* session_id",
	} {
		at := slices.IndexFunc(All(), func(one Tool) bool { return one.Name == tool })
		require.GreaterOrEqual(t, at, 0)
		var schema struct {
			Properties map[string]any
			Required   []string
		}
		require.NoError(t, json.Unmarshal(All()[at].Schema, &schema))
		var got []string
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if slices.Contains(schema.Required, name) {
				name += "*"
			}
			got = append(got, name)
		}
		assert.Equal(t, want, strings.Join(got, " "), tool)
	}
}

// A model cannot page: what it asks beside the parameters is not looked at.
func TestS003UnknownArgumentsAreIgnored(t *testing.T) {
	corpus := small()
	for i := range 3 {
		corpus.pages[""] = Page{Hits: append(corpus.pages[""].Hits, Hit{Session: Session{ID: fmt.Sprint(i), CWD: "/srv/work"}})}
	}
	text, err := run(t, corpus, "me", SearchSessions, `{"query":"x","limit":1,"cursor":"y"}`)
	require.NoError(t, err)
	assert.Contains(t, text, "Session search results (3):")
}

func TestS014ACallerWithoutAWorkspaceSeesItself(t *testing.T) {
	text, err := run(t, small(), "bare", TraceSession, `{}`)
	require.NoError(t, err)
	assert.Contains(t, text, "Session bare — untitled\n")
	_, err = run(t, small(), "bare", TraceSession, `{"session_id":"me"}`)
	assert.Equal(t, "TOOL_UNAUTHORIZED", code(err))
}

func TestS023OneReadForAllParents(t *testing.T) {
	corpus := small()
	for i := range 9 {
		corpus.pages[""] = Page{Hits: append(corpus.pages[""].Hits, Hit{Session: Session{ID: fmt.Sprint(i), CWD: "/srv/work", Parent: []string{"near", "far", "gone"}[i%3]}})}
	}
	text, err := run(t, corpus, "me", SearchSessions, `{"query":"x"}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"sessions", "search", "sessions"}, corpus.asked)
	assert.Equal(t, 3, strings.Count(text, "Parent: near\n"))
	assert.Equal(t, 6, strings.Count(text, "Parent: [outside workspace]\n"))
}

// A page that cannot go on fails the whole call, under the code that says to
// search again.
func TestS041ACorpusThatChangesBetweenPages(t *testing.T) {
	corpus := small()
	corpus.pages[""] = Page{Hits: []Hit{{Session: Session{ID: "near", CWD: "/srv/work"}}}, Next: "1"}
	searches := 0
	corpus.trip = func(asked string) error {
		if asked == "search" {
			if searches++; searches == 2 {
				return messages.Refuse(messages.StaleCursor, "event 7 of near is gone")
			}
		}
		return nil
	}
	_, err := run(t, corpus, "me", SearchSessions, `{"query":"x"}`)
	assert.Equal(t, messages.QueryStaleCursor, messages.CodeOf(err))
	assert.NotContains(t, err.Error(), "near")
}

// S-111: nothing found would be no answer about a session that cannot be read.
func TestS111ADamagedSessionIsNamedAndNotEmpty(t *testing.T) {
	corpus := small()
	corpus.pages[""] = Page{Troubled: []Session{{ID: "near", Damage: messages.QueryCorruptSession, Problem: "event 7 is \x1b[31mmissing"}}}
	_, err := run(t, corpus, "me", SearchEvents, `{"query":"x","session_id":"near"}`)
	assert.Equal(t, "PERSISTENCE_FAILED", code(err))
	assert.NotContains(t, err.Error(), "near")
	text, err := run(t, corpus, "me", SearchSessions, `{"query":"x"}`)
	require.NoError(t, err)
	assert.Equal(t, noSessions, text) // the tool's text is fixed

	tools := mounted(t, corpus, Config{})
	_, err = tools.Search(t.Context(), &messages.SearchRequest{Query: "x", Session: "near"})
	assert.Equal(t, "CORRUPT_SESSION", code(err))
	assert.ErrorContains(t, err, "session near cannot be read: event 7 is ")
	assert.NotContains(t, err.Error(), "\x1b")
	page, err := tools.Search(t.Context(), &messages.SearchRequest{Query: "x"})
	require.NoError(t, err)
	require.Len(t, page.GetTroubled(), 1)
	assert.Equal(t, "near", page.GetTroubled()[0].GetSession())
	assert.Contains(t, page.GetTroubled()[0].GetWhy().GetText(), "event 7 is ")
}

// What a client got wrong is no trouble of the node's.
func TestS120MistakesOfClientsAreNoErrorsOfTheLog(t *testing.T) {
	for _, c := range []struct {
		err  error
		want slog.Level
	}{
		{messages.Refuse(messages.QueryInvalidCursor, "x"), slog.LevelInfo},
		{messages.Refuse(messages.StaleCursor, "x"), slog.LevelInfo},
		{messages.Refuse(messages.NotFound, "x"), slog.LevelInfo},
		{messages.Refuse(messages.Unavailable, "x"), slog.LevelInfo}, // the node stops
		{messages.Refuse(messages.JournalIO, "x"), slog.LevelError},
		{messages.Refuse(messages.SessionCorrupt, "x"), slog.LevelError},
		{errors.New("x"), slog.LevelError},
	} {
		corpus := small()
		corpus.trip = func(asked string) error {
			if asked == "search" {
				return c.err
			}
			return nil
		}
		logged := &levels{}
		tools, err := New(corpus, slog.New(logged), Config{})
		require.NoError(t, err)
		_, err = tools.Search(t.Context(), &messages.SearchRequest{Query: "x"})
		require.Error(t, err)
		assert.Equal(t, []slog.Level{c.want}, logged.seen, "%v", c.err)
	}
}

// levels is a log that keeps how grave its records are.
type levels struct {
	slog.Handler
	seen []slog.Level
}

func (l *levels) Enabled(context.Context, slog.Level) bool { return true }

func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.seen = append(l.seen, r.Level)
	return nil
}
