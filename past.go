package parley

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query/history"
)

// keptBytesMax is how much of long results a node keeps.
const keptBytesMax = 64 << 20

// past is a node's past work, as its doors reach it.
type past struct {
	node  *Node
	texts journal.Texts
	tools history.Mounted
}

var _ gateway.Past = (*past)(nil)

func openPast(n *Node) (*past, error) {
	p := &past{node: n}
	corpus := history.Past{Journal: n.journal, Live: n.loaded, Volatile: n.cfg.Memory, Off: n.cfg.SearchOff}
	cfg := history.Config{MaxResults: n.cfg.SearchResultsMax, SearchTimeout: n.cfg.SearchTimeout}
	var err error
	if p.texts, err = openTexts(n.journal, n.cfg.SearchOff, n.cfg.Logger); err != nil {
		// Questions are not to wait for a file that can be made anew.
		n.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "no search: the text index cannot be opened; it can be moved away, and is then made anew",
			slog.String("err", err.Error()))
		corpus.Unindexed = true
		if p.texts, err = openTexts(n.journal, true, n.cfg.Logger); err != nil {
			return nil, err
		}
	}
	corpus.Texts = p.texts
	if n.cfg.WorkspaceRoot != "" {
		cfg.Workspace, err = history.Linked(n.cfg.WorkspaceRoot, p.texts.Workspaces)
	}
	if err == nil {
		p.tools.Tools, err = history.New(corpus, n.cfg.Logger, cfg)
	}
	if err != nil {
		_ = p.texts.Close()
		return nil, err
	}
	if n.cfg.ResultBytesMax > 0 {
		p.tools.Spill = history.Spill{Inline: n.cfg.ResultBytesMax, Store: &history.Kept{Bytes: keptBytesMax}}
	}
	return p, nil
}

func (p *past) close() error { return p.texts.Close() }

// loaded says whether a session is in memory.
func (n *Node) loaded(session string) bool { return n.sys != nil && n.sys.Loaded(session) }

func (p *past) mounted() error {
	if !p.node.cfg.QueryTools {
		return messages.Refuse(messages.NotFound, "the session query tools are not mounted on this node; it must be started with them (--query-tools)")
	}
	return nil
}

// ListQueryTools describes the tools an agent has.
func (p *past) ListQueryTools(context.Context, *messages.ListQueryToolsRequest) (*messages.ListQueryToolsResponse, error) {
	if err := p.mounted(); err != nil {
		return nil, err
	}
	return p.tools.List(), nil
}

// CallQueryTool makes one call of a tool for the root that is attached to the
// session, and for nobody else (S-010).
func (p *past) CallQueryTool(ctx context.Context, req *messages.CallQueryToolRequest) (*messages.CallQueryToolResponse, error) {
	if err := p.mounted(); err != nil {
		return nil, err
	}
	if _, err := p.node.request(ctx, &messages.AwaitInboxRequest{Session: req.GetSession(), Root: req.GetRoot(), Now: true}); err != nil {
		return nil, history.Outward(ctx, p.node.cfg.Logger, err)
	}
	text, err := p.tools.Call(ctx, req.GetSession(), req.GetTool(), json.RawMessage(req.GetArguments()))
	if err != nil {
		return nil, err
	}
	return &messages.CallQueryToolResponse{Text: text}, nil
}

// Search is for people: every workspace, with a continuation.
func (p *past) Search(ctx context.Context, req *messages.SearchRequest) (*messages.SearchResponse, error) {
	return p.tools.Search(ctx, req)
}

// Trace is for people: a session's lineage, or an event's relations.
func (p *past) Trace(ctx context.Context, req *messages.TraceRequest) (*messages.TraceResponse, error) {
	return p.tools.Trace(ctx, req)
}

// Read is for people: an event and its neighbours.
func (p *past) Read(ctx context.Context, req *messages.ReadRequest) (*messages.ReadResponse, error) {
	return p.tools.Read(ctx, req)
}

// QueryTools describes the session query tools, for the model that is to have
// them. NOT_FOUND: the node has not mounted them (Config.QueryTools).
func (n *Node) QueryTools(ctx context.Context) (*messages.ListQueryToolsResponse, error) {
	return n.past.ListQueryTools(ctx, &messages.ListQueryToolsRequest{})
}

// CallQueryTool makes one call of a session query tool and returns its text, for
// the model as it is. The agent sees sessions of its own workspace (AttachOptions.Dir)
// and nothing else; its own session up to the step that is running.
func (a *Agent) CallQueryTool(ctx context.Context, tool string, arguments json.RawMessage) (string, error) {
	req := &messages.CallQueryToolRequest{Session: a.session, Root: a.root, Tool: tool, Arguments: string(arguments)}
	if err := gateway.Check(req); err != nil {
		return "", err
	}
	r, err := a.node.past.CallQueryTool(ctx, req)
	return r.GetText(), err
}

// Search finds past work by what was said in it, in every workspace. It is for
// people and programs; an agent has CallQueryTool.
func (n *Node) Search(ctx context.Context, req *messages.SearchRequest) (*messages.SearchResponse, error) {
	if err := gateway.Check(req); err != nil {
		return nil, err
	}
	return n.past.Search(ctx, req)
}

// Trace returns a session's lineage as text, or with seq one event's relations.
func (n *Node) Trace(ctx context.Context, req *messages.TraceRequest) (string, error) {
	if err := gateway.Check(req); err != nil {
		return "", err
	}
	r, err := n.past.Trace(ctx, req)
	return r.GetText(), err
}

// Read returns one event and its neighbours as text.
func (n *Node) Read(ctx context.Context, req *messages.ReadRequest) (string, error) {
	if err := gateway.Check(req); err != nil {
		return "", err
	}
	r, err := n.past.Read(ctx, req)
	return r.GetText(), err
}
