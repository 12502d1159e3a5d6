package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/parleyrun/parley/sessionlog"
)

// FillIn makes a log that can be loaded of a normalised one, from which the values that differ per run were taken
// away: positions are counted, a packed row for all of its events, and every missing time is 0. The session gets the
// id and, where cwd is not empty, the working directory. Placeholders in texts stay as they are.
func FillIn(text []byte, id, cwd string) ([]byte, error) {
	var out []byte
	seq := 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		record := map[string]json.RawMessage{}
		err := json.Unmarshal(line, &record)
		switch {
		case err != nil:
		case len(out) == 0:
			line, err = fillHeader(line, record, id, cwd)
		case record["data"] == nil:
			err = fmt.Errorf("it has no data")
		case sessionlog.IsPackedRow(line):
			var data struct{ Texts, Args []json.RawMessage }
			err = json.Unmarshal(record["data"], &data)
			line = fill(line, record, "seq0", strconv.Itoa(seq), "time0", "0")
			seq += len(data.Texts) + len(data.Args)
		default:
			line = fill(line, record, "seq", strconv.Itoa(seq), "time", "0")
			seq++
		}
		if err != nil {
			return nil, fmt.Errorf("the log cannot be filled in, at %.80q: %w", line, err)
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

func fillHeader(line []byte, record map[string]json.RawMessage, id, cwd string) ([]byte, error) {
	if old, there := record["cwd"]; there && cwd != "" {
		line = bytes.Replace(line, append([]byte(`"cwd":`), old...), append([]byte(`"cwd":`), asJSON(cwd)...), 1)
	}
	header, err := sessionlog.DecodeHeader(fill(line, record, "delegationDepth", "0"))
	if err != nil {
		return nil, err
	}
	return header.Named(id).Line(), nil
}

// fill adds the pairs of key and value that a record does not have.
func fill(line []byte, record map[string]json.RawMessage, pairs ...string) []byte {
	line = bytes.TrimSuffix(bytes.TrimSpace(line), []byte{'}'})
	for i := 0; i < len(pairs); i += 2 {
		if record[pairs[i]] == nil {
			line = fmt.Appendf(line[:len(line):len(line)], ",%q:%s", pairs[i], pairs[i+1])
		}
	}
	return append(line[:len(line):len(line)], '}')
}
