package simulation

import (
	"fmt"
	"time"
)

// together: all that happens is in one session, and nothing that is said is lost or
// takes long. The world heals within a time from lo to hi, in milliseconds.
func (d *drawing) together(lo, hi int) {
	p := d.p
	p.For = d.ms(lo, hi)
	p.Network.Drop = 0
	p.Network.DelayMax = pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)
	p.Disk.DelayMax = pick(d, 0, d.ms(1, 20), d.ms(20, 200))
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
}

// borrowed: people answer two questions at one moment under one submission id, as
// clients do that make an id once and keep it. Who comes second is refused, and
// its question goes on: to another answer, or to its deadline.
func (d *drawing) borrowed() {
	p := d.p
	d.together(8_000, 12_000)
	wait := pick(d, time.Second, 2*time.Second, 5*time.Second)
	at := askedAt + pick(d, d.ms(100, int(wait.Milliseconds())), wait+d.ms(300, 2_000))
	calls := []string{oneCall, otherCall}
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{
		{Verb: doUntil, For: askedAt}, {Verb: doStart, Call: oneCall, For: wait}, {Verb: doStart, Call: otherCall, For: pick(d, wait, wait, 5*time.Second, -1)},
		{Verb: doUntil, For: at + d.ms(1_000, 3_000)}, {Verb: pick(d, doTake, doCollect)}}}}
	for i := range 2 + d.IntN(3) {
		call := calls[i%2]
		acts := []Act{{Verb: doUntil, For: at + pick(d, 0, 0, d.ms(0, 10))}, {Verb: doSubmit, Call: call, With: "shared"}}
		if d.chance(25) {
			acts = append([]Act{{Verb: doUntil, For: askedAt + d.ms(50, 90)}, {Verb: doOpen, Call: call}}, acts...)
		}
		if d.chance(50) { // another answer of the same person, under an id of its own or under the same
			acts = append(acts, Act{Verb: doWait, For: d.ms(0, 2_000)}, Act{Verb: doSubmit, Call: pick(d, calls...), With: pick(d, "", "shared")})
		}
		d.person(fmt.Sprintf("p%ds1", i+1), d.IntN(p.Hosts), acts...)
	}
	d.person("p0s1", p.Sessions[0].Host, Act{Verb: doUntil, For: at - pick(d, 0, p.Disk.DelayMax/2, p.Disk.DelayMax)}, Act{Verb: doSteer})
	if d.chance(80) { // the clock jumps while the answers are on their way: whoever goes on waiting waits as long as before
		p.Faults = append(p.Faults, FaultPlan{At: at - d.ms(-20, 300), What: faultClock, Host: p.Sessions[0].Host, For: pick(d, 400*time.Millisecond, time.Second, time.Second, 4*time.Second, -10*time.Second)})
	}
}

// regretted: people answer late, take it back and answer once more: in the same
// words under the same id, or otherwise; while others do, and the agent looks.
func (d *drawing) regretted() {
	p := d.p
	d.together(6_000, 9_000)
	at := askedAt + time.Second + d.ms(300, 2_000)
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{{Verb: doUntil, For: askedAt},
		{Verb: doStart, Call: oneCall, For: time.Second, With: pick(d, "", "hurried")}, {Verb: doUntil, For: at + pick(d, d.ms(0, 500), d.ms(2_000, 4_000))}, {Verb: pick(d, doTake, doCollect)}}}}
	act := func(verb string, with ...string) Act {
		return Act{Verb: verb, Call: oneCall, With: pick(d, append(with, "")...)}
	}
	for i := range 1 + d.IntN(2) {
		acts := []Act{{Verb: doUntil, For: at + d.ms(0, 100)}, act(doSubmit), act(doTakeBack), {Verb: doWait, For: d.ms(0, 1_000)}, act(doSubmit)}
		if d.chance(50) {
			acts = append(acts, act(doTakeBack), act(doSubmit, "new", "new"), act(doSubmit))
		}
		d.person(fmt.Sprintf("p%ds1", i+1), d.IntN(p.Hosts), acts...)
	}
}

// lists: the agents of two sessions list what people said, at such length now and
// then that it does not fit, and show each other's tokens.
func (d *drawing) lists() {
	p := d.p
	p.For = d.ms(5_000, 8_000)
	p.Network.Drop = 0
	p.Network.DelayMax = pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)
	p.Disk.DelayMax = pick(d, 0, d.ms(1, 20))
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}, {Name: "s2", Host: d.IntN(p.Hosts)}}
	for _, s := range p.Sessions {
		acts := append([]Act{{Verb: doUntil, For: d.ms(1_000, 2_000)}, {Verb: doCollect}}, d.times(2+d.IntN(4), func() []Act {
			return []Act{{Verb: doWait, For: d.ms(50, 1_000)}, pick(d, Act{Verb: doCollect}, Act{Verb: doForget}, Act{Verb: doCollect, With: "foreign"})}
		})...)
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: "a" + s.Name, Session: s.Name, Root: "r1", Host: d.IntN(p.Hosts), Acts: acts})
		length := pick(d, "", "long")
		p.Parties = append(p.Parties, PartyPlan{Kind: PersonParty, Name: "p" + s.Name, Session: s.Name, Host: d.IntN(p.Hosts), Acts: append([]Act{{Verb: doUntil, For: askedAt}}, d.times(3+d.IntN(4), func() []Act {
			return []Act{{Verb: doSteer, With: length}, {Verb: doWait, For: pick(d, 0, 0, d.ms(1, 1_000))}}
		})...)})
	}
}

// early: a host stands still while a claim is opened and its call is asked, and
// finds then that the disk has failed their session: the claim opens itself again,
// and one of its two openings meets the call.
func (d *drawing) early() {
	p := d.p
	p.Hosts, p.For = 1, d.ms(6_000, 9_000)
	p.Rules.Grace, p.Rules.Passivate = 0, 0
	p.Network = NetworkPlan{DelayMax: pick(d, 0, 3*time.Millisecond)}
	p.Disk = DiskPlan{DelayMax: d.ms(50, 150), DoubtOps: []int{3}} // the first question, after the session's opening and its agent
	p.Faults = append(p.Faults, FaultPlan{At: askedAt + d.ms(4, 20), What: faultPause, For: d.ms(200, 1_000)})
	p.Sessions = []SessionPlan{{Name: "s1"}}
	wait := pick(d, time.Second, 2*time.Second)
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Acts: []Act{{Verb: doUntil, For: askedAt}, {Verb: doStart, Call: oneCall, For: time.Minute},
		{Verb: doWait, For: d.ms(10, 100)}, {Verb: doStart, Call: otherCall, For: wait}, {Verb: doWait, For: d.ms(1_000, 6_000)}, {Verb: doTake}}}}
	for i := range 3 {
		d.person(fmt.Sprintf("p%ds1", i+1), 0, Act{Verb: doUntil, For: askedAt + d.ms(10, 100)}, Act{Verb: doOpen, Call: otherCall})
	}
	d.person("p4s1", 0, Act{Verb: doUntil, For: askedAt + wait + d.ms(1_500, 3_000)}, Act{Verb: doOpen, Call: otherCall}, Act{Verb: doWait, For: d.ms(10, 500)}, Act{Verb: doRelease, Call: otherCall})
}

// unattended: an agent that waits in a session leaves it, after the disk has
// failed that session now and then, or after its door has asked again, and comes
// back long after it was unloaded.
func (d *drawing) unattended() {
	p := d.p
	p.Hosts, p.For = min(2, p.Hosts), d.ms(36_000, 40_000)
	p.Rules.Grace, p.Rules.Passivate = pick(d, 0, 700*time.Millisecond), 900*time.Millisecond
	p.Network = NetworkPlan{DelayMax: pick(d, 0, 30*time.Millisecond)}
	p.Disk = DiskPlan{DelayMax: d.ms(0, 20), InDoubt: pick(d, 0, d.IntN(200))}
	p.Sessions = []SessionPlan{{Name: "s1"}}
	left := pick(d, d.ms(2_000, 5_000), d.ms(12_000, 18_000))
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{{Verb: doUntil, For: askedAt},
		{Verb: doStart, Call: oneCall, For: pick(d, time.Minute, -1)}, {Verb: doUntil, For: left}, pick(d, Act{Verb: doWait}, Act{Verb: doListen, For: d.ms(1, 500)}),
		{Verb: doLeave, Call: oneCall}, {Verb: doUntil, For: left + d.ms(15_000, 16_000)}, {Verb: doTake}, {Verb: doWait, For: d.ms(100, 4_000)}, {Verb: doTake}}}}
	acts := append([]Act{{Verb: doUntil, For: askedAt}}, d.times(1+d.IntN(4), func() []Act {
		return []Act{{Verb: doWait, For: d.ms(100, 600)}, {Verb: doSteer}}
	})...)
	if d.chance(50) {
		acts = append(acts, Act{Verb: doOpen, Call: oneCall}, Act{Verb: doWait, For: d.ms(10, 500)}, Act{Verb: pick(d, doRelease, doCut, doPass), Call: oneCall})
	}
	d.person("p1s1", d.IntN(p.Hosts), append(acts, Act{Verb: doUntil, For: left + d.ms(15_500, 17_000)}, Act{Verb: doSteer})...)
}

// circle: a question without a deadline goes round among those who hold it, each
// of whom may pass; only the last one leaves it without anybody.
func (d *drawing) circle() {
	p := d.p
	p.For = d.ms(6_000, 9_000)
	p.Network.Drop = 0
	p.Network.DelayMax = min(p.Network.DelayMax, 30*time.Millisecond)
	p.Disk.DelayMax = min(p.Disk.DelayMax, 20*time.Millisecond)
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{{Verb: doUntil, For: askedAt},
		{Verb: doAsk, Call: oneCall, For: -1, With: pick(d, "", "legacy", "legacy")}, {Verb: doTake}}}}
	for i := range 2 + d.IntN(2) {
		acts := []Act{{Verb: doUntil, For: askedAt + d.ms(100, 400)}, {Verb: doOpen, Call: oneCall}, {Verb: doWait, For: d.ms(200, 3_000)},
			{Verb: pick(d, doPass, doPass, doRelease, doSubmit), Call: oneCall}}
		if d.chance(30) { // it comes too late, and is told so
			acts = append(acts, Act{Verb: doWait, For: d.ms(200, 3_000)}, Act{Verb: doOpen, Call: oneCall})
		}
		d.person(fmt.Sprintf("p%ds1", i+1), d.IntN(p.Hosts), acts...)
	}
}

// bells: copies of an agent listen, take and look just when somebody speaks to
// them, or answers what they asked long ago.
func (d *drawing) bells() {
	p := d.p
	p.For = d.ms(9_000, 12_000)
	p.Network = NetworkPlan{DelayMax: pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)}
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 20), d.ms(20, 200))}
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	at := askedAt + d.ms(1_500, 3_000)
	meet := func(acts ...Act) []Act {
		return append([]Act{{Verb: doUntil, For: at + pick(d, 0, 0, d.ms(0, 5))}}, acts...)
	}
	for i := range 2 + d.IntN(3) {
		acts := []Act{{Verb: doUntil, For: askedAt}, {Verb: doStart, Call: oneCall, For: time.Second, With: "watched"}}
		acts = append(acts, meet(d.times(1+d.IntN(3), func() []Act {
			return []Act{pick(d, Act{Verb: doListen, For: d.ms(3_000, 6_000)}, Act{Verb: doListen, For: d.ms(1, 50)}, Act{Verb: doTake}, Act{Verb: doCollect})}
		})...)...)
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: fmt.Sprintf("as1n%d", i+1), Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: acts})
	}
	d.person("p1s1", d.IntN(p.Hosts), meet(Act{Verb: doSubmit, Call: oneCall}, Act{Verb: doWait, For: d.ms(0, 500)}, Act{Verb: doSteer})...)
	d.person("p2s1", d.IntN(p.Hosts), meet(Act{Verb: doSteer}, Act{Verb: doWait, For: d.ms(0, 500)}, Act{Verb: doSteer})...)
}

// copies: an agent's process runs several times over, and each copy believes that
// its turn and its step go on. They begin and end them, and ask, by numbers that
// another may have left behind; what they send arrives twice now and then.
func (d *drawing) copies() {
	p := d.p
	p.For = d.ms(6_000, 9_000)
	p.Network = NetworkPlan{DelayMax: pick(d, 3*time.Millisecond, 30*time.Millisecond, 300*time.Millisecond), Duplicate: pick(d, 0, d.IntN(400))}
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 50)), InDoubt: pick(d, 0, 0, d.IntN(100))}
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	n := 0
	for i := range 2 + d.IntN(2) {
		acts := []Act{{Verb: doUntil, For: d.ms(100, 600)}, {Verb: pick(d, doTurn, doTurn, doAttach)}}
		acts = append(acts, d.times(4+d.IntN(6), func() []Act {
			n++
			ask := Act{Verb: pick(d, doStart, doAsk), Call: fmt.Sprintf("a1q%d", n), For: time.Second, With: pick(d, "", "watched", "legacy")}
			again := ask
			again.Call, again.With = oneCall, pick(d, "two", "watched", "legacy+watched") // the same attempt asks something else
			step := Act{Verb: doStep}
			return []Act{pick(d, ask, ask, again, step, step, step, step, step, Act{Verb: doEnd}, Act{Verb: doEnd}, Act{Verb: doTurn}, Act{Verb: doTurn}, Act{Verb: doAttach},
				Act{Verb: doAbort}, Act{Verb: doWithdraw, Call: oneCall}, Act{Verb: doClaim}), {Verb: doWait, For: pick(d, 0, d.ms(1, 900))}}
		})...)
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: fmt.Sprintf("as1n%d", i+1), Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: append(acts, Act{Verb: doTake})})
	}
	if d.chance(20) { // one of them says that it is a child
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: "cs1", Session: "s1", Root: "r1", Owner: "s0", Acts: []Act{{Verb: doUntil, For: d.ms(500, 4_000)}, {Verb: doAttach}}})
	}
	if p.Hosts > 1 && d.chance(50) { // and the session goes elsewhere, which the host that had it learns late
		to := (p.Sessions[0].Host + 1) % p.Hosts
		p.Faults = append(p.Faults, FaultPlan{At: d.ms(500, 3_000), What: faultMove, Session: "s1", Host: to, For: pick(d, d.ms(500, 3_000), time.Minute)})
	}
	d.person("p1s1", d.IntN(p.Hosts), d.times(2+d.IntN(3), func() []Act {
		return []Act{{Verb: doWait, For: d.ms(100, 1_000)}, pick(d, Act{Verb: doSteer}, Act{Verb: doSubmit, Call: oneCall})}
	})...)
}

// overtaken: a call is asked anew, in other words, while somebody writes an answer
// to what it asked before.
func (d *drawing) overtaken() {
	p := d.p
	p.For = d.ms(6_000, 9_000)
	p.Network.Drop = 0
	p.Network.DelayMax = pick(d, 0, 30*time.Millisecond, 300*time.Millisecond)
	p.Disk.DelayMax = pick(d, 0, d.ms(1, 20), d.ms(20, 200))
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	at := askedAt + d.ms(1_200, 2_500)
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{{Verb: doUntil, For: askedAt},
		{Verb: doStart, Call: oneCall, For: time.Second}, {Verb: doUntil, For: at}, {Verb: doStart, Call: oneCall, For: pick(d, time.Second, 5*time.Second), With: pick(d, "anew", "anew+two")},
		{Verb: doWait, For: d.ms(500, 3_000)}, {Verb: doTake}}}}
	for i := range 1 + d.IntN(2) {
		edit := Act{Verb: doEdit, Call: oneCall, With: pick(d, "", "", "skip")}
		p.Parties = append(p.Parties, PartyPlan{Kind: ClientParty, Name: fmt.Sprintf("p%ds1", i+1), Session: "s1", Host: d.IntN(p.Hosts), Acts: []Act{
			{Verb: doFind, Call: oneCall, For: 2 * time.Second}, edit, {Verb: doWait, For: max(0, at-askedAt-d.ms(0, 400))},
			edit, {Verb: doSubmit, Call: oneCall}, {Verb: doWait, For: d.ms(100, 1_000)}, {Verb: doFind, Call: oneCall, For: time.Second}, edit, {Verb: doSubmit, Call: oneCall}}})
	}
}

// torn: several calls change in one append, at which clients look, whose streams
// break in the middle of it: they go on from where they were cut off.
func (d *drawing) torn() {
	p := d.p
	p.For = d.ms(8_000, 12_000)
	p.Network = NetworkPlan{DelayMax: pick(d, 3*time.Millisecond, 30*time.Millisecond, 300*time.Millisecond), Drop: pick(d, 0, 50+d.IntN(150))}
	p.Disk.DelayMax = min(p.Disk.DelayMax, 20*time.Millisecond)
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	at := 2_000 * time.Millisecond
	first := PartyPlan{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{{Verb: doWait, For: d.ms(100, 300)}, {Verb: doAttach}, {Verb: pick(d, doTurn, doAttach)}}}
	for n := range 3 + d.IntN(2) {
		first.Acts = append(first.Acts, Act{Verb: doStart, Call: fmt.Sprintf("a1q%d", n+1), For: 60 * time.Second, With: pick(d, "", "", "legacy")})
	}
	first.Acts = append(first.Acts, Act{Verb: doUntil, For: at + d.ms(0, 100)}, Act{Verb: doAbort})
	p.Parties = append(p.Parties, first, PartyPlan{Kind: AgentParty, Name: "bs1", Session: "s1", Root: "r2", Host: d.IntN(p.Hosts),
		Acts: []Act{{Verb: doUntil, For: at + d.ms(0, 100)}, {Verb: doAttach}}})
	for i := range 2 {
		p.Parties = append(p.Parties, PartyPlan{Kind: ClientParty, Name: fmt.Sprintf("p%ds1", i+1), Session: "s1", Host: d.IntN(p.Hosts), Acts: []Act{
			{Verb: doWait, For: at + d.ms(0, 250)}, {Verb: doOffline, For: d.ms(300, 2_000)}, {Verb: doWait, For: d.ms(1_000, 4_000)}, {Verb: doEdit, Call: otherCall}, {Verb: doSubmit, Call: otherCall}}})
	}
}
