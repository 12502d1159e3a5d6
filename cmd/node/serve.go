package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	inMemory      = "memory"
	tokenBytesMin = 16
	closeLimit    = 15 * time.Second // for what is still to be written when the node stops
)

// settings are the flags of serve as they were typed.
type settings struct {
	listen, journal              string
	origins                      []string
	timeout, mode, grace, expiry string
	logLevel, logFormat          string
	mcpWaitMax, publicURL        string
	workspaceRoot                string
	queryTools, noSearch         bool
	resultBytes                  int
	printConfig                  bool
	roleTokens                   [3]string // of tokenRoles
}

// tokenRoles are the roles that have a flag of their own; --token is the operator's.
var tokenRoles = [3]parley.Role{parley.RoleAgent, parley.RoleAnswerer, parley.RoleViewer}

// secretFlag marks a flag whose value is never shown.
const secretFlag = "parley_secret"

func markSecret(f *pflag.FlagSet, name string) {
	if err := f.SetAnnotation(name, secretFlag, []string{"true"}); err != nil {
		panic(err) // there is no such flag
	}
}

func serveFlags(f *pflag.FlagSet, s *settings) {
	f.SortFlags = false
	f.StringVar(&s.listen, "listen", defaultListen, "`address` to listen on")
	f.StringVar(&s.journal, "journal", "", "journal `file`, or the word memory (default: journal.db in the data directory)")
	for i, meaning := range []string{"agents must send, to ask and to take replies", "people must send, to answer", "dashboards must send, to look and do nothing else"} {
		name := string(tokenRoles[i]) + "-token"
		f.StringVar(&s.roleTokens[i], name, "", "`token` that "+meaning)
		markSecret(f, name)
	}
	f.StringSliceVar(&s.origins, "allow-origin", nil, "web `origin` that may call the node; repeat it for more")
	f.StringVar(&s.timeout, "default-timeout", "120s", "how long a call waits if its question does not say: a `duration` such as 90s or 5m, or never")
	f.StringVar(&s.mode, "mode", "timed", "`mode` of calls. timed: return pending after a while, and queue a late answer; legacy: wait until answered")
	f.StringVar(&s.grace, "claim-grace", "10s", "how long a call outlasts its deadline after a client that had it open was lost: a `duration` such as 10s, or 0s")
	f.StringVar(&s.expiry, "expiry", "unanimous", "`rule` for the countdowns of several clients: the last one ends the call (unanimous), or the first (first)")
	f.StringVar(&s.mcpWaitMax, "mcp-wait-max", "", "how long a call over MCP may wait: a `duration` such as 90s or 5m, or never (default: what each client is known to allow)")
	f.BoolVar(&s.queryTools, "query-tools", false, "let agents find and read past work of their own workspace")
	f.IntVar(&s.resultBytes, "result-bytes", 0, "how many `bytes` a query tool's result may have; the rest is kept for a while, to read on (default: any number)")
	f.StringVar(&s.workspaceRoot, "workspace-root", "", "`directory` in which links are followed to tell whether two workspaces are one; only you should be able to write it")
	f.BoolVar(&s.noSearch, "no-search", false, "make no text index; past work can be read, not searched")
	f.StringVar(&s.publicURL, "public-url", "", "`url` at which people reach the node, for links (default: where it listens)")
	f.StringVar(&s.logLevel, "log-level", "warn", "`level` of the log on stderr: debug, info, warn or error")
	f.StringVar(&s.logFormat, "log-format", "text", "`format` of the log: text or json")
	f.BoolVar(&s.printConfig, "print-config", false, "print every setting and where it comes from, and serve nothing")
}

func (c *cli) serveCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve a node (what parley does without a verb)",
		Long: `Serve a node until SIGTERM or Ctrl-C. Stopping ends no question: open ones stay
open in the journal, and those who wait ask again with the same attempt.`,
		Example: `  parley serve
  parley serve --listen 127.0.0.1:8000 --journal memory
  PARLEY_TOKEN=… parley serve --listen 0.0.0.0:7410
  parley serve --print-config`,
		Args: args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runServe(cmd, s) },
	}
	serveFlags(cmd.Flags(), &s)
	return cmd
}

// serving is what the flags mean.
type serving struct {
	journal        string                   // a file, or inMemory
	token          string                   // the operator's
	tokens         map[parley.Role][]string // the others'
	origins        []string
	defaultTimeout int64 // seconds, or never
	legacy         bool
	claimGrace     time.Duration
	firstExpiry    bool
	mcpWaitMax     time.Duration
	publicURL      string
	queryTools     bool
	resultBytes    int
	workspaceRoot  string
	noSearch       bool
	log            *slog.Logger
}

func (c *cli) settle(s settings) (serving, error) {
	out := serving{journal: s.journal, token: c.token, origins: s.origins, publicURL: s.publicURL, legacy: s.mode == "legacy", firstExpiry: s.expiry == "first",
		queryTools: s.queryTools, resultBytes: s.resultBytes, workspaceRoot: s.workspaceRoot, noSearch: s.noSearch}
	if err := firstError(
		oneOf("--mode", s.mode, "timed", "legacy"),
		oneOf("--expiry", s.expiry, "unanimous", "first"),
		oneOf("--log-format", s.logFormat, "text", "json"),
		oneOf("--log-level", s.logLevel, "debug", "info", "warn", "error"),
		checkTokens(c.token, s.roleTokens),
		guarded(s.listen, c.token+strings.Join(s.roleTokens[:], "") != ""),
		checkOrigins(s.origins),
		checkPublic(s.publicURL),
	); err != nil {
		return out, err
	}
	out.tokens = map[parley.Role][]string{}
	for i, token := range s.roleTokens {
		if token != "" {
			out.tokens[tokenRoles[i]] = []string{token}
		}
	}
	var err error
	if out.defaultTimeout, err = parseTimeout("--default-timeout", s.timeout); err != nil {
		return out, err
	}
	if out.claimGrace, err = parseSpan("--claim-grace", s.grace); err != nil {
		return out, err
	}
	if out.mcpWaitMax, err = parseWaitMax("--mcp-wait-max", s.mcpWaitMax); err != nil {
		return out, err
	}
	if out.claimGrace < 0 {
		return out, usage("give 0s for none", "--claim-grace %s is negative", s.grace)
	}
	if out.resultBytes < 0 {
		return out, usage("give 0 for any number", "--result-bytes %d is negative", out.resultBytes)
	}
	if out.journal == "" {
		if out.journal, err = c.defaultJournal(); err != nil {
			return out, err
		}
	}
	out.log = c.logger(s)
	return out, nil
}

// door is the port of the node that the flags describe.
func (cfg serving) door(listener net.Listener) parley.ServeOptions {
	return parley.ServeOptions{Listener: listener, Token: cfg.token, Tokens: cfg.tokens, AllowOrigins: cfg.origins,
		MCPWaitMax: cfg.mcpWaitMax, PublicURL: cfg.publicURL}
}

// checkPublic refuses an address of which no link can be made.
func checkPublic(public string) error {
	u, err := url.Parse(public)
	if public == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return nil
	}
	return usage("give it as https://host or http://host:port", "--public-url %q is no address", public)
}

// checkOrigins refuses what no browser ever sends as an origin.
func checkOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || origin != u.Scheme+"://"+u.Host {
			return usage("give it as a browser sends it: https://host or https://host:port", "--allow-origin %q is no origin", origin)
		}
	}
	return nil
}

// checkTokens refuses tokens that could be guessed, or that no header can carry.
func checkTokens(operator string, others [3]string) error {
	check := func(flag, token string) error {
		switch {
		case strings.ContainsFunc(token, unicode.IsControl):
			return usage("does it end with a newline?", "%s holds a control character", flag)
		case token != "" && len(token) < tokenBytesMin:
			return usage("make it a long random text", "%s has %d bytes; at least %d are needed", flag, len(token), tokenBytesMin)
		}
		return nil
	}
	for i, token := range others {
		if err := check("--"+string(tokenRoles[i])+"-token", token); err != nil {
			return err
		}
	}
	return check("--token", operator)
}

// guarded refuses an address that other machines can reach as long as anybody could answer there.
func guarded(listen string, tokens bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usage("give it as host:port, for example "+defaultListen, "--listen %q is no address", listen)
	}
	if ip := net.ParseIP(host); tokens || host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return usage("set PARLEY_TOKEN to a long random text, for node and clients; or listen on "+defaultListen,
		"--listen %s can be reached by other machines, and no token is set", listen)
}

// defaultJournal is the file in the user's data directory, as the XDG rules name it.
func (c *cli) defaultJournal() (string, error) {
	dir, _ := c.env("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) { // the rules say: not absolute, not used
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage("name a file with --journal", "there is no home directory to keep a journal in")
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "parley", "journal.db"), nil
}

// short writes a path under the home directory with a ~, as a shell reads it.
func (c *cli) short(path string) string {
	if home, _ := c.env("HOME"); home != "" {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return filepath.Join("~", rest)
		}
	}
	return path
}

func (c *cli) logger(s settings) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.logLevel)) // its words were checked
	opts := &slog.HandlerOptions{Level: level}
	if s.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.err, opts))
	}
	return slog.New(slog.NewTextHandler(c.err, opts))
}

func (c *cli) runServe(cmd *cobra.Command, s settings) error {
	if s.printConfig {
		return c.printConfig(cmd.Flags(), s)
	}
	return c.serve(cmd.Context(), s)
}

// serve opens the node, says where it is, and serves until the context ends.
func (c *cli) serve(ctx context.Context, s settings) error {
	cfg, err := c.settle(s)
	if err != nil {
		return err
	}
	// The port first: when a node runs already, "in use" says more than a locked journal.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		c.node = near(s.listen) // where the hints point
		return c.cannotListen(s.listen, err)
	}
	defer func() { _ = listener.Close() }()
	where := cfg.journal
	if name := c.source("journal"); name != "" {
		where = name + "=" + where
	}
	if cfg.journal != inMemory {
		// Answers are private: the folder of the journal is its owner's.
		if err := os.MkdirAll(filepath.Dir(cfg.journal), 0o700); err != nil {
			return cannotKeep(where, err)
		}
	}
	node, err := open(cfg)
	if err != nil {
		return startup(where, err)
	}
	door := cfg.door(listener)
	door.Ready = func(addr net.Addr) { c.firstScreen(asGiven(s.listen, addr), cfg) }
	err = node.Serve(ctx, door)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if err := errors.Join(err, node.Close(closing)); err != nil {
		return startup(where, err)
	}
	if cfg.journal == inMemory {
		c.notef("stopped; its questions were kept in memory and are lost\n")
		return nil
	}
	c.notef("stopped; open questions stay open\n")
	return nil
}

// asGiven is the address as it was typed, with the port that was found for port 0.
func asGiven(listen string, addr net.Addr) string {
	host, _, err := net.SplitHostPort(listen)
	_, port, portErr := net.SplitHostPort(addr.String())
	if err != nil || portErr != nil || host == "" {
		return addr.String()
	}
	return net.JoinHostPort(host, port)
}

// near is the address as this machine's own programs reach it.
func near(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return "http://" + addr
	}
	return "http://" + net.JoinHostPort("127.0.0.1", port)
}

// open turns the flags into the configuration of a node. A time of zero is said as Never there: its zero is a default.
func open(cfg serving) (*parley.Node, error) {
	out := parley.Config{
		Mode: parley.Timed, DefaultTimeout: time.Duration(cfg.defaultTimeout) * time.Second, ClaimGrace: cfg.claimGrace,
		Expiry: parley.Unanimous, Logger: cfg.log,
		QueryTools: cfg.queryTools, ResultBytesMax: cfg.resultBytes, WorkspaceRoot: cfg.workspaceRoot, SearchOff: cfg.noSearch,
	}
	if out.Path = cfg.journal; cfg.journal == inMemory {
		out.Path, out.Memory = "", true
	}
	if cfg.legacy {
		out.Mode = parley.Legacy
	}
	if cfg.firstExpiry {
		out.Expiry = parley.First
	}
	if cfg.defaultTimeout == never {
		out.DefaultTimeout = parley.Never
	}
	if cfg.claimGrace == 0 {
		out.ClaimGrace = parley.Never
	}
	return parley.Open(out)
}

func (c *cli) cannotListen(listen string, err error) error {
	as := ""
	if name := c.source("listen"); name != "" {
		as = ", as " + name + " says"
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return refuse(messages.Unavailable, "if that is a node, use it: `parley questions`; else choose another port, or --listen 127.0.0.1:0 for any",
			"%s is in use by another program%s", listen, as)
	case errors.Is(err, syscall.EACCES):
		return refuse(messages.Unavailable, "choose a port above 1023 with --listen", "this user may not listen on %s%s", listen, as)
	}
	return refuse(messages.Unavailable, "choose another address with --listen", "cannot listen on %s%s: %v", listen, as, err)
}

func cannotKeep(journal string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return refuse(messages.JournalReadOnly, "", "cannot make the folder of %s: %v", journal, err)
	}
	return refuse(messages.JournalIO, "choose another file with --journal", "cannot make the folder of %s: %v", journal, err)
}

// startup names the journal in the trouble that the root package reports.
func startup(journal string, err error) error {
	t := asTrouble(err)
	if strings.HasPrefix(string(t.code), "JOURNAL_") && !strings.Contains(t.text, journal) {
		t.text = journal + ": " + t.text
	}
	return t
}

type servingJSON struct {
	Version string `json:"version"`
	Address string `json:"address"`
	Journal string `json:"journal"`
}

// firstScreen says where the node is and what to try.
func (c *cli) firstScreen(addr string, cfg serving) {
	address := "http://" + addr
	if c.json {
		_ = c.printJSON(servingJSON{thisVersion().Version, address, cfg.journal}) // a node serves even if nobody reads
		return
	}
	journal := c.short(cfg.journal)
	if cfg.journal == inMemory {
		journal = "in memory: questions are lost when this node stops"
	}
	c.printf("%s %s  durable human questions for agents\n\n", c.bold("parley"), thisVersion().Version)
	c.printf("  address  %s\n", address)
	c.printf("  journal  %s\n", clean(journal))
	c.printf("  people   %s/answer    (a page to answer on)\n", near(addr))
	c.printf("  agents   %s/mcp/NAME  (MCP; see docs/agents)\n", near(addr))
	c.wantedTokens(cfg)
	if len(c.files) > 0 {
		c.printf("  config   %s\n", clean(c.short(strings.Join(c.files, ", "))))
	}
	at := *c
	at.node = near(addr)
	c.printf("\n%s\n", c.dim("Try, in another terminal:"))
	c.printf("  %s\n", at.command("ask", []string{"--option", "Yes", "--option", "No"}, "Ship it?"))
	c.printf("%s\n", c.dim("and in a third one:"))
	c.printf("  %s\n  %s\n", at.command("questions", nil), at.command("answer", []string{"--option", "Yes"}))
	if cfg.journal == inMemory {
		c.printf("\n%s\n", c.dim("Ctrl-C stops the node, and its questions are lost."))
		return
	}
	c.printf("\n%s\n", c.dim("Ctrl-C stops the node; open questions stay open."))
}

// guardedVerbs says which commands want which token.
var guardedVerbs = []struct {
	verbs string
	role  parley.Role
}{
	{"ask, inbox --admit, withdraw, mcp, hook", parley.RoleAgent},
	{"answer, withdraw --message", parley.RoleAnswerer},
	{"import", parley.RoleOperator},
}

// wantedTokens says which token PARLEY_TOKEN has to hold for what.
func (c *cli) wantedTokens(cfg serving) {
	switch {
	case len(cfg.tokens) > 0:
	case cfg.token != "":
		c.printf("  token    wanted: set PARLEY_TOKEN for the commands below\n")
		return
	default:
		return
	}
	c.printf("  tokens   set PARLEY_TOKEN to one of these:\n")
	for _, guarded := range guardedVerbs {
		var may []string
		if len(cfg.tokens[guarded.role]) > 0 {
			may = append(may, "the "+string(guarded.role)+"'s")
		}
		if cfg.token != "" {
			may = append(may, "the operator's")
		}
		if may == nil {
			may = append(may, "none: no token is set for it")
		}
		c.printf("             %-39s  %s\n", guarded.verbs, strings.Join(may, ", "))
	}
	c.printf("             %-39s  %s\n", "questions, inbox, sessions, log, export", "any token")
}
