package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/sessionlog"
)

// restInvariants hold once the world has healed and come to rest, and of the
// history as a whole.
var restInvariants = []Invariant{
	{"everything ends", "after healing every program, command, call and queued reply comes to its end", []string{"P1", "P2", "P7"}, everythingEnds},
	{"one register", "of each question, what everybody said and was told can be put into one order (linearizability)", []string{"P1", "P2", "Q-088"}, oneRegister},
}

func everythingEnds(e *Evidence) {
	if e.Stopped != "" {
		e.fail("the world was %s", e.Stopped)
	}
	for _, busy := range e.Busy {
		e.fail("%s", busy)
	}
	for a, l := range e.lives {
		if is := l.state(); is != over && e.existed(a) {
			e.at(a, l.lastSeq()).fail("call %s is still %s. %s Held by: %s", l.call, is, a.story(l.call), e.holders(a, l))
		}
	}
	for _, a := range e.accounts {
		for _, m := range a.messages {
			if m.waits {
				e.at(a, m.lastSeq()).fail("message %s of session %s was queued at event %d and still waits; %s speaks for the session", m.ID, a.name, m.in[0], a.rootBefore(int64(len(a.log.Events))).root)
			}
		}
	}
	for _, s := range e.History.Said {
		if s.Answer == nil && !s.Left {
			e.heard(s).fail("%s said %s at %d, %d times, and was told nothing final", s.Party, brief(s.Cmd), s.At, s.Tries)
		}
	}
}

// existed: the session is there.
func (e *Evidence) existed(a *account) bool { return a.log.Header != nil }

// holders are who believes that it holds a call.
func (e *Evidence) holders(a *account, l *life) string {
	var who []string
	for _, h := range e.History.Holds {
		if h.Session == a.name && h.Call == l.call && h.Over == 0 {
			who = append(who, fmt.Sprintf("%s since %d", h.Party, h.Opened))
		}
	}
	if len(who) == 0 {
		return "nobody"
	}
	return strings.Join(who, ", ")
}

// wholeNumber reads a whole number of a JSON record.
func wholeNumber(text, key string) (int64, bool) {
	n, err := strconv.ParseInt(string(sessionlog.Member(text, key)), 10, 64)
	return n, err == nil
}
