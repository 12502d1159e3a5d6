package simulation

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/sessionlog"
)

// programmed is a world in which programs ask: one is answered, one gives up, one
// is aborted, one is taken back late, one is taken over.
const programmed = `
seed 7
for 40s
rules timeout=3s grace=0s
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  turn
  start run:ptc:1 for 60s in run
  start run:ptc:2 for 60s in run with legacy
  ask run:ptc:3 for 1s in run
  wait 1s
  finish run
  wait 1s
  step
  end
  turn
  start bad:ptc:1 for 60s in bad
  wait 1s
  abort
  ask off:ptc:1 for 1s in off
  withdraw off:ptc:1
  ask out:ptc:1:ptc:1 for 60s in out:ptc:1
  start cut:ptc:1 for 60s in cut
agent b as r2 in s1 on h1
  wait 20s
  attach
person p in s1 on h1
  find run:ptc:3 within 9s
  wait 2s
  submit run:ptc:3
  find out:ptc:1:ptc:1 within 20s
  submit out:ptc:1:ptc:1
`

var subCallLies = liesOf{programmed, []lie{
	{"one record of a sub-call", "which is no number of its parent", func(d doctor) {
		d.reword(d.find(sessionlog.TypeDispatch, `"off"`), `"rootCallId":"off"`, `"rootCallId":"run"`)
	}, ""},
	{"one record of a sub-call", "has no record of what it came to", func(d doctor) {
		ev := d.find(sessionlog.TypeDispatch, `"cut"`)
		d.put(ev.Seq, sessionlog.SettledRecord{CallID: "none", Outcome: "pending"}.Event().At(ev.Seq, ev.Time))
	}, "index is the fold, fold after crash, not after its time, everything ends, a take-over keeps timed questions, a turn ends its calls"},
	{"one record of a sub-call", "has not begun, or has one already", func(d doctor) {
		d.push(d.find(sessionlog.TypeDispatch, `"bad"`))
	}, "one result"},
	{"one record of a sub-call", "began with", func(d doctor) {
		d.reword(d.find(sessionlog.TypeDispatch, `"out:ptc:1"`), "May I do out", "May I not do out")
	}, ""},
	{"a sub-call is not asked over", "is kept", func(d doctor) {
		wait := d.find(sessionlog.TypeWait, `"off:ptc:1"`)
		wait.Data = []byte(strings.Replace(string(wait.Data), "r1/off", "r2/off", 1))
		began := d.find(sessionlog.TypeDispatchStart, `"off:ptc:1"`)
		sub, _, err := sessionlog.DecodeSubCall(began)
		require.NoError(d, err)
		d.push(began, wait, sub.Result("Error: closed", true, "", ""))
	}, ""},
	{"what has asked was started", "says that run was not started", func(d doctor) {
		d.push(sessionlog.ToolResult(1, 1, "run", "not started", true, "ToolNotStartedError", sessionlog.CodeNotStarted, -1, "m"))
	}, ""},
}}
