package query_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

var errEnough = errors.New("enough")

// watch runs a watch until take says enough.
func watch(t testing.TB, v *query.Views, req *messages.WatchQuestionsRequest, take func(*messages.WatchQuestionsResponse) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := v.Watch(ctx, req, func(r *messages.WatchQuestionsResponse) error {
		if !take(r) {
			return errEnough
		}
		return nil
	})
	require.ErrorIs(t, err, errEnough)
}

// However often a client is cut off it sees every change once and in order,
// while others write.
func TestAWatchHasNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	const writers, rounds = 4, 60
	var all sync.WaitGroup
	want, scripts := map[string][]string{}, make([]*script, writers)
	for w := range scripts {
		scripts[w] = newScript(t, j, fmt.Sprint("s", w)).header().commit()
	}
	beginning, err := j.Last(t.Context())
	require.NoError(t, err)
	for _, s := range scripts {
		for i := range rounds {
			want[s.session] = append(want[s.session], fmt.Sprintf("c%d open", i), fmt.Sprintf("c%db open", i), fmt.Sprintf("c%d settled", i))
		}
		all.Go(func() {
			for i := range rounds { // two changes in one batch, then one more
				call := fmt.Sprint("c", i)
				s.call(call, "Go?", 0).call(call+"b", "Go?", 0).commit()
				s.answered(call, "ann").commit()
			}
		})
	}
	v := query.New(j, query.Options{Heartbeat: 5 * time.Millisecond})
	seen, total := map[string][]string{}, 0
	cursor := int64(beginning)
	for cut := 1; total < writers*rounds*3; cut++ {
		frames := 0
		watch(t, v, &messages.WatchQuestionsRequest{Cursor: cursor}, func(r *messages.WatchQuestionsResponse) bool {
			if q := r.GetQuestion(); q != nil {
				seen[q.GetSession()] = append(seen[q.GetSession()], q.GetCallId()+" "+q.GetState())
				total++
			}
			// Resumed in the middle of a batch, a client rightly sees its first half
			// again; this one is cut off behind whole batches.
			whole := r.GetCursor() > cursor
			cursor = max(cursor, r.GetCursor())
			frames++
			return total < writers*rounds*3 && (!whole || frames <= cut%7)
		})
	}
	all.Wait()
	assert.Equal(t, want, seen)
}

// The rows of a start are read at one position: no change is both in the list
// and after it, none in neither.
func TestAListAndItsWatchFitTogether(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	s := newScript(t, j, "s").header().call("a", "Go?", 0).commit()
	v := query.New(j, query.Options{})
	list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{})
	require.NoError(t, err)
	s.answered("a", "ann").commit()
	s.call("b", "Go?", 0).commit()
	var got []string
	watch(t, v, &messages.WatchQuestionsRequest{Cursor: list.GetCursor()}, func(r *messages.WatchQuestionsResponse) bool {
		if r.GetLive() {
			assert.Positive(t, r.GetHeartbeatMs())
			return false
		}
		got = append(got, r.GetQuestion().GetCallId()+" "+r.GetQuestion().GetState())
		return true
	})
	assert.Equal(t, []string{"a settled", "b open"}, got)
}

// A page of changes that another watch has read may end before what is recorded
// by now. Live is said once nothing is left.
func TestLiveComesAfterWhatIsRecorded(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	s := newScript(t, j, "s").header().commit()
	cursor, err := j.Last(t.Context())
	require.NoError(t, err)
	v := query.New(j, query.Options{})
	req := &messages.WatchQuestionsRequest{Cursor: int64(cursor)}
	until := func() (got []string) {
		watch(t, v, req, func(r *messages.WatchQuestionsResponse) bool {
			got = append(got, r.GetQuestion().GetCallId())
			return !r.GetLive()
		})
		return got
	}
	s.call("a", "Go?", 0).commit()
	assert.Equal(t, []string{"a", ""}, until())
	s.call("b", "Go?", 0).commit()
	assert.Equal(t, []string{"a", "b", ""}, until())
}

// Other sessions' changes move the cursor and are not shown.
func TestAWatchOfOneSession(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	newScript(t, j, "mine").header().call("a", "Go?", 0).commit()
	newScript(t, j, "other").header().call("b", "Go?", 0).commit()
	v := query.New(j, query.Options{Heartbeat: time.Millisecond})
	var rows, beats int
	var last int64
	watch(t, v, &messages.WatchQuestionsRequest{Session: "mine"}, func(r *messages.WatchQuestionsResponse) bool {
		switch {
		case r.GetQuestion() != nil:
			assert.Equal(t, "mine", r.GetQuestion().GetSession())
			rows++
		case !r.GetLive():
			beats++
		}
		last = r.GetCursor()
		return beats < 3
	})
	assert.Equal(t, 1, rows)
	assert.Equal(t, int64(2), last)
}

// A cursor that this journal never gave out is an error, not an empty stream.
func TestACursorOfAnotherJournalIsRefused(t *testing.T) {
	t.Parallel()
	v := query.New(newJournal(t), query.Options{})
	for _, cursor := range []int64{-1, 99} {
		err := v.Watch(t.Context(), &messages.WatchQuestionsRequest{Cursor: cursor}, func(*messages.WatchQuestionsResponse) error { return nil })
		assert.Equal(t, messages.BadRequest, messages.CodeOf(err), "cursor %d", cursor)
	}
}

// A deleted session's questions go, with a reason; a damaged one's stay visible.
func TestAWatchOutlivesDeletedAndDamagedSessions(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	gone := newScript(t, j, "gone").header().call("a", "Go?", 0).commit()
	bad := newScript(t, j, "bad").header().call("b", "Go?", 0).commit()
	v := query.New(damaged{j, "bad", messages.Refuse(messages.SessionCorrupt, "damaged")}, query.Options{})
	list, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{})
	require.NoError(t, err)
	deleted := make(chan error, 1)
	j.Append(journal.Batch{Session: "gone", Epoch: gone.epoch, Seq: gone.seq, Delete: true}, func(_ journal.Appended, err error) { deleted <- err })
	require.NoError(t, <-deleted)
	bad.answered("b", "ann").commit()
	var got []*messages.QuestionRow
	watch(t, v, &messages.WatchQuestionsRequest{Cursor: list.GetCursor()}, func(r *messages.WatchQuestionsResponse) bool {
		if r.GetQuestion() != nil {
			got = append(got, r.GetQuestion())
		}
		return !r.GetLive()
	})
	require.Len(t, got, 2)
	assert.Equal(t, "disposed", got[0].GetSettlement().GetOutcome())
	assert.Equal(t, "settled", got[1].GetState())
	assert.Equal(t, string(messages.SessionCorrupt), got[1].GetTrouble().GetCode())
}

// counted counts the readings of logs.
type counted struct {
	journal.Reader
	reads *atomic.Int64
}

func (c counted) Read(ctx context.Context, session string, from int64, limit int) (journal.Opened, error) {
	c.reads.Add(1)
	return c.Reader.Read(ctx, session, from, limit)
}

// The starting list comes page by page, each session's log read once; what
// changes meanwhile is seen once, in the list or after it.
func TestAStartingListThatChangesHasNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	const calls = 200
	scripts := make([]*script, 3)
	for i := range scripts {
		scripts[i] = newScript(t, j, fmt.Sprint("s", i)).header()
		for k := range calls {
			call := fmt.Sprintf("c%03d", k)
			scripts[i].call(call, "Go?", 9_000).pending(call)
		}
		scripts[i].commit()
	}
	reads := &atomic.Int64{}
	v := query.New(counted{j, reads}, at(0))
	page, err := v.Questions(t.Context(), &messages.ListQuestionsRequest{})
	require.NoError(t, err)
	assert.Len(t, page.GetQuestions(), 500)
	assert.Equal(t, int64(3), reads.Load())

	var list, after []string
	live := false
	watch(t, v, &messages.WatchQuestionsRequest{}, func(r *messages.WatchQuestionsResponse) bool {
		if r.GetQuestion() == nil {
			live = r.GetLive()
			return !live
		}
		name := fmt.Sprintf("%s/%s %s", r.GetQuestion().GetSession(), r.GetQuestion().GetCallId(), r.GetQuestion().GetState())
		if list = append(list, name); len(list) == 1 {
			scripts[0].queue("m", "c000", "ann").commit()  // shown: comes after the list
			scripts[2].queue("m", "c000", "ann").commit()  // not shown yet: comes in the list
			scripts[2].admit("m", "c000").commit()         // and is gone before its page is read
			scripts[2].queue("m2", "c001", "ann").commit() // comes in the list as it is now
			scripts[2].call("c999", "New?", 9_000).commit()
		}
		return true
	})
	assert.True(t, live)
	list, after = list[:3*calls], list[3*calls:] // one row less, one more
	assert.Equal(t, []string{"s0/c000 replied"}, after)
	assert.Equal(t, "s0/c000 continued", list[0])
	assert.Equal(t, []string{"s2/c001 replied", "s2/c002 continued"}, list[2*calls:2*calls+2])
	assert.Equal(t, "s2/c999 open", list[3*calls-1])
}
