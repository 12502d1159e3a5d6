package conformance

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// vectors reads a file of testdata; the line is passed on as it stands.
func vectors(t *testing.T, file string) [][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var lines [][]byte
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		lines = append(lines, append([]byte(nil), in.Bytes()...))
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func vectorNames(t *testing.T, v []byte) (kind, name string) {
	t.Helper()
	var head struct{ Kind, Name string }
	if err := json.Unmarshal(v, &head); err != nil {
		t.Fatal(err)
	}
	return head.Kind, head.Name
}

// every vector of the projection, the one with unpaired surrogates included.
func TestProjectionVectors(t *testing.T) {
	passed := 0
	for _, v := range vectors(t, "projection.jsonl") {
		_, name := vectorNames(t, v)
		if verdict, why := RunProjection(v); verdict != Passed {
			t.Errorf("%s: %s", name, why)
			continue
		}
		passed++
	}
	if passed != 474 {
		t.Errorf("%d of 474 passed", passed)
	}
}

// L-011, L-020 to L-025, L-030 to L-034, L-050 to L-056, L-060 to L-067: the vectors of the log itself.
func TestSessionLogVectors(t *testing.T) {
	run := map[string]func([]byte) (Verdict, string){"scan": RunScan, "surface": RunSurface, "repair": RunRepair, "inbox": RunInbox}
	passed, packed := map[string]int{}, 0
	for _, v := range vectors(t, "session-log.jsonl") {
		kind, name := vectorNames(t, v)
		if run[kind] == nil {
			continue // pack, unpack and the names of files and titles belong to kinds that are not built here
		}
		if kind == "scan" && IsPacked(v) {
			packed++
			continue
		}
		if verdict, why := run[kind](v); verdict != Passed {
			t.Errorf("%s %s: %s", kind, name, why)
			continue
		}
		passed[kind]++
	}
	want := map[string]int{"scan": 73 - packed, "surface": 65, "repair": 82, "inbox": 50}
	for kind, n := range want {
		if passed[kind] != n {
			t.Errorf("%s: %d of %d passed", kind, passed[kind], n)
		}
	}
	t.Logf("passed %v, packed scans not built: %d", passed, packed)
}
