package simulation

import (
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/disk"
)

// What the world notes for its checks.

// observe notes when an operation of the disk changed a session, and the line of
// the trace that says so.
func (w *World) observe(op *disk.Op, line int) {
	if !op.Recorded() {
		return
	}
	if w.History.Written == nil {
		w.History.Written = map[string][]Stamp{}
	}
	w.History.Written[op.Session] = append(w.History.Written[op.Session], Stamp{w.now, w.steps, line})
	for _, h := range w.hosts {
		h.show()
	}
}

// began notes that something goes wrong from now on. A jump is over at once.
func (w *World) began(f *Fault) {
	f.From = w.now
	switch f.What {
	case faultClock:
		f.Until = w.now
	case faultMove: // until everybody knows
	default:
		f.Until = -1
	}
	w.History.Faults = append(w.History.Faults, f)
}

// ended notes that it is over. Healing ends everything.
func (w *World) ended(what string, host, to int) {
	for _, f := range w.History.Faults {
		if f.Until < 0 && f.What == what && f.Host == host && f.To == to {
			f.Until = w.now
		}
	}
}

// hears is what a party is told now, by the line that was said last: which of
// its tries that answers, and when its host said it, in steps of the world.
func (w *World) hears(asks, sent int, m messages.Message) Heard {
	return Heard{At: w.now, Step: w.steps, Sent: sent, Asks: asks, Line: w.trace.n, Msg: m}
}
