package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/gateway"
)

// A client that stops sending its body is refused and cut off, not held.
func TestASlowBodyIsCutOff(t *testing.T) {
	base, stop := serve(t, &fake{}, gateway.Options{BodyTimeout: 50 * time.Millisecond})
	defer func() { require.NoError(t, stop()) }()
	u, err := url.Parse(base)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /parley.v1.QuestionService/ListQuestions HTTP/1.1\r\nHost: "+u.Host+
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.GreaterOrEqual(t, res.StatusCode, 400)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
}
