package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeVectors(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	emptyLog = `{"name":"empty","events":[],"expect":{"active":[],"settled":[]}}`
	wrongLog = `{"name":"wrong","events":[],"expect":{"active":[1],"settled":[]}}`
)

// A file's kind is seen in its vectors, whatever the file is called.
func TestRunRecognisesKinds(t *testing.T) {
	for kind, v := range map[string]string{
		"scan":                `{"kind":"scan","name":"x"}`,
		"row":                 `{"kind":"row","name":"x"}`,
		"projection":          emptyLog,
		"timed-wait":          `{"timeoutMs":1,"parent":"live","ops":[],"expect":{}}`,
		"card":                `{"card":"keyed","ops":[],"expect":{}}`,
		"late-answer":         `{"sessions":["a"],"ops":[],"expect":{}}`,
		"foreground":          `{"mode":"ask","script":[],"expect":{}}`,
		"session-extraction":  `{"log":"x.jsonl"}`,
		"session-query-tools": `{"caller":{},"calls":[]}`,
	} {
		if got, _, err := recognise("private.jsonl", []byte(v)); got != kind || err != nil {
			t.Errorf("%s: recognised as %q, %v", v, got, err)
		}
	}
	if got, _, err := recognise("a/projection.jsonl", []byte(`{"name":"x"}`)); got != "projection" || err != nil {
		t.Errorf("the base name was not used: %q, %v", got, err)
	}
	for _, v := range []string{`{"name":"x"}`, `{"kind":"nonsense"}`, `{"kind":1}`, `not json`} {
		if got, _, err := recognise("private.jsonl", []byte(v)); err == nil {
			t.Errorf("%s: recognised as %q", v, got)
		}
	}
}

// A run says what failed and where, and how many.
func TestRunSaysWhatFailed(t *testing.T) {
	file := writeVectors(t, "mine.jsonl", emptyLog, "", wrongLog)
	var out strings.Builder
	sum, err := Run(&out, []string{file}, Options{})
	if err != nil || sum.Passed != 1 || sum.Failed != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	want := "FAIL " + file + ":3 projection \"wrong\": $.active: want 1 elements, got 0\n1 passed, 1 failed\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// A kind without a runner, such as one of a newer build, is refused by name and never passed.
func TestRunRefusesUnknownKinds(t *testing.T) {
	file := writeVectors(t, "mine.jsonl", emptyLog, `{"kind":"of-tomorrow","name":"p"}`)
	sum, err := Run(&strings.Builder{}, []string{file}, Options{})
	if err == nil || !strings.Contains(err.Error(), file+`:2: there is no kind "of-tomorrow"`) {
		t.Fatalf("got %v", err)
	}
	if sum.Passed != 1 || sum.Failed != 0 {
		t.Errorf("%+v", sum)
	}
}

// --kind selects inside a file; a selection of nothing is no success.
func TestRunSelectsKinds(t *testing.T) {
	file := writeVectors(t, "mine.jsonl", emptyLog, `{"kind":"scan","name":"p"}`)
	if sum, err := Run(&strings.Builder{}, []string{file}, Options{Kinds: []string{"projection"}}); err != nil || sum.Passed != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if _, err := Run(&strings.Builder{}, []string{file}, Options{Kinds: []string{"repair"}}); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing selected: %v", err)
	}
	if _, err := Run(&strings.Builder{}, []string{file}, Options{Kinds: []string{"nonsense"}}); err == nil {
		t.Error("an unknown kind was taken")
	}
	if sum, err := Run(&strings.Builder{}, []string{"-"}, Options{Stdin: strings.NewReader(emptyLog)}); err != nil || sum.Passed != 1 {
		t.Errorf("stdin: %+v, %v", sum, err)
	}
}

// A machine that panics fails its own vector only.
func TestRunSurvivesPanics(t *testing.T) {
	verdict, why := judge(func([]byte, Options) (Verdict, string) { panic("boom") }, nil, Options{})
	if verdict != Failed || why != "panic: boom" {
		t.Errorf("%v, %s", verdict, why)
	}
}
