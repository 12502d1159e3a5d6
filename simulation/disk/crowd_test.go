package disk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/disk"
)

// crowd is an owner of several goroutines, which decide in any order.
type crowd struct{ ops chan *disk.Op }

func (c *crowd) Submit(op *disk.Op) { c.ops <- op }

func (c *crowd) work(dice *rand.Rand) {
	for op := range c.ops {
		switch dice.IntN(6) {
		case 0:
			op.Refuse(errFull)
		case 1:
			op.InDoubt(errIO)
		case 2:
			tell := op.CommitSilently()
			if dice.IntN(2) == 0 {
				tell()
			}
			tell()
		default:
			op.Commit()
		}
	}
}

// Goroutines that own, fence, crash, read and reset all at once: what was told
// is there, in the order in which it was told, and no callback comes twice.
func TestACrowdOfOwnersAndHosts(t *testing.T) {
	d, c := disk.New(), &crowd{ops: make(chan *disk.Op, 1<<14)}
	var deciders, hosts sync.WaitGroup
	for i := range 4 {
		deciders.Go(func() { c.work(rand.New(rand.NewPCG(4711, uint64(i)))) })
	}
	var mu sync.Mutex
	told := map[string]string{} // a text, and its session
	for i := range 6 {
		hosts.Go(func() {
			h, session := d.Handle(fmt.Sprint("h", i), c), fmt.Sprint("s", i%3)
			for n := range 150 {
				o, err := journaltest.Open(h, session)
				if err != nil {
					continue
				}
				b := journal.Batch{Session: session, Epoch: o.Epoch, Seq: int64(len(o.Events))}
				if o.Header == nil {
					b.Header = journaltest.Header(session)
				}
				text := fmt.Sprintf("text %d of %d.", n, i)
				b.Events = journaltest.Events(b.Seq, 1, text)
				follow := b
				follow.Epoch, follow.Header, follow.Seq = max(b.Epoch, 1), nil, b.Seq+1
				follow.Events = journaltest.Events(follow.Seq, 1, "follows "+text)
				first, second := journaltest.Appending(h, b), journaltest.Appending(h, follow)
				for i, out := range []journaltest.Outcome[journal.Appended]{<-first, <-second} {
					switch messages.CodeOf(out.Err) {
					case "":
						mu.Lock()
						told[[]string{" \"" + text, "follows " + text}[i]] = session
						mu.Unlock()
					case messages.Fenced, messages.JournalFull, messages.JournalIO:
					default:
						t.Errorf("told %v", out.Err)
					}
				}
				if n%40 == 39 {
					h.Append(journaltest.Next(session, 1<<40, 0, 1), func(journal.Appended, error) {})
					h.Crash()
					h = d.Handle(fmt.Sprint("h", i), c)
				}
				_, _ = h.Sessions(t.Context(), "", 0)
				_, _, _ = h.Due(t.Context(), 5, 0)
				d.All()
				d.Hash()
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	hosts.Wait()
	close(c.ops)
	deciders.Wait()
	logs := map[string]string{}
	for _, log := range d.All() {
		checkCommits(t, log)
		logs[log.Session] = strings.ReplaceAll(strings.Join(lines(log.Events), "\n"), `"text":"`, `"text": "`)
	}
	require.Len(t, logs, 3)
	require.NotEmpty(t, told)
	for text, session := range told {
		require.Equal(t, 1, strings.Count(logs[session], text), text)
	}
}

// once is an owner that keeps one op, without room for more.
type once struct{ op *disk.Op }

func (o *once) Submit(op *disk.Op) { o.op = op }

// The cost of the disk in one small world: a host, 100 appends, and the reset.
func BenchmarkWorld(b *testing.B) {
	const appends = 100
	for _, read := range []bool{false, true} {
		b.Run(map[bool]string{false: "written", true: "written and read"}[read], func(b *testing.B) {
			batches := make([]journal.Batch, appends)
			for i := range batches {
				batches[i] = journaltest.Next("s", 1, int64(i), 1, journaltest.Put("c", int64(i)))
			}
			batches[0] = journaltest.Birth("s", 1)
			d, done := disk.New(), func(journal.Appended, error) {}
			b.ReportAllocs()
			for b.Loop() {
				o := &once{}
				h := d.Handle("h", o)
				for _, batch := range batches {
					h.Append(batch, done)
					o.op.Commit()
				}
				if read && len(d.Log("s").Events) != appends {
					b.Fatal("something is missing")
				}
				d.Reset()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*appends), "ns/append")
		})
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			disk.New().Handle("h", &once{})
		}
	})
}
