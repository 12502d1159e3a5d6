package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/messages"
)

// fault turns an error of SQLite or of the file system into the one the caller
// can act on. doing says what was being done to the file, as in "writing it".
func fault(path, doing string, err error) error {
	var known *messages.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	code := faultCode(err)
	if code == messages.JournalIO && isShared(err) && room(path) < roomMin {
		code, err = messages.JournalFull, fmt.Errorf("%w: %w", err, errNoRoom)
	}
	if last := lastFailure(path); last != nil && errors.Is(err, sqlite3.IOERR) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	if isTexts(path) {
		if code == messages.JournalCorrupt { // and its remedy speaks of backups
			err = fmt.Errorf("%w; it has nothing that the journal has not: move it away, and it is made anew", err)
		}
		return messages.Refuse(code, "the text index %s failed while %s: %v", path, doing, err)
	}
	return messages.Refuse(code, "the journal %s failed while %s: %v", path, doing, err)
}

// roomMin is more than SQLite takes at once for the -shm file, which it makes
// itself and whose failures it reports without their reason.
const roomMin = 128 << 10

var errNoRoom = errors.New("there is no room for its -shm file")

// isShared says whether an error is one of the -shm file.
func isShared(err error) bool {
	return errors.Is(err, sqlite3.IOERR_SHMSIZE) || errors.Is(err, sqlite3.IOERR_SHMMAP) || errors.Is(err, sqlite3.IOERR_SHMOPEN)
}

// isDamage says whether SQLite met what cannot be, or a page that is not what its
// checksum says.
func isDamage(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.IOERR_DATA)
}

func faultCode(err error) messages.Code {
	switch {
	case errors.Is(err, sqlite3.FULL), isFull(err):
		return messages.JournalFull
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.PERM),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return messages.JournalReadOnly
	case isDamage(err), errors.Is(err, sqlite3.NOTADB):
		return messages.JournalCorrupt
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED):
		return messages.JournalLocked
	}
	return messages.JournalIO
}

// interrupted gives the context's own error for what SQLite broke off because
// of it (waiting for a lock, too), and a fault for anything else.
func interrupted(ctx context.Context, path, doing string, err error) error {
	if err != nil && ctx.Err() != nil &&
		(errors.Is(err, sqlite3.INTERRUPT) || errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED)) {
		return ctx.Err()
	}
	return fault(path, doing, err)
}

func errClosed(path string) error {
	if isTexts(path) {
		return messages.Refuse(messages.Unavailable, "the text index %s is closed", path)
	}
	return messages.Refuse(messages.Unavailable, "the journal %s is closed", path)
}
