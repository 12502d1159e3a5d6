package simulation

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// waiting is a world of one who holds a question too short, and one who speaks.
const waiting = `
seed 7
for 20s
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  ask q1 for 3s
  take
person p in s1 on h1
  find q1 within 9s
  open q1
  wait 1s
  release q1
person o in s1 on h1 patient
  wait 500ms
  steer
`

var patienceLies = liesOf{waiting, []lie{
	{"the patient are told", "o said Steer", func(d doctor) { d.saying("o", "Steer").Answer.At += 10_000 }, ""},
	{"a claim comes back", "its session began anew at", func(d doctor) {
		d.History.Holds[0].Over = 6_000
		d.reopened(d.find(sessionlog.TypeWait, "q1").Seq, 1_000)
	}, ""},
	{"shown what waits", `was told ["said-2"]`, func(d doctor) {
		lied[*messages.AwaitInboxResponse](d.saying("operator", "AwaitInbox")).MessageIds = []string{"said-2"}
	}, ""},
}}

// reopened lets the session begin anew a time after an event was written.
func (d doctor) reopened(seq, later int64) {
	log, stamps := d.log("s1"), d.History.Written["s1"]
	i := 1 + slices.IndexFunc(log.Commits, func(c disk.Commit) bool { return c.Seq <= seq && seq < c.Seq+c.Count })
	require.NotZero(d, i)
	stamp := *d.stamp(seq)
	stamp.At, stamp.Step = stamp.At+later, stamp.Step+1
	log.Commits = slices.Insert(slices.Clone(log.Commits), i, disk.Commit{Kind: disk.KindOpen, Host: "h1", At: log.Commits[i-1].At, Epoch: log.Commits[i-1].Epoch, Seq: log.Commits[i-1].Seq + log.Commits[i-1].Count})
	for j := i; j < len(log.Commits); j++ {
		log.Commits[j].Epoch++
	}
	log.Epoch++
	d.History.Written["s1"] = slices.Insert(slices.Clone(stamps), i, stamp)
}
