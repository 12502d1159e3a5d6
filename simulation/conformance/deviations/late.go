package deviations

import (
	"encoding/json"
	"fmt"

	"github.com/parleyrun/parley/sessionlog"
)

// D1: a claimed reply is queued again after its turn's end, or after a restart
// . It stays in its list until it is admitted or
// withdrawn, so it goes on reserving its question; in the reference it is lost.
//
// It applies to vectors in which a known reply is claimed for a turn and that
// turn's end or a restart comes while it is neither admitted nor discarded.
// The rewrite plays the whole vector by the rule above.
func D1(vector []byte) (expect []byte, applies bool) {
	var v struct {
		Sessions []string
		Ops      []LateOp
	}
	if json.Unmarshal(vector, &v) != nil {
		return nil, false
	}
	m := d1Model{sessions: map[string]*d1Session{}, known: map[string]bool{}}
	for _, id := range v.Sessions {
		m.sessions[id] = &d1Session{questions: sessionlog.NewQuestions(0), queued: map[string]string{}, claimed: map[string]int64{}}
	}
	results := []any{}
	for _, op := range v.Ops {
		if op.Session == "" {
			op.Session = v.Sessions[0]
		}
		results = append(results, m.play(op, m.sessions[op.Session]))
	}
	views := map[string]json.RawMessage{}
	for id, s := range m.sessions {
		views[id] = s.view()
	}
	out, err := json.Marshal(map[string]any{"results": results, "views": views})
	return out, err == nil && m.applies
}

// LateOp is one operation of a vector of late-answer.jsonl.
type LateOp struct {
	Op, Session string
	Events      []json.RawMessage
	CallID      string `json:"callId"`
	Answers     json.RawMessage
	Steer       string
	List        string
	Message     json.RawMessage
	Turn        int64
}

// MessageID is the message an operation names.
func (op LateOp) MessageID() string {
	var id string
	_ = json.Unmarshal(op.Message, &id)
	return id
}

type d1Model struct {
	sessions map[string]*d1Session
	known    map[string]bool // claimed since the last restart, by "session/id"
	built    int
	applies  bool
}

type d1Session struct {
	questions sessionlog.Questions
	queued    map[string]string // message id → call id, until admitted or discarded
	claimed   map[string]int64  // message id → turn
	bodies    map[string]json.RawMessage
}

func (s *d1Session) view() json.RawMessage {
	var st struct {
		Active  json.RawMessage `json:"active"`
		Settled json.RawMessage `json:"settled"`
	}
	_ = json.Unmarshal(s.questions.State(), &st)
	return json.RawMessage(fmt.Sprintf(`{"active":%s,"settled":%s}`, st.Active, st.Settled))
}

func (s *d1Session) keep(m sessionlog.Message) {
	if s.bodies == nil {
		s.bodies = map[string]json.RawMessage{}
	}
	s.queued[m.ID], s.bodies[m.ID] = m.ReplyTo, m.Raw
}

func (m *d1Model) play(op LateOp, s *d1Session) any {
	switch op.Op {
	case "append":
		for _, line := range op.Events {
			if ev, err := sessionlog.DecodeEvent(line); err == nil {
				s.questions, _ = s.questions.Fold(ev)
			}
		}
	case "answer":
		return m.answer(op, s)
	case "enqueue":
		if msg, err := sessionlog.ParseMessage(op.Message); err == nil {
			s.keep(msg)
		}
	case "claim":
		if m.named(op, s) {
			m.known[op.Session+"/"+op.MessageID()] = true
			s.claimed[op.MessageID()] = op.Turn
			return map[string]any{"found": true}
		}
		return map[string]any{"found": false}
	case "discard":
		return m.discard(op, s)
	case "admit":
		return m.admit(op, s)
	case "turnEnd":
		m.turnEnd(op, s)
	case "restart":
		m.restart()
	}
	return nil
}

func (m *d1Model) answer(op LateOp, s *d1Session) any {
	call, ok := s.questions.Call(op.CallID)
	if !ok || !call.Continued {
		return map[string]any{"returns": false}
	}
	for _, to := range s.queued {
		if to == op.CallID {
			return map[string]any{"code": "REPLY_QUEUED", "message": ""}
		}
	}
	if _, ids, ok := sessionlog.ParseAnswers(op.Answers); !ok || !covers(call.IDs, ids) {
		return map[string]any{"code": "BAD_ANSWER", "message": ""}
	}
	m.built++
	msg := sessionlog.ReplyMessage(fmt.Sprintf("reply-%d", m.built), op.CallID, call.Questions, op.Answers)
	if op.Steer == "throws" {
		return map[string]any{"throws": "steer refused"}
	}
	s.keep(msg)
	return map[string]any{"returns": true, "message": msg.Raw}
}

func covers(want, got []string) bool {
	seen := map[string]bool{}
	for _, id := range got {
		seen[id] = true
	}
	for _, id := range want {
		if !seen[id] {
			return false
		}
	}
	return len(seen) == len(got) && len(got) == len(want)
}

// named: a message can be named while it is queued, and once claimed until the
// next restart.
func (m *d1Model) named(op LateOp, s *d1Session) bool {
	_, queued := s.queued[op.MessageID()]
	return queued || m.known[op.Session+"/"+op.MessageID()]
}

func (m *d1Model) discard(op LateOp, s *d1Session) any {
	id := op.MessageID()
	if !m.named(op, s) {
		return map[string]any{"found": false}
	}
	delete(s.queued, id)
	delete(s.claimed, id)
	return map[string]any{"found": true}
}

func (m *d1Model) admit(op LateOp, s *d1Session) any {
	id := op.MessageID()
	if !m.named(op, s) {
		return map[string]any{"found": false}
	}
	ev := sessionlog.NewEvent(sessionlog.TypeUserMessage, s.bodies[id]).Appended().At(0, 1)
	s.questions, _ = s.questions.Fold(ev)
	delete(s.queued, id)
	delete(s.claimed, id)
	return map[string]any{"found": true}
}

func (m *d1Model) turnEnd(op LateOp, s *d1Session) {
	for id, turn := range s.claimed {
		if turn == op.Turn {
			delete(s.claimed, id)
			if _, queued := s.queued[id]; queued {
				m.applies = true
			}
		}
	}
}

func (m *d1Model) restart() {
	m.known = map[string]bool{}
	for _, s := range m.sessions {
		for id := range s.claimed {
			if _, queued := s.queued[id]; queued {
				m.applies = true
			}
		}
		s.claimed = map[string]int64{}
	}
}
