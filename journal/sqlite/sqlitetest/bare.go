// Package sqlitetest is the floor that benchmarks stand on: group commit of bare
// rows through the same SQLite driver, and nothing else.
//
// It decides nothing about journals and is never part of a node.
package sqlitetest

import (
	"errors"
	"fmt"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// groupMax is how many requests one transaction takes at most.
const groupMax = 1024

// Bare is one table in one file, with one committer that puts whatever waits
// into one transaction, synced.
type Bare struct {
	conn  *sqlite3.Conn
	queue chan request
	ended chan error
}

type request struct {
	row  []byte
	done chan<- error
}

// Open makes the file, with SQLite's default page and checkpoint size.
func Open(path string) (*Bare, error) {
	conn, err := sqlite3.Open("file:" + path)
	if err != nil {
		return nil, fmt.Errorf("opening the bare file: %w", err)
	}
	if err := conn.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA locking_mode = EXCLUSIVE;
		CREATE TABLE rows (id INTEGER PRIMARY KEY, session INTEGER, bytes BLOB)`); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	insert, _, err := conn.Prepare("INSERT INTO rows (session, bytes) VALUES (?, ?)")
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	b := &Bare{conn: conn, queue: make(chan request, 4*groupMax), ended: make(chan error, 1)}
	go b.run(insert)
	return b, nil
}

// Commit returns once the row is durable.
func (b *Bare) Commit(row []byte) error {
	done := make(chan error, 1)
	b.queue <- request{row, done}
	return <-done
}

// Close commits what was handed in and closes the file.
func (b *Bare) Close() error {
	close(b.queue)
	return errors.Join(<-b.ended, b.conn.Close())
}

func (b *Bare) run(insert *sqlite3.Stmt) {
	var group []request
	for first := range b.queue {
		group = append(group[:0], first)
	more:
		for len(group) < groupMax {
			select {
			case next, open := <-b.queue:
				if !open {
					break more
				}
				group = append(group, next)
			default:
				break more
			}
		}
		err := b.commit(insert, group)
		for _, r := range group {
			r.done <- err
		}
	}
	b.ended <- insert.Close()
}

func (b *Bare) commit(insert *sqlite3.Stmt, group []request) error {
	if err := b.conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for i, r := range group {
		if err := errors.Join(insert.BindInt(1, i), insert.BindBlob(2, r.row), insert.Exec()); err != nil {
			return errors.Join(err, b.conn.Exec("ROLLBACK"))
		}
	}
	return b.conn.Exec("COMMIT")
}
