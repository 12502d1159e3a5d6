package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/stretchr/testify/require"
)

// A shell reads back what was quoted, whatever it is, and nothing in it acts on a terminal.
func TestCommandsAreQuoted(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, word := range []string{"a b", `it's "so"`, "$HOME `id` \\ !", "", "-x", "a\nb\x1b[2J'\\", "=a", "日本\u202e", "~"} {
		quoted := quote(word)
		harmless(t, "quote", quoted)
		out, err := exec.CommandContext(t.Context(), shell, "-c", "printf %s "+quoted).Output()
		if err != nil || string(out) != word || strings.Contains(quoted, "\n") {
			t.Errorf("%q is quoted as %s and read as %q, %v", word, quoted, out, err)
		}
	}
	c := &cli{self: "parley", node: "http://h:1"}
	for got, want := range map[string]string{
		c.collect("-s", "my root"): `parley inbox --admit --wait --root "my root" --node http://h:1 -- -s`,
		c.again(&messages.AskRequest{Session: "a b", Attempt: "x", CallId: "y", Root: "r", Questions: []*messages.Question{{Id: "q1", Question: "-?"}}}, "9s"):                                                                                                             `parley ask --session "a b" --attempt x --call y --root r --timeout 9s --node http://h:1 -- "-?"`,
		c.again(&messages.AskRequest{Session: "s", Attempt: "x", CallId: "x", Root: "cli", Questions: []*messages.Question{{Id: "a", Question: "A?", MultiSelect: true, Options: []*messages.Option{{Label: "x: y", Description: "z"}}}, {Id: "q2", Question: "B?"}}}, ""): `parley ask --question "A?" --multi --id a --option 'x\: y: z' --question "B?" --session s --attempt x --node http://h:1`,
		c.again(&messages.AskRequest{Session: "s", Attempt: "x", CallId: "x", Root: "cli", Arguments: `{"a":1}`}, ""):                                                                                                                                                      `printf %s '{"a":1}' | parley ask - --session s --attempt x --node http://h:1`,
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestOptionEscape(t *testing.T) {
	for _, label := range []string{"a", "a: b", `a\: b`, `a\`, `\\: x: \`, "a:"} {
		for _, description := range []string{"", "d", "d: e"} {
			if l, d := splitOption(joinOption(label, description)); l != label || d != description {
				t.Errorf("%q and %q became %q and %q", label, description, l, d)
			}
		}
	}
	if label, description := splitOption(`Plan B\: wait`); label != "Plan B: wait" || description != "" {
		t.Errorf("%q, %q", label, description)
	}
}

// No line of an answer looks like another answer, and a batch of skips is an outcome of its own.
func TestAnswersCannotForge(t *testing.T) {
	f := newFake(t)
	f.held("")
	items := []*messages.Answer{{Id: "q1", Custom: new("no\nq2: yes\r\n  q2: yes")}, {Id: "q2"}}
	on(f, messagesconnect.QuestionServiceAskProcedure, func(*messages.AskRequest) (*messages.AskResponse, error) {
		return answered(items...), nil
	})
	ask := []string{"ask", "--question", "A", "--question", "B"}
	runCLI(t, f.url, "", ask...).want(t, 0, "q1: no\n  q2: yes\n    q2: yes\n", "q2: skipped: no answer and no permission\n")
	items[0].Custom = nil
	runCLI(t, f.url, "", ask...).want(t, 76, "", "every question was skipped: no answer and no permission\n")
	r := runCLI(t, f.url, "", append(ask, "--json")...)
	if doc := r.document(t, r.out); r.exit != 76 || doc["outcome"] != "skipped" || doc["answers"] == nil {
		t.Errorf("exit %d, %v", r.exit, doc)
	}
	var out bytes.Buffer
	c := &cli{out: &out, width: 80}
	c.printMessage(messageJSON{ID: "m", ReplyTo: "q", Questions: []itemJSON{{ID: "q1", Question: "= Yes\n= Yes"}}, Answers: []answerJSON{{ID: "q1"}}, Skipped: true})
	if out.String() != "reply m to call q\n  \\= Yes\n    = Yes\n  = (skipped: no answer and no permission)\n  * every question was skipped: no answer and no permission\n" {
		t.Error(out.String())
	}
}

// The list: by age, bounded, whole on request, and narrow.
func TestQuestionsAreBoundedAndSorted(t *testing.T) {
	f := newFake(t)
	old, young, gone := shipIt("open"), shipIt("open"), shipIt("continued")
	old.CallId, old.AskedMs, gone.CallId, gone.AskedMs = "q-old", 1, "q-gone", 0
	old.Questions[0].Question = strings.Repeat("word ", 1000)
	old.Questions[0].Options[0].Label = strings.Repeat("x", 2000) + " (Recommended)"
	f.rows(gone, young, old)
	r := runCLI(t, f.url, "", "questions")
	places := []int{strings.Index(r.out, "q-old"), strings.Index(r.out, "q-1 "), strings.Index(r.out, "q-gone")}
	if !slices.IsSorted(places) || places[0] < 0 || strings.Count(r.out, "word") >= 200 || !strings.Contains(r.out, "(Recommended)") ||
		!strings.Contains(r.out, " more characters: parley questions --session demo --full --node ") {
		t.Errorf("%v\n%s", places, r.out)
	}
	if r := runCLI(t, f.url, "", "questions", "--full"); strings.Count(r.out, "word") != 1000 {
		t.Error(r.out)
	}
	f = newFake(t)
	f.rows(young)
	var out bytes.Buffer
	c := &cli{out: &out, width: terminalWidth(func(string) (string, bool) { return "20", true }), now: newCLI().now, self: "parley", tty: true}
	c.table(&out, nil, []*messages.QuestionRow{young})
	for line := range strings.Lines(out.String()) {
		if cells(strings.TrimSpace(line)) > 20 {
			t.Errorf("too wide: %q", line)
		}
	}
}

func TestQuestionsOfAnUnknownSession(t *testing.T) {
	f := newFake(t)
	f.rows()
	on(f, messagesconnect.SessionServiceGetSessionProcedure, func(*messages.GetSessionRequest) (*messages.GetSessionResponse, error) {
		return nil, messages.Refuse(messages.NotFound, "no session")
	})
	for _, args := range [][]string{{"questions", "--session", "nosuch"}, {"questions", "--session", "nosuch", "--all"}} {
		if r := runCLI(t, f.url, "", args...); r.exit != 25 || r.out != "" {
			t.Errorf("%+v", r)
		}
	}
	var out bytes.Buffer
	row := shipIt("settled")
	row.Settlement, row.Answers = &messages.Settlement{Outcome: "answered", By: "ada"}, []*messages.Answer{{Id: "q1", Selected: []string{"Yes"}}}
	if err := (&cli{out: &out, width: 80}).change(row, 1); err != nil || out.String() != "demo  q-1  settled\n  * answered by ada\n  = Yes\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// What a variable did is blamed on the variable; the banner shows the address as it was given.
func TestServeSaysWhatItWasGiven(t *testing.T) {
	var out, errs bytes.Buffer
	c := &cli{out: &out, err: &errs, self: "parley", env: func(name string) (string, bool) { return "fast", name == "PARLEY_MODE" }}
	if exit := run(t.Context(), []string{"serve"}, c); exit != 2 || !strings.HasPrefix(errs.String(), "error: PARLEY_MODE \"fast\" is not known\n") {
		t.Errorf("%d %s", exit, errs.String())
	}
	c.node = defaultNode
	out.Reset()
	c.firstScreen("0.0.0.0:9", serving{journal: inMemory})
	for _, want := range []string{"address  http://0.0.0.0:9\n", "questions are lost when this node stops", "parley questions --node http://127.0.0.1:9\n", "its questions are lost."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A long id is shortened on a terminal only, and the table keeps a line for each question.
func TestTablesFitTheTerminal(t *testing.T) {
	row := shipIt("continued")
	row.Session, row.CallId = "claude-1b9f7f0e-94a3-4c1f-8b59-0d9f1f6a3d11", "q-7k2m9x4a5b6c"
	node := &client{url: "http://n"}
	table := func(c cli) string {
		var out bytes.Buffer
		c.now, c.self = func() time.Time { return at }, "parley"
		c.table(&out, node, []*messages.QuestionRow{row})
		return out.String()
	}
	const asked = "  Ship it?\n  - Yes\n  - No: wait for the review\n"
	require.Equal(t, "SESSION                                     CALL            STATE      AGE  LEFT\n"+
		"claude-1b9f7f0e-94a3-4c1f-8b…-0d9f1f6a3d11  q-7k2m9x4a5b6c  continued  12s  -\n"+asked, table(cli{width: 80, tty: true}))
	require.Equal(t, "SESSION         CALL            STATE      AGE  LEFT\n"+
		"claude-1b…3d11  q-7k2m9x4a5b6c  continued  12s  -\n", strings.Replace(table(cli{width: 52, tty: true}), asked, "", 1))
	for _, whole := range []cli{{width: 80}, {width: 80, tty: true, full: true}} {
		require.Contains(t, table(whole), "\nclaude-1b9f7f0e-94a3-4c1f-8b59-0d9f1f6a3d11  q-7k2m9x4a5b6c  continued  12s  -\n")
	}
	require.Equal(t, "日本…本", middle("日本日本日本", 7))
	require.Equal(t, "q-1", middle("q-1", 3))
}

// A list names the page of the only question, unless the page would ask for a token; --links names every one.
func TestQuestionsNameTheirPage(t *testing.T) {
	f := newFake(t)
	row := shipIt("open")
	row.Session = "a/b ?\u202e"
	f.rows(row)
	page := "  @ " + f.url + "/answer/a%2Fb%20%3F%E2%80%AE/q-1\n"
	require.Contains(t, runCLI(t, f.url, "", "questions").out, "  - No: wait for the review\n"+page)
	require.NotContains(t, runCLI(t, f.url, "", "questions", "--token", "a token of some length").out, "@ ")
	require.Contains(t, runCLI(t, f.url, "", "questions", "--token", "a token of some length", "--links").out, page)
	row.State = "replied"
	require.NotContains(t, runCLI(t, f.url, "", "questions").out, "@ ")
	f = newFake(t)
	f.rows(shipIt("open"), questionNamed("other", "q-2"))
	require.NotContains(t, runCLI(t, f.url, "", "questions").out, "@ ")
	require.Equal(t, 2, strings.Count(runCLI(t, f.url, "", "questions", "--links").out, "  @ "+f.url+"/answer/"))
	forged := shipIt("open")
	forged.Questions[0].Question = "@ http://elsewhere"
	f = newFake(t)
	f.rows(forged)
	require.Contains(t, runCLI(t, f.url, "", "questions").out, "  \\@ http://elsewhere\n")
}

// Past its deadline a call that is open is held. The deadline itself never moves.
func TestQuestionsSayThatACallIsHeld(t *testing.T) {
	row := shipIt("open")
	now := row.GetDeadlineMs()
	row.RemainingMs = 0
	require.Equal(t, "0s", leftOf(row, now))
	now += heldAfter.Milliseconds() + 1
	require.Equal(t, "held", leftOf(row, now))
	require.Equal(t, "held by a person who has it open", leftWords(row, now))
	row.RemainingMs = 1 // the node's clock counts
	require.Equal(t, "0s left", leftWords(row, now))
	row.State = "continued"
	require.Equal(t, "-", leftOf(row, now))
}

// Commands to copy call the program as it was started, and by its name alone where the shell finds it by that.
func TestCommandsCallTheProgramAsItWasStarted(t *testing.T) {
	dir := t.TempDir()
	installed := filepath.Join(dir, "parley")
	require.NoError(t, os.WriteFile(installed, []byte("#!/bin/sh\n"), 0o700))
	t.Setenv("PATH", dir)
	for arg0, want := range map[string]string{
		"parley":                         "parley",
		installed:                        "parley",
		"./parley":                       "./parley",
		"../parley/parley":               "../parley/parley",
		"/elsewhere/parley":              "/elsewhere/parley",
		"../a b/parley":                  `"../a b/parley"`,
		"/tmp/go-build1/b001/exe/node":   "go run ./cmd/node",
		filepath.Join(dir, "..", "node"): filepath.Join(dir, "..", "node"),
	} {
		require.Equal(t, want, selfName(arg0), arg0)
	}
}

// With a token for each role the first screen says which command wants which.
func TestServeSaysWhichTokenIsFor(t *testing.T) {
	screen := func(cfg serving) string {
		var out bytes.Buffer
		cfg.journal = inMemory
		(&cli{out: &out, self: "parley", node: defaultNode, env: os.LookupEnv}).firstScreen("127.0.0.1:7410", cfg)
		return out.String()
	}
	require.NotContains(t, screen(serving{}), "PARLEY_TOKEN")
	require.Contains(t, screen(serving{token: "x"}), "  token    wanted: set PARLEY_TOKEN for the commands below\n")
	roles := map[parley.Role][]string{parley.RoleAgent: {"x"}, parley.RoleViewer: {"y"}}
	require.Contains(t, screen(serving{token: "z", tokens: roles}), `
  tokens   set PARLEY_TOKEN to one of these:
             ask, inbox --admit, withdraw, mcp, hook  the agent's, the operator's
             answer, withdraw --message               the operator's
             import                                   the operator's
             questions, inbox, sessions, log, export  any token
`)
	require.Contains(t, screen(serving{tokens: roles}), "answer, withdraw --message               none: no token is set for it\n")
}

// A lost race is told once, whatever the node says of it.
func TestALostRaceIsToldOnce(t *testing.T) {
	var errs bytes.Buffer
	c := &cli{err: &errs, self: "parley"}
	lost := refuse(messages.Settled, "", "the question was settled first: answered by cli")
	lost.winner = &messages.Settlement{Outcome: "answered", By: "cli", Door: "connect"}
	c.report(t.Context(), lost)
	require.Equal(t, "error: cli answered first, through connect (SETTLED)\nnext:  Nothing to do; your draft was not used.\n", errs.String())
}
