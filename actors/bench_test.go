package actors_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/actors/actorstest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// bare drives a session without its parts: what it would hand to a wait is
// answered as a wait with nothing else to do would.
type bare struct {
	s     *actors.Session
	now   actors.Now
	seeds actors.PartID // the latest wait
}

func newBare(tb testing.TB) *bare {
	tb.Helper()
	s, err := actors.NewSession(actorstest.DefaultRules(), "s1", nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bare{s: s, now: actors.Now{Wall: 1_000_000}}
	b.do(&messages.AttachRequest{Session: "s1", Root: "r1"})
	return b
}

func (b *bare) do(msg any) actors.Effects {
	fx := b.s.Step(b.now, actors.Envelope{From: actors.Addr{Key: "door/n", Corr: 1}, Msg: msg})
	for _, ev := range fx.Append {
		b.s.Apply(ev)
	}
	for _, p := range fx.Parts {
		if p.Seed != nil {
			b.seeds = p.Part
		}
	}
	return fx
}

const benchArguments = `{"questions":[{"id":"db","question":"Which database should the service use?","header":"Database",` +
	`"options":[{"label":"PostgreSQL (Recommended)","description":"A server of its own"},{"label":"SQLite"}]}]}`

// BenchmarkAskAndSubmit is a whole call: the ask with its append, the answer, and the record of it.
func BenchmarkAskAndSubmit(b *testing.B) {
	run := newBare(b)
	submit := &messages.SubmitRequest{Session: "s1", Answers: []*messages.Answer{{Id: "db", Selected: []string{"SQLite"}}}}
	b.ReportAllocs()
	for i := range b.N {
		if i%4096 == 0 { // a session with a long past is another benchmark
			run = newBare(b)
		}
		id := fmt.Sprintf("c%d", i)
		run.do(&messages.AskRequest{Session: "s1", Root: "r1", Attempt: id, CallId: id, Arguments: benchArguments})
		submit.CallId, submit.SubmissionId = id, id
		fx := run.do(submit)
		fx = run.do(actors.Record{Part: fx.Parts[0].Part, Corr: 1, Outcome: actors.Outcome{Kind: actors.OutcomeAnswered, Submit: submit}})
		if len(fx.Append) == 0 {
			b.Fatal("nothing was recorded")
		}
	}
}

// BenchmarkAskExpireReplyAdmit is the long way round: pending, a late reply, its admission.
func BenchmarkAskExpireReplyAdmit(b *testing.B) {
	run := newBare(b)
	submit := &messages.SubmitRequest{Session: "s1", Answers: []*messages.Answer{{Id: "db", Selected: []string{"SQLite"}}}}
	b.ReportAllocs()
	for i := range b.N {
		if i%4096 == 0 {
			run = newBare(b)
		}
		id := fmt.Sprintf("c%d", i)
		run.do(&messages.AskRequest{Session: "s1", Root: "r1", Attempt: id, CallId: id, Arguments: benchArguments})
		run.do(actors.Record{Part: run.seeds, Corr: 1, Outcome: actors.Outcome{Kind: actors.OutcomeDeadline}})
		submit.CallId, submit.SubmissionId = id, id
		fx := run.do(submit)
		inbox := fx.Parts[len(fx.Parts)-1].Part
		run.do(actors.Record{Part: inbox, Corr: 1, Outcome: actors.Outcome{Kind: actors.OutcomeReply, Submit: submit}})
		run.do(actors.PartIdle{Part: inbox, Seen: 3})
		fx = run.do(&messages.AdmitMessagesRequest{Session: "s1", Root: "r1"})
		if len(fx.Append) == 0 {
			b.Fatal("nothing was admitted")
		}
	}
}

// BenchmarkParked is what one session with one open question keeps in memory.
func BenchmarkParked(b *testing.B) {
	rules := actorstest.DefaultRules()
	type parked struct {
		s *actors.Session
		w actors.Machine
	}
	kept := make([]parked, b.N)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		id := fmt.Sprintf("s%d", i)
		s, err := actors.NewSession(rules, id, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		run := &bare{s: s, now: actors.Now{Wall: 1_000_000}}
		run.do(&messages.AttachRequest{Session: id, Root: "r1"})
		fx := run.do(&messages.AskRequest{Session: id, Root: "r1", Attempt: "a1", CallId: "c1", Arguments: benchArguments})
		w := fx.Parts[0].Seed
		w.Resume(run.now)
		kept[i] = parked{s, w}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "parked-B/op")
	runtime.KeepAlive(kept)
}

// BenchmarkLoad folds the log of a session with a thousand answered calls.
func BenchmarkLoad(b *testing.B) {
	run, log := newBare(b), []sessionlog.Event(nil)
	header := sessionlog.Header{Version: sessionlog.V3, ID: "s1"}
	keep := func(fx actors.Effects) actors.Effects { log = append(log, fx.Append...); return fx }
	s, err := actors.NewSession(actorstest.DefaultRules(), "s1", nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	run.s = s
	keep(run.do(&messages.AttachRequest{Session: "s1", Root: "r1"}))
	for i := range 1000 {
		id := fmt.Sprintf("c%d", i)
		keep(run.do(&messages.AskRequest{Session: "s1", Root: "r1", Attempt: id, CallId: id, Arguments: benchArguments}))
		submit := &messages.SubmitRequest{Session: "s1", CallId: id, SubmissionId: id, Answers: []*messages.Answer{{Id: "db"}}}
		keep(run.do(actors.Record{Part: run.seeds, Corr: 1, Outcome: actors.Outcome{Kind: actors.OutcomeAnswered, Submit: submit}}))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := actors.NewSession(actorstest.DefaultRules(), "s1", &header, log); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(log)), "events")
}
