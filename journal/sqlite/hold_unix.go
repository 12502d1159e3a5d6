//go:build linux || darwin

package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// holdAt is a byte that SQLite never locks: its own are the 512 from 1 GiB on.
const holdAt = 1<<30 + 1<<20

// hold locks the file's inode for as long as f is open, against other processes
// and other descriptors of this one. It is a lock of the open file description,
// like those SQLite takes here: no other descriptor's Close lets go of it, and
// where flock is made of such locks (NFS) it does not shut out our own SQLite.
func hold(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: holdAt, Len: 1}
	if e := raw.Control(func(fd uintptr) { err = syscall.FcntlFlock(fd, setLockOFD, &lock) }); e != nil {
		return e
	}
	return err
}

func isHeld(err error) bool { return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) }

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // its type differs between systems
	}
	return 1
}

// room is how many bytes can be written to the disk of a file.
func room(path string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &s); err != nil {
		return math.MaxUint64
	}
	return uint64(s.Bavail) * uint64(s.Bsize) //nolint:unconvert // their types differ between systems
}
