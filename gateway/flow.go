package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// flow is the body of a request that its handler reads while it arrives: a
// stream of the client's. Each read has the time that a whole body has
// elsewhere, and the end of the node ends it.
func (g *Gateway) flow(w http.ResponseWriter, r *http.Request) (body io.ReadCloser, end func()) {
	f := &flowing{ReadCloser: r.Body, control: http.NewResponseController(w), limit: g.opts.BodyTimeout}
	undo := context.AfterFunc(g.stopping, f.stop)
	return f, func() { undo() }
}

type flowing struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration

	mu      sync.Mutex
	stopped bool
}

// Read reads what has come, within the limit.
func (f *flowing) Read(p []byte) (int, error) {
	if !f.arm(time.Now().Add(f.limit)) {
		return 0, errStopping
	}
	n, err := f.ReadCloser.Read(p)
	if err == io.EOF {
		f.arm(time.Time{}) // from now on the HTTP/1 server notices a client that goes
		return n, err
	}
	if err != nil && !f.arm(time.Now().Add(drainBody)) {
		err = errStopping
	}
	return n, err // the deadline stays: the server drains what is left of a body before it replies
}

// Close gives what is left of the body little time.
func (f *flowing) Close() error {
	f.arm(time.Now().Add(drainBody))
	return f.ReadCloser.Close()
}

// arm sets the deadline of the reads to come, unless the node is stopping.
func (f *flowing) arm(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopped {
		_ = f.control.SetReadDeadline(at) // a test's recorder has none
	}
	return !f.stopped
}

// stop ends the read under way and those to come.
func (f *flowing) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	_ = f.control.SetReadDeadline(time.Unix(1, 0))
}
