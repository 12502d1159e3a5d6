package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"github.com/spf13/cobra"
)

const importPiece = 256 << 10 // bytes of a log that are sent at once

func (c *cli) importCommand() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "import (FILE | DIR | -) [flags]",
		Short: "Take sessions from their logs",
		Long: `Take a session from a log in the public format, as "parley export" writes it: with
its questions that wait, which can be answered here from then on. It is taken
whole or not at all. A session that exists is neither changed nor replaced. A
compressed log (Zstandard) is taken for what it holds.

Of a DIR, every log in it is taken: files *.jsonl as "parley export -o" writes
them, whatever their names, and a folder per session with its session.jsonl, as
other programs keep them; each may be compressed (.zstd). What is here already is
passed over, so the same command may be given again. So is a *.jsonl that is no
log, with a word. Of two such files of one session neither is taken.

A log that was cut at the end of a line looks like the log of a session that had
come so far. The number of events is printed, and that it ends in the middle of a
turn if it does, as it also does when it was exported while the agent worked.

A log of an older generation can be read and exported, and takes no questions.`,
		Example: `  parley import demo.jsonl
  parley import ~/sessions
  parley export demo --node http://old:7410 | parley import - --as demo-2`,
		Args: args(1, 1, "one FILE or DIR, or - for stdin"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if as != "" {
				if err := checkIDs("--as", as); err != nil {
					return err
				}
			}
			if info, err := os.Stat(words[0]); err == nil && info.IsDir() {
				if as != "" {
					return usage("leave --as away, or name one file of it", "a folder holds many sessions, and --as is one name")
				}
				return c.importTree(cmd.Context(), words[0])
			}
			return c.importFile(cmd.Context(), words[0], as)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "`name` of the session (default: the one in the log)")
	return cmd
}

func (c *cli) importFile(ctx context.Context, file, as string) error {
	log := c.in
	if file != "-" {
		in, err := os.Open(file)
		if err != nil {
			return usage("name a file that `parley export` wrote", "cannot read the log: %v", err)
		}
		defer func() { _ = in.Close() }()
		log = in
	}
	node, err := c.dial()
	if err != nil {
		return err
	}
	var end logEnd
	row, err := sendLog(ctx, node, as, io.TeeReader(log, &end))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(sessionOf(row))
	}
	c.printf("imported session %s: %d events%s", oneLine(row.GetSession()), row.GetEvents(), end.words())
	if n := row.GetAnswerable(); n > 0 {
		c.printf("; questions that can be answered: %d", n)
	}
	c.printf("\n")
	return nil
}

// logEnd is where a log ends, seen from the lines that go by.
type logEnd struct {
	line       []byte // the one that is not whole yet
	turn, step bool   // one is open
}

func (e *logEnd) Write(p []byte) (int, error) {
	n := len(p)
	for at := bytes.IndexByte(p, '\n'); at >= 0; at = bytes.IndexByte(p, '\n') {
		e.event(append(e.line, p[:at]...))
		e.line, p = e.line[:0], p[at+1:]
	}
	e.line = append(e.line, p...)
	return n, nil
}

func (e *logEnd) event(line []byte) {
	var event struct{ Type string }
	if json.Unmarshal(line, &event) != nil {
		return // that is for the node to say
	}
	switch event.Type {
	case "turn/start":
		e.turn, e.step = true, false
	case "turn/end":
		e.turn, e.step = false, false
	case "step/start":
		e.step = true
	case "step/end":
		e.step = false
	}
}

func (e *logEnd) words() string {
	switch {
	case e.step:
		return "; the log ends in the middle of a step"
	case e.turn:
		return "; the log ends in the middle of a turn"
	}
	return ""
}

// sendLog sends a log in pieces. One that cannot be read to its end is broken off, which the node takes for no log.
func sendLog(ctx context.Context, node *client, session string, log io.Reader) (*messages.SessionRow, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := node.ImportSession(ctx)
	for piece := make([]byte, importPiece); ; {
		n, readErr := io.ReadFull(log, piece)
		ended := errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF)
		if readErr != nil && !ended {
			// The stream is broken off with its context: without a last piece it is no log.
			return nil, usage("nothing was imported; give the command again", "cannot read the log: %v", readErr)
		}
		err := stream.Send(&messages.ImportSessionRequest{Session: session, Data: piece[:n], Last: ended})
		if err != nil && !errors.Is(err, io.EOF) { // at io.EOF the answer says why
			return nil, node.explain(err)
		}
		if session = ""; err != nil || ended {
			break
		}
	}
	res, err := stream.CloseAndReceive()
	if err != nil {
		return nil, node.explain(asConnect(err))
	}
	return res.Msg.GetSession(), nil
}

// asConnect gives an error of the connection the form that errors of calls have.
func asConnect(err error) error {
	var e *connect.Error
	if errors.As(err, &e) {
		return err
	}
	return connect.NewError(connect.CodeUnavailable, err)
}
