package simulation

import (
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// receipts is a world of one whose requests are lost, who says what has arrived,
// and who listens.
const receipts = `
seed 7
for 40s
network delay=1ms..9ms
hosts 1
session s1 on h1
agent a as r1 in s1 on h1 patient
  ask w1 for 1s with watched
  receive w1
  ask w2 for 20s with watched
  again w2 for 20s with watched
  receive w2
  start w3 for 60s with watched
  unhear w3
  again w3 for 60s with watched
  listen for 9s
  wait 15s
  take
person p in s1 on h1
  find w2 within 9s
  submit w2
  wait 5s
  steer
`

var receiptLies = liesOf{receipts, []lie{
	{"read by somebody", "takes the result of w3 for read", func(d doctor) {
		d.push(sessionlog.DeliveredRecord{CallID: "w3"}.Event())
	}, ""},
	{"a receipt is taken", "a acknowledged w2 at", func(d doctor) {
		lied[*messages.AcknowledgeResponse](d.saying("a", "Acknowledge", "w2")).Known = false
	}, ""},
	{"a receipt is taken", "a acknowledged w1 at", func(d doctor) {
		lied[*messages.AcknowledgeResponse](d.saying("a", "Acknowledge", "w1")).Known = false
	}, ""},
	{"durable before told", "of which the log of s1 has nothing", func(d doctor) {
		d.saying("a", "Acknowledge", "w1").Cmd.(*messages.AcknowledgeRequest).CallId = "w9"
	}, "read by somebody"},
	{"the living are not joined", "was joined to r1/w3/3", func(d doctor) {
		d.saying("a", "Ask", "r1/w3/4").Cmd.(*messages.AskRequest).Live = []string{"r1/w3/3"}
	}, ""},
	{"refusals are right", "was refused with UNREAD_ANSWER", func(d doctor) {
		d.saying("a", "Ask", "r1/w2/2").Cmd.(*messages.AskRequest).Live = []string{"r1/w2/1"}
	}, ""},
	{"shown what waits", "that 5 messages wait", func(d doctor) {
		lied[*messages.AwaitInboxResponse](d.saying("a", "AwaitInbox")).Queued = 5
	}, ""},
	{"the patient are told", "a said AwaitInbox", func(d doctor) { d.saying("a", "AwaitInbox").Answer.At += 6_000 }, ""},
}}
