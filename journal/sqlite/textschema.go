package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"github.com/parleyrun/parley/messages"
)

// textsSuffix makes the name of the text index from that of its journal.
const textsSuffix = "-texts"

func isTexts(path string) bool { return strings.HasSuffix(path, textsSuffix) }

// The file of the index names itself like the journal does. Its version also
// stands for the rules by which texts are cut (package words) and read
// (sessionlog.SemanticText): raise it with them, and every index is made anew.
const (
	textsApplicationID = 0x50726c78 // "Prlx"
	textsVersion       = 3
)

// The tables of the index. It is derived: whatever is doubtful about it, it is
// thrown away. A session has the number that it has in the journal, and an event
// the number session<<32|seq, so that those of a session stand together.
//
//	state      one row: the record up to which everything here is true
//	sessions   what is known of a session without its log
//	events     every event that has a text or is on the surface
//	texts      the texts, of the events that have one
//	words      their tokens: whole, and cut further where that differs; and the
//	           workspace as a token, w7, so that a search in one stays in it
//	secrets    calls whose answers are sensitive: those are never put in here
//
// place is where an event stands on its surface. It is its own seq, or, of one
// that replaces others, the place of the first of them: so places are in surface
// order, and the range that a replacement shadows is a range of places.
//
// words is contentless, it keeps no copy of the tokens: they are made from the
// text again when it is deleted. Its tokenizer only has to split at spaces.
const textsSchema = `
CREATE TABLE state (pos INTEGER NOT NULL, sum INTEGER NOT NULL);
INSERT INTO state VALUES (0, 0);
CREATE TABLE workspaces (id INTEGER PRIMARY KEY, cwd TEXT NOT NULL UNIQUE);
CREATE TABLE kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE sessions (
	id        INTEGER PRIMARY KEY,
	name      TEXT NOT NULL UNIQUE,
	workspace INTEGER NOT NULL,
	parent    TEXT NOT NULL,
	created   INTEGER NOT NULL,
	next      INTEGER NOT NULL,
	opened    INTEGER NOT NULL,
	title     TEXT,
	trouble   INTEGER NOT NULL,
	problem   TEXT,
	header    BLOB
);
CREATE INDEX sessions_workspace ON sessions (workspace);
CREATE INDEX sessions_parent ON sessions (parent, created, name) WHERE parent <> '';
CREATE INDEX sessions_opened ON sessions (id) WHERE opened >= 0;
CREATE INDEX sessions_trouble ON sessions (name) WHERE trouble > 0;
CREATE TABLE events (
	id     INTEGER PRIMARY KEY,
	time   INTEGER NOT NULL,
	kind   INTEGER NOT NULL,
	class  INTEGER NOT NULL,
	length INTEGER NOT NULL,
	place  INTEGER,
	record INTEGER
);
CREATE INDEX events_surface ON events (id >> 32, place) WHERE class = 1;
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE secrets (session INTEGER NOT NULL, call TEXT NOT NULL, PRIMARY KEY (session, call)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(whole, sub, workspace, content='', columnsize=0, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1), ('hashsize', 16777216), ('pgsz', 8000);
`

// Columns of words.
const (
	columnWhole = iota
	columnSub
)

// Sizes.
const (
	textsCacheKiB       = 16384
	textsReaderCacheKiB = 8192
	textsReadersMax     = 3
)

// dialTexts opens a connection to the index with what a search needs.
func dialTexts(path string, cache int) (*conn, error) {
	c, err := dial(path, "", cache)
	if err != nil {
		return nil, err
	}
	err = fts5.RegisterCustom(c.Conn, func(api *fts5.API) error {
		return api.CreateFunction("spans", countSpans)
	})
	if err == nil {
		// FTS5 looks up each token of each segment with one statement. Without this
		// SQLite compiles it anew for every token, to look at what was bound.
		_, err = c.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true)
	}
	if err == nil {
		// A crash of the machine may take the last commits away, and they are made
		// again: what is true up to which record stands in the same transaction.
		err = c.Exec("PRAGMA synchronous = NORMAL")
	}
	if err != nil {
		err = fault(path, "opening it", err)
		c.discard()
		return nil, err
	}
	return c, nil
}

// countSpans counts the spans of the phrase in the current row (S-062):
// occurrences of which one begins before the one before it has ended are one.
func countSpans(row fts5.Context, result sqlite3.Context, _ ...sqlite3.Value) {
	n, err := row.InstCount()
	if err != nil {
		result.ResultError(err)
		return
	}
	column, spans, end := columnWhole, int64(0), 0
	for i := range n { // by column, then by place
		phrase, col, at, err := row.Inst(i)
		if err != nil {
			result.ResultError(err)
			return
		}
		if col > columnSub {
			break
		}
		if col != column { // where a text is cut further, that count is the one
			column, spans, end = col, 0, 0
		}
		if at >= end {
			spans++
		}
		end = at + row.PhraseSize(phrase)
	}
	result.ResultInt64(spans)
}

// errOlder is why the index of an older version is made anew.
var errOlder = errors.New("it is one of an older version")

// openTexts opens the index and makes it ready to be written: its tables are
// those of this version. Files of other programs are refused, as in prepare. One
// of ours that is older or damaged is made anew, and so is one that is so damaged
// that nobody can say whose it is; that one is kept aside.
func (t *Texts) openTexts() (*conn, error) {
	if err := touch(t.path); err != nil {
		return nil, fault(t.path, "opening it", err)
	}
	c, again, err := tryTexts(t.path)
	if again != nil {
		if err := t.makeWay(again); err != nil {
			return nil, err
		}
		if err := touch(t.path); err != nil {
			return nil, fault(t.path, "opening it", err)
		}
		if c, again, err = tryTexts(t.path); again != nil {
			err = messages.Refuse(messages.JournalIO, "the text index %s cannot be made: %v", t.path, again)
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// tryTexts is openTexts with the file as it is. again says why it must be made anew.
func tryTexts(path string) (c *conn, again, err error) {
	if c, err = dialTexts(path, textsCacheKiB); err != nil {
		if messages.CodeOf(err) == messages.JournalCorrupt {
			return nil, err, nil
		}
		return nil, nil, err
	}
	if again, err = c.prepareTexts(); err != nil || again != nil {
		c.discard()
		c = nil
	}
	return c, again, err
}

// makeWay takes away a file that must be made anew.
func (t *Texts) makeWay(why error) error {
	if isOurTexts(t.path) {
		t.remade(why)
		return removeTexts(t.path)
	}
	aside, err := freeName(t.path + damagedSuffix)
	if err == nil {
		err = os.Rename(t.path, aside)
	}
	if err != nil {
		return fault(t.path, "moving it aside", err)
	}
	t.remade(why, slog.String("kept", aside), slog.String("note", "it may hold texts of sessions; remove it if nobody needs it"))
	return removeTexts(t.path) // what stands beside it
}

// damagedSuffix makes the name under which a damaged file is kept.
const damagedSuffix = ".damaged"

// freeName returns the name, or the first of it with a number that no file has.
func freeName(name string) (string, error) {
	for n := 2; ; n++ {
		free := name
		if n > 2 {
			free = fmt.Sprintf("%s-%d", name, n-1)
		}
		if _, err := os.Lstat(free); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return free, err
		}
	}
}

// remade logs why the index is made anew. An older one is no trouble.
func (t *Texts) remade(why error, more ...slog.Attr) {
	level := slog.LevelWarn
	if errors.Is(why, errOlder) {
		level = slog.LevelInfo
	}
	attrs := append([]slog.Attr{slog.String("file", t.path), slog.String("reason", why.Error())}, more...)
	t.log.LogAttrs(context.Background(), level, "the text index is made anew from the logs", attrs...)
}

// isOurTexts says whether a file names itself as an index that this version may
// throw away, also where SQLite cannot open it.
func isOurTexts(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 72) // https://sqlite.org/fileformat.html#the_database_header
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	return string(head[:16]) == "SQLite format 3\x00" &&
		binary.BigEndian.Uint32(head[68:]) == textsApplicationID && binary.BigEndian.Uint32(head[60:]) <= textsVersion
}

// prepareTexts makes the tables, unless they are there. again says why the file
// must be made anew.
func (c *conn) prepareTexts() (again, err error) {
	app, version, tables, err := c.identify()
	switch {
	case isDamage(err) || errors.Is(err, sqlite3.NOTADB):
		return err, nil
	case err != nil:
		return nil, fault(c.path, "reading it", err)
	case app == textsApplicationID && version > textsVersion:
		return nil, messages.Refuse(messages.JournalNewer, "the text index %s has schema %d; this build knows schema %d: run the newer version, or remove the file", c.path, version, textsVersion)
	case app == textsApplicationID && version < textsVersion:
		return errOlder, nil
	case app != textsApplicationID && (app != 0 || tables > 0):
		return nil, messages.Refuse(messages.JournalCorrupt, "%s stands where the text index belongs, and is an SQLite file of another program (application id %#x): move it away", c.path, app)
	}
	if app == 0 {
		if err = c.Exec(fmt.Sprintf("PRAGMA page_size = %d", pageBytes)); err == nil {
			err = c.EnableChecksums("main")
		}
	}
	if err == nil {
		err = c.Exec(fmt.Sprintf(`
			PRAGMA journal_mode = WAL;
			PRAGMA wal_autocheckpoint = 2048;
			PRAGMA journal_size_limit = %d;
			PRAGMA secure_delete = ON;`, int64(walBytesKeep)))
	}
	if err == nil && app == 0 {
		err = c.Exec(fmt.Sprintf(`BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d; %s COMMIT;`,
			textsApplicationID, textsVersion, textsSchema))
	}
	if err == nil {
		err = c.checksummed()
	}
	if isDamage(err) && app == textsApplicationID {
		return err, nil
	}
	return nil, fault(c.path, "setting it up", err)
}

// checksummed fails unless every page is compared with its checksum when it is
// read, as of the transaction that has begun. Damage in one byte of the header of
// the file would end that, quietly.
//
// Invariant: nothing is read of the index, who may see what least of all, but from
// pages that are as they were written.
func (c *conn) checksummed() error {
	if _, _, err := c.number("SELECT pos FROM state"); err != nil { // looks at the header
		return err
	}
	verifies, _, err := c.Prepare("PRAGMA checksum_verification") // which says so when it is compiled
	if err != nil {
		return err
	}
	defer func() { _ = verifies.Close() }()
	if !verifies.Step() || verifies.ColumnText(0) != "1" {
		return cmp.Or(verifies.Err(), fmt.Errorf("its pages have no checksums: %w", sqlite3.CORRUPT))
	}
	return nil
}

// removeTexts removes the file of the index, and what stands beside it.
func removeTexts(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault(path, "removing "+name, err)
		}
	}
	return nil
}

// dialReader makes a connection for the searches.
func (t *Texts) dialReader() (*conn, error) {
	return dialTexts(t.path, textsReaderCacheKiB)
}
