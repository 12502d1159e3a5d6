package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

const otherQuestion = `{"questions":[{"id":"q","question":"Delete it?"}]}`

func withArguments(text string) func(*messages.AskRequest) {
	return func(a *messages.AskRequest) { a.Arguments = text }
}

// An answer must never reach a question it was not given to: neither while the
// first one waits, nor after it settled, nor after a restart.
func TestAnAttemptAsksOneThing(t *testing.T) {
	r := newRig(t)
	r.ask("c1")
	r.refused(messages.BadRequest, askReq("c1", withArguments(otherQuestion)))
	r.ask("c1", withArguments(`{"timeout":7,"questions":[{"question":"?","id":"q"}]}`)) // the same questions, said otherwise
	r.ask("c1", func(a *messages.AskRequest) { a.Arguments, a.Resume = "", true })
	r.accepted("answered", submitReq("c1", "s1"))
	r.refused(messages.BadRequest, askReq("c1", withArguments(otherQuestion)))
	r.Restart()
	r.refused(messages.BadRequest, askReq("c1", withArguments(otherQuestion)))
	res, ok := r.do(askReq("c1")).(*messages.AskResponse)
	require.True(t, ok)
	require.NotNil(t, res.GetAnswered())
}

// Promise 3: a batch of nothing but skips has an outcome of its own.
func TestABatchOfSkipsIsNoAnswer(t *testing.T) {
	empty := ""
	for name, tc := range map[string]struct {
		answer  *messages.Answer
		outcome string
	}{
		"a skip":         {&messages.Answer{Id: "q"}, "skipped"},
		"empty text":     {&messages.Answer{Id: "q", Custom: &empty}, "answered"},
		"a chosen label": {&messages.Answer{Id: "q", Selected: []string{"yes"}}, "answered"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.ask("c1")
			r.accepted(tc.outcome, submitReq("c1", "s1", tc.answer))
		})
	}
}

// Whoever loses is told who won: also to a queued reply, and to a withdrawal.
func TestLosersLearnWhoWon(t *testing.T) {
	r := newRig(t)
	r.pend("c1")
	r.accepted("queued", submitReq("c1", "s1"))
	no := r.refused(messages.ReplyQueued, submitReq("c1", "s2"))
	require.Equal(t, "ada", no.GetWinner().GetBy())
	require.Equal(t, "s1", no.GetWinner().GetSubmissionId())

	asker := r.ask("c2")
	r.do(&messages.WithdrawQuestionRequest{Session: "s1", CallId: "c2", By: "bob", Reason: "found it"})
	told, ok := r.last(asker).(*messages.Refusal)
	require.True(t, ok)
	require.Equal(t, "bob", told.GetWinner().GetBy())
	again, ok := r.do(askReq("c2")).(*messages.Refusal)
	require.True(t, ok)
	require.Equal(t, "found it", again.GetWinner().GetReason(), "also when it asks again")
}

// Whoever admits "all" asks for the names first: it waits for nothing, and activates no bell.
func TestAwaitInboxNow(t *testing.T) {
	r := newRig(t)
	now := func() *messages.AwaitInboxResponse {
		res, ok := r.do(&messages.AwaitInboxRequest{Session: "s1", Root: "root", Now: true}).(*messages.AwaitInboxResponse)
		require.True(t, ok)
		return res
	}
	require.Empty(t, now().GetMessageIds())
	r.do(&messages.SteerRequest{Session: "s1", MessageId: "turn", List: "next-turn"})
	r.do(&messages.SteerRequest{Session: "s1", MessageId: "step"})
	require.Equal(t, []string{"step", "turn"}, now().GetMessageIds())
	require.Zero(t, r.Parts(actors.InboxPart))
	r.refused(messages.CallerNotLive, &messages.AwaitInboxRequest{Session: "s1", Root: "other", Now: true})
}
