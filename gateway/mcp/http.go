package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parleyrun/parley/messages"
)

// Path is where the door is mounted: Path itself, and Path/<session>.
const Path = "/mcp"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	resumeHeader  = "Last-Event-Id"
)

// ServeHTTP serves every revision on one path: requests of the newest say so in
// a header and stand alone; all others belong to a transport session.
func (t *transports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t.stopping.Err() != nil {
		refuse(w, nil, messages.Refuse(messages.Unavailable, "the node is stopping"), 0)
		return
	}
	at, err := addressOf(r.URL)
	if err != nil {
		refuse(w, nil, err, 0)
		return
	}
	r.Header.Del(exchangeHeader)
	switch r.Method {
	case http.MethodPost:
		t.post(w, r, at)
	case http.MethodGet:
		proved(r)
		t.get(w, r)
	case http.MethodDelete:
		proved(r)
		if s := t.connection(r); s != nil { // the SDK waits for the calls under way
			t.endAll(s.ID(), errDeleted)
		}
		t.handlerFor(r).ServeHTTP(w, r)
	default:
		t.handlerFor(r).ServeHTTP(w, r)
	}
}

// standsAlone reports whether a request is of the newest revision. initialize
// has no header yet; it is of the older ones.
func standsAlone(r *http.Request) bool { return r.Header.Get(versionHeader) >= newRevision }

func (t *transports) handlerFor(r *http.Request) http.Handler {
	if standsAlone(r) {
		return t.newer
	}
	return t.older
}

// connection is the open connection that a request belongs to; nil: to none,
// or the request is one that the SDK refuses for its revision.
func (t *transports) connection(r *http.Request) *sdk.ServerSession {
	id, revision := r.Header.Get(sessionHeader), r.Header.Get(versionHeader)
	if id == "" || standsAlone(r) || revision != "" && !slices.Contains(sdk.SupportedProtocolVersions(), revision) {
		return nil
	}
	for s := range t.server.Sessions() {
		if s.ID() == id {
			return s
		}
	}
	return nil
}

type mintedKey struct{}

// post serves one message of a client.
func (t *transports) post(w http.ResponseWriter, r *http.Request, at address) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		refuse(w, nil, badBody(err), 0)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	session := t.connection(r)
	if session != nil {
		defer t.using(session.ID())()
		for _, id := range readCancelled(body) {
			t.cancelled(session, id)
		}
	}
	proved(r)
	ids, tools := readCalls(body)
	if !standsAlone(r) && r.Header.Get(sessionHeader) == "" { // a connection begins
		if !t.makeRoom() {
			refuse(w, ids, messages.Refuse(messages.Unavailable, "%d MCP connections are open and in use, the limit is %d",
				t.sessionsMax, t.sessionsMax), http.StatusServiceUnavailable)
			return
		}
		// The SDK keeps the values of this context for the whole connection.
		r = r.WithContext(context.WithValue(r.Context(), mintedKey{}, new(minted)))
		defer func() { t.using(w.Header().Get(sessionHeader))() }()
	}
	if !tools {
		t.handlerFor(r).ServeHTTP(w, r)
		return
	}
	x := t.open(t.stopping, at, ids)
	if x == nil {
		refuse(w, ids, messages.Refuse(messages.Unavailable, "%d calls are held, the limit is %d", t.heldMax, t.heldMax), http.StatusTooManyRequests)
		return
	}
	x.stateful = !standsAlone(r)
	if session != nil {
		x.transport = session.ID()
	}
	r.Header.Set(exchangeHeader, x.id)
	t.carry(x, w, r, true)
}

// cancelled: a client gave up a call. One whose response is on the way will not
// be read, unless it is a client that gives up what it has read as well.
// A request that stands alone is given up by closing it.
func (t *transports) cancelled(s *sdk.ServerSession, id string) {
	if p := s.InitializeParams(); p != nil && p.ClientInfo != nil && clientOf(p.ClientInfo.Name).cancelsAll {
		return
	}
	t.threwAway(id, func(x *exchange) bool { return x.transport == s.ID() })
}

// get serves a stream that a client opens to listen, or for the rest of one
// that was cut.
func (t *transports) get(w http.ResponseWriter, r *http.Request) {
	if s := t.connection(r); s != nil {
		defer t.using(s.ID())()
		if stream, _, resumes := strings.Cut(r.Header.Get(resumeHeader), "_"); resumes {
			if x := t.resumed(s.ID(), stream); x != nil {
				t.carry(x, w, r, false)
				return
			}
		}
	}
	// Nothing is owed on this stream: it ends with the node, and not before.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.stopping, cancel)()
	t.stream(newResponse(w, func([]byte) {}), r.WithContext(ctx))
}

// stream serves a request whose response is kept open with comments.
func (t *transports) stream(out *response, r *http.Request) {
	defer out.finish()
	defer t.comment(out)()
	t.handlerFor(r).ServeHTTP(out, r.WithContext(r.Context())) // a copy: the SDK writes to it, while a comment may go out
}

// carry serves a request that carries the stream of an exchange.
func (t *transports) carry(x *exchange, w http.ResponseWriter, r *http.Request, first bool) {
	out := newResponse(w, x.saw)
	x.join()
	undo := context.AfterFunc(r.Context(), x.leave)
	defer func() {
		left := !undo()
		switch {
		case !left && x.complete() && out.delivered():
			x.forget()
			confirm(r, x)
		case first && out.refused():
			x.drop(errAbandoned)
		case !left:
			x.leave()
		}
	}()
	t.stream(out, r)
}

// comment writes a comment now and then, until the returned function runs. When
// the first is due the SDK has long refused what it refuses: it is a stream.
func (t *transports) comment(out *response) (stop func()) {
	done, end := context.WithCancel(context.Background())
	var arm func(d time.Duration)
	arm = func(d time.Duration) {
		cancel := t.timers.AfterFunc(d, func() {
			if out.comment() {
				arm(commentEvery)
			}
		})
		context.AfterFunc(done, cancel)
	}
	arm(commentFirst)
	return end
}

// addressOf reads an endpoint: /mcp/<session>?owner=…&workspace=…&wait_max=….
func addressOf(u *url.URL) (at address, bad *messages.Error) {
	rest := strings.TrimPrefix(strings.TrimPrefix(u.EscapedPath(), Path), "/")
	if rest != "" {
		session, err := url.PathUnescape(rest)
		if err != nil || strings.Contains(rest, "/") {
			return at, messages.Refuse(messages.BadRequest, "the path %.300q is not %s/SESSION; write a slash within the session's name as %%2F", u.EscapedPath(), Path)
		}
		if session == "." || session == ".." {
			return at, messages.Refuse(messages.BadRequest, "the path %.300q names the session %q, which clients take for a folder; choose another name", u.EscapedPath(), session)
		}
		if bad := messages.CheckID("the session in the path", session); bad != nil {
			return at, bad
		}
		at.session = session
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return at, messages.Refuse(messages.BadRequest, "the query %.300q cannot be read: %v", u.RawQuery, err)
	}
	for _, name := range []string{"owner", "workspace", "wait_max"} {
		if len(query[name]) > 1 {
			return at, messages.Refuse(messages.BadRequest, "%s is given %d times; give it once", name, len(query[name]))
		}
	}
	if query.Has("owner") {
		at.owner = query.Get("owner")
		if bad := messages.CheckID("owner", at.owner); bad != nil {
			return at, bad
		}
	}
	at.workspace = query.Get("workspace")
	if bad := messages.CheckDir("workspace", at.workspace); bad != nil {
		return at, bad
	}
	if query.Has("wait_max") {
		at.waitMax, bad = waitMaxOf(query.Get("wait_max"))
	}
	return at, bad
}

// waitMaxOf reads how long a client's calls may wait: a duration, or never.
func waitMaxOf(text string) (time.Duration, *messages.Error) {
	if text == "never" {
		return -1, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, messages.Refuse(messages.BadRequest, "wait_max is %.40q, which has no unit; write %.40ss for seconds, or never", text, text)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, messages.Refuse(messages.BadRequest, "wait_max is %.40q; give a time of 1s or more, such as 90s or 5m, or never", text)
	}
	return d, nil
}

func badBody(err error) *messages.Error {
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return messages.Refuse(messages.TooLarge, "the request is larger than %d bytes", bodyBytesMax)
	}
	return messages.Refuse(messages.BadRequest, "the request's body could not be read: %v", err)
}

// refusalAgain is how long a client that met a limit should wait.
const refusalAgain = "5"

// refuse answers a request before the SDK sees it: as the error of its one
// call, if it has one, which is what clients show. status 0: the registry's.
func refuse(w http.ResponseWriter, ids []string, e *messages.Error, status int) {
	entry := messages.Lookup(e.Code)
	if status == 0 {
		status = entry.HTTP
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", refusalAgain)
	}
	id := json.RawMessage("null")
	if len(ids) == 1 {
		id = json.RawMessage(ids[0])
	}
	code := entry.MCP
	if code == 0 {
		code = -32600
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{ // the client has gone; nobody else to tell
		"code": code, "message": e.Text + ". " + entry.Remedy,
		"data": map[string]any{"code": e.Code, "text": e.Text, "remedy": entry.Remedy},
	}})
}
