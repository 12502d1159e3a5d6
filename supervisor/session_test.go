package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

func TestSessionLoadsThenStepsThenTellsOnceDurable(t *testing.T) {
	n := newNode(t)
	n.disk.paused = true
	a, b := n.say("s", "log a"), n.say("s", "echo")
	n.w.settle()
	equal(t, "nothing is stepped before the log is read", n.took(), "")

	n.disk.resume()
	n.disk.paused = true
	n.w.settle()
	equal(t, "the second waits for the append of the first", n.took(), "open:s@0/0 log a")
	equal(t, "nobody is told before it is durable", a.String()+b.String(), "")

	n.disk.resume()
	n.w.settle()
	equal(t, "then the second", n.took(), "echo")
	equal(t, "told", a.String()+" "+b.String(), "a=1 echo")
	equal(t, "the second needs no append", len(n.disk.batches), 1)
	equal(t, "stamped", fmt.Sprint(n.disk.batches[0].Events[0].Seq, n.disk.batches[0].Events[0].Time > 0), "0 true")
}

func TestHeldInputsKeepTheirOrder(t *testing.T) {
	n := newNode(t)
	n.say("s", "log first")
	n.w.settle()
	n.disk.paused = true
	var all []*answers
	for _, text := range []string{"log a", "echo", "log b", "no", "proof", "log c"} {
		all = append(all, n.say("s", text))
	}
	n.w.settle()
	for range 5 {
		n.disk.resume()
		n.disk.paused = true
		n.w.settle()
	}
	n.disk.resume()
	n.w.settle()
	equal(t, "order", n.took(), "open:s@0/0 log first log a echo log b no proof log c")
	equal(t, "answers", fmt.Sprint(all), "[a=2 echo b=3 NOT_ANSWERABLE proved c=4]")
}

func TestRefusalLeavesOnlyAfterTheProof(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.disk.paused = true
	no := n.say("s", "no")
	n.w.settle()
	equal(t, "unproved", no.String(), "")
	n.disk.resume()
	n.w.settle()
	equal(t, "proved", no.String(), "NOT_ANSWERABLE")
	equal(t, "the proof is empty", n.disk.batches[1].Empty(), true)
	equal(t, "one line each", strings.Join(n.logs.of("turn", "outcome", "at", "seq"), "; "),
		"DEBUG outcome=ok at=1 seq=0; INFO outcome=NOT_ANSWERABLE at=0 seq=1")
	equal(t, "refusals", n.Snapshot().Refusals, 1)
}

func TestSessionComesBackFromItsLogWithTheNextEpoch(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.say("s", "bye")
	n.w.settle()
	equal(t, "unloaded", n.Snapshot().Sessions, 0)
	b := n.say("s", "log b")
	n.w.settle()
	equal(t, "reloaded", n.took(), "open:s@0/0 log a bye open:s@2/1 log b")
	equal(t, "told", b.String(), "b=2")
	equal(t, "batch", fmt.Sprint(n.disk.batches[1].Epoch, n.disk.batches[1].Seq), "2 1")
}

func TestFailedAppendRestartsWithNextEpochAndTellsNobody(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded=%v", recorded), func(t *testing.T) {
			n := newNode(t)
			n.say("s", "log a")
			n.w.settle()
			n.took()
			if recorded {
				n.disk.lose = once[journal.Batch](1, errDisk)
			} else {
				n.disk.failAppend = once[journal.Batch](1, errDisk)
			}
			b := n.say("s", "log b")
			n.w.settle()
			equal(t, "nobody is told", b.String(), "")
			n.w.advance(10 * time.Millisecond)
			folded := 1
			if recorded {
				folded = 2
			}
			equal(t, "the door repeats it to the next life", n.took(), fmt.Sprintf("log b open:s@2/%d log b", folded))
			equal(t, "told once", b.String(), fmt.Sprintf("b=%d", folded+1))
			equal(t, "restarts", n.Snapshot().Restarts, 1)
			equal(t, "a fault is no panic", len(n.logs.of("panic")), 0)
		})
	}
}

func TestAppendThatFailsTwiceIsToldTheFaultAndHarmsNobodyElse(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	full := messages.Refuse(messages.JournalFull, "no space")
	n.disk.failAppend = func(b journal.Batch) error {
		if len(b.Events) > 0 && strings.Contains(string(b.Events[0].Data), "b") {
			return full
		}
		return nil
	}
	for range 4 { // eight restarts: a full disk is no reason for quarantine
		b := n.say("s", "log b")
		n.w.advance(3 * time.Second)
		equal(t, "told", b.String(), "JOURNAL_FULL")
	}
	c := n.say("s", "log c")
	n.w.advance(time.Second)
	equal(t, "served again at once", c.String(), "c=2")
	equal(t, "quarantined", n.Snapshot().Quarantined, 0)
}

func TestFailedOpenIsToldWithItsCodeAndIsNoCrash(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{messages.Refuse(messages.SessionCorrupt, "line 3"), "SESSION_CORRUPT"},
		{errDisk, "UNAVAILABLE"},
	} {
		t.Run(c.code, func(t *testing.T) {
			n := newNode(t)
			n.disk.failOpen = once[string](1, c.err)
			a, b := n.say("s", "echo"), n.say("s", "echo")
			n.w.settle()
			equal(t, "told", a.String()+" "+b.String(), c.code+" "+c.code)
			equal(t, "unloaded", n.Snapshot().Sessions, 0)
			equal(t, "restarts", n.Snapshot().Restarts, 0)
			d := n.say("s", "echo")
			n.w.settle()
			equal(t, "the next one tries again", d.String(), "echo")
		})
	}
}

// A question that is durable goes on through the trouble of a disk: who waits for
// it is told to ask again, and not that its wait is over.
func TestAWaitThatIsDurableOutlastsADiskThatCannotBeRead(t *testing.T) {
	n := newNode(t)
	n.disk.failOpen = once[string](1, messages.Refuse(messages.JournalFull, "no space"))
	code := func(ask *messages.AskRequest) string {
		ask.Session = "s"
		told := ""
		n.Call(ask, func(m messages.Message) { told = m.(*messages.Refusal).GetCode() })
		n.w.settle()
		return told
	}
	equal(t, "who resumes", code(&messages.AskRequest{Resume: true}), "UNAVAILABLE")
	n.disk.failOpen = once[string](1, messages.Refuse(messages.JournalFull, "no space"))
	equal(t, "who asks", code(&messages.AskRequest{}), "JOURNAL_FULL")
	n.disk.failOpen = once[string](1, messages.Refuse(messages.SessionCorrupt, "line 3"))
	equal(t, "who resumes what nobody can read", code(&messages.AskRequest{Resume: true}), "SESSION_CORRUPT")
}

func TestFactoryErrorIsToldLikeAFailedOpen(t *testing.T) {
	n := newNode(t, func(c *Config, _ *node) {
		c.NewSession = func(string, journal.Opened) (actors.Machine, error) {
			return nil, messages.Refuse(messages.SessionGeneration, "v0")
		}
	})
	a := n.say("s", "echo")
	n.w.settle()
	equal(t, "told", a.String(), "SESSION_GENERATION")
	equal(t, "unloaded", n.Snapshot().Sessions, 0)
}

func TestFencedSessionLeavesAndTheNextCommandTakesOver(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.took()
	n.disk.Journal.Open("s", func(journal.Opened, error) {}) // somebody else's activation
	b := n.say("s", "log b")
	n.w.settle()
	equal(t, "not at once", n.took(), "log b")
	n.w.advance(10 * time.Millisecond)
	equal(t, "repeated to a new activation", n.took(), "open:s@3/1 log b")
	equal(t, "told once", b.String(), "b=2")
	equal(t, "no restart, no panic", n.Snapshot().Restarts+int64(len(n.logs.of("panic"))), 0)
	equal(t, "the old owner is no error", strings.Join(n.logs.of("turn", "outcome"), "; "),
		"DEBUG outcome=ok; INFO outcome=FENCED; DEBUG outcome=ok")
}

func TestTwoNodesThatBothRunASessionDoNotFenceEachOtherForEver(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.took()
	duel := 3 // so often the other node has taken the session by the time of an append
	n.disk.failAppend = func(journal.Batch) error {
		if duel--; duel >= 0 {
			n.disk.Journal.Open("s", func(journal.Opened, error) {})
		}
		return nil
	}
	b := n.say("s", "log b")
	n.w.settle()
	var pauses []string
	for range 3 {
		n.w.alarms = slices.DeleteFunc(n.w.alarms, func(a *alarm) bool { return a.off })
		wait := n.w.alarms[slices.IndexFunc(n.w.alarms, func(a *alarm) bool { _, rests := a.msg.(*rested); return rests })].at - n.w.now
		equal(t, "nobody was told", b.String(), "")
		pauses = append(pauses, fmt.Sprint(wait))
		n.w.advance(time.Duration(wait) * time.Millisecond)
	}
	equal(t, "each waits longer before it takes the session back", strings.Join(pauses, " "), "10 20 40")
	equal(t, "and one comes through", b.String(), "b=2")
	equal(t, "nobody is to blame", n.Snapshot().Quarantined+n.Snapshot().Restarts, 0)
}

func TestWhatAFencedSessionHoldsIsToldThatTheNodeStops(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.disk.Journal.Open("s", func(journal.Opened, error) {})
	b := n.say("s", "log b")
	n.w.settle()
	equal(t, "it rests", n.Snapshot().Sessions, 0)
	stopped := n.Stop()
	n.w.settle()
	<-stopped
	equal(t, "told", b.String(), "UNAVAILABLE")
	n.w.advance(time.Second)
	equal(t, "and not started any more", n.Snapshot().Sessions, 0)
}

func TestFencedProofTellsNobody(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.disk.Journal.Open("s", func(journal.Opened, error) {})
	n.disk.paused = true
	no := n.say("s", "no")
	n.w.settle()
	n.disk.held[0]() // the result of the proof; the Open of the next life stays held
	n.disk.held = nil
	n.w.settle()
	equal(t, "a zombie may not even say no", no.String(), "")
}

func TestTimersFireOnceAndAreReplacedAndStopped(t *testing.T) {
	n := newNode(t)
	n.say("s", "tick")
	n.w.advance(60 * time.Millisecond)
	n.say("s", "tick") // replaces the first
	n.w.advance(60 * time.Millisecond)
	equal(t, "the first was replaced", n.took(), "open:s@0/0 tick tick")
	n.w.advance(60 * time.Millisecond)
	equal(t, "the second fires", n.took(), "fired:t/2")
	n.say("s", "tick")
	n.say("s", "tock")
	n.w.advance(time.Second)
	equal(t, "stopped", n.took(), "tick tock")
}

func TestStaleTimersAreDropped(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.say("s", "tick")
	n.w.settle()
	stale := *n.w.alarms[len(n.w.alarms)-1]
	fire := func() {
		n.engine.Root.Send(stale.to, stale.msg)
		n.w.settle()
	}
	n.say("s", "tick") // replaces it, too late: it is on its way
	n.w.settle()
	n.took()
	fire()
	equal(t, "of a timer that was replaced", n.took(), "")

	n.disk.failAppend = once[journal.Batch](1, errDisk)
	n.say("s", "log b")
	n.w.advance(20 * time.Millisecond)
	n.say("s", "tick") // the same name and generation as in the life before
	n.w.settle()
	equal(t, "restarted", n.took(), "log b open:s@2/1 log b tick")
	fire()
	equal(t, "of an earlier life", n.took(), "")
	n.w.advance(time.Second)
	equal(t, "its own fires", n.took(), "fired:t/1")
}

func TestJournalsAnswerToAnEarlierLifeIsDropped(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.disk.paused = true
	n.say("s", "log b") // its answer is held
	n.w.settle()
	late := n.disk.held
	n.disk.held, n.disk.paused = nil, false
	n.engine.Root.Stop(n.engine.NewLocalPID(sessionName("s")))
	n.w.settle() // the door has repeated it to a new activation
	n.disk.paused = true
	c := n.say("s", "log c")
	n.w.settle()
	for _, answer := range late {
		answer()
	}
	n.w.settle()
	equal(t, "not taken for the answer to another append", c.String(), "")
	n.disk.resume()
	n.w.settle()
	equal(t, "told", c.String(), "c=4") // b is in twice: the test session has no keys
}

func TestTimerThatFiresDuringAnAppendIsHeld(t *testing.T) {
	n := newNode(t)
	n.say("s", "tick")
	n.w.settle()
	n.disk.paused = true
	n.say("s", "log a")
	n.w.advance(time.Second)
	equal(t, "held", n.took(), "open:s@0/0 tick log a")
	n.disk.resume()
	n.w.settle()
	equal(t, "delivered", n.took(), "fired:t/1")
}

func TestTooManyHeldRequestsAreTold(t *testing.T) {
	n := newNode(t, func(c *Config, _ *node) { c.HeldMax = 2 })
	n.disk.paused = true
	a, b, c := n.say("s", "a"), n.say("s", "b"), n.say("s", "c")
	n.w.settle()
	equal(t, "told", a.String()+b.String()+c.String(), "UNAVAILABLE")
	n.disk.resume()
	n.w.settle()
	equal(t, "the others are served", a.String()+b.String(), "ab")
}

// Who lets go is not there to be told that it has to try again.
func TestWhoLetsGoIsHeldWhateverElseIs(t *testing.T) {
	n := newNode(t, func(c *Config, _ *node) { c.HeldMax = 1 })
	n.say("s", "log a")
	n.w.settle()
	claim := n.OpenClaim("s", "open", &sink{})
	n.w.settle()
	n.took()
	n.disk.paused = true
	n.say("s", "log b")
	n.say("s", "held")
	refused := n.say("s", "one too many")
	n.w.settle()
	equal(t, "told", refused.String(), "UNAVAILABLE")
	claim.Release(true)
	n.w.settle()
	n.disk.resume()
	n.w.settle()
	equal(t, "taken", n.took(), "log b held release:open/true")
}

// What came before a proof began need not be proved again: an answer waits for two
// of them at most, and not for one of each that came before it.
func TestOneProofIsForAllThatCameBeforeIt(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.disk.batches, n.disk.paused = nil, true
	first := n.say("s", "proof")
	n.w.settle()
	var others []*answers
	for range 20 {
		others = append(others, n.say("s", "proof"))
	}
	n.w.settle()
	equal(t, "one is under way", len(n.disk.batches), 1)
	equal(t, "nobody is told before it is done", first.String()+others[0].String(), "")
	n.disk.release()
	n.w.settle()
	equal(t, "told", first.String(), "proved")
	equal(t, "those that came after it had begun need another", others[0].String(), "")
	equal(t, "which is one", len(n.disk.batches), 2)
	n.disk.release()
	n.w.settle()
	for _, o := range others {
		equal(t, "told", o.String(), "proved")
	}
	equal(t, "for all of them", len(n.disk.batches), 2)
	b := n.say("s", "proof")
	n.w.settle()
	equal(t, "and none for what comes later", b.String(), "")
	n.disk.resume()
	n.w.settle()
	equal(t, "told", b.String(), "proved")
	equal(t, "it has its own", len(n.disk.batches), 3)
}

func TestAnyPrintableSessionIDHasItsOwnActor(t *testing.T) {
	n := newNode(t)
	ids := []string{"a", "a/b", "a b", "a%2Fb", "a%20b", "../..", "会话/1", `q"<>?#&`, "s/a", "a/wait/c~1", strings.Repeat("x", 200)}
	for i, id := range ids {
		back, ok := sessionOf(sessionName(id))
		equal(t, "reversible", fmt.Sprint(back, ok), fmt.Sprint(id, true))
		equal(t, "no slash", strings.Contains(sessionName(id)[2:], "/"), false)
		a := n.say(id, fmt.Sprint("log ", i))
		n.w.settle()
		equal(t, id, a.String(), fmt.Sprint(i, "=1"))
	}
	equal(t, "sessions", n.Snapshot().Sessions, int64(len(ids)))
	bad := n.say("a\x00b", "log x")
	n.w.settle()
	equal(t, "unprintable", bad.String(), "BAD_REQUEST")
}
