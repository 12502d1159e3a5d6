package simulation

import (
	"slices"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/simulation/disk"
)

// policyInvariants say who may end what, and why: the settings of the rules and
// the wishes of those who speak. They came out of mistakes that nothing else saw.
var policyInvariants = []Invariant{
	{"nobody decides for others", "one client's countdown does not end a call that another holds, or may come back to hold after its session began anew, unless the policy is first", []string{"Q-085", "Q-086"}, nobodyDecidesForOthers},
	{"no provider is for legacy calls", "a timed call never fails for want of a client", []string{"Q-047", "Q-069"}, noProviderIsForLegacy},
	{"grace for the unheard", "a deadline that has passed waits for claim_grace after the lease of a claim that was cut off, and after a session began anew", []string{"Q-086", "Q-087"}, graceForTheUnheard},
	{"claims hear of the end", "whoever holds a call hears when it is settled", []string{"Q-071", "Q-092"}, claimsHearOfTheEnd},
	{"who lets go is let go", "a claim ends when its client has passed, or has said that its countdown has ended", []string{"Q-086"}, whoLetsGoIsLetGo},
	{"no claim on an overdue call", "a call whose deadline has passed, and that nobody holds, cannot be claimed", []string{"Q-082"}, noClaimOnAnOverdueCall},
	{"a repeat is accepted", "who repeats an answer after it was accepted is told so again", []string{"P2", "Q-157"}, aRepeatIsAccepted},
	{"a late answer may be unwanted", "an answer that must not be a late one is none", []string{"P2"}, aLateAnswerMayBeUnwanted},
	{"answers are whole", "what was accepted answers each question of its call", []string{"Q-105"}, answersAreWhole},
	{"one speaks", "only the agent that a session has attached writes in its name", []string{"Q-043", "P6"}, oneSpeaks},
	{"taken back by somebody", "a message leaves unread only if somebody has taken it back", []string{"P2", "Q-109"}, takenBackBySomebody},
	{"listed until acknowledged", "what was listed and not acknowledged is listed again", []string{"P2", "F6"}, listedUntilAcknowledged},
	{"a list admits what it lists", "what leaves the inbox with a list is in that list", []string{"P2", "P4"}, aListAdmitsWhatItLists},
	{"a take-over keeps timed questions", "a timed call that was open when another root took over can be answered late", []string{"P2", "Q-143"}, aTakeOverKeepsQuestions},
	{"an end is somebody's", "how a call has ended, and through whom, is recorded with its result; of a take-over, for each call that it ends", []string{"P1", "Q-071"}, anEndIsSomebodys},
	{"joined to its equal", "who asks again is joined to the question that it asked, and to no other", []string{"P5"}, joinedToItsEqual},
	{"a request ends its own wait", "the end of a request ends the wait of its attempt, and of no other", []string{"P5", "Q-065"}, aRequestEndsItsOwn},
	{"a turn ends its calls", "no call of a turn is open when the turn has ended", []string{"L-050", "P7"}, aTurnEndsItsCalls},
	{"answered at once", "in a world in which nothing goes wrong, nobody has to ask twice", []string{"P1", "P7"}, answeredAtOnce},
	{"replies come first", "a late reply waits for the next step, not for the next turn", []string{"L-061", "Q-104"}, repliesComeFirst},
}

func nobodyDecidesForOthers(e *Evidence) {
	if e.Plan.Rules.First {
		return
	}
	for a, l := range e.lives {
		for _, s := range l.settled {
			at, noted := e.spanOf(a, l, s.seq)
			if s.Outcome != "pending" && s.Outcome != "failed" || s.By == "" || !noted {
				continue
			}
			expired := e.expiredAt(a, l, s.By, at)
			for _, h := range e.History.Holds {
				if !e.heldIn(a, l, h) || h.Party == s.By && h.Tab == 0 || h.Framed < at.recorded || h.Framed >= expired {
					continue
				}
				if until := e.letGo(h); until != 0 && until <= at.committed || e.shaken(a, h, at) {
					continue
				}
				e.at(a, s.seq).fail("call %s was ended by %s at %d (event %d), and %s held it since %d. %s", l.call, s.By, at.ended, s.seq, h.Party, h.Framed, a.story(l.call))
			}
			// Nobody holds it yet whose claim has not come back.
			began := a.lastOpen(at.recorded, at.committed)
			grace := e.Plan.Rules.Grace.Milliseconds()
			known := e.calm(0, at.committed, anyJump) // when it ended is read from that clock
			if expired != 0 && due(l.rec) != 0 && began != 0 && known && at.ended < began+grace {
				e.at(a, s.seq).fail("call %s was ended by %s at %d (event %d), and its session began anew at %d; the grace is %d ms. %s", l.call, s.By, at.ended, s.seq, began, grace, a.story(l.call))
			}
		}
	}
}

// expiredAt is when somebody first said that a countdown has ended which may have
// ended a call as it was asked this time; 0: nobody did. Who holds the call from
// later on may have come when that was decided.
func (e *Evidence) expiredAt(a *account, l *life, by string, at span) int64 {
	for s, cmd := range said[*messages.ExpireRequest](e) {
		if cmd.GetSession() == a.name && cmd.GetCallId() == l.call && cmd.GetBy() == by && (s.Answer == nil || s.Answer.At >= at.recorded) {
			return s.At
		}
	}
	return 0
}

func noProviderIsForLegacy(e *Evidence) {
	for a, l := range e.lives {
		for _, r := range l.results {
			if due(l.rec) != 0 && r.Code == string(messages.NoProvider) {
				e.at(a, r.seq).fail("timed call %s failed with %s at event %d. %s", l.call, r.Code, r.seq, a.story(l.call))
			}
		}
	}
}

// renewMS is how often a claim with a lease is heard.
const renewMS = leaseMS * 3 / 10

func graceForTheUnheard(e *Evidence) {
	grace := e.Plan.Rules.Grace.Milliseconds()
	for a, l := range e.lives {
		end, ran := a.ranOut(l)
		s, noted := e.spanOf(a, l, end.seq)
		if !ran || !noted || grace == 0 {
			continue
		}
		for _, h := range e.History.Holds {
			if !e.heldIn(a, l, h) || h.Framed < s.recorded || h.Framed >= s.ended {
				continue
			}
			if cut, only := e.cutOff(a, h, s); only && s.ended < cut-renewMS-e.lag()-e.Plan.Network.DelayMax.Milliseconds()+leaseMS+grace && (h.Over == 0 || h.Over > cut && h.How == "unavailable") && e.passed(h) == 0 {
				e.at(a, end.seq).fail("call %s ran out at %d (event %d), and %s, who held it, was cut off at %d; the lease is %d ms and the grace %d. %s", l.call, s.ended, end.seq, h.Party, cut, leaseMS, grace, a.story(l.call))
			}
		}
		// A session that began anew waits for those who held it.
		if !e.calm(0, s.committed, anyJump) {
			continue // when it ended is read from that clock
		}
		for i, c := range a.log.Commits {
			if i >= len(a.stamps) || c.Kind != disk.KindOpen || c.Epoch != a.by(end.seq).Epoch || i <= a.commit[l.wait] {
				continue
			}
			if s.ended < a.stamps[i].At+grace {
				e.at(a, end.seq).fail("call %s ran out at %d (event %d), and its session began anew at %d; the grace is %d ms. %s", l.call, s.ended, end.seq, a.stamps[i].At, grace, a.story(l.call))
			}
		}
	}
}

// cutOff is when a claim of another host was cut off from its session's, if that
// is all that happened.
func (e *Evidence) cutOff(a *account, h *Hold, s span) (at int64, only bool) {
	if h.Host == s.host || e.Plan.Network.Drop > 0 || a.openedBetween(h.Opened, s.committed) > 0 || e.movedBefore(a, s.committed) {
		return 0, false
	}
	for _, f := range e.History.Faults {
		if f.From > s.committed || e.until(f) < h.Opened {
			continue
		}
		between := f.What == faultPartition && (f.Host == h.Host && f.To == s.host || f.To == h.Host && f.Host == s.host)
		if !between && (f.Host == h.Host || f.Host == s.host || f.What == faultPartition) || f.From <= h.Framed {
			return 0, false
		}
		if between && at == 0 {
			at = f.From
		}
	}
	return at, at != 0
}

// settledSoon is how long a claim may take to hear of the end of its call.
const settledSoon = 2*leaseMS + repeatMS + 5_000

func claimsHearOfTheEnd(e *Evidence) {
	for a, l := range e.lives {
		if len(l.states) < 2 || a.latest[l.call] != l {
			continue
		}
		end := a.stamp(l.states[1].seq).At
		for _, h := range e.History.Holds {
			ended := e.heardBy(a, h, end)
			remote := h.Session == a.name && h.Call == l.call && h.Framed != 0 && h.Framed < ended
			if remote && h.Framed >= a.stamp(l.wait).At && (h.Over == 0 && e.Now > ended || h.Over > ended) && !e.frameLost() {
				e.at(a, l.states[1].seq).fail("%s has held %s since %d; the call ended at %d, and the claim %s. %s", h.Party, l.call, h.Framed, a.stamp(l.states[1].seq).At, overAt(h), a.story(l.call))
			}
		}
	}
}

func whoLetsGoIsLetGo(e *Evidence) {
	if e.frameLost() {
		return
	}
	for _, s := range e.History.Said {
		if !lettingGo(s.Cmd) || s.Answer == nil {
			continue
		}
		if _, refused := s.Answer.Msg.(*messages.Refusal); refused {
			continue
		}
		a := e.account(s.Cmd.GetSession())
		for _, h := range e.History.Holds {
			if h.Name == "" || h.Name != s.Cmd.(interface{ GetClaim() string }).GetClaim() {
				continue
			}
			if by := e.heardBy(a, h, s.Answer.At); h.Over > by || h.Over == 0 && e.Now > by {
				e.heard(s).fail("%s said %s at %d and was told %s at %d, and the claim %s. %s", s.Party, brief(s.Cmd), s.At, brief(s.Answer.Msg), s.Answer.At, overAt(h), a.story(h.Call))
			}
		}
	}
}

// heardBy is when a claim has heard of an end: soon, while its session is where it
// was when it was opened, and nothing goes wrong.
func (e *Evidence) heardBy(a *account, h *Hold, end int64) int64 {
	soon := end + e.slack(a, end, end)
	if h.Framed < end && e.calm(h.Opened, soon, anyFault) && a.openedBetween(h.Opened, soon) == 0 && !e.movedBefore(a, soon) {
		return soon
	}
	return max(end, e.History.Healed) + settledSoon
}

// frameLost: what a host says to a client may be lost, and is not said again.
func (e *Evidence) frameLost() bool { return e.Plan.Network.Drop > 0 || len(e.Plan.Network.Lose) > 0 }

// endLost: what a client says last over a stream may be lost, so that its host
// finds only in time that it is gone.
func (e *Evidence) endLost() bool {
	return e.Plan.Network.Drop > 0 || !e.calm(0, e.Now, func(f *Fault) bool { return f.What == faultOffline })
}

func overAt(h *Hold) string {
	if h.Over == 0 {
		return "is still held"
	}
	return "was held until " + itoa(h.Over)
}

func noClaimOnAnOverdueCall(e *Evidence) {
	if e.Plan.Hosts > 1 {
		return // the frame does not say which host had the session
	}
	grace := e.Plan.Rules.Grace.Milliseconds()
	_, skew := e.skews(0)
	for a, l := range e.lives {
		deadline := due(l.rec)
		if deadline == 0 || len(a.stamps) == 0 {
			continue
		}
		for _, h := range e.History.Holds {
			if h.Session != a.name || h.Call != l.call || h.Framed == 0 || h.Opened < a.stamp(l.wait).At {
				continue
			}
			if len(l.states) > 1 && a.stamp(l.states[1].seq).At < h.Opened || a.latest[l.call] != l {
				continue
			}
			early := h.Opened - grace - e.Plan.Network.DelayMax.Milliseconds()
			if wallStart+h.Opened+skewAt(e, 0, h.Opened, skew) < deadline || a.openedBetween(early, h.Framed) > 0 ||
				!e.calm(early, h.Framed, func(f *Fault) bool { return f.What != faultClock || f.By < 0 }) {
				continue
			}
			held := slices.ContainsFunc(e.History.Holds, func(o *Hold) bool {
				return o != h && o.Session == h.Session && o.Call == h.Call && o.Opened <= h.Framed && (o.Over == 0 || o.Over >= early || e.endLost())
			})
			if !held {
				e.on(h.Line).fail("%s opened %s at %d, after its deadline at %d, and holds it since %d. %s", h.Party, l.call, h.Opened, deadline-wallStart, h.Framed, a.story(l.call))
			}
		}
	}
}

func aRepeatIsAccepted(e *Evidence) {
	for s, no := range e.refusals {
		cmd, ok := s.Cmd.(*messages.SubmitRequest)
		if !ok {
			continue
		}
		switch messages.Code(no.GetCode()) {
		case messages.Settled, messages.ReplyQueued, messages.NotAnswerable, messages.BadAnswer, messages.NotFound:
		default:
			continue
		}
		a := e.account(cmd.GetSession())
		for _, r := range a.accepted(cmd.GetSubmissionId()) {
			if at := a.stamp(r.seq); at.Step > 0 && at.Step < s.Step && r.CallID == cmd.GetCallId() {
				e.heard(s).fail("%s repeated %s at %d and was refused with %s; it was accepted at event %d, at %d. %s", s.Party, cmd.GetSubmissionId(), s.At, no.GetCode(), r.seq, at.At, a.story(cmd.GetCallId()))
			}
		}
	}
}

func aLateAnswerMayBeUnwanted(e *Evidence) {
	wants := map[string]bool{}
	unwanted := map[string]bool{}
	for _, cmd := range said[*messages.SubmitRequest](e) {
		key := cmd.GetSession() + " " + cmd.GetSubmissionId()
		wants[key] = wants[key] || !rejects(cmd)
		unwanted[key] = unwanted[key] || rejects(cmd)
	}
	for _, a := range e.accounts {
		for _, r := range a.settled {
			if key := a.name + " " + r.SubmissionID; r.Outcome == "queued" && unwanted[key] && !wants[key] {
				e.at(a, r.seq).fail("%s by %s was not to be a late answer, and is reply %s. %s", r.SubmissionID, r.By, r.MessageID, a.story(r.CallID))
			}
		}
	}
}

func answersAreWhole(e *Evidence) {
	given := map[string][]*messages.SubmitRequest{}
	for _, cmd := range said[*messages.SubmitRequest](e) {
		key := cmd.GetSession() + " " + cmd.GetSubmissionId()
		given[key] = append(given[key], cmd)
	}
	for a, l := range e.lives {
		for _, r := range l.settled {
			whole := func(cmd *messages.SubmitRequest) bool { return covers(l.ids, cmd.GetAnswers()) }
			if said := given[a.name+" "+r.SubmissionID]; len(said) > 0 && r.Outcome != "reply_withdrawn" && !slices.ContainsFunc(said, whole) {
				e.at(a, r.seq).fail("%s was accepted for %s, which asks %s", brief(said[0]), l.call, quote(l.ids))
			}
		}
	}
}

func oneSpeaks(e *Evidence) {
	for _, s := range e.History.Said {
		r, ok := s.Cmd.(interface{ GetRoot() string })
		if !ok || s.Answer == nil || r.GetRoot() == "" {
			continue
		}
		switch s.Cmd.(type) {
		case *messages.AttachRequest:
			continue
		case *messages.AskRequest:
			if len(s.Waiting) > 0 {
				continue // it was taken before
			}
		}
		if _, no := s.Answer.Msg.(*messages.Refusal); no {
			continue
		}
		if st := e.between(s, ""); !st.root(func(at rootAt) bool { return at.root == r.GetRoot() }) {
			e.heard(s).fail("%s said %s at %d in the name of %s and was told %s; %v spoke for the session", s.Party, brief(s.Cmd), s.At, r.GetRoot(), brief(s.Answer.Msg), st.roots)
		}
		e.spokeThen(s, r.GetRoot())
	}
}

// spokeThen: what an agent admits is written while it speaks for the session, or
// it speaks for it after that, and is told again.
func (e *Evidence) spokeThen(s *Said, root string) {
	admitted, ok := s.Answer.Msg.(*messages.AdmitMessagesResponse)
	if !ok {
		return
	}
	a := e.account(s.Cmd.GetSession())
	ends := a.ends(s.Step, s.Answer.Sent)
	for _, f := range a.admissions(admitted.GetMessages()) {
		spoke := func(seq int64) bool { return seq > f.seq && a.rootBefore(seq).root == root }
		if f.seq >= 0 && a.rootBefore(f.seq).root != root && !slices.ContainsFunc(ends, spoke) {
			e.at(a, f.seq).fail("%s said %s at %d in the name of %s and was told %s, which was written at event %d, when %s spoke for the session", s.Party, brief(s.Cmd), s.At, root, brief(admitted), f.seq, a.rootBefore(f.seq).root)
		}
	}
}

func takenBackBySomebody(e *Evidence) {
	asked := map[string]bool{}
	for _, cmd := range said[*messages.WithdrawMessageRequest](e) {
		asked[cmd.GetSession()+" "+cmd.GetMessageId()] = true
	}
	for _, a := range e.accounts {
		for _, m := range a.messages {
			if len(m.withdrawn) > 0 && !asked[a.name+" "+m.ID] {
				e.at(a, m.withdrawn[0]).fail("message %s of session %s was taken back at event %d, and nobody had asked for it", m.ID, a.name, m.withdrawn[0])
			}
		}
	}
}

// listedUntilAcknowledged: a list of everything holds what earlier lists held,
// unless their token was shown.
func listedUntilAcknowledged(e *Evidence) {
	given := map[string]bool{} // tokens, by the session that gave them
	for t := range told[*messages.CollectRepliesRequest, *messages.CollectRepliesResponse](e) {
		given[t.cmd.GetSession()+" "+t.msg.GetToken()] = true
	}
	said := map[string]int64{} // tokens that were shown, and the step at which they first were
	for _, s := range e.History.Said {
		cmd, ok := s.Cmd.(*messages.CollectRepliesRequest)
		if !ok {
			continue
		}
		if key := cmd.GetSession() + " " + itoa(listNumber(cmd.GetAfter())); given[cmd.GetSession()+" "+cmd.GetAfter()] {
			if at, before := said[key]; !before || int64(s.Step) < at {
				said[key] = int64(s.Step)
			}
		}
	}
	for _, a := range e.accounts {
		for i, h := range a.handed {
			if h.Acknowledged == 0 {
				continue
			}
			at, shown := said[a.name+" "+itoa(h.Acknowledged)]
			if stamp := a.stamp(h.seq); !shown || stamp.Step > 0 && int64(stamp.Step) < at {
				e.at(a, h.seq).fail("session %s: list %d is acknowledged at event %d, and nobody has shown its token by then (record %d)", a.name, h.Acknowledged, h.seq, i)
			}
		}
	}
	for _, a := range e.accounts {
		open := map[string]int64{} // listed, by which list
		for _, h := range a.handed {
			if h.Acknowledged != 0 {
				for _, old := range a.handed {
					if old.List == h.Acknowledged {
						for _, id := range old.Shown {
							delete(open, id)
						}
					}
				}
			}
			if h.CallID != "" {
				for _, l := range a.lives {
					if r, has := l.result(); has && l.call == h.CallID && r.seq < h.seq {
						delete(open, resultName(l, r))
					}
				}
			}
			if h.List == 0 || h.RepeatOf != "" {
				continue
			}
			for _, id := range sortedIDs(keysOf(open), func(s string) string { return s }) {
				if !slices.Contains(h.Shown, id) && a.room(h, id) {
					e.at(a, h.seq).fail("session %s: list %d at event %d does not hold %s of list %d, which nobody has acknowledged", a.name, h.List, h.seq, id, open[id])
				}
			}
			for _, id := range h.Shown {
				open[id] = h.List
			}
		}
	}
}

// listBytesMax is how long the texts of a list are together, if they are not one.
const listBytesMax = 256 << 10

// room: a list would have had some for a message, too.
func (a *account) room(h handedAt, id string) bool {
	bytes := 0
	for _, id := range append(slices.Clip(h.Shown), id) {
		if q := a.byID[id]; q != nil {
			bytes += len(q.Text())
		}
	}
	return bytes <= listBytesMax
}

func aListAdmitsWhatItLists(e *Evidence) {
	for _, a := range e.accounts {
		for _, h := range a.handed {
			for _, m := range a.messages {
				if with := func(seq int64) bool { return a.commit[seq] == a.commit[h.seq] }; h.List != 0 && slices.ContainsFunc(m.admitted, with) && !slices.Contains(h.Shown, m.ID) {
					e.at(a, h.seq).fail("session %s: message %s was admitted with list %d at event %d, and is not in it", a.name, m.ID, h.List, h.seq)
				}
			}
		}
	}
}

func keysOf(m map[string]int64) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func aTakeOverKeepsQuestions(e *Evidence) {
	for a, l := range e.lives {
		for _, s := range l.settled {
			if s.Outcome == "root_changed" && !l.rec.Legacy && l.stateBefore(s.seq+1) != continued {
				e.at(a, s.seq).fail("timed call %s was open when %s took over at event %d, and is %s. %s", l.call, s.By, s.seq, l.stateBefore(s.seq+1), a.story(l.call))
			}
		}
	}
	for _, a := range e.accounts {
		for i, r := range a.roots {
			if i == 0 {
				continue
			}
			for _, l := range a.lives {
				if l.stateBefore(r.seq) == open {
					e.at(a, r.seq).fail("call %s of session %s is open at event %d, after %s took over", l.call, a.name, r.seq, r.root)
				}
			}
		}
	}
}

// anEndIsSomebodys leaves out what failed as it was asked: it has had no end of
// its own, and nobody has lost to it.
func anEndIsSomebodys(e *Evidence) {
	for a, l := range e.lives {
		r, ended := l.result()
		if !ended || l.wait < 0 || a.commit[r.seq] == a.commit[l.wait] {
			continue
		}
		by, took := a.tookOver(a.commit[r.seq])
		if !slices.ContainsFunc(l.settled, func(s settledAt) bool {
			return a.commit[s.seq] == a.commit[r.seq] && (!took || s.Outcome == "root_changed" && s.By == by)
		}) {
			e.at(a, r.seq).fail("call %s ended at event %d, taken over by %q, and no record with it says so. %s", l.call, r.seq, by, a.story(l.call))
		}
	}
}

// tookOver is who took the session over in a commit.
func (a *account) tookOver(commit int) (root string, took bool) {
	i := slices.IndexFunc(a.roots, func(r rootAt) bool { return a.commit[r.seq] == commit })
	if i < 0 {
		return "", false
	}
	return a.roots[i].root, true
}

func repliesComeFirst(e *Evidence) {
	for _, a := range e.accounts {
		for _, ev := range a.log.Events {
			if ev.Type != sessionlog.TypeInboxSpliced {
				continue
			}
			s, err := sessionlog.ReadSplice(ev.Data)
			if err != nil || s.Target != sessionlog.NextTurn {
				continue
			}
			for _, m := range s.Inserted {
				if m.ReplyTo != "" {
					e.at(a, ev.Seq).fail("reply %s to %s waits for a turn of its own, by event %d of session %s", m.ID, m.ReplyTo, ev.Seq, a.name)
				}
			}
		}
	}
}

func joinedToItsEqual(e *Evidence) {
	for s, cmd := range said[*messages.AskRequest](e) {
		heard := s.Waiting
		if s.Answer != nil {
			heard = append(slices.Clip(heard), *s.Answer)
		}
		for _, h := range heard {
			m, ok := h.Msg.(*messages.AskResponse)
			if !ok || m.GetJoined() == "" {
				continue
			}
			l := e.account(cmd.GetSession()).lifeOf(m.GetJoined(), m.GetCallId())
			if questions, _, _ := sessionlog.ParseArguments(cmd.GetArguments()); l != nil && l.asks != string(questions) {
				e.on(h.Line).fail("%s asked %.200s and was joined to %s, which asks %.200s", s.Party, questions, l.attempt, l.asks)
			}
		}
	}
}

func aRequestEndsItsOwn(e *Evidence) {
	said := map[string]bool{}
	for _, s := range e.History.Said {
		if cmd, ok := s.Cmd.(*messages.EndForegroundRequest); ok {
			said[cmd.GetSession()+" "+cmd.GetCallId()+" "+cmd.GetAttempt()] = true
		}
	}
	for a, l := range e.lives {
		for _, s := range l.settled {
			if s.Outcome == "pending" && s.By == "" && s.Reason != "" && !said[a.name+" "+l.call+" "+l.attempt] {
				e.at(a, s.seq).fail("attempt %s ended at event %d since %q, and nobody has said so of it. %s", l.attempt, s.seq, s.Reason, a.story(l.call))
			}
		}
	}
}

// answeredAtOnce: repeats hide what a host has lost. Where nothing is lost there
// must be none; only who waits for people asks now and then whether it is still
// waited for.
func answeredAtOnce(e *Evidence) {
	p := e.Plan
	if len(e.History.Faults) > 0 && !e.calm(0, e.Now, anyFault) || p.Network.Drop > 0 || p.Network.DelayMax.Milliseconds() > answerWithin/10 ||
		p.Disk.Refuse > 0 || p.Disk.InDoubt > 0 || p.Disk.DelayMax.Milliseconds() > answerWithin/100 || p.Schedule.Early > 0 {
		return
	}
	for _, s := range e.History.Said {
		if s.Answer == nil {
			continue
		}
		allowed := 1
		if len(s.Waiting) > 0 || listens(s.Cmd) {
			allowed += int((s.Answer.At - s.At) / aliveWithin)
		}
		if s.Tries > allowed {
			e.heard(s).fail("%s said %s at %d, %d times, until it was told %s at %d", s.Party, brief(s.Cmd), s.At, s.Tries, brief(s.Answer.Msg), s.Answer.At)
		}
	}
}

func aTurnEndsItsCalls(e *Evidence) {
	for a, l := range e.lives {
		for _, t := range a.lengths {
			if t.end > l.at && t.start < l.at && l.stateBefore(t.end+1) == open {
				e.at(a, t.end).fail("turn %d of session %s ended at event %d, and call %s of it is open. %s", t.turn, a.name, t.end, l.call, a.story(l.call))
			}
		}
	}
}
