package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

const yes = `{"answers":[{"id":"ship","selected":["Yes"]}]}`

func TestAskAnsweredInTime(t *testing.T) {
	r := newStage(t)
	got := r.call(r.client("claude-code"), toolAsk, shipIt, "claudecode/toolUseId", "toolu_1")
	open := r.node.open(t, 1)[0]
	r.node.answer(open.call, yes)
	res := r.result(got)
	require.Equal(t, yes, said(t, res), "Q-031, Q-032")
	require.Equal(t, map[string]any{"parley/session": "mcp-1", "parley/call": open.call, "parley/wait_seconds": 110.0}, map[string]any(visible(res)))

	first := told[*messages.AskRequest](r.node)[0]
	require.Equal(t, "mcp", first.GetRoot())
	require.Equal(t, "mcp-2", first.GetAttempt())
	require.Equal(t, shipIt, first.GetArguments())
	require.Equal(t, messages.Mode_MODE_TIMED, first.GetMode())
	require.True(t, first.GetReceipt())
	require.True(t, first.GetJoin())
	require.Equal(t, int64(110_000), first.GetWaitMaxMs())
	require.Equal(t, "toolu_1", first.GetCorrelation())
	require.Equal(t, "claude-code", first.GetClient())
	require.Equal(t, "mcp-1", told[*messages.AttachRequest](r.node)[0].GetSession())

	require.Empty(t, told[*messages.AcknowledgeRequest](r.node), "a result that is not written has not arrived")
	require.Equal(t, 1, r.write())
	acknowledged := told[*messages.AcknowledgeRequest](r.node)
	require.Len(t, acknowledged, 1)
	require.Equal(t, open.call, acknowledged[0].GetCallId())
	require.Empty(t, told[*messages.EndForegroundRequest](r.node))
	require.Zero(t, r.clock.running(), "R11: no timer is left")
}

// visible is the metadata of ours.
func visible(res *sdk.CallToolResult) sdk.Meta {
	m := sdk.Meta{}
	for name, v := range res.Meta {
		if strings.HasPrefix(name, "parley/") {
			m[name] = v
		}
	}
	return m
}

func TestAskAnsweredAtOnce(t *testing.T) {
	r := newStage(t)
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		return &messages.AskResponse{CallId: "q-now", Result: yes, Outcome: &messages.AskResponse_Answered{Answered: &messages.Answered{}}}, nil
	})
	res := r.run(r.client("any"), toolAsk, shipIt, "progressToken", "p")
	require.Equal(t, yes, said(t, res))
	require.Equal(t, "q-now", res.Meta["parley/call"])
	require.Equal(t, 1, r.write())
	require.Equal(t, "q-now", told[*messages.AcknowledgeRequest](r.node)[0].GetCallId())
	require.Empty(t, r.notices, "nobody waited")
}

func TestAskPending(t *testing.T) {
	for _, tt := range []struct {
		name, client, arguments string
		life                    func(*life)
		inbox                   *messages.AwaitInboxResponse
		want                    string
	}{
		{"Q-031 the client's limit", "unknown", `{"questions":[{"question":"?"}]}`, func(l *life) { l.session = "demo" }, nil,
			guidance + " Waited 50 seconds, the longest this client allows."},
		{"Q-031 the call's own timeout", "unknown", `{"timeout":"30s","questions":[{"question":"?"}]}`, func(l *life) { l.session = "demo" }, nil,
			guidance + " The wait was 30 seconds."},
		{"Q-028 -1 obeys the client too", "codex-mcp-client", `{"timeout":-1,"questions":[{"question":"?"}]}`, func(l *life) { l.session = "demo" }, nil,
			guidance + " Waited 280 seconds, the longest this client allows."},
		{"a minted session is told", "unknown", `{"questions":[{"question":"?"}]}`, nil, nil,
			guidance + ` Waited 50 seconds, the longest this client allows. Pass session "mcp-1" to collect_replies.`},
		{"replies that wait are told of, and not told", "unknown", `{"questions":[{"question":"?"}]}`, func(l *life) { l.session = "demo" },
			&messages.AwaitInboxResponse{Queued: 1, Undelivered: 1},
			guidance + " Waited 50 seconds, the longest this client allows. 2 replies wait: call collect_replies."},
		{"one reply", "unknown", `{"questions":[{"question":"?"}]}`, func(l *life) { l.session = "demo" }, &messages.AwaitInboxResponse{Queued: 1},
			guidance + " Waited 50 seconds, the longest this client allows. 1 reply waits: call collect_replies."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newStage(t)
			r.lives(tt.life)
			if tt.inbox != nil {
				says(r.node, func(m *messages.AwaitInboxRequest) (messages.Reply, error) {
					require.True(t, m.GetNow())
					return tt.inbox, nil
				})
			}
			got := r.call(r.client(tt.client), toolAsk, tt.arguments)
			open := r.node.open(t, 1)[0]
			r.node.expire(open.call)
			res := r.result(got)
			call, message := pendingOf(t, res)
			require.Equal(t, open.call, call)
			require.Equal(t, tt.want, message)
			require.Equal(t, 1, r.write(), "a pending that ended by its deadline is confirmed")
			require.Len(t, told[*messages.AcknowledgeRequest](r.node), 1)
		})
	}
}

func TestHowLongACallWaits(t *testing.T) {
	s := time.Second
	for _, tt := range []struct {
		client      string
		token       bool
		timeout     string
		node, mount time.Duration
		limit, wait time.Duration
	}{
		{"", false, "", 0, 0, 50 * s, 50 * s},
		{"somebody", true, "", 0, 0, 50 * s, 50 * s},
		{"somebody", true, "20", 0, 0, 50 * s, 20 * s},
		{"claude-code", true, "", 0, 0, 110 * s, 110 * s},
		{"claude-code", false, "-1", 0, 0, 110 * s, 110 * s},
		{"codex-mcp-client", true, "", 0, 0, 280 * s, 120 * s},
		{"codex-mcp-client", true, "600", 0, 0, 280 * s, 280 * s},
		{"opencode", true, "", 0, 0, noCap, 120 * s},
		{"opencode", true, "-1", 0, 0, noCap, noCap},
		{"opencode", false, "-1", 0, 0, 50 * s, 50 * s},
		{"claude-code", true, "600", 200 * s, 0, 200 * s, 200 * s},
		{"claude-code", true, "600", -1, 0, noCap, 600 * s},
		{"claude-code", true, "600", 200 * s, 20 * s, 20 * s, 20 * s},
		{"claude-code", true, "600", 200 * s, -1, noCap, 600 * s},
	} {
		t.Run(fmt.Sprintf("T7 %+v", tt), func(t *testing.T) {
			r := newStage(t, func(o *Options) { o.WaitMax = tt.node })
			arguments := `{"questions":[]}`
			if tt.timeout != "" {
				arguments = `{"questions":[],"timeout":` + tt.timeout + `}`
			}
			in, bad := readAsk(json.RawMessage(arguments), true)
			require.Nil(t, bad)
			who := caller{life: &life{waitMax: tt.mount}, client: tt.client}
			if tt.token {
				who.token = "p"
			}
			c := r.door.newCall(who, in)
			require.Equal(t, tt.limit, c.limit)
			require.Equal(t, tt.wait, c.wait)
			require.Equal(t, max(tt.limit.Milliseconds(), 0), c.req.GetWaitMaxMs())
		})
	}
	t.Run("the wait is told in the metadata; -1: no limit", func(t *testing.T) {
		r := newStage(t)
		got := r.call(r.client("opencode"), toolAsk, `{"questions":[{"question":"?"}],"timeout":-1}`, "progressToken", "p")
		r.node.answer(r.node.open(t, 1)[0].call, yes)
		require.Equal(t, -1.0, r.result(got).Meta["parley/wait_seconds"])
	})
}

func TestProgressIsToldAtOnceAndThenEveryTenSeconds(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	got := r.call(r.client("opencode"), toolAsk, shipIt, "progressToken", "p")
	open := r.node.open(t, 1)[0]
	next := func() *sdk.ProgressNotificationParams {
		select {
		case notice := <-r.notices:
			return notice
		case <-time.After(patience):
			require.Fail(t, "no progress")
			return nil
		}
	}
	for i := range 4 {
		notice := next()
		require.Equal(t, "p", notice.ProgressToken)
		require.Equal(t, "Waiting for an answer · http://node/demo/"+open.call, notice.Message)
		require.Equal(t, float64(10*i), notice.Progress)
		r.clock.forward(t, 10*time.Second)
	}
	next()
	r.node.answer(open.call, yes)
	r.result(got)
	require.Eventually(t, func() bool { return r.clock.running() == 0 }, patience, time.Millisecond)
	require.Empty(t, r.notices)
}

func TestNoProgressWithoutAToken(t *testing.T) {
	r := newStage(t)
	got := r.call(r.client("opencode"), toolAsk, shipIt)
	r.node.answer(r.node.open(t, 1)[0].call, yes)
	r.result(got)
	require.Empty(t, r.notices)
}

func TestARequestThatEndsEndsTheForeground(t *testing.T) {
	r := newStage(t)
	got := r.call(r.client("any"), toolAsk, shipIt)
	open := r.node.open(t, 1)[0]
	r.hangUp("the client cancelled the request")
	res := r.result(got)
	call, message := pendingOf(t, res)
	require.Equal(t, open.call, call, "a client that resumes gets what the call resulted in")
	require.Contains(t, message, "The request ended before its wait was over: the client cancelled the request.")
	ended := told[*messages.EndForegroundRequest](r.node)
	require.Len(t, ended, 1)
	require.Equal(t, open.attempt, ended[0].GetAttempt())
	require.Equal(t, open.call, ended[0].GetCallId())
	require.Equal(t, "the client cancelled the request", ended[0].GetReason())
	require.Zero(t, r.write(), "nobody has got it")
	require.Empty(t, told[*messages.AcknowledgeRequest](r.node))
	require.Empty(t, r.door.alive.sessions)
}

func TestAnAnswerThatWasFirstIsTheResultOfAnEndedRequest(t *testing.T) {
	r := newStage(t)
	says(r.node, func(m *messages.EndForegroundRequest) (messages.Reply, error) {
		r.node.answer(m.GetCallId(), yes) // it had been accepted before
		return &messages.EndForegroundResponse{}, nil
	})
	got := r.call(r.client("any"), toolAsk, shipIt)
	r.node.open(t, 1)
	r.hangUp("gone")
	require.Equal(t, yes, said(t, r.result(got)))
	require.Zero(t, r.write(), "it stays undelivered, and is collected")
}

func TestARequestThatEndsBeforeItsQuestionIsDurable(t *testing.T) {
	r := newStage(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		if !m.GetResume() {
			close(asked)
			<-goOn
		}
		return nil, nil
	})
	got := r.call(r.client("any"), toolAsk, shipIt)
	<-asked
	r.hangUp("gone")
	require.Empty(t, told[*messages.EndForegroundRequest](r.node))
	close(goOn)
	pendingOf(t, r.result(got))
	require.Len(t, told[*messages.EndForegroundRequest](r.node), 1)
}

func TestANodeThatDoesNotAnswerIsNotWaitedForByARequestThatEnded(t *testing.T) {
	r := newStage(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		close(asked)
		<-goOn
		return nil, errors.New("over")
	})
	got := r.call(r.client("any"), toolAsk, shipIt)
	<-asked
	r.hangUp("gone")
	r.clock.forward(t, endWithin)
	require.Contains(t, failureOf(t, r.result(got)), "UNAVAILABLE: the request ended (gone) before the node said what became of the question")
}

func TestAClaimDoesNotHoldACallBeyondItsClientsLimit(t *testing.T) {
	r := newStage(t) // the stand-in never ends a wait by itself, as a claim would have it
	got := r.call(r.client("any"), toolAsk, shipIt)
	open := r.node.open(t, 1)[0]
	r.clock.forward(t, 51*time.Second)
	call, message := pendingOf(t, r.result(got))
	require.Equal(t, open.call, call)
	require.Contains(t, message, "Waited 50 seconds, the longest this client allows.")
	require.Len(t, told[*messages.EndForegroundRequest](r.node), 1)
	require.Equal(t, 1, r.write())
}

func TestLegacyCallsEndWithTheirClientsLimit(t *testing.T) {
	r := newStage(t, func(o *Options) { o.Mode = messages.Mode_MODE_LEGACY })
	says(r.node, func(m *messages.EndForegroundRequest) (messages.Reply, error) {
		r.node.settle(m.GetCallId(), verdict{err: messages.Refuse(messages.AskAborted, "it was aborted")})
		return &messages.EndForegroundResponse{}, nil
	})
	got := r.call(r.client("any"), toolAsk, `{"questions":[{"question":"?"}],"timeout":5}`)
	r.node.open(t, 1)
	first := told[*messages.AskRequest](r.node)[0]
	require.Equal(t, messages.Mode_MODE_LEGACY, first.GetMode())
	require.Equal(t, `{"questions":[{"id":"q1","question":"?"}]}`, first.GetArguments())
	require.True(t, first.GetJoin(), "one that a dead door left open")
	r.clock.forward(t, 50*time.Second)
	require.Equal(t, "Error: ASK_ABORTED: it was aborted (Do not treat this as an answer. Ask again if it still matters.)", failureOf(t, r.result(got)))
	require.Equal(t, 1, r.write())
	require.Len(t, told[*messages.AcknowledgeRequest](r.node), 1)
}

func TestAJoinedCallIsListenedToByItsOwnAttempt(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	lost := r.node.hold("demo", "lost")
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		if m.GetResume() {
			return nil, nil
		}
		w := waitingOf(lost)
		w.Joined = lost.attempt
		return w, nil
	})
	got := r.call(r.client("any"), toolAsk, shipIt)
	r.node.open(t, 1)
	require.Equal(t, "lost", r.door.others("demo"))
	r.hangUp("gone")
	call, _ := pendingOf(t, r.result(got))
	require.Equal(t, lost.call, call)
	require.Equal(t, "lost", told[*messages.EndForegroundRequest](r.node)[0].GetAttempt())
}

// A request that is gone may not be known to be, when its client asks the same
// again: the two questions are one, and the first is taken back once it shows.
func TestAQuestionThatWasAskedTwiceIsTakenBack(t *testing.T) {
	tests := []struct {
		name, again string
		after       time.Duration
		taken       int
	}{
		{"at once", shipIt, time.Second, 1},
		{"much later, on purpose", shipIt, 3 * time.Second, 0},
		{"another question", `{"questions":[{"id":"s","question":"Another?"}]}`, time.Second, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newStage(t)
			r.lives(func(l *life) { l.session = "demo" })
			client := r.client("any")
			lost := r.call(client, toolAsk, shipIt)
			first := r.node.open(t, 1)[0]
			giveUp := r.lastEnd()
			r.clock.pass(time.Second)
			r.call(client, toolAsk, tt.again)
			r.node.open(t, 2)
			r.clock.pass(tt.after)
			giveUp(errors.New("it was gone"))
			pendingOf(t, r.result(lost))
			taken := told[*messages.WithdrawQuestionRequest](r.node)
			require.Len(t, taken, tt.taken)
			for _, w := range taken {
				require.Equal(t, first.call, w.GetCallId())
				require.Equal(t, "asked again", w.GetReason())
			}
			r.hangUp("over")
		})
	}
}

// A client whose first request is away may ask again under another one. That
// the first is given up then does not end the wait of the second.
func TestTheForegroundEndsWithTheLastRequestThatWaitsInIt(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	client := r.client("any")
	away := r.call(client, toolAsk, shipIt)
	open := r.node.open(t, 1)[0]
	giveUp := r.lastEnd()
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		if m.GetResume() {
			return nil, nil
		}
		w := waitingOf(open)
		w.Joined = open.attempt
		return w, nil
	})
	again := r.call(client, toolAsk, shipIt)
	r.node.open(t, 2)
	giveUp(errors.New("it stayed away"))
	pendingOf(t, r.result(away))
	require.Empty(t, told[*messages.EndForegroundRequest](r.node))
	r.hangUp("gone too")
	call, _ := pendingOf(t, r.result(again))
	require.Equal(t, open.call, call)
	require.Len(t, told[*messages.EndForegroundRequest](r.node), 1)
	require.Zero(t, r.write())
}

// Nor is a question taken back that a third request has joined meanwhile: it
// would be told of an end that nobody wanted.
func TestAQuestionThatWasJoinedIsNotTakenBack(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	client := r.client("any")
	lost := r.call(client, toolAsk, shipIt)
	first := r.node.open(t, 1)[0]
	giveUp := r.lastEnd()
	r.clock.pass(time.Second)
	r.call(client, toolAsk, shipIt)
	r.node.open(t, 2)
	joined := make(chan struct{})
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		if m.GetResume() {
			return nil, nil
		}
		return &messages.AskResponse{CallId: first.call, Joined: first.attempt, Outcome: &messages.AskResponse_Continued{Continued: &messages.Continued{}}}, nil
	})
	says(r.node, func(*messages.CollectRepliesRequest) (messages.Reply, error) {
		select {
		case <-joined:
		default:
			close(joined) // it listens to the first question now
		}
		return &messages.CollectRepliesResponse{State: "continued"}, nil
	})
	says(r.node, func(m *messages.EndForegroundRequest) (messages.Reply, error) {
		if m.GetAttempt() == first.attempt {
			r.call(client, toolAsk, shipIt)
			<-joined
		}
		return nil, nil
	})
	giveUp(errors.New("it was gone"))
	pendingOf(t, r.result(lost))
	require.Empty(t, told[*messages.WithdrawQuestionRequest](r.node))
	r.hangUp("over")
}

// others spells the attempts that live in a session.
func (d *Door) others(session string) string {
	r := d.alive.enter(session, "", time.Time{}, nil)
	defer r.leave()
	return strings.Join(r.others(), " ")
}

// lost makes the node say that an equal question waits for its late answer.
func lost(r *stage) {
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		return &messages.AskResponse{CallId: "q-lost", Joined: "lost", Outcome: &messages.AskResponse_Continued{Continued: &messages.Continued{}}}, nil
	})
}

func TestAskingAgainGetsTheReplyToTheLostCall(t *testing.T) {
	const reply = `{"kind":"answer_to_pending_question","callId":"q-lost","questions":[],"answers":[{"id":"ship","selected":["Yes"]}]}`
	found := &messages.CollectRepliesResponse{State: "replied", Replies: []*messages.CollectedReply{{MessageId: "reply-1", Kind: "reply", CallId: "q-lost", Text: reply}}}
	t.Run("it has come", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			require.Equal(t, "q-lost mcp-2", m.GetCallId()+" "+m.GetCorrelation())
			return found, nil
		})
		res := r.run(r.client("any"), toolAsk, shipIt)
		require.Equal(t, yes, said(t, res))
		require.Equal(t, "q-lost", res.Meta["parley/call"])
		require.Equal(t, 1, r.write())
		require.Equal(t, "mcp-2", told[*messages.AcknowledgeRequest](r.node)[0].GetCorrelation(), "the list that it was taken with")
		require.Empty(t, told[*messages.EndForegroundRequest](r.node))
	})
	t.Run("by the client's own id of the call, which its hooks name too", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			require.Equal(t, "toolu_1", m.GetCorrelation())
			return found, nil
		})
		said(t, r.run(r.client("claude-code"), toolAsk, shipIt, "claudecode/toolUseId", "toolu_1"))
		r.write()
		require.Equal(t, "toolu_1", told[*messages.AcknowledgeRequest](r.node)[0].GetCorrelation())
	})
	t.Run("it comes while the call waits", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		come := make(chan struct{})
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			select {
			case <-come:
				return found, nil
			default:
				return &messages.CollectRepliesResponse{State: "continued"}, nil
			}
		})
		says(r.node, func(m *messages.AwaitInboxRequest) (messages.Reply, error) {
			require.Equal(t, int64(10_000), m.GetHoldMs())
			<-come
			return &messages.AwaitInboxResponse{Queued: 1}, nil
		})
		got := r.call(r.client("any"), toolAsk, shipIt)
		hears[*messages.AwaitInboxRequest](t, r.node, 1)
		close(come)
		require.Equal(t, yes, said(t, r.result(got)))
	})
	t.Run("what else waits stays where it is, and is not looked at without pause", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			if len(told[*messages.CollectRepliesRequest](r.node)) < 4 {
				return &messages.CollectRepliesResponse{State: "continued"}, nil
			}
			return found, nil
		})
		says(r.node, func(m *messages.AwaitInboxRequest) (messages.Reply, error) {
			return &messages.AwaitInboxResponse{Queued: 1}, nil
		})
		got := r.call(r.client("any"), toolAsk, shipIt)
		hears[*messages.CollectRepliesRequest](t, r.node, 2)
		for range 2 {
			r.clock.forward(t, lookAgain)
		}
		require.Equal(t, yes, said(t, r.result(got)))
		require.Len(t, told[*messages.AwaitInboxRequest](r.node), 3)
	})
	t.Run("the wait ends first", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		got := r.call(r.client("any"), toolAsk, `{"questions":[{"question":"?"}],"timeout":20}`)
		hears[*messages.AwaitInboxRequest](t, r.node, 1)
		r.clock.forward(t, 20*time.Second)
		call, message := pendingOf(t, r.result(got))
		require.Equal(t, "q-lost", call)
		require.Contains(t, message, "not a skip and not permission")
		require.Contains(t, message, "The wait was 20 seconds.")
		require.Empty(t, told[*messages.EndForegroundRequest](r.node), "it has no foreground any more")
	})
	t.Run("the request ends first", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		got := r.call(r.client("any"), toolAsk, shipIt)
		hears[*messages.AwaitInboxRequest](t, r.node, 1)
		r.hangUp("gone")
		pendingOf(t, r.result(got))
		require.Empty(t, told[*messages.EndForegroundRequest](r.node))
		require.Zero(t, r.write())
	})
	for _, state := range []string{"settled", "unknown"} {
		t.Run("it is "+state, func(t *testing.T) {
			r := newStage(t)
			lost(r)
			says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
				return &messages.CollectRepliesResponse{State: state}, nil
			})
			require.Contains(t, failureOf(t, r.run(r.client("any"), toolAsk, shipIt)), `SETTLED: an equal question was asked before as call "q-lost"`)
			require.Zero(t, r.write())
		})
	}
	t.Run("a reply without answers is no answer", func(t *testing.T) {
		r := newStage(t)
		lost(r)
		says(r.node, func(m *messages.CollectRepliesRequest) (messages.Reply, error) {
			return &messages.CollectRepliesResponse{Replies: []*messages.CollectedReply{{MessageId: "m", CallId: "q-lost", Text: `{"answers":null}`}}}, nil
		})
		require.Contains(t, failureOf(t, r.run(r.client("any"), toolAsk, shipIt)), "BUG")
	})
}

// The fault W1: answers go by the question's id, never by position. Equal
// questions of requests that live are questions of their own (P5).
func TestEightQuestionsInParallelAnsweredInRandomOrder(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	client := r.client("any")
	var got []<-chan returned
	for i := range 8 {
		got = append(got, r.call(client, toolAsk, fmt.Sprintf(`{"questions":[{"id":"n%d","question":"?"}]}`, i)))
	}
	open := r.node.open(t, 8)
	for _, i := range rand.Perm(8) {
		id := strings.Split(open[i].arguments, `"`)[5]
		r.node.answer(open[i].call, `{"answers":[{"id":"`+id+`","selected":[],"custom":"for `+id+`"}]}`)
	}
	for i := range 8 {
		require.Equal(t, fmt.Sprintf(`{"answers":[{"id":"n%d","selected":[],"custom":"for n%d"}]}`, i, i), said(t, r.result(got[i])))
	}
	attempts := map[int]bool{}
	for _, m := range told[*messages.AskRequest](r.node) {
		if !m.GetResume() {
			attempts[len(m.GetLive())] = true
		}
	}
	require.Len(t, attempts, 8, "each names those that were asked before it")
	require.Equal(t, 8, r.write())
	require.Empty(t, r.door.alive.sessions)
}

func TestAQuestionIsNotLostUntilItsRequestIsOver(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	client := r.client("any")
	got := r.call(client, toolAsk, shipIt)
	open := r.node.open(t, 1)[0]
	r.node.answer(open.call, yes)
	r.result(got)
	require.Equal(t, open.attempt, r.door.others("demo"), "its response is still under way")
	r.write()
	require.Empty(t, r.door.others("demo"))
	got = r.call(client, toolAsk, shipIt)
	r.node.answer(r.node.open(t, 2)[1].call, yes)
	r.result(got)
	r.hangUp("its response was lost")
	require.Eventually(t, func() bool { return r.door.others("demo") == "" }, patience, time.Millisecond)
}

func TestANodeInTroubleIsAskedAgainUnderTheSameAttempt(t *testing.T) {
	r := newStage(t)
	trouble := 0
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		if trouble++; trouble == 1 || trouble == 3 {
			return nil, messages.Refuse(messages.Unavailable, "it restarts")
		}
		return nil, nil
	})
	got := r.call(r.client("any"), toolAsk, shipIt)
	r.clock.forward(t, retryFirst)
	hears[*messages.AskRequest](t, r.node, 3)
	r.clock.forward(t, retryFirst)
	asks := hears[*messages.AskRequest](t, r.node, 4)
	r.node.answer(asks[3].GetCallId(), yes)
	require.Equal(t, yes, said(t, r.result(got)))
	for _, m := range asks {
		require.Equal(t, asks[0].GetAttempt(), m.GetAttempt())
	}
}

func TestRefusalsTellTheModelWhatToDo(t *testing.T) {
	r := newStage(t)
	client := r.client("any")
	t.Run("Q-033 arguments", func(t *testing.T) {
		res := r.run(client, toolAsk, `{"questions":[{"question":"?","options":["Yes","Yes"]}]}`)
		require.Equal(t, `Error: INVALID_ARGS: questions[0].options[1].label "Yes" repeats options[0].label; labels must be distinct `+
			`(The text names every violation with its path; correct them and call again.)`, failureOf(t, res))
		require.Empty(t, told[*messages.AskRequest](r.node))
	})
	t.Run("Q-033 the session's", func(t *testing.T) {
		says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
			return nil, messages.Refuse(messages.BadTimeout, "timeout is 0")
		})
		require.Contains(t, failureOf(t, r.run(client, toolAsk, `{"questions":[],"timeout":0}`)), "Error: BAD_TIMEOUT: timeout is 0 (Give 1 to")
		require.Zero(t, r.write(), "the call is not known")
		require.Empty(t, r.door.alive.sessions)
	})
	t.Run("a node that answers with something else", func(t *testing.T) {
		says(r.node, func(m *messages.AskRequest) (messages.Reply, error) { return &messages.SteerResponse{}, nil })
		require.Contains(t, failureOf(t, r.run(client, toolAsk, shipIt)), "BUG")
		says(r.node, func(m *messages.AskRequest) (messages.Reply, error) { return &messages.AskResponse{}, nil })
		require.Contains(t, failureOf(t, r.run(client, toolAsk, shipIt)), "ended without an outcome")
	})
	t.Run("E7 an error without a code", func(t *testing.T) {
		says(r.node, func(m *messages.AskRequest) (messages.Reply, error) { return nil, errors.New("the wire broke") })
		require.Equal(t, "Error: the wire broke", failureOf(t, r.run(client, toolAsk, shipIt)))
	})
}

// The fault C3: whatever ends a call without a person's answer gives nothing
// that reads as one.
func TestSilenceNeverLooksLikeAnAnswer(t *testing.T) {
	r := newStage(t)
	for _, over := range []string{"", "gone"} {
		for _, continued := range []bool{false, true} {
			for _, id := range []string{"", "q-1"} {
				for _, end := range []ending{{}, {err: errors.New("x")}, {err: messages.Refuse(messages.AskTimedOut, "x")},
					{response: &messages.AskResponse{}}, {response: &messages.AskResponse{Result: yes}},
					{response: &messages.AskResponse{Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{Message: yes}}}}} {
					c := r.door.newCall(caller{life: lifeOf(t.Context()), session: "s"}, asked{})
					c.id, c.over, c.continued = id, over, continued
					res, _ := c.result(t.Context(), end)
					var shape map[string]json.RawMessage
					if !res.IsError {
						require.NoError(t, json.Unmarshal([]byte(said(t, res)), &shape))
						require.Equal(t, "true", string(shape["pending"]))
						require.NotContains(t, shape, "answers")
						continue
					}
					failureOf(t, res)
				}
			}
		}
	}
}

func TestWhatCannotBeRecordedIsNotWaitedFor(t *testing.T) {
	refuse := func() (messages.Reply, error) { return nil, messages.Refuse(messages.NotAnswerable, "not now") }
	t.Run("the end of a request: the question is still pending", func(t *testing.T) {
		r := newStage(t)
		says(r.node, func(m *messages.EndForegroundRequest) (messages.Reply, error) { return refuse() })
		got := r.call(r.client("any"), toolAsk, shipIt)
		open := r.node.open(t, 1)[0]
		r.hangUp("gone")
		r.clock.forward(t, endWithin)
		call, message := pendingOf(t, r.result(got))
		require.Equal(t, open.call, call)
		require.Contains(t, message, "not a skip and not permission")
		require.Zero(t, r.write())
	})
	t.Run("the arrival of a result: it is handed out once more", func(t *testing.T) {
		r := newStage(t)
		says(r.node, func(m *messages.AcknowledgeRequest) (messages.Reply, error) { return refuse() })
		got := r.call(r.client("any"), toolAsk, shipIt)
		r.node.answer(r.node.open(t, 1)[0].call, yes)
		require.Equal(t, yes, said(t, r.result(got)))
		require.Equal(t, 1, r.write())
		require.Empty(t, r.door.alive.sessions)
	})
	t.Run("an end that could not be learned is not confirmed", func(t *testing.T) {
		r := newStage(t)
		got := r.call(r.client("any"), toolAsk, shipIt)
		r.node.settle(r.node.open(t, 1)[0].call, verdict{err: messages.Refuse(messages.JournalIO, "the disk failed")})
		require.Contains(t, failureOf(t, r.result(got)), "JOURNAL_IO")
		require.Zero(t, r.write())
	})
	t.Run("how many replies wait: nothing is told", func(t *testing.T) {
		r := newStage(t)
		says(r.node, func(m *messages.AwaitInboxRequest) (messages.Reply, error) { return refuse() })
		got := r.call(r.client("any"), toolAsk, shipIt)
		r.node.expire(r.node.open(t, 1)[0].call)
		_, message := pendingOf(t, r.result(got))
		require.NotContains(t, message, "wait: call")
	})
}

// An answer that may not have been read is listed, and given to no new call.
func TestAnUnreadAnswerIsToBeCollectedFirst(t *testing.T) {
	r := newStage(t)
	r.lives(func(l *life) { l.session = "demo" })
	says(r.node, func(m *messages.AskRequest) (messages.Reply, error) {
		return nil, messages.Refuse(messages.UnreadAnswer, `call "q-1" asked this before, and its answer may not have been read`)
	})
	text := failureOf(t, r.run(r.client("any"), toolAsk, shipIt))
	require.Contains(t, text, `Error: UNREAD_ANSWER: call "q-1" asked this before`)
	require.Contains(t, text, "(Call collect_replies")
	require.Contains(t, text, "ask again")
	require.Zero(t, r.write(), "nothing was delivered")
	require.Empty(t, r.door.alive.sessions)
	require.Contains(t, instructions, "UNREAD_ANSWER")
}

// all that a pending result says, and nothing that is not so over MCP.
func TestTheGuidanceOfAPendingResult(t *testing.T) {
	for _, says := range []string{"No answer arrived before the timeout", "pending", "not a skip", "not permission", "independent work",
		"user can still answer", "answer_to_pending_question", "callId", "original questions", "handed out by collect_replies"} {
		require.Contains(t, guidance, says)
	}
	require.NotContains(t, guidance, "user message")
	r := newStage(t)
	got := r.call(r.client("any"), toolAsk, shipIt)
	r.node.settle(r.node.open(t, 1)[0].call, verdict{response: &messages.AskResponse{Outcome: &messages.AskResponse_Pending{Pending: &messages.Pending{
		Message: "The reply will arrive as a user message."}}}})
	_, message := pendingOf(t, r.result(got))
	require.NotContains(t, message, "user message")
	require.Equal(t, 1, strings.Count(message, "handed out"))
}
