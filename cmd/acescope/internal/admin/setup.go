package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/sources/runs"
)

// SetupLine is a step of setting up a namespace.
type SetupLine struct {
	Address   string     `json:"address"`
	Namespace string     `json:"namespace"`
	Step      string     `json:"step"`
	State     setupState `json:"state"`
	Text      string     `json:"text"`
}

type setupState string

const (
	setupExists  setupState = "exists"
	setupMissing setupState = "missing"
	setupCreated setupState = "created"
)

func SetupCommand(a *cli.App) *cobra.Command {
	var days int
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create what acescope needs in a namespace of a cluster",
		Long: "Creates the namespace and its search attributes, and registers the store that its machines share, as\n" +
			"far as they are missing. It shows what it will create and asks first. A namespace that has everything\n" +
			"stays as it is.",
		Example: "acescope setup --address temporal.example.com:7233 --namespace ace-dev\n" +
			"acescope setup --address temporal.example.com:7233 --store 's3://team-ace?region=eu-central-1'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.Cluster() == nil:
				return cli.UsageError("setup needs a cluster; add --address or --profile " +
					"(the embedded server needs no setup)")
			case days < 1:
				return cli.UsageError("--retention-days %d: must be at least 1", days)
			}
			retention := time.Duration(days) * 24 * time.Hour
			s, err := engine.PlanSetup(cmd.Context(), engine.Options{Remote: a.Cluster(),
				Store:    a.Settings.Store,
				ReadOnly: a.Settings.ReadOnly}, retention)
			if err != nil {
				return err
			}
			defer s.Close()
			return setUp(a, cmd.Context(), s, dryRun, yes)
		},
	}
	cmd.Flags().IntVar(&days, "retention-days", 30, "days for which a new namespace keeps closed runs")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what is missing and create nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// setUp shows the steps, asks for confirmation and executes the missing ones. With --json it writes each
// step once, in its final state.
func setUp(a *cli.App, ctx context.Context, s *engine.Setup, dryRun, yes bool) error {
	missing := slices.ContainsFunc(s.Steps, func(step engine.SetupStep) bool { return !step.Done })
	for _, step := range s.Steps {
		state := setupMissing
		if step.Done {
			state = setupExists
		}
		if !a.JSON || dryRun || step.Done {
			if err := writeSetup(a, s, step, state); err != nil {
				return err
			}
		}
	}
	if !missing || dryRun {
		return nil
	}
	title := fmt.Sprintf("set up namespace %s of %s", s.Namespace, s.Address)
	if err := a.Confirm(ctx, runs.Prepared{Title: title, Yes: "create what is missing"}, yes); err != nil {
		return err
	}
	for _, step := range s.Steps {
		if step.Done {
			continue
		}
		if err := s.Do(ctx, step); err != nil {
			return err
		}
		if err := writeSetup(a, s, step, setupCreated); err != nil {
			return err
		}
	}
	return nil
}

func writeSetup(a *cli.App, s *engine.Setup, step engine.SetupStep, state setupState) error {
	line := SetupLine{s.Address, s.Namespace, step.Name, state, step.Text}
	return cli.Report(a, line, "%-7s  %-17s  %s", state, step.Name, step.Text)
}
