package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/parleyrun/parley/messages"
)

// fixed is what a model is told of trouble below: no id, no path, no cause
// (S-120). A code that is not here becomes messages.QueryFailed.
var fixed = map[messages.Code]string{
	messages.QueryAborted:         "the search was cancelled",
	messages.QueryCorruptSession:  "the session's log is damaged",
	messages.QueryEventNotFound:   "there is no such event in the session",
	messages.QueryIndexFailed:     "the text index failed",
	messages.QueryInvalidCursor:   "the search went on from a page that is not its own",
	messages.QueryInvalidFilter:   "the filters are more than a search can take",
	messages.QueryInvalidLimit:    "the size of a page is not allowed",
	messages.QueryInvalidQuery:    "the query cannot be searched for",
	messages.QueryInvalidLineage:  "the session descends from itself",
	messages.QueryInvalidSurface:  "the session's replacements do not fit together",
	messages.QueryInvalidWindow:   "the window around the event is too wide",
	messages.QueryPersistence:     "past sessions cannot be read now",
	messages.QuerySearchDisabled:  "search is switched off on this node",
	messages.QuerySessionNotFound: "there is no such session",
	messages.QueryStaleCursor:     "sessions changed while they were searched",
}

// failed is what is said of messages.QueryFailed.
const failed = "past work could not be read"

// translated are the codes of the rooms below, as the tools call them.
var translated = map[messages.Code]messages.Code{
	messages.SessionCorrupt: messages.QueryCorruptSession,
	messages.NotFound:       messages.QuerySessionNotFound,
	messages.StaleCursor:    messages.QueryStaleCursor,
	messages.JournalIO:      messages.QueryPersistence,
	messages.JournalCorrupt: messages.QueryPersistence,
	messages.Unavailable:    messages.QueryPersistence,
}

// call asks the corpus. Cancellation is looked at before and after, and is
// given back as it is (S-130); everything else that goes wrong is logged in
// full and replaced (S-120).
func call[T any](ctx context.Context, t *Tools, ask func() (T, error)) (T, error) {
	var none T
	if stopped := context.Cause(ctx); stopped != nil {
		return none, stopped
	}
	got, err := guarded(ask)
	if stopped := context.Cause(ctx); stopped != nil {
		return none, stopped
	}
	if err != nil {
		return none, t.sanitise(ctx, err)
	}
	return got, nil
}

// guarded takes a panic of the corpus for an error: a model's call must not
// take the node with it.
func guarded[T any](ask func() (T, error)) (got T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the corpus panicked: %v", p)
		}
	}()
	return ask()
}

func (t *Tools) sanitise(ctx context.Context, err error) error {
	below := codeOf(err)
	code := below
	if known, ok := translated[code]; ok {
		code = known
	}
	text, ok := fixed[code]
	if !ok {
		code, text = messages.QueryFailed, failed
	}
	report(ctx, t.log, levelOf(below, code), err)
	return messages.Refuse(code, "%s", text)
}

// Outward is what a model is told when the session that it speaks for could not
// be reached, before any tool ran: refusals as they are, and of what failed in
// the node no id, no path and no cause, which are logged (S-120).
func Outward(ctx context.Context, log *slog.Logger, err error) error {
	code := messages.CodeOf(err)
	kind := messages.Lookup(code).Kind
	if err == nil || kind == messages.RefusalKind || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	shown, text := messages.QueryPersistence, fixed[messages.QueryPersistence]
	if code == "" || kind == messages.BugKind {
		shown, text = messages.QueryFailed, failed
	}
	report(ctx, log, levelOf(code, shown), err)
	return messages.Refuse(shown, "%s", text)
}

// levelOf is where trouble is logged: quietly where it is the caller's own
// mistake, or the node stops, as at the other doors.
func levelOf(below, shown messages.Code) slog.Level {
	if below == messages.Unavailable || messages.Lookup(shown).Kind == messages.RefusalKind {
		return slog.LevelInfo
	}
	return slog.LevelError
}

// report logs an error in full, as far as that can be done: one that cannot be
// printed, or a logger that fails, changes nothing of the call (S-120).
func report(ctx context.Context, log *slog.Logger, level slog.Level, err error) {
	defer func() { _ = recover() }()
	log.LogAttrs(ctx, level, "a session query failed", slog.String("err", printed(err)))
}

func printed(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "an error that cannot be printed"
		}
	}()
	return err.Error()
}

func codeOf(err error) (code messages.Code) {
	defer func() {
		if recover() != nil {
			code = ""
		}
	}()
	var coded *messages.Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return ""
}
