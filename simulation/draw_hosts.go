package simulation

import (
	"fmt"
	"time"
)

// patience draws who sends nothing again by itself, beside those whose scene says so.
func (d *drawing) patience() {
	for i := range d.p.Parties {
		if d.chance(35) {
			d.p.Parties[i].Patient = true
		}
	}
}

// scenes are worlds in which one thing happens often that others seldom have:
// how many of a hundred that are not calm, and how many hosts it takes.
var scenes = []struct {
	share, hosts int
	draw         func(*drawing)
}{
	{5, 1, (*drawing).vigil},
	{10, 2, (*drawing).tug},
	{11, 1, (*drawing).meet},
	{3, 2, (*drawing).silence},
	{3, 1, (*drawing).asleep},
	{4, 1, (*drawing).steps},
	{5, 2, (*drawing).relay},
	{3, 1, (*drawing).leap},
	{5, 1, (*drawing).programs},
	{4, 1, (*drawing).anew},
	{5, 1, (*drawing).marks},
	{4, 1, (*drawing).handover},
	{4, 1, (*drawing).borrowed},
	{2, 1, (*drawing).unattended},
	{1, 1, (*drawing).circle},
	{2, 1, (*drawing).bells},
	{4, 1, (*drawing).copies},
	{1, 1, (*drawing).overtaken},
	{1, 1, (*drawing).torn},
	{2, 1, (*drawing).unheard},
	{2, 1, (*drawing).early},
	{1, 1, (*drawing).regretted},
	{1, 1, (*drawing).nearer},
	{3, 2, (*drawing).bereft},
	{2, 1, (*drawing).lists},
}

// scene draws, now and then, a world that is all about one thing, which worlds
// of everything rarely come to. false: it has drawn none. A scene that takes more
// hosts than there are leaves its share to the next.
func (d *drawing) scene() bool {
	if d.p.Faults == nil {
		return false // a calm world
	}
	n := d.IntN(100)
	for _, s := range scenes {
		if n -= s.share; n < 0 && s.hosts <= d.p.Hosts {
			s.draw(d)
			return true
		}
	}
	return false
}

// vigil: a question is held past its deadline, on one host, while others speak
// to its session and the disk fails it again and again.
func (d *drawing) vigil() {
	p := d.p
	p.Hosts, p.For = 1, d.ms(8_000, 15_000)
	p.Rules.Grace = pick(d, 700*time.Millisecond, 700*time.Millisecond, 10*time.Second)
	p.Network.Drop = 0
	p.Network.DelayMax = min(p.Network.DelayMax, 100*time.Millisecond)
	p.Disk.DelayMax = min(p.Disk.DelayMax, 200*time.Millisecond)
	p.Disk.Refuse, p.Disk.InDoubt = 50+d.IntN(150), 50+d.IntN(150)
	p.Sessions = []SessionPlan{{Name: "s1"}}
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Acts: []Act{
		{Verb: doStart, Call: "a1q1", For: pick(d, 2*time.Second, 5*time.Second)}, {Verb: doWait, For: d.ms(1_000, 3_000)}, {Verb: doAwait, Call: "a1q1"}}}}
	d.person("p1s1", 0, Act{Verb: doFind, Call: "a1q1", For: 8 * time.Second}, Act{Verb: doOpen, Call: "a1q1"},
		Act{Verb: doWait, For: d.ms(5_000, 9_000)}, Act{Verb: pick(d, doSubmit, doRelease, doCut), Call: "a1q1"})
	d.person("p2s1", 0, d.times(3+d.IntN(4), func() []Act {
		return []Act{{Verb: doWait, For: d.ms(200, 2_000)}, {Verb: doSteer}}
	})...)
}

// tug: a session goes from host to host while it is spoken to at each of them,
// and those that had it learn that late, some of them in the end only.
func (d *drawing) tug() {
	p := d.p
	p.For = d.ms(4_000, 10_000)
	p.Network.Drop = 0
	p.Network.DelayMax = min(p.Network.DelayMax, 300*time.Millisecond)
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 100), d.ms(100, 1_000))}
	at := d.IntN(p.Hosts)
	p.Sessions = []SessionPlan{{Name: "s1", Host: at}}
	for host := range p.Hosts {
		d.tugger(host)
	}
	for when := d.ms(300, 2_500); when < p.For; when += d.ms(100, 3_000) {
		if d.chance(40) {
			p.Faults = append(p.Faults, FaultPlan{At: max(0, when-d.ms(0, 300)), What: faultPause, Host: at, For: d.ms(100, 3_000)})
		}
		at = (at + 1 + d.IntN(p.Hosts-1)) % p.Hosts
		p.Faults = append(p.Faults, FaultPlan{At: when, What: faultMove, Session: "s1", Host: at, For: pick(d, d.ms(500, 3_000), time.Minute)})
	}
}

// tugger draws an agent and a person who speak to one host. The agents are one:
// a process with copies that it does not know of.
func (d *drawing) tugger(host int) {
	call := fmt.Sprintf("a1q%d", host+1)
	a := PartyPlan{Kind: AgentParty, Name: fmt.Sprintf("as1h%d", host+1), Session: "s1", Root: "r1", Host: host}
	a.Acts = d.times(3+d.IntN(4), func() []Act {
		return append([]Act{{Verb: doWait, For: d.ms(50, 1_200)}}, pick(d, Act{Verb: doTake}, Act{Verb: doTake}, Act{Verb: doAttach},
			Act{Verb: doStart, Call: call, For: pick(d, time.Second, 5*time.Second)}, Act{Verb: doCollect}))
	})
	d.p.Parties = append(d.p.Parties, a)
	d.person(fmt.Sprintf("p1h%d", host+1), host, d.times(3+d.IntN(4), func() []Act {
		return append([]Act{{Verb: doWait, For: d.ms(50, 1_200)}}, pick(d, Act{Verb: doSteer}, Act{Verb: doSteer},
			Act{Verb: doSubmit, Call: pick(d, "a1q1", "a1q2")}))
	})...)
}

// relay: a session is given to another host on a slow disk. At the one that had
// it people speak just then, so that something is recorded while the other takes
// over; at the other an agent and its copies ask at once, and again, what waits.
// Or they are silent until something was asked at the other, and then answer that.
func (d *drawing) relay() {
	p := d.p
	p.Hosts, p.For = 2, d.ms(4_000, 8_000)
	p.Network.Drop = 0
	p.Network.DelayMax = min(p.Network.DelayMax, 30*time.Millisecond)
	p.Disk = DiskPlan{DelayMax: d.ms(100, 600)}
	p.Sessions = []SessionPlan{{Name: "s1"}}
	given := 1_000 + d.IntN(2_000)
	p.Faults = append(p.Faults, FaultPlan{At: d.ms(given, given), What: faultMove, Session: "s1", Host: 1, For: time.Minute})
	if d.chance(30) {
		p.Faults = append(p.Faults, FaultPlan{At: d.ms(given+1_000, given+3_000), What: faultMove, Session: "s1", For: d.ms(1, 2_000)})
	}
	for i := range 3 {
		a := PartyPlan{Kind: AgentParty, Name: fmt.Sprintf("as1n%d", i+1), Session: "s1", Root: "r1", Host: 1, Acts: []Act{{Verb: doWait, For: d.ms(given-100, given+400)}}}
		a.Acts = append(a.Acts, d.times(4+d.IntN(4), func() []Act {
			return []Act{pick(d, Act{Verb: doTake}, Act{Verb: doTake}, Act{Verb: doAttach}), {Verb: doWait, For: d.ms(1, 200)}}
		})...)
		p.Parties = append(p.Parties, a)
	}
	speaks := func() []Act {
		return []Act{{Verb: doWait, For: d.ms(given-200, given+400)}, {Verb: doSteer}, {Verb: doWait, For: d.ms(1, 2_000)}, {Verb: doSteer}}
	}
	if d.chance(40) {
		first := &p.Parties[0]
		first.Acts = append([]Act{{Verb: doUntil, For: d.ms(given+10, given+300)}, {Verb: doStart, Call: oneCall, For: pick(d, time.Second, 60*time.Second)}}, first.Acts[1:]...)
		speaks = func() []Act {
			return []Act{{Verb: doUntil, For: d.ms(given+700, given+2_500)}, {Verb: doSubmit, Call: oneCall}, {Verb: doWait, For: d.ms(1, 500)}, pick(d, Act{Verb: doSteer}, Act{Verb: doDismiss, Call: oneCall})}
		}
	}
	for i := range 3 {
		d.person(fmt.Sprintf("p%ds1", i+1), 0, speaks()...)
	}
}

// bereft: a session was given to another host, where its question ends, or is asked
// anew, or its late answer is taken back, or its turn ends. At the host that had it,
// and does not know, people and copies of its agent say again what they said before,
// or go on, and nothing is written.
func (d *drawing) bereft() {
	p := d.p
	p.Hosts, p.For = 2, d.ms(8_000, 10_000)
	p.Network = NetworkPlan{DelayMax: pick(d, 0, 3*time.Millisecond, 30*time.Millisecond)}
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(1, 20))}
	p.Rules.Passivate = 0
	p.Sessions = []SessionPlan{{Name: "s1"}}
	given := askedAt + d.ms(1_500, 2_500)
	p.Faults = append(p.Faults, FaultPlan{At: given, What: faultMove, Session: "s1", Host: 1, For: time.Minute})
	then, later := given+d.ms(50, 300), func() Act { return Act{Verb: doUntil, For: given + d.ms(500, 2_000)} }
	agent := func(host int, acts ...Act) {
		p.Parties = append(p.Parties, PartyPlan{Kind: AgentParty, Name: fmt.Sprintf("as1n%d", len(p.Parties)), Session: "s1", Root: "r1", Host: host, Acts: acts})
	}
	on := func(verb, with string) Act { return Act{Verb: verb, Call: oneCall, With: with} }
	ask, again, anew := on(doStart, "watched"), on(doAgain, ""), on(doStart, "anew")
	ask.For, again.For, anew.For = time.Second, time.Minute, time.Second
	switch d.IntN(5) {
	case 0, 1:
		ask.For, ask.With = time.Minute, pick(d, "watched", "watched", "legacy")
		agent(0, Act{Verb: doUntil, For: askedAt}, ask)
		agent(1, Act{Verb: doUntil, For: then}, pick(d, on(doWithdraw, ""), Act{Verb: doAbort}))
		for range 1 + d.IntN(2) {
			agent(0, later(), pick(d, ask, again))
		}
	case 2:
		agent(0, Act{Verb: doUntil, For: askedAt}, ask)
		agent(1, Act{Verb: doUntil, For: then}, anew)
		d.person("p1s1", 0, Act{Verb: doUntil, For: askedAt + d.ms(100, 900)}, on(doSubmit, ""), later(), on(doSubmit, pick(d, "new", "new+reject")))
	case 3:
		agent(0, Act{Verb: doUntil, For: askedAt}, ask)
		d.person("p1s1", 0, Act{Verb: doUntil, For: askedAt + d.ms(1_050, 1_400)}, on(doSubmit, ""), Act{Verb: doUntil, For: then},
			Act{Verb: doMove}, on(doTakeBack, ""), Act{Verb: doMove}, later(), on(doSubmit, ""))
	case 4:
		agent(0, Act{Verb: doUntil, For: askedAt}, Act{Verb: doTurn})
		agent(1, Act{Verb: doUntil, For: then}, Act{Verb: pick(d, doAbort, doEnd)})
		agent(0, Act{Verb: doUntil, For: given - d.ms(100, 400)}, Act{Verb: doAttach}, later(), Act{Verb: doTurn})
	}
}

// leap: the wall clock of the only host goes over a deadline while the timer has
// its time still to run, and then somebody looks at the question.
func (d *drawing) leap() {
	p := d.p
	p.Hosts, p.For = 1, d.ms(8_000, 12_000)
	p.Network.DelayMax = min(p.Network.DelayMax, 50*time.Millisecond)
	p.Disk.DelayMax = min(p.Disk.DelayMax, 100*time.Millisecond)
	p.Rules.Grace = pick(d, 0, 700*time.Millisecond)
	p.Sessions = []SessionPlan{{Name: "s1"}}
	at := askedAt + d.ms(200, 3_000)
	p.Faults = append(p.Faults, FaultPlan{At: at, What: faultClock, For: pick(d, 6*time.Second, time.Minute, -10*time.Second)})
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Acts: []Act{{Verb: doUntil, For: askedAt},
		{Verb: doStart, Call: oneCall, For: pick(d, 5*time.Second, 60*time.Second), With: pick(d, "", "watched")},
		{Verb: doWait, For: d.ms(1_000, 6_000)}, {Verb: pick(d, doTake, doCollect)}}}}
	for i := range 1 + d.IntN(2) {
		d.person(fmt.Sprintf("p%ds1", i+1), 0, Act{Verb: doUntil, For: at + d.ms(-300, 2_000)}, Act{Verb: doOpen, Call: oneCall}, Act{Verb: doWait, For: d.ms(100, 6_000)},
			Act{Verb: pick(d, doSubmit, doRelease, doCut), Call: oneCall})
	}
}

// times draws acts several times over.
func (d *drawing) times(n int, draw func() []Act) (acts []Act) {
	for range n {
		acts = append(acts, draw()...)
	}
	return acts
}

// person adds one to the first session.
func (d *drawing) person(name string, host int, acts ...Act) {
	d.p.Parties = append(d.p.Parties, PartyPlan{Kind: PersonParty, Name: name, Session: d.p.Sessions[0].Name, Host: host, Acts: acts})
}
