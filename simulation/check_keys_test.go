package simulation

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// keyed is a world of somebody who uses a submission id twice and passes, of an
// agent that ends and takes back what it has ended and taken back, and of a silence.
const keyed = `
seed 7
for 60s
rules timeout=3s grace=0s passivate=900ms
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  turn
  ask k1 for 20s with watched
  ask k2 for 20s
  end
  end
  start k3 for ever with legacy
  start k4 for 20s
  wait 100ms
  withdraw k4
  withdraw k4
  wait 9s
  take
person p in s1 on h1
  find k1 within 9s
  submit k1 with shared
  find k2 within 9s
  submit k2 with shared
  submit k2
  find k3 within 9s
  open k3
  wait 2s
  pass k3
  wait 20s
  steer
`

var keyLies = liesOf{keyed, []lie{
	{"one answer for an id", "was accepted for no other question", func(d doctor) {
		d.saying("p", "Submit", "call_id=k2", sharedID).Cmd.(*messages.SubmitRequest).CallId = "k1"
	}, ""},
	{"the bell counts what is unread", "3 results are unread", func(d doctor) {
		lied[*messages.AwaitInboxResponse](d.saying("a", "AwaitInbox")).Undelivered = 3
	}, ""},
	{"a claim is told what is left", "it was told that 0 ms are left", func(d doctor) { d.History.Holds[0].Never = false }, ""},
	{"a claim is told once", "was told 2 times", func(d doctor) { d.History.Holds[0].Frames++ }, ""},
	{"a late claim is told of the end", "told that nobody knows it", func(d doctor) {
		d.History.Holds = append(d.History.Holds, &Hold{Party: "o", Session: "s1", Call: "k3", Opened: 20_000, Over: 20_010, How: "unknown"})
	}, ""},
	{"a pass is one's own", "and o held it since", func(d doctor) {
		p := *d.History.Holds[0]
		p.Party, p.How = "o", "settled"
		p.Over += 50
		d.History.Holds = append(d.History.Holds, &p)
	}, ""},
	{"unattended, unloaded", "still in memory", func(d doctor) {
		log := d.log("s1")
		log.Commits = slices.Clone(log.Commits)
		for i := range log.Commits {
			if i > 0 && log.Commits[i].Kind == disk.KindOpen {
				log.Commits[i].Kind = disk.KindAppend
			}
		}
	}, "one writer"},
}}

var stepLies = liesOf{keyed, []lie{
	{"asked in its step", "call k1 was asked for step 1 of turn 9", func(d doctor) { d.saying("a", "Ask", "k1").Cmd.(*messages.AskRequest).Turn = 9 }, ""},
	{"refusals are right", "was refused with TURN_CLOSED", func(d doctor) {
		d.saying("a", "EndTurn").Answer.Msg = &messages.Refusal{Code: string(messages.TurnClosed)}
	}, ""},
	{"told of what it asked", "May I do k9?", func(d doctor) {
		ask := d.saying("a", "Ask", "k2").Cmd.(*messages.AskRequest)
		ask.Arguments = strings.Replace(ask.Arguments, "do k2", "do k9", 1)
	}, ""},
	{"an asker is told what is left", "and was told at", func(d doctor) {
		d.saying("a", "Ask", "k2").Waiting[0].Msg.(*messages.AskResponse).GetWaiting().RemainingMs += 50
	}, ""},
	{"taken back is taken back", "because r1 had taken it back", func(d doctor) {
		d.saying("a", "WithdrawQuestion", "k4").Answer.Msg = &messages.Refusal{Code: string(messages.Settled), Winner: &messages.Settlement{Outcome: "withdrawn", By: "r1"}}
	}, "one register"},
	{"a child takes nothing over", `owned by "s9", and the log has only`, func(d doctor) { d.saying("a", "Attach").Cmd.(*messages.AttachRequest).Owner = "s9" }, ""},
	{"a skip is no answer", "call k2 is recorded as skipped", func(d doctor) {
		ev := d.find(sessionlog.TypeSettled, "k2")
		require.Contains(d, string(ev.Data), "answered")
		d.reword(ev, "answered", "skipped")
	}, "accepted is kept"},
}}
