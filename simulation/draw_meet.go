package simulation

import (
	"fmt"
	"time"
)

// The one call of a scene that is about one, another one, and when those who meet
// over it know that it is asked.
const (
	oneCall   = "a1q1"
	otherCall = "a1q2"
	askedAt   = 500 * time.Millisecond
)

// meet: several parties act on one call at the same moment, near its deadline,
// before it or long after it, while the session is busy with what somebody said
// just then: whatever arrives meanwhile is taken up in one go.
func (d *drawing) meet() {
	p := d.p
	p.For = d.ms(9_000, 12_000)
	p.Network.Drop = pick(d, 0, 0, p.Network.Drop)
	p.Network.DelayMax = pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)
	p.Disk.DelayMax = pick(d, 0, d.ms(1, 20), d.ms(20, 200))
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	wait := pick(d, time.Second, 2*time.Second, 5*time.Second)
	due := askedAt + wait
	at := pick(d, due+d.ms(0, 40), due+d.ms(0, 40), askedAt+d.ms(0, int(wait.Milliseconds())), due+d.ms(300, 2_000))
	ask := Act{Verb: doStart, Call: oneCall, For: wait, With: pick(d, "", "watched", "legacy")}
	d.asker(ask, at, due)
	for range 2 + d.IntN(3) {
		d.met(ask, at)
	}
	d.person("p0s1", d.IntN(p.Hosts), Act{Verb: doUntil, For: at - pick(d, 0, p.Disk.DelayMax/2, p.Disk.DelayMax)}, Act{Verb: doSteer})
}

// asker is the agent that asks, and that may itself be among those who meet.
func (d *drawing) asker(ask Act, at, due time.Duration) {
	acts := []Act{{Verb: doUntil, For: askedAt - 200*time.Millisecond}, {Verb: doAttach}}
	if d.chance(50) {
		acts = append(acts, Act{Verb: doTurn})
	}
	acts = append(acts, Act{Verb: doUntil, For: askedAt}, ask)
	if d.chance(50) {
		acts = append(acts, Act{Verb: doUntil, For: at}, d.agentMeets(ask))
	}
	acts = append(acts, Act{Verb: doUntil, For: max(at, due) + d.ms(500, 2_000)}, Act{Verb: pick(d, doTake, doCollect)})
	d.p.Parties = append(d.p.Parties, PartyPlan{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(d.p.Hosts), Acts: acts})
}

// agentMeets is what an agent does when all meet.
func (d *drawing) agentMeets(ask Act) Act {
	anew := ask
	anew.With = "anew"
	return pick(d, Act{Verb: doAbort}, Act{Verb: doAbort}, Act{Verb: doUnhear, Call: ask.Call}, Act{Verb: doWithdraw, Call: ask.Call}, anew, anew, ask)
}

// met is one more who comes to the moment: a person, a copy of the agent, or one
// that takes over.
func (d *drawing) met(ask Act, at time.Duration) {
	p, n := d.p, fmt.Sprint(len(d.p.Parties))
	host, then := d.IntN(p.Hosts), Act{Verb: doUntil, For: at + pick(d, 0, 0, d.ms(0, 10))}
	switch d.IntN(8) {
	case 0, 1: // it shares the attempt of the first
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: "as1c" + n, Session: "s1", Root: "r1", Host: host,
			Acts: []Act{{Verb: doUntil, For: askedAt + d.ms(50, 150)}, ask, then, d.agentMeets(ask), {Verb: doWait, For: d.ms(500, 3_000)}, {Verb: doTake}}})
	case 2:
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: "bs1c" + n, Session: "s1", Root: "r2", Host: host,
			Acts: []Act{then, {Verb: doAttach}, {Verb: doWait, For: d.ms(500, 3_000)}, {Verb: doTake}}})
	default:
		d.person("p"+n+"s1", host, d.personMeets(then)...)
	}
}

// personMeets is what a person does when all meet: now and then one who has held
// the call since it was asked.
func (d *drawing) personMeets(then Act) (acts []Act) {
	act := func(verb string) Act { return Act{Verb: verb, Call: oneCall} }
	held := d.chance(35)
	if held {
		acts = append(acts, Act{Verb: doUntil, For: askedAt + d.ms(50, 400)}, act(doOpen))
	}
	acts = append(acts, then)
	switch n := d.IntN(10); {
	case n < 5:
		submit := act(doSubmit)
		submit.With = pick(d, "", "", "", "reject")
		acts = append(acts, submit)
	case n < 7:
		acts = append(acts, act(pick(d, doExpire, doPass, doDismiss)))
	case held:
		acts = append(acts, act(pick(d, doRelease, doCut)))
	default:
		acts = append(acts, act(doOpen), act(doSubmit))
	}
	if d.chance(30) {
		acts = append(acts, act(doTakeBack))
	}
	return acts
}
