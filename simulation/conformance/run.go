package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options select what Run drives.
type Options struct {
	// Kinds are the only kinds wanted; empty means every kind of the files.
	Kinds []string
	// Logs is the folder of the logs that vectors name instead of holding them.
	Logs string
	// Stdin is read for a file named "-".
	Stdin io.Reader
}

// Summary counts what became of the vectors.
type Summary struct {
	Passed, Failed, Improved int
}

// String is the last line of a run.
func (s Summary) String() string {
	line := fmt.Sprintf("%d passed, %d failed", s.Passed, s.Failed)
	if s.Improved > 0 {
		line += fmt.Sprintf(", %d improved", s.Improved)
	}
	return line
}

// ErrNothing is returned when no vector was selected: a run of nothing must never look like a success.
var ErrNothing = errors.New("no vector was selected")

// A runner drives one vector of its kind.
type runner func(v []byte, opts Options) (Verdict, string)

func plain(run func([]byte) (Verdict, string)) runner {
	return func(v []byte, _ Options) (Verdict, string) { return run(v) }
}

// runners holds every kind of vector there is.
var runners = map[string]runner{
	"projection":  plain(RunProjection),
	"scan":        plain(RunScan),
	"surface":     plain(RunSurface),
	"repair":      plain(RunRepair),
	"inbox":       plain(RunInbox),
	"timed-wait":  plain(RunTimedWait),
	"foreground":  plain(RunForeground),
	"late-answer": plain(RunLateAnswer),
	"card":        plain(RunCard),
	// The other kinds of session-log.jsonl.
	"pack":           plain(RunPack),
	"unpack":         plain(RunUnpack),
	"segment":        naming(nameSegment),
	"project":        naming(nameProject),
	"title":          naming(nameTitle),
	"fallback-title": naming(nameFallback),
	// The kinds of presentation.jsonl.
	"reply":               presented(showReply),
	"row":                 presented(showRow),
	"plan":                presented(showPlan),
	"label":               presented(showLabel),
	"source":              presented(showSource),
	"session-extraction":  RunExtraction,
	"session-query-tools": plain(RunQueryTools),
}

// Kinds lists the kinds that Run can drive.
func Kinds() []string { return slices.Sorted(maps.Keys(runners)) }

// Run drives the machines with the vectors of the files, in order. It writes one line per failure, with the first
// difference, and then the summary. Failures are in the summary; the error says that not everything could be judged:
// a file that cannot be read, a vector of no known kind, or nothing selected at all.
func Run(w io.Writer, files []string, opts Options) (Summary, error) {
	var sum Summary
	for _, kind := range opts.Kinds {
		if _, known := runners[kind]; !known {
			return sum, fmt.Errorf("there is no kind %q; the kinds are %s", kind, strings.Join(Kinds(), ", "))
		}
	}
	for _, file := range files {
		if err := runFile(w, file, opts, &sum); err != nil {
			return sum, err
		}
	}
	_, _ = fmt.Fprintln(w, sum)
	if sum.Passed+sum.Failed+sum.Improved == 0 {
		return sum, ErrNothing
	}
	return sum, nil
}

func runFile(w io.Writer, file string, opts Options, sum *Summary) error {
	in := opts.Stdin
	if file != "-" || in == nil {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n') // no scanner: a vector may be of any length
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", file, err)
		}
		if v := bytes.TrimSpace(line); len(v) > 0 {
			if bad := runLine(w, fmt.Sprintf("%s:%d", file, n), file, v, opts, sum); bad != nil {
				return bad
			}
		}
		if err != nil {
			return nil
		}
	}
}

func runLine(w io.Writer, where, file string, v []byte, opts Options, sum *Summary) error {
	kind, name, err := recognise(file, v)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if len(opts.Kinds) > 0 && !slices.Contains(opts.Kinds, kind) {
		return nil
	}
	switch verdict, why := judge(runners[kind], v, opts); verdict {
	case Passed:
		sum.Passed++
	case Improved:
		sum.Improved++
	default:
		sum.Failed++
		_, _ = fmt.Fprintf(w, "FAIL %s %s %q: %s\n", where, kind, name, why)
	}
	return nil
}

// judge turns a panic of a machine into a failure of its vector, so that the others are still judged.
func judge(run runner, v []byte, opts Options) (verdict Verdict, why string) {
	defer func() {
		if p := recover(); p != nil {
			verdict, why = Failed, fmt.Sprintf("panic: %v", p)
		}
	}()
	return run(v, opts)
}

// recognise tells the kind of a vector: by its `kind`, else by its shape, else by the base name of its file.
func recognise(file string, v []byte) (kind, name string, err error) {
	var head map[string]json.RawMessage
	if err := json.Unmarshal(v, &head); err != nil {
		return "", "", fmt.Errorf("not a vector: %w", err)
	}
	_ = json.Unmarshal(head["name"], &name)
	if raw, ok := head["kind"]; ok {
		if err := json.Unmarshal(raw, &kind); err != nil {
			return "", name, fmt.Errorf("its kind is no string: %s", raw)
		}
		if _, known := runners[kind]; !known {
			return "", name, fmt.Errorf("there is no kind %q here; a newer build may have it", kind)
		}
		return kind, name, nil
	}
	if kind = byShape(head); kind != "" {
		return kind, name, nil
	}
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if _, known := runners[base]; known {
		return base, name, nil
	}
	return "", name, fmt.Errorf("%q fits no kind of vector", name)
}

// shapes are the members that only vectors of one kind have together.
var shapes = []struct {
	kind    string
	members []string
}{
	{"session-query-tools", []string{"caller", "calls"}},
	{"session-extraction", []string{"log"}},
	{"late-answer", []string{"sessions", "ops"}},
	{"timed-wait", []string{"parent", "ops"}},
	{"card", []string{"card", "ops"}},
	{"foreground", []string{"mode", "script"}},
	{"projection", []string{"events", "expect"}},
}

func byShape(head map[string]json.RawMessage) string {
	for _, s := range shapes {
		if !slices.ContainsFunc(s.members, func(m string) bool { return head[m] == nil }) {
			return s.kind
		}
	}
	return ""
}
