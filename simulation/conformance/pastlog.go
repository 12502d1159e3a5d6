package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/parleyrun/parley/sessionlog"
)

// RunPack packs the events of one vector of kind pack and compares the stored records, and what they are read back as
// (L-040).
func RunPack(v []byte) (Verdict, string) {
	var vec struct {
		Input  struct{ Events []json.RawMessage }
		Expect struct{ Records, RoundTrip json.RawMessage }
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	events, err := decodeAll(vec.Input.Events)
	if err != nil {
		return Failed, err.Error()
	}
	records, again := []json.RawMessage{}, []json.RawMessage{}
	for record := range sessionlog.Records(slices.Values(sessionlog.Pack(events))) {
		records = append(records, json.RawMessage(record))
		read, err := sessionlog.DecodeRecord(nil, record, int64(len(events)))
		if err != nil {
			return Failed, fmt.Sprintf("the packed row is refused: %v", err)
		}
		for _, ev := range read {
			again = append(again, ev.Line())
		}
	}
	if verdict, why := compareValue(vec.Expect.Records, records); verdict != Passed {
		return verdict, why
	}
	same := true
	if verdict, _ := compareValue(asJSON(vec.Input.Events), again); verdict != Passed {
		same = false
	}
	return compareValue(vec.Expect.RoundTrip, same)
}

func asJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("a vector's own JSON cannot be written: " + err.Error())
	}
	return text
}

// RunUnpack reads the record of one vector of kind unpack and compares its events; a record that is no packed row is
// passed through as it is, for others to judge (L-041).
func RunUnpack(v []byte) (Verdict, string) {
	var vec struct {
		Input  struct{ Record json.RawMessage }
		Expect json.RawMessage
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	if !sessionlog.IsPackedRow(vec.Input.Record) {
		return compareValue(vec.Expect, map[string]any{"events": []json.RawMessage{vec.Input.Record}})
	}
	read, err := sessionlog.DecodeRow(vec.Input.Record)
	if err != nil {
		return compareError(vec.Expect, "error", "", err)
	}
	events := []json.RawMessage{}
	for _, ev := range read {
		events = append(events, ev.Line())
	}
	return compareValue(vec.Expect, map[string]any{"events": events})
}

type named struct {
	Raw                string
	MaxBytes, MaxWords int
}

// naming makes a runner of a function that makes one name of another: kinds segment and project (L-036), title and
// fallback-title (L-071).
func naming(name func(in named) string) runner {
	return func(v []byte, _ Options) (Verdict, string) {
		var vec struct {
			Input  named
			Expect json.RawMessage
		}
		if err := json.Unmarshal(v, &vec); err != nil {
			return Failed, err.Error()
		}
		return compareValue(vec.Expect, name(vec.Input))
	}
}

func nameSegment(in named) string { return sessionlog.SessionSegment(in.Raw) }
func nameProject(in named) string { return sessionlog.ProjectSegment(in.Raw) }
func nameTitle(in named) string   { return sessionlog.NormalizeTitle(in.Raw, in.MaxBytes) }
func nameFallback(in named) string {
	return sessionlog.FallbackTitle(in.Raw, in.MaxWords, in.MaxBytes)
}

// RunExtraction loads the log that one vector of session-extraction.jsonl names and compares what became of each of
// its events, and what they say (L-027, S-070, S-080). The logs are files of the folder Options.Logs.
func RunExtraction(v []byte, opts Options) (Verdict, string) {
	var vec struct {
		Log   string
		Error string
	}
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	if opts.Logs == "" {
		return Failed, "it names a log, and no folder of logs was given (--logs)"
	}
	text, err := os.ReadFile(filepath.Join(opts.Logs, filepath.Base(vec.Log)))
	if err != nil {
		return Failed, err.Error()
	}
	got, err := extract(text, vec.Log)
	switch {
	case err != nil && vec.Error != "":
		return Passed, ""
	case err != nil:
		return Failed, fmt.Sprintf("$: want a result, got the error: %v", err)
	}
	return compareValue(v, got)
}

// extract reads a normalised log the way a query does: filled in, upgraded, and with what a crash left open closed in
// memory.
func extract(text []byte, name string) (map[string]any, error) {
	filled, err := FillIn(text, name, "")
	if err != nil {
		return nil, err
	}
	log, err := sessionlog.Scan(filled)
	if err != nil {
		return nil, err
	}
	events := sessionlog.UpgradeAll(log.Header, log.Events)
	progress := sessionlog.NewProgress(log.Header.Version)
	for _, ev := range events {
		progress = progress.Fold(ev)
	}
	stored := len(events)
	if stored > 0 {
		events = slices.Concat(events, progress.Repair(sessionlog.CauseInterrupted, int64(stored), events[stored-1].Time))
	}
	if err := sessionlog.ValidateEvents(log.Header.Version, events); err != nil {
		return nil, err
	}
	view, err := sessionlog.Surface(log.Header.Version, events)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, ev := range events {
		rows = append(rows, map[string]any{"seq": ev.Seq, "type": ev.Type,
			"surface": view.Class(ev.Seq).String(), "text": sessionlog.SemanticText(ev)})
	}
	return map[string]any{"log": name, "storedEvents": stored, "syntheticClosers": len(events) - stored,
		"current": view.Nodes, "replacements": replacementsOf(view), "events": rows}, nil
}

func replacementsOf(view sessionlog.SurfaceView) []map[string]any {
	out := []map[string]any{}
	for _, r := range view.Replacements {
		out = append(out, map[string]any{"seq": r.Seq, "start": r.Start, "end": r.End, "shadowedSeqs": r.Shadowed})
	}
	return out
}
