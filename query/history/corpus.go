package history

import (
	"context"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Corpus is all sessions, as far as the tools must know them. Its errors are
// never shown to a model (S-120).
type Corpus interface {
	// Sessions returns those of these ids that exist, in any order, in one read.
	Sessions(ctx context.Context, ids []string) ([]Session, error)

	// Children returns the sessions whose parent is one of these, in any order.
	Children(ctx context.Context, parents []string) ([]Session, error)

	// Search returns a page of hits, the best first (S-062). A page that cannot
	// go on where the one before ended is messages.StaleCursor (S-041).
	Search(ctx context.Context, s *Search) (Page, error)

	// Log reads one session. An unknown one is messages.NotFound, a damaged one
	// messages.SessionCorrupt.
	Log(ctx context.Context, session string) (Log, error)

	// LastStep returns the seq of the session's last step/start, -1 if it has none.
	LastStep(ctx context.Context, session string) (int64, error)
}

// Session is what can be said of a session without reading its log.
type Session struct {
	ID      string
	CWD     string // its workspace; empty: none
	Parent  string // empty: a root
	Created int64  // milliseconds
	Title   string // its latest; empty: none

	// Damage is the code of what keeps its log from being read; empty: nothing.
	Damage messages.Code
	// Problem is that in words, for people who may read every log: it may quote it.
	Problem string

	Live, Persisted bool
}

// Log is a whole session, folded. The closers of one that was cut short are
// among its events (S-112).
type Log struct {
	Header  sessionlog.Header
	Events  []sessionlog.Event
	Surface sessionlog.SurfaceView
	Live    bool
	// Concealed are the seqs of events that are named and not shown: they hold
	// the text of a sensitive answer (promise 8).
	Concealed map[int64]bool
}

// Search is a search that has been checked.
type Search struct {
	Query    string // one line, not empty
	Faithful bool   // Config.Faithful

	// Events of one session, or the best event of each of many.
	Session string
	// CWDs are the workspaces to look in, unless Everywhere is said. Used when
	// Session is empty.
	CWDs       []string
	Everywhere bool
	// Sessions, if not nil, are the only ones to look in; without Not.
	Sessions []string
	Not      string
	// Parents, if not nil, are whose children to look in; Roots adds those
	// without a parent. With neither, all.
	Parents []string
	Roots   bool

	CreatedFrom, CreatedTo int64 // milliseconds, inclusive
	Availability           []string

	SeqFrom, SeqTo   int64 // inclusive
	TimeFrom, TimeTo int64 // milliseconds, inclusive
	Types            []string
	Surfaces         []string

	Limit int
	After string // the token of the page before
}

// Page is what a search found.
type Page struct {
	Hits     []Hit
	Next     string    // the token to go on from; empty at the end
	Troubled []Session // that would have been searched and cannot be read
}

// Hit is one event that matches.
type Hit struct {
	Session Session
	Seq     int64
	Type    string
	Surface sessionlog.Class
	Time    int64 // milliseconds
	Snippet string
}
