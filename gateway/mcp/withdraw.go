package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// withdrawn is the result of withdraw_question.
type withdrawn struct {
	Withdrawn bool   `json:"withdrawn"`
	CallID    string `json:"callId"`
	Outcome   string `json:"outcome"`
	Message   string `json:"message"`
}

// withdraw is the tool withdraw_question: the agent takes its question back.
func (d *Door) withdraw(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if no := forChild(lifeOf(ctx), "the questions belong to the root agent that asked them; a delegated agent has none to withdraw"); no != nil {
		return fail(no, nil), nil
	}
	session, call, reason, bad := readWithdraw(req.Params.Arguments)
	if bad != nil {
		return fail(bad, nil), nil
	}
	who, bad := d.callerOf(ctx, req, session, false)
	if bad != nil {
		return fail(bad, nil), nil
	}
	reply, err := d.speak(ctx, who, &messages.WithdrawQuestionRequest{
		Session: who.session, Root: Root, CallId: call, By: byOf(who), Reason: reason})
	if messages.CodeOf(err) == messages.ReplyQueued { // no failure: somebody was first
		return succeed(compact(withdrawalOf(call, &messages.Settlement{Outcome: "queued"})), who.meta(call)), nil
	}
	if err != nil {
		return fail(err, who.meta(call)), nil
	}
	r, ok := reply.(*messages.WithdrawQuestionResponse)
	if !ok {
		return fail(unexpected(reply), who.meta(call)), nil
	}
	return succeed(compact(withdrawalOf(call, r.GetSettlement())), who.meta(call)), nil
}

// byOf says who withdraws, in words for people.
func byOf(who caller) string {
	if who.client == "" {
		return Root
	}
	return who.client
}

// withdrawalOf says who won: an answer that was accepted first stands.
func withdrawalOf(call string, s *messages.Settlement) withdrawn {
	out := withdrawn{CallID: call, Outcome: s.GetOutcome()}
	switch s.GetOutcome() {
	case "withdrawn", "aborted":
		out.Withdrawn, out.Message = true, "The question is withdrawn. It was not answered, and this is no permission."
	case "queued":
		out.Message = "It was answered first: call " + toolCollect + "."
	case "answered":
		out.Message = "It was answered first; the answer is the result of its call."
	default:
		out.Message = "It had ended before."
	}
	return out
}

func unexpected(reply messages.Reply) *messages.Error {
	return messages.Refuse(messages.Bug, "the node answered with a %T", reply)
}
