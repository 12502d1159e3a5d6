package panics

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parleyrun/parley/messages"
)

// row is one line of the table: the traps that make it up, in order.
type row struct {
	name  string
	traps []trap
	// The command that is to blame is tried twice, and then told BUG.
	bug bool
	// The callers must not even notice: their first attempt gets the answer.
	unnoticed bool
}

// unreachable are the pairs that the running system cannot bring about, each
// with its reason. A pair that comes by all the same fails the table.
var unreachable = map[trap]string{
	{kind: "wait", msg: "Refused"}: "a session that does not record a wait's outcome has ended that wait, and says so with Ended",
}

// appendless are the messages after which a session has nothing to record or to
// prove; foldless are those after which it proves and records nothing.
var (
	appendless = []string{"AskDetachRequest", "ClaimRelease", "Fired", "PartDied", "PartIdle", "Quiet", "Reroute", "Wake"}
	foldless   = []string{"AwaitInboxRequest", "ClaimMessagesRequest", "ClaimOpen", "DelegateRequest", "DismissRequest", "EndForegroundRequest", "ExpireRequest", "Marked", "SubmitRequest"}
)

// forgotten are messages that nobody sends again: what they ask for happens by
// itself when the session or the wait is lost.
var forgotten = []string{"AskDetachRequest", "ClaimRelease", "CloseClaim", "DropAsker"}

// byLoss are messages that come only after something else has crashed.
var byLoss = map[string][]string{"session": {"PartDied"}, "door": {"SessionGone"}, "claim": {"SessionGone"}}

// rows is the table, from what the machines take.
func rows(table map[string][]string) []row {
	var out []row
	for _, kind := range slices.Sorted(maps.Keys(table)) {
		for _, msg := range table[kind] {
			if unreachable[trap{kind: kind, msg: msg}] != "" {
				continue
			}
			for _, at := range momentsOf(kind, msg) {
				out = append(out, twice(kind, msg, at)...)
			}
			if kind == "session" {
				out = append(out, andInResume(msg)...)
			}
		}
		for _, at := range []moment{before, after} {
			out = append(out, twice(kind, resuming, at)...)
		}
	}
	return out
}

func momentsOf(kind, msg string) []moment {
	at := []moment{before, after}
	if kind == "session" && msg != resuming && !slices.Contains(appendless, msg) {
		at = append(at, handed)
		if !slices.Contains(foldless, msg) {
			at = append(at, inFold)
		}
	}
	return at
}

// losses make the messages of byLoss come by: the first and the second time.
var losses = []trap{
	{kind: "wait", msg: "WaitSubmit", at: before},
	{kind: "wait", msg: "WaitCancel", at: before},
}

// twice are the two rows of a point: one panic there, and two.
func twice(kind, msg string, at moment) []row {
	t := trap{kind: kind, msg: msg, at: at}
	again := t
	again.same = sent(kind, msg) && (at == before || at == after)
	once, both := []trap{t}, []trap{t, again}
	if slices.Contains(byLoss[kind], msg) {
		once, both = []trap{losses[0], t}, []trap{losses[0], t, losses[1], again}
	}
	name := "again"
	if again.same {
		name = "again on the same command"
	}
	return []row{
		{name: t.String(), traps: once, unnoticed: kind != "door" && kind != "claim"},
		{name: t.String() + ", and " + name, traps: both, bug: again.same && answered(msg)},
	}
}

// andInResume: the session panics at a message, and again while it comes back.
func andInResume(msg string) []row {
	first := []trap{{kind: "session", msg: msg, at: before}}
	if slices.Contains(byLoss["session"], msg) {
		first = append([]trap{losses[0]}, first...)
	}
	resume := trap{kind: "session", msg: resuming, at: before}
	name := fmt.Sprintf("session/%s panics %s, and in Resume", msg, before)
	return []row{
		{name: name, traps: append(slices.Clone(first), resume), unnoticed: true},
		{name: name + " twice", traps: append(slices.Clone(first), resume, resume), unnoticed: true},
	}
}

// sent reports whether whoever sent a message sends it again until it is answered.
func sent(kind, msg string) bool {
	if slices.Contains(forgotten, msg) {
		return false
	}
	switch kind {
	case "session":
		return strings.HasSuffix(msg, "Request") || slices.Contains([]string{"ClaimOpen", "Marked", "Record"}, msg)
	case "wait":
		return strings.HasPrefix(msg, "Wait") || msg == "AddAsker" || msg == "OpenClaim"
	case "inbox":
		return slices.Contains([]string{"LateSubmit", "ClaimMarks", "Await"}, msg) // without an inbox, marks are not asked for again
	}
	return false
}

// answered reports whether somebody waits who can be told BUG. A claim just
// ends, and its client opens another.
func answered(msg string) bool { return msg != "ClaimOpen" && msg != "OpenClaim" }

// A session that nobody waits for is unloaded late, or whenever time passes.
const (
	passivateLate = time.Minute
	passivateSoon = 5 * time.Second
)

func TestTableOfPanics(t *testing.T) {
	table := takes(t)
	list := rows(table)
	start := time.Now()
	t.Run("rows", func(t *testing.T) {
		for _, r := range list {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.run(t)
			})
		}
	})
	t.Logf("%d rows of %d kinds of actor in %v", len(list), len(table), time.Since(start).Round(time.Second))
	nothingRuns(t)
}

func (r row) run(t *testing.T) {
	passivate := passivateLate
	if len(r.traps) > 1 {
		passivate = passivateSoon
	}
	w := newWorld(t, passivate, r.traps)
	play(w, 1)
	check(w)
	if left := w.traps.notSprung(); len(left) > 0 {
		t.Errorf("never happened: %v", left)
	}
	for kind := range unreachable {
		if w.traps.at(kind.kind, kind.msg, before) > 0 {
			t.Errorf("%s/%s came by, and is not in the table", kind.kind, kind.msg)
		}
	}
	bugs, excuses := 0, 0
	for _, l := range w.told {
		switch code := codeOf(l.msg); {
		case code == messages.Bug:
			bugs++
		case worthAnother(l.msg) && !strings.HasPrefix(keyOf(l.cmd), "a-last") && nameOf(l.cmd) != "AwaitInboxRequest":
			excuses++
		}
		if l.cmd.GetSession() == calmSession && worthAnother(l.msg) && r.traps[0].kind != "door" {
			t.Errorf("the other session was told %v", l.msg)
		}
	}
	if r.bug && bugs == 0 {
		t.Error("nobody was told that its command is guilty")
	}
	if r.unnoticed && bugs+excuses > 0 {
		t.Errorf("callers had to try again: %d were told BUG, %d UNAVAILABLE", bugs, excuses)
	}
	if err := w.disk.Close(); err != nil {
		t.Error(err)
	}
}

// The scenario itself: every message comes by at every moment that the table
// has for it, and people get every kind of answer there is.
func TestScenarioWithoutAPanic(t *testing.T) {
	for _, passivate := range []time.Duration{passivateLate, passivateSoon} {
		t.Run(passivate.String(), func(t *testing.T) {
			w := newWorld(t, passivate, nil)
			play(w, 2)
			check(w)
			everythingComesBy(t, w)
			everyAnswerIsGiven(t, w)
		})
	}
}

func everythingComesBy(t *testing.T, w *world) {
	t.Helper()
	for kind, msgs := range takes(t) {
		for _, msg := range append(msgs, resuming) {
			if slices.Contains(byLoss[kind], msg) || unreachable[trap{kind: kind, msg: msg}] != "" {
				continue
			}
			at := momentsOf(kind, msg)
			for _, m := range []moment{before, after, handed, inFold} {
				n := w.traps.at(kind, msg, m)
				least := 2 // for the rows in which it panics again
				if kind == "door" && msg == resuming {
					least = 1
				}
				if want := slices.Contains(at, m); want && n < least || !want && n > 0 {
					t.Errorf("%s/%s came by %d times %s; is it in the table: %v", kind, msg, n, m, want)
				}
			}
		}
	}
}

func everyAnswerIsGiven(t *testing.T, w *world) {
	t.Helper()
	outcomes := map[string]bool{}
	for _, l := range w.told {
		outcomes[string(codeOf(l.msg))] = true
		if r, ok := l.msg.(interface{ GetSettlement() *messages.Settlement }); ok {
			outcomes[r.GetSettlement().GetOutcome()] = true
		}
		if r, ok := l.msg.(*messages.AskResponse); ok && r.GetPending() != nil {
			outcomes["pending"] = true
		}
	}
	for _, o := range strings.Fields("answered queued reply_withdrawn withdrawn pending SETTLED REPLY_QUEUED NOT_ANSWERABLE ASK_ABORTED ASK_CANCELLED NO_PROVIDER CALLER_NOT_LIVE TURN_CLOSED") {
		if !outcomes[o] {
			t.Errorf("nobody was told %s", o)
		}
	}
}

// nothingRuns waits until the goroutines of all closed nodes have ended, but for
// those of the mailboxes that wait for work.
func nothingRuns(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(time.Millisecond); ; {
		stacks := make([]byte, 1<<20)
		left := 0
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			working := strings.Contains(g, "parley/supervisor.") && (strings.Contains(g, "(*mailbox)") || !strings.Contains(g, "(*workers).work"))
			if working || strings.Contains(g, "parley/journal") || strings.Contains(g, "protoactor") {
				left++
			}
		}
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d goroutines are left:\n%s", left, stacks)
		}
	}
}
