package actors

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// What one response of CollectReplies holds, at most: a model has to read it.
const (
	collectMax      = 100
	collectBytesMax = 256 << 10
)

// collect admits what waits and lists it, with everything listed before and
// not acknowledged, in one append. Only then is the list handed out.
func (s *Session) collect(now Now, from Addr, req *messages.CollectRepliesRequest) Effects {
	if err := s.checkRoot(req.GetRoot()); err != nil {
		return s.refuse(from, err)
	}
	after, err := s.readToken(req.GetAfter())
	if err != nil { // proved: a list may have been handed out elsewhere
		fx := s.refuse(from, err)
		fx.Proof = true
		return fx
	}
	waiting := append(ids(s.fold.lists.NextStep), ids(s.fold.lists.NextTurn)...)
	if call := req.GetCallId(); call != "" {
		waiting = nil
		if reply, ok := s.fold.lists.ReplyFor(call); ok {
			waiting = []string{reply.ID}
		}
	}
	own := !s.fold.progress.TurnOpen()
	if len(waiting) > 0 && !own {
		if err := s.checkStep(0, 0); err != nil {
			return s.refuse(from, err)
		}
	}
	b := s.batch(now)
	acknowledged := s.addAcknowledged(b, after)
	out := s.page(waiting, req.GetCallId(), acknowledged)
	fresh := out.fresh()
	s.addAdmission(b, fresh, own)
	if len(out.items) > 0 {
		list := s.deliveries.list() + 1
		b.add(sessionlog.DeliveredRecord{List: list, Shown: out.ids(), Correlation: req.GetCorrelation(), RepeatOf: req.GetCallId()}.Event())
		out.res.Token = s.token(list)
	}
	if req.GetCallId() != "" {
		out.res.State = s.stateOf(b.f, req.GetCallId())
	}
	if len(b.events) == 0 {
		return s.reply(from, out.response())
	}
	fx := b.effects()
	s.tellInbox(&fx, Admitted{fresh})
	fx.Replies = append(fx.Replies, Reply{from, out.response()})
	return fx
}

// addAcknowledged records that a list has arrived, if that is news, and
// returns the messages that were in it.
func (s *Session) addAcknowledged(b *batch, list int64) (gone map[string]bool) {
	for _, l := range s.deliveries.handouts() {
		if l.n != list {
			continue
		}
		b.add(sessionlog.DeliveredRecord{Acknowledged: list}.Event())
		gone = map[string]bool{}
		for _, id := range l.ids {
			gone[id] = true
		}
	}
	return gone
}

// addAdmission takes messages out of their lists and into the history, in the
// open step or in a turn of their own.
func (s *Session) addAdmission(b *batch, want []string, own bool) (taken []sessionlog.Message) {
	if len(want) == 0 {
		return nil
	}
	turn := b.f.progress.Turn()
	if own {
		turn++
		b.add(sessionlog.TurnStart(turn))
	}
	taken = s.take(b, want)
	if own {
		b.add(sessionlog.StepStart(turn, 1))
	}
	for _, m := range taken {
		b.add(userMessage(m))
	}
	if own {
		b.add(sessionlog.StepEnd(turn, 1), sessionlog.TurnEnd(turn, sessionlog.Completed))
	}
	return taken
}

// listing is one response under construction.
type listing struct {
	items []delivery
	bytes int
	res   messages.CollectRepliesResponse
}

// page chooses what a response lists: what waits first, so that an agent that
// never acknowledges still hears of it, then what was listed before.
func (s *Session) page(waiting []string, call string, acknowledged map[string]bool) *listing {
	l := &listing{}
	for _, id := range waiting {
		if _, msg, ok := s.fold.lists.Find(id); ok && !l.add(s.fresh(msg)) {
			l.res.More++
		}
	}
	for _, old := range s.deliveries.open() {
		if acknowledged[old.id] || call != "" && old.call != call {
			continue
		}
		if !l.add(old) {
			l.res.More++
		}
	}
	return l
}

// add takes an item, if the response has room for it.
func (l *listing) add(item delivery) bool {
	if len(l.items) >= collectMax || len(l.items) > 0 && l.bytes+len(item.text) > collectBytesMax {
		return false
	}
	l.items = append(l.items, item)
	l.bytes += len(item.text)
	return true
}

func (l *listing) ids() []string {
	out := make([]string, len(l.items))
	for i, item := range l.items {
		out[i] = item.id
	}
	return out
}

// fresh are the messages that this response admits.
func (l *listing) fresh() []string {
	var out []string
	for _, item := range l.items {
		if item.count == 0 && item.kind != kindResult {
			out = append(out, item.id)
		}
	}
	return out
}

func (l *listing) response() *messages.CollectRepliesResponse {
	for _, item := range l.items {
		l.res.Replies = append(l.res.Replies, &messages.CollectedReply{
			MessageId: item.id, Kind: item.kind, CallId: item.call, Text: item.text, AnsweredMs: item.at,
			Delivery: item.count + 1, Redelivered: item.count > 0 || item.kind == kindResult, // its request may have got it
		})
	}
	return &messages.CollectRepliesResponse{Replies: l.res.Replies, Token: l.res.Token, More: l.res.More, State: l.res.State}
}

// fresh is a message as it is listed for the first time.
func (s *Session) fresh(m sessionlog.Message) delivery {
	kind := kindMessage
	if m.ReplyTo != "" {
		kind = kindReply
	}
	return delivery{receipt: receipt{call: m.ReplyTo}, kind: kind, id: m.ID, text: m.Text(), at: s.past.saidAt(m.ID)}
}

// applyDelivered folds parley/delivered. What a list holds for the first time
// was admitted in the same append.
func (s *Session) applyDelivered(ev sessionlog.Event) {
	r, err := sessionlog.DecodeDelivered(ev)
	s.fold.note(err)
	if s.deliveries == nil {
		s.deliveries = &deliveries{}
	}
	s.deliveries.fold(r, func(id string) (delivery, bool) {
		for _, a := range s.admitted {
			if a.msg.ID == id {
				item := s.fresh(a.msg)
				item.receipt = a.owed
				return item, true
			}
		}
		return delivery{}, false
	})
}

// oweResult keeps the result of a call that asked for a receipt.
func (s *Session) oweResult(before fold, c call, r sessionlog.Result, ev sessionlog.Event) {
	owed := receipt{call: c.id, correlation: c.wait.receipt.correlation, attempt: c.wait.attempt, asks: c.asks}
	if s.deliveries == nil {
		s.deliveries = &deliveries{}
	}
	if sessionlog.IsPending(r.Text) {
		s.deliveries.owePending(owed)
		return
	}
	answers, ok := sessionlog.ReadBatch(r.Text)
	if !ok || r.IsError {
		return // an error says nothing that a person said
	}
	questions := c.wait.questions // of a legacy call
	if active, known := before.questions.Call(c.id); known {
		questions = active.Questions
	}
	id := resultID(c.id, ev.Seq)
	s.deliveries.owe(delivery{receipt: owed, kind: kindResult, id: id, at: ev.Time,
		text: sessionlog.ReplyMessage(id, c.id, questions, answers).Text()})
}

// token names a list to its reader. It holds a mark of the session, so that
// one session's token never acknowledges another's list.
func (s *Session) token(list int64) string {
	return "r" + strconv.FormatInt(list, 10) + "-" + s.mark()
}

func (s *Session) mark() string { return strconv.FormatUint(hash([]byte(s.id))>>32, 36) }

// readToken returns the list that a token names; 0: none.
func (s *Session) readToken(token string) (int64, *messages.Error) {
	if token == "" {
		return 0, nil
	}
	number, mark, _ := strings.Cut(strings.TrimPrefix(token, "r"), "-")
	list, err := strconv.ParseInt(number, 10, 64)
	if err != nil || mark != s.mark() || list < 1 || list > s.deliveries.list() {
		return 0, messages.Refuse(messages.BadRequest,
			"after is %.100q, which is no token of session %q; pass the token of an earlier list of this session, or leave it out", token, s.id)
	}
	return list, nil
}

// stateOf is where a call stands after a batch, in the words of question rows.
func (s *Session) stateOf(f fold, call string) string {
	if _, open := f.openWaitOf(call); open {
		return "open"
	}
	if _, queued := f.lists.ReplyFor(call); queued {
		return "replied"
	}
	if _, ok := f.continued(call); ok {
		return "continued"
	}
	if _, ok := s.past.winner(call); ok {
		return "settled"
	}
	return "unknown"
}

// acknowledge records that what was handed out under a name has arrived.
func (s *Session) acknowledge(now Now, from Addr, req *messages.AcknowledgeRequest) Effects {
	if req.GetCallId() == "" && req.GetCorrelation() == "" {
		return s.refuse(from, messages.Refuse(messages.BadRequest, "neither call_id nor correlation is set; say what has arrived"))
	}
	calls, lists := s.deliveries.named(req.GetCallId(), req.GetCorrelation())
	if len(calls)+len(lists) == 0 {
		return s.reply(from, &messages.AcknowledgeResponse{})
	}
	b := s.batch(now)
	for _, call := range calls {
		b.add(sessionlog.DeliveredRecord{CallID: call}.Event())
	}
	for _, list := range lists {
		b.add(sessionlog.DeliveredRecord{Acknowledged: list}.Event())
	}
	fx := b.effects()
	fx.Replies = []Reply{{from, &messages.AcknowledgeResponse{Known: true}}}
	return fx
}

// endForeground: the request that waited has ended before its result did. The
// question goes on without it, if it can.
func (s *Session) endForeground(from Addr, req *messages.EndForegroundRequest) Effects {
	if c, open := s.fold.openWaitOf(req.GetCallId()); open && c.wait.attempt == req.GetAttempt() {
		return s.toWait(from, c.id, WaitLeave{From: from, Unkeyed: c.wait.legacy, Reason: cmp.Or(req.GetReason(), "the request that waited has ended")})
	}
	if r, ok := s.past.winner(req.GetCallId()); ok {
		return s.reply(from, &messages.EndForegroundResponse{Settlement: settlement(r)})
	}
	return s.refuse(from, messages.Refuse(messages.NotAnswerable,
		"attempt %q of call %q is not waiting in session %q", req.GetAttempt(), req.GetCallId(), s.id))
}

// join finds the equal question whose request was lost, so that asking it again
// does not make a twin: one that is still open, or one that was continued.
// Requests in `live` are not lost, and a repeat of their text is a question of
// its own (fault P5). A repeat's own response may be lost like the first one's.
func (s *Session) join(now Now, a asking) (Effects, bool) {
	asks, _, _ := fingerprint(a.req.GetArguments())
	if item, ok := s.deliveries.unread(asks); ok && !slices.Contains(a.req.GetLive(), item.attempt) {
		return s.refuse(a.from, s.unread(item)), true
	}
	for _, c := range s.fold.openCalls() {
		if c.asks == asks && c.wait.receipt != nil && c.wait.legacy == !a.timed && !slices.Contains(a.req.GetLive(), c.wait.attempt) {
			fx := s.toWait(a.from, c.id, AddAsker{a.from})
			waiting := s.waiting(now, c)
			waiting.Joined = c.wait.attempt
			fx.Replies = append(fx.Replies, Reply{a.from, waiting})
			fx.Proof = true // as of an attempt that is asked again
			return fx, true
		}
	}
	for _, c := range s.fold.calls {
		if _, continued := s.fold.continued(c.id); !continued || !a.timed || c.asks != asks || !s.deliveries.lost(c.id) {
			continue
		}
		first := s.deliveries.owed(c.id).attempt
		if slices.Contains(a.req.GetLive(), first) {
			continue // its pending result is on its way to it
		}
		return s.reply(a.from, &messages.AskResponse{Session: s.id, CallId: c.id, Joined: first,
			Outcome: &messages.AskResponse_Continued{Continued: &messages.Continued{}}}), true
	}
	return Effects{}, false
}

// unread refuses a question while the answer to an equal one lies unread. That
// answer is listed, and never handed to the new call: a permission that was
// given once would be used twice.
func (s *Session) unread(item delivery) *messages.Error {
	return messages.Refuse(messages.UnreadAnswer, "call %q asked this before, and its answer may not have been read", item.call)
}
