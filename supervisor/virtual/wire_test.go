package virtual

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/messages"
)

func frame(text string) *messages.Frame {
	return messages.Wrap(messages.Party{Key: "s/s1"}, messages.Party{Key: "door/h1", Corr: 7},
		&messages.SteerRequest{Session: "s1", Text: text})
}

func bytesOf(t *testing.T, f *messages.Frame) []byte {
	out, err := canonical.Marshal(f)
	require.NoError(t, err)
	return out
}

// Two hosts throw frames at each other: each gets what was said, never the
// message itself, however often a PID has been used.
func TestHostsExchangeFrames(t *testing.T) {
	play := func(seed uint64) string {
		w := newWorld(seed)
		first := frame("ball")
		players := map[string]*notes{}
		for _, pair := range [][2]string{{"h1", "h2"}, {"h2", "h1"}} {
			h, n, peer := w.host(pair[0]), &notes{}, actor.NewPID(pair[1], "peers")
			n.on = func(ctx actor.Context) {
				if f, ok := ctx.Message().(*messages.Frame); ok && len(n.seen) < 5 {
					ctx.Send(peer, f)
				}
			}
			n.spawn(t, h, "peers")
			players[pair[0]] = n
			h.Runtime().Engine().Root.Send(peer, first) // one each
		}
		w.settle()
		for _, n := range players {
			require.Len(t, n.seen, 5)
			for _, got := range n.seen[1:] {
				require.True(t, proto.Equal(first, got.(*messages.Frame)))
				require.NotSame(t, first, got)
			}
		}
		for _, h := range w.hosts {
			require.Zero(t, h.Dropped())
			h.Release()
		}
		return w.trace.String()
	}
	require.Equal(t, play(1), play(1))
	require.NotEqual(t, play(1), play(2))
}

// A host that comes back under its address is found by those that knew it
// before, and is another host.
func TestAHostThatComesBackIsFound(t *testing.T) {
	w := newWorld(1)
	root := w.host("h1").Runtime().Engine().Root
	peer := actor.NewPID("h2", "peers")
	for life := range 3 {
		h, n := w.host("h2"), &notes{}
		n.spawn(t, h, "peers")
		root.Send(peer, frame("hello"))
		w.settle()
		require.Len(t, n.seen, 2, "life %d", life)
		root.Send(peer, frame("you are dead"))
		h.Crash()
		w.settle()
		require.Len(t, n.seen, 2)
		h.Release()
	}
}

func TestOnlyFramesForPeersCrossToAnotherHost(t *testing.T) {
	w := newWorld(1)
	h := w.host("h1")
	root := h.Runtime().Engine().Root
	peers := actor.NewPID("h2", "peers")
	root.Send(peers, "text")
	root.Send(peers, &messages.SteerRequest{})
	root.Send(actor.NewPID("h2", "door"), frame("elsewhere"))
	root.Send(peers, &messages.Frame{ToKey: "\xff"})
	root.Stop(peers)
	root.Poison(peers)
	require.Empty(t, w.frames)
	require.Equal(t, 6, h.Dropped())
	root.RequestWithCustomSender(peers, frame("in an envelope"), peers)
	require.Len(t, w.frames, 1)
	require.Equal(t, 6, h.Dropped())
}

func TestAFrameThatFindsNobodyIsLost(t *testing.T) {
	w := newWorld(1)
	h := w.host("h1")
	require.NoError(t, h.Receive(bytesOf(t, frame("nobody is here yet"))))
	n := &notes{}
	n.spawn(t, h, "peers")
	require.NoError(t, h.Receive(bytesOf(t, frame("now"))))
	require.Error(t, h.Receive([]byte{0xff}))
	w.settle()
	require.Len(t, n.seen, 2)
	require.True(t, proto.Equal(frame("now"), n.seen[1].(*messages.Frame)))
}
