package history

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

type exportFlags struct {
	file  string
	chain bool
	run   string
	walk  string
}

func exportCommand(a *cli.App) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export TASK|FILE",
		Short: "Write the history of a run as JSON that any Temporal replayer reads, or as a page for a bug report",
		Long: "Writes the history of a run as JSON that any Temporal replayer reads. With --chain it also writes the\n" +
			"runs before and after it (continue-as-new, retry, cron), oldest first, and with -o each to its own file:\n" +
			"NAME.1.json, NAME.2.json, and so on. A run that was reset replaces the run that it was reset from.\n\n" +
			"With --walk it writes one HTML file instead: every event with what it did, the state after it, prompts and\n" +
			"responses, and where the answer became wrong. Secrets are replaced. The file needs no other file, no network\n" +
			"and no script. FILE is an exported history.",
		Example: "acescope replay export finance-1-e1-0042 -o q.json\n" +
			"acescope replay export finance-1 --chain -o finance.json\n" +
			"acescope replay export finance-1-e1-0042 | acescope replay verify -\n" +
			"acescope replay export finance-1-e1-0042 --walk bug.html",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.walk != "":
				return exportWalk(a, cmd.Context(), args[0], f)
			case isPage(f.file):
				return cli.UsageError("-o writes JSON; use --walk %s for a page", f.file)
			}
			return export(a, cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "file to write (default standard output)")
	cmd.Flags().BoolVar(&f.chain, "chain", false, "include the runs before and after the run")
	cmd.Flags().StringVar(&f.run, "run", "", "run ID, if the workflow has several runs")
	cmd.Flags().StringVar(&f.walk, "walk", "",
		"HTML file to write instead, with every event and the state after it")
	cmd.MarkFlagsMutuallyExclusive("walk", "output")
	cmd.MarkFlagsMutuallyExclusive("walk", "chain")
	return cmd
}

// ExportLine is a file that was written.
type ExportLine struct {
	File       string `json:"file"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Events     int    `json:"events"`
	Bytes      int    `json:"bytes"`
}

func export(a *cli.App, ctx context.Context, id string, f exportFlags) error {
	if f.file == "-" {
		f.file = ""
	}
	if a.JSON && f.file == "" {
		return cli.UsageError("standard output is the history: use -o FILE with --json")
	}
	e, exec, err := cli.OpenRun(a, ctx, id, f.run)
	if err != nil {
		return err
	}
	// Payloads are written as the cluster stores them: encrypted payloads stay encrypted.
	ctx = codec.AsStored(ctx)
	workflowID := exec.GetWorkflowId()
	chain, err := cluster.ReadChain(ctx, e.Client, e.Namespace(), workflowID, exec.GetRunId(), !f.chain, nil)
	if err != nil {
		return err
	}
	for i, events := range chain.Runs {
		file := f.file
		if ext := filepath.Ext(file); file != "" && len(chain.Runs) > 1 {
			file = fmt.Sprintf("%s.%d%s", strings.TrimSuffix(file, ext), i+1, ext)
		}
		if err := exportRun(a, events, file, workflowID); err != nil {
			return err
		}
	}
	if missing := chain.Incomplete(); missing != "" {
		return fmt.Errorf("the export is incomplete: %s", missing)
	}
	return nil
}

// exportRun writes a history to a file, or without a file to standard output.
func exportRun(a *cli.App, events []*historypb.HistoryEvent, file, workflowID string) error {
	var data bytes.Buffer
	if err := historyfile.Write(&data, events); err != nil {
		return err
	}
	if file == "" {
		_, err := cli.Exact(a.Out).Write(data.Bytes())
		return err
	}
	if err := cli.UpdateFile(file, data.Bytes()); err != nil {
		return err
	}
	line := ExportLine{file, workflowID, cli.RunIDOf(events), len(events), data.Len()}
	return cli.Report(a, line, "%s  %s, %s", file, ace.Count(line.Events, "event"),
		ace.Count(line.Bytes, "byte"))
}

// openedWalk is a history with its playbooks and the store of its artifacts. Close ends the connection.
type openedWalk struct {
	*histories.Walk
	cli.RunHistory
	deps cluster.Deps
}

// openWalk reads the history that an argument names, of a file or of a run on the server, with its playbooks.
func openWalk(a *cli.App, ctx context.Context, name, runID string) (w openedWalk, err error) {
	path, _, err := cli.SplitHistoryName(name)
	if err != nil {
		return w, err
	}
	if cli.IsHistoryFile(path) {
		w.deps.Artifact = cli.FileArtifacts(a)
		w.RunHistory, err = cli.HistoryOf(a, ctx, name, runID)
	} else {
		e, err := a.OpenReadOnly(ctx)
		if err != nil {
			return w, err
		}
		w.deps = cluster.Deps{Client: e.Client, Namespace: e.Namespace(), Playbooks: e.Books,
			Artifact: e.Artifacts.Get}
		w.RunHistory, err = cli.ReadRun(ctx, e, name, runID)
	}
	if err != nil {
		return w, err
	}
	w.Walk = histories.NewWalk(w.RunHistory.Events, w.Types(), nil)
	given, before := w.Hashes()
	w.Books = histories.ReadBooks(ctx, w.deps, given, before)
	return w, nil
}

// WalkLine is a page with the events of a run that was written.
type WalkLine ExportLine

func exportWalk(a *cli.App, ctx context.Context, name string, f exportFlags) error {
	w, err := openWalk(a, ctx, name, f.run)
	if err != nil {
		return err
	}
	page, err := w.Page(ctx, w.deps)
	if err != nil {
		return err
	}
	if err := cli.UpdateFile(f.walk, page); err != nil {
		return err
	}
	line := WalkLine{f.walk, w.About.WorkflowID, w.About.RunID, w.Len(), len(page)}
	if err := cli.Report(a, line, "%s  %s, %s", f.walk, ace.Count(line.Events, "event"),
		ace.Count(line.Bytes, "byte")); err != nil {
		return err
	}
	return w.ReadErr
}

// isPage reports whether a file name is that of a page, which a user may expect of -o.
func isPage(file string) bool {
	ext := strings.ToLower(filepath.Ext(file))
	return ext == ".html" || ext == ".htm"
}
