package simulation

import "time"

// attachedAt is when the first agent of a scene attaches again: all that are drawn
// attach as they begin, and the last of them speaks.
const attachedAt = 200 * time.Millisecond

// marks: agents mark what waits for a turn, and come to admit it late or never:
// the turn ends before, or another agent takes over. Others listen meanwhile.
func (d *drawing) marks() {
	p := d.p
	p.For = d.ms(6_000, 12_000)
	p.Network.Drop, p.Network.Duplicate = pick(d, 0, 0, p.Network.Drop), pick(d, 0, 0, p.Network.Duplicate)
	p.Network.DelayMax = min(p.Network.DelayMax, 100*time.Millisecond)
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 20)), Refuse: pick(d, 0, 0, p.Disk.Refuse), InDoubt: pick(d, 0, 0, p.Disk.InDoubt)}
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	d.marker("as1", "r1", attachedAt)
	if d.chance(50) {
		d.marker("bs1", "r2", d.ms(1_000, 5_000))
	}
	for n := range 1 + d.IntN(2) { // copies of an agent: a process that only listens
		d.listener(n)
	}
	d.person("p1s1", d.IntN(p.Hosts), d.times(4+d.IntN(4), func() []Act {
		return []Act{{Verb: doWait, For: d.ms(50, 1_500)}, {Verb: doSteer, With: pick(d, "", "", "later")}}
	})...)
	d.person("p2s1", d.IntN(p.Hosts), Act{Verb: doFind, Call: oneCall, For: 4 * time.Second}, Act{Verb: doWait, For: d.ms(500, 4_000)},
		Act{Verb: doSubmit, Call: oneCall}, Act{Verb: doWait, For: d.ms(1, 2_000)}, pick(d, Act{Verb: doTakeBack, Call: oneCall}, Act{Verb: doSteer}))
	if d.chance(25) {
		p.Faults = append(p.Faults, FaultPlan{At: d.ms(1_000, 6_000), What: faultCrash, Host: d.IntN(p.Hosts), For: d.ms(1, 2_000)})
	}
}

// marker draws an agent that goes from turn to turn. Before each it looks where its
// session stands, and takes it back from another.
func (d *drawing) marker(name, root string, begins time.Duration) {
	acts := []Act{{Verb: doUntil, For: begins}, {Verb: doAttach}}
	if root == "r1" {
		acts = append(acts, Act{Verb: doStart, Call: oneCall, For: time.Second})
	}
	acts = append(acts, d.times(2+d.IntN(3), func() (turn []Act) {
		turn = []Act{{Verb: doWait, For: d.ms(50, 1_200)}, {Verb: doAttach}, {Verb: doTurn, With: pick(d, "", "alone", "alone")}}
		for range 1 + d.IntN(3) {
			turn = append(turn, Act{Verb: doWait, For: d.ms(1, 900)})
			turn = append(turn, pick(d, Act{Verb: doMark}, Act{Verb: doMark}, Act{Verb: doMark}, Act{Verb: doAdmit}, Act{Verb: doClaim},
				Act{Verb: doStep}, Act{Verb: doListen, For: d.ms(50, 600)}))
		}
		turn = append(turn, Act{Verb: pick(d, doEnd, doAbort, doAbort)})
		if d.chance(30) {
			turn = append(turn, Act{Verb: doListen, For: d.ms(1_000, 4_000)})
		}
		return turn
	})...)
	acts = append(acts, Act{Verb: doWait, For: d.ms(2_000, 6_000)}, Act{Verb: pick(d, doTake, doCollect)})
	d.p.Parties = append(d.p.Parties, PartyPlan{Kind: AgentParty, Name: name, Session: "s1", Root: root, Host: d.IntN(d.p.Hosts), Acts: acts})
}

// listener draws a copy of the first agent, which does nothing but listen.
func (d *drawing) listener(n int) {
	acts := d.times(2+d.IntN(3), func() []Act {
		return []Act{{Verb: doListen, For: d.ms(2_000, 8_000)}, {Verb: doWait, For: d.ms(1, 400)}}
	})
	acts = append([]Act{{Verb: doUntil, For: attachedAt + d.ms(50, 500)}}, acts...)
	d.p.Parties = append(d.p.Parties, PartyPlan{Kind: AgentParty, Name: "as1c" + itoa(int64(n)), Session: "s1", Root: "r1", Host: d.IntN(d.p.Hosts),
		Patient: true, Acts: acts}) // who asks again rings the bell for itself
}

// handover: an agent takes over at the moment in which the one before it admits
// what it has marked and the rest, while the session is busy with what people say.
func (d *drawing) handover() {
	p := d.p
	p.For = d.ms(5_000, 8_000)
	p.Network.Drop = 0
	p.Network.DelayMax = pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)
	p.Disk = DiskPlan{DelayMax: d.ms(50, 400)}
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	at := d.ms(3_000, 4_000)
	agent := func(name, root string, acts ...Act) {
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: name, Session: "s1", Root: root, Host: d.IntN(p.Hosts), Acts: acts})
	}
	agent("as1", "r1", Act{Verb: doUntil, For: attachedAt}, Act{Verb: doAttach}, Act{Verb: doTurn}, Act{Verb: doUntil, For: at - 800*time.Millisecond}, Act{Verb: doMark}, Act{Verb: doUntil, For: at},
		Act{Verb: pick(d, doTake, doTake, doTake, doAdmit, doStep, doEnd)}, Act{Verb: doWait, For: d.ms(100, 1_000)}, Act{Verb: doTake})
	agent("bs1", "r2", Act{Verb: doUntil, For: at + d.ms(0, 300)}, Act{Verb: doAttach}, Act{Verb: doTurn},
		Act{Verb: pick(d, doMark, doClaim)}, Act{Verb: doWait, For: d.ms(100, 1_000)}, Act{Verb: pick(d, doTake, doEnd)})
	for n := range 3 {
		d.person("p"+itoa(int64(n))+"s1", d.IntN(p.Hosts), Act{Verb: doUntil, For: d.ms(1_000, 1_500)}, Act{Verb: doSteer},
			Act{Verb: doUntil, For: at + d.ms(-100, 200)}, Act{Verb: doSteer})
	}
}
