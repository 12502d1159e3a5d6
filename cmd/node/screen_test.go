package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// evil holds what would act on a terminal: an escape sequence, a bell, a C1 control, a direction override, DEL.
const evil = "\x1b[2Jred\a\u009b31m\u202Eesrever\x7f\r"

func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && hostile(r) {
			t.Errorf("%s lets %q through:\n%q", what, r, text)
			return
		}
	}
}

// Stored text never reaches a terminal with its control characters, at any verb, as text or as JSON.
func TestOutputIsHarmless(t *testing.T) {
	f := newFake(t)
	f.held("cli")
	row := &messages.QuestionRow{
		Session: "s" + evil, CallId: "c" + evil, State: "open" + evil,
		Questions:  []*messages.Question{{Id: "a" + evil, Question: "Q" + evil, Detail: new("d" + evil), Options: []*messages.Option{{Label: "l" + evil, Description: evil}}}, {Id: "b", Question: evil}},
		Settlement: &messages.Settlement{Outcome: evil, By: evil, Reason: evil, MessageId: evil}, Answers: []*messages.Answer{{Id: evil, Selected: []string{evil}, Custom: new(evil)}},
	}
	f.rows(row, row)
	message := []*messages.InboxMessage{{Id: "m" + evil, List: evil, ReplyTo: "c" + evil, Text: "text" + evil}, {Id: "n", Text: evil}}
	on(f, messagesconnect.InboxServiceListInboxProcedure, func(*messages.ListInboxRequest) (*messages.ListInboxResponse, error) {
		return &messages.ListInboxResponse{Messages: message}, nil
	})
	on(f, messagesconnect.SessionServiceListSessionsProcedure, func(*messages.ListSessionsRequest) (*messages.ListSessionsResponse, error) {
		return &messages.ListSessionsResponse{Sessions: []*messages.SessionRow{{Session: evil, Root: evil, Cwd: evil}}}, nil
	})
	on(f, messagesconnect.QuestionServiceAskProcedure, func(*messages.AskRequest) (*messages.AskResponse, error) {
		return &messages.AskResponse{Outcome: &messages.AskResponse_Answered{Answered: &messages.Answered{Answers: []*messages.Answer{{Id: evil, Selected: []string{evil}, Custom: new(evil)}, {Id: "b"}}}}}, nil
	})
	on(f, messagesconnect.QuestionServiceWithdrawQuestionProcedure, func(*messages.WithdrawQuestionRequest) (*messages.WithdrawQuestionResponse, error) {
		e := messages.Refuse(messages.Settled, "settled %s", evil)
		e.Winner = &messages.Settlement{Outcome: evil, By: evil, Door: evil, Reason: evil}
		return nil, e
	})
	for _, line := range []string{"questions", "questions --session s --all", "inbox s", "sessions", "ask Q", "withdraw s c", "answer"} {
		for _, args := range [][]string{strings.Fields(line), append(strings.Fields(line), "--json")} {
			r := runCLI(t, f.url, "", args...)
			if r.out+r.err == "" {
				t.Errorf("%q printed nothing", args)
			}
			harmless(t, strings.Join(args, " "), r.out+r.err)
		}
	}
}

// On a terminal the log is escaped, and still means the same.
func TestLogOnATerminal(t *testing.T) {
	line := "{\"text\":\"\x7f\u009b\u202E ok\"}"
	var out strings.Builder
	if err := (&cli{out: &out, tty: true}).record(line); err != nil {
		t.Fatal(err)
	}
	harmless(t, "log", out.String())
	var was, is struct{ Text string }
	if json.Unmarshal([]byte(line), &was) != nil || json.Unmarshal([]byte(out.String()), &is) != nil || was != is {
		t.Errorf("%q does not mean %q", out.String(), line)
	}
	out.Reset()
	_ = (&cli{out: &out}).record(line)
	if out.String() != line+"\n" {
		t.Errorf("a file got %q", out.String())
	}
}

func FuzzScreen(f *testing.F) {
	for _, seed := range []string{evil, "日本語の質問です", "one two\nthree", strings.Repeat("x", 300), "\xff\xfe", "a\tb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		harmless(t, "clean", clean(text))
		harmless(t, "escapeJSON", string(escapeJSON([]byte(text))))
		letters := strings.Join(strings.Fields(clean(text)), "")
		lines := wrap(text, 30)
		for _, line := range lines {
			if cells(line) > 30 {
				t.Errorf("%q is %d cells wide", line, cells(line))
			}
		}
		if got := strings.Join(strings.Fields(strings.Join(lines, " ")), ""); got != letters {
			t.Errorf("wrapping %q lost something: %q", letters, got)
		}
	})
}

// A text of the greatest length, in one word, is wrapped in no time.
func TestWrapIsLinear(t *testing.T) {
	began := time.Now()
	if n := len(wrap(strings.Repeat("x", messages.MessageBytesMax), 80)); n != 13108 {
		t.Errorf("%d lines", n)
	}
	if took := time.Since(began); took > 5*time.Second { // its square would take an hour
		t.Errorf("took %v", took)
	}
}

func TestSpans(t *testing.T) {
	for ms, want := range map[int64]string{-5: "0s", 400: "0s", 59_400: "59s", 90_000: "1m30s", 3_600_000: "1h00m", 90_000_000: "1d01h"} {
		if got := span(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}
