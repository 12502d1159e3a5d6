package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/parleyrun/parley/sessionlog"
)

// program draws what an agent does that runs code which asks: several questions
// of one call, at once, and then an end of it that they may not see.
func (d *drawing) program(name string, calls *[]string) (acts []Act) {
	asks := 1 + d.IntN(3)
	for n := range asks {
		call := sessionlog.SubCallID(name, n+1)
		*calls = append(*calls, call)
		acts = append(acts, Act{Verb: pick(d, doStart, doStart, doStart, doAsk), Call: call, In: name,
			For:  pick(d, time.Second, 2*time.Second, 5*time.Second, 60*time.Second, -1),
			With: strings.Join(d.some("legacy", 18, "watched", 25, "two", 10), "+")})
		if d.chance(20) {
			acts = append(acts, Act{Verb: doWait, For: d.ms(1, 1_500)})
		}
	}
	some := func() string { return sessionlog.SubCallID(name, 1+d.IntN(asks)) }
	if d.chance(40) {
		acts = append(acts, Act{Verb: doWait, For: d.ms(100, 4_000)})
	}
	switch d.IntN(12) {
	case 0, 1:
		acts = append(acts, Act{Verb: doFinish, Call: name})
	case 2, 3:
		acts = append(acts, Act{Verb: doAwait, Call: some()})
	case 4:
		acts = append(acts, Act{Verb: doCrash, For: d.ms(1, 5_000)})
	case 5:
		acts = append(acts, Act{Verb: doWithdraw, Call: some()})
	case 6, 10: // a number once more, by a program that runs again
		if d.chance(70) {
			acts = append(acts, Act{Verb: doFinish, Call: name})
		}
		acts = append(acts, Act{Verb: doAsk, Call: some(), In: name, For: pick(d, time.Second, 5*time.Second), With: pick(d, "", "legacy", "anew", "anew", "anew+two")})
	case 7:
		acts = append(acts, Act{Verb: doAgain, Call: some(), In: name, For: 2 * time.Second, With: "watched"})
	case 8: // a program that does not know its own name
		acts = append(acts, Act{Verb: doAsk, Call: some(), In: name + "x", For: time.Second, With: "anew"})
	case 9: // the model asks under a program's number
		acts = append(acts, Act{Verb: doAsk, Call: some(), For: 2 * time.Second, With: pick(d, "anew", "anew+legacy")})
	}
	return acts
}

// programs: all that is asked is asked by programs, of which one may run inside
// of another, until their turn is aborted, their process dies or another agent
// takes over.
func (d *drawing) programs() {
	p := d.p
	p.For = d.ms(5_000, 12_000)
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	var calls []string
	own := d.chance(60)
	agent := func(name, root string) PartyPlan {
		a := PartyPlan{Kind: AgentParty, Name: name, Session: "s1", Root: root, Host: d.IntN(p.Hosts)}
		for n := range 1 + d.IntN(2) {
			if own {
				a.Acts = append(a.Acts, Act{Verb: doTurn})
			}
			run := fmt.Sprintf("%s-run%d", root, n+1)
			a.Acts = append(a.Acts, d.program(run, &calls)...)
			if d.chance(30) {
				a.Acts = append(a.Acts, d.program(sessionlog.SubCallID(run, 7), &calls)...)
			}
			if own {
				a.Acts = append(a.Acts, Act{Verb: pick(d, doAbort, doAbort, doEnd)})
			}
		}
		a.Acts = append(a.Acts, Act{Verb: pick(d, doTake, doCollect)})
		return a
	}
	p.Parties = append(p.Parties, agent("as1", "r1"))
	if d.chance(60) {
		second := agent("bs1", "r2")
		second.Acts = append([]Act{{Verb: doWait, For: d.ms(300, 4_000)}}, second.Acts...)
		p.Parties = append(p.Parties, second)
	}
	d.people(p.Sessions[0], calls)
	d.faults()
}
