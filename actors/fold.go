package actors

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// fold is the part of a session's state that decides what an append means: a
// value, so that a batch can be folded ahead of its append and thrown away.
type fold struct {
	next      int64 // the sequence number of the next event
	inherited int64 // events below are its parent's: history, and nothing else (L-083)
	questions sessionlog.Questions
	lists     sessionlog.Lists
	progress  sessionlog.Progress
	calls     []call // copy on write
	header    bool   // a request/header was recorded
	err       error  // the first event that does not follow from the ones before it
}

// call is what the session knows of a question call beyond the projection:
// where its text is, and its foreground wait while that is open.
type call struct {
	id        string
	seq       int64
	wait      *wait
	active    bool   // the projection has it; kept here, because asking it reads all questions
	continued bool   // likewise
	withdrawn bool   // continued, and taken back by its agent
	nested    bool   // a program asks it: its records are a sub-call's
	asks      uint64 // what it asks, as a fingerprint
}

// wait is the recorded half of an open foreground wait (parley/wait).
type wait struct {
	attempt    string
	deadline   int64 // wall milliseconds; 0: never
	turn, step int64
	synthetic  bool
	legacy     bool
	ids        []string // the questions' ids, of a legacy call and a sub-call only: the projection does not track it
	questions  []byte   // likewise, if its result is to be acknowledged
	receipt    *asked   // of a call whose result is to be acknowledged
}

// asked is what the client of such a call said of it.
type asked struct{ correlation string }

func newFold(version int, inherited int64) fold {
	return fold{inherited: inherited, questions: sessionlog.NewQuestions(inherited), progress: sessionlog.NewProgress(version)}
}

// with folds one event.
func (f fold) with(ev sessionlog.Event) fold {
	f.next = ev.Seq + 1
	f.progress = f.progress.Fold(ev)
	if ev.Seq < f.inherited {
		return f
	}
	var changed bool
	f.questions, changed = f.questions.Fold(ev)
	switch ev.Type {
	case sessionlog.TypeRequestHeader:
		f.header = true
	case sessionlog.TypeInboxSpliced:
		lists, err := f.lists.Fold(ev)
		f.note(err)
		f.lists = lists
	case sessionlog.TypeToolCall:
		if c, err := sessionlog.DecodeCall(ev); err == nil && c.Name == sessionlog.ToolName {
			asks, questions, ids := fingerprint(c.Arguments)
			made := call{id: c.CallID, seq: ev.Seq, asks: asks}
			if !f.questions.Timed() { // the projection does not track it: its ids are kept until parley/wait needs them
				made.wait = &wait{ids: ids, questions: questions, deadline: -1}
			}
			f.put(made)
			f.look(c.CallID)
			return f
		}
	case sessionlog.TypeWait:
		f.openWait(ev)
		return f
	case sessionlog.TypeToolResult:
		if r, err := sessionlog.DecodeResult(ev); err == nil {
			f.change(r.CallID, func(c *call) {
				if !c.nested {
					c.wait = nil
				}
			})
			if changed {
				f.look(r.CallID)
			}
		}
	case sessionlog.TypeUserMessage:
		if m, err := sessionlog.ParseMessage(ev.Data); changed && err == nil {
			f.look(m.ReplyTo)
		}
	case sessionlog.TypeDispatchStart:
		f.startSubCall(ev)
	case sessionlog.TypeDispatch:
		f.endSubCall(ev, changed)
	case sessionlog.TypeSettled:
		r, err := sessionlog.DecodeSettled(ev)
		f.note(err)
		if r.Outcome == OutcomeWithdrawn {
			f.change(r.CallID, func(c *call) { c.withdrawn = c.wait == nil })
		}
	}
	f.prune(ev.Type)
	return f
}

// fingerprint tells the questions of one call from those of another, whatever
// else its arguments say. It is kept in memory only.
func fingerprint(arguments string) (asks uint64, questions []byte, ids []string) {
	text := []byte(arguments)
	questions, ids, ok := sessionlog.ParseArguments(arguments)
	if ok {
		text = questions
	}
	return hash(text), questions, ids
}

// hash is 64 bits of FNV-1a.
func hash(text []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// recorded reports whether the wait stands in the log; before its parley/wait
// there is only the tool/call of it.
func (w *wait) recorded() bool { return w != nil && w.deadline >= 0 }

func (f *fold) openWait(ev sessionlog.Event) {
	r, err := sessionlog.DecodeWait(ev)
	f.note(err)
	f.change(r.CallID, func(c *call) {
		w := wait{attempt: r.Attempt, synthetic: r.Synthetic, legacy: r.Legacy, turn: f.progress.Turn(), step: f.progress.Step()}
		if r.DeadlineMS != nil {
			w.deadline = *r.DeadlineMS
		}
		if r.Receipt {
			w.receipt = &asked{r.Correlation}
		}
		if c.wait != nil && (r.Legacy || c.nested) {
			w.ids = c.wait.ids
			if r.Receipt {
				w.questions = c.wait.questions
			}
		}
		c.wait = &w
	})
}

func (f *fold) note(err error) {
	if f.err == nil && err != nil {
		f.err = err
	}
}

func (f *fold) put(c call) {
	rest := slices.DeleteFunc(slices.Clone(f.calls), func(o call) bool { return o.id == c.id })
	f.calls = append(rest, c)
}

func (f *fold) change(id string, edit func(*call)) {
	if i := f.index(id); i >= 0 {
		f.calls = slices.Clone(f.calls)
		edit(&f.calls[i])
	}
}

// look takes over what the projection says of a call.
func (f *fold) look(id string) {
	a, active := f.questions.Call(id)
	f.change(id, func(c *call) { c.active, c.continued = active, a.Continued })
}

func (f *fold) index(id string) int {
	return slices.IndexFunc(f.calls, func(c call) bool { return c.id == id })
}

// seqOf is where a call's text is; 0: there is none that could be answered.
func (f *fold) seqOf(id string) int64 {
	if i := f.index(id); i >= 0 {
		return f.calls[i].seq
	}
	return 0
}

// prune forgets calls that are over. Only events that can end one are looked at.
func (f *fold) prune(typ string) {
	switch typ {
	case sessionlog.TypeToolResult, sessionlog.TypeDispatch, sessionlog.TypeUserMessage, sessionlog.TypeStepEnd, sessionlog.TypeTurnEnd:
	default:
		return
	}
	over := func(c call) bool { return !c.wait.recorded() && !c.active }
	if slices.ContainsFunc(f.calls, over) {
		f.calls = slices.DeleteFunc(slices.Clone(f.calls), over)
	}
}

// openWaitOf returns the open foreground wait of a call.
func (f *fold) openWaitOf(id string) (call, bool) {
	i := f.index(id)
	if i < 0 || !f.calls[i].wait.recorded() {
		return call{}, false
	}
	return f.calls[i], true
}

// continued returns the projection's entry of a call that takes a late answer.
func (f *fold) continued(id string) (sessionlog.ActiveCall, bool) {
	a, ok := f.questions.Call(id)
	if !ok || !a.Continued {
		return a, false
	}
	i := f.index(id)
	return a, i < 0 || !f.calls[i].withdrawn
}

// openCalls returns the calls with an open wait, in order.
func (f *fold) openCalls() []call {
	var open []call
	for _, c := range f.calls {
		if c.wait.recorded() {
			open = append(open, c)
		}
	}
	return open
}

// synthetic reports whether the open turn is one of ours, kept open for calls
// whose agent has no turns of its own.
func (f *fold) synthetic() bool {
	return slices.ContainsFunc(f.calls, func(c call) bool { return c.wait.recorded() && c.wait.synthetic })
}

// rows is the journal's index of this session: a function of the fold alone.
func (f *fold) rows() []sessionlog.Row {
	var rows []sessionlog.Row
	for _, c := range f.calls {
		if c.wait.recorded() {
			rows = append(rows, sessionlog.Row{CallID: c.id, State: sessionlog.RowOpen, Due: c.wait.deadline, Seq: c.seq})
			continue
		}
		if !c.continued || c.withdrawn {
			continue
		}
		state := sessionlog.RowContinued
		if _, queued := f.lists.ReplyFor(c.id); queued {
			state = sessionlog.RowReplied
		}
		rows = append(rows, sessionlog.Row{CallID: c.id, State: state, Seq: c.seq})
	}
	return rows
}

// rowChanges is what a batch changes in the index.
func rowChanges(before, after []sessionlog.Row) []sessionlog.RowChange {
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	var out []sessionlog.RowChange
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a sessionlog.Row) bool { return a.CallID == b.CallID }) {
			out = append(out, sessionlog.RowChange{Row: sessionlog.Row{CallID: b.CallID, State: b.State, Seq: b.Seq}, Remove: true})
		}
	}
	for _, a := range after {
		if !slices.Contains(before, a) {
			out = append(out, sessionlog.RowChange{Row: a})
		}
	}
	return out
}

// Outcomes as parley/settled records them and settlements tell them.
const (
	OutcomeWithdrawn      = "withdrawn"       // the agent took the question back
	OutcomeReplyWithdrawn = "reply_withdrawn" // a queued reply was taken back; the question is open again
	outcomeAnswered       = "answered"
	outcomeSkipped        = "skipped" // every question of the batch was skipped: no answer, and no permission
	outcomePending        = "pending"
	outcomeQueued         = "queued"
	outcomeSteered        = "steered"
	outcomeAborted        = "aborted"
	outcomeCancelled      = "cancelled"
	outcomeNoProvider     = "no_provider"
	outcomeFailed         = "failed"
	outcomeRootChanged    = "root_changed"
)

func settlement(r sessionlog.SettledRecord) *messages.Settlement {
	return &messages.Settlement{Outcome: r.Outcome, By: r.By, Door: r.Door, SubmissionId: r.SubmissionID,
		MessageId: r.MessageID, Reason: r.Reason}
}

// batch collects the events of one append and folds them ahead.
type batch struct {
	s      *Session
	now    Now
	events []sessionlog.Event
	folds  []fold // after each event
	f      fold   // after the last
	before []sessionlog.Row
}

func (s *Session) batch(now Now) *batch {
	return &batch{s: s, now: now, f: s.fold, before: s.fold.rows()}
}

func (b *batch) add(events ...sessionlog.Event) {
	if b.events == nil {
		n := max(4, len(events))
		b.events, b.folds = make([]sessionlog.Event, 0, n), make([]fold, 0, n)
	}
	for _, ev := range events {
		if ev.Time == 0 {
			ev = ev.At(b.f.next, b.now.Wall)
		}
		b.f = b.f.with(ev)
		b.events, b.folds = append(b.events, ev), append(b.folds, b.f)
	}
	if b.f.err != nil {
		panic("actors: an event of ours does not follow from the log: " + b.f.err.Error())
	}
}

// effects turns the batch into one append with its index changes. What was
// folded ahead is kept for Apply, which sees the same events once they are durable.
func (b *batch) effects() Effects {
	if len(b.events) > 0 {
		b.s.ahead = &ahead{b.events, b.folds}
	}
	return Effects{Append: b.events, Index: rowChanges(b.before, b.f.rows())}
}

// ahead is what an append under way will come to, event by event. It saves
// folding everything twice and decides nothing: an event that is not the very
// one foreseen is folded like any other.
type ahead struct {
	events []sessionlog.Event
	folds  []fold
}

// takeAhead returns the fold after ev, if ev is the next event foreseen.
func (s *Session) takeAhead(ev sessionlog.Event) (fold, bool) {
	a := s.ahead
	if a == nil {
		return fold{}, false
	}
	want, f := a.events[0], a.folds[0]
	if want.Seq != ev.Seq || want.Type != ev.Type || len(want.Data) != len(ev.Data) || &want.Data[0] != &ev.Data[0] {
		s.ahead = nil
		return fold{}, false
	}
	if a.events, a.folds = a.events[1:], a.folds[1:]; len(a.events) == 0 {
		s.ahead = nil
	}
	return f, true
}
