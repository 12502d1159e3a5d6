package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

type exporting struct {
	file  string
	force bool
}

func (c *cli) exportCommand() *cobra.Command {
	var e exporting
	cmd := &cobra.Command{
		Use:   "export SESSION [flags]",
		Short: "Write a session's log to a file",
		Long: `Write a session's log to a file, or to stdout: the header line, then every event,
byte for byte as stored. "parley import" takes it back, here or at another node.

A file is there whole or not at all, and only you can read it. One that exists
is kept unless --force is given.`,
		Example: `  parley export demo -o demo.jsonl
  parley export demo | jq .type`,
		Args: args(1, 1, "SESSION"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := checkIDs("SESSION", words[0]); err != nil {
				return err
			}
			return c.export(cmd.Context(), words[0], e)
		},
	}
	cmd.Flags().StringVarP(&e.file, "output", "o", "-", "`file` to write; - is stdout")
	cmd.Flags().BoolVar(&e.force, "force", false, "replace a file that exists")
	return cmd
}

type exportedJSON struct {
	Session string `json:"session"`
	File    string `json:"file"`
	Events  int64  `json:"events"`
	Bytes   int64  `json:"bytes"`
}

func (c *cli) export(ctx context.Context, session string, e exporting) error {
	node, err := c.dial()
	if err != nil {
		return err
	}
	if e.file == "-" {
		_, err := writeLog(ctx, node, session, c.record)
		return err
	}
	if _, err := os.Lstat(e.file); err == nil && !e.force {
		return fileExists(e.file)
	}
	done := exportedJSON{Session: session, File: e.file}
	err = writeWhole(e.file, e.force, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		events, err := writeLog(ctx, node, session, func(line string) error {
			done.Bytes += int64(len(line)) + 1
			_, err := fmt.Fprintln(out, line)
			return err
		})
		done.Events = events
		return errors.Join(err, out.Flush())
	})
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(done)
	}
	c.printf("exported session %s to %s: %d events, %d bytes\n", oneLine(session), oneLine(e.file), done.Events, done.Bytes)
	return nil
}

func fileExists(path string) error {
	return usage("give --force to replace it", "%s exists", path)
}

// writeLog hands out the lines of a log, the header first, and counts the events.
func writeLog(ctx context.Context, node *client, session string, each func(line string) error) (int64, error) {
	head, err := repeat(ctx, node, node.ReadLog, &messages.ReadLogRequest{Session: session, Limit: 1})
	if err != nil {
		return 0, err
	}
	if err := each(head.GetHeader()); err != nil {
		return 0, fmt.Errorf("writing the log: %w", err)
	}
	return readLog(ctx, node, session, 0, each)
}

// writeWhole writes a file beside its place and puts it there when it is whole and on disk. Unless it may be replaced,
// one that has come there meanwhile is kept.
func writeWhole(path string, replace bool, write func(io.Writer) error) (err error) {
	out, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return cannotWrite(path, err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // of what failed; what was put in its place is no longer there
	defer func() { _ = out.Close() }()
	if err := write(out); err != nil {
		return cannotWrite(path, err)
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return cannotWrite(path, err)
	}
	if replace {
		err = os.Rename(out.Name(), path)
	} else if err = os.Link(out.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		err = placeNew(out.Name(), path) // a file system without links
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fileExists(path)
	case err != nil:
		return cannotWrite(path, err)
	}
	return nil
}

// placeNew renames a file to a name that it holds by an empty one, so that no other is lost.
func placeNew(from, path string) error {
	held, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(held.Close(), os.Rename(from, path))
}

// cannotWrite keeps what the node said, and names the file in what the disk said.
func cannotWrite(path string, err error) error {
	var t *trouble
	if errors.As(err, &t) {
		return t
	}
	return &trouble{code: "ERROR", text: fmt.Sprintf("cannot write %s: %v", path, err), remedy: "nothing was written; choose another file with --output"}
}
