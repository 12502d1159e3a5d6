package conformance

import (
	"encoding/json"
	"math"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/conformance/deviations"
)

type fgVector struct {
	Mode, Agent, Signal, Answerer string
	Questions                     []fgQuestion
	TimeoutMS                     json.RawMessage `json:"timeoutMs"`
	Wait                          json.RawMessage
	Script                        []fgAction
	IdleMS                        int64 `json:"idleMs"`
	Tags                          []string
	Expect                        json.RawMessage
}

type fgQuestion struct {
	ID, Question string
	Detail       *string
	Options      []struct{ Label string }
	Intent       *struct{ Kind, Approve string }
}

type fgAction struct {
	At          int64
	Do, ID, Tag string
	CallID      *string `json:"callId"`
	Answers     json.RawMessage
	Error       *struct{ Kind, Code, Message string }
}

// fgCall is one ask or askTimed in flight.
type fgCall struct {
	tag   string
	bench *waitBench
	timed bool
	done  bool
	// passed: the chain of answerers has come to its end; only the wait is left.
	passed bool
	// thrown is the rejection to report when a plain error settles the call.
	thrown map[string]any
}

type fgRun struct {
	vec      fgVector
	now      actors.Now
	aborted  bool
	calls    []*fgCall
	latest   *fgCall // script actions reach the latest request only
	requests []map[string]any
	outcomes []map[string]any
	frames   []frame
	ends     []end
}

// RunForeground drives the checks, the wait machine and the settlement rules
// with one vector of foreground.jsonl. A vector whose
// answerer is stubborn may be improved on by deviation D2.
func RunForeground(v []byte) (Verdict, string) {
	var vec fgVector
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	r := &fgRun{vec: vec, now: actors.Now{Wall: wallStart}, aborted: vec.Signal == "aborted",
		requests: []map[string]any{}, outcomes: []map[string]any{}, frames: []frame{}, ends: []end{}}
	r.start("first")
	for _, a := range vec.Script {
		r.advance(a.At - r.now.Mono)
		r.act(a)
		r.advance(0)
	}
	r.advance(vec.IdleMS)
	got := mustJSON(map[string]any{"requests": r.requests, "outcomes": r.outcomes, "frames": r.frames,
		"ends": sortEnds(r.ends), "timers": r.timers()})
	difference := Compare(withoutWords(vec.Expect), withoutWords(got))
	if difference == "" {
		return Passed, ""
	}
	if expect, applies := deviations.D2(v); applies && Compare(withoutWords(expect), withoutWords(got)) == "" {
		return Improved, ""
	}
	return Failed, difference
}

func (r *fgRun) caller() actors.Caller {
	return map[string]actors.Caller{"none": actors.CallerNone, "no-registry": actors.CallerNoRegistry,
		"unknown": actors.CallerUnknown, "stale": actors.CallerStale, "child": actors.CallerChild,
		"root": actors.CallerRoot}[r.vec.Agent]
}

func (r *fgRun) timed() bool { return r.vec.Mode == "timed" }

// start makes one call: the checks in their order, then the dispatch.
func (r *fgRun) start(tag string) {
	var timeout int64
	if r.timed() {
		ms, whole := wholeNumber(r.vec.TimeoutMS)
		timeout = ms
		if err := actors.CheckAskTimed(ms, whole, r.caller(), r.waiting() != nil); err != nil {
			r.report(tag, err)
			return
		}
	}
	if err := actors.CheckAsk(r.aborted, r.questions(), r.caller()); err != nil {
		r.report(tag, err)
		return
	}
	wait := json.RawMessage(`{"callId":"c1","timed":true}`)
	if !r.timed() {
		if wait = r.vec.Wait; wait == nil {
			wait = json.RawMessage("null")
		}
	}
	r.requests = append(r.requests, map[string]any{"at": r.now.Mono, "scoped": r.vec.Agent != "none", "agent": r.vec.Agent != "none",
		"wait": wait, "signal": r.timed() || r.vec.Signal != "none", "questions": len(r.vec.Questions)})
	c := &fgCall{tag: tag, timed: r.timed()}
	c.bench = newWaitBench(timeout, c.timed, r.now, func(o actors.Outcome) { r.settle(c, o) })
	r.calls, r.latest = append(r.calls, c), c
	c.bench.resume()
	if r.vec.Answerer == "absent" {
		r.chain(actors.Outcome{Kind: actors.OutcomePassed}, nil)
	}
}

// waiting returns the registered wait of the call id, if any.
func (r *fgRun) waiting() *fgCall {
	for _, c := range r.calls {
		if c.timed && !c.done {
			return c
		}
	}
	return nil
}

func (r *fgRun) act(a fgAction) {
	switch a.Do {
	case "answer":
		r.chain(actors.Outcome{Kind: actors.OutcomeAnswered, Submit: &messages.SubmitRequest{}}, map[string]any{"answers": a.Answers})
	case "fail":
		out, thrown := failure(a)
		r.chain(out, thrown)
	case "next":
		r.chain(actors.Outcome{Kind: actors.OutcomePassed}, nil)
	case "attach":
		c := r.waiting()
		if c == nil || a.CallID != nil && *a.CallID != "c1" || actors.CheckLiveRoot(r.caller()) != nil {
			r.ends = append(r.ends, end{a.ID, r.now.Mono})
			return
		}
		c.bench.send(actors.OpenClaim{From: actors.Addr{Key: a.ID}})
	case "release":
		for _, c := range r.calls {
			c.bench.release(a.ID)
		}
	case "abort":
		if r.vec.Signal == "none" {
			return
		}
		r.aborted = true
		for _, c := range r.calls {
			c.bench.send(cancelled("aborted"))
		}
	case "dispose": // ends the waits; a call without one is the chain's alone
		for _, c := range r.calls {
			if c.timed {
				c.bench.send(cancelled("disposed"))
			}
		}
	case "again":
		r.start(a.Tag)
	}
	r.collect()
}

// failure reads a scripted rejection: coded, coded over the wire, or neither.
func failure(a fgAction) (actors.Outcome, map[string]any) {
	err := &messages.Error{Text: a.Error.Message}
	thrown := map[string]any{"error": map[string]any{"name": "Error", "code": nil, "message": a.Error.Message}}
	switch a.Error.Kind {
	case "question", "wire":
		err.Code = messages.Code(a.Error.Code)
		thrown = nil
	case "wire-bad":
		thrown = map[string]any{"thrown": map[string]any{"name": "UserQuestionError", "message": a.Error.Message}}
	}
	return actors.Outcome{Kind: actors.OutcomeFailed, Err: err}, thrown
}

// chain is what the chain of answerers came to, for the latest request. An
// outcome that settles nothing leaves the wait to its own end.
func (r *fgRun) chain(out actors.Outcome, result map[string]any) {
	c := r.latest
	if c == nil || c.done || c.passed {
		return
	}
	if kind, _ := actors.Settle(c.timed, out); kind == actors.ResultNone {
		c.passed = true
		return
	}
	c.thrown = result
	r.settle(c, out)
	c.bench.send(actors.Ended{End: actors.End{Settlement: &messages.Settlement{}, Response: &messages.AskResponse{}}})
	r.collect()
}

// settle records what the call returns, once.
func (r *fgRun) settle(c *fgCall, out actors.Outcome) {
	if c.done {
		return
	}
	c.done = true
	kind, err := actors.Settle(c.timed, out)
	entry := map[string]any{"tag": c.tag, "at": r.now.Mono}
	switch {
	case kind == actors.ResultAnswers:
		entry["result"] = c.thrown
	case kind == actors.ResultPending:
		entry["result"] = map[string]any{"pending": true, "callId": "c1"}
	case err.Code == "":
		for k, v := range c.thrown {
			entry[k] = v
		}
	default:
		entry["error"] = errorValue(err)
	}
	r.outcomes = append(r.outcomes, entry)
}

func (r *fgRun) report(tag string, err *messages.Error) {
	r.outcomes = append(r.outcomes, map[string]any{"tag": tag, "at": r.now.Mono, "error": errorValue(err)})
}

func errorValue(err *messages.Error) map[string]any {
	return map[string]any{"name": "UserQuestionError", "code": err.Code, "message": err.Text}
}

func (r *fgRun) advance(ms int64) {
	stop := r.now.Mono + ms
	for {
		var next *fgCall
		for _, c := range r.calls {
			if at := c.bench.timerAt; at >= 0 && at <= stop && (next == nil || at < next.bench.timerAt) {
				next = c
			}
		}
		if next == nil {
			break
		}
		r.moveTo(max(r.now.Mono, next.bench.timerAt))
		next.bench.advance(0)
		r.collect()
	}
	r.moveTo(stop)
}

func (r *fgRun) moveTo(mono int64) {
	r.now.Wall += mono - r.now.Mono
	r.now.Mono = mono
	for _, c := range r.calls {
		c.bench.now = r.now
	}
}

// collect takes the frames and ends of all benches in the order they came.
func (r *fgRun) collect() {
	for _, c := range r.calls {
		r.frames = append(r.frames, c.bench.frames...)
		r.ends = append(r.ends, c.bench.ends...)
		c.bench.frames, c.bench.ends = nil, nil
	}
}

func (r *fgRun) timers() int {
	n := 0
	for _, c := range r.calls {
		if c.bench.timerAt >= 0 {
			n++
		}
	}
	return n
}

func (r *fgRun) questions() []*messages.Question {
	var out []*messages.Question
	for _, q := range r.vec.Questions {
		m := &messages.Question{Id: q.ID, Question: q.Question, Detail: q.Detail}
		for _, o := range q.Options {
			m.Options = append(m.Options, &messages.Option{Label: o.Label})
		}
		if q.Intent != nil {
			m.Intent = &messages.Intent{Kind: q.Intent.Kind, Approve: q.Intent.Approve}
		}
		out = append(out, m)
	}
	return out
}

func wholeNumber(raw json.RawMessage) (int64, bool) {
	var f float64
	if json.Unmarshal(raw, &f) != nil || string(raw) == "null" || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// withoutWords drops the words of coded errors, which are not part of the
// contract, and sorts what has no order.
func withoutWords(expect []byte) []byte {
	var m map[string]any
	if json.Unmarshal(expect, &m) != nil {
		return expect
	}
	outcomes, _ := m["outcomes"].([]any)
	for _, o := range outcomes {
		entry, _ := o.(map[string]any)
		if e, ok := entry["error"].(map[string]any); ok && e["code"] != nil {
			delete(e, "message")
		}
	}
	return normalise(mustJSON(m))
}
