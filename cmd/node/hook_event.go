package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// eventBytesMax is how long the event of a hook may be. Agents put whole tool responses into it.
const eventBytesMax = 16 << 20

// hookEvent is what a hook needs of the event that the agent wrote to its stdin: Claude Code and Codex name the same
// fields. Unknown fields are ignored, and one of another type counts as absent.
type hookEvent struct {
	name       string // hook_event_name
	session    string // session_id, the agent's own
	subagent   string // agent_id: the event of a subagent
	tool       string // tool_name
	toolUse    string // tool_use_id
	input      json.RawMessage
	response   json.RawMessage
	stopActive bool // stop_hook_active: a Stop hook has spoken, and the turn went on
}

// readEvent reads the event of a hook.
func readEvent(text []byte) (hookEvent, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return hookEvent{}, errors.New("there is no event on stdin; an agent writes one")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return hookEvent{}, fmt.Errorf("the event on stdin is no JSON object: %w", err)
	}
	e := hookEvent{input: fields["tool_input"], response: fields["tool_response"]}
	for name, to := range map[string]*string{
		"hook_event_name": &e.name, "session_id": &e.session, "agent_id": &e.subagent, "tool_name": &e.tool, "tool_use_id": &e.toolUse,
	} {
		if json.Unmarshal(fields[name], to) != nil {
			*to = ""
		}
	}
	if json.Unmarshal(fields["stop_hook_active"], &e.stopActive) != nil {
		e.stopActive = false
	}
	return e, nil
}

// parleySession is the session that the MCP door gives to the conversation of the event.
func (e hookEvent) parleySession(agent string) (string, error) {
	if e.session == "" {
		return "", errors.New("the event has no session_id: name the session with --session")
	}
	session := strings.TrimSuffix(agent, "-code") + "-" + e.session
	if err := messages.CheckID("session_id", session); err != nil {
		return "", err
	}
	return session, nil
}

var ourTool = regexp.MustCompile(`^mcp__[^_]*parley[^_]*__(ask_user_question|collect_replies|withdraw_question)$`)

// named is the input of a call of one of our tools that is about to be made, with a session that it does not name yet.
func (e hookEvent) named(session string) (json.RawMessage, bool) {
	var input map[string]json.RawMessage
	if e.name != "PreToolUse" || !ourTool.MatchString(e.tool) || json.Unmarshal(e.input, &input) != nil || input == nil {
		return nil, false
	}
	if _, set := input["session"]; set {
		return nil, false
	}
	input["session"] = jsonLine(session)
	return jsonLine(input), true
}

// receipt is the client's id of the call whose response this event says has arrived, when the call was one of ours.
func (e hookEvent) receipt() string {
	ours := strings.HasSuffix(e.tool, "ask_user_question") || strings.HasSuffix(e.tool, "collect_replies")
	if e.name != "PostToolUse" || !ours || !arrived(e.response) || messages.CheckID("tool_use_id", e.toolUse) != nil {
		return ""
	}
	return e.toolUse
}

// arrived reports whether a tool_response holds a result of ours, which is one JSON object. Claude Code writes it as a
// text, Codex as the whole MCP result. Anything else is no receipt, and what was handed out is handed out again: the
// response of a call that Claude Code has moved to the background is a note that it still runs.
func arrived(response json.RawMessage) bool {
	var text string
	if json.Unmarshal(response, &text) == nil {
		return isObject([]byte(text))
	}
	var result struct {
		IsError    bool            `json:"isError"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if json.Unmarshal(response, &result) != nil {
		return false
	}
	var blocks []struct{ Text string }
	_ = json.Unmarshal(result.Content, &blocks) // the blocks before one of another type are kept, and no result of ours
	return !result.IsError && (isObject(result.Structured) || len(blocks) == 1 && isObject([]byte(blocks[0].Text)))
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Valid(text)
}

// audible reports whether the agent shows its model what a hook says at this event. A subagent is left in peace: the
// replies are for the conversation.
func (e hookEvent) audible(agent string) bool {
	switch e.name {
	case "SessionStart", "UserPromptSubmit", "PostToolUse":
		return e.subagent == ""
	case "PostToolUseFailure":
		return e.subagent == "" && agent == claudeCode
	case "Stop":
		// A turn that a Stop hook has continued may end: one that always speaks is cut off after some rounds.
		return !e.stopActive
	}
	return false
}

// hookAnswer is what a hook prints.
type hookAnswer struct {
	Specific *hookSpecific `json:"hookSpecificOutput,omitempty"`
	Decision string        `json:"decision,omitempty"`
	Reason   string        `json:"reason,omitempty"`
}

type hookSpecific struct {
	Event   string `json:"hookEventName"`
	Context string `json:"additionalContext,omitempty"`
	// Input takes the place of a tool's input.
	Input json.RawMessage `json:"updatedInput,omitempty"`
}

// ring words the bell as the agent shows it to its model.
func (e hookEvent) ring(agent string, n int) hookAnswer {
	switch {
	case n == 0:
		return hookAnswer{}
	case e.name == "Stop" && agent == codexAgent: // which refuses additional context there
		return hookAnswer{Decision: "block", Reason: bellText(n)}
	}
	return hookAnswer{Specific: &hookSpecific{Event: e.name, Context: bellText(n)}}
}

// readWithin reads all of r, of which it keeps the first max bytes: a writer whose pipe closes early might fail.
func readWithin(ctx context.Context, r io.Reader, limit int) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // left behind when the writer does not finish; the process ends soon after
		text, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
		if len(text) > limit {
			_, _ = io.Copy(io.Discard, r)
			err = messages.Refuse(messages.TooLarge, "the event on stdin has more than %d bytes", limit)
		}
		done <- read{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no whole event on stdin within %s", hookLimit)
	}
}
