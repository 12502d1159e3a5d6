package simulation

import (
	"bytes"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// subCallInvariants are those of questions that programs ask. All others hold
// for these questions too.
var subCallInvariants = []Invariant{
	{"one record of a sub-call", "what a program asks has a number of its own in its parent, and one record of what it came to, with the words that it began with", []string{"P1", "Q-149", "Q-150"}, oneRecord},
	{"a sub-call is not asked over", "an id under which a question waits or was taken back is given to no other sub-call, and to no legacy call: the answer would be to the earlier words", []string{"P2", "Q-149", "Q-152"}, notAskedOver},
	{"what has asked was started", "a program that has asked a person is not said to be one that can simply be repeated", []string{"L-053", "P3"}, askedIsStarted},
}

// fits: the ids of a sub-call are of one family.
func fits(ask *messages.AskRequest) bool {
	parent, ok := sessionlog.ParentOf(ask.GetCallId())
	return ok && parent == ask.GetParentCallId()
}

// withdrawnLate: it was taken back after its foreground had ended.
func (l *life) withdrawnLate() bool { return l.states[len(l.states)-1].why == "withdrawn" }

func oneRecord(e *Evidence) {
	for _, a := range e.accounts {
		open := map[string]*sessionlog.SubCall{}
		for _, ev := range a.log.Events {
			if ev.Type != sessionlog.TypeDispatchStart && ev.Type != sessionlog.TypeDispatch {
				continue
			}
			sub, name, err := sessionlog.DecodeSubCall(ev)
			if err != nil || name != sessionlog.ToolName {
				continue
			}
			began := open[sub.SubCallID]
			switch parent, ok := sessionlog.ParentOf(sub.SubCallID); {
			case !ok || parent != sub.ParentCallID || sessionlog.RootOf(parent) != sub.RootCallID:
				e.at(a, ev.Seq).fail("event %d of session %s is of sub-call %q, which is no number of its parent %q under %q", ev.Seq, a.name, sub.SubCallID, sub.ParentCallID, sub.RootCallID)
			case ev.Type == sessionlog.TypeDispatchStart && began != nil:
				e.at(a, ev.Seq).fail("sub-call %s begins at event %d, and has no record of how it ended before. %s", sub.SubCallID, ev.Seq, a.story(sub.SubCallID))
			case ev.Type == sessionlog.TypeDispatch && began == nil:
				e.at(a, ev.Seq).fail("sub-call %s has a record at event %d, and has not begun, or has one already. %s", sub.SubCallID, ev.Seq, a.story(sub.SubCallID))
			case ev.Type == sessionlog.TypeDispatch && !bytes.Equal(began.Arguments, sub.Arguments):
				e.at(a, ev.Seq).fail("sub-call %s began with %s, and its record at event %d has %s", sub.SubCallID, began.Arguments, ev.Seq, sub.Arguments)
			}
			delete(open, sub.SubCallID)
			if ev.Type == sessionlog.TypeDispatchStart {
				open[sub.SubCallID] = &sub
			}
		}
		for _, l := range a.lives {
			if open[l.call] != nil && a.latest[l.call] == l && e.Stopped == "" {
				e.at(a, l.at).fail("sub-call %s, asked at event %d, has no record of what it came to. %s", l.call, l.at, a.story(l.call))
			}
		}
	}
}

func notAskedOver(e *Evidence) {
	for a, l := range e.lives {
		if l.sub == nil && !l.rec.Legacy {
			continue // asked directly, it takes the place of the earlier one
		}
		if before, is := a.at(l.call, l.at); before != nil && (is == continued || is == replied || is == over && before.withdrawnBefore(l.at)) {
			e.at(a, l.at).fail("call %s is asked at event %d, while what was asked under its id at %d is kept. %s", l.call, l.at, before.at, a.story(l.call))
		}
	}
}

// withdrawnBefore: it was over by then because it had been taken back late.
func (l *life) withdrawnBefore(seq int64) bool {
	for _, s := range l.states {
		if s.seq < seq && s.why == "withdrawn" {
			return true
		}
	}
	return false
}

func askedIsStarted(e *Evidence) {
	for _, a := range e.accounts {
		for _, ev := range a.log.Events {
			if ev.Type != sessionlog.TypeToolResult {
				continue
			}
			r, err := sessionlog.DecodeResult(ev)
			if err != nil || r.Code != sessionlog.CodeNotStarted {
				continue
			}
			for _, l := range a.lives {
				if l.sub != nil && l.sub.RootCallID == r.CallID && l.at < ev.Seq {
					e.at(a, ev.Seq).fail("event %d of session %s says that %s was not started, and its program had asked %s at event %d", ev.Seq, a.name, r.CallID, l.call, l.at)
				}
			}
		}
	}
}
