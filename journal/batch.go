package journal

import (
	"bytes"
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Empty reports whether the batch records nothing: it only proves that its
// epoch is still owned.
func (b Batch) Empty() bool {
	return b.Header == nil && len(b.Events) == 0 && len(b.Index) == 0 && !b.Delete
}

// Check refuses a batch that no state of the journal could take, with
// messages.Bug: its caller broke a rule, and nothing of it may be recorded.
// Every backend calls it first. It does not look at epoch and sequence number,
// which only the journal can judge.
func (b Batch) Check() error {
	switch {
	case b.Session == "":
		return messages.Refuse(messages.Bug, "an append names no session")
	case b.Epoch < 0 || b.Seq < 0:
		return messages.Refuse(messages.Bug, "an append to %s names epoch %d and sequence number %d", b.Session, b.Epoch, b.Seq)
	case b.Epoch == 0 && b.Header == nil && !b.Empty():
		return messages.Refuse(messages.Bug, "the append that creates session %s has no header", b.Session)
	case b.Header != nil && (b.Epoch != 0 || b.Seq != 0):
		return messages.Refuse(messages.Bug, "an append to session %s has a header, and is not its first", b.Session)
	case b.Header != nil && b.Header.ID != b.Session:
		return messages.Refuse(messages.Bug, "an append to session %s has the header of session %s", b.Session, b.Header.ID)
	case b.Delete && (b.Header != nil || len(b.Events) > 0 || len(b.Index) > 0):
		return messages.Refuse(messages.Bug, "an append deletes session %s and adds to it", b.Session)
	}
	for i, ev := range b.Events {
		if ev.Seq != b.Seq+int64(i) {
			return messages.Refuse(messages.Bug, "event %d of an append to %s at %d has sequence number %d", i, b.Session, b.Seq, ev.Seq)
		}
	}
	for _, c := range b.Index {
		if c.Row.CallID == "" {
			return messages.Refuse(messages.Bug, "an index change of session %s names no call", b.Session)
		}
		if c.Row.Due < 0 {
			return messages.Refuse(messages.Bug, "call %s of session %s is due at %d, before time began", c.Row.CallID, b.Session, c.Row.Due)
		}
	}
	return nil
}

// Lines joins the records of the batch's events with line feeds: the bytes a
// backend keeps. Events that were read from packed rows are those rows again. A
// line with a line feed inside would split a record when it is read (fault G3)
// and is refused with messages.Bug.
func (b Batch) Lines() ([]byte, error) {
	if len(b.Events) == 0 {
		return nil, nil
	}
	var few [4][]byte // most appends are short
	lines, size := few[:0], 0
	for line := range sessionlog.Records(slices.Values(b.Events)) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return nil, messages.Refuse(messages.Bug, "record %d of an append to %s at %d has a line feed inside its line", len(lines), b.Session, b.Seq)
		}
		lines = append(lines, line)
		size += len(line) + 1
	}
	if len(lines) == 1 {
		return lines[0], nil
	}
	out := make([]byte, 0, size)
	for i, line := range lines {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, line...)
	}
	return out, nil
}

// Refused is the messages.Fenced error of a batch that found the session at
// another epoch or sequence number. epoch 0: the session does not exist.
func Refused(b Batch, epoch, next int64) error {
	if epoch == 0 {
		return messages.Refuse(messages.Fenced, "session %s does not exist; the append named epoch %d", b.Session, b.Epoch)
	}
	return messages.Refuse(messages.Fenced, "session %s is at epoch %d and sequence number %d; the append named %d and %d",
		b.Session, epoch, next, b.Epoch, b.Seq)
}

// Ahead is the error of a reader whose position the journal has not reached.
func Ahead(after, last Position) error {
	return messages.Refuse(messages.BadRequest, "position %d is ahead of this journal, which is at %d: the view was built from another journal; drop it and build it again", after, last)
}
