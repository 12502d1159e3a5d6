package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Profile narrows what a seed may draw.
type Profile struct {
	Name string
	// Says is what it is for, in a few words.
	Says string
	// Hosts at most.
	Hosts int
	// Calm draws no faults: nothing but the order is left to chance.
	Calm bool
	// Hard draws every kind of fault, and often.
	Hard bool
}

// Profiles by name. The first is the default: some seeds are calm, some
// extreme, most in between.
var Profiles = []Profile{
	{Name: "swarm", Says: "some seeds calm, some extreme, most in between", Hosts: 3},
	{Name: "calm", Says: "nothing fails; only the order is left to chance", Hosts: 3, Calm: true},
	{Name: "hard", Says: "every kind of fault, and often", Hosts: 3, Hard: true},
	{Name: "single", Says: "one host, and all that can happen to it", Hosts: 1},
}

// ProfileOf returns the profile of a name.
func ProfileOf(name string) (Profile, bool) {
	for _, p := range Profiles {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Draw makes the plan of a seed.
func Draw(seed uint64, profile Profile) *Plan {
	d := &drawing{rand.New(rand.NewPCG(seed, 0xda942042e4dd58b5)), &Plan{Seed: seed}, profile}
	d.world()
	scene := d.scene()
	if !scene {
		d.parties()
		d.faults()
	}
	d.patience()
	if !scene {
		d.clients()
	}
	return d.p
}

type drawing struct {
	*rand.Rand
	p       *Plan
	profile Profile
}

func (d *drawing) chance(percent int) bool { return d.IntN(100) < percent }

func (d *drawing) ms(lo, hi int) time.Duration {
	return time.Duration(lo+d.IntN(hi-lo+1)) * time.Millisecond
}

func pick[T any](d *drawing, of ...T) T { return of[d.IntN(len(of))] }

// world draws the shape, the rules and the rates.
func (d *drawing) world() {
	p := d.p
	p.Hosts = 1 + d.IntN(d.profile.Hosts)
	p.For = d.ms(2_000, 20_000)
	p.Rules = RulesPlan{Timeout: 3 * time.Second, Grace: pick(d, 0, 700*time.Millisecond, 10*time.Second), First: d.chance(30),
		Passivate: pick(d, 0, 900*time.Millisecond, time.Minute)}
	p.Network = NetworkPlan{DelayMin: 0, DelayMax: d.ms(0, 30)}
	p.Schedule = SchedulePlan{Random: pick(d, 0, 100, 500, 1000)}
	calm := d.profile.Calm || !d.profile.Hard && d.chance(15)
	if calm {
		return
	}
	rate := func(often int) int {
		if d.chance(50) {
			return 0
		}
		return 1 + d.IntN(often)
	}
	p.Network.Drop, p.Network.Duplicate = rate(80), rate(80)
	p.Network.DelayMax = pick(d, p.Network.DelayMax, d.ms(0, 400), d.ms(0, 3_000))
	p.Disk = DiskPlan{DelayMax: pick(d, 0, d.ms(0, 20), d.ms(0, 1_000)), Refuse: rate(30), InDoubt: rate(30)}
	p.Schedule.Early = pick(d, 0, 5, 50)
	d.p.Faults = []FaultPlan{} // not nil: faults draws some
}

func (d *drawing) parties() {
	p := d.p
	for i := range 1 + d.IntN(2) {
		s := SessionPlan{Name: fmt.Sprintf("s%d", i+1), Host: d.IntN(p.Hosts)}
		p.Sessions = append(p.Sessions, s)
		calls := d.agents(s)
		d.people(s, calls)
	}
}

// agents draws who speaks for a session: its root and, now and then, one that
// takes over, or a child that may not ask.
func (d *drawing) agents(s SessionPlan) (calls []string) {
	root := d.agent(s, "a", "r1", "", &calls)
	d.p.Parties = append(d.p.Parties, root)
	if d.chance(25) {
		second := d.agent(s, "b", "r2", "", &calls)
		second.Acts = append([]Act{{Verb: doWait, For: d.ms(100, 6_000)}}, second.Acts...)
		d.p.Parties = append(d.p.Parties, second)
	}
	if d.chance(10) {
		d.p.Parties = append(d.p.Parties, d.agent(SessionPlan{Name: s.Name + "-child", Host: s.Host}, "c", "r1", s.Name, &calls))
		d.p.Sessions = append(d.p.Sessions, SessionPlan{Name: s.Name + "-child", Host: s.Host})
	}
	return calls
}

func (d *drawing) agent(s SessionPlan, letter, root, owner string, calls *[]string) PartyPlan {
	a := PartyPlan{Kind: AgentParty, Name: letter + s.Name, Session: s.Name, Root: root, Owner: owner, Host: d.IntN(d.p.Hosts)}
	turn := false
	act := func(verb, call string, wait time.Duration, with string) {
		a.Acts = append(a.Acts, Act{Verb: verb, Call: call, For: wait, With: with})
	}
	ownTurns := d.chance(50)
	for range 2 + d.IntN(7) {
		if ownTurns && !turn && d.chance(60) {
			act(doTurn, "", 0, "")
			turn = true
		}
		switch d.IntN(17) {
		case 0, 1, 2, 3, 4, 5:
			call := fmt.Sprintf("%s%d", letter+s.Name[1:]+"q", len(*calls)+1)
			*calls = append(*calls, call)
			with := strings.Join(d.some("legacy", 12, "watched", 45, "two", 15, "absent", 10), "+")
			wait := pick(d, time.Second, 2*time.Second, 5*time.Second, 60*time.Second, -1)
			act(pick(d, doAsk, doAsk, doStart), call, wait, with)
			if strings.Contains(with, "watched") {
				a.Acts = append(a.Acts, d.after(call, wait, with)...)
			}
		case 6, 7:
			act(pick(d, doWait, doWait, doListen), "", d.ms(1, 4_000), "")
		case 8:
			act(pick(d, doTake, doCollect), "", 0, "")
		case 9:
			act(pick(d, doCollect, doForget), "", 0, "")
		case 10:
			if turn {
				act(pick(d, doStep, doClaim), "", 0, "")
			}
		case 11:
			if len(*calls) > 0 {
				act(pick(d, doWithdraw, doLeave, doUnhear, doAwait, doReceive), pick(d, *calls...), 0, "")
			}
		case 12:
			act(doCrash, "", d.ms(1, 5_000), "")
		case 13:
			if turn {
				act(pick(d, doEnd, doEnd, doAbort), "", 0, "")
				turn = false
			}
		case 14:
			act(doAttach, "", 0, "")
		case 15:
			if len(*calls) > 0 { // the same call id once more
				act(doAsk, pick(d, *calls...), pick(d, time.Second, 5*time.Second), pick(d, "", "watched", "anew", "anew"))
			}
		case 16:
			a.Acts = append(a.Acts, d.program(fmt.Sprintf("%srun%d", letter+s.Name[1:], len(*calls)+1), calls)...)
		}
	}
	if turn {
		act(doEnd, "", 0, "")
	}
	act(pick(d, doTake, doCollect), "", 0, "")
	return a
}

// after is what becomes of a question whose result may be lost on its way: its
// request ends, the same is asked again, its result is acknowledged.
func (d *drawing) after(call string, wait time.Duration, with string) (acts []Act) {
	again := Act{Verb: doAgain, Call: call, For: wait, With: with}
	if d.chance(30) {
		again.With += "+live"
	}
	switch n := d.IntN(20); {
	case n < 8:
		return []Act{{Verb: doUnhear, Call: call}, again}
	case n < 11:
		return []Act{again}
	case n < 14:
		return []Act{{Verb: doReceive, Call: call}}
	case n < 15:
		return []Act{{Verb: doReceive, Call: call}, again}
	}
	return nil
}

// some draws words, each with its chance.
func (d *drawing) some(pairs ...any) (words []string) {
	for i := 0; i < len(pairs); i += 2 {
		if d.chance(pairs[i+1].(int)) {
			words = append(words, pairs[i].(string))
		}
	}
	return words
}

// people draw who answers: now and then the same question from several sides.
func (d *drawing) people(s SessionPlan, calls []string) {
	if len(calls) == 0 {
		return
	}
	for i := range 1 + d.IntN(3) {
		p := PartyPlan{Kind: PersonParty, Name: fmt.Sprintf("p%d%s", i+1, s.Name), Session: s.Name, Host: d.IntN(d.p.Hosts)}
		for _, call := range calls {
			if d.chance(25) {
				continue
			}
			d.visit(&p, call)
		}
		d.p.Parties = append(d.p.Parties, p)
	}
}

// visit is what a person does about one question.
func (d *drawing) visit(p *PartyPlan, call string) {
	act := func(verb string, wait time.Duration, with string) {
		a := Act{Verb: verb, For: wait, With: with}
		if verbOf(PersonParty, verb).call {
			a.Call = call
		}
		p.Acts = append(p.Acts, a)
	}
	if d.chance(80) {
		act(doFind, d.ms(500, 8_000), "")
	}
	if d.chance(60) {
		act(doOpen, 0, "")
		if d.chance(70) {
			act(doWait, pick(d, d.ms(1, 500), d.ms(500, 6_000), d.ms(1_000, 20_000)), "")
		}
	}
	switch d.IntN(12) {
	case 0:
		act(doExpire, 0, "")
	case 1:
		act(doPass, 0, "")
	case 2:
		act(doDismiss, 0, "")
	case 3:
		act(pick(d, doCut, doRelease), 0, "")
	case 4:
		act(doCrash, d.ms(1, 3_000), "")
	case 5:
		act(doMove, 0, "")
	}
	if d.chance(80) {
		with := d.some("reject", 15)
		if d.chance(50) {
			with = append(with, "two") // right or wrong, as people are
		}
		if d.chance(15) {
			act(doWait, d.ms(0, 3_000), "")
		}
		act(doSubmit, 0, strings.Join(with, "+"))
	}
	if d.chance(15) {
		act(doSubmit, 0, "") // the same once more: a nervous finger
	}
	if d.chance(10) {
		act(doTakeBack, 0, "")
		act(doSubmit, 0, "new")
	}
	if d.chance(8) {
		act(doSteer, 0, "")
	}
	if d.chance(40) {
		act(pick(d, doRelease, doRelease, doCut), 0, "")
	}
}

func (d *drawing) faults() {
	p := d.p
	if p.Faults == nil {
		return
	}
	most := 4
	if d.profile.Hard {
		most = 10
	}
	for range d.IntN(most) {
		f := FaultPlan{At: time.Duration(d.Int64N(p.For.Milliseconds())) * time.Millisecond, Host: d.IntN(p.Hosts), For: d.ms(1, 8_000)}
		switch d.IntN(7) {
		case 0, 1, 2:
			f.What = faultCrash
		case 3:
			f.What, f.To = faultPartition, d.IntN(p.Hosts)
			if f.To == f.Host {
				continue
			}
		case 4:
			f.What = faultPause
		case 5:
			f.What, f.For = faultClock, pick(d, -10*time.Second, -time.Second, time.Second, time.Minute)
		case 6:
			if p.Hosts == 1 {
				continue
			}
			f.What, f.Session, f.For = faultMove, pick(d, p.Sessions...).Name, 0
		}
		p.Faults = append(p.Faults, f)
	}
}
