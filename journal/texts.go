package journal

import (
	"cmp"
	"context"
	"slices"

	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Texts is the text index of a journal: what its events say (S-070), found by
// phrase. A backend keeps it beside its log, and can build it from the log
// again; losing it loses nothing. All methods are safe for concurrent use.
//
// Every method sees every append whose callback had been called when it began:
// it first waits until the index has got there. Indexing itself is nobody's
// wait: an append is never held up by it.
//
// A session whose log cannot be read as a whole (L-014, L-024), or in which the
// journal is damaged, is not searched. It is reported, and fails nobody else's
// search, which goes beyond the reference (S-111). The text of a sensitive
// answer is not in the index (promise 8).
//
// Who may see what is not decided here: the index answers what it is asked.
type Texts interface {
	// Search returns the best hits of a phrase, in the order of S-062. A query
	// that Check refuses is messages.BadRequest; a continuation whose hit is not
	// there any more is messages.StaleCursor.
	Search(ctx context.Context, q TextQuery) (TextPage, error)

	// Profiles describes the sessions of these ids that exist, by id, each once.
	Profiles(ctx context.Context, sessions []string) ([]Profile, error)

	// Children describes the sessions whose parent is one of these, by parent,
	// creation time and id (S-101), whether their parents exist or not.
	Children(ctx context.Context, parents []string) ([]Profile, error)

	// Workspaces lists the working directories that sessions have, each once, in
	// byte order.
	Workspaces(ctx context.Context) ([]string, error)

	// Close ends the index. Later calls fail with messages.Unavailable.
	Close() error
}

// TextQuery is one search. Filters of different kinds must all hold; the values
// of one list are alternatives (S-032).
type TextQuery struct {
	// Phrase and its cut say what matches. One without tokens finds nothing.
	Phrase words.Phrase
	// In asks for every hit of one session. Empty: one hit a session, its best
	// among those that pass the filters (S-022, S-036).
	In       string
	Sessions SessionFilter
	Events   EventFilter
	// Live says whether a session is loaded somewhere that the caller can ask;
	// nil: none is. It must be quick. An open turn of one that is not live was
	// cut off, and is searched with the events that would close it (S-112).
	Live func(session string) bool
	// After continues behind a hit of the page before; nil: from the best on.
	After *TextKey
	// Limit is 1 to TextHitsMax.
	Limit int
}

// TextHitsMax bounds a page.
const TextHitsMax = 1000

// SessionFilter narrows a search to sessions.
type SessionFilter struct {
	// CWDs are compared as strings: no path is normalised, no link followed
	// (S-012). A query needs one, or must say Everywhere, unless it is In one
	// session. One workspace may have several names; Workspaces lists them.
	CWDs       []string
	Everywhere bool
	IDs        []string // nil: any; empty: none
	Except     string   // a session that is left out; empty: none is
	// Parents and Roots are alternatives to each other: children of these, and
	// sessions without a parent. Parents nil and no Roots: any.
	Parents  []string
	Roots    bool
	Created  Bounds // epoch milliseconds
	LiveOnly bool   // of what TextQuery.Live says
}

// EventFilter narrows a search to events, before the best of a session is
// chosen.
type EventFilter struct {
	Seq      Bounds
	Time     Bounds             // epoch milliseconds
	Types    []string           // nil: any; empty: none
	Surfaces []sessionlog.Class // likewise
}

// Bounds is a range, both ends inclusive; nil is open.
type Bounds struct{ From, To *int64 }

// Hold reports whether n is in the range.
func (b Bounds) Hold(n int64) bool {
	return (b.From == nil || n >= *b.From) && (b.To == nil || n <= *b.To)
}

// TextKey is the place of a hit in the order of S-062.
type TextKey struct {
	Spans   int   // places of the text that the phrase covers, overlaps joined
	Length  int   // of the text, in code points
	Time    int64 // of the event, epoch milliseconds
	Session string
	Seq     int64
}

// Compare orders keys, the best first: more spans, the shorter text, the later
// time; then by session id, and in one session the higher seq.
func (k TextKey) Compare(o TextKey) int {
	return cmp.Or(
		cmp.Compare(o.Spans, k.Spans), cmp.Compare(k.Length, o.Length), cmp.Compare(o.Time, k.Time),
		cmp.Compare(k.Session, o.Session), cmp.Compare(o.Seq, k.Seq))
}

// TextHit is one event that a search found.
type TextHit struct {
	TextKey
	Type      string
	Surface   sessionlog.Class
	Synthetic bool   // it is not in the log: it would close the open turn (S-112)
	Snippet   string // S-063
	Profile   Profile
}

// TextPage is what a search found.
type TextPage struct {
	Hits []TextHit
	// Next continues the search; nil: there is no further hit.
	Next *TextKey
	// At is the position up to which the search saw the journal. Pages of one
	// position show one corpus.
	At Position
	// Troubled are the sessions that would have been searched and cannot be, by
	// id. One whose header cannot be read is among them unless the query has a
	// filter that asks for the header.
	Troubled []Trouble
}

// Trouble says why a session is not searched.
type Trouble struct {
	Session     string
	Unsupported bool   // sound, and of a newer kind (L-014); else damaged
	Problem     string // in words, for operators: it may quote the log
}

// Profile is what is known of a session without reading its log.
type Profile struct {
	Session string
	Header  sessionlog.Header
	Events  int64
	Title   string // the latest session/title (S-110)
	Titled  bool
	Trouble *Trouble // why its log cannot be read; nil if it can
}

// Check refuses a query that has no meaning, with messages.BadRequest. Every
// backend calls it first.
func (q TextQuery) Check() error {
	switch s := q.Sessions; {
	case q.Limit < 1 || q.Limit > TextHitsMax:
		return messages.Refuse(messages.BadRequest, "a search asks for %d hits; 1 to %d are allowed", q.Limit, TextHitsMax)
	case q.In == "" && len(s.CWDs) == 0 && !s.Everywhere, slices.Contains(s.CWDs, ""):
		return messages.Refuse(messages.BadRequest, "a search names no workspace, and does not say that it means all")
	case slices.ContainsFunc(q.Events.Surfaces, func(c sessionlog.Class) bool { return c < sessionlog.LogOnly || c > sessionlog.Shadowed }):
		return messages.Refuse(messages.BadRequest, "a search asks for surfaces %v, of which some do not exist", q.Events.Surfaces)
	case s.LiveOnly && q.Live == nil:
		return messages.Refuse(messages.BadRequest, "a search asks for live sessions, and does not say which are")
	}
	return nil
}

// ErrStale is the messages.StaleCursor error of a search that goes on behind a
// hit that is not there any more.
func ErrStale(after TextKey) error {
	return messages.Refuse(messages.StaleCursor, "the search was to go on behind event %d of session %s, which is not found any more as it was: search again from the start", after.Seq, after.Session)
}
