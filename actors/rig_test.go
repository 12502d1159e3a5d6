package actors_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/actors/actorstest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// rig is one session with its parts, and a fresh address for whoever speaks.
// After every input it holds two laws: the log is one that any reader takes,
// and the index is what a fold of the log gives.
type rig struct {
	*actorstest.Rig
	t    tester
	corr uint64
	said map[actors.Addr]any // what was sent from where
}

// tester is what a test and a property have in common.
type tester interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// startWall is the wall clock of a new rig.
const startWall = 1_000_000

func unattached(t tester, edit ...func(*actors.Rules)) *rig {
	t.Helper()
	rules := actorstest.DefaultRules()
	for _, e := range edit {
		e(rules)
	}
	r := &rig{Rig: actorstest.New(rules), t: t, said: map[actors.Addr]any{}}
	r.Delivered = r.check
	return r
}

// newRig is a session with the agent "root" attached.
func newRig(t tester, edit ...func(*actors.Rules)) *rig {
	t.Helper()
	r := unattached(t, edit...)
	r.do(attach("root"))
	return r
}

func attach(root string) *messages.AttachRequest {
	return &messages.AttachRequest{Session: "s1", Root: root}
}

func (r *rig) check() {
	r.t.Helper()
	require.NoError(r.t, sessionlog.ValidateEvents(sessionlog.V3, r.Log))
	s, err := actors.NewSession(r.Rules, r.ID, r.Header, r.Log)
	require.NoError(r.t, err)
	want := map[string]sessionlog.Row{}
	for _, row := range s.Rows() {
		want[row.CallID] = row
	}
	require.Equal(r.t, want, r.Rows, "the changes of the index do not add up to the index of the log")
}

// from draws a fresh address of a door.
func (r *rig) from() actors.Addr {
	r.corr++
	return actors.Addr{Key: "door/n", Corr: r.corr}
}

// say sends from a fresh address and returns it; what comes back is in Replies.
func (r *rig) say(msg any) actors.Addr {
	from := r.send(msg)
	r.run()
	return from
}

// send puts a message into the session's mailbox, from a door of its own, so
// that it may arrive before or after any other.
func (r *rig) send(msg any) actors.Addr {
	from := r.from()
	from.Key = fmt.Sprintf("door/%d", r.corr)
	r.said[from] = msg
	r.Send(from, msg)
	return from
}

// run delivers until all mailboxes are empty.
func (r *rig) run() {
	for r.Deliver() {
	}
}

// do expects exactly one answer, and returns it.
func (r *rig) do(msg any) messages.Message {
	r.t.Helper()
	got := r.Replies[r.say(msg)]
	require.Len(r.t, got, 1, "%T", msg)
	return got[0]
}

// refused expects a refusal that leaves no trace in the log.
func (r *rig) refused(code messages.Code, msg any) *messages.Refusal {
	r.t.Helper()
	before := len(r.Log)
	no, ok := r.do(msg).(*messages.Refusal)
	require.True(r.t, ok, "%T was not refused", msg)
	require.Equal(r.t, string(code), no.GetCode(), no.GetText())
	require.Len(r.t, r.Log, before, "a refusal left a trace")
	return no
}

// gone expects that a message is not there to be withdrawn.
func (r *rig) gone(msg *messages.WithdrawMessageRequest) {
	r.t.Helper()
	before := len(r.Log)
	require.Contains(r.t, []messages.Code{messages.MessageGone, messages.NotFound}, codeOf(r.do(msg)))
	require.Len(r.t, r.Log, before, "a refusal left a trace")
}

// last is the newest answer an address got, and how many it got.
func (r *rig) last(from actors.Addr) messages.Message {
	r.t.Helper()
	got := r.Replies[from]
	require.NotEmpty(r.t, got, "nobody answered %s", from)
	return got[len(got)-1]
}

const oneQuestion = `{"questions":[{"id":"q","question":"?"}]}`

func askReq(call string, edit ...func(*messages.AskRequest)) *messages.AskRequest {
	req := &messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-" + call, CallId: call, Arguments: oneQuestion}
	for _, e := range edit {
		e(req)
	}
	return req
}

// withTimeout makes the call wait so many seconds.
func withTimeout(s int) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) {
		r.Arguments = strings.TrimSuffix(r.Arguments, "}") + fmt.Sprintf(`,"timeout":%d}`, s)
	}
}

func legacy(r *messages.AskRequest) { r.Mode, r.AnswererPresent = messages.Mode_MODE_LEGACY, true }

func inStep(turn, step int64) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.Turn, r.Step = turn, step }
}

func arguments(text string) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.Arguments = text }
}

func attempt(id string) func(*messages.AskRequest) {
	return func(r *messages.AskRequest) { r.Attempt = id }
}

// ask opens a wait and returns its asker.
func (r *rig) ask(call string, edit ...func(*messages.AskRequest)) actors.Addr {
	r.t.Helper()
	from := r.say(askReq(call, edit...))
	res, ok := r.last(from).(*messages.AskResponse)
	require.True(r.t, ok, "%v", r.last(from))
	require.NotNil(r.t, res.GetWaiting())
	return from
}

// pend asks and lets the wait pass its deadline.
func (r *rig) pend(call string, edit ...func(*messages.AskRequest)) actors.Addr {
	r.t.Helper()
	from := r.ask(call, append(edit, withTimeout(1))...)
	r.Advance(1000)
	require.NotNil(r.t, r.last(from).(*messages.AskResponse).GetPending())
	return from
}

func submitReq(call, id string, answers ...*messages.Answer) *messages.SubmitRequest {
	if answers == nil {
		answers = []*messages.Answer{{Id: "q", Selected: []string{"yes"}}}
	}
	return &messages.SubmitRequest{Session: "s1", CallId: call, SubmissionId: id, Answers: answers, By: "ada", Door: "test"}
}

// accepted expects a submission to be taken.
func (r *rig) accepted(outcome string, req *messages.SubmitRequest) *messages.SubmitResponse {
	r.t.Helper()
	m := r.do(req)
	res, ok := m.(*messages.SubmitResponse)
	require.True(r.t, ok, "%v", m)
	require.Equal(r.t, outcome, res.GetSettlement().GetOutcome())
	return res
}

// queue gives a pending call its late reply and returns the message's id.
func (r *rig) queue(call, id string) string {
	r.t.Helper()
	return r.accepted("queued", submitReq(call, id)).GetSettlement().GetMessageId()
}

// claim opens a claim by name and returns its address.
func (r *rig) claim(call, name string) actors.Addr {
	at := actors.Addr{Key: name}
	r.Do(at, &messages.ClaimOpen{Session: "s1", CallId: call})
	return at
}

func (r *rig) release(call string, at actors.Addr, lost bool) {
	r.Do(at, &messages.ClaimRelease{Session: "s1", CallId: call, Lost: lost})
}

// frames are what a claim was told.
func (r *rig) frames(at actors.Addr) (remaining []int64, ends []string) {
	for _, m := range r.Sends[at] {
		switch m := m.(type) {
		case *messages.ClaimFrame:
			remaining = append(remaining, m.GetRemainingMs())
		case *messages.ClaimEnd:
			ends = append(ends, m.GetReason())
		}
	}
	return remaining, ends
}

// turn opens a turn of the agent's own, and its first step.
func (r *rig) turn(n int64) {
	r.t.Helper()
	require.IsType(r.t, &messages.BeginTurnResponse{}, r.do(&messages.BeginTurnRequest{Session: "s1", Root: "root", Turn: n}))
	r.step(n, 1)
}

func (r *rig) step(turn, step int64) *messages.BeginStepResponse {
	r.t.Helper()
	m := r.do(&messages.BeginStepRequest{Session: "s1", Root: "root", Turn: turn, Step: step})
	require.IsType(r.t, &messages.BeginStepResponse{}, m)
	return m.(*messages.BeginStepResponse)
}

// types lists the log from a position on.
func (r *rig) types(from int) []string {
	var out []string
	for _, ev := range r.Log[from:] {
		out = append(out, ev.Type)
	}
	return out
}

// count counts the events of a type whose data hold a text.
func (r *rig) count(typ, text string) int {
	n := 0
	for _, ev := range r.Log {
		if ev.Type == typ && strings.Contains(string(ev.Data), text) {
			n++
		}
	}
	return n
}

// data reads the data of the latest event of a type.
func (r *rig) data(typ string) map[string]any {
	r.t.Helper()
	for i := len(r.Log) - 1; i >= 0; i-- {
		if r.Log[i].Type == typ {
			var m map[string]any
			require.NoError(r.t, json.Unmarshal(r.Log[i].Data, &m))
			return m
		}
	}
	r.t.Fatalf("the log has no %s", typ)
	return nil
}

// resultText is the text of the latest tool result, and its error.
func (r *rig) resultText() (text, name, code string) {
	r.t.Helper()
	d := r.data(sessionlog.TypeToolResult)
	content := d["message"].(map[string]any)["content"].([]any)
	require.Len(r.t, content, 1)
	if e, ok := d["error"].(map[string]any); ok {
		name, code = e["name"].(string), e["code"].(string)
	}
	return content[0].(map[string]any)["text"].(string), name, code
}

// state says how the projection has a call: open, continued, or nothing.
func (r *rig) state(call string) string {
	switch a, ok := r.Session.Questions().Call(call); {
	case !ok:
		return ""
	case a.Continued:
		return "continued"
	}
	return "open"
}

// settled returns the recorded answers of a call.
func (r *rig) settled(call string) string {
	s, _ := r.Session.Questions().LastSettled(call)
	return string(s.Answers)
}

func codeOf(m messages.Message) messages.Code {
	if no, ok := m.(*messages.Refusal); ok {
		return messages.Code(no.GetCode())
	}
	return ""
}

const yes = `[{"id":"q","selected":["yes"]}]`
