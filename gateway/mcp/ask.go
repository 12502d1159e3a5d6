package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

const (
	// progressEvery is the pause between two notices of progress.
	progressEvery = 10 * time.Second
	// holdInbox is how long one look for a reply is held.
	holdInbox = 10 * time.Second
	// endWithin bounds what is done for a request that has ended, or is about
	// to: recording its end, confirming a result.
	endWithin = 5 * time.Second
	// capSlack lets the session's own deadline go before the door's.
	capSlack = time.Second
	// The pauses between two tries while the node is in trouble.
	retryFirst = 100 * time.Millisecond
	retryMax   = 2 * time.Second
	// noticeWithin is how long it may take to notice that a request is gone.
	noticeWithin = 2 * time.Second
	// lookAgain is the pause when something waits that is not looked for.
	lookAgain = time.Second
)

// call is one call of ask_user_question.
type call struct {
	door *Door
	who  caller
	req  *messages.AskRequest
	// alive is the request among those of its session.
	alive *request
	// wait is how long the call waits in the foreground, limit how long its
	// client lets it; noCap: no limit.
	wait, limit time.Duration
	started     time.Time

	// asked has one response, once the question is durable.
	asked chan *messages.AskResponse
	// done has the end.
	done chan ending
	// link has the address at which a person answers, once it is known.
	link chan string

	// Of the loop in run alone.

	// id and attempt are the call's, once it is durable; another's, when it
	// joined one.
	id, attempt string
	// continued: it waits for the reply to an equal question.
	continued bool
	// over says why the foreground ended before its result; empty: it goes on.
	over string
}

// ending is how a call ended: with the session's response, with the answers of
// an equal question, or with an error.
type ending struct {
	response *messages.AskResponse
	answers  string
	err      error
}

// ask is the tool ask_user_question.
func (d *Door) ask(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	in, bad := readAsk(req.Params.Arguments, d.timed())
	if bad != nil {
		return fail(bad, nil), nil
	}
	who, bad := d.callerOf(ctx, req, in.session, true)
	if bad != nil {
		return fail(bad, nil), nil
	}
	if no := forChild(who.life, "a delegated agent cannot ask the user; put the open question into its final result"); no != nil {
		if err := d.attach(ctx, who); err != nil {
			return fail(err, who.meta("")), nil
		}
		return fail(no, who.meta("")), nil
	}
	return d.newCall(who, in).run(ctx), nil
}

func (d *Door) newCall(who caller, in asked) *call {
	c := &call{door: d, who: who, started: d.clock.Now(), asked: make(chan *messages.AskResponse, 1), done: make(chan ending, 1), link: make(chan string, 1)}
	c.limit = d.capOf(who.life, who.client, who.token != nil)
	c.wait = shorter(d.waitOf(in), c.limit)
	c.req = &messages.AskRequest{Session: who.session, Root: Root, Attempt: d.opts.NewID(Root), Arguments: in.arguments, Mode: d.opts.Mode,
		HoldMs:  1, // until it is durable; then the door knows the call, and listens on
		Receipt: true, Join: true, Correlation: who.correlation, Client: who.client}
	if c.limit >= 0 {
		c.req.WaitMaxMs = max(c.limit.Milliseconds(), 1)
	}
	return c
}

// waitOf is the wait that a call asks for; a legacy call waits for its answer.
func (d *Door) waitOf(in asked) time.Duration {
	s := float64(d.opts.DefaultTimeoutS)
	if in.timeoutS != nil {
		s = *in.timeoutS
	}
	if !d.timed() || s < 0 || s > (1<<31) { // out of range is the session's to refuse
		return noCap
	}
	return time.Duration(s) * time.Second
}

// run asks, and stays until there is a result. When the request or its client's
// patience ends first, it ends the foreground and takes what that results in:
// a client that comes back for the response gets it.
func (c *call) run(ctx context.Context) *sdk.CallToolResult {
	detached := context.WithoutCancel(ctx)
	work, stop := context.WithCancel(detached)
	defer stop()
	c.alive = c.door.alive.enter(c.who.session, c.req.GetArguments(), c.started, c.who.life.carried)
	forget := context.AfterFunc(c.who.life.gone, c.alive.leave)
	go func() { c.done <- c.work(work) }()
	go c.progress(work)

	end := c.stay(detached)
	result, confirm := c.result(detached, end)
	receipt := c.receipt(end)
	if !confirm || c.who.life.gone.Err() != nil {
		forget()
		c.alive.leave()
		return result
	}
	c.who.life.whenWritten(func() { // until then its question could still be lost
		c.acknowledge(detached, receipt)
		forget()
		c.alive.leave()
	})
	return result
}

// stay waits for the end of the call, and ends its foreground when it must.
func (c *call) stay(ctx context.Context) ending {
	gone := c.who.life.gone.Done()
	capped, stopCap := c.left(c.patience())
	defer func() { stopCap() }()
	var late <-chan time.Time
	stopLate := func() {}
	defer func() { stopLate() }()
	for {
		select {
		case end := <-c.done:
			c.learn()
			return end
		case r := <-c.asked:
			c.durable(r)
			if c.continued { // its wait is nobody's but ours
				stopCap()
				capped, stopCap = c.left(c.wait)
			}
		case <-gone:
			gone, c.over = nil, context.Cause(c.who.life.gone).Error()
		case <-capped:
			capped, c.over = nil, "the wait of this client's calls is over"
		case <-late:
			return ending{}
		}
		switch {
		case c.over == "":
			continue
		case c.continued || c.id != "" && !c.alive.last():
			return ending{} // the call has no foreground, or another request waits in it
		case late == nil:
			late, stopLate = c.door.clock.After(endWithin)
		}
		c.endForeground(ctx)
	}
}

// patience is how long a call is left to itself; noCap: for ever. A timed one
// ends by the session's own deadline before; a legacy one has none.
func (c *call) patience() time.Duration {
	if c.limit >= 0 && c.door.timed() {
		return c.limit + capSlack
	}
	return c.limit
}

// left is a timer for what is left of a wait; none, when it has no limit.
func (c *call) left(wait time.Duration) (<-chan time.Time, func()) {
	if wait < 0 {
		return nil, func() {}
	}
	return c.door.clock.After(max(wait-c.door.clock.Now().Sub(c.started), 0))
}

// learn takes what is known of the call, if it came together with its end.
func (c *call) learn() {
	select {
	case r := <-c.asked:
		c.durable(r)
	default:
	}
}

// durable takes note of the call that the session made of this one.
func (c *call) durable(r *messages.AskResponse) {
	c.id, c.attempt, c.continued = r.GetCallId(), attemptOf(c.req, r), r.GetContinued() != nil
	if r.GetWaiting() == nil && !c.continued {
		return // nobody waits any more
	}
	link := ""
	if c.door.opts.Link != nil {
		link = c.door.opts.Link(c.who.session, c.id)
	}
	c.link <- link
}

// progress tells the client that somebody waits: as soon as the question can be
// answered, and then at every interval. It keeps the patience of some clients,
// and shows the person where to answer.
func (c *call) progress(ctx context.Context) {
	if c.who.token == nil || c.who.conn == nil {
		return
	}
	message := "Waiting for an answer"
	for {
		next, stop := c.door.clock.After(progressEvery)
		select {
		case link := <-c.link:
			if link != "" {
				message += " · " + link
			}
		case <-next:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return
		}
		notice := &sdk.ProgressNotificationParams{ProgressToken: c.who.token, Message: message,
			Progress: c.door.clock.Now().Sub(c.started).Seconds()}
		if err := c.who.conn.NotifyProgress(ctx, notice); err != nil {
			c.door.opts.Logger.Debug("progress was not sent", slog.String("session", c.who.session), slog.Any("error", err))
		}
	}
}

func attemptOf(req *messages.AskRequest, r *messages.AskResponse) string {
	if joined := r.GetJoined(); joined != "" {
		return joined
	}
	return req.GetAttempt()
}

// endForeground records that nobody listens for the result any more, once the
// call is known. Whoever settled the call first has won, and the result says so.
func (c *call) endForeground(ctx context.Context) {
	if c.id == "" {
		return
	}
	bounded, stop := context.WithTimeout(ctx, endWithin)
	defer stop()
	_, err := send[*messages.EndForegroundResponse](bounded, c, &messages.EndForegroundRequest{
		Session: c.who.session, CallId: c.id, Attempt: c.attempt, Reason: cutBytes(c.over, messages.NameBytesMax)})
	if err != nil {
		c.door.opts.Logger.Warn("the end of a request was not recorded", slog.String("session", c.who.session),
			slog.String("call", c.id), slog.Any("error", err))
		return
	}
	if c.who.life.gone.Err() != nil && c.alive.repeated(c.door.clock.Now()) {
		c.takeBack(bounded)
	}
}

// takeBack withdraws the question of a request that was gone before its client
// asked the same again, when nobody had noticed yet: the two are one, and a
// person has seen both for a moment. An answer that came first stands, and so
// does the question if a third request has joined it since it was given up: while
// this one asks, no other can.
func (c *call) takeBack(ctx context.Context) {
	select {
	case c.alive.of.asking <- struct{}{}:
		defer func() { <-c.alive.of.asking }()
	case <-ctx.Done():
		return
	}
	if !c.alive.last() {
		return
	}
	_, err := c.door.port.Do(ctx, &messages.WithdrawQuestionRequest{
		Session: c.who.session, Root: Root, CallId: c.id, By: byOf(c.who), Reason: "asked again"})
	if err != nil {
		c.door.opts.Logger.Debug("a repeated question was not taken back", slog.String("session", c.who.session),
			slog.String("call", c.id), slog.Any("error", err))
	}
}

// receipt names what reaches the client with an ending: a result by its call, a
// reply by the list that it was taken with.
func (c *call) receipt(end ending) *messages.AcknowledgeRequest {
	if end.answers != "" {
		return &messages.AcknowledgeRequest{Session: c.who.session, Correlation: c.list()}
	}
	return &messages.AcknowledgeRequest{Session: c.who.session, CallId: c.id}
}

// list is the name of the list that a reply is taken with: the client's own id
// of this call, so that a hook that tells of its arrival acknowledges it too.
func (c *call) list() string {
	if c.who.correlation != "" {
		return c.who.correlation
	}
	return c.req.GetAttempt()
}

// acknowledge says that the result has reached the client.
func (c *call) acknowledge(ctx context.Context, receipt *messages.AcknowledgeRequest) {
	bounded, stop := context.WithTimeout(ctx, endWithin)
	defer stop()
	if _, err := c.door.port.Do(bounded, receipt); err != nil {
		// It stays undelivered: collect_replies lists it once more.
		c.door.opts.Logger.Warn("a written result was not acknowledged", slog.String("session", c.who.session),
			slog.String("call", c.id), slog.Any("error", err))
	}
}

// work asks until the question is durable, then listens until its result.
func (c *call) work(ctx context.Context) ending {
	r, err := c.first(ctx)
	if err != nil {
		return ending{err: err}
	}
	c.asked <- r
	listen := &messages.AskRequest{Session: c.who.session, Root: Root, Attempt: attemptOf(c.req, r), CallId: r.GetCallId(), Resume: true}
	for r.GetWaiting() != nil {
		if r, err = send[*messages.AskResponse](ctx, c, listen); err != nil {
			return ending{err: err}
		}
	}
	if r.GetContinued() != nil {
		return c.reply(ctx, r.GetCallId())
	}
	return ending{response: r}
}

// first makes the question durable. One at a time in a session, so that each
// ask names the requests that live, and none joins another's question.
func (c *call) first(ctx context.Context) (*messages.AskResponse, error) {
	select {
	case c.alive.of.asking <- struct{}{}:
		defer func() { <-c.alive.of.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.req.Live = c.alive.others()
	r, err := send[*messages.AskResponse](ctx, c, c.req)
	if err == nil {
		c.alive.is(attemptOf(c.req, r))
	}
	return r, err
}

// send sends a command of a call, and again while the node is in trouble.
func send[R messages.Reply](ctx context.Context, c *call, cmd messages.Command) (r R, err error) {
	for pause := retryFirst; ; pause = min(2*pause, retryMax) {
		reply, err := c.door.speak(ctx, c.who, cmd)
		code := messages.CodeOf(err)
		switch r, ok := reply.(R); {
		case err != nil && code != messages.Unavailable && code != messages.Fenced:
			return r, err
		case err == nil && ok:
			return r, nil
		case err == nil:
			return r, unexpected(reply)
		}
		if !c.pause(ctx, pause) {
			return r, err
		}
	}
}

// pause waits; false: ctx ended first.
func (c *call) pause(ctx context.Context, d time.Duration) bool {
	over, stop := c.door.clock.After(d)
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// reply waits for the answer to an equal question that was asked before, and
// whose request was lost: it is, or will be, a reply.
func (c *call) reply(ctx context.Context, id string) ending {
	look := &messages.CollectRepliesRequest{Session: c.who.session, Root: Root, CallId: id, Correlation: c.list()}
	hold := &messages.AwaitInboxRequest{Session: c.who.session, Root: Root, HoldMs: holdInbox.Milliseconds()}
	for inbox := (&messages.AwaitInboxResponse{}); ; {
		r, err := send[*messages.CollectRepliesResponse](ctx, c, look)
		if err != nil {
			return ending{err: err}
		}
		if end, over := endOf(id, r); over {
			return end
		}
		// What waits is something else, and stays where it is; nothing more is
		// heard of it.
		if inbox.GetQueued() > 0 && !c.pause(ctx, lookAgain) {
			return ending{err: ctx.Err()}
		}
		if inbox, err = send[*messages.AwaitInboxResponse](ctx, c, hold); err != nil {
			return ending{err: err}
		}
	}
}

// endOf reads what was found of a call.
func endOf(id string, r *messages.CollectRepliesResponse) (ending, bool) {
	for _, reply := range r.GetReplies() {
		if reply.GetCallId() != id {
			continue
		}
		b, ok := batchOf(reply.GetText())
		if !ok {
			return ending{err: messages.Refuse(messages.Bug, "reply %q to call %q holds no answers", reply.GetMessageId(), id)}, true
		}
		return ending{answers: `{"answers":` + compact(b.Answers) + `}`}, true
	}
	switch r.GetState() {
	case "settled", "unknown":
		return ending{err: messages.Refuse(messages.Settled,
			"an equal question was asked before as call %q, and is settled without an answer for this call", id)}, true
	}
	return ending{}, false
}

// result is what the client gets, and whether its arrival is to be confirmed.
func (c *call) result(ctx context.Context, end ending) (result *sdk.CallToolResult, confirm bool) {
	meta := c.who.meta(c.id)
	meta["parley/wait_seconds"] = inSeconds(c.wait)
	durable := c.id != ""
	switch r := end.response; {
	case end.err != nil:
		return fail(end.err, meta), durable && !c.continued && recorded(end.err)
	case end.answers != "":
		return succeed(end.answers, meta), true
	case r.GetAnswered() != nil:
		return succeed(r.GetResult(), meta), true
	case r.GetPending() != nil:
		return succeed(c.pending(ctx), meta), true
	case r != nil:
		return fail(messages.Refuse(messages.Bug, "call %q ended without an outcome", c.id), meta), false
	case durable && c.door.timed():
		return succeed(c.pending(ctx), meta), c.continued
	}
	return fail(messages.Refuse(messages.Unavailable, "the request ended (%s) before the node said what became of the question", c.over), meta), false
}

// recorded says whether an error is the call's own result: its end, and not a
// failure to learn of it.
func recorded(err error) bool {
	var e *messages.Error
	return errors.As(err, &e) && !e.Temporary()
}

// guidance is what a pending result says. The session's own words are
// for agents whose turns take in user messages; here nothing arrives by itself.
const guidance = "No answer arrived before the timeout. The question is pending: this is not a skip and not permission. " +
	"Go on with independent work. The user can still answer: the reply, an answer_to_pending_question with this callId and " +
	"the original questions, is then handed out by " + toolCollect + "."

// pending is the closed shape of Q-031. What the door adds is in its words: how
// long the wait was, which session this is, and whether replies wait.
func (c *call) pending(ctx context.Context) string {
	words := []string{guidance}
	switch {
	case c.who.life.gone.Err() != nil:
		words = append(words, "The request ended before its wait was over: "+c.over+".")
	case c.limit >= 0 && c.wait == c.limit:
		words = append(words, "Waited "+spell(c.wait)+", the longest this client allows.")
	case c.wait >= 0:
		words = append(words, "The wait was "+spell(c.wait)+".")
	}
	if c.who.minted {
		words = append(words, "Pass session "+compact(c.who.session)+" to "+toolCollect+".")
	}
	if n := c.waiting(ctx); n > 0 {
		words = append(words, fmt.Sprintf("%d %s: call %s.", n, verb(n, "reply waits", "replies wait"), toolCollect))
	}
	return compact(struct {
		Pending bool   `json:"pending"`
		CallID  string `json:"callId"`
		Message string `json:"message"`
	}{true, c.id, strings.Join(words, " ")})
}

// waiting counts what collect_replies would list. Nobody who is gone is told.
func (c *call) waiting(ctx context.Context) int {
	if c.who.life.gone.Err() != nil {
		return 0
	}
	bounded, stop := context.WithTimeout(ctx, endWithin)
	defer stop()
	reply, err := c.door.port.Do(bounded, &messages.AwaitInboxRequest{Session: c.who.session, Root: Root, Now: true})
	inbox, ok := reply.(*messages.AwaitInboxResponse)
	if err != nil || !ok {
		return 0
	}
	return int(inbox.GetQueued() + inbox.GetUndelivered())
}
