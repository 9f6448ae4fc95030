package history

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/cluster"
)

type exportFlags struct {
	file  string
	chain bool
	run   string
}

func exportCommand(a *cli.App) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export TASK",
		Short: "Write the history of a run as JSON that any Temporal replayer takes",
		Example: "acescope replay export finance-1-e1-0042 -o q.json\nacescope replay export finance-1 --chain -o finance.json\n" +
			"acescope replay export finance-1-e1-0042 | acescope replay verify -",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return export(a, cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "file to write; without it, standard output")
	cmd.Flags().BoolVar(&f.chain, "chain", false, "the runs before and after it too (continue-as-new, retry, cron), oldest first; a run that was reset stands in the place of the one it was reset from; with -o one file each: NAME.1.json, NAME.2.json, …")
	cmd.Flags().StringVar(&f.run, "run", "", "of several runs of the workflow, the one with this run id")
	return cmd
}

// ExportLine is a file that was written.
type ExportLine struct {
	Type       string `json:"type"` // export
	File       string `json:"file"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Events     int    `json:"events"`
	Bytes      int    `json:"bytes"`
}

func export(a *cli.App, ctx context.Context, id string, f exportFlags) error {
	if a.JSON && f.file == "" {
		return cli.UsageError("standard output is the history itself: with --json give -o FILE")
	}
	e, exec, done, err := a.OpenRun(ctx, id, f.run)
	if err != nil {
		return err
	}
	defer done()
	// The file has payloads as the cluster has them: what is encrypted stays encrypted.
	chain, err := cluster.ReadChain(codec.AsStored(ctx), e.Client, e.Namespace(), exec.GetWorkflowId(), exec.GetRunId(), !f.chain, nil)
	if err != nil {
		return err
	}
	out := cli.NewLines(a.Out)
	for i, events := range chain.Runs {
		if err := exportOne(a, out, events, exportName(f.file, i, len(chain.Runs)), exec.GetWorkflowId()); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil || chain.Gone() == "" {
		return err
	}
	return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("not all was there to export: %s", chain.Gone())}
}

// exportName is the name of the file of history i of n, "" for standard output.
func exportName(file string, i, n int) string {
	if file == "" || n == 1 {
		return file
	}
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(file, ext), i+1, ext)
}

func exportOne(a *cli.App, out *cli.Lines, events []*historypb.HistoryEvent, file, workflowID string) error {
	var data bytes.Buffer
	if err := historyfile.Write(&data, events); err != nil {
		return err
	}
	if file == "" {
		_, err := a.Out.Write(data.Bytes())
		return err
	}
	// Under another name first: a reader never meets half a file.
	if err := os.WriteFile(file+".part", data.Bytes(), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".part", file); err != nil {
		return err
	}
	if a.JSON {
		return out.Put(ExportLine{"export", file, workflowID, cli.RunIDOf(events), len(events), data.Len()})
	}
	_, err := fmt.Fprintf(out.Buf, "%s  %d events, %d bytes\n", file, len(events), data.Len())
	return err
}
