package sqlite

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
)

// TestMain lets the test binary be the other process of a test.
func TestMain(m *testing.M) {
	if role := os.Getenv("JOURNAL_TEST_ROLE"); role != "" {
		roles[role](os.Getenv("JOURNAL_TEST_PATH"))
		return
	}
	os.Exit(m.Run())
}

var roles = map[string]func(path string){
	// open says what Open says.
	"open": func(path string) {
		j, err := Open(path)
		fmt.Println(messages.CodeOf(err), err)
		if err == nil {
			_ = j.Close()
		}
	},
	// write appends for ever, and says what has been acknowledged.
	"write": func(path string) {
		j, err := Open(path)
		if err != nil {
			fmt.Println(err)
			return
		}
		b := journaltest.Birth("s", 1, journaltest.Put("c", 1))
		for seq := int64(0); ; seq++ {
			if seq > 0 {
				b = journaltest.Next("s", 1, seq, 1, journaltest.Put("c", seq))
			}
			if _, err := journaltest.Append(j, b); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(seq)
		}
	},
}

// child starts this binary in a role. It is killed when the test ends.
func child(t *testing.T, role, path string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_ROLE="+role, "JOURNAL_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "journal.db") }

// written makes a journal with a few sessions and closes it.
func written(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	j := mustOpen(t, path, options{})
	for _, s := range []string{"a", "b", "c"} {
		if _, err := journaltest.Append(j, journaltest.Birth(s, 3, journaltest.Put("c", 5))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantRefused opens a journal that must be refused with a code, by an error that
// names the file and says what to do, and must be left as it is.
func wantRefused(t *testing.T, path string, code messages.Code) {
	t.Helper()
	before, _ := os.ReadFile(path)
	j, err := Open(path)
	if err == nil {
		_ = j.Close()
		t.Fatalf("%s was opened, want %s", path, code)
	}
	if messages.CodeOf(err) != code || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), messages.Lookup(code).Remedy) {
		t.Fatalf("refused with %v, want %s naming %s and the remedy", err, code, path)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Fatal("the refused file was changed")
	}
}

// raw opens the file of a closed journal with plain SQLite.
func raw(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

func TestASecondOpenIsLockedOut(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, path, options{})
	wantRefused(t, path, messages.JournalLocked)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err == nil {
		if _, err := Open(link); messages.CodeOf(err) != messages.JournalLocked {
			t.Fatalf("by another name: %v", err)
		}
	}
	_, out := child(t, "open", path)
	if said, _ := out.ReadString('\n'); !strings.HasPrefix(said, string(messages.JournalLocked)) {
		t.Fatalf("another process: %s", said)
	}
	if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
		t.Fatalf("the first owner was disturbed: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, options{})
}

// Killed, not closed: nothing acknowledged is lost, and the lock is gone.
func TestAKilledProcessLosesNothing(t *testing.T) {
	path := newPath(t)
	cmd, out := child(t, "write", path)
	last := ""
	for range 200 {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the writer ended: %s %v", line, err)
		}
		last = line
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if lines := strings.Fields(string(rest)); len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	_ = cmd.Wait()
	var acknowledged int64
	if _, err := fmt.Sscan(last, &acknowledged); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, path, options{})
	o, err := j.Read(t.Context(), "s", 0, 0)
	if n := int64(len(o.Events)); err != nil || n < acknowledged+1 || n > acknowledged+2 {
		t.Fatalf("%d events, acknowledged were %d; %v", n, acknowledged+1, err)
	}
	if rows, _, err := j.Active(t.Context(), journal.ActiveFilter{}); err != nil || len(rows) != 1 || rows[0].Row.Due != max(int64(len(o.Events))-1, 1) {
		t.Fatalf("rows %+v, %v", rows, err)
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := written(t)
	raw(t, path, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	wantRefused(t, path, messages.JournalNewer)
}

func TestAFileThatIsNoJournalIsRefused(t *testing.T) {
	text := newPath(t)
	if err := os.WriteFile(text, []byte(strings.Repeat("This is not a database, and somebody wants to keep it.\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, text, messages.JournalCorrupt)
	foreign := newPath(t)
	raw(t, foreign, "CREATE TABLE theirs (x)")
	wantRefused(t, foreign, messages.JournalCorrupt)
	folder := t.TempDir()
	if _, err := Open(folder); messages.CodeOf(err) != messages.JournalCorrupt {
		t.Fatalf("a folder: %v", err)
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	path := written(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := bytes.Repeat([]byte{0xA5}, 4000)
	if _, err := f.WriteAt(junk, 100); err != nil { // the page that names the tables
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, path, messages.JournalCorrupt)
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, path, messages.JournalCorrupt)
}

// One session's record is damaged: that session says so, the others go on.
func TestADamagedSessionIsDamagedAlone(t *testing.T) {
	for name, sql := range map[string]string{
		"unreadable":          "UPDATE records SET events = 'garbage' WHERE session = 2",
		"a changed letter":    `UPDATE records SET events = replace(CAST(events AS TEXT), '"test/event"', '"tent/event"') WHERE session = 2`,
		"no header":           "UPDATE records SET header = x'00' WHERE session = 2",
		"a lost record":       "DELETE FROM records WHERE session = 2",
		"a loop in the chain": "UPDATE records SET prev = pos WHERE session = 2",
		"another's record":    "UPDATE records SET session = 3 WHERE session = 2",
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t)
			raw(t, path, sql)
			j := mustOpen(t, path, options{})
			for range 2 { // its epoch is taken all the same
				_, err := journaltest.Open(j, "b")
				if messages.CodeOf(err) != messages.SessionCorrupt || !strings.Contains(err.Error(), path) {
					t.Fatalf("the damaged session: %v", err)
				}
			}
			if _, err := j.Read(t.Context(), "b", 0, 0); messages.CodeOf(err) != messages.SessionCorrupt {
				t.Fatalf("the damaged session: %v", err)
			}
			for _, s := range []string{"a", "c"} {
				if o, err := journaltest.Open(j, s); err != nil || len(o.Events) != 3 {
					t.Fatalf("%s was hurt too: %v", s, err)
				}
				if _, err := journaltest.Append(j, journaltest.Next(s, 2, 3, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if list, err := j.Sessions(t.Context(), "", 0); err != nil || len(list) != 3 {
				t.Fatalf("sessions %+v, %v", list, err)
			}
			// It can still be deleted.
			if _, err := journaltest.Append(j, journal.Batch{Session: "b", Epoch: 3, Seq: 3, Delete: true}); err != nil {
				t.Fatal(err)
			}
			if rows, _, err := j.Active(t.Context(), journal.ActiveFilter{}); err != nil || len(rows) != 2 {
				t.Fatalf("rows %+v, %v", rows, err)
			}
		})
	}
}

// The disk fails while a group is written or synced: its callers are told that
// they are in doubt, and the next group finds a journal that has been opened
// anew, with everything acknowledged in it.
func TestAFailingDiskIsSurvived(t *testing.T) {
	for name, kind := range map[string]byte{"write": 'w', "sync": 's'} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			j := mustOpen(t, newPath(t), options{vfs: d.name, tailSize: 5})
			next := int64(0)
			for round := range 5 {
				for range 3 {
					b := journaltest.Next("s", 1, next, 1, journaltest.Put("c", next))
					if next == 0 {
						b = journaltest.Birth("s", 1)
					}
					if _, err := journaltest.Append(j, b); err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
					next++
				}
				d.failing(func(o op) error {
					if o.kind == kind {
						return syscall.EIO
					}
					return nil
				})
				_, err := journaltest.Append(j, journaltest.Next("s", 1, next, 1))
				if messages.CodeOf(err) != messages.JournalIO || !strings.Contains(err.Error(), j.path) || !strings.Contains(err.Error(), syscall.EIO.Error()) {
					t.Fatalf("round %d: a failing disk gave %v", round, err)
				}
				if _, err := journaltest.Append(j, journaltest.Birth("other", 1)); messages.CodeOf(err) != messages.JournalIO {
					t.Fatalf("round %d: still failing, %v", round, err)
				}
				if o, err := j.Read(t.Context(), "s", 0, 0); err != nil || int64(len(o.Events)) != next {
					t.Fatalf("round %d: %d events of %d can be read; %v", round, len(o.Events), next, err)
				}
				d.failing(nil)
				o, err := j.Read(t.Context(), "s", 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				// In doubt: it may have been recorded after all.
				if n := int64(len(o.Events)); n != next && n != next+1 {
					t.Fatalf("round %d: %d events, acknowledged were %d", round, n, next)
				}
				opened, err := journaltest.Append(j, journal.Batch{Session: "s", Epoch: 1, Seq: next})
				if messages.CodeOf(err) == messages.Fenced {
					next++
				} else if err != nil {
					t.Fatalf("round %d: %+v, %v", round, opened, err)
				}
			}
		})
	}
}

// No room: nothing is recorded, everything stays readable, and with room the
// same requests succeed. Here SQLite itself is held to a number of pages, which
// needs no privilege; fault_linux_test.go fills what the kernel limits.
func TestAFullJournalRecoversByItself(t *testing.T) {
	j := mustOpen(t, newPath(t), options{maxPages: 24})
	fillAndFree(t, j, func() {
		// The committer waits for requests, so its connection is ours for now.
		if err := j.committer.c.Exec("PRAGMA max_page_count = 100000"); err != nil {
			t.Fatal(err)
		}
	})
}

func fillAndFree(t *testing.T, j *Journal, free func()) {
	t.Helper()
	big := strings.Repeat("x", 20_000)
	var next int64
	step := func() error {
		b := journal.Batch{Session: "s", Epoch: min(next, 1), Seq: next, Events: journaltest.Events(next, 1, big)}
		if next == 0 {
			b.Header = journaltest.Header("s")
		}
		_, err := journaltest.Append(j, b)
		return err
	}
	var err error
	for err = step(); err == nil && next < 10_000; err = step() {
		next++
	}
	if messages.CodeOf(err) != messages.JournalFull || !strings.Contains(err.Error(), j.path) {
		t.Fatalf("full after %d appends with %v", next, err)
	}
	if _, err := journaltest.Append(j, journaltest.Birth("other", 1)); err != nil && messages.CodeOf(err) != messages.JournalFull {
		t.Fatal(err)
	}
	if o, err := j.Read(t.Context(), "s", 0, 0); err != nil || int64(len(o.Events)) != next {
		t.Fatalf("%d events, acknowledged were %d; %v", len(o.Events), next, err)
	}
	free()
	for range 5 {
		if err := step(); err != nil {
			t.Fatalf("with room again: %v", err)
		}
		next++
	}
	if o, err := journaltest.Open(j, "s"); err != nil || int64(len(o.Events)) != next {
		t.Fatalf("%d events, want %d; %v", len(o.Events), next, err)
	}
}

func TestEveryCommitIsSyncedToAWAL(t *testing.T) {
	j := mustOpen(t, newPath(t), options{})
	if n, _, err := j.committer.c.number("PRAGMA synchronous"); n != 2 || err != nil {
		t.Errorf("synchronous is %d, want 2 (FULL); %v", n, err)
	}
	var mode string
	err := j.committer.c.query("PRAGMA journal_mode", func(s *sqlite3.Stmt) bool {
		mode = s.ColumnText(0)
		return false
	})
	if mode != "wal" || err != nil {
		t.Errorf("journal_mode is %q, want wal; %v", mode, err)
	}
}

func TestFilesAreNobodyElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "journal.db")
	j := mustOpen(t, path, options{})
	if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := j.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		filepath.Dir(path): folderMode, path: fileMode, path + "-wal": fileMode, path + "-shm": fileMode, lockPath(path): fileMode, copied: fileMode,
	} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v; %v", name, info.Mode().Perm(), want, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("a closed journal needs its WAL of %d bytes", info.Size())
	}
}

func TestTheWALDoesNotGrowForEver(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, path, options{walPages: 32})
	if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 5000)
	for seq := int64(1); seq < 400; seq++ {
		b := journal.Batch{Session: "s", Epoch: 1, Seq: seq, Events: journaltest.Events(seq, 1, big)}
		if _, err := journaltest.Append(j, b); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if limit := int64(64 * pageBytes); err != nil || info.Size() > limit {
		t.Fatalf("the WAL has %d bytes, want at most %d; %v", info.Size(), limit, err)
	}
}

// Another program that writes to the file, which it should not, is noticed
// before anything we remember of the file is used.
func TestAForeignWriteIsNoticed(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, path, options{})
	if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
		t.Fatal(err)
	}
	raw(t, path, "UPDATE sessions SET epoch = 7")
	_, err := journaltest.Append(j, journaltest.Next("s", 1, 1, 1))
	if messages.CodeOf(err) != messages.Fenced {
		t.Fatalf("an append to a session taken behind our back: %v", err)
	}
	if o, err := journaltest.Open(j, "s"); err != nil || o.Epoch != 8 {
		t.Fatalf("epoch %d, %v", o.Epoch, err)
	}
}

// A batch over the limit is refused before it is queued, and hurts nobody.
func TestABatchOverTheLimitIsRefused(t *testing.T) {
	j := mustOpen(t, newPath(t), options{})
	b := journal.Batch{Session: "s", Header: journaltest.Header("s"), Events: journaltest.Events(0, 1, strings.Repeat("x", batchBytesMax))}
	if _, err := journaltest.Append(j, b); messages.CodeOf(err) != messages.TooLarge {
		t.Fatal(err)
	}
	b.Events = journaltest.Events(0, 1, strings.Repeat("x", batchBytesMax/8))
	if _, err := journaltest.Append(j, b); err != nil {
		t.Fatal(err)
	}
	if o, err := journaltest.Open(j, "s"); err != nil || len(o.Events) != 1 {
		t.Fatal(err)
	}
}
