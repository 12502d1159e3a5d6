package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const inspectorBin = "mcp/node_modules/.bin/mcp-inspector"

// inspect runs a command of the README's section "From an MCP client", with the installed Inspector in place of npx,
// the built binary in place of ./parley, and this node in place of the one it names.
func inspect(t *testing.T, n *node, command string) (string, error) {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	bin, err := filepath.Abs(inspectorBin)
	require.NoError(t, err)
	script := inspectorName.ReplaceAllString(command, bin)
	require.NotEqual(t, command, script, "the command does not run the Inspector")
	dir := t.TempDir()
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "parley")))
	script = strings.ReplaceAll(script, "127.0.0.1:7410", n.addr)
	script = strings.ReplaceAll(script, "./parley mcp", "./parley mcp --node http://"+n.addr) // the Inspector passes no environment on
	cmd := exec.CommandContext(within(t, 2*patience), "sh", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PARLEY_NODE=http://"+n.addr, "HOME="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

var (
	inspectorName = regexp.MustCompile(`npx (-y )?@modelcontextprotocol/inspector@[\d.]+`)
	section       = regexp.MustCompile(`(?ms)^## From an MCP client\n(.*?)^## `)
	shellBlock    = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
)

// readmeInspector returns the commands of the README's section that run the Inspector.
func readmeInspector(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	found := section.FindStringSubmatch(string(readme))
	require.NotNil(t, found, "the README has no section From an MCP client")
	var commands []string
	for _, block := range shellBlock.FindAllStringSubmatch(found[1], -1) {
		for command := range strings.SplitSeq(strings.ReplaceAll(block[1], "\\\n", " "), "\n") {
			if inspectorName.MatchString(command) {
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	require.NotEmpty(t, commands, "the section has no command of the Inspector")
	return commands
}

// What the README says about the Inspector works as it stands there.
func TestInspectorOfTheReadme(t *testing.T) {
	needNode(t)
	t.Parallel()
	for _, command := range readmeInspector(t) {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			out, err := inspect(t, shared(t), command)
			require.NoError(t, err, out)
			if strings.Contains(command, "tools/list") {
				require.Contains(t, out, "ask_user_question")
				return
			}
			require.Contains(t, out, `"structuredContent"`)
			require.NotContains(t, out, `"isError": true`)
		})
	}
}

// The package that is installed is the one that the README names.
func TestInspectorIsTheOneOfTheReadme(t *testing.T) {
	pack, err := os.ReadFile("mcp/package.json")
	require.NoError(t, err)
	for _, command := range readmeInspector(t) {
		name := strings.Fields(inspectorName.FindString(command))
		at := strings.LastIndex(name[len(name)-1], "@")
		require.Contains(t, string(pack), `"@modelcontextprotocol/inspector": "`+name[len(name)-1][at+1:]+`"`)
	}
}

// The Inspector lists and calls every tool, over HTTP in both eras and over a pipe.
func TestInspector(t *testing.T) {
	if !full() {
		t.Skip("needs 20s of two processors: make e2e runs it; TestInspectorOfTheReadme does always")
	}
	needNode(t)
	const run = "npx @modelcontextprotocol/inspector@0 --cli --format json "
	for name, at := range map[string]string{
		"http":           "http://127.0.0.1:7410/mcp/%s --transport http",
		"http, newest":   "http://127.0.0.1:7410/mcp/%s --transport http --protocol-era modern",
		"a pipe":         "./parley mcp --session %s",
		"a pipe, newest": "./parley mcp --session %s --protocol-era modern",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := talking(t, shared(t), goClient, nil)
			at := strings.ReplaceAll(at, "%s", c.session)
			do := func(args string) map[string]any {
				out, err := inspect(t, c.node, run+at+" "+args)
				require.NoError(t, err, out)
				var got struct{ Result map[string]any }
				require.NoError(t, json.Unmarshal([]byte(out), &got), out)
				return got.Result
			}
			list := compact(do("--strict --method tools/list"))
			for _, tool := range []string{"ask_user_question", "collect_replies", "withdraw_question"} {
				require.Contains(t, list, `"`+tool+`"`)
			}
			q := newQuestion()
			tool := func(name string, args map[string]any) reply {
				raw := compact(do("--method tools/call --tool-name " + name + " --tool-args-json '" + compact(args) + "'"))
				got, err := readReply([]byte(raw))
				require.NoError(t, err)
				return got
			}
			got := tool("ask_user_question", question(q, map[string]any{"timeout": 1}))
			isPending(t, asked{reply: got})
			c.ledger.result(q, got)
			c.answer(q, "queued")
			got = tool("collect_replies", map[string]any{})
			list1, err := readCollected(got)
			require.NoError(t, err)
			require.Len(t, list1.Replies, 1)
			c.ledger.collected("", list1)
			c.after = list1.Token

			other := newQuestion()
			id := isPending(t, c.ask(t.Context(), other, map[string]any{"timeout": 1}))
			got = tool("withdraw_question", map[string]any{"call_id": id})
			require.Equal(t, true, got.structured["withdrawn"], got.text)
			c.over()
		})
	}
}
