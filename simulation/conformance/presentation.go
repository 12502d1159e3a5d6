package conformance

import (
	"encoding/json"
	"fmt"

	"github.com/parleyrun/parley/actors"
)

// presented is a vector of presentation.jsonl: what is shown of an input.
func presented[In any](show func(In) any) runner {
	return plain(func(v []byte) (Verdict, string) {
		var vec struct {
			Input  In
			Expect json.RawMessage
		}
		if err := json.Unmarshal(v, &vec); err != nil {
			return Failed, err.Error()
		}
		return verdictOf(Compare(vec.Expect, mustJSON(show(vec.Input))))
	})
}

type labelInput struct{ Label string }

// showLabel is an option's label.
func showLabel(in labelInput) any {
	label, recommended := actors.SplitLabel(in.Label)
	return map[string]any{"label": label, "recommended": recommended}
}

type planInput struct{ Questions []actors.ShownQuestion }

// showPlan is a plan review, or nothing of the kind.
func showPlan(in planInput) any {
	plan, ok := actors.PlanOf(in.Questions)
	if !ok {
		return nil
	}
	return plan
}

type sourceInput struct{ Data json.RawMessage }

// showSource is the call that a message replies to.
func showSource(in sourceInput) any {
	callID, ok := actors.ReplySource(in.Data)
	if !ok {
		return nil
	}
	return map[string]any{"callId": callID, "outcome": "answered"}
}

type replyInput struct{ Text string }

// showReply is a late reply in the conversation.
func showReply(in replyInput) any {
	return actors.ReplyOf(in.Text, actors.ReplyWords{Skipped: "Skipped", Answer: "Answer: "})
}

type rowInput struct {
	CallID, Args string
	Code         *string
	ModelState   actors.RowState
	Text         *string
	Answerable   bool
	Settled      *struct{ Answers []actors.ShownAnswer }
	QueuedReply  json.RawMessage
}

// showRow is a question call in the transcript.
func showRow(in rowInput) any {
	row := actors.RowInput{CallID: in.CallID, Arguments: in.Args, State: in.ModelState, Text: in.Text, Active: in.Answerable}
	if in.Code != nil {
		row.Code = *in.Code
	}
	if in.Settled != nil {
		row.Settled = append([]actors.ShownAnswer{}, in.Settled.Answers...)
	}
	if string(in.QueuedReply) != "null" {
		row.Reply = in.QueuedReply
	}
	v := actors.RowOf(row)
	summary, action := string(v.Summary), any(v.Action)
	if v.Summary == actors.RowAnswered {
		summary = fmt.Sprintf("answered %d/%d", v.Answered, v.Items)
	}
	if v.Action == actors.RowNoAction {
		action = nil
	}
	return map[string]any{"summary": summary, "state": v.State, "transcript": showTranscript(v.Transcript), "action": action}
}

func showTranscript(t *actors.RowTranscript) any {
	switch {
	case t == nil:
		return nil
	case t.Verdict != "":
		return map[string]any{"kind": "unanswered", "questions": t.Questions, "verdict": t.Verdict}
	}
	pairs := []any{}
	for i, q := range t.Questions {
		pairs = append(pairs, map[string]any{"id": q.ID, "question": q.Question, "answers": t.Answers[i]})
	}
	return map[string]any{"kind": "answered", "questions": pairs}
}
