package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// collected is the result of collect_replies.
type collected struct {
	Replies []item `json:"replies"`
	// Token is passed as `after` once the list was acted on.
	Token   string `json:"token,omitempty"`
	More    int32  `json:"more,omitempty"`
	Message string `json:"message"`
}

// item is one reply as the model reads it.
type item struct {
	ReplyID     string          `json:"reply_id"`
	Kind        string          `json:"kind"`
	CallID      string          `json:"callId,omitempty"`
	Text        string          `json:"text,omitempty"`
	Questions   json.RawMessage `json:"questions,omitempty"`
	Answers     json.RawMessage `json:"answers,omitempty"`
	AnsweredAt  string          `json:"answered_at,omitempty"`
	Delivery    int32           `json:"delivery"`
	Redelivered bool            `json:"redelivered"`
	Note        string          `json:"note,omitempty"`
}

// collect is the tool collect_replies. A written response is no receipt: what
// it lists is listed again until `after` names its token.
func (d *Door) collect(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if no := forChild(lifeOf(ctx), "the replies belong to the root agent that asked; a delegated agent has none to collect"); no != nil {
		return fail(no, nil), nil
	}
	session, after, bad := readCollect(req.Params.Arguments)
	if bad != nil {
		return fail(bad, nil), nil
	}
	who, bad := d.callerOf(ctx, req, session, false)
	if bad != nil {
		return fail(bad, nil), nil
	}
	reply, err := d.speak(ctx, who, &messages.CollectRepliesRequest{Session: who.session, Root: Root, After: after, Correlation: who.correlation})
	if err != nil {
		return fail(err, who.meta("")), nil
	}
	r, ok := reply.(*messages.CollectRepliesResponse)
	if !ok {
		return fail(unexpected(reply), who.meta("")), nil
	}
	return succeed(compact(listOf(r)), who.meta("")), nil
}

func listOf(r *messages.CollectRepliesResponse) collected {
	out := collected{Replies: []item{}, Token: r.GetToken(), More: r.GetMore(), Message: "Nothing waits."}
	for _, reply := range r.GetReplies() {
		out.Replies = append(out.Replies, itemOf(reply))
	}
	if len(out.Replies) > 0 {
		out.Message = "Once you have acted on these, pass the token as `after` in your next " + toolCollect + "; until then they are listed again."
	}
	if out.More > 0 {
		out.Message += fmt.Sprintf(" %d more %s after that.", out.More, verb(int(out.More), "waits", "wait"))
	}
	return out
}

func itemOf(reply *messages.CollectedReply) item {
	out := item{ReplyID: reply.GetMessageId(), Kind: reply.GetKind(), CallID: reply.GetCallId(),
		Delivery: reply.GetDelivery(), Redelivered: reply.GetRedelivered()}
	if out.Kind == "message" {
		out.Text = reply.GetText()
	} else if b, ok := batchOf(reply.GetText()); ok {
		out.Questions, out.Answers = b.Questions, b.Answers
	} else {
		out.Text = reply.GetText()
	}
	if ms := reply.GetAnsweredMs(); ms > 0 {
		out.AnsweredAt = time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	if out.Redelivered {
		out.Note = "You may have seen reply " + out.ReplyID + " before. If you have acted on it, do not act again."
	}
	return out
}

// batch is what the text of a reply holds.
type batch struct {
	Questions json.RawMessage `json:"questions"`
	Answers   json.RawMessage `json:"answers"`
}

// batchOf reads the text of a reply; ok is false when it holds no answers.
func batchOf(text string) (b batch, ok bool) {
	var items []struct {
		ID       string   `json:"id"`
		Selected []string `json:"selected"`
	}
	if json.Unmarshal([]byte(text), &b) != nil || json.Unmarshal(b.Answers, &items) != nil || items == nil {
		return batch{}, false
	}
	if string(b.Questions) == "null" {
		b.Questions = nil
	}
	return b, true
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
