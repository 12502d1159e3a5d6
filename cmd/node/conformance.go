package main

import (
	"errors"
	"strings"

	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/simulation/conformance"
	"github.com/spf13/cobra"
)

func (c *cli) conformanceCommand() *cobra.Command {
	var opts conformance.Options
	kinds := "Kinds:     " + strings.Join(wrap(strings.Join(conformance.Kinds(), " "), 67), "\n           ")
	cmd := &cobra.Command{
		Use:   "conformance [flags] FILE...",
		Short: "Drive the machines with vector files",
		Long: `Drive the machines of this build with vectors: recorded input and the output
that is expected for it, one JSON object per line. Prints a line per failure
with the first difference, then the counts. Exits with 1 when any failed.

` + kinds + `

"improved" counts vectors whose result differs exactly as Parley declares:
D1, a claimed reply is queued again after its turn's end or a restart;
D2, a settled wait answers at once and waits for no stubborn answerer.`,
		Example: `  parley conformance --logs logs vectors/*.jsonl
  parley conformance --kind scan --kind repair session-log.jsonl`,
		Args: args(1, 1<<20, "files"),
		RunE: func(_ *cobra.Command, files []string) error {
			opts.Stdin = c.in
			return c.conformance(files, opts)
		},
	}
	cmd.Flags().StringArrayVar(&opts.Kinds, "kind", nil, "only vectors of this `kind`; repeat it for more")
	cmd.Flags().StringVar(&opts.Logs, "logs", "", "`folder` of the logs that vectors name")
	return cmd
}

func (c *cli) conformance(files []string, opts conformance.Options) error {
	lines := c.out
	if c.json {
		lines = c.err // failures for people; stdout is one document
	}
	sum, err := conformance.Run(lines, files, opts)
	if c.json {
		if err := c.printJSON(struct {
			Passed   int `json:"passed"`
			Failed   int `json:"failed"`
			Improved int `json:"improved"`
		}{sum.Passed, sum.Failed, sum.Improved}); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, conformance.ErrNothing):
		return &trouble{code: "ERROR", text: err.Error(), remedy: "check the files and --kind"}
	case err != nil:
		return &trouble{code: "ERROR", text: err.Error(), remedy: "`parley conformance --help` says what a vector is"}
	case sum.Failed > 0:
		c.exit = messages.ExitError
	}
	return nil
}
