package simulation

import "time"

// Plan is everything that is fixed before a run: who is there, what they do,
// what fails. With its seed it determines the run. It can be written as a
// script and read again.
type Plan struct {
	// Seed decides what the plan leaves open: the order of deliveries, how long
	// each takes, which are lost.
	Seed     uint64
	Rules    RulesPlan
	Network  NetworkPlan
	Disk     DiskPlan
	Schedule SchedulePlan
	Hosts    int
	Sessions []SessionPlan
	Parties  []PartyPlan
	Faults   []FaultPlan
	// For is how long anything may fail. After it the world heals, and
	// everything must come to an end.
	For time.Duration
}

// RulesPlan are the settings of the machines.
type RulesPlan struct {
	Timeout   time.Duration // of a call that names none
	Grace     time.Duration // claim_grace
	First     bool          // expiry: first; else unanimous
	Passivate time.Duration
}

// NetworkPlan is what messages meet, between hosts and to and from parties.
// Rates are in thousandths.
type NetworkPlan struct {
	DelayMin, DelayMax time.Duration
	Drop, Duplicate    int
	// Lose and Repeat name single messages, by their number in the trace: what
	// a shrunk script keeps of the rates.
	Lose, Repeat []int
}

// DiskPlan is what appends and opens meet. Rates are in thousandths.
type DiskPlan struct {
	DelayMax        time.Duration
	Refuse, InDoubt int
	// RefuseOps and DoubtOps name single operations, from 1.
	RefuseOps, DoubtOps []int
}

// SchedulePlan is how the next thing to happen is chosen. Rates are in
// thousandths.
type SchedulePlan struct {
	// Random is how often it is not the one that has waited longest.
	Random int
	// Early is how often time passes although something could happen now.
	Early int
	// Choose overrides single choices, by their number: what a shrunk script
	// keeps of a seed.
	Choose map[int]int
}

// SessionPlan is a session and the host that runs it.
type SessionPlan struct {
	Name string
	Host int
}

// PartyKind is who speaks.
type PartyKind string

// The kinds of parties.
const (
	AgentParty  PartyKind = "agent"
	PersonParty PartyKind = "person"
	ClientParty PartyKind = "client" // a person at the cards of a client
)

// PartyPlan is an agent, a person or a client with what it does, in order.
type PartyPlan struct {
	Kind    PartyKind
	Name    string
	Session string
	Root    string // of an agent
	Owner   string // of an owned child
	Host    int    // that it speaks to first
	// Patient sends nothing again by itself while its connection lasts.
	Patient bool
	Acts    []Act
}

// Act is one thing that a party does: a verb, what it is done to, and how.
type Act struct {
	Verb string
	Call string
	In   string        // the call whose program asks it, if one does
	For  time.Duration // how long: a wait, a timeout; -1: never
	With string        // a word more: legacy, watched, reject, lost
}

// FaultPlan is one thing that goes wrong at a time.
type FaultPlan struct {
	At       time.Duration
	What     string // crash, partition, pause, clock, move, kill
	Host, To int
	Session  string
	Party    string
	// For is how long it lasts; of a move: how late others may learn of it, 0:
	// learnedWithin.
	For time.Duration
}
