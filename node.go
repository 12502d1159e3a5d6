package parley

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
	"github.com/parleyrun/parley/supervisor"
)

// Node is one running Parley. It is safe for concurrent use.
type Node struct {
	cfg      Config
	journal  journal.Journal
	sys      *supervisor.System
	views    *query.Views
	past     *past
	presence presence
	holds    holds
	imports  atomic.Int64 // under way

	closing   atomic.Bool
	closed    context.Context // ends when Close begins
	endWatch  context.CancelFunc
	closeOnce sync.Once
	closeErr  error
}

// Open starts a node. Sessions are read from the journal when somebody speaks
// to them, and when one of their questions is due. Its errors are BAD_REQUEST
// for a configuration that is not valid, and the journal's (JOURNAL_LOCKED, …).
func Open(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg.withDefaults()}
	var err error
	if n.journal, err = openJournal(cfg); err != nil {
		return nil, err
	}
	n.closed, n.endWatch = context.WithCancel(context.Background())
	n.views = query.New(n.journal, query.Options{Heartbeat: n.cfg.Heartbeat})
	if n.past, err = openPast(n); err != nil {
		n.endWatch()
		return nil, errors.Join(err, n.closeJournal())
	}
	rules := n.cfg.rules(newID)
	n.sys, err = supervisor.Start(supervisor.Config{
		Node: n.cfg.NodeName, Journal: n.journal, Logger: n.cfg.Logger,
		NewSession: func(session string, opened journal.Opened) (actors.Machine, error) {
			return actors.NewSession(rules, session, opened.Header, opened.Events)
		},
		NewDoor: func(self actors.Addr) actors.Machine { return actors.NewDoor(self.Key, 0) },
		NewClaim: func(self actors.Addr, session, call string) actors.Machine {
			return actors.NewClaim(self, session, call, 0)
		},
	})
	if err != nil {
		n.endWatch()
		return nil, errors.Join(err, n.past.close(), n.closeJournal())
	}
	return n, nil
}

// Close stops the node. Nothing is settled by it: open questions stay open in
// the journal, with their deadlines, for the next Open. Callers that wait get
// UNAVAILABLE, claims end as retryable, watches end. When ctx ends first, Close
// returns its error and the node is stopped nevertheless. A second call returns
// what the first did.
func (n *Node) Close(ctx context.Context) error {
	n.closeOnce.Do(func() {
		n.closing.Store(true)
		n.endWatch()
		n.closeErr = errors.Join(n.sys.Close(ctx), n.past.close(), n.closeJournal())
	})
	return n.closeErr
}

func (n *Node) closeJournal() error {
	if n.cfg.Journal != nil {
		return nil // its owner closes it
	}
	return n.journal.Close()
}

// Backup writes a consistent copy of the journal to path, which must not
// exist, while the node runs.
func (n *Node) Backup(ctx context.Context, path string) error { return n.journal.Backup(ctx, path) }

// call sends a command. done gets every answer: of an ask any number of
// Waiting and then the result, of everything else one. It must not block, and
// may run before call has returned.
func (n *Node) call(cmd messages.Command, done func(messages.Reply, error)) (cancel func()) {
	name := cmd.ProtoReflect().Descriptor().Name() // the command itself is not kept while its answer is waited for
	return n.sys.Call(cmd, func(msg messages.Message) {
		switch m := msg.(type) {
		case *messages.Refusal:
			done(nil, messages.FromWire(m))
		case messages.Reply:
			done(m, nil)
		default:
			done(nil, messages.Refuse(messages.Bug, "a %s was answered with a %T", name, msg))
		}
	})
}

// prepare fills in what a door owes a command.
func (n *Node) prepare(cmd messages.Command) error {
	switch m := cmd.(type) {
	case *messages.AskRequest:
		m.AnswererPresent = n.presence.anybody(m.GetSession())
		return writeArguments(m)
	case *messages.DelegateRequest:
		m.AnswererLeft = n.presence.others(m.GetSession(), m.GetClaim())
	}
	return nil
}

// request sends a command and returns its answer, held as its hold_ms says.
func (n *Node) request(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if all, ok := cmd.(*messages.AdmitMessagesRequest); ok && all.GetTurn() == 0 && len(all.GetMessageIds()) == 0 {
		return n.admitAll(ctx, all)
	}
	if err := n.prepare(cmd); err != nil {
		return nil, err
	}
	w := &waiter{final: make(chan answer, 1), asked: make(chan struct{})}
	cancel := n.call(cmd, w.take)
	expired, stop := holdOf(cmd)
	defer stop()
	for {
		select {
		case a := <-w.final:
			n.afterwards(cmd, a)
			return a.reply, a.err
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		case <-expired:
			if _, inbox := cmd.(*messages.AwaitInboxRequest); inbox {
				cancel()
				return &messages.AwaitInboxResponse{}, nil
			}
			// The hold is over, but an ask may return only once it is durable.
			select {
			case a := <-w.final:
				return a.reply, a.err
			case <-ctx.Done():
				cancel()
				return nil, ctx.Err()
			case <-w.asked:
				cancel()
				return w.waiting(), nil
			}
		}
	}
}

// admitAll admits everything that waits, by name: were a request for "all"
// repeated after a crash, it would find the lists empty and return nothing of
// what it had admitted.
func (n *Node) admitAll(ctx context.Context, req *messages.AdmitMessagesRequest) (messages.Reply, error) {
	for {
		reply, err := n.request(ctx, &messages.AwaitInboxRequest{Session: req.GetSession(), Root: req.GetRoot(), Now: true})
		if err != nil {
			return nil, err
		}
		waiting, ok := reply.(*messages.AwaitInboxResponse)
		if !ok || len(waiting.GetMessageIds()) == 0 {
			return &messages.AdmitMessagesResponse{}, nil
		}
		named := &messages.AdmitMessagesRequest{Session: req.GetSession(), Root: req.GetRoot(), MessageIds: waiting.GetMessageIds()}
		reply, err = n.request(ctx, named)
		if messages.CodeOf(err) != messages.MessageGone {
			return reply, err
		}
		// One was withdrawn, or admitted by somebody else, between the two; ask again.
	}
}

// holdOf starts the timer of a request that may be held only so long.
func holdOf(cmd messages.Command) (expired <-chan time.Time, stop func()) {
	m, ok := cmd.(interface{ GetHoldMs() int64 })
	if !ok || m.GetHoldMs() <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(time.Duration(min(m.GetHoldMs(), 1<<40)) * time.Millisecond)
	return t.C, func() { t.Stop() }
}

// afterwards ends the stream of a claim whose client has passed or given up.
func (n *Node) afterwards(cmd messages.Command, a answer) {
	if a.err != nil {
		return
	}
	switch m := cmd.(type) {
	case *messages.DelegateRequest:
		n.releaseClaim(m.GetSession(), m.GetCallId(), m.GetClaim())
	case *messages.ExpireRequest:
		n.releaseClaim(m.GetSession(), m.GetCallId(), m.GetClaim())
	}
}

type answer struct {
	reply messages.Reply
	err   error
}

// waiter collects the answers of one command.
type waiter struct {
	final chan answer
	asked chan struct{} // closed once an ask is durable

	mu   sync.Mutex
	wait *messages.AskResponse
}

func (w *waiter) take(reply messages.Reply, err error) {
	if r, ok := reply.(*messages.AskResponse); ok && r.GetWaiting() != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.wait == nil {
			close(w.asked)
		}
		w.wait = r
		return
	}
	select {
	case w.final <- answer{reply, err}:
	default: // a second final answer has nobody to hear it
	}
}

// waiting is the newest Waiting, with what remains now.
func (w *waiter) waiting() *messages.AskResponse {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.wait.GetWaiting()
	if out.GetDeadlineMs() > 0 {
		out.RemainingMs = max(0, out.GetDeadlineMs()-time.Now().UnixMilli())
	}
	return w.wait
}

// do checks a command, sends it, and sends it again while the node is in
// trouble: every command is idempotent under its own key. Its answer is typed.
func do[R messages.Reply](ctx context.Context, n *Node, cmd messages.Command) (R, error) {
	var none R
	if err := gateway.Check(cmd); err != nil {
		return none, err
	}
	for pause := retryFirst; ; pause = min(2*pause, retryMax) {
		// Each try has a message of its own: one that failed may still lie in a mailbox.
		reply, err := n.request(ctx, proto.Clone(cmd).(messages.Command))
		if err == nil {
			r, ok := reply.(R)
			if !ok {
				return none, messages.Refuse(messages.Bug, "a %T was answered with a %T", cmd, reply)
			}
			return r, nil
		}
		if !n.again(err) {
			return none, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-n.closed.Done():
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return none, errors.Join(ctx.Err(), err)
		}
	}
}

// Pauses between repeats of a request that met trouble.
const (
	retryFirst = 10 * time.Millisecond
	retryMax   = time.Second
)

// again reports whether a request that failed is to be sent again.
func (n *Node) again(err error) bool {
	code := messages.CodeOf(err)
	return (code == messages.Unavailable || code == messages.Fenced) && !n.closing.Load()
}
