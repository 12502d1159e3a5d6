package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// codeUsage is the code of a command line that cannot be understood. It never leaves this program.
const codeUsage messages.Code = "USAGE"

// codeInterrupted is the code of a wait that Ctrl-C or SIGTERM ended. It never leaves this program either.
const codeInterrupted messages.Code = "INTERRUPTED"

// exitInterrupted is what a shell reports for a program that Ctrl-C ended.
const exitInterrupted = 130

// trouble is an error as this program shows it: what happened, and what to do next.
type trouble struct {
	code   messages.Code
	text   string
	remedy string
	winner *messages.Settlement
	line   string // a command to copy, for the end of the remedy
}

func (t *trouble) Error() string { return string(t.code) + ": " + t.text }

func (t *trouble) exit() int {
	if t.code == codeUsage {
		return messages.ExitUsage
	}
	return messages.Lookup(t.code).Exit
}

// temporary reports whether the same request may be sent again.
func (t *trouble) temporary() bool {
	return t.code == messages.Unavailable || t.code == messages.Fenced
}

// usage is trouble with the command line itself.
func usage(remedy, format string, args ...any) *trouble {
	return &trouble{code: codeUsage, text: fmt.Sprintf(format, args...), remedy: remedy}
}

// refuse is trouble of a registered code; without a remedy of its own it has the registry's.
func refuse(code messages.Code, remedy, format string, args ...any) *trouble {
	if remedy == "" {
		remedy = messages.Lookup(code).Remedy
	}
	return &trouble{code: code, text: fmt.Sprintf(format, args...), remedy: remedy}
}

// asTrouble gives every error a code and a next step.
func asTrouble(err error) *trouble {
	var t *trouble
	if errors.As(err, &t) {
		return t
	}
	var e *messages.Error
	if errors.As(err, &e) {
		t := refuse(e.Code, "", "%s", e.Text)
		t.winner = e.Winner
		return t
	}
	return &trouble{code: "ERROR", text: err.Error()}
}

type troubleJSON struct {
	Code   messages.Code   `json:"code"`
	Text   string          `json:"text"`
	Remedy string          `json:"remedy"`
	Winner *settlementJSON `json:"winner"`
}

// report prints an error on stderr, one line for what happened and one for what to do next, and returns the exit
// status.
func (c *cli) report(ctx context.Context, err error) int {
	t := asTrouble(err)
	interrupted := ctx.Err() != nil && (t.temporary() || t.code == codeInterrupted)
	if interrupted && t.code != codeInterrupted { // nobody failed: it was told to stop
		t = &trouble{code: codeInterrupted, text: "interrupted before the node answered", remedy: "the same command may be given again", line: t.line}
	}
	if t.remedy == messages.Lookup(t.code).Remedy {
		t.remedy = remedyHere(t.code)
	}
	t.text, t.remedy = c.named(t.text), c.local(t.remedy)
	if strings.HasPrefix(t.remedy, "--") {
		t.remedy = c.spelled(t.remedy)
	}
	if t.line != "" {
		t.remedy += ": " + t.line
	}
	if c.json {
		_, _ = fmt.Fprintf(c.err, "%s\n", jsonLine(troubleJSON{t.code, t.text, t.remedy, settlementOf(t.winner)}))
	} else {
		what := t.text
		if t.winner != nil {
			what = withoutWinner(what) + winnerWords(t.winner)
		}
		if t.code != codeUsage && t.code != "ERROR" {
			what += " (" + string(t.code) + ")"
		}
		_, _ = fmt.Fprintf(c.err, "error: %s\n", oneLine(what))
		if t.remedy != "" {
			_, _ = fmt.Fprintf(c.err, "next:  %s\n", strings.ReplaceAll(clean(t.remedy), "\n", " "))
		}
	}
	if interrupted {
		return exitInterrupted
	}
	return t.exit()
}

// remediesHere are next steps in the words of this command, where the registry has those of the requests.
var remediesHere = map[messages.Code]string{
	messages.NotFound:      "`parley sessions` lists the sessions, and `parley questions` the questions that can be answered",
	messages.NotAnswerable: "`parley questions` lists the questions that can be answered",
	messages.CallerNotLive: "name with --root the agent that speaks for the session; if another one does now, stop this one",
}

func remedyHere(code messages.Code) string {
	return cmp.Or(remediesHere[code], messages.Lookup(code).Remedy)
}

// withoutWinner takes from a text what winnerWords says better.
func withoutWinner(text string) string {
	if strings.HasPrefix(text, "the question was settled first: ") {
		return ""
	}
	return text + "; "
}

// winnerWords tells a loser who was first.
func winnerWords(w *messages.Settlement) string {
	by := w.GetBy()
	if by == "" {
		by = "somebody else"
	}
	switch w.GetOutcome() {
	case "answered":
		by += " answered first"
	case "skipped":
		by += " skipped it first, which is no answer and no permission"
	case "queued":
		by += " answered first; that reply waits for the agent"
	case "withdrawn":
		by += " withdrew it"
	default:
		by += " was first: " + w.GetOutcome()
	}
	if w.GetDoor() != "" {
		by += ", through " + w.GetDoor()
	}
	if w.GetReason() != "" {
		by += ": " + w.GetReason()
	}
	return by
}
