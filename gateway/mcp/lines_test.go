package mcp

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// conversation is a pipe as its client holds it.
type conversation struct {
	*rig
	in   *io.PipeWriter
	from *bufio.Reader
	done chan error
}

func (r *rig) converse() *conversation {
	r.t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	c := &conversation{rig: r, in: to, from: bufio.NewReader(from), done: make(chan error, 1)}
	go func() {
		c.done <- r.serveStdio(r.t.Context(), in, out, StdioOptions{})
		_ = out.Close()
	}()
	r.t.Cleanup(func() { _ = to.Close() })
	c.say(hello)
	require.Contains(r.t, c.hear(), `"id":1`)
	return c
}

func (c *conversation) say(text string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, text)
	require.NoError(c.t, err)
}

func (c *conversation) hear() string {
	c.t.Helper()
	line, err := c.from.ReadString('\n')
	require.NoError(c.t, err)
	require.True(c.t, json.Valid([]byte(line)), "nothing but protocol: %s", line)
	return strings.TrimSpace(line)
}

// A line that is no call is answered and skipped, and the pipe goes on.
func TestALineThatIsNoCallIsAnsweredAndSkipped(t *testing.T) {
	c := newRig(t).converse()
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":2,`:              `"code":-32700,"message":"the line is not JSON; send one message on each line"},"id":null`,
		`hello`:                                 `"code":-32700`,
		`{"jsonrpc":"2.0","id":2} {}`:           `"code":-32700`,
		`[]`:                                    `"code":-32600,"message":"the batch is empty"},"id":null`,
		`{}`:                                    `"id":null`,
		`"x"`:                                   `"id":null`,
		`null`:                                  `"id":null`,
		`[1]`:                                   `"id":null`,
		`{"id":2,"method":"ping"}`:              `"id":2`,
		`{"jsonrpc":"1.0","id":"a\u0062"}`:      `"id":"ab"`,
		`{"jsonrpc":"2.0","id":{},"method":""}`: `"id":null`,
		`[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"ping"}]`: `two calls of the batch have the id 5`,
		strings.Repeat(" ", 10) + strings.Repeat("x", bodyBytesMax+10):                        `the line is longer than 4194304 bytes`,
	} {
		c.say(line + "\n\r\n\n") // and what is empty says nothing
		got := c.hear()
		require.Contains(t, got, want, cut(line, 80))
		require.Contains(t, got, `"error"`)
	}
	c.say(`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"ping"}]` + "\n")
	require.JSONEq(t, `[{"jsonrpc":"2.0","id":4,"result":{}},{"jsonrpc":"2.0","id":5,"result":{}}]`, c.hear(), "a batch of the older revisions")
	c.say(` {"jsonrpc":"2.0","id":3,"method":"ping"} ` + "\r\n")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, c.hear())
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.done)
	c.holdsNothing()
}

// Two calls under way have two ids: the second is refused, and holds nothing.
func TestACallWithAnIDThatIsUnderWayIsRefused(t *testing.T) {
	c := newRig(t).converse()
	c.say(old() + "\n")
	h := c.next()
	for range 3 {
		c.say(old() + "\n")
		got := c.hear()
		require.Contains(t, got, "a call with the id 7 is under way")
		require.Contains(t, got, `"id":null`, "whoever waits for 7 must not take it for its result")
	}
	require.Len(t, c.exchanges, 1)
	h.answer <- "yes"
	require.Contains(t, c.hear(), `"text":"yes"`)
	c.say(old() + "\n") // an id may be used again once it is answered
	c.next().answer <- "again"
	require.Contains(t, c.hear(), `"text":"again"`)
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.done)
	c.holdsNothing()
}

// What was read before the end is served: programs write all they have to say
// and close.
func TestWhatWasSaidBeforeTheEndIsAnswered(t *testing.T) {
	for name, last := range map[string]string{"with its end": "\n", "without": ""} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var out safeBuffer
			in := hello + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n" + `{"jsonrpc":"2.0","id":3,"method":"ping"}` + "\n" + old() + last
			require.NoError(t, r.serveStdio(t.Context(), strings.NewReader(in), &out, StdioOptions{}))
			for _, want := range []string{`"id":1`, `"id":2`, `"name":"hold"`, `"id":3`, `"id":7`, "gone: " + errEOF.Error()} {
				require.Contains(t, out.String(), want)
			}
			require.Equal(t, 4, strings.Count(out.String(), "\n"))
			r.next().hasNotArrived(t)
			r.holdsNothing()
		})
	}
}

// broken is a client that is gone altogether.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAClientThatIsGoneEndsItsPipe(t *testing.T) {
	for _, why := range []error{io.ErrClosedPipe, errors.New("the disk is full")} {
		r := newRig(t)
		in, to := io.Pipe() // nobody closes it
		done := make(chan error, 1)
		go func() { done <- r.serveStdio(t.Context(), in, broken{why}, StdioOptions{}) }()
		_, err := io.WriteString(to, hello)
		require.NoError(t, err)
		if err := <-done; errors.Is(why, io.ErrClosedPipe) {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, why)
		}
		_ = to.Close()
		r.holdsNothing()
	}
}

// A call that does not end keeps the pipe for a while, and no longer.
func TestThePipeEndsWithoutACallThatDoesNot(t *testing.T) {
	c := newRig(t).converse()
	c.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}` + "\n")
	c.hear()
	p := &pipe{door: c.transports, calls: map[string]*calling{"1": {}, "2": {lasting: true}}, broken: make(chan struct{})}
	settled := make(chan bool, 1)
	go func() { settled <- p.settle() }()
	require.Eventually(t, func() bool { return c.timers.armedFor(pipeDrain) == 1 }, patience, time.Millisecond)
	c.timers.pass(pipeDrain)
	require.False(t, <-settled)
	p.take("1")
	require.True(t, p.settle(), "one that lasts is not waited for")
}

// What a client does out of order is told to the client, not to the log.
func TestTheFaultsOfClientsAreNoErrorsOfOurs(t *testing.T) {
	var text safeBuffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	require.Contains(t, clientFaults, "duplicate initialize request")
	slog.New(hushed{log.Handler()}).WithGroup("g").With(slog.Int("a", 1)).Error("duplicate initialize request")
	require.Empty(t, text.String())
	slog.New(hushed{log.Handler()}).With(slog.Int("a", 1)).Error("server connect failed")
	require.Contains(t, text.String(), "level=ERROR")

	text = safeBuffer{}
	r := newStage(t, func(o *Options) { o.Logger = log })
	var out safeBuffer
	require.NoError(t, r.door.ServeStdio(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"), &out, StdioOptions{}))
	require.Contains(t, out.String(), "invalid during session initialization")
	require.NotContains(t, text.String(), "ERROR")
}
