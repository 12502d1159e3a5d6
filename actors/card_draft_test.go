package actors_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

func choice(id string, multi bool, labels ...string) *messages.Question {
	q := &messages.Question{Id: id, Question: id + "?", MultiSelect: multi}
	for _, l := range labels {
		q.Options = append(q.Options, &messages.Option{Label: l})
	}
	return q
}

func threeQuestions() []*messages.Question {
	return []*messages.Question{choice("a", false, "x (Recommended)", "y"), choice("b", true, "x", "y"), choice("c", false)}
}

// a first option that is recommended may be preselected; one behind it never is.
func TestANewDraftMayChooseWhatIsRecommended(t *testing.T) {
	require.Equal(t, make([]actors.DraftItem, 3), actors.NewDraft(threeQuestions(), false).Items)
	d := actors.NewDraft(append(threeQuestions(), choice("d", false, "x", "y (Recommended)")), true)
	require.Equal(t, []actors.DraftItem{{Selected: []string{"x (Recommended)"}}, {}, {}, {}}, d.Items)
	require.Equal(t, actors.DraftUntouched, d.Wait)
}

// what an edit changes, and what it leaves.
func TestEditsOfADraft(t *testing.T) {
	start := actors.NewDraft(threeQuestions(), false)
	d := start.Write("no", false)
	require.Equal(t, actors.DraftItem{Custom: "no"}, d.Items[0])
	d = d.Choose("y", false)
	require.Equal(t, 1, d.Page, "a single choice goes on")
	require.Equal(t, actors.DraftItem{Selected: []string{"y"}}, d.Items[0], "and takes the place of the text")

	d = d.Choose("y", true).Choose("x", true).Write("and", true)
	require.Equal(t, actors.DraftItem{Selected: []string{"y", "x"}, Custom: "and"}, d.Items[1])
	off := d.Choose("y", true)
	require.Equal(t, []string{"x"}, off.Items[1].Selected)
	require.Equal(t, []string{"y", "x"}, d.Items[1].Selected, "a draft is a value")

	skipped, last := d.Skip()
	require.False(t, last)
	require.Equal(t, actors.DraftItem{Skipped: true}, skipped.Items[1])
	require.Equal(t, 2, skipped.Page)
	require.False(t, skipped.Go(1).Write("w", true).Items[1].Skipped)
	require.False(t, skipped.Go(1).Choose("x", true).Items[1].Skipped)
	_, last = skipped.Skip()
	require.True(t, last)

	require.Equal(t, actors.DraftItem{Custom: "t"}, d.Go(0).Write("t", false).Items[0], "a text takes the place of a single choice")
	require.Equal(t, 2, d.Go(2).Choose("z", false).Page, "the last page stays")
	require.Equal(t, start, actors.NewDraft(threeQuestions(), false), "nothing changed the first one")
}

// pages have bounds, and one without an answer is not left by going on.
func TestPagesOfADraft(t *testing.T) {
	d := actors.NewDraft(threeQuestions(), false)
	require.Equal(t, 0, d.Go(-1).Page)
	require.Equal(t, 2, d.Go(9).Page)
	_, _, err := d.Write(" \n", false).Continue()
	require.ErrorIs(t, err, actors.ErrUnanswered)
	next, last, err := d.Write("t", false).Continue()
	require.NoError(t, err)
	require.False(t, last)
	require.Equal(t, 1, next.Page)
	_, last, err = d.Go(2).Write("t", false).Continue()
	require.NoError(t, err)
	require.True(t, last)
}

// what is sent of mixed drafts, and what is not sent at all.
func TestTheBatchOfADraft(t *testing.T) {
	questions := threeQuestions()
	d := actors.NewDraft(questions, true).Go(1).Choose("y", true).Write("  both ", true)
	_, at, err := d.Go(0).Batch(questions)
	require.ErrorIs(t, err, actors.ErrIncomplete)
	require.Equal(t, 2, at.Page)

	d, _ = d.Go(2).Skip()
	batch, _, err := d.Batch(questions)
	require.NoError(t, err)
	both := "both"
	require.Equal(t, []*messages.Answer{
		{Id: "a", Selected: []string{"x (Recommended)"}}, {Id: "b", Selected: []string{"y"}, Custom: &both}, {Id: "c"},
	}, batch)

	single := actors.Draft{Items: []actors.DraftItem{{Selected: []string{"x"}, Custom: "t"}}}
	batch, _, err = single.Batch(questions[:1])
	require.NoError(t, err)
	require.Empty(t, batch[0].GetSelected())
	require.Equal(t, "t", batch[0].GetCustom())
}

// a stored draft comes back whole, or not at all.
func TestStoredDrafts(t *testing.T) {
	d := actors.NewDraft(threeQuestions(), true).Go(1).Choose("<y>", true)
	d.Wait = actors.DraftHeld
	require.JSONEq(t, `{"page":1,"drafts":[{"selected":["x (Recommended)"],"custom":"","skipped":false},
		{"selected":["<y>"],"custom":"","skipped":false},{"selected":[],"custom":"","skipped":false}],"wait":"waiting"}`, string(d.Store()))
	back, ok := actors.ReadDraft(d.Store(), 3)
	require.True(t, ok)
	require.Equal(t, d, back)

	for name, stored := range map[string]string{
		"no JSON":               `{`,
		"a list":                `[]`,
		"no page":               `{"drafts":[{"selected":[],"custom":"","skipped":false}]}`,
		"a page that is beyond": `{"page":1,"drafts":[{"selected":[],"custom":"","skipped":false}]}`,
		"half a page":           `{"page":0.5,"drafts":[{"selected":[],"custom":"","skipped":false}]}`,
		"a page in words":       `{"page":"0","drafts":[{"selected":[],"custom":"","skipped":false}]}`,
		"a page before":         `{"page":-1,"drafts":[{"selected":[],"custom":"","skipped":false}]}`,
		"too few":               `{"page":0,"drafts":[]}`,
		"too many":              `{"page":0,"drafts":[{"selected":[],"custom":"","skipped":false},{"selected":[],"custom":"","skipped":false}]}`,
		"a number for a label":  `{"page":0,"drafts":[{"selected":[1],"custom":"","skipped":false}]}`,
		"no text":               `{"page":0,"drafts":[{"selected":[],"skipped":false}]}`,
		"no flag":               `{"page":0,"drafts":[{"selected":[],"custom":"","skipped":0}]}`,
		"another wait":          `{"page":0,"drafts":[{"selected":[],"custom":"","skipped":false}],"wait":"focused"}`,
		"a null wait":           `{"page":0,"drafts":[{"selected":[],"custom":"","skipped":false}],"wait":null}`,
	} {
		_, ok := actors.ReadDraft(json.RawMessage(stored), 1)
		require.False(t, ok, name)
	}
	_, ok = actors.ReadDraft(json.RawMessage(`{"page":0.0,"drafts":[{"selected":[],"custom":"","skipped":false,"more":1}],"more":1}`), 1)
	require.True(t, ok)
}

// Whatever stands in the store, what is read of it can be stored and read again.
func FuzzReadDraft(f *testing.F) {
	f.Add([]byte(`{"page":1,"drafts":[{"selected":["x"],"custom":"t","skipped":false},{"selected":[],"custom":"","skipped":true}],"wait":"editing"}`), 2)
	f.Add([]byte(`{"page":0,"drafts":[{"selected":["\ud800"],"custom":"","skipped":false}]}`), 1)
	f.Add([]byte(`{"page":1e999,"drafts":[]}`), 0)
	f.Fuzz(func(t *testing.T, stored []byte, questions int) {
		d, ok := actors.ReadDraft(stored, questions)
		if !ok {
			return
		}
		require.Len(t, d.Items, questions)
		require.Less(t, d.Page, questions)
		again, ok := actors.ReadDraft(d.Store(), questions)
		require.True(t, ok)
		require.Equal(t, d, again)
	})
}
