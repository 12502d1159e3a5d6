package simulation

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// honest is a world in which everything happens that the invariants are about,
// and nothing goes wrong.
const honest = `
seed 7
for 40s
rules timeout=3s grace=0s
network delay=1ms..9ms
disk delay=2ms
hosts 1
session s1 on h1
session s2 on h1
agent a as r1 in s1 on h1
  turn
  ask q1 for 20s
  ask q2 for 1s
  wait 4s
  step
  ask q3 for 20s with watched
  ask q4 for 20s with legacy
  end
  ask q5 for 1s
  wait 6s
  collect
  collect
  ask q6 for 1s with watched
  again q6 for 2s with watched
  withdraw q6
  collect
agent b as r1 in s2 owner s1 on h1
  ask q9 for 2s
person p in s1 on h1
  find q1 within 9s
  open q1
  wait 1s
  submit q1
  find q2 within 9s
  wait 2s
  submit q2
  find q3 within 9s
  submit q3
  find q4 within 9s
  submit q4
  find q5 within 9s
  wait 2s
  submit q5
  takeback q5
  submit q5 with new
person o in s1 on h1
  steer
  find q1 within 9s
  wait 3s
  submit q1
  wait 1s
  submit q2
`

// lived runs a script and returns what it leaves behind.
func lived(t testing.TB, script string) *Evidence {
	t.Helper()
	p, err := ParseScript(script)
	require.NoError(t, err)
	w := newWorld(p, Options{})
	w.start()
	for w.now < p.For.Milliseconds() && w.Step() {
		continue
	}
	w.heal()
	for !w.spent() && !w.atRest() && w.Step() {
		continue
	}
	e := w.evidence()
	history := *w.History // the end of the hosts is not a fault
	e.History = &history
	w.close()
	e.prepare()
	return e
}

func TestAnHonestWorldBreaksNothing(t *testing.T) {
	e := lived(t, honest)
	require.Empty(t, Judge(e))
	var ends []string
	for _, l := range e.account("s1").lives {
		ends = append(ends, l.call+" "+l.states[len(l.states)-1].why)
	}
	require.Equal(t, "q1 answered; q2 its reply was admitted; q3 answered; q4 answered; q5 its reply was admitted; q6 withdrawn", strings.Join(ends, "; "))
}

// doctor changes what a world has left behind.
type doctor struct {
	testing.TB
	*Evidence
}

func (d doctor) log(session string) *disk.Log {
	i := slices.IndexFunc(d.Logs, func(l disk.Log) bool { return l.Session == session })
	require.NotEqual(d, -1, i)
	return &d.Logs[i]
}

// find is the first event of a type that holds all of these words.
func (d doctor) find(typ string, words ...string) sessionlog.Event {
	for _, ev := range d.log("s1").Events {
		if ev.Type == typ && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(ev.Data), w) }) {
			return ev
		}
	}
	d.Fatalf("no %s has %q", typ, words)
	return sessionlog.Event{}
}

// put replaces an event in its place.
func (d doctor) put(seq int64, ev sessionlog.Event) {
	log := d.log("s1")
	log.Events = slices.Clone(log.Events)
	log.Events[seq] = ev
}

// reword changes words in an event.
func (d doctor) reword(ev sessionlog.Event, from, to string) {
	require.Contains(d, string(ev.Data), from)
	data := strings.Replace(string(ev.Data), from, to, 1)
	d.put(ev.Seq, sessionlog.Event{Type: ev.Type, Data: []byte(data), Ignorable: ev.Ignorable, SurfaceOp: ev.SurfaceOp, SourceEventSeqs: ev.SourceEventSeqs}.At(ev.Seq, ev.Time))
}

// push adds events in an append of their own.
func (d doctor) push(events ...sessionlog.Event) {
	log := d.log("s1")
	last := log.Commits[len(log.Commits)-1]
	seq := int64(len(log.Events))
	log.Commits = append(slices.Clip(log.Commits), disk.Commit{Kind: disk.KindAppend, Host: last.Host, At: last.At + 100, Epoch: log.Epoch, Seq: seq, Count: int64(len(events))})
	for i, ev := range events {
		log.Events = append(slices.Clip(log.Events), ev.At(seq+int64(i), log.Events[seq-1].Time))
	}
	stamps := d.History.Written["s1"]
	d.History.Written["s1"] = append(slices.Clip(stamps), Stamp{At: d.Now, Step: stamps[len(stamps)-1].Step + 1_000_000, Line: stamps[len(stamps)-1].Line + 1})
}

// stamp is when an event was written, to change.
func (d doctor) stamp(seq int64) *Stamp {
	for i, c := range d.log("s1").Commits {
		if c.Seq <= seq && seq < c.Seq+c.Count {
			return &d.History.Written["s1"][i]
		}
	}
	d.Fatalf("event %d is in no commit", seq)
	return nil
}

// saying is the first thing that a party said whose words hold these.
func (d doctor) saying(party string, words ...string) *Said {
	for _, s := range d.History.Said {
		if s.Party == party && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(brief(s.Cmd), w) }) {
			s.Cmd = proto.Clone(s.Cmd).(messages.Command)
			if s.Answer != nil {
				s.Answer.Msg = proto.Clone(s.Answer.Msg).(messages.Message)
			}
			return s
		}
	}
	d.Fatalf("%s never said %q", party, words)
	return nil
}

func lied[M messages.Message](s *Said) M { return s.Answer.Msg.(M) }

// lie is one change of what an honest world has left behind. An invariant finds
// it, and says these words; which others find it too is named.
type lie struct {
	invariant, text string
	tell            func(d doctor)
	also            string
}

// liesOf are those told of one world.
type liesOf struct {
	world string
	lies  []lie
}

// Each check is handed evidence with one lie in it, and must find it. Nothing
// more than what is named may find it, and no check is without one.
func TestEveryInvariantCanFail(t *testing.T) {
	lies := []lie{
		{"contiguous log", "seq is not contiguous", func(d doctor) {
			ev := d.find(sessionlog.TypeStepEnd)
			d.put(ev.Seq, ev.At(ev.Seq+1000, ev.Time))
		}, ""},
		{"one writer", "which is of h1", func(d doctor) {
			log := d.log("s1")
			log.Commits = slices.Clone(log.Commits)
			log.Commits[7].Host = "h2"
		}, ""},
		{"one result", "call q1, attempt r1/q1/0, has 2 results", func(d doctor) {
			d.push(d.find(sessionlog.TypeToolResult, "q1"))
		}, "pending is no answer"},
		{"one reservation", "call q2 has 2 queued replies", func(d doctor) {
			ev := d.find(sessionlog.TypeInboxSpliced, "reply7")
			s, err := sessionlog.ReadSplice(ev.Data)
			require.NoError(d, err)
			again, err := sessionlog.ParseMessage([]byte(strings.Replace(string(s.Inserted[0].Raw), "reply7", "reply77", 1)))
			require.NoError(d, err)
			s.Inserted = append(s.Inserted, again)
			d.put(ev.Seq, s.Event().At(ev.Seq, ev.Time))
		}, "everything ends, shown what waits, a step takes what waits"},
		{"one fate", "message reply7 of session s1: queued at", func(d doctor) { d.push(d.find(sessionlog.TypeUserMessage, "reply7")) }, ""},
		{"settled stays settled", "is settled as withdrawn", func(d doctor) {
			d.push(sessionlog.SettledRecord{CallID: "q1", Outcome: "withdrawn", By: "o"}.Event())
		}, ""},
		{"pending is no answer", "is both", func(d doctor) {
			d.reword(d.find(sessionlog.TypeToolResult, "q2", "pending"), `{\"pending\":true`, `{\"pending\":true,\"answers\":[]`)
		}, "told as recorded"},
		{"legacy has no late path", "legacy call q2 is pending", func(d doctor) {
			ev := d.find(sessionlog.TypeWait, "q2")
			r, err := sessionlog.DecodeWait(ev)
			require.NoError(d, err)
			r.Legacy = true
			d.put(ev.Seq, r.Event().At(ev.Seq, ev.Time))
		}, "settled stays settled, index is the fold, refusals are right"},
		{"children do not ask", "owned by s9, speaks for session s1", func(d doctor) {
			d.put(d.find(sessionlog.TypeRoot).Seq, sessionlog.RootRecord{RootID: "r1", Owner: "s9"}.Event().At(d.find(sessionlog.TypeRoot).Seq, wallStart))
		}, "a child takes nothing over"},
		{"index is the fold", "the index has", func(d doctor) {
			i := slices.IndexFunc(d.Changes, func(c journal.Change) bool { return c.Remove })
			d.Changes = slices.Delete(slices.Clone(d.Changes), i, i+1)
		}, ""},
		{"fold after crash", "the views show call q1 as open", func(d doctor) {
			i := slices.IndexFunc(d.Shown, func(r *messages.QuestionRow) bool { return r.GetCallId() == "q1" })
			d.Shown[i].State = "open"
		}, ""},
		{"lists once", "shows reply14, which was acknowledged", func(d doctor) {
			d.push(sessionlog.DeliveredRecord{List: 2, Shown: []string{"reply14"}}.Event())
		}, ""},
		{"told as recorded", "waits until", func(d doctor) {
			w := &d.saying("a", "Ask", "q2").Waiting[0]
			w.Msg = proto.Clone(w.Msg).(messages.Message)
			w.Msg.(*messages.AskResponse).GetWaiting().DeadlineMs++
		}, ""},
		{"what waits still waits", "was told at step", func(d doctor) {
			s := d.saying("a", "Ask", "q1")
			s.Waiting[0].Asks, s.Waiting[0].Sent = s.Answer.Step, s.Answer.Step+1
		}, ""},
		{"told the same", "before it was", func(d doctor) {
			s := *d.saying("p", "Submit", "sub-4")
			s.Answer = &Heard{At: s.Answer.At, Line: s.Answer.Line, Step: s.Answer.Step + 1, Sent: s.Answer.Sent + 1, Msg: proto.Clone(s.Answer.Msg).(messages.Message)}
			lied[*messages.SubmitResponse](&s).Settlement.Outcome = "queued"
			d.History.Said = append(d.History.Said, &s)
		}, "accepted is kept, one register"},
		{"accepted is kept", "its words are not there", func(d doctor) {
			other := "something else"
			d.saying("p", "Submit", "sub-4").Cmd.(*messages.SubmitRequest).Answers[0].Custom = &other
		}, "one register"},
		{"refused leaves no trace", "was refused with BAD_ANSWER, and the log has accepted it", func(d doctor) {
			d.saying("p", "Submit", "sub-6").Answer.Msg = &messages.Refusal{Code: string(messages.BadAnswer)}
		}, "refusals are right, one register"},
		{"answers are somebody's", "said was", func(d doctor) { d.saying("p", "Submit", "sub-9").Cmd.(*messages.SubmitRequest).By = "somebody" }, ""},
		{"refusals are right", "was refused with REPLY_QUEUED", func(d doctor) {
			lied[*messages.Refusal](d.saying("o", "Submit", "sub-5")).Code = string(messages.ReplyQueued)
		}, "one register"},
		{"losers are told who won", "not told who won", func(d doctor) { lied[*messages.Refusal](d.saying("o", "Submit", "sub-5")).Winner = nil }, ""},
		{"durable before told", "was written at step", func(d doctor) {
			d.stamp(d.find(sessionlog.TypeToolResult, "q1").Seq).Step = d.saying("p", "Submit", "sub-4").Answer.Sent
		}, ""},
		{"seen once", "as delivery 2", func(d doctor) {
			lied[*messages.CollectRepliesResponse](d.saying("a", "CollectReplies")).Replies[0].Delivery++
		}, ""},
		{"no twin", "whose answer may not have been read", func(d doctor) {
			d.reword(d.find(sessionlog.TypeToolCall, `"q5"`), "May I do q5", "May I do q3")
			ev := d.find(sessionlog.TypeWait, "q5")
			r, err := sessionlog.DecodeWait(ev)
			require.NoError(d, err)
			r.Receipt = true
			d.put(ev.Seq, r.Event().At(ev.Seq, ev.Time))
			ask := d.saying("a", "Ask", "q5").Cmd.(*messages.AskRequest)
			ask.Join, ask.Receipt = true, true
		}, "accepted is kept, told of what it asked"},
		{"no deadline under a claim", "while o had held it since 1500", func(d doctor) {
			d.History.Holds = append(d.History.Holds, &Hold{Party: "o", Session: "s1", Call: "q2", Opened: 1400, Framed: 1500, LeftMS: 600, Line: 50})
		}, "claims hear of the end"},
		{"not before its time", "500 ms before its deadline", func(d doctor) {
			ev := d.find(sessionlog.TypeSettled, "q2", "pending")
			r, err := sessionlog.DecodeWait(d.find(sessionlog.TypeWait, "q2"))
			require.NoError(d, err)
			d.put(ev.Seq, ev.At(ev.Seq, *r.DeadlineMS-500))
		}, ""},
		{"not after its time", "call q2 was to run out at", func(d doctor) {
			d.stamp(d.find(sessionlog.TypeToolResult, "q2").Seq).At += 9000
		}, ""},
		{"grace after a loss", "o had lost its claim at 1900", func(d doctor) {
			d.Plan.Rules.Grace = 10 * time.Second
			d.History.Holds = append(d.History.Holds, &Hold{Party: "o", Session: "s1", Call: "q2", Opened: 1400, Framed: 1500, LeftMS: 600, Line: 50, Over: 1900, How: "lost"})
		}, ""},
		{"a deadline is fixed", "which nobody asked for", func(d doctor) {
			ask := d.saying("a", "Ask", "q2").Cmd.(*messages.AskRequest)
			ask.Arguments = strings.Replace(ask.Arguments, `"timeout":1}`, `"timeout":2}`, 1)
		}, ""},
		{"no actor panics", "s/s1 of h1 panicked at 900 over Fired: planted; in f", func(d doctor) {
			d.History.Panics = append(d.History.Panics, &Panic{Host: "h1", Actor: "s/s1", Over: "Fired", What: "planted", Stack: []string{"f"}, Stamp: Stamp{At: 900, Line: 9}})
		}, ""},
		{"everything ends", "was told nothing final", func(d doctor) { d.saying("o", "Steer").Answer = nil }, ""},
		{"one register", "nothing that is in order explains", func(d doctor) {
			asked := d.saying("a", "Ask", "q1") // told the answer before anybody has given it
			asked.Answer.Step, asked.Answer.Sent = d.saying("p", "Submit", "sub-4").Step-1, 0
		}, ""},
	}
	found := map[string]bool{}
	for _, of := range append(policyLies, patienceLies, receiptLies, markLies, subCallLies, cardLies, keyLies, stepLies, liesOf{honest, lies}) {
		for _, l := range of.lies {
			t.Run(l.invariant, func(t *testing.T) { l.isFound(t, of.world) })
			found[l.invariant] = true
		}
	}
	for _, inv := range Invariants {
		require.True(t, found[inv.Name], "no lie shows that %q can fail", inv.Name)
	}
}

// ofTheWhole are breaches that show at the end only, and at no party.
var ofTheWhole = regexp.MustCompile("^(session .* (folds to|does not fold|the log has|seq is not contiguous)|the views show .* does not have)")

func (l lie) isFound(t *testing.T, world string) {
	e := lived(t, world)
	l.tell(doctor{t, e})
	found := map[string]string{}
	for _, f := range Judge(e) {
		found[f.Invariant] += f.Text + "\n"
		require.True(t, f.Line > 0 || ofTheWhole.MatchString(f.Text), "it points nowhere: %v", f)
	}
	require.Contains(t, found[l.invariant], l.text, "found: %v", found)
	delete(found, l.invariant)
	var also []string
	for _, inv := range Invariants {
		if found[inv.Name] != "" {
			also = append(also, inv.Name)
		}
	}
	require.Equal(t, l.also, strings.Join(also, ", "), "%v", found)
}

// What the world notes of a moment names the line of the trace that says it, so
// that a breach points at whose it is and when.
func TestWhatIsNotedNamesItsLine(t *testing.T) {
	p := Draw(3, Profiles[0])
	w := newWorld(p, Options{Keep: true})
	w.start()
	for !w.spent() && w.now < p.For.Milliseconds() && w.Step() {
		continue
	}
	says := func(line int, at int64, lane, kind, text string) {
		t.Helper()
		require.Positive(t, line)
		l := w.trace.all[line-1]
		require.Equal(t, []any{line, at, lane, kind}, []any{l.N, l.At, l.Lane, l.Kind})
		require.Contains(t, l.Text, text)
	}
	for _, s := range w.History.Said {
		says(s.Line, s.At, s.Party, KindDo, brief(s.Cmd))
		if s.Answer != nil {
			says(s.Answer.Line, s.Answer.At, s.Party, KindTold, brief(s.Answer.Msg))
		}
	}
	for _, h := range w.History.Holds {
		if h.Framed > 0 {
			says(h.Line, h.Framed, h.Party, KindHold, "holds "+h.Call)
		}
	}
	for session, stamps := range w.History.Written {
		for _, stamp := range stamps {
			says(stamp.Line, stamp.At, diskLane, KindDisk, " "+session+" ")
		}
	}
	require.NotEmpty(t, w.History.Holds)
	w.close()
}

// Every invariant says what it guards, once.
func TestInvariantsSayWhatTheyGuard(t *testing.T) {
	names := map[string]bool{}
	for _, inv := range Invariants {
		require.False(t, names[inv.Name], inv.Name)
		names[inv.Name] = true
		require.NotEmpty(t, inv.Guards, inv.Name)
		require.NotEmpty(t, inv.Says, inv.Name)
	}
}

// What is judged must not cost more than what it judges.
func BenchmarkJudge(b *testing.B) {
	e := lived(b, honest)
	for b.Loop() {
		if len(Judge(e)) > 0 {
			b.Fatal("it fails")
		}
	}
}

// A question that nobody listens to any more, in a session that is unloaded
// sooner than its grace is over: it had all of the grace again each time that it
// was woken, and never ended.
func TestAnUnloadedSessionDoesNotHoldItsDeadlineForEver(t *testing.T) {
	p, err := ParseScript(`
seed 7
for 60s
rules timeout=3s grace=10s passivate=900ms
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  start q1 for 2s
  wait 500ms
  leave q1
  wait 50s
`)
	require.NoError(t, err)
	require.Empty(t, Run(p, Options{}).Failures)
}
