package main

import (
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// released is a version that somebody tagged; go makes up longer ones for any other commit.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// version is set by a release's linker flags.
var version = "dev"

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() versionJSON {
	v := versionJSON{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "dev" && released.MatchString(info.Main.Version) {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version [flags]",
		Short: "Print the version",
		Args:  args(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if c.json {
				return c.printJSON(v)
			}
			c.printf("parley %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			return nil
		},
	}
}
