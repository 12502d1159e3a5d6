package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/parleyrun/parley"
	"github.com/spf13/cobra"
)

const (
	probeTimeout  = time.Second              // for a node of this machine to say that it is there
	clientSession = "CLAUDE_CODE_SESSION_ID" // the conversation in which Claude Code started this program

	// sessionVariable stands for --session where one is the agent's own, as for
	// mcp and hook, and not that of whoever looks or answers.
	sessionVariable = "PARLEY_SESSION"
)

// pipe are the flags of mcp as they were typed.
type pipe struct {
	settings
	session, owner, waitMax string
	workspace               string
	embedded                bool
}

func (c *cli) mcpCommand() *cobra.Command {
	var p pipe
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Serve one agent over stdin and stdout, as MCP",
		Long: `Serve one agent that speaks the Model Context Protocol, over stdin and stdout.
The agent's client starts this program; it ends with its client.

It speaks to the node that --node names. Without one it speaks to the node at
` + defaultNode + `; if none listens there, it becomes that node until its
client is gone, with the journal and the settings that serve would take, so that
people can answer. stderr says which it was. --embedded does the latter at once.

The questions are of the session that --session names, else PARLEY_SESSION.
Without them they are of the one that a call names, or of the client's
conversation where it tells one, or of a new one, which is then named in the
results.

A client that lets calls run longer than parley knows, or less, is told so with
--wait-max. An agent that another session owns may not ask: --owner.`,
		Example: `  claude mcp add parley -- parley mcp
  codex mcp add parley -- parley mcp --session review
  parley mcp --embedded --journal memory`,
		Args: args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.mcp(cmd, p) },
	}
	f := cmd.Flags()
	f.StringVar(&p.session, "session", "", "`session` of all questions (or PARLEY_SESSION)")
	f.StringVar(&p.owner, "owner", "", "`session` that owns this agent, which then may not ask")
	f.StringVar(&p.workspace, "workspace", "", "`directory` that the agent works in, whose past work it may find (default: where its client started this program)")
	f.StringVar(&p.waitMax, "wait-max", "", "how `long` the client lets a call wait: 90s, 5m, … or never (default: what is known of it)")
	f.BoolVar(&p.embedded, "embedded", false, "be a node of its own, as serve is, until the client is gone")
	serveFlags(f, &p.settings)
	return cmd
}

// pipeOptions are what the flags say of the client.
func (c *cli) pipeOptions(p pipe) (parley.MCPOptions, error) {
	if value, set := c.env(sessionVariable); p.session == "" && set {
		p.session = value
	}
	out := parley.MCPOptions{Session: p.session, Owner: p.owner}
	out.ClientSession, _ = c.env(clientSession)
	var err error
	if p.workspace == "" {
		out.Workspace, _ = os.Getwd() // a directory that is gone is no workspace
	} else if out.Workspace, err = filepath.Abs(p.workspace); err != nil {
		return out, usage("give an absolute path", "--workspace is %s, and the current directory cannot be told: %v", p.workspace, err)
	}
	for _, id := range [][2]string{{"--session", p.session}, {"--owner", p.owner}} {
		if id[1] == "" {
			continue
		}
		if err := checkIDs(id[0], id[1]); err != nil {
			return out, err
		}
	}
	if out.WaitMax, err = parseWaitMax("--wait-max", p.waitMax); out.WaitMax == 0 && err == nil {
		out.WaitMax, err = parseWaitMax("--mcp-wait-max", p.mcpWaitMax)
	}
	return out, err
}

// mcp serves a client. Nothing but the protocol may go to stdout.
func (c *cli) mcp(cmd *cobra.Command, p pipe) error {
	if p.printConfig {
		return c.printConfig(cmd.Flags(), p.settings)
	}
	opts, err := c.pipeOptions(p)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a client that is gone still leaves calls whose ends are to be recorded
	switch named := cmd.Flags().Changed("node"); {
	case p.embedded && named:
		return usage("give one of them", "--embedded is a node of its own, and --node names another")
	case p.embedded || !named && !c.listens(cmd.Context()):
		return c.mcpEmbedded(cmd.Context(), p, opts)
	}
	return c.mcpRemote(cmd.Context(), p.settings, opts)
}

// mcpRemote serves the client from a node that runs elsewhere.
func (c *cli) mcpRemote(ctx context.Context, s settings, opts parley.MCPOptions) error {
	if err := firstError(oneOf("--mode", s.mode, "timed", "legacy"), checkPublic(s.publicURL)); err != nil {
		return err
	}
	wait, err := parseTimeout("--default-timeout", s.timeout)
	if err != nil {
		return err
	}
	node, err := c.dial() // for its checks of address and token
	if err != nil {
		return err
	}
	remote := parley.Remote{URL: node.url, Token: c.token, Mode: parley.Timed, DefaultTimeout: time.Duration(wait) * time.Second, QueryTools: s.queryTools, Logger: c.logger(s)}
	if s.mode == "legacy" {
		remote.Mode = parley.Legacy
	}
	if wait == never {
		remote.DefaultTimeout = parley.Never
	}
	opts.PublicURL = s.publicURL // else links are made of the node's address
	c.notef("parley mcp: the questions go to %s\n", node.url)
	return parley.ServeMCPRemote(ctx, remote, c.in, c.out, opts)
}

// listens reports whether anything answers at the usual address.
func (c *cli) listens(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.node, "/")+"/healthz", http.NoBody)
	if err != nil {
		return true // whatever is wrong with it is for dial to say
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Is(err, context.DeadlineExceeded) // something took the connection
	}
	_ = res.Body.Close()
	return true
}

// mcpEmbedded is a node that lives as long as its one client, and serves people meanwhile.
func (c *cli) mcpEmbedded(ctx context.Context, p pipe, opts parley.MCPOptions) error {
	s := p.settings
	cfg, err := c.settle(s)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if !p.embedded && s.listen == defaultListen && errors.Is(err, syscall.EADDRINUSE) {
		return c.mcpRemote(ctx, s, opts) // another client's was faster
	}
	if err != nil {
		return c.cannotListen(s.listen, err)
	}
	defer func() { _ = listener.Close() }()
	if cfg.journal != inMemory {
		if err := os.MkdirAll(filepath.Dir(cfg.journal), 0o700); err != nil {
			return cannotKeep(cfg.journal, err)
		}
	}
	node, err := open(cfg)
	if err != nil {
		return startup(cfg.journal, err)
	}
	address := "http://" + asGiven(s.listen, listener.Addr())
	c.notef("parley mcp: a node of its own at %s, journal %s, until its client is gone\n", address, c.short(cfg.journal))
	if opts.PublicURL = s.publicURL; opts.PublicURL == "" {
		opts.PublicURL = near(asGiven(s.listen, listener.Addr()))
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- node.Serve(serving, cfg.door(listener)) }()
	err = node.ServeMCP(ctx, c.in, c.out, opts)
	stop()
	err = errors.Join(err, <-served)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if err := errors.Join(err, node.Close(closing)); err != nil {
		return startup(cfg.journal, err)
	}
	return nil
}
