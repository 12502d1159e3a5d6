package simulation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// account is one session's log as an outsider reads it, with none of the
// machines' folds: what was asked, how it ended, what was queued and where it
// went, and when each of it happened.
type account struct {
	name     string
	log      disk.Log
	stamps   []Stamp // of its commits
	commit   []int   // by sequence number: which commit brought the event
	lives    []*life
	latest   map[string]*life // by call
	messages []*queued
	byID     map[string]*queued
	lists    [2][]*queued
	twice    []noted // two replies of one call were queued at once: which, and where
	settled  []settledAt
	roots    []rootAt
	lengths  []turnAt
	handed   []handedAt
	misfits  []noted // events that cannot be read, or do not follow
}

// life is one asking of a question call: a call id can be asked again.
type life struct {
	call, attempt string
	at            int64 // its tool/call, or that its program asked it
	wait          int64 // its parley/wait; -1: none
	rec           sessionlog.WaitRecord
	asks          string // the questions, as the log has them
	ids           []string
	sub           *sessionlog.SubCall // of a program's question
	results       []resultAt
	settled       []settledAt // what the log says of its end
	states        []stateAt
}

// state is where a question stands.
type state string

const (
	unasked   state = "unasked"
	open      state = "open"
	continued state = "continued"
	replied   state = "replied"
	over      state = "over"
)

type stateAt struct {
	seq int64
	is  state
	why string
}

type resultAt struct {
	seq int64
	sessionlog.Result
	pending, batch bool
}

type settledAt struct {
	seq int64
	sessionlog.SettledRecord
}

type rootAt struct {
	seq         int64
	root, owner string
}

type turnAt struct{ turn, start, end int64 } // end -1: open

// noted is something to say of an event.
type noted struct {
	seq  int64
	text string
}

// handedAt is one parley/delivered.
type handedAt struct {
	seq int64
	sessionlog.DeliveredRecord
}

// queued is a message with what became of it.
type queued struct {
	sessionlog.Message
	target    sessionlog.Target // the list that it waits in
	in        []int64           // when it entered it
	out       []int64           // and when it left it again
	admitted  []int64
	withdrawn []int64
	waits     bool
	left      int64 // when it last left it
}

// lastSeq is the event by which it came to where it is; -1: nothing is known of it.
func (m *queued) lastSeq() int64 {
	last := int64(-1)
	for _, seqs := range [][]int64{m.in, m.out, m.admitted, m.withdrawn} {
		if len(seqs) > 0 {
			last = max(last, seqs[len(seqs)-1])
		}
	}
	return last
}

// lastSeq is the event by which it came to where it stands.
func (l *life) lastSeq() int64 { return max(l.at, l.states[len(l.states)-1].seq) }

func (l *life) state() state { return l.states[len(l.states)-1].is }

func (l *life) now(seq int64, is state, why string) {
	if l.state() != is {
		l.states = append(l.states, stateAt{seq, is, why})
	}
}

// stateBefore is where the life stood when the log ended before seq.
func (l *life) stateBefore(seq int64) state {
	is := unasked
	for _, s := range l.states {
		if s.seq < seq {
			is = s.is
		}
	}
	return is
}

// result is the one result of a life, should it have one.
func (l *life) result() (resultAt, bool) {
	if len(l.results) == 0 {
		return resultAt{}, false
	}
	return l.results[0], true
}

func newAccount(log disk.Log, stamps []Stamp) *account {
	a := &account{name: log.Session, log: log, stamps: stamps, latest: map[string]*life{}, byID: map[string]*queued{},
		commit: make([]int, len(log.Events))}
	for i, c := range log.Commits {
		for seq := c.Seq; seq < c.Seq+c.Count && seq < int64(len(a.commit)); seq++ {
			a.commit[seq] = i
		}
	}
	for _, ev := range log.Events {
		a.take(ev)
	}
	return a
}

// stamp is when an event became durable; zero when nobody noted it.
func (a *account) stamp(seq int64) Stamp {
	if seq < 0 || seq >= int64(len(a.commit)) || a.commit[seq] >= len(a.stamps) {
		return Stamp{}
	}
	return a.stamps[a.commit[seq]]
}

// by is the commit that brought an event.
func (a *account) by(seq int64) disk.Commit {
	if seq < 0 || seq >= int64(len(a.commit)) || a.commit[seq] >= len(a.log.Commits) {
		return disk.Commit{}
	}
	return a.log.Commits[a.commit[seq]]
}

func (a *account) misfit(ev sessionlog.Event, what any) {
	a.misfits = append(a.misfits, noted{ev.Seq, fmt.Sprintf("event %d (%s): %v", ev.Seq, ev.Type, what)})
}

func (a *account) take(ev sessionlog.Event) {
	var err error
	switch ev.Type {
	case sessionlog.TypeToolCall:
		err = a.called(ev)
	case sessionlog.TypeWait:
		err = a.waited(ev)
	case sessionlog.TypeDispatchStart:
		err = a.dispatched(ev)
	case sessionlog.TypeToolResult:
		var r sessionlog.Result
		if r, err = sessionlog.DecodeResult(ev); err == nil {
			a.returned(ev, r, false)
		}
	case sessionlog.TypeDispatch:
		var r sessionlog.Result
		if r, err = sessionlog.DecodeDispatch(ev); err == nil {
			a.returned(ev, r, true)
		}
	case sessionlog.TypeSettled:
		err = a.settle(ev)
	case sessionlog.TypeInboxSpliced:
		err = a.spliced(ev)
	case sessionlog.TypeUserMessage:
		err = a.admit(ev)
	case sessionlog.TypeRoot:
		var r sessionlog.RootRecord
		r, err = sessionlog.DecodeRoot(ev)
		a.roots = append(a.roots, rootAt{ev.Seq, r.RootID, r.Owner})
	case sessionlog.TypeDelivered:
		var r sessionlog.DeliveredRecord
		r, err = sessionlog.DecodeDelivered(ev)
		a.handed = append(a.handed, handedAt{ev.Seq, r})
	case sessionlog.TypeTurnStart, sessionlog.TypeTurnEnd:
		a.turn(ev)
	}
	if err != nil {
		a.misfit(ev, err)
	}
}

func (a *account) turn(ev sessionlog.Event) {
	turn, ok := wholeNumber(string(ev.Data), "turn")
	if !ok {
		a.misfit(ev, "it names no turn")
		return
	}
	if ev.Type == sessionlog.TypeTurnStart {
		a.lengths = append(a.lengths, turnAt{turn, ev.Seq, -1})
		return
	}
	for i := range a.lengths {
		if a.lengths[i].turn == turn && a.lengths[i].end < 0 {
			a.lengths[i].end = ev.Seq
		}
	}
}

func (a *account) called(ev sessionlog.Event) error {
	c, err := sessionlog.DecodeCall(ev)
	if err != nil || c.Name != sessionlog.ToolName {
		return err
	}
	a.asked(ev.Seq, c.CallID, c.Arguments)
	return nil
}

// dispatched: a program asks.
func (a *account) dispatched(ev sessionlog.Event) error {
	sub, name, err := sessionlog.DecodeSubCall(ev)
	if err != nil || name != sessionlog.ToolName {
		return err
	}
	a.asked(ev.Seq, sub.SubCallID, string(sub.Arguments)).sub = &sub
	return nil
}

func (a *account) asked(seq int64, call, arguments string) *life {
	l := &life{call: call, at: seq, wait: -1, states: []stateAt{{seq, open, "asked"}}}
	if questions, ids, ok := sessionlog.ParseArguments(arguments); ok {
		l.asks, l.ids = string(questions), ids
	}
	if before := a.latest[call]; before != nil {
		before.now(seq, over, "asked again")
	}
	a.lives = append(a.lives, l)
	a.latest[call] = l
	return l
}

func (a *account) waited(ev sessionlog.Event) error {
	r, err := sessionlog.DecodeWait(ev)
	if err != nil {
		return err
	}
	l := a.latest[r.CallID]
	if l == nil || l.wait >= 0 {
		return fmt.Errorf("a wait without a call of its own: %s, attempt %s", r.CallID, r.Attempt)
	}
	l.wait, l.rec, l.attempt = ev.Seq, r, r.Attempt
	return nil
}

// returned: a call has a result, by a record of a program's call or of a direct one.
func (a *account) returned(ev sessionlog.Event, r sessionlog.Result, nested bool) {
	l := a.latest[r.CallID]
	if l == nil || nested != (l.sub != nil) {
		return
	}
	res := resultAt{seq: ev.Seq, Result: r, pending: sessionlog.IsPending(r.Text)}
	if !r.IsError {
		_, res.batch = sessionlog.ReadBatch(r.Text)
	}
	l.results = append(l.results, res)
	switch {
	case l.state() != open: // counted, and judged by a check
	case !l.rec.Legacy && (res.pending || r.Code == sessionlog.CodeOutcomeUnknown):
		l.now(ev.Seq, continued, "its foreground ended")
	case res.batch:
		l.now(ev.Seq, over, "answered")
	default:
		l.now(ev.Seq, over, "failed")
	}
}

func (a *account) settle(ev sessionlog.Event) error {
	r, err := sessionlog.DecodeSettled(ev)
	if err != nil {
		return err
	}
	s := settledAt{ev.Seq, r}
	a.settled = append(a.settled, s)
	if l := a.latest[r.CallID]; l != nil {
		l.settled = append(l.settled, s)
		if r.Outcome == "withdrawn" && l.state() == continued {
			l.now(ev.Seq, over, "withdrawn")
		}
	}
	return nil
}

func (a *account) spliced(ev sessionlog.Event) error {
	s, err := sessionlog.ReadSplice(ev.Data)
	if err != nil {
		return err
	}
	list := &a.lists[0]
	if s.Target == sessionlog.NextTurn {
		list = &a.lists[1]
	}
	if s.Start+s.RemovedCount > len(*list) {
		return fmt.Errorf("it removes %d at %d of a list of %d", s.RemovedCount, s.Start, len(*list))
	}
	for _, m := range (*list)[s.Start : s.Start+s.RemovedCount] {
		m.waits, m.left = false, ev.Seq
		m.out = append(m.out, ev.Seq)
		if s.Outcome == sessionlog.OutcomeCanceled {
			m.withdrawn = append(m.withdrawn, ev.Seq)
			a.replies(ev.Seq, m.ReplyTo, "its reply was taken back")
		}
	}
	in := make([]*queued, len(s.Inserted))
	for i, m := range s.Inserted {
		in[i] = a.message(m)
		in[i].in, in[i].waits, in[i].target = append(in[i].in, ev.Seq), true, s.Target
	}
	*list = slices.Concat((*list)[:s.Start], in, (*list)[s.Start+s.RemovedCount:])
	for _, m := range in {
		a.replies(ev.Seq, m.ReplyTo, "a reply is queued")
	}
	return nil
}

// replies looks again whether a call has a reply in a list.
func (a *account) replies(seq int64, call, why string) {
	l := a.latest[call]
	if call == "" {
		return
	}
	n := 0
	for _, list := range a.lists {
		for _, m := range list {
			if m.ReplyTo == call && m.waits {
				n++
			}
		}
	}
	if n > 1 {
		a.twice = append(a.twice, noted{seq, fmt.Sprintf("call %s has %d queued replies after event %d", call, n, seq)})
	}
	switch {
	case l == nil || l.state() != continued && l.state() != replied:
	case n > 0:
		l.now(seq, replied, why)
	default:
		l.now(seq, continued, why)
	}
}

func (a *account) message(m sessionlog.Message) *queued {
	q := a.byID[m.ID]
	if q == nil {
		q = &queued{Message: m, left: -1}
		a.byID[m.ID] = q
		a.messages = append(a.messages, q)
	}
	return q
}

func (a *account) admit(ev sessionlog.Event) error {
	m, err := sessionlog.ParseMessage(ev.Data)
	if err != nil {
		return err
	}
	q := a.message(m)
	q.admitted = append(q.admitted, ev.Seq)
	if l := a.latest[m.ReplyTo]; m.ReplyTo != "" && l != nil && l.state() != over {
		l.now(ev.Seq, over, "its reply was admitted")
	}
	return nil
}

// Readings.

func (a *account) lifeOf(attempt, call string) *life {
	for _, l := range a.lives {
		if l.attempt == attempt && l.call == call && l.wait >= 0 {
			return l
		}
	}
	return nil
}

// accepted are the records that a submission was taken.
func (a *account) accepted(submission string) []settledAt {
	var out []settledAt
	for _, s := range a.settled {
		if s.SubmissionID == submission && s.Outcome != "reply_withdrawn" {
			out = append(out, s)
		}
	}
	return out
}

// at is the life of a call as the log stood before seq, and its state.
func (a *account) at(call string, seq int64) (*life, state) {
	var found *life
	for _, l := range a.lives {
		if l.call == call && l.at < seq {
			found = l
		}
	}
	if found == nil {
		return nil, unasked
	}
	return found, found.stateBefore(seq)
}

// waiting are the messages in the lists when the log ended before seq.
func (a *account) waiting(seq int64) []string {
	var ids []string
	for _, m := range a.messages {
		if m.waitsAt(seq) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// waitsAt: it is in a list when the log ended before seq.
func (m *queued) waitsAt(seq int64) bool {
	for i, in := range m.in {
		if in < seq && (i >= len(m.out) || m.out[i] >= seq) {
			return true
		}
	}
	return false
}

// ends lists the log's ends as they stood from a step to another: the one in
// force at its begin, and each that a commit in it made.
func (a *account) ends(from, to int) []int64 {
	var out []int64
	seq := int64(0)
	for i, c := range a.log.Commits {
		if i >= len(a.stamps) || a.stamps[i].Step > to {
			break
		}
		if a.stamps[i].Step > from {
			out = append(out, seq)
		}
		if c.Count > 0 {
			seq = c.Seq + c.Count
		}
	}
	return append(out, seq)
}

// rootBefore is who spoke for the session when the log ended before seq.
func (a *account) rootBefore(seq int64) rootAt {
	var r rootAt
	for _, at := range a.roots {
		if at.seq < seq {
			r = at
		}
	}
	return r
}

func (a *account) turnOf(n int64) *turnAt {
	for i := range a.lengths {
		if a.lengths[i].turn == n {
			return &a.lengths[i]
		}
	}
	return nil
}

// story says what the log has about a call, for a person.
func (a *account) story(call string) string {
	var b strings.Builder
	for _, l := range a.lives {
		if l.call != call {
			continue
		}
		fmt.Fprintf(&b, "%s asked by %s at event %d", call, l.attempt, l.at)
		for _, s := range l.states[1:] {
			fmt.Fprintf(&b, ", %s at %d (%s)", s.is, s.seq, s.why)
		}
		for _, s := range l.settled {
			fmt.Fprintf(&b, "; settled %d: %s", s.seq, s.Outcome)
			if s.By != "" {
				fmt.Fprintf(&b, " by %s", s.By)
			}
			if s.SubmissionID != "" {
				fmt.Fprintf(&b, " with %s", s.SubmissionID)
			}
		}
		b.WriteString(". ")
	}
	if b.Len() == 0 {
		return "the log of " + a.name + " has no call " + call
	}
	return "the log of " + a.name + ": " + strings.TrimSpace(b.String())
}
