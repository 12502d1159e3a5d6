package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onlyOnLinux: other systems do not tell what has become of a connection's bytes.
func onlyOnLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a kernel still holds")
	}
}

// peer is a client that reads when it is told to.
func (r *rig) peer() *net.TCPConn {
	r.t.Helper()
	c, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", r.server.Listener.Addr().String())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = c.Close() })
	peer := c.(*net.TCPConn)
	require.NoError(r.t, peer.SetReadBuffer(4096))
	return peer
}

// spell is a request as it goes over the wire.
func (r *rig) spell(body string) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"%s: %s\r\nMcp-Method: tools/call\r\nMcp-Name: hold\r\nContent-Length: %d\r\n\r\n%s", r.server.Listener.Addr(), versionHeader, newRevision, len(body), body)
}

func (r *rig) written(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.timers.armedFor(outliveAfter) == n }, patience, time.Millisecond)
}

// A response that lies in a buffer of this machine has not arrived, however long
// its connection stays open; once the other machine has taken it, it has.
func TestWhatTheKernelHoldsHasNotArrived(t *testing.T) {
	onlyOnLinux(t)
	for _, reads := range []bool{true, false} {
		r := newRig(t, trafficOf)
		peer := r.peer()
		_, err := io.WriteString(peer, r.spell(neu()))
		require.NoError(t, err)
		h := r.next()
		h.answer <- strings.Repeat("x", 100<<10)
		r.written(1)
		for range 3 {
			r.timers.pass(outliveAfter)
			r.written(1)
		}
		h.hasNotArrived(t)
		if !reads {
			require.NoError(t, peer.Close())
			require.ErrorIs(t, h.goneBy(t), errUnread)
			r.timers.pass(outliveAfter)
			h.hasNotArrived(t)
			continue
		}
		res, err := http.ReadResponse(bufio.NewReader(peer), nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		_ = res.Body.Close()
		require.Eventually(t, func() bool {
			r.timers.pass(outliveAfter)
			select {
			case <-h.arrived:
				return true
			default:
				return false
			}
		}, patience, time.Millisecond, "the acknowledgement may take a moment")
	}
}

// A request that came in before a response was finished was not sent because of it.
func TestAPipelinedRequestProvesNothing(t *testing.T) {
	onlyOnLinux(t)
	r := newRig(t, trafficOf)
	peer := r.peer()
	_, err := io.WriteString(peer, r.spell(neu())+r.spell(strings.Replace(neu(), `"id":7`, `"id":8`, 1)))
	require.NoError(t, err)
	first := r.next()
	first.answer <- "yes"
	second := r.next() // on the same connection, so it was served after the first
	first.hasNotArrived(t)
	first.lives(t)
	second.answer <- "yes"
	r.written(2)
	responses := bufio.NewReader(peer)
	for range 2 {
		res, err := http.ReadResponse(responses, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		_ = res.Body.Close()
	}
	_, err = io.WriteString(peer, r.spell(neu()))
	require.NoError(t, err)
	third := r.next()
	first.hasArrived(t)
	second.hasArrived(t)
	third.answer <- "yes"
}

// What the kernel says decides; where it says nothing, the time and the next
// request do, as they did.
func TestWhatTheKernelSays(t *testing.T) {
	none := traffic{}
	said := traffic{known: true, received: 100}
	for _, tt := range []struct {
		then, now traffic
		follows   bool
	}{
		{none, none, true}, {none, said, true}, {said, none, true},
		{said, said, false},
		{said, traffic{known: true, received: 101}, true},
		{said, traffic{known: true, received: 101, unread: 1}, false},
	} {
		require.Equal(t, tt.follows, tt.now.follows(tt.then), "%+v", tt)
	}
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	require.Equal(t, none, trafficOf(near), "a connection that the kernel does not know")

	var stuck atomic.Bool
	stuck.Store(true)
	r := newRig(t, func(net.Conn) traffic {
		if stuck.Load() {
			return traffic{known: true, unread: 1}
		}
		return traffic{known: true}
	})
	s := r.do(http.MethodPost, r.url, "", newRevision, neu())
	h := r.next()
	h.answer <- "yes"
	require.Equal(t, "yes", s.result(t))
	r.written(1)
	r.timers.pass(outliveAfter)
	r.written(1)
	h.hasNotArrived(t)
	stuck.Store(false)
	r.timers.pass(outliveAfter)
	h.hasArrived(t)
}
