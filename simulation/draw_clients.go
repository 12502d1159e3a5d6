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
