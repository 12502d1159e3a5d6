package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/parleyrun/parley/messages"
)

// guard is the hold on the journal's file itself, whatever names lead to it:
// the lock beside the file (lock.go) is found by name, and a file can be given
// another name, or the lock be removed. It also tells when the file is no
// longer where it was opened, so that nothing is acknowledged into a file that
// nobody will find again.
type guard struct {
	path string
	file *os.File    // holds the lock; open until the last connection is closed
	info fs.FileInfo // of the file
	wal  atomic.Pointer[fs.FileInfo]
}

// seize makes the file if there is none and takes the hold on it.
func seize(path string) (*guard, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, messages.Refuse(messages.JournalCorrupt, "%s is not a file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fault(path, "opening "+path, err)
	}
	g := &guard{path: path, file: f}
	if g.info, err = f.Stat(); err != nil {
		err = fault(path, "opening "+path, err)
	} else if err = hold(f); err != nil {
		if isHeld(err) {
			err = messages.Refuse(messages.JournalLocked, "the file of the journal %s is open already, in another process or twice in this one, perhaps by another name", path)
		} else {
			err = fault(path, "locking it", err)
		}
	} else if n := links(g.info); n > 1 {
		err = messages.Refuse(messages.JournalLocked, "the file of the journal %s has %d names (hard links): its newest appends are in a -wal file beside one of them, and would be missed by the other; remove all names but the one that is used", path, n)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return g, nil
}

// release ends the hold.
func (g *guard) release() error { return g.file.Close() }

// watch remembers the WAL that the committer's connection has just opened.
func (g *guard) watch() error {
	info, err := os.Lstat(g.path + "-wal")
	if err != nil {
		return fault(g.path, "finding its -wal", err)
	}
	g.wal.Store(&info)
	return nil
}

// check says whether the file and its WAL are still the ones that are open.
// Without a WAL that is watched, it looks at the file alone.
func (g *guard) check() error {
	if err := g.checkFile(); err != nil {
		return err
	}
	if g.walLost() {
		return messages.Refuse(messages.JournalIO, "the file %s-wal, which is a part of the journal, was removed or replaced while it was open: nothing is recorded any more; stop the node, and start it again", g.path)
	}
	return nil
}

func (g *guard) checkFile() error {
	info, err := os.Lstat(g.path)
	if err != nil || !os.SameFile(info, g.info) {
		return messages.Refuse(messages.JournalIO, "the file of the journal %s was removed, renamed or replaced while it was open: nothing is recorded any more; stop the node, put the file back under this name beside its -wal, or restore a backup, and start it again", g.path)
	}
	if info.Size() == 0 && g.wal.Load() != nil {
		return messages.Refuse(messages.JournalIO, "the file of the journal %s was emptied while it was open: nothing is recorded any more; stop the node, restore a backup, and start it again", g.path)
	}
	return nil
}

func (g *guard) walLost() bool {
	was := g.wal.Load()
	if was == nil {
		return false
	}
	info, err := os.Lstat(g.path + "-wal")
	return err != nil || !os.SameFile(info, *was)
}

// cut says that a write failed because the WAL was cut short, or returns nil.
func (g *guard) cut(cause error) error {
	if cause == nil || !errors.Is(lastFailure(g.path), errCut) {
		return nil
	}
	return messages.Refuse(messages.JournalIO, "the file %s-wal, which is a part of the journal, was cut short while it was open, and what had been recorded last is lost: nothing is recorded any more; stop the node, restore a backup or start with what is left", g.path)
}
