package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

func TestDoor(t *testing.T) {
	call := func(corr uint64, cmd messages.Command) actors.DoorCall {
		return actors.DoorCall{Corr: corr, Cmd: cmd}
	}
	answer := func(d *actors.Door, corr uint64, m messages.Message) actors.Effects {
		return d.Step(actors.Now{}, actors.Envelope{To: actors.Addr{Key: "door/n", Corr: corr}, Msg: m})
	}
	waiting := &messages.AskResponse{CallId: "c1", Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}}
	answered := &messages.AskResponse{CallId: "c1", Outcome: &messages.AskResponse_Answered{Answered: &messages.Answered{}}}
	sent := func(corr uint64, m messages.Message) []actors.Send {
		return []actors.Send{{To: actors.SessionAddr("s1"), From: actors.Addr{Key: "door/n", Corr: corr}, Msg: m}}
	}
	t.Run("a command goes to its session, its answer to whoever asked, once", func(t *testing.T) {
		d := actors.NewDoor("door/n", 0)
		cmd := submitReq("c1", "s")
		require.Equal(t, sent(7, cmd), hear(d, call(7, cmd)).Sends)
		res := &messages.SubmitResponse{}
		require.Equal(t, []actors.Reply{{To: actors.Addr{Key: actors.Out, Corr: 7}, Msg: res}}, answer(d, 7, res).Replies)
		fx := answer(d, 7, res)
		require.True(t, fx.Empty(), "a duplicate finds nobody")
	})
	t.Run("what went unanswered is asked again when its session is lost, in order, as it was", func(t *testing.T) {
		d := actors.NewDoor("door/n", 0)
		one, two, other := submitReq("c1", "one"), submitReq("c1", "two"), &messages.SubmitRequest{Session: "s2"}
		for corr, cmd := range []messages.Command{one, two, other} {
			hear(d, call(uint64(corr), cmd))
		}
		fx := hear(d, actors.SessionGone{Session: "s1"})
		require.Equal(t, append(sent(0, one), sent(1, two)...), fx.Sends)
		answer(d, 0, &messages.SubmitResponse{})
		require.Equal(t, sent(1, two), hear(d, actors.SessionGone{Session: "s1"}).Sends)
	})
	t.Run("a durable ask is repeated without its text", func(t *testing.T) {
		d := actors.NewDoor("door/n", 0)
		hear(d, call(7, askReq("c1")))
		require.Len(t, answer(d, 7, waiting).Replies, 1, "waiting is passed on, and is not the answer")
		resume := &messages.AskRequest{Session: "s1", Root: "root", Attempt: "try-c1", CallId: "c1", Resume: true}
		for range 2 {
			require.Equal(t, sent(7, resume), hear(d, actors.SessionGone{Session: "s1"}).Sends)
			require.Len(t, answer(d, 7, waiting).Replies, 1)
		}
		require.Len(t, answer(d, 7, answered).Replies, 1)
		fx := hear(d, actors.SessionGone{Session: "s1"})
		require.True(t, fx.Empty())
	})
	t.Run("one that left before it heard which call it was joined to is taken off that call", func(t *testing.T) {
		d := actors.NewDoor("door/n", 0)
		hear(d, call(1, askReq("c1")))
		hear(d, actors.DoorCancel{Corr: 1})
		joined := &messages.AskResponse{Session: "s1", CallId: "c0", Joined: "try-c0", Outcome: waiting.GetOutcome()}
		fx := answer(d, 1, joined)
		require.Equal(t, sent(1, &messages.AskDetachRequest{Session: "s1", CallId: "c0"}), fx.Sends)
		require.Empty(t, fx.Replies)
		fx = answer(d, 1, answered)
		require.True(t, fx.Empty())
	})
	t.Run("a caller that leaves ends its subscription and nothing else", func(t *testing.T) {
		d := actors.NewDoor("door/n", 0)
		hear(d, call(1, askReq("", attempt("a1"))))
		hear(d, call(2, askReq("c2")))
		answer(d, 2, &messages.AskResponse{CallId: "c2", Outcome: waiting.GetOutcome()})
		hear(d, call(3, &messages.AwaitInboxRequest{Session: "s1"}))
		hear(d, call(4, submitReq("c1", "s")))
		require.Equal(t, sent(1, &messages.AskDetachRequest{Session: "s1", CallId: "call-a1", Attempt: "a1"}), hear(d, actors.DoorCancel{Corr: 1}).Sends)
		require.Equal(t, sent(2, &messages.AskDetachRequest{Session: "s1", CallId: "c2", Attempt: "try-c2"}), hear(d, actors.DoorCancel{Corr: 2}).Sends)
		require.Equal(t, sent(3, &messages.AskDetachRequest{Session: "s1"}), hear(d, actors.DoorCancel{Corr: 3}).Sends)
		for corr := range uint64(6) {
			fx := hear(d, actors.DoorCancel{Corr: corr})
			require.True(t, fx.Empty(), "the rest is forgotten without a word")
		}
		fx := hear(d, actors.SessionGone{Session: "s1"})
		require.True(t, fx.Empty())
	})
}
