package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// disk is a file layer between SQLite and the operating system that writes down
// every write and sync of the journal's files, and fails them on demand.
type disk struct {
	vfs.VFS
	name string

	mu   sync.Mutex
	ops  []op
	fail func(op) error // asked before an operation is done
}

// op is one thing that was done to a file.
type op struct {
	kind byte   // 'w' write, 't' truncate, 's' sync
	file string // "" the journal, "-wal" its log
	off  int64  // of a write; the size of a truncation
	data []byte
}

var disks int // makes their names unique; tests of this package open them one after another

var disksMu sync.Mutex

// newDisk registers a file layer for one test.
func newDisk(t *testing.T) *disk {
	disksMu.Lock()
	disks++
	d := &disk{VFS: vfs.Find("os"), name: fmt.Sprint("disk", disks)}
	disksMu.Unlock()
	vfs.Register(d.name, d)
	t.Cleanup(func() { vfs.Unregister(d.name) })
	return d
}

// failing makes operations fail; nil heals the disk.
func (d *disk) failing(fail func(op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

// length is how many operations have been done.
func (d *disk) length() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops)
}

func (d *disk) do(o op, run func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail(o); err != nil {
			return err
		}
	}
	if err := run(); err != nil {
		return err
	}
	o.data = append([]byte(nil), o.data...)
	d.ops = append(d.ops, o)
	return nil
}

func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return vfsutil.WrapOpen(d.VFS, name, flags)
}

func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := vfsutil.WrapOpenFilename(d.VFS, name, flags)
	if err != nil || flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL) == 0 {
		return f, out, err
	}
	file := ""
	if flags&vfs.OPEN_WAL != 0 {
		file = "-wal"
	}
	return &diskFile{File: f, disk: d, file: file}, out, nil
}

type diskFile struct {
	vfs.File
	disk *disk
	file string
}

func (f *diskFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.disk.do(op{'w', f.file, off, p}, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *diskFile) Truncate(size int64) error {
	return f.disk.do(op{'t', f.file, size, nil}, func() error { return f.File.Truncate(size) })
}

func (f *diskFile) Sync(flags vfs.SyncFlag) error {
	return f.disk.do(op{'s', f.file, 0, nil}, func() error { return f.File.Sync(flags) })
}

func (f *diskFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f *diskFile) LockState() vfs.LockLevel       { return vfsutil.WrapLockState(f.File) }
func (f *diskFile) HasMoved() (bool, error)        { return vfsutil.WrapHasMoved(f.File) }
func (f *diskFile) PersistWAL() bool               { return vfsutil.WrapPersistWAL(f.File) }
func (f *diskFile) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(f.File, keep) }
func (f *diskFile) PowersafeOverwrite() bool       { return vfsutil.WrapPowersafeOverwrite(f.File) }
func (f *diskFile) SetPowersafeOverwrite(psow bool) {
	vfsutil.WrapSetPowersafeOverwrite(f.File, psow)
}

// quick is a file layer that does not sync, for journals that are only looked at.
type quick struct{ vfs.VFS }

func init() { vfs.Register("quick", quick{vfs.Find("os")}) }

func (q quick) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return vfsutil.WrapOpen(q.VFS, name, flags)
}

func (q quick) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := vfsutil.WrapOpenFilename(q.VFS, name, flags)
	if err != nil {
		return f, out, err
	}
	return quickFile{f}, out, nil
}

type quickFile struct{ vfs.File }

func (quickFile) Sync(vfs.SyncFlag) error           { return nil }
func (f quickFile) SharedMemory() vfs.SharedMemory  { return vfsutil.WrapSharedMemory(f.File) }
func (f quickFile) LockState() vfs.LockLevel        { return vfsutil.WrapLockState(f.File) }
func (f quickFile) PowersafeOverwrite() bool        { return vfsutil.WrapPowersafeOverwrite(f.File) }
func (f quickFile) SetPowersafeOverwrite(psow bool) { vfsutil.WrapSetPowersafeOverwrite(f.File, psow) }

// image is what a power loss leaves of the files.
type image map[string][]byte

// apply does a write or a truncation; keep cuts a write short.
func (m image) apply(o op, keep int) {
	data := m[o.file]
	size := o.off
	if o.kind == 'w' {
		size = max(int64(len(data)), o.off+int64(keep))
	}
	grown := make([]byte, size)
	copy(grown, data)
	if o.kind == 'w' {
		copy(grown[o.off:], o.data[:keep])
	}
	m[o.file] = grown
}

func (m image) clone() image {
	out := image{}
	for name, data := range m {
		out[name] = append([]byte(nil), data...)
	}
	return out
}

// write puts the image's files into a folder and returns the journal's path.
func (m image) write(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "journal.db")
	for name, data := range m {
		if err := os.WriteFile(path+name, data, fileMode); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
