package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/parleyrun/parley/messages"
)

// importBytesPerSecondMin is how fast a log must arrive, once its first
// BodyTimeout is over: whoever sends a byte now and then holds a place of few.
const importBytesPerSecondMin = 32 << 10

// ImportSession takes a log in pieces while it arrives, and keeps it whole or
// not at all. A stream that breaks off is no log, however whole the lines look
// that have come.
func (s sessionService) ImportSession(ctx context.Context, stream *connect.ClientStream[messages.ImportSessionRequest]) (*connect.Response[messages.ImportSessionResponse], error) {
	ctx, release := s.bound(ctx)
	defer release()
	log := &pieces{stream: stream}
	if err := log.next(); err != nil {
		return nil, s.say(ctx, err)
	}
	name := log.session
	if err := s.check(ctx, &messages.ImportSessionRequest{Session: name}); err != nil {
		return nil, err
	}
	row, err := s.port.Import(ctx, name, log)
	if err != nil {
		return nil, s.say(ctx, err)
	}
	noteSession(ctx, row.GetSession())
	return connect.NewResponse(&messages.ImportSessionResponse{Session: row}), nil
}

// pieces reads the pieces of a log as one.
type pieces struct {
	stream  *connect.ClientStream[messages.ImportSessionRequest]
	session string // what the first piece names
	count   int
	left    []byte
	whole   bool // the last piece has come
}

// Read gives what is left of a piece, or waits for the next.
func (p *pieces) Read(into []byte) (int, error) {
	for len(p.left) == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(into, p.left)
	p.left = p.left[n:]
	return n, nil
}

// next receives a piece. io.EOF: the client has ended its stream.
func (p *pieces) next() error {
	if !p.stream.Receive() {
		return p.ended()
	}
	p.count++
	msg := p.stream.Msg()
	switch {
	case p.whole:
		return messages.Refuse(messages.BadRequest, "piece %d comes after the one that was said to be the last", p.count)
	case p.count == 1:
		p.session, p.left = msg.GetSession(), msg.GetData()
	case msg.GetSession() != "":
		return messages.Refuse(messages.BadRequest, "piece %d names the session %.200q; only the first piece may", p.count, msg.GetSession())
	default:
		p.left = msg.GetData()
	}
	p.whole = msg.GetLast()
	return nil
}

// ended says why there are no more pieces.
func (p *pieces) ended() error {
	err := p.stream.Err()
	var coded *messages.Error
	switch {
	case err == nil && p.whole:
		return io.EOF
	case err == nil: // closing a stream looks alike, whether the client had said all or had given up
		return messages.Refuse(messages.BadRequest, "the log broke off behind piece %d, which does not say that it is the last; nothing of it was kept", p.count)
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case connect.CodeOf(err) == connect.CodeResourceExhausted:
		return messages.Refuse(messages.TooLarge, "piece %d of the log is larger than %d bytes; send smaller ones", p.count+1, bodyBytesMax)
	}
	return messages.Refuse(messages.BadRequest, "the log broke off behind piece %d, and nothing of it was kept: %v", p.count, err)
}

// paced lets a handler read a request only as long as it arrives fast enough.
func (g *Gateway) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &pace{ReadCloser: r.Body, start: time.Now(), grace: g.opts.BodyTimeout}
		next.ServeHTTP(w, r)
	})
}

type pace struct {
	io.ReadCloser
	start time.Time
	grace time.Duration
	read  int64
}

// Read reads what has come, unless that is too little by now.
func (p *pace) Read(into []byte) (int, error) {
	n, err := p.ReadCloser.Read(into)
	p.read += int64(n)
	allowed := p.grace + time.Duration(p.read)*time.Second/importBytesPerSecondMin
	if took := time.Since(p.start); err == nil && took > allowed {
		return n, fmt.Errorf("reading the request: %w", messages.Refuse(messages.BadRequest,
			"%d bytes came in %v; at least %d a second are needed", p.read, took.Round(time.Millisecond), importBytesPerSecondMin))
	}
	return n, err
}
