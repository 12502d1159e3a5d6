package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
)

// importedJSON is what became of a folder of logs.
type importedJSON struct {
	Imported []sessionJSON `json:"imported"`
	Existing []string      `json:"existing"` // paths of logs whose sessions were here
	Refused  []refusedJSON `json:"refused"`
	// PassedOver are files *.jsonl that are no logs.
	PassedOver []refusedJSON `json:"passedOver"`
}

type refusedJSON struct {
	Path string        `json:"path"`
	Code messages.Code `json:"code"`
	Text string        `json:"text"`
}

// importTree takes every log of a folder. One that is refused keeps none of the others from being taken.
func (c *cli) importTree(ctx context.Context, dir string) error {
	tree := os.DirFS(dir)
	logs, err := parley.Archive(tree)
	if err != nil {
		return usage("name a folder that holds logs", "cannot read the folder: %v", err)
	}
	if len(logs) == 0 {
		return usage("a session's log is a file *.jsonl, as `parley export -o` writes it, or session.jsonl in a folder of its own, compressed (.zstd) or not", "there is no log in %s", dir)
	}
	node, err := c.dial()
	if err != nil {
		return err
	}
	done := importedJSON{Imported: []sessionJSON{}, Existing: []string{}, Refused: []refusedJSON{}, PassedOver: []refusedJSON{}}
	for _, log := range logs {
		row, err := importArchived(ctx, node, tree, log)
		refusal := (*trouble)(nil)
		if err != nil {
			refusal = asTrouble(err)
		}
		switch {
		case log.Stray:
			done.PassedOver = append(done.PassedOver, refusedJSON{log.Path, refusal.code, refusal.text})
			if !c.json {
				c.printf("passed over %s: %s\n", oneLine(log.Path), oneLine(refusal.text))
			}
		case err == nil:
			done.Imported = append(done.Imported, sessionOf(row))
			if !c.json {
				c.printf("imported session %s: %d events\n", oneLine(row.GetSession()), row.GetEvents())
			}
		case refusal.code == messages.SessionExists:
			done.Existing = append(done.Existing, log.Path)
		case ofTheLog(refusal.code):
			done.Refused = append(done.Refused, refusedJSON{log.Path, refusal.code, refusal.text})
			if !c.json {
				c.printf("refused %s: %s\n", oneLine(log.Path), oneLine(refusal.text))
			}
		default: // of the node or the way to it: the next log would fare no better
			return err
		}
	}
	if len(done.Refused) > 0 {
		c.exit = messages.Lookup(done.Refused[0].Code).Exit
	}
	if c.json {
		return c.printJSON(done)
	}
	c.printf("%d imported, %d here already, %d refused\n", len(done.Imported), len(done.Existing), len(done.Refused))
	return nil
}

// ofTheLog says whether a code speaks of one log only.
func ofTheLog(code messages.Code) bool {
	return code == messages.BadLog || code == messages.TooLarge || code == messages.BadRequest
}

func importArchived(ctx context.Context, node *client, tree fs.FS, log parley.ArchivedLog) (*messages.SessionRow, error) {
	unreadable := func(err error) error {
		return refuse(messages.BadLog, "", "it cannot be read: %v", err)
	}
	if log.Problem != nil {
		var coded *messages.Error
		if errors.As(log.Problem, &coded) {
			return nil, refuse(coded.Code, "", "%s", coded.Text)
		}
		return nil, unreadable(log.Problem)
	}
	file, err := tree.Open(log.Path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = file.Close() }()
	return sendLog(ctx, node, "", file)
}
