package simulation

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// stepInvariants are about what a repeat or a stray copy must not do: ask in a step
// that is over, ask something else under an old name, end what has been ended.
var stepInvariants = []Invariant{
	{"asked in its step", "a call is recorded in the turn and the step that its agent names, or refused", []string{"Q-043", "P1"}, askedInItsStep},
	{"told of what it asked", "who asks is told of a call that asks the very same, for as long, and in the same mode", []string{"P1", "Q-063"}, toldOfWhatItAsked},
	{"an asker is told what is left", "who waits is told how long the call still waits", []string{"P7"}, anAskerIsToldWhatIsLeft},
	{"taken back is taken back", "who takes a question back that was taken back is told that it was", []string{"P1"}, takenBackIsTakenBack},
	{"a child takes nothing over", "who attaches is recorded with its owner, and no child takes a session from its own root", []string{"Q-044"}, aChildTakesNothingOver},
	{"a skip is no answer", "a batch that decides nothing is recorded as skipped, and no other is", []string{"P3"}, aSkipIsNoAnswer},
}

func askedInItsStep(e *Evidence) {
	asks := e.asks()
	for a, l := range e.lives {
		at := a.standing(l.at)
		wrong := func(cmd *messages.AskRequest) bool {
			if cmd.GetTurn() == 0 && l.rec.Synthetic {
				return false // it has got a turn of its own
			}
			return cmd.GetTurn() != 0 && cmd.GetTurn() != at.turn || cmd.GetStep() != 0 && cmd.GetStep() != at.step
		}
		said := asks[a.name+" "+l.attempt+" "+l.call]
		if len(said) > 0 && !slices.ContainsFunc(said, func(cmd *messages.AskRequest) bool { return !wrong(cmd) }) {
			e.at(a, l.at).fail("call %s was asked for step %d of turn %d, and is recorded at event %d in step %d of turn %d. %s", l.call, said[0].GetStep(), said[0].GetTurn(), l.at, at.step, at.turn, a.story(l.call))
		}
	}
}

// toldOfWhatItAsked looks at those who say nothing of the call but its name: one
// that joined another is compared where it hears so.
func toldOfWhatItAsked(e *Evidence) {
	for s, cmd := range said[*messages.AskRequest](e) {
		heard := s.Waiting
		if s.Answer != nil {
			heard = append(slices.Clip(heard), *s.Answer)
		}
		questions, _, ok := sessionlog.ParseArguments(cmd.GetArguments())
		for _, h := range heard {
			m, is := h.Msg.(*messages.AskResponse)
			if !ok || !is || m.GetContinued() != nil {
				continue
			}
			l := e.attached(cmd, &h)
			if l == nil {
				continue
			}
			if l.asks != string(questions) {
				e.heard(s).fail("%s asked %s and was told %s of a call that asks %s. %s", s.Party, questions, brief(m), l.asks, e.account(cmd.GetSession()).story(l.call))
			}
			if legacy := cmd.GetMode() == messages.Mode_MODE_LEGACY; m.GetJoined() != "" && l.rec.Legacy != legacy {
				e.heard(s).fail("%s asked %s, legacy %v, and was joined to %s, legacy %v. %s", s.Party, cmd.GetAttempt(), legacy, l.attempt, l.rec.Legacy, e.account(cmd.GetSession()).story(l.call))
			}
		}
	}
}

func anAskerIsToldWhatIsLeft(e *Evidence) {
	if !e.calm(0, e.Now, anyJump) {
		return // what is left is read from that clock
	}
	for s := range said[*messages.AskRequest](e) {
		for _, h := range s.Waiting {
			w := h.Msg.(*messages.AskResponse).GetWaiting()
			until := w.GetDeadlineMs() - wallStart
			if left := w.GetRemainingMs(); w.GetDeadlineMs() != 0 && (left < max(0, until-h.At) || left > max(0, until-s.At)) {
				e.heard(s).fail("%s asked %s at %d and was told at %d that it waits for %d ms, until %d", s.Party, brief(s.Cmd), s.At, h.At, left, until)
			}
		}
	}
}

func takenBackIsTakenBack(e *Evidence) {
	for s, no := range e.refusals {
		if cmd, ok := s.Cmd.(*messages.WithdrawQuestionRequest); ok && no.GetWinner().GetOutcome() == "withdrawn" {
			e.heard(s).fail("%s took %s back and was refused with %s, because %s had taken it back. %s", s.Party, cmd.GetCallId(), no.GetCode(), no.GetWinner().GetBy(), e.account(cmd.GetSession()).story(cmd.GetCallId()))
		}
	}
}

func aSkipIsNoAnswer(e *Evidence) {
	for a, l := range e.lives {
		r, has := l.result()
		batch, ok := sessionlog.ReadBatch(r.Text)
		if !has || !ok || r.IsError || r.pending {
			continue
		}
		decides := slices.ContainsFunc(sessionlog.AnswerItems(batch), func(i sessionlog.AnswerItem) bool { return len(i.Selected) > 0 || i.Custom != nil })
		for _, s := range l.settled {
			if a.commit[s.seq] == a.commit[r.seq] && (s.Outcome == "skipped") == decides {
				e.at(a, s.seq).fail("call %s is recorded as %s at event %d, with %.100q. %s", l.call, s.Outcome, s.seq, r.Text, a.story(l.call))
			}
		}
	}
}

func aChildTakesNothingOver(e *Evidence) {
	for _, a := range e.accounts {
		for i, r := range a.roots {
			if i > 0 && r.owner != "" && a.roots[i-1].owner == "" && a.roots[i-1].root == r.root {
				e.at(a, r.seq).fail("session %s belonged to root agent %s, and is its child's, of %s, since event %d", a.name, r.root, r.owner, r.seq)
			}
		}
	}
	for t := range told[*messages.AttachRequest, *messages.AttachResponse](e) {
		a := e.account(t.cmd.GetSession())
		if !slices.ContainsFunc(a.roots, func(r rootAt) bool { return r.root == t.cmd.GetRoot() && r.owner == t.cmd.GetOwner() }) {
			e.heard(t.by).fail("%s attached to session %s as %s, owned by %q, and the log has only %+v", t.by.Party, a.name, t.cmd.GetRoot(), t.cmd.GetOwner(), a.roots)
		}
	}
}
