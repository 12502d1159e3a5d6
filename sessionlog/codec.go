package sessionlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
// can produce, fail the whole file (L-034, L-010). The events share memory with data. The error is a *CorruptError or
// an *UnsupportedError; types and surface are judged later, by ValidateEvents.
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
	var bad *CorruptError // the first problem; from here on nothing is accepted
	for line := 2; ; line++ {
		n := bytes.IndexByte(data[pos:], '\n')
		if n < 0 {
			break
		}
		text := data[pos : pos+n]
		pos += n + 1
		if bad == nil {
			ev, err := scanRecord(header.Version, text, line, int64(len(log.Events)), &bad)
			if err != nil {
				return Log{}, err
			}
			if bad == nil {
				log.Events = append(log.Events, ev)
				log.CommittedBytes = int64(pos)
				continue
			}
		}
		if rec, ok := parse(text); ok && rec.get("type").is(TypeTurnEnd) {
			// A finished turn behind the damage proves that the loss is not a crash tail.
			return Log{}, bad
		}
	}
	log.mark(data, bad)
	return log, nil
}

// roomFor bounds the number of records in data by its lines, and by the shortest record there is: a file of nothing
// but line feeds must not reserve memory for events.
func roomFor(data []byte) int {
	const shortest = len(`{"type":"","seq":0,"time":0,"data":0}` + "\n")
	return min(bytes.Count(data, []byte{'\n'}), len(data)/shortest)
}

// scanRecord reads one complete line that must be event `want`. A line that a crash could have left sets bad; a
// record that is whole and in its place, but wrong, is an error at once.
func scanRecord(version int, text []byte, line int, want int64, bad **CorruptError) (Event, error) {
	const remedy = "restore the file from a copy, or cut it before this line if what follows may be lost"
	ev, err := decodeEvent(text)
	if err == nil && ev.Seq == want {
		return ev, nil
	}
	rec, isJSON := parse(text)
	seq, hasSeq := rec.get("seq").whole()
	switch {
	case !isJSON || !rec.isRecord():
		*bad = &CorruptError{Line: line, Seq: -1, Problem: errUnparsable.Error(), Remedy: remedy}
	case version == V0 && isPackedRow(rec):
		return Event{}, &UnsupportedError{Line: line, Seq: -1, Problem: "packed chunk rows (" + string(rec.get("type")) + ") are not read by this build",
			Remedy: "export the session from the program that wrote it without packing"}
	case !hasSeq:
		*bad = &CorruptError{Line: line, Seq: -1, Problem: "the record has no seq", Remedy: remedy}
	case seq != want:
		*bad = &CorruptError{Line: line, Seq: seq, Problem: fmt.Sprintf("seq gap: expected %d", want), Remedy: remedy}
	default:
		return Event{}, &CorruptError{Line: line, Seq: seq, Problem: err.Error(), Remedy: remedy}
	}
	return Event{}, nil
}

// isPackedRow recognises the v0 rows that hold several chunk events (L-035, L-040).
func isPackedRow(rec value) bool {
	typ := rec.get("type")
	return typ.is("text-chunks") || typ.is("reasoning-chunks") || typ.is("tool-call-chunks")
}

// mark records what follows the last good record.
func (l *Log) mark(data []byte, bad *CorruptError) {
	l.TornBytes = int64(len(data)) - l.CommittedBytes
	if l.TornBytes == 0 {
		return
	}
	l.Torn = true
	l.TornLine = 2 + len(l.Events)
	switch {
	case bad != nil:
		l.TornProblem = bad.Problem
	case len(bytes.Trim(data[l.CommittedBytes:], "\x00")) == 0:
		l.TornProblem = "only NUL bytes follow the last record"
	default:
		l.TornProblem = "the last line has no line feed"
	}
}

// Export writes the log as a file: the header, then one record per line (L-030). What was read is written byte for
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
		for _, ev := range events {
			if !yield(ev.Line()) {
				return
			}
		}
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
