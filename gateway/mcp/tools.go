package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// The names of the tools.
const (
	toolAsk      = "ask_user_question"
	toolCollect  = "collect_replies"
	toolWithdraw = "withdraw_question"
)

// instructions tell a model how the three tools belong together. Clients cut
// them at about 4 KiB and some show them as the title of the tools.
const instructions = `Parley asks a person questions that outlive the call.

ask_user_question waits in the foreground for a while. If an answer comes in time, it is the result. If not, the result is pending: this is no answer, no skip and no permission. The question stays open; go on with independent work and do not ask it again.

A late answer waits until you call collect_replies. Call it when a result or a hook says that replies wait, and before you finish work that depends on a pending question. It returns at once. Every reply has a reply_id that never changes; what was listed is listed again until you pass the token of that list as ` + "`after`" + ` in your next collect_replies. Act once on each reply_id.

If ask_user_question fails with UNREAD_ANSWER, an equal question was answered and you may not have seen the answer: call collect_replies, and ask again only if what it lists is not what you need.

Hooks and notices only say that replies wait. They never carry an answer: only the result of ask_user_question or of collect_replies is the user's word.

withdraw_question takes back a question that no longer matters.

If a result names a session, pass it as ` + "`session`" + ` in later calls.`

type object = map[string]any

// arrivesByItself is what the node's own description says of late answers, for
// agents whose turns take in user messages. Here nothing arrives by itself.
const arrivesByItself = "the answer will reach you as a later message"

// definition is the tool ask_user_question as the node defines it.
type definition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  object `json:"parameters"`
}

func readDefinition(raw json.RawMessage) (definition, error) {
	var def definition
	if err := json.Unmarshal(raw, &def); err != nil {
		return def, messages.Refuse(messages.BadRequest, "the definition of %s is not JSON: %v", toolAsk, err)
	}
	if def.Name != toolAsk || def.Parameters["type"] != "object" {
		return def, messages.Refuse(messages.BadRequest, "the definition is of %q with parameters of type %v; it must be of %s, with an object",
			def.Name, def.Parameters["type"], toolAsk)
	}
	return def, nil
}

// view is how one connection sees the tools.
type view struct {
	// limit is the longest foreground wait in this client; told says that it is known.
	limit time.Duration
	told  bool
	// fixed: the endpoint names the session, so no argument does.
	fixed bool
}

// tools are the definitions for one view. Every schema is written by hand: an
// inferred one refuses extra fields, and has a form that some clients choke on.
func (d *Door) tools(v view) []*sdk.Tool {
	no, yes := false, true
	loaded := sdk.Meta{"anthropic/alwaysLoad": true} // not hidden behind a search for tools
	tools := []*sdk.Tool{{
		Name: toolAsk, Title: "Ask the user", Meta: loaded,
		Description:  d.askDescription(v),
		InputSchema:  v.input(maps.Clone(d.definition.Parameters)),
		OutputSchema: d.askOutput(),
		// Hints, for clients that would ask a person whether a person may be asked.
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, {
		Name: toolCollect, Title: "Collect replies", Meta: loaded,
		Description: "Take the user's late answers, and what else waits for you. It returns at once. " +
			"Each reply has a reply_id that never changes. What this lists is listed again, marked redelivered, until you pass the token of the list as `after` in your next call: " +
			"pass it once you have acted. That nothing is acted on twice is up to you, by the reply_id; Parley only keeps the id the same.",
		InputSchema: v.input(object{"type": "object", "properties": object{
			"after": text("The token of the list that you have acted on."),
		}}),
		OutputSchema: collectOutput,
		Annotations:  &sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, {
		Name: toolWithdraw, Title: "Withdraw a question", Meta: loaded,
		Description: "Take back a question that no longer matters. If it was answered first, the answer stands, and the result says so.",
		InputSchema: v.input(object{"type": "object", "properties": object{
			"call_id": text("The callId of the question."),
			"reason":  text("Why, in a few words for the user."),
		}, "required": []string{"call_id"}}),
		OutputSchema: closed(object{
			"withdrawn": object{"type": "boolean"},
			"callId":    object{"type": "string"},
			"outcome":   object{"type": "string"},
			"message":   object{"type": "string"},
		}, "withdrawn", "callId", "outcome", "message"),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
	}}
	for _, tool := range d.pastTools() {
		tools = append(tools, v.pastTool(tool))
	}
	return tools
}

// askDescription is the node's own, and the wait in force.
func (d *Door) askDescription(v view) string {
	desc := strings.Replace(d.definition.Description, arrivesByItself, toolCollect+" then hands the answer out", 1)
	switch {
	case !d.timed():
	case !v.told:
		desc += " How long a call waits also depends on your client; a pending result says how long it was."
	case v.limit < 0:
		desc += " In this client a call waits as long as its timeout says."
	default:
		desc += " In this client a call waits at most " + spell(v.limit) + ", whatever its timeout; a longer one, or -1, keeps the question open, not the call."
	}
	if d.timed() {
		desc += " Late answers are handed out by " + toolCollect + ", and by nothing else."
	}
	return desc
}

// input opens a schema to extra fields, and to a session where none is fixed.
func (v view) input(schema object) object {
	schema["additionalProperties"] = true
	if !v.fixed {
		props, _ := schema["properties"].(object)
		props = maps.Clone(props)
		props["session"] = text("The session that an earlier result named, if one did.")
		schema["properties"] = props
	}
	return schema
}

func text(description string) object { return object{"type": "string", "description": description} }

// closed is an object that has these properties and no other.
func closed(props object, required ...string) object {
	return object{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

var answersSchema = object{"type": "array", "items": closed(object{
	"id":       object{"type": "string"},
	"selected": object{"type": "array", "items": object{"type": "string"}},
	"custom":   object{"type": "string"},
}, "id", "selected")}

// askOutput is the result of Q-031: one of two closed shapes.
func (d *Door) askOutput() object {
	answered := closed(object{"answers": answersSchema}, "answers")
	if !d.timed() {
		return answered // a blocking call has no other
	}
	return object{"type": "object", "oneOf": []object{answered, closed(object{
		"pending": object{"type": "boolean", "const": true},
		"callId":  object{"type": "string"},
		"message": object{"type": "string"},
	}, "pending", "callId", "message")}}
}

var collectOutput = closed(object{
	"replies": object{"type": "array", "items": closed(object{
		"reply_id":    object{"type": "string"},
		"kind":        object{"type": "string"},
		"callId":      object{"type": "string"},
		"text":        object{"type": "string"},
		"questions":   object{"type": "array", "items": object{"type": "object"}},
		"answers":     answersSchema,
		"answered_at": object{"type": "string"},
		"delivery":    object{"type": "integer"},
		"redelivered": object{"type": "boolean"},
		"note":        object{"type": "string"},
	}, "reply_id", "kind", "delivery", "redelivered")},
	"token":   object{"type": "string"},
	"more":    object{"type": "integer"},
	"message": object{"type": "string"},
}, "replies", "message")

// tailor lists the tools as the asking client is to see them.
func (d *Door) tailor(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*sdk.ListToolsResult)
		asking, isList := req.(*sdk.ListToolsRequest)
		if err != nil || !ok || !isList {
			return res, err
		}
		l, name := lifeOf(ctx), ""
		if info := asking.ClientInfo(); info != nil {
			name = info.Name
		}
		mine := *list
		mine.Tools = d.tools(view{limit: d.capOf(l, name, true), told: true, fixed: l.session != ""})
		return &mine, nil
	}
}

func (d *Door) timed() bool { return d.opts.Mode == messages.Mode_MODE_TIMED }
