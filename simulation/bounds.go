package simulation

import (
	"fmt"
	"time"
)

// bounds say when a world is stopped that does not come to rest by itself. They
// follow from its plan: what is stopped has had more than all that is in it needs.
type bounds struct {
	rest  time.Duration // since the world has healed
	steps int
}

// A healed world has this long to come to rest, and this many steps in all,
// beside what its plan adds.
const (
	restBase  = 15 * time.Minute
	stepsBase = 200_000
)

const (
	// stepsPerSecond are those of a host or a party that waits: who looks for a
	// question looks often.
	stepsPerSecond = 50
	// stepsPerPart are those of an act, a fault, or the end of a session.
	stepsPerPart = 500
	// actTakes is how long an act takes that waits for nothing, in a network and
	// on a disk that take no time.
	actTakes = time.Second
)

// bounds of a run of the plan. rest, when it is not 0, is what programs need once
// the world has healed, of which the plan says nothing.
func (p *Plan) bounds(rest time.Duration) bounds {
	act := min(actTakes+4*p.Network.DelayMax+2*p.Disk.DelayMax, ForMax)
	longest, acts := time.Duration(0), 0
	for _, party := range p.Parties {
		longest = max(longest, party.takes(act))
		acts += len(party.Acts)
	}
	operator := 2 * act * time.Duration(len(p.Sessions)) // it goes through them one by one
	b := bounds{rest: max(restBase+longest+operator, rest)}
	waits := (p.For + longest + rest).Seconds() * float64(p.Hosts+len(p.Parties))
	b.steps = stepsBase + stepsPerSecond*int(waits) + stepsPerPart*(acts+len(p.Faults)+len(p.Sessions))
	return b
}

// takes is how long a party's acts take at most, one after another.
func (p *PartyPlan) takes(act time.Duration) (all time.Duration) {
	for _, a := range p.Acts {
		all += act
		switch span := verbOf(p.Kind, a.Verb).span; {
		case span == "" || span == "+": // a clock's jump takes no time
		case a.Verb == doUntil:
			all = max(all, a.For)
		case a.For < 0:
			all += listensMax
		default:
			all += a.For
		}
	}
	return all
}

// spent: one of its bounds stops the world.
func (w *World) spent() bool { return w.steps >= w.bounds.steps || w.healed && w.now >= w.restBy() }

func (w *World) restBy() int64 { return w.History.Healed + w.bounds.rest.Milliseconds() }

// stopped says what has kept the world from coming to rest, and what to change if
// nothing else is wrong; "": it is at rest.
func (w *World) stopped() string {
	switch {
	case w.atRest():
		return ""
	case w.steps >= w.bounds.steps:
		return fmt.Sprintf("stopped at %d ms by its bound of %d steps: something goes on without an end, or the plan is too large for one world; with fewer sessions, parties and acts, or a shorter `for`, it takes fewer", w.now, w.bounds.steps)
	case w.now < w.restBy():
		return fmt.Sprintf("stopped at %d ms, where nothing can happen any more: somebody waits for what never comes", w.now)
	}
	text := fmt.Sprintf("stopped at %d ms by its bound of %s after it healed, more than all that its plan waits for: somebody waits without an end", w.now, timeText(w.bounds.rest))
	if len(w.programs) > 0 {
		text += "; if a program only takes longer, say how long in Options.Rest"
	}
	return text
}
