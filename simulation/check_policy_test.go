package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// crowded is a world in which people hold what others let go, a turn is aborted,
// a request ends, an answer is repeated and another root takes over.
const crowded = `
seed 7
for 60s
rules timeout=3s grace=2s
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  ask c1 for 20s
  ask c2 for 1s
  start c3 for 60s
  wait 1s
  abort
  start c4 for 60s with watched
  wait 1s
  unhear c4
  again c4 for 60s with watched
  ask c5 for 60s with two
  start c6 for 60s
agent b as r2 in s1 on h1
  wait 20s
  attach
person p in s1 on h1
  find c1 within 9s
  open c1
  wait 2s
  expire c1
  find c2 within 9s
  open c2
  wait 6s
  release c2
  find c5 within 50s
  submit c5 with two
  submit c5 with two
person o in s1 on h1
  find c1 within 9s
  open c1
  wait 1s
  release c1
  find c2 within 9s
  wait 4s
  open c2
  wait 1s
  release c2
`

// apart is a world in which the host of a claim is cut off from its session's.
const apart = `
seed 7
for 60s
rules timeout=3s grace=2s
network delay=1ms..9ms
hosts 2
session s1 on h1
agent a as r1 in s1 on h1
  ask c1 for 5s
person p in s1 on h2
  find c1 within 9s
  open c1
  wait 40s
at 2s partition h1 h2 for 30s
`

// hold is a party's first claim on a call.
func (d doctor) hold(party, call string) *Hold {
	i := slices.IndexFunc(d.History.Holds, func(h *Hold) bool { return h.Party == party && h.Call == call })
	require.NotEqual(d, -1, i)
	return d.History.Holds[i]
}

// swap lets two events stand in each other's place.
func (d doctor) swap(a, b sessionlog.Event) {
	d.put(a.Seq, b.At(a.Seq, a.Time))
	d.put(b.Seq, a.At(b.Seq, b.Time))
}

// after is the first event of a type behind another.
func (d doctor) after(ev sessionlog.Event, typ string) sessionlog.Event {
	for _, next := range d.log("s1").Events[ev.Seq+1:] {
		if next.Type == typ {
			return next
		}
	}
	d.Fatalf("no %s follows event %d", typ, ev.Seq)
	return sessionlog.Event{}
}

// again is the last thing that a party said whose words hold these.
func (d doctor) again(party string, words ...string) *Said {
	all := d.History.Said
	slices.Reverse(all)
	defer slices.Reverse(all)
	return d.saying(party, words...)
}

// reask lets a party have asked something else.
func (d doctor) reask(party, call, from, to string) {
	cmd := d.saying(party, "Ask", call).Cmd.(*messages.AskRequest)
	require.Contains(d, cmd.GetArguments(), from)
	cmd.Arguments = strings.Replace(cmd.GetArguments(), from, to, 1)
}

// policyLies are told of policyInvariants.
var policyLies = []liesOf{
	{honest, []lie{
		{"no provider is for legacy calls", "timed call q2 failed with NO_PROVIDER", func(d doctor) {
			ev := d.find(sessionlog.TypeToolResult, "q2", "pending")
			d.reword(ev, `"isError":false`, `"isError":true`)
			ev = d.find(sessionlog.TypeToolResult, "q2", "pending")
			d.reword(ev, `}]}}`, `}]},"error":{"name":"Error","code":"NO_PROVIDER","message":""}}`)
		}, "told as recorded"},
		{"claims hear of the end", "was held until 80000", func(d doctor) { d.hold("p", "q1").Over = 80_000 }, ""},
		{"claims hear of the end", "the claim was held until", func(d doctor) { d.hold("p", "q1").Over += 3_000 }, ""},
		{"a late answer may be unwanted", "sub-6 by p was not to be a late answer", func(d doctor) {
			d.saying("p", "Submit", "sub-6").Cmd.(*messages.SubmitRequest).OnExpired = messages.OnExpired_ON_EXPIRED_REJECT
		}, "one register"},
		{"one speaks", "in the name of r9", func(d doctor) {
			d.saying("a", "EndStep").Cmd.(*messages.EndStepRequest).Root = "r9"
		}, ""},
		{"taken back by somebody", "message reply12 of session s1 was taken back", func(d doctor) {
			d.saying("p", "WithdrawMessage").Cmd.(*messages.WithdrawMessageRequest).MessageId = "reply14"
		}, "durable before told, one register"},
		{"listed until acknowledged", "list 1 is acknowledged at event", func(d doctor) {
			d.saying("a", "CollectReplies", "after=").Cmd.(*messages.CollectRepliesRequest).After = ""
		}, ""},
		{"listed until acknowledged", "list 1 is acknowledged at event", func(d doctor) {
			d.saying("a", "CollectReplies", "after=").Cmd.(*messages.CollectRepliesRequest).After = "r1-another"
		}, ""},
		{"a list admits what it lists", "message reply14 was admitted with list 1", func(d doctor) {
			d.reword(d.find(sessionlog.TypeDelivered, "reply14"), "reply14", "reply7")
		}, "seen once"},
		{"listed until acknowledged", "does not hold reply14 of list 2, which nobody has acknowledged", func(d doctor) {
			d.push(sessionlog.DeliveredRecord{List: 2, Shown: []string{"reply14"}}.Event(), sessionlog.DeliveredRecord{List: 3, Shown: []string{}}.Event())
		}, "lists once"},
		{"joined to its equal", "which asks", func(d doctor) {
			d.reask("a", "q6'6", "May I do q6", "May I do q5")
		}, ""},
		{"answered at once", "2 times, until it was told", func(d doctor) { d.saying("a", "EndStep").Tries = 2 }, ""},
		{"replies come first", "reply reply7 to q2 waits for a turn of its own", func(d doctor) {
			d.reword(d.find(sessionlog.TypeInboxSpliced, "reply7"), "next-step", "next-turn")
		}, "contiguous log, one fate, fold after crash, everything ends, shown what waits"},
	}},
	{crowded, []lie{
		{"nobody decides for others", "call c1 was ended by p", func(d doctor) { d.hold("o", "c1").Over = 3_000 }, ""},
		{"nobody decides for others", "its session began anew at", func(d doctor) {
			d.Plan.Rules.Grace = 20 * time.Second
			d.reopened(d.find(sessionlog.TypeWait, "c1").Seq, 500)
		}, ""},
		{"who lets go is let go", "and the claim was held until", func(d doctor) { d.hold("p", "c1").Over += 3_000 }, "claims hear of the end"},
		{"no claim on an overdue call", "o opened c2", func(d doctor) { d.hold("p", "c2").Over = 3_000 }, ""},
		{"a repeat is accepted", "was refused with SETTLED; it was accepted at", func(d doctor) {
			won := d.saying("p", "Submit", "c5").Answer.Msg.(*messages.SubmitResponse).GetSettlement()
			d.again("p", "Submit", "c5").Answer.Msg = &messages.Refusal{Code: string(messages.Settled), Winner: won}
		}, "one register"},
		{"answers are whole", "was accepted for c5, which asks", func(d doctor) {
			for _, s := range []*Said{d.saying("p", "Submit", "c5"), d.again("p", "Submit", "c5")} {
				cmd := s.Cmd.(*messages.SubmitRequest)
				cmd.Answers = cmd.GetAnswers()[:1]
			}
		}, "accepted is kept, one register"},
		{"a take-over keeps timed questions", "timed call c6 was open when r2 took over", func(d doctor) {
			d.reword(d.find(sessionlog.TypeToolResult, "c6"), string(sessionlog.CodeOutcomeUnknown), string(messages.AskAborted))
		}, "settled stays settled, index is the fold"},
		{"an end is somebody's", "call c6 ended at event", func(d doctor) {
			d.reword(d.find(sessionlog.TypeSettled, "c6", "root_changed"), "root_changed", "failed")
		}, ""},
		{"an end is somebody's", "call c3 ended at event", func(d doctor) {
			d.reword(d.find(sessionlog.TypeSettled, "c3"), `"c3"`, `"c9"`)
		}, "losers are told who won"},
		{"a request ends its own wait", "attempt r1/c4/3 ended at event", func(d doctor) {
			d.saying("a", "EndForeground").Cmd.(*messages.EndForegroundRequest).Attempt = "r1/c4/4"
		}, ""},
		{"a turn ends its calls", "and call c3 of it is open", func(d doctor) {
			result := d.find(sessionlog.TypeToolResult, "c3")
			d.swap(result, d.after(result, sessionlog.TypeTurnEnd))
		}, ""},
	}},
	{apart, []lie{
		{"grace for the unheard", "who held it, was cut off at 2000", func(d doctor) { d.Plan.Rules.Grace = 20 * time.Second }, ""},
	}},
}
