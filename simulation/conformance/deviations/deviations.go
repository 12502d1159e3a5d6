// Package deviations is the closed list of where Parley goes beyond the
// reference on purpose. Each deviation decides from a vector's input alone
// whether it applies, and what the vector would expect under it.
//
// It never imports the machines it judges: its models are written anew, small
// and slow, from the rules.
package deviations

import (
	"encoding/json"
	"slices"
)

// D2: a settled wait, or an aborted ask, answers at once and waits for no
// stubborn answerer.
//
// It applies to vectors tagged stubborn-answerer: there the answering side
// ignores the cancellation of its request. The rewrite finds the instant at
// which the wait's own end, or the caller's abort, comes before the chain's
// word, and puts the call's outcome there.
func D2(vector []byte) (expect []byte, applies bool) {
	var v struct {
		Mode, Agent, Signal, Answerer string
		Questions                     []json.RawMessage
		TimeoutMS                     float64 `json:"timeoutMs"`
		Script                        []step
		IdleMS                        int64 `json:"idleMs"`
		Tags                          []string
		Expect                        map[string]any
	}
	if json.Unmarshal(vector, &v) != nil || !slices.Contains(v.Tags, "stubborn-answerer") {
		return nil, false
	}
	m := d2Model{timed: v.Mode == "timed", timeout: int64(v.TimeoutMS), deadline: -1}
	if v.Signal == "aborted" || v.Agent != "root" && v.Agent != "none" || len(v.Questions) == 0 {
		return nil, false // refused before anything was asked of anybody
	}
	m.start("first", 0)
	m.passed = m.timed && v.Answerer == "absent"
	end := int64(0)
	for _, s := range v.Script {
		m.pass(s.At)
		if s.Do != "abort" || v.Signal != "none" {
			m.step(s)
		}
		end = s.At
	}
	m.pass(end + v.IdleMS)
	v.Expect["outcomes"] = m.outcomes
	v.Expect["timers"] = 0
	if m.running() {
		v.Expect["timers"] = 1
	}
	out, err := json.Marshal(v.Expect)
	return out, err == nil
}

type step struct {
	At          int64
	Do, ID, Tag string
	CallID      *string `json:"callId"`
	Answers     json.RawMessage
	Error       struct{ Kind, Code, Message string }
}

// d2Model is one call after another, with a deadline and a set of claims.
type d2Model struct {
	timed             bool
	timeout, deadline int64
	tag               string
	open              bool
	claims            []string
	outcomes          []map[string]any
	passed            bool
	earlier           []string // asks still in flight that no answer reaches any more
}

func (m *d2Model) start(tag string, at int64) {
	if m.open {
		m.earlier = append(m.earlier, m.tag)
	}
	m.tag, m.open, m.claims, m.passed = tag, true, nil, false
	if m.timed {
		m.deadline = at + m.timeout
	}
}

func (m *d2Model) running() bool { return m.open && m.timed && len(m.claims) == 0 }

// pass lets time go by: an unclaimed deadline ends the wait.
func (m *d2Model) pass(to int64) {
	if m.running() && m.deadline <= to {
		m.end(m.deadline, "result", map[string]any{"pending": true, "callId": "c1"})
	}
}

func (m *d2Model) end(at int64, key string, value any) {
	if m.open {
		m.open, m.claims = false, nil
		m.outcomes = append(m.outcomes, map[string]any{"tag": m.tag, "at": at, key: value})
	}
}

func coded(code string) map[string]any {
	return map[string]any{"name": "UserQuestionError", "code": code, "message": ""}
}

func (m *d2Model) step(s step) {
	if m.passed && (s.Do == "answer" || s.Do == "fail" || s.Do == "next") {
		return // the chain has come to its end; only the wait is left
	}
	switch s.Do {
	case "answer":
		m.end(s.At, "result", map[string]any{"answers": s.Answers})
	case "fail":
		m.fail(s)
	case "next":
		m.passed = m.timed
		if !m.timed {
			m.end(s.At, "error", coded("NO_PROVIDER"))
		}
	case "attach":
		if m.open && m.timed && (s.CallID == nil || *s.CallID == "c1") {
			m.claims = append(m.claims, s.ID)
		}
	case "release":
		before := len(m.claims)
		m.claims = slices.DeleteFunc(m.claims, func(id string) bool { return id == s.ID })
		if before > 0 && len(m.claims) == 0 && m.deadline < s.At { // the original deadline is back, and has passed
			m.end(s.At, "result", map[string]any{"pending": true, "callId": "c1"})
		}
	case "abort":
		for _, tag := range m.earlier {
			m.outcomes = append(m.outcomes, map[string]any{"tag": tag, "at": s.At, "error": coded("ASK_ABORTED")})
		}
		m.earlier = nil
		m.end(s.At, "error", coded("ASK_ABORTED"))
	case "dispose":
		if m.timed {
			m.end(s.At, "error", coded("ASK_ABORTED"))
		}
	case "again":
		if m.timed && m.open {
			m.outcomes = append(m.outcomes, map[string]any{"tag": s.Tag, "at": s.At, "error": coded("DUPLICATE_WAIT")})
			return
		}
		m.start(s.Tag, s.At)
	}
	m.pass(s.At)
}

func (m *d2Model) fail(s step) {
	switch {
	case s.Error.Kind == "plain":
		m.end(s.At, "error", map[string]any{"name": "Error", "code": nil, "message": s.Error.Message})
	case s.Error.Kind == "wire-bad":
		m.end(s.At, "thrown", map[string]any{"name": "UserQuestionError", "message": s.Error.Message})
	case m.timed && s.Error.Code == "ASK_TIMED_OUT":
		m.end(s.At, "result", map[string]any{"pending": true, "callId": "c1"})
	case m.timed && s.Error.Code == "NO_PROVIDER":
		m.passed = true
	default:
		m.end(s.At, "error", coded(s.Error.Code))
	}
}
