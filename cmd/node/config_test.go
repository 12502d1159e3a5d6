package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// runAt runs the command with an environment of the test's own.
func runAt(t *testing.T, env map[string]string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli{
		in: strings.NewReader(""), out: &out, err: &errs, self: "parley", width: widthDefault, newID: func() string { return "7k2m9x4a" },
		now: func() time.Time { return at },
		env: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
	}
	exit := run(t.Context(), args, c)
	return ran{exit, out.String(), errs.String()}
}

// place makes a folder to run in, with files, and the environment of a user whose own file is there.
func place(t *testing.T, project, user string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(path, text string) {
		if text == "" {
			return
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(projectFile, project)
	write(filepath.Join(dir, "xdg", "parley", "config.toml"), user)
	return map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "xdg"), "XDG_DATA_HOME": filepath.Join(dir, "data")}
}

func settingsOf(t *testing.T, r ran) map[string]settingJSON {
	t.Helper()
	require.Zero(t, r.exit, r.err)
	var doc struct{ Settings []settingJSON }
	require.NoError(t, json.Unmarshal([]byte(r.out), &doc))
	out := map[string]settingJSON{}
	for _, s := range doc.Settings {
		out[s.Name] = s
	}
	return out
}

// Flag, environment, the project's file, the user's, default: the first that has a value gives it.
func TestSettingsComeFromTheFirstThatHasThem(t *testing.T) {
	const all = "claim_grace = \"%s\"\n"
	env := place(t,
		"# a comment\nexpiry = \"first\"\n'mode' = \"legacy\"\nallow-origin = [\"https://a.example\", \"https://b.example\"]\n"+strings.Replace(all, "%s", "3s", 1),
		strings.Replace(all, "%s", "4s", 1)+"default-timeout = \"never\"\nmode = \"timed\"\ntoken = \"a token of some length\"\n")
	type want struct{ value, origin, source string }
	check := func(r ran, name string, w want) {
		t.Helper()
		s := settingsOf(t, r)[name]
		got := want{origin: s.Origin}
		if s.Value != nil {
			got.value = *s.Value
		}
		if s.Source != nil {
			got.source = *s.Source
		}
		require.Equal(t, w, got, name)
	}
	user := filepath.Join(env["XDG_CONFIG_HOME"], "parley", "config.toml")
	printing := []string{"serve", "--print-config", "--json"}
	r := runAt(t, env, printing...)
	check(r, "claim-grace", want{"3s", "file", "./parley.toml:5"})
	check(r, "mode", want{"legacy", "file", "./parley.toml:3"})
	check(r, "allow-origin", want{"https://a.example,https://b.example", "file", "./parley.toml:4"})
	check(r, "default-timeout", want{"never", "file", user + ":2"})
	check(r, "token", want{"", "file", user + ":4"})
	require.True(t, settingsOf(t, r)["token"].Secret)
	require.NotContains(t, r.out+r.err, "a token of some length")
	check(r, "listen", want{"127.0.0.1:7410", "default", ""})
	check(r, "journal", want{filepath.Join(env["XDG_DATA_HOME"], "parley", "journal.db"), "default", ""})
	require.NoFileExists(t, env["XDG_DATA_HOME"], "it starts nothing")

	env["PARLEY_CLAIM_GRACE"] = "2s"
	check(runAt(t, env, printing...), "claim-grace", want{"2s", "environment", "PARLEY_CLAIM_GRACE"})
	check(runAt(t, env, append(printing, "--claim-grace", "1s")...), "claim-grace", want{"1s", "flag", ""})
	check(runAt(t, env, "--print-config", "--json"), "claim-grace", want{"2s", "environment", "PARLEY_CLAIM_GRACE"})

	require.NoError(t, os.WriteFile("other.toml", []byte("listen = \"127.0.0.1:1\"\n"), 0o600))
	for _, named := range []ran{
		runAt(t, env, append(printing, "--config", "other.toml")...),
		runAt(t, map[string]string{"PARLEY_CONFIG": "other.toml", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": env["XDG_CONFIG_HOME"]}, printing...),
	} {
		check(named, "listen", want{"127.0.0.1:1", "file", "other.toml:1"})
		check(named, "mode", want{"timed", "default", ""})
	}
	text := runAt(t, env, "serve", "--print-config")
	require.Regexp(t, `(?m)^mode +legacy +file \./parley\.toml:3$`, text.out)
	require.Regexp(t, `(?m)^token +\(hidden\) +file .*config\.toml:4$`, text.out)
}

// A file that is wrong is refused with its place, what it holds and what to write; nothing is started.
func TestBadConfigurationIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"claim-grace = 20\n":                       "./parley.toml:1: claim-grace = 20 has no unit\nnext:  claim-grace = \"20s\"; a bare 20 could be seconds or minutes",
		"\ndefault_timeout = 90.5\n":               "./parley.toml:2: default-timeout = 90.5 has no unit\nnext:  default-timeout = \"90.5s\"",
		"claim-grace = \"20\"\n":                   "claim-grace 20 has no unit (./parley.toml:1)\nnext:  claim-grace = \"20s\"; a bare 20 could be",
		"claim-grace = \"soon\"\n":                 "claim-grace \"soon\" is no duration (./parley.toml:1)\nnext:  write a duration",
		"mode = 3\n":                               "./parley.toml:1: mode = 3 is no text\nnext:  write it in quotes",
		"mode = \"fast\"\n":                        "mode \"fast\" is not known (./parley.toml:1)\nnext:  use one of: timed, legacy",
		"mode = true\n":                            "./parley.toml:1: mode = true is no text",
		"mode = [\"timed\"]\n":                     "./parley.toml:1: mode takes one value, not a list",
		"mode = 2020-01-01\n":                      "./parley.toml:1: mode is a date",
		"mode = \" \"\n":                           "./parley.toml:1: mode is empty",
		"claim-grce = \"1s\"\n":                    "./parley.toml:1: there is no key \"claim-grce\"\nnext:  did you mean claim-grace? `parley help config` lists the keys",
		"claim-grace = \"1s\"\nclaim_grace=\"2s\"": "is set twice, with - and with _",
		"[serve]\nmode = \"timed\"\n":              "./parley.toml:1: there are no tables, and \"serve\" is one",
		"mode.x = \"timed\"\n":                     "./parley.toml:1: mode is a table",
		"json = true\n":                            "./parley.toml:1: \"json\" cannot be set in a file\nnext:  give --json on the command line",
		"allow-origin = [1]\n":                     "./parley.toml:1: allow-origin holds 1, which is no text",
		"mode = timed\n":                           "./parley.toml:1: ",
		"mode\n":                                   "./parley.toml:1: ",
		"mode = \"timed\"\nmode = \"legacy\"\n":    "./parley.toml:2: ",
		"\xff = 1\n":                               "./parley.toml:1: ",
		strings.Repeat("#", configBytesMax+1):      "has more than 1048576 bytes",
	} {
		env := place(t, text, "")
		r := runAt(t, env, "serve", "--print-config")
		require.Equal(t, 2, r.exit, "%q: %s", text, r.out)
		require.Contains(t, r.err, want, "%q", text)
		require.Equal(t, 2, strings.Count(r.err, "\n"), r.err)
		require.Zero(t, runAt(t, env, "help", "config").exit, "help is there whatever the file says")
		require.Zero(t, runAt(t, env, "completion", "bash").exit)
	}
	env := place(t, "", "")
	require.Contains(t, runAt(t, env, "serve", "--print-config", "--config", "none.toml").err, "the configuration none.toml cannot be read: no such file")
	require.Contains(t, runAt(t, env, "serve", "--print-config", "--config", ".").err, "it is a folder")
	require.Zero(t, runAt(t, env, "serve", "--print-config", "--config", os.DevNull).exit)
}

// A verb takes from a file what it has a flag for, and a file that is wrong is wrong for every verb.
func TestClientVerbsReadTheFiles(t *testing.T) {
	f := newFake(t)
	f.rows(shipIt("open"))
	env := place(t, "node = \""+f.url+"\"\nmode = \"legacy\"\n", "")
	r := runAt(t, env, "questions")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Ship it?")
	env = place(t, "node = \"http://127.0.0.1:1\"\n", "")
	require.Contains(t, runAt(t, env, "questions").err, "no node listens at http://127.0.0.1:1, where node in ./parley.toml:1 points")
	env = place(t, "nod = \"x\"\n", "")
	require.Contains(t, runAt(t, env, "questions").err, "did you mean node?")
}

// A folder that somebody else made must not get the user's token.
func TestATokenIsNotSentWhereOnlyAProjectFileSays(t *testing.T) {
	const far, secret = "node = \"http://node.example:1\"\n", "token = \"a token of some length\"\n"
	refused := "./parley.toml:1 names the node node.example:1, and this file is not asked to whom a token is sent"
	env := place(t, far, secret)
	require.Contains(t, runAt(t, env, "questions").err, refused)
	env["PARLEY_TOKEN"] = "another token of some length"
	require.Contains(t, runAt(t, env, "questions").err, refused)
	require.NotContains(t, runAt(t, env, "questions", "--node", "http://127.0.0.1:1").err, refused)
	env = place(t, far+secret, "")
	require.NotContains(t, runAt(t, env, "questions").err, refused, "it is the project's own")
	env = place(t, "", far+secret)
	require.NotContains(t, runAt(t, env, "questions").err, refused, "it is the user's own")
}

func TestATokenInAnOpenFileIsWarnedOf(t *testing.T) {
	env := place(t, "mode = \"timed\"\ntoken = \"a token of some length\"\n", "")
	require.Empty(t, runAt(t, env, "serve", "--print-config").err)
	require.NoError(t, os.Chmod(projectFile, 0o644))
	require.Equal(t, "warning: ./parley.toml:2 holds a token, and others can read the file; `chmod 600 ./parley.toml` ends that\n",
		runAt(t, env, "serve", "--print-config").err)
	require.Empty(t, runAt(t, env, "serve", "--print-config", "--json").err, "there stderr is for one object")
}

// Every flag of serve can be set in a file, but for those of one run.
func TestEveryFlagOfServeIsAKey(t *testing.T) {
	c := &cli{env: func(string) (string, bool) { return "", false }}
	root := c.root()
	known := fileKeys(root)
	serve, _, err := root.Find([]string{"serve"})
	require.NoError(t, err)
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Name == "print-config" {
			require.NotContains(t, known, f.Name)
			return
		}
		require.Contains(t, known, f.Name)
	})
	require.Contains(t, known, "node")
	require.Contains(t, known, "root")
	require.NotContains(t, known, "option")
}

func FuzzParseConfig(f *testing.F) {
	c := &cli{env: func(string) (string, bool) { return "", false }}
	known := fileKeys(c.root())
	f.Add("mode = \"timed\"\nclaim_grace = \"1s\"\nallow-origin = [\"https://a\"]\n")
	f.Add("claim-grace = 1\n[serve]\n")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := parseConfig("f", text, known)
		if err != nil {
			require.Equal(t, codeUsage, asTrouble(err).code)
			return
		}
		for _, s := range settings {
			require.NotNil(t, known[s.flag])
			require.Positive(t, s.line)
		}
	})
}

// A hook reads the files too. Of a bad one an agent tells its user, and goes on: that is status 1, where 2 would block.
func TestAHookReadsTheFilesAndBlocksNobody(t *testing.T) {
	r := runAt(t, place(t, "nod = 1\n", ""), "hook", "claude-code")
	require.Equal(t, 1, r.exit)
	require.Equal(t, "{}\n", r.out)
	require.Contains(t, r.err, "there is no key \"nod\"")
}

// A file that moves the node moves those that speak to it, unless it names a node itself.
func TestVerbsFindTheNodeWhereItListens(t *testing.T) {
	for _, c := range []struct{ project, user, want string }{
		{"listen = \"127.0.0.1:1\"\n", "", "http://127.0.0.1:1, where listen in ./parley.toml:1 points"},
		{"\nlisten = \"0.0.0.0:1\"\n", "", "http://127.0.0.1:1, where listen in ./parley.toml:2 points"},
		{"listen = \":1\"\n", "", "http://127.0.0.1:1, where listen in ./parley.toml:1 points"},
		{"listen = \"127.0.0.1:1\"\nnode = \"http://127.0.0.1:2\"\n", "", "http://127.0.0.1:2, where node in ./parley.toml:2 points"},
		{"listen = \"127.0.0.1:1\"\n", "node = \"http://127.0.0.1:2\"\n", "http://127.0.0.1:1, where listen in ./parley.toml:1 points"},
		{"listen = \"127.0.0.1:0\"\n", "node = \"http://127.0.0.1:2\"\n", "http://127.0.0.1:2, where node in "},
	} {
		env := place(t, c.project, c.user)
		r := runAt(t, env, "questions")
		require.Equal(t, 69, r.exit, r.err)
		require.Contains(t, r.err, "no node listens at "+c.want)
		env["PARLEY_NODE"] = "http://127.0.0.1:3"
		require.Contains(t, runAt(t, env, "questions").err, "no node listens at http://127.0.0.1:3, where PARLEY_NODE points")
		require.Contains(t, runAt(t, env, "questions", "--node", "http://127.0.0.1:4").err, "no node listens at http://127.0.0.1:4 ")
	}
	env := place(t, "listen = \"192.0.2.1:1\"\n", "") // a folder may be anybody's: it gets no token
	env["PARLEY_TOKEN"] = "a token of some length"
	r := runAt(t, env, "questions")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "names the node 192.0.2.1:1, and this file is not asked to whom a token is sent")
}
