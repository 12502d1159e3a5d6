package actors_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

const askedA = `{"questions":[{"id":"a","question":"A?"}]}`

// an earlier decision wins, whatever the later ones would say.
func TestTheRowDecidesInOrder(t *testing.T) {
	pending, good := `{"pending":true,"callId":"c1"}`, `{"answers":[{"id":"a","selected":["x"]}]}`
	settled := []actors.ShownAnswer{{ID: "a", Selected: []string{"x"}}}
	for name, c := range map[string]struct {
		in     actors.RowInput
		word   actors.RowSummary
		state  actors.RowState
		action actors.RowAction
	}{
		"cancelled before running (Q-263)":    {actors.RowInput{Code: "ASK_CANCELLED", State: actors.RowRunning, Active: true}, actors.RowCancelled, actors.RowOK, actors.RowNoAction},
		"interrupted before running (Q-264)":  {actors.RowInput{Code: "ASK_ABORTED", State: actors.RowRunning, Active: true}, actors.RowInterrupted, actors.RowStopped, actors.RowNoAction},
		"running before a repair (Q-265)":     {actors.RowInput{Code: "TOOL_OUTCOME_UNKNOWN", State: actors.RowRunning, Settled: settled}, actors.RowWaiting, actors.RowRunning, actors.RowNoAction},
		"a repair before its text (Q-273)":    {actors.RowInput{Code: "TOOL_OUTCOME_UNKNOWN", State: actors.RowOK, Text: &good, Active: true}, actors.RowPending, actors.RowOK, actors.RowReopen},
		"a failure has no action (Q-274)":     {actors.RowInput{Code: "NO_PROVIDER", State: actors.RowError, Text: &pending, Active: true}, actors.RowGeneric, actors.RowError, actors.RowNoAction},
		"active before settled (Q-267)":       {actors.RowInput{State: actors.RowOK, Text: &pending, Active: true, Settled: settled}, actors.RowPending, actors.RowOK, actors.RowReopen},
		"settled before the text (Q-269)":     {actors.RowInput{State: actors.RowOK, Text: &good, Settled: []actors.ShownAnswer{}}, actors.RowAnswered, actors.RowOK, actors.RowNoAction},
		"a blocking call has no review":       {actors.RowInput{State: actors.RowOK, Text: &good}, actors.RowAnswered, actors.RowOK, actors.RowNoAction},
		"a timed call has one (Q-270)":        {actors.RowInput{State: actors.RowOK, Text: &good, Settled: settled}, actors.RowAnswered, actors.RowOK, actors.RowReview},
		"what is no text is any row (Q-272)":  {actors.RowInput{State: actors.RowOK}, actors.RowGeneric, actors.RowOK, actors.RowNoAction},
		"pending without its call id (Q-266)": {actors.RowInput{State: actors.RowOK, Text: new(`{"pending":true}`), Active: true}, actors.RowGeneric, actors.RowOK, actors.RowNoAction},
		"an item that is no record (Q-272)":   {actors.RowInput{State: actors.RowOK, Text: new(`{"answers":[{"selected":["x"]},1]}`)}, actors.RowGeneric, actors.RowOK, actors.RowNoAction},
	} {
		c.in.CallID, c.in.Arguments = "c1", askedA
		v := actors.RowOf(c.in)
		require.Equal(t, []any{c.word, c.state, c.action}, []any{v.Summary, v.State, v.Action}, name)
	}
}

// the queued reply that the session builds shows up in the row, on a row
// that waits and on one that was continued; for another call it does not.
func TestAQueuedReplyIsShownInItsRow(t *testing.T) {
	reply := sessionlog.ReplyMessage("m1", "c1", json.RawMessage(`[{"id":"a","question":"A?"}]`), json.RawMessage(`[{"id":"a","selected":[],"custom":"so"}]`))
	row := actors.RowInput{CallID: "c1", Arguments: askedA, State: actors.RowOK, Text: new(sessionlog.PendingText("c1")), Active: true, Reply: reply.Raw}
	v := actors.RowOf(row)
	require.Equal(t, actors.RowExpand, v.Action)
	require.Equal(t, [][]string{{"so"}}, v.Transcript.Answers)
	row.State, row.Text = actors.RowRunning, nil
	require.Equal(t, actors.RowRunning, actors.RowOf(row).State)
	require.Equal(t, actors.RowExpand, actors.RowOf(row).Action)
	row.CallID = "c2"
	require.Equal(t, actors.RowReopen, actors.RowOf(row).Action)
	row.Reply = nil
	require.Equal(t, actors.RowReopen, actors.RowOf(row).Action)
}

// the source that the session writes is one; a text never is.
func TestTheSourceOfAReply(t *testing.T) {
	reply := sessionlog.ReplyMessage("m1", "c1", json.RawMessage(`[]`), json.RawMessage(`[]`))
	call, ok := actors.ReplySource(reply.Raw)
	require.True(t, ok)
	require.Equal(t, "c1", call)
	for _, data := range []string{``, `1`, `{"source":"user-question-reply"}`, `{"source":{"kind":"user-question-reply","callId":"c1","outcome":"answered"}} {}`} {
		_, ok := actors.ReplySource(json.RawMessage(data))
		require.False(t, ok, data)
	}
}

// every mark, in every spelling, and nothing else.
func TestRecommendedLabels(t *testing.T) {
	for _, mark := range []string{"(Recommended)", "(RECOMMENDED)", "(推荐)", "（recommended）", "（推荐）"} {
		for _, label := range []string{"X" + mark, "X " + mark, "X\u3000" + mark + "\u00a0 "} {
			shown, recommended := actors.SplitLabel(label)
			require.True(t, recommended, label)
			require.Equal(t, "X", shown)
		}
	}
	for _, label := range []string{"X (recommend)", "X (recommended", "X（推荐)", "(Recommended) X", "X"} {
		shown, recommended := actors.SplitLabel(label)
		require.False(t, recommended, label)
		require.Equal(t, label, shown)
	}
}

// what stands around a reply is in the reader's language.
func TestAReplyInOtherWords(t *testing.T) {
	v := actors.ReplyOf(`{"questions":[{"id":"a","question":"A?"},{"id":"b","question":"B?"}],"answers":[{"id":"b","selected":["x"],"custom":"\ufeffy "}]}`,
		actors.ReplyWords{Skipped: "Übersprungen", Answer: "Antwort: "})
	require.Equal(t, "A?\nÜbersprungen\n\nB?\nAntwort: x, y", v.Clipboard)
	require.Equal(t, "x, y", v.Summary)
}

// a row's questions narrow to a plan as those of the log do.
func TestThePlanOfARow(t *testing.T) {
	q := choice("p", false, "Go", "No")
	detail := "the plan"
	q.Detail, q.Intent = &detail, &messages.Intent{Kind: "plan-review", Approve: "Go"}
	plan, ok := actors.PlanOf(actors.ShownOf([]*messages.Question{q}))
	require.True(t, ok)
	require.Equal(t, []string{"the plan", "Go", "No"}, []string{plan.Plan, plan.Approve.Label, plan.Decline.Label})
	q.MultiSelect = true
	_, ok = actors.PlanOf(actors.ShownOf([]*messages.Question{q}))
	require.False(t, ok)
}

// Whatever stands in the log can be shown, and its numbers agree.
func FuzzPresentation(f *testing.F) {
	f.Add(askedA, `{"answers":[{"id":"a","selected":["x"]}]}`, "x (Recommended)")
	f.Add(`{"questions":[{"id":"a","question":"A?","options":[{"label":"x"},1]}]}`, `{"pending":true,"callId":"c1"}`, "（推荐）")
	f.Add(`{"questions":[],"answers":[null]}`, `[`, "\xff(recommended)")
	f.Fuzz(func(t *testing.T, arguments, text, label string) {
		for _, state := range []actors.RowState{actors.RowOK, actors.RowRunning, actors.RowError} {
			for _, active := range []bool{true, false} {
				v := actors.RowOf(actors.RowInput{CallID: "c1", Arguments: arguments, State: state, Text: &text, Active: active,
					Reply: json.RawMessage(`{"content":[{"type":"text","text":` + quoted(text) + `}]}`)})
				require.LessOrEqual(t, v.Answered, v.Items)
				if said := v.Transcript; said != nil && said.Verdict == "" {
					require.Len(t, said.Answers, len(said.Questions))
					require.Equal(t, v.Items, len(said.Questions))
				}
				require.True(t, active || v.Action == actors.RowNoAction, "nothing to do for a call that is not known")
			}
		}
		for _, text := range []string{arguments, text} {
			v := actors.ReplyOf(text, actors.ReplyWords{Skipped: "-", Answer: "="})
			require.Len(t, v.Values, len(v.Questions))
			require.Equal(t, len(slices.Concat(v.Values...)) > 0, v.Summary != "-" || slices.Equal(slices.Concat(v.Values...), []string{"-"}))
		}
		shown, recommended := actors.SplitLabel(label)
		require.True(t, strings.HasPrefix(label, shown))
		require.True(t, recommended || shown == label)
	})
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}
