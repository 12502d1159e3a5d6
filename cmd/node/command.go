package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// printfMax is how long arguments from stdin may be to stand in a command to copy.
const printfMax = 2000

// command is a line to copy into a shell: it works as it stands, at this node, whatever its words hold.
func (c *cli) command(verb string, flags []string, words ...string) string {
	if c.node != "" && c.node != defaultNode {
		flags = append(flags, "--node", c.node)
	}
	dashed := false
	for _, word := range words {
		dashed = dashed || strings.HasPrefix(word, "-") && word != "-"
	}
	line := append([]string{verb}, words...)
	line = append(line, flags...)
	if dashed { // a word that looks like a flag
		line = append([]string{verb}, flags...)
		line = append(append(line, "--"), words...)
	}
	for i, word := range line {
		line[i] = quote(word)
	}
	return c.self + " " + strings.Join(line, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+:,./=-]*$`)

// quote writes a word so that a shell reads it back; what would act on a terminal becomes an escape of $'…'.
func quote(word string) string {
	switch {
	case plainWord.MatchString(word):
		return word
	case strings.ContainsFunc(word, hostile):
		var b strings.Builder
		for _, r := range word {
			switch {
			case r == '\n':
				b.WriteString(`\n`)
			case r == '\'' || r == '\\':
				b.WriteString(`\` + string(r))
			case hostile(r):
				for _, octet := range []byte(string(r)) {
					fmt.Fprintf(&b, `\%03o`, octet)
				}
			default:
				b.WriteRune(r)
			}
		}
		return "$'" + b.String() + "'"
	case !strings.ContainsAny(word, "\"$`\\!"):
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// rootFlag names the root in a command to copy, unless it is the usual one.
func rootFlag(root string) []string {
	if root == defaultRoot {
		return nil
	}
	return []string{"--root", root}
}

// collect is the command that takes a late answer. It is right once the call is pending, and never before: an answer
// that comes in time is the call's result and is not queued.
func (c *cli) collect(session, root string) string {
	return c.command("inbox", append([]string{"--admit", "--wait"}, rootFlag(root)...), session)
}

// again is the command that listens again: the same call with the same attempt, whole, in case it was never recorded.
func (c *cli) again(req *messages.AskRequest, timeout string) string {
	flags := []string{"--session", req.Session, "--attempt", req.Attempt}
	if req.CallId != req.Attempt {
		flags = append(flags, "--call", req.CallId)
	}
	flags = append(flags, rootFlag(req.Root)...)
	if req.Arguments != "" {
		line := c.command("ask", flags, "-")
		if len(req.Arguments) > printfMax {
			return line + " < FILE"
		}
		return "printf %s " + quote(req.Arguments) + " | " + line
	}
	if timeout != "" {
		flags = append(flags, "--timeout", timeout)
	}
	if first := req.Questions[0]; len(req.Questions) == 1 && first.GetQuestion() != "-" {
		return c.command("ask", append(questionFlags(first, "q1"), flags...), first.GetQuestion())
	}
	var questions []string
	for i, q := range req.Questions {
		questions = append(append(questions, "--question", q.GetQuestion()), questionFlags(q, fmt.Sprintf("q%d", i+1))...)
	}
	return c.command("ask", append(questions, flags...))
}

func questionFlags(q *messages.Question, id string) []string {
	var flags []string
	if q.GetMultiSelect() {
		flags = append(flags, "--multi")
	}
	if q.GetId() != id {
		flags = append(flags, "--id", q.GetId())
	}
	for _, o := range q.GetOptions() {
		flags = append(flags, "--option", joinOption(o.GetLabel(), o.GetDescription()))
	}
	return flags
}

// splitOption reads "Label: description". A backslash before ": " makes it a part of the label; of two, the first
// makes the second one.
func splitOption(text string) (label, description string) {
	var b strings.Builder
	for {
		at := strings.Index(text, ": ")
		if at < 0 {
			return b.String() + text, ""
		}
		head := strings.TrimRight(text[:at], `\`)
		slashes := at - len(head)
		b.WriteString(head + strings.Repeat(`\`, slashes/2))
		if slashes%2 == 0 {
			return b.String(), text[at+2:]
		}
		b.WriteString(": ")
		text = text[at+2:]
	}
}

// joinOption is the inverse of splitOption.
func joinOption(label, description string) string {
	var b strings.Builder
	double := func(text string) {
		head := strings.TrimRight(text, `\`)
		b.WriteString(head + strings.Repeat(`\`, 2*(len(text)-len(head))))
	}
	for {
		at := strings.Index(label, ": ")
		if at < 0 {
			break
		}
		double(label[:at])
		b.WriteString(`\: `)
		label = label[at+2:]
	}
	if description == "" {
		return b.String() + label
	}
	double(label)
	return b.String() + ": " + description
}

var hinted = regexp.MustCompile("`parley (questions|answer|ask|inbox|withdraw|sessions|log)\\b([^`]*)`")

// local makes the commands that a text names work here: as this program was called, at the node it spoke to.
func (c *cli) local(text string) string {
	text = hinted.ReplaceAllStringFunc(text, func(span string) string {
		if c.node == "" || c.node == defaultNode || strings.Contains(span, "--help") || strings.Contains(span, "--node") {
			return span
		}
		return strings.TrimSuffix(span, "`") + " --node " + quote(c.node) + "`"
	})
	return strings.ReplaceAll(text, "`parley ", "`"+c.self+" ")
}
