package main

import (
	"bytes"
	"fmt"

	"github.com/parleyrun/parley/messages"
)

var kinds = map[messages.Kind]string{
	messages.RefusalKind: "a refusal: the answer is no, and is final for this request",
	messages.FaultKind:   "a fault: the world failed, and the same request may be sent again",
	messages.BugKind:     "a bug: Parley broke a rule of its own",
}

func errorsPage() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<!-- Written by internal/cmd/docs from messages.Registry; run make generate. -->

# Codes

Every error that Parley gives carries one of these codes. Codes are stable, and
programs may branch on them; the text beside a code is for people and may be
reworded at any time. A code that a client does not know is to be taken as a
fault.

The status of the command %[1]sparley%[1]s is %[2]d for success, %[3]d for an error without
a code, %[4]d for bad usage and %[5]d for a question that is pending; else it is the
exit status below.

| code | kind | Connect | HTTP | MCP | exit |
|---|---|---|---|---|---|
`, "`", messages.ExitOK, messages.ExitError, messages.ExitUsage, messages.ExitPending)
	for _, e := range messages.Registry {
		fmt.Fprintf(&out, "| [`%s`](#%s) | %s | `%s` | %d | %s | %d |\n", e.Code, anchor(e.Code), e.Kind, e.Connect, e.HTTP, mcp(e), e.Exit)
	}
	for _, e := range messages.Registry {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n- **Cause:** %s\n- **Remedy:** %s\n- **Kind:** %s.\n- **At the doors:** Connect `%s`, HTTP %d, MCP %s, exit status %d.\n",
			e.Code, e.Meaning, e.Cause, e.Remedy, kinds[e.Kind], e.Connect, e.HTTP, mcp(e), e.Exit)
	}
	return out.Bytes()
}

func mcp(e messages.Entry) string {
	if e.MCP == 0 {
		return "tool result"
	}
	return fmt.Sprint(e.MCP)
}

func anchor(c messages.Code) string { return string(bytes.ToLower([]byte(c))) }
