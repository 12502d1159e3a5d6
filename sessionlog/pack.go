package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// Bounds of what packed rows may stand for. A row is short where its events are long: without them a log that is
// small enough to be taken could fill the memory of its reader.
const (
	// PackedEventsMax is how many events the packed rows of one log may hold.
	PackedEventsMax = 1 << 19
	// PackedBytesMax is how many bytes of data those events may have.
	PackedBytesMax = 128 << 20
)

// packMin is the length of the shortest run that is packed (L-040).
const packMin = 3

const typeChunk = "assistant/chunk"

// packing is one of the three kinds of packed rows of v0 (L-040).
type packing struct {
	row     string // type of the row
	members string // name of its list
	delta   string // type of the chunks that it stands for
	text    string // name of the text in them
	tool    bool   // it is of one tool call, named by id
}

var packings = [...]packing{
	{row: "text-chunks", members: "texts", delta: "text-delta", text: "text"},
	{row: "reasoning-chunks", members: "texts", delta: "reasoning-delta", text: "text"},
	{row: "tool-call-chunks", members: "args", delta: "tool-call-delta", text: "argumentsDelta", tool: true},
}

func packingOf(typ value) *packing {
	for i := range packings {
		if typ.is(packings[i].row) {
			return &packings[i]
		}
	}
	return nil
}

func isRowType(typ string) bool {
	for i := range packings {
		if packings[i].row == typ {
			return true
		}
	}
	return false
}

// packedRow is a row as it is stored. The events that were read from it share it, so that they are written as this
// very row again.
type packedRow struct {
	line  []byte // without its line feed
	seq   int64  // of its first event
	count int64  // of its events
}

// IsPackedRow says whether a stored record of v0 is a packed row, sound or not (L-035).
func IsPackedRow(record []byte) bool {
	rec, ok := parse(record)
	return ok && packingOf(rec.get("type")) != nil
}

// run is what the deltas of one packed row have in common.
type run struct {
	kind              *packing
	turn, step, index int64
	id, name          string // of a tool call
	named             bool   // name is there
}

// appendData appends the data of one of its events; text is a JSON string.
func (r run) appendData(dst []byte, text value) []byte {
	dst = appendTurnStep(dst, r.turn, r.step)
	dst = append(append(append(dst, `,"chunk":{"type":"`...), r.kind.delta...), `","index":`...)
	dst = r.appendTool(strconv.AppendInt(dst, r.index, 10))
	dst = append(append(append(dst, `,"`...), r.kind.text...), `":`...)
	return append(append(dst, text...), "}}"...)
}

func (r run) appendTool(dst []byte) []byte {
	if r.kind.tool {
		dst = appendString(append(dst, `,"id":`...), r.id)
	}
	if r.named {
		dst = appendString(append(dst, `,"name":`...), r.name)
	}
	return dst
}

// unpacked is a row as it was read: nothing is made of its members before it is known how many there are.
type unpacked struct {
	run
	seq, time    int64
	gaps, texts  value // lists
	count, bytes int64 // of the texts
}

// unpack reads a packed row, strictly (L-041), if there is room for what it stands for.
func unpack(rec value, left *budget) (u unpacked, err error) {
	kind := packingOf(rec.get("type"))
	if kind == nil {
		return u, errors.New("it is no packed row")
	}
	bad := func(format string, args ...any) (unpacked, error) {
		return unpacked{}, fmt.Errorf("malformed %s row: %s", kind.row, fmt.Sprintf(format, args...))
	}
	u.kind = kind
	env, exact := exactly(rec, "type", "seq0", "time0", "data")
	if !exact {
		return bad("it must have exactly the keys type, seq0, time0 and data")
	}
	var ok bool
	if u.seq, ok = env[1].count(); !ok {
		return bad("seq0 must be a whole number that is not negative")
	}
	if u.time, ok = env[2].whole(); !ok {
		return bad("time0 must be whole epoch milliseconds")
	}
	keys := []string{"turn", "step", "index", "dt", kind.members}
	if kind.tool {
		keys = append(keys, "id", "name?")
	}
	data, exact := exactly(env[3], keys...)
	if !exact {
		return bad("its data must have exactly the keys %v", keys)
	}
	for i, n := range []*int64{&u.turn, &u.step, &u.index} {
		if *n, ok = data[i].whole(); !ok {
			return bad("%s must be a whole number", keys[i])
		}
	}
	if kind.tool {
		if u.id, ok = data[5].str(); !ok {
			return bad("id must be a string")
		}
		if u.named = data[6] != nil; u.named {
			if u.name, ok = data[6].str(); !ok {
				return bad("name must be a string")
			}
		}
	}
	if err := u.readMembers(data[3], data[4]); err != nil {
		return bad("%v", err)
	}
	return u, left.take(u)
}

// readMembers reads the texts and the gaps in time between them, one fewer.
func (u *unpacked) readMembers(gaps, texts value) error {
	if !texts.isList() || texts.empty() {
		return fmt.Errorf("%s must be a list of strings that is not empty", u.kind.members)
	}
	if !gaps.isList() {
		return errors.New("dt must be a list of whole numbers")
	}
	for text := range texts.elements {
		if !text.isString() {
			return fmt.Errorf("%s must hold strings only", u.kind.members)
		}
		u.count, u.bytes = u.count+1, u.bytes+int64(len(text))
	}
	time, count := u.time, int64(0)
	for gap := range gaps.elements {
		ms, ok := gap.whole()
		if !ok {
			return errors.New("dt must be a list of whole numbers")
		}
		if time += ms; time > safeMax || time < -safeMax {
			return errors.New("dt leads out of time")
		}
		count++
	}
	if count != u.count-1 {
		return fmt.Errorf("%d gaps in time do not fit %d members", count, u.count)
	}
	if u.seq > safeMax-u.count {
		return errors.New("seq0 is too large")
	}
	u.gaps, u.texts = gaps, texts
	return nil
}

// budget is what the packed rows of a log may still stand for.
type budget struct{ events, bytes int64 }

// newBudget is what the rows of one log may stand for, and no more than `most` events.
func newBudget(most int64) *budget {
	return &budget{events: min(most, PackedEventsMax), bytes: PackedBytesMax}
}

// take makes room for a row.
func (b *budget) take(u unpacked) error {
	if u.count > b.events {
		return &LimitError{Limit: "PackedEventsMax", Most: PackedEventsMax, Problem: "packed rows stand for more events than may be read"}
	}
	size := u.size()
	if size > b.bytes {
		return &LimitError{Limit: "PackedBytesMax", Most: PackedBytesMax, Problem: "the events of packed rows have more bytes of data than may be read"}
	}
	b.events, b.bytes = b.events-u.count, b.bytes-size
	return nil
}

// size is how many bytes of data the events have: the numbers of one row are equally long in all of them.
func (u unpacked) size() int64 { return u.count*int64(len(u.appendData(nil, nil))) + u.bytes }

// appendEvents appends what the row stands for. One allocation holds all their data.
func (u unpacked) appendEvents(dst []Event, line []byte) []Event {
	row := &packedRow{line: line, seq: u.seq, count: u.count}
	arena := make([]byte, 0, u.size())
	first := len(dst)
	for text := range u.texts.elements {
		start := len(arena)
		arena = u.appendData(arena, text)
		dst = append(dst, Event{Type: typeChunk, Seq: u.seq + int64(len(dst)-first), Time: u.time,
			Data: json.RawMessage(arena[start:len(arena):len(arena)]), row: row})
	}
	at := first
	for gap := range u.gaps.elements {
		ms, _ := gap.whole()
		at++
		dst[at].Time = dst[at-1].Time + ms
	}
	return dst
}

// exactly returns the values of the named keys of a record that has these and no others; a key that ends in "?" may
// be missing.
func exactly(rec value, keys ...string) (values []value, ok bool) {
	if !rec.isRecord() {
		return nil, false
	}
	values = make([]value, len(keys))
	for k, v := range rec.members {
		known := false
		for i, key := range keys {
			if k.is(trimMark(key)) {
				values[i], known = v, true
			}
		}
		if !known {
			return nil, false
		}
	}
	for i, key := range keys {
		if values[i] == nil && trimMark(key) == key {
			return nil, false
		}
	}
	return values, true
}

func trimMark(key string) string {
	if n := len(key); key[n-1] == '?' {
		return key[:n-1]
	}
	return key
}

// DecodeRecord appends the events of one stored record, without its line feed, to dst: the one event that it is, or
// all those that it packs (L-035, L-041), of which there may be at most `most`. The events keep record; the caller
// must not change it afterwards. The error is a *CorruptError or, for a row that stands for too much, a *LimitError.
func DecodeRecord(dst []Event, record []byte, most int64) ([]Event, error) {
	ev, err := decodeEvent(record)
	if err == nil {
		return append(dst, ev), nil
	}
	if IsPackedRow(record) {
		return decodeRow(dst, record, most)
	}
	return dst, badRecord(err)
}

// DecodeRow reads a packed row, without its line feed, strictly (L-041). The events keep record; the caller must not
// change it afterwards. The error is a *CorruptError or, for a row that stands for too much, a *LimitError.
func DecodeRow(record []byte) ([]Event, error) { return decodeRow(nil, record, PackedEventsMax) }

func decodeRow(dst []Event, record []byte, most int64) ([]Event, error) {
	rec, ok := parse(record)
	if !ok || bytes.IndexByte(record, '\n') >= 0 {
		return dst, badRecord(errUnparsable)
	}
	row, err := unpack(rec, newBudget(most))
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return dst, limit
	case err != nil:
		return dst, badRecord(err)
	}
	return row.appendEvents(dst, record), nil
}

func badRecord(err error) error {
	return &CorruptError{Seq: -1, Problem: err.Error(), Remedy: "restore the record from a copy of the log"}
}

// Records yields the events as the lines that they are stored in, without line feeds: a packed row whose events are
// all there, unchanged and in their order, is the very row they were read from; every other event is a line of its
// own (L-035, L-040).
func Records(events iter.Seq[Event]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var held []Event // the first events of a row
		release := func() bool {
			for _, ev := range held {
				if !yield(ev.Line()) {
					return false
				}
			}
			held = held[:0]
			return true
		}
		for ev := range events {
			if len(held) > 0 && !held[len(held)-1].goesOn(ev) && !release() {
				return
			}
			if ev.row == nil || len(held) == 0 && ev.Seq != ev.row.seq {
				if !yield(ev.Line()) {
					return
				}
				continue
			}
			if held = append(held, ev); int64(len(held)) == ev.row.count {
				if !yield(ev.row.line) {
					return
				}
				held = held[:0]
			}
		}
		release()
	}
}

// RecordSpan is the range of seqs, the first and the one behind the last, of the stored record that holds the event:
// its own, or that of the packed row it was read from.
func (e Event) RecordSpan() (first, next int64) {
	if e.row == nil {
		return e.Seq, e.Seq + 1
	}
	return e.row.seq, e.row.seq + e.row.count
}

// goesOn says whether next is the event behind e in the same packed row.
func (e Event) goesOn(next Event) bool {
	a, b := e.row, next.row
	if b == nil || next.Seq != e.Seq+1 {
		return false
	}
	return a == b || a.seq == b.seq && a.count == b.count && bytes.Equal(a.line, b.line) // read in two pages
}

// Pack returns the events of one write as a v0 writer packs them (L-040): runs of at least three deltas of one kind,
// turn, step, block and, of a tool call, id and name, which follow upon each other. What an event says never changes;
// Records and Export write the runs as rows.
func Pack(events []Event) []Event {
	out := append([]Event(nil), events...)
	for start := 0; start < len(out); {
		first, _, ok := readDelta(out[start])
		end := start + 1
		for ok && end < len(out) && follows(out[end-1], out[end]) {
			next, _, isDelta := readDelta(out[end])
			if !isDelta || next != first {
				break
			}
			end++
		}
		if ok && end-start >= packMin {
			first.mark(out[start:end])
		}
		start = end
	}
	return out
}

// follows says whether b stands behind a, with a gap in time that a row can hold.
func follows(a, b Event) bool {
	gap := b.Time - a.Time
	return b.Seq == a.Seq+1 && gap >= -safeMax && gap <= safeMax
}

// readDelta reads an event that can be packed: it has exactly the expected keys, so that a row says all of it.
func readDelta(ev Event) (r run, text value, ok bool) {
	if ev.Type != typeChunk || ev.Ignorable || ev.SurfaceOp != nil || ev.SourceEventSeqs != nil {
		return r, nil, false
	}
	data, exact := exactly(value(ev.Data), "turn", "step", "chunk")
	if !exact {
		return r, nil, false
	}
	for i := range packings {
		if data[2].get("type").is(packings[i].delta) {
			r.kind = &packings[i]
		}
	}
	if r.kind == nil {
		return r, nil, false
	}
	keys := []string{"index", r.kind.text, "type"}
	if r.kind.tool {
		keys = append(keys, "id", "name?")
	}
	chunk, exact := exactly(data[2], keys...)
	if !exact || !chunk[1].isString() {
		return r, nil, false
	}
	var okTurn, okStep, okIndex bool
	r.turn, okTurn = data[0].whole()
	r.step, okStep = data[1].whole()
	r.index, okIndex = chunk[0].whole()
	ok = okTurn && okStep && okIndex
	if r.kind.tool {
		var okID bool
		r.id, okID = chunk[3].str()
		ok = ok && okID
		if r.named = chunk[4] != nil; r.named {
			r.name, okID = chunk[4].str()
			ok = ok && okID
		}
	}
	return r, chunk[1], ok
}

// mark writes the row of a run and lets its events know it.
func (r run) mark(events []Event) {
	line := append([]byte(`{"type":"`), r.kind.row...)
	line = strconv.AppendInt(append(line, `","seq0":`...), events[0].Seq, 10)
	line = strconv.AppendInt(append(line, `,"time0":`...), events[0].Time, 10)
	line = appendTurnStep(append(line, `,"data":`...), r.turn, r.step)
	line = strconv.AppendInt(append(line, `,"index":`...), r.index, 10)
	line = append(line, `,"dt":[`...)
	for i := 1; i < len(events); i++ {
		if i > 1 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, events[i].Time-events[i-1].Time, 10)
	}
	line = r.appendTool(append(line, ']'))
	line = append(append(append(line, `,"`...), r.kind.members...), `":[`...)
	for i, ev := range events {
		if i > 0 {
			line = append(line, ',')
		}
		_, text, _ := readDelta(ev)
		line = append(line, text...)
	}
	row := &packedRow{line: append(line, "]}}"...), seq: events[0].Seq, count: int64(len(events))}
	for i := range events {
		events[i].row, events[i].line = row, nil
	}
}
