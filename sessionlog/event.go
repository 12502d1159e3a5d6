package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Event is one record of the log (L-010). The raw JSON bytes are the truth: an event that was read re-encodes to the
// very bytes it was read from. Treat it as a value; change it only through the methods below, which return a copy.
type Event struct {
	Type            string          // what happened; the table of known types is in types.go
	Seq             int64           // position in the log, from 0 (L-011)
	Time            int64           // wall clock of the append, epoch milliseconds; not monotonic (L-012)
	Data            json.RawMessage // raw bytes of the payload; read-only
	Ignorable       bool            // a reader that does not know the type may skip the event (L-014)
	SurfaceOp       json.RawMessage // nil, `"append"`, or the replace record (L-021); read-only
	SourceEventSeqs []int64         // cited events (L-023); nil when absent, which differs from empty; read-only

	line []byte     // the bytes it was read from, nil once it was changed
	row  *packedRow // the packed row it was read from, nil if there is none or it was changed
}

// NewEvent makes an event that is not yet stamped (see At). The data is encoded compactly, without HTML escaping and
// never with a raw line feed; a json.RawMessage passes through compacted. It panics when data cannot be encoded:
// that is a bug of the caller, not a state of the world.
func NewEvent(typ string, data any) Event {
	raw, ok := data.(json.RawMessage)
	if !ok {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(data); err != nil {
			panic(fmt.Sprintf("sessionlog: data of %s cannot be encoded: %v", typ, err))
		}
		raw = buf.Bytes()
	}
	v, valid := parse(raw)
	if !valid {
		panic(fmt.Sprintf("sessionlog: data of %s is not valid JSON: %.200q", typ, raw))
	}
	return Event{Type: typ, Data: appendCompact(make([]byte, 0, len(v)), v)}
}

var surfaceAppend = json.RawMessage(`"append"`)

// Appended returns the event marked as an addition at the end of the model's surface (L-021).
func (e Event) Appended() Event {
	e.SurfaceOp, e.line, e.row = surfaceAppend, nil, nil
	return e
}

// Citing returns the event citing these seqs (L-023). Without arguments the citation is removed.
func (e Event) Citing(seqs ...int64) Event {
	e.SourceEventSeqs, e.line, e.row = nil, nil, nil
	if len(seqs) > 0 {
		e.SourceEventSeqs = append([]int64(nil), seqs...)
	}
	return e
}

// Ours returns the event marked ignorable, as every type of our own must be (L-014).
func (e Event) Ours() Event {
	e.Ignorable, e.line, e.row = true, nil, nil
	return e
}

// At returns the event stamped with its position and the wall clock in epoch milliseconds (L-011, L-012).
func (e Event) At(seq, time int64) Event {
	e.Seq, e.Time, e.line, e.row = seq, time, nil, nil
	return e
}

// Line returns the encoded record without its line feed: the bytes it was read from if they are its own line (an event
// of a packed row has none, see Records), else the keys in the order type,
// seq, time, data and then ignorable, surfaceOp, sourceEventSeqs where present. The result is read-only.
func (e Event) Line() []byte {
	if e.line != nil {
		return e.line
	}
	dst := make([]byte, 0, len(e.Type)+len(e.Data)+len(e.SurfaceOp)+8*len(e.SourceEventSeqs)+128)
	dst = appendString(append(dst, `{"type":`...), e.Type)
	dst = strconv.AppendInt(append(dst, `,"seq":`...), e.Seq, 10)
	dst = strconv.AppendInt(append(dst, `,"time":`...), e.Time, 10)
	dst = append(dst, `,"data":`...)
	if e.Data == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendCompact(dst, value(e.Data)) // a literal may carry line feeds between its tokens (fault G3)
	}
	if e.Ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	if e.SurfaceOp != nil {
		dst = appendCompact(append(dst, `,"surfaceOp":`...), value(e.SurfaceOp))
	}
	if e.SourceEventSeqs != nil {
		dst = append(dst, `,"sourceEventSeqs":[`...)
		for i, seq := range e.SourceEventSeqs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, seq, 10)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	if bytes.IndexByte(dst, '\n') >= 0 {
		// The file's framing depends on it (fault G3). Only Data that is not JSON gets here.
		panic(fmt.Sprintf("sessionlog: data of %s holds a raw line feed", e.Type))
	}
	return dst
}

// errUnparsable is a text that is no record at all, as opposed to a record with a wrong envelope.
var errUnparsable = errors.New("it is not one JSON record on one line")

// DecodeEvent reads one record, without its line feed, by the strict envelope of L-010: exactly the known keys, each
// of its type. Whether the surface fields fit together is judged with the whole log, by ValidateEvents. The event
// keeps line; the caller must not change it afterwards. The error is a *CorruptError.
func DecodeEvent(line []byte) (Event, error) {
	ev, err := decodeEvent(line)
	if err != nil {
		return Event{}, badRecord(err)
	}
	return ev, nil
}

func decodeEvent(line []byte) (Event, error) {
	rec, ok := parse(line)
	if !ok || !rec.isRecord() || bytes.IndexByte(line, '\n') >= 0 {
		return Event{}, errUnparsable
	}
	ev := Event{line: line}
	var typ, seq, time, ignorable, cites value
	for k, v := range rec.members {
		switch {
		case k.is("type"):
			typ = v
		case k.is("seq"):
			seq = v
		case k.is("time"):
			time = v
		case k.is("data"):
			ev.Data = json.RawMessage(v)
		case k.is("ignorable"):
			ignorable = v
		case k.is("surfaceOp"):
			ev.SurfaceOp = json.RawMessage(v)
		case k.is("sourceEventSeqs"):
			cites = v
		default:
			return Event{}, fmt.Errorf("the record has the unknown key %s", k)
		}
	}
	var err error
	if ev.Type, ok = typ.str(); !ok {
		return Event{}, errors.New("type must be a string")
	}
	if ev.Seq, ok = seq.count(); !ok {
		return Event{}, errors.New("seq must be a whole number that is not negative")
	}
	if ev.Time, ok = time.whole(); !ok {
		return Event{}, errors.New("time must be whole epoch milliseconds")
	}
	if ev.Data == nil {
		return Event{}, errors.New("data is missing")
	}
	if ev.Ignorable = ignorable.isTrue(); ignorable != nil && !ev.Ignorable {
		return Event{}, errors.New("ignorable can only be true")
	}
	if ev.SourceEventSeqs, err = decodeCitations(cites); err != nil {
		return Event{}, err
	}
	return ev, nil
}

func decodeCitations(cites value) ([]int64, error) {
	if cites == nil {
		return nil, nil
	}
	if !cites.isList() {
		return nil, errors.New("sourceEventSeqs must be a list")
	}
	seqs := []int64{}
	for el := range cites.elements {
		seq, ok := el.count()
		if !ok {
			return nil, errors.New("sourceEventSeqs must hold whole numbers that are not negative")
		}
		seqs = append(seqs, seq)
	}
	return seqs, nil
}
