package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/messages"
)

// The file names itself, so that a file of another program, or of a newer
// Parley, is never written to.
const (
	applicationID = 0x50726c79 // "Prly"
	schemaVersion = 1
)

// The tables. `records` is the log of all sessions, one row per batch, and is
// only ever appended to; everything else could be derived from it again.
//
//	records   pos ──prev──▶ pos ──prev──▶ … the batches of one session, newest first
//	sessions  id, name, epoch; first and last batch and next number as of `floor`
//	active    the index rows as of `floor`
//	floor     one row: the position up to which sessions and active are brought up
//
// An append costs one insert at the end of records, and nothing else: bringing
// up the two others at once, sorted, costs a fraction of doing it in every
// transaction. Above the floor the truth is in the records, and a copy of what
// they say in memory (tail.go).
//
// delta stands before events, so that the change feed does not read the latter.
// seq is -1 in the record of a deletion, which no chain holds.
const schema = `
CREATE TABLE records (
	pos     INTEGER PRIMARY KEY,
	session INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	count   INTEGER NOT NULL,
	prev    INTEGER NOT NULL,
	sum     INTEGER NOT NULL,
	header  BLOB,
	delta   BLOB,
	events  BLOB
);
CREATE TABLE sessions (
	id     INTEGER PRIMARY KEY,
	name   TEXT NOT NULL UNIQUE,
	epoch  INTEGER NOT NULL,
	first  INTEGER NOT NULL,
	next   INTEGER NOT NULL,
	last   INTEGER NOT NULL,
	active INTEGER NOT NULL
);
CREATE TABLE active (
	session TEXT NOT NULL,
	call    TEXT NOT NULL,
	state   TEXT NOT NULL,
	due     INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	PRIMARY KEY (session, call)
) WITHOUT ROWID;
CREATE INDEX active_due ON active (due) WHERE due > 0;
CREATE TABLE floor (pos INTEGER NOT NULL);
INSERT INTO floor VALUES (0);
`

// Sizes. Larger pages than the default of 4096 suit a log: fewer of them are
// written, and each is written to the WAL whole.
const (
	pageBytes      = 8192
	cacheKiB       = 8192  // of the committer's connection
	readerCacheKiB = 2048  // of each reading connection
	memoryBytesMax = 256e6 // of a connection, whatever it does
	walBytesKeep   = 64e6  // a WAL that grew above this is cut back
	busyTimeoutMS  = 5000  // how long another program may hold the file
)

// conn is a connection with its prepared statements.
type conn struct {
	*sqlite3.Conn
	path  string // for errors
	stmts map[string]*sqlite3.Stmt
}

// dial opens a connection to a file that exists: it must not make a new, empty
// journal when the file has been taken away. vfs names a file layer; empty is
// the operating system's.
func dial(path, vfs string, cache int) (*conn, error) {
	if err := touchBeside(path); err != nil {
		return nil, err
	}
	ctx := sqlite3.WithMaxMemory(context.Background(), memoryBytesMax)
	c, err := sqlite3.OpenContext(ctx, uri(path, over(vfs)))
	if err != nil {
		return nil, fault(path, "opening it", err)
	}
	out := &conn{Conn: c, path: path, stmts: map[string]*sqlite3.Stmt{}}
	err = out.Exec(fmt.Sprintf(`
		PRAGMA busy_timeout = %d;
		PRAGMA cache_size = -%d;
		PRAGMA trusted_schema = OFF;
		PRAGMA temp_store = MEMORY;
		PRAGMA synchronous = FULL;`, busyTimeoutMS, cache))
	if err != nil {
		err = fault(path, "opening it", err) // before what it has taken is given back
		out.discard()
		return nil, err
	}
	return out, nil
}

// uri names a file, whatever characters its path has. SQLite makes the WAL with
// the mode of the file (modeof), not with that of the umask.
func uri(path, vfs string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	modeof := strings.ReplaceAll(url.QueryEscape(path), "+", "%20") // SQLite takes a plus sign for itself
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&modeof=" + modeof + "&vfs=" + url.QueryEscape(vfs)
}

// prepare brings a fresh connection of the committer into the state it needs:
// a WAL, every commit synced, and the tables of this version.
func (c *conn) prepare() error {
	app, version, tables, err := c.identify()
	switch {
	case err != nil:
		return fault(c.path, "reading it", err)
	case app == applicationID && version > schemaVersion:
		return messages.Refuse(messages.JournalNewer, "the journal %s has schema %d; this build knows schema %d", c.path, version, schemaVersion)
	case app == applicationID && version == schemaVersion:
	case app != 0 || tables > 0:
		return messages.Refuse(messages.JournalCorrupt, "%s is an SQLite file of another program (application id %#x)", c.path, app)
	}
	// secure_delete, because deleting a session means that its text is gone.
	// fullfsync has a meaning on macOS alone, where a plain sync may not reach
	// the disk.
	err = c.Exec(fmt.Sprintf(`
		PRAGMA page_size = %d;
		PRAGMA journal_mode = WAL;
		PRAGMA wal_autocheckpoint = 0;
		PRAGMA journal_size_limit = %d;
		PRAGMA secure_delete = ON;
		PRAGMA fullfsync = ON;
		PRAGMA checkpoint_fullfsync = ON;`, pageBytes, int64(walBytesKeep)))
	if err != nil {
		return fault(c.path, "setting it up", err)
	}
	if app == 0 {
		err = c.Exec(fmt.Sprintf(`BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d; %s COMMIT;`,
			applicationID, schemaVersion, schema))
		if err != nil {
			return fault(c.path, "creating its tables", err)
		}
	}
	// What a crashed process left in the WAL may not have been synced by it.
	// Moved into the file and synced, it is safe whatever happens to the WAL.
	// (Readers of ours that keep it from being moved have kept it in use, too.)
	_, _, err = c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if err != nil && !errors.Is(err, sqlite3.BUSY) {
		return fault(c.path, "recovering it", err)
	}
	return nil
}

func (c *conn) identify() (app, version, tables int64, err error) {
	for q, dst := range map[string]*int64{
		"PRAGMA application_id":              &app,
		"PRAGMA user_version":                &version,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		if *dst, _, err = c.number(q); err != nil {
			return 0, 0, 0, err
		}
	}
	return app, version, tables, nil
}

// stmt returns a prepared statement; each text is compiled once a connection.
func (c *conn) stmt(sql string) (*sqlite3.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, _, err := c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	c.stmts[sql] = s
	return s, nil
}

// query binds arguments and calls row for every row, until it returns false.
func (c *conn) query(sql string, row func(*sqlite3.Stmt) bool, args ...any) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			err = s.BindInt64(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		default:
			panic(fmt.Sprintf("sqlite: an argument of type %T", a))
		}
		if err != nil {
			return err
		}
	}
	for s.Step() {
		if row != nil && !row(s) {
			break
		}
	}
	err = s.Err()
	if e := s.Reset(); err == nil {
		err = e
	}
	return err
}

// number returns the first column of the first row; ok is false without a row.
func (c *conn) number(sql string, args ...any) (n int64, ok bool, err error) {
	err = c.query(sql, func(s *sqlite3.Stmt) bool {
		n, ok = s.ColumnInt64(0), true
		return false
	}, args...)
	return n, ok, err
}

// close closes the statements and then the connection.
func (c *conn) close() error {
	for sql, s := range c.stmts {
		_ = s.Close() // repeats the statement's last error, which was seen
		delete(c.stmts, sql)
	}
	return c.Close()
}

// discard closes a connection whose last word does not matter: it has failed, or
// it has only read.
func (c *conn) discard() { _ = c.close() }

// fileMode and folderMode: what people told their agents is nobody else's.
const (
	fileMode   fs.FileMode = 0o600
	folderMode fs.FileMode = 0o700
)
