package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// kind names an MCP client library and how it is set.
type kind string

const (
	goClient kind = "go"       // the official Go client, newest revision, no time limit of its own
	ts1      kind = "ts1"      // @modelcontextprotocol/sdk, the predecessor
	ts2      kind = "ts2"      // @modelcontextprotocol/client as it comes: old revisions
	ts2Auto  kind = "ts2-auto" // the same, newest revision
)

var kinds = []kind{goClient, ts1, ts2, ts2Auto}

// old says that a kind speaks revisions in which a connection has a session, which is lost with its server.
func (k kind) old() bool { return k == ts1 || k == ts2 }

// limited says that a kind gives up a call after 60 s by itself.
func (k kind) limited() bool { return k != goClient }

// reply is what an agent reads of a tool's result.
type reply struct {
	text       string
	structured map[string]any
	meta       map[string]any
	isError    bool
}

func (r reply) pending() bool { return r.structured["pending"] == true }

// call is one tools/call. The zero value of the rest leaves everything to the client library.
type call struct {
	tool     string
	args     map[string]any
	timeout  time.Duration // instead of the client's own
	progress func(message string)
}

// agent is a connected MCP client.
type agent interface {
	// call returns an error when the client did not get a result: the model does not know what became of the call.
	call(ctx context.Context, c call) (reply, error)
	tools(ctx context.Context) ([]string, error)
	close()
}

// dialing is how an agent is connected.
type dialing struct {
	kind    kind
	url     string        // or, when it is empty,
	command []string      // what speaks MCP on its stdio
	env     []string      // for command
	timeout time.Duration // for the handshake, instead of the client's own
	hurry   bool          // reconnect at once rather than after a second
	client  string        // the name that the client gives itself
}

func dial(ctx context.Context, d dialing) (agent, error) {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	if d.kind == goClient {
		return dialGo(ctx, d)
	}
	return dialNode(ctx, d)
}

// connected dials, or fails the test; the connection ends with the test.
func connected(t testing.TB, d dialing) agent {
	t.Helper()
	if d.kind != goClient {
		needNode(t)
	}
	a, err := dial(within(t, patience), d)
	require.NoError(t, err)
	t.Cleanup(a.close)
	return a
}

// ---- the Go client ----

type goAgent struct {
	session *sdk.ClientSession
	watch   *sync.Map // progress token → func(string)
	tokens  atomic.Int64
	hangUp  func() // of a pipe
}

func dialGo(ctx context.Context, d dialing) (agent, error) {
	a := &goAgent{watch: &sync.Map{}}
	name := d.client
	if name == "" {
		name = "parley-e2e"
	}
	client := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1.0.0"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if f, ok := a.watch.Load(fmt.Sprint(r.Params.ProgressToken)); ok {
				f.(func(string))(r.Params.Message)
			}
		},
	})
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: d.url, HTTPClient: &http.Client{Transport: &http.Transport{}}}
	if d.url == "" {
		cmd := exec.Command(d.command[0], d.command[1:]...)
		cmd.Env = d.env
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		transport = &sdk.IOTransport{Reader: out, Writer: in}
		a.hangUp = sync.OnceFunc(func() { _ = in.Close(); _ = cmd.Wait() }) // its own Close would wait for the calls under way
	}
	var err error
	a.session, err = client.Connect(ctx, transport, nil)
	return a, err
}

func (a *goAgent) call(ctx context.Context, c call) (reply, error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	params := &sdk.CallToolParams{Name: c.tool, Arguments: c.args}
	if c.progress != nil {
		token := fmt.Sprintf("t%d", a.tokens.Add(1))
		params.SetProgressToken(token)
		a.watch.Store(token, c.progress)
		defer a.watch.Delete(token)
	}
	res, err := a.session.CallTool(ctx, params)
	if err != nil {
		return reply{}, err
	}
	raw, err := json.Marshal(res)
	if err != nil {
		return reply{}, err
	}
	return readReply(raw)
}

func (a *goAgent) tools(ctx context.Context) ([]string, error) {
	list, err := a.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (a *goAgent) close() {
	if a.hangUp != nil {
		a.hangUp()
	}
	_ = a.session.Close()
}

// readReply reads a CallToolResult.
func readReply(raw []byte) (reply, error) {
	var result struct {
		Content []struct {
			Type, Text string
		}
		StructuredContent map[string]any
		Meta              map[string]any `json:"_meta"`
		IsError           bool
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return reply{}, err
	}
	var texts []string
	for _, block := range result.Content {
		texts = append(texts, block.Text)
	}
	return reply{strings.Join(texts, "\n"), result.StructuredContent, result.Meta, result.IsError}, nil
}

// ---- the clients of npm ----

// needNode skips what cannot run: the clients are installed by tools/npm-ready.
func needNode(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node on this machine: the npm clients cannot run")
	}
	lock, err := os.ReadFile("mcp/package-lock.json")
	require.NoError(t, err)
	if installed, err := os.ReadFile("mcp/node_modules/.installed-from"); err != nil || !bytes.Equal(lock, installed) {
		t.Skip("the npm clients are not installed: run tools/npm-ready e2e/mcp")
	}
}

// driver is a node process that holds any number of npm clients.
type driver struct {
	in    io.WriteCloser
	write sync.Mutex
	ended chan struct{}
	log   tail

	mu       sync.Mutex
	next     int
	waiting  map[int]chan driven
	progress map[int]func(string)
}

// driven is one line of a driver.
type driven struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Code, Message string }
	Event  string

	Progress struct{ Message string }
}

// fleet is the one driver of each kind; a long-lived process, as an agent is.
type fleet struct {
	mu   sync.Mutex
	of   map[kind]*driver
	name atomic.Int64
}

var drivers = &fleet{of: map[kind]*driver{}}

func (f *fleet) get(k kind) (*driver, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.of[k]; d != nil {
		return d, nil
	}
	cmd := exec.Command("node", "driver.mjs")
	cmd.Dir = "mcp"
	d := &driver{ended: make(chan struct{}), waiting: map[int]chan driven{}, progress: map[int]func(string){}}
	cmd.Stderr = &d.log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d.in = in
	go func() {
		d.read(out)
		_ = cmd.Wait()
		close(d.ended)
	}()
	f.of[k] = d
	return d, nil
}

func (f *fleet) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.of {
		_ = d.in.Close()
		<-d.ended
	}
}

func (d *driver) read(out io.Reader) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var said driven
		if err := json.Unmarshal(line, &said); err != nil {
			_, _ = d.log.Write(line)
			continue
		}
		d.mu.Lock()
		to, progress := d.waiting[said.ID], d.progress[said.ID]
		if said.Event == "" {
			delete(d.waiting, said.ID)
			delete(d.progress, said.ID)
		}
		d.mu.Unlock()
		switch {
		case said.Event == "progress" && progress != nil:
			progress(said.Progress.Message)
		case said.Event == "" && to != nil:
			to <- said
		}
	}
}

// do sends a command and returns its result; when ctx ends first, the command is aborted, and still waited for.
func (d *driver) do(ctx context.Context, op string, args map[string]any, progress func(string)) (json.RawMessage, error) {
	to := make(chan driven, 1)
	d.mu.Lock()
	d.next++
	id := d.next
	d.waiting[id], d.progress[id] = to, progress
	d.mu.Unlock()
	send := func(op string, id int, args map[string]any) error {
		line := map[string]any{"op": op, "id": id}
		for k, v := range args {
			line[k] = v
		}
		d.write.Lock()
		defer d.write.Unlock()
		_, err := io.WriteString(d.in, compact(line)+"\n")
		return err
	}
	if err := send(op, id, args); err != nil {
		return nil, fmt.Errorf("the driver has ended: %w: %s", err, d.log.String())
	}
	aborted := ctx.Done()
	for {
		select {
		case said := <-to:
			if said.Error != nil {
				return nil, errors.New(said.Error.Code + ": " + said.Error.Message)
			}
			return said.Result, nil
		case <-aborted:
			aborted = nil
			if err := send("abort", -1, map[string]any{"target": id}); err != nil || op != "call" {
				return nil, errors.Join(ctx.Err(), err)
			}
		case <-d.ended:
			return nil, fmt.Errorf("the driver has ended: %s", d.log.String())
		}
	}
}

type nodeAgent struct {
	driver *driver
	name   string
}

func dialNode(ctx context.Context, d dialing) (agent, error) {
	dr, err := drivers.get(d.kind)
	if err != nil {
		return nil, err
	}
	a := &nodeAgent{dr, fmt.Sprintf("c%d", drivers.name.Add(1))}
	args := map[string]any{"name": a.name, "kind": d.kind, "hurry": d.hurry, "timeout": d.timeout.Milliseconds()}
	if d.client != "" {
		args["client"] = d.client
	}
	if d.url != "" {
		args["url"] = d.url
	} else {
		env := map[string]string{}
		for _, pair := range d.env {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		args["command"], args["args"], args["env"] = d.command[0], d.command[1:], env
	}
	_, err = dr.do(ctx, "connect", args, nil)
	return a, err
}

func (a *nodeAgent) call(ctx context.Context, c call) (reply, error) {
	raw, err := a.driver.do(ctx, "call", map[string]any{"name": a.name, "tool": c.tool, "args": c.args,
		"timeout": c.timeout.Milliseconds(), "progress": c.progress != nil}, c.progress)
	if err != nil {
		return reply{}, err
	}
	return readReply(raw)
}

func (a *nodeAgent) tools(ctx context.Context) ([]string, error) {
	raw, err := a.driver.do(ctx, "list", map[string]any{"name": a.name}, nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (a *nodeAgent) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = a.driver.do(ctx, "close", map[string]any{"name": a.name}, nil)
}
