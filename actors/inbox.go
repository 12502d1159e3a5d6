package actors

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Inbox holds what is volatile about a session's inbox: which messages are
// marked for which turn, submissions parked behind one that is being recorded,
// and agents that wait for a bell. The lists themselves live in the session's
// fold only, and a message stays in its list until it is admitted (promise 4),
// so a lost inbox loses nothing.
type Inbox struct {
	rules      *Rules
	part       PartID
	seen       uint64
	corr       uint32
	settling   bool
	rivals     []LateSubmit // [0] is the one being recorded while settling
	marks      map[string]int64
	handed     handed
	collectors []Addr
}

// handed is what was last marked, and who asked for it.
type handed struct {
	to  Addr
	ids []string
}

// NewInbox builds an inbox part.
func NewInbox(rules *Rules, part PartID) *Inbox { return &Inbox{rules: rules, part: part} }

// Apply does nothing: an inbox part has no durable field.
func (b *Inbox) Apply(sessionlog.Event) {}

// Resume has nothing to do.
func (b *Inbox) Resume(Now) Effects { return Effects{} }

// Step decides one input.
func (b *Inbox) Step(_ Now, in Envelope) Effects {
	var fx Effects
	b.seen++
	switch m := in.Msg.(type) {
	case LateSubmit:
		b.rivals = append(b.rivals, m)
		if !b.settling {
			b.tryNext(&fx)
		}
	case Recorded:
		if b.settling && m.Corr == b.corr {
			b.answer(&messages.SubmitResponse{Settlement: m.End.Settlement, Repeated: m.Again}, &fx)
		}
	case Refused:
		if b.settling && m.Corr == b.corr {
			b.answer(m.Err.Wire(), &fx)
		}
	case ClaimMarks:
		b.claim(m, &fx)
	case AdmitMarks:
		b.checkAdmit(m, &fx)
	case TurnEnded: // Q-111, and deviation D1: the reply is queued again
		var freed []string
		for id, turn := range sorted(b.marks) {
			if m.Turn == 0 || turn == m.Turn {
				delete(b.marks, id)
				freed = append(freed, id)
			}
		}
		b.ring(freed, &fx)
	case Admitted:
		for _, id := range m.IDs {
			delete(b.marks, id)
		}
	case Inserted:
		b.ring(m.IDs, &fx)
	case Await:
		b.await(m, &fx)
	case DropAsker:
		b.collectors = without(b.collectors, m.From)
	default:
		b.seen-- // not of its session
		return fx
	}
	if !b.settling && len(b.marks) == 0 && len(b.collectors) == 0 {
		fx.Up = append(fx.Up, PartIdle{Part: b.part, Seen: b.seen})
	}
	return fx
}

// tryNext asks the session to queue the next reply. One at a time for the
// whole inbox: rivals for one call must be, and humans are not that fast.
func (b *Inbox) tryNext(fx *Effects) {
	b.settling = len(b.rivals) > 0
	if b.settling {
		b.corr++
		fx.Up = append(fx.Up, Record{Part: b.part, Corr: b.corr,
			Outcome: Outcome{Kind: OutcomeReply, Submit: b.rivals[0].Req, Seq: b.rivals[0].Seq}})
	}
}

func (b *Inbox) answer(m messages.Message, fx *Effects) {
	fx.Replies = append(fx.Replies, Reply{b.rivals[0].From, m})
	b.rivals = slices.Delete(b.rivals, 0, 1)
	b.tryNext(fx)
}

// claim marks messages for a turn (L-061, Q-108): those named, or every
// unmarked one of next-step and, for a turn's first step, one of next-turn. Who
// asks again, since its answer was lost, is handed the same.
func (b *Inbox) claim(m ClaimMarks, fx *Effects) {
	var ids []string
	if m.From == b.handed.to && !m.From.IsZero() {
		for _, id := range b.handed.ids {
			if turn, marked := b.marks[id]; marked && turn == m.Turn {
				ids = append(ids, id)
			}
		}
		fx.Up = append(fx.Up, Marked{From: m.From, IDs: ids})
		return
	}
	free := func(id string) bool { _, marked := b.marks[id]; return !marked }
	if len(m.IDs) > 0 {
		for _, id := range m.IDs {
			if slices.Contains(m.NextStep, id) || slices.Contains(m.NextTurn, id) {
				ids = append(ids, id)
			}
		}
	} else {
		for _, id := range m.NextStep {
			if free(id) {
				ids = append(ids, id)
			}
		}
		if i := slices.IndexFunc(m.NextTurn, free); m.FirstStep && i >= 0 {
			ids = append(ids, m.NextTurn[i])
		}
	}
	for _, id := range ids {
		if b.marks == nil {
			b.marks = map[string]int64{}
		}
		b.marks[id] = m.Turn
	}
	b.handed = handed{m.From, ids}
	fx.Up = append(fx.Up, Marked{From: m.From, IDs: ids})
}

// checkAdmit refuses a message that is marked for another turn. One without a
// mark may be admitted: marks do not survive a restart, the lists do.
func (b *Inbox) checkAdmit(m AdmitMarks, fx *Effects) {
	var err *messages.Error
	for _, id := range m.Req.GetMessageIds() {
		if turn, marked := b.marks[id]; marked && turn != m.Req.GetTurn() && m.Req.GetTurn() != 0 {
			err = messages.Refuse(messages.MessageGone, "message %q is marked for turn %d, not %d", id, turn, m.Req.GetTurn())
			break
		}
	}
	fx.Up = append(fx.Up, AdmitChecked{From: m.From, Req: m.Req, Err: err})
}

func (b *Inbox) await(m Await, fx *Effects) {
	if !slices.Contains(b.collectors, m.From) {
		b.collectors = append(b.collectors, m.From)
	}
	b.ring(m.IDs, fx)
}

// ring answers the agents that wait, once one of these is unmarked.
func (b *Inbox) ring(ids []string, fx *Effects) {
	n := 0
	for _, id := range ids {
		if _, marked := b.marks[id]; !marked {
			n++
		}
	}
	if n == 0 {
		return
	}
	for _, a := range b.collectors {
		fx.Replies = append(fx.Replies, Reply{a, &messages.AwaitInboxResponse{Queued: int32(min(n, 1<<30))}})
	}
	b.collectors = nil
}
