package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/parleyrun/parley/messages"
)

// cardInvariants are about what a person sees and does at the cards of a client.
// They know the pages of its tabs from outside: what came in, what was shown
// after it, what was sent.
var cardInvariants = []Invariant{
	{"a touched card does not give up", "a card that its person is at, has written on or has taken time for does not send that its countdown ended", []string{"Q-178", "Q-180", "Q-181", "Q-183"}, aTouchedCardDoesNotGiveUp},
	{"a countdown is as long as it says", "a card gives up when as much time as its claim said has passed on its client's clock, without the time that its person was at it, and a second later at most", []string{"Q-176", "Q-177", "Q-179", "Q-182"}, aCountdownIsAsLong},
	{"an ended question takes no answer", "a tab that was told that a question has ended shows no card that takes an answer to it, and sends none", []string{"Q-172", "Q-211"}, anEndedQuestionTakesNone},
	{"a live card holds its wait", "a card whose answer would go to the waiting agent holds a claim", []string{"Q-200", "Q-205"}, aLiveCardHolds},
	{"an answer keeps its claim", "a card lets go of no claim while its answer is on its way", []string{"Q-203"}, anAnswerKeepsItsClaim},
	{"sent once, as written", "a card sends an answer when its person says so, once, with what the person wrote", []string{"Q-222", "Q-232", "Q-233"}, sentOnceAsWritten},
	{"the person is told", "who sent an answer is told that it was taken if it was, and else why not", []string{"Q-185", "Q-235"}, thePersonIsTold},
	{"a refused answer is still there", "an answer that was refused is still on its card, to be sent again, if the question still takes one", []string{"P2", "Q-234", "Q-235"}, aRefusedAnswerIsStillThere},
	{"drafts outlive their page", "what was written on a card is there again after its page was loaded again, unless the store was lost, and on no other question's", []string{"Q-223", "Q-224", "M5"}, draftsOutliveTheirPage},
	{"a card is what its tab was told", "a tab has a card of each question that it was told can be answered, and of no other, and the card says which kind it is", []string{"Q-170", "Q-210", "Q-211", "Q-212"}, aCardIsWhatWasTold},
	{"a hidden card goes on", "closing the card of a call with an id sends nothing and lets go of nothing", []string{"Q-187"}, aHiddenCardGoesOn},
	{"a closed page passes on", "a tab that is closed passes on every question that it holds, also of hidden cards", []string{"Q-174"}, aClosedPagePassesOn},
	{"who is at a card holds", "whoever comes to the card of an open question, takes time for it or writes on it holds its wait from then on, and so does who has lost its claim, unless nobody waits there", []string{"Q-201", "Q-204", "Q-205"}, whoIsAtACardHolds},
	{"rows are told in order", "a tab is told what was recorded of a question, in the order in which it was, and of nothing else", []string{"N7", "N9"}, rowsAreToldInOrder},
	{"shown is what is recorded", "in the end every tab shows what the log says, and all tabs the same", []string{"P7", "Q-210", "Q-211"}, shownIsWhatIsRecorded},
}

// giveUpSlack is how late a card may give up: its next tick, at a client that is
// slow.
const giveUpSlack = 1_000 + 3*earlyMax

// cardStory is a card in one page of a tab, up to a mark.
type cardStory struct {
	synced  bool   // the page has seen every row there was when it was loaded
	shows   *Shown // nil: there is no card
	told    string // the state of the last row
	seq     int64  // and of which call
	frame   *Mark  // the last one; nil: none
	counted int64  // by the client's clock, since that frame
	from    int64  // and until when
	jumped  int64  // when that clock last jumped while it counted; 0: never
	holds   bool   // its claim has had its frame
	passed  bool   // its last claim ended without one: nobody waits there
	back    bool   // the person came back before the claim that was passed on was over
	at      bool   // the person is at it
	touched bool   // the person has written, or taken time
	sent    *Said  // an answer under way
	wrote   string // the draft that it was made of
}

// takesAnswers: the tab was told that the question can be answered.
func (c *cardStory) takesAnswers() bool {
	return c.told == string(open) || c.told == string(continued)
}

func (c *cardStory) draft() string {
	if c.shows == nil {
		return "nothing"
	}
	return c.shows.Draft
}

// counts is how much of the countdown has passed.
func (c *cardStory) counts(at int64) int64 {
	if c.at {
		return c.counted
	}
	return c.counted + at - c.from
}

// stop counts up to a time.
func (c *cardStory) stop(at int64) { c.counted, c.from = c.counts(at), at }

// walk visits the marks of a page that are about a call, each with the story of
// its card: as it was, but for what the mark itself tells.
func (t *Tab) walk(visit func(m *Mark, c *cardStory)) {
	stories := map[string]*cardStory{}
	synced := false
	for i := range t.Marks {
		m := &t.Marks[i]
		switch m.What {
		case doClock:
			for _, c := range stories {
				if !c.at {
					c.counted, c.jumped = c.counted+m.JumpMS, max(1, m.At) // 0 is never
				}
			}
		case markSynced:
			synced = true
		}
		if m.Call == "" {
			continue
		}
		c := stories[m.Call]
		if c == nil {
			c = &cardStory{}
			stories[m.Call] = c
		}
		switch m.What {
		case markRow:
			c.passed = c.passed && c.told == m.State
			c.told, c.seq = m.State, m.Seq
		case markEnd:
			c.passed, c.holds = !m.Lost && !c.holds, false
		case markFrame:
			c.holds = true
		}
		c.synced = synced
		visit(m, c)
		c.goOn(m)
	}
}

// goOn is the story after a mark.
func (c *cardStory) goOn(m *Mark) {
	changed := c.shows != nil && m.Shows != nil && c.shows.Seq != m.Shows.Seq
	if m.Shows == nil || changed || c.shows == nil && m.Shows != nil {
		*c = cardStory{told: c.told, seq: c.seq}
	}
	before := c.shows
	if c.shows = m.Shows; m.Shows == nil || m.Shows.Review {
		return
	}
	if before == nil && kept(m.Shows.Draft).Wait != "" {
		c.touched = true // as it was when its page was left
	}
	if m.comesBack(before) {
		c.back = before.Held && before.Channel == "none" && c.sent == nil && m.Shows.Key == before.Key
	}
	switch m.What {
	case markEnd, doPass:
		c.back = false
	case doFocus:
		if c.stop(m.At); c.frame != nil && !c.frame.Never && !c.at && !c.touched {
			c.counted = min(c.counted, c.frame.LeftMS) // what is left is frozen, and is nothing at least
		}
		c.at = c.at || !c.touched
	case doBlur:
		c.stop(m.At)
		if c.at = false; c.jumped != 0 { // that clock is looked at from here on
			c.jumped = max(1, m.At)
		}
	case doEdit, doTime:
		c.touched = c.touched || m.What == doTime || before != nil && before.Draft != m.Shows.Draft
	case markFrame:
		c.frame, c.counted, c.from = m, 0, m.At
	case doSubmit:
		if s := m.submission(); s != nil && before != nil {
			c.sent, c.wrote = s, before.Draft
		}
	case markReplied:
		if m.Said == c.sent {
			c.sent = nil
		}
	}
}

// submission is the answer that was sent at a mark.
func (m *Mark) submission() *Said {
	for _, s := range m.Sent {
		if _, ok := s.Cmd.(*messages.SubmitRequest); ok {
			return s
		}
	}
	return nil
}

// gaveUp: at this mark the card said that its countdown had ended.
func (m *Mark) gaveUp() bool {
	return slices.ContainsFunc(m.Sent, func(s *Said) bool { _, ok := s.Cmd.(*messages.ExpireRequest); return ok })
}

// cards walks all pages.
func (e *Evidence) cards(visit func(t *Tab, m *Mark, c *cardStory)) {
	for _, t := range e.History.Tabs {
		t.walk(func(m *Mark, c *cardStory) { visit(t, m, c) })
	}
}

// saw reports a breach at a mark.
func (e *Evidence) saw(t *Tab, m *Mark, format string, args ...any) {
	e.on(m.Line).fail("%s, tab %d, at %d, %s of %s: %s", t.Party, t.N, m.At, m.What, m.Call, fmt.Sprintf(format, args...))
}

func aTouchedCardDoesNotGiveUp(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		if m.gaveUp() && (c.at || c.touched) {
			e.saw(t, m, "it gave up; it showed: %v", c.shows)
		}
	})
}

func aCountdownIsAsLong(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		if c.frame == nil {
			return
		}
		counted := c.counts(m.At)
		if m.gaveUp() && (c.frame.Never || counted < c.frame.LeftMS) {
			e.saw(t, m, "it gave up after %d ms, its claim said %d at %d", counted, c.frame.LeftMS, c.frame.At)
		}
		looked := c.jumped == 0 || m.At > c.jumped+giveUpSlack // at its clock, since that jumped
		if looked && m.What != markFrame && m.Shows != nil && m.Shows.Running && counted > c.frame.LeftMS+giveUpSlack && !c.at && m.Shows.Seq == c.shows.Seq {
			e.saw(t, m, "its countdown still runs after %d ms, its claim said %d at %d", counted, c.frame.LeftMS, c.frame.At)
		}
	})
}

func anEndedQuestionTakesNone(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		if c.told == "" || c.takesAnswers() {
			return
		}
		if s := m.Shows; s != nil && !s.Review && !s.Frozen && s.Channel != "none" {
			e.saw(t, m, "it takes an answer by %s, and was told that the question is %s", s.Channel, c.told)
		}
		if s := m.submission(); s != nil {
			e.saw(t, m, "it sent %s, and was told that the question is %s", brief(s.Cmd), c.told)
		}
	})
}

func aLiveCardHolds(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, _ *cardStory) {
		s := m.Shows
		if s == nil || s.Channel != "waterfall" {
			return
		}
		if !slices.ContainsFunc(e.History.Holds, func(h *Hold) bool {
			return h.Party == t.Party && h.Tab == t.N && h.Session == t.Session && h.Call == m.Call &&
				h.Framed != 0 && h.Framed <= max(1, m.At) && (h.Over == 0 || h.Over >= m.At)
		}) {
			e.saw(t, m, "an answer would go to the agent that waits, and no claim holds that: %v", s)
		}
	})
}

func anAnswerKeepsItsClaim(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		anew := c.shows != nil && c.seq != c.shows.Seq
		sent := cmp.Or(m.submission(), c.sent)
		if sent != nil && len(m.LetGo) > 0 && m.What != markReplied && !anew {
			e.saw(t, m, "it lets go of its claim, and %s has no answer", brief(sent.Cmd))
		}
	})
}

func sentOnceAsWritten(e *Evidence) {
	for _, t := range e.History.Tabs {
		for i := range t.Marks {
			m := &t.Marks[i]
			for _, s := range m.Sent {
				if _, ok := s.Cmd.(*messages.SubmitRequest); ok && m.What != doSubmit {
					e.saw(t, m, "it sent %s, and nobody had said so", brief(s.Cmd))
				}
			}
		}
	}
	words := map[string]string{}
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		s := m.submission()
		if s == nil {
			return
		}
		cmd := s.Cmd.(*messages.SubmitRequest)
		before, again := words[cmd.GetSubmissionId()]
		words[cmd.GetSubmissionId()] = c.draft()
		switch {
		case again && !sameWords(before, c.draft()):
			e.saw(t, m, "it sent %s with %s, which it had sent with %s", cmd.GetSubmissionId(), c.draft(), before)
		case c.sent != nil:
			e.saw(t, m, "it sent %s, and %s was still under way", cmd.GetSubmissionId(), brief(c.sent.Cmd))
		case len(m.Sent) > 1:
			e.saw(t, m, "it sent %d commands for one answer", len(m.Sent))
		case c.shows == nil || !kept(c.shows.Draft).says(cmd.GetAnswers()):
			e.saw(t, m, "it sent %s, and showed %v with %s", brief(cmd), c.shows, c.draft())
		case cmd.GetCallSeq() != c.shows.Seq:
			e.saw(t, m, "it sent an answer to the call at event %d, and showed that at %d", cmd.GetCallSeq(), c.shows.Seq)
		}
	})
}

func thePersonIsTold(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, _ *cardStory) {
		if m.What != markReplied {
			return
		}
		no, refused := m.Said.Answer.Msg.(*messages.Refusal)
		switch {
		case len(m.Told) != 1:
			e.saw(t, m, "the host said %s, and the person was told %v", brief(m.Said.Answer.Msg), m.Told)
		case refused && !errors.Is(m.Told[0], messages.Refuse(messages.Code(no.GetCode()), "")), !refused && m.Told[0] != nil:
			e.saw(t, m, "the host said %s, and the person was told %v", brief(m.Said.Answer.Msg), m.Told)
		}
	})
}

func aRefusedAnswerIsStillThere(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		if m.What != markReplied || m.Said != c.sent || !c.takesAnswers() {
			return
		}
		if _, refused := m.Said.Answer.Msg.(*messages.Refusal); !refused || c.shows == nil || c.shows.Key != cardKey(t, m.Call) {
			return // of a call without an id the card goes with its request
		}
		s, was := m.Shows, c.shows
		if s == nil || s.Frozen || !sameWords(s.Draft, c.wrote) || was.Seated && !s.Seated || was.Held && c.told == string(open) && s.Channel != "waterfall" {
			e.saw(t, m, "%s was refused; it was made of %s, and now it shows: %v", brief(m.Said.Cmd), c.wrote, s)
		}
	})
}

// aCardIsWhatWasTold leaves out what waits for the word about an answer, but for
// that it waits.
func aCardIsWhatWasTold(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		s := m.Shows
		switch {
		case s == nil && c.sent != nil && m.What != markReplied && c.seq == c.shows.Seq:
			e.saw(t, m, "its card is gone, and %s has no answer", brief(c.sent.Cmd))
		case s != nil && s.Frozen && c.sent == nil && m.What == markRow && c.told == string(continued):
			e.saw(t, m, "it was told that the question goes on, and shows: %v", s)
		case s != nil && (s.Review || s.Frozen || s.Key != cardKey(t, m.Call)), s == nil && c.shows != nil && c.shows.Key != cardKey(t, m.Call):
		case s == nil && c.takesAnswers() && c.shows != nil && !c.shows.Review:
			e.saw(t, m, "its card is gone, and it was told that the question is %s", c.told)
		case s != nil && c.takesAnswers() && s.State != c.told:
			e.saw(t, m, "the card says %s, and it was told that the question is %s", s.State, c.told)
		case s != nil && !c.takesAnswers() && c.sent == nil && m.What == markRow:
			e.saw(t, m, "there is still a card, and it was told that the question is %s", c.told)
		case s != nil && c.told == string(continued) && s.Channel == "none":
			e.saw(t, m, "the question goes on, and no late answer is taken")
		}
	})
}

// cardKey is the key of the card of a call with an id.
func cardKey(t *Tab, call string) string { return "question:" + t.Session + ":" + call }

func aHiddenCardGoesOn(e *Evidence) {
	e.cards(func(t *Tab, m *Mark, c *cardStory) {
		if m.What != doHide || c.shows == nil || c.shows.Review || c.shows.Key != cardKey(t, m.Call) {
			return
		}
		if len(m.Sent)+len(m.LetGo) > 0 || m.Shows == nil || m.Shows.Seated || m.Shows.Channel != c.shows.Channel {
			e.saw(t, m, "it sent %d commands, let go of %d claims and shows: %v; before: %v", len(m.Sent), len(m.LetGo), m.Shows, c.shows)
		}
	})
}

// told is a state of a call that a row may show.
type toldState struct {
	seq int64
	is  string
}

// tellable are the states of a call in the log, in order, as rows have them.
func (a *account) tellable(call string) (out []toldState) {
	for _, l := range a.lives {
		for _, s := range l.states {
			is := string(s.is)
			if s.is == over {
				is = "settled"
			}
			if l.call == call {
				out = append(out, toldState{l.at, is})
			}
		}
	}
	return out
}

func rowsAreToldInOrder(e *Evidence) {
	for _, t := range e.History.Tabs {
		next := map[string]int{}
		t.walk(func(m *Mark, _ *cardStory) {
			if m.What != markRow {
				return
			}
			all := e.account(t.Session).tellable(m.Call)
			i := slices.Index(all[min(next[m.Call], len(all)):], toldState{m.Seq, m.State})
			if i < 0 {
				e.saw(t, m, "it was told that the call at event %d is %s; that does not follow what it was told before. %s", m.Seq, m.State, e.account(t.Session).story(m.Call))
				return
			}
			next[m.Call] += i
		})
	}
}

func shownIsWhatIsRecorded(e *Evidence) {
	if e.Stopped != "" {
		return
	}
	type key struct{ party, call string }
	shows := map[key]string{}
	for _, t := range e.History.Tabs {
		if t.How != "" {
			continue
		}
		last := map[string]*Mark{}
		for i := range t.Marks {
			last[t.Marks[i].Call] = &t.Marks[i]
		}
		for call, m := range last {
			s := m.Shows
			if s != nil && (s.Review || s.Key != cardKey(t, call)) {
				continue
			}
			is := unasked
			if l := e.account(t.Session).latest[call]; l != nil {
				is = l.state()
			}
			if takes := is == open || is == continued; call != "" && (takes != (s != nil) || takes && s.State != string(is)) {
				e.saw(t, m, "in the end it shows: %v; the log says that the question is %s", s, is)
			}
			if before, again := shows[key{t.Party, call}]; again && before != s.String() {
				e.saw(t, m, "in the end it shows: %v; another tab: %s", s, before)
			}
			shows[key{t.Party, call}] = s.String()
		}
	}
}
