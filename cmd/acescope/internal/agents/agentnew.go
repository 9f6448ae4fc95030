package agents

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// BlueprintNew says which blueprint was made.
type BlueprintNew struct {
	Type  string   `json:"type"` // blueprint_new
	Name  string   `json:"name"`
	Path  string   `json:"path"`
	Files []string `json:"files"`
}

func agentNewCommand(a *cli.App) *cobra.Command {
	var kind, strategy string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a new blueprint that can be run as it is",
		Long: "Writes the directory NAME, with the files of a blueprint, into the first directory of the search path (see acescope agent\n" +
			"list), which is made where it is missing. It never writes over something.",
		Example: "acescope agent new web-crawler --type deterministic --strategy args\nacescope agent new reviewer --type agent --agents-dir ~/agents",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return agentNew(a, args[0], run.BlueprintType(kind), run.Strategy(strategy))
		},
	}
	cmd.Flags().StringVar(&kind, "type", "", "agent or deterministic")
	cmd.Flags().StringVar(&strategy, "strategy", "", "how a program gets its parameters: stdin_json (default), args, env or file")
	return cmd
}

func agentNew(a *cli.App, name string, kind run.BlueprintType, strategy run.Strategy) error {
	if kind == "" {
		return cli.UsageError("give --type deterministic for a program, or --type agent")
	}
	dirs, err := a.AgentsPath()
	if err != nil {
		return err
	}
	dir, err := blueprint.New(dirs[0], name, kind, strategy)
	if errors.Is(err, run.ErrBadRequest) {
		return badRequest(err)
	}
	if err != nil {
		return err
	}
	line := BlueprintNew{Type: "blueprint_new", Name: name, Path: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		line.Files = append(line.Files, e.Name())
	}
	if a.JSON {
		return cli.NewLines(a.Out).Write(line)
	}
	_, err = fmt.Fprintf(a.Out, "made %s; acescope agent show %s shows it\n", cli.SafeText(dir), cli.SafeText(name))
	return err
}
