package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// wires is the network between the nodes of a test: what leaves an engine for
// another address is marshalled, and arrives at once, or not at all.
type wires struct {
	nodes map[string]*node
	place map[string]string // sessions that are not on "n"
	cut   bool
	sent  []string
}

// wire is what the engine sends to for an address.
type wire struct {
	w  *wires
	to *actor.PID
}

func (l wire) SendUserMessage(_ *actor.PID, msg any) {
	f := msg.(*messages.Frame)
	_, _, m, err := messages.Open(f)
	if err != nil {
		panic(err)
	}
	name := string(m.ProtoReflect().Descriptor().Name())
	if no, ok := m.(*messages.Refusal); ok {
		name = no.GetCode()
	}
	l.w.sent = append(l.w.sent, fmt.Sprintf("%s %s>%s %s", l.to.Address, plainKey(f.GetFromKey()), plainKey(f.GetToKey()), name))
	n := l.w.nodes[l.to.Address]
	if l.w.cut || n == nil {
		return
	}
	raw, err := proto.Marshal(f)
	if err != nil {
		panic(err)
	}
	in := &messages.Frame{}
	if err := proto.Unmarshal(raw, in); err != nil {
		panic(err)
	}
	n.engine.Root.Send(n.engine.NewLocalPID(l.to.Id), in)
}

// plainKey leaves the life of its node out of a door's address.
func plainKey(key string) string {
	if parts := strings.Split(key, "/"); parts[0] == "door" {
		return strings.Join(parts[:2], "/")
	}
	return key
}

func (wire) SendSystemMessage(*actor.PID, any) {}
func (wire) Stop(*actor.PID)                   {}

// newPair starts two nodes, "n" and "m", with one journal. They reach each other
// at the addresses "at-n" and "at-m".
func newPair(t *testing.T, change ...func(*Config, *node)) (*wires, *node, *node) {
	t.Helper()
	ws := &wires{nodes: map[string]*node{}, place: map[string]string{}}
	var shared journal.Journal
	start := func(name string) *node {
		n := newNode(t, append([]func(*Config, *node){func(c *Config, n *node) {
			if c.Node = name; shared == nil {
				shared = c.Journal
			}
			c.Journal = shared
			c.Place = func(session string) string { return ws.place[session] }
			c.Peer = func(node string) (string, bool) { return "at-" + node, node != "nowhere" }
			n.w.engine.ProcessRegistry.Address = "at-" + name
			n.w.engine.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) {
				return wire{ws, pid}, true
			})
		}}, change...)...)
		ws.nodes["at-"+name] = n
		return n
	}
	return ws, start("n"), start("m")
}

// settle lets both nodes come to rest.
func (ws *wires) settle() {
	for busy := true; busy; {
		busy = false
		for _, at := range sortedKeys(ws.nodes) {
			w := ws.nodes[at].w
			busy = busy || len(w.run) > 0 || len(w.jobs) > 0
			w.settle()
		}
	}
}

// took returns what went over the wires since the last call.
func (ws *wires) took() string {
	out := strings.Join(ws.sent, "; ")
	ws.sent = nil
	return out
}

func TestASessionOfAnotherNodeIsAskedThere(t *testing.T) {
	ws, n, m := newPair(t)
	ws.place["s"] = "m"
	a, here := n.say("s", "log a"), n.say("t", "echo")
	ws.settle()
	equal(t, "answers", a.String()+" "+here.String(), "a=1 echo")
	equal(t, "there", m.took(), "open:s@0/0 log a")
	equal(t, "here", n.took(), "open:t@0/0 echo")
	equal(t, "wires", ws.took(), "at-m door/n>s/s SteerRequest; at-n s/s>door/n SteerResponse")
	c := m.say("t", "echo") // "" is where Place is asked
	ws.settle()
	equal(t, "m takes it for its own", c.String(), "echo")
	equal(t, "wires", ws.took(), "")
}

func TestClaimOnASessionOfAnotherNode(t *testing.T) {
	ws, n, m := newPair(t)
	ws.place["s"] = "m"
	s := &sink{}
	c := n.OpenClaim("s", "open", s)
	ws.settle()
	equal(t, "there", m.took(), "open:s@0/0 claim:open")
	equal(t, "told", s.String(), "frame 7 false")
	c.Release(true)
	ws.settle()
	equal(t, "there", m.took(), "release:open/true")
}

func TestRefusalsAndFaultsGoBackTheSameWay(t *testing.T) {
	ws, n, m := newPair(t)
	ws.place["s"] = "m"
	no, boom := n.say("s", "no"), n.say("s", "boom")
	ws.settle()
	m.w.advance(time.Second)
	ws.settle()
	equal(t, "refused", no.String(), "NOT_ANSWERABLE")
	equal(t, "nobody repeats it: the door of another node is not told", boom.String(), "")
	equal(t, "restarted", m.Snapshot().Restarts, 1)
}

func TestASessionThatIsNotOursIsRefusedAndNotPassedOn(t *testing.T) {
	ws, n, m := newPair(t)
	ws.place["s"] = "m"
	for _, at := range []*node{n, m} { // to m it is placed elsewhere again
		at.cfg.Place = func(string) string { return map[*node]string{n: "m", m: "n"}[at] }
	}
	a := n.say("s", "log a")
	ws.settle()
	equal(t, "told", a.String(), "UNAVAILABLE")
	equal(t, "wires", ws.took(), "at-m door/n>s/s SteerRequest; at-n s/s>door/n UNAVAILABLE")
	equal(t, "nothing is started", n.Snapshot().Sessions+m.Snapshot().Sessions, 0)

	// What nobody sends is not answered either, or it would be answered in turn.
	for _, msg := range []messages.Message{messages.Refuse(messages.Unavailable, "no").Wire(), &messages.Wake{}} {
		m.arrive(actors.SessionAddr("s"), actors.SessionAddr("t"), msg)
	}
	m.arrive(actors.Addr{Key: "door/third", Corr: 1}, actors.SessionAddr("t"), &messages.SteerResponse{})
	m.arrive(actors.Addr{Key: "claim/m/gone"}, actors.SessionAddr("t"), &messages.ClaimFrame{})
	m.engine.Root.Send(m.peers, &messages.Frame{ToKey: "s/s"})
	ws.settle()
	equal(t, "dropped", strings.Join(m.logs.of("dropped", "to"), "; "), "DEBUG to=s/s; DEBUG to=s/s; DEBUG to=door/third#1; DEBUG to=claim/m/gone")
	equal(t, "an unknown frame is told", len(m.logs.of("frame")), 1)
}

func TestWhatCannotBeReachedIsDropped(t *testing.T) {
	ws, n, _ := newPair(t)
	ws.place["s"] = "nowhere"
	a := n.say("s", "echo")
	ws.settle()
	equal(t, "nobody answers", a.String(), "")
	equal(t, "dropped", strings.Join(n.logs.of("dropped", "to", "message"), "; "), "DEBUG to=s/s message=SteerRequest")

	alone := newNode(t)
	alone.arrive(actors.SessionAddr("s"), actors.Addr{Key: "door/other", Corr: 3}, steer("s", "echo"))
	alone.w.settle()
	equal(t, "without other nodes", strings.Join(alone.logs.of("dropped", "to"), "; "), "DEBUG to=door/other#3")
}

// A door that repeats: what was lost on the way, or with a session of another
// node, is asked again, wherever its session is by then.
func TestADoorRepeatsWhatGoesUnanswered(t *testing.T) {
	repeating := func(c *Config, _ *node) {
		c.NewDoor = func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 10_000) }
	}
	ws, n, m := newPair(t, repeating)
	ws.place["s"], ws.cut = "m", true
	a := n.say("s", "log a")
	ws.settle()
	ws.cut = false
	n.w.advance(9999 * time.Millisecond)
	ws.settle()
	equal(t, "not yet", a.String(), "")
	ws.place["s"] = "n"
	n.w.advance(time.Millisecond)
	ws.settle()
	equal(t, "told", a.String(), "a=1")
	equal(t, "it moved", m.took(), "")
}

func TestReleaseUnloadsASessionAndWhoWaitsAsksItsNewNode(t *testing.T) {
	ws, n, m := newPair(t)
	ws.settle()
	asked := n.say("s", "seed")
	n.say("s", "log a")
	ws.settle()
	n.took()
	n.disk.paused = true
	b, c := n.say("s", "log b"), n.say("s", "log c") // one in flight, one held
	n.w.settle()
	ws.place["s"] = "m"
	n.Release("s")
	n.Release("unknown")
	ws.settle()
	equal(t, "not before its append", n.Snapshot().Sessions, 1)
	n.disk.resume()
	ws.settle()
	equal(t, "unloaded", fmt.Sprint(n.Snapshot().Sessions, n.Snapshot().Parts), "0 0")
	equal(t, "told", b.String()+" "+c.String(), "b=2 c=3")
	equal(t, "the rest is done there", m.took(), "open:s@2/2 log c seed log c resume:wait/c/1~1") // the test session has no keys
	equal(t, "nothing more here", n.took(), "log b")
	equal(t, "the asker waits there", asked.String(), "")
	told := n.say("s", "part answer")
	ws.settle()
	equal(t, "and is answered from there", asked.String()+" "+told.String(), "answered told")
}

// An activation whose session has moved does not come back by itself: that would
// fence its owner.
func TestAMovedSessionThatCrashesIsNotRestarted(t *testing.T) {
	ws, n, m := newPair(t)
	n.say("s", "log a")
	ws.settle()
	n.took()
	n.disk.failAppend = once[journal.Batch](1, errDisk)
	n.disk.paused = true
	b := n.say("s", "log b")
	n.w.settle()
	ws.place["s"] = "m"
	n.disk.resume()
	ws.settle()
	n.w.advance(time.Minute)
	ws.settle()
	equal(t, "here", n.took(), "log b")
	equal(t, "there", m.took(), "open:s@2/1 log b")
	equal(t, "told", b.String(), "b=2")
	equal(t, "restarts", n.Snapshot().Restarts, 0)
}

func TestSweeperWakesOnlyWhatRunsHere(t *testing.T) {
	ws := map[string]string{"b": "m"}
	n := newNode(t, func(c *Config, n *node) {
		c.SweepEvery = time.Second
		c.Place = func(session string) string { return ws[session] }
		n.disk.due = func(int64, int) ([]string, int64, error) { return []string{"a", "b"}, 0, nil }
	})
	n.w.settle()
	equal(t, "woken", n.took(), "open:a@0/0 wake:a")
	delete(ws, "b")
	n.w.advance(time.Second)
	equal(t, "asked each time", n.took(), "wake:a open:b@0/0 wake:b")
}

// advance lets time pass on all nodes, a little at a time.
func (ws *wires) advance(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		for _, at := range sortedKeys(ws.nodes) {
			ws.nodes[at].w.advance(100 * time.Millisecond)
		}
		ws.settle()
	}
}

// The machines of production: a question that is asked and held from one node
// outlives the other, which runs its session. The deadline does not fire under
// the claim, and the answer reaches whoever asked.
func TestAQuestionAndItsClaimSurviveTheMoveOfTheirSession(t *testing.T) {
	for _, how := range []string{"released", "died", "cut off"} {
		t.Run(how, func(t *testing.T) {
			ids := 0
			rules := &actors.Rules{Mode: messages.Mode_MODE_TIMED, DefaultTimeoutS: 5, ClaimGraceMS: 10_000, PassivateAfterMS: 60_000,
				OpenCallsMax: actors.OpenCallsMaxDefault, QueueMax: actors.QueueMaxDefault,
				NewID: func(kind string) string { ids++; return fmt.Sprint(kind, ids) }}
			ws, n, m := newPair(t, func(c *Config, _ *node) {
				c.NewSession = func(id string, o journal.Opened) (actors.Machine, error) {
					return actors.NewSession(rules, id, o.Header, o.Events)
				}
				c.NewDoor = func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 10_000) }
				c.NewClaim = func(self actors.Addr, session, call string) actors.Machine {
					return actors.NewClaim(self, session, call, 10_000)
				}
			})
			call := func(cmd messages.Command) *answers {
				a := &answers{}
				a.cancel = n.Call(cmd, func(msg messages.Message) { a.got = append(a.got, msg) })
				ws.settle()
				return a
			}
			ws.place["s"] = "m"
			call(&messages.AttachRequest{Session: "s", Root: "root"})
			asked := call(&messages.AskRequest{Session: "s", Root: "root", Attempt: "a", CallId: "c", Arguments: `{"questions":[{"id":"q","question":"?"}]}`})
			hold := &sink{}
			n.OpenClaim("s", "c", hold)
			ws.settle()
			equal(t, "held", hold.String(), "frame 5000 false")
			ws.advance(30 * time.Second)
			equal(t, "there", fmt.Sprint(n.Snapshot().Sessions, m.Snapshot().Sessions), "0 1")

			switch ws.place["s"] = "n"; how {
			case "released":
				m.Release("s")
			case "died":
				delete(ws.nodes, "at-m")
			case "cut off":
				ws.cut = true // it goes on, and its deadline fires: it has not heard of the claim for too long
			}
			ws.advance(40 * time.Second)
			equal(t, "here", n.Snapshot().Sessions, 1)
			if how != "died" {
				equal(t, "the other has left", m.Snapshot().Sessions, 0)
			}
			equal(t, "one frame, no end", hold.String(), "frame 5000 false")
			call(&messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: "x", Answers: []*messages.Answer{{Id: "q", Selected: []string{"yes"}}}})
			res, ok := asked.got[len(asked.got)-1].(*messages.AskResponse)
			equal(t, "answered", ok && res.GetAnswered() != nil, true)
			equal(t, "told", hold.String(), "frame 5000 false end settled false")
		})
	}
}

// An answer to a caller of a node's earlier life reaches nobody in this one.
func TestAnswersToAnEarlierLifeOfANodeReachNobody(t *testing.T) {
	ws, n, m := newPair(t)
	ws.place["s"] = "m"
	before := n.say("s", "seed") // waits, in a part on m
	ws.settle()

	again := newNode(t, func(c *Config, next *node) { // n dies, and starts again
		next.w.ids = n.w.ids
		next.w.engine.ProcessRegistry.Address = "at-n"
		next.w.engine.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) { return wire{ws, pid}, true })
		c.Place, c.Peer = n.cfg.Place, n.cfg.Peer
	})
	ws.nodes["at-n"] = again
	ws.cut = true // its own question is lost on the way
	after := again.say("s", "log a")
	ws.settle()
	ws.cut = false
	told := m.say("s", "part answer")
	ws.settle()
	equal(t, "m told the one that waited", told.String(), "told")
	equal(t, "the last over the wires", ws.sent[len(ws.sent)-1], "at-n s/s>door/n SteerResponse")
	equal(t, "nobody heard it", before.String()+after.String(), "")
	equal(t, "the other still waits", again.Snapshot().Callers, 1)
}
