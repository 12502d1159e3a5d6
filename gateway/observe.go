package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/parleyrun/parley/messages"
)

// record is what a request's log line says. It is written by one goroutine,
// the request's own.
type record struct {
	session string
	code    messages.Code
	err     error
}

type recordKey struct{}

func recordOf(ctx context.Context) *record {
	rec, _ := ctx.Value(recordKey{}).(*record)
	return rec
}

func note(ctx context.Context, err error) {
	if rec := recordOf(ctx); rec != nil && err != nil {
		rec.code, rec.err = messages.CodeOf(err), err
	}
}

func noteSession(ctx context.Context, session string) {
	if rec := recordOf(ctx); rec != nil {
		rec.session = session
	}
}

// observe writes one line per request and counts it, and is the last net under
// a panic outside of the services.
func (g *Gateway) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &record{}
		r = r.WithContext(context.WithValue(r.Context(), recordKey{}, rec))
		out := newWriter(w, g.opts.WriteTimeout)
		start := time.Now()
		defer func() {
			reason := recover()
			if reason == http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
				panic(reason)
			}
			if reason != nil {
				g.log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("path", r.URL.Path),
					slog.String("reason", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
				if !out.wrote {
					g.writeRefusal(out, r, messages.Refuse(messages.Bug, "serving %.200q failed", r.URL.Path))
				}
			}
			out.deadline(time.Now().Add(out.limit)) // the server still has to write the rest
			g.logRequest(r, rec, out, time.Since(start))
		}()
		next.ServeHTTP(out, r)
	})
}

// logRequest: refusals at Info, faults and bugs at Error, success at Debug.
func (g *Gateway) logRequest(r *http.Request, rec *record, out *writer, took time.Duration) {
	outcome, level := "ok", slog.LevelDebug
	switch {
	case out.slow:
		outcome, level = "slow", slog.LevelInfo // it took nothing for too long; what it asked goes on
	case rec.code != "" && messages.Lookup(rec.code).Kind == messages.RefusalKind:
		outcome, level = string(rec.code), slog.LevelInfo
	case rec.code == messages.Unavailable:
		outcome, level = string(rec.code), slog.LevelInfo
	case rec.code != "":
		outcome, level = string(rec.code), slog.LevelError
	case rec.err != nil:
		outcome = "detached" // the client has gone; what it asked goes on
	}
	g.requests.add(outcome)
	g.log.LogAttrs(r.Context(), level, "request", slog.String("path", r.URL.Path), slog.String("session", rec.session),
		slog.String("outcome", outcome), slog.Int("status", out.status), slog.Duration("took", took), slog.Any("err", rec.err))
}

// writer remembers the status, and lets no client hold a handler: what is
// written is taken within a time, or the client is cut off. Idle streams are
// not written to, so they may be idle for ever.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	status  int
	wrote   bool
	slow    bool // the client was cut off
}

func newWriter(w http.ResponseWriter, limit time.Duration) *writer {
	out := &writer{ResponseWriter: w, control: http.NewResponseController(w), limit: limit}
	out.deadline(time.Time{}) // of the request before, on the same connection
	return out
}

func (w *writer) deadline(at time.Time) { _ = w.control.SetWriteDeadline(at) } // a test's recorder has none

// within runs one write under its deadline.
func (w *writer) within(write func() error) error {
	start := time.Now()
	w.deadline(start.Add(w.limit))
	err := write()
	if err != nil {
		w.slow = w.slow || time.Since(start) >= w.limit
		return err
	}
	w.deadline(time.Time{})
	return nil
}

// WriteHeader remembers the status.
func (w *writer) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes piece by piece, so that a large answer on a narrow line is slow
// and not late.
func (w *writer) Write(b []byte) (n int, err error) {
	if !w.wrote {
		w.status, w.wrote = http.StatusOK, true
	}
	for {
		piece := b[n:min(n+writeBytes, len(b))]
		err = w.within(func() error {
			m, err := w.ResponseWriter.Write(piece)
			n += m
			return err
		})
		if err != nil || n >= len(b) {
			return n, err
		}
	}
}

// Flush sends what was written so far.
func (w *writer) Flush() {
	if !w.wrote {
		w.status, w.wrote = http.StatusOK, true
	}
	_ = w.within(w.control.Flush) // the next write fails too, and ends the request
}

// Unwrap lets http.ResponseController reach the server's writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// requestCounts counts requests by outcome: "ok", "detached", "slow", or a code.
type requestCounts struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *requestCounts) add(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[outcome]++
}

func (c *requestCounts) snapshot() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// healthz is 200 while the node serves and its journal answers.
func (g *Gateway) healthz(w http.ResponseWriter, r *http.Request) {
	if err := g.port.Views().Ready(r.Context()); err != nil {
		g.writeRefusal(w, r, messages.Refuse(messages.Unavailable, "the journal does not answer: %v", err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, "ok")
}

// metrics writes the node's numbers in Prometheus' text form. No label holds
// an id.
func (g *Gateway) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	counters := append(g.port.Counters(),
		Counter{Name: "held_requests", Help: "Asks and inbox waits held open.", Gauge: true, Value: g.held.Load()},
		Counter{Name: "watch_streams", Help: "Question watches held open.", Gauge: true, Value: g.watches.Load()},
		Counter{Name: "claim_streams", Help: "Claim streams held open.", Gauge: true, Value: g.claims.Load()})
	for _, c := range counters {
		kind := "counter"
		if c.Gauge {
			kind = "gauge"
		}
		_, _ = fmt.Fprintf(w, "# HELP parley_%s %s\n# TYPE parley_%s %s\nparley_%s %d\n", c.Name, c.Help, c.Name, kind, c.Name, c.Value)
	}
	counts := g.requests.snapshot()
	_, _ = fmt.Fprint(w, "# HELP parley_requests_total Requests by outcome.\n# TYPE parley_requests_total counter\n")
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		_, _ = fmt.Fprintf(w, "parley_requests_total{outcome=%q} %d\n", outcome, counts[outcome])
	}
}
