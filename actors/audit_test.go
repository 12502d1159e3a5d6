package actors_test

import (
	"encoding/json"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// account is what an outsider reads out of a log, without any of our folds.
type account struct {
	calls, results map[string]int    // tool calls and results, of sub-calls too, by call
	texts          map[string]string // the latest result text, by call
	accepted       map[string]string // submission → the outcome it was accepted with
	queued         map[string]string // submission → its message
	admitted       map[string]int    // message → times it became history
	withdrawn      map[string]int    // message → times it was taken back
	waiting        map[string]bool   // messages in the lists
}

func (r *rig) account() account {
	r.t.Helper()
	a := account{map[string]int{}, map[string]int{}, map[string]string{}, map[string]string{}, map[string]string{},
		map[string]int{}, map[string]int{}, map[string]bool{}}
	lists := map[string][]string{}
	for _, ev := range r.Log {
		var d struct {
			CallID, SubCallID, SubmissionID, Outcome, MessageID, ID, Target string
			Content                                                         []struct{ Text string }
			Message                                                         struct {
				ToolCallID string
				Content    []struct{ Text string }
			}
			Start, RemovedCount int
			Inserted            []struct{ ID string }
		}
		require.NoError(r.t, json.Unmarshal(ev.Data, &d))
		switch ev.Type {
		case sessionlog.TypeToolCall:
			a.calls[d.CallID]++
		case sessionlog.TypeDispatchStart:
			a.calls[d.SubCallID]++
		case sessionlog.TypeDispatch:
			a.results[d.SubCallID]++
			a.texts[d.SubCallID] = d.Content[0].Text
		case sessionlog.TypeToolResult:
			a.results[d.Message.ToolCallID]++
			a.texts[d.Message.ToolCallID] = d.Message.Content[0].Text
		case sessionlog.TypeUserMessage:
			a.admitted[d.ID]++
		case sessionlog.TypeSettled:
			if d.SubmissionID != "" && (d.Outcome == "answered" || d.Outcome == "queued") {
				require.NotContains(r.t, a.accepted, d.SubmissionID, "accepted twice")
				a.accepted[d.SubmissionID] = d.Outcome
				a.queued[d.SubmissionID] = d.MessageID
			}
		case sessionlog.TypeInboxSpliced:
			l := lists[d.Target]
			for _, id := range l[d.Start : d.Start+d.RemovedCount] {
				delete(a.waiting, id)
				if d.Outcome == "canceled" {
					a.withdrawn[id]++
				}
			}
			rest := append([]string(nil), l[d.Start+d.RemovedCount:]...)
			l = l[:d.Start]
			for _, m := range d.Inserted {
				l = append(l, m.ID)
				a.waiting[m.ID] = true
			}
			lists[d.Target] = append(l, rest...)
		}
	}
	return a
}

// audit holds the promises of a session at rest, from the log and from what
// callers were told: nothing it compares was made by the session's own fold.
func (r *rig) audit() {
	r.t.Helper()
	a := r.account()
	r.auditLog(a)
	r.auditReplies(a, r.Replies, nil)
}

func (r *rig) auditLog(a account) {
	t := r.t
	t.Helper()
	for call, n := range a.calls { // promise 1
		open := n - a.results[call]
		if row, ok := r.Rows[call]; ok && row.State == sessionlog.RowOpen {
			require.Equal(t, 1, open, "call %s is open and has %d calls, %d results", call, n, a.results[call])
		} else {
			require.Zero(t, open, "call %s has %d calls, %d results", call, n, a.results[call])
		}
		if strings.Contains(a.texts[call], `"pending":true`) { // promise 3
			require.NotContains(t, a.texts[call], "answers\":")
		}
	}
	for sub, msg := range a.queued { // promise 2
		if msg == "" {
			continue
		}
		once := a.admitted[msg] + a.withdrawn[msg]
		if a.waiting[msg] {
			once++
		}
		require.Equal(t, 1, once, "the reply of %s waits, was admitted or was withdrawn: exactly one", sub)
	}
	for msg, n := range a.admitted {
		require.Equal(t, 1, n, "message %s was admitted %d times", msg, n)
		require.Zero(t, a.withdrawn[msg])
	}
	replies := map[string]int{}
	lists := r.Session.Lists()
	for _, list := range [][]sessionlog.Message{lists.NextStep, lists.NextTurn} {
		for _, m := range list {
			if m.ReplyTo != "" {
				replies[m.ReplyTo]++
				require.Equal(t, 1, replies[m.ReplyTo], "two replies of %s wait", m.ReplyTo)
			}
		}
	}
}

// auditReplies compares what callers were told with the log. What a door had
// to repeat is judged twice, and the caller hears the first verdict only.
func (r *rig) auditReplies(a account, told map[actors.Addr][]messages.Message, repeated map[actors.Addr]bool) {
	t := r.t
	t.Helper()
	acked, silent := map[string]bool{}, map[string]bool{}
	for from, said := range r.said {
		var final []messages.Message
		for _, m := range told[from] {
			if res, ok := m.(*messages.AskResponse); !ok || res.GetWaiting() == nil {
				final = append(final, m)
			}
		}
		require.LessOrEqual(t, len(final), 1, "%s was given %d answers to %T", from, len(final), said)
		sub, ok := said.(*messages.SubmitRequest)
		if !ok {
			continue
		}
		silent[sub.GetSubmissionId()] = silent[sub.GetSubmissionId()] || len(final) == 0 || repeated[from]
		if len(final) == 0 {
			continue
		}
		if res, ok := final[0].(*messages.SubmitResponse); ok {
			require.Contains(t, a.accepted, sub.GetSubmissionId(), "%s was acknowledged and is not in the log", sub.GetSubmissionId())
			require.Equal(t, sub.GetSubmissionId(), res.GetSettlement().GetSubmissionId())
			acked[sub.GetSubmissionId()] = true
		}
	}
	for sub := range a.accepted {
		require.True(t, acked[sub] || silent[sub], "%s was refused and is in the log", sub)
	}
}

// outcome names what an address was told last.
func (r *rig) outcome(from actors.Addr) string {
	r.t.Helper()
	switch m := r.last(from).(type) {
	case *messages.SubmitResponse:
		return m.GetSettlement().GetOutcome()
	case *messages.Refusal:
		if w := m.GetWinner(); w != nil {
			return m.GetCode() + " " + w.GetOutcome()
		}
		return m.GetCode()
	case *messages.AskResponse:
		switch {
		case m.GetAnswered() != nil:
			return "answered"
		case m.GetPending() != nil:
			return "pending"
		}
		return "waiting"
	case *messages.WithdrawQuestionResponse:
		return "told " + m.GetSettlement().GetOutcome()
	case *messages.ExpireResponse:
		return "expired"
	default:
		return string(m.ProtoReflect().Descriptor().Name())
	}
}

// everyOrder runs a scenario once for each order in which its mailboxes can be
// served, and audits each. The scenario returns how it came out; the set of
// outcomes is returned with how often each was seen.
func everyOrder(t tester, scenario func(choose func(int) int) *rig, describe func(r *rig) string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	var path []int
	for {
		var width []int
		choose := func(n int) int {
			if len(width) == len(path) {
				path = append(path, 0)
			}
			width = append(width, n)
			return path[len(width)-1]
		}
		r := scenario(choose)
		r.run()
		r.check()
		r.audit()
		seen[describe(r)]++
		path = path[:len(width)]
		for len(path) > 0 && path[len(path)-1]+1 >= width[len(path)-1] {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return seen
		}
		path[len(path)-1]++
	}
}

// quickRig checks its log at the end only.
func quickRig(t tester, edit ...func(*actors.Rules)) *rig {
	t.Helper()
	r := unattached(t, edit...)
	r.Delivered = nil
	r.do(attach("root"))
	return r
}
