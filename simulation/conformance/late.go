package conformance

import (
	"encoding/json"
	"fmt"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/actors/actorstest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/conformance/deviations"
)

// lateRun drives one rig per session. A message can be named while it is in a
// list, and once claimed until the next restart.
type lateRun struct {
	rigs    map[string]*actorstest.Rig
	bodies  map[string]sessionlog.Message // by "session/id"
	claimed map[string]bool
	subs    int
}

// RunLateAnswer drives the session and inbox machines with one vector of
// late-answer.jsonl. A vector in which a claimed reply is left
// behind may be improved on by deviation D1.
func RunLateAnswer(v []byte) (Verdict, string) {
	var vec struct {
		Sessions []string
		Ops      []deviations.LateOp
		Expect   json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	r := &lateRun{rigs: map[string]*actorstest.Rig{}, bodies: map[string]sessionlog.Message{}, claimed: map[string]bool{}}
	rules := actorstest.DefaultRules() // one id counter over all sessions
	for _, id := range vec.Sessions {
		rig := actorstest.New(rules)
		rig.ID = id
		rig.Create(sessionlog.Header{Version: sessionlog.V3, ID: id})
		r.rigs[id] = rig
	}
	results := []any{}
	for _, op := range vec.Ops {
		if op.Session == "" {
			op.Session = vec.Sessions[0]
		}
		res, err := r.play(op, r.rigs[op.Session])
		if err != nil {
			return Failed, err.Error()
		}
		results = append(results, res)
	}
	views := map[string]any{}
	for id, rig := range r.rigs {
		view, err := viewOf(rig.Session.Questions())
		if err != nil {
			return Failed, err.Error()
		}
		views[id] = view
	}
	got := mustJSON(map[string]any{"results": results, "views": views})
	difference := Compare(withoutTexts(vec.Expect), withoutTexts(got))
	if difference == "" {
		return Passed, ""
	}
	if expect, applies := deviations.D1(v); applies {
		if difference = Compare(withoutTexts(expect), withoutTexts(got)); difference == "" {
			return Improved, ""
		}
		difference = "under D1: " + difference
	}
	return Failed, difference
}

func viewOf(q sessionlog.Questions) (json.RawMessage, error) {
	var view struct {
		Active  json.RawMessage `json:"active"`
		Settled json.RawMessage `json:"settled"`
	}
	if err := json.Unmarshal(q.State(), &view); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"active":%s,"settled":%s}`, view.Active, view.Settled), nil
}

func (r *lateRun) play(op deviations.LateOp, rig *actorstest.Rig) (any, error) {
	key := op.Session + "/" + op.MessageID()
	msg := r.bodies[key]
	_, _, known := rig.Session.Lists().Find(op.MessageID())
	known = known || r.claimed[key]
	found := map[string]any{"found": known}
	switch op.Op {
	case "append":
		events, err := decodeAll(op.Events)
		for _, ev := range events {
			rig.Append(ev)
		}
		return nil, err
	case "answer":
		return r.answer(op, rig)
	case "enqueue":
		return nil, r.enqueue(op, rig)
	case "claim":
		if known {
			r.claimed[key] = true
			r.mark(rig, msg, op.Turn)
		}
		return found, nil
	case "discard":
		if known {
			rig.Do(actors.Addr{Key: "door"}, &messages.WithdrawMessageRequest{Session: op.Session, MessageId: msg.ID, By: "harness"})
		}
		return found, nil
	case "admit":
		if known {
			r.admit(rig, msg)
		}
		return found, nil
	case "turnEnd":
		rig.ToParts(actors.InboxPart, actors.TurnEnded{Turn: op.Turn})
	case "restart":
		r.claimed = map[string]bool{}
		for _, g := range r.rigs {
			g.Restart()
		}
	default:
		return nil, fmt.Errorf("there is no operation %q", op.Op)
	}
	return nil, nil
}

// answer submits a late reply. A steer that throws is a session that does not
// record: the message was built, so its id is used up.
func (r *lateRun) answer(op deviations.LateOp, rig *actorstest.Rig) (any, error) {
	var answers []struct {
		ID       string
		Selected []string
		Custom   *string
	}
	if err := json.Unmarshal(op.Answers, &answers); err != nil {
		return nil, err
	}
	r.subs++
	req := &messages.SubmitRequest{Session: op.Session, CallId: op.CallID, SubmissionId: fmt.Sprintf("sub-%d", r.subs)}
	for _, a := range answers {
		req.Answers = append(req.Answers, &messages.Answer{Id: a.ID, Selected: a.Selected, Custom: a.Custom})
	}
	if op.Steer == "throws" {
		rig.RefuseRecord = func(actors.Record) *messages.Error {
			rig.Rules.NewID("reply")
			return messages.Refuse(messages.Unavailable, "steer refused")
		}
		defer func() { rig.RefuseRecord = nil }()
	}
	replies := rig.Do(actors.Addr{Key: "door", Corr: uint64(r.subs)}, req)
	if len(replies) != 1 {
		return nil, fmt.Errorf("%d replies to one submission", len(replies))
	}
	switch m := replies[0].(type) {
	case *messages.SubmitResponse:
		_, msg, ok := rig.Session.Lists().Find(m.GetSettlement().GetMessageId())
		if !ok {
			return nil, fmt.Errorf("the queued reply %q is in no list", m.GetSettlement().GetMessageId())
		}
		r.bodies[op.Session+"/"+msg.ID] = msg
		return map[string]any{"returns": true, "message": msg.Raw}, nil
	case *messages.Refusal:
		switch messages.Code(m.GetCode()) {
		case messages.NotAnswerable, messages.Settled:
			return map[string]any{"returns": false}, nil
		case messages.Unavailable:
			return map[string]any{"throws": m.GetText()}, nil
		default:
			return map[string]any{"code": m.GetCode(), "message": m.GetText()}, nil
		}
	}
	return nil, fmt.Errorf("an unexpected reply %T", replies[0])
}

func (r *lateRun) enqueue(op deviations.LateOp, rig *actorstest.Rig) error {
	msg, err := sessionlog.ParseMessage(op.Message)
	if err != nil {
		return err
	}
	splice, err := rig.Session.Lists().Append(sessionlog.Target(op.List), msg)
	if err != nil {
		return err
	}
	rig.Append(splice.Event().At(rig.Session.Next(), 1))
	r.bodies[op.Session+"/"+msg.ID] = msg
	return nil
}

// mark is what a claim of this message for this turn does to the inbox part.
func (r *lateRun) mark(rig *actorstest.Rig, msg sessionlog.Message, turn int64) {
	lists := rig.Session.Lists()
	if _, _, queued := lists.Find(msg.ID); queued {
		rig.ToParts(actors.InboxPart, actors.ClaimMarks{Turn: turn, IDs: []string{msg.ID}, NextStep: []string{msg.ID}})
	}
}

// admit records the message as the agent's history has it, whatever became of
// it in its list.
func (r *lateRun) admit(rig *actorstest.Rig, msg sessionlog.Message) {
	if splices, _, err := rig.Session.Lists().Take(msg.ID); err == nil {
		for _, s := range splices {
			rig.Append(s.Event().At(rig.Session.Next(), 1))
		}
	}
	rig.Append(sessionlog.NewEvent(sessionlog.TypeUserMessage, msg.Raw).Appended().At(rig.Session.Next(), 1))
	rig.ToParts(actors.InboxPart, actors.Admitted{IDs: []string{msg.ID}})
}

// withoutTexts drops the words of coded errors, which are not part of the contract.
func withoutTexts(expect []byte) []byte {
	var m map[string]any
	if json.Unmarshal(expect, &m) != nil {
		return expect
	}
	results, _ := m["results"].([]any)
	for _, res := range results {
		if e, ok := res.(map[string]any); ok && e["code"] != nil {
			delete(e, "message")
		}
	}
	return mustJSON(m)
}
