// Package disk is the journal of a simulated world: one disk that several hosts
// share, on which nothing happens unless its owner says so.
//
// It decides what the contract of package journal decides: epochs, sequence
// numbers, whole batches, positions, and what readers see. It never decides
// when an operation happens, whether it fails, or whether its host hears of it:
// that is the fate its Owner gives it (see Op). It touches no real disk, no
// clock and no dice, starts no goroutine and ranges over no map, so the same
// decisions give the same disk, and the same Hash, on any machine.
package disk

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Disk keeps sessions as the hosts' operations have left them. Make one with New.
type Disk struct {
	mu       sync.Mutex
	told     sync.Cond // signalled when a handle has nothing left to tell
	last     journal.Position
	hash     uint64
	sessions map[string]*session
	ordered  []*session       // the same ones by id, in byte order
	changes  []journal.Change // ascending by position
	handles  []*Handle
	spare    []Op // room for ops to come, so that each costs no allocation
	calls    []string
}

// session is one session. A deleted one stays with its epoch and no header.
type session struct {
	id      string
	epoch   int64
	header  *sessionlog.Header
	next    int64 // sequence number of the next event
	raw     []chunk
	events  []sessionlog.Event // those of raw that have been read already
	damage  error
	rows    []row // by call, in byte order
	commits []Commit
}

// chunk is a batch's lines that nobody has read yet. What is read comes out of
// the bytes, as from a real disk, so that hosts share nothing but bytes.
type chunk struct {
	lines      []byte
	seq, count int64
}

type row struct {
	sessionlog.Row
	at journal.Position
}

// Commit is one operation that changed a session, in the order of the disk.
type Commit struct {
	Kind string // KindOpen or KindAppend
	Host string
	// At is the position of a batch, and for an Open the one before it.
	At    journal.Position
	Epoch int64 // the session's epoch after it
	// Seq and Count name the events it added, Seq to Seq+Count-1.
	Seq, Count int64
	Delete     bool
}

// Log is a session as it stands on the disk: for checks, to read only.
type Log struct {
	Session string
	Epoch   int64              // 0: it never existed
	Header  *sessionlog.Header // nil: it does not exist, or was deleted
	Events  []sessionlog.Event
	Commits []Commit // of earlier lives too, should it have been deleted
}

// New makes an empty disk.
func New() *Disk {
	d := &Disk{sessions: map[string]*session{}, hash: hashSeed}
	d.told.L = &d.mu
	return d
}

// Reset empties the disk for the next world, and keeps its memory. Handles and
// ops of the old world are void. Views that were given out stay as they are.
func (d *Disk) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.handles {
		h.crash()
	}
	clear(d.sessions)
	clear(d.ordered)
	clear(d.changes)
	clear(d.handles)
	d.ordered, d.changes, d.handles = d.ordered[:0], d.changes[:0], d.handles[:0]
	d.last, d.hash = 0, hashSeed
}

// Hash is a number over everything that was ever performed, in its order. It
// costs nothing to ask.
func (d *Disk) Hash() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hash
}

// Log returns a session as it stands; one that never existed has epoch 0.
func (d *Disk) Log(id string) Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions[id]; s != nil {
		return s.log()
	}
	return Log{Session: id}
}

// All returns every session that ever existed, by id in byte order.
func (d *Disk) All() []Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Log, len(d.ordered))
	for i, s := range d.ordered {
		out[i] = s.log()
	}
	return out
}

func (s *session) log() Log {
	events, _ := s.decoded() // what is damaged shows as missing
	return Log{Session: s.id, Epoch: s.epoch, Header: s.header, Events: slices.Clip(events), Commits: slices.Clip(s.commits)}
}

// open takes the next epoch, and only then reads the log.
func (d *Disk) open(op *Op) (journal.Opened, error) {
	s := d.live(op.Session)
	if s == nil {
		return journal.Opened{}, nil
	}
	s.epoch++
	op.recorded = true
	s.commits = append(s.commits, Commit{Kind: KindOpen, Host: op.Host, At: d.last, Epoch: s.epoch, Seq: s.next})
	d.note(KindOpen, op, s.epoch)
	return s.read(0, 0)
}

// append records a batch if its epoch and sequence number are the session's.
func (d *Disk) append(op *Op) (journal.Appended, error) {
	b := op.Batch
	if err := b.Check(); err != nil {
		return journal.Appended{}, err
	}
	lines, err := b.Lines()
	if err != nil {
		return journal.Appended{}, err
	}
	var epoch, next int64
	s := d.live(b.Session)
	if s != nil {
		epoch, next = s.epoch, s.next
	}
	if epoch != b.Epoch || next != b.Seq {
		return journal.Appended{}, journal.Refused(b, epoch, next)
	}
	if b.Empty() {
		return journal.Appended{At: d.last, Epoch: epoch}, nil
	}
	d.last++
	op.recorded = true
	if s == nil {
		s = d.bear(b.Session)
	}
	d.record(s, b, lines)
	s.commits = append(s.commits, Commit{Kind: KindAppend, Host: op.Host, At: d.last, Epoch: s.epoch, Seq: b.Seq, Count: int64(len(b.Events)), Delete: b.Delete})
	d.note(KindAppend, op, s.epoch)
	d.hash = mix(d.hash, lines)
	for _, h := range d.handles {
		h.wake(d.last)
	}
	return journal.Appended{At: d.last, Epoch: s.epoch}, nil
}

// bear returns the session of that name, which does not exist (any more).
func (d *Disk) bear(id string) *session {
	if s := d.sessions[id]; s != nil {
		return s
	}
	s := &session{id: id}
	d.sessions[id] = s
	at, _ := slices.BinarySearchFunc(d.ordered, id, func(s *session, id string) int { return cmp.Compare(s.id, id) })
	d.ordered = slices.Insert(d.ordered, at, s)
	return s
}

// record applies a batch that has been found good.
func (d *Disk) record(s *session, b journal.Batch, lines []byte) {
	switch {
	case b.Delete:
		d.forget(s.id)
		*s = session{id: s.id, epoch: s.epoch, commits: s.commits}
		return
	case b.Header != nil:
		header := *b.Header
		s.epoch, s.header = s.epoch+1, &header
	}
	if n := int64(len(b.Events)); n > 0 {
		s.raw = append(s.raw, chunk{lines, b.Seq, n})
		s.next += n
	}
	for _, c := range b.Index {
		s.change(c, d.last)
		d.changes = append(d.changes, journal.Change{At: d.last, Session: s.id, RowChange: c})
	}
}

func (s *session) change(c sessionlog.RowChange, at journal.Position) {
	i, found := slices.BinarySearchFunc(s.rows, c.Row.CallID, func(r row, call string) int { return cmp.Compare(r.CallID, call) })
	switch {
	case found && c.Remove:
		s.rows = slices.Delete(s.rows, i, i+1)
	case found:
		s.rows[i] = row{c.Row, at}
	case !c.Remove:
		s.rows = slices.Insert(s.rows, i, row{c.Row, at})
	}
}

// forget drops the recorded changes of a session that is being deleted, and
// adds the removal of every row it ever had: a view may have read that a row
// was put, and not yet that it was removed.
func (d *Disk) forget(id string) {
	d.calls = d.calls[:0]
	d.changes = slices.DeleteFunc(d.changes, func(c journal.Change) bool {
		if c.Session != id {
			return false
		}
		d.calls = append(d.calls, c.Row.CallID)
		return true
	})
	slices.Sort(d.calls)
	for _, call := range slices.Compact(d.calls) {
		removal := sessionlog.RowChange{Row: sessionlog.Row{CallID: call}, Remove: true}
		d.changes = append(d.changes, journal.Change{At: d.last, Session: id, RowChange: removal})
	}
}

// live returns a session that exists, or nil.
func (d *Disk) live(id string) *session {
	if s := d.sessions[id]; s != nil && s.header != nil {
		return s
	}
	return nil
}

// decoded reads what nobody has read yet. The events are shared: they are
// values, and whoever adds to a clipped slice copies it.
func (s *session) decoded() ([]sessionlog.Event, error) {
	for len(s.raw) > 0 && s.damage == nil {
		c := s.raw[0]
		events, err := journal.DecodeLines(s.events, c.lines, c.seq, c.count)
		if err != nil {
			s.damage = messages.Refuse(messages.SessionCorrupt, "session %s: %v", s.id, err)
			break
		}
		s.events, s.raw = events, s.raw[1:]
	}
	if len(s.raw) == 0 {
		s.raw = nil
	}
	return s.events, s.damage
}

func (s *session) read(from int64, limit int) (journal.Opened, error) {
	events, err := s.decoded()
	if err != nil {
		return journal.Opened{}, err
	}
	header := *s.header
	events = events[min(max(from, 0), int64(len(events))):]
	return journal.Opened{Epoch: s.epoch, Header: &header, Events: slices.Clip(cut(events, limit))}, nil
}

// cut shortens a list to limit; 0 leaves it whole.
func cut[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}

// note puts what was performed into the hash, but for the events' lines.
func (d *Disk) note(kind string, op *Op, epoch int64) {
	h := mixString(mixString(mixString(d.hash, kind), op.Host), op.Session)
	h = mixNumber(mixNumber(h, uint64(epoch)), uint64(op.Batch.Seq))
	if op.Batch.Header != nil {
		h = mix(h, op.Batch.Header.Line())
	}
	for _, c := range op.Batch.Index {
		h = mixString(mixString(h, c.Row.CallID), string(c.Row.State))
		h = mixNumber(mixNumber(h, uint64(c.Row.Due)), uint64(c.Row.Seq))
		if c.Remove {
			h = mixNumber(h, 1)
		}
	}
	d.hash = h
}

const hashSeed = 0x9e3779b97f4a7c15

// mix adds bytes to a hash, eight at a time, the same on every machine. It
// tells worlds apart; it is no protection against anybody.
func mix(h uint64, b []byte) uint64 {
	h = mixNumber(h, uint64(len(b)))
	for len(b) >= 8 {
		h = mixNumber(h, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	return mixNumber(h, binary.LittleEndian.Uint64(rest[:]))
}

func mixString(h uint64, s string) uint64 {
	h = mixNumber(h, uint64(len(s)))
	for i := range len(s) {
		h = mixNumber(h, uint64(s[i]))
	}
	return h
}

func mixNumber(h, n uint64) uint64 {
	h = (h ^ n) * 0xff51afd7ed558ccd
	return h ^ h>>32
}
