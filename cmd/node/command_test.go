package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
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
	c := &cli{out: &out, width: terminalWidth(func(string) (string, bool) { return "20", true }), now: newCLI().now, self: "parley"}
	c.table(&out, []*messages.QuestionRow{young})
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
