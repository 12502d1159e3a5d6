package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

const root = "../../.."

func TestPagesAreCurrent(t *testing.T) {
	stale, err := run(root, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stale {
		t.Errorf("%s is stale; run make generate", name)
	}
}

func TestEveryRuleHasATest(t *testing.T) {
	held, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range sections() {
		for _, r := range s.rules {
			if known[r.id] {
				t.Errorf("%s is listed twice", r.id)
			}
			known[r.id] = true
			if s.must() && len(held[r.id]) == 0 && r.excuse == "" {
				t.Errorf("no test holds %s: %s", r.id, r.title)
			}
		}
	}
}

// are whole: each section has as many rules as the rules have.
func TestTheListIsWhole(t *testing.T) {
	want := []int{8, 16, 10, 12, 13, 16, 32}
	for i, s := range sections()[:len(want)] {
		if len(s.rules) != want[i] {
			t.Errorf("section %s has %d rules, not %d", s.title, len(s.rules), want[i])
		}
		if !slices.IsSortedFunc(s.rules, func(a, b rule) int {
			if a.id < b.id {
				return -1
			}
			return 1
		}) {
			t.Errorf("section %s is out of order", s.title)
		}
	}
}

func TestIDsOfAComment(t *testing.T) {
	for text, want := range map[string][]string{
		"L-060: the data of a splice":    {"L-060"},
		"Q-081, Q-084 and Q-087":         {"Q-081", "Q-084", "Q-087"},
		"L-020 to L-022, L-027":          {"L-020", "L-021", "L-022", "L-027"},
		"Q-041…Q-043":                    {"Q-041", "Q-042", "Q-043"},
		"Q-130 to Q-161 is a whole part": nil,
		"no rule at all":                 nil,
	} {
		if got := idsOfComment(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

// What counts and what does not, on a package made for it.
func TestWhatCountsForARule(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "room/a_test.go", `package room

// Q-001: in the comment above.
func TestAbove(t *testing.T) {
	// Q-002 in a comment inside counts for nothing.
	t.Run("Q-003 in a name", nil)
	helper()
}

func helper() { use("Q-004 in a helper", table) }

var table = []string{"Q-005 in a table"}

// Q-006: of a helper's comment, which says what it is and not what is held.
func other() {}

// It plays vectors.
func TestQ021Plays(t *testing.T) { play("v.jsonl", "scan") }

func TestStem(t *testing.T) { play("testdata/" + "w" + ".jsonl") }

func BenchmarkNone(b *testing.B) { use("Q-007 in a benchmark") }
`)
	write(t, dir, "room/testdata/v.jsonl", `{"kind":"scan","rules":["Q-008"]}`+"\n"+`{"kind":"pack","rules":["Q-020"]}`+"\n")
	write(t, dir, "room/testdata/w.jsonl", `{"rules":["Q-009"]}`+"\n")
	got, err := scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	above, plays := []string{"`room.TestAbove`"}, []string{"`room.TestQ021Plays`"}
	want := map[string][]string{"Q-001": above, "Q-003": above, "Q-004": above, "Q-005": above, "Q-008": plays, "Q-021": plays, "Q-009": {"`room.TestStem`"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
