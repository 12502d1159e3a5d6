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
	// Stray says that the file has the ending of a log, and no header of one: it
	// may be anything. Problem says what is wrong with it as a log.
	Stray bool
}

// logFile is the name of a log (L-036): the oldest generation has the plain one,
// later ones say which they are, and a compressed one that it is.
var logFile = regexp.MustCompile(`^session(?:\.v([1-9][0-9]{0,8}))?\.jsonl(?:\.zstd)?$`)

// plainFile is the name of a log that stands by itself, as `parley export` makes
// them: its header says whose it is.
var plainFile = regexp.MustCompile(`\.jsonl(?:\.zstd)?$`)

// Archive finds the logs of a tree in which every session has a folder of its
// own (L-036), sorted by path: the whole tree with its projects, or a part of it.
// Where a folder holds a log in several generations, the newest is the one that
// counts: the others are what it was before it was translated. In folders that
// are no session's, every file *.jsonl with a session's header is a log. Each is
// to be given to Import. Its error is the file system's, for the tree itself.
func Archive(tree fs.FS) ([]ArchivedLog, error) {
	var found []ArchivedLog
	plain := map[string][]ArchivedLog{} // by the session
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
			return nil
		}
		for _, file := range files {
			if !plainFile.MatchString(file.Name()) || !file.Type().IsRegular() {
				continue
			}
			log := ArchivedLog{Path: path.Join(name, file.Name())}
			header, err := archivedHeader(tree, log.Path)
			if err != nil {
				log.Stray, log.Problem = true, messages.Refuse(messages.BadLog, "it has no session's header: %v", err)
				found = append(found, log)
				continue
			}
			plain[header.ID] = append(plain[header.ID], log)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree of logs: %w", err)
	}
	found = append(found, distinct(plain, found)...)
	slices.SortFunc(found, func(a, b ArchivedLog) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// distinct refuses the logs that stand by themselves where there are several of
// one session, or one in its own folder: which is the right one is not to be told.
func distinct(plain map[string][]ArchivedLog, foldered []ArchivedLog) (logs []ArchivedLog) {
	folders := map[string]string{}
	for _, log := range foldered {
		if !log.Stray {
			folders[path.Base(path.Dir(log.Path))] = log.Path
		}
	}
	for id, all := range plain {
		for i, log := range all {
			other := folders[sessionlog.SessionSegment(id)]
			if other == "" && len(all) > 1 {
				other = all[(i+1)%len(all)].Path
			}
			if other != "" {
				log.Problem = messages.Refuse(messages.BadLog, "%s is a log of the same session %q; import the right one by itself", other, id)
			}
			logs = append(logs, log)
		}
	}
	return logs
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
		return messages.Refuse(messages.BadLog, "it is the log of session %q and stands in the folder %s, where the session's own would be named %s; import the file by itself if it is meant", header.ID, folder, own)
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
