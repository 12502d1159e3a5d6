// Package journaltest is the contract of package journal as a test: one suite
// that every backend passes, the durable ones and the simulated disk alike.
//
// It decides what a journal must do. It never looks inside one, and never
// depends on how long anything takes.
package journaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Harness is one journal under test.
type Harness struct {
	Journal journal.Journal
	// Reopen closes the journal, if the test has not, and opens what it kept.
	// nil: it keeps nothing.
	Reopen func(t *testing.T) journal.Journal
	// Restore opens a backup that was written to path. nil: there are none.
	Restore func(t *testing.T, path string) journal.Journal
}

// Exercise runs the suite. open makes a fresh, empty journal; whoever makes it
// closes it when the test ends, after the test may have done so.
func Exercise(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"an append is read back as it was written", anAppendIsReadBack},
		{"a packed row is kept as one record and read in parts", aPackedRowIsOneRecord},
		{"an unborn session takes no epoch", anUnbornSessionTakesNoEpoch},
		{"the first append creates the session with epoch 1", theFirstAppendCreates},
		{"two writers at one position: one wins", twoWritersOneWins},
		{"two owners give birth to one session: one wins", twoOwnersGiveBirth},
		{"opening a session fences its owner", openingFences},
		{"an append behind or ahead of the session is fenced", wrongSequenceIsFenced},
		{"an empty append proves ownership and moves nothing", anEmptyAppendProvesOwnership},
		{"a read never fences an owner", aReadNeverFences},
		{"each append of a group fails alone", eachAppendFailsAlone},
		{"appends of one session handed in at once follow each other", appendsFollowEachOther},
		{"a batch that breaks a rule is refused as a bug and leaves nothing", aBrokenBatchLeavesNothing},
		{"reading from a number and up to a limit", readingFromAndLimit},
		{"an unknown session is not found", anUnknownSessionIsNotFound},
		{"sessions are listed by id and page by page", sessionsAreListed},
		{"active rows are put, replaced and removed", activeRows},
		{"active rows are listed page by page and by session", activePages},
		{"changes after a position have no gap and no repeat", changesHaveNoGap},
		{"a position ahead of the journal is refused", aheadIsRefused},
		{"due lists what must be awake, the longest due first, and the next time", dueLists},
		{"moved tells of a later position and of nothing else", movedTells},
		{"a deleted session leaves nothing but its removals and its epoch", deleteErases},
		{"deleting needs the epoch", deletingNeedsTheEpoch},
		{"close finishes what was handed in", closeFinishes},
		{"a closed journal is unavailable", aClosedJournalIsUnavailable},
		{"everything is there after reopening", everythingIsThereAfterReopening},
		{"an epoch taken before reopening is not given again", epochsSurviveReopening},
		{"many sessions at once agree with what was acknowledged", manySessionsAtOnce},
		{"random histories agree with a plain model", randomHistories},
		{"backup while writing is consistent", backupIsConsistent},
		{"a backup does not replace a file", backupReplacesNothing},
		{"a done context ends a read", aDoneContextEndsARead},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// Header returns a header for a session.
func Header(session string) *sessionlog.Header {
	return &sessionlog.Header{Version: sessionlog.V3, ID: session, CreatedAt: 1_700_000_000_000}
}

// Events returns n events from sequence number seq on, each with a text that
// names it.
func Events(seq int64, n int, text string) []sessionlog.Event {
	out := make([]sessionlog.Event, n)
	for i := range out {
		raw, _ := json.Marshal(fmt.Sprintf("%s %d ☂ line\nfeed", text, seq+int64(i)))
		data := json.RawMessage(fmt.Sprintf(`{"text":%s}`, raw))
		out[i] = sessionlog.NewEvent("test/event", data).At(seq+int64(i), 1_700_000_000_000+seq)
	}
	return out
}

// Put returns the change that puts a row.
func Put(call string, due int64) sessionlog.RowChange {
	return sessionlog.RowChange{Row: sessionlog.Row{CallID: call, State: sessionlog.RowOpen, Due: due, Seq: 3}}
}

// Remove returns the change that removes a row.
func Remove(call string) sessionlog.RowChange {
	return sessionlog.RowChange{Row: sessionlog.Row{CallID: call}, Remove: true}
}

// Birth returns the batch that creates a session with n events.
func Birth(session string, n int, index ...sessionlog.RowChange) journal.Batch {
	return journal.Batch{Session: session, Header: Header(session), Events: Events(0, n, session), Index: index}
}

// Next returns the batch that adds n events to a session.
func Next(session string, epoch, seq int64, n int, index ...sessionlog.RowChange) journal.Batch {
	return journal.Batch{Session: session, Epoch: epoch, Seq: seq, Events: Events(seq, n, session), Index: index}
}

// Outcome is what a callback was called with.
type Outcome[T any] struct {
	Value T
	Err   error
}

// Appending hands an append in and returns where its outcome will come.
func Appending(j journal.Journal, b journal.Batch) <-chan Outcome[journal.Appended] {
	ch := make(chan Outcome[journal.Appended], 2) // room for a callback too many
	j.Append(b, func(a journal.Appended, err error) { ch <- Outcome[journal.Appended]{a, err} })
	return ch
}

// Append appends and waits.
func Append(j journal.Journal, b journal.Batch) (journal.Appended, error) {
	out := <-Appending(j, b)
	return out.Value, out.Err
}

// Open opens a session and waits.
func Open(j journal.Journal, session string) (journal.Opened, error) {
	ch := make(chan Outcome[journal.Opened], 2)
	j.Open(session, func(o journal.Opened, err error) { ch <- Outcome[journal.Opened]{o, err} })
	out := <-ch
	return out.Value, out.Err
}

func mustAppend(t *testing.T, j journal.Journal, b journal.Batch) journal.Appended {
	t.Helper()
	a, err := Append(j, b)
	if err != nil {
		t.Fatalf("append to %s at %d: %v", b.Session, b.Seq, err)
	}
	return a
}

func mustOpen(t *testing.T, j journal.Journal, session string) journal.Opened {
	t.Helper()
	o, err := Open(j, session)
	if err != nil {
		t.Fatalf("open %s: %v", session, err)
	}
	return o
}

func mustRead(t *testing.T, j journal.Reader, session string) journal.Opened {
	t.Helper()
	o, err := j.Read(t.Context(), session, 0, 0)
	if err != nil {
		t.Fatalf("read %s: %v", session, err)
	}
	return o
}

func wantCode(t *testing.T, err error, code messages.Code) {
	t.Helper()
	if got := messages.CodeOf(err); got != code {
		t.Fatalf("error %v has code %q, want %q", err, got, code)
	}
}

func wantEvents(t *testing.T, got, want []sessionlog.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range got {
		if string(got[i].Line()) != string(want[i].Line()) {
			t.Fatalf("event %d is\n%s\nwant\n%s", i, got[i].Line(), want[i].Line())
		}
	}
}

// AllChanges pages through the change feed, limit batches at a time.
func AllChanges(ctx context.Context, j journal.Reader, after journal.Position, limit int) ([]journal.Change, journal.Position, error) {
	var out []journal.Change
	for {
		page, next, err := j.Changes(ctx, after, limit)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, page...)
		if next == after {
			return out, next, nil
		}
		after = next
	}
}

// Fold applies changes to rows by session and call, as a view does.
func Fold(rows map[[2]string]sessionlog.Row, changes []journal.Change) {
	for _, c := range changes {
		if key := [2]string{c.Session, c.Row.CallID}; c.Remove {
			delete(rows, key)
		} else {
			rows[key] = c.Row
		}
	}
}
