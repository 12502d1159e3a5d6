package faultproxy

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 10 * time.Second

// behind starts a server behind a proxy and returns a client that opens a
// connection for each request.
func behind(t *testing.T, serve http.HandlerFunc, plan func(Request) Plan) (*Proxy, *http.Client, string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	p, err := New(t.Context(), strings.TrimPrefix(server.URL, "http://"), plan)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p, &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, "http://" + p.Addr()
}

func always(plan Plan) func(Request) Plan { return func(Request) Plan { return plan } }

func post(ctx context.Context, c *http.Client, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

func echo(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body) // all of it first: HTTP/1 servers stop reading once they write
	_, _ = w.Write(text)
}

func TestPassesWithoutAPlan(t *testing.T) {
	t.Parallel()
	var seen []Request
	_, c, url := behind(t, echo, func(r Request) Plan { seen = append(seen, r); return Plan{} })
	c.Transport = &http.Transport{MaxConnsPerHost: 1} // one connection, several requests
	for _, body := range []string{"one", "two", strings.Repeat("three", 20_000)} {
		got, err := post(t.Context(), c, url+"/where?it=goes", body)
		require.NoError(t, err)
		require.Equal(t, body, got)
	}
	require.Len(t, seen, 3)
	seen[1].Header = nil
	require.Equal(t, Request{N: 1, Method: http.MethodPost, Path: "/where?it=goes", Body: []byte("two")}, seen[1])
}

// The response is cut at each of its bytes: the client reads so much of it and no more, and knows that it is not whole.
func TestCutsAtEveryByte(t *testing.T) {
	t.Parallel()
	const whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	answered := make(chan struct{}, len(whole)+1)
	node := rawServer(t, func(c net.Conn) {
		_, _ = io.WriteString(c, whole)
		answered <- struct{}{}
	})
	for k := range len(whole) {
		p, err := New(t.Context(), node, always(Plan{Cut: true, CutAfter: k}))
		require.NoError(t, err)
		got, err := raw(t, p.Addr())
		require.Equal(t, whole[:min(k, len(got))], got, "never more than was passed")
		require.ErrorIs(t, err, syscall.ECONNRESET, "byte %d", k)
		<-answered
		require.NoError(t, p.Close())
	}
}

// The piece that holds a text is lost, what came before it is not.
func TestCutsBeforeAText(t *testing.T) {
	t.Parallel()
	_, c, url := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "waiting\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "the answer\n")
	}, always(Plan{CutBefore: "answer"}))
	got, err := post(t.Context(), c, url, "x")
	require.Error(t, err)
	require.NotContains(t, got, "answer")
}

// rawServer answers every connection once it has read something from it.
func rawServer(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = c.Read(make([]byte, 1024))
				answer(c)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func raw(t *testing.T, addr string) (string, error) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	return string(got), err
}

// Both sides see a reset at a time: the client's read fails, and the node's request ends.
func TestCutsInTimeOnBothSides(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	_, c, url := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}, always(Plan{CutIn: 20 * time.Millisecond}))
	_, err := post(t.Context(), c, url, "x")
	require.ErrorIs(t, err, syscall.ECONNRESET)
	soon(t, ended, "the node has not seen the cut")
}

func TestCutAll(t *testing.T) {
	t.Parallel()
	ended, begun := make(chan struct{}), make(chan struct{})
	p, c, url := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-r.Context().Done()
		close(ended)
	}, always(Plan{}))
	failed := make(chan error, 1)
	go func() { _, err := post(t.Context(), c, url, "x"); failed <- err }()
	soon(t, begun, "no request")
	p.CutAll()
	require.Error(t, <-failed)
	soon(t, ended, "the node has not seen the cut")
}

// A client that leaves takes the connection to the node with it.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	ended, begun := make(chan struct{}), make(chan struct{})
	_, c, url := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-r.Context().Done()
		close(ended)
	}, always(Plan{Stall: patience}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	_, err := post(ctx, c, url, "x")
	require.ErrorIs(t, err, context.Canceled)
	soon(t, ended, "the node has not seen that the client left")
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 3)
	_, c, url := behind(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		bodies <- string(text)
		_, _ = w.Write(text)
	}, always(Plan{Duplicate: true}))
	got, err := post(t.Context(), c, url, "twice")
	require.NoError(t, err)
	require.Equal(t, "twice", got)
	require.Equal(t, "twice", <-bodies)
	require.Equal(t, "twice", <-bodies)
	require.Empty(t, bodies)
}

// What is held back goes on after another request has, and arrives behind it.
func TestHoldsBackUntilAnotherHasPassed(t *testing.T) {
	t.Parallel()
	order, first := make(chan string, 2), make(chan struct{})
	_, c, url := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		order <- string(text)
	}, func(r Request) Plan {
		if r.N == 0 {
			close(first)
			return Plan{Hold: patience}
		}
		return Plan{}
	})
	done := make(chan error, 1)
	go func() { _, err := post(t.Context(), c, url, "first"); done <- err }()
	soon(t, first, "no request")
	_, err := post(t.Context(), c, url, "second")
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, "second", <-order)
	require.Equal(t, "first", <-order)
}

// A stall and a delay lose nothing and take their time.
func TestStallsAndDelays(t *testing.T) {
	t.Parallel()
	const wait = 50 * time.Millisecond
	_, c, url := behind(t, echo, always(Plan{Delay: wait, Stall: wait, StallAfter: 30}))
	from := time.Now()
	got, err := post(t.Context(), c, url, "all of it")
	require.NoError(t, err)
	require.Equal(t, "all of it", got)
	require.GreaterOrEqual(t, time.Since(from), 2*wait)
}

// Nobody behind the proxy looks like nobody there.
func TestNoTarget(t *testing.T) {
	t.Parallel()
	p, err := New(t.Context(), "127.0.0.1:1", always(Plan{}))
	require.NoError(t, err)
	_, err = post(t.Context(), http.DefaultClient, "http://"+p.Addr(), "x")
	require.Error(t, err)
	require.NoError(t, p.Close())
}

// The same seed draws the same plans, every plan has a fault, and every fault comes up.
func TestDraw(t *testing.T) {
	t.Parallel()
	const responseMax = 100
	a, b := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	var cuts, dead, timed, stalls, twice, held, delayed atomic.Int32
	for range 500 {
		p := Draw(a, responseMax, time.Second)
		require.Equal(t, p, Draw(b, responseMax, time.Second))
		require.NotEmpty(t, p.String())
		require.Less(t, p.CutAfter, responseMax)
		for found, count := range map[*atomic.Int32]bool{&cuts: p.Cut && p.CutAfter > 0, &dead: p.Cut && p.CutAfter == 0, &timed: p.CutIn > 0,
			&stalls: p.Stall > 0, &twice: p.Duplicate, &held: p.Hold > 0, &delayed: p.Delay > 0} {
			if count {
				found.Add(1)
			}
		}
	}
	for name, n := range map[string]*atomic.Int32{"cut": &cuts, "cut at 0": &dead, "cut in time": &timed, "stall": &stalls, "duplicate": &twice, "hold": &held, "delay": &delayed} {
		require.Positive(t, n.Load(), name)
	}
}

func soon(t *testing.T, c <-chan struct{}, otherwise string) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-c:
	case <-limit.C:
		t.Fatal(otherwise)
	}
}
