package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
)

// fillUp leaves `rest` bytes on a disk and returns what frees it again.
func fillUp(t *testing.T, folder string, rest int64) func() {
	t.Helper()
	name := filepath.Join(folder, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for page := make([]byte, 4096); err == nil; n += 4096 {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(max(n-rest, 0)), f.Close()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// A start with a disk that is full, or nearly: the journal opens or says that
// the disk is full, and opens when it is not.
func TestAStartOnAFullDiskSaysSo(t *testing.T) {
	for rest := int64(0); rest <= 160<<10; rest += 4096 * boundaryStride {
		for name, exists := range map[string]bool{"new": false, "old": true} {
			folder := mountTmpfs(t, "1m")
			path := filepath.Join(folder, "sub", "journal.db")
			if exists {
				j := mustOpen(t, path, options{})
				if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
					t.Fatal(err)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
			free := fillUp(t, folder, rest)
			j, err := Open(path)
			if err == nil {
				for seq := int64(0); err == nil && seq < 50; seq++ {
					b := journaltest.Next("t", 1, seq, 1)
					if seq == 0 {
						b = journaltest.Birth("t", 1)
					}
					b.Events = journaltest.Events(seq, 1, strings.Repeat("x", 10_000))
					_, err = journaltest.Append(j, b)
				}
				if exists {
					if _, err := j.Read(t.Context(), "s", 0, 0); err != nil && messages.CodeOf(err) != messages.JournalFull {
						t.Errorf("%s, %d bytes left: a read: %v", name, rest, err)
					}
				}
				_ = j.Close()
			}
			if messages.CodeOf(err) != messages.JournalFull || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %d bytes left: %v", name, rest, err)
			}
			free()
			j = mustOpen(t, path, options{})
			if _, err := journaltest.Append(j, journaltest.Birth("new", 1)); err != nil {
				t.Errorf("%s, %d bytes left, with room again: %v", name, rest, err)
			}
			if exists {
				if o, err := j.Read(t.Context(), "s", 0, 0); err != nil || len(o.Events) != 1 {
					t.Errorf("%s, %d bytes left: what there was: %v", name, rest, err)
				}
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The connection fails for another reason while the disk is full: what opens it
// anew says that the disk is full, and goes on by itself when it is not.
func TestAFullDiskIsFullForAFreshConnectionToo(t *testing.T) {
	folder := mountTmpfs(t, "1m")
	d := newDisk(t)
	j := mustOpen(t, filepath.Join(folder, "journal.db"), options{vfs: d.name})
	if _, err := journaltest.Append(j, journaltest.Birth("s", 1)); err != nil {
		t.Fatal(err)
	}
	d.failing(func(op) error { return syscall.EIO })
	if _, err := journaltest.Append(j, journaltest.Next("s", 1, 1, 1)); messages.CodeOf(err) != messages.JournalIO {
		t.Fatal(err)
	}
	free := fillUp(t, folder, 0)
	d.failing(nil)
	for range 3 {
		b := journal.Batch{Session: "big", Header: journaltest.Header("big"), Events: journaltest.Events(0, 1, strings.Repeat("x", 400_000))}
		if _, err := journaltest.Append(j, b); messages.CodeOf(err) != messages.JournalFull {
			t.Fatalf("on a full disk: %v", err)
		}
	}
	free()
	if _, err := journaltest.Append(j, journaltest.Birth("new", 1)); err != nil {
		t.Fatal(err)
	}
	if o, err := j.Read(t.Context(), "s", 0, 0); err != nil || len(o.Events) == 0 {
		t.Fatal(err)
	}
}
