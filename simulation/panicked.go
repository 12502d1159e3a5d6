package simulation

import (
	"fmt"
	"path"
	"regexp"
	"runtime"
	"strings"
)

// ProgramPanic is what a program has panicked with, and where. Its text is the
// same in every process: it has no addresses and no numbers of goroutines.
type ProgramPanic struct {
	// Party is the program's, and AtMs the time of the world.
	Party string
	AtMs  int64
	What  any
	// Stack is its top: functions with their lines, the one that panicked first.
	Stack []string
}

func (e *ProgramPanic) Error() string {
	return fmt.Sprintf("%s, at %d ms: %s", e.Party, e.AtMs, whatAndWhere(e.What, e.Stack))
}

// Unwrap is what it panicked with, if that is an error.
func (e *ProgramPanic) Unwrap() error {
	err, _ := e.What.(error)
	return err
}

// panicked is called by the deferred function that recovered.
func (p *party) panicked(what any) *ProgramPanic {
	return &ProgramPanic{Party: p.name, AtMs: p.w.now, What: what, Stack: stackTop()}
}

// panicText says a panic. It is called by the deferred function that recovered.
func panicText(what any) string {
	if program, ok := what.(*ProgramPanic); ok {
		return program.Error()
	}
	return whatAndWhere(what, stackTop())
}

// addresses are elsewhere in every process.
var addresses = regexp.MustCompile(`0x[0-9a-f]{6,}`)

func whatAndWhere(what any, stack []string) string {
	text := addresses.ReplaceAllString(strings.TrimSpace(fmt.Sprint(what)), "0x…")
	if len(stack) > 0 {
		text += "; in " + strings.Join(stack, ", called by ")
	}
	return text
}

// stackMax is how much of a stack is shown.
const stackMax = 4

// stackTop is the stack of a panic that was recovered, without the runtime's
// part, down to where the world called the program.
func stackTop() (top []string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for more := true; more && len(top) < stackMax; {
		var f runtime.Frame
		f, more = frames.Next()
		ofRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true // the first is of the panic that began last
		case !panicking || ofRuntime:
		case strings.HasSuffix(f.Function, "simulation.(*party).program") || strings.HasSuffix(f.Function, "simulation.(*party).begin.func1"):
			return top
		default:
			top = append(top, fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), path.Base(f.File), f.Line))
		}
	}
	return top
}
