package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a plan may hold. A world is small: what it cannot show with this, it
// will not show with more.
const (
	HostsMax = 9
	ForMax   = 24 * time.Hour
)

const (
	scriptNameMax  = 40 // bytes of a name
	scriptWordMax  = 200
	scriptLinesMax = 10_000
)

// ScriptError is what is wrong with one line of a script, and what may stand
// there.
type ScriptError struct {
	Line int // from 1; 0: of the whole
	Text string
}

func (e *ScriptError) Error() string {
	if e.Line == 0 {
		return "script: " + e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// ParseScript reads a plan as String writes it. Its error is a *ScriptError
// that says what the line may be.
func ParseScript(text string) (*Plan, error) {
	s := &scriptReader{p: &Plan{Rules: RulesPlan{Timeout: defaultTimeout}, For: defaultFor, Hosts: 1}, lines: map[planPlace]int{},
		said: map[string]int{}, meant: map[string]bool{}}
	lines := strings.Split(text, "\n")
	if len(lines) > scriptLinesMax {
		return nil, &ScriptError{Text: fmt.Sprintf("it has %d lines, and may have %d", len(lines), scriptLinesMax)}
	}
	for i, line := range lines {
		s.line = i + 1
		line, _, _ = strings.Cut(line, "#")
		s.words = strings.Fields(line)
		if len(s.words) == 0 {
			continue
		}
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.p, nil
}

// scriptReader reads one line at a time. What a line refers to is looked up at
// the end, by Validate, so that hosts may be counted last.
type scriptReader struct {
	p     *Plan
	line  int
	words []string // of the line, those not read yet
	lines map[planPlace]int
	said  map[string]int  // the lines of what is said once
	meant map[string]bool // calls that no agent asks
}

func (s *scriptReader) failf(format string, args ...any) error {
	return &ScriptError{Line: s.line, Text: fmt.Sprintf(format, args...)}
}

// check holds the plan against what every plan is, and says the line of what is
// not.
func (s *scriptReader) check() error {
	var wrong *PlanError
	if errors.As(s.p.Validate(), &wrong) {
		return &ScriptError{Line: s.lines[wrong.at.line()], Text: wrong.Text}
	}
	for i, j := range s.p.unasked {
		party := &s.p.Parties[i]
		if act := party.Acts[j]; !s.meant[act.Call] {
			return &ScriptError{Line: s.lines[planPlace{kind: inAct, i: i, act: j}], Text: nobodyAsks(party, act, s.p.callNames(party.Session))}
		}
	}
	return nil
}

// isOf notes that this line says a part of the plan.
func (s *scriptReader) isOf(kind placeKind, i, act int) {
	s.lines[planPlace{kind: kind, i: i, act: act}] = s.line
}

var lineKinds = "seed, for, rules, network, disk, schedule, choose, lose, repeat, refuse, doubt, hosts, session, unasked, agent, person, client, at, or a verb of the agent, person or client above"

func (s *scriptReader) read() error {
	for _, word := range s.words {
		if len(word) > scriptWordMax {
			return s.failf("%.20q begins a word of %d bytes, and one may have %d", word, len(word), scriptWordMax)
		}
	}
	first := s.words[0]
	s.words = s.words[1:]
	if err := s.readLine(first); err != nil {
		return err
	}
	if len(s.words) > 0 {
		return s.failf("%q is too much: nothing may follow here", strings.Join(s.words, " "))
	}
	return nil
}

// saidOnce are the lines that a script has one of.
var saidOnce = []string{"seed", "for", "rules", "network", "disk", "schedule", "hosts"}

// once refuses what is said a second time.
func (s *scriptReader) once(what, form string) error {
	if line, twice := s.said[what]; twice {
		return s.failf("%s is said a second time, after line %d: %s", what, line, form)
	}
	s.said[what] = s.line
	return nil
}

func (s *scriptReader) readLine(first string) (err error) {
	if slices.Contains(saidOnce, first) {
		if err := s.once(first, "one line has all of it"); err != nil {
			return err
		}
	}
	switch first {
	case "seed":
		s.p.Seed, err = s.number()
	case "for":
		s.p.For, err = s.span("for")
	case "rules":
		err = s.settings("timeout=3s, grace=700ms, expiry=first or expiry=unanimous, passivate=1m", s.rule)
	case "network":
		err = s.settings("delay=0s..30ms, drop=RATE, duplicate=RATE; rates are in thousandths", s.net)
	case "disk":
		err = s.settings("delay=20ms, refuse=RATE, doubt=RATE; rates are in thousandths", s.disk)
	case "schedule":
		err = s.settings("random=RATE, early=RATE; rates are in thousandths", s.schedule)
	case "choose":
		err = s.choose()
	case "hosts":
		err = s.hosts()
	case "session":
		err = s.session()
	case unaskedWord:
		err = s.unasked()
	case string(AgentParty), string(PersonParty), string(ClientParty):
		err = s.party(PartyKind(first))
	case "at":
		err = s.fault()
	case "lose", "repeat", "refuse", "doubt":
		err = s.named(first)
	default:
		err = s.act(first)
	}
	return err
}

// Words.

// next takes a word; "" when there is none.
func (s *scriptReader) next() string {
	if len(s.words) == 0 {
		return ""
	}
	w := s.words[0]
	s.words = s.words[1:]
	return w
}

// word takes this word and no other.
func (s *scriptReader) word(want, form string) error {
	if got := s.next(); got != want {
		return s.failf("%s where %q is wanted: %s", quoted(got), want, form)
	}
	return nil
}

func quoted(word string) string {
	if word == "" {
		return "the line ends"
	}
	return fmt.Sprintf("%q stands", word)
}

func (s *scriptReader) number() (uint64, error) {
	word := s.next()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0, s.failf("%s where a number is wanted: seed 4711", quoted(word))
	}
	return n, nil
}

// span takes a time of zero or more.
func (s *scriptReader) span(what string) (time.Duration, error) { return s.time(what, s.next()) }

func (s *scriptReader) time(what, word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	switch {
	case err != nil:
		return 0, s.failf("%s where a time is wanted: %s 1.5s, or with ms, m, h", quoted(word), what)
	case !spanFits(d):
		return 0, s.failf("%s", spanWrong(what, word))
	}
	return d, nil
}

// name takes a name.
func (s *scriptReader) name(what string) (string, error) {
	word := s.next()
	if !nameFits(word) {
		return "", s.failf("%s where the name of %s is wanted: %s", quoted(word), what, nameForm)
	}
	return word, nil
}

// call reads the id of a call; a program's has the mark of a sub-call in it.
func (s *scriptReader) call() (string, error) {
	if len(s.words) > 0 && callFits(s.words[0]) {
		return s.next(), nil
	}
	return s.name("a call")
}

// host takes the name of a host.
func (s *scriptReader) host() (int, error) {
	word := s.next()
	n, err := strconv.Atoi(strings.TrimPrefix(word, "h"))
	if err != nil || word != hostName(n-1) || n < 1 || n > HostsMax {
		return 0, s.failf("%s where a host is wanted: h1 to h%d", quoted(word), HostsMax)
	}
	return n - 1, nil
}

// onHost takes what may end a line: on h1, which is also meant without it.
func (s *scriptReader) onHost(form string) (int, error) {
	if len(s.words) == 0 {
		return 0, nil
	}
	if err := s.word("on", form); err != nil {
		return 0, err
	}
	return s.host()
}

// Settings.

// settings reads key=value words; set says whether it knows the key.
func (s *scriptReader) settings(allowed string, set func(key, value string) (bool, error)) error {
	if len(s.words) == 0 {
		return s.failf("a setting is missing: %s", allowed)
	}
	var before []string
	for len(s.words) > 0 {
		word := s.next()
		key, value, _ := strings.Cut(word, "=")
		if slices.Contains(before, key) {
			return s.failf("%s is said twice in this line", key)
		}
		before = append(before, key)
		known, err := set(key, value)
		if err != nil {
			return err
		}
		if !known {
			return s.failf("%q is no setting of these: %s", word, allowed)
		}
	}
	return nil
}

func (s *scriptReader) rule(key, value string) (known bool, err error) {
	r := &s.p.Rules
	switch key {
	case "timeout":
		r.Timeout, err = s.whole("timeout", value)
	case "grace":
		r.Grace, err = s.time(key, value)
	case "passivate":
		r.Passivate, err = s.time(key, value)
	case "expiry":
		if value != "first" && value != "unanimous" {
			return false, nil
		}
		r.First = value == "first"
	default:
		return false, nil
	}
	return true, err
}

func (s *scriptReader) net(key, value string) (known bool, err error) {
	n := &s.p.Network
	switch key {
	case "delay":
		low, high, ranged := strings.Cut(value, "..")
		if !ranged {
			low, high = "0s", value
		}
		if n.DelayMin, err = s.time(key, low); err == nil {
			n.DelayMax, err = s.time(key, high)
		}
		if err == nil && n.DelayMax < n.DelayMin {
			err = s.failf("%s", delaysWrong(low, high))
		}
	case "drop":
		n.Drop, err = s.rate(key, value)
	case "duplicate":
		n.Duplicate, err = s.rate(key, value)
	default:
		return false, nil
	}
	return true, err
}

func (s *scriptReader) disk(key, value string) (known bool, err error) {
	d := &s.p.Disk
	switch key {
	case "delay":
		d.DelayMax, err = s.time(key, value)
	case "refuse":
		d.Refuse, err = s.rate(key, value)
	case "doubt":
		d.InDoubt, err = s.rate(key, value)
	default:
		return false, nil
	}
	return true, err
}

func (s *scriptReader) schedule(key, value string) (known bool, err error) {
	switch key {
	case "random":
		s.p.Schedule.Random, err = s.rate(key, value)
	case "early":
		s.p.Schedule.Early, err = s.rate(key, value)
	default:
		return false, nil
	}
	return true, err
}

func (s *scriptReader) rate(key, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || !rateFits(n) {
		return 0, s.failf("%s=%s: %s", key, value, rateForm)
	}
	return n, nil
}

func (s *scriptReader) whole(what, word string) (time.Duration, error) {
	d, err := s.time(what, word)
	if err == nil && d%time.Second != 0 {
		return 0, s.failf("%s", notWhole(what, word))
	}
	return d, err
}

func (s *scriptReader) choose() error {
	if len(s.words) == 0 {
		return s.failf("a choice is missing: choose N=K lets the N-th choice be for the K-th that could happen, from 0")
	}
	for len(s.words) > 0 {
		word := s.next()
		number, pick, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(number)
		k, err2 := strconv.Atoi(pick)
		if err != nil || err2 != nil || n < 1 || k < 0 {
			return s.failf("%q is no choice: choose N=K lets the N-th choice (from 1) be for the K-th that could happen (from 0)", word)
		}
		if s.p.Schedule.Choose == nil {
			s.p.Schedule.Choose = map[int]int{}
		}
		if _, twice := s.p.Schedule.Choose[n]; twice {
			return s.failf("choice %d is made twice", n)
		}
		s.p.Schedule.Choose[n] = k
	}
	return nil
}

// named reads the numbers of messages or operations that meet a fate.
func (s *scriptReader) named(word string) error {
	at := slices.IndexFunc(namedFates, func(f namedFate) bool { return f.word == word })
	of := namedFates[at].of(s.p)
	if len(s.words) == 0 {
		return s.failf("a number is missing: %s 12 17", word)
	}
	for len(s.words) > 0 {
		text := s.next()
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return s.failf("%q stands where a number from 1 is wanted: %s 12 17", text, word)
		}
		if slices.Contains(*of, n) {
			return s.failf("%s %d is said twice", word, n)
		}
		*of = append(*of, n)
	}
	return nil
}

// Who is there.

func (s *scriptReader) hosts() error {
	word := s.next()
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > HostsMax {
		return s.failf("%s where a number of hosts is wanted: hosts 3; 1 to %d", quoted(word), HostsMax)
	}
	s.p.Hosts = n
	return nil
}

// unasked reads the names of calls that are named although no agent asks them.
func (s *scriptReader) unasked() error {
	for first := true; first || len(s.words) > 0; first = false {
		call, err := s.call()
		if err != nil {
			return err
		}
		s.meant[call] = true
	}
	return nil
}

func (s *scriptReader) session() (err error) {
	var out SessionPlan
	if out.Name, err = s.name("a session"); err != nil {
		return err
	}
	s.isOf(inSession, len(s.p.Sessions), 0)
	out.Host, err = s.onHost("session NAME on HOST")
	s.p.Sessions = append(s.p.Sessions, out)
	return err
}

func (s *scriptReader) party(kind PartyKind) (err error) {
	form := string(kind) + " NAME in SESSION on HOST patient"
	if kind == AgentParty {
		form = "agent NAME as ROOT in SESSION owner SESSION on HOST patient"
	}
	out := PartyPlan{Kind: kind}
	if out.Name, err = s.name("a party"); err != nil {
		return err
	}
	if kind == AgentParty {
		if err = s.word("as", form); err != nil {
			return err
		}
		if out.Root, err = s.name("an agent's root"); err != nil {
			return err
		}
	}
	if err = s.word("in", form); err != nil {
		return err
	}
	if out.Session, err = s.name("a session"); err != nil {
		return err
	}
	if kind == AgentParty && len(s.words) > 0 && s.words[0] == "owner" {
		s.next()
		if out.Owner, err = s.name("the session that owns it"); err != nil {
			return err
		}
	}
	s.isOf(inParty, len(s.p.Parties), 0)
	if last := len(s.words) - 1; last >= 0 && s.words[last] == "patient" {
		out.Patient, s.words = true, s.words[:last]
	}
	out.Host, err = s.onHost(form)
	s.p.Parties = append(s.p.Parties, out)
	return err
}

// act reads one thing that the party above does.
func (s *scriptReader) act(word string) (err error) {
	if len(s.p.Parties) == 0 {
		return s.failf("%q begins no line; a line is one of %s", word, lineKinds)
	}
	party := &s.p.Parties[len(s.p.Parties)-1]
	v := verbOf(party.Kind, word)
	if v.says == "" {
		return s.failf("%s", cannot(*party, word))
	}
	out := Act{Verb: word}
	if v.call {
		if out.Call, err = s.call(); err != nil {
			return err
		}
	}
	if out.For, err = s.actTime(v); err != nil {
		return err
	}
	if v.in && len(s.words) > 0 && s.words[0] == "in" {
		s.next()
		if out.In, err = s.call(); err != nil {
			return err
		}
	}
	if len(s.words) > 0 && len(v.words) > 0 {
		if err = s.word("with", v.form()); err != nil {
			return err
		}
		out.With = s.next()
		if text := withWrong(v, out); text != "" {
			return s.failf("%s", text)
		}
	}
	if len(s.words) > 0 {
		return s.failf("%q is too much: %s", strings.Join(s.words, " "), v.form())
	}
	s.isOf(inAct, len(s.p.Parties)-1, len(party.Acts))
	party.Acts = append(party.Acts, out)
	return nil
}

func (s *scriptReader) actTime(v verb) (time.Duration, error) {
	switch v.span {
	case "":
		return 0, nil
	case "-":
		return s.span(v.name)
	case "+":
		return s.jump(v.name, v.name+" +10s, or -10s")
	}
	if err := s.word(v.span, v.form()); err != nil {
		return 0, err
	}
	switch {
	case !v.ever:
		return s.span(v.span)
	case len(s.words) > 0 && s.words[0] == neverWord:
		s.next()
		return -1, nil
	}
	return s.whole(v.span, s.next())
}

// Faults.

const faultForms = "at TIME crash HOST for TIME, partition HOST HOST for TIME, pause HOST for TIME, clock HOST +TIME or -TIME, move SESSION to HOST, kill PARTY for TIME"

func (s *scriptReader) fault() (err error) {
	var f FaultPlan
	if f.At, err = s.span("at"); err != nil {
		return err
	}
	f.What = s.next()
	switch f.What {
	case faultCrash, faultPause:
		f.Host, err = s.host()
	case faultPartition:
		f.Host, f.To, err = s.twoHosts()
	case faultClock:
		err = s.clock(&f)
	case faultMove:
		err = s.move(&f)
	case faultKill:
		f.Party, err = s.name("a party")
	default:
		return s.failf("%s where a fault is wanted: %s", quoted(f.What), faultForms)
	}
	if err == nil && f.What != faultClock && f.What != faultMove {
		if err = s.word("for", faultForms); err == nil {
			f.For, err = s.span("for")
		}
	}
	s.isOf(inFault, len(s.p.Faults), 0)
	s.p.Faults = append(s.p.Faults, f)
	return err
}

func (s *scriptReader) twoHosts() (a, b int, err error) {
	if a, err = s.host(); err != nil {
		return a, b, err
	}
	b, err = s.host()
	return a, b, err
}

func (s *scriptReader) clock(f *FaultPlan) (err error) {
	if f.Host, err = s.host(); err != nil {
		return err
	}
	f.For, err = s.jump("a jump of", "clock h1 +10s, or -10s")
	return err
}

// jump takes a time with its sign.
func (s *scriptReader) jump(what, form string) (time.Duration, error) {
	word := s.next()
	if !strings.HasPrefix(word, "+") && !strings.HasPrefix(word, "-") {
		return 0, s.failf("%s where a jump is wanted: %s", quoted(word), form)
	}
	d, err := s.time(what, word[1:])
	if word[0] == '-' {
		d = -d
	}
	return d, err
}

func (s *scriptReader) move(f *FaultPlan) (err error) {
	if f.Session, err = s.name("a session"); err != nil {
		return err
	}
	const form = "at TIME move SESSION to HOST within TIME"
	if err = s.word("to", form); err != nil {
		return err
	}
	if f.Host, err = s.host(); err != nil || len(s.words) == 0 {
		return err
	}
	if err = s.word("within", form); err == nil {
		f.For, err = s.span("within")
	}
	return err
}
