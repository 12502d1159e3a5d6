package main

import (
	"strings"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/stretchr/testify/require"
)

func questionNamed(session, call string) *messages.QuestionRow {
	row := shipIt("open")
	row.Session, row.CallId = session, call
	return row
}

// Words name a question as far as they name one only; a whole id wins over a beginning.
func TestWordsNameQuestions(t *testing.T) {
	rows := []*messages.QuestionRow{
		questionNamed("demo", "q-aaaa1111bbbb"), questionNamed("demo-2", "q-aaaa2222bbbb"), questionNamed("claude-0f3e", "q-cccc"),
		questionNamed("claude-9b1d", "q-cccc"), questionNamed("alone", "q-cccc1"), questionNamed("q-cccc1x", "q-dddd"),
	}
	for words, want := range map[string]string{
		"q-aaaa1111bbbb": "demo/q-aaaa1111bbbb",
		"q-aaaa1":        "demo/q-aaaa1111bbbb",
		"q-aaaa":         "demo/q-aaaa1111bbbb demo-2/q-aaaa2222bbbb",
		"q-a":            "",
		"q-cccc":         "claude-0f3e/q-cccc claude-9b1d/q-cccc",
		"q-cccc1":        "alone/q-cccc1",
		"q-cccc1x":       "q-cccc1x/q-dddd",
		"alone":          "alone/q-cccc1",
		"alon":           "alone/q-cccc1",
		"demo":           "demo/q-aaaa1111bbbb",
		"demo q-aaaa":    "demo/q-aaaa1111bbbb",
		"demo q-aaaa2":   "",
		"claude-9 q-ccc": "claude-9b1d/q-cccc",
		"claude q-cccc":  "claude-0f3e/q-cccc claude-9b1d/q-cccc",
		"nosuch":         "",
	} {
		var got []string
		for _, row := range meant(rows, strings.Fields(words)) {
			got = append(got, row.GetSession()+"/"+row.GetCallId())
		}
		require.Equal(t, want, strings.Join(got, " "), words)
	}
	require.Len(t, meant(rows, nil), len(rows))
	for _, row := range rows { // every question of a list can be named as the list says
		got := meant(rows, shortName(rows, row))
		require.Len(t, got, 1)
		require.Same(t, row, got[0])
	}
	require.Equal(t, []string{"q-aaaa11"}, shortName(rows, rows[0]))
	require.Equal(t, []string{"claude-0f3e", "q-cccc"}, shortName(rows, rows[2]))
}

// A call is answered by the beginning of its id; several that begin alike are listed, each on a line, and none is guessed.
func TestAnswerByTheBeginningOfAnID(t *testing.T) {
	var got *messages.SubmitRequest
	f := newFake(t)
	f.rows(questionNamed("demo", "q-aaaa1111bbbb"), questionNamed("claude-1b9f7f0e-94a3-4c1f-8b59-0d9f1f6a3d11", "q-aaaa2222bbbb"), questionNamed("other", "q-long"))
	on(f, messagesconnect.QuestionServiceSubmitProcedure, func(q *messages.SubmitRequest) (*messages.SubmitResponse, error) {
		got = q
		return &messages.SubmitResponse{Settlement: &messages.Settlement{Outcome: "answered"}}, nil
	})
	for _, words := range [][]string{{"q-aaaa2"}, {"claude-1b9f", "q-aaaa"}, {"claude-1b9f"}, {"claude-1b9f7f0e-94a3-4c1f-8b59-0d9f1f6a3d11", "q-aaaa2222bbbb"}} {
		r := runCLI(t, f.url, "", append(append([]string{"answer"}, words...), "--option", "Yes")...)
		require.Zero(t, r.exit, "%s: %s", words, r.err)
		require.Empty(t, r.err, "what stands in the command line is not repeated")
		require.Equal(t, "claude-1b9f7f0e-94a3-4c1f-8b59-0d9f1f6a3d11 q-aaaa2222bbbb", got.GetSession()+" "+got.GetCallId())
	}
	runCLI(t, f.url, "", "answer", "q-aaaa", "--option", "Yes").want(t, 2, "",
		"  1  q-aaaa11  Ship it?\n  2  q-aaaa22  Ship it?\n"+
			"error: 2 questions are open; say which one\nnext:  name it by the beginning of its call: parley answer q-aaaa11 --node "+f.url+" …\n")
	r := runCLI(t, f.url, "", "answer", "q-zzzz", "--option", "Yes")
	require.Equal(t, 25, r.exit)
	require.Contains(t, r.err, "no question that can be answered is named q-zzzz (NOT_FOUND)\nnext:  `parley questions")
	r = runCLI(t, f.url, "", "answer", "demo", "q-zzzz", "--option", "Yes")
	require.Equal(t, 25, r.exit)
}

// A label is named as people write it, where it means one option only; what it was taken for is said.
func TestLabelsAreNamedLoosely(t *testing.T) {
	ask := func(labels ...string) *messages.Question {
		q := &messages.Question{Id: "q1"}
		for _, label := range labels {
			q.Options = append(q.Options, &messages.Option{Label: label})
		}
		return q
	}
	review := ask("Yes", "No: wait for the review", "no idea", "Later")
	review.Options[3].Description = "next week"
	for _, c := range []struct {
		q          *messages.Question
		word, want string
	}{
		{review, "Yes", "Yes"},
		{review, "yes", "Yes"},
		{review, "No", "No: wait for the review"},
		{review, "no: WAIT for the review", "No: wait for the review"},
		{review, "later: next week", "Later"},
		{review, "2", "No: wait for the review"},
		{review, "0", ""},
		{review, "5", ""},
		{review, "+1", ""},
		{review, "-1", ""},
		{review, "maybe", ""},
		{review, "", ""},
		{ask("a", "A"), "a", "a"},
		{ask("Ab", "aB"), "ab", ""},
		{ask("No: now", "No: never"), "no", ""},
		{ask("10", "20", "2"), "2", "2"},
		{ask("10", "20"), "2", ""},
		{ask("3 retries", "5 retries", "none"), "3", ""},
		{ask("2: second", "1: first"), "1", "1: first"},
	} {
		got, found := labelOf(c.q, c.word)
		require.Equal(t, c.want != "", found, "%q of %v", c.word, labelsOf(c.q))
		if found {
			require.Equal(t, c.want, got)
		}
	}
	f := newFake(t)
	f.rows(shipIt("open"))
	on(f, messagesconnect.QuestionServiceSubmitProcedure, func(q *messages.SubmitRequest) (*messages.SubmitResponse, error) {
		require.Equal(t, []string{"No"}, q.GetAnswers()[0].GetSelected())
		return &messages.SubmitResponse{Settlement: &messages.Settlement{Outcome: "answered"}}, nil
	})
	for _, flags := range [][]string{{"--option", "2"}, {"--option", "no"}, {"--set", "q1=NO"}, {"--option", "No: wait for the review"}} {
		r := runCLI(t, f.url, "", append([]string{"answer"}, flags...)...)
		require.Zero(t, r.exit, r.err)
		require.Equal(t, "chosen: No\n", r.err, "%s", flags)
	}
	r := runCLI(t, f.url, "", "answer", "--option", "3")
	require.Equal(t, 21, r.exit)
	require.Contains(t, r.err, `"3" is no option of the question "q1" (BAD_ANSWER)`)
	require.Contains(t, r.err, "the labels are Yes | No;")
	r = runCLI(t, f.url, "", "answer")
	require.Contains(t, r.err, "use --option with one of Yes | No; or --text …, or --skip; or answer at "+f.url+"/answer/demo/q-1\n")
}
