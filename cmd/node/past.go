package main

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

// lookFor are the flags of search as they were typed.
type lookFor struct {
	session, since     string
	workspaces         []string
	parents            []string
	types, surfaces    []string
	from, to           string
	seqFrom, seqTo     eventNumber
	live, roots, every bool
	limit              int
	after              string
}

func (c *cli) searchCommand() *cobra.Command {
	var look lookFor
	cmd := &cobra.Command{
		Use:   "search PHRASE… [flags]",
		Short: "Find past work by what was said in it",
		Long: `Find sessions by what their users, agents and tools said, the best match of each.
With --session, find every match in one session.

The phrase is text: nothing in it is an operator. It is found where its words
stand side by side, whatever their case; in Chinese, Japanese and Korean text
also inside a run of characters. More matches come first, then shorter texts,
then later ones.

What the answer of a person said is found where the agent read it.`,
		Example: `  parley search needle parser
  parley search "which database" --workspace . --since 168h
  parley search timeout --session build --type tool/result
  parley search 部署 --json`,
		Args: args(1, 1000, "a PHRASE"),
		RunE: func(cmd *cobra.Command, words []string) error { return c.search(cmd, strings.Join(words, " "), look) },
	}
	f := cmd.Flags()
	f.StringVar(&look.session, "session", "", "every match in this `session`")
	f.StringSliceVar(&look.workspaces, "workspace", nil, "only sessions of this working `directory`; repeat it for more")
	f.StringSliceVar(&look.parents, "parent", nil, "only sessions that this `session` began; repeat it for more")
	f.BoolVar(&look.roots, "roots", false, "only sessions that no other began")
	f.BoolVar(&look.live, "live", false, "only sessions that are loaded now")
	f.StringSliceVar(&look.types, "type", nil, "only events of this `type`, such as user/message or tool/result; repeat it for more")
	f.StringSliceVar(&look.surfaces, "surface", nil, "only events that the agent sees (`current`), that were replaced (shadowed), or that it never saw (log-only)")
	f.StringVar(&look.since, "since", "", "only events of the last `duration`, such as 24h")
	f.StringVar(&look.from, "from", "", "only events from this `time` on: 2026-07-24T10:00:00Z")
	f.StringVar(&look.to, "to", "", "only events until this `time`")
	f.Var(&look.seqFrom, "seq-from", "only events from this `number` on")
	f.Var(&look.seqTo, "seq-to", "only events up to this `number`")
	f.IntVar(&look.limit, "limit", 20, "`number` of matches at a time, 100 at most")
	f.StringVar(&look.after, "after", "", "go on behind a page, with the `token` that it named")
	f.BoolVar(&look.every, "all", false, "every match, page after page")
	return cmd
}

func (look lookFor) request(phrase string, now time.Time) (*messages.SearchRequest, error) {
	req := &messages.SearchRequest{Query: phrase, Session: look.session, Parents: look.parents, Roots: look.roots,
		Types: look.types, Surfaces: look.surfaces, TimeFrom: look.from, TimeTo: look.to, SeqFrom: look.seqFrom.given, SeqTo: look.seqTo.given,
		Limit: int32(min(look.limit, math.MaxInt32)), After: look.after}
	if look.limit < 1 { // which a request would take for no limit of its own
		return nil, usage("give 1 to 100, or --all", "--limit %d is out of range", look.limit)
	}
	if look.session != "" && (len(look.workspaces)+len(look.parents) > 0 || look.roots || look.live) {
		return nil, usage("leave them out, or --session", "--session is one session, and --workspace, --parent, --roots and --live choose among many")
	}
	for _, dir := range look.workspaces {
		if dir == "." || strings.HasPrefix(dir, "./") || strings.HasPrefix(dir, "../") || dir == ".." {
			here, err := os.Getwd()
			if err != nil {
				return nil, err
			}
			dir = filepath.Join(here, dir)
		}
		req.Workspaces = append(req.Workspaces, dir)
	}
	if look.since != "" {
		if look.from != "" {
			return nil, usage("give one of them", "--since and --from both say where to begin")
		}
		ago, err := time.ParseDuration(look.since)
		if err != nil || ago < 0 {
			return nil, usage("give a duration such as 90m or 168h", "--since %q is no duration", look.since)
		}
		req.TimeFrom = now.Add(-ago).UTC().Format(time.RFC3339Nano)
	}
	if look.live {
		req.Availability = []string{"live"}
	}
	return req, nil
}

// spoken names what is wrong with a request as it was typed: the request has names of its own for the flags.
func (look lookFor) spoken(err error) error {
	t := asTrouble(err)
	if t.code != messages.QueryInvalidFilter && t.code != messages.QueryInvalidLimit {
		return err
	}
	from := "--from"
	if look.since != "" {
		from = "--since"
	}
	flags := strings.NewReplacer("time_from", from, "time_to", "--to", "seq_from", "--seq-from", "seq_to", "--seq-to", "limit", "--limit",
		"surfaces", "--surface", "types", "--type", "parents", "--parent", "workspaces", "--workspace")
	names, values, quoted := strings.Cut(t.text, `"`)
	named := *t
	if named.text = flags.Replace(names); quoted {
		named.text += `"` + values
	}
	return &named
}

// eventNumber is a flag that takes the number of an event.
type eventNumber struct{ given *int64 }

func (n *eventNumber) Set(text string) error {
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return errors.New("events are numbered from 0")
	}
	n.given = &seq
	return nil
}

func (n *eventNumber) String() string {
	if n.given == nil {
		return ""
	}
	return strconv.FormatInt(*n.given, 10)
}

func (n *eventNumber) Type() string { return "int64" }

type hitJSON struct {
	Session   string `json:"session"`
	Title     string `json:"title"`
	Cwd       string `json:"cwd,omitempty"`
	Parent    string `json:"parent,omitempty"`
	CreatedMs int64  `json:"createdMs"`
	Live      bool   `json:"live"`
	Seq       int64  `json:"seq"`
	Type      string `json:"type"`
	Surface   string `json:"surface"`
	TimeMs    int64  `json:"timeMs"`
	Snippet   string `json:"snippet"`
}

func (c *cli) search(cmd *cobra.Command, phrase string, look lookFor) error {
	req, err := look.request(phrase, c.now())
	if err != nil {
		return err
	}
	node, err := c.dial()
	if err != nil {
		return err
	}
	doc := struct {
		Hits     []hitJSON               `json:"hits"`
		Next     string                  `json:"next,omitempty"`
		Troubled map[string]*troubleJSON `json:"troubled,omitempty"`
	}{Hits: []hitJSON{}}
	for {
		page, err := repeat(cmd.Context(), node, node.Search, req)
		if err != nil {
			return look.spoken(err)
		}
		for _, h := range page.GetHits() {
			doc.Hits = append(doc.Hits, hitJSON{h.GetSession(), h.GetTitle(), h.GetWorkspace(), h.GetParent(), h.GetCreatedMs(), h.GetLive(),
				h.GetSeq(), h.GetType(), h.GetSurface(), h.GetTimeMs(), h.GetSnippet()})
		}
		for _, t := range page.GetTroubled() {
			if doc.Troubled == nil {
				doc.Troubled = map[string]*troubleJSON{}
			}
			doc.Troubled[t.GetSession()] = troubleOf(t.GetWhy())
		}
		doc.Next = page.GetNext()
		if req.After = doc.Next; !look.every || req.After == "" {
			break
		}
	}
	if c.json {
		return c.printJSON(doc)
	}
	c.hits(doc.Hits, look.session != "")
	for _, session := range slices.Sorted(maps.Keys(doc.Troubled)) {
		t := doc.Troubled[session]
		c.block(c.err, "! ", t.Text+" ("+string(t.Code)+")")
	}
	switch {
	case len(doc.Hits) == 0 && len(doc.Troubled) > 0:
		c.notef("nothing found in the sessions that can be read\n")
	case len(doc.Hits) == 0:
		c.notef("nothing found\n")
	case doc.Next != "":
		c.notef("there is more: add --after %s, or --all\n", doc.Next)
	}
	return nil
}

// hits prints what was found: a line that says where, and the text below it.
func (c *cli) hits(hits []hitJSON, one bool) {
	now := c.now().UnixMilli()
	for i, h := range hits {
		if i > 0 && !one {
			c.printf("\n")
		}
		if !one {
			c.printf("%s — %s\n", oneLine(h.Session), oneLine(h.Title))
		}
		c.printf("  %d  %s, %s%s\n", h.Seq, oneLine(h.Type), whenSaid(h.TimeMs, now), h.Surface)
		mark, said := "     ", h.Snippet
		if rest, cut := strings.CutPrefix(said, "…"); cut { // it is a mark of ours, and needs no backslash
			mark, said = mark+"…", rest
		}
		c.block(c.out, mark, said)
	}
}

// agoMost is from when on a date says more than how long ago it was.
const agoMost = 365 * 24 * time.Hour

// whenSaid is for the middle of a line; of an event that was recorded without its time it says nothing.
func whenSaid(ms, now int64) string {
	switch {
	case ms <= 0:
		return ""
	case ms > now || now-ms > agoMost.Milliseconds():
		return "on " + time.UnixMilli(ms).UTC().Format(time.DateOnly) + ", "
	}
	return span(now-ms) + " ago, "
}

func (c *cli) traceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trace SESSION [SEQ]",
		Short: "Show where a session or an event comes from",
		Long: `Show which session began this one, and which ones it began. With the number of an
event, show what replaced it, what it replaced, what it cites, and what was
derived from it.`,
		Example: `  parley trace build
  parley trace build 12`,
		Args: args(1, 2, "SESSION [SEQ]"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := checkIDs("SESSION", words[0]); err != nil {
				return err
			}
			req := &messages.TraceRequest{Session: words[0]}
			if len(words) == 2 {
				seq, err := seqOf(words[1])
				if err != nil {
					return err
				}
				req.Seq = &seq
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			res, err := repeat(cmd.Context(), node, node.Trace, req)
			return c.told(res.GetText(), err)
		},
	}
}

func (c *cli) readCommand() *cobra.Command {
	var before, after int32
	cmd := &cobra.Command{
		Use:   "read SESSION SEQ [flags]",
		Short: "Show one event whole, and what was said around it",
		Example: `  parley read build 12
  parley read build 12 -B 3 -A 3`,
		Args: args(2, 2, "SESSION SEQ"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := checkIDs("SESSION", words[0]); err != nil {
				return err
			}
			seq, err := seqOf(words[1])
			if err != nil {
				return err
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			res, err := repeat(cmd.Context(), node, node.Read, &messages.ReadRequest{Session: words[0], Seq: seq, Before: before, After: after})
			return c.told(res.GetText(), err)
		},
	}
	cmd.Flags().Int32VarP(&before, "before", "B", 0, "`number` of events before it, 50 at most")
	cmd.Flags().Int32VarP(&after, "after", "A", 0, "`number` of events after it, 50 at most")
	return cmd
}

// told prints a text of the node's.
func (c *cli) told(text string, err error) error {
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]string{"text": text})
	}
	c.printf("%s\n", clean(text))
	return nil
}

func seqOf(word string) (int64, error) {
	seq, err := strconv.ParseInt(word, 10, 64)
	if err != nil || seq < 0 {
		return 0, usage("events are numbered from 0; search and log show their numbers", "%q is no number of an event", word)
	}
	return seq, nil
}
