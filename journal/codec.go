package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/parleyrun/parley/sessionlog"
)

// AppendChanges encodes index changes as backends keep them with a batch:
// compact JSON, the form encoding/json gives. Plain rows, which are nearly all,
// are written without reflection, because every append pays for it.
func AppendChanges(dst []byte, changes []sessionlog.RowChange) []byte {
	dst = append(dst, '[')
	for i, c := range changes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"r":{"c":`...), c.Row.CallID)
		dst = appendQuoted(append(dst, `,"s":`...), string(c.Row.State))
		if c.Row.Due != 0 {
			dst = strconv.AppendInt(append(dst, `,"d":`...), c.Row.Due, 10)
		}
		dst = strconv.AppendInt(append(dst, `,"q":`...), c.Row.Seq, 10)
		dst = append(dst, '}')
		if c.Remove {
			dst = append(dst, `,"x":true`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendQuoted(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("journal: a string cannot be encoded: " + err.Error())
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// DecodeChanges is the inverse of AppendChanges. Its error says that the bytes
// are damaged; restoring the session from a backup is what remains.
func DecodeChanges(delta []byte) ([]sessionlog.RowChange, error) {
	var out []sessionlog.RowChange
	dec := json.NewDecoder(bytes.NewReader(delta))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("the index changes are not readable: %w", err)
	}
	if dec.More() {
		return nil, fmt.Errorf("%d bytes follow the index changes", len(delta)-int(dec.InputOffset()))
	}
	return out, nil
}

// DecodeLines is the inverse of Batch.Lines: it appends the events of a batch
// that starts at sequence number seq and holds count events. Its error says
// what does not follow from what was recorded, and where. The events keep
// parts of lines, which must not change afterwards.
func DecodeLines(dst []sessionlog.Event, lines []byte, seq, count int64) ([]sessionlog.Event, error) {
	for next, left := seq, count; left > 0; {
		line, rest, more := bytes.Cut(lines, []byte{'\n'})
		read := len(dst)
		var err error
		if dst, err = sessionlog.DecodeRecord(dst, line, left); err != nil {
			return dst[:read], fmt.Errorf("the record at sequence number %d is not readable: %w", next, err)
		}
		for _, ev := range dst[read:] {
			if ev.Seq != next {
				return dst[:read], fmt.Errorf("the event at sequence number %d says it has number %d", next, ev.Seq)
			}
			next, left = next+1, left-1
		}
		if more != (left > 0) {
			return dst[:read], fmt.Errorf("the batch at sequence number %d holds another number of events than the %d recorded", seq, count)
		}
		lines = rest
	}
	if len(lines) > 0 {
		return dst, fmt.Errorf("the batch at sequence number %d holds bytes after its %d events", seq, count)
	}
	return dst, nil
}
