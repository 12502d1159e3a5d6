package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// What a script need not say.
const (
	defaultTimeout = 3 * time.Second
	defaultFor     = 10 * time.Second
)

// neverWord is how a script says that a timeout never comes.
const neverWord = "ever"

// choicesPerLine keeps a schedule readable.
const choicesPerLine = 10

// String writes the plan in the trace language of docs/simulation.md.
// ParseScript reads it back to the same plan. What a verb or a fault does not
// look at is left out.
func (p *Plan) String() string {
	var b strings.Builder
	line := func(words ...string) { fmt.Fprintf(&b, "%s\n", strings.Join(words, " ")) }
	settings := func(name string, words []string) {
		if len(words) > 0 {
			line(append([]string{name}, words...)...)
		}
	}
	line("seed", fmt.Sprint(p.Seed))
	line("for", timeText(p.For))
	settings("rules", p.Rules.words())
	settings("network", p.Network.words())
	settings("disk", p.Disk.words())
	settings("schedule", p.Schedule.words())
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(p.Schedule.Choose)), choicesPerLine) {
		words := []string{"choose"}
		for _, n := range chunk {
			words = append(words, fmt.Sprintf("%d=%d", n, p.Schedule.Choose[n]))
		}
		line(words...)
	}
	for _, f := range namedFates {
		for chunk := range slices.Chunk(*f.of(p), choicesPerLine) {
			words := []string{f.word}
			for _, n := range chunk {
				words = append(words, fmt.Sprint(n))
			}
			line(words...)
		}
	}
	line("hosts", fmt.Sprint(p.Hosts))
	for _, s := range p.Sessions {
		line("session", s.Name, "on", hostName(s.Host))
	}
	for chunk := range slices.Chunk(p.unaskedCalls(), choicesPerLine) {
		line(append([]string{unaskedWord}, chunk...)...)
	}
	for _, party := range p.Parties {
		line(party.words()...)
		for _, act := range party.Acts {
			line(" ", act.String(party.Kind))
		}
	}
	for _, f := range p.Faults {
		line(f.words()...)
	}
	return b.String()
}

// timeText writes a time as a person would: 1m, not 1m0s.
func timeText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// jumpText writes a time with its sign.
func jumpText(d time.Duration) string {
	if d >= 0 {
		return "+" + timeText(d)
	}
	return timeText(d)
}

// namedFate is one kind of them: its word, what it names, and the rate that
// leaves it to the dice.
type namedFate struct {
	word string
	of   func(*Plan) *[]int
	rate func(*Plan) *int
}

// namedFates are the lines that name single messages and operations.
var namedFates = []namedFate{
	{"lose", (*Plan).lost, func(p *Plan) *int { return &p.Network.Drop }},
	{"repeat", (*Plan).repeated, func(p *Plan) *int { return &p.Network.Duplicate }},
	{"refuse", (*Plan).refused, func(p *Plan) *int { return &p.Disk.Refuse }},
	{"doubt", (*Plan).doubted, func(p *Plan) *int { return &p.Disk.InDoubt }},
}

func hostName(i int) string { return fmt.Sprintf("h%d", i+1) }

// setting adds key=value, unless it is what nobody need say.
func setting[T comparable](words []string, key string, value, usual T, text string) []string {
	if value == usual {
		return words
	}
	return append(words, key+"="+text)
}

func (r RulesPlan) words() (w []string) {
	w = setting(w, "timeout", r.Timeout, defaultTimeout, timeText(r.Timeout))
	w = setting(w, "grace", r.Grace, 0, timeText(r.Grace))
	w = setting(w, "expiry", r.First, false, "first")
	return setting(w, "passivate", r.Passivate, 0, timeText(r.Passivate))
}

func (n NetworkPlan) words() (w []string) {
	w = setting(w, "delay", [2]time.Duration{n.DelayMin, n.DelayMax}, [2]time.Duration{}, timeText(n.DelayMin)+".."+timeText(n.DelayMax))
	w = setting(w, "drop", n.Drop, 0, fmt.Sprint(n.Drop))
	return setting(w, "duplicate", n.Duplicate, 0, fmt.Sprint(n.Duplicate))
}

func (d DiskPlan) words() (w []string) {
	w = setting(w, "delay", d.DelayMax, 0, timeText(d.DelayMax))
	w = setting(w, "refuse", d.Refuse, 0, fmt.Sprint(d.Refuse))
	return setting(w, "doubt", d.InDoubt, 0, fmt.Sprint(d.InDoubt))
}

func (s SchedulePlan) words() (w []string) {
	w = setting(w, "random", s.Random, 0, fmt.Sprint(s.Random))
	return setting(w, "early", s.Early, 0, fmt.Sprint(s.Early))
}

func (p *PartyPlan) words() []string {
	w := []string{string(p.Kind), p.Name}
	if p.Kind == AgentParty {
		w = append(w, "as", p.Root)
	}
	w = append(w, "in", p.Session)
	if p.Owner != "" {
		w = append(w, "owner", p.Owner)
	}
	w = append(w, "on", hostName(p.Host))
	if p.Patient {
		w = append(w, "patient")
	}
	return w
}

// String is the act as a line of a script has it.
func (a Act) String(kind PartyKind) string {
	v := verbOf(kind, a.Verb)
	words := []string{a.Verb}
	if v.call {
		words = append(words, a.Call)
	}
	switch {
	case v.span == "":
	case v.span == "-":
		words = append(words, timeText(a.For))
	case v.span == "+":
		words = append(words, jumpText(a.For))
	case v.ever && a.For < 0:
		words = append(words, v.span, neverWord)
	default:
		words = append(words, v.span, timeText(a.For))
	}
	if a.In != "" && v.in {
		words = append(words, "in", a.In)
	}
	if a.With != "" && len(v.words) > 0 {
		words = append(words, "with", a.With)
	}
	return strings.Join(words, " ")
}

func (f FaultPlan) words() []string {
	w := []string{"at", timeText(f.At), f.What}
	switch f.What {
	case faultPartition:
		w = append(w, hostName(f.Host), hostName(f.To))
	case faultMove:
		w = append(w, f.Session, "to", hostName(f.Host))
		if f.For > 0 {
			w = append(w, "within", timeText(f.For))
		}
		return w
	case faultClock:
		return append(w, hostName(f.Host), jumpText(f.For))
	case faultKill:
		w = append(w, f.Party)
	default:
		w = append(w, hostName(f.Host))
	}
	return append(w, "for", timeText(f.For))
}
