package disk_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// hand is an owner that keeps what was submitted until a test decides.
type hand struct{ ops []*disk.Op }

func (o *hand) Submit(op *disk.Op) { o.ops = append(o.ops, op) }

func (o *hand) next(t require.TestingT) *disk.Op {
	require.NotEmpty(t, o.ops, "nothing was submitted")
	op := o.ops[0]
	o.ops = o.ops[1:]
	return op
}

// seen is what callbacks were told, in order.
type seen struct {
	appended []journal.Appended
	opened   []journal.Opened
	errs     []error
}

func (s *seen) append(a journal.Appended, err error) {
	s.appended, s.errs = append(s.appended, a), append(s.errs, err)
}

func (s *seen) open(o journal.Opened, err error) {
	s.opened, s.errs = append(s.opened, o), append(s.errs, err)
}

func (s *seen) codes() []messages.Code {
	out := []messages.Code{}
	for _, err := range s.errs {
		out = append(out, messages.CodeOf(err))
	}
	return out
}

var errIO = messages.Refuse(messages.JournalIO, "the simulated disk failed")

// settled writes through a handle of its own and commits at once.
func settled(t require.TestingT, d *disk.Disk, batches ...journal.Batch) {
	o := &hand{}
	h := d.Handle("author", o)
	for _, b := range batches {
		h.Append(b, func(_ journal.Appended, err error) { require.NoError(t, err) })
		o.next(t).Commit()
	}
	h.Crash()
}

func TestNothingHappensUntilItsOwnerDecides(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h := d.Handle("h1", o)
	h.Append(journaltest.Birth("s", 2), s.append)
	require.Len(t, o.ops, 1)
	require.Empty(t, s.errs)
	require.Zero(t, d.Log("s").Epoch)
	o.next(t).Commit()
	require.Equal(t, []journal.Appended{{At: 1, Epoch: 1}}, s.appended)
	require.Equal(t, []disk.Commit{{Kind: disk.KindAppend, Host: "h1", At: 1, Epoch: 1, Count: 2}}, d.Log("s").Commits)
}

func TestEachFateTellsAndRecordsWhatItSays(t *testing.T) {
	for name, c := range map[string]struct {
		fate     func(op *disk.Op)
		recorded bool
		told     []messages.Code
	}{
		"commit":                   {func(op *disk.Op) { op.Commit() }, true, []messages.Code{""}},
		"commit and never tell":    {func(op *disk.Op) { op.CommitSilently() }, true, []messages.Code{}},
		"commit and tell later":    {func(op *disk.Op) { op.CommitSilently()() }, true, []messages.Code{""}},
		"commit and tell it twice": {func(op *disk.Op) { tell := op.CommitSilently(); tell(); tell() }, true, []messages.Code{""}},
		"refuse":                   {func(op *disk.Op) { op.Refuse(errIO) }, false, []messages.Code{messages.JournalIO}},
		"in doubt":                 {func(op *disk.Op) { op.InDoubt(errIO) }, true, []messages.Code{messages.JournalIO}},
	} {
		t.Run(name, func(t *testing.T) {
			d, o, s := disk.New(), &hand{}, &seen{}
			settled(t, d, journaltest.Birth("s", 1))
			h := d.Handle("h", o)
			h.Append(journaltest.Next("s", 1, 1, 1), s.append)
			h.Append(journaltest.Birth("t", 1), s.append) // another session, which waits for nobody
			op := o.next(t)
			c.fate(op)
			require.Equal(t, c.recorded, len(d.Log("s").Events) == 2)
			require.Equal(t, c.recorded, op.Recorded())
			require.Equal(t, c.told, s.codes())

			s = &seen{}
			h = d.Handle("again", o)
			o.ops = nil
			h.Open("s", s.open)
			c.fate(o.next(t))
			require.Equal(t, c.recorded, d.Log("s").Epoch == 2)
			require.Equal(t, c.told, s.codes())
			for i, told := range s.opened {
				require.Equal(t, s.errs[i] == nil, told.Epoch == 2)
			}
		})
	}
}

// Fencing is judged when the disk gets to it, not when the batch was handed in
// (promise 6).
func TestFencedIsDecidedWithTheOp(t *testing.T) {
	d, slow, quick, s := disk.New(), &hand{}, &hand{}, &seen{}
	settled(t, d, journaltest.Birth("s", 1))
	zombie, owner := d.Handle("zombie", slow), d.Handle("owner", quick)
	zombie.Append(journaltest.Next("s", 1, 1, 1, journaltest.Put("c", 1)), s.append)
	owner.Open("s", func(journal.Opened, error) {})
	quick.next(t).Commit()
	op := slow.next(t)
	op.Commit()
	require.Equal(t, []messages.Code{messages.Fenced}, s.codes())
	require.Equal(t, messages.Fenced, messages.CodeOf(op.Err()))
	require.False(t, op.Recorded())
	require.Len(t, d.Log("s").Events, 1)

	zombie.Append(journaltest.Next("s", 1, 1, 1), s.append)
	slow.next(t).InDoubt(errIO) // an error hides what happened, and still nothing may
	require.Equal(t, messages.JournalIO, s.codes()[1])
	require.Len(t, d.Log("s").Events, 1)
}

func TestOpsOfOneSessionWaitForEachOther(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h, other := d.Handle("h", o), d.Handle("other", o)
	h.Append(journaltest.Birth("s", 1), s.append)
	h.Append(journaltest.Next("s", 1, 1, 1), s.append)
	h.Open("s", s.open)
	require.Len(t, o.ops, 1, "the second was submitted before the first was decided")
	h.Append(journaltest.Birth("t", 1), s.append)
	other.Open("s", s.open)
	require.Len(t, o.ops, 3, "another session, or another host, has to wait")
	o.ops = o.ops[:1]

	tell := o.next(t).CommitSilently()
	second := o.next(t)
	require.Equal(t, "append s @1+1 epoch 1", second.String())
	second.Commit()
	o.next(t).Commit()
	require.Empty(t, s.errs, "told before the one before it")
	tell()
	require.Equal(t, []journal.Appended{{At: 1, Epoch: 1}, {At: 2, Epoch: 1}}, s.appended)
	require.EqualValues(t, 2, s.opened[0].Epoch)
	require.Empty(t, o.ops)
}

func TestARefusalLeavesTheNextToItsOwnFate(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h := d.Handle("h", o)
	h.Append(journaltest.Birth("s", 1), s.append)
	h.Append(journaltest.Next("s", 1, 1, 1), s.append)
	o.next(t).Refuse(errIO)
	o.next(t).Commit()
	require.Equal(t, []messages.Code{messages.JournalIO, messages.Fenced}, s.codes())
	require.Zero(t, d.Log("s").Epoch)
}

func TestACallbackMayHandInTheNext(t *testing.T) {
	d, o := disk.New(), &hand{}
	h := d.Handle("h", o)
	var told []int64
	var more func(journal.Appended, error)
	more = func(_ journal.Appended, err error) {
		require.NoError(t, err)
		if told = append(told, int64(len(told))+1); len(told) < 5 {
			h.Append(journaltest.Next("s", 1, int64(len(told)), 1), more)
		}
	}
	h.Append(journaltest.Birth("s", 1), more)
	for len(o.ops) > 0 {
		o.next(t).Commit()
	}
	require.Len(t, d.Log("s").Events, 5)
}

// A callback never runs inside another one of its session.
func TestACallbackMayTellTheNext(t *testing.T) {
	d, o := disk.New(), &hand{}
	h := d.Handle("h", o)
	var order []string
	var tell func()
	h.Append(journaltest.Birth("s", 1), func(journal.Appended, error) {
		order = append(order, "first begins")
		tell()
		order = append(order, "first ends")
	})
	h.Append(journaltest.Next("s", 1, 1, 1), func(journal.Appended, error) { order = append(order, "second") })
	first := o.next(t).CommitSilently()
	tell = o.next(t).CommitSilently()
	first()
	require.Equal(t, []string{"first begins", "first ends", "second"}, order)
}

func TestACrashVoidsWhatWasNotDecided(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h := d.Handle("h", o)
	h.Append(journaltest.Birth("before", 1), s.append)
	h.Append(journaltest.Birth("after", 1), s.append)
	h.Append(journaltest.Next("after", 1, 1, 1), s.append)
	moved := h.Moved(10)
	before, after := o.next(t), o.next(t)
	tell := before.CommitSilently()
	h.Crash()
	h.Crash()
	require.False(t, d.Log("before").Header == nil, "what was committed before the crash is gone")
	tell()
	require.True(t, after.Void())
	after.Commit()
	after.Refuse(errIO) // any number of times: nobody waits
	after.CommitSilently()()
	h.Append(journaltest.Birth("zombie", 1), s.append)
	h.Open("before", s.open)
	require.Empty(t, s.errs, "a callback ran on a host that has crashed")
	require.Empty(t, o.ops)
	require.Len(t, d.All(), 1)
	<-moved
	_, err := h.Read(t.Context(), "before", 0, 0)
	require.Equal(t, messages.Unavailable, messages.CodeOf(err))
	require.NoError(t, h.Close())

	again := d.Handle("h", o)
	again.Open("before", s.open)
	o.next(t).Commit()
	require.EqualValues(t, 2, s.opened[0].Epoch)
}

func TestACallbackMayCrashItsHost(t *testing.T) {
	d, o := disk.New(), &hand{}
	h := d.Handle("h", o)
	told := 0
	h.Append(journaltest.Birth("s", 1), func(journal.Appended, error) { told++; h.Crash() })
	h.Append(journaltest.Next("s", 1, 1, 1), func(journal.Appended, error) { told++ })
	tell := o.next(t).CommitSilently()
	o.next(t).Commit()
	tell()
	require.Equal(t, 1, told)
	require.Len(t, d.Log("s").Events, 2)
}

func TestCloseFinishesOnTheGoroutineThatCallsIt(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h := d.Handle("h", o)
	h.Append(journaltest.Birth("s", 1), s.append)
	h.Append(journaltest.Birth("t", 1), s.append)
	h.Append(journaltest.Next("s", 1, 1, 1), s.append)
	h.Append(journaltest.Next("t", 1, 1, 1), s.append)
	first, second := o.next(t), o.next(t)
	tell := first.CommitSilently()
	require.NoError(t, h.Close())
	require.Equal(t, []journal.Appended{{At: 1, Epoch: 1}, {At: 2, Epoch: 1}, {At: 3, Epoch: 1}, {At: 4, Epoch: 1}}, s.appended)
	require.EqualValues(t, 2, d.Log("t").Commits[0].At, "not in the order in which they came")
	require.True(t, second.Void())
	second.Refuse(errIO)
	tell()
	require.Equal(t, []messages.Code{"", "", "", ""}, s.codes())

	o.ops = nil
	h.Append(journaltest.Next("s", 1, 2, 1), s.append)
	require.NoError(t, h.Close(), "waited for what was handed in later")
	o.next(t).Commit()
	require.Equal(t, messages.Unavailable, s.codes()[4])
	require.Len(t, d.Log("s").Events, 2)
}

func TestMovedIsClosedByTheCommit(t *testing.T) {
	d, o := disk.New(), &hand{}
	h, reader := d.Handle("h", o), d.Handle("reader", o)
	first, same, second := reader.Moved(0), reader.Moved(0), reader.Moved(1)
	require.Equal(t, first, same)
	h.Append(journaltest.Birth("s", 1), func(journal.Appended, error) {})
	require.False(t, isClosed(first))
	o.next(t).CommitSilently()
	require.True(t, isClosed(first), "readers see what was committed, told or not")
	require.False(t, isClosed(second))
	h.Crash()
	require.False(t, isClosed(second))
	d.Reset()
	require.True(t, isClosed(second))
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestAMistakeOfTheOwnerPanics(t *testing.T) {
	d, o := disk.New(), &hand{}
	h := d.Handle("h", o)
	h.Append(journaltest.Birth("s", 1), func(journal.Appended, error) {})
	op := o.next(t)
	require.PanicsWithValue(t, "disk: append s @0+1 epoch 0 is refused without an error", func() { op.Refuse(nil) })
	op.Commit()
	for _, again := range []func(){op.Commit, func() { op.CommitSilently() }, func() { op.Refuse(errIO) }, func() { op.InDoubt(errIO) }} {
		require.PanicsWithValue(t, "disk: a second decision on append s @0+1 epoch 0", again)
	}
	require.Len(t, d.Log("s").Events, 1)
	h.Append(journaltest.Next("s", 1, 1, 1), func(journal.Appended, error) {}) // and the disk goes on
	o.next(t).Commit()
	require.Len(t, d.Log("s").Events, 2)
}

func TestResetForgetsTheWorld(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	empty := d.Hash()
	settled(t, d, journaltest.Birth("s", 3, journaltest.Put("c", 9)))
	h := d.Handle("h", o)
	h.Append(journaltest.Next("s", 1, 3, 1), s.append)
	h.Append(journaltest.Birth("t", 1), s.append)
	tell, left := o.next(t).CommitSilently(), o.next(t)
	view := d.Log("s")
	d.Reset()
	tell()
	require.True(t, left.Void())
	left.Commit()
	h.Append(journaltest.Birth("u", 1), s.append)
	require.Empty(t, s.errs)
	require.Empty(t, d.All())
	require.Equal(t, empty, d.Hash())

	settled(t, d, journaltest.Birth("s", 1))
	require.Len(t, d.Log("s").Events, 1)
	require.Len(t, view.Events, 4, "a view changed after it was given out")
	require.Contains(t, string(view.Events[3].Data), "s 3")
}

// The hash says whether two disks went the same way: each thing that may be
// performed changes it, and nothing else does.
func TestHashTellsWhatWasPerformed(t *testing.T) {
	birth := journaltest.Birth("s", 1, journaltest.Put("c", 1))
	worlds := map[uint64]string{}
	for name, world := range map[string]func(h *disk.Handle){
		"nothing":      func(*disk.Handle) {},
		"birth":        func(h *disk.Handle) { h.Append(birth, ignore) },
		"other events": func(h *disk.Handle) { h.Append(journaltest.Birth("s", 2, journaltest.Put("c", 1)), ignore) },
		"other row":    func(h *disk.Handle) { h.Append(journaltest.Birth("s", 1, journaltest.Put("c", 2)), ignore) },
		"removed row":  func(h *disk.Handle) { h.Append(journaltest.Birth("s", 1, journaltest.Remove("c")), ignore) },
		"removed the same": func(h *disk.Handle) {
			removal := journaltest.Put("c", 1)
			removal.Remove = true
			h.Append(journaltest.Birth("s", 1, removal), ignore)
		},
		"other session": func(h *disk.Handle) { h.Append(journaltest.Birth("t", 1, journaltest.Put("c", 1)), ignore) },
		"opened": func(h *disk.Handle) {
			h.Append(birth, ignore)
			h.Open("s", func(journal.Opened, error) {})
		},
		"deleted": func(h *disk.Handle) {
			h.Append(birth, ignore)
			h.Append(journal.Batch{Session: "s", Epoch: 1, Seq: 1, Delete: true}, ignore)
		},
	} {
		var hashes [2]uint64
		for i := range hashes {
			d, o := disk.New(), &hand{}
			h := d.Handle("h", o)
			world(h)
			for len(o.ops) > 0 {
				o.next(t).Commit()
			}
			h.Append(journal.Batch{Session: "unborn"}, ignore)
			h.Append(journaltest.Next("s", 9, 9, 1), ignore)
			h.Open("unborn", func(journal.Opened, error) {})
			h.Append(journaltest.Birth("refused", 1), ignore)
			for len(o.ops) > 0 {
				if op := o.next(t); op.Session == "refused" {
					op.Refuse(errIO)
				} else {
					op.Commit()
				}
			}
			hashes[i] = d.Hash()
		}
		require.Equal(t, hashes[0], hashes[1], name)
		require.Empty(t, worlds[hashes[0]], name)
		worlds[hashes[0]] = name
	}
}

func ignore(journal.Appended, error) {}

// A fixed number, so that another machine or another build that hashes
// otherwise is noticed: traces are compared across them.
func TestHashIsTheSameEverywhere(t *testing.T) {
	d := disk.New()
	settled(t, d, journaltest.Birth("s", 3, journaltest.Put("c", 9)), journaltest.Next("s", 1, 3, 2))
	require.Equal(t, uint64(0x51e306fe38a38a41), d.Hash())
}

// What an owner of one host does to its events must not show on another.
func TestHostsShareNothingButBytes(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h := d.Handle("h", o)
	b := journaltest.Birth("s", 3) // the room that a list grows into is shared, if any is
	want := string(b.Events[1].Line())
	h.Append(b, s.append)
	o.next(t).Commit()
	copy(b.Events[1].Data, "{garbage")
	b.Header.ID = "another"
	h.Open("s", s.open)
	o.next(t).Commit()
	require.Equal(t, want, string(s.opened[0].Events[1].Line()))
	require.Equal(t, "s", s.opened[0].Header.ID)
	views := [][]sessionlog.Event{s.opened[0].Events}
	for seq := range int64(8) {
		settled(t, d, journaltest.Next("s", 2, 3+seq, 1))
		views = append(views, d.Log("s").Events)
		for _, view := range views {
			_ = append(view, sessionlog.Event{Type: "mine"})
		}
	}
	for _, ev := range d.Log("s").Events {
		require.Equal(t, "test/event", ev.Type)
	}
}

// A page of changes stays what it was, whatever is forgotten later.
func TestAPageOfChangesStays(t *testing.T) {
	d := disk.New()
	reader := d.Handle("reader", &hand{})
	settled(t, d, journaltest.Birth("s", 1, journaltest.Put("c1", 1), journaltest.Put("c2", 2)), journaltest.Birth("t", 1, journaltest.Put("c3", 3)))
	page, _, err := reader.Changes(t.Context(), 0, 0)
	require.NoError(t, err)
	want := slices.Clone(page)
	settled(t, d, journal.Batch{Session: "s", Epoch: 1, Seq: 1, Delete: true})
	d.Reset()
	settled(t, d, journaltest.Birth("u", 1, journaltest.Put("c4", 4)))
	require.Equal(t, want, page)
}

// A log that cannot be read is SESSION_CORRUPT, and its epoch is taken all the
// same; other sessions do not notice.
func TestADamagedLogIsCorrupt(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	bad := journaltest.Birth("s", 2)
	bad.Events[1] = sessionlog.Event{Type: "test/event", Seq: 1, Data: []byte(`no JSON`)}
	settled(t, d, bad, journaltest.Birth("t", 1))
	h := d.Handle("h", o)
	h.Open("s", s.open)
	h.Open("t", s.open)
	o.next(t).Commit()
	o.next(t).Commit()
	require.Equal(t, []messages.Code{messages.SessionCorrupt, ""}, s.codes())
	require.EqualValues(t, 2, d.Log("s").Epoch)
	_, err := h.Read(t.Context(), "s", 0, 0)
	require.Equal(t, messages.SessionCorrupt, messages.CodeOf(err))
	require.Empty(t, d.Log("s").Events)
}

func TestALogKeepsEarlierLives(t *testing.T) {
	d := disk.New()
	settled(t, d, journaltest.Birth("s", 2), journal.Batch{Session: "s", Epoch: 1, Seq: 2, Delete: true}, journaltest.Birth("s", 1))
	log := d.Log("s")
	require.EqualValues(t, 2, log.Epoch)
	require.Len(t, log.Events, 1)
	require.Equal(t, []disk.Commit{
		{Kind: disk.KindAppend, Host: "author", At: 1, Epoch: 1, Count: 2},
		{Kind: disk.KindAppend, Host: "author", At: 2, Epoch: 1, Seq: 2, Delete: true},
		{Kind: disk.KindAppend, Host: "author", At: 3, Epoch: 2, Count: 1},
	}, log.Commits)
}

func TestOpsHaveNamesForTraces(t *testing.T) {
	d, o := disk.New(), &hand{}
	h := d.Handle("h", o)
	h.Open("s1", func(journal.Opened, error) {})
	h.Append(journaltest.Next("s2", 4, 3, 2), ignore)
	h.Append(journal.Batch{Session: "s3", Epoch: 4, Seq: 3}, ignore)
	h.Append(journal.Batch{Session: "s4", Epoch: 4, Seq: 3, Delete: true}, ignore)
	for _, want := range []string{"open s1", "append s2 @3+2 epoch 4", "prove s3 @3 epoch 4", "delete s4 @3 epoch 4"} {
		op := o.next(t)
		require.Equal(t, want, op.String())
		require.Equal(t, "h", op.Host)
	}
}

func TestAnyErrorIsTold(t *testing.T) {
	d, o, s := disk.New(), &hand{}, &seen{}
	h := d.Handle("h", o)
	own := errors.New("an error without a code")
	h.Append(journaltest.Birth("s", 1), s.append)
	o.next(t).Refuse(own)
	require.Equal(t, []error{own}, s.errs)
}
