package conformance

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// L-011, L-020 to L-025, L-030 to L-036, L-040, L-041, L-050 to L-056, L-060 to L-067, L-071: the vectors of the log
// itself, of every kind.
func TestSessionLogVectors(t *testing.T) {
	passed := map[string]int{}
	for _, v := range vectors(t, "session-log.jsonl") {
		kind, name := vectorNames(t, v)
		if verdict, why := runners[kind](v, Options{}); verdict != Passed {
			t.Errorf("%s %s: %s", kind, name, why)
			continue
		}
		passed[kind]++
	}
	require.Equal(t, map[string]int{"scan": 73, "surface": 65, "repair": 82, "inbox": 50, "pack": 47, "unpack": 12,
		"segment": 11, "project": 7, "title": 9, "fallback-title": 5}, passed)
}

// L-027, S-070, S-080: what every event of the real logs says and what became of it, where their folder is.
func TestSessionExtractionVectors(t *testing.T) {
	shared := filepath.Join("..", "..", "..", "shared")
	file := filepath.Join(shared, "vectors", "session-extraction.jsonl")
	if _, err := os.Stat(file); err != nil {
		t.Skip("no folder of real logs beside the module: its files are not part of it")
	}
	sum, err := Run(os.Stderr, []string{file}, Options{Logs: filepath.Join(shared, "logs")})
	require.NoError(t, err)
	require.Equal(t, [2]int{73, 0}, [2]int{sum.Passed, sum.Failed})
	sum, err = Run(io.Discard, []string{file}, Options{})
	require.NoError(t, err)
	require.Equal(t, [2]int{0, 73}, [2]int{sum.Passed, sum.Failed}, "without the logs there is nothing to pass on")
}

// The vectors of a log that is spoiled in one place fail: the runner compares what it says it does.
func TestSessionExtractionCanFail(t *testing.T) {
	logs := t.TempDir()
	log := `{"type":"session","version":0,"id":"{{sessionId}}","createdAt":1,"cwd":"{{cwd}}"}
{"type":"user/message","data":{"content":[{"type":"text","text":" hello "}],"source":{"kind":"user"}},"surfaceOp":"append"}
{"type":"text-chunks","data":{"turn":1,"step":1,"index":0,"dt":[0],"texts":["a","b"]}}
{"type":"turn/start","data":{"turn":1,"trigger":{}}}
`
	require.NoError(t, os.WriteFile(filepath.Join(logs, "l.jsonl"), []byte(log), 0o600))
	const right = `{"log":"l.jsonl","storedEvents":4,"syntheticClosers":1,"current":[0],"replacements":[],"events":[` +
		`{"seq":0,"type":"user/message","surface":"current","text":"hello"},` +
		`{"seq":1,"type":"assistant/chunk","surface":"log-only","text":""},` +
		`{"seq":2,"type":"assistant/chunk","surface":"log-only","text":""},` +
		`{"seq":3,"type":"turn/start","surface":"log-only","text":""},` +
		`{"seq":4,"type":"turn/end","surface":"log-only","text":"interrupted"}]}`
	verdict, why := RunExtraction([]byte(right), Options{Logs: logs})
	require.Equal(t, Passed, verdict, why)
	for _, wrong := range []string{
		strings.Replace(right, "hello", "hallo", 1),
		strings.Replace(right, `"surface":"current"`, `"surface":"shadowed"`, 1),
		strings.Replace(right, `"storedEvents":4`, `"storedEvents":5`, 1),
		strings.Replace(right, "l.jsonl", "another.jsonl", 1),
		`{"log":"l.jsonl","error":"refused"}`,
	} {
		verdict, _ := RunExtraction([]byte(wrong), Options{Logs: logs})
		require.Equal(t, Failed, verdict, wrong)
	}
}

func TestFillIn(t *testing.T) {
	filled, err := FillIn([]byte(`{"type":"session","version":0,"id":"{{sessionId}}","createdAt":1,"cwd":"{{cwd}}"}
{"type":"text-chunks","data":{"texts":["a","b"]}}
{"type":"turn/start","data":{},"time":7}
`), "s 1", "/w")
	require.NoError(t, err)
	require.Equal(t, `{"type":"session","version":0,"id":"s 1","createdAt":1,"cwd":"/w","delegationDepth":0}
{"type":"text-chunks","data":{"texts":["a","b"]},"seq0":0,"time0":0}
{"type":"turn/start","data":{},"time":7,"seq":2}
`, string(filled))
	for _, bad := range []string{"x\n", "{}\n", `{"type":"session","version":0,"id":"a","createdAt":1}` + "\n{}\n"} {
		_, err := FillIn([]byte(bad), "s", "")
		require.Error(t, err, bad)
	}
}
