package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/parleyrun/parley/simulation"
	"github.com/spf13/cobra"
)

func (c *cli) simShowCommand() *cobra.Command {
	var d drawing
	var o output
	var look simulation.PictureOptions
	var format string
	cmd := &cobra.Command{
		Use:   "show SEED|FILE -o FILE [flags]",
		Short: "Draw a run as a space-time diagram",
		Long: `Run a seed, or the script in a file (- is stdin), and draw it: a lane for each agent,
host and person and for the disk, time going down, messages as arrows, faults, claims
and deadlines as bars, and a broken promise where it shows. The file is HTML, which
needs nothing else and can be searched and zoomed, or SVG for paper, by its ending.
On stdout --format says which.`,
		Example: `  parley sim show 55 --profile single -o run.html
  parley sim show mine.script -o mine.svg`,
		Args: args(1, 1, "SEED or FILE"),
		RunE: func(cmd *cobra.Command, words []string) error {
			var err error
			if look.Format, err = pictureFormat(format, o.file); err != nil {
				return err
			}
			p, err := c.plan(cmd, words[0], d)
			if err != nil {
				return err
			}
			return c.simShow(p, o, look)
		},
	}
	o.flags(cmd, "the picture")
	cmd.Flags().StringVar(&format, "format", "", "`format` of the picture: html or svg (default by the ending of the file)")
	cmd.Flags().StringVar(&look.Title, "title", "", "`text` above the picture (default what was run)")
	cmd.Flags().BoolVar(&look.Actors, "actors", false, "show what each actor takes, and each timer, from the beginning")
	d.flags(cmd, false)
	return cmd
}

// pictureFormat is the one that was named, or the one that the file's name ends with.
func pictureFormat(format, file string) (simulation.PictureFormat, error) {
	from := "--format " + format
	if format == "" {
		format, from = strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), "."), file
		if file == "-" {
			format, from = "", "stdout"
		}
	}
	switch f := simulation.PictureFormat(format); f {
	case simulation.PictureHTML, simulation.PictureSVG:
		return f, nil
	}
	return "", usage("end the file's name with .html or .svg, or give --format html or --format svg", "%s says no format of a picture", from)
}

func (c *cli) simShow(p planned, o output, look simulation.PictureOptions) error {
	r, err := simulation.Try(p.Plan, simulation.Options{Keep: true})
	if err != nil {
		return unplanned(p, err)
	}
	if look.Title == "" && !p.seed {
		look.Title = filepath.Base(p.name)
	}
	picture, err := simulation.Picture(r, look)
	if err != nil {
		return &trouble{code: "ERROR", text: fmt.Sprintf("%s: %v", p.name, err), remedy: "replay says how it came out", line: c.simLine("replay", p.flags, p.name)}
	}
	return c.writeOut(o, string(picture))
}
