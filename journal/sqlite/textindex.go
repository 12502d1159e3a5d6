package sqlite

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// chunkBytes is about how much of the journal is indexed in one transaction, a
// single record excepted: it bounds the memory of the follower.
const chunkBytes = 8 << 20

// open opens the file of the index, and makes it anew if it does not belong to
// the journal as it is.
func (t *Texts) open(ctx context.Context) error {
	good, err := t.load(ctx)
	if err == nil && !good {
		err = t.remake(ctx)
	}
	return err
}

// Why an index that can be read is made anew, too.
var (
	errStrange = errors.New("it is of another journal, or of one that was restored since")
	errRemoved = errors.New("its file is gone")
)

// load opens the file and compares it with the journal.
func (t *Texts) load(ctx context.Context) (good bool, err error) {
	c, err := t.openTexts()
	if err != nil {
		return false, err
	}
	var pos, sum int64
	err = c.query("SELECT pos, sum FROM state", func(s *sqlite3.Stmt) bool {
		pos, sum = s.ColumnInt64(0), s.ColumnInt64(1)
		return false
	})
	if err == nil && pos > 0 && !t.knows(ctx, pos, sum) {
		err = errStrange
	}
	if errors.Is(err, errStrange) || isDamage(err) {
		c.discard()
		if ctx.Err() == nil {
			t.remade(err)
		}
		return false, ctx.Err()
	}
	if err != nil {
		err = fault(t.path, "reading it", err)
		c.discard()
		return false, err
	}
	t.c, t.pos, t.compared = c, pos, false
	t.reach(journal.Position(pos))
	return true, nil
}

// knows reports whether the journal has this record. Of a deleted session it has
// none any more, which only makes the index be built again.
func (t *Texts) knows(ctx context.Context, pos, sum int64) (same bool) {
	_ = t.j.pool.do(ctx, "comparing its text index", func(c *conn) error {
		now, ok, err := c.number("SELECT sum FROM records WHERE pos = ?", pos)
		same = ok && err == nil && now == sum
		return err
	})
	return same
}

// remake throws the file away and opens a new one.
func (t *Texts) remake(ctx context.Context) error {
	t.using.Lock()
	defer t.using.Unlock()
	t.drop()
	if t.pool != nil {
		t.pool.forget()
	}
	if err := removeTexts(t.path); err != nil {
		return err
	}
	t.mu.Lock()
	t.rotten = false
	t.mu.Unlock()
	if good, err := t.load(ctx); err != nil || !good {
		return cmp.Or(err, error(messages.Refuse(messages.JournalIO, "the text index %s cannot be made", t.path)))
	}
	return nil
}

// doubt has the file made anew by the next round.
func (t *Texts) doubt(why error) {
	t.mu.Lock()
	known := t.rotten
	t.rotten, t.at = true, -1
	t.mu.Unlock()
	if !known {
		t.remade(why)
	}
}

func (t *Texts) isRotten() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rotten
}

func (t *Texts) drop() {
	if t.c != nil {
		t.c.discard()
		t.c = nil
	}
}

// catchUp indexes what the journal has and the index has not, chunk by chunk.
func (t *Texts) catchUp(ctx context.Context) error {
	if t.c == nil && !t.isRotten() {
		if err := t.open(ctx); err != nil {
			return err
		}
	}
	for healed := false; ; {
		if t.isRotten() { // a search may have found that since the last look
			if err := t.remake(ctx); err != nil {
				return err
			}
		}
		last := int64(t.j.moved.Last())
		if int64(t.reached()) >= last && t.compared {
			return nil
		}
		chunk, err := t.j.textChunk(ctx, t.pos, last)
		if err != nil {
			return err
		}
		err = t.index(ctx, chunk, last)
		if isDamage(err) && !healed { // in this round, so that nobody who waits for it hears of that
			healed = true
			t.doubt(err)
			t.drop()
			continue
		}
		if err != nil {
			return t.failed(ctx, err)
		}
		t.reach(journal.Position(chunk.end))
	}
}

// failed gets the follower ready for another round.
func (t *Texts) failed(ctx context.Context, err error) error {
	if isDamage(err) {
		t.doubt(err)
	}
	t.drop() // its transaction is rolled back
	return interrupted(ctx, t.path, "indexing", err)
}

// chunk is a run of records of the journal.
type chunk struct {
	records []textRecord
	end     int64 // everything up to here is in it
	lost    bool  // there were records in between that cannot be read at all
}

// textRecord is a record as the index needs it.
type textRecord struct {
	record
	name string
	err  error // it cannot be read whole
}

const selectTextRecords = `
	SELECT r.pos, r.session, r.seq, r.count, s.name, r.prev, r.sum, r.header, r.delta, r.events
	FROM records r LEFT JOIN sessions s ON s.id = r.session WHERE r.pos > ? AND r.pos <= ? ORDER BY r.pos`

func scanTextRecord(s *sqlite3.Stmt) textRecord {
	return textRecord{name: s.ColumnText(4), record: record{
		pos: s.ColumnInt64(0), session: s.ColumnInt64(1), seq: s.ColumnInt64(2), count: s.ColumnInt64(3),
		prev: s.ColumnInt64(5), sum: s.ColumnInt64(6), header: s.ColumnBlob(7, nil), delta: s.ColumnBlob(8, nil), events: s.ColumnBlob(9, nil),
	}}
}

// textChunk reads the next records behind a position.
func (j *Journal) textChunk(ctx context.Context, after, last int64) (out chunk, err error) {
	err = j.pool.do(ctx, "reading it for its text index", func(c *conn) error {
		err := c.chunk(&out, after, last)
		if errors.Is(err, sqlite3.CORRUPT) {
			if whole, e := c.damaged(); e != nil || whole {
				return cmp.Or(e, err)
			}
			return c.chunkAround(&out, after, last)
		}
		return err
	})
	return out, err
}

func (c *conn) chunk(out *chunk, after, last int64) error {
	size := 0
	*out = chunk{end: last}
	return c.query(selectTextRecords, func(s *sqlite3.Stmt) bool {
		r := scanTextRecord(s)
		out.records = append(out.records, r)
		if size += len(r.header) + len(r.events); size >= chunkBytes {
			out.end = r.pos
			return false
		}
		return true
	}, after, last)
}

// aroundMax is how many positions are looked at one by one at a time.
const aroundMax = 1024

// chunkAround is chunk where the file is damaged, one position after another, so
// that a damaged record is one session's trouble (fault Q9).
func (c *conn) chunkAround(out *chunk, after, last int64) error {
	*out = chunk{end: min(last, after+aroundMax)}
	for pos := after + 1; pos <= out.end; pos++ {
		var one chunk
		err := c.chunk(&one, pos-1, pos)
		if err == nil {
			out.records = append(out.records, one.records...)
			continue
		}
		if !errors.Is(err, sqlite3.CORRUPT) {
			return err
		}
		r := textRecord{err: err}
		err = c.query("SELECT r.session, r.seq, r.count, s.name FROM records r JOIN sessions s ON s.id = r.session WHERE r.pos = ?", func(s *sqlite3.Stmt) bool {
			r.record = record{pos: pos, session: s.ColumnInt64(0), seq: s.ColumnInt64(1), count: s.ColumnInt64(2)}
			r.name = s.ColumnText(3)
			return false
		}, pos)
		switch {
		case err == nil && r.pos != 0:
			out.records = append(out.records, r)
		case err == nil || errors.Is(err, sqlite3.CORRUPT):
			out.lost = true
		default:
			return err
		}
	}
	return nil
}

// index takes a chunk in, in one transaction. Behind the last of them it looks
// whether anything is missing, once after the file was opened and whenever there
// is a reason.
func (t *Texts) index(ctx context.Context, in chunk, last int64) (err error) {
	t.c.SetInterrupt(ctx)
	defer t.c.SetInterrupt(context.Background())
	if err := t.c.query("BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	if err := t.c.checksummed(); err != nil {
		return err
	}
	w := textWriter{t: t, ctx: ctx, c: t.c}
	bySession := map[int64][]textRecord{}
	for _, r := range in.records {
		bySession[r.session] = append(bySession[r.session], r)
	}
	// In the order of the numbers of events, which is what FTS5 can take in one go.
	for _, id := range slices.Sorted(maps.Keys(bySession)) {
		if err := w.session(id, bySession[id]); err != nil {
			return err
		}
	}
	if err := w.saveAll(); err != nil {
		return err
	}
	compared := t.compared && !in.lost && !w.doubtful
	if !compared && in.end >= last {
		if err := w.missing(in.end); err != nil {
			return err
		}
		compared = true
	}
	for _, r := range slices.Backward(in.records) {
		if r.err == nil { // the journal will know it again
			if err := t.c.query("UPDATE state SET pos = ?, sum = ?", nil, r.pos, r.sum); err != nil {
				return err
			}
			break
		}
	}
	if err := t.c.query("COMMIT", nil); err != nil {
		return err
	}
	t.pos, t.compared = in.end, compared
	if w.erased { // what was deleted also goes from the WAL
		if _, _, err := t.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE); err != nil && !errors.Is(err, sqlite3.BUSY) {
			return err
		}
	}
	return nil
}

// recordAt reads one record of the journal.
func (j *Journal) recordAt(ctx context.Context, pos int64) (r record, err error) {
	err = j.pool.do(ctx, "reading it for its text index", func(c *conn) error {
		r, err = c.record(pos, false)
		return err
	})
	if err == nil {
		err = r.damage()
	}
	return r, err
}
