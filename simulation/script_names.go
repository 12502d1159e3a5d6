package simulation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parleyrun/parley/sessionlog"
)

// Names of calls. A script names a call wherever something is done to it, and a
// name that no agent asks is most often spelled wrong: the script then shows
// nothing. Draws, and what is left of a plan that was cut down, have such names
// for a reason; a line of the script says them.

const unaskedWord = "unasked"

// callNames are the names under which calls of one session are asked.
type callNames struct {
	asked   []string // by ask and start, in their order
	again   []string // asked under a new attempt, each time by a name made of this one
	running []string // that a program runs in
}

func (p *Plan) callNames(session string) (n callNames) {
	for _, party := range p.Parties {
		if party.Kind != AgentParty || party.Session != session {
			continue
		}
		for _, a := range party.Acts {
			switch a.Verb {
			case doAsk, doStart:
				n.asked = append(n.asked, a.Call)
			case doAgain:
				n.again = append(n.again, a.Call)
			}
			if a.In != "" {
				n.running = append(n.running, a.In)
			}
		}
	}
	return n
}

// has: what an act is done to is there.
func (n callNames) has(a Act) bool {
	if a.Verb == doFinish {
		return slices.Contains(n.running, a.Call)
	}
	base, _, _ := strings.Cut(a.Call, "'")
	parent, sub := sessionlog.ParentOf(a.Call)
	return slices.Contains(n.asked, a.Call) || base != a.Call && slices.Contains(n.again, base) ||
		sub && len(n.again) > 0 && slices.Contains(n.running, parent)
}

// unasked walks the acts that name a call which no agent of their session asks.
func (p *Plan) unasked(yield func(party, act int) bool) {
	bySession := map[string]callNames{}
	for i, party := range p.Parties {
		names, known := bySession[party.Session]
		if !known {
			names = p.callNames(party.Session)
			bySession[party.Session] = names
		}
		for j, a := range party.Acts {
			asks := a.Verb == doAsk || a.Verb == doStart
			if verbOf(party.Kind, a.Verb).call && !asks && !names.has(a) && !yield(i, j) {
				return
			}
		}
	}
}

// unaskedCalls are the names that a script has to say of the plan.
func (p *Plan) unaskedCalls() (calls []string) {
	for i, j := range p.unasked {
		calls = append(calls, p.Parties[i].Acts[j].Call)
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// namesMax is how many names an error lists.
const namesMax = 10

// nobodyAsks says what is wrong with a name.
func nobodyAsks(p *PartyPlan, a Act, names callNames) string {
	what, there := "asks", names.asked
	if a.Verb == doFinish {
		what, there = "asks in", names.running
	}
	text := fmt.Sprintf("%s %s: no agent of session %s %s %s", a.Verb, a.Call, p.Session, what, a.Call)
	slices.Sort(there)
	there = slices.Compact(there)
	if more := len(there) - namesMax; more > 0 {
		there = append(there[:namesMax:namesMax], fmt.Sprintf("%d more", more))
	}
	if len(there) > 0 {
		text += "; there is " + strings.Join(there, ", ")
	}
	return text + fmt.Sprintf(". If it is meant, say so in a line: %s %s", unaskedWord, a.Call)
}
