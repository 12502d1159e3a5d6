package parley

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/sessionlog/compressed"
)

// ArchivedLog is the log of one session in a tree of folders.
type ArchivedLog struct {
	Path    string // of its file in the tree, with slashes
	Problem error  // why it is not to be imported, nil for none; it is a refusal or the file system's
}

// logFile is the name of a log (L-036): the oldest generation has the plain one,
// later ones say which they are, and a compressed one that it is.
var logFile = regexp.MustCompile(`^session(?:\.v([1-9][0-9]{0,8}))?\.jsonl(?:\.zstd)?$`)

// Archive finds the logs of a tree in which every session has a folder of its
// own (L-036), sorted by path: the whole tree with its projects, or a part of it.
// Where a folder holds a log in several generations, the newest is the one that
// counts: the others are what it was before it was translated. Each is to be
// given to Import. Its error is the file system's, for the tree itself.
func Archive(tree fs.FS) ([]ArchivedLog, error) {
	var found []ArchivedLog
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			found = append(found, ArchivedLog{Path: name, Problem: err})
			return nil
		case !entry.IsDir():
			return nil
		}
		files, err := fs.ReadDir(tree, name)
		if err != nil {
			return nil //nolint:nilerr // the walk comes to it, too, and says so
		}
		if log, ok := newest(tree, name, files); ok {
			found = append(found, log)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree of logs: %w", err)
	}
	slices.SortFunc(found, func(a, b ArchivedLog) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// newest chooses among the files of one folder.
func newest(tree fs.FS, folder string, files []fs.DirEntry) (log ArchivedLog, ok bool) {
	best := -1
	for _, file := range files {
		m := logFile.FindStringSubmatch(file.Name())
		if m == nil || !file.Type().IsRegular() {
			continue
		}
		generation, _ := strconv.Atoi(m[1]) // nothing: 0
		switch {
		case generation == best:
			log.Problem = messages.Refuse(messages.BadLog, "%s holds two logs of one generation, %s and %s; import the right one by itself",
				folder, path.Base(log.Path), file.Name())
		case generation > best:
			log, best = ArchivedLog{Path: path.Join(folder, file.Name())}, generation
		}
	}
	if best >= 0 && log.Problem == nil && folder != "." {
		log.Problem = misplaced(tree, log.Path)
	}
	return log, best >= 0
}

// misplaced refuses the log of another session than its folder is for, such as a
// copy that somebody has put aside. One whose header cannot be read is for the
// import to judge.
func misplaced(tree fs.FS, name string) error {
	header, err := archivedHeader(tree, name)
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	folder := path.Base(path.Dir(name))
	if own := sessionlog.SessionSegment(header.ID); own != folder {
		return messages.Refuse(messages.BadLog, "it is the log of session %q, whose folder is named %s; import the file by itself if it is meant", header.ID, own)
	}
	return nil
}

// archivedHeaderMax is how far a header is looked for.
const archivedHeaderMax = 1 << 20

func archivedHeader(tree fs.FS, name string) (sessionlog.Header, error) {
	file, err := tree.Open(name)
	if err != nil {
		return sessionlog.Header{}, err
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewReader(io.LimitReader(file, archivedHeaderMax))
	if start, _ := in.Peek(compressed.MagicLength); compressed.Is(start) {
		packed, err := io.ReadAll(in)
		if err != nil {
			return sessionlog.Header{}, err
		}
		line, err := compressed.DecodeHeader(packed, archivedHeaderMax)
		if err != nil {
			return sessionlog.Header{}, err
		}
		return sessionlog.DecodeHeader(line)
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return sessionlog.Header{}, errors.Join(errors.New("it has no header line"), err)
	}
	return sessionlog.DecodeHeader(line[:len(line)-1])
}
