package simulation

import (
	"slices"
	"time"
)

// clients sits some of the people down in front of cards. They care for the same
// questions, and do with them what a person does who sees them.
func (d *drawing) clients() {
	for i := range d.p.Parties {
		if p := &d.p.Parties[i]; p.Kind == PersonParty && d.chance(25) {
			d.sit(p)
		}
	}
}

// sit makes a person a client.
func (d *drawing) sit(p *PartyPlan) {
	var calls []string
	for _, a := range p.Acts {
		if a.Call != "" && !slices.Contains(calls, a.Call) {
			calls = append(calls, a.Call)
		}
	}
	if len(calls) == 0 {
		return
	}
	p.Kind, p.Acts = ClientParty, nil
	if d.chance(30) {
		d.acts(p, Act{Verb: doClock, For: pick(d, -time.Minute, -time.Second, time.Second, time.Hour)})
	}
	if d.chance(40) {
		d.acts(p, Act{Verb: doTab})
	}
	for _, call := range calls {
		d.acts(p, Act{Verb: doFind, Call: call, For: d.ms(500, 8_000)})
		if d.chance(20) {
			d.glances(p, call)
			continue
		}
		for range 1 + d.IntN(6) {
			d.atCard(p, call)
		}
		if d.chance(60) {
			d.acts(p, Act{Verb: doEdit, Call: call}, Act{Verb: doSubmit, Call: call})
		}
	}
	d.acts(p, Act{Verb: doWait, For: d.ms(0, 6_000)})
	for d.chance(30) {
		d.acts(p, Act{Verb: doClose})
	}
}

// glances: a person comes to a card now and then, and does nothing to it.
func (d *drawing) glances(p *PartyPlan, call string) {
	for range 1 + d.IntN(2) {
		d.acts(p, Act{Verb: doFocus, Call: call}, Act{Verb: doWait, For: d.ms(500, 4_000)}, Act{Verb: doBlur, Call: call}, Act{Verb: doWait, For: d.ms(1, 500)})
	}
	d.acts(p, Act{Verb: doWait, For: d.ms(1_000, 6_000)})
}

func (d *drawing) acts(p *PartyPlan, acts ...Act) { p.Acts = append(p.Acts, acts...) }

// atCard is one thing that a person does about a card, or to the browser that
// shows it.
func (d *drawing) atCard(p *PartyPlan, call string) {
	wait := Act{Verb: doWait, For: pick(d, d.ms(1, 100), d.ms(100, 3_000))}
	on := func(verb string, with ...string) Act {
		return Act{Verb: verb, Call: call, With: pick(d, append(with, "")...)}
	}
	switch d.IntN(19) {
	case 0, 1:
		d.acts(p, wait)
	case 2:
		d.acts(p, on(doFocus), wait)
	case 3:
		d.acts(p, on(doFocus), wait, on(doBlur))
	case 4, 5:
		d.acts(p, on(doEdit, "part", "pick", "skip", "pick+part"), wait)
	case 6:
		d.acts(p, on(doTime))
	case 7:
		d.acts(p, on(doEdit, "pick"), on(doSubmit))
	case 8:
		d.acts(p, on(doHide), wait, on(pick(d, doReopen, doFocus, doEdit)))
	case 9:
		d.acts(p, on(doPass))
	case 10, 11:
		d.acts(p, Act{Verb: doNext})
	case 12:
		d.acts(p, Act{Verb: doTab})
	case 13, 14:
		d.acts(p, on(doEdit), wait, Act{Verb: doReload, With: pick(d, "", "", "", "lost")}, wait)
	case 15:
		d.acts(p, pick(d, Act{Verb: doClose}, Act{Verb: doMove}, Act{Verb: doClock, For: pick(d, -5*time.Second, 5*time.Second)}))
	case 16:
		if d.p.Faults != nil { // not a calm world
			d.acts(p, pick(d, Act{Verb: doOffline, For: d.ms(1, 8_000)}, Act{Verb: doCrash, For: d.ms(1, 3_000)}))
		}
	case 17:
		d.acts(p, on(doTakeBack))
	case 18: // its own rival
		d.acts(p, on(doEdit), Act{Verb: doTab}, Act{Verb: doFind, Call: call, For: d.ms(100, 2_000)}, on(doEdit), on(doSubmit), Act{Verb: doNext}, on(doSubmit))
	}
}

// anew: a question is asked again under its id, once or twice, while people answer
// it from cards that show what it asked before.
func (d *drawing) anew() {
	p := d.p
	p.For = d.ms(9_000, 14_000)
	p.Network.Drop = pick(d, 0, 0, p.Network.Drop)
	p.Network.DelayMax = pick(d, d.ms(1, 30), d.ms(30, 300))
	p.Disk.DelayMax = min(p.Disk.DelayMax, 100*time.Millisecond)
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	at := askedAt + time.Second + d.ms(200, 1_500)
	again := at + time.Second + d.ms(500, 3_000)
	ask := func() Act {
		return Act{Verb: pick(d, doStart, doAsk), Call: oneCall, For: pick(d, time.Second, time.Second, 5*time.Second, 60*time.Second), With: pick(d, "anew", "anew", "anew+two")}
	}
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{
		{Verb: doUntil, For: askedAt}, {Verb: doStart, Call: oneCall, For: time.Second}, {Verb: doUntil, For: at}, ask(), {Verb: doUntil, For: again}, ask(),
		{Verb: doWait, For: d.ms(500, 3_000)}, {Verb: pick(d, doTake, doCollect)}}}}
	for n := range 1 + d.IntN(2) {
		d.answersAnew("p"+itoa(int64(n))+"s1", pick(d, at, at, again))
	}
	if d.chance(40) { // nobody answers, and its result may have been lost when it asked something else, before
		p.Parties = p.Parties[:1]
		acts := p.Parties[0].Acts
		acts[1].With, acts[3].For, acts[5].For = "watched+two", time.Second, time.Second
		p.Parties[0].Acts = append(acts, Act{Verb: doStart, Call: oneCall, For: time.Second, With: "anew+watched"})
	}
}

// answersAnew draws a client that sends an answer at the moment in which its
// question is asked again.
func (d *drawing) answersAnew(name string, at time.Duration) {
	c := PartyPlan{Kind: ClientParty, Name: name, Session: "s1", Host: d.IntN(d.p.Hosts)}
	early := d.ms(0, int(d.p.Network.DelayMax.Milliseconds()))
	on := func(verb string) Act { return Act{Verb: verb, Call: oneCall} }
	d.acts(&c, Act{Verb: doUntil, For: at - d.ms(150, 1_000)}, Act{Verb: doFind, Call: oneCall, For: time.Second}, on(doEdit))
	if d.chance(30) { // in two tabs
		d.acts(&c, Act{Verb: doTab}, Act{Verb: doFind, Call: oneCall, For: time.Second}, on(doEdit))
	}
	d.acts(&c, Act{Verb: doUntil, For: at + early - d.p.Network.DelayMax/2}, on(doSubmit), Act{Verb: doWait, For: d.ms(1, 1_500)})
	d.acts(&c, pick(d, on(doReopen), Act{Verb: doReload}, Act{Verb: doNext}), on(doEdit), on(doSubmit))
	d.p.Parties = append(d.p.Parties, c)
}

// unheard: the request of a question ends while people at cards answer it. What they
// send to the agent that waits becomes a late reply, and they hear of both in
// whatever order.
func (d *drawing) unheard() {
	p := d.p
	p.For = d.ms(6_000, 9_000)
	p.Network.DelayMax = d.ms(30, 300)
	p.Disk.DelayMax = min(p.Disk.DelayMax, 50*time.Millisecond)
	p.Sessions = []SessionPlan{{Name: "s1", Host: d.IntN(p.Hosts)}}
	at := askedAt + d.ms(1_000, 2_500)
	on := func(verb string) Act { return Act{Verb: verb, Call: oneCall} }
	p.Parties = []PartyPlan{{Kind: AgentParty, Name: "as1", Session: "s1", Root: "r1", Host: d.IntN(p.Hosts), Acts: []Act{
		{Verb: doUntil, For: askedAt}, {Verb: doStart, Call: oneCall, For: 60 * time.Second}, {Verb: doUntil, For: at}, on(doUnhear),
		{Verb: doWait, For: d.ms(500, 3_000)}, {Verb: pick(d, doTake, doCollect)}}}}
	for n := range 1 + d.IntN(2) {
		c := PartyPlan{Kind: ClientParty, Name: "p" + itoa(int64(n)) + "s1", Session: "s1", Host: d.IntN(p.Hosts)}
		d.acts(&c, Act{Verb: doFind, Call: oneCall, For: 2 * time.Second}, on(doEdit), Act{Verb: doUntil, For: at + d.ms(0, int(p.Network.DelayMax.Milliseconds()))}, on(doSubmit))
		d.acts(&c, Act{Verb: doWait, For: d.ms(1, 1_000)}, pick(d, on(doTakeBack), on(doReopen), Act{Verb: doReload}), Act{Verb: doWait, For: d.ms(1, 500)}, on(doEdit), on(doSubmit))
		p.Parties = append(p.Parties, c)
	}
}
