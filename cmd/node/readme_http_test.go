package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// life is what the first block of the section prints, in this order: it is one script.
var life = regexp.MustCompile(`(?s)^\{"session":"http-demo", ?"root":"curl", ?"created":true\}
\{"session":"http-demo", ?"callId":"ship", ?"pending":.*"settlement":\{"outcome":"queued", ?"by":"ada".*"replies":\[.*"token":"\S+"\}
\{\}
$`)

// httpCommands are what the README's section on HTTP says after it, one by one: what a command must print, and the statuses
// it may end with.
var httpCommands = []struct {
	starts, prints string
	exits          []int
}{
	{"curl http", `"state":"settled"`, []int{0}},
	{"curl --get", `"session":{"session":"http-demo"`, []int{0}},
	{"printf ", `"live":true`, []int{28}}, // curl's own, for a time that is over
	{"go build ", "", []int{0}},
	{"bin/grpcurl -plaintext 127.0.0.1:7410 list", "parley.v1.InboxService\nparley.v1.QueryService\nparley.v1.QuestionService\nparley.v1.SessionService\n", []int{0}},
	{"bin/grpcurl -plaintext -d", `"state": "settled"`, []int{0}},
	{"bin/grpcurl -plaintext -max-time", `"live": true`, []int{64 + 4, 64 + 1}}, // DeadlineExceeded, or Canceled
	{"bin/grpcurl -plaintext 127.0.0.1:7410 grpc.health", `"status": "SERVING"`, []int{0}},
}

// blocksOf are the section's blocks of commands.
func blocksOf(t *testing.T, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	var out []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(rest, -1) {
		out = append(out, block[1])
	}
	return out
}

// commandsOf are the commands of blocks, a line each, with what continues it.
func commandsOf(blocks []string) (out []string) {
	for _, block := range blocks {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// livesItsLife runs the first block, twice: sent again, its requests change nothing.
func livesItsLife(t *testing.T, script string) {
	t.Helper()
	for _, want := range []*regexp.Regexp{life, regexp.MustCompile(`"outcome":"queued".*"repeated":true\}`)} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
		if err != nil || !want.Match(out) {
			t.Errorf("%s\nended with %v and printed\n%s\nexpected is %s", script, err, out, want)
		}
	}
}

// httpReadme runs every command of the section as it stands, but for the address of the node.
func httpReadme(t *testing.T, dir, address string) {
	section := blocksOf(t, "Over HTTP")
	commands := commandsOf(section[1:])
	if len(commands) != len(httpCommands) {
		t.Fatalf("the section has %d commands, of which %d are known: %q", len(commands), len(httpCommands), commands)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed (Debian: apt-get install curl), so the README's commands cannot be run")
	}
	livesItsLife(t, strings.ReplaceAll(section[0], "127.0.0.1:7410", strings.TrimPrefix(address, "http://")))
	grpcurl := filepath.Join(dir, "grpcurl")
	for i, command := range commands {
		want := httpCommands[i]
		if !strings.HasPrefix(command, want.starts) {
			t.Fatalf("command %d of the section is %q, expected is one that starts with %q", i, command, want.starts)
		}
		build := strings.HasPrefix(command, "go build ")
		command = strings.ReplaceAll(command, "127.0.0.1:7410", strings.TrimPrefix(address, "http://"))
		command = strings.ReplaceAll(command, "bin/grpcurl", grpcurl)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.CombinedOutput()
		if build && err != nil {
			t.Skipf("grpcurl cannot be built here (its modules are listed in tools/grpcurl/go.mod): %v\n%s", err, out)
		}
		exit := cmd.ProcessState.ExitCode()
		if !slices.Contains(want.exits, exit) || !strings.Contains(string(out), want.prints) {
			t.Errorf("%s\nended with %d and printed\n%s\nexpected is %v and %s", command, exit, out, want.exits, want.prints)
		}
	}
}
