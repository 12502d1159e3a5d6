//go:build linux || darwin

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
)

func init() {
	// modes makes and writes a journal without any umask and says the mode of
	// every file beside it as soon as there is one, and at the end.
	roles["modes"] = func(path string) {
		syscall.Umask(0)
		j, err := Open(path)
		check(err)
		_, err = journaltest.Append(j, journaltest.Birth("s", 1))
		check(err)
		files, err := filepath.Glob(path + "*")
		check(err)
		for _, name := range files {
			info, err := os.Stat(name)
			check(err)
			fmt.Println(filepath.Base(name), info.Mode().Perm())
		}
		check(j.Close())
	}
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// One file has one owner, whatever names lead to it.
func TestAFileHasOneOwner(t *testing.T) {
	for name, rename := range map[string]func(path, other string) error{
		"a hard link": os.Link,
		"a symlink":   os.Symlink,
		"renamed":     os.Rename,
		"the lock file removed": func(path, other string) error {
			return errors.Join(os.Remove(lockPath(path)), os.Symlink(path, other))
		},
		"renamed, the lock file removed": func(path, other string) error {
			return errors.Join(os.Remove(lockPath(path)), os.Rename(path, other))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			other := filepath.Join(filepath.Dir(path), "other.db")
			j, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
				t.Fatal(err)
			}
			if err := rename(path, other); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(other); messages.CodeOf(err) != messages.JournalLocked {
				t.Fatalf("this process: %v", err)
			}
			_, out := child(t, "open", other)
			if said, _ := out.ReadString('\n'); !strings.HasPrefix(said, string(messages.JournalLocked)) {
				t.Fatalf("another process: %s", said)
			}
			_ = j.Close()
		})
	}
}

func TestAFileOfTwoNamesIsRefused(t *testing.T) {
	path := written(t)
	other := filepath.Join(filepath.Dir(path), "other.db")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other} {
		wantRefused(t, name, messages.JournalLocked)
		if _, err := Open(name); !strings.Contains(err.Error(), "hard links") {
			t.Fatalf("it does not say why: %v", err)
		}
	}
	if _, err := os.Stat(other + "-wal"); err == nil {
		t.Fatal("a WAL was made for a file that was refused")
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, options{})
}

func TestNewFilesAreNobodyElsesWhateverTheUmask(t *testing.T) {
	path := newPath(t)
	_, out := child(t, "modes", path)
	said := map[string]string{}
	for line, err := out.ReadString('\n'); err == nil; line, err = out.ReadString('\n') {
		name, mode, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[name] = mode
	}
	for _, name := range []string{"journal.db", "journal.db-wal", "journal.db-shm", "journal.db-lock"} {
		if said[name] != fileMode.String() {
			t.Errorf("%s has mode %q, want %v", name, said[name], fileMode)
		}
	}
}

// A failed connection was the last, and took the files with it.
func TestFilesMadeAgainAreNobodyElses(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	d := newDisk(t)
	j := mustOpen(t, newPath(t), options{vfs: d.name})
	d.failing(func(o op) error {
		if o.kind == 's' {
			return syscall.EIO
		}
		return nil
	})
	if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); messages.CodeOf(err) != messages.JournalIO {
		t.Fatal(err)
	}
	d.failing(nil)
	if _, err := journaltest.Append(j, journaltest.Birth("other", 1)); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-lock"} {
		if info, err := os.Stat(j.path + suffix); err != nil || info.Mode().Perm() != fileMode {
			t.Errorf("%s: %v, %v", suffix, info.Mode().Perm(), err)
		}
	}
}

// Files that are taken away from under a journal: nothing is acknowledged that
// could not be found again, and the caller is told which file and what to do.
func TestFilesThatVanishEndTheRecording(t *testing.T) {
	replace := func(name string) error {
		return errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, nil, fileMode))
	}
	for name, c := range map[string]struct {
		take  func(path string) error
		names string // the file that the error names
		kept  bool   // what was acknowledged is there when it is opened again
	}{
		"the file removed":  {os.Remove, "", false},
		"the file replaced": {replace, "", false},
		"the file renamed":  {func(p string) error { return os.Rename(p, p+".old") }, "", false},
		"a link in its place": {func(p string) error {
			return errors.Join(os.Rename(p, p+".old"), os.Symlink(p+".old", p))
		}, "", false},
		"the file emptied":  {func(p string) error { return os.Truncate(p, 0) }, "", false},
		"the WAL removed":   {func(p string) error { return os.Remove(p + "-wal") }, "-wal", true},
		"the WAL replaced":  {func(p string) error { return replace(p + "-wal") }, "-wal", true},
		"the WAL emptied":   {func(p string) error { return os.Truncate(p+"-wal", 0) }, "-wal", false},
		"the WAL cut short": {func(p string) error { return os.Truncate(p+"-wal", 40_000) }, "-wal", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			j, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if _, err := journaltest.Append(j, journaltest.Birth(fmt.Sprint("s", i), 1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.take(path); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				_, err := journaltest.Append(j, journaltest.Birth(fmt.Sprint("late", i), 1))
				if messages.CodeOf(err) != messages.JournalIO || !strings.Contains(err.Error(), path+c.names) || !strings.Contains(err.Error(), "stop the node") {
					t.Fatalf("append %d: %v", i, err)
				}
				if _, err := journaltest.Open(j, "s1"); messages.CodeOf(err) != messages.JournalIO {
					t.Fatalf("an epoch was taken: %v", err)
				}
				if _, err := j.Read(t.Context(), "s1", 0, 0); messages.CodeOf(err) == messages.SessionCorrupt {
					t.Fatalf("a read: %v", err)
				}
			}
			if c.kept { // at once: the process may be killed
				saved, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				copied := newPath(t)
				if err := os.WriteFile(copied, saved, fileMode); err != nil {
					t.Fatal(err)
				}
				wantSessions(t, mustOpen(t, copied, options{}), 20)
			}
			_ = j.Close()
			if c.names != "-wal" {
				return
			}
			again := mustOpen(t, path, options{})
			if c.kept {
				wantSessions(t, again, 20)
			}
			if _, err := journaltest.Append(again, journaltest.Birth("new", 1)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func wantSessions(t *testing.T, j *Journal, n int) {
	t.Helper()
	for i := range n {
		if o, err := j.Read(t.Context(), fmt.Sprint("s", i), 0, 0); err != nil || len(o.Events) != 1 {
			t.Fatalf("session %d: %v", i, err)
		}
	}
}

// Renamed and put back beside its WAL, it has everything that was acknowledged.
func TestAFilePutBackHasEverything(t *testing.T) {
	path := newPath(t)
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := journaltest.Append(j, journaltest.Birth(fmt.Sprint("s", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := journaltest.Append(j, journaltest.Birth("late", 1)); messages.CodeOf(err) != messages.JournalIO {
		t.Fatal(err)
	}
	_ = j.Close()
	if err := os.Rename(path+".old", path); err != nil {
		t.Fatal(err)
	}
	wantSessions(t, mustOpen(t, path, options{}), 20)
}
