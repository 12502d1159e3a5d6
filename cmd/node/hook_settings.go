package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
)

// hookEvents are the events at which the bell is rung, in the order of a conversation.
var hookEvents = []string{"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"}

// hookSettings prints what makes the agent run this program as its hook.
func (c *cli) hookSettings(in hooking) error {
	if in.agent == openCode {
		return softly(c, usage("keep `parley hook opencode --watch` running beside its server", "opencode has no hook of that kind"))
	}
	self, err := os.Executable()
	if err != nil {
		return softly(c, err)
	}
	command := hookLine(self, in, c.node)
	if in.agent == codexAgent {
		c.printf("%s", codexHooks(command))
		return nil
	}
	c.printf("%s\n", claudeHooks(command, in.session == ""))
	return nil
}

// hookLine is the command of a hook, for a shell. The token is not part of it: settings are shown and shared.
func hookLine(self string, in hooking, node string) string {
	words := []string{self, "hook", in.agent}
	if in.session != "" {
		words = append(words, "--session", in.session)
	}
	if node != defaultNode {
		words = append(words, "--node", node)
	}
	for i, word := range words {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}

type hookGroup struct {
	Matcher string     `json:"matcher,omitempty"`
	Hooks   []hookJSON `json:"hooks"`
}

type hookJSON struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
}

// claudeHooks is the part of Claude Code's settings.json. With naming, the calls of our tools are given the session of
// their conversation.
func claudeHooks(command string, naming bool) []byte {
	hooks := []hookJSON{{"command", command, int(hookGrace.Seconds())}}
	groups := map[string][]hookGroup{}
	for _, event := range hookEvents {
		groups[event] = []hookGroup{{Hooks: hooks}}
	}
	groups["PostToolUse"][0].Matcher = "*"
	if naming {
		groups["PreToolUse"] = []hookGroup{{"mcp__parley__.*", hooks}}
	}
	var b bytes.Buffer
	_ = json.Indent(&b, jsonLine(map[string]any{"hooks": groups}), "", "  ") // it is JSON
	return b.Bytes()
}

// codexHooks is the part of Codex's config.toml.
func codexHooks(command string) string {
	var b strings.Builder
	for _, event := range hookEvents {
		b.WriteString("[[hooks." + event + "]]\n")
		if event == "PostToolUse" {
			b.WriteString("matcher = \".*\"\n")
		}
		b.WriteString("[[hooks." + event + ".hooks]]\ntype = \"command\"\n")
		// The escapes of a JSON text are those of a basic string of TOML.
		b.WriteString("command = " + string(jsonLine(command)) + "\ntimeout = " + strconv.Itoa(int(hookGrace.Seconds())) + "\n\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
