package parley_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
)

// metrics reads /metrics.
func metrics(t *testing.T, w *world) map[string]int64 {
	t.Helper()
	res, err := http.Get(w.url + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	out := map[string]int64{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			if out[name], err = strconv.ParseInt(value, 10, 64); err != nil {
				require.NoError(t, err)
			}
		}
	}
	return out
}

// cards is what a client shows: a question by its session and call, for as
// long as it can be answered.
type cards map[string]string

func (c cards) take(r *messages.WatchQuestionsResponse) {
	if q := r.GetQuestion(); q != nil {
		key := q.GetSession() + "/" + q.GetCallId()
		if c[key] = q.GetState(); q.GetState() == "settled" {
			delete(c, key)
		}
	}
}

// Faults N1, N7 and N9: a client that reconnects and resumes has no card left
// once the question is settled, wherever and whenever that happened.
func TestReconnectingClientsKeepNoGhosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	c, shown, cursor := w.json(), cards{}, int64(0)
	results := w.asked(agent, "c", 0)
	for range 5 {
		rows, stop := w.watch(c, cursor)
		for {
			r := next(t, rows)
			shown.take(r)
			cursor = max(cursor, r.GetCursor())
			if r.GetLive() {
				assert.Equal(t, int64(15_000), r.GetHeartbeatMs(), "the server tells its interval (fault N5)")
				break
			}
		}
		stop()
		assert.Equal(t, cards{"s/c": "open"}, shown)
	}
	_, err := w.Answer(t.Context(), "s", "c", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	next(t, results)
	rows, _ := w.watch(w.grpc(), cursor) // another client, another protocol
	r := next(t, rows)
	shown.take(r)
	assert.Equal(t, "answered", r.GetQuestion().GetSettlement().GetOutcome())
	assert.Equal(t, []string{"production"}, r.GetQuestion().GetAnswers()[0].GetSelected())
	assert.Empty(t, shown)
	fresh, _ := w.watch(c, 0)
	assert.True(t, next(t, fresh).GetLive(), "nothing is open")
}

// Fault N3: acting on a settled question gives a typed conflict with the outcome.
func TestActingOnASettledQuestionTellsTheOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	results := w.asked(agent, "c", 0)
	_, err := w.Answer(t.Context(), "s", "c", "ann", parley.Choose("env", "production"))
	require.NoError(t, err)
	next(t, results)
	_, dismissed := c.questions.Dismiss(t.Context(), say(&messages.DismissRequest{Session: "s", CallId: "c", By: "bob"}))
	_, expired := c.questions.Expire(t.Context(), say(&messages.ExpireRequest{Session: "s", CallId: "c", By: "bob"}))
	for name, err := range map[string]error{"dismiss": dismissed, "expire": expired} {
		r := refusal(err)
		assert.Equal(t, messages.Settled, r.Code, "%s: %v", name, err)
		assert.Equal(t, "ann", r.Winner.GetBy(), name)
	}
	stream, err := c.questions.AttachWait(t.Context(), say(&messages.AttachWaitRequest{Session: "s", CallId: "c"}))
	require.NoError(t, err)
	assert.False(t, stream.Receive())
	assert.NoError(t, stream.Err(), "a finished wait gives an empty stream, not an error (Q-090)")
	require.NoError(t, stream.Close())
}

// Fault E7: an empty id is stored and comes back for ever. Every method refuses
// it, at the wire and in the library.
func TestNoDoorTakesAnEmptyID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, c := w.attach("s"), w.json()
	ctx := t.Context()
	for _, bad := range []string{"", " \t ", "a\x00b", strings.Repeat("x", messages.IDBytesMax+1)} {
		calls := map[string]func() error{
			"Attach": func() error {
				_, err := c.sessions.Attach(ctx, say(&messages.AttachRequest{Session: bad, Root: "r"}))
				return err
			},
			"Attach root": func() error {
				_, err := c.sessions.Attach(ctx, say(&messages.AttachRequest{Session: "s", Root: bad}))
				return err
			},
			"BeginTurn": func() error {
				_, err := c.sessions.BeginTurn(ctx, say(&messages.BeginTurnRequest{Session: bad, Root: "r"}))
				return err
			},
			"GetSession": func() error {
				_, err := c.sessions.GetSession(ctx, say(&messages.GetSessionRequest{Session: bad}))
				return err
			},
			"ReadLog": func() error {
				_, err := c.sessions.ReadLog(ctx, say(&messages.ReadLogRequest{Session: bad}))
				return err
			},
			"Ask": func() error {
				_, err := c.questions.Ask(ctx, say(&messages.AskRequest{Session: "s", Root: "agent-1", Attempt: bad}))
				return err
			},
			"GetQuestion": func() error {
				_, err := c.questions.GetQuestion(ctx, say(&messages.GetQuestionRequest{Session: "s", CallId: bad}))
				return err
			},
			"Submit": func() error {
				_, err := c.questions.Submit(ctx, say(&messages.SubmitRequest{Session: "s", CallId: "c", SubmissionId: bad}))
				return err
			},
			"Withdraw": func() error {
				_, err := c.questions.WithdrawQuestion(ctx, say(&messages.WithdrawQuestionRequest{Session: "s", CallId: bad, Root: "r"}))
				return err
			},
			"Steer": func() error {
				_, err := c.inbox.Steer(ctx, say(&messages.SteerRequest{Session: "s", MessageId: bad}))
				return err
			},
			"AdmitMessages": func() error {
				_, err := c.inbox.AdmitMessages(ctx, say(&messages.AdmitMessagesRequest{Session: "s", Root: "agent-1", MessageIds: []string{bad}}))
				return err
			},
			"AttachWait": func() error {
				stream, err := c.questions.AttachWait(ctx, say(&messages.AttachWaitRequest{Session: "s", CallId: bad}))
				if err != nil {
					return err
				}
				defer stream.Close()
				stream.Receive()
				return stream.Err()
			},
			"library Attach": func() error { _, err := w.Attach(ctx, bad, "r", parley.AttachOptions{}); return err },
			"library Question": func() error {
				_, err := w.Question(ctx, bad, "c")
				return err
			},
			"library AttachWait": func() error { _, err := w.AttachWait(ctx, "s", bad); return err },
			"library Admit":      func() error { _, err := agent.Admit(ctx, 1, bad); return err },
		}
		for name, call := range calls {
			code := refusal(call()).Code
			assert.Contains(t, []messages.Code{messages.BadRequest, messages.TooLarge}, code, "%s with %.20q", name, bad)
		}
	}
	list, err := c.sessions.ListSessions(ctx, say(&messages.ListSessionsRequest{}))
	require.NoError(t, err)
	require.Len(t, list.Msg.GetSessions(), 1, "nothing was stored")
}

// get sends a plain request with headers of its own choice.
func get(t *testing.T, url, host string, header map[string]string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	if host != "" {
		req.Host = host
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

// A page of another site reaches a node on this machine by rebinding its own
// name, or by calling it outright. Both are refused.
func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	cfg := parley.Config{Memory: true, Logger: quiet}
	w := start(t, cfg, parley.ServeOptions{AllowOrigins: []string{"https://ui.example.org"}, AllowHosts: []string{"parley.internal"}})
	port := w.url[strings.LastIndex(w.url, ":"):]
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"", "", 200},
		{"localhost" + port, "http://localhost" + port, 200},
		{"[::1]" + port, "", 200},
		{"parley.internal", "", 200},
		{"", "https://ui.example.org", 200},
		{"evil.example" + port, "http://evil.example" + port, 403}, // rebound: both headers agree
		{"evil.example" + port, "", 403},
		{"127.0.0.1.evil.example", "", 403},
		{"", "https://evil.example", 403},
		{"", "null", 403},
	} {
		header := map[string]string{}
		if c.origin != "" {
			header["Origin"] = c.origin
		}
		status, body := get(t, w.url+"/healthz", c.host, header)
		assert.Equal(t, c.status, status, "host %q origin %q: %s", c.host, c.origin, body)
		if c.status == 403 {
			assert.Contains(t, body, "FOREIGN_ORIGIN")
		}
	}
}

// An address others can reach needs a token; then every request does.
func TestATokenGuardsEveryDoor(t *testing.T) {
	t.Parallel()
	node, err := parley.Open(parley.Config{Memory: true, Logger: quiet})
	require.NoError(t, err)
	err = node.Serve(t.Context(), parley.ServeOptions{Listen: "0.0.0.0:0"})
	assert.Equal(t, messages.Unauthenticated, messages.CodeOf(err))
	assert.Contains(t, err.Error(), "PARLEY_TOKEN")
	err = node.Serve(t.Context(), parley.ServeOptions{Token: "short"})
	assert.Equal(t, messages.BadRequest, messages.CodeOf(err))
	require.NoError(t, node.Close(t.Context()))

	const token = "a-token-of-some-length"
	w := start(t, parley.Config{Memory: true, Logger: quiet}, parley.ServeOptions{Listen: "0.0.0.0:0", Token: token})
	w.url = "http://127.0.0.1" + w.url[strings.LastIndex(w.url, ":"):]
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, token: 401, "Basic " + token: 401, "Bearer " + token: 200, "bearer " + token: 200} {
		status, _ := get(t, w.url+"/metrics", "", map[string]string{"Authorization": header})
		assert.Equal(t, want, status, "with %q", header)
	}
	status, _ := get(t, w.url+"/healthz", "", nil)
	assert.Equal(t, 200, status, "probes hold no tokens")
	status, _ = get(t, w.url+"/metrics", "any.name.example", map[string]string{"Authorization": "Bearer " + token})
	assert.Equal(t, 200, status, "whoever knows the token is no rebound page")
	for name, c := range map[string]clients{"json": w.json(), "grpc": w.grpc(), "web": w.web()} {
		_, err := c.sessions.Attach(t.Context(), say(&messages.AttachRequest{Session: "s", Root: "r"}))
		assert.Equal(t, messages.Unauthenticated, refusal(err).Code, "%s: %v", name, err)
		assert.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err), name)
		req := say(&messages.AttachRequest{Session: "s", Root: "r"})
		req.Header().Set("Authorization", "Bearer "+token)
		_, err = c.sessions.Attach(t.Context(), req)
		assert.NoError(t, err, name)
	}
}

// Stopping answers whoever waits with "send it again", and returns.
func TestStoppingEndsWhatIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	w.asked(agent, "c", time.Hour)
	ends := make(chan error, 16)
	for _, c := range []clients{w.json(), w.grpc(), w.web()} {
		_, ended, _ := w.claim(c, "s", "c")
		go func() { ends <- <-ended }()
		stream, err := c.questions.WatchQuestions(t.Context(), say(&messages.WatchQuestionsRequest{}))
		require.NoError(t, err)
		require.True(t, stream.Receive())
		go func() {
			for stream.Receive() {
			}
			ends <- stream.Err()
			_ = stream.Close()
		}()
		go func() {
			_, err := c.questions.Ask(t.Context(), say(&messages.AskRequest{Session: "s", Root: "agent-1", Attempt: "attempt-c", CallId: "c", Resume: true}))
			ends <- err
		}()
	}
	eventually(t, "not everything is held", func() bool { return metrics(t, w)["parley_held_requests"] == 3 })
	w.stop()
	for range 9 {
		err := next(t, ends)
		assert.Equal(t, messages.Unavailable, refusal(err).Code, "%v", err)
	}
}

// What is too large, malformed or unknown has its own clear error.
func TestOddRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attach("s")
	c := w.json()
	_, err := c.inbox.Steer(t.Context(), say(&messages.SteerRequest{Session: "s", MessageId: "m", Text: strings.Repeat("x", messages.TextBytesMax+1)}))
	assert.Equal(t, messages.TooLarge, refusal(err).Code)
	assert.Contains(t, err.Error(), "65536")
	_, err = c.inbox.Steer(t.Context(), say(&messages.SteerRequest{Session: "s", MessageId: "m", Text: strings.Repeat("x", 5<<20)}))
	assert.Equal(t, messages.TooLarge, refusal(err).Code, "%v", err)
	_, err = c.questions.Submit(t.Context(), say(&messages.SubmitRequest{Session: "nowhere", CallId: "c", SubmissionId: "x", Answers: choose("a")}))
	assert.Equal(t, messages.NotFound, refusal(err).Code)
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	res, err := http.Post(w.url+"/parley.v1.QuestionService/Submit", "application/json", strings.NewReader(`{"session":`))
	require.NoError(t, err)
	assert.Equal(t, 400, res.StatusCode)
	require.NoError(t, res.Body.Close())
	status, body := get(t, w.url+"/nothing", "", nil)
	assert.Equal(t, 404, status)
	assert.Contains(t, body, "NOT_FOUND")
}

// /healthz says whether the journal answers.
func TestHealthFollowsTheJournal(t *testing.T) {
	t.Parallel()
	j := memory.New(nil)
	w := start(t, parley.Config{Journal: j, Logger: quiet}, parley.ServeOptions{})
	status, _ := get(t, w.url+"/healthz", "", nil)
	assert.Equal(t, 200, status)
	require.NoError(t, j.Close())
	status, body := get(t, w.url+"/healthz", "", nil)
	assert.Equal(t, 503, status)
	assert.Contains(t, body, "UNAVAILABLE")
}

// A client that vanishes without a word is noticed: its socket just closes.
func TestAVanishedClientLosesItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asked(w.attach("s"), "c", time.Hour)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	require.NoError(t, err)
	body := []byte(`{"session":"s","callId":"c"}`)
	var envelope bytes.Buffer
	envelope.Write([]byte{0, 0, 0, 0, byte(len(body))})
	envelope.Write(body)
	_, err = fmt.Fprintf(conn, "POST /parley.v1.QuestionService/AttachWait HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n%s", envelope.Len(), envelope.String())
	require.NoError(t, err)
	eventually(t, "no claim is held", func() bool { return metrics(t, w)["parley_claims"] == 1 })
	require.NoError(t, conn.Close())
	eventually(t, "the claim is still held", func() bool { return metrics(t, w)["parley_claims"] == 0 })
}

// An agent with a loop of its own, over the wire, in each protocol: every
// method of the three services has its place in one life of a session.
func TestAWholeLifeOverTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for door, c := range map[string]clients{"json": w.json(), "grpc": w.grpc(), "web": w.web()} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			s, ctx := "session-"+door, t.Context()
			attached, err := c.sessions.Attach(ctx, say(&messages.AttachRequest{Session: s, Root: "r"}))
			require.NoError(t, err)
			assert.True(t, attached.Msg.GetCreated())
			held, err := c.inbox.AwaitInbox(ctx, say(&messages.AwaitInboxRequest{Session: s, Root: "r", HoldMs: 1}))
			require.NoError(t, err)
			assert.Zero(t, held.Msg.GetQueued(), "the hold ended with nothing waiting")
			_, err = c.inbox.Steer(ctx, say(&messages.SteerRequest{Session: s, MessageId: "m1", Text: "Deploy.", By: "ann", List: "next-turn"}))
			require.NoError(t, err)
			held, err = c.inbox.AwaitInbox(ctx, say(&messages.AwaitInboxRequest{Session: s, Root: "r"}))
			require.NoError(t, err)
			assert.Equal(t, int32(1), held.Msg.GetQueued())

			turn, err := c.sessions.BeginTurn(ctx, say(&messages.BeginTurnRequest{Session: s, Root: "r", Turn: 1}))
			require.NoError(t, err)
			step, err := c.sessions.BeginStep(ctx, say(&messages.BeginStepRequest{Session: s, Root: "r", Turn: turn.Msg.GetTurn(), Step: 1}))
			require.NoError(t, err)
			assert.Equal(t, "Deploy.", step.Msg.GetAdmitted()[0].GetText())
			ask := &messages.AskRequest{Session: s, Root: "r", Attempt: "a", CallId: "c", Turn: 1, Step: 1, HoldMs: 1,
				Questions: []*messages.Question{{Id: "env", Question: "Where?", Options: []*messages.Option{{Label: "here"}}}}}
			asked, err := c.questions.Ask(ctx, say(ask))
			require.NoError(t, err)
			require.NotNil(t, asked.Msg.GetWaiting())
			_, err = c.sessions.EndStep(ctx, say(&messages.EndStepRequest{Session: s, Root: "r", Turn: 1, Step: 1}))
			assert.Equal(t, messages.CallsOpen, refusal(err).Code)

			expired, err := c.questions.Expire(ctx, say(&messages.ExpireRequest{Session: s, CallId: "c", By: "ann"}))
			require.NoError(t, err)
			assert.True(t, expired.Msg.GetSettled())
			submitted, err := c.questions.Submit(ctx, say(&messages.SubmitRequest{Session: s, CallId: "c", SubmissionId: "x", Answers: choose("here"), By: "ann"}))
			require.NoError(t, err)
			reply := submitted.Msg.GetSettlement().GetMessageId()
			got, err := c.questions.GetQuestion(ctx, say(&messages.GetQuestionRequest{Session: s, CallId: "c"}))
			require.NoError(t, err)
			assert.Equal(t, "replied", got.Msg.GetQuestion().GetState())
			assert.Equal(t, reply, got.Msg.GetQuestion().GetSettlement().GetMessageId())
			inbox, err := c.inbox.ListInbox(ctx, say(&messages.ListInboxRequest{Session: s}))
			require.NoError(t, err)
			assert.Equal(t, "c", inbox.Msg.GetMessages()[0].GetReplyTo())
			claimed, err := c.inbox.ClaimMessages(ctx, say(&messages.ClaimMessagesRequest{Session: s, Root: "r", Turn: 1}))
			require.NoError(t, err)
			require.Len(t, claimed.Msg.GetMessages(), 1)
			for range 2 { // a repeat within the turn gets the same again
				admitted, err := c.inbox.AdmitMessages(ctx, say(&messages.AdmitMessagesRequest{Session: s, Root: "r", Turn: 1, MessageIds: []string{reply}}))
				require.NoError(t, err)
				assert.Equal(t, reply, admitted.Msg.GetMessages()[0].GetId())
			}
			_, err = c.inbox.WithdrawMessage(ctx, say(&messages.WithdrawMessageRequest{Session: s, MessageId: reply, By: "ann"}))
			assert.Equal(t, messages.NotFound, refusal(err).Code)

			ask.Attempt, ask.CallId = "b", "d"
			_, err = c.questions.Ask(ctx, say(ask))
			require.NoError(t, err)
			withdrawn, err := c.questions.WithdrawQuestion(ctx, say(&messages.WithdrawQuestionRequest{Session: s, Root: "r", CallId: "d", By: "r"}))
			require.NoError(t, err)
			assert.Equal(t, "withdrawn", withdrawn.Msg.GetSettlement().GetOutcome())
			_, err = c.sessions.EndStep(ctx, say(&messages.EndStepRequest{Session: s, Root: "r", Turn: 1, Step: 1}))
			require.NoError(t, err)
			_, err = c.sessions.EndTurn(ctx, say(&messages.EndTurnRequest{Session: s, Root: "r", Turn: 1}))
			require.NoError(t, err)
			row, err := c.sessions.GetSession(ctx, say(&messages.GetSessionRequest{Session: s}))
			require.NoError(t, err)
			assert.Equal(t, "r", row.Msg.GetSession().GetRoot())
			assert.Zero(t, row.Msg.GetSession().GetAnswerable()+row.Msg.GetSession().GetQueued())
			all, err := c.questions.ListQuestions(ctx, say(&messages.ListQuestionsRequest{Session: s, Settled: true}))
			require.NoError(t, err)
			require.Len(t, all.Msg.GetQuestions(), 2)
			assert.Equal(t, "answered", all.Msg.GetQuestions()[0].GetSettlement().GetOutcome())
			assert.Equal(t, []string{"here"}, all.Msg.GetQuestions()[0].GetAnswers()[0].GetSelected())
			assert.Equal(t, "withdrawn", all.Msg.GetQuestions()[1].GetSettlement().GetOutcome())
		})
	}
}

// Fault N9: a settlement that comes from the log alone reaches every screen, of
// every protocol, however many there are.
func TestEveryScreenHearsOfASettlement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	w.asked(agent, "c", 0)
	var screens []<-chan *messages.WatchQuestionsResponse
	for _, c := range []clients{w.json(), w.grpc(), w.web()} {
		for range 6 {
			rows, _ := w.watch(c, 0)
			screens = append(screens, rows)
		}
	}
	for _, rows := range screens {
		for !next(t, rows).GetLive() {
		}
	}
	_, err := agent.Withdraw(t.Context(), "c", "no longer needed")
	require.NoError(t, err)
	for _, rows := range screens {
		q := next(t, rows).GetQuestion()
		assert.Equal(t, "settled", q.GetState())
		assert.Equal(t, "no longer needed", q.GetSettlement().GetReason())
	}
}
