package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/parleyrun/parley/messages"
)

// backupStepPages is how much is copied between two looks at the context.
const backupStepPages = 512

// Backup writes a copy of the journal as of now to path, while appends go on.
// The copy is one file and complete; it appears under its name only when it is
// synced. To restore it, put it in the journal's place while no node runs, and
// remove the old -wal and -shm files, which belong to the old journal.
func (j *Journal) Backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fault(path, "finding it", err)
	}
	if _, err := os.Lstat(path); err == nil {
		return errExists(path)
	}
	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return messages.Refuse(messages.BadRequest, "%s exists: another backup is running, or one was broken off; remove it if none is running", partial)
	}
	if err != nil {
		return fault(partial, "making it", err)
	}
	defer func() { // what is left is the copy under its own name, synced, or nothing
		_ = f.Close()
		_ = os.Remove(partial)
	}()
	if err := j.pool.do(ctx, "being copied to "+path, func(c *conn) error { return c.copyTo(ctx, partial) }); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fault(partial, "syncing it", err)
	}
	// A link, unlike a rename, does not replace a file that has appeared.
	if err := os.Link(partial, path); errors.Is(err, fs.ErrExist) {
		return errExists(path)
	} else if err != nil {
		if err := os.Rename(partial, path); err != nil {
			return fault(path, "naming it", err)
		}
	}
	return fault(path, "syncing its folder", syncFolder(filepath.Dir(path)))
}

// copyTo copies what a transaction sees. Holding the transaction, and not just
// the backup, is what keeps an append from starting the copy over.
func (c *conn) copyTo(ctx context.Context, path string) error {
	if err := c.begin(); err != nil {
		return err
	}
	b, err := c.BackupInit("main", uri(path, over("")))
	if err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		if err = ctx.Err(); err == nil {
			done, err = b.Step(backupStepPages)
		}
	}
	return errors.Join(err, b.Close())
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	_ = d.Close() // nothing was written through it
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}

func errExists(path string) error {
	return messages.Refuse(messages.BadRequest, "%s exists: name a file that does not", path)
}
