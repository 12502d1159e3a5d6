package simulation

import "github.com/parleyrun/parley/messages"

// History is what outsiders said and were told, in order of saying.
type History struct {
	Said  []*Said
	Holds []*Hold
}

// Said is one command of a party, however often it was sent.
type Said struct {
	Party   string
	Cmd     messages.Command
	At      int64
	Waiting []Heard // of an ask: that it is durable
	Answer  *Heard  // nil: none came, or the party left
	Left    bool
}

// Heard is what a party was told, and when.
type Heard struct {
	At  int64
	Msg messages.Message
}

// Hold is one claim, as its client saw it.
type Hold struct {
	Party, Session, Call string
	Host                 int
	Opened               int64
	Framed               int64 // when the client knew that it held; 0: never
	Over                 int64 // when it let go, or knew that it had ended; 0: at the end of the run
	How                  string
}
