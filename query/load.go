package query

import (
	"context"
	"encoding/json"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

const (
	// loadsMax is how many logs are in memory at once for lists, and again for
	// single rows, which must not stand behind lists.
	loadsMax = 2
	// loadBytesMax bounds the calls one reading of a log takes along.
	loadBytesMax = 4 << 20
	// aheadMax is how many rows behind a page's last are read along with it: the
	// next page is likely to want them, and one reading of the log tells them all.
	aheadMax = 1024
)

// loads lets a few readings of logs go on at once; the others wait, holding
// nothing but their index rows.
type loads chan struct{}

func (l loads) begin(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l loads) end() { <-l }

// loaded is what one reading of a session's log told.
type loaded struct {
	session string
	texts   map[textKey]*text
	full    bool // not all rows found room: read again for the others
	err     error
}

func keyOf(row journal.ActiveRow) textKey {
	return textKey{row.Session, row.Row.CallID, string(row.Row.State), row.At}
}

// rows makes the rows of index entries in the order of the index. What the
// index does not know comes from the cache, or else from the session's log,
// which is read once for all its rows. With page, the log is read for the rows
// behind the last one too; bytesMax, if not 0, ends the rows early, behind the
// first at the soonest.
func (v *Views) rows(ctx context.Context, in []journal.ActiveRow, page bool, bytesMax int) ([]*messages.QuestionRow, error) {
	out := make([]*messages.QuestionRow, 0, len(in))
	var log loaded
	bytes := 0
	for i, entry := range in {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if bytesMax > 0 && bytes > bytesMax {
			break
		}
		row, key := indexRow(entry.Session, entry.Row, v.now()), keyOf(entry)
		out = append(out, row)
		t := log.texts[key]
		if t == nil {
			t, _ = v.texts.get(key)
		}
		if t == nil && (log.session != entry.Session || log.full) {
			end := i
			for end < len(in) && in[end].Session == entry.Session {
				end++
			}
			ahead := 0
			if page && end == len(in) {
				ahead = aheadMax
			}
			log = v.load(ctx, in[i:end], page, ahead)
			t = log.texts[key]
		}
		switch {
		case t != nil:
			t.fill(row)
			bytes += t.size
		case log.err != nil:
			troubled(row, log.err)
		default:
			troubled(row, messages.Refuse(messages.SessionCorrupt, "event %d of session %q is not the call the index says", entry.Row.Seq, entry.Session))
		}
	}
	return out, ctx.Err()
}

// load reads one session's log for some of its rows; it tells the first in any
// case.
func (v *Views) load(ctx context.Context, rows []journal.ActiveRow, page bool, ahead int) loaded {
	out := loaded{session: rows[0].Session, texts: map[textKey]*text{}}
	slots := v.singles
	if page {
		slots = v.pages
	}
	if out.err = slots.begin(ctx); out.err != nil {
		return out
	}
	defer slots.end()
	r := reader{wanted: map[string]*reading{}, first: rows[0].Row.CallID}
	want := func(row journal.ActiveRow) {
		if t, ok := v.texts.get(keyOf(row)); ok { // read while this waited
			out.texts[keyOf(row)] = t
			return
		}
		r.want(row, loadBytesMax)
	}
	for _, row := range rows {
		want(row)
	}
	if len(r.wanted) == 0 {
		return out
	}
	if ahead > 0 {
		after := rows[len(rows)-1]
		more, _, err := v.log.Active(ctx, journal.ActiveFilter{Session: after.Session, AfterSession: after.Session, AfterCall: after.Row.CallID, Limit: ahead})
		for i := 0; err == nil && i < len(more); i++ {
			if _, ok := v.texts.get(keyOf(more[i])); !ok {
				r.want(more[i], loadBytesMax/2)
			}
		}
	}
	opened, err := v.log.Read(ctx, out.session, r.from, r.limit())
	if err != nil {
		out.err = err
		return out
	}
	r.read(opened.Events)
	out.full = r.full
	for _, w := range r.wanted {
		if w.teller == nil || len(w.teller.told) == 0 {
			continue
		}
		t := w.teller.told[0].text(string(w.row.Row.State))
		out.texts[keyOf(w.row)] = t
		v.texts.put(keyOf(w.row), t)
	}
	return out
}

// reader tells many active calls of one session in one pass over its log.
type reader struct {
	wanted   map[string]*reading
	first    string // the call that is told however much there is
	from, to int64  // where the first and the last of the calls stand
	onward   bool   // one of them has a history behind its asking
	bytes    int
	full     bool
}

// reading is one call of them.
type reading struct {
	row    journal.ActiveRow
	most   int // it is told if no more bytes have been taken along by then
	teller *teller
}

func (r *reader) want(row journal.ActiveRow, most int) {
	if len(r.wanted) == 0 {
		r.from, r.to = row.Row.Seq, row.Row.Seq
	}
	r.wanted[row.Row.CallID] = &reading{row: row, most: most}
	r.from, r.to = min(r.from, row.Row.Seq), max(r.to, row.Row.Seq)
	// Who replied, or took a reply back, stands further on.
	r.onward = r.onward || row.Row.State != sessionlog.RowOpen
}

func (r *reader) limit() int {
	if r.onward {
		return 0
	}
	return int(r.to-r.from) + askEvents
}

// read hands each event that names a wanted call to that call's teller. The
// others change nothing about it.
func (r *reader) read(events []sessionlog.Event) {
	for _, ev := range events {
		call, asks := named(ev)
		w := r.wanted[call]
		if w == nil || ev.Seq < w.row.Row.Seq || w.teller == nil && !asks {
			continue
		}
		if w.teller == nil {
			if r.bytes > w.most && call != r.first {
				r.full = true
				continue
			}
			r.bytes += len(ev.Data)
			w.teller = newTeller(call)
		}
		if !w.teller.over {
			w.teller.take(ev)
		}
	}
}

// named is the question call an event names, and whether it asks it. Results
// and replies are left out: what they say of an active call the index has.
func named(ev sessionlog.Event) (call string, asks bool) {
	switch ev.Type {
	case sessionlog.TypeToolCall, sessionlog.TypeDispatchStart, sessionlog.TypeDispatch:
		var data struct{ CallID, SubCallID, Name string }
		if json.Unmarshal(ev.Data, &data) != nil || data.Name != sessionlog.ToolName {
			return "", false
		}
		if ev.Type != sessionlog.TypeToolCall {
			return data.SubCallID, true
		}
		return data.CallID, true
	case sessionlog.TypeWait, sessionlog.TypeSettled:
		var data struct{ CallID string }
		if json.Unmarshal(ev.Data, &data) != nil {
			return "", false
		}
		return data.CallID, false
	}
	return "", false
}
