package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	"github.com/parleyrun/parley/messages"
)

// caller is for whom one call of a tool is made, and by which client.
type caller struct {
	life    *life
	session string
	// ours: the door speaks for the session of its own accord, and attaches it.
	// A session that an argument names was attached before, or is not ours.
	ours bool
	// minted: the client named no session, so the model has to be told of it.
	minted bool
	client string
	// correlation is the client's own id of this call; empty: it gave none.
	correlation string
	// token is the progress token; nil: none.
	token any
	// conn is the connection that the call came by.
	conn *sdk.ServerSession
}

// callerOf finds the conversation that a call belongs to: what the endpoint
// names, else the argument, else what the client's metadata or environment
// names, else one of the connection's own. It is never the transport's session,
// and never a directory. fresh allows to mint one for this call alone.
func (d *Door) callerOf(ctx context.Context, req *sdk.CallToolRequest, named string, fresh bool) (caller, *messages.Error) {
	who := caller{life: lifeOf(ctx), token: req.Params.GetProgressToken(), conn: req.Session}
	if info := req.ClientInfo(); info != nil {
		who.client = cutBytes(info.Name, messages.NameBytesMax)
	}
	row := clientOf(who.client)
	who.correlation = cutBytes(metaText(req.Params.Meta, row.call), messages.NameBytesMax)
	thread := metaText(req.Params.Meta, row.session)
	l := who.life
	switch {
	case l.session != "" && named != "" && named != l.session:
		return who, messages.Refuse(messages.BadRequest,
			"session is %s, but this endpoint speaks for %s; leave the argument out", quote(named), quote(l.session))
	case l.session != "":
		who.session, who.ours = l.session, true
	case named != "":
		who.session = named
	case thread != "":
		who.session, who.ours = row.prefix+thread, true
	case l.environment != "":
		who.session, who.ours = "claude-"+l.environment, true
	case l.minted != nil:
		who.session, who.ours, who.minted = l.minted.get(d.mint), true, true
	case fresh:
		who.session, who.ours, who.minted = d.mint(), true, true
	default:
		return who, messages.Refuse(messages.BadRequest,
			"session is missing; pass the one that the result of ask_user_question named")
	}
	if err := messages.CheckID("session", who.session); err != nil {
		return who, err
	}
	return who, nil
}

func (d *Door) mint() string { return d.opts.NewID(Root) }

func metaText(meta sdk.Meta, name string) string {
	text, _ := meta[name].(string)
	return text
}

// cutBytes keeps at most n bytes of whole characters.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := 0
	for i := range s {
		if i > n {
			break
		}
		end = i
	}
	return s[:end]
}

// speak sends a command for a caller, whose session is attached first when that
// is the door's to do; again, when it was deleted since.
func (d *Door) speak(ctx context.Context, who caller, cmd messages.Command) (messages.Reply, error) {
	for again := false; ; again = true {
		if err := d.attach(ctx, who); err != nil {
			return nil, err
		}
		// An earlier try may still lie in a mailbox.
		reply, err := d.port.Do(ctx, proto.Clone(cmd).(messages.Command))
		if again || !who.ours || messages.CodeOf(err) != messages.NotFound {
			return reply, err
		}
		d.attached.forget(who.binding())
	}
}

// attach makes the door the agent of a session, once per process. An owner that
// the session's root does not have is the session's to refuse.
func (d *Door) attach(ctx context.Context, who caller) error {
	if !who.ours || d.attached.has(who.binding()) {
		return nil
	}
	if _, err := d.port.Do(ctx, &messages.AttachRequest{Session: who.session, Root: Root, Owner: who.life.owner, Cwd: who.life.workspace}); err != nil {
		return err
	}
	d.attached.add(who.binding())
	return nil
}

// binding is a session and who owns its agent. A child that names its owner's
// session is not attached because its owner is.
type binding struct{ session, owner string }

func (who caller) binding() binding { return binding{who.session, who.life.owner} }

// forChild refuses what an owned child may not do; nil for any other caller.
// Whatever the session's root may do does not matter (Q-044, fault S1).
func forChild(l *life, text string) *messages.Error {
	if l.owner == "" {
		return nil
	}
	return messages.Refuse(messages.DelegatedCaller, "%s", text)
}

// attachedMax bounds the memory of what was attached; attaching is idempotent.
const attachedMax = 1 << 14

// attached are the bindings that this process has made.
type attached struct {
	mu       sync.Mutex
	bindings map[binding]struct{}
}

func (a *attached) has(b binding) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.bindings[b]
	return ok
}

func (a *attached) add(b binding) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bindings == nil || len(a.bindings) >= attachedMax {
		a.bindings = map[binding]struct{}{}
	}
	a.bindings[b] = struct{}{}
}

func (a *attached) forget(b binding) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.bindings, b)
}

// alive knows, per session, the attempts whose requests still live: their
// questions are not lost, and their text asked again is another question.
type alive struct {
	mu       sync.Mutex
	sessions map[string]*living
}

// living is one session's.
type living struct {
	// asking is held by the one ask that is on its way to the log, so that each
	// names all that came before it.
	asking   chan struct{}
	requests map[*request]struct{}
}

// request is one ask that lives. attempt is empty until its question is durable.
type request struct {
	alive   *alive
	session string
	of      *living
	attempt string
	asks    string // its arguments
	since   time.Time
	over    bool        // it waits for its result no more
	carried func() bool // nil: always
}

// enter takes up a request; it lives until its leave, as long as it is carried.
func (a *alive) enter(session, asks string, since time.Time, carried func() bool) *request {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions == nil {
		a.sessions = map[string]*living{}
	}
	l := a.sessions[session]
	if l == nil {
		l = &living{asking: make(chan struct{}, 1), requests: map[*request]struct{}{}}
		a.sessions[session] = l
	}
	r := &request{alive: a, session: session, asks: asks, since: since, of: l, carried: carried}
	l.requests[r] = struct{}{}
	return r
}

// leave ends it; a second time does nothing.
func (r *request) leave() {
	r.alive.mu.Lock()
	defer r.alive.mu.Unlock()
	delete(r.of.requests, r)
	if len(r.of.requests) == 0 && r.alive.sessions[r.session] == r.of {
		delete(r.alive.sessions, r.session)
	}
}

// last takes note that the request waits no more, and reports whether it was
// the last one that waited for its call: another may have joined it.
func (r *request) last() bool {
	r.alive.mu.Lock()
	defer r.alive.mu.Unlock()
	r.over = true
	for other := range r.of.requests {
		if !other.over && other.attempt == r.attempt {
			return false
		}
	}
	return true
}

// repeated reports whether an equal request came a moment ago and was given a
// question of its own, because this one still counted as alive.
func (r *request) repeated(now time.Time) bool {
	r.alive.mu.Lock()
	defer r.alive.mu.Unlock()
	for other := range r.of.requests {
		if other != r && other.asks == r.asks && other.attempt != "" && other.attempt != r.attempt &&
			other.since.After(r.since) && now.Sub(other.since) < noticeWithin {
			return true
		}
	}
	return false
}

func (r *request) is(attempt string) {
	r.alive.mu.Lock()
	defer r.alive.mu.Unlock()
	r.attempt = attempt
}

// others lists the attempts that live, at most as many as a command may name.
func (r *request) others() []string {
	r.alive.mu.Lock()
	defer r.alive.mu.Unlock()
	var list []string
	for other := range r.of.requests {
		if other.attempt != "" && (other.carried == nil || other.carried()) && len(list) < messages.PageMax {
			list = append(list, other.attempt)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
