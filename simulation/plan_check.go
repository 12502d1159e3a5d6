package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// PlanError is why a plan cannot be run.
type PlanError struct {
	Text string
	at   planPlace
}

func (e *PlanError) Error() string {
	if where := e.at.String(); where != "" {
		return "plan: " + where + ": " + e.Text
	}
	return "plan: " + e.Text
}

// planPlace is the part of a plan that something is said of: the lists it has
// are counted from 0. The zero place is the whole.
type planPlace struct {
	kind    placeKind
	i, act  int
	spelled string
}

type placeKind int

const (
	inWhole placeKind = iota
	inSession
	inParty
	inAct
	inFault
)

func (at planPlace) String() string { return at.spelled }

// line is the place without its spelling: what a script has a line of.
func (at planPlace) line() planPlace { at.spelled = ""; return at }

// Validate says what of a plan cannot be run, as a *PlanError. ParseScript holds
// scripts against the same.
func (p *Plan) Validate() error {
	c := planCheck{p: p}
	for _, check := range []func() error{c.whole, c.rates, c.named, c.sessions, c.parties, c.faults} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validate holds what is run beside a plan against it too.
func (o Options) validate(p *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var names []string
	for name := range o.Programs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case !p.hasParty(name):
			return &PlanError{Text: fmt.Sprintf("there is a program for %q, and no agent, person or client of that name", name)}
		case o.Programs[name] == nil:
			return &PlanError{Text: fmt.Sprintf("the program for %q is nil", name)}
		}
	}
	return nil
}

func (p *Plan) hasParty(name string) bool {
	return slices.ContainsFunc(p.Parties, func(party PartyPlan) bool { return party.Name == name })
}

func (p *Plan) hasSession(name string) bool {
	return slices.ContainsFunc(p.Sessions, func(s SessionPlan) bool { return s.Name == name })
}

// planCheck looks at one part of the plan at a time.
type planCheck struct {
	p  *Plan
	at planPlace
}

func (c *planCheck) failf(format string, args ...any) error {
	return &PlanError{at: c.at, Text: fmt.Sprintf(format, args...)}
}

// first is the first of these that is wrong.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *planCheck) whole() error {
	p := c.p
	switch {
	case p.Hosts < 1 || p.Hosts > HostsMax:
		return c.failf("it has %d hosts, and may have 1 to %d", p.Hosts, HostsMax)
	case len(p.Sessions) == 0:
		return c.failf("it has no session; one is `session s1 on h1`")
	case p.Network.DelayMax < p.Network.DelayMin:
		return c.failf("%s", delaysWrong(timeText(p.Network.DelayMin), timeText(p.Network.DelayMax)))
	}
	return first(c.span("for", p.For), c.seconds("timeout", p.Rules.Timeout), c.span("grace", p.Rules.Grace), c.span("passivate", p.Rules.Passivate),
		c.span("delay", p.Network.DelayMin), c.span("delay", p.Network.DelayMax), c.span("delay", p.Disk.DelayMax))
}

func (c *planCheck) rates() error {
	n, d, s := c.p.Network, c.p.Disk, c.p.Schedule
	for _, r := range []struct {
		name string
		rate int
	}{{"drop", n.Drop}, {"duplicate", n.Duplicate}, {"refuse", d.Refuse}, {"doubt", d.InDoubt}, {"random", s.Random}, {"early", s.Early}} {
		if !rateFits(r.rate) {
			return c.failf("%s=%d: %s", r.name, r.rate, rateForm)
		}
	}
	return nil
}

func (c *planCheck) named() error {
	for n, k := range c.p.Schedule.Choose {
		if n < 1 || k < 0 {
			return c.failf("a choice in Schedule.Choose is not of a number from 1 for one from 0")
		}
	}
	for _, f := range namedFates {
		for _, n := range *f.of(c.p) {
			if n < 1 {
				return c.failf("%s %d: what is named is counted from 1", f.word, n)
			}
		}
	}
	return nil
}

func (c *planCheck) sessions() error {
	seen := map[string]bool{}
	for i, s := range c.p.Sessions {
		c.at = planPlace{kind: inSession, i: i, spelled: fmt.Sprintf("session %q", s.Name)}
		if seen[s.Name] {
			return c.failf("there are two sessions %s", s.Name)
		}
		seen[s.Name] = true
		if err := first(c.name("a session", s.Name), c.host(s.Host)); err != nil {
			return err
		}
	}
	return nil
}

func (c *planCheck) parties() error {
	seen := map[string]bool{}
	for i, party := range c.p.Parties {
		c.at = planPlace{kind: inParty, i: i, spelled: fmt.Sprintf("party %q", party.Name)}
		switch {
		case !slices.Contains([]PartyKind{AgentParty, PersonParty, ClientParty}, party.Kind):
			return c.failf("%q is no kind of a party: it may be %s, %s or %s", party.Kind, AgentParty, PersonParty, ClientParty)
		case seen[party.Name] || laneOfOthers(party.Name):
			return c.failf("the name %s is taken", party.Name)
		}
		seen[party.Name] = true
		if err := first(c.name("a party", party.Name), c.session(party.Session), c.roots(party), c.host(party.Host)); err != nil {
			return err
		}
		for j, act := range party.Acts {
			c.at = planPlace{kind: inAct, i: i, act: j, spelled: fmt.Sprintf("party %q, act %d", party.Name, j+1)}
			if err := c.act(party, act); err != nil {
				return err
			}
		}
	}
	return nil
}

// laneOfOthers: a party's name is a lane of the trace, and others have theirs.
func laneOfOthers(name string) bool {
	return slices.Contains([]string{"disk", "world", "operator"}, name) || len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '9'
}

func (c *planCheck) roots(party PartyPlan) error {
	if party.Kind != AgentParty {
		return nil
	}
	if err := c.name("an agent's root", party.Root); err != nil || party.Owner == "" {
		return err
	}
	return c.name("the session that owns it", party.Owner)
}

func (c *planCheck) act(party PartyPlan, act Act) error {
	v := verbOf(party.Kind, act.Verb)
	if v.says == "" {
		return c.failf("%s", cannot(party, act.Verb))
	}
	if v.call && !callFits(act.Call) || act.In != "" && !callFits(act.In) {
		return c.failf("%s: the name of a call is wanted: %s", act.Verb, nameForm)
	}
	if v.in || act.In == "" {
		if err := c.with(v, act); err != nil {
			return err
		}
		return c.actTime(v, act.For)
	}
	return c.failf("in %s is too much: %s", act.In, v.form())
}

func (c *planCheck) with(v verb, act Act) error {
	if act.With == "" {
		return nil
	}
	if text := withWrong(v, act); text != "" {
		return c.failf("%s", text)
	}
	return nil
}

func (c *planCheck) actTime(v verb, d time.Duration) error {
	switch {
	case v.span == "":
		return nil
	case v.span == "+":
		return c.span(v.name, max(d, -d))
	case v.ever && d == -1:
		return nil
	case v.ever:
		return c.seconds(v.span, d)
	case v.span == "-":
		return c.span(v.name, d)
	}
	return c.span(v.span, d)
}

func (c *planCheck) faults() error {
	for i, f := range c.p.Faults {
		c.at = planPlace{kind: inFault, i: i, spelled: fmt.Sprintf("fault %d", i+1)}
		if err := first(c.span("at", f.At), c.fault(f)); err != nil {
			return err
		}
	}
	return nil
}

func (c *planCheck) fault(f FaultPlan) error {
	switch f.What {
	case faultCrash, faultPause:
		return first(c.host(f.Host), c.span("for", f.For))
	case faultPartition:
		if f.Host == f.To {
			return c.failf("a host always hears itself: name two")
		}
		return first(c.host(f.Host), c.host(f.To), c.span("for", f.For))
	case faultClock:
		return first(c.host(f.Host), c.span("a jump of", max(f.For, -f.For)))
	case faultMove:
		return first(c.session(f.Session), c.host(f.Host), c.span("within", f.For))
	case faultKill:
		if !c.p.hasParty(f.Party) {
			return c.failf("there is no agent, person or client %s", f.Party)
		}
		return c.span("for", f.For)
	}
	return c.failf("%s where a fault is wanted: %s", quoted(f.What), faultForms)
}

func (c *planCheck) host(i int) error {
	switch {
	case i < 0:
		return c.failf("there is no host %d: they are counted from 0", i)
	case i >= c.p.Hosts:
		return c.failf("there is no host %s: hosts says %d", hostName(i), c.p.Hosts)
	}
	return nil
}

func (c *planCheck) session(name string) error {
	if !c.p.hasSession(name) {
		return c.failf("there is no session %s", name)
	}
	return nil
}

func (c *planCheck) name(what, name string) error {
	if !nameFits(name) {
		return c.failf("%.50q is no name of %s: %s", name, what, nameForm)
	}
	return nil
}

func (c *planCheck) span(what string, d time.Duration) error {
	if !spanFits(d) {
		return c.failf("%s", spanWrong(what, timeText(d)))
	}
	return nil
}

// seconds is a time in whole seconds.
func (c *planCheck) seconds(what string, d time.Duration) error {
	if err := c.span(what, d); err != nil {
		return err
	}
	if d%time.Second != 0 {
		return c.failf("%s", notWhole(what, timeText(d)))
	}
	return nil
}

// What scripts and plans in Go are held against alike.

const rateForm = "a rate is 0 to 1000, in thousandths"

var nameForm = fmt.Sprintf("1 to %d of a-z A-Z 0-9 . _ - '", scriptNameMax)

func rateFits(n int) bool { return n >= 0 && n <= 1000 }

func spanFits(d time.Duration) bool { return d >= 0 && d <= ForMax }

func spanWrong(what, text string) string {
	return fmt.Sprintf("%s %s is too long or too short: 0s to %s", what, text, timeText(ForMax))
}

func notWhole(what, text string) string {
	return fmt.Sprintf("%s %s: a question's timeout is in whole seconds", what, text)
}

func delaysWrong(low, high string) string {
	return fmt.Sprintf("delay %s..%s: the longest is shorter than the shortest", low, high)
}

func nameFits(name string) bool {
	return name != "" && len(name) <= scriptNameMax && !strings.ContainsFunc(name, notInName)
}

// callFits: a program's call has the mark of a sub-call in it.
func callFits(call string) bool {
	return len(call) <= scriptNameMax && strings.Trim(call, ":") != "" &&
		!strings.ContainsFunc(call, func(r rune) bool { return r != ':' && notInName(r) })
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-'", r)
}

func cannot(party PartyPlan, verb string) string {
	return fmt.Sprintf("the %s %s cannot %s; it can %s", party.Kind, party.Name, verb, strings.Join(verbNames(party.Kind), ", "))
}

// withWrong says what is wrong with the words of an act, if anything is.
func withWrong(v verb, act Act) string {
	var before []string
	for w := range strings.SplitSeq(act.With, "+") {
		switch {
		case !slices.Contains(v.words, w):
			return fmt.Sprintf("%s with %q; it may be with %s, joined by +", strings.TrimSpace(v.name+" "+act.Call), w, strings.Join(v.words, ", "))
		case slices.Contains(before, w):
			return fmt.Sprintf("%s with %s: %s is said twice", strings.TrimSpace(v.name+" "+act.Call), act.With, w)
		}
		before = append(before, w)
	}
	return ""
}
