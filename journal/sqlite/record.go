package sqlite

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// erasedSeq is the seq of the record that deletes a session.
const erasedSeq = -1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers everything a record says, so that a disk that changes a
// letter of an answer is noticed. SQLite itself does not check its pages.
func checksum(session, seq, count, prev int64, header, delta, events []byte) uint32 {
	var fixed [4*8 + 2*4]byte
	for i, n := range []int64{session, seq, count, prev} {
		binary.LittleEndian.PutUint64(fixed[8*i:], uint64(n))
	}
	binary.LittleEndian.PutUint32(fixed[32:], uint32(len(header)))
	binary.LittleEndian.PutUint32(fixed[36:], uint32(len(delta)))
	sum := crc32.Update(0, castagnoli, fixed[:])
	for _, part := range [][]byte{header, delta, events} {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// record is a row of records as it is read back.
type record struct {
	pos, session, seq, count, prev, sum int64
	header, delta, events               []byte
}

// damage says what is wrong with a record, or returns nil.
func (r record) damage() error {
	if sum := checksum(r.session, r.seq, r.count, r.prev, r.header, r.delta, r.events); int64(sum) != r.sum {
		return fmt.Errorf("the batch at sequence number %d has been changed: checksum %08x, recorded %08x", r.seq, sum, r.sum)
	}
	return nil
}

// errDamaged is the error of one session whose records cannot be read.
func errDamaged(path, session string, pos int64, what error) error {
	return messages.Refuse(messages.SessionCorrupt, "session %s in %s, record %d: %v", session, path, pos, what)
}

// assemble makes a session of its records, oldest first, keeping the events
// from sequence number `from` on, at most limit (0: all).
func assemble(path, session string, h head, header []byte, records []record, from int64, limit int) (journal.Opened, error) {
	parsed, err := sessionlog.DecodeHeader(header)
	if err != nil {
		return journal.Opened{}, errDamaged(path, session, h.first, err)
	}
	if parsed.ID != session {
		return journal.Opened{}, errDamaged(path, session, h.first, fmt.Errorf("its header names session %q", parsed.ID))
	}
	out := journal.Opened{Epoch: h.epoch, Header: &parsed}
	var n int64
	for _, r := range records {
		n += r.count
	}
	out.Events = make([]sessionlog.Event, 0, n)
	for _, r := range records {
		if out.Events, err = journal.DecodeLines(out.Events, r.events, r.seq, r.count); err != nil {
			return journal.Opened{}, errDamaged(path, session, r.pos, err)
		}
	}
	if len(out.Events) > 0 {
		skip := min(max(from-out.Events[0].Seq, 0), int64(len(out.Events)))
		out.Events = out.Events[skip:]
	}
	if limit > 0 && len(out.Events) > limit {
		out.Events = out.Events[:limit]
	}
	return out, nil
}
