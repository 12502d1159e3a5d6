package sessionlog

import (
	"fmt"
	"strings"
)

// CorruptError says that a log breaks the rules of its own format, so nothing in it can be trusted as a whole
// (L-024, L-031, L-034). The bytes are left alone: whether to repair by hand, restore or quarantine is not decided here.
type CorruptError struct {
	Line    int    // line in the file counted from 1; 0 when the log did not come from a file
	Seq     int64  // seq of the offending event; -1 when there is none
	Problem string // what is wrong
	Remedy  string // what to do next
}

// Error names the place, the problem and the remedy.
func (e *CorruptError) Error() string {
	return describe("corrupt session log", e.Line, e.Seq, e.Problem, e.Remedy)
}

// UnsupportedError says that a log is sound as far as it can be judged but needs a reader that knows more (L-014,
// L-032). It is not damage, and the log must not be repaired.
type UnsupportedError struct {
	Line    int    // line in the file counted from 1; 0 when the log did not come from a file
	Seq     int64  // seq of the offending event; -1 when there is none
	Problem string // what this build does not know
	Remedy  string // what to do next
}

// Error names the place, the problem and the remedy.
func (e *UnsupportedError) Error() string {
	return describe("unsupported session log", e.Line, e.Seq, e.Problem, e.Remedy)
}

// LimitError says that a log is larger than this build reads. It is not damage.
type LimitError struct {
	Line    int    // line in the file counted from 1; 0 when the log did not come from a file
	Limit   string // the name of the limit
	Most    int64  // what it allows
	Problem string // what is too much
}

// Error names the place, the problem and the limit.
func (e *LimitError) Error() string {
	return describe("session log too large", e.Line, -1, fmt.Sprintf("%s; the limit %s is %d", e.Problem, e.Limit, e.Most), "")
}

// DuplicateError refuses a message whose id is already pending in one of the two lists (L-063).
type DuplicateError struct {
	ID     string // the message id
	Target Target // the list that already holds it
}

// Error names the id and the list.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("message %q is already pending in the %s list: give the new message its own id, or replace the pending one", e.ID, e.Target)
}

// MissingError refuses a change of a message that is in neither list.
type MissingError struct {
	ID string // the message id
}

// Error names the id.
func (e *MissingError) Error() string {
	return fmt.Sprintf("message %q is not pending: read the lists again, it was taken or withdrawn", e.ID)
}

func describe(kind string, line int, seq int64, problem, remedy string) string {
	var b strings.Builder
	b.WriteString(kind)
	if line > 0 {
		fmt.Fprintf(&b, ", line %d", line)
	}
	if seq >= 0 {
		fmt.Fprintf(&b, ", seq %d", seq)
	}
	b.WriteString(": ")
	b.WriteString(problem)
	if remedy != "" {
		b.WriteString("; ")
		b.WriteString(remedy)
	}
	return b.String()
}
