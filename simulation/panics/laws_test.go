package panics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// audit compares what callers were told with what the journal has: from outside,
// by the log's own words.
type audit struct {
	w *world
	log
}

// log is what the events of a session say, each fact with how often.
type log struct {
	events   []sessionlog.Event
	waits    map[string][]sessionlog.WaitRecord // by attempt
	results  map[string][]sessionlog.Result     // by call
	endedAt  map[string]int64                   // by call: the time of its result
	settled  []sessionlog.SettledRecord
	roots    map[string]int
	turns    map[int64]int
	queued   map[string]int // message ids put into a list
	admitted map[string]int
	bodies   map[string]string // of admitted messages
	canceled map[string]int
	lists    sessionlog.Lists
}

func (a *audit) fail(format string, args ...any) {
	a.w.t.Helper()
	a.w.t.Errorf(format, args...)
}

// check holds every law. The journal must still be open.
func check(w *world) {
	w.t.Helper()
	a := &audit{w: w}
	opened, err := w.disk.Read(context.Background(), mainSession, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	a.read(opened)
	a.epochs(opened.Epoch)
	a.answersGiven()
	a.messagesOnce()
	a.submissions()
	a.questions()
	a.turnsAndSteps()
	a.index()
	if w.t.Failed() {
		w.t.Log(a.dump())
	}
}

// read takes the log in and judges it by the rules of the format.
func (a *audit) read(o journal.Opened) {
	a.log = log{events: o.Events, waits: map[string][]sessionlog.WaitRecord{}, results: map[string][]sessionlog.Result{},
		endedAt: map[string]int64{}, roots: map[string]int{}, turns: map[int64]int{}, queued: map[string]int{},
		admitted: map[string]int{}, bodies: map[string]string{}, canceled: map[string]int{}}
	if err := sessionlog.ValidateEvents(sessionlog.V3, o.Events); err != nil { // seq without a gap, among others
		a.fail("the log is not valid: %v", err)
	}
	rules := &actors.Rules{NewID: func(kind string) string { return kind }}
	if _, err := actors.NewSession(rules, mainSession, o.Header, o.Events); err != nil {
		a.fail("the log does not fold: %v", err)
	}
	for _, ev := range o.Events {
		a.event(ev)
	}
}

func (a *audit) event(ev sessionlog.Event) {
	var err error
	switch ev.Type {
	case sessionlog.TypeWait:
		var r sessionlog.WaitRecord
		r, err = sessionlog.DecodeWait(ev)
		a.waits[r.Attempt] = append(a.waits[r.Attempt], r)
	case sessionlog.TypeToolResult:
		var r sessionlog.Result
		r, err = sessionlog.DecodeResult(ev)
		a.results[r.CallID], a.endedAt[r.CallID] = append(a.results[r.CallID], r), ev.Time
	case sessionlog.TypeSettled:
		var r sessionlog.SettledRecord
		r, err = sessionlog.DecodeSettled(ev)
		a.settled = append(a.settled, r)
	case sessionlog.TypeRoot:
		var r sessionlog.RootRecord
		r, err = sessionlog.DecodeRoot(ev)
		a.roots[r.RootID]++
	case sessionlog.TypeTurnStart:
		var r struct{ Turn int64 }
		err = json.Unmarshal(ev.Data, &r)
		a.turns[r.Turn]++
	case sessionlog.TypeUserMessage:
		var m sessionlog.Message
		m, err = sessionlog.ParseMessage(ev.Data)
		a.admitted[m.ID]++
		a.bodies[m.ID] = string(m.Raw)
	case sessionlog.TypeInboxSpliced:
		var s sessionlog.Splice
		if s, err = sessionlog.ReadSplice(ev.Data); err == nil {
			err = a.splice(ev, s)
		}
	}
	if err != nil {
		a.fail("event %d (%s): %v", ev.Seq, ev.Type, err)
	}
}

func (a *audit) splice(ev sessionlog.Event, s sessionlog.Splice) (err error) {
	for _, m := range s.Inserted {
		a.queued[m.ID]++
	}
	if s.Outcome == sessionlog.OutcomeCanceled {
		list := a.lists.NextStep
		if s.Target == sessionlog.NextTurn {
			list = a.lists.NextTurn
		}
		for _, m := range list[s.Start : s.Start+s.RemovedCount] {
			a.canceled[m.ID]++
		}
	}
	a.lists, err = a.lists.Fold(ev)
	return err
}

// epochs only rise (promise 6).
func (a *audit) epochs(last int64) {
	taken := append(slices.Clone(a.w.disk.epochs[mainSession]), last)
	for i := 1; i < len(taken); i++ {
		if taken[i] < taken[i-1] || i < len(taken)-1 && taken[i] == taken[i-1] {
			a.fail("epochs do not rise: %v", taken)
		}
	}
}

// answersGiven: every command was told something that is not an excuse.
func (a *audit) answersGiven() {
	for cmd, msgs := range a.answers(func(messages.Command) bool { return true }) {
		if len(msgs) == 0 {
			a.fail("%T %v was told nothing final", cmd, cmd)
		}
	}
}

// answers groups the final answers by command.
func (a *audit) answers(which func(messages.Command) bool) map[messages.Command][]messages.Message {
	out := map[messages.Command][]messages.Message{}
	for _, l := range a.w.told {
		if !which(l.cmd) || worthAnother(l.msg) {
			continue
		}
		out[l.cmd] = append(out[l.cmd], l.msg)
	}
	return out
}

// final returns all final answers to commands of one type.
func final[C messages.Command](a *audit) map[string][]pair[C] {
	out := map[string][]pair[C]{}
	for _, l := range a.w.told {
		if cmd, ok := l.cmd.(C); ok && !worthAnother(l.msg) {
			key := keyOf(cmd)
			out[key] = append(out[key], pair[C]{cmd, l.msg})
		}
	}
	return out
}

type pair[C messages.Command] struct {
	cmd C
	msg messages.Message
}

// keyOf is the key under which a command is idempotent.
func keyOf(cmd messages.Command) string {
	switch c := cmd.(type) {
	case *messages.SubmitRequest:
		return c.GetSubmissionId()
	case *messages.SteerRequest:
		return c.GetMessageId()
	case *messages.AskRequest:
		return c.GetAttempt()
	case *messages.WithdrawMessageRequest:
		return c.GetMessageId()
	case *messages.AttachRequest:
		return c.GetRoot()
	case interface{ GetCallId() string }:
		return c.GetCallId()
	}
	return ""
}

// inLog counts the events that hold a text.
func (a *audit) inLog(text string) int {
	n := 0
	quoted, _ := json.Marshal(text)
	bare := bytes.Trim(quoted, `"`)
	for _, ev := range a.events {
		if bytes.Contains(ev.Data, []byte(text)) || bytes.Contains(ev.Data, bare) {
			n++
		}
	}
	return n
}

// oneFate: a message is queued once, and then waits, was admitted once, or was
// taken back once, and never two of these (promise 2). It returns how many
// events hold it.
func (a *audit) oneFate(id string) int {
	waits := 0
	if _, _, ok := a.lists.Find(id); ok {
		waits = 1
	}
	if a.queued[id] != 1 || a.admitted[id]+a.canceled[id]+waits != 1 {
		a.fail("message %s: queued %d times, admitted %d, taken back %d, still waiting %d",
			id, a.queued[id], a.admitted[id], a.canceled[id], waits)
	}
	return 1 + a.admitted[id]
}

// messagesOnce: no message twice in the lists or in the history, and what was
// steered and acknowledged has its one fate; what was refused left no trace.
func (a *audit) messagesOnce() {
	for id := range a.queued {
		a.oneFate(id)
	}
	for id := range a.admitted {
		if a.queued[id] == 0 {
			a.fail("message %s was admitted and never queued", id)
		}
	}
	steers := final[*messages.SteerRequest](a)
	for id, told := range steers {
		for _, p := range told {
			if _, ok := p.msg.(*messages.SteerResponse); !ok {
				a.fail("steer %s was told %v", id, p.msg)
			}
		}
		if want, got := a.oneFate(id), a.inLog(secret(id)); got != want {
			a.fail("the text of %s is in %d events, want %d", id, got, want)
		}
	}
	for id, told := range final[*messages.WithdrawMessageRequest](a) {
		for _, p := range told {
			if _, ok := p.msg.(*messages.WithdrawMessageResponse); ok && a.canceled[id] != 1 {
				a.fail("message %s was said to be taken back, and was %d times", id, a.canceled[id])
			}
		}
	}
}

// submissions: acknowledged ones are in the log exactly once, refused ones left
// no trace (promise 2).
func (a *audit) submissions() {
	told := final[*messages.SubmitRequest](a)
	for id, answers := range told {
		acknowledged := false
		for _, p := range answers {
			if ok, is := p.msg.(*messages.SubmitResponse); is {
				acknowledged = true
				a.accepted(id, p.cmd, ok.GetSettlement())
			}
		}
		if !acknowledged && (a.inLog(secret(id)) != 0 || len(a.records(id)) != 0) {
			a.fail("submission %s was refused (%v) and is in the log", id, answers[0].msg)
		}
	}
	for _, r := range a.settled {
		if r.SubmissionID != "" && told[r.SubmissionID] == nil && final[*messages.SteerRequest](a)[r.SubmissionID] == nil {
			a.fail("the log accepted %s, which nobody was told about", r.SubmissionID)
		}
	}
}

// records are the acceptances of a submission in the log.
func (a *audit) records(id string) []sessionlog.SettledRecord {
	var out []sessionlog.SettledRecord
	for _, r := range a.settled {
		if r.SubmissionID == id && r.Outcome != actors.OutcomeReplyWithdrawn {
			out = append(out, r)
		}
	}
	return out
}

func (a *audit) accepted(id string, cmd *messages.SubmitRequest, got *messages.Settlement) {
	recs := a.records(id)
	if len(recs) != 1 || recs[0].CallID != cmd.GetCallId() {
		a.fail("submission %s was acknowledged (%s) and is recorded %d times", id, got.GetOutcome(), len(recs))
		return
	}
	rec, want := recs[0], 1
	if rec.MessageID != "" { // a late reply
		want = a.oneFate(rec.MessageID)
		if got.GetMessageId() != rec.MessageID || got.GetOutcome() == actors.OutcomeReplyWithdrawn && a.canceled[rec.MessageID] != 1 {
			a.fail("submission %s was told %v, the log has %v", id, got, rec)
		}
	} else if r := a.results[cmd.GetCallId()]; len(r) != 1 || r[0].IsError || !strings.Contains(r[0].Text, secret(id)) || got.GetOutcome() != rec.Outcome {
		a.fail("submission %s was told %v, the result of its call is %v", id, got, r)
	}
	if n := a.inLog(secret(id)); n != want {
		a.fail("the text of %s is in %d events, want %d", id, n, want)
	}
}

// questions: each durable ask is one wait with the deadline it was told, which
// ended once, and its askers were told what the log says (promises 1 and 7).
func (a *audit) questions() {
	asks := final[*messages.AskRequest](a)
	for attempt, recs := range a.waits {
		if len(recs) != 1 || asks[attempt] == nil {
			a.fail("attempt %s has %d waits, and was told %v", attempt, len(recs), asks[attempt])
		}
		if n := len(a.results[recs[0].CallID]); n != 1 && !strings.HasPrefix(recs[0].CallID, "c-last") {
			a.fail("call %s has %d results", recs[0].CallID, n)
		}
	}
	for attempt, answers := range asks {
		for _, p := range answers {
			a.asked(attempt, p.cmd, p.msg)
		}
	}
	for _, r := range a.settled {
		w := a.waitOf(r.CallID)
		if r.Outcome == "pending" && r.By == "" && r.Reason == "" && (w.DeadlineMS == nil || a.endedAt[r.CallID] < *w.DeadlineMS) {
			a.fail("call %s ran out before its deadline", r.CallID)
		}
		if left := final[*messages.EndForegroundRequest](a)[r.CallID]; r.Outcome == "pending" && r.Reason != "" && left == nil {
			a.fail("call %s was left (%s) by nobody", r.CallID, r.Reason)
		}
	}
	withdrawn := final[*messages.WithdrawQuestionRequest](a)
	for call, answers := range withdrawn {
		for _, p := range answers {
			ok, is := p.msg.(*messages.WithdrawQuestionResponse)
			if is && !slices.ContainsFunc(a.settled, func(r sessionlog.SettledRecord) bool {
				return r.CallID == call && r.Outcome == ok.GetSettlement().GetOutcome()
			}) {
				a.fail("call %s was said to be %v, the log has no such end", call, ok.GetSettlement())
			}
		}
	}
	a.ended(func(cmd messages.Command, msg messages.Message) (string, messages.Code) {
		switch m := msg.(type) {
		case *messages.DismissResponse:
			return keyOf(cmd), messages.AskCancelled
		case *messages.DelegateResponse:
			if m.GetSettled() {
				return keyOf(cmd), messages.NoProvider
			}
		case *messages.ExpireResponse:
			if m.GetSettled() {
				return keyOf(cmd), ""
			}
		}
		return "", ""
	})
}

// ended: what was acknowledged as an end is the end that the log has.
func (a *audit) ended(claim func(messages.Command, messages.Message) (string, messages.Code)) {
	for _, l := range a.w.told {
		if call, code := claim(l.cmd, l.msg); call != "" {
			if r := a.results[call]; len(r) != 1 || r[0].Code != string(code) {
				a.fail("%T of %s was acknowledged, the log has %v", l.cmd, call, r)
			}
		}
	}
}

func (a *audit) waitOf(call string) sessionlog.WaitRecord {
	for _, recs := range a.waits {
		if recs[0].CallID == call {
			return recs[0]
		}
	}
	return sessionlog.WaitRecord{}
}

func (a *audit) asked(attempt string, cmd *messages.AskRequest, msg messages.Message) {
	ask, isAnswer := msg.(*messages.AskResponse)
	call := cmd.GetCallId()
	if ask.GetJoined() != "" { // no twin: it is told what becomes of the equal question
		if len(a.waits[attempt]) != 0 {
			a.fail("ask %s joined %s and has a wait of its own", attempt, ask.GetJoined())
		}
		attempt, call = ask.GetJoined(), ask.GetCallId()
	}
	recs, results := a.waits[attempt], a.results[call]
	var result sessionlog.Result
	if len(results) > 0 {
		result = results[0]
	}
	if isAnswer {
		switch {
		case ask.GetContinued() != nil && sessionlog.IsPending(result.Text):
		case len(recs) != 1:
			a.fail("ask %s was told %v, it has %d waits in the log", attempt, msg, len(recs))
		case ask.GetWaiting() != nil:
			if d := recs[0].DeadlineMS; d == nil && ask.GetWaiting().GetDeadlineMs() != 0 || d != nil && *d != ask.GetWaiting().GetDeadlineMs() {
				a.fail("ask %s was told the deadline %d, the log has %v", attempt, ask.GetWaiting().GetDeadlineMs(), recs[0])
			}
		case ask.GetResult() != result.Text || result.IsError || (ask.GetPending() != nil) != sessionlog.IsPending(result.Text):
			a.fail("ask %s was told %v, the log has %v", attempt, msg, result)
		}
		return
	}
	switch code := codeOf(msg); code {
	case messages.CallerNotLive: // taken over, and repaired
	case messages.AskAborted, messages.AskCancelled, messages.NoProvider:
		if result.Code != string(code) {
			a.fail("ask %s was told %s, the log has %v", attempt, code, result)
		}
	default:
		a.fail("ask %s was told %v", attempt, msg)
	}
}

// turnsAndSteps: what an agent was told to have opened is open once, and what
// is in the history was shown to it, byte for byte.
func (a *audit) turnsAndSteps() {
	shown := map[string]bool{}
	show := func(list []*messages.InboxMessage) {
		for _, m := range list {
			shown[m.GetId()] = true
			if a.admitted[m.GetId()] != 1 || a.bodies[m.GetId()] != m.GetJson() {
				a.fail("message %s was shown to the agent as admitted, the history has it %d times", m.GetId(), a.admitted[m.GetId()])
			}
		}
	}
	for _, l := range a.w.told {
		if l.cmd.GetSession() != mainSession {
			continue
		}
		switch m := l.msg.(type) {
		case *messages.AttachResponse:
			if a.roots[m.GetRoot()] != 1 {
				a.fail("root %s was attached, the log has it %d times", m.GetRoot(), a.roots[m.GetRoot()])
			}
		case *messages.BeginTurnResponse:
			if a.turns[m.GetTurn()] != 1 {
				a.fail("turn %d was opened, the log has it %d times", m.GetTurn(), a.turns[m.GetTurn()])
			}
		case *messages.BeginStepResponse:
			show(m.GetAdmitted())
		case *messages.AdmitMessagesResponse:
			show(m.GetMessages())
		case *messages.CollectRepliesResponse:
			a.listed(m, shown)
		}
	}
	for id := range a.admitted {
		if !shown[id] {
			a.fail("message %s is in the history and was never shown to the agent", id)
		}
	}
	for turn, n := range a.turns {
		if n != 1 {
			a.fail("turn %d was opened %d times", turn, n)
		}
	}
}

// listed: what a list holds is in the history, or the result of a call, and
// says so when it may have been seen before.
func (a *audit) listed(list *messages.CollectRepliesResponse, shown map[string]bool) {
	for _, m := range list.GetReplies() {
		switch {
		case m.GetKind() == "result":
			if r := a.results[m.GetCallId()]; len(r) != 1 || r[0].IsError {
				a.fail("the result of call %s was listed, the log has %v", m.GetCallId(), r)
			}
		case a.admitted[m.GetMessageId()] != 1:
			a.fail("message %s was listed, the history has it %d times", m.GetMessageId(), a.admitted[m.GetMessageId()])
		}
		if (shown[m.GetMessageId()] || m.GetKind() == "result") && !m.GetRedelivered() {
			a.fail("message %s was listed again as if it were new", m.GetMessageId())
		}
		shown[m.GetMessageId()] = true
	}
}

// index: what is still open is what the scenario left open.
func (a *audit) index() {
	rows, _, err := a.w.disk.Active(context.Background(), journal.ActiveFilter{Session: mainSession})
	if err != nil {
		a.fail("%v", err)
	}
	for _, r := range rows {
		open := len(a.results[r.Row.CallID]) == 0
		if (r.Row.State == sessionlog.RowOpen) != open {
			a.fail("the index has %s as %v, the log has %d results", r.Row.CallID, r.Row.State, len(a.results[r.Row.CallID]))
		}
	}
}

// dump is the ledger and the log, for a person.
func (a *audit) dump() string {
	var b strings.Builder
	for _, l := range a.w.told {
		fmt.Fprintf(&b, "told %s %v: %s %v\n", nameOf(l.cmd), l.cmd, nameOf(l.msg), l.msg)
	}
	for _, ev := range a.events {
		fmt.Fprintf(&b, "log  %s\n", ev.Line())
	}
	return b.String()
}
