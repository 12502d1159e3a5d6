package sessionlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Log is a scanned file: the good records and what was left behind them.
type Log struct {
	Header         Header  // line one
	Events         []Event // the accepted records; they share memory with the scanned bytes
	CommittedBytes int64   // the offset behind the last good record (L-033)
	Torn           bool    // something follows the last good record; it is not in Events
	TornBytes      int64   // how many bytes that is
	TornLine       int     // the line of the first of them, counted from 1; 0 when not torn
	TornProblem    string  // why they were not accepted; empty when not torn
}

// Scan reads a whole log file of generation v0 or v3 (L-030 to L-035). A tail that a crash can leave behind is cut off
// and reported in the result, never dropped silently; damage in front of a finished turn, and a record that no crash
// can produce, fail the whole file (L-034, L-010). The events share memory with data. The error is a *CorruptError, an
// *UnsupportedError or, for packed rows that stand for too much, a *LimitError; types and surface are judged later, by
// ValidateEvents.
func Scan(data []byte) (Log, error) {
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return Log{}, &CorruptError{Line: 1, Seq: -1, Problem: "the file has no complete header line",
			Remedy: "delete it if the session never ran, else restore it from a copy"}
	}
	header, err := DecodeHeader(data[:end])
	if err != nil {
		return Log{}, err
	}
	pos := end + 1
	log := Log{Header: header, CommittedBytes: int64(pos), Events: make([]Event, 0, roomFor(data[pos:]))}
	scan := scanner{version: header.Version, line: 1, left: newBudget(PackedEventsMax)}
	good := 1 // lines that were accepted
	for {
		n := bytes.IndexByte(data[pos:], '\n')
		if n < 0 {
			break
		}
		text := data[pos : pos+n]
		pos += n + 1
		scan.line++
		if scan.bad == nil {
			if log.Events, err = scan.record(log.Events, text); err != nil {
				return Log{}, err
			}
			if scan.bad == nil {
				log.CommittedBytes = int64(pos)
				good++
				continue
			}
		}
		if rec, ok := parse(text); ok && rec.get("type").is(TypeTurnEnd) {
			// A finished turn behind the damage proves that the loss is not a crash tail.
			return Log{}, scan.bad
		}
	}
	log.mark(data, good, scan.bad)
	return log, nil
}

// roomFor bounds the number of records in data by its lines, and by the shortest record there is: a file of nothing
// but line feeds must not reserve memory for events.
func roomFor(data []byte) int {
	const shortest = len(`{"type":"","seq":0,"time":0,"data":0}` + "\n")
	return min(bytes.Count(data, []byte{'\n'}), len(data)/shortest)
}

// scanner reads the records of a file in order.
type scanner struct {
	version int
	line    int           // of the record, counted from 1
	left    *budget       // of packed rows
	bad     *CorruptError // the first problem that a crash can leave; from here on nothing is accepted
}

// record reads one complete line, which must go on behind the events that there are. A line that a crash could have
// left sets bad; a record that is whole and in its place, but wrong, is an error at once.
func (s *scanner) record(events []Event, text []byte) ([]Event, error) {
	const remedy = "restore the file from a copy, or cut it before this line if what follows may be lost"
	want := int64(len(events))
	ev, err := decodeEvent(text)
	if err == nil && ev.Seq == want && (s.version != V0 || !isRowType(ev.Type)) { // of that type v0 has rows only
		return append(events, ev), nil
	}
	rec, isJSON := parse(text)
	seq, hasSeq := rec.get("seq").whole()
	switch {
	case !isJSON || !rec.isRecord():
		s.bad = &CorruptError{Line: s.line, Seq: -1, Problem: errUnparsable.Error(), Remedy: remedy}
	case s.version == V0 && packingOf(rec.get("type")) != nil:
		return s.row(events, rec, text, remedy)
	case !hasSeq:
		s.bad = &CorruptError{Line: s.line, Seq: -1, Problem: "the record has no seq", Remedy: remedy}
	case seq != want:
		s.bad = &CorruptError{Line: s.line, Seq: seq, Problem: fmt.Sprintf("seq gap: expected %d", want), Remedy: remedy}
	default:
		return events, &CorruptError{Line: s.line, Seq: seq, Problem: err.Error(), Remedy: remedy}
	}
	return events, nil
}

// row reads a packed row, which is good or bad as a whole (L-035).
func (s *scanner) row(events []Event, rec value, text []byte, remedy string) ([]Event, error) {
	row, err := unpack(rec, s.left)
	var limit *LimitError
	switch want := int64(len(events)); {
	case errors.As(err, &limit):
		limit.Line = s.line
		return events, limit
	case err != nil:
		s.bad = &CorruptError{Line: s.line, Seq: -1, Problem: err.Error(), Remedy: remedy}
	case row.seq != want:
		s.bad = &CorruptError{Line: s.line, Seq: row.seq, Problem: fmt.Sprintf("seq gap: expected %d", want), Remedy: remedy}
	default:
		return row.appendEvents(events, text), nil
	}
	return events, nil
}

// mark records what follows the last good record, which is on line `good`.
func (l *Log) mark(data []byte, good int, bad *CorruptError) {
	l.TornBytes = int64(len(data)) - l.CommittedBytes
	if l.TornBytes == 0 {
		return
	}
	l.Torn = true
	l.TornLine = good + 1
	switch {
	case bad != nil:
		l.TornProblem = bad.Problem
	case len(bytes.Trim(data[l.CommittedBytes:], "\x00")) == 0:
		l.TornProblem = "only NUL bytes follow the last record"
	default:
		l.TornProblem = "the last line has no line feed"
	}
}

// Export writes the log as a file: the header, then its records, one per line (L-030, L-035). What was read is written byte for
// byte. A log whose positions have gaps is refused with a *CorruptError before anything is written, because no reader
// would accept it (L-011); other errors are the writer's.
func Export(w io.Writer, h Header, events []Event) error {
	for i, ev := range events {
		if ev.Seq != int64(i) {
			return gap(ev.Seq, int64(i))
		}
	}
	out := bufio.NewWriter(w)
	lines := func(yield func([]byte) bool) {
		if !yield(h.Line()) {
			return
		}
		Records(slices.Values(events))(yield)
	}
	var errs error
	for line := range lines {
		_, err := out.Write(line)
		if errs = errors.Join(err, out.WriteByte('\n')); errs != nil {
			return fmt.Errorf("export session %s: %w", h.ID, errs)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export session %s: %w", h.ID, err)
	}
	return nil
}
