package parley

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/sessionlog/compressed"
)

// Limits of an import.
const (
	// ImportBytesMax is how large a whole log may be. It is recorded in one
	// append, of which a journal takes 32 MiB with its index rows.
	ImportBytesMax = 31 << 20
	// ImportLineBytesMax is how large one record may be.
	ImportLineBytesMax = 8 << 20
	// ImportAsksMax is how many question calls a log may hold.
	ImportAsksMax = 10_000
	// ImportWaitingMax is how many of them may still wait for an answer: each makes
	// every event of the session dearer.
	ImportWaitingMax = 2048
	// importsMax is how many imports may be under way; each holds a log in memory.
	importsMax = 4
)

// Import reads a session's log in the public format (L-030): the header, then
// one record a line, each ended by a line feed. It is kept under the header's
// own id, or under session if that is not empty, whole or not at all; Export
// gives back its bytes. A compressed log (L-039) is taken for what it holds.
// Questions that wait in it can be answered from then on, if the log is of the
// generation that is written here (v3); an older one (v0) keeps its packed rows
// and its older shapes, and can be read and exported. Nothing tells that a log
// has an end: its reader must fail when it was cut off.
//
// Its errors are SESSION_EXISTS, BAD_LOG with the line or event that is wrong,
// TOO_LARGE, BAD_REQUEST for an id, the journal's, and the reader's own.
func (n *Node) Import(ctx context.Context, session string, log io.Reader) (*messages.SessionRow, error) {
	if err := n.beginImport(); err != nil {
		return nil, err
	}
	defer n.imports.Add(-1)
	name, text, err := n.readImport(ctx, session, log)
	if err != nil {
		return nil, err
	}
	batch, err := n.importBatch(name, text)
	if err != nil {
		return nil, err
	}
	if err := n.record(ctx, batch); err != nil {
		return nil, err
	}
	return n.views.Session(context.WithoutCancel(ctx), name) // it is recorded, so its caller is told
}

func (n *Node) beginImport() error {
	under := n.imports.Add(1)
	switch {
	case n.closing.Load():
		n.imports.Add(-1)
		return messages.Refuse(messages.Unavailable, "the node is stopping")
	case under > importsMax:
		n.imports.Add(-1)
		return messages.Refuse(messages.Unavailable, "%d imports are under way, the limit is %d", under-1, importsMax)
	}
	return nil
}

// readImport reads the whole log. That its session exists is found out before
// the bulk of it is read, unless it is compressed.
func (n *Node) readImport(ctx context.Context, session string, log io.Reader) (name string, text []byte, err error) {
	in := bufio.NewReader(io.LimitReader(log, ImportBytesMax+1))
	start, err := in.Peek(compressed.MagicLength)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, fmt.Errorf("read the log to import: %w", err)
	}
	if compressed.Is(start) {
		packed, err := readUpTo(in, nil)
		if err != nil {
			return "", nil, err
		}
		plain, err := compressed.Decode(packed, ImportBytesMax)
		if err != nil {
			return "", nil, badLog(err)
		}
		in = bufio.NewReader(bytes.NewReader(plain))
	}
	first, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, fmt.Errorf("read the log to import: %w", err)
	}
	header, err := sessionlog.DecodeHeader(bytes.TrimSuffix(first, []byte{'\n'}))
	if err != nil {
		return "", nil, badLog(err)
	}
	if name = session; name == "" {
		name = header.ID
	}
	if err := messages.CheckID("session", name); err != nil {
		return "", nil, err
	}
	if err := n.mustBeNew(ctx, name); err != nil {
		return "", nil, err
	}
	text, err = readUpTo(in, first)
	return name, text, err
}

// readUpTo reads on behind start, up to the limit of an import.
func readUpTo(in io.Reader, start []byte) ([]byte, error) {
	buf := bytes.NewBuffer(start)
	if _, err := buf.ReadFrom(in); err != nil {
		return nil, fmt.Errorf("read the log to import: %w", err)
	}
	if buf.Len() > ImportBytesMax {
		return nil, messages.Refuse(messages.TooLarge, "the log has more than %d bytes, which is the limit of an import", ImportBytesMax)
	}
	return buf.Bytes(), nil
}

// mustBeNew refuses the name of a session that exists, damaged ones included.
func (n *Node) mustBeNew(ctx context.Context, name string) error {
	_, err := n.journal.Read(ctx, name, 0, 1)
	switch code := messages.CodeOf(err); {
	case code == messages.NotFound:
		return nil
	case err == nil || code == messages.SessionCorrupt:
		return exists(name)
	}
	return err
}

func exists(name string) error {
	return messages.Refuse(messages.SessionExists, "there is a session %q already", name)
}

// badLog words what sessionlog says of a log that was never ours.
func badLog(err error) error {
	var limit *sessionlog.LimitError
	if errors.As(err, &limit) {
		return messages.Refuse(messages.TooLarge, "the log cannot be imported: %v", err)
	}
	return messages.Refuse(messages.BadLog, "the log cannot be imported: %v", err)
}

// importBatch turns a log into the one append that records it, or says which
// record does not fit. A log that a crash has torn is refused rather than cut:
// what was lost is for its owner to decide.
func (n *Node) importBatch(name string, text []byte) (journal.Batch, error) {
	var none journal.Batch
	if err := checkLines(text); err != nil {
		return none, err
	}
	log, err := sessionlog.Scan(text)
	switch {
	case err != nil:
		return none, badLog(err)
	case log.Torn:
		return none, messages.Refuse(messages.BadLog, "the log cannot be imported: line %d: %s; cut the file before that line if the %d bytes from there may be lost",
			log.TornLine, log.TornProblem, log.TornBytes)
	}
	header := log.Header
	if header.ID != name {
		header = header.Named(name)
	}
	// Judged in the shape that it came to have, recorded in the one it has.
	events := sessionlog.UpgradeAll(header, log.Events)
	if err := sessionlog.ValidateEvents(header.Version, events); err != nil {
		return none, badLog(err)
	}
	if asks := count(askCalls(events)); asks > ImportAsksMax {
		return none, messages.Refuse(messages.TooLarge, "the log holds %d question calls, the limit of an import is %d", asks, ImportAsksMax)
	}
	machine, err := actors.NewSession(n.cfg.rules(newID), name, &header, events)
	if err != nil {
		return none, badLog(err)
	}
	index, err := importIndex(header.Version, machine.Rows())
	if err != nil {
		return none, err
	}
	return journal.Batch{Session: name, Header: &header, Events: log.Events, Index: index}, nil
}

func checkLines(text []byte) error {
	line := 0
	for record := range bytes.Lines(text) {
		if line++; len(record) > ImportLineBytesMax {
			return messages.Refuse(messages.TooLarge, "line %d of the log has %d bytes, the limit is %d", line, len(record), ImportLineBytesMax)
		}
	}
	return nil
}

// askCalls yields the calls that ask questions.
func askCalls(events []sessionlog.Event) iter.Seq[sessionlog.Event] {
	return func(yield func(sessionlog.Event) bool) {
		for _, ev := range events {
			asks := false
			switch ev.Type {
			case sessionlog.TypeToolCall:
				c, err := sessionlog.DecodeCall(ev)
				asks = err == nil && c.Name == sessionlog.ToolName
			case sessionlog.TypeDispatch:
				_, name, err := sessionlog.DecodeSubCall(ev)
				asks = err == nil && name == sessionlog.ToolName
			}
			if asks && !yield(ev) {
				return
			}
		}
	}
}

func count[T any](all iter.Seq[T]) (n int) {
	for range all {
		n++
	}
	return n
}

// importIndex makes the index rows of what waits in a log. A session that is
// only read has none: nobody could answer them. A call under an id that no
// request may name would wait for ever.
func importIndex(version int, rows []sessionlog.Row) ([]sessionlog.RowChange, error) {
	if version != sessionlog.V3 {
		return nil, nil
	}
	if len(rows) > ImportWaitingMax {
		return nil, messages.Refuse(messages.TooLarge, "%d questions of the log wait for an answer, the limit of an import is %d", len(rows), ImportWaitingMax)
	}
	var out []sessionlog.RowChange
	for _, row := range rows {
		if err := messages.CheckID("its call id", row.CallID); err != nil {
			return nil, messages.Refuse(messages.BadLog, "the log cannot be imported: the question of event %d waits, and nobody could answer it: %s", row.Seq, err.Text)
		}
		out = append(out, sessionlog.RowChange{Row: row})
	}
	return out, nil
}

// record appends the whole session as one that does not exist yet. Whoever
// activates the same name meanwhile does not own it either until its own first
// append, of which the journal lets one win.
func (n *Node) record(ctx context.Context, batch journal.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	recorded := make(chan error, 1)
	n.journal.Append(batch, func(_ journal.Appended, err error) { recorded <- err })
	err := <-recorded // the journal always says; a caller that left would not know what became of it
	if messages.CodeOf(err) == messages.Fenced {
		return exists(batch.Session)
	}
	return err
}

// Import keeps a log that comes through a door.
func (p port) Import(ctx context.Context, session string, log io.Reader) (*messages.SessionRow, error) {
	return p.node.Import(ctx, session, log)
}

// exportPage is how many events an export reads at once.
const exportPage = messages.PageMax

// Export writes a session's log as a file in the public format: the header,
// then its records, byte for byte as they are stored. Events that are recorded
// meanwhile may be in it or not; it is a whole log either way. Its errors are
// NOT_FOUND, the journal's, and the writer's.
func (n *Node) Export(ctx context.Context, session string, w io.Writer) error {
	if err := gateway.Check(&messages.ReadLogRequest{Session: session}); err != nil {
		return err
	}
	page, err := n.journal.Read(ctx, session, 0, exportPage)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	line := func(record []byte) error {
		_, err := out.Write(record)
		if err = errors.Join(err, out.WriteByte('\n')); err != nil {
			return fmt.Errorf("export session %s: %w", session, err)
		}
		return nil
	}
	if err := line(page.Header.Line()); err != nil {
		return err
	}
	var unread error
	events := func(yield func(sessionlog.Event) bool) {
		next, limit := int64(0), exportPage
		for {
			for _, ev := range page.Events {
				if !yield(ev) {
					return
				}
			}
			if len(page.Events) < limit {
				return
			}
			// A packed row may go on in the next page, and is read to its end there.
			next += int64(len(page.Events))
			_, rowEnd := page.Events[limit-1].RecordSpan()
			limit = max(exportPage, int(rowEnd-next))
			if page, unread = n.journal.Read(ctx, session, next, limit); unread != nil {
				return
			}
		}
	}
	for record := range sessionlog.Records(events) {
		if err := line(record); err != nil {
			return err
		}
	}
	if unread != nil {
		return unread
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export session %s: %w", session, err)
	}
	return nil
}
