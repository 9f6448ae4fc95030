package admin

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
)

type versionLine struct {
	Version  string `json:"version" jsonschema:"version of acescope"`
	Go       string `json:"go" jsonschema:"Go version"`
	Platform string `json:"platform" jsonschema:"operating system and architecture"`
	Server   string `json:"temporal_server" jsonschema:"version of the Temporal server"`
	SDK      string `json:"temporal_sdk" jsonschema:"version of the Temporal SDK"`
}

func versions() versionLine {
	v := versionLine{
		Version: cli.BuildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "go.temporal.io/server":
				v.Server = m.Version
			case "go.temporal.io/sdk":
				v.SDK = m.Version
			}
		}
	}
	return v
}

func VersionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the versions of acescope and of the Temporal modules in it",
		RunE: func(*cobra.Command, []string) error {
			v := versions()
			return cli.Show(a, v, func() error {
				_, err := fmt.Fprintf(a.Out, "acescope %s (%s, %s)\nTemporal server %s, SDK %s\n",
					v.Version, v.Go, v.Platform, v.Server, v.SDK)
				return err
			})
		},
	}
}
