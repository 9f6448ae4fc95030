package runs

import (
	"context"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/dataset"
)

type DatasetLine struct {
	DatasetID string              `json:"dataset_id"`
	Dataset   ace.Ref             `json:"dataset"`
	Tasks     int                 `json:"tasks"`
	Lost      []dataset.LostField `json:"lost,omitempty"`
	Grader    string              `json:"grader,omitempty"`
}

func DatasetCommand(a *cli.App) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "dataset FILE",
		Short: "Store a data set and print the reference that workflows and flows pass to activities",
		Long: "Check a data set, store its tasks as an artifact and print the reference that the activities load_tasks and\n" +
			"run_evaluation take. Storing the same tasks again gives the same reference.",
		Example: "acescope dataset held-out.jsonl --json | jq .dataset",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return storeDataset(a, cmd.Context(), args[0], limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "store only the first N tasks (default all)")
	return cmd
}

func storeDataset(a *cli.App, ctx context.Context, path string, limit int) error {
	e, err := a.Open(ctx, false)
	if err != nil {
		return err
	}
	set, err := ingest(a, ctx, e, path, dataSource, limit)
	if err != nil {
		return datasetError(err)
	}
	line := DatasetLine{set.ID, set.Ref, set.Tasks, set.Lost, set.Grader}
	return cli.Report(a, line, "%s: %s, artifact %s", set.ID, ace.Count(set.Tasks, "task"), set.Ref.SHA256)
}
