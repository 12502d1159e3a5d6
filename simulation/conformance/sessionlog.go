package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parleyrun/parley/sessionlog"
)

// RunProjection folds the events of one vector of projection.jsonl and compares the view. The stored
// state is read back too, so that a snapshot cannot say anything else.
func RunProjection(v []byte) (Verdict, string) {
	var vec struct {
		Events              []json.RawMessage
		InheritedEventCount int64
		Expect              json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	events, err := decodeAll(vec.Events)
	if err != nil {
		return Failed, err.Error()
	}
	q := sessionlog.NewQuestions(vec.InheritedEventCount)
	for _, ev := range events {
		q, _ = q.Fold(ev)
	}
	again, err := sessionlog.DecodeState(q.State())
	if err != nil {
		return Failed, fmt.Sprintf("the stored state is refused: %v", err)
	}
	if d := Compare(q.State(), again.State()); d != "" {
		return Failed, "the stored state differs: " + d
	}
	var view struct {
		Active  json.RawMessage `json:"active"`
		Settled json.RawMessage `json:"settled"`
	}
	if err := json.Unmarshal(q.State(), &view); err != nil {
		return Failed, err.Error()
	}
	got := fmt.Appendf(nil, `{"active":%s,"settled":%s}`, view.Active, view.Settled)
	return verdictOf(Compare(vec.Expect, got))
}

func decodeAll(lines []json.RawMessage) ([]sessionlog.Event, error) {
	var events []sessionlog.Event
	for _, line := range lines {
		ev, err := sessionlog.DecodeEvent(line)
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

type scanVector struct {
	Input struct {
		Text   string
		Base64 []byte
	}
	Expect json.RawMessage
}

func (v scanVector) file() []byte {
	if v.Input.Base64 != nil {
		return v.Input.Base64
	}
	return []byte(v.Input.Text)
}

// RunScan scans the file of one vector of kind scan and compares what was accepted (L-030 to L-035).
func RunScan(v []byte) (Verdict, string) {
	var vec scanVector
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	log, err := sessionlog.Scan(vec.file())
	if err != nil {
		kind := "fault"
		var corrupt *sessionlog.CorruptError
		var unsupported *sessionlog.UnsupportedError
		switch {
		case errors.As(err, &corrupt):
			kind = "corrupt"
		case errors.As(err, &unsupported):
			kind = "unsupported"
		}
		return compareError(vec.Expect, "error", kind, err)
	}
	h := log.Header
	plain := sessionlog.Header{Version: h.Version, ID: h.ID, CreatedAt: h.CreatedAt, CWD: h.CWD, ParentSession: h.ParentSession,
		IsSeeded: h.IsSeeded, SeedLength: h.SeedLength, Origin: h.Origin, DelegationDepth: h.DelegationDepth, AgentPreset: h.AgentPreset}
	header := map[string]json.RawMessage{}
	if err := json.Unmarshal(plain.Line(), &header); err != nil {
		return Failed, err.Error()
	}
	delete(header, "type")
	types := []string{}
	var last *int64
	for i := range log.Events {
		types = append(types, log.Events[i].Type)
		last = &log.Events[i].Seq
	}
	return compareValue(vec.Expect, map[string]any{
		"header": header, "events": len(log.Events), "lastSeq": last, "types": types,
		"committedBytes": log.CommittedBytes, "torn": log.Torn,
	})
}

// compareError compares only that there is an error, and its kind when the vector names one.
func compareError(expect json.RawMessage, key, kind string, err error) (Verdict, string) {
	var want map[string]json.RawMessage
	if json.Unmarshal(expect, &want) != nil || want[key] == nil {
		return Failed, fmt.Sprintf("$: want a result, got the error: %v", err)
	}
	if kind == "" {
		return Passed, ""
	}
	got, _ := json.Marshal(kind)
	if d := Compare(want[key], got); d != "" {
		return Failed, d + " from: " + err.Error()
	}
	return Passed, ""
}

func compareValue(expect json.RawMessage, got any) (Verdict, string) {
	text, err := json.Marshal(got)
	if err != nil {
		return Failed, err.Error()
	}
	return verdictOf(Compare(expect, text))
}

// RunSurface folds the events of one vector of kind surface and compares nodes and replacements (L-020 to L-025).
func RunSurface(v []byte) (Verdict, string) {
	var vec struct {
		Input  struct{ Events []json.RawMessage }
		Expect json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	events, err := decodeAll(vec.Input.Events)
	if err != nil {
		return compareError(vec.Expect, "error", "", err)
	}
	view, err := sessionlog.Surface(sessionlog.V0, events)
	if err != nil {
		return compareError(vec.Expect, "error", "", err)
	}
	return compareValue(vec.Expect, map[string]any{"nodes": view.Nodes, "replacements": replacementsOf(view)})
}

// RunRepair repairs the log of one vector of kind repair and compares the events it adds (L-050 to L-056). The texts
// are not part of the contract and stand as tags in the vectors.
func RunRepair(v []byte) (Verdict, string) {
	var vec struct {
		Input struct {
			Version, Cause string
			Events         []json.RawMessage
		}
		Expect json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	events, err := decodeAll(vec.Input.Events)
	if err != nil {
		return Failed, err.Error()
	}
	version := sessionlog.V3
	if vec.Input.Version == "v0" {
		version = sessionlog.V0
	}
	p := sessionlog.NewProgress(version)
	var lastTime int64
	for _, ev := range events {
		p = p.Fold(ev)
		lastTime = ev.Time
	}
	repaired := []json.RawMessage{}
	for _, ev := range p.Repair(vec.Input.Cause, int64(len(events)), lastTime) {
		line, err := tagText(ev.Line(), vec.Input.Cause)
		if err != nil {
			return Failed, err.Error()
		}
		repaired = append(repaired, line)
	}
	return compareValue(vec.Expect, repaired)
}

// tagText replaces the text of a repaired result by the tag of the vectors.
func tagText(line []byte, cause string) ([]byte, error) {
	tag := cause + "-started"
	if strings.Contains(string(line), sessionlog.CodeNotStarted) {
		tag = cause + "-not-started"
	}
	var rec any
	if err := json.Unmarshal(line, &rec); err != nil {
		return nil, err
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if text, ok := v["text"].(string); ok && text != "" {
				v["text"] = tag
			}
			for _, el := range v {
				walk(el)
			}
		case []any:
			for _, el := range v {
				walk(el)
			}
		}
	}
	walk(rec)
	return json.Marshal(rec)
}

type inboxOp struct {
	Op, ID             string
	Target             sessionlog.Target
	Turn               int64
	Start, DeleteCount float64
	Message            json.RawMessage
	Inserted           []json.RawMessage
}

// RunInbox restores the lists of one vector of kind inbox, plays its operations and compares, per step, the result, the
// logged splices, what observers hear, and both lists (L-060 to L-067).
func RunInbox(v []byte) (Verdict, string) {
	var vec struct {
		Input struct {
			Seed       []json.RawMessage
			SeedLength int64
			Ops        []inboxOp
		}
		Expect json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	seed, err := decodeAll(vec.Input.Seed)
	if err != nil {
		return compareError(vec.Expect, "error", "", err)
	}
	var lists sessionlog.Lists
	for _, ev := range seed {
		if ev.Seq < vec.Input.SeedLength {
			continue // an inherited inbox is not taken over
		}
		if lists, err = lists.Fold(ev); err != nil {
			return compareError(vec.Expect, "error", "", err)
		}
	}
	initial := map[string]any{"nextTurn": messageIDs(lists.NextTurn), "nextStep": messageIDs(lists.NextStep)}
	steps := []map[string]any{}
	for _, op := range vec.Input.Ops {
		var step map[string]any
		if lists, step, err = op.play(lists); err != nil {
			return Failed, err.Error()
		}
		steps = append(steps, step)
	}
	return compareValue(vec.Expect, map[string]any{"initial": initial, "steps": steps})
}

// play plans the operation, applies its splices through their events, and reports the step. The error is a fault of
// the vector or the algebra; a refusal is part of the step.
func (op inboxOp) play(lists sessionlog.Lists) (sessionlog.Lists, map[string]any, error) {
	plan, result, refusal := op.plan(lists)
	removed := []string{}
	logged := []json.RawMessage{}
	notified := [][]any{}
	for _, splice := range plan {
		for _, m := range lists.Removed(splice) {
			removed = append(removed, m.ID)
			if op.Op == "claim" {
				notified = append(notified, []any{"claimed", m.ID, op.Turn})
			} else {
				notified = append(notified, []any{"discarded", m.ID})
			}
		}
		for _, m := range splice.Inserted {
			notified = append(notified, []any{"inserted", m.ID})
		}
		ev, err := sessionlog.DecodeEvent(splice.Event().Line())
		if err != nil {
			return lists, nil, err
		}
		logged = append(logged, ev.Data)
		if lists, err = lists.Fold(ev); err != nil {
			return lists, nil, err
		}
	}
	step := map[string]any{"events": logged, "notified": notified,
		"nextTurn": messageIDs(lists.NextTurn), "nextStep": messageIDs(lists.NextStep)}
	switch {
	case refusal != nil:
		step["error"] = fmt.Sprintf("message %q is already pending", op.refusedID(refusal))
	case op.Op == "claim" || op.Op == "splice":
		step["result"] = removed
	default:
		step["result"] = result
	}
	return lists, step, nil
}

func (op inboxOp) refusedID(refusal error) string {
	var duplicate *sessionlog.DuplicateError
	if errors.As(refusal, &duplicate) {
		return duplicate.ID
	}
	return refusal.Error()
}

func (op inboxOp) plan(lists sessionlog.Lists) (plan []sessionlog.Splice, result any, refusal error) {
	var m sessionlog.Message
	if op.Message != nil {
		if m, refusal = sessionlog.ParseMessage(op.Message); refusal != nil {
			return nil, nil, refusal
		}
	}
	one := func(s sessionlog.Splice, ok bool, err error) []sessionlog.Splice {
		if refusal = err; err != nil || !ok {
			return nil
		}
		return []sessionlog.Splice{s}
	}
	switch op.Op {
	case "append":
		s, err := lists.Append(op.Target, m)
		plan = one(s, true, err)
	case "prepend":
		s, err := lists.Prepend(op.Target, m)
		plan = one(s, true, err)
	case "claim":
		plan = lists.Claim(op.Target)
	case "remove":
		s, _, ok := lists.Remove(op.ID)
		plan, result = one(s, ok, nil), ok
	case "replace":
		s, ok, err := lists.Replace(op.ID, m)
		plan, result = one(s, ok, err), ok
	case "clear":
		plan = lists.Clear()
	case "splice":
		var inserted []sessionlog.Message
		for _, raw := range op.Inserted {
			im, err := sessionlog.ParseMessage(raw)
			if err != nil {
				return nil, nil, err
			}
			inserted = append(inserted, im)
		}
		s, ok, err := lists.Splice(op.Target, op.Start, op.DeleteCount, inserted...)
		plan = one(s, ok, err)
	default:
		refusal = fmt.Errorf("unknown operation %q", op.Op)
	}
	return plan, result, refusal
}

func messageIDs(list []sessionlog.Message) []string {
	ids := []string{}
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}
