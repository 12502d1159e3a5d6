package main

import (
	"context"
	"fmt"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

func (c *cli) sessionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "sessions [flags]",
		Short:   "List the sessions of the node",
		Example: "  parley sessions --json",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := c.dial()
			if err != nil {
				return err
			}
			return c.sessions(cmd.Context(), node)
		},
	}
}

func (c *cli) sessions(ctx context.Context, node *client) error {
	doc := struct {
		Sessions []sessionJSON `json:"sessions"`
	}{[]sessionJSON{}}
	req := &messages.ListSessionsRequest{Limit: pageRows}
	for {
		page, err := repeat(ctx, node, node.ListSessions, req)
		if err != nil {
			return err
		}
		for _, row := range page.GetSessions() {
			doc.Sessions = append(doc.Sessions, sessionOf(row))
		}
		if req.After = page.GetNext(); req.After == "" {
			break
		}
	}
	if c.json {
		return c.printJSON(doc)
	}
	if len(doc.Sessions) == 0 {
		c.notef("no sessions\n")
		return nil
	}
	now := c.now().UnixMilli()
	var rows [][]string
	for _, s := range doc.Sessions {
		rows = append(rows, []string{oneLine(s.Session), age(s.CreatedMs, now), fmt.Sprint(s.Events), fmt.Sprint(s.Answerable), fmt.Sprint(s.Queued)})
	}
	names := []string{"SESSION", "AGE", "EVENTS", "OPEN", "QUEUED"}
	c.squeeze(names, rows, 0)
	head, lines, _ := c.columns(names, rows)
	c.printf("%s\n", head)
	for i, line := range lines {
		c.printf("%s\n", line)
		if t := doc.Sessions[i].Trouble; t != nil {
			c.block(c.out, "  ! ", t.Text+" ("+string(t.Code)+")")
		}
	}
	return nil
}
