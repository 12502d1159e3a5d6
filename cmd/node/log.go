package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

// followEvery is how often a followed log is read again.
const followEvery = 500 * time.Millisecond

func (c *cli) logCommand() *cobra.Command {
	var follow bool
	var from int64
	cmd := &cobra.Command{
		Use:   "log SESSION [flags]",
		Short: "Print a session's log as it is stored",
		Long: `Print a session's log as JSON Lines: the header first, then every event, byte
for byte as stored. On a terminal, characters that would act on it are escaped.`,
		Example: `  parley log demo > demo.jsonl
  parley log demo --follow`,
		Args: args(1, 1, "SESSION"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := checkIDs("SESSION", words[0]); err != nil {
				return err
			}
			if from < 0 {
				return usage("the first event is 0", "--from %d is no sequence number", from)
			}
			node, err := c.dial()
			if err != nil {
				return err
			}
			return c.log(cmd.Context(), node, words[0], from, follow)
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "stay and print events as they come")
	cmd.Flags().Int64Var(&from, "from", 0, "sequence `number` of the first event wanted")
	return cmd
}

func (c *cli) log(ctx context.Context, node *client, session string, from int64, follow bool) error {
	head, err := repeat(ctx, node, node.ReadLog, &messages.ReadLogRequest{Session: session, Limit: 1})
	if err != nil {
		return err
	}
	if err := c.record(head.GetHeader()); err != nil {
		return err
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		next, err := readLog(ctx, node, session, from, c.record)
		if follow && ctx.Err() != nil {
			return nil // ended by its reader: that is how following ends
		}
		if err != nil && (!follow || !asTrouble(err).temporary()) {
			return err
		}
		if from = next; !follow {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// record writes one line of the log. Only a terminal gets an escaped one: same JSON, other bytes.
func (c *cli) record(line string) error {
	if c.tty {
		line = string(escapeJSON([]byte(line)))
	}
	_, err := fmt.Fprintln(c.out, line)
	return err
}

// readLog hands out the events of a session from a sequence number to the end, and returns where to go on.
func readLog(ctx context.Context, node *client, session string, from int64, each func(record string) error) (int64, error) {
	for {
		page, err := repeat(ctx, node, node.ReadLog, &messages.ReadLogRequest{Session: session, FromSeq: from, Limit: pageRows})
		if err != nil {
			return from, err
		}
		for _, record := range page.GetEvents() {
			if err := each(record); err != nil {
				return from, fmt.Errorf("writing the log: %w", err)
			}
			from += eventsIn(record)
		}
		if page.GetNextSeq() < 0 || len(page.GetEvents()) == 0 {
			return from, nil
		}
		from = page.GetNextSeq()
	}
}

// eventsIn counts the events of a record: a packed row of an older log holds several.
func eventsIn(record string) int64 {
	var row struct {
		Type string
		Data struct{ Texts, Args []json.RawMessage }
	}
	if !strings.Contains(record, "-chunks") || json.Unmarshal([]byte(record), &row) != nil {
		return 1
	}
	switch row.Type {
	case "text-chunks", "reasoning-chunks", "tool-call-chunks":
		return int64(len(row.Data.Texts) + len(row.Data.Args))
	}
	return 1
}
