package actors

import (
	"slices"

	"github.com/parleyrun/parley/sessionlog"
)

// deliveries is what was handed to the agent's side by a response that may
// have been lost, and has not been acknowledged: lists of admitted messages,
// and results of calls that asked for a receipt. It is folded; nil is empty,
// for an agent that reads its own log needs none of it.
type deliveries struct {
	last  int64      // the number of the latest list
	items []delivery // unacknowledged, oldest first
	lists []handout  // those that still hold an unacknowledged message
	// pending are the calls whose pending result may have been lost: continued,
	// and to be joined by an equal question.
	pending []receipt
}

// The kinds of what is handed out.
const (
	kindReply   = "reply"   // a late answer
	kindResult  = "result"  // an answer that was given in time
	kindMessage = "message" // what somebody else said
)

// delivery is one unacknowledged thing the model is to read.
type delivery struct {
	receipt
	kind  string
	id    string // of the message in the log
	text  string
	at    int64 // when it was answered, or said; wall milliseconds
	count int32 // how often it was listed
	// repeated: it was handed out as the result of a repeat of its call, and in
	// no list of the agent's own asking.
	repeated bool
}

// receipt names a call whose result is to be acknowledged.
type receipt struct {
	call        string
	correlation string
	attempt     string
	asks        uint64
}

// names reports whether an acknowledgement by these means this receipt.
func (r receipt) names(call, correlation string) bool {
	return r.call != "" && r.call == call || r.correlation != "" && r.correlation == correlation
}

// handout is one list that was written to the agent's side.
type handout struct {
	n           int64
	correlation string
	ids         []string
}

// fold takes one parley/delivered. admitted is where a message that is listed
// for the first time is found.
func (d *deliveries) fold(r sessionlog.DeliveredRecord, admitted func(id string) (delivery, bool)) {
	if r.Acknowledged != 0 {
		d.acknowledge(r.Acknowledged)
	}
	if r.CallID != "" {
		d.items = slices.DeleteFunc(d.items, func(i delivery) bool { return i.kind == kindResult && i.call == r.CallID })
		d.pending = slices.DeleteFunc(d.pending, func(p receipt) bool { return p.call == r.CallID })
		d.prune()
	}
	if r.List == 0 {
		return
	}
	d.last = max(d.last, r.List)
	for _, id := range r.Shown {
		i := slices.IndexFunc(d.items, func(i delivery) bool { return i.id == id })
		if i < 0 {
			item, ok := admitted(id)
			if !ok {
				continue
			}
			i = len(d.items)
			item.repeated = true
			d.items = append(d.items, item)
		}
		d.items[i].count++
		d.items[i].repeated = d.items[i].repeated && r.RepeatOf != ""
	}
	d.lists = append(d.lists, handout{r.List, r.Correlation, r.Shown})
	d.prune()
}

// acknowledge forgets what a list held.
func (d *deliveries) acknowledge(n int64) {
	for _, l := range d.lists {
		if l.n == n {
			d.items = slices.DeleteFunc(d.items, func(i delivery) bool { return slices.Contains(l.ids, i.id) })
		}
	}
	d.prune()
}

// prune forgets lists that hold nothing unacknowledged any more.
func (d *deliveries) prune() {
	d.lists = slices.DeleteFunc(d.lists, func(l handout) bool {
		return !slices.ContainsFunc(d.items, func(i delivery) bool { return slices.Contains(l.ids, i.id) })
	})
}

// owe keeps a result until its receipt.
func (d *deliveries) owe(item delivery) {
	d.settle(item.call)
	d.items = append(d.items, item)
}

// owePending keeps a call whose pending result may have been lost.
func (d *deliveries) owePending(r receipt) {
	d.settle(r.call)
	d.pending = append(d.pending, r)
}

// settle forgets that a call could be joined: it is over, or asked again.
func (d *deliveries) settle(call string) {
	if d != nil {
		d.pending = slices.DeleteFunc(d.pending, func(p receipt) bool { return p.call == call })
	}
}

// over takes note of a settlement that ends a continued call.
func (d *deliveries) over(r sessionlog.SettledRecord) {
	if r.Outcome == OutcomeWithdrawn {
		d.settle(r.CallID)
	}
}

// The reading half works on nil too.

func (d *deliveries) list() int64 {
	if d == nil {
		return 0
	}
	return d.last
}

func (d *deliveries) handouts() []handout {
	if d == nil {
		return nil
	}
	return d.lists
}

func (d *deliveries) open() []delivery {
	if d == nil {
		return nil
	}
	return d.items
}

// writtenAfter is how long a result may take to be written and acknowledged, in
// milliseconds. A bell that rings before would ring for what is on its way.
const writtenAfter = 5000

// undelivered counts results that were never listed and whose own response had
// the time to arrive.
func (d *deliveries) undelivered(now Now) int {
	n := 0
	for _, i := range d.open() {
		if i.count == 0 && now.Wall-i.at >= writtenAfter {
			n++
		}
	}
	return n
}

// unread finds an answer to equal questions that the agent was never listed: the
// result of a call, or a reply that only a repeat of its call was given.
func (d *deliveries) unread(asks uint64) (delivery, bool) {
	for _, i := range d.open() {
		never := i.kind == kindResult && i.count == 0 || i.kind == kindReply && i.repeated && i.attempt != ""
		if never && i.asks == asks {
			return i, true
		}
	}
	return delivery{}, false
}

// owed is the receipt of a call whose pending result may have been lost; of
// another, only its name.
func (d *deliveries) owed(call string) receipt {
	if d != nil {
		for _, p := range d.pending {
			if p.call == call {
				return p
			}
		}
	}
	return receipt{call: call}
}

// lost reports whether a call's pending result may have been lost.
func (d *deliveries) lost(call string) bool {
	return d != nil && slices.ContainsFunc(d.pending, func(p receipt) bool { return p.call == call })
}

// named lists what an acknowledgement by these names means: calls, and lists.
func (d *deliveries) named(call, correlation string) (calls []string, lists []int64) {
	if d == nil {
		return nil, nil
	}
	for _, i := range d.items {
		if i.kind == kindResult && i.names(call, correlation) {
			calls = append(calls, i.call)
		}
	}
	for _, p := range d.pending {
		if p.names(call, correlation) {
			calls = append(calls, p.call)
		}
	}
	for _, l := range d.lists {
		if correlation != "" && l.correlation == correlation {
			lists = append(lists, l.n)
		}
	}
	return calls, lists
}
