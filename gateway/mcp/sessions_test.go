package mcp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// sessionOf asks once and tells which session was asked in, and which were attached.
func sessionOf(t *testing.T, r *stage, client, arguments string, meta ...any) (session string, attached []string) {
	t.Helper()
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		session = m.GetSession()
		return nil, messages.Refuse(messages.EmptyQuestions, "enough")
	})
	failureOf(t, r.run(r.client(client), toolAsk, arguments, meta...))
	for _, m := range told[*messages.AttachRequest](r.node) {
		require.Equal(t, "mcp", m.GetRoot())
		attached = append(attached, m.GetSession())
	}
	return session, attached
}

func TestWhichSessionACallIsFor(t *testing.T) {
	const none = `{"questions":[]}`
	for _, tt := range []struct {
		name, client, arguments string
		life                    func(*life)
		meta                    []any
		session                 string
		attached                []string
	}{
		{"the endpoint's", "codex-mcp-client", none, func(l *life) { l.session = "demo"; l.environment = "e" }, []any{"threadId", "t"}, "demo", []string{"demo"}},
		{"the endpoint's, said twice", "any", `{"session":"demo","questions":[]}`, func(l *life) { l.session = "demo" }, nil, "demo", []string{"demo"}},
		{"the argument's, which is not ours to attach", "codex-mcp-client", `{"session":"s","questions":[]}`,
			func(l *life) { l.environment = "e"; l.minted = &minted{} }, []any{"threadId", "t"}, "s", nil},
		{"Codex's thread", "codex-mcp-client", none, func(l *life) { l.environment = "e" }, []any{"threadId", "t-1"}, "codex-t-1", []string{"codex-t-1"}},
		{"a thread of somebody else says nothing", "any", none, nil, []any{"threadId", "t-1"}, "mcp-1", []string{"mcp-1"}},
		{"the environment's", "claude-code", none, func(l *life) { l.environment = "e-1"; l.minted = &minted{} }, nil, "claude-e-1", []string{"claude-e-1"}},
		{"the connection's", "any", none, func(l *life) { l.minted = &minted{session: "mcp-before"} }, nil, "mcp-before", []string{"mcp-before"}},
		{"one of its own", "any", none, nil, nil, "mcp-1", []string{"mcp-1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newStage(t)
			r.lives(tt.life)
			session, attached := sessionOf(t, r, tt.client, tt.arguments, tt.meta...)
			require.Equal(t, tt.session, session)
			require.Equal(t, tt.attached, attached)
		})
	}
	t.Run("a connection keeps the one that was minted for it", func(t *testing.T) {
		r := newStage(t)
		kept := &minted{}
		r.lives(func(l *life) { l.minted = kept })
		first, _ := sessionOf(t, r, "any", none)
		second, attached := sessionOf(t, r, "any", none)
		require.Equal(t, first, second)
		require.Len(t, attached, 1, "a session is attached once")
		said(t, r.run(r.client("any"), toolCollect, `{}`))
		require.Equal(t, first, told[*messages.CollectRepliesRequest](r.node)[0].GetSession())
	})
	t.Run("without a connection every call gets another", func(t *testing.T) {
		r := newStage(t)
		first, _ := sessionOf(t, r, "any", none)
		second, _ := sessionOf(t, r, "any", none)
		require.NotEqual(t, first, second)
	})
}

func TestSessionsThatAreRefused(t *testing.T) {
	r := newStage(t)
	client := r.client("codex-mcp-client")
	t.Run("two that differ", func(t *testing.T) {
		r.lives(func(l *life) { l.session = "demo" })
		require.Contains(t, failureOf(t, r.run(client, toolAsk, `{"session":"other","questions":[]}`)),
			`Error: BAD_REQUEST: session is "other", but this endpoint speaks for "demo"; leave the argument out`)
		require.Empty(t, r.node.told)
	})
	t.Run("a thread that is no id", func(t *testing.T) {
		r.lives(nil)
		require.Contains(t, failureOf(t, r.run(client, toolAsk, `{"questions":[]}`, "threadId", strings.Repeat("x", 200))), "TOO_LARGE: session has 206 bytes, the limit is 200")
		require.Empty(t, r.node.told)
	})
	t.Run("an argument's that does not exist, or has another agent", func(t *testing.T) {
		for _, code := range []messages.Code{messages.NotFound, messages.CallerNotLive} {
			says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
				return nil, messages.Refuse(code, "not yours")
			})
			require.Contains(t, failureOf(t, r.run(client, toolAsk, `{"session":"s","questions":[]}`)), "Error: "+string(code)+": not yours (")
		}
		require.Empty(t, told[*messages.AttachRequest](r.node), "naming a session takes it from nobody")
	})
}

func TestASessionThatWasDeletedIsAttachedAgain(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	client := r.client("any")
	said(t, r.run(client, toolCollect, `{}`))
	gone := true
	says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
		if gone {
			gone = false
			return nil, messages.Refuse(messages.NotFound, "no session %q", m.GetSession())
		}
		return nil, nil
	})
	said(t, r.run(client, toolCollect, `{}`))
	require.Len(t, told[*messages.AttachRequest](r.node), 2)
	t.Run("once", func(t *testing.T) {
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			return nil, messages.Refuse(messages.NotFound, "nothing here")
		})
		require.Contains(t, failureOf(t, r.run(client, toolCollect, `{}`)), "NOT_FOUND")
		require.Len(t, told[*messages.AttachRequest](r.node), 3)
	})
	t.Run("one that cannot be attached is refused", func(t *testing.T) {
		r.lives(func(l *life) { l.session = "locked" })
		says(r.node, func(m *messages.AttachRequest) (messages.Reply, error) {
			return nil, messages.Refuse(messages.SessionGeneration, "it is old")
		})
		require.Contains(t, failureOf(t, r.run(client, toolCollect, `{}`)), "SESSION_GENERATION: it is old")
		require.Contains(t, failureOf(t, r.run(client, toolAsk, shipIt)), "SESSION_GENERATION: it is old")
	})
}

func TestAnOwnedChildMayNotAsk(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session, l.owner = "child", "parent" })
	client := r.client("any")
	for range 2 {
		require.Equal(t, "Error: DELEGATED_CALLER: a delegated agent cannot ask the user; put the open question into its final result "+
			"(Put the open question into the child's final result; its root can ask.)", failureOf(t, r.run(client, toolAsk, shipIt)), "Q-044, S1")
	}
	require.Empty(t, told[*messages.AskRequest](r.node))
	attached := told[*messages.AttachRequest](r.node)
	require.Len(t, attached, 1)
	require.Equal(t, "child mcp parent", attached[0].GetSession()+" "+attached[0].GetRoot()+" "+attached[0].GetOwner())
	t.Run("nor in the session of its owner", func(t *testing.T) {
		r.lives(func(l *life) { l.owner = "parent" })
		require.Contains(t, failureOf(t, r.run(client, toolAsk, `{"session":"parent","questions":[{"question":"?"}]}`)), "DELEGATED_CALLER")
		require.Empty(t, told[*messages.AskRequest](r.node))
	})
	t.Run("nor take or withdraw what is its owner's", func(t *testing.T) {
		for _, l := range []life{{session: "parent", owner: "parent"}, {session: "child", owner: "parent"}, {owner: "parent"}} {
			r.lives(func(now *life) { now.session, now.owner = l.session, l.owner })
			require.Contains(t, failureOf(t, r.run(client, toolCollect, `{}`)), "DELEGATED_CALLER: the replies belong to the root agent that asked")
			require.Contains(t, failureOf(t, r.run(client, toolWithdraw, `{"call_id":"q-1"}`)), "DELEGATED_CALLER: the questions belong to the root agent that asked them")
		}
		require.Empty(t, told[*messages.CollectRepliesRequest](r.node))
		require.Empty(t, told[*messages.WithdrawQuestionRequest](r.node))
		require.Len(t, told[*messages.AttachRequest](r.node), 1)
	})
}

// That its root is attached does not attach a child to the session: it says so
// itself, and is refused.
func TestAChildIsNotAttachedAsItsRoot(t *testing.T) {
	r := newStage(t)
	client := r.client("any")
	r.lives(func(l *life) { l.session = "parent" })
	said(t, r.run(client, toolCollect, `{}`))
	says(r.node, func(m *messages.AttachRequest) (messages.Reply, error) {
		require.Equal(t, "parent parent", m.GetSession()+" "+m.GetOwner())
		return nil, messages.Refuse(messages.DelegatedCaller, "give a child a session of its own")
	})
	r.lives(func(l *life) { l.session, l.owner = "parent", "parent" })
	require.Contains(t, failureOf(t, r.run(client, toolAsk, shipIt)), "DELEGATED_CALLER: give a child a session of its own")
	require.Len(t, told[*messages.AttachRequest](r.node), 2)
	r.lives(func(l *life) { l.session = "parent" })
	said(t, r.run(client, toolCollect, `{}`))
	require.Len(t, told[*messages.AttachRequest](r.node), 2, "the root still is")
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var a attached
	for i := range attachedMax + 1 {
		a.add(binding{session: strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/1000) + strings.Repeat("z", i%1000)})
	}
	require.LessOrEqual(t, len(a.bindings), attachedMax)
	require.Equal(t, "aé", cutBytes("aéé", 4))
	require.Equal(t, "aéé", cutBytes("aéé", 5))
	require.Equal(t, "", cutBytes("é", 1))
}

func TestARequestThatNoTransportHasLookedAt(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	l := lifeOf(ctx)
	require.NoError(t, l.gone.Err())
	l.whenWritten(func() { t.Error("nobody knows that it was written") })
	end()
	require.ErrorIs(t, l.gone.Err(), context.Canceled)
}

// A call whose client is away, and may come back, does not keep an equal
// question from joining it: a client that asks again has not come back.
func TestACallWhoseClientIsAwayCanBeJoined(t *testing.T) {
	var a alive
	there := true
	held := a.enter("demo", "", time.Time{}, func() bool { return there })
	defer held.leave()
	held.is("first")
	other := a.enter("demo", "", time.Time{}, nil)
	defer other.leave()
	require.Equal(t, []string{"first"}, other.others())
	there = false
	require.Empty(t, other.others())
}
