package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
)

// lookAgain is how often a watch looks whether something came in addition to what it has told of already. The node
// holds a request only while nothing waits.
const lookAgain = 2 * time.Second

// hookOpenCode tells opencode of what waits, by a message of its user: it wakes an idle session.
func (c *cli) hookOpenCode(ctx context.Context, in hooking) error {
	if in.thread == "" {
		return usage("`opencode session list` shows them", "--opencode-session is missing")
	}
	to, err := promptURL(in.server, in.thread)
	if err != nil {
		return err
	}
	node, err := c.dial()
	if err != nil {
		return err
	}
	if in.watch {
		return c.watchForOpenCode(ctx, node, in.session, to)
	}
	waits, err := lookInto(ctx, node, in.session)
	if err != nil {
		return err
	}
	if waits.count() == 0 {
		c.notef("nothing waits in session %s\n", oneLine(in.session))
		return nil
	}
	return c.tellOpenCode(ctx, to, waits.count())
}

// promptURL is where opencode takes a message for one of its sessions.
func promptURL(server, thread string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", usage("give it as http://host:port", "--server %q is no address of a server", server)
	}
	if strings.ContainsAny(thread, `/\?#`) || strings.Trim(thread, ".") == "" { // it must stay one step of the path
		return "", usage("`opencode session list` shows them", "--opencode-session %q is no id of a session", thread)
	}
	return u.JoinPath("session", url.PathEscape(thread), "prompt_async").String(), nil
}

// tellOpenCode posts the bell.
func (c *cli) tellOpenCode(ctx context.Context, to string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	body := jsonLine(map[string]any{"parts": []map[string]string{{"type": "text", "text": bellText(n)}}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return refuse(messages.Unavailable, "start it with `opencode serve --port 4096`, or name it with --server", "opencode does not answer: %v", err)
	}
	defer func() { _ = res.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 300))
	if res.StatusCode/100 != 2 {
		return &trouble{code: "ERROR", text: fmt.Sprintf("opencode refuses the message: %s: %s", res.Status, said), remedy: "check --server and --opencode-session"}
	}
	c.notef("told opencode: %s\n", bellText(n))
	return nil
}

// watchForOpenCode stays and tells of each reply once. A reply counts as told only when opencode has taken the message.
func (c *cli) watchForOpenCode(ctx context.Context, node *client, session, to string) error {
	told, lost := waiting{}, 0
	for {
		now, err := lookInto(ctx, node, session)
		if err == nil && now.newTo(told) {
			err = c.tellOpenCode(ctx, to, now.count())
		}
		switch {
		case ctx.Err() != nil:
			return refuse(codeInterrupted, "", "interrupted")
		case err != nil && !asTrouble(err).temporary():
			return err
		case err != nil:
			if lost == 0 {
				c.notef("%s; trying again\n", oneLine(asTrouble(err).text))
			}
			pause(ctx, lost)
			lost++
			continue
		}
		told, lost = now, 0
		awaitMore(ctx, node, session, now)
	}
}

// newTo reports whether something waits that did not before.
func (w waiting) newTo(before waiting) bool {
	had := map[string]bool{}
	for _, id := range before.ids {
		had[id] = true
	}
	for _, id := range w.ids {
		if !had[id] {
			return true
		}
	}
	return w.undelivered > before.undelivered
}

// awaitMore returns when another look may show more: at once when the first reply comes, else after a while.
func awaitMore(ctx context.Context, node *client, session string, now waiting) {
	if now.count() == 0 {
		res, err := callWithin(ctx, node, hold+replyTimeout, node.AwaitInbox,
			&messages.AwaitInboxRequest{Session: session, Root: mcpRoot, HoldMs: hold.Milliseconds()})
		if err == nil && res.GetQueued() > 0 {
			return
		}
	}
	t := time.NewTimer(lookAgain)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
