package gateway_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// importing is a node that reads what it imports to the end, and tells.
type importing struct {
	*fake
	began   chan bool
	got     chan imported
	refuse  error // at once, before anything is read
	refusal error // of what was read
}

type imported struct {
	session, log string
	err          error
}

func (f *importing) Import(_ context.Context, session string, log io.Reader) (*messages.SessionRow, error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.began <- true
	text, err := io.ReadAll(log)
	f.got <- imported{session, string(text), err}
	if err == nil {
		err = f.refusal
	}
	if err != nil {
		return nil, err
	}
	return &messages.SessionRow{Session: "named", Events: int64(len(text))}, nil
}

// imports serves an importing node, over HTTP/1.1 and HTTP/2.
func imports(t *testing.T, opts gateway.Options) (f *importing, url string, g *gateway.Gateway) {
	t.Helper()
	f = &importing{fake: newFake(t), began: make(chan bool, 99), got: make(chan imported, 99)}
	opts.Logger = slog.New(slog.DiscardHandler)
	g, err := gateway.New(f, opts)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(g.Handler())
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(g.Stop)
	return f, server.URL, g
}

func send(t *testing.T, c messagesconnect.SessionServiceClient, session string, pieces ...string) (*messages.SessionRow, error) {
	t.Helper()
	stream := c.ImportSession(t.Context())
	for i, piece := range pieces {
		msg := &messages.ImportSessionRequest{Data: []byte(piece), Last: i == len(pieces)-1}
		if i == 0 {
			msg.Session = session
		}
		if err := stream.Send(msg); err != nil {
			require.ErrorIs(t, err, io.EOF) // refused meanwhile; the answer says why
			break
		}
	}
	res, err := stream.CloseAndReceive()
	if err != nil {
		return nil, err
	}
	return res.Msg.GetSession(), nil
}

// A log comes in pieces, larger together than any request may be, in every protocol.
func TestALogIsTakenInPieces(t *testing.T) {
	t.Parallel()
	f, url, _ := imports(t, gateway.Options{})
	clients := map[string]messagesconnect.SessionServiceClient{
		"connect": messagesconnect.NewSessionServiceClient(http.DefaultClient, url),
		"json":    messagesconnect.NewSessionServiceClient(http.DefaultClient, url, connect.WithProtoJSON()),
		"gzip":    messagesconnect.NewSessionServiceClient(http.DefaultClient, url, connect.WithSendGzip()),
		"grpc":    messagesconnect.NewSessionServiceClient(grpcClient(t), url, connect.WithGRPC()),
		"web":     messagesconnect.NewSessionServiceClient(http.DefaultClient, url, connect.WithGRPCWeb()),
	}
	piece := strings.Repeat("0123456789abcde\n", 1<<16)
	for name, c := range clients {
		row, err := send(t, c, "s", "header\n", piece, "", piece, piece, piece, piece)
		require.NoError(t, err, name)
		got := <-f.got
		require.NoError(t, got.err)
		require.Equal(t, "s", got.session)
		require.True(t, got.log == "header\n"+strings.Repeat(piece, 5), name)
		require.Equal(t, int64(len(got.log)), row.GetEvents())
		_, err = send(t, c, "", "") // an empty log is the node's to judge
		require.NoError(t, err)
		require.Equal(t, imported{}, <-f.got)
	}
}

func TestBadPiecesAreRefused(t *testing.T) {
	t.Parallel()
	f, url, _ := imports(t, gateway.Options{})
	c := messagesconnect.NewSessionServiceClient(http.DefaultClient, url)
	_, err := send(t, c, " ", "x")
	require.Equal(t, messages.BadRequest, gateway.RefusalOf(err).Code, "an odd name never reaches the node")
	_, err = send(t, c, "s", strings.Repeat("x", 5<<20))
	require.Equal(t, messages.TooLarge, gateway.RefusalOf(err).Code)
	require.Empty(t, f.got)

	stream := c.ImportSession(t.Context())
	for range 2 {
		require.NoError(t, stream.Send(&messages.ImportSessionRequest{Session: "s", Data: []byte("x")}))
	}
	_, err = stream.CloseAndReceive()
	require.ErrorContains(t, err, `piece 2 names the session "s"`)
	require.Error(t, (<-f.got).err)

	f.refusal = messages.Refuse(messages.BadLog, "line 7")
	_, err = send(t, c, "s", "x")
	require.Equal(t, messages.BadLog, gateway.RefusalOf(err).Code)
	<-f.got
	f.refuse = messages.Refuse(messages.SessionExists, "s")
	_, err = send(t, c, "s", strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20))
	require.Equal(t, messages.SessionExists, gateway.RefusalOf(err).Code, "refused while it was sent")
}

// raw opens an import by hand and sends the pieces as chunks of HTTP/1.1.
func raw(t *testing.T, base string, pieces ...string) net.Conn {
	t.Helper()
	u, err := url.Parse(base)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "POST "+messagesconnect.SessionServiceImportSessionProcedure+" HTTP/1.1\r\nHost: "+u.Host+
		"\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n")
	require.NoError(t, err)
	for _, piece := range pieces {
		data, err := json.Marshal(map[string][]byte{"data": []byte(piece)})
		require.NoError(t, err)
		envelope := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(data))), data...)
		_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(envelope), envelope)
		require.NoError(t, err)
	}
	return conn
}

// refusedAs reads the error of a hand-made request.
func refusedAs(t *testing.T, conn net.Conn) string {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text)
}

// A stream that is cut is no log, not even behind a whole piece.
func TestAStreamThatIsCutIsNoLog(t *testing.T) {
	t.Parallel()
	f, url, _ := imports(t, gateway.Options{})
	conn := raw(t, url, "header\n", "event\n")
	<-f.began
	require.NoError(t, conn.Close())
	got := <-f.got
	require.Error(t, got.err)
	require.Equal(t, "header\nevent\n", got.log)

	ctx, cancel := context.WithCancel(t.Context())
	stream := messagesconnect.NewSessionServiceClient(grpcClient(t), url, connect.WithGRPC()).ImportSession(ctx)
	require.NoError(t, stream.Send(&messages.ImportSessionRequest{Data: []byte("header\n")}))
	<-f.began
	cancel() // and no more: to close it would say that it has ended
	require.Error(t, (<-f.got).err)
	_, err := stream.CloseAndReceive()
	require.Error(t, err)

	stream = messagesconnect.NewSessionServiceClient(http.DefaultClient, url).ImportSession(t.Context())
	require.NoError(t, stream.Send(&messages.ImportSessionRequest{Data: []byte("header\n")}))
	_, err = stream.CloseAndReceive() // as a client does that gives up
	require.ErrorContains(t, err, "broke off behind piece 1")
	require.Error(t, (<-f.got).err)

	stream = messagesconnect.NewSessionServiceClient(http.DefaultClient, url).ImportSession(t.Context())
	for range 2 {
		require.NoError(t, stream.Send(&messages.ImportSessionRequest{Data: []byte("header\n"), Last: true}))
	}
	_, err = stream.CloseAndReceive()
	require.ErrorContains(t, err, "piece 2 comes after")
	require.Error(t, (<-f.got).err)
}

// A log that stalls, or that trickles, is cut off.
func TestASlowLogIsCutOff(t *testing.T) {
	t.Parallel()
	f, url, _ := imports(t, gateway.Options{BodyTimeout: 50 * time.Millisecond})
	conn := raw(t, url, "header\n")
	require.Contains(t, refusedAs(t, conn), "BAD_REQUEST: the log broke off behind piece 1, and nothing of it was kept")
	require.Error(t, (<-f.got).err)

	f, url, _ = imports(t, gateway.Options{BodyTimeout: time.Second}) // far more than a busy machine keeps a byte waiting
	conn = raw(t, url, "header\n")
	ended := make(chan imported, 1)
	go func() { ended <- <-f.got }()
	tick := time.NewTicker(10 * time.Millisecond) // well within the time of a read
	defer tick.Stop()
	for trickling := true; trickling; {
		select {
		case got := <-ended:
			require.ErrorContains(t, got.err, "at least 32768 a second are needed")
			trickling = false
		case <-tick.C:
			_, _ = io.WriteString(conn, "1\r\n\x00\r\n") // it may have been cut off meanwhile
		}
	}
}

// A node that stops ends an import at once.
func TestStoppingEndsAnImport(t *testing.T) {
	t.Parallel()
	f, url, g := imports(t, gateway.Options{})
	conn := raw(t, url, "header\n")
	go g.Stop()
	require.Contains(t, refusedAs(t, conn), "UNAVAILABLE")
	select {
	case got := <-f.got:
		require.Error(t, got.err)
	default: // refused before it began
	}
}
