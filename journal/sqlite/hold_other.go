//go:build !linux && !darwin

package sqlite

import (
	"io/fs"
	"math"
	"os"
)

// Elsewhere the lock beside the file must do: SQLite locks whole files on the
// BSDs, so that ours would shut it out, and Windows does not let an open file
// be removed or renamed.
func hold(*os.File) error { return nil }

func isHeld(error) bool { return false }

func links(fs.FileInfo) uint64 { return 1 }

// room is unknown here.
func room(string) uint64 { return math.MaxUint64 }
