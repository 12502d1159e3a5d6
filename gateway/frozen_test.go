package gateway_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// A peer that is frozen, its connection open and nothing to be written to it,
// is found by pings: its claim holds a deadline for ten seconds and no longer.
// One that is only idle keeps its claim.
func TestAFrozenPeerLosesItsClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		claim := &fakeClaim{events: make(chan messages.Message, 2), released: make(chan bool, 2)}
		g, err := gateway.New(&fake{claim: claim}, gateway.Options{Logger: new(syncBuffer).logger()})
		require.NoError(t, err)
		ln, stall := make(pipes), make(chan bool)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- g.Serve(ctx, ln) }()
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return ln.dial(stall), nil
		}}
		c := messagesconnect.NewQuestionServiceClient(&http.Client{Transport: transport}, "http://localhost", connect.WithGRPC())
		asked, hangUp := context.WithCancel(t.Context())
		stream, err := c.AttachWait(asked, connect.NewRequest(&messages.AttachWaitRequest{Session: "s", CallId: "c"}))
		require.NoError(t, err)
		claim.events <- &messages.ClaimFrame{RemainingMs: 1}
		require.True(t, stream.Receive())
		select { // idle, and answering pings
		case <-claim.released:
			require.Fail(t, "an idle peer lost its claim")
		case <-time.After(time.Hour):
		}
		frozen := time.Now()
		close(stall)
		assert.True(t, <-claim.released)
		assert.LessOrEqual(t, time.Since(frozen), 10*time.Second+time.Millisecond)
		hangUp()
		_ = stream.Close()
		transport.CloseIdleConnections()
		cancel()
		synctest.Wait() // until it is shutting down
		close(ln)
		require.NoError(t, <-served)
	})
}
