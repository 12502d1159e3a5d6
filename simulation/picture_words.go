package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labelText is a line in the few words that fit beside a lane.
func labelText(l Line) string {
	switch l.Kind {
	case KindTold:
		asked, told := splitTold(l.Text)
		name, all := briefFields(asked)
		return oneLine(name) + " " + callOf(all) + "→ " + outcomeWords(told)
	case KindDo, KindSend:
		return shortly(l.Text)
	case KindFault:
		return oneLine(strings.Replace(l.Text, "its wall clock jumps by", "clock jumps", 1))
	case KindDisk:
		return strings.TrimSuffix(strings.Replace(l.Text, " done, and an error told", ": error told", 1), " done")
	case KindDeliver:
		return deliverWords(l.Text)
	}
	return oneLine(l.Text)
}

// splitTold takes a told line apart: what was asked, and what came back.
func splitTold(text string) (asked, told string) {
	for at := 0; ; {
		i := strings.Index(text[at:], ": ")
		if i < 0 {
			return text, ""
		}
		rest := text[at+i+2:]
		name, _, _ := strings.Cut(rest, " ")
		if strings.HasSuffix(name, "Response") || name == "Refusal" || name == "nothing" {
			return text[:at+i], rest
		}
		at += i + 2
	}
}

// briefFields takes a brief message apart: its name, and its outermost fields in order.
func briefFields(text string) (name string, all [][2]string) {
	name, rest, _ := strings.Cut(text, " ")
	depth, from := 0, 0
	take := func(word string) {
		key, value, named := strings.Cut(word, "=")
		if !named && len(all) > 0 {
			all[len(all)-1][1] += " " + word // of a text with spaces
			return
		}
		all = append(all, [2]string{key, value})
	}
	for i := range len(rest) {
		switch rest[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ' ':
			if depth <= 0 {
				take(rest[from:i])
				from = i + 1
			}
		}
	}
	if from < len(rest) {
		take(rest[from:])
	}
	return name, all
}

// shortly says a message by its name and what it is about.
func shortly(text string) string {
	if left, is := strings.CutPrefix(text, "leaves "); is {
		return "leaves " + shortly(left)
	}
	name, all := briefFields(text)
	if name == "" || name[0] < 'A' || name[0] > 'Z' {
		return oneLine(text) // no message, but words
	}
	if name == "AskResponse" || name == "Refusal" {
		return callOf(all) + outcomeWords(text)
	}
	if asked, is := strings.CutSuffix(name, "Response"); is {
		return oneLine(asked) + ": " + outcomeWords(text)
	}
	words := []string{name}
	counts := strings.HasPrefix(name, "Begin") || strings.HasPrefix(name, "End")
	for _, f := range all {
		switch f[0] {
		case "call_id", "message_id":
			words = append(words, f[1])
		case "message_ids":
			words = append(words, strings.Trim(f[1], "[]"))
		case "turn", "step":
			if counts {
				words = append(words, f[0]+" "+f[1])
			}
		}
	}
	return oneLine(strings.Join(words, " "))
}

func callOf(all [][2]string) string {
	for _, f := range all {
		if f[0] == "call_id" {
			return oneLine(f[1]) + " "
		}
	}
	return ""
}

// outcomeWords is what an answer comes down to.
func outcomeWords(text string) string {
	name, all := briefFields(text)
	for _, f := range all {
		switch f[0] {
		case "waiting":
			if left := millisOf(innerField(f[1], "remaining_ms")); left > 0 {
				return "waits, " + axisTime(left) + " left"
			}
			return "waits"
		case "answered", "pending", "created", "took_over", "repeated":
			return strings.ReplaceAll(f[0], "_", " ")
		case "code":
			return "✗ " + oneLine(f[1])
		case "settlement":
			return oneLine(innerField(f[1], "outcome"))
		case "replies", "messages", "message_ids":
			return fmt.Sprintf("%d", countOf(f[1]))
		case "turn":
			return turnWords(all)
		}
	}
	if name == "nothing" {
		return name
	}
	if len(all) > 0 && strings.HasPrefix(all[0][1], "{") {
		return oneLine(all[0][0])
	}
	if name == "AwaitInboxResponse" || name == "CollectRepliesResponse" {
		return "none"
	}
	return "ok"
}

func turnWords(all [][2]string) string {
	words := ""
	for _, f := range all {
		if f[0] == "turn" || f[0] == "step" {
			words += " " + f[0] + " " + f[1]
		}
	}
	return oneLine(strings.TrimPrefix(words, " "))
}

// countOf counts what stands in a list.
func countOf(list string) int {
	list = strings.TrimSuffix(strings.TrimPrefix(list, "["), "]")
	n, depth, inside := 0, 0, false
	for _, c := range list {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		word := c != ' ' || depth > 0
		if word && !inside {
			n++
		}
		inside = word
	}
	return n
}

func innerField(group, key string) string {
	_, all := briefFields("x " + strings.TrimSuffix(strings.TrimPrefix(group, "{"), "}"))
	for _, f := range all {
		if f[0] == key {
			return f[1]
		}
	}
	return ""
}

func millisOf(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // what is no number is none
	return n
}

// deliverWords is what an actor takes, without from whom.
func deliverWords(text string) string {
	words := strings.Fields(text)
	if len(words) > 2 && (words[1] == "-" || strings.ContainsAny(words[1], "#/")) {
		words = append(words[:1], words[2:]...)
	}
	return oneLine(strings.Join(words[:min(len(words), 2)], " "))
}

// oneLine is text on one line, without what does not show.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, text)
}

// axisTime is a time as the axis has it.
func axisTime(ms int64) string {
	sign := ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	if ms%1000 == 0 && ms >= 10_000 {
		return fmt.Sprintf("%s%d s", sign, ms/1000)
	}
	return fmt.Sprintf("%s%d.%03d s", sign, ms/1000, ms%1000)
}

// charWidth is how wide a letter of 11 pixels is in the widest font that the style
// names, DejaVu Sans: nothing that is measured is wider anywhere.
func charWidth(r rune) float64 {
	switch {
	case strings.ContainsRune("iljI.,:;'|/-` ", r):
		return 4
	case strings.ContainsRune("tfrJ!()[]", r):
		return 4.6
	case strings.ContainsRune("mwMW@%…", r):
		return 11.1
	case strings.ContainsRune("→+=<>#~^&", r):
		return 9.3
	case r >= utf8.RuneSelf:
		return 11.5
	case r >= 'A' && r <= 'Z':
		return 8.7
	}
	return 7.1
}

// Larger and bolder text is wider by so much.
const (
	noteNameWider  = 1.3  // 12 pixels, bold
	headNameWider  = 1.4  // 13 pixels, bold
	headWhatWider  = 0.87 // 9.5 pixels
	titleWider     = 1.8  // 17 pixels, bold
	faultTextWider = 1.15 // bold
)

func textWidth(text string) (w float64) {
	for _, r := range text {
		w += charWidth(r)
	}
	return w
}

// clip cuts text to a width.
func clip(text string, width float64) string {
	text = oneLine(text) // and valid: a brief message may end within a letter
	w := 0.0
	cut := 0 // where it still fits with its dots
	for i, r := range text {
		if w += charWidth(r); w > width {
			return strings.TrimRight(text[:cut], " ") + "…"
		}
		if w+charWidth('…') <= width {
			cut = i + utf8.RuneLen(r)
		}
	}
	return text
}

// wrap breaks text into at most so many lines of a width.
func wrap(text string, width float64, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(oneLine(text)) {
		for line != "" && textWidth(line+" "+word) > width || textWidth(word) > width {
			if line == "" { // longer than a line: broken
				cut := 0
				for i, r := range word {
					if textWidth(word[:i])+charWidth(r) > width {
						break
					}
					cut = i + utf8.RuneLen(r)
				}
				lines, word = append(lines, word[:cut]), word[cut:]
				continue
			}
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if lines = append(lines, line); len(lines) > most {
		lines = append(lines[:most-1], clip(lines[most-1]+" …", width))
	}
	return lines
}
