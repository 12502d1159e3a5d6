package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/parleyrun/parley/messages"
)

const (
	prefixMin   = 4 // letters of an id that may stand for all of it
	prefixShown = 8 // letters of a call's id in a list to choose from: a question that comes later hardly has the same
)

// ownID is one of the two ids of a question.
type ownID func(*messages.QuestionRow) string

var (
	callID    ownID = (*messages.QuestionRow).GetCallId
	sessionID ownID = (*messages.QuestionRow).GetSession
)

func whole(own, word string) bool { return own == word }

// begins: less than a few letters name nothing, since they would soon name something else.
func begins(own, word string) bool { return len(word) >= prefixMin && strings.HasPrefix(own, word) }

func filter(rows []*messages.QuestionRow, keep func(*messages.QuestionRow) bool) (out []*messages.QuestionRow) {
	for _, row := range rows {
		if keep(row) {
			out = append(out, row)
		}
	}
	return out
}

// named are the questions with an id that the word is, else those with one that begins with it. Of several ids the
// first that fits counts.
func named(rows []*messages.QuestionRow, word string, ids ...ownID) []*messages.QuestionRow {
	for _, fits := range []func(own, word string) bool{whole, begins} {
		for _, id := range ids {
			if out := filter(rows, func(row *messages.QuestionRow) bool { return fits(id(row), word) }); len(out) > 0 {
				return out
			}
		}
	}
	return nil
}

// meant are the questions that words on the command line mean: CALL, SESSION, or SESSION and CALL; without words all.
func meant(rows []*messages.QuestionRow, words []string) []*messages.QuestionRow {
	switch len(words) {
	case 0:
		return rows
	case 1:
		return named(rows, words[0], callID, sessionID)
	}
	return named(named(rows, words[0], sessionID), words[1], callID)
}

// shortName is the shortest way to name one of the questions: the beginning of its call's id, or session and call.
func shortName(rows []*messages.QuestionRow, row *messages.QuestionRow) []string {
	call := row.GetCallId()
	for end := range call {
		if end >= prefixShown && len(meant(rows, []string{call[:end]})) == 1 {
			return []string{call[:end]}
		}
	}
	if len(meant(rows, []string{call})) == 1 {
		return []string{call}
	}
	return []string{row.GetSession(), call}
}

// choices lists questions to choose from, a line for each.
func (c *cli) choices(w io.Writer, rows []*messages.QuestionRow) {
	for n, row := range rows {
		line := fmt.Sprintf("  %d  %s  ", n+1, oneLine(strings.Join(shortName(rows, row), " ")))
		text := oneLine(firstQuestion(row))
		if room := c.width - cells(line); cells(text) > room {
			text = fitting(text, max(1, room-1)) + "…"
		}
		_, _ = fmt.Fprintln(w, strings.TrimRight(line+text, " "))
	}
}

// candidates are the questions that may be meant: those that the words name, or all that can be answered, with the
// place in the journal at which that is true.
func (c *cli) candidates(ctx context.Context, node *client, words []string) ([]*messages.QuestionRow, int64, error) {
	if len(words) == 2 { // whatever its state: the answer may be a repetition
		res, err := repeat(ctx, node, node.GetQuestion, &messages.GetQuestionRequest{Session: words[0], CallId: words[1]})
		if err == nil {
			return []*messages.QuestionRow{res.GetQuestion()}, 0, nil
		}
		if asTrouble(err).code != messages.NotFound {
			return nil, 0, err
		}
	}
	rows, cursor, err := openRows(ctx, node)
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == 0 && len(words) == 0 {
		return nil, 0, refuse(messages.NotFound, "`parley questions --watch` shows the next one", "no question is open")
	}
	if rows = meant(rows, words); len(rows) == 0 {
		return nil, 0, refuse(messages.NotFound, "`parley questions` lists those that can be answered", "no question that can be answered is named %s", strings.Join(words, " "))
	}
	return rows, cursor, nil
}

// only is the one question that can be meant: guessing would answer the wrong one.
func (c *cli) only(rows []*messages.QuestionRow) (*messages.QuestionRow, error) {
	if len(rows) == 1 {
		return rows[0], nil
	}
	if !c.json {
		c.choices(c.err, rows)
	}
	t := usage("name it by the beginning of its call", "%d questions are open; say which one", len(rows))
	t.line = c.command("answer", nil, shortName(rows, rows[0])...) + " …"
	return nil, t
}
