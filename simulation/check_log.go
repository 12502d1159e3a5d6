package simulation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// logInvariants are those that the journal alone must keep.
var logInvariants = []Invariant{
	{"contiguous log", "a log has no gap, and every event can be read and follows from those before it", []string{"L-010", "L-011", "L-024", "P5"}, contiguous},
	{"one writer", "epochs rise, and each batch is of the highest epoch taken, by the host that took it", []string{"P6"}, oneWriter},
	{"one result", "a call has one result for each time it was asked", []string{"P1", "Q-046", "Q-088"}, oneResult},
	{"one reservation", "a question has at most one queued reply", []string{"Q-101", "Q-102"}, oneReservation},
	{"one fate", "a message is queued once, and then waits, was admitted once, or was taken back once", []string{"P2", "P4", "Q-104", "Q-109"}, oneFate},
	{"settled stays settled", "what has been settled takes no answer and changes no more", []string{"Q-146", "Q-157", "P1"}, settledStays},
	{"pending is no answer", "a pending result carries no answer, an answer never looks pending, and only a submission makes an answer", []string{"P3", "Q-031"}, pendingIsNoAnswer},
	{"legacy has no late path", "a legacy call is never pending, never continued, and gets no reply", []string{"Q-020", "Q-131", "Q-135"}, legacyHasNoLatePath},
	{"children do not ask", "no call is recorded while an owned child speaks for the session", []string{"Q-044"}, childrenDoNotAsk},
	{"index is the fold", "after each commit the index has the rows that the log so far says, with their deadlines", []string{"Q-101", "Q-102", "P5"}, indexIsTheFold},
	{"fold after crash", "a session folded from its log stands where the index, the views and the log's own words say", []string{"P5", "Q-130", "Q-160"}, foldAfterCrash},
	{"lists once", "lists are numbered without a gap, show nothing acknowledged, and nothing that was not said", []string{"P2", "P4", "F6"}, listsOnce},
}

func contiguous(e *Evidence) {
	for _, a := range e.accounts {
		next := int64(0)
		for i, c := range a.log.Commits {
			if c.Kind == disk.KindAppend && !c.Delete && c.Seq != next {
				e.commit(a, i).fail("session %s: commit %d adds event %d, and the log is at %d", a.name, i, c.Seq, next)
			}
			next += c.Count
		}
		if next != int64(len(a.log.Events)) {
			e.fail("session %s: commits added %d events, the log has %d", a.name, next, len(a.log.Events))
		}
		if err := sessionlog.ValidateEvents(sessionlog.V3, a.log.Events); a.log.Header != nil && err != nil {
			e.fail("session %s: %v", a.name, err)
		}
		for _, m := range a.misfits {
			e.at(a, m.seq).fail("session %s: %s", a.name, m.text)
		}
	}
}

func oneWriter(e *Evidence) {
	for _, a := range e.accounts {
		epoch, owner, at := int64(0), "", journal.Position(0)
		for i, c := range a.log.Commits {
			switch {
			case c.Kind == disk.KindOpen && c.Epoch <= epoch:
				e.commit(a, i).fail("session %s: commit %d takes epoch %d after %d", a.name, i, c.Epoch, epoch)
			case c.Kind == disk.KindAppend && epoch != 0 && c.Epoch != epoch:
				e.commit(a, i).fail("session %s: %s wrote events %d+%d under epoch %d; %s had taken %d", a.name, c.Host, c.Seq, c.Count, c.Epoch, owner, epoch)
			case c.Kind == disk.KindAppend && epoch != 0 && c.Host != owner:
				e.commit(a, i).fail("session %s: %s wrote events %d+%d under epoch %d, which is of %s", a.name, c.Host, c.Seq, c.Count, c.Epoch, owner)
			}
			if c.Kind == disk.KindAppend && c.At <= at {
				e.commit(a, i).fail("session %s: commit %d is at position %d, the one before it at %d", a.name, i, c.At, at)
			}
			if c.Kind == disk.KindAppend {
				at = c.At
			}
			epoch, owner = max(epoch, c.Epoch), c.Host
		}
		if a.log.Epoch != epoch {
			e.fail("session %s: it is at epoch %d, %d was taken last", a.name, a.log.Epoch, epoch)
		}
	}
}

func (e *Evidence) lives(yield func(*account, *life) bool) {
	for _, a := range e.accounts {
		for _, l := range a.lives {
			if !yield(a, l) {
				return
			}
		}
	}
}

func oneResult(e *Evidence) {
	for a, l := range e.lives {
		if len(l.results) > 1 {
			e.at(a, l.results[1].seq).fail("call %s, attempt %s, has %d results, at events %d and %d. %s", l.call, l.attempt, len(l.results), l.results[0].seq, l.results[1].seq, a.story(l.call))
		}
		if l.wait < 0 {
			e.at(a, l.at).fail("call %s at event %d has no parley/wait in its append", l.call, l.at)
		}
		for _, m := range a.lives {
			if m != l && m.attempt == l.attempt && m.call == l.call && m.at > l.at {
				e.at(a, m.at).fail("attempt %s of call %s was recorded twice, at events %d and %d", l.attempt, l.call, l.at, m.at)
			}
		}
	}
}

func oneReservation(e *Evidence) {
	for _, a := range e.accounts {
		for _, t := range a.twice {
			e.at(a, t.seq).fail("session %s: %s", a.name, t.text)
		}
	}
}

func oneFate(e *Evidence) {
	for _, a := range e.accounts {
		for _, m := range a.messages {
			waits := 0
			if m.waits {
				waits = 1
			}
			if len(m.in) != 1 || waits+len(m.admitted)+len(m.withdrawn) != 1 {
				e.at(a, m.lastSeq()).fail("message %s of session %s: queued at events %v, admitted at %v, taken back at %v, waits: %v", m.ID, a.name, m.in, m.admitted, m.withdrawn, m.waits)
			} else if len(m.admitted) == 1 && a.commit[m.admitted[0]] != a.commit[m.left] {
				e.at(a, m.admitted[0]).fail("message %s of session %s left its list at event %d, and became history in another append, at %d", m.ID, a.name, m.left, m.admitted[0])
			}
		}
	}
}

func settledStays(e *Evidence) {
	for a, l := range e.lives {
		for i, s := range l.states {
			if s.is == over && i != len(l.states)-1 {
				e.at(a, l.states[i+1].seq).fail("call %s was over at event %d and is %s at %d. %s", l.call, s.seq, l.states[i+1].is, l.states[i+1].seq, a.story(l.call))
			}
		}
		end := l.states[len(l.states)-1]
		for _, s := range l.settled {
			if end.is == over && a.commit[s.seq] > a.commit[end.seq] {
				e.at(a, s.seq).fail("call %s was over at event %d (%s) and is settled as %s at %d. %s", l.call, end.seq, end.why, s.Outcome, s.seq, a.story(l.call))
			}
		}
		for _, m := range a.messages {
			if m.ReplyTo == l.call && end.is == over && len(m.in) > 0 && a.latest[l.call] == l && a.commit[m.in[0]] > a.commit[end.seq] {
				e.at(a, m.in[0]).fail("call %s was over at event %d (%s), and reply %s was queued for it at %d. %s", l.call, end.seq, end.why, m.ID, m.in[0], a.story(l.call))
			}
		}
	}
	for _, a := range e.accounts {
		for _, ev := range a.log.Events {
			if op := string(ev.SurfaceOp); op != "" && op != `"append"` {
				e.at(a, ev.Seq).fail("session %s: event %d (%s) changes the surface: %s", a.name, ev.Seq, ev.Type, op)
			}
		}
	}
}

func pendingIsNoAnswer(e *Evidence) {
	for a, l := range e.lives {
		for _, r := range l.results {
			_, answers := sessionlog.ReadBatch(r.Text)
			if answers && (r.pending || r.IsError) {
				e.at(a, r.seq).fail("the result of call %s at event %d is both: %.200q", l.call, r.seq, r.Text)
			}
			if r.batch && !slices.ContainsFunc(l.settled, func(s settledAt) bool {
				return s.SubmissionID != "" && a.commit[s.seq] == a.commit[r.seq]
			}) {
				e.at(a, r.seq).fail("call %s has an answer at event %d which nobody submitted. %s", l.call, r.seq, a.story(l.call))
			}
		}
		for _, s := range l.settled {
			silent := s.Outcome == "answered" || s.Outcome == "skipped" || s.Outcome == "queued"
			if silent && s.SubmissionID == "" {
				e.at(a, s.seq).fail("call %s is said to be %s at event %d, with no submission", l.call, s.Outcome, s.seq)
			}
		}
	}
	for _, a := range e.accounts {
		for _, m := range a.messages {
			if _, ok := sessionlog.ReadBatch(m.Text()); m.ReplyTo != "" && (!ok || sessionlog.IsPending(m.Text())) {
				e.at(a, m.lastSeq()).fail("reply %s to call %s is no batch of answers: %.200q", m.ID, m.ReplyTo, m.Text())
			}
		}
	}
}

func legacyHasNoLatePath(e *Evidence) {
	for a, l := range e.lives {
		if !l.rec.Legacy {
			continue
		}
		for _, r := range l.results {
			if r.pending {
				e.at(a, r.seq).fail("legacy call %s is pending at event %d. %s", l.call, r.seq, a.story(l.call))
			}
		}
		for _, s := range l.settled {
			if s.Outcome == "queued" || s.Outcome == "pending" {
				e.at(a, s.seq).fail("legacy call %s is settled as %s at event %d", l.call, s.Outcome, s.seq)
			}
		}
	}
	for _, a := range e.accounts {
		for _, m := range a.messages {
			if len(m.in) == 0 || m.ReplyTo == "" {
				continue
			}
			if l, _ := a.at(m.ReplyTo, m.in[0]); l != nil && l.rec.Legacy {
				e.at(a, m.in[0]).fail("legacy call %s got reply %s at event %d", l.call, m.ID, m.in[0])
			}
		}
	}
}

func childrenDoNotAsk(e *Evidence) {
	for a, l := range e.lives {
		if r := a.rootBefore(l.at); r.owner != "" {
			e.at(a, l.at).fail("call %s is recorded at event %d, while %s, owned by %s, speaks for session %s", l.call, l.at, r.root, r.owner, a.name)
		}
	}
	for _, p := range e.Plan.Parties {
		if p.Owner == "" {
			continue
		}
		for t := range told[*messages.AskRequest, *messages.AskResponse](e) {
			s, m := t.by, t.msg
			if s.Party == p.Name {
				e.heard(s).fail("%s is owned by %s, asked, and was told %s", p.Name, p.Owner, brief(m))
			}
		}
	}
}

// rowsAt are the rows that a log says it has, before seq.
func (a *account) rowsAt(seq int64) []sessionlog.Row {
	var rows []sessionlog.Row
	for _, l := range a.lives {
		if l.at >= seq {
			continue
		}
		row := sessionlog.Row{CallID: l.call, State: sessionlog.RowState(l.stateBefore(seq)), Seq: l.at}
		switch row.State {
		case sessionlog.RowOpen:
			if l.rec.DeadlineMS != nil {
				row.Due = *l.rec.DeadlineMS
			}
		case sessionlog.RowContinued, sessionlog.RowReplied:
		default:
			continue
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, byCall)
	return rows
}

func byCall(a, b sessionlog.Row) int { return cmp.Compare(a.CallID, b.CallID) }

func indexIsTheFold(e *Evidence) {
	for _, a := range e.accounts {
		rows := map[string]sessionlog.Row{}
		changes := slices.DeleteFunc(slices.Clone(e.Changes), func(c journal.Change) bool { return c.Session != a.name })
		for _, c := range a.log.Commits {
			if c.Kind != disk.KindAppend || c.Delete {
				continue
			}
			for len(changes) > 0 && changes[0].At <= c.At {
				if changes[0].Remove {
					delete(rows, changes[0].Row.CallID)
				} else {
					rows[changes[0].Row.CallID] = changes[0].Row
				}
				changes = changes[1:]
			}
			if !e.sameRows(a, c.Seq+c.Count, rows) {
				return // one difference makes others
			}
		}
		last := map[string]sessionlog.Row{}
		for _, r := range e.Rows {
			if r.Session == a.name {
				last[r.Row.CallID] = r.Row
			}
		}
		e.sameRows(a, int64(len(a.log.Events)), last)
	}
}

func (e *Evidence) sameRows(a *account, seq int64, rows map[string]sessionlog.Row) bool {
	want := a.rowsAt(seq)
	same := len(want) == len(rows)
	for _, r := range want {
		same = same && rows[r.CallID] == r
	}
	if !same {
		var got []sessionlog.Row
		for _, r := range rows {
			got = append(got, r)
		}
		slices.SortFunc(got, byCall)
		e.at(a, seq-1).fail("session %s before event %d: the index has %v, the log says %v", a.name, seq, got, want)
	}
	return same
}

func foldAfterCrash(e *Evidence) {
	for _, a := range e.accounts {
		if a.log.Header == nil {
			continue
		}
		s, err := actors.NewSession(&actors.Rules{NewID: func(kind string) string { return kind }}, a.name, a.log.Header, a.log.Events)
		if err != nil {
			e.fail("session %s does not fold: %v", a.name, err)
			continue
		}
		seq := int64(len(a.log.Events))
		got, want := s.Rows(), a.rowsAt(seq)
		slices.SortFunc(got, byCall)
		if !slices.Equal(got, want) {
			e.fail("session %s folds to %v, its log says %v", a.name, got, want)
		}
		ids := func(list []sessionlog.Message) string {
			return quote(sortedIDs(list, func(m sessionlog.Message) string { return m.ID }))
		}
		if folded, mine := ids(slices.Concat(s.Lists().NextStep, s.Lists().NextTurn)), quote(sortedIDs(slices.Concat(a.lists[0], a.lists[1]), func(q *queued) string { return q.ID })); folded != mine {
			e.fail("session %s folds to the queued messages %s, its log says %s", a.name, folded, mine)
		}
		e.shown(a)
	}
}

// shown compares what people are shown with the log.
func (e *Evidence) shown(a *account) {
	for _, row := range e.Shown {
		if row.GetSession() != a.name {
			continue
		}
		i := slices.IndexFunc(a.lives, func(l *life) bool { return l.at == row.GetCallSeq() })
		if i < 0 {
			e.fail("the views show call %s at event %d, which session %s does not have", row.GetCallId(), row.GetCallSeq(), a.name)
			continue
		}
		l := a.lives[i]
		is := string(l.state())
		if is == string(over) {
			is = "settled"
		}
		if l == a.latest[l.call] && row.GetState() != is {
			e.at(a, l.lastSeq()).fail("the views show call %s as %s. %s", l.call, row.GetState(), a.story(l.call))
		}
	}
}

func listsOnce(e *Evidence) {
	for _, a := range e.accounts {
		lists, gone, last := map[int64][]string{}, map[string]int64{}, int64(0)
		for _, h := range a.handed {
			for _, id := range lists[h.Acknowledged] {
				gone[id] = h.seq
			}
			for _, l := range a.lives {
				if r, ok := l.result(); h.CallID != "" && l.call == h.CallID && ok && r.seq < h.seq {
					gone[resultName(l, r)] = h.seq
				}
			}
			if h.List == 0 {
				continue
			}
			if h.List != last+1 {
				e.at(a, h.seq).fail("session %s: list %d at event %d follows list %d", a.name, h.List, h.seq, last)
			}
			last = h.List
			lists[h.List] = h.Shown
			for i, id := range h.Shown {
				if at, acknowledged := gone[id]; acknowledged {
					e.at(a, h.seq).fail("session %s: list %d at event %d shows %s, which was acknowledged at event %d", a.name, h.List, h.seq, id, at)
				}
				if slices.Contains(h.Shown[:i], id) || !a.hasSaid(id, h) {
					e.at(a, h.seq).fail("session %s: list %d at event %d shows %s, which is there twice, or was neither admitted nor a result", a.name, h.List, h.seq, id)
				}
			}
		}
	}
}

// resultName is the id under which a result is listed.
func resultName(l *life, r resultAt) string {
	return "tool-result-" + l.call + "-" + itoa(r.seq)
}

// hasSaid: a listed message is history, or the answer of a call that wanted a
// receipt, by then.
func (a *account) hasSaid(id string, h handedAt) bool {
	if q := a.byID[id]; q != nil {
		return len(q.admitted) > 0 && a.commit[q.admitted[0]] <= a.commit[h.seq]
	}
	return strings.HasPrefix(id, "tool-result-") && slices.ContainsFunc(a.lives, func(l *life) bool {
		r, ok := l.result()
		return ok && r.batch && l.rec.Receipt && r.seq < h.seq && resultName(l, r) == id
	})
}
