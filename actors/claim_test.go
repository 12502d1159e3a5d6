package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

var claimAddr = actors.Addr{Key: "claim/n/1"}

// opened is a claim that has asked for its wait, and the timer it waits by.
func opened(t *testing.T) (*actors.Claim, actors.Timer) {
	t.Helper()
	c := actors.NewClaim(claimAddr, "s1", "c1", 0)
	fx := c.Resume(actors.Now{})
	require.Equal(t, []actors.Send{{To: actors.SessionAddr("s1"), From: claimAddr, Msg: &messages.ClaimOpen{Session: "s1", CallId: "c1"}}}, fx.Sends)
	require.Len(t, fx.Timers, 1)
	require.EqualValues(t, 10_000, fx.Timers[0].After)
	return c, fx.Timers[0]
}

func hear(m actors.Machine, msg any) actors.Effects {
	return m.Step(actors.Now{}, actors.Envelope{Msg: msg})
}

func releases(lost bool) []actors.Send {
	return []actors.Send{{To: actors.SessionAddr("s1"), From: claimAddr, Msg: &messages.ClaimRelease{Session: "s1", CallId: "c1", Lost: lost}}}
}

func TestClaim(t *testing.T) {
	frame, out := &messages.ClaimFrame{RemainingMs: 5}, actors.Addr{Key: actors.Out}
	t.Run("Q-084 one frame, whatever is repeated", func(t *testing.T) {
		c, _ := opened(t)
		fx := hear(c, frame)
		require.Equal(t, []actors.Reply{{To: out, Msg: frame}}, fx.Replies)
		require.EqualValues(t, -1, fx.Timers[0].After)
		require.Empty(t, hear(c, frame).Replies)
		require.Len(t, hear(c, actors.SessionGone{Session: "s1"}).Sends, 1, "it opens again when its session was lost")
		require.Empty(t, hear(c, frame).Replies)
	})
	t.Run("the end of its wait ends it", func(t *testing.T) {
		c, _ := opened(t)
		end := &messages.ClaimEnd{Reason: "settled"}
		require.Equal(t, []actors.Reply{{To: out, Msg: end}}, hear(c, end).Replies)
		for _, m := range []any{end, frame, actors.StreamClosed{}, actors.SessionGone{Session: "s1"}} {
			fx := hear(c, m)
			require.True(t, fx.Empty(), "%T after the end", m)
		}
	})
	t.Run("Q-086 one that was opened again lets go as it ends: the second opening may still be on its way", func(t *testing.T) {
		for _, end := range []any{&messages.ClaimEnd{Reason: "unknown"}, messages.Refuse(messages.NotFound, "there is no session").Wire()} {
			c, _ := opened(t)
			hear(c, actors.SessionGone{Session: "s1"})
			fx := hear(c, end)
			require.Equal(t, releases(false), fx.Sends)
			require.Len(t, fx.Replies, 1)
		}
		r := newRig(t) // it was opened twice, and the call is asked in between
		at := r.claim("c1", claimAddr.Key)
		asker := r.ask("c1", withTimeout(5))
		r.claim("c1", claimAddr.Key)
		r.release("c1", at, false)
		r.Advance(5000)
		require.NotNil(t, r.last(asker).(*messages.AskResponse).GetPending(), "nobody holds it")
	})
	t.Run("Q-086 the end of its stream releases it, or loses it", func(t *testing.T) {
		for _, lost := range []bool{false, true} {
			c, _ := opened(t)
			require.Equal(t, releases(lost), hear(c, actors.StreamClosed{Lost: lost}).Sends)
			fx := hear(c, actors.StreamClosed{Lost: lost})
			require.True(t, fx.Empty())
		}
	})
	t.Run("without a word in 10 s it ends as retryable, and lets go of what it may have got", func(t *testing.T) {
		c, timer := opened(t)
		fx := hear(c, actors.Fired{Name: timer.Name, Gen: timer.Gen})
		require.Equal(t, []actors.Reply{{To: out, Msg: &messages.ClaimEnd{Reason: "unavailable", Retryable: true}}}, fx.Replies)
		require.Equal(t, releases(true), fx.Sends)
	})
	t.Run("a timer that was answered is ignored", func(t *testing.T) {
		c, timer := opened(t)
		hear(c, frame)
		fx := hear(c, actors.Fired{Name: timer.Name, Gen: timer.Gen})
		require.True(t, fx.Empty())
	})
	t.Run("another session's loss is none of its business", func(t *testing.T) {
		c, _ := opened(t)
		fx := hear(c, actors.SessionGone{Session: "s2"})
		require.True(t, fx.Empty())
	})
	t.Run("Q-086 a claim that a slow session takes up too late does not hold the wait", func(t *testing.T) {
		r := newRig(t)
		asker := r.ask("c1", withTimeout(60))
		c, timer := opened(t)
		r.Advance(10_000) // the session was busy all the time
		late := hear(c, actors.Fired{Name: timer.Name, Gen: timer.Gen}).Sends
		r.claim("c1", claimAddr.Key)
		for _, s := range late {
			r.Do(s.From, s.Msg)
		}
		r.Advance(50_000)
		require.Len(t, r.Replies[asker], 2)
	})
}
