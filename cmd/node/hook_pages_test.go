package main

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var agentPages = []string{"claude-code", "codex", "opencode", "vscode"}

// fence is a fenced block of a page.
type fence struct{ language, text string }

func fences(t *testing.T, page string) (text string, found []fence) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents", page+".md"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(raw), -1) {
		found = append(found, fence{m[1], m[2]})
	}
	require.NotEmpty(t, found)
	return string(raw), found
}

// Every block of a page is what it says it is, and each page begins with five lines.
func TestAgentPagesParse(t *testing.T) {
	for _, page := range agentPages {
		_, found := fences(t, page)
		require.Equal(t, "sh", found[0].language, page)
		require.Equal(t, 5, strings.Count(found[0].text, "\n"), page)
		for _, block := range found {
			switch block.language {
			case "json":
				require.True(t, json.Valid([]byte(block.text)), "%s:\n%s", page, block.text)
			case "toml":
				isTOML(t, page, block.text)
			case "sh":
				cmd := exec.CommandContext(t.Context(), "sh", "-n")
				cmd.Stdin = strings.NewReader(block.text)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s: %s\n%s", page, out, block.text)
			default:
				require.Fail(t, "a block without a language", "%s:\n%s", page, block.text)
			}
		}
	}
}

var tomlTable = regexp.MustCompile(`^(\[[A-Za-z_.]+\]|\[\[[A-Za-z_.]+\]\])$`)

// isTOML holds lines to the part of TOML whose values are JSON too.
func isTOML(t *testing.T, page, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || tomlTable.MatchString(line) {
			continue
		}
		key, value, found := strings.Cut(line, " = ")
		require.True(t, found && regexp.MustCompile(`^[a-z_]+$`).MatchString(key), "%s: %s", page, line)
		require.True(t, json.Valid([]byte(value)), "%s: %s", page, line)
	}
}

// Every command of ours in a page is one that this program has, with its flags.
func TestAgentPagesCommands(t *testing.T) {
	ours := regexp.MustCompile("(?m)(?:^|`|-- |&& |\\| )(parley [^`\n|>&]*)")
	for _, page := range agentPages {
		text, _ := fences(t, page)
		found := ours.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, found, page)
		for _, m := range found {
			knownCommand(t, page, words(t, m[1])[1:])
		}
		for _, m := range regexp.MustCompile(`"command": \["parley", ([^]]*)\]|"command": "parley",\s*"args": \[([^]]*)\]|command = "parley"\nargs = \[([^]]*)\]`).FindAllStringSubmatch(text, -1) {
			var args []string
			require.NoError(t, json.Unmarshal([]byte("["+m[1]+m[2]+m[3]+"]"), &args))
			knownCommand(t, page, args)
		}
	}
}

// words splits a line as a shell does.
func words(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
	require.NoError(t, err, line)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func knownCommand(t *testing.T, page string, args []string) {
	t.Helper()
	root := newCLI().root()
	if mcp, _, _ := root.Find([]string{"mcp"}); !mcp.HasParent() && args[0] == "mcp" {
		t.Run(page, func(t *testing.T) { t.Skipf("parley %s: this build has no verb mcp", strings.Join(args, " ")) })
		return
	}
	cmd, rest, err := root.Find(args)
	require.NoError(t, err, "%s: %q", page, args)
	require.True(t, cmd.HasParent(), "%s: %q is no verb", page, args)
	require.NoError(t, cmd.ParseFlags(rest), "%s: %q", page, args)
	if cmd.Args != nil {
		require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %q", page, args)
	}
}

// Every address of the node in a page is one that the MCP door knows.
func TestAgentPagesAddresses(t *testing.T) {
	for _, page := range agentPages {
		text, _ := fences(t, page)
		found := regexp.MustCompile("http://127\\.0\\.0\\.1:7410[^\\s\"`]*").FindAllString(text, -1)
		require.NotEmpty(t, found, page)
		for _, address := range found {
			u, err := url.Parse(address)
			require.NoError(t, err, page)
			require.Regexp(t, `^/mcp(/[A-Za-z]+)?$`, u.Path, page)
			for name, values := range u.Query() {
				require.Equal(t, "wait_max", name, page)
				_, err := time.ParseDuration(values[0])
				require.NoError(t, err, page)
			}
		}
	}
}

// The hooks of a page are those that the program prints.
func TestAgentPagesHooks(t *testing.T) {
	line := func(agent string) string {
		return hookLine("/usr/local/bin/parley", hooking{agent: agent}, defaultNode)
	}
	_, found := fences(t, "claude-code")
	require.Contains(t, found, fence{"json", string(claudeHooks(line(claudeCode), true)) + "\n"})
	_, found = fences(t, "codex")
	require.Contains(t, found, fence{"toml", codexHooks(line(codexAgent))})
}

// What a page says under "Try it" rings the bell, with a real node.
func TestAgentPagesTryIt(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	path, err := binary()
	require.NoError(t, err)
	for _, page := range []string{"claude-code", "codex"} {
		text, found := fences(t, page)
		_, after, _ := strings.Cut(text, "## Try it\n")
		at := slices.IndexFunc(found, func(f fence) bool { return strings.HasPrefix(after, "\n```sh\n"+f.text) })
		require.GreaterOrEqual(t, at, 0, page)
		for range 2 { // what was tried once can be tried again
			cmd := exec.CommandContext(t.Context(), "sh", "-c", found[at].text)
			cmd.Env = append(n.env, "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"), "USER=ada", "HOME="+t.TempDir())
			cmd.Stderr = io.Discard
			out, err := cmd.Output()
			require.NoError(t, err, page)
			require.Contains(t, string(out), `"1 reply waits: call collect_replies."`, page)
			require.Contains(t, string(out), "  = Yes\n", page)
		}
	}
	require.Empty(t, n.run(t, "questions").out)
}
