package simulation

import (
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// marking is a world of one who marks what waits, and one who speaks.
const marking = `
seed 7
for 40s
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1
  wait 1s
  turn with alone
  mark
  wait 1s
  mark
  step
  end
person p in s1 on h1
  wait 100ms
  steer
  wait 1500ms
  steer with later
`

var markLies = liesOf{marking, []lie{
	{"handed what waits", "said-2 waited too", func(d doctor) {
		lied[*messages.ClaimMessagesResponse](d.saying("a", "ClaimMessages")).Messages = nil
	}, ""},
	{"handed once", "a was handed said-3 for turn 1", func(d doctor) {
		handed := lied[*messages.ClaimMessagesResponse](d.saying("a", "ClaimMessages"))
		handed.Messages = append(handed.Messages, &messages.InboxMessage{Id: "said-3"})
	}, ""},
	{"a step takes what waits", `with ["said-2" "said-3"]; ["said-2"] waited for it`, func(d doctor) {
		d.reword(d.find(sessionlog.TypeStepStart), `"step":1`, `"step":2`)
	}, ""},
	{"refusals are right", "was refused with TURN_CLOSED", func(d doctor) {
		d.saying("a", "EndTurn").Answer.Msg = messages.Refuse(messages.TurnClosed, "").Wire()
	}, ""},
}}
