package simulation

import "github.com/parleyrun/parley/messages"

// History is what outsiders said and were told, in order of saying.
type History struct {
	Said  []*Said
	Holds []*Hold
	// Tabs are the tabs of clients, each for as long as its page was loaded, in
	// order of their loading.
	Tabs []*Tab
	// Faults are what went wrong in the world, in order of their beginning.
	Faults []*Fault
	// Written says when each of a session's commits happened: one stamp for
	// each of disk.Log.Commits.
	Written map[string][]Stamp
	// Panics are those of actors, which their supervisor has restarted.
	Panics []*Panic
	// Healed is when faults ended; 0: not yet.
	Healed int64
}

// Stamp is a moment: in true time, and in steps of the world, of which no two
// things happen in one.
type Stamp struct {
	At   int64
	Step int
	Line int // of the trace, that says it
}

// Fault is one thing that went wrong, from and until when.
type Fault struct {
	What        string // as in FaultPlan
	Host, To    int
	Session     string
	Party       string // that is offline
	By          int64  // how far a clock jumped, in milliseconds
	From, Until int64  // Until -1: it goes on
}

// Said is one command of a party, however often it was sent.
type Said struct {
	Party   string
	Tab     int // of a client, from 1
	Cmd     messages.Command
	At      int64
	Step    int     // when, in steps of the world
	Line    int     // of the trace, that says it
	Tries   int     // how often it was sent
	Waiting []Heard // of an ask: that it is durable
	Answer  *Heard  // nil: none came, or the party left
	Left    bool
	LeftAt  int64 // when
}

// Heard is what a party was told, and when.
type Heard struct {
	At   int64
	Step int // when it was heard, in steps of the world
	Sent int // when its host said it, likewise
	Asks int // when the try was sent that it answers, likewise
	Line int // of the trace, that says it
	Msg  messages.Message
}

// Hold is one claim, as its client saw it.
type Hold struct {
	Party, Session, Call string
	Name                 string // by which commands name it; empty: it has none yet
	Tab                  int    // of a client, from 1
	Host                 int
	Opened               int64
	Framed               int64 // when the client knew that it held; 0: never
	Line                 int   // of the trace, that says so
	Frames               int   // how often it was told so
	LeftMS               int64 // how long that still was, as it was first told
	Never                bool  // there is no deadline, as it was told
	Over                 int64 // when it let go, or knew that it had ended; 0: at the end of the run
	How                  string
}
