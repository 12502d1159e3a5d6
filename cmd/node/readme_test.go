package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// blocks returns the fenced blocks of the README in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("the README has no block of %s", language)
	}
	return found
}

// masks replace what differs from run to run: ids, ages, the port, and the version.
var masks = []struct {
	found   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(q|a|s)-[a-z2-7]{12}\b`), "$1-ID"},
	{regexp.MustCompile(`\breply-[a-z2-7]{20}\b`), "reply-ID"},
	{regexp.MustCompile(` --node http://127\.0\.0\.1:\d+`), ""},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(?m)^(demo +q-ID +continued +)\d+s +-$`), "${1}AGE -"},
	{regexp.MustCompile(`waiting \ds`), "waiting TIME"},
	{regexp.MustCompile(`(?m)^parley \S+  `), "parley VERSION  "},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.found.ReplaceAllString(text, m.instead)
	}
	return text
}

// replay runs the commands of a block in one shell and returns the block as it came out.
func replay(t *testing.T, dir string, env []string, block string) string {
	t.Helper()
	script := ""
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			command = strings.TrimSpace(command)
			// The status of the command before must be there for `echo $?`.
			script += "s=$?; printf '%s\\n' '$ " + command + "'; (exit $s); " + command + "\n"
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("the last command ended with %v", err)
	}
	return string(out)
}

// The walk-through of the README is run from its text: what a stranger copies gives what a stranger reads.
func TestReadmeWalkThrough(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(path, filepath.Join(dir, "parley")); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "USER=ada", "PARLEY_LISTEN=127.0.0.1:0"}
	steps := blocks(t, "console")
	address := serveReadme(t, dir, env, steps[0])
	env = append(env, "PARLEY_NODE="+address)
	for _, step := range steps[1:] {
		if got := replay(t, dir, env, step); mask(got) != mask(step) {
			t.Errorf("the README says\n%s\nand the commands say\n%s", step, got)
		}
	}
	t.Run("over HTTP", func(t *testing.T) { httpReadme(t, dir, address) })
}

// serveReadme runs the first block, whose command does not end, and compares as many lines as it shows.
func serveReadme(t *testing.T, dir string, env []string, step string) (address string) {
	t.Helper()
	command, screen, _ := strings.Cut(step, "\n")
	words := strings.Fields(strings.TrimPrefix(command, "$ "))
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Path = filepath.Join(dir, words[0]) // exec resolves it here, and parley sees how it was called
	cmd.Err = nil
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, got := &process{t: t, cmd: cmd, out: lines(out)}, ""
	for range strings.Count(screen, "\n") {
		got += p.await(p.out, "") + "\n"
	}
	if mask(got) != mask(screen) {
		t.Errorf("the README says\n%s\nand serve says\n%s", screen, got)
	}
	return regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(got)
}

// The program in the README runs, prints how it is answered, and is. Where its address is taken it says so and ends.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	parley, err := binary()
	require.NoError(t, err)
	dir, address := t.TempDir(), quietPort(t)
	require.NoError(t, os.Symlink(parley, filepath.Join(dir, "parley")))
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	text := blocks(t, "go")[0]
	require.Contains(t, text, "127.0.0.1:7411")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "127.0.0.1:7411", address)), 0o600))
	for _, args := range [][]string{{"vet", file}, {"build", "-o", program, file}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	for range 2 { // the second run asks another question
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = dir
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		p := &process{t: t, cmd: cmd, out: lines(out)}
		command := p.await(p.out, "./parley answer program")
		require.Eventually(t, func() bool { // the question may be there before the port is
			answer := exec.CommandContext(t.Context(), "sh", "-c", command)
			answer.Dir, answer.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "USER=ada"}
			return answer.Run() == nil
		}, 10*time.Second, 100*time.Millisecond)
		p.await(p.out, "[Yes]")
		require.NoError(t, cmd.Wait())
	}

	taken, err := net.Listen("tcp", address)
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "something listens on "+address+" already")
}

// What the README points to is there.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		file, _, _ := strings.Cut(m[1], "#")
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Errorf("the README points to %s: %v", m[1], err)
		}
	}
}
