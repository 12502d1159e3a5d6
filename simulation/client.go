package simulation

import (
	"maps"
	"slices"
	"strings"

	"github.com/parleyrun/parley/actors"
)

// browser is what a client has beyond its pages: the store of drafts, the clock,
// and which tabs there are. It outlives a crash.
type browser struct {
	party *party
	store []actors.StoredDraft
	of    map[string]int64 // the call that a draft was written for, by its card
	skew  int64            // of the wall clock
	tabs  []*tab
	gone  []*tab // pages that said goodbye
	at    int    // the tab that the person is at
	made  int    // tabs so far
}

// Verbs of clients, beside those they share with people.
const (
	doFocus   = "focus"   // comes to the answer area
	doBlur    = "blur"    // leaves it
	doEdit    = "edit"    // chooses or writes
	doTime    = "time"    // takes time
	doHide    = "hide"    // closes the card
	doReopen  = "reopen"  // wants to see it again
	doTab     = "tab"     // opens another tab
	doNext    = "next"    // goes to the next tab
	doClose   = "close"   // closes the tab
	doReload  = "reload"  // loads the page again
	doOffline = "offline" // is cut off from everybody
	doClock   = "clock"   // its wall clock jumps
)

// client is a person at the cards of a browser. What stands on them, and when
// they give up, their machine decides. When the person has done everything the
// tabs stay open.
func (p *party) client(l *Loop) {
	if p.browser == nil {
		p.browser = &browser{party: p, of: map[string]int64{}}
		p.browser.open()
	} else {
		p.browser.restore()
	}
	for p.at < len(p.plan.Acts) {
		act := p.plan.Acts[p.at]
		p.at++
		p.clientDoes(l, act)
	}
}

func (p *party) clientDoes(l *Loop, act Act) {
	b := p.browser
	switch act.Verb {
	case doWait:
		l.sleep(act.For.Milliseconds())
	case doUntil:
		l.sleep(max(0, act.For.Milliseconds()-p.w.now))
	case doFind:
		l.until(func() bool { return b.answerable(act.Call) }, act.For.Milliseconds())
	case doFocus:
		b.onCard(act, actors.Focused{})
	case doBlur:
		b.onCard(act, actors.Blurred{})
	case doTime:
		b.onCard(act, actors.TimeTaken{})
	case doHide:
		b.onCard(act, actors.Dismissed{})
	case doPass:
		b.onCard(act, actors.Delegated{})
	case doEdit:
		b.edit(act)
	case doSubmit:
		b.submit(act)
	case doReopen:
		b.reopen(act)
	case doTab:
		b.open()
	case doNext:
		if len(b.tabs) > 0 {
			b.at = (b.at + 1) % len(b.tabs)
		}
	case doClose:
		b.close()
	case doReload:
		b.reload(strings.Contains(act.With, "lost"))
	case doOffline:
		p.offline(act)
		l.sleep(act.For.Milliseconds())
	case doClock:
		b.jump(act)
	case doTakeBack:
		p.takeBack(l, act)
	case doMove:
		p.host = (p.host + 1) % len(p.w.hosts)
	case doCrash:
		p.w.soon(func() { p.crashFor(act.For) })
		l.sleep(-1)
	default:
		panic("simulation: a client cannot " + act.Verb)
	}
}

// Tabs.

// open opens another tab, and goes to it.
func (b *browser) open() {
	b.made++
	b.tabs = append(b.tabs, b.load(b.made))
	b.at = len(b.tabs) - 1
}

// page is the tab that the person is at; nil: all are closed.
func (b *browser) page() *tab {
	if len(b.tabs) == 0 {
		return nil
	}
	return b.tabs[b.at]
}

func (b *browser) close() {
	t := b.page()
	if t == nil {
		return
	}
	t.unload()
	b.gone = append(b.gone, t)
	b.tabs = slices.Delete(b.tabs, b.at, b.at+1)
	b.at = max(0, b.at-1)
}

// reloadsLost is how a page ends that is loaded again without its drafts.
const reloadsLost = "reloads, and its drafts are lost"

// reload loads the page again, with the drafts that it has kept, or without any.
func (b *browser) reload(lost bool) {
	t := b.page()
	if t == nil {
		return
	}
	how := "reloads"
	if lost {
		how, b.store = reloadsLost, nil
	}
	t.end(how)
	b.tabs[b.at] = b.load(t.seen.N)
}

// crash ends every page.
func (b *browser) crash() {
	for _, t := range append(slices.Clone(b.tabs), b.gone...) {
		t.end("crashes")
	}
	b.gone = nil
}

// restore loads the tabs that there were.
func (b *browser) restore() {
	for i, t := range b.tabs {
		b.tabs[i] = b.load(t.seen.N)
	}
}

func (b *browser) rests() bool {
	return !slices.ContainsFunc(append(slices.Clone(b.tabs), b.gone...), func(t *tab) bool { return !t.rests() })
}

// offline cuts the client off. It notices at once.
func (p *party) offline(act Act) {
	p.off = true
	p.w.say(p.name, KindFault, "is offline")
	p.w.began(&Fault{What: faultOffline, Party: p.name})
	for _, t := range p.browser.tabs {
		t.watch.broken()
		for _, n := range sortedKeys(t.claims) {
			if c := t.claims[n]; c != nil {
				c.release(true)
			}
		}
	}
	p.w.after(act.For.Milliseconds(), func() {
		if p.off {
			p.online()
		}
	})
}

// online ends it.
func (p *party) online() {
	p.off = false
	p.w.say(p.name, KindFault, "is online")
	for _, f := range p.w.History.Faults {
		if f.What == faultOffline && f.Party == p.name && f.Until < 0 {
			f.Until = p.w.now
		}
	}
}

// jump sets the client's wall clock.
func (b *browser) jump(act Act) {
	b.skew += act.For.Milliseconds()
	b.party.w.sayf(b.party.name, KindFault, "its wall clock jumps by %v", act.For)
	for _, t := range b.tabs {
		t.seen.Marks = append(t.seen.Marks, Mark{At: b.party.w.now, Step: b.party.w.steps, Line: b.party.w.trace.n, What: doClock, JumpMS: act.For.Milliseconds()})
	}
}

// The store.

func (b *browser) keep(d actors.StoredDraft, call int64) {
	b.drop(d.Key)
	b.store = append(b.store, d)
	b.of[d.Key] = call
}

func (b *browser) drop(key string) {
	b.store = slices.DeleteFunc(slices.Clone(b.store), func(d actors.StoredDraft) bool { return d.Key == key })
}

// Cards.

// answerable: this tab has a card of the call that takes an answer.
func (b *browser) answerable(call string) bool {
	t := b.page()
	if t == nil {
		return false
	}
	c, there := t.card(call)
	return there && c.View.Channel != actors.ChannelNone
}

func (b *browser) onCard(act Act, do actors.CardInput) {
	if c, there := b.card(act); there {
		b.page().step(act.Verb, act.Call, actors.OnCard{Key: c.Key, Do: do})
	}
}

// card is the card that an act is about, in the tab that the person is at.
func (b *browser) card(act Act) (actors.CardSight, bool) {
	t := b.page()
	if t == nil {
		return actors.CardSight{}, false
	}
	c, there := t.card(act.Call)
	if there {
		b.party.w.sayf(b.party.name, KindDo, "%s in tab %d", act.String(ClientParty), t.seen.N)
	}
	return c, there
}

// edit answers each question of a card in words that nobody else has, or picks an
// option where there is one; or skips; or does so on one page only.
func (b *browser) edit(act Act) {
	c, there := b.card(act)
	if !there {
		return
	}
	d := c.Draft
	for page, q := range c.Row.GetQuestions() {
		if strings.Contains(act.With, "part") && page != c.Draft.Page {
			continue
		}
		switch d = d.Go(page); {
		case strings.Contains(act.With, "skip"):
			d, _ = d.Skip()
		case strings.Contains(act.With, "pick") && len(q.GetOptions()) > 0:
			d = d.Choose(q.GetOptions()[b.party.w.dice.IntN(len(q.GetOptions()))].GetLabel(), q.GetMultiSelect())
		default:
			d = d.Write("word <"+b.party.w.newID("word-")+">", q.GetMultiSelect())
		}
	}
	b.page().step(doEdit, act.Call, actors.Drafted{Key: c.Key, Draft: d})
}

func (b *browser) submit(act Act) {
	if c, there := b.card(act); there {
		b.page().step(doSubmit, act.Call, actors.Sent{Key: c.Key, Submission: b.party.w.newID("sub-")})
	}
}

// reopen shows a card again, or what has been settled.
func (b *browser) reopen(act Act) {
	t := b.page()
	if t == nil {
		return
	}
	if c, there := b.card(act); there {
		t.step(doReopen, act.Call, actors.Revealed{Key: c.Key})
	} else if row := t.rows[act.Call]; len(row.GetQuestions()) > 0 {
		t.step(doReopen, act.Call, actors.Reviewed{Row: row})
	}
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
