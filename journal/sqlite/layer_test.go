package sqlite

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
)

// slab is a file in memory.
type slab struct {
	vfs.File
	data []byte
	fail error
}

func (s *slab) WriteAt(p []byte, off int64) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	if len(p) == 0 {
		return 0, nil // no system makes a file longer by writing nothing
	}
	m := image{"": s.data}
	m.apply(op{'w', "", off, p}, len(p))
	s.data = m[""]
	return len(p), nil
}

func (s *slab) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(s.data)) {
		return 0, io.EOF
	}
	n := copy(p, s.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *slab) Truncate(size int64) error {
	m := image{"": s.data}
	m.apply(op{'t', "", size, nil}, 0)
	s.data = m[""]
	return nil
}

func (s *slab) Sync(vfs.SyncFlag) error { return nil }
func (s *slab) Size() (int64, error)    { return int64(len(s.data)), nil }
func (s *slab) Close() error            { return nil }

func newWAL() (*walFile, *slab) {
	s := &slab{}
	return &walFile{layerFile: &layerFile{File: s, layer: &layer{failed: map[string]error{}}, path: "journal.db"}}, s
}

// Whatever is done to the WAL, in whatever order, it reads as a plain file does,
// and after a sync the file below is that file.
func FuzzWALFileIsAPlainFile(f *testing.F) {
	f.Add([]byte{0, 0, 9, 0, 9, 9, 3, 0, 0, 0, 1, 5, 1, 2, 20, 2, 7, 0, 0, 3, 3})
	f.Add([]byte{0, 5, 5, 0, 0, 5, 1, 0, 10, 4, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		wal, below := newWAL()
		plain := &slab{}
		for step := byte(0); len(script) >= 3; step, script = step+1, script[3:] {
			off, n := int64(script[1]), int(script[2])
			switch script[0] % 5 {
			case 0:
				data := bytes.Repeat([]byte{step}, n)
				_, err := wal.WriteAt(data, off)
				_, want := plain.WriteAt(data, off)
				if err != nil || want != nil {
					t.Fatal(err, want)
				}
			case 1:
				got, want := make([]byte, n), make([]byte, n)
				a, errA := wal.ReadAt(got, off)
				b, errB := plain.ReadAt(want, off)
				if a != b || !errors.Is(errA, errB) || !bytes.Equal(got, want) {
					t.Fatalf("read %d %v %v, want %d %v %v", a, errA, got, b, errB, want)
				}
			case 2:
				if err := errors.Join(wal.Truncate(off), plain.Truncate(off)); err != nil {
					t.Fatal(err)
				}
			case 3:
				if err := wal.Sync(0); err != nil || !bytes.Equal(below.data, plain.data) {
					t.Fatalf("synced as %v, want %v; %v", below.data, plain.data, err)
				}
			case 4:
				a, err := wal.Size()
				if b, _ := plain.Size(); a != b || err != nil {
					t.Fatalf("size %d, want %d; %v", a, b, err)
				}
			}
		}
		if err := wal.Close(); err != nil || !bytes.Equal(below.data, plain.data) {
			t.Fatalf("closed as %v, want %v; %v", below.data, plain.data, err)
		}
	})
}

// A write that is held back fails at the sync, before anything is acknowledged,
// and is not written later: SQLite has rolled it back by then.
func TestAHeldBackWriteFailsAtTheSync(t *testing.T) {
	wal, below := newWAL()
	below.fail = syscall.ENOSPC
	if _, err := wal.WriteAt([]byte("lost"), 0); err != nil {
		t.Fatal(err)
	}
	if err := wal.Sync(0); err == nil {
		t.Fatal("a full disk let a commit be synced")
	}
	below.fail = nil
	if _, err := wal.WriteAt([]byte("next"), 0); err != nil {
		t.Fatal(err)
	}
	if err := wal.Sync(0); err != nil || string(below.data) != "next" {
		t.Fatalf("the file holds %q, %v", below.data, err)
	}
}
