package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A session with a question that waits moves to another node, byte for byte, and is answered there.
func TestASessionMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	from, to := serveNode(t), serveNode(t)
	from.ask(t, "--timeout", "never")
	file := filepath.Join(t.TempDir(), "demo.jsonl")
	from.run(t, "log", "nobody").want(t, 25, "", from.run(t, "export", "nobody").err)
	r := from.run(t, "export", "demo", "-o", file)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^exported session demo to .*/demo\.jsonl: \d+ events, \d+ bytes\n$`, r.out)
	log, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, from.run(t, "log", "demo").out, string(log))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "answers are private")

	r = to.run(t, "import", file)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^imported session demo: \d+ events; the log ends in the middle of a step; questions that can be answered: 1\n$`, r.out)
	require.Equal(t, string(log), to.run(t, "export", "demo").out)
	r = to.run(t, "import", file)
	require.Equal(t, 34, r.exit)
	require.Contains(t, r.err, `there is a session "demo" already (SESSION_EXISTS)`)
	r = startWith(t, to.env, strings.NewReader(string(log)), "import", "-", "--as", "demo-2", "--json").end()
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "demo-2", r.document(t, r.out)["session"])
	require.Equal(t, strings.Replace(string(log), `"id":"demo"`, `"id":"demo-2"`, 1), to.run(t, "export", "demo-2").out)
	r = startWith(t, to.env, strings.NewReader(string(log)[:len(log)-9]), "import", "-", "--as", "demo-3").end()
	require.Equal(t, 35, r.exit, r.err)
	require.Contains(t, r.err, "the last line has no line feed")
	require.Equal(t, 25, to.run(t, "log", "demo-3").exit, "nothing is there")

	r = to.run(t, "answer", "demo", "q-1", "--option", "Yes")
	require.Zero(t, r.exit, r.err)
	to.stop(syscall.SIGTERM)
}

// packedLog is a log of the older generation, whose records are fewer than its events.
func packedLog(id string) string {
	return `{"type":"session","version":0,"id":"` + id + `","createdAt":1,"cwd":"/w","delegationDepth":0}` + "\n" +
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"trigger":{}}}` + "\n" +
		`{"type":"text-chunks","seq0":1,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[1` + strings.Repeat(",1", 700) + `],"texts":[""` + strings.Repeat(`,"-chunks"`, 701) + `]}}` + "\n" +
		`{"type":"todo/write","seq":703,"time":1,"data":{"todos":[{"content":"text-chunks","status":"pending"}]}}` + "\n"
}

// L-035, L-036: a folder of logs is taken, each log whole or not at all, and again without harm; a packed row comes out
// as it went in.
func TestAFolderOfLogsIsImported(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	dir := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	r := n.run(t, "import", dir)
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "there is no log in "+dir)
	put("--w--/one/session.jsonl", packedLog("one"))
	put("--w--/two/session.jsonl", packedLog("two"))
	r = n.run(t, "import", dir)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "imported session one: 704 events\nimported session two: 704 events\n2 imported, 0 here already, 0 refused\n", r.out)
	require.Equal(t, packedLog("one"), n.run(t, "export", "one").out)
	require.Equal(t, packedLog("one"), n.run(t, "log", "one").out)
	file := filepath.Join(t.TempDir(), "one.jsonl")
	require.Contains(t, n.run(t, "export", "one", "-o", file).out, ": 704 events, ")
	in := strings.SplitAfter(n.run(t, "log", "one", "--from", "700").out, "\n")
	require.Len(t, in, 6, "the header, three events of the row, the one behind it")

	put("--w--/three/session.jsonl", packedLog("three"))
	put("--w--/torn/session.jsonl", packedLog("torn")+"x")
	put("--w--/copy/session.jsonl", packedLog("one"))
	r = n.run(t, "import", dir, "--json")
	require.Equal(t, 35, r.exit, r.err)
	doc := r.document(t, r.out)
	require.Len(t, doc["imported"], 1)
	require.Equal(t, []any{"--w--/one/session.jsonl", "--w--/two/session.jsonl"}, doc["existing"])
	require.Len(t, doc["refused"], 2)
	r = n.run(t, "import", dir)
	require.Equal(t, 35, r.exit, r.err)
	require.Contains(t, r.out, `refused --w--/copy/session.jsonl: it is the log of session "one" and stands in the folder copy`)
	require.Contains(t, r.out, "refused --w--/torn/session.jsonl: the log cannot be imported: line 5: the last line has no line feed")
	require.True(t, strings.HasSuffix(r.out, "0 imported, 3 here already, 2 refused\n"), r.out)
	require.Equal(t, 2, n.run(t, "import", dir, "--as", "x").exit)
	n.stop(syscall.SIGTERM)
	require.NotZero(t, n.run(t, "import", dir).exit, "nobody is there")
}

// What export writes to a folder, import takes from it.
func TestAFolderOfExportsIsImported(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"a.jsonl": packedLog("one"), "b.jsonl": packedLog("two"), "notes.jsonl": "{}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r := n.run(t, "import", dir)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^imported session one: 704 events\nimported session two: 704 events\npassed over notes.jsonl: it has no session's header: .*\n2 imported, 0 here already, 0 refused\n$`, r.out)
	n.stop(syscall.SIGTERM)
}

// Where a log ends is known from its lines, in whatever pieces they come.
func TestWhereALogEnds(t *testing.T) {
	const turn, step, over = "; the log ends in the middle of a turn", "; the log ends in the middle of a step", ""
	log := ""
	for _, line := range []struct{ text, want string }{
		{`{"type":"session","id":"demo"}`, over},
		{`{"type":"turn/start"}`, turn},
		{`{"type":"step/start"}`, step},
		{`{"type":"assistant/message","data":{"text":"turn/end"}}`, step},
		{`no JSON`, step},
		{`{"type":"step/end"}`, turn},
		{`{"type":"turn/end"}`, over},
	} {
		log += line.text + "\n"
		for size := 1; size < 40; size += 6 {
			var end logEnd
			_, err := io.CopyBuffer(struct{ io.Writer }{&end}, struct{ io.Reader }{strings.NewReader(log)}, make([]byte, size))
			require.NoError(t, err)
			require.Equal(t, line.want, end.words(), log)
		}
	}
}

// The Tab key against a real node.
func TestTabAtARealNode(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "never")
	for line, want := range map[string]string{
		"answer ": "demo\tShip it?\n:4\n", "answer demo ": "q-1\tShip it?\n:4\n", "answer demo q-1 --option ": "Yes\nNo\n:4\n",
	} {
		require.Equal(t, want, n.run(t, append([]string{"__complete"}, strings.Split(line, " ")...)...).out, line)
	}
}

// A log that cannot be read to its end is broken off: the node must not take what came for all of it.
func TestALogThatCannotBeReadIsNotImported(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "never")
	log := n.run(t, "export", "demo").out
	header, _, _ := strings.Cut(log, "\n")
	c := newCLI()
	c.node, c.token = "http://"+n.addr, ""
	node, err := c.dial()
	require.NoError(t, err)
	whole := strings.Replace(header, `"id":"demo"`, `"id":"cut"`, 1) + "\n"
	_, err = sendLog(t.Context(), node, "", io.MultiReader(strings.NewReader(whole), iotest.ErrReader(errors.New("a bad sector"))))
	require.ErrorContains(t, err, "a bad sector")
	require.Equal(t, 25, n.run(t, "log", "cut").exit)
	require.Equal(t, 2, n.run(t, "import", filepath.Join(t.TempDir(), "none")).exit)
	require.Equal(t, 2, n.run(t, "import", "-", "--as", " ").exit)
}

// A file is there whole or not at all, and one that is there is kept.
func TestAFileIsWrittenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	text := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	broken := func(w io.Writer) error { return errors.Join(text("half")(w), errors.New("it broke")) }
	content := func() string { b, _ := os.ReadFile(path); return string(b) }
	require.ErrorContains(t, writeWhole(path, false, broken), "it broke")
	require.NoFileExists(t, path)
	require.NoError(t, writeWhole(path, false, text("one")))
	require.ErrorContains(t, writeWhole(path, false, text("two")), "exists")
	require.ErrorContains(t, writeWhole(path, true, broken), "it broke")
	require.Equal(t, "one", content())
	require.NoError(t, writeWhole(path, true, text("three")))
	require.Equal(t, "three", content())
	require.ErrorIs(t, placeNew(path, path), os.ErrExist)
	require.Error(t, writeWhole(filepath.Join(dir, "none", "f"), false, text("x")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left beside it")
}

func TestExportKeepsAFileThatExists(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	r := runCLI(t, "http://127.0.0.1:1", "", "export", "demo", "-o", path)
	r.want(t, 2, "", "error: "+path+" exists\nnext:  give --force to replace it\n")
	var doc map[string]any
	r = runCLI(t, "http://127.0.0.1:1", "", "export", "demo", "-o", path, "--json")
	require.NoError(t, json.Unmarshal([]byte(r.err), &doc))
}
