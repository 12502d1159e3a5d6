package parley_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
)

func logOf(id string) string {
	return `{"type":"session","version":0,"id":"` + id + `","createdAt":1,"cwd":"/srv/app","delegationDepth":0}` + "\n" +
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` + "\n"
}

// L-032, L-036: every session has a folder, under its project or not, and its
// newest generation counts; what cannot be told is refused by name.
func TestArchive(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	v3 := strings.Replace(logOf("b/1"), `"version":0`, `"version":3,"isSeeded":false`, 1)
	tree := fstest.MapFS{
		"--srv-app--/a/session.jsonl":               file(logOf("a")),
		"--srv-app--/a/session.jsonl.bak":           file("no log"),
		"--srv-app--/a/notes/session.txt":           file("no log"),
		"--srv-app--/b~002F1/session.jsonl":         file(logOf("b/1")),
		"--srv-app--/b~002F1/session.v3.jsonl":      file(v3),
		"_no-cwd/c/session.jsonl.zstd":              file(string(compressed(t, logOf("c")))),
		"_no-cwd/copy of c/session.jsonl":           file(logOf("c")),
		"_no-cwd/copy of d/session.jsonl.zstd":      file(string(compressed(t, logOf("d")))),
		"_no-cwd/both/session.jsonl":                file(logOf("both")),
		"_no-cwd/both/session.jsonl.zstd":           file(logOf("both")),
		"_no-cwd/damaged/session.jsonl":             file("no log"),
		"_no-cwd/a folder/session.jsonl/readme.txt": file("no log"),
	}
	logs, err := parley.Archive(tree)
	require.NoError(t, err)
	problems := map[string]string{}
	for _, log := range logs {
		problems[log.Path] = ""
		if log.Problem != nil {
			require.Equal(t, messages.BadLog, messages.CodeOf(log.Problem))
			problems[log.Path] = log.Problem.Error()
		}
	}
	for path, want := range map[string]string{
		"--srv-app--/a/session.jsonl":          "",
		"--srv-app--/b~002F1/session.v3.jsonl": "",
		"_no-cwd/c/session.jsonl.zstd":         "",
		"_no-cwd/copy of c/session.jsonl":      `the log of session "c" and stands in the folder copy of c, where the session's own would be named c`,
		"_no-cwd/copy of d/session.jsonl.zstd": `the log of session "d" and stands in the folder copy of d`,
		"_no-cwd/both/session.jsonl":           "two logs of one generation, session.jsonl and session.jsonl.zstd",
		"_no-cwd/damaged/session.jsonl":        "", // for the import to say
	} {
		got, there := problems[path]
		require.True(t, there, path)
		if want == "" {
			require.Empty(t, got, path)
		}
		require.Contains(t, got, want, path)
		delete(problems, path)
	}
	require.Empty(t, problems)

	part, err := fs.Sub(tree, "_no-cwd/copy of c") // one session's folder, whatever it is called here
	require.NoError(t, err)
	logs, err = parley.Archive(part)
	require.NoError(t, err)
	require.Equal(t, []parley.ArchivedLog{{Path: "session.jsonl"}}, logs)
}

// Logs that stand by themselves, as `parley export -o` writes them, are named by
// their headers. Of two of one session neither is taken.
func TestArchiveOfPlainFiles(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	logs, err := parley.Archive(fstest.MapFS{
		"any name.jsonl":          file(logOf("one")),
		"deeper/two.jsonl.zstd":   file(string(compressed(t, logOf("two")))),
		"notes.jsonl":             file(`{"note":"no log"}` + "\n"),
		"empty.jsonl":             file(""),
		"readme.txt":              file(logOf("text")),
		"twice.jsonl":             file(logOf("twice")),
		"deeper/twice-old.jsonl":  file(logOf("twice")),
		"own/session.jsonl":       file(logOf("own")),
		"own/session-old.jsonl":   file(logOf("own")),
		"copies/own.jsonl":        file(logOf("own")),
		"b~002F1/session.v3.json": file(logOf("b/1")),
	})
	require.NoError(t, err)
	found, strays := map[string]string{}, []string{}
	for _, log := range logs {
		found[log.Path] = ""
		if log.Problem != nil {
			found[log.Path] = log.Problem.Error()
		}
		if log.Stray {
			strays = append(strays, log.Path)
		}
	}
	for path, want := range map[string]string{
		"any name.jsonl": "", "deeper/two.jsonl.zstd": "", "own/session.jsonl": "",
		"notes.jsonl": "no session's header", "empty.jsonl": "no session's header",
		"twice.jsonl":            `deeper/twice-old.jsonl is a log of the same session "twice"`,
		"deeper/twice-old.jsonl": `twice.jsonl is a log of the same session "twice"`,
		"copies/own.jsonl":       `own/session.jsonl is a log of the same session "own"`,
	} {
		got, there := found[path]
		require.True(t, there, path)
		require.Contains(t, got, want, path)
		require.Equal(t, want == "", got == "", got)
		delete(found, path)
	}
	require.Empty(t, found)
	require.Equal(t, []string{"empty.jsonl", "notes.jsonl"}, strays)
}

func TestArchiveOfNothing(t *testing.T) {
	t.Parallel()
	logs, err := parley.Archive(fstest.MapFS{})
	require.NoError(t, err)
	require.Empty(t, logs)
	_, err = parley.Archive(unreadable{})
	require.ErrorContains(t, err, "the disk is gone")
}

type unreadable struct{}

func (unreadable) Open(string) (fs.File, error) { return nil, errors.New("the disk is gone") }
