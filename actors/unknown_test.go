package actors_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/actors/actorstest"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// locals is every message that never leaves its session. TestEveryLocalIsListed
// keeps it complete.
var locals = []actors.Local{
	actors.Fired{}, actors.PartDied{}, actors.SessionGone{}, actors.DoorCall{}, actors.DoorCancel{}, actors.StreamClosed{},
	actors.AddAsker{}, actors.DropAsker{}, actors.WaitSubmit{}, actors.WaitExpire{}, actors.WaitDelegate{}, actors.WaitDismiss{},
	actors.WaitCancel{}, actors.WaitLeave{}, actors.OpenClaim{}, actors.CloseClaim{}, actors.Ended{}, actors.LateSubmit{}, actors.ClaimMarks{},
	actors.AdmitMarks{}, actors.TurnEnded{}, actors.Admitted{}, actors.Inserted{}, actors.Await{}, actors.Recorded{}, actors.Refused{},
	actors.Record{}, actors.Reroute{}, actors.Quiet{}, actors.Marked{}, actors.AdmitChecked{}, actors.PartIdle{},
}

func TestEveryLocalIsListed(t *testing.T) {
	var declared, listed []string
	for _, file := range []string{"local.go", "machine.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "local" {
				declared = append(declared, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	for _, l := range locals {
		listed = append(listed, reflect.TypeOf(l).Name())
	}
	slices.Sort(declared)
	slices.Sort(listed)
	require.Equal(t, declared, listed)
}

// wire is every message of the protobuf package that may travel: a typed nil
// and an empty one of each.
func wire(t *testing.T) []any {
	t.Helper()
	var all []any
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if strings.HasPrefix(string(mt.Descriptor().FullName()), "parley.v1.") {
			if m, ok := mt.New().Interface().(messages.Message); ok {
				all = append(all, m, mt.Zero().Interface())
			}
		}
		return true
	})
	require.Greater(t, len(all), 70)
	return all
}

// machine is one machine in a state in which much could happen, and the types it knows.
type machine struct {
	name  string
	make  func(t *testing.T) actors.Machine
	knows []any
}

var everyMachine = []machine{
	{"session", func(t *testing.T) actors.Machine {
		r := newRig(t)
		r.turn(1)
		r.ask("c1")
		r.pend("c2")
		r.queue("c2", "s2")
		return r.Session
	}, []any{actors.Fired{}, actors.PartDied{}, actors.Record{}, actors.Reroute{}, actors.Quiet{}, actors.Marked{}, actors.AdmitChecked{}, actors.PartIdle{}}},
	{"wait", func(*testing.T) actors.Machine {
		w := actors.NewWait(&actors.Rules{ClaimGraceMS: 10}, actors.WaitSeed{Deadline: 5, Timed: true, Askers: []actors.Addr{{Key: "a"}}, Rebuilt: true})
		w.Resume(actors.Now{})
		hear(w, actors.OpenClaim{From: claimAddr})
		hear(w, actors.WaitSubmit{Req: submitReq("c1", "s1")})
		return w
	}, []any{actors.AddAsker{}, actors.DropAsker{}, actors.OpenClaim{}, actors.CloseClaim{}, actors.WaitSubmit{}, actors.WaitExpire{},
		actors.WaitDelegate{}, actors.WaitDismiss{}, actors.WaitCancel{}, actors.Fired{}, actors.Recorded{}, actors.Refused{}, actors.Ended{}}},
	{"inbox", func(*testing.T) actors.Machine {
		b := actors.NewInbox(&actors.Rules{}, actors.PartID{Kind: actors.InboxPart})
		hear(b, actors.LateSubmit{Req: submitReq("c1", "s1")})
		hear(b, actors.ClaimMarks{Turn: 1, NextStep: []string{"m1"}})
		hear(b, actors.Await{From: claimAddr})
		return b
	}, []any{actors.LateSubmit{}, actors.Recorded{}, actors.Refused{}, actors.ClaimMarks{}, actors.AdmitMarks{}, actors.TurnEnded{},
		actors.Admitted{}, actors.Inserted{}, actors.Await{}, actors.DropAsker{}}},
	{"claim", func(*testing.T) actors.Machine {
		c := actors.NewClaim(claimAddr, "s1", "c1", 0)
		c.Resume(actors.Now{})
		return c
	}, []any{&messages.ClaimFrame{}, &messages.ClaimEnd{}, &messages.Refusal{}, actors.StreamClosed{}, actors.SessionGone{}, actors.Fired{}}},
	{"door", func(*testing.T) actors.Machine {
		d := actors.NewDoor("door/n", 0)
		hear(d, actors.DoorCall{Corr: 1, Cmd: askReq("c1")})
		return d
	}, []any{actors.DoorCall{}, actors.DoorCancel{}, actors.SessionGone{}, actors.Fired{}}},
}

// knows: its own types; a session also every command, a door also every reply.
func (m machine) known(msg any) bool {
	_, command := msg.(messages.Command)
	_, reply := msg.(messages.Reply)
	return command && m.name == "session" || reply && m.name == "door" ||
		slices.ContainsFunc(m.knows, func(k any) bool { return reflect.TypeOf(k) == reflect.TypeOf(msg) })
}

type stranger struct{ Name string }

// An unknown input has no effects; a known one that is empty, or comes twice,
// may have some, and nothing panics.
func TestUnknownInputsHaveNoEffects(t *testing.T) {
	inputs := []any{nil, stranger{"x"}, &stranger{}, (*stranger)(nil), "text", 7, error(nil), []int(nil), struct{}{}}
	for _, l := range locals {
		inputs = append(inputs, l, reflect.New(reflect.TypeOf(l)).Interface())
	}
	inputs = append(inputs, wire(t)...)
	for _, m := range everyMachine {
		t.Run(m.name, func(t *testing.T) {
			one := m.make(t)
			for _, in := range inputs {
				if !m.known(in) {
					fx := one.Step(actors.Now{Wall: startWall}, actors.Envelope{Msg: in})
					require.True(t, fx.Empty(), "%T: %+v", in, fx)
				}
			}
			for _, in := range inputs { // each into a fresh one, and all into the same
				if m.known(in) {
					fresh := m.make(t)
					fresh.Step(actors.Now{Wall: startWall}, actors.Envelope{From: claimAddr, Msg: in})
					fresh.Step(actors.Now{Wall: startWall}, actors.Envelope{From: claimAddr, Msg: in})
				}
			}
			one.Apply(sessionlog.Event{Type: "of/tomorrow", Data: []byte(`{}`), Ignorable: true})
		})
	}
	t.Run("a session that does not exist", func(t *testing.T) {
		for _, in := range inputs {
			s, err := actors.NewSession(actorstest.DefaultRules(), "s1", nil, nil)
			require.NoError(t, err)
			fx := s.Step(actors.Now{Wall: startWall}, actors.Envelope{From: claimAddr, Msg: in})
			require.Empty(t, fx.Append, "%T", in)
		}
	})
}

// Every command that a door may send is answered by a session, once, even when it is empty.
func TestEveryCommandIsAnswered(t *testing.T) {
	silent := []any{&messages.AskDetachRequest{}, &messages.ClaimRelease{}, &messages.AwaitInboxRequest{}, &messages.ClaimOpen{}}
	for _, in := range wire(t) {
		cmd, ok := in.(messages.Command)
		if !ok || slices.ContainsFunc(silent, func(s any) bool { return reflect.TypeOf(s) == reflect.TypeOf(in) }) {
			continue
		}
		r := newRig(t)
		if proto.Size(cmd) == 0 {
			require.Len(t, r.Replies[r.say(cmd)], 1, "%T", cmd)
		}
	}
}
