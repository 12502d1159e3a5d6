package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/messages"
)

// lock is the hold on a journal's name of the one process that may write to it
// (guard.go has the one on the file): an SQLite lock on an empty file beside it. A lock of its own, because the
// journal's own file must stay open for our readers; an SQLite lock, because
// that is a lock of the operating system on every system we run on, gone with
// the process that held it, and seen by a second Open of the same process.
type lock struct{ *sqlite3.Conn }

// lockPath names the lock file of a journal. It stays when the lock is let go:
// removing it would let two processes lock two different files.
func lockPath(path string) string { return path + "-lock" }

func takeLock(path string) (lock, error) {
	name := lockPath(path)
	if err := touch(name); err != nil {
		return lock{}, fault(path, "locking it with "+name, err)
	}
	c, err := sqlite3.Open(uri(name, "os"))
	if err != nil {
		return lock{}, fault(path, "locking it with "+name, err)
	}
	if err := c.Exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE"); err != nil {
		_ = c.Close()
		if errors.Is(err, sqlite3.BUSY) {
			return lock{}, messages.Refuse(messages.JournalLocked, "the journal %s is open already, in another process or twice in this one", path)
		}
		return lock{}, fault(path, "locking it with "+name, err)
	}
	return lock{c}, nil
}

// release lets another process open the journal.
func (l lock) release() error { return l.Close() }

// locate returns the one name of a journal's file, whatever links lead to it,
// and makes its folder.
func locate(path string) (string, error) {
	if path == "" {
		return "", messages.Refuse(messages.BadRequest, "the journal has no path")
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fault(path, "finding it", err)
	}
	if err := os.MkdirAll(filepath.Dir(full), folderMode); err != nil {
		return "", fault(full, "making its folder", err)
	}
	if file, err := filepath.EvalSymlinks(full); err == nil {
		return file, nil
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(full))
	if err != nil {
		return "", fault(full, "finding its folder", err)
	}
	return filepath.Join(folder, filepath.Base(full)), nil
}

// touch makes a file that only this user can read, or finds that it is there
// and can be written. SQLite would make it with the mode of the umask.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	return f.Close()
}

// touchBeside makes the files beside the journal's that SQLite would make
// readable by others. It makes them again after its last connection has removed
// them.
func touchBeside(path string) error {
	for _, name := range []string{path + "-wal", path + "-shm"} {
		if err := touch(name); err != nil {
			return fault(path, "opening "+name, err)
		}
	}
	return nil
}

// syncNames syncs the names of a new journal with the folders they stand in: a
// file is lost with its name.
func syncNames(path string) error {
	folder := filepath.Dir(path)
	if err := syncFolder(folder); err != nil {
		return fault(path, "syncing its folder", err)
	}
	// Best effort: the folder above may not be ours to open.
	_ = syncFolder(filepath.Dir(folder))
	return nil
}
