package actors

import "github.com/parleyrun/parley/messages"

// From the shell, to doors and claims.
type (
	// SessionGone: a session of this node restarted, moved, or lost a part, so
	// whatever was asked of it and not yet answered must be asked again. The
	// shell sends it to the door and to every claim of the node.
	SessionGone struct{ Session string }

	// DoorCall hands a command to the door; the answer comes back as a Reply
	// to Out with the same correlation.
	DoorCall struct {
		Corr uint64
		Cmd  messages.Command
	}
	// DoorCancel: nobody waits for this correlation any more.
	DoorCancel struct{ Corr uint64 }

	// StreamClosed: the client's stream of a claim ended. Lost means that
	// nobody said goodbye.
	StreamClosed struct{ Lost bool }
)

// Out is the key of what leaves the tree: a Reply to it goes to whoever stands
// outside of a door (by correlation) or a claim.
const Out = "out"

// From a session to a wait.
type (
	// AddAsker attaches a foreground call's subscriber, or the same again.
	AddAsker struct{ From Addr }
	// DropAsker ends a subscription and settles nothing.
	DropAsker struct{ From Addr }
	// WaitSubmit offers an answer that was checked against the questions of the
	// call at Seq.
	WaitSubmit struct {
		From Addr
		Req  *messages.SubmitRequest
		Seq  int64
	}
	// WaitExpire: a client's countdown ended.
	WaitExpire struct {
		From Addr
		Req  *messages.ExpireRequest
	}
	// WaitDelegate: a client passed the question on.
	WaitDelegate struct {
		From Addr
		Req  *messages.DelegateRequest
	}
	// WaitDismiss: a person closed an unkeyed question.
	WaitDismiss struct {
		From Addr
		Req  *messages.DismissRequest
	}
	// WaitCancel: the caller, or the end of what it runs in, takes the call back.
	WaitCancel struct {
		From Addr
		Req  *messages.WithdrawQuestionRequest
	}
	// WaitLeave: the request that waited is gone. Unkeyed: the call has no late path.
	WaitLeave struct {
		From    Addr
		Unkeyed bool
		Reason  string
	}
	// OpenClaim and CloseClaim come from a claim. LeaseMS is how long it holds
	// unless it is opened again; 0: until it is closed.
	OpenClaim struct {
		From    Addr
		LeaseMS int64
	}
	CloseClaim struct {
		From Addr
		Lost bool
	}
	// Ended: the session settled the call without being asked by this wait.
	Ended struct{ End End }
)

// From a session to its inbox.
type (
	// LateSubmit offers a late reply that was checked against the questions of
	// the call at Seq.
	LateSubmit struct {
		From Addr
		Req  *messages.SubmitRequest
		Seq  int64
	}
	// ClaimMarks asks to mark messages for a turn. The lists are given, since
	// only the session's fold has them.
	ClaimMarks struct {
		From               Addr
		Turn               int64
		NextStep, NextTurn []string
		IDs                []string
		FirstStep          bool
	}
	// AdmitMarks asks whether these may be admitted in this turn.
	AdmitMarks struct {
		From Addr
		Req  *messages.AdmitMessagesRequest
	}
	// TurnEnded removes the marks of a turn; 0 removes all.
	TurnEnded struct{ Turn int64 }
	// Admitted and Inserted tell what happened to the lists.
	Admitted struct{ IDs []string }
	Inserted struct{ IDs []string }
	// Await asks for a bell once an unmarked message waits.
	Await struct {
		From Addr
		IDs  []string
	}
)

// From a session to whichever part asked it to record something.
type (
	// Recorded: it is durable. Again: it had been before.
	Recorded struct {
		Corr  uint32
		End   End
		Again bool
	}
	// Refused: it was not recorded, and why.
	Refused struct {
		Corr uint32
		Err  *messages.Error
	}
)

// From a part to its session.
type (
	// Record asks to make a decision durable.
	Record struct {
		Part    PartID
		Corr    uint32
		Outcome Outcome
	}
	// Reroute hands a submission back: its wait is over, the late path may take
	// it, unless the call is another than the one at Seq by now.
	Reroute struct {
		From Addr
		Req  *messages.SubmitRequest
		Seq  int64
	}
	// Quiet tells whether a wait has neither an asker, a claim nor a decision
	// under way, after this many inputs from its session.
	Quiet struct {
		Part  PartID
		Quiet bool
		Seen  uint64
	}
	// Marked answers ClaimMarks, AdmitChecked AdmitMarks.
	Marked struct {
		From Addr
		IDs  []string
	}
	AdmitChecked struct {
		From Addr
		Req  *messages.AdmitMessagesRequest
		Err  *messages.Error
	}
	// PartIdle: nothing is held, after this many inputs.
	PartIdle struct {
		Part PartID
		Seen uint64
	}
)

func (SessionGone) local()  {}
func (DoorCall) local()     {}
func (DoorCancel) local()   {}
func (StreamClosed) local() {}
func (AddAsker) local()     {}
func (DropAsker) local()    {}
func (WaitSubmit) local()   {}
func (WaitExpire) local()   {}
func (WaitDelegate) local() {}
func (WaitDismiss) local()  {}
func (WaitCancel) local()   {}
func (WaitLeave) local()    {}
func (OpenClaim) local()    {}
func (CloseClaim) local()   {}
func (Ended) local()        {}
func (LateSubmit) local()   {}
func (ClaimMarks) local()   {}
func (AdmitMarks) local()   {}
func (TurnEnded) local()    {}
func (Admitted) local()     {}
func (Inserted) local()     {}
func (Await) local()        {}
func (Recorded) local()     {}
func (Refused) local()      {}
func (Record) local()       {}
func (Reroute) local()      {}
func (Quiet) local()        {}
func (Marked) local()       {}
func (AdmitChecked) local() {}
func (PartIdle) local()     {}
