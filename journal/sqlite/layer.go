package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// layer stands between SQLite and the operating system's files and adds three
// things. It tells a full disk from a failed one, which SQLite's callers cannot
// once it has let go of its locks. It keeps the text of the last failure, which
// SQLite loses likewise. And it writes what a commit adds to the WAL at once:
// SQLite writes every page in two pieces, and the calls cost more than the work.
// Of a text index it compares what is read from the WAL instead (textlayer.go).
type layer struct {
	vfs.VFS
	mu     sync.Mutex
	failed map[string]error    // by file: its last failure
	sums   map[string]*walSums // by index: of its WAL, while that is open
}

// over returns the name of the layer over a file layer; "" is the system's.
func over(base string) string {
	name := "parley-" + base
	layersMu.Lock()
	defer layersMu.Unlock()
	if layers[name] == nil {
		layers[name] = &layer{VFS: vfs.Find(base), failed: map[string]error{}, sums: map[string]*walSums{}}
		vfs.Register(name, layers[name])
	}
	return name
}

var (
	layersMu sync.Mutex
	layers   = map[string]*layer{}
)

// lastFailure returns what the system last said about a journal's files, or nil.
func lastFailure(path string) error {
	layersMu.Lock()
	defer layersMu.Unlock()
	for _, l := range layers {
		l.mu.Lock()
		err := l.failed[path]
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetFailure is for a journal that is opened anew.
func forgetFailure(path string) {
	layersMu.Lock()
	defer layersMu.Unlock()
	for _, l := range layers {
		l.mu.Lock()
		delete(l.failed, path)
		l.mu.Unlock()
	}
}

func (l *layer) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return vfsutil.WrapOpen(l.VFS, name, flags)
}

func (l *layer) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if flags&vfs.OPEN_CREATE != 0 && flags&(vfs.OPEN_MAIN_JOURNAL|vfs.OPEN_WAL) != 0 && name != nil {
		_ = touch(name.String()) // SQLite narrows the mode once it is made; what is wrong, the open below says
	}
	f, out, err := vfsutil.WrapOpenFilename(l.VFS, name, flags)
	if err != nil || name == nil || flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_MAIN_JOURNAL|vfs.OPEN_WAL) == 0 {
		return f, out, err
	}
	file := &layerFile{File: f, layer: l, path: strings.TrimSuffix(strings.TrimSuffix(name.String(), "-wal"), "-journal")}
	switch {
	case flags&vfs.OPEN_WAL == 0:
		return file, out, nil
	case isTexts(file.path): // whose commits do not sync, against the invariant of walFile
		return l.summed(file), out, nil
	}
	return &walFile{layerFile: file}, out, nil
}

// layerFile is the journal, its WAL, or the rollback journal of a new one.
type layerFile struct {
	vfs.File
	layer *layer
	path  string // of the journal
}

// explain keeps a failure's text and gives it the code of a full disk if it is
// one. A quota, or a limit of file size, is a full disk to whoever meets it.
func (f *layerFile) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	f.layer.mu.Lock()
	f.layer.failed[f.path] = fmt.Errorf("%s: %w", doing, err)
	f.layer.mu.Unlock()
	if isFull(err) {
		return vfs.SystemError(err, sqlite3.FULL)
	}
	return err
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func (f *layerFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.explain("write", err)
}

func (f *layerFile) Sync(flags vfs.SyncFlag) error { return f.explain("sync", f.File.Sync(flags)) }

func (f *layerFile) Truncate(size int64) error {
	return f.explain("truncate", f.File.Truncate(size))
}

// SizeHint lets a growing file have its blocks in one piece.
func (f *layerFile) SizeHint(size int64) error {
	return f.explain("extend", vfsutil.WrapSizeHint(f.File, size))
}

func (f *layerFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f *layerFile) LockState() vfs.LockLevel       { return vfsutil.WrapLockState(f.File) }
func (f *layerFile) HasMoved() (bool, error)        { return vfsutil.WrapHasMoved(f.File) }
func (f *layerFile) PersistWAL() bool               { return vfsutil.WrapPersistWAL(f.File) }
func (f *layerFile) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(f.File, keep) }
func (f *layerFile) PowersafeOverwrite() bool       { return vfsutil.WrapPowersafeOverwrite(f.File) }
func (f *layerFile) SetPowersafeOverwrite(psow bool) {
	vfsutil.WrapSetPowersafeOverwrite(f.File, psow)
}

// walBufferBytesMax bounds what is held back; a larger commit is written in
// pieces of it.
const walBufferBytesMax = 1 << 20

// walFile is the WAL, with the writes since the last sync or read held back as
// long as each goes on where the one before it ended.
//
// Invariant: nothing is held back across a sync. With synchronous=FULL every
// commit syncs before SQLite tells other connections of its pages, so what they
// are told of is in the file, and what is acknowledged is on the disk.
type walFile struct {
	*layerFile
	held []byte
	off  int64
	end  int64 // how long the file has been made through this one
}

// errCut says that the WAL ends before what SQLite has written to it and not
// yet moved into the file. Writing on would leave a hole in its middle.
var errCut = errors.New("the -wal file was cut short")

func (f *walFile) flush() error {
	if len(f.held) == 0 {
		return nil
	}
	var err error
	if size, e := f.File.Size(); e == nil && size < min(f.off, f.end) {
		err = f.explain("write", errCut)
	} else if _, err = f.layerFile.WriteAt(f.held, f.off); err == nil {
		f.end = max(f.end, f.off+int64(len(f.held)))
	}
	f.held = f.held[:0] // a failed commit is rolled back; its pages are not written again
	if cap(f.held) > walBufferBytesMax {
		f.held = nil
	}
	return err
}

func (f *walFile) WriteAt(p []byte, off int64) (int, error) {
	if len(f.held) > 0 && (off != f.off+int64(len(f.held)) || len(f.held)+len(p) > walBufferBytesMax) {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(f.held) == 0 {
		f.off = off
	}
	f.held = append(f.held, p...)
	return len(p), nil
}

func (f *walFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.layerFile.ReadAt(p, off)
}

func (f *walFile) Sync(flags vfs.SyncFlag) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.layerFile.Sync(flags)
}

func (f *walFile) Truncate(size int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	f.end = min(f.end, size)
	return f.layerFile.Truncate(size)
}

func (f *walFile) Size() (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.layerFile.Size()
}

func (f *walFile) Close() error {
	return errors.Join(f.flush(), f.layerFile.Close())
}
