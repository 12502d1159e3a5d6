package actors

import "github.com/parleyrun/parley/messages"

// Rules are the settings that machines share. They are fixed for a node's life.
type Rules struct {
	// Mode is the tool definition in force when an ask names none.
	Mode messages.Mode
	// DefaultTimeoutS is the foreground wait of a call that names none, in
	// seconds: -1 never, else 1 to 2147483.
	DefaultTimeoutS int64
	// ClaimGraceMS holds a passed deadline after a claim was lost or a wait
	// was rebuilt, in milliseconds. 0 is faithful to the source.
	ClaimGraceMS int64
	// FirstExpiryWins lets the first client's countdown end the wait for all;
	// otherwise it only releases its claim while others hold (unanimous).
	FirstExpiryWins bool
	// PassivateAfterMS unloads a session that nobody waits for, after so many
	// milliseconds; 0: never.
	PassivateAfterMS int64
	// OpenCallsMax is how many foreground calls one session may have at once.
	OpenCallsMax int
	// QueueMax is how many messages may wait in one session's inbox before no
	// more can be steered into it. Replies are not counted out: there is at most
	// one per question, and a person's answer is not refused over other messages.
	QueueMax int
	// NewID draws an id; kind is its readable prefix.
	NewID func(kind string) string
}

// Default limits of a session.
const (
	OpenCallsMaxDefault = 256
	QueueMaxDefault     = 1024
)
