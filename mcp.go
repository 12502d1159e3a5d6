package parley

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/gateway/mcp"
	"github.com/parleyrun/parley/gateway/remote"
	"github.com/parleyrun/parley/messages"
)

// MCPOptions say for whom a pipe of the Model Context Protocol speaks. The zero
// value serves any client: its session is the one its calls name, or a new one.
type MCPOptions struct {
	// Session is the session of all its calls. Empty: a call names one, or the
	// client's surroundings do, or the pipe gets one of its own.
	Session string
	// Owner is the session that owns the agent: such a child may not ask.
	Owner string
	// Workspace is the directory that the agent works in, an absolute path,
	// recorded when its session is new. With the session query tools it sees past work of sessions
	// of the same one. Empty: its session has none.
	Workspace string
	// WaitMax is how long the client lets a call run. 0: what is known of it by
	// its name; Never: as long as it takes.
	WaitMax time.Duration
	// ClientSession is the client's own name of its conversation, from its
	// environment (CLAUDE_CODE_SESSION_ID). It is used where nothing else
	// names a session.
	ClientSession string
	// PublicURL is where people reach the node that serves the questions; links
	// are made of it. Empty: none are told, or those of a remote node's address.
	PublicURL string
}

// ServeMCP serves one MCP client over a pipe until it closes its end, ctx ends
// or the node closes. What was read before is answered; open calls are then
// continued questions, and say so. Nothing but the protocol is written to out.
// The node stays open, and may serve others meanwhile. A client that is gone is
// no error; a program whose own stdout is out must not let SIGPIPE end it.
func (n *Node) ServeMCP(ctx context.Context, in io.Reader, out io.Writer, opts MCPOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.closed, cancel)()
	return servePipe(ctx, mcpPort{n}, mcpSettings{mode: n.cfg.Mode, wait: n.cfg.DefaultTimeout, tools: n.cfg.queryTools(), log: n.cfg.Logger}, in, out, opts)
}

// Remote is a node that runs in another process, as ServeMCPRemote reaches it.
type Remote struct {
	// URL is its address, http://host:port.
	URL string
	// Token is the bearer token it wants; empty: none.
	Token string
	// Mode and DefaultTimeout are what that node is configured with. They are
	// told to models, and decide nothing here. Their zero values are its defaults.
	Mode           Mode
	DefaultTimeout time.Duration
	// QueryTools offers that node's session query tools. It must have mounted them.
	QueryTools bool
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// ServeMCPRemote is ServeMCP for a node that runs elsewhere. It does not end
// when that node stops: a call that waits goes on when the node is back.
func ServeMCPRemote(ctx context.Context, node Remote, in io.Reader, out io.Writer, opts MCPOptions) error {
	port, err := remote.Dial(node.URL, node.Token)
	if err != nil {
		return err
	}
	if opts.PublicURL == "" {
		opts.PublicURL = node.URL
	}
	set := mcpSettings{mode: node.Mode, wait: node.DefaultTimeout, tools: queryTools{node.QueryTools, node.QueryTools}, log: node.Logger}
	setDefault(&set.mode, Timed)
	setDefault(&set.wait, DefaultTimeout)
	if set.log == nil {
		set.log = slog.Default()
	}
	return servePipe(ctx, port, set, in, out, opts)
}

// mcpSettings are what an MCP door tells its clients of the node.
type mcpSettings struct {
	mode    Mode
	wait    time.Duration // of a call that names none
	waitMax time.Duration
	public  string
	tools   queryTools
	log     *slog.Logger
}

// queryTools say whether the session query tools are mounted, and whether long
// results of theirs are kept.
type queryTools struct{ mounted, spilled bool }

func (c *Config) queryTools() queryTools { return queryTools{c.QueryTools, c.ResultBytesMax > 0} }

func servePipe(ctx context.Context, port mcp.Port, set mcpSettings, in io.Reader, out io.Writer, opts MCPOptions) error {
	for _, id := range []struct{ field, id string }{{"Session", opts.Session}, {"Owner", opts.Owner}} {
		if id.id == "" {
			continue
		}
		if err := messages.CheckID(id.field, id.id); err != nil {
			return err
		}
	}
	if err := messages.CheckDir("Workspace", opts.Workspace); err != nil {
		return err
	}
	if err := checkWaitMax("WaitMax", opts.WaitMax); err != nil {
		return err
	}
	set.public = opts.PublicURL
	door, err := newDoor(port, set)
	if err != nil {
		return err
	}
	err = door.ServeStdio(ctx, in, out, mcp.StdioOptions{Session: opts.Session, Owner: opts.Owner, Workspace: opts.Workspace, WaitMax: opts.WaitMax, Environment: opts.ClientSession})
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("MCP over a pipe: %w", err)
	}
	return nil
}

// mcpDoor is the MCP door of a served node.
func (n *Node) mcpDoor(opts ServeOptions) (*mcp.Door, error) {
	if err := checkWaitMax("MCPWaitMax", opts.MCPWaitMax); err != nil {
		return nil, err
	}
	return newDoor(mcpPort{n}, mcpSettings{n.cfg.Mode, n.cfg.DefaultTimeout, opts.MCPWaitMax, opts.PublicURL, n.cfg.queryTools(), n.cfg.Logger})
}

func newDoor(port mcp.Port, set mcpSettings) (*mcp.Door, error) {
	wait, bad := seconds(set.wait)
	if bad != nil {
		return nil, bad
	}
	link, err := linker(set.public)
	if err != nil {
		return nil, err
	}
	return mcp.New(port, mcp.Options{Definition: actors.ToolDefinition(set.mode != Legacy, wait), Mode: set.mode, DefaultTimeoutS: wait,
		WaitMax: set.waitMax, QueryTools: set.tools.mounted, SpilledResults: set.tools.spilled, Link: link, NewID: newID, Version: moduleVersion(), Logger: set.log})
}

func checkWaitMax(field string, d time.Duration) error {
	if d < 0 && d != Never || d > 0 && d < time.Second {
		return messages.Refuse(messages.BadRequest, "%s is %v; give at least 1s, or Never", field, d)
	}
	return nil
}

// linker makes the addresses at which a person answers; nil: nobody knows them.
func linker(public string) (func(session, call string) string, error) {
	if public == "" {
		return nil, nil
	}
	u, err := url.Parse(public)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, messages.Refuse(messages.BadRequest, "PublicURL is %.200q; give the address of the node, https://host or http://host:port", public)
	}
	base := strings.TrimSuffix(u.String(), "/") + "/answer/"
	return func(session, call string) string { return base + url.PathEscape(session) + "/" + url.PathEscape(call) }, nil
}

// urlOf is the address at which this machine's own programs reach a listener;
// empty, when it is none that a browser could open.
func urlOf(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// mcpPort is the node as the MCP door sees it.
type mcpPort struct{ node *Node }

var _ mcp.Port = mcpPort{}

func (p mcpPort) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	if err := gateway.Check(cmd); err != nil {
		return nil, err
	}
	return p.node.request(ctx, cmd)
}

func (p mcpPort) CallQueryTool(ctx context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error) {
	if err := gateway.Check(req); err != nil {
		return nil, err
	}
	return p.node.past.CallQueryTool(ctx, req)
}

func (p mcpPort) Workspace(ctx context.Context, session string) (string, error) {
	opened, err := p.node.journal.Read(ctx, session, 0, 1)
	if err != nil {
		return "", err
	}
	return opened.Header.CWD, nil
}

// moduleVersion is the version of this module in the program that holds it.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "dev"
}

const modulePath = "github.com/parleyrun/parley"
