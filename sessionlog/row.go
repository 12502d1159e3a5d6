package sessionlog

// RowState is where an active question call stands.
type RowState string

// The states of a row.
const (
	RowOpen      RowState = "open"      // a foreground call may still return the answer
	RowContinued RowState = "continued" // it returned pending; a late answer is possible
	RowReplied   RowState = "replied"   // a late reply waits in the inbox
)

// Row is one active question call as the journal's index keeps it: the due
// index and the human's queue in one. It is a function of the session's folds,
// so it can be dropped and derived again.
type Row struct {
	CallID string   `json:"c"`
	State  RowState `json:"s"`
	// Due is the wall time in milliseconds at which the session must be awake
	// to act on this row; 0: never.
	Due int64 `json:"d,omitempty"`
	// Seq is the tool/call event that holds the questions.
	Seq int64 `json:"q"`
}

// RowChange puts a row, replacing the one of the same call, or removes it.
type RowChange struct {
	Row    Row  `json:"r"`
	Remove bool `json:"x,omitempty"`
}
