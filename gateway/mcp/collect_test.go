package mcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

const lateReply = `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"q-1",` +
	`"questions":[{"id":"ship","question":"<Ship it?>"}],"answers":[{"id":"ship","selected":["Yes"],"custom":"but & slowly"}]}`

func TestCollectReplies(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
		require.Equal(t, "demo mcp token-1 call-7", m.GetSession()+" "+m.GetRoot()+" "+m.GetAfter()+" "+m.GetCorrelation())
		require.Empty(t, m.GetCallId())
		return &messages.CollectRepliesResponse{Token: "token-2", More: 3, Replies: []*messages.CollectedReply{
			{MessageId: "reply-1", Kind: "reply", CallId: "q-1", Text: lateReply, AnsweredMs: 1_700_000_000_000, Delivery: 1},
			{MessageId: "result-2", Kind: "result", CallId: "q-2", Text: `{"questions":null,"answers":[]}`, Delivery: 2, Redelivered: true},
			{MessageId: "m-3", Kind: "message", Text: `{"answers":[]}`, Delivery: 1},
			{MessageId: "reply-4", Kind: "reply", CallId: "q-4", Text: "unreadable", Delivery: 1},
		}}, nil
	})
	res := r.run(r.client("codex-mcp-client"), toolCollect, `{"after":"token-1","extra":true}`, "callId", "call-7")
	require.Equal(t, `{"replies":[`+
		`{"reply_id":"reply-1","kind":"reply","callId":"q-1","questions":[{"id":"ship","question":"<Ship it?>"}],`+
		`"answers":[{"id":"ship","selected":["Yes"],"custom":"but & slowly"}],"answered_at":"2023-11-14T22:13:20Z","delivery":1,"redelivered":false},`+
		`{"reply_id":"result-2","kind":"result","callId":"q-2","answers":[],"delivery":2,"redelivered":true,`+
		`"note":"You may have seen reply result-2 before. If you have acted on it, do not act again."},`+
		`{"reply_id":"m-3","kind":"message","text":"{\"answers\":[]}","delivery":1,"redelivered":false},`+
		`{"reply_id":"reply-4","kind":"reply","callId":"q-4","text":"unreadable","delivery":1,"redelivered":false}],`+
		`"token":"token-2","more":3,`+
		`"message":"Once you have acted on these, pass the token as `+"`after`"+` in your next collect_replies; until then they are listed again. 3 more wait after that."}`,
		said(t, res))
	require.Equal(t, map[string]any{"parley/session": "demo"}, map[string]any(visible(res)))
	require.Zero(t, r.write(), "a written list is no receipt")
	require.Empty(t, told[*messages.AcknowledgeRequest](r.node))
}

func TestCollectNothing(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	require.Equal(t, `{"replies":[],"message":"Nothing waits."}`, said(t, r.run(r.client("any"), toolCollect, `null`)))
}

func TestCollectRefusals(t *testing.T) {
	r := newStage(t)
	client := r.client("any")
	t.Run("no session is known", func(t *testing.T) {
		require.Contains(t, failureOf(t, r.run(client, toolCollect, `{}`)), "BAD_REQUEST: session is missing; pass the one that the result of ask_user_question named")
		require.Empty(t, r.node.told, "none is minted to find nothing in")
	})
	t.Run("Q-024 arguments", func(t *testing.T) {
		require.Contains(t, failureOf(t, r.run(client, toolCollect, `{"after":[],"session":"s"}`)), "INVALID_ARGS: after: must be a string, not a list")
	})
	t.Run("a token of another list", func(t *testing.T) {
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			return nil, messages.Refuse(messages.BadRequest, "after %q is no token of this session", m.GetAfter())
		})
		require.Contains(t, failureOf(t, r.run(client, toolCollect, `{"after":"x","session":"s"}`)), `Error: BAD_REQUEST: after "x" is no token of this session (`)
	})
	t.Run("a node that answers with something else", func(t *testing.T) {
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) { return &messages.SteerResponse{}, nil })
		require.Contains(t, failureOf(t, r.run(client, toolCollect, `{"session":"s"}`)), "BUG")
	})
}

func TestWithdraw(t *testing.T) {
	for _, tt := range []struct{ outcome, want string }{
		{"withdrawn", `{"withdrawn":true,"callId":"q-1","outcome":"withdrawn","message":"The question is withdrawn. It was not answered, and this is no permission."}`},
		{"aborted", `{"withdrawn":true,"callId":"q-1","outcome":"aborted","message":"The question is withdrawn. It was not answered, and this is no permission."}`},
		{"queued", `{"withdrawn":false,"callId":"q-1","outcome":"queued","message":"It was answered first: call collect_replies."}`},
		{"answered", `{"withdrawn":false,"callId":"q-1","outcome":"answered","message":"It was answered first; the answer is the result of its call."}`},
		{"failed", `{"withdrawn":false,"callId":"q-1","outcome":"failed","message":"It had ended before."}`},
	} {
		t.Run(tt.outcome, func(t *testing.T) {
			r := newStage(t)
			says(r.node, func(m *messages.WithdrawQuestionRequest) (messages.Reply, error) {
				require.Equal(t, "demo mcp q-1 claude-code moot", m.GetSession()+" "+m.GetRoot()+" "+m.GetCallId()+" "+m.GetBy()+" "+m.GetReason())
				return &messages.WithdrawQuestionResponse{Settlement: &messages.Settlement{Outcome: tt.outcome}}, nil
			})
			res := r.run(r.client("claude-code"), toolWithdraw, `{"callId":"q-1","session":"demo","reason":"moot"}`)
			require.Equal(t, tt.want, said(t, res))
			require.Equal(t, map[string]any{"parley/session": "demo", "parley/call": "q-1"}, map[string]any(visible(res)))
		})
	}
	t.Run("refused", func(t *testing.T) {
		r := newStage(t)
		client := r.client("any")
		require.Contains(t, failureOf(t, r.run(client, toolWithdraw, `{"session":"demo"}`)), "INVALID_ARGS: call_id: is required")
		require.Contains(t, failureOf(t, r.run(client, toolWithdraw, `{"call_id":"q"}`)), "BAD_REQUEST: session is missing")
		says(r.node, func(m *messages.WithdrawQuestionRequest) (messages.Reply, error) {
			return nil, messages.Refuse(messages.NotFound, "no call %q", m.GetCallId())
		})
		require.Contains(t, failureOf(t, r.run(client, toolWithdraw, `{"call_id":"q","session":"demo"}`)), `Error: NOT_FOUND: no call "q" (`)
	})
	t.Run("a reply waits already", func(t *testing.T) {
		r := newStage(t)
		says(r.node, func(m *messages.WithdrawQuestionRequest) (messages.Reply, error) {
			return nil, messages.Refuse(messages.ReplyQueued, "a reply is already queued for this question")
		})
		require.Equal(t, `{"withdrawn":false,"callId":"q-1","outcome":"queued","message":"It was answered first: call collect_replies."}`,
			said(t, r.run(r.client("any"), toolWithdraw, `{"call_id":"q-1","session":"demo"}`)))
	})
	t.Run("a client without a name", func(t *testing.T) {
		require.Equal(t, "mcp", byOf(caller{}))
	})
}
