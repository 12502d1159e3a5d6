package sqlite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// committer is the one goroutine that writes. It takes what has been handed in
// since its last commit, decides each request by itself, commits them in one
// transaction, publishes them, and only then lets their callers know:
//
//	queue ──group──▶ decide·insert … COMMIT ──▶ tail, Moved ──▶ callbacks
//	                                   │
//	                 every so often:   ├──▶ raise: tables up to the newest record
//	                                   └──▶ checkpoint: WAL into the file
type committer struct {
	j *Journal
	c *conn // nil after a failure that needs a fresh connection

	insert  *sqlite3.Stmt
	last    int64 // position of the newest record, published or not
	walAt   int   // pages in the WAL after the last commit
	walTry  int   // pages at which to try the next checkpoint
	foreign int64 // data_version: moves when somebody else has written
	lost    error // the journal's files are not there any more: nothing is recorded until it is opened anew

	staged  map[string]head // sessions changed by the group that is being decided
	resting map[string]head // sessions brought up by the last raise; a cache, never newer than the tables
}

// run commits until the queue is closed and empty, then leaves the file in its
// shortest form.
func (w *committer) run() {
	for {
		group := w.j.queue.take()
		if len(group) == 0 {
			break
		}
		w.commit(group)
	}
	if w.c != nil && w.lost == nil {
		w.raise()
	}
}

// commit makes a group durable and tells its callers.
func (w *committer) commit(group []*request) {
	err := w.lost
	if err == nil {
		err = w.revive()
	}
	if err == nil {
		err = w.transact(group)
	}
	if err != nil {
		w.fail(group, err)
	} else {
		w.publish(group)
	}
	w.answer(group)
	if err == nil {
		w.maintain()
	}
}

// transact decides a group in one transaction and commits it. It has committed
// nothing if the files it was committed to cannot be found by their names.
func (w *committer) transact(group []*request) error {
	clear(w.staged)
	if err := w.begin(); err != nil {
		return err
	}
	for _, r := range group {
		if err := w.decide(r); err != nil {
			return err
		}
	}
	if err := w.c.query("COMMIT", nil); err != nil {
		return err
	}
	return w.present()
}

// present looks whether the files are where they were opened.
func (w *committer) present() error {
	err := w.j.guard.check()
	if err != nil {
		w.lose(err)
	}
	return err
}

// lose is the end of recording: the files are gone. The connection is
// kept for what it still has: what was acknowledged and stands in a WAL without
// a name is moved into the file.
func (w *committer) lose(err error) {
	w.lost = err
	switch {
	case w.c == nil:
	case w.j.guard.checkFile() != nil: // its WAL is for whoever puts it back
		_, _ = w.c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
	default:
		_, _, _ = w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_FULL)
	}
}

// begin starts a transaction. Nobody else should write to the file, but nothing
// keeps another program from it; what we remember of the file is thrown away
// if one has.
func (w *committer) begin() error {
	if err := w.c.query("BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	version, _, err := w.c.number("PRAGMA data_version")
	if err != nil {
		return err
	}
	if version != w.foreign {
		w.foreign = version
		return w.load()
	}
	return nil
}

// decide gives a request its outcome. Its error ends the transaction, and so
// the whole group; what is wrong with the request alone is in r.err.
func (w *committer) decide(r *request) error {
	h, err := w.headOf(r.session)
	if err != nil {
		r.err = fault(w.j.path, "looking up session "+r.session, err)
		return w.broken(err)
	}
	switch {
	case r.opened != nil:
		return w.decideOpen(r, h)
	case h.live() && (h.epoch != r.epoch || h.next != r.seq):
		r.err = journal.Refused(journal.Batch{Session: r.session, Epoch: r.epoch, Seq: r.seq}, h.epoch, h.next)
		return nil
	case !h.live() && (r.epoch != 0 || r.seq != 0):
		r.err = journal.Refused(journal.Batch{Session: r.session, Epoch: r.epoch, Seq: r.seq}, 0, 0)
		return nil
	case r.empty:
		r.at, r.head = w.last, h
		return nil
	case r.erase:
		return w.decideErase(r, h)
	}
	return w.decideAppend(r, h)
}

// decideErase deletes a session. Damage met on the way is that session's own
// and undoes nothing but what was done for it.
func (w *committer) decideErase(r *request, h head) error {
	if err := w.c.query("SAVEPOINT erase", nil); err != nil {
		return err
	}
	last := w.last
	err := w.erase(r, h)
	if err != nil {
		r.err = fault(w.j.path, "deleting session "+r.session, err)
		if err = w.broken(err); err != nil {
			return err
		}
		w.last = last
		if err = w.c.query("ROLLBACK TO erase", nil); err != nil {
			return err
		}
	} else {
		w.staged[r.session] = r.head
	}
	return w.c.query("RELEASE erase", nil)
}

// broken says whether an error of one lookup has ended the transaction for all:
// a damaged page has not, a disk that cannot be read has.
func (w *committer) broken(err error) error {
	if errors.Is(err, sqlite3.CORRUPT) && !w.c.GetAutocommit() {
		return nil
	}
	return err
}

// decideOpen takes the next epoch. It is written to the table at once: an open
// has no record, and an epoch must never be given twice.
func (w *committer) decideOpen(r *request, h head) error {
	if !h.live() {
		return nil
	}
	h.epoch++
	r.head = h
	w.staged[r.session] = h
	return w.c.query("UPDATE sessions SET epoch = ? WHERE id = ?", nil, h.epoch, h.id)
}

func (w *committer) decideAppend(r *request, h head) error {
	pos := w.last + 1
	if r.header != nil {
		var err error
		if h, err = w.bear(r.session, h, pos, r.count); err != nil {
			return err
		}
	}
	if err := w.write(pos, h, r.seq, r); err != nil {
		return err
	}
	h.next, h.last = r.seq+r.count, pos
	r.at, r.head = pos, h
	w.staged[r.session] = h
	return nil
}

// bear gives a session its row, or the next life to the row of a deleted one.
func (w *committer) bear(session string, h head, pos, next int64) (head, error) {
	h.epoch, h.first, h.last = h.epoch+1, pos, 0
	if h.id != 0 {
		return h, w.c.query("UPDATE sessions SET epoch = ?, first = ?, next = ?, last = ? WHERE id = ?", nil, h.epoch, pos, next, pos, h.id)
	}
	err := w.c.query("INSERT INTO sessions (name, epoch, first, next, last, active) VALUES (?, 1, ?, ?, ?, 0)", nil, session, pos, next, pos)
	h.id = w.c.LastInsertRowID()
	return h, err
}

// write inserts one record.
func (w *committer) write(pos int64, h head, seq int64, r *request) error {
	s := w.insert
	sum := checksum(h.id, seq, r.count, h.last, r.header, r.delta, r.events)
	err := errors.Join(
		s.BindInt64(1, pos), s.BindInt64(2, h.id), s.BindInt64(3, seq), s.BindInt64(4, r.count), s.BindInt64(5, h.last),
		s.BindInt64(6, int64(sum)), s.BindBlob(7, r.header), s.BindBlob(8, r.delta), s.BindBlob(9, r.events))
	if err != nil {
		return err
	}
	if err := s.Exec(); err != nil {
		return err
	}
	w.last = pos
	return nil
}

// erase removes a session's records and leaves one that removes every index row
// it ever had: the removal of one that is gone already may be among the records
// that are erased, and a view that has not read it must learn of it all the same.
func (w *committer) erase(r *request, h head) error {
	calls := map[string]bool{}
	err := w.c.query("SELECT call FROM active WHERE session = ?", func(s *sqlite3.Stmt) bool {
		calls[s.ColumnText(0)] = true
		return true
	}, r.session)
	if err != nil {
		return err
	}
	for pos := h.last; pos != 0; {
		prev := int64(0) // ends a damaged chain: what it held besides cannot be found
		err := w.c.query("SELECT prev, delta FROM records WHERE pos = ? AND session = ?", func(s *sqlite3.Stmt) bool {
			prev = s.ColumnInt64(0)
			changes, _ := decodeDelta(s.ColumnRawBlob(1))
			for _, c := range changes {
				calls[c.Row.CallID] = true
			}
			return false
		}, pos, h.id)
		if err != nil {
			return err
		}
		if err := w.c.query("DELETE FROM records WHERE pos = ? AND session = ?", nil, pos, h.id); err != nil {
			return err
		}
		if prev >= pos {
			break
		}
		pos = prev
	}
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		r.index = append(r.index, sessionlog.RowChange{Row: sessionlog.Row{CallID: call}, Remove: true})
	}
	if len(r.index) > 0 {
		r.delta = journal.AppendChanges(nil, r.index)
	}
	h.first, h.next, h.last = 0, 0, 0
	pos := w.last + 1
	if err := w.write(pos, h, erasedSeq, r); err != nil {
		return err
	}
	r.at, r.head = pos, h
	return w.c.query("UPDATE sessions SET first = 0, next = 0, last = 0 WHERE id = ?", nil, h.id)
}

// headOf returns where a session stands, this group's earlier requests
// included. The tail needs no lock here: only this goroutine changes it.
func (w *committer) headOf(session string) (head, error) {
	if h, ok := w.staged[session]; ok {
		return h, nil
	}
	if s := w.j.tail.sessions[session]; s != nil {
		return s.head, nil
	}
	if h, ok := w.resting[session]; ok {
		return h, nil
	}
	return w.c.head(session)
}

const selectHead = "SELECT id, epoch, first, next, last, active FROM sessions WHERE name = ?"

// head reads a session's row; its zero value says that there is none.
func (c *conn) head(session string) (h head, err error) {
	err = c.query(selectHead, func(s *sqlite3.Stmt) bool {
		h = head{
			id: s.ColumnInt64(0), epoch: s.ColumnInt64(1), first: s.ColumnInt64(2),
			next: s.ColumnInt64(3), last: s.ColumnInt64(4), active: s.ColumnInt64(5),
		}
		return false
	}, session)
	return h, err
}

// publish makes a committed group visible to readers.
func (w *committer) publish(group []*request) {
	t := &w.j.tail
	t.mu.Lock()
	for _, r := range group {
		if r.err == nil && r.head.id != 0 && !r.empty {
			t.record(r.session, r.head, r.at, r.index)
		}
	}
	t.last = journal.Position(w.last)
	w.j.moved.Advance(t.last) // before anybody reads it: who names a position is never told that it is ahead
	t.mu.Unlock()
}

// fail gives every request of a group its error and gets ready for the next.
// After a full disk the connection goes on: the transaction is rolled back and
// nothing of it was recorded. After anything else the connection is not
// trusted any more, and neither is what we remember: the group may be on the
// disk in spite of the error.
func (w *committer) fail(group []*request, cause error) {
	err := fault(w.j.path, "writing it", cause)
	if cut := w.j.guard.cut(cause); cut != nil && w.lost == nil && w.c != nil {
		err, w.lost = cut, cut
		// What a WAL that was cut short still has is not to be moved in part.
		_, _ = w.c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
	}
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
	}
	if w.c == nil {
		return
	}
	w.last = int64(w.j.tail.last)
	if !w.c.GetAutocommit() {
		if e := w.c.Exec("ROLLBACK"); e != nil {
			cause = e
		}
	}
	if code := faultCode(cause); w.lost != nil || code == messages.JournalFull || code == messages.JournalLocked {
		return
	}
	w.j.guard.wal.Store(nil) // the last connection removes it
	w.c.discard()
	w.c = nil
}

// answer hands the group's callbacks over, in commit order. An Open still has
// to read its log, which must not hold up the next group.
func (w *committer) answer(group []*request) {
	w.j.callbacks.Run(func() {
		for _, r := range group {
			if r.appended != nil {
				r.appended(r.appendedAs())
			}
		}
	})
	for _, r := range group {
		switch {
		case r.opened == nil:
		case r.err != nil || !r.head.live():
			w.j.callbacks.Run(func() { r.opened(journal.Opened{}, r.err) })
		default:
			w.j.openers.run(r)
		}
	}
}

func (r *request) appendedAs() (journal.Appended, error) {
	if r.err != nil {
		return journal.Appended{}, r.err
	}
	epoch := r.head.epoch
	if !r.head.live() && !r.erase {
		epoch = 0 // an empty append to a session that is not born
	}
	return journal.Appended{At: journal.Position(r.at), Epoch: epoch}, nil
}

// revive opens the file anew after a failure, and reads what it says.
func (w *committer) revive() error {
	if w.c != nil {
		return nil
	}
	if err := w.present(); err != nil {
		return err
	}
	c, err := dial(w.j.path, w.j.options.vfs, cacheKiB)
	if err != nil {
		return err
	}
	if err := w.adopt(c); err != nil {
		w.j.guard.wal.Store(nil)
		c.discard()
		w.c = nil
		return err
	}
	return nil
}

// adopt takes a fresh connection into use.
func (w *committer) adopt(c *conn) (err error) {
	if err := c.prepare(); err != nil {
		return err
	}
	if err := w.j.guard.watch(); err != nil {
		return err
	}
	c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.walAt = pages
		return nil
	})
	w.walAt, w.walTry = 0, w.j.options.walPages
	if w.insert, err = c.stmt("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"); err != nil {
		return fault(w.j.path, "preparing it", err)
	}
	if n := w.j.options.maxPages; n > 0 {
		if err := c.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
			return fault(w.j.path, "preparing it", err)
		}
	}
	w.c = c
	if w.foreign, _, err = c.number("PRAGMA data_version"); err != nil {
		return fault(w.j.path, "reading it", err)
	}
	if err := w.load(); err != nil {
		return fault(w.j.path, "reading it", err)
	}
	w.j.moved.Advance(journal.Position(w.last))
	return nil
}

// load builds what we remember of the file from the file: the tail from the
// records above the floor, which are few by the rule of maintain.
func (w *committer) load() error {
	clear(w.resting)
	clear(w.staged)
	fresh := tail{sessions: map[string]*tailSession{}}
	err := w.c.query(`
		SELECT r.pos, r.seq, r.count, r.delta, s.name, s.id, s.epoch, s.first, s.active
		FROM records r JOIN sessions s ON s.id = r.session
		WHERE r.pos > (SELECT pos FROM floor) ORDER BY r.pos`,
		func(s *sqlite3.Stmt) bool {
			pos, seq, count, name := s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnText(4)
			h := head{id: s.ColumnInt64(5), epoch: s.ColumnInt64(6), first: s.ColumnInt64(7), active: s.ColumnInt64(8)}
			if seq != erasedSeq {
				h.next, h.last = seq+count, pos
			}
			// Damaged changes are damage of one session, found when it is opened.
			changes, _ := decodeDelta(s.ColumnRawBlob(3))
			fresh.record(name, h, pos, changes)
			return true
		})
	if err != nil {
		return err
	}
	if w.last, _, err = w.c.number("SELECT coalesce(max(pos), 0) FROM records"); err != nil {
		return err
	}
	t := &w.j.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions, t.size, t.last = fresh.sessions, fresh.size, journal.Position(w.last)
	return nil
}

func decodeDelta(delta []byte) ([]sessionlog.RowChange, error) {
	if len(delta) == 0 {
		return nil, nil
	}
	return journal.DecodeChanges(delta)
}

// maintain does what keeps the file quick to open and the WAL short. Nobody
// waits for its outcome: what it could not do it tries again later, and what
// has failed for good the next group will meet as well.
func (w *committer) maintain() {
	if w.lost != nil {
		return
	}
	if w.j.tail.size >= w.j.options.tailSize {
		w.raise()
	}
	if w.c != nil && w.walAt >= w.walTry {
		w.checkpoint()
	}
}

// raise brings sessions and active up to the newest record. It changes nothing
// that anybody can see, so readers need not know whether it has happened.
func (w *committer) raise() {
	err := w.begin()
	var heads map[string]head
	if err == nil {
		heads, err = w.raiseAll()
	}
	if err == nil {
		err = w.c.query("COMMIT", nil)
	}
	if err != nil {
		w.fail(nil, err)
		w.j.tail.size /= 2 // try again after as many appends as half of a tail
		return
	}
	t := &w.j.tail
	t.mu.Lock()
	t.sessions, t.size = make(map[string]*tailSession, len(heads)), 0
	t.mu.Unlock()
	w.resting = heads
}

func (w *committer) raiseAll() (map[string]head, error) {
	sessions := w.j.tail.sessions
	names := slices.Collect(maps.Keys(sessions))
	// In the order of the tables, which makes a page change once and not often.
	slices.SortFunc(names, func(a, b string) int { return int(sessions[a].id - sessions[b].id) })
	heads := make(map[string]head, len(names))
	for _, name := range names {
		heads[name] = sessions[name].head
	}
	for _, name := range slices.SortedFunc(maps.Keys(sessions), strings.Compare) {
		s := sessions[name]
		if len(s.rows) == 0 {
			continue
		}
		h := heads[name]
		var err error
		if h.active, err = w.raiseRows(name, s); err != nil {
			return nil, err
		}
		heads[name] = h
	}
	for _, name := range names {
		h := heads[name]
		if err := w.c.query("UPDATE sessions SET next = ?, last = ?, active = ? WHERE id = ?", nil, h.next, h.last, h.active, h.id); err != nil {
			return nil, err
		}
	}
	return heads, w.c.query("UPDATE floor SET pos = ?", nil, w.last)
}

// raiseRows brings a session's index rows up and returns how many it has. Most
// questions are asked and answered within one tail and touch the table never.
func (w *committer) raiseRows(name string, s *tailSession) (int64, error) {
	var put int64
	for _, call := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[call]
		var err error
		switch {
		case !r.Remove:
			put++
			err = w.c.query("INSERT OR REPLACE INTO active (session, call, state, due, seq, at) VALUES (?, ?, ?, ?, ?, ?)", nil,
				name, call, string(r.Row.State), r.Row.Due, r.Row.Seq, r.at)
		case s.active > 0:
			err = w.c.query("DELETE FROM active WHERE session = ? AND call = ?", nil, name, call)
		}
		if err != nil {
			return 0, err
		}
	}
	if s.active == 0 {
		return put, nil
	}
	n, _, err := w.c.number("SELECT count(*) FROM active WHERE session = ?", name)
	return n, err
}

// checkpoint moves the WAL into the file. A reader can keep it from starting
// over at its beginning; when it has grown to several times its size we wait
// for the readers, within the busy timeout of a checkpoint.
func (w *committer) checkpoint() {
	mode := sqlite3.CHECKPOINT_PASSIVE
	if w.walAt >= 4*w.j.options.walPages {
		mode = sqlite3.CHECKPOINT_RESTART
	}
	total, done, err := w.c.WALCheckpoint("main", mode)
	switch {
	case err == nil && done >= total:
		w.walAt, w.walTry = 0, w.j.options.walPages
	default:
		w.walTry = w.walAt + w.j.options.walPages
	}
	if err != nil && !errors.Is(err, sqlite3.BUSY) && faultCode(err) != messages.JournalFull {
		w.fail(nil, err)
	}
}
