package simulation

import (
	"fmt"
	"strings"
)

// Tab is one page of a client's tab, from its loading to its end, as a person in
// front of it would tell it.
type Tab struct {
	Party, Session string
	N              int // the tab, from 1
	From           int64
	Until          int64  // if it ended
	How            string // it ended; empty: it did not
	// Kept are the drafts that it found in the store, by card, and KeptOf are the
	// calls that they were written for, by their place in the log.
	Kept   map[string]string
	KeptOf map[string]int64
	// Marks are what happened in it, in order.
	Marks []Mark
}

// Mark is one thing that a tab heard, that its person did, or that its clock
// brought, and what came of it.
type Mark struct {
	At   int64
	Step int
	Line int    // of the trace, the first that it brought; else the last before it
	What string // a verb of clients, or one of the constants
	Call string
	// State, Seq and the questions' ids are of a row.
	State string
	Seq   int64
	IDs   []string
	// LeftMS and Never are of a frame.
	LeftMS int64
	Never  bool
	// Lost: the stream of a claim ended without a word.
	Lost bool
	// Said is the submission that was answered.
	Said *Said
	// JumpMS is how far the client's clock was set.
	JumpMS int64

	Sent  []*Said // the commands that it sent
	Told  []error // what the person was told of their submission or their closing
	LetGo []*Hold // the claims that it let go
	Shows *Shown  // the card of the call after it; nil: there is none
}

// What happens in a tab without its person.
const (
	markRow     = "row"     // the watch shows a call so
	markSynced  = "synced"  // every row there was has been seen
	markFrame   = "frame"   // a claim holds
	markEnd     = "end"     // the stream of a claim is over
	markReplied = "replied" // a submission was answered
	markTick    = "tick"
)

// Shown is a card, as it looks.
type Shown struct {
	Call, State, Wait, Channel string
	Seq                        int64  // of the call that it is the card of
	Key                        string // of its draft
	Draft                      string // as it would be kept
	LeftMS                     int64  // of the countdown
	Counts, Running            bool
	Held                       bool // a claim holds its wait
	Unheld                     bool // it says that nothing does any more
	Frozen                     bool // an answer was sent
	Seated                     bool // in sight
	Review                     bool
}

func (s *Shown) String() string {
	if s == nil {
		return "no card"
	}
	words := []string{s.State, s.Wait, "by " + s.Channel}
	if s.Counts {
		how := "stopped at"
		if s.Running {
			how = "running from"
		}
		words = append(words, fmt.Sprintf("%s %dms", how, s.LeftMS))
	}
	for _, f := range []struct {
		is   bool
		word string
	}{{s.Held, "held"}, {s.Unheld, "unheld"}, {s.Frozen, "sent"}, {!s.Seated, "hidden"}, {s.Review, "review"}} {
		if f.is {
			words = append(words, f.word)
		}
	}
	return strings.Join(words, " ")
}
