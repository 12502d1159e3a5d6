package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	defaultListen = "127.0.0.1:7410"
	defaultNode   = "http://" + defaultListen
	secondsMax    = 2147483 // the longest foreground wait in seconds
	never         = -1
)

// variable is an environment variable that stands for a flag.
type variable struct{ name, flag, meaning string }

// variables lists them all. A flag on the command line wins over its variable.
var variables = []variable{
	{"PARLEY_NODE", "node", "the node that client verbs speak to"},
	{"PARLEY_TOKEN", "token", "token to send to the node; for serve: the operator's"},
	{"PARLEY_AGENT_TOKEN", "agent-token", "token that agents must send to the node"},
	{"PARLEY_ANSWERER_TOKEN", "answerer-token", "token that people must send to the node"},
	{"PARLEY_VIEWER_TOKEN", "viewer-token", "token that dashboards must send to the node"},
	{"PARLEY_LISTEN", "listen", "address that serve listens on"},
	{"PARLEY_JOURNAL", "journal", "journal file, or `memory`"},
	{"PARLEY_ALLOW_ORIGIN", "allow-origin", "web origins that may call the node, with commas"},
	{"PARLEY_DEFAULT_TIMEOUT", "default-timeout", "how long a call waits if its question names no time"},
	{"PARLEY_MODE", "mode", "timed or legacy"},
	{"PARLEY_CLAIM_GRACE", "claim-grace", "how long a call outlasts its deadline after a client that had it open was lost"},
	{"PARLEY_EXPIRY", "expiry", "which countdown ends a call: unanimous (the last) or first"},
	{"PARLEY_MCP_WAIT_MAX", "mcp-wait-max", "how long a call over MCP may wait"},
	{"PARLEY_QUERY_TOOLS", "query-tools", "true: agents may find and read past work of their own workspace"},
	{"PARLEY_RESULT_BYTES", "result-bytes", "how many bytes a query tool's result may have"},
	{"PARLEY_WORKSPACE_ROOT", "workspace-root", "directory in which links are followed to compare workspaces"},
	{"PARLEY_NO_SEARCH", "no-search", "true: make no text index"},
	{"PARLEY_PUBLIC_URL", "public-url", "where people reach the node, for links"},
	{"PARLEY_LOG_LEVEL", "log-level", "debug, info, warn or error"},
	{"PARLEY_LOG_FORMAT", "log-format", "text or json"},
	{"PARLEY_CONFIG", "config", "the configuration file, in place of those that are looked for"},
	{"PARLEY_ROOT", "root", "the name under which the agent's verbs speak"},
}

// fromEnvironment sets the flags that the command line left alone.
func (c *cli) fromEnvironment(flags *pflag.FlagSet) error {
	for _, v := range variables {
		f := flags.Lookup(v.flag)
		value, set := c.env(v.name)
		if f == nil || f.Changed || !set || value == "" {
			continue
		}
		if !utf8.ValidString(value) && v.flag != "journal" {
			return usage("correct or unset "+v.name, "%s is not UTF-8", v.name)
		}
		c.came(v.flag, origin{variable: v.name})
		if err := flags.Set(v.flag, value); err != nil {
			return usage("correct or unset "+v.name, "%s=%q: %s", v.name, value, plainly(cmp.Or(errors.Unwrap(err), err)))
		}
	}
	return nil
}

// plainly says what is wrong with a value in words that are not those of Go's library.
func plainly(err error) string {
	text := err.Error()
	at := strings.Index(text, "strconv.")
	switch {
	case at < 0:
		return text
	case strings.HasPrefix(text[at:], "strconv.ParseBool"):
		return text[:at] + "it is neither true nor false"
	}
	return text[:at] + "it is no number"
}

// checkEncoding refuses words that are not UTF-8 before they go anywhere. Names of files may be.
func checkEncoding(root *cobra.Command, words []string) error {
	cmd, _, err := root.Find(words)
	if err != nil || cmd.Name() == "conformance" || cmd.HasParent() && cmd.Parent().Name() == "sim" {
		return nil // something else is wrong; or they are files
	}
	for i, word := range words {
		if utf8.ValidString(word) {
			continue
		}
		name, _, with := strings.Cut(word, "=")
		if with = with && strings.HasPrefix(word, "--"); !with && i > 0 {
			name = words[i-1]
		}
		if flag := cmd.Flag(strings.TrimPrefix(name, "--")); !strings.HasPrefix(name, "--") || flag == nil || (!with && flag.NoOptDefVal != "") {
			name = fmt.Sprintf("the argument %q", word)
		}
		if name != "--journal" {
			return usage("write it in UTF-8", "%s is not UTF-8", name)
		}
	}
	return nil
}

// checkEmpty refuses an empty value of a flag that names something: an unset variable of a shell must not pass for a
// flag that is not there.
func checkEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		text, named := strings.TrimSpace(f.Value.String()), f.Value.Type() == "string" && f.Name != "reason"
		if named && text == "" || f.Value.Type() == "stringSlice" && text == "[]" {
			err = usage("was a variable of the shell not set? Without the flag its default is taken", "--%s is empty", f.Name)
		}
	})
	return err
}

// parseSpan reads a duration. A bare number is refused, because its unit is anybody's guess.
func parseSpan(flag, text string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n != 0 {
		return 0, usage(fmt.Sprintf("%s %ss; a bare %s could be seconds or minutes", flag, text, text),
			"%s %s has no unit", flag, text)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, usage("write a duration such as 90s, 5m, 1h30m", "%s %q is no duration", flag, text)
	}
	return d, nil
}

// parseTimeout reads a foreground wait in whole seconds; `never` is -1.
func parseTimeout(flag, text string) (int64, error) {
	if text == "never" {
		return never, nil
	}
	d, err := parseSpan(flag, text)
	if err != nil {
		t := asTrouble(err)
		t.remedy = strings.Replace(t.remedy, "1h30m", "1h30m or never", 1)
		return 0, t
	}
	if d%time.Second != 0 || d < time.Second || d > secondsMax*time.Second {
		return 0, usage("give whole seconds from 1s to 2147483s, or never", "%s %s is out of range", flag, text)
	}
	return int64(d / time.Second), nil
}

// parseWaitMax reads how long calls of MCP may wait; empty is 0, which is what is known of each client.
func parseWaitMax(flag, text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case "never":
		return never, nil
	}
	d, err := parseSpan(flag, text)
	if err == nil && d < time.Second {
		err = usage("give at least 1s, or never", "%s %s is out of range", flag, text)
	}
	return d, err
}

// oneOf checks a flag that takes one word of a few.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return usage("use one of: "+strings.Join(words, ", "), "%s %q is not known", flag, value)
}

// orNil keeps a nil pointer from becoming an error that is not nil.
func orNil(e *messages.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// onLine is what is wrong with a value as trouble with the command line that gave it.
func onLine(e *messages.Error) error {
	if e == nil {
		return nil
	}
	return usage(messages.Lookup(e.Code).Remedy, "%s", e.Text)
}

// checkIDs refuses ids before anything is sent; pairs are a name and its value.
func checkIDs(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := onLine(messages.CheckID(pairs[i], pairs[i+1])); err != nil {
			return err
		}
	}
	return nil
}
