package simulation

import "time"

// silence: whoever holds a call, at another host than its session's, is not
// heard any more, for longer than a lease.
func (d *drawing) silence() {
	p := d.p
	p.Hosts, p.For = max(2, p.Hosts), d.ms(30_000, 40_000)
	p.Rules.Grace = pick(d, 0, 700*time.Millisecond, 10*time.Second)
	p.Network.Drop = 0
	p.Network.DelayMax = min(p.Network.DelayMax, 100*time.Millisecond)
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 20))}
	p.Sessions = []SessionPlan{{Name: "s1"}}
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Acts: []Act{
		{Verb: doAsk, Call: oneCall, For: pick(d, 2*time.Second, 5*time.Second, 20*time.Second)}, {Verb: doTake}}}}
	d.person("p1s1", 1, Act{Verb: doFind, Call: oneCall, For: 8 * time.Second}, Act{Verb: doOpen, Call: oneCall},
		Act{Verb: doWait, For: d.ms(15_000, 40_000)}, Act{Verb: pick(d, doSubmit, doRelease, doCut), Call: oneCall})
	f := FaultPlan{At: d.ms(1_000, 6_000), Host: 1, For: d.ms(11_000, 25_000)}
	f.What = pick(d, faultPartition, faultPartition, faultPause, faultCrash)
	p.Faults = []FaultPlan{f}
}

// asleep: nobody listens for the end of a question, and its session is unloaded
// long before it.
func (d *drawing) asleep() {
	p := d.p
	p.For = d.ms(12_000, 20_000)
	p.Rules.Passivate = 900 * time.Millisecond
	p.Network.Drop = 0
	p.Network.DelayMax = min(p.Network.DelayMax, 100*time.Millisecond)
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 20))}
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{
		{Verb: doStart, Call: oneCall, For: pick(d, 2*time.Second, 5*time.Second)}, {Verb: doWait, For: d.ms(50, 500)}, {Verb: doLeave, Call: oneCall},
		{Verb: doWait, For: d.ms(10_000, 15_000)}, {Verb: pick(d, doTake, doCollect)}}}}
	if d.chance(50) {
		d.person("p1s1", d.IntN(p.Hosts), Act{Verb: doFind, Call: oneCall, For: 8 * time.Second}, Act{Verb: doOpen, Call: oneCall},
			Act{Verb: doWait, For: d.ms(50, 3_000)}, Act{Verb: pick(d, doRelease, doCut), Call: oneCall},
			Act{Verb: doWait, For: d.ms(4_000, 8_000)}, Act{Verb: doSubmit, Call: oneCall})
	}
}

// nearer: a session is unloaded with a question that nobody listens to, and that
// ends long before the only one that was due when the sweeper looked last.
func (d *drawing) nearer() {
	p := d.p
	p.For = d.ms(24_000, 28_000)
	p.Rules.Passivate = 900 * time.Millisecond
	p.Network = NetworkPlan{DelayMax: pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)}
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 20))}
	host := d.IntN(p.Hosts)
	p.Sessions = []SessionPlan{{Name: "s1", Host: host}, {Name: "s2", Host: host}}
	agent := func(session string, acts ...Act) {
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: "a" + session, Session: session, Root: "r1", Host: d.IntN(p.Hosts), Acts: acts})
	}
	agent("s2", Act{Verb: doUntil, For: askedAt}, Act{Verb: doStart, Call: "a2q1", For: 10 * time.Minute}, Act{Verb: doWait, For: d.ms(10, 500)},
		pick(d, Act{Verb: doLeave, Call: "a2q1"}, Act{Verb: doWait}))
	agent("s1", Act{Verb: doUntil, For: d.ms(5_500, 9_000)}, Act{Verb: doStart, Call: oneCall, For: pick(d, 5*time.Second, 10*time.Second)},
		Act{Verb: doWait, For: d.ms(50, 500)}, Act{Verb: doLeave, Call: oneCall}, Act{Verb: doWait, For: d.ms(12_000, 14_000)}, Act{Verb: pick(d, doTake, doCollect)})
}

// steps: an agent goes from step to step while people speak to it, and what it
// sends arrives twice, or is answered in vain.
func (d *drawing) steps() {
	p := d.p
	p.For = d.ms(5_000, 10_000)
	p.Network.Drop, p.Network.Duplicate = pick(d, 0, d.IntN(100)), d.IntN(400)
	p.Network.DelayMax = min(p.Network.DelayMax, 300*time.Millisecond)
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	acts := append([]Act{{Verb: doWait, For: d.ms(50, 500)}, {Verb: doTurn}}, d.times(3+d.IntN(5), func() []Act {
		return append([]Act{{Verb: doWait, For: d.ms(50, 900)}}, pick(d, Act{Verb: doStep}, Act{Verb: doStep}, Act{Verb: doStep}, Act{Verb: doClaim}, Act{Verb: doCollect},
			Act{Verb: doListen, For: d.ms(100, 2_000)}))
	})...)
	acts = append(acts, Act{Verb: pick(d, doEnd, doAbort)}, Act{Verb: doTake})
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: acts}}
	d.person("p1s1", d.IntN(p.Hosts), d.times(4+d.IntN(5), func() []Act {
		return []Act{{Verb: doWait, For: d.ms(50, 1_000)}, {Verb: doSteer}}
	})...)
}
