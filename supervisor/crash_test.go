package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

func TestCommandThatCrashesItsSessionTwiceIsABug(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.w.settle()
	n.took()
	boom := n.say("s", "boom")
	n.w.advance(time.Second)
	equal(t, "tried twice, each time in a new life", n.took(), "boom open:s@2/1 boom open:s@3/1")
	equal(t, "told", boom.String(), "BUG")
	other := n.say("s", "log b")
	n.w.settle()
	equal(t, "others are served", other.String(), "b=2")
	equal(t, "a stack for each panic", len(n.logs.of("panic")), 2)
	if stack := n.logs.of("panic", "stack")[0]; !strings.Contains(stack, "program") {
		t.Fatalf("the stack does not show where it happened:\n%s", stack)
	}
}

func TestBackoffDoublesUpToItsCap(t *testing.T) {
	n := newNode(t, func(c *Config, n *node) { c.QuarantineAfter = -1 })
	n.say("s", "echo")
	n.w.settle()
	var pauses []string
	for range 9 {
		n.say("s", "boom") // a new caller each time
		n.w.settle()
		var wait int64 = -1
		for _, a := range n.w.alarms {
			if _, ok := a.msg.(*restart); ok {
				wait = a.at - n.w.now
			}
		}
		pauses = append(pauses, fmt.Sprint(wait))
		n.w.advance(time.Duration(wait) * time.Millisecond)
	}
	equal(t, "pauses", strings.Join(pauses, " "), "10 20 40 80 160 320 640 1000 1000")
}

func TestQuarantineIsolatesOneSession(t *testing.T) {
	n := newNode(t)
	n.main = func(m *testSession, in actors.Envelope) (actors.Effects, bool) {
		if _, command := in.Msg.(messages.Command); command && m.id == "bad" && n.w.now < 1_060_000 {
			panic("a bad start")
		}
		return actors.Effects{}, false
	}
	var bad []*answers
	for range 3 {
		bad = append(bad, n.say("bad", "echo"))
	}
	n.w.advance(5 * time.Second)
	equal(t, "told", fmt.Sprint(bad), "[BUG BUG QUARANTINED]")
	equal(t, "counted", n.Snapshot().Quarantined, 1)
	equal(t, "restarts before it", n.Snapshot().Restarts, 4)
	equal(t, "unloaded", n.Snapshot().Sessions, 0)
	opens := len(n.disk.opens)
	late, good := n.say("bad", "echo"), n.say("good", "echo")
	n.w.settle()
	equal(t, "told at once; others are served", late.String()+" "+good.String(), "QUARANTINED echo")
	equal(t, "it is not even opened", len(n.disk.opens), opens+1)
	equal(t, "the operator is told", len(n.logs.of("quarantined")), 1)

	n.w.advance(time.Minute)
	again := n.say("bad", "echo")
	n.w.settle()
	equal(t, "tried again after a minute", again.String(), "echo")
}

func TestSessionThatCannotResumeIsQuarantined(t *testing.T) {
	n := newNode(t, func(c *Config, n *node) {
		c.NewSession = func(string, journal.Opened) (actors.Machine, error) { panic("cannot fold") }
	})
	a := n.say("s", "echo")
	n.w.advance(10 * time.Second)
	equal(t, "told", a.String(), "QUARANTINED")
	equal(t, "five starts", len(n.disk.opens), 5)
}

func TestCrashesSpreadOverHoursAreForgiven(t *testing.T) {
	n := newNode(t)
	for range 20 {
		boom := n.say("s", "boom")
		n.w.advance(time.Hour)
		equal(t, "told", boom.String(), "BUG")
	}
	equal(t, "quarantined", n.Snapshot().Quarantined, 0)
	if got := len(n.ward.cases); got > 1 {
		t.Fatalf("the ward remembers %d cases", got)
	}
}

func TestPartsHearInOrderAndSpeakUp(t *testing.T) {
	n := newNode(t)
	asked := n.say("s", "seed")
	up, told := n.say("s", "part up"), n.say("s", "part answer")
	n.w.settle()
	equal(t, "order", n.took(), "open:s@0/0 seed part up part answer resume:wait/c/1~1 part:up quiet:wait/c/1~1 part:answer")
	equal(t, "answers", asked.String()+" "+up.String()+" "+told.String(), "answered up told")
	equal(t, "parts", n.Snapshot().Parts, 1)
	last, stop := n.say("s", "part last"), n.say("s", "stop")
	n.w.settle()
	equal(t, "stop comes after what was said before", n.took(), "part last part:last stop")
	equal(t, "answers", last.String()+" "+stop.String(), "last stopped")
	equal(t, "parts", n.Snapshot().Parts, 0)
}

func TestPartThatDiesIsReportedOnceAndItsAskersAskAgain(t *testing.T) {
	n := newNode(t)
	asked := n.say("s", "seed")
	n.w.settle()
	boom := n.say("s", "part boom")
	n.took()
	n.w.settle()
	seen := n.took()
	equal(t, "died once", strings.Count(seen, "died:wait/c/1~1"), 1)
	equal(t, "the asker asks again and gets a successor", strings.Count(seen, "resume:wait/c/1~2"), 1)
	equal(t, "the session never restarted", n.Snapshot().Restarts, 0)
	told := n.say("s", "part answer")
	n.w.settle()
	equal(t, "answers", asked.String()+" "+told.String(), "answered told")
	equal(t, "the killer is found guilty", boom.String(), "BUG")
	equal(t, "parts", n.Snapshot().Parts, 1)
}

func TestPartThatKeepsDyingTakesItsSessionOutOfService(t *testing.T) {
	n := newNode(t)
	n.main = func(m *testSession, in actors.Envelope) (actors.Effects, bool) {
		died, ok := in.Msg.(actors.PartDied)
		if !ok {
			return actors.Effects{}, false
		}
		m.note("died:%d", died.Part.Incarnation)
		m.parts++
		return actors.Effects{Parts: []actors.ToPart{
			{Part: m.part(), Seed: &testPart{note: m.note, id: m.part()}},
			{Part: m.part(), Msg: actors.WaitDismiss{Req: &messages.DismissRequest{By: "boom"}}},
		}}, true
	}
	n.say("s", "seed")
	n.say("s", "part boom")
	n.w.settle()
	later := n.say("s", "echo")
	n.w.settle()
	equal(t, "told", later.String(), "QUARANTINED")
	equal(t, "deaths it could still hear of", strings.Count(n.took(), "died:"), 4)
	equal(t, "nothing is left", fmt.Sprint(n.Snapshot().Sessions, n.Snapshot().Parts), "0 0")
}

func TestPartMayNotAppend(t *testing.T) {
	n := newNode(t)
	n.say("s", "seed")
	n.say("s", "part append")
	n.w.settle()
	if reasons := n.logs.of("panic", "reason"); len(reasons) == 0 || !strings.Contains(reasons[0], "only a session may append") {
		t.Fatal(reasons)
	}
}

func TestRestartedSessionIgnoresWhatItsOldPartsSaid(t *testing.T) {
	n := newNode(t)
	n.say("s", "log a")
	n.say("s", "seed")
	n.w.settle()
	n.disk.failAppend = once[journal.Batch](1, errDisk)
	n.say("s", "log b")
	n.w.settle()
	// The session waits for its restart; its part still lives and speaks up.
	part := n.engine.NewLocalPID(sessionName("s") + "/wait/c/1~1.1")
	n.engine.Root.Send(part, &downward{msg: actors.WaitDismiss{Req: &messages.DismissRequest{By: "up"}}})
	n.w.settle()
	if seen := n.took(); !strings.HasSuffix(seen, "part:up") {
		t.Fatalf("the part did not speak: %s", seen)
	}
	n.w.advance(time.Second)
	if seen := n.took(); strings.Contains(seen, "quiet:") {
		t.Fatalf("a part of an earlier life was heard: %s", seen)
	}
	equal(t, "parts", n.Snapshot().Parts, 1) // the door asked for it again
}

func TestPanicWhileStoppingDoesNotKeepTheActorAlive(t *testing.T) {
	w := &brittleWorld{world: newWorld()}
	n := newNode(t, func(c *Config, n *node) {
		n.w, c.Runtime = w.world, w
		n.disk = newDisk(w.world)
		c.Journal = n.disk
	})
	n.say("s", "tick")
	n.w.settle()
	w.brittle = true
	n.engine.Root.Stop(n.engine.NewLocalPID(sessionName("s"))) // nobody asked it to go
	n.w.settle()
	equal(t, "it has stopped", n.Snapshot().Sessions, 0)
	equal(t, "and said why", len(n.logs.of("panic")), 1)
	w.brittle = false
	again := n.say("s", "echo")
	n.w.settle()
	equal(t, "the next command starts it again", again.String(), "echo")
}

// brittleWorld has timers that cannot be cancelled.
type brittleWorld struct {
	*world
	brittle bool
}

func (w *brittleWorld) SendAfter(d time.Duration, to *actor.PID, msg any) func() {
	cancel := w.world.SendAfter(d, to, msg)
	return func() {
		if w.brittle {
			panic("cancel")
		}
		cancel()
	}
}

func TestDoorThatCrashesAnswersEverybodyAndStartsAgain(t *testing.T) {
	n := newNode(t, func(c *Config, n *node) {
		c.NewDoor = func(self actors.Addr) actors.Machine { return &brittleDoor{actors.NewDoor(self.Key, 0)} }
	})
	asked := n.say("s", "seed") // waits
	n.w.settle()
	boom := n.say("s", "break the door")
	n.w.settle()
	equal(t, "told", asked.String()+" "+boom.String(), "UNAVAILABLE BUG")
	again := n.say("s", "echo")
	n.w.advance(time.Second)
	equal(t, "served again", again.String(), "echo")
	equal(t, "callers", n.Snapshot().Callers, 0)
}

type brittleDoor struct{ *actors.Door }

func (d *brittleDoor) Step(now actors.Now, in actors.Envelope) actors.Effects {
	if call, ok := in.Msg.(actors.DoorCall); ok {
		if cmd, ok := call.Cmd.(*messages.SteerRequest); ok && cmd.GetText() == "break the door" {
			panic("the door")
		}
	}
	return d.Door.Step(now, in)
}

func TestCallbackThatPanicsIsNotOurs(t *testing.T) {
	n := newNode(t)
	n.Call(steer("s", "echo"), func(messages.Message) { panic("somebody else's") })
	n.w.settle()
	other := n.say("s", "echo")
	n.w.settle()
	equal(t, "the door lives", other.String(), "echo")
	equal(t, "restarts", n.Snapshot().Restarts, 0)
	equal(t, "logged", len(n.logs.of("panic", "actor")), 1)
}
