package sqlite

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
)

func init() {
	// unprivileged opens as nobody: root may write where nobody else may.
	roles["unprivileged"] = func(path string) {
		if os.Getuid() == 0 {
			if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
				fmt.Println("cannot become nobody:", err)
				return
			}
		}
		roles["open"](path)
	}
	// limited writes under a limit of file size until it is full, then without.
	roles["limited"] = func(path string) {
		signal.Ignore(syscall.SIGXFSZ)
		j, err := Open(path)
		if err != nil {
			fmt.Println(err)
			return
		}
		var was syscall.Rlimit
		check(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
		check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: was.Max}))
		b, n := journaltest.Birth("s", 1), int64(0)
		for ; err == nil; n++ {
			if n > 0 {
				b = journaltest.Next("s", 1, n, 1)
				b.Events = journaltest.Events(n, 1, strings.Repeat("x", 20_000))
			}
			_, err = journaltest.Append(j, b)
		}
		fmt.Println(messages.CodeOf(err), n-1)
		check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
		_, err = journaltest.Append(j, b)
		fmt.Println("then", err)
		check(j.Close())
	}
}

func TestWhatCannotBeWrittenIsReadOnly(t *testing.T) {
	for name, c := range map[string]struct{ file, folder os.FileMode }{
		"the file":   {0o444, 0o777},
		"the folder": {0o666, 0o555},
	} {
		t.Run(name, func(t *testing.T) {
			// Not below t.TempDir, which nobody else can enter.
			folder, err := os.MkdirTemp("", "journal") //nolint:usetesting // see above
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = os.Chmod(folder, 0o700)
				_ = os.RemoveAll(folder)
			})
			path := filepath.Join(folder, "journal.db")
			data, err := os.ReadFile(written(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.WriteFile(path, data, 0o600), os.Chmod(path, c.file), os.Chmod(folder, c.folder)); err != nil {
				t.Fatal(err)
			}
			_, out := child(t, "unprivileged", path)
			said, _ := out.ReadString('\n')
			if !strings.HasPrefix(said, string(messages.JournalReadOnly)) || !strings.Contains(said, path) {
				t.Fatalf("opened with %q", said)
			}
			if after, _ := os.ReadFile(path); string(after) != string(data) {
				t.Fatal("the file was changed")
			}
		})
	}
}

// mountTmpfs mounts a small disk, for which the test must be root.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func TestAReadOnlyDiskIsReadOnly(t *testing.T) {
	folder := mountTmpfs(t, "8m")
	path := filepath.Join(folder, "journal.db")
	if err := mustOpen(t, path, options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("a disk cannot be made read-only here: %v", err)
	}
	wantRefused(t, path, messages.JournalReadOnly)
}

func TestAFullDiskRecoversByItself(t *testing.T) {
	folder := mountTmpfs(t, "2m")
	ballast := filepath.Join(folder, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, filepath.Join(folder, "journal.db"), options{})
	fillAndFree(t, j, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

// The kernel's limit on the size of a file, which any user can have set.
func TestAFileAtItsLimitRecoversByItself(t *testing.T) {
	path := newPath(t)
	_, out := child(t, "limited", path)
	full, _ := out.ReadString('\n')
	then, _ := out.ReadString('\n')
	var n int64
	if _, err := fmt.Sscanf(full, string(messages.JournalFull)+" %d", &n); err != nil || n == 0 || then != "then <nil>\n" {
		t.Fatalf("at the limit: %q, and without it: %q", full, then)
	}
	_, _ = out.ReadString('\n') // until it has ended
	j := mustOpen(t, path, options{})
	if o, err := j.Read(t.Context(), "s", 0, 0); err != nil || int64(len(o.Events)) != n+1 {
		t.Fatalf("%d events, acknowledged were %d; %v", len(o.Events), n+1, err)
	}
}
