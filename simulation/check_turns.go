package simulation

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// standing is where a session's turns stand.
type standing struct {
	turn, step     int64
	open, stepOpen bool
	ours           bool // Parley has begun the turn, for calls whose agent has none
}

// standing reads it from the log as it ended before seq.
func (a *account) standing(seq int64) (st standing) {
	for _, ev := range a.log.Events[:seq] {
		switch ev.Type {
		case sessionlog.TypeTurnStart:
			turn, _ := wholeNumber(string(ev.Data), "turn")
			st = standing{turn: turn, open: true}
		case sessionlog.TypeTurnEnd:
			st.open, st.stepOpen, st.ours = false, false, false
		case sessionlog.TypeStepStart:
			st.step, _ = wholeNumber(string(ev.Data), "step")
			st.stepOpen, st.ours = true, st.ours || a.turnBeginsWith(ev.Seq)
		case sessionlog.TypeStepEnd:
			st.stepOpen = false
		}
	}
	return st
}

// isTurn: this turn is open; 0: any.
func (st standing) isTurn(turn int64) bool { return st.open && (turn == 0 || turn == st.turn) }

// takes: a command comes neither too late nor too early for its turn or step. One
// that has done what it says already is a repeat, and is taken again.
func (st standing) takes(cmd messages.Command) bool {
	switch c := cmd.(type) {
	case *messages.BeginTurnRequest:
		again := st.open && c.GetTurn() == st.turn && !st.ours
		return again || !st.open && (c.GetTurn() == 0 || c.GetTurn() == st.turn+1)
	case *messages.BeginStepRequest:
		again := st.stepOpen && c.GetStep() == st.step
		next := !st.stepOpen && (c.GetStep() == 0 || c.GetStep() == st.step+1)
		return st.isTurn(c.GetTurn()) && !st.ours && (again || next)
	case *messages.EndStepRequest:
		again := !st.stepOpen && c.GetStep() != 0 && c.GetTurn() == st.turn && c.GetStep() == st.step
		return again || st.isTurn(c.GetTurn()) && st.stepOpen && (c.GetStep() == 0 || c.GetStep() == st.step)
	case *messages.EndTurnRequest:
		again := !st.open && c.GetTurn() != 0 && c.GetTurn() == st.turn
		return again || st.isTurn(c.GetTurn())
	case *messages.ClaimMessagesRequest:
		return st.open && c.GetTurn() == st.turn
	case *messages.AskRequest:
		own := c.GetTurn() == 0 && (!st.open || st.ours)
		return own || st.isTurn(c.GetTurn()) && !st.ours && st.stepOpen && (c.GetStep() == 0 || c.GetStep() == st.step)
	case *messages.AdmitMessagesRequest:
		own := c.GetTurn() == 0 && !st.open
		return own || st.isTurn(c.GetTurn()) && st.stepOpen
	}
	return false
}

// closed: its turn or step was closed to a command at some time between saying
// and hearing.
func (e *Evidence) closed(s *Said) bool {
	a := e.account(s.Cmd.GetSession())
	return slices.ContainsFunc(a.ends(s.Step, s.Answer.Sent), func(seq int64) bool { return !a.standing(seq).takes(s.Cmd) })
}

// gone: a message that was to be admitted had left its list, and had not been
// admitted in the latest turn, which a repeat is told again.
func (e *Evidence) gone(s *Said, cmd *messages.AdmitMessagesRequest) bool {
	a := e.account(cmd.GetSession())
	return slices.ContainsFunc(a.ends(s.Step, s.Answer.Sent), func(seq int64) bool {
		here := func(id string) bool { q := a.byID[id]; return q != nil && q.waitsAt(seq) }
		again := func(id string) bool { q := a.byID[id]; return q != nil && a.admittedLately(q, seq) }
		all := func(holds func(string) bool) bool {
			return !slices.ContainsFunc(cmd.GetMessageIds(), func(id string) bool { return !holds(id) })
		}
		return !all(here) && !all(again)
	})
}

// admittedLately: in the latest turn that the log had when it ended before seq.
func (a *account) admittedLately(q *queued, seq int64) bool {
	began := int64(-1)
	for _, t := range a.lengths {
		if t.start < seq {
			began = t.start
		}
	}
	return slices.ContainsFunc(q.admitted, func(at int64) bool { return at > began && at < seq })
}

// nobodyTook: a message that was to be taken back was in no list, and had not been
// taken back, which a repeat is told again.
func (e *Evidence) nobodyTook(s *Said, cmd *messages.WithdrawMessageRequest) bool {
	a := e.account(cmd.GetSession())
	return slices.ContainsFunc(a.ends(s.Step, s.Answer.Sent), func(seq int64) bool {
		q := a.byID[cmd.GetMessageId()]
		return q == nil || !q.waitsAt(seq) && !slices.ContainsFunc(q.withdrawn, func(at int64) bool { return at < seq })
	})
}
